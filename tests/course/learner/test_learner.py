"""What a learner sees: `check`, `hint`, `solution` and `progress` in a notebook and out of it, and what is recorded."""

import functools
import html
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from over_tables import over

pytest.importorskip("cloudpickle")
pytest.importorskip("filelock")

import engine
from course.base.notebooks import ROOT, kernel_environment
from course.judging import exercises, judge
from course.learner import calls as learner
from course.learner import copies, record
from course.process import attempts, forked, worker

ADD = exercises.Exercise(
    key="05.3",
    points=1,
    answer=lambda x, y: x + y,
    trial=lambda add: iter([("x = [1, 2], y = 3", add, engine.tensor([1.0, 2.0]), engine.tensor(3.0))]),
    wrong=((lambda x, y: x * y, "You multiply."), (lambda x, y: x, "You leave out y.")),
    hints=("first", "second", "third"),
)


# --- The words for a difference


def differently(attempt, exercise=ADD):
    verdict = judge.judge(exercise, attempt)
    assert verdict.state == judge.NOT_YET
    return verdict.message


def in_place(x, y):
    return x.add_(y)


def leaves_a_gradient(x, y):
    x.requires_grad_()
    (x * 2).sum().backward()
    return x.detach() + y


def takes_no_notes_any_more(x, y):
    engine.set_grad_enabled(False)
    return x + y


def becomes_a_result(x, y):
    x.mul_(engine.ones(2, requires_grad=True))
    return x + y


@over(
    "attempt, says",
    [
        (takes_no_notes_any_more, "The result is right. But it changes engine.is_grad_enabled(), which it should not."),
        (becomes_a_result, "The result is right. But it changes x.grad and x.requires_grad, which it should not."),
        (lambda x, y: None, "It gives None. Is a `return` missing?"),
        (lambda x, y: x.sum, "It gives a function, and not its result. Are the parentheses missing?"),
        (lambda x, y: 4.0, "It gives a plain number, where a tensor is asked for."),
        (lambda x, y: (x + y).numpy(), "It gives an array, where a tensor is asked for."),
        (lambda x, y: (x + y).tolist(), "It gives a list or tuple, where a tensor is asked for."),
        (lambda x, y: (x + y).reshape(2, 1), "The numbers are right, in the shape (2, 1) and not (2,)."),
        (lambda x, y: engine.ones(3), "The shape is (3,), and (2,) is asked for."),
        (lambda x, y: (x + y).to(engine.float64), "The values are right, but the dtype is float64, and float32"),
        (lambda x, y: (x + y).long(), "The values are right, but the dtype is int64, and float32"),
        (lambda x, y: -(x + y), "The sign is the wrong way round; the rest is right."),
        (lambda x, y: 2 * (x + y), "Each number is 2 times what it should be."),
        (lambda x, y: (x + y) / 3, "Each number is 0.3333 times what it should be."),
        (lambda x, y: x.nothing, "It stopped with an error."),
        (lambda x: x, "The check calls it with other arguments than it takes."),
        (in_place, "The result is right. But it changes x, which it should not."),
        (leaves_a_gradient, "The result is right. But it changes x.grad and x.requires_grad, which it should not."),
        (lambda x, y: x.requires_grad_().detach() + y, "The result is right. But it changes x.requires_grad, which"),
        (lambda x, y: x * y, "You multiply."),
        (lambda x, y: x, "You leave out y."),
        (17, "A function is asked for, and this is an int."),
    ],
)
def test_what_is_certain_about_a_difference_is_said(attempt, says):
    assert differently(attempt).startswith(says)


def subtracts_too_much(array):
    array -= 40
    return engine.from_numpy(array)


def test_an_argument_that_should_change_is_not_told_to_stay_as_it_was():
    message = differently(subtracts_too_much, exercises.find("01.6"))
    assert "should not" not in message


def test_a_missing_return_is_named_where_the_check_goes_on_with_the_result():
    assert differently(lambda x, y: None, exercises.find("03.5")) == "It gives None. Is a `return` missing?"


def test_what_the_wrong_answers_print_and_warn_of_is_not_shown(capsys, recwarn):
    def aloud(x, y):
        print("heard")
        warnings.warn("heard", stacklevel=1)
        return x

    noisy = ADD._replace(wrong=((aloud, "You leave out y."),))
    assert differently(lambda x, y: x, noisy) == "You leave out y."
    assert "heard" not in "".join([*capsys.readouterr(), *(str(one.message) for one in recwarn)])


def test_an_exercise_is_found_by_the_number_in_its_heading():
    assert exercises.find("5.1") is exercises.find("05.1")


def value(answer):
    return exercises.Exercise("05.1", 1, answer, ((None, ""),), ("", "", ""))


