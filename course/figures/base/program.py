"""A few lines of code, run for a figure: what each line made is kept, the numbers in between included."""

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import engine
from engine import viz
from engine.core.graph import Node
from engine.core.observers import forget, observe
from engine.core.tensor import Tensor


@dataclass
class Program:
    """A program that has run: its result, its variables, and for each node what it made, and in which line."""

    source: str
    result: Any = None
    names: dict[str, Any] = field(default_factory=dict)
    values: dict[Node, str] = field(default_factory=dict)
    line: dict[Node, int] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        return self.source.splitlines()

    @property
    def named(self) -> list[tuple[str, Tensor]]:
        """The tensors that variables hold, with their names, as `viz.variables` gives them."""
        return viz.variables(SimpleNamespace(f_globals=self.names, f_locals={}))

    def tell(self, plan: viz.GraphDrawing) -> None:
        """Fill in the values that the graph alone does not know."""
        number = {n: i for i, n in enumerate(sorted(viz.walk([viz.real(self.result.node)]), key=lambda n: n.time), 1)}
        known = {item.number: item.out for item in plan.items}
        for node, value in self.values.items():
            out = known.get(number.get(viz.as_shown(node), 0))
            if out is not None and not out.value:
                out.value = value


def run(source: str, names: Mapping[str, Any]) -> Program:
    """Run lines with these variables, and leave the variables as they are.

    The result is what the last line gives, or gives a name to.  TypeError where that is no Tensor.
    """
    source = textwrap.dedent(source).strip("\n")
    program = Program(source, names={"engine": engine} | dict(names))
    for statement in ast.parse(source).body:

        def look(t: Tensor, line: int = statement.lineno) -> None:
            if t.node is not None and t.node not in program.values:
                program.values[t.node], program.line[t.node] = viz.brief(t.array), line

        observe(Tensor, look)
        try:
            program.result = execute(statement, program.names)
        finally:
            forget(Tensor, look)
    if not isinstance(program.result, Tensor):
        raise TypeError("the last line must give a tensor, such as `loss = (w * x).sum()`")
    return program


def execute(statement: ast.stmt, names: dict[str, Any]) -> Any:
    """Run a statement; what it gives, or gives a name to."""
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), "<figure>", "eval"), names)
    exec(compile(ast.Module([statement], []), "<figure>", "exec"), names)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return names.get(target.id) if isinstance(target, ast.Name) else None
