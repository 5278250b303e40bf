"""Pictures of the engine that learners write in lesson 11, and what the lesson claims of it."""

import re
from xml.etree import ElementTree

import nbformat
import numpy as np
import pytest

import engine
from course.base.notebooks import ROOT
from course.figures import BackwardStepper, draw
from course.figures.stepper.svg import AHEAD, DONE, NOW
from course.judging import exercises

CHECKS = exercises.checks("11")
add, begun, by_number, mul = CHECKS.add, CHECKS.begun, CHECKS.by_number, CHECKS.mul
sub, total = CHECKS.sub, CHECKS.total


class Var(CHECKS.Var):
    """One that says what made it, as the lesson's does."""

    op = ""


def with_ops():
    """Leaves a and b, c = a * b, d = c + a."""
    a, b = Var(2.0), Var(3.0)
    c = mul(a, b)
    d = add(c, a)
    c.op, d.op = "mul", "add"
    return a, b, c, d


@pytest.fixture
def lesson():
    """The names that the lesson's cells define, but for those of the course and those that fail on purpose."""
    names: dict = {}
    for cell in nbformat.read(ROOT / "notebooks/11_build_autograd.ipynb", as_version=4).cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code" and not {"engine-only", "raises-exception"} & set(tags):
            exec(cell.source, names)
    return names


def parts(svg):
    """{class of a node or an edge: (its state, its texts)} of a stepper's picture."""
    found = {}
    for group in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        if match := re.search(r"\b(n\d+(?:-\d+)?)\b.*?\b(done|now|ahead|all)?$", group.get("class", "")):
            found[match[1]] = match[2], ["".join(t.itertext()) for t in group.iter("{http://www.w3.org/2000/svg}text")]
    return found


# --- draw


def test_the_graph_in_words_names_each_var_its_value_and_what_it_was_made_of():
    a, b, c, d = with_ops()
    assert repr(draw(d)).splitlines() == [
        "4 Vars, 2 leaves among them",
        "d = 8: add of c and a",
        "c = 6: mul of a and b",
        "b = 3: a leaf",
        "a = 2: a leaf",
    ]
    assert "result" in repr(draw(d, {"result": d}))


def test_shapes_and_grads_are_shown_where_there_are_any():
    x = Var(np.ones((4, 3)))
    x.grad = np.full((4, 3), 2.0)
    assert "x = all 1  (4, 3); grad all 2  (4, 3): a leaf" in repr(draw(total(x)))


def test_a_var_that_is_used_twice_has_one_box_and_two_arrows():
    a = Var(5.0)
    svg = draw(mul(a, a)).svg
    assert svg.count('class="node leaf"') == 1 and svg.count('class="edge ') == 2


def test_a_graph_that_is_too_large_for_a_picture_is_refused_without_recursion():
    with pytest.raises(ValueError, match="^a picture holds 100 Vars at most, and these are 3002$"):
        draw(CHECKS.chain(3000))


# --- the stepper of their own walk


def test_the_steps_are_those_of_the_learners_own_walk():
    a, b, c, d = with_ops()
    stepper = BackwardStepper(d, walk=begun())
    assert [step.node for step in stepper.steps] == ["backward()", "add", "mul", "leaf a", "leaf b"]
    assert [step.made for step in stepper.steps[1:3]] == ["d", "c"]
    assert [{leaf: f.short for leaf, f in step.waiting.items()} for step in stepper.steps] == [
        {}, {"c": "1", "a": "1"}, {"a": "1 + 3", "b": "2"}, {"b": "2"}, {}
    ]  # fmt: skip
    assert stepper.steps[-1].grads == {"a": "4", "b": "2"}
    assert stepper.steps[-2].incoming[0].short == "4"


def test_a_walk_that_is_wrong_is_shown_as_it_is():
    def as_met(root):
        arrived = {root: 1.0}
        for v in CHECKS.as_met(root):
            g = arrived.pop(v)
            if not v.parents:
                v.grad = g
            for parent, rule in zip(v.parents, v.rules, strict=True):
                arrived[parent] = arrived.get(parent, 0.0) + rule(g)

    a, b = Var(2.0), Var(3.0)
    c = mul(a, b)
    stepper = BackwardStepper(add(c, a), walk=as_met)  # the last parent first: a has its turn before c
    assert [step.node for step in stepper.steps][2] == "leaf a" and stepper.steps[-1].grads["a"] == "1"


def test_the_graph_is_as_before_afterwards_also_if_the_walk_fails():
    a, b, c, d = with_ops()
    a.grad = 7.0
    rules = c.rules, d.rules
    BackwardStepper(d, walk=begun())
    assert (c.rules, d.rules) == rules and a.grad == 7.0 and b.grad is None
    with pytest.raises(KeyError):
        BackwardStepper(d, walk=begun(begin=lambda root: {}))
    assert (c.rules, d.rules) == rules and a.grad == 7.0


