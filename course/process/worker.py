"""The process in which an attempt is judged, and the way to it.

A process of its own can be stopped, whatever the attempt does (an endless loop, a crash), on every system; and nothing
that a notebook defined or changed is in it but what the attempt itself uses, which cloudpickle takes along.
"""

import atexit
import contextlib
import json
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, Protocol, cast

from course.base.notebooks import COMMAND, ROOT, kernel_environment
from course.judging.exercises import NOT_YET, Exercise
from course.process import attempts, forked, in_place
from course.process.attempts import Answer, NotChecked
from engine.arrays import threads

READY = b"ready"
# The most that an attempt may write, in bytes, so that the disk has room left.
MOST_IN_A_FILE = 2**28
# The limit is on computing time: beside other programs, a right answer takes much longer by the clock. One that waits
# computes nothing: it is stopped after so many times the limit, by the clock.
PATIENCE = 4
MOMENT = 1.0
WAITS = 0.03 * MOMENT  # what computes less than that in a moment waits: a loop around `time.sleep`, say
ALONE = 60 * PATIENCE  # times the seconds, for one whose notebook has gone
NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


class Running(Protocol):
    """A process, as `subprocess.Popen` has it, or `course.process.forked`."""

    @property
    def pid(self) -> int: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def returncode(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class _Ahead:
    """A process started ahead of time, so that the imports are done when it is needed: one, or one that forks."""

    def __init__(self) -> None:
        self.ready: subprocess.Popen[bytes] | forked.Nursery | None = None

    def take(self) -> Running:
        """Take a process that is ready. Raises NotChecked where none can be had."""
        for _ in range(2):  # what was in store may have been started while the course was being updated
            self.prepare()
            process: Running | None = None
            try:
                if isinstance(self.ready, forked.Nursery):
                    process = self.ready.start()
                else:
                    process, self.ready = self.ready, None
                if process and received(process.stdout) == READY:
                    return process
            except EOFError:
                pass
            except KeyboardInterrupt:  # the learner stops the check before it has begun
                if process:
                    _stop(process)
                self.drop()  # what it still had to say belongs to no other check
                raise
            if process:
                _stop(process)
            self.drop()
        raise NotChecked(f"The check could not be started: {COMMAND} doctor may tell why.")

    def prepare(self) -> None:
        if self.ready is None and not threads.IN_BROWSER:
            command = [sys.executable, "-m", "course.process.worker"]
            options: dict[str, Any] = {
                "cwd": ROOT,
                "env": kernel_environment() | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                "stderr": subprocess.DEVNULL,
                "start_new_session": True,  # the Stop button interrupts the kernel's processes: not this one
                "creationflags": NO_WINDOW,
            }
            if forked.FORKS:
                self.ready = forked.Nursery.started(command, **options)
            else:
                self.ready = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)

    def drop(self) -> None:
        if isinstance(self.ready, forked.Nursery):
            self.ready.stop()
        elif self.ready is not None:
            _stop(self.ready)
        self.ready = None


_ahead = _Ahead()
_one_at_a_time = threading.Lock()
atexit.register(_ahead.drop)


def prepare() -> None:
    """Start what the next attempt will need."""
    _ahead.prepare()


def ask(
    exercise: Exercise, attempt: Any, hidden: bool = False, seconds: float | None = None, source: str = ""
) -> Answer:
    """Have an attempt judged in a process of its own, which may compute for `seconds` (the exercise's, if not said).

    `source`: the cell that it comes from. Raises NotChecked where the check itself does not work.
    """
    seconds = exercise.seconds if seconds is None else seconds
    try:
        packed = attempts.packed(attempt)
    except Exception as error:
        return Answer(state=NOT_YET, message=attempts.not_packed(error))
    if threads.IN_BROWSER:
        return in_place.ask(exercise.key, hidden, source, packed, seconds)
    request = (exercise.key, hidden, seconds, [str(path) for path in sys.path], str(Path.cwd()), source, packed)
    with _one_at_a_time:
        process = _ahead.take()
        try:
            reply, ended = exchange(process, pickle.dumps(request), seconds)
        finally:
            prepare()
    if not reply:
        return Answer(state=NOT_YET, message=ended)
    return attempts.known(cast(Answer, json.loads(reply)))


def exchange(process: Running, question: bytes, seconds: float) -> tuple[bytes, str]:
    """Put a question to a process and return its answer, or what became of it. It is stopped in any case."""
    replies: list[bytes] = []
    # Not by `communicate`, which waits until nobody holds the pipes: what the notebook has started holds them too.
    talk = threading.Thread(target=converse, args=(process, question, replies), daemon=True)
    try:
        talk.start()
        spent = _watch(process.pid, talk, seconds)
    finally:
        _stop(process, talk)
    if any(replies):
        return replies[0], ""
    if process.returncode in _OUT_OF_TIME:
        spent = seconds
    if spent:
        return b"", attempts.too_long(spent)
    return b"", "It brought Python itself to a stop, by os._exit or by running out of memory."


