"""LeafBoard: a short program, run line by line, and a card for each of its tensors: who gets a gradient, and why."""

import ast
import html
import textwrap
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import engine
from engine import viz
from engine.core.tensor import Tensor

KEEPS, PASSES, NOTHING = "knob", "result", "data"  # what a tensor does with a gradient; the classes of the cards


class Card(NamedTuple):
    """A tensor's own account, as texts."""

    name: str
    value: str
    is_leaf: bool
    requires_grad: bool
    grad_fn: str
    grad: str

    @property
    def kind(self) -> str:
        return NOTHING if not self.requires_grad else KEEPS if self.is_leaf else PASSES

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "is_leaf", str(self.is_leaf)
        yield "requires_grad", str(self.requires_grad)
        yield "grad_fn", self.grad_fn
        yield ".grad", self.grad


class Step(NamedTuple):
    """The board after a statement: its number, its text, the cards, and what has changed, in words and by name."""

    number: int
    source: str
    cards: tuple[Card, ...] = ()
    said: str = "Nothing has run yet, and there is no tensor."
    changed: frozenset[str] = frozenset()  # of the tensors that are new, or other than before
    error: str = ""


class LeafBoard:
    """A slider over the statements of a program, which is run with the engine, and a board of its tensors.

    A card for each tensor shows ``is_leaf``, ``requires_grad``, ``grad_fn`` and ``.grad``; below, a table sorts them by
    the first two. A statement that raises is the last one.

    ``steps``, ``text(k)`` and ``static()`` need neither a notebook nor anywidget.
    """

    def __init__(self, program: str):
        self.program = textwrap.dedent(program).strip("\n")
        self.steps = list(run(self.program))

    def __len__(self) -> int:
        return len(self.steps)

    def text(self, k: int) -> str:
        """Return the board after statement k, in words."""
        step = self.steps[k]
        begin = f"Line {step.number}, {one_line(step.source)}: " if step.number else ""
        return begin + step.said

    def static(self) -> dict[str, str]:
        """Return what a reader without a kernel gets: what each line did, the cards in the end, and the four boxes."""
        last = self.steps[-1]
        lines = [self.text(k) for k in range(1, len(self))]
        titles = ["tensor", "value", *(title for title, _ in last.cards[0].rows())] if last.cards else []
        rows = [[card.name, card.value, *(value for _, value in card.rows())] for card in last.cards]
        told = "".join(
            f"<li><code>{html.escape(one_line(step.source))}</code>: {html.escape(step.said)}</li>"
            for step in self.steps[1:]
        )
        page = f"<p><strong>The board of leaves, line by line</strong></p><ol>{told}</ol>"
        page += f"<p><strong>The cards in the end</strong></p>{table(titles, rows)}" if rows else ""
        page += f"<p><strong>The four boxes</strong></p>{four_boxes(last.cards)}"
        cards = [f"{card.name}: " + ", ".join(f"{t} {v}" for t, v in card.rows()) for card in last.cards]
        return {"text/plain": "\n".join(["The board of leaves, line by line", *lines, *cards]), "text/html": page}

    def widget(self) -> Any:
        """Return the program, the slider and the board, as a widget.  ImportError where anywidget is not installed."""
        from course.figures.leaf_board.widget import LeafBoardWidget

        return LeafBoardWidget(
            lines=[step.source for step in self.steps[1:]],
            boards=[cards_of(step) for step in self.steps],
            boxes=[four_boxes(step.cards) for step in self.steps],
            said=[self.text(k) for k in range(len(self))],
        )

    def __repr__(self) -> str:
        return self.static()["text/plain"]

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_()
        except ImportError:  # anywidget is not installed: the tables are
            data, metadata = {}, {}
        return data | self.static(), metadata


