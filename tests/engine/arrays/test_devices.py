"""The table of operations and the training of models on a device: on ``sim`` everywhere, on a GPU with ``-m gpu``.

What the host computes is the oracle; that is compared with PyTorch elsewhere.
"""

import copy
import importlib
import pickle

import numpy as np
import pytest
import test_rules as table
from over_tables import over

import engine
from engine.arrays import devices, random
from engine.ops.rows import registry

NAMES = {name: getattr(engine, name) for name in engine.__all__}
DEVICES = [pytest.param("sim"), pytest.param("cuda", marks=pytest.mark.gpu)]
pytestmark = pytest.mark.parametrize("device", DEVICES)


class OnDevice:
    """What stands for the library and for NumPy in a sample of the table, with everything on a device."""

    def __init__(self, device):
        self.device, self.autograd, self.float64 = device, engine.autograd, engine.float64
        self.xp = devices.backend_of(device).xp

    def tensor(self, data):
        return engine.tensor(data, device=self.device)


def transfers(device):
    """How often elements have crossed to the host; counted on the simulated device alone."""
    return devices.backend_of("sim").statistics(0)["transfers"] if device == "sim" else 0


def same(ours, theirs):
    assert (ours is None) == (theirs is None)
    if theirs is not None:
        assert ours.device.type != "cpu" and ours.dtype is theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours.detach().cpu().numpy(), theirs.detach().numpy(), 1e-9, 1e-9)


def results(t, f, sample, arrays):
    return table.run(t, f, sample, arrays)[0]


def gradients(t, f, sample, arrays):
    return table.gradient(t, f, sample, arrays)[0]


# their derivatives are other formulas where there is a zero: the host waits to see that, in PyTorch too
WAITS = {"prod", "cumprod", "det"}


def waits(name, sample):
    """Whether a row looks at values, to choose how to compute."""
    return name in WAITS or "mode='max'" in sample


@over("name, sample", table.CASES)
@pytest.mark.parametrize("derivative", [results, gradients, table.second])
def test_a_row_gives_what_it_gives_on_the_host(derivative, name, sample, device):
    f, arrays = registry[name].function, table.inputs(name, sample)
    expected = derivative(engine, f, sample, arrays)
    before = transfers(device)
    found = derivative(OnDevice(device), f, sample, arrays)
    assert waits(name, sample) or transfers(device) == before
    assert (found is None) == (expected is None)
    for a, b in zip(found or (), expected or (), strict=True):
        same(a, b)


def batched(t, f, sample, arrays):
    """The results of ``vmap`` over two samples, and the gradients of their sum; or the type of its error."""
    twice = {k: t.tensor(np.stack([a, a])) for k, a in arrays.items()}
    variables = [v.requires_grad_() for k, v in twice.items() if k in "xyzABvw"]
    xp = getattr(t, "xp", np)
    x0 = xp.array(arrays["x"])

    def program(*values):
        found = eval(sample, {"f": f, "np": xp, "torch": t, "x0": x0, **dict(zip(twice, values, strict=True))})
        return tuple(found) if isinstance(found, (tuple, list)) else found

    try:
        found = engine.func.vmap(program)(*twice.values())
    except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
        return type(error)
    found = [r for r in (found if isinstance(found, tuple) else (found,)) if r.dtype is engine.float64]
    differentiable = [r for r in found if r.requires_grad]
    if differentiable:
        found += engine.autograd.grad([r.sum() for r in differentiable], variables, allow_unused=True)
    return [r if r is None else r.detach() for r in found]


@over("name, sample", table.CASES)
def test_vmap_of_a_row_gives_what_it_gives_on_the_host(name, sample, device):
    f, arrays = registry[name].function, table.inputs(name, sample)
    expected = batched(engine, f, sample, arrays)
    found = batched(OnDevice(device), f, sample, arrays)
    if isinstance(expected, type):
        assert found is expected
    else:
        for a, b in zip(found, expected, strict=True):
            same(a, b)


MASKED = [
    "x.clamp(0, 1)",
    "x.relu()",
    "engine.where(x > 0, x, 0.0)",
    "x.max()",
    "engine.nn.functional.hardtanh(x)",
    "x**x",
]


