"""Public functions and methods, written out from their lines in ``signatures.py``.

A door has the signature of PyTorch's function.  Where every argument is of the type that the line says, it calls the
operation.  ``Door.unusual`` looks at all other calls: it converts what PyTorch converts, writes into ``out=``, or says
in PyTorch's words which argument is wrong.  What arguments of these types must be besides, the check of the operation's
name says, in ``checks/``: it is called first, with those of the door's arguments that its own are named after.
"""

import functools
import importlib
import inspect
import linecache
import re
from collections import defaultdict

import numpy as np

from .. import ops
from ..arrays import dtypes
from ..arrays.quiet import be_quiet, hush, quiet, state  # noqa: F401  what is written out asks
from ..arrays.size import Size
from ..arrays.threads import new_lock
from ..arrays.warn import warn
from ..core.tensor import Tensor
from ..help import describe, of_methods, texts
from ..ops import rows
from ..ops.checks import integer, is_scalar, listed, misfit, number, unfit
from ..ops.writes import in_place
from . import checks, messages
from .outputs import into
from .signatures import ALIASES, OLD_ORDERS, SIGNATURES

DOOR = __file__.replace("doors.py", "<door>")  # the file that the functions are in, as tracebacks say
linecache.cache[DOOR] = 0, None, [], DOOR  # it has no lines: who shows a traceback would take this module's for them
ABSENT = inspect.Parameter.empty  # in the place of an argument that is not given

OF_ONE = "Tensor input", "Tensor input, *, Tensor? out=None"

# ---- the types of arguments

FITS = Tensor, int, float, np.generic
PLAIN = {int, float, bool}
NUMBERS = {*PLAIN, *(np.dtype(kind).type for kind in "?bhilqBefd")}
DIMS = {int, tuple, list, Size}


def one_of(word, *kinds):
    """Return a function that passes values of these kinds and refuses others; ``word``: PyTorch's name for them."""

    def take(*given):
        if not isinstance(given[0], kinds):
            raise misfit(*given, word)
        return given[0]

    return take


def an_int(value, *where):
    if isinstance(value, Tensor) and value.array.ndim:
        raise misfit(value, *where, "int")
    return integer(value, *where)


def int_or_tensor(value, *where):
    return value if isinstance(value, Tensor) else integer(value, *where)


def ints(value, *where):
    listed(value, (), *where)
    return value


def ints_or_bool(value, *where):
    return value if type(value) is bool else ints(value, *where)


TYPES = {  # what is asked of an argument first; (value, function, argument, position) -> it as the operation has it
    "Tensor": ("isinstance({0}, Tensor)", one_of("Tensor", Tensor)),
    "Number|Tensor": ("(isinstance({0}, Tensor) or type({0}) in NUMBERS)", one_of("Tensor", *FITS)),
    "Number": ("type({0}) in PLAIN", number),
    "float": ("type({0}) in PLAIN", functools.partial(number, kind="float")),
    "int": ("type({0}) is int", an_int),
    "int|Tensor": ("(type({0}) is int or isinstance({0}, Tensor))", int_or_tensor),
    "int[]": ("type({0}) in DIMS", ints),  # each of them is looked at where something is wrong
    "int[]|bool": ("(type({0}) in DIMS or type({0}) is bool)", ints_or_bool),
    "bool": ("type({0}) is bool", one_of("bool", bool, np.bool_)),
}

# ---- lines


class Parameter:
    """``int? dim=None``: a type, a name, and a default or none."""

    def __init__(self, text, by_name):
        kind, self.name, default = re.fullmatch(r"(?:(\S+) )?(\w+)(?:=(.+))?", text).groups()
        self.kind, self.optional, self.by_name = (kind or "").removesuffix("?"), (kind or "").endswith("?"), by_name
        self.default = ABSENT if default is None else eval(default)

    def left_out(self):
        """Write the test for an argument that was not given."""
        if self.default is None or self.default is ABSENT:
            return f"{self.name} is {'ABSENT' if self.default is ABSENT else None}"
        return f"type({self.name}) is {type(self.default).__name__} and {self.name} == {self.default!r}"

    def test(self):
        """Write the test that an argument has its type; none for one that the operation itself looks at."""
        if not self.kind:
            return f"{self.name} is not ABSENT" if self.default is ABSENT else ""
        test = TYPES[self.kind][0].format(self.name)
        return f"({self.name} is None or {test})" if self.optional else test


