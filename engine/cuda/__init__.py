"""The contents of ``torch.cuda``, over CuPy's arrays and its pool of memory: see ``arrays/devices/namespace.py``."""

from ..arrays.devices.namespace import Namespace
from ..help import public
from . import amp

globals().update(Namespace("cuda").offers())

public("sim", globals())  # the texts of what the two have in common, methods too
__dir__ = public("cuda", globals())
