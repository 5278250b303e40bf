"""BackwardStepper in JupyterLab: keyboard, mouse, its question, words for screen readers, both themes, every width."""

import pytest

from engine import viz

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(viz.render("digraph {}", "svg") is None, reason="there is no Graphviz here"),
]

CELL = """\
import engine
from course.figures import BackwardStepper

w = engine.tensor([1.0, 2.0], requires_grad=True)
b = engine.tensor(0.5, requires_grad=True)
x = engine.tensor([3.0, 4.0])
h = (w * x).sum() + b
loss = h**2 * b
stepper = BackwardStepper(loss)
stepper"""
BEGIN, LAST = 6, 13  # the step in which backward begins, and the last one

ASKING = """\
import engine
from course.figures import BackwardStepper

a = engine.tensor(2.0, requires_grad=True)
b = engine.tensor(3.0, requires_grad=True)
stepper = BackwardStepper('''
c = a * b
d = c + a
''')
stepper"""


@pytest.fixture
def figure(run_cell):
    """The page, and the figure on it."""
    page = run_cell(CELL)
    found = page.locator(".undertorch-steps")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


@pytest.fixture
def asking(run_cell):
    """The same with code: the figure that asks what arrives."""
    page = run_cell(ASKING)
    found = page.locator(".undertorch-steps")
    api.expect(found).to_have_count(1)
    yield page, found
    assert page.console_errors == []


def at(figure, k, last=LAST):
    api.expect(figure.get_by_role("slider")).to_have_js_property("value", str(k))
    api.expect(figure.get_by_role("heading", name=f"Step {k} of {last}")).to_be_visible()
    api.expect(figure.locator(".said")).to_contain_text(f"Step {k} of {last}.")


def test_the_arrow_keys_home_and_end_move_the_slider(figure):
    page, stepper = figure
    slider = stepper.get_by_role("slider", name="Step of the backward pass")
    at(stepper, 0)
    for key, k in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", 13),
        ("ArrowRight", 13),
        ("Home", 0),
    ):
        slider.press(key)
        at(stepper, k)
    slider.press("ArrowUp")
    api.expect(slider).to_have_attribute("aria-valuetext", "step 1 of 13")


def test_the_buttons_can_be_reached_and_pressed_by_keyboard(figure):
    page, stepper = figure
    stepper.get_by_role("slider").focus()
    page.keyboard.press("Tab")
    api.expect(stepper.get_by_role("button", name="Forward")).to_be_focused()
    page.keyboard.press("Enter")
    at(stepper, 1)
    page.keyboard.press("Space")
    at(stepper, 2)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    at(stepper, 1)
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # at the beginning the button has no effect, and keeps the focus
    at(stepper, 0)
    api.expect(stepper.get_by_role("button", name="Back")).to_be_focused()


def test_the_picture_follows_the_step_and_is_not_drawn_anew(figure):
    page, stepper = figure
    picture = stepper.locator("svg")
    picture.evaluate("svg => { svg.kept = true }")
    stepper.get_by_role("button", name="Forward").click(click_count=3)
    at(stepper, 3)
    api.expect(stepper.locator(".node.new")).to_contain_text("AddBackward0")
    api.expect(stepper.locator(".node", has_text="PowBackward0")).to_be_hidden()
    stepper.get_by_role("slider").fill("9")
    at(stepper, 9)
    api.expect(stepper.locator(".node.now")).to_have_count(1)
    api.expect(stepper.locator(".node.now")).to_contain_text("AddBackward0")
    api.expect(stepper.locator(".node.operation.done")).to_have_count(2)
    api.expect(stepper.locator(".node.leaf", has_text="132.25 + 11.5 = 143.75")).to_have_count(1)
    api.expect(stepper.get_by_text("0.5 × 23 = 11.5")).to_be_visible()
    api.expect(stepper.get_by_text("[1, 1] × [3, 4]").first).to_be_hidden()
    stepper.get_by_role("slider").press("End")
    at(stepper, LAST)
    api.expect(stepper.get_by_text("w.grad = [34.5, 46]")).to_be_visible()
    assert picture.evaluate("svg => svg.kept")


