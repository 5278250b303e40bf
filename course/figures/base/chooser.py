"""Figures of boxes that are moved by more than sliders: fields, choices, boxes that can be clicked."""

import base64
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, NamedTuple


class Control(NamedTuple):
    """A field to type into, with texts to try; a choice between texts; or a slider."""

    kind: str  # "text", "choice", "range"
    name: str
    label: str
    texts: tuple[str, ...] = ()  # a slider's come with what is shown: there may be fewer


class Shown(NamedTuple):
    """The picture and the words of one setting."""

    pictures: list[str]  # SVGs, side by side where there is room
    words: str
    values: Mapping[str, Any]  # the setting, within what there is
    places: Mapping[str, list[str]] = {}  # by slider: what each of its places stands for
    clicks: tuple[dict[str, Any], ...] = ()  # for the number of a box: the values that it chooses
    wrong: bool = False


class Chooser:
    """Pictures that follow their controls.

    A subclass gives ``controls``, ``begin`` (what they stand at first), ``shown(**values)``, and ``stills``, the
    settings that a reader without a kernel sees, each under a title. ``text()``, ``pictures()`` and ``static()`` work
    without a notebook; in one, the figure displays itself.
    """

    controls: tuple[Control, ...] = ()
    begin: Mapping[str, Any] = {}
    stills: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    shown: Callable[..., Shown]

    def at(self, **values: Any) -> Shown:
        """Return what is shown where only some of the values are not those of the beginning."""
        return self.shown(**{**self.begin, **values})

    def text(self, **values: Any) -> str:
        """Return the pictures in words."""
        return self.at(**values).words

    def pictures(self, **values: Any) -> list[str]:
        """Return the pictures, as SVGs."""
        return self.at(**values).pictures

    def static(self) -> dict[str, str]:
        """Return the stills with their titles and words, as a notebook's output."""
        html, plain = [], []
        for title, values in self.stills:
            shown = self.at(**values)
            names = [title, *(f"{title}: what comes out" for _ in shown.pictures[1:])]
            html.append(f"<p><strong>{escape(title)}</strong></p>{images(shown.pictures, names)}")
            html.append(f"<p>{escape(shown.words)}</p>")
            plain.append(f"{title}. {shown.words}")
        return {"text/html": "".join(html), "text/plain": "\n".join(plain)}

    def widget(self) -> Any:
        """Return the controls, the pictures and their words, as a widget.  ImportError where anywidget is missing."""
        from course.figures.base.chooser_widget import ChooserWidget

        def traits(shown: Shown) -> dict[str, Any]:
            found = shown._asdict()
            return found | {"values": dict(shown.values), "places": dict(shown.places), "clicks": list(shown.clicks)}

        widget = ChooserWidget(controls=[control._asdict() for control in self.controls], **traits(self.at()))

        def follow(_: Any) -> None:
            with widget.hold_sync():  # the pictures and their words arrive together
                for name, value in traits(self.shown(**widget.values)).items():
                    widget.set_trait(name, value)

        widget.observe(follow, "values")
        return widget

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_()
        except ImportError:  # anywidget is not installed: the pictures are
            data, metadata = {}, {}
        return data | self.static(), metadata


def images(pictures: list[str], words: list[str]) -> str:
    """SVGs as images that stand side by side where there is room, each with its words."""
    tags = []
    for drawing, said in zip(pictures, map(escape, words), strict=True):
        data = base64.b64encode(drawing.encode()).decode("ascii")
        style = "max-width: 100%; display: inline-block; vertical-align: top; margin: 0 6px 6px 0"
        tags.append(f'<img alt="{said}" style="{style}" src="data:image/svg+xml;base64,{data}">')
    return "".join(tags)
