"""Automatic differentiation by name, as ``torch.autograd``."""

from ..graph import backward, grad
from .function import Function
from .modes import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled

__all__ = [
    "Function", "backward", "enable_grad", "grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
    "no_grad", "set_grad_enabled",
]  # fmt: skip
