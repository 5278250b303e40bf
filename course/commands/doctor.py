"""`python -m course doctor`: what the course finds on this computer, and what to do about what is wrong.

It starts with the standard library alone, so that it can tell of an environment that does not exist yet.
"""

import argparse
import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from course.base import environment, locks
from course.base.notebooks import COMMAND, INSTALLED, ROOT
from course.commands.lab import FIRST_LESSON, FIRST_PORT, is_free, user_of
from course.learner.copies import MINE

OK, NOTE, PROBLEM = "ok", "note", "problem"  # a note is worth knowing; a problem stops `lab`
WIDTH = 100  # of a line


@dataclasses.dataclass
class Finding:
    """One thing looked at: how it stands, what was found, and what to do where it is not well."""

    what: str
    state: str
    found: str
    advice: str = ""


def main(argv: list[str]) -> int:
    """Print the findings; 0 where the lab can start, else 1."""
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} doctor",
        description="Say what is installed, what is wrong and what to do about it. Changes nothing.",
    )
    parser.add_argument("--json", action="store_true", help="the same for programs")
    options = parser.parse_args(argv)
    folder = environment.own_folder()
    # What matters is the environment in which the lab would run.
    if not environment.in_own_environment() and locks.missing("course") and environment.usable(folder):
        environment.rerun(environment.python_in(folder), ["doctor", *argv])
    findings = list(examine(folder))
    can_start = all(finding.state != PROBLEM for finding in findings)
    if options.json:
        print(json.dumps({"lab_can_start": can_start, "findings": list(map(dataclasses.asdict, findings))}, indent=2))
    else:
        print(report(findings))
        print(f"\nThe lab can start: {COMMAND} lab" if can_start else "\nThe lab cannot start yet.")
    return 0 if can_start else 1


def report(findings: list[Finding]) -> str:
    """Write the findings as lines: what is well in one line, what is not with its advice below."""
    lines = []
    for finding in findings:
        head, *more = textwrap.wrap(finding.found, WIDTH - 22, break_on_hyphens=False) or [""]
        lines.append(f"{finding.state:<8} {finding.what:<12} {head}")
        lines += [f"{'':<21} {line}" for line in more]
        lines += [f"{'':<21} -> {line}" for line in finding.advice.splitlines()]
    return "\n".join(lines)


def examine(folder: Path) -> Iterator[Finding]:
    """Yield every finding, in the order of a start. `folder` is where the course's own environment is or would be."""
    yield Finding("Python", OK, f"{platform.python_version()} ({sys.executable})")
    yield Finding("System", OK, f"{platform.platform()}, {os.cpu_count()} cores")
    missing = locks.missing("course")
    here = environment.in_own_environment() or not missing
    yield _environment(folder, missing)
    if here:
        yield _packages(missing)
    yield _disk(folder, not missing)
    yield _writing()
    yield _first_lesson()
    yield _names()
    yield _graphviz()
    yield gpu()
    if not missing:
        yield machines()
    yield _port()


def _environment(folder: Path, missing: list[str]) -> Finding:
    if environment.in_own_environment():
        if environment.ready(folder, "course") and not missing:
            return Finding("Environment", OK, f"the course's own, {folder}, as locked")
        return Finding("Environment", NOTE, f"{folder} is not as locked", "The next start brings it up to date.")
    if not missing:
        return Finding("Environment", OK, f"yours, {sys.prefix}: it has all that the lab needs")
    if problem := environment.obstacle(folder):
        found, _, advice = str(problem).partition("\n")
        return Finding("Environment", PROBLEM, found, advice)
    what = "is not whole and will be made anew" if folder.exists() else "will be made"
    advice = f"The first start does it: {environment.COURSE_MB[0]} MB to download, one to five minutes."
    if len(missing) < len(locks.requirements("course")) / 2 and importlib.util.find_spec("packaging"):
        advice += f"\nOr add to the environment that you are in, and it is used: {', '.join(missing)}"
    return Finding("Environment", NOTE, f"{folder} {what}", advice)


