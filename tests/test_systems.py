"""What differs between systems, pretended on any of them: Windows without POSIX, macOS without Linux, code pages."""

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import PureWindowsPath

import pytest
from over_tables import over
from test_installing import PACKED, WHEEL, in_git

from course.authoring import slips
from course.base.notebooks import ROOT
from course.process import forked, sandbox, worker
from engine.distributed import rank, run

# ---- names of files

# Where pip installs for one user: the longest of the usual places.
PACKAGES = PureWindowsPath("C:/Users/a-rather-long-name/AppData/Local/Programs/Python/Python314/Lib/site-packages")
OF_WINDOWS = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def test_every_file_can_be_stored_by_windows_and_macos():
    names = in_git()
    for name in names:
        assert not re.search(r'[<>:"\\|?*\x00-\x1f]', name), name
        for part in name.split("/"):
            assert not OF_WINDOWS.fullmatch(part) and part == part.rstrip(" ."), name
        assert name.isascii(), f"{name}: macOS stores letters with accents in another form"
    assert len({name.casefold() for name in names}) == len(names)


def test_no_path_of_the_installed_course_is_longer_than_windows_takes():
    for name in in_git():
        first = name.partition("/")[0]
        if first in WHEEL["packages"] or first in PACKED:
            place = PACKAGES / ("" if first in WHEEL["packages"] else "undertorch/files") / name
            assert len(str(place)) < 260 - len(".ipynb.12345"), place  # with what a file is called while it is written


# ---- Windows: no fork, no signals, no limits


# What Windows lacks, or understands in another way. (mypy --platform win32 looks at the course's typed functions.)
LACKS = {
    "os": "fork forkpty kill killpg setsid getuid geteuid setuid getpgid sched_getaffinity uname nice posix_fallocate",
    "signal": "SIGALRM SIGHUP SIGKILL SIGPROF SIGXCPU SIGCHLD setitimer ITIMER_REAL ITIMER_PROF pthread_sigmask",
}
MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}
ANY = re.compile(rf"\b({'|'.join([*' '.join(LACKS.values()).split(), *sorted(MODULES)])})\b")
ASKS = re.compile(r"sys\.platform|os\.name|hasattr\(|WINDOWS")


def of_posix(tree):
    """The outermost functions, or statements, of a module that name something that Windows lacks."""
    for outer in tree.body:
        for node in ast.walk(outer):
            match node:
                case ast.Attribute(value=ast.Name(id=module), attr=name) if name in LACKS.get(module, "").split():
                    yield outer, f"{module}.{name}"
                case ast.Import(names=[ast.alias(name=name)]) if name in MODULES:
                    yield outer, name
                case ast.ImportFrom(module=name) if name in MODULES:
                    yield outer, name


def test_the_engine_asks_for_the_system_before_it_uses_what_windows_lacks():
    found = set()
    for path in sorted((ROOT / "engine").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not ANY.search(text):
            continue  # reading all of the engine takes a second
        for outer, name in of_posix(ast.parse(text)):
            found.add(name)
            assert ASKS.search(ast.get_source_segment(text, outer)), f"{path.name}:{outer.lineno}: {name}"
    assert {"os.kill", "os.killpg", "signal.pthread_sigmask", "os.sched_getaffinity"} <= found


class Kernel32:
    """Of Windows: the processes that there are, and whether each goes on."""

    def __init__(self, **running):
        self.running, self.open = running, 0

    def OpenProcess(self, rights, inherited, number):
        assert (rights, inherited) == (0x00100000, False)
        self.open += f"p{number}" in self.running
        return number if f"p{number}" in self.running else 0

    def WaitForSingleObject(self, handle, milliseconds):
        assert milliseconds == 0
        return 0x102 if self.running[f"p{handle}"] else 0

    def CloseHandle(self, handle):
        self.open -= 1


@over("number, alive", [(4, True), (5, False), (6, False)])
def test_windows_is_asked_for_a_process_and_sends_it_nothing(number, alive):
    windows = Kernel32(p4=True, p5=False)
    assert run.is_waited_for(windows, number) == alive
    assert windows.open == 0


class Process:
    """A command, on Windows: only to be ended."""

    def __init__(self, code=None):
        self.code, self.got = code, []

    def poll(self):
        return self.code

    def send_signal(self, number):
        if run.WINDOWS and number != signal.SIGTERM:
            raise ValueError(f"Unsupported signal: {number}")
        self.got.append(number)


@over("windows, number, gets", [
    (True, signal.SIGINT, []), (True, signal.SIGTERM, [signal.SIGTERM]),
    (False, signal.SIGINT, [signal.SIGINT]), (False, signal.SIGTERM, [signal.SIGTERM]),
])  # fmt: skip
def test_what_stops_a_command_reaches_mpi_once(monkeypatch, windows, number, gets):
    monkeypatch.setattr(run, "WINDOWS", windows)
    process = Process()
    run.pass_on(process, number)
    assert process.got == gets
    ended = Process(code=0)
    run.pass_on(ended, number)
    assert ended.got == []


def test_without_timers_slips_are_made_all_the_same(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    for name in ("SIGALRM", "SIGPROF", "setitimer", "ITIMER_REAL", "ITIMER_PROF"):
        monkeypatch.delattr(signal, name, raising=False)
    with slips._at_most(1.0):
        pass


# ---- macOS and Windows: no prctl, no Landlock


@over("system", ["darwin", "win32"])
def test_what_linux_alone_can_do_is_asked_of_no_other(monkeypatch, system):
    import ctypes

    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: pytest.fail("it calls the C library"))
    rank.die_with_parent()
    forked.adopt()
    sandbox.unseen()
    assert not sandbox.locks_files()


def test_on_windows_an_attempt_is_only_timed(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)
    started = []
    monkeypatch.setattr(worker.threading.Timer, "start", lambda timer: started.append(timer))
    worker.limit(5.0)
    assert [timer.interval for timer in started] == [worker.ALONE * 5.0]


# ---- code pages


@over("encoding, words", [
    ("ascii", ["undertorch", "update"]), ("cp932", ["undertorch", "nothing"]), ("cp437", ["course", "lab", "-h"]),
])  # fmt: skip
def test_a_folder_whose_letters_the_code_page_lacks_is_told_all_the_same(tmp_path, encoding, words):
    folder = tmp_path / "Łódź 数学"
    folder.mkdir()
    own = {"PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "0", "UNDERTORCH_COMMAND": "undertorch"}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder, env=os.environ | own, capture_output=True, encoding=encoding,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == {"nothing": 2}.get(words[-1], 0), done.stderr
    if words[-1] == "validate":
        assert "There is no notebook in" in done.stdout and "\\u0141" in done.stdout