@over("line", MASKED)
def test_cotangents_are_a_batch_where_the_mask_of_the_rule_is_none(line, device):
    found = []
    for place in ("cpu", device):
        x = engine.tensor([0.5, 2.0, -1.0, 0.3], device=place, requires_grad=True)
        y = eval(line, {"engine": engine, "x": x})
        back = lambda g: engine.autograd.grad(y, x, g, retain_graph=True)[0]  # noqa: B023, E731
        found.append(engine.vmap(back)(engine.eye(2, y.numel(), device=place).reshape(2, *y.shape)))
    same(found[1], found[0])


PROGRAMS = [
    "k // k", "k % 3", "F.one_hot(k, 5)", "x.gather(0, k.reshape(1, 4) - 1)",
    "x.scatter_add(0, k.reshape(1, 4) - 1, x)",
    "x.index_add(0, k - 1, x)", "x.masked_fill(m, 0)", "x.sort(0)[0]", "x.topk(2)[1]", "x.kthvalue(2)[0]", "x.triu()",
    "x.isclose(x)", "x.tril().roll(1, 0)", "F.embedding(k - 1, x, padding_idx=0)", "x.all()",
    "F.cross_entropy(x, k - 1, ignore_index=2)", "x.repeat_interleave(2, 0)",
    "torch.nn.utils.clip_grad_norm_([x], 1.0)", "F.max_pool2d(x[None], 2)", "x.unfold(0, 2, 1)", "x.count_nonzero(0)",
]  # fmt: skip


@over("program", PROGRAMS)
def test_an_operation_does_not_wait_for_the_device(program, device):
    def run(device):
        x = engine.tensor(np.random.default_rng(0).standard_normal((4, 4)), device=device)
        x.grad = x * 2
        k = engine.tensor([1, 3, 2, 4], device=device)
        return eval(program, {"x": x, "k": k, "m": x > 0, "torch": engine, "F": engine.nn.functional})

    run(device)  # what is kept of the geometry of windows is made
    before = transfers(device)
    found = run(device)
    assert transfers(device) == before
    same(found, run("cpu"))


# ---- tensors are made, moved and read


MAKERS = [
    "zeros(2, 3)", "ones(2, 3, dtype=torch.int64)", "full((2,), 2.5)", "eye(2, 3)", "arange(5)", "linspace(0, 1, 5)",
    "logspace(0, 2, 3)", "tensor([[1, 2], [3, 4]])", "tensor(2.5)", "as_tensor([1.0, 2.0])", "scalar_tensor(3)",
]  # fmt: skip


@over("maker", MAKERS)
def test_creation_functions_take_a_device(maker, device):
    here = eval(maker[:-1] + ", device=device)", {"torch": engine, **NAMES, "device": device})
    same(here, eval(maker, {"torch": engine, **NAMES}))


@over("maker", MAKERS)
def test_tensors_are_created_on_the_default_device(maker, device):
    with engine.device(device):
        here = eval(maker, {"torch": engine, **NAMES})
    same(here, eval(maker, {"torch": engine, **NAMES}))


def test_the_default_device_is_set_and_reset(device):
    engine.set_default_device(device)
    try:
        assert engine.get_default_device() == engine.device(device, 0) == engine.zeros(1).device
        with engine.device("cpu"):
            assert engine.zeros(1).device == engine.get_default_device() == engine.device("cpu")
    finally:
        engine.set_default_device(None)
    assert engine.zeros(1).device == engine.device("cpu")


def test_like_and_new_functions_stay_on_the_device(device):
    x = engine.ones(2, 3, device=device)
    made = [engine.zeros_like(x), engine.full_like(x, 2), engine.rand_like(x), engine.randn_like(x), x.new_zeros(2),
            engine.randint_like(x, 5), x.new_full((2,), 1.5), x.new_tensor([1.0]), x.new_ones(1), x.new_empty(3),
            engine.empty_like(x), engine.normal(x, 2.0), engine.bernoulli(x * 0.5), x.multinomial(2)]  # fmt: skip
    assert [t.device for t in made] == [x.device] * len(made)
    assert engine.zeros_like(x, device="cpu").device == x.new_ones(1, device="cpu").device == engine.device("cpu")


