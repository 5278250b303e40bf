"""The command's answer: which notebooks, side by side, and what becomes of their verdicts."""

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from course.authoring.validation import COULD_NOT_RUN, DIFFERENT, SAME, reporting
from course.authoring.validation.comparing import HOW
from course.authoring.validation.judging import How, Verdict, judge, updated
from course.authoring.validation.masks import Mask, read
from course.authoring.validation.sources import CHECKS, NAMES, OUTPUTS
from course.base.environment import Problem
from course.base.files import write_atomically


def run(options: argparse.Namespace) -> int:
    """Validate what the options name; the exit code."""
    try:
        how = How(options.timeout, options.kernel, read(options.sanitize_with), _asked(options))
        if options.rules:
            print(rules(how.masks))
        paths = notebooks(options.path)
    except Problem as problem:
        print(problem)
        return COULD_NOT_RUN
    if not options.path:
        return SAME
    verdicts = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(lambda path: judge(path, how), paths):
            verdicts.append(verdict)
            print(reporting.shown(verdict), flush=True)
            if options.github:
                print(*reporting.annotations(verdict), sep="\n", flush=True)
            _store(verdict, options)
    if options.junit:
        reporting.junit(verdicts, Path(options.junit))
    if options.summary:
        reporting.append_summary(verdicts, Path(options.summary))
    print(reporting.last_line(verdicts))
    return (
        COULD_NOT_RUN if any(v.broken for v in verdicts) else DIFFERENT if any(v.findings for v in verdicts) else SAME
    )


def _asked(options: argparse.Namespace) -> frozenset[str]:
    """The checks that the command line leaves. Raises Problem."""
    only, skip = ([name for given in some for name in given.split(",")] for some in (options.only, options.skip))
    if unknown := {*only, *skip} - {*NAMES}:
        raise Problem(f"There is no check {min(unknown)!r}. There are {', '.join(NAMES)}.")
    return frozenset(only or NAMES) - frozenset(skip)


def _store(verdict: Verdict, options: argparse.Namespace) -> None:
    if verdict.new is None:
        return
    if options.keep:
        kept = Path(options.keep) / reporting.relative(verdict.path).lstrip("/").replace(":", "")
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, nbformat.writes(verdict.new))
    if options.update and verdict.differing and not verdict.broken:
        write_atomically(verdict.path, nbformat.writes(updated(verdict)) + "\n")
        print(f"  {reporting.relative(verdict.path)} has the new outputs now.")


def rules(masks: tuple[Mask, ...]) -> str:
    """What is masked and how the rest is compared, in words and patterns."""
    masked = [f"masked: {mask.what}\n  {mask.pattern}\n  -> {mask.replacement}" for mask in masks]
    looked = [f"{check.name}: {check.what}" for check in CHECKS]
    return "\n".join([*masked, HOW, f"{OUTPUTS}: not what is stored", *looked])


def notebooks(given: list[str]) -> list[Path]:
    """The notebooks that paths name, those of folders in order. Raises Problem where a path names none."""
    found: list[Path] = []
    for path in map(Path, given):
        if path.is_dir():
            inside = sorted(
                one for one in path.rglob("*.ipynb") if not any(p.startswith(".") for p in one.relative_to(path).parts)
            )
            if not inside:
                raise Problem(f"There is no notebook in {path}.")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise Problem(f"There is no file or folder {path}.")
    return list(dict.fromkeys(found))
