"""The environment that the course runs in: found, or made from a hashed lock. The standard library alone."""

import contextlib
import errno
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from course.base import installer, locks
from course.base.files import put_in_place
from course.base.notebooks import COMMAND, INSTALLED, ROOT, kernel_environment

FOLDER_VARIABLE = "UNDERTORCH_VENV"
OLDEST_PYTHON = (3, 11)
# What the two locks that a learner meets take, rounded up: megabytes to download, and of disk.
COURSE_MB = (190, 910)
TEST_MB = (270, 1210)

STAMP = "undertorch.json"
LOG = "undertorch-setup.log"
GUARD = "undertorch-setup.lock"


class Problem(Exception):
    """An error that says what is wrong and what to do about it, in a line or two; shown without a traceback."""


def ensure(lock: str, argv: list[str]) -> None:
    """Return where this Python has what a lock needs; else start `python -m course *argv` in an environment that has.

    Raises Problem where there is none and none can be made.
    """
    if not locks.lock_file(lock).is_file():
        raise Problem(
            f"{ROOT} is not a whole copy of the course: {locks.lock_file(lock)} is not there.\n"
            'Get it by `python -m pip install "undertorch[course]"`, by `git clone`, or by Download ZIP on the '
            "repository's page."
        )
    if INSTALLED:  # into somebody's environment, which is theirs to change
        if locks.missing(lock):
            raise Problem(
                f"`{COMMAND} {argv[0]}` needs more packages than this environment has. To add them:\n"
                f'"{sys.executable}" -m pip install "undertorch[{",".join(locks.LOCKS[lock])}]"'
            )
    elif in_own_environment():
        folder = own_folder()
        if not ready(folder, lock) or locks.missing(lock):
            with guard(folder):
                install(folder, lock)
            importlib.invalidate_caches()
    elif locks.missing(lock):
        rerun(prepare(own_folder(), lock), argv)


def own_folder() -> Path:
    """Return where the course's own environment is, or would be made."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return (Path.cwd() / "undertorch" if INSTALLED else ROOT) / ".venv"  # where `undertorch lab` would make it


def in_own_environment() -> bool:
    return _same_folder(sys.prefix, own_folder())


def python_in(folder: Path) -> Path:
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def _same_folder(one: str | Path, other: str | Path) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


# The stamp in an environment is written whole. "own": the course made it, and may make it anew. "locks": what was
# installed, by the hash of the lock; it is missing while packages are being unpacked. An environment without a stamp is
# someone's own: it is used and added to, and never deleted (but for a `.venv` of this clone that does not start).


def read_stamp(folder: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads((folder / STAMP).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        return {}


def write_stamp(folder: Path, **content: Any) -> None:
    draft = folder / f"{STAMP}.new"
    draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    put_in_place(draft, folder / STAMP)


def ready(folder: Path, lock: str) -> bool:
    """Tell whether a lock, or a larger one that holds it, is installed in `folder` as requirements/ has it now."""
    installed = (read_stamp(folder) or {}).get("locks", {})
    return any(
        set(locks.LOCKS[lock]) <= set(extras) and name in installed and installed[name] == locks.lock_hash(name)
        for name, extras in locks.LOCKS.items()
    )


class Probe(NamedTuple):
    """An environment's Python, by its own account."""

    version: tuple[int, ...]
    executable: Path


def probe(folder: Path) -> Probe | None:
    """Ask the Python in `folder` by starting it; None where it does not start or belongs to another folder."""
    python = python_in(folder)
    question = "import sys; print(sys.version_info[0], sys.version_info[1]); print(sys.prefix)"
    try:
        answer = subprocess.run(
            [python, "-I", "-X", "utf8", "-c", question], capture_output=True, text=True, encoding="utf-8", timeout=60
        )
        version, prefix = answer.stdout.splitlines()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if answer.returncode or not _same_folder(prefix, folder):
        return None
    return Probe(tuple(map(int, version.split())), python)


