"""What lesson 16 counts and computes in 16 bits."""

import pytest
from sklearn.datasets import load_digits

import engine
from engine import nn
from engine.nn import functional as F


def kept(rows, enabled, library=engine):
    """The bytes that the nodes of a step keep, without the weights."""
    nn, graph = library.nn, library.autograd.graph
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    x, answers = library.randn(rows, 64), library.randint(0, 10, (rows,))
    found, weights = {}, {p.data_ptr() for p in model.parameters()}

    def look(tensor):
        if tensor.data_ptr() not in weights:
            found[tensor.data_ptr()] = tensor.nbytes
        return tensor

    saving = graph.saved_tensors_hooks(look, lambda tensor: tensor)
    with saving, library.autocast("cpu", library.bfloat16, enabled=enabled):
        nn.functional.cross_entropy(model(x), answers)
    return sum(found.values())


def shares(library):
    """What autocast keeps of what float32 does, in percent, for four sizes of the batch."""
    return [round(100 * kept(rows, True, library) / kept(rows, False, library)) for rows in (64, 256, 1024, 4096)]


def test_autocast_keeps_more_than_half_and_for_a_small_batch_more_than_all():
    assert shares(engine) == [240, 98, 62, 54]


def test_pytorch_keeps_as_much():
    assert shares(pytest.importorskip("torch")) == [240, 98, 62, 54]


def test_counting_by_ones_stops_at_256_and_a_sum_does_not():
    total = engine.zeros((), dtype=engine.bfloat16)
    for _ in range(300):
        total += 1
    assert total == 256
    assert engine.ones(1000, dtype=engine.bfloat16).sum() == 1000


@pytest.mark.parametrize("seed", range(2))
def test_shares_of_a_mean_vanish_in_float16_and_a_scale_brings_them_back(seed):
    engine.manual_seed(seed)
    measured = engine.randn(16384, 4)
    thickness = measured @ engine.tensor([2.0, -1.0, 3.0, 0.5]) * 1e-5

    def gradient(scale=1.0, **options):
        weights = engine.zeros(4, 1, requires_grad=True)
        with engine.autocast("cpu", **options):
            loss = F.mse_loss((measured @ weights)[:, 0], thickness)
        (loss * scale).backward()
        return weights.grad[:, 0] / scale

    true = gradient(enabled=False)
    assert (gradient(dtype=engine.float16) == 0).all()
    assert engine.allclose(gradient(dtype=engine.bfloat16), true, rtol=0.02, atol=1e-7)
    assert engine.allclose(gradient(2.0**16, dtype=engine.float16), true, rtol=2e-3, atol=1e-8)
    assert not gradient(2.0**40, dtype=engine.float16).isfinite().all()


def test_within_a_block_autocast_can_be_off_for_a_part():
    x, w = engine.randn(4, 6), engine.randn(6, 6)
    with engine.autocast("cpu", engine.bfloat16):
        y = x @ w
        with engine.autocast("cpu", enabled=False):
            assert (y.float() @ w).dtype is engine.float32
            with pytest.raises(RuntimeError, match="same dtype"):
                y @ w


def test_a_sum_in_bfloat16_rounds_once_and_a_total_of_ones_own_gets_stuck():
    ones = engine.ones(1000, dtype=engine.bfloat16)
    with engine.autocast("cpu", engine.bfloat16):
        total = engine.zeros((), dtype=engine.bfloat16)
        for one in ones:
            total += one
        assert ones.sum() == 1000 and ones.sum().dtype is engine.bfloat16 and total == 256


def trained(seed, dtype, **options):
    """(how many of the validation pictures are right, steps that were skipped), as the lesson trains."""
    digits = load_digits()
    images, answers = engine.tensor(digits.images / 16, dtype=engine.float32), engine.tensor(digits.target)
    engine.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = engine.optim.SGD(model.parameters(), lr=0.1)
    scaler = engine.amp.GradScaler("cpu", enabled=dtype is engine.float16, **options)
    skipped = 0
    for _ in range(8):
        for some in engine.randperm(1287).split(32):
            optimizer.zero_grad()
            with engine.autocast("cpu", dtype=dtype, enabled=dtype is not engine.float32):
                loss = F.cross_entropy(model(images[some]), answers[some])
            before = scaler.get_scale()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            skipped += scaler.get_scale() < before
    with engine.no_grad():
        right = model(images[1287:1545]).argmax(dim=1) == answers[1287:1545]
    return right.float().mean().item(), skipped


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_digits_are_learnt_as_well_in_16_bits_within_the_error_of_258_pictures(seed):
    plain, none = trained(seed, engine.float32)
    brain, still_none = trained(seed, engine.bfloat16)
    half, some = trained(seed, engine.float16, init_scale=2.0**24)
    error = (plain * (1 - plain) / 258) ** 0.5
    assert plain > 0.8 and abs(brain - plain) < error and abs(half - plain) < error
    assert none == still_none == 0 and 0 < some < 15
