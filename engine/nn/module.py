"""Module: parameters, buffers and other modules under names, and a ``forward`` that uses them."""

from collections import OrderedDict, namedtuple
from collections.abc import Mapping

from ..arrays import devices, dtypes
from ..arrays.running import offers
from ..arrays.warn import warn
from ..autograd.modes import no_grad
from ..core.tensor import Tensor
from . import hooks, messages
from .hooks import add_hook
from .parameter import Buffer, Parameter


class _IncompatibleKeys(namedtuple("IncompatibleKeys", "missing_keys unexpected_keys")):
    """The keys that ``load_state_dict`` did not find, and those that it had no place for."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"


def full_name(value):
    """The name of a value's type in error messages, as PyTorch writes it."""
    if isinstance(value, Tensor):
        return Tensor.typename(value.array)
    kind = value if hasattr(value, "__qualname__") else type(value)  # a function or a class: its own name
    return kind.__qualname__ if kind.__module__ in ("builtins", None) else f"{kind.__module__}.{kind.__qualname__}"


def indented(text):
    """The text of a child: its lines but the first further to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line if line.strip() else "" for line in rest)])


class Module:
    """A layer, or a model made of layers.  A subclass sets its parts in ``__init__`` and writes ``forward``.

    Parameters, buffers and modules assigned as attributes are kept in ``_parameters``, ``_buffers`` and ``_modules``.
    """

    _version = 1
    call_super_init = False  # whether the constructor goes on to the class behind Module, for one with several bases
    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, "Module | None"]

    def __init__(self, *args, **kwargs):
        if kwargs and not self.call_super_init:
            name = next(iter(kwargs))
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
        if args and not self.call_super_init:
            n = len(args) + 1
            raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {n} were given")
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(), _backward_hooks=OrderedDict(), _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(), _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(), _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(), _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(), _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(), _modules={},
        )  # fmt: skip
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input):
        """Compute the module's output; every subclass writes its own."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args, **kwargs):
        own = self.__dict__  # a class with __getattr__ finds its attributes slowly
        try:
            watched = (
                own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]
                or own["_backward_pre_hooks"] or hooks.everywhere
            )  # fmt: skip
        except KeyError:
            watched = self._backward_hooks  # the error of a module whose __init__ did not call super().__init__()
        if watched:
            return hooks.call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, **how):
        """From now on, a call runs the code that ``engine.compile`` writes at the first one; its keyword arguments."""
        forward = self.__dict__.get("forward", self.forward)
        self.__dict__["forward"] = offers["compile"](getattr(forward, "function", forward), **how)

    def __getstate__(self):
        """Return the state of a copy, without ``compile``: compiled code belongs to the parameters of this module."""
        state = self.__dict__.copy()
        if getattr(getattr(state.get("forward"), "function", None), "__self__", None) is self:
            del state["forward"]
        return state

    # ---- attributes

    def __getattr__(self, name):
        own = self.__dict__
        if "_parameters" in own:  # and with it the others
            for place in (own["_parameters"], own["_modules"], own["_buffers"]):
                if name in place:
                    return place[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        own = self.__dict__
        parameters, buffers, modules = own.get("_parameters"), own.get("_buffers"), own.get("_modules")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            forget(self, name, own, buffers, modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(messages.PARAMETER_EXPECTED.format(full_name(value), name))
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            forget(self, name, own, parameters, buffers)
            modules[name] = value
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(messages.MODULE_EXPECTED.format(full_name(value), name))
            modules[name] = value
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(messages.NO_BUFFER.format(full_name(value), name))
            persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
            self.register_buffer(name, value, persistent)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        for place in (self._parameters, self._buffers, self._modules):
            if name in place:
                del place[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def register_parameter(self, name, param):
        """Keep a Parameter (or None) under a name.  KeyError, TypeError or ValueError for what cannot be one."""
        check_name(self, "parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(messages.NO_PARAMETER.format(full_name(param), name))
        if param is not None and param.grad_fn is not None:
            raise ValueError(messages.NON_LEAF_PARAMETER.format(name))
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Keep a tensor (or None) that is not trained under a name; ``persistent``: in the ``state_dict`` too."""
        check_name(self, "buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(messages.NO_BUFFER_TENSOR.format(full_name(tensor), name))
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name, module):
        """Keep a Module (or None) under a name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{full_name(module)} is not a Module subclass")
        check_name(self, "module", name, "_modules")
        self._modules[name] = module

    def register_module(self, name, module):
        """The same as ``add_module``."""
        self.add_module(name, module)

    # ---- finding parts by their path, "encoder.0.weight"

    def get_submodule(self, target):
        """The module at a path; "" is this one.  AttributeError if there is none."""
        module = self
        for item in target.split(".") if target else ():
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put a module at a path; ``strict``: only in the place of another."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter at a path.  AttributeError if there is none."""
        return member(self, target, lambda m, name: isinstance(getattr(m, name), Parameter), "an nn.Parameter")

    def get_buffer(self, target):
        """The buffer at a path.  AttributeError if there is none."""
        return member(self, target, lambda module, name: name in module._buffers, "a buffer")

    # ---- walks over all parts; one that is used in several places comes once

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """(path, module) of this module and of all below it."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate=True):
        """This module and all below it."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self):
        """(name, module) of the modules right below this one."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """The modules right below this one."""
        return (module for _, module in self.named_children())

    def _named_members(self, kind, prefix, recurse, remove_duplicate):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module.__dict__[kind].items():
                if value is not None and value not in seen:
                    if remove_duplicate:
                        seen.add(value)
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """(path, parameter) of this module and, if ``recurse``, of all below it."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """The parameters, as an optimizer takes them."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """(path, buffer) of this module and, if ``recurse``, of all below it."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """The buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    # ---- changing all parts

    def apply(self, fn):
        """Call ``fn(module)`` for all modules below this one, then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Set ``training`` here and below: dropout and batch norm look at it.  ValueError unless it is a bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """``train(False)``"""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Begin (or stop) to record operations on all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or fill them with zeros."""
        clear_gradients(self.parameters(), set_to_none)

    def _apply(self, fn, recurse=True):
        """Replace the memory of all parameters, of their gradients and of all buffers by what ``fn`` makes of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for p in self._parameters.values():
                if p is not None:
                    grad = p.grad
                    p.data = fn(p)
                    if grad is not None:
                        grad.data = fn(grad)
        for name, b in self._buffers.items():
            if b is not None:
                self._buffers[name] = fn(b)
        return self

    def to(self, *args, dtype=None, device=None, non_blocking=False, memory_format=None):
        """Move all parts: ``to(device)``, ``to(dtype)`` (the floating ones), ``to(device, dtype)``, ``to(tensor)``."""
        for a in args:
            if isinstance(a, Tensor):
                dtype, device = a.dtype, a.device
            elif isinstance(a, (dtypes.dtype, type)):
                dtype = a
            elif a is not None and not isinstance(a, bool):
                device = devices.device(a)
        dtype = dtype if dtype is None else dtypes.given(dtype)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(messages.NOT_FLOATING.format(dtype))
        return self._apply(lambda t: t.to(dtype=dtype if t.is_floating_point() else None, device=device))

    def float(self):
        """All floating parameters and buffers in float32."""
        return self.to(dtypes.float32)

    def double(self):
        """All floating parameters and buffers in float64."""
        return self.to(dtypes.float64)

    def half(self):
        """All floating parameters and buffers in float16."""
        return self.to(dtypes.float16)

    def bfloat16(self):
        """All floating parameters and buffers in bfloat16."""
        return self.to(dtypes.bfloat16)

    def type(self, dst_type):
        """All parameters and buffers in a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self):
        """All parameters and buffers in host memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """All parameters and buffers in the memory of a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self):
        raise NotImplementedError(messages.NO_SHARED_MEMORY)

    # ---- state

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """{path: tensor} of all parameters and persistent buffers: their memory, detached unless ``keep_vars``."""
        if args:
            warn(messages.POSITIONAL_STATE_DICT, FutureWarning)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            if hook(self, destination, prefix, metadata) is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in own_state(self).items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if hasattr(self, "get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy the tensors of a ``state_dict`` into the parameters and buffers; ``assign``: put them in their places.

        Returns the missing and the unexpected keys.  RuntimeError if there are any, unless ``strict`` is False, and for
        sizes that differ.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", {})
        missing, unexpected, errors = [], [], []
        load_tree(self, OrderedDict(state_dict), "", metadata, assign, missing, unexpected, errors)
        if strict:
            for title, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    quoted = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{title} key(s) in state_dict: {quoted}. ")
        if errors:
            raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *errors]))
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Load what this module itself keeps.  What goes wrong is appended to the three lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        state, assign = own_state(self), local_metadata.get("assign_to_params_buffers")
        for name, value in state.items():
            key = prefix + name
            if key in state_dict:
                error_msgs.extend(load_value(self, name, value, key, state_dict[key], assign))
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA_STATE
        if hasattr(self, "set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        for key in state_dict if strict else ():
            if key.startswith(prefix) and key != extra:
                name, dot, _ = key.removeprefix(prefix).partition(".")
                if name not in (self._modules if dot else state):
                    unexpected_keys.append(key)

    # ---- hooks

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before ``forward``; it may return other arguments.  Returns a handle."""
        return add_hook(
            self._forward_pre_hooks, hook, prepend, kwargs=(with_kwargs, self._forward_pre_hooks_with_kwargs)
        )

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after ``forward``; it may return another output.  Returns a handle."""
        return add_hook(
            self._forward_hooks, hook, prepend, kwargs=(with_kwargs, self._forward_hooks_with_kwargs),
            always=(always_call, self._forward_hooks_always_called),
        )  # fmt: skip

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may return others."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` when both are known; it may return others of the inputs."""
        self.__dict__["_is_full_backward_hook"] = True
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        raise NotImplementedError(messages.NO_BACKWARD_HOOK)

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` is made."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, metadata)`` when a ``state_dict`` is made, to change it in place."""
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, ...)`` before this module's state is loaded."""
        return add_hook(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` when this module's state is loaded; it may change them in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # ---- printing

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """Return the text between the parentheses of ``repr``, for a subclass to write."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        lines += [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if not self._modules and len(lines) == 1:
            return f"{self._get_name()}({lines[0]})"
        return framed(self, lines)


def forget(module, name, *places):
    """Take a name out of wherever it was, before it is given to something of another kind."""
    for place in places:
        place.pop(name, None)
    module._non_persistent_buffers_set.discard(name)


def check_name(module, kind, name, place):
    """PyTorch's errors for a name that cannot be given to a ``kind`` of thing."""
    if place not in module.__dict__:
        raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {full_name(name)}")
    taken = hasattr(module, name) and name not in module.__dict__[place]
    if kind == "module" and taken:
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        raise KeyError(f"""{kind} name can't contain "."{f", got: {name}" if kind == "module" else ""}""")
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if taken:
        raise KeyError(f"attribute '{name}' already exists")


def member(module, target, is_one, what):
    """Return what a module below this one has under a name.  AttributeError if it is none of that kind."""
    path, _, name = target.rpartition(".")
    owner = module.get_submodule(path)
    if not hasattr(owner, name):
        raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
    if not is_one(owner, name):
        raise AttributeError(f"`{name}` is not {what}")
    return getattr(owner, name)


def framed(module, lines):
    """The name of the class around lines of text."""
    return "\n  ".join([module._get_name() + "(", *lines]) + "\n)" if lines else module._get_name() + "()"


EXTRA_STATE = "_extra_state"


def own_state(module):
    """{name: tensor} of what this module itself keeps."""
    persistent = ((n, b) for n, b in module._buffers.items() if n not in module._non_persistent_buffers_set)
    return {name: value for name, value in (*module._parameters.items(), *persistent) if value is not None}


def load_value(module, name, value, key, new, assign):
    """Load one tensor; a list of what is wrong with it."""
    if not isinstance(new, Tensor):
        return [messages.STATE_NO_TENSOR.format(key, type(new))]
    if value.ndim == 0 and new.shape == (1,):
        new = new[0]
    if new.shape != value.shape:
        return [messages.SIZE_MISMATCH.format(key, new.shape, value.shape)]
    try:
        with no_grad():
            if not assign:
                value.copy_(new)
            else:
                if isinstance(value, Parameter):
                    new = new if isinstance(new, Parameter) else Parameter(new, value.requires_grad)
                    new.requires_grad_(value.requires_grad)
                setattr(module, name, new)
    except Exception as e:
        return [messages.COPY_FAILED.format(key, value.size(), new.size(), e.args)]
    return []


def load_tree(module, state_dict, prefix, metadata, assign, missing, unexpected, errors):
    """Load the part of a state_dict that begins with a prefix, into a module and all below it."""
    local = dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(state_dict, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {key: value for key, value in state_dict.items() if key.startswith(below)}
            load_tree(child, part, below, metadata, assign, missing, unexpected, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, _IncompatibleKeys(missing, unexpected)) is not None:
            raise AssertionError(messages.POST_HOOK_RETURNED)


def clear_gradients(parameters, set_to_none):
    """Let tensors have no gradients, or zeros that are no part of any graph."""
    for p in parameters:
        if set_to_none:
            p.grad = None
        elif p.grad is not None:
            if p.grad.grad_fn is not None:
                p.grad.detach_()
            p.grad.requires_grad_(False).zero_()
