"""The graph of a result, drawn: ``graph(loss)`` gives DOT, SVG, PNG and a text for those who cannot see the picture.

Data flows along the arrows, from the leaves to the result; backward goes the other way.  Everything shown is read off
the nodes and off what they saved: nothing is computed, and recording keeps nothing for it.
"""

import inspect
import sys
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays.dispatch import scalar_types
from ..arrays.dtypes import of as dtype_of
from ..arrays.memory import storage
from ..autograd.hooks import RetainGrad
from ..core.graph import OUTPUT, AccumulateGrad, Output
from ..core.tensor import Tensor
from ..ops import elementwise
from .dot import Drawing, box, chip, digraph, plural

ENGINE_PREFIX = __package__.partition(".")[0] + "."
MAX_SHOWN = 6  # elements of a value that is written out; more are summarised
ELEMENTWISE_NAMES = {"x", "y", "out", "_", "_x", "_y"}  # what a rule names if its inputs and its output have one shape


def graph(result, *, names=None, values=False, gradients=False, saved=True, shapes=True, constants=True, max_nodes=40,
          direction="TB") -> "Graph":  # fmt: skip
    """The graph of a result, or of several: in a notebook a picture, printed a text."""
    results = list(result) if isinstance(result, list | tuple) else [result]
    for r in results:
        if not isinstance(r, Tensor):
            raise TypeError(f"graph() draws a Tensor or a list of them, but got {type(r).__name__}")
    if not results:
        raise ValueError("graph() needs at least one Tensor")
    if max_nodes < 1:
        raise ValueError(f"max_nodes must be at least 1, but got {max_nodes}")
    if direction not in ("TB", "LR", "BT", "RL"):
        raise ValueError(f"direction must be 'TB', 'LR', 'BT' or 'RL', but got {direction!r}")
    named = [*(names or {}).items(), *variables(sys._getframe(1))]
    plan = graph_drawing(results, named, max_nodes, values, gradients)
    return Graph(plan, saved=saved, shapes=shapes, constants=constants, direction=direction)


# ---- what there is to draw, as plain data


@dataclass
class Known:
    """The known facts about the tensor that a node made."""

    name: str = ""
    shape: tuple | None = None
    dtype: str = ""
    value: str = ""
    grad: str = ""

    # shape and dtype as they are shown, "" if they are not known; float32 goes without saying, if it may
    kind_in_full = property(
        lambda self: f"{shape_text(self.shape)} {self.dtype}" if self.shape is not None and self.dtype else ""
    )
    kind = property(lambda self: self.kind_in_full.removesuffix(" float32"))


@dataclass
class Saved:
    """One thing that a node keeps for backward: a tensor (``kind`` is its shape and dtype) or a number."""

    name: str
    kind: str = ""
    value: str = ""
    of: str = ""  # the variable that holds it
    constant: int | None = None  # its number, if it is an input which requires no gradient

    def __str__(self):
        return phrase(self.name, self.of and f"= {self.of}", self.kind, equals(self))


@dataclass
class Edge:
    """An input of an operation from another node; ``source`` is None if that node is not shown."""

    source: "Item | None"
    flow: Known
    output: int | None = None  # of an operation with several outputs
    note: str = ""  # a further line beside the edge


@dataclass
class Item:
    """A node of the graph as it is shown; ``number`` is its turn in backward."""

    number: int
    name: str
    out: Known
    is_leaf: bool
    inputs: list[Edge] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    freed: bool = False
    hooks: int = 0
    note: str = ""  # a further line in the box


@dataclass
class GraphDrawing:
    """The data for a picture and a text.  It holds no tensor and no node, so it keeps no graph alive."""

    results: list[tuple[Known, Item | None, str]]  # the node that made it, or why there is none
    items: list[Item]  # in the order of backward
    constants: list[Known]  # saved inputs that require no gradient
    operations: int
    leaves: int

    left_out = property(lambda self: self.operations + self.leaves - len(self.items))


