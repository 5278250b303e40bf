"""Function: operations with a hand-written forward and backward pass, as PyTorch's ``torch.autograd.Function``."""

import functools
import inspect
from functools import partial
from weakref import ref

from ..arrays.dispatch import batches, modules
from ..arrays.dtypes import differentiable
from ..arrays.quiet import be_quiet
from ..arrays.warn import warn
from ..core import errors
from ..core.backward import own
from ..core.graph import CONSTANT, AccumulateGrad, Node, Output, clock, mode
from ..core.linear import cast, reshape
from ..core.observers import notify
from ..core.tensor import Tensor, require_grad
from ..core.versions import check_saved, wrote
from ..core.views import rebase_history
from ..help import public
from ..ops.shape import fitted
from ..ops.writes import check_writable
from ..transforms.messages import TANGENT_SIZE
from . import graph, messages
from .graph import Packed  # type: ignore[attr-defined]  # not public
from .hooks import cotangent
from .modes import no_grad


class CallRecord:
    """The engine's own notes of one call of a Function.

    The context has it under one name, as all others there are the program's.
    """

    saved: tuple | None = ()
    cleared = False  # it was read once, by a Function that keeps it no longer
    given: tuple | None = None  # while tangents are given: the arguments and the results

    def node(self, ctx):
        """The node that the context stands for; a new one if the results are gone."""
        return self.made() or CustomNode(ctx)


class FunctionCtx:
    """The context that ``forward`` leaves for ``backward``, and the ``grad_fn`` of the results.

    It is no node of the graph itself, but stands for one (``CustomNode``), so that a program may give it any attribute.
    """

    needs_input_grad: tuple = ()  # for each argument, whether its gradient is wanted
    materialize_grads = True
    _materialize_non_diff_grads = True  # for results marked as not differentiable too
    to_save: tuple = ()
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()

    def __init__(self):
        self._call_record = CallRecord()

    def save_for_backward(self, *tensors):
        """Keep tensors for ``backward``, which finds them in ``saved_tensors``.

        TypeError for what is no tensor, if there will be a ``backward``.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for ``jvp``."""
        if not all(t is None or isinstance(t, Tensor) for t in tensors):
            raise AssertionError(messages.SAVED_FOR_FORWARD)
        self.saved_for_forward = tuple(None if t is None else (t, None) for t in tensors)

    def mark_dirty(self, *args):
        """Say which arguments ``forward`` has written in place; they must be among its results."""
        self.dirty_tensors = refuse_others("mark_dirty can only accept variables", args)

    def mark_non_differentiable(self, *args):
        """Say which results do not depend differentiably on the arguments."""
        self.non_differentiable = refuse_others("mark_non_differentiable only accepts variable arguments", args)

    def set_materialize_grads(self, value):
        """Choose whether ``backward`` sees zeros (the default) or None for a result that was not used."""
        self.materialize_grads = value

    @property
    def saved_tensors(self):
        """The tensors given to ``save_for_backward``.  RuntimeError once they are freed, or overwritten in place."""
        call = self._call_record
        if call.saved is None:
            raise RuntimeError(errors.FREED if not call.cleared else messages.SAVED_ONCE)
        found = tuple([unpacked(self, s) for s in call.saved])
        if self._forward_cls.clear_saved_tensors_on_access:
            call.saved, call.cleared = None, True
        return found

    def name(self):
        return type(self).__name__

    next_functions = property(lambda self: self._call_record.node(self).next_functions)
    metadata = property(lambda self: self._call_record.node(self).metadata)
    register_hook = property(lambda self: self._call_record.node(self).register_hook)
    register_prehook = property(lambda self: self._call_record.node(self).register_prehook)


graph.Node.register(FunctionCtx)


