"""Mixed precision: what autocast casts, and how gradients are scaled, as PyTorch does it."""

import contextlib
import importlib
import inspect
import io
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from against_torch import cases, compare

import engine
from engine import amp, nn
from engine.amp import autocast_mode

rng = np.random.default_rng(0)
INPUTS = {
    "x": rng.normal(size=(4, 6)).astype("f4"), "y": rng.normal(size=(6, 3)).astype("f4"),
    "w": rng.normal(size=(3, 6)).astype("f4"), "b": rng.normal(size=3).astype("f4"),
    "p": rng.uniform(0.1, 0.9, (4, 3)).astype("f4"), "z": rng.normal(size=(4, 3)).astype("f4"),
    "u": rng.normal(size=(2, 4, 6)).astype("f4"), "v": rng.normal(size=(2, 6, 3)).astype("f4"),
    "im": rng.normal(size=(2, 3, 5, 5)).astype("f4"), "k": rng.normal(size=(4, 3, 3, 3)).astype("f4"),
    "s": rng.normal(size=(3, 3)).astype("f4") + 3 * np.eye(3, dtype="f4"), "d": rng.normal(size=(4, 6)),
}  # fmt: skip
FIXED = {"t": np.array([0, 2, 1, 1]), "i": np.array([1, 0])}

# ---- each operation: the dtype of its result, its graph with the casts, and the gradients

OPERATIONS = cases("""
x @ y
x.mm(y)
torch.matmul(u, v)
x @ y[:, 0]
F.linear(x, w, b)
F.linear(x, w)
F.linear(u, w, b)
torch.addmm(z, x, y)
torch.bmm(u, v)
torch.baddbmm(z, u, v)
torch.einsum("ij,jk->ik", x, y)
torch.einsum("ij,ij->j", x, x)
torch.tensordot(x, y, 1)
torch.inner(x, w)
torch.outer(b, b)
torch.mv(x, y[:, 0])
torch.dot(b, b)
F.conv2d(im, k)
F.conv1d(u, w.view(1, 3, 6)[:, :, :4].reshape(3, 4, 1))
F.conv_transpose2d(im, k.transpose(0, 1))
F.scaled_dot_product_attention(u, u, u)
F.cross_entropy(F.linear(x, w, b), t)
F.nll_loss(F.log_softmax(F.linear(x, w), 1), t)
F.mse_loss(x @ y, z)
F.l1_loss(x @ y, z)
F.smooth_l1_loss(x @ y, z)
F.huber_loss(x @ y, z)
F.kl_div(x @ y, p, reduction="batchmean")
F.binary_cross_entropy(torch.sigmoid(x @ y), p)
F.binary_cross_entropy_with_logits(x @ y, p)
(x @ y).prod()
(x @ y).prod(0)
(s @ s).trace()
torch.linalg.inv(s)
torch.linalg.solve(s, b)
torch.cat([x @ y, z])
torch.cat([x @ y, x @ y])
torch.stack((x @ y, z))
(x @ y).index_copy(0, i, z[:2])
F.pad(F.conv2d(im, k), (1, 1, 1, 1), mode="reflect")
F.pad(F.conv2d(im, k), (1, 1), mode="constant")
F.softmax(x @ y, 1)
F.log_softmax(x @ y, 1)
F.gelu(x @ y)
F.layer_norm(x @ y, (3,))
torch.exp(x @ y) + z
(x @ y).sum() + (x @ y).mean()
torch.logsumexp(x @ y, 0)
(x @ y) * 2.5 + z
d @ d.T
F.linear(F.relu(F.linear(x, y.T)), s, b)
""")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_cast_as_in_pytorch(operation, dtype):
    pytest.importorskip("torch")
    names = ", ".join(["torch", "F", *INPUTS, *FIXED])
    inside = f'torch.autocast("cpu", torch.{dtype})(lambda {names}: {operation})({names})'
    compare(inside, {**INPUTS, **FIXED}, second=False, tolerance=0.1)


# each name once for each list of PyTorch's; those of its names that are no operations of the engine are no rows here
LISTS = {"LOWER_PRECISION_FP": "lower", "FP32": "float32", "FP32_SET_OPT_DTYPE": "float32_result", "PROMOTE": "widest"}
COMPOSED = {"cross_entropy", "normalize", "softmin", "linalg_norm", "norm"}  # PyTorch makes them of listed ones
OTHERWISE = {"grid_sampler": "grid_sample"}


