"""Sequences of different lengths, padded and packed, and recurrent layers over them: as in PyTorch."""

import importlib

import pytest
from over_tables import over

import engine
from engine import nn
from engine.nn.utils.rnn import (
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

LENGTHS = (3, 5, 2, 5)


def library(name):
    t = importlib.import_module(name)
    return t, importlib.import_module(f"{name}.nn.utils.rnn")


def sequences(t, lengths=LENGTHS, features=3):
    t.manual_seed(1)
    return [t.randn(n, features, dtype=t.float64) for n in lengths]


def chain(node):
    if node is None:
        return None
    return (node.name().removeprefix("torch::autograd::"), *(chain(n) for n, _ in node.next_functions))


def plain(value):
    """A value of either library in plain Python."""
    if value is None or isinstance(value, (int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return [str(value.dtype), value.tolist()]


def close(mine, theirs):
    """Whether two plain values are equal, but for the last digits of numbers."""
    if isinstance(mine, list):
        return isinstance(theirs, list) and len(mine) == len(theirs) and all(map(close, mine, theirs))
    return mine == pytest.approx(theirs, rel=1e-9, abs=1e-12) if isinstance(mine, float) else mine == theirs


def packing(t, u, batch_first=False, ordered=False):
    some = sequences(t, sorted(LENGTHS, reverse=True) if ordered else LENGTHS)
    padded = u.pad_sequence(some, batch_first=batch_first).requires_grad_()
    lengths = [len(s) for s in some]
    packed = u.pack_padded_sequence(padded, lengths, batch_first=batch_first, enforce_sorted=ordered)
    back, counts = u.pad_packed_sequence(packed, batch_first=batch_first, padding_value=-1.0, total_length=6)
    (back * back).sum().backward()
    parts = u.unpack_sequence(packed)
    return tuple(packed), chain(packed.data.grad_fn), back, counts, padded.grad, parts


def padding(t, u):
    some = [s.requires_grad_() for s in sequences(t)]
    right = u.pad_sequence(some, padding_value=2.0)
    left = u.pad_sequence(some, batch_first=True, padding_side="left")
    (right.sum() + (left * 3).sum()).backward()
    return right, chain(right.grad_fn), left, [s.grad for s in some], u.unpad_sequence(left, t.tensor(LENGTHS), True)


def layer(t, u, kind, options, ordered, state):
    t.manual_seed(0)
    net = getattr(t.nn, kind)(3, 4, **options).double()
    some = [s.requires_grad_() for s in sequences(t, sorted(LENGTHS, reverse=True) if ordered else LENGTHS)]
    packed = u.pack_sequence(some, enforce_sorted=ordered)
    n = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    hx = t.randn(n, len(some), options.get("proj_size") or 4, dtype=t.float64)
    cx = t.randn(n, len(some), 4, dtype=t.float64)
    out, last = net(packed, *([(hx, cx) if kind == "LSTM" else hx] if state else []))
    lasts = last if kind == "LSTM" else (last,)
    (out.data * out.data).sum().backward(retain_graph=True)
    sum((h * h).sum() for h in lasts).backward()
    parameters = [p.grad for p in net.parameters()]
    return type(out).__name__, tuple(out), lasts, [s.grad for s in some], parameters


LAYERS = [
    (kind, options, ordered, state)
    for kind, options in (
        ("RNN", {}), ("RNN", {"num_layers": 2, "bidirectional": True, "nonlinearity": "relu"}), ("GRU", {}),
        ("GRU", {"bidirectional": True}), ("LSTM", {"num_layers": 2, "bidirectional": True}),
        ("LSTM", {"proj_size": 2}),
    )
    for ordered, state in ((True, False), (False, True))
]  # fmt: skip


@pytest.mark.parametrize(
    "program",
    [
        padding,
        *(lambda t, u, f=f, o=o: packing(t, u, f, o) for f in (True, False) for o in (True, False)),
        *(lambda t, u, a=a: layer(t, u, *a) for a in LAYERS),
    ],
)
def test_a_program_gives_what_it_gives_in_pytorch(program):
    pytest.importorskip("torch")
    mine, theirs = (plain(program(*library(name))) for name in ("engine", "torch"))
    assert close(mine, theirs)


ERRORS = [
    lambda t, u: u.pack_padded_sequence(t.ones(3, 2, 1), [2, 3]),
    lambda t, u: u.pack_padded_sequence(t.ones(3, 2, 1), [3]),
    lambda t, u: u.pack_padded_sequence(t.ones(3, 2, 1), [3, 0]),
    lambda t, u: u.pack_padded_sequence(t.ones(0, 2, 1), [1]),
    lambda t, u: u.pack_padded_sequence(t.ones(3, 1, 1), [[3]]),
    lambda t, u: u.pad_packed_sequence(u.pack_sequence([t.ones(3, 1)]), total_length=2),
    lambda t, u: u.pad_sequence(3),
    lambda t, u: u.pad_sequence([]),
    lambda t, u: u.pad_sequence([t.ones(2)], padding_side="middle"),
    lambda t, u: t.nn.RNN(2, 3)(u.pack_sequence([t.ones(3, 1)])),
    lambda t, u: t.nn.RNN(1, 3)(u.pack_sequence([t.ones(3, 1)]), t.ones(1, 2, 3)),
    lambda t, u: t.nn.GRU(1, 3)(u.pack_sequence([t.ones(3, 1, dtype=t.float64)])),
]
MADE_WRONG = """
RNN(2, 3, nonlinearity="gelu")
RNN(2, 3, 1, "gelu")
RNN(2, 3, proj_size=1)
RNN(2, 3, 1, "tanh", proj_size=1)
GRU(2, 3, proj_size=1)
RNN(2)
GRU(2, 3, wrong=1)
LSTM(2, 3, proj_size=3)
LSTM(2, 3, proj_size=-1)
LSTM(2, 3, dropout=2)
LSTM(2, 3, dropout=True)
GRU(2, 3, dropout="0")
GRU(2, 3, bias=1)
GRU(2, 3, batch_first=1)
GRU(2.0, 3)
GRU(2, "3")
GRU(0, 3)
GRU(2, 0)
GRU(2, 3, num_layers=0)
""".strip().splitlines()
CALLED_WRONG = """
(t.ones(2))
(t.ones(2, 2, 2, 2))
(t.ones(5, 3))
(t.ones(5, 1, 3))
(t.ones(5, 1, 2, dtype=t.float64))
(t.ones(5, 1, 2), state(1, 3))
(t.ones(5, 2), state(1, 1, 3))
(t.ones(5, 1, 2), state(1, 2, 3))
(t.ones(5, 1, 2), state(2, 1, 3))
(t.ones(5, 1, 2), state(1, 1, 4))
(t.ones(5, 2), state(1, 4))
""".strip().splitlines()
CELLS_CALLED_WRONG = """
(t.tensor(1.0))
(t.ones(1, 1, 2))
(t.ones(3))
(t.ones(1, 3))
(t.ones(1, 2), state(1, 1, 3))
(t.ones(1, 2), state(2, 3))
(t.ones(1, 2), state(1, 4))
(t.ones(2), state(4))
""".strip().splitlines()
CALLS = [f"t.nn.{call}" for call in MADE_WRONG]
CALLS += [f"t.nn.{kind}(2, 3){call}" for kind in ("RNN", "GRU", "LSTM") for call in CALLED_WRONG]
CALLS += [f"t.nn.{kind}Cell(2, 3){call}" for kind in ("RNN", "GRU", "LSTM") for call in CELLS_CALLED_WRONG]
CALLS += ["t.nn.LSTMCell(2, 3)(t.ones(1, 2), t.ones(1, 3))", "t.nn.RNNCell(2, 3, nonlinearity='gelu')(t.ones(1, 2))"]


@over("call", CALLS)
def test_a_wrong_call_of_a_recurrent_layer_is_refused_as_in_pytorch(call):
    pytest.importorskip("torch")
    caught = []
    for name in ("engine", "torch"):
        t, _ = library(name)
        state = lambda *size, t=t: (t.ones(*size), t.ones(*size)) if "LSTM" in call else t.ones(*size)  # noqa: E731
        with pytest.raises(Exception) as error:
            eval(call, {"t": t, "state": state})
        caught.append((error.type, str(error.value)))
    assert caught[0] == caught[1]


@over("program", ERRORS)
def test_an_error_is_pytorchs(program):
    pytest.importorskip("torch")
    caught = []
    for name in ("engine", "torch"):
        with pytest.raises(Exception) as error:
            program(*library(name))
        caught.append((error.type, str(error.value).split(". ")[0]))
    assert caught[0] == caught[1]


def test_what_is_packed_comes_out_again():
    some = [engine.arange(n).float() for n in LENGTHS]
    for a, b in zip(unpack_sequence(pack_sequence(some, enforce_sorted=False)), some, strict=True):
        assert engine.equal(a, b)
    padded = pad_sequence(some, batch_first=True)
    assert padded[0].tolist() == [0, 1, 2, 0, 0]
    for a, b in zip(unpad_sequence(padded, engine.tensor(LENGTHS), batch_first=True), some, strict=True):
        assert engine.equal(a, b)
    unpad_sequence(padded, engine.tensor(LENGTHS), batch_first=True)[0].zero_()  # a copy
    assert padded[0].tolist() == [0, 1, 2, 0, 0]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_packed_sequence_is_computed_as_each_sequence_by_itself(kind):
    engine.manual_seed(0)
    net = getattr(nn, kind)(3, 4, bidirectional=True).double()
    some = sequences(engine)
    out, last = net(pack_sequence(some, enforce_sorted=False))
    out, lengths = pad_packed_sequence(out)
    last = last[0] if kind == "LSTM" else last
    assert lengths.tolist() == list(LENGTHS)
    for i, s in enumerate(some):
        alone, end = net(s)
        end = end[0] if kind == "LSTM" else end
        assert engine.allclose(out[: len(s), i], alone) and engine.allclose(last[:, i], end)
        assert not out[len(s) :, i].any()


def test_lengths_may_be_a_tensor_and_the_data_converted():
    packed = pack_padded_sequence(engine.ones(3, 2, 1), engine.tensor([3, 1]))
    assert packed.batch_sizes.tolist() == [2, 1, 1]
    assert packed.double().data.dtype is engine.float64
    assert packed.to(engine.float32) is packed
    assert not packed.is_cuda


def test_lengths_on_another_device_are_refused():
    with pytest.raises(RuntimeError, match="should be a 1D CPU int64 tensor, but got 1D sim:0 Long tensor"):
        pack_padded_sequence(engine.ones(3, 2, 1), engine.tensor([3, 1], device="sim"))
