"""The GPU, if there is one, under ``torch.accelerator``'s names: programs ask here where to compute."""

from . import cuda
from .arrays.devices import device
from .help import public


def is_available():
    """Tell whether there is a GPU that CuPy can use."""
    return cuda.is_available()


def current_accelerator(check_available=False):
    """The device to compute on, without a number; None where there is no GPU."""
    return device("cuda") if is_available() else None


def needed():
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def device_count():
    """Return the number of GPUs."""
    return cuda.device_count()


def current_device_index():
    """The number of the GPU that is computed on."""
    needed()
    return cuda.current_device()


def synchronize(device=None):
    """Wait until the GPU has done what it was given."""
    needed()
    cuda.synchronize(device)


__dir__ = public("accelerator", globals())
