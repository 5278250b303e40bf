"""The lessons in JupyterLite, as far as they run without a network: all but what has machine code."""

import hashlib
import json
import shutil
import subprocess
import sys
import threading

import pytest

pytest.importorskip("playwright")
lite = pytest.importorskip("course.authoring.site.lite")
pytestmark = [pytest.mark.browser, pytest.mark.slow]
PYODIDE = "314.0.6"  # of the kernel in the lock: its Python and its standard library alone come from npm


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder, and beside it as much of Pyodide as npm has: its Python, and nothing that has machine code."""
    if not shutil.which("npm"):
        pytest.skip("npm, which fetches Pyodide's Python, is not installed")
    place = tmp_path_factory.mktemp("lite")
    subprocess.run(["npm", "pack", "--silent", f"pyodide@{PYODIDE}"], cwd=place, check=True, capture_output=True)
    shutil.unpack_archive(place / f"pyodide-{PYODIDE}.tgz", place, filter="data")
    distribution = (place / "package").rename(place / "pyodide")
    pure(distribution)
    lite.make(place / "site", distribution)
    return place / "site"


def pure(distribution):
    """Add the wheels without machine code that the kernel starts with, and write them into the distribution's lock."""
    lock = distribution / "pyodide-lock.json"
    told = json.loads(lock.read_text(encoding="utf-8"))
    wanted = lite.PYODIDES | {"micropip"}
    names = [name for name, one in told["packages"].items() if name in wanted and "none-any" in one["file_name"]]
    wheels = distribution.with_name("wheels")
    lines = [f"{name}=={told['packages'][name]['version']}" for name in names]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
         "--python-version=3.14", "-d", wheels, *lines],
        check=True,
    )  # fmt: skip
    for wheel in wheels.glob("*.whl"):
        one = told["packages"][wheel.name.partition("-")[0].lower().replace("_", "-")]
        one |= {"file_name": wheel.name, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
        shutil.copy(wheel, distribution)
    lock.write_text(json.dumps(told), encoding="utf-8")


def test_it_is_small(made):
    """With its site 60 MB (tests/course/authoring/test_site.py), without Pyodide's distribution."""
    own = [path for path in made.rglob("*") if path.is_file() and "pyodide" not in path.relative_to(made).parts]
    assert len(own) > 400
    assert sum(path.stat().st_size for path in own) < 25e6


# All that can be seen without NumPy: the course has come whole, and this Python can read it; a page can draw DOT.
CELL = """
import compileall, importlib.metadata, pathlib, sys
home = pathlib.Path(importlib.metadata.distribution("undertorch").locate_file(""))
read = [compileall.compile_dir(home / name, quiet=2, workers=1) for name in ("engine", "course", "undertorch")]
import anywidget, filelock, ipywidgets, packaging
from graphviz_anywidget import GraphvizAnyWidget
print("read", read, sys.platform, sys.version_info[:2])
GraphvizAnyWidget(dot_source="digraph { a -> b }")
"""


def test_a_lesson_opens_its_kernel_starts_and_the_course_comes(made, chromium):
    from playwright.sync_api import expect

    from course.commands.site import server_of

    server = server_of(made, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = chromium.new_page()
    page.goto(f"http://localhost:{server.server_address[1]}/lab/index.html?path=my_lessons/05_graph.ipynb")
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    first = cells.first.locator(".cm-content")
    first.click(timeout=300_000)
    first.press("Shift+Enter")
    expect(cells.first).to_contain_text("env: UNDERTORCH_PROGRESS=/drive/progress.json", timeout=600_000)
    expect(cells.first).not_to_contain_text("Error")
    first.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(CELL)
    first.press("Control+Enter")
    expect(cells.first).to_contain_text("read [True, True, True] emscripten (3, 14)", timeout=600_000)
    expect(cells.first.locator("svg .node")).to_have_count(2, timeout=300_000)
    page.close()
    server.shutdown()
    server.server_close()
