"""The public names: each with its arguments, in PyTorch's own notation, and where it is offered.

- ``[reduce] function method``: a heading. The operations stand in ``ops/reduce.py``, and are functions of the package
  and methods of Tensor; ``in_place`` are methods that write into it, ``functional`` and ``linalg`` names of these.
- ``clip=clamp``: the operation ``clamp`` under another name.
- ``pow.any(...)``: PyTorch has several signatures, and says of wrong arguments that none fits; ``round.dim(...)``: only
  if there is more than one argument.
- ``pow.any(Tensor input, ...)``, ``pow.any(Number input, ...)``: two lines for a name; the first that fits is taken.
- ``dtype=None``: an argument without a type is looked at by the operation.
- ``vector_norm(...) as linalg_``: how PyTorch's errors call the function and, in brackets, its arguments, in the order
  in which PyTorch's own function gives them on by position.
- ``float_power_``, ``relu(Tensor input)``: a name without arguments is offered as it is, and so is a method of its
  tensor alone; one that has a check takes ``Tensor self``.
"""

# names of arguments that PyTorch takes too: NumPy's, and those of one signature among several
ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other", "input": "A",
           "from": "low", "to": "high", "split_size": "split_size_or_sections", "sections": "indices_or_sections",
           "indices": "indices_or_sections", "tensor_indices_or_sections": "indices_or_sections",
           "element": "elements", "test_element": "test_elements"}  # fmt: skip

# orders by position that PyTorch still takes, with a warning
OLD_ORDERS = {
    "add": ["input alpha other"],
    "sub": ["input alpha other"],
    "addcdiv": ["input value tensor1 tensor2"],
    "addcmul": ["input value tensor1 tensor2"],
    "addmm": ["beta input alpha mat1 mat2", "beta input mat1 mat2"],
    "addmv": ["beta input alpha mat vec", "beta input mat vec"],
    "addbmm": ["beta input alpha batch1 batch2", "beta input batch1 batch2"],
    "baddbmm": ["beta input alpha batch1 batch2", "beta input batch1 batch2"],
}

