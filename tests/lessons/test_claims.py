"""What the lessons claim of an experiment: it holds for other seeds, too."""

import math
import re
import sys
import warnings

import numpy as np
import pytest

import engine
from course.base.notebooks import ROOT
from engine.viz import graph

SEEDS = range(5)


# 00, welcome


def test_00_the_core_is_about_a_thousand_lines_long():
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "engine/core").glob("*.py"))
    assert 900 <= lines <= 1200


# 01, tensors


def test_01_a_number_in_a_list_takes_32_bytes_and_one_in_a_tensor_4():
    numbers = [float(n) for n in range(1000)]
    empty = sys.getsizeof([])
    assert (sys.getsizeof(numbers) - empty) / 1000 + sys.getsizeof(numbers[1]) == pytest.approx(32, abs=2)
    assert engine.tensor(numbers).element_size() == 4


def test_01_what_is_written_into_the_small_picture_is_every_second_point_of_line_6():
    picture = engine.ones(9, 12)
    picture[::2, ::2][3] = 0.0
    wanted = engine.ones(9, 12)
    wanted[6, ::2] = 0.0
    assert engine.equal(picture, wanted)


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


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_02_contiguous_is_the_order_of_reading_without_gaps(name):
    lib = pytest.importorskip(name)
    x = lib.arange(12)
    table = x.reshape(3, 4)
    made = [
        x,
        table,
        x[2:8],
        table[1:],
        x[::2],
        table.T,
        table[:, :2],
        table.T.clone(),
        table.T.contiguous(),
        x[::2].clone(),
    ]
    assert [t.is_contiguous() for t in made] == 4 * [True] + 4 * [False] + 2 * [True]
    assert table.contiguous().data_ptr() == table.data_ptr()
    for t in made:
        for shape in [(t.numel(),), (2, -1), (-1, 1, 2)]:
            assert not t.is_contiguous() or t.view(shape).data_ptr() == t.data_ptr()


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_02_contiguous_and_view_copy_where_reshape_need_not(name):
    lib = pytest.importorskip(name)
    part = lib.arange(12).reshape(3, 4)[:, :2]
    assert part.reshape(3, 2, 1).data_ptr() == part.data_ptr() == part.view(3, 2, 1).data_ptr()
    assert part.contiguous().view(3, 2, 1).data_ptr() != part.data_ptr()
    assert part.contiguous().view(3, 2, 1).tolist() == part.reshape(3, 2, 1).tolist()


def test_the_tensor_of_exercise_2_2_has_15_lines():
    text = (ROOT / "course/lessons/02_shapes/exercises.md").read_text(encoding="utf-8")
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


# 04


def test_04_a_nudge_of_a_millionth_is_good_for_plain_numbers_and_useless_for_tensors():
    def off(x):
        slope = ((x + 1e-6) ** 2 + 3 * (x + 1e-6) + 5 - (x**2 + 3 * x + 5)) / 1e-6
        return abs(float(slope) - 2 * float(x) - 3) / (2 * float(x) + 3)

    starts = [1 + 3 * engine.rand(1, generator=engine.Generator().manual_seed(seed)).item() for seed in SEEDS]
    assert all(off(start) < 1e-6 for start in starts)
    assert max(off(engine.tensor(start)) for start in starts) > 0.02


def test_04_a_nudge_of_1e_15_is_itself_rounded_and_gives_a_slope_as_poor_as_one_of_a_tenth():
    def slope(nudge):
        return ((2 + nudge) ** 2 + 3 * (2 + nudge) + 5 - 15) / nudge

    assert f"{2 + 1e-15 - 2:.2g}" == "8.9e-16"
    assert 0.1 < abs(slope(1e-15) - 7) < 0.11 and 0.09 < abs(slope(0.1) - 7) < 0.11
    assert abs(slope(1e-6) - 7) < 1e-5


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_04_a_walk_that_flies_off_shows_infinity_once_and_then_nan(name):
    lib = pytest.importorskip(name)
    x = lib.tensor(4.0, requires_grad=True)
    seen = []
    for _ in range(600):
        (x**2 + 3 * x + 5).backward()
        with lib.no_grad():
            x -= 1.1 * x.grad
        x.grad = None
        seen.append(x.item())
    broken = [position for position in seen if not math.isfinite(position)]
    assert math.isinf(broken[0]) and len(broken) > 100 and all(map(math.isnan, broken[1:]))


