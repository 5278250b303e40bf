"""MemoryExplorer's steps: each is one operation as it is typed after a tensor's name, such as `.T` or `[:, 1]`."""

import ast
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import engine

Index = tuple[int, ...]
MOST = 48  # numbers that a tensor may have, to be drawn
CALLS = ("reshape", "view", "permute", "transpose", "expand", "flatten", "unsqueeze", "squeeze", "clone", "contiguous")
GRAMMAR = (
    "Write what comes after the tensor's name: .T, an index such as [:, 1], one of "
    + ", ".join(f".{name}(...)" for name in (*CALLS, "as_strided"))
    + ", or a sum or product with a number."
)
ERRORS = (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError)


class Looked(NamedTuple):
    """The outcome of the steps: the tensor begun with, the one now, and the memory of both."""

    first: Any
    now: Any
    memory: Any  # of the one now, as a row
    code: str  # how the one now is written
    copied: bool  # whether it has memory of its own
    error: str = ""  # why the last step changed nothing
    asked: Index = ()  # the shape that `view` could not give
    wrote: tuple[int, ...] = ()  # the boxes that the last step wrote into

    @property
    def strides(self) -> Index:
        return self.now.stride()

    @property
    def offset(self) -> int:
        return self.now.storage_offset()

    @property
    def shape(self) -> Index:
        return tuple(self.now.shape)

    @property
    def indices(self) -> list[Index]:
        """Of each box, in the order of reading."""
        return list(product(*map(range, self.shape)))

    @property
    def places(self) -> list[int]:
        """The place of each box's number, in the order of reading."""
        return [self.place(index) for index in self.indices]

    @property
    def middling(self) -> int:
        """A box whose place takes all of the strides to find."""
        index = *(n - 1 for n in self.shape[:-1]), *(min(1, n - 1) for n in self.shape[-1:])
        return self.indices.index(index)

    def place(self, index: Index) -> int:
        return self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))

    @property
    def last(self) -> int:
        """The last box that reading aloud comes to: that before the break, where `view` has refused."""
        return self.broken[0] if self.asked else len(self.indices) - 1

    @property
    def broken(self) -> tuple[int, int]:
        """The box after which no strides for the shape asked lead on, and the place that they would lead to."""
        places = self.places
        box = 1
        strides = [0] * len(self.asked)
        for d in reversed(range(len(self.asked))):  # what one step is, told by the first one in each dimension
            strides[d] = places[box] - places[0] if box < len(places) else 0
            box *= self.asked[d]
        for k, index in enumerate(product(*map(range, self.asked))):
            led = places[0] + sum(i * s for i, s in zip(index, strides, strict=True))
            if led != places[k]:
                return k - 1, led
        raise AssertionError(f"view has refused {self.asked}, and there are strides for it")


def looked_at(name: str, numbers: Any, steps: Sequence[str]) -> Looked:
    """Take steps from a tensor of that name; of those that fail, only the last is spoken of."""
    first = numbers.clone()
    looked = Looked(first, first, first.flatten(), name, False)
    for step in steps:
        looked = _stepped(looked._replace(error="", asked=(), wrote=()), step)
    return looked


def _stepped(looked: Looked, step: str) -> Looked:
    try:
        tree = _read(step)
        if isinstance(tree, ast.Assign):
            return looked._replace(wrote=_written(tree, looked.now))
        now = _strided(tree, looked) if _called(tree) == "as_strided" else _run(tree, looked.now)
    except ERRORS as error:
        kind = "" if isinstance(error, _NotRead) else f"{type(error).__name__}: "
        asked = _asked(step, looked) if "spans across" in str(error) else ()
        return looked._replace(error=f"{kind}{error}", asked=asked)
    if now.ndim > 3 or not 0 < now.numel() <= MOST:
        few = "no numbers: there is nothing" if not now.numel() else f"shape {tuple(now.shape)}: that is too much"
        return looked._replace(error=f"This gives {few} to draw.")
    code = f"({looked.code} {step.strip()})" if isinstance(tree, ast.BinOp) else looked.code + step.strip()
    if _pointer(now) == _pointer(looked.now):
        return looked._replace(now=now, code=code)
    in_order = sorted(range(now.ndim), key=lambda d: -now.stride()[d])
    return looked._replace(now=now, memory=now.permute(in_order).flatten(), code=code, copied=True)


