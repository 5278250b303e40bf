"""Writes docs/stepper.svg, the README's moving picture: the figure of lesson 05, a step every two seconds.

    python docs/moving.py

Each frame is what the figure draws; CSS alone moves it, so that it moves in an <img>, too. Who has asked their system
for less motion sees the last frame.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

DOCS = Path(__file__).parent
PICTURE = DOCS / "stepper.svg"
SECONDS = 2
CODE = "c = a * b\nd = c + a"
SVG = "{http://www.w3.org/2000/svg}"
MARGIN, LINE = 16, 24


def frames():
    """(the figure, [SVG of each of its steps])"""
    sys.path.insert(0, str(DOCS.parent))
    import engine  # noqa: PLC0415  to say what this is needs none of it
    from course.figures.stepper.figure import BackwardStepper  # noqa: PLC0415

    a, b = (engine.tensor(value, requires_grad=True) for value in (2.0, 3.0))
    stepper = BackwardStepper(CODE, names={"a": a, "b": b}, predict=False)
    return stepper, [stepper.picture(k) for k in range(len(stepper))]


def words(stepper):
    """What the picture says, for who does not see it."""
    return " ".join(["The graph of c = a * b and d = c + a, step by step.", *(step.sentence for step in stepper.steps)])


def moving(stepper, pictures):
    """One SVG in which the pictures follow each other."""
    ElementTree.register_namespace("", SVG[1:-1])
    parts = [ElementTree.fromstring(picture) for picture in pictures]
    width, height = (float(parts[0].get(name).removesuffix("pt")) for name in ("width", "height"))
    wide, high = width + 2 * MARGIN, height + 2 * LINE + 2 * MARGIN
    style = parts[0].find(f"{SVG}style").text
    count = len(parts)
    rules = [
        f".frame {{ visibility: hidden; animation: turn {count * SECONDS}s steps(1) infinite }}",
        f"@keyframes turn {{ 0% {{ visibility: visible }} {100 / count:.3f}% {{ visibility: hidden }} }}",
        *(f"#step{k} {{ animation-delay: {k * SECONDS}s }}" for k in range(count)),
        "text.told { font: 14px sans-serif; fill: #222222 } text.code { font: 14px monospace; fill: #222222 }",
        "@media (prefers-reduced-motion: reduce) { .frame { animation: none }"
        f" #step{count - 1} {{ visibility: visible }} }}",
    ]
    root = ElementTree.Element(f"{SVG}svg", viewBox=f"0 0 {wide:g} {high:g}", role="img", width=f"{1.4 * wide:g}")
    root.set("class", "undertorch-stepper")
    ElementTree.SubElement(root, f"{SVG}title").text = words(stepper)
    ElementTree.SubElement(root, f"{SVG}style").text = "\n".join([style, *rules])
    ElementTree.SubElement(root, f"{SVG}rect", width="100%", height="100%", fill="#ffffff")
    for k, part in enumerate(parts):
        frame = ElementTree.SubElement(root, f"{SVG}g", {"class": "frame", "id": f"step{k}"})
        told = [(CODE.replace("\n", "; "), "code"), (stepper.steps[k].title, "told")]
        for line, (text, kind) in enumerate(told, start=1):
            place = {"class": kind, "x": f"{MARGIN}", "y": f"{line * LINE}"}
            ElementTree.SubElement(frame, f"{SVG}text", place).text = text
        for name in ("style", "title", "desc"):
            for found in part.findall(f"{SVG}{name}"):
                part.remove(found)
        for name in ("role", "aria-label"):
            part.attrib.pop(name, None)
        for name, value in (("x", MARGIN), ("y", 2 * LINE + MARGIN), ("width", width), ("height", height)):
            part.set(name, f"{value:g}")
        frame.append(part)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


if __name__ == "__main__":
    PICTURE.write_text(moving(*frames()), encoding="utf-8")
