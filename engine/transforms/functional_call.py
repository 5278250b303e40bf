"""Modules as functions of their parameters."""

from ..arrays.dispatch import undoing
from ..core.tensor import Tensor
from ..ops.shape import stack
from . import messages


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module with other parameters and buffers, given by name in a dict or in several.

    ``tie_weights``: what is one tensor in the module under several names is replaced under all of them.  ``strict``:
    RuntimeError unless all are given and each is the module's.
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, (list, tuple)):
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [k for d in given for k in d]
        repeated = [k for k in dict.fromkeys(names) if names.count(k) > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {k: v for d in given for k, v in d.items()}
    elif not isinstance(given, dict):
        raise ValueError(messages.NO_DICTS.format(type(given)))
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    own = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    given = tied(given, own) if tie_weights else given
    if strict:
        check_names(module, given, own)
    with reparametrized(module, given):
        return module(*args, **(kwargs or {}))


def tied(given, own):
    """What is given, under all names that stand for one tensor of the module."""
    names: dict = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    new = dict(given)
    for group in names.values():
        values = [given[n] for n in group if n in given]
        if len({id(v) for v in values}) > 1:
            raise ValueError(messages.TIED_TWICE.format(sorted(group)))
        if values:
            new.update(dict.fromkeys(group, values[0]))
    return new


def check_names(module, given, own):
    missing, unexpected = [k for k in own if k not in given], [k for k in given if k not in own]
    if unexpected or missing:
        kinds = ("Unexpected", unexpected), ("Missing", missing)
        text = "\n\t".join(f"{kind} key(s): {', '.join(map(repr, sorted(keys)))}." for kind, keys in kinds if keys)
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t{text}")


class reparametrized(undoing):
    """A block in which other tensors stand in a module."""

    def __init__(self, module, given):
        self.changes = []  # (where a tensor stands, under which name, the module's own, the one in its place)
        for name, tensor in given.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            place = next((p for p in (owner._parameters, owner._buffers) if last in p), None)
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{name} is not an instance of torch.Tensor")
            if place is not None:  # a name that the module does not have is none of its business
                self.changes.append((place, last, place[last], tensor))

    def __enter__(self):
        super().__enter__()
        for place, last, _, tensor in self.changes:
            place[last] = tensor

    def undo(self):
        for place, last, own, _ in self.changes:
            place[last] = own


def stack_module_state(models):
    """(parameters, buffers) of modules of one class, stacked under their names: an ensemble for ``vmap``."""
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return tuple(stacked([dict(getattr(m, kind)()) for m in models]) for kind in ("named_parameters", "named_buffers"))


def stacked(states):
    found = {}
    for name in states[0]:
        tensors = [s[name] for s in states]
        if len({t.requires_grad for t in tensors}) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        found[name] = stack(tensors).detach().requires_grad_(tensors[0].requires_grad)
    return found
