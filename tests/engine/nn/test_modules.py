"""Modules: what a learner builds, prints, walks, saves and loads, as PyTorch has it."""

import contextlib
import copy
import importlib
import inspect
import io
import math
import pickle
import re
import textwrap
import warnings

import numpy as np
import pytest
from against_torch import assert_close, cases
from over_tables import over

import engine
from engine import nn

rng = np.random.default_rng(0)
INPUTS = {
    "x": rng.normal(size=(5, 4)), "v": rng.normal(size=4), "a": rng.normal(size=(3, 5, 4)),
    "b": rng.normal(size=(3, 2, 4)), "im": rng.normal(size=(2, 4, 7, 6)), "e": rng.normal(size=(2, 3)),
    "h": rng.normal(size=(2, 3, 3)), "c": rng.normal(size=(2, 3, 3)), "y": rng.normal(size=(5, 4)),
    "p": rng.uniform(0.1, 0.9, (5, 4)),
    "k": rng.normal(size=(4, 2, 5)), "w": rng.normal(size=(4, 2, 3)), "q": rng.normal(size=(4, 2, 4)),
}  # fmt: skip
FIXED = {
    "i": np.array([[0, 2, 1], [3, 1, 2]]), "t": np.array([0, 3, 1, 2, 2]), "cw": rng.uniform(0.5, 1, 4),
    "mask": np.array([[False, True, False], [False, False, True]]), "fm": rng.normal(size=(3, 3)),
}  # fmt: skip


def library(name):
    module = importlib.import_module(name)
    return {"torch": module, "nn": module.nn, "F": module.nn.functional}