class Signature:
    """The parameters in the brackets of a line, and the names that PyTorch's errors give function and arguments.

    ``method``: whether it is a method's, which has its first argument already and takes no ``out``.
    ``old_orders``: other orders by position.
    """

    def __init__(self, text, called, method=False, old_orders=()):
        self.parameters, self.more, self.options = [], "", ""  # the last two: the names of *more and **options
        by_name = False
        for part in text.split(", ") if text else ():
            name = part.lstrip("*")
            if part.startswith("**"):
                self.options = name
            elif part.startswith("*"):
                self.more, by_name = name, True
            else:
                self.parameters.append(Parameter(part, by_name))
        typed = any(p.kind for p in self.parameters)
        self.of_tensor = bool(self.parameters) and "Tensor" in self.parameters[0].kind
        # whether the first two may be numbers, of which the operation takes one
        self.two_numbers = not method and [p.kind for p in self.parameters[:2]] == ["Number|Tensor"] * 2
        if method:
            self.parameters = [p for p in self.parameters[1:] if p.name != "out"]
        self.name, order = re.fullmatch(r"(\w*)(?:\((.*)\))?", called).groups()
        self.order = [e.split("=") for e in order.split(", ")] if order else []

        self.names = [p.name for p in self.parameters]
        self.places = [p for p in self.parameters if not p.by_name]  # which may be given by position
        self.inputs = [p for p in self.parameters if p.name != "out"]
        self.old_orders = [[n for n in order.split() if n in self.names] for order in old_orders]
        # whether arguments have other names or orders; if the line has no types, Python says what is wrong with a call
        self.others = typed and (bool(old_orders) or any(name in ALIASES.values() for name in self.names))
        self.rest = self.more or "rest" * self.others  # where arguments by position beyond are
        self.other_names = self.options or "names" * self.others  # where arguments by other names are

    def head(self):
        """The parameters in Python's words.  With ``others`` any call comes through; defaults are set afterwards."""
        by_place = [p.name + "=None" * (self.others or p.default is not ABSENT) for p in self.places]
        by_name = [p.name + "=None" for p in self.parameters if p.by_name]
        star = ["*" + self.rest] if self.rest or by_name else []
        return by_place + star + by_name + (["**" + self.other_names] if self.other_names else [])

    def call(self):
        """List the arguments that are handed on to the operation."""
        by_name = [f"{p.name}={p.name}" for p in self.inputs if p.by_name]
        stars = [["*" + self.more] * bool(self.more), ["**" + self.options] * bool(self.options)]
        return [p.name for p in self.inputs if not p.by_name] + stars[0] + by_name + stars[1]

    def renamed(self):
        """Write the lines that give arguments under other names to parameters that were left out."""
        left_out = {p.name: p.left_out() for p in self.parameters if self.others}
        given = [(alias, n) for alias, n in ALIASES.items() if n in left_out]
        lines = [f"   if '{alias}' in names and {left_out[n]}: {n} = names.pop('{alias}')\n" for alias, n in given]
        return "  if names:\n" + "".join(lines) if lines else ""

    def tests(self):
        """List the tests that a call has to pass for the operation to be called at once."""
        tests = [test for p in self.inputs if (test := p.test())]
        if self.two_numbers:
            x, y = self.names[:2]
            tests[0] = f"(isinstance({x}, Tensor) or type({x}) in NUMBERS and isinstance({y}, Tensor))"
        if self.options and "out" in self.names:
            tests.append("out is None")
        if self.others:
            tests += ["not names"] if self.more else ["not names", "not rest"]
        return tests or ["True"]

    @functools.cached_property
    def looked_at(self):
        """(parameter, what errors call it), in the order of the errors."""
        left = {p.name: p for p in self.parameters}
        return [(left.pop(names[-1]), names[0]) for names in self.order] + [(p, p.name) for p in left.values()]

    def take(self, title, given, more, named=()):
        """The arguments as the operation has them.  TypeError in PyTorch's words for the first that is wrong."""
        name = self.name + title if self.name.endswith("_") else self.name or title
        taken = given.copy()
        for position, (p, called) in enumerate(self.looked_at, 1):
            value = given[p.name]
            if value is ABSENT:
                missing = [f'"{m.name}"' for m in self.parameters if given[m.name] is ABSENT]
                what = f"{len(missing)} required positional argument{'s' if len(missing) == 1 else ''}"
                raise TypeError(f"{name}() missing {what}: {', '.join(missing)}")
            typed = p.kind and p.name != "out" and not (more and p.kind == "int[]")
            if typed and (value is not None or not p.optional):
                bare = p.by_name or (position > len(self.order) and p.name in named)
                taken[p.name] = TYPES[p.kind][1](value, name, called, None if bare else position)
        return taken

    def named(self, given):
        """The parameters that were given by name, as far as it shows: those behind one that was left out."""
        left_out, found = False, []
        for p in self.places:
            if given[p.name] is p.default:
                left_out = True
            elif left_out:
                found.append(p.name)
        return found


