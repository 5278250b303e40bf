"""What the command does: which notebooks it looks at, side by side, and what becomes of the verdicts."""

import argparse
import glob
import itertools
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from course.authoring.validation import COULD_NOT_RUN, DIFFERENT, SAME, reporting
from course.authoring.validation.comparing import HOW
from course.authoring.validation.exercises import EXERCISES
from course.authoring.validation.judging import How, Verdict, judge, updated
from course.authoring.validation.masks import Mask, read
from course.authoring.validation.table import CHECKS, NAMES, NUMBERS, OUT, OUTPUTS
from course.authoring.validation.worlds import WORLDS, read_line
from course.base.environment import Problem
from course.base.files import write_atomically

PROJECT = "pyproject.toml"


def run(options: argparse.Namespace) -> int:
    """Validate what the options name, and return the exit code."""
    try:
        how = how_of(options)
        if options.rules:
            print(rules(how.masks))
        paths = notebooks(options.path)
    except Problem as problem:
        print(problem)
        return COULD_NOT_RUN
    if not options.path:
        return SAME
    verdicts, written = [], []
    with ThreadPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(lambda path: judge(path, how), paths):
            verdicts.append(verdict)
            print(reporting.shown(verdict), flush=True)
            if options.github:
                print(*reporting.annotations(verdict), sep="\n", flush=True)
            written.append(_store(verdict, options))
    written += [
        _written(write, verdicts, Path(file))
        for write, file in ((reporting.junit, options.junit), (reporting.append_summary, options.summary))
        if file
    ]
    print(reporting.last_line(verdicts))
    if any(verdict.broken for verdict in verdicts) or not all(written):
        return COULD_NOT_RUN
    return DIFFERENT if any(verdict.findings for verdict in verdicts) else SAME


def _written(write: Callable[..., object], what: object, path: Path) -> bool:
    """Write something to a file, and tell whether that worked; if not, say why."""
    try:
        write(what, path)
    except OSError as error:
        print(f"{path} cannot be written: {error.strerror or error}.")
        return False
    return True


def how_of(options: argparse.Namespace) -> How:
    """Return what the options demand of each notebook. Raises Problem."""
    also = read_line(options.also) if options.also else None
    two = also is not None or len(options.kernel) == 2
    names = (*NAMES, WORLDS) if two else NAMES
    only, skip = ([name for given in some for name in given.split(",")] for some in (options.only, options.skip))
    if unknown := {*only, *skip} - {*names}:
        aside = " (which needs --also, or --kernel twice)" * (WORLDS in unknown)
        raise Problem(f"There is no check {min(unknown)!r}{aside}. There are {', '.join(names)}.")
    if len(options.kernel) > 2:
        raise Problem("There are two worlds at most: --kernel twice, and no more.")
    asked = [NUMBERS] * options.texts + [EXERCISES] * options.exercises
    usual = [name for name in names if name not in (NUMBERS, EXERCISES)]
    checks = frozenset([*(only or usual), *asked]) - frozenset(skip)
    kernels, masks = tuple(options.kernel or [None]), read(options.sanitize_with or configured(options.path))
    return How(options.timeout, kernels, masks, checks, also, options.first_only, options.brief)


def configured(paths: list[str]) -> str | None:
    """Return the file of masks named in the nearest pyproject.toml above the notebooks. Raises Problem."""
    place = Path(*paths[:1]).resolve()
    file = next((folder / PROJECT for folder in (place, *place.parents) if (folder / PROJECT).is_file()), None)
    if file is None:
        return None
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("undertorch", {})
        given = settings.get("validate", {}).get("sanitize-with")
        return str(file.parent / given) if given is not None else None
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise Problem(f"The settings in {file} cannot be read: {error}") from None


def _store(verdict: Verdict, options: argparse.Namespace) -> bool:
    done = True
    if options.keep and verdict.new is not None:
        kept = Path(options.keep) / reporting.relative(verdict.path).lstrip("/").replace(":", "")
        done = _written(_write, verdict.new, kept)
    if options.update and not verdict.broken and (verdict.differing or any(f.check == OUT for f in verdict.findings)):
        if not _written(_write, updated(verdict), verdict.path.resolve()):  # a link stays one
            return False
        print(f"  {reporting.relative(verdict.path)} has the new outputs now.")
    return done


def _write(notebook: nbformat.NotebookNode, path: Path) -> None:
    write_atomically(path, nbformat.writes(notebook) + "\n")


def rules(masks: tuple[Mask, ...]) -> str:
    """Describe what is masked and how the rest is compared, in words and patterns."""
    masked = [f"masked: {mask.what}\n  {mask.pattern}\n  -> {mask.replacement}" for mask in masks]
    looked = [f"{check.name}: {check.what}" for check in CHECKS]
    ran = [
        f"{OUTPUTS}: not what is stored",
        f"{EXERCISES}: nbgrader's points for blank, right and wrong answers; answers given away (--exercises)",
        f"{WORLDS}: not the same in both (--also, --kernel twice)",
    ]
    return "\n".join([*masked, HOW, *ran, *looked])


def _matching(name: str) -> list[str]:
    """Return the paths that a pattern matches, since not every shell expands it (Windows), or else the name itself."""
    return [name] if Path(name).exists() else sorted(glob.glob(name)) or [name]  # noqa: PTH207  it may be absolute


def notebooks(given: list[str]) -> list[Path]:
    """Return the notebooks that paths name, those of folders in order. Raises Problem where a path names none."""
    found: list[Path] = []
    for path in map(Path, itertools.chain.from_iterable(map(_matching, given))):
        if path.is_dir():
            inside = sorted(
                one
                for one in path.rglob("*.ipynb")
                if not one.is_dir() and not any(part.startswith(".") for part in one.relative_to(path).parts)
            )
            if not inside:
                raise Problem(f"There is no notebook in {path}.")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise Problem(f"There is no file or folder {path}.")
    return list({path.resolve(): path for path in reversed(found)}.values())[::-1]
