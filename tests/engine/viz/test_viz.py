"""The graph drawn: what the text and the DOT say of a graph, and what every picture must have."""

import base64
import functools
import gc
import os
import re
import sys
import types
import weakref
from xml.etree import ElementTree

import pytest

import engine
from course.kernel.outputs import PICTURE
from engine import viz
from engine.autograd.hooks import RemovableHandle
from engine.core import graph as recorded
from engine.core.record import record_outputs

SVG = "{http://www.w3.org/2000/svg}"
needs_graphviz = pytest.mark.skipif(viz.render("digraph {}", "svg") is None, reason="there is no Graphviz here")


@pytest.fixture
def example():
    """Two leaves, a constant, a broadcast, and one result that is used twice."""
    w = engine.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = engine.tensor([0.5], requires_grad=True)
    x = engine.ones(2, 3)
    z = w * x + b
    return {"w": w, "b": b, "x": x, "z": z, "loss": z.tanh() * z}


def draw(example, **options):
    return viz.graph(example["loss"], names=example, **options)


def chain(n):
    x = engine.tensor(1.0, requires_grad=True)
    for _ in range(n):
        x = x * 1.0
    return x


def edges(dot):
    """{(from, to): how often} of the data's arrows."""
    found = re.findall(r"^  (\w+) -> (\w+)", dot, re.MULTILINE)
    return {edge: found.count(edge) for edge in found}


def drawn(dot):
    """The DOT names of the nodes."""
    return re.findall(r"^  (\w+) \[(?:shape|fill)", dot, re.MULTILINE)


# What is said


def test_the_text_lists_the_nodes_in_the_order_of_backward(example):
    assert draw(example).text == (
        "Graph of loss: 4 operations, 2 leaves. Backward goes down this list.\n"
        "loss (2, 3) was made by 1\n"
        "1. MulBackward0: makes loss (2, 3); keeps self (2, 3); keeps other = z (2, 3); next 2, 3\n"
        "2. TanhBackward0: makes (2, 3); keeps result (2, 3); next 3\n"
        "3. AddBackward0: makes z (2, 3); next 4, 5\n"
        "4. MulBackward0: makes (2, 3); keeps other = x (2, 3); next 6\n"
        "5. AccumulateGrad: leaf b (1,)\n"
        "6. AccumulateGrad: leaf w (3,)"
    )


def test_the_numbers_are_the_turns_of_the_nodes_in_backward(example):
    names = re.findall(r"^\d+\. (\w+):", draw(example).text, re.MULTILINE)
    visited, loss = [], example["loss"]
    for node in (n for n in viz.walk([loss.grad_fn]) if n.parents):
        RemovableHandle(node, "hooks", functools.partial(noting, visited, type(node).__name__))
    loss.backward(engine.ones(2, 3))
    assert names == [*visited, "AccumulateGrad", "AccumulateGrad"] and len(visited) == 4  # .grad is written at the end


def noting(visited, name, g):
    visited.append(name)
    return g


def test_the_arrows_are_those_of_next_functions_and_of_the_saved_constants(example):
    loss = example["loss"]
    number = {node: i for i, node in enumerate(sorted(viz.walk([loss.grad_fn]), key=lambda n: n.time), 1)}
    expected = [(f"n{number[p]}", f"n{number[n]}") for n in number for p, _ in n.next_functions if p is not None]
    expected = {edge: expected.count(edge) for edge in expected}
    assert edges(draw(example, constants=False).dot) == expected | {("n1", "r0"): 1}
    assert edges(draw(example).dot) == expected | {("n1", "r0"): 1, ("c0", "n4"): 1}


def test_a_tensor_used_twice_by_one_operation_has_two_arrows():
    w = engine.tensor(2.0, requires_grad=True)
    assert edges(viz.graph(w * w).dot)["n2", "n1"] == 2


def test_dot_is_the_same_for_the_same_program(example):
    def program():
        w = engine.tensor([1.0, 2.0], requires_grad=True)
        return viz.graph((w * 2).exp() + w)

    assert program().dot == program().dot


def test_variables_of_the_caller_name_the_tensors():
    def caller():
        weight = engine.tensor([1.0], requires_grad=True)
        params = [engine.tensor([1.0], requires_grad=True)]
        hidden = weight * params[0]
        return viz.graph(hidden * 2).text

    text = caller()
    assert "leaf weight" in text and "leaf params[0]" in text and "makes hidden" in text


