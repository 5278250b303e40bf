"""Lesson 21, convolution and attention: the exercises' trials, oracles, usual mistakes and hints."""

import functools
import math

import engine
from course.judging.words import Exercise, calls, changed, mistakes, properties
from engine import nn
from engine.nn import functional as F

# 21.1


def by_pencil(channels, out, size, stride, padding, side):
    """(channels, rows, numbers to learn, products) of a layer and a square picture."""
    layer = nn.Conv2d(channels, out, size, stride=stride, padding=padding)
    shape = layer(engine.zeros(1, channels, side, side)).shape
    learned = sum(p.numel() for p in layer.parameters())
    return shape[1], shape[2], learned, shape[2] * shape[3] * layer.weight.numel()


# 21.2


def slopes_through(slide, x, kernel, stride):
    """Return what comes out, and the slopes of both for weights that differ from place to place."""
    x, kernel = x.clone().requires_grad_(), kernel.clone().requires_grad_()
    out = slide(x, kernel, stride)
    if not out.requires_grad:
        return out, "no way back", "no way back"
    (out * engine.arange(1.0, len(out) + 1)).sum().backward()
    return out.detach(), x.grad, kernel.grad


def slide_trial(slide):
    x, kernel = engine.tensor([1.0, 2.0, 4.0, 8.0, 16.0]), engine.tensor([1.0, 0.0, -2.0])
    yield "x = [1, 2, 4, 8, 16], kernel = [1, 0, -2], stride 1", slide, x, kernel, 1
    x, kernel = engine.tensor([1.0, 5.0, 2.0, 0.5, -3.0, 4.0]), engine.tensor([2.0, -1.0])
    yield "x = [1, 5, 2, 0.5, -3, 4], kernel = [2, -1], stride 2", slide, x, kernel, 2
    yield "the same with stride 3", slide, x.clone(), kernel.clone(), 3
    yield "a kernel as long as x", slide, engine.tensor([1.0, 2.0, 3.0]), engine.tensor([1.0, -1.0, 2.0]), 1
    yield "the same x and stride 2: the result, and the slopes of x and kernel", slopes_through, slide, x, kernel, 2
    yield "", slide, engine.randn(11), engine.randn(4), 3
    yield "", slopes_through, slide, engine.randn(9), engine.randn(3), 1


def slide(x, kernel, stride):
    return F.conv1d(x[None, None], kernel[None, None], stride=stride)[0, 0]


def place_by_place(x, kernel, stride):
    places = range(0, len(x) - len(kernel) + 1, stride)
    return engine.stack([(x[at : at + len(kernel)] * kernel).sum() for at in places])


def hanging_over(x, kernel, stride):
    pieces = [x[at : at + len(kernel)] for at in range(0, len(x), stride)]
    return engine.stack([(piece * kernel[: len(piece)]).sum() for piece in pieces])


# 21.3


def table_trial(back):
    arriving = engine.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    yield "slopes [[1, 10], [2, 20], [4, 40]] for words 2, 0, 1; 4 rows", back, arriving, engine.tensor([2, 0, 1]), 4
    yield "the same slopes for words 2, 0, 2", back, arriving.clone(), engine.tensor([2, 0, 2]), 4
    arriving = engine.tensor([[0.5, -1.0, 2.5], [0.25, 3.0, -1.5], [1.0, 1.0, 1.0], [-2.0, 0.0, 8.0]])
    yield "words 1, 1, 0, 1; 5 rows of 3 numbers", back, arriving, engine.tensor([1, 1, 0, 1]), 5
    yield "", back, engine.randn(7, 2), engine.tensor([5, 0, 5, 3, 3, 5, 1]), 9
    yield "", back, engine.randn(1, 4), engine.tensor([0]), 1


def back_to_table(arriving, words, rows):
    return F.one_hot(words, rows).to(arriving.dtype).T @ arriving


def by_backward(arriving, words, rows):
    table = engine.zeros(rows, arriving.shape[1], requires_grad=True)
    table[words].backward(arriving)
    return table.grad


