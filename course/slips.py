"""Slips: the worked solution with one small mistake built in, anywhere, and what it is called.

What an attempt gives is compared with what each of these gives, where nothing else has a sentence for it. They are
made by rules, not by an author, so that they know mistakes that nobody has foreseen.
"""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

SWAPPED_OPERATORS = {
    ast.Add: (ast.Sub, "a plus and a minus have changed places"),
    ast.Sub: (ast.Add, "a plus and a minus have changed places"),
    ast.Mult: (ast.Div, "something is multiplied that should be divided, or the other way round"),
    ast.Div: (ast.Mult, "something is multiplied that should be divided, or the other way round"),
    ast.MatMult: (ast.Mult, "`*` stands where `@` belongs"),
}
BORDERS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITES = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SWAPPED_NAMES = [
    ("sum", "mean"), ("min", "max"), ("argmin", "argmax"), ("amin", "amax"), ("zeros", "ones"), ("exp", "log"),
    ("zeros_like", "ones_like"), ("vjp", "jvp"), ("all", "any"), ("relu", "abs"), ("view", "permute"),
    ("reshape", "permute"), ("stack", "cat"), ("append", "extend"), ("detach", "clone"), ("floor", "ceil"), ("floor", "round"),
]  # fmt: skip


class Slip(NamedTuple):
    """A mistake: what it is, and the code that has it."""

    says: str
    source: str


def slips(source: str) -> Iterator[Slip]:
    """Each slip in a piece of code once; what comes out the same as before is among them."""
    tree = ast.parse(source)
    seen = {ast.unparse(tree)}
    for place, node in enumerate(ast.walk(tree)):
        for says, change in _changes(node):
            changed = copy.deepcopy(tree)
            there = next(part for number, part in enumerate(ast.walk(changed)) if number == place)
            try:
                change(there)
                text = ast.unparse(ast.fix_missing_locations(changed))
                compile(text, "slip", "exec")
            except (SyntaxError, ValueError, TypeError, AttributeError):
                continue
            if text not in seen:
                seen.add(text)
                yield Slip(says, text)


