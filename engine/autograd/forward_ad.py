"""Forward mode by hand, as ``torch.autograd.forward_ad``: dual tensors, which carry a tangent through operations.

Inside ``with dual_level():``, ``make_dual(x, t)`` is x with the tangent t, and ``unpack_dual(y).tangent`` the
derivative of y along t.  How the tangents are computed stands in ``transforms/forward.py``.
"""

from collections import namedtuple

import numpy as np

from ..arrays.kernels.views import offset_in_storage
from ..arrays.memory import element_strides, storage
from ..core import views
from ..core.graph import AccumulateGrad, mode
from ..core.linear import clone
from ..core.observers import forget, observe
from ..core.tensor import Tensor, track_view
from ..core.versions import write
from ..help import public
from ..surface import printing
from ..transforms import FOR_TANGENTS
from ..transforms.forward import ForwardPass, carry, dual, give_tangents, refuse_tangents, without_tangent
from . import messages
from .modes import is_grad_enabled, set_recording

UnpackedDualTensor = namedtuple("UnpackedDualTensor", "primal tangent")
UnpackedDualTensor.__doc__ = "A tensor and its tangent (None if it has none), as ``unpack_dual`` gives them."


def enter_dual_level():
    """Begin a level; returns its number.  RuntimeError inside of another."""
    if mode.dual is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    new, asked = ForwardPass(inner=False), is_grad_enabled()
    observe(Tensor, give_tangents)
    new.before = mode.passes
    vars(mode).update(dual=new, passes=(*new.before, new))
    set_recording(asked)
    return 0


def exit_dual_level(*, level=None):
    """End the level: its tangents are gone."""
    if mode.dual is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level not in (None, 0):
        raise RuntimeError(messages.LEVEL_NOT_THE_LAST)
    ended, asked = mode.dual, is_grad_enabled()
    vars(mode).update(dual=None, passes=ended.before)
    set_recording(asked)
    forget(Tensor, give_tangents)
    ended.forget()


class dual_level:
    """A ``with`` block in which dual tensors can be made and unpacked."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exc):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """The tensor with a tangent, of its own shape.  RuntimeError outside of a level, ValueError for integers."""
    if mode.dual is None:
        raise RuntimeError(messages.NO_LEVEL)
    tensor.shared()  # a number gets memory now, which both have
    new = dual(tensor, tangent, mode.dual)
    if not laid_out_alike(tensor.shared(), tangent.shared()):  # writes would reach what else is in its memory
        new.node.tangents[mode.dual] = clone(new.node.tangents[mode.dual])
    return view_of(tensor, new)


def laid_out_alike(x, t):
    """Tell whether two arrays of one shape lie in their memory in the same way, as far as programs see it."""
    if type(x) is not np.ndarray or type(t) is not np.ndarray:
        return True
    alike = all(n == 1 or a == b for n, a, b in zip(x.shape, element_strides(x), element_strides(t)))
    alike = alike and offset_in_storage(x) == offset_in_storage(t)
    return storage(x).size == storage(t).size and (alike or not x.size)


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None where there is none."""
    if mode.dual is None and mode.passes:
        which = mode.passes[-1]  # inside of ``func.jvp``
        tangent = None if tensor.node is None else tensor.node.tangents.get(which)
    else:
        which, tangent = mode.dual, tangent_of(tensor)
    primal = tensor if tangent is None else view_of(tensor, without_tangent(tensor, which))
    return UnpackedDualTensor(primal, tangent)


def view_of(tensor, new):
    """``new``, marked as a view of a tensor of the graph: no write to the one may miss what the other was."""
    if tensor.requires_grad:
        track_view(new, tensor, tensor.view_as, ())
        new.creation_meta = "dual"
    return new


def check_write(tensor, others):
    """Refuse the write into a dual tensor that would have to be recorded for two tensors."""
    if mode.enabled is FOR_TANGENTS:
        refuse_tangents(tensor, others)
    if tensor.creation_meta == "dual" and mode.enabled:
        if type(tensor._base.node) is AccumulateGrad:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        raise NotImplementedError("a dual tensor of one that requires grad is not written: write into its clone()")


def write_tangent(tensor, node, before):
    """Let what is written into a dual tensor change its tangent in place: the program may hold that too."""
    tangent = tangent_of(tensor)
    if tangent is None or tangent.node is not None or 0 in tangent.array.strides:
        return
    if "tangents" not in node.__dict__:
        carry(node, tensor.array)
    new = node.tangents.get(mode.dual)
    if new is not None and new is not tangent and new.node is None:
        write(tangent, new.array)
        node.tangents[mode.dual] = tangent


def tangent_of(tensor):
    """The tangent of a tensor in the open level, or None."""
    hidden = mode.dual not in mode.passes  # while a tangent is computed, too
    return None if hidden or tensor.node is None else tensor.node.tangents.get(mode.dual)


def tangent_suffix(tensor):
    """Return the part of a tensor's text that shows its tangent."""
    tangent = tangent_of(tensor)
    return None if tangent is None else f"tangent={tangent}"


printing.more_suffixes.append(tangent_suffix)
views.write_checks.append(check_write)
views.rebased.append(write_tangent)

__dir__ = public("autograd.forward_ad", globals())
