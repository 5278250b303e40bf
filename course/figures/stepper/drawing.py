"""The picture of BackwardStepper: a grey arrow for the numbers on their way, an orange one for the slopes back."""

from collections.abc import Iterator, Mapping

from engine import viz
from engine.core.graph import Node
from engine.viz.dot import Drawing, box, chip, digraph
from engine.viz.recorded import Known, Saved

SLOPE = "#e8590c"
SMALL = 6  # elements of a tensor that is written out
CAPTION = ["Grey arrows: the numbers, on their way to the result.", "Orange arrows: the slopes, on their way back."]


def drawing(
    plan: viz.GraphDrawing,
    nodes: Mapping[int, Node],
    notes: Mapping[Node, str],
    back: Mapping[tuple[Node, int], str],
    begin: str,
    values: bool | None,
    direction: str,
) -> Drawing:
    """Draw the graph. `notes`: a line in a node's box; `back`: what a node passes to which of its inputs."""
    results = {item.number: known for known, item, _ in plan.results if item is not None}
    lines = []
    for i, k in enumerate(plan.constants):
        lines.append(f"  c{i} {box('constant', k.name or 'constant', *number_rows(k, values))}")
    if plan.left_out:
        lines.append(f"  more {box('more', viz.plural(plan.left_out, 'node') + ' not drawn')}")
    for item in reversed(plan.items):
        node, me = nodes[item.number], f"n{item.number}"
        name = item.out.name
        if item.is_leaf:
            rows = [*headed(name or "leaf", item.out, values), notes.get(node, "")]
            lines.append(f"  {me} {box('leaf', *rows, number=item.number)}")
            continue
        shown = number_rows(item.out, values) if item.number not in results else []
        made = " ".join(filter(None, [name, *shown])) if shown or item.number not in results else ""
        keeps = ", ".join(kept(s, node, values) for s in item.saved if s.kind)
        rows = [item.name, made, keeps and f"keeps {keeps}", "what it kept was freed" if item.freed else ""]
        rows += [viz.plural(item.hooks, "hook") if item.hooks else "", notes.get(node, "")]
        lines.append(f"  {me} {box('operation', *rows, number=item.number)}")
        lines += edges(item, node, me, back)
    for number, known in results.items():
        if any(item.number == number and item.is_leaf for item in plan.items):
            continue
        lines.append(f"  r0 {box('result', *headed(known.name or 'result', known, values))}")
        lines.append(f'  n{number} -> r0 [class="made n{number}"]')
        lines.append(f"  n{number} -> r0 [{returning('begin', begin)}]")
    dot = digraph(lines, CAPTION, direction, (0.3, 0.3), "0.14,0.07")
    return Drawing(viz.Graph(plan).text, dot.replace('point-size="9"', 'point-size="10"'))


def edges(item: viz.Item, node: Node, me: str, back: Mapping[tuple[Node, int], str]) -> Iterator[str]:
    """For each input an arrow to the operation, and one back from it."""
    for i, edge in enumerate(item.inputs):
        source = f"n{edge.source.number}" if edge.source else "more"
        weight = 1 if edge.source is not None and edge.source.is_leaf else 8
        label = "" if edge.output is None else f" label={chip([f'output {edge.output}'])}"
        yield f'  {source} -> {me} [class="made {me}-{i}" weight={weight}{label}]'
        if (node, i) in back:
            yield f"  {source} -> {me} [{returning(f'{me}-{i}', back[node, i])} weight={weight}]"
    for i in dict.fromkeys(s.constant for s in item.saved if s.constant is not None):
        yield f'  c{i} -> {me} [style=dashed class="made {me}"]'


def returning(name: str, text: str) -> str:
    """Return the attributes of an arrow against the data's direction, with what is said at it."""
    label = chip([], text)
    return f'dir=back class="back {name}" color="{SLOPE}" penwidth=1.6 arrowsize=0.8 label={label}'


def number_rows(known: Known, values: bool | None) -> list[str]:
    """Return the shape of a tensor, where it is none of a single number, and the numbers, where they are few."""
    shape = known.kind_in_full if values is False else known.kind
    shape = shape.removeprefix("scalar").strip()
    return [shape] * bool(shape) + [f"= {known.value}"] * bool(written_out(known, values))


def headed(name: str, known: Known, values: bool | None) -> list[str]:
    """Return a name with its number, or with the shape and the numbers below it."""
    rows = number_rows(known, values)
    return [f"{name} {rows[0]}"] if len(rows) == 1 and rows[0].startswith("= ") else [name, *rows]


def written_out(known: Known, values: bool | None) -> bool:
    if not known.value or values is False:
        return False
    size = 1
    for length in known.shape or ():
        size *= length
    return values is True or size <= SMALL


def kept(saved: Saved, node: Node, values: bool | None) -> str:
    """One thing that a node keeps: how it calls it, and which tensor that is."""
    what = saved.of
    if not what:
        arrays = {name: array for name, _, array, _ in viz.saved_values(node) or ()}
        array = arrays.get(saved.name)
        small = array is not None and values is not False and array.size <= SMALL
        what = viz.brief(array) if small else saved.kind
    return f"{saved.name} = {what}"
