"""How a check names what is wrong: entry by entry, property by property, and what the attempt's text shows."""

import linecache

import numpy as np
import pytest
from over_tables import over

pytest.importorskip("cloudpickle")
pytest.importorskip("filelock")

import engine
from course.authoring import survivors
from course.classroom import grading
from course.judging import comparison, exercises, judge, trials
from course.judging.comparison import MOST_LINES
from course.judging.exercises import Exercise, Property, find
from course.judging.plain import Raised, described
from course.judging.sources import bound, calls, calls_itself, discarded, is_blank, loops
from course.learner import calls as learner
from course.learner import messages
from course.process import judged, worker
from engine import nn


def said(exercise, attempt, **options):
    verdict = judge.judge(exercise, attempt, **options)
    assert verdict.state == judge.NOT_YET
    return verdict.message


def value(answer, wrong=(), **row):
    return Exercise("05.1", 1, answer, tuple(wrong), ("", "", ""), **row)


def function(answer, *steps, **row):
    """An exercise that asks for a function; `steps`: the arguments of each, made anew in each run."""

    def trial(attempt):
        for number, make in enumerate(steps, start=1):
            yield f"step {number}", attempt, *make()

    return Exercise("05.3", 1, answer, row.pop("wrong", ()), ("", "", ""), trial=trial, **row)


# --- A value with entries


SHAPES = value(
    ((4, 3), (2, 3), (2, 4), (3,)),
    [(((4, 3), (9, 9), (9, 9), (3,)), "Both in the middle."), (((4, 3), (2, 3), (2, 5), (3,)), "A 5 for the 4.")],
    entries={
        1: (((1, 4, 3), "It is gone."), "Count again."),
        4: (((1, 1, 3), "It is gone."),),
        3: (((4,), "Narrow."),),
    },
)


@over(
    "attempt, lines",
    [
        (((1, 4, 3), (2, 3), (2, 4), (3,)), ["Entry 1: It is gone."]),
        (((1, 4, 3), (2, 3), (2, 4), (1, 1, 3)), ["Entries 1 and 4: It is gone."]),
        (((1, 4, 3), (2, 3), (4,), (3,)), ["Entry 1: It is gone.", "Entry 3: Narrow."]),
        (((7,), (2, 3), (2, 4), (3,)), ["Entry 1: Count again."]),
        (((7,), (8, 1), (2, 4), (3,)), ["Entry 1: Count again.", "Entry 2 is not right either."]),
        (((4, 3), (8, 1), (8, 8), (3,)), ["Entries 2 and 3 are not right."]),
        (((7,), (9, 9), (9, 9), (3,)), ["Entry 1: Count again.", "Entries 2 and 3: Both in the middle."]),
        (((4, 3), (8, 1), (2, 5), (3,)), ["Entry 3: A 5 for the 4.", "Entry 2 is not right either."]),
        (((4, 3), (2, 3), (2, 4), 3), ["Everything is right except how it is written.", "(3) is the number 3"]),
        (((4, 3), (8, 1), (2, 4), 3), ["Entry 2 is not right.", "(3) is the number 3"]),
        (((4, 3), (2, 3), (2, 4), 5), ["Entry 4 is not right.", "(5) is the number 5"]),
        (((4, 3), "(8, 1)", "2, 4", (3,)), ["Entry 2 is not right."]),
        ((None, (2, 3), (2, 4), (3,)), ["Entry 1: None. ("]),
        ([[4, 3], [8, 1], [2, 4], [3]], ["Entry 2 is not right."]),
        (((4, 3), (9, 9), (9, 9), (3,)), ["Both in the middle."]),
        (((4, 3),), ["It has 1 entry, and 4 are asked for."]),
    ],
)
def test_each_wrong_entry_is_named_with_its_own_mistake(attempt, lines):
    found = said(SHAPES, attempt).splitlines()
    assert len(found) == len(lines) and all(map(str.startswith, found, lines)), found


def test_shapes_may_be_lists():
    assert judge.judge(SHAPES, [[4, 3], [2, 3], [2, 4], [3]]).state == judge.CORRECT


@over(
    "attempt, says",
    [
        (("Error", "float32"), ""),
        (("error", "torch.float32"), ""),
        (("error", engine.float32), ""),
        (("ERROR", "float16"), "Entry 2: Half of it."),
        (("error", "float 32"), "Entry 2 is not right."),
    ],
)
def test_texts_are_read_as_they_were_meant(attempt, says):
    verdict = judge.judge(value(("error", "float32"), entries={2: (("float16", "Half of it."),)}), attempt)
    assert (verdict.state, verdict.message) == (judge.NOT_YET if says else judge.CORRECT, says)


