"""Figures with sliders: a picture and its words for each setting, with a kernel and without one."""

import io
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from course.pictures import picture

INK, ACCENT, SECOND, FAINT = "#4477aa", "#cc3311", "#228833", "#888888"  # told apart by every kind of colour vision


class Explorer:
    """A picture that follows its sliders.

    A subclass gives ``settings`` ({name: (values, start, label)}), ``draw(axes, **values)``, and ``words(**values)``,
    the same in a sentence; ``stills`` are the settings that a reader without a kernel sees, under ``titles`` where
    there are any. ``picture()``, ``text()`` and ``static()`` work without a notebook; in one, the figure displays
    itself.
    """

    settings: Mapping[str, tuple[list[Any], Any, str]] = {}
    stills: tuple[Mapping[str, Any], ...] = ({},)
    titles: tuple[str, ...] = ()
    size = (6.0, 3.5)
    font = 13.0  # as large on the page, in pixels

    draw: Callable[..., None]
    words: Callable[..., str]

    def start(self) -> dict[str, Any]:
        """Return the setting that is shown first."""
        return {name: first for name, (_, first, _) in self.settings.items()}

    def text(self, **values: Any) -> str:
        """Return the picture in words."""
        return self.words(**self.start() | values)

    def image(self, **values: Any) -> bytes:
        """Return the picture as a PNG, at twice the resolution of the page."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        width, height = self.size
        # Margins in fixed inches: a layout engine would draw everything twice, and a move must take less than 0.1 s.
        left, bottom, gap = 0.75, 0.6, 0.12
        figure = Figure(figsize=self.size)
        box = left / width, bottom / height, 1 - (left + gap) / width, 1 - (bottom + gap) / height
        with rc_context({"font.size": self.font}):
            self.draw(figure.add_axes(box), **self.start() | values)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=144, metadata={"Software": None}, pil_kwargs={"compress_level": 3})
        return drawn.getvalue()

    def picture(self, **values: Any) -> dict[str, str]:
        """Return the picture and its words as a notebook's output."""
        return picture(self.image(**values), self.text(**values), width=self.width)

    def static(self) -> dict[str, str]:
        """Return the stills, as a notebook's output."""
        shown = [self.picture(**values) for values in self.stills]
        for still, title in zip(shown, self.titles, strict=False):
            still["text/html"] = f"<p><strong>{escape(title)}</strong></p>\n{still['text/html']}"
            still["text/plain"] = f"{title}. {still['text/plain']}"
        return {kind: "\n".join(still[kind] for still in shown) for kind in shown[0]}

    @property
    def width(self) -> int:
        """Of the picture on the page, in pixels."""
        return int(72 * self.size[0])

    def widget(self) -> Any:
        """Return the sliders, the picture and its words, as a widget.  ImportError where anywidget is not installed."""
        from course.figures.base.explorer_widget import ExplorerWidget

        def shown(at: list[int]) -> dict[str, Any]:
            values = {name: values[i] for (name, (values, _, _)), i in zip(self.settings.items(), at, strict=True)}
            return {"image": self.image(**values), "words": self.text(**values)}

        begin = [values.index(first) for values, first, _ in self.settings.values()]
        sliders = [
            {"label": label, "texts": [_short(v) for v in values]} for values, _, label in self.settings.values()
        ]
        widget = ExplorerWidget(sliders=sliders, width=self.width, at=begin, **shown(begin))

        def follow(change: Any) -> None:
            with widget.hold_sync():  # the picture and its words arrive together
                for name, value in shown(change.new).items():
                    widget.set_trait(name, value)

        widget.observe(follow, "at")
        return widget

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_()
        except ImportError:  # anywidget is not installed: the pictures are
            data, metadata = {}, {}
        return data | self.static(), metadata


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
