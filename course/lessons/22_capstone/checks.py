"""Lesson 22, the capstone: the exercises' trials, oracles, usual mistakes and hints."""

import functools
import itertools
import math

import numpy as np

import engine
from course.judging.words import Exercise, changed, mistakes
from engine import nn

# 22.1


def counted(letters, width, blocks, longest, texts):
    """(numbers of a block, of the whole model, questions in a batch, bytes of weights, gradients and Adam's state)."""
    block = nn.ModuleList(
        [nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)]
        + [nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]
    )
    rest = [nn.Embedding(letters, width), nn.Embedding(longest, width), nn.LayerNorm(width), nn.Linear(width, letters)]
    one, other = (sum(p.numel() for p in module.parameters()) for module in (block, nn.ModuleList(rest)))
    numbers = blocks * one + other
    return one, numbers, texts * longest, 4 * 4 * numbers


# 22.2


def pieces(text, begins, length):
    rows = [text[at : at + length + 1] for at in begins.tolist()]
    return engine.stack([row[:-1] for row in rows]), engine.stack([row[1:] for row in rows])


def pieces_trial(pieces):
    text = engine.tensor([5, 1, 4, 1, 2, 0, 3, 9, 7, 8, 6, 2])
    shown = "text = [5, 1, 4, 1, 2, 0, 3, 9, 7, 8, 6, 2], begins = [0, 4], length 3"
    yield shown, pieces, text, engine.tensor([0, 4]), 3
    yield "the same text, begins = [6], length 3", pieces, text.clone(), engine.tensor([6]), 3
    yield "the same text, begins = [2, 2, 1, 0], length 1", pieces, text.clone(), engine.tensor([2, 2, 1, 0]), 1
    text = engine.arange(100) * 7 % 31
    yield "", pieces, text, engine.tensor([90, 3, 17, 42]), 9


def one_after_the_other(text, begins, length):
    """Put the pieces one behind the other, wherever they should begin."""
    count = len(begins) * length
    return text[:count].reshape(-1, length), text[1 : count + 1].reshape(-1, length)


# 22.3


def chances(scores, temperature, top):
    kept, scores = scores.topk(top).indices.tolist(), scores.tolist()
    parts = [math.exp((s - max(scores)) / temperature) if n in kept else 0.0 for n, s in enumerate(scores)]
    return engine.tensor(parts) / sum(parts)


def chances_trial(chances):
    yield "scores = [0, 2, 1], temperature 1, top 3", chances, engine.tensor([0.0, 2.0, 1.0]), 1.0, 3
    yield "the same scores, temperature 0.5, top 3", chances, engine.tensor([0.0, 2.0, 1.0]), 0.5, 3
    yield "the same scores, temperature 1, top 2", chances, engine.tensor([0.0, 2.0, 1.0]), 1.0, 2
    yield "scores = [-3, -1, -2, -8], temperature 2, top 2", chances, engine.tensor([-3.0, -1.0, -2.0, -8.0]), 2.0, 2
    yield "scores = [1, 5, 3], temperature 0.8, top 1", chances, engine.tensor([1.0, 5.0, 3.0]), 0.8, 1
    engine.manual_seed(5)
    yield "", chances, engine.randn(12) * 3, 0.7, 5
    yield "", chances, engine.randn(4) - 50, 1.5, 3


def by_softmax(scores, temperature, top):
    scores = scores / temperature
    cut = engine.ones(len(scores)).bool()
    cut[scores.topk(top).indices] = False
    return scores.masked_fill(cut, -math.inf).softmax(0)


def shares_of_scores(scores, temperature, top):
    """Divide each score by their sum, without e to the score."""
    kept = (scores / temperature).masked_fill(chances(scores, temperature, top) == 0, 0.0)
    return kept / kept.sum()


# 22.4


def compare(first, second, seeds):
    a, b = ([run(seed) for seed in seeds] for run in (first, second))
    difference = sum(a) / len(a) - sum(b) / len(b)
    return difference, max(a) < min(b) or max(b) < min(a)


