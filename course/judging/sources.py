"""Read the text of an attempt: results that are made and thrown away, loops, and what it calls."""

import ast
import re
import symtable
import textwrap
from collections.abc import Iterator

import engine

# Methods of tensors (and functions of the engine) that give something new and do nothing else.
_ACTING = {
    "backward",
    "data_ptr",
    "register_hook",
    "register_post_accumulate_grad_hook",
    "retain_grad",
    "share_memory",
    "untyped_storage",
}
_GIVING = {
    name
    for name in dir(engine.Tensor)
    if not name.endswith("_") and not name.startswith("_") and callable(getattr(engine.Tensor, name))
} - _ACTING
# Sets, lists, plots and modules have some of these names too, and there they do something.
_ELSEWHERE = {"add", "sort", "index_put", "scatter", "put", "fill", "copy", "apply", "train", "eval", "step"}
_OF_MODULES = {"to", "cpu", "cuda", "float", "double", "half", "bfloat16", "type", "apply"}
_OF_ARRAYS = {"astype"}
_LIBRARIES = {"engine", "torch", "np", "numpy", "F", "nn"}
_SWITCHES = {"no_grad", "enable_grad", "inference_mode"}
# What Python raises over a text that is no program, or one too deep or too large.
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def parsed(source: str) -> ast.Module:
    """Return the syntax tree of a cell; empty where it is not Python."""
    try:
        return ast.parse(textwrap.dedent(source))
    except UNREADABLE:
        return ast.Module([], [])


def discarded(source: str, kinds: dict[str, str] | None = None) -> str:
    """Return what to say of the first result that a function makes and throws away; empty where there is none.

    `kinds`: of the arguments, by name, what they are ("tensor", "module", "set").
    """
    functions = [part for part in ast.walk(parsed(source)) if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
    try:
        # The learner's own function may be one that gives nothing back; one inside of it, a hook say, hardly is.
        inner = [
            part for one in functions for part in ast.walk(one) if part is not one and isinstance(part, ast.FunctionDef)
        ]
        lasts = [one.body[-1] for one in inner if not _returns(one)]
        found = [one for function in functions for one in _discarded_in(function, kinds or {}, lasts)]
    except RecursionError:
        found = []
    return min(found)[2] if found else ""


def _discarded_in(
    function: ast.FunctionDef | ast.AsyncFunctionDef, kinds: dict[str, str], lasts: list[ast.stmt]
) -> Iterator[tuple]:
    """Line, column, sentence. `lasts`: the last lines of functions that should give something, and do not."""
    used = set()
    for part in ast.walk(function):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            used.add(part.id)
        elif isinstance(part, ast.Global | ast.Nonlocal):
            used |= set(part.names)
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            used.add(part.target.id)
    for part in ast.walk(function):
        if part in lasts and isinstance(part, ast.Expr) and _gives(part.value, kinds):
            line = f"Line {part.lineno}, `{ast.unparse(part)}`"
            says = f"{line}, makes a result, and nothing keeps it. Is a `return` missing?"
            yield part.lineno, part.col_offset, says
        elif isinstance(part, ast.Expr) and (why := _thrown_away(part.value, kinds)):
            yield part.lineno, part.col_offset, f"Line {part.lineno}, `{ast.unparse(part)}`: {why}"
        if isinstance(part, ast.Assign) and _gives(part.value, kinds):
            names = [target.id for target in part.targets if isinstance(target, ast.Name)]
            if len(names) == len(part.targets) == 1 and names[0] not in used:
                says = f"Line {part.lineno} makes `{names[0]}`, and nothing uses it after that."
                yield part.lineno, part.col_offset, says


def _returns(function: ast.AST) -> bool:
    return any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(function))