def printed(name, program):
    """What a program prints, with its warnings and the error that ends it, in one of the libraries."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(textwrap.dedent(program), {**library(name), "copy": copy, "pickle": pickle})
        except Exception as error:
            kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
            print(f"{kind.__name__}: {error}", file=out)
    for w in caught:
        if not issubclass(w.category, DeprecationWarning):
            print(f"{w.category.__name__}: {w.message}", file=out)
    return out.getvalue()


def without_modules(text):
    """The text without what differs by nature: addresses, and the modules in which classes are defined."""
    return re.sub(r" at 0x\w+", "", re.sub(r"\b(torch|engine)(\.\w+)*\.(?=[A-Z])", "", text))


# ---- each layer: its first numbers, its text, its outputs, graph and gradients

LAYERS = cases("""
nn.Linear(4, 3)(x)
nn.Linear(4, 3, bias=False)(a)
nn.Linear(4, 3)(v)
nn.Bilinear(4, 4, 3)(x, y)
nn.Bilinear(4, 4, 3, bias=False)(x, y)
nn.Identity(54, unused=True)(x)
nn.Flatten()(im)
nn.Flatten(0, 1)(a)
nn.Unflatten(1, (2, -1))(x)
nn.Embedding(5, 3)(i)
nn.Embedding(5, 3, padding_idx=1)(i)
nn.Embedding(5, 3, padding_idx=-2)(i)
nn.Embedding.from_pretrained(torch.ones(4, 2))(i)
nn.EmbeddingBag(5, 3)(i)
nn.EmbeddingBag(5, 3, mode="max", padding_idx=1)(i)
nn.EmbeddingBag(5, 3, 0.5, 1, mode="sum", include_last_offset=True)(i)
nn.EmbeddingBag.from_pretrained(torch.ones(4, 2))(i)
nn.LayerNorm(4)(x)
nn.LayerNorm((5, 4), eps=1e-3, bias=False)(a)
nn.LayerNorm(4, elementwise_affine=False)(x)
nn.GroupNorm(2, 4)(im)
nn.GroupNorm(4, 4, affine=False)(im)
nn.BatchNorm1d(4)(x)
nn.BatchNorm1d(5, momentum=None, affine=False)(a)
nn.BatchNorm1d(4, track_running_stats=False)(x)
nn.BatchNorm2d(4, eps=1e-3, momentum=0.3)(im)
nn.BatchNorm3d(2)(im[:, :2, None])
nn.BatchNorm1d(4).eval()(x)
nn.BatchNorm1d(4, track_running_stats=False).eval()(x)
nn.Dropout(0.3)(x)
nn.Dropout()(x)
nn.Dropout(0.3).eval()(x)
nn.CosineSimilarity(0)(x, y)
nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))(x)
""")
CONVOLUTIONS = cases("""
nn.Conv1d(5, 4, 2, stride=2, padding=1)(a)
nn.Conv2d(4, 6, 3)(im)
nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1, dilation=(1, 2), groups=2)(im)
nn.Conv2d(4, 6, 3, padding="same", bias=False)(im)
nn.Conv2d(4, 6, 3, padding="valid")(im)
nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect")(im)
nn.Conv2d(4, 4, 3, padding="same", padding_mode="circular", bias=False)(im)
nn.Conv3d(2, 3, 2, padding=(0, 1, 0))(im[None, :, :2].transpose(1, 2))
nn.ConvTranspose1d(5, 4, 3, stride=2)(a)
nn.ConvTranspose2d(4, 6, (3, 2), stride=2, padding=1, output_padding=1, groups=2, dilation=2)(im)
nn.ConvTranspose2d(4, 2, 3, stride=3, bias=False)(im, [22, 20])
nn.ConvTranspose3d(2, 3, 2)(im[None, :, :2].transpose(1, 2))
nn.MaxPool1d(2)(a)
nn.MaxPool2d(2)(im)
nn.MaxPool2d((3, 2), stride=1, padding=1, ceil_mode=True)(im)
nn.AvgPool1d(2, stride=1)(a)
nn.AvgPool2d((2, 3), ceil_mode=True, count_include_pad=False)(im)
nn.AdaptiveAvgPool2d((2, None))(im)
nn.AdaptiveAvgPool2d(1)(im)
nn.AdaptiveAvgPool1d(3)(a)
nn.AdaptiveMaxPool2d(2)(im)
nn.AdaptiveMaxPool1d(3, return_indices=True)(a)[0]
""")
ACTIVATIONS = cases("""
nn.ZeroPad2d(1)(im)
nn.ZeroPad1d((1, 2))(a)
nn.ConstantPad2d((1, 0, 2, -1), 3.5)(im)
nn.ConstantPad3d(1, 2)(im)
nn.ReflectionPad1d(2)(a)
nn.ReflectionPad2d((1, 2, 0, 1))(im)
nn.ReplicationPad2d(2)(im)
nn.ReplicationPad3d(1)(im)
nn.Unfold(3, padding=1)(im)
nn.Fold((7, 6), (2, 3), stride=(1, 3))(nn.functional.unfold(im, (2, 3), stride=(1, 3)))
nn.ReLU()(x)
nn.ReLU(inplace=True)(x * 1)
nn.PReLU()(x)
nn.PReLU(4, 0.1)(im)
nn.CELU(0.5)(x)
nn.CELU(0.5, True)(x * 1)
nn.Mish()(x)
nn.Hardswish(True)(x * 1)
nn.Hardshrink()(x)
nn.Softshrink(0.3)(x)
nn.Threshold(0.1, 20)(x)
nn.Threshold(0.1, 20, True)(x * 1)
nn.GLU()(x)
nn.Dropout1d(0.3)(a)
nn.Dropout2d(0.3)(im)
nn.Dropout3d(0.3, True)(im.unsqueeze(0) * 1)
nn.AlphaDropout(0.3)(x)
nn.RMSNorm(4)(x)
nn.RMSNorm((5, 4), 1e-3, elementwise_affine=False)(a)
nn.ReLU6()(x)
nn.LeakyReLU(0.2)(x)
nn.LeakyReLU(inplace=True)(x * 1)
nn.ELU(0.5)(x)
nn.ELU(inplace=True)(x * 1)
nn.SELU()(x)
nn.SiLU()(x)
nn.GELU()(x)
nn.GELU(approximate="tanh")(x)
nn.Softplus(2, threshold=1)(x)
nn.Hardtanh(-0.5, 0.7)(x)
nn.Sigmoid()(x)
nn.Tanh()(x)
nn.LogSigmoid()(x)
nn.Softsign()(x)
nn.Tanhshrink()(x)
nn.Softmax(1)(x)
nn.Softmax()(x)
nn.LogSoftmax(dim=-1)(x)
nn.Softmin(0)(x)
""")
LOSSES = cases("""
nn.MSELoss()(x, y)
nn.MSELoss(reduction="sum")(x, y)
nn.MSELoss(size_average=False)(x, y)
nn.MSELoss(reduce=False)(x, y)
nn.L1Loss(reduction="none")(x, y)
nn.SmoothL1Loss(beta=0.5)(x, y)
nn.HuberLoss("sum", 0.5)(x, y)
nn.KLDivLoss(reduction="batchmean")(p.log(), p.detach())
nn.KLDivLoss(reduction="sum", log_target=True)(x, y)
nn.BCELoss()(p, p.detach())
nn.BCELoss(cw)(p, p.detach())
nn.BCEWithLogitsLoss()(x, p.detach())
nn.BCEWithLogitsLoss(pos_weight=cw, reduction="sum")(x, p.detach())
nn.NLLLoss()(x, t)
nn.NLLLoss(cw, ignore_index=2)(x, t)
nn.CrossEntropyLoss()(x, t)
nn.CrossEntropyLoss(cw, label_smoothing=0.1)(x, t)
nn.CrossEntropyLoss(reduction="none")(x, p)
""")
RECURRENT = cases("""
nn.RNN(4, 3)(b)
nn.RNN(4, 3, 2, "relu", bias=False, batch_first=True)(a)
nn.RNN(4, 3, 2, bidirectional=True)(x)
nn.RNN(4, 3, 2)(b, h[:, :2])
nn.GRU(4, 3)(b)
nn.GRU(4, 3, 2, bidirectional=True, batch_first=True)(a)
nn.GRU(4, 3, 2)(x, h[:, 0])
nn.LSTM(4, 3)(b)
nn.LSTM(4, 3, 2)(b, (h[:, :2], c[:, :2]))
nn.LSTM(4, 3, bidirectional=True)(x)
nn.LSTM(4, 3, proj_size=2, num_layers=2)(b)
nn.LSTM(4, 3, 2, bias=False, batch_first=True)(a)
nn.GRU(4, 3, 2, dropout=0.5)(b)
nn.LSTM(4, 3, 3, dropout=0.5, bidirectional=True)(b)
nn.LSTM(4, 3, 2, dropout=0.5).eval()(b)
nn.RNNCell(4, 3)(x)
nn.RNNCell(4, 3, nonlinearity="relu", bias=False)(v)
nn.GRUCell(4, 3)(x)
nn.LSTMCell(4, 3)(x)
nn.LSTMCell(4, 3)(x[:2], (e, e * 2))
""")
ATTENTION = cases("""
nn.MultiheadAttention(4, 2)(q, q, q)
nn.MultiheadAttention(4, 2, bias=False, batch_first=True)(a, a, a)
nn.MultiheadAttention(4, 2)(x, x, x)
nn.MultiheadAttention(4, 2)(b, q, q)
nn.MultiheadAttention(4, 2, batch_first=True)(a, a * 1, a + 1)
nn.MultiheadAttention(4, 2, kdim=5, vdim=3)(q, k, w)
nn.MultiheadAttention(4, 1, add_bias_kv=True, add_zero_attn=True)(b, b, b, key_padding_mask=mask, attn_mask=fm > 1)
nn.MultiheadAttention(4, 2)(b, b, b, average_attn_weights=False, attn_mask=fm)
nn.MultiheadAttention(4, 2, dropout=0.5)(q, q, q)
nn.MultiheadAttention(4, 2)(b, b, b, need_weights=False)[0]
nn.MultiheadAttention(4, 2)(b, b, b, need_weights=False, key_padding_mask=mask)[0]
nn.TransformerEncoderLayer(4, 2, 8, 0.0)(b)
nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)(a)
nn.TransformerEncoderLayer(4, 2, 8, 0.0, "gelu", norm_first=True)(b, fm)
nn.TransformerEncoderLayer(4, 2, 8, 0.0, bias=False)(b, src_key_padding_mask=mask)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2, nn.LayerNorm(4))(a)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2).eval()(a)
nn.TransformerDecoderLayer(4, 2, 8, 0.0)(b, k.flatten(1)[:, :8].reshape(4, 2, 4))
nn.TransformerDecoderLayer(4, 2, 8, batch_first=True, norm_first=True)(a, a * 0.5)
nn.TransformerDecoderLayer(4, 2, 8, 0.0, "gelu", bias=False)(b, b, fm, fm, mask, mask)
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, 0.0), 2, nn.LayerNorm(4))(b, b, fm)
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, 0.0), 1)(b, b, torch.full((3, 3), -torch.inf).triu(1))
nn.Transformer(4, 2, 2, 1, 8, 0.1)(b, b)
nn.Transformer(4, 2, 1, 2, 8, 0.0, batch_first=True)(a, a, None, nn.Transformer.generate_square_subsequent_mask(5))
nn.Transformer(4, 2, 1, 1, 8, 0.0, norm_first=True).eval()(b, b[:2])
""")
OTHER_GRAPHS = (
    "need_weights=False",
    "Transformer",
    "circular",
    "Bilinear",
)  # what lies where, and kernels of their own


def flat(result):
    """The tensors of a result, which may be nested tuples."""
    if isinstance(result, tuple):
        return [t for r in result for t in flat(r)]
    return [] if result is None else [result]


def run(name, expression):
    """(module, results, tensors that require grad) of an expression such as ``nn.Linear(4, 3)(x)``."""
    names = library(name)
    torch = names["torch"]
    tensors = {k: torch.tensor(v, requires_grad=True) for k, v in INPUTS.items()}
    fixed = {k: torch.tensor(v) for k, v in FIXED.items()}
    made, call = split(expression)
    torch.manual_seed(0)
    module = eval(made, {**names, **fixed, **tensors})
    first = {k: v.detach().clone() for k, v in module.state_dict().items()}
    module.double()
    torch.manual_seed(1)
    result = eval("module" + call, {**names, **fixed, **tensors, "module": module})
    leaves = [*tensors.values(), *module.parameters()]
    return module, first, flat(result), leaves


def split(expression):
    """The expression that makes a module, and the call of it."""
    depth = 0
    for i in reversed(range(len(expression))):
        depth += {")": 1, "(": -1}.get(expression[i], 0)
        if expression[i] == "(" and not depth and ".from_pretrained" not in expression[i:]:
            end = expression[: i + 1].rstrip("(")
            rest = expression[i:]
            return end, rest
    raise AssertionError(expression)


def graph(node):
    """The nodes that lead to a result, each once: their names, and the numbers of those that they lead to."""
    numbers, todo, nodes = {node: 0}, [node], []
    for node in todo:
        below = [n for n, _ in node.next_functions] if node is not None else []
        for n in below:
            if n not in numbers:
                numbers[n] = len(numbers)
                todo.append(n)
        nodes.append((node and node.name().removeprefix("torch::autograd::"), [numbers[n] for n in below]))
    return nodes


def gradients(torch, results, leaves):
    weights = np.random.default_rng(5)
    reached = [r for r in results if r.requires_grad]
    grads = [torch.tensor(weights.uniform(0.5, 1.5, tuple(r.shape))).to(r.dtype) for r in reached]
    return torch.autograd.grad(reached, leaves, grads, allow_unused=True) if reached else []


@pytest.mark.filterwarnings("ignore")
@over("expression", LAYERS + CONVOLUTIONS + ACTIVATIONS + LOSSES + RECURRENT + ATTENTION)
def test_a_layer_begins_and_computes_as_pytorchs(expression):
    torch = pytest.importorskip("torch")
    (mine, begun, results, leaves), (theirs, begun_there, others, leaves_there) = (
        run("engine", expression),
        run("torch", expression),
    )
    assert repr(mine) == repr(theirs)
    assert list(begun) == list(begun_there)
    for name, value in begun.items():
        np.testing.assert_array_equal(value.numpy(), begun_there[name].numpy(), err_msg=name)
    assert len(results) == len(others)
    for a, b in zip(results, others, strict=True):
        assert_close(a, b, expression, "the value")
        if not any(part in expression for part in OTHER_GRAPHS):
            assert graph(a.grad_fn) == graph(b.grad_fn)
    for a, b in zip(gradients(engine, results, leaves), gradients(torch, others, leaves_there), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert_close(a, b, expression, "a gradient")
    for (name, a), b in zip(mine.named_buffers(), theirs.buffers(), strict=True):
        assert_close(a, b, expression, name)


# ---- how parameters begin

INITS = cases("""
nn.init.uniform_(w)
nn.init.uniform_(w, -1, 2)
nn.init.normal_(w)
nn.init.normal_(w, 3, 0.1)
nn.init.constant_(w, 0.3)
nn.init.ones_(w)
nn.init.zeros_(w)
nn.init.eye_(w)
nn.init.xavier_uniform_(w)
nn.init.xavier_uniform_(k, gain=2)
nn.init.xavier_normal_(w, nn.init.calculate_gain("tanh"))
nn.init.kaiming_uniform_(w)
nn.init.kaiming_uniform_(k, a=math.sqrt(5))
nn.init.kaiming_uniform_(w, mode="fan_out", nonlinearity="relu")
nn.init.kaiming_normal_(w, nonlinearity="selu")
nn.init.kaiming_normal_(k, 0.1, "FAN_OUT")
nn.init.trunc_normal_(w)
nn.init.trunc_normal_(k, 1.0, 2.0, 0.5, 1.5)
nn.init.trunc_normal_(w, 0.0, 1.0, 1.5, 3.0)
nn.init.trunc_normal_(w, 0.0, 0.1, 1.0, 3.0)
nn.init.orthogonal_(w)
nn.init.orthogonal_(w.t(), gain=2)
nn.init.orthogonal_(k)
nn.init.normal_(w, generator=torch.Generator().manual_seed(5))
""")


@pytest.mark.filterwarnings("ignore")
@over("expression", INITS)
def test_parameters_begin_with_pytorchs_numbers(expression):
    pytest.importorskip("torch")
    found = []
    for name in ("engine", "torch"):
        names = library(name)
        w, k = (names["torch"].zeros(*shape, requires_grad=True) for shape in ((5, 4), (4, 2, 3)))
        names["torch"].manual_seed(3)
        result = eval(expression, {**names, "w": w, "k": k, "math": math})
        assert result.requires_grad
        found.append([w.detach().numpy(), k.detach().numpy(), names["torch"].rand(3).numpy()])
    for mine, theirs in zip(*found, strict=True):
        if "orthogonal" in expression or "trunc" in expression:  # LAPACK, and the logarithm, in other roundings
            np.testing.assert_allclose(mine, theirs, 1e-5, 1e-6)
        else:
            np.testing.assert_array_equal(mine, theirs)


def test_a_linear_layer_begins_with_these_numbers():
    engine.manual_seed(0)
    m = nn.Linear(3, 2)
    weight = [[-0.0043225177, 0.30971584, -0.47518533], [-0.4248946, -0.22236897, 0.15482073]]  # PyTorch 2.13 gave them
    np.testing.assert_array_equal(m.weight.detach().numpy(), np.array(weight, np.float32))
    np.testing.assert_array_equal(m.bias.detach().numpy(), np.array([-0.011439145, 0.45777494], np.float32))


def test_orthogonal_rows_are_orthonormal():
    for shape in ((3, 5), (5, 3), (4, 2, 3)):
        x = nn.init.orthogonal_(engine.empty(*shape, dtype=engine.float64)).flatten(1).numpy()
        x = x if x.shape[0] <= x.shape[1] else x.T
        np.testing.assert_allclose(x @ x.T, np.eye(len(x)), atol=1e-12)


# ---- programs that print the same under either library

MADE = "m = nn.Linear(1, 1)\nm.register_buffer('b', torch.ones(1))\nm.inner = nn.ReLU()\n"
PROGRAMS = {
    "the text of nested modules": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
                self.more = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Sequential()})
                self.loss = nn.CrossEntropyLoss()
                self.none = None
                self.register_module("later", None)

        class Shown(nn.Module):
            def extra_repr(self):
                return "one=1,\\ntwo=2"

        class Both(Shown):
            def __init__(self):
                super().__init__()
                self.inner = Shown()

        print(Net(), nn.Sequential(), nn.ModuleList(), Shown(), Both(), sep="\\n")
        print(nn.ModuleList([Both(), Both(), nn.ReLU(), Both()]))
    """,
    "parameters print as such": """
        p = nn.Parameter(torch.tensor([1.5, -2.0]))
        print(p, nn.Parameter(torch.tensor(3.0), requires_grad=False), [p], nn.Parameter(), f"{p}", p.data, p * 2)
        print(isinstance(p, torch.Tensor), isinstance(p + 1, nn.Parameter), p.detach(), p.is_leaf, p.requires_grad)
        x = torch.zeros(2)
        q = nn.Parameter(x)
        x[0] = 7
        print(q, nn.Parameter(q * 2).is_leaf)
        nn.Parameter(torch.tensor([1, 2]))
    """,
    "parameters of integers do not require grad": """
        m = nn.Module()
        m.w = nn.Parameter(torch.tensor([1, 2]), requires_grad=False)
        print(m.w, m.load_state_dict({"w": torch.tensor([3, 4])}, assign=True), m.w)
    """,
    "walks": """
        shared = nn.Linear(2, 2)
        m = nn.Sequential(shared, nn.Sequential(shared, nn.BatchNorm1d(2)))
        m.register_buffer("b", torch.ones(1))
        m.tied = m[1][1].weight
        for walk in (m.named_modules, m.named_children, m.named_parameters, m.named_buffers):
            print([name for name, _ in walk()])
        print([name for name, _ in m.named_modules(remove_duplicate=False)])
        print([name for name, _ in m.named_parameters("net", remove_duplicate=False)])
        print([name for name, _ in m.named_parameters(recurse=False)])
        print(len(list(m.parameters())), len(list(m.buffers())), len(list(m.modules())), len(list(m.children())))
        print(sum(p.numel() for p in m.parameters()))
        m.apply(lambda module: print(type(module).__name__))
        print(m.get_submodule("1.0") is shared, m.get_parameter("1.1.bias").shape, m.get_buffer("1.1.running_mean"))
        print({"weight", "train", "in_features"} <= set(dir(m[0])), [name for name in dir(m) if name[0].isdigit()])
    """,
    **{
        f"no submodule at {path!r}": f"nn.Sequential(nn.Linear(1, 1)).{call}('{path}')"
        for path, call in (
            ("1", "get_submodule"),
            ("0.weight", "get_submodule"),
            ("0.weights", "get_parameter"),
            ("0", "get_parameter"),
            ("0.bias", "get_buffer"),
            ("2.x", "get_buffer"),
        )
    },
    "train and eval": """
        m = nn.Sequential(nn.Dropout(), nn.Sequential(nn.BatchNorm1d(1)))
        print(m.training, m.eval() is m, [x.training for x in m.modules()], m.train()[1][0].training)
        m.train(1)
    """,
    "casts": """
        m = nn.BatchNorm1d(2)
        p = m.weight
        m(torch.ones(2, 2)).sum().backward()
        print(m.double() is m, m.weight is p, p.dtype, p.grad.dtype, m.running_mean.dtype, m.num_batches_tracked.dtype)
        print(m.half().bias.dtype, m.bfloat16().bias.dtype, m.float().bias.dtype, m.to(torch.float64).bias.dtype)
        print(m.to("cpu", torch.float32).bias.dtype, m.to(torch.zeros(1, dtype=torch.half)).bias.dtype)
        print(m.cpu() is m, m.type(torch.float32).bias.dtype)
        m.to(torch.int64)
    """,
    "zero_grad": """
        m = nn.Linear(1, 1)
        m(torch.ones(1, 1)).sum().backward()
        g = m.weight.grad
        m.zero_grad(set_to_none=False)
        print(m.weight.grad, m.weight.grad is g)
        m.zero_grad()
        print(m.weight.grad, m.requires_grad_(False) is m, m.weight.requires_grad)
    """,
    "attributes change their kind": """
        m = nn.Module()
        m.x = 1
        m.x = nn.Parameter(torch.ones(1))
        print("x" in m.__dict__, list(m._parameters))
        m.x = None
        print(m.x, list(m._parameters), list(m.parameters()))
        m.y = nn.ReLU()
        m.y = nn.Parameter(torch.ones(1))
        m.y = nn.Parameter(torch.zeros(1))
        m.z = nn.Buffer(torch.ones(1), persistent=False)
        m.z = torch.zeros(2)
        m.register_buffer("w", None)
        print(list(m._modules), list(m._parameters), list(m._buffers), list(m.state_dict()), m.z)
        m.z = nn.Linear(1, 1)
        print(list(m._modules), list(m._buffers), hasattr(m, "nothing"))
        del m.z, m.x
        print(list(m._modules), list(m._parameters))
        del m.nothing
    """,
    "what is an attribute": """
        m = nn.Linear(2, 2)
        print(list(m.__dict__), m.in_features, m.bias is m._parameters["bias"])
        m.weights
    """,
    **{
        f"{code!r} is refused": MADE + code
        for code in cases("""
m.weight = torch.ones(1)
m.weight = 3
m.b = 3
m.inner = torch.ones(1)
m.inner = "x"
m.register_parameter("a.b", None)
m.register_parameter("", None)
m.register_parameter("forward", None)
m.register_parameter(3, None)
m.register_parameter("a", torch.ones(1))
m.register_parameter("a", nn.ReLU())
m.register_buffer("a.b", None)
m.register_buffer("", None)
m.register_buffer("weight", None)
m.register_buffer(3, None)
m.register_buffer("a", 3)
m.add_module("a", 3)
m.add_module("a", torch.ones(1))
m.add_module(3, nn.ReLU())
m.add_module("a.b", nn.ReLU())
m.add_module("", nn.ReLU())
m.add_module("weight", nn.ReLU())
m.load_state_dict(3)
m(1, 2, 3)
nn.Linear(2)
nn.Linear(2, 2, foo=1)
nn.Module(3)
nn.Module(x=3)
nn.Module()(3)
nn.ModuleList([nn.ReLU()])(3)
nn.ReLU(foo=1)
nn.Dropout(2)
nn.Dropout(-0.1)
nn.Embedding(3, 2, padding_idx=3)
nn.EmbeddingBag(3, 2, padding_idx=3)
nn.EmbeddingBag(3, 2, _weight=torch.ones(2, 3))
nn.EmbeddingBag.from_pretrained(torch.ones(3))
nn.GroupNorm(3, 4)
nn.GroupNorm(1, 3, affine=False)(torch.ones(2, 3, dtype=torch.int64))
nn.GroupNorm(1, 3)(torch.ones(2, 3, dtype=torch.int64))
nn.LayerNorm(3)(torch.ones(2, 3, dtype=torch.int64))
nn.RMSNorm(3, elementwise_affine=False)(torch.ones(2, 3, dtype=torch.int64))
nn.RMSNorm(3, eps=1e-5, elementwise_affine=False)(torch.ones(2, 3, dtype=torch.bool))
nn.Hardtanh(1, 1)
nn.Hardtanh(min_val=2.0, max_val=1.0)
nn.ParameterDict().popitem()
nn.BatchNorm1d(3)(torch.ones(2, 3, 4, 5))
nn.BatchNorm2d(3)(torch.ones(2, 3))
nn.BatchNorm1d(3)(torch.ones(1, 3))
nn.utils.vector_to_parameters(__import__("numpy").ones(2), [])
nn.Unflatten(1, 3)
nn.Unflatten(1, (2, "a"))
nn.Bilinear(0, 1, 1)
nn.Bilinear(3, 5, 2)(torch.ones(2, 3), torch.ones(2, 4))
nn.Bilinear(3, 5, 2)(torch.ones(2, 3), torch.ones(3, 5))
nn.Bilinear(3, 5, 2)(torch.ones(3), torch.ones(2, 5))
nn.Conv2d(3, 4, 3, groups=2)
nn.Conv2d(4, 3, 3, groups=2)
nn.Conv2d(4, 4, 3, groups=0)
nn.Conv2d(4, 4, 3, padding="same", stride=2)
nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect")
nn.ConvTranspose2d(2, 2, 3, stride=2)(torch.ones(1, 2, 4, 4), [9, 12])
nn.ConvTranspose2d(2, 2, 3, stride=2)(torch.ones(1, 2, 4, 4), (9, 12))
nn.ConvTranspose2d(2, 2, 3, stride=2)(torch.ones(1, 2, 4, 4), torch.Size([1, 2, 9, 12]))
nn.ConvTranspose2d(2, 2, 3, stride=2)(torch.ones(1, 2, 4, 4), [9, 10, 11])
nn.RNN(2, 3, nonlinearity="exp")
nn.RNN(2, 3, proj_size=1)
nn.RNN(2, 3, dropout=True)
nn.RNN(2, 3, dropout=1.5)
nn.RNN(2, 3, bias=1)
nn.RNN(2.0, 3)
nn.RNN(0, 3)
nn.RNN(2, 3, 0)
nn.LSTM(2, 3, proj_size=3)
nn.LSTM(2, 3, proj_size=-1)
nn.RNN(2, 3)(torch.ones(2))
nn.LSTM(2, 3)(torch.ones(2))
nn.RNN(2, 3)(torch.ones(2, 4))
nn.RNN(2, 3)(torch.ones(2, 2).double())
nn.RNN(2, 3)(torch.ones(2, 2), torch.ones(1, 1, 3))
nn.GRU(2, 3)(torch.ones(2, 1, 2), torch.ones(1, 3))
nn.GRU(2, 3)(torch.ones(2, 1, 2), torch.ones(1, 2, 3))
nn.LSTM(2, 3)(torch.ones(2, 1, 2), (torch.ones(1, 1, 3), torch.ones(1, 2, 3)))
nn.LSTM(2, 3)(torch.ones(2, 1, 2), (torch.ones(1, 3), torch.ones(1, 3)))
nn.LSTM(2, 3)(torch.ones(2, 1, 2), torch.ones(1, 1, 3))
nn.LSTM(2, 3)(torch.ones(2, 1, 2), (torch.ones(1, 1, 3),))
nn.LSTM(2, 3)(torch.ones(2, 1, 2), (torch.ones(1, 1, 3),) * 3)
nn.LSTMCell(2, 3)(torch.ones(1, 2), (torch.ones(1, 3),))
nn.GRU(2, 3)(torch.ones(2, 1, 2), (torch.ones(1, 1, 3), torch.ones(1, 1, 3)))
nn.GRUCell(2, 3)(torch.ones(1, 2), (torch.ones(1, 3), torch.ones(1, 3)))
nn.LSTM(2, 3)(torch.ones(2, 2), (torch.ones(1, 1, 3), torch.ones(1, 1, 3)))
nn.LSTMCell(2, 3)(torch.ones(1, 1, 2))
nn.LSTMCell(2, 3)(torch.ones(1, 2), (torch.ones(1, 1, 3), torch.ones(1, 3)))
nn.RNNCell(2, 3)(torch.ones(1, 2), torch.ones(1, 1, 3))
nn.RNNCell(2, 3, nonlinearity="exp")(torch.ones(1, 2))
nn.MultiheadAttention(3, 2)
nn.MultiheadAttention(0, 2)
nn.MultiheadAttention(2, 1)(*[torch.ones(2)] * 3)
nn.MultiheadAttention(2, 1)(torch.ones(2, 2), *[torch.ones(2, 1, 2)] * 2)
nn.MultiheadAttention(2, 1)(*[torch.ones(2, 1, 3)] * 3)
nn.MultiheadAttention(2, 1)(*[torch.ones(2, 1, 2)] * 3, is_causal=True)
nn.MultiheadAttention(2, 1)(*[torch.ones(2, 1, 2)] * 3, attn_mask=torch.ones(3, 3))
nn.MultiheadAttention(2, 1)(*[torch.ones(2, 1, 2)] * 3, attn_mask=torch.ones(3, 3, 3))
nn.MultiheadAttention(2, 1)(*[torch.ones(2, 1, 2)] * 3, attn_mask=torch.ones(2, 2).long())
nn.MultiheadAttention(2, 1)(*[torch.ones(2, 1, 2)] * 3, attn_mask=torch.ones(2))
nn.MultiheadAttention(2, 1)(*[torch.ones(2, 1, 2)] * 3, key_padding_mask=torch.ones(2) > 0)
nn.TransformerEncoderLayer(2, 1, activation="exp")
nn.TransformerDecoderLayer(2, 1, activation="exp")
nn.Transformer(4, 2, 1, 1, 8)(torch.ones(2, 3, 4), torch.ones(2, 2, 4))
nn.Transformer(4, 2, 1, 1, 8)(torch.ones(2, 3, 5), torch.ones(2, 3, 5))
nn.Sequential(nn.ReLU()) + nn.ReLU()
nn.Sequential(nn.ReLU()) * 0
nn.Sequential(nn.ReLU()) * "a"
nn.Sequential(nn.ReLU())[1]
nn.Sequential(nn.ReLU()).insert(2, nn.ReLU())
nn.Sequential(3)
nn.Sequential().extend(3)
nn.ModuleList([nn.ReLU()])[1]
nn.ModuleList([nn.ReLU()])["0"]
nn.ModuleList([3])
nn.ModuleList(3)
nn.ModuleList().extend(3)
nn.ModuleDict({"a": 3})
nn.ModuleDict({1: nn.ReLU()})
nn.ModuleDict(3)
nn.ModuleDict([3])
nn.ModuleDict([(1, 2, 3)])
nn.ModuleDict()["a"]
nn.ParameterList([torch.ones(1)])[1]
nn.ParameterList(torch.ones(1))
nn.ParameterList()(3)
nn.ParameterDict()(3)
nn.ParameterDict({1: torch.ones(1)})
nn.ParameterDict(3)
""")
    },
    "__init__ must come first": """
        class Net(nn.Module):
            def __init__(self, value):
                self.x = 3
                try:
                    self.part = value
                except AttributeError as error:
                    print(error)

        for value in (nn.ReLU(), nn.Parameter(torch.ones(1)), torch.ones(1)):
            Net(value)
        Net(3)(3)
    """,
    "state_dict": """
        m = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
        m.register_buffer("kept", torch.ones(1))
        m.register_buffer("lost", torch.ones(1), persistent=False)
        state = m.state_dict()
        print(list(state), state._metadata, type(state).__name__, state["1.running_var"])
        print(state["0.weight"].requires_grad)
        state["1.bias"][0] = 7
        print(m[1].bias, m.state_dict(keep_vars=True)["1.bias"] is m[1].bias, list(m.state_dict(prefix="net.")))
        print(m.load_state_dict(m.state_dict()), repr(m.load_state_dict({"other": torch.ones(1)}, strict=False)))
    """,
    "a state_dict that does not fit": """
        m = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
        one = torch.ones(1)
        m.load_state_dict({"0.weight": torch.ones(1, 3), "1.bias": [1.0], "0.other": one, "more": one, "2.weight": one})
    """,
    "a state_dict is loaded": """
        m, other = nn.Linear(2, 1), nn.Linear(2, 1)
        w = m.weight
        m.load_state_dict(other.state_dict())
        print(m.weight is w, torch.equal(m.weight, other.weight), m.weight._version)
        print(m.weight.data_ptr() == other.weight.data_ptr())
        m.load_state_dict(other.state_dict(), assign=True)
        print(m.weight is w, m.weight.data_ptr() == other.weight.data_ptr(), type(m.weight).__name__)
        m.load_state_dict({"weight": torch.ones(1, 2, dtype=torch.float64), "bias": torch.tensor([3])})
        print(m.weight, m.bias)
        scalar = nn.Module()
        scalar.register_buffer("s", torch.tensor(1.0))
        scalar.load_state_dict({"s": torch.tensor([4.0])})
        print(scalar.s)
        m.weight.requires_grad_(False)
        m.load_state_dict(other.state_dict(), assign=True)
        print(m.weight.requires_grad)
    """,
    "extra state, and hooks of states": """
        class Net(nn.Module):
            def get_extra_state(self):
                return {"n": 3}

            def set_extra_state(self, state):
                print("got", state)

        m = nn.Sequential(Net())
        print(m.state_dict())
        m.load_state_dict(m.state_dict())
        m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: print("before", repr(prefix), keep_vars))
        m.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.update(more=1))
        m.register_load_state_dict_pre_hook(lambda module, state, prefix, *_: print("loading", list(state)))
        handle = m.register_load_state_dict_post_hook(lambda module, keys: print("loaded", keys))
        print(m.load_state_dict(m.state_dict(), strict=False))
        handle.remove()
        m.load_state_dict({})
    """,
    "forward hooks": """
        m = nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            m.weight.fill_(2)
        x = torch.ones(1)
        first = m.register_forward_hook(lambda module, args, output: print("out", args, output))
        m.register_forward_hook(lambda module, args, output: output + 1, prepend=True)
        m.register_forward_pre_hook(lambda module, args: args[0] * 10)
        print(m(x))
        first.remove()
        print(m(x))
        with m.register_forward_hook(lambda module, args, kwargs, output: print("kw", args, kwargs), with_kwargs=True):
            m(input=x) if False else m(x)
        m.register_forward_pre_hook(lambda module, args, kwargs: (args, {**kwargs}), with_kwargs=True)
        m.register_forward_pre_hook(lambda module, args: None)
        print(m(x))
        m.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
        m(x)
    """,
    "hooks that are always called": """
        class Broken(nn.Module):
            def forward(self, x):
                raise ValueError("broken")

        m = Broken()
        m.register_forward_hook(lambda *_: print("not called"))
        m.register_forward_hook(lambda module, args, output: print("called", output), always_call=True)
        m.register_forward_hook(lambda module, args, output: 1 / 0, always_call=True)
        m(torch.ones(1))
    """,
    "full backward hooks": """
        m = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Tanh())
        for p in m.parameters():
            nn.init.constant_(p, 0.5)
        x = torch.tensor([[1.0, 2.0]], requires_grad=True)
        for child in m:
            child.register_full_backward_hook(lambda module, into, out: print(type(module).__name__, into, out))
            child.register_full_backward_pre_hook(lambda module, out: print("before", type(module).__name__, out))
        y = m(x)
        print(y)
        y.sum().backward()
        print(x.grad, m[0].weight.grad)
        m[1].register_full_backward_hook(lambda module, into, out: (into[0] * 100,))
        m[0].register_full_backward_pre_hook(lambda module, out: (out[0] + 1,))
        m(x).sum().backward()
        print(x.grad)
        m(x.detach()).sum().backward()
        with torch.no_grad():
            print(m(x))
    """,
    "full backward hooks of several inputs and outputs": """
        class Two(nn.Module):
            def forward(self, a, b, n):
                return a * b, a + b, n

        m = Two()
        m.register_full_backward_hook(lambda module, into, out: print(into, out))
        a, b = torch.ones(2, requires_grad=True), torch.zeros(2)
        p, q, n = m(a, b, 3)
        (p.sum() + q.sum()).backward()
        p, q, n = m(a, b, 3)
        p.sum().backward()
        print(n, a.grad, b.grad)
        m.register_full_backward_hook(lambda module, into, out: (1,))
        m(a, b, 3)[0].sum().backward()
    """,
    "backward hooks of a module that gives no tensors": """
        class Lists(nn.Module):
            def forward(self, x):
                return [x]

        m = Lists()
        m.register_full_backward_hook(lambda *_: print("never"))
        m(torch.ones(1, requires_grad=True))[0].backward()
    """,
    "copies and pickles": """
        torch.manual_seed(0)
        m = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
        m(torch.ones(3, 2)).sum().backward()
        for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            w = twin[0].weight
            print(torch.equal(w, m[0].weight), w is m[0].weight, type(w).__name__, w.requires_grad)
            print(twin, twin[1].running_mean, twin[0].weight.grad, twin.training)
    """,
    "sequential": """
        from collections import OrderedDict

        a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
        m = nn.Sequential(OrderedDict(first=a, second=b))
        print(m, m.first is a, m[-1] is b, len(m), [*m] == [a, b], m[:1], type(m[0:]).__name__)
        m[1] = c
        m.append(b).extend([a])
        print(m, m + nn.Sequential(c), nn.Sequential(a) * 3, 2 * nn.Sequential(a))
        del m[0]
        print(m, m.pop(1), m)
        m.insert(0, nn.ELU())
        m += nn.Sequential(c)
        m *= 2
        print(m)
        del m[1:]
        print(m)
    """,
    "module lists and dictionaries": """
        a, b = nn.Linear(1, 1), nn.ReLU()
        m = nn.ModuleList([a, b])
        m.append(a).extend([b, b])
        m.insert(1, nn.Tanh())
        print(m, m[1:3], m[-1] is b, len(m), m + [a])
        m[0] = b
        del m[-1]
        m += [a]
        print(m, m.pop(0), len(m), [type(x).__name__ for x in m])
        del m[1:]
        print(m)
        d = nn.ModuleDict([["x", a], ["y", b]])
        d.update({"z": nn.Tanh()})
        d["w"] = a
        print(d, list(d), list(d.keys()), "x" in d, len(d), d.pop("y"), [k for k, _ in d.items()])
        del d["z"]
        d.clear()
        print(d)
    """,
    "parameter lists and dictionaries": """
        m = nn.ParameterList([torch.ones(2), 3, nn.Parameter(torch.zeros(1, 2))])
        m.append(torch.tensor(1.0))
        m += [torch.ones(1)]
        print(m, len(m), m[1], m[-1], list(m.state_dict()), m[1:3], [type(p).__name__ for p in m])
        m[0] = torch.zeros(3)
        print(m[0])
        d = nn.ParameterDict({"b": torch.ones(1), "a": nn.Parameter(torch.ones(2)), "c": 5})
        print(list(d), list(d.keys()), "a" in d, len(d), d["a"], list(d.state_dict()), d.get("x"), d.setdefault("x", 3))
        print(d.pop("x"), d.popitem(), list(reversed(d)), [k for k, _ in (d | {"k": torch.ones(1)}).items()])
        d.update([("z", torch.ones(1))])
        del d["z"]
        print(d.copy(), len(list(d.values())), list(d.fromkeys(["q"], 1).items()))
        d.clear()
        print(d)
    """,
    "set_submodule": """
        m = nn.Sequential(nn.Sequential(nn.ReLU()))
        m.set_submodule("0.0", nn.Tanh())
        m.set_submodule("0.new", nn.Tanh())
        print(m)
        m.set_submodule("0.other", nn.Tanh(), strict=True)
    """,
    "hooks of all modules": """
        every = nn.modules.module
        net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        name = lambda m: type(m).__name__
        handles = [
            every.register_module_forward_pre_hook(lambda m, args: print("before", name(m), len(args))),
            every.register_module_forward_hook(lambda m, args, out: print("behind", name(m), out.shape)),
            every.register_module_forward_hook(lambda m, args, kwargs, out: print(kwargs), with_kwargs=True),
            every.register_module_full_backward_pre_hook(lambda m, g: print("backward before", name(m), g)),
            every.register_module_full_backward_hook(lambda m, gi, go: print("backward behind", name(m), gi, go)),
        ]
        net[0].register_forward_pre_hook(lambda m, args: print("its own"))
        net[0].register_forward_hook(lambda m, args, out: print("its own, behind"))
        nn.init.ones_(net[0].weight), nn.init.ones_(net[0].bias)
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()
        for h in handles:
            h.remove()
        net(torch.ones(1, 2))
        with every.register_module_forward_hook(lambda m, args, out: out * 2):
            print(net(torch.ones(1, 2)))
        failing = every.register_module_forward_hook(lambda m, args, out: print("always", out), always_call=True)
        try:
            nn.Linear(2, 2)(torch.ones(1, 3))
        except RuntimeError as e:
            print(e)
        failing.remove()
    """,
    "modules under another path": "print(nn.modules.Linear is nn.Linear, nn.modules.module.Module is nn.Module)",
    "an encoder says why it does not nest": """
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 1)
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1, batch_first=True), 1)
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True, norm_first=True), 1)
        print(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True), 2))
    """,
    "dropout of recurrent layers warns": "nn.RNN(2, 3, dropout=0.5)",
    "kaiming warns of nothing to do": "nn.Linear(0, 3)",
    "names of its own that a subclass may take": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("_state", torch.zeros(1))
                self._forget = nn.Linear(1, 1)
                self._member = self._around = self._check_name = self._load_value = None

        m = Net()
        m.load_state_dict(m.state_dict())
        print(m, list(m.state_dict()), m._forget(torch.ones(1)).shape, m.get_parameter("_forget.bias").shape)
        up, norm, rnn = nn.ConvTranspose2d(1, 1, 2), nn.BatchNorm1d(1), nn.LSTM(1, 1)
        up.dims = up.margins = up._each = up._added = norm.ndims = norm._check = None
        rnn._run = rnn._packed = rnn._directions = rnn._suffixes = rnn._check_input = None
        print(up(torch.ones(1, 2, 2), [3, 3]).shape, norm(torch.ones(2, 1)).shape, rnn(torch.ones(2, 1))[0].shape)
        steps = nn.Sequential(nn.ReLU(), nn.Tanh())
        steps._part = None
        print(steps[1:])
    """,
    "what a subclass overrides": """
        class AnyNorm(nn.BatchNorm2d):
            def _check_input_dim(self, x):
                print("checked")

            def reset_parameters(self):
                super().reset_parameters()
                nn.init.zeros_(self.weight)

        class Double(nn.Conv1d):
            def _conv_forward(self, x, weight, bias):
                return super()._conv_forward(x, weight * 2, bias)

        m = AnyNorm(3)
        print(m.weight, m(torch.ones(2, 3, 5)).shape)
        torch.manual_seed(0)
        m = Double(1, 1, 2, padding="same", padding_mode="circular")
        print(m(torch.ones(1, 2)), m._reversed_padding_repeated_twice)
        print(nn.Conv2d(1, 1, 3, padding=(1, 2))._reversed_padding_repeated_twice)
    """,
    "a norm that counts no batches": """
        m = nn.BatchNorm1d(2)
        m.num_batches_tracked = None
        print(m(torch.tensor([[1.0, 2.0], [3.0, 5.0]])), m.running_mean, m.num_batches_tracked)
    """,
    "sizes of NumPy": """
        import numpy as np

        print(nn.LayerNorm(np.prod([2, 3])), nn.RMSNorm(np.int64(2))(torch.ones(2)))
        m = nn.Conv2d(1, 1, np.array([3, 2]), stride=np.int64(1), padding=range(2))
        print(m, m(torch.ones(1, 3, 3)).shape, nn.ConstantPad1d(np.array([1, 2]), 0)(torch.ones(1, 1)))
        print(nn.AvgPool1d([2]), nn.AvgPool1d(np.array([2]), padding=(1,)), nn.GRU(2, 3, 2, dropout=np.float32(0.5)))
    """,
    "state_dict with arguments by position": """
        m, there = nn.Sequential(nn.Linear(1, 1)), {"x": 1}
        print(list(m.state_dict(None, "net.")), m.state_dict(there, "net.", True) is there)
        print(list(there), there["net.0.bias"] is m[0].bias, list(m.state_dict(None, "a.", prefix="b.")))
    """,
    "forward hooks that come and go during the call": """
        m = nn.Linear(1, 1)
        gone = m.register_forward_hook(lambda *_: print("gone"))
        comes = lambda *_: m.register_forward_hook(lambda *_: print("came"), always_call=True) and None
        m.register_forward_pre_hook(lambda *_: gone.remove())
        with m.register_forward_pre_hook(comes):
            m(torch.ones(1))
            m(torch.ones(3))
    """,
    "a backward hook that a pre-hook registers": """
        m, x = nn.Tanh(), torch.zeros(1, requires_grad=True)
        m.register_full_backward_hook(lambda *_: print("first"))
        seen = lambda *_: m.register_full_backward_hook(lambda *_: print("next")) and None
        with m.register_forward_pre_hook(seen):
            m(x).sum().backward()
        m(x).sum().backward()
    """,
    "a hook of all modules that fails as well": """
        every = nn.modules.module
        with every.register_module_forward_hook(lambda *_: 1 / 0, always_call=True):
            nn.Linear(1, 1)(torch.ones(3))
    """,
    "containers place a module": """
        from collections import OrderedDict

        a, b = nn.ReLU(), nn.Tanh()
        for make, place in (
            (lambda: nn.Sequential(a, a), -1), (lambda: nn.Sequential(a), 1), (lambda: nn.Sequential(a), -2),
            (lambda: nn.Sequential(OrderedDict(first=a)), 0), (lambda: nn.ModuleList([a, a]), 1),
            (lambda: nn.ModuleList([a]), 10), (lambda: nn.ModuleList([a]), -1),
        ):
            m = make()
            try:
                m.insert(place, b)
            except (KeyError, IndexError) as e:
                print(repr(e))
            print([(name, type(x).__name__) for name, x in m._modules.items()])
        m = nn.Sequential(a)
        m += m
    """,
    "a decoder's layers get masks by name": """
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.self_attn = nn.MultiheadAttention(4, 1)

            def forward(self, x, *memory, **options):
                print(len(memory), sorted(options))
                return x

        x = torch.ones(2, 1, 4)
        nn.TransformerDecoder(Layer(), 1)(x, x)
        nn.Transformer(4, 1, custom_encoder=Layer(), custom_decoder=Layer())(x, x)
        layer = nn.TransformerEncoderLayer(4, 2)
        layer.norm1 = nn.Identity()
        nn.TransformerEncoder(layer, 1)
    """,
    "a class with a base behind Module": """
        class Last:
            def __init__(self, *args, **kwargs):
                print(args, kwargs, self.training)

        class Both(nn.Module, Last):
            call_super_init = True

        print(Both(), Both(1, x=2), nn.Module.call_super_init)
    """,
    "a missing forward": """
        class Net(nn.Module):
            def foward(self, x):  # codespell:ignore foward
                return x

        Net()(torch.ones(1))
    """,
    **{
        f"{code!r} is no beginning": code
        for code in cases("""
