"""The store of machine code: a Loop is Numba's dispatcher, with a cache of its own on disk.

Numba's own leaves the options out of its key, and mixes up entries that two processes write at once.  Here an entry is
one file, named after all that its code depends on.
"""

import hashlib
import os
import re
import sys
from functools import lru_cache
from pathlib import Path

import llvmlite
import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import compiler, lowering
from numba.core import ir as steps
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps, pickle
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype, map_layout

from ..arrays.loops import EXACT
from ..arrays.warn import warn
from . import disk
from .progress import progress

OPTIONS = {
    "nopython": True,
    "nogil": True,
    "fastmath": {"contract"},
    "error_model": "numpy",
    "boundscheck": False,
    "no_cfunc_wrapper": True,
}
ANY_ORDER = "contract", "reassoc", "nsz"  # LLVM's words for what may be done with a sum
ALLOCATING = {"empty", "zeros", "copy"}  # names that need Numba's runtime
REWRITTEN = "**", "raise ", "assert "  # what Numba rewrites; where there is none, a fifth faster
ARITHMETIC = re.compile(r"[-+*/%<>]")
# What vector_math has, which takes 50 ms to import:
LONG = "cos erf erfc exp exp2 expit expm1 larger largest log log1p log2 power sin smaller smallest tanh"
CALL = re.compile(rf"\b({LONG.replace(' ', '|')})\(")
FROM = re.compile(r"^( *)for (\w+) in range\(.+, .+\):(?: *#.*)?$", re.MULTILINE)  # a loop that need not begin at 0
TOTAL = re.compile(r"^( *)(\w+) \+= (.+)$", re.MULTILINE)  # a sum that is kept in a register
CONSTANT = re.compile(r"^( *)for (\w+) in range\((\d+)\):(?=((?:\n\1 .*)*))", re.MULTILINE)  # and what is in it
SHORT = 16  # rounds of an innermost loop: fewer may be written one by one
RULES = [f"{n}.py" for n in "store machine vector_math elementary addresses".split()]  # that code depends on
FAILED = 'A loop could not be compiled, and its function runs eagerly; options={"loops": False} leaves loops out.'
failed: dict = {}  # name of a loop -> why it could not be compiled


class Lower(lowering.Lower):
    """Numba's way to LLVM, which tells a loop how many vectors it takes at a time.

    LLVM by itself takes one where a round is long; but while an exponential waits for its products, others can run.
    """

    def lower_inst(self, inst):
        super().lower_inst(inst)
        vectors = self.func_ir.func_id.func.vectors
        if vectors > 1 and isinstance(inst, steps.Jump) and self.blkmap[inst.target].is_terminated:  # back to its begin
            module = self.builder.module
            count = module.add_metadata(["llvm.loop.interleave.count", ir.Constant(ir.IntType(32), vectors)])
            loop = ir.values.MDValue(module, (), name=str(len(module.metadata)))
            loop.operands = loop, count  # by the first of which LLVM knows one loop from another
            self.builder.block.terminator.set_metadata("llvm.loop", loop)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(NativeLowering):
    _name = "lowering of loops"
    lowering_class = Lower


class Compiler(compiler.Compiler):
    """Numba's compiler, told that no two arrays share memory: it then need not look before each loop."""

    def define_pipelines(self):
        self.state.flags.noalias = True
        found = super().define_pipelines()
        for pipeline in found:
            pipeline.passes = [(Lowering if p is NativeLowering else p, says) for p, says in pipeline.passes]
        return found


@intrinsic
def counted(typing, i):
    """An index, with the word that it is not negative.

    Numba's indices may be.  Where a loop does not begin at 0, each would be looked at, and nothing vectorised.
    """

    def build(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])
        assume = builder.module.declare_intrinsic("llvm.assume", (), kind)
        builder.call(assume, [builder.icmp_signed(">=", args[0], ir.Constant(args[0].type, 0))])
        return args[0]

    return i(i), build


@intrinsic
def unknown(typing, i):
    """A number of which LLVM does not know that it is constant.

    It would write each round of a short loop by itself, and only then look what can be done in vectors: a sum of 64
    takes five times as long then, and loops in loops take ten times as long to compile.
    """

    def build(context, builder, signature, args):
        kind = args[0].type
        return builder.asm(ir.FunctionType(kind, [kind]), "", "=r,0", [args[0]], False)

    return i(i), build


@intrinsic
def added(typing, total, term):
    """A sum and its next term, in whatever order: only so is it added up in vectors.

    Everything else is computed in the order that the program says: ``(x + c) - c`` rounds, and is not x.
    """
    kind = typing.unify_types(total, term)

    def build(context, builder, signature, args):
        a, b = (context.cast(builder, x, own, kind) for x, own in zip(args, signature.args))
        return builder.fadd(a, b, flags=ANY_ORDER) if isinstance(kind, types.Float) else builder.add(a, b)

    return kind(total, term), build


def as_compiled(text):
    """The text of a loop as it is compiled, with ``counted``, ``unknown`` and ``added`` where they help."""

    def rounds(found):
        n, outer = int(found[3]), re.search(r"^ *for ", found[4], re.MULTILINE)
        multiple = 1 if outer else min(n & -n, 32)  # which it is known to be: no rounds are left over then
        if n < SHORT and not outer:
            return found[0]
        return f"{found[1]}for {found[2]} in range(unknown({n // multiple}) * {multiple}):"

    if not text.startswith(EXACT):
        text = TOTAL.sub(r"\1\2 = added(\2, \3)", text)
    text = CONSTANT.sub(rounds, text)
    return FROM.sub(r"\g<0>\n\1    \2 = counted(\2)", text)


