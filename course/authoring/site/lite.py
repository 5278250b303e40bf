"""The course in JupyterLite: a JupyterLab of plain files whose kernel is a Python in the reader's browser.

The notebooks there are a learner's copies, with one more cell, which fetches the course. Packages with machine code
(such as NumPy) come with Pyodide, from its own address or from a copy of its distribution; the rest lies beside the
page.
"""

import importlib.metadata
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from course.base.environment import Problem, prepare
from course.base.files import write_atomically
from course.base.locks import extras, lock_file
from course.base.notebooks import INSTALLED, ROOT
from course.learner import copies

FOLDER = "lite"  # of the site
ENVIRONMENT = ROOT / "build/lite-environment"
EXTRA = "browser"  # of pyproject.toml: what lessons use there
# What Pyodide has compiled, and what only those packages need: micropip takes these from there, and the rest from us.
PYODIDES = frozenset(
    "numpy scipy ml-dtypes safetensors scikit-learn joblib threadpoolctl matplotlib contourpy cycler fonttools "
    "kiwisolver pillow pyparsing python-dateutil pytz six packaging cloudpickle ipython jedi parso decorator traitlets "
    "matplotlib-inline prompt-toolkit wcwidth pygments stack-data executing asttokens pure-eval "
    "typing-extensions".split()
)
STUBS = frozenset({"ipykernel", "widgetsnbextension"})  # JupyterLite's kernel has its own
FRONT_ENDS = ("@jupyter-widgets/jupyterlab-manager", "@jupyterlite/pyodide-kernel-extension", "anywidget")
THERE = {"sys_platform": "emscripten", "platform_system": "Emscripten", "os_name": "posix", "extra": ""}
DOWNLOAD = ("--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", "--implementation=py", "--abi=none",
            "--platform=any")  # fmt: skip
PAGE = {"jupyter-lite-schema-version": 0, "jupyter-config-data": {"appName": "Undertorch"}}
# The beginning of each notebook. The drive is the browser's own storage, where the notebooks are kept, too.
FIRST = f"""\
%pip install -q "undertorch[{EXTRA}]"
%env UNDERTORCH_PROGRESS=/drive/progress.json"""
WHY = (
    "*Python runs in this page, and what you write is kept in your browser. The next cell fetches the course: run it "
    "first, each time you open a notebook. It takes a minute the first time.*"
)


def make(target: Path, pyodide: Path | None = None) -> None:
    """Make the folder, with Pyodide in it where its distribution is given, packed or unpacked. Raises Problem."""
    if INSTALLED:
        raise Problem("The lessons for the browser are made in a clone of the course: so is the wheel that they fetch.")
    python = prepare(ENVIRONMENT, "lite")
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        for name, nb in copies.as_they_begin():
            write_atomically(work / "contents" / name, json.dumps(begun_with(nb), ensure_ascii=False) + "\n")
        wheels = work / "wheels"
        packed = light(work / "packed")
        run(python, "hatchling", "build", "-t", "wheel", "-d", str(wheels), folder=packed)
        run(python, "pip", "download", *DOWNLOAD, "-d", str(wheels), "-r", str(locked(brought(), work)), folder=work)
        if pyodide:
            provide(pyodide, work / "static/pyodide")
        settings = json.dumps(settings_of(target, sorted(wheels.glob("*.whl"))), indent=1)
        write_atomically(work / "jupyter_lite_config.json", settings)
        write_atomically(work / "jupyter-lite.json", json.dumps(PAGE, indent=1))
        shutil.rmtree(target, ignore_errors=True)
        run(python, "jupyterlite_core", "build", folder=work)
    for font in target.rglob("*.woff2"):  # every browser that can run this accepts it
        for suffix in (".woff", ".ttf", ".eot", ".svg"):
            font.with_suffix(suffix).unlink(missing_ok=True)


def light(folder: Path) -> Path:
    """Copy what the wheel is made of, without the outputs of notebooks, which no check reads."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    beside = project["project"]["readme"], *project["project"]["license-files"]
    for name in {*wheel["packages"], *wheel["force-include"], *beside}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copyfile(ROOT / name, folder / name)
    for path in folder.rglob("*.ipynb"):
        nb = json.loads(path.read_text(encoding="utf-8"))
        for cell in nb["cells"]:
            cell |= {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {}
        write_atomically(path, json.dumps(nb, ensure_ascii=False) + "\n")
    return folder


def begun_with(nb: dict[str, Any]) -> dict[str, Any]:
    """Put the cell that fetches the course at the top of a notebook."""
    why = {"cell_type": "markdown", "id": "in-the-browser", "metadata": {}, "source": WHY}
    first = {"cell_type": "code", "id": "fetch-the-course", "metadata": {}, "source": FIRST}
    return nb | {"cells": [why, first | {"outputs": [], "execution_count": None}, *nb["cells"]]}


def brought() -> list[str]:
    """List the distributions whose wheels lie beside the page: what the lessons need and Pyodide lacks."""
    from packaging.requirements import Requirement

    found: dict[str, None] = {}
    asked = [Requirement(text) for text in extras()[EXTRA]]
    while asked:
        one = asked.pop()
        name = one.name.lower().replace("_", "-")
        if name in found or name in PYODIDES | STUBS or (one.marker and not one.marker.evaluate(THERE)):
            continue
        found[name] = None
        asked += map(Requirement, importlib.metadata.requires(name) or ())
    return sorted(found)


def locked(names: list[str], folder: Path) -> Path:
    """Write a file with the lines that the browser's lock has for these distributions."""
    lock = lock_file(EXTRA).read_text(encoding="utf-8")
    lines = [re.search(rf"(?ms)^{name}==.*?(?=^\S|\Z)", lock) for name in names]
    path = folder / "requirements.txt"
    write_atomically(path, "".join(line[0] for line in lines if line))
    return path


def provide(pyodide: Path, folder: Path) -> None:
    """Put Pyodide's distribution where JupyterLite's build looks for it. Raises Problem."""
    if pyodide.is_dir():
        shutil.copytree(pyodide, folder)
    else:
        try:
            shutil.unpack_archive(pyodide, folder.parent, filter="data")  # it holds a folder of that name
        except (OSError, shutil.ReadError, tarfile.TarError) as error:
            raise Problem(f"{pyodide} cannot be unpacked: {error}") from None
    if not (folder / "pyodide.mjs").is_file():
        raise Problem(f"{pyodide} is no distribution of Pyodide: there is no pyodide.mjs in it.")


def settings_of(target: Path, wheels: list[Path]) -> dict[str, Any]:
    """Return the settings of JupyterLite's build."""
    shared = ENVIRONMENT / "share/jupyter/labextensions"
    return {
        "LiteBuildConfig": {
            "contents": ["contents"],
            "output_dir": str(target),
            "apps": ["lab"],
            "ignore_sys_prefix": ["federated_extensions"],  # those of the teacher's tools would need a server
            "federated_extensions": [str(shared / name) for name in FRONT_ENDS],
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
        },
        "PipliteAddon": {"piplite_urls": [str(path) for path in wheels]},
    }


def run(python: Path, module: str, *words: str, folder: Path) -> None:
    """Run a program of an environment. Raises Problem with the program's words."""
    done = subprocess.run(
        [python, "-m", module, *words], cwd=folder, capture_output=True, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise Problem(f"The lessons for the browser were not made. {module} says:\n{last}")
