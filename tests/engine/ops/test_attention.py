"""Scaled dot product attention, as PyTorch computes it."""

import numpy as np
import pytest
from against_torch import (
    assert_close,
    cases,
    check_derivatives,
    compare,
    compare_errors,
    gradients,
    library,
    outputs,
    run,
    values,
)
from over_tables import over

import engine
import engine.nn.functional as F
from engine.arrays.kernels import attention as kernels

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


INPUTS = {"q": normal(2, 3, 5, 4), "k": normal(2, 3, 6, 4), "v": normal(2, 3, 6, 4), "f": normal(2, 3, 6, 2)}
MASKS = {"m": rng.random((2, 3, 5, 6)) > 0.4, "a": normal(2, 3, 5, 6), "i": rng.integers(0, 2, (5, 6))}
MASKS["m"][0, 1, 2] = False  # a query that may look nowhere
INPUTS["b"] = MASKS["a"]

IN_ONE = cases("""
(q, k, v)
(q, k, v, m)
(q, k, v, m[0, 1])
(q, k, v, m[:1, :, :, 1:2])
(q, k, v, a)
(q, k, v, a[0, 0])
(q, k, v, torch.where(m, a, -inf))
(q, k, v, is_causal=True)
(q[:, :, :2], k, v, is_causal=True)
(q, k[:, :, :2], v[:, :, :2], is_causal=True)
(q, k, v, m, is_causal=True)
(q, k, v, a, is_causal=True)
(q, k, v, scale=0.3)
(q, k, v, scale=-2.0)
(q, k, v, scale=0.0)
(q * 4, k * 4, v)
(q * 4, k * 4, v, m)
(q * 4, k * 4, v, is_causal=True)
(q, k, v, m, 0.0, False, scale=1.5, enable_gqa=True)
(q.detach(), k.detach(), v)
(q, k.detach(), v.detach())
(q, q, q, is_causal=True)
(q[:1, :1, :1], k[:1, :1], v[:1, :1])
""")

COMPOSED = cases("""
(q[0], k[0], v[0])
(q[0, 0], k[0, 0], v[0, 0])
(q[0], k[0], v[0], m[0])
(q[0], k[0], v[0], a[0])
(q[0], k[0], v[0], is_causal=True)
(q[0], k[0], v[0], scale=-2.0)
(q, k, v, m[0])
(q, k, v, b)
(q, k, v, b[0, 0])
(q, k, f)
(q, k[:, :1], v[:, :1])
(q[:1], k, v)
(q[0], k, v)
(q.mT, k[:, :, :5].mT, v[:, :, :5].mT)
(q[0].detach(), k[0], v[0].detach())
""")

TYPES = cases("""
(q.double(), k.double(), v.double(), a.double())
(q.half(), k.half(), v.half())
(q.half(), k.half(), v.half(), a.half())
(q.bfloat16(), k.bfloat16(), v.bfloat16(), m)
(q[0].half(), k[0].half(), v[0].half(), is_causal=True)
(q[0].half(), k[0].half(), v[0].half(), b[0].half())
""")

ERRORS = cases("""
(q, k.double(), v)
(q, k, v.half())
(q[0, 0, 0], k[0, 0, 0], v[0, 0, 0])
(q[0, 0, 0], k, v)
(i[None, None], i[None, None], i[None, None])
(q, k, v, i)
(q, k, v, a.double())
(q, k, v, a.half())
(q, k, v, m[0, :, :, :5])
(q, k, v, m[0, 0, :3])
(q[:1], k[:1], v[:1], m)
(q[..., :3], k, v)
(q, k, v, dropout_p=1.5)
(q[0], k[0], v[0], m[0], is_causal=True)
""")


@pytest.fixture
def inputs():
    return {**INPUTS, **MASKS}


def call(arguments):
    return "F.scaled_dot_product_attention" + arguments


