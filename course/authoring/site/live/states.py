"""What a figure shows for each of its settings: its widget is moved, as a reader would, until nothing new comes out."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any, NamedTuple

Values = Mapping[str, Any]
PICTURES = 50  # the most that Matplotlib draws for one figure: each takes a tenth of a second, and 10 kB
FOUND = 6000  # settings that are come upon, where fields keep what they held
SETTINGS = 2500  # the most of anything else
ROOMS = (420, 640)  # the widths for which a figure is laid out that asks for the page's
SHAPES = (
    "",
    *(", ".join(map(str, sizes)) for n in (1, 2) for sizes in product((1, 2, 3), repeat=n)),
    "4",
    "2, 1, 3",
)


class TooMany(Exception):
    """A figure has more settings than a page can know."""


class Kind(NamedTuple):
    """The way in which the figures of a front end are moved."""

    inputs: tuple[str, ...] = ()  # what the page sets; nothing: all that is ever shown is there from the beginning
    moves: Callable[[Values, Values], Iterator[Values]] = lambda now, begin: iter(())
    history: str = ""  # one of them, where it matters what it was before
    rooms: str = ""  # one of them that is a width: the page takes the nearest that is known
    known: str = "every setting"  # what of it the page knows


class States(NamedTuple):
    """The first state shown, and for each of the page's requests the one that follows."""

    begin: dict[str, Any]
    shown: list[dict[str, Any]]
    table: dict[str, int]


def _sliders(now: Values, begin: Values) -> Iterator[Values]:
    at = list(now["at"])
    for place, slider in enumerate(now["sliders"]):
        for position in range(len(slider["texts"])):
            yield {"at": [*at[:place], position, *at[place + 1 :]]}


def _chooser(now: Values, begin: Values) -> Iterator[Values]:
    for control in now["controls"]:
        name = control["name"]
        texts = {"text": control["texts"], "choice": range(len(control["texts"]))}.get(control["kind"])
        for value in range(len(now["places"][name])) if texts is None else texts:
            yield {"values": {**now["values"], name: value}}
    for chosen in now["clicks"]:
        yield {"values": {**now["values"], **chosen}}


def _shapes(now: Values, begin: Values) -> Iterator[Values]:
    yield from ({"room": room} for room in ROOMS)
    yield from ({name: shape} for name in "ab" for shape in SHAPES)
    yield from ({"element": element} for element in range(len(now["indices"])))


def _memory(now: Values, begin: Values) -> Iterator[Values]:
    steps, first = list(now["steps"]), list(begin["steps"])
    yield {"path": True, "pick": 0}
    yield from ({"pick": pick} for pick in range(now["last"] + 1 if now["path"] else len(now["boxes"])))
    yield from ({"path": False, "pick": pick} for pick in range(len(now["boxes"])))
    if steps:
        yield {"steps": steps[:-1]}
    yield {"steps": first}
    if steps == first[: len(steps)]:
        yield from ({"steps": [*steps, offer]} for offer in now["offers"] if offer)


# By the front end's class.
KINDS = {
    "StepperWidget": Kind(),
    "LeafBoardWidget": Kind(),
    "GraphWidget": Kind(),
    "ExplorerWidget": Kind(("at",), _sliders),
    "ChooserWidget": Kind(("values",), _chooser, known="every setting; of texts that are typed, those it offers"),
    "BroadcastingWidget": Kind(
        ("a", "b", "element", "room"), _shapes, rooms="room",
        known="shapes of up to two dimensions with sizes up to 3, and 4 and 2, 1, 3",
    ),
    "MemoryExplorerWidget": Kind(
        ("steps", "pick", "path"), _memory, history="steps",
        known="one step more, of those it offers; where there are steps, all of them taken back too",
    ),
}  # fmt: skip


def states(widget: Any) -> States:
    """Collect all that a widget shows.  TooMany; KeyError for a front end that has no row in KINDS."""
    kind = KINDS[type(widget).__name__]
    if kind.rooms:
        widget.set_trait(kind.rooms, ROOMS[-1])
    begin = traits(widget)
    dots = begin.get("image", b"").startswith(b"\x89PNG")
    most = PICTURES if dots else SETTINGS
    choices = [c["texts"] for c in begin.get("controls", ()) if c["kind"] == "choice"]
    choices += [slider["texts"] for slider in begin.get("sliders", ())] + list(begin.get("places", {}).values())
    if (count := prod(map(len, choices))) > most:
        raise TooMany(f"{count} {'pictures' if dots else 'settings'}")
    shown: list[dict[str, Any]] = []
    places: dict[str, int] = {}  # by the inputs that a state ends with
    table: dict[str, int] = {}

    def settle(request: Values, now: Values) -> int:
        """Return the number of the state that follows a request."""
        key = key_of(request, now, kind)
        if key not in table:
            moved = _moved(widget, request, now)
            ends = key_of(moved, moved, kind)
            place = table[key] = places.setdefault(ends, len(shown))
            if place == len(shown):
                shown.append(moved)
                table.setdefault(ends, place)
            if len(shown) > FOUND:
                raise TooMany(f"more than {FOUND} settings")
        return table[key]

    settle(begin, begin)
    for now in shown:  # it grows
        for move in kind.moves(now, begin):
            settle({**now, **move}, now)
    return States(begin, shown, table)


def traits(widget: Any) -> dict[str, Any]:
    """Return what a front end gets from its widget."""
    own = [
        name
        for name in widget.trait_names(sync=True)
        if name[0] != "_" and name not in ("layout", "tabbable", "tooltip")
    ]
    return {name: getattr(widget, name) for name in own}


def _moved(widget: Any, request: Values, now: Values) -> dict[str, Any]:
    """Return what is shown when a page that shows `now` asks for something."""
    widget._trait_values.update(now)  # as it was, without telling anybody
    with widget.hold_trait_notifications():
        for name, value in request.items():
            if now[name] != value:
                widget.set_trait(name, value)
    return traits(widget)


def key_of(request: Values, now: Values, kind: Kind) -> str:
    """By what the page finds a request; theme/live.js writes the same."""
    asked = [request[name] for name in kind.inputs]
    if kind.rooms:
        asked[kind.inputs.index(kind.rooms)] = nearest(request[kind.rooms])
    before = now[kind.history] if kind.history and now[kind.history] != request[kind.history] else None
    key = json.dumps([*asked, before], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return "".join(key.split())


def nearest(room: int) -> int:
    return max((known for known in ROOMS if known <= room), default=ROOMS[0])
