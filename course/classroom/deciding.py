"""Decide on one answer, with processes none of which holds both the oracle and the submission's code.

`decide` asks `python -m course.classroom.deciding`, which does the imports once: it forks a process for each check that
knows the oracle (`decided`), and for each run of an answer one that does not (`course.process.judged`);
values come back, and are compared. Where nothing is forked (`course.process.forked`), Python starts them all.
"""

import ast
import atexit
import contextlib
import functools
import io
import json
import os
import pickle
import re
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, Any, NamedTuple, cast

import cloudpickle

from course.base.notebooks import ROOT, kernel_environment
from course.judging import exercises, judge, sources
from course.judging.exercises import CORRECT, NOT_ATTEMPTED, NOT_YET, Exercise, find
from course.judging.judge import Verdict
from course.judging.plain import Raised
from course.judging.sources import as_python, bound
from course.kernel.shell import ANSI
from course.process import forked, judged, sandbox, worker
from course.process.attempts import NotChecked
from course.process.judged import BROKEN, Reply, Request, read

MOST_SECONDS = 30.0  # of computing, for an answer together with all cells above it
IDLE = 60  # seconds after which a process that nobody asks ends
# What a submission's process is told about this computer.
_KEPT = {
    *("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "PROCESSOR_ARCHITECTURE"),  # Windows: what it is, and where
}


class Check(NamedTuple):
    """A cell of checks, and those of the submission's cells of code that it concerns."""

    key: str
    expression: str  # what is checked
    hidden: bool
    answer: list[str]  # the cells of this exercise
    above: list[str]  # all of them down to the check
    sealed: bool = False  # a class's own numbers: the answer is in its bank
    own: str = ""  # that answer, as Python
    together: float = MOST_SECONDS  # of computing, for the answer with what is above it


# The process that decides


def decided(check: Check) -> dict[str, Any]:
    """Return the verdict and what was printed. Raises NotChecked."""
    exercise, above = _asked(check.key, check.own), list(check.above)
    alone = [*_released(exercise.lesson, of_nobody=True), *check.answer]
    verdict = {"state": NOT_ATTEMPTED} if _is_blank(check) else _passed(exercise, check, alone, exercise.seconds)
    if verdict["state"] == CORRECT or set(above) <= set(alone):
        return verdict
    # By itself it is not right. It may use what another cell defines; what another cell breaks has cost nothing so far.
    seconds = max(exercise.seconds, check.together)
    if verdict["state"] != NOT_ATTEMPTED:
        together = _passed(exercise, check, above, seconds)
        return verdict if together.get("stopped") else together
    made = [source for source in above if source not in alone and check.expression in bound(source)]
    together = _passed(exercise, check._replace(answer=made), above, seconds)
    return together if made or together["state"] == CORRECT else verdict


def _asked(key: str, own: str) -> Exercise:
    """Return the exercise; if a class has its own answer, the course's rows do not describe the mistakes."""
    exercise = find(key)
    return exercise._replace(answer=ast.literal_eval(own), wrong=(), entries={}, properties=()) if own else exercise


def _passed(exercise: Exercise, check: Check, cells: list[str], seconds: float) -> dict[str, Any]:
    answer = _judged(exercise, check, cells, seconds, hidden=False)
    if check.hidden and (answer["state"] == CORRECT or answer.get("share", 0) >= judge.MOST_OF_IT):
        more = _judged(exercise, check, cells, seconds, hidden=True)
        share = min(answer.get("share", 0), more.get("share", 0))
        answer = (more if answer["state"] == CORRECT else answer) | {"share": share}
    return answer


def _judged(exercise: Exercise, check: Check, cells: list[str], seconds: float, hidden: bool) -> dict[str, Any]:
    should, source = _expected(exercise.key, hidden, check.own), "\n".join(map(as_python, check.answer))
    named = {f"cell {number}": source for number, source in enumerate(cells, start=1)}
    answer = [name for name, source in named.items() if source in check.answer]
    with tempfile.TemporaryDirectory(prefix="submission-", ignore_cleanup_errors=True) as folder:
        steps, function = packed(exercise, hidden), callable(exercise.answer)
        request = Request(steps, function, list(named.items()), answer, check.expression, seconds, folder)
        data, ended = worker.exchange(_start(folder), pickle.dumps(tuple(request)), seconds)
        if not _nursery:  # which does so itself
            forked.kill_the_left_behind()
    if not data:
        return {"state": NOT_YET, "message": ended, "stopped": True}
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(broken := json.loads(data), dict) and BROKEN in broken:
            raise NotChecked(str(broken[BROKEN]))
    try:
        reply, share = read(data), 0.0
        verdict = _without_a_value(reply, reply.attempt) if isinstance(reply.attempt, Raised) else None
        if verdict is None:
            assert not isinstance(reply.attempt, Raised)
            seen = [s._replace(shown=e.shown) for s, e in zip(reply.attempt.seen or [], should.right, strict=False)]
            attempt = reply.attempt._replace(seen=None if reply.attempt.seen is None else seen)
            verdict = judge.compared(exercise, attempt, should, hidden, source)
            share = judge.share(exercise, attempt, should)
    except Exception:  # it wrote the answer itself
        return {"state": NOT_YET, "message": "What came back from it is not what a check gives."}
    rows = list(verdict.rows)
    if verdict.at and (line := _line(named, verdict.at)):
        rows.append(("In the line", line))
    if reply.printed and not hidden:
        rows.append(("Printed", ANSI.sub("", reply.printed)))
    return {"state": verdict.state, "message": verdict.message, "rows": rows, "share": share}


@functools.cache
def _expected(key: str, hidden: bool, own: str) -> judge.Expected:
    try:
        return judge.expected(_asked(key, own), hidden)
    except Exception as error:
        raise NotChecked(f"The check of exercise {key} has a mistake of its own: {error}") from None


def _without_a_value(reply: Reply, error: Raised) -> Verdict:
    """Return the verdict on an answer that could not be had."""
    if error.name == "NameError":
        if not reply.cell:
            name = next(iter(re.findall(r"'(\w+)'", error.message)), "it")
            return Verdict(
                NOT_YET, f"There is no `{name}` after its cell has run: the cell gives that name to nothing."
            )
        error = reply.cell  # its cell stopped before that
    return Verdict(NOT_YET, f"Its cell stopped with {error.name}: {error.message}", at=error.at)


def _line(sources: dict[str, str], at: tuple[str, int]) -> str:
    lines = as_python(sources.get(at[0], "")).splitlines()
    return lines[at[1] - 1].strip() if 0 < at[1] <= len(lines) else ""


def _released(lesson: str, of_nobody: bool = False) -> list[str]:
    """Return the cells of code in a lesson's blank notebook. `of_nobody`: without answers and checks."""
    path = ROOT / "exercises" / f"{exercises.title(lesson)}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in code if not (of_nobody and "nbgrader" in cell["metadata"])]


def _is_blank(check: Check) -> bool:
    return sources.is_blank(check.answer, exercises.cell(check.key, "exercises") or "")


def _is_untouched(check: Check) -> bool:
    """Tell whether the answer is blank and no cell above mentions it either."""
    if not _is_blank(check):
        return False
    released, name = set(_released(check.key[:2])), re.compile(rf"\b{re.escape(check.expression)}\b")
    return not any(name.search(source) for source in check.above if source not in released)


class _Packer(cloudpickle.Pickler):
    """A pickler that takes no oracle along."""

    oracle: Any = None

    def reducer_override(self, value: Any) -> Any:
        if callable(self.oracle) and value is self.oracle:
            raise NotChecked(f"The steps of the check use the right answer, {value!r}.")
        return super().reducer_override(value)


def packed(exercise: Exercise, hidden: bool) -> bytes:
    """Pack the steps of a check and what they use from its file. Raises NotChecked where that includes the oracle."""
    module = exercises.checks(exercise.lesson)
    cloudpickle.register_pickle_by_value(module)
    buffer = io.BytesIO()
    packer = _Packer(buffer)
    packer.oracle = exercise.answer
    packer.dump(judge.trial_of(exercise, hidden))
    return buffer.getvalue()


_nursery: forked.Nursery | None = None


def _start(folder: str) -> worker.Running:
    try:
        process = _nursery.start() if _nursery else _started("course.process.judged", _kept() | judged.own(folder))
        if worker.received(process.stdout) == worker.READY:
            return process
    except EOFError:
        pass
    raise NotChecked("The process for the submission's answer could not be started.")


def _started(
    module: str, environment: dict[str, str], within: Sequence[str] = (), stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*within, sys.executable, "-m", module],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
        creationflags=worker.NO_WINDOW,
    )


