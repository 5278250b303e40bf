"""Lesson 03, types and devices: the exercises' trials, oracles, usual mistakes and hints."""

from unittest import mock

import engine
from course.exercises import Exercise

# 3.2


def picture(*values):
    return engine.tensor(values, dtype=engine.uint8)


def brighten(pixels, by):
    return engine.tensor([[min(p + by, 255) for p in row] for row in pixels.tolist()], dtype=engine.uint8)


def brighten_trial(brighten):
    yield "pixels = [[0, 100, 200]], by = 20", brighten, picture([0, 100, 200]), 20
    yield "pixels = [[0, 200, 250]], by = 20", brighten, picture([0, 200, 250]), 20
    yield "pixels = [[1, 99], [250, 255]], by = 255", brighten, picture([1, 99], [250, 255]), 255


def brighten_more(brighten):
    yield "", brighten, picture([254, 255, 3], [128, 127, 0]), 1


# 3.3


def average(x):
    numbers = x.double().flatten().tolist()
    return engine.tensor(sum(numbers) / len(numbers), dtype=engine.float32)


def average_trial(average):
    yield "x = [1., 2., 6.], float32", average, engine.tensor([1.0, 2.0, 6.0])
    yield "x = [1, 2, 2], int64", average, engine.tensor([1, 2, 2])
    yield "x = [[True, False], [True, True]]", average, engine.tensor([[True, False], [True, True]])
    yield "x: 1000 times 100, float16", average, engine.full((1000,), 100.0, dtype=engine.float16)


def average_more(average):
    yield "", average, engine.full((30, 40), 200, dtype=engine.uint8)
    yield "", average, engine.full((9000,), 20.0, dtype=engine.float16)


# 3.4


def epsilon(dtype):
    """The next number after 1, by its bits."""
    one = engine.ones(1, dtype=dtype).array
    following = (one.view(f"u{one.itemsize}") + 1).astype(f"u{one.itemsize}").view(one.dtype)
    return float(following[0]) - 1.0


def refused(dtype=None):
    raise NotImplementedError("finfo is not to be asked here")


def without_finfo(epsilon, dtype):
    with mock.patch.object(engine, "finfo", refused):
        return epsilon(dtype)


def epsilon_trial(epsilon):
    yield "dtype = float16", without_finfo, epsilon, engine.float16
    yield "dtype = float32", without_finfo, epsilon, engine.float32


def epsilon_more(epsilon):
    yield "", without_finfo, epsilon, engine.bfloat16
    yield "", without_finfo, epsilon, engine.float64


def halved(dtype, one=lambda dtype: engine.tensor(1.0, dtype=dtype), back=lambda step: step * 2):
    begin, step = one(dtype), one(dtype)
    while begin + step > begin:
        step = step / 2
    return float(back(step))


# 3.5


def where(add, x, y):
    result = add(x, y)
    return str(result.device.type), result.cpu()


def add_trial(add):
    here = engine.tensor([1.0, 2.0])
    yield "both on cpu: the place and the numbers of add(x, y)", where, add, here, here * 10
    yield "x on sim, y on cpu: the place and the numbers", where, add, here.to("sim"), here * 10
    yield "x on cpu, y on sim: the place and the numbers", where, add, here, (here * 10).to("sim")


def add_more(add):
    here = engine.tensor([[1.0, 2.0]])
    yield "", where, add, here.to("sim"), (here * 3).to("sim")


def add_at_x(x, y):
    return (x.cpu() + y.cpu()).to(x.device)


