"""What lesson 21 says of convolution, normalisation, embeddings and attention, for other pictures, seeds and sizes."""

import pytest

import engine
from course.figures import AttentionExplorer, SlidingKernelExplorer
from engine import nn
from engine.autograd.graph import saved_tensors_hooks
from engine.nn import functional as F

load_digits = pytest.importorskip("sklearn.datasets").load_digits
DIGITS = engine.tensor(load_digits().images[:20] / 16, dtype=engine.float32)
SEEDS = pytest.mark.parametrize("seed", range(5))


def bytes_kept(way):
    sizes = []

    def note(tensor):
        sizes.append(tensor.numel() * tensor.element_size())
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        way(engine.rand(1, 1, 40, 40).requires_grad_(), engine.randn(4, 1, 7, 7).requires_grad_())
    return sum(sizes)


# Convolution


def test_the_table_of_unfold_has_a_pixel_as_often_as_a_kernel_has_weights():
    by_unfold = bytes_kept(lambda x, w: w.flatten(1) @ F.unfold(x, 7)[0])
    assert bytes_kept(F.conv2d) == 4 * (40 * 40 + 4 * 49)
    assert by_unfold == 4 * (49 * 34 * 34 + 4 * 49)


@SEEDS
def test_a_result_moves_with_the_picture_by_as_many_strides_and_its_largest_number_stays(seed):
    engine.manual_seed(seed)
    kernels, room = engine.randn(4, 1, 3, 3), engine.zeros(20, 1, 16, 16)
    room[:, 0, 4:12, 4:12] = DIGITS
    for stride, moved_by in ((1, 1), (2, 2)):
        before, after = (F.conv2d(x, kernels, stride=stride) for x in (room, room.roll(moved_by, dims=-1)))
        assert engine.allclose(after[..., 1:], before[..., :-1], atol=1e-5)
        assert engine.allclose(after.amax(dim=(2, 3)), before.amax(dim=(2, 3)), atol=1e-5)
    odd = F.conv2d(room.roll(1, dims=-1), kernels, stride=2)
    assert not engine.allclose(odd[..., 1:], before[..., :-1], atol=0.1)
    assert not engine.allclose(odd, before, atol=0.1)


def test_what_the_figure_is_asked_for_is_to_be_found():
    figure = SlidingKernelExplorer()
    same = [
        (pad, far)
        for pad in range(3)
        for far in range(2)
        if figure.run(kernel=2, stride=0, padding=pad, dilation=far)[0].shape == (6, 6)
    ]
    assert same == [(1, 0), (2, 1)]
    _, of_inputs, _ = figure.run(kernel=0, stride=1, padding=0, dilation=0)
    assert (of_inputs == 0).sum() == 27


# Normalisation and embedding


@SEEDS
def test_slopes_fade_on_the_way_back_unless_there_is_a_norm_and_batch_norm_keeps_the_examples_apart(seed):
    found = {}
    for name, norm in (("none", lambda x: x), ("layer", nn.LayerNorm(32)), ("batch", nn.BatchNorm1d(32))):
        engine.manual_seed(seed)
        x, after = engine.randn(64, 32), []
        for _ in range(12):
            x = engine.relu(norm(nn.Linear(32, 32)(x)))
            after.append(x)
        slopes = [t.std().item() for t in engine.autograd.grad((x * engine.randn(64, 32)).sum(), after)]
        apart = [t.std(dim=0).mean().item() for t in after]
        found[name] = slopes[0] / slopes[-1], apart[-1] / apart[0]
    assert max(found["none"]) < 1e-3
    assert 0.3 < found["layer"][0] < 1 and 0.1 < found["layer"][1] < 0.3
    assert 5 < found["batch"][0] < 20 and 0.9 < found["batch"][1] < 1.2


def test_rows_that_are_not_used_have_no_slope_and_momentum_moves_them_all_the_same():
    table = nn.Embedding(50, 3)
    optimizer = engine.optim.SGD(table.parameters(), lr=0.1, momentum=0.9)
    for words in ([7], [8]):
        before = table.weight[7].clone()
        optimizer.zero_grad()
        table(engine.tensor(words)).sum().backward()
        optimizer.step()
    assert table.weight.grad.any(dim=1).nonzero().flatten().tolist() == [8]
    assert not engine.equal(table.weight[7], before)


# Attention


@pytest.mark.parametrize(("mask", "seen"), [("none", 6), ("after", 6), ("before", 4)])
@SEEDS
def test_only_a_mask_before_the_softmax_hides_the_later_words(mask, seen, seed):
    engine.manual_seed(seed)
    x, later = engine.randn(6, 4, requires_grad=True), engine.ones(6, 6).triu(1).bool()
    query, key, value = (nn.Linear(4, 4)(x) for _ in range(3))
    scores = query @ key.T / 2
    weights = (scores.masked_fill(later, float("-inf")) if mask == "before" else scores).softmax(dim=-1)
    mix = (weights.masked_fill(later, 0.0) if mask == "after" else weights) @ value
    (slopes,) = engine.autograd.grad(mix[3].sum(), x)
    assert slopes.any(dim=1).nonzero().flatten().tolist() == list(range(seen))


@SEEDS
def test_scores_times_a_lot_are_a_choice_and_times_nothing_a_mean(seed):
    engine.manual_seed(seed)
    figure = AttentionExplorer("abcdef", *(engine.randn(6, 4) for _ in range(3)))
    _, weights, mix = figure.run(times=0)
    assert engine.allclose(mix, figure.value[0].mean(dim=0).expand(6, 4), atol=1e-6)
    assert weights.max() < 0.17 < figure.run(times=4)[1].amax(dim=1).min()


def test_the_sum_of_a_layer_norm_has_no_slope():
    x = engine.randn(3, 8, requires_grad=True)
    (slopes,) = engine.autograd.grad(F.layer_norm(x, (8,)).sum(), x)
    assert slopes.abs().max() < 1e-5


def test_a_module_with_the_mask_turned_round_gives_nan():
    module, x = nn.MultiheadAttention(4, 2, batch_first=True), engine.randn(1, 6, 4, requires_grad=True)
    later = engine.ones(6, 6).triu(1).bool()
    for mask, seen in ((later, [0, 1, 2, 3]), (~later, None)):
        out, _ = module(x, x, x, attn_mask=mask)
        (slopes,) = engine.autograd.grad(out[0, 3].sum(), x)
        if seen is None:
            assert out[0, 5].isnan().all() and slopes.isnan().all()
        else:
            assert slopes[0].any(dim=1).nonzero().flatten().tolist() == seen
