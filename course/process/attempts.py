"""An attempt on its way to whoever judges it, and what is said of it there."""

import contextlib
import functools
import io
import linecache
import pickle
from typing import Any, TypedDict

import cloudpickle

from course.base.errors import text_of
from course.judging.exercises import NOT_YET, find

PRINTED_LINES, PRINTED_CHARACTERS = 10, 1000
# What an attempt may use, in bytes: an endless list is to end before this computer does.
MOST_MEMORY = 2 * 2**30
_BROKEN = "broken"


class Answer(TypedDict, total=False):
    """The answer to an attempt: the fields of a Verdict, and what the attempt printed."""

    state: str
    message: str
    rows: list[tuple[str, str]]
    at: tuple[str, int] | None
    printed: str


class NotChecked(Exception):
    """The check itself did not work: nothing is known about the attempt."""


class _Packer(cloudpickle.CloudPickler):
    """cloudpickle, but for tensors with a past: they would arrive without it, and be taken for something else.

    And for `functools.lru_cache`, which it takes for something that can be imported.
    """

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, functools._lru_cache_wrapper):
            return cached, (value.__wrapped__, value.cache_parameters())
        if hasattr(value, "grad_fn") and not value.is_leaf:
            raise _WithGraph
        return super().reducer_override(value)


class _WithGraph(Exception):
    pass


def cached(function: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def packed(attempt: Any) -> bytes:
    """Pack an attempt with what it uses from the notebook. Raises whatever prevents that: see `not_packed`."""
    buffer = io.BytesIO()
    _Packer(buffer).dump(_without_graphs(attempt))
    return buffer.getvalue()


def _without_graphs(attempt: Any) -> Any:
    """Tensors given as an answer are compared by what they hold; those with a graph cannot be sent as they are."""
    if isinstance(attempt, list | tuple):
        return type(attempt)(map(_without_graphs, attempt)) if type(attempt) in (list, tuple) else attempt
    if isinstance(attempt, dict):
        return {key: _without_graphs(value) for key, value in attempt.items()}
    return attempt if getattr(attempt, "is_leaf", True) else attempt.detach()


def not_packed(error: Exception) -> str:
    """Say why an attempt cannot be packed."""
    if isinstance(error, _WithGraph):
        return (
            "It uses a result that was computed elsewhere in the notebook. Let it use its arguments alone, and "
            "make whatever else it needs inside the function."
        )
    why = "it contains itself" if isinstance(error, RecursionError) else text_of(error)
    return f"It uses something from the notebook that cannot be sent to the check ({why}). Pass it as an argument."


def judged(key: str, hidden: bool, source: str, packed: bytes) -> Answer:
    """Judge a packed attempt with the engine of this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        answer = _judged(key, hidden, source, packed)
    return Answer(**answer, printed=beginning(printed.getvalue()))


def _judged(key: str, hidden: bool, source: str, packed: bytes) -> Any:
    from course.judging import judge, pretend

    try:
        attempt = pickle.loads(packed)
    except Exception as error:
        return {"state": NOT_YET, "message": f"It could not be sent to the check ({_named(error)})."}
    try:
        return judge.judge(find(key), attempt, hidden, source)._asdict()
    except (SystemExit, KeyboardInterrupt) as error:
        return {"state": NOT_YET, "message": f"It ended Python with {type(error).__name__}."}
    except MemoryError:
        return {"state": NOT_YET, "message": f"It used more than {MOST_MEMORY / 2**30:g} GB of memory."}
    except pretend.NoThreads:
        return {"state": _BROKEN, "message": f"{find(key).name}: {pretend.NO_THREADS}"}
    except Exception as error:
        return {"state": _BROKEN, "message": f"The check of exercise {key} has a mistake of its own ({_named(error)})."}


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {text_of(error)}"


def known(answer: Answer) -> Answer:
    """Return the answer itself. Raises NotChecked where it says that the check did not work."""
    if answer["state"] == _BROKEN:
        raise NotChecked(answer["message"])
    return answer


def too_long(seconds: float) -> str:
    """Say of an attempt that it was stopped."""
    return (
        f"It was stopped after {seconds:g} seconds. Is there a loop that never ends, or one that does far too "
        "much? (`x in a_list` looks at every entry; in a set or a dict it looks at one.)"
    )


def beginning(printed: str) -> str:
    """Return what is shown of an attempt's output."""
    shown = "\n".join(printed[:PRINTED_CHARACTERS].splitlines()[:PRINTED_LINES])
    return shown + ("\n..." if len(shown) < len(printed.rstrip()) else "")


def line_of(at: tuple[str, int] | None) -> str:
    """Return the line of a cell that an error came from, as far as it is known here."""
    return linecache.getline(*at).strip() if at else ""