SIGNATURES = """
[elementwise] function method in_place
abs absolute=abs acos acosh arccos=acos arcsin=asin arctan=atan asin asinh atan atanh(Tensor input, *, Tensor? out=None)
bitwise_not ceil cos cosh digamma erf erfc erfinv exp exp2 expm1 fix=trunc floor frac(Tensor input, *, Tensor? out=None)
lgamma log log10 log1p log2 logical_not neg negative=neg reciprocal rsqrt sigmoid(Tensor input, *, Tensor? out=None)
sign sin sinc sinh sqrt square tan tanh trunc(Tensor input, *, Tensor? out=None)
relu(Tensor input)
add=add_scaled sub=sub_scaled(Number|Tensor input, Number|Tensor other, *, alpha=1, Tensor? out=None)
subtract=sub_scaled(Number|Tensor input, Number|Tensor other, *, alpha=1, Tensor? out=None)
mul multiply=mul true_divide=div floor_divide(Number|Tensor input, Number|Tensor other, *, Tensor? out=None)
div=divide divide(Number|Tensor input, Number|Tensor other, *, rounding_mode=None, Tensor? out=None)
pow.any(Tensor input, Number|Tensor exponent, *, Tensor? out=None)
pow.any(Number input, Tensor exponent, *, Tensor? out=None)
remainder.any xlogy.any bitwise_and.any bitwise_or.any bitwise_xor.any(Tensor input, Number|Tensor other, *,
    Tensor? out=None)
remainder.any xlogy.any bitwise_and.any bitwise_or.any bitwise_xor.any(Number input, Tensor other, *, Tensor? out=None)
copysign.any(Tensor input, Number|Tensor other, *, Tensor? out=None)
bitwise_left_shift.any bitwise_right_shift.any(Tensor input, Number|Tensor other, *, Tensor? out=None)
bitwise_left_shift.any bitwise_right_shift.any(Number input, Tensor other, *, Tensor? out=None)
eq.any ne.any lt.any le.any gt.any ge.any fmod.any(Tensor input, Number|Tensor other, *, Tensor? out=None)
greater.any=gt greater_equal.any=ge less.any=lt less_equal.any=le not_equal.any=ne(Tensor input, Number|Tensor other,
    *, Tensor? out=None)
atan2 arctan2=atan2 hypot logical_and logical_or logical_xor(Tensor input, Tensor other, *, Tensor? out=None)
addcdiv addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Number value=1, Tensor? out=None)
clamp.any clip.any=clamp(Tensor input, Number|Tensor? min=None, Number|Tensor? max=None, *, Tensor? out=None)
clamp_min.any(Tensor input, Number|Tensor min, *, Tensor? out=None)
clamp_max.any(Tensor input, Number|Tensor max, *, Tensor? out=None)
lerp.any(Tensor input, Tensor end, Number|Tensor weight, *, Tensor? out=None)
nan_to_num(Tensor input, float? nan=0.0, float? posinf=None, float? neginf=None, *, Tensor? out=None)
round.dim(Tensor input, *, int decimals=0, Tensor? out=None)

[elementwise] function method
fmax fmin logaddexp maximum minimum(Tensor input, Tensor other, *, Tensor? out=None)
isneginf isposinf signbit(Tensor input, *, Tensor? out=None)
isfinite isinf isnan positive(Tensor input)
allclose isclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)
equal(Tensor input, Tensor other)
float_power.any(Tensor input, Number|Tensor exponent, *, Tensor? out=None)
float_power.any(Number input, Tensor exponent, *, Tensor? out=None)

[elementwise] function
rsub.any=rsub_scaled(Tensor input, Number|Tensor other, *, alpha=1)

[elementwise] method
float_power_

[elementwise] functional
sigmoid tanh(Tensor input)

[reduce] linalg
vector_norm(Tensor x, ord=2, int[]? dim=None, bool keepdim=False, *, dtype=None, Tensor? out=None) as linalg_

[reduce] function
std_mean.any var_mean.any(Tensor input, int[]|bool? dim=None, bool? unbiased=None, bool keepdim=False, *,
    correction=None)

[reduce] function method
sum mean(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype=None, Tensor? out=None)
all.any any.any(Tensor input, int[]? dim=None, bool keepdim=False, *, Tensor? out=None)
amax amin(Tensor input, int[]? dim=(), bool keepdim=False, *, Tensor? out=None)
aminmax(Tensor input, *, int? dim=None, bool keepdim=False, Tensor? out=None)
argmax argmin(Tensor input, int? dim=None, bool keepdim=False, *, Tensor? out=None)
median(Tensor input, int? dim=None, bool keepdim=False, *, Tensor? out=None)
bincount(Tensor input, Tensor? weights=None, int minlength=0)
logsumexp(Tensor input, int[] dim, bool keepdim=False, *, Tensor? out=None)
max.dim min.dim(Tensor input, int|Tensor? dim=None, bool keepdim=False, *, Tensor? other=None, Tensor? out=None)
dist(Tensor input, Tensor other, p=2)
nansum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype=None, Tensor? out=None)
logcumsumexp(Tensor input, int dim, *, Tensor? out=None)
prod.dim(Tensor input, int? dim=None, bool keepdim=False, *, dtype=None, Tensor? out=None)
std.any var.any(Tensor input, int[]|bool? dim=None, bool? unbiased=None, bool keepdim=False, *, correction=None,
    Tensor? out=None)

[reduce] function
count_nonzero.any(Tensor input, int[]? dim=None)

[reduce] method
count_nonzero.any(Tensor input, int[]? dim=None, *more)

[reduce] function method in_place
cumprod cumsum(Tensor input, int dim, *, dtype=None, Tensor? out=None)

[shape] function
atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_shapes
cartesian_prod(*tensors)
meshgrid(*tensors, indexing=None)
column_stack dstack hstack row_stack=vstack vstack(tensors, *, Tensor? out=None)
cat concat=cat concatenate=cat stack(tensors, int dim=0, *, Tensor? out=None)
detach numel(Tensor input)
flatten(Tensor input, int start_dim=0, int end_dim=-1)
clone(Tensor input, *, memory_format=None)
swapdims=transpose transpose(Tensor input, int dim0, int dim1)
reshape(Tensor input, int[] shape, *more)
flip permute tile(Tensor input, int[] dims, *more)
broadcast_to(Tensor input, int[] size, *more)
squeeze(Tensor input, dim=None)

[shape] function method
adjoint fliplr flipud ravel t(Tensor input)
as_strided(Tensor input, size, stride, storage_offset=None)
chunk unsafe_chunk(Tensor input, int chunks, int dim=0)
diag(Tensor input, int diagonal=0, *, Tensor? out=None)
diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1)
diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1)
moveaxis=movedim movedim(Tensor input, source, destination)
narrow(Tensor input, int dim, int|Tensor start, int length)
roll(Tensor input, int[] shifts, int[] dims=())
rot90(Tensor input, int k=1, dims=(0,1))
select(Tensor input, int dim, int index)
split(Tensor tensor, split_size_or_sections, int dim=0)
split_with_sizes(Tensor input, int[] split_sizes, int dim=0)
swapaxes=transpose(Tensor input, int axis0, int axis1)
tensor_split(Tensor input, indices_or_sections, int dim=0)
unbind(Tensor input, int dim=0)
unflatten(Tensor input, int dim, sizes)
unsqueeze(Tensor input, int dim)

[shape] function method in_place
tril triu(Tensor input, int diagonal=0, *, Tensor? out=None)

[shape] method
H T mH mT broadcast_to clone contiguous flatten flip permute reshape swapdims=transpose tile transpose
is_contiguous data_ptr storage_offset untyped_storage expand repeat view
squeeze_ swapaxes_=transpose_ swapdims_=transpose_ t_ transpose_ unsqueeze_
expand_as reshape_as view_as(Tensor input, Tensor other)
squeeze(Tensor input, dim=None, *more)
stride(Tensor input, int? dim=None)
unfold(Tensor input, int dimension, int size, int step)

[index] function
combinations(Tensor input, int r=2, bool with_replacement=False)
isin.any(elements, test_elements, *, bool assume_unique=False, bool invert=False, Tensor? out=None)
where.any(Tensor condition, Number|Tensor? input=None, Number|Tensor? other=None, *, Tensor? out=None)

[index] method
index_put_(Tensor input, indices, values, bool accumulate=False)
where.any=where_method(Tensor self, Tensor condition, Number|Tensor other)

[index] function method
argsort.dim(Tensor input, int dim=-1, bool descending=False, *, bool stable=False)
argwhere=nonzero(Tensor input)
cummax cummin(Tensor input, int dim, *, Tensor? out=None)
diff(Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None, *, Tensor? out=None)
gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False, Tensor? out=None)
index_put(Tensor input, indices, values, bool accumulate=False)
index_select(Tensor input, int dim, Tensor index, *, Tensor? out=None)
kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False, *, Tensor? out=None)
masked_select(Tensor input, Tensor mask, *, Tensor? out=None)
msort(Tensor input, *, Tensor? out=None)
nonzero(Tensor input, *, bool as_tuple=False, Tensor? out=None)
sort.dim(Tensor input, int dim=-1, bool descending=False, *, bool? stable=False, Tensor? out=None)
take(Tensor input, Tensor index, *, Tensor? out=None)
take_along_dim(Tensor input, Tensor indices, int? dim=None, *, Tensor? out=None)
topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor? out=None)
unique(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) as _unique2
repeat_interleave(Tensor input, repeats=None, int? dim=None, *, output_size=None)

[index] function method in_place
index_add(Tensor input, int dim, Tensor index, Tensor source, *, alpha=1, Tensor? out=None)
index_copy(Tensor input, int dim, Tensor index, Tensor source, *, Tensor? out=None)
index_fill.any(Tensor input, int dim, Tensor index, Number|Tensor value)
masked_fill.any(Tensor input, Tensor mask, Number|Tensor value)
masked_scatter(Tensor input, Tensor mask, Tensor source)
scatter(Tensor input, int dim, Tensor index, src=None, value=None, *, reduce=None, Tensor? out=None)
scatter_add(Tensor input, int dim, Tensor index, Tensor src, *, Tensor? out=None)

[linalg] function
einsum(equation, *operands)
corrcoef trace(Tensor input)
tensordot(a, b, dims=2, *, Tensor? out=None)

[linalg] linalg
LinAlgError
det inv slogdet(Tensor A, *, Tensor? out=None) as linalg_
svdvals(Tensor A, *, driver=None, Tensor? out=None) as linalg_
matmul(Tensor input, Tensor other, *, Tensor? out=None) as linalg_
matrix_norm(Tensor A, ord='fro', dim=(-2,-1), bool keepdim=False, *, dtype=None, Tensor? out=None) as linalg_
norm(Tensor A, ord=None, dim=None, bool keepdim=False, *, dtype=None, Tensor? out=None) as linalg_
solve(Tensor A, Tensor B, *, bool left=True, Tensor? out=None) as linalg_

[linalg] function method
bmm mm(Tensor input, Tensor mat2, *, Tensor? out=None)
cov(Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)
kron(Tensor input, Tensor other, *, Tensor? out=None)
det(Tensor A)
dot(Tensor input, Tensor tensor, *, Tensor? out=None)
ger outer(Tensor input, Tensor vec2, *, Tensor? out=None)
inner matmul(Tensor input, Tensor other, *, Tensor? out=None)
inverse slogdet(Tensor A, *, Tensor? out=None)
logdet(Tensor A)
mv(Tensor input, Tensor vec, *, Tensor? out=None)

[linalg] method
corrcoef trace(Tensor self)

[linalg] function method in_place
addbmm baddbmm(Tensor input, Tensor batch1, Tensor batch2, *, beta=1, alpha=1, Tensor? out=None)
addmm(Tensor input, Tensor mat1, Tensor mat2, *, beta=1, alpha=1, Tensor? out=None)
addmv(Tensor input, Tensor mat, Tensor vec, *, beta=1, alpha=1, Tensor? out=None)

[creation] function
arange empty full normal ones rand randint randn randperm zeros(*args, Tensor? out=None,
    **options)
as_tensor asarray from_dlpack from_numpy get_rng_state is_tensor manual_seed scalar_tensor set_rng_state tensor
Generator default_generator seed initial_seed
eye(n, m=None, *, Tensor? out=None, **options)
linspace(start, end, steps, *, Tensor? out=None, **options)
logspace(start, end, steps, base=10.0, *, Tensor? out=None, **options)
tril_indices triu_indices(int row, int col, int offset=0, *, dtype=None, device=None, layout=None, pin_memory=False)
ByteTensor CharTensor ShortTensor IntTensor LongTensor HalfTensor FloatTensor DoubleTensor BoolTensor BFloat16Tensor
empty_like ones_like zeros_like(Tensor input, *, dtype=None, device=None, requires_grad=False, layout=None,
    pin_memory=False, memory_format=None)
full_like(Tensor input, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False,
    memory_format=None)
is_complex is_floating_point is_inference is_signed(Tensor input)
rand_like randn_like(Tensor input, *, dtype=None, device=None, requires_grad=False, generator=None, layout=None,
    pin_memory=False, memory_format=None)
randint_like(Tensor input, low, high=None, *, dtype=None, device=None, requires_grad=False, generator=None,
    layout=None, pin_memory=False, memory_format=None)

[creation] function method
bernoulli(Tensor input, p=None, *, generator=None, Tensor? out=None)
is_nonzero(Tensor input)
multinomial(Tensor input, num_samples, bool replacement=False, *, generator=None, Tensor? out=None)

[creation] method
__array__ __array_wrap__ __bool__ __complex__ __contains__ __cuda_array_interface__ __deepcopy__ __dlpack__
__dlpack_device__ __float__ __index__ __int__ __iter__ __len__ __reduce_ex__ __reversed__ bernoulli_ bfloat16
byte char cpu cuda double exponential_ float=to_float int=to_int bool=to_bool get_device half
is_pinned item long new_empty new_full new_ones new_tensor new_zeros normal_ numpy
pin_memory short to tolist type=type_name uniform_
random_(Tensor input, low=None, high=None, *, generator=None)
type_as(Tensor input, Tensor other)

[activations] function functional
celu(Tensor input, Number alpha=1.0, inplace=False) as (input, alpha)
threshold(Tensor input, Number threshold, Number value, inplace=False) as (input, threshold, value)
selu(Tensor input, inplace=False)

[activations] function method functional
hardshrink(Tensor input, Number lambd=0.5, *, Tensor? out=None)
prelu(Tensor input, Tensor weight)

[activations] functional
hardsigmoid hardswish mish(Tensor input, inplace=False)
softshrink(Tensor input, Number lambd=0.5)
glu(input, dim=-1)
elu(Tensor input, Number alpha=1.0, inplace=False) as (input, alpha)
gelu(Tensor input, *, approximate='none')
hardtanh(Tensor input, Number min_val=-1.0, Number max_val=1.0, inplace=False) as (input, min_val, max_val)
leaky_relu(Tensor input, Number negative_slope=0.01, inplace=False) as (input, negative_slope)
logsigmoid(Tensor input) as log_sigmoid
relu relu6 silu(Tensor input, inplace=False)
softplus(Tensor input, Number beta=1, Number threshold=20)
softsign tanhshrink

[activations] function method
log_softmax softmax(Tensor input, int dim, dtype=None, *, Tensor? out=None)

[losses] functional
cross_entropy(Tensor input, Tensor target, Tensor? weight=None, size_average=None, int ignore_index=-100, reduce=None,
    reduction='mean', float label_smoothing=0.0) as cross_entropy_loss(input, target, weight, reduction, ignore_index,
    label_smoothing)
kl_div(Tensor input, target, size_average=None, reduce=None, reduction='mean', bool log_target=False)
nll_loss(Tensor input, Tensor target, Tensor? weight=None, size_average=None, int ignore_index=-100, reduce=None,
    reduction='mean') as nll_loss_nd
binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction='mean')
binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction='mean',
    pos_weight=None)
huber_loss(input, target, reduction='mean', delta=1.0, weight=None)
l1_loss mse_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None)
smooth_l1_loss(input, target, size_average=None, reduce=None, reduction='mean', beta=1.0)

[norms] function functional
rms_norm(Tensor input, normalized_shape, Tensor? weight=None, eps=None)
cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08)

[norms] function
cdist(Tensor x1, Tensor x2, float p=2.0, compute_mode=None)

[norms] functional
batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None,
    bool training=False, float momentum=0.1, float eps=1e-05) as batch_norm(input, weight, bias, running_mean,
    running_var, training, momentum, eps)
layer_norm(Tensor input, normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) as layer_norm(input,
    normalized_shape, weight, bias, eps)
normalize(input, p=2.0, dim=1, eps=1e-12, Tensor? out=None)
group_norm(input, num_groups, weight=None, bias=None, eps=1e-05)
instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1,
    eps=1e-05)

[norms] function method
norm(Tensor input, p='fro', int[]? dim=None, bool keepdim=False, dtype=None, *, Tensor? out=None)

[layers] functional
embedding(Tensor input, Tensor weight, int? padding_idx=None, max_norm=None, norm_type=2.0,
    bool scale_grad_by_freq=False, bool sparse=False) as embedding(weight, indices=input, padding_idx,
    scale_grad_by_freq, sparse)
embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean',
    sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None)
linear(Tensor input, Tensor weight, Tensor? bias=None)
one_hot(Tensor tensor, int num_classes=-1) as one_hot(input=tensor)

[layers] function functional
alpha_dropout(Tensor input, p=0.5, bool training=False, inplace=False) as (input, p, train=training)
dropout(Tensor input, p=0.5, bool training=True, inplace=False) as (input, p, train=training)

[layers] functional
dropout1d dropout2d dropout3d(input, p=0.5, training=True, inplace=False)

[conv] function functional
conv1d.any conv2d.any conv3d.any(Tensor input, Tensor weight, Tensor? bias=None, stride=1, padding=0, dilation=1,
    groups=1)
conv_transpose1d conv_transpose2d conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, stride=1,
    padding=0, output_padding=0, groups=1, dilation=1)

[conv] functional
fold(Tensor input, output_size, kernel_size, dilation=1, padding=0, stride=1) as col2im
unfold(Tensor input, kernel_size, dilation=1, padding=0, stride=1) as im2col

[pool] function functional
adaptive_avg_pool1d(Tensor input, output_size)
adaptive_max_pool1d(Tensor input, output_size, return_indices=False)
avg_pool1d(Tensor input, kernel_size, stride=None, padding=0, bool ceil_mode=False, bool count_include_pad=True)
max_pool1d max_pool2d(Tensor input, kernel_size, stride=None, padding=0, dilation=1, bool ceil_mode=False,
    return_indices=False) as (input, kernel_size, stride, padding, dilation, ceil_mode)

[pool] functional
avg_pool2d(Tensor input, kernel_size, stride=None, padding=0, bool ceil_mode=False, bool count_include_pad=True,
    divisor_override=None)
adaptive_avg_pool2d(input, output_size)
adaptive_max_pool2d(input, output_size, return_indices=False)

[pad] function
constant_pad_nd(Tensor input, pad, value=0)

[pad] functional
pad(Tensor input, pad, mode='constant', float? value=None)

[attention] functional
scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, dropout_p=0.0,
    bool is_causal=False, float? scale=None, bool enable_gqa=False)
"""
