"""What PyTorch says of arguments that do not fit: its sentences, whole, for ``require`` to fill in."""

DROPOUT_PROBABILITY = "dropout probability has to be between 0 and 1, but got {}"

# ---- indices, masks, order

INDEX_KIND = "{}(): Expected dtype int32/int64 for index"
INDEX_KIND_VECTOR = "{}(): Expected dtype int32 or int64 for index"
INDEX_KIND_WRITTEN = "{}_(): Expected dtype int32/int64 for index"
INDEX_TYPE = "{}(): argument 'index' must be Tensor, not {}"
INDICES_TYPE = "{}(): argument 'indices' (position 1) must be tuple of Tensors, not {}"
VALUES_TYPE = "{}(): argument 'values' (position 2) must be Tensor, not {}"
TOO_MANY_INDICES = "too many indices for tensor of dimension {} (got {})"
INDEX_PUT_DTYPES = (
    "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source."
)
INDEX_NO_VECTOR = "{}(): Index is supposed to be a vector"
INDEX_OUTSIDE = "index out of range in self"
INDEX_TO_SCALAR = "index_select(): Index to scalar can have only 1 value, got {} value(s)"
OUT_OF_BOUNDS = "index {} is out of bounds for dimension {} with size {}"
INDEX_ADD_DTYPES = "index_add_(): self ({}) and source ({}) must have the same scalar type"
INDEX_ADD_COUNT = "index_add_(): Number of indices ({}) should be equal to source.size(dim): ({}), for dim: {}"
INDEX_ADD_SHAPES = "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {} source.shape = {}"  # noqa: E501
INDEX_COPY_OUT_OF_BOUNDS = "index_copy_(): " + OUT_OF_BOUNDS
INDEX_COPY_DTYPES = "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}"
INDEX_COPY_SHAPES = "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at dimension {} and source slice shape: {} at dimension {}."  # noqa: E501
INDEX_COPY_COUNT = "index_copy_(): Number of indices ({}) should be equal to source.size(dim) ({})"
VALUE_DIMENSIONS = "{}_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s)."
REPEATS_NO_VECTOR = "repeat_interleave only accept 1D vector as repeat"
REPEATS_SIZE = (
    "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({}) = {}"
)
NEGATIVE_REPEATS = "repeats can not be negative"
INDEX_DIMENSIONS = "Index tensor must have the same number of dimensions as {} tensor"
GATHER_SHAPE = (
    "Size does not match at dimension {} expected index {} to be no larger than self {} apart from dimension {}"
)
SCATTER_SHAPE = "Expected index {} to be no larger than self {} apart from dimension {}"
SCATTER_SHAPES = SCATTER_SHAPE + " and to be no larger size than src {}"
SCATTER_DTYPE = "scatter(): Expected self.dtype to be equal to src.dtype"
SCATTER_REDUCE = "reduce argument must be either add or multiply."
TAKE_ALONG_DTYPE = "torch.take_along_dim(): dtype of indices should be Long but got {}"
TAKE_ALONG_DIMENSIONS = "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and {} dimensions for indices"  # noqa: E501
DIM_OF_SCALAR = "Dimension specified as {} but tensor has no dimensions"
TAKE_DTYPE = "take(): Expected a long tensor for index, but got {}"
TAKE_OUT_OF_RANGE = "out of range: tried to access index {} on a tensor of {} elements."
MASKED_FILL_DTYPE = "masked_fill_ only supports boolean masks, but got mask with dtype {}"
MASKED_SELECT_DTYPE = "masked_select: expected BoolTensor for mask"
MASKED_SCATTER_DTYPE = "masked_scatter_ only supports boolean masks, but got mask with dtype {}"
MASKED_SCATTER_DTYPES = "masked_scatter_: expected self and source to have same dtypes but got {} and {}"
MASK_DEVICE = "expected self and mask to be on the same device, but got mask on {} and self on {}"
TOPK_RANGE = "selected index k out of range"
TOPK_BOOL = "topk does not support bool dtypes on CPU"
REDUCED_SIZE = "{}: Expected reduction dim {} to have non-zero size."
KTHVALUE_RANGE = "kthvalue(): selected number k out of range for dimension {}"
DIFF_SCALAR = "diff expects input to be at least one-dimensional"
DIFF_DIMENSIONS = "diff expects prepend or append to be the same dimension as input"
DIFF_ORDER = "order must be non-negative but got {}"
NO_VECTOR = "Expect a 1D vector, but got shape {}"
COMBINATIONS_COUNT = "Expect a non-negative number, but got {}"
ISIN_BOOL = "Unsupported input type encountered for isin(): Bool"

# ---- shapes

SELECT_SCALAR = "select() cannot be applied to a 0-dim tensor."
SELECT_RANGE = "select(): index {} out of range for tensor of size {} at dimension {}"
NARROW_SCALAR = "narrow() cannot be applied to a 0-dim tensor."
NARROW_NEGATIVE = "narrow(): length must be non-negative."
NARROW_TENSOR = "start must be an 0-dim integral Tensor."
NARROW_START = "start out of range (expected to be in range of [{}, {}], but got {})"
NARROW_END = "start ({}) + length ({}) exceeds dimension size ({})."
SPLIT_SCALAR = "split expects at least a 1-dimensional tensor"
SPLIT_NEGATIVE = "split expects split_size be non-negative, but got split_size={}"
SPLIT_BY_ZERO = "split_size can only be 0 if dimension size is 0, but got dimension size of {}"
SPLIT_SIZES_NEGATIVE = "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={}"
SPLIT_SIZES_SUM = "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {}), but got split_sizes={}"  # noqa: E501
CHUNK_SCALAR = "chunk expects at least a 1-dimensional tensor"
CHUNK_COUNT = "chunk expects `chunks` to be greater than 0, got: {}"
TENSOR_SPLIT_SCALAR = "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
TENSOR_SPLIT_COUNT = "number of sections must be larger than 0, got {}"
DIAGONAL_DIMS = "diagonal dimensions cannot be identical {}, {}"
DIAG_DIMENSIONS = "diag(): Supports 1D or 2D tensors. Got {}D"
UNFOLD_SIZE = "maximum size for tensor at dimension {} is {} but size is {}"
UNFOLD_STEP = "step is {} but must be > 0"
STRIDED_INPUT = "as_strided of a tensor that is not contiguous is not there: call .contiguous() first"
STRIDED_NEGATIVE = "as_strided: Negative strides are not supported at the moment, got strides: {}"
STRIDED_STORAGE = "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a storage size of {} are out of bounds for storage of size {}"  # noqa: E501
STRIDED_GRADIENT = "as_strided outside of the elements of a tensor that requires grad: call it on the base"
ROLL_SHIFTS = "`shifts` required"
ROLL_LENGTHS = "shifts and dimensions must align. shifts: {}, dims:{}"
ROTATION_DIMS = "expected total rotation dims == 2, but got dims = {}"
ROTATION_INPUT = "expected total dims >= 2, but got total dims = {}"
ROTATION_SAME = "expected rotation dims to be different, but got dim0 = {} and dim1 = {}"
TRIANGLE_INPUT = "{}: input tensor must have at least 2 dimensions"
GRID_DIMENSIONS = "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {!r}"
GRID_DTYPES = "torch.meshgrid expects all tensors to have the same dtype"
GRID_INDEXING = 'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {}'