def _packages(missing: list[str]) -> Finding:
    named = [re.match(r"[\w.-]+", text) for text in locks.requirements("course")]
    versions = {match[0]: locks.installed_version(match[0]) for match in named if match}
    found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    if missing:
        several = len(missing) > 5 or missing == ["packaging"]  # without that one, the others cannot be compared
        what = "most are missing" if several else f"missing: {', '.join(missing)}"
        return Finding("Packages", NOTE, what, "The next start installs them.")
    differing = [f"{name} {have} (locked: {pin})" for name, have, pin in _off_lock()]
    if differing:
        found += f"; not as locked: {', '.join(differing[:5])}" + (" and more" if len(differing) > 5 else "")
    return Finding("Packages", OK, found)


def _off_lock() -> Iterator[tuple[str, str, str]]:
    """Distributions whose version is not the one in requirements/course.txt: name, version, locked version."""
    from packaging.markers import Marker

    for line in locks.lock_file("course").read_text(encoding="utf-8").splitlines():
        pin = re.match(r"(?P<name>[\w.-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>.*?))? \\$", line)
        if pin and (not pin["marker"] or Marker(pin["marker"]).evaluate()):
            have = locks.installed_version(pin["name"])
            if have and have != pin["version"]:
                yield pin["name"], have, pin["version"]


def _disk(folder: Path, installed: bool) -> Finding:
    free_mb = shutil.disk_usage(environment.existing(folder)).free // 10**6
    needed = 100 if installed else environment.COURSE_MB[1]
    if free_mb < needed:
        advice = f"About {needed} MB are needed: free some, or set {environment.FOLDER_VARIABLE} to another disk."
        return Finding("Disk", PROBLEM, f"{free_mb} MB free", advice)
    return Finding("Disk", OK, f"{free_mb / 1000:.1f} GB free")


def _writing() -> Finding:
    if INSTALLED:  # the next folder is made here
        folders = [Path.cwd()]
    else:
        folders = [ROOT] + [ROOT / mine for mine in MINE.values() if (ROOT / mine).exists()]
    closed = [str(path) for path in folders if not _writable(path)]
    if closed:
        return Finding("Writing", NOTE, f"{', '.join(closed)}: not allowed", "Copy the course to a folder of yours.")
    return Finding("Writing", OK, f"notebooks in {folders[0]} can be saved")


def _writable(folder: Path) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _first_lesson() -> Finding:
    if INSTALLED:
        advice = f"`{COMMAND} lab` puts them into a folder of yours: {Path.cwd() / 'undertorch'}"
        return Finding("Lessons", NOTE, "installed, and no folder of yours with them here", advice)
    if (ROOT / FIRST_LESSON).is_file():
        return Finding("Lessons", OK, f"{len(list((ROOT / 'notebooks').glob('*.ipynb')))} in notebooks/")
    return Finding("Lessons", NOTE, f"{FIRST_LESSON} is not there", f"Make it from its text: {COMMAND} build")


def _names() -> Finding:
    """Tell whether `import engine` and `import course` find the course's own, also in a learner's notebooks."""
    others = importlib.metadata.packages_distributions()
    clashes = [
        f"{who} has a module {name} too"
        for name in ("engine", "course")
        for who in sorted({*others.get(name, []), "undertorch"} - {"undertorch"})
    ]
    folders = [ROOT / mine for mine in MINE.values()]
    hiding = [folder / name for folder in folders for name in ("engine", "engine.py", "course", "course.py")]
    clashes += [str(path) for path in hiding if path.exists()]
    if clashes:
        advice = "Rename the file, or take an environment of its own for the course: notebooks may find the wrong one."
        return Finding("Names", NOTE, f"not alone with `engine` and `course`: {', '.join(clashes)}", advice)
    return Finding("Names", OK, "`engine` and `course` are the course's own")


def _graphviz() -> Finding:
    """Find the first way of drawing a graph that works here, of those the course tries."""
    if (dot := shutil.which("dot")) and (answer := _output(dot, "-V")):
        return Finding("Graphviz", OK, f"the system's dot ({answer})")
    with contextlib.suppress(ImportError):
        import pygraphviz

        return Finding("Graphviz", OK, f"pygraphviz {pygraphviz.__version__}")
    if version := locks.installed_version("graphviz-anywidget"):
        return Finding("Graphviz", OK, f"in the browser (graphviz-anywidget {version})")
    if locks.missing("course"):
        return Finding("Graphviz", OK, "no system dot; the environment brings its own")
    advice = "For pictures, install Graphviz: apt, dnf, brew, choco or conda install graphviz"
    return Finding("Graphviz", NOTE, "not found: graphs are shown as text", advice)


