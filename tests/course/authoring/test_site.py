"""The site's pages: where links lead there, which outputs wait for their answer, and a whole build."""

import html
import inspect
import re
import types
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from over_tables import over

from course.authoring.site import charts, extension, lessons, pages, recaps, reference
from course.authoring.site.links import Links

nbformat = pytest.importorskip("nbformat")
v4 = nbformat.v4


@pytest.fixture
def links(tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine/ops.py").write_text("x = 1\n")
    return Links({"notebooks/05_graph.ipynb", "exercises/05_graph.ipynb", "docs/engine.md"}, tmp_path)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[the graph](05_graph.ipynb)", "[the graph](05_graph.ipynb)"),
        ("[it](05_graph.ipynb#The-way-back)", "[it](05_graph.ipynb#the-way-back)"),
        ("[yours](../my_exercises/05_graph.ipynb)", "[yours](../exercises/05_graph.ipynb)"),
        ("[map](../docs/engine.md)", "[map](../docs/engine.md)"),
        ("[`ops`](../engine/ops.py#L12)", '<a href="../files/engine/ops.py.html#L-12">`ops`</a>'),
        ("[a folder](../engine)", "a folder"),
        ("[elsewhere](https://example.org/a.md)", "[elsewhere](https://example.org/a.md)"),
        ("`[code](../engine)`", "`[code](../engine)`"),
        ("```\n[code](../engine)\n```", "```\n[code](../engine)\n```"),
        ('<a href="../docs/engine.md">map</a>', '<a href="../docs/engine.html">map</a>'),
        ('<a href="../engine">a folder</a>', "<a>a folder</a>"),
    ],
)
def test_a_link_leads_to_a_page_or_a_listing_or_is_left_as_its_words(links, written, shown):
    assert links.in_markdown(written, "notebooks/04_autograd.ipynb") == shown


TABLE = """<!-- figures: results medians -->
|      | engine         | engine, compiled | PyTorch        | target |
| ---- | -------------- | ---------------- | -------------- | ------ |
| seed | 21.3 us (0.27) |                  | 82.5 us (1.05) | 0.50   |
| mlp  | 124 us (0.56)  | 101 us (0.46)    | 224 us (1.01)  | 0.50   |
<!-- end -->"""


def test_a_table_of_benchmarks_gets_a_chart_of_its_own_numbers():
    assert charts.ratios(TABLE.partition("\n")[2].removesuffix("\n<!-- end -->"))["engine"] == {
        "seed": 0.27,
        "mlp": 0.56,
    }
    shown = charts.charted(TABLE)
    assert shown.endswith(TABLE) and "currentColor" in shown and "\n\n<!-- figures" in shown
    assert "The engine: seed 0.27, mlp 0.56." in shown and "engine, compiled" in shown.partition("</svg>")[0]
    assert charts.charted("no table") == "no table"


def test_the_stored_benchmarks_have_charts():
    page = pages.document("benchmarks/README.md", Links(set()))
    assert page.count("<svg ") == 2


def test_the_files_and_pictures_that_are_linked_are_known(links):
    links.in_markdown("[ops](engine/ops.py#L1) ![a graph](docs/graph.svg)", "README.md")
    assert links.files == {"engine/ops.py"}
    assert links.pictures == {"docs/graph.svg"}


def test_a_prediction_says_predict_once(links):
    cell = v4.new_code_cell('predict("05.a")')
    assert lessons.of_output(cell, f"{lessons.ASLEEP}{lessons.TWICE}How many?</p>", "x.md", links) == "<p>How many?</p>"


@over(
    "owner, shown",
    [
        ("", "A\n\n\n\n\n\nB OWNER"),
        ("ada", "A\n\nThese addresses open it without installing anything:\n\n| <https://x.org/ada/u> |\n\nB ada"),
    ],
)
def test_addresses_that_say_owner_are_links_once_it_is_known_and_left_out_until_then(owner, shown):
    assert pages.owned("A\n\nFor OWNER:\n\n| `https://x.org/OWNER/u` |\n\nB OWNER", owner) == shown


def test_a_notebook_is_offered_where_it_can_be_run_and_nowhere_else():
    def offered(page, **config):
        context = {"body": "<h1>05</h1>"}
        app = types.SimpleNamespace(config=types.SimpleNamespace(**{"site_lite": False, "site_owner": "", **config}))
        extension.offer(app, page, "page.html", context, None)
        return re.findall(r'href="(.*?)"', context["body"])

    lesson = "notebooks/05_graph"
    binder, colab = offered(lesson, site_owner="ada")
    assert binder.endswith("/gh/ada/undertorch/HEAD?urlpath=lab/tree/my_lessons/05_graph.ipynb")
    assert colab.endswith("/ada/undertorch/blob/HEAD/notebooks/05_graph.ipynb")
    assert offered("exercises/05_graph", site_lite=True) == ["../lite/lab/index.html?path=my_exercises/05_graph.ipynb"]
    assert offered(lesson) == offered("docs/engine", site_lite=True, site_owner="ada") == []


