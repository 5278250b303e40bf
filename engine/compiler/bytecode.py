"""Read a function's bytecode: the names that it looks up, and whether it does what no capture would repeat."""

import dis
import types
from functools import lru_cache

from ..nn.module import Module
from .steps import GraphBreak, line_text

# builtins that do something, or tell what no guard sees
EFFECTS = {*"print input open exec eval globals locals vars setattr delattr id breakpoint __import__".split()}
STORES = {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME", "YIELD_VALUE"}
READS = {"shape", "size", "numel", "nelement", "len"}  # how a program learns of sizes
# and loses them again
DECIDES = {*"min max int round divmod bool sorted index floor ceil abs str repr format hash any all".split()}
ASKS = {*"floor ceil index get count gcd isqrt comb remainder fmod issuperset issubset bit_length".split()}  # of others
OPERATIONS = {"//", "%", ">>", "&", "^", "|", "//=", "%=", ">>=", "&=", "^=", "|="}
ITEM = "[]"  # from 3.14 on an operation, too
TRUTH = "TO_BOOL", "UNARY_NOT", "POP_JUMP_", "JUMP_IF_"  # of what was computed: "if n - 3:"


def codes_in(code):
    """The code of a function and of those defined inside of it."""
    return [code, *(c for part in nested_codes(code) for c in codes_in(part))]


def nested_codes(code):
    """The code of the functions that one defines itself; that of annotations (3.14) is for those who ask for them."""
    return [part for part in code.co_consts if type(part) is types.CodeType and part.co_name != "__annotate__"]


def names_in(code):
    """The names that a function, and those defined inside of it, look up."""
    return list(dict.fromkeys([n for part in codes_in(code) for n in part.co_names] + words_in(code)))


def words_in(code):
    """The names that a function may give to getattr() and hasattr()."""
    asking = [part for part in codes_in(code) if not {"getattr", "hasattr"}.isdisjoint(part.co_names)]
    return [word for part in asking for word in part.co_consts if isinstance(word, str) and word.isidentifier()]


@lru_cache(maxsize=1024)
def globals_in(code):
    """The names that a function, and those defined inside of it, look up among globals and builtins."""
    looked_up = ("LOAD_GLOBAL", "LOAD_NAME")
    found = (i.argval for c in codes_in(code) for i in dis.get_instructions(c) if i.opname in looked_up)
    return tuple(dict.fromkeys(found))


def line_of(code, name):
    """file:line: text where a function first looks a name up."""
    for part in codes_in(code):
        for instruction in dis.get_instructions(part):
            if instruction.argval == name and instruction.positions and instruction.positions.lineno:
                return line_text(part.co_filename, instruction.positions.lineno)
    return " "


def check_effects(code, new=()):
    """GraphBreak where a function prints, or stores what outlives the call, but for attributes of what is ``new``."""
    last = ()
    for instruction in dis.get_instructions(code):
        name, done = instruction.argval, ""
        own = instruction.opname == "STORE_ATTR" and (name == "grad" or last[-1:] == new != ())
        last = name if type(name) is tuple else (name,)
        if instruction.opname in STORES and not own:
            done = f"it stores, imports or yields: {name}"
        elif instruction.opname == "STORE_DEREF" and name in code.co_freevars:
            done = f"it changes the variable {name} of an outer function"
        elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in EFFECTS:
            done = f"it calls {name}()"
        if done:
            line = instruction.positions and instruction.positions.lineno
            raise GraphBreak(done, line_text(code.co_filename, line or code.co_firstlineno))
    for part in nested_codes(code):
        if part.co_name != "<genexpr>":
            check_effects(part)


OPCODE_WORDS = {"CONTAINS_OP": "in", "CHECK_EXC_MATCH": "except",
                **dict.fromkeys(("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"), "f-string")}  # fmt: skip


def decided(codes):
    """Say why sizes must not vary, or None: the program may choose by them in a way that no tape shows."""
    if not any(READS.intersection(c.co_names) for c in codes):
        return None
    for code in codes:
        last, names, computed = None, (), set()
        for instruction in dis.get_instructions(code):
            name, value = instruction.opname, instruction.argval
            reckoned = last is not None and last.opname == "BINARY_OP" and last.argrepr != ITEM
            word = last is not None and last.opname == "LOAD_CONST" and isinstance(last.argval, str)
            decides = (
                (name in ("COMPARE_OP", "CONTAINS_OP") and not word)  # what is compared with a word is no size
                or (name == "BINARY_OP" and instruction.argrepr in OPERATIONS)
                or (name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") and value in DECIDES)
                or (name in ("LOAD_ATTR", "LOAD_METHOD") and value in ASKS)
                or name in ("CHECK_EXC_MATCH", "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")
                or (name.startswith(TRUTH) and (reckoned or not computed.isdisjoint(names[-1:])))
            )
            if decides:
                shown = value if isinstance(value, str) else instruction.argrepr
                word = "if" if name.startswith(TRUTH) else OPCODE_WORDS.get(name, shown)
                return f"{code.co_name} may choose by a size: {word}"  # argrepr differs from Python to Python
            if name.startswith("STORE_FAST") and reckoned:
                computed.add(value[0] if type(value) is tuple else value)
            if name != "COPY":  # of what "or" and "and" test
                last, names = instruction, value if type(value) is tuple else (value,)  # one may do two things
    return None


def argument_names(function):
    """List the names of a function's arguments."""
    function = function.forward if isinstance(function, Module) else function
    skip = int(type(function) is types.MethodType)
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[skip : code.co_argcount]
