"""What PyTorch says of arguments that do not fit: its sentences, each whole, on a line, for ``require`` to fill in."""

# ---- several families

CANNOT_CAST = "result type {} can't be cast to the desired output type {}"
DOES_NOT_BROADCAST = "output with shape {} doesn't match the broadcast shape {}"
NO_KERNEL = "\"{}\" not implemented for '{}'"

# ---- activations

CELU_ZERO = "ZeroDivisionError: alpha cannot be 0 for CELU"
GELU_APPROXIMATE = "approximate argument must be either none or tanh."
GLU_HALVES = "Halving dimension must be even, but dimension {} is size {}"
GLU_SCALAR = "glu does not support scalars because halving size must be even"
HARDTANH_BOOL = "Bool inputs not supported for hardtanh"
HARDTANH_LIMITS = "min_val cannot be greater than max_val"
HARDTANH_UNSIGNED = "cannot do hardtanh on an unsigned type with negative limits"
PRELU_CHANNELS = (
    "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel size = {}."
)
PRELU_DTYPES = "prelu: Type promoting not supported. Got {} and {}"
PRELU_SCALAR = "Not allow zero-dim input tensor."
PRELU_WEIGHT = "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}"
SOFTSHRINK_LAMBDA = "lambda must be in range [0, {:g}] for input dtype {}, but found {:g}"

# ---- dropout

DROPOUT1D_DIMS = "dropout1d: Expected 2D or 3D input, but received a {}D input. Note that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
DROPOUT2D_OF_3D = "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
DROPOUT_DIMS = "{0}: Received a {1}-D input to {0}, which is deprecated and will result in an error in a future release. To retain the behavior and silence this warning, please use dropout instead. Note that {0} exists to provide channel-wise dropout on inputs with {2} spatial dimensions, a channel dimension, and an optional batch dimension (i.e. {3}D or {4}D inputs)."
DROPOUT_PROBABILITY = "dropout probability has to be between 0 and 1, but got {}"
FEATURE_DROPOUT_DIMS = "Feature dropout requires at least 2 dimensions in the input"

# ---- layers

BAG_END = "offsets[-1] can not be greater than input's length {} but got offsets[-1] of {}"
BAG_FIRST = (
    "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {}"
)
BAG_FIXED = "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, found offsets of type {}"
BAG_INDEX = "Index {} of input takes value {} which is not in the valid range [0, {})"
BAG_INPUT = "input has to be 1D or 2D Tensor, but got Tensor of dimension {}"
BAG_LAST = "include_last_offset: number of offset should be at least 1"
BAG_MAX_INDEX = "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {}"
BAG_MAX_SCALED = "max mode does not support scaling the gradient by the frequency"
BAG_MAX_SPARSE = "max mode does not support sparse weights"
BAG_MODE = "mode has to be one of sum, mean or max"
BAG_OFFSETS = "offsets has to be a 1D Tensor{}"
BAG_ORDER = "Expected i < index_size to be true, but got false."
BAG_PADDING = "padding_idx must be within the number of embeddings, -{} through {}, but got {}"
BAG_ROWS = "weight has to be a 2D Tensor, but got Tensor of dimension {}"
BAG_SPARSE = "embedding_bag has no sparse gradients: leave sparse out"
BAG_STEP = "step must be nonzero"
BAG_WEIGHTS_DTYPE = "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type {} does not equal {} (while checking arguments for embedding_bag)"
BAG_WEIGHTS_MODE = "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{}'). Please open a feature request on GitHub."
BAG_WEIGHTS_SHAPE = "embedding_bag: If per_sample_weights (torch.Size({})) is not None, then it must have the same shape as the input (torch.Size({}))"
EMBEDDING_OPTIONS = "embedding has no max_norm, scale_grad_by_freq nor sparse gradients: leave them out"
EMBEDDING_PADDING = "Padding_idx must be within num_embeddings"
EMBEDDING_WEIGHT = "'weight' must be 2-D"
KINDS = "Expected tensor for argument #1 '{}' to have one of the following scalar types: {}; but got {} instead (while checking arguments for {})"
ONE_HOT_DTYPE = "one_hot is only applicable to index tensor of type LongTensor."
ONE_HOT_EMPTY = "Can not infer total number of classes from empty tensor."
ONE_HOT_LARGE = "Class values must be smaller than num_classes."
ONE_HOT_NEGATIVE = "Class values must be non-negative."

# ---- losses

