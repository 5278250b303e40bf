"""Rows of docs/differences.md that the samples do not show: PyTorch takes the program, the engine does what is said."""

import importlib
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import engine
import engine.distributed
import engine.nn
import engine.utils.checkpoint

# (row, program, what the engine does: an exception, or the value of the last expression)
ROWS = [
    ("`out=`", "t.cat([t.ones(2)], out=t.ones(2, dtype=t.int64))", RuntimeError),
    ("`out=`", "x = t.zeros(2, 2); t.exp(t.ones(3), out=x[0])", NotImplementedError),
    ("`out=`", "x = t.ones(2, 2); t.matmul(x, x, out=x.double()).dtype.itemsize", 8),
    ("Memory formats", "t.channels_last", AttributeError),
    ("Complex numbers, other dtypes", "t.tensor([1, 2], dtype=t.complex64)", AttributeError),
    ("Sparse and quantized tensors", "t.eye(2).to_sparse()", AttributeError),
    ("Devices", "t.zeros(2, device='meta')", RuntimeError),
    ("More than 64 dimensions", "t.ones((1,) * 65)", ValueError),
    ("The legacy constructors", "t.Tensor(t.ones(2))", NotImplementedError),
    ("The legacy constructors", "str(t.Tensor(np.ones(2)).dtype)", "torch.float64"),
    (
        "Tangents of windows that overlap",
        "x, v = t.arange(3.0).unfold(0, 2, 1), t.tensor([[1.0, 2.0], [3.0, 4.0]]); "
        "t.func.jvp(lambda a: a * a, (x,), (v,))[1].tolist()",
        [[0.0, 4.0], [6.0, 16.0]],
    ),
    (
        "Powers of -0. and -inf with the exponents 0.5 and -0.5",
        "(t.tensor([-0.0, -float('inf')]) ** -0.5).tolist()",
        [float("inf"), 0.0],
    ),
    ("Writes through overlapping windows", "x = t.arange(5.0); x.unfold(0, 3, 1).mul_(2)", RuntimeError),
    ("float64 to float16", "t.tensor([1 + 2**-11 + 2**-30], dtype=t.float16).item()", 1 + 2**-10),
    (
        "Columns moved within a tensor",
        "x = t.arange(6.0).reshape(2, 3); x[:, 1:] = x[:, :-1]; x.tolist()",
        [[0.0, 0.0, 1.0], [3.0, 3.0, 4.0]],
    ),
    ("Floats as indices", "t.arange(5.0)[[0.0, 1.0]]", IndexError),
    (
        "Circular padding",
        "x = t.ones(1, 1, 4, requires_grad=True); f = F.pad(x, (1, 1), mode='circular').grad_fn; "
        "len(f.next_functions[0][0].next_functions)",
        0,
    ),
    ("Numbers above 65504 beside float16", "(t.tensor([0.5], dtype=t.float16) * 70000).item()", float("inf")),
    ("Numbers above 65504 beside float16", "t.ones(1, dtype=t.float16).clamp(max=70000).item()", 1.0),
    (
        "Comparisons with numbers that an integer dtype does not hold",
        "(t.tensor([50], dtype=t.uint8) > 300).item()",
        False,
    ),
    ("Comparisons of integers with a float", "(t.tensor([16777217]) == 16777216.0).item()", False),
    ("NumPy's names for tensors", "t.exp(x=t.ones(1))", TypeError),
    ("A bool among several dims", "t.ones(2, 2).sum((0, True))", TypeError),
    (
        "Keys that are not finite behind a mask of bools",
        "k = t.ones(1, 1, 3, 4); k[0, 0, 0, 0] = np.nan; m = t.tensor([False, True, True]).expand(3, 3); "
        "F.scaled_dot_product_attention(t.ones(1, 1, 3, 4), k, t.ones(1, 1, 3, 4), m).tolist()",
        [[[[1.0] * 4] * 3]],
    ),
    (
        "Grouped attention",
        "k = t.ones(1, 2, 3, 4); F.scaled_dot_product_attention(t.ones(1, 4, 3, 4), k, k, enable_gqa=True)",
        NotImplementedError,
    ),
    (
        "Indices of `take_along_dim` beyond the ends of a dim",
        "t.take_along_dim(t.arange(3), t.tensor([5]), 0)",
        RuntimeError,
    ),
    ("Embeddings", "F.embedding(t.tensor([0]), t.ones(2, 2), max_norm=1.0)", NotImplementedError),
    ("Pooling over three dimensions", "F.max_pool3d(t.ones(1, 1, 2, 2, 2), 2)", AttributeError),
    (
        "Adaptive means beside `inf`",
        "x = t.tensor([[[1.0, float('inf'), 3.0, 4.0, 5.0]]]); F.adaptive_avg_pool1d(x, 3).isnan().any().item()",
        True,
    ),
    ("Recurrent networks", "t.nn.LSTM(2, 3)(t.ones(4, 1, 2))[0].grad_fn.name()", "StackBackward0"),
    (
        "`nn.utils.rnn.unpad_sequence`",
        "x = t.ones(3, 2); t.nn.utils.rnn.unpad_sequence(x, t.tensor([1, 2])); list(x.shape)",
        [3, 2],
    ),
    (
        "Masks of numbers in a `TransformerEncoderLayer`",
        "m = t.nn.TransformerEncoderLayer(4, 2, batch_first=True).eval().requires_grad_(False); x = t.rand(1, 3, 4); "
        "numbers = -t.ones(3, 3).tril(-1); t.equal(m(x, numbers), m(x, numbers != 0))",
        False,
    ),
    (
        "`is_causal` without a mask in `MultiheadAttention`",
        "m = t.nn.MultiheadAttention(4, 2, batch_first=True).eval().requires_grad_(False); x = t.ones(1, 3, 4); "
        "m(x, x, x, is_causal=True)",
        RuntimeError,
    ),
    ("`x.sum(None)`", "t.ones(2, requires_grad=True).sum(None).grad_fn.name()", "SumBackward0"),
    (
        "What checkpoints compute again",
        "n = []; x = t.ones(2, requires_grad=True); f = lambda v: (n.append(1), v.exp())[1]; "
        "y = t.utils.checkpoint.checkpoint(f, x, use_reentrant=False).sum(); y.backward(retain_graph=True); "
        "y.backward(); len(n)",
        2,
    ),
    (
        "`load_state_dict(assign=True)`",
        "a, b, d = t.nn.Linear(1, 1), t.nn.Linear(1, 1), t.nn.Linear(1, 1).state_dict(); "
        "a.load_state_dict(d, assign=True); b.load_state_dict(d); b.weight.data_ptr() == d['weight'].data_ptr()",
        False,
    ),
    (
        "A module that comes twice in a `Sequential`",
        "f = t.nn.Linear(1, 1, bias=False); f.weight.data.fill_(2.0); "
        "t.utils.checkpoint.checkpoint_sequential(t.nn.Sequential(f, f), 1, t.ones(1), use_reentrant=False).item()",
        4.0,
    ),
    (
        "Hooks on saved tensors",
        "n = []; x = t.ones(2, requires_grad=True) * 1; "
        "h = t.autograd.graph.saved_tensors_hooks(lambda v: n.append(v.requires_grad) or v, lambda v: v); "
        "h.__enter__(); x.exp_(); h.__exit__(); n",
        [False, False],
    ),
    (
        "Tangents of single numbers",
        "x = t.tensor(1.0); t.func.jvp(lambda x: 2.0 * x, (x,), (x,))[1].dtype.itemsize",
        4,
    ),
    (
        "Tangents of single numbers",
        "x = t.ones(2); t.func.jvp(t.sin, (x,), (x.double(),))[1].dtype.itemsize",
        4,
    ),
    (
        "Tangents written into leaves",
        "x = t.ones(2); f = lambda a: t.no_grad()(lambda: t.nn.Parameter(t.ones(2)).copy_(a))(); "
        "t.func.jvp(f, (x,), (x,))",
        NotImplementedError,
    ),
    (
        "`forward_ad` inside of `func.jvp`",
        "f = lambda x: t.func.jvp(lambda y: y * y, (x,), (x,))[1]; "
        "t.autograd.functional.jacobian(f, t.ones(2), vectorize=True, strategy='forward-mode').tolist()",
        [[4.0, 0.0], [0.0, 4.0]],
    ),
    (
        "Gradients inside of `vmap` and `jvp` of what is outside",
        "w, x = t.ones(2, requires_grad=True), t.ones(2); "
        "t.func.jvp(lambda a: t.autograd.grad((w * a).pow(2).sum(), w)[0], (x,), (x,))[1].tolist()",
        [4.0, 4.0],
    ),
    (
        "`retain_grad()`, hooks on saved tensors inside of `func` transforms",
        "f = lambda x: t.utils.checkpoint.checkpoint(lambda y: (y * y).sum(), x, use_reentrant=False); "
        "t.func.grad(f)(t.ones(2)).tolist()",
        [2.0, 2.0],
    ),
    (
        "Tensors that a function in a transform puts aside",
        "kept = []; t.func.grad(lambda x: (kept.append(x * 2), x.sum())[1])(t.ones(2)); (kept[0] * 2).requires_grad",
        True,
    ),
    (
        "Writes by `.data` inside of a transform",
        "s = t.ones(2); t.func.grad(lambda x: (s.data.add_(1), x.sum())[1])(t.ones(2)); s.tolist()",
        [2.0, 2.0],
    ),
    (
        "Masks of each sample",
        "x, m = t.ones(2, 2, 2), t.tensor([[True, False], [False, True]]); f = lambda x, m: x.clone().index_put_((m,), "
        "t.zeros(())); t.func.vmap(f)(x, m).tolist()",
        [[[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]],
    ),
    (
        "Random numbers in the shape of a sample",
        "t.manual_seed(0); a = t.func.vmap(t.rand_like, in_dims=1, randomness='different')(t.ones(3, 4)); "
        "t.manual_seed(0); t.equal(a, t.rand(4, 3))",
        True,
    ),
    ("`resize_`, `set_`", "t.ones(2).resize_(3)", AttributeError),
    ("Array times tensor", "type(np.ones(2) * t.ones(2)).__name__", "Tensor"),
    ("Half precision between the steps of a formula", "(t.tensor([1.5]).bfloat16() * 2.1).item()", 3.140625),
    ("Saving modules and objects", "t.save(t.nn.ReLU(), __import__('io').BytesIO())", TypeError),
    ("Names that are not there", "t.quantile(t.ones(2), 0.5)", AttributeError),
    ("Sizes and keywords that PyTorch is strict about", "t.reshape(t.ones(2, 1), 2).tolist()", [1.0, 1.0]),
    ("Streams added up", "t.utils.data.IterableDataset() + t.utils.data.IterableDataset()", AssertionError),
    ("Values that mean nothing", "t.set_printoptions(profile='none of them')", ValueError),
    (
        "Values that mean nothing",
        "F.cross_entropy(t.eye(2), t.tensor([0, 1]), label_smoothing=-0.5)",
        RuntimeError,
    ),
    ("Values that mean nothing", "t.optim.SGD([t.ones(1)], lr=float('nan'))", ValueError),
    ("Attributes set by a program", "x = t.ones(2); x.mine = 1; hasattr(copy.copy(x), 'mine')", False),
    ("Memory identity of `x.numpy()`", "x = t.ones(2); x.numpy() is x.numpy()", True),
    ("NumPy's tests of a tensor", "str(np.isnan(t.ones(2)).dtype)", "torch.bool"),
    ("`randperm` from 214,748,364 elements on", "t.randperm(214_748_365)", NotImplementedError),
    (
        "`.data` of a single number",
        "w = t.tensor(3.0, requires_grad=True); y = w * w; w.data += 1; y.backward(); w.grad.item()",
        6.0,
    ),
    ("`func.functionalize`, `func.debug_unwrap`", "t.func.functionalize", AttributeError),
    ("`compile`: backends and options", "t.compile(lambda x: x, backend='aot_eager')", NotImplementedError),
    ("`compile`: what it tells", "t.compile(lambda x: x + 1).code", ""),
    ("Process groups", "D.TCPStore", AttributeError),
    ("Process groups", "D.init_process_group('gloo', rank=0, world_size=1, store=object())", NotImplementedError),
    ("What collectives take", "g = group(); x = t.ones(4, dtype=t.int16); D.all_reduce(x[::2]); x.tolist()", [1] * 4),
    ("Objects between ranks", "g = group(); D.broadcast_object_list([t.nn.ReLU()])", TypeError),
    (
        "A collective that overwrites a saved tensor",
        "g = group(); w = t.ones(2, requires_grad=True); x = t.ones(2); y = w @ x; D.all_reduce(x); y.backward()",
        RuntimeError,
    ),
    (
        "Buckets of DistributedDataParallel",
        "g = group(); m = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Linear(2, 2)); "
        "m = t.nn.parallel.DistributedDataParallel(m, bucket_cap_mb=1e-6); [b.numbers for b in m.reducer.buckets]",
        [[3], [2], [1], [0]],
    ),
    (
        "Rarer arguments of DistributedDataParallel",
        "g = group(); t.nn.parallel.DistributedDataParallel(t.nn.Linear(2, 2), device_mesh=3)",
        NotImplementedError,
    ),
    ("`SyncBatchNorm` on a CPU", "g = group(); t.nn.SyncBatchNorm(1)(t.ones(2, 1)).tolist()", [[0.0], [0.0]]),
    ("Files of `distributed.checkpoint`", "g = group(); D.checkpoint.async_save", AttributeError),
    (
        "`ZeroRedundancyOptimizer(overlap_with_ddp=True)`",
        "g = group(); D.optim.ZeroRedundancyOptimizer([t.ones(1)], t.optim.SGD, overlap_with_ddp=True)",
        NotImplementedError,
    ),
]


def outcome(t, program):
    """The value of the last expression, or the type of the exception that there was."""
    names = {"t": t, "F": t.nn.functional, "np": np, "copy": __import__("copy"), "D": t.distributed}
    names["group"] = lambda: group_of_one(t.distributed)
    *lines, last = program.split("; ")
    try:
        exec("\n".join(lines), names)
        return eval(last, names)
    except Exception as e:  # whatever it is, it is compared
        return type(e)
    finally:
        if "D." in program or "group()" in program:
            if t.distributed.is_initialized():
                t.distributed.destroy_process_group()


def group_of_one(distributed):
    """Begins a group of this process alone."""
    for name in ("checkpoint", "optim"):
        importlib.import_module(f"{distributed.__name__}.{name}")
    folder = tempfile.mkdtemp()
    distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=0, world_size=1)


@pytest.mark.parametrize("row, program, expected", ROWS, ids=[row for row, _, _ in ROWS])
def test_row_is_true(row, program, expected):
    text = (Path(__file__).parents[3] / "docs" / "differences.md").read_text(encoding="utf-8")
    assert f"| {row} |" in text
    found = outcome(engine, program)
    assert (found is expected) if isinstance(expected, type) else found == expected


@pytest.mark.parametrize("row, program, expected", ROWS, ids=[row for row, _, _ in ROWS])
def test_pytorch_differs(row, program, expected):
    torch = pytest.importorskip("torch")
    if "randperm" in program:
        pytest.skip("PyTorch would need gigabytes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = outcome(torch, program)
    assert theirs is not expected and not (not isinstance(theirs, torch.Tensor) and theirs == expected)
