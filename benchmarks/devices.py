"""Times the engine on a GPU beside PyTorch and CuPy alone: ``python -m benchmarks.devices``.

Each program is written once in PyTorch's names, for the engine and for PyTorch, and once by hand with the derivatives
worked out, for CuPy.  They take turns in one process; a time is that of steps up to a synchronization, divided by their
number, and the median over the rounds counts.
"""

import argparse
import json
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np

from . import report


class Workload(NamedTuple):
    """One program: ``by_name(t, arrays)`` and ``by_hand(xp, arrays)`` give a step, which returns what it computes."""

    says: str
    sizes: tuple[int, ...]
    small: tuple[int, ...]  # for a test
    steps: int  # in a round
    to_cupy: float | None  # the engine's time as a multiple of CuPy's, at most
    to_torch: float | None


WORKLOADS = {
    "matmul": Workload("product of matrices 4096x4096, forward and backward", (4096,), (5,), 10, 1.1, None),
    "elementwise": Workload("tanh(x*2 + 1) * x of 64M elements, forward and backward", (1 << 26,), (7,), 10, 1.1, None),
    "mlp": Workload(
        "step of SGD of an MLP 784-4096-4096-10, batch 4096",
        (4096, 784, 4096, 4096, 10),
        (4, 3, 5, 6, 2),
        10,
        None,
        1.3,
    ),
    "small": Workload(
        "step of SGD of an MLP 64-128-64-10, batch 64", (64, 64, 128, 64, 10), (4, 3, 5, 6, 2), 100, None, 1.5
    ),
    "adam": Workload("step of Adam for 100 parameters of 256x256", (100, 256), (3, 4), 20, None, None),
}
RATE = 0.01


def inputs(name, sizes):
    """The arrays that a program begins with."""
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.standard_normal(shape, np.float32)  # noqa: E731
    if name == "matmul":
        return {k: normal(*sizes * 2) for k in ("x", "w", "g")}
    if name == "elementwise":
        return {"x": normal(*sizes), "g": normal(*sizes)}
    if name == "adam":
        count, n = sizes
        return {f"{kind}{i}": normal(n, n) for i in range(count) for kind in "pg"}
    batch, *widths = sizes
    weights = {f"w{i}": normal(m, n) * np.float32(n**-0.5) for i, (n, m) in enumerate(pairwise(widths))}
    biases = {f"b{i}": np.zeros(m, np.float32) for i, m in enumerate(widths[1:])}
    return {"x": normal(batch, widths[0]), "y": rng.integers(0, widths[-1], batch), **weights, **biases}


