"""`python -m course` from a bare Python to a running lab: what it finds, makes, repairs, and says when it cannot."""

import ast
import errno
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from over_tables import over

from course.base import environment, installer, locks, notebooks
from course.base.environment import Problem
from course.commands import cli, doctor, lab, testing

ROOT = Path(__file__).resolve().parents[3]
BARE = [sys.executable, "-I", "-S"]  # a Python with nothing installed


def run(*command, cwd=ROOT, timeout=300, **variables):
    """A finished process. Variables set to None are taken out of its environment.

    So is the one that names the environment of who runs the tests: no test installs anything there.
    """
    wanted = os.environ | {environment.FOLDER_VARIABLE: None} | variables
    env = {name: value for name, value in wanted.items() if value is not None}
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", timeout=timeout
    )


# The door


STARTS = """
import contextlib, io, json, runpy, sys

def start(command, encoding="utf-8"):
    "`python -m course` once more in this process, as with PYTHONIOENCODING: the exit code, and what is written."
    said = sys.stdout, sys.stderr = [io.TextIOWrapper(io.BytesIO(), encoding, newline="") for _ in range(2)]
    try:
        sys.argv[1:] = command
        runpy.run_module("course", run_name="__main__")
    except SystemExit as end:
        return end.code, *(stream.flush() or stream.buffer.getvalue().decode(encoding) for stream in said)
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
"""


def answers(expression, python=(sys.executable,), root=ROOT, **options):
    """What a process with `start` computes: a Python costs a tenth of a second, and one with the course's parts two."""
    code = f"{STARTS}\nsys.path.insert(0, {str(root)!r})\nanswers = {expression}\nprint(json.dumps(answers))"
    done = run(*python, "-c", code, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_python_that_is_too_old_is_told_what_is_needed(tmp_path):
    versions = [(2, 7, 18), (3, 6, 15), (3, 10, 13)]
    told = answers(f"[setattr(sys, 'version_info', old) or start([]) for old in {versions}]", PATH=str(tmp_path))
    for (code, _, says), version in zip(told, versions, strict=True):
        assert code == 1 and f"Python 3.11 or newer is needed, this is {version[0]}.{version[1]}" in says


@pytest.mark.skipif(os.name == "nt", reason="Windows has one door for all Pythons, py")
def test_a_python_is_named_only_where_it_starts(tmp_path):
    """pyenv's shims are there for each Python that it could install."""
    for name, line in {"python3.14": "exit 127", "python3.13": "exit 127", "python3.12": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    code = "import sys, runpy; sys.version_info = (3, 10, 1); runpy.run_module('course', run_name='__main__')"
    done = run(sys.executable, "-c", code, "lab", PATH=str(tmp_path))
    assert done.stderr.endswith("This computer has one: python3.12 -m course lab\n")


@over("name", ["__init__.py", "__main__.py"])
def test_the_door_parses_on_old_pythons(name):
    tree = ast.parse((ROOT / "course" / name).read_text(encoding="utf-8"), feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.NamedExpr)]


def test_help_needs_nothing_installed():
    commands = [[], ["--help"], *([name, "--help"] for name in cli.COMMANDS)]
    for command, (code, says, wrong) in zip(commands, answers(f"[*map(start, {commands})]", BARE), strict=True):
        assert (code, wrong) == (0, "") and "-m course" in says, command


def test_a_command_that_reads_notebooks_makes_no_grammar_of_addresses():
    code = "import sys; from course.commands import cli; cli.main(['minutes', '--help'])"
    loaded = "import nbformat; nbformat.validate(nbformat.v4.new_notebook()); print('lark' in sys.modules)"
    done = run(sys.executable, "-c", f"try:\n    {code}\nexcept SystemExit:\n    pass\n{loaded}")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "False"), done.stderr


def test_help_names_every_command():
    assert all(re.search(rf"^  {name} +\w", cli.help_text(), re.MULTILINE) for name in cli.COMMANDS)


def test_a_mistyped_command_is_answered_with_the_nearest(capsys):
    assert cli.main(["lba"]) == 2
    assert capsys.readouterr().err == f"There is no command 'lba'. Did you mean `{notebooks.COMMAND} lab`?\n"


@over("called", ["python", "python3", "python3.12", "py"])
def test_the_reader_is_told_what_to_type_as_they_typed_it(called, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", [called, "-m", "course"])
    monkeypatch.setattr(shutil, "which", lambda name: name)
    assert notebooks.typed() == f"{called} -m course"


def test_a_python_that_is_on_no_path_is_told_the_usual_name(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "orig_argv", [str(tmp_path / "python3.99"), "-m", "course"])
    assert notebooks.typed() in ("python -m course", "py -m course")


def test_a_problem_is_told_without_a_traceback(monkeypatch, capsys):
    def fail(argv):
        raise Problem("The disk is full.")

    monkeypatch.setattr(doctor, "main", fail)
    assert cli.main(["doctor"]) == 1
    assert capsys.readouterr() == ("", "The disk is full.\n")


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch, capsys):
    def interrupted(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "main", interrupted)
    assert cli.main(["doctor"]) == cli.INTERRUPTED
    assert capsys.readouterr().err == "\nStopped.\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE, and another error")
@over("buffered", ["", "1"])
def test_a_reader_who_has_seen_enough_is_no_error(buffered):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        variables = os.environ | {"PYTHONUNBUFFERED": buffered}
        done = subprocess.run([sys.executable, "-m", "course"], cwd=ROOT, env=variables, stdout=writing,
                              stderr=subprocess.PIPE, timeout=300)  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.fixture(scope="module")