def test_tensors_move_and_know_where_they_are(device):
    x = engine.arange(6.0).reshape(2, 3).t()
    y = x.to(device)
    assert str(y.device) == f"{device}:0" and y.to(device) is y and x.cpu() is x and y.to(y) is y
    assert (y.is_cuda, y.is_cpu, y.get_device()) == (device == "cuda", False, 0) and x.get_device() == -1
    same(y, x)
    same(x.to(device, engine.int32), x.int())
    same(y.cpu().to(y), x)
    assert y.cpu().device == x.device and engine.equal(y.cpu(), x)


@over("shape", [(0,), (2, 0), ()])
def test_empty_tensors_and_numbers_move(shape, device):
    x = engine.ones(shape, dtype=engine.bfloat16)
    y = x.to(device)
    assert y.shape == x.shape and y.dtype is x.dtype and engine.equal(y.cpu(), x)
    assert (y + 1).sum().item() == (x + 1).sum().item()


def test_gradients_cross_devices(device):
    x = engine.arange(3.0, requires_grad=True)
    y = (x.to(device) * 2).cpu() * x
    assert repr(y.grad_fn.next_functions[0][0]).startswith("<ToCopyBackward0")
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 8.0] and x.grad.device == engine.device("cpu")
    z, x.grad = x.to(device, engine.float64), None
    assert type(z.grad_fn.next_functions[0][0]).__name__ == "AccumulateGrad"  # one node, as in PyTorch
    (z * z).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0] and x.grad.dtype is engine.float32


def test_a_number_in_host_memory_takes_part(device):
    x = engine.ones(3, device=device, requires_grad=True)
    leaf = engine.tensor(2.0, requires_grad=True)
    for s in (leaf, leaf * 1):
        x.grad = leaf.grad = None
        for y in (x * s, s * x, x / s, s - x, x**s, s**x):
            assert y.device == x.device
            y.sum().backward(retain_graph=True)
        assert leaf.grad.device == engine.device("cpu") and x.grad.device == x.device
        assert leaf.grad.item() == pytest.approx(3 + 3 - 0.75 + 3 + 0 + 3)


@over("write", [
    lambda x, s: x.fill_(s), lambda x, s: x.__setitem__(0, s), lambda x, s: x.__setitem__(engine.tensor([0, 2]), s),
    lambda x, s: x.masked_fill_(x > 1, s), lambda x, s: x.copy_(engine.where(x > 1, s, x)), lambda x, s: x.mul_(s),
])  # fmt: skip
def test_a_number_in_host_memory_is_written(write, device):
    found = []
    for where in (device, "cpu"):
        s = engine.tensor(5.0, requires_grad=True)
        x = engine.arange(4.0, device=where).requires_grad_()
        y = x * 1
        write(y, s)
        (y * y).sum().backward()
        assert s.grad.device == s.device
        found.append((y.tolist(), x.grad.tolist(), s.grad.item()))
    assert found[0] == found[1]


def test_a_tensor_prints_as_on_the_host_with_its_device(device):
    x = engine.arange(2000.0).reshape(40, 50) / 7
    text = repr(x)
    assert repr(x.to(device)) == text[:-1] + f", device='{device}:0')"
    assert repr(x[0, 1].to(device)) == f"tensor(0.1429, device='{device}:0')"


def test_numpy_says_to_copy_first(device):
    x = engine.ones(2, device=device)
    with pytest.raises(TypeError, match=f"can't convert {device}:0 device type tensor to numpy. Use Tensor.cpu"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1.0, 1.0]


def test_tensors_are_copied_and_pickled_with_their_device(device):
    x = engine.arange(3.0, device=device).requires_grad_()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        same(y, x.detach().cpu())
        assert y.requires_grad and y.is_leaf


