"""Ranks that are threads of one process: what checks give to a learner's function that talks to other ranks.

A message is handed over when both are there, as a large tensor is: who sends first on all ranks waits for ever. Nobody
waits for ever here, since it is known when all wait.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from engine.arrays import threads

NO_THREADS = "its ranks are threads, which Python in a browser has not: try it in the course on your own computer."


class NoThreads(BaseException):  # nothing of an attempt's own, which would be an Exception
    """There are no threads here."""


class Deadlock(RuntimeError):
    """All ranks that are left wait for each other."""


class Over(Exception):
    """Another rank has failed, so this one need not go on."""


class World:
    """The meeting place of ranks that are threads."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.news = threading.Condition()
        self.offers: dict[tuple[int, int], list[Any]] = {}  # (from, to): what somebody holds out
        self.waiting: dict[int, tuple[str, Callable[[], bool]]] = {}
        self.left: set[int] = set(range(size))
        self.meetings: dict[int, dict[int, tuple[str, Any]]] = {}  # by number: what each rank has brought
        self.over: Exception | None = None

    def wait(self, rank: int, where: str, ready: Callable[[], bool]) -> None:
        """Until it is ready, with ``news`` held. Raises Over where that cannot be any more."""
        self.waiting[rank] = where, ready
        while not ready():
            if self.over is None and all(other in self.waiting and not self.waiting[other][1]() for other in self.left):
                said = [f"rank {r} in {self.waiting[r][0]}" for r in sorted(self.left)]
                gone = sorted(set(range(self.size)) - self.left)
                ended = (
                    f"; {'rank' if len(gone) == 1 else 'ranks'} {', '.join(map(str, gone))} at the end" if gone else ""
                )
                self.over = Deadlock(f"nobody can go on: {', '.join(said)} wait{'s' * (len(said) == 1)}{ended}")
                self.news.notify_all()
            if self.over is not None:
                raise Over
            self.news.wait()
        del self.waiting[rank]

    def leave(self, rank: int, error: Exception | None) -> None:
        with self.news:
            self.left.discard(rank)
            self.waiting.pop(rank, None)
            if error is not None and self.over is None:
                self.over = error
            self.news.notify_all()

    def meet(self, rank: int, number: int, what: str, brought: Any) -> list[tuple[str, Any]]:
        """Return what all ranks have brought to their meeting of this number."""
        with self.news:
            there = self.meetings.setdefault(number, {})
            there[rank] = what, brought
            self.news.notify_all()
            self.wait(rank, what, lambda: len(there) == self.size)
            self.news.notify_all()
            return [there[r] for r in range(self.size)]


class Link:
    """The ``Link`` of lesson 20 for one of these ranks."""

    def __init__(self, world: World, rank: int) -> None:
        self.world, self.rank, self.size = world, rank, world.size
        self.steps = self.bytes = self.number = 0

    def _known(self, other: Any, what: str) -> int:
        if not isinstance(other, int) or not 0 <= other < self.size or other == self.rank:
            raise ValueError(f"rank {self.rank} {what} rank {other}: the others are those of 0 to {self.size - 1}")
        return other

    def _offer(self, x: Any, to: int) -> list[Any]:
        offer = [x, False]
        with self.world.news:
            self.world.offers.setdefault((self.rank, to), []).append(offer)
            self.world.news.notify_all()
        self.bytes += x.nbytes
        return offer

    def _taken(self, offer: list[Any], to: int) -> None:
        with self.world.news:
            self.world.wait(self.rank, f"send to rank {to}", lambda: offer[1])

    def _take(self, x: Any, source: int) -> None:
        offers = self.world.offers.setdefault((source, self.rank), [])
        with self.world.news:
            self.world.wait(self.rank, f"recv from rank {source}", lambda: bool(offers))
            offer = offers.pop(0)
            if tuple(offer[0].shape) != tuple(x.shape):
                raise RuntimeError(
                    f"recv: rank {source} has sent {offer[0].numel()} numbers, where there is room for {x.numel()}"
                )
            x.copy_(offer[0])
            offer[1] = True
            self.world.news.notify_all()

    def send(self, x: Any, to: Any) -> None:
        """Send a tensor to a rank."""
        self._taken(self._offer(x, self._known(to, "sends to")), to)
        self.steps += 1

    def recv(self, x: Any, source: Any) -> None:
        """Wait for a tensor from a rank; it is written into ``x``."""
        self._take(x, self._known(source, "receives from"))
        self.steps += 1

    def swap(self, out: Any, to: Any, into: Any, source: Any) -> None:
        """Send one tensor and receive another at the same time."""
        offer = self._offer(out.clone(), self._known(to, "sends to"))
        self._take(into, self._known(source, "receives from"))
        self._taken(offer, to)
        self.steps += 1


class Rank(Link):
    """The same, with what a training loop needs of ``engine.distributed``."""

    def get_rank(self) -> int:
        """This process' number."""
        return self.rank

    def get_world_size(self) -> int:
        """Return the number of ranks."""
        return self.size

    def _together(self, what: str, tensor: Any) -> list[Any]:
        self.number += 1
        found = self.world.meet(self.rank, self.number, what, tensor.detach().clone())
        kinds = sorted({each for each, _ in found})
        if len(kinds) > 1:
            raise RuntimeError(f"not all ranks call the same: {' and '.join(kinds)}")
        if len({tuple(t.shape) for _, t in found}) > 1:
            raise RuntimeError(f"{what}: not all ranks bring tensors of the same shape")
        return [t for _, t in found]

    def all_reduce(self, tensor: Any) -> None:
        """Replace each rank's tensor by the sum of all."""
        tensor.detach().copy_(sum(self._together("all_reduce", tensor)))

    def broadcast(self, tensor: Any, src: int) -> None:
        """Replace each rank's tensor by that of the rank ``src``."""
        tensor.detach().copy_(self._together(f"broadcast from rank {src}", tensor)[src])


def run(size: int, work: Callable[[Any], Any], kind: type[Link] = Rank) -> tuple[list[Any], list[Link]]:
    """``work(link)`` on each of so many ranks: what each returns, and the links. Raises what the first rank raised."""
    world = World(size)
    links = [kind(world, rank) for rank in range(size)]
    results: list[Any] = [None] * size

    def one(link: Link) -> None:
        error: Exception | None = None
        try:
            results[link.rank] = work(link)
        except Exception as raised:
            error = raised
        world.leave(link.rank, error)

    ranks = [threading.Thread(target=one, args=(link,), daemon=True) for link in links]
    _together(ranks)
    if world.over is not None:
        raise world.over
    return results, links


def _together(ranks: Iterable[threading.Thread]) -> None:
    if threads.IN_BROWSER:
        raise NoThreads
    begun = list(ranks)
    for thread in begun:
        thread.start()
    for thread in begun:
        thread.join()
