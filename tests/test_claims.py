"""What the lessons say of an experiment, over several seeds: one test a claim."""

import pytest

import engine

SEEDS = range(5)


# --- 04


def test_a_nudge_of_a_millionth_is_good_for_plain_numbers_and_useless_for_tensors():
    def off(x):
        slope = ((x + 1e-6) ** 2 + 3 * (x + 1e-6) + 5 - (x**2 + 3 * x + 5)) / 1e-6
        return abs(float(slope) - 2 * float(x) - 3) / (2 * float(x) + 3)

    starts = [1 + 3 * engine.rand(1, generator=engine.Generator().manual_seed(seed)).item() for seed in SEEDS]
    assert all(off(start) < 1e-6 for start in starts)
    assert max(off(engine.tensor(start)) for start in starts) > 0.02


@pytest.mark.parametrize("start", [-3.0, 0.5, 4.0])
def test_up_to_a_rate_of_one_half_the_walk_stays_on_its_side_and_from_1_on_it_never_rests(start):
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


# --- 08


@pytest.mark.parametrize("seed", SEEDS)
def test_detach_decides_what_teacher_and_student_learn_and_the_loss_does_not_tell(seed):
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


@pytest.mark.parametrize("seed", range(4))
def test_of_three_networks_with_five_examples_the_frozen_one_is_best_and_the_new_one_worst(seed):
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
