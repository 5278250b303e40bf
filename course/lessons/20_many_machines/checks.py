"""Lesson 20, many machines: the steps' and exercises' trials on ranks that are threads, usual mistakes and hints."""

import engine
from course.judging import pretend
from course.judging.words import Exercise, changed, mistakes, properties
from engine import nn

# What the learner writes in the lesson: three ways to let all ranks have the sum


def way_of(way, size, length):
    """Run a way on so many ranks: return what each has afterwards, and what the busiest one has done."""

    def work(link):
        x = engine.arange(float(length)) + 100 * (link.rank + 1)
        way(x, link)
        return x

    found, links = pretend.run(size, work, pretend.Link)
    told = {f"rank {rank}": x for rank, x in enumerate(found)}
    return told, max(link.steps for link in links), max(link.bytes for link in links)


def summed(way, size, length):
    return way_of(way, size, length)[0]


def thrifty(way, size, length, most_steps, most_bytes):
    """Do the same, and tell whether the busiest rank takes no more steps and sends no more bytes than it has to."""
    told, steps, sent = way_of(way, size, length)
    told["steps"] = f"at most {most_steps}" if steps <= most_steps else f"the busiest rank takes {steps}"
    told["bytes"] = f"at most {most_bytes}" if sent <= most_bytes else f"the busiest rank sends {sent}"
    return told


def one_to_all_trial(way):
    yield "2 ranks: what each has", summed, way, 2, 4
    yield "4 ranks", summed, way, 4, 4
    yield "3 ranks", summed, way, 3, 2


def tree_trial(way):
    yield "2 ranks: what each has", summed, way, 2, 4
    yield "4 ranks", summed, way, 4, 4
    yield "4 ranks: the steps of the busiest one", thrifty, way, 4, 4, 4, 48
    yield "8 ranks", thrifty, way, 8, 4, 6, 64


def ring_trial(way):
    yield "2 ranks, 4 numbers: what each has", summed, way, 2, 4
    yield "4 ranks, 8 numbers", summed, way, 4, 8
    yield "4 ranks, 8 numbers: what the busiest one does", thrifty, way, 4, 8, 6, 48
    yield "3 ranks, 6 numbers", thrifty, way, 3, 6, 4, 32


def one_to_all(x, link):
    came = engine.empty_like(x)
    if link.rank == 0:
        for other in range(1, link.size):
            link.recv(came, other)
            x += came
        for other in range(1, link.size):
            link.send(x, other)
    else:
        link.send(x, 0)
        link.recv(x, 0)


def everybody_sends_first(x, link):
    others = [rank for rank in range(link.size) if rank != link.rank]
    for other in others:
        link.send(x, other)
    came = engine.empty_like(x)
    for other in others:
        link.recv(came, other)
        x += came


def gaps_of(size):
    gap, gaps = 1, []
    while gap < size:
        gaps.append(gap)
        gap *= 2
    return gaps


def tree(x, link):
    came, gaps = engine.empty_like(x), gaps_of(link.size)
    for gap in gaps:
        if link.rank % (2 * gap) == 0:
            link.recv(came, link.rank + gap)
            x += came
        elif link.rank % (2 * gap) == gap:
            link.send(x, link.rank - gap)
    for gap in reversed(gaps):
        if link.rank % (2 * gap) == 0:
            link.send(x, link.rank + gap)
        elif link.rank % (2 * gap) == gap:
            link.recv(x, link.rank - gap)


def back_from_rank_0(x, link):
    changed(tree, "reversed(gaps)", "()")(x, link)
    for other in range(1, link.size):
        if link.rank == 0:
            link.send(x, other)
        elif link.rank == other:
            link.recv(x, 0)


