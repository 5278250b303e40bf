"""The places of the course's notebooks, and how they are run and compared. The standard library alone."""

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

HOME = Path(__file__).resolve().parents[2]  # where the modules are
# What lies beside `course/` in a clone. pip puts it elsewhere (undertorch/__main__.py), where no learner works.
_PACKED = HOME / "undertorch" / "files"
INSTALLED = _PACKED.is_dir()
ROOT = _PACKED if INSTALLED else HOME


def typed() -> str:
    """Return what the reader types to start the course: `python`, `python3` or `py`, as the last time."""
    called = Path(sys.orig_argv[0]).name if sys.orig_argv else ""  # a launcher, as pyenv's, puts a path in its place
    if re.fullmatch(r"py|python[0-9.]*", called) and shutil.which(called):
        return f"{called} -m course"
    return f"{'py' if os.name == 'nt' and shutil.which('py') else 'python'} -m course"


COMMAND = os.environ.setdefault("UNDERTORCH_COMMAND", typed())  # the environments and kernels started from here know it


def joined(source: Any) -> str:
    """Return as one string a text that a notebook's file may hold as a list of lines."""
    return "".join(source) if isinstance(source, list) else str(source)


def lesson_folders(root: Path = HOME) -> list[Path]:
    """Return the lessons' folders in order: everything of a lesson stands in its own."""
    return sorted({path.parent for path in (root / "course/lessons").glob("*/*.md")})


def lesson_file(lesson: str, name: str, root: Path = HOME) -> Path:
    """Return the path of a file of the lesson with this number; the file need not exist."""
    return next((root / "course/lessons").glob(f"{lesson}_*"), root / "course/lessons" / lesson) / name


def lesson_notebooks() -> dict[str, Path]:
    """Return the lessons' notebooks by number."""
    return {path.name[:2]: path for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))}


class Target(NamedTuple):
    """A folder of notebooks, and the text in each lesson's folder that one of them is made from."""

    source: str
    folder: str
    blank: bool  # solutions taken out, nothing executed
    graded: bool = False  # with nbgrader's metadata


TARGETS = (
    Target("lesson.md", "notebooks", blank=False),
    Target("exercises.md", "exercises", blank=True, graded=True),
    Target("exercises.md", "solutions", blank=False, graded=True),
)
EXECUTED = tuple(target.folder for target in TARGETS if not target.blank)

# The same on every machine: the patch version of the Python that executed a notebook would change at each build.
METADATA: dict[str, Any] = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}

# No learner sits before these kernels: nobody's progress is recorded, and they print the same everywhere.
UNATTENDED = {
    "UNDERTORCH_PROGRESS": "",
    "UNDERTORCH_COMPILE_PROGRESS": "0",
    "UNDERTORCH_COMMAND": "python -m course",
}

# Strict: every stored output is compared with what the cell gives now. The kernel is the running interpreter's. A
# notebook's cells depend on each other: pytest-xdist, where it is used, may only distribute whole files (`-n 2 --dist
# loadfile`). That the notebooks are what their texts give, and have no faults, is tested elsewhere.
SANITIZE = "tests/nbval_sanitize.cfg"
OPTIONS = f"--undertorch-options=--only outputs --sanitize-with {SANITIZE}"
VALIDATE_ARGS = ("-p", "course.authoring.validation.plugin", "--undertorch", f"{OPTIONS} --brief", "-p", "no:randomly")


def has_workers() -> bool:
    """Tell whether the tests' packages can start several processes here. (Windows has no MPI among them.)"""
    return os.name != "nt" and all(map(importlib.util.find_spec, ("ipyparallel", "mpi4py")))


def validate_command(root: Path = ROOT, brief: bool = True) -> list[str]:
    """Arguments of `python -m pytest`, run in `root` under `kernel_environment()`, that compare every notebook.

    `brief`: a cell does the less that its metadata names where its output is not compared.
    """
    arguments = (argument if brief else argument.removesuffix(" --brief") for argument in VALIDATE_ARGS)
    command = [*arguments, *(folder for folder in EXECUTED if any((root / folder).glob("*.ipynb")))]
    return command if has_workers() else [*command, *(f"--ignore={name}" for name in with_workers(root))]


def with_workers(root: Path = HOME) -> list[str]:
    """Return the notebooks whose cells start other processes with MPI."""
    texts = (root / "course/lessons").glob("*/lesson.md")
    return [f"notebooks/{text.parent.name}.ipynb" for text in texts if "\n%%px" in text.read_text(encoding="utf-8")]


# On arrays of the lessons' size a second thread of the matrix library gains nothing, and where another program is busy
# the two wait for each other, a hundred times as long as the product takes. Whoever sets these variables keeps them.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def kernel_environment(root: Path = ROOT) -> dict[str, str]:
    """Return an environment in which notebooks print the same everywhere, and import this very engine."""
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    return (
        ONE_THREAD
        | os.environ
        | {
            "PYTHONPATH": path,
            "PYTHONHASHSEED": "0",
            "PYTHONUTF8": "1",
            "COLUMNS": "80",
            "LINES": "24",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
    )
