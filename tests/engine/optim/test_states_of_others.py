"""A state is taken over, or refused, where and in the words that PyTorch has: of another kind or size, or none."""

import copy
import warnings

import pytest
from against_torch import cases
from test_modules import library

STEPS = {  # objects with a state, each after the steps that fill it; x: a parameter with a gradient
    "SGD": "optim.SGD([x], lr=0.1)",
    "SGD with momentum": "optim.SGD([x], lr=0.1, momentum=0.9, nesterov=True)",
    "Adam": "optim.Adam([x], lr=0.1, weight_decay=0.1)",
    "AMSGrad": "optim.Adam([x], lr=0.1, amsgrad=True)",
    "AdamW": "optim.AdamW([x], lr=0.1)",
    "RMSprop": "optim.RMSprop([x], lr=0.1)",
    "centered RMSprop": "optim.RMSprop([x], lr=0.1, momentum=0.9, centered=True)",
    "Adagrad": "optim.Adagrad([x], lr=0.1)",
    "LBFGS": "optim.LBFGS([x], lr=0.1, max_iter=3)",
    "LambdaLR": "lr.LambdaLR(o, Power())",
    "MultiplicativeLR": "lr.MultiplicativeLR(o, lambda n: 0.9)",
    "StepLR": "lr.StepLR(o, 2)",
    "MultiStepLR": "lr.MultiStepLR(o, [1, 3])",
    "LinearLR": "lr.LinearLR(o)",
    "PolynomialLR": "lr.PolynomialLR(o)",
    "CosineAnnealingLR": "lr.CosineAnnealingLR(o, 5)",
    "CosineAnnealingWarmRestarts": "lr.CosineAnnealingWarmRestarts(o, 3)",
    "OneCycleLR": "lr.OneCycleLR(o, 1.0, total_steps=20)",
    "CyclicLR": "lr.CyclicLR(o, 0.1, 1.0)",
    "ReduceLROnPlateau": "lr.ReduceLROnPlateau(o, patience=1)",
    "SequentialLR": "lr.SequentialLR(o, [lr.ConstantLR(o), lr.StepLR(o, 1)], [2])",
    "ChainedScheduler": "lr.ChainedScheduler([lr.ConstantLR(o), lr.StepLR(o, 1)])",
    "GradScaler": "torch.amp.GradScaler('cpu')",
}
OPTIMIZERS, SCHEDULERS = [*STEPS][:9], [*STEPS][9:22]


class Power:
    """A function of the epoch that is saved with its scheduler."""

    base = 0.9

    def __call__(self, n):
        return self.base**n


def error_of(e):
    """Type and first sentence."""
    kind = next(k for k in type(e).__mro__ if k.__module__ == "builtins")
    return kind.__name__, str(e).split(". ")[0].split("\n")[0]


class Trained:
    """One of the objects above, after some steps, in one of the libraries."""

    def __init__(self, torch, kind, steps=2, size=2, groups=1):
        self.torch, self.x = torch, torch.nn.Parameter(torch.arange(1.0, size + 1))
        others = [torch.nn.Parameter(torch.ones(1)) for _ in range(groups - 1)]
        self.o = torch.optim.SGD([{"params": [p]} for p in (self.x, *others)], lr=0.1, momentum=0.9)
        names = {"torch": torch, "optim": torch.optim, "lr": torch.optim.lr_scheduler, "x": self.x, "o": self.o}
        self.made = eval(STEPS[kind], {**names, "Power": Power})
        self.run(steps)

    def closure(self):
        self.x.grad = None
        loss = ((self.x - 3) ** 2).sum()
        (self.made.scale(loss) if hasattr(self.made, "scale") else loss).backward()
        return loss

    def run(self, steps):
        """Go on, and say where that leads."""
        for _ in range(steps):
            self.closure()
            if hasattr(self.made, "scale"):
                self.made.step(self.o)
                self.made.update()
            elif hasattr(self.made, "optimizer"):
                self.made.optimizer.step()
                self.made.step(*[1.0] * (type(self.made).__name__ == "ReduceLROnPlateau"))
            else:
                self.made.step(self.closure)

    def taking(self, state, steps=2):
        """Where a state leads: the numbers after some steps, or the error and what raised it."""
        try:
            self.made.load_state_dict(state)
        except Exception as e:
            return "load", *error_of(e)
        try:
            self.run(steps)
        except Exception as e:
            return "step", *error_of(e)
        rates = self.made.get_last_lr() if hasattr(self.made, "optimizer") else [g["lr"] for g in groups_of(self.made)]
        return [round(float(number), 4) for number in (*rates, *self.x.tolist())]