BATCH_SIZES = "Expected input batch_size ({}) to match target batch_size ({})."
BCE_DTYPES = "Found dtype {} but expected {}"
BCE_RANGE = "all elements of {} should be between 0 and 1"
BCE_SIZES = "Using a target size (torch.Size({})) that is different to the input size (torch.Size({})) is deprecated. Please ensure they have the same size."
BETA_NEGATIVE = "smooth_l1_loss does not support negative values for beta."
CLASSES_0D = "Expected 1 or more dimensions (got 0)"
CLASSES_1D = "For 1D input, 1D target must have size 1, but got target size: {}"
CLASSES_DIMS = "0D or 1D target tensor expected, multi-target not supported"
CLASSES_DTYPE = "expected target dtype to be Long or Byte, but got {}"
CLASSES_SIZES = "Expected target size {}, got {}"
CLASSES_SPATIAL = "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}"
CLASSES_SPATIAL_SIZES = "size mismatch (got input: {} , target: {}"
CLASS_WEIGHTS = (
    "weight tensor should be defined either for all {} classes or no classes but got weight tensor of shape: {}"
)
DELTA_NOT_POSITIVE = "huber_loss does not support non-positive values for delta."
KL_DIV_INTEGERS = "kl_div: Integral inputs not supported."
KL_DIV_MEAN = "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in the next major release."
LABEL_SMOOTHING = "label_smoothing must be between 0.0 and 1.0. Got: {:g}"
LOGITS_SIZES = "Target size (torch.Size({})) must be the same as input size (torch.Size({}))"
LOSS_SIZES = "Using a target size (torch.Size({})) that is different to the input size (torch.Size({})). This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
NOT_DIFFERENTIABLE = (
    "The function '{}' is not differentiable with respect to argument '{}'. This input cannot have requires_grad True."
)
PROBABILITIES_DTYPE = "Expected floating point type for target with class probabilities, got {}"
PROBABILITIES_IGNORE = "ignore_index is not supported for floating point target"
PROBABILITIES_WEIGHTS = "cross_entropy: weight tensor should be defined either for all {} classes or no classes but got weight tensor of shape: {}"
REDUCTION = "{} is not a valid value for reduction"
REDUCTION_IN_OLD_WORDS = "size_average and reduce args will be deprecated, please use reduction='{}' instead."
SCALAR_TYPE = "expected scalar type {} but found {}"
WEIGHTS_SIZE = "Weights and input must have the same size."

# ---- norms

COMMON_DTYPE = "expected common dtype to be floating point, yet common dtype is {}"
GROUP_NORM_CHANNELS = (
    "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={}"
)
GROUP_NORM_DIMS = "Expected at least 2 dimensions for input tensor but received {}"
GROUP_NORM_PARAMETER = "Expected {0} to be a vector of size equal to the number of channels in input, but got {0} of shape {1} and input of shape {2}"
MATRIX_NORM_ORDER = "linalg.matrix_norm: Order {} not supported."
NORM_EPS = "batch_norm eps must be positive during training, but got {}"
NORM_ONE_PLACE = "Expected more than 1 spatial element when training, got input size torch.Size({})"
NORM_ONE_VALUE = "Expected more than 1 value per channel when training, got input size torch.Size({})"
NORM_PARAMETER_DTYPE = "mixed dtype (CPU): expect parameter to have scalar type of Float"
NORM_PARAMETER_DTYPES = "mixed dtype (CPU): all inputs must share same datatype."
NORM_PARAMETER_SIZE = "{} should contain {} elements not {}"
NORM_SLICES = "Given normalized_shape={}, expected input with shape [*{}], but got input of size{}"
NORM_SLICES_EMPTY = "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
NORM_SLICES_INT = "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int"
NORM_SLICES_PARAMETER = (
    "Expected {0} to be of same shape as normalized_shape, but got {0} of shape {1} and normalized_shape = {2}"
)
RUNNING_BOTH = "Expected running_mean and running_var to be defined when use_input_stats is false"
RUNNING_MISSING = "{} must be defined in evaluation mode"

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
INDEX_ADD_SHAPES = "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {} source.shape = {}"
INDEX_COPY_OUT_OF_BOUNDS = "index_copy_(): " + OUT_OF_BOUNDS
INDEX_COPY_DTYPES = "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}"
INDEX_COPY_SHAPES = "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at dimension {} and source slice shape: {} at dimension {}."
INDEX_COPY_COUNT = "index_copy_(): Number of indices ({}) should be equal to source.size(dim) ({})"
VALUE_DIMENSIONS = "{}_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s)."
REPEATS_NO_VECTOR = "repeat_interleave only accept 1D vector as repeat"
REPEATS_SIZE = (
    "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({}) = {}"
)
NEGATIVE_REPEATS = "repeats can not be negative"
INDEX_DIMENSIONS = "Index tensor must have the same number of dimensions as {} tensor"
GATHER_SPARSE = "gather has no sparse gradients: leave sparse_grad out"
GATHER_SHAPE = (
    "Size does not match at dimension {} expected index {} to be no larger than self {} apart from dimension {}"
)
SCATTER_SHAPE = "Expected index {} to be no larger than self {} apart from dimension {}"
SCATTER_SHAPES = SCATTER_SHAPE + " and to be no larger size than src {}"
SCATTER_DTYPE = "scatter(): Expected self.dtype to be equal to src.dtype"
SCATTER_REDUCE = "reduce argument must be either add or multiply."
TAKE_ALONG_DTYPE = "torch.take_along_dim(): dtype of indices should be Long but got {}"
TAKE_ALONG_DIMENSIONS = "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and {} dimensions for indices"
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
SPLIT_SIZES_SUM = "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {}), but got split_sizes={}"
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
STRIDED_STORAGE = "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a storage size of {} are out of bounds for storage of size {}"
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

