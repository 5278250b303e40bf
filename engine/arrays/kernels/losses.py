"""The binary cross entropy of logits, element by element: on a GPU in one kernel."""

from ..dispatch import elementwise, kernels, xp_of


def log_sigmoid(x):
    """log(sigmoid(x)), without overflow."""
    xp = xp_of(x)
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-abs(x)))


def logits_loss(x, y):
    """-(y * log(sigmoid(x)) + (1 - y) * log(1 - sigmoid(x)))"""
    return logits_formula(x, y) if not kernels else elementwise(logits_formula, x, y)


def weighted_logits_loss(x, y, more, weights):
    """The same with the first term ``1 + more`` times, and everything times the weights."""
    return elementwise(weighted_logits_formula, x, y, more, weights)


def logits_formula(x, y):
    xp = xp_of(x)
    return xp.maximum(x, 0) - x * y + xp.log1p(xp.exp(-abs(x)))  # not of x: no overflow


def weighted_logits_formula(x, y, more, weights):
    return ((1.0 - y) * x - (more * y + 1.0) * log_sigmoid(x)) * weights
