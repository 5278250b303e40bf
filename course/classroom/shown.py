"""The text of a notebook that somebody has sent, as nbgrader's pages show it: nothing in it can act.

Formgrader's page belongs to the teacher: code that ran in it could give points, and type into the class's terminal.
"""

import html
import re
from typing import Any

import bleach
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter

TAGS = frozenset(
    "a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre s span strong"
    " sub summary sup table tbody td th thead tr u ul".split()
)
SCHEMES = {"http", "https", "mailto", "data"}
# What MathJax turns into links and styles: on this page it is not told to be safe.
ACTS = re.compile(r"\\(?=(href|require|style|class|cssId|unicode)\b)")
_exporter = HTMLExporter()


@pass_context
def words(context: Context, source: str) -> str:
    """Return Markdown as HTML, in place of nbconvert's `markdown2html`; other tags are shown as they were written."""
    try:
        found = _exporter.markdown2html(context, ACTS.sub("", source))
        return str(bleach.clean(found, tags=TAGS, attributes=_stays, protocols=SCHEMES))
    except Exception:  # an image that was left behind when the cell was copied; a list in a list in a list ...
        return f"<pre>{html.escape(source)}</pre>"


def _stays(tag: str, name: str, value: Any) -> bool:
    """Tell whether an attribute stays; an image only if it is in the notebook, as any other would ask a server."""
    if tag == "img":
        return name in ("alt", "width", "height") or name == "src" and str(value).startswith("data:image/")
    if tag == "a":
        return name == "title" or name == "href" and not str(value).strip().casefold().startswith("data:")
    return name == "class" and (tag == "span" or value == "highlight") or name in ("colspan", "rowspan")
