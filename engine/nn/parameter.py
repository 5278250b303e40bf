"""Parameter and Buffer: tensors that a Module takes for its own when they are assigned to it."""

from ..core.tensor import Tensor, inherited, require_grad
from ..help import public
from ..ops.creation import empty
from ..surface.printing import parameter_repr


class Parameter(Tensor):
    """A leaf that is to be trained, on the memory of ``data`` (None: an empty tensor)."""

    def __init__(self, data=None, requires_grad=True):
        data = (empty(0) if data is None else data).detach()
        Tensor.__init__(self, data.array)
        for hand_on in inherited:
            hand_on(self, data)
        if requires_grad and not self.is_floating_point():
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        require_grad(self, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self.__class__(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self, *, tensor_contents=None):
        return parameter_repr(self)


class MarkedTensors(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=MarkedTensors):
    """``Buffer(data, persistent=True)``: a tensor marked as a part of a module's state that is not trained."""

    def __new__(cls, data=None, *, persistent=True):
        data = empty(0) if data is None else data
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent, t._is_buffer = persistent, True
        return t


__dir__ = public("nn.parameter", globals())
