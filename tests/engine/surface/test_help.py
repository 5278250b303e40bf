"""What help() and Shift-Tab say: every public name has a text, and every text is true as far as it can be run."""

import doctest
import importlib
import inspect
import re
import sys
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
from over_tables import over

import engine
from engine import help

MODULES = sorted({p.stem.partition("-")[0] for p in Path(help.__file__).parent.glob("*.md")} - {"Tensor", "engine"})
FILES = ["engine", "Tensor", *MODULES]
# Why an example is not run under PyTorch, or prints something else there.
SIMULATED = "the simulated device"
ENGINE_ALONE = {"sim": SIMULATED, "cuda": SIMULATED, "viz": "pictures", "compiler": "its own explanations"}
FINDER = doctest.DocTestParser()
IN_A_GROUP = ("distributed", "distributed.checkpoint", "distributed.optim", "nn.parallel")


@contextmanager
def group_of_one(file, package):
    """What the examples of some files need: a group, of this process alone."""
    if file not in IN_A_GROUP:
        yield
        return
    place(file, package)
    with tempfile.TemporaryDirectory() as folder:
        package.distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=0, world_size=1)
        try:
            yield
        finally:
            package.distributed.destroy_process_group()


def place(file, package=engine):
    """The module or class whose names a file describes."""
    if file == "Tensor":
        return package.Tensor
    name = package.__name__ + ("" if file == "engine" else f".{file}")
    return package.random if file == "random" else importlib.import_module(name)


def found(file, name, package=engine):
    what = place(file, package)
    for part in name.split("."):
        what = getattr(what, part)
    return what


def blocks(file):
    """[(names, text)], each text once."""
    names = {}
    for name, text in help.texts(file).items():
        names.setdefault(text, []).append(name)
    return [(n, text) for text, n in names.items()]


def parameters(what, file):
    """Those that a call gives: of a method, all but the first."""
    try:
        found = list(inspect.signature(what).parameters.values())
    except (TypeError, ValueError):  # a value, or one of Python's own
        return []
    return [p for p in found[file == "Tensor" :] if p.name != "self" and not p.name.startswith("_")]


@over("file", FILES)
def test_texts(file):
    """A text is for a name that is there, begins with a sentence, names every argument, and shows an example."""
    wrong = []
    for name, text in help.texts(file).items():
        try:
            what = found(file, name)
        except AttributeError:
            wrong.append(f"{name}: is not there")
            continue
        sentence = text.partition("\n\n")[0]
        if not re.match(r"[A-Z0-9`(].*[.:]$", sentence, re.DOTALL):
            wrong.append(f"{name}: begins with no sentence: {sentence[:50]!r}")
        if max(map(len, text.split("\n"))) > 100 or text.count("\n") > 45:
            wrong.append(f"{name}: is wider than 100 columns, or longer than 45 lines")
        if not callable(what) or isinstance(what, engine.dtype):
            continue
        missing = [p.name for p in parameters(what, file) if not re.search(rf"\b{p.name}\b", text)]
        if missing:
            wrong.append(f"{name}: does not speak of {', '.join(missing)}")
        if ">>> " not in text:
            wrong.append(f"{name}: has no example")
    assert not wrong, "\n".join(wrong)


@over("file", ["engine", "Tensor", "nn", "nn.functional", "linalg"])
def test_texts_of_operations(file):
    """Whoever takes a tensor says which shapes and dtypes, and which errors there are."""
    wrong = []
    for name, text in help.texts(file).items():
        what = found(file, name)
        takes = [p.name for p in parameters(what, file)]
        inserts = name.endswith(".insert")  # its index is a position in a list
        if callable(what) and {"input", "other", "tensors", "index"} & set(takes) and not inserts:
            words = {word for word in ("shape", "dtype", "Error") if not re.search(word, text, re.IGNORECASE)}
            wrong += [f"{name}: says nothing of {word}" for word in sorted(words)]
    assert not wrong, "\n".join(wrong)


