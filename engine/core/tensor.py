"""Tensor: an array and the node that made it.  Operations are bound to it as methods in ``methods.py``."""

from math import inf
from operator import index
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ..arrays import dtypes
from ..arrays.devices import cpu, device_of, type_name
from ..arrays.dispatch import device_names, is_array_type, number_types, scalar_types
from ..arrays.memory import apart, same_place
from ..arrays.size import Size
from ..arrays.warn import warn
from ..autograd import inference
from ..autograd.hooks import tensor_hook
from ..surface.printing import format_tensor, tensor_repr
from . import graph, versions
from .backward import backward, backward_pass
from .graph import AccumulateGrad, Output, RemovableHandle, RetainGrad, grad_checks, mode
from .versions import alive


class Tensor:
    """An array which remembers how it was computed: ``array`` and ``node``.

    ``node`` is None where no gradient is required, an AccumulateGrad in a leaf, else the node of the operation.  A 0-d
    result may be held as a NumPy scalar, which computes ten times faster; whoever needs its memory calls ``shared()``.
    """

    __array_priority__ = 1000  # NumPy leaves ``ndarray + Tensor`` to the Tensor
    _grad = None
    _base = None  # the tensor whose memory this one views
    view_ops: tuple = ()  # how to get from there to here: ((view operation, arguments), ...)
    creation_meta = (
        None  # how this view came about, where that forbids in-place writes: no_grad, inference, several, custom
    )
    inference = False  # made in inference mode
    transform_level = 0  # how many transforms that differentiate ran when it was made

    if TYPE_CHECKING:  # methods.py binds the operations

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, array=(), node=None, *sizes, device=None):
        if type(array) not in array_types:
            array, node = constructed(self, array, node, sizes, device)
        self.array = array
        self.node = node

    # ---- what it is

    @property
    def shape(self):
        return tuple.__new__(Size, self.array.shape)

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
        return cpu if type(self.array) not in device_names else device_of(self.array)

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

    typename = staticmethod(type_name)

    def shared(self):
        """The array, as memory that can be viewed: a NumPy scalar becomes an array first."""
        x = self.array
        if isinstance(x, np.generic):
            scalar, x = x, np.asarray(x)
            self.array = x
            if self.inference:
                inference.mark_inference(self)
            if not isinstance(scalar, np.bool_):  # who saved the scalar is to hear of writes to the array
                (versions.writes_to(scalar) or versions.Writes().of(scalar)).of(x)
        return x

    # ---- its place in the graph

    @property
    def requires_grad(self):
        return self.node is not None and self.node.oldest_leaf_time != -inf

    @requires_grad.setter
    def requires_grad(self, value):
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if value and not self.is_leaf:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        if value and not self.dtype.is_floating_point:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad=True):
        """Begin (or stop) to record operations on this leaf.  RuntimeError for integers, and for what is no leaf."""
        if requires_grad and grad_checks:
            for check in tuple(grad_checks):
                check("requires_grad_")
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        if requires_grad == (self.node is not None):
            return self
        if not self.is_leaf:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if requires_grad and not self.dtype.is_floating_point:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if requires_grad and self.inference and not mode.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self.node = AccumulateGrad(self) if requires_grad else None
        for v in alive(self, "views"):  # those made before require grad too, but pass none on
            if v.is_leaf:
                v.node = unreachable() if requires_grad else None
        return self

    @property
    def is_leaf(self):
        return self.node is None or type(self.node) is AccumulateGrad or self.node.oldest_leaf_time == -inf

    @property
    def grad_fn(self):
        return None if self.is_leaf else graph.edge(self.node)[0]

    @property
    def output_nr(self):
        return self.node.saved[0] if type(self.node) is Output else 0

    @property
    def grad(self):
        """What backward added up here: a Tensor or None.  A non-leaf keeps none unless ``retain_grad()`` was called."""
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
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value.array.dtype != self.array.dtype:
                own, word = self.typename(self.array).rpartition(".")[2].removesuffix("Tensor"), c_name(value.dtype)
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

    @property
    def retains_grad(self):
        return not self.is_leaf and any(type(h) is RetainGrad for h in self.node.hooks)

    def retain_grad(self):
        """Keep the gradient of this non-leaf in ``.grad`` too."""
        if self.node is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if not self.is_leaf and not self.retains_grad:
            self.node.hooks = (*self.node.hooks, RetainGrad(self))
            graph.hooked.add(ref(self.node, graph.hooked.discard))

    def register_hook(self, hook):
        """Call ``hook(grad)`` when the gradient of this tensor is known; it may return another.  Returns a handle."""
        if self.node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return RemovableHandle(self.node, "hooks", tensor_hook(hook))

    def register_post_accumulate_grad_hook(self, hook):
        """Call ``hook(tensor)`` after the gradient was added to this leaf's ``.grad``.  Returns a handle."""
        if self.node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return RemovableHandle(self.node, "leaf_hooks", hook)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add d(self)/d(leaf), contracted with ``gradient`` (1 for a scalar), to ``.grad`` of every leaf."""
        if (
            inputs is None
            and not create_graph
            and isinstance(self.array, np.floating)
            and gradient is None
            and self.node
            and not grad_checks
        ):
            backward_pass({self.node: type(self.array)(1)}, retain_graph)
        else:
            backward(self, gradient, retain_graph, create_graph, inputs)

    def detach(self):
        """The same memory, outside of the graph."""
        new = Tensor(self.shared())
        if new.inference or self.inference:
            new.inference = self.inference
        base = self if self._base is None else self._base
        new.aliases = base.__dict__.setdefault("aliases", [ref(base)])
        remember(new.aliases, new)
        return new

    def detach_(self):
        if self._base is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        self.node = None
        return self

    @property
    def data(self):
        """The same memory, outside of the graph and with a version counter of its own; assigning replaces it."""
        return Tensor(apart(self.shared()))

    @data.setter
    def data(self, value):
        if value.array.dtype != self.array.dtype and self.node is not None and not value.dtype.is_floating_point:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if not same_place(self.shared(), value.shared()):
            self.array = apart(value.array)

    @property
    def _version(self):
        if self.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return versions.version(self)

    def _is_view(self):
        return self._base is not None

    def is_inference(self):
        return self.inference

    # ---- printing and identity

    def __repr__(self, *, tensor_contents=None):
        return tensor_repr(self)

    def __format__(self, spec):
        return format_tensor(self, spec)

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")

    __hash__ = object.__hash__
    plain_init = __init__

    def watched_init(self, array=(), node=None, *sizes, device=None):
        if type(array) not in array_types:
            array, node = constructed(self, array, node, sizes, device)
        self.plain_init(array, node)
        for look in watchers:
            look(self, node)


array_types = set(number_types) | {np.ndarray}  # and more, once they are met


observed: dict = {}  # array type -> what is called with each Tensor that is made of such an array, and with the array


def constructed(tensor, array, node, sizes, device):
    """(array, node) for what is given to ``Tensor``: an array and its node, or what PyTorch's constructor takes."""
    kind = type(array)
    if kind in observed:
        observed[kind](tensor, array)
    elif kind in scalar_types or not is_array_type(kind):
        from ..ops.creation import legacy_constructor

        return legacy_constructor((array, *(() if node is None else (node,)), *sizes), device), None
    else:
        array_types.add(kind)
    return array, node


