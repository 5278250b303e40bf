"""HIPS autograd."""

import autograd
import autograd.numpy as np

from . import function_style


def prepare(name):
    return function_style.prepare(np, autograd.value_and_grad, name)
