"""A picture and its words, in the one form that every reader gets.

JupyterLab shows a notebook that has not been run here without its SVG, inline or as an output of its own, and gives a
PNG output no text that a screen reader could read. An `<img>` with the picture in its address has neither trouble.
"""

import base64
import html
import io
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

LEAST = 0.92  # how far a picture is made smaller in a narrow window: letters of 13 pixels keep 12, and the rest scrolls


def picture(image: bytes, words: str, width: int | None = None) -> dict[str, str]:
    """Bundle a PNG or an SVG (as UTF-8) with its description, as an output; a figure's widget view may be added."""
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


def side_by_side(images: Any, titles: list[str]) -> None:
    """Display small grey pictures, up to eight in a row, each under its title; dark is large.

    Args:
        images: Numbers of shape (n, height, width).
        titles: What stands above each of the n pictures; in words, the whole row is described by them.
    """
    from matplotlib import pyplot

    wide = min(len(titles), 8)
    high = -(-len(titles) // wide)
    figure, places = pyplot.subplots(
        high, wide, figsize=(0.95 * wide, 1.25 * high), layout="constrained", squeeze=False
    )
    for place in places.flat:
        place.axis("off")
    for place, image, title in zip(places.flat, images, titles, strict=False):
        place.imshow(image, cmap="gray_r")
        place.set_title(title, fontsize=10)
    show(figure, f"{len(titles)} small pictures, with their titles: {'; '.join(titles)}.")


def rows_of_dots(panels: Mapping[str, Mapping[str, Sequence[float]]], one_scale: bool = False) -> None:
    """Display runs as dots: a panel for each measure, and in each the same rows, a dot for a run.

    Args:
        panels: {what is measured: {the name of a row: its numbers}}.
        one_scale: Whether the panels measure the same, so that lengths in one may be compared with those in another.
    """
    from matplotlib import pyplot

    names = list(next(iter(panels.values())))
    size = (6.5, 0.8 + 0.32 * len(names))
    figure, places = pyplot.subplots(
        1, len(panels), figsize=size, sharex=one_scale, sharey=True, layout="constrained", squeeze=False
    )
    said = []
    for place, (label, rows) in zip(places.flat, panels.items(), strict=True):
        for row, numbers in enumerate(rows.values()):
            place.plot(numbers, [row] * len(numbers), "o", alpha=0.6)
        place.set(xlabel=label, yticks=range(len(names)), yticklabels=names)
        place.grid(axis="y", alpha=0.3)
        spans = (f"{name} from {min(numbers):.3g} to {max(numbers):.3g}" for name, numbers in rows.items())
        said.append(f"{label}: {'; '.join(spans)}.")
    places.flat[0].set_ylim(len(names) - 0.5, -0.5)
    show(figure, f"A row of dots for each of {len(names)}. {' '.join(said)}")


def curves(lines: Mapping[str, Sequence[float]], label: str, across: str = "epoch") -> None:
    """Display some curves in one panel, counted from 1, and say where each begins, ends and is lowest.

    Args:
        lines: {the name of a curve: its numbers}.
        label: What the numbers are.
        across: What they are counted by.
    """
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.5, 2.6), layout="constrained")
    said = []
    for (name, numbers), style in zip(lines.items(), ("o-", "s--", "^:", "d-.") * len(lines), strict=False):
        axes.plot(range(1, len(numbers) + 1), numbers, style, markersize=4, label=name)
        least = min(range(len(numbers)), key=lambda i: numbers[i])
        said.append(f"{name} from {numbers[0]:.2g} to {numbers[-1]:.2g}, lowest ({numbers[least]:.2g}) at {least + 1}")
    axes.set(xlabel=across, ylabel=label, ylim=(0, None))
    axes.legend()
    show(figure, f"Curves of the {label} by {across}: {'; '.join(said)}.")


