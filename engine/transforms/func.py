"""Derivatives as functions of functions, under the names of ``torch.func``.

``grad``, ``vjp`` and ``jacrev`` record ``func`` on new leaves and go back from its results; ``jvp`` and ``jacfwd`` run
it in a forward pass (``forward.py``); ``vmap`` runs it on batches (``vmap.py``).  A Jacobian is a vjp or jvp of all
unit vectors at once.  They compose to any depth, because each works on the same graph: what is computed inside is
recorded where something outside is going to differentiate it.
"""

import functools
from contextlib import nullcontext
from itertools import accumulate
from math import inf

from ..arrays import tree
from ..arrays.dispatch import xp_of, zeros_like
from ..arrays.dtypes import differentiable
from ..arrays.quiet import be_quiet
from ..arrays.running import undoing
from ..core import views
from ..core.backward import backward_pass, roots
from ..core.graph import AccumulateGrad, clock, extend, mode, node_class
from ..core.observers import forget, observe
from ..core.tensor import Tensor, alive
from ..ops.shape import cat, reshape_to, split, stack
from . import FOR_TANGENTS, messages
from .batched import Batched
from .forward import ForwardPass, continues, dual, leads_to, leaving, outgoing, refuse_tangents
from .vmap import batch, check_randomness, leave, remove_batch_dim, vmap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip

# a leaf of a transform, on a tensor that is in a graph already
Inner = node_class("ViewBackward0", lambda g: g, diagonal=True, begins=True)


# ---- inside a transform that differentiates

extend(Tensor, transform_level=0)  # how many of them ran when it was made


def refuse_captured(tensor, others):
    """RuntimeError if memory would be written that a tensor has which was not made inside of the transform."""
    if not mode.derivatives:
        return
    own = tensor if tensor._base is None else tensor._base
    if any(t.transform_level < mode.derivatives for t in (own, *alive(own, "aliases"))):
        raise RuntimeError(messages.CAPTURED_WRITTEN)
    if mode.enabled is FOR_TANGENTS:
        refuse_tangents(tensor, others)


def stamp(tensor):
    """Remember inside of which transforms a Tensor was made: only there may it be written."""
    tensor.transform_level = mode.derivatives


views.write_checks.append(refuse_captured)


class differentiating:
    """A block that runs inside a transform that differentiates, and is recorded, or ``FOR_TANGENTS`` at least."""

    def __init__(self, enabled=True):
        self.enabled = enabled

    def __enter__(self):
        self.before = mode.transforms, mode.derivatives, mode.enabled, mode.asked
        observe(Tensor, stamp)
        mode.transforms, mode.derivatives, mode.enabled = mode.transforms + 1, mode.derivatives + 1, self.enabled

    def __exit__(self, *exc):
        mode.transforms, mode.derivatives, mode.enabled, mode.asked = self.before
        forget(Tensor, stamp)


# ---- recording on leaves of one's own


