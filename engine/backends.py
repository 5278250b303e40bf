"""The switches of ``torch.backends`` and the like, for reproducible or quick results.

It is kept and can be read, and changes nothing: on the host all results can be repeated, and float32 is float32.
"""

from types import SimpleNamespace

from .arrays.devices import has_cuda
from .arrays.warn import warn
from .help import public

cudnn = SimpleNamespace(enabled=True, benchmark=False, deterministic=False, allow_tf32=True,
                        is_available=lambda: False, version=lambda: None)  # fmt: skip
cuda = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False), is_built=has_cuda)
mps = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
asked = SimpleNamespace(deterministic=False, warn_only=False, precision="highest")


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Ask for results that can be repeated, as those on the host are.  NotImplementedError where there is a GPU."""
    if not isinstance(mode, bool):
        kind = type(mode).__name__
        raise TypeError(f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {kind}")
    if mode and not warn_only and has_cuda():
        raise NotImplementedError("a GPU adds up what has one index in any order: compute on the CPU to repeat results")
    asked.deterministic, asked.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled():
    """Return the last mode given to ``use_deterministic_algorithms``."""
    return asked.deterministic


def is_deterministic_algorithms_warn_only_enabled():
    """Tell whether ``use_deterministic_algorithms`` was last asked only to warn."""
    return asked.warn_only


def set_float32_matmul_precision(precision):
    """Keep the precision asked for products of float32 matrices, which always have the "highest"."""
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision in ("highest", "high", "medium"):
        asked.precision = precision
    else:
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
        )


def get_float32_matmul_precision():
    """Return the last precision given to ``set_float32_matmul_precision``."""
    return asked.precision


__dir__ = public("backends", globals())
