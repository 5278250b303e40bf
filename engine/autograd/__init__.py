"""Differentiation: backward and grad, what is recorded, and functions of one's own."""

from ..graph import backward, grad
from .modes import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
