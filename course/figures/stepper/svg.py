"""A drawing made ready to be shown step by step: which of its parts is now, done, or still ahead."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
HERE = Path(__file__).parent
NOW, DONE, AHEAD = "now", "done", "ahead"  # how a part of the picture stands to the step that is shown
NEW, UNMADE = "new", "unmade"  # the same, while the graph is written


def prepared(svg: str, recording: Any) -> str:
    """Return the picture with the turn of each part written to it, for ``picture`` and for the widget to go by."""
    root = ElementTree.fromstring(svg)
    root.set("class", "undertorch-stepper")
    style = ElementTree.Element(SVG + "style")
    style.text = (HERE / "style.css").read_text(encoding="utf-8")
    root.insert(2, style)
    nodes = {number: node for node, number in recording.number.items()}
    made, first = getattr(recording, "made", {}), getattr(recording, "first", 0)
    last = first + len(recording.steps)
    for group in root.iter(SVG + "g"):
        kind = group.get("class", "")
        if kind == "node result":
            group.set("data-turn", str(first))
            if first:
                group.set("data-made", str(first - 1))
        if kind == "edge back begin":
            group.set("data-turn", str(first))
        match = re.fullmatch(r"(?:node \w+ |edge (made |back )?)n(\d+)(?:-(\d+))?", kind)
        if match is None:
            continue
        node, texts = nodes[int(match[2])], group.findall(f".//{SVG}text")
        if node in made and match[1] != "back ":
            group.set("data-made", str(made[node]))
        if match[1] != "made ":
            group.set("data-turn", str(recording.turn.get(node, last)))
        if match[1]:
            continue
        if match[3] is not None:  # one arrow for both directions: what is passed on stands at it
            if (node, int(match[3])) in recording.notes:
                for part in (texts[-1], grounds(group)[-1]):
                    part.set("class", "note")
            continue
        if node in recording.frees:
            group.set("class", group.get("class", "") + " frees")
        for text in texts:
            if (text.text or "").startswith("keeps "):
                text.set("class", "kept")
        if node in recording.history:
            centre(texts[-1], group)
            texts[-1].set("class", "grad")
            texts[-1].set("data-texts", "\n".join(f"{k} {text}" for k, text in recording.history[node]))
    return ElementTree.tostring(root, encoding="unicode")


def grounds(group: ElementTree.Element) -> list[ElementTree.Element]:
    """Return the shapes on which a group's labels lie."""
    return [e for e in group.iter() if e.tag in (SVG + "path", SVG + "polygon") and e.get("fill", "none") != "none"]


def centre(text: ElementTree.Element, group: ElementTree.Element) -> None:
    """Let a text stay in the middle of its box when it changes."""
    outline = next((e for tag in ("path", "polygon") if (e := group.find(SVG + tag)) is not None), None)
    if outline is not None:
        xs = [float(x) for x in re.findall(r"(-?[\d.]+),-?[\d.]+", outline.get("d") or outline.get("points") or "")]
        text.set("x", f"{(min(xs) + max(xs)) / 2:.2f}")
        text.set("text-anchor", "middle")


def text_at(data: str, turn: int) -> str:
    """Return the one of the texts ("step text", a line each) that holds at a step."""
    lines = [line.partition(" ") for line in data.splitlines()]
    return [text for k, _, text in lines if int(k) <= turn][-1]
