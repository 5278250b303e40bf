"""Nodes that go in one step where PyTorch shows several: half the time of a linear layer's backward pass.

Such a node is one like any other.  To who looks at it stand for it those that PyTorch shows.
"""

from weakref import ref

from ..arrays.threads import new_lock
from ..core import backward
from ..core.graph import Node, clock, mode
from ..core.record import keep_needed
from ..core.tensor import Tensor
from ..quick import written_out

unfolding = new_lock()  # two threads that look at a node must see the same ones


def one_step_class(Class, unfold, *rules):
    """``Class``, for a node that goes in one step where PyTorch shows several: it is the last of those.

    It is a node like any other.  To who looks at it (``grad_fn_view``) stands for it what
    ``unfold(parents, saved, *facts)`` gives, the (parents, saved) of a ``Class``; from then on it goes by those, so
    that their hooks run.
    """

    def init(self, parents, saved, *facts):
        self.parents, self.saved, self.facts = parents, saved, facts
        self.time = next(clock)

    def grad_fn_view(self):
        with unfolding:
            if self.seen is None:
                parents, saved = unfold(self.parents, self.saved, *self.facts)
                stand_in = Class.__new__(Class)
                vars(stand_in).update(parents=parents, saved=saved, time=self.time, call=vars(self).get("call"))
                stand_in.stands_for = ref(self)
                for p in parents:
                    if p is not None and p.time < self.time:  # made now, but as if it had been made before this one
                        p.time, p.call = self.time + 0.5, None
                self.seen = stand_in
        return self.seen

    own = written_out(rules)

    def vjp(self, g, saved, parents):
        if self.seen is None:
            return own(self, g, saved, parents)
        return through(self.seen, g, parents)  # a program has seen the nodes, or the pass is recorded

    def linked(self, saved):
        return grad_fn_view(self).linked(self.seen.saved)

    facts = {"unfold": staticmethod(unfold), "plain": Class, "rules": rules, "seen": None, "__module__": "builtins"}
    methods = {"__init__": init, "grad_fn_view": grad_fn_view, "vjp": vjp, "linked": linked}
    return type(Class.__name__, (Class,), facts | methods)


def through(seen, g, ends):
    """The cotangents of the ends, by the nodes that stand between them and ``seen``."""
    visit = backward.chain_rule_with(True, mode.enabled)
    visit, found, todo = backward.current_visit(visit, {}, ()), dict.fromkeys(ends), [(seen, g)]
    while todo:
        node, g = todo.pop()
        for p, gi in zip(node.parents, visit(node, g, node.parents)):
            if gi is not None and p in found:
                found[p] = gi if found[p] is None else found[p] + gi
            elif gi is not None:
                todo.append((p, gi))
    return [p and found.pop(p, None) for p in ends]


def record_one_step(Class, out, ends, kept, *facts):
    """``attach``, with one node for several."""
    if not any(ends) or not mode.enabled:
        return Tensor(out)
    if None in ends:
        kept = keep_needed(Class, ends, kept)
    if Node.looks:  # they see every node as it is made
        return Tensor(out, Class.plain(*Class.unfold(ends, kept, *facts)))
    return Tensor(out, Class(ends, kept, *facts))
