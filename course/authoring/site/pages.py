"""Which documents are pages of the site, and their sources, written into a folder for Sphinx."""

import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

from course.authoring.site import lessons, moving, recaps, reference
from course.authoring.site.charts import charted
from course.authoring.site.links import Links
from course.authoring.site.live.packed import Figure
from course.base.files import write_atomically
from course.base.notebooks import HOME, ROOT, lesson_folders, lesson_notebooks
from course.classroom.materials import name_of

# The pages that are documents, by their headings at the side. A document that does not exist is left out.
TAKEN = {
    "Look up": ("docs/engine.md", "docs/differences.md", "benchmarks/README.md"),
    "Teach": ("docs/teaching.md", "docs/classroom.md", "docs/syllabus.md", "docs/writing_exercises.md"),
    "Take part": ("CONTRIBUTING.md", "docs/course.md", "course/lessons/README.md", "CHANGELOG.md", "SECURITY.md",
                  "CODE_OF_CONDUCT.md"),
}  # fmt: skip
MADE = {
    "Look up": ["reference/index", "glossary", "cheat_sheet", "figures"],
    "Teach": ["course/lessons/index"],
}  # of no document
_MERMAID = re.compile(r"(?s)```mermaid\n(.*?)```")
_ADDRESS = re.compile(r"`(https://[^`]*)`")
_TOCTREE = "```{{toctree}}\n:hidden:\n{options}\n{entries}\n```\n"


def write(folder: Path, beside: Path) -> set[str]:
    """Write the sources of all pages into a folder, remove former ones, and return the files that they link to.

    What the figures need goes into the folder `beside`.
    """
    found = lesson_notebooks()
    notes = {path.name[:2]: path / "teaching.md" for path in lesson_folders() if (path / "teaching.md").is_file()}
    documents = [name for names in TAKEN.values() for name in names if (ROOT / name).is_file()]
    documents += ["README.md", *(_name(path, HOME) for path in notes.values())]
    exercises = [path for path in sorted((ROOT / "exercises").glob("*.ipynb")) if path.name[:2] in found]
    links = Links({*documents, *(_name(path) for path in [*found.values(), *exercises])})

    made = {name: document(name, links) for name in documents}
    live = moving.write(found, beside)
    made |= {_name(path): notebook(path, links, live[number]) for number, path in found.items()}
    made["figures.md"] = links.in_markdown(moving.table(found, live), "figures.md")
    made |= {_name(path): exercise(path, links) for path in exercises}
    made |= reference.pages(found, links) | recaps.pages(found, links)
    made |= indices(found, exercises, notes)
    made["index.md"] = front(links)
    for name, text in made.items():
        write_atomically(folder / name, text)
    for name in links.pictures:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    kept = {folder / name for name in {*made, *links.pictures}}
    for path in [path for path in folder.rglob("*") if path.is_file() and path not in kept]:
        path.unlink()
    return links.files


def _name(path: Path, root: Path = ROOT) -> str:
    return path.relative_to(root).as_posix()


def document(name: str, links: Links) -> str:
    """Render a document of the repository."""
    text = ((ROOT if (ROOT / name).is_file() else HOME) / name).read_text(encoding="utf-8")
    if name == "README.md":  # its beginning is the first page
        text = "# Start, learn, teach\n\n## " + text.partition("\n## ")[2]
    return _MERMAID.sub(drawn, charted(links.in_markdown(owned(text, owner()), name)))


def owner() -> str:
    """Return the owner of the public repository; empty as long as there is none."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(found.get("tool", {}).get("undertorch", {}).get("owner", ""))


def owned(text: str, owner: str) -> str:
    """Turn the addresses that say OWNER into links; as long as there is no owner, leave these tables out."""
    parts = text.split("\n\n")
    for place, part in enumerate(parts):
        if "OWNER" in part and part.startswith("|"):
            if owner:
                parts[place] = _ADDRESS.sub(r"<\1>", part)
                parts[place - 1] = "These addresses open it without installing anything:"
            else:
                parts[place - 1 : place + 1] = ["", ""]  # with the sentence above, which announces it
    text = "\n\n".join(parts)
    return text.replace("OWNER", owner) if owner else text


def notebook(path: Path, links: Links, live: list[Figure]) -> str:
    """Render a lesson."""
    import nbformat

    nb = nbformat.read(path, as_version=4)
    moving.mark(nb, live)
    return str(nbformat.writes(lessons.page(nb, _name(path), links)))


def exercise(path: Path, links: Links) -> str:
    """Render a lesson's exercises, with their solutions where these are at hand."""
    import nbformat

    nb = nbformat.read(path, as_version=4)
    solved = ROOT / "solutions" / path.name
    if solved.is_file():
        nb = lessons.exercises(nb, nbformat.read(solved, as_version=4))
    return str(nbformat.writes(lessons.page(nb, _name(path), links)))


def drawn(match: re.Match[str]) -> str:
    """Render one of Mermaid's graphs as a picture: a page would need a program to draw it."""
    from engine.viz.dot import Drawing

    names = dict(re.findall(r"(\w+)\[(.+?)\]", match[1]))
    arrows = re.findall(r"(\w+) --> (\w+)", match[1])
    nodes = [f'  {name} [label="{label}"]' for name, label in names.items()]
    style = [
        '  graph [bgcolor="transparent"]',
        '  edge [color="#777777"]',  # visible on light and on dark
        '  node [shape=box style=filled fillcolor="#ffffff" fontname=Helvetica]',
    ]
    dot = "\n".join(["digraph {", *style, *nodes, *(f"  {a} -> {b}" for a, b in arrows), "}"])
    words = "\n".join(["What stands on what.", *(f"{names.get(a, a)} leads to {names.get(b, b)}." for a, b in arrows)])
    svg = Drawing(words, dot).svg
    return (
        match[0].replace("```mermaid", "```text") if svg is None else re.sub(r"\n\s*\n", "\n", svg[svg.index("<svg") :])
    )


def front(links: Links) -> str:
    """Write the first page: the beginning of the README."""
    opening = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    learn = ["README", "lessons", "exercises/index"]
    trees = [_toctree("Learn", learn)]
    for caption, names in TAKEN.items():
        entries = [name.removesuffix(".md") for name in names if (ROOT / name).is_file()]
        trees.append(_toctree(caption, [*entries, *MADE.get(caption, [])]))
    return "\n".join([links.in_markdown(opening, "index.md"), "", *trees])


def _toctree(caption: str, entries: list[str]) -> str:
    return _TOCTREE.format(options=f":caption: {caption}\n" if caption else "", entries="\n".join(entries))


def indices(found: Mapping[str, Path], exercises: list[Path], notes: Mapping[str, Path]) -> dict[str, str]:
    """Write the pages that only list others: lessons, exercises, notes for teachers."""
    names = {number: f"{number} {name_of(path)}" for number, path in found.items()}
    lists = {
        "lessons.md": ("The lessons", [f"{names[n]} <{_name(path)}>" for n, path in found.items()]),
        "exercises/index.md": ("The exercises", [f"{names[path.name[:2]]} <{path.name}>" for path in exercises]),
        "course/lessons/index.md": (
            "Notes for each lesson",
            [f"{names[n]} <{path.parent.name}/teaching.md>" for n, path in notes.items() if n in names],
        ),
    }
    return {
        name: f"# {title}\n\n```{{toctree}}\n" + "\n".join(entries) + "\n```\n"
        for name, (title, entries) in lists.items()
    }
