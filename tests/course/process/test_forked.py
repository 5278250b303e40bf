"""Processes that are forked for answers: each as fresh as if Python had just started it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from course.process import forked, judged, sandbox, worker

pytestmark = pytest.mark.skipif(not forked.FORKS, reason="only Linux forks")


def say(value):
    reply = os.fdopen(os.dup(1), "wb")
    worker.send(reply, json.dumps(value).encode())


def by_program():
    """What a forked process runs here: the program that it is sent, with `say` for its answer."""
    with os.fdopen(0, "rb", closefd=False) as pipe:  # pytest has another sys.stdin
        program = worker.received(pipe)
    exec(program, {"say": say, "os": os, "sys": sys})
    os._exit(0)


@pytest.fixture
def ask():
    """The function that has a program run in a forked process, and gives its answer and how it ended."""
    nursery = forked.Nursery.here(by_program)

    def answer(program):
        process = nursery.start()
        worker.send(process.stdin, textwrap.dedent(program).encode())
        said = worker.received(process.stdout)
        process.stdin.close(), process.stdout.close()
        return (json.loads(said) if said else None), process.wait()

    yield answer
    nursery._line.close()


def test_an_answer_and_an_end_come_back(ask):
    assert ask("say([1, 2])") == ([1, 2], 0)
    assert ask("os._exit(7)") == (None, 7)
    assert ask("raise SystemExit(3)")[0] is None
    assert ask("os.kill(os.getpid(), 9)") == (None, -signal.SIGKILL)
    assert ask("say('the next one')") == ("the next one", 0)


def test_it_has_three_files_and_a_session_of_its_own(ask):
    with tempfile.TemporaryFile() as inherited:
        os.set_inheritable(inherited.fileno(), True)
        looks = "files = os.listdir('/proc/self/fd')\nsay([sorted(map(int, files)), os.getsid(0) == os.getpid()])"
        (files, alone), _ = ask(looks)
    assert files == [0, 1, 2, 3] and alone  # 3 is that of the list itself


CHANGES = """
import atexit, builtins, gc, json, random, subprocess, tempfile, threading, time
import numpy as np
import numpy.random
import engine
builtins.len = lambda value: 77
builtins.check = print
json.dumps = json.loads
sys.modules["math"] = None
sys.path.insert(0, "/nowhere")
sys.setrecursionlimit(9000)
sys.settrace(lambda *_: None)
engine.tensor = None
engine.set_default_dtype(engine.float64)
engine.Tensor.__add__ = engine.Tensor.__sub__
np.add, np.ndarray = np.subtract, list
np.seterr(all="ignore")
random.seed(1), np.random.seed(1)
os.environ["LEFT"] = "behind"
os.umask(0o777)
os.chdir("/")
os.nice(5)
threading.Thread(target=time.sleep, args=(60,)).start()
atexit.register(time.sleep, 60)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "of FOLDER"], start_new_session=True)
open("FOLDER/left", "w").close()
sys.meta_path.clear()
os.write(1, (6).to_bytes(8, "big") + b'"done"')
"""
LOOKS = """
import builtins, json, math, random, threading
import numpy as np
import engine
say([len([1]), hasattr(builtins, "check"), sys.path[:1], len(sys.meta_path) > 0, sys.getrecursionlimit(),
     sys.gettrace() is None, str(engine.get_default_dtype()), (engine.tensor(1.0) + 1).item(), int(np.add(1, 1)),
     np.geterr(), os.environ.get("LEFT"), os.umask(0o22), os.getcwd(), os.nice(0),
     [thread.name for thread in threading.enumerate()], len(os.listdir("/proc/self/task"))])
