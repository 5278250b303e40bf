"""FloatExplorer: a number as four types hold it, its bits with what each is worth, and the grid that it stands on."""

from typing import Any

from course.figures.floats.drawing import FIELDS, complaint, number_lines, whole
from course.figures.floats.model import (
    Stored,
    flipped,
    in_words,
    number,
    stored,
    title,
    told,
    worth,
    written_of,
)
from course.pictures import picture


class FloatExplorer:
    """A number to type, four types, and bits to flip: what each bit is worth, the neighbours, and how wide the grid is.

    ``picture()``, ``text()`` and ``static()`` work without a notebook; in one, the figure displays itself.
    """

    def __init__(self, number: str | float = "0.1", kind: str = "float16") -> None:
        self.begin = {"kind": kind, "written": str(number)}
        self.stills: tuple[dict[str, str], ...] = ({}, {"kind": "bfloat16"}, {"written": "70000"})

    def start(self) -> dict[str, str]:
        """Return the setting that is shown first."""
        return dict(self.begin)

    def text(self, **values: str) -> str:
        """Say in words what the picture shows."""
        setting = self.start() | values
        try:
            asked = number(setting["written"])
        except ValueError as error:
            return str(error)
        s = stored(asked, setting["kind"])
        fields = " ".join(f"{name.capitalize()} {said}." for name, said in zip(FIELDS, told(s), strict=True))
        return f"{title(setting['written'], s)}. {fields} {in_words(setting['written'], asked, s)}"

    def image(self, **values: str) -> bytes:
        """Draw title, bits, what they are worth, and the number lines, as an SVG."""
        setting = self.start() | values
        try:
            asked = number(setting["written"])
        except ValueError as error:
            return complaint(str(error)).encode()
        return whole(setting["written"], asked, stored(asked, setting["kind"])).encode()

    def picture(self, **values: str) -> dict[str, str]:
        """Return the picture and its words as a notebook's output."""
        return picture(self.image(**values), self.text(**values))

    def static(self) -> dict[str, str]:
        """Return the stills as a notebook's output."""
        shown = [self.picture(**values) for values in self.stills]
        return {kind: "\n".join(still[kind] for still in shown) for kind in shown[0]}

    def widget(self) -> Any:
        """Make the widget: field, types, bits, picture and its words. Raises ImportError without anywidget."""
        from course.figures.floats.widget import FloatWidget

        widget = FloatWidget(**self.shown(self.begin["kind"], self.begin["written"]))

        def update(values: dict[str, Any]) -> None:
            with widget.hold_sync():  # the picture and its words arrive together
                for name, value in values.items():
                    widget.set_trait(name, value)

        def typed(_: Any) -> None:
            if not any(deaf):
                update(self.shown(widget.kind, widget.written))

        deaf: list[bool] = []

        def pressed(_: Any, content: dict[str, int], __: Any) -> None:
            s = Stored(widget.kind, int(widget.bits, 2))
            new = s.next(content["by"]) if "by" in content else flipped(s, content["flip"])
            if new is not None:
                deaf.append(True)
                update(self.shown(widget.kind, written_of(new), new))
                deaf.pop()

        widget.observe(typed, ["kind", "written"])
        widget.on_msg(pressed)
        return widget

    def shown(self, kind: str, written: str, s: Stored | None = None) -> dict[str, Any]:
        """Return what the widget shows for a number in a type, or for a pattern; a complaint where it is no number."""
        values: dict[str, Any] = {"kind": kind, "written": written}
        try:
            asked = number(written)
        except ValueError as error:
            return values | {"words": str(error), "wrong": True}
        s = s or stored(asked, kind)
        return values | {
            "bits": s.bits,
            "worth": worth(s),
            "told": told(s),
            "picture": number_lines(written, asked, s),
            "words": in_words(written, asked, s),
            "wrong": False,
        }

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_()
        except ImportError:
            data, metadata = {}, {}
        return data | self.static(), metadata
