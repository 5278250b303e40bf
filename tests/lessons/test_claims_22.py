"""What lesson 22 says of its two networks and of its transformer, for five seeds and under PyTorch."""

import json
import math
import re

import pytest
from ranks import NO_MPI, in_library, launched

import engine
from course.base.notebooks import ROOT
from course.judging import exercises

pytest.importorskip("sklearn.datasets")

LESSON = (ROOT / "course/lessons/22_capstone/lesson.md").read_text(encoding="utf-8")
CELLS = ["".join(c["source"]) for c in json.loads((ROOT / "notebooks/22_capstone.ipynb").read_bytes())["cells"]]
SEEDS = pytest.mark.parametrize("seed", range(5))


def names_of(*words, library="engine"):
    """What the cells define that hold these words, and the first cell."""
    names = {}
    for word in ("import engine", *words):
        (source,) = [c for c in CELLS if c.startswith(word)] or [c for c in CELLS if word in c and "predict(" not in c]
        exec(in_library(source, library), names)
    return names


@pytest.fixture(scope="module")
def text():
    cells = "from importlib.resources", "starts = ", "class Block", "class Transformer", "def loss_of(model"
    return names_of(*cells, "def new_step")


# Pictures


@pytest.fixture(scope="module")
def pictures():
    cells = "from sklearn.datasets", "def dense", "def train(", "anywhere = engine.zeros", "moved_about = "
    return names_of(*cells)


@pytest.mark.slow
def test_the_convolutional_network_is_better_in_each_run_and_by_far_where_digits_stand_anywhere(pictures):
    middle, anywhere = pictures["in_the_middle"], pictures["moved_about"]
    apart = [min(found["convolutional"]) - max(found["dense"]) for found in (middle, anywhere)]
    assert apart[0] > 1 and apart[1] > 15
    means = {name: sum(found) / 5 for name, found in middle.items()}
    assert round(means["convolutional"] - means["dense"], 1) == 3.0
    differences = [a - b for a in middle["convolutional"] for b in middle["dense"]]
    assert (round(min(differences), 1), round(max(differences), 1)) == (1.7, 4.3)
    assert 18 < (sum(anywhere["convolutional"]) - sum(anywhere["dense"])) / 5 < 24
    assert all(65 < found < 78 for found in anywhere["dense"]) and min(anywhere["convolutional"]) > 90


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "dense", "convolutional"), [(0.001, 52, 65), (0.02, 82, 92)])
def test_a_rate_gives_what_is_said_of_it_and_the_rows_stay_apart(pictures, rate, dense, convolutional):
    (source,) = [c for c in CELLS if c.startswith("def train(")]
    names = dict(pictures)
    exec(source.replace("lr=0.005", f"lr={rate}").partition("\n\n\nin_the_middle")[0], names)
    found = {name: names["five_runs"](names[name], names["anywhere"]) for name in ("dense", "convolutional")}
    assert min(found["convolutional"]) - max(found["dense"]) > 3
    assert abs(sum(found["dense"]) / 5 - dense) < 1 and abs(sum(found["convolutional"]) / 5 - convolutional) < 1


# Text


def test_the_book_is_in_twelve_chapters_of_65_different_characters(text):
    assert len(set(text["book"])) == 65 and text["book"].count("CHAPTER ") == 12
    assert re.search(r"[^\n]\Z", text["book"]) is None and "Gutenberg" not in text["book"]
    assert set(text["book"]) == set(text["book"][: text["starts"][0]])  # nothing new in the last chapters


def test_the_model_has_as_many_numbers_as_the_formula_of_the_exercise(text):
    assert exercises.checks("22").counted(65, 48, 2, 64, 16)[1] == 66_017


@SEEDS
def test_the_loss_begins_at_the_logarithm_and_half_of_the_scores_variance(text, seed):
    model, _ = text["new_model"](seed)
    x, y = text["batch"](text["train_text"])
    scores = model(x)
    expected = math.log(65) + scores.var(dim=-1).mean().item() / 2
    # Letters that occur often may by chance have larger scores than others, or smaller ones.
    assert abs(text["loss_of"](model, x, y).item() - expected) < 0.15
    assert expected - math.log(65) > 0.1


@pytest.mark.slow
@SEEDS
def test_the_transformer_gets_below_pairs_of_letters_in_600_steps(text, seed):
    model, optimizer = text["new_model"](seed)
    step = engine.compile(text["new_step"](model, optimizer), fullgraph=True)
    for _ in range(600):
        step(*text["batch"](text["train_text"]))
    x, y = (text["validation_text"][first : first + 64 * 160].reshape(-1, 64) for first in (0, 1))
    with engine.no_grad():
        loss = text["loss_of"](model, x, y).item()
    assert len(step.entries) == 1
    assert 1.8 < loss < 2.15


def test_half_precision_leaves_three_quarters_of_the_notes_and_the_losses_to_two_digits(text):
    names = text | {"model": text["new_model"]()[0]}
    (source,) = [c for c in CELLS if c.startswith("from engine.autograd.graph")]
    exec(source.rpartition("\n")[0], names)
    whole, half = names["notes"](names["loss_of"]), names["notes"](names["half_loss"])
    assert 6.5e6 < whole < 8e6 and 0.7 < half / whole < 0.8
    steps = (text["new_step"](*text["new_model"](), names[how]) for how in ("loss_of", "half_loss"))
    full, halved = map(text["first_losses"], steps)
    assert max(abs(float(a) - float(b)) for a, b in zip(full, halved, strict=True)) < 0.01


@pytest.mark.slow
def test_the_notes_of_pytorch_are_fewer():
    pytest.importorskip("torch")
    cells = "from importlib.resources", "starts = ", "class Block", "class Transformer", "def loss_of(model"
    names = names_of(*cells, library="torch")
    names["model"], _ = names["new_model"]()
    (source,) = [c for c in CELLS if c.startswith("from engine.autograd.graph")]
    exec(source.replace("from engine", "from torch").rpartition("\n")[0], names)
    found = [names["notes"](names[how]) / 1e6 for how in ("loss_of", "half_loss")]
    assert found == pytest.approx([5.5, 3.5], abs=0.05)


# The file on two ranks, under the engine and under PyTorch


def the_file():
    cells = (
        "import engine",
        "from importlib.resources",
        "starts = ",
        "class Block",
        "class Transformer",
        "def loss_of(model",
    )
    whole = [next(c for c in CELLS if c.startswith(word)) for word in cells]
    (program,) = [block for block in re.findall(r"```python\n(.*?)```", LESSON, re.DOTALL) if "rank::ranks" in block]
    quiet = [re.sub(r"(?m)^(    )?print\(.*\n?|^for row in .*\n", "", c) for c in whole]
    return "\n".join([*quiet, program])


def printed_losses():
    (found,) = [c for c in json.loads((ROOT / "notebooks/22_capstone.ipynb").read_bytes())["cells"]
                if "".join(c["source"]).startswith("def new_step")]  # fmt: skip
    return "".join(found["outputs"][0]["text"]).split()


@pytest.mark.skipif(bool(NO_MPI), reason=NO_MPI)
def test_the_file_prints_the_losses_of_the_lesson_on_two_ranks(tmp_path):
    assert launched("engine", 2, the_file(), tmp_path).split() == printed_losses()


@pytest.mark.slow
def test_the_file_prints_them_under_torchrun(tmp_path):
    pytest.importorskip("torch")
    assert launched("torch", 2, in_library(the_file(), "torch"), tmp_path).split() == printed_losses()
