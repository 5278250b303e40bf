"""Brings what docs/ says of the engine up to date: the picture of the layers, the tables of files, the lines of links.

    python docs/update.py

The picture is drawn from the contracts on imports in pyproject.toml; a file's line in a table is the first line of its
docstring; a link names a file and what stands there.  In engine/help the last line of a text says which lesson the name
is from.  The type stubs of the engine, which ``stubs.py`` makes, are written too.  Tests say when this has to be run.
"""

import ast
import re
import sys
import tomllib
from functools import cache
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
ENGINE = DOCS.parent / "engine"
LINK = re.compile(r"\[(`?)([A-Za-z_][\w.]*)\1\]\((\.\./(?:engine|course)/[\w/]+\.py)#L\d+\)")
TABLE = re.compile(r"(<!-- files: ([\w/ .]+) -->\n).*?(<!-- end -->)", re.DOTALL)
LESSONS = re.compile(r"(<!-- lessons: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
FILLS = {"layer": "#35679a", "core": "#2a7a4b", "file": "#2a7a4b", "public": "#80479f"}


def contracts():
    """{the contract's id: its layers, from the top down, each a list of names}"""
    found = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return {c["id"]: [re.findall(r"\w+", layer) for layer in c["layers"]] for c in found if "layers" in c}


# ---- the picture


def cell(name, kind):
    port = ' port="core"' if kind == "core" else ""
    return f'<td{port} bgcolor="{FILLS[kind]}"><font color="#ffffff">&#160;{escape(name)}&#160;</font></td>'


def stack(rows):
    """A table of rows of cells, each row a table of its own, so that it fills the width."""
    inner = '<table border="0" cellborder="0" cellspacing="3" cellpadding="5"><tr>{}</tr></table>'
    body = "".join(f"<tr><td>{inner.format(''.join(row))}</td></tr>" for row in rows)
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="0">{body}</table>>'


def picture():
    """The layers as DOT: the packages of the engine, and beside them the files of the core."""
    layers = contracts()
    packages = [
        [cell(n, "core" if n == "core" else "public" if i == 0 else "layer") for n in names]
        for i, names in enumerate(layers["downwards"])
    ]
    there = {path.stem for path in (ENGINE / "core").glob("*.py")}
    files = [[cell(n, "file") for n in names if n in there] for names in layers["core"]]
    return "\n".join([
        "digraph {",
        '  graph [rankdir=LR bgcolor="transparent" nodesep=0.3 ranksep=0.6]',
        '  node [shape=plain fontname="Helvetica,Arial,sans-serif" fontsize=12]',
        '  edge [style=dashed dir=none color="#777777"]',
        f"  packages [label={stack(packages)}]",
        f"  files [label={stack([row for row in files if row])}]",
        "  packages:core:e -> files",
        "}\n",
    ])  # fmt: skip


def words():
    """The picture for those who cannot see it; its first line is the title."""
    layers = contracts()
    lines = ["The layers of the engine: each imports only from those below it."]
    lines += ["engine, from the top down: " + "; ".join(", ".join(names) for names in layers["downwards"])]
    lines += ["engine/core, from the top down: " + "; ".join(", ".join(names) for names in layers["core"])]
    return "\n".join(lines)


# ---- the tables and the links


def docstring(path):
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""


def first_line(path):
    return docstring(path).partition("\n")[0].replace("``", "`").replace("|", "\\|")


def reading_order(folder):
    """The files of a folder as the docstring of its __init__ lists them, those that it does not name at the end."""
    files = sorted(path for path in folder.glob("*.py") if path.stat().st_size)
    listed = re.findall(r"(?m)^(\w+)  ", docstring(folder / "__init__.py"))
    place = {name: i for i, name in enumerate(["__init__", *listed])}
    return sorted(files, key=lambda path: place.get(path.stem, len(place)))


def table(names):
    """A row for each file of a folder, or for each of the files that are named."""
    folder, *chosen = names.split()
    files = [ENGINE / folder / name for name in chosen] or reading_order(ENGINE / folder)
    rows = [f"| [`{p.name}`](../{p.relative_to(DOCS.parent).as_posix()}) | {first_line(p)} |" for p in files]
    return "\n".join(["| | |", "|---|---|", *rows, ""])


def line_of(path, name):
    """The line in which a function, a class or a name of a module begins; ``Class.method`` too."""
    body = ast.parse(path.read_text("utf-8")).body
    for part in name.split("."):
        found = next((node for node in body if part in names_of(node)), None)
        if found is None:
            raise LookupError(f"{path} has no {name}")
        body = getattr(found, "body", [])
    return found.lineno


def names_of(node):
    """What a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    targets = [t for target in targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [f"{t.value.id}.{t.attr}" if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) else t.id
            for t in targets if isinstance(t, ast.Name | ast.Attribute)]  # fmt: skip


def brought_up_to_date(text):
    """A document with its tables made anew, and with the lines of its links."""
    text = TABLE.sub(lambda m: m[1] + table(m[2]) + m[3], text)
    text = LESSONS.sub(lambda m: f"{m[1]}{LISTS[m[2]]()}\n\n{m[3]}", text)
    return LINK.sub(lambda m: f"[{m[1]}{m[2]}{m[1]}]({m[3]}#L{line_of(DOCS / m[3], m[2])})", text)


# ---- the lists of lessons

NEEDS = re.compile(r"(?ms)^\*\*You need\*\*(.*?)^\*\*Time")


def of_lesson(folder):
    """What a lesson's texts say of it: number and title, words for learners, its names, minutes, what it needs."""
    text, notes = ((folder / name).read_text("utf-8") for name in ("lesson.md", "teaching.md"))
    checks = folder / "checks.py"
    points = re.findall(r"\bpoints=(\d+)", checks.read_text("utf-8")) if checks.is_file() else []
    return {
        "folder": folder.name,
        "file": f"{folder.name}.ipynb",
        "number": folder.name[:2],
        "title": re.match(r"# (.*)\n", notes)[1],
        "name": re.match(r"# \d\d (.*)\n", notes)[1],
        "words": re.search(r"(?m)^\*For learners\*: (.*)$", notes)[1],
        "names": re.search(r"(?m)^\*With its names\*: (.*)$", notes)[1],
        "minutes": re.search(r"\*\*Time\*\* (\d+) minutes", text)[1],
        "exercises": f"{4 * sum(map(int, points))} " if points else "",
        "needs": sorted(set(re.findall(r"\((\d\d)_\w+\.ipynb\)", re.search(NEEDS, text)[1]))),
    }


@cache
def all_lessons():
    folders = sorted(path.parent for path in (DOCS.parent / "course/lessons").glob("*/lesson.md"))
    return [of_lesson(folder) for folder in folders]


def rows(head, row):
    return "\n".join([head, "|---|---|---|", *(row.format(**lesson) for lesson in all_lessons())])


def graph():
    """Which lesson needs which, in Mermaid."""
    arrows = [f"  {needed} --> {lesson['number']}" for lesson in all_lessons() for needed in lesson["needs"]]
    names = ["  {number}[{title}]".format(**lesson) for lesson in all_lessons()]
    return "\n".join(["```mermaid", "graph LR", *names, *arrows, "```"])


LISTS = {
    "names": lambda: rows("| no. | lesson | what it is about |", "| {number} | [{name}](notebooks/{file}) | {names} |"),
    "words": lambda: rows("| no. | lesson | what it is about |", "| {number} | [{name}]({file}) | {words} |"),
    "minutes": lambda: rows(
        "| lesson | minutes | exercises |",
        "| [{title}](../course/lessons/{folder}/teaching.md) | {minutes} | {exercises}|",
    ),
    "graph": graph,
}


# ---- the lessons that help texts name


@cache
def lessons():
    """[(number, what is named in the table of its recap, what its cells use, its words)] of the lessons from 01 on"""
    found = []
    for path in sorted((DOCS.parent / "course/lessons").glob("*/lesson.md"))[1:]:
        text = path.read_text("utf-8")
        named = re.findall(r"(?m)^\| (`.+?) \|", text)
        cells = re.findall(r"(?s)\n```{code-cell}.*?\n```", text)
        found.append((path.parent.name[:2], "\n".join(named), "\n".join(cells), {*re.findall(r"\w+", text)}))
    return found


def lesson_of(name, module):
    """The first lesson that names this in its recap, or else the first that uses it; None if there is none."""
    tensor = r"(?<!\bdevic)\w"  # the type in x.device.type is not the tensor's
    aliases = {"engine": r"\w", "Tensor": tensor, "nn.functional": r"\b(?:F|functional)", "nn.parameter": r"\bnn"}
    owner = aliases.get(module, rf"\b(?:engine|{module.rpartition('.')[2]})")
    named, used = re.compile(rf"`[^`]*(?:{owner}\.|`){name}\b"), re.compile(rf"{owner}\.{name}\b")
    having = [lesson for lesson in lessons() if name in lesson[3]]  # the patterns alone take seconds for all names
    of_recap = (number for number, table, _, _ in having if named.search(table))
    return next(of_recap, None) or next((number for number, _, cells, _ in having if used.search(cells)), None)


def with_lessons(path):
    """A file of help texts, each that has an example with the lesson that its name is from as its last line.

    The others say so by hand, where a lesson teaches what has no example.
    """
    head, *blocks = path.read_text("utf-8").split("\n## ")
    for i, block in enumerate(blocks):
        names, _, rest = block.partition("\n")
        body, family, following = rest.partition("\n# ")
        known = [lesson_of(name, path.stem.partition("-")[0]) for name in names.split(", ") if "." not in name]
        own = ">>> " in body and not body.startswith("An old name")  # those are names of other functions too
        if own and (found := min(filter(None, known), default=None)):
            body = re.sub(r"\n\nSee lesson \d\d\.$", "", body.rstrip()) + f"\n\nSee lesson {found}.\n"
        blocks[i] = f"{names}\n{body}{family}{following}"
    return "\n## ".join([head, *blocks])


def contents():
    """{file: what should be in it}, of all but the drawn picture"""
    found = {path: path.read_text("utf-8") for path in sorted(DOCS.glob("*.md"))}
    texts = [DOCS.parent / "README.md", *(DOCS.parent / "course/lessons").glob("*/lesson.md")]
    found |= {path: text for path in texts if LESSONS.search(text := path.read_text("utf-8"))}
    found = {path: brought_up_to_date(text) for path, text in found.items()}
    found |= {path: with_lessons(path) for path in sorted((ENGINE / "help").glob("*.md"))}
    return found | {DOCS / "layers.dot": picture()}


def main():
    sys.path.insert(0, str(DOCS.parent))
    import stubs  # noqa: PLC0415  the rest needs no engine

    from engine.viz.dot import INSTALL, Drawing  # noqa: PLC0415

    for path, text in (contents() | stubs.contents()).items():
        path.write_text(text, encoding="utf-8")
    svg = Drawing(words(), picture()).svg
    if svg is None:
        sys.exit(f"docs/layers.svg is as it was: {INSTALL}")
    (DOCS / "layers.svg").write_text(svg + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
