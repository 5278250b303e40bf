"""A learner's server, read as that user: the course's lab, with nbgrader's list of assignments."""

import os
from pathlib import Path

from course.base.notebooks import ROOT, kernel_environment
from course.commands.lab import LEARNERS_CONFIG
from course.learner import copies

c = get_config()  # noqa: F821 - given by Jupyter

os.umask(0o077)  # what is made here is for its owner alone
HOME = Path.home() / "undertorch"
HOME.mkdir(exist_ok=True)
os.chdir(HOME)  # where nbgrader puts what is fetched
for part in filter(lambda part: not os.path.lexists(part), ("notebooks", "exercises", "solutions")):
    Path(part).symlink_to(ROOT / part)  # the course's own, beside the learner's copies
own = {"UNDERTORCH_PROGRESS": str(HOME / ".progress.json"), "JUPYTER_RUNTIME_DIR": str(HOME / ".run")}
os.environ.update(kernel_environment() | own)  # a socket's name has at most 107 letters
copies.start_all(HOME)

c.ServerApp.root_dir = str(HOME)
c.ServerApp.kernel_spec_manager_class = "course.kernel.kernels.OwnKernel"
c.ServerApp.contents_manager_class = "course.kernel.contents.OwnReadOnly"
c.ContentsManager.pre_save_hook = "course.kernel.saving.tidy"
c.ServerApp.tornado_settings = {"static_custom_path": [str(LEARNERS_CONFIG / "custom")]}
c.LabApp.custom_css = True
c.KernelManager.transport = "ipc"  # others could listen to ports, and of forty kernels two took the same ones
c.ServerApp.max_body_size = c.ServerApp.max_buffer_size = 20 * 2**20
c.ServerApp.terminado_settings = {"shell_command": ["/bin/bash"]}  # no login shell, which forgets the path
c.MappingKernelManager.cull_idle_timeout = 1800  # a kernel that nobody uses gives its memory back
c.MappingKernelManager.cull_interval = 120
c.ServerApp.jpserver_extensions = {
    "jupyterlab_jupytext": False,
    "nbgrader.server_extensions.assignment_list": True,
    "nbgrader.server_extensions.course_list": False,
    "nbgrader.server_extensions.formgrader": False,
    "nbgrader.server_extensions.validate_assignment": False,
}
