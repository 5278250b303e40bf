"""Public functions and methods, written out from their lines in ``signatures.py``.

A door has the signature of PyTorch's function.  Where every argument is of the type that the line says, it calls the
operation.  ``Door.unusual`` looks at all other calls: it converts what PyTorch converts, writes into ``out=``, or says
in PyTorch's words which argument is wrong.  What arguments of these types must be besides, the check of the operation's
name says, in ``checks/``: it is called first, with those of the door's arguments that its own are named after.
"""

import dis
import functools
import inspect
import re
import sys
import threading
from collections import defaultdict

import numpy as np

from ..arrays import dtypes
from ..arrays.size import Size
from ..arrays.warn import ENGINE_FOLDER
from ..core.tensor import Tensor

from ..ops import activations, attention, conv, creation, elementwise, index, layers, linalg, losses  # isort: skip
from ..ops import norms, pad, pool, reduce, shape  # isort: skip
from ..ops import rows
from ..ops.checks import integer, listed, misfit, number, unfit
from ..ops.writes import in_place
from . import checks
from .outputs import into
from .signatures import ALIASES, SIGNATURES

families = (activations, attention, conv, creation, elementwise, index, layers, linalg, losses, norms, pad,
            pool, reduce, shape)  # fmt: skip
FAMILIES = {f.__name__.rpartition(".")[2]: f for f in families}
DOOR = __file__.replace("doors.py", "<door>")  # the file that the functions are in, as tracebacks say
ABSENT = inspect.Parameter.empty  # in the place of an argument that is not given
UNSET = {None: "None", False: "False", ABSENT: "ABSENT"}  # defaults, in place of which another name is looked for
NOT_HERE = object()  # a method's own tensor, which is not looked at
QUICK = {  # what is asked of an argument first
    "Tensor": "isinstance({0}, Tensor)",
    "Number|Tensor": "(isinstance({0}, Tensor) or type({0}) in NUMBERS)",
    "Number": "type({0}) in NUMBERS",
    "float": "type({0}) in NUMBERS",
    "int": "type({0}) is int",
    "int|Tensor": "(type({0}) is int or isinstance({0}, Tensor))",
    "int[]": "type({0}) in DIMS",
    "int[]|bool": "(type({0}) in DIMS or type({0}) is bool)",
    "bool": "type({0}) is bool",
}
FITS = Tensor, int, float, np.generic
NUMBERS = {int, float, bool, *(np.dtype(kind).type for kind in "?bhilqBefd")}
DIMS = {int, tuple, list, Size}


def one_of(word, *kinds):
    """What takes arguments of these kinds alone, as they are; ``word``: what PyTorch calls them."""

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


TAKES = {  # (value, function, argument, position) -> the value as the operation has it; or TypeError
    "": None,
    "Tensor": one_of("Tensor", Tensor),
    "Number|Tensor": one_of("Tensor", *FITS),
    "Number": number,
    "float": functools.partial(number, kind="float"),
    "int": an_int,
    "int|Tensor": int_or_tensor,
    "int[]": ints,
    "int[]|bool": lambda value, *where: value if type(value) is bool else ints(value, *where),
    "bool": one_of("bool", bool, np.bool_),
}


class Parameter:
    """``int? dim=None``: a kind, a name, and a default or none."""

    def __init__(self, text, by_name):
        kind, self.name, default = re.fullmatch(r"(?:(\S+) )?(\w+)(?:=(.+))?", text).groups()
        self.kind, self.optional, self.by_name = (kind or "").removesuffix("?"), (kind or "").endswith("?"), by_name
        self.default = ABSENT if default is None else eval(default)

    def quick(self, name):
        """What is asked of an argument first; nothing of one that the operation looks at, and may be left out."""
        if not self.kind:
            return f"{name} is not ABSENT" if self.default is ABSENT else ""
        test = QUICK[self.kind].format(name)
        return f"({name} is None or {test})" if self.optional else test


