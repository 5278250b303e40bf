"""Hooks: what a program may see, and change, of the gradients on their way."""

from ..core import graph
from ..core.graph import AccumulateGrad, OutputCotangents, as_tensor, copy, cotangent


def tensor_hook(hook):
    """The hook of a tensor, which sees Tensors, as the sweep calls it."""

    def call(g):
        shown = as_tensor(g)
        new = hook(shown)
        return cotangent(shown) if new is None else checked(hook, new, g)  # a single number that it wrote is a new one

    return call


def run_pre_hooks(node, g):
    """What the prehooks of a node make of what arrives there; they see tuples of Tensors."""
    for hook in node.pre_hooks:
        grads = seen(g, node.outputs)
        new = hook(grads)
        new = [*map(cotangent, grads)] if new is None else checked_all(hook, new, grads)
        g = (
            OutputCotangents({i: t for i, t in enumerate(new) if t is not None})
            if type(g) is OutputCotangents
            else new[0]
        )
    return g


def checked_all(hook, new, old):
    """The cotangents in the tuple that a hook returned in place of others."""
    if not isinstance(new, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
    if len(new) != len(old):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values (got {len(new)}, but expected "
            f"{len(old)})"
        )
    return [checked(hook, n, o) for n, o in zip(new, old)]


def checked(hook, new, old):
    """The cotangent that a hook returned in place of another.  TypeError or RuntimeError if it is none."""
    if new is None:
        return None
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, graph.Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    old = as_tensor(old).array
    if new.array.dtype != old.dtype:
        types = f"was {graph.Tensor.typename(old)} got {graph.Tensor.typename(new.array)}"
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the type of value ({types})")
    if new.array.shape != old.shape:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value")
    return cotangent(new)


def hook_name(hook):
    return getattr(hook, "__name__", "<unknown>")


def seen(g, n):
    """What arrives at a node of n outputs, as the tuple of Tensors that a hook sees."""
    return tuple(as_tensor(g.get(i)) for i in range(n)) if type(g) is OutputCotangents else (as_tensor(g),)


def attach(visit, roots, wanted):
    """The visit of a sweep in a program that has hooks; None where there are none."""
    if not graph.hooked and not graph.hooked_leaves:
        return None
    waiting = edges_into_hooked(roots) if graph.hooked_leaves and wanted is None else {}
    held: dict = {}

    def visit_with_hooks(node, g, parents):
        for hook in node.hooks:
            g = hook(g)
        if node.pre_hooks or node.post_hooks:
            into = with_node_hooks(visit, node, g, parents)
        else:
            into = visit(node, g, parents)
        return withheld(parents, into, waiting, held) if waiting else into

    return visit_with_hooks


def with_node_hooks(visit, node, g, parents):
    """What the hooks of a node make of its cotangents."""
    g = run_pre_hooks(node, g)
    into = visit(node, g, parents)
    for hook in node.post_hooks:
        grads = tuple(map(as_tensor, into))
        new = hook(grads, seen(g, node.outputs))
        into = [*map(cotangent, grads)] if new is None else checked_all(hook, new, into)
    # what a hook returned may be in the program's hands: a leaf must not take it for its .grad
    return [x if x is None or type(p) is not AccumulateGrad else copy(x) for p, x in zip(parents, into)]


def withheld(parents, into, waiting, held):
    """Accumulate at once, as PyTorch does, what is complete in leaves with hooks: a program sees when they run."""
    from ..core.backward import accumulate

    into, done = list(into), []
    for i, p in enumerate(parents):
        if p in waiting:
            waiting[p] -= 1
            if into[i] is not None:
                held[p] = held[p] + into[i] if p in held else copy(into[i])
                into[i] = None
            if not waiting[p] and p in held:
                done.append(p)
    for p in done:
        accumulate(p, held.pop(p))
    return into


def edges_into_hooked(roots):
    """How many edges lead from the roots into each of the leaves that have hooks."""
    from ..core.backward import reachable

    count = dict.fromkeys([node for node in [r() for r in tuple(graph.hooked_leaves)] if node is not None], 0)
    for node in reachable(roots):
        for p in node.parents:
            if p in count:
                count[p] += 1
    return {p: n for p, n in count.items() if n}


def check_nan(node, into):
    """Raise PyTorch's error if a cotangent is nan."""
    for i, g in enumerate(into):
        x = g.array if isinstance(g, graph.Tensor) else g
        if x is not None and type(x) is not OutputCotangents and (x != x).any():
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