def unpacked(ctx, saved):
    """A saved tensor, from what was kept of it."""
    if saved is None:
        return None
    (tensor, i), call = saved, ctx._call_record
    if i is None and type(tensor) is Packed:
        return Tensor(tensor.array, tensor.node)
    if i is None:
        check_saved(tensor.array, call.order)
        return tensor
    output = call.outputs[i]() or Output(call.node(ctx), i)
    if type(tensor) is Packed:
        return Tensor(tensor.array, output)
    check_saved(tensor, call.order, ctx)
    return Tensor(tensor, output)


def refuse_others(message, args):
    for i, a in enumerate(args):
        if not isinstance(a, Tensor):
            raise RuntimeError(f"{message}, but argument {i} is of type {type(a).__name__}")
    return args


class CustomNode(Node):
    """The node of one call of a Function: it runs the user's ``backward``, once for all inputs."""

    saved_from = (CONSTANT,)  # something is kept: the backward pass releases it
    makes_zeros = True

    def __init__(self, ctx):
        self.ctx = ctx
        self.parents = ctx._call_record.parents
        self.outputs = len(ctx._call_record.results)
        self.time = next(clock)
        notify(Node, self)

    @property
    def saved(self):
        return ()

    @saved.setter
    def saved(self, value):
        self.ctx._call_record.saved = value

    def name(self):
        return self.ctx.name()

    def grad_fn_view(self):
        return self.ctx

    def push(self, part, ts, in_level):
        """The tangent of a result in forward mode, by the user's ``jvp``, which is called once for all of them.

        ``in_level``: for the level of ``forward_ad``, where tangents are views and are written in place as results are.
        """
        ctx, call = self.ctx, self.ctx._call_record
        found = vars(call).setdefault("pushed", {})
        key = tuple(map(id, ts))
        if key not in found:
            given = iter(ts)
            given = [a and next(given) for a in call.inputs]
            versions = [None if t is None else t._version for t in given]
            kept, call.saved = call.saved, getattr(ctx, "saved_for_forward", ())
            try:
                returned = as_results(ctx._forward_cls.jvp(ctx, *map(partial(wanted, ctx), given, call.inputs)))
            finally:
                call.saved = kept
                be_quiet()
            check_tangents(ctx, returned, given, versions if in_level and call.given else None)
            found[key] = returned, ts
        return found[key][0][part]

    def vjp(self, g, saved, parents):
        ctx, call, function = self.ctx, self.ctx._call_record, self.ctx._forward_cls
        without = () if ctx._materialize_non_diff_grads else call.plain
        grads = [
            r and materialized(g.get(i), r, ctx.materialize_grads and i not in without)
            for i, r in enumerate(call.results)
        ]
        grads = [grads] if function.boxed_grads_call else grads
        returned = as_results(backward_of(function)(ctx, *grads))
        be_quiet()
        n = len(call.inputs)
        if len(returned) > n and all(x is None for x in returned[n:]):
            returned = returned[:n]
        if len(returned) != n:
            raise RuntimeError(messages.NUMBER_OF_GRADIENTS.format(self.name(), n, len(returned)))
        for i, (x, like) in enumerate(zip(returned, call.inputs)):
            if x is None or like is not None and isinstance(x, Tensor):
                continue
            if like is None:
                raise RuntimeError(messages.GRADIENT_OF_NO_TENSOR.format(self.name(), i + 1))
            raise RuntimeError(f"expected Variable or None (got {type(x).__name__})")
        of_tensors = [(x, like) for x, like in zip(returned, call.inputs) if like is not None]
        cotangents = [
            None if x is None or p is None else cotangent(validated_gradient(self, i, x, *like))
            for i, ((x, like), p) in enumerate(zip(of_tensors, parents))
        ]
        # it may be in the user's hands: a leaf must not take it for its .grad
        return [own(x) if x is not None and type(p) is AccumulateGrad else x for x, p in zip(cotangents, parents)]


def as_results(values):
    return values if isinstance(values, tuple) else (values,)


def zeros_like_result(result):
    shape, dtype, array_type = result
    return Tensor(modules[array_type].zeros(shape, dtype))