@pytest.mark.parametrize("start", [-3.0, 0.5, 4.0])
def test_04_up_to_a_rate_of_one_half_the_walk_stays_on_its_side_and_from_1_on_it_never_rests(start):
    def ends(rate):
        x = engine.tensor(start, requires_grad=True)
        crossed = False
        for _ in range(60):
            (x**2 + 3 * x + 5).backward()
            with engine.no_grad():
                x -= rate * x.grad
            x.grad = None
            crossed |= (x.item() + 1.5) * (start + 1.5) < -1e-6
        return crossed, abs(x.item() + 1.5)

    assert [ends(rate)[0] for rate in (0.1, 0.5, 0.55, 0.95)] == [False, False, True, True]
    assert ends(0.1)[1] < 1e-3 and ends(0.95)[1] < 0.02
    assert ends(1.0)[1] == pytest.approx(abs(start + 1.5)) and ends(1.05)[1] > 10 * abs(start + 1.5)


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


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_06_a_leaf_that_the_result_was_not_computed_from_gets_no_gradient(name):
    lib = pytest.importorskip(name)
    used, unused = (lib.tensor(2.0, requires_grad=True) for _ in range(2))
    (used * used).backward()
    assert used.grad.item() == 4 and unused.grad is None


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_06_autograd_grad_uses_up_the_notes_and_an_optimizer_refuses_results_alone(name):
    lib = pytest.importorskip(name)
    x = lib.tensor(3.0, requires_grad=True)
    h = x * x
    y = 2 * h + 1
    lib.autograd.grad(y, h)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    with pytest.raises(ValueError, match="non-leaf"):
        lib.optim.SGD([x * 1], lr=0.1)
    data = lib.tensor(1.0)
    lib.optim.SGD([data], lr=0.1).step()
    assert data.item() == 1


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_06_the_layer_refuses_a_lost_knob_and_its_to_keeps_leaves(name):
    lib = pytest.importorskip(name)
    layer = lib.nn.Linear(3, 1)
    with pytest.raises(TypeError, match="cannot assign"):
        layer.weight = lib.nn.Parameter(lib.randn(1, 3)) * 0.1
    assert not lib.nn.Parameter(lib.ones(2)).to(lib.float64).is_leaf
    assert all(p.is_leaf and p.requires_grad for p in layer.to(lib.float64).parameters())


@pytest.mark.parametrize("name, filled", [("engine", None), ("torch", 5.0)])
def test_06_what_a_walk_that_stops_halfway_leaves_behind(name, filled):
    lib = pytest.importorskip(name)

    def stop(arriving):
        raise ValueError

    a, x = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    h = x * 2
    h.register_hook(stop)
    with pytest.raises(ValueError):
        (h * 1 + a * 5).backward()
    assert (a.grad if a.grad is None else a.grad.item()) == filled


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


def test_07_the_slope_of_round_two_counts_the_first_state_only_where_its_notes_are_kept():
    def second_slope(cut):
        w = engine.tensor(1.5, requires_grad=True)
        first = (w * 1.0).tanh()
        loss = ((w * (first.detach() if cut else first) + 0.5).tanh() - 0.5) ** 2
        return engine.autograd.grad(loss, w)[0].item()

    through_the_first = 1.5 * (1 - math.tanh(1.5) ** 2) / math.tanh(1.5)
    assert second_slope(cut=False) == pytest.approx(second_slope(cut=True) * (1 + through_the_first))


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


# 08


@pytest.mark.parametrize("seed", SEEDS)
def test_08_detach_decides_what_teacher_and_student_learn_and_the_loss_does_not_tell(seed):
    engine.manual_seed(seed)
    begins, x = engine.randn(2), 1 + engine.rand(3)
    for cut in (False, True):
        teacher, student = (t.clone().requires_grad_() for t in begins)
        for _ in range(200):
            target = teacher * x
            loss = ((student * x - (target.detach() if cut else target)) ** 2).mean()
            loss.backward()
            with engine.no_grad():
                for knob in (teacher, student):
                    if knob.grad is not None:
                        knob -= 0.05 * knob.grad
                        knob.grad = None
        meet = begins[0] if cut else begins.mean()
        assert loss.item() < 1e-8
        assert engine.allclose(teacher, meet, atol=1e-4) and engine.allclose(student, meet, atol=1e-4)


