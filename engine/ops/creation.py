"""Tensors from data, constants and random numbers, and back to Python and NumPy."""

import inspect
import math
import numbers
import operator
from itertools import chain

import numpy as np

from ..arrays import devices, dispatch, dtypes, random
from ..arrays.batches import one_a_sample
from ..arrays.devices import backend_of, brought, cpu_backend, device_of, drawing, moved, numpy_array, place
from ..arrays.devices import cpu as host_device
from ..arrays.dispatch import modules
from ..arrays.dtypes import of
from ..arrays.kernels.draws import check_differs, drawn_like
from ..arrays.memory import part_of_copy
from ..arrays.quiet import be_quiet
from ..arrays.running import fresh, not_captured
from ..arrays.shapes import common_shape
from ..arrays.size import Size
from ..arrays.warn import warn
from ..core.graph import extend, mode, node_class
from ..core.linear import Clone, ToCopy, cast, clone_array
from ..core.record import array_of, record
from ..core.rules import camel
from ..core.tensor import Tensor, array_types, require_grad
from .checks import check_generator, integer, is_integer, is_scalar, misfit, number, shape_of, shown_kind, sizes, unfit
from .rows import register
from .transfers import transfer
from .writes import check_writable, fits, overwrite, zeros_for

# ---- from Python data


def leaf(array, requires_grad=False, name="tensor", pin_memory=False):
    """A new tensor for an array, made by the function ``name``."""
    t = Tensor(fresh(array))
    t = t if requires_grad is False else required(t, requires_grad, name)
    return t.pin_memory() if pin_memory else t


def required(t, requires_grad, name):
    """A new tensor, made to require grad if the function ``name`` was told so."""
    if requires_grad is False or requires_grad is None:
        return t
    if requires_grad is not True:
        raise misfit(requires_grad, name, "requires_grad", None, "bool")
    if not t.dtype.is_floating_point:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return require_grad(t)


def array_from(data, dtype=None, copy=True, name="tensor"):
    """The array of nested lists, numbers, arrays or tensors, in PyTorch's dtype for them."""
    if dtype is not None:
        dtype = dtypes.given(dtype, name)
    if type(data) is float and (dtype is None or dtype.is_floating_point):
        return np.asarray(data, (dtype or dtypes.get_default_dtype()).np)
    if isinstance(data, Tensor):
        x = data.array
    elif isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, str):
        x = np.asarray(data)
    elif type(data) not in plain_types and dispatch.is_array_type(type(data)):
        x = data
    elif hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        x = np.asarray(data)
        be_quiet()
    else:
        return from_lists(data, dtype)
    return x.astype((dtype or dtypes.from_numpy(x.dtype)).np, copy=copy)


def from_lists(data, dtype):
    """The NumPy array of a number or of nested sequences; errors in PyTorch's words."""
    shape, items = [], [data]
    while is_sequence(items[0]):
        n = len(items[0])
        for item in items if n else ():  # those beside an empty one are not looked at
            if not hasattr(item, "__len__") or isinstance(item, str):
                if dtype is None and not isinstance(item, (*plain_types, np.generic)):
                    inferred([item])  # says what is wrong with it
                raise TypeError("not a sequence")
            if len(item) != n:
                raise ValueError(f"expected sequence of length {n} at dim {len(shape)} (got {len(item)})")
        shape.append(n)
        items = [*chain.from_iterable(items)] if n else []
        if not items:
            return np.empty(shape, (dtype or dtypes.get_default_dtype()).np)
    if isinstance(items[0], np.ndarray):
        return from_arrays(items, shape, dtype)
    if isinstance(items[0], str):
        raise ValueError("too many dimensions 'str'") if shape else TypeError("new(): invalid data type 'str'")
    kinds = {*map(type, items)}
    found = dtype or (inferred(items) if not kinds <= plain_types else None)
    if not kinds <= plain_types:
        warn_of_lost_past([v for v in items if isinstance(v, Tensor)])
        items = [one_number(v, found) for v in items]
    x = np.array(items)
    if x.dtype.kind not in "biuf":  # integers that NumPy has no type for
        if float not in kinds if found is None else found.category != dtypes.FLOATING:
            raise ValueError("Overflow when unpacking long long")
        x = x.astype(np.float64)
    found = found or {"f": dtypes.get_default_dtype(), "b": dtypes.bool_}.get(x.dtype.kind, dtypes.int64)
    if found.category == dtypes.INTEGER and x.dtype.kind != "b":
        check_range(x, found)
    return x.astype(found.np, copy=False).reshape(shape)


plain_types = {bool, int, float}


def is_sequence(data):
    """Tell whether PyTorch looks for elements in it: a sequence by Python's protocol, but no text, dict or array."""
    if isinstance(data, (list, tuple)):
        return True
    if isinstance(data, (str, bytes, dict, Tensor, np.ndarray, np.generic)):
        return False
    return hasattr(data, "__len__") and hasattr(data, "__getitem__")