RUNS = {
    "apart": ((91.0, 92.0, 93.0), (88.0, 89.5, 90.0)),
    "apart, and one row is wide": ((91.0, 99.0, 92.0), (88.0, 89.5, 90.0)),
    "the second one is the better": ((80.0, 82.0, 81.0), (85.0, 84.0, 86.0)),
    "one lucky run": ((99.0, 85.0, 86.0), (87.0, 88.0, 86.5)),
    "they touch": ((5.0, 7.0, 6.0), (7.0, 8.0, 9.0)),
    "each seed's second run is better": ((80.0, 84.0, 88.0), (82.0, 86.0, 90.0)),
    "wide ones": ((60.0, 90.0, 75.0), (74.0, 76.0, 72.0)),
}


def compared(compare, name, seeds):
    """Return what is said, and the seeds that each of the two was run with."""
    asked = [], []

    def run(which):
        def one(seed):
            asked[which].append(seed)
            return RUNS[name][which][(seed - 1) % 3]

        return one

    found = compare(run(0), run(1), list(seeds))
    if found is None:
        return None
    if not isinstance(found, tuple | list) or len(found) != 2:
        return {"a pair": False}
    better, apart = (part.item() if isinstance(part, engine.Tensor) and part.numel() == 1 else part for part in found)
    first, second = (sorted(set(seeds)) for seeds in asked)  # who runs a seed twice gets the same twice
    return {"better by": better, "apart": apart, "seeds of the first": first, "seeds of the second": second}


def compare_trial(compare):
    for name, (first, second) in RUNS.items():
        yield f"{name}: {list(first)} and {list(second)}, seeds 1 to 3", compared, compare, name, (1, 2, 3)
    yield "of the last ones only seeds 1 and 2", compared, compare, "wide ones", (1, 2)
    yield "", compared, compare, "one lucky run", (2, 3)
    yield "", compared, compare, "apart", (3, 1)


RUN, BETTER = "([run(seed) for seed in seeds] for run in (first, second))", "sum(a) / len(a) - sum(b) / len(b)"
APART = "max(a) < min(b) or max(b) < min(a)"
LEFT = (
    (
        RUN,
        "([first(seed) for seed in seeds], [second(seeds[0]) for _ in seeds])",
        "The second network is run with one seed only, so its spread is hidden.",
    ),
    (
        "sum(a) / len(a)",
        "max(a)",
        "You take the best run of the first network. Even with two equal networks, one's best is above the other's "
        "mean.",
    ),
    ("max(a) < min(b) or ", "", "The rows are also apart if the *second* network is the better one."),
)
ALL_LEFT = (
    "All three mistakes are still there: the best run against a mean, one seed for all, and only one way for the "
    "rows to be apart."
)


def mistakes_left():
    """Yield each choice of the three mistakes left standing, and what is said of it."""
    for count in (1, 2, 3):
        for left in itertools.combinations(LEFT, count):
            yield changed(compare, *(part for old, new, _ in left for part in (old, new)))
            yield ALL_LEFT if count == 3 else "\n".join(says for _, _, says in left)


# 22.5


@functools.cache
def digits():
    """Return all pictures and their answers, in the order of the stretches."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return engine.tensor(found.images / 16, dtype=engine.float32).unsqueeze(1), engine.tensor(found.target)


def nearest(pictures, answers, others):
    """Be the oracle: the answer of the picture that is most alike."""
    known, asked = pictures.flatten(1), others.flatten(1)
    return answers[((known**2).sum(dim=1) - 2 * asked @ known.T).argmin(dim=1)].tolist()


def plainly(guesses):
    """Python's own numbers, whether they came in a list, a tensor or an array, or as numbers of one of these."""
    return [guess.tolist() if hasattr(guess, "tolist") else guess for guess in guesses]


