"""JupyterLab's files for a learner: all can be written but the course's own notebooks, which are read and run."""

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

from course.base.notebooks import TARGETS

OWN = tuple(target.folder for target in TARGETS)


class OwnReadOnly(AsyncLargeFileManager):
    """Takes the notebooks of the course for read-only: `git pull` finds them as they were."""

    def is_writable(self, path: str) -> bool:
        folder, _, name = path.strip("/").partition("/")
        return not (folder in OWN and name.endswith(".ipynb")) and bool(super().is_writable(path))
