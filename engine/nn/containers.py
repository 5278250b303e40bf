"""Modules and parameters in sequences and dictionaries."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain
from operator import index

from ..core.tensor import Tensor
from . import messages
from .module import Module, framed, full_name, indented
from .parameter import Parameter


def checked_position(i, size):
    """A position counted from the front.  IndexError if there is none."""
    i = index(i)
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of range")
    return i % size


def pairs(name, items):
    """(key, value) of a mapping or of an iterable of pairs.  TypeError or ValueError if it is neither."""
    if not isinstance(items, Iterable):
        raise TypeError(messages.UPDATE_NO_PAIRS.format(name, type(items).__name__))
    if isinstance(items, (Mapping, Keyed)):
        yield from items.items()
        return
    for j, item in enumerate(items):
        if not isinstance(item, Iterable):
            raise TypeError(f"{name} update sequence element #{j} should be Iterable; is{type(item).__name__}")
        if len(item) != 2:
            raise ValueError(f"{name} update sequence element #{j} has length {len(item)}; 2 is required")
        yield item


class Numbered(Module):
    """Modules in a row, under the names "0", "1", ..."""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, i):
        return [*self._modules.values()][checked_position(i, len(self))]

    def __setitem__(self, i, module):
        setattr(self, [*self._modules][checked_position(i, len(self))], module)

    def __delitem__(self, i):
        names = [*self._modules]
        for name in names[i] if isinstance(i, slice) else [names[checked_position(i, len(self))]]:
            delattr(self, name)
        self.__dict__["_modules"] = {str(k): module for k, module in enumerate(self)}

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index, module):
        """Add a module before position ``index``."""
        for k in range(len(self), index, -1):
            self._modules[str(k)] = self._modules[str(k - 1)]
        self._modules[str(index)] = module

    def pop(self, key):
        """Take out the module at position ``key``, and return it."""
        module = self[key]
        del self[key]
        return module


class Sequential(Numbered):
    """Modules called one after another: ``Sequential(a, b)`` or ``Sequential(OrderedDict(first=a, second=b))``."""

    def __init__(self, *args):
        super().__init__()
        ordered = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if ordered else ((str(i), m) for i, m in enumerate(args)):
            self.add_module(name, module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, i):
        if isinstance(i, slice):
            return type(self)(OrderedDict([*self._modules.items()][i]))
        return super().__getitem__(i)

    def insert(self, index, module):
        """Add a module before position ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        super().insert(index + n if index < 0 else index, module)
        return self

    def __add__(self, other):
        return Sequential(*self, *sequence(other))

    def __iadd__(self, other):
        return self.extend(sequence(other))

    def __mul__(self, times):
        return Sequential(*[*self] * checked_times(self, times))

    __rmul__ = __mul__

    def __imul__(self, times):
        return self.extend([*self] * (checked_times(self, times) - 1))


def sequence(other):
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


def checked_times(sequential, times):
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(sequential)} and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {type(sequential)}")
    return times


class ModuleList(Numbered):
    """Modules in a list: they are found by ``parameters()``, unlike those in a Python list."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, i):
        return type(self)([*self][i]) if isinstance(i, slice) else super().__getitem__(i)

    def extend(self, modules):
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def __add__(self, other):
        return ModuleList(chain(self, other))

    def __iadd__(self, modules):
        return self.extend(modules)

    def __repr__(self):
        runs: list = []  # equal neighbours are shown once: [first, last, text]
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [f"({i}): {text}" if i == j else f"({i}-{j}): {j - i + 1} x {text}" for i, j, text in runs]
        return framed(self, [*map(indented, lines)])


class Keyed(Module):
    """A base for the two containers that are dictionaries."""

    _held = ""  # the attribute that has the keys in their order

    def __delitem__(self, key):
        del vars(self)[self._held][key]

    def __len__(self):
        return len(self.keys())

    def __iter__(self):
        return iter(self.keys())

    def __contains__(self, key):
        return key in self.keys()

    def keys(self):
        return vars(self)[self._held].keys()

    def clear(self):
        for key in [*self]:
            del self[key]

    def pop(self, key):
        """Take out what stands under a key, and return it."""
        value = self[key]
        del self[key]
        return value


class ModuleDict(Keyed):
    """Modules in a dictionary."""

    _held = "_modules"

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules):
        """Add the modules of a mapping or of an iterable of pairs."""
        for key, module in pairs("ModuleDict", modules):
            self[key] = module


def shown(key, value, kind):
    """A line of the text of a container of parameters; ``kind(tensor)`` names its type."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    where = f" ({value.device})" if value.device.type == "cuda" else ""
    word = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({key}): {word} containing: [{kind(value)} of size {size}{where}]"


def as_parameter(value):
    """A tensor made a Parameter; anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """Parameters (and what else is put in) in a list; tensors become Parameters."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self):
        return self._size

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i):
        if isinstance(i, slice):
            return type(self)(self[k] for k in range(*i.indices(len(self))))
        return getattr(self, str(checked_position(i, len(self))))

    def __setitem__(self, i, value):
        setattr(self, str(checked_position(i, len(self))), as_parameter(value))

    def append(self, value):
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in [*values]:
            self.append(value)
        return self

    __iadd__ = extend

    def extra_repr(self):
        return "\n".join(shown(i, value, lambda t: t.dtype) for i, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Keyed):
    """Parameters (and what else is put in) in a dictionary; tensors become Parameters."""

    _held = "_keys"

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        return getattr(self, text_key(key))

    def __setitem__(self, key, value):
        setattr(self, text_key(key), as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key):
        super().__delitem__(key)
        delattr(self, key)

    def __reversed__(self):
        return reversed(self._keys)

    def copy(self):
        """Another dictionary of the same parameters."""
        return type(self)(OrderedDict(self.items()))

    def setdefault(self, key, default=None):
        """The value of a key, which is set to ``default`` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def get(self, key, default=None):
        """The value of a key, or ``default``."""
        return self[key] if key in self else default

    def popitem(self):
        """Take out the last key and its value, and return both."""
        key, _ = self._keys.popitem()
        value = self[key]
        delattr(self, key)
        return key, value

    def fromkeys(self, keys, default=None):
        """A new dictionary with one value for all keys."""
        return type(self)((key, default) for key in keys)

    def items(self):
        return ((key, self[key]) for key in self._keys)

    def values(self):
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Add what is in a mapping (in the order of its keys, if it is no OrderedDict) or in an iterable of pairs."""
        items = pairs("ParametersDict" if not isinstance(parameters, Iterable) else "ParameterDict", parameters)
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(items) if plain else items:
            self[key] = value

    def __or__(self, other):
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other):
        copy = other.copy()
        copy.update(self)
        return copy

    def __ior__(self, other):
        self.update(other)
        return self

    def extra_repr(self):
        return "\n".join(shown(key, value, full_name) for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")


def text_key(key):
    if not isinstance(key, str):
        raise TypeError(messages.KEY_NO_STRING.format(type(key).__name__))
    return key
