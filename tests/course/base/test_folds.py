"""What a lesson says of a prediction's answer is folded away, and nothing else is; the text is as it was written."""

from nbformat.v4 import new_code_cell, new_markdown_cell
from over_tables import over

from course.authoring.build import read_source
from course.base import folds
from course.base.notebooks import lesson_folders
from course.figures.predict import figure as predict

ASKS, OPTIONS, CODE = "**Predict.** What comes?", "from course import predict\n\npredict('07.a')", "print(9)"


def cells(*sources):
    made = [(new_code_cell if source in (OPTIONS, CODE) else new_markdown_cell)(source) for source in sources]
    folds.fold(made)
    return [cell.source for cell in made]


def fold(text, rest=""):
    return f"<details><summary>{folds.SUMMARY}</summary>\n\n{text}\n\n</details>" + (f"\n\n{rest}" if rest else "")


@over(
    "text, wanted",
    [
        ("Nine. It is added.", fold("Nine. It is added.")),
        ("Nine.\n\nAnd ten?", fold("Nine.", "And ten?")),
        ("- nine\n- ten\n\nMore.", fold("- nine\n- ten", "More.")),
        ("All of it:\n\n- nine\n- ten\n\nMore.", fold("All of it:\n\n- nine\n- ten", "More.")),
        ("Nine, by this:\n\n```\na\n\nb\n```\n\nMore.", fold("Nine, by this:\n\n```\na\n\nb\n```", "More.")),
        ("```\na\n\nb\n```\n\nMore.", fold("```\na\n\nb\n```", "More.")),
        ("Nine. And here is ten:", fold("Nine. And here is ten:")),
        ("Move the slider:", "Move the slider:"),
        ("## Another part\n\nNine.", "## Another part\n\nNine."),
        ("**Predict.** And now?", "**Predict.** And now?"),
        ("**Your turn.** Try it.", "**Your turn.** Try it."),
        ("> **In PyTorch** too.", "> **In PyTorch** too."),
        ("Nine.\n\nOr ten.\n\n<!-- answered -->\n\nMore.", fold("Nine.\n\nOr ten.", "<!-- answered -->\n\nMore.")),
        ("<!-- answered -->\n\nNine.", "<!-- answered -->\n\nNine."),
    ],
)
def test_what_comes_first_after_the_cell_of_a_prediction_is_folded(text, wanted):
    for before in (
        (ASKS, CODE),
        (ASKS, OPTIONS, CODE),
        ("How? " + ASKS, OPTIONS, CODE, CODE),
        ("What?", OPTIONS, CODE),
    ):
        assert cells(*before, text)[-1] == wanted
    assert folds.unfolded(wanted) == text


@over(
    "before",
    [
        (),
        (CODE,),
        ("Look.", CODE),
        (ASKS,),
        (ASKS, OPTIONS),
        (ASKS + "\n\nWith a pencil.", CODE),
        (ASKS, CODE, "Nine.", CODE),
    ],
)
def test_a_text_that_comes_after_no_answer_is_left_alone(before):
    assert cells(*before, "Nine. It is added.")[-1] == "Nine. It is added."


def test_a_text_between_the_options_and_their_cell_tells_no_answer_and_what_comes_after_the_cell_does():
    between = "Look at it so."
    assert cells(ASKS, OPTIONS, between, CODE, "Nine.")[-3:] == [between, CODE, fold("Nine.")]
    assert cells(ASKS, OPTIONS, CODE, between, CODE, "Nine.")[-3:] == [fold(between), CODE, "Nine."]
    assert cells(ASKS, OPTIONS, "## Another part", CODE, "Nine.")[-1] == "Nine."


def test_a_mark_folds_wherever_the_answer_stands():
    marked = f"Nine.\n\n{folds.ANSWERED}"
    assert cells(ASKS, OPTIONS, CODE, "Move it:", CODE, marked)[-1] == fold("Nine.", folds.ANSWERED)
    at_once = cells(ASKS, OPTIONS, marked)[-1]
    assert at_once == fold("Nine.", folds.ANSWERED).replace(folds.SUMMARY, folds.NO_CELL)
    assert folds.unfolded(at_once) == marked


@over("path", lesson_folders())
def test_no_lesson_tells_an_answer_below_its_prediction(path):
    nb, _ = read_source(path / "lesson.md")
    written = [cell.source for cell in nb.cells]
    folds.fold(nb.cells)
    assert [folds.unfolded(cell.source) for cell in nb.cells] == [text.rstrip() for text in written]
    begun = sum(cell.source.startswith("<details>") for cell in nb.cells)
    assert begun >= len(predict.questions(path.name[:2])) / 2


def test_a_text_that_was_saved_with_its_folds_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "lesson.md"
    path.write_text(
        f"# 95\n\n{ASKS}\n\n```{{code-cell}} ipython3\n{CODE}\n```\n\n{fold('Nine.', 'More.')}\n", encoding="utf-8"
    )
    assert read_source(path)[0].cells[-1].source == "Nine.\n\nMore."