@over("file", FILES)
def test_help_shows_the_texts(file):
    """Those of methods that a base class has, and of static and class methods, too."""
    wrong = []
    for name, text in help.texts(file).items():
        what = found(file, name)
        of_its_own = callable(what) and not isinstance(what, engine.dtype) or isinstance(what, property)
        if of_its_own and inspect.getdoc(what) != inspect.cleandoc(text):
            wrong.append(name)
    assert not wrong, wrong


def test_two_files_may_name_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(help, "HERE", tmp_path)
    (tmp_path / "one.md").write_text("# a\nAll.\n\n## x\nThe x.\n\nMore.\n\n## y\n= two.y\n")
    (tmp_path / "two.md").write_text("# b\nOthers.\n\n## x\n= one.x\n\n## y\nThe y.\n")
    assert help.texts("one") == help.texts("two") == {"x": "The x.\n\nAll.\n\nMore.", "y": "The y.\n\nOthers."}


@over("file", FILES)
def test_a_name_has_one_text(file):
    paths = [p for p in Path(help.__file__).parent.glob("*.md") if p.stem.partition("-")[0] == file]
    heads = re.findall(r"(?m)^## (.+)", "\n".join(path.read_text(encoding="utf-8") for path in paths))
    names = [name for head in heads for name in head.split(", ")]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


def told(file, package, skip=()):
    """What the examples of a file print that is not what stands there."""
    report = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    with group_of_one(file, package):
        for names, text in blocks(file):
            if ">>> " in text and names[0] not in skip:
                examples = FINDER.get_examples(text)
                test = doctest.DocTest(examples, {"engine": package}, names[0], None, 0, text)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FutureWarning)  # older names say that they are
                    runner.run(test, out=report.append)
                package.set_grad_enabled(True)
    return "".join(report)


@over("file", FILES)
def test_examples(file):
    assert not (report := told(file, engine)), report


# Examples of names that print something else under PyTorch, and why.
DIFFERENT: dict[str, dict[str, str]] = {
    "engine": {"compile": "it has no code to show, and calls a C++ compiler"},
    "func": {"linearize": "a UserWarning of PyTorch's own, about a graph module"},
}


@over("file", [f for f in FILES if f not in ENGINE_ALONE])
def test_examples_under_pytorch(file):
    torch = pytest.importorskip("torch")
    state = torch.get_rng_state()
    report = told(file, torch, DIFFERENT.get(file, {}))
    torch.set_rng_state(state)
    assert not report, report


@over("file", FILES)
def test_what_is_public_has_a_text(file):
    """Each name that PyTorch has too; ``dir()`` shows no other."""
    torch = pytest.importorskip("torch")
    try:
        theirs = place(file, torch)
    except ImportError:
        return
    exclude = {"math", "warnings", "importlib", "os", "sys", "warn", "inf" * (file != "engine"), "contextmanager"}
    exclude |= {"attention"} if file == "nn" else set()  # a file of ours, another module there
    exclude |= {"serialization"} if file == "engine" else set()  # the file of save and load
    exclude |= {"autocast_mode", "grad_scaler", "dataloader", "dataset", "sampler", "ops"}
    exclude |= {"distributed"} if file in ("nn.parallel", "utils.data") else set()  # files
    exclude |= {"Generator"} if file == "random" else set()
    exclude |= {"functools", "inspect", "Counter", "Iterable", "bisect_right"}
    exclude |= {"Tensor"} if file != "engine" else set()
    exclude |= {"Optimizer"} if file != "optim" else set()
    there = {n for n in vars(place(file)) if not n.startswith("_") and hasattr(theirs, n)} - exclude
    shown = set(help.of_methods() if file == "Tensor" else help.texts(file))
    elsewhere = {n for n in there if getattr(vars(place(file))[n], "__module__", "").startswith("typing")}
    assert not there - shown - elsewhere, sorted(there - shown)


@over("file", ["engine", *MODULES])
def test_dir(file):
    module = place(file)
    assert set(dir(module)) == {n for n in help.texts(file) if "." not in n}
    assert "help" in sys.modules["engine"].__dict__ and "help" not in dir(engine)
