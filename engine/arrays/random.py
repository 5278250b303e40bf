"""PyTorch's CPU random streams from NumPy's MT19937: the Generator, and draws into plain arrays. No tensors here.

A draw gives PyTorch's numbers for the same seed, and uses up the stream as PyTorch does. Equal to PyTorch 2.13 are:

==========================================  ==========================================================================
uniform, random, randperm, bernoulli        every bit (of ``uniform`` in float64 between other bounds: but the last one)
normal below 16 elements                    every bit of the float64 samples, if Python's C library is PyTorch's
normal in float32, float16, bfloat16        every bit of PyTorch's kernel for AVX2 and AVX-512; its kernel for other
                                            machines gives numbers that differ from these by up to 4e-6
normal in float64, exponential              all but the last bits of float64: NumPy's log, sin and cos make them
multinomial                                 every index, if no float16 or bfloat16 weights tie
CUDA's draws, MKL's in older Intel builds   none: other generators (Philox, MCG31)
==========================================  ==========================================================================
"""

from __future__ import annotations

import importlib
import math
import os
from functools import cache, cached_property
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ..help import public
from . import dtypes
from .running import undoing
from .threads import locks, new_lock
from .warn import warn

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
WORDS_AT_ONCE = 16384  # values made at a time, so that what lies between the words and the result stays in the cache


class _Type(NamedTuple):
    name: str  # PyTorch's name in "not implemented for ..."
    c_name: str  # and in "out of bounds for ..."
    digits: int  # an integer's bits without sign, a float's significant bits: holds each integer up to 2 ** digits
    work: np.dtype | None = None  # of a floating type: the type it is computed in
    largest: float = 0.0


def _type(d):
    names = dtypes.type_words[d.np], dtypes.c_name(d)
    if not d.is_floating_point:
        return _Type(*names, int(dtypes.limits(d)[1]).bit_length())
    return _Type(*names, ml_dtypes.finfo(d.np).nmant + 1, F64 if d.np == F64 else F32, dtypes.limits(d)[1])


_TYPES = {d.np: _type(d) for d in dtypes.dtypes}

