"""The contents of ``torch.cuda`` for the simulated device, whose capacity can be set, by ``devices/namespace.py``."""

from .arrays.devices.namespace import Namespace
from .help import public

api = Namespace("sim")
globals().update(api.offers())


def set_capacity(nbytes):
    """Let the device have so many bytes of memory (4 GiB at first).  ValueError if more is reserved already."""
    allocator = api.backend.allocator.settled()
    if nbytes < allocator.reserved:
        allocator.empty_cache()
    if nbytes < allocator.reserved:
        raise ValueError(f"{allocator.reserved} bytes are reserved: delete tensors first")
    allocator.capacity = int(nbytes)


def transfers():
    """Return how often elements have crossed to the host: by ``item()``, ``cpu()``, printing, ``if tensor:`` ..."""
    return api.backend.allocator.transfers


__dir__ = public("sim", globals())