def by_name(t, name, arrays, device):
    """A step in PyTorch's names; it returns the result, or the loss, and the gradients."""
    given = {k: t.tensor(a, device=device) for k, a in arrays.items()}
    if name in ("matmul", "elementwise"):
        leaves = [v.requires_grad_() for k, v in given.items() if k != "g"]

        def step():
            for v in leaves:
                v.grad = None
            x = given["x"]
            y = x @ given["w"] if name == "matmul" else t.tanh(x * 2.0 + 1.0) * x
            y.backward(given["g"])
            return [y.detach(), *(v.grad for v in leaves)]

        return step
    if name == "adam":
        params = [v.requires_grad_() for k, v in given.items() if k.startswith("p")]
        for i, p in enumerate(params):
            p.grad = given[f"g{i}"]
        adam = t.optim.Adam(params, RATE)

        def step():
            adam.step()
            return [p.detach() for p in params]

        return step
    n = sum(k.startswith("w") for k in arrays)
    layers = []
    for i in range(n):
        linear = t.nn.Linear(*arrays[f"w{i}"].shape[::-1], device=device)
        with t.no_grad():
            linear.weight.copy_(given[f"w{i}"])
            linear.bias.copy_(given[f"b{i}"])
        layers += [linear, t.nn.ReLU()]
    model = t.nn.Sequential(*layers[:-1])
    optimizer = t.optim.SGD(model.parameters(), RATE)

    def step():
        loss = t.nn.functional.cross_entropy(model(given["x"]), given["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return [loss.detach(), *(p.grad for p in model.parameters())]

    return step


def by_hand(xp, name, arrays):
    """The same with the derivatives worked out."""
    a = {k: xp.array(v) for k, v in arrays.items()}
    if name == "adam":
        return adam_by_hand(xp, [a[k] for k in a if k.startswith("p")], [a[k] for k in a if k.startswith("g")])
    if name == "matmul":
        return lambda: [a["x"] @ a["w"], a["g"] @ a["w"].T, a["x"].T @ a["g"]]
    if name == "elementwise":

        def step():
            x, g = a["x"], a["g"]
            h = xp.tanh(x * 2.0 + 1.0)
            return [h * x, g * h + (g * x) * (1.0 - h * h) * 2.0]

        return step
    n = sum(k.startswith("w") for k in arrays)
    rows = xp.arange(len(arrays["y"]))

    def step():
        hidden = [a["x"]]
        for i in range(n):
            out = hidden[-1] @ a[f"w{i}"].T
            out += a[f"b{i}"]
            hidden.append(xp.maximum(out, 0) if i < n - 1 else out)
        logits = hidden.pop()
        logits = logits - logits.max(1, keepdims=True)
        e = xp.exp(logits)
        total = e.sum(1, keepdims=True)
        loss = (xp.log(total[:, 0]) - logits[rows, a["y"]]).mean()
        g = e / total
        g[rows, a["y"]] -= 1
        g /= len(rows)
        grads = []
        for i in reversed(range(n)):
            grads = [g.T @ hidden[i], g.sum(0), *grads]
            if i:
                g = (g @ a[f"w{i}"]) * (hidden[i] > 0)
        for i in range(n):
            a[f"w{i}"] -= grads[2 * i] * RATE
            a[f"b{i}"] -= grads[2 * i + 1] * RATE
        return [loss, *grads]

    return step


def adam_by_hand(xp, params, grads):
    """Adam with its usual options."""
    states = [(xp.zeros_like(p), xp.zeros_like(p)) for p in params]
    count = 0

    def step():
        nonlocal count
        count += 1
        for p, g, (mean, square) in zip(params, grads, states, strict=True):
            mean += (g - mean) * (1 - 0.9)
            square *= 0.999
            square += g * g * (1 - 0.999)
            divisor = xp.sqrt(square) / (1 - 0.999**count) ** 0.5 + 1e-8
            p -= mean / divisor * (RATE / (1 - 0.9**count))
        return params

    return step


def frameworks():
    """{name: (make(workload, arrays) -> step, wait until all work is done)} of those that have a GPU here."""
    import engine

    found = {}
    if engine.cuda.is_available():
        import cupy

        found["engine"] = lambda *w: by_name(engine, *w, "cuda"), engine.cuda.synchronize
        found["CuPy"] = lambda *w: by_hand(cupy, *w), engine.cuda.synchronize
    try:
        import torch
    except ImportError:
        return found
    if torch.cuda.is_available():
        found["PyTorch"] = lambda *w: by_name(torch, *w, "cuda"), torch.cuda.synchronize
    return found


def measure(name, steps, rounds):
    """{framework: median seconds of a step}"""
    times = {f: [] for f in steps}
    for _ in range(rounds + 1):  # the first one warms up
        for f, (step, synchronize) in steps.items():
            synchronize()
            start = perf_counter()
            for _ in range(WORKLOADS[name].steps):
                step()
            synchronize()
            times[f].append((perf_counter() - start) / WORKLOADS[name].steps)
    return {f: median(t[1:]) for f, t in times.items()}


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices", description=__doc__)
    says = ", ".join(f"{name} ({w.says})" for name, w in WORKLOADS.items())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or some of: {says}")
    parser.add_argument("--rounds", type=int, default=11, help="how often each framework has its turn (11)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload {unknown[0]!r}: there are {', '.join(WORKLOADS)}")
    here = frameworks()
    if "engine" not in here:
        print("no GPU, no driver or no CuPy here: nothing to measure (README.md says how to get a GPU going)")
        return
    import engine

    print(engine.cuda.get_device_properties(), file=sys.stderr)
    measured = {}
    print("| | " + " | ".join(here) + " | to CuPy | at most | to PyTorch | at most |\n|" + "---|" * (len(here) + 5))
    for name in arguments.names or WORKLOADS:
        workload = WORKLOADS[name]
        arrays = inputs(name, workload.sizes)
        steps = {f: (make(name, arrays), synchronize) for f, (make, synchronize) in here.items()}
        t = measured[name] = measure(name, steps, arguments.rounds)
        ratio = lambda other: f"{t['engine'] / t[other]:.2f}" if other in t else ""  # noqa: B023, E731
        cells = [*(f"{1000 * s:.3f} ms" for s in t.values()), ratio("CuPy"), workload.to_cupy or "", ratio("PyTorch")]
        print(f"| {name} | " + " | ".join(map(str, [*cells, workload.to_torch or ""])) + " |", flush=True)
        del steps
    if arguments.json:
        known = {"device": engine.cuda.get_device_name(), **report.machine(), "seconds": measured}
        temporary = arguments.json.with_name(arguments.json.name + ".tmp")
        temporary.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        temporary.replace(arguments.json)


if __name__ == "__main__":
    main()
