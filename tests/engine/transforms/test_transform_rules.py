"""Every row of every table under the function transforms, with the rows and samples of test_rules.

vmap against a loop over the samples, forward mode against central differences and against two reverse passes.
"""

import re
import zlib

import numpy as np
import pytest
from over_tables import over
from test_rules import BETWEEN, CASES

import engine
from engine.func import grad, jacfwd, jacrev, jvp, vjp, vmap
from engine.ops.rows import registry

SAMPLES = 3
VARIABLES = "x y z A B v w".split()
NAMES = [*VARIABLES, "p", "i", "target"]


def inputs(name, sample):
    """{name: array with the samples first}, for the names in a sample, always the same."""
    rng = np.random.default_rng(zlib.crc32((name + sample).encode()))
    shapes = dict.fromkeys("xyz", (2, 3)) | {"A": (3, 3), "B": (3, 2), "v": (3,), "w": (3,)}
    arrays = {k: rng.uniform(*BETWEEN.get(name, (-2.0, 2.0)), (SAMPLES, *s)) for k, s in shapes.items()}
    arrays |= {"p": rng.uniform(0.1, 0.9, (SAMPLES, 2, 3))}
    arrays |= {k: rng.integers(0, 3, (SAMPLES, 2)) for k in ("i", "target")}
    return {k: arrays[k] for k in NAMES if re.search(rf"\b{k}\b", sample)}


def call(name, sample, names, tensors):
    """The floating point results of a sample."""
    known = {
        "f": registry[name].function,
        "np": np,
        "torch": engine,
        "x0": np.ones((2, 3)) * [1, -1, 1],
        **dict(zip(names, tensors, strict=True)),
    }
    out = eval(sample, known)
    return tuple(o for o in (out if isinstance(out, (tuple, list)) else [out]) if o.dtype.is_floating_point)


def ways(names):
    """Which of the inputs have samples: all, or one of them."""
    return [set(names)] + [{n} for n in names if len(names) > 1]


def both(name, sample, batched, function):
    """(by vmap, by a loop)"""
    arrays = inputs(name, sample)
    names = list(arrays)
    tensors = [engine.tensor(a if n in batched else a[0]) for n, a in arrays.items()]
    dims = tuple(0 if n in batched else None for n in names)
    ours = vmap(lambda *t: function(name, sample, names, t), dims)(*tensors)
    loop = [
        function(name, sample, names, [t[b] if n in batched else t for n, t in zip(names, tensors, strict=True)])
        for b in range(SAMPLES)
    ]
    return ours, [engine.stack(r) for r in zip(*loop, strict=True)]


def same(ours, theirs, tolerance=1e-9):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), tolerance, tolerance)


def weighted(name, sample, names, tensors):
    """The results of a sample with weights, as one number."""
    results = call(name, sample, names, tensors)
    return sum((r * engine.tensor(w)).sum() for r, w in zip(results, weights(results), strict=True))


def weights(results):
    rng = np.random.default_rng(1)
    return [rng.uniform(0.5, 1.5, tuple(r.shape)) for r in results]


def gradients(name, sample, names, tensors):
    """The gradients of that number with respect to all floating point inputs."""
    numbers = tuple(i for i, n in enumerate(names) if n in VARIABLES)
    return grad(lambda *t: weighted(name, sample, names, t), numbers)(*tensors)


def pulled_back(name, sample, names, tensors):
    """The products of the same cotangents, whatever the sample, with the Jacobians."""
    numbers = [i for i, n in enumerate(names) if n in VARIABLES]

    def function(*moving):
        given = dict(zip(numbers, moving, strict=True))
        return call(name, sample, names, [given.get(i, t) for i, t in enumerate(tensors)])

    results, pull_back = vjp(function, *(tensors[i] for i in numbers))
    return pull_back(tuple(map(engine.tensor, weights(results))))


def one_point(name, sample):
    """(names of the floating point inputs, these as tensors, their function with the others fixed)."""
    arrays = {n: a[0] for n, a in inputs(name, sample).items()}
    names = list(arrays)
    moving = [n for n in names if n in VARIABLES]
    fixed = {n: engine.tensor(a) for n, a in arrays.items()}
    return [
        fixed[n] for n in moving
    ], lambda f: lambda *t: f(name, sample, names, [{**fixed, **dict(zip(moving, t, strict=True))}[n] for n in names])


def directions(tensors, seed=2):
    rng = np.random.default_rng(seed)
    return tuple(engine.tensor(rng.uniform(-1, 1, tuple(t.shape))) for t in tensors)


@over("name, sample", CASES)
def test_row_under_vmap(name, sample):
    for batched in ways(list(inputs(name, sample))):
        same(*both(name, sample, batched, call))


