"""The drawing of compiled functions: what text, DOT and picture say of the steps after each pass of the compiler."""

import gc
import re
import shutil
import weakref
from xml.etree import ElementTree

import pytest
from test_viz import contrast, edges

import engine
from engine import viz
from engine.compiler import explain

SVG = "{http://www.w3.org/2000/svg}"
STAGES = ("captured", "joined", "needed", "fused")


def example(x, w):
    x.exp()
    bent = (x * w).tanh()
    return bent * (x * w)


def drawn(*size, **options):
    engine.manual_seed(0)
    compiled = engine.compile(example)
    compiled(engine.rand(*size), engine.rand(*size, requires_grad=True))
    return viz.compiled(compiled, **options)


def steps(text):
    """{number of a step: what it does}."""
    return dict(re.findall(r"(?m)^ +(\d+)\. (.*?): ", text))


def test_the_text_lists_the_steps_with_shapes_and_lines():
    text = re.sub(r"test_viz_compiled.py:\d+", "LINE", drawn(2, 3, stage="captured", part="forward").text)
    assert text == (
        "example, captured (all that was written down): 5 steps forward.\n"
        "0. input x: (2, 3)\n"
        "1. input w: (2, 3)\n"
        "forward:\n"
        "  2. exp([0]): (2, 3); LINE: x.exp()\n"
        "  3. [0] * [1]: (2, 3); LINE: bent = (x * w).tanh()\n"
        "  4. tanh([3]): (2, 3); called bent\n"
        "  5. [0] * [1]: (2, 3); LINE: return bent * (x * w)\n"
        "  6. [4] * [5]: (2, 3)\n"
        "result: 6"
    )


def test_each_pass_takes_away_what_it_should():
    found = [steps(drawn(2, 3, stage=stage, part="forward").text) for stage in STAGES]
    captured = {"2": "exp([0])", "3": "[0] * [1]", "4": "tanh([3])", "5": "[0] * [1]", "6": "[4] * [5]"}
    joined = {k: v for k, v in captured.items() if k != "5"} | {"6": "[4] * [3]"}
    needed = {k: v for k, v in joined.items() if k != "2"}
    assert found == [captured, joined, needed, needed]


def test_the_arrows_are_the_uses_of_each_step():
    g = drawn(2, 3, stage="captured", part="forward")
    pairs = [(a, n) for n, text in steps(g.text).items() for a in set(re.findall(r"\[(\d+)\]", text))]
    assert edges(g.dot) == {(f"n{a}", f"n{n}"): 1 for a, n in pairs} | {("n6", "r0"): 1}


def test_a_chain_on_large_arrays_is_one_box_and_a_small_one_is_none():
    large, small = drawn(400, 400), drawn(2, 3)
    boxes = re.findall(r"subgraph cluster_\d+ \{\n(.*?)\n    \}", large.dot, re.DOTALL)
    assert len(boxes) == 2 and "one pass over (400, 400)" in large.text
    assert "n3 [" in boxes[0] and "n4 [" in boxes[0] and "n6 [" in boxes[0]
    assert "one pass" not in small.dot and "one pass" not in small.text


def test_the_backward_pass_and_what_is_kept_for_it():
    g = drawn(2, 3)
    kept = set(re.search(r"kept for backward: (.*)", g.text)[1].split(", "))
    dashed = set(re.findall(r"n(\d+) -> n\d+ \[style=dashed", g.dot))
    assert dashed and dashed <= kept
    assert "gradient of w: " in g.text and "gradient of x" not in g.text
    assert "forward:" not in drawn(2, 3, part="backward").text


def test_the_operands_of_a_picture_are_those_that_ran():
    """A check that has nothing to do with the drawing: the steps of the text, done by hand, give the result."""
    engine.manual_seed(0)
    x, w = engine.rand(2, 3), engine.rand(2, 3)
    for stage in STAGES:
        g = viz.compiled(explain(example)(x, w), stage)
        values = {0: x, 1: w}
        for n, text in steps(g.text).items():
            text = re.sub(r"\[(\d+)\]", r"values[\1]", text)
            values[int(n)] = eval(text, {"exp": engine.exp, "tanh": engine.tanh, "values": values})
        result = int(re.search(r"(?m)^result: (\d+)", g.text)[1])
        assert engine.equal(values[result], example(x, w))


def test_a_write_in_place_comes_before_what_reads_it_afterwards():
    def written(x):
        y = x * 2
        y += 1
        return y.exp()

    text = viz.compiled(explain(written)(engine.ones(3)), "captured").text
    *_, write, read = re.findall(r"(?m)^ +(\d+)\. (.*?)(?:: .*)?$", text)
    assert write[0] != "1" and read[1] == f"exp([{write[0]}])"


def test_several_results_and_constants_are_named():
    g = viz.compiled(explain(lambda x: (x + 1, x * engine.tensor([0.5, 2.0])))(engine.ones(2)))
    assert "result 1: 1" in g.text and "result 2: 3" in g.text and "[0.5, 2]" in g.text