@over(
    "attempt, right",
    [
        ((engine.tensor(7.0), engine.tensor([2.0])), True),
        (engine.tensor([7, 2]), True),
        (engine.tensor([[7.0, 2.0]]), False),
        ((engine.tensor(7.0), engine.tensor([2.0, 2.0])), False),
        ((engine.tensor(7.0), engine.tensor(3.0)), False),
        (("7", 2.0), False),
    ],
)
def test_numbers_may_still_be_in_their_box(attempt, right):
    assert (judge.judge(value((7.0, 2.0)), attempt).state == judge.CORRECT) == right


@over(
    "attempt, right",
    [
        (engine.tensor([[3.0, 2.0], [1.0, 1.0]]), True),
        (np.array([[3, 2], [1, 1]]), True),
        (engine.tensor([[3.0, 1.0], [2.0, 1.0]]), False),
        (engine.tensor([3.0, 2.0, 1.0, 1.0]), False),
    ],
)
def test_a_list_of_rows_may_be_a_table(attempt, right):
    assert (judge.judge(value(((3.0, 2.0), (1.0, 1.0))), attempt).state == judge.CORRECT) == right


def test_of_which_kind_an_entry_is_is_not_given_away():
    mixed = value(((3, 4), "error", (4, 4)))
    assert said(mixed, ("error", "error", (4, 4))) == "Entry 1 is not right."
    assert said(mixed, ((7, 7), "a", (4, 9))) == "None of the entries is right yet."
    assert said(mixed, ((3, 4), "error", None)).startswith("Entry 3: None. (")


@over(
    "attempt, says",
    [
        ({"a", "b", "c"}, "b is a result."),
        ({"a", "b"}, "b is a result.\nBesides, 1 is missing."),
        ({"b", "x"}, "b is a result.\nBesides, 1 is too many and 2 are missing."),
        ({"a", "x"}, "It has 1 too many, and 1 missing."),
    ],
)
def test_of_a_set_each_element_is_named(attempt, says):
    assert said(value({"a", "c"}, entries={"b": "b is a result."}), attempt) == says


def test_of_a_dict_each_key_is_named():
    asked = value({"w": 2.0, "b": 1.0, "x": 0.0}, entries={"w": ((1.0, "That is b's."),)})
    assert said(asked, {"w": 1.0, "b": 3.0, "x": 0.0}) == "Entry 'w': That is b's.\nEntry 'b' is not right either."
    assert said(asked, {"w": 2.0, "x": 0.0}) == "Entry 'b': it is missing."
    assert said(asked, {"w": 2.0, "b": 1.0, "x": 0.0, "y": 0.0}) == "Entry 'y': it is one too many."


def test_several_sentences_are_paragraphs_in_a_notebook():
    plain, page = messages.message("Exercise 01.1: not yet.", "First.\nSecond `x`.", [], "", "warn")
    assert "First.\nSecond `x`." in plain and page.count("<p") == 2 and "<code>x</code>" in page


# --- Properties


def trained(step):
    did = {"losses": step(3), "steps": len(step(2))}
    return did


def counted(attempt):
    yield "three steps", trained, attempt


LACKING = Exercise(
    "05.3",
    1,
    lambda n: [0.5] * n,
    ((lambda n: [0.0] * n, "All are zero."),),
    ("", "", ""),
    trial=counted,
    properties=(
        Property(lambda n: [0.5], lambda did: did.result["steps"] == 2, "A step for each."),
        Property(
            lambda n: [engine.tensor(0.5)] * n, lambda did: isinstance(did.result["losses"][0], float), "A number."
        ),
        Property(lambda n: [0.5 for _ in range(n)], lambda did: not loops(did.source), "Without a loop."),
    ),
)


def test_two_mistakes_hear_two_sentences():
    assert said(LACKING, lambda n: [0.5]) == "A step for each."
    assert said(LACKING, lambda n: [engine.tensor(0.5)]) == "A step for each.\nA number."
    assert said(LACKING, lambda n: [0.0] * n) == "All are zero."  # a row that fits as a whole speaks alone


def test_an_answer_that_lacks_a_property_is_not_right_even_if_its_results_are():
    source = "def f(n):\n    return [0.5 for _ in range(n)]"
    assert judge.judge(LACKING, lambda n: [0.5] * n, source="def f(n):\n    return [0.5] * n").state == judge.CORRECT
    verdict = judge.judge(LACKING, lambda n: [0.5] * n, source=source)
    assert (verdict.state, verdict.message) == (judge.NOT_YET, "Without a loop.")
    assert verdict.rows[0] == ("Input", "three steps")