def from_arrays(arrays, shape, dtype):
    """The array of NumPy arrays in lists."""
    first = arrays[0]
    for a in arrays:
        if not first.ndim or not hasattr(a, "__len__"):
            raise TypeError("not a sequence" if first.ndim else "len() of unsized object")
        if len(a) != len(first):
            raise ValueError(f"expected sequence of length {len(first)} at dim {len(shape)} (got {len(a)})")
    warn(
        "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
        "single numpy.ndarray with numpy.array() before converting to a tensor.",
    )
    x = np.array([np.asarray(a) for a in arrays])
    x = x.reshape(*shape, *x.shape[1:])
    return x.astype((dtype or dtypes.from_numpy(x.dtype)).np, copy=False)


def inferred(items):
    """The dtype of numbers, NumPy's numbers and tensors of one element together.  Errors if they are something else."""
    found = None
    for (kind, _), v in {(type(v), v.dtype if isinstance(v, Tensor) else None): v for v in items}.items():
        if issubclass(kind, (np.generic, complex)):
            d = dtypes.from_numpy(np.asarray(v).dtype)
        elif issubclass(kind, (bool, int, float)):
            d = dtypes.scalar_dtype(v)
        elif issubclass(kind, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{kind.__name__}'")
        elif issubclass(kind, (list, tuple, np.ndarray)):
            continue  # an element that is a list is an error, but not here
        elif not issubclass(kind, Tensor):
            raise RuntimeError(f"Could not infer dtype of {kind.__name__}")
        else:
            d = v.dtype
        found = dtypes.promoted[found or d, d]
    return found or dtypes.int64


def warn_of_lost_past(tensors):
    """Warn that gradients end where tensors become Python numbers, if any of these would have one."""
    if mode.enabled and any(t.requires_grad for t in tensors):
        warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first.",
        )


def one_number(v, dtype):
    """An element of a list as a Python number."""
    if isinstance(v, Tensor):
        if v.array.size != 1 and dtype.np.kind in "iu":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return only_one(v)
    if isinstance(v, np.generic):
        return v.item() if v.dtype.kind != "V" else float(v)
    if isinstance(v, (bool, int, float)):
        return v
    kind = type(v).__name__
    if dtype.is_floating_point:
        raise TypeError(f"must be real number, not {kind}")
    raise TypeError(f"{kind!r} object cannot be interpreted as an integer")


