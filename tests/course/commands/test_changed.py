"""`python -m course test --changed`: which tests a change reaches."""

import importlib.util
import shutil
import subprocess
import sys

import pytest

from course.base.environment import Problem
from course.base.notebooks import ROOT
from course.commands import changed, testing

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="what was changed is asked of git")

WAVES = """\
def turned(x):
    return x


def sine(x):
    return x


def cosine(x):
    return turned(x)
"""
FILES = {
    "engine/__init__.py": "from .ops import waves\n",
    "engine/__init__.pyi": "def sine(x): ...\ndef cosine(x): ...\n",
    "engine/ops/__init__.py": "",
    "engine/ops/waves.py": WAVES,
    "course/__init__.py": "",
    "course/figures/__init__.py": "from course.figures.boxes import Boxes\n",
    "course/figures/boxes.py": "from course.figures.frame import edge\n\n\nclass Boxes:\n    edge = edge\n",
    "course/figures/boxes.js": "1;\n",
    "course/figures/frame.py": "edge = 1\n",
    "course/lessons/05_graph/checks.py": "",
    "notebooks/05_graph.ipynb": "from course.figures import Boxes",
    "course/lessons/05_graph/lesson.md": "text",
    "docs/engine.md": "text",
    "tests/conftest.py": "",
    "tests/engine/ops/test_rules.py": "import engine\n",
    "tests/engine/test_tables.py": "from tests import test_rules\n",
    "tests/engine/test_waves.py": "import engine\n",
    "tests/engine/test_inside.py": "from engine.ops.waves import turned\n",
    "tests/engine/test_songs.py": "import engine\n\ndef test_a_song():\n    engine.sine(1)\n",
    "tests/engine/test_others.py": "import engine\n\ndef test_sines():\n    assert engine\n",
    "tests/course/test_figures.py": "from course.figures import Boxes\n",
    "tests/course/test_frames.py": "from course.figures import frame\n",
    "tests/browser/test_boxes_in_browser.py": "from course.figures import boxes\n",
    "tests/test_claims_05.py": "",
    "tests/lessons/test_exercises.py": "",
    "tests/test_documents.py": "",
    "tests/test_layers.py": "",
}  # fmt: skip
IMPORTS = {
    "engine/__init__.py": ["engine/ops/waves.py"],
    "course/figures/__init__.py": ["course/figures/boxes.py"],
    "course/figures/boxes.py": ["course/figures/frame.py"],
    "tests/engine/test_tables.py": ["tests/engine/ops/test_rules.py"],
    "tests/engine/test_waves.py": ["engine/__init__.py"],
    "tests/engine/test_inside.py": ["engine/ops/waves.py"],
    "tests/engine/test_songs.py": ["engine/__init__.py"],
    "tests/course/test_figures.py": ["course/figures/__init__.py"],
    "tests/course/test_frames.py": ["course/figures/frame.py"],
    "tests/browser/test_boxes_in_browser.py": ["course/figures/boxes.py"],
}
IN_BROWSER = "tests/browser/test_boxes_in_browser.py"


