"""PyTorch's own samples, run by PyTorch and by the engine: what both make of them, and where that differs.

``torch.testing._internal`` has for each operation a generator of inputs with which PyTorch tests itself: ordinary ones,
reference inputs with edge cases, and calls which must raise.
"""

import functools
import math
import re
import types
import warnings
from collections.abc import Mapping

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput  # noqa: F401

import engine
import engine.nn.functional

Info = type(op_db[0])
NAMES = {d: getattr(engine, str(d).removeprefix("torch.")) for d in (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool)}  # fmt: skip
TOLERANCE = {torch.float64: 1e-7, torch.float32: 2e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}


class Foreign(Exception):
    """A sample of something that the engine does not have at all; the message says what."""


def to_engine(value, made):
    """A sample's value as the engine's; ``made``: id of PyTorch's tensor -> (an equal leaf, the engine's)."""
    if isinstance(value, torch.Tensor):
        if id(value) not in made:
            leaf = value.detach().requires_grad_(value.requires_grad)
            made[id(value)] = leaf, tensor_to_engine(value).requires_grad_(value.requires_grad), value
        return made[id(value)][1]
    if isinstance(value, torch.dtype):
        if value not in NAMES:
            raise Foreign("Complex numbers, other dtypes")
        return NAMES[value]
    if isinstance(value, torch.Generator):
        twin = engine.Generator()
        twin.set_state(engine.from_numpy(value.get_state().numpy()))
        return twin
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, types.BuiltinFunctionType):
        return getattr(engine.nn.functional, value.__name__)
    if isinstance(value, torch.layout | torch.memory_format):
        if value in (torch.strided, torch.contiguous_format, torch.preserve_format):
            return None
        raise Foreign("Memory formats")
    if isinstance(value, complex):
        raise Foreign("Complex numbers, other dtypes")
    return inside(value, to_engine, made)


def to_leaves(value, made):
    """A sample's value for PyTorch: its tensors as leaves."""
    return made[id(value)][0] if isinstance(value, torch.Tensor) else inside(value, to_leaves, made)


def inside(value, change, made):
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, list | tuple):
        return type(value)(change(v, made) for v in value)
    if isinstance(value, Mapping):
        return {k: change(v, made) for k, v in value.items()}
    return value


def tensor_to_engine(t):
    """A tensor of the engine on a copy of the memory of another, which requires grad if that does."""
    if t.layout is not torch.strided:
        raise Foreign("Sparse and quantized tensors")
    if t.device.type != "cpu":
        raise Foreign("Devices")
    if t.dtype not in NAMES:
        raise Foreign("Complex numbers, other dtypes")
    if t.ndim > 64:
        raise Foreign("More than 64 dimensions")
    t = t.detach()
    kind = NAMES[t.dtype].np
    if t.numel():
        memory = torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage()).numpy().copy().view(kind)
        strides = [s * kind.itemsize for s in t.stride()]
        array = np.ndarray(t.shape, kind, memory, t.storage_offset() * kind.itemsize, strides)
    else:
        array = np.zeros(t.shape, kind)
    return engine.Tensor(array if array.ndim else array[()])


def to_numpy(t):
    """The elements of a tensor of either library, floats as float64."""
    if isinstance(t, engine.Tensor):
        x = np.asarray(t.detach().array)
        return x.astype(np.float64) if x.dtype.kind in "fV" else x
    t = t.detach()
    if t._is_zerotensor():
        t = torch.zeros(t.shape, dtype=t.dtype)
    return (t.double() if t.is_floating_point() else t).numpy()


def flat(value):
    """What a call returned, as a list of tensors and other values."""
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size | engine.Size):
        return [v for item in value for v in flat(item)]
    return [value]


def is_tensor(value):
    return isinstance(value, torch.Tensor | engine.Tensor)


