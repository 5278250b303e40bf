"""Layers with parameters of their own, and the ones that change shapes."""

import math
from collections.abc import Iterable
from numbers import Integral

from ..arrays.dtypes import int64
from ..arrays.warn import warn
from ..autograd.modes import no_grad
from ..ops.creation import empty, ones, tensor, zeros
from . import functional as F
from . import init, messages
from .module import Module
from .parameter import Parameter


class Layer(Module):
    """A module that keeps its arguments under their names and says them in its text."""

    _shown = ""  # the text, a format
    _usual: dict = {}  # arguments that stand behind it where they are not as here

    def _set_up(self, arguments, names, **shapes):
        """Keep the arguments of these names, and begin parameters of these shapes on their device, in their dtype."""
        Module.__init__(self)
        self.__dict__.update((name, arguments[name]) for name in names.split())
        if shapes:
            add_parameters(self, {"device": arguments["device"], "dtype": arguments["dtype"]}, **shapes)
            self.reset_parameters()

    def extra_repr(self):
        values = {"bias": self._parameters.get("bias") is not None, **self.__dict__}
        return ", ".join([self._shown.format(**values), *non_default(self, self._usual)])


def non_default(module, usual, text=str):
    """The arguments of a module that are not as usual, as its text shows them."""
    return (f"{name}={text(getattr(module, name))}" for name, value in usual.items() if getattr(module, name) != value)


def repeated(n, times):
    """Numbers for the dimensions, as they are given; one number holds for all of them."""
    return tuple(n) if isinstance(n, Iterable) else (n,) * times


def add_parameters(module, factory, **shapes):
    """Register an empty Parameter of each shape, None for those that are None."""
    for name, shape in shapes.items():
        module.register_parameter(name, None if shape is None else Parameter(empty(shape, **factory)))


class Identity(Module):
    """Its input as it is; any arguments are taken and forgotten."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Flatten(Layer):
    """Dimensions from ``start_dim`` to ``end_dim`` made one: all but the batch."""

    _shown = "start_dim={start_dim}, end_dim={end_dim}"

    def __init__(self, start_dim=1, end_dim=-1):
        self._set_up(locals(), "start_dim end_dim")

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Layer):
    """Dimension ``dim`` split into several of the sizes ``unflattened_size``, of which one may be -1."""

    _shown = "dim={dim}, unflattened_size={unflattened_size}"

    def __init__(self, dim, unflattened_size):
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(messages.UNFLATTENED_SIZE.format(type(unflattened_size).__name__))
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                raise TypeError(messages.UNFLATTENED_SIZE_ELEMENT.format(type(n).__name__, i))
        self._set_up(locals(), "dim unflattened_size")

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)


class Padding(Layer):
    """The last dimensions made longer on both sides: by a number, the edge, its mirror image, or the other end."""

    _shown = "{padding}"
    _dims: int
    mode: str
    value = None

    def __init__(self, padding):
        padding = repeated(padding, 2 * self._dims)
        self._set_up(locals(), "padding")

    def forward(self, input):
        return F.pad(input, self.padding, self.mode, self.value)


class CircularPadding(Padding):
    mode = "circular"

    def forward(self, input):
        if input.dim() - self._dims not in (1, 2):
            expected = f"{self._dims + 1}D or {self._dims + 2}D"
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")
        return super().forward(input)


class ConstantPadding(Padding):
    _shown = "padding={padding}, value={value}"
    mode = "constant"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value


SIZE_NAMES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def sized(name, base, doc, attribute="_dims", values=(1, 2, 3), **more):
    """The layers of one, two and three dimensions: ``doc`` with their sizes in place of {}."""
    for (n, sizes), value in zip(SIZE_NAMES.items(), values):
        about = {"__module__": __name__, "__doc__": doc.format(sizes)}
        yield type(f"{name}{n}d", (base,), {attribute: value, **more, **about})


DOC = Padding.__doc__ or ""
ConstantPad1d, ConstantPad2d, ConstantPad3d = sized("ConstantPad", ConstantPadding, DOC)
ZeroPad1d, ZeroPad2d, ZeroPad3d = sized("ZeroPad", Padding, DOC, mode="constant", value=0.0)
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = sized("ReflectionPad", Padding, DOC, mode="reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = sized("ReplicationPad", Padding, DOC, mode="replicate")
CircularPad1d, CircularPad2d, CircularPad3d = sized("CircularPad", CircularPadding, DOC)

# ---- weights and biases


def init_weight_and_bias(weight, bias):
    """The default of layers that multiply: both uniform within 1 / sqrt(inputs)."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init.fans(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


