"""What differs from run to run and means nothing: each rule replaces it, in the stored output and in the new one."""

import re
from pathlib import Path
from typing import NamedTuple

from nbval.plugin import get_sanitize_patterns

from course.base.environment import Problem


class Mask(NamedTuple):
    """A rule: what it is for, the pattern, and what to put in its place."""

    what: str
    pattern: str
    replacement: str


_TIME = r"(?:\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:min|s|ms|µs|us|μs|ns)(?: \d+(?:\.\d+)? ?(?:s|ms))?)"
MASKS = (
    Mask("memory addresses", r"\b0x[0-9a-fA-F]{6,16}\b", "ADDRESS"),
    Mask(
        "the words beside a picture of matplotlib's",
        r"<(?:matplotlib\.figure\.)?Figure (?:at ADDRESS|size [\d.]+x[\d.]+ with \d+ Axes)>",
        "<Figure>",
    ),
    Mask("the file that ipykernel pretends a cell is", r"(?m)^.*ipykernel_\d+[\\/]\d+\.py(?=:\d+: )", "<cell>"),
    Mask("%timeit", rf"{_TIME} ± {_TIME} per loop \(.*\)", "TIME per loop"),
    Mask("%time", rf"(?m)^(?:CPU times: .*|Wall time: {_TIME})$", "TIME"),
    Mask(
        "progress bars (tqdm)",
        r"(?m)^.*?\d+%\|[^|\n]*\| *[^\s/]+/[^\s/]+ \[[\d:]+<[\d:?]+, .*\]$",
        "PROGRESS",
    ),
    Mask(
        "the pixels of pictures inside HTML",
        r'(?: width="\d+" style="[^"]*")? src="data:image/[a-z+]+;base64,[A-Za-z0-9+/=\n]+"',
        ' src="PICTURE"',
    ),
)


def read(path: str | None) -> tuple[Mask, ...]:
    """Read the built-in masks, and those of a file in nbval's format. Raises Problem where the file is not one."""
    if path is None:
        return MASKS
    try:
        found = get_sanitize_patterns(Path(path).read_text(encoding="utf-8"))
        more = tuple(Mask(f"{path}, rule {number}", *pair) for number, pair in enumerate(found, start=1))
        apply("", more)
    except (OSError, ValueError) as error:
        raise Problem(f"The masks of {path} cannot be read: {error}") from None
    except re.error as error:
        raise Problem(f"{path} has a pattern that is no regular expression: {error}") from None
    if not more:
        raise Problem(f"{path} has no mask: each is a line `regex: ...` and, below it, a line `replace: ...`.")
    return MASKS + more


def apply(text: str, masks: tuple[Mask, ...]) -> str:
    """Replace everything in a text that the masks describe."""
    for mask in masks:
        text = re.sub(mask.pattern, mask.replacement, text)
    return text
