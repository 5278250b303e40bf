"""The kernels that `python -m course lab` offers."""

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

from course.base.notebooks import METADATA

SHELL = "--InteractiveShellApp.extra_extensions=course.kernel.shell"


class OwnKernel(KernelSpecManager):
    """One kernel, "Python 3": the interpreter of the environment itself, whatever else the user has registered."""

    def _kernel_dirs_default(self) -> list[str]:
        return []

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        spec = super().get_kernel_spec(kernel_name)
        spec.display_name = METADATA["kernelspec"]["display_name"]
        spec.argv = [*spec.argv, SHELL]
        return spec
