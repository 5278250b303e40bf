"""What the lessons claim of an experiment: it holds for other seeds, too."""

import re
import warnings

import pytest

import engine
from course.notebooks import ROOT
from engine.viz import graph

SEEDS = range(5)


# 02, shapes


@pytest.mark.parametrize("seed", SEEDS)
def test_predictions_in_a_column_beside_answers_in_a_row_learn_the_mean_of_all_answers(seed):
    engine.manual_seed(seed)
    answers = 10 * engine.rand(6)
    predictions = engine.randn(6, 1, requires_grad=True)
    for _ in range(200):
        loss = ((predictions - answers) ** 2).mean()
        (slopes,) = engine.autograd.grad(loss, predictions)
        with engine.no_grad():
            predictions -= slopes
    assert engine.allclose(predictions.detach(), answers.mean().expand(6, 1), atol=1e-3)


def test_view_refuses_the_clone_of_what_it_refuses():
    table = engine.arange(12).reshape(3, 4)
    said = []
    for refusing in (table.T, table.T.clone()):
        with pytest.raises(RuntimeError) as error:
            refusing.view(12)
        said.append(str(error.value))
    assert said[0] == said[1]
    assert table.T.contiguous().view(12).tolist() == table.T.reshape(12).tolist()


def test_the_tensor_of_exercise_2_2_has_15_lines():
    text = (ROOT / "source/solutions/02_shapes.md").read_text(encoding="utf-8")
    (cell,) = re.findall(r"(?ms)^class Tiny:\n.*?(?=^```)", text)
    lines = [line.strip() for line in cell.splitlines()]
    assert len([line for line in lines if line and not line.startswith(("###", '"""'))]) == 15


def points(seed, dtype=engine.float64):
    """Five points near a line that does not go through 0."""
    engine.manual_seed(seed)
    xs = engine.arange(5.0, dtype=dtype)
    return xs, 2 * xs + 1 + 0.1 * engine.randn(5, dtype=dtype)


def fit(tilt, height, xs, ys):
    """Lesson 06's careful loop; the last loss."""
    for _ in range(201):
        loss = ((tilt * xs + height - ys) ** 2).mean()
        loss.backward()
        for knob in (tilt, height):
            if knob.grad is not None:
                with engine.no_grad():
                    knob -= 0.05 * knob.grad
                knob.grad = None
    return loss.item()


# 06


@pytest.mark.parametrize("seed", SEEDS)
def test_06_a_line_with_a_lost_knob_gets_better_but_not_as_good_as_it_could(seed):
    xs, ys = points(seed)
    tilt = engine.tensor(0.0, dtype=engine.float64, requires_grad=True)
    lost = engine.tensor(0.0, requires_grad=True).to(engine.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        worse = fit(tilt, lost, xs, ys)
    tilt, height = (engine.tensor(0.0, dtype=engine.float64, requires_grad=True) for _ in range(2))
    better = fit(tilt, height, xs, ys)
    assert 5 * better < worse < 0.1 * (ys**2).mean().item()
    assert lost.item() == 0 and not lost.is_leaf


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_06_a_leaf_is_what_no_operation_made_since_it_was_asked(name):
    lib = pytest.importorskip(name)
    x = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        quiet = x * x
    no_note = [lib.randn(3) * 0.1, x > 1, quiet, (x * x).detach(), (lib.randn(3) * 0.1).requires_grad_(), x.to(x.dtype)]
    noted = [x * x, x + 0, x * 0.1, x.to(lib.float64)]
    assert all(t.is_leaf and t.grad_fn is None for t in no_note)
    assert not any(t.is_leaf or t.grad_fn is None for t in noted)


# 07


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_07_a_lost_knob_that_was_multiplied_stops_the_second_round(name):
    lib = pytest.importorskip(name)
    w = lib.ones(3, requires_grad=True) * 0.1
    (w * w).sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        (w * w).sum().backward()


@pytest.mark.parametrize("seed", SEEDS)
def test_07_halves_that_are_not_divided_give_twice_the_gradient(seed):
    xs, ys = points(seed)
    w = engine.tensor(0.5, dtype=engine.float64, requires_grad=True)
    loss = lambda part: ((w * xs[part] - ys[part]) ** 2).mean()  # noqa: E731
    (whole,) = engine.autograd.grad(loss(slice(0, 4)), w)
    halves = sum(engine.autograd.grad(loss(part), w)[0] for part in (slice(0, 2), slice(2, 4)))
    assert halves.item() == pytest.approx(2 * whole.item())


def test_07_every_round_leaves_four_nodes_behind_a_total_of_losses():
    w, total = engine.tensor(0.5, requires_grad=True), 0.0
    for rounds in range(1, 6):
        loss = (w * 2 - 3) ** 2
        loss.backward()
        total = total + loss
        assert f"{4 * rounds} operations, 1 leaf" in graph(total).summary


@pytest.mark.parametrize("seed", SEEDS)
def test_07_a_state_that_is_not_cut_fails_in_the_second_round_and_one_that_is_cut_does_not(seed):
    engine.manual_seed(seed)
    numbers = engine.randn(4).tolist()

    def read(cut):
        w, state = engine.tensor(1.5, requires_grad=True), engine.tensor(1.0)
        for rounds, number in enumerate(numbers):
            state = (w * state + number).tanh()
            try:
                ((state - 0.5) ** 2).backward()
            except RuntimeError:
                return rounds
            if cut:
                state = state.detach()
        return len(numbers)

    assert (read(cut=False), read(cut=True)) == (1, 4)
