"""Saving and loading without pickles: a safetensors file, whose metadata say how its tensors were nested.

The safetensors library reads and checks the file; it is written here, so that bytes go from arrays to the file without
a copy, and are the same each time.  How an object was nested is JSON under "engine" in the metadata::

    {"version": 1, "value": the object, "tensors": [how each is made of the entries], "strides": {entry: strides}}

So a dict of tensors is a file that other programs read under the same names, and the other way round.  Loading only
ever makes the containers, numbers and tensors that are named here.
"""

import base64
import ctypes
import json
import math
import os
from collections import Counter, OrderedDict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors import deserialize, safe_open

from .arrays import devices, dispatch, dtypes, memory
from .arrays.size import Size
from .core.tensor import Tensor, require_grad
from .nn.parameter import Parameter

DTYPE_OF = {  # safetensors' names of the dtypes
    "F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "I64": dtypes.int64,
    "I32": dtypes.int32, "I16": dtypes.int16, "I8": dtypes.int8, "U8": dtypes.uint8, "BOOL": dtypes.bool_,
}  # fmt: skip
WORD_OF = {d: word for word, d in DTYPE_OF.items()}
LONGEST_HEADER = 1 << 24  # bytes: enough for 100,000 names, and what it can blow up to fits into memory
PICKLED = (
    "those hold pickles, and to load a pickle can run any code. Where PyTorch is installed, write the tensors anew "
    "with safetensors.torch.save_file(state_dict, path), which engine.load reads"
)
FOREIGN = {
    b"PK\x03\x04": "it is a zip archive, as torch.save and numpy.savez write: " + PICKLED,
    b"\x80": "it begins as a pickle, as old versions of torch.save wrote: " + PICKLED,
}

# What is written as {name: content}: containers with their items, mappings with pairs of their items, others as a word.
ITEMS = {"tuple": tuple, "Size": Size, "set": set, "frozenset": frozenset}
MAPPINGS = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
WORDED = {
    "int": (int, hex, lambda word: int(word, 16)),
    "float": (float, str, float),
    "bytes": (bytes, lambda b: base64.b64encode(b).decode(), base64.b64decode),
    "dtype": (dtypes.dtype, lambda d: d.name, {d.name: d for d in dtypes.dtypes}.__getitem__),
    "device": (devices.device, str, devices.device),
}
TYPE_NAMES = {kind: name for name, kind in [*ITEMS.items(), *MAPPINGS.items(), *((k, v[0]) for k, v in WORDED.items())]}


# ---- save


def save(obj, f, pickle_module=None, pickle_protocol=None, _use_new_zipfile_serialization=True):
    """Write tensors and plain values, in dicts, lists, tuples and sets, to a path or a binary file object."""
    pieces = encoded(obj)
    if isinstance(f, (str, os.PathLike)):
        path = Path(f)
        if not path.parent.is_dir():
            raise RuntimeError(f"Parent directory {path.parent} does not exist.")
        write_file(path, pieces)
    elif hasattr(f, "write"):
        write_pieces(f, pieces)
    else:
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")


def write_file(path, pieces):
    """Write beside a file and put the result in its place; what is no file, as /dev/null, is written to."""
    if path.exists() and not path.is_file():
        with path.open("wb") as f:
            return write_pieces(f, pieces)
    path = path.resolve()  # a link stays one
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with beside.open("xb") as f:
            write_pieces(f, pieces)
            f.flush()
            os.fsync(f.fileno())
        if path.exists():
            beside.chmod(path.stat().st_mode)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_pieces(f, pieces):
    for piece in pieces:
        rest = memoryview(piece)
        while rest:  # an unbuffered file may take less than all
            n = f.write(rest)
            rest = rest[len(rest) if n is None else n :]


def encoded(obj):
    """The file as a list of byte strings and arrays of bytes."""
    structure = ObjectEncoder()
    try:
        value = structure.encode(obj, ())
    except RecursionError:
        raise ValueError("cannot save an object that is nested so deeply") from None
    arrays, records, strides = laid_out(list(structure.tensors.values()), structure.unique)
    text = json.dumps({"version": 1, "value": value, "tensors": records, "strides": strides}, separators=(",", ":"))
    header, end, pieces = {"__metadata__": {"format": "pt", "engine": text}}, 0, []
    for name, x in sorted(arrays.items(), key=lambda entry: -entry[1].itemsize):  # so that each is aligned
        word, begin, end = WORD_OF[dtypes.of[x.dtype]], end, end + x.nbytes
        header[name] = {"dtype": word, "shape": x.shape, "data_offsets": (begin, end)}
        pieces.append(np.ascontiguousarray(x).reshape(-1).view(np.uint8))
    text = json.dumps(header, separators=(",", ":"))
    n = len(text) + -len(text) % 8
    if n > LONGEST_HEADER:
        raise ValueError(f"cannot save {n} bytes of names and plain values: put long lists of numbers into tensors")
    return [n.to_bytes(8, "little"), text.ljust(n).encode(), *pieces]


