"""Every model that a lesson calls is compiled, and does what it does eagerly; what PyTorch says is as it is told."""

import doctest
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell

import engine
from course.authoring.build import execute
from course.base.notebooks import ROOT
from course.judging.exercises import find
from engine import func, nn
from engine.compiler import explain

# 17 fills its device on purpose, and would have no room for copies of its models; 19 compiles its own
LESSONS = [
    ROOT / f"notebooks/{name}.ipynb"
    for name in ("13_models", "14_training_loop", "15_efficient_loops", "16_mixed_precision")
]

# Notes the first call of each model, as it is then, unless it fails; a module in a module is part of the outer one.
FIRST = """
import copy
import engine
from engine.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

called, inside = {}, []

def note(module, args):
    plain = all(isinstance(a, engine.Tensor) and not a.requires_grad for a in args)
    name = None
    if not inside and plain:
        name = f"{module} {module.training} {[(a.shape, a.dtype) for a in args]}"
        called.setdefault(name, (copy.deepcopy(module), copy.deepcopy(args)))
    inside.append(name)

def done(module, args, out):
    name = inside.pop()
    if out is None:
        called.pop(name, None)

hooks = [register_module_forward_pre_hook(note), register_module_forward_hook(done, always_call=True)]
"""

# Three calls: one is captured, two run what was captured.
LAST = """
for hook in hooks:
    hook.remove()

def run(module, args, compiled):
    module = copy.deepcopy(module)
    call = engine.compile(module) if compiled else module
    engine.manual_seed(0)
    results = []
    for _ in range(3):
        module.zero_grad()
        out = call(*args)
        if out.requires_grad:
            (out * out).sum().backward()
        results += [out, *(p.grad for p in module.parameters()), *(b.clone() for b in module.buffers())]
    return results, compiled and [entry.broken for entry in call.compiled.entries if entry.broken]

for name, (module, args) in called.items():
    (eager, _), (compiled, broken) = run(module, args, False), run(module, args, True)
    assert not broken, (name, broken)
    for a, b in zip(eager, compiled, strict=True):
        same = a is b is None or engine.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)
        assert same, name
print(len(called))
"""


@pytest.mark.slow
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_models_of_a_lesson_run_compiled(path):
    nb = nbformat.read(path, as_version=4)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    nb.cells = [new_code_cell(FIRST), *nb.cells, new_code_cell(LAST)]
    execute(nb, path.parent, ROOT)
    assert int(nb.cells[-1].outputs[0].text) > 0


# What lessons 18 and 19 claim of the engine's compiler


def score(x, w):
    size = x.exp().sum()  # noqa: F841  (nobody needs it: that is the point)
    bent = (x * w).tanh()
    gate = (x * w).sigmoid()
    return (bent * gate).mean()


def tidy(x, w):
    product = x * w
    return (product.tanh() * product.sigmoid()).mean()


def test_18_by_hand_the_way_back_has_one_step_less():
    x, w = engine.rand(4, 3), engine.rand(4, 3, requires_grad=True)
    told = [explain(f)(x, w).counts for f in (score, tidy)]
    assert [[counts[part] for part in ("forward", "backward")] for counts in told] == [[9, 12], [9, 11]]


@pytest.mark.generator("loops")
def test_18_a_loop_is_written_from_three_steps_on(generator):
    three = engine.rand(3)
    functions = (lambda x: x.exp(), lambda x: (x * 2).exp(), lambda x: (x * 2).exp() + 1)
    codes = [explain(f)(three).code for f in (*functions, lambda x: ((x * 2).exp() + 1).log())]
    assert ["def loop" in code for code in codes] == [False, False, True, True]


@pytest.mark.generator("loops")
def test_18_softmax_goes_along_a_row_three_times(generator):
    code = explain(lambda x: x.softmax(-1))(engine.rand(4, 3)).code
    assert code.count("for j in range(3):") == 3 and code.count("np.empty") == 1


def race(works, holds):
    """Take turns until what is said of the best times holds: what disturbs makes them longer, never shorter."""
    best, end = dict.fromkeys(works, math.inf), time.monotonic() + 120
    while not holds(**best) and time.monotonic() < end:
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    assert holds(**best), best


