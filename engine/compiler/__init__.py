"""compile: a function is captured once, planned, written down as Python over NumPy or CuPy, and run from there.

``capture.py`` has the arrays on which the function runs, forward and backward: they write down on a ``tape.py`` what
is done with them, in ``steps.py``; ``plan.py`` leaves out what is not needed; ``nests.py`` makes loops of steps on the
same elements, ``copies.py`` of kernels that move them, and ``machine.py`` has Numba compile them; where there is none,
``fuse.py`` joins steps in blocks, and ``chains.py`` those on a device; ``generate.py`` writes two functions that can be
read (``compiled.code``).  ``entry.py`` is all of this for one capture, and runs it; ``guards.py`` says for which calls
it holds, by what ``bytecode.py`` tells of functions.  ``compiled.py``: a call for which no capture holds is captured
anew, for many sizes if a size was another (``sizes.py``); a function that cannot be captured runs as it is, and
``explain`` tells why.  What a call does besides returning, writes, draws, gradients and steps of optimizers, is a part
of the code.
"""

from functools import update_wrapper

from ..arrays import loops
from ..help import public
from ..nn.module import Module
from . import machine
from .compiled import LIMIT, Compiled, Explanation, explain, reset
from .entry import Entry
from .steps import GraphBreak

__all__ = ["LIMIT", "Compiled", "Entry", "Explanation", "GraphBreak", "OptimizedModule", "compile", "explain", "reset"]

loops.machine = machine  # from here on, steps of optimizers may be loops
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """A function or Module that does the same, from code written at its first call; without ``model``, a decorator."""
    if model is None:
        return lambda model: compile(
            model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in COMPILE_MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(COMPILE_MODES)}")
    if unknown := set(options or ()) - {"fuse", "loops"}:
        raise RuntimeError(f"Unexpected optimization option {unknown.pop()}, known options are ['fuse', 'loops']")
    if backend not in ("inductor", "eager"):
        raise NotImplementedError(f"compile() has the backends 'inductor' and 'eager', but got {backend!r}")
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable or backend == "eager":
        return model
    how = fullgraph, (options or {}).get("fuse", True), dynamic, (options or {}).get("loops")
    if isinstance(model, Module):
        return OptimizedModule(model, *how)
    compiled = update_wrapper(Compiled(model, *how), model, updated=())
    vars(compiled).update({**getattr(model, "__dict__", {}), **vars(compiled)})  # attributes of a function are its too
    return compiled


class OptimizedModule(Module):
    """A Module whose call runs compiled; everything else is the original's, what is set and deleted as well."""

    def __init__(self, module, *how):
        super().__init__()
        del self.__dict__["training"]
        self._modules["_orig_mod"] = module
        self.__dict__["compiled"] = Compiled(module, *how)

    def forward(self, *args, **kwargs):
        return self.compiled(*args, **kwargs)

    code = property(lambda self: self.compiled.code)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._orig_mod, name)

    def _owner(self, name):
        """Return where an attribute is set: on the original, but for what every Module has and this class."""
        return super() if name in self.__dict__ or hasattr(type(self), name) else self._orig_mod

    def __setattr__(self, name, value):
        self._owner(name).__setattr__(name, value)

    def __delattr__(self, name):
        self._owner(name).__delattr__(name)

    def __dir__(self):
        return {*dir(self._orig_mod), *super().__dir__()}

    def __len__(self):
        return len(self._orig_mod)

    def __bool__(self):
        return True

    def __reduce__(self):  # a copy has no captures: they are of the parameters of this one
        c = self.compiled
        return OptimizedModule, (self._orig_mod, c.fullgraph, c.fused, c.dynamic, c.looped)


__dir__ = public("compiler", globals())