@over(
    "answer, attempt, says",
    [
        (3, 3.0, "It gives a float, where an integer is asked for."),
        (3, engine.tensor(3), "It gives a tensor, where a plain number is asked for: `.item()`"),
        ([1, 2, 3], [3, 2, 1], "The entries are right, in the opposite order."),
        ([1, 2.0], [1, -2.0], "Entry 2: the sign is the wrong way round"),
        ([1, 2, 3], [1, 2], "It has 2 entries, and 3 are asked for."),
        (2.0, -2.0, "The sign is the wrong way round; the rest is right."),
        (2.0, 6.0, ""),  # by "3 times what it should be" it could be worked out
        ((2.0, 5.0), (2, 15), "Entry 2 is not right."),
        (2.0, 10**400, ""),
        (2.0, None, "It is None. (`print` shows a value, and gives None.)"),
        ([1], [1, 2], "It has 2 entries, and 1 is asked for."),
        (3, engine.ones(2), "It gives a tensor of 2 numbers, where one plain number is asked for."),
        (engine.eye(2), engine.eye(2).double(), "The values are right, but the dtype is float64"),
        ("a", 1, "It gives an int, where text is asked for."),
        (engine.tensor([[1.0, 2.0]]), engine.tensor([[1.0], [2.0]]), "It is transposed"),
        (engine.tensor([[1.0, 2.0], [3.0, 4.0]]), engine.tensor([[1.0, 3.0], [2.0, 4.0]]), "It is transposed"),
        (True, 1, "It gives an int, where a bool is asked for."),
        (engine.float32, engine.float64, ""),
        ([1], (n for n in [1]), "It gives a generator, where a list or tuple is asked for."),
        (engine.zeros(1, device="sim"), engine.zeros(1), "It is on the device cpu, and should be on sim"),
        (
            {engine.tensor(1): 1, engine.tensor(2): 2},
            {engine.tensor(1): 1, engine.tensor(3): 2},
            "Entry tensor(2): it is missing.",
        ),
        (
            {engine.tensor(1): 1, engine.tensor(1): 2},
            {engine.tensor(1): 1, engine.tensor(1): 3},
            "Entry tensor(1) (2) is not right.",
        ),
        ({object: 1}, {object: 2}, "Entry <class 'object'> is not right."),
        ({1, 2}, {1, 3, 4}, "It has 2 too many, and 1 missing."),
        (engine.tensor([0.0, 1.0]), engine.tensor([0.0, float("nan")]), ""),
        (engine.tensor([True, False]), engine.tensor([True, True]), ""),
        (engine.tensor([True, False]), engine.tensor([False, True]), "True and False have changed places."),
    ],
)
def test_what_is_certain_about_a_wrong_value_is_said(answer, attempt, says):
    message = differently(attempt, value(answer))
    assert message.startswith(says) and bool(message) == bool(says)


@over(
    "answer, attempt",
    [
        (2.0, 2),
        (2.0, 2.00001),
        ((1, 2.5), [1, 2.5]),
        ({"a": 1}, {"a": 1}),
        (float("nan"), float("nan")),
        (engine.tensor([1, 2]), engine.tensor([1, 2], requires_grad=False)),
        (engine.tensor([1.0]), engine.tensor([1.0], requires_grad=True)),
        (engine.zeros(0, 3), engine.zeros(0, 3)),
        (engine.float32, engine.float32),
        (engine.Size([2]), (2,)),
        (engine.ones(2).bfloat16(), engine.ones(2).bfloat16()),
        (np.float32(2.5), 2.5),
        ({engine.tensor(1): 1}, {engine.tensor(1): 1}),
        ({1, 2}, {2, 1}),
        (object(), object()),
    ],
)
def test_what_counts_as_the_same(answer, attempt):
    assert judge.judge(value(answer), attempt).state == judge.CORRECT


def test_dots_that_are_given_back_count_as_not_attempted():
    assert judge.judge(ADD, lambda x, y: ...).state == judge.NOT_ATTEMPTED
    assert judge.judge(value([1, 2]), [1, ...]).state == judge.NOT_ATTEMPTED


def test_an_answer_that_is_a_value_is_not_shown():
    assert [label for label, text in judge.judge(value(17), 16).rows if text] == ["Got"]


def test_what_an_attempt_leaves_switched_off_does_not_change_the_verdict_on_another():
    def switched_off(x, y):
        engine.set_grad_enabled(False)
        engine.set_default_dtype(engine.float64)
        return x + y

    judge.judge(ADD, switched_off)
    assert engine.is_grad_enabled() and engine.get_default_dtype() == engine.float32


# --- What is still blank


def described(x):
    """Only a description."""


def dots(x): ...


def passes(x):
    pass


def gives(x):
    return x


@engine.no_grad()
def decorated(x):
    return x


class Methods:
    """A class whose methods do nothing yet."""

    def __init__(self): ...

    @staticmethod
    def forward(x):
        """The result."""


class Half(Methods):
    """A class of which one method is written."""

    def forward(self, x):
        return x

    def backward(self, x): ...


