"""`validate` for pytest: `pytest --undertorch notebooks/`, with an item for each check and for each cell of code.

In a clone: `pytest -p course.authoring.validation.plugin --undertorch notebooks/`. What it needs is imported when it is
asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from course.authoring.validation.judging import Verdict

HOW = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("undertorch", "notebooks, compared with what they store")
    group.addoption("--undertorch", action="store_true", help="collect notebooks: run them, and look them through")
    group.addoption(
        "--undertorch-options",
        metavar="OPTIONS",
        default="",
        help="of `python -m course validate`, say '--texts --skip order --timeout 60'",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--undertorch"):
        return
    from course.authoring.validation import parse
    from course.authoring.validation.command import how_of
    from course.base.environment import Problem

    try:
        config.stash[HOW] = how_of(parse([".", *shlex.split(config.getoption("--undertorch-options"))]))
    except (Problem, ValueError) as problem:
        raise pytest.UsageError(f"--undertorch-options: {problem}") from None
    except SystemExit:  # argparse has said why
        raise pytest.UsageError("--undertorch-options are those of `python -m course validate`") from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if parent.config.getoption("--undertorch") and file_path.suffix == ".ipynb":
        return Notebook.from_parent(parent, path=file_path)
    return None


class Notebook(pytest.File):
    """A notebook, which is judged once, when the first of its items runs."""

    judged: Verdict | None = None

    def collect(self) -> Iterator[pytest.Item]:
        from course.authoring.validation.exercises import EXERCISES
        from course.authoring.validation.judging import FAULTS, read
        from course.authoring.validation.table import CHECKS, OUTPUTS
        from course.authoring.validation.worlds import WORLDS

        how = self.config.stash[HOW]
        try:
            kinds = [cell.cell_type for cell in read(self.path)[1].cells]
        except FAULTS:
            kinds = ["code"]  # its item says why
        for check in CHECKS:
            if check.name in how.checks:
                yield Item.from_parent(self, name=check.name, checks=(check.name,))
        if EXERCISES in how.checks:
            yield Item.from_parent(self, name=EXERCISES, checks=(EXERCISES,))
        if {OUTPUTS, WORLDS} & how.checks:
            code = [place for place, kind in enumerate(kinds) if kind == "code"]
            for number, place in enumerate(code, start=1):
                yield Item.from_parent(self, name=f"cell {number}", checks=(OUTPUTS, WORLDS), place=place)

    def verdict(self) -> Verdict:
        from course.authoring.validation.judging import judge

        self.judged = self.judged or judge(self.path, self.config.stash[HOW])
        return self.judged


class Wrong(Exception):
    """A finding, in the words that the reader is told."""


class Item(pytest.Item):
    """One check of a notebook, or one of its cells of code."""

    def __init__(self, *, checks: tuple[str, ...], place: int | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self.checks, self.place = checks, place

    def runtest(self) -> None:
        from course.authoring.validation.reporting import told

        assert isinstance(self.parent, Notebook)
        verdict = self.parent.verdict()
        found = [one for one in verdict.findings if one.check in self.checks and self.place in (None, one.at)]
        if found:
            raise Wrong("\n".join(told(verdict, one) for one in found))
        unknown = not verdict.legible or (self.place is not None and self.place >= verdict.reached)
        if verdict.broken and unknown:
            raise Wrong(verdict.broken)
        if exempt := [one for one in verdict.exempt if one.check in self.checks and one.at == self.place]:
            self.add_report_section("call", "exempt", exempt[0].says)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, Wrong) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"
