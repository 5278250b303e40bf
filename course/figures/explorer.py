"""What all figures with sliders share: a picture and its words for each setting, with a kernel and without one."""

import io
from collections.abc import Callable
from typing import Any

from course.pictures import picture

INK, ACCENT, SECOND, FAINT = "#4477aa", "#cc3311", "#228833", "#888888"  # told apart by every kind of colour vision


class Explorer:
    """A picture that follows its sliders.

    A subclass gives ``settings`` ({name: (values, start, label)}), ``draw(axes, **values)`` and ``words(**values)``,
    the same in a sentence. ``picture()`` and ``text()`` work without a notebook; in one, the figure displays itself.
    """

    settings: dict[str, tuple[list[Any], Any, str]] = {}
    size = (6.0, 3.4)

    draw: Callable[..., None]
    words: Callable[..., str]

    def start(self) -> dict[str, Any]:
        """The setting that is shown first."""
        return {name: first for name, (_, first, _) in self.settings.items()}

    def text(self, **values: Any) -> str:
        """What the picture shows, in words."""
        return self.words(**self.start() | values)

    def image(self, **values: Any) -> bytes:
        """The picture as a PNG, at twice the resolution of the page."""
        from matplotlib.figure import Figure

        width, height = self.size
        # Margins in fixed inches: a layout engine would draw everything twice, and a move must take less than 0.1 s.
        left, bottom, gap = 0.6, 0.5, 0.1
        figure = Figure(figsize=self.size)
        box = left / width, bottom / height, 1 - (left + gap) / width, 1 - (bottom + gap) / height
        self.draw(figure.add_axes(box), **self.start() | values)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=144, metadata={"Software": None}, pil_kwargs={"compress_level": 3})
        return drawn.getvalue()

    def picture(self, **values: Any) -> dict[str, str]:
        """The picture and its words as a notebook's output."""
        return picture(self.image(**values), self.text(**values), width=int(72 * self.size[0]))

    def widget(self) -> Any:
        """The sliders, the picture, and under it the words, which a screen reader speaks when they change."""
        import ipywidgets as widgets

        sliders = {
            name: widgets.SelectionSlider(
                options=[(_short(v), v) for v in values],
                value=first,
                description=label,
                style={"description_width": "initial"},
                layout={"width": f"{72 * self.size[0]}px"},
            )
            for name, (values, first, label) in self.settings.items()
        }
        view, words = widgets.HTML(), widgets.HTML()

        def show(_: Any = None) -> None:
            values = {name: slider.value for name, slider in sliders.items()}
            view.value = self.picture(**values)["text/html"]
            words.value = f'<div role="status" aria-live="polite">{self.text(**values)}</div>'

        for slider in sliders.values():
            slider.observe(show, "value")
        show()
        return widgets.VBox([*sliders.values(), view, words])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        try:
            return self.widget()._repr_mimebundle_() | self.picture()
        except ImportError:  # ipywidgets is not installed: the picture is
            return self.picture()


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
