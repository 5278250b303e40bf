"""The figures of lessons 10 to 20 in JupyterLab, on one page: each slider by keyboard, and what follows it."""

import pytest

import engine
from course import figures

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

pytestmark = pytest.mark.browser

FIGURES = (
    "JacobianExplorer({'x * x': lambda x: x * x, 'cumsum': lambda x: x.cumsum(0)}, engine.arange(1.0, 4.0))",
    "AccumulationTimeline()",
    "BatchExplorer()",
    "CrossEntropyExplorer()",
    "SurfaceExplorer()",
    "CostExplorer()",
    "ScalerTimeline()",
    "MemoryTimeline()",
    "PassExplorer(engine.compiler.explain(lambda x: (x * x).tanh() + x * x)(engine.ones(400, 400)))",
    "CaptureExplorer()",
    "RingExplorer()",
)


def test_every_slider_of_every_figure_is_moved_by_keyboard(run_cell, screenshot):
    page = run_cell("import engine\nfrom course.figures import *", *FIGURES)
    drawn = page.locator(".undertorch-explorer")
    api.expect(drawn).to_have_count(len(FIGURES))
    for place, made in enumerate(FIGURES):
        shown, here = drawn.nth(place), eval(made, vars(figures) | {"engine": engine})
        follows_its_sliders(shown, here)
        screenshot(page, f"moved_{type(here).__name__}", shown)
    assert page.console_errors == []


def follows_its_sliders(shown, here):
    """Each slider to an end: the words are those that Python has for this setting, and the picture is another."""
    words, picture, values = shown.get_by_role("status"), shown.locator("img"), here.start()
    api.expect(words).to_have_text(here.text())
    for name, (choices, first, label) in here.settings.items():
        slider, before = shown.get_by_role("slider", name=label, exact=True), picture.get_attribute("src")
        slider.press("End" if first != choices[-1] else "Home")
        values[name] = choices[-1] if first != choices[-1] else choices[0]
        api.expect(words).to_have_text(here.text(**values))
        api.expect(picture).not_to_have_attribute("src", before)
    assert picture.evaluate("async img => (await img.decode(), img.naturalWidth)") > 0
