"""BackwardStepper: its steps against autograd, its formulas against the rules, its pictures against its steps."""

import json
import re
import sys
from xml.etree import ElementTree

import pytest

import engine
from course.figures import BackwardStepper, rules
from course.figures.stepper import AHEAD, DONE, NOW
from engine import viz

SVG = "{http://www.w3.org/2000/svg}"
WIDGET = "application/vnd.jupyter.widget-view+json"


def example():
    """A result in which one leaf is used twice; and its leaves."""
    w = engine.tensor([1.0, 2.0], requires_grad=True)
    b = engine.tensor(0.5, requires_grad=True)
    x = engine.tensor([3.0, 4.0])
    h = (w * x).sum() + b
    return h**2 * b, {"w": w, "b": b, "x": x, "h": h}


@pytest.fixture
def stepper():
    loss, names = example()
    return BackwardStepper(loss, names | {"loss": loss})


# The steps


def test_the_nodes_come_in_the_order_of_backward(stepper):
    assert [s.node for s in stepper.steps] == [
        "backward()", "MulBackward0", "PowBackward0", "AddBackward0", "SumBackward0", "MulBackward0",
        "AccumulateGrad of b", "AccumulateGrad of w",
    ]  # fmt: skip
    assert [s.number for s in stepper.steps] == list(range(8)) and len(stepper) == 8


def test_the_leaves_come_in_the_order_of_the_picture_however_early_one_is_met():
    a, b = (engine.tensor(value, requires_grad=True) for value in (2.0, 3.0))
    steps = BackwardStepper(a * b + a, {"a": a, "b": b}).steps
    assert [s.node for s in steps[-2:]] == ["AccumulateGrad of b", "AccumulateGrad of a"]


def test_what_arrives_and_what_is_passed_on_are_the_gradients_that_hooks_see():
    loss, names = example()
    steps = BackwardStepper(loss, names).steps
    seen = []
    for node in viz.walk([loss.grad_fn]):
        if node.parents:
            node.register_hook(lambda into, incoming: seen.append((incoming, into)))
    loss.backward()
    assert len(seen) == 5
    for step, (incoming, into) in zip(steps[1:], seen, strict=False):
        assert [f.value for f in step.incoming] == [repr(g) for g in incoming]
        passed = [g for g in into if g is not None]
        assert [(f.shape, f.dtype) for f in step.outgoing] == [(tuple(g.shape), g.dtype.name) for g in passed]
        assert [f.short for f in step.outgoing] == [viz.brief(g.array) for g in passed]


def test_the_last_step_has_the_gradients_that_backward_leaves():
    loss, names = example()
    names["w"].grad = engine.tensor([1.0, 1.0])  # what was there before is added to
    grads = BackwardStepper(loss, names).steps[-1].grads
    loss.backward()
    assert grads == {name: viz.brief(names[name].grad.array) for name in ("w", "b")}
    assert grads["w"] == "[35.5, 47]"


def test_gradients_that_reach_a_node_on_two_ways_wait_there_and_are_added_up(stepper):
    waiting = [step.waiting["b (6)"].short if "b (6)" in step.waiting else None for step in stepper.steps]
    assert waiting == [None, "132.25", "132.25", "143.75", "143.75", "143.75", None, None]
    assert [s.grads["b"] for s in stepper.steps] == ["None"] * 6 + ["143.75"] * 2


def test_a_step_says_what_it_frees_unless_the_graph_is_retained(stepper):
    assert [s.freed for s in stepper.steps] == [
        (), ("self", "other"), ("self",), (), (), ("other",), (), ()
    ]  # fmt: skip
    loss, names = example()
    assert not any(s.freed for s in BackwardStepper(loss, names, retain_graph=True).steps)


def test_the_freed_are_those_that_backward_frees():
    loss, names = example()
    freed = {s.node for s in BackwardStepper(loss, names).steps if s.freed}
    loss.backward()
    assert {type(n).__name__ for n in viz.walk([loss.grad_fn]) if viz.saved_values(n) is None} == freed


def test_stepping_changes_nothing():
    loss, names = example()
    h = names["h"]
    h.retain_grad()
    nodes = list(viz.walk([loss.grad_fn]))
    before = [dict(n.__dict__) for n in nodes]
    BackwardStepper(loss, names)
    assert [n.__dict__ for n in nodes] == before
    assert h.grad is None and names["w"].grad is None and names["b"].grad is None
    loss.backward()
    assert h.grad.item() == 11.5


def test_hooks_stay_in_force_and_an_optimizer_in_backward_is_not_run():
    loss, names = example()
    names["h"].register_hook(lambda g: g * 2)
    names["w"].register_post_accumulate_grad_hook(lambda w: pytest.fail("the leaf was updated"))
    assert BackwardStepper(loss, names).steps[-1].grads["w"] == "[69, 92]"


