"""Charts of the benchmarks' stored figures, each made from the table that it stands above."""

import io
import re
from typing import Any

TABLE = re.compile(r"<!-- figures: \w+ medians -->\n((?:\|.*\n)+)")
MARKS = {
    "engine": "o",
    "engine, compiled": "D",
    "JAX, jit": "^",
    "NumPy by hand": "s",
    "MyGrad": "x",
    "torch.compile": "+",
}
WORDS = (
    "*How long each takes beside PyTorch, whose own time is the line at 1: left of it is faster, and each step of the "
    "grid is ten times. The numbers are in the table.*"
)
_INK = "#010203"  # standing for the colour of the page's text, light or dark


def charted(text: str) -> str:
    """Put a chart above each table of medians."""
    return TABLE.sub(lambda match: f"{chart(match[1])}\n\n{WORDS}\n\n{match[0]}", text)


def ratios(table: str) -> dict[str, dict[str, float]]:
    """Read each framework's ratios to PyTorch's times, workload by workload, which a table has in brackets."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
    found: dict[str, dict[str, float]] = {}
    for workload, *cells in rows[2:]:
        for framework, cell in zip(rows[0][1:], cells, strict=True):
            if (ratio := re.search(r"\((\d+\.\d+)\)", cell)) and float(ratio[1]):
                found.setdefault(framework, {})[workload] = float(ratio[1])
    return found


def chart(table: str) -> str:
    """Draw a table's ratios as SVG: a row for each workload, a mark for each framework."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = {name: values for name, values in ratios(table).items() if name in MARKS}
    workloads = list(dict.fromkeys(workload for values in shown.values() for workload in values))
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "charts", "font.family": "sans-serif", "font.size": 11}
    style |= dict.fromkeys(["text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"], _INK)
    with mpl.rc_context(style):
        figure = Figure(figsize=(8, 1.2 + 0.32 * len(workloads)), layout="constrained")
        axes = figure.subplots()
        axes.set(xscale="log", yticks=range(len(workloads)), yticklabels=workloads, ylim=(len(workloads) - 0.5, -0.5))
        axes.grid(color=_INK, alpha=0.2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.axvline(1, color=_INK)
        for name, values in shown.items():
            places = [workloads.index(workload) for workload in values]
            axes.plot([*values.values()], places, MARKS[name], label=name, color=_INK, fillstyle="none", markersize=8)
        figure.legend(loc="outside upper left", ncols=3, frameon=False)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    svg = drawn.getvalue()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    best = ", ".join(f"{workload} {ratio:g}" for workload, ratio in shown.get("engine", {}).items())
    label = f"Times over PyTorch's. The engine: {best}."
    return re.sub(r"\n\s*\n", "\n", svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))
