"""What ``torch.cuda`` has, over CuPy's arrays and its pool of memory: see ``devices/namespace.py``."""

from ..devices.namespace import Namespace
from . import amp as amp

globals().update(Namespace("cuda").offers())