def _watch(pid: int, talk: threading.Thread, seconds: float) -> float:
    """Until the talk ends, or the process has had its time: how many seconds that was, or 0.

    Moments in which it waits are counted, and not measured: how long they are by the clock is others' doing.
    """
    waited, (at_first, before) = 0.0, _computed(pid)
    while True:
        talk.join(MOMENT)
        if not talk.is_alive():
            return 0.0
        own, together = _computed(pid)
        if own - at_first > seconds:
            return seconds
        step, before = together - before, together
        waited += step if step > WAITS else MOMENT
        if waited > PATIENCE * seconds:
            return PATIENCE * seconds


def _computed(pid: int) -> tuple[float, float]:
    """Seconds that a process has computed, and that it has together with those that it has started."""
    found = []
    with contextlib.suppress(ImportError):
        import psutil

        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            for one in [process, *_children(psutil, pid)]:
                with contextlib.suppress(psutil.Error):
                    times = one.cpu_times()
                    found.append(times.user + times.system)
    return (found[0], sum(found)) if found else (0.0, 0.0)


def converse(process: Running, question: bytes, replies: list[bytes]) -> None:
    with contextlib.suppress(OSError):  # it died while it was being asked
        send(process.stdin, question)
        replies.append(received(process.stdout))


def send(pipe: IO[bytes] | None, message: bytes) -> None:
    assert pipe is not None
    pipe.write(len(message).to_bytes(8, "big") + message)
    pipe.flush()


def received(pipe: IO[bytes] | None) -> bytes:
    """Return the next message; b"" where the sender is gone, or announces one longer than any may be."""
    assert pipe is not None
    length = int.from_bytes(pipe.read(8), "big")
    return pipe.read(length) if length <= MOST_IN_A_FILE else b""


def _stop(process: Running, talk: threading.Thread | None = None) -> None:
    kill_all_of(process.pid)
    process.kill()
    process.wait()
    if talk is not None and talk.ident is not None:
        talk.join(1.0)  # it ends with the process, unless somebody who cannot be found holds the pipes: then they stay
        if talk.is_alive():
            return
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.close()


def _children(psutil: Any, pid: int) -> list[Any]:
    """Those who are left of what a process has started, whether they stayed in its group or not."""
    found = []
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                found += [child] if child.status() != psutil.STATUS_ZOMBIE else []
    return found


def stop_tree(process: subprocess.Popen[Any]) -> None:
    """Stop a process of the course's own, and those it has started: itself first, so that it starts no more."""
    with contextlib.suppress(ImportError):
        import psutil

        children = _children(psutil, process.pid)
        process.kill()
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()
    process.kill()
    process.wait()
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        with contextlib.suppress(OSError):  # what was still to be written has no reader
            pipe.close()


def kill_all_of(pid: int) -> None:
    """Kill what a process has started, and on POSIX itself."""
    with contextlib.suppress(ImportError):
        import psutil

        for _ in range(20):  # one that is just being started is found the next time
            alive = _children(psutil, pid)
            for child in alive:
                with contextlib.suppress(psutil.Error):
                    child.kill()
            if not alive:
                break
            time.sleep(0.01)
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


# In the process itself

_OUT_OF_TIME = list[int]()
if sys.platform != "win32":
    _OUT_OF_TIME += [-signal.SIGXCPU]


def limit(seconds: float) -> None:
    """Keep an attempt from computing for ever and from filling the memory or the disk, where the system can."""
    # The last guard where the notebook was killed meanwhile: nobody else would stop a loop, or what waits.
    guard = threading.Timer(ALONE * seconds, os._exit, [1])
    guard.daemon = True
    guard.start()
    if sys.platform != "win32":
        import resource

        for what, most in (
            (resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds)),
            (resource.RLIMIT_CORE, 0),  # the file that a process leaves which is stopped so
            (resource.RLIMIT_DATA, attempts.MOST_MEMORY),
            (resource.RLIMIT_FSIZE, MOST_IN_A_FILE),
        ):
            allowed = [limit for limit in resource.getrlimit(what) if limit != resource.RLIM_INFINITY]
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(what, (min([most, *allowed]), resource.getrlimit(what)[1]))


def _serve() -> None:
    reply, own = os.fdopen(os.dup(1), "wb"), os.getpid()
    os.dup2(2, 1)  # whatever is printed past Python's own sys.stdout is not a part of the answer
    forked.adopt()
    send(reply, READY)
    data = received(sys.stdin.buffer)
    if not data:  # the notebook has gone without a question
        return
    key, hidden, seconds, path, folder, source, packed = pickle.loads(data)
    limit(seconds)
    sys.path[:] = path
    with contextlib.suppress(OSError):
        os.chdir(folder)
    answer = attempts.judged(key, hidden, source, packed)
    if os.getpid() != own:  # the attempt forked, and both have come here
        os._exit(0)
    send(reply, json.dumps(answer).encode())
    # Threads and processes that the attempt left behind do not keep it.
    kill_all_of(own)
    os._exit(0)


if __name__ == "__main__":
    forked.imported()
    if len(sys.argv) > 1:
        forked.answer(socket.socket(fileno=int(sys.argv[1])), _serve)
    else:
        _serve()