def _kept() -> dict[str, str]:
    known = kernel_environment()
    return {name: known[name] for name in known if name in _KEPT or name.startswith("PYTHON") or "THREADS" in name}


def _serve() -> None:
    global _nursery
    sandbox.unseen()
    if forked.FORKS:
        forked.imported()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # whoever asks reads only the beginning: otherwise the pipe would fill
    if forked.FORKS:
        _nursery = forked.Nursery.here(judged.serve)  # before anything is known of a submission
    else:
        forked.adopt()
    reply = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the course's own steps print is not part of the verdict
    while data := _question():
        if sys.platform == "win32" or not forked.FORKS:
            _answer(reply, data)
            return
        child = os.fork()
        if child == 0:
            try:
                _answer(reply, data)
            finally:
                os._exit(1)
        if os.waitpid(child, 0)[1]:  # nobody knows what it has left in its pipes
            return


def _question() -> bytes:
    """Read the next question; b"" where no more come, as far as can be seen."""
    if forked.FORKS and not select.select([0], [], [], IDLE)[0]:
        return b""
    return worker.received(sys.stdin.buffer)


def _answer(reply: IO[bytes], data: bytes) -> None:
    """Answer in a process that has computed nothing before, and ends with this."""
    check = Check(*json.loads(data))
    try:
        answer = decided(check)
    except NotChecked as error:
        answer = {BROKEN: str(error)}
    except Exception as error:
        answer = {BROKEN: f"The check of exercise {check.key} could not be run: {error!r:.300}"}
    worker.send(reply, json.dumps(answer).encode())
    os._exit(0)