def groups_of(made):
    return getattr(made, "param_groups", ())


def table(name, kinds, steps=2):
    torch = library(name)["torch"]
    found = {}
    for a in kinds:
        state = Trained(torch, a, steps).made.state_dict()
        for b in kinds:
            found[a, b] = Trained(torch, b, 0).taking(copy.deepcopy(state))
    return found


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("kinds", [OPTIMIZERS, [*SCHEDULERS, "GradScaler", "SGD"]], ids=["optimizers", "schedulers"])
def test_the_state_of_any_other_kind(kinds, steps):
    pytest.importorskip("torch")
    assert table("engine", kinds, steps) == table("torch", kinds, steps)


def test_what_a_state_of_another_kind_raises():
    found = table("engine", OPTIMIZERS)
    expected = {
        ("Adam", "SGD"): ("step", "KeyError", "'momentum'"),
        ("RMSprop", "SGD"): ("step", "KeyError", "'dampening'"),
        ("SGD", "Adam"): ("step", "KeyError", "'betas'"),
        ("SGD with momentum", "Adam"): ("load", "KeyError", "'step'"),
        ("Adagrad", "RMSprop"): ("step", "KeyError", "'square_avg'"),
        ("Adam", "Adagrad"): ("step", "KeyError", "'sum'"),
        ("Adam", "LBFGS"): ("step", "KeyError", "'max_iter'"),
    }
    assert {pair: found[pair] for pair in expected} == expected
    relatives = [{"SGD", "SGD with momentum"}, {"Adam", "AMSGrad", "AdamW"}, {"RMSprop", "centered RMSprop"}]
    for (a, b), result in found.items():
        assert (type(result) is list) == (a == b or {a, b} in relatives or {a, b} <= relatives[1]), (a, b)


def without(state, key, where):
    changed = copy.deepcopy(state)
    del (changed["state"][0] if where == "state" else changed["param_groups"][0])[key]
    return changed


def faults(name, kind):
    """What becomes of states with one thing missing, of another shape, and of what is none."""
    torch = library(name)["torch"]
    state = Trained(torch, kind).made.state_dict()
    found = {}
    for where, keys in (("state", state["state"].get(0, ())), ("group", state["param_groups"][0])):
        for key in set(keys) - {"H_diag"}:  # there the words are mul()'s
            found[where, key] = Trained(torch, kind, 0).taking(without(state, key, where))
    for size in (1, 3):
        found["size", size] = Trained(torch, kind, 0).taking(Trained(torch, kind, size=size).made.state_dict())
    found["size of one"] = Trained(torch, kind, 0, size=1).taking(state)
    found["state", "empty"] = Trained(torch, kind, 0).taking({**state, "state": {}})
    for i, value in enumerate([{0: {}}, {0: {"step": 4}}, {7: {"step": 4}}, {0: {"mine": 1}}, []]):
        found["state", i] = Trained(torch, kind, 0).taking({**state, "state": value})
    for value in (None, 5, "text", [], {}, {"state": {}}, {"param_groups": [{}], "state": {}}):
        found[str(value)] = Trained(torch, kind, 0).taking(value)
    for key in state["state"].get(0, ()):  # lost between two steps
        trained = Trained(torch, kind)
        del trained.made.state[trained.x][key]
        found["lost", key] = trained.taking(trained.made.state_dict())
    return found


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_state_that_is_damaged(kind):
    pytest.importorskip("torch")
    assert faults("engine", kind) == faults("torch", kind)


def test_a_state_of_another_shape_is_not_stretched():
    assert faults("engine", "Adam")["size", 1] == (
        "step", "RuntimeError", "output with shape [1] doesn't match the broadcast shape [2]",
    )  # fmt: skip


def test_an_option_switched_on_between_steps_lacks_its_state():
    for name in ("torch", "engine"):
        if name == "torch":
            pytest.importorskip("torch")
        torch = library(name)["torch"]
        for kind, option, missing in (
            ("Adam", {"amsgrad": True}, "max_exp_avg_sq"),
            ("RMSprop", {"momentum": 0.9}, "momentum_buffer"),
            ("RMSprop", {"centered": True}, "grad_avg"),
        ):
            trained = Trained(torch, kind)
            trained.made.param_groups[0].update(option)
            with pytest.raises(KeyError, match=missing):
                trained.run(1)
        trained = Trained(torch, "SGD")
        trained.made.param_groups[0]["momentum"] = 0.9
        trained.run(2)  # it begins here
        assert "momentum_buffer" in trained.made.state[trained.x]


