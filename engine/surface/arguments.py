"""PyTorch's errors for wrong arguments.

A function runs as it is, and what goes wrong is looked at afterwards: a right call pays for no check.
"""

import functools
import inspect
import re

from ..arrays.devices import MixedDevices
from ..core.tensor import Tensor, shown_kind
from ..ops.checks import NO_OUT, is_integer
from .outputs import WITHOUT, into

# names with several signatures, of which PyTorch says that none fits
OVERLOADED = "clamp clamp_max clamp_min clip conv1d conv2d conv3d float_power max min std var".split()
ALONG_DIMS = "all any argsort count_nonzero max min prod sort std std_mean var var_mean".split()  # of a wrong dim
# what is called most, and checks its arguments itself
CHECKED = "cat mean sum where".split()
# what makes tensors from none: with out=, in the dtype of that
CREATES = "arange empty eye full linspace logspace normal ones rand randint randn randperm zeros".split()
# parameters that are tensors, or None where that is the default
TENSORS = """input self tensor x1 input1 query x2 input2 key value target weight bias running_mean running_var mask mat1
mat2 vec vec2 tensor1 tensor2 batch1 batch2""".split()
# parameters that are whole numbers
WHOLE = "chunks diagonal dim dim0 dim1 end_dim ignore_index k num_classes start_dim".split()
# what PyTorch's own functions call theirs, and in which order they take them, where that is another
INNER_NAMES = {"cross_entropy": "cross_entropy_loss", "nll_loss": "nll_loss_nd", "logsigmoid": "log_sigmoid",
               "fold": "col2im", "unfold": "im2col"}  # fmt: skip
# names of arguments that PyTorch takes too: NumPy's, and those of one signature among several
ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other", "input": "A",
           "from": "low", "to": "high", "split_size": "split_size_or_sections", "sections": "indices_or_sections",
           "indices": "indices_or_sections", "tensor_indices_or_sections": "indices_or_sections"}  # fmt: skip
ORDERS = {"lerp": {"input": "input", "end": "end"}, "one_hot": {"tensor": "input"},
          "embedding": {"weight": "weight", "input": "indices"},
          "batch_norm": {n: n for n in ("input", "weight", "bias", "running_mean", "running_var")}}  # fmt: skip


def public(name, function, module="engine"):
    """A function under its public name, in a module."""
    if name in CHECKED or not inspect.isfunction(function) or vars(function).get("public", function) is None:
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError, NotImplementedError) as error:
            if (renamed := as_named_here(function, kwargs)) is not None:
                return call(*args, **renamed)
            if "out" in kwargs and asks_for_out(name, error):
                return with_out(call, args, **kwargs)
            better = explained(name, function, args, kwargs, error)
            if better is None:
                raise
            raise better from None

    call.__module__, call.__name__, call.__qualname__ = module, name, name  # where pickle finds it
    return call


def method(name, function, title=None):
    """An operation that takes tensors, as a method of Tensor; ``title``: its name there, if it is another."""
    title = title or name

    @functools.wraps(function)
    def call(self, *args, **kwargs):
        try:
            return function(self, *args, **kwargs)
        except (AttributeError, TypeError) as error:
            if (renamed := as_named_here(function, kwargs)) is not None:
                return call(self, *args, **renamed)
            better = explained(name, function, (self, *args), kwargs, error)
            words = str(error if better is None else better)
            if not words.startswith(name + "() ") and "(): argument " not in words:
                raise
            if better is not None:
                words = re.sub(r"position (\d+)", lambda n: f"position {int(n[1]) - 1}", words)  # self is not counted
            words = words.replace("got (Tensor, ", "got (", 1)
            raise TypeError(words.replace(name + "()", title + "()", 1)) from None

    call.__name__ = call.__qualname__ = title
    return call


