"""Where the course's notebooks are, and how their kernels and nbval are started. The standard library alone."""

import os
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Target(NamedTuple):
    """A folder of notebooks that is made from a folder of texts."""

    source: str
    folder: str
    blank: bool  # solutions taken out, nothing executed


TARGETS = (
    Target("source/notebooks", "notebooks", blank=False),
    Target("source/solutions", "exercises", blank=True),
    Target("source/solutions", "solutions", blank=False),
)
EXECUTED = tuple(target.folder for target in TARGETS if not target.blank)

# Strict: every stored output is compared with what the cell gives now (nbval itself leaves out PNG, widget views and
# tracebacks). The kernel is the running interpreter's. A notebook's cells depend on each other: the order is kept, and
# pytest-xdist, where it is used, may only distribute whole files (`-n 2 --dist loadfile`).
NBVAL_ARGS = (
    "--nbval",
    "--nbval-current-env",
    "--nbval-sanitize-with=tests/nbval_sanitize.cfg",
    "-p",
    "no:randomly",
)


def nbval_command(root: Path = ROOT) -> list[str]:
    """Arguments of `python -m pytest`, run in `root` under `kernel_environment()`, that compare every notebook."""
    return [*NBVAL_ARGS, *(folder for folder in EXECUTED if any((root / folder).glob("*.ipynb")))]


def kernel_environment(root: Path = ROOT) -> dict[str, str]:
    """The environment in which a notebook prints the same on every machine, and `import engine` finds this engine."""
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    return os.environ | {
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "COLUMNS": "80",
        "LINES": "24",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
