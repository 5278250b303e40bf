"""CuPy's ``ElementwiseKernel`` and ``ReductionKernel`` without a GPU: the text is compiled by a C++ compiler.

It runs as a loop over the elements, one after the other.  A test that comes to one is skipped where there is no
compiler.
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

C_TYPES = {"float32": "float", "float64": "double", "bool": "bool", "uint8": "unsigned char", "int8": "signed char",
           "int16": "short", "int32": "int", "int64": "long long", "uint32": "unsigned int",
           "uint64": "unsigned long long"}  # fmt: skip
# CUDA's functions for both types of floats: to read math.h takes a compiler longer than all the rest.
FUNCTIONS = {
    "of one": "exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh "
              "sqrt ceil floor trunc rint fabs erf erfc lgamma",
    "of two": "pow atan2 copysign hypot fmax fmin",
}  # fmt: skip
GIVEN = "\n".join(
    f"inline {t} {name}({t} a{f', {t} b' * two}) {{ return __builtin_{name}{'f' * (t == 'float')}(a{', b' * two}); }}"
    for two, names in enumerate(FUNCTIONS.values())
    for name in names.split()
    for t in ("float", "double")
)
SOURCE = """#include <stddef.h>
#define __device__
template <typename T> struct Raw {{ T *at; T &operator[](ptrdiff_t i) const {{ return at[i]; }} }};
{preamble}
extern "C" void run(long long size, void **given) {{
{arguments}
for (ptrdiff_t i = 0; i < size; ++i) {{
{elements}
{text}
}}
}}
"""
SUMS = """#include <stddef.h>
#define __device__
{preamble}
#define REDUCE(a, b) ({reduce})
#define POST_MAP(a) ({post})
typedef {kind} Reduced;
extern "C" void run(long long rows, long long row, void **given) {{
{arguments}
for (ptrdiff_t out = 0; out < rows; ++out) {{
Reduced sum = Reduced({identity});
for (ptrdiff_t i = out * row; i < (out + 1) * row; ++i) {{
{elements}
Reduced next = static_cast<Reduced>({text});
sum = REDUCE(sum, next);
}}
auto &{result} = results[out];
POST_MAP(sum);
}}
}}
"""
COMPILER = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
OPTIONS = ["-std=c++11", "-w", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
LIBRARIES = ["-nostdlib", "-lm"] if sys.platform == "linux" else []  # of C++'s own nothing: a third faster
folder = tempfile.TemporaryDirectory()
compiled: dict = {}  # text of a program -> its function run


def program(source):
    """The function ``run`` of a program in C++."""
    if source not in compiled:
        if COMPILER is None:
            pytest.skip("there is no C++ compiler to run CuPy's kernels with")
        path = Path(folder.name, f"kernel{len(compiled)}")
        path.with_suffix(".cpp").write_text(f"{GIVEN}\n{source}", encoding="utf-8")
        command = [COMPILER, *OPTIONS, "-o", path.with_suffix(".so"), path.with_suffix(".cpp"), *LIBRARIES]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.returncode, done.stderr + source
        compiled[source] = ctypes.CDLL(str(path.with_suffix(".so"))).run
    return compiled[source]


def host(a):
    return getattr(a, "host", a)


class ElementwiseKernel:
    """CuPy's, of which one letter is the type that an array has; outputs must be given.

    Types of two bytes are converted before and after: what is computed with them must be float.
    """

    arrays: type = np.ndarray  # what it takes: those of the stand-in for CuPy have a NumPy array each, as ``host``
    launched: list = []  # the names of the kernels that ran

    def __init__(self, inputs, outputs, text, name, preamble=""):
        assert name.isidentifier()
        self.parameters = [p.split() for p in f"{inputs},{outputs}".split(",")]
        self.first_output = inputs.count(",") + 1
        self.text, self.name, self.preamble = text, name, preamble

    def __call__(self, *args, size=None):
        assert len(args) == len(self.parameters)
        arrays = [
            a for a, (*raw, _, _) in zip(args, self.parameters, strict=True) if isinstance(a, self.arrays) and not raw
        ]
        shape = np.broadcast_shapes(*(a.shape for a in arrays)) if size is None else (size,)
        assert (size is None) == bool(arrays)
        self.launched.append(self.name)
        memory, arguments, elements = [], [], []
        for k, (a, (*raw, kind, name)) in enumerate(zip(args, self.parameters, strict=True)):
            if not isinstance(a, (self.arrays, np.generic, int, float)):
                raise TypeError(f"Unsupported type {type(a)}")
            if isinstance(a, self.arrays) and len(kind) > 1 and a.dtype != kind:
                raise TypeError(f"Type is mismatched. {name} {a.dtype} {kind}")
            assert isinstance(a, self.arrays) or not raw and k < self.first_output
            array = host(a) if isinstance(a, self.arrays) else np.array(a, kind)
            if isinstance(a, self.arrays) and not raw:
                assert k < self.first_output or a.shape == shape
                array = np.broadcast_to(array, shape)
            array = np.array(array, np.float32 if array.itemsize == 2 and array.dtype.kind in "fV" else None, order="C")
            memory.append(array)
            c, const = C_TYPES[array.dtype.name], "const " * (k < self.first_output)
            pointer = f"({const}{c} *)given[{k}]"
            if raw:
                arguments.append(f"Raw<{const}{c}> {name}{{{pointer}}};")
            elif isinstance(a, self.arrays):
                arguments.append(f"{const}{c} *all_{name} = {pointer};")
                elements.append(f"{const}{c} &{name} = all_{name}[i];")
            else:
                arguments.append(f"const {c} {name} = *{pointer};")
        source = SOURCE.format(preamble=self.preamble, arguments="\n".join(arguments), elements="\n".join(elements),
                               text=self.text)  # fmt: skip
        run = program(source)
        run(ctypes.c_longlong(int(np.prod(shape))), (ctypes.c_void_p * len(memory))(*(m.ctypes.data for m in memory)))
        for a, array in zip(args[self.first_output :], memory[self.first_output :], strict=True):
            host(a)[...] = array


class ReductionKernel:
    """CuPy's, of which the types are those that the arrays have."""

    arrays: type = np.ndarray
    launched: list = []

    def __init__(self, inputs, outputs, text, reduce, post, identity, name, kind, preamble=""):
        assert name.isidentifier()
        self.parameters, (self.out_type, self.result) = [p.split() for p in inputs.split(",")], outputs.split()
        self.texts = {"text": text, "reduce": reduce, "post": post, "identity": identity, "kind": kind}
        self.preamble, self.name = preamble, name

    def made(self, x):
        """A NumPy array as an array of the kind that is computed with."""
        return x

    def __call__(self, *args, axis=None, keepdims=False):
        assert len(args) == len(self.parameters)
        self.launched.append(self.name)
        shape = np.broadcast_shapes(*(a.shape for a in args if isinstance(a, self.arrays)))
        axes = range(len(shape)) if axis is None else axis if type(axis) is tuple else (axis,)
        axes = sorted(a % len(shape) for a in axes)
        left = [d for d in range(len(shape)) if d not in axes]
        rows, row = (int(np.prod([shape[d] for d in dims], dtype=int)) for dims in (left, axes))
        out = np.empty([shape[d] for d in left], self.out_type)
        memory, arguments, elements = (
            [],
            [f"{C_TYPES[self.out_type]} *results = ({C_TYPES[self.out_type]} *)given[0];"],
            [],
        )
        for k, (a, (kind, name)) in enumerate(zip(args, self.parameters, strict=True), 1):
            if isinstance(a, self.arrays):
                if len(kind) > 1 and a.dtype != kind:
                    raise TypeError(f"Type is mismatched. {name} {a.dtype} {kind}")
                array = np.broadcast_to(host(a), shape).transpose(*left, *axes)
                array = np.array(
                    array, np.float32 if array.dtype.kind in "fV" and array.itemsize == 2 else None, order="C"
                )
                c = C_TYPES[array.dtype.name]
                arguments.append(f"const {c} *all_{name} = (const {c} *)given[{k}];")
                elements.append(f"const {c} &{name} = all_{name}[i];")
            else:
                array = np.array(a, kind)
                arguments.append(f"const {C_TYPES[kind]} {name} = *(const {C_TYPES[kind]} *)given[{k}];")
            memory.append(array)
        source = SUMS.format(preamble=self.preamble, arguments="\n".join(arguments), elements="\n".join(elements),
                             result=self.result, **self.texts)  # fmt: skip
        given = (ctypes.c_void_p * (len(memory) + 1))(out.ctypes.data, *(m.ctypes.data for m in memory))
        program(source)(ctypes.c_longlong(rows), ctypes.c_longlong(row), given)
        return self.made(out.reshape([1 if d in axes else n for d, n in enumerate(shape)]) if keepdims else out)
