"""Where Python has neither processes nor threads, in a browser's page: the engine, lessons' cells, and checks."""

import json
import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("cloudpickle")
pytest.importorskip("filelock")

import engine
from course.base.notebooks import ROOT, kernel_environment
from course.judging import exercises
from course.process import attempts, in_place, worker
from engine.arrays import threads
from engine.utils.data import DataLoader

LOOKS = ("state", "message", "rows", "printed")


def printed(program, **environment):
    """What a program prints that runs as in a browser; with PYTHONWARNINGS as set, an error of it is one here."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/programs")])
    done = subprocess.run(
        [sys.executable, "-c", f"import in_a_browser\n{program}"],
        env=kernel_environment() | {"PYTHONPATH": path, "UNDERTORCH_PROGRESS": ""} | environment,
        cwd=ROOT, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_programs_here_can_start_nothing():
    program = """
import os, subprocess, sys, threading
starts = [threading.Thread(target=print).start, lambda: subprocess.run([sys.executable]), getattr(os, "fork", None)]
for start in starts:
    try:
        start and start()
    except RuntimeError:
        continue
    print(start)
"""
    assert printed(program) in ("", "None\n")


ENGINE = """
import engine
from engine import nn
from engine.arrays import threads

x = engine.ones(3, 2**18, requires_grad=True)
(x.exp() * 2).sum().backward()
print(x.grad.shape, threads.helpers)
engine.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
data, target = engine.randn(64, 2), engine.randn(64, 1)
optimizer = engine.optim.Adam(model.parameters(), lr=0.05)
compiled = engine.compile(lambda x, y: nn.functional.mse_loss(model(x), y))
for _ in range(3):
    loss = compiled(data, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss)
print([len(batch) for batch in engine.utils.data.DataLoader(range(5), batch_size=2)])
sim = engine.ones(2, device="sim")
print((sim + sim).sum().item())
"""


@pytest.mark.slow
def test_the_engine_gives_there_what_it_gives_here():
    here = subprocess.run(
        [sys.executable, "-c", ENGINE.replace("threads.helpers", "[]")],
        env=kernel_environment(), cwd=ROOT, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert here.stdout.count("\n") == 4
    assert printed(ENGINE, OMP_NUM_THREADS="4") == here.stdout


@pytest.mark.slow
def test_a_graph_is_drawn_by_the_page_where_nothing_else_can():
    pytest.importorskip("graphviz_anywidget")
    program = """
import engine
from engine.viz import graph

x = engine.tensor(2.0, requires_grad=True)
shown = graph(x * x)._repr_mimebundle_()
print(sorted(shown))
"""
    assert "application/vnd.jupyter.widget-view+json" in printed(program) and "text/plain" in printed(program)


def test_workers_are_refused_in_a_sentence_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(threads, "IN_BROWSER", True)
    assert len(list(DataLoader(range(4)))) == 4
    with pytest.raises(NotImplementedError, match=r"num_workers=2.*none: with num_workers=0 the same batches"):
        DataLoader(range(4), num_workers=2)


# ---- lessons and their checks

CELLS = """
import json, sys
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

