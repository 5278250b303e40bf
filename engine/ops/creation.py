"""Tensors from data, constants and random numbers, and back to Python and NumPy."""

import math
import numbers
import warnings

import numpy as np

from .. import backend, dtypes, random
from ..backend import (
    address,
    batches,
    copied,
    device_names,
    device_of,
    drawing,
    home,
    host,
    in_order,
    modules,
    moved,
    place,
    running,
    storage,
)  # fmt: skip
from ..backend import cpu as host_device
from ..dtypes import of
from ..graph import node_class
from ..inplace import check_writable, fits, overwrite
from ..printing import Size
from ..record import enter, raw, record
from ..tensor import Tensor, shown_kind
from .structure import Clone, cast, clone, sum_to, transfer

# ---- from Python data


def leaf(array, requires_grad=False):
    """A new tensor for an array."""
    if not array.ndim and type(array) is np.ndarray:  # without dimensions: NumPy's scalar, which computes faster
        array = array[()]
    t = Tensor(array if running.tape is None else running.tape.fresh(array))
    if requires_grad and not t.dtype.is_floating_point:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return t.requires_grad_() if requires_grad else t


def array_of(data, dtype=None, copy=True):
    """The array of nested lists, numbers, arrays or tensors, in PyTorch's dtype for them."""
    if isinstance(data, Tensor):
        x = data.array
    elif isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, str):
        x = np.asarray(data)
        dtypes.from_numpy(x.dtype)
    elif backend.is_array_type(type(data)):
        x = data
    elif hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        x = np.asarray(data)
    else:
        x = from_lists(data)
    if dtype is None and not isinstance(x, (int, float)):
        if x.dtype == np.float64 and made_of_numbers(data):
            dtype = dtypes.get_default_dtype()
        else:
            dtype = dtypes.from_numpy(x.dtype)
    elif dtype is None:
        dtype = dtypes.scalar_dtype(x)
    if type(x) in (int, float, bool):
        try:
            return np.asarray(x, dtype.np)
        except OverflowError:
            if isinstance(x, int) and not -(2**63) <= x < 2**64:
                raise RuntimeError("Overflow when unpacking long long") from None
            return np.asarray(x).astype(dtype.np)
    return x.astype(dtype.np, copy=copy)


def made_of_numbers(data):
    """Whether the first element in nested lists is a Python number: those take the default dtype."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (float, int, list, tuple)) and not isinstance(data, np.generic)


def from_lists(data):
    """The NumPy array of nested lists.  ValueError in PyTorch's words if they are ragged, else TypeError."""
    shape, level = [], data
    while isinstance(level, (list, tuple, range)):
        shape.append(len(level))
        if not len(level):
            break
        level = level[0]
    if isinstance(level, str):
        raise TypeError(f"new(): invalid data type '{type(level).__name__}'")
    if isinstance(level, (Tensor, np.ndarray)):
        shape.extend(level.shape)
    elif not isinstance(level, (numbers.Number, np.generic, list, tuple, range)):
        raise RuntimeError(f"Could not infer dtype of {type(level).__name__}")
    check_lengths(data, shape, 0)
    x = np.array(to_plain(data))
    if x.dtype == object:
        if x.size and all(isinstance(v, int) for v in x.flat):
            raise RuntimeError("Overflow when unpacking long long")
        wrong = next((v for v in x.flat if not isinstance(v, numbers.Number)), None)
        raise TypeError(f"must be real number, not {type(wrong).__name__}")
    return x if x.size else x.astype(dtypes.get_default_dtype().np)


def to_plain(data):
    if isinstance(data, (list, tuple)):
        return [to_plain(d) for d in data]
    return moved(data.array, host_device) if isinstance(data, Tensor) else data