EXERCISES = (
    Exercise(
        key="03.1",
        points=1,
        answer=("float32", "float16", "float32", "float16", "float32"),
        wrong=(
            (
                ("torch.float32", "torch.float16", "torch.float32", "torch.float16", "torch.float32"),
                'All is right. Leave out the "torch.": it is the same in each.',
            ),
            (
                ("float32", "float32", "float32", "float16", "float32"),
                "i + h: the kind decides first. Among the two, only h has a point, and it has 16 bits.",
            ),
            (
                ("float64", "float64", "float32", "float16", "float64"),
                "The 64 bits of a whole number do not count beside a type with a point.",
            ),
            (
                ("float32", "float16", "float32", "float32", "float32"),
                "h * 3.5: a plain number adapts to the tensor if it is of the same kind.",
            ),
            (
                ("float32", "float16", "float32", "float16", "int64"),
                "i / i: a division may give fractions. Which type does the engine take for these by itself?",
            ),
        ),
        hints=(
            "First the kind (with a point or without), then the number of bits.",
            "Whole numbers never decide how many bits a floating-point result has. Nor do plain numbers.",
            "Two of the five are float16, the others float32.",
        ),
    ),
    Exercise(
        key="03.2",
        points=2,
        answer=brighten,
        trial=brighten_trial,
        hidden=brighten_more,
        wrong=(
            (
                lambda pixels, by: (pixels + by).clamp(max=255),
                "What is above 255 begins again from 0 in uint8. Limit the sum while it is in a type with more room.",
            ),
            (
                lambda pixels, by: (pixels.to(engine.int64) + by).clamp(max=255),
                "The numbers are right. The result shall be uint8 again.",
            ),
            (
                lambda pixels, by: (pixels.float() + by).clamp(max=255),
                "The numbers are right, but they have got a point: the result shall be uint8 again.",
            ),
            (
                lambda pixels, by: (pixels.to(engine.int64) + by).clamp(max=256).to(engine.uint8),
                "The largest number of uint8 is 255, not 256.",
            ),
        ),
        hints=(
            "250 + 20 does not fit into uint8. In which type does it?",
            "Three steps: to a type with more room, add and limit, back to uint8.",
            "return (pixels.to(engine.int64) + by).clamp(max=...).to(...)",
        ),
    ),
    Exercise(
        key="03.3",
        points=1,
        answer=average,
        trial=average_trial,
        hidden=average_more,
        wrong=(
            (lambda x: x.mean(), "A mean has a point, and mean() refuses types without. Change the type first."),
            (
                lambda x: x.sum() / x.numel(),
                "Right for whole numbers. In float16 the sum is too large: change the type before you add up.",
            ),
            (
                lambda x: (x.sum() / x.numel()).float(),
                "In float16 the sum is too large before you change the type. Change it before you add up.",
            ),
            (lambda x: x.float().sum() / len(x), "len(x) is the number of rows alone. `numel()` counts all elements."),
            (lambda x: x.sum() // x.numel(), "`//` cuts off what stands behind the point."),
            (lambda x: x.float().sum(), "That is the sum. Divide it by the number of elements."),
            (lambda x: x.double().mean(), "The numbers are right, the type is not: float32 is asked for."),
        ),
        hints=(
            "Which type has room for all that may come, and is asked for anyway?",
            "Change the type of x first; after that, `mean` does the rest.",
            "return x.to(...).mean()",
        ),
    ),
    Exercise(
        key="03.4",
        points=2,
        answer=epsilon,
        trial=epsilon_trial,
        hidden=epsilon_more,
        tolerance=1e-9,
        wrong=(
            (
                lambda dtype: halved(dtype, back=lambda step: step),
                "You gave back the first step that is lost. The last one that counts is twice as long.",
            ),
            (
                lambda dtype: halved(dtype, one=lambda dtype: 1.0),
                "You computed with Python's numbers, which are float64. Use tensors of the type that is asked for.",
            ),
            (
                lambda dtype: halved(dtype, one=lambda dtype: engine.tensor(1.0)),
                "You computed in float32 whatever was asked for: `engine.tensor(1.0, dtype=dtype)`.",
            ),
            (lambda dtype: engine.finfo(dtype).eps, "`finfo` knows it. Here you are to find it by halving."),
        ),
        hints=(
            "Make the 1 and the step as tensors of the given dtype, so that the sums are rounded as that type rounds.",
            "Halve in a loop: as long as 1 + step / 2 is more than 1, half of the step still counts.",
            "one = engine.tensor(1.0, dtype=dtype)\n"
            "step = engine.tensor(1.0, dtype=dtype)\n"
            "while ...:\n"
            "    step = step / 2\n"
            "return step.item()",
        ),
    ),
    Exercise(
        key="03.5",
        points=1,
        answer=add_at_x,
        trial=add_trial,
        hidden=add_more,
        wrong=(
            (lambda x, y: x + y, "Tensors in different places do not mix. Move one of them: `.to(device)`."),
            (lambda x, y: x.to(y.device) + y, "The result is where y is. It shall be where x is: move the other one."),
            (lambda x, y: x.cpu() + y.cpu(), "The result is on the cpu, even if x is not."),
            (lambda x, y: x + y.to("sim"), "That works if x is on sim, and only then. `x.device` tells where x is."),
        ),
        hints=(
            "A tensor says where it is: `x.device`.",
            "`.to` takes a device. Which of the two has to move?",
            "return x + y.to(...)",
        ),
    ),
)
