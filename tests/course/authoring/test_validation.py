"""`python -m course validate`: what it finds in anybody's notebooks, what it lets pass, and how it says so."""

import ast
import base64
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from xml.etree import ElementTree

import nbformat
import pytest
from jupyter_client.connect import LocalPortCache
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from over_tables import over

from course.authoring.validation import main, parse
from course.base.environment import Problem
from course.base.notebooks import ROOT, SANITIZE

pytest.importorskip("nbval")
Image = pytest.importorskip("PIL.Image")

from course.authoring.validation import running  # noqa: E402  once it is known that nbval is there
from course.authoring.validation.command import how_of  # noqa: E402
from course.authoring.validation.comparing import differences, same  # noqa: E402
from course.authoring.validation.judging import Finding, Verdict  # noqa: E402
from course.authoring.validation.masks import MASKS, apply, read  # noqa: E402
from course.authoring.validation.reporting import junit  # noqa: E402
from course.authoring.validation.worlds import read_line, with_line  # noqa: E402


def text(words, name="stdout"):
    return new_output("stream", name=name, text=words)


def code(source, *outputs, **metadata):
    return new_code_cell(source, outputs=list(outputs), metadata=metadata)


def error(name, value):
    return new_output("error", ename=name, evalue=value, traceback=["not compared"])


def save(path, *cells):
    for cell in cells:
        if cell.cell_type == "code":
            cell.execution_count = 1 + cells.index(cell)
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


@pytest.fixture
def only_what_waits_is_late(monkeypatch):
    """The limit of time holds for cells that never end alone: the others may take what a busy computer asks for."""
    limit = running._Client._get_timeout
    monkeypatch.setattr(
        running._Client,
        "_get_timeout",
        lambda self, cell: limit(self, cell) if cell and "while True" in cell.source else None,
    )


def test_an_exempt_cell_does_less_where_its_metadata_says_so_and_is_asked(tmp_path, capsys):
    silent = {"tags": ["nbval-ignore-output"], "exempt": "it differs from run to run"}
    path = save(
        tmp_path / "a.ipynb",
        code("a = sum(range(900))", brief={"range(900)": "range(9)"}, **silent),
        code("print(a)", text("36\n")),
        code("b = 1", brief={"1": "2"}),
        code("c = 1 + 1", brief={"1": "2"}, **silent),
        code("d = 1", brief="d = 2", **silent),
    )
    found = [
        "code cell 3: its metadata `brief` would change what is compared: only an exempt cell may do less",
        "code cell 4: its metadata `brief` replaces '1', which it has 2 times",
        "code cell 5: its metadata `brief` is to say which texts of it become which shorter ones",
    ]
    for options, differs in ((["--brief"], 0), ([], 1)):
        assert main([str(path), "--only", "outputs", *options, "--keep", str(tmp_path / "kept")]) == 1
        said = re.sub(r"\[(\d)\]", r"code cell \1", capsys.readouterr().out)
        assert [line for line in found if line in said] == found
        assert ("stdout differs" in said) == differs
    (kept,) = (tmp_path / "kept").rglob("*.ipynb")
    assert nbformat.read(kept, as_version=4).cells[0].source == "a = sum(range(900))"


