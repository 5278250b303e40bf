"""The gradient of a leaf, told path by path: BackwardStepper's question, and its words for each answer."""

from collections.abc import Iterator, Mapping
from math import isfinite, prod
from typing import Any, NamedTuple

from engine import viz

MOST = 8  # paths to one leaf; with more of them nobody finds out by pencil


class Path(NamedTuple):
    """One route from the result to a leaf: the names of what it goes through, and the slope of each step."""

    through: tuple[str, ...]
    slopes: tuple[float, ...]

    @property
    def product(self) -> float:
        return prod(self.slopes)

    @property
    def words(self) -> str:
        return f"the path through {', '.join(self.through)}" if self.through else "the straight path"


class Question(NamedTuple):
    """A question before the backward pass begins, and the words for each answer that somebody may give."""

    ask: str
    answers: tuple[tuple[float, bool, str], ...]  # a number, whether it is right, what to say; the first that fits
    otherwise: str
    told: str  # to one who does not want to answer


def question(leaf: str, paths: list[Path]) -> Question:
    parts = [short(path.product) for path in paths]
    total = sum(path.product for path in paths)
    worked = "; ".join(f"along {path.words} comes {product_of(path)}" for path in paths)
    added = "" if len(paths) == 1 else f" {added_up(parts)} = {short(total)}."
    right = f"{worked[0].upper()}{worked[1:]}.{added}"
    return Question(
        f"What arrives at {leaf}?",
        ((total, True, right), *wrong(leaf, paths, total)),
        f"That is not it. Begin with 1 at the result and follow the arrows back to {leaf}. "
        "Multiply along a path, and add where paths meet.",
        right,
    )


def wrong(leaf: str, paths: list[Path], total: float) -> Iterator[tuple[float, bool, str]]:
    """Yield the mistakes that people make, each with its own words."""
    if len(paths) > 1:
        yield from (
            (
                total - path.product,
                False,
                f"You forgot {path.words}. {len(paths)} paths lead to {leaf}: add what comes along each of them.",
            )
            for path in paths
        )
        if len(paths) > 2:
            for path in paths:
                yield path.product, False, f"That is what comes along {path.words}. There are {len(paths)} paths."
        product = prod(path.product for path in paths)
        yield product, False, "You multiplied where paths meet. Multiply along a path, and add where paths meet."
    for path in paths:
        if len(path.slopes) > 1:
            others = total - path.product
            said = f"Along {path.words} the slopes are multiplied, not added."
            yield sum(path.slopes) + others, False, said
            said = f"On {path.words} you took only the last slope. Multiply it by what arrives there."
            yield path.slopes[-1] + others, False, said
    yield -total, False, "The size is right, the sign is not."
    yield 1.0, False, "1 is what backward() begins with, at the result."


def short(x: float) -> str:
    return viz.brief(float(x))


def product_of(path: Path) -> str:
    """Return the product along a path, worked out."""
    slopes = [short(s) for s in path.slopes]
    if len(slopes) == 1:
        return slopes[0]
    return f"{' × '.join(bracketed(s, i) for i, s in enumerate(slopes))} = {short(path.product)}"


def added_up(parts: list[str]) -> str:
    """1 + 3, or 1 + (-3)."""
    return " + ".join(bracketed(part, i) for i, part in enumerate(parts))


def bracketed(part: str, place: int = 1) -> str:
    return f"({part})" if part.startswith("-") and place else part


def paths_to(
    leaf: Any, edges: Mapping[Any, list[tuple[Any, float]]], names: Mapping[Any, str], root: Any
) -> list[Path] | None:
    """Return the paths from the root to a leaf; ``edges``: {node: [(where to, slope)]}.  None: too many."""
    found: list[Path] = []
    todo: list[tuple[Any, tuple[str, ...], tuple[float, ...]]] = [(root, (), ())]
    looked = 0
    while todo:
        looked += 1
        if looked > 200 or len(found) > MOST:
            return None
        node, through, slopes = todo.pop()
        if node is leaf:
            found.append(Path(through[1:], slopes))  # that the result is on it goes without saying
            continue
        for to, slope in edges.get(node, ()):
            if not isfinite(slope):
                return None
            todo.append((to, (*through, names[node]), (*slopes, slope)))
    return sorted(found, key=lambda path: len(path.slopes))