def git(root, *arguments):
    own = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]
    subprocess.run(["git", *own, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small clone of such a project, on a branch that nothing was done on."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for arguments in (("init", "-b", "main"), ("add", "."), ("commit", "-m", "All"), ("switch", "-c", "mine")):
        git(tmp_path, *arguments)
    monkeypatch.setattr(changed, "imports", lambda root: IMPORTS)
    return tmp_path


def edit(root, name, old="", new="\n"):
    path = root / name
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")


ROWS = ["tests/engine/test_tables.py", "tests/engine/ops/test_rules.py"]
INSIDE = [
    "tests/engine/test_inside.py",
    "tests/engine/test_waves.py",
    "tests/test_documents.py",
    "tests/test_layers.py",
]
LESSON = ["notebooks/05_graph.ipynb", "tests/test_claims_05.py"]


@pytest.mark.parametrize(
    ("name", "old", "new", "whole", "partly", "words", "browser"),
    [
        pytest.param("engine/ops/waves.py", "sine(x):", "sine(x, /):", INSIDE, ["tests/engine/test_songs.py", *ROWS],
                     ["cosine", "sine"], [], id="operations"),
        pytest.param("engine/ops/waves.py", "def turned(x)", "def turned(x, /)", INSIDE, ROWS, ["cosine"], [],
                     id="what an operation is made with"),
        pytest.param("course/figures/boxes.py", "", "x = 1\n", [], [], [], [IN_BROWSER], id="beside a figure"),
        pytest.param("course/figures/boxes.js", "1;", "2;", LESSON[:1], ["tests/course/test_figures.py"],
                     ["Boxes"], [IN_BROWSER], id="a front end"),
        pytest.param("course/figures/frame.py", "1", "2", [*LESSON[:1], "tests/course/test_frames.py"],
                     ["tests/course/test_figures.py"], ["Boxes"], [IN_BROWSER], id="what figures are made with"),
        pytest.param("course/lessons/05_graph/lesson.md", "", "more", [*LESSON, "tests/test_documents.py"],
                     ["tests/lessons/test_exercises.py"], ["05", "05_graph"], [], id="a lesson"),
        pytest.param("course/lessons/05_graph/checks.py", "", "x = 1\n", LESSON, ["tests/lessons/test_exercises.py"],
                     ["05", "05_graph"], [], id="checks"),
        pytest.param("docs/engine.md", "", "more", ["tests/test_documents.py"], [], [], [], id="a text"),
        pytest.param("tests/engine/ops/test_rules.py", "", "x = 1\n", ROWS, [], [], [], id="a test that others import"),
        pytest.param("tests/test_new.py", "", "x = 1\n", ["tests/test_new.py"], [], [], [], id="a new file"),
        pytest.param("unread.txt", "", "x", [], [], [], [], id="what nothing reads"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("committed", [False, True], ids=["", "committed"])
def test_what_a_change_reaches(project, committed, name, old, new, whole, partly, words, browser):
    edit(project, name, old, new)
    if committed:
        git(project, "add", ".")
        git(project, "commit", "-m", "One")
    assert changed.choose(project) == ([name], sorted(whole), sorted(partly), words, browser)


def test_what_was_deleted_is_known_by_its_old_text(project):
    edit(project, "engine/ops/waves.py", "def sine(x):\n    return x\n\n\n", "")
    assert changed.choose(project).words == ["sine"]


def test_every_test_under_a_changed_conftest_is_run(project):
    edit(project, "tests/conftest.py", "", "x = 1\n")
    choice = changed.choose(project)
    assert {*choice.whole, *choice.browser} == {name for name in FILES if name.startswith("tests/") and "test_" in name}


def test_without_a_branch_main_there_is_a_word(project):
    git(project, "branch", "-D", "main")
    with pytest.raises(Problem, match="no branch `main`"):
        changed.choose(project)


def test_ruff_says_what_imports_what():
    if not importlib.util.find_spec("ruff"):
        pytest.skip("ruff is not installed")
    assert "course/commands/changed.py" in changed.imports(ROOT)["course/commands/testing.py"]


def test_nothing_changed_runs_nothing(monkeypatch, capsys):
    monkeypatch.setattr(testing, "ensure", lambda lock, argv: None)
    monkeypatch.setattr(changed, "choose", lambda root: changed.Choice([], [], [], [], []))
    monkeypatch.setattr(testing, "pytest", lambda *_: 1 / 0)
    assert testing.main(["--changed"]) == 0
    assert capsys.readouterr().err == "Nothing was changed since `main`.\n"


CHOSEN = """\
import pytest

over = lambda *_: lambda test: test

def helper():
    return "sine"

def test_by_its_text():
    assert "sine"

def test_by_what_it_calls():
    assert helper()

@pytest.mark.parametrize("row", ["sine-f(x)", "cosine-f(x)"])
def test_a_table(row):
    assert "sine"

@over("row", ["sine-f(x)", "cosine-f(x)"])
def test_a_table_in_one():
    pass

def test_of_sine():
    pass

def test_of_sinews():
    pass
"""


@pytest.mark.slow
def test_of_a_file_the_tests_that_name_a_word_are_run(tmp_path):
    (tmp_path / "test_a.py").write_text(CHOSEN, encoding="utf-8")
    (tmp_path / "test_b.py").write_text("def test_of_other_things(): pass", encoding="utf-8")
    choice = changed.Choice(["x"], ["test_b.py"], ["test_a.py"], ["sine"], [])
    command = [sys.executable, "-m", "pytest", "--rootdir=.", "-p", "no:cacheprovider", "--collect-only", "-q"]
    environment = testing.kernel_environment(ROOT)
    run = subprocess.run(
        [*command, *choice.arguments()], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", env=environment
    )
    names = [line.rpartition("::")[2] for line in run.stdout.splitlines() if "::" in line]
    assert names == ["test_of_other_things", "test_by_its_text", "test_by_what_it_calls", "test_a_table[sine-f(x)]",
                     "test_a_table_in_one", "test_of_sine"], run.stdout + run.stderr  # fmt: skip