# ---- doors


class Door:
    """A public name: the function that programs call, and the errors it raises.

    ``function`` is written out from the name's lines, or is an operation that calls what is written out for unusual
    arguments alone.
    """

    def __init__(self, title, inner, lines, several, method, module, check_of=None):
        self.title, self.inner, self.several, self.method = title, inner, several, method
        old_orders = OLD_ORDERS.get(title.removesuffix("_"), ())
        signatures = [Signature(*line, method, old_orders) for line in lines]
        self.signatures = [s for s in signatures if s.of_tensor or not method]  # of a method those that take a tensor
        self.check = checks.find(*check_of) if check_of else None  # of the family and the name of the operation
        f = writer(self.text())(self.check, inner, self.unusual)
        s = self.signatures[0]
        f.__defaults__ = tuple(p.default for p in s.places if s.others or p.default is not ABSENT)
        f.__kwdefaults__ = {p.name: p.default for p in s.parameters if p.by_name}
        f.__name__ = f.__qualname__ = title
        self.function = f = asking(inner, lines[0][0], f) or f
        f.__name__ = f.__qualname__ = title
        f.__module__, f.__doc__, f.__signature__ = module, inner.__doc__, inspect.Signature(self.shown())

    def checked(self, known, itself):
        """The arguments of the check, of what is known by name; ``itself``: a method's tensor."""
        code = self.check.__code__
        return [known.get(name, itself) for name in code.co_varnames[: code.co_argcount]]

    def unusual(self, values, more, names, *itself):
        """A call whose arguments are not all of the types that the operation is for.

        ``values``: an argument for every parameter; ``more``: those by position beyond; ``names``: by other names.
        """
        be_quiet()
        s = self.signatures[0]
        given = dict(zip(s.names, values))
        for name, value in () if s.options else names.items():
            p = next((p for p in s.parameters if p.name == ALIASES.get(name, name)), None)
            if p is None or given[p.name] is not p.default:
                raise TypeError(f"{self.title}() got an unexpected keyword argument '{name}'")
            given[p.name] = value
        old = more and not s.more and self.in_old_order(given, more)
        if old:
            given, more = old, ()
        elif more and not s.more:
            few, most = sum(p.default is ABSENT for p in s.places), len(s.places)
            takes = f"{few}" if few == most else f"from {few} to {most}"
            what = f"positional argument{'s' * (most != 1)} but {most + len(more)}"
            raise TypeError(f"{self.title}() takes {takes} {what} were given")
        taken = self.taken(given, more)
        if s.two_numbers and not any(isinstance(v, Tensor) for v in taken.values()):
            name, value = next(iter(taken.items()))  # the first becomes a tensor
            taken[name] = Tensor(rows.to_array(value, dtypes.scalar_dtype(value).np))
        if self.check:
            self.check(*self.checked({s.more: more, s.options: names} | taken, *itself[:1] or (None,)))
        out = taken.pop("out", None)
        if s.options:
            taken |= {"dtype": getattr(out, "dtype", None)} | names  # what makes a tensor makes it in the dtype of out
        args = [*itself, *[taken.pop(p.name) for p in s.places if p.name in taken], *more]
        return self.inner(*args, **taken) if out is None else into(out, self.inner, *args, **taken)

    def in_old_order(self, given, more):
        """The arguments by name, with a warning, if by position they stand in one of the old orders; None if not."""
        s = self.signatures[0]
        values = [*(given[p.name] for p in s.places), *more]
        factors = {p.name: f"Number {p.name} = 1" for p in s.parameters if p.by_name and p.name != "out"}
        out = ["Tensor out = None"] * ("out" in s.names)
        for names in s.old_orders:
            found = dict(zip(names, values))
            if len(names) == len(values) and all(is_scalar(found[name]) for name in factors.keys() & found.keys()):
                old = [f"Number {n}" if n in factors else f"Tensor {n}" for n in names] + ["*", *out] * len(out)
                new = [f"Tensor {p.name}" for p in s.places] + ["*", *factors.values(), *out]
                warn(messages.OLD_ORDER.format(self.title, ", ".join(old), ", ".join(new)))
                return given | found
        return None

    def taken(self, given, more):
        """The arguments as the first signature has them that takes them; PyTorch's TypeError if none does."""
        for signature in self.signatures:
            try:
                return signature.take(self.title, given, more)
            except TypeError:
                if not self.several:
                    break
        first = self.signatures[0]
        names = first.named(given)
        named = {n: given[n] for n in names}
        used = [given[p.name] for p in first.places if p.name not in names]
        while used and used[-1] is first.places[len(used) - 1].default:
            used.pop()
        if not self.several or self.several == "dim" and len(used) + len(named) + self.method < 2:
            return first.take(self.title, given, more, names)
        raise unfit(self.title, *used, **named)

    def text(self):
        """Write the function ``make``.  Of ``amax(Tensor input, int[] dim=(), bool keepdim=False)``, as a method::

        def make(check, inner, unusual):
            def door(self, dim=None, keepdim=None, *rest, **names):
                if type(dim) in DIMS and type(keepdim) is bool and not names and not rest:
                    if state() not in quiet: hush()
                    try: return inner(self, dim, keepdim)
                    except TypeError: pass
                return unusual((dim, keepdim, ), rest, names, self)
            return door
        """
        s, itself = self.signatures[0], ["self"] * self.method
        call = f"inner({', '.join(itself + s.call())})"
        body = f"return {call}"
        if "out" in s.names and not s.options:
            body += f" if out is None else {call.replace('inner(', 'into(out, inner, ', 1)}"
        if self.check:
            known = {n: n for n in (*s.names, s.more, s.options)}
            body = f"check({', '.join(self.checked(known, 'self'))}); {body}"
        if any(p.kind == "int[]" for p in s.parameters):  # of which not every one is looked at before
            again = f"\n    if {s.more}: raise" if s.more else " pass"
            body = f"try: {body}\n   except TypeError:{again}"
        values = f"({''.join(n + ', ' for n in s.names)})"
        return f"""
def make(check, inner, unusual):
 def door({", ".join(itself + s.head())}):
{s.renamed()}  if {" and ".join(s.tests())}:
   if state() not in quiet: hush()
   {body}
  return unusual({", ".join([values, s.rest or "()", s.other_names or "{}", *itself])})
 return door
"""

    def shown(self):
        """The parameters that help() shows."""
        s, new, kinds = self.signatures[0], inspect.Parameter, inspect._ParameterKind
        by_name = [new(p.name, kinds.KEYWORD_ONLY, default=p.default) for p in s.parameters if p.by_name]
        if s.options:  # of what makes tensors: the operation's own arguments
            own = dict(inspect.signature(self.inner).parameters)
            return (own | {p.name: p for p in by_name}).values()
        found = [new("self", kinds.POSITIONAL_OR_KEYWORD)] * self.method
        found += [new(p.name, kinds.POSITIONAL_OR_KEYWORD, default=p.default) for p in s.places]
        found += [new(s.more, kinds.VAR_POSITIONAL)] if s.more else []
        return found + by_name + ([new(s.options, kinds.VAR_KEYWORD)] if s.options else [])


