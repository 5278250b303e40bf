"""Tell a reader what validation has found; tell JUnit and GitHub, and write it in Markdown."""

import os
from pathlib import Path
from xml.etree import ElementTree

from course.authoring.validation.judging import Finding, Verdict
from course.authoring.validation.table import OUTPUTS
from course.authoring.validation.worlds import WORLDS


def shown(verdict: Verdict) -> str:
    """Write the report on one notebook."""
    state = _state(verdict)
    lines = [f"{relative(verdict.path)}: {state} ({_count(verdict.cells, 'cell')})"]
    if verdict.broken:
        lines.append(f"  {verdict.broken}")
    lines += [f"  {line}" for finding in verdict.findings for line in told(verdict, finding).splitlines()]
    lines += [f"  {one.cell}{_in_text(verdict, one)}: exempt: {one.says}" for one in verdict.exempt]
    return "\n".join(lines)


def told(verdict: Verdict, finding: Finding) -> str:
    """Write what one finding says."""
    first, *rest = finding.says.splitlines()
    about = f"{finding.check}: " * (finding.check != OUTPUTS)
    return "\n".join([f"{finding.cell}{_in_text(verdict, finding)}: {about}{first}", *(f"  {line}" for line in rest)])


def _state(verdict: Verdict) -> str:
    if verdict.broken:
        return "could not run"
    if _differing(verdict):
        return "differs"
    if any(finding.check == WORLDS for finding in verdict.findings):
        return "differs between the two"
    if verdict.findings:
        return "has faults"
    return "as stored" if verdict.new else "without faults"


def _differing(verdict: Verdict) -> int:
    return len({finding.cell for finding in verdict.findings if finding.check == OUTPUTS})


def _between(verdict: Verdict) -> int:
    return len({finding.cell for finding in verdict.findings if finding.check == WORLDS})


def _faults(verdict: Verdict) -> int:
    return sum(finding.check not in (OUTPUTS, WORLDS) for finding in verdict.findings)


def _in_text(verdict: Verdict, finding: Finding) -> str:
    return f" ({relative(verdict.text)}:{finding.line})" if verdict.text and finding.line else ""


def relative(path: Path) -> str:
    """Return a path as the reader would type it."""
    # A link keeps its own name; the name of the working folder has no links in it.
    for one in (Path(os.path.abspath(path)), path.resolve()):  # noqa: PTH100
        if one.is_relative_to(Path.cwd()):
            return one.relative_to(Path.cwd()).as_posix()
    return path.resolve().as_posix()


def last_line(verdicts: list[Verdict]) -> str:
    """Write the verdict on all of them."""
    broken = sum(bool(one.broken) for one in verdicts)
    found, faults, between = (sum(map(count, verdicts)) for count in (_differing, _faults, _between))
    of = f"{_count(sum(one.cells for one in verdicts), 'cell')} of {_count(len(verdicts), 'notebook')}"
    exempt = sum(len(one.exempt) for one in verdicts)
    aside = f", {exempt} exempt" if exempt else ""
    if not broken and not found and not faults and not between:
        return f"{'All as stored' if all(one.new for one in verdicts) else 'No faults'}: {of}{aside}."
    parts = [f"{_count(found, 'cell')} differ{'s' * (found == 1)}"] * bool(found)
    parts += [f"{_count(between, 'cell')} differ{'s' * (between == 1)} between the two"] * bool(between)
    parts += [_count(faults, "fault")] * bool(faults)
    parts += [f"{_count(broken, 'notebook')} could not run"] * bool(broken)
    return f"FAILED: {', '.join(parts)}; {of}{aside}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def junit(verdicts: list[Verdict], path: Path) -> None:
    """Write a file that any CI reads: a test suite for each notebook, a failure for each finding."""
    root = ElementTree.Element("testsuites")
    for one in verdicts:
        name, failures = relative(one.path), len(one.findings)
        tests = max(one.cells, failures + bool(one.broken), 1)
        counts = {"tests": tests, "failures": failures, "errors": int(bool(one.broken)), "skipped": len(one.exempt)}
        facts = {"name": name} | {what: str(count) for what, count in counts.items()}
        suite = ElementTree.SubElement(root, "testsuite", facts)
        told = [(f.cell, "failure", f.says) for f in one.findings] + [(f.cell, "skipped", f.says) for f in one.exempt]
        told += [("the notebook", "error", one.broken)] * bool(one.broken)
        for cell, kind, says in told:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=cell)
            ElementTree.SubElement(case, kind, message=_printable(says.splitlines()[0])).text = _printable(says)
        if not told:
            ElementTree.SubElement(suite, "testcase", classname=name, name="all cells")
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _printable(text: str) -> str:
    """Remove the characters that XML cannot hold."""
    return "".join(letter for letter in text if letter in "\t\n" or letter >= " " and letter not in "\ufffe\uffff")


def annotations(verdict: Verdict) -> list[str]:
    """Write GitHub's commands, which show a finding beside the line of the text."""
    found = [(one.line, f"{one.cell}: {one.says}") for one in verdict.findings]
    found += [(None, verdict.broken)] * bool(verdict.broken)
    lines = []
    for line, says in found:
        file = relative(verdict.text if verdict.text and line else verdict.path)
        place = _escaped(file).replace(":", "%3A").replace(",", "%2C") + (f",line={line}" if line else "")
        lines.append(f"::error file={place}::{_escaped(says)}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def append_summary(verdicts: list[Verdict], path: Path) -> None:
    """Append a table of the notebooks, and what differs, to `$GITHUB_STEP_SUMMARY`."""
    rows = ["| notebook | cells | differ | faults | exempt |", "|---|---|---|---|---|"]
    for one in verdicts:
        differ = "could not run" if one.broken else str(_differing(one))
        rows.append(f"| {relative(one.path)} | {one.cells} | {differ} | {_faults(one)} | {len(one.exempt)} |")
    details = [f"~~~~diff\n{shown(one)}\n~~~~" for one in verdicts if one.findings or one.broken]
    text = os.linesep.join(["", *rows, "", *details, "", last_line(verdicts), ""])
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)