def read_by(recipe, first, last, turned, many=120):
    """Return what a recipe answers for the pictures after those it learned; ``turned``: 9 is called 0, and so on."""
    pictures, answers = digits()
    answers = 9 - answers if turned else answers
    learned = slice(first, last)
    guesses = recipe(pictures[learned].clone(), answers[learned].clone(), pictures[last : last + many].clone())
    if guesses is None:
        return None
    if isinstance(guesses, nn.Module) or not hasattr(guesses, "__len__") or np.ndim(guesses) == 0:
        return {"kinds": ["network" if isinstance(guesses, nn.Module) else "one number"]}
    guesses = plainly(guesses)
    right = sum(g == a for g, a in zip(guesses, answers[last : last + many].tolist(), strict=False))
    return {
        "guesses": len(guesses),
        "kinds": sorted({f"list of {len(g)}" if isinstance(g, list) else type(g).__name__ for g in guesses}),
        "all of them digits": all(isinstance(g, int) and 0 <= g <= 9 for g in guesses),
        "at least 75 % right": right >= 0.75 * many,
    }


def recipe_trial(recipe):
    yield "learns from 516 pictures, and reads 120 by others", read_by, recipe, 0, 516, False
    yield "the same with other names: 9 is called 0, 8 is called 1, and so on", read_by, recipe, 0, 516, True
    yield "", read_by, recipe, 646, 1157, True


def behind_the_seal(recipe):
    """Count how many of the two last stretches a recipe reads that has learned from the twelve others."""
    pictures, answers = digits()
    engine.manual_seed(0)
    guesses = engine.tensor(plainly(recipe(pictures[:1545].clone(), answers[:1545].clone(), pictures[1545:].clone())))
    right = (guesses == answers[1545:]).float().mean().item()
    return (
        f"{100 * right:.0f} ± {100 * (right * (1 - right) / len(guesses)) ** 0.5:.0f} % of the sealed digits are right"
    )