def outside_inference_mode(function):
    """A transform works in inference mode too: it is left for the call."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        before, mode.inference = mode.inference, False
        try:
            return function(*args, **kwargs)
        finally:
            mode.inference = before

    return call


def saveable(x):
    """A tensor that may be saved: a copy of one that was made in inference mode."""
    return Tensor(x.array.copy()) if x.inference else x


class Recording:
    """A call of ``func`` that is recorded on new leaves, which share the memory of ``primals``."""

    def __init__(self, primals):
        self.start = next(clock)
        self.leaves = [new_leaf(x) for x in primals]
        self.own = {x.node for x in self.leaves}

    def run(self, func, *args, **kwargs):
        try:
            with differentiating():
                args, kwargs = tree.map_tree(writable, (args, kwargs))
                return func(*args, **kwargs)
        finally:
            for node in self.own:  # from now on only this transform differentiates with respect to it
                leads_to(node, max((p.oldest_leaf_time for p in node.parents), default=-inf))

    def back(self, outputs, cotangents, create_graph, retain_graph=True):
        """The gradients with respect to the leaves, as Tensors; zeros where there are none."""
        pairs = [(o, g) for o, g in zip(outputs, cotangents) if o.node is not None]
        return self.pulled(roots(*zip(*pairs), create_graph) if pairs else {}, create_graph, retain_graph)

    def pulled(self, cotangents, create_graph, retain_graph=True):
        """The same from {node: cotangent}."""
        be_quiet()
        found = backward_pass(cotangents, retain_graph, create_graph, self.own) if cotangents else {}
        return [self.gradient(found.get(x.node), x) for x in self.leaves]

    def gradient(self, g, x):
        if g is None:
            return Tensor(zeros_like(x.array))
        return outgoing(g, self.start) if isinstance(g, Tensor) else Tensor(g)


def goes_on(values, start=-inf):
    """Return how to record a gradient of these values: not at all, unless someone outside differentiates it."""
    nodes = [v.node for v in values if isinstance(v, Tensor) and v.node]
    return mode.enabled and continues(nodes, start) is not None and mode.enabled


def handed_out(values, start):
    """Return the results of ``func``, as a transform that began at ``start`` hands them out."""

    def one(a):
        if not isinstance(a, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(a)}")
        return outgoing(a, start)

    return tree.map_tree(one, values)


def new_leaf(x):
    """A new Tensor on the memory of x, from which a graph begins."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    if x.array.dtype not in differentiable:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    new, outside = Tensor(saveable(x).array), x.node
    new.transform_level = mode.derivatives + 1
    new.node = node = Inner((outside,), ()) if outside else AccumulateGrad(new)
    if outside:
        node.tangents = outside.tangents
    leads_to(node, max(outside.oldest_leaf_time, node.time) if outside else node.time)
    return new


# ---- arguments


def writable(x):
    """The same memory as a tensor of this transform, which may write what it was given and does not differentiate.

    What is in a graph outside stays what it is: that graph would not know of the write.
    """
    return x if not isinstance(x, Tensor) or x.node is not None or x.inference else Tensor(x.shared())


def checked_argnums(argnums, args):
    """The numbers of the differentiated arguments, counted from the front; RuntimeError in PyTorch's words."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    several = argnums if isinstance(argnums, tuple) else (argnums,)
    if not several:
        raise RuntimeError("argnums must be non-empty")
    for i in several:
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i)}")
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"Got argnum={i}, but only {len(args)} positional inputs")
    numbers = tuple(i % len(args) for i in several)
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {numbers}")
    return numbers


def split_off(argnums, args):
    """(leaves of the differentiated arguments, their structure, how to put others in their place)."""
    numbers = checked_argnums(argnums, args)
    leaves, structure = tree.flatten(tuple(args[i] for i in numbers))

    def replaced(new):
        given = dict(zip(numbers, tree.unflatten(structure, new)))
        return [given.get(i, a) for i, a in enumerate(args)]

    return leaves, structure if isinstance(argnums, tuple) else structure.parts[0], replaced


def with_aux(out, has_aux, what):
    """(output, aux) of a function's result."""
    if not has_aux:
        return out, ()
    if not isinstance(out, tuple) or len(out) != 2:
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return out


def check_tensors(outs, what):
    """PyTorch's errors for results that cannot be differentiated."""
    if not outs or len(outs) == 1 and outs[0] is None:
        raise RuntimeError(f"{what}: Expected f to be a function that has non-empty output (got output = {outs})")
    for o in outs:
        if not isinstance(o, Tensor):
            raise RuntimeError(f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(o)}")


# ---- reverse mode


def grad(func, argnums=0, has_aux=False):
    """The function that computes the gradient of ``func``, which returns a number, with respect to its arguments."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        grads, value = gradient_and_value(func, argnums, has_aux, args, kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def grad_and_value(func, argnums=0, has_aux=False):
    """As ``grad``; the function returns (gradient, what ``func`` returned)."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return gradient_and_value(func, argnums, has_aux, args, kwargs)

    return wrapper