def check_lengths(data, shape, dim):
    if dim < len(shape) and isinstance(data, (list, tuple)):
        if len(data) != shape[dim]:
            raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
        if dim + 1 < len(shape):
            for d in data:
                if not hasattr(d, "__len__"):
                    raise TypeError(f"expected TypeError: not a sequence at dim {dim + 1}")
                check_lengths(d, shape, dim + 1)


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new tensor holding a copy of ``data``: a number, nested lists, an array or a tensor."""
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            stacklevel=2,
        )
    x = array_of(data, dtype)
    if type(x) in device_names and device is None:
        return leaf(x, requires_grad)
    x = leaf(moved(x if type(x) in device_names else np.array(x), device), requires_grad)
    return x.pin_memory() if pin_memory else x


def legacy_constructor(args, device):
    """The array that ``Tensor(*args)`` holds: of these sizes, uninitialised, or of data in the default dtype.

    TypeError in PyTorch's words for anything else.
    """
    data = args[0]
    if isinstance(data, Size) or type(data) is int:
        for position, n in enumerate(args if type(data) is int else (), 1):
            if not isinstance(n, (int, np.integer)):
                raise TypeError(
                    f"new(): argument 'size' failed to unpack the object at pos {position} with error \"type must be "
                    f'tuple of ints,but got {shown_kind(type(n))}"'
                )
        return empty(*args, device=device).array
    if len(args) > 1:
        got = ", ".join(shown_kind(type(a)) for a in args)
        raise TypeError(f"new() received an invalid combination of arguments - got ({got}), but expected one of:\n")
    if isinstance(data, Tensor):
        raise NotImplementedError("Tensor(tensor) makes no alias here: write tensor.detach(), or x.view_as(x)")
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, dict) or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise TypeError(f"new(): data must be a sequence (got {shown_kind(type(data))})")
    return tensor(list(data), dtype=dtypes.get_default_dtype(), device=device).array


def as_tensor(data, dtype=None, device=None):
    """A tensor of ``data``, sharing its memory where dtype allows."""
    if isinstance(data, Tensor):
        return to(data, dtype, device=device)
    if type(data) is np.ndarray and (dtype is None or of.get(data.dtype) is dtype) and place(device)[0] is host:
        return from_numpy(data)
    x = array_of(data, dtype, copy=False)
    if type(x) in device_names:
        return leaf(x if device is None else moved(x, device))
    return leaf(moved(np.array(x), device))


asarray = as_tensor


def from_numpy(ndarray):
    """A tensor that shares the memory of a NumPy array, both ways."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.from_numpy(ndarray.dtype)
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().)"
        )
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for "
            "the rest of this program.",
            stacklevel=2,
        )
    return Tensor(ndarray)


def from_dlpack(ext_tensor):
    """A tensor that shares the memory of another library's array."""
    if getattr(ext_tensor, "__dlpack_device__", lambda: (1, 0))()[0] == 2:  # kDLCUDA
        return Tensor(home("cuda").xp.from_dlpack(ext_tensor))
    return Tensor(np.from_dlpack(ext_tensor))


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    """A 0-d tensor of a number, of the default dtype unless another is given."""
    return leaf(moved(np.asarray(fits(raw(s), (dtype or dtypes.get_default_dtype()).np)), device), requires_grad)


def is_tensor(obj):
    """Whether ``obj`` is a Tensor."""
    return isinstance(obj, Tensor)


# ---- constants


