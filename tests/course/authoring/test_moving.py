"""Figures that answer on the site: made of the lines they need, and gone through setting by setting."""

import base64
import io
import json
import re
import zlib

import numpy
import pytest

from course.authoring.site import lessons, moving
from course.authoring.site.live import cells, packed, states
from course.kernel.saving import ASLEEP

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("anywidget")
v4 = nbformat.v4


def shows(source, words):
    output = v4.new_output("execute_result", data={"text/html": f"{ASLEEP}<img>", "text/plain": words})
    return v4.new_code_cell(source, outputs=[output])


def test_a_figure_is_made_of_the_cells_that_its_names_come_from_and_no_others():
    before = ["n = 1", "m = 2", "k = n\nk", "%time n", "1 +"]
    assert cells.needed([*before, "print(k)"]) == ["n = 1", "k = n\nk", "print(k)"]
    assert cells.needed(["c = 1", 'f("""\nd = c\n""")']) == ["c = 1", 'f("""\nd = c\n""")']


def test_a_question_is_no_figure():
    assert cells.places([shows('predict("05.a")', "?"), shows("f()", "!"), v4.new_code_cell("1")]) == [1]


def test_a_figure_that_says_something_else_than_the_notebook_is_refused():
    source = 'from course.figures import LeafBoard\nLeafBoard("w = engine.ones(1)")'
    assert len(cells.figure([shows(source, _words())], 0)) == 2
    with pytest.raises(cells.Other, match="something else in the notebook"):
        cells.figure([shows(source, "another board")], 0)


def _words():
    from course.figures import LeafBoard

    return LeafBoard("w = engine.ones(1)").static()["text/plain"]


def collapse():
    import engine
    from course.figures import CollapseExplorer

    return CollapseExplorer("day", "time", days=engine.tensor([[1.0, 2.0], [3.0, 5.0]]))


def test_each_setting_of_a_chooser_is_known_and_shows_what_python_says():
    figure = collapse()
    found = states.states(figure.widget())
    assert len(found.shown) == 3 * (2 + 2 + 1)
    for state in found.shown:
        assert state["words"] == figure.text(**state["values"])
        assert state["pictures"] == figure.pictures(**state["values"])
    # Where there are fewer results than before, the request is answered with the last of them.
    asked = found.shown[0]["values"] | {"how": 0, "dim": 2, "place": 1}
    key = states.key_of({"values": asked}, found.shown[0], states.KINDS["ChooserWidget"])
    assert found.shown[found.table[key]]["values"]["place"] == 0


def test_views_remember_what_was_taken_before():
    import engine
    from course.figures import MemoryExplorer

    table = engine.arange(6).reshape(2, 3)
    widget = MemoryExplorer(table=table).widget()
    found = states.states(widget)
    kind = states.KINDS["MemoryExplorerWidget"]
    now = next(s for s in found.shown if not s["steps"] and s["pick"] == 4 and not s["path"])
    other = MemoryExplorer(table=table).widget()
    other.pick = 4
    other.steps = [".T"]
    shown = found.shown[found.table[states.key_of(now | {"steps": [".T"]}, now, kind)]]
    assert (shown["pick"], shown["words"]) == (other.pick, other.words)
    assert max(len(s["steps"]) for s in found.shown) == 1


def test_a_figure_of_too_many_pictures_is_not_drawn():
    from course.figures import CrossEntropyExplorer

    with pytest.raises(states.TooMany, match="729 pictures"):
        states.states(CrossEntropyExplorer().widget())


def test_a_script_holds_all_that_is_shown_with_long_texts_in_pieces():
    found = states.states(collapse().widget())
    text = packed.script("01_tensors-55.js", "ChooserWidget", found)
    name, kind, data = re.fullmatch(r'undertorch\.figure\("(.+)", "(.+)", "(.+)"\);\n', text).groups()
    data = json.loads(zlib.decompress(base64.b64decode(data)))
    assert (name, kind) == ("01_tensors-55.js", "ChooserWidget")
    assert data["table"] == found.table
    pictures = data["shown"][3]["pictures"]
    assert ["".join(data["pieces"][n] for n in one["pieces"]) for one in pictures] == found.shown[3]["pictures"]


def test_a_picture_with_a_palette_is_smaller_and_the_same_to_the_eye():
    from course.figures import CostExplorer

    image = pytest.importorskip("PIL.Image")
    before = CostExplorer().image()
    after = packed.smaller(before)
    assert len(after) < len(before) / 2
    one, other = (numpy.asarray(image.open(io.BytesIO(data)).convert("RGB"), int) for data in (before, after))
    assert abs(one - other).mean() < 1


def test_front_ends_are_scripts_that_need_no_module():
    widget = collapse().widget()
    assert "export" not in packed.front("ChooserWidget", widget)
    with pytest.raises(ValueError, match="does not end with"):
        packed.front("X", type("X", (), {"_esm": "function render() {}"})())


def test_the_page_of_a_figure_keeps_its_still_picture_and_the_table_tells_of_all(tmp_path):
    from course.authoring.site.links import Links

    nb = v4.new_notebook(cells=[shows("f()", "!")])
    figure = packed.Figure(0, "F", "05-0.js", "W", "", "script", 4, "every setting")
    moving.mark(nb, [figure])
    page = lessons.page(nb, "notebooks/05_graph.ipynb", Links(set(), tmp_path))
    html = page.cells[0].outputs[0].data["text/html"]
    assert html == f'<div class="moving" data-figure="../moving/05-0.js"><div>{lessons.STILL}<img></div></div>'
    still = packed.Figure(1, "G", "05-1.js", why="729 pictures")
    nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell("# 05 The graph: more")]), tmp_path / "05_graph.ipynb")
    told = moving.table({"05": tmp_path / "05_graph.ipynb"}, {"05": [figure, still]})
    assert [line.split(" | ")[1:] for line in told.splitlines()[-2:]] == [
        ["F", "moves", "every setting |"], ["G", "still", "729 pictures |"],
    ]  # fmt: skip