def close(mine, theirs, scale=1.0):
    """None, or what differs between the value of the engine and that of PyTorch."""
    if is_tensor(theirs) != is_tensor(mine):
        return f"type {type(mine).__name__}, not {type(theirs).__name__}"
    if not is_tensor(theirs):
        if isinstance(theirs, torch.dtype):
            theirs = NAMES.get(theirs)
        same = mine == theirs or isinstance(theirs, float) and (math.isclose(mine, theirs, rel_tol=1e-6, abs_tol=1e-8)
                                                                or mine != mine and theirs != theirs)  # fmt: skip
        return None if same else f"value {mine!r}, not {theirs!r}"
    if NAMES.get(theirs.dtype) is not mine.dtype:
        return f"dtype {mine.dtype}, not {theirs.dtype}"
    if tuple(mine.shape) != tuple(theirs.shape):
        return f"shape {tuple(mine.shape)}, not {tuple(theirs.shape)}"
    a, b = to_numpy(mine), to_numpy(theirs)
    tolerance = TOLERANCE.get(theirs.dtype, 0) * scale
    if not np.allclose(a, b, tolerance, tolerance, equal_nan=True):
        wrong = ~np.isclose(a, b, tolerance, tolerance, equal_nan=True)
        where = tuple(int(i[0]) for i in np.nonzero(wrong)) if a.ndim else ()
        return f"value {a[where]!r}, not {b[where]!r} at {where} ({wrong.sum()} of {a.size} differ)"
    return None


def function_of(op):
    """The engine's function for an entry of PyTorch's list; None if it has none."""
    found = engine
    for part in op.name.split("."):
        found = getattr(found, part, None)
    if isinstance(op.op, types.FunctionType) and op.op.__name__ == "<lambda>":
        if found is None and not hasattr(engine.Tensor, op.name):
            return None
        names = {**op.op.__globals__, "torch": Names(), "wrapper_set_seed": seeded}
        return types.FunctionType(op.op.__code__, names, "lambda", op.op.__defaults__, op.op.__closure__)
    return found or getattr(engine.Tensor, op.name, None)


class Names:
    """The engine's functions, and its methods as functions."""

    def __getattr__(self, name):
        return getattr(engine, name) if hasattr(engine, name) else getattr(engine.Tensor, name)


def seeded(function, *args, **kwargs):
    engine.manual_seed(42)
    return function(*args, **kwargs)


def call(function, args, kwargs):
    """(result, None) or (None, the exception); warnings are none of this comparison's business."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs), None
        except Exception as e:  # whatever it is, it is compared
            return None, e


def first_sentence(e):
    return re.split(r"\.\s|\n|\.$", str(e).strip())[0].strip()


def compare_errors(mine, theirs):
    """None, or how an exception of the engine differs from PyTorch's."""
    if mine is None:
        return f"no error; PyTorch: {type(theirs).__name__}: {first_sentence(theirs)}"
    if theirs is None:
        return f"raises {type(mine).__name__}: {first_sentence(mine)}"
    kind = next(k for k in type(theirs).__mro__ if k.__module__ == "builtins")
    if not isinstance(mine, kind):
        return f"{type(mine).__name__} ({first_sentence(mine)}), not {type(theirs).__name__}: {first_sentence(theirs)}"
    if first_sentence(mine) != first_sentence(theirs):
        return f"message {first_sentence(mine)!r}, not {first_sentence(theirs)!r}"
    return None


def weighted_grads(module, results, leaves, seed, create_graph):
    """The gradients of the weighted results by the leaves."""
    rng = np.random.default_rng(seed)
    pairs = []
    for r in results:
        if is_tensor(r) and r.requires_grad:
            w = rng.uniform(0.5, 1.5, tuple(r.shape)).astype(np.float32)
            pairs.append((r, module.as_tensor(w).to(r.dtype)))
    if not pairs:
        return [None] * len(leaves)
    results, weights = map(list, zip(*pairs, strict=True))
    return list(module.autograd.grad(results, leaves, weights, create_graph=create_graph, allow_unused=True))


def compare_grads(mine, theirs, order, scale):
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if a is None or b is None:
            known = a if b is None else b
            if known is not None and not np.allclose(to_numpy(known), 0, atol=1e-9):
                return f"gradient {order} of input {i} is {'missing' if a is None else 'there, PyTorch has none'}"
            continue
        wrong = close(a, b, scale)
        if wrong:
            return f"gradient {order} of input {i}: {wrong}"
    return None


