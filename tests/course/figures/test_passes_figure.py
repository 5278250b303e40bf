"""The figure of the compiler's passes: its words against the steps, its picture against its words."""

import itertools
import re
import shutil
from xml.etree import ElementTree

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

import engine
from course.figures import PassExplorer
from engine import viz
from engine.compiler import explain

SVG = "{http://www.w3.org/2000/svg}"
STAGES = ["captured", "joined", "needed", "fused"]


def example(x):
    x.exp()
    return (x * x).tanh() + x * x


def figure(part="forward"):
    return PassExplorer(explain(example)(engine.ones(400, 400, requires_grad=True)), part)


needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="the picture needs Graphviz")


def test_the_words_say_what_each_pass_did():
    f = figure()
    assert [f.text(stage=stage) for stage in STAGES] == [
        "example, captured (all that was written down): 5 steps forward.",
        "example, joined (what is the same is done once): 4 steps forward. Gone: 4 (the same as 2).",
        "example, needed (what leads to no result is left out): 3 steps forward. Gone: 1 (not needed).",
        "example, fused (steps on the same elements are done together): 3 steps forward, 3 of them in 1 pass "
        "over memory. In one pass: 2, 3, 5.",
    ]


def shown(svg, kind):
    """{class: group} of the groups of a kind that can be seen."""
    groups = [g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if g.get("class", "").startswith(f"{kind} ")]
    return {tuple(g.get("class").split()): g for g in groups if g.get("visibility") != "hidden"}


def texts(group):
    return [t.text for t in group.iter(f"{SVG}text")]


@needs_graphviz
@over("stage, part", itertools.product(STAGES, ["forward", "backward", None]))
def test_no_box_moves_and_what_is_gone_says_why(part, stage):
    f = figure(part)
    nodes, first = shown(f.image(stage=stage), "node"), shown(f.image(), "node")
    assert nodes.keys() == first.keys()
    places = [[g.find(f"{SVG}text").get("x") for g in each.values()] for each in (nodes, first)]
    assert places[0] == places[1]
    gone = f.gone(stage)
    pale = {c[-1]: texts(g)[-1] for c, g in nodes.items() if any(e.get("fill") == "#eeeeee" for e in g)}
    assert pale == {f"n{n}": why for n, (_, why) in gone.items()}
    boxes = f.there(stage)
    titles = {c[-1]: texts(g)[1] for c, g in nodes.items() if c[-1] not in pale and "result" not in c}
    assert titles == {f"n{n}": b.title for n, b in boxes.items() if type(n) is int}


@needs_graphviz
@over("stage", STAGES)
def test_the_arrows_are_those_of_the_drawing_of_this_pass(stage):
    explanation = explain(example)(engine.ones(400, 400, requires_grad=True))
    image = PassExplorer(explanation, None).image(stage=stage)
    groups = [g for g in ElementTree.fromstring(image).iter(f"{SVG}g") if g.get("class", "").startswith("edge ")]
    arrows = [g for g in groups if g.get("visibility") != "hidden"]
    assert len(arrows) == viz.compiled(explanation, stage).dot.count(" -> ") <= len(groups)
    assert any(c[1] == "sweep" for c in shown(image, "cluster")) == (stage == "fused")


def test_a_number_that_is_repeated_to_the_shape_of_an_array_is_taken_as_it_is():
    explanation = explain(lambda x: (x.tanh() * x).mean())(engine.ones(400, 400, requires_grad=True))
    f = PassExplorer(explanation, "backward")
    gone = {f.boxes[n].title: why for n, (_, why) in f.gone("fused").items()}
    found = [re.fullmatch(r"broadcast_to\(\[(\d+)\], .*\)", title) for title in gone]
    assert [why for match, why in zip(found, gone.values(), strict=True) if match] == [f"taken as {found[0][1]}"]


@needs_graphviz
def test_what_a_pass_adds_is_not_seen_before():
    x, y = (engine.rand(400, 400, requires_grad=True) for _ in range(2))
    f = PassExplorer(explain(lambda x, y: ((x * 0.5).tanh() * (y + 1)).exp())(x, y), "backward")
    seen = [{c[-1] for c in shown(f.image(stage=stage), "node")} for stage in STAGES]
    added = [n for n, b in f.boxes.items() if b.step and f"n{n}" in seen[2] - seen[1]]
    assert len(added) == 1 and f"anew, and not kept: {added[0]}." in f.text(stage="needed")
    assert "anew" not in f.text(stage="joined") + f.text(stage="fused")


def test_a_reader_without_a_kernel_sees_before_and_after():
    f = figure()
    assert f.static()["text/plain"].splitlines() == [f.text(stage="captured"), f.text(stage="fused")]
    assert f.static()["text/html"].count("<img ") == 2


def test_without_graphviz_the_picture_is_the_text(monkeypatch):
    monkeypatch.setattr(viz.dot, "render", lambda dot, kind: None)
    f = figure()
    assert all(f.image(stage=stage).startswith(b"\x89PNG") for stage in STAGES)
    assert f.static()["text/html"].count("<img ") == 2 and f.width > 0


@needs_graphviz
def test_the_picture_is_named_by_its_words():
    f = figure()
    for stage in STAGES:
        root = ElementTree.fromstring(f.image(stage=stage))
        assert root.get("aria-label") == root.find(f"{SVG}title").text == f.text(stage=stage)