def _thrown_away(value: ast.expr, kinds: dict[str, str]) -> str:
    kept = "Give it a name, or use it where it is made."
    if isinstance(value, ast.BinOp | ast.Compare | ast.UnaryOp):
        if isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq) and len(value.ops) == 1:
            return "this only asks whether the two are equal, and the answer is lost. A name is given by a single `=`."
        return f"this works out a result and throws it away. {kept}"
    if not isinstance(value, ast.Call):
        return ""
    called = value.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    if name in _SWITCHES and isinstance(called, ast.Attribute):
        return f"on a line of its own this has no effect. Write `with {ast.unparse(value)}:`, and the lines below it."
    if not _gives(value, kinds):
        return ""
    if not isinstance(called, ast.Attribute):
        return f"`{name}` gives a result, and nothing keeps it. {kept}"
    owner = ast.unparse(called.value)
    if owner in _LIBRARIES:
        return f"`{name}` makes a new tensor and leaves the old one as it is. Here nothing keeps the new one. {kept}"
    simple = isinstance(called.value, ast.Name)
    kept = f"Give it a name: `{owner} = ...`." if simple else kept
    in_place = f" (`{name}_` would change `{owner}` itself.)" if simple and hasattr(engine.Tensor, f"{name}_") else ""
    return f"`{name}` does not change `{owner}`. It makes something new, and here nothing keeps it. {kept}{in_place}"


def _gives(value: ast.expr, kinds: dict[str, str]) -> bool:
    """Tell whether this is a call that gives a result and does nothing else."""
    if not isinstance(value, ast.Call) or any(keyword.arg == "out" for keyword in value.keywords):
        return False
    if any(_acts(part) for part in ast.walk(value) if isinstance(part, ast.Call) and part is not value):
        return False
    called = value.func
    if isinstance(called, ast.Name):
        return called.id in ("sorted", "reversed", "sum", "max", "min", "abs", "len", "round")
    if not isinstance(called, ast.Attribute):
        return False
    owner = called.value
    if isinstance(owner, ast.Name) and owner.id in _LIBRARIES:
        return called.attr in _GIVING
    if called.attr not in _GIVING | _OF_ARRAYS:
        return False
    kind = kinds.get(owner.id, "") if isinstance(owner, ast.Name) else "?"
    if kind in ("tensor", "array"):
        return True
    if kind not in ("", "?"):  # a set's `add`, a Module's `to`
        return False
    if (
        called.attr in _OF_MODULES
        and isinstance(owner, ast.Name | ast.Attribute)
        and _like_a_module(ast.unparse(owner))
    ):
        return False
    return called.attr not in _ELSEWHERE


def _acts(call: ast.Call) -> bool:
    """Tell whether a call in the middle of an expression may do something besides giving a result."""
    called = call.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else "_"
    return name.endswith("_") or name in _ACTING or name in ("next", "pop", "append", "step", "print")


def _like_a_module(name: str) -> bool:
    last = name.lower().rpartition(".")[2]
    return last == "self" or any(word in last for word in ("model", "net", "modul", "layer", "linear", "head"))


_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def _answer(source: str) -> ast.Module:
    """Return what a cell defines, and what that reads; what is tried out below is no part of the answer."""
    tree = parsed(source)
    try:
        names = {part: _bound_and_read(part) for part in tree.body}
    except UNREADABLE:
        return tree
    kept = [part for part in names if isinstance(part, _DEFINES) or isinstance(getattr(part, "value", 0), ast.Lambda)]
    while kept:
        wanted = set[str]().union(*(both for part in kept for both in names[part]))
        more = [part for part, (binds, _) in names.items() if binds & wanted or isinstance(part, _IMPORTS)]
        if len(more) == len(kept):
            return ast.Module(kept, [])
        kept = more
    return tree


def _bound_and_read(part: ast.stmt) -> tuple[set[str], set[str]]:
    """The names that a statement gives to what stands around it, and the ones that it has from there."""
    top = symtable.symtable(ast.unparse(part), "<answer>", "exec")
    binds = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    reads = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    for one in part.targets if isinstance(part, ast.Assign) else []:  # `a.b = ...` and `a[0] = ...` change `a`
        while isinstance(one, ast.Attribute | ast.Subscript):
            one = one.value
        binds |= {one.id} if isinstance(one, ast.Name) else set()
    inner = top.get_children()
    while inner:
        table = inner.pop()
        inner += table.get_children()
        reads |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return binds, reads