@outside_inference_mode
def gradient_and_value(func, argnums, has_aux, args, kwargs):
    primals, structure, replaced = split_off(argnums, args)
    r = Recording(primals)
    output, aux = with_aux(r.run(func, *replaced(r.leaves), **kwargs), has_aux, "grad_and_value(f)(*args)")
    if not isinstance(output, Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
    if output.array.ndim:
        raise RuntimeError(messages.NOT_A_SCALAR.format(output.array.ndim))
    outside = output.node and continues([output.node], r.start)
    create_graph = outside is not None and mode.enabled
    grads = tree.unflatten(structure, r.back([output], [None], create_graph, create_graph))
    value = output if output.node is None else leaving(output, outside)
    return grads, (value, handed_out(aux, r.start)) if has_aux else value


def outputs_of(r, func, args, has_aux):
    """(outputs, their structure, aux) of a call that is recorded to be differentiated by a vjp."""
    what = "vjp(f, *primals)"
    output, aux = with_aux(r.run(func, *args), has_aux, what)
    outs, structure = tree.flatten(output)
    check_tensors(outs, what)
    for o in outs:
        if o.array.dtype not in differentiable:
            raise RuntimeError(messages.VJP_DTYPE.format(o.dtype))
    return outs, structure, aux


@outside_inference_mode
def vjp(func, *primals, has_aux=False):
    """(the output of ``func(*primals)``, the function that multiplies by its Jacobian from the left: v -> v^T J)."""
    leaves, structure = tree.flatten(primals)
    r = Recording(leaves)
    outs, out_structure, aux = outputs_of(r, func, tree.unflatten(structure, r.leaves), has_aux)
    result = tree.unflatten(out_structure, [outgoing(o, r.start) for o in outs])
    aux = handed_out(aux, r.start) if has_aux else None
    r.start = -inf  # vjp_fn may be called inside of transforms that began later

    @outside_inference_mode
    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        given, have = tree.flatten(cotangents)
        if have != out_structure:
            raise RuntimeError(messages.COTANGENTS_STRUCTURE.format(have.short(), out_structure.short()))
        if create_graph is None:
            create_graph = goes_on(outs + given)
        return tree.unflatten(structure, r.back(outs, given, create_graph, retain_graph))

    return (result, vjp_fn, aux) if has_aux else (result, vjp_fn)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """The function that computes the Jacobian of ``func`` in reverse mode: a vjp of all unit vectors at once."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @outside_inference_mode
    @functools.wraps(func)
    def wrapper(*args):
        primals, structure, replaced = split_off(argnums, args)
        r = Recording(primals)
        outs, out_structure, aux = outputs_of(r, func, replaced(r.leaves), has_aux)
        create_graph = goes_on(outs, r.start)
        rows = [tree.unflatten(structure, jacobian_rows(r, o, chunk_size, create_graph)) for o in outs]
        result = tree.unflatten(out_structure, rows)
        return (result, handed_out(aux, r.start)) if has_aux else result

    return wrapper


def jacobian_rows(r, out, chunk_size, create_graph):
    """The derivatives of one output with respect to each leaf."""
    x, n = out.array, out.array.size
    shapes = [(*x.shape, *leaf.array.shape) for leaf in r.leaves]
    if out.node is None or not n:
        return [Tensor(xp_of(p.array).zeros(s, p.array.dtype)) for p, s in zip(r.leaves, shapes)]
    basis, chunks = unit_vectors(x, n).reshape(n, *x.shape), []
    if chunk_size == 1:  # one by one, as outside of vmap
        for i in range(n):
            chunks.append(r.pulled({out.node: Tensor(basis[i]) if create_graph else basis[i]}, create_graph))
        return [reshape_to(stack(c, 0), s) for c, s in zip(zip(*chunks), shapes)]
    for start in range(0, n, chunk_size or n):
        part = basis[start : start + (chunk_size or n)]
        with batch(len(part)) as level:
            g = Batched(part, level)
            found = r.pulled({out.node: Tensor(g) if create_graph else g}, create_graph)
            found = [remove_batch_dim(f, 0, level) for f in found]
        leave(found, level)
        chunks.append(found)
    return [reshape_to(c[0] if len(c) == 1 else cat(c, 0), s) for c, s in zip(zip(*chunks), shapes)]


def unit_vectors(x, n):
    """The unit vectors of n dimensions, in the dtype and the place of the array x."""
    return xp_of(x).eye(n, dtype=x.dtype)


# ---- forward mode

JVP = "jvp(f, primals, tangents)"


@outside_inference_mode
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(the output of ``func(*primals)``, its derivative along ``tangents``: J t)."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    (xs, structure), (ts, given) = tree.flatten(primals), tree.flatten(tangents)
    if structure != given:
        raise RuntimeError(messages.TANGENTS_STRUCTURE.format(JVP, structure, given))
    check_inputs("primals", xs)
    check_inputs("tangents", ts)
    which, outs, out_structure, aux = pushed(func, xs, ts, lambda new: tree.unflatten(structure, new), has_aux)
    found = zip(*[primal_and_tangent(o, which, strict) for o in outs])
    which.forget()
    result = tuple(tree.unflatten(out_structure, values) for values in found)
    return (*result, handed_out(aux, which.start)) if has_aux else result


def check_inputs(argument, values):
    """PyTorch's errors for primals and tangents."""
    if not values:
        raise RuntimeError(f"{JVP}: Expected {argument} to contain at least one Tensor.")
    for v in values:
        if not isinstance(v, Tensor):
            raise RuntimeError(f"{JVP}: Expected {argument} to only contain Tensors, got {type(v)}")


def pushed(func, primals, tangents, replaced, has_aux=False, level=None):
    """(the pass, the outputs, their structure, aux) of a call of ``func`` on primals that carry tangents.

    ``level``: the pass of a dual level that is open.
    """
    which = level or ForwardPass()
    with differentiating(mode.enabled or FOR_TANGENTS), nullcontext() if level else which:
        duals = [dual(saveable(x), saveable(t), which) for x, t in zip(primals, tangents)]
        for x, d in zip(primals, duals):
            d.node.begins = x.requires_grad  # its graph outside would not know of a write
        output, aux = with_aux(func(*tree.map_tree(writable, tuple(replaced(duals)))), has_aux, JVP)
    outs, structure = tree.flatten(output)
    check_tensors(outs, JVP)
    return which, outs, structure, aux


def primal_and_tangent(out, which, strict=False):
    """(an output without its tangent, the tangent: zeros if it has none), as they leave a pass."""
    tangent = None if out.node is None else out.node.tangents.get(which)
    if tangent is None and strict:
        raise RuntimeError(messages.JVP_STRICT)
    tangent = Tensor(zeros_like(out.array)) if tangent is None else outgoing(tangent, which.start)
    return outgoing(out, which.start), tangent


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """The function that computes the Jacobian of ``func`` in forward mode: a jvp along all unit vectors at once."""

    @functools.wraps(func)
    def wrapper(*args):
        check_randomness(randomness)
        primals, structure, replaced = split_off(tuple(range(len(args))) if argnums is None else argnums, args)
        check_inputs("primals", primals)
        found, out_structure, aux = jacobian_columns(func, primals, replaced, has_aux, randomness)
        result = tree.unflatten(out_structure, [tree.unflatten(structure, row) for row in found])
        return (result, aux) if has_aux else result

    return wrapper


@outside_inference_mode
def jacobian_columns(func, primals, replaced, has_aux=False, randomness="error", level=None):
    """(the derivatives of each output with respect to each primal, the structure of the outputs, aux)."""
    sizes = [x.array.size for x in primals]
    n = sum(sizes)
    ends = [*accumulate(sizes)]
    with batch(n, randomness) as samples:
        bases = [unit_vectors(x.array, n)[:, end - size : end] for x, size, end in zip(primals, sizes, ends)]
        tangents = [Tensor(Batched(b.reshape(n, *x.array.shape), samples)) for b, x in zip(bases, primals)]
        which, outs, out_structure, aux = pushed(func, primals, tangents, replaced, has_aux, level)
        found = [primal_and_tangent(o, which)[1] for o in outs]
        found = [remove_batch_dim(t, t.array.ndim, samples) for t in found]
        which.forget()
    leave(found, samples)
    parts = [split(j, sizes, -1) if len(sizes) > 1 else (j,) for j in found]
    rows = [[reshape_to(c, (*c.array.shape[:-1], *x.array.shape)) for c, x in zip(row, primals)] for row in parts]
    return rows, out_structure, handed_out(aux, which.start) if has_aux else None


def hessian(func, argnums=0):
    """The function that computes the Hessian of ``func``: the forward mode Jacobian of the reverse mode Jacobian."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """(the output of ``func(*primals)``, the function t -> J t), which does not run ``func`` again.

    J t is the vjp, which is linear, pulled back once more: its transpose.
    """
    output, vjp_fn = vjp(func, *primals)
    outs, out_structure = tree.flatten(output)
    leaves, structure = tree.flatten(primals)
    dummies = Recording([Tensor(zeros_like(o.array)) for o in outs])
    pulled = dummies.run(vjp_fn, tree.unflatten(out_structure, dummies.leaves), create_graph=True)
    pulled = tree.flatten(pulled)[0]
    dummies.start = -inf  # as in vjp

    def jvp_fn(*tangents):
        given, have = tree.flatten(tangents)
        if have != structure:
            raise RuntimeError(f"Expected the tangents {have} to have the same argspec as the primals {structure}")
        for i, (t, x) in enumerate(zip(given, leaves)):
            for what in ("shape", "device", "dtype"):
                a, b = getattr(t, what), getattr(x, what)
                if a != b:
                    raise RuntimeError(messages.TANGENT_DIFFERS.format(i, what, a, b))
        return tree.unflatten(out_structure, dummies.back(pulled, given, goes_on(pulled + given)))

    return output, jvp_fn


# ---- modules as functions of their parameters


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module with other parameters and buffers, given by name in a dict or in several."""
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
    state = tied(given, own) if tie_weights else given
    if strict:
        check_names(module, state, own)
    with reparametrized(module, state, given):
        return module(*args, **(kwargs or {}))


def tied(given, own):
    """Return the given tensors under every name that stands for the same tensor of the module."""
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
    """A block in which other tensors stand in a module; what stands there in the end goes into the dict ``kept``."""

    def __init__(self, module, given, kept):
        self.kept, self.new = kept, given
        self.places = {}  # name -> (the dict that has it or, for a plain attribute, the module, under which name)
        for name, tensor in given.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            if not isinstance(tensor, Tensor | None):
                raise TypeError(f"{tensor} is not an instance of torch.Tensor")
            place = next((p for p in (owner._parameters, owner._buffers) if last in p), owner)
            self.places[name] = place, last
            own = standing(place, last)
            if own is not MISSING and not isinstance(own, Tensor | None):
                raise TypeError(f"attribute `{last}`: {own} is not an instance of torch.Tensor")
        self.own = {name: standing(*at) for name, at in self.places.items()}

    def __enter__(self):
        super().__enter__()
        for name, at in self.places.items():
            put(*at, self.new[name])

    def undo(self):
        changed = {name: standing(*at) for name, at in self.places.items() if name in self.kept}
        self.kept.update({name: tensor for name, tensor in changed.items() if tensor is not MISSING})
        for name, at in self.places.items():
            put(*at, self.own[name])


MISSING = object()  # what stands under a name that a module does not have


def standing(place, name):
    """Return what a dict or, as an attribute, a module has under a name."""
    return place.get(name, MISSING) if isinstance(place, dict) else getattr(place, name, MISSING)


def put(place, name, tensor):
    """Let a dict have a tensor under a name, or a module as an attribute, which makes it no parameter of it."""
    if isinstance(place, dict):
        place[name] = tensor
    elif tensor is MISSING:
        vars(place).pop(name, None)
    else:
        object.__setattr__(place, name, tensor)


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