def test_the_outputs_that_answer_a_prediction_are_folded_and_no_others(links):
    cells = [
        v4.new_code_cell("print(0)"),
        v4.new_code_cell('predict("05.a")'),
        v4.new_code_cell("print(1)"),
        v4.new_markdown_cell("<details><summary>Once you have run the cell</summary>\n\nWhy.\n\n</details>"),
        v4.new_code_cell("print(2)"),
    ]
    page = lessons.page(v4.new_notebook(cells=cells), "notebooks/05_graph.ipynb", links)
    assert [cell.metadata.get("tags") for cell in page.cells] == [None, ["remove-input"], ["hide-output"], None, None]
    assert "Once you have run the cell" not in page.cells[3].source


def test_an_exercise_has_its_solution_folded_below_it():
    blank = v4.new_notebook(cells=[v4.new_code_cell("x = ...", metadata={"exercise": "05.1"})])
    code = "x = (\n    ### BEGIN SOLUTION\n    1\n    ### END SOLUTION\n)"
    solved = v4.new_notebook(cells=[v4.new_code_cell(code, metadata={"exercise": "05.1"})])
    _, answer = lessons.exercises(blank, solved).cells
    assert answer.source == "<details><summary>Solution</summary>\n\n```python\nx = (\n    1\n)\n```\n\n</details>"


def test_a_graph_of_mermaid_is_a_picture_whose_arrows_show_on_dark_pages_too():
    pytest.importorskip("pygraphviz", reason="draws where there is no system `dot`")
    text = "```mermaid\ngraph LR\n  00[00 Welcome]\n  01[01 Tensors]\n  00 --> 01\n```"
    svg = pages._MERMAID.sub(pages.drawn, text)
    assert svg.startswith("<svg")
    assert "00 Welcome leads to 01 Tensors." in svg
    assert 'stroke="#777777"' in svg


def test_a_text_of_help_has_its_example_as_a_block_and_links_to_lessons_and_names(tmp_path):
    text = "Of *args and `abs()`, `abs`.\n\n>>> engine.abs(x)\ntensor(1.)\n\nSee lesson 05."
    shown = reference.shown(text, {"engine.abs": "engine.html"}, {"05": tmp_path / "05_graph.ipynb"})
    assert shown.split("\n\n") == [
        r'Of \*args and <a href="engine.html#engine.abs"><code>abs()</code></a>, `abs`.',
        "```pycon\n>>> engine.abs(x)\ntensor(1.)\n```",
        "See [lesson 05](../notebooks/05_graph.ipynb).",
    ]


def test_a_name_of_the_reference_has_its_signature_and_its_row():
    eye = reference.found("engine.nn.init.eye_")
    assert reference.signature(eye) == "(tensor)"
    path, _, row = reference.source(eye).partition("#L")
    lines = (reference.ROOT / path).read_text(encoding="utf-8").splitlines()
    assert "def eye_" in "".join(lines[int(row) - 1 :][:2])  # a decorator may come first
    assert reference.source(reference.found("engine.cdist")).startswith("engine/ops/norms.py#L")
    assert reference.found("engine.no_such_name") is None


def test_a_name_that_lessons_use_says_which_of_them_teaches_it():
    from course.base.notebooks import lesson_notebooks
    from engine.help import texts

    known = {
        reference.full(module, name): text for module in reference.modules() for name, text in texts(module).items()
    }
    lines = []
    for path in lesson_notebooks().values():
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                lines += re.findall(r"\b(?:engine|nn|F)(?:\.\w+)+", cell.source)
    short = {"nn": "engine.nn", "F": "engine.nn.functional"}
    used = {re.sub(r"^\w+", lambda start: short.get(start[0], start[0]), line) for line in lines} & known.keys()
    assert len(used) > 100
    used -= {name for name in used if inspect.ismodule(reference.found(name))}
    assert {name for name in used if not re.search(r"[Ll]esson \d\d", known[name])} == set()


