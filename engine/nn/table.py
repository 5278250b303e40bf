"""Modules that only keep the arguments of a function of ``functional``: a row each."""

from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import Signature

from ..surface.checks.layers import probability
from ..surface.checks.losses import in_new_words
from . import functional as F
from .layers import repeated
from .module import Module


class FunctionModule(Module):
    """Calls ``function`` (by its name in ``functional``) with the arguments that the module was made with."""

    function: str
    bind: Callable  # the arguments by name
    given: tuple[str, ...]  # the arguments that are passed on
    shown: str | None = None  # how they are printed; None: all, but ``inplace`` only if it is True

    def __init__(self, *args, **kwargs):
        super().__init__()
        self.keep(**self.bind(*args, **kwargs))

    def keep(self, **arguments):
        self.__dict__.update(arguments)

    def forward(self, input):
        return self._compute(input)

    def _compute(self, *inputs):
        return getattr(F, self.function)(*inputs, **{name: getattr(self, name) for name in self.given})

    def extra_repr(self):
        if self.shown is not None:
            return self.shown.format(**self.__dict__)
        values = {name: getattr(self, name) for name in self.given}
        return ", ".join(f"{name}={value!r}" for name, value in values.items() if name != "inplace" or value)


class Elementwise(FunctionModule):
    """A function of one tensor and ``inplace``: the shortest way to it."""

    def forward(self, input):
        return getattr(F, self.function)(input, self.inplace)


class Clamp(FunctionModule):
    """A function with a lower and an upper limit."""

    def keep(self, min_val, max_val, inplace):
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        super().keep(min_val=min_val, max_val=max_val, inplace=inplace)


class Loss(FunctionModule):
    """A function of input and target with a reduction; weights are buffers."""

    shown = ""

    def keep(self, size_average=None, reduce=None, reduction="mean", **arguments):
        self.reduction = in_new_words(size_average, reduce, reduction)
        for name in ("weight", "pos_weight"):
            if name in arguments:
                self.register_buffer(name, arguments.pop(name))
        super().keep(**arguments)

    def forward(self, input, target):
        return self._compute(input, target)


class Comparison(FunctionModule):
    """A function of two tensors."""

    def forward(self, x1, x2):
        return self._compute(x1, x2)


class RandomMask(FunctionModule):
    """A function that draws numbers in training."""

    shown = "p={p}, inplace={inplace}"

    def keep(self, p, inplace):
        probability(p)
        super().keep(p=p, inplace=inplace)

    def forward(self, input):
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)


class Pool(FunctionModule):
    """A function of windows, which lie side by side unless ``stride`` says otherwise."""

    def keep(self, kernel_size, stride, **arguments):
        super().keep(kernel_size=kernel_size, stride=kernel_size if stride is None else stride, **arguments)


class Pool1d(Pool):
    """The same, with its sizes as tuples."""

    def keep(self, kernel_size, stride, padding, **arguments):
        single = lambda n: None if n is None else repeated(n, 1)  # noqa: E731
        super().keep(kernel_size=single(kernel_size), stride=single(stride), padding=single(padding), **arguments)


REQUIRED = Argument.empty
MOVED = ("size_average", "reduce")  # arguments of losses which became ``reduction``


def binder(name, arguments):
    """A method that gives its arguments back by name: what is wrong with a call Python itself says, as of __init__."""
    taken = ", ".join(["self", *(k if v is REQUIRED else f"{k}=defaults[{k!r}]" for k, v in arguments.items())])
    given = ", ".join(f"{k}={k}" for k in arguments)
    bind = eval(f"lambda {taken}: dict({given})", {"defaults": arguments})
    bind.__qualname__ = f"{name}.__init__"
    return bind


def row(name, function, base=FunctionModule, shown=None, **arguments):
    """The module ``name`` for a function, with the arguments and their defaults."""
    signature = Signature([Argument(k, Argument.POSITIONAL_OR_KEYWORD, default=v) for k, v in arguments.items()])
    given = tuple(k for k in arguments if k not in MOVED)
    attributes = {"function": function, "bind": binder(name, arguments), "__signature__": signature, "given": given}
    attributes |= {"__module__": __name__, "__doc__": f"``functional.{function}`` as a module."}
    if shown is not None:
        attributes["shown"] = shown
    return type(name, (base,), attributes)


# ---- activations