def graph_drawing(results, named, max_nodes, values=False, gradients=False):
    """The plan of the graph of some tensors, of which those of ``named``, pairs of a name and a Tensor, have names."""
    roots = [real(r.node) for r in results if r.node is not None]
    nodes = list(dict.fromkeys(walk(roots)))  # the nearest first
    number = {node: i for i, node in enumerate(sorted(nodes, key=lambda n: n.time), 1)}
    drawn = set(nodes[:max_nodes])
    known = knowledge(results, named, drawn, values, gradients)
    items = {
        node: Item(number[node], node_title(node), known.setdefault(node, Known()), type(node) is AccumulateGrad)
        for node in sorted(drawn, key=lambda n: n.time)
    }
    leaves = sum(type(n) is AccumulateGrad for n in nodes)
    plan = GraphDrawing([], list(items.values()), [], len(nodes) - leaves, leaves)
    for r in results:
        if r.node is None:
            name = next((name for name, t in named if t is r), "")
            why = "it was made in inference mode" if r.inference else "it does not require grad"
            plan.results.append((array_label(r.array, name, values), None, why))
        else:
            plan.results.append((known[source(r.node)[0]], items[real(r.node)], ""))
    outside = {}  # id(saved array) -> its number among the constants
    for node, item in items.items():
        item.hooks = sum(type(h) is not RetainGrad for h in (*node.hooks, *node.pre_hooks, *node.post_hooks))
        for p in node.parents:
            if p is not None:
                tensor, output = source(p)
                item.inputs.append(Edge(items.get(real(p)), known.setdefault(tensor, Known()), output))
        item.freed = saved_values(node) is None
        for name, maker, value, is_input in saved_values(node) or ():
            entry = Saved(name)
            if type(value) in scalar_types:
                entry.value = brief(value)
            else:
                entry.kind = Known(shape=value.shape, dtype=dtype_of[value.dtype].name).kind
                tensor = maker and source(maker)[0]
                entry.of = known[tensor].name if tensor in known else array_name(value, named)
                if maker is None and is_input:
                    if id(value) not in outside:
                        outside[id(value)] = len(plan.constants)
                        plan.constants.append(array_label(value, entry.of, values))
                    entry.constant = outside[id(value)]
                if maker is None and values:  # the values of all others stand beside the edges
                    entry.value = brief(value)
            item.saved.append(entry)
    return plan


def saved_values(node):
    """[(name, the node that made it or None, array or number, whether it is an input)] kept; None once it was freed."""
    shown = node.grad_fn_view()
    if shown is not node:  # a Function that a user wrote
        return None if shown._call_record.saved is None else [
            (f"saved_tensors[{i}]", *((s[0].node, s[0].array) if s[1] is None else (node, s[0])), False)
            for i, s in enumerate(shown._call_record.saved) if s is not None
        ]  # fmt: skip
    return None if node.saved is None else [
        (node.called.get(name, name), node if k == OUTPUT else node.parents[k] if k >= 0 else None, s, k >= 0)
        for k, name, s in zip(node.saved_from, node.names, node.saved) if k is not None and s is not None
    ]  # fmt: skip


def node_title(node):
    """The name of a node without the namespace of PyTorch's C++."""
    return node.name().rpartition("::")[2]


def real(node):
    """The node that a cotangent is for: ``Output`` only stands before one."""
    return as_shown(node.parents[0] if type(node) is Output else node)


def as_shown(node):
    """Return PyTorch's nodes for a node that does several of its steps in one; any other node as it is."""
    return node.grad_fn_view() if hasattr(node, "unfold") else node


def source(node):
    """Return the node of a tensor and, if it has several outputs, the number of this one, else None."""
    if type(node) is not Output:
        return as_shown(node), None
    return (node, node.saved[0]) if node.parents[0].outputs > 1 else (node.parents[0], None)


def walk(roots):
    """The nodes of a graph, breadth first."""
    roots = dict.fromkeys(map(as_shown, roots))
    queue, seen = deque(roots), set(roots)
    while queue:
        node = queue.popleft()
        yield node
        for p in node.parents:
            if p is not None and (p := real(p)) not in seen:
                seen.add(p)
                queue.append(p)