# ---- reductions

REDUCE_DIM = "{}: Expected reduction dim to be specified for input.numel() == 0."
REDUCE_DIM_HINT = " Specify the reduction dim with the 'dim' argument."
ARGMAX_BOOL = "{}: does not support bool input"
AMINMAX_EMPTY = "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
ONLY_FLOATS = "{} only support floating point and complex dtypes"
DIST_DTYPE = "norm(): input dtype should be either floating point or complex"
BINCOUNT_LENGTH = "minlength should be >= 0"
BINCOUNT_INPUT = "bincount only supports 1-d non-negative integral inputs."
BINCOUNT_WEIGHTS = "weights should be 1-d and have the same length as input"
BINCOUNT_GRADIENT = "bincount has no gradient: detach() the weights"

# ---- creation

ENDS_DIMENSIONS = "{} only supports 0-dimensional start and end tensors, but got start with {} dimension(s) and end with {} dimension(s)."
EYE_SIZE = "{} must be greater or equal to 0, got {}"
NEGATIVE_STEPS = "number of steps must be non-negative"
TRIANGLE_SIZE = "{} must be non-negative, got{}"

# ---- products, contractions, linear systems

NO_MATRIX = "{} must be a matrix"
NO_MATRIX_GOT = "{} must be a matrix, got {}-D tensor"
NO_BATCH = "{} must be a 3D tensor"
MATRICES = "mat1 and mat2 shapes cannot be multiplied ({} and {})"
MATRIX_DTYPES = "expected m1 and m2 to have the same dtype, but got: {} != {}"
MAT2_DTYPE = "{} and mat2 must have the same dtype, but got {} and {}"
BATCHES = "Expected size for first two dimensions of batch2 tensor to be: {} but got: {}."
BATCH_COUNTS = "batch1 and batch2 must have same number of batches, got {} and {}"
BMM_SIZES = "Incompatible matrix sizes for bmm ({} and {})"
SCALAR_TYPES = "expected scalar type {} but found {}"
MATRIX_AND_VECTOR = "vector + matrix @ vector expected, got 1, {}, {}"
VECTOR_SIZE = "size mismatch, got input ({}), mat ({}), vec ({})"
ADDMV_DTYPES = "addmv input tensors must have the same dtype, but got {}, {}, and {}"
VECTORS = "1D tensors expected, but got {}D and {}D tensors"
DOT_DTYPES = "dot : expected both vectors to have same dtype, but found {} and {}"
DOT_SIZES = "inconsistent tensor size, expected tensor [{0}] and src [{1}] to have the same number of elements, but got {0} and {1} elements respectively"
AT_LEAST_1D = "both arguments to {} need to be at least 1D, but they are {}D and {}D"
OUTER = "outer: Expected 1-D argument {}, but got {}-D"
INNER_SHAPES = "inner() the last dimension must match on both input tensors but got shapes {} and {}"
INNER_DTYPES = "both inputs should have same dtype"
TENSORDOT_NEGATIVE = "tensordot expects dims >= 0, but got dims={}"
TENSORDOT_DIMS = "tensordot expects dims < ndim_a or ndim_b, but got dims={}"
TENSORDOT_LENGTHS = "both dimension lists should have same length"
TENSORDOT_SIZES = (
    "contracted dimensions need to match, but first has size {} in dim {} and second has size {} in dim {}"
)
EINSUM_NOTHING = "einsum(): must provide at least one operand"
EINSUM_OPERANDS = "einsum(): {} operands were provided than specified in the equation"
EINSUM_DOTS = "einsum(): found '.' for {} for which an ellipsis was already found"
EINSUM_DOT = "einsum(): found '.' for {} that is not part of any ellipsis"
EINSUM_LETTER = "einsum(): invalid subscript given at index {} in the equation string, subscripts must be in [a-zA-Z]"
EINSUM_MANY = (
    "einsum(): the number of subscripts in the equation ({}) is more than the number of dimensions ({}) for operand {}"
)
EINSUM_RANK = "einsum(): the number of subscripts in the equation ({}) does not match the number of dimensions ({}) for operand {} and no ellipsis was given"
EINSUM_TWICE = "einsum(): output subscript {} appears more than once in the output"
EINSUM_UNKNOWN = "einsum(): output subscript {} does not appear in the equation for any input operand"
EINSUM_REPEATED = "einsum(): subscript {} is repeated for operand {} but the sizes don't match, {} != {}"
EINSUM_SIZES = "einsum(): {} has size {} for operand {} which does not broadcast with previously seen size {}"
EINSUM_ELLIPSIS = "dimension covered by ellipsis"
MATRICES_NEEDED = "{}: The input tensor A must have at least 2 dimensions."
SQUARE_NEEDED = "{}: A must be batches of square matrices, but they are {} by {} matrices"
FLOATING_NEEDED = "{}: Expected a floating point or complex tensor as input. Got {}"
LOW_PRECISION = "{}: Low precision dtypes not supported. Got {}"
SOLVE_DTYPES = "linalg.solve: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead"
SOLVE_SHAPES = "linalg.solve: Incompatible shapes of A and B for the equation {} = B ({}x{} and {}x{})"
SOLVE_VECTORS = "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
TRACE = "trace: expected a matrix, but got tensor with dim {}"
NORM_DIMS = "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D."
NORM_SAME_DIMS = "linalg.matrix_norm: dims must be different. Got ({}, {})"
NORM_ORDER = "linalg.matrix_norm: Order {} not supported."