class Linear(Layer):
    """input @ weight.T + bias, with ``input`` (..., in_features) and ``weight`` (out_features, in_features)."""

    _shown = "in_features={in_features}, out_features={out_features}, bias={bias}"

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        shape = (out_features, in_features)
        self._set_up(locals(), "in_features out_features", weight=shape, bias=out_features if bias else None)

    def reset_parameters(self):
        init_weight_and_bias(self.weight, self.bias)

    def forward(self, input):
        own = self._parameters  # attributes of a module take ten times as long
        if "weight" in own and "bias" in own:
            return F.linear(input, own["weight"], own["bias"])
        return F.linear(input, self.weight, self.bias)


class PReLU(Layer):
    """x above 0, weight * x below, with one weight or one for each channel (dimension 1)."""

    _shown = "num_parameters={num_parameters}"

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        self._set_up(locals(), "num_parameters init", weight=num_parameters)

    def reset_parameters(self):
        init.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)


class Bilinear(Layer):
    """input1 @ weight[k] @ input2 + bias[k], for each output k."""

    _shown = "in1_features={in1_features}, in2_features={in2_features}, out_features={out_features}, bias={bias}"

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        shape, names = (out_features, in1_features, in2_features), "in1_features in2_features out_features"
        self._set_up(locals(), names, weight=shape, bias=out_features if bias else None)

    def reset_parameters(self):
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / math.sqrt(self.in1_features)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)


class Lookup(Layer):
    """Rows of ``weight`` (num_embeddings, embedding_dim), of which row ``padding_idx`` stays zero."""

    _shown = "{num_embeddings}, {embedding_dim}"

    _usual = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False}

    def _set_up(self, arguments, names, frozen=False):
        names, weight = f"num_embeddings embedding_dim {names}", arguments["_weight"]
        size = arguments["num_embeddings"], arguments["embedding_dim"]
        if weight is None:
            super()._set_up(arguments, names, weight=size)
            self.weight.requires_grad = not frozen
        else:
            if weight.shape != size:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            super()._set_up(arguments, names)
            self.weight = Parameter(weight, requires_grad=not frozen)

    def reset_parameters(self):
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0


def checked_row(name, i, n):
    """A row counted from the front, or None.  AssertionError if there is none."""
    if i is not None and not -n <= i < n:
        raise AssertionError(f"{name} must be within num_embeddings")
    return None if i is None else i % n


class Embedding(Lookup):
    """The rows of ``weight`` (num_embeddings, embedding_dim) that integers point to; row ``padding_idx`` stays zero."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,
                 scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None,
                 dtype=None):  # fmt: skip
        padding_idx = checked_row("Padding_idx", padding_idx, num_embeddings)
        self._set_up(locals(), "padding_idx max_norm norm_type scale_grad_by_freq sparse", _freeze)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0,
                        scale_grad_by_freq=False, sparse=False):  # fmt: skip
        """An Embedding with these weights, which are not trained if ``freeze``."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        return cls(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)

    def forward(self, input):
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )


