"""What all function transforms share: inside of one, ``backward()`` and ``requires_grad_()`` are refused."""

import threading
from contextlib import contextmanager

from ..core.graph import mode
from ..core.tensor import Tensor, watch_tensors

lock, open_blocks, open_derivatives = threading.Lock(), 0, 0  # in all threads: while there are none, nobody looks
plain = Tensor.backward, Tensor.requires_grad_


def backward(self, *args, **kwargs):
    if mode.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead or call backward() outside of functorch transforms."
        )
    return plain[0](self, *args, **kwargs)


def requires_grad_(self, requires_grad=True):
    if mode.transforms and requires_grad:
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
            "inside of a function being transformed by a functorch transform. This is unsupported, please attempt to "
            "use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside "
            "of a function being transformed instead."
        )
    return plain[1](self, requires_grad)


@contextmanager
def transformed(differentiates=False):
    """A block that runs inside a transform."""
    look(+1, differentiates)
    try:
        yield
    finally:
        look(-1, -differentiates)


def stamp(tensor, node):
    """Remember inside of which transforms a Tensor was made: only there may it be written."""
    tensor.transform_level = mode.derivatives


def look(change, derivatives):
    global open_blocks, open_derivatives
    mode.transforms += change
    mode.derivatives += derivatives
    with lock:
        open_blocks += change
        open_derivatives += derivatives
        watch_tensors(stamp, open_derivatives > 0)
        Tensor.backward, Tensor.requires_grad_ = (backward, requires_grad_) if open_blocks else plain