def materialized(g, result, materialize):
    """The gradient of a result as ``backward`` sees it."""
    if g is None:
        return zeros_like_result(result) if materialize else None
    return g if isinstance(g, Tensor) else Tensor(g)


def wanted(ctx, t, like):
    """The tangent of an argument as ``jvp`` sees it."""
    return None if like is None or like[1] not in differentiable else materialized(t, like, ctx.materialize_grads)


def check_tangents(ctx, returned, given, versions):
    """RuntimeError if ``jvp`` returned what cannot be the tangents of the results.

    ``versions``: those that the tangents of the arguments had before, if views and writes are to be checked.
    """
    call = ctx._call_record
    for i, t in enumerate(returned):
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")
    if len(returned) != len(call.results):
        raise RuntimeError(messages.NUMBER_OF_TANGENTS.format(len(call.results), len(returned)))
    for i, (t, like) in enumerate(zip(returned, call.results)):
        if like is None:
            continue
        if i in call.plain:
            if t is not None:
                raise RuntimeError(messages.TANGENT_OF_A_CONSTANT.format(i))
            continue
        if versions is not None and is_one_of(call.given[1][i], ctx.dirty_tensors):
            check_written_tangent(ctx, i, t, given, versions)
        if t is None or t.array.dtype not in differentiable:
            raise RuntimeError("Expected both tensor and its forward grad to be floating point or complex")
        if versions is not None:
            check_viewing_tangent(ctx, i, t, given)
        if t.array.shape != like[0]:
            raise RuntimeError(TANGENT_SIZE.format(list(like[0]), list(t.array.shape)))


def check_written_tangent(ctx, i, t, given, versions):
    """The tangent of an argument that was written in place must have been written too, and be returned."""
    args, results = ctx._call_record.given
    k = next((k for k, a in enumerate(args) if a is results[i]), None)
    if k is None:
        raise RuntimeError(messages.DIRTY_IN_FORWARD_MODE)
    if given[k] is not None and (t is None or t._version == versions[k]):
        raise RuntimeError(messages.TANGENT_NOT_WRITTEN)
    if given[k] is not None and t is not given[k]:
        raise RuntimeError(messages.TANGENT_NOT_RETURNED)


def check_viewing_tangent(ctx, i, t, given):
    """The tangent of a view of an argument must be a view of that argument's tangent."""
    args, results = ctx._call_record.given
    base = results[i]._base
    if base is None or is_one_of(results[i], args):
        return
    k = next((k for k, a in enumerate(args) if a is base or isinstance(a, Tensor) and a._base is base), None)
    if k is None or given[k] is None:
        return
    if t._base is None:
        raise RuntimeError(messages.TANGENT_NO_VIEW)
    if t._base is not (given[k] if given[k]._base is None else given[k]._base):
        itself = args[k] is base or args[k].creation_meta == "dual"
        raise RuntimeError(messages.TANGENT_VIEWS_ANOTHER if itself else messages.TANGENT_OF_ANOTHER_BASE)


def validated_gradient(node, i, g, shape, dtype, _array_type):
    """A gradient in the shape and dtype of its input, summed where it was broadcast.  RuntimeError if it cannot be."""
    if g.array.shape == shape and g.array.dtype is dtype:
        return g
    return cast(fitted(node, i, g, shape), dtype)


def input_metadata(a):
    """Return (shape, dtype, type of array) of an argument or a result, None if it is no Tensor."""
    return (a.array.shape, a.array.dtype, type(a.array)) if isinstance(a, Tensor) else None