def test_the_browser_shows_what_python_says_of_each_step(figure):
    import engine
    from course.figures import BackwardStepper

    space = {"engine": engine, "BackwardStepper": BackwardStepper}
    exec(CELL, space)
    page, stepper = figure
    for k, step in enumerate(space["stepper"].steps):
        stepper.get_by_role("slider").fill(str(k))
        at(stepper, k)
        for heading, lines in step.sections():
            api.expect(stepper.get_by_role("heading", name=heading, exact=True)).to_be_visible()
            for line in lines:
                api.expect(stepper.locator(".panel")).to_contain_text(line)


def test_a_move_does_not_wait_for_the_kernel(figure):
    """All seven are made in one go, in which the browser can get no message."""
    page, stepper = figure
    moved = stepper.evaluate("""figure => {
        const [slider, forward] = [figure.querySelector("input"), figure.querySelector(".forward")];
        return Array.from({ length: 7 }, () => (forward.click(), slider.value));
    }""")
    assert moved == ["1", "2", "3", "4", "5", "6", "7"]


def test_a_click_on_a_node_goes_to_its_turn(figure):
    page, stepper = figure
    stepper.get_by_role("slider").press("End")
    stepper.locator(".node", has_text="PowBackward0").click()
    at(stepper, 8)
    stepper.locator(".node.result").click()
    at(stepper, BEGIN)


def test_the_line_of_code_is_lit_as_its_node_appears(asking):
    page, stepper = asking
    for k, lit in ((0, []), (1, ["c = a * b"]), (2, ["d = c + a"]), (3, [])):
        stepper.get_by_role("slider").fill(str(k))
        at(stepper, k, 7)
        api.expect(stepper.locator(".code [aria-current=true]")).to_have_text(lit)
        api.expect(stepper.locator(".node.operation:visible")).to_have_count(min(k, 2))


def test_it_goes_on_only_when_its_question_is_answered(asking, screenshot):
    page, stepper = asking
    slider, forward = stepper.get_by_role("slider"), stepper.get_by_role("button", name="Forward")
    slider.press("End")
    at(stepper, 3, 7)
    box = stepper.get_by_role("textbox", name="What arrives at a?")
    api.expect(box).to_be_focused()
    forward.press("Enter")
    at(stepper, 3, 7)
    api.expect(box).to_be_focused()
    verdict = stepper.locator(".verdict")
    for answer, said in (("1", "You forgot the path through c."), ("x", "A number is asked for"), ("4", "Right.")):
        box.fill(answer)
        box.press("Enter")
        api.expect(verdict).to_contain_text(said)
    screenshot(page, "stepper_asking", stepper)
    box = stepper.get_by_role("textbox", name="What arrives at b?")
    api.expect(box).to_be_focused()
    stepper.get_by_role("button", name="Tell me").click()
    api.expect(verdict).to_contain_text("1 × 2 = 2")
    api.expect(forward).to_be_focused()
    forward.press("Enter")
    at(stepper, 4, 7)
    api.expect(verdict).to_be_hidden()
    api.expect(stepper.locator(".edge.back:visible")).to_have_count(3)
    slider.press("End")
    at(stepper, 7, 7)
    api.expect(stepper.locator(".node.now")).to_contain_text(".grad = 1 + 3 = 4")


def test_without_the_switch_nothing_is_asked(asking):
    page, stepper = asking
    stepper.get_by_role("checkbox", name="Predict").uncheck()
    stepper.get_by_role("slider").press("End")
    at(stepper, 7, 7)
    api.expect(stepper.locator(".ask")).to_be_hidden()