def usable(folder: Path) -> bool:
    """Tell whether `folder` holds a whole environment (whatever is installed in it)."""
    stamp = read_stamp(folder)
    unfinished = stamp is not None and stamp.get("own") and "locks" not in stamp
    return not unfinished and probe(folder) is not None


def prepare(folder: Path, lock: str) -> Path:
    """Return the Python of the environment in `folder`, made, repaired or updated where necessary."""
    whole = usable(folder)
    if not whole and (problem := obstacle(folder)):
        raise problem
    if not (whole and ready(folder, lock)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_write(folder, error) from None
        with guard(folder):
            if not usable(folder):
                make(folder)
            if not ready(folder, lock):
                install(folder, lock)
    return python_in(folder)


def obstacle(folder: Path) -> Problem | None:
    """Return what keeps an environment from being made in `folder`; None where nothing does."""
    # Only what the course made is ever replaced: the variable may name any folder by mistake.
    own = folder == ROOT / ".venv" or (read_stamp(folder) or {}).get("own")
    if folder.exists() and not own and (not folder.is_dir() or any(folder.iterdir())):
        return Problem(f"{folder} is not empty and holds no whole environment.\nSet {FOLDER_VARIABLE} to a new folder.")
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return Problem(
            f"This Python ({sys.executable}) cannot make environments: its venv module is not complete.\n"
            f"On Debian or Ubuntu: sudo apt install python{version}-venv, then start the same command again."
        )
    place = existing(folder)
    try:
        with tempfile.TemporaryFile(dir=place):
            free_mb = shutil.disk_usage(place).free // 10**6
    except OSError as error:
        return _cannot_write(folder, error)
    if free_mb < TEST_MB[1]:
        return Problem(
            f"{free_mb} MB are free in {place}, and the course needs about {TEST_MB[1]} MB.\n"
            f"Free some space, or set {FOLDER_VARIABLE} to a folder on a larger disk."
        )
    return None


def existing(folder: Path) -> Path:
    """Return the folder itself, or its nearest ancestor that exists."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


@contextlib.contextmanager
def guard(folder: Path) -> Iterator[None]:
    """Let one process at a time set up an environment; the system lifts the guard from one that dies."""
    try:
        file = (folder / GUARD).open("a+b")
    except OSError as error:
        raise _cannot_write(folder, error) from None
    with file:
        if not _try_to_hold(file.fileno()):
            say(f"Another start of the course is setting up {folder}: waiting for it.")
            while not _try_to_hold(file.fileno()):
                time.sleep(0.5)
        yield


def _try_to_hold(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def make(folder: Path) -> None:
    """Make an empty environment in `folder`, replacing whatever was left there. Raises Problem."""
    left = [path for path in folder.iterdir() if path.name != GUARD]
    if left:
        say(f"The environment in {folder} is not whole: making it anew.")
    else:
        say(f"Making an environment for the course in {folder}: a few seconds.")
    try:
        for path in left:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        write_stamp(folder, own=True)
        with (folder / LOG).open("w", encoding="utf-8") as log:
            log.write(f"python -m venv {folder}\n")
            log.flush()
            made = subprocess.run([sys.executable, "-m", "venv", str(folder)], stdout=log, stderr=subprocess.STDOUT)
        if made.returncode:
            raise explain(folder)
        write_stamp(folder, own=True, locks={})
    except OSError as error:
        raise _cannot_write(folder, error) from None


def install(folder: Path, lock: str) -> None:
    """Install a lock into the environment in `folder`, showing how far it is. Raises Problem."""
    found = probe(folder)
    if found is None or found.version < OLDEST_PYTHON:
        raise Problem(
            f"The environment in {folder} has no Python 3.11 or newer.\n"
            f"Delete that folder, or set {FOLDER_VARIABLE} to another, and start the same command again."
        )
    python = [str(found.executable), "-I", "-X", "utf8", "-m"]
    pins = sum("==" in line for line in locks.lock_file(lock).read_text(encoding="utf-8").splitlines())
    stamp = read_stamp(folder) or {}
    own = bool(stamp.get("own"))
    download_mb, disk_mb = COURSE_MB if lock == "course" else TEST_MB
    try:
        with (folder / LOG).open("w", encoding="utf-8") as log:
            if subprocess.run([*python, "pip", "--version"], stdout=log, stderr=subprocess.STDOUT).returncode:
                subprocess.run([*python, "ensurepip"], stdout=log, stderr=subprocess.STDOUT)
            log.flush()
            say(
                f"Setting up the course in {folder}, this once: up to {pins} packages,\n"
                f"{download_mb} MB to download and {disk_mb} MB of disk. One to five minutes, by your network.\n"
                f"Ctrl-C stops it; a new start goes on."
            )
            unpacking = lambda: write_stamp(folder, own=own)  # noqa: E731
            options = ["--require-hashes", "--only-binary=:all:", "-r", str(locks.lock_file(lock))]
            code = 1
            if uv := shutil.which("uv"):  # several times as fast
                command = [uv, "pip", "install", "--python", str(found.executable), *options]
                code = installer.run_showing(command, log, pins, unpacking)
            if code:  # uv does not know pip's settings, a school's mirror say; and pip's story is the one that is told
                quiet = ["--disable-pip-version-check", "--progress-bar=off", "--no-input"]
                code = installer.run_showing([*python, "pip", "install", *quiet, *options], log, pins, unpacking)
        if code:
            raise explain(folder)
        _make_importable(found)
        write_stamp(folder, own=own, locks=stamp.get("locks", {}) | {lock: locks.lock_hash(lock)})
    except OSError as error:
        raise _cannot_write(folder, error) from None
    say("The environment is ready.")


def _make_importable(found: Probe) -> None:
    """Let every program of this environment, an editor's kernels say, import `engine` and `course`."""
    question = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run(
        [found.executable, "-I", "-X", "utf8", "-c", question],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    packages = Path(answer.stdout.strip())
    try:
        path = os.path.relpath(ROOT, packages)  # holds where the course is moved with its environment
    except ValueError:  # Windows: another drive
        path = str(ROOT)
    # Before Python 3.13 such a file is read in the system's encoding, which on Windows lacks many people's names.
    line = path if path.isascii() else f"import sys; sys.path.append({ascii(str(ROOT))})"
    (packages / "undertorch.pth").write_text(line + "\n", encoding="ascii")


def explain(folder: Path) -> Problem:
    """Turn a failed installation's log into a Problem."""
    log = folder / LOG
    told = installer.meaning(log.read_text(encoding="utf-8", errors="replace")).format(
        mb=TEST_MB[1], variable=FOLDER_VARIABLE, folder=folder, python=f"{sys.version_info[0]}.{sys.version_info[1]}"
    )
    return Problem(f"{told}\nThe whole story is in {log}.")


def _cannot_write(folder: Path, error: OSError) -> Problem:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem(
            f"The disk is full. Free about {TEST_MB[1]} MB, or set {FOLDER_VARIABLE} to a folder on a larger disk."
        )
    return Problem(
        f"{folder} cannot be written to ({error.strerror}).\n"
        f"Set {FOLDER_VARIABLE} to a folder of yours for the environment, or copy the course to one."
    )


def rerun(python: Path, argv: list[str]) -> NoReturn:
    """Go on with `python -m course *argv` in another Python, in place of this process."""
    command = [str(python), "-P", "-m", "course", *argv]  # whatever `course` may be in the folder where one is
    os.environ["PYTHONPATH"] = kernel_environment()["PYTHONPATH"]  # this package is found from any folder
    os.environ.pop("__PYVENV_LAUNCHER__", None)  # macOS and Windows: it would name this Python to the other
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(run_in_place_of_this(command))


def run_in_place_of_this(command: list[str]) -> int:
    """Run a program that answers Ctrl-C itself (it gets it too), and return its exit code. Windows has no real exec."""
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def say(text: str) -> None:
    """News for the reader; standard output is left to the command's own."""
    print(text, file=sys.stderr, flush=True)


def workers() -> int:
    """Return over how many processes tests and checks are spread."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, 4)
