"""Ranks that are threads: what is sent arrives, and what cannot go on is told and waits for nobody."""

import pytest
from over_tables import over

import engine
from course import cluster
from course.judging import pretend


def ring(link):
    """Each sends its number to the next, and hears of the one before."""
    heard = engine.zeros(1)
    link.swap(engine.tensor([float(link.rank)]), (link.rank + 1) % link.size, heard, (link.rank - 1) % link.size)
    return heard.item()


def ring_in_place(link):
    x = engine.tensor([float(link.rank)])
    link.swap(x, (link.rank + 1) % link.size, x, (link.rank - 1) % link.size)
    return x.item()


def in_turn(link):
    if link.rank == 0:
        for text in (1.0, 2.0):
            link.send(engine.tensor([text]), 1)
        return []
    heard = [engine.zeros(1), engine.zeros(1)]
    for x in heard:
        link.recv(x, 0)
    return [x.item() for x in heard]


def together(link):
    x, y = engine.tensor([link.rank + 1.0]), engine.tensor([link.rank + 1.0])
    link.all_reduce(x)
    link.broadcast(y, 2)
    return x.item(), y.item()


@over(
    "size, work, results, steps, sent",
    [
        (3, ring, [2.0, 0.0, 1.0], [1, 1, 1], [4, 4, 4]),
        (3, ring_in_place, [2.0, 0.0, 1.0], [1, 1, 1], [4, 4, 4]),
        (2, in_turn, [[], [1.0, 2.0]], [2, 2], [8, 0]),
        (3, together, [(6.0, 3.0)] * 3, [0] * 3, [0] * 3),
        (2, lambda link: (link.get_rank(), link.get_world_size()), [(0, 2), (1, 2)], [0, 0], [0, 0]),
    ],
)
def test_what_is_sent_arrives_in_its_order_and_is_counted(size, work, results, steps, sent):
    found, links = pretend.run(size, work)
    assert found == results
    assert ([link.steps for link in links], [link.bytes for link in links]) == (steps, sent)


def of_rank(*works):
    return lambda link: works[link.rank](link)


def send(to, size=1):
    return lambda link: link.send(engine.ones(size), to)


def recv(source):
    return lambda link: link.recv(engine.zeros(2), source)


def all_reduce(size=1):
    return lambda link: link.all_reduce(engine.ones(size))


def fails(link):
    raise ZeroDivisionError("of rank 1")


def nothing(link):
    return None


@over(
    "works, error, says",
    [
        ((send(1), send(0)), pretend.Deadlock, "rank 0 in send to rank 1, rank 1 in send to rank 0 wait$"),
        ((recv(1), nothing), pretend.Deadlock, "rank 0 in recv from rank 1 waits; rank 1 at the end$"),
        ((recv(1), nothing, nothing), pretend.Deadlock, "waits; ranks 1, 2 at the end$"),
        ((recv(1), fails), ZeroDivisionError, "of rank 1"),
        ((send(1, 3), recv(0)), RuntimeError, "recv: rank 0 has sent 3 numbers, where there is room for 2"),
        ((all_reduce(), lambda link: link.broadcast(engine.ones(1), 0)), RuntimeError,
         "not all ranks call the same: all_reduce and broadcast from rank 0"),
        ((all_reduce(2), all_reduce(3)), RuntimeError, "all_reduce: not all ranks bring tensors of the same shape"),
        ((send(0), nothing), ValueError, "rank 0 sends to rank 0: the others are those of 0 to 1"),
        ((send(2), nothing), ValueError, "rank 0 sends to rank 2"),
        ((recv(-1), nothing), ValueError, "rank 0 receives from rank -1"),
        ((send(1.0), nothing), ValueError, "rank 0 sends to rank 1.0"),
    ],
)  # fmt: skip
def test_what_cannot_go_on_is_told_and_nobody_waits_for_ever(works, error, says):
    with pytest.raises(error, match=says):
        pretend.run(len(works), of_rank(*works))


def test_a_link_has_the_methods_of_the_lessons_link_and_no_others():
    ours, theirs = ({name for name in dir(link) if name[0] != "_"} for link in (pretend.Link, cluster.Link))
    assert ours == theirs


def test_python_without_threads_says_so(monkeypatch):
    monkeypatch.setattr(pretend.threads, "IN_BROWSER", True)
    with pytest.raises(pretend.NoThreads):
        pretend.run(2, nothing)
