"""Optimizers, which move parameters along their gradients, and schedulers of their learning rates."""

from ..help import public
from . import lr_scheduler
from .algorithms import SGD, Adagrad, Adam, AdamW, RMSprop
from .lbfgs import LBFGS
from .optimizer import Optimizer

__dir__ = public("optim", globals())
