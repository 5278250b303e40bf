"""engine.save and engine.load: what goes in comes out, files are safetensors files, and no file does harm."""

import io
import json
import math
import os
import pickle
import stat
import struct
import tracemalloc
from collections import Counter, OrderedDict, namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from over_tables import over

import engine
from engine import serialization
from engine.arrays.dtypes import dtypes

FLOATING = ["float64", "float32", "float16", "bfloat16"]
ALL = [d.name for d in dtypes]


def saved(obj):
    f = io.BytesIO()
    engine.save(obj, f)
    return f.getvalue()


def loaded(data, **options):
    return engine.load(io.BytesIO(data), **options)


def again(obj):
    return loaded(saved(obj))


def file_of(header, data=b""):
    """A safetensors file: of a header, as JSON or as it stands, and the tensors' bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def parsed(data):
    """(header, bytes of the tensors) of a safetensors file, by the letter of the format."""
    (n,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + n]), data[8 + n :]


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def rewritten(obj, change):
    """The file of an object with its structure changed."""
    header, data = parsed(saved(obj))
    structure = json.loads(header["__metadata__"]["engine"])
    result = change(structure)
    structure = structure if result is None else result
    header["__metadata__"]["engine"] = json.dumps(structure)
    return file_of(header, data)


def address(t):
    return t.shared().__array_interface__["data"][0]


def assert_same(a, b):
    """Equal in type and value, all the way down; tensors in dtype, shape, strides and properties too."""
    assert type(a) is type(b)
    if isinstance(a, engine.Tensor):
        assert (a.dtype, a.shape, a.requires_grad, a.is_leaf) == (b.dtype, b.shape, b.requires_grad, True)
        if a.numel() > 1:
            assert strides(a) == strides(b)
        x, y = a.detach().shared(), b.detach().shared()
        assert np.array_equal(np.ascontiguousarray(x).view(np.uint8), np.ascontiguousarray(y).view(np.uint8))
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for v, w in zip(a, b, strict=True):
            assert_same(v, w)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        assert [type(k) for k in a] == [type(k) for k in b]
        for k in a:
            assert_same(a[k], b[k])
    elif isinstance(a, float):
        assert (a == b and math.copysign(1, a) == math.copysign(1, b)) or (math.isnan(a) and math.isnan(b))
    else:
        assert a == b


def strides(t):
    return [s for s, n in zip(t.stride(), t.shape, strict=True) if n != 1]


# ---- what goes in comes out


@st.composite
def tensors(draw):
    """A tensor of any dtype, or a view of one: transposed, sliced with steps, expanded."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    bytes_each = engine.tensor(0, dtype=getattr(engine, draw(st.sampled_from(ALL)))).array.dtype
    raw = np.frombuffer(draw(st.binary(min_size=(n := math.prod(shape) * bytes_each.itemsize), max_size=n)), np.uint8)
    if bytes_each == np.bool_:
        raw = raw & 1
    t = engine.Tensor(raw.copy().view(bytes_each).reshape(shape))
    if shape and draw(st.booleans()):
        t = t.permute(*draw(st.permutations(range(len(shape)))))
    if shape and draw(st.booleans()):
        t = t[:: draw(st.integers(1, 3))]
    if draw(st.integers(0, 4)) == 0:
        t = t.expand(2, *t.shape)
    if t.is_floating_point() and draw(st.booleans()):
        t = t.detach().requires_grad_()
    return t


plain = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=9)
    | st.sampled_from([*dtypes, engine.device("cpu"), engine.device("cuda:1"), engine.Size([2, 3]), frozenset({1})])
)  # fmt: skip
keys = st.text() | st.integers() | st.booleans() | st.none() | st.tuples(st.text(), st.integers())
objects = st.recursive(
    plain | tensors(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4).map(OrderedDict), st.sets(keys, max_size=4),
        st.dictionaries(st.text(), st.integers(), max_size=3).map(Counter),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=100)
@given(objects)
def test_any_object_comes_out_as_it_went_in(obj):
    assert_same(obj, again(obj))


