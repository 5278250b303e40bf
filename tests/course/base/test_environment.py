"""What an environment needs to know of the course, whatever the system's letters are."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from over_tables import over

from course.base import environment


@over("folder", ["course", "Łukasz/кур"])
def test_every_program_of_an_environment_finds_the_course(folder, tmp_path, monkeypatch):
    """Before Python 3.13 the file that says where it is, is read in the system's encoding: here plain ASCII."""
    root, packages = tmp_path / folder, tmp_path / "packages"
    root.mkdir(parents=True)
    packages.mkdir()
    monkeypatch.setattr(environment, "ROOT", root)
    monkeypatch.setattr(environment.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=str(packages)))
    environment._make_importable(environment.Probe((3, 11), Path(sys.executable)))
    monkeypatch.undo()
    asks = "import os, site, sys; site.addsitedir(sys.argv[1]); print(ascii(os.path.abspath(sys.path[-1])))"
    env = os.environ | {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", asks, str(packages)], env=env, capture_output=True, check=True)
    assert done.stdout.decode("ascii").strip() == ascii(str(root.resolve()))
