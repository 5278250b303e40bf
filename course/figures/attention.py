"""AttentionExplorer: scores, weights and the mix for a few words; where a word looks, and who looks at it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import engine
from course.figures.base.chooser import Chooser, Control, Shown
from course.figures.base.explorer import ACCENT, FAINT, INK
from course.figures.base.grid import HEIGHT, LABEL, frame, text

MASKS = ("none", "causal")
TIMES = (0.0, 0.5, 1.0, 2.0, 8.0)
LOOKS, IS_SEEN = range(2)
TITLES = "scores", "weights (softmax of each row)", "what each word gives (value)", "mix for each word"
SMALL = "fill='#222222' font-size='12'"


class AttentionExplorer(Chooser):
    """Attention among a few words: who asks by rows, who answers by columns; a row of weights, and what it mixes.

    ``query`` and ``key`` have a row for each word, ``value`` too; with a dimension in front, they are several heads.
    """

    def __init__(self, words: Sequence[str], query: Any, key: Any, value: Any):
        self.names = list(words)
        self.query, self.key, self.value = (t.detach()[(None,) * (3 - t.ndim)] for t in (query, key, value))
        heads, count, _ = self.query.shape
        if count != len(self.names) or self.key.shape[:2] != (heads, count) or self.value.shape[:2] != (heads, count):
            raise ValueError("query, key and value have a row for each word, and the same number of heads")
        several = (Control("choice", "head", "head", tuple(map(str, range(heads)))),) if heads > 1 else ()
        self.controls = (
            *several,
            Control("choice", "look", "look at", ("a word that asks (a row)", "a word that is asked (a column)")),
            Control("choice", "mask", "mask", MASKS),
            Control("choice", "times", "scores times", tuple(f"{times:g}" for times in TIMES)),
            Control("range", "word", "word"),
        )
        self.begin = {"head": 0} if several else {}
        self.begin |= {"look": LOOKS, "mask": 0, "times": TIMES.index(1.0), "word": min(4, count - 1)}
        self.stills = (
            ("A word that asks", {}),
            ("With a causal mask", {"mask": 1, "word": min(2, count - 1)}),
            ("A word that is asked", {"look": IS_SEEN, "word": min(1, count - 1)}),
        )

    def run(self, head: int = 0, mask: int = 0, times: int = TIMES.index(1.0)) -> tuple[Any, Any, Any]:
        """Scores, weights and mixes."""
        query, key, value = self.query[head], self.key[head], self.value[head]
        scores = query @ key.T / query.shape[-1] ** 0.5 * TIMES[times]
        if mask:
            scores = scores.masked_fill(engine.ones_like(scores).triu(1).bool(), float("-inf"))
        weights = scores.softmax(dim=-1)
        return scores, weights, weights @ value

    def shown(self, *, look: int, mask: int, times: int, word: int, head: int = 0) -> Shown:
        word = min(word, len(self.names) - 1)
        scores, weights, mixes = self.run(head, mask, times)
        words = (self._asks if look == LOOKS else self._asked)(word, scores, weights, mixes, self.value[head])
        values = {"look": look, "mask": mask, "times": times, "word": word}
        if len(self.query) > 1:
            values["head"] = head
        count = len(self.names)
        clicks = tuple({"word": (n // count if look == LOOKS else n % count)} for n in range(count * count))
        drawn = "".join(self._drawn(look, word, scores, weights, mixes, self.value[head]))
        return Shown([frame([drawn], *self._places[2:])], words, values, {"word": self.names}, clicks)

    def _asks(self, word: int, scores: Any, weights: Any, mixes: Any, value: Any) -> str:
        seen = [n for n in range(len(self.names)) if scores[word, n].item() != float("-inf")]
        said = ", ".join(f"{self.names[n]} {_short(scores[word, n].item())}" for n in seen)
        shares = ", ".join(f"{self.names[n]} {weights[word, n].item():.2f}" for n in seen)
        heavy = [n for n in seen if value[n].any()]
        terms = " + ".join(f"{weights[word, n].item():.2f} × {_row(value[n])}" for n in heavy) or "nothing"
        left = [self.names[n] for n in range(len(self.names)) if n not in seen]
        masked = f" Masked: {', '.join(left)}." if left else ""
        mix = f"Its mix: {terms} = {_row(mixes[word])}."
        return f'"{self.names[word]}" asks. Scores: {said}.{masked} Weights: {shares}. {mix}'

    def _asked(self, word: int, scores: Any, weights: Any, mixes: Any, value: Any) -> str:
        column = weights[:, word].tolist()
        shares = ", ".join(f"{name} {share:.2f}" for name, share in zip(self.names, column, strict=True) if share)
        return (
            f'"{self.names[word]}" is asked, and gives {_row(value[word])}. Its weight for each word that looks at it: '
            f"{shares}. With a slope of 1 at each number of each mix, the gradient of what it gives is the sum, "
            f"{sum(column):.2f}."
        )

    @property
    def _wide(self) -> int:
        """Of a box: the longest word above it has room, and a number of two digits and two places."""
        return max(48, 12 + 8 * max(map(len, self.names)))

    @property
    def _places(self) -> tuple[int, int, int, int]:
        """Return where the tables at the right and those below begin, and how far all of them reach."""
        columns = max(len(self.names), self.value.shape[-1])
        each = max(self._wide * (columns + 1), 8 * max(map(len, TITLES))) + 24
        below = HEIGHT * len(self.names) + 62
        return 8 + each, below, 8 + 2 * each, 2 * below

    def _drawn(self, look: int, word: int, scores: Any, weights: Any, mixes: Any, value: Any) -> Iterator[str]:
        across, below, *_ = self._places
        asks = look == LOOKS

        def strong(row: int, column: int) -> bool:
            return word == (row if asks else column)

        yield from self._table(8, 0, TITLES[0], self.names, scores, strong)
        yield from self._table(across, 0, TITLES[1], self.names, weights, strong, weights)
        columns = [str(n) for n in range(value.shape[1])]
        shares = weights[word][:, None].expand_as(value) if asks else None
        yield from self._table(8, below, TITLES[2], columns, value, lambda row, _: asks or row == word, shares)
        yield from self._table(across, below, TITLES[3], columns, mixes, lambda row, _: not asks or row == word)

    def _table(
        self,
        x: int,
        y: int,
        title: str,
        columns: list[str],
        table: Any,
        strong: Callable[[int, int], bool],
        shares: Any = None,
    ) -> Iterator[str]:
        """Yield a table with a row for each word, dark where the share is large; of words by words, to be clicked."""
        wide, left, top = self._wide, x + self._wide, y + 24 + LABEL
        yield text(x, y + 18, title, "fill='#222222' font-weight='bold'")
        for column, name in enumerate(columns):
            yield text(left + wide * (column + 0.5), top - 5, name, f"{SMALL} text-anchor='middle'")
        last = []
        for row, name in enumerate(self.names):
            yield text(left - 6, top + HEIGHT * (row + 0.5) + 4, name, f"{SMALL} text-anchor='end'")
            for column in range(len(columns)):
                number = row * len(columns) + column if columns == self.names else None
                dark = 0.0 if shares is None else shares[row, column].item()
                place = left + wide * column, top + HEIGHT * row, wide
                drawn = _box(*place, table[row, column].item(), strong(row, column), dark, number)
                if strong(row, column):
                    last.append(drawn)
                else:
                    yield drawn
        yield from last  # what counts is drawn last: its outline lies over its neighbours'


def _box(x: float, y: float, wide: int, value: float, strong: bool, dark: float, number: int | None) -> str:
    masked = value == float("-inf")
    outline = f"stroke='{ACCENT}' stroke-width='2.5'" if strong else f"stroke='{FAINT if masked else INK}'"
    dashes = " stroke-dasharray='3 3'" if masked else ""
    click = f" data-number='{number}'" if number is not None else ""
    size = f"x='{x:g}' y='{y:g}' width='{wide}' height='{HEIGHT}'"
    parts = [f"<rect {size} fill='#ffffff' {outline}{dashes}{click}/>"]
    if dark > 0.005:
        parts.append(f"<rect {size} fill='{INK}' fill-opacity='{0.6 * dark:.3f}' pointer-events='none'/>")
    weight = " font-weight='bold'" if strong else ""
    style = f"fill='#222222'{weight} text-anchor='middle' pointer-events='none'"
    parts.append(text(x + wide / 2, y + HEIGHT / 2 + 5, "−∞" if masked else _short(value), style))
    return "".join(parts)


def _short(value: float) -> str:
    rounded = round(value, 2) + 0.0
    return f"{rounded:g}" if rounded == int(rounded) else f"{rounded:.2f}"


def _row(values: Any) -> str:
    return f"[{', '.join(map(_short, values.tolist()))}]"
