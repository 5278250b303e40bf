"""Module, and the hooks of all modules."""

# ruff: noqa: F401
from ..hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from ..module import Module
