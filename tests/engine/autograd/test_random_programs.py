"""Random programs which do the same under the engine and under PyTorch: of graphs and hooks, of memory and dtypes."""

import importlib
import random
import re
from types import SimpleNamespace

import numpy as np
import pytest

# What a hole in a line becomes: a name of its kind (x: of any), or one of these
CHOICES = {
    "number": ["2", "-1", "0.5", "3", "True", "0", "-2.5"],
    "dim": ["0", "1", "-1", "-2", "0", "-1", "2"],
    "key": ["0", "1", "-1", "...", "None", ":", "1:", "::2", "0, 0", ":, 1", "..., 0", "1, :2", "[0, 1]",
    "[1, 0], [0, 2]",
            "index", "mask", "mask, 0", ":, index", "None, 0", "5", "0, 0, 0, 0", "index, None, 0", "[[0, 1], [1, 0]]"],
    "dtype": ["torch.float32", "torch.float64", "torch.int64", "torch.int32", "torch.bool", "torch.uint8"],
    "shape": ["6", "3, 2", "-1", "2, -1", "1, 2, 3", "-1, 1", "12", "2, 3", "3"],
    "sign": ["+", "-", "*", "/", "**", "//", "@", "==", "<", ">=", "&", "|", "^", "!="],
    "change": ["abs", "exp", "sqrt", "sin", "tanh", "sigmoid", "relu", "neg", "floor", "round", "sign", "square",
    "reciprocal",
               "trunc", "logical_not", "bitwise_not", "tril", "triu", "nan_to_num", "frac"],
    "reduce": ["sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "std", "var", "all", "any",
    "logsumexp", "norm",
               "median", "cumsum", "cumprod", "softmax", "log_softmax", "sort", "nansum", "count_nonzero", "cummax"],
}  # fmt: skip

GRAPHS = SimpleNamespace(
    length=22,
    # {v} is a vector, {m} a matrix, all 3 long; what is new gets a name of its kind
    names={"v": ["v0", "v1"], "m": ["m0", "m1"]},
    first=5,
    start="",
    new={
        "v": [
            "{v} @ {m}", "{v} @ {m}", "{m} @ {v}", "{v} * {v}", "{v}.sin()", "{m}.sum(0)", "{m}[0] + 1", "{v}.detach()",
            "F.linear({v}, {m}, {v})", "Square.apply({v})", "{v} * 2 - {v}",
        ],
        "m": [
            "F.linear({m}, {m}, {v})", "F.linear({m}, {m}, {v})", "F.linear({m}, {m})",
            "F.linear({m}.detach(), {m}, {v})",
            "{m} @ {m}", "{m} * {m}", "{m} + {v}", "{m}.t() * 2", "{m}.tanh()", "torch.stack([{v}, {m}[1], {v}])",
            "Square.apply({m})",
        ],
    },
    do=[
        "{x}.mul_(0.5)",
        "{x}[0] = 0.25",
        "with torch.no_grad(): {x}.add_(1.0)",
        "{x}.register_hook(note)",
        "{x}.register_hook(lambda g: g * 2)",
        "{x}.retain_grad()",
        "{x}.grad_fn.register_prehook(note)",
        "{x}.grad_fn.register_hook(lambda into, arrived: note(arrived))",
        "{x}.grad_fn.next_functions[0][0].register_prehook(lambda arrived: (arrived[0] * 3,))",
        "note(shown({x}.grad_fn))",
        "{x}.sum().backward()",
        "{x}.sum().backward(retain_graph=True)",
        "{x}.sum().backward(retain_graph=True)",
        "({x} * {x}).sum().backward(create_graph=True)",
        "torch.autograd.backward([{v}.sum(), {m}.sum()], retain_graph=True)",
        "note(torch.autograd.grad(({x} * 2).sum(), [{v}, {m}], retain_graph=True, allow_unused=True))",
        "g, = torch.autograd.grad(({m} ** 2).sum(), {m}, create_graph=True); note(g); g.sum().backward()",
    ],
)  # fmt: skip