def test_a_property_sees_what_the_arguments_hold():
    asked = function(
        lambda model, x: model(x),
        lambda: (nn.Linear(1, 1), engine.ones(1)),
        properties=(Property(None, lambda did: did.after["0.training"], "Left in eval mode."),),
    )
    assert said(asked, lambda model, x: model.eval()(x)) == "Left in eval mode."


def test_a_property_that_does_not_apply_says_nothing():
    assert said(LACKING, lambda n: 3) != ""  # `len(3)` fails in the check's own step: no KeyError comes out of it


# --- What has been understood


def test_after_correct_it_is_said_what_has_been_understood(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("UNDERTORCH_PROGRESS", str(tmp_path / "progress.json"))
    row = find("05.1")._replace(understood="Along two paths come two slopes.")
    monkeypatch.setattr(learner, "find", lambda key: row)
    learner.check("05.1", (7.0, 2.0))
    assert capsys.readouterr().out.splitlines() == [
        "Exercise 05.1: correct.",
        "1 point.",
        "Along two paths come two slopes.",
    ]


# --- A result that is thrown away


def in_a_function(*lines):
    return "def f(x, y):\n" + "".join(f"    {line}\n" for line in lines)


@over(
    "line, says",
    [
        ("x.float()", "Line 2, `x.float()`: `float` does not change `x`. It makes something new"),
        ("x.clone()", "Line 2, `x.clone()`: `clone` does not change"),
        ("y.to(x.device)", "Line 2, `y.to(x.device)`: `to` does not change `y`"),
        ("x.sub(32)", "`sub_` would change `x` itself"),
        ("x.permute(0, 2, 1).contiguous()", "`contiguous` does not change"),
        ("x[0].mul(2)", "`mul` does not change"),
        ("a.astype(float)", "`astype` does not change"),
        ("engine.relu(x)", "`relu` makes a new tensor"),
        ("x - 32", "this works out a result and throws it away"),
        ("x == 5", "A name is given by a single `=`."),
        ("engine.no_grad()", "Write `with engine.no_grad():`"),
        ("sorted(x)", "`sorted` gives a result"),
        ("new = x.clone()", "Line 2 makes `new`, and nothing uses it after that."),
    ],
)
def test_a_result_that_is_thrown_away_is_found(line, says):
    assert says in discarded(in_a_function(line, "return x"))


@over(
    "line",
    [
        "x.sub_(32)",
        "x.clone().mul_(2)",
        "loss.backward()",
        "x.retain_grad()",
        "seen.add(x)",
        "model.to(y)",
        "self.net.float()",
        "found.append(x)",
        "optimizer.step()",
        "engine.manual_seed(0)",
        "engine.add(x, y, out=x)",
        "'a text'",
        "...",
        "flat = x.view(-1); flat += 1",
        "flat = x.view(-1); flat[0] = 1",
        "names.sort()",
        "plot.scatter(x, y)",
        "y = x.float()",
        "next(x).clone()",
        "x.pop().clone()",
        "global kept; kept = x.clone()",
        "a = b = x.clone()",
    ],
)
def test_what_does_something_is_not_taken_for_a_result(line):
    assert discarded(in_a_function(*line.split("; "), "return y")) == ""


def test_a_return_is_missed_in_an_inner_function_and_not_where_nothing_need_be_given():
    hook = in_a_function("def hook(g):", "    g.clamp(0, 1)", "x.register_hook(hook)", "return x")
    assert discarded(hook).endswith("makes a result, and nothing keeps it. Is a `return` missing?")
    assert "does not change `x`" in discarded(in_a_function("x.sub(1)"), {"x": "tensor"})


def test_arguments_are_known_by_what_was_given():
    assert discarded(in_a_function("x.add(1)"), {"x": "tensor"}) and not discarded(
        in_a_function("x.add(1)"), {"x": "set"}
    )
    assert not discarded(in_a_function("x.float()"), {"x": "module"})
    asked = function(lambda m, x: m(x), lambda: (nn.Linear(1, 1), engine.ones(1)))
    assert said(asked, lambda m, x: x, source=in_a_function("m.float()").replace("x, y", "m, x")) == ""
    assert said(asked, lambda m, x: x, source=in_a_function("x.add(1)").replace("x, y", "m, x")).startswith("Line 2")


def test_the_line_is_told_instead_of_the_advice_to_do_what_was_done():
    lines = ["x.clone()", "x[x < 0] = 0.0", "return x"]
    source = "def f(x):\n" + "".join(f"    {line}\n" for line in lines)
    names: dict = {}
    exec(source, names)
    assert "has changed" in said(find("01.4"), names["f"])
    assert said(find("01.4"), names["f"], source=source).startswith("Line 2, `x.clone()`")


def test_a_right_answer_may_throw_away_what_it_likes():
    source = "def f(t):\n    t.clone()\n    return t.clamp(min=0)"
    assert judge.judge(find("01.4"), lambda t: t.clamp(min=0), source=source).state == judge.CORRECT


def test_the_whole_cell_goes_along_to_the_check():
    source = "# the first line\ndef f(t):\n    t.clone()\n    t[t < 0] = 0.0\n    return t\n"
    names: dict = {"__name__": "__main__"}
    exec(compile(source, "<a cell of checks>", "exec"), names)
    linecache.cache["<a cell of checks>"] = (len(source), None, source.splitlines(keepends=True), "<a cell of checks>")
    assert learner._source(names["f"]) == source
    answer = worker.ask(find("01.4"), names["f"], source=learner._source(names["f"]))
    assert answer["message"].startswith("Line 3, `t.clone()`")


def test_text_can_be_asked_for_loops_calls_and_recursion():
    source = "def f(x):\n    def walk(n):\n        return walk(n - 1)\n    return [walk(a) for a in x.backward()]"
    assert loops(source) and calls(source, "backward") and calls_itself(source)
    assert not loops("def f(x):\n    return x") and not calls("", "backward")
    assert not calls_itself("def backward(node):\n    node.backward()")
    assert calls_itself("def f(n):\n    return g(n)\n\ndef g(n):\n    return f(n)")


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ("for x in ones(3):\n    print(f(x) == jacrev(g)(x))", False),
        ("same = jacrev(g)(x)\nassert same == f(x)", False),
        ("x = [jacrev(g)(one) for one in ones(3)]", False),  # the function's own `x` is another one
        ("table = [jacrev(g) for g in (sin, cos)]", True),  # the function reads it
        ("both = [jacrev(g) for g in (sin, cos)]\ntable = both[0]", True),
        ("if fast:\n    table = [jacrev(g) for g in (sin, cos)]", True),
        ("table[0] = [jacrev(g) for g in (sin, cos)]", True),
        ("h = lambda x: [jacrev(g)(one) for one in x]", True),
        ("from engine.func import jacrev", None),
    ],
)
def test_what_is_tried_out_below_an_answer_is_no_part_of_it(below, said):
    source = f"def f(x):\n    return table(x)\n\n{below}"
    assert calls(source, "jacrev") is (said is not False)
    assert loops(source) is bool(said)
    assert calls(below, "jacrev")  # where nothing is defined, all of a cell counts