@pytest.mark.parametrize("name", ["engine", "torch"])
@pytest.mark.parametrize(
    ("activation", "kept"),
    [(kind, (6, 4, 6)) for kind in ("Tanh", "ReLU", "Sigmoid")] + [(kind, (11, 6, 8)) for kind in ("GELU", "SiLU")],
)
def test_08_what_freezing_saves_at_the_front_and_at_the_back(name, activation, kept):
    lib = pytest.importorskip(name)
    found = []
    for frozen in (slice(0), slice(0, 6), slice(6, 12)):
        layers = [part for _ in range(6) for part in (lib.nn.Linear(8, 8), getattr(lib.nn, activation)())]
        model, x, saved = lib.nn.Sequential(*layers), lib.ones(5, 8), {}
        model[frozen].requires_grad_(False)
        there = {t.data_ptr() for t in (x, *model.parameters())}
        with lib.autograd.graph.saved_tensors_hooks(lambda t: saved.setdefault(t.data_ptr(), t), lambda t: t):  # noqa: B023
            model(x)
        found.append(len(set(saved) - there))
    assert tuple(found) == kept


@pytest.mark.parametrize("seed", range(4))
def test_08_of_three_networks_with_five_examples_the_frozen_one_is_best_and_the_new_one_worst(seed):
    xs = engine.linspace(-2, 2, 41).reshape(-1, 1)
    wave, few = engine.sin(2 * xs), slice(4, None, 8)
    other = 1.5 * wave + 0.5

    def new_network():
        return [engine.randn(1, 16) * 2, engine.randn(16), engine.randn(16, 1) * 0.3]

    def guess(x, network):
        return engine.tanh(x @ network[0] + network[1]) @ network[2]

    def train(network, x, y, steps, first=0):
        for p in network[first:]:
            p.requires_grad_()
        for _ in range(steps):
            ((guess(x, network) - y) ** 2).mean().backward()
            with engine.no_grad():
                for p in network[first:]:
                    p -= 0.1 * p.grad
                    p.grad = None
        with engine.no_grad():
            answers = guess(xs, network)
            return ((answers - other)[few] ** 2).mean().item(), ((answers - other) ** 2).mean().item()

    engine.manual_seed(seed)
    trained = new_network()
    train(trained, xs, wave, 2000)
    scratch = train(new_network(), xs[few], other[few], 200)
    tuned = train([p.detach().clone() for p in trained], xs[few], other[few], 200)
    frozen = train([p.detach().clone() for p in trained], xs[few], other[few], 200, first=2)
    assert max(on_five for on_five, _ in (scratch, tuned, frozen)) < 0.005
    assert frozen[1] < tuned[1] < scratch[1] / 3


# 09


@pytest.mark.parametrize("seed", SEEDS)
def test_09_the_reader_of_any_length_learns_to_keep_all_and_to_take_all(seed):
    engine.manual_seed(seed)
    knobs = [engine.tensor(0.5, requires_grad=True) for _ in range(2)]
    for _ in range(301):
        numbers, state = engine.randn(engine.randint(1, 6, (1,)).item()), engine.tensor(0.0)
        for number in numbers:
            state = knobs[0] * state + knobs[1] * number
        ((state - numbers.sum()) ** 2).backward()
        with engine.no_grad():
            for knob in knobs:
                if knob.grad is not None:
                    knob -= 0.02 * knob.grad
                    knob.grad = None
    assert [knob.item() for knob in knobs] == pytest.approx([1.0, 1.0], abs=0.02)


@pytest.mark.parametrize("name", ["engine", "torch"])
@pytest.mark.filterwarnings("ignore")
def test_09_python_takes_the_number_out_without_a_word_and_numpy_refuses(name):
    lib = pytest.importorskip(name)
    x = lib.tensor(3.0, requires_grad=True)
    for silent in (x.item, lambda: float(x), lambda: int(x), x.tolist, lambda: math.sqrt(x)):
        assert isinstance(silent(), int | float)
    for refusing in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(RuntimeError, match="detach"):
            refusing()


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_09_a_gradient_is_mended_before_the_square_root_and_not_after_it(name):
    lib = pytest.importorskip(name)

    def slope(mended_before):
        x = lib.tensor([4.0, 0.0], requires_grad=True)
        inside = lib.where(x > 0, x, lib.ones(2)) if mended_before else x
        y = lib.where(x > 0, inside.sqrt(), 0 * x)
        lib.where(x > 0, y, 0 * x).sum().backward()
        return x.grad[1].item()

    assert slope(mended_before=True) == 0
    assert slope(mended_before=False) != slope(mended_before=False)  # nan


# 10


@pytest.mark.parametrize("seed", SEEDS)
def test_10_columns_of_the_softmax_table_add_up_to_0_and_cumsum_fills_a_triangle(seed):
    engine.manual_seed(seed)
    x = engine.randn(4, dtype=engine.float64)
    assert engine.func.jacrev(lambda x: x.softmax(0))(x).sum(0).abs().max() < 1e-12
    assert engine.equal(engine.func.jacrev(lambda x: x.cumsum(0))(x), engine.ones(4, 4, dtype=x.dtype).tril())