MEMORY = SimpleNamespace(
    length=14,
    names={"t": ["a", "b", "c", "d", "i", "mask", "u", "index"]},
    first=4,
    start="""
a = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.0, -0.75]], requires_grad=True)
b = torch.tensor([1.0, 2.5, -0.5], requires_grad=True)
c = torch.arange(9.0).reshape(3, 3) - 5
d = torch.tensor([[0.25, 3.0, -2.0], [-1.0, 0.5, 4.0]], dtype=torch.float64)
i = torch.tensor([[1, 0, 1], [0, 1, 0]], dtype=torch.int32)
u = torch.tensor([[3, -5, 7]])
mask = torch.tensor([[True, False, True], [False, False, True]])
index = torch.tensor([0, 1, 1])
""",
    new={
        "t": [
            "{t}[{key}]", "{t}[{key}]", "{t}[{key}]", "{t}.t()", "{t}.transpose({dim}, {dim})", "{t}.view({shape})",
            "{t}.reshape({shape})", "{t}.permute(1, 0)", "{t}.unsqueeze({dim})", "{t}.squeeze({dim})",
            "{t}.detach()", "{t}.diagonal()", "{t}.chunk(2, {dim})[0]",
            "{t}.unbind({dim})[1]", "{t}.narrow({dim}, 0, 1)", "{t}.data", "{t}.to({dtype})", "{t}.clone()",
            "{t}.contiguous()", "{t} {sign} {t}", "{t} {sign} {t}", "{t} {sign} {number}", "{number} {sign} {t}",
            "{t}.{reduce}()", "{t}.{reduce}({dim})", "{t}.{reduce}({dim}, keepdim=True)", "{t}.sum(dtype={dtype})",
            "{t}.sum(({dim}, {dim}))", "{t}.{change}()", "torch.{change}({t})", "torch.cat([{t}, {t}], {dim})",
            "torch.stack([{t}, {t}], {dim})", "torch.where({t} > 0, {t}, {number})", "torch.maximum({t}, {t})",
            "{t}.clamp({number}, {number})", "{t}.masked_fill(mask, {number})", "{t}[{t} > 0]",
            "{t}.index_select({dim}, index)",
            "{t}.gather(0, index[None])", "{t}.scatter_add(0, index[None], {t})", "{t}.index_add({dim}, index, {t})",
            "torch.lerp({t}, {t}, 0.5)", "torch.addcmul({t}, {t}, {t}, value={number})",
            "{t}.div({t}, rounding_mode='floor')",
            "F.softmax({t}, dim={dim})", "F.linear({t}, {t})", "F.mse_loss({t}, {t})", "F.layer_norm({t}, (3,))",
            "F.pad({t}, (1, 1))",
            "Square.apply({t})", "torch.autograd.grad(({t} * {t}).sum(), {t}, allow_unused=True)[0]",
            "torch.no_grad()(lambda: {t}[0])()", "torch.inference_mode()(lambda: {t} * 2)()",
        ],
    },
    do=[
        "{t}.{change}_()", "{t}.mul_({number})", "{t}.add_({t})", "{t}.sub_({t}, alpha={number})", "{t}.mul_({t})",
        "{t}.copy_({t})", "{t}.fill_({number})", "{t}[{key}] = {number}", "{t}[{key}] = {t}", "{t}[{key}] += {number}",
        "{t} += {t}", "{t} *= {number}", "{t} &= {t}", "{t}[{t} > 0] = {number}", "{t}[mask] = {t}",
        "{t}.masked_fill_(mask, {number})", "{t}.index_fill_({dim}, index, {number})",
        "{t}.index_add_({dim}, index, {t})",
        "{t}.index_copy_({dim}, index, {t})", "{t}.index_put_((index,), {t}, accumulate=True)",
        "{t}.clamp_({number}, {number})",
        "{t}.lerp_({t}, 0.5)", "{t}.addcmul_({t}, {t})", "{t}.requires_grad_()", "{t}.requires_grad_(False)",
        "{t}.detach_()",
        "{t}.retain_grad()", "{t}.data = {t}", "{t}.data.mul_(2)", "{t}.grad = torch.ones_like({t})", "{t}.grad += 1",
        "with torch.no_grad(): {t}.add_(1)", "with torch.no_grad(): {t}[{key}] = {number}",
        "{t}.register_hook(lambda g: g * 2)", "{t}.sum().backward()", "({t} * {t}).sum().backward()",
        "{t}.backward(torch.ones_like({t}))", "{t}.sum().backward(inputs=[{t}])", "torch.mul(c, 2, out=c)",
        "note({t} in {t})", "note(repr({t}.shape), {t}.is_leaf, len({t}))", "note(str(type({t}.tolist())))",
        "torch.optim.SGD([{t}], lr=0.1, momentum=0.9).step()", "torch.optim.Adam([{t}], lr=0.1).step()",
    ],
)  # fmt: skip


