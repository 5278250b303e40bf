"""Gradients kept small, and all parameters as one vector."""

import types
from functools import lru_cache

import numpy as np

from ...arrays import loops
from ...arrays.quiet import be_quiet
from ...arrays.warn import warn
from ...autograd.modes import no_grad
from ...core.graph import mode
from ...core.tensor import Tensor
from ...core.versions import wrote
from ...core.views import check_writable, rebase_history
from ...help import public
from ...ops.creation import tensor
from ...ops.elementwise import clamp
from ...ops.reduce import vector_norm
from ...ops.shape import cat, stack
from .. import messages
from ..module import full_name
from . import rnn


def as_list(tensors):
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def gradients(parameters):
    return [p.grad for p in parameters if p.grad is not None]


def multiplied(tensors, factor):
    """Multiply large tensors by one of one element, in one loop: (those that it left, whether one was not finite)."""
    large = loops.available() and sum(t.array.size for t in tensors) >= loops.WORTH
    if not large or mode.dual or mode.transforms or not isinstance(factor.array, (np.generic, np.ndarray)):
        return tensors, False
    kind = tensors[0].array.dtype
    alike = [t for t in tensors if loops.fits(t.array) and t.array.dtype == kind]
    loop = alike and loops.loop_of(product(kind), sum(t.array.size for t in alike))
    table = loop and loops.Table([[t.array] for t in alike])
    if not table or not table.apart():
        return tensors, False
    for t in alike:
        check_writable(t)
    (found,) = table.run(loop, [factor.item()])
    for t in alike:
        wrote(t)
        rebase_history(t, None)
    taken = {*map(id, alike)}
    return [t for t in tensors if id(t) not in taken], bool(found)


@lru_cache(2)
def product(dtype):
    """The text of a loop that multiplies, and looks for inf and nan before."""
    return loops.text_of(lambda g: g.__imul__(1.0), ["g"], dtype, ["g"], "found |= g - g != 0")


@no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The p-norm of the elements of all tensors.  RuntimeError if it is not finite, where that is asked for."""
    be_quiet()
    tensors, norm_type = as_list(tensors), float(norm_type)
    if not tensors:
        return tensor(0.0)
    total = vector_norm(stack([vector_norm(t, norm_type) for t in tensors]), norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(messages.TOTAL_NORM_NOT_FINITE.format(norm_type))
    return total


@no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Multiply all gradients by max_norm / total_norm, if that is below 1."""
    scale = clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    others, _ = multiplied(gradients(as_list(parameters)), scale)
    for g in others:
        g.mul_(scale.to(g.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients together, so that their norm is at most ``max_norm``; returns what it was."""
    generator = isinstance(parameters, types.GeneratorType)
    parameters = as_list(parameters)
    if generator and not parameters:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(*args, **kwargs):
    """``clip_grad_norm_`` under its old name."""
    warn(messages.CLIP_GRAD_NORM_RENAMED, FutureWarning)
    return clip_grad_norm_(*args, **kwargs)


@no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clip each element of all gradients to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for g in gradients(as_list(parameters)):
        g.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters):
    """The elements of all parameters in one vector."""
    return cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Let parameters use the memory of the slices of a vector, one after another."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {full_name(vec)}")
    start = 0
    for p in parameters:
        end = start + p.numel()
        p.data = vec[start:end].view_as(p).data
        start = end


__dir__ = public("nn.utils", globals())