def sizes(args):
    """A shape given as numbers or as one sequence.  RuntimeError for a negative size."""
    if len(args) == 1 and not isinstance(args[0], (int, np.integer, Tensor)):
        args = tuple(args[0])
    shape = tuple(int(n) for n in args) if args else ()
    if any(n < 0 for n in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def factory(name):
    """A creation function of a shape, with its ``_like`` and ``new_`` forms."""

    def create(*size, dtype=None, device=None, requires_grad=False, out=None, layout=None, pin_memory=False,
               memory_format=None):  # fmt: skip
        no_out(out)
        where, index = place(device)
        x = where.make(index, name, sizes(size), (dtype or dtypes.get_default_dtype()).np)
        return leaf(x, requires_grad) if not pin_memory else leaf(x, requires_grad).pin_memory()

    def like(input, *, dtype=None, device=None, requires_grad=False, layout=None, memory_format=None):
        x, kind = input.array, (dtype or input.dtype).np
        if device is None:
            xp = modules[type(x)]
            return leaf(xp.asarray(getattr(xp, name + "_like")(x, kind)), requires_grad)
        where, index = place(device)
        return leaf(where.make(index, name, x.shape, kind), requires_grad)

    def new(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        where, index = place(device or device_of(self.array))
        x = where.make(index, name, sizes(size), (dtype or self.dtype).np)
        return leaf(x if type(self.array) not in batches else copied(x, self.array), requires_grad)

    def keyword_size(*args, size=None, **options):
        return create(*args, **options) if size is None else create(size, **options)

    create.__doc__ = f"A tensor of a shape, as ``torch.{name}``."
    for function, title in ((keyword_size, name), (like, name + "_like"), (new, "new_" + name)):
        enter(title, "creation", function)
    return keyword_size, like, new


NO_OUT = "out= is not supported: assign the result, or write it into a tensor with copy_()"


def no_out(out):
    if out is not None:
        raise NotImplementedError(NO_OUT)


zeros, zeros_like, new_zeros = factory("zeros")
ones, ones_like, new_ones = factory("ones")
empty, empty_like, new_empty = factory("empty")


def full(size, fill_value, *, dtype=None, device=None, requires_grad=False, out=None, layout=None):
    """A tensor of one value; its dtype is that of the value unless given."""
    no_out(out)
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, Tensor) else dtypes.scalar_dtype(value)
    where, index = place(device)
    return leaf(where.make(index, "full", sizes((size,)), fits(value, dtype.np), dtype.np), requires_grad)


def full_like(input, fill_value, *, dtype=None, device=None, requires_grad=False, memory_format=None):
    """A tensor of one value with the shape and dtype of ``input``."""
    return new_full(input, input.array.shape, fill_value, dtype=dtype, device=device, requires_grad=requires_grad)


def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    """``full`` with the dtype and the device of this tensor; inside of vmap, one for each sample where it has them."""
    device = device or device_of(self.array)
    new = full(size, fill_value, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)
    return new if type(self.array) not in batches else leaf(copied(new.array, self.array), requires_grad)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """``tensor`` with the dtype and the device of this tensor."""
    device = device or device_of(self.array)
    return tensor(raw(data), dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


def eye(n, m=None, *, dtype=None, device=None, requires_grad=False, out=None):
    """Ones on the diagonal, zeros elsewhere."""
    no_out(out)
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    where, index = place(device)
    return leaf(where.make(index, "eye", n, m, dtype=(dtype or dtypes.get_default_dtype()).np), requires_grad)


def arange(start, end=None, step=1, *, dtype=None, device=None, requires_grad=False, out=None):
    """Numbers from ``start`` (0) to ``end``, without it, by ``step``: int64, or the default dtype if one is a float."""
    no_out(out)
    if end is None:
        start, end = 0, start
    start, end, step = (raw(v).item() if isinstance(v, (Tensor, np.generic)) else v for v in (start, end, step))
    if dtype is None:
        dtype = dtypes.get_default_dtype() if any(isinstance(v, float) for v in (start, end, step)) else dtypes.int64
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    n = math.ceil((end - start) / step)
    if not dtype.is_floating_point:  # PyTorch computes in that dtype; for others than int64 it counts before
        start, end, step = int(start), int(end), int(step)
        n = math.ceil((end - start) / step) if dtype is dtypes.int64 else n
    if all(isinstance(v, int) for v in (start, step)):
        x = (start + np.arange(n) * step).astype(dtype.np)
    else:
        x = floats_from(start, step, n, dtype.np)
    return leaf(moved(x, device), requires_grad)


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


def linspace(start, end, steps, *, dtype=None, device=None, requires_grad=False, out=None):
    """``steps`` numbers from ``start`` to ``end``, both included; computed from both ends, as PyTorch does."""
    no_out(out)
    dtype = dtype or dtypes.get_default_dtype()
    start, end = ends("linspace", start, end, steps, dtype)
    work = dtype.np if dtype.is_floating_point else np.dtype(np.float64)
    first, last = work.type(start), work.type(end)
    step = (last - first) / work.type(max(steps - 1, 1))
    # PyTorch's kernel multiplies and adds with a single rounding, but of half precision, where it rounds twice
    wide = {4: np.float64, 8: np.longdouble}.get(work.itemsize, work.type)
    first, last, step, i = wide(first), wide(last), wide(step), np.arange(steps)
    up, down = first + step * i.astype(wide), last - step * (steps - 1 - i).astype(wide)
    x = np.where(i < steps // 2, up, down).astype(work).astype(dtype.np) if steps != 1 else np.full(1, start, dtype.np)
    return leaf(moved(x, device), requires_grad)


def ends(name, start, end, steps, dtype):
    """Both ends as numbers, for an integer dtype without their fractions."""
    dims = [v.ndim if isinstance(v, Tensor) else 0 for v in (start, end)]
    if any(dims):
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got start with {dims[0]} dimension(s) and "
            f"end with {dims[1]} dimension(s)."
        )
    if isinstance(steps, float):
        got = ", ".join(type(v).__name__ for v in (start, end, steps))
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            " * (Tensor or Number start, Tensor or Number end, int steps, ...)\n"
        )
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    return (start, end) if dtype.is_floating_point else (int(start), int(end))


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=False, out=None):
    """``base`` to the powers ``linspace(start, end, steps)``."""
    no_out(out)
    start, end = ends("logspace", start, end, steps, dtype or dtypes.get_default_dtype())
    powers = linspace(start, end, steps, dtype=dtypes.float64, device="cpu").array
    return leaf(moved((base**powers).astype((dtype or dtypes.get_default_dtype()).np), device), requires_grad)