VARIABLES = "{}(): expected input to have two or fewer dimensions but got an input with {} dimensions"
COV_BOOL = "cov(): bool dtype is not supported for input"
COV_WEIGHTS = "cov(): expected {0} to have one or fewer dimensions but got {0} with {1} dimensions"
COV_WEIGHTS_DTYPE = "cov(): expected {0} to have {1} dtype but got {0} with {2} dtype"
COV_WEIGHTS_NEGATIVE = "cov(): {} cannot be negative"
COV_WEIGHTS_SIZE = "cov(): expected {} to have the same numel as there are observations in the input but got {} != {}"
COV_WEIGHTS_ZERO = "cov(): weights sum to zero, can't be normalized"

# ---- convolutions

NUMBERS = "{} must be tuple of ints, not {}"
CONV_DIMS = "Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {}"
CONV_BIAS_DTYPE = "Input type ({}) and bias type ({}) should be the same"
CONV_WEIGHT_DTYPE = "Input type ({}) and weight type ({}) should be the same or input should be a MKLDNN tensor and weight is a dense tensor"
CONV_BIAS = (
    "Given {}weight of size {}, expected bias to be 1-dimensional with {} elements, but got bias of size {} instead"
)
CONV_CHANNELS = "Given groups={}, weight of size {}, expected input{} to have {} channels, but got {} channels instead"
CONV_RANKS = (
    "Expected {0}-dimensional input for {0}-dimensional weight {1}, but got {2}-dimensional input of size {3} instead"
)
CONV_KERNEL = "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual input size"
CONV_EMPTY = "Only zero batch or zero channel inputs are supported, but got input shape: {}"
PADDING_WORD = "Invalid padding string: '{}'"
NO_PADDING_WORD = "conv_transpose{}d(): argument 'padding' must be tuple of ints, not str"
SAME_STRIDED = "padding='same' is not supported for strided convolutions"
WEIGHT_DIMS = "weight should have at least three dimensions"
ONE_A_DIM = (
    "expected {} to be a single integer value or a list of {} values to match the convolution dimensions, but got {}={}"
)
NEGATIVE = "negative {} is not supported"
NOT_POSITIVE = "non-positive {} is not supported"
DILATION = "dilation should be greater than zero"
GROUPS = "Given groups={0}, expected weight to be {1} {0} at dimension 0, but got weight of size {2} instead"
TRANSPOSED_CHANNELS = (
    "Given transposed=1, weight of size {}, expected input{} to have {} channels, but got {} channels instead"
)
TRANSPOSED_SIZE = (
    "Given input size per channel: ({}). Calculated output size per channel: ({}). Output size is too small"
)
OUTPUT_PADDING = "output padding must be smaller than either stride or dilation, but got {}"
UNFOLD_INPUT = "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}"
UNFOLD_BLOCKS = "Given input with spatial size {}, kernel_size={}, dilation={}, padding={}, calculated shape of the array of sliding blocks as {}, but its components must be at least one."
FOLD_INPUT = "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {}"
FOLD_CHANNELS = "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={} and kernel_size={}."
FOLD_BLOCKS = "Given output_size={}, kernel_size={}, dilation={}, padding={}, stride={}, expected size of input's dimension 2 to match the calculated number of sliding blocks {} * {} = {}, but got input.size(2)={}."
BLOCK_NUMBERS = "It is expected {} equals to 2, but got size {}"
BLOCK_PADDING = "padding should be non-negative, but got pad_height: {} pad_width: {}"
BLOCK_POSITIVE = "{} should be greater than zero, but got {}_height: {} {}_width: {}"

