"""Variable: the name that tensors which take part in graphs had before PyTorch 0.4."""

from ..arrays.warn import warn
from ..core.tensor import Tensor, require_grad

__all__ = ["Variable"]


class VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """``Variable(tensor)`` is ``tensor.detach()``; every tensor is an instance."""

    __module__ = "torch.autograd.variable"

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if volatile is not None:
            warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if requires_grad and not data.is_floating_point():
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return require_grad(data.detach(), requires_grad)
