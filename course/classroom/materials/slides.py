"""A lesson as slides, with nbconvert and reveal.js; they need nothing else, and no network.

A part of the lesson is a column of slides: a text with the code and the output below it is one slide. The code after a
prediction, and its output, are on the next one.
"""

import shutil
from importlib.metadata import files
from pathlib import Path

import nbformat
from nbconvert.exporters import SlidesExporter
from nbformat.v4 import new_markdown_cell

from course.base.environment import Problem
from course.base.folds import unfolded
from course.classroom.materials import name_of
from course.classroom.materials.questions import ASKED, without_talk
from course.classroom.materials.texts import standing_alone
from course.figures.predict.figure import questions

FOLDER = "reveal.js"  # beside the slides
PARTS = ("dist", "plugin/notes", "LICENSE")
CARRIER = "sphinx-revealjs"  # its wheel has reveal.js in it
# nbconvert's own loads jQuery, RequireJS, MathJax and mermaid from the network, and starts reveal.js with them.
TEMPLATE = """\
{%- extends 'index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_css -%}
<style>
  .reveal .slides section section, .reveal .slides > section:not(.stack) { max-height: 660px; overflow-y: auto; }
  .reveal .slides { text-align: left; }
  .reveal h1, .reveal h2, .reveal h3 { text-transform: none !important; }
  .jp-InputPrompt, .jp-OutputPrompt { display: none; }
  .reveal pre { width: 100%; margin: 0; box-shadow: none; }
  .reveal .highlight pre { white-space: pre-wrap; }
</style>
{%- endblock -%}
{% block footer_js %}
<script src="{{ resources.reveal.url_prefix }}/dist/reveal.js"></script>
<script src="{{ resources.reveal.url_prefix }}/plugin/notes/notes.js"></script>
<script>
  Reveal.initialize({ history: true, slideNumber: "c/t", transition: "none", center: false, plugins: [RevealNotes] });
</script>
{% endblock footer_js %}
"""


def library(folder: Path) -> None:
    """Put reveal.js beside the slides. Raises Problem if it is not installed."""
    found = [path for path in files(CARRIER) or () if path.parts[-2:] == ("revealjs", "LICENSE")]
    if not found:
        raise Problem("reveal.js is not there: install the extra `teach`.")
    source, target = Path(str(found[0].locate())).parent, folder / FOLDER
    for part in PARTS:
        place = target / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.map"))
        else:
            shutil.copyfile(source / part, place)


def page(number: str, path: Path) -> str:
    """Render the slides of a lesson as HTML."""
    nb = nbformat.read(path, as_version=4)
    made: list[nbformat.NotebookNode] = []
    for cell in nb.cells:
        if "navigation" in cell.metadata.get("tags", []):
            continue
        answers = made and "prediction" in made[-1].metadata.get("tags", [])
        made += [typed(cell, "subslide")] if answers and cell.cell_type == "code" else slides_of(cell)
        made[-1].source = without_talk(made[-1].source)
    nb.cells = made
    exporter = SlidesExporter(raw_template=TEMPLATE, reveal_url_prefix=FOLDER, reveal_theme="white", embed_images=True)
    title = f"{number} {name_of(path)}"
    text, _ = exporter.from_notebook_node(nb, {"metadata": {"name": title, "path": str(path.parent)}})
    return str(text)


def slides_of(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Turn a cell into slides: a text is split at its headings, a prediction becomes its options."""
    if cell.cell_type == "code":
        if match := ASKED.search(cell.source):
            question, options = questions(match[1])[match[2]]
            listed = "\n".join(f"- {option.text}" for option in options)
            asks = typed(new_markdown_cell(f"**{question}**\n\n{listed}"), "-")  # below what the text asks
            asks.metadata["tags"] = ["prediction"]
            return [asks]
        return [typed(cell, "-")]
    source = standing_alone(unfolded(cell.source))  # the answer is on a slide of its own
    pieces = [piece for piece in ("\n" + source).split("\n## ") if piece.strip()]
    first = not ("\n" + source).startswith("\n## ")
    made = []
    for place, piece in enumerate(pieces):
        plain = first and place == 0
        kind = "slide" if not plain or piece.strip().startswith("# ") else "subslide"
        made.append(typed(new_markdown_cell(piece.strip() if plain else f"## {piece}"), kind))
    return made


def typed(cell: nbformat.NotebookNode, kind: str) -> nbformat.NotebookNode:
    cell.metadata["slideshow"] = {"slide_type": kind}
    return cell