class Signature:
    """What stands between the brackets of a line, and what PyTorch's errors call the function and its arguments."""

    def __init__(self, text, called):
        text, _, self.options = text.partition(", **")  # handed on by name
        before, _, after = text.partition("*")
        self.more, after = re.fullmatch(r"(\w*)(?:, )?(.*)", after).groups()  # of *more
        self.parameters = [Parameter(t, False) for t in before.rstrip(", ").split(", ") if t]
        self.parameters += [Parameter(t, True) for t in after.split(", ") if t]
        self.name, order = re.fullmatch(r"(\w*)(?:\((.*)\))?", called).groups()
        self.order = [e.split("=") for e in order.split(", ")] if order else []

    @functools.cached_property
    def looked_at(self):
        """(parameter, what takes its argument or None, what errors call it), in the order of the errors."""
        left = {p.name: p for p in self.parameters}
        rows = [(left.pop(names[-1]), names[0]) for names in self.order] + [(p, p.name) for p in left.values()]
        return [(p, None if p.name == "out" else TAKES[p.kind], called) for p, called in rows]

    def take(self, title, given, more, named=()):
        """The arguments as the operation has them.  TypeError in PyTorch's words for the first that is wrong."""
        name = self.name + title if self.name.endswith("_") else self.name or title
        taken, position = given.copy(), 0
        for p, take, called in self.looked_at:
            value = given.get(p.name, NOT_HERE)
            if value is NOT_HERE:
                continue
            position += 1
            if value is ABSENT:
                missing = [f'"{m.name}"' for m in self.parameters if given.get(m.name) is ABSENT]
                what = f"{len(missing)} required positional argument{'s' if len(missing) == 1 else ''}"
                raise TypeError(f"{name}() missing {what}: {', '.join(missing)}")
            if take and (value is not None or not p.optional) and not (more and p.kind == "int[]"):
                bare = p.by_name or (position > len(self.order) and p.name in named)
                taken[p.name] = take(value, name, called, None if bare else position)
        return taken


def named_in_call():
    """The arguments that the program gives by name in the call of a door that is going on."""
    frame = sys._getframe()
    while frame.f_code.co_filename.startswith(ENGINE_FOLDER):
        frame = frame.f_back
    last = [i for i in dis.get_instructions(frame.f_code) if i.offset <= frame.f_lasti][-3:]
    name = "LOAD_CONST" if last[-1].opname == "CALL_KW" else "KW_NAMES"  # as Python 3.13 and 3.12 have it
    return next((frame.f_code.co_consts[i.arg] for i in reversed(last) if i.opname == name), ())