@over(
    "attempt, blank",
    [
        (..., True),
        ([1, ...], True),
        ({"a": ...}, True),
        (described, True),
        (dots, True),
        (passes, True),
        (Methods, True),
        (gives, False),
        (decorated, False),
        (Half, False),
        ((), False),
        (0, False),
        (None, False),
        (len, False),
        (lambda x: x, False),
        (engine.zeros(2), False),
    ],
)
def test_what_counts_as_not_attempted(attempt, blank):
    assert learner._is_blank(ADD, attempt) == blank


def test_a_repair_that_adds_a_decorator_counts_as_an_attempt(monkeypatch):
    monkeypatch.setattr(exercises, "cell", lambda key, folder: "def decorated(x):\n    return x")
    assert not learner._is_blank(ADD, decorated)
    monkeypatch.setattr(exercises, "cell", lambda key, folder: "@engine.no_grad()\ndef decorated(x):\n    return x")
    assert learner._is_blank(ADD, decorated)


# --- The process


def asked(attempt, **options):
    return worker.ask(exercises.find("05.3"), attempt, **options)


def in_a_notebook(source: str, name: str = "division_backward"):
    """What a cell defines, as cloudpickle finds it: in no module that could be imported."""
    names: dict = {"__name__": "__main__"}
    exec(compile(source, "<cell>", "exec", dont_inherit=True), names)
    return names[name]


RULE = "def division_backward(arriving, x, y):\n    "


@over(
    "body",
    [
        "while True:\n        try: import time; time.sleep(0.01)\n        except BaseException: pass",
        "return sum(range(10**15))",  # inside C: no Python code runs that could be interrupted
    ],
)
def test_a_loop_that_never_ends_is_stopped(body):
    answer = asked(in_a_notebook(RULE + body), seconds=0.5)
    assert answer["state"] == learner.NOT_YET
    assert "a loop that never ends, or one that does far too much" in answer["message"]


def test_seconds_in_which_nothing_is_computed_do_not_count_at_once():
    right = "import time; time.sleep(1.2); return arriving / y, -arriving * x / y**2"  # for each of two inputs
    assert asked(in_a_notebook(RULE + right), seconds=2)["state"] == learner.CORRECT


@over(
    "a_moment, moments, after",
    [
        ((1.0, 0.0), 6, 5),  # alone on its computer
        ((0.1, 0.0), 51, 5),  # the others have the rest: it has what it needs in the end
        ((0.0, 0.0), 21, 20),  # it waits
        ((0.01, 0.0), 21, 20),  # and wakes now and then
        ((0.0, 1.0), 21, 20),  # for what it has started
        ((0.0, 0.1), 201, 20),
        ((1.0, 0.0), 5, 0),  # it has answered
        ((0.0, 0.0), 20, 0),
    ],
)
def test_what_counts_is_what_is_computed_and_not_the_clock(monkeypatch, a_moment, moments, after):
    class Talk:
        seen = 0

        def join(self, seconds):
            self.seen += 1

        def is_alive(self):
            return not (after == 0 and self.seen > moments)

    talk, (own, others) = Talk(), a_moment
    monkeypatch.setattr(worker, "_computed", lambda pid: (own * talk.seen, (own + others) * talk.seen))
    assert (worker._watch(0, talk, 5), talk.seen) == (after, moments + (after == 0))


def test_what_a_process_computes_is_seen_with_what_it_has_started():
    spin = "import time\nwhile time.process_time() < 0.2: pass\n"
    child = f"child = subprocess.Popen([sys.executable, '-c', {spin + 'input()'!r}])\nchild.wait()"
    source = f"import subprocess, sys\n{spin}{child}"
    process = subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE)
    try:
        assert until(lambda: worker._computed(process.pid)[1] > 0.3)
        own, together = worker._computed(process.pid)
        assert 0.1 < own < together - 0.05
    finally:
        process.communicate(b"\n")
    assert worker._computed(process.pid) == (0, 0)


@over(
    "body, says",
    [
        ("import os; os._exit(3)", "brought Python itself to a stop"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "brought Python itself to a stop"),
        ("raise SystemExit", "ended Python with SystemExit"),
        ("raise KeyboardInterrupt", "ended Python with KeyboardInterrupt"),
        ("def f(): return f()\n    return f()", "stopped with an error"),
        ("return arriving / y, -arriving * x / y**2", ""),
    ],
)
def test_a_crash_is_said_and_the_next_check_works(body, says):
    answer = asked(in_a_notebook(RULE + body))
    assert says in answer["message"] and (answer["state"] == learner.CORRECT) == (not says)


def test_what_an_attempt_prints_is_shown_and_is_no_part_of_the_answer():
    source = "import os, sys\n" + RULE + 'print("seen", x)\n    os.write(1, b"{}")\n    print(y, file=sys.stderr)'
    answer = asked(in_a_notebook(source))
    assert answer["state"] == learner.NOT_YET and answer["printed"].splitlines()[:2] == [
        "seen tensor(6.)",
        "tensor(2.)",
    ]


