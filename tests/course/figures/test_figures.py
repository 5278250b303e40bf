"""BackwardStepper: its steps against autograd, its formulas against the rules, its pictures against its steps."""

import json
import re
import sys
from xml.etree import ElementTree

import pytest
from over_tables import over

import engine
from course.figures import BackwardStepper
from course.figures.base import rules
from course.figures.stepper.svg import AHEAD, DONE, NEW, NOW, UNMADE
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


@pytest.fixture
def back(stepper):
    """The steps of the backward pass, the first of which is what it begins with."""
    return stepper.steps[stepper.begin :]


# The steps


def test_the_nodes_come_in_the_order_of_backward(stepper, back):
    assert stepper.begin == 6
    assert [s.node for s in back] == [
        "backward()", "MulBackward0", "PowBackward0", "AddBackward0", "SumBackward0", "MulBackward0",
        "AccumulateGrad of b", "AccumulateGrad of w",
    ]  # fmt: skip
    assert [s.number for s in stepper.steps] == list(range(14)) and len(stepper) == 14


def test_first_come_the_operations_in_the_order_in_which_they_were_done(stepper):
    forward = stepper.steps[1 : stepper.begin]
    assert [(s.node, s.made, s.keeps) for s in forward] == [
        ("MulBackward0", "", ("other = x",)),
        ("SumBackward0", "", ()),
        ("AddBackward0", "h", ()),
        ("PowBackward0", "", ("self = h",)),
        ("MulBackward0", "loss", ("self = 132.25", "other = b")),
    ]
    assert forward[2].equation == "h = 11.5" and forward[2].inputs == ("SumBackward0", "b")
    assert stepper.steps[0].leaves == ("w = [1, 2]", "b = 0.5")


def test_of_code_every_number_is_known_and_each_step_has_its_line():
    a, b = (engine.tensor(value, requires_grad=True) for value in (2.0, 3.0))
    figure = BackwardStepper("""
        c = a * b
        d = (c + a) * 2 + b
    """)
    assert figure.lines == ["c = a * b", "d = (c + a) * 2 + b"]
    assert [(s.line, s.equation) for s in figure.steps[1 : figure.begin]] == [
        (1, "c = 6"), (2, "8"), (2, "16"), (2, "d = 19"),
    ]  # fmt: skip
    assert [s.line for s in figure.steps[figure.begin :]] == [0, 2, 2, 2, 1, 0, 0]
    assert figure.steps[-1].grads == {"a": "8", "b": "5"} and a.grad is None and b.grad is None


def test_code_whose_last_line_gives_no_tensor_is_refused_and_errors_in_it_are_its_own():
    with pytest.raises(TypeError, match="the last line must give a tensor"):
        BackwardStepper("n = 3")
    with pytest.raises(ZeroDivisionError):
        BackwardStepper("n = 1 / 0")


def test_a_function_that_the_code_calls_shows_all_that_it_did():
    def halve(x):
        while x > 1:
            x = x / 2
        return x

    figure = BackwardStepper("halve(x)", {"x": engine.tensor(10.0, requires_grad=True)})
    assert [s.value for s in figure.steps[1 : figure.begin]] == ["5", "2.5", "1.25", "0.625"]


# The question before the backward pass


@pytest.fixture
def asking():
    a, b = (engine.tensor(value, requires_grad=True) for value in (2.0, 3.0))
    return BackwardStepper("c = a * b\nd = c + a")


def said_to(question, number):
    return next(((right, words) for value, right, words in question.answers if value == number), None)


def test_the_leaf_with_the_most_paths_is_asked_for_first(asking):
    assert [q.ask for q in asking.questions] == ["What arrives at a?", "What arrives at b?"] and asking.predict


def test_an_answer_is_told_which_path_it_forgot(asking):
    question = asking.questions[0]
    told = "Along the straight path comes 1; along the path through c comes 1 × 3 = 3. 1 + 3 = 4."
    assert said_to(question, 4) == (True, told) and question.told == told
    assert said_to(question, 1)[1].startswith("You forgot the path through c.")
    assert said_to(question, 3)[1].startswith("You forgot the straight path.")
    assert said_to(question, 5)[1] == "Along the path through c the slopes are multiplied, not added."
    assert said_to(question, -4)[1] == "The size is right, the sign is not."


def test_paths_that_are_multiplied_where_they_meet_are_told_so():
    a = engine.tensor(5.0, requires_grad=True)
    figure = BackwardStepper(a * 2 + a * 3 + a * 4, {"a": a}, predict=True)
    assert said_to(figure.questions[0], 24)[1].startswith("You multiplied where paths meet.")
    assert figure.predict and said_to(figure.questions[0], 9)[0]


def test_nothing_is_asked_of_tables_nor_of_what_has_very_many_paths(stepper):
    assert stepper.questions == [] and not stepper.predict
    y = x = engine.tensor(1.0, requires_grad=True)
    for _ in range(20):
        y = y + y
    assert BackwardStepper(y, {"x": x}).questions == []