def test_the_picture_of_a_step_lights_up_its_var_and_shows_what_waits():
    a, b, c, d = with_ops()
    stepper = BackwardStepper(d, walk=begun())
    drawn = parts(stepper.picture(2))
    assert [drawn[f"n{n}"][0] for n in (1, 2, 3, 4)] == [DONE, NOW, AHEAD, AHEAD]
    assert drawn["n3"][1][-1] == "waiting: 1 + 3" and drawn["n2-0"][1] == ["\N{NO-BREAK SPACE}g = 3\N{NO-BREAK SPACE}"]
    assert parts(stepper.picture())["n3"][1][-1] == "grad 4"


def test_the_words_of_the_steps_need_no_picture(monkeypatch):
    monkeypatch.setattr("engine.viz.dot.render", lambda *_: None)
    a, b, c, d = with_ops()
    stepper = BackwardStepper(d, walk=begun())
    assert stepper.picture(1) is None
    assert stepper.static()["text/plain"].splitlines()[2:4] == [
        "1. add, which made d: gets 1; passes 1 to c; passes 1 to a.",
        "2. mul, which made c: gets 1; passes 3 to a; passes 2 to b.",
    ]


# --- what the lesson claims


def test_two_orders_that_look_alike_give_four_and_one(lesson):
    Var, root_first = lesson["Var"], []

    def as_met(root):
        order, seen = [], set()

        def visit(v):
            if v not in seen:
                seen.add(v)
                order.append(v)
                for parent in v.parents:
                    visit(parent)

        visit(root)
        root_first.append(order[0] is root)
        return order

    for walk, slope in ((lesson["from_root"], 4.0), (as_met, 1.0)):
        lesson["from_root"] = walk
        a, b = Var(2.0), Var(3.0)
        lesson["backward"](lesson["add"](a, lesson["mul"](a, b)))
        assert (a.grad, b.grad) == (slope, 2.0)
    assert root_first == [True]


def test_a_row_times_a_square_table_gives_one_number_for_four_knobs(lesson):
    x, y = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    assert lesson["matmul_rules"][1](np.ones(2), x @ y, x, y) == 3.0


def test_about_a_thousand_calls_are_possible_and_a_chain_of_five_thousand_is_not(lesson):
    def chain(length):
        y = lesson["Var"](1.0)
        for _ in range(length):
            y = y + lesson["Var"](1.0)
        return y

    lesson["backward"](chain(500))
    with pytest.raises(RecursionError):
        lesson["backward"](chain(5000))
    x = engine.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + 1.0
    y.backward()
    assert x.grad == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_learners_slopes_are_those_of_the_real_engine_to_ten_digits(lesson, seed):
    engine.manual_seed(seed)
    knobs = [engine.randn(*shape, dtype=engine.float64, requires_grad=True) for shape in [(2, 4), (4,), (4, 1), (1,)]]
    mine = [lesson["Var"](t.detach().numpy()) for t in knobs]
    x = lesson["inputs"]
    lesson["backward"](lesson["network"](x, *mine).sum())
    lesson["network"](engine.tensor(x.value), *knobs).sum().backward()
    for v, t in zip(mine, knobs, strict=True):
        np.testing.assert_allclose(v.grad, t.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_the_first_part_that_is_delivered_is_in_an_array_of_its_own_in_the_lesson_and_at_the_engines_leaves(lesson):
    x, y = lesson["Var"]([1.0, 2.0]), lesson["Var"]([3.0, 4.0])
    lesson["backward"]((x + y).sum())
    assert not np.shares_memory(x.grad, y.grad)
    a, b = (engine.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    (a + b).backward(engine.ones(2))
    assert not np.shares_memory(a.grad.numpy(), b.grad.numpy())


def test_the_names_in_the_table_of_old_and_new_are_in_the_engine():
    text = (ROOT / "course/lessons/11_build_autograd/lesson.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| .*? \| (.*?) \| .*\|$", text.partition("## Open the engine")[2].partition("```")[0])[2:]
    files = ["core/tensor.py", "core/graph.py", "core/backward.py", "core/linear.py", "ops/rows.py"]
    source = "\n".join((ROOT / "engine" / file).read_text(encoding="utf-8") for file in files)
    names = [name.rpartition(".")[2] for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    assert len(names) >= 10 and [name for name in names if not re.search(rf"\b{name}\b", source)] == []


def test_by_number_is_an_order_in_which_nothing_is_too_early():
    a, b, c, d = with_ops()
    assert by_number(d) == [d, c, b, a] and by_number(sub(a, a)) != [a]
