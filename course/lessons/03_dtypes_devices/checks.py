"""Lesson 03, types and devices: the exercises' trials, oracles, usual mistakes and hints."""

import numpy as np

import engine
from course.judging.words import Exercise, calls, calls_itself, changed, loops, mistakes, properties, standing_in

# 3.1

LITTLE_ROOM = "The 64 bits of a whole number do not count beside a type with a point: the kind decides first."
SHORT = tuple(
    (short, "That is a short name. Give the type's own, with its number of bits.")
    for short in ("half", "float", "double", "long", "int")
)
ANY_TYPE = "First the kind (with a point or without); within one kind, the smallest type that holds both."

# 3.2


def picture(*values):
    return engine.tensor(values, dtype=engine.uint8)


def brighten(pixels, by):
    return engine.tensor([[min(p + by, 255) for p in row] for row in pixels.tolist()], dtype=engine.uint8)


def brighten_trial(brighten):
    yield "pixels = [[0, 100, 200]], by = 20", brighten, picture([0, 100, 200]), 20
    yield "pixels = [[0, 200, 250]], by = 20", brighten, picture([0, 200, 250]), 20
    yield "pixels = [[235, 240, 236]], by = 20", brighten, picture([235, 240, 236]), 20
    yield "pixels = [[128, 210, 254]], by = 1", brighten, picture([128, 210, 254]), 1
    yield "pixels = [[1, 99], [250, 255]], by = 255", brighten, picture([1, 99], [250, 255]), 255
    yield "", brighten, picture([254, 255, 3], [128, 127, 0]), 1
    yield "", brighten, picture([0, 128, 255]), 0


def wide(pixels, by, most=lambda sums: sums.clamp(max=255)):
    """Add in a type with room, limit the sums, and return them in uint8."""
    return most(pixels.to(engine.int64) + by).to(engine.uint8)


def set_where(chosen, value, make=lambda pixels, by: pixels + by):
    """Brightened, and where `chosen` of it is true set to a value."""

    def brightened(pixels, by):
        result = make(pixels, by)
        result[chosen(result)] = value
        return result.to(engine.uint8)

    return brightened


def in_wide(pixels, by):
    return pixels.to(engine.int64) + by


def brighten_in_place(pixels, by):
    pixels[pixels > 255 - by] = 255 - by
    pixels += by
    return pixels


# 3.3


def average(x):
    numbers = x.double().flatten().tolist()
    return engine.tensor(sum(numbers) / len(numbers), dtype=engine.float32)


def average_trial(average):
    yield "x = [1., 2., 6.], float32", average, engine.tensor([1.0, 2.0, 6.0])
    yield "x = [1, 2, 2], int64", average, engine.tensor([1, 2, 2])
    yield "x = [[True, False], [True, True]]", average, engine.tensor([[True, False], [True, True]])
    yield "x = [1.5, 2.5, -3.25], float32", average, engine.tensor([1.5, 2.5, -3.25])
    yield "x = [70000., 70003., 70001.5], float32", average, engine.tensor([70000.0, 70003.0, 70001.5])
    yield "x = [-1, 300, 70001], int64", average, engine.tensor([-1, 300, 70001])
    yield "x: 1000 times 100, float16", average, engine.full((1000,), 100.0, dtype=engine.float16)
    for short in (engine.bfloat16, engine.float16):  # neither has room for the digits of 4 / 3
        yield f"x = [1., 1., 2.], {str(short).partition('.')[2]}", average, engine.tensor([1.0, 1.0, 2.0], dtype=short)
    yield "", average, engine.full((30, 40), 200, dtype=engine.uint8)
    yield "", average, engine.full((9000,), 20.0, dtype=engine.float16)
    yield "", average, engine.tensor([[0.5, 3.0], [2.0, 0.25], [1.0, 1.0]], dtype=engine.bfloat16)
    yield "", average, engine.tensor([[-2.75, 0.5], [100000.0, 3.0]], dtype=engine.float64)
    yield "", average, engine.full((600,), 30000, dtype=engine.int32) * engine.tensor(100, dtype=engine.int32)