def test_recaps_make_a_glossary_in_order_and_a_cheat_sheet(tmp_path, links):
    path = tmp_path / "05_graph.ipynb"
    tables = "| name | what it is |\n|---|---|\n| `f` | a node |\n\n"
    tables += "| we say | others say |\n|---|---|\n| notes | tape |\n| *knob* | weight |"
    cells = [v4.new_markdown_cell("# 05 The graph: more"), v4.new_markdown_cell(f"x\n\n## Recap\n\n{tables}")]
    nbformat.write(v4.new_notebook(cells=cells), path)
    made = recaps.pages({"05": path}, links)
    where = "[05 The graph](notebooks/05_graph.ipynb)"
    assert made["glossary.md"].splitlines()[-2:] == [f"| *knob* | weight | {where} |", f"| notes | tape | {where} |"]
    assert made["cheat_sheet.md"].splitlines()[2:] == [
        f"## {where}", "", "| name | what it is |", "| --- | --- |", "| `f` | a node |",
    ]  # fmt: skip


def test_a_listing_has_a_place_for_each_line_and_the_text_as_it_is():
    shown = extension.listing("a.py", "import x\n\ny = x.z <\\\n 1\n")
    assert re.findall(r"<a [^>]*>", shown) == [f'<a id="L-{line}">' for line in range(1, 5)]
    text = re.sub(r"<[^>]*>", "", shown.partition("<pre>")[2])
    assert html.unescape(text).strip("\n") == "import x\n\ny = x.z <\\\n 1"


class Page(HTMLParser):
    """The links, the anchors, and what a browser fetches for a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.fetched = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        elif tag == "link" and attrs.get("rel") in ("stylesheet", "icon", "preload"):
            self.fetched.append(attrs["href"])
        elif attrs.get("src"):
            self.fetched.append(attrs["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, made once: its folder and its pages."""
    for module in ("sphinx", "myst_nb", "furo"):
        pytest.importorskip(module, reason="the extra `site` is not installed")
    from course.authoring.site import build

    folder = tmp_path_factory.mktemp("made")
    assert list(build(folder / "site", folder / "sources")) == []
    target = folder / "site"
    return target, {path: Page(path.read_text(encoding="utf-8")) for path in target.rglob("*.html")}


@pytest.mark.slow
def test_the_site_is_small(site):
    folder, _ = site
    whole = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert whole < 35e6  # JupyterLite's 25 MB (tests/browser/test_lite_in_browser.py) make it 60
    sizes = {path.name: path.stat().st_size for path in (folder / "notebooks").glob("*.html")}
    assert len(sizes) > 20
    assert max(sizes.values()) < 1.5e6, sizes


@pytest.mark.slow
def test_no_page_fetches_anything_from_elsewhere(site):
    folder, pages = site
    fetched = {(path.name, url) for path, page in pages.items() for url in page.fetched}
    assert fetched
    assert [one for one in fetched if re.match(r"(?!data:)(\w+:)?//|\w+:(?<!data:)", one[1])] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.css"))
    assert re.findall(r"url\([\"']?(?:https?:)?//|@import", styles) == []


@pytest.mark.slow
def test_no_link_is_dead(site):
    folder, pages = site
    dead = []
    for path, page in pages.items():
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            found = pages.get(target)
            if not target.exists() or (found and url.fragment and unquote(url.fragment) not in found.anchors):
                dead.append((path.relative_to(folder).as_posix(), link))
    assert dead == []
    listings = [link for page in pages.values() for link in page.links if "files/engine/" in link and "#L-" in link]
    assert len(listings) > 100  # the lessons and the map of the engine quote it by line


TERM = re.compile(r"\*\*([a-z-]+(?: [a-z-]+)?)\*\*")  # how the lessons write a word where it is new
EMPHASIS = {
    "a walk", "added", "captured", "double", "moving", "near relatives", "no leaf", "passes on", "prediction",
    "read aloud", "your lines",
}  # fmt: skip  # those that are in bold, and no terms


def test_words_that_lessons_introduce_are_in_the_glossary_or_on_the_cheat_sheet():
    from course.base.notebooks import lesson_notebooks

    found = lesson_notebooks()
    told = " ".join(recaps.pages(found, Links(set())).values()).lower()
    cells = [cell for path in found.values() for cell in nbformat.read(path, as_version=4).cells]
    terms = {term for cell in cells if cell.cell_type == "markdown" for term in TERM.findall(cell.source)}
    assert len(terms) > 80
    stems = {term: re.sub(r"(?<!s)s$|e$", "", term) for term in terms}
    assert {term for term, stem in stems.items() if not re.search(rf"\b{re.escape(stem)}", told)} == EMPHASIS