def test_of_a_tensor_nothing_is_asked_unless_it_is_wanted():
    a = engine.tensor(2.0, requires_grad=True)
    assert not BackwardStepper(a * 3, {"a": a}).predict and BackwardStepper(a * 3, {"a": a}, predict=True).predict


# What is worked out in the picture


def test_an_arrow_says_what_was_multiplied_and_a_box_what_was_added(asking):
    back_arrows = {key: texts for key, (_, texts) in parts(asking.picture(), "back").items()}
    assert back_arrows == {
        "begin": ["1"], "n1-0": ["1 × 1 = 1"], "n1-1": ["1 × 1 = 1"], "n2-0": ["1 × 3 = 3"], "n2-1": ["1 × 2 = 2"],
    }  # fmt: skip
    leaf = [parts(asking.picture(k))["n4"][1][-1] for k in range(len(asking))]
    assert leaf == [*[".grad = None"] * 4, "waits: 1", "1 + 3 = 4", "1 + 3 = 4", ".grad = 1 + 3 = 4"]


def test_a_sum_is_worked_out_at_an_operation_too():
    a = engine.tensor(2.0, requires_grad=True)  # noqa: F841
    figure = BackwardStepper("h = 3 * a\nh - h * h")
    box = [parts(figure.picture(k))["n3"][1][-1] for k in range(figure.begin, len(figure))]
    assert box[-1] == "1 + (-6) + (-6) = -11"


def test_a_number_that_was_spread_over_several_gets_their_sum(asking):
    b = engine.tensor(1.0, requires_grad=True)
    figure = BackwardStepper((b + engine.tensor([1.0, 2.0, 3.0])).sum(), {"b": b})
    assert parts(figure.picture(), "back")["n2-0"][1] == ["added up: 3"]


# The steps of the backward pass


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
    for step, (incoming, into) in zip(steps[7:], seen, strict=False):
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


def test_gradients_that_reach_a_node_on_two_paths_wait_there_and_are_added_up(back):
    waiting = [step.waiting["b (6)"].short if "b (6)" in step.waiting else None for step in back]
    assert waiting == [None, "132.25", "132.25", "143.75", "143.75", "143.75", None, None]
    assert [s.grads["b"] for s in back] == ["None"] * 6 + ["143.75"] * 2