# --- A Module


def model():
    return nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))


def ones():
    return engine.ones(3, 2)


def in_eval(model, x):
    model.eval()
    with engine.no_grad():
        return model(x)


def left_as_found(model, x):
    result = in_eval(model, x)
    model.train()
    return result


def frozen(model, x):
    model.requires_grad_(False)
    return left_as_found(model, x)


def with_gradients(model, x):
    result = left_as_found(model, x)
    model.eval()(x).sum().backward()
    model.train()
    return result


def in_training(model, x):
    with engine.no_grad():
        model(x)  # the running mean moves
    return left_as_found(model, x)


@over(
    "attempt, names",
    [
        (in_eval, ["model.training"]),
        (frozen, ["model.0.weight.requires_grad"]),
        (with_gradients, ["model.0.weight.grad"]),
        (in_training, ["model.1.running_mean"]),
    ],
)
def test_a_module_among_the_arguments_is_compared_by_all_it_holds(attempt, names):
    asked = function(left_as_found, lambda: (model(), ones()))
    verdict = judge.judge(asked, attempt)
    assert verdict.state == judge.NOT_YET
    assert all(name in verdict.message for name in names) and "should not" in verdict.message or attempt is in_training


def test_a_module_that_is_given_back_is_compared_by_all_it_holds():
    asked = function(lambda: nn.Linear(2, 1), tuple)
    assert judge.judge(asked, lambda: nn.Linear(2, 1)).state == judge.CORRECT
    assert said(asked, lambda: nn.Linear(2, 1).eval()) == "It differs in training."
    assert said(asked, lambda: nn.Linear(2, 1).requires_grad_(False)) == (
        "It differs in weight.requires_grad and bias.requires_grad."
    )
    assert said(asked, lambda: nn.Linear(2, 2))


def test_a_module_comes_back_from_grading():
    came = judge.tried(exercises.given, nn.Linear(2, 1), False)
    again = judged.read(judged.written(judged.Reply(came, None, ""))).attempt
    assert judge.Comparison(1e-9).result(again.seen[0].result, came.seen[0].result)


# --- What is shown


def shown(exercise, attempt):
    return judge.judge(exercise, attempt).rows


