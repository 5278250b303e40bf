"""Which capture of a compiled function answers a call: the guards of one after the other are asked."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import engine
from course.figures.base.explorer import ACCENT, FAINT, INK, SECOND, Explorer
from engine.compiler.compiled import LIMIT, flattened

CALLS = 12
SIX, FACTOR, TENSOR, SIZES = "six calls, twice", "another factor", "a factor in a tensor", "another length"


class Call(NamedTuple):
    """One call: with what, the first guard of each capture asked that does not hold ("": all do), and what then ran."""

    given: str
    failing: tuple[str, ...]
    ran: int  # the number of the capture, counted from 1; 0: the function as it stands

    @property
    def new(self) -> bool:
        """Tell whether the capture that ran was made for this call."""
        return self.ran > len(self.failing)


def scaled(x: Any, factor: Any) -> Any:
    return (x * factor).tanh()


def arguments(program: str) -> Iterator[tuple[str, Any, Any]]:
    """Return what each call of a program is given: in words, and as it is."""
    three, five = engine.ones(3), engine.ones(5)
    if program == SIX:
        calls = [(three, 2.0), (three * 7, 2.0), (five, 2.0), (five.double(), 2.0), (three, 3.0), (three, 2.0)]
        for x, factor in calls * 2:
            contents = "ones" if x[0] == 1 else "sevens"
            yield f"{len(x)} {contents} in {str(x.dtype)[6:]}, factor {factor}", x, factor
    lengths = [3, 5]
    for step in range(1, CALLS + 1) if program != SIX else ():
        if program == SIZES:
            yield f"{lengths[-2]} ones, factor 2.0", engine.ones(lengths[-2]), 2.0
            lengths.append(sum(lengths[-2:]))
        elif program == FACTOR:
            yield f"3 ones, factor {step / 2}", three, step / 2
        else:
            yield f"3 ones, factor tensor({step / 2})", three, engine.tensor(step / 2)


@cache
def history(program: str) -> tuple[Call, ...]:
    """Return what the engine's compiler does in the twelve calls of a program."""
    compiled: Any = engine.compile(scaled)
    found = []
    for given, *args in arguments(program):
        leaves, structure = flattened(tuple(args), {})
        failing = []
        for entry in compiled.entries:
            same = entry.structure == structure
            failing.append(entry.guards.failing(leaves) if same else "other arguments")
            if not failing[-1]:
                break
        before = len(compiled.entries)
        compiled(*args)
        holds = bool(failing) and not failing[-1]
        ran = len(failing) if holds else len(compiled.entries) if len(compiled.entries) > before else 0
        found.append(Call(given, tuple(failing), ran))
    return tuple(found)


class CaptureExplorer(Explorer):
    """Twelve calls of a compiled function: which captures are asked, which of their guards fails, and what runs."""

    size = (8.0, 3.6)
    font = 10.0
    settings = {
        "program": ([SIX, FACTOR, TENSOR, SIZES], SIX, "what changes"),
        "call": (list(range(1, CALLS + 1)), 5, "call"),
    }
    stills = ({}, {"program": FACTOR, "call": 10}, {"program": SIZES, "call": 8})
    titles = ("Six calls, twice", "Another factor in each call", "Another length in each call")

    def words(self, *, program: str, call: int) -> str:
        now = history(program)[call - 1]
        failed = [why for why in now.failing if why]
        told = [f"{program[0].upper()}{program[1:]}, call {call}: {now.given}."]
        told += [f"Capture {n} does not hold: {why}." for n, why in enumerate(failed[:2], 1)]
        if len(failed) > 2:
            told.append(f"Nor do those from 3 to {len(failed)}." if len(failed) > 3 else "Nor does capture 3.")
        if now.new:
            told.append(f"So there is a new capture, number {now.ran}." if failed else "Capture 1 is made.")
        elif now.ran:
            told.append(f"Capture {now.ran} holds, and its code runs.")
        else:
            told.append(f"There are {LIMIT} captures already: the function runs as it stands.")
        return " ".join(told)

    def draw(self, axes: Any, *, program: str, call: int) -> None:
        calls = history(program)[:call]
        now = calls[-1]
        marks: dict[str, list[tuple[int, int]]] = {"asked, does not hold": [], "holds: its code runs": []}
        marks |= {"new": [], "runs as it stands": []}
        for at, made in enumerate(calls, 1):
            marks["asked, does not hold"] += [(at, n) for n, why in enumerate(made.failing, 1) if why]
            kind = "new" if made.new else "holds: its code runs" if made.ran else "runs as it stands"
            marks[kind].append((at, made.ran or LIMIT + 1))
        axes.axvspan(call - 0.45, call + 0.45, color=FAINT, alpha=0.2, linewidth=0)
        for (label, places), marker, color in zip(
            marks.items(), ("x", "o", "*", "s"), (ACCENT, SECOND, INK, FAINT), strict=True
        ):
            size = 9 if marker == "*" else 6
            xs, ys = [at for at, _ in places], [n for _, n in places]
            axes.plot(xs, ys, marker, color=color, markersize=size, label=label)
        side = {"fontsize": 8, "va": "center"}
        for n, why in enumerate(now.failing, 1):
            if why:
                axes.text(CALLS + 0.8, n, why, color=ACCENT, family="monospace", **side)
        said = f"new, for {now.given}" if now.new else "all guards hold" if now.ran else "no capture holds"
        axes.text(CALLS + 0.8, now.ran or LIMIT + 1, said, **side)
        axes.set(xlabel="call", ylabel="capture", xlim=(0.4, 2.35 * CALLS), ylim=(LIMIT + 1.6, -0.9))
        axes.set(xticks=range(1, CALLS + 1), yticks=range(1, LIMIT + 2), yticklabels=[*range(1, LIMIT + 1), "none"])
        axes.xaxis.set_label_coords(0.22, -0.12)
        axes.legend(loc="upper left", ncols=4, fontsize=8, handletextpad=0.1, columnspacing=1, frameon=False)