class ObjectEncoder:
    """Turns an object into JSON, and collects its tensors."""

    def __init__(self):
        self.tensors = {}  # id -> (number, name, tensor)
        self.names = {"__metadata__"}
        self.seen = {}  # id of a list or dict -> its number

    def encode(self, value, path):
        kind = type(value)
        short = (kind is int and abs(value) < 2**63) or (kind is float and math.isfinite(value))
        if value is None or kind in (bool, str) or short:
            return value
        if isinstance(value, Tensor):
            return {"tensor": self.number(value, path)}
        name = TYPE_NAMES.get(kind)
        if name in WORDED:
            return {name: WORDED[name][1](value)}
        if name in ITEMS:
            return {name: [self.encode(v, (*path, i)) for i, v in enumerate(value)]}
        if name not in MAPPINGS and kind is not list:
            raise cannot_save(value, path)
        if id(value) in self.seen:
            return {"again": self.seen[id(value)]}
        self.seen[id(value)] = len(self.seen)
        if kind is list:
            return [self.encode(v, (*path, i)) for i, v in enumerate(value)]
        new = {name: [[self.encode(k, path), self.encode(v, (*path, k))] for k, v in value.items()]}
        if hasattr(value, "_metadata"):  # of a state_dict: the versions of its modules
            new["_metadata"] = self.encode(value._metadata, path)
        return new

    def number(self, tensor, path):
        """The number of a tensor in the order in which they are met."""
        if id(tensor) not in self.tensors:
            if tensor.__class__ not in (Tensor, Parameter):
                raise cannot_save(tensor, path)
            name = self.unique(".".join(map(str, path)) or "tensor")
            self.tensors[id(tensor)] = len(self.tensors), name, tensor
        return self.tensors[id(tensor)][0]

    def unique(self, wanted):
        """A name that no entry has yet, and that can be written in UTF-8."""
        name = wanted = wanted.encode(errors="replace").decode()
        while name in self.names:
            name = f"{wanted}#{len(self.names)}"
        self.names.add(name)
        return name


ADVICE = {
    np.ndarray: "torch.from_numpy(...) of it", np.generic: "its item()", Tensor: "its detach(), or a Tensor made of it",
    object: "the tensors, numbers, strings, lists and dicts that it is made of",
}  # fmt: skip


def cannot_save(value, path):
    """The error for a value, with the place where it is and what to do."""
    name, kind = getattr(value, "__name__", None), type(value)
    what = f"a {kind.__module__}.{kind.__qualname__}" if name is None else f"{name} (a {kind.__name__})"
    place = f" at {''.join(f'[{k!r}]' for k in path)}" if path else ""
    advice = next(advice for kind, advice in ADVICE.items() if isinstance(value, kind))
    advice = "its state_dict()" if hasattr(value, "state_dict") else advice
    return TypeError(f"cannot save {what}{place}: save {advice}")


