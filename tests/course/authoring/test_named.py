"""A number in prose that names its output: what is written for it, how it comes back, what is refused."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from over_tables import over

pytest.importorskip("nbval")
pytest.importorskip("PIL")

from course.authoring.validation import main, named

KNOWN = {"loss": ["0.25", "-2.056"], "n": ["121842"], "share": ["0.6241"], "none": []}


@over("text, notebook", [
        ("near {out}`loss.2` and {out}`loss.-2`", "near -2.056<!-- out: loss.2 --> and 0.25<!-- out: loss.-2 -->"),
        ("({out}`loss.1:.1f`)", "(0.2<!-- out: loss.1:.1f -->)"),
        ("{out}`n:,`, {out}`share:.0%`", "121,842<!-- out: n:, -->, 62%<!-- out: share:.0% -->"),
        ("`{out}` is a role, and {out} `n` none", "`{out}` is a role, and {out} `n` none"),
        ("`` {out}`n` ``\n\n```\n{out}`n`\n```\n~~~\n{out}`n`", "`` {out}`n` ``\n\n```\n{out}`n`\n```\n~~~\n{out}`n`"),
    ])  # fmt: skip
def test_a_text_gives_a_notebook_with_numbers_and_comes_back(text, notebook):
    assert named.filled(text, KNOWN) == notebook
    assert named.roles(notebook) == text
    assert named.filled(notebook, KNOWN) == notebook
    assert list(named.wrong(notebook, KNOWN)) == []


def test_what_stands_there_is_replaced_with_its_sign_and_its_percent():
    assert named.filled("1,25%<!-- out: n -->, (x,-1.5<!-- out: n -->)", KNOWN) == (
        "1,121842<!-- out: n -->, (x,121842<!-- out: n -->)"
    )
    assert named.filled("<!-- out: n -->", KNOWN) == "121842<!-- out: n -->"


@over(
    "text, says",
    [
        ("{out}`gone`", "no cell of code has the tag out-gone"),
        ("{out}`loss`", "the cell out-loss shows 2 numbers: say which, as in {out}`loss.1`"),
        ("{out}`loss.3`", "the cell out-loss shows 2 numbers"),
        ("{out}`loss.-3`", "the cell out-loss shows 2 numbers"),
        ("{out}`loss.0`", "the cell out-loss shows 2 numbers"),
        ("{out}`none`", "the cell out-none shows no numbers"),
        ("{out}`n:.2q`", "'.2q' is no format of Python's for 121842"),
        ("{out}`n:<9`", "'<9' makes '121842   ' of 121842, which is no number"),
    ],
)
def test_what_names_no_number_is_refused(text, says):
    with pytest.raises(ValueError) as caught:
        named.filled(text, KNOWN)
    assert str(caught.value) == says
    assert list(named.wrong(text, KNOWN)) == [f"{text}: {says}"]


def code(*outputs, tags=("out-a",)):
    return new_code_cell("a", outputs=list(outputs), metadata={"tags": list(tags)})


def stream(text):
    return new_output("stream", text=text)


def test_the_numbers_of_a_cell_are_those_that_its_reader_sees():
    shown = stream("tensor(0.2500, grad_fn=<A0>) [1., -2.] x1 float32 1,797 1.5e-05, 62.4 % 3_000 v1.2.3\n")
    html = {"text/html": "<b>9</b>", "text/plain": "tensor(7)", "image/png": "8"}
    cells = [code(shown, new_output("display_data", html)), code(tags=["out-b", "out-c"]), new_markdown_cell("5")]
    assert named.numbers_of(cells) == {
        "a": ["0.2500", "1", "-2", "1,797", "1.5e-05", "62.4", "3_000", "7"],
        "b": [],
        "c": [],
    }
    with pytest.raises(ValueError, match="two cells have the tag out-a"):
        named.numbers_of([*cells, code()])


def notebook(path, *cells):
    for number, cell in enumerate([cell for cell in cells if cell.cell_type == "code"], start=1):
        cell.execution_count = number
    nbformat.write(new_notebook(cells=list(cells)), path)


def cell_of_15(shows):
    return new_code_cell("print(15)", outputs=[stream(shows)], metadata={"tags": ["out-much"]})


def test_a_number_that_is_not_what_its_cell_shows_is_told_and_updated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "It is 16<!-- out: much -->, {out}`much:.1f`, 0.3<!-- out: more -->."
    notebook("a.ipynb", new_markdown_cell(words), cell_of_15("15\n"))
    assert main(["a.ipynb", "--skip", "outputs"]) == 1
    assert capsys.readouterr().out.splitlines()[1:-1] == [
        "  cell 1: out: {out}`much`: 16 here is 15 (--update writes it)",
        "  cell 1: out: {out}`much:.1f`: the number 15.0 is not written (--update writes it)",
        "  cell 1: out: {out}`more`: no cell of code has the tag out-more",
    ]
    notebook("a.ipynb", new_markdown_cell(words.partition(", 0.3")[0]), cell_of_15("14\n"))
    assert main(["a.ipynb", "--only", "outputs,out,numbers", "--update"]) == 1
    said = "It is 15<!-- out: much -->, 15.0<!-- out: much:.1f -->"
    assert nbformat.read("a.ipynb", as_version=4).cells[0].source == said
    # A number that names its output need not stand near by.
    apart = [new_code_cell("0", outputs=[]) for _ in range(9)]
    notebook("a.ipynb", cell_of_15("15\n"), *apart, new_markdown_cell(said))
    assert main(["a.ipynb", "--skip", "outputs", "--texts"]) == 0
    assert main(["a.ipynb", "--only", "out", "--update"]) == 0


def test_a_text_with_roles_is_in_step_with_its_notebook_of_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jupytext.toml").write_text('formats = "ipynb,md:myst"\nnotebook_metadata_filter = "-all"\n')
    text = "It is {{out}}`{}`.\n\n```{{code-cell}}\n:tags: [out-much]\n\nprint(15)\n```\n"
    (tmp_path / "a.md").write_text(text.format("much"))
    notebook("a.ipynb", new_markdown_cell("It is 15<!-- out: much -->."), cell_of_15("15\n"))
    assert main(["a.ipynb", "--texts", "--github"]) == 0, capsys.readouterr().out
    (tmp_path / "a.md").write_text(text.format("much:.1f"))
    assert main(["a.ipynb", "--skip", "outputs"]) == 1
    assert "text: from cell 1 on the notebook is not what a.md gives" in capsys.readouterr().out
