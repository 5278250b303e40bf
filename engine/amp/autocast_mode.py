"""``autocast`` runs each operation in the dtype that suits it.

The tables say which operations are cast.  From the first region of a program on these look at what is cast in their
thread; a program without autocast pays nothing.
"""

import functools
import inspect
import threading
from collections.abc import Iterable, Mapping
from contextlib import ContextDecorator
from types import FunctionType
from weakref import ref

from ..arrays import devices, dispatch, dtypes
from ..arrays.running import switched
from ..arrays.threads import new_lock
from ..arrays.warn import warn
from ..autograd.interrupted import watch
from ..autograd.modes import enable_grad
from ..core.graph import AccumulateGrad
from ..core.linear import cast
from ..core.tensor import Tensor
from ..nn import functional, recurrent
from ..ops import linalg as products
from ..surface import doors
from . import messages

# ---- which operations are cast to what; "linalg_inv" is linalg.inv

HOST = {
    "lower": """
        addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linalg_vecdot
        linear matmul mm prelu scaled_dot_product_attention""",
    "float32": """
        adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits
        cdist cholesky cholesky_inverse cholesky_solve cosine_embedding_loss cross_entropy ctc_loss
        hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex linalg_cond
        linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_inv linalg_inv_ex linalg_lstsq
        linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve
        lu_solve margin_ranking_loss max_pool3d mse_loss multi_margin_loss multilabel_margin_loss nanquantile
        nll_loss pinverse poisson_nll_loss prod qr quantile smooth_l1_loss soft_margin_loss svd trace
        triangular_solve triplet_margin_loss""",
    "widest": "cat index_copy stack",
    "float32_edges": "pad",
    "low_arguments": "lstm_layers",
    "as_given": "bilinear",  # one operation in PyTorch, a composition here
}
DEVICE = {
    "lower": """
        addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_transpose1d conv_transpose2d
        conv_transpose3d einsum linalg_multi_dot linalg_vecdot linear matmul mm mv prelu
        scaled_dot_product_attention""",
    "float32": """
        acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity cross_entropy dist
        erfinv exp expm1 group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm log log10 log1p log2
        logsumexp margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss normalize pdist
        poisson_nll_loss pow reciprocal renorm rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softplus tan
        triplet_margin_loss""",
    "float32_result": "cumprod cumsum linalg_matrix_norm linalg_norm linalg_vector_norm log_softmax norm prod softmax "
    "softmin sum",
    "widest": "addcdiv addcmul atan2 bilinear cross dot grid_sample index_put scatter_add tensordot",
    "low_arguments": "lstm_layers rnn_layers",
    "refused": "binary_cross_entropy",
}
TABLES = {"cpu": HOST, "cuda": DEVICE, "sim": DEVICE}
POLICY = {kind: {name: p for p, names in t.items() for name in names.split()} for kind, t in TABLES.items()}
OPERATOR_METHODS = {"__matmul__": "matmul", "__rmatmul__": "matmul", "__pow__": "pow", "__rpow__": "pow"}


class AutocastState(threading.local):
    """The autocast regions of this thread."""

    def __init__(self):
        self.enabled = dict.fromkeys(TABLES, False)
        self.dtype = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16, "sim": dtypes.float16}
        self.active = ()  # the kinds of devices for which it is enabled
        self.cache_enabled = True
        self.nesting = 0
        self.cache = {}  # (id of a weight, dtype) -> (the weight, weakly; its cast)


state = AutocastState()
watch(state)
recurrent.casts = lambda: any(state.enabled.values())

# ---- casting


def eligible(t, kind):
    """Tell whether autocast applies to a tensor: floating, but not float64, and on that kind of device."""
    x = t.array
    return dtypes.of[x.dtype].is_floating_point and x.dtype.itemsize < 8 and t.device.type == kind


def cast_arg(value, kind, dtype):
    """An argument with its tensors cast."""
    if isinstance(value, Tensor):
        return to_dtype(value, kind, dtype) if value.dtype is not dtype and eligible(value, kind) else value
    if type(value) in (list, tuple):
        return type(value)([cast_arg(v, kind, dtype) for v in value])
    return value


def to_dtype(t, kind, dtype):
    """The cast of a tensor; that of a weight to the region's dtype is made once."""
    weight = type(t.node) is AccumulateGrad and t._base is None and t.dtype is dtypes.float32
    if not (weight and state.cache_enabled and dtype is state.dtype[kind]):
        return cast(t, dtype.np)
    key = id(t), dtype
    known = state.cache.get(key)
    if known is None or known[0]() is not t:
        with enable_grad():
            known = state.cache[key] = ref(t), cast(t, dtype.np)
    return known[1]


def nested_tensors(values):
    for v in values:
        if isinstance(v, Tensor):
            yield v
        elif type(v) in (list, tuple):
            yield from nested_tensors(v)