def test_an_endless_output_is_cut():
    answer = asked(in_a_notebook(RULE + "for i in range(1000): print(i)"))
    assert answer["printed"].splitlines()[-2:] == ["9", "..."]


def test_a_result_with_a_graph_cannot_come_along_and_it_is_said():
    names = {"__name__": "__main__", "w": engine.ones(2, requires_grad=True) * 2}
    exec("def f(arriving, x, y): return w", names)
    assert "computed elsewhere in the notebook" in asked(names["f"])["message"]


def test_a_value_with_a_graph_is_compared_by_what_it_holds():
    x = engine.tensor(3.5, requires_grad=True)
    assert worker.ask(exercises.find("05.1"), (x * 2, engine.tensor(2.0)))["state"] == "correct"
    answer = worker.ask(exercises.find("05.1"), (x * 3, engine.tensor(2.0)))
    assert answer["state"] == "not yet"
    assert dict(answer["rows"])["Got"] == "(tensor(10.5000), tensor(2.))"


def test_a_check_with_a_mistake_of_its_own_says_nothing_about_the_attempt():
    with pytest.raises(attempts.NotChecked, match="has a mistake of its own"):
        worker.ask(exercises.find("05.1"), None, hidden=True)  # it has no hidden steps


@pytest.fixture(params=[True, False] if forked.FORKS else [False], ids=lambda forks: "forked" if forks else "started")
def ways(request, monkeypatch):
    """Processes for attempts as Linux has them and as the other systems do."""
    if request.param != forked.FORKS:
        monkeypatch.setattr(forked, "FORKS", request.param)
        monkeypatch.setattr(worker, "_ahead", worker._Ahead())
        monkeypatch.setattr(worker, "prepare", lambda: None)  # half a second of computing for a check that never comes
        yield request.param
        worker._ahead.drop()
    else:
        yield request.param


def test_a_check_that_cannot_be_started_says_nothing_about_the_attempt(monkeypatch):
    monkeypatch.setattr(worker, "READY", b"something else")
    with pytest.raises(learner.NotChecked, match="could not be started"):
        learner.check("05.1", 1)


def test_what_was_started_ahead_and_has_gone_is_replaced(ways):
    ends = [sys.executable, "-c", "raise SystemExit(1)"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    worker._ahead.drop()
    worker._ahead.ready = forked.Nursery.started(ends) if ways else subprocess.Popen(ends, **pipes)
    assert worker.ask(exercises.find("05.1"), (7.0, 2.0))["state"] == learner.CORRECT


def test_nothing_of_an_attempt_is_left_for_the_next():
    lines = [
        "import engine, os, sys",
        "print(hasattr(engine, 'mark'), 'MARK' in os.environ, 'mark' in sys.modules)",
        "engine.mark = sys.modules['mark'] = sys",
        "os.environ['MARK'] = 'x'",
    ]
    attempt = in_a_notebook(RULE + "\n    ".join(lines))
    for _ in range(2):
        assert asked(attempt)["printed"].splitlines()[0] == "False False False"


def test_attempts_of_several_threads_take_their_turns(ways):
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(worker.ask(exercises.find("05.1"), (7.0, 2.0))["state"]))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [learner.CORRECT] * 2


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C alone there")
def test_the_stop_button_stops_a_check_and_its_process(ways, tmp_path):
    begun = tmp_path / "begun"

    def press():
        if until(lambda: begun.exists() and begun.read_text()):
            os.kill(os.getpid(), signal.SIGINT)

    loops = f"import os, pathlib; pathlib.Path({str(begun)!r}).write_text(str(os.getpid()))\n    while True: pass"
    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=press).start()
        asked(in_a_notebook(RULE + loops), seconds=60)
    assert not psutil.pid_exists(int(begun.read_text()))
    assert worker.ask(exercises.find("05.1"), (7.0, 2.0))["state"] == learner.CORRECT


@pytest.mark.skipif(not forked.FORKS, reason="only Linux forks")
def test_a_check_that_is_stopped_twice_costs_the_next_one_nothing(monkeypatch):
    def pressed_again(_):
        raise KeyboardInterrupt

    assert worker.ask(exercises.find("05.1"), (7.0, 2.0))["state"] == learner.CORRECT
    with monkeypatch.context() as patch:
        patch.setattr(forked.Nursery, "_told", pressed_again)
        with pytest.raises(KeyboardInterrupt):
            worker.ask(exercises.find("05.1"), (7.0, 2.0))
    assert worker.ask(exercises.find("05.1"), (7.0, 2.0))["state"] == learner.CORRECT


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
def test_a_process_that_the_notebook_has_started_does_not_keep_the_answer():
    """A DataLoader's workers hold all that was open when they were started, the check's pipes too."""
    worker.prepare()
    child = os.fork()
    if not child:
        time.sleep(300)
        os._exit(0)
    try:
        assert worker.ask(exercises.find("05.1"), (7.0, 2.0))["state"] == learner.CORRECT
        assert os.waitpid(child, os.WNOHANG) == (0, 0)  # the answer was there before it ended
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@needs_fork
def test_an_attempt_that_forks_is_judged_once():
    answer = asked(in_a_notebook(RULE + "import os; os.fork(); return arriving / y, -arriving * x / y**2"))
    assert answer["state"] == learner.CORRECT


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can find it")
def test_a_process_that_left_its_group_is_stopped_with_the_check(tmp_path):
    away = f"import os, time; os.fork() or os.setsid() or os.fork() or os.execlp('sleep', 'sleep', '3{os.getpid()}')"
    assert (
        asked(in_a_notebook(RULE + away + "\n    return arriving / y, -arriving * x / y**2"))["state"]
        == learner.CORRECT
    )
    assert until(lambda: not sleepers(f"3{os.getpid()}"))