class Function:
    """A differentiable operation whose derivative is written by hand."""

    _backward_cls: type

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        names = {"_forward_cls": cls, "__module__": "torch.autograd.function"}
        cls._backward_cls = type(cls.__name__ + "Backward", (FunctionCtx,), names)

    def __init__(self, *args, **kwargs):
        warn(messages.INSTANTIATED.format(type(self)), DeprecationWarning)

    def __call__(self, *args, **kwargs):
        raise RuntimeError(messages.LEGACY_FUNCTION)

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(messages.NO_BACKWARD)

    vjp = backward
    generate_vmap_rule = False
    clear_saved_tensors_on_access = False  # whether ``saved_tensors`` may be read once, and lets go what it gives
    boxed_grads_call = False  # whether ``backward`` takes the gradients as one list, of which it may let go

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError(messages.NO_JVP)

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError(messages.NO_VMAP)

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run ``forward`` unrecorded, and join its results to the graph if an argument requires grad."""
        apart = cls.setup_context is not Function.setup_context
        if mode.transforms and not mode.checking:
            if not apart:
                raise RuntimeError(messages.NO_SETUP_CONTEXT)
            if any(isinstance(a, Tensor) and type(a.array) in batches for a in args):
                if cls.vmap is not Function.vmap:
                    from ..transforms.vmap import by_own_rule  # noqa: PLC0415  start-up: it is there if there is a batch

                    return by_own_rule(cls, args)
                if not cls.generate_vmap_rule:
                    raise RuntimeError(messages.NO_VMAP_SUPPORT.format(cls.__name__))
        ctx = cls._backward_cls()
        if apart:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        parents = tuple([a.node for a in args if isinstance(a, Tensor)])
        ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        recording, mode.enabled = mode.enabled, False
        passes, mode.passes = mode.passes, ()  # tangents are the business of ``jvp``
        try:
            if apart:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **kwargs)
            if passes:
                keep_nodes(ctx, args, parents)
            results = as_results(result)
            ctx._call_record.plain = plain = [  # those outside of the graph
                i for i, r in enumerate(results)
                if not isinstance(r, Tensor) or not r.dtype.is_floating_point or is_one_of(r, ctx.non_differentiable)
            ]  # fmt: skip
            recorded = recording and any(ctx.needs_input_grad)
            check_dirty(ctx, args, results, recorded)
            results = tuple([
                fresh_output(r, ctx, args, not recorded or i in plain) for i, r in enumerate(results)
            ])  # fmt: skip
        finally:
            mode.enabled, mode.passes = recording, passes
        if recording and any(parents):
            record_call(ctx, parents, args, results)
        return results if isinstance(result, tuple) else results[0]


def backward_of(function):
    """The ``backward`` of a Function, which may call it ``vjp``.  RuntimeError if it has both."""
    if function.vjp is Function.vjp:
        return function.backward
    if function.backward is not Function.backward:
        raise RuntimeError(messages.BACKWARD_AND_VJP)
    return function.vjp


def keep_nodes(ctx, args, nodes):
    """Give what ``forward`` has written in place its nodes back: with these are the tangents that ``jvp`` writes."""
    for a, node in zip((a for a in args if isinstance(a, Tensor)), nodes):
        if is_one_of(a, ctx.dirty_tensors):
            a.node = node


def fresh_output(result, ctx, args, plain):
    """A result that can be given a node: a view of it if it is an argument as it came, or part of a graph already.

    One that is to have none (``plain``) is detached, and an argument stays in its graph.
    """
    if not isinstance(result, Tensor):
        return result
    given = is_one_of(result, args)
    if plain and result.requires_grad:
        if given:
            return result.detach()
        if result._base is None:
            result.node = None
    elif given and is_one_of(result, ctx.dirty_tensors):
        return result
    elif given or result.is_leaf and result.node is not None:
        result = reshape(result, result.array.shape)
    if result._base is not None:  # writing to it in place would put another gradient in place of the user's
        result.creation_meta = "custom"
    return result


def is_one_of(tensor, tensors):
    for t in tensors:  # any() takes three times as long
        if t is tensor:
            return True
    return False


def check_dirty(ctx, args, results, recorded):
    """Count the writes to arguments that were written in place.  PyTorch's errors about them."""
    for t in ctx.dirty_tensors:
        wrote(t)
        if not is_one_of(t, results):
            raise RuntimeError(messages.DIRTY_NOT_RETURNED)
        if not recorded or is_one_of(t, ctx.non_differentiable):
            continue
        if t.is_leaf and t.requires_grad:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if not is_one_of(t, args):
            if t._base is not None:
                raise RuntimeError(messages.DIRTY_NOT_AN_INPUT)
            warn(messages.DIRTY_NOT_AN_INPUT)