def gpu() -> Finding:
    no_need = "the course needs none: it has a simulated device"
    driver = _cuda_of_driver()
    if importlib.util.find_spec("cupy") is None:
        if driver is None:
            return Finding("GPU", OK, f"no working NVIDIA driver; {no_need}")
        if driver < 12:
            advice = "Update the NVIDIA driver: CuPy needs one that supports CUDA 12."
            return Finding("GPU", NOTE, f"an NVIDIA driver for CUDA {driver}; {no_need}", advice)
        lock = locks.lock_file("cuda13" if driver >= 13 else "cuda12").relative_to(ROOT)
        advice = f'"{sys.executable}" -m pip install --require-hashes -r {lock.as_posix()}'
        if locks.missing("course"):
            advice = "Start the lab once, then ask the doctor again for the command that adds CuPy."
        return Finding("GPU", NOTE, f"an NVIDIA driver (CUDA {driver}), but no CuPy to use it with", advice)
    import cupy

    # Without a driver this answers False; nearly every other question to CuPy raises.
    if not cupy.cuda.is_available():
        return Finding("GPU", OK, f"CuPy {cupy.__version__}, but no NVIDIA driver or GPU answers; {no_need}")
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return Finding("GPU", OK, f"{name}, by CuPy {cupy.__version__}")


def machines() -> Finding:
    """Say which MPI there is for several processes, and whether two of them can speak to each other."""
    try:
        from engine.distributed import launch
    except ImportError as error:
        return Finding("Machines", NOTE, f"the engine cannot be imported: {error}", "Start the lab once.")
    advice = f'"{sys.executable}" -m pip install --require-hashes -r requirements/machines.txt'
    if importlib.util.find_spec("mpi4py") is None:
        return Finding("Machines", OK, "no mpi4py: one process alone, as all lessons but 20 need", advice)
    try:
        mpi = launch.found()
        command, more = launch.command(mpi, 2)
    except launch.NoMPI as problem:
        return Finding("Machines", NOTE, str(problem), advice)
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"
    try:
        done = subprocess.run(
            [*command, sys.executable, "-c", program],
            env=os.environ | more,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        # Their lines may come as one: each writes its number, and then the end of the line.
        works = done.returncode == 0 and "".join(done.stdout.split()) == "22"
        why = "" if works else (done.stderr or done.stdout).strip().partition("\n")[0]
    except (OSError, subprocess.TimeoutExpired) as error:
        works, why = False, str(error)
    found = f"{mpi.family} {mpi.version} by mpi4py {locks.installed_version('mpi4py')} ({mpi.mpiexec or 'srun'})"
    if not works:
        return Finding("Machines", NOTE, f"{found}, but two processes do not reach each other: {why}", advice)
    return Finding("Machines", OK, f"{found}; two processes reach each other")


def _cuda_of_driver() -> int | None:
    """Return the newest CUDA that driver and GPU support (12, 13), or None without a working NVIDIA driver."""
    program = shutil.which("nvidia-smi")
    found = re.search(r"CUDA Version: (\d+)", _output(program) or "") if program else None
    if not program or not found:
        return None
    generations = re.findall(r"(?m)^(\d+)\.(\d+)", _output(program, "--query-gpu=compute_cap", "--format=csv") or "")
    old = any((int(major), int(minor)) < (7, 5) for major, minor in generations)  # CUDA 13 begins with Turing
    return min(int(found[1]), 12) if old else int(found[1])


def _output(*command: str) -> str | None:
    """Return what a program says; None where it fails."""
    try:
        asked = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
        )
    except OSError:
        return None
    return None if asked.returncode else asked.stdout.strip()


def _port() -> Finding:
    if is_free(FIRST_PORT):
        return Finding("Port", OK, f"{FIRST_PORT} is free")
    return Finding("Port", NOTE, f"{FIRST_PORT} is in use by {user_of(FIRST_PORT)}", "The lab takes the next free one.")