@pytest.mark.slow
@pytest.mark.generator("numba")
def test_18_what_is_said_of_times(generator):
    def error(w, x, y):
        return (x @ w - y) ** 2

    few, more, many = engine.rand(10), engine.rand(1000), engine.rand(4_000_000)
    works = {"ten": lambda: score(few, few), "thousand": lambda: score(more, more)}
    race(works, lambda ten, thousand: thousand < 10 * ten < math.inf)
    compiled = engine.compile(score)
    works = {"eager": lambda: score(many, many), "loops": lambda: compiled(many, many)}
    race(works, lambda eager, loops: loops < eager / 1.5 < math.inf)
    xs, ys, v = engine.randn(5, 3), engine.randn(5), engine.randn(3)
    each = func.vmap(func.grad(error), in_dims=(None, 0, 0))
    at_once = engine.compile(each)
    works = {
        "one_by_one": lambda: engine.stack([func.grad(error)(v, x, y) for x, y in zip(xs, ys, strict=True)]),
        "vmapped": lambda: each(v, xs, ys),
        "compiled": lambda: at_once(v, xs, ys),
    }
    race(works, lambda one_by_one, vmapped, compiled: 4 * compiled < 2 * vmapped < one_by_one < math.inf)


def test_18_1_and_19_1_are_what_the_compiler_says(generator):
    def f(x, w):
        a = x * w
        b = x.exp()  # noqa: F841
        c = (x * w).tanh()
        return (a + c).sum()

    passes = explain(f)(engine.ones(400, 400), engine.ones(400, 400)).entry.passes
    steps = [sum(step.kind != "input" for step in stage.steps) for stage in passes.values()]
    assert tuple(steps) == find("18.1").answer

    area, one = engine.compile(lambda x, scale: (x * scale).sum()), engine.ones(4)
    calls = [(one, 2.0), (one * 0, 2.0), (one, 3.0), (one.double(), 2.0), (one, engine.tensor(5.0))]
    captures = []
    for call in [*calls, (one, engine.tensor(6.0))]:
        area(*call)
        captures.append(len(area.entries))
    assert tuple(captures) == find("19.1").answer


def test_19_there_is_a_capture_for_each_mode_of_a_module():
    layer = engine.compile(nn.Dropout(0.5))
    for _ in range(3):
        layer.train()
        layer(engine.ones(3))
        layer.eval()
        layer(engine.ones(3))
        assert len(layer.compiled.entries) == 2


# What the two lessons tell of PyTorch: a program, and what it prints; then, maybe, what it logs.

RECORD = re.compile(r"(?s)\n```python\n([^`]*?)\n```\n\n```text\n(.*?\n)```\n(?:\n```text\n(.*?\n)```\n)?")
RECORDED_WITH = "2.13."  # the words change from version to version
LOGGED = re.compile(r"(?m)^[VWI]\d{4} \S+ \d+ (?:\S*/)?torch/\S+ \[\S+\] \[__\w+\] (.*)$")
RUN = """
import json, sys

space = {"__name__": "__main__"}
for path in json.loads(sys.argv[1]):
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), space)
    for stream in sys.stdout, sys.stderr:
        print("\\n--- done", file=stream, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lesson", ["18_compile", "19_compiled_programs"])
def test_pytorch_says_what_the_lesson_tells(lesson, tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith(RECORDED_WITH) or shutil.which("g++") is None:
        pytest.skip(f"recorded with PyTorch {RECORDED_WITH} and a C++ compiler")
    records = RECORD.findall((ROOT / f"course/lessons/{lesson}/lesson.md").read_text(encoding="utf-8"))
    assert len(records) >= 2
    paths = [tmp_path / str(number) / "program.py" for number in range(len(records))]
    for path, (program, *_) in zip(paths, records, strict=True):
        path.parent.mkdir()
        path.write_text(program, encoding="utf-8")
    command = [sys.executable, "-c", RUN, json.dumps([*map(str, paths)])]
    env = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    same = doctest.OutputChecker().check_output
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    streams = [stream.split("\n--- done\n") for stream in (done.stdout, done.stderr)]
    for number, (_, printed, logged) in enumerate(records):
        said, log = (stream[number] for stream in streams)
        assert same(printed, said, options), f"told:\n{printed}\nsaid:\n{said}"
        log = re.sub(r"\S*/(?=program\.py)", "", "\n".join(LOGGED.findall(log)))
        assert not logged or same(logged, log, options), f"told:\n{logged}\nlogged:\n{log}"
