"""Type stubs of the engine's public modules: what editors and type checkers know of names that are made at import.

Names, arguments and defaults are those that ``inspect`` sees.  Types of arguments come from the lines in
``engine/surface/signatures.py``, elsewhere from their names; results from a table below.  What nobody knows is ``Any``.
``python docs/update.py`` writes the files; a test says when this has to be run.
"""

import ast
import inspect
import re
import sys
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from keyword import iskeyword
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Generic

from engine import Tensor, help
from engine.surface.doors import ABSENT, LINES, Signature

# not random, which is arrays/random.py, nor viz: of these the engine and the course need more than is public
PUBLIC = sorted(
    {p.stem.partition("-")[0] for p in Path(help.__file__).parent.glob("*.md")} - {"Tensor", "random", "viz"}
)
for name in dir(Tensor):
    getattr(Tensor, name)  # what is named for the first time takes its place among the attributes
MODULES = {f"engine.{n}".removesuffix(".engine"): import_module(f"engine.{n}".removesuffix(".engine")) for n in PUBLIC}

# ---- types

BUILTINS = "bool float int str type".split()  # for which engine or Tensor have other meanings; so they are _bool, ...
HEAD = f"""# Written by `python docs/update.py`.
from builtins import {", ".join(f"{name} as _{name}" for name in BUILTINS)}
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, overload
from typing_extensions import TypeVar
import numpy as _np
_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True, default=Any)
"""
SHARED = """
_dtype = dtype
_device = device
_Number = _float | _np.number[Any] | _np.bool_
class _ValuesAndIndices(NamedTuple):
    values: Tensor
    indices: Tensor
class _MinAndMax(NamedTuple):
    min: Tensor
    max: Tensor
class _SignAndLogabsdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
"""  # in the stub of the package, for all
BORROWED = f"from engine import Size, Tensor, {', '.join(re.findall('(?m)^(?:class )?(_[A-Za-z]+)', SHARED))}\n"
KINDS = {  # of arguments, in the lines
    "Tensor": "Tensor", "Number|Tensor": "Tensor | _Number", "Number": "_Number", "float": "_float", "int": "_int",
    "int|Tensor": "_int | Tensor", "int[]": "_int | Sequence[_int]", "int[]|bool": "_int | Sequence[_int] | _bool",
    "bool": "_bool",
}  # fmt: skip
ARGUMENTS = {  # of which the lines do not speak
    "device": "_device | _str | _int | None", "dtype": "_dtype | _type | None", "inplace": "_bool", "keepdim": "_bool",
    "out": "Tensor | None", "reduction": "_str", "requires_grad": "_bool",
    "shape": "_int | Sequence[_int]", "tensors": "Sequence[Tensor]",
}  # fmt: skip
OF_TENSORS = {
    "engine",
    "Tensor",
    "engine.nn.functional",
    "engine.linalg",
    "engine.nn.init",
}  # whose results are tensors
RESULTS = """
Any: compile default_collate embedding_bag load manual_seed seed unique vmap Generator.set_state Tensor.__array__
    Tensor.__array_wrap__ Tensor.__dlpack_* Tensor.grad_fn Tensor.register_* Tensor.tolist Tensor.type
    Tensor.untyped_storage
None: __delattr__ __delitem__ __exit__ __init__ __setattr__ __setitem__ add_param_group autograd.backward clear_* save
    set_* use_* zero_grad Module.register_buffer Module.register_module Module.register_parameter Tensor.backward
    Tensor.retain_grad
Self: __enter__ __new__ Module.apply Module.bfloat16 Module.cpu Module.cuda Module.double Module.eval Module.float
    Module.half Module.requires_grad_ Module.to Module.train Module.type
Size: broadcast_shapes shape Tensor.size
Tensor | Any: Tensor.grad
_bool: __bool__ __contains__ allclose are_* can_cast equal has_* is_* requires_grad retains_grad
_device: device get_default_device
_dtype: dtype get_autocast_dtype get_default_dtype promote_types result_type
_float: __float__
_int: __hash__ __index__ __int__ __len__ autocast_* data_ptr device_count dim element_size get_device get_num_threads
    initial_seed itemsize nbytes ndim ndimension nelement numel output_nr storage_offset
_int | _float | _bool: item
_np.ndarray[Any, Any]: Tensor.numpy
_str: __format__ get_float32_matmul_precision layout typename
_MinAndMax: aminmax
_SignAndLogabsdet: slogdet
_ValuesAndIndices: cummax cummin kthvalue sort topk
complex: __complex__
dict[_str, Any]: state_dict
Generator: default_generator
Iterator[Module]: Module.children Module.modules
Iterator[Parameter]: Module.parameters
Iterator[Tensor]: Module.buffers Tensor.__iter__ Tensor.__reversed__
Iterator[tuple[_str, Module]]: Module.named_children Module.named_modules
Iterator[tuple[_str, Parameter]]: Module.named_parameters
Iterator[tuple[_str, Tensor]]: Module.named_buffers
tuple[Tensor, Tensor]: std_mean var_mean
tuple[Tensor, ...]: autograd.grad broadcast_tensors chunk meshgrid split split_with_sizes tensor_split unbind
    unsafe_chunk
tuple[_int, ...]: Tensor.stride
"""
PATTERNS = [(pattern, result) for result, patterns in re.findall(r"(?m)^(\S.*?):((?: .*\n)+)", RESULTS)
            for pattern in patterns.split()]  # fmt: skip
