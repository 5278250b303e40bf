"""A compact autograd engine on NumPy, under PyTorch's names and semantics: ``import torch as engine``, made small."""

import importlib
import warnings

from . import autograd, linalg, methods
from .autograd import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .backend import device

# fmt: off
from .dtypes import (  # isort: skip
    bfloat16, bool_ as bool, can_cast, double, dtype, finfo, float16, float32, float64, float_ as float,
    get_default_dtype, half, iinfo, int8, int16, int32, int64, int_ as int,
    long, promote_types, set_default_dtype, short, uint8,
)
# fmt: on
from .printing import Size, set_printoptions
from .tensor import Tensor

# PyTorch gives inf and nan without a word; so does the engine, in every thread (NumPy's errstate is a thread's own)
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"engine\.")

for family in methods.families:
    globals().update(methods.offers(family, family.FUNCTIONS))


# what not every program needs is imported when it is first named, so that `import engine` is quick
later = {"nn": "nn", "optim": "optim", "utils": "utils", "viz": "viz", "load": "serialization", "save": "serialization"}


def __getattr__(name):
    if name not in later:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{later[name]}", __name__)
    return module if later[name] == name else vars(module)[name]


def __dir__():
    return [*globals(), *later]


def result_type(tensor1, tensor2):
    """The dtype of an arithmetic operation on two tensors or numbers."""
    from .dtypes import operand, result_type

    return result_type(operand(tensor1), operand(tensor2))
