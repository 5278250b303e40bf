"""Switches of what is recorded in this thread: each is a context manager and a decorator."""

import functools
import inspect

from ..arrays.warn import warn
from ..core.graph import Mode, extend, mode
from ..core.observers import forget, observe
from ..core.tensor import Tensor
from ..transforms import FOR_TANGENTS
from . import messages
from .inference import mark

extend(
    Mode,
    asked=True,  # in inference mode: what is_grad_enabled() says
    inference=False,
    dual=None,  # the dual level (forward_ad)
    passes=(),  # those in forward mode that run (transforms/forward.py), the newest last
    transforms=0,  # how many function transforms run, one inside the other
    derivatives=0,  # and how many of them differentiate
    checking=False,  # one of them is gradcheck's, which asks nothing of custom functions
)


class GradMode:
    """Sets whether operations are recorded, inside a ``with`` block or a decorated function (generators too)."""

    enabled = False

    def __enter__(self):
        self.before = is_grad_enabled()
        set_recording(self.enabled)

    def __exit__(self, *exc):
        set_recording(self.before)

    def clone(self):
        return type(self)()

    def __call__(self, function):
        if inspect.isclass(function):
            warn(messages.DECORATED_CLASS, FutureWarning)

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        @functools.wraps(function)
        def generator(*args, **kwargs):
            """Runs each step of the generator inside the block, and what uses it outside."""
            steps = function(*args, **kwargs)
            step, value = steps.send, None
            while True:
                try:
                    with self.clone():
                        item = step(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    step, value = steps.send, (yield item)
                except GeneratorExit:
                    with self.clone():
                        steps.close()
                    raise
                except BaseException as error:
                    step, value = steps.throw, error

        return generator if inspect.isgeneratorfunction(function) else inside


class no_grad(GradMode):
    """Record nothing: results do not require grad."""

    def __new__(cls, function=None):
        return super().__new__(cls) if function is None else cls()(function)


class enable_grad(no_grad):
    """Record again, inside of ``no_grad``."""

    enabled = True


class set_grad_enabled(GradMode):
    """Record or not, from now on; as a context manager, until the end of the block."""

    def __init__(self, mode):  # PyTorch's name for the argument
        if not isinstance(mode, bool):
            kind = type(mode).__name__
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {kind}")
        self.enabled = mode
        self.before = is_grad_enabled()
        set_recording(mode)

    def __enter__(self):
        set_recording(self.enabled)

    def __call__(self, function):
        set_recording(self.before)
        return super().__call__(function)

    def clone(self):
        return set_grad_enabled(self.enabled)

    def __repr__(self):  # what a cell shows that ends with the call
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.enabled})"


def set_recording(enabled):
    """Switch recording.  In inference mode nothing is recorded, whatever the switch says."""
    mode.asked, mode.enabled = enabled, how_to_record(enabled, mode.inference)


def how_to_record(asked, inference):
    """Return what ``mode.enabled`` is to be.  Forward mode goes on under ``no_grad``, as in PyTorch."""
    return not inference and (asked or (bool(mode.passes) and FOR_TANGENTS))


def is_grad_enabled():
    """Tell whether operations are recorded in this thread."""
    enabled = mode.asked if mode.inference else mode.enabled
    return bool(enabled) and enabled is not FOR_TANGENTS


class inference_mode(GradMode):
    """Record nothing, and mark the results as tensors that never take part in a recorded operation."""

    def __new__(cls, mode=True):
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode=True):
        self.inference = mode

    def clone(self):
        return inference_mode(self.inference)

    def __enter__(self):
        self.before = is_grad_enabled(), mode.inference, mode.unrecorded
        observe(Tensor, mark)
        switch_inference(not self.inference, self.inference, "inference" if self.inference else "no_grad")

    def __exit__(self, *exc):
        switch_inference(*self.before)
        forget(Tensor, mark)


def switch_inference(enabled, inference, unrecorded):
    records = how_to_record(enabled, inference)
    vars(mode).update(asked=enabled, enabled=records, inference=inference, unrecorded=unrecorded)


def is_inference_mode_enabled():
    """Tell whether this thread is in inference mode."""
    return mode.inference