class EmbeddingBag(Lookup):
    """The mean, sum or maximum of the rows of ``weight`` that each bag of integers points to."""

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 mode="mean", sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None,
                 dtype=None):  # fmt: skip
        padding_idx = checked_row("padding_idx", padding_idx, num_embeddings)
        names = "max_norm norm_type scale_grad_by_freq mode sparse include_last_offset padding_idx"
        self._set_up(locals(), names)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                        mode="mean", sparse=False, include_last_offset=False, padding_idx=None):  # fmt: skip
        """An EmbeddingBag with these weights, which are not trained if ``freeze``."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        module = cls(*embeddings.shape, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                     include_last_offset, padding_idx)  # fmt: skip
        module.weight.requires_grad = not freeze
        return module

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self):
        usual = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "mode": None, "padding_idx": None}
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *non_default(self, usual, repr)])


# ---- convolutions

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def margins(padding, kernel_size, dilation):
    """The numbers of elements that ``pad`` adds before and after each dimension, the last one first."""
    if not isinstance(padding, str):
        return tuple(n for n in reversed(padding) for _ in range(2))
    totals = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, kernel_size)]
    return [n for total in reversed(totals) for n in (total // 2, total - total // 2)]


class Convolution(Layer):
    """Kernels ``weight`` (out_channels, in_channels / groups, *kernel_size) that slide over the last dimensions."""

    _dims: int
    transposed = False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):  # fmt: skip
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, n in (("in_channels", in_channels), ("out_channels", out_channels)):
            if n % groups:
                raise ValueError(f"{name} must be divisible by groups")
        sizes = kernel_size, stride, dilation, 0
        kernel_size, stride, dilation, output_padding = (repeated(n, self._dims) for n in sizes)
        padding = padding if isinstance(padding, str) else repeated(padding, self._dims)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {set(PADDING_MODES)}, but got padding_mode='{padding_mode}'")
        outer, inner = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (outer, inner // groups, *kernel_size)
        names = "in_channels out_channels kernel_size stride padding dilation output_padding groups padding_mode"
        self._set_up(locals(), names, weight=shape, bias=out_channels if bias else None)
        self._reversed_padding_repeated_twice = margins(padding, kernel_size, dilation)

    def reset_parameters(self):
        init_weight_and_bias(self.weight, self.bias)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input, weight, bias):
        convolve, padding = getattr(F, f"conv{self._dims}d"), self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        none, one = (0,) * self._dims, (1,) * self._dims
        usual = {"padding": (0,) * len(self.padding), "dilation": one, "output_padding": none, "groups": 1}
        size = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        without = ["bias=False"] if self.bias is None else []
        return ", ".join([size, *non_default(self, usual), *without, *non_default(self, {"padding_mode": "zeros"})])


def added_padding(module, input, output_size):
    """The padding with which the output has a size.  ValueError if there is none."""
    n, lead = module._dims, input.ndim - module._dims
    if len(output_size) not in (n, n + lead):
        raise ValueError(messages.OUTPUT_SIZE_LENGTH.format(n, input.ndim, n + lead, len(output_size)))
    wanted, sizes = output_size[-n:], input.shape[lead:]
    least = [
        (size - 1) * s - 2 * p + d * (k - 1) + 1
        for size, s, p, d, k in zip(sizes, module.stride, module.padding, module.dilation, module.kernel_size)
    ]
    most = [low + s - 1 for low, s in zip(least, module.stride)]
    if any(not low <= size <= high for low, size, high in zip(least, wanted, most)):
        raise ValueError(messages.OUTPUT_SIZE_RANGE.format(wanted, least, most, input.shape[2:]))
    return [size - low for size, low in zip(wanted, least)]


class TransposedConvolution(Convolution):
    """The gradient of a convolution as a layer: each input element adds a multiple of the kernels to the output.

    ``output_padding``: elements added at the end of each dimension, where several inputs of a convolution with a stride
    have outputs of one size.
    """

    transposed = True

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                         device, dtype)  # fmt: skip
        self.output_padding = repeated(output_padding, self._dims)

    def forward(self, input, output_size=None):
        convolve = getattr(F, f"conv_transpose{self._dims}d")
        added = self.output_padding if output_size is None else added_padding(self, input, output_size)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation)


Conv1d, Conv2d, Conv3d = sized("Conv", Convolution, "Convolution of (batch, channels, {}).")
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = sized(
    "ConvTranspose", TransposedConvolution, "Transposed convolution of (batch, channels, {})."
)

# ---- normalizations


class Normalization(Layer):
    """Elements with mean 0 and variance 1, then times ``weight`` and plus ``bias``, which begin as 1 and 0."""

    def reset_parameters(self):
        for name, value in (("weight", 1.0), ("bias", 0.0)):
            if (p := getattr(self, name, None)) is not None:
                init.constant_(p, value)


class LayerNorm(Normalization):
    """Normalizes each slice of the last dimensions, whose sizes are ``normalized_shape``."""

    _shown = "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}, bias={bias}"

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        normalized_shape = (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)
        shape = normalized_shape if elementwise_affine else None
        self._set_up(locals(), "normalized_shape eps elementwise_affine", weight=shape, bias=shape if bias else None)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Normalization):
    """Divides each slice of the last dimensions by the root of the mean of its squares."""

    _shown = "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}"

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        normalized_shape = (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)
        shape = normalized_shape if elementwise_affine else None
        self._set_up(locals(), "normalized_shape eps elementwise_affine", weight=shape)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Normalization):
    """Normalizes the channels (dimension 1) of each sample in ``num_groups`` groups."""

    _shown = "{num_groups}, {num_channels}, eps={eps}, affine={affine}, bias={bias}"

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        shape = num_channels if affine else None
        self._set_up(locals(), "num_groups num_channels eps affine", weight=shape, bias=shape if bias else None)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class BatchNorm(Normalization):
    """Normalizes each channel (dimension 1) over the batch in training, and by running statistics when evaluated.

    ``momentum``: the share of the newest batch in these; None: all batches count alike.
    """

    _version = 2
    _shown = ("{num_features}, eps={eps}, momentum={momentum}, affine={affine}, bias={bias}, "
              "track_running_stats={track_running_stats}")  # fmt: skip
    _ndims: tuple[int, ...]

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None,
                 dtype=None, *, bias=True):  # fmt: skip
        self._set_up(locals(), "num_features eps momentum affine track_running_stats")
        factory, shape = {"device": device, "dtype": dtype}, num_features if affine else None
        add_parameters(self, factory, weight=shape, bias=shape if bias else None)
        track = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **factory) if track else None)
        self.register_buffer("running_var", ones(num_features, **factory) if track else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if track else None)
        self.reset_parameters()

    def reset_running_stats(self):
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        super().reset_parameters()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *lists):
        if self.track_running_stats and (local_metadata.get("version") or 0) < 2:  # older files do not count batches
            state_dict.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)

    def _check_input_dim(self, input):
        if input.ndim not in self._ndims:
            raise ValueError(f"expected {' or '.join(f'{n}D' for n in self._ndims)} input (got {input.ndim}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        tracked = self.track_running_stats if self.training else self.running_mean is not None
        if self.training and tracked and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        mean, var = (self.running_mean, self.running_var) if tracked else (None, None)
        return self._normalized(input, mean, var, bool(self.training or not tracked), momentum)

    def _normalized(self, input, mean, var, training, momentum):
        return F.batch_norm(input, mean, var, self.weight, self.bias, training, momentum, self.eps)


BatchNorm1d, BatchNorm2d, BatchNorm3d = sized(
    "BatchNorm", BatchNorm, "Batch normalization of (batch, channels, {}); in one dimension also of (batch, channels).",
    "_ndims", ((2, 3), (4,), (5,)),
)  # fmt: skip


class InstanceNorm(BatchNorm):
    """Normalizes each channel of each sample by itself, or by running statistics when it is evaluated and has some."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None,
                 dtype=None, *, bias=True):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input):
        self._check_input_dim(input)
        dim = input.ndim - max(self._ndims) + 1
        if (n := input.shape[dim]) != self.num_features:
            words = f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: {n}."
            if self.affine:
                raise ValueError(words)
            warn(f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
                 "in num_features, which is not used because affine=False")  # fmt: skip
        out = F.instance_norm(
            input if dim else input.unsqueeze(0), self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return out if dim else out.squeeze(0)


InstanceNorm1d, InstanceNorm2d, InstanceNorm3d = sized(
    "InstanceNorm", InstanceNorm, "Instance normalization of (batch, channels, {}) or without the batch.",
    "_ndims", ((2, 3), (3, 4), (4, 5)),
)  # fmt: skip
