"""Automatic differentiation by name, as ``torch.autograd``."""

import importlib
import sys

from ..help import public
from . import anomaly, function, graph, variable
from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .function import Function
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .gradients import backward, grad
from .modes import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .variable import Variable

__all__ = [
    "Function", "GradcheckError", "Variable", "anomaly", "backward", "detect_anomaly", "enable_grad", "function",
    "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_detect_anomaly",
    "set_grad_enabled", "variable",
]  # fmt: skip

if "IPython" in sys.modules:
    from . import interrupted


def __getattr__(name):
    if name not in ("forward_ad", "functional"):  # imported when they are first named
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f".{name}", __name__)


__dir__ = public("autograd", globals())
