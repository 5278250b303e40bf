"""Find answers that are the same except for names, spaces and comments. None of them is run."""

import ast
import builtins
import collections
from collections.abc import Mapping
from typing import NamedTuple

LEAST = 40  # nodes of its syntax tree: two people may write shorter code alike without copying
COMMON = 4  # if more than a quarter of those who answered write the same, it is the usual way


class Group(NamedTuple):
    """People who share answers that few others have."""

    people: tuple[str, ...]
    exercises: tuple[str, ...]
    to_the_letter: tuple[str, ...]  # those among them whose names, spaces and comments are the same, too


def form(source: str) -> str | None:
    """Return what is left of code without its own names, comments, docstrings and annotations; None for short code.

    If a function is defined twice, the last definition is left. Code that does not parse has no form.
    """
    tree = _parsed(source)
    if tree is None or sum(1 for _ in ast.walk(tree)) < LEAST:
        return None
    return _dumped(tree)


def _parsed(source: str) -> ast.Module | None:
    from course.judging.sources import UNREADABLE, as_python

    try:
        tree = ast.parse(as_python(source))
    except UNREADABLE:
        return None
    last = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    defined = ast.FunctionDef | ast.ClassDef
    tree.body = [part for part in tree.body if not isinstance(part, defined) or last[part.name] is part]
    for part in ast.walk(tree):
        if isinstance(part, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            part.body = [line for line in part.body if not _is_text(line)] or [ast.Pass()]
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            part.returns = None
        if isinstance(part, ast.arg):
            part.annotation = None
    return tree


def _is_text(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)


def _dumped(tree: ast.Module) -> str:
    """Dump the tree as text in which each name that the code binds is a number, in order of appearance."""
    own = {name for part in ast.walk(tree) for name in _bound(part)} - set(dir(builtins))
    numbers: dict[str, str] = {}
    for part in ast.walk(tree):
        for field in ("id", "arg", "name", "asname"):
            name = getattr(part, field, None)
            if isinstance(name, str) and name in own and not (field == "name" and isinstance(part, ast.alias)):
                setattr(part, field, numbers.setdefault(name, f"name {len(numbers)}"))
    return ast.dump(tree)


def _bound(part: ast.AST) -> list[str]:
    if isinstance(part, ast.Name):
        return [part.id] if isinstance(part.ctx, ast.Store) else []
    if isinstance(part, ast.arg):
        return [part.arg]
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [part.name]
    if isinstance(part, ast.alias):
        return [part.asname] if part.asname else []
    return [part.name] if isinstance(part, ast.ExceptHandler) and part.name else []


def groups(answers: Mapping[str, Mapping[str, str]], known: Mapping[str, list[str]]) -> list[Group]:
    """Find people who share answers, most exercises first.

    `answers`: for each exercise what each person wrote; `known`: what nobody needs to copy from a neighbour, the blank
    cell and the worked solution. An answer that more than a quarter of those who answered wrote is set aside.
    """
    shared = collections.defaultdict[tuple[str, ...], list[str]](list)
    for exercise, cells in answers.items():
        aside = {form(source) for source in known.get(exercise, [])}
        by_form = collections.defaultdict[str, list[str]](list)
        for who, source in cells.items():
            if (found := form(source)) and found not in aside:
                by_form[found].append(who)
        answered = sum(map(len, by_form.values()))
        for people in by_form.values():
            if 1 < len(people) <= max(COMMON - 1, answered // 4):
                shared[tuple(sorted(people))].append(exercise)
    together = list[Group]()
    for group, there in shared.items():
        same = [exercise for exercise in there if len({answers[exercise][who].strip() for who in group}) == 1]
        together.append(Group(group, tuple(there), tuple(same)))
    return sorted(together, key=lambda group: (-len(group.exercises), -len(group.to_the_letter), group.people))