def test_names_given_come_before_variables():
    w = engine.tensor(1.0, requires_grad=True)
    assert "leaf weights" in viz.graph(w * 2, names={"weights": w}).text


def test_what_ipython_keeps_under_names_of_its_own_is_no_name():
    code = "Out[1] = _1 = _ = y = w * 2; drawn = graph(y * 1)"
    w = engine.tensor(1.0, requires_grad=True)
    space = {"graph": viz.graph, "w": w, "Out": {}}
    exec(code, space)
    assert "2. MulBackward0: makes y" in space["drawn"].text
    del space["y"]
    exec("drawn = graph(_ * 1)", space)
    assert "2. MulBackward0: makes scalar" in space["drawn"].text


def test_shapes_are_known_through_broadcasts_and_casts_that_saved_nothing():
    a = engine.ones(4, 1, requires_grad=True)
    b = engine.ones(3, dtype=engine.float64, requires_grad=True)
    text = viz.graph(((a + 1) + (b - 1)) + 2.0).text
    assert "SubBackward0: makes (3,) float64" in text
    assert text.count("AddBackward0: makes (4, 3)") == 2 and "AddBackward0: makes (4, 1)" in text


MANY = {
    "matmul": lambda x, y: (x @ y.T).relu() @ y, "views": lambda x, y: x.t().reshape(-1).view(2, 3).unsqueeze(1) * y,
    "reductions": lambda x, y: (x - x.mean(1, keepdim=True)) / y.std(0) + x.sum(1).max() - y.amax(0),
    "indexing": lambda x, y: x[:, 1:] * y[0, :2] + engine.cat([x, y])[3, 0] + x.unbind(1)[2].sum(),
    "casts": lambda x, y: (x.double() * y).exp() + x, "where": lambda x, y: engine.where(x > y, x, y.sum()) ** 2,
    "softmax": lambda x, y: engine.nn.functional.cross_entropy(x, y.softmax(1)) + x.log_softmax(0)[0, 0],
    "norms": lambda x, y: engine.nn.functional.batch_norm(x, x[0].detach(), x[1].detach(), y[0], y[1]),
    "layer norm": lambda x, y: engine.nn.functional.layer_norm(x, (3,), y[0], y[1]),
}  # fmt: skip


@pytest.mark.parametrize("program", MANY)
def test_every_shape_that_is_shown_is_that_of_the_gradient_which_comes_there(program):
    x = (engine.arange(6.0).reshape(2, 3) / 4).requires_grad_()
    y = (engine.arange(6.0).reshape(2, 3) + 1).requires_grad_()
    result, seen = MANY[program](x, y), {}
    known = viz.graph_drawing([result], [], 100).items
    nodes = sorted(viz.walk([result.grad_fn]), key=lambda n: n.time)
    for number, node in enumerate(nodes, 1):
        RemovableHandle(node, "hooks", lambda g, number=number: seen.setdefault(number, g))
    result.backward(engine.ones_like(result))
    shown = {item.number: (item.out.shape, item.out.dtype) for item in known if item.out.kind}
    gradients = {number: (g.shape, str(g.dtype)) for number, g in seen.items() if hasattr(g, "dtype")}
    assert {number: shown[number] for number in shown if number in gradients} == {
        number: gradients[number] for number in shown if number in gradients
    }
    assert len(shown) > len(gradients) / 2


def test_a_saved_view_of_a_variable_is_said_to_be_one():
    w, x = engine.ones(4, requires_grad=True), engine.ones(2, 2)
    assert "keeps other = view of x (4,)" in viz.graph(w * x.reshape(4)).text


def test_numbers_that_a_node_keeps_are_shown_as_numbers():
    w = engine.ones(2, requires_grad=True)
    assert "keeps other = 2.5" in viz.graph(w * 2.5).text


def test_what_is_kept_has_the_name_that_pytorch_gives_it():
    x, w = (engine.ones(2, 2, requires_grad=True) for _ in range(2))
    for loss in (engine.nn.functional.mse_loss(x, w), x @ w, x**w, engine.where(x > 0, x, w)):
        for name in re.findall(r"keeps (\w+)", viz.graph(loss).text):
            assert hasattr(loss.grad_fn, "_saved_" + name)
    assert "keeps target = w (2, 2)" in viz.graph(engine.nn.functional.mse_loss(x, w)).text