def knowledge(results, named, drawn, values, gradients):
    """{node: Known} of the tensors that the drawn nodes made or take, as far as it can be had without computing."""
    known = {}
    edges = {source(p)[0] for node in drawn for p in node.parents if p is not None}

    def learn(node, shape=None, dtype="", array=None, name="", grad=None):
        node = node and source(node)[0]
        if node is None or (node not in edges and real(node) not in drawn):
            return
        k = known.setdefault(node, Known())
        if array is not None:
            shape, dtype = array.shape, dtype_of[array.dtype].name
            if values and not k.value:
                k.value = brief(array)
        k.shape = shape if k.shape is None and shape is not None else k.shape
        k.dtype, k.name = k.dtype or dtype, k.name or name
        if gradients and grad is not None:
            k.grad = brief(grad.array)

    retained = (h.tensor() for node in drawn for h in node.hooks if type(h) is RetainGrad)
    found = [(t.node, name, t) for name, t in (*named, *(("", t) for t in (*results, *retained) if t is not None))]
    found += [(node, "", node.variable) for node in drawn if type(node) is AccumulateGrad]
    for node, name, t in found:
        if t is not None:
            learn(node, array=t.array, name=name, grad=t._grad)
    for p in {p for node in drawn for p in node.parents if type(p) is Output}:
        made = p.parents[0].grad_fn_view()
        if made is not p.parents[0] and (r := made._call_record.results[p.saved[0]]):  # a Function remembers these
            learn(p, r[0], dtype_of[r[1]].name)
    for node in drawn:
        for k, s in zip(node.saved_from, node.saved or ()):
            if k is not None and k >= OUTPUT and isinstance(getattr(s, "shape", None), tuple):
                learn(node if k == OUTPUT else node.parents[k], array=s)
        for parent, rule in zip(node.parents, type(node).rules):
            for name, s in zip(rule_parameters(rule), node.saved or ()):
                if name.partition("_")[0] == "shape" and type(s) is tuple:  # it means that of its input
                    learn(parent, s)
    for newest_first in (False, True, False):
        for node in sorted(drawn, key=lambda n: n.time, reverse=not newest_first):
            pass_on(node, known, learn)
    return known


def rule_parameters(rule):
    """Return a rule's names for what its node saved."""
    return rule.__code__.co_varnames[1 : rule.__code__.co_argcount]


def pass_on(node, known, learn):
    """Conclude from what is known of an operation's output and inputs to the others of them."""
    if not node.rules or not node.rules[0].__module__.startswith(ENGINE_PREFIX):
        return  # a leaf, or a user's Function: nothing is known of those
    here = (node, *(p and source(p)[0] for p in node.parents))
    dtypes = [known[n].dtype for n in here if n in known and known[n].dtype]
    if node.rules is type(node).rules:
        if dtypes and type(node).__name__ != "ToCopyBackward0":  # no other changes the dtype of what it differentiates
            for n in here:
                learn(n, dtype=dtypes[0])
        if node.rules[0].__module__ == elementwise.__name__ and all(
            ELEMENTWISE_NAMES.issuperset(rule_parameters(r)) for r in node.rules
        ):
            shapes = [known[n].shape for n in here if n in known and known[n].shape is not None]
            for n in here if shapes else ():
                learn(n, shapes[0])
    # Rules of its own undo a broadcast or a cast (elementwise.undo_broadcast, undo_cast), and remember from what.
    elif any(rule.__qualname__.startswith("undo_") for rule in node.rules):
        before = [remembered(rule) for rule in node.rules]
        shapes = [b.get("shape", ()) for b in before]
        common = [dtype_of[b["common"]].name for b in before if "common" in b]
        learn(node, np.broadcast_shapes(*shapes), (common or dtypes or [""])[0])
        for n, shape, b in zip(node.parents, shapes, before):
            learn(n, shape, dtype_of[b["dtype"]].name if "dtype" in b else known[node].dtype)