def until(condition, seconds=120):
    """Wait for it; whether it came, before this was given up."""
    end = time.monotonic() + seconds
    while not (there := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return there


def sleepers(seconds):
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", seconds]:
            found.append(process)
    return found


def test_a_cached_function_is_taken_along_with_its_cache():
    source = (
        "import functools\n@functools.lru_cache(None)\n"
        "def steps(n):\n    return n if n < 2 else steps(n - 1) + steps(n - 2)\n"
        + RULE + "assert steps(90) > 0; return arriving / y, -arriving * x / y**2"
    )  # fmt: skip
    assert asked(in_a_notebook(source))["state"] == learner.CORRECT


def test_a_line_without_end_is_shown_in_part():
    answer = asked(in_a_notebook(RULE + "print('a' * 10**7)"))
    assert answer["printed"] == "a" * attempts.PRINTED_CHARACTERS + "\n..."


class Trap:
    """Whatever is asked of it raises."""

    def __getattr__(self, name):
        raise ZeroDivisionError("a trap")


class TrapOfValues(dict):
    def values(self):
        raise ZeroDivisionError("a trap")


def turns_round(): ...


turns_round.__wrapped__ = turns_round


@over("attempt", [Trap, TrapOfValues, lambda: turns_round])
def test_what_cannot_be_looked_at_is_an_attempt_that_is_not_right(attempt, monkeypatch):
    monkeypatch.setattr(worker, "ask", functools.partial(worker.ask, seconds=0.5))
    with pytest.raises(learner.NotYet):
        learner.check("05.3", attempt())


def test_an_error_whose_text_raises_is_the_attempts_own():
    source = "class Odd(Exception):\n    def __str__(self): raise KeyError('x')\n" + RULE + "raise Odd"
    answer = asked(in_a_notebook(source))
    assert answer["state"] == learner.NOT_YET and "Odd that cannot be shown" in dict(answer["rows"])["Got"]


def test_a_process_whose_notebook_is_gone_ends(ways):
    worker._ahead.prepare()
    if ways:
        process = worker._ahead.ready._process
        worker._ahead.ready._line.close()
        worker._ahead.ready = None
    else:
        process = worker._ahead.ready
        assert worker.received(process.stdout) == worker.READY
        process.stdin.close()
    assert process.wait(120) == 0


# --- In a notebook


CELLS = [  # a cell; the error that it shows, or None; what is shown above it
    ("import engine\nfrom course import check, hint, progress, solution", None, []),
    (
        "import functools\nfrom course.learner import calls\n"
        "calls.worker.ask = functools.partial(calls.worker.ask, seconds=1)",
        None,
        [],
    ),
    ('slopes = (\n    ...\n)\ncheck("05.1", slopes)', "NotAttempted", ["Exercise 05.1: not attempted yet."]),
    ('check("05.1", ...)', "NotAttempted", ["Exercise 05.1: not attempted yet."]),
    (
        'def count_nodes(node):\n    """How many different nodes there are in the graph behind a node."""\n'
        '    ...  # not yet\ncheck("05.2", count_nodes)',
        "NotAttempted",
        ["not attempted yet"],
    ),
    ('check("05.1", (5.0, 2.0))', "NotYet", ["Exercise 05.1: not yet.", "Two paths lead", "Got: (5.0, 2.0)"]),
    ('check("05.1", (7.0, 2.0))', None, ["Exercise 05.1: correct.", "1 point."]),
    (
        "def helper(node):\n    return 1 + sum(helper(p) for p, _ in node.next_functions if p)\n\n"
        'def count_nodes(node):\n    return helper(node)\n\ncheck("05.2", count_nodes)',
        "NotYet",
        [
            "You count a node once for each path",
            "Input: count_nodes(d.grad_fn), where d = a * b + a",
            "Got: 5",
            "Expected: 4",
        ],
    ),
    (
        'def count_nodes(node):\n    # the next line\n    return node.nothing\n\ncheck("05.2", count_nodes)',
        "NotYet",
        ["AttributeError: 'MulBackward0' object has no attribute 'nothing'", "In the line: return node.nothing"],
    ),
    (
        'len = 3\n\ndef count_nodes(node):\n    return len([node])\n\ncheck("05.2", count_nodes)',
        "NotYet",
        ["`len` is a name of your own in this notebook, and hides Python's.", "del len"],
    ),
    (
        "del len\nengine.neg = lambda z: z\nengine.Tensor.__truediv__ = lambda a, b: a\nprint = check = hint = None\n\n"
        "def division_backward(g, x, y):\n    return g / y, engine.neg(g) * x / y**2\n\n"
        'from course import check\n\ncheck("05.3", division_backward)',
        None,
        ["Exercise 05.3: correct."],
    ),
    (
        'def division_backward(g, x, y):\n    return g / y, -g * x / y\n\ncheck("05.3", division_backward)',
        "NotYet",
        ["For y: ask the node with y = 1, 2 and 3", "tensor(-3.)", "tensor(-1.5000)"],
    ),
    (
        'def division_backward(arriving, x, y):\n    while True: pass\n\ncheck("05.3", division_backward)',
        "NotYet",
        ["It was stopped after 1 seconds."],
    ),
    ('from course import hint\n\nhint("05.5")', None, ["Hint 1 of 3 for exercise 05.5"]),
    ('hint("05.5")', None, ["Hint 2 of 3"]),
    ('hint("05.5")', None, ["Hint 3 of 3", "solution('05.5')` shows"]),
    ('hint("05.5")', None, ["Hint 3 of 3"]),
    ('hint("05.5", 1)', None, ["Hint 1 of 3"]),
    ('hint("05.5", 4)', "NoSuchExercise", []),
    ('solution("05.3")', None, ["A worked solution of exercise 05.3", "return arriving / y, -arriving * x / y**2"]),
    ('solution("05.4")', None, ["found.get(leaf, 0.0) + arriving"]),
    ("progress()", None, ["05_graph", "2 of 5", "2 of 9", "Next: exercise "]),
    ('check("05.9", 1)', "NoSuchExercise", []),
    ('check("55.1", 1)', "NoSuchExercise", []),
]


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """All the cells, run one after the other in one kernel, and the progress that is recorded."""
    pytest.importorskip("jupytext")
    from course.authoring import build

    folder = tmp_path_factory.mktemp("my_exercises")
    place = folder / "progress.json"
    tags = {"tags": ["raises-exception"]}
    nb = new_notebook(cells=[new_code_cell(source, metadata=tags) for source, _, _ in CELLS])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "UNATTENDED", {record.VARIABLE: str(place)})
        build.execute(nb, folder, allow_errors=True)
    return nb.cells, json.loads(place.read_text(encoding="utf-8"))


