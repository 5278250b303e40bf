"""Elementwise formulas as one kernel of a GPU, by running the formula once on symbols that write down what it does.

The formula is the Python function that computes with NumPy's arrays too.  Here it gets a ``Symbol`` in place of each
array, and what it does with them becomes the text of CuPy's ``ElementwiseKernel``.  Python's floats become parameters
of the kernel: the text stays the same from step to step, and is compiled once.  Types of two bytes are computed in
float32 and rounded when they are written, as in PyTorch's kernels.
"""

from functools import update_wrapper
from weakref import WeakKeyDictionary

import numpy as np
from ml_dtypes import bfloat16

from .. import dispatch

# dtype -> (its name among a kernel's parameters, the type of C++ to compute in); CuPy has no name for bfloat16, but
# takes a letter for the type that an array has
TYPES = {
    np.dtype(t): (name or np.dtype(t).name, c)
    for t, name, c in (
        (np.float32, "", "float"), (np.float64, "", "double"), (np.float16, "", "float"), (bfloat16, "B", "float"),
        (np.bool_, "bool", "bool"), (np.uint8, "", "unsigned char"), (np.int8, "", "signed char"),
        (np.int16, "", "short"), (np.int32, "", "int"), (np.int64, "", "long long"), (np.uint32, "", "unsigned int"),
    )
}  # fmt: skip
BOOL = np.dtype(bool)
NUMBERS = bool, int, float
KERNEL_CACHE_SIZE = 4096  # dtypes and numbers with which a formula is called


def c(dtype):
    return TYPES[dtype][1]


promotions: dict = {}  # dtypes and types of numbers -> the dtype that NumPy computes in


def symbol_dtype(args):
    """The dtype of what is computed from symbols and numbers: NumPy's, but bfloat16 stays that beside a number."""
    key = tuple([a.dtype if type(a) not in NUMBERS else type(a) for a in args])
    found = promotions.get(key)
    if found is None:
        found = np.result_type(*(k for k in key if type(k) is not type))
        if found.kind in "biu":
            found = np.result_type(*(k(1) if type(k) is type else k for k in key))
        promotions[key] = found
    return found


class Symbol:
    """One element of an array, in a kernel that is being written: the name of a variable there."""

    __slots__ = ("dtype", "kernel", "name")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # a NumPy number on the left leaves the work to this class
    ndim = 1  # for the promotion of types: it is an array's
    strides = ()

    def __init__(self, kernel, name, dtype):
        self.kernel, self.name, self.dtype = kernel, name, dtype

    def __bool__(self):
        raise TypeError("a kernel is written before there are values")

    def __setitem__(self, key, value):
        if key is not Ellipsis:
            raise TypeError("an element has no index")
        self.kernel.assign(self, self.kernel.term(value, self.dtype))

    def astype(self, dtype, copy=True):
        dtype = np.dtype(dtype)
        return self if dtype == self.dtype and not copy else self.kernel.variable(dtype, self.kernel.term(self, dtype))

    def copy(self):
        return self.astype(self.dtype)

    def __pow__(self, y):
        return self * self if type(y) in (int, float) and y == 2 else Functions.power(self, y)

    def __rpow__(self, x):
        return Functions.power(x, self)

    def __neg__(self):
        return compute("-{0}", (self,))

    def __invert__(self):
        return compute("!{0}" if self.dtype == BOOL else "~{0}", (self,))

    def __abs__(self):
        return Functions.absolute(self)

    itemsize = property(lambda self: self.dtype.itemsize)


