"""LeafBoard: its cards against the tensors themselves and against PyTorch's, its words, and both of its forms."""

import re
import sys
import warnings

import pytest
from over_tables import over

from course.figures import LeafBoard
from course.figures.leaf_board.figure import KEEPS, NOTHING, PASSES

WIDGET = "application/vnd.jupyter.widget-view+json"
PROGRAM = """
x = engine.tensor(3.0)
w = engine.tensor(2.0, requires_grad=True)
b = engine.tensor(10.0) * 0.1
b.requires_grad_()
h = w * x
large = h > 1
y = h + b
y.backward()
"""


@pytest.fixture
def board():
    return LeafBoard(PROGRAM)


def test_every_card_is_what_pytorch_says_of_the_tensor(board):
    torch = pytest.importorskip("torch")
    names = {"engine": torch}
    for step in board.steps[1:]:
        exec(step.source, names)
        for card in step.cards:
            t = names[card.name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                grad = "None" if t.grad is None else f"{t.grad.item():g}"
            made = "None" if t.grad_fn is None else type(t.grad_fn).__name__
            wanted = (t.is_leaf, t.requires_grad, made, grad)
            assert (card.is_leaf, card.requires_grad, card.grad_fn, card.grad) == wanted, (step.source, card.name)
    assert len(board.steps[-1].cards) == sum(isinstance(t, torch.Tensor) for t in names.values())


def test_each_line_changes_what_it_should(board):
    changed = [sorted(step.changed) for step in board.steps]
    assert changed == [[], ["x"], ["w"], ["b"], ["b"], ["h"], ["large"], ["y"], ["b", "w"]]


def test_there_are_three_kinds_and_the_fourth_box_is_empty(board):
    kinds = {card.name: card.kind for card in board.steps[-1].cards}
    assert kinds == {"x": NOTHING, "w": KEEPS, "b": KEEPS, "h": PASSES, "large": NOTHING, "y": PASSES}
    boxes = re.findall(r"<td>(.*?)</td>", board.static()["text/html"].rpartition("The four boxes")[2])
    codes = ["<code>w</code>, <code>b</code>", "<code>x</code>, <code>large</code>", "<code>h</code>, <code>y</code>"]
    assert [box for box in boxes if box] == [*codes, "none"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (0, "Nothing has run yet, and there is no tensor."),
        (2, "Line 2, w = engine.tensor(2.0, requires_grad=True): w is new: a leaf that takes notes."),
        (4, "Line 4, b.requires_grad_(): b is now a leaf that takes notes."),
        (5, "Line 5, h = w * x: h is new: a result, with MulBackward0 behind it."),
        (
            8,
            "Line 8, y.backward(): w.grad is 3 now. b.grad is 1 now. h and y kept nothing: results pass it on.",
        ),
    ],
)
def test_the_words_tell_what_a_line_did(board, line, words):
    assert board.text(line) == words


@over(
    "program, said",
    [
        ("a = engine.ones(2)\na = a * 2", "a is the name of another tensor now: a leaf that takes no notes."),
        ("a = engine.ones(2)\na += 1", "a holds [2, 2] now."),
        ("a = engine.ones(2)\nb = 3", "No card has changed."),
        ("a = engine.tensor(1.0, requires_grad=True)\n(2 * a).backward()", "a.grad is 2 now."),
    ],
)
def test_what_else_can_happen_is_told(program, said):
    assert LeafBoard(program).steps[2].said == said


def test_a_result_that_was_asked_keeps_its_gradient():
    board = LeafBoard("a = engine.ones(2, requires_grad=True)\nh = 2 * a\nh.retain_grad()\nh.sum().backward()")
    assert [card.grad for card in board.steps[-1].cards] == ["[2, 2]", "[1, 1]"]


def test_an_error_ends_the_program_and_is_said():
    board = LeafBoard("a = engine.ones(2)\na.sum().backward()\nb = a")
    assert len(board) == 3
    assert board.steps[2].error.startswith("RuntimeError: element 0 of tensors does not require grad")
    assert board.text(2).endswith("does not have a grad_fn")


def test_a_block_is_one_line_and_the_board_runs_in_names_of_its_own():
    board = LeafBoard("""
    a = engine.ones(1, requires_grad=True)
    with engine.no_grad():
        quiet = a * 2
    """)
    assert board.text(2).startswith("Line 2, with engine.no_grad(): quiet = a * 2: quiet is new: a leaf that takes no")
    assert "quiet" not in globals()


def test_a_reader_without_a_kernel_gets_the_lines_the_cards_and_the_boxes(board, monkeypatch):
    static = board.static()
    titles = re.findall(r"<p><strong>(.*?)</strong></p>", static["text/html"])
    assert titles == ["The board of leaves, line by line", "The cards in the end", "The four boxes"]
    assert static["text/html"].count("<li>") == 8
    assert all(board.text(k) in static["text/plain"] for k in range(1, 9))
    assert "b: is_leaf True, requires_grad True, grad_fn None, .grad 1" in static["text/plain"]
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "course.figures.leaf_board.widget", raising=False)
    assert board._repr_mimebundle_() == (static, {})


def test_the_widget_has_a_board_and_words_for_every_line_and_for_the_beginning(board):
    pytest.importorskip("anywidget")
    assert board._repr_mimebundle_()[0][WIDGET]["model_id"]
    widget = board.widget()
    assert (len(widget.lines), len(widget.boards), len(widget.said)) == (8, 9, 9)
    assert widget.said == [board.text(k) for k in range(9)]
    assert [page.count("role='listitem'") for page in widget.boards] == [0, 1, 2, 3, 3, 4, 5, 6, 6]


def test_what_a_program_holds_is_no_html(board):
    page = LeafBoard("a = engine.ones(2) < 3").static()["text/html"]
    assert "<code>a = engine.ones(2) &lt; 3</code>" in page
