"""The rule of the house: a file of the engine imports downwards only, and the core stands alone."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from over_tables import over

from engine.surface import checks, doors

ROOT = Path(__file__).parents[1]
CORE = sorted((ROOT / "engine/core").glob("*.py"))


def test_the_contracts_on_imports_are_kept(capsys, monkeypatch):
    cli = pytest.importorskip("importlinter.cli")
    monkeypatch.chdir(ROOT)
    failed = cli.lint_imports("pyproject.toml", (), no_cache=True, no_logo=True)
    assert not failed, capsys.readouterr().out.partition("Broken contracts")[2]


# The engine's folder without its __init__, and a finder that knows of core/ and arrays/ alone.
ALONE = f"""
import sys, types
engine = types.ModuleType("engine")
engine.__path__ = [{str(ROOT / "engine")!r}]
sys.modules["engine"] = engine

class Above:
    def find_spec(name, path=None, target=None):
        package, _, rest = name.partition(".")
        if package == "engine" and rest.partition(".")[0] not in ("core", "arrays"):
            raise ImportError(f"core/ and arrays/ ask for {{name}}")

sys.meta_path.insert(0, Above)
"""
SEED = """
import numpy as np
from engine.core.backward import backward
from engine.core.graph import node_class
from engine.core.record import array_of, record
from engine.core.tensor import Tensor

Mv = node_class("MvBackward0", lambda g, _x, y: np.outer(g, y), lambda g, x, _y: x.T @ g)
Add = node_class("AddBackward0", lambda g: g, lambda g: g.sum())
Loss = node_class("BinaryCrossEntropyWithLogitsBackward0", lambda g, x, y: (1 / (1 + np.exp(-x)) - y) * (g / len(y)),
                  lambda g, x, _y: x * (g / -len(x)))

def mv(a, b):
    x, y = array_of(a), array_of(b)
    return record(Mv, x @ y, (a, b), (x, y))

def add(a, b):
    return record(Add, array_of(a) + array_of(b), (a, b))

def loss(a, b):
    x, y = array_of(a), array_of(b)
    return record(Loss, np.mean(np.maximum(x, 0) - x * y + np.log1p(np.exp(-abs(x)))), (a, b), (x, y))

rng = np.random.default_rng(0)
x, y = rng.standard_normal((5, 3)), np.array([0.0, 1.0, 1.0, 0.0, 1.0])
w, b = Tensor(rng.standard_normal(3)).requires_grad_(), Tensor(np.zeros(())).requires_grad_()
backward(loss(add(mv(Tensor(x), w), b), Tensor(y)))
expected = (1 / (1 + np.exp(-x @ w.array)) - y) / 5
assert np.allclose(w.grad.array, x.T @ expected) and np.allclose(b.grad.array, expected.sum())
"""


def test_the_core_runs_the_seed_program_with_all_that_stands_above_it_blocked():
    done = subprocess.run([sys.executable, "-c", ALONE + SEED], capture_output=True, text=True, cwd=ROOT)
    assert not done.returncode, done.stderr


def test_what_is_blocked_for_the_seed_program_cannot_be_imported():
    done = subprocess.run([sys.executable, "-c", f"{ALONE}\nimport engine.ops"], capture_output=True, text=True)
    assert done.returncode and "core/ and arrays/ ask for engine.ops" in done.stderr


class Named(NamedTuple):
    """A function or class of a file."""

    name: str
    line: int
    lines: int
    opens: list[str]  # with this word, if it has a docstring
    a_class: bool


@cache
def named(path):
    return [
        Named(node.name, node.lineno, node.end_lineno - node.lineno + 1, (ast.get_docstring(node) or "").split()[:1],
              isinstance(node, ast.ClassDef))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]  # fmt: skip


def too_long(path, most):
    """The functions of a file with more lines than so many."""
    return {one.name: one.lines for one in named(path) if one.lines > most and not one.a_class}


@over("path", CORE)
def test_no_function_of_the_core_is_longer_than_a_screen(path):
    assert not too_long(path, 40)


def test_no_function_of_the_course_is_longer_than_sixty_lines():
    assert not {str(path): found for path in (ROOT / "course").rglob("*.py") if (found := too_long(path, 60))}


@over("room", ["engine", "course"])
def test_a_docstring_says_what_something_does_and_opens_with_no_question(room):
    asked = {"What", "Whether", "How", "Which", "Who", "Whose", "Where", "When", "Why"}
    found = []
    for path in sorted((ROOT / room).rglob("*.py")):
        found += [f"{path.relative_to(ROOT)}:{one.line}: {one.name}" for one in named(path) if asked & {*one.opens}]
    assert not found


def test_no_module_of_the_course_is_longer_than_four_hundred_lines():
    """What a lesson checks stands in one file, which may be longer."""
    modules = [path for path in (ROOT / "course").rglob("*.py") if path.name != "checks.py"]
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules}
    assert not {path: lines for path, lines in lengths.items() if lines > 400}


@over("path", sorted((ROOT / "engine").rglob("messages.py")))
def test_a_sentence_has_one_name_and_a_name_one_sentence(path):
    rows = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    names = [ast.unparse(row.targets[0]) for row in rows]
    sentences = [ast.unparse(row.value) for row in rows]
    assert len(set(names)) == len(names) and len(set(sentences)) == len(sentences)


def test_a_sentence_that_is_asked_for_is_there():
    for path in sorted((ROOT / "engine").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"import.*\bmessages\b|^    messages\b", text, re.MULTILINE):
            continue
        tree = ast.parse(text)
        spaces = {}  # what this file calls a module of sentences -> that module
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                places = [*path.relative_to(ROOT).parts[: -node.level], *(node.module or "").split(".")]
                for name in node.names:
                    if name.name == "messages":
                        spaces[name.asname or name.name] = ".".join(filter(None, places)) + ".messages"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in spaces:
                module = importlib.import_module(spaces[node.value.id])
                assert hasattr(module, node.attr), f"{path}:{node.lineno}: {node.attr}"


def test_what_has_a_check_is_behind_a_door():
    """A method that takes nothing but its tensor has no door: where there is a check, its line says ``Tensor self``."""
    files = {path.stem for path in (ROOT / "engine/surface/checks").glob("*.py")} - {"__init__"}
    assert set(checks.FAMILIES) == files
    for (family, kinds, title), (name, _, lines) in doors.LINES.items():
        method = "method" in kinds or "in_place" in kinds
        has_door = lines and not (method and lines[0][0] in doors.OF_ONE)
        assert has_door or not checks.find(family, name), f"{title} of [{family}]"
