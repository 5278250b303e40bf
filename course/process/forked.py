"""Processes for answers, forked from one in which all imports are done: as fresh as one that Python starts, and sooner.

What is forked has the first one's memory and nothing else: none of its files and pipes, and a session of its own. The
first one has seen no submission and no oracle, runs none, and listens to a socket that has no name: nobody else can
open it, as they could that of `multiprocessing`'s server. On Linux alone; elsewhere Python starts each.

The first one is forked itself (`Nursery.here`), or started where the process that asks has threads and a notebook's
values (`Nursery.started`).
"""
# mypy: disable-error-code="attr-defined"
# Read as for Windows, where nothing here is called, `os.fork` and its like are not there.

import contextlib
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import IO, Any, Self

# What most answers or their checks would import anyway.
AHEAD = ("engine.nn", "engine.optim", "engine.compiler", "engine.func", "engine.utils.data", "engine.viz", "psutil",
         "course.judging.judge", "course.judging.words")  # fmt: skip
FORKS = sys.platform == "linux"
_FORK, _WAIT, _NUMBER = b"fork", b"wait", 8  # what is asked for, and the bytes of an answer


class Forked:
    """One that has been forked, with as much of `subprocess.Popen` as `worker` uses."""

    returncode: int | None = None

    def __init__(self, pid: int, stdin: IO[bytes] | None, stdout: IO[bytes] | None, waits: Callable[[], int]) -> None:
        self.pid, self.stdin, self.stdout, self._waits = pid, stdin, stdout, waits

    def kill(self) -> None:
        if self.returncode is None:  # afterwards, its number may be somebody else's
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Until it has ended, and all that it has left behind; how it ended, as `Popen.returncode` says it."""
        if self.returncode is None:
            self.returncode = self._waits()
        return self.returncode


class Nursery:
    """The process that forks others, one at a time."""

    def __init__(self, line: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self._line, self._process = line, process
        self._heard = True  # else an answer is under way, which is not that of the next question

    @classmethod
    def here(cls, serve: Callable[[], None]) -> Self:
        """Fork this process into one that forks others, which run `serve`."""
        line, theirs = socket.socketpair()
        if os.fork() == 0:
            try:
                os.setsid()  # who interrupts or ends the group of those that ask does not mean this one
                line.close()
                answer(theirs, serve)
            finally:
                os._exit(0)
        theirs.close()
        return cls(line)

    @classmethod
    def started(cls, command: list[str], **options: Any) -> Self:
        """Start a program that calls `answer` with the socket whose number is its last argument."""
        line, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            return cls(line, subprocess.Popen([*command, str(number)], pass_fds=[number], **options))

    def stop(self) -> None:
        self._line.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def start(self) -> Forked:
        """Start a process with a pipe to it and one from it. Raises EOFError where the one that forks has gone.

        And where whoever asked before was interrupted before the answer came: it would be taken for this one.
        """
        if not self._heard:
            raise EOFError("the answer before was not heard")
        (read, stdin), (stdout, write) = os.pipe(), os.pipe()
        self._heard = False
        with contextlib.suppress(OSError):
            socket.send_fds(self._line, [_FORK], [read, write])
        os.close(read)
        os.close(write)
        try:
            pid = self._told()
        except BaseException:
            os.close(stdin)
            os.close(stdout)
            raise
        return Forked(pid, os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb"), self._wait)

    def _wait(self) -> int:
        self._heard = False
        with contextlib.suppress(OSError):
            self._line.sendall(_WAIT)
        return self._told()

    def _told(self) -> int:
        number = b""
        with contextlib.suppress(OSError):
            number = self._line.recv(_NUMBER)
        if len(number) < _NUMBER:
            raise EOFError("the process that forks others has gone")
        self._heard = True
        return int.from_bytes(number, "big", signed=True)


def adopt() -> None:
    """Linux: whoever is left behind by what this process starts becomes a child of it, to be found."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def kill_the_left_behind() -> None:
    """Kill what an answer started and left behind: on Linux, this process has inherited it."""
    with contextlib.suppress(ImportError):
        import psutil

        for _ in range(10):
            left = psutil.Process().children(recursive=True)
            for child in left:
                with contextlib.suppress(psutil.Error):
                    child.kill()
            psutil.wait_procs(left, timeout=1)
            if not left:
                return


# In the process that forks


def imported() -> None:
    """Import what judging an answer will need."""
    for name in AHEAD:
        with contextlib.suppress(ImportError):  # psutil, on a computer without it
            importlib.import_module(name)


def answer(line: socket.socket, serve: Callable[[], None]) -> None:
    """Fork a process that runs `serve` whenever one is asked for, until whoever asks has gone."""
    adopt()
    gc.collect()
    gc.freeze()  # these pages stay shared
    child = 0
    while True:
        asked, pipes, *_ = socket.recv_fds(line, len(_FORK), 2)
        if asked == _FORK:
            child = os.fork()
            if child == 0:
                _begin(line, pipes, serve)
            for pipe in pipes:
                os.close(pipe)
            told = child
        elif asked == _WAIT:
            told = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            kill_the_left_behind()
        else:  # whoever asked has gone
            return
        line.sendall(told.to_bytes(_NUMBER, "big", signed=True))


def _begin(line: socket.socket, pipes: list[int], serve: Callable[[], None]) -> None:
    """Be somebody else: with these pipes, and no other file. Does not come back."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number, place in enumerate((*pipes, null)):
            os.dup2(place, number)
        line.detach()  # else it would close, at its end, whatever has its number then
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        tempfile.tempdir = None  # what Python and NumPy do at their start
        if numbers := sys.modules.get("numpy.random"):
            numbers.seed()
        serve()
    finally:
        os._exit(1)