def all_to(args, kwargs, kind, dtype):
    return tuple([cast_arg(a, kind, dtype) for a in args]), {k: cast_arg(v, kind, dtype) for k, v in kwargs.items()}


def float32_edges(function, args, kwargs, kind):
    """Padding that repeats elements."""
    mode = kwargs.get("mode", args[2] if len(args) > 2 else "constant")
    return all_to(args, kwargs, kind, dtypes.float32) if mode in ("reflect", "replicate") else (args, kwargs)


def float32_result(function, args, kwargs, kind):
    """Asks for a result in float32, unless the program asked for a dtype."""
    place = [*inspect.signature(function).parameters].index("dtype")
    given = len(args) > place or kwargs.get("dtype") is not None
    first = next(nested_tensors((*args, *kwargs.values())), None)
    if given or first is None or not eligible(first, kind):
        return args, kwargs
    return args, {**kwargs, "dtype": dtypes.float32}


def widest(function, args, kwargs, kind):
    """Casts to float32 if that is among the arguments."""
    common = low = state.dtype[kind]
    for t in nested_tensors((*args, *kwargs.values())):
        if eligible(t, kind):
            if dtypes.float32 in (common, t.dtype):
                common = dtypes.float32
            elif t.dtype is not low:
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return all_to(args, kwargs, kind, common)


def refused(function, args, kwargs, kind):
    raise RuntimeError(messages.BCE_UNSAFE)


POLICIES = {
    "lower": lambda function, args, kwargs, kind: all_to(args, kwargs, kind, state.dtype[kind]),
    "low_arguments": lambda function, args, kwargs, kind: all_to(args, kwargs, kind, state.dtype[kind]),
    "float32": lambda function, args, kwargs, kind: all_to(args, kwargs, kind, dtypes.float32),
    "as_given": lambda function, args, kwargs, kind: (args, kwargs),
    **{policy.__name__: policy for policy in (float32_edges, float32_result, widest, refused)},
}


def casting(name):
    """Return a function that calls an operation with its arguments cast, where autocast is on.

    What that calls is not cast again, but for compositions of which only the arguments are cast: ``low_arguments``.
    """
    policy = {kind: POLICIES[table[name]] for kind, table in POLICY.items() if name in table}

    def cast(function, args, kwargs):
        active, applied = state.active, False
        for kind in active:
            if kind in policy:
                applied = applied or policy[kind] is not POLICIES["low_arguments"]
                args, kwargs = policy[kind](function, args, kwargs, kind)
        if not applied:
            return function(*args, **kwargs)
        state.active = ()
        try:
            return function(*args, **kwargs)
        finally:
            state.active = active

    return cast


LOOKS = """
def make({free}):
    def looks(*args, **kwargs):
        state = "state"
        cast = "cast"
        plain = "plain"
        return cast(plain, args, kwargs) if state.active else plain(*args, **kwargs)
        {free}
"""


def looking(name, plain, free=()):
    """The code of ``plain``, a function with these free variables, that looks at what is cast in its thread."""
    code = compile(LOOKS.format(free=", ".join(free)), doors.DOOR, "exec")
    values = {"state": state, "cast": casting(name), "plain": plain}
    for _ in range(2):
        code = next(c for c in code.co_consts if inspect.iscode(c))
    return code.replace(co_consts=tuple(values.get(c, c) for c in code.co_consts))


def looking_form(name, plain):
    """A function that is ``plain`` but where autocast is on."""
    if plain.__code__.co_name == "looks":
        return plain
    return functools.wraps(plain)(FunctionType(looking(name, plain), globals()))


def divert(name, function):
    """Make a function cast where autocast is on; its code changes, as a program may hold the function already."""
    if function.__code__.co_name == "looks":  # it does: an interrupt ended the first attempt
        return
    plain = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    functools.update_wrapper(plain, function).__kwdefaults__ = function.__kwdefaults__
    del plain.__wrapped__
    function.__wrapped__ = plain
    function.__code__ = looking(name, plain, function.__code__.co_freevars)


install_lock = new_lock()
installed = False


def install():
    """Let the operations that are cast look at what is cast in their thread: public functions, methods, operators."""
    global installed
    with install_lock:
        if installed:
            return
        public = doors.OFFERED
        linalg = {f"linalg_{n}": f for n, f in public["linalg"].items()}
        places = (public["function"], public["functional"], vars(functional), linalg)
        for name in {name for table in POLICY.values() for name in table}:
            for function in {id(f): f for place in places if isinstance(f := place.get(name), FunctionType)}.values():
                divert(name, function)
            for place in (Tensor, recurrent, products):  # operations of ops.linalg are made of its products
                if isinstance(function := getattr(place, name, None), FunctionType):
                    setattr(place, name, looking_form(name, function))
        for operator, name in OPERATOR_METHODS.items():
            setattr(Tensor, operator, looking_form(name, vars(Tensor)[operator]))
        installed = True


# ---- the state of this thread