# ---- random numbers: engine/random.py draws them


def random_factory(name, draw):
    """A creation function of random numbers and its ``_like`` form, by the draw of that name."""

    def create(
        *size, generator=None, dtype=None, device=None, requires_grad=False, out=None, layout=None, pin_memory=False
    ):
        no_out(out)
        kind = (dtype or dtypes.get_default_dtype()).np
        return leaf(drawn(device, draw, generator, sizes(size), kind), requires_grad)

    def keyword_size(*args, size=None, **options):
        return create(*args, **options) if size is None else create(size, **options)

    def like(input, *, dtype=None, device=None, requires_grad=False, generator=None, layout=None, memory_format=None):
        x, kind = input.array, (dtype or input.dtype).np
        if device is None:
            return leaf(drawn_like(x, kind, draw, generator), requires_grad)
        return leaf(drawn(device, draw, generator, x.shape, kind), requires_grad)

    return enter(name, "creation", keyword_size), enter(name + "_like", "creation", like)


def drawn(device, draw, generator, *arguments):
    """Random numbers on a device, by the draw of that name: ``draw(generator, shape, dtype, ...)``."""
    where, index = place(device)
    x = getattr(drawing(where.random), draw)(generator, *arguments)
    return x if index is None else moved(x, backend.device(where.type, index))


def drawn_like(x, dtype, draw, generator, *arguments):
    """Random numbers in the shape of an array, on its device; in host memory they are drawn in the order of x there."""
    kind = device_names.get(type(x))
    function = getattr(drawing(home(kind or "cpu").random), draw)
    if kind is None and not running.levels:
        return random.fill(np.empty_like(x, dtype), function, generator, *arguments)
    return function(generator, x.shape, dtype, *arguments)


rand, rand_like = random_factory("rand", "uniform")
randn, randn_like = random_factory("randn", "normal")


def randint(low, high=None, size=None, *, generator=None, dtype=None, device=None, requires_grad=False, out=None):
    """Integers from ``low`` (0) to ``high``, without it: ``randint(high, size)`` or ``randint(low, high, size)``."""
    no_out(out)
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    dtype = dtype or dtypes.int64
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return leaf(drawn(device, "random", generator, sizes((size,)), dtype.np, low, high), requires_grad)


