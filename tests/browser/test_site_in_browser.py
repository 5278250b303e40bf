"""The course's site in a browser: at three widths, in both themes, by keyboard, without JavaScript, printed."""

import threading

import pytest

for needed in ("furo", "playwright", "axe_playwright_python"):
    pytest.importorskip(needed)

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PAGES = "index", "notebooks/17_device_memory", "exercises/05_graph", "docs/engine", "benchmarks/README"
MOVED = "notebooks/02_shapes", "notebooks/05_graph", "notebooks/06_leaves", "notebooks/09_dynamic_graphs"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The site, made once and served to this computer."""
    from course.authoring.site import build
    from course.commands.site import server_of

    folder = tmp_path_factory.mktemp("site")
    assert list(build(folder / "site", folder / "sources")) == []
    with server_of(folder / "site", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def move_all(page):
    """Wake the page's figures, and move each by its sliders."""
    waiting = page.get_by_role("button", name="Move this figure")
    for left in range(waiting.count(), 0, -1):
        waiting.first.press("Enter")
        page.wait_for_function(f"document.querySelectorAll('.moving .asleep').length < {left}")
    for figure in page.locator(".moving").all():
        for slider in figure.locator("input[type=range]:not([disabled])").all():
            slider.press("ArrowRight")
    assert page.locator(".moving").count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 900, 500])
def test_pages_can_be_used_by_everybody(address, chromium, width, scheme):
    from axe_playwright_python.base import AXE_SCRIPT

    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked, found = [], {}
    page.on("request", lambda request: asked.append(request.url))
    for name in (*PAGES, *MOVED):
        page.goto(f"{address}{name}.html")
        if name in MOVED:
            move_all(page)
        page.evaluate(AXE_SCRIPT)
        for rule in page.evaluate("() => axe.run({ resultTypes: ['violations'] })")["violations"]:
            found[f"{name}: {rule['id']}"] = [node["html"][:120] for node in rule["nodes"][:3]]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than {width}"
    page.close()
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    assert found == {}


def test_a_lesson_is_read_without_javascript_and_printed(address, chromium):
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 900, "height": 900})
    page = context.new_page()
    page.goto(f"{address}notebooks/05_graph.html")
    assert page.get_by_role("heading", level=1).first.is_visible()
    assert "AccumulateGrad" in page.inner_text("article")
    page.emulate_media(media="print")
    assert page.locator("article").is_visible()
    assert not page.locator(".mobile-header").is_visible()
    context.close()


def test_search_and_the_next_page_by_keyboard(address, chromium):
    page = chromium.new_page()
    page.goto(f"{address}notebooks/05_graph.html")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/06_leaves.html")
    page.get_by_placeholder("Search").first.fill("broadcasting")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html*")
    page.locator("#search-results li a").first.wait_for()
    page.close()