@over("size", [(3,), (4, 4), (6, 2), (9, 9), (64, 64), (2, 3, 4)])
def test_never_more_than_six_lines_of_numbers(size):
    asked = function(lambda x: x * 2, lambda: (engine.ones(size),))
    for attempt in (lambda x: x * 3, lambda x: x.clone().index_fill_(0, engine.tensor(0), 7.0), lambda x: x.sum()):
        lines = [line for label, text in shown(asked, attempt) if label != "Input" for line in text.splitlines()]
        assert len([line for line in lines if "shape" not in line]) <= MOST_LINES
        assert lines


def ordered(oracle, *attempts):
    """What is said of attempts at a function of a tensor, each of which is tried with two."""
    asked = function(oracle, *numbers([1.0, 2.0], [3.0, 5.0]))
    return [said(asked, attempt) for attempt in attempts]


def added(number, result):
    def add(x):
        x += number
        return x.sum().item() * 0 + result

    return add


def test_what_is_left_behind_in_an_argument_is_told_beside_the_result():
    assert ordered(added(1, 3.0), added(2, 3.0), added(2, 7.0)) == [
        "The result is right. What it leaves behind in x is not.",
        "",
    ]
    assert ordered(lambda x: 3.0, added(1, 7.0)) == ["It changes x, which it should not."]


def test_of_many_names_two_are_told_and_the_others_counted():
    asked = function(lambda: nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)), tuple)
    frozen = said(asked, lambda: nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)).requires_grad_(False))
    assert frozen == "It differs in 0.weight.requires_grad, 0.bias.requires_grad and 2 more."


def test_of_a_list_of_results_an_entry_that_is_none_and_signs_are_told():
    assert ordered(
        lambda x: x.tolist(),
        lambda x: (-x).tolist(),
        lambda x: [None, x[1].item()],
        lambda x: [x[0].item(), None],  # a check may have found that out
        lambda x: [x[0].item(), -x[1].item()],
        lambda x: [x[0].item(), x[1].item() * 3],
        lambda x: [*x.tolist(), 1.0],
    ) == [
        "Every sign is the wrong way round; the rest is right.",
        "Entry 1 is None, where a float is asked for.",
        "",
        "Entry 2: the sign is the wrong way round; the rest is right.",
        "Entry 2: it is 3 times what it should be.",
        "It has 3 entries, and 2 are asked for.",
    ]


def refused(x):
    raise ValueError(f"not {x}")


def test_what_should_be_refused_is_told_and_another_error_is_shown_beside_the_right_one():
    asked = Exercise("05.3", 1, refused, (), ("", "", ""), trial=lambda f: iter([("f(0): ValueError", f, 0)]))
    assert said(asked, lambda x: x) == "It should have refused this with an error."
    assert said(asked, lambda x: 1 / x) == ""
    assert shown(asked, lambda x: 1 / x)[1:] == (("Got", "ZeroDivisionError: division by zero"),
                                                 ("Expected", "ValueError: not 0"))  # fmt: skip
    assert judge.judge(asked, refused).state == judge.CORRECT


@over(
    "name, message, at, gave, says",
    [
        ("RuntimeError", "No grad. Not at all.", None, "a tensor of shape (2,)",
         "It ran to its end and returned a tensor of shape (2,), which the check cannot use. (RuntimeError: No grad.)"),
        ("TypeError", "no iterator", None, "an int", "It ran to its end and returned an int, which the check cannot"),
        ("TypeError", "f() takes 1 positional argument", None, "", "The check calls it with other arguments"),
        ("TypeError", "f() takes 1 positional argument", ("a", 1), "", "It stopped with an error."),
        ("KeyError", "1 positional argument", None, "", "It stopped with an error."),
        ("TypeError", "'NoneType' object", None, "", "It gives None. Is a `return` missing?"),
        ("TypeError", "no number", None, "None", "It gives None. Is a `return` missing?"),
    ],
)  # fmt: skip
def test_of_an_error_it_is_said_whose_it_is(name, message, at, gave, says):
    assert comparison._about_an_error(Raised(name, message, at, gave)).startswith(says)


@over(
    "value, words",
    [
        (engine.ones(2, 3), "a tensor of shape (2, 3)"),
        ([1, 2], "a list of 2"),
        ((), "a tuple of 0"),
        (nn.Linear(1, 1), "a Module"),
        (1, "an int"),
        ("a", "text"),
        ({}, "a dict"),
        ({1}, "a set"),
        (None, "None"),
        (1.0, "a float"),
    ],
)
def test_what_an_attempt_gave_is_named_by_its_kind(value, words):
    assert described(value) == words