TWO = [  # functions with two kinds of results: an argument, its type for the usual one, for the other; the other result
    ("max min median", "dim", "Tensor | None", "_int", "_ValuesAndIndices"),
    ("size stride", "dim", "None", "_int", "_int"),
    ("nonzero", "as_tuple", "Literal[False]", "Literal[True]", "tuple[Tensor, ...]"),
    ("max_pool1d max_pool2d adaptive_max_pool1d adaptive_max_pool2d", "return_indices", "Literal[False]",
     "Literal[True]", "tuple[Tensor, Tensor]"),
]  # fmt: skip
OWN = set("backward forward jvp setup_context step vjp vmap".split())  # which subclasses define, with their arguments


def result_of(owner, name):
    title = f"{owner.removeprefix('engine.')}.{name}"
    found = [result for pattern, result in PATTERNS if "." in pattern and fnmatchcase(title, pattern)]
    found += [result for pattern, result in PATTERNS if fnmatchcase(name, pattern)]
    return (found or ["Tensor" if owner in OF_TENSORS else "Any"])[0]


def lines_of(kind, name):
    """[{argument: its type}], for each line of a public name of that kind."""
    method = kind in ("method", "in_place")
    found = [
        {p.name: KINDS[p.kind] + " | None" * p.optional for p in signature.parameters if p.kind}
        for (_, kinds, title), (_, _, lines) in LINES.items()
        if title + "_" * (kind == "in_place") == name and kind in kinds.split()
        for signature in (Signature(*line, method) for line in lines)
        if signature.of_tensor or not method
    ]
    if method and not found:  # a method without a line may have its function's
        return lines_of("function", name.removesuffix("_"))[:1]
    return [types for i, types in enumerate(found) if types not in found[:i]] or [{}]


# ---- functions


