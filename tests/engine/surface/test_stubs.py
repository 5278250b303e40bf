"""What editors and type checkers know of the engine: its type stubs, and what completion in a notebook shows."""

import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys

import pytest

import engine
from course.base.notebooks import ROOT

STUBS = runpy.run_path(str(ROOT / "docs/stubs.py"))
MODULES = STUBS["MODULES"]

RIGHT = """
import math
from collections.abc import Iterator
from typing import Any

import engine
import engine.nn.functional as F
from engine import Tensor, nn
from engine.utils.data import DataLoader, Dataset, TensorDataset


def f(x: Tensor, power: float = 2.0) -> Tensor:
    y = x**power + 3 * x - 1 / (1 + x)
    y = y @ y.T if y.ndim == 2 else y.sum(dim=0, keepdim=True)
    return engine.exp(-y).clamp(min=0.1).reshape(-1, 1)


x = engine.tensor([1.0, 2.0], requires_grad=True)
z = engine.zeros(2, 3, dtype=engine.float64, device="cpu")
steps = engine.linspace(0, 1, 50)
loss = (f(x) - engine.tensor([[0.5]])).pow(2).mean()
loss.backward()
with engine.no_grad():
    x -= 0.1 * x.grad
    x.grad = None
value: float = loss.item() + math.pi
rows: int = z.shape[0] + z.size(1) + z.numel() + len(z) + z.stride(0)
best, where = z.max(dim=1)
most: Tensor = z.max() + engine.sort(z).values
places: tuple[Tensor, ...] = z.nonzero(as_tuple=True)
if engine.equal(z, z) and bool((z == 0).all()) and not engine.allclose(z, z + 1):
    print(z.dtype is engine.float64, z.shape == (2, 3), x.grad_fn, z.device.type, engine.finfo(engine.float16).max)
first, *others = z.split(1)
(gradient,) = engine.autograd.grad(f(x).sum(), x)
masked = z[z > 0].float().to("cpu").view(-1, *z.shape[1:])
z[0, :] = 1.0
z += 1
array = z.detach().numpy()
picture = engine.viz.graph(loss)


class Exp(engine.autograd.Function):
    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        y = t.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        y: Tensor = ctx.saved_tensors[0]
        return g * y


class Rows(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return engine.full((4,), float(index)), engine.tensor(index % 2)


class Net(nn.Module):
    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Dropout(0.1))
        self.out = nn.Linear(hidden, 2, bias=False)
        self.scale = nn.Parameter(engine.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.out(self.layers(x))) * self.scale


def weights(net: nn.Module) -> Iterator[Tensor]:
    return (p for p in net.parameters() if p.requires_grad)


@engine.no_grad()
def accuracy(net: Net, loader: DataLoader[tuple[Tensor, Tensor]]) -> float:
    net.eval()
    return sum(int((net(inputs).argmax(1) == labels).sum()) for inputs, labels in loader) / 64


engine.manual_seed(0)
net = Net().train()
optimizer = engine.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
scheduler = engine.optim.lr_scheduler.StepLR(optimizer, step_size=2)
loader = DataLoader(Rows(), batch_size=16, shuffle=True)
for epoch in range(3):
    for inputs, labels in loader:
        optimizer.zero_grad()
        error = F.cross_entropy(net(inputs), labels)
        error.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    scheduler.step()
    print(epoch, error.item(), accuracy(net, loader), net.out.weight.shape, *(w.norm().item() for w in weights(net)))
net.load_state_dict(net.state_dict())
print(Exp.apply(x), engine.linalg.norm(x), TensorDataset(z, z)[0], nn.CrossEntropyLoss(reduction="sum")(z, z))
"""

WRONG = {
    'engine.exp("a")': '"exp" has incompatible type "str"; expected "Tensor"',
    "x.viev(3)": '"Tensor" has no attribute "viev"',
    'engine.cat([x, x], dim="0")': '"dim" to "cat" has incompatible type "str"; expected "int"',
    "x.sum(axes=0)": 'Unexpected keyword argument "axes"',
    "x.grad.viev(3)": '"Tensor | Any" has no attribute "viev"',
    'x.transpose("a", 1)': 'expected "int"',
    "x.shape.numl()": '"Size" has no attribute "numl"',
    'x + "1"': "Unsupported operand types",
    "engine.zeroes(3)": 'maybe "zeros"?',
    'engine.zeros(3, dtype="float32")': '"dtype" to "zeros" has incompatible type "str"',
    "engine.linalg.inv(3)": 'expected "Tensor"',
    "engine.nn.functional.relu(x, in_place=True)": 'did you mean "inplace"?',
    "engine.nn.Linear(3)": 'Missing positional argument "out_features"',
    "engine.nn.Modul": 'maybe "Module"?',
    "engine.optim.SGD([x], learning_rate=0.1)": 'Unexpected keyword argument "learning_rate"',
    "y: str = x.item()": 'expression has type "int | float"',
}


def checked(tool, *arguments, folder=ROOT):
    """What a program of mypy prints."""
    pytest.importorskip("mypy")
    env = os.environ | {"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-m", tool, *arguments], cwd=folder, env=env, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def test_stubs_are_those_of_the_signatures():
    for path, text in STUBS["contents"]().items():
        assert path.read_text("utf-8") == text, "run python docs/update.py"


