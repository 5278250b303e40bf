"""What somebody has written acts in no page of who marks it: nbgrader's formgrader, and the feedback."""

import base64
import html.parser
import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course.base.notebooks import ROOT

pytest.importorskip("nbgrader")
pytestmark = pytest.mark.filterwarnings("ignore")
NOTES = {
    "grade": True,
    "solution": True,
    "task": False,
    "locked": False,
    "points": 1,
    "score": 0,
    "schema_version": 3,
    "cell_type": "markdown",
}


class Acting(html.parser.HTMLParser):
    """What of a page acts: tags, and what is done on events, and where links lead."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag in (
            "script",
            "iframe",
            "object",
            "embed",
            "form",
            "svg",
            "math",
            "base",
            "meta",
            "link",
            "style",
            "input",
        ):
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("srcdoc", "style", "formaction"):
                self.found.append(f"{tag} {name}")
            elif name in ("href", "src", "action"):
                scheme = re.match(r"[^/?#]*?:", re.sub(r"[\x00-\x20]", "", value or ""))
                self.found.append(f"{tag} {scheme[0].casefold()}" if scheme else f"{tag} here")


@pytest.fixture(scope="module", params=["formgrade", "feedback"])
def page(request):
    """A page of nbgrader's, with the course's settings, as `page(cells)`."""
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader import handlers
    from traitlets.config.loader import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT / "course" / "jupyter")).load_config()
    templates = handlers.template_path
    config.HTMLExporter.template_name = request.param
    config.HTMLExporter.extra_template_basedirs = [templates]
    config.HTMLExporter.extra_template_paths = [
        str(Path(templates, "..", "static", "node_modules", "bootstrap", "dist", "css"))
    ]
    exporter = HTMLExporter(config=config)

    def shown(*cells):
        about = {"notebook": "x", "score": 0, "max_score": 1, "late_penalty": 0}
        resources = {"notebook_id": "x", "index": 0, "total": 1, "base_url": "/", "nbgrader": about}
        return exporter.from_notebook_node(new_notebook(cells=list(cells)), resources=resources)[0]

    return shown


def acting(text):
    parser = Acting()
    parser.feed(text)
    return sorted(parser.found)


@pytest.mark.parametrize(
    "words",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<img src='/hub/logout'>",
        "![x](https://example.org/x.png)",
        "[x](javascript:alert(1))",
        "<a href=' JaVaScRiPt&#58;alert(1)'>x</a>",
        "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
        "<svg onload=alert(1)><animate onbegin=alert(1)></svg>",
        "<math><mi xlink:href='javascript:alert(1)'>x</mi></math>",
        "<form action=/hub/logout><input type=submit></form>",
        "<style>* { display: none }</style><p style='position: fixed'>x",
        "<base href=//example.org><meta http-equiv=refresh content='0;url=/hub/logout'>",
        "a <b\nonclick=alert(1)>b</b> <details open ontoggle=alert(1)>",
        "$x <img src=x onerror=alert(1)>$ and $$<script>alert(1)</script>$$",
        "```html\n</pre><script>alert(1)</script>\n```",
        "![x](attachment:a.png)",
        "> " * 2000 + "<script>alert(1)</script>",
        "<b>" * 2000 + "<script>alert(1)</script>",
    ],
)
def test_words_act_nowhere(page, words):
    mime = 'image/png" onerror="alert(1)'
    attachments = {"a.png": {mime: base64.b64encode(b"x").decode()}}
    cells = [new_markdown_cell(words, attachments=attachments), new_markdown_cell(words)]
    cells[1].metadata["nbgrader"] = NOTES | {"grade_id": "a"}
    plain = [new_markdown_cell("x"), new_markdown_cell("x")]
    plain[1].metadata["nbgrader"] = NOTES | {"grade_id": "a"}
    before, after = acting(page(*plain)), acting(page(*cells))
    for one in before:
        after.remove(one)
    assert set(after) <= {"a here", "img data:"}, after


@pytest.mark.parametrize("macro", [r"\href{javascript:alert(1)}{x}", r"\require{html}", r"\style{color: red}{x}"])
def test_mathjax_makes_no_link_of_words(page, macro):
    assert macro not in page(new_markdown_cell(f"${macro}$"))


def test_words_are_still_shown_as_they_were_meant(page):
    text = page(
        new_markdown_cell(
            "# Why\n\nIt is *so*, since $a < b$:\n\n| a | b |\n|---|---|\n| 1 | `<x>` |\n\n> [here](https://example.org)"
        ),
        new_markdown_cell("![x](attachment:a.png)", attachments={"a.png": {"image/png": "eA=="}}),
        new_code_cell("print('<b>')"),
    )
    for part in ("<h1", "<em>so</em>", "$a &lt; b$", "<td>1</td>", "<code>&lt;x&gt;</code>", 'href="https://example.org"',
                 "<blockquote>", 'src="data:image/png;base64,eA=="', "&lt;b&gt;"):  # fmt: skip
        assert part in text, part
