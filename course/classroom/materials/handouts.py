"""A lesson on paper: what it is for, its parts, with predictions to tick and room for notes, and the recap.

One HTML page to print from a browser, on at most four sheets of A4.
"""

import re
from pathlib import Path

import nbformat
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from course.classroom.materials import name_of
from course.classroom.materials.questions import Asked, asked
from course.classroom.materials.quiz import code
from course.classroom.materials.texts import standing_alone
from course.figures.predict.figure import marked_up

LINES = 26  # of code: longer code is for the screen
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
  @page {{ size: A4; margin: 14mm 15mm; }}
  body {{ font: 9.5pt/1.35 Georgia, "Times New Roman", serif; color: #000; max-width: 180mm; margin: 0 auto; }}
  h1 {{ font-size: 15pt; margin: 0 0 2mm; }}
  h2 {{ font-size: 11pt; margin: 4mm 0 1mm; break-after: avoid; }}
  p, ul, ol {{ margin: 1mm 0; }}
  ul, ol {{ padding-left: 6mm; }}
  pre {{ font: 8pt/1.25 Menlo, Consolas, monospace; margin: 1mm 0; padding: 1mm 2mm; border-left: 0.5mm solid #777;
    white-space: pre-wrap; }}
  code {{ font-family: Menlo, Consolas, monospace; font-size: 8.5pt; }}
  .question {{ break-inside: avoid; margin: 2mm 0; }}
  .question ul {{ list-style: none; padding-left: 2mm; margin: 0.5mm 0; }}
  .question li::before {{ content: "\\2610\\00a0\\00a0"; }}
  .notes {{ border-bottom: 0.2mm dotted #777; height: 7mm; }}
  table {{ border-collapse: collapse; margin: 2mm 0; font-size: 8.5pt; }}
  th, td {{ text-align: left; vertical-align: top; padding: 0.4mm 3mm 0.4mm 0; border-bottom: 0.1mm solid #999; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(number: str, path: Path) -> str:
    """Return the page of a lesson."""
    title = f"{number} {name_of(path)}"
    sources = [
        cell.source
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown" and "navigation" not in cell.metadata.get("tags", [])
    ]
    opening, _, _ = sources[0].partition("\n## ")
    body = [f"<h1>{title}</h1>", converted(opening.partition("\n")[2])]
    questions = list(asked(path))
    for part in headings(sources):
        if part == "Recap":
            continue
        body.append(f"<h2>{marked_up(part)}</h2>")
        for one in (one for one in questions if one.part == part):
            body.append(question(one))
        body.append('<div class="notes"></div><div class="notes"></div>')
    recap = next((source for source in sources if re.search(r"(?m)^## Recap$", source)), "")
    if recap:
        body += ["<h2>Recap</h2>", converted(re.split(r"(?m)^## Recap$", recap)[1])]
    return PAGE.format(title=title, body="\n".join(body))


def headings(sources: list[str]) -> list[str]:
    return [heading for source in sources for heading in re.findall(r"(?m)^## (.+)$", source)]


def question(one: Asked) -> str:
    """Render a prediction to tick, with its code, and without what happens."""
    options = "".join(f"<li>{marked_up(option.text)}</li>" for option in one.options)
    shown = code(one.code) if one.code and len(one.code.splitlines()) <= LINES else ""
    scene = converted(one.scene) if one.scene else ""
    return f'<div class="question">{scene}{shown}<p>{marked_up(one.question)}</p><ul>{options}</ul></div>'


def converted(markdown: str) -> str:
    """Render Markdown as HTML, for paper."""
    return markdown2html_mistune(standing_alone(markdown))