def asking(operation, text, door):
    """The operation, if it looks itself whether its arguments are Tensors; it calls the door with all others."""
    made, code = getattr(operation, "asking", None), getattr(operation, "__code__", None)
    if not made or not all(name in text for name in code.co_varnames[: code.co_argcount]):
        return None
    if text in OF_ONE:
        return made(defaultdict(lambda: door))
    return made(door, ()) if ", Tensor other" in text else made(door)


@functools.cache
def writer(text):
    """The function ``make`` of a text; doors whose texts are alike share it."""
    exec(compile(text, DOOR, "exec"), globals(), found := {})
    return found["make"]


# ---- what is offered


def lines():
    """(family, where it is offered, name) -> (the operation's name, whether there are several, [(arguments, as)])"""
    found = {}
    for line in filter(None, SIGNATURES.replace(",\n    ", ", ").splitlines()):
        if line.startswith("["):
            family, _, kinds = line[1:].partition("] ")
            continue
        names, _, rest = line.partition("(")
        text, _, called = rest.partition(") as ")
        for entry in names.split():
            title, _, name = entry.partition("=")
            title, _, several = title.partition(".")
            row = found.setdefault((family, kinds, title), (name or title, several, []))
            row[2].extend([(text if called else text[:-1], called)] if rest else [])
    return found


