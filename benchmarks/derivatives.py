"""Times derivatives beyond the gradient, and draws where forward and reverse mode cross.

``python -m benchmarks.derivatives``: the engine runs beside PyTorch where that is installed.  Programs take turns; the
median over the rounds counts.
"""

import argparse
from importlib.util import find_spec
from statistics import median
from time import perf_counter

import numpy as np

import engine
import engine.func

INPUTS, HIDDEN = 64, 64
OUTPUTS = (1, 4, 16, 32, 64, 128, 256, 1024)  # of the function whose Jacobian is computed in both modes


def network(t, inputs, outputs):
    """(a two-layer tanh network, a point): x (inputs) -> (outputs)."""
    rng = np.random.default_rng(0)
    normal = lambda *shape: t.tensor((rng.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32))  # noqa: E731
    first, second, x = normal(HIDDEN, inputs), normal(outputs, HIDDEN), normal(inputs)
    return lambda x: (second @ (first @ x).tanh()).tanh(), x


def jacobian(t, mode, inputs=INPUTS, outputs=64):
    """The Jacobian, by ``func.jacrev`` or ``func.jacfwd``."""
    f, x = network(t, inputs, outputs)
    compute = getattr(t.func, mode)(f)
    return lambda: compute(x)


def gradient(t):
    f, x = network(t, INPUTS, 64)
    compute = t.func.grad(lambda x: f(x).sum())
    return lambda: compute(x)


def hessian_product(t):
    """H v of the same function."""
    f, x = network(t, INPUTS, 64)
    return lambda: t.autograd.functional.hvp(lambda x: f(x).sum(), x, x)[1]


def per_sample(t, together):
    """The gradients of an MLP 64-128-10 with cross entropy for each of 64 samples: by vmap, or one after the other."""
    rng = np.random.default_rng(0)
    normal = lambda *shape: t.tensor((rng.standard_normal(shape) * 0.1).astype(np.float32))  # noqa: E731
    weights, x = (normal(128, 64), normal(128), normal(10, 128), normal(10)), normal(64, 64)
    y, nn = t.tensor(rng.integers(0, 10, 64)), t.nn.functional

    def loss(w1, b1, w2, b2, x, y):
        return nn.cross_entropy(nn.linear(nn.linear(x, w1, b1).tanh(), w2, b2), y)

    each = t.func.grad(loss, (0, 1, 2, 3))
    if together:
        mapped = t.func.vmap(each, (None,) * 4 + (0, 0))
        return lambda: mapped(*weights, x, y)
    return lambda: [t.stack(g) for g in zip(*(each(*weights, a, b) for a, b in zip(x, y, strict=True)), strict=True)]


def times(steps, rounds):
    """{name: median seconds} of steps that take turns."""
    found = {name: [] for name in steps}
    for step in steps.values():
        step()
    for _ in range(rounds):
        for name, step in steps.items():
            start = perf_counter()
            step()
            found[name].append(perf_counter() - start)
    return {name: median(seconds) for name, seconds in found.items()}


def table(frameworks, rounds):
    """The lines of the table of what the engine is to reach."""
    programs = {
        "Jacobian 64x64, jacrev": lambda t: jacobian(t, "jacrev"),
        "Jacobian 64x64, jacfwd": lambda t: jacobian(t, "jacfwd"),
        "gradient": gradient,
        "Hessian-vector product": hessian_product,
        "64 per-sample gradients, vmap": lambda t: per_sample(t, True),
        "64 per-sample gradients, loop": lambda t: per_sample(t, False),
    }
    measured = times({(p, f): make(t) for p, make in programs.items() for f, t in frameworks.items()}, rounds)
    yield f"{'':30}" + "".join(f"{f:>12}" for f in frameworks)
    for p in programs:
        yield f"{p:30}" + "".join(f"{measured[p, f] * 1e6:9.0f} us" for f in frameworks)
    of = lambda p: measured[p, "engine"]  # noqa: E731
    yield ""
    if "torch" in frameworks:
        ratio = of("Jacobian 64x64, jacrev") / measured["Jacobian 64x64, jacrev", "torch"]
        yield f"jacrev / PyTorch's: {ratio:.2f} (at most 1)"
    yield f"Hessian-vector product / gradient: {of('Hessian-vector product') / of('gradient'):.1f} (at most 4)"
    faster = of("64 per-sample gradients, loop") / of("64 per-sample gradients, vmap")
    yield f"per-sample gradients, loop / vmap: {faster:.1f} (at least 8)"


def curve(rounds, width=48):
    """The lines of a chart: how long the Jacobian of a function of 64 inputs takes, row by row or column by column."""
    yield f"The Jacobian of f: R^{INPUTS} -> R^m.  r: jacrev, m products v^T J.  f: jacfwd, {INPUTS} products J v."
    yield ""
    rows = {}
    for m in OUTPUTS:
        steps = {mode: jacobian(engine, mode, outputs=m) for mode in ("jacrev", "jacfwd")}
        rows[m] = times(steps, rounds)
    low, high = (choose(s for r in rows.values() for s in r.values()) for choose in (min, max))
    place = lambda s: round((width - 1) * np.log(s / low) / np.log(high / low))  # noqa: E731
    for m, r in rows.items():
        line = [" "] * width
        for mode, mark in (("jacrev", "r"), ("jacfwd", "f")):
            at = place(r[mode])
            line[at] = mark if line[at] == " " else "x"
        yield f"m = {m:5} |{''.join(line)}|  jacrev {r['jacrev'] * 1e6:6.0f} us  jacfwd {r['jacfwd'] * 1e6:6.0f} us"
    yield f"{'':10}|{low * 1e6:.0f} us{'(logarithmic)':^{width - 16}}{high * 1e6:6.0f} us|"


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.derivatives", description=__doc__)
    parser.add_argument("--rounds", type=int, default=41, help="how often each program has its turn (41)")
    rounds = parser.parse_args().rounds
    frameworks = {"engine": engine}
    if find_spec("torch") is not None:
        import torch
        import torch.func

        torch.set_num_threads(1)
        frameworks["torch"] = torch
    for line in (*table(frameworks, rounds), "", *curve(rounds)):
        print(line)


if __name__ == "__main__":
    main()