def test_the_rows_for_other_devices_are_those_of_pytorchs_header():
    torch = pytest.importorskip("torch")
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    text = header.read_text(encoding="utf-8")
    theirs = {}
    for name, policy in LISTS.items():
        rows = re.search(rf"#define AT_FORALL_{name}\(_\)((?:.*\\\n)*.*)", text).group(1)
        theirs |= {OTHERWISE.get(n, n): policy for n in re.findall(r"_\((\w+)", rows)}
    mine = autocast_mode.POLICY["cuda"]
    offered = {*dir(engine), *vars(engine.Tensor), *nn.functional.__all__, *(f"linalg_{n}" for n in dir(engine.linalg))}
    assert {n: mine.get(n) for n in theirs if n in offered} == {n: p for n, p in theirs.items() if n in offered}
    added = {n for n, p in mine.items() if n not in theirs and p in LISTS.values()}
    assert added <= COMPOSED


# ---- programs that print the same

PROGRAMS = {
    "regions in regions": """
        x, w = torch.ones(2, 2), torch.ones(2, 2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            print((x @ w).dtype, torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled())
            with torch.autocast("cpu", enabled=False):
                print((x @ w).dtype, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
                with torch.autocast("cpu", torch.float16):
                    print((x @ w).dtype, torch.get_autocast_dtype("cpu"))
                print((x @ w).dtype)
            print((x @ w).dtype)
        print((x @ w).dtype, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
    """,
    "an exception ends the region": """
        try:
            with torch.autocast("cpu"):
                torch.ones(2, 3) @ torch.ones(2, 3)
        except RuntimeError as e:
            print(e)
        print(torch.is_autocast_enabled("cpu"))
    """,
    "a decorated forward": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 2)

            @torch.autocast(device_type="cpu")
            def forward(self, x):
                return self.layer(x)

        net = Net()
        print(net(torch.ones(1, 3)).dtype, net.layer(torch.ones(1, 3)).dtype)
    """,
    "what is a weight is cast once": """
        w = torch.ones(2, 2, requires_grad=True)
        x = torch.ones(2, 2)
        for cached in (True, False):
            with torch.autocast("cpu", cache_enabled=cached):
                a, b = x @ w, x @ w
                print(torch.is_autocast_cache_enabled())
                print(a.grad_fn.next_functions[1][0] is b.grad_fn.next_functions[1][0])
                with torch.no_grad():
                    w += 1
                print((x @ w)[0, 0])
                torch.clear_autocast_cache()
                print((x @ w)[0, 0])
        print(torch.is_autocast_cache_enabled())
        with torch.autocast("cpu"):
            with torch.no_grad():
                x @ w
            print((x @ w).requires_grad)
    """,
    "functions that set the state": """
        print(torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda"))
        torch.set_autocast_enabled("cpu", True)
        torch.set_autocast_dtype("cpu", torch.float16)
        print((torch.ones(1, 1) @ torch.ones(1, 1)).dtype)
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", torch.bfloat16)
        torch.set_autocast_cache_enabled(True)
        print((torch.ones(1, 1) @ torch.ones(1, 1)).dtype, torch.amp.is_autocast_available("cpu"))
        print(torch.autocast_increment_nesting(), torch.autocast_decrement_nesting())
    """,
    "dtypes that there are none of": """
        c = torch.autocast("cpu", torch.float32)
        with c:
            print((torch.ones(1, 1) @ torch.ones(1, 1)).dtype)
    """,
    "no GPU": """
        with torch.autocast("cuda"):
            print((torch.ones(1, 1) @ torch.ones(1, 1)).dtype, torch.is_autocast_enabled("cuda"))
        s = torch.amp.GradScaler()
        print(s.is_enabled(), s.get_scale(), s.state_dict(), s.scale(5))
    """,
    "recurrent layers take what a layer before them gave": """
        torch.manual_seed(0)
        x = torch.ones(2, 1, 4)
        for layer in (nn.LSTM, nn.GRU, nn.RNN):
            net, rnn = nn.Linear(4, 4), layer(4, 3, bidirectional=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = net(x)
                packed = nn.utils.rnn.pack_sequence([y[:, 0], y[:1, 0]])
                print(rnn(y)[0].dtype, rnn(packed)[0].data.dtype)
            rnn(y)
    """,
    "devices with an index": """
        with torch.autocast("cpu:0", dtype=torch.bfloat16):
            print((torch.ones(1, 1) @ torch.ones(1, 1)).dtype, torch.is_autocast_enabled("cpu:0"))
        with torch.autocast("cuda:0", dtype=torch.float32):
            print(torch.is_autocast_enabled("cuda"))
        for device in (torch.device("cpu"), "cuda:0"):
            s = torch.amp.GradScaler(device, init_scale=2.0)
            print(s.is_enabled(), s.scale(torch.ones(1)))
    """,
    "the older names": """
        with torch.cuda.amp.autocast(enabled=False):
            print(torch.cuda.amp.GradScaler(enabled=False).get_scale())
        torch.cuda.amp.autocast()

        class F2(torch.autograd.Function):
            @staticmethod
            @torch.cuda.amp.custom_fwd
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @torch.cuda.amp.custom_bwd
            def backward(ctx, g):
                return g * 2

        x = torch.ones(1, requires_grad=True)
        F2.apply(x).backward()
        print(x.grad)
    """,
    "a device that is no string": "torch.autocast(3)",
    "no function": "torch.autocast('cpu')(3)",
    "mixed dtypes in a product": "with torch.autocast('cpu'): torch.ones(1, 1, dtype=torch.float64) @ torch.ones(1, 1)",
    "promotion of another half": """
        with torch.autocast("cpu"):
            half = torch.ones(1, dtype=torch.float16)
            print(torch.cat([torch.ones(1), half]).dtype)
            torch.cat([half, torch.ones(1)])
    """,
    "double stays": """
        with torch.autocast("cpu"):
            d = torch.ones(2, 2, dtype=torch.float64)
            print((d @ d).dtype, F.mse_loss(d, d).dtype, torch.cat([d, torch.ones(2, 2)]).dtype)
    """,
    "in place nothing is cast": """
        with torch.autocast("cpu"):
            z = torch.zeros(2, 2)
            z.addmm_(torch.ones(2, 2), torch.ones(2, 2))
            print(z)
            z.addmm_(torch.ones(2, 2) @ torch.ones(2, 2), torch.ones(2, 2))
    """,
    "layers": """
        x = torch.ones(3, 4, 8)
        with torch.autocast("cpu"):
            for layer in (nn.RNN(8, 6), nn.RNN(8, 6, nonlinearity="relu", num_layers=2), nn.GRU(8, 6),
                          nn.LSTM(8, 6, bidirectional=True), nn.RNNCell(8, 6), nn.GRUCell(8, 6), nn.LSTMCell(8, 6)):
                out = layer(x[0] if "Cell" in type(layer).__name__ else x)
                while not isinstance(out, torch.Tensor):
                    print(type(layer).__name__, out[1].dtype if isinstance(out[1], torch.Tensor) else out[1][1].dtype)
                    out = out[0]
                print(type(layer).__name__, out.dtype)
            out, weights = nn.MultiheadAttention(8, 2)(x, x, x)
            print(out.dtype, weights.dtype, nn.TransformerEncoderLayer(8, 2, 16)(x).dtype)
            print(nn.LayerNorm(8)(x).dtype, nn.BatchNorm1d(4)(nn.Linear(8, 4)(x[0])).dtype)
            print(nn.Embedding(3, 2)(torch.tensor([1])).dtype)
            print(nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect")(torch.ones(1, 3, 4, 4)).dtype)
            print(nn.Bilinear(8, 8, 2)(x, x).dtype, nn.CosineSimilarity()(x, x).dtype, F.normalize(x).dtype)
    """,
    "a training loop": """
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, t = torch.randn(20, 6), torch.randint(0, 3, (20,))
        for step in range(5):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = net(x)
                loss = F.cross_entropy(out, t)
            loss.backward()
            optimizer.step()
            print(out.dtype, loss.dtype, net[0].weight.grad.dtype, f"{loss.item():.2f}")
    """,
    "a function of one's own": """
        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", cast_inputs=CAST)
            def forward(ctx, a, b, scale=1.0):
                ctx.save_for_backward(a, b)
                print(a.dtype, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
                return a.mm(b)

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                print(g.dtype, a.dtype, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
                return g.mm(b.t()), a.t().mm(g), None

        a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
        for on in (True, False):
            with torch.autocast("cpu", torch.float16, enabled=on):
                out = Product.apply(a, b, 2.0)
            out.sum().backward()
            print(out.dtype, a.grad, b.grad.dtype)
    """,
    "casts in containers": """
        class First(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
            def forward(ctx, values, mapping, text):
                print([v.dtype for v in values], {k: v.dtype for k, v in mapping.items()}, text)
                return values[0]

        half, long = torch.ones(1, dtype=torch.float16), torch.ones(1, dtype=torch.int64)
        with torch.autocast("cpu"):
            First.apply([half, long], {"a": half, "d": half.double()}, "text")
    """,
    "custom_fwd without a device": "torch.amp.custom_fwd(lambda ctx: None, device_type=0)",
    "custom_bwd without a device": "torch.amp.custom_bwd(lambda ctx: None, device_type=0)",
    # ---- the scaler
    "a scaler": """
        s = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        print(s.is_enabled(), s.get_scale(), s.state_dict())
        p = torch.nn.Parameter(torch.ones(2))
        o = torch.optim.SGD([p], lr=0.5)
        for factor in (1.0, float("inf"), 1.0, 1.0, float("nan"), 2.0):
            o.zero_grad()
            loss = s.scale((p * factor).sum())
            print(loss, loss.grad_fn.name())
            loss.backward()
            print(p.grad)
            print(s.step(o), p.data, p.grad)
            s.update()
            print(s.get_scale(), s.state_dict(), s._get_growth_tracker())
    """,
    "gradients in float16 that overflow": """
        torch.manual_seed(0)
        layer = nn.Linear(4, 4)
        o = torch.optim.SGD(layer.parameters(), lr=0.1)
        s = torch.amp.GradScaler("cpu", init_scale=2.0**20)
        x = torch.ones(2, 4)
        for step in range(8):
            o.zero_grad()
            with torch.autocast("cpu", torch.float16):
                out = layer(x)
            loss = (out * out).mean()
            s.scale(loss).backward()
            before = layer.weight.detach().clone()
            s.step(o)
            s.update()
            print(out.dtype, s.get_scale(), bool((layer.weight != before).any()), layer.weight.grad.isfinite().all())
    """,
    "gradients that would vanish in float16": """
        w = torch.ones(1, requires_grad=True)
        for scale in (1.0, 2.0**16):
            s = torch.amp.GradScaler("cpu", init_scale=scale)
            w.grad = None
            s.scale((w.half() * 1e-4).float() * 1e-4).backward()
            o = torch.optim.SGD([w], lr=1.0)
            s.unscale_(o)
            print(f"{w.grad.item():.1e}")
    """,
    "clipping between unscale_ and step": """
        s = torch.amp.GradScaler("cpu", init_scale=4.0)
        p = torch.nn.Parameter(torch.ones(2))
        o = torch.optim.SGD([p], lr=1.0)
        s.scale((p * 3).sum()).backward()
        s.unscale_(o)
        print(p.grad, torch.nn.utils.clip_grad_norm_([p], 1.0), p.grad)
        s.step(o)
        s.update()
        print(p)
    """,
    "two optimizers": """
        s = torch.amp.GradScaler("cpu", init_scale=4.0)
        p, q = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
        o1, o2 = torch.optim.SGD([p], lr=1.0), torch.optim.Adam([q], lr=1.0)
        (s.scale(p.sum()) + s.scale((q * float("inf")).sum())).backward()
        s.step(o1)
        s.step(o2)
        s.update()
        print(p.data, q.data, s.get_scale())
    """,
    "several outputs": """
        s = torch.amp.GradScaler("cpu", init_scale=4.0)
        print(s.scale([torch.ones(2, dtype=torch.float16), (torch.ones(1),)]))
        print(list(s.scale(v for v in [torch.ones(1)])))
        s.scale([3])
    """,
    "unscale_ twice": "s.unscale_(o); s.unscale_(o)",
    "unscale_ after step": "s.step(o); s.unscale_(o)",
    "step twice": "s.step(o); s.step(o)",
    "unscale_ before scale": "torch.amp.GradScaler('cpu').unscale_(o)",
    "step before scale": "torch.amp.GradScaler('cpu').step(o)",
    "update before scale": "torch.amp.GradScaler('cpu').update()",
    "update without step": "s.update()",
    "step without gradients": "o.zero_grad(); s.step(o)",
    "a closure": "s.step(o, closure=lambda: 1)",
    "gradients in float16": """
        h = torch.nn.Parameter(torch.ones(1, dtype=torch.float16))
        s.scale(h.sum()).backward()
        s.unscale_(torch.optim.SGD([h], lr=1.0))
    """,
    "a scale of one's own": """
        s.step(o)
        s.update(2.0)
        print(s.get_scale())
        s.update(torch.tensor(16.0))
        print(s.get_scale())
        s.update(torch.ones(2))
    """,
    "options that make no sense": "torch.amp.GradScaler('cpu', growth_factor=1.0)",
    "others that make no sense": "torch.amp.GradScaler('cpu', backoff_factor=1.0)",
    "options": """
        s.set_growth_factor(3.0)
        s.set_backoff_factor(0.25)
        s.set_growth_interval(5)
        print(s.get_growth_factor(), s.get_backoff_factor(), s.get_growth_interval())
    """,
    "a state": """
        other = torch.amp.GradScaler("cpu")
        other.load_state_dict({"scale": 2.0, "growth_factor": 3.0, "backoff_factor": 0.1, "growth_interval": 7,
                               "_growth_tracker": 5})
        print(other.state_dict(), other.scale(torch.ones(1)))
        s.load_state_dict(other.state_dict())
        print(s.state_dict(), s.scale(torch.ones(1)))
        s.load_state_dict({})
    """,
    "a scaler that is not enabled": """
        off = torch.amp.GradScaler("cpu", enabled=False)
        off.load_state_dict({})
        off.unscale_(o)
        off.update()
        print(off.scale(p), off.step(o), off.get_scale(), off.state_dict(), off._get_growth_tracker())
    """,
    "pickled": """
        s.step(o)
        s.update()
        again = pickle.loads(pickle.dumps(s))
        print(again.state_dict(), again.scale(torch.ones(1)))
        s.unscale_(o)
        pickle.dumps(s)
    """,
    "an optimizer that scales by itself": """
        class Own(torch.optim.SGD):
            _step_supports_amp_scaling = True

            def step(self, closure=None):
                print(self.grad_scale, self.found_inf)

        own = Own([p], lr=1.0)
        s.step(own)
        print(hasattr(own, "found_inf"))
        s.update()
    """,
}
SCALED = """
s = torch.amp.GradScaler("cpu", init_scale=4.0)
p = torch.nn.Parameter(torch.ones(2))
o = torch.optim.SGD([p], lr=1.0)
s.scale((p * 3).sum()).backward()
"""


def printed(name, program):
    """What a program prints, with its warnings and the error that ends it, in one of the libraries."""
    module = importlib.import_module(name)
    names = {"torch": module, "nn": module.nn, "F": module.nn.functional, "pickle": pickle, "CAST": module.float32}
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(SCALED + textwrap.dedent(program), names)
        except Exception as error:
            kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
            print(f"{kind.__name__}: {error}", file=out)
    for w in caught:
        if not issubclass(w.category, DeprecationWarning):
            print(f"{w.category.__name__}: {w.message}", file=out)
    return out.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_prints_under_pytorch(name):
    pytest.importorskip("torch")
    mine, theirs = (printed(library, PROGRAMS[name]) for library in ("engine", "torch"))
    if "could not create a primitive descriptor" in theirs:
        pytest.skip("PyTorch's layers of bfloat16 need a processor with more instructions than this one has")
    assert mine == theirs


@pytest.mark.parametrize("cast", ["None", "torch.float32", "torch.bfloat16"])
def test_custom_functions_with_each_cast_of_their_inputs(cast):
    pytest.importorskip("torch")
    program = PROGRAMS["a function of one's own"].replace("CAST", cast)
    assert printed("engine", program) == printed("torch", program)


# ---- without PyTorch beside them


def test_products_are_in_low_precision_and_losses_are_not():
    net, x = nn.Linear(3, 2), engine.ones(4, 3)
    with engine.autocast("cpu"):
        out = net(x)
        loss = nn.functional.cross_entropy(out, engine.tensor([0, 1, 0, 1]))
    loss.backward()
    assert (out.dtype, loss.dtype, net.weight.grad.dtype) == (engine.bfloat16, engine.float32, engine.float32)
    assert loss.grad_fn.next_functions[0][0].next_functions[0][0].name() == "ToCopyBackward0"


def test_a_nested_region_of_another_dtype_casts_weights_to_it():
    """PyTorch gives the cast of the outer region, to bfloat16 here."""
    w = engine.ones(2, 2, requires_grad=True)
    with engine.autocast("cpu"):
        engine.ones(2, 2) @ w
        with engine.autocast("cpu", engine.float16):
            assert (engine.ones(2, 2) @ w).dtype is engine.float16


def test_another_thread_has_casts_of_its_own():
    seen = []

    def work():
        seen.append((engine.ones(1, 1) @ engine.ones(1, 1)).dtype)

    with engine.autocast("cpu"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        work()
    assert seen == [engine.float32, engine.bfloat16]


def test_the_cast_of_a_weight_is_forgotten_with_the_region():
    w = engine.ones(2, 2, requires_grad=True)
    with engine.autocast("cpu"):
        engine.ones(2, 2) @ w
        assert autocast_mode.state.cache
    assert not autocast_mode.state.cache


PLAIN = """
import engine
from engine.nn.functional import linear
from engine import Tensor, nn
x, w = engine.ones(2, 2), engine.ones(2, 2)
before = engine.matmul, nn.functional.linear, linear.__code__, Tensor.__matmul__
import engine.amp, engine.utils.checkpoint
assert before == (engine.matmul, nn.functional.linear, linear.__code__, Tensor.__matmul__)
kept = dict(globals())
with engine.autocast("cpu"):
    print(linear(x, w).dtype, (x @ w).dtype, x.matmul(w).dtype)
print(linear(x, w).dtype, engine.matmul.__name__)
assert all(globals()[name] is kept[name] for name in kept) and before[:2] == (engine.matmul, nn.functional.linear)
"""


def test_nothing_is_in_the_way_before_the_first_region_and_names_that_were_imported_are_cast_and_stay():
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, encoding="utf-8")
    assert (done.stdout.split("\n")[:2], done.stderr) == (
        ["torch.bfloat16 torch.bfloat16 torch.bfloat16", "torch.float32 matmul"],
        "",
    )


def test_threads_that_cast_and_threads_that_do_not_run_at_once():
    """Also while the first region of the program is entered: in a process of its own."""
    program = """
    import sys, threading
    import engine
    from engine import cat, matmul
    from engine.nn.functional import cross_entropy, linear
    sys.setswitchinterval(1e-5)
    x, low, target = engine.ones(2, 2), engine.ones(2, 2, dtype=engine.bfloat16), engine.tensor([0, 1])
    start, wrong = threading.Barrier(6), []

    def look(dtype):
        found = linear(x, x), matmul(x, x), x @ x, x.mm(x), engine.einsum("ij,jk->ik", x, x)
        wrong.extend(t.dtype for t in found if t.dtype is not dtype)
        wrong.extend(t.dtype for t in (cat([x, low]), x.exp()) if t.dtype is not engine.float32)
        if dtype is not engine.float32 and cross_entropy(low, target).dtype is not engine.float32:
            wrong.append("loss")

    def work(i):
        start.wait()
        for _ in range(40):
            if i % 2:
                with engine.autocast("cpu", dtype=(engine.bfloat16, engine.float16)[i // 2 % 2]):
                    look((engine.bfloat16, engine.float16)[i // 2 % 2])
            look(engine.float32)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_a_frame_of_an_operation_that_is_cast_can_be_looked_at():
    with engine.autocast("cpu"), pytest.raises(TypeError) as info:
        nn.functional.linear(3, 4)
    trace, seen = info.tb, 0
    while trace is not None:
        seen += len(trace.tb_frame.f_locals)
        trace = trace.tb_next
    assert seen


def test_each_row_names_an_operation_or_one_that_is_not_there_yet():
    """A row with a misspelt name would never be used."""
    torch = pytest.importorskip("torch")
    own = {"lstm_layers", "rnn_layers"}
    places = torch, torch.Tensor, torch.nn.functional
    for table in autocast_mode.POLICY.values():
        for name in {*table} - own:
            found = torch.linalg if name.startswith("linalg_") else None
            assert hasattr(found, name[7:]) if found else any(hasattr(p, name) for p in places), name


def test_casting_forms_keep_name_signature_and_text():
    with engine.autocast("cpu"):
        pass
    assert engine.mm.__name__ == "mm"
    assert [*inspect.signature(engine.mm).parameters] == ["input", "mat2", "out"]
    assert engine.mm.__doc__ == engine.mm.__wrapped__.__doc__


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_computes_again_with_the_same_casts(use_reentrant):
    from engine.utils.checkpoint import checkpoint

    seen = []

    def block(x, w):
        out = engine.relu(x @ w)
        seen.append((out.dtype, engine.is_autocast_enabled("cpu"), engine.get_autocast_dtype("cpu")))
        return out @ w

    gradients = []
    for run in (block, lambda *a: checkpoint(block, *a, use_reentrant=use_reentrant)):
        x = engine.linspace(-1, 1, 4).view(2, 2).requires_grad_()
        w = engine.linspace(-1, 1, 4).view(2, 2).clone().requires_grad_()
        with engine.autocast("cpu", engine.float16):
            out = run(x, w)
        out.float().sum().backward()
        gradients.append((x.grad, w.grad))
    assert len(seen) == 3
    assert set(seen) == {(engine.float16, True, engine.float16)}
    for a, b in zip(*gradients, strict=True):
        assert engine.equal(a, b)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_outside_of_a_region_casts_nothing_in_one(use_reentrant):
    from engine.utils.checkpoint import checkpoint

    x, seen = engine.ones(2, 2, requires_grad=True), []

    def block(x):
        seen.append((x @ x).dtype)
        return (x @ x).exp()

    out = checkpoint(block, x, use_reentrant=use_reentrant).sum()
    with engine.autocast("cpu"):
        out.backward()
    assert seen == [engine.float32] * 2


def test_scaled_gradients_are_those_of_the_loss():
    s = amp.GradScaler("cpu", init_scale=2.0**10)
    w = engine.tensor([3.0, -1.0], requires_grad=True)
    s.scale((w * w).sum()).backward()
    s.unscale_(engine.optim.SGD([w], lr=0.1))
    assert w.grad.tolist() == [6.0, -2.0]


def test_the_scale_grows_no_further_than_float32():
    s = amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    w = engine.zeros(1, requires_grad=True)
    o = engine.optim.SGD([w], lr=0.1)
    s.scale(w.sum() * 0.0).backward()
    s.step(o)
    s.update()
    assert s.get_scale() == 2.0**127


def test_another_device_has_the_casts_of_a_gpu():
    net = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.Linear(16, 3)).to("sim")
    x, t = engine.ones(5, 6, device="sim"), engine.zeros(5, dtype=engine.int64, device="sim")
    with engine.autocast("sim"):
        out = net(x)
        loss = nn.functional.cross_entropy(out, t)
        low = [out, out @ out.T, out.relu(), nn.RNN(6, 4).to("sim")(x)[0], nn.LSTM(6, 4).to("sim")(x)[0]]
        high = [loss, out.exp(), out.sum(), out.norm(), out**2, out.cumsum(0), nn.functional.softmax(out, 1)]
        host = nn.Linear(6, 2)(engine.ones(1, 6))
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            nn.functional.binary_cross_entropy(out.sigmoid(), out)
    assert {v.dtype for v in low} == {engine.float16}
    assert {v.dtype for v in high} == {host.dtype} == {engine.float32}
    scaler, optimizer = amp.GradScaler("sim", init_scale=8.0), engine.optim.SGD(net.parameters(), lr=0.1)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert (scaler.get_scale(), scaler._get_growth_tracker()) == (8.0, 1)
    assert net[0].weight.grad.device.type == scaler._scale.device.type == "sim"