def test_after_backward_the_kept_tensors_are_said_to_be_freed(example):
    example["loss"].backward(engine.ones(2, 3))
    g = draw(example)
    assert g.text.count("what it kept was freed") == g.dot.count("what it kept was freed") == 3  # add keeps nothing
    assert "keeps" not in g.text


def test_values_are_written_where_they_are_few_and_summarised_where_not(example):
    assert "leaf w (3,) = [1, 2, 3]" in draw(example, values=True).text
    many = engine.arange(100.0).requires_grad_()
    assert "leaf many (100,) = 0 .. 99" in viz.graph(many * 2, values=True).text
    same = engine.ones(100, requires_grad=True)
    assert "leaf same (100,) = all 1" in viz.graph(same * 2, values=True).text
    holes = engine.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, float("nan")], requires_grad=True)
    assert "leaf holes (7,) = 1 .. 6, 1 nan" in viz.graph(holes * 2, values=True).text
    halves = engine.tensor([0.5, 1.25], dtype=engine.bfloat16, requires_grad=True)
    assert "leaf halves (2,) bfloat16 = [0.5, 1.25]" in viz.graph(halves * 2, values=True).text
    empty = engine.ones(0, requires_grad=True)
    assert "leaf empty (0,) = empty" in viz.graph(empty * 2, values=True).text
    assert "[1, 2, 3]" not in draw(example).text


def test_gradients_are_those_in_grad_and_those_retained(example):
    example["z"].retain_grad()
    assert "grad" not in re.sub("AccumulateGrad", "", draw(example, gradients=True).text)
    example["loss"].backward(engine.ones(2, 3))
    text = draw(example, gradients=True).text
    assert f"leaf b (1,); grad [{example['b'].grad.item():.4f}]" in text
    assert re.search(r"makes z \(2, 3\); grad \[\[", text)


@needs_graphviz
def test_drawing_changes_nothing(example):
    example["w"].register_hook(lambda g: pytest.fail("a hook ran"))
    before = [(n.hooks, n.post_hooks, n.saved, n.time) for n in viz.walk([example["loss"].grad_fn])]
    assert draw(example, values=True, gradients=True).svg is not None
    assert [(n.hooks, n.post_hooks, n.saved, n.time) for n in viz.walk([example["loss"].grad_fn])] == before
    assert example["w"].grad is None


def test_hooks_are_counted(example):
    example["z"].register_hook(lambda g: g)
    assert "1 hook; next 4, 5" in draw(example).text


def test_a_drawn_graph_is_not_kept_alive():
    space = {"engine": engine, "graph": viz.graph}
    exec("y = engine.ones(2, requires_grad=True) * 2; picture = graph(y)", space)
    node = weakref.ref(space["y"].grad_fn)
    gc.disable()
    try:
        del space["y"]
        assert node() is None and "makes y" in space["picture"].text
    finally:
        gc.enable()


# Graphs of other kinds


def test_several_results_share_one_graph(example):
    g = viz.graph([example["loss"], example["z"]], names=example)
    assert g.summary == "Graph of loss, z: 4 operations, 2 leaves. Backward goes down this list."
    assert edges(g.dot)["n1", "r0"] == edges(g.dot)["n3", "r1"] == 1


def test_a_leaf_is_a_graph_of_one_node():
    w = engine.ones(2, requires_grad=True)
    g = viz.graph(w)
    assert g.text.splitlines()[1:] == ["1. AccumulateGrad: leaf w (2,)"]
    assert drawn(g.dot) == ["n1"]


@pytest.mark.parametrize("mode", [engine.no_grad, engine.inference_mode])
def test_a_result_that_nothing_was_recorded_of_says_so_and_why(mode):
    w = engine.ones(2, requires_grad=True)
    with mode():
        y = w * 2
    why = "it was made in inference mode" if mode is engine.inference_mode else "it does not require grad"
    g = viz.graph(y)
    assert g.text == f"Graph of y: no operations are recorded.\ny (2,): no graph; {why}"
    assert drawn(g.dot) == ["r0"] and why in g.dot


def test_an_operation_with_several_outputs_is_one_node_and_its_arrows_say_which():
    Halves = recorded.node_class("HalvesBackward0", lambda g, _: None)
    w = engine.ones(4, requires_grad=True)
    first, second = record_outputs(Halves, (w.array[:2], w.array[2:]), (w,), (None,))
    g = viz.graph(second * first)
    assert "next 2 output 1, 2 output 0" in g.text
    assert g.dot.count("HalvesBackward0") == 1 and "output 1 second (2,)" in g.dot


