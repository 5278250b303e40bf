"""The figures of boxes in JupyterLab: by keyboard and by mouse, in a narrow page and in the dark."""

import pytest

import engine
from course.figures import AttentionExplorer, CollapseExplorer, IndexExplorer, ProductExplorer, SlidingKernelExplorer

api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("anywidget")

pytestmark = pytest.mark.browser

BEGIN = """import engine
from course.figures import *

week = engine.arange(12.0).reshape(4, 3)
pair = engine.arange(6.0).reshape(3, 2)
"""
WEEK, PAIR = engine.arange(12.0).reshape(4, 3), engine.arange(6.0).reshape(3, 2)
TRIES = ("week[1]", "week[:, 1]")
INDEX = IndexExplorer("day", "time", week=WEEK, tries=TRIES)
COLLAPSE = CollapseExplorer("day", "time", week=WEEK)
PRODUCT = ProductExplorer("day", "time", "proposal", week=WEEK, pair=PAIR)
KERNEL = SlidingKernelExplorer()
ATTENTION = AttentionExplorer("abcd", WEEK / 4, WEEK / 4, WEEK)


@pytest.fixture
def figure(run_cell):
    """A function: the page of a cell that shows a figure, and the figure on it."""
    pages = []

    def show(last):
        page = run_cell(BEGIN + last)
        pages.append(page)
        found = page.locator(".undertorch-chooser")
        api.expect(found).to_have_count(1)
        return page, found

    yield show
    assert [page.console_errors for page in pages] == [[]]


def test_an_index_is_typed_and_a_wrong_one_is_said(
    figure, broken_rules, choose_dark_theme, fits_narrow_page, screenshot
):
    page, chooser = figure(f'IndexExplorer("day", "time", week=week, tries={TRIES})')
    field, words = chooser.get_by_role("textbox", name="index"), chooser.get_by_role("status")
    api.expect(words).to_have_text(INDEX.text())
    field.fill("week[week > 7]")
    api.expect(words).to_have_text(INDEX.text(index="week[week > 7]"))
    api.expect(chooser.locator(".pictures > *")).to_have_count(2)
    api.expect(field).to_have_attribute("aria-invalid", "false")
    field.press("End")
    field.press("Backspace")
    api.expect(words).to_have_text(INDEX.text(index="week[week > 7"))
    api.expect(field).to_have_attribute("aria-invalid", "true")
    api.expect(field).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    api.expect(field).to_have_value(TRIES[1])
    api.expect(words).to_have_text(INDEX.text(index=TRIES[1]))
    assert broken_rules(page) == {}
    screenshot(page, "index", chooser)
    choose_dark_theme(page, words)
    assert broken_rules(page) == {}
    screenshot(page, "index_dark", chooser)
    fits_narrow_page(page, chooser, ".pictures")
    screenshot(page, "index_narrow", chooser)


def test_a_dimension_is_chosen_and_a_result_is_clicked(
    figure, broken_rules, choose_dark_theme, fits_narrow_page, screenshot
):
    page, chooser = figure('CollapseExplorer("day", "time", week=week)')
    words = chooser.get_by_role("status")
    api.expect(words).to_have_text(COLLAPSE.text())
    chooser.get_by_role("radio", name="dim=0").press("ArrowRight")
    api.expect(words).to_have_text(COLLAPSE.text(dim=1))
    slider = chooser.get_by_role("slider", name="result")
    slider.press("End")
    api.expect(slider).to_have_attribute("aria-valuetext", "day 3")
    api.expect(words).to_have_text(COLLAPSE.text(dim=1, place=3))
    chooser.locator("[data-number='2']").last.click()
    api.expect(words).to_have_text(COLLAPSE.text(dim=1, place=2))
    chooser.get_by_role("group", name="take the").get_by_role("radio", name="max").check()
    api.expect(words).to_have_text(COLLAPSE.text(how=2, dim=1, place=2))
    assert broken_rules(page) == {}
    screenshot(page, "collapse", chooser)
    choose_dark_theme(page, words)
    assert broken_rules(page) == {}
    screenshot(page, "collapse_dark", chooser)
    fits_narrow_page(page, chooser, ".pictures")
    screenshot(page, "collapse_narrow", chooser)


