"""What all function transforms share: inside of one, ``backward()`` and ``requires_grad_()`` are refused.

In other threads they work as ever: who runs no transform is asked, but not refused.
"""

from ..core import views
from ..core.graph import extend, mode
from ..core.observers import forget, observe
from ..core.tensor import Tensor
from . import messages

extend(Tensor, transform_level=0)  # how many transforms that differentiate ran when it was made


def refuse_requires_grad(tensor, requires_grad):
    """RuntimeError if this thread is inside a transform."""
    if mode.transforms and requires_grad:
        raise RuntimeError(messages.NOT_IN_TRANSFORMS["requires_grad_"])


def refuse_captured(tensor, others):
    """RuntimeError if a tensor would be written that was not made inside of the transform."""
    if mode.derivatives and (tensor if tensor._base is None else tensor._base).transform_level < mode.derivatives:
        raise RuntimeError(messages.CAPTURED_WRITTEN)


def stamp(tensor):
    """Remember inside of which transforms a Tensor was made: only there may it be written."""
    tensor.transform_level = mode.derivatives


Tensor.grad_checks.insert(0, refuse_requires_grad)
views.write_checks.append(refuse_captured)


class differentiating:
    """A block that runs, recorded, inside a transform that differentiates."""

    def __enter__(self):
        self.before = mode.transforms, mode.derivatives, mode.enabled, mode.asked
        mode.transforms += 1
        mode.derivatives += 1
        mode.enabled = mode.asked = True
        observe(Tensor, stamp)

    def __exit__(self, *exc):
        mode.transforms, mode.derivatives, mode.enabled, mode.asked = self.before
        forget(Tensor, stamp)
