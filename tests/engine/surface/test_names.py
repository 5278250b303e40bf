"""Every name that a program of the course may use is there wherever PyTorch has it: as function, method, in place."""

import pytest

import engine
import engine.nn.functional

NAMES = """
tensor as_tensor from_numpy empty zeros ones full eye arange linspace scalar_tensor empty_like zeros_like ones_like
full_like rand_like randn_like randint_like new_tensor new_empty new_zeros new_ones new_full rand randn randint randperm
normal bernoulli multinomial meshgrid tril triu manual_seed Generator get_default_dtype set_default_dtype get_rng_state
set_rng_state from_dlpack is_tensor asarray

add sub rsub mul div true_divide floor_divide remainder fmod pow neg positive abs sign square sqrt rsqrt reciprocal exp
exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh sigmoid erf erfc erfinv ceil floor round
trunc clamp clamp_min clamp_max clip lerp maximum minimum fmax fmin nan_to_num where isnan isinf isfinite isclose
allclose equal float_power subtract multiply divide negative absolute

eq ne lt le gt ge logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not all any

sum prod mean var std norm max min amax amin argmax argmin median logsumexp count_nonzero cumsum cumprod bincount

nansum logcumsumexp cummax cummin cov corrcoef kron copysign split_with_sizes

size numel ndim shape reshape view reshape_as view_as flatten ravel squeeze unsqueeze transpose permute t T mT movedim
expand expand_as broadcast_to broadcast_tensors repeat tile repeat_interleave cat concat stack hstack vstack split chunk
unbind narrow select flip roll diag diagonal contiguous is_contiguous stride clone detach item tolist numpy to type_as
float double half bfloat16 int long bool swapaxes unflatten

index_select index_put gather scatter scatter_add masked_fill masked_select take nonzero sort argsort topk unique

matmul mm bmm mv dot inner outer addmm addbmm baddbmm addmv einsum tensordot trace det inverse linalg.norm
linalg.vector_norm linalg.matrix_norm linalg.inv linalg.solve linalg.det

relu softmax log_softmax dropout cosine_similarity sigmoid tanh

no_grad enable_grad set_grad_enabled inference_mode is_grad_enabled is_anomaly_enabled save load dtype device finfo
iinfo promote_types can_cast result_type Size Tensor float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 inf
nan pi e set_printoptions get_num_threads set_num_threads
"""
FUNCTIONAL = """
linear relu relu6 leaky_relu elu silu gelu softplus logsigmoid softmax log_softmax dropout one_hot embedding normalize
embedding_bag
cosine_similarity pad layer_norm batch_norm conv1d conv2d max_pool1d max_pool2d avg_pool1d avg_pool2d
adaptive_avg_pool2d scaled_dot_product_attention mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss
kl_div binary_cross_entropy binary_cross_entropy_with_logits sigmoid
tanh conv3d conv_transpose2d fold unfold group_norm softmin softsign tanhshrink hardtanh selu bilinear
"""
PLACES = {"": lambda t: t, "Tensor.": lambda t: t.Tensor}


def found(t, name):
    for part in name.split("."):
        t = getattr(t, part, None)
    return t is not None


def missing(torch, name):
    """Where PyTorch has a name, or its in-place form, and the engine has not."""
    forms = [("", name), ("Tensor.", name), ("Tensor.", name + "_")]
    there = lambda t, prefix, form: found(PLACES[prefix](t), form)  # noqa: E731
    return [prefix + form for prefix, form in forms if there(torch, prefix, form) and not there(engine, prefix, form)]


@pytest.mark.parametrize("name", NAMES.split())
def test_name_is_wherever_pytorch_has_it(name):
    torch = pytest.importorskip("torch")
    assert any(found(place(engine), name) for place in PLACES.values())
    assert not missing(torch, name)


@pytest.mark.parametrize("name", FUNCTIONAL.split())
def test_function_of_networks_is_there(name):
    assert found(engine.nn.functional, name)