@over("number", range(len(CELLS)))
def test_what_a_cell_shows(learned, number):
    outputs = learned[0][number].outputs
    _, error, shown = CELLS[number]
    text = "\n".join(output.data["text/plain"] for output in outputs if output.output_type == "display_data")
    assert [output.ename for output in outputs if output.output_type == "error"] == [error] * bool(error), text
    assert [part for part in shown if part not in text] == [], text
    assert {output.output_type for output in outputs} <= {"display_data", "error"}  # stderr costs points in nbgrader


def test_an_error_shows_one_line_and_no_traceback(learned):
    errors = [output for cell in learned[0] for output in cell.outputs if output.output_type == "error"]
    assert len(errors) > 5
    assert all(error.traceback == [error.evalue] and "\n" not in error.evalue for error in errors)


def test_the_html_says_what_the_text_says(learned):
    shown = [output.data for cell in learned[0] for output in cell.outputs if output.output_type == "display_data"]
    assert len(shown) > 15
    for data in shown:
        # Between the tags of a line and of a part of the text there is a space; marks of code are tags in HTML.
        spaced = re.sub(r"</?(p|pre|div|t[dhr]|table)\b[^>]*>", " ", data["text/html"])
        page = html.unescape(re.sub(r"<[^>]+>", "", spaced))
        text = re.sub(r"(?m):$|`", "", data["text/plain"])
        for line in text.splitlines():
            label, _, rest = line.partition(": ")
            said = " ".join(page.split()).replace("`", "")
            assert " ".join(line.split()) in said or (label in said and " ".join(rest.split()) in said), line


def test_what_was_done_is_recorded(learned):
    solved = {key for key, entry in learned[1].items() if entry.get("solved")}
    assert solved == {"05.1", "05.3"}
    assert learned[1]["05.1"]["attempts"] == 2  # what is blank is no attempt
    assert learned[1]["05.5"]["hints"] == 3
    assert learned[1]["05.4"] == {"solution_shown": True}


def test_outside_a_notebook_the_same_is_printed(capsys):
    with pytest.raises(AssertionError) as error:
        learner.check("05.1", (5.0, 2.0))
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert str(error.value) == lines[0] == "Exercise 05.1: not yet." and "Got: (5.0, 2.0)" in lines
    assert said.err == ""


GIVEN = {"message": "Look.", "rows": [("Got", "1"), ("Input", "")], "printed": "mine"}


