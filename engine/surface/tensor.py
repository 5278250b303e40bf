"""Tensor's public attributes besides its operations, with PyTorch's errors."""

from ..arrays import dtypes
from ..arrays.devices import cpu, device_of, typename_of
from ..arrays.dispatch import device_names
from ..arrays.memory import apart, same_place
from ..arrays.warn import warn
from ..core.graph import AccumulateGrad, Output, extend
from ..core.tensor import Tensor, require_grad
from ..core.versions import leave, replace
from ..ops.checks import checked_dim, shown_kind
from .node_names import edge
from .printing import format_tensor, tensor_repr


class Surface:
    """Properties and methods that are bound to Tensor."""

    def size(self, dim=None):
        if dim is None:
            return self.shape
        return self.array.shape[checked_dim(dim, self.array.ndim)]

    @property
    def ndim(self):
        return self.array.ndim

    def dim(self):
        return self.array.ndim

    ndimension = dim

    def numel(self):
        return int(self.array.size)

    nelement = numel

    @property
    def dtype(self):
        return dtypes.of[self.array.dtype]

    @property
    def device(self):
        return device_of(self.array) if device_names else cpu

    @property
    def itemsize(self):
        return self.array.itemsize

    element_size = lambda self: self.array.itemsize  # noqa: E731

    @property
    def nbytes(self):
        return int(self.array.size) * self.array.itemsize

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def is_complex(self):
        return False

    def is_signed(self):
        return self.dtype.is_signed

    is_cuda = property(lambda self: self.device.type == "cuda")
    is_cpu = property(lambda self: self.device.type == "cpu")
    is_sparse = is_quantized = is_mps = is_meta = False
    layout = "torch.strided"

    typename = staticmethod(typename_of)

    # ---- its place in the graph

    def set_requires_grad(self, value):
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if value and not self.is_leaf:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        if value and not self.dtype.is_floating_point:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        require_grad(self, value)

    requires_grad = Tensor.requires_grad.setter(set_requires_grad)  # type: ignore[attr-defined]
    del set_requires_grad

    @property
    def grad_fn(self):
        node = self.node  # it is asked in line whether this is a leaf: a property in a property takes a fifth longer
        return None if node is None or type(node) is AccumulateGrad or not node.requires_grad else edge(node)[0]

    @property
    def output_nr(self):
        return self.node.saved[0] if type(self.node) is Output else 0

    @property
    def grad(self):
        """The gradient that backward accumulated here, or None; a non-leaf keeps one only after ``retain_grad()``."""
        if self._grad is None and not self.is_leaf and not self.retains_grad:
            warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for "
                "a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
                "mistake, make sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
                "more information.",
            )
        return self._grad

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {shown_kind(type(value))}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value.array.dtype != self.array.dtype:
                own, word = (
                    self.typename(self.array).rpartition(".")[2].removesuffix("Tensor"),
                    dtypes.c_name(value.dtype),
                )
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{word}' to a tensor with grad_dtype '{own}'. The "
                    "gradient must match the tensor's grad_dtype (defaults to the tensor's dtype)."
                )
            if value.device != self.device:
                raise RuntimeError(
                    f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device "
                    f"type '{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
                )
            if value.array.shape != self.array.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value.array.shape)}' to a tensor of size "
                    f"'{list(self.array.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
        self._grad = value

    @grad.deleter
    def grad(self):
        self._grad = None

    def detach_(self):
        if self._base is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        if self.is_leaf:
            self.node = None
        else:
            leave(self)
        return self

    @property
    def data(self):
        """The same memory, outside of the graph and with a version counter of its own; assigning replaces it."""
        return Tensor(apart(self.shared()))

    @data.setter
    def data(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {shown_kind(type(value))}")
        if value.array.dtype != self.array.dtype and self.node is not None and not value.dtype.is_floating_point:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if not same_place(self.shared(), value.shared()):
            new = apart(value.array)
            replace(self, new if new.size else new.copy())

    def _is_view(self):
        return self._base is not None and not self.inference

    # ---- printing and identity

    def __repr__(self, *, tensor_contents=None):
        return tensor_repr(self)

    def __format__(self, spec):
        return format_tensor(self, spec)

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")


PLAIN = {"__module__", "__dict__", "__weakref__", "__doc__"}  # what every class has
extend(Tensor, **{name: member for name, member in vars(Surface).items() if name not in PLAIN})


def check_requires_grad(tensor, requires_grad):
    """PyTorch's errors of ``requires_grad_``."""
    if not isinstance(requires_grad, bool):
        raise TypeError(
            f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {type(requires_grad).__name__}"
        )
    if requires_grad == (tensor.node is not None):
        return
    if not tensor.is_leaf:
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
            "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        )
    if requires_grad and not tensor.dtype.is_floating_point:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")


Tensor.grad_checks.append(check_requires_grad)