def abroad(tmp_path_factory):
    """A clone in a folder that Western code pages have no letters for."""
    root = tmp_path_factory.mktemp("Łódź") / "講座 😀"
    shutil.copytree(ROOT / "course", root / "course", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", *(f"{folder}/05_graph.ipynb" for folder in ("notebooks", "exercises"))):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    shutil.copytree(ROOT / "requirements", root / "requirements")
    return root


def test_letters_that_a_code_page_lacks_are_spelled_out(abroad):
    commands = {"start 05": str(abroad), "progress": "", "reset 05 --yes": ""}
    table = [(command, encoding) for command in commands for encoding in ("cp1252", "ascii", "utf-8")]
    table.append(("doctor", "cp1252"))
    told = answers(f"[start(command.split(), page) for command, page in {table}]", root=abroad, PYTHONPATH=str(ROOT))
    for (command, page), (code, says, wrong) in zip(table, told, strict=True):
        place = commands.get(command, f"notebooks in {abroad}").encode(page, "backslashreplace").decode(page)
        assert (code, wrong) == (0, "") and says and place in " ".join(says.split()), (command, page)


# What an environment has


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A course that needs what the test gives: `project(dependency, ...)`."""
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(locks, "ROOT", tmp_path)
    monkeypatch.delenv(environment.FOLDER_VARIABLE, raising=False)

    def write(*dependencies):
        extras = {extra: [] for extra in {extra for held in locks.LOCKS.values() for extra in held}}
        lines = ["[project]", f"dependencies = {json.dumps(dependencies)}", "[project.optional-dependencies]"]
        lines += [f"{extra} = []" for extra in extras]
        (tmp_path / "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
        (tmp_path / "requirements").mkdir(exist_ok=True)
        for lock in locks.LOCKS:
            locks.lock_file(lock).write_text("".join(f"{text}\n" for text in dependencies), encoding="utf-8")
        return tmp_path

    return write


def test_an_environment_with_everything_misses_nothing(project):
    project("pytest>=1", "packaging")
    assert locks.missing("course") == []


@pytest.mark.parametrize("text", ["pytest>=1000", "no-such-distribution-of-ours", "pytest<1"])
def test_what_is_absent_or_of_another_version_is_missing(project, text):
    project("packaging", text)
    assert locks.missing("course") == [text]


def test_what_other_systems_need_is_not_missing(project):
    project("no-such-distribution-of-ours; sys_platform == 'solaris'")
    assert locks.missing("course") == []


def test_metadata_left_by_a_killed_installation_counts_as_missing(project, tmp_path, monkeypatch):
    (tmp_path / "site" / "half_there-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "site")
    project("half-there")
    assert locks.missing("course") == ["half-there"]


def test_an_environment_that_has_what_is_needed_is_used(project, monkeypatch):
    project("pytest")
    monkeypatch.setattr(environment, "rerun", lambda *_: pytest.fail("it left a good environment"))
    environment.ensure("course", ["lab"])


def test_a_folder_without_locks_is_no_clone(project):
    root = project("pytest")
    shutil.rmtree(root / "requirements")
    with pytest.raises(Problem, match="is not a whole copy of the course") as problem:
        environment.ensure("course", ["lab"])
    assert "pip install" in str(problem.value) and "git clone" in str(problem.value)


def test_the_variable_chooses_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(environment.FOLDER_VARIABLE, str(tmp_path / "elsewhere"))
    assert environment.own_folder() == tmp_path / "elsewhere"
    monkeypatch.delenv(environment.FOLDER_VARIABLE)
    assert environment.own_folder() == ROOT / ".venv"


# The stamp


def test_a_larger_lock_holds_the_smaller_but_not_the_other_way_round(project, tmp_path):
    project("pytest")
    environment.write_stamp(tmp_path, own=True, locks={"test": locks.lock_hash("test")})
    assert environment.ready(tmp_path, "course")
    environment.write_stamp(tmp_path, own=True, locks={"course": locks.lock_hash("course")})
    assert environment.ready(tmp_path, "course")
    assert not environment.ready(tmp_path, "test")


def test_a_lock_that_has_changed_is_not_ready(project, tmp_path):
    project("pytest")
    environment.write_stamp(tmp_path, own=True, locks={"course": locks.lock_hash("course")})
    project("pytest", "numpy")
    assert not environment.ready(tmp_path, "course")


def test_an_environment_is_whole_where_its_last_installation_was_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "probe", lambda folder: environment.Probe((3, 13), Path(sys.executable)))
    assert environment.usable(tmp_path)  # without a stamp it is someone's own
    environment.write_stamp(tmp_path, own=True, locks={})
    assert environment.usable(tmp_path)
    environment.write_stamp(tmp_path, own=True)
    assert not environment.usable(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\x00"])
def test_a_damaged_stamp_means_that_nothing_is_installed(project, tmp_path, content):
    project("pytest")
    (tmp_path / environment.STAMP).write_text(content, encoding="utf-8")
    assert environment.read_stamp(tmp_path) == {}
    assert not environment.ready(tmp_path, "course")


# What is in the way of making an environment


@over("damage", ["python gone", "killed installation", "without pyvenv.cfg", "a stray file"])
def test_a_broken_environment_is_not_gone_on_with(tmp_path, monkeypatch, capsys, damage):
    folder = tmp_path / ".venv"
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "ready", lambda *_: True)

    def run(command, **options):
        if command[1:3] == ["-m", "venv"]:
            command = [*command, "--without-pip"]  # which takes seconds
        return subprocess.run(command, **options)

    monkeypatch.setattr(environment, "subprocess", SimpleNamespace(**vars(subprocess) | {"run": run}))
    python = environment.prepare(folder, "course")
    if damage == "python gone":
        python.unlink()
    elif damage == "killed installation":
        environment.write_stamp(folder, own=True)  # as the stamp stands while pip unpacks
    elif damage == "without pyvenv.cfg":
        (folder / "pyvenv.cfg").unlink()
    else:
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "junk").touch()
    assert not environment.usable(folder) and environment.prepare(folder, "course") == python
    assert environment.usable(folder) and not (folder / "junk").exists()
    assert capsys.readouterr().err.count("is not whole: making it anew") == 1


def test_nothing_is_in_the_way_of_a_new_folder(tmp_path):
    assert environment.obstacle(tmp_path / "new" / "deep") is None


def test_a_read_only_folder_is_told_with_the_way_round_it(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(environment.tempfile, "TemporaryFile", refuse)
    told = str(environment.obstacle(tmp_path / ".venv"))
    assert told.startswith(f"{tmp_path / '.venv'} cannot be written to ({os.strerror(errno.EROFS)}).")
    assert "Set UNDERTORCH_VENV to a folder of yours" in told


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_of_another_user_is_told(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "cannot be written to" in str(environment.obstacle(closed / ".venv"))


def test_a_full_disk_is_told_before_anything_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda _: SimpleNamespace(free=250 * 10**6))
    told = str(environment.obstacle(tmp_path / ".venv"))
    assert "250 MB are free" in told
    assert f"about {environment.TEST_MB[1]} MB" in told


def test_a_python_without_ensurepip_is_told_which_package_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else object())
    told = str(environment.obstacle(tmp_path / ".venv"))
    assert f"sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv" in told


def test_a_folder_that_was_no_environment_is_never_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("everything", encoding="utf-8")
    told = str(environment.obstacle(tmp_path))
    assert "is not empty and holds no whole environment" in told
    with pytest.raises(Problem, match="no whole environment"):
        environment.prepare(tmp_path, "course")
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "everything"


# What a failed installation says

RETRYING = "WARNING: Retrying (Retry(total=4)) after connection broken by "
ABSENT = "ERROR: No matching distribution found for anyio==4.16.0"
FAILED = "ERROR: Could not install packages due to an OSError: "
LOGS = {
    "disk full": (f"{FAILED}[Errno 28] No space left on device", "The disk is full"),
    "hashes": ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "damaged or altered"),
    "certificate": (
        f"{RETRYING}'SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))'\n{ABSENT}",
        "certificate file",
    ),
    "offline": (
        f"{RETRYING}'NewConnectionError('[Errno -3] Temporary failure')'\n{ABSENT}",
        "is this computer online?",
    ),
    "read-only": (f"{FAILED}[Errno 13] Permission denied: '/x'", "cannot be written to"),
    "long path": ("HINT: This error might have occurred since this system does not have Windows Long Path", "too long"),
    "no wheel": (ABSENT, "no ready build for this system"),
    "unknown": ("something\nERROR: a {strange} thing\nmore", "Installing failed: ERROR: a {strange} thing"),
    "silent": ("", "Installing failed: no reason given"),
}


@over("case", LOGS)
def test_a_failed_installation_is_explained_and_names_its_log(tmp_path, case):
    log, words = LOGS[case]
    (tmp_path / environment.LOG).write_text(log, encoding="utf-8")
    told = str(environment.explain(tmp_path))
    assert words in told
    assert told.endswith(f"The whole story is in {tmp_path / environment.LOG}.")
    assert len(told.splitlines()) <= 3


# A whole start, with a real environment and a real pip, from a folder of wheels instead of the network


def write_wheel(folder, name, version, files):
    """A wheel with these files: {path: bytes}. Returns its line for a lock."""
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = files | {f"{info}/METADATA": metadata, f"{info}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for file, content in files.items():
            wheel.writestr(zipfile.ZipInfo(file), content)  # undated, so that the same content has the same hash
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


class Clone:
    """A clone of the course that needs two small wheels, and the ways a test starts it."""

    def __init__(self, folder):
        self.root = folder / "a clone"  # a folder with a space in its name
        self.wheels = folder / "wheels"
        self.wheels.mkdir(parents=True)
        shutil.copytree(ROOT / "course", self.root / "course", ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "requirements").mkdir()
        packaging = {
            str(file): file.locate().read_bytes()
            for file in importlib.metadata.files("packaging") or []
            if file.suffix == ".py" and file.parts[0] == "packaging"
        }
        self.base = write_wheel(self.wheels, "packaging", importlib.metadata.version("packaging"), packaging)
        # The command that the clone goes on with in its environment.
        shows = (
            "import sys\nfrom course.base.environment import ensure\n"
            "def main(argv):\n    ensure('course', ['shows', *argv])\n"
            "    import tinywheel\n    print(sys.prefix, tinywheel.VERSION, argv)\n    return 7\n"
        )
        (self.root / "course/commands/shows.py").write_text(shows, encoding="utf-8")
        cli = (self.root / "course/commands/cli.py").read_text(encoding="utf-8")
        cli = cli.replace("COMMANDS = {", 'COMMANDS = {\n    "shows": Command("commands.shows", "shows"),')
        (self.root / "course/commands/cli.py").write_text(cli, encoding="utf-8")
        self.need("1.0")

    @property
    def venv(self):
        return self.root / ".venv"

    def need(self, version):
        """Lock another version of the wheel."""
        line = write_wheel(self.wheels, "tinywheel", version, {"tinywheel.py": f"VERSION = {version!r}\n".encode()})
        extras = sorted({extra for held in locks.LOCKS.values() for extra in held})
        text = f'[project]\ndependencies = ["packaging", "tinywheel>={version}"]\n[project.optional-dependencies]\n'
        (self.root / "pyproject.toml").write_text(
            text + "".join(f"{extra} = []\n" for extra in extras), encoding="utf-8"
        )
        for lock in locks.LOCKS:
            (self.root / "requirements" / f"{lock}.txt").write_text(self.base + line, encoding="utf-8")

    def start(self, *argv, **variables):
        source = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels.as_uri()}
        clean = {"PYTHONPATH": None, "PIP_EXTRA_INDEX_URL": None}
        return run(sys.executable, "-m", "course", "shows", *argv, cwd=self.root, **(clean | source | variables))

    def shows(self, version, *argv, venv=None):
        return f"{venv or self.venv} {version} {list(argv)}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A clone after its first start, and what that start said."""
    clone = Clone(tmp_path_factory.mktemp("start"))
    return clone, clone.start("one", "--two")


@pytest.fixture
def clone(made, tmp_path):
    """A clone whose environment is ready, for the test to damage."""
    shutil.copytree(made[0].root, tmp_path / "a clone", symlinks=True)
    copy = Clone.__new__(Clone)
    copy.root, copy.wheels, copy.base = tmp_path / "a clone", made[0].wheels, made[0].base
    return copy


@pytest.mark.slow
def test_the_first_start_makes_an_environment_and_goes_on_in_it(made):
    clone, first = made
    assert first.stdout == clone.shows("1.0", "one", "--two")
    assert first.returncode == 7  # the command's own
    assert f"Setting up the course in {clone.venv}" in first.stderr
    assert "The environment is ready." in first.stderr


def test_the_second_start_installs_nothing_and_says_nothing(clone):
    second = clone.start(PIP_FIND_LINKS="", PATH="")
    assert (second.stdout, second.stderr, second.returncode) == (clone.shows("1.0"), "", 7)


@pytest.mark.slow
def test_uv_installs_where_it_is_there(clone):
    uv = pytest.importorskip("uv")
    clone.need("2.0")
    source = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": clone.wheels.as_uri()}
    done = clone.start(PATH=str(Path(uv.find_uv_bin()).parent), PIP_FIND_LINKS="", **source)
    assert done.stdout == clone.shows("2.0")
    assert "Installed" in (clone.venv / environment.LOG).read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_uv_cannot_find_pip_looks_for(clone):
    uv = pytest.importorskip("uv")
    clone.need("2.0")
    done = clone.start(PATH=str(Path(uv.find_uv_bin()).parent), UV_NO_INDEX="1", UV_OFFLINE="1")
    assert done.stdout == clone.shows("2.0")


def test_every_program_of_the_environment_imports_the_course(clone, tmp_path):
    done = run(
        environment.python_in(clone.venv), "-c", "import course; print(course.__file__)", cwd=tmp_path, PYTHONPATH=None
    )
    assert done.stdout == f"{clone.root / 'course' / '__init__.py'}\n"


@pytest.mark.slow
def test_a_changed_lock_is_installed_into_the_same_environment(clone):
    clone.need("2.0")
    marker = clone.venv / "kept"
    marker.touch()
    assert clone.start().stdout == clone.shows("2.0")
    assert marker.exists()


@pytest.mark.slow
def test_a_package_lost_since_is_put_back(clone):
    next(clone.venv.rglob("tinywheel.py")).unlink()
    shutil.rmtree(next(clone.venv.rglob("tinywheel-1.0.dist-info")))
    assert clone.start().stdout == clone.shows("1.0")


@pytest.mark.slow
def test_a_broken_environment_is_made_anew(clone):
    environment.python_in(clone.venv).unlink()
    again = clone.start()
    assert again.stdout == clone.shows("1.0")
    assert "is not whole: making it anew" in again.stderr


@pytest.mark.slow
def test_an_environment_without_pip_gets_it_back(clone):
    for path in clone.venv.rglob("site-packages/pip*"):
        shutil.rmtree(path)
    clone.need("2.0")
    assert clone.start().stdout == clone.shows("2.0")


@pytest.mark.slow
def test_the_environment_may_be_elsewhere(made, tmp_path):
    clone, elsewhere = made[0], tmp_path / "other disk" / "env"
    assert clone.start(UNDERTORCH_VENV=str(elsewhere)).stdout == clone.shows("1.0", venv=elsewhere)


@pytest.mark.slow
def test_without_a_network_it_says_so_names_the_log_and_goes_on_later(clone):
    clone.need("3.0")
    nowhere = {"PIP_NO_INDEX": None, "PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "1"}
    offline = clone.start(**nowhere)
    assert offline.returncode == 1
    assert "is this computer online?" in offline.stderr
    assert f"The whole story is in {clone.venv / environment.LOG}." in offline.stderr
    assert "Traceback" not in offline.stderr
    clone.need("1.0")
    assert clone.start(**nowhere).stdout == clone.shows("1.0")  # what was there is as good as before
    clone.need("3.0")
    assert clone.start().stdout == clone.shows("3.0")


@pytest.mark.slow
def test_someones_own_environment_is_added_to_and_never_replaced(made, tmp_path):
    clone, own = made[0], tmp_path / "own"
    run(sys.executable, "-m", "venv", own)
    assert clone.start(UNDERTORCH_VENV=str(own)).stdout == clone.shows("1.0", venv=own)
    environment.python_in(own).unlink()
    refused = clone.start(UNDERTORCH_VENV=str(own))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is not empty and holds no whole environment" in refused.stderr
    assert (own / "pyvenv.cfg").exists()


@pytest.mark.slow
def test_a_package_that_does_not_match_its_hash_is_refused(clone):
    clone.need("4.0")
    write_wheel(clone.wheels, "tinywheel", "4.0", {"tinywheel.py": b"VERSION = 'not ours'\n"})
    refused = clone.start()
    assert refused.returncode == 1
    assert "arrived damaged or altered" in refused.stderr


@pytest.mark.slow
def test_two_starts_at_once_set_up_one_environment(clone):
    shutil.rmtree(clone.venv)
    code = (
        "import sys, subprocess; a = [subprocess.Popen(sys.argv[1:]) for _ in range(2)]; print([p.wait() for p in a])"
    )
    source = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": clone.wheels.as_uri(), "PYTHONPATH": None}
    both = run(sys.executable, "-c", code, sys.executable, "-m", "course", "shows", cwd=clone.root, **source)
    assert sorted(both.stdout.splitlines()) == sorted([clone.shows("1.0").strip()] * 2 + ["[7, 7]"])
    assert both.stderr.count("Setting up the course") == 1
    assert "waiting for it" in both.stderr


# Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_one_line_that_is_rewritten_and_then_cleared(monkeypatch):
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(environment, "time", SimpleNamespace(monotonic=lambda: 0.0))
    with installer.LiveLine(screen) as live:
        live.show("fetching 3 of 10: numpy")
        deadline = time.monotonic() + 120
        while "numpy" not in screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert "\r  0:00  fetching 3 of 10: numpy" in screen.getvalue()
    assert "\n" not in screen.getvalue()
    assert screen.getvalue().endswith("\r" + " " * 39 + "\r")


def test_a_pipe_gets_lines(monkeypatch):
    monkeypatch.setattr(installer.LiveLine, "PERIOD_S", 0.01)
    monkeypatch.setattr(environment, "time", SimpleNamespace(monotonic=lambda: 0.0))
    pipe = io.StringIO()
    with installer.LiveLine(pipe) as live:
        live.show("fetching")
        deadline = time.monotonic() + 120
        while "fetching" not in pipe.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "  0:00  fetching\n" in pipe.getvalue()
    assert "\r" not in pipe.getvalue()


@over("code", [0, 3])
def test_a_system_without_exec_passes_on_the_exit_code(code):
    assert environment.run_in_place_of_this([sys.executable, "-c", f"raise SystemExit({code})"]) == code


# Ports


@pytest.fixture
def busy_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_that_was_asked_for_and_is_taken_is_refused_with_who_has_it(busy_port):
    pytest.importorskip("psutil")
    with pytest.raises(Problem, match=rf"Port {busy_port} is in use by .*\(process {os.getpid()}\)"):
        lab.refuse_port(busy_port)


@pytest.mark.filterwarnings("ignore")
def test_nbgraders_parts_find_the_courses_settings_where_somebody_teaches(monkeypatch, tmp_path, capfd):
    baseapp = pytest.importorskip("nbgrader.apps.baseapp")
    monkeypatch.setattr(os, "environ", os.environ | {"JUPYTER_CONFIG_PATH": str(tmp_path)})
    for name in ("ensure", "start_all", "open_copies", "open_already"):
        monkeypatch.setattr(lab, name, lambda *_: None)
    lab_app = SimpleNamespace(launch_instance=lambda arguments: None)
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", SimpleNamespace(LabApp=lab_app))  # a second to import
    assert lab.main(["--teach", "--no-browser"]) == 0
    monkeypatch.chdir(tmp_path)
    app = baseapp.NbGrader()
    app.load_config_file()
    assert "No nbgrader_config.py" not in capfd.readouterr().err
    assert app.config.CourseDirectory.course_id == "undertorch"


def test_without_a_wish_the_server_looks_for_a_free_port_and_with_one_it_does_not():
    assert f"--ServerApp.port_retries={lab.PORTS_TRIED}" in lab.server_arguments(None, False, [])
    assert {"--ServerApp.port=9999", "--ServerApp.port_retries=0"} <= set(lab.server_arguments(9999, False, []))


@over("port", [0, -1, 65536])
def test_a_number_that_is_no_port_is_refused(port):
    with pytest.raises(Problem, match="is no port"):
        lab.refuse_port(port)


# The lab


def test_the_labs_own_options_come_before_the_readers():
    arguments = lab.server_arguments(8888, False, lab.parse(["--", "--ip=0.0.0.0"]).jupyter)
    assert arguments[-1] == "--ip=0.0.0.0"


def fetch(url, data=None):
    """What a server answers; one that has told its address may still be about to listen."""
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, data, timeout=300) as answer:
                return SimpleNamespace(status=answer.status, body=answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return SimpleNamespace(status=refusal.code, body=refusal.read())
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@pytest.mark.slow
def test_the_lab_opens_the_first_lesson_with_its_token_and_this_python_and_stops_on_ctrl_c(tmp_path):
    if lacking := locks.missing("course"):
        pytest.skip(f"this environment lacks {', '.join(lacking)}")
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client import KernelManager  # its older versions, and older kernels, know nothing of encryption

    # A kernel of the same name that the user registered once, with a Python that is long gone.
    stale = tmp_path / "data" / "kernels" / "python3"
    stale.mkdir(parents=True)
    spec = {
        "argv": ["/gone/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Old",
        "language": "python",
    }
    (stale / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    folders = {"JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "run", "JUPYTER_CONFIG_DIR": "config"}
    folders["JUPYTERLAB_WORKSPACES_DIR"] = "workspaces"
    own = {name: str(tmp_path / folder) for name, folder in folders.items()}
    flags = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if os.name == "nt" else {}
    clean = {name: value for name, value in os.environ.items() if name != environment.FOLDER_VARIABLE}
    server = subprocess.Popen(
        [sys.executable, "-m", "course", "lab", "--no-browser"],
        cwd=ROOT, env={**clean, **own}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8", **flags,
    )  # fmt: skip
    with server:
        try:
            told = (re.search(r"(http://\S+?)(/lab/\S+)\?token=(\w+)", line) for line in server.stderr)
            address, page, token = next(filter(None, told)).groups()
            assert page == "/lab/tree/my_lessons/00_welcome.ipynb"
            lesson = fetch(f"{address}{page}?token={token}")
            assert lesson.status == 200
            switched_off = re.search(r'"disabledExtensions": (\[.*?\])', lesson.body.decode())
            assert {
                "@jupyter/nbgrader",
                "@jupyterlab/apputils-extension:announcements",
                "jupyterlab-jupytext",
            } <= set(json.loads(switched_off[1]))
            completion = f"{address}/lab/api/settings/@jupyterlab/completer-extension:manager?token={token}"
            assert json.loads(fetch(completion).body)["schema"]["properties"]["providerTimeout"]["default"] == 10000
            text = f"{address}/api/contents/course/lessons/00_welcome/lesson.md?token={token}"
            assert (fetch(text).status, fetch(f"{text}&type=notebook").status) == (200, 400)  # a text, and nothing else
            kernels = json.loads(fetch(f"{address}/api/kernelspecs?token={token}").body)["kernelspecs"]
            assert [kernel["spec"]["argv"][0] for kernel in kernels.values()] == [sys.executable]
            assert fetch(f"{address}/api/kernelspecs").status == 403
            again = run(sys.executable, "-m", "course", "lab", "--no-browser", **own)
            assert (again.returncode, again.stdout) == (0, "")
            assert again.stderr == f"The course is open already: {address}/lab?token={token}\n"
            kernel = json.loads(fetch(f"{address}/api/kernels?token={token}", b"{}").body)
            connection = json.loads((tmp_path / f"run/kernel-{kernel['id']}.json").read_text(encoding="utf-8"))
            encrypted = "supported_encryption" in get_kernel_dict()["metadata"]
            assert ("curve_publickey" in connection) == (encrypted and hasattr(KernelManager, "transport_encryption"))
            server.send_signal(signal.CTRL_BREAK_EVENT if os.name == "nt" else signal.SIGINT)
            assert "Traceback" not in server.communicate(timeout=300)[1]
            assert os.name == "nt" or server.returncode == 0
        finally:
            server.kill()


# The tests' command


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """The pytest runs that `python -m course test` would start; their exit code is the test's to choose."""
    done, code = [], {}
    monkeypatch.setattr(testing, "ensure", lambda lock, argv: done.append(lock))
    monkeypatch.setattr(testing, "validate_command", lambda root, brief: ["--brief"] * brief + ["notebooks"])
    monkeypatch.setattr(testing, "CACHE", tmp_path)
    monkeypatch.setattr(testing, "workers", lambda: 2)

    def pytest(*arguments, alone=False):
        done.append((*arguments, *["without PyTorch"] * alone))
        for what, kept in code.get("kept", {}).items():
            file = testing.remembered(what, alone)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(kept), encoding="utf-8")
        return code.get("code", 0)

    monkeypatch.setattr(testing, "pytest", pytest)
    return done, code


SPREAD = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "1")


def test_test_runs_the_tests_and_every_notebook_in_one_run(runs, capsys):
    assert testing.main([]) == 0
    assert runs[0] == ["test", ("tests", "--brief", "notebooks", *SPREAD)]
    assert capsys.readouterr().err == "All passed.\n"


@pytest.mark.parametrize("torch", [None, "installed"])
def test_deep_runs_what_is_left_out_otherwise_and_all_without_pytorch(runs, monkeypatch, torch):
    monkeypatch.setattr(testing.importlib.util, "find_spec", lambda name: torch)
    assert testing.main(["--deep"]) == 0
    assert runs[0][1] == ("tests", "-m", "slow or browser", *SPREAD)
    assert runs[0][2:] == [("tests", "notebooks", *SPREAD, "without PyTorch")] * bool(torch)


def test_the_last_line_of_a_deep_run_is_no_praise_where_its_first_part_failed(runs, monkeypatch, capsys):
    monkeypatch.setattr(testing.importlib.util, "find_spec", lambda name: "installed")
    monkeypatch.setattr(testing, "run", lambda chosen, alone: 0 if alone else 1)
    assert testing.main(["--deep"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "FAILED: pytest ended with exit code 1."


@over("folder", [False, True])
def test_without_pytorch_no_python_finds_it(tmp_path, folder):
    (tmp_path / "torch.py").write_text("", encoding="utf-8")
    (tmp_path / "torch-2.0.dist-info").mkdir()
    (tmp_path / "torch-2.0.dist-info/METADATA").write_text("Name: torch\nVersion: 2.0\n", encoding="utf-8")
    asked = (
        "import importlib.metadata, importlib.util, numpy\nprint(importlib.util.find_spec('torch') is None)\n"
        "print(importlib.metadata.version('numpy') == numpy.__version__)\n"
        "try: importlib.metadata.version('torch')\nexcept ImportError: print('none')\nimport torch"
    )
    path = os.pathsep.join([*([str(testing.HIDES_PYTORCH)] * folder), str(tmp_path)])
    answer = run(sys.executable, "-c", asked, PYTHONPATH=path)
    assert answer.stdout.split() == (["True", "True", "none"] if folder else ["False", "True"])
    error = "ModuleNotFoundError: No module named 'torch'\n" if folder else ""
    assert (answer.returncode, answer.stderr[-len(error) :] if error else answer.stderr) == (int(folder), error)


def test_no_notebook_at_all_is_a_failure(runs, monkeypatch):
    monkeypatch.setattr(testing, "validate_command", lambda root, brief: ["--undertorch"])
    with pytest.raises(Problem, match="There is no notebook to run"):
        testing.main([])


def test_one_core_runs_without_workers(runs, monkeypatch):
    monkeypatch.setattr(testing, "workers", lambda: 1)
    testing.main([])
    assert runs[0][1] == ("tests", "--brief", "notebooks")


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (
            ["tests/a.py::b", "tests/a.py::c", "notebooks/d.ipynb::Cell 1", "notebooks/d.ipynb::Cell 2"],
            "2 tests, 1 notebook",
        ),
        (["tests/a.py"], "1 test"),
        (["notebooks/d.ipynb::Cell 1", "solutions/d.ipynb::Cell 1"], "2 notebooks"),
    ],
)
def test_the_last_line_is_a_verdict(runs, monkeypatch, capsys, failed, words):
    monkeypatch.setattr(testing, "COMMAND", "python -m course")
    runs[1].update(code=1, kept={"cache/lastfailed": dict.fromkeys(failed, True)})
    for option in ([], ["--without-pytorch"]):
        assert testing.main(option) == 1
        again = " ".join(["python -m course test", *option, "--failed"])
        assert capsys.readouterr().err == f"FAILED: {words}. Run just those again: {again}\n"


def test_what_passed_at_the_second_try_is_named(runs, capsys):
    runs[1]["kept"] = {"undertorch/flaky": ["tests/browser/test_a.py::test_b"]}
    assert testing.main([]) == 0
    first, last = capsys.readouterr().err.splitlines()
    assert (first.startswith("flaky: "), first.endswith(" tests/browser/test_a.py::test_b")) == (True, True)
    assert last == "All passed."


@pytest.fixture
def hooks(request):
    """tests/conftest.py"""
    return next(found for found in request.config.pluginmanager.get_plugins() if hasattr(found, "longest_first"))


TABLES = """\
import pytest

@pytest.fixture
def torch():
    return pytest.importorskip("torch")

@pytest.mark.parametrize("row", range(4))
def test_beside(row):
    "It is PyTorch's."
    pytest.importorskip("torch")

@pytest.mark.parametrize("row", range(4))
def test_fixture(torch, row):
    pass

@pytest.mark.parametrize("row", range(4))
def test_more(row):
    assert row < 4
    pytest.importorskip("torch")
"""


@pytest.mark.slow
def test_without_pytorch_a_table_is_one_item_that_stands_for_all(hooks, tmp_path):
    (tmp_path / "test_a.py").write_text(TABLES, encoding="utf-8")
    shutil.copy(hooks.__file__, tmp_path)
    (tmp_path / "loops_in_python.py").touch()
    (tmp_path / "warm_kernels.py").write_text("def install(): pass", encoding="utf-8")
    path = os.pathsep.join(map(str, (testing.HIDES_PYTORCH, ROOT)))
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir=.", "-p", "no:cacheprovider", "test_a.py"]
    told = run(*command, cwd=tmp_path, PYTHONPATH=path).stdout
    assert "12 left out: beside PyTorch, which is not installed\n" in told
    assert "6 skipped, 6 deselected" in told


class Item(NamedTuple):
    nodeid: str


class Kept(dict):
    """pytest's cache."""

    set = dict.__setitem__


def report(nodeid, duration, outcome="passed"):
    return SimpleNamespace(nodeid=nodeid, duration=duration, outcome=outcome)


def test_the_longest_files_of_the_last_run_begin(hooks):
    names = ["tests/a.py::1", "tests/a.py::2", "tests/browser/b.py::1", "tests/c.py::1", "tests/new.py::1"]
    items = [Item(name) for name in names]
    hooks.longest_first(items, {"tests/a.py": 1, "tests/browser/b.py": 2, "tests/c.py": 9})
    assert [item.nodeid for item in items] == [names[2], names[3], names[4], names[0], names[1]]
    items = [Item(name) for name in names]
    hooks.longest_first(items, {})
    assert [item.nodeid for item in items] == [names[2], names[0], names[1], names[3], names[4]]


def test_a_run_keeps_what_each_file_took_and_what_passed_at_the_second_try(hooks):
    option = SimpleNamespace(keyword="", lf=False, markexpr="slow")
    config = SimpleNamespace(option=option, args=["tests"], cache=Kept())
    stats = {
        "": [report("a.py::1", 1.0), report("b.py::1", 1.0)],
        "passed": [report("a.py::1", 2.04), report("b.py::1", 4.0)],
        "rerun": [report("a.py::1", 1.0, "rerun"), report("b.py::2", 1.0, "rerun")],
        "failed": [report("b.py::2", 1.0, "failed")],
        "deselected": [SimpleNamespace(nodeid="c.py::1")],
    }
    hooks.remember(config, stats)
    assert config.cache == {hooks.FLAKY: ["a.py::1"], hooks.DURATIONS: {"slow": {"a.py": 4.0, "b.py": 7.0}}}
    option.keyword = "one"
    hooks.remember(config, {"passed": [report("a.py::1", 9.0)]})  # a part of a file
    assert config.cache == {hooks.FLAKY: [], hooks.DURATIONS: {"slow": {"a.py": 4.0, "b.py": 7.0}}}
    option.keyword, option.markexpr = "", "not slow"
    hooks.remember(config, {"passed": [report("a.py::1", 9.0)]})
    assert config.cache[hooks.DURATIONS] == {"slow": {"a.py": 4.0, "b.py": 7.0}, "not slow": {"a.py": 9.0}}


def test_what_failed_long_ago_is_not_in_the_verdict(runs, capsys):
    runs[1].update(code=1, kept={"cache/lastfailed": {"tests/a.py::b": True}, "undertorch/flaky": ["c"]})
    testing.main([])
    capsys.readouterr()
    runs[1].update(code=3, kept={})
    assert testing.main([]) == 3
    assert capsys.readouterr().err == "FAILED: pytest ended with exit code 3.\n"


def test_where_nothing_failed_there_is_nothing_to_run_again(runs, capsys):
    runs[1]["code"] = testing.NOTHING_TO_RUN
    assert testing.main(["--failed"]) == 0
    assert "--last-failed" in runs[0][1]
    assert capsys.readouterr().err == "Nothing failed the last time.\n"


def test_arguments_go_to_pytest_and_nothing_else_is_run(runs):
    testing.main(["-k", "broadcast", "-x"])
    assert runs[0] == ["test", ("-k", "broadcast", "-x")]


# The doctor


BARE_DOCTOR = """
import sys
sys.path.insert(0, sys.argv[1])
from course.commands.cli import main
sys.exit(main(["doctor", "--json"]))
"""


def test_the_doctor_works_before_any_environment_exists(made, tmp_path):
    root = tmp_path / "clone"
    shutil.copytree(made[0].root, root, ignore=shutil.ignore_patterns(".venv"))
    done = run(*BARE, "-c", BARE_DOCTOR, root, cwd=root)
    told = json.loads(done.stdout)
    states = {finding["what"]: finding["state"] for finding in told["findings"]}
    assert (done.returncode, told["lab_can_start"]) == (0, True)
    assert states["Environment"] == doctor.NOTE
    assert {"Python", "System", "Disk", "Writing", "Graphviz", "GPU", "Port"} <= states.keys()
    assert not (root / ".venv").exists()


def test_the_doctor_goes_on_in_the_courses_environment(clone):
    done = run(*BARE, "-c", BARE_DOCTOR, clone.root, cwd=clone.root)
    found = {finding["what"]: finding["found"] for finding in json.loads(done.stdout)["findings"]}
    assert found["Environment"] == f"the course's own, {clone.venv}, as locked"


def test_what_stops_the_lab_is_a_problem_with_advice_and_exit_code_1(tmp_path, monkeypatch, capsys):
    (tmp_path / "thesis.txt").touch()
    monkeypatch.setenv(environment.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(locks, "missing", lambda lock: ["jupyterlab"])
    assert doctor.main([]) == 1
    told = capsys.readouterr().out
    assert f"problem Environment {tmp_path} is not empty" in " ".join(told.split())  # lines are wrapped
    assert "-> Set UNDERTORCH_VENV to a new folder." in told
    assert "The lab cannot start yet." in told


def test_each_thing_that_is_not_well_comes_with_advice(tmp_path, monkeypatch, busy_port):
    monkeypatch.setattr(doctor, "FIRST_PORT", busy_port)
    monkeypatch.setattr(doctor, "FIRST_LESSON", "notebooks/99_nowhere.ipynb")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    findings = list(doctor.examine(tmp_path / ".venv"))
    assert {finding.what for finding in findings if finding.state != doctor.OK} >= {"Lessons", "Port"}
    assert all(finding.advice for finding in findings if finding.state != doctor.OK)


def test_a_driver_without_cupy_is_told_the_command_that_adds_it(monkeypatch):
    monkeypatch.setattr(doctor, "_cuda_of_driver", lambda: 13)
    monkeypatch.setattr(locks, "missing", lambda lock: [])
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    finding = doctor.gpu()
    assert finding.state == doctor.NOTE
    assert finding.advice == f'"{sys.executable}" -m pip install --require-hashes -r requirements/cuda13.txt'


@over("says, generations, cuda", [
    ("CUDA Version: 13.0", "8.9", 13), ("CUDA Version: 12.8", "9.0", 12), ("CUDA Version: 11.4", "7.0", 11),
    ("CUDA Version: 13.0", "8.9\n6.1", 12), ("CUDA Version: 13.0", "10.0\n12.0", 13), (None, None, None),
])  # fmt: skip
def test_the_cuda_to_install_is_one_that_driver_and_gpus_support(says, generations, cuda, monkeypatch):
    answers = {1: says, 3: generations and f"compute_cap\n{generations}\n"}
    monkeypatch.setattr(doctor.shutil, "which", lambda name: name)
    monkeypatch.setattr(doctor, "_output", lambda *command: answers[len(command)])
    assert doctor._cuda_of_driver() == cuda


def test_a_driver_that_is_too_old_is_to_be_updated(monkeypatch):
    monkeypatch.setattr(doctor, "_cuda_of_driver", lambda: 11)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert doctor.gpu().advice == "Update the NVIDIA driver: CuPy needs one that supports CUDA 12."


class CuPyWithoutDriver(SimpleNamespace):
    """CuPy as it is where no driver answers: every question but one raises."""

    __version__ = "14.2.0"

    class cuda:
        @staticmethod
        def is_available():
            return False

        def __getattr__(self, name):
            raise RuntimeError("cudaErrorInsufficientDriver")


def test_cupy_without_a_driver_is_no_problem(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", CuPyWithoutDriver())
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: object())
    finding = doctor.gpu()
    assert finding.state == doctor.OK
    assert "CuPy 14.2.0, but no NVIDIA driver or GPU answers" in finding.found
