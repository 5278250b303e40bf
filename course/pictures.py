"""A picture and its words, in the one form that every reader gets.

JupyterLab shows a notebook that has not been run here without its SVG, inline or as an output of its own, and gives a
PNG output no text that a screen reader could read. An `<img>` with the picture in its address has neither trouble.
"""

import base64
import html
import io
from typing import Any

LEAST = 0.92  # how far a picture is made smaller in a narrow window: letters of 13 pixels keep 12, and the rest scrolls


def picture(image: bytes, words: str, width: int | None = None) -> dict[str, str]:
    """The output bundle of a PNG or an SVG (as UTF-8) with a description; a figure's widget view may join it."""
    kind = "png" if image.startswith(b"\x89PNG") else "svg+xml"
    data = base64.b64encode(image).decode("ascii")
    size = f' width="{width}"' if width else ""
    least = f"; min-width: {LEAST * width:.0f}px" if width else ""
    style = f"max-width: 100%{least}"
    tag = f'<img alt="{html.escape(words)}"{size} style="{style}" src="data:image/{kind};base64,{data}">'
    return {"text/html": tag, "text/plain": words}


def show(figure: Any, words: str) -> None:
    """Display a Matplotlib figure with a description of what it shows, and close it."""
    from IPython.display import display
    from matplotlib import pyplot

    drawn = io.BytesIO()
    # Twice the pixels of its size on the page, for screens that have them.
    figure.savefig(drawn, format="png", dpi=2 * figure.dpi, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)
    image = drawn.getvalue()
    display(picture(image, words, width=int.from_bytes(image[16:20], "big") // 2), raw=True)