def device_kind(device_type):
    """The kind of device that a string names.  RuntimeError for those for which there is no autocast."""
    kind = devices.device(device_type).type
    if kind not in TABLES:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return kind


def is_autocast_available(device_type):
    """Tell whether there is autocast for a kind of device."""
    return devices.device(device_type).type in TABLES


def is_autocast_enabled(device_type="cuda"):
    """Tell whether operations on a kind of device are cast."""
    return state.enabled[device_kind(device_type)]


def set_autocast_enabled(device_type, enabled=None):
    """Cast operations on a kind of device, or do not: ``autocast`` is the way to do so in a block."""
    device_type, enabled = ("cuda", device_type) if enabled is None else (device_type, enabled)
    if enabled and not installed:
        install()
    vars(state).update(enabling(device_kind(device_type), bool(enabled)))


def enabling(kind, enabled):
    """Return the changes to the state that switch autocast for a kind of device."""
    switches = {**state.enabled, kind: enabled}
    return {"enabled": switches, "active": tuple(k for k, on in switches.items() if on)}


def get_autocast_dtype(device_type):
    """The low precision of a kind of device."""
    return state.dtype[device_kind(device_type)]


def set_autocast_dtype(device_type, dtype):
    """Choose the low precision of a kind of device."""
    state.dtype = {**state.dtype, device_kind(device_type): dtype}


def is_autocast_cache_enabled():
    """Tell whether the casts of weights are kept until the end of the outermost region."""
    return state.cache_enabled


def set_autocast_cache_enabled(enabled):
    """Keep the casts of weights, or do not."""
    state.cache_enabled = enabled


def clear_autocast_cache():
    """Forget the casts of weights."""
    state.cache.clear()


def autocast_increment_nesting():
    state.nesting += 1
    return state.nesting


def autocast_decrement_nesting():
    state.nesting -= 1
    return state.nesting


# ---- regions

LOWER = (dtypes.bfloat16, dtypes.float16)


class autocast(ContextDecorator):
    """A block, or a decorated function, in which operations run in the dtype that suits them."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_kind(device_type)
        self.fast_dtype = state.dtype[self.device] if dtype is None else dtype
        self._cache_enabled = state.cache_enabled if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda":  # whatever the dtype
            if not devices.has_cuda():
                warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
                enabled = False
        elif enabled and self.fast_dtype not in LOWER:
            warn(messages.DTYPE_NOT_SUPPORTED.format(device_type.upper(), ", ".join(map(str, LOWER))))
            enabled = False
        self._enabled = enabled

    def __enter__(self):
        self.before = state.enabled[self.device], state.dtype[self.device], state.cache_enabled
        if self._enabled and not installed:
            install()
        self.switch(1, self._enabled, self.fast_dtype, self._cache_enabled)
        return self

    def __exit__(self, *exc):
        self.switch(-1, *self.before)
        if not state.nesting:
            clear_autocast_cache()
        return False

    def switch(self, deeper, enabled, dtype, cache_enabled):
        """Change all of the state in one statement: an interrupt finds the region entered, or not."""
        change = enabling(self.device, enabled)
        change |= {"dtype": {**state.dtype, self.device: dtype}, "nesting": state.nesting + deeper}
        vars(state).update(change, cache_enabled=cache_enabled)

    def __call__(self, func):
        if not callable(func):
            raise TypeError(messages.NOT_CALLABLE.format(type(func).__name__))
        return super().__call__(func)


def same_casts():
    """A context manager that goes back, at another time, to what is cast now."""
    now = {"dtype": state.dtype, "enabled": state.enabled, "active": state.active, "cache_enabled": state.cache_enabled}
    return lambda: again(state, **now, nesting=state.nesting + 1)


class again(switched):
    """A region with all that was cast at another time; the casts of weights go with it, if it is the outermost."""

    def __exit__(self, *exc):
        super().__exit__()
        if not state.nesting:
            clear_autocast_cache()


# ---- custom functions


def casts_of(value, kind, dtype):
    """A value with the tensors in it cast: in sequences and mappings too."""
    if isinstance(value, Tensor):
        return cast(value, dtype.np) if eligible(value, kind) else value
    if isinstance(value, Mapping):
        return {casts_of(k, kind, dtype): casts_of(v, kind, dtype) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and type(value) not in dispatch.modules:
        values = (casts_of(v, kind, dtype) for v in value)
        return type(value)(values) if isinstance(value, (list, tuple)) else values
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates the ``forward`` of a Function, so that its ``backward`` under ``custom_bwd`` casts as it did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx, *args, **kwargs):
        on = is_autocast_enabled(device_type)
        ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            args, kwargs = (casts_of(a, device_type, cast_inputs) for a in (args, kwargs))
            return fwd(ctx, *args, **kwargs)

    return forward


def custom_bwd(bwd=None, *, device_type):
    """Decorates the ``backward`` of a Function: it casts as the ``forward`` under ``custom_fwd`` did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx, *args, **kwargs):
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward
