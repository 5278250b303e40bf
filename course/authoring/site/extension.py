"""What the site adds to Sphinx: formulas as MathML, which browsers show by themselves; the files that are linked; what
people need who use a keyboard or a screen reader, and the theme leaves out.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.authoring.site import lite
from course.base.notebooks import ROOT
from course.learner import copies

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

_LINE = re.compile(r'(<a id="L-\d+")[^>]*>')
_PLAIN = re.compile(r'<span class="[npw]">(.*?)</span>', re.DOTALL)  # names, dots, spaces: in the colour of the text

# What a page gets in place of what Sphinx and its theme write.
USABLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<th class="head"><p></p></th>': "<td></td>",  # a table without headings
    "<pre>": '<pre tabindex="0">',  # so that a keyboard scrolls a long line
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',  # and a wide table
}
# Where a notebook opens on others' computers, once the owner of the public repository is known.
CLOUDS = {
    "on Binder": "https://mybinder.org/v2/gh/{owner}/undertorch/HEAD?urlpath=lab/tree/{copy}",
    "in Colab": "https://colab.research.google.com/github/{owner}/undertorch/blob/HEAD/{page}.ipynb",
}


def setup(app: "Sphinx") -> dict[str, bool]:
    """Set up the extension; Sphinx calls this."""
    app.add_config_value("site_linked", [], "html", types=[list])
    app.add_config_value("site_lite", False, "html", types=[bool])
    app.add_config_value("site_owner", "", "html", types=[str])
    app.add_html_math_renderer("mathml", (_formula, None), (_displayed, None))
    app.connect("html-page-context", offer)
    app.connect("html-page-context", alone, priority=900)  # the theme has its tree by then
    app.connect("html-collect-pages", files)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _formula(translator: Any, node: "nodes.Element") -> None:
    _mathml(translator, node, as_block=False)


def _displayed(translator: Any, node: "nodes.Element") -> None:
    _mathml(translator, node, as_block=True)


def _mathml(translator: Any, node: "nodes.Element", as_block: bool) -> None:
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    translator.body.append(tex2mathml(node.astext().strip(), as_block=as_block))
    raise nodes.SkipNode


def finish(app: "Sphinx", exception: Exception | None) -> None:
    """Make every page usable by everybody."""
    for path in Path(app.outdir).rglob("*.html") if exception is None else ():
        before = text = path.read_text(encoding="utf-8")
        for written, wanted in USABLE.items():
            text = text.replace(written, wanted)
        if text != before:
            path.write_text(text, encoding="utf-8", newline="")


def offer(app: "Sphinx", page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Say at the top of a notebook's page where it can be run."""
    folder = copies.MINE.get(page.partition("/")[0])
    if folder and (ROOT / f"{page}.ipynb").is_file():
        copy = f"{folder}/{page.partition('/')[2]}.ipynb"
        links = [f'<a href="{place}">{name}</a>' for name, place in launches(app.config, page, copy)]
        if links:
            context["body"] = f"<p>Run it {', '.join(links)}</p>\n{context['body']}"


def launches(config: Any, page: str, copy: str) -> Iterator[tuple[str, str]]:
    """Return the places where a notebook can be run: words and addresses."""
    if config.site_lite:
        yield "in your browser", f"../{lite.FOLDER}/lab/index.html?path={copy}"
    if config.site_owner:
        for name, place in CLOUDS.items():
            yield name, place.format(owner=config.site_owner, page=page, copy=copy)


def alone(app: "Sphinx", page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Leave out the tree of all pages beside a file's lines: in hundreds of pages it would be a fifth of the site."""
    if page.startswith("files/"):
        context["furo_navigation_tree"] = ""


def files(app: "Sphinx") -> Iterator[tuple[str, dict[str, str], str]]:
    """Make a page for each file of the repository that a text links to, with its lines numbered."""
    for name in app.config.site_linked:
        text = (ROOT / name).read_text(encoding="utf-8")
        yield f"files/{name}", {"title": name, "body": listing(name, text)}, "page.html"


def listing(name: str, text: str) -> str:
    """Render a file as HTML; line 12 is at #L-12."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import TextLexer, get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(name, stripnl=False)
    except ClassNotFound:
        lexer = TextLexer(stripnl=False)
    shown = highlight(text, lexer, HtmlFormatter(cssclass="highlight numbered", lineanchors="L"))
    shown = _PLAIN.sub(r"\1", _LINE.sub(r"\1>", shown))
    return f"<h1>{name}</h1>\n{shown}"
