"""The kernels that `python -m course lab` offers."""

from jupyter_client.kernelspec import KernelSpecManager


class OwnKernel(KernelSpecManager):
    """One kernel, "Python 3": the interpreter of the environment itself, whatever else the user has registered."""

    def _kernel_dirs_default(self) -> list[str]:
        return []
