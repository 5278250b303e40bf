"""The figure of checkpointing's costs: its counts against a simulation, its words and picture against its counts."""

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import CostExplorer
from course.figures.costs import LAYERS

PARTS = CostExplorer().parts


def simulated(parts):
    """(most results kept at once, layers computed forward), layer by layer."""
    each, kept, computed = LAYERS // parts, set(), 0
    for part in range(parts):  # forward: only each part's input is kept
        kept.add(("input", part))
        computed += each
    most = len(kept)
    for part in reversed(range(parts)):  # backward: the part is computed again, and its inside kept until it is done
        inside = {("inside", part, i) for i in range(each)}
        computed += each
        most = max(most, len(kept | inside))
        kept.discard(("input", part))
    return most, computed


@over("parts", PARTS[1:])
def test_the_counts_are_those_of_a_simulation(parts):
    assert (CostExplorer().kept(parts), CostExplorer().computed(parts)) == simulated(parts)


def test_one_part_is_the_network_without_checkpoints_and_the_root_is_best():
    explorer = CostExplorer()
    assert (explorer.kept(1), explorer.computed(1)) == (LAYERS, LAYERS)
    assert min(PARTS, key=explorer.kept) == LAYERS**0.5


@over("parts", PARTS)
def test_words_and_picture_give_the_number_that_is_kept(parts):
    explorer, axes = CostExplorer(), Figure().add_subplot()
    explorer.draw(axes, parts=parts)
    kept = explorer.kept(parts)
    assert axes.texts[0].get_text() == str(kept)
    assert list(axes.lines[-1].get_ydata()) == [explorer.computed(n) for n in PARTS]
    assert (f"{kept} in all" if parts > 1 else f"{kept} results are kept") in explorer.text(parts=parts)
