"""The steps of a pass: a gradient on its way, the turn of a node, the line of a program that makes one."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine import viz


@dataclass(frozen=True)
class Flow:
    """A gradient on its way: its value as it prints and in short, and where it goes."""

    value: str
    short: str
    shape: tuple[int, ...]
    dtype: str
    to: str = ""  # the node that it goes to
    rule: str = ""  # the formula that gave it
    filled: str = ""  # the same with values

    @property
    def kind(self) -> str:
        return f"{viz.shape_text(self.shape)} {self.dtype}".removesuffix(" float32").rstrip()

    @property
    def after(self) -> str:
        """Shape and dtype, where they say anything."""
        kind = self.kind.removeprefix("scalar").strip()
        return f"  {kind}" if kind else ""

    @property
    def in_full(self) -> str:
        return f"{self.value}{self.after}" if self.shape else f"{self.short}{self.after}"


@dataclass(frozen=True)
class Step:
    """One node's turn in backward; step 0 is what ``backward()`` starts with."""

    number: int
    node: str
    made: str = ""  # the variable that holds the node's output
    rule: str = ""
    incoming: tuple[Flow, ...] = ()
    outgoing: tuple[Flow, ...] = ()
    waiting: dict[str, Flow] = field(default_factory=dict)  # what has arrived at nodes whose turn is still to come
    grads: dict[str, str] = field(default_factory=dict)  # .grad of the leaves after this step
    freed: tuple[str, ...] = ()
    line: int = 0  # of the program, from 1 on; 0 where there is none

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """Return what is shown of the step: headings, and lines below them."""
        if self.incoming:
            yield "Arrives", [f.in_full for f in self.incoming]
        yield "Rule", [self.rule]
        if self.outgoing:
            lines = []
            for f in self.outgoing:
                how = " = ".join(dict.fromkeys(filter(None, [f.rule, f.filled, f.short])))
                lines.append(f"to {f.to}: {how}{f.after}")
            yield "Passes on", lines
        if self.waiting:
            yield "Waiting", [f"{f.short} at {where}" for where, f in self.waiting.items()]
        yield ".grad so far", [f"{leaf}.grad = {grad}" for leaf, grad in self.grads.items()] or ["no leaves"]
        if self.freed:
            yield "Freed", [", ".join(self.freed)]

    @property
    def title(self) -> str:
        return f"{self.node}, which made {self.made}" if self.made else self.node

    @property
    def sentence(self) -> str:
        """The step in one sentence."""
        parts = [f"gets {' and '.join(f.short for f in self.incoming)}" if self.incoming else ""]
        parts += [f"passes {f.short} to {f.to}" for f in self.outgoing]
        if not self.outgoing and self.incoming:
            parts.append(", ".join(f"{leaf}.grad is {grad}" for leaf, grad in self.grads.items()))
        return f"{self.title}: {'; '.join(filter(None, parts))}."


@dataclass(frozen=True)
class Forward(Step):
    """One operation's turn on the way to the result; the first of these steps shows the leaves alone."""

    value: str = ""
    inputs: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    code: str = ""
    leaves: tuple[str, ...] = ()

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        if not self.number:
            yield "Leaves", list(self.leaves) or ["none"]
            return
        yield "Makes", [self.equation]
        yield "Its node", [f"{self.node}, which points back to {' and '.join(self.inputs) or 'nothing'}"]
        yield "Keeps", list(self.keeps) or ["nothing: its rule needs no numbers"]

    @property
    def equation(self) -> str:
        return " = ".join(filter(None, [self.made, self.value])) or "a result"

    @property
    def title(self) -> str:
        return (self.code or f"{self.node} is written") if self.number else "Before anything is computed"

    @property
    def sentence(self) -> str:
        if not self.number:
            return f"{self.title}: {', '.join(self.leaves) or 'there is no leaf'}."
        keeps = f" It keeps {', '.join(self.keeps)}." if self.keeps else ""
        node = f" The node is {self.node}." if self.code else ""
        return f"{self.title}: makes {self.equation}.{node}{keeps}"