nn.init.eye_(torch.ones(2))
nn.init.xavier_uniform_(torch.ones(2))
nn.init.kaiming_uniform_(torch.ones(2))
nn.init.kaiming_uniform_(torch.ones(2, 2), mode="fan")
nn.init.kaiming_normal_(torch.ones(2, 2), nonlinearity="exp")
nn.init.kaiming_normal_(torch.ones(2, 2), a="1")
nn.init.kaiming_normal_(torch.ones(0, 2))
nn.init.orthogonal_(torch.ones(2))
print([nn.init.calculate_gain(n) for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")])
""")
    },
    "arguments by name": """
        one, two = torch.ones(2), torch.zeros(2)
        print(nn.MSELoss()(input=one, target=two), nn.ReLU()(input=one), nn.CosineSimilarity(0)(x1=one, x2=one))
        print(nn.RMSNorm(2)(x=one))
        layers = nn.ModuleList()
        layers.insert(index=0, module=nn.ReLU())
        print(layers.pop(key=0), nn.Sequential().insert(index=0, module=nn.Tanh()))
    """,
    "modules are told apart by what they are": """
        a, b = nn.Linear(1, 1), nn.Linear(1, 1)
        print(a == a, a == b, len({a, b}), a in [b, a])
    """,
}


@over("name", PROGRAMS)
def test_a_program_prints_what_it_prints_under_pytorch(name):
    pytest.importorskip("torch")
    mine, theirs = (without_modules(printed(library, PROGRAMS[name])) for library in ("engine", "torch"))
    assert mine == theirs


def test_classes_take_pytorchs_arguments():
    torch = pytest.importorskip("torch")
    for name in dir(nn):
        mine, theirs = getattr(nn, name), getattr(torch.nn, name)
        if isinstance(mine, type) and name not in ("Hardtanh", "Buffer"):  # one has more names, the other a metaclass
            there = [n for n in inspect.signature(theirs).parameters if n not in ("args", "kwargs")]
            if there:  # else arguments that it passes on: here they are named
                assert [n for n in inspect.signature(mine).parameters if n not in ("args", "kwargs")] == there, name


# ---- without PyTorch beside them

DERIVATIVES = {
    "nn.Linear(4, 3)": "x", "nn.LayerNorm(4)": "a", "nn.GroupNorm(2, 4)": "im", "nn.BatchNorm1d(4)": "x",
    "nn.BatchNorm2d(4)": "im", "nn.Conv1d(5, 2, 3, padding=1)": "a", "nn.Conv2d(4, 2, 3, stride=2, groups=2)": "im",
    "nn.RNN(4, 3, 2, bidirectional=True)": "b", "nn.GRU(4, 3, 2, batch_first=True)": "b",
    "nn.LSTM(4, 3, 2, proj_size=2)": "b", "nn.LSTMCell(4, 3)": "x", "nn.Sequential(nn.Linear(4, 5), nn.GELU())": "x",
    "SelfAttention(4, 2, add_bias_kv=True)": "b",
}  # fmt: skip


class SelfAttention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x)


@over("make", DERIVATIVES)
def test_gradients_are_those_of_finite_differences(make):
    engine.manual_seed(0)
    module = eval(make).double()
    x = engine.tensor(INPUTS[DERIVATIVES[make]], requires_grad=True)
    leaves = [x, *module.parameters()]
    start = [t.detach().clone() for t in leaves]
    directions = [engine.tensor(np.random.default_rng(i).normal(size=tuple(t.shape))) for i, t in enumerate(leaves)]

    def loss(step):
        with engine.no_grad():
            for t, s, d in zip(leaves, start, directions, strict=True):
                t.copy_(s + step * d)
        return sum((r * (i + 1)).sin().sum() for i, r in enumerate(flat(module(x))))

    grads = engine.autograd.grad(loss(0.0), leaves)
    exact = sum(float((g * d).sum()) for g, d in zip(grads, directions, strict=True))
    numeric = (loss(1e-6).item() - loss(-1e-6).item()) / 2e-6
    assert math.isclose(exact, numeric, rel_tol=1e-6, abs_tol=1e-7)


def test_a_model_prints_its_parts():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Dropout(0.1), nn.Conv2d(1, 2, 3, padding=1)))
    assert repr(model) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n  (2): Sequential(\n"
        "    (0): Dropout(p=0.1, inplace=False)\n"
        "    (1): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n  )\n)"
    )


def test_a_model_finds_its_parameters_under_their_paths():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    names = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [name for name, _ in model.named_parameters()] == names
    assert list(model.state_dict()) == [*names, "1.running_mean", "1.running_var", "1.num_batches_tracked"]


def test_a_state_that_does_not_fit_is_told_in_one_error():
    message = (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\t'
        'Unexpected key(s) in state_dict: "other". \n\tsize mismatch for weight: copying a param with shape '
        "torch.Size([1, 2]) from checkpoint, the shape in current model is torch.Size([2, 2])."
    )
    with pytest.raises(RuntimeError) as error:
        nn.Linear(2, 2).load_state_dict({"weight": engine.ones(1, 2), "other": engine.ones(1)})
    assert str(error.value) == message


def test_dropout_works_in_training_alone():
    engine.manual_seed(0)
    m, x = nn.Dropout(0.5), engine.ones(1000)
    assert set(m(x).tolist()) == {0.0, 2.0}
    assert m.eval()(x) is x


def test_batch_norm_evaluates_by_what_it_saw():
    m = nn.BatchNorm1d(2, momentum=None)
    batches = [engine.tensor(rng.normal(size=(4, 2)).astype(np.float32)) for _ in range(3)]
    for b in batches:
        m(b)
    means = np.mean([b.numpy().mean(0) for b in batches], 0)
    np.testing.assert_allclose(m.running_mean.numpy(), means, 1e-5, 1e-6)
    assert m.num_batches_tracked.item() == 3
    expected = (batches[0].numpy() - means) / np.sqrt(np.mean([b.numpy().var(0, ddof=1) for b in batches], 0) + 1e-5)
    np.testing.assert_allclose(m.eval()(batches[0]).detach().numpy(), expected, 1e-4, 1e-5)


def test_a_recurrent_layer_is_its_cell_at_every_step():
    engine.manual_seed(0)
    for layer, cell in (
        (nn.LSTM(4, 3), nn.LSTMCell(4, 3)),
        (nn.GRU(4, 3), nn.GRUCell(4, 3)),
        (nn.RNN(4, 3), nn.RNNCell(4, 3)),
    ):
        cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
        x = engine.tensor(INPUTS["b"].astype(np.float32))
        outputs, state = layer(x)[0], None
        for x_t, out in zip(x, outputs, strict=True):
            state = cell(x_t, state)
            np.testing.assert_allclose(flat(state)[0].detach().numpy(), out.detach().numpy(), 1e-5, 1e-6)


def test_what_is_not_there_says_what_to_do():
    with pytest.raises(NotImplementedError, match="send their state_dict"):
        nn.Linear(1, 1).share_memory()
    with pytest.raises(NotImplementedError, match="use register_full_backward_hook"):
        nn.Linear(1, 1).register_backward_hook(print)
