"""The compiler's passes over a function: all steps in one picture, of which each pass changes a part."""

from typing import Any
from xml.etree import ElementTree

from course.figures.base.explorer import Explorer
from engine import viz
from engine.viz import stages as drawing

SVG = viz.SVG.join("{}")
GONE = {"fill": "#eeeeee", "stroke": "#777777", "stroke-dasharray": "4 3"}  # the box of a step that is no longer there
INK = "#222222"
NOTE = "A step keeps its place and its number through all passes."
WIDEST = 900  # of the picture on the page, in pixels


class PassExplorer(Explorer):
    """The steps of a compiled function (called once, or explained), with a slider over the compiler's passes.

    All passes share one picture, in which no box moves: what a pass takes away turns pale and says why, what is done in
    one pass over memory gets a frame.  ``part``: "forward", "backward", or None for both.
    """

    size = (7.0, 5.0)  # where there is no Graphviz: of a page with the steps as a text

    def __init__(self, function: Any, part: str | None = "forward"):
        self.entry, self.part = drawing.entry_of(function), part
        stages = list(self.entry.passes)
        self.settings = {"stage": (stages, stages[0], "after the pass")}
        self.stills = ({}, {"stage": stages[-1]})
        boxes, edges = drawing.union(self.entry)
        self.boxes = drawing.chosen(boxes, part)
        edges = {(a, b): at for (a, b), at in edges.items() if a in self.boxes and b in self.boxes}
        self.fates = {n: fate for n, b in self.boxes.items() if b.step and (fate := drawing.fate(self.entry, n))}
        self.svg = viz.Drawing("", drawing.stage_dot(self.boxes, edges, [NOTE])).svg

    def there(self, stage: str) -> dict[int | str, drawing.Box]:
        """Return the boxes after a pass."""
        return drawing.chosen(drawing.stage_boxes(self.entry, stage), self.part)

    def gone(self, stage: str) -> dict[int | str, tuple[str, str]]:
        """{number: (the pass that took it away, why)} of what is no longer there after a pass."""
        here = self.there(stage)
        return {n: fate for n, fate in self.fates.items() if n not in here}

    def words(self, *, stage: str) -> str:
        now = [f"{drawing.label(n)} ({why})" for n, (when, why) in self.gone(stage).items() if when == stage]
        here = self.there(stage)
        groups: dict[int, list[str]] = {}
        for n, b in here.items():
            if b.group is not None:
                groups.setdefault(b.group, []).append(drawing.label(n))
        told = [drawing.summary(self.entry, stage, here)]
        told += [f"Gone: {', '.join(now)}."] if now else []
        anew = [drawing.label(n) for n, b in self.boxes.items() if b.step and b.passes and b.passes[0] == stage]
        told += [f"Computed anew, and not kept: {', '.join(anew)}."] if anew and stage != "captured" else []
        told += [f"In one pass: {', '.join(numbers)}." for numbers in groups.values()]
        return " ".join(told)

    def image(self, **values: Any) -> bytes:
        """Return the picture after a pass as SVG; a PNG of the steps as a text where there is no Graphviz."""
        if self.svg is None:
            return super().image(**values)
        stage = (self.start() | values)["stage"]
        root, here, gone = ElementTree.fromstring(self.svg), self.there(stage), self.gone(stage)
        numbers = {drawing.dot_name(n): n for n in self.boxes}
        fused = any(b.group is not None for b in here.values())
        for group in root.iter(f"{SVG}g"):
            kind, *classes = group.get("class", "").split()
            if kind == "edge" and stage not in classes or kind == "cluster" and "sweep" in classes and not fused:
                group.set("visibility", "hidden")
            elif kind == "node" and (number := numbers.get(classes[-1])) in gone:
                turn_pale(group, gone[number][1])
            elif kind == "node" and number is not None and number not in here:  # a later pass makes it
                group.set("visibility", "hidden")
            elif kind == "node" and number is not None:
                title = next(t for t in group.iter(f"{SVG}text") if t.get("font-weight") == "bold")
                title.text = here[number].title
        root.find(f"{SVG}title").text = root.attrib["aria-label"] = self.text(stage=stage)  # type: ignore[union-attr]
        return ElementTree.tostring(root)

    def draw(self, axes: Any, *, stage: str) -> None:
        axes.set_axis_off()
        text = drawing.stage_text(self.entry, stage, self.there(stage))
        axes.text(0, 1, text, fontsize=7, family="monospace", va="top", transform=axes.transAxes)

    @property
    def width(self) -> int:
        if self.svg is None:
            return super().width
        inches = float(ElementTree.fromstring(self.svg).attrib["width"].removesuffix("pt")) / 72
        return min(WIDEST, int(96 * inches))


def turn_pale(group: ElementTree.Element, why: str) -> None:
    """Let the box of a step say, in place of its line, why it is no longer there."""
    *_, last = group.findall(f"{SVG}text")
    for part in group:
        part.attrib |= {"fill": INK} if part.tag == f"{SVG}text" else GONE
    outline = group.find(f"{SVG}polygon")
    if outline is not None:
        xs = [float(point.partition(",")[0]) for point in outline.attrib["points"].split()]
        last.attrib |= {"x": f"{(min(xs) + max(xs)) / 2:.2f}", "text-anchor": "middle"}
    last.text = why