@over(
    "state, points, hidden, said, noted",
    [
        (judge.NOT_YET, 1, False, ["not yet.", "Look.", "Got: 1", "Printed: mine", "Stuck? `hint('05.3')` helps."],
         {"attempts": 1}),
        (judge.NOT_YET, 1, True, ["not yet.", "Look.", "Got: 1"], None),
        (judge.NOT_YET, 0, False, ["not yet.", "Look.", "Got: 1", "Printed: mine", "Stuck? `hint('05.3')` helps."],
         None),
        (judge.CORRECT, 2, False, ["correct.", "2 points."], {"attempts": 1, "solved": ...}),
        (judge.CORRECT, 1, False, ["correct.", "1 point."], {"attempts": 1, "solved": ...}),
        (judge.CORRECT, 0, False, ["correct."], None),
        (judge.CORRECT, 1, True, [], None),
        (judge.NOT_ATTEMPTED, 1, False, ["not attempted yet."], {}),
    ],
)  # fmt: skip
def test_what_is_said_and_noted_of_an_answer(monkeypatch, capsys, tmp_path, state, points, hidden, said, noted):
    monkeypatch.setenv(record.VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setattr(learner, "find", lambda key: ADD._replace(points=points))
    monkeypatch.setattr(worker, "ask", lambda *given, **more: GIVEN | {"state": state})
    for attempts_ in (1, 2):
        if state == judge.CORRECT:
            learner.check("05.3", 17, hidden)
        else:
            with pytest.raises(learner.NotAttempted if state == judge.NOT_ATTEMPTED else learner.NotYet):
                learner.check("05.3", 17, hidden)
        lines = capsys.readouterr().out.removeprefix("Exercise ").removeprefix("05.3: ").splitlines()
        assert lines[: len(said)] == said and (len(lines) == len(said) or state == judge.NOT_ATTEMPTED)
        entry = record.read().get("05.3")
        assert entry == (noted and {name: entry[name] if n is ... else attempts_ for name, n in noted.items()})
        if "solved" in (noted or {}):
            assert attempts_ == 1 or entry["solved"] == "the first time"
            record.update("05.3", lambda entry: entry.update(solved="the first time"))


def test_the_table_of_progress_leads_to_the_learners_copies():
    table = "".join(learner._progress_table())
    assert '<a href="../my_lessons/05_graph.ipynb">05_graph</a>' in table
    assert re.search(r'<a href="../my_exercises/05_graph.ipynb">\d of 5</a></td><td>\d of 9</td>', table)
    assert re.search(
        r'Next: <a href="../my_exercises/(\w+).ipynb">exercise [\d.]+, in my_exercises/\1.ipynb</a>', table
    )


def test_of_a_function_from_a_file_its_lines_are_known_and_of_others_none():
    assert learner._source(gives) == "def gives(x):\n    return x\n"
    assert learner._source(decorated).startswith("@engine.no_grad()\ndef decorated(x):")
    assert learner._source(Half).startswith("class Half(Methods):")
    assert [learner._source(other) for other in (len, 7, "def f(): ...", int)] == [""] * 4


def test_the_course_itself_starts_without_what_exercises_need():
    source = "import sys, course; assert not {'cloudpickle', 'engine', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", source], env=kernel_environment(), check=True)


def test_a_solution_is_shown_without_nbgraders_marks():
    assert (
        exercises.solved("def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION")
        == "def f():\n    return 1"
    )
    assert exercises.solved("broken = 1\n\n### BEGIN SOLUTION\nmended = 2\n\n### END SOLUTION") == "mended = 2"


# --- Progress


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(record.VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    return tmp_path / "progress.json"


def count(place: str, key: str, times: int) -> None:
    os.environ[record.VARIABLE] = place
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "LOCK_SECONDS", 120)  # beside other programs, the one that has it may be stopped for long
        for _ in range(times):
            record.update(key, lambda entry: entry.update(attempts=entry.get("attempts", 0) + 1))


@pytest.mark.slow
def test_two_notebooks_at_once_lose_nothing(place):
    context = multiprocessing.get_context("spawn")
    keys = ["05.1", "05.1", "05.2"]
    processes = [context.Process(target=count, args=(str(place), key, 15)) for key in keys]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert record.read() == {"05.1": {"attempts": 30}, "05.2": {"attempts": 15}}


@pytest.mark.slow
def test_a_kernel_killed_while_it_writes_leaves_a_whole_file_and_no_lock(place):
    count(str(place), "05.1", 1)
    context = multiprocessing.get_context("spawn")
    for _ in range(3):
        process = context.Process(target=count, args=(str(place), "05.1", 10**6))
        process.start()
        before = record.read()["05.1"]["attempts"]
        assert until(lambda enough=before + 5: record.read()["05.1"]["attempts"] >= enough)
        process.kill()
        process.join(120)
        after = record.read()["05.1"]["attempts"]
        count(str(place), "05.1", 1)
        assert record.read() == {"05.1": {"attempts": after + 1}}