def test_nothing_scrolls_but_the_picture_and_the_numbers_stay_in_sight(figure, rest):
    page, stepper = figure
    scrolls = """figure => {
        const parts = [];
        for (let part = figure; !part.classList.contains('jp-Cell'); part = part.parentElement) parts.push(part);
        return parts.filter(part => part.scrollHeight > part.clientHeight)
            .filter(part => getComputedStyle(part).overflowY === 'auto').map(part => part.className);
    }"""
    assert stepper.evaluate(scrolls) == []
    page.set_viewport_size({"width": 1024, "height": 768})
    rest(page)
    stepper.locator(".controls").evaluate("controls => controls.scrollIntoView()")
    slider, numbers = (stepper.locator(part).bounding_box() for part in ("input[type=range]", ".panel h3"))
    assert numbers["y"] - slider["y"] < 200
    page.set_viewport_size({"width": 640, "height": 768})
    rest(page)
    stepper.locator(".controls").evaluate("controls => controls.scrollIntoView()")
    slider, numbers = (stepper.locator(part).bounding_box() for part in ("input[type=range]", ".panel h3"))
    assert numbers["y"] - slider["y"] < 0.6 * 768


SMALLEST = """figure => {
    const svg = figure.querySelector("svg");
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return Math.min(...[...svg.querySelectorAll("text")].map(t => parseFloat(t.getAttribute("font-size")) * scale));
}"""


@pytest.mark.parametrize("width", [500, 1024, 1600])
def test_no_text_is_smaller_than_12_pixels_and_the_picture_takes_the_width(asking, rest, width):
    page, stepper = asking
    page.set_viewport_size({"width": width, "height": 900})
    rest(page)
    assert stepper.evaluate(SMALLEST) >= 11.9
    sizes = "figure => [...figure.querySelectorAll('.panel *')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    assert min(stepper.evaluate(sizes)) >= 12
    if width >= 1024:
        picture, panel = (stepper.locator(part).bounding_box() for part in (".picture", ".panel"))
        assert panel["x"] - picture["x"] - picture["width"] < 40


def test_the_words_can_be_read_in_the_dark_theme(asking, screenshot):
    page, stepper = asking
    stepper.get_by_role("checkbox", name="Predict").uncheck()
    stepper.get_by_role("slider").press("End")
    screenshot(page, "stepper_light", stepper)
    light = page.evaluate(COLOURS)
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
    page.wait_for_function(f"light => ({COLOURS})()[0] !== light", arg=light[0])
    stepper.get_by_role("slider").press("ArrowLeft")
    screenshot(page, "stepper_dark", stepper)
    dark = page.evaluate(COLOURS)
    assert min(light[0]) < 100 and min(dark[0]) > 150  # the text: dark on light, light on dark
    assert min(light[1]) > 200 and max(dark[1]) < 60  # the page


COLOURS = """() => {
    const numbers = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const panel = document.querySelector(".undertorch-steps .panel");
    const page = getComputedStyle(document.body).getPropertyValue("--jp-layout-color0").trim();
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = page;
    const found = [numbers(getComputedStyle(panel).color), numbers(getComputedStyle(probe).color)];
    probe.remove();
    return found;
}"""


def test_what_it_says_and_shows_breaks_no_rule_of_accessibility(asking, broken_rules):
    page, stepper = asking
    stepper.get_by_role("slider").press("End")
    at(stepper, 3, 7)
    assert broken_rules(page) == {}


def test_the_figure_is_not_wider_than_the_notebook(figure, rest):
    page, stepper = figure
    page.set_viewport_size({"width": 700, "height": 900})
    rest(page)
    box = stepper.bounding_box()
    for part in (".controls", ".picture", ".panel"):
        inner = stepper.locator(part).bounding_box()
        assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 1


def test_the_figure_is_not_wider_than_a_narrow_notebook(figure, fits_narrow_page):
    fits_narrow_page(*figure, ".controls", ".picture", ".panel")
