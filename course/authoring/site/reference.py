"""The reference of `engine`: what help() says of each public name, and its signature, as pages."""

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from course.authoring.site.links import Links
from course.base.notebooks import ROOT

_CODE = re.compile(r"(`[^`]*`)")
_SPECIAL = re.compile(r"([\\*_<>\[\]|#$~])")
_LESSON = re.compile(r"\b([Ll]esson) (\d\d)\b")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def modules() -> list[str]:
    """Return the modules that have texts, by the names of their files."""
    from engine.help import HERE

    return sorted({path.stem.partition("-")[0] for path in HERE.glob("*.md")})


def full(module: str, name: str = "") -> str:
    """Return the path by which a program reaches a name, which is also its anchor."""
    return ".".join(filter(None, ["engine", "" if module == "engine" else module, name]))


def pages(lessons: Mapping[str, Path], links: Links) -> dict[str, str]:
    """Write a page for each module, and the list of them."""
    from engine.help import texts

    known = {full(module, name): f"{full(module)}.html" for module in modules() for name in texts(module)}
    made = {f"reference/{full(module)}.md": page(module, known, lessons, links) for module in modules()}
    entries = "\n".join(full(module) for module in modules())
    words = "What `help()` says of each public name. The examples are run by tests, under PyTorch too."
    made["reference/index.md"] = f"# Reference\n\n{words}\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
    return made


def page(module: str, known: Mapping[str, str], lessons: Mapping[str, Path], links: Links) -> str:
    from engine.help import texts

    place = f"reference/{full(module)}.md"
    parts = [f"# {full(module)}"]
    for name, text in texts(module).items():
        what = found(full(module, name))
        parts.append(f"## {_escaped(name)}")
        parts.append(f'<a id="{full(module, name)}"></a>')
        parts.append(f"```text\n{full(module, name)}{signature(what)}\n```")
        parts.append(links.in_markdown(shown(text, known, lessons), place))
        row = source(what)
        if row:
            parts.append(links.in_markdown(f"[Source](../{row})", place))
    return "\n\n".join(parts) + "\n"


def found(path: str) -> Any:
    """Return what a path leads to; None for what does not exist without an instance."""
    what: Any = import_module("engine")
    done = "engine"
    for name in path.split(".")[1:]:
        done += f".{name}"
        try:
            what = inspect.getattr_static(what, name) if inspect.isclass(what) else getattr(what, name)
        except AttributeError:
            try:
                what = import_module(done)
            except ImportError:
                return None
    return getattr(what, "__func__", what)  # of a static or class method


def signature(what: Any) -> str:
    """Write how a function or class is called; empty if it is not called, or does not say how."""
    try:
        return _ADDRESS.sub("", str(inspect.signature(what))) if callable(what) else ""
    except (TypeError, ValueError):
        return ""


def source(what: Any) -> str | None:
    """Return the file and line of a function or class, if that is in the engine."""
    function: Any = what.fget if isinstance(what, property) else what
    what = inspect.unwrap(function) if callable(function) else function
    if inspect.isfunction(what):  # one that is generated, and so in no file: take the operation that it calls
        what = inspect.getclosurevars(what).nonlocals.get("inner", what)
    if not (inspect.isfunction(what) or inspect.isclass(what)):
        return None
    try:
        path = Path(inspect.getsourcefile(what) or "")
        line = inspect.getsourcelines(what)[1]
    except (OSError, TypeError):
        return None
    inside = path.is_file() and path.is_relative_to(ROOT / "engine")
    return f"{path.relative_to(ROOT).as_posix()}#L{max(line, 1)}" if inside else None


def shown(text: str, known: Mapping[str, str], lessons: Mapping[str, Path]) -> str:
    """Render a text as Markdown: examples as blocks, lessons and names as links."""

    def lesson(match: re.Match[str]) -> str:
        path = lessons.get(match[2])
        return match[0] if path is None else f"[{match[0]}](../notebooks/{path.name})"

    def code(piece: str) -> str:
        name = piece.strip("`").removesuffix("()").removeprefix("engine.")
        to = f"engine.{name}"
        if to not in known or not (piece.endswith("()`") or "." in name):  # else it may be a parameter
            return piece
        return f'<a href="{known[to]}#{to}"><code>{piece.strip("`")}</code></a>'

    def paragraph(words: str) -> str:
        if words.startswith(">>>"):
            return f"```pycon\n{words}\n```"
        if words.startswith("    "):
            return f"```text\n{words}\n```"
        pieces = _CODE.split(words)
        return "".join(code(p) if p.startswith("`") else _LESSON.sub(lesson, _escaped(p)) for p in pieces)

    return "\n\n".join(paragraph(words) for words in re.split(r"\n{2,}", text.strip("\n")))


def _escaped(words: str) -> str:
    return _SPECIAL.sub(r"\\\1", words)