def in_place(op):
    """The in-place method of an entry, on a copy, in PyTorch and in the engine; None if one of them has none."""
    name = getattr(op.inplace_variant, "__name__", "")
    if not hasattr(torch.Tensor, name) or not hasattr(engine.Tensor, name):
        return None
    return [
        lambda x, *args, t=t, **kwargs: getattr(t.Tensor, name)(x.clone(), *args, **kwargs) for t in (torch, engine)
    ]


def compare_sample(op, function, sample, second, original=None):
    """None, or what differs: value, dtype, shape, gradients, second gradients, errors.  Foreign if it is not for us.

    ``original``: PyTorch's function, if it is not that of the entry.
    """
    made = {}
    given = [to_engine(v, made) for v in (sample.input, *sample.args)]
    kwargs = {k: to_engine(v, made) for k, v in sample.kwargs.items()}
    if kwargs.get("out") is not None:
        raise Foreign("`out=`")
    torch.manual_seed(42)
    theirs, their_error = call(original or op.op, *to_leaves([(sample.input, *sample.args), sample.kwargs], made))
    engine.manual_seed(42)
    mine, my_error = call(function, given, kwargs)
    if their_error or my_error:
        return compare_errors(my_error, their_error)
    if op.name.removeprefix("new_").startswith("empty"):  # whatever was in memory
        mine, theirs = mine * 0 == 1, theirs * 0 == 1
    a, b = flat(mine), flat(theirs)
    if any(isinstance(v, torch.Tensor) and (v.layout is not torch.strided or v.dtype not in NAMES) for v in b):
        raise Foreign("Complex numbers, other dtypes")
    if len(a) != len(b):
        return f"{len(a)} results, not {len(b)}"
    for x, y in zip(a, b, strict=True):
        wrong = close(x, y)
        if wrong:
            return f"result: {wrong}"
        if is_tensor(y) and x.requires_grad != y.requires_grad:
            return f"requires_grad {x.requires_grad}, not {y.requires_grad}"
    pairs = [p for p in made.values() if p[0].requires_grad]
    if not pairs or not any(is_tensor(y) and y.requires_grad for y in b):
        return None
    if sample.output_process_fn_grad is not None:
        a, b = flat(sample.output_process_fn_grad(mine)), flat(sample.output_process_fn_grad(theirs))
    their_leaves, my_leaves = ([p[i] for p in pairs] for i in (0, 1))
    theirs, their_error = call(weighted_grads, (torch, b, their_leaves, 1, second), {})
    mine, my_error = call(weighted_grads, (engine, a, my_leaves, 1, second), {})
    if their_error or my_error:
        wrong = compare_errors(my_error, their_error)
        return wrong and f"gradient 1: {wrong}"
    wrong = compare_grads(mine, theirs, 1, 5)
    if wrong or not second:
        return wrong
    theirs, their_error = call(weighted_grads, (torch, theirs, their_leaves, 2, False), {})
    mine, my_error = call(weighted_grads, (engine, mine, my_leaves, 2, False), {})
    if their_error or my_error:
        wrong = compare_errors(my_error, their_error)
        return wrong and f"gradient 2: {wrong}"
    return compare_grads(mine, theirs, 2, 50)


def shown(sample):
    """A sample in one line."""

    def one(v):
        if isinstance(v, torch.Tensor):
            return f"{str(v.dtype)[6:]}{list(v.shape)}" + ("" if v.is_contiguous() else f"/{v.stride()}")
        if isinstance(v, list | tuple):
            return f"{type(v).__name__}({', '.join(map(one, v))})"
        return repr(v)

    return ", ".join([*map(one, (sample.input, *sample.args)), *(f"{k}={one(v)}" for k, v in sample.kwargs.items())])


@functools.cache
def rows():
    """{name: [entries of PyTorch's list]} of what the engine has."""
    found = {}
    for op in op_db:
        if function_of(op) is not None:
            found.setdefault(op.name, []).append(op)
    return found


def samples(op, dtype, reference):
    """The ordinary or the reference samples for a dtype; not all generators of the latter know dtypes without grad."""
    grad = dtype.is_floating_point and op.supports_autograd
    if reference:
        try:
            yield from op.reference_inputs("cpu", dtype, requires_grad=grad)
            return
        except ValueError:
            pass
    yield from op.sample_inputs("cpu", dtype, requires_grad=grad)