class Door:
    """A public name: where it leads, and what it says to who does not fit through.

    Its function is written out when it is first called, so that ``import engine`` is quick.
    """

    def __init__(self, title, inner, lines, several, method, module, check=None):
        self.title, self.inner, self.lines, self.several, self.method = title, inner, lines, several, method
        self.check = check
        self.asks = not check and getattr(inner, "made", None) and self.asking(inner)
        through = self.asks or inner
        through.__name__ = inner.__name__
        itself = self.asks and ("out" not in lines[0][0] or through.__code__.co_flags & inspect.CO_VARKEYWORDS)
        self.function = f = through if itself else shut(through, self.unusual, check)
        f.__name__ = f.__qualname__ = title
        f.__module__, f.__doc__, f.__signature__ = module, inner.__doc__, Shown(self)

    def asking(self, operation):
        """A row's operation that asks this door about anything but Tensors, and numbers if the line has them."""

        text = self.lines[0][0]
        pair = ", Number|Tensor " in text
        first = FITS if any(line.startswith("Number") for line, _ in self.lines) else Tensor

        def ask(*given, **names):
            if pair and isinstance(given[0], first) and isinstance(given[1], FITS):
                if isinstance(given[0], Tensor) or isinstance(given[1], Tensor):
                    return operation(*given)
            return self.unusual((*given[self.method :], None), (), names, *given[: self.method])

        if text in ITSELF:
            return operation.made(defaultdict(lambda: ask))
        return operation.made(ask, ()) if ", Tensor other" in text else operation.made(ask)

    @functools.cached_property
    def signatures(self):
        """Those of its lines; of a method those that take a tensor first.  Without a line the operation's own."""
        if not self.lines:
            return [Signature(str(inspect.signature(self.inner))[1:-1], "")]
        found = [Signature(*line) for line in self.lines]
        return [s for s in found if not self.method or "Tensor" in s.parameters[0].kind]

    @functools.cached_property
    def parameters(self):
        first = self.signatures[0].parameters
        return [p for p in first[1:] if p.name != "out"] if self.method else first

    @functools.cached_property
    def names(self):
        return [p.name for p in self.parameters]

    @functools.cached_property
    def places(self):
        """The parameters that an argument may be given to by position."""
        return [p for p in self.parameters if not p.by_name]

    @property
    def more(self):
        return self.signatures[0].more

    @property
    def options(self):
        return self.signatures[0].options

    @functools.cached_property
    def writes(self):
        """Whether the door writes into ``out``; where that has no type, the operation does."""
        return any(p.name == "out" and p.kind for p in self.parameters)

    def unusual(self, values, more, names, *itself):
        """A call whose arguments are not all of the types that the operation is for.

        ``values``: an argument for every parameter; ``more``: those by position beyond; ``names``: by other names.
        """
        given = dict(zip(self.names, values))
        for name in () if self.options else names:
            p, value = next((p for p in self.parameters if p.name == ALIASES.get(name, name)), None), names[name]
            if p is None or given[p.name] is not p.default:
                raise TypeError(f"{self.title}() got an unexpected keyword argument '{name}'")
            given[p.name] = value
        if more and not self.more:
            few, most = sum(p.default is ABSENT for p in self.places), len(self.places)
            takes = f"{few}" if few == most else f"from {few} to {most}"
            what = f"positional argument{'s' * (most != 1)} but {most + len(more)}"
            raise TypeError(f"{self.title}() takes {takes} {what} were given")
        taken = self.taken(given, more)
        numbers = self.parameters[0].kind == "Number|Tensor"
        if numbers and not any(isinstance(v, Tensor) for v in (*taken.values(), *itself)):
            name, value = next(iter(taken.items()))  # two numbers: the first becomes a tensor
            taken[name] = Tensor(rows.to_array(value, dtypes.scalar_dtype(value).np))
        if self.check:
            every = dict.fromkeys(self.checked, itself and itself[0]) | {self.more: more, self.options: names} | taken
            self.check(*map(every.get, self.checked))
        out = taken.pop("out", None) if self.writes else None
        if self.options:
            taken |= {"dtype": getattr(out, "dtype", None)} | names  # what makes a tensor makes it in the dtype of out
        args = [*itself, *[taken.pop(p.name) for p in self.places if p.name in taken], *more]
        return self.inner(*args, **taken) if out is None else into(out, self.inner, *args, **taken)

    def taken(self, given, more):
        """The arguments as the first signature has them that takes them; PyTorch's TypeError if none does."""
        for signature in self.signatures:
            try:
                return signature.take(self.title, given, more)
            except TypeError:
                if not self.several:
                    break
        names = named_in_call()
        named = {n: given[n] for n in names if n in given}
        used = [given[p.name] for p in self.places if p.name not in names]
        while used and used[-1] is self.places[len(used) - 1].default:
            used.pop()
        if not self.several or self.several == "dim" and len(used) + len(named) + self.method < 2:
            return self.signatures[0].take(self.title, given, more, names)
        raise unfit(self.title, *used, **named)

    @property
    def checked(self):
        """The names of those arguments that the check looks at."""
        return self.check.__code__.co_varnames[: self.check.__code__.co_argcount] if self.check else ()

    def open(self):
        """The function, with its code: one thread gives it that, once."""
        with writing_lock:
            if self.function.__code__ is SHUT:
                self.write()
        return self.function

    def write(self):
        """Give the function the code that its line stands for."""
        method, parameters = self.method, self.parameters
        typed = bool(self.lines) and not self.asks
        others = typed and any(p.name in ALIASES.values() for p in parameters)  # names that arguments have too
        short = {p.name: f"p{i}" for i, p in enumerate(parameters)}
        by_name = [p for p in parameters if p.by_name]
        rest = self.more or "rest" * others
        head, call = ["self"] * method, ["self"] * method
        head += [short[p.name] + "=None" * (others or p.default is not ABSENT) for p in self.places]
        head += ["*" + rest] if rest or by_name else []
        head += [f"{short[p.name]}=None" for p in by_name] + ["**names"] * bool(others or self.options)
        call += [short[p.name] for p in self.places if p.name != "out"]
        call += ["*" + self.more] * bool(self.more) + ["**names"] * bool(self.options)
        call += [f"{p.name}={short[p.name]}" for p in by_name if p.name != "out" or not p.kind]
        tests = [] if not typed else [p.quick(short[p.name]) for p in parameters if p.name != "out"]
        if tests and not method and parameters[0].kind == "Number|Tensor":
            tests[0] = QUICK["Tensor"].format("p0")
        if self.writes and self.options:
            tests.insert(0, f"{short['out']} is None")
        if others:
            tests.append("not names" if self.more else "not names and not rest")
        every = dict.fromkeys(self.checked, "self") | {self.more: self.more, self.options: "names"} | short
        check = f"check({', '.join(every[n] for n in self.checked)}); " * bool(self.check)
        tests, call = " and ".join(filter(None, tests)) or "True", ", ".join(call)
        inside = f"{check}return inner({call})"
        if self.writes and not self.options:
            inside += f" if {short['out']} is None else into({short['out']}, inner, {call})"
        if any(p.kind == "int[]" for p in parameters):  # of which not every one is looked at before
            inside = f"try: {inside}\n   except TypeError:\n    if {self.more or 'False'}: raise"
        names = "names" if others or self.options else "{}"
        given = f"({''.join(v + ', ' for v in short.values())}), {rest or '()'}, {names}"
        unset = {p.name: (short[p.name], UNSET[p.default]) for p in parameters if others and p.default in UNSET}
        also = [(a, *unset[n]) for a, n in ALIASES.items() if n in unset]
        also = [f"   if '{a}' in names and {v} is {default}: {v} = names.pop('{a}')\n" for a, v, default in also]
        also = "  if names:\n" * bool(also) + "".join(also)
        code = written(
            f"def make(inner, unusual, check):\n def door({', '.join(head)}):\n{also}  if {tests}:\n   {inside}\n"
            f"  return unusual({given}{', self' * method})\n  check"
        )
        f, names = self.function, {v: k for k, v in short.items()}
        f.__code__ = code.replace(co_varnames=tuple(names.get(v, v) for v in code.co_varnames))
        f.__defaults__ = tuple(p.default for p in self.places if others or p.default is not ABSENT)
        f.__kwdefaults__ = {p.name: p.default for p in by_name}


