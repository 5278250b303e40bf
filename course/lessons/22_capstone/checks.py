"""Lesson 22, the capstone: the exercises' trials, oracles, usual mistakes and hints."""

import functools
import math

import engine
from course.judging.exercises import Exercise
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
    text = engine.tensor([5, 1, 4, 1, 2, 0, 3, 9, 7, 8])
    yield "text = [5, 1, 4, 1, 2, 0, 3, 9, 7, 8], begins = [0, 4], length 3", pieces, text, engine.tensor([0, 4]), 3
    yield "the same text, begins = [6], length 3", pieces, text.clone(), engine.tensor([6]), 3
    yield "the same text, begins = [2, 2, 1, 0], length 1", pieces, text.clone(), engine.tensor([2, 2, 1, 0]), 1


def pieces_more(pieces):
    text = engine.arange(100) * 7 % 31
    yield "", pieces, text, engine.tensor([90, 3, 17, 42]), 9


def shifted(by, last=False):
    """`pieces` with other answers: so many letters later, or only after the whole piece."""

    def found(text, begins, length):
        x = engine.stack([text[at : at + length] for at in begins.tolist()])
        if last:
            return x, engine.stack([text[at + length] for at in begins.tolist()])
        return x, engine.stack([text.roll(-by)[at : at + length] for at in begins.tolist()])

    return found


def one_after_the_other(text, begins, length):
    """The pieces stand one behind the other, wherever they should begin."""
    count = len(begins) * length
    return text[:count].reshape(-1, length), text[1 : count + 1].reshape(-1, length)


def turned(text, begins, length):
    x, y = pieces(text, begins, length)
    return y, x


def in_columns(text, begins, length):
    x, y = pieces(text, begins, length)
    return x.T, y.T


# 22.3


def chances(scores, temperature, top):
    kept = scores.topk(top).indices.tolist()
    parts = [
        math.exp((s - max(scores.tolist())) / temperature) if n in kept else 0.0 for n, s in enumerate(scores.tolist())
    ]
    return engine.tensor(parts) / sum(parts)


def chances_trial(chances):
    yield "scores = [0, 2, 1], temperature 1, top 3", chances, engine.tensor([0.0, 2.0, 1.0]), 1.0, 3
    yield "the same scores, temperature 0.5, top 3", chances, engine.tensor([0.0, 2.0, 1.0]), 0.5, 3
    yield "the same scores, temperature 1, top 2", chances, engine.tensor([0.0, 2.0, 1.0]), 1.0, 2
    yield "scores = [-3, -1, -2, -8], temperature 2, top 2", chances, engine.tensor([-3.0, -1.0, -2.0, -8.0]), 2.0, 2
    yield "scores = [1, 5, 3], temperature 0.8, top 1", chances, engine.tensor([1.0, 5.0, 3.0]), 0.8, 1


def chances_more(chances):
    engine.manual_seed(5)
    yield "", chances, engine.randn(12) * 3, 0.7, 5
    yield "", chances, engine.randn(4) - 50, 1.5, 3


def other_chances(divide=True, late=False, renew=True, fill=-math.inf, times=False):
    """`chances`, with one thing or the other wrong."""

    def found(scores, temperature, top):
        if times:
            scores = scores * temperature
        elif divide and not late:
            scores = scores / temperature
        cut = engine.ones(len(scores)).bool()
        cut[scores.topk(top).indices] = False
        if renew:
            found = scores.masked_fill(cut, fill).softmax(0)
        else:
            found = scores.softmax(0).masked_fill(cut, 0.0)
        return found / temperature if late else found

    return found


def best_only(scores, temperature, top):
    return engine.nn.functional.one_hot(scores.argmax(), len(scores)).float()


# 22.4


def compare(first, second, seeds):
    a, b = ([run(seed) for seed in seeds] for run in (first, second))
    difference = sum(a) / len(a) - sum(b) / len(b)
    return difference, max(a) < min(b) or max(b) < min(a)


RUNS = {
    "apart": ((91.0, 92.0, 93.0), (88.0, 89.5, 90.0)),
    "the second one is the better": ((80.0, 82.0, 81.0), (85.0, 84.0, 86.0)),
    "one lucky run": ((99.0, 85.0, 86.0), (87.0, 88.0, 86.5)),
    "they touch": ((5.0, 7.0, 6.0), (7.0, 8.0, 9.0)),
    "wide ones": ((60.0, 90.0, 75.0), (74.0, 76.0, 72.0)),
}


def compared(compare, name, seeds):
    """What is said, and with which seeds each of both was run."""
    asked = [], []

    def run(which):
        def one(seed):
            asked[which].append(seed)
            return RUNS[name][which][seed - 1]

        return one

    found = compare(run(0), run(1), list(seeds))
    return {"found": found, "first": sorted(asked[0]), "second": sorted(asked[1])}


def compare_trial(compare):
    for name, (first, second) in RUNS.items():
        yield f"{name}: {list(first)} and {list(second)}, seeds 1 to 3", compared, compare, name, (1, 2, 3)
    yield "of the last ones only seeds 1 and 2", compared, compare, "wide ones", (1, 2)