def calls(source: str, *names: str) -> bool:
    """Tell whether a text speaks of any of these names: `calls(did.source, "jacrev")`. False where there is no text."""
    return any(name in names for name in _spoken_of(_answer(source)))


def loops(source: str) -> bool:
    """Tell whether a text has a loop: `for`, `while`, or a list made by one. False where there is no text."""
    kinds = (ast.For, ast.While, ast.AsyncFor, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
    return any(isinstance(part, kinds) for part in ast.walk(_answer(source))) or calls(source, "map")


def calls_itself(source: str) -> bool:
    """Tell whether a function in a text calls itself, alone or by way of others. False where there is no text."""
    functions = {part.name: part for part in ast.walk(parsed(source)) if isinstance(part, ast.FunctionDef)}
    reached = {
        name: {said for said in map(_own_name, ast.walk(part)) if said in functions} for name, part in functions.items()
    }
    for _ in functions:
        reached = {name: found.union(*(reached[other] for other in found)) for name, found in reached.items()}
    return any(name in found for name, found in reached.items())


def _own_name(part: ast.AST) -> str:
    if isinstance(part, ast.Name):
        return part.id
    owner = part.value if isinstance(part, ast.Attribute) else None
    return part.attr if isinstance(part, ast.Attribute) and isinstance(owner, ast.Name) and owner.id == "self" else ""


def _spoken_of(tree: ast.AST) -> Iterator[str]:
    for part in ast.walk(tree):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.ImportFrom | ast.Import):
            yield from (alias.name.rpartition(".")[2] for alias in part.names)


# Magics of IPython that run what stands below or behind them as it is.
_RUNS_ALL = re.compile(r"\s*%%(?:time|capture|prun)\b.*\n?")
_RUNS_REST = re.compile(r"(?m)^([ \t]*(?:[\w.]+[ \t]*=[ \t]*)?)%time[ \t]+")


def as_python(source: str) -> str:
    """Return a cell as Python alone, to be parsed: what IPython makes of its own syntax, which is not run here."""
    from IPython.core.inputtransformer2 import TransformerManager

    while match := _RUNS_ALL.match(source):
        source = source[match.end() :]
    source = _RUNS_REST.sub(r"\1", source)
    try:
        return TransformerManager().transform_cell(source)
    except UNREADABLE:
        return source


def bound(source: str) -> set[str]:
    """Return the names that a cell binds."""
    names = set[str]()
    for part in ast.walk(parsed(as_python(source))):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(part.name)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        elif isinstance(part, ast.alias):
            names.add(part.asname or part.name)
    return names


def is_blank(answer: list[str], came: str) -> bool:
    """Tell whether the cells of an answer are as they came: their functions unchanged, or doing nothing."""
    theirs = ast.parse(came)
    try:
        mine = ast.parse("\n".join(map(as_python, answer)))
        if ast.dump(mine) == ast.dump(theirs):
            return True
        parts = {ast.dump(part) for part in ast.walk(theirs)}
        functions = [part for part in ast.walk(mine) if isinstance(part, ast.FunctionDef)]
        does = ast.FunctionDef | ast.ClassDef | ast.Expr if functions else ast.Pass
        nothing_else = all(isinstance(part, does) or _is_constant(part) for part in mine.body)
        return nothing_else and all(ast.dump(part) in parts or _does_nothing(part) for part in functions)
    except UNREADABLE:
        return False


def _does_nothing(function: ast.FunctionDef) -> bool:
    return all(isinstance(part, ast.Pass) or _is_constant(part) for part in function.body)


def _is_constant(part: ast.stmt) -> bool:
    """Three dots, or a text."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