def shut(inner, unusual, check):
    """The function of a door before its first call."""

    def door(*args, **kwargs):
        return (inner, check) and unusual.__self__.open()(*args, **kwargs)

    return door


SHUT = next(c for c in shut.__code__.co_consts if inspect.iscode(c))
writing_lock = threading.Lock()


@functools.cache
def written(text):
    """The code of the function in a function that a text defines; doors whose texts are alike share it."""
    code = compile(text, DOOR, "exec")
    for _ in range(2):
        code = next(c for c in code.co_consts if inspect.iscode(c))
    return code


class Shown(inspect.Signature):
    """The signature that help() shows, made when it is asked for."""

    def __init__(self, door):
        self.door, self._return_annotation = door, inspect.Signature.empty

    @property
    def _parameters(self):
        kinds, door = inspect._ParameterKind, self.door
        found = [inspect.Parameter("self", kinds.POSITIONAL_OR_KEYWORD)] if door.method else []
        found += [inspect.Parameter(p.name, kinds.POSITIONAL_OR_KEYWORD, default=p.default) for p in door.places]
        found += [inspect.Parameter(door.more, kinds.VAR_POSITIONAL)] if door.more else []
        by_name = [p for p in door.parameters if p.by_name]
        found += [inspect.Parameter(p.name, kinds.KEYWORD_ONLY, default=p.default) for p in by_name]
        found += [inspect.Parameter(door.options, kinds.VAR_KEYWORD)] if door.options else []
        return {p.name: p for p in found}


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
OFFERED: dict = {}  # kind -> {name: function}: what is offered
ITSELF = "Tensor input", "Tensor input, *, Tensor? out=None"  # a method that takes nothing needs no door


def offered(kind, module):
    """The public names of one kind: functions of the package ("function"), methods of Tensor, ..."""
    found = {}
    for (family, kinds, title), (name, several, signatures) in LINES.items():
        if kind in kinds.split():
            f, method = vars(FAMILIES[family])[name], kind in ("method", "in_place")
            title += "_" * (kind == "in_place")
            check = vars(vars(checks).get(family, checks)).get(name)
            check = check if getattr(check, "__module__", "").startswith(checks.__name__) else None  # not an import
            if check or signatures and not (method and signatures[0][0] in ITSELF):
                through = Door(title, f, signatures, several, method and bool(signatures), module, check).function
                if kind == "in_place":
                    through.__name__, through.written = f.__name__, getattr(f, "written", None)
                f = through
            found[title] = in_place(f) if kind == "in_place" else f
    OFFERED[kind] = found
    return found