def test_saved_tensors_go_back_to_their_device_or_another(device, tmp_path):
    x = engine.arange(6.0, device=device)
    engine.save({"x": x, "part": x[1:3], "turned": x.reshape(2, 3).t()}, tmp_path / "file")
    loaded = engine.load(tmp_path / "file")
    assert {str(t.device) for t in loaded.values()} == {f"{device}:0"}
    loaded["x"][1] = 9  # they share memory, as they did
    assert loaded["part"].tolist() == [9.0, 2.0] and loaded["turned"][1].tolist() == [9.0, 4.0]
    on_host = engine.load(tmp_path / "file", map_location="cpu")
    assert on_host["part"].tolist() == [1.0, 2.0] and on_host["turned"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    engine.save(on_host, tmp_path / "file")
    same(engine.load(tmp_path / "file", map_location=device)["x"], on_host["x"])


# ---- tensors of two devices


MIXED = [
    "x + y", "y + x", "x - y", "x * y", "x / y", "x ** y", "x @ y", "y @ x", "x > y", "torch.maximum(x, y)",
    "x.add_(y)", "torch.mm(x, y)", "torch.addmm(y, x, x)", "F.linear(x, y)", "F.linear(x, x, y[0])",
    "torch.cat([x, y])", "torch.stack([x, y])", "torch.where(x > 0, x, y)", "F.mse_loss(x, y)",
    "torch.einsum('ij,jk', x, y)",
    "torch.lerp(x, y, 0.5)", "torch.addcmul(x, x, y)", "F.binary_cross_entropy_with_logits(x, y)",
    "F.conv2d(x[None], y[None, None])", "F.layer_norm(x, (2,), y[0])", "torch.dot(x[0], y[0])",
    "torch.bmm(x[None], y[None])", "F.cross_entropy(x, y[0].long())", "F.embedding(y.long(), x)",
]  # fmt: skip


# on a GPU, CuPy's own TypeError comes out of these
CUPY_SAYS = {
    "F.binary_cross_entropy_with_logits(x, y)", "F.layer_norm(x, (2,), y[0])",
}  # fmt: skip


@over("program", MIXED)
def test_tensors_of_two_devices_do_not_mix(program, device):
    names = {"x": engine.ones(2, 2, device=device), "y": engine.ones(2, 2), "torch": engine, "F": engine.nn.functional}
    own = device == "cuda" and program in CUPY_SAYS
    said = "^Expected all tensors to be on the same device, but found at least two"
    with pytest.raises(TypeError if own else RuntimeError, match="Unsupported type" if own else said):
        eval(program, names)


def test_indices_in_host_memory_pick_from_a_device_but_not_the_other_way_round(device):
    x, i = engine.arange(6.0).reshape(2, 3), engine.tensor([1, 0])
    same(x.to(device)[i], x[i])
    same(x.to(device)[x > 2], x[x > 2])
    with pytest.raises(RuntimeError, match=r"^indices should be either on cpu or on the same device .* \(cpu\)"):
        x[i.to(device)]


def test_copy_crosses_devices(device):
    x, y = engine.zeros(3, device=device), engine.arange(3.0, requires_grad=True)
    x.copy_(y)
    same(x.detach(), y.detach())
    (x * 2).sum().backward()
    assert y.grad.tolist() == [2.0] * 3 and y.grad.device == y.device


# ---- memory is shared and written


def test_views_and_writes_follow_the_graph(device):
    def program(device):
        x = engine.arange(12.0, device=device).reshape(3, 4).requires_grad_()
        y = x * 1
        y[1:, ::2] *= 3
        y.t()[0] = y[:, 1].exp()
        y.diagonal().add_(1)
        z = y.unfold(1, 2, 1).sum(-1)
        z[z > 20] = 0
        (z * z).sum().backward()
        return y, z, x.grad

    before = transfers(device)
    found = program(device)
    assert transfers(device) == before
    for a, b in zip(found, program("cpu"), strict=True):
        same(a.detach(), b.detach())


def test_a_write_to_a_saved_tensor_is_noticed(device):
    x = engine.ones(3, device=device, requires_grad=True)
    y = x.exp()
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: \[torch\.\w+\.FloatTensor \[3\]\]"):
        y.sum().backward()
    z = x * 1
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a"):
        z[1:].add_(z[:-1])


def test_data_has_the_same_memory_and_other_versions(device):
    x = engine.ones(3, device=device, requires_grad=True)
    y = x * x
    x.data.mul_(2)
    y.sum().backward()
    assert x.tolist() == [2.0] * 3 and x.grad.tolist() == [4.0] * 3


# ---- random numbers


def test_a_seed_gives_the_same_numbers_again(device):
    def draw():
        return [engine.rand(5, device=device), engine.randn(5, device=device), engine.randperm(5, device=device),
                engine.randint(0, 9, (5,), device=device), engine.nn.functional.dropout(engine.ones(5, device=device)),
                engine.empty(5, device=device).exponential_()]  # fmt: skip

    engine.manual_seed(5)
    first, state = draw(), getattr(engine, device).get_rng_state()
    second = draw()
    engine.manual_seed(5)
    assert [a.tolist() for a in draw()] == [a.tolist() for a in first]
    getattr(engine, device).set_rng_state(state)
    assert [a.tolist() for a in draw()] == [a.tolist() for a in second]
    generator = engine.Generator(device).manual_seed(5)
    assert engine.rand(5, device=device, generator=generator).tolist() == first[0].tolist()


def test_all_chunks_of_a_vmap_draw_the_same_numbers(device):
    draw = engine.vmap(lambda x: x + engine.rand(2, device=device), randomness="same", chunk_size=2)
    rows = draw(engine.zeros(4, 2, device=device)).tolist()
    assert rows == rows[:1] * 4


def test_samples_of_a_vmap_are_on_their_device(device):
    def program(x):
        assert x.device.type == device and x.cpu().device == engine.device("cpu")
        y = x.new_ones(2) + engine.zeros(2, device=x.device)
        return (x + y).cpu(), x.cpu().to(device) * 2

    there, doubled = engine.vmap(program)(engine.zeros(3, 2, device=device) + 1)
    assert there.device == engine.device("cpu") and there.tolist() == [[2.0, 2.0]] * 3
    assert doubled.device.type == device and doubled.tolist() == [[2.0, 2.0]] * 3


def test_fork_rng_restores_the_generators_of_devices(device):
    first = engine.rand(3, device=device)  # the device is in use
    state = getattr(engine, device).get_rng_state()
    with random.fork_rng():
        engine.rand(3, device=device)
    assert getattr(engine, device).get_rng_state().tolist() == state.tolist() and first.shape == (3,)


def test_arrays_of_the_device_become_tensors(device):
    array = devices.backend_of(device).xp.ones(3)
    shared, copied = engine.as_tensor(array), engine.tensor(array)
    array[0] = 5
    assert shared.tolist() == [5.0, 1.0, 1.0] and copied.tolist() == [1.0, 1.0, 1.0]
    assert str(shared.device) == str(copied.device) == f"{device}:0" and shared.dtype is engine.float64


def test_a_generator_draws_on_its_own_device(device):
    with pytest.raises(RuntimeError, match=f"Expected a '{device}' device type for generator but found 'cpu'"):
        engine.rand(2, device=device, generator=engine.Generator())


DRAWS = {  # the mean and the standard deviation of each distribution
    "rand(n)": (0.5, 12**-0.5), "rand(n, dtype=torch.float64)": (0.5, 12**-0.5), "randn(n)": (0, 1),
    "randn(n, dtype=torch.float16)": (0, 1), "normal(3.0, 2.0, (n,))": (3, 2), "randint(0, 10, (n,))": (4.5, 8.25**0.5),
    "empty(n).uniform_(-1, 3)": (1, 16**0.5 / 12**0.5), "empty(n).exponential_(2)": (0.5, 0.5),
    "empty(n).bernoulli_(0.25)": (0.25, 0.1875**0.5),
    "bernoulli(torch.full((n,), 0.25))": (0.25, 0.1875**0.5),
    "multinomial(torch.tensor([1.0, 0.0, 3.0]), n, True)": (1.5, 0.75**0.5),
}  # fmt: skip


@over("draw", DRAWS)
def test_draws_have_their_distributions(draw, device):
    engine.manual_seed(0)
    with engine.device(device):
        x = eval(draw, {"torch": engine, "n": 40000, **NAMES})
    assert str(x.device) == f"{device}:0"
    found, (mean, deviation) = x.double().cpu(), DRAWS[draw]
    assert abs(found.mean().item() - mean) < 5 * deviation / 200
    assert found.std().item() == pytest.approx(deviation, rel=0.05)


def test_a_permutation_has_each_number_once(device):
    x = engine.randperm(1000, device=device).tolist()
    assert sorted(x) == list(range(1000)) != x


# ---- models are trained


def batches(device):
    rng = np.random.default_rng(0)
    for _ in range(4):
        x = engine.tensor(rng.standard_normal((8, 1, 6, 6)), device=device)
        yield x, engine.tensor(rng.integers(0, 3, 8), device=device)


def network():
    nn = engine.nn
    convolution = nn.Conv2d(1, 4, 3, padding=1, bias=False)  # the gradient of a bias before a batch norm is rounding
    return nn.Sequential(  # errors, which Adagrad enlarges
        convolution, nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.LayerNorm(8),
        nn.GELU(), nn.Linear(8, 3),
    ).double()  # fmt: skip


def trained(model, make, device):
    """The losses and the parameters of a few steps."""
    optimizer = make(model.parameters())
    losses = []
    for x, y in batches(device):
        loss = engine.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(p.detach() for p in model.parameters()), *(p.grad for p in model.parameters())]


OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.01, "amsgrad": True}, "AdamW": {"lr": 0.01}, "Adagrad": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.5, "centered": True},
}  # fmt: skip


@over("name", OPTIMIZERS)
def test_training_gives_what_it_gives_on_the_host(name, device):
    def make(parameters):
        return getattr(engine.optim, name)(parameters, **OPTIMIZERS[name])

    engine.manual_seed(0)
    on_host = network()
    model = copy.deepcopy(on_host).to(device)
    assert {str(t.device) for t in model.state_dict().values()} == {f"{device}:0"}
    before = transfers(device)
    found = trained(model, make, device)
    assert transfers(device) == before
    for a, b in zip(found, trained(on_host, make, "cpu"), strict=True):
        same(a, b)


LAYERS = {
    "LSTM(3, 4, 2, batch_first=True)": (2, 5, 3), "GRU(3, 4, bidirectional=True)": (5, 2, 3), "RNN(3, 4)": (5, 2, 3),
    "TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)": (2, 5, 4),
    "Conv1d(2, 4, 3, groups=2)": (2, 2, 7),
    "ConvTranspose2d(2, 3, 3, 2)": (1, 2, 4, 4), "BatchNorm1d(3)": (4, 3), "GroupNorm(2, 4)": (2, 4, 3),
    "AvgPool2d(3, 2, 1)": (1, 2, 5, 5), "AdaptiveAvgPool2d((2, 3))": (1, 2, 5, 5), "Bilinear(3, 3, 2)": (2, 3),
}  # fmt: skip


