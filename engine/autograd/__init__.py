"""Automatic differentiation by name, as ``torch.autograd``."""

import importlib

from ..arrays.warn import warn
from ..core import backward as backward_pass
from . import anomaly, function, graph
from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .function import Function
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .modes import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled

__all__ = [
    "Function", "GradcheckError", "anomaly", "backward", "detect_anomaly", "enable_grad", "function", "grad",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of ``tensors``, weighted by ``grad_tensors``, to the leaves (or to ``inputs`` alone)."""
    if grad_variables is not None:
        warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
    backward_pass.backward(
        tensors, grad_variables if grad_tensors is None else grad_tensors, retain_graph, create_graph, inputs
    )


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):  # fmt: skip
    """The gradients of ``outputs`` with respect to ``inputs``, as a tuple; nothing is added to any ``.grad``.

    RuntimeError if an input was not used, unless ``allow_unused`` (None then) or ``materialize_grads`` (zeros).
    """
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    return backward_pass.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, is_grads_batched,
                      materialize_grads)  # fmt: skip


def __getattr__(name):
    if name not in ("forward_ad", "functional"):  # imported when they are first named
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f".{name}", __name__)