ReLU = row("ReLU", "relu", Elementwise, inplace=False)
ReLU6 = row("ReLU6", "relu6", Elementwise, inplace=False)
SELU = row("SELU", "selu", Elementwise, inplace=False)
SiLU = row("SiLU", "silu", Elementwise, inplace=False)
ELU = row("ELU", "elu", alpha=1.0, inplace=False)
CELU = row("CELU", "celu", alpha=1.0, inplace=False)
Mish = row("Mish", "mish", Elementwise, inplace=False)
Hardswish = row("Hardswish", "hardswish", Elementwise, "", inplace=False)
Hardsigmoid = row("Hardsigmoid", "hardsigmoid", Elementwise, "", inplace=False)
Hardshrink = row("Hardshrink", "hardshrink", shown="{lambd}", lambd=0.5)
Softshrink = row("Softshrink", "softshrink", shown="{lambd}", lambd=0.5)
Threshold = row("Threshold", "threshold", threshold=REQUIRED, value=REQUIRED, inplace=False)
GLU = row("GLU", "glu", dim=-1)
LeakyReLU = row("LeakyReLU", "leaky_relu", negative_slope=0.01, inplace=False)
Hardtanh = row("Hardtanh", "hardtanh", Clamp, min_val=-1.0, max_val=1.0, inplace=False)
GELU = row("GELU", "gelu", approximate="none")
Softplus = row("Softplus", "softplus", beta=1.0, threshold=20.0)
Sigmoid = row("Sigmoid", "sigmoid")
Tanh = row("Tanh", "tanh")
LogSigmoid = row("LogSigmoid", "logsigmoid")
Softsign = row("Softsign", "softsign")
Tanhshrink = row("Tanhshrink", "tanhshrink")
Softmax = row("Softmax", "softmax", dim=None)
LogSoftmax = row("LogSoftmax", "log_softmax", dim=None)
Softmin = row("Softmin", "softmin", dim=None)

# ---- dropout, distances, shapes, pools

Dropout, Dropout1d, Dropout2d, Dropout3d, AlphaDropout = (
    row(name, function, RandomMask, p=0.5, inplace=False)
    for name, function in (
        ("Dropout", "dropout"), ("Dropout1d", "dropout1d"), ("Dropout2d", "dropout2d"), ("Dropout3d", "dropout3d"),
        ("AlphaDropout", "alpha_dropout"),
    )
)  # fmt: skip
CosineSimilarity = row("CosineSimilarity", "cosine_similarity", Comparison, shown="", dim=1, eps=1e-8)
MAX = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"
AVERAGE = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
MaxPool1d, MaxPool2d = (
    row(f"MaxPool{n}d", f"max_pool{n}d", Pool, MAX, kernel_size=REQUIRED, stride=None, padding=0, dilation=1,
        return_indices=False, ceil_mode=False) for n in (1, 2)
)  # fmt: skip
AvgPool1d = row("AvgPool1d", "avg_pool1d", Pool1d, AVERAGE, kernel_size=REQUIRED, stride=None, padding=0,
                ceil_mode=False, count_include_pad=True)  # fmt: skip
AvgPool2d = row("AvgPool2d", "avg_pool2d", Pool, AVERAGE, kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False,
                count_include_pad=True, divisor_override=None)  # fmt: skip
AdaptiveAvgPool1d, AdaptiveAvgPool2d = (
    row(f"AdaptiveAvgPool{n}d", f"adaptive_avg_pool{n}d", output_size=REQUIRED) for n in (1, 2)
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d = (
    row(f"AdaptiveMaxPool{n}d", f"adaptive_max_pool{n}d", shown="output_size={output_size}", output_size=REQUIRED,
        return_indices=False) for n in (1, 2)
)  # fmt: skip

Unfold = row("Unfold", "unfold", shown="kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
             "stride={stride}", kernel_size=REQUIRED, dilation=1, padding=0, stride=1)  # fmt: skip
Fold = row("Fold", "fold", shown="output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, "
           "padding={padding}, stride={stride}", output_size=REQUIRED, kernel_size=REQUIRED, dilation=1, padding=0,
           stride=1)  # fmt: skip

# ---- losses

moved_options = dict.fromkeys(MOVED)
MSELoss = row("MSELoss", "mse_loss", Loss, **moved_options, reduction="mean")
L1Loss = row("L1Loss", "l1_loss", Loss, **moved_options, reduction="mean")
SmoothL1Loss = row("SmoothL1Loss", "smooth_l1_loss", Loss, **moved_options, reduction="mean", beta=1.0)
HuberLoss = row("HuberLoss", "huber_loss", Loss, reduction="mean", delta=1.0)
KLDivLoss = row("KLDivLoss", "kl_div", Loss, **moved_options, reduction="mean", log_target=False)
BCELoss = row("BCELoss", "binary_cross_entropy", Loss, weight=None, **moved_options, reduction="mean")
BCEWithLogitsLoss = row("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", Loss, weight=None, **moved_options,
                        reduction="mean", pos_weight=None)  # fmt: skip
NLLLoss = row(
    "NLLLoss", "nll_loss", Loss, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
)
CrossEntropyLoss = row("CrossEntropyLoss", "cross_entropy", Loss, weight=None, size_average=None, ignore_index=-100,
                       reduce=None, reduction="mean", label_smoothing=0.0)  # fmt: skip