def test_what_cannot_be_drawn_says_why():
    compiled = engine.compile(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(ValueError, match="nothing is captured yet: call the compiled function once"):
        viz.compiled(compiled)
    compiled(engine.ones(2))
    with pytest.raises(ValueError, match="nothing is compiled: a branch depends on a value"):
        viz.compiled(compiled)
    with pytest.raises(TypeError, match="compiled.. draws what compile.. or explain.. gave, but got function"):
        viz.compiled(example)
    with pytest.raises(ValueError, match="stage must be one of 'captured', 'joined', 'needed', 'fused', but got 'end'"):
        drawn(2, stage="end")
    with pytest.raises(ValueError, match="part must be None, 'forward' or 'backward', but got 'both'"):
        drawn(2, part="both")


def test_without_fusion_there_are_three_passes():
    compiled = engine.compile(example, options={"fuse": False})
    compiled(engine.ones(2), engine.ones(2))
    with pytest.raises(ValueError, match="'captured', 'joined', 'needed', but got 'fused'"):
        viz.compiled(compiled, "fused")
    assert viz.compiled(compiled).text == viz.compiled(compiled, "needed").text


def test_a_capture_for_all_sizes_shows_them_by_name():
    compiled = engine.compile(lambda x: (x * 2).tanh().mean(), dynamic=True)
    compiled(engine.ones(7, 4))
    g = viz.compiled(compiled)
    assert "tanh([" in g.text and "(n, 4)" in g.text and "(7, 4)" not in g.text
    assert "size1. size([0], 0)" in g.text and ("nsize1" in {a for a, _ in edges(g.dot)})


def test_a_value_that_is_computed_anew_stands_before_its_use():
    """What is cheap is not kept for backward: the plan has a step more, which the capture has not."""
    x, y = (engine.rand(400, 400, requires_grad=True) for _ in range(2))
    explanation = explain(lambda x, y: ((x * 0.5).tanh() * (y + 1)).exp())(x, y)
    assert set(steps(viz.compiled(explanation).text)) - set(steps(viz.compiled(explanation, "captured").text))
    for part in (None, "backward"):
        text = viz.compiled(explanation, part=part).text
        backward = text.partition("\nbackward:\n")[2].splitlines()
        made = re.findall(r"(?m)^ *(\d+)\. ", text.partition("\nbackward:\n")[0])
        for line in backward:
            if found := re.match(r" +(\d+)\. (.*?)(?:: |$)", line):
                assert set(re.findall(r"\[(\d+)\]", found[2])) <= set(made), line
                made.append(found[1])


def test_a_compiled_module_is_drawn():
    model = engine.compile(engine.nn.Linear(3, 2))
    model(engine.ones(1, 3))
    assert viz.compiled(model).summary.startswith("Linear, fused")


def test_text_and_lines_have_contrast_on_light_and_on_dark_pages():
    dot = drawn(400, 400).dot
    for ground, text in re.findall(r'bgcolor="(#\w+)".*?color="(#\w+)"', dot):
        assert contrast(ground, text) >= 4.5
    lines = {"#888888", "#e8590c", *re.findall(r'^  edge .* color="(#\w+)"', dot, re.MULTILINE)}
    assert all(line in dot and contrast(line, page) >= 3 for line in lines for page in ("#ffffff", "#111111"))


@pytest.mark.skipif(shutil.which("dot") is None, reason="the picture needs Graphviz")
def test_the_picture_has_its_words_for_screen_readers():
    g = drawn(400, 400)
    root = ElementTree.fromstring(g.svg)
    assert root.get("role") == "img" and root.get("aria-label") == g.summary
    assert root.find(f"{SVG}desc").text == g.text
    assert "one pass" in {t.text.strip("\xa0") for t in root.iter(f"{SVG}text")}
    assert set(g._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_what_is_drawn_keeps_no_tensor_alive():
    x = engine.rand(2, 3)
    seen, memory = weakref.ref(x), weakref.ref(x.array)
    compiled = engine.compile(example)
    compiled(x, engine.rand(2, 3))
    kept = viz.compiled(compiled)
    del x, compiled
    gc.collect()
    assert seen() is None and memory() is None and kept.text


def test_a_compiled_function_keeps_no_array_of_its_capture_alive():
    x = engine.rand(2, 3)
    memory = weakref.ref(x.array)
    compiled = engine.compile(example)
    compiled(x, engine.rand(2, 3))
    del x
    gc.collect()
    assert memory() is None and viz.compiled(compiled).text


def test_a_whole_training_step_is_drawn():
    model = engine.nn.Linear(3, 1)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = engine.nn.functional.dropout(model(x), 0.5).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    explanation = explain(step)(engine.ones(4, 3))
    for stage in explanation.entry.passes:
        g = viz.compiled(explanation, stage)
        assert "SGD_step(" in g.text and "set_grads(" in g.text and "input model_weight: (1, 3)" in g.text


def test_the_guards_can_be_read():
    shown = explain(lambda x, k: x * k)(engine.ones(3), 2.0).out_guards
    assert "type(a0) is Tensor" in shown and "type(a1) is float and a1 == 2.0" in shown
    assert not any(re.search(r"\bk\d+\b", guard) for guard in shown)
