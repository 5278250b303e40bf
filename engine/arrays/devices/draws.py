"""Random numbers on a device: Philox4x32-10 (Salmon et al., 2011), the generator that PyTorch's CUDA draws use too.

The stream of a seed is a function of the position alone: block i is what ten rounds with the seed as the key make of
the counter i, four words of 32 bits.  A draw takes whole blocks from the generator's offset on, so the numbers are the
same on every device that has these functions; PyTorch's CUDA kernels hand the same blocks out in another order.  What
becomes of the words is as in ``engine.random``: 24 bits for float32 and two-byte types, 53 for float64; normals are
Box and Muller's.  A permutation sorts 64 bits an element.
"""

import math

import numpy as np

from .. import devices, dispatch, random

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85


def philox(seed, offset, blocks):
    """The words of some blocks of a stream, uint32: what the device's own ``philox`` gives, by NumPy."""
    i = np.arange(offset, offset + blocks, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    counter = [i & low, i >> np.uint64(32), np.zeros_like(i), np.zeros_like(i)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        product = [counter[0] * np.uint64(MULTIPLIERS[0]), counter[2] * np.uint64(MULTIPLIERS[1])]
        high = [p >> np.uint64(32) for p in product]
        counter = [
            high[1] ^ counter[1] ^ np.uint64(key[0]),
            product[1] & low,
            high[0] ^ counter[3] ^ np.uint64(key[1]),
            product[0] & low,
        ]
        key = [(k + w) & 0xFFFFFFFF for k, w in zip(key, WEYL)]
    return np.stack(counter, 1).reshape(-1).astype(np.uint32)


def fraction(words):
    """Words as numbers in [0, 1), float32."""
    return (words & 0xFFFFFF).astype(np.float32) * np.float32(2.0**-24)


def bernoulli_values(words, share, scale):
    """``scale`` for a share of the words, else 0; in the dtype of ``scale``, a NumPy number."""
    return (fraction(words) < share).astype(scale.dtype) * scale


class Generator(random.Seeded):
    """A random stream on a device: its seed, and the number of blocks that are used up."""

    def manual_seed(self, seed):
        """Start the stream of ``seed``; returns the generator."""
        with self._lock:
            self._seed, self.offset = random.checked_seed(seed), 0
        return self

    def get_state(self):
        """Seed and offset as 16 bytes, a tensor in host memory."""
        return random.state_as_tensor(np.array([self._seed, self.offset], np.uint64).view(np.uint8))

    def set_state(self, new_state):
        """Go on from a state; returns the generator."""
        state = np.asarray(getattr(new_state, "array", new_state))
        if state.dtype != np.uint8 or state.size != 16:
            raise RuntimeError("RNG state is wrong size")
        self._seed, self.offset = map(int, state.view(np.uint64))
        return self

    def mark(self):
        """Return the position in the stream, for ``go_back``."""
        with self._lock:
            return self._seed, self.offset

    def go_back(self, mark):
        """Draw again what was drawn since the mark."""
        with self._lock:
            self._seed, self.offset = mark

    def twin(self):
        """Another generator, which goes on from where this one is."""
        twin = Generator(self.device)
        twin.go_back(self.mark())
        return twin

    def take(self, blocks):
        """(seed, offset) of the next blocks, which are then used up."""
        with self._lock:
            start, self.offset = self.offset, self.offset + blocks
        return self._seed, start


class DeviceDraws:
    """``engine.random``'s draws for one type of device, over its module ``xp``; there ``philox`` makes the words."""

    def __init__(self, backend):
        self.backend, self.xp = backend, backend.xp
        self.default_generator = self.generator(backend.current())
        self.default_generator.manual_seed(random.default_generator.initial_seed())

    def generator(self, index=None):
        """A random stream of its own."""
        return Generator(devices.device(self.backend.type, index or 0))

    def words(self, generator, count):
        generator = self.default_generator if generator is None else generator
        if not isinstance(generator, Generator) or generator.device.type != self.backend.type:
            found = getattr(generator, "device", "cpu")
            raise RuntimeError(f"Expected a '{self.backend.type}' device type for generator but found '{found}'")
        blocks = -(-count // 4)
        return self.xp.philox(*generator.take(blocks), blocks)[:count]

    def wide(self, generator, count):
        """Words of 63 bits, as int64."""
        words = self.words(generator, 2 * count).astype(np.int64)
        return ((words[::2] & 0x7FFFFFFF) << 32) | words[1::2]

    def unit(self, generator, shape, dtype):
        """Uniform in [0, 1), in float64 for that dtype, else in float32."""
        count = math.prod(shape)
        if dtype == np.float64:
            return ((self.wide(generator, count) & (2**53 - 1)) * 2.0**-53).reshape(shape)
        return dispatch.elementwise(fraction, self.words(generator, count)).reshape(shape)

    def uniform(self, generator, shape, dtype, low=0.0, high=1.0):
        random._floating(dtype, "check_uniform_bounds")
        random._require(low <= high, f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
        values = self.unit(generator, shape, dtype) * (high - low) + low
        values = values.astype(dtype)  # rounding may reach the open end
        return self.xp.where(values == high, low, values).astype(dtype) if high > low else values

    def normal(self, generator, shape, dtype, mean=0.0, std=1.0, serial=False):
        random._floating(dtype, "normal_kernel_cpu")
        random._require(std >= 0, f"normal expects std >= 0.0, but found std {std:g}")
        count, xp = math.prod(shape), self.xp
        u = self.unit(generator, (2, -(-count // 2)), dtype)
        radius, angle = xp.sqrt(xp.log1p(-u[0]) * -2.0), u[1] * (2 * math.pi)
        values = xp.concatenate([radius * xp.cos(angle), radius * xp.sin(angle)])[:count]
        return (values * std + mean).astype(dtype).reshape(shape)

    def normal_around(self, generator, mean, std):
        like = mean if type(mean) is self.backend.array else std
        shape = np.broadcast_shapes(getattr(mean, "shape", ()), getattr(std, "shape", ()))
        return (self.normal(generator, shape, like.dtype) * std + mean).astype(like.dtype)

    def random(self, generator, shape, dtype, low=None, high=None):
        dtype, kind = np.dtype(dtype), random._TYPES[np.dtype(dtype)]
        end = 2**kind.digits + bool(kind.work)
        low, high = (0, end) if low is None else random._range(dtype, kind, low, end if high is None else high)
        values = self.wide(generator, math.prod(shape))
        size = high - low
        return ((values % size if size < 2**63 else values) + low).astype(dtype).reshape(shape)

    def randperm(self, generator, n, dtype=np.int64):
        random._require(n >= 0, f"Trying to create tensor with negative dimension {n}: [{n}]")
        return self.wide(generator, n).argsort().astype(dtype)

    def bernoulli(self, generator, shape, dtype, p):
        if type(p) is not self.backend.array:
            random._require(0 <= p <= 1, f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        return (self.unit(generator, shape, np.float32) < p).astype(dtype)

    def dropout_mask(self, generator, shape, dtype, p):
        if p in (0, 1):
            return self.xp.full(shape, 1 - p, dtype)
        words = self.words(generator, math.prod(shape))
        return dispatch.elementwise(bernoulli_values, words, 1 - p, np.dtype(dtype).type(1 / (1 - p))).reshape(shape)

    def exponential(self, generator, shape, dtype, rate=1.0):
        random._require(rate > 0, f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
        return (self.xp.log1p(-self.unit(generator, shape, dtype)) * (-1 / rate)).astype(dtype)

    def multinomial(self, generator, weights, num_samples, replacement=False):
        """Take those that arrive first, the weights being rates; inf and nan pass, as a check would stall the host."""
        random._require(weights.ndim in (1, 2), "prob_dist must be 1 or 2 dim")
        random._require(num_samples > 0, "cannot sample n_sample <= 0 samples")
        enough = replacement or num_samples <= weights.shape[-1]
        random._require(enough, "cannot sample n_sample > prob_dist.size(-1) samples without replacement")
        races = num_samples if replacement else 1  # with replacement one a sample
        times = self.exponential(generator, (*weights.shape[:-1], races, weights.shape[-1]), np.dtype(np.float64))
        order = (times / weights.astype(np.float64)[..., None, :]).argsort(-1)
        return order[..., 0] if replacement else order[..., 0, :num_samples]
