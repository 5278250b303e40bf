"""Slides and handouts in a browser without a network: slides are moved through, handouts are four sheets at most."""

import re

import pytest

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("docutils", reason="the extra `teach` makes materials")

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from course.classroom.materials import make

    made = tmp_path_factory.mktemp("materials")
    make(made)
    return made


@pytest.fixture
def offline(chromium):
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.wrong = []
    page.on("console", lambda message: page.wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    yield page
    context.close()


def test_slides_are_moved_through_and_none_is_cut_off(folder, offline, screenshot):
    for path in sorted((folder / "slides").glob("*.html")):
        offline.goto(path.as_uri())
        offline.wait_for_function("window.Reveal?.isReady()")
        total = offline.evaluate("Reveal.getTotalSlides()")
        assert total >= 8, path.name
        before = offline.evaluate("Reveal.getSlidePastCount()")
        offline.keyboard.press("Space")
        offline.wait_for_function("before => Reveal.getSlidePastCount() === before + 1", arg=before)
        wide = offline.evaluate(
            "() => Reveal.getSlides().filter(slide => slide.scrollWidth > slide.clientWidth + 4).length"
        )
        assert wide == 0, f"{path.name}: {wide} slides are too wide"
    offline.goto((folder / "slides/05_graph.html").as_uri() + "#/4/1")
    offline.wait_for_function("window.Reveal?.isReady()")
    screenshot(offline, "slides_05", offline.locator("body"))
    assert offline.wrong == []


def test_a_handout_is_four_sheets_at_most(folder, offline, screenshot):
    sheets = {}
    for path in sorted((folder / "handouts").glob("*.html")):
        offline.goto(path.as_uri())
        pdf = offline.pdf(prefer_css_page_size=True)
        sheets[path.stem] = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert all(1 <= count <= 4 for count in sheets.values()), sheets
    offline.goto((folder / "handouts/05_graph.html").as_uri())
    screenshot(offline, "handout_05", offline.locator("body"))
    assert offline.wrong == []
