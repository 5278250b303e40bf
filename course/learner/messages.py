"""Messages to a learner: HTML in a notebook, with the same as plain text beside it."""

import html
import re
import sys
from collections.abc import Iterable, Iterator, Sequence


class Code(str):
    """Python in a message, to be shown in colours."""


def show(head: str, text: str, rows: Sequence[tuple[str, str]] = (), after: str = "", tone: str = "info") -> None:
    """Display a message: HTML in a notebook, with the same as plain text beside it."""
    put(*message(head, text, rows, after, tone))


def message(head: str, text: str, rows: Sequence[tuple[str, str]], after: str, tone: str) -> tuple[str, str]:
    """Return a message as plain text and as HTML."""
    return "\n".join(as_text(head, text, rows, after)), box(as_html(head, text, rows, after), tone)


def put(plain: str, page: str) -> None:
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        from IPython.display import display

        display({"text/html": page, "text/plain": plain}, raw=True)
    else:
        print(plain)


def as_text(head: str, text: str, rows: Sequence[tuple[str, str]], after: str) -> Iterator[str]:
    yield head
    if text:
        yield text
    for label, value in rows:
        if "\n" in value or not label:
            yield from [f"{label}:"] * bool(label)
            yield from (f"    {line}" for line in value.splitlines())
        else:
            yield f"{label}: {value}"
    if after:
        yield after


def box(parts: Iterable[str], tone: str) -> str:
    # The words say it all: the colour of the edge says it once more, for those who see it.
    edge = f"border-left: 4px solid var(--jp-{tone}-color1, currentColor); padding: 0 1em"
    return "".join([f'<div role="status" style="{edge}">', *parts, "</div>"])


def as_html(head: str, text: str, rows: Sequence[tuple[str, str]], after: str) -> Iterator[str]:
    first, *more = text.split("\n")
    yield f"<p><strong>{html.escape(head)}</strong> {marked(first)}</p>"
    yield from (f"<p style='margin: 0.3em 0'>{marked(line)}</p>" for line in more)
    for label, value in rows:
        if label:
            yield f"<p style='margin: 0.3em 0 0'>{html.escape(label)}</p>"
        content = in_colours(value) if isinstance(value, Code) else html.escape(value)
        yield f'<pre style="margin: 0 0 0 1em">{content}</pre>'
    if after:
        yield f"<p style='margin: 0.5em 0'>{marked(after)}</p>"


def in_colours(source: str) -> str:
    """Python as HTML in the colours of JupyterLab's theme."""
    try:
        from jupyterlab_pygments import JupyterStyle
        from pygments import formatters, highlight, lexers
    except ImportError:  # they come with JupyterLab
        return html.escape(source)
    return highlight(
        source, lexers.PythonLexer(), formatters.HtmlFormatter(nowrap=True, noclasses=True, style=JupyterStyle)
    )


def marked(text: str) -> str:
    """Turn a message into HTML: `code` between backticks, *emphasis* between stars (`2 * x * y` is neither)."""
    parts = re.split("`([^`]+)`", html.escape(text))
    parts[::2] = [re.sub(r"(?<![\w*])\*(\w(?:[^*]*\w)?)\*(?![\w*])", r"<em>\1</em>", part) for part in parts[::2]]
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    return "".join(parts)