@over("arguments", IN_ONE)
def test_in_one_operation_like_pytorch(arguments, inputs):
    pytest.importorskip("torch")
    compare(call(arguments), inputs, fixed="ami", second=False)  # PyTorch has no second derivative of it


@over("arguments", [a for a in IN_ONE if ", is_causal" not in a or "(q, k, v, " not in a])
def test_second_derivatives_are_those_of_pytorchs_composition(arguments, inputs):
    torch = pytest.importorskip("torch")
    exact = {k: v.astype(np.float64) if v.dtype.kind == "f" else v for k, v in inputs.items()}
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        second = {}
        for name in ("engine", "torch"):
            module, _ = library(name)
            result, tensors = run(name, call(arguments), exact, "ami")
            leaves = [t for t in tensors.values() if t.requires_grad]
            first = gradients(module, outputs(result), leaves, 1, True)
            second[name] = gradients(module, first, leaves, 2, False)
    for a, b in zip(*second.values(), strict=True):
        if a is not None or b is not None:
            assert_close(a, b, arguments, "the second gradient")


@over("arguments", COMPOSED)
def test_composed_like_pytorch(arguments, inputs):
    pytest.importorskip("torch")
    compare(call(arguments), inputs, fixed="ami")


@over("arguments", IN_ONE + COMPOSED)
def test_derivatives(arguments, inputs):
    if "-inf" not in arguments and "* 4" not in arguments:
        check_derivatives(call(arguments.replace(".detach()", "")), inputs, "ami")


@over("arguments", TYPES)
def test_other_types_like_pytorch(arguments, inputs):
    pytest.importorskip("torch")
    compare(
        call(arguments),
        inputs,
        fixed="ami",
        second=False,
        tolerance=3e-2 if "bf" in arguments else 4e-3 if "half" in arguments else None,
    )


@over("arguments", ERRORS)
def test_errors_like_pytorch(arguments, inputs):
    pytest.importorskip("torch")
    compare_errors(call(arguments), inputs)


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (3, 5, 4)])
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropout_draws_what_pytorch_draws(p, shape):
    pytest.importorskip("torch")
    x, found = normal(*shape), []
    for name in ("engine", "torch"):
        module, functional = library(name)
        module.manual_seed(3)
        q = module.tensor(x, requires_grad=True)
        y = functional.scaled_dot_product_attention(q, q, q, dropout_p=p, is_causal=True)
        y.sum().backward()
        found.append((y, q.grad))
    for a, b in zip(*found, strict=True):
        assert_close(a, b, f"dropout {p}", "a value")


@pytest.mark.parametrize("part", ["q[:0], k[:0], v[:0]", "q[:, :, :0], k, v", "q, k[:, :, :0], v[:, :, :0]"])
def test_nothing_to_look_at_gives_zeros(part, inputs):
    result, _ = run("engine", f"F.scaled_dot_product_attention({part})", inputs)
    assert not result.any() and result.shape[-1] == 4


@pytest.mark.parametrize("which", ["q", "k", "v", "m", "qkvm", "qm", "kv"])
def test_attention_of_many_samples_is_that_of_each(which, inputs):
    arrays = {name: np.stack([inputs[name], inputs[name][::-1]]) for name in "qkvm"}
    args = [engine.tensor(arrays[name] if name in which else arrays[name][0]) for name in "qkvm"]
    in_dims = tuple(0 if name in which else None for name in "qkvm")

    def both(q, k, v, m):
        def f(q, k, v):
            return F.scaled_dot_product_attention(q, k, v, m).sin().sum()

        return F.scaled_dot_product_attention(q, k, v, m), *engine.func.grad(f, (0, 1, 2))(q, k, v)

    each = [both(*(a if d is None else a[i] for a, d in zip(args, in_dims, strict=True))) for i in range(2)]
    for mine, theirs in zip(engine.func.vmap(both, in_dims)(*args), zip(*each, strict=True), strict=True):
        np.testing.assert_allclose(values(mine), np.stack([values(t) for t in theirs]), 1e-4, 1e-5)