def randint_like(input, low, high=None, *, dtype=None, device=None, requires_grad=False):
    """``randint`` with the shape and dtype of ``input``."""
    if high is None:
        low, high = 0, low
    device = device or device_of(input.array)
    return randint(low, high, input.array.shape, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


def randperm(n, *, generator=None, dtype=None, device=None, requires_grad=False, out=None):
    """The integers from 0 to n - 1 in random order."""
    no_out(out)
    return leaf(drawn(device, "randperm", generator, n, (dtype or dtypes.int64).np), requires_grad)


def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, device=None, requires_grad=False, out=None,
           layout=None, pin_memory=False):  # fmt: skip
    """Normal samples: numbers and a size, or tensors (either or both) of means and deviations."""
    no_out(out)
    around = next((v.array for v in (mean, std) if isinstance(v, Tensor)), None)
    if around is not None:
        inputs = [v for v in (mean, std) if isinstance(v, Tensor)]
        out = drawn(device_of(around), "normal_around", generator, raw(mean), raw(std))
        return record(NORMALS[len(inputs), inputs[0] is mean], out, inputs, [v.array.shape for v in inputs])
    kind = (dtype or dtypes.get_default_dtype()).np
    return leaf(drawn(device, "normal", generator, sizes((size,)), kind, mean, std), requires_grad)


def bernoulli(input, p=None, *, generator=None, out=None):
    """Zeros and ones: one with the probability that ``input`` gives, element by element."""
    no_out(out)
    x = input.shared()
    return record(Bernoulli, drawn(device_of(x), "bernoulli", generator, x.shape, x.dtype, x if p is None else p),
                  (input,))  # fmt: skip


# what is drawn does not change with what it was drawn from: the gradients are 0
Bernoulli = node_class("BernoulliBackward0", lambda g: g * 0.0)
NORMALS = {
    (1, True): node_class("NormalBackward1", lambda g, shape: sum_to(g * 0.0, shape)),
    (1, False): node_class("NormalBackward2", lambda g, shape: sum_to(g * 0.0, shape)),
    (2, True): node_class("NormalBackward3", lambda g, a, _: sum_to(g * 0.0, a), lambda g, _, b: sum_to(g * 0.0, b)),
}


def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Indices drawn with probabilities proportional to ``input``, row by row."""
    no_out(out)
    x = input.array
    return Tensor(drawn(device_of(x), "multinomial", generator, x, num_samples, replacement))


def filler(name, draw, **defaults):
    """An in-place method that fills a tensor with random numbers, by the draw of that name."""
    names = list(defaults)

    def fill_(self, *args, generator=None, **options):
        check_writable(self)
        check_differs(self.array)
        values = {**defaults, **dict(zip(names, args)), **options}
        x = self.array
        numbers = [raw(v) for v in values.values()]
        if draw == "normal":
            numbers.append(not x.flags.c_contiguous)  # PyTorch draws those one by one
        return overwrite(self, record(Filled, drawn_like(x, x.dtype, draw, generator, *numbers), (self,)))

    return enter(name, "random", fill_)


def check_differs(x):
    """RuntimeError if a vmap wants other numbers for each sample, of an array that is the same for all."""
    if running.levels and running.levels[-1].randomness == "different" and type(x) not in batches:
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            "randomness. If this is necessary for your usage, please file an issue with functorch."
        )


Filled = node_class("FillBackward0", lambda g: g * 0.0)
uniform_ = filler("uniform_", "uniform", **{"from": 0.0, "to": 1.0})
normal_ = filler("normal_", "normal", mean=0.0, std=1.0)
bernoulli_ = filler("bernoulli_", "bernoulli", p=0.5)
exponential_ = filler("exponential_", "exponential", lambd=1.0)
cauchy_ = filler("cauchy_", "cauchy", median=0.0, sigma=1.0)
geometric_ = filler("geometric_", "geometric", p=None)
log_normal_ = filler("log_normal_", "log_normal", mean=1.0, std=2.0)


def random_(self, low=None, high=None, *, generator=None):
    """Fill with integers: ``random_(high)``, ``random_(low, high)`` or the whole range of the dtype."""
    check_writable(self)
    if high is None and low is not None:
        low, high = 0, low
    check_differs(self.array)
    x = self.array
    return overwrite(self, Tensor(drawn_like(x, x.dtype, "random", generator, low, high)))


class Generator(random.Generator):
    """A random stream of its own: pass it as ``generator=``.  RuntimeError for "cuda" where there is no GPU."""

    def __new__(cls, device="cpu"):
        device = backend.cpu if device is None else backend.device(device)
        if device.type == "cuda" and not backend.has_cuda():
            raise RuntimeError(
                "Cannot get CUDA generator without ATen_cuda library. There is no GPU that CuPy can use: make the "
                "generator on 'cpu' or 'sim'"
            )
        where, index = place(device)
        return super().__new__(cls) if where is host else where.generator(index)

    def __init__(self, device="cpu"):
        super().__init__(backend.cpu if device is None else backend.device(device))

    def manual_seed(self, seed):
        not_captured()
        return super().manual_seed(seed)

    def get_state(self):
        """The state, as a tensor of bytes in PyTorch's layout."""
        not_captured()
        return Tensor(super().get_state())

    def set_state(self, new_state):
        """Go on from a state; returns the generator."""
        not_captured()
        return super().set_state(raw(new_state))


