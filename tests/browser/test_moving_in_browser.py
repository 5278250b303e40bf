"""The site's figures in a browser, opened from a folder: what is moved shows what the Python figure says of it."""

import re
import shutil

import pytest

from course.authoring.site import moving
from course.authoring.site.live import cells
from course.base.notebooks import ROOT, lesson_notebooks

for needed in ("playwright", "anywidget", "nbformat"):
    pytest.importorskip(needed)

pytestmark = pytest.mark.browser
LESSONS = "01", "02", "05", "06", "09"
MOVES = 3  # of each control
PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="site.css"><script src="live.js"></script>
<div class="moving" data-figure="moving/{file}"><div><p class="asleep">Still.</p><p>The picture.</p></div></div>"""


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """The folder of the pages, and by page the figure that Python makes for it."""
    import nbformat

    folder = tmp_path_factory.mktemp("moving")
    for name in ("site.css", "live.js"):
        shutil.copy(ROOT / "course/authoring/site/theme" / name, folder)
    chosen = {number: path for number, path in lesson_notebooks().items() if number in LESSONS}
    made = {}
    for number, listed in moving.write(chosen, folder).items():
        found = nbformat.read(chosen[number], as_version=4).cells
        for figure in listed:
            if figure.script:
                page = folder / f"{figure.file}.html"
                page.write_text(PAGE.format(file=figure.file), encoding="utf-8")
                made[page] = cells.figure(found, figure.place)
    assert {type(figure).__name__ for figure in made.values()} >= {
        "BackwardStepper", "BroadcastingExplorer", "CollapseExplorer", "GraphExplorer", "LeafBoard", "MemoryExplorer",
    }  # fmt: skip
    return made


def test_a_figure_says_on_its_page_what_it_says_in_python(figures, chromium):
    for page, figure in figures.items():
        view = chromium.new_page(viewport={"width": 900, "height": 900})
        errors = []
        view.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
        view.goto(page.as_uri())
        view.get_by_role("button", name="Move this figure").press("Enter")
        view.locator("[class^=undertorch]").first.wait_for()
        check = CHECKS[type(figure).__name__]
        seen = {check(view, figure)}
        for slider in view.locator("input[type=range]:not([disabled])").all():
            for key in ("ArrowRight",) * MOVES + ("ArrowLeft", "Home", "End"):
                slider.press(key)
                seen.add(check(view, figure))
        for button in view.locator(".undertorch-chooser .controls button").all():
            button.click()
            seen.add(check(view, figure))
        for radio in view.locator("input[type=radio]").all():
            radio.check()
            seen.add(check(view, figure))
        assert len(seen) > 1 or check is graph, page.name  # which moves it itself
        assert errors == [], page.name
        view.close()


def words(view):
    return view.locator(".words").text_content()


def chooser(view, figure):
    values = {control.name: None for control in figure.controls}
    for control in figure.controls:
        if control.kind == "choice":
            group = view.get_by_role("group", name=control.label, exact=True)
            values[control.name] = [radio.is_checked() for radio in group.get_by_role("radio").all()].index(True)
        elif control.kind == "range":
            values[control.name] = int(view.get_by_role("slider", name=control.label, exact=True).input_value())
        else:
            values[control.name] = view.locator(f"input[name={control.name}]").input_value()
    assert words(view) == figure.text(**values)
    assert same_pictures(view.locator(".pictures").inner_html(), "".join(figure.pictures(**values)))
    return words(view)


def same_pictures(shown, made):
    """Whether the texts of two pictures are the same; the browser writes tags in its own way."""

    one, other = (re.sub(r"\s+", "", re.sub(r"<[^>]*>", " ", picture)) for picture in (shown, made))
    return one == other


def broadcasting(view, figure):
    a, b = (view.locator(f"input[name={name}]").input_value() for name in "ab")
    element = int(view.get_by_role("slider").input_value())
    assert words(view) == figure.text(a=a, b=b, element=element)
    assert same_pictures(view.locator(".picture").inner_html(), figure.image(a=a, b=b, element=element).decode())
    return words(view)


def memory(view, figure):
    pick = int(view.get_by_role("slider").input_value())
    assert words(view) == figure.text(pick=pick)
    assert same_pictures(view.locator(".picture").inner_html(), figure.image(pick=pick).decode())
    return words(view)


def stepper(view, figure):
    step = int(view.get_by_role("slider").input_value())
    said = view.locator(".said").text_content()
    assert said == f"Step {step} of {len(figure) - 1}. {figure.steps[step].sentence}"
    assert f"Step {step} of" in view.locator(".panel").text_content()
    return said


def board(view, figure):
    step = int(view.get_by_role("slider").input_value())
    said = view.locator(".said").text_content()
    assert said == figure.text(step)
    return said


def graph(view, figure):
    select = view.get_by_role("combobox")
    for place, look in enumerate(figure.looks):
        select.select_option(index=place)
        assert view.locator(".panel h3").text_content() == look.title
        assert look.title in view.locator(".said").text_content()
    return view.locator(".said").text_content()


CHECKS = {
    "BackwardStepper": stepper,
    "BroadcastingExplorer": broadcasting,
    "CollapseExplorer": chooser,
    "GraphExplorer": graph,
    "IndexExplorer": chooser,
    "LeafBoard": board,
    "MemoryExplorer": memory,
    "ProductExplorer": chooser,
}


def test_what_a_page_does_not_know_is_said_and_a_known_shape_is_answered(figures, chromium):
    page, figure = next((p, f) for p, f in figures.items() if type(f).__name__ == "BroadcastingExplorer")
    view = chromium.new_page()
    view.goto(page.as_uri())
    view.get_by_role("button", name="Move this figure").click()
    field = view.get_by_label("shape of a")
    field.fill("7, 9")
    notice = view.get_by_text("In JupyterLab the figure takes all.")
    notice.wait_for()
    field.fill("2,1")  # without a space
    assert words(view) == figure.text(a="2, 1", element=int(view.get_by_role("slider").input_value()))
    assert not notice.is_visible()
    view.close()


def test_without_javascript_the_still_picture_stays(figures, chromium):
    context = chromium.new_context(java_script_enabled=False)
    view = context.new_page()
    view.goto(next(iter(figures)).as_uri())
    assert view.get_by_text("The picture.").is_visible()
    assert view.get_by_role("button").count() == 0
    context.close()