# Those who ask


class _Deciders:
    """The processes that decide, one for each thread that asks, started when they are needed."""

    def __init__(self) -> None:
        self._idle = list[tuple[subprocess.Popen[bytes], dict[str, str]]]()
        self.why = ""  # the last one did not start

    def ask(self, question: bytes, patience: float | None) -> bytes:
        """Return the answer; b"" where there is none. Raises TimeoutError after `patience` seconds by the clock."""
        environment = _kept() | {name: tempfile.gettempdir() for name in ("TMPDIR", "TEMP", "TMP")}
        while self._idle:
            process, known = self._idle.pop()
            if known == environment and (said := self._said(process, known, question, patience)):
                return said
            worker.stop_tree(process)  # it had waited long enough, and is gone
        # A class's server has it without a network: deploy/server/.
        within = os.environ.get("UNDERTORCH_GRADES_WITHIN", "").split()
        process = _started("course.classroom.deciding", environment, within, subprocess.PIPE)
        return self._said(process, environment, question, patience)

    def _said(
        self, process: subprocess.Popen[bytes], environment: dict[str, str], question: bytes, patience: float | None
    ) -> bytes:
        replies: list[bytes] = []
        talk = threading.Thread(target=worker.converse, args=(process, question, replies), daemon=True)
        talk.start()
        try:
            talk.join(patience)
        except BaseException:  # who asked is stopped
            worker.stop_tree(process)
            raise
        if talk.is_alive():
            worker.stop_tree(process)
            raise TimeoutError
        if any(replies) and forked.FORKS:
            self._idle.append((process, environment))
            return replies[0]
        if not any(replies) and process.stderr:
            process.kill()
            self.why = process.stderr.read().decode(errors="replace").strip()[-300:]
        worker.stop_tree(process)
        return b"".join(replies)

    def stop(self) -> None:
        while self._idle:
            worker.stop_tree(self._idle.pop()[0])


_deciders = _Deciders()
atexit.register(_deciders.stop)


def decide(check: Check, patience: float | None = None) -> dict[str, Any]:
    """Call `decided` in a process of its own that has computed nothing before. Raises NotChecked.

    `patience`: after this many seconds by the clock, the answer counts as not checked.
    """
    if _is_untouched(check):
        return {"state": NOT_ATTEMPTED}
    try:
        reply = _deciders.ask(json.dumps(check).encode(), patience)
    except TimeoutError:
        raise NotChecked("The time was over before it was judged.") from None
    if not reply:
        raise NotChecked(f"The check of exercise {check.key} could not be run: {_deciders.why}")
    answer = cast(dict[str, Any], json.loads(reply))
    if BROKEN in answer:
        raise NotChecked(answer[BROKEN])
    return answer


if __name__ == "__main__":
    _serve()
