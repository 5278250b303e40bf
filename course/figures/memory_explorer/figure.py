"""MemoryExplorer: a tensor, its recipe (offset, shape, strides), and its row in memory, one below the other."""

from collections.abc import Sequence
from html import escape
from itertools import product
from math import prod
from typing import Any

import engine
from course.figures.base.explorer import Explorer
from course.figures.memory_explorer.drawing import drawn
from course.figures.memory_explorer.steps import MOST, Index, Looked, brackets, looked_at, number_at, place_sum
from course.pictures import picture


class MemoryExplorer(Explorer):
    """A tensor, given by name, and the steps taken from it: what each does to its recipe, and what to its memory."""

    def __init__(self, *steps: str, **named: engine.Tensor):
        if len(named) != 1:
            raise ValueError("one tensor is asked for, by its name: MemoryExplorer(table=table)")
        ((self.name, tensor),) = named.items()
        if tensor.ndim > 3 or not 0 < tensor.numel() <= MOST // 2:
            raise ValueError(f"a tensor of 1 to 3 dimensions and at most {MOST // 2} numbers is asked for")
        self.numbers: Any = tensor.detach().clone().contiguous()
        self.steps = steps
        self.begin = self._begun(steps)
        self.stills = (self.begin,) if steps else tuple(map(self._begun, ((), *self._shown())))

    def start(self) -> dict[str, Any]:
        return self.begin | {"room": 640}

    def _shown(self) -> tuple[tuple[str, ...], ...]:
        """Return the steps of the stills: a turn and a part, where the tensor has them."""
        return tuple((step,) for step in self.offered(()) if step in (".T", "[1:, 2:]"))

    def _begun(self, steps: Sequence[str]) -> dict[str, Any]:
        looked = self.looked(steps)
        pick = looked.last if looked.asked else looked.middling
        return {"steps": tuple(steps), "pick": pick, "path": bool(looked.asked)}

    def looked(self, steps: Sequence[str]) -> Looked:
        """Return what comes of these steps."""
        return looked_at(self.name, self.numbers, steps)

    def offered(self, steps: Sequence[str]) -> list[str]:
        """Return the steps of the buttons, for the tensor that there is after these; "" where one makes no sense."""
        shape = self.looked(steps).shape
        n, flat, table = prod(shape), len(shape) < 2, len(shape) == 2
        if flat:
            side = next(d for d in range(int(n**0.5), 0, -1) if n % d == 0)
            reshaped: Index = (side, n // side)
        else:
            reshaped = shape[::-1] if table else (shape[0], n // shape[0])
        return [
            ".T" if table else "",
            "" if flat else "[:, 1]",
            "" if flat else "[1:, 2:]",
            "" if flat else "[:, ::2]",
            f".reshape{_tuple(reshaped)}",
            "" if flat else f".permute{(1, 0) if table else (2, 0, 1)}",
            f".expand{_tuple((2, *shape))}" if len(shape) < 3 else "",
            ".flatten()",
            f".view({n})",
            ".contiguous()",
            ".clone()",
        ]

    # What is said

    def words(self, *, steps: Sequence[str], pick: int, path: bool, room: int) -> str:
        looked = self.looked(steps)
        pick = min(pick, looked.last)
        where = "a copy, with memory of its own" if looked.copied else f"a look into the memory of {self.name}"
        where = "the tensor to begin with" if looked.code == self.name else where
        place = looked.places[pick]
        said = [
            f"{looked.code}, {where}: offset {looked.offset}, shape {looked.shape}, strides {looked.strides}.",
            f"{_box(looked, pick)}: {place_sum(looked, pick)}. Place {place} holds {number_at(looked.memory, place)}.",
        ]
        others = self._others(looked, pick)
        if others and pick in looked.wrote:
            said.append(f"What was written there also shows in {_listed(others)}.")
        elif others:
            said.append(f"The same place shows in {_listed(others)}.")
        elif pick in looked.wrote and looked.copied:
            said.append(f"What was written there shows nowhere else: {self.name} keeps its own numbers.")
        if path:
            said.append(f"Read aloud so far, place by place: {', '.join(map(str, looked.places[: pick + 1]))}.")
        if looked.asked and path and pick == looked.last:
            led = looked.broken[1]
            said.append(
                f"Here the walk breaks: the steps so far lead on to place {led}, and the next box is at place "
                f"{looked.places[pick + 1]}."
            )
        if looked.error and not (looked.asked and path and pick < looked.last):
            said.append(looked.error)
        return " ".join(said)

    def _others(self, looked: Looked, pick: int) -> list[str]:
        """Return the other boxes with the number of this one, as they are written."""
        place = looked.places[pick]
        found = [] if looked.copied or looked.code == self.name else [self.name + brackets(self._of_first(place))]
        same = [k for k, p in enumerate(looked.places) if p == place and k != pick]
        return found + [_box(looked, k).lower() for k in same]

    def _of_first(self, place: int) -> Index:
        """Return the index at which the tensor begun with has a place of its memory."""
        return list(product(*map(range, self.numbers.shape)))[place]

    def followed(self, before: Sequence[str], looked: Looked, pick: int) -> int:
        """Return the box that shows after a step what the picked one showed before it, if there is one."""
        old = self.looked(before)
        place = old.places[pick]
        same = looked.copied == old.copied and place in looked.places
        return looked.places.index(place) if same and looked.code != old.code else looked.middling if not same else pick

    # What is drawn

    def image(self, **values: Any) -> bytes:
        """Return the picture as an SVG."""
        values = self.start() | values
        return drawn(self.name, self.looked(values["steps"]), values["pick"], values["path"], values["room"]).encode()

    def picture(self, **values: Any) -> dict[str, str]:
        """Return the picture and its words as a notebook's output."""
        return picture(self.image(**values), self.text(**values))

    def static(self) -> dict[str, str]:
        """Return the stills, each under its title, as a notebook's output."""
        titles = [self.title(still["steps"]) for still in self.stills]
        shown = [self.picture(**still) for still in self.stills]
        pages = [f"<p><strong>{escape(t)}</strong></p>{p['text/html']}" for t, p in zip(titles, shown, strict=True)]
        return {"text/html": "\n".join(pages), "text/plain": "\n".join(page["text/plain"] for page in shown)}

    def title(self, steps: Sequence[str]) -> str:
        """Say in a line what a still shows."""
        looked = self.looked(steps)
        if looked.asked:
            return f"{looked.code}{steps[-1]}: refused"
        whose = "a row of its own" if looked.copied else f"the row of {self.name}"
        return f"{looked.code}: offset {looked.offset}, strides {looked.strides}, {whose}"

    def widget(self) -> Any:
        """Buttons, fields, a slider, the picture and its words, as a widget.  ImportError without anywidget."""
        from course.figures.memory_explorer.widget import MemoryExplorerWidget

        def shown(steps: list[str], pick: int, path: bool, room: int) -> dict[str, Any]:
            looked = self.looked(steps)
            values = {"steps": steps, "pick": min(pick, looked.last), "path": path, "room": room}
            return values | {
                "picture": self.image(**values).decode(),
                "words": self.text(**values),
                "boxes": [brackets(index) for index in looked.indices],
                "last": looked.last,
                "offers": self.offered(steps),
                "wrong": bool(looked.error),
            }

        begin = self.start()
        widget = MemoryExplorerWidget(**shown(list(begin["steps"]), begin["pick"], begin["path"], begin["room"]))

        def follow(change: Any) -> None:
            pick, path = widget.pick, widget.path
            if change.name == "steps":
                looked = self.looked(widget.steps)
                path = bool(looked.asked)
                pick = 0 if path else min(looked.wrote, default=self.followed(change.old, looked, pick))
            with widget.hold_sync():  # the picture and its words arrive together
                for name, value in shown(widget.steps, pick, path, widget.room).items():
                    widget.set_trait(name, value)
                if change.name == "steps" and path:
                    widget.plays += 1

        widget.observe(follow, ["steps", "pick", "path", "room"])
        return widget


def _tuple(shape: Index) -> str:
    return f"({', '.join(map(str, shape))})"


def _box(looked: Looked, pick: int) -> str:
    return f"Box {brackets(looked.indices[pick])}".rstrip()


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