def check_range(x, dtype):
    """RuntimeError if a number is beyond an integer dtype; a negative integer may wrap around once."""
    low, high = dtypes.limits(dtype)
    if x.dtype.kind == "u":
        raise ValueError("Overflow when unpacking long long")
    if x.dtype.kind == "i" and not dtype.is_signed:
        low = -high
    if not low <= x.min() <= x.max() <= high:  # nan neither
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new tensor holding a copy of ``data``: a number, nested lists, an array or a tensor."""
    warn_of_copy(data, "torch.tensor")
    be_quiet()
    return leaf(brought(array_from(data, dtype), device), requires_grad, "tensor", pin_memory)


def warn_of_copy(data, name):
    """Warn of another way to copy a tensor than the function ``name``."""
    if isinstance(data, Tensor):
        warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor).",
        )


def legacy_constructor(args, device, dtype=None):
    """The array that ``Tensor(*args)`` holds: of these sizes, uninitialised, or of data in the default dtype.

    TypeError in PyTorch's words for anything else.
    """
    data, dtype = args[0] if args else [], dtype or dtypes.get_default_dtype()
    if isinstance(data, Size) or type(data) is int:
        for position, n in enumerate(args if type(data) is int else (), 1):
            if not isinstance(n, (int, np.integer)):
                raise TypeError(
                    f"new(): argument 'size' failed to unpack the object at pos {position} with error \"type must be "
                    f'tuple of ints,but got {shown_kind(type(n))}"'
                )
        return empty(*args, dtype=dtype, device=device).array
    if len(args) > 1:
        got = ", ".join(shown_kind(type(a)) for a in args)
        raise TypeError(f"new() received an invalid combination of arguments - got ({got}), but expected one of:\n")
    if isinstance(data, Tensor):
        raise NotImplementedError("Tensor(tensor) makes no alias here: write tensor.detach(), or x.view_as(x)")
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, dict) or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise TypeError(f"new(): data must be a sequence (got {shown_kind(type(data))})")
    return tensor(data if isinstance(data, np.ndarray) else list(data), dtype=dtype, device=device).array


class LegacyType(type):
    """The types of tensors in host memory by their dtypes, as ``LongTensor``: constructors, and what they construct."""

    dtype: dtypes.dtype

    def __call__(cls, *args, device=None):
        data = args[0] if args else None
        if not isinstance(data, Tensor):
            return Tensor(legacy_constructor(args, device, cls.dtype))
        if data.dtype is not cls.dtype:
            raise TypeError(f"expected a tensor of {cls.dtype}, but got one of {data.dtype}: write x.to({cls.dtype})")
        return data.detach()

    def __instancecheck__(cls, x):
        return isinstance(x, Tensor) and Tensor.typename(x.array) == f"torch.{cls.__name__}"


(ByteTensor, CharTensor, ShortTensor, IntTensor, LongTensor, HalfTensor, FloatTensor, DoubleTensor, BoolTensor,
 BFloat16Tensor) = (
    LegacyType(dtypes.type_words[d.np] + "Tensor", (),
               {"dtype": d, "__doc__": f"``Tensor`` of {d}.", "__module__": "torch"})
    for d in (dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32,
              dtypes.float64, dtypes.bool_, dtypes.bfloat16)
)  # fmt: skip


def as_tensor(data, dtype=None, device=None):
    """A tensor of ``data``, sharing its memory where dtype allows."""
    if isinstance(data, Tensor):
        return to(data, dtype, device=device)
    if type(data) is np.ndarray and (dtype is None or of.get(data.dtype) is dtype) and place(device)[0] is cpu_backend:
        return from_numpy(data)
    be_quiet()
    return leaf(brought(array_from(data, dtype, copy=False), device))


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """``as_tensor``, a copy if ``copy`` says so; ValueError if it may be none and there is no memory to share.

    ``requires_grad``: None for that of a tensor.
    """
    if copy is False:
        if isinstance(obj, np.generic):
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
        if not isinstance(obj, Tensor) and not hasattr(obj, "__array__"):
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        have = array_of(obj).dtype
        kind = have if dtype is None else dtypes.given(dtype, "asarray").np
        if have != kind:
            words = dtypes.type_words
            raise ValueError(f"can't alias tensor with dtype '{words[have]}' into dtype '{words[kind]}'.")
    new = as_tensor(obj, dtype, device)
    new = new.clone() if copy and array_of(new) is array_of(obj) else new
    if new.requires_grad:
        return new.detach() if requires_grad is False else new
    return required(new, requires_grad, "asarray")


def from_numpy(ndarray):
    """A tensor that shares the memory of a NumPy array, both ways."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {shown_kind(type(ndarray))})")
    dtypes.from_numpy(ndarray.dtype)
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().)"
        )
    if not ndarray.flags.writeable:
        warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for "
            "the rest of this program.",
        )
    plain = np.asarray(ndarray)  # of a file that is mapped into memory, or a matrix
    return Tensor(dtypes.with_own_dtype(plain))


def from_dlpack(ext_tensor):
    """A tensor that shares the memory of another library's array."""
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(f"from_dlpack received an invalid capsule. {type(ext_tensor).__name__} has no __dlpack__")
    if getattr(ext_tensor, "__dlpack_device__", lambda: (1, 0))()[0] == 2:  # kDLCUDA
        return Tensor(backend_of("cuda").xp.from_dlpack(ext_tensor))
    return Tensor(np.from_dlpack(ext_tensor))


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A 0-d tensor of a number, of the default dtype unless another is given."""
    value = number(s, "scalar_tensor", "s", 1)
    x = np.asarray(fits(value, dtypes.given(dtype, "scalar_tensor").np))
    return leaf(moved(x, device), requires_grad, "scalar_tensor", pin_memory)


def is_tensor(obj):
    """Tell whether ``obj`` is a Tensor."""
    return isinstance(obj, Tensor)


def asking(name):
    """A function for a method of Tensor that says what a tensor is."""

    def ask(input):
        return getattr(input, name)()

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"``input.{name}()``"
    return ask


is_floating_point, is_complex, is_signed, is_inference = map(
    asking, ("is_floating_point", "is_complex", "is_signed", "is_inference")
)


def is_nonzero(input):
    """Tell whether the only element is not 0.  RuntimeError unless there is exactly one."""
    return bool(input)


# ---- constants


def factory(name):
    """A creation function of a shape, with its ``_like`` and ``new_`` forms."""

    def create(*args, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False,
               memory_format=None):  # fmt: skip
        shape = sizes(args, name, size)
        where, index = place(device)
        return leaf(where.make(index, name, shape, dtypes.given(dtype, name).np), requires_grad, name, pin_memory)

    def like(input, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False,
             memory_format=None):  # fmt: skip
        x, kind = input.array, input.array.dtype if dtype is None else dtypes.given(dtype, name + "_like").np
        if device is None:
            xp = modules[type(x)]
            return leaf(xp.asarray(getattr(xp, name + "_like")(x, kind)), requires_grad, name + "_like", pin_memory)
        where, index = place(device)
        return leaf(where.make(index, name, x.shape, kind), requires_grad, name + "_like", pin_memory)

    def new(self, *args, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        title = "new_" + name
        shape = sizes(args, title, size)
        where, index = place(device or device_of(self.array))
        x = where.make(index, name, shape, dtypes.given(dtype, title, self.dtype).np)
        return leaf(one_a_sample(x, self.array), requires_grad, title, pin_memory)

    create.__doc__ = f"A tensor of a shape, as ``torch.{name}``."
    for function, title in ((create, name), (like, name + "_like"), (new, "new_" + name)):
        register(title, "creation", function)
    return create, like, new


zeros, zeros_like, new_zeros = factory("zeros")
ones, ones_like, new_ones = factory("ones")
empty, empty_like, new_empty = factory("empty")


def filled(name, size, fill_value, dtype, device, requires_grad, pin_memory, like=None):
    """A tensor of one value; with the dtype and the device of ``like`` unless others are given."""
    value = number(fill_value, name, "fill_value", 2)
    default = fill_value.dtype if isinstance(fill_value, Tensor) else dtypes.scalar_dtype(value)
    kind = dtypes.given(dtype, name, default if like is None else dtypes.of[like.dtype]).np
    where, index = place(device if like is None else device or device_of(like))
    x = where.make(index, "full", shape_of(size, name), fits(value, kind), kind)
    return leaf(x if like is None else one_a_sample(x, like), requires_grad, name, pin_memory)


def full(size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor of one value; its dtype is that of the value unless given."""
    return filled("full", size, fill_value, dtype, device, requires_grad, pin_memory)