def test_a_number_of_the_product_is_chosen_by_keyboard_and_by_mouse(
    figure, broken_rules, choose_dark_theme, fits_narrow_page, screenshot
):
    page, chooser = figure('ProductExplorer("day", "time", "proposal", week=week, pair=pair)')
    words = chooser.get_by_role("status")
    api.expect(words).to_have_text(PRODUCT.text())
    chooser.get_by_role("slider", name="row of week").press("ArrowRight")
    api.expect(words).to_have_text(PRODUCT.text(row=1))
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    api.expect(words).to_have_text(PRODUCT.text(row=1, column=1))
    chooser.locator("[data-number='6']").click()
    api.expect(words).to_have_text(PRODUCT.text(row=3, column=0))
    assert broken_rules(page) == {}
    screenshot(page, "product", chooser)
    choose_dark_theme(page, words)
    assert broken_rules(page) == {}
    screenshot(page, "product_dark", chooser)
    fits_narrow_page(page, chooser, ".pictures")
    screenshot(page, "product_narrow", chooser)


def test_a_kernel_is_changed_and_an_output_a_weight_and_an_input_are_clicked(
    figure, broken_rules, choose_dark_theme, fits_narrow_page, screenshot
):
    page, chooser = figure("SlidingKernelExplorer()")
    words = chooser.get_by_role("status")
    api.expect(words).to_have_text(KERNEL.text())
    chooser.get_by_role("group", name="padding").get_by_role("radio", name="1").check()
    api.expect(words).to_have_text(KERNEL.text(padding=1))
    outputs, weights = 36, 9
    for look, number, place in ((1, outputs + 2, 2), (2, outputs + weights + 7, 7), (0, 14, 14)):
        chooser.locator(f"[data-number='{number}']").click()
        api.expect(words).to_have_text(KERNEL.text(padding=1, look=look, place=place))
    slider = chooser.get_by_role("slider", name="which one")
    slider.press("End")
    api.expect(slider).to_have_attribute("aria-valuetext", "y[5, 5]")
    assert broken_rules(page) == {}
    screenshot(page, "kernel", chooser)
    choose_dark_theme(page, words)
    assert broken_rules(page) == {}
    screenshot(page, "kernel_dark", chooser)
    fits_narrow_page(page, chooser, ".pictures")
    screenshot(page, "kernel_narrow", chooser)


def test_a_word_is_clicked_masked_and_asked(figure, broken_rules, choose_dark_theme, fits_narrow_page, screenshot):
    page, chooser = figure("AttentionExplorer('abcd', week / 4, week / 4, week)")
    words = chooser.get_by_role("status")
    api.expect(words).to_have_text(ATTENTION.text())
    chooser.get_by_role("slider", name="word").press("Home")
    api.expect(words).to_have_text(ATTENTION.text(word=0))
    chooser.get_by_role("radio", name="causal").check()
    api.expect(words).to_have_text(ATTENTION.text(word=0, mask=1))
    chooser.locator("[data-number='9']").first.click()
    api.expect(words).to_have_text(ATTENTION.text(word=2, mask=1))
    chooser.get_by_role("radio", name="a column").check()
    api.expect(words).to_have_text(ATTENTION.text(word=2, mask=1, look=1))
    assert broken_rules(page) == {}
    screenshot(page, "attention", chooser)
    choose_dark_theme(page, words)
    assert broken_rules(page) == {}
    screenshot(page, "attention_dark", chooser)
    fits_narrow_page(page, chooser, ".pictures")
    screenshot(page, "attention_narrow", chooser)