class Kernel:
    """The lines of a kernel, and the numbers that are its parameters."""

    def __init__(self):
        self.lines, self.numbers, self.types, self.count = [], [], [], 0

    def variable(self, dtype, text):
        """A new variable."""
        self.count += 1
        name = f"v{self.count}"
        self.lines.append(f"{c(dtype)} {name} = {text};")
        return Symbol(self, name, dtype)

    def symbols(self, dtypes):
        """A symbol for each array, of which an element is called x0, x1, ... in the kernel."""
        return [self.variable(dtype, f"x{i}") for i, dtype in enumerate(dtypes)]

    def assign(self, symbol, text):
        self.lines.append(f"{symbol.name} = {text};")
        return symbol

    def term(self, a, dtype):
        """An operand of what is computed in a dtype."""
        kind = c(dtype)
        if type(a) is Symbol:
            return a.name if c(a.dtype) == kind else f"({kind}){a.name}"
        if type(a) in (bool, int):
            return f"({kind})({int(a)})"
        self.numbers.append(a)
        self.types.append("float64" if kind == "double" else "float32")
        return f"n{len(self.numbers) - 1}"

    def parameters(self):
        return [f"{t} n{i}" for i, t in enumerate(self.types)]

    def function(self, result, name, width, text, written=()):
        """(a function for CUDA of elements x0, x1, ..., some written, and numbers n0, n1, ...; the numbers' names)"""
        taken = [f"{'' if i in written else 'const '}X{i} &x{i}" for i in range(width)]
        taken += [f"{c(np.dtype(t))} n{i}" for i, t in enumerate(self.types)]
        types = ", ".join(f"typename X{i}" for i in range(width))
        head = f"template <{types}>\n__device__ {result} {name}({', '.join(taken)})"
        return f"{head} {{\n{text}\n}}\n", [f"n{i}" for i in range(len(self.numbers))]


def compute(text, args, out=None, dtype=None, test=False):
    """Write a line: ``text`` with the operands in place of {0}, {1}, and their type of {t}."""
    kernel = next(a.kernel for a in args if type(a) is Symbol)
    wide = dtype = symbol_dtype(args) if dtype is None else np.dtype(dtype)
    if test == "float" and dtype.kind in "biu":  # NumPy chooses a float by the size of the integers: none of ours asks
        raise TypeError("a function of floats")
    text = text.format(*(kernel.term(a, wide) for a in args), t=c(wide))
    if out is not None:
        return kernel.assign(out, text)
    return kernel.variable(BOOL if test is True else dtype, text)


class CudaSpecial:
    """Those of scipy.special that CUDA has."""


class Functions:
    """NumPy's functions, for symbols."""

    special = CudaSpecial

    @staticmethod
    def where(condition, a, b):
        dtype, kernel = symbol_dtype((a, b)), condition.kernel
        return kernel.variable(dtype, f"{condition.name} ? {kernel.term(a, dtype)} : {kernel.term(b, dtype)}")


OPERATORS = dict(zip("add sub mul truediv and or xor".split(), "+-*/&|^"))
TESTS = dict(zip("lt le gt ge eq ne".split(), "< <= > >= == !=".split()))
PLAIN = {"maximum": "{0} > {1} || {0} != {0} ? {0} : {1}", "minimum": "{0} < {1} || {0} != {0} ? {0} : {1}",
         "sign": "{0} > 0 ? ({t})1 : {0} < 0 ? ({t})-1 : {0}", "add": "{0} + {1}", "subtract": "{0} - {1}",
         "multiply": "{0} * {1}", "negative": "-{0}", "square": "{0} * {0}"}  # fmt: skip
OF_FLOATS = {"absolute": "fabs({0})", "reciprocal": "({t})1 / {0}", "rint": "rint({0})", "power": "pow({0}, {1})",
             "arctan2": "atan2({0}, {1})"} | {
    name: f"{name}({{0}})" for name in "exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh sqrt ceil floor "
                                       "trunc".split()} | {
    f"arc{name}": f"a{name}({{0}})" for name in "sin cos tan sinh cosh tanh".split()} | {
    name: f"{name}({{0}}, {{1}})" for name in "copysign hypot fmax fmin".split()}  # fmt: skip
OF_SPECIAL = {"erf": "erf({0})", "erfc": "erfc({0})", "gammaln": "lgamma({0})"}


def formula_function(text, test):
    return lambda *args, out=None, dtype=None: compute(text, args, out, dtype, test)


for table, test, to in ((PLAIN, False, Functions), (OF_FLOATS, "float", Functions), (OF_SPECIAL, "float", CudaSpecial)):
    for name, text in table.items():
        setattr(to, name, staticmethod(formula_function(text, test)))
for name, text in {"isnan": "{0} != {0}", "isfinite": "{0} - {0} == 0", "logical_not": "!{0}"}.items():
    setattr(Functions, name, staticmethod(formula_function(text, True)))


