"""A compact autograd engine on NumPy, under PyTorch's names and semantics: ``import torch as engine``, made small."""

import importlib
from math import e, inf, nan, pi

from . import autograd, linalg
from .arrays.devices import OutOfMemoryError, device, get_default_device, set_default_device
from .arrays.running import offers
from .arrays.threads import get_num_threads, set_num_threads
from .surface import methods
from .surface.doors import Offered

# fmt: off
from .autograd import (  # isort: skip
    enable_grad, inference_mode, is_anomaly_check_nan_enabled, is_anomaly_enabled, is_grad_enabled,
    is_inference_mode_enabled, no_grad, set_grad_enabled,
)
from .arrays.dtypes import (  # isort: skip
    bfloat16, bool_ as bool, can_cast, double, dtype, finfo, float16, float32, float64, float_ as float,
    get_default_dtype, half, iinfo, int8, int16, int32, int64, int_ as int,
    long, promote_types, set_default_dtype, short, uint8,
)
# fmt: on
from .arrays.size import Size
from .core.tensor import Tensor
from .help import describe, public, texts
from .surface.printing import set_printoptions

__version__ = "0.1.0"

functions = Offered("function", __name__)
door = functions.into_module(globals())


# what not every program needs is imported when it is first named, so that `import engine` is quick
modules = "accelerator amp backends cuda distributed nn optim sim utils viz"
later = {name: name for name in modules.split()} | {
    "load": "serialization",
    "save": "serialization",
    "func": "func",
    "random": "arrays.random",
    "vmap": "transforms.vmap",
    "compile": "compiler",
    "compiler": "compiler",
}
later |= dict.fromkeys(
    ("autocast", "is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype",
     "is_autocast_cache_enabled", "set_autocast_cache_enabled", "clear_autocast_cache", "autocast_increment_nesting",
     "autocast_decrement_nesting"),
    "amp",
)  # fmt: skip
later |= dict.fromkeys(
    ("use_deterministic_algorithms", "are_deterministic_algorithms_enabled", "set_float32_matmul_precision",
     "is_deterministic_algorithms_warn_only_enabled", "get_float32_matmul_precision"),
    "backends",
)  # fmt: skip


def __getattr__(name):
    if name not in later:
        return door(name)
    module = importlib.import_module(f".{later[name]}", __name__)
    found = module if later[name].endswith(name) and name != "vmap" else vars(module)[name]
    if found is not module:
        describe(found, texts("engine")[name])
    return globals().setdefault(name, found)


offers["compile"] = lambda *args, **options: __getattr__("compile")(*args, **options)


def result_type(tensor, other):
    """The dtype of an arithmetic operation on two tensors or numbers."""
    from .arrays.dtypes import operand, result_type  # noqa: PLC0415  one of them has the name of this function

    try:
        return result_type(operand(tensor), operand(other))
    except (AttributeError, KeyError):
        got = ", ".join(type(x).__name__ for x in (tensor, other))
        raise TypeError(
            f"result_type() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            " * (Number or Tensor tensor, Number or Tensor other)"
        ) from None


__dir__ = public("engine", globals())
__all__ = [name for name in __dir__() if name in functions.names or name in globals()]
