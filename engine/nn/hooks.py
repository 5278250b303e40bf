"""Hooks of modules: handles that remove them, and calls of a module that has some."""

from collections import OrderedDict
from itertools import count

from ..arrays.warn import warn
from ..autograd.function import Function
from ..autograd.hooks import RemovableHandle
from ..core.graph import mode
from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from . import messages


class HandleInDictionaries(RemovableHandle):
    """Takes a hook of a module or an optimizer out of the dictionaries that hold it."""

    ids = count()

    def __init__(self, *dictionaries):
        self.dictionaries, self.id = dictionaries, next(self.ids)

    def remove(self):
        for d in self.dictionaries:
            d.pop(self.id, None)


def add_hook(hooks, hook, prepend=False, **marks):
    """Put a hook into an ordered dictionary, at its end or its beginning, and its id into some ``marks``.

    ``marks``: name=(whether, dictionary).  Returns a handle.
    """
    handle = HandleInDictionaries(hooks, *(d for _, d in marks.values()))
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    for value, d in marks.values():
        if value:
            d[handle.id] = True
    return handle


# ---- hooks of all modules: they run before a module's own

everywhere: dict = {}  # the ids of all of them: while there are none, a module looks no further
before_all: dict = OrderedDict()
behind_all: dict = OrderedDict()
backward_before_all: dict = OrderedDict()
backward_behind_all: dict = OrderedDict()
with_kwargs_everywhere: dict = {}
always_called_everywhere: dict = {}


def register_module_forward_pre_hook(hook):
    """Call ``hook(module, args)`` before the ``forward`` of every module.  Returns a handle."""
    return add_hook(before_all, hook, counted=(True, everywhere))


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, args, output)`` after the ``forward`` of every module.  Returns a handle."""
    return add_hook(behind_all, hook, counted=(True, everywhere), kwargs=(with_kwargs, with_kwargs_everywhere),
                    always=(always_call, always_called_everywhere))  # fmt: skip


def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` when the gradients of the outputs of any module are known."""
    return add_hook(backward_before_all, hook, counted=(True, everywhere))


