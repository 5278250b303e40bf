"""What lesson 15 counts: gradients of parts, what checkpoints keep, what clipping leaves."""

import tracemalloc

import pytest

import engine
from engine import nn
from engine.autograd.graph import saved_tensors_hooks
from engine.utils.checkpoint import checkpoint

loss_fn = nn.CrossEntropyLoss()


def gradient(seed, sizes, weigh):
    engine.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    x, y = engine.randn(40, 8), engine.randint(0, 3, (40,))
    for part_x, part_y in zip(x.split(sizes), y.split(sizes), strict=True):
        (loss_fn(model(part_x), part_y) * weigh(len(part_x), len(sizes))).backward()
    return engine.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("seed", range(5))
def test_parts_weighed_by_their_size_give_the_gradient_of_the_whole(seed):
    whole = gradient(seed, [40], lambda n, parts: 1)
    assert engine.allclose(gradient(seed, [10] * 4, lambda n, parts: 1), 4 * whole, atol=1e-5)
    assert engine.allclose(gradient(seed, [10] * 4, lambda n, parts: 1 / parts), whole, atol=1e-6)
    assert engine.allclose(gradient(seed, [16, 16, 8], lambda n, parts: n / 40), whole, atol=1e-6)
    assert not engine.allclose(gradient(seed, [16, 16, 8], lambda n, parts: 1 / parts), whole, rtol=0.01, atol=1e-4)


def test_six_blocks_keep_six_inputs_where_thirty_layers_keep_thirty_results():
    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(30)]
    blocks = [nn.Sequential(*layers[i : i + 5]) for i in range(0, 30, 5)]

    def kept(run):
        found = set()
        with saved_tensors_hooks(lambda t: found.add(t.data_ptr()) or t, lambda t: t):
            h = engine.randn(4, 8)
            for block in blocks:
                h = run(block, h)
        weights = {p.data_ptr() for layer in layers for p in layer.parameters()}
        return len(found - weights)

    assert kept(lambda block, h: block(h)) in (30, 31)
    assert kept(lambda block, h: checkpoint(block, h, use_reentrant=False)) <= 6


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_clipping_keeps_the_direction_and_returns_the_length_before(scale):
    p = nn.Parameter(engine.ones(5))
    p.grad = scale * engine.arange(1.0, 6)
    before = p.grad.clone()
    length = nn.utils.clip_grad_norm_([p], 1.0)
    assert engine.allclose(length, before.norm())
    assert p.grad.norm() <= 1 + 1e-5
    assert engine.allclose(p.grad / p.grad.norm(), before / before.norm())


def test_checkpoints_bring_the_peak_from_17_mib_to_11_as_the_gradients_stay():
    engine.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(30)]
    blocks = [nn.Sequential(*layers[i : i + 5]) for i in range(0, 30, 5)]
    wide = engine.randn(512, 256)

    def peak(run):
        tracemalloc.start()
        h = wide
        for block in blocks:
            h = run(block, h)
        h.sum().backward()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most / 2**20

    peak(lambda block, h: block(h))
    assert peak(lambda block, h: block(h)) == pytest.approx(17, abs=1)
    assert peak(lambda block, h: checkpoint(block, h, use_reentrant=False)) == pytest.approx(11, abs=1)
    assert sum(p.grad.numel() for layer in layers for p in layer[0].parameters()) * 4 / 2**20 == pytest.approx(
        7.5, abs=0.1
    )
