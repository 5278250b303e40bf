"""`pip install undertorch`: what the wheel holds, the folder that its command makes, and clashes of names."""

import base64
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from course.authoring import new
from course.base import environment, locks, notebooks
from course.base.notebooks import ROOT
from course.commands import cli, testing
from course.commands import site as commands_site
from course.commands.lab import FIRST_LESSON
from course.judging import exercises
from course.process import judged
from undertorch import __main__ as command

HATCH = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
WHEEL = HATCH["build"]["targets"]["wheel"]
PACKED = WHEEL["force-include"]
# Of what git has: what a learner's folder does without.
LEFT_OUT = {
    ".ci", ".gitattributes", ".github", ".gitignore", ".pre-commit-config.yaml", "CITATION.cff", "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md", "README.md", "SECURITY.md", "benchmarks", "deploy", "environment-gpu.yml", "environment.yml",
    "action.yml", ".pre-commit-hooks.yaml", "tests", "Dockerfile", ".dockerignore", ".devcontainer", "binder",
}  # fmt: skip
OWN = {"LICENSE", "LICENSE-docs"}  # where wheels have them


def in_git():
    """The files of the repository, those that are about to be added too."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = shutil.which("git") and subprocess.run(asked, cwd=ROOT, capture_output=True, encoding="utf-8")
    if not listed or listed.returncode:
        pytest.skip("git does not say what belongs to the repository")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_whatever_is_added_to_the_repository_is_in_the_wheel_or_left_out_on_purpose():
    have = {name.partition("/")[0] for name in in_git()}
    packed = {name for name in PACKED if "/" not in name} | set(WHEEL["packages"])
    assert have - LEFT_OUT - OWN == packed
    assert all((ROOT / name).exists() and place == f"undertorch/files/{name}" for name, place in PACKED.items())


# ---- a wheel that is pretended


@pytest.fixture
def site(tmp_path, monkeypatch):
    """site-packages with a small Undertorch, and a function that installs it with other files."""
    site, here = tmp_path / "site", tmp_path / "here"
    here.mkdir()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(here)
    monkeypatch.setattr(command, "HERE", site / "undertorch")
    monkeypatch.setattr(command, "FILES", site / "undertorch/files")

    def install(version="1.0", **files):
        lines = []
        named = dict.fromkeys(("engine/__init__.py", "course/__init__.py", "course/__main__.py"), "")
        named |= {"undertorch/files/requirements/course.txt": "", "undertorch-1.dist-info/licenses/LICENSE": "BSD"}
        for name, content in (named | files).items():
            place = site / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode())
            digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(content)}")
        info = site / "undertorch-1.dist-info"
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: undertorch\nVersion: {version}\n")
        (info / "RECORD").write_text("\n".join([*lines, "engine/__pycache__/__init__.cpython-311.pyc,,"]) + "\n")

    install()
    install.folder = site
    return install


LESSON, GRAPH = "undertorch/files/notebooks/05.ipynb", "engine/graph.py"


def test_the_folder_is_whole_and_found_from_here_and_from_inside(site):
    site(**{LESSON: "lesson", GRAPH: "old"})
    folder = command.folder_for("lab")
    assert folder == Path.cwd() / "undertorch"
    assert (folder / "notebooks/05.ipynb").read_text() == "lesson"
    assert (folder / "LICENSE").read_text() == "BSD"
    (folder / "my_lessons").mkdir()
    for place in (folder.parent, folder, folder / "my_lessons"):
        assert command.find(place) == folder


def test_an_update_renews_what_is_new_and_keeps_what_somebody_has_changed(site, capsys):
    site(**{LESSON: "lesson", GRAPH: "old", "engine/gone.py": "", "engine/kept.py": "", "engine/same.py": "same"})
    folder = command.folder_for("start")
    capsys.readouterr()
    for name in (GRAPH, "engine/kept.py", "engine/same.py"):
        (folder / name).write_text("mine")
    (folder / "notebooks/05.ipynb").unlink()
    (folder / "my_lessons").mkdir()
    command.folder_for("doctor")  # changes nothing
    assert not (folder / "notebooks/05.ipynb").exists()

    site("2.0", **{LESSON: "lesson", GRAPH: "new", "engine/same.py": "same"})
    assert command.folder_for("update") == folder
    assert f"{folder} is version 2.0 now" in (said := capsys.readouterr().err) and "changed engine/graph.py" in said
    assert (folder / GRAPH).read_text() == "new" and (folder / "backups" / GRAPH).read_text() == "mine"
    assert (folder / "engine/same.py").read_text() == "mine"  # there is no newer one
    assert (folder / "notebooks/05.ipynb").read_text() == "lesson"
    assert not (folder / "engine/gone.py").exists() and (folder / "engine/kept.py").read_text() == "mine"
    command.folder_for("update")
    assert capsys.readouterr().err == ""


def test_a_start_that_was_cut_short_goes_on(site, monkeypatch):
    site(**{LESSON: "lesson"})
    with monkeypatch.context() as patch:
        patch.setattr(command, "content_of", lambda file: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            command.folder_for("lab")
    assert command.find(Path.cwd()) is None
    assert (command.folder_for("lab") / "notebooks/05.ipynb").is_file()


def test_a_folder_of_that_name_that_is_somebody_elses_is_left_alone(site):
    (Path.cwd() / "undertorch").mkdir()
    (Path.cwd() / "undertorch/thesis.txt").write_text("")
    with pytest.raises(command.Problem, match="is no folder of the course. Start in another"):
        command.folder_for("lab")
    assert [path.name for path in (Path.cwd() / "undertorch").iterdir()] == ["thesis.txt"]


def test_a_clone_is_used_and_never_written_to(site):
    clone = Path.cwd() / "undertorch"
    for name in command.MARKS:
        command.write(clone / name, b"own")
    assert command.folder_for("update") == clone
    assert not (clone / command.RECORD).exists() and (clone / "engine/__init__.py").read_text() == "own"


@pytest.mark.parametrize("overwritten", ["engine", "course"])
def test_another_package_in_the_place_of_a_module_is_noticed(site, overwritten):
    assert command.installed() == site.folder
    (site.folder / overwritten / "__init__.py").write_text("VROOM = 1")
    other = site.folder / "motors-1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.4\nName: motors\nVersion: 1\n")
    (other / "RECORD").write_text(f"{overwritten}/__init__.py,,\n")
    for call in (command.installed, lambda: command.folder_for("lab")):
        with pytest.raises(command.Problem, match="was changed by motors, which has a module of that name") as problem:
            call()
        assert "an environment of its own" in str(problem.value)


def test_without_a_folder_a_command_works_or_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(cli, "INSTALLED", True)
    monkeypatch.setattr(environment, "INSTALLED", True)
    monkeypatch.setattr(locks, "missing", lambda lock: ["jupyterlab>=4"])
    for name, known in cli.COMMANDS.items():
        if known.folder:
            assert cli.main([name]) == 1
            assert "`undertorch lab` makes one" in capsys.readouterr().err
            for option in ("-h", "--help"):  # which needs none
                with contextlib.suppress(SystemExit):
                    assert cli.main([name, option]) == 0
                said = capsys.readouterr()
                assert said.out and not said.err
    assert {name for name, known in cli.COMMANDS.items() if not known.folder} >= {"doctor", "validate", "test"}
    assert cli.main(["written", "05"]) in (0, 1)
    with pytest.raises(environment.Problem, match=r'pip install "undertorch\[validate\]"'):
        environment.ensure("validate", ["validate", "."])


def test_what_pip_has_installed_says_what_only_the_repository_has(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(commands_site, "ROOT", tmp_path)
    with pytest.raises(environment.Problem, match="get it by `git clone`"):
        commands_site.main(["--build"])
    assert new.main(["lesson", "optics"], tmp_path) == 0
    said = capsys.readouterr().out
    assert "build 00 00\n" in said or "build 00\n" in said
    assert "update.py" not in said and "--changed" not in said
    monkeypatch.setattr(testing, "ROOT", tmp_path)
    asked = []
    monkeypatch.setattr("course.authoring.validation.main", lambda argv: asked.append(argv) or 3)
    assert testing.main([]) == 3
    with pytest.raises(environment.Problem, match="tests are in the course's repository"):
        testing.main(["--deep"])
    assert asked[0][:2] == ["--only", "outputs"]  # whatever lies beside the lessons


def test_of_what_is_installed_a_submission_reads_all_but_the_course(tmp_path):
    packages = tmp_path / "env/lib/site-packages"
    for name in ("course/lessons", "undertorch/files/solutions", "engine/ops", "numpy/linalg"):
        (packages / name).mkdir(parents=True)
    (packages / "six.py").write_text("")
    (tmp_path / "other").mkdir()
    readable, listed = judged._around(
        [tmp_path / "env", packages, tmp_path / "other"], [packages / "course", packages / "undertorch"]
    )
    assert set(readable) == {packages / "engine", packages / "numpy", packages / "six.py", tmp_path / "other"}
    assert set(listed) == {tmp_path / "env", tmp_path / "env/lib", packages}
    assert judged._around([packages], []) == ([packages], [])


# What a submission's process can do where pip has installed the course: import the engine, and read no answer.
SUBMISSION = """
import os, sys, tempfile
from pathlib import Path
from course.process import judged, sandbox
if not sandbox.locks_files():
    raise SystemExit(print("no lock on this system"))
