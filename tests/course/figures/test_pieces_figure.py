"""The pictures of cut memory: what a program of requests does, step by step, and the map of the simulated device."""

import re
from xml.etree import ElementTree

import pytest

import engine
from course.figures import MemoryMap, PiecesExplorer
from course.figures.pieces import GRAMMAR, LETTER, MIB, WIDTH
from engine import sim

SVG = "{http://www.w3.org/2000/svg}"
CUT = "a = 6, b = 6, c = 6, d = 9, e = 9, del a, del c, f = 12"


@pytest.fixture
def figure():
    return PiecesExplorer(CUT, "a = 8")


def said(figure, program, step=99):
    """What the last request did, without what is there now."""
    return figure.text(program=program, step=step).partition(" Allocated")[0]


def boxes(svg):
    """(width in MiB of 20, dashed or not) of the pieces drawn."""
    tree = ElementTree.fromstring(svg)
    return [
        (round(20 * float(box.get("width")) / WIDTH, 1), box.get("stroke-dasharray") is not None)
        for box in tree.iter(f"{SVG}rect")
        if box.get("height") == "30"
    ]


def test_a_request_takes_the_smallest_piece_that_is_large_enough(figure):
    program = "a = 8, b = 8, c = 8, del a, d = 6"
    assert said(figure, program) == "d = 6: there is a free piece of 8 MiB, which is cut."
    assert said(figure, program, 1) == "a = 8: no free piece is large enough: a segment of 20 MiB is reserved."
    assert figure.text(program=program, step=5).endswith(
        " Allocated 22 MiB, reserved 40 of 40 MiB; free pieces: 12, 4, 2 MiB."
    )


def test_what_is_free_in_pieces_does_not_help_and_what_lies_together_does(figure):
    assert said(figure, CUT) == "f = 12: out of memory. 0 MiB could still be reserved; the largest free piece has 8."
    assert "free pieces: 8, 6, 2 MiB" in figure.text(program=CUT, step=99)  # 16 MiB in all
    assert (
        said(figure, CUT.replace("del c", "del b"))
        == "f = 12: there is a free piece of 12 MiB, which is given as it is."
    )


def test_neighbours_join_and_a_segment_goes_back_when_nothing_of_it_is_in_use(figure):
    program = "a = 4, b = 8, del a, empty_cache(), del b, empty_cache()"
    assert said(figure, program, 4) == "empty_cache(): in every segment something is in use: none goes."
    assert said(figure, program, 5) == (
        "del b: its piece is free now, joins the free one beside it, and stays reserved."
    )
    assert said(figure, program) == "empty_cache(): 20 MiB go back to the device."
    assert said(figure, "b = 30, del b, c = 36").startswith("c = 36: 30 MiB that nobody uses are given back, then ")


def test_a_name_that_is_used_again_lets_its_first_piece_go(figure):
    assert "Allocated 6 MiB" in figure.text(program="a = 4, a = 6", step=2)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("x", GRAMMAR),
        ("a == 3", GRAMMAR),
        ("del q", "del q: nothing has that name."),
        ("a = 4, del a, del a", "del a: nothing has that name."),
        ("a = 0", "a = 0: between 0 and 1000 MiB can be asked for."),
    ],
)
def test_what_cannot_be_read_is_told(figure, program, words):
    shown = figure.at(program=program)
    assert (shown.words, shown.wrong) == (words, True)


def test_the_slider_has_a_place_for_each_request_and_stays_within(figure):
    shown = figure.at(program="a = 8", step=7)
    assert shown.places == {"step": ["0: nothing yet", "1: a = 8"]} and shown.values["step"] == 1


def test_each_piece_is_as_long_as_it_is_large_and_a_free_one_is_dashed(figure):
    (svg,) = figure.pictures(program=CUT, step=99)
    assert boxes(svg) == [(6, True), (6, False), (8, True), (9, False), (9, False), (2, True)]
    assert re.findall(r">([^<]+)</text>", svg) == [
        "6 free", "b 6", "8 free", "d 9", "e 9", "2", "in use", "free", "not reserved: 0 of 40 MiB",
    ]  # fmt: skip


def test_the_map_draws_the_device_as_it_is_or_as_it_was():
    sim.empty_cache()
    before = sim.memory_reserved()
    tensors = [engine.zeros(256, n, device="sim") for n in (4096, 8192)]  # 4 and 8 MiB
    full = sim.memory_snapshot()
    del tensors
    assert sum(size for size, free in boxes(MemoryMap(full).pictures()[0]) if not free) >= 12
    assert f"reserved {(before + 20 * MIB) / MIB:g}" in MemoryMap(full).text()
    shown = MemoryMap()._repr_mimebundle_()
    assert shown["text/plain"] in shown["text/html"] and f"of {sim.mem_get_info()[1] // MIB} MiB" in shown["text/plain"]
    sim.empty_cache()
    assert sim.memory_reserved() == before


def test_a_snapshot_of_pytorchs_can_be_drawn_and_small_pieces_together():
    blocks = [{"size": 512, "state": "active_allocated"}] * 8 + [{"size": 2 * MIB - 4096, "state": "inactive"}]
    drawn = MemoryMap([{"address": 1, "total_size": 2 * MIB, "blocks": blocks}])
    assert len(boxes(drawn.pictures()[0])) == 2
    assert drawn.text() == "Allocated 0 MiB, reserved 2 MiB; free pieces: 2 MiB."


def test_words_stay_within_their_pieces(figure):
    (svg,) = figure.pictures(program="a = 19, bc = 0.3, d = 0.7, del bc", step=99)
    tree = ElementTree.fromstring(svg)
    rects = [(float(r.get("x")), float(r.get("width"))) for r in tree.iter(f"{SVG}rect") if r.get("height") == "30"]
    for word in (t for t in tree.iter(f"{SVG}text") if t.get("text-anchor") == "middle"):
        middle, half = float(word.get("x")), LETTER * len(word.text) / 2
        assert any(x <= middle - half and middle + half <= x + wide for x, wide in rects)