def _become(node: ast.AST, other: ast.AST) -> None:
    """A node turns into another one, where it stands."""
    other = copy.deepcopy(other)
    node.__class__ = other.__class__  # type: ignore[assignment]
    node.__dict__.clear()
    node.__dict__.update(other.__dict__)


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:  # (what it is, a function that changes this node)
    if isinstance(node, ast.BinOp):
        if type(node.op) in SWAPPED_OPERATORS:
            other, says = SWAPPED_OPERATORS[type(node.op)]
            yield says, lambda n: setattr(n, "op", other())
        what = {ast.Add: "a term", ast.Sub: "a term", ast.Mult: "a factor", ast.Div: "a division", ast.Pow: "a power"}
        if type(node.op) in what:
            yield f"{what[type(node.op)]} is left out", lambda n: _become(n, n.left)
            if not isinstance(node.op, ast.Pow | ast.Div):
                yield f"{what[type(node.op)]} is left out", lambda n: _become(n, n.right)
        if isinstance(node.op, ast.Sub | ast.Div | ast.Pow | ast.MatMult):
            yield "two things are the wrong way round", _swap_sides
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "a minus is left out" if isinstance(node.op, ast.USub) else "a `not` is left out", lambda n: _become(n, n.operand)
    if isinstance(node, ast.Return | ast.Assign) and node.value is not None and not isinstance(node.value, ast.Tuple):
        yield "the sign is the opposite", lambda n: setattr(n, "value", ast.UnaryOp(ast.USub(), n.value))
    if isinstance(node, ast.Constant) and type(node.value) is int:
        for step in (1, -1):
            yield "a number is off by one (an index, a count or a border)", lambda n, s=step: setattr(n, "value", n.value + s)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "True stands where False belongs, or the other way round", lambda n: setattr(n, "value", not n.value)
    if isinstance(node, ast.Call):
        yield from _in_calls(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        op = type(node.ops[0])
        if op in BORDERS:
            yield "at the border: `<` or `<=`, `>` or `>=`?", lambda n: setattr(n, "ops", [BORDERS[op]()])
        if op in OPPOSITES:
            yield "a question is asked the wrong way round", lambda n: setattr(n, "ops", [OPPOSITES[op]()])
    if isinstance(node, ast.If) and not node.orelse:
        yield "an `if` is left out", lambda n: setattr(n, "test", ast.Constant(True))
    if isinstance(node, ast.If | ast.IfExp):
        yield "an exception to the rule is left out", lambda n: setattr(n, "test", ast.Constant(False))
    if isinstance(node, ast.IfExp):
        yield "a condition is left out", lambda n: setattr(n, "test", ast.Constant(True))
    if isinstance(node, ast.AugAssign):
        yield "`=` stands where `+=` or the like belongs", lambda n: _become(n, ast.Assign([n.target], n.value))
        if type(node.op) in SWAPPED_OPERATORS:
            other, says = SWAPPED_OPERATORS[type(node.op)]
            yield says, lambda n: setattr(n, "op", other())
    if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
        yield "the parts are in the opposite order", lambda n: n.elts.reverse()
        if isinstance(node, ast.Tuple):
            for k in range(len(node.elts)):
                yield "only one of several things is given", lambda n, k=k: _become(n, n.elts[k])
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield "an index or a slice is left out", lambda n: _become(n, n.value)
    if isinstance(node, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(node, bound) is not None:
                yield "a slice goes to the end, or begins at the start", lambda n, b=bound: setattr(n, b, None)
    if isinstance(node, ast.With):
        name = ast.unparse(node.items[0].context_expr)
        yield f"`with {name}` is left out", lambda n: setattr(n, "items", [ast.withitem(_NOTHING)])
    for field in ("body", "orelse"):
        if isinstance(block := getattr(node, field, None), list) and not isinstance(node, ast.Module):
            yield from _in_blocks(field, block)
    if isinstance(node, ast.FunctionDef):
        yield from _other_names(node)


_NOTHING = ast.parse("__import__('contextlib').nullcontext()", mode="eval").body


def _swap_sides(node: ast.BinOp) -> None:
    node.left, node.right = node.right, node.left


def _in_calls(node: ast.Call) -> Iterator[tuple[str, object]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if isinstance(node.func, ast.Attribute):
        yield f"`{name}` is left out", lambda n: _become(n, n.func.value)
    if len(node.args) == 1 and not node.keywords:
        yield f"`{name}` is left out", lambda n: _become(n, n.args[0])
    if len(node.args) == 2:
        yield f"the two things that `{name}` is given are the wrong way round", lambda n: n.args.reverse()
    for place, keyword in enumerate(node.keywords):
        yield f"`{keyword.arg}=` is left out", lambda n, p=place: n.keywords.pop(p)
        if keyword.arg == "dim":
            for dim in (0, 1, -1):
                yield "it goes along another dimension", lambda n, p=place, d=dim: setattr(n.keywords[p], "value", ast.Constant(d))
    for pair in SWAPPED_NAMES:
        if name in pair:
            other = pair[1 - pair.index(name)]
            of = "attr" if isinstance(node.func, ast.Attribute) else "id"
            yield f"`{other}` is taken for `{name}`", lambda n, o=other, a=of: setattr(n.func, a, o)


def _in_blocks(field: str, block: list[ast.stmt]) -> Iterator[tuple[str, object]]:
    for place, line in enumerate(block):
        if isinstance(line, ast.Expr | ast.AugAssign | ast.Assign | ast.For | ast.While) and not _is_text(line):
            says = _left_out(line)
            yield says, lambda n, p=place: getattr(n, field).__setitem__(p, ast.Pass())
        if isinstance(line, ast.For | ast.While):
            if place + 1 < len(block):
                yield "what should happen once, after the loop, happens in each round", lambda n, p=place: _into(getattr(n, field), p)
            yield "what should happen in each round happens once, after the loop", lambda n, p=place: _out_of(getattr(n, field), p)
        if isinstance(line, ast.For):
            yield "the loop ends after its first round", lambda n, p=place: getattr(n, field)[p].body.append(ast.Break())
        if place and isinstance(line, ast.Expr | ast.AugAssign | ast.Assign):
            yield "two steps are in the wrong order", lambda n, p=place: _exchanged(getattr(n, field), p)


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _left_out(line: ast.stmt) -> str:
    call = getattr(line, "value", None)
    if isinstance(line, ast.Expr) and isinstance(call, ast.Call):
        return f"`{ast.unparse(call.func).rpartition('.')[2]}` is not called"
    if isinstance(line, ast.Assign) and isinstance(target := line.targets[0], ast.Attribute):
        return f"`.{target.attr}` is not set"
    return "a step is left out"


def _into(block: list[ast.stmt], place: int) -> None:
    block[place].body.extend(block[place + 1 :])  # type: ignore[attr-defined]
    del block[place + 1 :]


def _out_of(block: list[ast.stmt], place: int) -> None:
    last = block[place].body.pop()  # type: ignore[attr-defined]
    block[place].body = block[place].body or [ast.Pass()]  # type: ignore[attr-defined]
    block.insert(place + 1, last)


def _exchanged(block: list[ast.stmt], place: int) -> None:
    block[place - 1], block[place] = block[place], block[place - 1]


def _other_names(function: ast.FunctionDef) -> Iterator[tuple[str, object]]:
    """Each use of an argument, with another argument in its place."""
    names = [argument.arg for argument in function.args.args]
    used = [part for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    for number, part in enumerate(used):
        for other in names:
            if part.id in names and other != part.id:
                yield f"`{other}` stands where `{part.id}` belongs", lambda n, k=number, o=other: _rename(n, k, o)


def _rename(function: ast.FunctionDef, number: int, name: str) -> None:
    used = [part for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    used[number].id = name