@over("layer", LAYERS)
def test_layers_give_what_they_give_on_the_host(layer, device):
    engine.manual_seed(0)
    on_host = eval(layer, vars(engine.nn)).double()
    model, results = copy.deepcopy(on_host).to(device), []
    before = transfers(device)
    for module, where in ((model, device), (on_host, "cpu")):
        x = engine.tensor(np.random.default_rng(0).standard_normal(LAYERS[layer]), device=where, requires_grad=True)
        out = module(x, x) if "Bilinear" in layer else module(x)
        out = out[0] if isinstance(out, tuple) else out
        (out * out).sum().backward()
        results.append([out.detach(), x.grad, *(p.grad for p in module.parameters())])
        assert where == "cpu" or transfers(device) == before
    for a, b in zip(*results, strict=True):
        same(a, b)


def test_layers_are_made_on_a_device(device):
    engine.manual_seed(0)
    layer = engine.nn.Linear(300, 200, device=device, dtype=engine.float64)
    assert layer.weight.device == layer.bias.device == engine.device(device, 0)
    assert layer.weight.detach().abs().max().item() == pytest.approx(300**-0.5, rel=0.01)


def test_batches_of_a_loader_go_to_the_device(device):
    data = engine.utils.data
    x = engine.arange(10.0).reshape(10, 1)
    loader = data.DataLoader(data.TensorDataset(x, 2 * x), 4, shuffle=True)
    model = engine.nn.Linear(1, 1, device=device)
    optimizer = engine.optim.SGD(model.parameters(), 0.005)
    losses = []
    for _ in range(30):
        for a, b in loader:
            a, b = a.to(device, non_blocking=True), b.to(device, non_blocking=True)
            loss = (model(a) - b).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]