def test_of_a_large_result_the_first_differences_are_shown():
    asked = function(lambda: engine.zeros(40, 40), tuple)

    def two_ones():
        result = engine.zeros(40, 40)
        result[3, 4] = result[20, 0] = 1.0
        return result

    rows = dict(shown(asked, two_ones))
    assert rows["Got"].splitlines()[:2] == ["at [3, 4]: 1", "at [20, 0]: 1"]
    assert rows["Expected"].splitlines()[0] == "at [3, 4]: 0"
    assert "2 of 1,600 numbers differ" in rows["Got"]


def test_of_many_results_the_first_wrong_one_is_shown():
    asked = function(lambda: [engine.zeros(4, 4), engine.ones(4, 4)], tuple)
    rows = dict(shown(asked, lambda: [engine.zeros(4, 4), engine.zeros(4, 4)]))
    assert [label for label in rows if "entry 2" in label] and not [label for label in rows if "entry 1" in label]


def test_where_a_result_comes_from_is_not_shown():
    asked = function(lambda x: x.maximum(x), lambda: (engine.ones(2, requires_grad=True),))
    rows = shown(asked, lambda x: x * 2)
    assert "grad_fn" not in str(rows) and "requires_grad" not in str(rows)
    rows = dict(shown(asked, lambda x: x.detach() * 2))
    assert rows["Got"].endswith("requires_grad=False") and rows["Expected"].endswith("requires_grad=True")


# --- Coincidences


def numbers(*each):
    return [lambda values=values: (engine.tensor(values),) for values in each]


def test_a_factor_is_named_only_where_it_holds_in_all_steps_and_for_different_numbers():
    assert (
        said(function(lambda x: x, *numbers([1.0, 2.0])), lambda x: 2 * x)
        == "Each number is 2 times what it should be."
    )
    assert said(function(lambda x: x, *numbers([1.0, 2.0], [3.0, 4.0])), lambda x: 2 * x if x[0] < 2 else x + 1) == ""
    assert said(function(lambda x: x, *numbers([1.0, 1.0])), lambda x: 2 * x) == ""
    assert said(function(lambda x: x.sum().item(), *numbers([1.0])), lambda x: 2.0) == ""
    twice_each = function(lambda x: x.sum().item(), *numbers([1.0], [3.0]))
    assert said(twice_each, lambda x: 2 * x.sum().item()) == "It is 2 times what it should be."