def test_no_more_than_max_nodes_are_drawn_those_nearest_and_the_rest_is_counted():
    g = viz.graph(chain(1000))
    assert drawn(g.dot) == ["more", *(f"n{i}" for i in range(40, 0, -1)), "r0"]
    assert edges(g.dot)["more", "n40"] == 1
    assert "961 nodes not drawn" in g.dot and "the 40 nodes nearest to the result, of 1001" in g.dot
    assert g.text.splitlines()[-1] == "961 nodes of 1001 not shown: those farthest from the result"
    assert "40. MulBackward0: makes scalar; keeps other = 1; next not shown" in g.text


def test_max_nodes_of_all_leaves_none_out(example):
    g = draw(example, max_nodes=6)
    assert "not drawn" not in g.dot and "not shown" not in g.text


def test_a_chain_of_100_000_operations_can_be_drawn():
    assert viz.graph(chain(100_000)).summary.startswith("Graph of a result: 100000 operations, 1 leaf.")


@pytest.mark.parametrize("wrong", [3, "w", [1.0], None])
def test_what_is_no_tensor_is_refused(wrong):
    with pytest.raises(TypeError, match=r"^graph\(\) draws a Tensor or a list of them, but got \w+$"):
        viz.graph(wrong)


def test_options_that_make_no_sense_are_refused(example):
    with pytest.raises(ValueError, match="direction must be 'TB', 'LR', 'BT' or 'RL', but got 'up'"):
        draw(example, direction="up")
    with pytest.raises(ValueError, match="at least one Tensor"):
        viz.graph([])
    with pytest.raises(ValueError, match="max_nodes must be at least 1, but got 0"):
        draw(example, max_nodes=0)


def test_what_is_switched_off_is_not_shown(example):
    bare = draw(example, saved=False, shapes=False)
    for shown in (bare.text, bare.dot):
        assert "keeps" not in shown and "(2, 3)" not in shown and "(3,)" not in shown
    assert drawn(bare.dot) == ["n6", "n5", "n4", "n3", "n2", "n1", "r0"]


# The picture

RENDERERS = ("graphviz", "pygraphviz")


@pytest.fixture(params=RENDERERS)
def renderer(request, monkeypatch):
    """Only one of the ways to draw is there."""
    only(request.param, monkeypatch)
    if viz.render("digraph {}", "svg") is None:
        pytest.skip(f"{request.param} draws nothing on this machine")
    return request.param


def only(name, monkeypatch):
    for other in RENDERERS:
        if other != name:
            monkeypatch.setitem(sys.modules, other, None)


def test_every_renderer_draws_what_the_dot_says(example, renderer):
    g = draw(example)
    root = ElementTree.fromstring(g.svg)
    groups = [e.get("class").split() for e in root.iter(SVG + "g")]
    assert [c[1] for c in groups if c[0] == "node"].count("operation") == 4
    assert sum(c[0] == "node" for c in groups) == len(drawn(g.dot)) == 8
    assert sum(c[0] == "edge" for c in groups) == sum(edges(g.dot).values()) == 8
    assert {"n1-0", "n1-1"} < {c for cs in groups for c in cs}
    assert "TanhBackward0" in {e.text for e in root.iter(SVG + "text")}
    assert g.png.startswith(b"\x89PNG")


def test_the_svg_has_words_for_screen_readers_and_nothing_of_the_machine(example, renderer):
    g = draw(example)
    root = ElementTree.fromstring(g.svg)
    assert root.get("role") == "img" and root.get("aria-label") == g.summary
    assert [(e.tag, e.text) for e in root[:2]] == [(SVG + "title", g.summary), (SVG + "desc", g.text)]
    assert len(list(root.iter(SVG + "title"))) == 1
    assert "graphviz" not in g.svg.lower() and not any(e.get("id") for e in root.iter())


