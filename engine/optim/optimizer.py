"""Optimizer: groups of parameters with their options, the state of each parameter, and hooks."""

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy

from ..arrays.quiet import be_quiet
from ..arrays.running import outside_of_captures
from ..arrays.warn import warn
from ..core.tensor import Tensor
from ..nn.hooks import add_hook
from ..nn.module import clear_gradients, full_name
from . import messages

required = object()  # the default of an option that has none
HOOKS = [f"_optimizer_{what}_hooks" for what in (
    "step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post",
)]  # fmt: skip


def with_hooks(step):
    """``step`` with the optimizer's hooks around it; schedulers look at ``_opt_called``."""

    @outside_of_captures
    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        be_quiet()
        own = self.__dict__
        if "_opt_called" in own:
            self._opt_called = True
        if own.get("_optimizer_step_pre_hooks"):
            for hook in [*self._optimizer_step_pre_hooks.values()]:
                new = hook(self, (self, *args), kwargs)
                if new is not None:
                    if not isinstance(new, tuple) or len(new) != 2:
                        raise RuntimeError(messages.STEP_RETURNED.format(step, new))
                    (self, *args), kwargs = new
        out = step(self, *args, **kwargs)
        if own.get("_optimizer_step_post_hooks"):
            for hook in [*self._optimizer_step_post_hooks.values()]:
                hook(self, (self, *args), kwargs)
        return out

    wrapper.hooked = True
    return wrapper


class Optimizer:
    """Holds parameters in ``param_groups``, each with its options, and their ``state``.  A subclass writes ``step``."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls) and not hasattr(cls.step, "hooked"):
            cls.step = with_hooks(cls.step)

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._set_up_unsaved()
        if isinstance(params, Tensor):
            raise TypeError(messages.PARAMS_ARE_A_TENSOR.format(full_name(params)))
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._set_up_unsaved()
        self.defaults.setdefault("differentiable", False)

    def _set_up_unsaved(self):
        """Set up what is there besides options and states, and is not saved."""
        own = self.__dict__
        for name in HOOKS:
            own.setdefault(name, OrderedDict())

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            options = (f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            text += f"\nParameter Group {i}\n" + "".join(options)
        return text + ")"

    def step(self, closure=None):
        """Move the parameters once; ``closure`` computes the loss again and returns it."""
        raise NotImplementedError

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            clear_gradients(group["params"], set_to_none)

    def add_param_group(self, param_group):
        """Add a group of parameters with options of its own.  TypeError or ValueError for what cannot be one."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(messages.UNORDERED)
        params = [params] if isinstance(params, Tensor) else list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names and len(names) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        params = param_group["params"] = [p[1] if isinstance(p, tuple) else p for p in params]
        if names:
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {full_name(p)}")
            if not p.is_leaf and not p.retains_grad:
                raise ValueError("can't optimize a non-leaf Tensor")
        param_group.update({**self.defaults, **param_group})
        for name, value in param_group.items():
            if value is required:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        if len(set(params)) != len(params):
            warn(messages.DUPLICATE_PARAMETERS)
        named = "param_names" in param_group
        for group in self.param_groups:
            if ("param_names" in group) != named:
                raise ValueError(messages.WITH_OR_WITHOUT_NAMES.format("with" if named else "without"))
            if not set(params).isdisjoint(group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    # ---- state

    def state_dict(self):
        """{"state": {number of the parameter: its state}, "param_groups": options and numbers}: the very tensors."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        every = [p for group in self.param_groups for p in group["params"]]
        number = {id(p): i for i, p in enumerate(every)}
        groups = []
        for group in self.param_groups:
            options = {key: value for key, value in group.items() if key != "params"}
            groups.append({**options, "params": [number[id(p)] for p in group["params"]]})
        state = {number[id(p)] if isinstance(p, Tensor) else p: values for p, values in self.state.items()}
        return passed_on(self, "state_dict_post", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict):
        """Take over states and options.  ValueError if the groups are not as many, or not as large."""
        state_dict = passed_on(self, "load_state_dict_pre", state_dict.copy())
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved)):
            raise ValueError(messages.GROUP_SIZE)
        parameter = {i: p for g, s in zip(groups, saved) for i, p in zip(s["params"], g["params"])}
        state = defaultdict(dict)
        for i, values in state_dict["state"].items():
            state[parameter.get(i, i)] = cast_state(values, parameter.get(i))
        for group, options in zip(groups, saved):
            options["params"] = group["params"]
            if "param_names" in group:
                options.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- hooks

    def register_step_pre_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return others.  Returns a handle."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; it may return another one."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` before ``load_state_dict``; it may return another one."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` after ``load_state_dict``."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def passed_on(optimizer, kind, value):
    """A value as hooks have it, each of which may return another one."""
    for hook in vars(optimizer)[f"_optimizer_{kind}_hooks"].values():
        new = hook(optimizer, value)
        value = value if new is None else new
    return value


def to_scalar(option):
    """An option; one that is a tensor of one element without its dims."""
    return option.squeeze() if isinstance(option, Tensor) else option


def cast_state(value, p, key=None):
    """A loaded state with its tensors, but for the step, in the dtype and on the device of the parameter."""
    if isinstance(value, Tensor):
        if p is None or key == "step":
            return value
        return value.to(dtype=p.dtype if p.is_floating_point() else None, device=p.device)
    if isinstance(value, dict):
        return {k: cast_state(v, p, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(cast_state(v, p) for v in value)
    return value