def laid_out(tensors, unique):
    """({name: array}, [record of each tensor], {name: strides}): what is stored, and how the tensors are made of it.

    Tensors that share memory are stored once: as the one that fills all of it, if there is one, or else as the memory
    itself, with the elements between theirs.
    """
    copies: dict = {}
    arrays = [host_array(t, copies) for _, _, t in tensors]
    entries, records, strides = {}, [tensor_metadata(t) for _, _, t in tensors], {}
    for low, high, members in sharing(arrays):
        fill = (i for i in sorted(members) if arrays[i].nbytes == high - low)
        whole = next((i for i in fill if is_packed(arrays[i].shape, arrays[i].strides, arrays[i].itemsize)), None)
        if whole is not None:
            name, x = tensors[whole][1], arrays[whole]
            if not x.flags.c_contiguous:
                strides[name] = [s // x.itemsize for s in x.strides]
        else:
            name = unique(tensors[min(members)][1] + ".storage")
            x = bytes_between(low, high, [arrays[i].dtype for i in members])
        entries[name] = x
        for i in members:
            y = arrays[i]
            records[i]["in"] = name
            if i != whole and not (whole is not None and memory.same_place(x, y)):
                records[i] |= {"dtype": WORD_OF[dtypes.of[y.dtype]], "shape": y.shape}
                records[i] |= {"offset": memory.address(y) - low, "strides": [s // y.itemsize for s in y.strides]}
    return entries, records, strides


def host_array(t, copies):
    """The array of a tensor in host memory; ``copies``: the memory that was copied from devices already."""
    x = t.detach().shared()
    if type(x) in dispatch.device_names:
        owner = memory.storage(x)
        if id(owner) not in copies:
            copies[id(owner)] = devices.moved(memory.in_order(owner), "cpu"), owner
        start, whole = memory.address(x) - memory.address(owner), copies[id(owner)][0]
        x = np.ndarray(x.shape, x.dtype, whole, start, x.strides) if x.size else np.empty(x.shape, x.dtype)
    return x if min(x.strides, default=0) >= 0 else x.copy()


def tensor_metadata(t):
    """Return the facts about a tensor besides its elements that are not the usual ones."""
    record = {}
    if t.requires_grad != (t.__class__ is not Tensor):
        record["requires_grad"] = t.requires_grad
    if t.__class__ is not Tensor:
        record["class"] = "Parameter"
    if str(t.device) != "cpu":
        record["device"] = str(t.device)
    return record


def sharing(arrays):
    """Groups of arrays that overlap in memory: [first byte, last byte + 1, numbers of the arrays]."""
    spans, groups = [], []
    for i, x in enumerate(arrays):
        low = memory.address(x)
        if x.size:
            spans.append((low, low + sum((n - 1) * s for n, s in zip(x.shape, x.strides)) + x.itemsize, i))
        else:
            groups.append([low, low, [i]])
    end = 0
    for low, high, i in sorted(spans):
        if low < end:
            groups[-1][1] = end = max(high, end)
            groups[-1][2].append(i)
        else:
            groups.append([low, high, [i]])
            end = high
    return groups


def is_packed(shape, strides, itemsize):
    """Tell whether elements lie side by side, each once, in any order of the dims."""
    for s, n in sorted((s, n) for s, n in zip(strides, shape) if n != 1):
        if s != itemsize:
            return not math.prod(shape)
        itemsize *= n
    return True


def bytes_between(low, high, kinds):
    """The bytes of this process's memory between two addresses; as elements of one dtype where that is all there is."""
    x = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low)).copy()
    return x.view(kinds[0]) if len(set(kinds)) == 1 and x.size % kinds[0].itemsize == 0 else x


# ---- load


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None):
    """Load what ``save`` wrote, or any safetensors file as a dict, from a path or a seekable binary file."""
    if isinstance(f, (str, os.PathLike)):
        with Path(f).open("rb") as file:
            return loaded(file, map_location, f)
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {method!r}. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    return loaded(f, map_location)


def loaded(f, map_location, path=None):
    with reasons_for(f):
        entries, metadata = read(f, path)
        structure = json.loads(metadata["engine"]) if "engine" in metadata else None
        made = list(tensors_of(structure, entries))
    copies: dict = {}
    tensors = [finished(on_saved_device(t, saved, map_location, copies), *more) for t, saved, *more in made]
    if structure is None:
        return dict(zip(entries, tensors))
    with reasons_for(f):
        return Reader(tensors).decode(structure["value"])


class Damaged(Exception):
    """The reason why a file cannot be read."""


def ensure(condition, reason):
    if not condition:
        raise Damaged(reason)


