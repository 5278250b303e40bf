"""What the site adds to Sphinx: formulas as MathML, which browsers show by themselves; the files that are linked."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from course.base.notebooks import ROOT

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx


def setup(app: "Sphinx") -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("site_linked", [], "html", types=[list])
    app.add_html_math_renderer("mathml", (_formula, None), (_displayed, None))
    app.connect("html-collect-pages", files)
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


def files(app: "Sphinx") -> Iterator[tuple[str, dict[str, str], str]]:
    """A page for each file of the repository that a text links to, with its lines numbered."""
    for name in app.config.site_linked:
        text = (ROOT / name).read_text(encoding="utf-8")
        yield f"files/{name}", {"title": name, "body": listing(name, text)}, "page.html"


def listing(name: str, text: str) -> str:
    """A file as HTML; line 12 is at #L-12."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import TextLexer, get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(name, stripnl=False)
    except ClassNotFound:
        lexer = TextLexer(stripnl=False)
    shown = highlight(text, lexer, HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=False))
    return f"<h1>{name}</h1>\n{shown}"