def shares(parts: Mapping[str, float], what: str) -> None:
    """Display parts of a whole as bars that begin where the one before ends.

    Args:
        parts: {the name of a part: how much it is}.
        what: What all parts together are.
    """
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.5, 0.9 + 0.3 * len(parts)), layout="constrained")
    whole, begin, said = sum(parts.values()), 0.0, []
    for row, (name, much) in enumerate(parts.items()):
        axes.barh(row, much, left=begin, height=0.7)
        begin += much
        place = (begin, "left") if begin < 0.8 * whole else (begin - much, "right")
        axes.text(place[0], row, f" {100 * much / whole:.0f} % ", va="center", ha=place[1])
        said.append(f"{name} {100 * much / whole:.0f} %")
    axes.set(xlabel=what, yticks=range(len(parts)), yticklabels=list(parts), ylim=(len(parts) - 0.4, -0.6))
    axes.set_xlim(0, 1.02 * whole)
    axes.grid(axis="x", alpha=0.3)
    show(figure, f"Bars one after the other, of {begin:.2g} {what}: {', '.join(said)}.")


def lines(across: Sequence[float], panels: Mapping[str, Sequence[float]]) -> None:
    """Display functions of one number, each in a panel of its own, and say where its line has a corner.

    Args:
        across: The places, in equal steps.
        panels: {the title of a panel: its numbers at these places}.
    """
    from matplotlib import pyplot

    figure, places = pyplot.subplots(1, len(panels), figsize=(7.5, 2.2), layout="constrained", squeeze=False)
    said = []
    for place, (title, numbers) in zip(places.flat, panels.items(), strict=True):
        place.axhline(0, color="#bbbbbb", linewidth=0.7)
        place.plot(across, numbers)
        place.set_title(title, fontsize=10)
        least = 0.01 * max(abs(b - a) for a, b in pairwise(numbers))
        turns = [abs(c - 2 * b + a) for a, b, c in zip(numbers, numbers[1:], numbers[2:], strict=False)]
        beside = zip([0.0, *turns], turns, [*turns[1:], 0.0], strict=False)
        corners = [across[i + 1] for i, (a, b, c) in enumerate(beside) if b > least and a < b >= c]
        where = ", ".join(f"{round(corner, 3) + 0.0:g}" for corner in corners)
        some = "a corner" if len(corners) == 1 else "corners"
        said.append(f"{title}: {f'a line with {some} at {where}' if corners else 'a straight line'}.")
    show(figure, f"Functions of one number. {' '.join(said)}")


def looks(phrase: str, weights: Mapping[str, Any], title: str) -> None:
    """Display who looks at whom in a phrase, a small table for each head, four in a row; dark is a large share.

    Args:
        phrase: Its letters are the rows, those who look, and the columns, those who are looked at.
        weights: {the name of a head: its shares, an array of (letters, letters)}.
        title: What stands above all of them.
    """
    import numpy as np
    from matplotlib import pyplot

    high, places = -(-len(weights) // 4), range(len(phrase))
    letters = [letter.replace(" ", "\N{OPEN BOX}") for letter in phrase]
    figure, panels = pyplot.subplots(high, 4, figsize=(9, 2.5 * high + 0.3), layout="constrained", squeeze=False)
    figure.suptitle(title, fontsize=11)
    said = []
    for panel, (name, shares) in zip(panels.flat, weights.items(), strict=False):
        panel.imshow(shares, cmap="gray_r", vmin=0, vmax=1)
        panel.set_title(name, fontsize=10)
        panel.set_xticks(places, letters, fontsize=9)
        panel.set_yticks(places, letters, fontsize=9)
        panel.tick_params(length=0)
        itself, before = (float(np.diagonal(shares, -back).mean()) for back in (0, 1))
        said.append(f"{name}: {100 * itself:.0f} % at itself, {100 * before:.0f} % at the letter before")
    for panel in panels.flat[len(weights) :]:
        panel.axis("off")
    show(figure, f'Who looks at whom in "{phrase}", {title}; on the mean, {"; ".join(said)}.')


def rates(plans: Mapping[str, Callable[[Any], Any]], lr: float, epochs: int) -> None:
    """Display the learning rate of each epoch, as schedulers set it that are made for an optimiser with rate `lr`."""
    import engine

    found: dict[str, list[float]] = {name: [] for name in plans}
    for name, plan in plans.items():
        optimizer = engine.optim.SGD([engine.zeros(1, requires_grad=True)], lr=lr)
        scheduler = plan(optimizer)
        for _ in range(epochs):
            found[name].append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
    curves(found, "learning rate")