def remembered(rule):
    """Return the shape and dtype held by a rule that undoes a broadcast or a cast; one may enclose the other."""
    held = inspect.getclosurevars(rule).nonlocals
    inner = held.get("rule")
    return (remembered(inner) if inner is not None and inner.__qualname__.startswith("undo_") else {}) | held


def variables(frame):
    """The tensors that the variables of a frame hold, with their names: themselves, in lists and dicts, parameters."""
    found = []
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if name.startswith("_") or name in ("In", "Out") or not name.isidentifier():
            continue
        if isinstance(value, Tensor):
            found.append((name, value))
        elif type(value) in (list, tuple, dict) and len(value) <= 100:
            pairs = value.items() if type(value) is dict else enumerate(value)
            found += [(f"{name}[{key!r}]", v) for key, v in pairs if isinstance(v, Tensor)]
        elif callable(getattr(type(value), "named_parameters", None)):
            found += [(f"{name}.{key}", v) for key, v in value.named_parameters()]
    return sorted(found, key=lambda pair: "[" in pair[0] or "." in pair[0])  # plain names before others


def array_label(x, name, values):
    """Return the known facts about an array that no node made."""
    return Known(name, x.shape, dtype_of[x.dtype].name, brief(x) if values else "")


def array_name(x, named):
    """The name of the variable whose memory an array is or views."""
    for name, t in sorted(named, key=lambda pair: pair[1].node is not None):  # what was detached rather than its origin
        if t.array is x:
            return name
    for name, t in named:
        if type(t.array) is type(x) and isinstance(x, np.ndarray) and storage(t.array) is storage(x):
            return name if t.array.shape == x.shape else f"view of {name}"
    return ""


def shape_text(shape):
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})" if len(shape) else "scalar"


def brief(x):
    """A value in a few characters: a float as tensors print it; the elements, or where there are many their range."""
    if type(x) is float:
        return f"{x:.4f}".rstrip("0").rstrip(".") if x == 0 or 1e-3 <= abs(x) < 1e6 else f"{x:.4g}"
    if type(x) in scalar_types:
        return str(x)
    if isinstance(x, list):
        return f"[{', '.join(map(brief, x))}]"
    if x.size == 0:
        return "empty"
    if x.size <= MAX_SHOWN:
        return brief(x.tolist())
    numbers = x[x == x]
    nan = f", {x.size - numbers.size} nan" if numbers.size < x.size else ""
    if numbers.size == 0:
        return "all nan"
    low, high = brief(numbers.min().item()), brief(numbers.max().item())
    return (f"all {low}" if low == high else f"{low} .. {high}") + nan


# ---- the text and the picture


class Graph(Drawing):
    """A drawn graph, and the ``plan`` that it is made from."""

    def __init__(self, plan, *, saved=True, shapes=True, constants=True, direction="TB"):
        super().__init__(graph_text(plan, saved, shapes), graph_dot(plan, saved, shapes, constants, direction))
        self.plan = plan


def phrase(*parts):
    return " ".join(filter(None, parts))


def graph_text(plan, saved, shapes):
    """The graph as a numbered list in the order of backward."""
    of = ", ".join(k.name or "a result" for k, _, _ in plan.results)
    counted = f"{plural(plan.operations, 'operation')}, {plural(plan.leaves, 'leaf')}. Backward goes down this list."
    lines = [f"Graph of {of}: {counted if plan.items else 'no operations are recorded.'}"]
    for k, item, why in plan.results:
        if item is None:
            lines.append(f"{tensor_words(k, shapes) or 'a tensor'}: no graph; {why}")
        elif not item.is_leaf:
            lines.append(f"{tensor_words(k, shapes) or 'the result'} was made by {item.number}")
    for item in plan.items:
        lines.append(f"{item.number}. {item.name}: {'; '.join(filter(None, node_text(item, saved, shapes)))}")
    if plan.left_out:
        of = plan.operations + plan.leaves
        lines.append(f"{plural(plan.left_out, 'node')} of {of} not shown: those farthest from the result")
    return "\n".join(lines)