@contextmanager
def reasons_for(f):
    """Raise one RuntimeError for whatever goes wrong with the contents of a file."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as e:
        reason = e if isinstance(e, Damaged) else f"it is damaged ({type(e).__name__}: {e})"
        raise RuntimeError(f"cannot load {getattr(f, 'name', 'this file')}: {reason}") from None


def read(f, path):
    """({name: array}, metadata) of a safetensors file.

    The library checks it; the commonest damages get words here.  ``path``: where it maps the same file into memory.
    """
    start = f.tell()
    size = f.seek(0, os.SEEK_END) - start
    f.seek(start)
    ensure(size > 0, "it is empty (or was read to its end: seek(0) first)")
    first = f.read(8)
    n = int.from_bytes(first, "little")
    if size < 8 or n > LONGEST_HEADER:
        for magic, reason in FOREIGN.items():
            ensure(not first.startswith(magic), reason)
        raise Damaged("it is no safetensors file: it does not begin with the length of a header")
    ensure(n <= size - 8, f"it is cut short: its header has {n} bytes, of which {size - 8} are there")
    header = json.loads(f.read(n))
    metadata = header.pop("__metadata__", {})
    end = 8 + n + max((entry["data_offsets"][1] for entry in header.values()), default=0)
    ensure(end <= size, f"it is cut short: it should have {end} bytes, and has {size}")
    ensure(end >= size, "there is more in it than its header says")
    for name, entry in header.items():
        word = entry["dtype"]
        ensure(word in DTYPE_OF, f"{name!r} is of dtype {word}, which the engine does not have: save it in another one")
    if path is None:
        f.seek(start)
        buffers = {name: entry["data"] for name, entry in deserialize(f.read())}
    else:
        with safe_open(path, "np") as file:
            buffers = {name: file.get_tensor(name).reshape(-1).view(np.uint8).data for name in header}
    arrays = {k: np.ndarray(entry["shape"], DTYPE_OF[entry["dtype"]].np, buffers[k]) for k, entry in header.items()}
    for x in arrays.values():
        if x.dtype == np.bool_:
            np.minimum(x.view(np.uint8), 1, out=x.view(np.uint8))  # no other byte than 0 and 1 is a bool
    return arrays, metadata


def tensors_of(structure, entries):
    """For each tensor that a structure describes: itself, its saved device, whether it requires grad, its class."""
    if structure is None:
        yield from ((Tensor(x), "cpu", False, None) for x in entries.values())
        return
    ensure(structure["version"] == 1, "it was written by a newer version of the engine")
    for name, strides in structure["strides"].items():
        entries[name] = restrided(entries[name], strides)
    for record in structure["tensors"]:
        x = entries[record["in"]]
        x = tensor_view(x, record) if "offset" in record else x
        kind, device = record.get("class"), record.get("device", "cpu")
        requires_grad = record.get("requires_grad", kind is not None)
        ensure(kind in (None, "Parameter"), "it has a tensor of an unknown class")
        ensure(type(requires_grad) is bool and isinstance(device, str), "it has a tensor with wrong properties")
        ensure(dtypes.of[x.dtype].is_floating_point or not requires_grad, "it has integers that require grad")
        yield Tensor(x), device, requires_grad, kind


def restrided(x, strides):
    """A copy of an array with other strides, which leave no gap."""
    strides = [s * x.itemsize for s in strides]
    ensure(len(strides) == x.ndim and is_packed(x.shape, strides, x.itemsize), "its strides do not fit")
    out = np.ndarray(x.shape, x.dtype, np.empty(x.shape, x.dtype), 0, strides)
    out[...] = x
    return out


def tensor_view(x, record):
    """The view of an array's memory that a record describes."""
    kind, shape, offset, strides = DTYPE_OF[record["dtype"]].np, record["shape"], record["offset"], record["strides"]
    proper = len(shape) == len(strides) and all(type(n) is int and 0 <= n < 2**63 for n in [*shape, *strides, offset])
    ensure(proper, "it has a view that is none")
    owner = memory.in_order(memory.storage(x))
    last = sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if math.prod(shape) else 0
    ensure(offset + last * kind.itemsize <= owner.nbytes, "it has a view that goes beyond its memory")
    view = np.ndarray(shape, kind, owner, offset, [s * kind.itemsize for s in strides])
    ensure(kind != np.bool_ or view.view(np.uint8).max(initial=0) <= 1, "it has a bool that is none")
    return view


def finished(t, requires_grad, kind):
    return require_grad(t, requires_grad) if kind is None else Parameter(t, requires_grad)


def on_saved_device(t, saved, where, copies):
    """A tensor on its device: that on which it was saved, unless ``where`` (a map_location) says another.

    ``copies``: the memory that was copied to devices already: what shares memory in the file does so there.
    """
    if callable(where):
        moved = where(t, saved)
        if moved is not None:
            return moved
        where = None
    elif isinstance(where, dict):
        where = where.get(saved)
    if str(where or saved) == "cpu":
        return t
    try:
        device = devices.device(where or saved)
        x = t.shared()
        owner = memory.storage(x)
        if owner.dtype != x.dtype or not x.size:
            return t.to(device)
        if (id(owner), device) not in copies:
            copies[id(owner), device] = devices.moved(memory.in_order(owner), device), owner
        whole, start = copies[id(owner), device][0], memory.address(x) - memory.address(owner)
        return Tensor(memory.strided(whole, x.shape, memory.element_strides(x), start // x.itemsize))
    except (AssertionError, NotImplementedError):
        if where is not None:
            raise
        kind = saved.partition(":")[0]
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. If "
            "you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
            "your storages to the CPU."
        ) from None


class Reader:
    """Makes the object that JSON describes."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.made = []  # lists and mappings, in the order in which they begin

    def decode(self, x):
        if isinstance(x, list):
            self.made.append(new := [])
            new.extend([self.decode(v) for v in x])
            return new
        if not isinstance(x, dict):
            return x
        name, content = next(iter(x.items()), (None, None))
        if name == "tensor":
            return self.tensors[content]
        if name == "again":
            return self.made[content]
        if name in WORDED:
            return WORDED[name][2](content)
        if name in ITEMS:
            return ITEMS[name](map(self.decode, content))
        self.made.append(new := MAPPINGS[name]())
        for k, v in content:
            new[self.decode(k)] = self.decode(v)
        if "_metadata" in x:
            new._metadata = self.decode(x["_metadata"])
        return new
