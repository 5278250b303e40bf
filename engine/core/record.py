"""Recording: how the result of an operation is joined to the graph.

An operation takes Tensors or plain arrays and returns the same kind.  A rule is built from Python operators and from
other operations, so the ordinary backward pass runs it on arrays, and ``create_graph=True`` runs the very same rule
recorded.
"""

from .graph import Output, mode
from .tensor import Tensor


def array_of(a):
    """Return the array of a Tensor; anything else as it is."""
    return a.array if isinstance(a, Tensor) else a


def record(Backward, out, inputs, saved=(), rules=None):
    """Make the result of an operation on ``inputs``, joined to the graph if one of them requires grad.

    ``out``: an array.  Plain arrays in, plain array out.  A saved array that no needed rule names is not kept.
    ``rules()``: those of this one node, if they are not those of its class.
    """
    parents = parents_of(inputs)
    return out if parents is None else attach(Backward, out, parents, saved, rules)


def attach(Backward, out, parents, saved, rules=None):
    """Do what ``record`` does for Tensors given by their nodes."""
    if not any(parents) or not mode.enabled:
        return Tensor(out)
    if None in parents:
        saved = keep_needed(Backward, parents, saved)
    node = Backward(parents, saved)
    if rules is not None:
        node.rules = rules()
    return Tensor(out, node)


def parents_of(inputs):
    """Return the node of each input, None where it has none; None altogether if no input is a Tensor."""
    parents, plain = [], True
    for a in inputs:
        if isinstance(a, Tensor):
            parents.append(a.node)
            plain = False
        else:
            parents.append(None)
    return None if plain else tuple(parents)


def keep_needed(Backward, parents, saved):
    """Drop saved arrays that only the rules of inputs which require no grad would use."""
    for k, users in Backward.needed_by:
        for i in users:
            if parents[i] is not None:
                break
        else:
            saved = (*saved[:k], None, *saved[k + 1 :])
    return saved


def record_outputs(Backward, outs, inputs, saved=()):
    """Make the results of an operation with several outputs: an ``Output`` node stands before the real one for each."""
    parents = parents_of(inputs)
    if parents is None:
        return tuple(outs)
    if any(parents) and mode.enabled:
        node = Backward(parents, keep_needed(Backward, parents, saved))
        node.outputs = len(outs)
        return tuple(Tensor(out, Output(node, i)) for i, out in enumerate(outs))
    return tuple(map(Tensor, outs))
