"""LBFGS beside PyTorch's: the same moves, the same number of looks at the loss, the same state."""

import pytest

import engine

OPTIONS = [
    {},
    {"lr": 0.1},
    {"history_size": 2, "max_iter": 9},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "lr": 0.05, "history_size": 3},
    {"line_search_fn": "strong_wolfe", "max_iter": 4, "lr": 0.01},  # too few evaluations for the searches
    {"max_eval": 3},
    {"tolerance_grad": 0.5},
]


def rosenbrock(library, options, steps=3):
    """(the way, the optimizer, its state) on the banana-shaped valley with its minimum at (1, 1)."""
    x = library.tensor([-1.2, 1.0], dtype=library.float64, requires_grad=True)
    optimizer = library.optim.LBFGS([x], **options)

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    way = [[optimizer.step(closure).item(), *x.tolist()] for _ in range(steps)]
    return way, optimizer, optimizer.state[x]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_way_through_the_valley_is_pytorchs(options):
    torch = pytest.importorskip("torch")
    mine, theirs = (rosenbrock(library, options) for library in (engine, torch))
    for a, b in zip(mine[0], theirs[0], strict=True):  # rounding doubles from move to move
        assert a == pytest.approx(b, rel=1e-5, abs=1e-9)
    assert repr(mine[1]) == repr(theirs[1])
    assert sorted(mine[2]) == sorted(theirs[2])
    for name in ("n_iter", "func_evals"):
        assert mine[2][name] == theirs[2][name]


def test_a_line_search_finds_the_minimum():
    way, _, state = rosenbrock(engine, {"line_search_fn": "strong_wolfe"}, steps=8)
    assert way[-1][1:] == pytest.approx([1.0, 1.0], rel=1e-4)
    assert state["func_evals"] < 150


def test_a_linear_model_is_fitted_to_the_last_digit():
    engine.manual_seed(0)
    x, model = engine.randn(20, 3), engine.nn.Linear(3, 1)
    y = x @ engine.tensor([[1.0], [-2.0], [0.5]]) + 3
    optimizer = engine.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = engine.nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    first = optimizer.step(closure)
    assert first > 1 > 1e-8 > closure()
    assert model.bias.item() == pytest.approx(3.0, abs=1e-3)


def test_a_closure_may_return_a_number_and_the_rate_be_a_tensor():
    torch = pytest.importorskip("torch")

    def way(library, search):
        x = library.tensor([3.0, -1.0], dtype=library.float64, requires_grad=True)
        optimizer = library.optim.LBFGS([x], lr=library.tensor([0.5]), max_iter=3, line_search_fn=search)

        def closure():
            optimizer.zero_grad()
            loss = ((x - 1) ** 4).sum()
            loss.backward()
            return loss.item()

        return [optimizer.step(closure) for _ in range(3)] + x.tolist()

    for search in (None, "strong_wolfe"):
        assert way(engine, search) == pytest.approx(way(torch, search), rel=1e-5)


def test_a_saved_state_goes_on_as_if_nothing_had_been():
    def program(saved):
        x = engine.tensor([-1.2, 1.0], dtype=engine.float64, requires_grad=True)
        optimizer = engine.optim.LBFGS([x], max_iter=5)

        def closure():
            optimizer.zero_grad()
            loss = ((x - 2) ** 4).sum() + (x[0] * x[1]) ** 2
            loss.backward()
            return loss

        optimizer.step(closure)
        if saved:
            state, optimizer = optimizer.state_dict(), engine.optim.LBFGS([x], max_iter=5)
            optimizer.load_state_dict(state)
        optimizer.step(closure)
        return x.tolist()

    assert program(True) == program(False)


def test_wrong_options():
    x = engine.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        engine.optim.LBFGS([x], lr=-1)
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        engine.optim.LBFGS([{"params": [x]}, {"params": [engine.ones(1)]}])
    optimizer = engine.optim.LBFGS([x])
    optimizer.add_param_group({"params": [engine.ones(1)]})
    with pytest.raises(AssertionError, match="Expected exactly one param_group, but got 2"):
        optimizer.step(lambda: x.sum())
    optimizer = engine.optim.LBFGS([x], line_search_fn="backtracking")

    def closure():
        loss = (x**2).sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure)
