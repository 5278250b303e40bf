"""Make the notebooks from their texts, and execute them.

A lesson's `lesson.md` becomes `notebooks/NN_name.ipynb`; its `exercises.md` becomes a blank `exercises/NN_name.ipynb`
and a worked `solutions/NN_name.ipynb`. The texts are Jupytext's MyST Markdown.
"""

import hashlib
import re
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import jupytext
import nbformat
from jupytext.myst import MystMetadataParsingError, myst_to_notebook
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course.authoring.quotes import with_lines
from course.authoring.validation import named
from course.authoring.validation.sources import ADDED, NAVIGATION, WRITTEN, unmarked
from course.base import folds
from course.base.files import write_atomically
from course.base.notebooks import METADATA, ROOT, TARGETS, UNATTENDED, Target, kernel_environment, lesson_folders
from course.judging import exercises
from course.kernel.outputs import Addresses, settle
from course.kernel.shell import ANSI
from course.learner import copies, rubrics

PAIRS = "jupytext.toml"
TRACEBACK_LINES = 12
CHECK = re.compile(r"""(?m)^check\(["'](\d\d\.\d+)["'],""")


class BuildError(Exception):
    """A notebook could not be made; the message names the text, the cell and the reason."""


class CellError(Exception):
    """A cell could not be executed; the message shows why, the cell and the end of the traceback."""

    def __init__(self, index: int, why: str, source: str, traceback: str = "") -> None:
        shown = [f"    {line}" for line in source.splitlines()]
        shown += ANSI.sub("", traceback).rstrip().splitlines()[-TRACEBACK_LINES:]
        super().__init__("\n".join([f"cell {index + 1}: {why}", *shown]))
        self.index = index


