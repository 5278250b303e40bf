"""Which example comes in which batch: a data loader's choices, drawn for each of its passes."""

from typing import Any

import engine
from course.figures.base.explorer import Explorer
from course.figures.base.grid import Cell, Panel, svg
from engine.utils.data import DataLoader

BATCHES, LARGEST = 10, 8  # room for so many rows, each so long


class BatchExplorer(Explorer):
    """The batches that a DataLoader makes of 20 examples; the sliders are its arguments, and which pass it is."""

    def __init__(self) -> None:
        self.settings = {
            "batch_size": ([2, 3, 4, 5, 6, 7, 8], 6, "batch_size"),
            "shuffle": ([False, True], False, "shuffle"),
            "drop_last": ([False, True], False, "drop_last"),
            "epoch": ([1, 2, 3], 1, "epoch"),
        }
        self.stills = ({}, {"shuffle": True}, {"shuffle": True, "drop_last": True, "epoch": 2})
        self.size = (420 / 72, (70 + 28 * BATCHES) / 72)

    def batches(self, *, batch_size: int, shuffle: bool, drop_last: bool, epoch: int) -> list[list[int]]:
        """Return the examples' numbers, batch by batch, in the given pass over the data."""
        generator = engine.Generator().manual_seed(0)
        loader: Any = DataLoader(
            list(range(20)), batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, generator=generator
        )
        found: list[list[int]] = []
        for _ in range(epoch):
            found = [batch.tolist() for batch in loader]
        return found

    def words(self, *, batch_size: int, shuffle: bool, drop_last: bool, epoch: int) -> str:
        found = self.batches(batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, epoch=epoch)
        left = 20 - sum(map(len, found))
        order = "in a shuffled order" if shuffle else "in order"
        last = f"The last one holds {len(found[-1])}. " if len(found[-1]) < batch_size else ""
        dropped = f"{left} example{'s are' if left > 1 else ' is'} left out. " if left else ""
        first = ", ".join(map(str, found[0]))
        return (
            f"Epoch {epoch}, 20 examples {order}: {len(found)} batches of {batch_size}. {last}{dropped}"
            f"The first batch holds {first}."
        )

    def image(self, **values: Any) -> bytes:
        """Return the picture as an SVG."""
        values = self.start() | values
        found = self.batches(**values)
        wide = max(map(len, found))

        def cell(at: tuple[int, ...]) -> Cell:
            row = found[at[0]]
            return Cell(str(row[at[1]])) if at[1] < len(row) else Cell("", "pale")

        count = f"{len(found)} batches"
        panels = [Panel(f"epoch {values['epoch']}: each row is a batch", count, (len(found), wide), cell)]
        left = sorted(set(range(20)) - {number for batch in found for number in batch})
        if left:
            rows = -(-len(left) // 2)
            panels.append(Panel("left out", "", (rows, 2), lambda at: Cell(*gone(left, 2 * at[0] + at[1]))))
        width, height = (round(72 * side) for side in self.size)
        return svg(panels, width, height, most=10_000).encode()


def gone(left: list[int], place: int) -> tuple[str, str]:
    """Return the mark in a box for examples that are in no batch."""
    return (str(left[place]) if place < len(left) else ""), "pale"