def operator(sign, test=False):
    """x + y, y + x, x += y"""
    text = f"{{0}} {sign} {{1}}"
    return (
        lambda self, other: compute(text, (self, other), test=test),
        lambda self, other: compute(text, (other, self), test=test),
        lambda self, other: compute(text, (self, other), self, self.dtype),
    )


for name, sign in OPERATORS.items():
    for prefix, method in zip(("", "r", "i"), operator(sign, name == "truediv" and "float"), strict=True):
        setattr(Symbol, f"__{prefix}{name}__", method)
for name, sign in TESTS.items():
    setattr(Symbol, f"__{name}__", operator(sign, True)[0])
dispatch.modules[Symbol] = Functions


def on_symbols(formula, kinds):
    """(kernel, inputs, dtypes, results): what a formula gives for symbols and numbers, and writes down meanwhile."""
    kernel, dtypes = Kernel(), [k for k in kinds if isinstance(k, np.dtype)]
    given = iter(kernel.symbols(dtypes))
    results = formula(*(next(given) if isinstance(k, np.dtype) else k[0] for k in kinds))
    return kernel, [f"{TYPES[t][0]} x{i}" for i, t in enumerate(dtypes)] + kernel.parameters(), dtypes, results


class Kernels:
    """The kernels of a type of device arrays; ``make`` and ``reduction`` are CuPy's classes of kernels."""

    def __init__(self, make, xp, array, reduction=None):
        self.make, self.xp, self.array, self.reduction = make, xp, array, reduction
        self.fused: WeakKeyDictionary = WeakKeyDictionary()  # formula -> what is written for it; a capture's may go
        self.updates: dict = {}

    def elementwise(self, formula, *args):
        """``formula(*args)`` as one kernel, which may give a tuple of arrays; step by step if it cannot be written."""
        found = self.written(formula, args, self.write)
        if found is None:
            return formula(*args)
        kernel, numbers, dtypes, several = found
        arrays = [a for a in args if type(a) is self.array]
        shape = arrays[0].shape
        if any(a.shape != shape for a in arrays):
            shape = np.broadcast_shapes(*(a.shape for a in arrays))
        like = next((a for a in arrays if a.shape == shape), None)
        outs = [self.xp.empty(shape, t) if like is None else self.xp.empty_like(like, t) for t in dtypes]
        kernel(*arrays, *numbers, *outs)
        return tuple(outs) if several else outs[0]

    def sum_of(self, formula, axis, keepdims, *args):
        """The sums along axes of what ``formula(*args)`` gives, as one kernel; in two steps if it gives no float."""
        found = self.written(formula, args, self.write_sum) if self.reduction is not None else None
        if found is None:
            return self.elementwise(formula, *args).sum(axis, None, keepdims=keepdims)
        kernel, numbers = found
        return kernel(*(a for a in args if type(a) is self.array), *numbers, axis=axis, keepdims=keepdims)

    def written(self, formula, args, write):
        """Return what ``write(formula, kinds)`` gives for these arguments, cached; None if no kernel can take them."""
        try:  # -0.0 is equal to 0, but another number
            kinds = tuple([a.dtype if type(a) is self.array else (a,) if a else (a, str(a)) for a in args])
            known = self.fused.get(formula)
            known = self.fused.setdefault(formula, {}) if known is None else known
            key = kinds if write == self.write else ("sum", *kinds)
            found = known.get(key, self)
        except (TypeError, ValueError):  # a list, or an array of another type
            return None
        if found is self:
            if len(known) >= KERNEL_CACHE_SIZE:
                known.clear()  # a program gives ever other numbers; CuPy still knows the text
            found = known[key] = write(formula, kinds)
        return found

    def write_sum(self, formula, kinds):
        """(kernel, its numbers), or None: the formula is a function of the kernel's, what it gives is added up."""
        try:
            kernel, inputs, dtypes, result = on_symbols(formula, kinds)
        except (TypeError, AttributeError, KeyError):  # it does what no line of a kernel says
            return None
        if type(result) is not Symbol or result.dtype not in (np.float32, np.float64):
            return None
        kind, text = c(result.dtype), "\n".join([*kernel.lines, f"return {result.name};"])
        function, numbers = kernel.function(kind, "mapped", len(dtypes), text)
        call = f"mapped({', '.join([f'x{i}' for i in range(len(dtypes))] + numbers)})"
        made = self.reduction(", ".join(inputs), f"{result.dtype} y0", call, "a + b", "y0 = a", "0",
                              kernel_name(formula) + "_sum", kind, preamble=function)  # fmt: skip
        return made, kernel.numbers

    def write(self, formula, kinds):
        """(kernel, its numbers, the dtypes of its results, whether they are a tuple), or None."""
        try:
            kernel, inputs, dtypes, results = on_symbols(formula, kinds)
            several = type(results) is tuple
            results = results if several else (results,)
            text = [*kernel.lines, *(f"y{i} = {r.name};" for i, r in enumerate(results))]
            outputs = [f"{TYPES[r.dtype][0]} y{i}" for i, r in enumerate(results)]
        except (TypeError, AttributeError, KeyError):  # it does what no line of a kernel says
            return None
        if len(kernel.lines) < len(dtypes) + 2:
            return None  # a single function does as well, and what only hands an array on copies nothing
        made = self.make(", ".join(inputs), ", ".join(outputs), "\n".join(text), kernel_name(formula))
        return made, kernel.numbers, [r.dtype for r in results], several

    def update(self, formula, rows, written=None):
        """``formula(p, g, *states)``, which writes into p and states, for each row of arrays (of the same dtypes).

        ``written``: a dict of the formula's own, for several calls with the same numbers.
        """
        n, width, dtypes = len(rows), len(rows[0]), tuple([a.dtype for a in rows[0]])
        written = {} if written is None else written
        if dtypes not in written:
            kernel = Kernel()
            given = kernel.symbols(dtypes)
            formula(*given)
            ends = [f"x{i} = {s.name};" for i, s in enumerate(given) if i != 1]
            written[dtypes] = kernel, "\n".join([*kernel.lines, *ends])
        kernel, text = written[dtypes]
        key = text, n, *dtypes
        made = self.updates.get(key)
        if made is None:
            made = self.updates[key] = self.listed(kernel, text, dtypes, n)
        inputs = [row[1] for row in rows]
        outputs = [row[i] for i in range(width) if i != 1 for row in rows]
        sizes = [a.size for a in inputs]
        made(*inputs, *sizes[: n - 1], *kernel.numbers, *outputs, size=sum(sizes))

    def listed(self, kernel, text, dtypes, n):
        """The kernel for n rows: element i of all belongs to the row in whose part of them it lies."""
        names = [[f"x{i}_{row}" for i in range(len(dtypes))] for row in range(n)]
        typed = lambda i, row: f"raw {TYPES[dtypes[i]][0]} {names[row][i]}"  # noqa: E731
        inputs = [typed(1, row) for row in range(n)] + [f"int64 size_{row}" for row in range(n - 1)]
        outputs = [typed(i, row) for i in range(len(dtypes)) if i != 1 for row in range(n)]
        function, numbers = kernel.function("void", "update", len(dtypes), text, {*range(len(dtypes))} - {1})
        calls = [f"update({', '.join([f'{name}[j]' for name in row] + numbers)});" for row in names]
        parts = [f"if (j < size_{row}) {call} else {{ j -= size_{row};" for row, call in enumerate(calls[:-1])]
        operation = "\n".join(["long long j = i;", *parts, calls[-1], "}" * (n - 1)])
        return self.make(", ".join(inputs + kernel.parameters()), ", ".join(outputs), operation, "engine_update",
                         preamble=function)  # fmt: skip


class OneKernel:
    """A rule as one kernel, which passes for the rule itself."""

    def __init__(self, rule):
        update_wrapper(self, rule)
        self.rule, self.__code__ = rule, rule.__code__

    def __call__(self, g, *saved):
        return dispatch.elementwise(self.rule, g, *saved)


def rules_as_kernels():
    """Let the rules of elementwise operations be kernels on a GPU; called when one is first used."""
    for Class in dispatch.rule_classes():
        if (Class.diagonal or Class.elementwise) and not any(isinstance(r, OneKernel) for r in Class.rules):
            Class.rules = tuple(map(OneKernel, Class.rules))


def kernel_name(formula):
    """The name of a kernel, which profilers show."""
    name = getattr(formula, "__name__", "")
    return "engine_" + (name if name.isidentifier() else "formula")