class Job(NamedTuple):
    """One notebook to make."""

    root: Path
    source: Path
    target: Target

    @property
    def notebook(self) -> Path:
        return self.root / self.target.folder / f"{self.name}.ipynb"

    @property
    def name(self) -> str:
        """Return the name of the lesson, such as 05_graph."""
        return self.source.parent.name

    def named(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def jobs(root: Path = ROOT, lessons: list[str] | None = None) -> list[Job]:
    """List all notebooks to make, or those of the lessons given by number (`5`, `05`) or name (`graph`, `05_graph`)."""
    folders = lesson_folders(root)
    found = [Job(root, folder / target.source, target) for target in TARGETS for folder in folders]
    found = [job for job in found if job.source.is_file()]
    if not lessons:
        return found
    chosen = []
    for lesson in lessons:
        matching = [job for job in found if _is_lesson(job.name, lesson)]
        if not matching:
            known = ", ".join(sorted({job.name for job in found})) or "none yet"
            raise BuildError(f"there is no lesson {lesson!r} (lessons: {known})")
        chosen += [job for job in matching if job not in chosen]
    return chosen


def _is_lesson(lesson: str, wanted: str) -> bool:
    number, _, name = lesson.partition("_")
    same = wanted.isdecimal() and number.isdecimal() and int(wanted) == int(number)
    return same or wanted in (lesson, number, name)


def read_source(path: Path) -> tuple[NotebookNode, list[int]]:
    """Read the notebook that a text describes, without outputs, and the line at which each cell begins."""
    try:
        nb = myst_to_notebook(path.read_text(encoding="utf-8"), add_source_map=True)
    except (MystMetadataParsingError, UnicodeDecodeError) as error:
        raise BuildError(f"{path.parent.name}/{path.name}: {error}") from None
    lines = [line + 1 for line in nb.metadata.pop("source_map")]
    # A text may have been saved with the links at its top, or the questions at its end: the build makes these itself.
    kept = [n for n, cell in enumerate(nb.cells) if not ADDED & set(cell.metadata.get("tags", []))]
    nb.cells, lines = [nb.cells[n] for n in kept], [lines[n] for n in kept]
    nb.metadata = nbformat.from_dict(METADATA)
    seen: Counter[tuple[str, str]] = Counter()
    for cell in nb.cells:
        cell.source = named.roles(folds.unfolded(cell.source)) if cell.cell_type == "markdown" else cell.source
        # From the content, not the position: inserting a cell leaves the ids of the others, and the diff, alone.
        content = unmarked(cell.source) if cell.cell_type == "markdown" else cell.source
        seen[cell.cell_type, content] += 1
        cell.id = _id(path.parent.name, cell.cell_type, content, str(seen[cell.cell_type, content]))
    # Through JSON and back: then the keys are in the order of a notebook that was read from disk.
    return nbformat.reads(nbformat.writes(nb), as_version=4), lines


def _id(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def write_source(nb: NotebookNode) -> str:
    """Write the text of a notebook as Jupytext does when someone saves it in JupyterLab (see jupytext.toml)."""
    settings = tomllib.loads((ROOT / PAIRS).read_text(encoding="utf-8"))
    nb = nbformat.from_dict(nb)
    nb.metadata.jupytext = {key: settings[key] for key in ("notebook_metadata_filter", "cell_metadata_filter")}
    return jupytext.writes(nb, fmt="md:myst")


def skeleton(job: Job) -> NotebookNode:
    """Return what a notebook takes from its text: everything but the outputs."""
    nb, lines = read_source(job.source)
    for cell, line in zip(nb.cells, lines, strict=True):
        try:
            if cell.cell_type == "markdown":
                cell.source = with_lines(unmarked(cell.source), ROOT)
            if job.target.graded:
                _add_grading(cell)
        except ValueError as error:
            raise BuildError(f"{job.named(job.source)}, line {line}: {error}") from None
    if job.target.graded:
        nb.cells += _written(job)
    else:
        folds.fold(nb.cells)
    if not job.target.graded and (links := _navigation(job)):
        nb.cells.insert(0, new_markdown_cell(links, id=_id(job.name, NAVIGATION), metadata={"tags": [NAVIGATION]}))
    return _blank(job, nb) if job.target.blank else nb


def whole(points: float) -> float:
    """Return 2 for 2.0, as JupyterLab saves it."""
    return int(points) if points == int(points) else points


def _written(job: Job) -> list[NotebookNode]:
    """Return the questions to be answered in words, with the full samples; they are marked by hand in nbgrader."""
    made = []
    for name, text, question in rubrics.cells(job.name[:2], job.root):
        cell = new_markdown_cell(text, id=_id(job.name, WRITTEN, name), metadata={"tags": [WRITTEN]})
        if question is not None:
            graded = {"grade": True, "grade_id": f"written-{question.key.replace('.', '-')}", "locked": False}
            cell.metadata.nbgrader = nbformat.from_dict(
                graded | {"points": whole(question.points), "schema_version": 3, "solution": True, "task": False}
            )
        made.append(cell)
    return made


def _navigation(job: Job) -> str:
    """Write the links at the top of a lesson: to the previous one, the contents, the next, and the exercises."""
    lessons = lesson_folders(job.root)
    place = lessons.index(job.source.parent)
    links = [f"**Previous:** {_link(lessons[place - 1])}"] if place else []
    if len(lessons) > 1:
        contents = "" if not place else f"{lessons[0].name}.ipynb"
        links.append(f"[Contents]({contents}#The-lessons)")
    links += [f"**Next:** {_link(lesson)}" for lesson in lessons[place + 1 : place + 2]]
    if job.source.with_name("exercises.md").is_file():
        links.append(f"[Exercises](../{copies.EXERCISES}/{job.name}.ipynb)")
    return " · ".join(links)


def _link(lesson: Path) -> str:
    title = (lesson / "lesson.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return f"[{title.partition(':')[0]}]({lesson.name}.ipynb)"


def _add_grading(cell: NotebookNode) -> None:
    """Add nbgrader's metadata, by the key in a cell to fill in or in the call of `check`. Raises ValueError."""
    checked = CHECK.search(cell.source) if cell.cell_type == "code" else None
    key = checked[1] if checked else cell.metadata.get("exercise")
    if key is None:
        return
    if checked and "raises-exception" not in cell.metadata.get("tags", []):
        raise ValueError("a cell with a check is tagged raises-exception: a run of the blank notebook goes on after it")
    exercise = exercises.find(key)
    of = "check" if checked else "exercise"
    graded = {"grade": bool(checked), "grade_id": f"{of}-{key.replace('.', '-')}", "locked": bool(checked)}
    graded |= {"points": exercise.points} if checked else {}
    cell.metadata.nbgrader = graded | {"schema_version": 3, "solution": not checked, "task": False}


def _blank(job: Job, nb: NotebookNode) -> NotebookNode:
    """Return the notebook as nbgrader releases it: without solutions and hidden tests, and the rest locked."""
    try:
        from nbgrader import preprocessors
    except ModuleNotFoundError:
        raise BuildError("exercises are made with nbgrader: install the extra `teach`") from None
    steps = [
        preprocessors.LockCells(),
        preprocessors.ClearSolutions(code_stub={"python": "..."}, text_stub=rubrics.STUB),
        preprocessors.ClearHiddenTests(),
    ]
    try:
        for step in steps:
            nb, _ = step.preprocess(nb, {})
    except RuntimeError as error:
        raise BuildError(f"{job.named(job.source)}: {error}") from None
    nb.metadata["undertorch"] = {"blank": copies.digest(nb.cells)}
    return nb


def build(job: Job) -> NotebookNode:
    """Return the finished notebook, executed unless it is a blank one; nothing is written."""
    nb = skeleton(job)
    if not job.target.blank:
        try:
            execute(nb, job.notebook.parent, job.root)
        except CellError as error:
            lines = read_source(job.source)[1]
            links = NAVIGATION in nb.cells[0].metadata.get("tags", [])  # they are in no line of the text
            line = lines[error.index - links]
            raise BuildError(f"{job.named(job.source)}, line {line}, {error}") from None
        nb.metadata = nbformat.from_dict(METADATA)
    try:
        fill(nb, nb)
    except ValueError as error:
        raise BuildError(f"{job.named(job.source)}: {error}") from None
    nbformat.validate(nb)
    return nb


def fill(nb: NotebookNode, executed: NotebookNode) -> None:
    """Write the numbers that the prose names, as a notebook shows them. Raises ValueError."""
    known = named.numbers_of(executed.cells)
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = named.filled(cell.source, known)


def execute(nb: NotebookNode, folder: Path, root: Path = ROOT, allow_errors: bool = False) -> None:
    """Run a notebook's cells in a fresh kernel of this interpreter and settle their outputs, in place.

    Raises CellError at the first cell that fails, or does not fail and should, or leaves what cannot be stored;
    with `allow_errors` a failing cell keeps its error as an output instead.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    from course.authoring.validation.running import FreshKernel

    # No folder of kernel specs is searched, so `python3` is this interpreter, whatever the user has registered.
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    folder.mkdir(parents=True, exist_ok=True)
    running = 0

    def started(cell: NotebookNode, cell_index: int) -> None:
        nonlocal running
        running = cell_index

    with tempfile.TemporaryDirectory(prefix="undertorch-", ignore_cleanup_errors=True) as profile:
        client = FreshKernel(
            nb,
            km=manager,
            timeout=None,
            startup_timeout=300,  # on a busy computer
            iopub_timeout=300,  # a cell's output may come long after its end
            allow_errors=allow_errors,
            resources={"metadata": {"path": str(folder)}},
            store_widget_state=False,
            record_timing=False,
            extra_arguments=["--log-level=ERROR"],
            on_cell_start=started,
        )
        try:
            # An empty profile: the user's own IPython settings and start-up files stay out of the outputs.
            client.execute(cleanup_kc=True, env=kernel_environment(root) | UNATTENDED | {"IPYTHONDIR": profile})
        except CellExecutionError as error:
            why = f"{error.ename}: {error.evalue}"
            raise CellError(running, why, nb.cells[running].source, error.traceback) from None
        except DeadKernelError:
            raise CellError(running, "the kernel died", nb.cells[running].source) from None

    addresses = Addresses()
    for index, cell in enumerate(nb.cells):
        if cell.cell_type != "code":
            continue
        raised = any(output.output_type == "error" for output in cell.outputs)
        should = "raises-exception" in cell.metadata.get("tags", []) and not _is_check(cell)
        if raised != should and not allow_errors:
            why = "the check fails" if raised else "tagged raises-exception, but it raised nothing"
            raise CellError(index, why, cell.source, _shown(cell) if raised else "")
        try:
            settle(cell, addresses)
        except ValueError as error:
            raise CellError(index, str(error), cell.source) from None


def _is_check(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _shown(cell: NotebookNode) -> str:
    return "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def paired(root: Path = ROOT) -> str:
    """Return what jupytext.toml should say: a row for each notebook whose text is updated when it is saved."""
    rows = [
        f'  "{job.target.folder}/{job.name}/ipynb,{job.named(job.source.with_suffix(""))}/md:myst",\n'
        for job in jobs(root)
        if not job.target.blank
    ]
    text = (root / PAIRS).read_text(encoding="utf-8")
    return re.sub(r"(?ms)^formats = \[\n.*?^\]\n", lambda _: f"formats = [\n{''.join(rows)}]\n", text)


def make(todo: list[Job], root: Path = ROOT) -> int:
    """Write the notebooks; 0."""
    for job in todo:
        start = time.perf_counter()
        text = nbformat.writes(build(job)) + "\n"
        if job.target.blank and job.notebook.exists() and copies.begun(job.notebook):
            kept = job.named(copies.keep(job.notebook, job.root / copies.EXERCISES))
            print(f"{job.named(job.notebook)}: somebody has worked in it; that is now {kept}")
        changed = write_atomically(job.notebook, text)
        how = "written" if changed else "unchanged"
        print(f"{job.named(job.notebook)}: {how} ({time.perf_counter() - start:.1f} s)", flush=True)
    if (root / PAIRS).is_file():
        write_atomically(root / PAIRS, paired(root))
    return 0


def lay_out(todo: list[Job]) -> int:
    """Write the texts as JupyterLab would save them; 0."""
    for job in {job.source: job for job in todo}.values():
        if write_atomically(job.source, write_source(read_source(job.source)[0])):
            print(f"{job.named(job.source)}: written")
    return 0
