"""Random programs of graphs, hooks and in-place writes, which do the same under the engine and under PyTorch."""

import importlib
import random
import re

import numpy as np
import pytest

# {v} is a vector, {m} a matrix, {x} either, all 3 long; what is new gets a name of its kind
NEW = {
    "v": [
        "{v} @ {m}", "{v} @ {m}", "{m} @ {v}", "{v} * {v}", "{v}.sin()", "{m}.sum(0)", "{m}[0] + 1", "{v}.detach()",
        "F.linear({v}, {m}, {v})", "Square.apply({v})", "{v} * 2 - {v}",
    ],
    "m": [
        "F.linear({m}, {m}, {v})", "F.linear({m}, {m}, {v})", "F.linear({m}, {m})", "F.linear({m}.detach(), {m}, {v})",
        "{m} @ {m}", "{m} * {m}", "{m} + {v}", "{m}.t() * 2", "{m}.tanh()", "torch.stack([{v}, {m}[1], {v}])",
        "Square.apply({m})",
    ],
}  # fmt: skip
DO = [
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
]


def program(seed, length=22):
    """The lines of a program."""
    rng = random.Random(seed)
    names = {"v": ["v0", "v1"], "m": ["m0", "m1"]}
    lines = []
    for i in range(length):
        kind = rng.choice("vm") if i < 5 or rng.random() < 0.4 else None
        line = rng.choice(NEW[kind] if kind else DO)
        while hole := re.search("{([vmx])}", line):
            known = names[hole[1]] if hole[1] != "x" else names["v"] + names["m"]
            line = line.replace(hole[0], rng.choice(known[-3:] if rng.random() < 0.6 else known), 1)
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


def run(library, lines, seed):
    """What a program shows: for each line its error, what was noted, by which line, and the gradients."""
    torch = importlib.import_module(library)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    rng = np.random.default_rng(seed)
    space = {"torch": torch, "F": torch.nn.functional, "Square": Square, "shown": shown}
    for name, shape in {"v0": 3, "v1": 3, "m0": (3, 3), "m1": (3, 3)}.items():
        space[name] = torch.tensor(rng.uniform(-1, 1, shape), requires_grad=name[0] == "m" or rng.random() < 0.5)
    leaves = [t for t in space.values() if isinstance(t, torch.Tensor)]
    seen = []
    for i, line in enumerate(lines):
        notes = {}
        space["note"] = lambda value, i=i: notes.setdefault(i, []).append(plain(value))  # noqa: B023
        error = None
        try:
            exec(line, space)
        except (RuntimeError, AttributeError, NameError) as e:
            error = type(e).__name__, re.split(r"[.:]\s", str(e))[0] if type(e) is RuntimeError else None
            notes.clear()  # how far PyTorch got before the error is not compared
            for t in leaves:
                t.grad = None
        seen.append((error, notes, [plain(t.grad) for t in leaves]))
    return seen


def assert_same(mine, theirs):
    if isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(mine, theirs, 1e-7, 1e-9)
    elif isinstance(theirs, (tuple, list)):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(theirs, dict):
        assert_same(sorted(mine), sorted(theirs))
        assert_same([mine[k] for k in sorted(mine)], [theirs[k] for k in sorted(theirs)])
    else:
        assert mine == theirs


@pytest.mark.filterwarnings("ignore")
def test_random_programs():
    pytest.importorskip("torch")
    for seed in range(150):
        lines = program(seed)
        for k, (mine, theirs) in enumerate(zip(run("engine", lines, seed), run("torch", lines, seed), strict=True)):
            try:
                assert_same(mine, theirs)
            except AssertionError as e:
                raise AssertionError(f"seed {seed}:\n" + "\n".join(lines[: k + 1])) from e
