"""Pictures from DOT text: ``Drawing`` renders it, ``digraph``, ``box`` and ``chip`` write it.  Knows no tensor."""

import base64
import os
from contextlib import contextmanager
from functools import cached_property
from html import escape
from pathlib import Path
from xml.etree import ElementTree

INSTALL = "no picture: install Graphviz (apt, dnf, brew, choco or conda install graphviz; or pip install pygraphviz)"
SVG = "http://www.w3.org/2000/svg"


class Drawing:
    """A drawing: ``dot``, ``svg``, ``png``, ``text``; a picture in a notebook, text where it is printed."""

    def __init__(self, text, dot):
        self.text, self.dot = text, dot

    @cached_property
    def svg(self):
        """The picture as SVG text; None where there is no Graphviz."""
        drawn = render(self.dot, "svg")
        return None if drawn is None else labelled(drawn.decode(), self.summary, self.text)

    @cached_property
    def png(self):
        """The picture as the bytes of a PNG; None where there is no Graphviz."""
        return render(self.dot, "png")

    @property
    def summary(self):
        """The first line of the text."""
        return self.text.partition("\n")[0]

    def save(self, path):
        """Write the picture, or its DOT or text, as the suffix says: .svg, .png, .dot, .gv, .txt."""
        path = Path(path)
        kinds = {".svg": "svg", ".png": "png", ".dot": "dot", ".gv": "dot", ".txt": "text"}
        if path.suffix.lower() not in kinds:
            raise ValueError(f"graphs are saved as {', '.join(kinds)}, but got {path.name!r}")
        content = getattr(self, kinds[path.suffix.lower()])
        if content is None:
            raise RuntimeError(f"{INSTALL}; or save as .dot or .txt")
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(content if isinstance(content, bytes) else content.encode())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        static = {"text/plain": self.text, "text/html": image(self.svg, self.summary, self.text)}
        return static if self.svg else in_browser(self.dot) | static


def data_address(svg):
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode('ascii')}"


NO_PICTURE = data_address(
    f'<svg xmlns="{SVG}" width="800" height="20"><text y="15" font-size="13" fill="#808080">{INSTALL}</text></svg>'
)


def image(svg, alt, text, heading="The graph in words"):
    """HTML that shows an SVG everywhere, in notebooks that are not trusted and on the web too, with its text below.

    In place of an SVG that is None stands what to install.
    """
    source = NO_PICTURE if svg is None else data_address(svg)
    return (
        f'<img alt="{escape(alt)}" src="{source}">\n'
        f"<details><summary>{heading}</summary><pre>{escape(text)}</pre></details>"
    )


def in_browser(dot):
    """The output with which the browser draws DOT text itself; empty without graphviz-anywidget."""
    try:
        from graphviz_anywidget import GraphvizAnyWidget  # noqa: PLC0415  only where it is installed
    except ImportError:
        return {}
    bundle = GraphvizAnyWidget(dot_source=dot, enable_zoom=False)._repr_mimebundle_()
    return bundle[0] if isinstance(bundle, tuple) else bundle


def render(dot, kind):
    """A picture of DOT text, by the first Graphviz that there is: the system's, pygraphviz's own; else None."""
    try:
        import graphviz  # noqa: PLC0415  only where it is installed

        return graphviz.pipe("dot", kind, dot.encode(), quiet=True)
    except Exception:  # whatever is wrong with a Graphviz, a lesson goes on without it
        pass
    try:
        import pygraphviz  # noqa: PLC0415  only where it is installed

        drawing = pygraphviz.AGraph(string=dot)
        with stderr_unheard():
            drawing.layout("dot")
            return drawing.draw(format=kind)
    except Exception:
        return None


@contextmanager
def stderr_unheard():
    """Drop what libraries in C write to stderr: pygraphviz's fontconfig warns of settings made for a newer one."""
    stderr = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def labelled(svg, title, description):
    """Graphviz's SVG without what changes from build to build, and with words for screen readers."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.attrib.pop("id", None)
        for child in [c for c in element if c.tag == f"{{{SVG}}}title"]:
            element.remove(child)
    root.attrib |= {"role": "img", "aria-label": title}
    for i, (tag, words) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}")
        element.text = words
        root.insert(i, element)
    return ElementTree.tostring(root, encoding="unicode")


def plural(n, noun):
    return f"{n} {noun}" if n == 1 else f"{n} {noun[:-1]}ves" if noun.endswith("f") else f"{n} {noun}s"


# Fills that stand out from white and from black pages, with text that can be read on them.  No two kinds of nodes have
# the same outline, so that nothing is said by colour alone.
STYLES = {
    "operation": 'shape=box style="filled" fillcolor="#35679a" color="#7ba4cf" fontcolor="#ffffff"',
    "leaf": 'shape=box style="filled,rounded" fillcolor="#2a7a4b" color="#6dbb8d" fontcolor="#ffffff"',
    "result": 'shape=box style="filled,rounded" peripheries=2 fillcolor="#80479f" color="#b58acb" fontcolor="#ffffff"',
    "constant": 'shape=box style="filled,dashed,rounded" fillcolor="#eeeeee" color="#777777" fontcolor="#222222"',
    "more": 'shape=octagon style="filled,dashed" fillcolor="#eeeeee" color="#777777" fontcolor="#222222"',
}
FONT = "Helvetica,Arial,sans-serif"


def digraph(lines, label, direction, apart, margin):
    """DOT text with a label under the picture; ``apart``: the distances of nodes and of ranks; ``margin``: of text."""
    head = [
        f'  graph [rankdir={direction} bgcolor="transparent" nodesep={apart[0]} ranksep={apart[1]} labelloc=b',
        f'         fontname="{FONT}" fontsize=10 label={chip(label)}]',
        f'  node [fontname="{FONT}" fontsize=12 margin="{margin}" height=0.3]',
        f'  edge [fontname="{FONT}" fontsize=10 color="#777777" arrowsize=0.7]',
    ]
    return "\n".join(["digraph {", *head, *lines, "}"])


# Ends a row, and leaves a small empty one: else a "y" and the "(" below it touch.
APART = '<font point-size="3"><br/><br/></font>'


def box(kind, *rows, number=None):
    """The attributes of a node: its first row in bold, the others small."""
    first, *others = filter(None, rows)
    count = "" if number is None else f'<font point-size="9">{number}  </font>'
    small = "".join(f'{APART}<font point-size="10">{escape(row)}</font>' for row in others)
    name = "" if number is None else f" n{number}"
    return f'[{STYLES[kind]} class="{kind}{name}" label=<{count}<b>{escape(first)}</b>{small}>]'


def chip(rows, note=""):
    """Text on a light ground of its own, for where it would lie on the page; a note has a ground of another colour."""
    # The spaces leave room for fonts that are wider than the one which the layout was made with.
    texts = [f"&#160;{escape(row)}&#160;" for row in rows if row]
    cells = [("#eeeeee", "<br/>".join(texts)), ("#ffd9c2", note and f"<b>&#160;{escape(note)}&#160;</b>")]
    table = "".join(
        f'<tr><td bgcolor="{ground}" style="rounded"><font color="#222222">{text}</font></td></tr>'
        for ground, text in cells if text
    )  # fmt: skip
    return f'<<table border="0" cellborder="0" cellspacing="1" cellpadding="4">{table}</table>>'
