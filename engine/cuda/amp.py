"""Mixed precision on a GPU, under its older names: they warn, and say what to write instead."""

from .. import amp
from ..arrays.dtypes import float16
from ..arrays.warn import warn
from ..help import public


def warn_of(name):
    device = "" if "custom" in name else "'cuda', "
    new = f"torch.amp.{name}({device}args...)" if device else f"torch.amp.{name}(args..., device_type='cuda')"
    warn(f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `{new}` instead.", FutureWarning)


class autocast(amp.autocast):
    """``amp.autocast`` on "cuda"."""

    def __init__(self, enabled=True, dtype=float16, cache_enabled=True):
        warn_of("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``amp.GradScaler`` on "cuda"."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        warn_of("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """``amp.custom_fwd`` on "cuda"."""
    warn_of("custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """``amp.custom_bwd`` on "cuda"."""
    warn_of("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")


__dir__ = public("cuda.amp", globals())
