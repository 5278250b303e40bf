"""The course's additions to IPython in its kernels: short tracebacks, and an eye on cells that fail."""

import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

from course.base.errors import text_of
from course.base.notebooks import METADATA, ROOT

ANSI = re.compile(r"\x1b\[[0-9;]*m")
FULL = "Verbose"  # IPython's mode in which nothing is left out: `%tb Verbose` once, `%xmode Verbose` from now on
_FILE = re.compile(r"\s*File (.+?)(?::\d+)?(?:, |\n|$)")
_LIBRARIES = [str(ROOT / "engine"), str(ROOT / "course"), *map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))]
_BINDS = re.compile(r"(?m)^(?:async +)?(?:def|class) +(\w+)|^(\w+) *(?::[^=\n]+)?=(?!=)")
_ASKS = re.compile(r"(?<![\w.])input\(")
_NOTHING = object()
# For how long Jedi may look up what kind of name each completion is (ms); it shows the others as <unknown>. IPython's
# own 400 ms are over before it has read, the first time, what the engine and Python have: later it has that in a cache.
COMPLETION_TIME = 5000


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython when the kernel starts."""
    # JupyterLab writes what the kernel says of its language into the notebook: with Python's version in it, a lesson
    # that was merely opened would count as changed.
    shell.kernel.language_info = METADATA["language_info"]
    shell.Completer.jedi_compute_type_timeout = COMPLETION_TIME
    completions = shell.Completer.completions

    def _completions(text: str, offset: int) -> Any:
        name_methods()
        return completions(text, offset)

    shell.Completer.completions = _completions
    show = shell._showtraceback

    def _showtraceback(etype: type, error: BaseException, parts: list[str]) -> None:
        if getattr(error, "shown", False):  # a check has said it all: no red box repeats it
            shell._last_traceback = []
            return
        if shell.InteractiveTB.mode != FULL:
            parts = [part for part in parts if not is_library_frame(part)]
        if isinstance(error, NameError) and (told := cells.missing_answer(error.name)):
            parts = [told]
        show(etype, error, parts)

    shell._showtraceback = _showtraceback
    shell.events.register("pre_run_cell", lambda info: cells.begin(info.raw_cell, shell.user_ns))
    shell.events.register(
        "post_run_cell", lambda result: cells.end(result.success, shell.user_ns, result.error_in_exec)
    )


def name_methods() -> None:
    """Make Tensor's methods, which else are made when first named: Jedi looks at them without naming them."""
    if (engine := sys.modules.get("engine")) is not None:
        for name in dir(engine.Tensor):
            getattr(engine.Tensor, name)


def is_library_frame(part: str) -> bool:
    """Tell whether this part of IPython's traceback is a frame of the engine, the course, Python or a package."""
    found = _FILE.match(ANSI.sub("", part))
    if found is None:
        return False
    path = Path(found[1]).expanduser()
    return not path.is_file() or any(path.resolve().is_relative_to(Path(folder).resolve()) for folder in _LIBRARIES)


class Cells:
    """The cell that runs; of cells that failed, the names left as they were before, and those made before the error."""

    def __init__(self) -> None:
        self.source = ""
        self.before: dict[str, Any] = {}
        self.left: dict[str, Any] = {}
        self.made: dict[str, tuple[Any, str]] = {}
        self.asked: dict[str, Any] = {}

    def begin(self, source: str, space: dict[str, Any]) -> None:
        names = {first or second for first, second in _BINDS.findall(source)}
        self.source, self.before = source, {name: space.get(name, _NOTHING) for name in names}

    def end(self, success: bool, space: dict[str, Any], error: BaseException | None = None) -> None:
        for name, value in self.before.items():
            now = space.get(name, _NOTHING)
            for held in (self.left, self.made, self.asked):
                held.pop(name, None)
            if now is not value and _ASKS.search(self.source):
                self.asked[name] = now
            if not success and now is not _NOTHING:
                if now is value:
                    self.left[name] = value
                elif error is not None:
                    self.made[name] = now, f"{type(error).__name__}: {text_of(error)}"

    def left_over(self, attempt: Any) -> str | None:
        """Return the name under which a check is given an attempt older than the cell that was to make it."""
        named = re.findall(r"\w+", self.source)
        return next((name for name, value in self.left.items() if value is attempt and name in named), None)

    def stopped(self, attempt: Any) -> str:
        """Return the error that stopped the cell in which this attempt was made; empty where none did."""
        named = re.findall(r"\w+", self.source)
        return next((says for name, (made, says) in self.made.items() if made is attempt and name in named), "")

    def asks(self, attempt: Any) -> bool:
        """Tell whether the cell that made an attempt calls `input`, which nobody answers where it is graded."""
        named = re.findall(r"\w+", self.source)
        return any(made is attempt and name in named for name, made in self.asked.items())

    def missing_answer(self, name: str | None) -> str | None:
        """Return what to say where a check is run and the answer is not there; None where the name is another."""
        if not name or not re.search(rf"(?m)^check\(.*\b{re.escape(name)}\b", self.source):
            return None
        return f"{name} is not there yet. Run the cell with your answer first, and then this one."


cells = Cells()
