"""Optimizers, which move parameters along their gradients, and schedulers of their learning rates."""

from . import lr_scheduler
from .algorithms import SGD, Adagrad, Adam, AdamW, RMSprop
from .lbfgs import LBFGS
from .optimizer import Optimizer