def program(table, seed):
    """The lines of a program."""
    rng = random.Random(seed)
    names = {kind: [*known] for kind, known in table.names.items()}
    lines = []
    for i in range(table.length):
        kind = rng.choice([*names]) if i < table.first or rng.random() < 0.4 else None
        line = rng.choice(table.new[kind] if kind else table.do)
        while hole := re.search(r"{(\w+)}", line):
            known = CHOICES.get(hole[1]) or names.get(hole[1]) or [n for kind in names.values() for n in kind]
            recent = hole[1] not in CHOICES and rng.random() < 0.6
            line = line.replace(hole[0], rng.choice(known[-3:] if recent else known), 1)
        if kind:
            names[kind].append(f"{kind}{len(names[kind])}")
            line = f"{names[kind][-1]} = {line}"
        lines.append(line)
    return lines


def shown(node, depth=5):
    """The names of a node and of those before it."""
    return node and (node.name(), depth and [shown(n, depth - 1) for n, _ in node.next_functions])


def plain(value):
    """A value as arrays and what holds them."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.detach().double().numpy().copy() if hasattr(value, "detach") else value


def state(t):
    """All that a tensor tells."""
    try:
        kind = t.grad_fn and t.grad_fn.name().removeprefix("torch::autograd::")
    except RuntimeError:
        return "lost"  # a view whose base was written
    grad = plain(t.grad) if t.is_leaf or t.retains_grad else None
    places = (t.stride(), t.storage_offset()) if t._is_view() and t.numel() else None
    return [str(t.dtype)[-7:], t.requires_grad, t.is_leaf, kind, places, plain(t), grad]


def custom(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    return Square


def space(library, seed):
    """What a program finds."""
    torch = importlib.import_module(library)
    names = {"torch": torch, "F": torch.nn.functional, "Square": custom(torch), "shown": shown}
    rng = np.random.default_rng(seed)
    for name, shape in {"v0": 3, "v1": 3, "m0": (3, 3), "m1": (3, 3)}.items():
        names[name] = torch.tensor(rng.uniform(-1, 1, shape), requires_grad=name[0] == "m" or rng.random() < 0.5)
    return names


def run(library, table, lines, seed):
    """What a program shows: for each line its error, what was noted, by which line, and what tensors tell."""
    names = space(library, seed)
    Tensor = names["torch"].Tensor
    exec(table.start, names)
    leaves = [t for t in names.values() if isinstance(t, Tensor)]
    for i, line in enumerate(lines):
        notes, error = {}, None
        names["note"] = lambda *value, i=i: notes.setdefault(i, []).append(plain(value))  # noqa: B023
        try:
            exec(line, names)
        except Exception as e:  # whatever it is, it is compared
            error = type(e).__name__, re.split(r"[.:]\s", str(e))[0] if type(e) is RuntimeError else None
            notes.clear()  # how far PyTorch got before the error is not compared
            for t in leaves:
                t.grad = None
        if table is GRAPHS:
            yield error, notes, [plain(t.grad) for t in leaves]
            continue
        names |= {
            k: v[0] for k, v in names.items() if isinstance(v, tuple) and v and isinstance(v[0], Tensor)
        }  # max, sort
        tensors = {k: t for k, t in names.items() if isinstance(t, Tensor)}
        yield (
            error and "an error",
            notes,
            {k: state(t) for k, t in tensors.items()},
        )  # of two errors, it may be the other


def assert_same(mine, theirs, tolerance=1e-7):
    if isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(mine, theirs, tolerance, tolerance / 100)
    elif isinstance(theirs, (tuple, list)):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert_same(a, b, tolerance)
    elif isinstance(theirs, dict):
        assert_same(sorted(mine), sorted(theirs))
        for k, b in theirs.items():
            assert_same(mine[k], b, tolerance)
    else:
        assert mine == theirs


def difference(table, seed):
    """Assert that a program does the same in both libraries, up to an error that leaves a tensor half written."""
    lines = program(table, seed)
    both = zip(run("engine", table, lines, seed), run("torch", table, lines, seed), strict=True)
    for k, (mine, theirs) in enumerate(both):
        try:
            assert_same(mine, theirs, 1e-7 if table is GRAPHS else 2e-5)
        except AssertionError as e:
            if table is MEMORY and mine[0] and theirs[0]:
                return
            raise AssertionError(f"seed {seed}:\n" + "\n".join(lines[: k + 1])) from e


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", [GRAPHS, MEMORY], ids=["graphs", "memory"])
@pytest.mark.parametrize("count", [60, pytest.param(150, marks=pytest.mark.slow)])
def test_random_programs(table, count):
    pytest.importorskip("torch")
    for seed in range(count):
        difference(table, seed)