def vectors_at_once(text):
    """Return how many vectors the loops of a text take at a time: no more than leave no rounds over."""
    rounds = [int(n) for *_, n, body in CONSTANT.findall(text) if int(n) >= SHORT and "for " not in body]
    return max(1, min([32, *(n & -n for n in rounds)]) // 8) if CALL.search(text) else 1


class Loop(CPUDispatcher):
    """A function that runs as machine code: Numba's dispatcher itself, as anything around it would double a call."""

    def __init__(self, text, names):
        space = {**names, "added": added, "counted": counted, "unknown": unknown, "__name__": "engine.compiler.machine"}
        exec(compile(as_compiled(text), "<loop>", "exec"), space)
        function = space["loop"]
        # Machine code is found by its name in all of the process, what others have left on disk as well.
        function.vectors = vectors_at_once(text)
        function.__qualname__ = "loop_" + hashlib.sha256(text.encode()).hexdigest()[:24]
        # Without Numba's runtime no references to arrays are counted: a call takes half as long.
        runtime = not ALLOCATING.isdisjoint(function.__code__.co_names)
        options = OPTIONS | {"_nrt": runtime, "no_rewrites": not any(word in text for word in REWRITTEN)}
        if text.startswith(EXACT):
            options["fastmath"] = False
        super().__init__(function, targetoptions=options, pipeline_class=Compiler)
        self._cache = Entries(self, text)
        # What an element takes, about, in twentieths of a nanosecond.
        self.operations = 3 + len(ARITHMETIC.findall(text)) + 10 * len(CALL.findall(text))
        progress.wanted(self)

    def _compilation_chain_init_hook(self):
        """Numba would look through all that is installed for extensions of its own: 50 ms."""

    def typeof_pyval(self, val):
        """The type of an argument; to see whether an array is masked, Numba would import numpy.ma: 30 ms."""
        if type(val) is not np.ndarray:
            return super().typeof_pyval(val)
        kind = types.Array(from_dtype(val.dtype), val.ndim, map_layout(val), readonly=not val.flags.writeable)
        self._types_active_call.add(kind)
        return kind

    def compile(self, sig):
        with global_compiler_lock:
            try:
                return self.compile_or_allocate(sig)
            except NumbaError as error:  # what calls it goes on without the loop, and must not do so in silence
                failed[self.__qualname__] = error
                warn(f"{FAILED} {' '.join(str(error).split())}")
                raise
            finally:
                progress.end(self)

    def compile_or_allocate(self, sig):
        try:
            return super().compile(sig)
        except NumbaError:
            if self.targetoptions["_nrt"]:
                raise
            self.targetoptions["_nrt"] = True  # what it does may be possible with the runtime: an array that is copied
            self._compiler._failed_cache.clear()
            return super().compile(sig)


class Entries(NullCache):
    """The entries of one Loop: one for all types of arguments that it is called with."""

    def __init__(self, loop, text):
        self.loop, self.text = loop, text

    def name(self, sig, codegen):
        """The name of an entry: code depends on nothing else, as options are in the files of ``surroundings``."""
        about = repr((self.text, sig, codegen.magic_tuple()))
        return hashlib.sha256(surroundings() + about.encode()).hexdigest()

    def load_overload(self, sig, target_context):
        # Its context is not refreshed, as Numba's own cache does: that imports what the compiler needs, for 0.6 s.
        name = self.name(sig, target_context.codegen())
        if found := disk.read(name):
            try:
                runtime, reduced = pickle.loads(found)
                if runtime:
                    rtsys.initialize(target_context)
                return compiler.CompileResult._rebuild(target_context, *reduced)
            except Exception:  # whatever its name says, it is of another world
                disk.remove(name)
        progress.begin()
        from . import addresses, vector_math  # noqa: PLC0415  what is found needs none of it

        self.loop.py_func.__globals__.update(vector_math.VECTORISED | vector_math.CASTS, array_at=addresses.array_at)
        return None

    def save_overload(self, sig, cres):
        if not cres.library.has_dynamic_globals:
            (name, how, (code, _)), *rest = cres._reduce()
            # Numba would keep all bitcode, for other functions to have it inlined: a call needs the name of its entry.
            entry = binding.parse_assembly(f'define void @"{cres.fndesc.llvm_cpython_wrapper_name}"() {{ ret void }}')
            found = self.loop.targetoptions["_nrt"], ((name, how, (code, entry.as_bitcode())), *rest)
            disk.write(self.name(sig, cres.codegen), dumps(found))


@lru_cache(1)
def surroundings():
    """Hash what code depends on beside text, types and processor: versions, this package's rules, Numba's switches."""
    versions = sys.modules["engine"].__version__, numba.__version__, llvmlite.__version__, np.__version__, sys.version
    switches = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    rules = [Path(__file__).with_name(name).read_bytes() for name in RULES]
    return hashlib.sha256(repr((versions, switches, rules)).encode()).digest()


if hasattr(os, "register_at_fork"):  # a child that is forked while another thread compiles would wait for it for ever
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
