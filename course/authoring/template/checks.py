"""Lesson $number, $title: the exercises' trials, oracles, usual mistakes and hints."""

from collections.abc import Callable, Iterator

import engine
from course.judging.words import Exercise, mistakes

# $n.1


def squares_trial(mean_of_squares: Callable) -> Iterator[tuple]:
    yield "x = [1., 2., 3.]", mean_of_squares, engine.tensor([1.0, 2.0, 3.0])
    yield "x = [[-1.5, 0.5], [2., 4.]]", mean_of_squares, engine.tensor([[-1.5, 0.5], [2.0, 4.0]])
    yield "", mean_of_squares, engine.tensor([0.5, -3.0, 2.5, 8.0])


def squares(x: engine.Tensor) -> engine.Tensor:
    return x.pow(2).sum() / x.numel()


EXERCISES = (
    Exercise(
        key="$number.1",
        points=1,
        answer=squares,
        trial=squares_trial,
        wrong=mistakes(
            lambda x: x.mean() ** 2,
            "You took the mean first, and squared that. Square each number first.",
            lambda x: (x * x).sum(),
            "This is the sum of the squares. Divide it by how many numbers there are.",
        ),
        understood="TODO The mean of the squares is not the square of the mean.",
        hints=(
            "TODO a question, or where in the lesson to look: which comes first, the square or the mean?",
            "TODO the idea in words: multiply x by itself, number by number, and take the mean of that.",
            "TODO nearly the code: return (...).mean()",
        ),
    ),
)