def not_captured():
    """A capture ends where a program takes a stream into its own hands."""
    if running.tape is not None:
        running.tape.refuse("the state of a random generator is read or set")


random.default_generator = default_generator = Generator()
default_generator.seed()
seed, initial_seed = default_generator.seed, default_generator.initial_seed


def manual_seed(seed):
    """Seed the default generators of all devices, and return the host's."""
    for where in backend.homes.values():
        where.random.default_generator.manual_seed(int(seed))
    return default_generator


def get_rng_state():
    """The state of the default generator, as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Go on from a state that ``get_rng_state`` gave."""
    default_generator.set_state(new_state)


# ---- copies and casts


def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    """This tensor in another dtype or on another device: ``to(dtype)``, ``to(device)``, ``to(other)``."""
    for a in args:
        if isinstance(a, dtypes.dtype):
            dtype = a
        elif isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, bool):
            non_blocking = a  # positional, as in PyTorch
        elif a is not None:
            device = a
    kind = None if dtype is None else dtype.np
    result = cast(self, kind or self.array.dtype) if device is None else transfer(self, device, kind, non_blocking)
    return clone(self) if copy and result is self else result


def type_as(self, other):
    """This tensor in the dtype of another."""
    return to(self, other.dtype)


def type_name(self, dtype=None, non_blocking=False):
    """The name of the tensor's type, as "torch.FloatTensor"; with a dtype, ``to(dtype)``."""
    if dtype is None:
        return Tensor.typename(self.array)
    return to(self, dtype)


def caster(name, dtype):
    def method(self, memory_format=None):
        return cast(self, dtype.np)

    method.__doc__ = f"This tensor in {dtype}."
    return enter(name, "cast", method)


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
    device = backend.device("cuda" if device is None else device)
    if device.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return transfer(self, device, non_blocking=non_blocking)


def pin_memory(self, device=None):
    """A copy in host memory from which a GPU copies without a stop.  RuntimeError where there is no GPU."""
    if is_pinned(self):
        return self
    if device_of(self.array) != host_device:
        raise RuntimeError(f"cannot pin '{Tensor.typename(self.array)}' only dense CPU tensors can be pinned")
    if not backend.has_cuda():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return record(Clone, home("cuda").pinned(self.shared()), (self,))


def is_pinned(self, device=None):
    """Whether this tensor's memory is pinned."""
    return "cuda" in backend.homes and home("cuda").is_pinned(self.array)


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
    x = x if x.dtype.kind != "V" else x.astype(np.float32)
    return x.item()


def tolist(self):
    """The elements as nested lists of Python numbers."""
    x = self.array
    return (x if x.dtype.kind != "V" else x.astype(np.float32)).tolist()