# ---- pooling

ARGUMENT = "{}(): argument '{}' (position {})"
POOL_DIMS = "non-empty 3D or 4D (batch mode) tensor expected for input"
POOL_INPUT = "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{}"
POOL_PAIR = "{}: {} must {} {}a single int, or a tuple of two ints"
POOL_POSITIVE = "{} should be greater than zero, but got {}H: {} {}W: {}"
POOL_SIZE = "Given input size: ({}x{}x{}). Calculated output size: ({}x{}x{}). Output size is too small"
STRIDE_ZERO = "stride should not be zero"
PAD_NEGATIVE = "pad must be non-negative, but got pad: {}"
PAD_HALF = "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation={}"
DIVISOR = "divisor must be not zero"
ADAPTIVE_DIMS = "Input dimension should be at least {}"
ADAPTIVE_PAIR = "{}: output_size must be 2"
ADAPTIVE_MAX_PAIR = "{}(): internal error: output_size.size() must be 2"
ADAPTIVE_INPUT = "{}(): Expected 3D or 4D tensor, but got {}"
ADAPTIVE_MAX_INPUT = "{}(): Expected 3D or 4D tensor, but got: {}"
ADAPTIVE_NEGATIVE = "{}: elements of output_size must be greater than or equal to 0 but received {{{}}}"
ADAPTIVE_EMPTY = "{}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension {} being empty"
NEGATIVE_DIMENSION = "Trying to create tensor with negative dimension {}: {}"
ONE_INT = "{}() argument '{}' should contain one int (got {})"
LINES = (
    "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {})"
)
MAX_POOL1D_INPUT = (
    "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{}"
)
MAX_POOL1D_ONE = "{}() {} must be an int, list of ints or tuple of ints of size 1 but got size {}"
MAX_POOL1D_POSITIVE = "max_pool1d() {} must be greater than zero, but got {}"
MAX_POOL1D_PADDING = "max_pool1d() padding must be non-negative, but got {}"
MAX_POOL1D_HALF = "max_pool1d() padding should be at most half of kernel size, but got padding={} and kernel_size={}"
MAX_POOL1D_SIZE = "max_pool1d() Invalid computed output size: {}"

# ---- padding

PAD_ODD = "Length of pad must be even but instead it equals {}"
PAD_ODD_MODE = "Padding length must be divisible by 2"
PAD_LENGTH = "Padding length should be less than or equal to two times the input dimension but got padding length {} and input of dimension {}"
PAD_NARROW = "narrow(): length must be non-negative."
PAD_KIND = "pad(): argument 'pad' (position 2) must be tuple of ints, not {}"
PAD_ELEMENT = "pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type {} at pos {}"
PAD_VALUE = 'Padding mode "{}" doesn\'t take in value argument'
PAD_MODE = "Unrecognised padding mode {}"
PAD_SUPPORTED = """Padding size {} is not supported for {}D input tensor.
Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""
PAD_REFLECT = "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding ({}, {}) at dimension {} of input {}"
PAD_CIRCULAR = "Padding value causes wrapping around more than once."
PAD_EMPTY = "Negative padding value is resulting in an empty dimension"
PAD_SMALL = "input ({0}: {1}) is too small. Calculated output {0}: {2}"

# ---- attention

ATTENTION_DTYPES = "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} instead."
ATTENTION_DIMS = "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and value.dim: {} instead."
ATTENTION_FLOAT = "expected scalar type Float but found {}"
ATTENTION_MASK = "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  query.dtype: {} instead."
ATTENTION_GQA = "enable_gqa is not there: repeat key and value for each query with repeat_interleave"
ATTENTION_DROPOUT = "dropout probability has to be between 0 and 1, but got {:g}"
ATTENTION_CAUSAL = "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
