"""The outcome of a step as plain data, which can be compared, shown, and sent from one process to another."""

import math
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

import engine
from course.base.errors import text_of

LONGEST = 800  # characters of a value, or of what was printed
_COURSE = Path(__file__).resolve().parents[1]
_ENGINE = Path(engine.__file__).resolve().parent
_HISTORY = re.compile(r",\s+(?:grad_fn=<[^<>]*>|requires_grad=True)")


class Plain(NamedTuple):
    """A value as it was at one moment, in a form that can be compared and shown."""

    kind: str
    value: Any
    text: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    tracked: bool = False  # a tensor that requires grad, which is shown and not compared


class Raised(NamedTuple):
    """An exception, and the line of the learner's code that it came from: file, number."""

    name: str
    message: str
    at: tuple[str, int] | None
    gave: str = ""  # raised by the check's own step, which could not use what the attempt gave: what that was


class Seen(NamedTuple):
    """The outcome of one step: its result, and what the arguments hold afterwards."""

    shown: str
    result: Plain | Raised
    before: dict[str, Plain]  # "{0}.grad": the gradient of the first argument, whose name is ...
    after: dict[str, Plain]
    names: list[str]
    direct: bool = True  # the attempt itself was called, and not a step's helper that uses it
    gave: str = ""  # where the result of a helper holds a None: what the attempt itself gave


def plain(value: Any) -> Plain:
    """Capture a value as it is now. Tensors and arrays are copied."""
    if isinstance(value, engine.Tensor):
        array = np.array(value.detach().cpu().to(_comparable_dtype(value)).numpy())
        dtype = str(value.dtype).removeprefix("engine.").removeprefix("torch.")
        place = "" if value.device.type == "cpu" else f", on {value.device}"
        text = f"{_shown(value)}\nshape {tuple(value.shape)}, {dtype}{place}"
        return Plain("tensor", array, text, array.shape, dtype, str(value.device), bool(value.requires_grad))
    if isinstance(value, np.ndarray):
        text = f"{short(repr(value))}\nshape {value.shape}, {value.dtype}"
        return Plain("array", value.copy(), text, value.shape, str(value.dtype))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float | complex | str | None | EllipsisType):
        return Plain(type(value).__name__, value, short(repr(value)))
    if isinstance(value, list | tuple):
        return Plain("list", [plain(part) for part in value], _shown(value))
    if isinstance(value, dict):
        parts_by_key = dict(zip(_keys(value), map(plain, value.values()), strict=True))
        return Plain("dict", parts_by_key, _shown(value))
    if isinstance(value, set | frozenset):
        return Plain("set", sorted(_keys(value)), short(repr(value)))
    if isinstance(value, engine.nn.Module) and not isinstance(value, type):
        return Plain("module", {"how it is built": plain(nameless(value)), **state(value)}, _shown(value))
    if callable(value) and hasattr(value, "__name__"):
        return Plain("function", None, f"the function {value.__name__}, and not what it returns")
    return Plain(type(value).__name__, nameless(value), short(repr(value)))


def state(module: Any) -> dict[str, Plain]:
    """Return what a Module holds, by name: parameters and buffers, their `.grad` and `requires_grad`, and its mode."""
    held = {}
    tensors = [*module.named_parameters(), *module.named_buffers()]
    for name, tensor in tensors:
        held[name] = plain(tensor)
    for name, tensor in module.named_parameters():
        held[f"{name}.grad"] = plain(tensor.grad)
        held[f"{name}.requires_grad"] = plain(tensor.requires_grad)
    for name, part in module.named_modules():
        held[f"{name}.training".lstrip(".")] = plain(part.training)
    return held


def _comparable_dtype(value: Any) -> Any:
    return engine.float64 if value.dtype.is_floating_point else value.dtype


def _shown(value: Any) -> str:
    """Show a value without where its tensors come from: those of another right answer come from elsewhere."""
    return short(_HISTORY.sub("", repr(value)))


def _keys(held: Iterable[Any]) -> list[str]:
    """Return keys for the entries of a dict or a set; two that look the same are told apart by their order."""
    seen: Counter[str] = Counter()
    names = []
    for name in map(nameless, held):
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return names


def nameless(value: Any, show: Callable[[Any], str] = repr) -> str:
    """Show a value without its place in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", show(value))


def short(text: str) -> str:
    """Cut a text where it is too long to be shown."""
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


def raised(error: BaseException) -> Raised:
    """Turn an exception into plain data."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not Path(frame.filename).resolve().is_relative_to(_COURSE)]
    theirs = [frame for frame in own if not Path(frame.filename).resolve().is_relative_to(_ENGINE)]
    theirs = [frame for frame in theirs if "site-packages" not in frame.filename]
    at = (theirs[-1].filename, theirs[-1].lineno or 0) if theirs else None
    return Raised(type(error).__name__, short(nameless(error, text_of)), at)


def places_of(error: BaseException) -> list[str]:
    """Return the files that an exception went through, from the outside in."""
    return [str(Path(frame.filename).resolve()) for frame in traceback.extract_tb(error.__traceback__)]


def described(value: Any) -> str:
    """Name the kind of a value, in a few words."""
    if isinstance(value, engine.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, list | tuple):
        return f"{'a list' if isinstance(value, list) else 'a tuple'} of {len(value)}"
    return article("module" if isinstance(value, engine.nn.Module) else type(value).__name__)


def as_float(value: Plain) -> Plain:
    """Turn a whole number into one with a point."""
    return value._replace(kind="float", value=float(value.value) if abs(value.value) < 2**1000 else math.inf)


def article(kind: str) -> str:
    """Name a kind of value with its article: "an int", "a list or tuple"."""
    name = {
        "str": "text",
        "list": "a list or tuple",
        "dict": "a dict",
        "set": "a set",
        "NoneType": "None",
        "module": "a Module",
    }.get(kind)
    return name or f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