def the_last_one(arriving, words, rows):
    gradient = engine.zeros(rows, arriving.shape[1])
    for slopes, word in zip(arriving, words.tolist(), strict=True):
        gradient[word] = slopes
    return gradient


def of_each_use(arriving, words, rows):
    return back_to_table(arriving, words, rows) / engine.bincount(words, minlength=rows).clamp(min=1)[:, None]


def a_row_for_each_word(arriving, words, rows):
    chosen = F.one_hot(words, rows).to(arriving.dtype)
    return chosen @ chosen.T @ arriving


# 21.4


def later_ones(n, first=1):
    return engine.ones(n, n).triu(first).bool()


def by_hand(query, key, value):
    scores = query @ key.T / query.shape[1] ** 0.5
    later = later_ones(len(query))
    return scores.masked_fill(later, -math.inf).softmax(dim=1) @ value


def renormalised(query, key, value):
    weights = (query @ key.T / query.shape[1] ** 0.5).softmax(dim=1).masked_fill(later_ones(len(query)), 0.0)
    return weights / weights.sum(dim=1, keepdim=True) @ value


def oracle_attend(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def attend_trial(attend):
    query = engine.tensor([[2.0, 0.0], [0.0, 4.0], [1.0, 1.0]])
    key = engine.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    value = engine.tensor([[1.0], [10.0], [100.0]])
    yield "three words", attend, query, key, value
    engine.manual_seed(1)
    yield "five words, random numbers", attend, engine.randn(5, 4), engine.randn(5, 4), engine.randn(5, 3)
    yield "one word", attend, engine.randn(1, 2), engine.randn(1, 2), engine.randn(1, 2)
    engine.manual_seed(2)
    yield "", attend, engine.randn(7, 9), engine.randn(7, 9), engine.randn(7, 2)


# 21.5


def attending(first):
    """Make a model of attention with a mask from some place on; None: without."""

    def model(x):
        scores = x @ x.T / x.shape[1] ** 0.5
        if first is not None:
            scores = scores.masked_fill(later_ones(len(x), first), -math.inf)
        return scores.softmax(dim=1) @ x

    return model


def one_ahead(x):
    """Subtract from each word the next: a slope below 0."""
    return x - engine.cat([x[1:], x[:1] * 0])


def first_sees_last(x):
    return engine.cat([x[:1] * x[-1:], x[1:]])


def last_number_ahead(x):
    """Only the last number of each word knows those that follow."""
    return engine.cat([x[:, :-1].cumsum(0), x[:, -1:].flip(0).cumsum(0).flip(0)], dim=1)


def normed(x):
    """Put a layer norm last: the sum of each row is 0, whatever it depends on."""
    return F.layer_norm(attending(None)(x), (x.shape[1],))


def difference_ahead(x):
    """Show each word a difference of the later words' numbers: their slopes add up to 0."""
    return x + (x[:, :1] - x[:, 1:2]).flip(0).cumsum(0).flip(0)


def last_number_seen(x):
    """Of the later words only the last number is looked at."""
    later = x[:, -1:].flip(0).cumsum(0).flip(0)
    return x.cumsum(0) + later


def ahead_trial(looks):
    # All are drawn before the first step, and from seeds of their own: who nudges x by random numbers draws others.
    engine.manual_seed(4)
    rows = (
        ("an honest model (sums so far), 4 words", lambda x: x.cumsum(0), engine.randn(4, 3)),
        ("attention without a mask, 4 words", attending(None), engine.randn(4, 2)),
        ("attention with a causal mask, 4 words", attending(1), engine.randn(4, 2)),
        ("attention with a mask that begins one place too late", attending(2), engine.randn(4, 2)),
        ("each word minus the next one", one_ahead, engine.randn(4, 2)),
        ("the first word looks at the last one, and nobody else", first_sees_last, engine.randn(4, 2)),
        ("only the last number of each result looks ahead", last_number_ahead, engine.randn(3, 2)),
        ("only the last number of each input is seen from before", last_number_seen, engine.randn(3, 2)),
        ("of later words only a difference of two numbers is seen", difference_ahead, engine.randn(3, 2)),
        ("attention without a mask, and a layer norm", normed, engine.randn(3, 4)),
        ("", attending(3), engine.randn(6, 3)),
        ("", one_ahead, engine.randn(1, 3)),
    )
    for shown, model, x in rows:
        yield shown, looks, model, x


def looks_ahead(model, x, after=0, single=True, first=None, only=None, way=lambda s: s != 0, turned=False):
    """List all pairs, with something wrong: `after` from which word on, `first` and `only` which numbers."""
    x = x.detach().clone().requires_grad_()
    found = []
    for n, row in enumerate(model(x)):
        numbers = list(row[:first]) if single else [row.sum()]
        depends = [False] * len(x)
        for number in numbers:
            (slopes,) = engine.autograd.grad(number, x, retain_graph=True)
            for m in range(len(x)):
                depends[m] |= any(way(slope) for slope in slopes[m, :only].tolist())
        found += [(n, m) for m in range(max(n + 1 + after, 0), len(x)) if depends[m]]
    return [pair[::-1] for pair in found] if turned else found


def by_nudges(model, x):
    """Be the oracle: move each number of each word a little, in double precision."""
    x = x.detach().double()
    before, seen = model(x), set()
    for m in range(len(x)):
        for number in range(x.shape[1]):
            other = x.clone()
            other[m, number] += 0.01
            moved = (model(other) - before).abs().amax(dim=1) > 1e-9
            seen |= {(n, m) for n in range(m) if moved[n]}
    return sorted(seen)


def noted_again(model, x):
    """Note a pair for each number of a result that looks ahead."""
    x = x.detach().clone().requires_grad_()
    found = []
    for n in range(len(x)):
        for number in model(x)[n]:
            (slopes,) = engine.autograd.grad(number, x, retain_graph=True)
            found += [(n, m) for m in range(n + 1, len(x)) if slopes[m].any()]
    return found


def never_cleared(model, x):
    """Slopes are added up in `x.grad` from word to word."""
    x = x.detach().clone().requires_grad_()
    found = []
    for n in range(len(x)):
        for number in model(x)[n]:
            number.backward(retain_graph=True)
        found += [(n, m) for m in range(n + 1, len(x)) if x.grad[m].any()]
    return found


EXERCISES = (
    Exercise(
        key="21.1",
        points=1,
        answer=by_pencil(3, 8, 5, 2, 2, 32),
        wrong=mistakes(
            (8, 14, 608, 117600),
            "You have left out the padding: the picture has 36 rows and columns with it.",
            (8, 16, 208, 51200),
            "A kernel sees all three channels of the picture: it has 3 times 25 weights.",
        ),
        entries={
            1: ((3, "That is how many channels come in. Each kernel makes one channel of the result."),),
            2: (
                (32, "That would be with stride 1. This kernel moves by two pixels at a time."),
                (14, "You have left out the padding: with it there are 36 rows."),
                (15, "The first place counts, too: + 1."),
                (36, "These are the rows of the picture with its padding. On how many of them does the kernel begin?"),
                "The formula in the lesson gives (32 + 2 * 2 - (5 - 1) - 1) // 2 + 1.",
            ),
            3: (
                (600, "Each of the eight kernels has a bias, too."),
                (208, "A kernel sees all three channels: it has 3 times 25 weights."),
                (200, "A kernel sees all three channels, and has a bias."),
                "Eight kernels of 3 * 25 weights, and a bias for each kernel.",
            ),
            4: (
                (19200, "That is one kernel. There are eight."),
                (51200, "A kernel does its products in all three channels."),
                (155648, "The bias is added, not multiplied."),
                "For each place of each channel of the result, there are as many products as a kernel has weights.",
            ),
        },
        hints=(
            "How many kernels are there, and how many weights has each of them?",
            "Each kernel has 3 * 5 * 5 weights and a bias, and is laid on 16 by 16 places.",
            "Products: 8 kernels, times the places, times 3 * 5 * 5.",
        ),
        understood=(
            "How much there is to learn does not depend on the size of the picture; how much there is to compute does."
        ),
    ),
    Exercise(
        key="21.2",
        points=1,
        answer=slide,
        trial=slide_trial,
        wrong=mistakes(
            lambda x, kernel, stride: slide(x, kernel.flip(0), stride),
            "You flip the kernel. Mathematicians do that in what they call a convolution; networks do not.",
            lambda x, kernel, stride: slide(x, kernel, 1),
            "Your places are one apart, whatever `stride` is.",
            changed(place_by_place, " + 1, stride", ", stride"),
            "The last place is missing: there the kernel ends exactly where x ends.",
            lambda x, kernel, stride: slide(x, kernel, stride) / len(kernel),
            "You take the mean of the products. Take their sum.",
            changed(place_by_place, "* kernel", "+ kernel"),
            "You add the kernel to what lies under it. Multiply, and add up the products.",
            changed(place_by_place, "sum()", "prod()"),
            "You multiply all the products with each other. Add them up.",
            changed(place_by_place, " * kernel).sum()", ").sum() * kernel.sum()"),
            "You add up first and multiply afterwards. Each number has a weight of its own: multiply, then add up.",
            lambda x, kernel, stride: engine.tensor(slide(x, kernel, stride).tolist(), requires_grad=True),
            "The numbers are right, but they were taken out of the graph: nobody can go back through them.",
            lambda x, kernel, stride: slide(x, kernel, stride).detach(),
            "The numbers are right, but they were taken out of the graph (by `item()`, `tolist()` or `detach()`): "
            "nobody can go back through them. Put the sums together with `engine.stack`.",
            lambda x, kernel, stride: F.conv1d(x[None, None], kernel[None, None], dilation=stride)[0, 0],
            "You take every `stride`-th number *under* the kernel. That is dilation. Under the kernel the numbers "
            "are side by side; `stride` goes from place to place.",
            lambda x, kernel, stride: slide(x, kernel, len(kernel)),
            "The places are a whole kernel apart. They should be `stride` apart, and may overlap.",
            hanging_over,
            "At your last places the kernel hangs over the end of x. Stop while all of it still lies on x: the last "
            "place is `len(x) - len(kernel)`.",
            lambda x, kernel, stride: slide(x, kernel.detach(), stride),
            "The way back reaches x, but not the kernel, whose numbers were taken out of the graph. Multiply by the "
            "tensor itself.",
            lambda x, kernel, stride: slide(x.detach(), kernel, stride),
            "The way back reaches the kernel, but not x, whose numbers were taken out of the graph. Multiply by "
            "slices of the tensor itself.",
        ),
        properties=properties(
            slide,
            lambda did: not calls(did.source, "conv1d", "conv2d", "Conv1d", "Conv2d"),
            "That is a ready-made convolution. Write it yourself: a sum of products for each place.",
        ),
        hints=(
            "Where does the kernel begin at place 0, at place 1, and at the last place?",
            "At each place, multiply the kernel by a slice of x of the same length, and add up. `engine.stack` makes "
            "a tensor of the sums.",
            "size = len(kernel)\nplaces = range(0, len(x) - size + 1, ...)\n"
            "return engine.stack([(kernel * x[at : at + size]).sum() for at in places])",
        ),
        understood="A convolution is a sum of products at each place, with the same weights; all else is bookkeeping.",
    ),
    Exercise(
        key="21.3",
        points=2,
        answer=back_to_table,
        trial=table_trial,
        wrong=mistakes(
            the_last_one,
            "A word that was used twice has only the slopes of its last use. Slopes add up. (`gradient[words] += "
            "arriving` has the same fault: it writes each row once.)",
            of_each_use,
            "You divide by how often a word was used. The slopes of all uses are added up.",
            lambda arriving, words, rows: back_to_table(arriving, words, int(words.max()) + 1),
            "The gradient has the shape of the table: all `rows`, even those that nobody used.",
            a_row_for_each_word,
            "There is a row for each *word* that was looked up. The gradient has one for each row of the table.",
            lambda arriving, words, rows: back_to_table(engine.ones_like(arriving), words, rows),
            "You count how often a word was used. Add up what has arrived for it.",
            lambda arriving, words, rows: back_to_table(arriving, engine.arange(len(words)), max(rows, len(words))),
            "The rows stand in the order in which they arrived. Row n of the table gets what arrived for word n.",
            lambda arriving, words, rows: back_to_table(arriving, words, rows) / len(words),
            "You divide by the number of words. Slopes are added up, not averaged.",
            lambda arriving, words, rows: back_to_table(arriving, words, rows).sum(dim=1),
            "You add up the numbers of each row. The table has a column for each: keep them apart.",
            lambda arriving, words, rows: F.one_hot(words, rows).to(arriving.dtype) @ arriving.T,
            "Transpose the one-hot rows, not what arrives: `.T` on the former gives (rows, words) @ (words, numbers).",
            lambda arriving, words, rows: arriving[words],
            "You look up rows once more. The way back goes the other way: from the words to the table's rows.",
        ),
        properties=properties(
            by_backward,
            lambda did: not calls(did.source, "backward", "autograd", "func", "vjp", "jacrev", "jacfwd"),
            "That goes back through a graph. Write the rule itself: add each row of slopes to its row of the table.",
        ),
        hints=(
            "Begin with a table of zeros. To which of its rows does the first row of slopes belong?",
            "Word by word: add the row of slopes to the row of its word. Or: what is the rule of a product, if the "
            "lookup is a product with one-hot rows?",
            "gradient = engine.zeros(rows, arriving.shape[1])\nfor slopes, word in zip(arriving, words.tolist()):\n"
            "    gradient[...] += slopes",
        ),
        understood=(
            "Looking up is a product with one-hot rows. So going back is a product with their transpose: it adds up "
            "where a word came twice."
        ),
    ),
    Exercise(
        key="21.4",
        points=2,
        answer=oracle_attend,
        trial=attend_trial,
        wrong=mistakes(
            changed(by_hand, "dim=1", "dim=0"),
            "The mask is right. But the softmax goes down the columns: the shares in each *row* must add up to 1.",
            changed(
                by_hand, ".masked_fill(later, -math.inf).softmax(dim=1)", ".softmax(dim=1).masked_fill(later, 0.0)"
            ),
            "The mask comes after the softmax: the rows do not add up to 1, and the later words are in the sum.",
            changed(by_hand, "later_ones(len(query))", "later_ones(len(query), 0)"),
            "A word may look at itself. Here the first one has nobody to look at, and its mix is `nan`.",
            changed(
                by_hand, ".masked_fill(later, -math.inf).softmax(dim=1)", ".softmax(dim=0).masked_fill(later, 0.0)"
            ),
            "Two mistakes are left: the softmax goes down the columns, and the mask comes after it.",
            changed(by_hand, "dim=1", "dim=0", "later_ones(len(query))", "later_ones(len(query), 0)"),
            "Two mistakes are left: the softmax goes down the columns, and no word may look at itself.",
            changed(
                by_hand,
                ".masked_fill(later, -math.inf).softmax(dim=1)",
                ".softmax(dim=1).masked_fill(later, 0.0)",
                "later_ones(len(query))",
                "later_ones(len(query), 0)",
            ),
            "Two mistakes are left: the mask comes after the softmax, and no word may look at itself.",
            changed(by_hand, " / query.shape[1] ** 0.5", ""),
            "The division by the root was right. Put it back.",
            changed(by_hand, "fill(later", "fill(later.T"),
            "The mask is the wrong way round: each word looks at itself and at those *after* it.",
            changed(by_hand, "-math.inf", "0.0"),
            "A score of 0 is a score like any other: $e^0$ is 1. For a share of 0 it takes minus infinity.",
            lambda query, key, value: oracle_attend(key, query, value),
            "You have swapped query and key: row n of the scores belongs to the *query* of word n.",
            changed(by_hand, "dim=1)", "dim=1).T"),
            "The shares are transposed. With `weights @ value`, row n of the shares mixes the values for word n.",
            changed(by_hand, "fill(later", "fill(~later"),
            "The mask is the wrong way round: minus infinity goes where a word may *not* look, to the words after it.",
            changed(by_hand, "-math.inf", "-1.0"),
            "-1 is a score like any other: $e^{-1}$ is 0.37. For a share of 0 it takes minus infinity.",
            changed(by_hand, "-math.inf", "math.inf"),
            "Plus infinity makes a later word the best of all, and the shares `nan`. Take *minus* infinity.",
            lambda query, key, value: oracle_attend(query * (query.shape[1] / len(query)) ** 0.5, key, value),
            "You divide by the root of the number of words. Take the root of the length of a *row*: `query.shape[1]`.",
            changed(by_hand, "later_ones(len(query))", "later_ones(len(query), 2)"),
            "The mask begins one place too late: each word still sees the next one. `triu(1)` is everything above "
            "the diagonal.",
            functools.partial(F.scaled_dot_product_attention),
            "There is no mask: each word looks at all words.",
        ),
        properties=properties(
            oracle_attend,
            lambda did: not calls(did.source, "scaled_dot_product_attention", "MultiheadAttention"),
            "That is ready-made. Repair the lines by hand: mask, softmax, mix.",
        ),
        hints=(
            "Three questions: which numbers have to add up to 1? When must the mask come? May a word look at itself?",
            "`softmax(dim=1)`; the mask on the scores, with minus infinity; `triu(1)` leaves out the diagonal.",
            "later = engine.ones(len(query), len(query)).triu(1).bool()\n"
            'weights = scores.masked_fill(later, float("-inf"))'
            ".softmax(dim=...)\nreturn weights @ value",
        ),
        understood="The softmax shares out 1 among the words that it is given, so the mask comes before it.",
    ),
    Exercise(
        key="21.5",
        points=2,
        answer=by_nudges,
        trial=ahead_trial,
        wrong=mistakes(
            functools.partial(looks_ahead, after=-100),
            "You list all dependencies. A word may depend on itself and on earlier ones.",
            noted_again,
            "A pair comes once for each number of a result that looks ahead. Once is enough: look at all the numbers "
            "of word n first.",
            lambda model, x: [pair for pair in looks_ahead(model, x, after=-100) if pair[0] != pair[1]],
            "You list earlier words, too. A word may depend on those before it.",
            changed(
                noted_again, "slopes[m].any()", "slopes[m].sum() != 0", "return found", "return sorted(set(found))"
            ),
            "You add up a word's slopes, and they may cancel: 1 and -1 make 0. Check whether *any* of them is not 0.",
            functools.partial(looks_ahead, after=-1),
            "A word may depend on itself: m must be later than n.",
            functools.partial(looks_ahead, single=False),
            "You go back from the sum of a row. Where a layer norm comes last, that sum is always 0 and has no "
            "slope, so you let the model through.",
            functools.partial(looks_ahead, first=1),
            "You go back from the first number of each result only. Any of them may look ahead.",
            functools.partial(looks_ahead, only=1),
            "You look at the slope of the first number of each word only. Any of them may be seen.",
            functools.partial(looks_ahead, way=lambda slope: slope > 0),
            "A slope below 0 is a dependence as well.",
            functools.partial(looks_ahead, turned=True),
            "The pairs are the wrong way round: first n, who looks.",
            lambda model, x: sorted(looks_ahead(model, x), key=lambda pair: pair[::-1]),
            "All pairs are there, but not in order: first all those of word 0, then all those of word 1. Let the "
            "outer loop go over n.",
            functools.partial(looks_ahead, way=lambda slope: abs(slope) > 0.1),
            "A small slope is a slope. Do not ask how large it is: ask whether it is 0.",
            lambda model, x: [(n, m) for n, m in looks_ahead(model, x) if m == n + 1],
            "You look at the next word only. The result must not depend on any word after n.",
            never_cleared,
            "The slopes of the words before are still in `x.grad`: clear it, or use `engine.autograd.grad`.",
        ),
        hints=(
            "For one word n: go back from its result to x. Which rows of the slopes should be 0?",
            "Go back from each *single* number of the result of word n, and look at the rows after n: is anything in "
            "them not 0?",
            "for n, row in enumerate(model(x)):\n    for number in row:\n        (slopes,) = "
            "engine.autograd.grad(number, x, retain_graph=True)\n        ...slopes.any(dim=1)...",
        ),
        understood="A gradient shows who sees whom, in any model, without a look at its code.",
    ),
)
