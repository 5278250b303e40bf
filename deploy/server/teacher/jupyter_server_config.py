"""The teachers' server: the class's folder as undertorch-grader, with nbgrader's formgrader and a terminal."""

import os
from pathlib import Path

from course.base.notebooks import kernel_environment

c = get_config()  # noqa: F821 - given by Jupyter

FOLDER = Path(__file__).resolve().parents[2]
os.environ.update(kernel_environment())
# By formgrader's button, too, an answer has no network, and a user that owns nothing: course/process/sandbox.py.
os.environ["UNDERTORCH_GRADES_WITHIN"] = "unshare --user --map-root-user --map-auto --net --"
os.chdir(FOLDER / "grader" / "class")
c.ServerApp.root_dir = str(Path.cwd())
c.ServerApp.terminado_settings = {"shell_command": ["/bin/bash"]}  # no login shell, which forgets the path
c.KernelManager.transport_encryption = "required"
c.ServerApp.jpserver_extensions = {
    "jupyterlab_jupytext": False,
    "nbgrader.server_extensions.assignment_list": False,
    "nbgrader.server_extensions.course_list": False,
    "nbgrader.server_extensions.formgrader": True,
    "nbgrader.server_extensions.validate_assignment": False,
}