def run(program: str) -> Iterator[Step]:
    """Yield the board before the program, and after each of its statements."""
    names: dict[str, Any] = {"engine": engine}
    before: dict[str, tuple[Tensor, Card]] = {}
    yield Step(0, "")
    for number, statement in enumerate(ast.parse(program).body, 1):
        error = ""
        try:
            exec(compile(ast.Module([statement], []), "<board>", "exec"), names)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        now = {name: (t, card(name, t)) for name, t in names.items() if isinstance(t, Tensor)}
        changed = frozenset(name for name, (t, c) in now.items() if name not in before or other(before[name], (t, c)))
        said = error or " ".join(changes(before, now)) or "No card has changed."
        source = ast.get_source_segment(program, statement) or ""
        yield Step(number, source, tuple(c for _, c in now.values()), said, changed, error)
        if error:
            return
        before = now


def card(name: str, t: Tensor) -> Card:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the .grad of a result
        grad = t.grad
    made = "None" if t.grad_fn is None else type(t.grad_fn).__name__
    held = "None" if grad is None else viz.brief(grad.array)
    return Card(name, viz.brief(t.array), t.is_leaf, t.requires_grad, made, held)


def other(before: tuple[Tensor, Card], now: tuple[Tensor, Card]) -> bool:
    return before[0] is not now[0] or before[1] != now[1]


def changes(before: dict[str, tuple[Tensor, Card]], now: dict[str, tuple[Tensor, Card]]) -> Iterator[str]:
    """Yield a sentence for each tensor that is new or has changed; and which results were passed by."""
    arrived = False
    for name, (t, c) in now.items():
        if name not in before:
            yield f"{name} is new: {what(c)}."
            continue
        old_t, old = before[name]
        if old_t is not t:
            yield f"{name} is the name of another tensor now: {what(c)}."
            continue
        if old.value != c.value:
            yield f"{name} holds {c.value} now."
        if old[2:5] != c[2:5]:
            yield f"{name} is now {what(c)}."
        if old.grad != c.grad:
            arrived = arrived or c.grad != "None"
            yield f"{name}.grad is {c.grad} now."
    if arrived:
        passed = [name for name, (_, c) in now.items() if c.kind == PASSES and c.grad == "None"]
        if passed:
            yield f"{listed(passed)} kept nothing: {'a result passes' if len(passed) == 1 else 'results pass'} it on."


def what(c: Card) -> str:
    """Return a card's kind, in words."""
    if c.kind == PASSES:
        return f"a result, with {c.grad_fn} behind it"
    return "a leaf that takes notes" if c.kind == KEEPS else "a leaf that takes no notes"


def listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def one_line(source: str) -> str:
    return " ".join(line.strip() for line in source.splitlines())


# ---- as HTML


def cards_of(step: Step) -> str:
    """Return the cards, those first that are older."""
    shown = "".join(
        f"<div class='card {c.kind}{' changed' * (c.name in step.changed)}' role='listitem'>"
        f"<div class='name'><code>{html.escape(c.name)}</code> = <code>{html.escape(c.value)}</code>"
        f"{'<span class=mark>changed</span>' * (c.name in step.changed)}</div>"
        f"<dl>{''.join(f'<dt>{title}</dt><dd>{html.escape(value)}</dd>' for title, value in c.rows())}</dl></div>"
        for c in step.cards
    )
    return f"<div class='cards' role='list' aria-label='Tensors'>{shown}</div>"


def four_boxes(cards: tuple[Card, ...]) -> str:
    """Return the tensors by their two answers."""

    def box(is_leaf: bool, requires_grad: bool) -> str:
        names = [c.name for c in cards if (c.is_leaf, c.requires_grad) == (is_leaf, requires_grad)]
        return ", ".join(f"<code>{html.escape(name)}</code>" for name in names) or "none"

    rows = [[f"is_leaf {leaf}", box(leaf, True), box(leaf, False)] for leaf in (True, False)]
    return table(["", "requires_<wbr>grad True", "requires_<wbr>grad False"], rows, escape=False)


def table(titles: list[str], rows: list[list[str]], escape: bool = True) -> str:
    text = html.escape if escape else str
    head = "".join(f"<th scope='col'>{title}</th>" if title else "<td></td>" for title in titles)
    body = "".join(
        f"<tr><th scope='row'>{text(first)}</th>{''.join(f'<td>{text(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
