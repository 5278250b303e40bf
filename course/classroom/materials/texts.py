"""A lesson's text away from the lesson: without links into the course, and with formulas as MathML.

Browsers show MathML by themselves; LaTeX would need a program from the network.
"""

import base64
import re

from docutils.utils.math.latex2mathml import tex2mathml

from course.base.notebooks import ROOT

# Code first, in which a dollar is just a dollar.
_PIECE = re.compile(r"(?P<code>```.*?```|`[^`]*`)|\$\$(?P<block>.+?)\$\$|\$(?P<line>[^$\n]+)\$", re.DOTALL)


def with_mathml(markdown: str) -> str:
    """Return Markdown with its formulas ($...$, $$...$$) as MathML. Raises docutils' MathError for unknown LaTeX."""
    return _PIECE.sub(_converted, markdown)


def _converted(match: re.Match[str]) -> str:
    if match["code"]:
        return match[0]
    text = tex2mathml((match["block"] or match["line"]).strip(), as_block=match["block"] is not None)
    return " ".join(line.strip() for line in text.splitlines())


_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://)[^)\s]*\)")
_PICTURE = re.compile(r"\]\(\.\./(docs/\w+\.svg)\)")
_NEIGHBOURS = ("**Exercises:**", "**Next:**")


def standing_alone(markdown: str) -> str:
    """Return Markdown with links into the course as words and formulas as MathML, without a lesson's last lines."""
    kept = [line for line in markdown.splitlines() if not line.startswith(_NEIGHBOURS)]
    return with_mathml(_PICTURE.sub(_embedded, _LINK.sub(r"\1", "\n".join(kept))))


def _embedded(match: re.Match[str]) -> str:
    data = base64.b64encode((ROOT / match[1]).read_bytes()).decode()
    return f"](data:image/svg+xml;base64,{data})"