def test_names_with_markup_in_them_are_shown_as_they_are(renderer):
    w = engine.ones(2, requires_grad=True)
    g = viz.graph(w * 1, names={'<b>&"w\\n': w})
    assert '<b>&"w\\n' in {e.text for e in ElementTree.fromstring(g.svg).iter(SVG + "text")}


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    """As WCAG 2 defines it."""
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def test_text_has_contrast_on_its_ground_and_lines_on_white_and_on_dark_pages():
    w, b = engine.ones(2, requires_grad=True), engine.ones(2)
    dot = viz.graph([chain(50) * w * b, b]).dot
    for fill, text in re.findall(r'fillcolor="(#\w+)".*?fontcolor="(#\w+)"', dot):
        assert contrast(fill, text) >= 4.5
    grounds = re.findall(r'bgcolor="(#\w+)".*?color="(#\w+)"', dot)
    assert grounds and all(contrast(ground, text) >= 4.5 for ground, text in grounds)
    lines = set(re.findall(r'^  edge .* color="(#\w+)"', dot, re.MULTILINE))
    assert lines and all(contrast(line, page) >= 3 for line in lines for page in ("#ffffff", "#111111"))
    assert 'bgcolor="transparent"' in dot


def test_kinds_of_nodes_differ_in_more_than_colour():
    outlines = [re.sub(r'\w*color="#\w+" ?', "", style).strip() for style in viz.STYLES.values()]
    assert len(set(outlines)) == len(outlines) == 5


@needs_graphviz
def test_a_notebook_gets_a_picture_with_words_in_an_img(example):
    g = draw(example)
    bundle = g._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"} and bundle["text/plain"] == repr(g) == g.text
    assert f'<img alt="{g.summary}" src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert "AccumulateGrad: leaf w (3,)" in bundle["text/html"]


def without_pictures(bundle):
    return {"text/plain": bundle["text/plain"], "text/html": PICTURE.sub("", bundle["text/html"])}


def test_without_graphviz_the_words_are_the_same_and_the_picture_says_what_to_install(example, monkeypatch, tmp_path):
    monkeypatch.setattr(viz.dot, "render", lambda dot, kind: f'<svg xmlns="{viz.SVG}"/>'.encode())
    drawn = draw(example)._repr_mimebundle_()
    monkeypatch.undo()
    only("neither", monkeypatch)
    g = draw(example)
    assert g.svg is None and g.png is None
    bundle = g._repr_mimebundle_()
    assert without_pictures(bundle) == without_pictures(drawn)
    address = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', bundle["text/html"])[1]
    assert ElementTree.fromstring(base64.b64decode(address))[0].text == viz.INSTALL
    with pytest.raises(RuntimeError, match=r"install Graphviz .* or save as \.dot or \.txt"):
        g.save(tmp_path / "a.svg")
    g.save(tmp_path / "a.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_graphviz_that_fails_is_passed_over(example, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("no such program")

    graphviz = pytest.importorskip("graphviz")
    monkeypatch.setattr(graphviz, "pipe", broken)
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    assert draw(example).svg is None


def test_what_pygraphviz_s_libraries_warn_of_is_not_shown(example, monkeypatch, capfd):
    class AGraph:
        def __init__(self, string):
            pass

        def layout(self, program):
            os.write(2, b"Fontconfig warning: unknown element")

        def draw(self, format):
            return b"<svg/>"

    monkeypatch.setitem(sys.modules, "graphviz", None)
    monkeypatch.setitem(sys.modules, "pygraphviz", types.SimpleNamespace(AGraph=AGraph))
    assert viz.render(draw(example).dot, "svg") == b"<svg/>"
    os.write(2, b"heard")
    assert capfd.readouterr().err == "heard"


@needs_graphviz
@pytest.mark.parametrize("suffix", ["svg", "png", "dot", "gv", "txt", "SVG"])
def test_a_graph_is_saved_as_its_suffix_says(example, suffix, tmp_path):
    g = draw(example)
    g.save(str(tmp_path / f"graph.{suffix}"))
    kind = {"gv": "dot", "txt": "text", "SVG": "svg"}.get(suffix, suffix)
    expected = getattr(g, kind)
    expected = expected if isinstance(expected, bytes) else expected.encode()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {f"graph.{suffix}": expected}


def test_an_unknown_suffix_is_refused(example, tmp_path):
    with pytest.raises(ValueError, match=r"graphs are saved as \.svg, \.png, \.dot, \.gv, \.txt, but got 'a\.jpeg'"):
        draw(example).save(tmp_path / "a.jpeg")


@needs_graphviz
def test_a_save_that_fails_leaves_nothing_behind(example, tmp_path):
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(OSError):
        draw(example).save(tmp_path / "a.svg")
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]