"""


def test_what_one_changes_the_next_one_does_not_see(ask, tmp_path):
    import psutil

    before = ask(LOOKS)
    sign = f"of {tmp_path}"
    said, ended = ask(CHANGES.replace("FOLDER", str(tmp_path)))
    assert (said, ended) == ("done", 0) and (tmp_path / "left").exists()  # it came to its end
    assert ask(LOOKS) == before and before[0][0] == 1 and before[0][-1] == 1
    assert not [process for process in psutil.process_iter(["cmdline"]) if sign in (process.info["cmdline"] or [])]


def test_what_it_leaves_behind_ends_with_it_even_where_it_is_stopped(ask, tmp_path):
    import psutil

    sign = f"left {tmp_path}"
    program = f"""
    import subprocess
    if os.fork() == 0:
        os.setsid()
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", {sign!r}], stdout=subprocess.DEVNULL)
        os._exit(0)
    os.wait()
    os.kill(os.getpid(), 9)
    """
    assert ask(program) == (None, -signal.SIGKILL)
    assert not [process for process in psutil.process_iter(["cmdline"]) if sign in (process.info["cmdline"] or [])]


def test_one_that_goes_on_past_its_program_is_not_the_one_that_forks(ask):
    assert ask("import threading; sys.exit(0)")[0] is None
    assert ask("def f(): raise KeyboardInterrupt\nf()")[0] is None
    assert ask("if os.fork(): os.wait()")[1] == 0
    assert ask("say(1)") == (1, 0)


def test_the_one_that_forks_ends_with_who_asks(tmp_path):
    nursery = forked.Nursery.here(by_program)
    process = nursery.start()
    worker.send(process.stdin, b"say(os.getppid())")
    parent = json.loads(worker.received(process.stdout))
    process.stdin.close(), process.stdout.close()
    process.wait()
    nursery._line.close()
    assert os.waitpid(parent, 0) == (parent, 0)


def test_without_the_one_that_forks_it_is_said(ask):
    parent, _ = ask("say(os.getppid())")
    os.kill(parent, signal.SIGKILL)
    with pytest.raises(EOFError, match="has gone"):
        ask("say(1)")


@pytest.mark.parametrize("asked", ["start", "wait"])
def test_an_answer_that_nobody_heard_is_not_taken_for_the_next(asked, monkeypatch):
    class Interrupted:
        def __init__(self, line):
            self.line = line

        def __getattr__(self, name):
            return getattr(self.line, name)

        def recv(self, _):
            raise KeyboardInterrupt

    nursery = forked.Nursery.here(by_program)
    process = nursery.start() if asked == "wait" else None
    with monkeypatch.context() as patch:
        patch.setattr(nursery, "_line", Interrupted(nursery._line))
        with pytest.raises(KeyboardInterrupt):
            if process:
                process.kill()
                process.wait()
            nursery.start()
    with pytest.raises(EOFError, match="not heard"):
        nursery.start()
    if process:
        process.stdin.close(), process.stdout.close()
    nursery.stop()


# The processes of a whole check


@pytest.fixture(scope="module")
def decide():
    """Verdicts by one and the same process that forks."""
    deciding = pytest.importorskip("course.classroom.deciding")
    deciders = deciding._Deciders()

    def verdict(*cells, key="05.3", name="division_backward"):
        check = deciding.Check(key, name, False, [cells[-1]], list(cells))
        return json.loads(deciders.ask(json.dumps(check).encode(), 60))

    verdict.process = lambda: deciders._idle[0][0]
    yield verdict
    deciders.stop()


RIGHT = "def division_backward(g, x, y):\n    return g / y, -g * x / y**2"


def shown(verdict):
    return dict(verdict["rows"])["Printed"].splitlines()


def telling(*lines):
    """An answer that is wrong, and tells."""
    return "\n".join(["def division_backward(g, x, y):", *(f"    {line}" for line in lines), "    return 1.0, 1.0"])


@pytest.mark.slow
def test_one_submission_finds_nothing_of_another_nor_the_oracle_in_its_memory(decide):
    assert decide(f"{RIGHT}\n# of a {'-'.join(['neighbour', 'alone'])}")["state"] == "correct"
    process = decide.process()
    looks = telling(
        "import ctypes, gc, re",
        "names = [getattr(o, '__name__', '') for o in gc.get_objects()]",
        "print('oracle', [name for name in names if isinstance(name, str) and name.endswith('.checks')])",
        "kept = '-'.join(['neighbours', 'own'])",
        # Patterns, and no words: what looks for them is not to be found itself.
        "looked_for = [re.compile('[-]'.join(p).encode()) for p in (('neighbour', 'alone'), ('neighbours', 'own'))]",
        "found = [False, False]",
        "for line in open('/proc/self/maps'):",
        "    if ' rw-p ' in line:",
        "        first, last = (int(part, 16) for part in line.split()[0].split('-'))",
        "        memory = ctypes.string_at(first, last - first)",
        "        found = [known or bool(one.search(memory)) for known, one in zip(found, looked_for)]",
        "print('words', found)",
    )
    assert shown(decide(looks))[:2] == ["oracle []", "words [False, True]"]
    assert decide.process() is process


@pytest.mark.slow
@pytest.mark.skipif(not sandbox.locks_files(), reason="needs Linux with Landlock")
def test_a_submission_reaches_none_of_the_processes_that_judge_it(decide):
    looks = telling(
        "import os, signal",
        "def tries(what):",
        "    try: what(); return 'reached'",
        "    except OSError: return 'no'",
        "above, pid = [], os.getppid()",
        "while pid > 1 and len(above) < 3:",
        "    above.append(pid)",
        "    pid = int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])",
        "print(len(above) > 1, {tries(lambda: os.kill(p, signal.SIGKILL)) for p in above})",
        "print({tries(lambda: open(f'/proc/{p}/{name}', 'rb').read(1)) for p in above"
        " for name in ('mem', 'environ', 'maps')})",
        "print({tries(lambda: os.readlink(f'/proc/{p}/fd/0')) for p in above})",
        "print(sorted(os.listdir('/proc/self/fd'), key=int)[:4], sorted(n for n in os.environ if 'SECRET' in n))",
    )
    said = shown(decide(looks))
    assert said[:3] == ["True {'no'}", "{'no'}", "{'no'}"], said
    assert decide(RIGHT)["state"] == "correct"


@pytest.mark.slow
def test_a_process_that_decides_has_one_thread_when_it_forks_and_waits_a_while(decide):
    assert decide(RIGHT)["state"] == "correct"
    assert len(list(Path("/proc", str(decide.process().pid), "task").iterdir())) == 1


@pytest.mark.slow
def test_a_process_that_decides_is_started_anew_where_it_has_ended(decide):
    assert decide(RIGHT)["state"] == "correct"
    process = decide.process()
    process.kill()
    process.wait()
    assert decide(RIGHT)["state"] == "correct" and decide.process() is not process


def test_a_submissions_places_are_its_folders():
    assert set(judged.own("/x").values()) == {"/x", "0"}


def test_a_check_finds_its_imports_done_but_for_those_of_its_lesson():
    program = """
        import sys
        from course.judging import exercises, judge
        from course.process import forked
        forked.imported()
        before = set(sys.modules)
        exercise = exercises.find("10.2")
        judge.judge(exercise, exercise.answer)
        print(*{name for name in set(sys.modules) - before if name.startswith(("course.", "engine.nn"))})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if not name.startswith("course.lessons")] == []