def full_like(input, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False,
              memory_format=None):  # fmt: skip
    """A tensor of one value with the shape and dtype of ``input``."""
    x = input.array
    return filled("full_like", x.shape, fill_value, dtype, device, requires_grad, pin_memory, x)


def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """``full`` with the dtype and the device of this tensor; inside of vmap, one for each sample where it has them."""
    return filled("new_full", size, fill_value, dtype, device, requires_grad, pin_memory, self.array)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """``tensor`` with the dtype and the device of this tensor."""
    warn_of_copy(data, "tensor.new_tensor")
    x = array_from(data, dtype or self.dtype, name="new_tensor")
    return leaf(brought(x, device or device_of(self.array)), requires_grad, "new_tensor")


def eye(n, m=None, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Ones on the diagonal, zeros elsewhere."""
    where, index = place(device)
    n, m = operator.index(n), m if m is None else operator.index(m)
    x = where.make(index, "eye", n, m, dtype=dtypes.given(dtype, "eye").np)
    return leaf(x, requires_grad, "eye", pin_memory)


def triangle_indices(name, side):
    """``tril_indices`` or ``triu_indices``: (rows, columns) of the elements of that triangle, row by row."""

    def op(row, col, offset=0, *, dtype=None, device=None, layout=None, pin_memory=False):
        places = np.stack(np.nonzero(side(np.ones((row, col), bool), offset)))
        x = moved(places.astype(dtypes.given(dtype, name, dtypes.int64).np), device)
        return leaf(x, pin_memory=pin_memory)

    return register(name, "creation", op)


tril_indices, triu_indices = triangle_indices("tril_indices", np.tril), triangle_indices("triu_indices", np.triu)


def arange(start=None, end=None, step=None, *, dtype=None, device=None, requires_grad=False, layout=None,
           pin_memory=False):  # fmt: skip
    """Numbers from ``start`` (0) to ``end``, without it, by ``step``: int64, or the default dtype if one is a float."""
    given = [v for v in (start, end, step) if v is not None]
    if step is None and len(given) < 2:
        start, end = 0, number(start if end is None else end, "arange", "end", 1)
    elif start is None or end is None or not all(is_scalar(v) for v in given):
        raise unfit("arange", *given)
    step = 1 if step is None else step
    start, end, step = (array_of(v).item() if isinstance(v, (Tensor, np.generic)) else v for v in (start, end, step))
    if dtype is None:
        dtype = dtypes.get_default_dtype() if any(isinstance(v, float) for v in (start, end, step)) else dtypes.int64
    dtype = dtypes.given(dtype, "arange")
    if dtype is dtypes.bool_:
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    n = math.ceil((end - start) / step)
    if not dtype.is_floating_point:  # PyTorch computes in that dtype; for others than int64 it counts before
        start, end, step = int(start), int(end), int(step)
        if dtype is dtypes.int64:
            if step == 0:
                raise ValueError("step must be nonzero")
            n = math.ceil((end - start) / step)
    if all(isinstance(v, int) for v in (start, step)):
        x = (start + np.arange(n) * step).astype(dtype.np)
    else:
        x = floats_from(start, step, n, dtype.np)
    return leaf(moved(x, device), requires_grad, "arange", pin_memory)


def floats_from(start, step, n, dtype):
    """n floats from ``start`` by ``step``, to the last bit as PyTorch's kernel computes them on vectors of 32 bytes.

    The first element of each vector is rounded, and the others are computed from it; each multiplies and adds with a
    single rounding in float64.  What is left over after pairs of vectors is computed one by one.
    """
    lanes, i = 32 // dtype.itemsize, np.arange(n)
    first = np.where(i < n // (2 * lanes) * (2 * lanes), i // lanes * lanes, i)
    wide, step = np.longdouble, np.longdouble(step)
    begin = (wide(start) + step * first.astype(wide)).astype(np.float64).astype(dtype)
    return (begin.astype(wide) + step * (i - first).astype(wide)).astype(np.float64).astype(dtype)


def linspace(start, end, steps, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """``steps`` numbers from ``start`` to ``end``, both included; computed from both ends, as PyTorch does."""
    dtype = dtypes.given(dtype, "linspace")
    start, end = ends("linspace", start, end, dtype)
    steps = int(steps)
    work = dtype.np if dtype.is_floating_point else np.dtype(np.float64)
    first, last = work.type(start), work.type(end)
    step = (last - first) / work.type(max(steps - 1, 1))
    # PyTorch's kernel multiplies and adds with a single rounding, but of half precision, where it rounds twice
    wide = {4: np.float64, 8: np.longdouble}.get(work.itemsize, work.type)
    first, last, step, i = wide(first), wide(last), wide(step), np.arange(steps)
    up, down = first + step * i.astype(wide), last - step * (steps - 1 - i).astype(wide)
    x = np.where(i < steps // 2, up, down).astype(work).astype(dtype.np) if steps != 1 else np.full(1, start, dtype.np)
    return leaf(moved(x, device), requires_grad, "linspace", pin_memory)


def ends(name, start, end, dtype):
    """Both ends as numbers, for an integer dtype without their fractions."""
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    if dtype is dtypes.bool_:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    return (start, end) if dtype.is_floating_point else tuple(int(fits(v, dtype.np)) for v in (start, end))


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=False, layout=None,
             pin_memory=False):  # fmt: skip
    """``base`` to the powers ``linspace(start, end, steps)``."""
    dtype = dtypes.given(dtype, "logspace")
    start, end = ends("logspace", start, end, dtype)
    base = number(base, "logspace", "base", 4, "float")
    powers = linspace(start, end, steps, dtype=dtypes.float64, device="cpu").array
    return leaf(moved((base**powers).astype(dtype.np), device), requires_grad, "logspace", pin_memory)


# ---- random numbers: arrays/random.py draws them


def random_factory(name, draw):
    """A creation function of random numbers and its ``_like`` form, by the draw of that name."""

    def create(*args, size=None, generator=None, dtype=None, device=None, requires_grad=False, layout=None,
               pin_memory=False):  # fmt: skip
        shape = sizes(args, name, size)
        kind = dtypes.given(dtype, name).np
        return leaf(drawn(device, draw, generator, shape, kind), requires_grad, name, pin_memory)

    def like(input, *, dtype=None, device=None, requires_grad=False, generator=None, layout=None, pin_memory=False,
             memory_format=None):  # fmt: skip
        x, kind = input.array, input.array.dtype if dtype is None else dtypes.given(dtype, name + "_like").np
        if device is None:
            check_generator(generator)
            return leaf(drawn_like(x, kind, draw, generator), requires_grad, name + "_like", pin_memory)
        return leaf(drawn(device, draw, generator, x.shape, kind), requires_grad, name + "_like", pin_memory)

    return register(name, "creation", create), register(name + "_like", "creation", like)


def drawn(device, draw, generator, *arguments):
    """Random numbers on a device, by the draw of that name: ``draw(generator, shape, dtype, ...)``."""
    check_generator(generator)
    where, index = place(device)
    x = getattr(drawing(where.random), draw)(generator, *arguments)
    return x if index is None else moved(x, devices.device(where.type, index))


rand, rand_like = random_factory("rand", "uniform")
randn, randn_like = random_factory("randn", "normal")


def randint(low=None, high=None, size=None, *, generator=None, dtype=None, device=None, requires_grad=False,
            layout=None, pin_memory=False):  # fmt: skip
    """Integers from ``low`` (0) to ``high``, without it: ``randint(high, size)`` or ``randint(low, high, size)``."""
    given = [v for v in (low, high, size) if v is not None]
    if len(given) < 2:
        raise unfit("randint", *given)
    if size is None:
        low, high, size = None, low, high
    elif high is None:
        low, high = None, low
    if low is None:
        low, high, shape = 0, integer(high, "randint", "high", 1), shape_of(size, "randint", 2)
    elif not is_integer(low) or not is_integer(high) or not isinstance(size, (tuple, list)):
        raise unfit("randint", *given)
    else:
        low, high, shape = int(low), int(high), sizes((size,), "randint")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    kind = dtypes.given(dtype, "randint", dtypes.int64).np
    return leaf(drawn(device, "random", generator, shape, kind, low, high), requires_grad, "randint", pin_memory)


def randint_like(input, low, high=None, *, dtype=None, device=None, requires_grad=False, generator=None, layout=None,
                 pin_memory=False, memory_format=None):  # fmt: skip
    """``randint`` with the shape and dtype of ``input``."""
    if high is None:
        low, high = 0, low
    x, dtype = input.array, dtype or input.dtype
    return randint(low, high, x.shape, generator=generator, dtype=dtype, device=device or device_of(x),
                   requires_grad=requires_grad, pin_memory=pin_memory)  # fmt: skip


def randperm(n, *, generator=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """The integers from 0 to n - 1 in random order."""
    n, kind = integer(n, "randperm", "n", 1), dtypes.given(dtype, "randperm", dtypes.int64).np
    return leaf(drawn(device, "randperm", generator, n, kind), requires_grad, "randperm", pin_memory)


def normal(mean=None, std=None, size=None, *, generator=None, dtype=None, device=None, requires_grad=False,
           layout=None, pin_memory=False):  # fmt: skip
    """Normal samples: numbers and a size, or tensors (either or both) of means and deviations (1 by default)."""
    inputs = [v for v in (mean, std) if isinstance(v, Tensor)]
    if size is None and inputs and mean is not None:
        std = 1.0 if std is None else std
        if len(inputs) == 2:
            common_shape(*(v.array.shape for v in inputs))
        out = drawn(device_of(inputs[0].array), "normal_around", generator, array_of(mean), array_of(std))
        return record(NORMALS[len(inputs), inputs[0] is mean], out, inputs, [v.array.shape for v in inputs])
    if not isinstance(size, (tuple, list)) or not is_scalar(mean) or not is_scalar(std):
        raise unfit("normal", *(v for v in (mean, std, size) if v is not None))
    mean, std = (number(v, "normal", "mean") for v in (mean, std))
    kind, shape = dtypes.given(dtype, "normal").np, sizes((size,), "normal")
    return leaf(drawn(device, "normal", generator, shape, kind, mean, std), requires_grad, "normal", pin_memory)


def bernoulli(input, p=None, *, generator=None):
    """Zeros and ones: one with the probability that ``input`` gives, element by element."""
    x, p = input.shared(), p if p is None else number(p, "bernoulli", "p", 2, "float")
    return record(Bernoulli, drawn(device_of(x), "bernoulli", generator, x.shape, x.dtype, x if p is None else p),
                  (input,))  # fmt: skip


# what is drawn does not change with what it was drawn from: the gradients are 0
Bernoulli = node_class("BernoulliBackward0", lambda g: zeros_for(g))
NORMALS = {
    (1, True): node_class("NormalBackward1", lambda g, shape: zeros_for(g, shape)),
    (1, False): node_class("NormalBackward2", lambda g, shape: zeros_for(g, shape)),
    (2, True): node_class("NormalBackward3", lambda g, a, _: zeros_for(g, a), lambda g, _, b: zeros_for(g, b)),
}


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices drawn with probabilities proportional to ``input``, row by row."""
    x = input.array
    num_samples = integer(num_samples, "multinomial", "num_samples", 2)
    return Tensor(drawn(device_of(x), "multinomial", generator, x, num_samples, replacement))


def filler(name, draw, **defaults):
    """An in-place method that fills a tensor with random numbers, by the draw of that name."""
    names, Backward = list(defaults), node_class(camel(name[:-1]) + "Backward0", lambda g: zeros_for(g))

    def fill_(self, *args, generator=None, **options):
        be_quiet()
        check_writable(self)
        check_differs(self.array)
        check_generator(generator)
        if len(args) > len(names):
            raise TypeError(f"{name}() takes from 0 to {len(names)} positional arguments but {len(args)} were given")
        for n in options.keys() - {*names[len(args) :]}:
            wrong = "multiple values for" if n in names else "an unexpected keyword"
            raise TypeError(f"{name}() got {wrong} argument '{n}'")
        values = {**defaults, **dict(zip(names, args)), **options}
        x = self.array
        numbers = [v if isinstance(v, float) or v is None or draw == "bernoulli" and isinstance(v, Tensor) else
                   number(v, name, k, i, "float") for i, (k, v) in enumerate(values.items(), 1)]  # fmt: skip
        if draw == "normal":
            numbers.append(not x.flags.c_contiguous)  # PyTorch draws those one by one
        return overwrite(self, record(Backward, drawn_like(x, x.dtype, draw, generator, *numbers), (self,)))

    by_place, either = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    shown = [inspect.Parameter("self", by_place)]  # by position: ``from`` is no name that Python takes for an argument
    shown += [
        inspect.Parameter(n, by_place if n == "from" else either, default=default) for n, default in defaults.items()
    ]
    shown += [inspect.Parameter("generator", inspect.Parameter.KEYWORD_ONLY, default=None)]
    fill_.__signature__ = inspect.Signature(shown)
    return register(name, "random", fill_)


Random = [node_class(f"RandomBackward{i}", lambda g: zeros_for(g)) for i in range(3)]
uniform_ = filler("uniform_", "uniform", **{"from": 0.0, "to": 1.0})
normal_ = filler("normal_", "normal", mean=0.0, std=1.0)
bernoulli_ = filler("bernoulli_", "bernoulli", p=0.5)
exponential_ = filler("exponential_", "exponential", lambd=1.0)


def random_(self, low=None, high=None, *, generator=None):
    """Fill with integers: ``random_(high)``, ``random_(low, high)`` or the whole range of the dtype."""
    check_writable(self)
    Backward = Random[2 if low is None else 1 if high is None else 0]
    if high is None and low is not None:
        low, high = 0, low
    low = 0 if high is not None and low is None else low
    x = self.array
    check_differs(x)
    check_generator(generator)
    return overwrite(self, record(Backward, drawn_like(x, x.dtype, "random", generator, low, high), (self,)))


STREAM = "the state of a random generator is read or set"


class Generator(random.Generator):
    """A random stream of its own: pass it as ``generator=``.  RuntimeError for "cuda" where there is no GPU."""

    def __new__(cls, device="cpu"):
        device = devices.cpu if device is None else devices.device(device)
        if device.type == "cuda" and not devices.has_cuda():
            raise RuntimeError(
                "Cannot get CUDA generator without ATen_cuda library. There is no GPU that CuPy can use: make the "
                "generator on 'cpu' or 'sim'"
            )
        where, index = place(device)
        return super().__new__(cls) if where is cpu_backend else where.random.generator(index)

    def __init__(self, device="cpu"):
        super().__init__(devices.cpu if device is None else devices.device(device))

    def manual_seed(self, seed):
        not_captured(STREAM)
        return super().manual_seed(seed)

    def get_state(self):
        """The state, as a tensor of bytes in PyTorch's layout."""
        not_captured(STREAM)
        return Tensor(super().get_state())

    def set_state(self, new_state):
        """Go on from a state; returns the generator."""
        not_captured(STREAM)
        return super().set_state(array_of(new_state))


random.state_as_tensor = Tensor
random.default_generator = default_generator = Generator()
default_generator.seed()


def seed():
    return default_generator.seed()


def initial_seed():
    return default_generator.initial_seed()


def get_rng_state():
    return default_generator.get_state()


def manual_seed(seed):
    """Seed the default generators of all devices, and return the host's."""
    for where in devices.backends.values():
        where.random.default_generator.manual_seed(int(seed))
    return default_generator


def set_rng_state(new_state):
    """Go on from a state that ``get_rng_state`` gave."""
    default_generator.set_state(new_state)


for name in ("seed", "initial_seed", "manual_seed", "get_rng_state", "set_rng_state"):
    setattr(random, name, vars()[name])


# ---- copies and casts


def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    """This tensor in another dtype or on another device: ``to(dtype)``, ``to(device)``, ``to(other)``."""
    be_quiet()
    switches = [a for a in args if isinstance(a, bool)]  # positional, as in PyTorch: first one, then the other
    non_blocking, copy = (*switches, *(non_blocking, copy)[len(switches) :])[:2]
    for a in args:
        if isinstance(a, (dtypes.dtype, type)):
            dtype = a
        elif isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif a is not None and not isinstance(a, bool):
            device = a
    kind = None if dtype is None else dtypes.given(dtype).np
    result = cast(self, kind or self.array.dtype) if device is None else transfer(self, device, kind, non_blocking)
    return record(ToCopy, clone_array(self.array), (self,), (self.array.dtype,)) if copy and result is self else result


def type_as(self, other):
    """This tensor in the dtype of another."""
    return to(self, other.dtype)


def type_name(self, dtype=None, non_blocking=False):
    """The name of the tensor's type, as "torch.FloatTensor"; with a dtype, ``to(dtype)``."""
    if dtype is None:
        return Tensor.typename(self.array)
    dtype = dtype.dtype if isinstance(dtype, LegacyType) else dtype
    if isinstance(dtype, str):
        names = {f"torch.{word}Tensor": dtypes.of[d] for d, word in dtypes.type_words.items()}
        if dtype not in names:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = names[dtype]
    return to(self, dtype)


def caster(name, dtype):
    def method(self, memory_format=None):
        be_quiet()
        return cast(self, dtype.np)

    method.__doc__ = f"This tensor in {dtype}."
    return register(name, "cast", method)


to_float, double, half, bfloat16 = (
    caster(d.name, d) for d in (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
)
long, to_int, short, char, byte, to_bool = (
    caster(d.name, d) for d in (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint8, dtypes.bool_)
)


def cpu(self, memory_format=None):
    """This tensor in host memory."""
    return transfer(self, host_device)


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """This tensor in the memory of a GPU."""
    device = devices.device("cuda" if device is None else device)
    if device.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return transfer(self, device, non_blocking=non_blocking)


def pin_memory(self, device=None):
    """A copy in host memory from which a GPU copies without a stop.  RuntimeError where there is no GPU."""
    if is_pinned(self):
        return self
    if device_of(self.array) != host_device:
        raise RuntimeError(f"cannot pin '{Tensor.typename(self.array)}' only dense CPU tensors can be pinned")
    if not devices.has_cuda():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return record(Clone, backend_of("cuda").pinned(self.shared()), (self,))


def is_pinned(self, device=None):
    """Tell whether this tensor's memory is pinned."""
    return "cuda" in devices.backends and backend_of("cuda").is_pinned(self.array)


def get_device(self):
    """The number of the GPU that this tensor is on, -1 in host memory."""
    index = device_of(self.array).index
    return -1 if index is None else index


# ---- to Python and NumPy


def item(self):
    """The one element, as a Python number."""
    x = self.array
    if x.size != 1:
        raise RuntimeError(f"a Tensor with {x.size} elements cannot be converted to Scalar")
    return (x if x.dtype.kind != "V" else x.astype(np.float32)).item()


def tolist(self):
    """The elements as nested lists of Python numbers."""
    x = self.array
    return (x if x.dtype.kind != "V" else x.astype(np.float32)).tolist()


def numpy(self, *, force=False):
    """A NumPy array that shares this tensor's memory."""
    if force:
        return numpy(self.detach().cpu())
    if mode.enabled and self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self.dtype is dtypes.bfloat16:
        raise TypeError("Got unsupported ScalarType BFloat16")
    return numpy_array(self.shared())


def __array__(self, dtype=None, copy=None):
    return np.array(numpy(self), dtype, copy=copy)


def __array_wrap__(self, array, context=None, return_scalar=False):
    return Tensor(np.asarray(array))


@property  # type: ignore[misc]  # surface/methods.py gives it to Tensor
def __cuda_array_interface__(self):
    """Describe the memory on a GPU to other libraries: ``cupy.asarray(tensor)`` shares it."""
    if not self.is_cuda:
        raise AttributeError(f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {type_name(self)}")
    if self.node is not None:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
    return self.array.__cuda_array_interface__


def __dlpack__(self, *, stream=None, **options):
    if self.node is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return self.shared().__dlpack__(**options)


def __dlpack_device__(self):
    return self.shared().__dlpack_device__()


def only_one(self):
    if self.array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return item(self)


def __float__(self):
    warn_of_lost_past([self])
    return only_one(self).__float__()


def __int__(self):
    return only_one(self).__int__()


def __complex__(self):
    return complex(only_one(self))


def __index__(self):
    if self.array.size != 1 or self.dtype.is_floating_point:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return __int__(self)


def __bool__(self):
    x = self.array
    if x.size != 1:
        what = "more than one value" if x.size else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(x)


def __len__(self):
    if self.array.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self.array.shape[0]


def __iter__(self):
    if self.array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def __contains__(self, element):
    if not isinstance(element, (Tensor, numbers.Number)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((element == self).any())


def __reversed__(self):
    return self.flip(0) if self.array.ndim else self


def __deepcopy__(self, memo):
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    new = self.__class__.__new__(self.__class__)
    Tensor.__init__(new, part_of_copy(self.array, memo))
    memo[id(self)] = new
    require_grad(new, self.requires_grad)
    if self._grad is not None:
        new._grad = __deepcopy__(self._grad, memo) if self._grad.is_leaf else self._grad.detach().clone()
    return new


def rebuilt(cls, array, requires_grad, device=host_device):
    new = cls.__new__(cls)
    Tensor.__init__(new, moved(dtypes.with_own_dtype(array), device))
    return require_grad(new, requires_grad)


def __reduce_ex__(self, protocol):
    if self.is_cpu:
        return rebuilt, (self.__class__, self.shared(), self.requires_grad)
    return rebuilt, (self.__class__, moved(self.array, host_device), self.requires_grad, self.device)


# ---- Tensor(2, 3): what PyTorch's old constructor takes

observed: dict = {}  # array type -> what is called with each Tensor that is made of such an array, and with the array


def constructed(tensor, array, node, sizes, device):
    """(array, node) for what is given to ``Tensor``: an array and its node, or what PyTorch's constructor takes."""
    kind = type(array)
    if kind in observed:
        observed[kind](tensor, array)
    elif kind in dispatch.scalar_types or not dispatch.is_array_type(kind):
        return legacy_constructor((array, *(() if node is None else (node,)), *sizes), device), None
    else:
        array_types.add(kind)
    return array, node


extend(Tensor, construct=constructed)