def test_one_notebook_with_everything_that_can_be_wrong(only_what_waits_is_late, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    raising, silent = ["raises-exception"], ["nbval-ignore-output"]
    path = save(
        tmp_path / "a.ipynb",
        code("print(object())", text("<object object at 0x7f0000000010>\n")),
        code("print(16)", text("15\n")),
        code("1 / 0", error("ZeroDivisionError", "division by zero"), tags=raising),
        code("int('a')", error("ZeroDivisionError", "division by zero"), tags=raising),
        code("a = 1", tags=raising),
        code("raise KeyError('a')"),
        code("import time; print(time.time())", text("1\n"), tags=silent, exempt="the clock differs from run to run"),
        code("print(3)", text("4\n"), tags=silent),
        code("while True: time.sleep(1)"),
        code("'after all that'"),
        code("import os; os.mkdir('made')", tags=["nbval-skip"], exempt="it would leave a folder behind"),
    )
    (tmp_path / "a.md").write_text("# Text\n\n```{code-cell} ipython3\nprint(16)\n```\n")
    (tmp_path / "jupytext.toml").write_text('formats = "ipynb,md:myst"\n')
    options = ["--timeout", "3", "--junit", "out/junit.xml", "--summary", "summary.md", "--keep", "kept", "--github"]
    assert main([str(path), "--update", "--only", "outputs", *options]) == 1
    said = capsys.readouterr().out
    assert re.findall(r"(?m)^  (\[\d+\])(?: \(a\.md:(\d+)\))?: (.*)", said) == [
        ("[2]", "4", "stdout differs"),
        ("[4]", "", "error differs"),
        ("[5]", "", "it has the tag raises-exception, and raises nothing"),
        ("[6]", "", "it raises KeyError: 'a'"),
        ("[8]", "", "it is exempt without a reason: say it in the cell's metadata `exempt`"),
        ("[9]", "", "it took longer than 3 s"),
        ("[10]", "", "text/plain is not stored"),
        ("[7]", "", "exempt: the clock differs from run to run"),
        ("[11]", "", "exempt: it would leave a folder behind"),
    ]
    assert "    -15\n    +16\n" in said
    assert "::error file=a.md,line=4::[2]: stdout differs%0A--- stored" in said
    assert said.splitlines()[-1] == "FAILED: 7 cells differ; 11 cells of 1 notebook, 2 exempt."
    suite = ElementTree.parse("out/junit.xml").getroot()[0]
    assert (suite.get("failures"), len(suite.findall("testcase/failure"))) == ("7", 7)
    assert "| a.ipynb | 11 | 7 | 0 | 2 |" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert nbformat.read("kept/a.ipynb", as_version=4).cells[1].outputs[0].text == "16\n"
    assert not (tmp_path / "made").exists()
    # --update has stored what differed, and neither the error nor the cell that took too long.
    new = nbformat.read(path, as_version=4)
    assert [cell.outputs[0].get("text", "") for cell in new.cells[1:3]] == ["16\n", ""]
    assert new.cells[5].outputs == new.cells[8].outputs == []
    assert new.cells[9].outputs[0].data["text/plain"] == "'after all that'"
    assert [cell.execution_count for cell in new.cells] == list(range(1, 12))


def test_a_file_for_any_ci_has_a_case_for_each_finding_and_one_where_there_is_none(tmp_path):
    found = [Finding("[1]", None, "stdout\x00 differs\n-1\n+2"), Finding("[2]", 4, "text/plain is not stored")]
    bad = Verdict(
        tmp_path / "b.ipynb", cells=3, findings=found, exempt=[Finding("[3]", None, "the clock")], broken="no"
    )
    junit([Verdict(tmp_path / "a.ipynb", cells=2), bad], tmp_path / "out/junit.xml")
    suites = ElementTree.parse(tmp_path / "out/junit.xml").getroot()
    counts = ("tests", "failures", "errors", "skipped")
    assert [[suite.get(count) for count in counts] for suite in suites] == [["2", "0", "0", "0"], ["3", "2", "1", "1"]]
    (whole,), cases = suites[0], suites[1]
    assert (whole.get("name"), len(whole)) == ("all cells", 0)
    assert [(case.get("name"), case[0].tag, case[0].get("message"), case[0].text) for case in cases] == [
        ("[1]", "failure", "stdout differs", "stdout differs\n-1\n+2"),
        ("[2]", "failure", "text/plain is not stored", "text/plain is not stored"),
        ("[3]", "skipped", "the clock", "the clock"),
        ("the notebook", "error", "no", "no"),
    ]


def test_a_cell_of_checks_may_raise_or_not(tmp_path, capsys):
    checks = {"tags": ["raises-exception"], "nbgrader": {"grade": True, "solution": False}}
    save(
        tmp_path / "a.ipynb",
        code("a = 1", **checks),
        code("b", error("NameError", "name 'b' is not defined"), **checks),
    )
    assert main([str(tmp_path / "a.ipynb"), "--only", "outputs"]) == 0, capsys.readouterr().out


def test_several_notebooks_each_in_its_folder_and_one_whose_kernel_dies(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner/.ipynb_checkpoints").mkdir(parents=True)
    (tmp_path / "inner/.ipynb_checkpoints/a.ipynb").write_text("not a notebook")
    (tmp_path / "inner/engine.py").write_text("name = 'of the folder'\n")
    save(tmp_path / "inner/good.ipynb", code("import engine; print(engine.name)", text("of the folder\n")))
    save(tmp_path / "dies.ipynb", code("print(2)", text("1\n")), code("import os; os._exit(1)"), code("3"))
    assert main(["."]) == 2
    said = capsys.readouterr().out
    assert "inner/good.ipynb: as stored (1 cell)" in said
    assert "  [2]: the kernel died; the cells from there on have not been compared" in said
    assert "  [1]: stdout differs" in said
    assert said.splitlines()[-1] == "FAILED: 1 cell differs, 1 notebook could not run; 4 cells of 2 notebooks."
    assert main(["inner"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "All as stored: 1 cell of 1 notebook."


def test_what_a_widget_catches_is_no_end_of_the_run(tmp_path, capsys):
    pytest.importorskip("ipywidgets")
    caught = "from ipywidgets import Output\nout = Output()\nwith out:\n    print(1)"
    save(tmp_path / "a.ipynb", code(caught), code("print(2)", text("1\n")))
    assert main([str(tmp_path / "a.ipynb"), "--only", "outputs"]) == 1
    assert "[2]: stdout differs" in capsys.readouterr().out


@over(
    "given, says",
    [
        (["nowhere"], "There is no file or folder nowhere."),
        (["."], "There is no notebook in ."),
        (["a.txt"], "it cannot be read"),
        (["list.txt"], "it cannot be read: ValueError: JSON, but no notebook"),
        (["s.ipynb"], "its language is R: say which kernel"),
        (["r.ipynb"], "its language is R: say which kernel"),
        (["r.ipynb", "--kernel", "no_such_kernel"], "NoSuchKernel"),
        (["r.ipynb", "--sanitize-with", "a.txt"], "a.txt has no mask"),
    ],
)
def test_what_cannot_run_is_told_and_is_no_difference(given, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if given != ["."]:
        (tmp_path / "a.txt").write_text("a")
        (tmp_path / "list.txt").write_text("[]")
        shown = {"kernelspec": {"name": "ir", "display_name": "R"}, "language_info": {"name": "R"}}
        nbformat.write(new_notebook(cells=[new_code_cell("1")], metadata=shown), tmp_path / "s.ipynb")
        spec = {"kernelspec": {"language": "R", "name": "ir", "display_name": "R"}}
        nbformat.write(new_notebook(cells=[new_code_cell("1")], metadata=spec), tmp_path / "r.ipynb")
    assert main(given) == 2
    assert says in capsys.readouterr().out


def test_a_cell_that_no_interrupt_ends_ends_the_run(only_what_waits_is_late, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("course.authoring.validation.running.STOPPED_S", 1)
    stubborn = "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except KeyboardInterrupt:\n        pass"
    save(tmp_path / "a.ipynb", code("print(2)", text("1\n")), code(stubborn), code("print(2)", text("1\n")))
    assert main([str(tmp_path / "a.ipynb"), "--timeout", "2"]) == 2
    said = capsys.readouterr().out
    assert "[2]: it took longer than 2 s, and went on when it was interrupted; the cells from there on have not" in said
    assert "  [1]: stdout differs" in said and "[3]" not in said


def test_what_cannot_be_written_is_told_and_the_rest_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "a.ipynb", code("print(1)", text("1\n")))
    (tmp_path / "file").touch()
    for option in ("--junit", "--summary", "--keep"):
        assert main(["a.ipynb", "--only", "outputs", option, "file/inside"]) == 2
        said = capsys.readouterr().out.splitlines()
        assert said[-1] == "All as stored: 1 cell of 1 notebook."
        assert any(re.fullmatch(r"file[\\/]inside.* cannot be written: .+", line) for line in said)


def test_a_link_is_called_by_its_own_name_and_stays_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "a.ipynb", code("print(2)", text("1\n")))
    (tmp_path / "folder.ipynb").mkdir()
    try:
        (tmp_path / "z.ipynb").symlink_to("a.ipynb")
    except OSError:
        pytest.skip("this system lets nobody make a link")
    assert main(["z.ipynb", ".", "--only", "outputs", "--update"]) == 1  # once, though it has two names
    said = capsys.readouterr().out
    assert "z.ipynb has the new outputs now." in said
    assert said.splitlines()[-1] == "FAILED: 1 cell differs; 1 cell of 1 notebook."
    assert (tmp_path / "z.ipynb").is_symlink() and nbformat.read("a.ipynb", 4).cells[0].outputs[0].text == "2\n"


def test_without_its_packages_it_could_not_run(monkeypatch, capsys):
    def ensure(*asked):
        raise Problem("It needs more packages.")

    monkeypatch.setattr("course.authoring.validation.NEEDS", ("no_such_module",))
    monkeypatch.setattr("course.authoring.validation.ensure", ensure)
    assert main(["a.ipynb"]) == 2
    assert capsys.readouterr().err == "It needs more packages.\n"


@over(
    "one, other",
    [
        ("10.3 ms ± 4 μs per loop (mean ± std. dev. of 7 runs)", "2 s ± 1.5 ms per loop (mean ± std. dev. of 9 runs)"),
        ("CPU times: user 3 ms, sys: 1 ms\nWall time: 4.1 ms", "CPU times: user 9 s\nWall time: 1min 4s"),
        (" 45%|####5     | 9/20 [00:01<00:02,  4.50it/s]", "100%|##########| 20/20 [00:04<00:00,  4.81it/s]"),
        ("<a at 0x7f12345678>", "<a at 0x55d0aa>"),
        ("<matplotlib.figure.Figure at 0x7f12345678>", "<Figure size 640x480 with 1 Axes>"),
    ],
)
def test_a_mask_evens_out_what_differs_from_run_to_run(one, other):
    assert apply(one, MASKS) == apply(other, MASKS)


@over("words", ["loss 0.31", "took 3 steps", "50%|", "0x10", "a 4 s pause", "2024-01-02"])
def test_a_mask_leaves_results_alone(words):
    assert apply(words, MASKS) == words


def picture(*boxes, size=(64, 64)):
    drawn = Image.new("RGB", size, "white")
    for box in boxes:
        drawn.paste("black", box)
    file = io.BytesIO()
    drawn.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


SVG = '<svg xmlns="http://www.w3.org/2000/svg"><g id="{}"><text x="{}">{}</text></g></svg>'


@over(
    "kind, one, other, expected",
    [
        ("image/png", picture((0, 0, 20, 20)), picture((0, 0, 20, 20), size=(65, 64)), True),
        ("image/png", picture((0, 0, 20, 20)), picture((0, 0, 24, 20)), False),
        ("image/png", picture(), picture(size=(64, 128)), False),
        ("image/png", picture(), "bm8gcGljdHVyZQ==", False),
        ("image/svg+xml", SVG.format("a1", 3, "w"), SVG.format("b7", 4, "w"), True),
        ("image/svg+xml", SVG.format("a1", 3, "w"), SVG.format("a1", 3, "b"), False),
        ("image/svg+xml", SVG, "<svg", False),
        ("text/vnd.graphviz", "digraph {\n a\n b -> a\n}", "digraph {\nb -> a\na\n}", True),
        ("text/vnd.graphviz", "digraph {\n a -> b\n}", "digraph {\n b -> a\n}", False),
        ("text/plain", "a\nb", "b\na", False),
    ],
)
def test_pictures_are_the_same_by_tolerance_and_drawings_by_structure(kind, one, other, expected):
    assert same(kind, one, other) is expected


def test_outputs_are_compared_whatever_way_the_kernel_cut_them_and_widgets_by_their_words():
    assert differences([text("ab\n"), text("c", "stderr")], [text("a"), text("c", "stderr"), text("b\n")], MASKS) == []
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "IntSlider(value=1)"}
    shown = [new_output("display_data", widget)]
    bare = [new_output("display_data", {"text/plain": "IntSlider(value=1)"})]
    assert differences(shown, bare, MASKS) == []
    other = [new_output("display_data", {"text/plain": "IntSlider(value=2)"})]
    assert [says.splitlines()[0] for says in differences(shown, other, MASKS)] == ["text/plain differs"]
    assert [says.splitlines()[0] for says in differences([], bare, MASKS)] == ["text/plain is not stored"]
    assert [says.splitlines()[0] for says in differences(bare, [], MASKS)] == ["text/plain is no longer there"]


def test_ends_of_lines_are_no_difference_of_a_terminal_and_told_where_they_are_one():
    assert differences([text("a\r\nb\n")], [text("a\nb\r\n")], MASKS) == []
    assert differences([text("a")], [text("a\n")], MASKS) == ["stdout differs\nonly the ends of its lines do"]


@over("field", ["source", "metadata", "outputs"])
def test_a_cell_without_its_parts_keeps_no_other_notebook_from_being_looked_at(field, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    broken = new_notebook(nbformat_minor=5, cells=[]) | {"cells": [code("a") | {field: None}]}
    (tmp_path / "a.ipynb").write_text(json.dumps(broken), encoding="utf-8")
    save(tmp_path / "b.ipynb", code("print(2)", text("1\n")))
    assert main(["a.ipynb", "b.ipynb"]) == 2
    said = capsys.readouterr().out
    assert f"{field} is not what the format allows: None" in said and "[1]: stdout differs" in said


def test_of_a_long_difference_its_beginning_is_shown():
    many = [text("".join(f"{i}\n" for i in numbers)) for numbers in (range(9999), range(10_000, 19_999))]
    (says,) = differences([many[0]], [many[1]], MASKS)
    assert says.count("\n") == 101 and says.endswith("... (19,901 more lines)")
    (says,) = differences([text("a" * 5000 + "b" * 5000)], [text("a" * 5000 + "c" * 5000)], MASKS)
    assert f"\n-...{'a' * 200}b" in says and f"\n+...{'a' * 200}c" in says and len(says) < 2500
    assert "(10,000 characters)" in says


# --- What is looked at without a run


def words(source, **of_cell):
    return new_markdown_cell(source, **of_cell)


def ids(*given):
    cells = [words("a") for _ in given]
    for cell, id in zip(cells, given, strict=True):
        cell["id"] = id
        if id is None:
            del cell["id"]
    return cells


def counted(*counts):
    return [code("a", execution_count=None) | {"execution_count": count} for count in counts]


def of(cell, **other):
    """A cell that nbformat would not make."""
    return nbformat.from_dict(cell | other)


SECRET = "ghp_" + "a1B2" * 9
NOTHING = list[str]()
FAULTS = {
    "format": [
        ([of(words("a"), unknown=1), code("a", text("a"))], NOTHING),
        ([words("a"), of({}, cell_type="chart", metadata={}, source="", id="a")],
         ["cell 2: it is not what the format allows: {'cell_type': 'chart', 'metadata': {}, 'source': '', 'id': 'a'} "
          "is not valid under any of the given schemas"]),
        ([of(code("a"), outputs=[{"output_type": "stream", "name": "stdout"}])],
         ["[1]: outputs/0 is not what the format allows: 'text' is a required property"]),
        ([of(words("a"), metadata={"tags": "a"})],
         ["cell 1: metadata/tags is not what the format allows: 'a' is not of type 'array'"]),
    ],
    "order": [
        (counted(1, 2, 5), NOTHING),
        (counted(None, None), NOTHING),
        (counted(1, None), NOTHING),
        (counted(2, 1), ["[1]: it was run before cells above it: [1] stands after [2]"]),
        (counted(9, 1, 2, 3), ["[9]: it was run after cells below it: [9] stands before [1]"]),
        (counted(1, 2, 2, 3), ["[2]: it has the number of a cell above it: [2]"]),
        (counted(1, 5, 2, 3, 4, 6), ["[5]: it was run after cells below it: [5] stands before [2]"]),
        (counted(1, None, 2), ["code cell 2: it was not run, and cells below it were"]),
    ],
    "ids": [
        (ids("a", "b"), NOTHING),
        (ids("a", None, "a"), ["cell 2: it has no id", "cell 3: it has the id of cell 1, a"]),
    ],
    "paths": [
        ([code("open('/home/ada/a.csv')")], ["[1]: a path of one computer: /home/ada"]),
        ([words(r"in C:\Users\Ada Lee\a.csv")], [r"cell 1: a path of one computer: C:\Users\Ada Lee"]),
        ([code("a", text("saved /Users/ada/a\nsaved /Users/ada/b"))], ["[1]: a path of one computer: /Users/ada"]),
        ([code("'/home/user/a', '/Users/<name>/', '/home/...', '~/home/ada/'")], NOTHING),
        ([words("https://a.org/home/ada/a and docs/home/ada/b")], NOTHING),
    ],
    "secrets": [
        ([code(f"token = '{SECRET}'")], ["[1]: what looks like a token or a key: ghp_a1B2..."]),
        ([code("a", text("-----BEGIN RSA PRIVATE KEY-----"))], ["[1]: what looks like a token or a key: -----BEG..."]),
        ([code("key = 'AKIAIOSFODNN7EXAMPLE'")], ["[1]: what looks like a token or a key: AKIAIOSF..."]),
        ([code("token = 'ghp_...'; task = 'sk-learn'; hf_hub = os.environ['HF_TOKEN']")], NOTHING),
        ([words("https://a.org/sk-a-very-long-name")], NOTHING),
    ],
    "size": [([code("a", text("a" * 1_200_000)), code("a", text("a"))], ["[1]: its outputs take 1.2 MB"])],
    "links": [
        ([words("[a](b.txt) [b](sub/c.md#one-two) [c](#My-Head) ![d](b.txt) [e](https://no.example) [f](mailto:a@b)")],
         ["cell 1: there is no #My-Head in the notebook"]),
        ([words("# My *Head*\n\n[a](#My-Head) [b](#my-head) [c](./sub/c.md#named)")], NOTHING),
        ([words("[a](no.ipynb) <a href='sub/no.md'>b</a> ![c](attachment:d.png)")],
         ["cell 1: there is no no.ipynb", "cell 1: there is no attachment d.png in the cell",
          "cell 1: there is no sub/no.md"]),
        ([words("![c](attachment:d.png)", attachments={"d.png": {"image/png": ""}})], NOTHING),
        ([words("`[a](no.ipynb)`\n\n    [b](no.ipynb)\n\nx[i](j) is no link: \\[a](b)")],
         ["cell 1: there is no j"]),
        ([words("[a](with%20space.txt) [b](b.txt?raw=1) [c](/absolute) [d](sub/) [e](./sub/../b.txt)")], NOTHING),
        ([words(f"[a]({'a' * 300}) [b](sub%5Cc.md)")],
         [f"cell 1: there is no {'a' * 300}", r"cell 1: there is no sub\c.md"]),
    ],
    "pictures": [
        ([words("![](a.png) <img src='b.png'> <img src='c.png' alt=''> ![words](d.png)")],
         ["cell 1: a picture without words: a.png", "cell 1: a picture without words: b.png"]),
        ([code("a", new_output("display_data", {"text/html": "<b><img src='data:image/png;base64,aa'></b>"}))],
         ["[1]: a picture without words: <img>"]),
    ],
    "headings": [
        ([words("## a\n\n### b"), words("# c\n\n## d\n\ntext"), words("## e")], NOTHING),
        ([words("# a"), code("# b\n### c"), words("### d\n\n```\n##### e\n```")],
         ["cell 3: a heading of level 3 follows one of level 1"]),
    ],
}  # fmt: skip


@over("check, cells, expected", [(name, *row) for name, rows in FAULTS.items() for row in rows])
def test_a_check_finds_its_fault_and_leaves_the_rest_alone(check, cells, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").touch()
    (tmp_path / "with space.txt").touch()
    (tmp_path / "sub/c.md").write_text("# One: two\n\n<a id='named'></a>\n")
    if check not in ("order", "ids"):
        for count, cell in enumerate([cell for cell in cells if cell.cell_type == "code"], start=1):
            cell.execution_count = count
    nb = new_notebook(nbformat_minor=5) | {"cells": cells}
    (tmp_path / "a.ipynb").write_text(json.dumps(nb), encoding="utf-8")
    assert main(["a.ipynb", "--only", check]) == bool(expected)
    said = capsys.readouterr().out.splitlines()
    assert [line.strip().replace(f" {check}:", "", 1) for line in said[1:-1]] == expected
    # Nothing else is said of it but by its own name, and nobody's name is doubled.
    assert said[-1].startswith("FAILED: " if expected else "No faults: ")


def test_a_link_that_only_windows_and_macos_find_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Sub").mkdir()
    (tmp_path / "Sub/Data.csv").touch()
    save(tmp_path / "a.ipynb", words("[a](sub/data.CSV) [b](Sub/Data.csv) ![c](sub/none.csv)"))
    of_linux = type(tmp_path)
    exists, listing = of_linux.exists, of_linux.iterdir
    monkeypatch.setattr(of_linux, "exists", lambda path: exists(path) or path.name.casefold() in ("sub", "data.csv"))
    monkeypatch.setattr(of_linux, "iterdir", lambda path: listing(tmp_path / "Sub" if path.name == "sub" else path))
    assert main(["a.ipynb", "--only", "links"]) == 1
    told = [line.partition("links: ")[2] for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert told == [
        "sub/data.CSV is spelled Sub/Data.csv there: where case counts, as on Linux, it is not found",
        "there is no sub/none.csv",
    ]


def test_a_text_that_gives_other_cells_is_told_and_one_that_gives_the_same_is_not(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jupytext.toml").write_text('formats = "ipynb,py:percent"\n')
    save(tmp_path / "a.ipynb", words("# A\n\n\ntwo empty lines"), code("%matplotlib inline\na = 1"), code("b = 2"))
    percent = "# %% [markdown]\n# # A\n#\n#\n# two empty lines\n\n# %%\n# %matplotlib inline\na = 1\n\n# %%\nb = {}\n"
    (tmp_path / "a.py").write_text(percent.format(2))
    assert main(["a.ipynb", "--only", "text"]) == 0
    (tmp_path / "a.py").write_text(percent.format(3))
    assert main(["a.ipynb", "--only", "text"]) == 1
    assert "[3]: text: from cell 3 on the notebook is not what a.py gives: 'b = 2'" in capsys.readouterr().out


@over(
    "notebook, text, where",
    [
        ("notebooks/05_graph.ipynb", "course/lessons/05_graph/lesson.md", "# "),
        ("solutions/05_graph.ipynb", "course/lessons/05_graph/exercises.md", "## 5.2 "),
    ],
)
def test_a_text_is_told_from_what_the_build_adds_to_it(notebook, text, where, tmp_path, monkeypatch, capsys):
    for name in (notebook, text, "jupytext.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert main([notebook, "--only", "text"]) == 0
    file = tmp_path / text
    file.write_text(file.read_text(encoding="utf-8").replace(where, f"{where}Not "), encoding="utf-8")
    assert main([notebook, "--only", "text"]) == 1
    place = [where in "".join(cell.source) for cell in nbformat.read(notebook, 4).cells].index(True)
    assert f"cell {place + 1}: text: from cell {place + 1} on" in capsys.readouterr().out


def test_a_link_to_what_git_ignores_is_made_later(tmp_path, capsys):
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("made/\n")
    path = save(tmp_path / "a.ipynb", words("[a](made/a.txt) [b](not/a.txt)"))
    assert main([str(path), "--only", "links"]) == 1
    said = capsys.readouterr().out
    assert "there is no not/a.txt" in said and "made/a.txt" not in said


def test_faults_and_differences_are_told_together_and_each_check_can_be_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "a.ipynb", words("![](https://a.example/a.png)"), code("print(2)", text("1\n")))
    assert main(["a.ipynb", "--github"]) == 1
    said = capsys.readouterr().out
    assert "::error file=a.ipynb::cell 1: a picture without words" in said
    assert said.splitlines()[-1] == "FAILED: 1 cell differs, 1 fault; 1 cell of 1 notebook."
    assert main(["a.ipynb", "--skip", "outputs,pictures"]) == 0
    assert main(["a.ipynb", "--only", "outputs"]) == 1
    assert main(["a.ipynb", "--only", "pictures", "--skip", "pictures"]) == 0
    assert main(["a.ipynb", "--skip", "picture"]) == 2
    assert "There is no check 'picture'. There are outputs, format, text, " in capsys.readouterr().out


# --- Numbers in prose

SHOWN = [code("a = 1_500", text("loss 0.5774 after 48 steps, 62.4 %\n[1.5e-05 1,797]\n"))]


@over("prose, expected", [
        ("It takes 48 steps to 0.58, with 1,500 and 1797 pictures and 1.5e-05.", []),
        ("It takes 47 steps to 0.57.", ["47", "0.57"]),
        ("All of 62 are not 62.4, about 62 are, and 58 percent are, and 57 % not.", ["62", "57"]),
        ("Nine, 9 and 10 are counted on fingers; 11 not.", ["11"]),
        ("| a | b |\n|---|---|\n| 48 | 49 |\n\n- 0.578\n\n> 0.577", ["49", "0.578"]),
        ("# The 99\n\n`99` and [99](a) and $99$ and ![99](b) and float99 and 99th and #99\n\n    99", []),
        ("```\nx = 99\n```\n\nso 99, as in the code", []),
        ("Lesson 12, lessons 13, 14 and 15, exercises 18.2 and 18.3, Python 3.11, line 42, since 2023.", []),
        ("**Time** 55 minutes.", []),
        ("See https://a.example/issues/234 and <http://a.example/release-0.4>, after 235.", ["235"]),
        ("In 2023 there were 2023 of them.", ["2023"]),
        ("There are 31 of them.\n<!-- numbers: 31: counted by hand -->", []),
        ("There are 31 of them, or 32 <!-- numbers: 31 -->", ["32"]),
        ("There are 32.\n<!-- numbers: 32 1,024: 2^5, 2^10 -->", ["1,024 is marked, and does not stand there"]),
        ("<p>99 in HTML</p>\n\nand 98", ["98"]),
    ])  # fmt: skip
def test_a_number_in_prose_stands_in_an_output_or_is_marked(prose, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "a.ipynb", *SHOWN, words(prose))
    assert main(["a.ipynb", "--only", "numbers"]) == bool(expected)
    found = re.findall(r"cell 2: numbers: (.*)", capsys.readouterr().out)
    assert [says.partition(" stands in no output")[0] for says in found] == expected
    assert main(["a.ipynb", "--skip", "outputs,links,pictures"]) == 0  # unless it is asked for
    assert main(["a.ipynb", "--skip", "outputs,links,pictures", "--texts"]) == bool(expected)


def test_where_no_cell_was_run_numbers_are_not_looked_for_and_that_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nbformat.write(new_notebook(cells=[words("There are 31."), code("31")]), tmp_path / "a.ipynb")
    assert main(["a.ipynb", "--only", "numbers"]) == 0
    said = capsys.readouterr().out
    assert "the notebook: exempt: no cell was run before it was stored: the numbers in its prose have no" in said
    assert said.splitlines()[-1] == "No faults: 1 cell of 1 notebook, 1 exempt."


def test_a_notebook_without_outputs_is_run_and_compared_with_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nbformat.write(new_notebook(cells=[code("print(1)"), code("2")]), tmp_path / "a.ipynb")
    assert main(["a.ipynb"]) == 0
    said = capsys.readouterr().out
    assert "the notebook: exempt: no cell was run before it was stored: there are no outputs to compare with" in said
    assert main(["a.ipynb", "--update"]) == 0
    assert [len(cell.outputs) for cell in nbformat.read("a.ipynb", 4).cells] == [1, 1]
    nbformat.write(new_notebook(cells=[code("print(1)"), code("1 / 0")]), tmp_path / "a.ipynb")
    assert main(["a.ipynb"]) == 1
    assert "code cell 2: it raises ZeroDivisionError" in capsys.readouterr().out


@over(
    "right, wrong, found",
    [
        ("the machine says 15", "the machine says 16", "16"),
        ("about -2.056", "about -2.057", "2.057"),
        ("else, near 0.838", "else, near 0.839", "0.839"),
    ],
)
def test_a_wrong_number_in_a_lesson_is_found_in_its_text(right, wrong, found, tmp_path, monkeypatch, capsys):
    lesson = "course/lessons/04_autograd/lesson.md"
    for name in ("notebooks/04_autograd.ipynb", lesson, "jupytext.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / lesson
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    assert main(["notebooks", "--only", "numbers"]) == 1
    line = text[: text.index(right)].count("\n") + 1
    assert f"the text ({lesson}:{line}): numbers: {found} stands in no output" in capsys.readouterr().out


def test_a_kernel_whose_port_was_taken_before_it_came_starts_again(tmp_path, monkeypatch, capsys):
    chosen, cache = LocalPortCache.find_available_port, LocalPortCache
    save(tmp_path / "a.ipynb", code("print(1)", text("1\n")))
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = iter([other.getsockname()[1]])
        monkeypatch.setattr(cache, "find_available_port", lambda self, ip: next(taken, None) or chosen(self, ip))
        assert main([str(tmp_path), "--only", "outputs"]) == 0, capsys.readouterr().out
    assert next(taken, None) is None


def test_no_loop_but_zeromq_s_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("asyncio.events.new_event_loop", lambda: pytest.fail("not for ZeroMQ on Windows"))
    save(tmp_path / "a.ipynb", code("print(1)", text("1\n")))
    assert main([str(tmp_path), "--only", "outputs"]) == 0


def test_a_pattern_stands_for_notebooks_where_no_shell_has_read_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("b1.ipynb", "b2.ipynb", "c[1].ipynb"):
        save(tmp_path / name, code("1"))
    assert main(["b*.ipynb", "c[1].ipynb", "--only", "ids"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No faults: 3 cells of 3 notebooks."
    assert main(["d*.ipynb"]) == 2
    assert "There is no file or folder d*.ipynb." in capsys.readouterr().out


def test_the_masks_are_those_that_the_project_of_the_notebooks_names(tmp_path, monkeypatch, capsys):
    own = how_of(parse([str(ROOT / "notebooks/05_graph.ipynb")])).masks
    assert own == read(str(ROOT / SANITIZE)) and len(own) > len(MASKS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    save(tmp_path / "sub/a.ipynb", code("print(2)", text("1\n")))
    assert main(["sub", "--only", "outputs"]) == 1
    (tmp_path / "masks.cfg").write_text("[digits]\nregex: \\d\nreplace: N\n")
    (tmp_path / "pyproject.toml").write_text('[tool.undertorch.validate]\nsanitize-with = "masks.cfg"\n')
    assert main(["sub", "--only", "outputs"]) == 0
    (tmp_path / "none.cfg").write_text("[x]\nregex: x\nreplace: x\n")
    assert main(["sub", "--only", "outputs", "--sanitize-with", "none.cfg"]) == 1  # what is said goes before
    for wrong in ("[tool.undertorch.validate]\nsanitize-with = 1\n", "[tool\n", "tool = 1\n"):
        (tmp_path / "pyproject.toml").write_text(wrong)
        assert main(["sub", "--only", "outputs"]) == 2
        assert "pyproject.toml cannot be read" in capsys.readouterr().out


# --- Two worlds


@over("sources, line, expected", [
        (["import engine"], "import torch as engine", ["import torch as engine"]),
        (["a\n    import engine  # c", "from engine.nn import functional as F"], "import torch as engine",
         ["a\n    import torch as engine  # c", "from torch.nn import functional as F"]),
        (["import numpy as np", "import numpy.linalg as la; numpy = 1"], "import cupy as np",
         ["import cupy as np", "import cupy.linalg as la; numpy = 1"]),
        (["import math", "from math import pi\nimport mathematics"], "import cmath as math",
         ["import cmath as math", "from cmath import pi\nimport mathematics"]),
        (["import torch as engine"], "import torch as engine", None),
        (["engine = 1  # import engine", "import engineering"], "import torch as engine", None),
    ])  # fmt: skip
def test_an_import_comes_from_the_other_module(sources, line, expected):
    nb = new_notebook(cells=[code(source) for source in sources])
    new = with_line(nb, read_line(line))
    assert (new and [cell.source for cell in new.cells]) == expected
    assert [cell.source for cell in nb.cells] == sources


@pytest.mark.slow
def test_two_imports_are_compared_with_each_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.py").write_text("half = 0.5\ndef fail(): raise ValueError('no\\nline of one')\n")
    (tmp_path / "two.py").write_text("half = 0.50\ndef fail(): raise ValueError('no\\nline of two')\n")
    cells = [
        code("import one", text("not what it shows\n")),
        code("one.half", new_output("execute_result", {"text/plain": "0.5"})),
        code("one.fail()", tags=["raises-exception"]),
        code("print(one.__name__)", text("one\n")),
        code("one.extra = 1", tags=["one-world"]),
        code("import sys; print(one.__name__, file=sys.stderr)"),
        code("print(one.__name__)", tags=["nbval-ignore-output"], exempt="to be left out"),
        code("one.extra", new_output("execute_result", {"text/plain": "1"})),
    ]
    save(tmp_path / "a.ipynb", *cells)
    save(tmp_path / "b.ipynb", code("print(1)"))
    assert main([".", "--only", "worlds", "--also", "import two as one"]) == 1
    said = capsys.readouterr().out
    assert re.findall(r"(?m)^  (\[\d\]): worlds: (.*)", said) == [
        ("[4]", "stdout differs"), ("[8]", "text/plain became error")
    ]  # fmt: skip
    assert "    --- the first\n    +++ import two as one\n    @@ -1 +1 @@\n    -one\n    +two\n" in said
    assert said.splitlines()[-1] == "FAILED: 2 cells differ between the two; 9 cells of 2 notebooks, 1 exempt."
    # Without the second world nothing but what is stored counts, and a world that is not there could not run.
    assert main(["a.ipynb", "--only", "outputs"]) == 1
    assert main(["a.ipynb", "--only", "worlds", "--also", "import no_such as one"]) == 2
    assert "with import no_such as one: ModuleNotFoundError: No module named 'no_such'" in capsys.readouterr().out


def test_two_kernels_are_compared_with_each_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    for name in ("first_kernel", "second_kernel"):
        folder = tmp_path / "jupyter/kernels" / name
        folder.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        spec = {"argv": argv, "display_name": name, "language": "python", "env": {"WORLD": name}}
        (folder / "kernel.json").write_text(json.dumps(spec))
    save(tmp_path / "a.ipynb", code("import os; print(os.environ['WORLD'])", text("first_kernel\n")), code("print(1)"))
    assert main(["a.ipynb", "--skip", "outputs", "--kernel", "first_kernel", "--kernel", "second_kernel"]) == 1
    said = capsys.readouterr().out
    assert "[1]: worlds: stdout differs\n    --- first_kernel\n    +++ second_kernel\n" in said
    assert said.splitlines()[-1] == "FAILED: 1 cell differs between the two; 2 cells of 1 notebook."


@over(
    "options, says",
    [
        (["--also", "torch"], "--also takes a line such as `import torch as engine`, and not 'torch'."),
        (["--also", "from a import b"], "--also takes a line"),
        (["--only", "worlds"], "There is no check 'worlds' (which needs --also, or --kernel twice)."),
        (["--kernel", "a", "--kernel", "b", "--kernel", "c"], "There are two worlds at most"),
    ],
)
def test_what_is_no_second_world_is_told(options, says, capsys):
    assert main([".", *options]) == 2
    assert says in capsys.readouterr().out


@over("folder", ["notebooks", "exercises", "solutions"])
def test_the_course_s_own_notebooks_have_no_faults(folder, capsys):
    # That they are what their texts give is told by tests of the build.
    assert main([str(ROOT / folder), "--skip", "outputs,text", "--texts"]) == 0, capsys.readouterr().out


# --- Where others call it


def pytest_says(folder, *options):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "course.authoring.validation.plugin",
        "-p",
        "no:cacheprovider",
        "-rA",
        *options,
    ]
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8")
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_pytest_has_an_item_for_each_check_and_each_cell(tmp_path):
    (tmp_path / "pytest.ini").touch()
    save(tmp_path / "a.ipynb", words("![](https://a.example/a.png)"), code("print(2)", text("1\n")), code("3"))
    save(tmp_path / "b.ipynb", code("1"), code("import os; os._exit(1)"), code("3"))
    (tmp_path / "c.ipynb").write_text("no notebook")
    (tmp_path / "test_d.py").write_text("def test_d(): pass\n")
    code_, said = pytest_says(tmp_path, "--undertorch", "--undertorch-options", "--only outputs,pictures,order")
    outcomes = re.findall(r"(?m)^(PASSED|FAILED) (\S+?::\w+(?: \d+)?)", said)
    assert code_ == 1
    assert {name for state, name in outcomes if state == "FAILED"} == {
        "a.ipynb::pictures", "a.ipynb::cell 1", "a.ipynb::cell 2", "b.ipynb::cell 1", "b.ipynb::cell 2",
        "b.ipynb::cell 3", "c.ipynb::order", "c.ipynb::pictures", "c.ipynb::cell 1",
    }  # fmt: skip
    assert {name for state, name in outcomes if state == "PASSED"} == {
        "a.ipynb::order",
        "b.ipynb::order",
        "b.ipynb::pictures",
        "test_d.py::test_d",
    }
    assert "cell 1: pictures: a picture without words: https://a.example/a.png" in said
    assert "[2]: the kernel died" in said and "it cannot be read: JSONDecodeError" in said
    assert "    -1\n" not in said and "  -1\n" in said  # the diff, and no traceback of the plugin's
    assert pytest_says(tmp_path, "a.ipynb")[0] == 4  # nothing is collected unasked
    code_, said = pytest_says(tmp_path, "--undertorch", "--undertorch-options", "--only nothing")
    assert code_ == 4 and "There is no check 'nothing'" in said


def test_the_hooks_of_pre_commit_ask_for_what_there_is():
    yaml = pytest.importorskip("yaml")
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    asked = {hook["id"]: how_of(parse([*hook["entry"].split()[5:], "a.ipynb"])).checks for hook in hooks}
    assert all(hook["entry"].split()[:5] == "python -P -m course validate".split() for hook in hooks)
    assert asked["notebook-outputs"] == {"outputs"} and not asked["notebooks"] & {"outputs", "numbers"}


HOOK = """\
#!{python}
import os, re, subprocess, sys
git = ["git", "diff", "--cached", "--name-only", "--diff-filter=ACMRT"]
changed = subprocess.run(git, check=True, capture_output=True, encoding="utf-8").stdout.splitlines()
given = [name for name in changed if re.search({files!r}, name)]
sys.exit(subprocess.run([{python!r}, *{entry!r}, *given]).returncode if given else 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt" or not shutil.which("git"), reason="git's hooks are run by their first line")
@pytest.mark.parametrize(("id", "fault"), [("notebook-outputs", "stdout differs"), ("notebooks", "without words")])
def test_a_hook_stops_the_commit_of_a_faulty_notebook_and_looks_at_changed_ones_alone(id, fault, tmp_path):
    """What pre-commit does with a hook: its entry, with the staged files that its pattern finds."""
    yaml = pytest.importorskip("yaml")
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (hook,) = [hook for hook in hooks if hook["id"] == id]
    entry = [word for word in hook["entry"].split()[1:] if word != "-P"]  # the course is found by PYTHONPATH here

    def git(*words):
        own = {"PYTHONPATH": str(ROOT), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        for name in ("AUTHOR", "COMMITTER"):
            own |= {f"GIT_{name}_NAME": "A", f"GIT_{name}_EMAIL": "a@a.example"}
        done = subprocess.run(
            ["git", *words], cwd=tmp_path, env=os.environ | own, capture_output=True, encoding="utf-8"
        )
        return done.returncode, done.stdout + done.stderr

    git("init", "--quiet", ".")
    program = tmp_path / ".git/hooks/pre-commit"
    program.parent.mkdir(exist_ok=True)
    program.write_text(HOOK.format(python=sys.executable, files=hook["files"], entry=entry), encoding="utf-8")
    program.chmod(0o755)
    save(tmp_path / "unstaged.ipynb", code("1 / 0"), words("![](https://a.example/a.png)"))
    (tmp_path / "notes.txt").touch()
    assert git("add", "notes.txt")[0] == 0 and git("commit", "--message", "No notebook")[0] == 0
    save(tmp_path / "a.ipynb", code("print(2)", text("1\n")), words("![](https://a.example/a.png)"))
    git("add", "a.ipynb")
    status, said = git("commit", "--message", "A faulty one")
    assert status == 1 and fault in said and "unstaged" not in said
    save(tmp_path / "a.ipynb", code("print(2)", text("2\n")), words("![A star](https://a.example/a.png)"))
    git("add", "a.ipynb")
    status, said = git("commit", "--message", "A good one")
    assert status == 0, said
    assert git("log", "--format=%s")[1].splitlines() == ["A good one", "No notebook"]


def test_the_rules_are_printed(capsys):
    assert main(["--rules"]) == 0
    said = capsys.readouterr().out
    assert all(mask.pattern in said for mask in MASKS) and "no cell may differ by more than 13 of 255" in said


def test_the_validator_stands_without_the_engine():
    for path in (ROOT / "course/authoring/validation").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.partition(".")[0] == "engine"], path