class Text:
    """What ``str(signature)`` shows as it is."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def shown(default):
    """A default as it stands in a stub."""
    values = default if isinstance(default, tuple) else (default,)
    plain = all(v is None or isinstance(v, bool | int | str) or isinstance(v, float) and isfinite(v) for v in values)
    return default if default is ABSENT or plain else Text("...")


def arguments(signature, types, method, asked=""):
    """What stands between the brackets; the argument ``asked`` must be given."""
    found = list(signature.parameters.values())
    for i, p in enumerate(found):
        star = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        known = types.get(p.name) or ({"more": "_int"} if star else ARGUMENTS).get(p.name, "Any")
        if p.default is None and p.name != asked and not re.search("None|Any", known):
            known += " | None"
        after_defaults = p.name == asked and any(before.default is not ABSENT for before in found[:i])
        kind = p.KEYWORD_ONLY if after_defaults else p.kind
        default = ABSENT if p.name == asked else shown(p.default)
        found[i] = p.replace(name=p.name + "_" * iskeyword(p.name), kind=kind, annotation=Text(known), default=default)
    if method:
        found[0] = found[0].replace(name=method, annotation=ABSENT)
    return str(inspect.Signature(sorted(found, key=lambda p: p.kind)))


def function(owner, name, signature, kind=""):
    """The lines for a function; ``kind``: as the headings of the lines have it, or "method"."""
    method = "cls" if name == "__new__" or kind == "class" else "self" if kind in ("method", "in_place") else ""
    if name[:2] == "__" and name not in ("__call__", "__init__", "__new__"):  # Python calls operators by position
        found = [p for p in signature.parameters.values() if p.kind < p.KEYWORD_ONLY]
        signature = inspect.Signature([p.replace(kind=min(p.kind, 2 * (p.kind == 2))) for p in found])
    if name == "__call__" and list(signature.parameters)[1:] in (["func"], ["function"]):
        return [f"def __call__(self, {list(signature.parameters)[1]}: _F) -> _F: ..."]  # a decorator
    result, found = result_of(owner, name), []
    for types in lines_of(kind, name):
        types |= {} if result == "Tensor" else {"out": "Any"}
        types |= {"other": "Tensor | _Number"} if owner == "Tensor" and name[:2] == "__" else {}
        for names, asked, usual, other, its_result in TWO:
            if name in names.split() and asked in signature.parameters:
                found.append((arguments(signature, types | {asked: usual}, method), result))
                found.append((arguments(signature, types | {asked: other, "out": "Any"}, method, asked), its_result))
                break
        else:
            found.append((arguments(signature, types, method), result))
    mark = ["@overload"] if len(found) > 1 else []
    clash = "  # type: ignore[override]" if name in ("__eq__", "__ne__") and owner == "Tensor" else ""
    return [line for a, r in found for line in [*mark, f"def {name}{a} -> {r}: ...{clash}"]]


# ---- classes

PLUMBING = set("""__annotate__ __annotate_func__ __annotations__ __class_getitem__ __copy__ __deepcopy__ __dir__
__getattribute__ __getnewargs__ __getstate__ __init_subclass__ __reduce__ __reduce_ex__ __replace__ __repr__
__setstate__ __subclasshook__""".split())  # fmt: skip
INTERNAL = set("""before bind category construct creation_meta fields given go_back grad_checks inference keep known
looks mark observed_init plain_init shared shown transform_level typename view_ops""".split())  # fmt: skip
OF_BUILTINS = {"tuple": "[_int, ...]", "dict": "[Any, Any]"}


def is_public(name, what=None):
    return name[0] != "_" and name not in INTERNAL or name[:2] == "__" and callable(what) and name not in PLUMBING


def with_private_bases(cls):
    """A class and those above it that are not public: their members are written down as its own."""
    private = [base for base in cls.__bases__ if base.__module__.startswith("engine") and base not in HOMES]
    return [cls, *(c for base in private for c in with_private_bases(base))]


@cache
def classes(module):
    """{name of a class in a file: the names that its methods give to ``self``}"""
    found, todo = {}, [("", ast.parse(inspect.getsource(sys.modules[module])))]
    for above, node in todo:  # which grows meanwhile
        inside = above
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            inside += f"{node.name}." + "<locals>." * isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.ClassDef):
            found[above + node.name] = {
                n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                and isinstance(n.value, ast.Name) and n.value.id == "self"
            }  # fmt: skip
        todo += [(inside, child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


def attributes(cls):
    """The names that methods of a class give to ``self``."""
    written = cls.__module__.startswith("engine")  # and not made by a function, nor one of Python's own
    return classes(cls.__module__).get(cls.__qualname__, set()) if written else set()


def member(owner, name, what, root=False):
    """The lines for what a class or a module has."""
    if root and name in OWN:
        return [f"{name}: Callable[..., Any]"]
    if isinstance(what, property) and not what.fset:
        return ["@property", f"def {name}(self) -> {result_of(owner, name)}: ..."]
    if isinstance(what, staticmethod | classmethod):
        signature, kind = inspect.signature(what.__func__), type(what).__name__
        mark = [] if name == "__new__" else [f"@{kind}"]
        return mark + function(owner, name, signature, kind.removesuffix("method").removesuffix("static"))
    if inspect.isclass(what) or not callable(what):
        kind = type(what).__name__
        return [f"{name}: " + (f"_{kind}" if kind in (*BUILTINS, "dtype") else result_of(owner, name))]
    return function(
        owner, name, inspect.signature(what), "in_place" if owner == "Tensor" and name[-1] == "_" else "method"
    )


def class_(title, name, cls):
    own, bases, imports = with_private_bases(cls), [], []
    for base in dict.fromkeys(base for c in own for base in c.__bases__ if base not in own and base is not object):
        takes = "[_T_co]" if getattr(cls, "__parameters__", ()) else ""
        takes = takes if getattr(base, "__parameters__", base is Generic) else OF_BUILTINS.get(base.__name__, "")
        home = HOMES.get(base, base.__module__)
        alias = base.__name__ if home in (title, "builtins", "typing") else f"_{base.__name__}"
        imports += [f"from {home} import {base.__name__} as {alias}"] if alias[0] == "_" else []
        bases.append(alias + takes)
    there = {n: what for c in reversed(own) for n, what in vars(c).items() if is_public(n, what)}
    for base in cls.__mro__:
        if base.__module__ == "builtins" and cls is not Tensor:  # whose own methods are known
            there = {n: what for n, what in there.items() if n not in dir(base) or n in ("__init__", "__new__")}
    lines = []
    for n in sorted(there):
        what, made_by_row = there[n], n == "__init__" and any("__signature__" in vars(c) for c in own)
        lines += function(name, n, of_class(cls), "method") if made_by_row else member(name, n, what, not bases)
    if "__call__" in vars(type(cls)) and type(cls) is not type:  # the class of the class makes the instances
        lines += function(name, "__new__", of_class(cls))
    if cls is not Tensor:
        more = set().union(*map(attributes, own)) - set(there)
        lines += [f"{n}: Any" for n in sorted(more) if is_public(n)]
    head = f"class {name}({', '.join(bases)}):" if bases else f"class {name}:"
    return [*imports, head, *(f"    {line}" for line in lines or ["..."])]


def of_class(cls):
    """The signature of its ``__init__``, which is ``cls.__signature__`` or the one of the class of the class."""
    signature = inspect.signature(cls)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return signature.replace(parameters=[this, *signature.parameters.values()])


# ---- modules


def names(title):
    """The public names of a module: those with a text."""
    below = [m.rpartition(".")[2] for m in MODULES if m.rpartition(".")[0] == title]
    texts = [n for n in help.texts(title.removeprefix("engine.")) if "." not in n]
    return sorted({*below, *texts, *["__version__"] * (title == "engine")})


def homes():
    """{class or function: the module whose stub writes it down, where it was defined or above that}"""
    found = {}
    for title in MODULES:
        for name in names(title):
            what = getattr(MODULES[title], name)
            if inspect.isclass(what) or inspect.isfunction(what):
                found.setdefault(what, []).append(title)
    above = {what: [t for t in titles if f"{what.__module__}.".startswith(f"{t}.")] for what, titles in found.items()}
    return {what: max(above[what], key=len, default=min(titles, key=len)) for what, titles in found.items()}


HOMES = homes()
KIND = {"engine": "function", "engine.nn.functional": "functional", "engine.linalg": "linalg"}


def stub(title):
    """The text of a module's stub."""
    lines = []
    for name in names(title):
        what = getattr(MODULES[title], name)
        home = HOMES.get(what, title) if inspect.isclass(what) or inspect.isfunction(what) else title
        if isinstance(what, ModuleType):
            above, _, own = what.__name__.rpartition(".")
            lines.append(f"from {above} import {own} as {name}")
        elif home != title:
            lines.append(f"from {home} import {what.__name__} as {name}")
        elif inspect.isclass(what):
            lines += class_(title, name, what)
        elif callable(what):
            lines += function(title, name, inspect.signature(what), KIND.get(title, ""))
        else:
            lines += member(title, name, what)
    imports = sorted({line for line in lines if line.startswith("from ")})
    rest = [line for line in lines if not line.startswith("from ")]
    return "\n".join([HEAD + (SHARED if title == "engine" else BORROWED), *imports, *rest, ""])


def contents():
    """{file: what should be in it}"""
    return {Path(module.__file__).with_suffix(".pyi"): stub(title) for title, module in MODULES.items()}