def test_everything_is_put_back_when_a_rule_fails():
    class Broken(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("in backward")

    w = engine.ones(2, requires_grad=True)
    loss = Broken.apply(w * 2).sum()
    nodes = list(viz.walk([loss.grad_fn]))
    before = [dict(n.__dict__) for n in nodes]
    with pytest.raises(ZeroDivisionError, match="in backward"):
        BackwardStepper(loss)
    assert [n.__dict__ for n in nodes] == before


def test_a_function_of_ones_own_is_a_step_with_what_it_saved():
    class Twice(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    w = engine.tensor([1.0, 2.0], requires_grad=True)
    loss = Twice.apply(w).sum()
    step = BackwardStepper(loss).steps[2]
    assert step.node == "TwiceBackward"
    assert step.rule == "Its own backward(ctx, grad), which was written in Python in Twice."
    assert [f.short for f in step.outgoing] == ["[2, 2]"] and step.freed == ("saved_tensors[0]",)
    assert "keeps saved_tensors[0] = w (2,)" in viz.graph(loss).text
    loss.backward()
    assert "TwiceBackward: makes (2,); what it kept was freed" in viz.graph(loss).text


def test_an_operation_with_several_outputs_gets_the_gradients_of_those_that_were_used():
    w = engine.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    _, second, third = w.unbind(0)
    loss = (second * 6 + third + second * 4).sum()
    steps = BackwardStepper(loss).steps
    arrived = [{where: f.short for where, f in s.waiting.items() if "Unbind" in where} for s in steps]
    output_1, output_2 = (f"output {i} of UnbindBackward0 (6)" for i in (1, 2))
    assert arrived[3:6] == [
        {output_1: "[4, 4]"}, {output_1: "[4, 4]", output_2: "[1, 1]"}, {output_1: "[10, 10]", output_2: "[1, 1]"}
    ]  # fmt: skip
    step = next(s for s in steps if s.node == "UnbindBackward0")
    assert [f.short for f in step.incoming] == ["[10, 10]", "[1, 1]"]
    assert [f.short for f in step.outgoing] == ["[[0, 0], [10, 10], [1, 1]]"]


def test_an_input_that_was_broadcast_gets_the_sum():
    w = engine.tensor([2.0], requires_grad=True)
    x = engine.ones(3, 2)
    (flow,) = BackwardStepper((w * x).sum()).steps[2].outgoing
    assert (flow.rule, flow.short) == ("(grad * other) added up to (1,)", "[6]")


def test_what_backward_refuses_is_refused_in_the_same_words():
    w = engine.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        BackwardStepper(w * 2)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        BackwardStepper(engine.ones(()))
    loss = (w * w).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        BackwardStepper(loss)
    assert w.grad.tolist() == [2.0, 2.0]


def test_a_gradient_can_be_given_to_begin_with():
    w = engine.ones(2, requires_grad=True)
    steps = BackwardStepper(w * 2, gradient=engine.tensor([1.0, 10.0])).steps
    assert steps[0].rule == "backward() starts at the result, with the gradient that it was given."
    assert steps[-1].grads == {"w": "[2, 20]"}


def test_a_leaf_alone_has_one_step():
    w = engine.tensor(3.0, requires_grad=True)
    assert [s.node for s in BackwardStepper(w).steps] == ["backward()", "AccumulateGrad of w"]


def test_variables_of_the_caller_name_the_leaves():
    weight = engine.tensor(3.0, requires_grad=True)
    assert BackwardStepper(weight * 2).steps[-1].grads == {"weight": "2"}


# The formulas

U = engine.tensor([[0.5, 2.0, -1.0], [3.0, 0.25, 1.5]], requires_grad=True, dtype=engine.float64)
V = engine.tensor([[1.5, -0.5, 2.0], [0.75, 1.25, 4.0]], requires_grad=True, dtype=engine.float64)
P = engine.tensor([[0.5, 0.75], [2.0, 3.0]], requires_grad=True, dtype=engine.float64)
F = engine.nn.functional

PROGRAMS = {
    "AddBackward0": lambda: U + V, "SubBackward0": lambda: U - V, "RsubBackward1": lambda: 2.0 - U,
    "NegBackward0": lambda: -U, "MulBackward0": lambda: U * V, "DivBackward0": lambda: U / V,
    "PowBackward0": lambda: U**3, "PowBackward1": lambda: P ** P.detach(),
    "ReciprocalBackward0": lambda: U.reciprocal(),
    "SqrtBackward0": lambda: P.sqrt(), "ExpBackward0": lambda: U.exp(), "LogBackward0": lambda: P.log(),
    "SinBackward0": lambda: U.sin(), "CosBackward0": lambda: U.cos(), "TanhBackward0": lambda: U.tanh(),
    "SigmoidBackward0": lambda: U.sigmoid(), "ReluBackward0": lambda: U.relu(), "AbsBackward0": lambda: U.abs(),
    "SumBackward0": lambda: U.sum(), "MeanBackward0": lambda: U.mean(), "MmBackward0": lambda: P @ U,
    "MvBackward0": lambda: U.mv(V[0]), "DotBackward0": lambda: U[0].dot(V[0]),
    "BmmBackward0": lambda: engine.bmm(P.unsqueeze(0), U.unsqueeze(0)), "TBackward0": lambda: U.t(),
    "TransposeBackward0": lambda: U.transpose(0, 1), "ViewBackward0": lambda: U.view(3, 2),
    "UnsafeViewBackward0": lambda: U.reshape(1, 2, 3) @ U.T, "UnsqueezeBackward0": lambda: U.unsqueeze(1),
    "SqueezeBackward0": lambda: U.unsqueeze(1).squeeze(), "SqueezeBackward1": lambda: U.unsqueeze(1).squeeze(1),
    "SqueezeBackward4": lambda: U[0] @ U.T, "CloneBackward0": lambda: U.clone(),
    "SoftmaxBackward0": lambda: U.softmax(1), "LogSoftmaxBackward0": lambda: U.log_softmax(1),
    "MseLossBackward0": lambda: F.mse_loss(U, V), "DivBackward1": lambda: F.cross_entropy(U, V.softmax(1)),
    "MulBackward1": lambda: F.cross_entropy(U, V.softmax(1), label_smoothing=0.1),
    "BinaryCrossEntropyWithLogitsBackward0": lambda: F.binary_cross_entropy_with_logits(U, V),
}  # fmt: skip


def test_every_formula_of_the_table_is_tried_here():
    assert {name for name, row in rules.RULES.items() if len(row) > 1} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_formula_evaluated_gives_the_gradient_that_the_rule_gives(name):
    result, seen = PROGRAMS[name](), []
    node = next(n for n in viz.walk([result.grad_fn]) if viz.node_title(n) == name)
    node.register_hook(lambda into, incoming: seen.append((into, incoming)))
    start = engine.randn(result.shape, dtype=result.dtype)
    engine.autograd.grad(result, [U, V, P], start, retain_graph=True, allow_unused=True)
    (into, (grad,)) = seen[0]
    formulas = [rules.formula(node, i) for i in range(len(into))]
    assert any(formulas)
    for i, formula in enumerate(formulas):
        if formula and into[i] is not None:
            value = eval(formula, {}, {"grad": grad, **rules.values(node, i)})
            assert value.shape == into[i].shape and engine.allclose(value, into[i]), formula


def test_no_formula_is_shown_where_one_name_has_another_rule():
    w = engine.ones(2, requires_grad=True)
    weighted = F.binary_cross_entropy_with_logits(w, w.detach(), pos_weight=engine.ones(2))
    for node in ((w.square()).grad_fn, weighted.grad_fn):
        assert rules.RULES[node.name()][1:] and rules.formula(node, 0) == ""
    assert rules.formula((w**2).grad_fn, 0) == "grad * exponent * self**(exponent - 1)"


def test_small_values_are_filled_in_and_large_ones_keep_their_names():
    w = engine.tensor([1.0, 2.0], requires_grad=True)
    (flow,) = BackwardStepper((w * engine.tensor([3.0, 4.0])).sum()).steps[2].outgoing
    assert (flow.rule, flow.filled, flow.short) == ("grad * other", "[1, 1] * [3, 4]", "[3, 4]")
    many = engine.ones(50, requires_grad=True)
    (flow,) = BackwardStepper((many * engine.ones(50)).sum()).steps[2].outgoing
    assert (flow.rule, flow.filled, flow.short) == ("grad * other", "grad * other", "all 1")


# The words and the pictures


def test_the_text_of_a_step(stepper):
    assert stepper.text(3) == (
        "Step 3 of 7: AddBackward0, which made h\n"
        "  Arrives: tensor(11.5000)  scalar\n"
        "  Rule: A sum passes its gradient on to both sides, unchanged.\n"
        "  Passes on: to SumBackward0 (4): grad = 11.5  scalar\n"
        "    to b (6): grad = 11.5  scalar\n"
        "  Waiting: 143.75 at b (6)\n"
        "    11.5 at SumBackward0 (4)\n"
        "  .grad so far: w.grad = None\n"
        "    b.grad = None"
    )
    assert stepper.text(-1).startswith("Step 7 of 7: AccumulateGrad of w\n")


def parts(svg):
    """{a node's or an edge's class: (its state, its texts)}"""
    found = {}
    for group in ElementTree.fromstring(svg).iter(SVG + "g"):
        names = group.get("class", "").split()
        if names[0] in ("node", "edge") and len(names) > 1:
            key = next((n for n in names if re.fullmatch(r"n\d+(-\d+)?|result|more", n)), names[1])
            found[key] = names[-1], [t.text.strip() for t in group.iter(SVG + "text")]
    return found


needs_graphviz = pytest.mark.skipif(viz.render("digraph {}", "svg") is None, reason="there is no Graphviz here")


@needs_graphviz
def test_the_picture_of_a_step_tells_what_is_done_from_what_is_to_come(stepper):
    for k in range(1, 8):
        states = {key: state for key, (state, _) in parts(stepper.picture(k)).items()}
        for number in range(1, 8):
            assert states[f"n{number}"] == (DONE if number < k else NOW if number == k else AHEAD)
            for edge in (key for key in states if key.startswith(f"n{number}-")):
                assert states[edge] == states[f"n{number}"]
        assert states["result"] == DONE
    assert parts(stepper.picture(0))["result"][0] == NOW


@needs_graphviz
def test_the_picture_shows_the_gradients_at_the_edges_and_in_the_leaves(stepper):
    drawn = parts(stepper.picture())
    for number, step in enumerate(stepper.steps[1:6], 1):
        for i, flow in enumerate(step.outgoing):
            assert drawn[f"n{number}-{i}"][1][-1] == f"grad {flow.short}"
    leaf = [parts(stepper.picture(k))["n6"][1][-1] for k in range(8)]
    waiting = ["waiting: 132.25"] * 2 + ["waiting: 143.75"] * 3
    assert leaf == ["grad None", *waiting, "grad 143.75", "grad 143.75"]


@needs_graphviz
def test_a_step_whose_node_is_not_drawn_has_a_picture_all_the_same():
    x = engine.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(1000):
        y = y * 1.0
    stepper = BackwardStepper(y, max_nodes=5)
    assert len(stepper) == 1002
    states = parts(stepper.picture(500))
    assert {state for key, (state, _) in states.items() if key.startswith("n")} == {DONE}
    assert "996 nodes not drawn" in states["more"][1]


@needs_graphviz
def test_the_static_picture_has_every_gradient_and_the_text_every_step(stepper):
    static = stepper.static()
    assert static["text/plain"].splitlines()[1:4] == [
        "0. backward(): passes 1 to MulBackward0 (1).",
        "1. MulBackward0, which made loss: gets 1; passes 0.5 to PowBackward0 (2); passes 132.25 to b (6).",
        "2. PowBackward0: gets 0.5; passes 11.5 to AddBackward0 (3).",
    ]
    assert len(static["text/plain"].splitlines()) == 9
    assert re.search(
        r'<img alt="The backward pass, step by step\. [^"]+" src="data:image/svg\+xml;base64,', static["text/html"]
    )
    states = {state for key, (state, _) in parts(stepper.picture()).items() if key.startswith("n")}
    assert states == {"all"}
    svg = ElementTree.fromstring(stepper.picture())
    assert svg.get("role") == "img" and svg.get("aria-label").startswith("Graph of loss")


def test_without_graphviz_the_steps_are_there_in_words(monkeypatch):
    for name in ("graphviz", "pygraphviz"):
        monkeypatch.setitem(sys.modules, name, None)
    loss, names = example()
    stepper = BackwardStepper(loss, names)
    assert stepper.picture(1) is None
    assert viz.NO_PICTURE in stepper.static()["text/html"] and "1. " in stepper.static()["text/plain"]


def test_without_anywidget_a_notebook_gets_the_static_figure(stepper, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "course.figures.stepper_widget", raising=False)
    assert stepper._repr_mimebundle_() == (stepper.static(), {})


def test_a_notebook_gets_the_widget_and_the_static_figure(stepper):
    pytest.importorskip("anywidget")
    data, _ = stepper._repr_mimebundle_()
    assert data.pop(WIDGET)["model_id"] and data == stepper.static()


def test_the_widget_has_a_panel_and_a_sentence_for_each_step(stepper):
    pytest.importorskip("anywidget")
    widget = stepper.widget()
    assert len(widget.panels) == len(widget.said) == 8
    assert (
        widget.said[7] == "Step 7 of 7. AccumulateGrad of w: gets [34.5, 46]; w.grad is [34.5, 46], b.grad is 143.75."
    )
    assert "<div>w.grad = [34.5, 46]</div>" in widget.panels[7]
    json.dumps([widget.svg, widget.panels, widget.said])


def test_names_with_markup_in_them_are_shown_as_they_are():
    pytest.importorskip("anywidget")
    w = engine.tensor(1.0, requires_grad=True)
    stepper = BackwardStepper(w * 2, {"<script>": w})
    assert "<script>" not in "".join(stepper.widget().panels) + stepper.widget().svg
    assert "&lt;script&gt;.grad = 2" in stepper.widget().panels[-1]