def as_named_here(function, kwargs):
    """Keyword arguments with the names that the function has for them; None if there are none to replace."""
    if not kwargs or ALIASES.keys().isdisjoint(kwargs):
        return None
    known = inspect.signature(function).parameters
    names = {k: ALIASES[k] for k in kwargs if k in ALIASES and k not in known and ALIASES[k] in known}
    if not names or not set(names.values()).isdisjoint(kwargs):
        return None
    return {names.get(k, k): v for k, v in kwargs.items()}


def asks_for_out(name, error):
    """Whether a function has failed for want of ``out=`` alone, which PyTorch's function of that name has."""
    return name not in WITHOUT and (str(error) == NO_OUT or "unexpected keyword argument 'out'" in str(error))


def with_out(call, args, *, out, **kwargs):
    """A call with ``out=``; what makes a tensor from none makes it in the dtype of that one."""
    if out is None:
        return call(*args, **kwargs)
    if call.__name__ in CREATES:
        kwargs.setdefault("dtype", out.dtype)
    return into(out, call, *args, **kwargs)


def explained(name, function, args, kwargs, error):
    """The error that PyTorch raises for these arguments; None if they are not what is wrong."""
    if isinstance(error, MixedDevices):
        return None
    parameters = inspect.signature(function).parameters
    given = dict(zip(parameters, args)) | kwargs
    whole = [p for p in given if p in WHOLE and (given[p] is not None or p in parameters and is_needed(parameters[p]))]
    wrong_whole = [p for p in whole if not is_integer(given[p])]
    along = name in ALONG_DIMS and wrong_whole
    if name not in OVERLOADED and not along and ("(): argument " in str(error) or "invalid combination" in str(error)):
        return placed(str(error), list(parameters)[: len(args)])  # it says it itself
    if " not implemented for '" in str(error):
        return None  # the dtype is what is wrong
    first = next(iter(parameters), None)
    wrong_first = first in TENSORS and first in given and not isinstance(given[first], Tensor)
    if along or name in OVERLOADED and (wrong_first or type(error) is AttributeError):
        got = ", ".join(shown_kind(type(a)) for a in args)
        return TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n")
    missing = [p.name for p in parameters.values() if is_needed(p) and p.name not in given and p.kind not in
               (p.VAR_POSITIONAL, p.VAR_KEYWORD)]  # fmt: skip
    if missing:
        names, plural = ", ".join(f'"{m}"' for m in missing), "s" if len(missing) == 1 else ""
        return TypeError(f"{name}() missing {len(missing)} required positional argument{plural}: {names}")
    for position, parameter in enumerate(parameters, 1):
        if parameter in wrong_whole:
            inner, kind = INNER_NAMES.get(name, name), shown_kind(type(given[parameter]))
            return TypeError(f"{inner}(): argument '{parameter}' (position {position}) must be int, not {kind}")
    culprit = getattr(error, "obj", None)
    order = ORDERS.get(name, {p: p for p in parameters})
    for position, (parameter, called) in enumerate(order.items(), 1):
        value = given.get(parameter)
        known = parameter in TENSORS and (value is not None or parameter in given and is_needed(parameters[parameter]))
        if not isinstance(value, Tensor) and (known or value is culprit is not None):
            if called == "dtype":
                kind = shown_kind(type(value))
                return TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {kind}")
            what = f"argument '{called}' (position {position})"
            return TypeError(f"{INNER_NAMES.get(name, name)}(): {what} must be Tensor, not {shown_kind(type(value))}")
    return None


def placed(words, by_position):
    """The error of a function that names an argument, with its position where it was given without its name."""
    argument = re.search(r"argument '(\w+)'( \(position \d+\))? must be", words)
    if argument is None or argument[1] not in by_position or argument[2] and by_position[0] not in TENSORS:
        return None
    place = f"argument '{argument[1]}' (position {by_position.index(argument[1]) + 1}) must be"
    return TypeError(words.replace(argument[0], place, 1))


def is_needed(parameter):
    return parameter.default is parameter.empty