def record_call(ctx, parents, args, results):
    """Make the node of a call, and let the differentiable results be its outputs."""
    call = ctx._call_record
    call.parents = parents
    call.inputs = tuple(map(input_metadata, args))
    call.results = tuple(map(input_metadata, results))
    node = CustomNode(ctx)
    call.made, call.order = ref(node), node.time
    outputs = [Output(node, i) for i in range(len(results))]
    call.outputs = tuple(map(ref, outputs))
    call.given = (args, results) if mode.passes else None
    for i, (r, output) in enumerate(zip(results, outputs)):
        if not isinstance(r, Tensor) or i in call.plain:
            continue
        if is_one_of(r, ctx.dirty_tensors):
            if r._base is not None and len(results) > 1 and any(ctx.needs_input_grad):
                raise RuntimeError(messages.DIRTY_VIEW)
            if r._base is not None:
                check_writable(r)
            rebase_history(r, output)
        else:
            r.node = output
            if r._base is not None and not any(ctx.needs_input_grad):
                r.creation_meta = None  # its tangent may be written with it
            elif r._base is not None and len(results) - len(call.plain) > 1:
                r.creation_meta = "several"
    numbers = {id(r): i for i, r in enumerate(results) if isinstance(r, Tensor) and r.node is outputs[i]
               or i not in call.plain and is_one_of(r, ctx.dirty_tensors)}  # fmt: skip
    for i, t in enumerate(ctx.to_save):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(messages.SAVED_NO_TENSOR.format(i, type(t).__name__))
    if any(t is not None and t.inference for t in ctx.to_save):
        raise RuntimeError(messages.INFERENCE)
    call.saved = tuple([  # a result is kept as its array, for the Tensor would keep the node that keeps it
        None if t is None else (t.array, numbers[id(t)]) if id(t) in numbers else (t, None) for t in ctx.to_save
    ])  # fmt: skip
    if mode.packing:
        call.saved = tuple([s and (Packed(*(s[0], None) if s[1] is not None else (s[0].array, s[0].node)), s[1])
                            for s in call.saved])  # fmt: skip
    for i in numbers.values():
        notify(Tensor, results[i])
    if mode.passes and not numbers:
        given = next(a for a in args if isinstance(a, Tensor))
        Tensor(given.array, outputs[0])  # there is no tangent to ask for, but ``jvp`` is called
    ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = ()
    call.given = None


def once_differentiable(backward):
    """A ``backward`` that is not recorded: differentiating its results raises RuntimeError."""

    @functools.wraps(backward)
    def unrecorded(ctx, *grads):
        with no_grad():
            returned = backward(ctx, *grads)
        if not mode.enabled or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return returned
        ends = refusing(as_results(returned))
        return ends if isinstance(returned, tuple) else ends[0]

    return unrecorded


def refusing(tensors):
    """Return the tensors as the results of one operation without a derivative, on leaves of its own."""
    leaves = [None if x is None else require_grad(Tensor(x.array)) for x in tensors]
    node = DelayedError(tuple([None if leaf is None else leaf.node for leaf in leaves]), ())
    node.outputs = len(leaves)
    return tuple([x if x is None else Tensor(x.array, Output(node, i)) for i, x in enumerate(tensors)])


def twice(self, g, saved, parents):
    raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


DelayedError = type("Error", (Node,), {"__module__": "builtins", "vjp": twice})

__dir__ = public("autograd.function", globals())