def numpy(self, *, force=False):
    """A NumPy array that shares this tensor's memory."""
    if force:
        return numpy(self.detach().cpu())
    if self.node is not None:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self.dtype is dtypes.bfloat16:
        raise TypeError("Got unsupported ScalarType BFloat16")
    x = self.shared()
    if type(x) in batches:
        x.tolist()
    if type(x) in device_names:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    return x


def __array__(self, dtype=None, copy=None):
    return np.array(numpy(self), dtype, copy=copy)


def __array_wrap__(self, array, context=None, return_scalar=False):
    return Tensor(np.asarray(array))


def cuda_interface(self):
    """Where the elements are on a GPU, for other libraries: ``cupy.asarray(tensor)`` shares the memory."""
    if not self.is_cuda:
        raise AttributeError(f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {type_name(self)}")
    if self.node is not None:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
    return self.array.__cuda_array_interface__


__cuda_array_interface__ = property(cuda_interface)


def __dlpack__(self, *, stream=None, **options):
    if self.node is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return self.shared().__dlpack__(**options)


def __dlpack_device__(self):
    return self.shared().__dlpack_device__()


def only_one(self, what):
    if self.array.size != 1:
        raise RuntimeError(f"a Tensor with {self.array.size} elements cannot be converted to Scalar")
    return item(self)


def __float__(self):
    return only_one(self, "float").__float__()


def __int__(self):
    return only_one(self, "int").__int__()


def __complex__(self):
    return complex(only_one(self, "complex"))


def __index__(self):
    if self.array.size != 1 or self.dtype.is_floating_point:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return __int__(self)


def __bool__(self):
    x = self.array
    if x.size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if x.size > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(x) if type(x) in batches else x.item() != 0


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
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {element.__class__}."
        )
    return bool((self.array == raw(element)).any())


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
    Tensor.__init__(new, same_part(self.array, memo))
    memo[id(self)] = new
    new.requires_grad_(self.requires_grad)
    if self._grad is not None:
        new._grad = __deepcopy__(self._grad, memo) if self._grad.is_leaf else self._grad.detach().clone()
    return new


def same_part(x, memo):
    """An array's part of a copy of its memory, which is made once for all that share it."""
    if type(x) is not np.ndarray or not x.size:
        return x.copy()
    owner = storage(x)
    if id(owner) not in memo:
        memo[id(owner)] = owner.copy("K")
    return np.ndarray(x.shape, x.dtype, in_order(memo[id(owner)]), address(x) - address(owner), x.strides)


def rebuilt(cls, array, requires_grad, device=host_device):
    new = cls.__new__(cls)
    Tensor.__init__(new, moved(array, device))
    return new.requires_grad_(requires_grad)


def __reduce_ex__(self, protocol):
    if type(self.array) in device_names:
        return rebuilt, (self.__class__, moved(self.array, host_device), self.requires_grad, self.device)
    return rebuilt, (self.__class__, self.shared(), self.requires_grad)


METHODS = """
__array__ __array_wrap__ __bool__ __complex__ __contains__ __cuda_array_interface__ __deepcopy__ __dlpack__
__dlpack_device__ __float__ __index__ __int__ __iter__ __len__ __reduce_ex__ __reversed__ bernoulli bernoulli_ bfloat16
byte cauchy_ char cpu cuda double exponential_ float:to_float int:to_int bool:to_bool geometric_ get_device half
is_pinned item log_normal_ long multinomial new_empty new_full new_ones new_tensor new_zeros normal_ numpy pin_memory
random_ short to tolist type:type_name type_as uniform_
"""
IN_PLACE = ""
FUNCTIONS = """
arange as_tensor asarray bernoulli empty empty_like eye from_dlpack from_numpy full full_like get_rng_state
is_tensor linspace logspace manual_seed multinomial normal ones ones_like rand rand_like randint randint_like randn
randn_like randperm scalar_tensor set_rng_state tensor zeros zeros_like Generator default_generator seed
initial_seed
"""