def scheduler_faults(name, kind):
    torch = library(name)["torch"]
    found = {}
    for value in (None, 5, "text", [], {}, [("last_epoch", 3)], {"last_epoch": None}):
        found[str(value)] = Trained(torch, kind, 0).taking(value)
    for a, b in ((1, 2), (2, 1)):
        state = Trained(torch, kind, groups=a).made.state_dict()
        found[a, b] = Trained(torch, kind, 0, groups=b).taking(state)
    return found


@pytest.mark.parametrize("kind", [*SCHEDULERS, "GradScaler"])
def test_the_state_of_a_scheduler_that_is_damaged(kind):
    pytest.importorskip("torch")
    assert scheduler_faults("engine", kind) == scheduler_faults("torch", kind)


def test_what_is_no_generator_and_no_state_of_one():
    def of(name, call):
        torch = library(name)["torch"]
        with pytest.raises(TypeError) as caught:
            call(torch, torch.utils.data)
        return str(caught.value)

    calls = [
        lambda torch, data: list(data.RandomSampler([1, 2, 3], generator=3)),
        lambda torch, data: list(data.RandomSampler([1, 2, 3], True, generator=3)),
        lambda torch, data: list(data.SubsetRandomSampler([1, 2], generator=3)),
        lambda torch, data: list(data.WeightedRandomSampler([1.0, 2.0], 2, generator=3)),
        lambda torch, data: data.random_split([1, 2], [1, 1], generator=3),
        lambda torch, data: list(data.DataLoader([1, 2], generator=3)),
    ]
    for call in calls:
        assert of("engine", call) == "argument 'generator' must be torch.Generator, not int"
    states = [lambda torch, data, x=x: torch.Generator().set_state(x) for x in (None, 1, "x", [])]
    states.append(lambda torch, data: torch.Generator().set_state(torch.ones(3)))
    for call in states:
        assert "torch.ByteTensor" in of("engine", call)
    pytest.importorskip("torch")
    assert [of("engine", call) for call in states] == [of("torch", call) for call in states]
    for call in calls:
        of("torch", call)


MODULES = cases("""
nn.Linear(2, 3)
nn.Linear(2, 4)
nn.Linear(2, 3, bias=False)
nn.BatchNorm1d(3)
nn.BatchNorm1d(3, affine=False)
nn.LayerNorm(3)
nn.Conv2d(1, 2, 3)
nn.LSTM(2, 3)
nn.GRU(2, 3)
nn.MultiheadAttention(4, 2)
nn.Sequential(nn.Linear(2, 3), nn.ReLU())
nn.ModuleList([nn.Linear(2, 3)])
nn.PReLU()
nn.Dropout()
""")


def module_states(name):
    names = library(name)
    found = {}
    for a in MODULES:
        for b in MODULES:
            for strict in (True, False):
                try:
                    found[a, b, strict] = str(eval(b, names).load_state_dict(eval(a, names).state_dict(), strict))
                except Exception as e:
                    found[a, b, strict] = type(e).__name__, str(e)
    torch = names["torch"]
    w, b = torch.ones(3, 2), torch.ones(3)
    for i, state in enumerate(
        [None, [], 5, {1: w}, {"weight": 1, "bias": 2}, {"weight": None, "bias": b}, {"weight": [[1.0]], "bias": b}]
        + [{"weight": torch.ones(n), "bias": b} for n in [(6,), (), (3, 2, 1)]]
        + [{"weight": w.double(), "bias": b.long()}, {"weight": w, "bias": b, "weight.x": 1, "_extra_state": 1}]
    ):
        for assign in (False, True):
            m = names["nn"].Linear(2, 3)
            try:
                m.load_state_dict(state, assign=assign)
                found[i, assign] = str(m.weight.dtype), str(m.bias.dtype), m.weight.requires_grad, m.weight.tolist()
            except Exception as e:
                found[i, assign] = type(e).__name__, str(e)
    return found


def test_the_state_of_any_other_module():
    pytest.importorskip("torch")
    assert module_states("engine") == module_states("torch")
