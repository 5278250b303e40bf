"""A lesson just begun builds, runs, and keeps what tests want of every lesson; a bad name is refused in a sentence."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from over_tables import over

pytest.importorskip("jupytext")
pytest.importorskip("nbgrader")

from course.authoring import new
from course.base.environment import Problem
from course.base.notebooks import ROOT, TARGETS

FILES = {path.name for path in new.TEMPLATE.glob("*.*")}
SKELETONS = """
from course.authoring.build import jobs, skeleton
from course.authoring.in_step import not_canonical, unwritten
from course.base.notebooks import HOME
from course.figures.predict.figure import questions
from course.judging.exercises import of_lesson
from course.learner import rubrics

made = {job.target.folder: skeleton(job) for job in jobs(HOME, ["ray_optics"])}
print(*made, *of_lesson("02"), *questions("02"), *rubrics.questions("02"))
print(made["notebooks"].cells[0].source)
print([job.source.name for job in jobs(HOME, ["02"]) if not_canonical(job.source)])
print([one for nb in made.values() for one in nb.cells if "$" in one.source])
print(*unwritten([job.source.parent for job in jobs(HOME, ["01", "02"])][::3], HOME))
"""
# The tests that every lesson has to pass, and the one that wants more exercises than the author has written by now.
CONTRACTS = (
    *("lessons/test_exercises.py", "lessons/test_notebooks.py", "lessons/test_predictions.py"),
    *("course/authoring/test_teaching.py", "course/learner/test_written.py", "course/base/test_folds.py"),
)
MISSING = ["test_exercises.py::test_a_lessons_exercises_are_numbered_as_in_its_text[02]"]


def copied(root, *others):
    """The course with lessons 00 and 01 alone, in a folder of its own."""
    later = [path.name for path in (ROOT / "course/lessons").glob("[0-9]*") if path.name[:2] > "01"]
    notebooks = [f"{name}.ipynb" for name in later]
    for name in ("course", *others):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", *later, *notebooks))
    shutil.copy(ROOT / "jupytext.toml", root)
    return root


def python(root, *arguments):
    """What a program run in the copy prints, with the course that is there."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (root, ROOT))), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert not done.stderr or done.stderr.startswith("docs/layers.svg is as it was"), done.stderr  # without Graphviz
    return done.stdout


@pytest.mark.slow
def test_a_lesson_begun_builds_and_says_what_comes_next(tmp_path):
    root = copied(tmp_path)
    said = python(root, "-m", "course", "new", "lesson", "ray_optics")
    folder = root / "course/lessons/02_ray_optics"
    assert {path.name for path in folder.iterdir()} == FILES
    assert "course/lessons/02_ray_optics/" in said and "build 00 01 02\n" in said and "$" not in said
    keys, links, unformatted, left, todo = python(root, "-c", SKELETONS).splitlines()
    assert keys == "notebooks exercises solutions 02.1 a 02.w1 02.w2"
    assert links.startswith("**Previous:** [01 Tensors](01_tensors.ipynb)") and "02_ray_optics.ipynb" in links
    assert (unformatted, left) == ("[]", "[]")
    counts = {name: (folder / name).read_text(encoding="utf-8").count("TODO") for name in sorted(FILES)}
    told = ", ".join(f"{count} in {name}" for name, count in counts.items())
    assert todo == f"course/lessons/02_ray_optics/ still says TODO where your own words belong: {told}"


def lessons_of(root):
    for name in ("00_welcome", "07_optics"):
        (root / "course/lessons" / name).mkdir(parents=True)
        (root / "course/lessons" / name / "lesson.md").write_text("# A lesson\n", encoding="utf-8")
    return root / "course/lessons"


@over("name", ["", "Optics", "ray-optics", "ray optics", "_optics", "2nd", "a__b", "../a", "größe", "a\n"])
def test_what_is_no_name_is_refused_and_nothing_written(tmp_path, name):
    lessons_of(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Problem, match=re.escape(f"{name!r} is no name for a lesson")):
        new.begin(name, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_that_is_taken_is_refused_even_where_the_lesson_has_no_text_yet(tmp_path):
    lessons = lessons_of(tmp_path)
    (lessons / "08_color").mkdir()
    (lessons / "08_color/checks.py").write_text("mine", encoding="utf-8")
    for name, number in (("optics", "07"), ("color", "08")):
        with pytest.raises(Problem, match=f"There is a lesson of this name: course/lessons/{number}_{name}"):
            new.main(["lesson", name], tmp_path)
    assert [path.name for path in (lessons / "08_color").iterdir()] == ["checks.py"]
    assert new.begin("light", tmp_path)["folder"] == "09_light"


def test_the_number_follows_the_last_one_and_what_python_left_is_no_lesson(tmp_path):
    lessons = lessons_of(tmp_path)
    (lessons / "08_taken_out/__pycache__").mkdir(parents=True)
    assert new.begin("light", tmp_path)["folder"] == "08_light"
    text = (lessons / "08_light/lesson.md").read_text(encoding="utf-8")
    assert text.startswith("# 08 Light: ") and "[lesson 07](07_optics.ipynb)" in text
    (lessons / "08_light").rename(lessons / "99_light")
    with pytest.raises(Problem, match="99 is taken"):
        new.begin("more", tmp_path)


@pytest.mark.slow
def test_a_lesson_begun_runs_and_keeps_the_contracts_of_every_lesson(tmp_path):
    root = copied(tmp_path, "docs", "engine", "requirements", "tests", *(target.folder for target in TARGETS))
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    (root / "tests/lessons/right_answers.py").write_text("ANSWERS = VALUES = ()\n", encoding="utf-8")  # of others
    python(root, "-m", "course", "new", "lesson", "ray_optics")
    python(root, "docs/update.py")
    assert "exercises/02_ray_optics.ipynb: written" in python(root, "-m", "course", "build", "00", "01", "02")
    found = python(root, "-m", "course", "build", "--check").splitlines()
    assert len(found) == 1 and found[0].startswith("course/lessons/02_ray_optics/ still says TODO"), found
    tests = [f"tests/{name}" for name in CONTRACTS]
    ran = python(root, "-m", "pytest", "-q", "-k", "02 or ray_optics", "-p", "no:cacheprovider", *tests)
    failed = re.findall(r"(?m)^FAILED tests/[\w/]*/(\S+)", ran)
    assert failed == MISSING and int(re.search(r"(\d+) passed", ran)[1]) > 20, ran