def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` when both are known of any module."""
    return add_hook(backward_behind_all, hook, counted=(True, everywhere))


# ---- calls


def call_with_hooks(module, args, kwargs):
    """``module(*args, **kwargs)`` for a module with hooks."""
    result, done = None, set()
    try:
        backward_pre = [*backward_before_all.values(), *module._backward_pre_hooks.values()]
        backward = [*backward_behind_all.values(), *module._backward_hooks.values()]
        args, kwargs = before_forward(module, args, kwargs)
        watch = BackwardHooks(module, backward_pre, backward) if backward_pre or backward else None
        if watch:
            args = watch.inputs(args)
        result = module.forward(*args, **kwargs)
        for key, hook in behind(module):
            done.add(key)
            result = after_forward(module, key, hook, args, kwargs, result)
        return watch.outputs(result) if watch else result
    except Exception:
        for key, hook in behind(module):
            always = key in module._forward_hooks_always_called or key in always_called_everywhere
            if always and key not in done:
                try:
                    result = after_forward(module, key, hook, args, kwargs, result)
                except Exception as e:
                    warn(messages.ALWAYS_CALL_FAILED.format("global " if key in behind_all else "", e))
        raise


def behind(module):
    """The forward hooks at this time, with their ids: a pre-hook or ``forward`` may add one or take one away."""
    return [*behind_all.items(), *module._forward_hooks.items()]


def before_forward(module, args, kwargs):
    """The arguments as the pre-hooks leave them."""
    for key, hook in [*before_all.items(), *module._forward_pre_hooks.items()]:
        if key in module._forward_pre_hooks_with_kwargs:
            new = hook(module, args, kwargs)
            if new is not None:
                if not isinstance(new, tuple) or len(new) != 2:
                    raise RuntimeError(messages.PRE_HOOK_RETURNED.format(new))
                args, kwargs = new
        else:
            new = hook(module, args)
            if new is not None:
                args = new if isinstance(new, tuple) else (new,)
    return args, kwargs


def after_forward(module, key, hook, args, kwargs, result):
    """The result as a forward hook leaves it."""
    with_kwargs = key in module._forward_hooks_with_kwargs or key in with_kwargs_everywhere
    new = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    return result if new is None else new


class BackwardHookFunction(Function):
    """Its arguments as they are: a node between them and the rest of the graph, for hooks to hang on."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*(a for a in args if not a.requires_grad))
        return args

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHooks:
    """One call of a module with backward hooks: they run when the gradients of its outputs and inputs are there."""

    grad_outputs = None
    watches_inputs = False

    def __init__(self, module, pre_hooks, hooks):
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks

    def inputs(self, args):
        """The arguments, with a node before them which calls the hooks."""
        places = tensor_positions(args)
        unwatched = {i: args[i] for i in places if not args[i].requires_grad}
        args, node = passed_through(args, places)
        self.count = len(args)
        if node is not None:
            self.watches_inputs = True
            node.register_hook(lambda grads, _: self.on_grad_inputs(grads, places, unwatched))
        return args

    def outputs(self, result):
        """The result, with a node behind it which calls the pre-hooks (and the hooks, if no input requires grad)."""
        if not isinstance(result, (Tensor, tuple)):
            warn(messages.OUTPUT_NO_TENSOR.format(type(result)))
        results = result if isinstance(result, tuple) else (result,)
        places, size = tensor_positions(results), len(results)
        results, node = passed_through(results, places)
        if node is not None:
            node.register_hook(lambda _, grads: self.on_grad_outputs(grads, places, size))
        return results if isinstance(result, tuple) else results[0]

    def on_grad_outputs(self, grads, places, size):
        """The gradients of the outputs are there."""
        self.grad_outputs = spaced(grads, places, size)
        for hook in self.pre_hooks:
            new = hook(self.module, self.grad_outputs)
            if new is not None:
                if len(new) != size:
                    raise RuntimeError(messages.NUMBER_OF_GRAD_OUTPUTS.format(len(new), size))
                self.grad_outputs = new
        grads = self.grad_outputs
        if not self.watches_inputs:
            warn(messages.NO_INPUT_REQUIRES_GRAD)
            for hook in self.hooks:
                new = hook(self.module, (None,) * self.count, self.grad_outputs)
                if new is not None and not (isinstance(new, tuple) and all(n is None for n in new)):
                    raise RuntimeError(messages.HOOK_WITHOUT_INPUTS)
            self.grad_outputs = None
        return tuple(grads[i] for i in places)

    def on_grad_inputs(self, grads, places, unwatched):
        """The gradients of the inputs are there; the hooks see zeros for an input that requires none."""
        if self.grad_outputs is None:
            return None
        zeros = {i: zeros_like(t) for i, t in unwatched.items()}
        grads = tuple(zeros.get(i, g) for i, g in enumerate(spaced(grads, places, self.count)))
        for hook in self.hooks:
            new = hook(self.module, grads, self.grad_outputs)
            if new is not None:
                if len(new) != len(grads):
                    raise RuntimeError(messages.NUMBER_OF_GRAD_INPUTS.format(len(new), len(grads)))
                grads = new
        self.grad_outputs = None
        return tuple(None if i in unwatched else grads[i] for i in places)


def tensor_positions(values):
    return [i for i, v in enumerate(values) if isinstance(v, Tensor)]


def spaced(values, places, size):
    """A tuple of a size with values at places, None elsewhere."""
    found = dict(zip(places, values))
    return tuple(found.get(i) for i in range(size))


def passed_through(values, places):
    """(the tuple with its tensors behind a node of their own, that node); the node is None if none requires grad."""
    tensors = [values[i] for i in places]
    if not (mode.enabled and any(t.requires_grad for t in tensors)):
        return values, None
    behind = dict(zip(places, BackwardHookFunction.apply(*tensors)))
    node = next(t.grad_fn for t in behind.values() if t.requires_grad)
    replaced = (behind.get(i, v) for i, v in enumerate(values))
    return tuple(replaced) if type(values) is tuple else type(values)(*replaced), node
