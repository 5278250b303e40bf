"""Curves that grow while a network is trained."""

import io
from typing import Any

from course.figures.base.explorer import ACCENT, INK, SECOND
from course.pictures import picture


class LiveCurves:
    """Two panels of curves, losses and accuracies, drawn anew each time numbers are added.

    ``add(loss=..., test_loss=..., accuracy=...)``: one number a curve and epoch; what is called accuracy is drawn in a
    panel of its own, from 0 to 1.  In a notebook the picture appears at the first ``add`` and then follows.
    """

    def __init__(self) -> None:
        self.curves: dict[str, list[float]] = {}
        self.shown: Any = None

    def add(self, **values: float) -> None:
        for name, value in values.items():
            self.curves.setdefault(name, []).append(float(value.detach() if hasattr(value, "detach") else value))
        self.follow()

    def follow(self) -> None:
        """Show the picture, or show it anew, where there is a notebook."""
        try:
            from IPython import get_ipython
            from IPython.display import display
        except ImportError:
            return
        if get_ipython() is None:
            return
        if self.shown is None:
            self.shown = display(self.picture(), raw=True, display_id=True)
        else:
            self.shown.update(self.picture(), raw=True)

    def text(self) -> str:
        """Return the curves in words."""
        if not self.curves:
            return "No numbers yet."
        number = max(map(len, self.curves.values()))
        epochs = "1 epoch" if number == 1 else f"{number} epochs"
        each = (
            f"{name.replace('_', ' ')} from {values[0]:.2f} to {values[-1]:.2f}" for name, values in self.curves.items()
        )
        return f"{epochs}: {', '.join(each)}."

    def image(self) -> bytes:
        """Return the picture as a PNG."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.5, 2.6))
        for panel, wanted in ((1, False), (2, True)):
            axes = figure.add_axes((0.07 if panel == 1 else 0.57, 0.18, 0.4, 0.75))
            names = [name for name in self.curves if ("accuracy" in name) == wanted]
            for name, color in zip(names, (INK, ACCENT, SECOND), strict=False):
                values = self.curves[name]
                axes.plot(range(1, len(values) + 1), values, ".-", color=color, label=name.replace("_", " "))
            axes.set(xlabel="epoch", ylim=(0, 1.02) if wanted else (0, None))
            if names:
                axes.legend(loc="lower right" if wanted else "upper right")
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=144, metadata={"Software": None})
        return drawn.getvalue()

    def picture(self) -> dict[str, str]:
        """Return the picture and its words as a notebook's output."""
        return picture(self.image(), self.text(), width=540)
