"""GraphExplorer: what it says of each node, against the node itself and against backward."""

import re
import sys

import pytest
from over_tables import over

import engine
from course.figures import GraphExplorer
from course.figures.graph_explorer.figure import LAYERS, layered
from engine import viz

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def made():
    """(w * x + w) ** 2 with all of its tensors."""
    w = engine.tensor(2.0, requires_grad=True)
    x = engine.tensor(3.0)
    h = w * x
    return {"w": w, "x": x, "h": h, "loss": (h + w) ** 2}


@pytest.fixture
def figure(made):
    return GraphExplorer(made["loss"], made)


def facts(figure, k):
    return dict(figure.looks[k].facts)


def by_title(figure, title):
    return next(k for k, look in enumerate(figure.looks) if look.title == title)


# The nodes


def test_the_nodes_come_in_the_order_of_backward(figure):
    assert [look.title for look in figure.looks] == [
        "1 PowBackward0 (loss)",
        "2 AddBackward0",
        "3 MulBackward0 (h)",
        "4 leaf w",
    ]


def test_a_variable_of_the_caller_names_a_node():
    weight = engine.tensor(2.0, requires_grad=True)
    assert GraphExplorer(weight * 3).looks[-1].title == "2 leaf weight"


def test_neighbours_are_next_functions_and_their_reverse(figure):
    near = {look.title: (look.inputs, look.users) for look in figure.looks}
    assert near["2 AddBackward0"] == (((2, "3 MulBackward0 (h)"), (3, "4 leaf w")), ((0, "1 PowBackward0 (loss)"),))
    assert near["4 leaf w"] == ((), ((1, "2 AddBackward0"), (2, "3 MulBackward0 (h)")))


def test_an_input_that_is_used_twice_is_one_neighbour():
    w = engine.tensor(2.0, requires_grad=True)
    look = GraphExplorer(w * w).looks[0]
    assert look.inputs == ((1, "2 leaf w, 2 times"),)
    assert GraphExplorer(w * w).looks[1].users == ((0, "1 MulBackward0"),)


def test_shapes_and_values_are_those_of_the_tensors(figure, made):
    assert (facts(figure, 2)["Value"], facts(figure, 2)["Shape"]) == ("6", "scalar float32")
    matrix = engine.ones(2, 3, requires_grad=True)
    assert facts(GraphExplorer(matrix.sum()), 1) == {"Shape": "(2, 3) float32", "Value": "[[1, 1, 1], [1, 1, 1]]",
                                                      "Gradient": "[[1, 1, 1], [1, 1, 1]]"}  # fmt: skip


def test_a_value_that_nobody_kept_is_said_not_to_be():
    w = engine.tensor(2.0, requires_grad=True)
    assert facts(GraphExplorer((w + 1) + 1), 1)["Value"] == "not kept"


def test_of_code_the_values_in_between_are_known_too_and_the_variables_stay_as_they_are():
    h = 7
    code = """
        h = (w + 1) * 5
        h + 1
    """
    figure = GraphExplorer(code, {"w": engine.tensor(2.0, requires_grad=True)})
    assert [(look.title, dict(look.facts)["Value"]) for look in figure.looks] == [
        ("1 AddBackward0", "16"), ("2 MulBackward0 (h)", "15"), ("3 AddBackward0", "3"), ("4 leaf w", "2"),
    ]  # fmt: skip
    assert h == 7


def test_the_gradients_are_those_of_a_backward_pass(figure, made):
    shown = [facts(figure, k)["Gradient"] for k in range(4)]
    made["h"].retain_grad()
    made["loss"].backward()
    assert shown == ["1", "16", viz.brief(made["h"].grad.array), viz.brief(made["w"].grad.array)]


def test_looking_changes_no_grad_and_frees_nothing(made):
    made["w"].grad = engine.tensor(5.0)
    GraphExplorer(made["loss"], made)
    assert made["w"].grad == 5
    made["loss"].backward()
    assert made["w"].grad == 5 + 64


def test_what_a_node_keeps_is_told(figure):
    assert facts(figure, 2)["Keeps"] == "other = x scalar = 3"
    assert "Keeps" not in facts(figure, 1)


def test_a_freed_graph_has_no_gradients_but_all_the_rest(made):
    made["loss"].backward()
    figure = GraphExplorer(made["loss"], made)
    assert facts(figure, 2)["Gradient"].startswith("none. Trying to backward through the graph a second time")
    assert (facts(figure, 2)["Value"], facts(figure, 2)["Keeps"]) == ("6", "freed by backward()")


def test_a_result_of_several_elements_has_no_gradients():
    w = engine.ones(2, requires_grad=True)
    assert facts(GraphExplorer(w * 2), 0)["Gradient"] == "none. grad can be implicitly created only for scalar outputs"