watchers: list = []  # who looks at every Tensor that is made: inference mode, and forward mode


def watch_tensors(look, on):
    """Let ``look(tensor, node)`` see every Tensor that is made, or no more; nobody looks in an ordinary program."""
    if on and look not in watchers:
        watchers.append(look)
    elif not on and look in watchers:
        watchers.remove(look)
    Tensor.__init__ = Tensor.watched_init if watchers else Tensor.plain_init


DTYPE_WORDS = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long",
    "int32": "int", "int16": "short", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
}  # fmt: skip


def c_name(dtype):
    """A dtype as C++ calls it."""
    word = DTYPE_WORDS[dtype.name]
    return word + " int" if word in ("long", "short") else word


def shown_kind(kind):
    """A type as PyTorch's errors call it."""
    return kind.__name__ if kind.__module__ in ("builtins", __name__) else f"{kind.__module__}.{kind.__name__}"


def checked_dim(dim, ndim):
    """A dimension counted from the front.  IndexError in PyTorch's words when there is no such dimension."""
    if type(dim) is not int:
        dim = whole(dim)
    n = ndim or 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def whole(dim):
    """A dimension as an int.  TypeError for what PyTorch does not take as one, bools among it."""
    tensor = isinstance(dim, Tensor) and (dim.array.ndim or dim.array.dtype.kind not in "iu")
    if tensor or type(dim) is bool or not hasattr(dim, "__index__"):
        raise TypeError(f"argument 'dim' must be int, not {shown_kind(type(dim))}")
    return index(dim)


class StaleView(Tensor):
    """A view whose part of the graph was lost in an in-place write: whoever asks for its node hears why."""

    requires_grad = True

    @property
    def grad_fn(self):
        raise RuntimeError(self.reason)

    is_leaf = grad_fn

    @property
    def node(self):
        return self.grad_fn if mode.enabled else unreachable()

    @node.setter
    def node(self, value):
        pass


StaleView.__name__ = "Tensor"


def track_view(view, source, op, args):
    """Tell the tensor that owns the memory of ``view``, so that in-place writes rewrite the graph of all its views."""
    base = source if source._base is None else source._base
    view._base = base
    view.view_ops = (*source.view_ops, (op, args))
    if not mode.enabled:
        view.creation_meta = "inference" if mode.inference else "no_grad"
    elif source.creation_meta is not None:
        view.creation_meta = source.creation_meta
    if mode.inference or source.inference:
        view.inference = source.inference
    remember(base.__dict__.setdefault("views", []), view)


def remember(references, tensor):
    """Add a weak reference; now and then, forget those that are gone."""
    references.append(ref(tensor))
    n = len(references)
    if n & (n - 1) == 0:
        references[:] = [r for r in references if r() is not None]


class Gone:
    """A leaf that nobody holds."""


def unreachable():
    """The node of a view that was made without recording, of a tensor that requires grad: so does it, to no avail."""
    node = AccumulateGrad(Gone())
    node.grad_fn_view = lambda: None
    return node


graph.Tensor = Tensor