def test_digits_that_were_lost_are_named():
    asked = function(lambda x: x / 3, *numbers([1.0, 2.0], [-4.0, 5.0]))
    assert said(asked, lambda x: (x / 3).round()) == "Right, but rounded to whole numbers. Keep all the digits."
    assert (
        said(asked, lambda x: (x / 3).round(decimals=2))
        == "Right, but rounded to 2 decimal places. Keep all the digits."
    )
    assert said(asked, lambda x: x // 3) == "Right, but what stands after the point is cut off. Keep it."
    assert said(asked, lambda x: (x / 3).trunc()) == "Right, but what stands after the point is cut off. Keep it."
    assert said(asked, lambda x: (x / 3).round() if x[0] > 0 else x) == ""
    assert said(function(lambda x: x / 3, *numbers([1.0, 0.4])), lambda x: 0 * x) == ""  # zeros may have other causes


def test_the_opposite_order_is_named_only_where_it_can_be_no_chance():
    asked = function(lambda x: [True, True, False], *numbers([1.0]))
    assert said(asked, lambda x: [False, True, True]) != "The entries are right, in the opposite order."
    asked = function(lambda x: x.tolist(), *numbers([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
    assert said(asked, lambda x: x.tolist()[::-1]) == "The entries are right, in the opposite order."
    assert (
        said(asked, lambda x: x.tolist()[::-1] if x[0] < 2 else [0.0] * 3)
        != "The entries are right, in the opposite order."
    )


def test_true_for_false_is_named_only_where_there_are_both():
    asked = function(lambda x: x > 1, *numbers([1.0, 2.0]))
    assert said(asked, lambda x: x <= 1) == "True and False have changed places."
    assert said(function(lambda x: x > 1, *numbers([2.0, 2.0])), lambda x: x <= 1) == ""


# --- Random numbers


def test_what_an_attempt_draws_changes_nothing_of_what_the_next_step_is_given():
    def drawing(x):
        engine.rand(3), np.random.rand()
        return 2 * x

    asked = function(lambda x: 2 * x, *2 * [lambda: (engine.randn(2) + np.random.rand(),)])
    assert judge.judge(asked, drawing).state == judge.CORRECT


# --- A function that remembers


def test_a_default_that_remembers_is_named():
    def collected(x, seen=[]):  # noqa: B006
        seen.append(x.item())
        return list(seen)

    asked = function(lambda x: [x.item()], *numbers(1.0, 2.0))
    assert said(asked, collected).startswith("Your function remembers. The default value of `seen` is made once")


COLLECTED: list = []


def test_a_list_outside_that_remembers_is_named():
    def collected(x):
        COLLECTED.append(x.item())
        return list(COLLECTED)

    asked = function(lambda x: [x.item()], *numbers(1.0, 2.0))
    assert said(asked, collected).startswith("Your function remembers. `COLLECTED` stands outside of it")


def collected_beside(x, *, seen=[]):  # noqa: B006
    seen.append(x.item())
    return list(seen)


def test_what_a_default_by_name_or_that_of_a_helper_remembers_is_named():
    asked = function(lambda x: [x.item()], *numbers(1.0, 2.0))
    own, others = said(asked, collected_beside), said(asked, lambda x: collected_beside(x))
    assert own == others and own.startswith("Your function remembers. The default value of `seen` is made once")


def test_what_remembers_and_is_right_is_right():
    def cached(x, known={}):  # noqa: B006
        return known.setdefault(x.item(), [x.item()])

    assert judge.judge(function(lambda x: [x.item()], *numbers(1.0, 2.0)), cached).state == judge.CORRECT


# --- The check's own errors


def test_an_error_of_the_checks_own_step_is_not_blamed_on_the_learner():
    verdict = judge.judge(find("08.4"), lambda *arguments: 3)
    assert verdict.message == "It ran to its end and returned an int, which the check cannot use."
    assert dict(verdict.rows)["Got"] == "an int"


def test_a_function_with_other_arguments_is_told():
    assert "calls it with other arguments than it takes" in said(find("05.3"), lambda x: x)


# --- Not attempted


def test_of_code_to_repair_it_is_said_where_to_repair_it():
    text = learner._untouched("05.4")
    assert text.startswith("`go_back` is as it came.") and "three dots" in text
    assert "three dots" not in learner._untouched("05.2") and "three dots" not in learner._untouched("05.1")


# --- Helpers for trials


def test_what_an_attempt_uses_is_counted_and_put_back():
    was = engine.func.jacrev
    found = trials.using(
        ["func.jacrev", "Tensor.backward"], lambda x: engine.func.jacrev(lambda a: a * a)(x), engine.ones(1)
    )
    assert found["used"] == ["func.jacrev"] and engine.func.jacrev is was
    scope = {"rows": was}
    exec("def attempt(x): return rows(lambda a: a * a)(x)", scope)
    assert trials.using(["func.jacrev"], scope["attempt"], engine.ones(1))["used"] == ["func.jacrev"]
    assert scope["rows"] is was


def test_a_function_that_is_given_counts_its_calls():
    f = trials.Counted(lambda x: x + 1)
    assert f(2.0) == 3.0 and f(engine.ones(1)).item() == 2.0
    assert f.calls == 2 and f.kinds == [["float"], ["Tensor"]]


def test_graphs_that_are_alive_at_once_are_counted():
    one, other = nn.Linear(1, 1), nn.Linear(1, 1)
    few, many = trials.Alive(one), trials.Alive(other)
    for _ in range(3):
        one(engine.ones(1)).sum().backward()
    kept = [other(engine.ones(1)) for _ in range(3)]
    assert (few.most, many.most, len(kept)) == (1, 3, 3)


def test_what_poor_inputs_let_pass_is_found():
    poor = function(lambda x: x.mean(), *numbers([1.0, 2.0]))
    fractions, large = [1.3, -3.25, 0.0, 0.1], [70_000.0, 2049.0, -70_001.0]
    good = function(lambda x: x.mean(), *numbers(fractions, large))
    assert {"cuts off the fractions of what it gets", "takes no notice of the signs", "works in float16"} <= set(
        survivors.survivors(poor)
    )
    assert not {"cuts off the fractions of what it gets", "takes no notice of the signs", "works in float16"} & set(
        survivors.survivors(good)
    )


@over(
    "asked, attempt, share",
    [
        (value((1, 2, 3, 4)), (1, 2, 3, 5), 3 / 4),
        (value((1, 2, 3, 4)), (1, 2, 3, 4), 1),
        (value((1, 2, 3, 4)), (2, 2, 2, 2), 0),  # one is right by chance
        (value((1,)), (1,), 1),
        (value((1, 2)), (1,), 0),
        (value((1, 2)), (1, ...), 0),
        (value((1, 2)), {1, 2}, 0),
        (value(((4, 3), (3,))), ((4, 4), 3), 1 / 2),
        (value({"a", "b"}), {"b", "c"}, 1 / 3),
        (value({"a": 1, "b": 2}), {"a": 1, "b": 3}, 1 / 2),
        (value({"a": 1, "b": 2}), {"a": 1, "b": 2, "c": 3}, 2 / 3),
        (value(3), 4, 0),
        (function(lambda x: x.item(), *numbers(1.0, 2.0, 3.0)), lambda x: x.item() if x < 3 else 0.0, 2 / 3),
        (function(lambda x: x.item(), *numbers(1.0, 2.0, 3.0)), lambda x: x.item() if x < 3 else 1 / 0, 2 / 3),
        (function(lambda x: x.item(), *numbers(1.0, 2.0, 3.0)), lambda x: 1.0, 0),
        (function(lambda x: 1.0, *numbers(1.0, 2.0)), lambda x: 1.0, 1),
        (function(lambda x: x.item(), *numbers(1.0)), 17, 0),
    ],
)
def test_what_share_of_an_answer_is_right(asked, attempt, share):
    came = judge.tried(judge.trial_of(asked, False), attempt, callable(asked.answer))
    assert judge.share(asked, came, judge.expected(asked)) == pytest.approx(share)


@over(
    "source, names",
    [
        ("x = 1\ny += x", {"x", "y"}),
        ("a, (b, *c) = d", {"a", "b", "c"}),
        ("import a.b as c, d\nfrom e import f", {"c", "d", "f"}),
        ("def f(x):\n    y = x\nclass A:\n    pass\nasync def g(): ...", {"f", "y", "A", "g"}),
        ("%time x = f()\n!ls", {"x"}),
        ("print(x)", set()),
        ("x = ", set()),
    ],
)
def test_the_names_that_a_cell_binds(source, names):
    assert bound(source) == names


CAME = "def f(x):\n    ...\n\ndef given(x):\n    return x"


@over(
    "cells, blank",
    [
        ([CAME], True),
        ([CAME.replace("...", "pass") + "\n'a text'"], True),
        (["def f(x):\n    'What it is.'"], True),
        (["%%time\n" + CAME], True),
        (["", "# later"], True),
        ([CAME.replace("...", "return 1")], False),
        ([CAME.replace("return x", "return -x")], False),
        ([CAME, "f = len"], False),
        (["f = len"], False),
        (["def f(:"], False),
    ],
)
def test_an_answer_whose_functions_do_nothing_is_blank(cells, blank):
    assert is_blank(cells, CAME) == blank


def test_what_fails_in_the_hidden_steps_alone_is_told_without_them():
    def trial(f):
        yield "f(1)", f, 1
        yield "", f, 0

    asked = Exercise("05.3", 1, lambda x: x > 0, (), ("", "", ""), trial=trial)
    assert judge.judge(asked, lambda x: True).state == judge.CORRECT
    verdict = judge.judge(asked, lambda x: True, hidden=True)
    assert verdict.message.startswith("Right for the inputs that were shown") and not verdict.rows


def test_grading_knows_the_text_of_the_answer():
    source = "def warmest_day(readings):\n    readings.float()\n    return readings.mean(dim=0).argmax().item()"
    answer = grading.decide(grading.Check("01.3", "warmest_day", False, [source], [source]))
    assert answer["message"].startswith("Line 2, `readings.float()`")


def test_what_a_step_made_of_an_answer_is_not_taken_for_the_answer():
    def gradients(attempt, x):
        attempt(x)
        return [x.grad if x.grad is not None else "nothing"]

    def noted(attempt, x):
        attempt(x)
        return [x.grad]

    def leaf():
        return engine.ones(1, requires_grad=True)

    def trial(helper):
        return lambda attempt: iter([("x = 1", helper, attempt, leaf())])

    def backward(x):
        (x * x).sum().backward()
        return x

    asked = function(backward)
    assert "text" not in said(asked._replace(trial=trial(gradients)), lambda x: x)
    assert "return" not in said(asked._replace(trial=trial(noted)), lambda x: x)
    assert said(asked._replace(trial=trial(noted)), lambda x: None) == "It gives None. Is a `return` missing?"


def test_a_tensor_for_a_number_does_not_hide_that_the_number_is_wrong():
    asked = function(lambda x: x.sum().item(), *numbers([1.0, 2.0]))
    assert said(asked, lambda x: x.sum()).endswith("takes the number out.")
    assert said(asked, lambda x: x.mean()).endswith("And the number in it is not the right one.")


def test_a_function_whose_code_was_replaced_is_judged_like_any_other():
    def given(x, factor=2.0):
        return x * factor

    def replaced(*arguments):
        return arguments[0] * 2.0

    given.__code__ = replaced.__code__
    assert judge.judge(function(lambda x: x * 2, *numbers([1.0, 3.0])), given).state == judge.CORRECT
