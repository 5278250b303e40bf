"""A module on several processes, each with a part of the batch."""

from ...help import public
from .distributed import DistributedDataParallel

__dir__ = public("nn.parallel", globals())