LINES = lines()
OFFERED: dict = {}  # kind -> Offered
TEXTS = {"function": "engine", "functional": "nn.functional", "linalg": "linalg"}  # kind -> the file in help/


@functools.cache
def operations(family):
    return vars(importlib.import_module(f"{ops.__name__}.{family}"))


class Offered(dict):
    """The public names of one kind: functions of the package ("function"), methods of Tensor, ...

    A door is made when it is first asked for, so that ``import engine`` is quick; ``later`` has those that are not.
    """

    def __init__(self, kind, module):
        self.kind, self.module, self.method = kind, module, kind in ("method", "in_place")
        self.later = {}  # name -> what its door is made of
        for (family, kinds, title), (name, several, lines) in LINES.items():
            if kind in kinds.split():
                f = operations(family)[name]
                title += "_" * (kind == "in_place")
                if lines and not (self.method and lines[0][0] in OF_ONE and not hasattr(f, "asking")):
                    self.later[title] = f, lines, several, self.method, module, (family, name)
                else:  # it takes nothing
                    self[title] = in_place(f) if kind == "in_place" else f
        self.names = {*self, *self.later}
        OFFERED[kind] = self

    def __missing__(self, title):
        operation = self.later[title][0]
        f = Door(title, *self.later[title]).function
        if self.kind == "in_place":
            f.__name__, f.written = operation.__name__, getattr(operation, "written", None)
            f = in_place(f)
        text = (of_methods() if self.method else texts(TEXTS[self.kind])).get(title)
        if text:
            describe(f, text)
        return self.setdefault(title, f)  # two threads may have made one each

    def get(self, name, default=None):
        return self[name] if name in self.names else default

    def into_module(self, namespace):
        """Offer these names in a module; returns its ``__getattr__``."""
        namespace.update(self)

        def named(name):
            if name not in self.later:
                raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
            return namespace.setdefault(name, self[name])

        return named

    def into_class(self, Class):
        """Offer these names as methods."""
        for name in self.names:
            setattr(Class, name, Later(self, name, Class) if name in self.later else self[name])


class Later:
    """A method until it is first named: then it is made, and takes the place of this."""

    def __init__(self, functions, name, Class):
        self.functions, self.name, self.Class = functions, name, Class

    def __get__(self, instance, owner=None):
        with making:
            if vars(self.Class)[self.name] is self:
                setattr(self.Class, self.name, self.functions[self.name])
        return vars(self.Class)[self.name].__get__(instance, owner)


making = new_lock()