@pytest.mark.parametrize("seed", SEEDS)
def test_10_going_back_twice_is_going_forward_and_the_rows_of_eye_give_the_table(seed):
    engine.manual_seed(seed)
    m, x, u = engine.randn(3, 4), engine.randn(4), engine.randn(4)

    def f(x):
        return (m @ x).tanh()

    at, v = x.clone().requires_grad_(), engine.zeros(3, requires_grad=True)
    (passed_on,) = engine.autograd.grad(f(at), at, v, create_graph=True)
    (twice_back,) = engine.autograd.grad(passed_on, v, u)
    assert engine.allclose(twice_back, engine.func.jvp(f, (x,), (u,))[1], atol=1e-6)
    rows = engine.func.vmap(engine.func.vjp(f, x)[1])(engine.eye(3))[0]
    assert engine.allclose(rows, engine.func.jacrev(f)(x))


@pytest.mark.parametrize("name", ["engine", "torch"])
@pytest.mark.parametrize("seed", SEEDS)
def test_10_what_arrives_at_the_ball_times_its_table_is_the_gradient_of_the_aim(name, seed):
    lib = pytest.importorskip(name)

    def ball(p):
        t, a, b = p
        return lib.stack([a * t, b * t - t * t, b - t - t])

    def aim(p):
        return ((ball(p)[:2] - place) ** 2).sum()

    p = lib.from_numpy(np.random.default_rng(seed).normal(size=3))
    place = lib.ones(2, dtype=p.dtype)
    t, a, b = p.tolist()
    table = lib.tensor([[a, t, 0], [b - 2 * t, 0, t], [-2, 0, 1]], dtype=p.dtype)
    assert lib.allclose(lib.func.jacrev(ball)(p), table)
    arriving = lib.cat([2 * (ball(p)[:2] - place), lib.zeros(1, dtype=p.dtype)])
    assert lib.allclose(lib.func.grad(aim)(p), arriving @ table)
    assert lib.allclose(lib.func.hessian(aim)(p), lib.func.hessian(aim)(p).T)


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_10_adams_second_number_is_no_second_derivative(name):
    lib = pytest.importorskip(name)
    x = lib.tensor(1.0, requires_grad=True)
    adam = lib.optim.Adam([x], lr=0.1)
    (3 * x).backward()  # a straight line: the second derivative is 0
    adam.step()
    assert adam.state[x]["exp_avg_sq"].item() == pytest.approx(0.001 * 3**2)


@pytest.mark.parametrize("seed", SEEDS)
def test_10_newton_finds_the_bottom_of_a_true_bowl_in_one_step(seed):
    engine.manual_seed(seed)
    p = engine.randn(2, dtype=engine.float64)

    def bowl(p):
        return p[0] ** 2 + 10 * p[1] ** 2 + 3 * p[0] * p[1]

    step = engine.linalg.solve(engine.func.hessian(bowl)(p), engine.func.grad(bowl)(p))
    assert (p - step).abs().max() < 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_11_eight_hidden_numbers_learn_exclusive_or(seed):
    engine.manual_seed(seed)
    knobs = [engine.randn(*shape).requires_grad_() for shape in [(2, 8), (8,), (8, 1), (1,)]]
    inputs = engine.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    w1, b1, w2, b2 = knobs
    for _ in range(301):
        loss = (((inputs @ w1 + b1).tanh() @ w2 + b2 - engine.tensor([[0.0], [1.0], [1.0], [0.0]])) ** 2).sum()
        with engine.no_grad():
            for v, slope in zip(knobs, engine.autograd.grad(loss, knobs), strict=True):
                v -= 0.03 * slope
    assert loss < 0.01


def valley(p):
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


def test_10_the_largest_rate_that_holds_is_slower_in_the_valley_than_newton():
    def walk(rate):
        p = engine.tensor([-1.0, 1.5], dtype=engine.float64)
        for _ in range(1000):
            p = p - rate * engine.func.grad(valley)(p)
        return p

    assert abs(walk(0.0025) - 1).max() > 0.1
    assert not walk(0.003).isfinite().all()
    p = engine.tensor([-1.0, 1.5], dtype=engine.float64)
    for _ in range(5):
        p = p - engine.linalg.solve(engine.func.hessian(valley)(p), engine.func.grad(valley)(p))
    assert abs(p - 1).max() < 5e-5
