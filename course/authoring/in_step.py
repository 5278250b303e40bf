"""Where notebooks and their texts are out of step: `python -m course build --check`."""

import re
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.authoring.build import PAIRS, Job, fill, jobs, paired, read_source, skeleton, write_source
from course.base.notebooks import ROOT, TARGETS

# docs/update.py makes these of other lessons' words.
LISTED = re.compile(r"<!-- lessons: \w+ -->.*?<!-- end -->", re.DOTALL)


def differences(job: Job) -> list[str]:
    """List what is out of step between a text and its notebook, one line each; `validate` compares the outputs."""
    if not job.notebook.is_file():
        return [f"{job.named(job.notebook)} has not been built from {job.named(job.source)}"]
    try:
        actual = nbformat.read(job.notebook, as_version=4)
    except (ValueError, nbformat.ValidationError, nbformat.reader.NotJSONError) as error:
        return [f"{job.named(job.notebook)} is not a notebook ({error})"]
    expected = skeleton(job)
    try:
        fill(expected, actual)
    except ValueError as error:
        return [f"{job.named(job.notebook)}: {error}"]
    found = [] if actual.metadata == expected.metadata else ["the notebook's metadata differs"]
    if len(actual.cells) != len(expected.cells):
        found.append(f"it has {len(actual.cells)} cells, the text {len(expected.cells)}")
    for number, (is_, should) in enumerate(zip(actual.cells, expected.cells, strict=False), start=1):
        for field in ("cell_type", "source", "metadata", "id"):
            if is_.get(field) != should.get(field):
                found.append(f"cell {number}: its {field.replace('_', ' ')} differs")
                break
        else:
            if is_.cell_type == "code" and (problem := _output_problem(job, is_)):
                found.append(f"cell {number}: {problem}")
    return [f"{job.named(job.notebook)}: {what}" for what in found]


def _output_problem(job: Job, is_: NotebookNode) -> str | None:
    if job.target.blank:
        return "a blank notebook stores no outputs" if is_.outputs or is_.execution_count else None
    return "it has not been executed" if is_.source.strip() and is_.execution_count is None else None


def orphans(root: Path = ROOT) -> list[str]:
    """List the notebooks that no text makes."""
    wanted = {job.notebook for job in jobs(root)}
    folders = [root / target.folder for target in TARGETS]
    found = [path for folder in folders for path in sorted(folder.glob("*.ipynb")) if path not in wanted]
    return [f"{path.relative_to(root).as_posix()} has no text that it is made from" for path in found]


def not_canonical(source: Path) -> bool:
    """Tell whether saving in JupyterLab would change more of the text than was edited."""
    return write_source(read_source(source)[0]) != source.read_text(encoding="utf-8")


def unwritten(lessons: Iterable[Path], root: Path = ROOT) -> list[str]:
    """List the lessons that still hold words of the template, one line each."""
    found = []
    for lesson in lessons:
        files = sorted(path for path in lesson.iterdir() if path.suffix in (".md", ".py"))
        texts = [(path.name, LISTED.sub("", path.read_text(encoding="utf-8"))) for path in files]
        counts = [(name, len(re.findall(r"\bTODO\b", text))) for name, text in texts]
        if told := ", ".join(f"{count} in {name}" for name, count in counts if count):
            found.append(f"{lesson.relative_to(root).as_posix()}/ still says TODO where your own words belong: {told}")
    return found


def check(todo: list[Job], root: Path, everything: bool) -> int:
    """Print what is out of step, with orphans if `everything` is looked at; return 0 if nothing is."""
    found = [line for job in todo for line in differences(job)]
    if everything:
        found += orphans(root)
    if (root / PAIRS).is_file() and (root / PAIRS).read_text(encoding="utf-8") != paired(root):
        found.append(f"{PAIRS} does not name each notebook with its text: python -m course build")
    sources = dict.fromkeys(job.source for job in todo)
    unformatted = [source.relative_to(root).as_posix() for source in sources if not_canonical(source)]
    found += [f"{name} is not as JupyterLab would save it: python -m course build --format" for name in unformatted]
    found += unwritten(dict.fromkeys(source.parent for source in sources), root)
    print("\n".join(found) if found else f"{len(todo)} notebooks are in step with their texts.")
    return 1 if found else 0