settings = Config()
settings.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=settings)
shell.showtraceback = lambda *_, **__: None
found = []
for name in NAMES:
    shell.reset(new_session=False)
    for number, cell in enumerate(json.loads(Path(name).read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            ran = shell.run_cell("".join(cell["source"]), store_history=True)
            error = ran.error_before_exec or ran.error_in_exec
            stored = [out["ename"] for out in cell["outputs"] if out["output_type"] == "error"]
            found.append([name, number, type(error).__name__ if error else "", *stored])
Path(FOUND).write_text(json.dumps(found))
"""


def errors_of(tmp_path, *names):
    """{notebook: [errors of its cells]}, of those whose cells raise what they do not raise as they are stored."""
    place = tmp_path / "found.json"
    printed(f"NAMES, FOUND = {names!r}, {str(place)!r}\n{CELLS}", MPLBACKEND="agg")
    found = json.loads(place.read_text("utf-8"))
    assert found
    return found


@pytest.mark.slow
def test_cells_of_a_lesson_do_there_what_they_do_here(tmp_path):
    found = errors_of(tmp_path, "notebooks/04_autograd.ipynb")
    assert len(found) > 20 and [cell for cell in found if cell[2:] not in ([""], [cell[2], cell[2]])] == []


@pytest.mark.slow
def test_worked_solutions_are_right_and_blank_ones_not_attempted(tmp_path):
    found = errors_of(tmp_path, "solutions/05_graph.ipynb", "exercises/05_graph.ipynb")
    right = {error for name, _, error, *_ in found if name.startswith("solutions")}
    blank = {error for name, _, error, *_ in found if name.startswith("exercises")}
    assert right == {""} and "NotAttempted" in blank


# The first of a lesson; the next two are for `course test --deep`.
KEYS = [
    pytest.param(key, marks=[pytest.mark.slow] * (number > 0))
    for lesson in ("01", "05", "11")
    for number, key in enumerate(list(exercises.of_lesson(lesson))[:3])
]


def attempts_at(exercise):
    return [exercise.answer, *(answer for answer, _ in exercise.wrong[:2])]


@pytest.mark.parametrize("key", KEYS)
def test_in_place_the_same_is_said_as_by_a_process_of_its_own(key, monkeypatch):
    exercise = exercises.find(key)
    by_process = [worker.ask(exercise, attempt) for attempt in attempts_at(exercise)]
    monkeypatch.setattr(threads, "IN_BROWSER", True)
    monkeypatch.setattr(worker, "exchange", lambda *_: pytest.fail("a process was asked"))
    for attempt, answer in zip(attempts_at(exercise), by_process, strict=True):
        said = worker.ask(exercise, attempt)
        assert json.loads(json.dumps(said)) == answer
    assert {answer["state"] for answer in by_process} >= {exercises.CORRECT}


@pytest.fixture
def in_browser(monkeypatch):
    monkeypatch.setattr(threads, "IN_BROWSER", True)


def of_a_cell(body, name="division_backward"):
    names: dict = {"__name__": "__main__"}
    exec(compile(f"def {name}(arriving, x, y):\n    {body}", "<cell>", "exec", dont_inherit=True), names)
    return names[name]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has sys.monitoring from 3.12 on, and so has a browser's")
@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while x is not None: x = x + 1",
        "for x in iter(int, 1): y = [x for x in iter(int, 1)]",
        "try:\n        while True: x = x + 1\n    except Exception: pass",
    ],
)
def test_a_loop_that_never_ends_is_stopped(body, in_browser):
    answer = worker.ask(exercises.find("05.3"), of_a_cell(body), seconds=0.3)
    assert answer == {"state": exercises.NOT_YET, "message": attempts.too_long(0.3)}
    assert sys.monitoring.get_tool(in_place._TOOL) is None


def test_a_check_leaves_the_notebooks_random_numbers_and_dtype_as_they_were(in_browser):
    engine.set_default_dtype(engine.float64)
    try:
        for seed in (engine.manual_seed, np.random.seed, random.seed):
            seed(7)
        drawn = engine.rand(2).tolist(), np.random.rand(), random.random()
        for seed in (engine.manual_seed, np.random.seed, random.seed):
            seed(7)
        assert worker.ask(exercises.find("05.3"), of_a_cell("return arriving, x"))["state"] == exercises.NOT_YET
        assert (engine.rand(2).tolist(), np.random.rand(), random.random()) == drawn
        assert engine.get_default_dtype() is engine.float64
    finally:
        engine.set_default_dtype(engine.float32)


def test_an_attempt_changes_a_copy_of_the_notebook(in_browser):
    names: dict = {"__name__": "__main__", "calls": []}
    exec(
        "def division_backward(arriving, x, y):\n    calls.append(1)\n    return arriving / y, -arriving * x / y**2",
        names,
    )
    assert worker.ask(exercises.find("05.3"), names["division_backward"])["state"] == exercises.CORRECT
    assert names["calls"] == []


def test_of_an_exercise_whose_ranks_are_threads_it_is_said_that_it_cannot_be_checked_there(in_browser):
    exercise = exercises.find("20.5")
    with pytest.raises(attempts.NotChecked, match="Exercise 20.5: its ranks are threads, which Python in a browser"):
        worker.ask(exercise, exercise.answer)


def test_one_module_alone_asks_for_the_platform_of_browsers():
    modules = [path for folder in ("engine", "course", "undertorch") for path in (ROOT / folder).rglob("*.py")]
    asking = [
        path.name for path in modules if re.search(r"sys\.platform.*emscripten", path.read_text(encoding="utf-8"))
    ]
    assert asking == ["threads.py"]
