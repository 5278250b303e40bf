"""The tables at the ends of the lessons, collected: the glossary of what others say, and the cheat sheet of names."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from course.authoring.site.links import Links
from course.classroom.materials import name_of

NAMES = "name"  # a table of names begins with this
WORDS = ("in this lesson", "our word", "we say", "what we said")  # and one of words with one of these
_CELL = re.compile(r"(?<!\\)\|")
_MARKS = re.compile(r"[^\w ]")


def pages(lessons: Mapping[str, Path], links: Links) -> dict[str, str]:
    """Write the two pages."""
    recaps = {number: recap(path) for number, path in lessons.items()}
    where = {n: links.in_markdown(f"[{n} {name_of(p)}](notebooks/{p.name})", "x.md") for n, p in lessons.items()}
    words = [
        (row[0], row[1], where[number])
        for number, text in recaps.items()
        for row in tables(text, WORDS)
        if len(row) == 2
    ]
    sheet = ["# Cheat sheet"]
    for number, text in recaps.items():
        rows = [tuple(row) for row in tables(text, (NAMES,))]
        if rows:
            sheet += [f"## {where[number]}", table(("name", "what it is"), rows)]
    rows = sorted(words, key=lambda row: (_MARKS.sub("", row[0]).lower(), row[2]))
    glossary = ["# Glossary", "What the lessons say, and what you will read elsewhere.",
                table(("the lessons say", "others say", "lesson"), rows)]  # fmt: skip
    made = {"glossary.md": glossary, "cheat_sheet.md": sheet}
    return {name: links.in_markdown("\n\n".join(parts), name) + "\n" for name, parts in made.items()}


def recap(path: Path) -> str:
    """Return what a lesson's notebook says under *Recap*."""
    import nbformat

    cells = nbformat.read(path, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return text.partition("\n## Recap\n")[2]


def tables(text: str, first: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the rows of the tables whose first column has this heading."""
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        head, _, *rows = (
            [cell.strip() for cell in _CELL.split(line.strip().strip("|"))] for line in block.splitlines()
        )
        if head[0] in first:
            yield from rows


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
