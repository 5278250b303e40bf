"""Mixed precision: P. Micikevicius et al., Mixed Precision Training, 2018 (arxiv.org/abs/1710.03740)."""

from ..help import public
from .grad_scaler import GradScaler

# fmt: off
from .autocast_mode import (  # isort: skip
    autocast, autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache, custom_bwd, custom_fwd,
    get_autocast_dtype, is_autocast_available, is_autocast_cache_enabled, is_autocast_enabled, same_casts,
    set_autocast_cache_enabled, set_autocast_dtype, set_autocast_enabled,
)
# fmt: on

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__dir__ = public("amp", globals())
