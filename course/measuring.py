"""What a lesson measures: what notes keep alive, the highest mark of memory, the shortest of several times."""

import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import engine

MIB = 1024**2


def saved_by(result: engine.Tensor) -> Iterator[engine.Tensor]:
    """Yield the tensors that the nodes behind a result keep, some of them more than once."""
    seen, waiting = set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        saved = (getattr(node, name) for name in dir(node) if name.startswith("_saved_"))
        yield from (tensor for tensor in saved if isinstance(tensor, engine.Tensor))
        waiting += [parent for parent, _ in node.next_functions]


def kept(result: engine.Tensor, besides: Iterable[engine.Tensor] = ()) -> float:
    """Measure how many MiB the notes behind a result keep alive, not counting tensors that live in any case.

    What two nodes keep together is counted once.
    """
    there_anyway = {tensor.data_ptr() for tensor in besides}
    found = {tensor.data_ptr(): tensor.nbytes for tensor in saved_by(result)}
    return sum(size for place, size in found.items() if place not in there_anyway) / MIB


def highest_mark(work: Callable[[], Any]) -> float:
    """Measure the most memory that Python and NumPy hold at any moment during some work, in MiB."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def shortest(work: Callable[[], Any], times: int = 5) -> float:
    """Measure the shortest time that some work takes in several runs, in milliseconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    return min(taken)
