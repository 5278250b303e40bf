"""Where a link leads on the site: to a page, to a copy of a file of the repository, or nowhere (its words stay)."""

import posixpath
import re
from collections.abc import Set
from html import escape
from pathlib import Path

from course.base.notebooks import ROOT

# On the site, a link to a learner's copy leads to what it is a copy of.
COPIES = {"my_lessons": "notebooks", "my_exercises": "exercises"}
PICTURES = (".png", ".svg", ".gif")
_PIECE = re.compile(
    r"(?P<block>^```.*?^```)"
    r"|(?P<link>(?P<picture>!?)\[(?P<words>(?:`[^`]*`|[^\[\]`])+)\]\((?P<to>[^)\s]+)\))"
    r"|(?P<code>`[^`]*`)",
    re.DOTALL | re.MULTILINE,
)
_HREF = re.compile(r"(?P<a><a\b[^>]*\bhref=)(?P<quote>[\"'])(?P<to>[^\"']+)(?P=quote)")
_ELSEWHERE = re.compile(r"[a-z]+:")


class Links:
    """The links of the site's pages, which are named by their paths in the repository."""

    def __init__(self, pages: Set[str], root: Path = ROOT) -> None:
        self.pages, self.root = pages, root
        self.files: set[str] = set()  # that something links to
        self.pictures: set[str] = set()

    def in_markdown(self, text: str, place: str) -> str:
        """Return a text with its links as the site has them; `place`: the page it stands on."""

        def one(match: re.Match[str]) -> str:
            return self._link(match["words"], match["to"], place, match["picture"]) if match["link"] else match[0]

        return _PIECE.sub(one, self.in_html(text, place))

    def in_html(self, text: str, place: str) -> str:
        """Return HTML with its links as the site has them: those that lead nowhere lose their address."""

        def one(match: re.Match[str]) -> str:
            url = self.url(match["to"], place)
            return match["a"][: -len("href=")].rstrip() if url is None else f'{match["a"]}"{escape(url)}"'

        return _HREF.sub(one, text)

    def _link(self, words: str, to: str, place: str, picture: str) -> str:
        path, anchor = self._resolved(to, place)
        if path is None:
            return f"{picture}[{words}]({to})"
        if picture:
            self.pictures.add(path)
            return f"![{words}]({_from(path, place)})"
        if path in self.pages:
            own = path == place and anchor
            return f"[{words}]({'' if own else _from(path, place)}{anchor and '#' + slug(anchor)})"
        url = self.url(to, place)
        return words if url is None else f'<a href="{escape(url)}">{words}</a>'

    def url(self, to: str, place: str) -> str | None:
        """Return the address that a link leads to, as seen from its page; None if the site does not have it."""
        path, anchor = self._resolved(to, place)
        if path is None:
            return to
        if path in self.pages:
            return f"{_from(posixpath.splitext(path)[0], place)}.html{anchor and '#' + slug(anchor)}"
        if not (self.root / path).is_file():
            return None
        self.files.add(path)
        return f"{_from(f'files/{path}', place)}.html{anchor and '#' + anchor.replace('L', 'L-', 1)}"

    def _resolved(self, to: str, place: str) -> tuple[str | None, str]:
        """Split a link into a path in the repository and what follows the #; None where it leads out of the course."""
        if _ELSEWHERE.match(to):
            return None, ""
        path, _, anchor = to.partition("#")
        if not path:
            return place, anchor
        path = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        first, _, rest = path.partition("/")
        return f"{COPIES.get(first, first)}{rest and '/' + rest}", anchor


def _from(path: str, place: str) -> str:
    return posixpath.relpath(path, posixpath.dirname(place) or ".")


def slug(anchor: str) -> str:
    """Return the name that a heading has on its page, from what GitHub or JupyterLab calls it."""
    return re.sub(r"[^\w-]", "", anchor.lower())