def test_no_matrices_may_have_masks(inputs):
    q, k, v, m = (engine.tensor(inputs[name])[:0] for name in "qkvm")
    assert F.scaled_dot_product_attention(q, k, v, m).shape == (0, 3, 5, 4)


def test_a_query_that_may_look_nowhere_gives_zeros_and_gets_no_gradient(inputs):
    q, k, v, m = (engine.tensor(inputs[name]) for name in "qkvm")
    q.requires_grad_()
    y = F.scaled_dot_product_attention(q, k, v, m)
    y.sum().backward()
    assert not y[0, 1, 2].any() and not q.grad[0, 1, 2].any() and q.grad[0, 1, 1].any()


def test_the_result_lies_in_memory_as_the_queries_do(inputs):
    torch = pytest.importorskip("torch")
    strides = []
    for module in (engine, torch):
        q = module.tensor(inputs["q"]).transpose(1, 2).contiguous().transpose(1, 2)
        f = module.nn.functional.scaled_dot_product_attention
        strides.append([f(q, q, q).stride(), f(q[:, :, ::2], q, q).stride(), f(q[0], q[0], q[0]).stride()])
    assert strides[0] == strides[1]


def test_groups_of_heads_are_not_there(inputs):
    q, k, v = (engine.tensor(inputs[name]) for name in "qkv")
    with pytest.raises(NotImplementedError, match="repeat_interleave"):
        F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True)


def test_large_scores_do_not_overflow():
    q = engine.full((1, 1, 70, 64), 100.0)
    assert engine.allclose(F.scaled_dot_product_attention(q, q, q), q)


def test_a_mask_that_was_overwritten_raises(inputs):
    q, k, v, m = (engine.tensor(inputs[name]) for name in "qkvm")
    y = F.scaled_dot_product_attention(q.requires_grad_(), k, v, m)
    m.fill_(True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_many_large_scores_do_not_overflow_and_do_not_vanish():
    scores = engine.tensor(np.where(np.arange(80)[:, None] % 2, 100.0, -200.0) + np.arange(80) % 3)
    expected = np.tile(np.exp(np.arange(80) % 3), (80, 1))
    np.testing.assert_allclose(F.softmax(scores, -1).numpy(), expected / expected.sum(1, keepdims=True))


@pytest.mark.parametrize("mask, blocks", [(None, 2), ("rows", 2), ("heads", 2), ("batch", 1), ("causal", 2)])
@pytest.mark.parametrize("heads_first", [False, True])
def test_much_attention_is_computed_in_blocks_of_matrices(monkeypatch, mask, blocks, heads_first):
    arrays = [np.concatenate([INPUTS[name]] * 2, 3) for name in "qkv"]
    mask, is_causal = {"rows": MASKS["i"] > 0, "heads": MASKS["a"][:1], "batch": MASKS["m"]}.get(mask), mask == "causal"
    weight = engine.tensor(normal(2, 3, 5, 8))

    def attend():
        leaves = [engine.tensor(a.swapaxes(1, 2) if heads_first else a, requires_grad=True) for a in arrays]
        q, k, v = (x.transpose(1, 2) if heads_first else x for x in leaves)
        attn_mask = mask if mask is None else engine.tensor(mask)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask, is_causal=is_causal)
        out.backward(weight)
        return [out.detach().numpy(), *(x.grad.numpy() for x in leaves)]

    whole, calls = attend(), []
    compute = kernels.attention_of_block
    monkeypatch.setattr(kernels, "attention_of_block", lambda *args: calls.append(len(args[0])) or compute(*args))
    monkeypatch.setattr(kernels, "BLOCK", 90)
    for mine, theirs in zip(attend(), whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
        assert mine.strides == theirs.strides
    assert calls == [2 // blocks] * blocks