def test_a_recomputed_region_draws_the_same_numbers(device):
    x = engine.ones(100, device=device, requires_grad=True)
    y = engine.utils.checkpoint.checkpoint(lambda x: engine.nn.functional.dropout(x) * x, x, use_reentrant=False)
    y.sum().backward()
    assert sorted(set(x.grad.tolist())) == [0.0, 4.0] and x.grad.tolist() == (2 * y).tolist()


def test_half_precision_is_accumulated_in_float32(device):
    x = engine.full((1, 4096), 0.1, dtype=engine.float16)
    expected = (x.double() @ x.double().t()).half()
    same(x.to(device) @ x.to(device).t(), expected)
    same(x.to(device).sum(), x.double().sum().half())


def test_mixed_precision_trains(device):
    model = engine.nn.Sequential(engine.nn.Linear(4, 8), engine.nn.ReLU(), engine.nn.Linear(8, 1)).to(device)
    optimizer, scaler = engine.optim.SGD(model.parameters(), 0.05), engine.amp.GradScaler(device)
    x = engine.randn(16, 4, device=device)
    losses = []
    for _ in range(20):
        with engine.autocast(device, dtype=engine.float16):
            out = model(x)
            loss = (out - x.sum(1, keepdim=True)).square().mean()
        assert out.dtype is engine.float16
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_gradients_are_checked(device):
    x = engine.rand(2, 3, dtype=engine.float64, device=device, requires_grad=True)
    assert engine.autograd.gradcheck(lambda x: (x.exp() * x).sum(0), (x,))


# ---- the namespace of the device: engine.sim, engine.cuda


def test_memory_is_counted(device):
    there = getattr(engine, device)
    there.reset_peak_memory_stats()
    start = there.memory_allocated()
    x = engine.zeros(1000, 1000, device=device)
    y = x.reshape(-1)[5:]
    assert there.memory_allocated() - start == 4_000_256
    del x
    assert there.memory_allocated() - start == 4_000_256 and y.size(0) == 999_995
    del y
    assert there.memory_allocated() == start and there.memory_reserved() >= 4_000_256
    before = there.memory_reserved()
    there.empty_cache()
    assert there.memory_reserved() <= before
    free, total = there.mem_get_info()
    assert 0 < free <= total == there.get_device_properties().total_memory
    assert there.memory_stats()["allocated_bytes.all.current"] == start
    assert f"PyTorch {device.upper()} memory summary, device ID 0" in there.memory_summary()


def test_memory_that_is_not_there(device):
    module = importlib.import_module(f"engine.arrays.devices.{device}")
    allocate = module.allocate if device == "cuda" else module.allocator.allocate
    said = r"out of memory. Tried to allocate 65536.00 GiB. GPU 0 has a total capacity of .* GiB of which .* is free"
    with pytest.raises(engine.OutOfMemoryError, match=said):
        allocate(1 << 46)


def test_streams_and_events(device):
    there = getattr(engine, device)
    start, end = there.Event(enable_timing=True), there.Event(enable_timing=True)
    side = there.Stream()
    start.record()
    side.wait_event(start)
    with there.stream(side):
        x = engine.ones(100, device=device) * 2
        end.record(side)
    there.current_stream().wait_stream(side)
    end.synchronize()
    there.synchronize()
    assert side.query() and start.elapsed_time(end) >= 0 and x.sum().item() == 200
    assert there.device_count() >= 1 and there.current_device() == 0 and there.get_device_name()
    with there.device(0):
        assert there.is_initialized() and there.is_available()


def test_pinned_memory(device):
    if not engine.cuda.is_available():
        with pytest.raises(RuntimeError, match="^Cannot access accelerator device when none is available."):
            engine.ones(2).pin_memory()
        return
    x = engine.ones(2, 3)
    y = x.pin_memory()
    assert y.is_pinned() and not x.is_pinned() and y.pin_memory() is y and engine.equal(x, y)
    assert engine.tensor([1.0], pin_memory=True).is_pinned() and engine.zeros(2, pin_memory=True).is_pinned()
    assert engine.equal(y.to("cuda", non_blocking=True).cpu(), x)
    loader = engine.utils.data.DataLoader([(1.0, {"a": engine.ones(2)})], pin_memory=True)
    (batch,) = loader
    assert batch[0].is_pinned() and batch[1]["a"].is_pinned()