def mean_of(change):
    """Tell whether a result differs from the mean of the changed numbers, or that mean is the right one."""

    def holds(did):
        with np.errstate(all="ignore"):
            x = np.asarray(did.before["0"], dtype=np.float64)
            spoiled = float(np.mean(change(x)))
        same = np.isclose(float(did.result), spoiled, rtol=1e-5, equal_nan=True)
        return not same or np.isclose(spoiled, float(did.expected), rtol=1e-4)

    return holds


# 3.4


def epsilon(dtype):
    """Return the next number after 1, by its bits."""
    one = engine.ones(1, dtype=dtype).array
    following = (one.view(f"u{one.itemsize}") + 1).astype(f"u{one.itemsize}").view(one.dtype)
    return float(following[0]) - 1.0


def refused(dtype=None):
    raise NotImplementedError("finfo may not be used here")


def without_finfo(epsilon, dtype):
    with standing_in(epsilon, {"finfo": lambda own: refused}):
        return epsilon(dtype)


def epsilon_trial(epsilon):
    yield "dtype = float16", without_finfo, epsilon, engine.float16
    yield "dtype = float32", without_finfo, epsilon, engine.float32
    yield "", without_finfo, epsilon, engine.bfloat16
    yield "", without_finfo, epsilon, engine.float64


def halved(dtype, one=lambda dtype: engine.tensor(1.0, dtype=dtype), back=lambda step: step * 2):
    begin, step = one(dtype), one(dtype)
    while begin + step > begin:
        step = step / 2
    return float(back(step))


def divided_by_10(dtype):
    one, step = engine.tensor(1.0, dtype=dtype), 1.0
    while one + step / 10 > one:
        step = step / 10
    return step


def tenths_in_the_type(dtype):
    step = engine.tensor(1.0, dtype=dtype)
    while 1 + step / 10 > 1:
        step = step / 10
    return step.item()


def from_a_table(dtype):
    known = {engine.float16: 2.0**-10, engine.bfloat16: 2.0**-7, engine.float32: 2.0**-23, engine.float64: 2.0**-52}
    return known[dtype]


def tried(did):
    """Tell whether the text, where there is one, tries: the numbers of four types are soon known by heart."""
    return (
        not did.source
        or abs(did.result - did.expected) > 1e-9 * did.expected
        or loops(did.source)
        or calls_itself(did.source)
        or calls(did.source, "nextafter", "view", "log2")
    )


# 3.5


def where(add, x, y):
    result = add(x, y)
    return str(result.device.type), result.cpu()


def add_trial(add):
    here = engine.tensor([1.0, 2.0])
    whole = engine.tensor([1, 2])
    half = engine.tensor([0.5, 0.25])
    yield "both on cpu: the place and the numbers of add(x, y)", where, add, here, here * 10
    yield "x on cpu, y on sim: the place and the numbers", where, add, here, (here * 10).to("sim")
    yield "x on sim, y on cpu: the place and the numbers", where, add, here.to("sim"), here * 10
    yield "x = [1, 2] (int64) on cpu, y = [0.5, 0.25] on sim", where, add, whole, half.to("sim")
    yield "x = [0.5, 0.25] (float64) on sim, y = [1., 2.] on cpu", where, add, half.double().to("sim"), here
    yield "x = [1., 2.] on cpu, y = [0.5, 0.25] (float64) on sim", where, add, here, half.double().to("sim")
    yield "x = 3 (no dimensions) on cpu, y = [1., 2.] on sim", where, add, engine.tensor(3.0), here.to("sim")
    here = engine.tensor([[1.0, 2.0]])
    yield "", where, add, here.to("sim"), (here * 3).to("sim")
    yield "", where, add, here.half(), (here * 70000).to("sim")
    yield "", where, add, here.to("sim"), (here * 3).double()


