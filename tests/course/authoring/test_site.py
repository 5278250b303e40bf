"""The course's site: where links lead, what becomes of cells, and the whole of it, made once and gone through."""

import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.authoring.site import lessons
from course.authoring.site.extension import listing
from course.authoring.site.links import Links
from course.base.folds import SUMMARY
from course.commands import site

PLACE = "notebooks/05_graph.ipynb"


@pytest.fixture
def links(tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine/a.py").write_text("x = 1\n", encoding="utf-8")
    return Links({PLACE, "notebooks/06_leaves.ipynb", "docs/engine.md"}, tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[six](06_leaves.ipynb)", "[six](06_leaves.ipynb)"),
        ("[six](../my_lessons/06_leaves.ipynb#A-B)", "[six](06_leaves.ipynb#a-b)"),
        ("[here](#Going-on)", "[here](#going-on)"),
        ("[`a`](../engine/a.py#L3)", '<a href="../files/engine/a.py.html#L-3">`a`</a>'),
        ("[gone](../engine/b.py)", "gone"),
        ("[out](https://numpy.org)", "[out](https://numpy.org)"),
        ("`[no](link.md)` and\n\n```\n[no](link.md)\n```\n", "`[no](link.md)` and\n\n```\n[no](link.md)\n```\n"),
        ("<a href='../docs/engine.md#rules'>map</a>", '<a href="../docs/engine.html#rules">map</a>'),
        ('<a class="x" href="nowhere.md">map</a>', '<a class="x">map</a>'),
    ],
)
def test_a_link_leads_to_a_page_or_a_file_or_loses_its_address(text, expected, links):
    assert links.in_markdown(text, PLACE) == expected


def test_files_that_are_linked_are_known(links):
    links.in_markdown("[a](../engine/a.py) [b](../engine/b.py) ![a picture](../docs/x.svg)", PLACE)
    assert links.files == {"engine/a.py"} and links.pictures == {"docs/x.svg"}


def test_the_answer_to_a_prediction_is_folded_with_its_explanation(links):
    fold = f"<details><summary>{SUMMARY}</summary>\n\nBecause.\n\n</details>"
    shown = new_output("stream", text="4\n")
    cells = [
        new_code_cell("before", outputs=[shown]),
        new_code_cell('predict("05.a")'),
        new_code_cell("f()", outputs=[shown]),
    ]
    page = lessons.page(new_notebook(cells=[*cells, new_markdown_cell(fold)]), PLACE, links)
    assert [cell.metadata.get("tags") for cell in page.cells] == [None, ["remove-input"], ["hide-output"], None]
    assert SUMMARY not in page.cells[-1].source and "Because." in page.cells[-1].source


def test_a_solution_stands_folded_below_its_exercise():
    blank = new_notebook(cells=[new_code_cell("...", metadata={"exercise": "05.1"}), new_markdown_cell("On.")])
    solved = new_notebook(cells=[new_code_cell("x = 1", metadata={"exercise": "05.1"})])
    sources = [cell.source for cell in lessons.exercises(blank, solved).cells]
    assert sources[0] == "..." and sources[2] == "On."
    assert sources[1].startswith("<details><summary>Solution") and "x = 1" in sources[1]


def test_a_listing_has_a_place_for_each_line():
    html = listing("a.py", "x = 1\ny = x < 2\n")
    assert 'id="L-2"' in html and "&lt;" in html


def test_options():
    assert not site.parse([]).build and site.parse(["--build"]).build
    assert site.parse(["--port", "0"]).port == 0


HERE = re.compile(r'<[a-z]+ (?:[^<>]*? )?(?:href|src)="([^"#?]*)(?:#([^"]*))?"')
LOADED = re.compile(r'<(?:script|img|iframe|link rel="(?:stylesheet|preload|icon)")[^>]*\b(?:src|href)="(https?:[^"]*)')


@pytest.mark.slow
def test_the_whole_site(tmp_path):
    """It is made without a warning, is small, asks nothing of a network, and its links lead somewhere."""
    pytest.importorskip("furo")
    from course.authoring.site import build

    target = tmp_path / "site"
    assert list(build(target, tmp_path / "sources")) == []
    assert sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) < 60e6
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(target.rglob("*.html"))}
    lessons_made = [path for path in pages if path.parent.name == "notebooks"]
    assert len(lessons_made) == 23 and all(path.stat().st_size < 1.5e6 for path in lessons_made)
    names = {path: {*re.findall(r'\bid="([^"]+)"', text)} for path, text in pages.items()}
    dead = []
    for path, text in pages.items():
        assert not LOADED.search(text), path
        for to, anchor in HERE.findall(text):
            if re.match(r"[a-z]+:", to):
                continue
            found = (path.parent / Path(to)).resolve() if to else path
            if not found.is_file() or (anchor and found in names and anchor not in names[found]):
                dead.append(f"{path.relative_to(target)}: {to}#{anchor}")
    linked = sum('href="../files/' in text for text in pages.values())
    assert linked > 20  # lessons that quote the engine
    assert not dead, "\n".join(sorted(set(dead)))