def test_a_step_says_what_it_frees_unless_the_graph_is_retained(back):
    assert [s.freed for s in back] == [
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
    step = BackwardStepper(loss).steps[5]
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
    figure = BackwardStepper(loss)
    steps = figure.steps[figure.begin :]
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
    (flow,) = BackwardStepper((w * x).sum()).steps[5].outgoing
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
    assert steps[2].rule == "backward() starts at the result, with the gradient that it was given."
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


@over("name", PROGRAMS)
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
    (flow,) = BackwardStepper((w * engine.tensor([3.0, 4.0])).sum()).steps[5].outgoing
    assert (flow.rule, flow.filled, flow.short) == ("grad * other", "[1, 1] * [3, 4]", "[3, 4]")
    many = engine.ones(50, requires_grad=True)
    (flow,) = BackwardStepper((many * engine.ones(50)).sum()).steps[5].outgoing
    assert (flow.rule, flow.filled, flow.short) == ("grad * other", "grad * other", "all 1")


# The words and the pictures


def test_the_text_of_a_step(stepper):
    assert stepper.text(3) == (
        "Step 3 of 13: AddBackward0 is written\n"
        "  Makes: h = 11.5\n"
        "  Its node: AddBackward0, which points back to SumBackward0 and b\n"
        "  Keeps: nothing: its rule needs no numbers"
    )
    assert stepper.text(9) == (
        "Step 9 of 13: AddBackward0, which made h\n"
        "  Arrives: 11.5\n"
        "  Rule: A sum passes its gradient on to both sides, unchanged.\n"
        "  Passes on: to SumBackward0 (4): grad = 11.5\n"
        "    to b (6): grad = 11.5\n"
        "  Waiting: 143.75 at b (6)\n"
        "    11.5 at SumBackward0 (4)\n"
        "  .grad so far: w.grad = None\n"
        "    b.grad = None"
    )
    assert stepper.text(-1).startswith("Step 13 of 13: AccumulateGrad of w\n")


def parts(svg, edges="made"):
    """{a node's or an edge's class: (its state, its texts)}; ``edges``: those to the result, or "back" from it."""
    found = {}
    for group in ElementTree.fromstring(svg).iter(SVG + "g"):
        names = group.get("class", "").split()
        if names[:1] == ["node"] and edges == "made" or names[:2] == ["edge", edges]:
            key = next((n for n in names if re.fullmatch(r"n\d+(-\d+)?|result|more|begin", n)), names[1])
            if names[0] == "edge" and "-" not in key and key != "begin":
                continue
            found[key] = names[-1], [(t.text or "").strip() for t in group.iter(SVG + "text")]
    return found


needs_graphviz = pytest.mark.skipif(viz.render("digraph {}", "svg") is None, reason="there is no Graphviz here")


@needs_graphviz
def test_the_picture_of_a_step_tells_what_is_done_from_what_is_to_come(stepper):
    for k in range(1, 8):
        picture = stepper.picture(stepper.begin + k)
        states = {key: state for key, (state, _) in parts(picture).items()}
        arrows = {key: state for key, (state, _) in parts(picture, "back").items()}
        for number in range(1, 8):
            assert states[f"n{number}"] == (DONE if number < k else NOW if number == k else AHEAD)
            for edge in (key for key in arrows if key.startswith(f"n{number}-")):
                assert arrows[edge] == states[f"n{number}"]
        assert states["result"] == DONE
    assert parts(stepper.picture(stepper.begin))["result"][0] == NOW


@needs_graphviz
def test_a_node_appears_in_the_step_that_makes_it(stepper):
    for k in range(stepper.begin):
        classes = [g.get("class", "").split() for g in ElementTree.fromstring(stepper.picture(k)).iter(SVG + "g")]
        nodes = {c[2]: c for c in classes if c[:2] == ["node", "operation"]}
        assert {key for key, c in nodes.items() if UNMADE not in c} == {f"n{6 - i}" for i in range(1, k + 1)}
        assert [key for key, c in nodes.items() if NEW in c] == [f"n{6 - k}"] * (k > 0)
        assert all(UNMADE in c for c in classes if c[:2] == ["node", "result"]) == (k < 5)


@needs_graphviz
def test_the_picture_shows_the_gradients_at_the_edges_and_in_the_leaves(stepper, back):
    drawn = parts(stepper.picture(), "back")
    for number, step in enumerate(back[1:6], 1):
        for i, flow in enumerate(step.outgoing):
            assert drawn[f"n{number}-{i}"][1][-1].endswith(flow.short)
    leaf = [parts(stepper.picture(k))["n6"][1][-1] for k in range(stepper.begin, 14)]
    sum_of = "132.25 + 11.5 = 143.75"
    waiting = ["waits: 132.25"] * 2 + [sum_of] * 3
    assert leaf == [".grad = None", *waiting, f".grad = {sum_of}", f".grad = {sum_of}"]


@needs_graphviz
def test_a_step_whose_node_is_not_drawn_has_a_picture_all_the_same():
    x = engine.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(1000):
        y = y * 1.0
    stepper = BackwardStepper(y, max_nodes=5)
    assert len(stepper) == 2003
    states = parts(stepper.picture(1501))
    assert {state for key, (state, _) in states.items() if re.fullmatch(r"n\d+", key)} == {DONE}
    assert "996 nodes not drawn" in states["more"][1]


@needs_graphviz
def test_the_static_picture_has_every_gradient_and_the_text_every_step(stepper):
    static = stepper.static()
    assert static["text/plain"].splitlines()[7:10] == [
        "6. backward(): passes 1 to MulBackward0 (1).",
        "7. MulBackward0, which made loss: gets 1; passes 0.5 to PowBackward0 (2); passes 132.25 to b (6).",
        "8. PowBackward0: gets 0.5; passes 11.5 to AddBackward0 (3).",
    ]
    assert len(static["text/plain"].splitlines()) == 15
    assert re.search(
        r'<img alt="The backward pass, step by step\. [^"]+" src="data:image/svg\+xml;base64,', static["text/html"]
    )
    found = [part for edges in ("made", "back") for part in parts(stepper.picture(), edges).items()]
    states = {state for key, (state, _) in found if key != "constant"}
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
    monkeypatch.delitem(sys.modules, "course.figures.stepper.widget", raising=False)
    assert stepper._repr_mimebundle_() == (stepper.static(), {})


def test_a_notebook_gets_the_widget_and_the_static_figure(stepper):
    pytest.importorskip("anywidget")
    data, _ = stepper._repr_mimebundle_()
    assert data.pop(WIDGET)["model_id"] and data == stepper.static()


def test_the_widget_has_a_panel_and_a_sentence_for_each_step(stepper):
    pytest.importorskip("anywidget")
    widget = stepper.widget()
    assert len(widget.panels) == len(widget.said) == len(widget.lit) == 14
    assert (
        widget.said[13]
        == "Step 13 of 13. AccumulateGrad of w: gets [34.5, 46]; w.grad is [34.5, 46], b.grad is 143.75."
    )
    assert "<div>w.grad = [34.5, 46]</div>" in widget.panels[13]
    json.dumps([widget.svg, widget.panels, widget.said])


def test_names_with_markup_in_them_are_shown_as_they_are():
    pytest.importorskip("anywidget")
    w = engine.tensor(1.0, requires_grad=True)
    stepper = BackwardStepper(w * 2, {"<script>": w})
    assert "<script>" not in "".join(stepper.widget().panels) + stepper.widget().svg
    assert "&lt;script&gt;.grad = 2" in stepper.widget().panels[-1]
