"""What the lessons claim of an experiment: it holds for other seeds, too."""

import re

import pytest

import engine
from course.notebooks import ROOT

SEEDS = range(5)


# 02, shapes


@pytest.mark.parametrize("seed", SEEDS)
def test_predictions_in_a_column_beside_answers_in_a_row_learn_the_mean_of_all_answers(seed):
    engine.manual_seed(seed)
    answers = 10 * engine.rand(6)
    predictions = engine.randn(6, 1, requires_grad=True)
    for _ in range(200):
        loss = ((predictions - answers) ** 2).mean()
        (slopes,) = engine.autograd.grad(loss, predictions)
        with engine.no_grad():
            predictions -= slopes
    assert engine.allclose(predictions.detach(), answers.mean().expand(6, 1), atol=1e-3)


def test_view_refuses_the_clone_of_what_it_refuses():
    table = engine.arange(12).reshape(3, 4)
    said = []
    for refusing in (table.T, table.T.clone()):
        with pytest.raises(RuntimeError) as error:
            refusing.view(12)
        said.append(str(error.value))
    assert said[0] == said[1]
    assert table.T.contiguous().view(12).tolist() == table.T.reshape(12).tolist()


def test_the_tensor_of_exercise_2_2_has_15_lines():
    text = (ROOT / "source/solutions/02_shapes.md").read_text(encoding="utf-8")
    (cell,) = re.findall(r"(?ms)^class Tiny:\n.*?(?=^```)", text)
    lines = [line.strip() for line in cell.splitlines()]
    assert len([line for line in lines if line and not line.startswith(("###", '"""'))]) == 15