@over("name, sample", CASES)
def test_gradients_of_each_sample(name, sample):
    for batched in ways(list(inputs(name, sample))):
        same(*both(name, sample, batched, gradients))


@over("name, sample", CASES)
def test_cotangents_that_are_the_same_for_each_sample(name, sample):
    for batched in ways(list(inputs(name, sample))):
        same(*both(name, sample, batched, pulled_back))


@over("name, sample", CASES)
def test_gradient_of_what_vmap_computes(name, sample):
    arrays = inputs(name, sample)
    names, tensors = list(arrays), [engine.tensor(a) for a in arrays.values()]
    numbers = tuple(i for i, n in enumerate(names) if n in VARIABLES)
    f = lambda *t: weighted(name, sample, names, t)  # noqa: E731
    for i in numbers if len(names) > 1 else ():  # one input is the same for all: its gradient is the sum of theirs
        mapped = vmap(f, tuple(None if k == i else 0 for k in range(len(names))))
        given = [t[0] if k == i else t for k, t in enumerate(tensors)]
        ours = grad(lambda *t, mapped=mapped: mapped(*t).sum(), i)(*given)
        each = [grad(f, i)(*[t if k == i else t[b] for k, t in enumerate(given)]) for b in range(SAMPLES)]
        same([ours], [sum(each)])


@over("name, sample", CASES)
def test_vmap_in_vmap(name, sample):
    arrays = inputs(name, sample)
    names = list(arrays)
    f = lambda *t: call(name, sample, names, t)  # noqa: E731
    tensors = [engine.tensor(a) for a in arrays.values()]
    twice = [engine.stack([t, t.flip(0)]) for t in tensors]
    same(
        vmap(vmap(f))(*twice),
        [engine.stack(r) for r in zip(*(vmap(f)(*[t[i] for t in twice]) for i in (0, 1)), strict=True)],
    )
    if len(names) > 1:  # each level has the samples of other inputs
        outer, inner = (0, *(None,) * (len(names) - 1)), (None, *(0,) * (len(names) - 1))
        ours = vmap(vmap(f, inner), outer)(*tensors)
        same(ours, [engine.stack(r) for r in zip(*(vmap(f, inner)(t, *tensors[1:]) for t in tensors[0]), strict=True)])


@over("name, sample", CASES)
def test_forward_mode(name, sample):
    tensors, at = one_point(name, sample)
    f, v, eps = at(call), directions(tensors), 1e-6
    ours = jvp(f, tuple(tensors), v)[1]
    ends = [f(*[x + s * eps * d for x, d in zip(tensors, v, strict=True)]) for s in (1, -1)]
    same(ours, [(a - b) / (2 * eps) for a, b in zip(*ends, strict=True)], 2e-6)
    pulled = engine.autograd.functional.jvp(f, tuple(tensors), v)[1]
    same(ours, pulled, 1e-9)


@over("name, sample", CASES)
def test_jacobian_by_columns_and_by_rows(name, sample):
    tensors, at = one_point(name, sample)
    numbers = tuple(range(len(tensors)))
    columns, rows = jacfwd(at(call), numbers)(*tensors), jacrev(at(call), numbers)(*tensors)
    for a, b in zip(columns, rows, strict=True):
        same(a, b)


@pytest.mark.parametrize("jacobian", [jacfwd, jacrev])
@over("name, sample", CASES)
def test_jacobians_of_each_sample(name, sample, jacobian):
    def all_jacobians(name, sample, names, tensors):
        numbers = tuple(i for i, n in enumerate(names) if n in VARIABLES)
        f = lambda *t: call(name, sample, names, t)  # noqa: E731
        return tuple(j for of_output in jacobian(f, numbers)(*tensors) for j in of_output)

    names = list(inputs(name, sample))
    for batched in ways(names)[: 1 + (len(names) > 1)]:
        same(*both(name, sample, batched, all_jacobians))


@over("name, sample", CASES)
def test_forward_over_reverse(name, sample):
    tensors, at = one_point(name, sample)
    f, v = at(weighted), directions(tensors)
    ours = jvp(grad(f, tuple(range(len(tensors)))), tuple(tensors), v)[1]
    same(ours, engine.autograd.functional.vhp(f, tuple(tensors), v)[1])


@over("name, sample", CASES)
def test_reverse_over_forward(name, sample):
    tensors, at = one_point(name, sample)
    f, v = at(weighted), directions(tensors)
    ours = grad(lambda *t: jvp(f, t, v)[1], tuple(range(len(tensors))))(*tensors)
    same(ours, engine.autograd.functional.vhp(f, tuple(tensors), v)[1])