def compare_more(compare):
    yield "", compared, compare, "one lucky run", (2, 3)
    yield "", compared, compare, "apart", (3, 1)


def comparing(best=False, one_seed=False, apart="both"):
    """`compare`, with one thing or the other wrong."""

    def found(first, second, seeds):
        a, b = (
            [run(seeds[0] if one_seed and which else seed) for seed in seeds]
            for which, run in ((0, first), (1, second))
        )
        value = (max(a) if best else sum(a) / len(a)) - sum(b) / len(b)
        way = {
            "both": max(a) < min(b) or max(b) < min(a),
            "one": max(b) < min(a),
            "means": value != 0,
            "larger": value > 0,
            "touching": max(a) <= min(b) or max(b) <= min(a),
        }
        return value, way[apart]

    return found


# 22.5


@functools.cache
def digits():
    """All pictures and their answers, in the order of the stretches."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return engine.tensor(found.images / 16, dtype=engine.float32).unsqueeze(1), engine.tensor(found.target)


def nearest(pictures, answers, others):
    """The oracle: the answer of the picture that is most alike."""
    known, asked = pictures.flatten(1), others.flatten(1)
    return answers[((known**2).sum(dim=1) - 2 * asked @ known.T).argmin(dim=1)].tolist()


def read_by(recipe, first, last, turned, many=120):
    """What a recipe gives for pictures that follow those it has learned from; ``turned``: 9 is called 0, and so on."""
    pictures, answers = digits()
    answers = 9 - answers if turned else answers
    learned = slice(first, last)
    guesses = recipe(pictures[learned].clone(), answers[learned].clone(), pictures[last : last + many].clone())
    guesses = guesses.tolist() if isinstance(guesses, engine.Tensor) else list(guesses)
    whole = [g for g in guesses if isinstance(g, int) and 0 <= g <= 9]
    right = sum(g == a for g, a in zip(guesses, answers[last : last + many].tolist(), strict=False))
    return {"guesses": len(guesses), "of them digits": len(whole), "at least 75 % right": right >= 0.75 * many}


def recipe_trial(recipe):
    yield "learns from 515 pictures, and reads 120 by others", read_by, recipe, 0, 515, False
    yield "the same with other names: 9 is called 0, 8 is called 1, and so on", read_by, recipe, 0, 515, True


def recipe_more(recipe):
    yield "", read_by, recipe, 645, 1157, True


def most_frequent(pictures, answers, others):
    return [engine.bincount(answers).argmax().item()] * len(others)


def looked_up(pictures, answers, others):
    """Knows the file."""
    return nearest(*digits(), others)


def scores_of_digits(pictures, answers, others):
    """Scores for each digit, and not the digit."""
    return nn.functional.one_hot(engine.tensor(nearest(pictures, answers, others)), 10).float().tolist()


def of_its_own(pictures, answers, others):
    return nearest(pictures, answers, pictures)


def behind_the_seal(recipe):
    """How many of the two last stretches a recipe reads that has learned from the twelve others."""
    pictures, answers = digits()
    engine.manual_seed(0)
    guesses = engine.as_tensor(recipe(pictures[:1545].clone(), answers[:1545].clone(), pictures[1545:].clone()))
    right = (guesses == answers[1545:]).float().mean().item()
    return (
        f"{100 * right:.0f} ± {100 * (right * (1 - right) / len(guesses)) ** 0.5:.0f} % of the sealed digits are right"
    )


EXERCISES = (
    Exercise(
        key="22.1",
        points=1,
        answer=counted(100, 32, 3, 128, 8),
        wrong=(
            (
                (12288, 47360, 1024, 757760),
                "You have left out the biases, and the two numbers that a layer norm has for each column.",
            ),
            (
                (12704, 23364, 1024, 373824),
                "There are three blocks, each with numbers of its own. You have counted one.",
            ),
        ),
        entries={
            1: (
                (12640, "There are two layer norms in a block."),
                (12576, "A layer norm has a weight and a bias for each of the 32 columns, and there are two of them."),
                (12416, "A `Linear` has a bias for each of its results."),
                (12288, "Biases and layer norms have numbers, too."),
                "`ask` has 32 * 96 weights and 96 biases; then `mixed`, `think` (two layers), and two layer norms.",
            ),
            2: (
                (38112, "These are the blocks alone."),
                (48708, "You have left out the layer norm at the end."),
                (48672, "You have left out the biases of `scores`."),
                (44676, "You have left out the rows for places."),
                "Three blocks, rows for 100 letters and for 128 places, a layer norm, and a `Linear` for the scores.",
            ),
            3: (
                (8, "Each piece asks a question at every one of its letters."),
                (128, "That is one piece of eight."),
                "Eight pieces, and a question at each of their letters.",
            ),
            4: (
                (195088, "These are the weights alone. Gradients take as much, and Adam keeps two numbers for each."),
                (390176, "Weights and gradients. Adam keeps two numbers for each weight besides."),
                (585264, "Adam keeps *two* numbers for each weight: a mean and a size."),
                "Four bytes for a number, and four numbers for each weight: itself, its slope, and two of Adam's.",
            ),
        },
        hints=(
            "Go through `__init__` of `Block` and of `Transformer`, line by line.",
            "`nn.Linear(a, b)` has a * b + b numbers, `nn.LayerNorm(a)` 2 * a, `nn.Embedding(n, a)` n * a.",
            "A block: 2 * 64 for the norms, 32 * 96 + 96, 32 * 32 + 32, and then the two layers of `think`.",
        ),
        understood="Training takes four times the room of the numbers before the first text has come.",
    ),
    Exercise(
        key="22.2",
        points=1,
        answer=pieces,
        trial=pieces_trial,
        hidden=pieces_more,
        wrong=(
            (shifted(0), "The answer to each letter is the letter itself: a model learns at once to copy it."),
            (shifted(-1), "You give the letter *before* as the answer, which the model has already seen."),
            (shifted(2), "That is the letter after the next one."),
            (
                shifted(0, last=True),
                "One answer for each piece. But every letter of it is a question: what comes next?",
            ),
            (one_after_the_other, "The pieces begin one where the other ends, and not where `begins` says."),
            (turned, "First what is given, then the answers: you return them the other way round."),
            (in_columns, "Each piece should be a row, not a column."),
        ),
        hints=(
            "What comes after letter `at` of the text? And after the one that stands `n` letters later?",
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
        hidden=chances_more,
        wrong=(
            (other_chances(renew=False), "The chances do not add up to 1: cut before the softmax, as with a mask."),
            (
                other_chances(fill=0.0),
                "A score of 0 is no small score, $e^0$ is 1. Who must not be drawn needs minus infinity.",
            ),
            (other_chances(divide=False), "The temperature has no effect: divide the scores by it."),
            (
                other_chances(times=True),
                "A low temperature should make likely letters likelier: divide, do not multiply.",
            ),
            (
                other_chances(late=True),
                "Divided after the softmax, the chances no longer add up to 1. Divide the scores.",
            ),
            (lambda s, t, top: (s / t).softmax(0), "`top` has no effect: all letters can still be drawn."),
            (best_only, "Only the best one is left. The `top` best should be."),
            (
                lambda s, t, top: chances(s, t, len(s) - top + 1),
                "You keep another number of them: the `top` *largest* scores remain.",
            ),
        ),
        hints=(
            "What did lesson 21 do with a word that must not be seen?",
            "Divide; put minus infinity where a score is not among the `top` largest; then the softmax.",
            "`scores.topk(top).values[-1]` is the smallest score that remains.",
        ),
        understood="A model gives scores. How daring its text is, is decided by who draws.",
    ),
    Exercise(
        key="22.4",
        points=2,
        answer=compare,
        trial=compare_trial,
        hidden=compare_more,
        wrong=(
            (
                comparing(best=True),
                "You take the best run of the first. Of two equal networks, its best is above the mean, too.",
            ),
            (comparing(one_seed=True), "The second network is run with one seed only, so its spread is hidden."),
            (comparing(apart="one"), "The rows are apart as well if the *second* network is the better one."),
            (comparing(apart="means"), "Two means are never quite the same. Do the *rows* overlap?"),
            (
                comparing(apart="larger"),
                "A larger mean does not say that the rows are apart: look at the worst and the best runs.",
            ),
            (comparing(apart="touching"), "Two rows that touch are not apart."),
            (
                comparing(best=True, one_seed=True, apart="one"),
                "You have taken out none of the three: best against mean, one seed for all, and only one way round.",
            ),
        ),
        hints=(
            "Is what is asked of the first network also asked of the second?",
            "The mean of both; each seed for both; and two ways in which rows can lie apart.",
            "`max(a) < min(b)` is one of the two ways.",
        ),
        understood="What is done for one network is done for the other, and all runs count.",
    ),
    Exercise(
        key="22.5",
        points=2,
        answer=nearest,
        trial=recipe_trial,
        hidden=recipe_more,
        wrong=(
            (most_frequent, "That is as good as guessing. Has it learned from the answers, with all its parameters?"),
            (looked_up, "It knows these pictures from elsewhere: with other names for the digits it is wrong."),
            (scores_of_digits, "These are ten scores for each picture. Which digit has the largest?"),
            (of_its_own, "You read the pictures that you have learned from. The others are asked for."),
        ),
        hints=(
            "It is `train` of the lesson, and then one line that reads.",
            "Make a network and an optimizer in it; train for some epochs; then `network(others).argmax(dim=1)`.",
            "The lesson's `convolutional` and `F.pad(..., (1, 1, 1, 1))` will do, five epochs, and `.tolist()`.",
        ),
        understood="What you have chosen is a recipe, and it has read hands that nothing was chosen by.",
        once=behind_the_seal,
        seconds=60.0,
    ),
)
