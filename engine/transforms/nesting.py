"""What all function transforms share: inside of one, ``backward()`` and ``requires_grad_()`` are refused.

In other threads they work as ever: who runs no transform is asked, but not refused.
"""

import threading
from contextlib import contextmanager

from ..core.graph import grad_checks, mode
from ..core.tensor import watch_tensors

REFUSED = {
    "backward": "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
    "functorch.vjp instead or call backward() outside of functorch transforms.",
    "requires_grad_": "You are attempting to call Tensor.requires_grad_() (or perhaps using "
    "torch.autograd.functional.* APIs) inside of a function being transformed by a functorch transform. This is "
    "unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
    "requires_grad_() outside of a function being transformed instead.",
}
lock, open_derivatives = threading.Lock(), 0  # in all threads


def refuse(method):
    """RuntimeError if this thread is inside a transform."""
    if mode.transforms:
        raise RuntimeError(REFUSED[method])


def stamp(tensor, node):
    """Remember inside of which transforms a Tensor was made: only there may it be written."""
    tensor.transform_level = mode.derivatives


@contextmanager
def transformed(differentiates=False):
    """A block that runs inside a transform."""
    enter(+1, differentiates)
    grad_checks.append(refuse)  # as often as blocks are open in all threads
    try:
        yield
    finally:
        grad_checks.remove(refuse)
        enter(-1, -differentiates)


def enter(change, derivatives):
    global open_derivatives
    mode.transforms += change
    mode.derivatives += derivatives
    with lock:
        open_derivatives += derivatives
        watch_tensors(stamp, open_derivatives > 0)