course = Path(judged.__file__).parents[1]
sandbox.enter(Path(tempfile.mkdtemp()), *judged._readable())
import engine.nn, scipy.optimize, colorsys
beside = next((course.parent / "undertorch").iterdir())
for place in (course / "lessons/05_graph/checks.py", course / "process/judged.py", beside):
    try:
        place.read_bytes() if place.is_file() else list(place.iterdir()) and next(place.rglob("*.md")).read_bytes()
    except (PermissionError, StopIteration):
        continue
    print("can read", place)
print("closed")
"""

# ---- the wheel itself


@pytest.mark.slow
def test_the_wheel_is_whole_and_its_command_works_outside_of_a_clone(tmp_path):
    """Built by pip, which gets the builder from the network; what the lessons need is this environment's."""

    def run(*words, cwd=tmp_path, code=0):
        own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "UNDERTORCH_PROGRESS": str(tmp_path / "progress")}
        kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP") if name in os.environ}
        done = subprocess.run(list(map(str, words)), cwd=cwd, env=own | kept, capture_output=True, encoding="utf-8")
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    clean = tmp_path / "sources"
    for name in in_git():
        (clean / name).parent.mkdir(parents=True, exist_ok=True)
        (clean / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, clean], check=True)
    (wheel,) = tmp_path.glob("*.whl")

    inside = set(zipfile.ZipFile(wheel).namelist())
    for name in in_git():
        first = name.partition("/")[0]
        place = name if first in WHEEL["packages"] else f"undertorch/files/{name}" if first in PACKED else None
        assert place is None or place in inside
    assert not [name for name in inside if "__pycache__" in name or "my_lessons" in name]

    venv.create(tmp_path / "venv", with_pip=True)
    python = environment.python_in(tmp_path / "venv")
    run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel)
    undertorch = python.with_name("undertorch.exe" if os.name == "nt" else "undertorch")
    assert "needs more packages" in run(undertorch, "validate", "--only", "outputs", "x.ipynb", code=2)
    assert "`undertorch lab` makes one" in run(undertorch, "progress", code=1)
    assert "version 0" in run(undertorch, "update") and (tmp_path / "undertorch/notebooks").is_dir()

    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(packages) / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    seen = run(python, "-c", SUBMISSION, cwd=tmp_path / "undertorch/notebooks")
    assert seen.strip() in ("closed", "no lock on this system")
    (tmp_path / "engine.py").write_text("raise SystemExit('not this one')")
    assert "05_graph.ipynb" in run(undertorch, "start", "05")
    progress = run(undertorch, "progress", cwd=tmp_path / "undertorch/my_lessons")
    assert f"0 of {len(exercises.lessons())} lessons" in progress
    findings = json.loads(run(undertorch, "doctor", "--json", cwd=tmp_path / "undertorch"))
    assert findings["lab_can_start"]
    run(python, "-c", "import matplotlib.font_manager")  # which tells of the fonts that it looks for the first time
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    notebook = tmp_path / "undertorch" / FIRST_LESSON
    (elsewhere / notebook.name).write_bytes(notebook.read_bytes())
    sanitize = tmp_path / "undertorch" / notebooks.SANITIZE
    assert "FAILED" not in run(
        undertorch, "validate", "--only", "outputs", notebook.name, "--sanitize-with", sanitize, cwd=elsewhere
    )
    assert "tensor([1., 1.])" in run(python, "-c", "import engine, course; print(engine.ones(2))", cwd=elsewhere)