def moved_if_refused(x, y):
    try:
        return x + y
    except RuntimeError:
        return x + y.to(x.device)


def add_at_x(x, y):
    return (x.cpu() + y.cpu()).to(x.device)


EXERCISES = (
    Exercise(
        key="03.1",
        points=1,
        answer=("float32", "float16", "float32", "float32", "float16", "float32"),
        wrong=mistakes(
            ("float32", "float32", "float32", "float32", "float32", "float32"),
            "Not all of them. The higher kind wins as it is: float16 stays float16 beside a whole number and beside"
            " a plain number.",
            ("float32", "float16", "float16", "float16", "float16", "float32"),
            "Where two types with a point meet, the result must hold the numbers of both. float16 cannot.",
        ),
        entries={
            1: (
                *SHORT,
                ("float64", LITTLE_ROOM),
                ("int64", "A sum with fractions cannot be a whole number: the higher kind wins."),
                ANY_TYPE,
            ),
            2: (
                *SHORT,
                ("float32", "Of the two, only h has a point, and it is float16. No float32 is in this sum."),
                ("float64", LITTLE_ROOM),
                ("int64", "The kind decides before the bits do, and a type with a point is the higher kind."),
                ANY_TYPE,
            ),
            3: (
                *SHORT,
                (
                    "float16",
                    "Of two types with a point, the result must hold the numbers of both. float16 is the narrower.",
                ),
                ("float64", "float32 holds all the numbers of float16 already."),
                ANY_TYPE,
            ),
            4: (
                *SHORT,
                ("float16", "float16 does not reach as far as bfloat16: which type holds the numbers of both?"),
                ("bfloat16", "bfloat16 has fewer digits than float16: which type holds the numbers of both?"),
                ANY_TYPE,
            ),
            5: (
                *SHORT,
                (
                    "float32",
                    "A plain number adapts to the tensor if it is not of a higher kind. 3.5 and h are of one kind.",
                ),
                (
                    "float64",
                    "A plain number adapts to the tensor if it is not of a higher kind. 3.5 and h are of one kind.",
                ),
                ANY_TYPE,
            ),
            6: (
                *SHORT,
                ("int64", "A division by / may give fractions. Which type does the engine take for these by itself?"),
                ("float64", "A division by / gives the type that the engine takes for fractions by itself."),
                "A division by / gives the type that the engine takes for fractions by itself.",
            ),
        },
        understood="The kind decides before the bits do; within one kind it is the smallest type that holds both.",
        hints=(
            "First the kind (with a point or without), then the type that holds the numbers of both.",
            "Whole numbers never decide how many bits a floating-point result has. Nor do plain numbers.",
            "Two of the six are float16, the others float32.",
        ),
    ),
    Exercise(
        key="03.2",
        points=2,
        answer=brighten,
        trial=brighten_trial,
        wrong=mistakes(
            lambda pixels, by: (pixels + by).clamp(max=255),
            "What is above 255 has started again from 0: uint8 itself never holds more than 255. Limit the sum "
            "while"
            " it is still in a type with more room, and only then go back to uint8.",
            lambda pixels, by: (pixels.to(engine.int64) + by).clamp(max=255),
            "The numbers are right. But the result must be uint8 again.",
            lambda pixels, by: (pixels.float() + by).clamp(max=255),
            "The numbers are right, but they have a point now. The result must be uint8 again.",
            lambda pixels, by: wide(pixels, by, lambda sums: sums.clamp(max=256)),
            "What is too bright has become 0, which is black. It should be 255. (256 does not fit into uint8, and "
            "becomes 0, too.)",
            set_where(lambda result: result > 256, 255, in_wide),
            "One number slips through: 256 is above 255 too, and becomes 0 in uint8.",
            set_where(lambda result: result >= 255, 0, in_wide),
            "You set what is too bright to 0, and that is black. White is 255.",
            set_where(lambda result: result >= 255, 0),
            "You add in uint8, where what is above 255 starts again from 0, and then set white to 0, which is black.",
            set_where(lambda result: result > 255, 254, in_wide),
            "White is 255, not 254.",
            lambda pixels, by: wide(pixels, by, lambda sums: sums.clamp(max=254)),
            "White is 255, not 254: the largest number still fits into uint8.",
            lambda pixels, by: (pixels.to(engine.int8) + by).clamp(max=255).to(engine.uint8),
            "int8 ends at 127, so 255 has no place in it. Take a type with more room than uint8, such as int64.",
            lambda pixels, by: pixels.clone() if pixels.max().item() + by > 255 else pixels + by,
            "Where one pixel would be too bright, you leave the whole picture as it was. Each pixel is brightened "
            "on"
            " its own.",
            lambda pixels, by: wide(pixels, by, lambda sums: sums.clamp(min=255)),
            "What was below 255 has become 255, and what was above it was left alone. It is the other way round.",
            lambda pixels, by: wide(pixels, by, lambda sums: engine.where(sums > 255, sums - by, sums)),
            "A pixel that would be too bright stays as it was. It becomes white: 255.",
            lambda pixels, by: engine.full_like(pixels, 255),
            "The whole picture is white. Only what would be above 255 becomes 255.",
            lambda pixels, by: wide(pixels, by, lambda sums: sums * 255 // sums.max()),
            "You made the whole picture darker, so that the brightest spot fits. Only what is above 255 changes.",
            lambda pixels, by: pixels + min(by, 255 - pixels.max().item()),
            "You brighten the whole picture by less, so that the brightest spot fits. Each pixel is on its own.",
            lambda pixels, by: wide(pixels, by, lambda sums: sums.clamp(max=by)),
            "The limit is white, which is 255, and not `by`.",
        ),
        properties=properties(
            brighten_in_place,
            lambda did: np.array_equal(did.before["0"], did.after["0"]),
            "The picture that was given is changed. Write into a tensor of your own.",
            lambda pixels, by: wide(pixels, by - by // 2),
            lambda did: (did.result == did.expected)[did.expected < 255].all(),
            "A pixel that does not become white is `by` brighter. Here it is not.",
            lambda pixels, by: wide(pixels, by, lambda sums: sums.clamp(max=250)),
            lambda did: not ((did.result < 255) & (did.expected == 255)).any(),
            "What would be brighter than white has not become white, which is 255.",
            lambda pixels, by: engine.where(pixels > 200, 255, wide(pixels, by)).to(engine.uint8),
            lambda did: not ((did.result == 255) & (did.expected < 255)).any(),
            "Some pixels have become white that would not be too bright. How bright one may have been depends on `by`.",
        ),
        understood=(
            "A type with little room never says that it is full: you make room before the sum, or keep the sum small."
        ),
        hints=(
            "250 + 20 does not fit into uint8. In which type does it?",
            "Three steps: go to a type with more room and add; set to 255 what is above it (a mask does it);"
            " back to uint8.",
            "brighter = pixels.to(engine.int64) + by\nbrighter[...] = 255\nreturn brighter.to(...)",
        ),
    ),
    Exercise(
        key="03.3",
        points=1,
        answer=average,
        trial=average_trial,
        wrong=mistakes(
            lambda x: x.mean(),
            "A mean has a point, and mean() refuses types without. Change the type first.",
            lambda x: x.sum() / x.numel(),
            "Right for whole numbers. In float16 the sum is too large: change the type before you add up.",
            lambda x: (x.sum() / x.numel()).float(),
            "In float16 the sum is too large before you change the type. Change it before you add up.",
            lambda x: (x if x.is_floating_point() else x.float()).mean().float(),
            "In 16 bits the mean is rounded to two or three digits before you change the type. Change it first, "
            "whatever the type was.",
            lambda x: x.mean(dtype=x.dtype).float(),
            "`dtype=x.dtype` asks for the type that x has already, which may have no point. Ask for float32.",
            lambda x: x.float().sum() / len(x),
            "len(x) is the number of rows alone. `numel()` counts all elements.",
            lambda x: x.sum().float() / x.numel(),
            "The sum comes first, in the type of x: float16 has no room for it, and 16 bits no digits. Change the "
            "type before you add up.",
            lambda x: x.float().mean() if x.dtype == engine.int64 else x.mean(),
            "int64 is not the only type without a point: truth values and uint8 have none, either. Change the type "
            "of every x.",
            lambda x: x.sum() // x.numel(),
            "`//` rounds down to a whole number.",
            lambda x: x.float().sum(),
            "That is the sum. Divide it by the number of elements.",
            lambda x: x.double().mean(),
            "The numbers are right, the type is not: float32 is asked for.",
            lambda x: x.half().mean(),
            "In float16 a sum or a number above 65504 is inf. float32 has the room, and is asked for.",
            lambda x: x.float().mean().item(),
            "The number is right, but it is a Python number: a tensor is asked for.",
            lambda x: x.float().median(),
            "That is the median, the number in the middle of them all.",
            lambda x: x.float().sum() / (x.numel() - 1),
            "You divide by one too few: by the number of elements, and not by one less.",
            lambda x: (x.float().min() + x.float().max()) / 2,
            "That is halfway between the smallest and the largest. The mean counts all of them.",
            lambda x: x.float().max(),
            "That is the largest of them, not their mean.",
            lambda x: engine.tensor(sum(x.tolist()) / len(x.tolist())),
            "Of a table, `tolist()` makes a list of lists, and `sum` cannot add these up. The tensor's own `mean`"
            " takes any shape.",
            lambda x: x.float().mean(-1),
            "mean(-1) takes the mean of each row. Leave out the -1: one number is asked for.",
            lambda x: x.float().mean(0),
            "mean(0) takes the mean of each column. Leave out the 0: one number is asked for.",
        ),
        properties=properties(
            lambda x: x.int().float().mean(),
            mean_of(np.trunc),
            "Going to whole numbers cut the fractions off: 1.5 became 1. Go to float32 directly.",
            lambda x: x.half().float().mean(),
            mean_of(lambda x: x.astype(np.float16)),
            "On the way through float16 you lose digits, and 70000 becomes inf. Go to float32 directly.",
            lambda x: x.to(engine.bfloat16).float().mean(),
            mean_of(lambda x: engine.tensor(x.tolist()).bfloat16().double().numpy()),
            "On the way through bfloat16 only two or three digits are left. Go to float32 directly.",
            lambda x: x.to(engine.uint8).float().mean(),
            mean_of(lambda x: np.trunc(x).astype(np.int64) % 256),
            "A type of 8 bits has no room for fractions or for 70000: it starts again from 0. Go to float32 directly.",
        ),
        understood="Choose the type before you compute: what a sum has lost, no later change of type brings back.",
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
        tolerance=1e-9,
        wrong=mistakes(
            lambda dtype: halved(dtype, back=lambda step: step),
            "That is half of it: the first step that is lost, and also the gap *below* 1. The last step up"
            " that counts is"
            " twice as long.",
            lambda dtype: 0.5,
            "You halve once: `if` asks a single time. `while` goes on for as long as the answer is yes.",
            lambda dtype: halved(dtype, back=lambda step: step * 4),
            "You stopped one step too early: half of what you returned still counts.",
            lambda dtype: halved(dtype, one=lambda dtype: engine.tensor(1.0)),
            "You computed in float32 whatever was asked for. Give the 1 *and* the step the type: `dtype=dtype`. "
            "(Where"
            " two tensors without dimensions meet, the wider type wins.)",
            lambda dtype: 2.0**-10,
            "That is right for float16 alone. How often you halve depends on the type: let the sum decide"
            " when to stop.",
            lambda dtype: -int(np.log2(epsilon(dtype))),
            "That is how often you halved. The step you end with is asked for.",
            lambda dtype: epsilon(dtype) + 1,
            "That is the next number after 1. You are asked for the step to it.",
            divided_by_10,
            "You divide by 10, and so you miss the gap itself, which is a power of two. Halve the step.",
            tenths_in_the_type,
            "You divide by 10, in the type itself, and the tenths are rounded on the way. Halve the step: that is "
            "exact.",
            changed(halved, "begin + step > begin", "step / 2 > 0", "step: step * 2", "step: step"),
            "That is the smallest number there is, the gap beside 0. Ask whether *1 plus* half of the step"
            " is more than 1; and make sure that the 1 stays 1 (after `one = step = ...`, `step /= 2` halves "
            "both).",
            lambda dtype: 1.0,
            "That is the step you begin with. Halve it in a loop.",
            lambda dtype: engine.finfo(dtype).eps,
            "`finfo` knows it. Find it here by halving.",
        ),
        properties=properties(
            lambda dtype: halved(dtype, one=lambda dtype: 1.0),
            lambda did: did.result != 2.0**-52 or did.expected == 2.0**-52,
            "You computed with Python's numbers, which are float64. Use tensors of the type that is asked for.",
            lambda dtype: 0.0,
            lambda did: did.result != 0,
            "The step has become 0. Is it the same tensor as your 1? `step = one` makes no second tensor,"
            " and `step /= 2`"
            " would then halve both.",
            from_a_table,
            tried,
            "The numbers are right, but they were known before. Let the engine's own sums find them: halve in a loop.",
        ),
        understood="`eps` is no secret of the type: it is the last step that a 1 still notices.",
        hints=(
            "Make the 1 and the step as tensors of the given dtype, so that the sums are rounded as that type rounds.",
            "Halve in a `while` loop: as long as 1 + step / 2 is more than 1, half of the step still counts.",
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
        wrong=mistakes(
            lambda x, y: x + y,
            "Tensors in different places do not mix. Move one of them: `.to(device)`.",
            lambda x, y: x.to(y.device) + y,
            "The result is where y is. It has to be where x is: move the other one.",
            lambda x, y: engine.tensor(x.numpy() + y.numpy()),
            "`.numpy()` works on the cpu alone. `.to(device)` moves a tensor as it is.",
            lambda x, y: engine.tensor(x.cpu().numpy() + y.cpu().numpy()),
            "Through NumPy the result ends on the cpu, even if x is not, and NumPy has rules of its own for types.",
            lambda x, y: x.cpu() + y.cpu(),
            "The result is on the cpu, even if x is not.",
            lambda x, y: x + y.to("sim"),
            "That works if x is on sim, and only then. `x.device` tells you where x is.",
            lambda x, y: x + y.cpu(),
            "That works if x is on the cpu, and only then. `x.device` tells you where x is.",
            lambda x, y: x.to("sim") + y.to("sim"),
            "Both meet on sim, and so the result is there, even if x is on the cpu.",
            lambda x, y: x + y.to(x),
            "You changed the type of y to that of x as well, and 0.5 became 0. (`.to(x)` does that too.)"
            " Change only the place.",
            lambda x, y: (x.float().cpu() + y.float().cpu()).to(x.device),
            "You changed the types too: float64 numbers lose digits. Change only the place, and leave the"
            " types to promotion.",
            moved_if_refused,
            "You move y only if the sum is refused. A tensor without dimensions on the cpu is not refused: the sum"
            " is made where y is.",
            lambda x, y: x + engine.tensor(y.tolist(), device=x.device),
            "A list of Python's numbers no longer knows their type: float64 became float32. `.to(device)` keeps it.",
        ),
        understood=(
            "The result is where its inputs are, and nothing moves by itself: you choose which of the two travels."
        ),
        hints=(
            "A tensor tells you where it is: `x.device`.",
            "`.to` takes a device. Which of the two has to move?",
            "return x + y.to(...)",
        ),
    ),
)