@settings(max_examples=50)
@given(st.data())
def test_what_shares_memory_shares_it_after(data):
    """Views of one tensor: each element of each lies at the same distance from the others as before."""
    base = engine.arange(24.0).reshape(2, 3, 4)
    views = []
    for _ in range(data.draw(st.integers(2, 4))):
        v = base.permute(*data.draw(st.permutations(range(3))))
        for dim in range(3):
            first = data.draw(st.integers(0, v.shape[dim] - 1))
            v = v[(slice(None),) * dim + (slice(first, None, data.draw(st.integers(1, 2))),)]
        views.append(v)
    new = again(views)
    assert_same(views, new)
    for i, a in enumerate(views):
        for j, b in enumerate(views):
            if np.shares_memory(a.array, b.array):
                assert address(new[i]) - address(new[j]) == address(a) - address(b)
            else:
                assert not np.shares_memory(new[i].array, new[j].array)


def test_two_names_of_one_tensor_stay_one():
    w, b = engine.ones(3, requires_grad=True), engine.zeros(2)
    new = again({"encoder": w, "decoder": w, "twin": w.detach(), "bias": b, "rows": b[1:]})
    assert new["encoder"] is new["decoder"]
    new["bias"][1] = 5
    assert new["rows"].tolist() == [5]
    with engine.no_grad():
        new["encoder"][0] = 7
    assert new["twin"].tolist() == [7, 1, 1]


def test_shared_memory_is_stored_once():
    x = engine.zeros(1000)
    once = len(saved([x]))
    assert len(saved([x, x.detach(), x[10:], x.reshape(10, 100).t()])) < once + 1000
    parts = [x[::2], x[1::2]]  # neither fills the memory that both lie in
    assert len(saved(parts)) < once + 1000
    assert_same(again(parts), parts)


def test_of_a_large_tensor_only_the_part_that_is_saved_is_stored():
    assert len(saved(engine.zeros(100_000)[:2])) < 1000


def test_a_list_that_is_in_two_places_stays_one_and_may_hold_itself():
    shared = [1]
    new = again({"a": shared, "b": (shared,), "c": shared})
    assert new["a"] is new["b"][0] is new["c"]
    shared.append(shared)
    new = again(shared)
    assert new[1] is new
    d = {}
    d["me"] = [d]
    new = again(d)
    assert new["me"][0] is new


def test_a_computed_tensor_becomes_a_leaf():
    x = engine.ones(2, requires_grad=True)
    new = again([x * 2, (x * 2).sum()])
    assert [(t.tolist(), t.requires_grad, t.is_leaf) for t in new] == [([2, 2], True, True), (4, True, True)]


def test_parameters_stay_parameters():
    w, frozen = engine.nn.Parameter(engine.ones(2)), engine.nn.Parameter(engine.ones(1), requires_grad=False)
    new = again([w, frozen, w])
    assert [type(t) for t in new] == [engine.nn.Parameter] * 3
    assert [t.requires_grad for t in new] == [True, False, True]
    assert new[0] is new[2]


def test_a_state_dict_keeps_its_order_and_its_metadata():
    state = OrderedDict(b=engine.ones(1), a=engine.zeros(1))
    state._metadata = OrderedDict({"": {"version": 1}})
    new = again({"model": state})["model"]
    assert_same(new, state)
    assert_same(new._metadata, state._metadata)


