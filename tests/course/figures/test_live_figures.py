"""Curves that grow, and the optimisers' walk: numbers by the formulas, words and pictures by the numbers."""

import pytest
from over_tables import over

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from course.figures import LiveCurves, SurfaceExplorer


def test_the_words_give_the_first_and_the_last_number_of_each_curve():
    live = LiveCurves()
    assert live.text() == "No numbers yet."
    for epoch in range(3):
        live.add(training_loss=2.0 - epoch / 2, test_accuracy=0.5 + epoch / 10)
    assert live.text() == "3 epochs: training loss from 2.00 to 1.00, test accuracy from 0.50 to 0.70."


def test_each_kind_of_curve_has_its_panel(monkeypatch):
    live, drawn = LiveCurves(), []
    live.add(loss=1.0, test_loss=2.0, accuracy=0.5)
    saved = Figure.savefig

    def keep(self, *args, **options):
        drawn.append(self)
        return saved(self, *args, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    assert live.image().startswith(b"\x89PNG")
    losses, accuracies = drawn[0].axes
    assert [line.get_label() for line in losses.lines] == ["loss", "test loss"]
    assert [line.get_label() for line in accuracies.lines] == ["accuracy"]


def test_in_a_notebook_one_picture_follows():
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from traitlets.config import Config

    InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))  # no file, no thread
    try:
        live = LiveCurves()
        with capture_output() as captured:
            live.add(loss=2.0)
            live.add(loss=1.0)
        shown = [output.data["text/plain"] for output in captured.outputs]
        assert shown == ["1 epoch: loss from 2.00 to 2.00.", "2 epochs: loss from 2.00 to 1.00."]
    finally:
        InteractiveShell.clear_instance()


def test_plain_steps_multiply_each_coordinate():
    """x by 1 - rate, y by 1 - 20 * rate, at each step."""
    positions = SurfaceExplorer().walk("SGD", 0.09, 5)
    for n, (x, y) in enumerate(positions):
        assert (x, y) == pytest.approx((-8 * 0.91**n, 1.5 * (-0.8) ** n), rel=1e-4)


@over("name", SurfaceExplorer().settings["optimizer"][0])
def test_every_optimiser_is_drawn_from_its_start_and_described_to_its_end(name):
    explorer, axes = SurfaceExplorer(), Figure().add_subplot()
    values = {"optimizer": name, "rate": 0.03, "steps": 10}
    explorer.draw(axes, **values)
    walk = [line for line in axes.lines if len(line.get_xdata()) == 11]
    x, y = explorer.walk(**values)[-1]
    assert [walk[0].get_xdata()[0], walk[0].get_xdata()[-1]] == pytest.approx([-8, x])
    assert f"({x:.3g}, {y:.3g})" in explorer.text(**values)