def equals(k):
    return k.value and f"= {k.value}"


def tensor_words(k, shapes):
    return phrase(k.name, k.kind if shapes else "", equals(k))


def node_text(item, saved, shapes):
    """Yield the parts of a node's line in the text."""
    made = tensor_words(item.out, shapes)
    yield phrase("leaf", made) if item.is_leaf else made and f"makes {made}"
    yield item.out.grad and f"grad {item.out.grad}"
    if saved:
        yield from (f"keeps {s}" for s in item.saved)
        yield "what it kept was freed" if item.freed else ""
    yield item.hooks and plural(item.hooks, "hook")
    sources = [
        phrase(str(e.source.number) if e.source else "not shown", "" if e.output is None else f"output {e.output}")
        for e in item.inputs
    ]
    yield sources and "next " + ", ".join(sources)


def graph_dot(plan, saved, shapes, constants, direction):
    """The graph as DOT text; nodes are called n and their turn in backward."""
    lines = []
    for i, k in enumerate(plan.constants if constants and saved else ()):
        rows = k.name or "constant", shapes and k.kind, equals(k), "needs no gradient"
        lines.append(f"  c{i} {box('constant', *rows)}")
    if plan.left_out:
        lines.append(f"  more {box('more', plural(plan.left_out, 'node') + ' not drawn')}")
    for item in reversed(plan.items):
        lines += item_dot(item, saved, shapes, constants)
    for i, (k, item, why) in enumerate(plan.results):
        if item is None:
            rows = k.name or "a tensor", k.kind_in_full, equals(k), "no graph: " + why
            lines.append(f"  r{i} {box('constant', *rows)}")
        elif not item.is_leaf:
            lines.append(f"  r{i} {box('result', k.name or 'result', shapes and k.kind_in_full, equals(k))}")
            lines.append(f"  n{item.number} -> r{i}")
    return digraph(lines, caption(plan), direction, (0.3, 0.35), "0.16,0.08")


def item_dot(item, saved, shapes, constants):
    """The lines of DOT for a node and for what it takes."""
    k, me = item.out, f"n{item.number}"
    grad = k.grad and f"grad {k.grad}"
    if item.is_leaf:
        rows = [k.name or "leaf", shapes and k.kind_in_full, equals(k), grad, item.name, item.note]
        yield f"  {me} {box('leaf', *rows, number=item.number)}"
        return
    keeps = [replace(s, value="") if s.constant is not None and constants else s for s in item.saved] if saved else []
    rows = [item.name, *(f"keeps {s}" for s in keeps), item.freed and saved and "what it kept was freed"]
    rows += [item.hooks and plural(item.hooks, "hook"), item.note]
    yield f"  {me} {box('operation', *rows, number=item.number)}"
    for i, edge in enumerate(item.inputs):
        flow, of_leaf = edge.flow, edge.source is not None and edge.source.is_leaf
        rows = [phrase("" if edge.output is None else f"output {edge.output}", "" if of_leaf else flow.name,
                      flow.kind if shapes else "")]  # fmt: skip
        rows += [] if of_leaf else [equals(flow), flow.grad and f"grad {flow.grad}"]
        weight = 1 if of_leaf else 8  # chains of operations are drawn as straight lines
        label = f" label={chip(rows, edge.note)}" if any(rows) or edge.note else ""
        source = f"n{edge.source.number}" if edge.source else "more"
        yield f'  {source} -> {me} [class="{me}-{i}" weight={weight}{label}]'
    for i in dict.fromkeys(s.constant for s in keeps if s.constant is not None and constants):
        yield f"  c{i} -> {me} [style=dashed]"


def caption(plan):
    if not plan.items:
        return ["Nothing was recorded."]
    if not plan.operations:
        return ["A leaf: no operation made it, and its gradient will be added to its .grad."]
    rows = ["Data flows along the arrows, backward() against them,", "in the order of the small numbers."]
    if plan.left_out:
        rows.append(f"Drawn: the {len(plan.items)} nodes nearest to the result, of {plan.operations + plan.leaves}.")
    return rows