def test_a_model_and_its_optimiser_go_on_where_they_were():
    def training():
        engine.manual_seed(0)
        model = engine.nn.Sequential(engine.nn.Linear(3, 4), engine.nn.Tanh(), engine.nn.Linear(4, 1))
        return model, engine.optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        loss = (model(engine.arange(6.0).reshape(2, 3)) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    model, optimizer = training()
    step(model, optimizer)
    checkpoint = saved({"epoch": 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()})
    expected = [step(model, optimizer) for _ in range(3)]
    model, optimizer = training()
    state = loaded(checkpoint)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    assert state["epoch"] == 1
    assert [step(model, optimizer) for _ in range(3)] == expected


# ---- files


def test_the_file_is_as_the_format_says():
    data = saved({"b": engine.tensor([1, -2], dtype=engine.int16), "a": engine.tensor([[1.5], [0.25]])})
    header, rest = parsed(data)
    assert header.pop("__metadata__").keys() == {"format", "engine"}
    assert header == {"a": entry("F32", (2, 1)), "b": entry("I16", (2,), (8, 12))}  # the larger elements first
    assert rest == struct.pack("<ffhh", 1.5, 0.25, 1, -2)
    assert int.from_bytes(data[:8], "little") % 8 == 0


def test_a_file_of_another_program_is_a_dict_of_tensors():
    header = {"w": entry("BF16", (1, 2), (0, 4)), "__metadata__": {"made by": "hand"}, "n": entry("BOOL", (3,), (4, 7))}
    new = loaded(file_of(header, b"\x80\x3f\x00\xc0\x01\x00\x01"))
    assert_same(
        new, {"w": engine.tensor([[1.0, -2.0]], dtype=engine.bfloat16), "n": engine.tensor([True, False, True])}
    )
    assert loaded(file_of({})) == {}


@over("dtype", ALL)
def test_files_go_to_the_safetensors_library_and_back(dtype, tmp_path):
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("safetensors.torch")
    mine = {
        "model.w": engine.arange(6).reshape(2, 3).to(getattr(engine, dtype)),
        "b": engine.ones(0, 3),
        "s": engine.tensor(2),
    }
    mine["t"] = mine["model.w"].clone().t()
    engine.save(mine, tmp_path / "mine.safetensors")
    theirs = library.load_file(tmp_path / "mine.safetensors")
    assert {k: (str(t.dtype), t.tolist()) for k, t in theirs.items()} == {
        k: (str(t.dtype), t.tolist()) for k, t in mine.items()
    }
    theirs["t"] = torch.ones(3)
    library.save_file(theirs, tmp_path / "theirs.safetensors", metadata={"a": "b"})
    new = engine.load(tmp_path / "theirs.safetensors")
    assert {k: (str(t.dtype), t.tolist()) for k, t in new.items()} == {
        k: (str(t.dtype), t.tolist()) for k, t in theirs.items()
    }


def test_a_file_that_was_written_without_the_library():
    """As engine.save wrote it when it wrote the format itself."""
    structure = (
        '{"version":1,"value":{"dict":[["w",{"tensor":0}],["again",{"tensor":0}],["x",{"tensor":1}],["y",{"tensor":2}],'
        '["half",{"tensor":3}],["t",{"tensor":4}],["plain",{"tuple":[2.5,{"float":"inf"},{"bytes":"YWI="},{"set":[3]}]'
        '}]]},"tensors":[{"class":"Parameter","in":"w"},{"in":"x.storage","dtype":"I64","shape":[2],"offset":0,"strides'
        '":[2]},{"in":"x.storage","dtype":"I64","shape":[1],"offset":8,"strides":[2]},{"requires_grad":true,"in":"half"'
        '},{"in":"t"}],"strides":{"t":[1,3]}}'
    )
    header = {
        "__metadata__": {"format": "pt", "engine": structure}, "x.storage": entry("I64", (3,), (0, 24)),
        "t": entry("F32", (3, 2), (24, 48)), "w": entry("F32", (2,), (48, 56)), "half": entry("BF16", (2,), (56, 60)),
    }  # fmt: skip
    new = loaded(file_of(header, struct.pack("<3q8f2H", 7, 8, 9, 0, 3, 1, 4, 2, 5, 1.5, -2, 0x3F80, 0xC000)))
    half = engine.tensor([1.0, -2.0], dtype=engine.bfloat16, requires_grad=True)
    w, t = engine.nn.Parameter(engine.tensor([1.5, -2.0])), engine.arange(6.0).reshape(2, 3).t()
    expected = {"w": w, "again": w, "x": engine.tensor([7, 8, 9])[::2], "y": engine.tensor([8]), "half": half, "t": t}
    assert_same(new, expected | {"plain": (2.5, math.inf, b"ab", {3})})
    assert new["w"] is new["again"]
    assert address(new["y"]) == address(new["x"]) + 8


def test_nested_names_are_readable():
    header, _ = parsed(
        saved({"model": {"0.weight": engine.ones(1)}, "state": [{"step": engine.ones(2)}], 3: engine.ones(3)})
    )
    assert set(header) == {"__metadata__", "model.0.weight", "state.0.step", "3"}
    header, _ = parsed(saved(engine.ones(1)))
    assert set(header) == {"__metadata__", "tensor"}


def test_names_that_meet_do_not_mix():
    x = engine.arange(4)
    obj = {"a": {"b": engine.zeros(1)}, "a.b": engine.ones(1), 1: engine.ones(2), "1": engine.zeros(2)}
    obj |= {"__metadata__": engine.ones(3), "x": x[::2], "x.storage": engine.ones(4), "y": x[1::2], "": engine.ones(5)}
    assert_same(obj, again(obj))


def test_paths_strings_and_file_objects(tmp_path):
    for where in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        engine.save([engine.ones(2)], where)
        assert engine.load(where, weights_only=True)[0].tolist() == [1, 1]
    with (tmp_path / "c.pt").open("wb", buffering=0) as f:
        engine.save({"x": 1}, f)
    with (tmp_path / "c.pt").open("rb") as f:
        assert engine.load(f, weights_only=False, mmap=False) == {"x": 1}
    f = io.BytesIO(b"before")
    f.seek(6)
    engine.save((1, 2), f)
    f.seek(6)
    assert engine.load(f) == (1, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pt", "b.pt", "c.pt"]


def test_a_file_that_takes_a_little_at_a_time_gets_all():
    class Slow(io.RawIOBase):
        data = b""

        def write(self, piece):
            self.data += bytes(piece[:7])
            return min(7, len(piece))

    slow = Slow()
    engine.save(engine.arange(100), slow)
    assert loaded(slow.data).tolist() == list(range(100))


def test_what_is_there_stays_if_saving_fails(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    engine.save(1, path)
    with pytest.raises(TypeError):
        engine.save({"x": engine.ones(2), "f": print}, path)

    def interrupted(f, pieces):
        f.write(pieces[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(serialization, "write_pieces", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.save(2, path)
    assert engine.load(path) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


def test_nothing_is_written_to_a_file_object_of_what_cannot_be_saved():
    f = io.BytesIO()
    with pytest.raises(TypeError):
        engine.save([engine.ones(2), print], f)
    assert f.getvalue() == b""


@pytest.mark.skipif(os.name != "posix", reason="permissions and links are POSIX's")
def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "model.pt", tmp_path / "latest.pt"
    before = os.umask(0o027)
    try:
        engine.save(1, path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    link.symlink_to(path)
    engine.save(2, link)
    assert link.is_symlink()
    assert engine.load(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    engine.save(3, os.devnull)
    assert not Path(os.devnull).is_file()


def test_errors_about_paths_are_pytorchs(tmp_path):
    torch = pytest.importorskip("torch")
    for program in ("m.save(1, tmp_path / 'none' / 'x.pt')", "m.save(1, 3)", "m.load(3)", "m.load(b'abc')",
                    "m.load(tmp_path / 'none.pt')", "m.load(tmp_path)"):  # fmt: skip
        errors = []
        for m in (engine, torch):
            with pytest.raises(Exception) as e:
                eval(program, {"m": m, "tmp_path": tmp_path})
            errors.append((e.type, str(e.value)))
        assert errors[0] == errors[1]


# ---- where tensors go


def test_map_location():
    data = saved({"x": engine.ones(2)})
    seen = []
    for where in (
        None,
        "cpu",
        engine.device("cpu"),
        {"cuda:0": "cpu"},
        lambda t, saved: t,
        lambda t, saved: seen.append(saved),
    ):
        assert loaded(data, map_location=where)["x"].device == engine.device("cpu")
    assert seen == ["cpu"]


def test_a_tensor_of_a_device_that_is_not_there():
    def on_cuda(structure):
        structure["tensors"][0]["device"] = "cuda:0"

    data = rewritten([engine.ones(2)], on_cuda)
    if not getattr(getattr(engine, "cuda", None), "is_available", lambda: False)():
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
            loaded(data)
    for where in ("cpu", {"cuda:0": "cpu"}, lambda t, saved: t):
        assert loaded(data, map_location=where)[0].tolist() == [1, 1]


def test_an_error_of_map_location_is_the_users():
    with pytest.raises(ZeroDivisionError):
        loaded(saved(engine.ones(1)), map_location=lambda t, saved: 1 / 0)


# ---- what cannot be saved says so by name

Point = namedtuple("Point", ["x"])


class Other(engine.Tensor):
    pass


@over(
    "value, message",
    [
        (print, r"cannot save print \(a builtin_function_or_method\) at \['a'\]\[1\]: save the tensors, numbers"),
        (int, r"cannot save int \(a type\) at \['a'\]\[1\]"),
        (Point(1), r"cannot save a test_serialization.Point at \['a'\]\[1\]"),
        (np.ones(2), r"cannot save a numpy.ndarray at \['a'\]\[1\]: save torch.from_numpy"),
        (np.float64(2), r"cannot save a numpy.float64 at \['a'\]\[1\]: save its item\(\)"),
        (1j, r"cannot save a builtins.complex"),
        (engine.Generator(), r"cannot save a engine.ops.creation.Generator"),
        (Other(np.ones(2)), r"cannot save a test_serialization.Other at \['a'\]\[1\]: save its detach\(\)"),
        (type("Net", (), {"state_dict": dict})(), r"cannot save a .*Net at \['a'\]\[1\]: save its state_dict\(\)"),
    ],
)
def test_what_cannot_be_saved_is_named_with_its_place(value, message):
    with pytest.raises(TypeError, match=message):
        saved({"a": [1, value]})


def test_a_key_or_a_set_that_cannot_be_saved():
    with pytest.raises(TypeError, match="cannot save print"):
        saved({print: 1})
    with pytest.raises(TypeError, match="cannot save print"):
        saved({print})


def test_too_much_that_is_no_tensor(monkeypatch):
    monkeypatch.setattr(serialization, "LONGEST_HEADER", 1000)
    with pytest.raises(ValueError, match="put long lists of numbers into tensors"):
        saved(list(range(1000)))


# ---- no file does harm


def damaged():
    """name -> (bytes, what the error says)"""
    whole = saved({"a": engine.arange(4.0), "n": 1})
    one = entry()
    yield "empty", b"", "it is empty"
    yield "short", b"\x01", "no safetensors file"
    yield "text", b"this is no file of tensors", "no safetensors file"
    yield "cut in its header", whole[:50], "cut short: its header has"
    yield "cut in its tensors", whole[:-1], f"cut short: it should have {len(whole)} bytes"
    yield "goes on", whole + b"\0", "more in it"
    yield "huge header", struct.pack("<Q", 1 << 62) + b"{}", "no safetensors file"
    yield "header that is not there", struct.pack("<Q", 1 << 23) + b"{}", "cut short"
    yield "no JSON", file_of(b"hello   "), "damaged .JSONDecodeError"
    yield "no UTF-8", file_of(b'{"\xff\xfe": 1}'), "damaged .UnicodeDecodeError"
    yield "a list", file_of([]), "damaged"
    yield "deep", file_of(b"[" * 1_000_000), "damaged .RecursionError"
    yield "a name twice", file_of(b'{"a": 1, "a": 1}'), "damaged"
    yield "metadata", file_of({"__metadata__": {"a": 1}}), "damaged"
    yield "no entry", file_of({"a": 1}), "damaged"
    yield "no dtype", file_of({"a": {"shape": [], "data_offsets": [0, 0]}}), "damaged"
    yield "a dtype that is not ours", file_of({"a": entry("F8_E4M3", (8,))}, bytes(8)), "of dtype F8_E4M3"
    yield "a dtype that is none", file_of({"a": entry(["F32"])}, bytes(8)), "damaged"
    yield "negative sizes", file_of({"a": entry(shape=(-1, -2))}, bytes(8)), "damaged"
    yield "sizes that are no integers", file_of({"a": entry(shape=(2.0,))}, bytes(8)), "damaged"
    yield "bool sizes", file_of({"a": entry(shape=(True, 2))}, bytes(8)), "damaged"
    yield "many dims", file_of({"a": entry(shape=(1,) * 1000, offsets=(0, 4))}, bytes(4)), "damaged"
    yield "nothing of huge sizes", file_of({"a": entry(shape=(0, 2**62, 2**62), offsets=(0, 0))}), "damaged"
    yield "a shape too large", file_of({"a": entry(shape=(2**40,))}, bytes(8)), "damaged"
    yield "offsets outside", file_of({"a": entry(shape=(2**40,), offsets=(0, 2**42))}, bytes(8)), "cut short"
    yield "offsets backwards", file_of({"a": entry(offsets=(8, 0))}, bytes(8)), "more in it"
    yield "huge offsets", file_of({"a": entry(offsets=(2**70, 2**70 + 8))}, bytes(8)), "cut short"
    yield "an overlap", file_of({"a": one, "b": entry(offsets=(4, 12))}, bytes(12)), "damaged .*b"
    yield "the same place", file_of({"a": one, "b": one}, bytes(8)), "damaged"
    yield "a gap", file_of({"a": one, "b": entry(offsets=(12, 20))}, bytes(20)), "damaged .*b"
    yield "a gap at the beginning", file_of({"a": entry(offsets=(4, 12))}, bytes(12)), "damaged .*a"
    yield "PyTorch's", b"PK\x03\x04" + bytes(50), "a zip archive, as torch.save"
    yield "old PyTorch's", pickle.dumps({"a": 1}, protocol=2) + bytes(50), "a pickle, as old versions of torch.save"


@over("name, data, message", damaged())
def test_a_damaged_file_gives_one_clear_error_and_takes_no_memory(name, data, message):
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match="cannot load this file: .*" + message) as caught:
            loaded(data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000 + 40 * len(data)
    finally:
        tracemalloc.stop()
    assert caught.value.__suppress_context__


def wrong_structures():
    """name -> (change of the structure of [arange(4), ones(2, 3).t()], what the error says)"""

    def at(*path, value):
        def change(structure):
            for p in path[:-1]:
                structure = structure[p]
            structure[path[-1]] = value

        return change

    view = {"in": "0", "dtype": "F32", "shape": [2], "strides": [1], "offset": 0}
    yield "no object", lambda s: [], "damaged"
    yield "nothing", lambda s: {"version": 1}, "damaged"
    yield "newer", at("version", value=2), "newer version"
    yield "no value", lambda s: s.__delitem__("value"), "damaged"
    yield "unknown kind", at("value", value={"function": "os.system"}), "damaged"
    yield "empty kind", at("value", value={}), "damaged"
    yield "no such tensor", at("value", value={"tensor": 9}), "damaged"
    yield "no such list", at("value", value={"again": 9}), "damaged"
    yield "unhashable", at("value", value={"set": [[1]]}), "damaged"
    yield "no pairs", at("value", value={"dict": [1]}), "damaged"
    yield "no number", at("value", value={"int": "zz"}), "damaged"
    yield "no dtype", at("value", value={"dtype": "float8"}), "damaged"
    yield "no device", at("value", value={"device": "moon"}), "damaged"
    yield "metadata of a dict", at("value", value={"dict": [], "_metadata": 1}), "damaged"
    yield "no such entry", at("tensors", 0, "in", value="x"), "damaged"
    yield "unknown class", at("tensors", 0, "class", value="os.system"), "unknown class"
    yield "requires a list", at("tensors", 0, "requires_grad", value=[]), "wrong properties"
    yield "integers", at("tensors", 0, "requires_grad", value=True), "integers that require grad"
    yield "strides of nothing", at("strides", "x", value=[1]), "damaged"
    yield "strides with gaps", at("strides", "1", value=[2**40, 1]), "strides do not fit"
    yield "too many strides", at("strides", "1", value=[1, 1, 1]), "strides do not fit"
    yield "strides that overlap", at("strides", "1", value=[0, 0]), "strides do not fit"
    yield "a view beyond", at("tensors", 0, value={**view, "shape": [9], "dtype": "I64"}), "beyond its memory"
    yield "a view before", at("tensors", 0, value={**view, "offset": -8}), "view that is none"
    yield "strides backwards", at("tensors", 0, value={**view, "strides": [-1]}), "view that is none"
    yield "a view of floats", at("tensors", 0, value={**view, "offset": 0.5}), "view that is none"
    yield "a bool that is none", at("tensors", 0, value={**view, "dtype": "BOOL", "offset": 24}), "a bool that is none"


@over("name, change, message", wrong_structures())
def test_a_wrong_structure_gives_one_clear_error(name, change, message):
    obj = [engine.tensor([1, 2, 3, 300]), engine.ones(2, 3).t()]
    with pytest.raises(RuntimeError, match=message):
        loaded(rewritten(obj, change))


def test_a_deep_structure_gives_one_clear_error():
    nested = json.loads("[" * 500 + "]" * 500)

    def deep(structure):
        structure["value"] = nested

    header, data = parsed(rewritten([], deep))
    header["__metadata__"]["engine"] = header["__metadata__"]["engine"].replace("[" * 500, "[" * 100_000)
    with pytest.raises(RuntimeError, match="cannot load"):
        loaded(file_of(header, data))


def test_too_deep_an_object_is_refused():
    obj = []
    for _ in range(100_000):
        obj = [obj]
    with pytest.raises(ValueError, match="nested so deeply"):
        saved(obj)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats() | st.sampled_from(["0", "F32", "dict"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from("tensor again dict set tuple int in shape strides offset dtype class".split()),
        inner, max_size=3,
    ),
)  # fmt: skip


@settings(max_examples=100)
@given(st.sampled_from(["value", "tensors", "strides", "version"]), json_values)
def test_any_structure_gives_an_object_or_the_error(where, value):
    def change(structure):
        structure[where] = value

    try:
        loaded(rewritten([engine.arange(4), engine.ones(2, 3).t()], change))
    except RuntimeError as e:
        assert str(e).startswith("cannot load this file: ")


@settings(max_examples=100)
@given(st.data())
def test_any_change_of_a_files_bytes_gives_an_object_or_the_error(data):
    whole = bytearray(saved({"a": engine.arange(4.0), "b": [engine.tensor([True]), {"x": (1, 2.5)}]}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    whole = whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole
    try:
        loaded(bytes(whole))
    except RuntimeError as e:
        assert "cannot load this file: " in str(e) or "Attempting to deserialize" in str(e)


def test_a_byte_that_is_no_bool_becomes_one():
    (t,) = loaded(file_of({"a": entry("BOOL", (3,), (0, 3))}, b"\x00\x02\xff")).values()
    assert t.array.view(np.uint8).tolist() == [0, 1, 1]


def test_files_of_pytorch_say_what_to_do(tmp_path):
    torch = pytest.importorskip("torch")
    for new in (True, False):
        torch.save({"w": torch.ones(2)}, tmp_path / "model.pt", _use_new_zipfile_serialization=new)
        with pytest.raises(RuntimeError, match=r"model.pt: .*safetensors.torch.save_file\(state_dict, path\), which"):
            engine.load(tmp_path / "model.pt")


def test_a_pickle_is_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path(tmp_path / "ran").touch, ())

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(RuntimeError, match="cannot load"):
            loaded(pickle.dumps(Bomb(), protocol))
    assert not (tmp_path / "ran").exists()