def test_a_graph_that_is_too_large_shows_the_nodes_nearest_to_the_result():
    x = engine.tensor(1.0, requires_grad=True)
    for _ in range(50):
        x = x + 1
    figure = GraphExplorer(x, max_nodes=5)
    assert len(figure) == 5 and figure.looks[-1].inputs == ((None, "a node that is not drawn"),)
    assert figure.summary.endswith("Drawn are the 5 nodes nearest to the result.")


def test_a_result_without_a_graph_is_said_to_have_none():
    figure = GraphExplorer(engine.ones(2) * 2)
    assert figure._repr_mimebundle_() == ({"text/plain": "Graph of a result: no operations are recorded."}, {})


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="GraphExplorer draws the graph of a Tensor, but got int"):
        GraphExplorer(3)


def test_the_words_hold_all_of_a_node(figure):
    assert figure.text(2).splitlines() == [
        "3 MulBackward0 (h)",
        "  Shape: scalar float32",
        "  Value: 6",
        "  Gradient: 16",
        "  Rule: Each factor gets the gradient times the other factor, as it was saved.",
        "  Passes on: 48 to w (4)",
        "  Keeps: other = x scalar = 3",
        "  Made from: 4 leaf w",
        "  Used by: 2 AddBackward0",
    ]
    assert figure.text(0).splitlines()[-1] == "  Used by: nothing: it is the result"
    assert figure.text(3).splitlines()[-2] == "  Made from: nothing: it was there"


# The picture


@pytest.fixture
def svg(figure):
    if figure.picture() is None:
        pytest.skip("there is no Graphviz")
    return figure.picture()


def groups(svg, mark):
    found = re.findall(r'<g class="([^"]+)"', svg)
    return [kind.removesuffix(f" {mark}") for kind in found if kind.endswith(f" {mark}")]


def test_the_chosen_node_its_neighbours_and_the_edges_between_are_marked(figure, svg):
    chosen = figure.picture(by_title(figure, "2 AddBackward0"))
    assert groups(chosen, "chosen") == ["node operation n2"]
    assert sorted(groups(chosen, "input")) == ["node leaf n4", "node operation n3"]
    assert groups(chosen, "user") == ["node operation n1"]
    assert sorted(groups(chosen, "marked")) == ["edge n2-0", "edge n2-1"]
    assert all(groups(svg, mark) == [] for mark in ("chosen", "input", "user", "marked"))


@pytest.mark.parametrize(
    ("layer", "texts"),
    [("values", {"= 2", "= 6", "= 8", "= 64"}), ("gradients", {"grad 64", "grad 16"}), ("shapes", {"scalar float32"})],
)
def test_each_layer_of_the_picture_can_be_told_from_the_rest(svg, layer, texts):
    marked = {t.strip() for t in re.findall(rf'data-layer="{layer}"[^>]*>([^<]+)<', svg)}
    assert marked >= texts and layer in LAYERS


@over("text, without", [("h scalar", "h"), ("(2, 3)", ""), ("output 1 q (5,) float64", "output 1 q"), ("scalar", "")])
def test_of_a_label_without_its_shape_the_name_stays(text, without):
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><g class="edge n1-0"><text>\xa0{text}\xa0</text></g></svg>'
    assert f'data-without="{without}"' in layered(svg)


def test_names_of_operations_belong_to_no_layer(svg):
    assert not re.search(r"data-layer[^>]*>[^<]*(Backward|AccumulateGrad)", svg)


# In a notebook


def test_a_reader_without_a_kernel_gets_the_picture_and_every_node_in_words(figure, svg):
    static = figure.static()
    assert static["text/plain"].splitlines()[0] == figure.summary
    assert all(figure.text(k) in static["text/plain"] for k in range(len(figure)))
    assert f'<img alt="{figure.summary}"' in static["text/html"] and "Each node in words" in static["text/html"]


def test_a_notebook_gets_the_widget_and_the_picture(figure):
    pytest.importorskip("anywidget")
    data, _ = figure._repr_mimebundle_()
    assert data.pop(WIDGET)["model_id"] and data == figure.static()


def test_the_widget_knows_every_node(figure):
    pytest.importorskip("anywidget")
    widget = figure.widget()
    assert [node["title"] for node in widget.nodes] == [look.title for look in figure.looks]
    assert (widget.chosen, widget.hidden, widget.layers) == (0, [], list(LAYERS))


def test_without_anywidget_a_notebook_gets_the_picture(figure, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "course.figures.graph_explorer.widget", raising=False)
    assert figure._repr_mimebundle_() == (figure.static(), {})


def test_without_graphviz_the_words_remain(made, monkeypatch):
    monkeypatch.setattr(viz.dot, "render", lambda dot, kind: None)
    figure = GraphExplorer(made["loss"], made)
    assert figure.picture(1) is None
    assert viz.NO_PICTURE in figure.static()["text/html"]
    assert figure.looks[-1].text in figure.static()["text/plain"]
