"""What an attempt may use of the computer, and that nothing of it stays behind."""

import sys
import time

import pytest

pytest.importorskip("cloudpickle")

from course.judging import exercises
from course.learner import calls as learner
from course.process import worker

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the other systems set a process no such limits")


def asked(body):
    """The answer to a function of exercise 05.3, defined in no module that could be imported, with this body."""
    names: dict = {"__name__": "__main__"}
    exec(compile(f"def division_backward(arriving, x, y):\n    {body}", "<cell>", "exec", dont_inherit=True), names)
    return worker.ask(exercises.find("05.3"), names["division_backward"], seconds=60)


@LINUX
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("kept = []\n    while True: kept.append(bytes(10**8))", "MemoryError"),
        ("import tempfile, pathlib\n    with tempfile.TemporaryFile() as f:\n"
         "        while True: f.write(bytes(10**7))", "OSError: [Errno 27] File too large"),
    ],
)  # fmt: skip
def test_an_attempt_can_fill_neither_the_memory_nor_the_disk(body, says):
    answer = asked(body)
    assert answer["state"] == learner.NOT_YET and says in dict(answer["rows"])["Got"]


@pytest.mark.slow
@LINUX
def test_memory_filled_by_small_things_is_said():
    small = "kept = None\n    while True: kept = [kept, bytes(2000)]"
    answer = asked(small)
    assert "MemoryError" in str(answer["rows"]) or answer["message"] == "It used more than 2 GB of memory."


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no groups there")
def test_a_process_that_an_attempt_left_behind_ends_with_the_check_and_does_not_delay_it(tmp_path):
    left = f"""import os, time, pathlib
    folder, child = pathlib.Path({str(tmp_path)!r}), os.fork()
    if child == 0:
        (folder / str(os.getpid())).touch()
        time.sleep(600)
    while not (folder / str(child)).exists(): time.sleep(0.01)
    return arriving / y, -arriving * x / y**2"""
    assert asked(left)["state"] == learner.CORRECT
    pids = [int(path.name) for path in tmp_path.iterdir()]
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and any(map(_lives, pids)):
        time.sleep(0.05)
    assert pids and not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    """Whether a process is there, and no zombie that nobody has asked for."""
    import psutil

    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