def ring(x, link):
    parts, came = list(x.chunk(link.size)), engine.empty_like(x.chunk(link.size)[0])
    right, left, rounds = (link.rank + 1) % link.size, (link.rank - 1) % link.size, link.size - 1
    for step in range(rounds):
        give, take = (link.rank - step) % link.size, (link.rank - step - 1) % link.size
        link.swap(parts[give], right, came, left)
        parts[take] += came
    for step in range(rounds):
        give, take = (link.rank + 1 - step) % link.size, (link.rank - step) % link.size
        link.swap(parts[give], right, parts[take], left)


def whole_ring(x, link):
    """Send the whole tensor round, and not a part of it."""
    right, left = (link.rank + 1) % link.size, (link.rank - 1) % link.size
    out, came = x.clone(), engine.empty_like(x)
    for _ in range(link.size - 1):
        link.swap(out, right, came, left)
        x += came
        out = came.clone()


# 20.1

N, BYTES = 8, 8000


def by_pencil(n, size):
    """(steps, bytes that the busiest rank sends) of one to all, tree, ring."""
    deep = n.bit_length() - 1
    return 2 * (n - 1), (n - 1) * size, 2 * deep, deep * size, 2 * (n - 1), 2 * (n - 1) * size // n


# 20.2


def parts_of(share, examples, size):
    """Return the share of each rank, and a word where the list itself has changed afterwards."""
    held = list(examples)
    shares = [share(held, rank, size) for rank in range(size)]
    return shares if held == list(examples) else [*shares, "the list itself has changed"]


def share_trial(share):
    yield "range(8), 4 ranks: the share of each", parts_of, share, range(8), 4
    yield "range(10), 4 ranks", parts_of, share, range(10), 4
    yield "range(11), 3 ranks", parts_of, share, range(11), 3
    yield "[7, 3, 5], 2 ranks", parts_of, share, [7, 3, 5], 2
    yield "", parts_of, share, range(5), 4
    yield "", parts_of, share, [9, 8, 7, 6, 5, 4, 3], 3
    yield "", parts_of, share, range(6), 1


