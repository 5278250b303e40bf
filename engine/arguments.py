"""PyTorch's errors for wrong arguments.

A function runs as it is, and what goes wrong is looked at afterwards: a right call pays for no check.
"""

import functools
import inspect

from .ops.creation import NO_OUT
from .tensor import Tensor, shown_kind

# names with several signatures, of which PyTorch says that none fits
OVERLOADED = "clamp clamp_max clamp_min clip float_power max min std var".split()
# what is called most, and checks its arguments itself
CHECKED = "cat mean sum where".split()


def public(name, function):
    """A function under its public name."""
    if name in CHECKED or not inspect.isfunction(function) or vars(function).get("public", function) is None:
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            better = explained(name, function, args, kwargs, error)
            if better is None:
                raise
            raise better from None

    call.__module__, call.__name__, call.__qualname__ = "engine", name, name  # where pickle finds it
    return call


def explained(name, function, args, kwargs, error):
    """The error that PyTorch raises for these arguments; None if they are not what is wrong."""
    if kwargs.get("out") is not None:
        return NotImplementedError(NO_OUT)
    if name not in OVERLOADED and ("(): argument " in str(error) or "invalid combination" in str(error)):
        return None  # it says it itself
    parameters = inspect.signature(function).parameters
    given = dict(zip(parameters, args)) | kwargs
    first = next(iter(parameters), None)
    wrong_first = first in ("input", "self", "tensor") and first in given and not isinstance(given[first], Tensor)
    if name in OVERLOADED and (wrong_first or type(error) is AttributeError):
        got = ", ".join(shown_kind(type(a)) for a in args)
        return TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n")
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in given and p.kind not in
               (p.VAR_POSITIONAL, p.VAR_KEYWORD)]  # fmt: skip
    if missing:
        names, plural = ", ".join(f'"{m}"' for m in missing), "s" if len(missing) == 1 else ""
        return TypeError(f"{name}() missing {len(missing)} required positional argument{plural}: {names}")
    culprit = given[first] if wrong_first else getattr(error, "obj", None)
    for position, (parameter, value) in enumerate(given.items(), 1):
        if value is culprit and value is not None and not isinstance(value, Tensor):
            what = f"argument '{parameter}' (position {position})"
            return TypeError(f"{name}(): {what} must be Tensor, not {shown_kind(type(value))}")
    return None