@pytest.mark.slow
def test_a_learners_program_is_right_and_wrong_calls_are_found(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT, "utf-8")
    (tmp_path / "wrong.py").write_text("\n".join(["import engine", "x = engine.ones(2)", *WRONG]), "utf-8")
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}"]
    errors = [
        e for e in checked("mypy", *options, "right.py", "wrong.py", folder=tmp_path).splitlines() if "error" in e
    ]
    found = {int(re.match(r"wrong.py:(\d+): error", e)[1]): e for e in errors if e.startswith("wrong")}
    assert not [e for e in errors if e.startswith("right")]
    for line, (call, said) in enumerate(WRONG.items(), 3):
        assert said in found.pop(line, ""), call
    assert not found


def test_the_learners_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with engine.random.fork_rng():
        exec(compile(RIGHT, "right.py", "exec"), {"__name__": "right"})


# What stubs say otherwise than the engine, and why.
OTHERWISE = (
    "variable differs from runtime type engine.arrays.dtypes.dtype",  # there it is made, and engine shows it
    "variable differs from runtime type engine.ops.creation.Generator",
    'stub parameter "self" differs from runtime parameter "input"',  # functions that are methods too
    "metaclass differs",  # what isinstance() says of FloatTensor, Buffer and the like
    r"Tensor\.__\w+__ is inconsistent, stub does not have",  # nobody gives an operator its out=
    r"Parameter\.__repr__ is inconsistent",
    r"nn\.\w+\.__init__ is inconsistent, stub does not have \*args",  # layers without arguments
    r"cuda\.amp\.autocast\.__init__ .* default value of type engine.arrays.dtypes.dtype",
    r"(?:UnpackedDualTensor|GradientEdge).__new__",  # of a namedtuple
)


@pytest.mark.slow  # that they are made of the signatures is asked above
def test_names_arguments_and_defaults_in_stubs_are_those_at_run_time():
    """By mypy's own comparison of stubs with modules."""
    options = ["--concise", "--ignore-missing-stub", "--mypy-config-file=pyproject.toml"]
    told = checked("mypy.stubtest", "engine", *options).splitlines()
    assert len(told) > 1 and not told[0].startswith("error"), told  # it has compared
    names = {t: [n for n in STUBS["names"](t) if not inspect.ismodule(getattr(MODULES[t], n))] for t in MODULES}
    starts = tuple(f"{title}.{name}{end}" for title in MODULES for name in names[title] for end in " .")
    wrong = [line for line in told if line.startswith(starts) and not any(re.search(o, line) for o in OTHERWISE)]
    assert not wrong, "\n".join(wrong)


def test_only_what_is_public_is_in_a_stub():
    text = STUBS["stub"]("engine")
    for name in ("construct", "looks", "shared", "view_ops", "creation_meta", "array", "node", "_base", "plain_init"):
        assert not re.search(rf"\b{name}\b", re.sub(r"\b(array|node): Any", "", text)), name
    assert not re.search(r"(?m)^(?:def|class) (?:offered|describe|public|texts)\b", text)


OURS = {
    "autograd.GradcheckError", "sim", "viz", *(f"compiler.{n}" for n in
    ("Compiled", "Explanation", "GraphBreak", "LIMIT", "OptimizedModule", "explain")),
}  # fmt: skip
NOT_THERE = {"as_strided_", "cpu", "fill", "get_device", "layout"}  # as a function, or in place


@pytest.mark.filterwarnings("ignore")  # of what PyTorch imports
def test_a_public_name_is_wherever_pytorch_has_it():
    """It is a name of PyTorch's, and function, method and in place as it is there."""
    torch = pytest.importorskip("torch")
    theirs = {
        title: importlib.import_module(title.replace("engine", "torch", 1)) for title in {*MODULES} - {"engine.sim"}
    }
    names = {title: STUBS["names"](title) for title in theirs}
    ours = {f"{t}.{n}".removeprefix("engine.") for t, of in theirs.items() for n in names[t] if not hasattr(of, n)}
    assert ours == OURS
    methods = [name for name in dir(torch.Tensor) if name[0] != "_" and hasattr(engine.Tensor, name)]
    missing = set()
    for name in {name.rstrip("_") for name in (*names["engine"], *methods)}:
        forms = (torch, engine, name), (torch.Tensor, engine.Tensor, name), (torch.Tensor, engine.Tensor, name + "_")
        missing |= {form for other, mine, form in forms if hasattr(other, form) and not hasattr(mine, form)}
    assert missing == NOT_THERE


def test_every_public_callable_shows_its_arguments():
    """As Shift-Tab asks for them: with names and defaults."""
    x, wrong = engine.ones(2), []
    # those of PyTorch take anything too, and old names hand everything on
    takes_anything = {"Function", "CheckpointFunction", "Module", "Identity", "clip_grad_norm"}
    takes_anything |= {name for name in vars(engine.nn.init) if f"{name}_" in vars(engine.nn.init)}
    places = [(module, STUBS["names"](title)) for title, module in MODULES.items()]
    methods = [n for n in dir(x) if n[0] != "_" and not isinstance(getattr(engine.Tensor, n, None), property)]
    for place, names in [*places, (x, methods), (engine.Tensor, methods)]:
        for name in names:
            what = getattr(place, name)
            if not callable(what) or inspect.isclass(what) and issubclass(what, BaseException | type):
                continue
            kinds = {p.kind for p in inspect.signature(what).parameters.values()}
            if (
                kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
                and name not in takes_anything
            ):
                wrong.append(name)
    assert not wrong