def share(examples, rank, size):
    each = -(-len(examples) // size)
    return [examples[(rank + turn * size) % len(examples)] for turn in range(each)]


def blocks(examples, rank, size):
    each = -(-len(examples) // size)
    padded = examples + examples[: each * size - len(examples)]
    return padded[rank * each : (rank + 1) * each]


def padded(examples, rank, size):
    missing = -len(examples) % size
    return (examples + examples[:missing])[rank::size]


def appended_to(examples, rank, size):
    while len(examples) % size:
        examples.append(examples[0])
    return examples[rank::size]


def padded_each_by_itself(examples, rank, size):
    own = examples[rank::size]
    return own + own[: -(-len(examples) // size) - len(own)]


# 20.3


def net(seed):
    engine.manual_seed(seed)
    return nn.Linear(3, 2)


def trained(train, size, steps, same=False):
    """Return what each rank has after a few steps on its batches, from first weights of its own."""

    nets = [net(0 if same else rank) for rank in range(size)]
    engine.manual_seed(50)
    batches = [[(engine.randn(4, 3), engine.randn(4, 2)) for _ in range(steps)] for _ in range(size)]

    def work(link):
        train(nets[link.rank], batches[link.rank], link)
        return nets[link.rank].weight.detach()

    return {f"the weights of rank {rank}": w for rank, w in enumerate(pretend.run(size, work)[0])}


def train_trial(train):
    yield "2 ranks that begin with the same weights, 1 batch", trained, train, 2, 1, True
    yield "2 ranks that begin with other weights, 1 batch", trained, train, 2, 1
    yield "3 ranks, 3 batches", trained, train, 3, 3
    yield "", trained, train, 4, 2
    yield "", trained, train, 2, 4


def train(model, batches, dist):
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        optimizer.step()


from_other_weights = changed(train, "dist.broadcast(p.data, 0)", "pass")


def divided_by(number):
    return changed(train, "dist.get_world_size()", number)


def averaged_at_the_end(model, batches, dist):
    from_other_weights(model, batches, dist)
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()


def rank_0_alone_steps(model, batches, dist):
    begun = nn.Linear(3, 2)
    for p, q in zip(begun.parameters(), model.parameters(), strict=True):
        dist.broadcast(q.data, 0)
        p.data.copy_(q.data)
    if dist.get_rank() == 0:
        from_other_weights(model, batches, dist)
        return
    for x, y in batches:
        begun.zero_grad()
        nn.functional.mse_loss(begun(x), y).backward()
        for p in begun.parameters():
            dist.all_reduce(p.grad)


# 20.4


def whole(gradient_of_all, counts):
    """On ranks with so many examples: what each gets for the gradient of the mean over all of them."""
    engine.manual_seed(7)
    rows = [engine.randn(n, 3) for n in counts]
    expected = [x.mean(0) if len(x) else engine.zeros(3) for x in rows]  # the gradient of the mean of w @ x

    def work(link):
        return gradient_of_all(expected[link.rank].clone(), counts[link.rank], link)

    return {f"rank {rank}": g for rank, g in enumerate(pretend.run(len(counts), work)[0])}


def uneven_trial(gradient_of_all):
    yield "2 ranks with 4 examples each: what each returns", whole, gradient_of_all, (4, 4)
    yield "2 ranks with 4 and 1 examples", whole, gradient_of_all, (4, 1)
    yield "3 ranks with 5, 2 and 0 examples", whole, gradient_of_all, (5, 2, 0)
    yield "", whole, gradient_of_all, (0, 3)
    yield "", whole, gradient_of_all, (1, 2, 3, 4)


def gradient_of_all(gradient, n, dist):
    both = engine.cat([gradient * n, engine.tensor([float(n)])])
    dist.all_reduce(both)
    return both[:-1] / both[-1]


def weighted(gradient, n, dist):
    total = engine.tensor(float(n))
    gradient = gradient * n
    dist.all_reduce(gradient)
    dist.all_reduce(total)
    return gradient / total


# 20.5


def scattered(scatter, size, length):
    """Return what each rank makes of its parts, what the busiest one does, and whether its parts are left."""
    every = [
        [engine.arange(float(length)) + 10 * part + 100 * (rank + 1) for part in range(size)] for rank in range(size)
    ]

    def work(link):
        return scatter([part.clone() for part in every[link.rank]], link)

    found, links = pretend.run(size, work, pretend.Link)
    told = {f"rank {rank}": x for rank, x in enumerate(found)}
    sent, most = max(link.bytes for link in links), (size - 1) * length * 4
    told["bytes"] = "at most a part to each other rank" if sent <= most else f"the busiest rank sends {sent}"
    return told


def scatter_trial(scatter):
    yield "2 ranks: what each returns", scattered, scatter, 2, 2
    yield "3 ranks", scattered, scatter, 3, 2
    yield "4 ranks, parts of 3", scattered, scatter, 4, 3
    yield "", scattered, scatter, 5, 2
    yield "", scattered, scatter, 1, 3


def scatter(parts, link):
    right, left = (link.rank + 1) % link.size, (link.rank - 1) % link.size
    came = engine.empty_like(parts[0])
    for step in range(link.size - 1):
        give = (link.rank - 1 - step) % link.size
        link.swap(parts[give], right, came, left)
        parts[(give - 1) % link.size] += came
    return parts[link.rank]


as_in_the_lesson = changed(scatter, "link.rank - 1 - step", "link.rank - step")


def everything(parts, link):
    x = engine.stack(parts)
    whole_ring(x, link)
    return x[link.rank]


def straight(parts, link):
    """Send each part straight to the rank it belongs to: other messages, as many bytes."""
    mine, came = parts[link.rank].clone(), engine.empty_like(parts[0])
    for off in range(1, link.size):
        to, source = (link.rank + off) % link.size, (link.rank - off) % link.size
        link.swap(parts[to], to, came, source)
        mine += came
    return mine


def both_rounds(parts, link):
    """Do the whole all-reduce of the lesson, part by part."""
    as_in_the_lesson(parts, link)
    right, left = (link.rank + 1) % link.size, (link.rank - 1) % link.size
    for step in range(link.size - 1):
        give, take = (link.rank + 1 - step) % link.size, (link.rank - step) % link.size
        link.swap(parts[give], right, parts[take], left)
    return parts[link.rank]


def without_a_circle(parts, link):
    came = engine.empty_like(parts[0])
    for step in range(link.size - 1):
        link.swap(parts[link.rank - step - 1], link.rank + 1, came, link.rank - 1)
        parts[link.rank - step - 2] += came
    return parts[link.rank]


NOT_ADDED = "*Add* what comes to what is there."

STEPS = (
    Exercise(
        key="20.one_to_all",
        points=0,
        answer=one_to_all,
        trial=one_to_all_trial,
        wrong=mistakes(
            changed(one_to_all, "link.send(x, other)", "pass", "link.recv(x, 0)", ""),
            "Rank 0 has the sum, and the others do not: it has to send it back.",
            changed(one_to_all, "x += came", "x.copy_(came)"),
            f"{NOT_ADDED} `recv` writes over its tensor, so receive into a different one.",
            everybody_sends_first,
            "All ranks send first, so nobody receives, and all of them wait. Let rank 0 receive first.",
            changed(one_to_all, "link.send(x, other)", "pass", "x += came", "x += came; link.send(x, other)"),
            "Rank 0 sends too soon: the first ranks get a sum in which the others are missing.",
            changed(one_to_all, "x += came", "x = x + came"),
            "`x = x + came` makes a new tensor, and rank 0's own x stays as it was. Write into it: `x += came`.",
        ),
        hints=(
            "There are two kinds of ranks: 0, and the others. What does each kind do first, and what second?",
            "Rank 0: a loop over the others that receives into `came` and adds, and then a loop that sends. The "
            "others: `send`, then `recv`.",
            "if link.rank == 0:\n    for other in range(1, link.size):\n        link.recv(came, "
            "other)\n        x += came\n    ...\nelse:\n    link.send(x, 0)\n    link.recv(x, 0)",
        ),
    ),
    Exercise(
        key="20.tree",
        points=0,
        answer=tree,
        trial=tree_trial,
        wrong=mistakes(
            one_to_all,
            "The sum is right, but rank 0 still does everything by itself. Let pairs add up at the same time.",
            changed(tree, "reversed(gaps)", "()"),
            "Rank 0 has the sum. Now go back the same way: the gaps in reverse order, and each rank that sent "
            "receives.",
            changed(tree, "reversed(gaps)", "gaps"),
            "On the way back the largest gap comes first: rank 0 sends to the middle, and then both go on.",
            back_from_rank_0,
            "The way there is right. But on the way back rank 0 sends to all by itself: let each rank that has the sum "
            "send it on, gap by gap.",
            changed(tree, "link.recv(x, link.rank - gap)", "link.recv(came, link.rank - gap); x += came"),
            "On the way back you add what comes. It is the whole sum already, and takes the place of what is there.",
            changed(tree, "x += came", "pass"),
            NOT_ADDED,
        ),
        hints=(
            "Draw eight ranks, and how they add up. With a gap of 1, who sends to whom? With a gap of 2, who still "
            "takes part?",
            "On the way back everything is reversed: the order of the gaps, and who sends.",
            "for gap in reversed(gaps):\n    if link.rank % (2 * gap) == 0:\n        link.send(x, "
            "...)\n    elif link.rank % (2 * gap) == gap:\n        link.recv(x, ...)",
        ),
    ),
    Exercise(
        key="20.ring",
        points=0,
        answer=ring,
        trial=ring_trial,
        wrong=mistakes(
            changed(ring, "link.swap(parts[give], right, parts[take], left)", "pass"),
            "Each rank has one part of the sum. The second round, which hands the parts on, is missing, or does not "
            "write into `x`.",
            changed(
                ring,
                "(link.rank + 1 - step)",
                "(link.rank - step)",
                "(link.rank - step) % link.size\n        link.swap(parts[give], right, parts",
                "(link.rank - step - 1) % link.size\n        link.swap(parts[give], right, parts",
            ),
            "In the second round a rank first gives away the part that is finished: number `rank + 1`.",
            changed(ring, "right, parts[take], left)", "right, came, left); parts[take] += came"),
            "In the second round nothing is added: a finished part takes the place of an unfinished one.",
            changed(ring, "link.size - 1\n", "link.size - 2\n"),
            "A part has to visit all ranks: that takes `size - 1` steps, in each round.",
            changed(ring, "link.size - 1\n", "link.size\n"),
            "One step too many: a part that has gone all the way round is added a second time.",
            whole_ring,
            "The sum is right, but the whole tensor goes round in each step. Send one of the parts.",
            changed(
                ring,
                "link.swap(parts[give], right, came, left)",
                "link.send(parts[give], right); link.recv(came, left)",
            ),
            "All ranks send first, and nobody receives. `link.swap` does both at the same time.",
        ),
        hints=(
            "In the first round, which part does rank 2 give in step 0, and which does it get? And in step 1?",
            "In the second round a rank begins with the part that is finished, `rank + 1`, and receives each part "
            "straight into its place.",
            "for step in range(link.size - 1):\n    give, take = (link.rank + 1 - step) % link.size, "
            "(link.rank - step) % link.size\n    link.swap(parts[give], right, ..., left)",
        ),
    ),
)

EXERCISES = (
    Exercise(
        key="20.1",
        points=1,
        answer=by_pencil(N, BYTES),
        wrong=mistakes(
            (7, 56000, 3, 24000, 7, 7000),
            "This only counts the way *to* the sum. The sum has to go back to all ranks, too.",
            (14, 56000, 6, 24000, 14, 112000),
            "In the ring a message is not the whole tensor: it is one of 8 parts.",
        ),
        entries={
            1: (
                (7, "By then rank 0 has received from all the others. It has to send, too."),
                "Rank 0 receives from 7 others, and sends to 7.",
            ),
            2: (
                (8000, "That is one message. Rank 0 sends the sum to each of the 7 others."),
                (112000, "This counts what rank 0 receives as well."),
                "Rank 0 sends the sum, 8000 bytes, to each of the 7 others.",
            ),
            3: (
                (3, "Three steps to the sum. And back?"),
                "Pairs, fours, eights: three steps to the sum, and three back.",
            ),
            4: ((48000, "This counts what rank 0 receives as well."), "On the way back rank 0 sends three times."),
            5: (
                (7, "Seven steps, and each rank has one part of the sum. A second round hands them on."),
                "Two rounds, and each takes one step fewer than there are ranks.",
            ),
            6: ((7000, "That is one round. There are two."), "14 messages, each of one of the 8 parts."),
        },
        hints=(
            "Look at rank 0 alone, and count: how often does it receive, and how often does it send?",
            "One to all: 7 and 7. Tree: the 8 become 4, then 2, then 1. Ring: two rounds, of 7 steps each.",
            "Tree: 2 * 3 steps, and 3 messages of 8000 bytes that rank 0 sends. Ring: 14 messages of 8000 / 8 bytes.",
        ),
        understood=(
            "A tree takes few steps, and in a ring no rank sends many bytes: which is faster depends on the network "
            "and on the size."
        ),
    ),
    Exercise(
        key="20.2",
        points=1,
        answer=share,
        trial=share_trial,
        wrong=mistakes(
            lambda examples, rank, size: examples[rank::size],
            "The shares differ in length. A rank with one batch fewer would keep the others waiting for ever.",
            blocks,
            "The lengths are right. But rank r takes every `size`-th example, beginning with number r.",
            changed(padded, "examples[:missing]", "[examples[-1]] * missing"),
            "Fill up with the *first* examples, not with the last one again.",
            lambda examples, rank, size: examples[: len(examples) // size * size][rank::size],
            "You leave examples out (that is `drop_last=True`). Here, let some come twice instead.",
            changed(
                padded, "return (examples + examples[:missing])", "examples += examples[:missing]; return examples"
            ),
            "The shares are right. But `+=` (or `append`, `extend`) changes the list itself, and others use it, too. "
            "Make a new one: `examples + ...`.",
            changed(padded, "-len(examples) % size", "size - len(examples) % size"),
            "If the number of ranks divides the number of examples, nothing is missing.",
            lambda examples, rank, size: share(examples, (rank + 1) % size, size),
            "The share begins one too late. Rank r begins with number r.",
            lambda examples, rank, size: (examples + [None] * (-len(examples) % size))[rank::size],
            "`None` is not an example. Fill up with the first examples of the list.",
            changed(padded, "[:missing]", "[len(examples) - missing :]"),
            "You fill up from the end of the list. Repeat the *first* examples: `examples[:missing]`.",
            padded_each_by_itself,
            "With you, a rank that is short repeats its own first example. Instead, make the *list* longer by its "
            "first examples, and share that out.",
        ),
        properties=properties(
            appended_to,
            lambda did: "the list itself has changed" not in did.result,
            "Afterwards the list itself has changed, and others use it, too. Make a new one: `examples + ...`.",
        ),
        hints=(
            "How many examples must each rank have so that all examples are used, and all ranks have equally many?",
            "Make the list longer, by its first examples, until the number of ranks divides its length.",
            "missing = -len(examples) % size\npadded = examples + ...\nreturn padded[rank::size]",
        ),
        understood=(
            "All ranks have equally many examples, and so equally many steps. The price is that a few examples come "
            "twice."
        ),
    ),
    Exercise(
        key="20.3",
        points=2,
        answer=train,
        trial=train_trial,
        wrong=mistakes(
            from_other_weights,
            "The gradients are averaged. But the ranks start with different weights, so they stay apart.",
            changed(train, "p.grad /= dist.get_world_size()", ""),
            "Your gradients are the *sum* over the ranks. With two ranks each step is twice as long as it should be.",
            changed(train, "dist.broadcast(p.data, 0)", "pass", "p.grad /= dist.get_world_size()", ""),
            "Two things are still wrong: the ranks start with different weights, and the gradients are a sum, not a "
            "mean.",
            changed(train, "optimizer.step()", "", "backward()", "backward(); optimizer.step()"),
            "Each rank steps with its own gradient. Your mean comes too late, or goes into a tensor that nobody "
            "uses: put it into `p.grad`, before `step()`.",
            divided_by("dist.get_world_size() ** 2"),
            "You divide by the number of ranks twice: once before `all_reduce`, and once after it. Once is enough.",
            changed(train, "dist.broadcast(p.data, 0)", "dist.all_reduce(p.data)"),
            "You add up the first weights of all ranks. All should start with those of rank 0: `dist.broadcast(p, 0)`.",
            divided_by("2"),
            "You divide by 2, but there are not always two ranks: ask `dist.get_world_size()`.",
            rank_0_alone_steps,
            "Only rank 0 takes a step. The others have the same gradient, and should take the same step.",
            divided_by("(dist.get_rank() + 1)"),
            "You divide by `dist.get_rank()`, this rank's number. How *many* there are is `dist.get_world_size()`.",
            changed(train, "dist.all_reduce(p.grad)", "if p.ndim == 1: break\n            dist.all_reduce(p.grad)"),
            "Only the first parameter's gradient is averaged, so the ranks' biases drift apart.",
            changed(train, "dist.all_reduce(p.grad)", ""),
            "Each rank divides its own gradient. Nothing has been added up.",
            averaged_at_the_end,
            "You average the weights at the end. But on the way there, each rank took its gradients at a different "
            "place.",
            changed(train, "optimizer.zero_grad()", ""),
            "The gradients of the step before are still there: `zero_grad()` is missing.",
            divided_by("4"),
            "There are not always four ranks: ask `dist.get_world_size()`.",
            changed(train, "dist.broadcast(p.data, 0)", "dist.all_reduce(p.data); p.data /= dist.get_world_size()"),
            "All ranks start with the same weights, but those are the mean of all ranks'. They should be rank 0's.",
            changed(train, "dist.broadcast(p.data, 0)", "if dist.get_rank() == 0: dist.broadcast(p.data, 0)"),
            "`broadcast` is a collective: *all* ranks call it, without an `if`, and `0` says whose numbers they all "
            "get.",
            changed(
                averaged_at_the_end, "all_reduce(p.data)", "broadcast(p.data, 0)", "p.data /= dist.get_world_size()", ""
            ),
            "At the end all have the same weights. But on the way there, each rank took its gradients at a different "
            "place: send the weights before the loop.",
            changed(
                train, "dist.all_reduce(p.grad)", "dist.broadcast(p.grad, 0)", "p.grad /= dist.get_world_size()", ""
            ),
            "All ranks take rank 0's gradient, and what the others have computed is lost. Add up: `all_reduce`.",
            changed(train, "dist.broadcast(p.data, 0)", "dist.broadcast(p.data, dist.get_rank())"),
            "`broadcast(tensor, 0)`: all ranks name the same one, the one whose weights they all should have.",
        ),
        hints=(
            "Which weights does each rank start with? And what is in `p.grad` after `all_reduce`? Is it a mean?",
            "Before the loop, `dist.broadcast(p.data, 0)` for each parameter. After `all_reduce`, divide.",
            "for p in model.parameters():\n    dist.broadcast(p.data, 0)\n...\ndist.all_reduce(p.grad)\np.grad /= ...",
        ),
        understood=(
            "With the same start and the same mean gradients, all ranks stay alike without ever sending weights again."
        ),
    ),
    Exercise(
        key="20.4",
        points=2,
        answer=gradient_of_all,
        trial=uneven_trial,
        wrong=mistakes(
            changed(weighted, "gradient = gradient * n", "", "/ total", "/ dist.get_world_size()"),
            "The mean of the ranks' means: an example on a rank with few of them counts for more. Weight by `n`.",
            changed(weighted, "/ total", ""),
            "Weighted by `n`, it is a sum over examples. Divide by how many there are in all.",
            lambda gradient, n, dist: gradient / gradient_of_all(engine.ones(1) * n, 1, dist) / dist.get_world_size(),
            "You return this rank's own gradient, divided. Return the *sum* that `all_reduce` has made, divided by "
            "the number of all examples.",
            changed(weighted, "/ total", "/ dist.get_world_size()"),
            "You divide by the number of ranks. Divide by the number of examples of all ranks.",
            changed(weighted, "/ total", "/ (n or 1)"),
            "You divide by this rank's own `n`. How many examples are there on all ranks? One more `all_reduce` "
            "tells you.",
            changed(weighted, "/ total", "/ n"),
            "You divide by this rank's own `n`, which may be 0. How many examples are there on all ranks? One more "
            "`all_reduce` tells you.",
            changed(weighted, "gradient = gradient * n", ""),
            "You divide by the number of examples, but you add up means. Multiplied by `n`, each of them is a sum.",
            changed(
                weighted,
                "dist.all_reduce(g",
                "gradient = dist.all_reduce(g",
                "dist.all_reduce(t",
                "total = dist.all_reduce(t",
            ),
            "`dist.all_reduce` adds up in place and returns nothing: call it on a line of its own, and go on with "
            "the tensor.",
            changed(weighted, "engine.tensor(float(n))", "n"),
            "`n` is a plain number, and `all_reduce` adds up tensors: turn it into one, `engine.tensor(float(n))`.",
            lambda gradient, n, dist: weighted(gradient, n, dist) if n else gradient,
            "A rank without examples never calls `all_reduce`, and all the others wait for it. Let it take part with "
            "zeros.",
            changed(weighted, "gradient = gradient * n", "", "float(n)", "float(n > 0)"),
            "You divide by the number of ranks that have examples. A mean over 4 still counts as much as one over 1.",
        ),
        hints=(
            "With 4 and 1 examples, how much should each rank's mean count?",
            "`gradient * n` is a sum over examples. Add up these sums over the ranks, and add up the `n` of all ranks.",
            "total = engine.tensor(float(n))\ndist.all_reduce(total)\ngradient = gradient * "
            "n\n...\nreturn gradient / total",
        ),
        understood=(
            "Weighted by their numbers of examples, parts of any size add up to the whole. And every rank takes "
            "part, even with no examples."
        ),
    ),
    Exercise(
        key="20.5",
        points=2,
        answer=straight,
        trial=scatter_trial,
        wrong=mistakes(
            as_in_the_lesson,
            "Nothing has been added to the part that you return. The lesson's first round finishes part `rank + 1` "
            "here: begin one part earlier, and take `size - 1` steps.",
            changed(
                scatter,
                "link.rank - 1 - step",
                "link.rank - step",
                "parts[link.rank]",
                "parts[(link.rank + 1) % link.size]",
            ),
            "The part is finished, but it is the next one: rank r should return part r. Begin one part earlier.",
            everything,
            "The sum is right, but you send all the parts in each step. One part a step is enough.",
            changed(scatter, "+= came", "= came.clone()"),
            NOT_ADDED,
            changed(scatter, "range(link.size - 1)", "range(link.size)"),
            "The sums are right. But a rank sends as many parts as there are ranks, which is one too many. It takes "
            "`size - 1` steps, with one part in each.",
            lambda parts, link: sum(parts),
            "You add up your own parts, and nothing is sent. Add up part `rank` of *all* ranks.",
            lambda parts, link: straight(parts, link) / link.size,
            "That is the mean over the ranks. Return their *sum*.",
            changed(scatter, "parts[link.rank]", "parts[link.rank - 1]"),
            "You return the part of the rank before: rank r should return part r.",
            changed(scatter, "parts[link.rank]", "parts[0]"),
            "You return the same part on every rank. Rank r should return part r: `parts[link.rank]`.",
            changed(
                scatter,
                "came = ",
                "own = parts[link.rank].clone(); came = ",
                "return parts[link.rank]",
                "return parts[link.rank] - own",
            ),
            "You return what came in the last step, and leave out what this rank itself adds: return "
            "`parts[link.rank]`.",
            changed(scatter, "right, came, left", "left, came, right"),
            "You give to the left, but count the parts as if they went to the right: then different parts are added "
            "to each other. Change one of the two.",
            without_a_circle,
            "After the last rank comes rank 0: `(link.rank + 1) % link.size` closes the circle. The same goes for "
            "the numbers of the parts.",
        ),
        properties=properties(
            both_rounds,
            lambda did: (
                did.result["bytes"] == did.expected["bytes"]
                or not all((did.result[one] == did.expected[one]).all() for one in did.expected if one != "bytes")
            ),
            "The sums are right. But a rank sends more than `size - 1` parts. The first round of the ring alone is "
            "enough, with one part a step.",
        ),
        hints=(
            "It is the first round of the ring. Which part did each rank finish there?",
            "To finish part `rank`, begin by giving `rank - 1` instead of `rank`.",
            "for step in range(link.size - 1):\n    give, take = (link.rank - 1 - step) % link.size, "
            "...\n    link.swap(parts[give], right, came, left)\n    parts[take] += came",
        ),
        understood=(
            "This half of an all-reduce is called reduce-scatter. A rank that keeps only a part of the weights needs "
            "only its part of the sum."
        ),
    ),
)