class _NotRead(ValueError):
    """An error: what was typed is none of the steps."""


def _read(step: str) -> ast.AST:
    """Return the one operation that a step is, with `t` for the tensor.  _NotRead where it is something else."""
    try:
        (statement,) = ast.parse("t" + step.strip()).body
    except (SyntaxError, ValueError):
        raise _NotRead(GRAMMAR) from None
    tree = statement.value if isinstance(statement, ast.Expr) else statement
    match tree:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name("t"), slice=index)], value=value):
            known = _plain(index) and _plain(value) and not isinstance(value, ast.Tuple | ast.List)
        case ast.Attribute(value=ast.Name("t"), attr="T"):
            known = True
        case ast.Call(func=ast.Attribute(value=ast.Name("t"), attr=name), args=arguments, keywords=[]):
            known = name in (*CALLS, "as_strided") and all(map(_plain, arguments))
        case ast.Subscript(value=ast.Name("t"), slice=index):
            known = _plain(index)
        case ast.BinOp(left=ast.Name("t"), op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            known = _plain(right) and not isinstance(right, ast.Tuple | ast.List)
        case _:
            known = False
    if not known:
        raise _NotRead(GRAMMAR)
    return tree


def _plain(tree: ast.AST) -> bool:
    """Numbers, slices, None, `t > 5`, and tuples and lists of them."""
    match tree:
        case ast.Constant(value=value):
            return value is None or value is Ellipsis or (isinstance(value, int | float) and abs(value) < 1000)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _plain(operand)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_plain, parts))
        case ast.Slice(lower=a, upper=b, step=c):
            return all(part is None or _plain(part) for part in (a, b, c))
        case ast.Compare(left=ast.Name("t"), comparators=[right]):
            return _plain(right)
    return False


def _run(tree: Any, t: Any, **more: Any) -> Any:
    """Evaluate an expression of `t` that has been read."""
    code = compile(ast.fix_missing_locations(ast.Expression(tree)), "<step>", "eval")
    return eval(code, {"__builtins__": {}}, {"t": t, **more})


def _written(tree: Any, t: Any) -> tuple[int, ...]:
    """Writes what an assignment says, and tells into which boxes."""
    (target,) = tree.targets
    index = ast.Subscript(ast.Name("boxes", ast.Load()), target.slice, ast.Load())
    boxes = _run(index, t, boxes=engine.arange(t.numel()).reshape(t.shape))
    code = compile(ast.Module([tree], []), "<step>", "exec")
    exec(code, {"__builtins__": {}}, {"t": t})
    return tuple(boxes.reshape(-1).tolist())


def _called(tree: ast.AST) -> str:
    return tree.func.attr if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) else ""


def _strided(tree: Any, looked: Looked) -> Any:
    """`as_strided` reads the row in memory, whatever the tensor on it; it begins where the tensor does."""
    arguments = [ast.literal_eval(argument) for argument in tree.args]
    return looked.memory.as_strided(*arguments, *([looked.offset] if len(arguments) == 2 else []))


def _asked(step: str, looked: Looked) -> Index:
    """Return the shape that a step with `view` asks for."""
    return tuple(looked.now.reshape(*map(ast.literal_eval, _read(step).args)).shape)  # type: ignore[attr-defined]


def _pointer(tensor: Any) -> int:
    return tensor.untyped_storage().data_ptr()


def brackets(index: Index) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def place_sum(looked: Looked, pick: int) -> str:
    steps = zip(looked.indices[pick], looked.strides, strict=True)
    return " + ".join([f"offset {looked.offset}", *(f"{i} × {s}" for i, s in steps)]) + f" = {looked.places[pick]}"


def number_at(tensor: Any, *index: int) -> str:
    return f"{tensor[index].item():g}"
