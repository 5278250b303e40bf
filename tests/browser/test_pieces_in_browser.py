"""The figure of cut memory in JupyterLab: a program is chosen and typed, its steps moved through by keyboard."""

import pytest

from course.figures import PiecesExplorer

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

PROGRAMS = ("a = 8, b = 8, c = 8, del a, d = 6", "a = 6, b = 6, c = 6, d = 9, e = 9, del a, del c, f = 12")
FIGURE = PiecesExplorer(*PROGRAMS)


def test_requests_are_moved_through_chosen_and_typed(
    run_cell, broken_rules, choose_dark_theme, fits_narrow_page, screenshot
):
    page = run_cell(f"from course.figures import PiecesExplorer\nPiecesExplorer(*{PROGRAMS})")
    shown = page.locator(".undertorch-chooser")
    words, slider = shown.get_by_role("status"), shown.get_by_role("slider", name="step")
    api.expect(words).to_have_text(FIGURE.text())
    slider.press("End")
    api.expect(slider).to_have_attribute("aria-valuetext", "5: d = 6")
    api.expect(words).to_have_text(FIGURE.text(step=5))
    shown.get_by_role("button", name=PROGRAMS[1]).click()
    api.expect(slider).to_have_attribute("max", "8")  # Python has answered
    slider.press("End")
    api.expect(words).to_have_text(FIGURE.text(program=PROGRAMS[1], step=8))
    screenshot(page, "pieces", shown)
    field = shown.get_by_role("textbox", name="program")
    field.fill("a = 4, del b")
    api.expect(words).to_have_text("del b: nothing has that name.")
    api.expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("a = 4, del a")
    api.expect(field).to_have_attribute("aria-invalid", "false")
    assert broken_rules(page) == {}
    choose_dark_theme(page, words)
    assert broken_rules(page) == {}
    fits_narrow_page(page, shown, ".pictures")
    screenshot(page, "pieces_narrow", shown)
    assert page.console_errors == []