# PyTorch's saved state, byte for byte; "-" marks what its generator no longer uses.
_STATE = np.dtype(
    [("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("key", "<u8", 624)]
    + [("-", "<f8"), ("normal", "<f8"), ("--", "<f8"), ("has_normal", "<i4"), ("---", "V12")]
)


@cache
def _unseeded():
    """Zeros in place of the words that a new bit generator is seeded with, for one that is seeded anew at once."""

    class Zeros(np.random.bit_generator.ISeedSequence):
        def generate_state(self, n_words, dtype=np.uint32):
            return np.zeros(n_words, dtype)

    return Zeros()


def _unseeded_stream():
    stream = np.random.MT19937(_unseeded())
    locks.add(stream.lock)  # NumPy's own
    return stream


state_as_tensor: Any = np.asarray  # what shows a state to a program: ops/creation.py has Tensors for that


class Seeded:
    """The seed of a generator, of any kind."""

    def __init__(self, device="cpu"):
        self.device = device
        self._lock = new_lock()
        self.manual_seed(67280421310721)

    def seed(self):
        """Start a stream that the system's randomness chooses; returns its seed (of 53 bits, as PyTorch's)."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 11).initial_seed()

    def initial_seed(self):
        """The seed of this stream, wrapped to 64 bits."""
        return self._seed


def checked_seed(seed):
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
    if not -(2**63) <= seed < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return seed % 2**64


class Generator(Seeded):
    """A random stream: MT19937 (Matsumoto and Nishimura, 1998), and the normal sample that waits for the next draw."""

    _known = None  # (stream, a state that it had, how many words were drawn before)
    _drawn = 0  # words

    @cached_property
    def _stream(self):
        """The seeded bit generator, made at the first draw: seeding, and importing numpy.random, take their time."""
        stream = _unseeded_stream()
        np.random.RandomState(stream).seed(self._seed % 2**32)
        return stream

    def manual_seed(self, seed):
        """Start the stream of ``seed``, from -2 ** 63 (a negative one wraps) to 2 ** 64 - 1; returns the generator."""
        seed = checked_seed(seed)
        with self._lock:
            self._seed, self._next_normal = seed, None
            self.__dict__.pop("_stream", None)
        return self

    def get_state(self):
        """The state as PyTorch lays it out, 5056 uint8, which ``torch.Generator.set_state`` takes too."""
        state = np.zeros(1, _STATE)
        with self._lock:
            word = self._stream.state["state"]
            key, position = word["key"], word["pos"]
            fresh = np.random.RandomState(self._seed % 2**32).get_state()[1]
            if position == 624 and np.array_equal(key, fresh):
                position = 0  # NumPy has one number for "nothing drawn" and "all drawn", PyTorch two
            state["seed"], state["key"], state["seeded"] = self._seed, key, 1
            state["next"], state["left"] = position, 625 - position if position else 1
            if self._next_normal is not None:
                state["normal"], state["has_normal"] = self._next_normal, 1
        return state.view(np.uint8)

    def set_state(self, new_state):
        """Go on from a state, ours or PyTorch's; returns the generator. TypeError, RuntimeError: not a state."""
        if not hasattr(new_state, "dtype"):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        new_state = np.asarray(new_state)
        if new_state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        sizes = f"of size {_STATE.itemsize} but found the input RNG state size to be {new_state.size}"
        _require(new_state.size == _STATE.itemsize, f"Expected a CPUGeneratorImplState {sizes}")
        state = np.frombuffer(new_state.tobytes(), _STATE)[0]
        position, left = int(state["next"]), int(state["left"])
        valid = position <= 624 and left == (625 - position if position else 1)
        _require(state["seeded"] and valid, "Invalid mt19937 state")
        stream = _unseeded_stream()
        stream.state = ("MT19937", state["key"].astype(np.uint32), position or 624)
        with self._lock:
            self._seed, self._stream = int(state["seed"]), stream
            self._next_normal = float(state["normal"]) if state["has_normal"] else None
        return self

    def mark(self):
        """Return the position in the stream, for ``go_back``: quicker than a state, for this generator alone."""
        with self._lock:
            stream, known = self._stream, self._known
            if known is None or known[0] is not stream or self._drawn - known[2] > 1 << 20:
                self._known = known = stream, stream.state, self._drawn  # it takes ten times as long as all the rest
            return self._seed, known, self._drawn, self._next_normal

    def go_back(self, mark):
        """Draw again what was drawn since the mark."""
        with self._lock:
            self._seed, self._known, self._drawn, self._next_normal = mark
            self._stream, state, drawn = self._known
            self._stream.state = state
            self._stream.random_raw(self._drawn - drawn, False)

    def clone_state(self):
        """Another generator, which goes on from this one's state."""
        return _restored(self.device, self.get_state())

    def __reduce__(self):
        return _restored, (self.device, self.get_state())


def _restored(device, state):
    return Generator(device).set_state(state)


default_generator = Generator()
default_generator.seed()


def generator_states(devices=None):
    """[(default generator, its state)]: the host's and, unless ``devices`` is (), those of the other devices in use."""
    backends = importlib.import_module("engine.arrays.devices").backends.values()
    generators = [b.random.default_generator for b in backends if b.type == "cpu" or devices is None or list(devices)]
    return [(g, g.get_state()) for g in generators]


class fork_rng(undoing):
    """After the block the default generators are as before it: the host's and, unless ``devices`` is (), the others."""

    def __init__(self, devices=None, enabled=True):
        self.devices, self.enabled = devices, enabled

    def __enter__(self):
        self.before = generator_states(self.devices) if self.enabled else []
        super().__enter__()

    def undo(self):
        for generator, state in self.before:
            generator.set_state(state)


# From words to numbers. Every draw below takes its words in one call, so that threads never share one draw's.


def _draw(generator, shape, wide, dtype, transform):
    """``transform`` of the stream's words, as uint64: of 32 bits or, if ``wide``, of 64, the high half first."""
    generator, out = default_generator if generator is None else generator, np.empty(shape, dtype)
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    flat = out.reshape(-1)
    with generator._lock:
        for start in range(0, flat.size, WORDS_AT_ONCE):
            block = flat[start : start + WORDS_AT_ONCE]
            words = generator._stream.random_raw(block.size * (1 + wide))
            generator._drawn += block.size * (1 + wide)
            block[...] = transform(words[::2] << 32 | words[1::2] if wide else words)
    return out


def _uniforms(generator, shape, dtype, scale=1.0, shift=0.0):
    """Uniform in [0, 1): the low 24 of 32 bits for float32, 53 of 64 for float64. Times scale, plus shift."""
    digits = _TYPES[dtype].digits
    mask, scale = 2**digits - 1, scale * 2.0**-digits

    def scaled(words):  # in one rounding, as PyTorch's compilers do: float32's are exact in float64 until stored
        product = (words & mask).view(np.int64) * scale
        return product + shift if shift else product

    return _draw(generator, shape, dtype == F64, dtype, scaled)


def _normals(generator, count):
    """Standard normals one by one in float64: Box and Muller's (1958) pairs; a second one left over waits."""
    generator = generator or default_generator
    with generator._lock:
        samples = [] if generator._next_normal is None else [generator._next_normal]
        pairs = _uniforms(generator, ((count - len(samples) + 1) // 2, 2), F64)
        for u, v in pairs.tolist():  # through math, which calls the C library as PyTorch does
            radius, theta = math.sqrt(-2 * math.log1p(-v)), 2 * math.pi * u
            samples += radius * math.cos(theta), radius * math.sin(theta)
        generator._next_normal = samples.pop() if len(samples) > count else None
    return np.array(samples, F64)


def _cast(values, dtype):
    """An array of ``dtype``, cast as C++ does: to the two-byte floats by way of float32."""
    if values.dtype != dtype:
        with np.errstate(over="ignore", invalid="ignore"):
            values = (values.astype(F32) if _TYPES[dtype].work == F32 else values).astype(dtype)
    return np.asarray(values)


# Logarithm, sine and cosine of float32 as in Moshier's Cephes library (logf, sinf, cosf), whose polynomials PyTorch's
# AVX2 kernel evaluates, each product fused with the sum after it. Here in float64, where products of float32 are exact,
# with a rounding to float32 after each step. Coefficients: the highest power's first. log(2) and pi / 4 are sums of
# parts that but for the smallest have few bits, so that their multiples are exact.


def _float32(*numbers):
    return np.array(numbers, F32).astype(F64)


_LOG = _float32(
    0.070376836, -0.1151461, 0.116769984, -0.12420141, 0.14249323, -0.16668057, 0.20000714, -0.24999994, 0.3333333
)
_SIN = _float32(-0.00019515296, 0.008332161, -0.16666655)
_COS = _float32(2.4433157e-05, -0.0013887316, 0.041666646)
_LN2 = _float32(-0.00021219444, 0.693359375)
_QUARTER_PI = _float32(0.78515625, 0.00024187565, 3.774895e-08)


def _rounded(x):
    return x.astype(F32).astype(F64)


def _horner(x, coefficients):
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = _rounded(value * x + coefficient)
    return value


def _log32(x):
    """log(x), x a normal float32: a polynomial in r, where x = (1 + r) 2 ** e and 1 + r is in [sqrt(1/2), sqrt(2))."""
    fraction, e = np.frexp(x)
    small = fraction < np.float32(math.sqrt(0.5))
    r, e = fraction * (small + 1.0) - 1.0, (e - small).astype(F64)
    square = _rounded(r * r)
    value = _rounded(_rounded(_horner(r, _LOG) * r) * square + _rounded(e * _LN2[0]))
    return _rounded(e * _LN2[1] + _rounded(r + _rounded(value - 0.5 * square)))


def _sincos32(x):
    """sin(x) and cos(x), float32, 0 <= x < 8192: polynomials in x less the nearest multiple of pi / 2."""
    octant = _rounded(x * np.float32(4 / math.pi)).astype(np.int32) + 1 & ~1
    for part in _QUARTER_PI:
        x = _rounded(x - octant * part)
    square = _rounded(x * x)
    sin = _rounded(_rounded(_horner(square, _SIN) * square) * x + x)
    cos = _rounded(_rounded(_rounded(_horner(square, _COS) * square) * square - 0.5 * square) + 1.0)
    octant, s, c = octant.astype(np.int64), sin.view(np.int64), cos.view(np.int64)
    swap = (s ^ c) & -(octant >> 1 & 1)  # sine and cosine change places in every other quarter
    s ^= swap ^ (octant & 4) << 61  # to the bit of the sign
    c ^= swap ^ (octant + 2 & 4) << 61
    return sin, cos


def _box_muller_(uniforms, mean, std):
    """Blocks of 16 uniforms to normals, in place: of 8 radii and 8 angles, first the cosines, then the sines."""
    rounded, log, sincos = _rounded, _log32, _sincos32
    if uniforms.dtype == F64:
        rounded, log, sincos = (lambda x: x), np.log, (lambda x: (np.sin(x), np.cos(x)))
    two_pi, mean, std = (float(uniforms.dtype.type(number)) for number in (2 * math.pi, mean, std))
    for start in range(0, len(uniforms), WORDS_AT_ONCE):
        halves = uniforms[start : start + WORDS_AT_ONCE].reshape(-1, 2, 8).swapaxes(0, 1)
        u, v = halves.astype(F64, "C").reshape(2, -1)  # NumPy is slow on pieces of 8
        radius = rounded(np.sqrt(-2.0 * log(1.0 - u)))
        sin, cos = sincos(rounded(two_pi * v))
        halves[0] = (rounded(radius * cos) * std + mean).reshape(-1, 8)
        halves[1] = (rounded(radius * sin) * std + mean).reshape(-1, 8)


# The draws. generator: a Generator, or None for the default one; shape: of the array returned; dtype: NumPy's.


def _require(condition, message):
    if not condition:
        raise RuntimeError(message)


def _floating(dtype, kernel):
    kind = _TYPES[np.dtype(dtype)]
    if not kind.work:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.name}'")
    return np.dtype(dtype), kind


def fill(out, draw, generator, *arguments):
    """Fill ``out`` in its order in memory, as PyTorch does, by ``draw(generator, shape, dtype, *arguments)``."""
    order = sorted(range(out.ndim), key=lambda axis: -abs(out.strides[axis]))
    arguments = [np.broadcast_to(a, out.shape).transpose(order) if hasattr(a, "shape") else a for a in arguments]
    view = out.transpose(order)
    view[...] = draw(generator, view.shape, out.dtype, *arguments)
    return out


def uniform(generator, shape, dtype, low=0.0, high=1.0):
    """Uniform in [low, high), floating dtypes. RuntimeError: low > high, or bounds that the dtype cannot hold."""
    dtype, kind = _floating(dtype, "check_uniform_bounds")
    if low == 0 and high == 1 and kind.work == dtype:
        return _uniforms(generator, shape, dtype)
    for name, bound in (("from", low), ("to", high)):
        _require(abs(bound) <= kind.largest, f"{name} is out of bounds for {kind.c_name}")
    _require(low <= high, f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    exceeds = f"but found to={high:g} and from={low:g} which result in to-from to exceed the limit"
    limit = f"std::numeric_limits<{kind.name}>::max()"
    _require(high - low <= kind.largest, f"uniform_ expects to-from <= {limit}, {exceeds}")
    start, scale = float(kind.work.type(low)), float(kind.work.type(high) - kind.work.type(low))
    values = _cast(_uniforms(generator, shape, kind.work, scale, start), dtype)
    np.putmask(values, values == dtype.type(high), dtype.type(low))  # rounding may reach the open end
    return values


def normal(generator, shape, dtype, mean=0.0, std=1.0, serial=False):
    """Normal, floating dtypes. RuntimeError: std < 0.

    From 16 elements on in blocks of 16, unless ``serial`` (PyTorch's way with tensors that are not contiguous). If the
    last block is not full, PyTorch draws the last 16 elements once more.
    """
    dtype, kind = _floating(dtype, "normal_kernel_cpu")
    _require(std >= 0, f"normal expects std >= 0.0, but found std {std:g}")
    count = math.prod(shape)
    if serial or count < 16:
        return _cast(_normals(generator, count) * std + mean, dtype).reshape(shape)
    whole = count // 16 * 16
    once = count if kind.work == dtype else whole  # two-byte types draw whole blocks alone
    uniforms = _uniforms(generator, once + 16 * (count > whole), kind.work)
    values, again = uniforms[:count], uniforms[once:]
    _box_muller_(values[:whole], mean, std)
    if count > whole:
        _box_muller_(again, mean, std)
        values[-16:] = again
    return _cast(values, dtype).reshape(shape)


def normal_around(generator, mean, std):
    """``torch.normal`` where mean, std or both are arrays; the dtype is that of mean, else of std."""
    like, shape = mean if hasattr(mean, "dtype") else std, np.broadcast_shapes(np.shape(mean), np.shape(std))
    _require(np.all(np.asarray(std) >= 0), "normal expects all elements of std >= 0.0")
    if hasattr(std, "dtype"):
        values = _cast(normal(generator, shape, like.dtype) * std, like.dtype)
    else:
        values = normal(generator, shape, like.dtype, 0.0, std)
    return _cast(values + mean, like.dtype)


def random(generator, shape, dtype, low=None, high=None):
    """Integers in any dtype: in [low, high); from low to the dtype's last; without either, from 0 to that.

    Remainders of 32 bits, or of 64 from 2 ** 28 integers on (without low: in int64 and float64). RuntimeError: none in
    range, or some that the dtype cannot reach. Warns if the dtype is floating and rounds some.
    """
    dtype, kind = np.dtype(dtype), _TYPES[np.dtype(dtype)]
    end = 2**kind.digits + bool(kind.work)
    if low is None:
        low, size, wide = 0, end, kind.digits > 32
    elif high is None and low == -(2**63):
        handled = kind.name in ("Long", "Double", "Float", "BFloat16")
        _require(handled, "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
        low, size, wide = 0, 2**64, True
    else:
        low, high = _range(dtype, kind, low, end if high is None else high)
        size, wide = high - low, high - low >= 2**28

    def remainder(words):  # NumPy divides by a number faster than it takes the remainder
        return (words - words // size * size if size < 2**64 else words).view(np.int64)

    values = _draw(generator, shape, wide, np.int64, remainder)
    values += low
    return _cast(values, dtype)


def _range(dtype, kind, low, high):
    """The bounds, checked; for a floating dtype moved inwards to numbers it holds, that rounding may not reach high."""
    _require(low < high, f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    last = kind.largest if kind.work else 2**kind.digits - 1
    first = 0 if dtype.kind in "bu" else -last - (not kind.work)
    for name, bound in (("from", low), ("to - 1", high - 1)):
        _require(first <= bound <= last, f"{name} is out of bounds for {kind.c_name}")
    if kind.work:
        up, down = (int(_cast(np.array(bound), dtype)) for bound in (low + 1, high - 1))
        low = low if up >= low else up + (1 << abs(low + 1).bit_length() - kind.digits)
        high = down - (1 << abs(high - 1).bit_length() - kind.digits) if high <= down < 2**63 else high
        casted = f"'from' casted to dtype to be less than 'to' casted to dtype, but got from={low} >= to={high}"
        _require(low < high, f"random_ expects {casted}")
        for name, bound in (("from", low), ("to - 1", high - 1)):
            if abs(bound) > 2**kind.digits:
                out = f"{name} is out of bounds [-(2^{kind.digits}), 2^{kind.digits}]. Due to precision limitations "
                within = f"{kind.c_name} can support discrete uniform distribution only within this range."
                warn(out + within)
    return low, high


def randperm(generator, n, dtype=np.int64):
    """The integers below n, shuffled as by Fisher and Yates. RuntimeError: n < 0, or more than the dtype holds."""
    dtype, kind = np.dtype(dtype), _TYPES[np.dtype(dtype)]
    if kind.name == "Bool":
        raise NotImplementedError("\"randperm\" not implemented for 'Bool'")
    _require(n >= 0, f"Trying to create tensor with negative dimension {n}: [{n}]")
    _require(kind.work or n < 2**kind.digits, f"value cannot be converted to type {dtype.name}_t without overflow")
    bound = "2049" if kind.name == "Half" else f"2^{kind.digits}+1"
    held = not kind.work or kind.name == "BFloat16" or n <= 2**kind.digits + 1  # PyTorch lets bfloat16 round
    _require(held, f"n cannot be greater than {bound} for {kind.name} type.")
    if n >= (2**32 - 1) // 20:
        raise NotImplementedError("From 214,748,364 elements on PyTorch shuffles differently: shuffle parts instead.")
    if n < 2:
        return np.zeros(n, dtype)
    i = np.arange(n - 1)
    j = _draw(generator, i.shape, False, np.int64, lambda words: words.view(np.int64)) % (n - i) + i
    return _cast(_swapped(i, j, n), dtype)


def _swapped(i, j, n):
    """The integers below n after the swaps of the places i[0] and j[0], i[1] and j[1], ...; i counts up, and i <= j.

    Place k of the result is fixed by swap k, which takes there what lies at j[k]: what the last swap before with the
    same j had taken away from its own place, or else j[k] itself. Where that came from, whole arrays follow in steps.
    """
    moved = i != j
    source = np.arange(n)  # what lies at place k before swap k is what lay at source[k] before swap source[k]
    source[j[moved]] = i[moved]
    while ((further := source[source]) != source).any():
        source = further
    by_target = np.argsort(j.astype(np.uint16) if n <= 2**16 else j, kind="stable")
    target = j[by_target]
    again = target[1:] == target[:-1]
    found = np.where(target == by_target, source[target], target)
    found[1:][again] = source[by_target[:-1][again]]
    order = np.empty(n, np.int64)
    order[by_target], order[n - 1] = found, source[n - 1]
    return order


def bernoulli(generator, shape, dtype, p):
    """1 with probability p, else 0, in any dtype; p: a number, or a floating array. RuntimeError: p not in [0, 1].

    A number and a float64 array are compared with 64 bits an element, other arrays with 32.
    """
    if isinstance(p, np.ndarray):
        work = _floating(p.dtype, "bernoulli_tensor_cpu_p_")[1].work
        _require(((p >= 0) & (p <= 1)).all(), "Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    else:
        work = F64
        _require(0 <= p <= 1, f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return _cast(_uniforms(generator, shape, work) < p, np.dtype(dtype))


def dropout_mask(generator, shape, dtype, p):
    """Draw the factors of dropout, floating dtypes: 0 with probability p, else 1 / (1 - p). 0 and 1 draw nothing."""
    dtype, kind = _floating(dtype, "bernoulli_scalar_cpu_")
    if p in (0, 1):
        return np.full(shape, 1 - p, dtype)
    return _cast(bernoulli(generator, shape, kind.work, 1 - p) / kind.work.type(1 - p), dtype)


def exponential(generator, shape, dtype, rate=1.0):
    """Exponential, floating dtypes: -log(1 - u) / rate. RuntimeError: rate <= 0."""
    kind = _TYPES[np.dtype(dtype)]
    continuous = "Exponential distribution is a continuous probability distribution"
    _require(kind.work, f"{continuous}. dtype must be a floating point but you specified {kind.name}")
    _require(rate > 0, f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    return _cast(-1 / rate * np.log1p(-_uniforms(generator, shape, F64)), np.dtype(dtype))


def multinomial(generator, weights, num_samples, replacement=False):
    """Indices drawn by one row of weights or several: int64, (..., num_samples). RuntimeError: bad weights.

    One sample, or none twice: the largest weight / exponential (who arrives first, if the weights are rates).
    Else by 64 bits each: where a uniform number falls among the sums of the weights before.
    """
    kind = _TYPES[weights.dtype]
    _require(weights.ndim in (1, 2), "prob_dist must be 1 or 2 dim")
    _require(kind.work, f"multinomial only supports floating-point dtypes for input, got: {kind.name}")
    _require(weights.shape[-1] <= 2**24, "number of categories cannot exceed 2^24")
    _require(num_samples > 0, "cannot sample n_sample <= 0 samples")
    enough = replacement or num_samples <= weights.shape[-1]
    _require(enough, "cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    rates = weights.astype(kind.work)
    race, invalid = num_samples == 1 or not replacement, "invalid multinomial distribution"
    valid = ((rates >= 0) & np.isfinite(rates)).all()
    _require(valid or not race, "probability tensor contains either `inf`, `nan` or element < 0")
    _require((rates >= 0).all(), f"{invalid} (encountering probability entry < 0)")
    _require(valid, f"{invalid} (encountering probability entry = infinity or NaN)")
    _require((rates.sum(-1) > 0).all(), f"{invalid} (sum of probabilities <= 0)")
    if race:
        rates /= fill(np.empty_like(weights), exponential, generator)
        return np.argsort(-_cast(rates, weights.dtype), axis=-1, kind="stable")[..., :num_samples].copy()
    sums = np.cumsum(rates, axis=-1, dtype=kind.work)
    sums /= sums[..., -1:].copy()
    sums[..., -1] = 1
    uniforms = _uniforms(generator, weights.shape[:-1] + (num_samples,), F64)
    rows = zip(sums.reshape(-1, sums.shape[-1]).astype(F64), uniforms.reshape(-1, num_samples), strict=True)
    return np.array([np.searchsorted(*row) for row in rows], np.int64).reshape(uniforms.shape)


__dir__ = public("random", globals())