EXERCISES = (
    Exercise(
        key="22.1",
        points=1,
        answer=counted(100, 32, 3, 128, 8),
        wrong=mistakes(
            (12288, 47360, 1024, 757760),
            "You have left out the biases, and the two numbers that a layer norm has for each column.",
            (12704, 23364, 1024, 373824),
            "There are three blocks, each with its own numbers. You have counted one.",
        ),
        entries={
            1: (
                (12640, "There are two layer norms in a block."),
                (12576, "A layer norm has a weight and a bias for each of the 32 columns, and there are two of them."),
                (12416, "A `Linear` has a bias for each of its results."),
                (
                    10592,
                    (
                        "`ask` makes three rows for each letter, query, key and value, so it has three times as many "
                        "numbers."
                    ),
                ),
                (11648, "`mixed` is missing, the layer after attention."),
                (8576, "`think` has two layers, one to four times the width and one back."),
                (50816, "Heads share the width among them: four heads have as many numbers as one."),
                (12288, "Biases and layer norms have numbers, too."),
                "`ask` has 32 * 96 weights and 96 biases; then `mixed`, `think` (two layers), and two layer norms.",
            ),
            2: (
                (38112, "These are the blocks alone."),
                (48708, "You have left out the layer norm at the end."),
                (45472, "You have left out `scores`, the last layer."),
                (45572, "You have left out the rows for letters."),
                (48672, "You have left out the biases of `scores`."),
                (44676, "You have left out the rows for places."),
                "Three blocks, rows for 100 letters and for 128 places, a layer norm, and a `Linear` for the scores.",
            ),
            3: (
                (8, "Each piece asks a question at every single letter."),
                (128, "That is one piece of eight."),
                (1016, "The last letter of a piece asks, too. Its answer stands after the piece."),
                (102400, "A question with a hundred possible answers is one question."),
                "Eight pieces, and a question at each of their letters.",
            ),
            4: (
                (
                    195088,
                    "That is four bytes a weight. The gradients take as much, and Adam keeps two numbers for each.",
                ),
                (390176, "Weights and gradients. Adam keeps two numbers for each weight besides."),
                (585264, "Adam keeps *two* numbers for each weight: a mean and a size."),
                "Four bytes for a number, and four numbers for each weight: itself, its slope, and two that Adam "
                "keeps.",
            ),
        },
        hints=(
            "Go through `__init__` of `Block` and of `Transformer`, line by line.",
            "`nn.Linear(a, b)` has a * b + b numbers, `nn.LayerNorm(a)` 2 * a, `nn.Embedding(n, a)` n * a.",
            "A block: 2 * 64 for the norms, 32 * 96 + 96, 32 * 32 + 32, and then the two layers of `think`.",
        ),
        understood="Training takes four times the memory of the weights, however few texts there are in a batch.",
    ),
    Exercise(
        key="22.2",
        points=1,
        answer=pieces,
        trial=pieces_trial,
        wrong=mistakes(
            changed(pieces, "row[1:]", "row[:-1]"),
            "The answer to each letter is the letter itself: a model learns at once to copy it.",
            lambda text, begins, length: tuple(pieces(text.roll(-n), begins, length)[0] for n in (0, -1)),
            "You give the letter *before* as the answer, and the model has already seen that.",
            lambda text, begins, length: tuple(pieces(text.roll(-n), begins, length)[0] for n in (0, 2)),
            "That is the letter after the next one.",
            lambda text, begins, length: (pieces(text, begins, length)[0], pieces(text, begins, length)[0] + 1),
            "You add 1 to the letters. Add 1 to the *places*, and look up which letters stand there.",
            changed(pieces, "row[1:]", "row[:-1].roll(-1)"),
            "All but the last answer in each row are right. The last one is the letter of the text that follows the "
            "piece.",
            lambda text, begins, length: tuple(begins[:, None] + engine.arange(length) + n for n in (0, 1)),
            "These are places in the text. Which letters stand there?",
            lambda text, begins, length: tuple(pieces(text.roll(-n), begins, length)[0] for n in (0, length)),
            "As answers you give the piece after this one. Each *letter* asks what comes right after it.",
            lambda text, begins, length: pieces(text, begins, length)[0],
            "These are the pieces. Return a pair: the pieces, and the answers.",
            changed(pieces, "row[1:]", "row[-1]"),
            "One answer for each piece. But every letter of it is a question: what comes next?",
            one_after_the_other,
            "Each of your pieces begins where the one before it ends. They should begin where `begins` says.",
            lambda *given: pieces(*given)[::-1],
            "You return them the other way round: first the pieces, then the answers.",
            lambda *given: tuple(part.T for part in pieces(*given)),
            "Each piece should be a row, not a column.",
        ),
        hints=(
            "What comes after letter `at` of the text? And after the letter `n` places further on?",
            "The answers are the same piece of the text, one letter further on.",
            "`where = begins[:, None] + engine.arange(length)` is a table of places. One of the two is `text[where]`.",
        ),
        understood="Nobody has to label a text: it is its own answer, one letter later.",
    ),
    Exercise(
        key="22.3",
        points=2,
        answer=chances,
        trial=chances_trial,
        wrong=mistakes(
            changed(by_softmax, "masked_fill(cut, -math.inf).softmax(0)", "softmax(0).masked_fill(cut, 0.0)"),
            "The chances do not add up to 1: cut before the softmax, as with a mask.",
            changed(by_softmax, "-math.inf", "0.0"),
            "A score of 0 is not a small score: $e^0$ is 1. A letter that must not be drawn needs minus infinity.",
            changed(by_softmax, " / temperature", ""),
            "The temperature has no effect: divide the scores by it.",
            changed(by_softmax, "/ temperature", "* temperature"),
            "A low temperature should make likely letters likelier: divide, do not multiply.",
            changed(by_softmax, " / temperature", "", "softmax(0)", "softmax(0) / temperature"),
            "You divide after the softmax, and the chances no longer add up to 1. Divide the scores.",
            lambda s, t, top: (s / t).softmax(0),
            "`top` has no effect: all letters can still be drawn.",
            lambda scores, temperature, top: engine.nn.functional.one_hot(scores.argmax(), len(scores)).float(),
            "Only the best one is left. The `top` best should be.",
            changed(by_softmax, "cut[scores.topk(top).indices]", "cut[:top]"),
            "You keep the first `top` letters of the alphabet. Keep those with the largest scores.",
            lambda s, t, top: (chances(s, t, top) > 0) / top,
            "All that remain get the same chance. A larger score should mean a larger chance.",
            shares_of_scores,
            "A score may be below 0, but a chance may not: `softmax` turns scores into chances.",
            lambda s, t, top: chances((s / t).softmax(0), 1, top),
            "You take the softmax twice. After the first one you have chances already.",
            lambda s, t, top: chances(s, t, top).log(),
            "These are logarithms: `softmax` gives the chances themselves, `log_softmax` their logarithms.",
            lambda s, t, top: (s.topk(top).values / t).softmax(0),
            "You give the chances of the `top` letters only. Give one for *each* letter, 0 for all the others.",
            lambda s, t, top: (s / t).masked_fill(s < top, -math.inf).softmax(0),
            "`top` is how many letters remain. You use it as the score that they need.",
            lambda s, t, top: chances(s, t, top - 1),
            "One letter too few is left: the smallest of the `top` scores should remain, too.",
            lambda s, t, top: engine.where(chances(-s, t, top) > 0, s / t, -math.inf).softmax(0),
            "You keep the letters with the *smallest* scores.",
            lambda s, t, top: chances(s, t, len(s) - top + 1),
            "You keep the wrong number of letters: those with the `top` *largest* scores remain.",
        ),
        hints=(
            "What did lesson 21 do with a word that must not be seen?",
            "Divide; put minus infinity where a score is not among the `top` largest; then the softmax.",
            "`scores.topk(top).values[-1]` is the smallest score that remains.",
        ),
        understood="The model only gives scores. Whoever draws from them decides how daring the text is.",
    ),
    Exercise(
        key="22.4",
        points=2,
        answer=compare,
        trial=compare_trial,
        wrong=mistakes(
            *mistakes_left(),
            lambda first, second, seeds: compare(first, second, seeds)[0],
            "Return a pair: by how much the first one is better, and whether the rows are apart.",
            changed(compare, APART, "True"),
            "You call rows apart that overlap. Does the *worst* run of one beat the *best* one of the other?",
            changed(compare, APART, "difference != 0"),
            "Two means are hardly ever equal. Do the *rows* overlap?",
            changed(compare, APART, "difference > 0"),
            "A larger mean does not make the rows apart: look at the worst and the best runs.",
            changed(compare, APART, "abs(difference) > max(max(a) - min(a), max(b) - min(b))"),
            "You compare the difference of the means with the spread. But rows can be apart even if one of them is "
            "wide: does the *worst* run of one beat the *best* one of the other?",
            changed(compare, APART, "max(a) <= min(b) or max(b) <= min(a)"),
            "Two rows that touch are not apart.",
            changed(compare, APART, "len({x > y for x, y in zip(a, b)}) == 1"),
            "You compare seed by seed. Rows are apart if the worst run of one beats the *best* one of the other.",
            changed(compare, APART, "not set(a) & set(b)"),
            "Rows can overlap even if no two numbers are equal: compare the worst runs with the best ones.",
            changed(compare, APART, "max(a) < min(b)"),
            "Now the rows are apart only if the second network is the better one. It counts either way.",
            changed(compare, APART, "max(a) < min(b) and max(b) < min(a)"),
            "Both can never hold at once: it takes one *or* the other.",
            changed(compare, APART, f"not ({APART})"),
            "You say whether the rows overlap. Say whether they do *not*.",
            changed(compare, BETTER, "max(a) - max(b)"),
            "Best against best: one lucky run decides. Compare the means.",
            changed(compare, BETTER, "min(a) - min(b)"),
            "Worst against worst: one unlucky run decides. Compare the means.",
            changed(compare, BETTER, "min(a) - sum(b) / len(b)"),
            "You compare the worst run of one with the mean of the other. Use the same measure for both.",
            changed(compare, BETTER, "sorted(a)[len(a) // 2] - sorted(b)[len(b) // 2]"),
            "That is one run of each, the one in the middle. Take the mean of all.",
            changed(compare, BETTER, "float(np.median(a) - np.median(b))"),
            "That is the run in the middle (the median). Take the mean.",
            changed(compare, BETTER, "sum(a) - sum(b)"),
            "These are the sums. A mean is the sum divided by how many there are.",
            changed(compare, "return difference", "return abs(difference)"),
            "The sign is lost: a number below 0 should say that the first network is worse.",
            changed(compare, "return difference", "return -difference"),
            "The sign is the wrong way round: a number above 0 should say that the first network is better.",
            changed(compare, "return difference", "return difference / (sum(b) / len(b))"),
            "You return a ratio. Leave the difference as it is, in percent of the pictures.",
            changed(compare, BETTER, "sum(a) // len(a) - sum(b) // len(b)"),
            "What comes after the point is lost, by `//` or by rounding. Divide with `/`, and do not round.",
            changed(compare, "run(seed)", "run(seeds[0])"),
            "Now each network is run with one seed only, and nobody sees how much of the result is chance.",
            changed(compare, RUN, "([first(seeds[0]) for _ in seeds], [second(seed) for seed in seeds])"),
            "Now it is the first network that is run with one seed only.",
            changed(compare, RUN, "([first(seed) for seed in seeds], [second(seed + 1) for seed in seeds])"),
            "The second network is run with different seeds. Give both the same ones.",
            changed(compare, "in seeds", "in range(len(seeds))"),
            "You count from 0. Run both with the seeds in `seeds`.",
        ),
        hints=(
            "Is the second network treated in the same way as the first?",
            "The mean for both; every seed for both; and two ways in which rows can be apart.",
            "`max(a) < min(b)` is one of the two ways.",
        ),
        understood="In a fair comparison, whatever is done for one network is done for the other, and all runs count.",
    ),
    Exercise(
        key="22.5",
        points=2,
        answer=nearest,
        trial=recipe_trial,
        wrong=mistakes(
            lambda pictures, answers, others: [engine.bincount(answers).argmax().item()] * len(others),
            "That is as good as guessing. Has it learned from the answers, with all its parameters?",
            lambda pictures, answers, others: nearest(*digits(), others),
            "Your recipe knows these pictures from somewhere else: when the digits get other names, it is wrong. "
            "Learn from the answers that it is given.",
            lambda *given: nn.functional.one_hot(engine.tensor(nearest(*given)), 10).float().tolist(),
            "These are ten scores for each picture. Which digit has the largest?",
            lambda pictures, answers, others: nearest(pictures, answers, pictures),
            "You read the pictures that you have learned from. Read `others`.",
            lambda *given: [float(g) for g in nearest(*given)],
            "These are floats. Give whole numbers: `argmax` does, as long as nothing is computed with them.",
            lambda *given: [str(g) for g in nearest(*given)],
            "These are strings, '7' for 7. Return numbers.",
            lambda *given: [0.5] * len(nearest(*given)),
            "Return a whole number from 0 to 9 for each picture, its digit: `argmax` says *which* score is largest.",
            lambda *given: [[g] for g in nearest(*given)],
            "Each digit is in a list of its own. Return one long list (without `keepdim`, or flattened).",
            lambda *given: nearest(*given)[:-1],
            "One picture is left out. Return a digit for each of `others`.",
            lambda *given: [*range(10, 20)],
            "Ten numbers, whichever picture has most of each digit? `argmax(dim=1)` goes along the ten scores.",
            lambda *given: nn.Identity(),
            "You return the network. Return what it reads in `others`.",
            lambda *given: 0.5,
            "That is a single number. Return a digit for each of the others.",
            lambda pictures, answers, others: [g + 1 for g in nearest(pictures, answers, others)],
            "There are tens among your digits. Do you count from 1?",
        ),
        hints=(
            "It is the lesson's `train`, and then one line that reads.",
            "Make a network and an optimizer in it; train for some epochs; then `network(others).argmax(dim=1)`.",
            "The lesson's `convolutional` and `F.pad(..., (1, 1, 1, 1))` will do, five epochs, and `.tolist()`.",
        ),
        understood="You have chosen a recipe, and it has read hands that you chose nothing by.",
        once=behind_the_seal,
        seconds=60.0,
    ),
)