def test_a_sealed_test_keeps_what_it_said_the_first_time(place):
    sealed = ADD._replace(once=lambda attempt: f"{attempt / 1:.0f} %")
    assert learner._opened(ADD, 1) == ""
    assert "unbroken" in learner._opened(sealed, "no number") and record.read() == {}
    assert learner._opened(sealed, 80).startswith("The seal is broken: 80 %.")
    assert learner._opened(sealed, 95).startswith("The seal was broken before: 80 %.")
    assert record.read() == {"05.3": {"opened": "80 %"}}


def test_a_file_that_cannot_be_read_is_put_aside(place):
    place.write_text("{ not json", encoding="utf-8")
    assert record.read() == {}
    assert place.with_name("progress.json.unreadable").read_text(encoding="utf-8") == "{ not json"
    count(str(place), "05.1", 1)
    assert record.read() == {"05.1": {"attempts": 1}}


def test_a_file_that_cannot_be_written_is_no_reason_to_stop(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(record.VARIABLE, str(tmp_path / "file/progress.json"))
    assert record.update("05.1", lambda entry: entry.update(hints=1)) == {"hints": 1}


@pytest.mark.parametrize(("variable", "content"), [(record.VARIABLE, ""), ("NBGRADER_EXECUTION", "autograde")])
def test_nothing_is_recorded_where_nobody_learns(place, monkeypatch, variable, content):
    monkeypatch.setenv(variable, content)
    monkeypatch.setattr(record, "_kept_here", {})  # other files' tests have learnt, too
    record.update("05.1", lambda entry: entry.update(solved="now"))
    assert list(place.parent.iterdir()) == []
    assert record.read()["05.1"] == {"solved": "now"}  # for as long as the process lives


def test_the_report_counts_lessons_and_points_and_names_what_is_next(place):
    done = {key: {"solved": "2026-01-01"} for key in exercises.of_lesson("05") if key != "05.4"}
    place.write_text(json.dumps(done), encoding="utf-8")
    report = record.report()
    assert re.search(r"(?m)^05_graph +4 of 5 +7 of 9$", report)
    assert re.search(r"(?m)^0 of \d+ lessons done, 7 of \d+ points.$", report)


@pytest.mark.parametrize(
    ("solved", "after"),
    [([], "01.1"), (["01.1"], "01.2"), (["05.1"], "05.2"), (["05.2"], "05.1"), (["05.3", "05.1"], "05.2"),
     (["05.4", "01.1"], "05.1"), ([f"04.{n}" for n in range(1, 6)], "05.1")],
)  # fmt: skip
def test_what_is_next_is_the_first_one_left_from_the_lesson_solved_last_on(place, solved, after):
    done = {key: {"solved": "2026-01-01", "attempts": 2} for key in solved}
    place.write_text(json.dumps({"05.1": {"attempts": 1}} | done), encoding="utf-8")
    assert f"Next: exercise {after}, in my_exercises/{after[:2]}_" in record.report()


def test_when_all_is_solved_nothing_is_next(place):
    keys = [key for lesson in exercises.lessons() for key in exercises.of_lesson(lesson)]
    place.write_text(json.dumps({key: {"solved": "2026-01-01"} for key in keys}), encoding="utf-8")
    assert record.report().endswith("All is done.")
    last = dict.fromkeys(exercises.of_lesson(exercises.lessons()[-1]), {"solved": "2026-01-02"})
    place.write_text(json.dumps(last), encoding="utf-8")
    assert record.next_up() == keys[0]


def test_progress_names_a_copy_that_is_no_notebook_any_more(place, monkeypatch):
    monkeypatch.setattr(copies, "damaged", lambda: ["my_exercises/05_graph.ipynb cannot be read: `reset` it."])
    assert record.report().endswith("\n\nmy_exercises/05_graph.ipynb cannot be read: `reset` it.")
    assert "".join(learner._progress_table()).endswith(
        "<p>my_exercises/05_graph.ipynb cannot be read: <code>reset</code> it.</p>"
    )


def test_the_command_shows_the_same(place, capsys):
    assert record.main([]) == 0
    assert capsys.readouterr().out == record.report() + "\n"


def test_a_program_gets_the_same_as_json(place, capsys):
    place.write_text(json.dumps({"05.3": {"solved": "2026-01-01"}}), encoding="utf-8")
    assert record.main(["--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    row = next(row for row in data["lessons"] if row["lesson"] == "05_graph")
    assert row == {"lesson": "05_graph", "solved": 1, "exercises": 5, "points": 1, "of": 9}
    assert (data["points"], data["next"], data["damaged"]) == (1, "05.1", [])
    assert data["of"] == sum(row["of"] for row in data["lessons"])


def test_the_record_is_no_part_of_the_repository():
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {".progress.json*", "my_lessons/", "my_exercises/"} <= set(ignored)
    assert record.file() is None or Path(record.file()).name == ".progress.json"
