"""Texts become notebooks: what is stored, what is refused, and what is reported as out of step."""

import base64
import json
import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from over_tables import over

pytest.importorskip("jupytext")
pytest.importorskip("nbclient")

from course.authoring import build as course_build
from course.authoring import quotes
from course.authoring.build import BuildError, Job, jobs, read_source
from course.authoring.building import answer, parse
from course.authoring.in_step import differences, not_canonical, orphans
from course.base.notebooks import ROOT, TARGETS
from course.kernel.saving import ASLEEP, WIDGET
from engine.viz import NO_PICTURE

LESSON = """\
# A stand-in

```{code-cell} ipython3
import os
import sys
import warnings
from pathlib import Path

import beside_the_course

print(Path.cwd().name, os.get_terminal_size.__name__, os.environ["COLUMNS"])
print({"an", "unordered", "set", "of", "words"})
```

```{code-cell} ipython3
first, second = object(), object()
print(first, second, first)
warnings.warn("mind the step")
print("done")
```

Two Markdown cells in a row.

+++ {"tags": ["aside"]}

The second, with a tag.

```{code-cell} ipython3
:tags: [raises-exception]

import json

json.loads("{")
```

```{code-cell} ipython3
import matplotlib.pyplot as plt

plt.plot([1, 2])
plt.show()
print("after the picture")
```

```{code-cell} ipython3
from ipywidgets import IntSlider

from course.pictures import picture, show

figure, axes = plt.subplots()
axes.plot([1, 2])
show(figure, 'A line "from" 1 to 2')
```

```{code-cell} ipython3
display(IntSlider()._repr_mimebundle_() | picture(b"<svg/>", "A box"), raw=True)
```
"""

SOLUTION = """\
# Exercises

```{code-cell} ipython3
---
nbgrader:
  grade: false
  grade_id: twice
  locked: false
  schema_version: 3
  solution: true
  task: false
---
def twice(x):
    ### BEGIN SOLUTION
    return x + x
    ### END SOLUTION
```

```{code-cell} ipython3
print(twice(21))
```
"""


def place(root: Path, text: str, name: str = "05_standin", text_name: str = "lesson.md") -> Path:
    path = root / "course/lessons" / name / text_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def cell(source: str, *options: str) -> str:
    return "\n".join(["```{code-cell} ipython3", *options, *([""] if options else []), source, "```", ""])


def stored(root: Path, name: str = "05_standin", folder: str = "notebooks"):
    return nbformat.read(root / folder / f"{name}.ipynb", as_version=4)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of one lesson, built."""
    root = tmp_path_factory.mktemp("course")
    (root / "beside_the_course.py").touch()
    (root / "course").mkdir(parents=True)
    shutil.copy(ROOT / "course/pictures.py", root / "course")
    place(root, LESSON)
    assert answer(parse([]), root) == 0
    return root


@pytest.fixture
def outputs(course):
    return [cell.outputs for cell in stored(course).cells if cell.cell_type == "code"]


@pytest.fixture
def in_step(course):
    """The same course; a test may spoil it."""
    notebook, text = course / "notebooks/05_standin.ipynb", course / "course/lessons/05_standin/lesson.md"
    kept = {path: path.read_bytes() for path in (notebook, text)}
    yield course
    for path, content in kept.items():
        path.write_bytes(content)


# What is stored


@pytest.mark.slow
def test_a_second_build_leaves_the_same_bytes(course):
    notebook = course / "notebooks/05_standin.ipynb"
    before = notebook.read_bytes()
    notebook.unlink()
    assert answer(parse(["5"]), course) == 0
    assert notebook.read_bytes() == before


def test_cells_run_in_the_notebooks_folder_with_the_course_importable_and_a_fixed_width(outputs):
    assert outputs[0][0].text.splitlines()[0] == "notebooks get_terminal_size 80"


def test_the_metadata_name_no_version_of_python(course):
    nb = stored(course)
    assert nb.metadata == course_build.METADATA
    assert all(set(cell.metadata) <= {"tags"} for cell in nb.cells)


def test_a_lesson_begins_with_links_to_its_neighbours_the_contents_and_its_exercises(tmp_path):
    for name, title in (("00_a", "First: words"), ("01_b", "Second"), ("02_c", "Third")):
        place(tmp_path, f"# {name[:2]} {title}\n", name)
    place(tmp_path, "# 01 Second: exercises\n", "01_b", "exercises.md")
    notebooks = [course_build.skeleton(job) for job in jobs(tmp_path) if job.target.folder == "notebooks"]
    assert [nb.cells[0].source for nb in notebooks] == [
        "[Contents](#The-lessons) · **Next:** [01 Second](01_b.ipynb)",
        "**Previous:** [00 First](00_a.ipynb) · [Contents](00_a.ipynb#The-lessons) · "
        "**Next:** [02 Third](02_c.ipynb) · [Exercises](../my_exercises/01_b.ipynb)",
        "**Previous:** [01 Second](01_b.ipynb) · [Contents](00_a.ipynb#The-lessons)",
    ]
    assert all(nb.cells[1].source.startswith("# 0") for nb in notebooks)


def test_links_that_were_saved_into_a_text_are_made_anew(tmp_path):
    place(tmp_path, "# 00 First\n", "00_a")
    saved = place(tmp_path, '+++ {"tags": ["navigation"]}\n\n[old](old.ipynb)\n\n+++\n\n# 01 Second\n', "01_b")
    assert [cell.source for cell in read_source(saved)[0].cells] == ["# 01 Second"]
    assert not_canonical(saved)  # `build --format` takes them out
    (_, job) = jobs(tmp_path)
    assert [cell.source[:9] for cell in course_build.skeleton(job).cells] == ["**Previou", "# 01 Seco"]


def test_a_cell_that_fails_below_the_links_is_named_with_its_line(tmp_path, capsys):
    place(tmp_path, "# 00 First\n", "00_a")
    place(tmp_path, f"# 01 Second\n\n{cell('1 / 0')}", "01_b")
    assert answer(parse(["1"]), tmp_path) == 1
    assert "course/lessons/01_b/lesson.md, line 4, cell 3: ZeroDivisionError" in capsys.readouterr().err


def test_memory_addresses_become_fixed_and_stay_distinct(outputs):
    first, second, again = outputs[1][0].text.splitlines()[0].split("> <")
    assert first.removeprefix("<") == again.removesuffix(">") == "object object at 0x7f0000000010"
    assert second == "object object at 0x7f0000000020"


def test_a_warning_names_the_cell_and_no_file(outputs):
    stdout, stderr = outputs[1]
    assert stdout.text.endswith("done\n")
    assert stderr.text.splitlines()[0] == "<cell>:3: UserWarning: mind the step"


def test_a_traceback_keeps_the_notebooks_frames_and_drops_the_librarys(outputs):
    (error,) = outputs[2]
    text = course_build.ANSI.sub("", "\n".join(error.traceback))
    assert error.ename == "JSONDecodeError"
    assert "Cell In[3], line 3" in text
    assert text.endswith(f"JSONDecodeError: {error.evalue}")
    assert "File " not in text and os.sep + "json" not in text


def test_a_picture_names_no_program_and_what_follows_it_stays_after_it(outputs):
    picture, text = outputs[3]
    assert b"matplotlib" not in base64.b64decode(picture.data["image/png"]).lower()
    assert text.text == "after the picture\n"


def test_pictures_without_comments_still_decode(outputs):
    image = pytest.importorskip("PIL.Image")
    import io

    assert image.open(io.BytesIO(base64.b64decode(outputs[3][0].data["image/png"]))).convert("RGB").size[0] > 100


def test_a_figure_is_stored_with_its_words(outputs):
    (figure,) = outputs[4]
    assert set(figure.data) == {"text/plain", "text/html"}
    assert figure.data["text/plain"] == 'A line "from" 1 to 2'
    pattern = r'<img alt="A line &quot;from&quot; 1 to 2" width="(\d+)" .* src="(.*)">'
    width, address = re.fullmatch(pattern, figure.data["text/html"]).groups()
    kind, data = address.split(",")
    assert kind == "data:image/png;base64"
    assert int.from_bytes(base64.b64decode(data)[16:20], "big") // 2 == int(width)


def test_an_interactive_figure_is_stored_as_its_static_picture(course, outputs):
    (figure,) = outputs[5]
    svg = base64.b64encode(b"<svg/>").decode()
    assert figure.data == {
        "text/plain": "A box",
        "text/html": f'{ASLEEP}<img alt="A box" style="max-width: 100%" src="data:image/svg+xml;base64,{svg}">',
    }
    assert "widgets" not in stored(course).metadata
    assert WIDGET not in (course / "notebooks/05_standin.ipynb").read_text(encoding="utf-8")


def test_a_new_cell_leaves_the_other_cells_ids(tmp_path):
    before = read_source(place(tmp_path, cell("a = 1") + "\n" + cell("a = 2") + "\n" + cell("a = 1")))[0].cells
    after = read_source(place(tmp_path, cell("new = 0") + "\n" + cell("a = 1") + "\n" + cell("a = 2")))[0].cells
    assert [cell.id for cell in after[1:]] == [cell.id for cell in before[:2]]
    assert len({cell.id for cell in before}) == 3


def test_the_kernel_is_the_running_interpreter_whatever_the_user_registered(tmp_path, monkeypatch):
    spec = tmp_path / "jupyter/kernels/python3/kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["no-such-program"], "display_name": "x", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    place(tmp_path, cell("import sys\nprint(sys.executable)"))
    assert answer(parse([]), tmp_path) == 0
    assert stored(tmp_path).cells[0].outputs[0].text.strip() == sys.executable


# What stops a build


@over(
    "source, options, shown",
    [
        (
            "def f(a):\n    return a / 0\n\nf(3)",
            (),
            ["ZeroDivisionError: division by zero", "----> 2     return a / 0"],
        ),
        ("a = 1", (":tags: [raises-exception]",), ["tagged raises-exception, but it raised nothing", "    a = 1"]),
        ("from ipywidgets import IntSlider\nIntSlider()", (), ["a widget with no static picture", "    IntSlider()"]),
        (
            f"""display({{"text/html": '<img alt="a" src="{NO_PICTURE}">', "text/plain": "a"}}, raw=True)""",
            (),
            ["there is no Graphviz here"],
        ),
        ("import os\nos._exit(3)", (), ["the kernel died", "    os._exit(3)"]),
    ],
)
def test_a_cell_that_goes_wrong_is_shown_and_the_old_notebook_stays(tmp_path, capsys, source, options, shown):
    place(tmp_path, "# Title\n\n" + cell("b = 1") + "\n" + cell(source, *options))
    notebook = tmp_path / "notebooks/05_standin.ipynb"
    notebook.parent.mkdir()
    notebook.write_text("the old one")
    assert answer(parse([]), tmp_path) == 1
    message = capsys.readouterr().err
    assert message.startswith("course/lessons/05_standin/lesson.md, line 8, cell 3: ")
    assert all(line in message for line in shown), message
    assert notebook.read_text() == "the old one"
    assert [path.name for path in notebook.parent.iterdir()] == [notebook.name]


def test_metadata_that_cannot_be_read_name_the_line(tmp_path, capsys):
    place(tmp_path, "# Title\n\n```{code-cell} ipython3\n:tags: [\n\na = 1\n```\n")
    assert answer(parse([]), tmp_path) == 1
    assert "05_standin/lesson.md: Code cell 1 at line 3 could not be read" in capsys.readouterr().err


# What is out of step


def check(root: Path, capsys) -> tuple[int, str]:
    capsys.readouterr()
    return answer(parse(["--check"]), root), capsys.readouterr().out


def test_a_fresh_build_is_in_step(in_step, capsys):
    assert check(in_step, capsys) == (0, "1 notebooks are in step with their texts.\n")


def test_an_edited_text_is_reported_by_cell(in_step, capsys):
    place(in_step, LESSON.replace("Two Markdown cells", "Some Markdown cells"))
    assert check(in_step, capsys) == (1, "notebooks/05_standin.ipynb: cell 4: its source differs\n")


def test_an_edited_notebook_is_reported_by_cell(in_step, capsys):
    nb = stored(in_step)
    nb.cells[4].metadata.tags = []
    nb.cells[1].execution_count = None
    nb.cells.append(nbformat.v4.new_code_cell())
    nbformat.write(nb, in_step / "notebooks/05_standin.ipynb")
    status, report = check(in_step, capsys)
    assert status == 1
    assert [line.removeprefix("notebooks/05_standin.ipynb: ") for line in report.splitlines()] == [
        "it has 10 cells, the text 9",
        "cell 2: it has not been executed",
        "cell 5: its metadata differs",
    ]


def test_missing_broken_and_orphaned_notebooks_are_reported(tmp_path, capsys):
    place(tmp_path, LESSON, "01_missing")
    place(tmp_path, LESSON, "02_broken")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/02_broken.ipynb").write_text("{")
    (tmp_path / "notebooks/03_orphan.ipynb").write_text("{}")
    status, report = check(tmp_path, capsys)
    assert status == 1
    missing, broken, orphan = report.splitlines()
    assert missing == "notebooks/01_missing.ipynb has not been built from course/lessons/01_missing/lesson.md"
    assert broken.startswith("notebooks/02_broken.ipynb is not a notebook")
    assert orphan == "notebooks/03_orphan.ipynb has no text that it is made from"


def test_formatting_gives_the_text_that_jupyterlab_saves(tmp_path, capsys):
    header, metadata = "---\njupytext:\n  cell_metadata_filter: all\n---\n", '---\ntags: [b]\nexempt: "why"\n---'
    source = place(tmp_path, header + f"# Title\n\n+++\n\n```{{code-cell}}\n{metadata}\na = 1\n```\n")
    before = read_source(source)[0]
    assert not_canonical(source)
    assert answer(parse(["--format"]), tmp_path) == 0
    assert not not_canonical(source)
    assert read_source(source)[0] == before
    text = "# Title\n\n```{code-cell} ipython3\n:exempt: why\n:tags: [b]\n\na = 1\n```\n"
    assert source.read_text(encoding="utf-8") == text


def test_looking_at_a_notebook_in_jupyterlab_and_saving_it_leaves_its_text_alone(tmp_path):
    from jupytext import TextFileContentsManager

    # The newest is the last.
    for name in ("jupytext.toml", "course/lessons/05_graph/lesson.md", "notebooks/05_graph.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    text = tmp_path / "course/lessons/05_graph/lesson.md"
    os.utime(text, (0, 0))
    before = text.read_bytes()
    manager = TextFileContentsManager(root_dir=str(tmp_path))
    model = manager.get("notebooks/05_graph.ipynb")
    for cell in model["content"]["cells"]:
        cell["metadata"] |= {"trusted": True, "scrolled": False, "jp-MarkdownHeadingCollapsed": True}
    manager.save(model, "notebooks/05_graph.ipynb")
    assert text.read_bytes() == before
    model["content"]["cells"][0]["source"] = "# Another title"
    manager.save(model, "notebooks/05_graph.ipynb")
    assert text.read_text(encoding="utf-8").startswith("# Another title\n")


# Which lessons


@over("wanted", ["5", "05", "graph", "05_graph"])
def test_a_lesson_is_chosen_by_number_or_name(tmp_path, wanted):
    for name in ("04_autograd", "05_graph", "07_graph_life", "16_mixed_precision"):
        place(tmp_path, "# Title\n", name)
        place(tmp_path, "# Title\n", name, "exercises.md")
    assert [job.named(job.notebook) for job in jobs(tmp_path, [wanted, wanted])] == [
        "notebooks/05_graph.ipynb",
        "exercises/05_graph.ipynb",
        "solutions/05_graph.ipynb",
    ]


def test_an_unknown_lesson_is_refused_with_those_there_are(tmp_path):
    place(tmp_path, "# Title\n", "04_autograd")
    with pytest.raises(BuildError, match="there is no lesson '7' \\(lessons: 04_autograd\\)"):
        jobs(tmp_path, ["7"])


# Exercises


@pytest.fixture(scope="module")
def exercise(tmp_path_factory):
    pytest.importorskip("nbgrader", reason="nbgrader takes the solutions out")
    root = tmp_path_factory.mktemp("exercise")
    place(root, SOLUTION, text_name="exercises.md")
    assert answer(parse([]), root) == 0
    return root


def test_the_blank_notebook_holds_three_dots_and_no_outputs(exercise):
    function, use = stored(exercise, folder="exercises").cells[1:]
    assert function.source == "def twice(x):\n    ..."
    assert function.metadata.nbgrader.grade_id == "twice"
    assert function.outputs == use.outputs == [] and function.execution_count is use.execution_count is None


def test_the_solution_is_executed_and_keeps_nbgraders_metadata(exercise):
    function, use = stored(exercise, folder="solutions").cells[1:]
    assert "return x + x" in function.source and function.metadata.nbgrader.solution
    assert use.outputs[0].text == "42\n"


def test_exercise_and_solution_share_their_cells_ids(exercise):
    ids = [[cell.id for cell in stored(exercise, folder=folder).cells] for folder in ("exercises", "solutions")]
    assert ids[0] == ids[1]


def test_a_solution_outside_a_cell_to_fill_in_is_refused(tmp_path):
    pytest.importorskip("nbgrader", reason="nbgrader takes the solutions out")
    source = place(tmp_path, cell("### BEGIN SOLUTION\na = 1\n### END SOLUTION"), text_name="exercises.md")
    with pytest.raises(BuildError, match="05_standin/exercises.md: Solution region detected in a non-solution cell"):
        course_build.skeleton(Job(tmp_path, source, TARGETS[1]))


CHECK = 'from course import check\n\ncheck("05.1", {})'


def test_a_key_and_a_check_become_nbgraders_metadata(tmp_path):
    pytest.importorskip("nbgrader", reason="nbgrader locks the cells")
    answer = cell("### BEGIN SOLUTION\na = 1\n### END SOLUTION", ":exercise: '05.1'")
    check = cell(CHECK.format("a"), ":tags: [raises-exception]")
    source = place(tmp_path, f"# Title\n\n{answer}\n{check}", text_name="exercises.md")
    for target in TARGETS[1:]:
        _, filled, checked = course_build.skeleton(Job(tmp_path, source, target)).cells
        given = {"schema_version": 3, "task": False}
        assert filled.metadata.nbgrader == given | {
            "grade": False, "grade_id": "exercise-05-1", "locked": False, "solution": True
        }  # fmt: skip
        assert checked.metadata.nbgrader == given | {
            "grade": True, "grade_id": "check-05-1", "locked": True, "solution": False, "points": 1
        }  # fmt: skip


def test_metadata_that_the_build_adds_are_not_written_back_to_the_text(tmp_path):
    source = place(tmp_path, cell("a = 1", ":exercise: '05.1'"), text_name="exercises.md")
    nb = course_build.skeleton(Job(tmp_path, source, TARGETS[2]))
    assert "nbgrader" in nb.cells[0].metadata
    assert course_build.write_source(nb) == source.read_text(encoding="utf-8")


def test_a_check_without_the_tag_that_lets_a_run_go_on_is_refused_with_its_line(tmp_path):
    source = place(tmp_path, "# Title\n\n" + cell(CHECK.format(1)), text_name="exercises.md")
    with pytest.raises(BuildError, match="05_standin/exercises.md, line 4: .* tagged raises-exception"):
        course_build.skeleton(Job(tmp_path, source, TARGETS[1]))


def test_an_exercise_without_checks_is_refused(tmp_path):
    source = place(tmp_path, cell("a = 1", ":exercise: '05.77'"), text_name="exercises.md")
    with pytest.raises(BuildError, match="There is no exercise '05.77'"):
        course_build.skeleton(Job(tmp_path, source, TARGETS[1]))


def test_a_worked_solution_that_its_check_does_not_accept_stops_the_build(tmp_path, capsys, monkeypatch):
    pytest.importorskip("nbgrader", reason="nbgrader takes the solutions out")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    place(tmp_path, cell(CHECK.format("(5.0, 2.0)"), ":tags: [raises-exception]"), text_name="exercises.md")
    assert answer(parse([]), tmp_path) == 1
    message = capsys.readouterr().err
    assert "line 2, cell 1: the check fails" in message and "Two paths lead from the root to a." in message


# The course itself


@over("job", jobs())
def test_every_notebook_is_what_its_text_gives(job):
    assert differences(job) == []


@over("source", sorted({job.source for job in jobs()}))
def test_every_text_is_as_jupyterlab_saves_it(source):
    assert not not_canonical(source), f"python -m course build --format {source.parent.name}"


def test_every_notebook_has_a_text():
    assert orphans(ROOT) == []


def test_lines_quoted_from_the_engine_are_found_there_and_lost_ones_are_told(tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine/tiny.py").write_text("import sys\n\ndef f(x):\n    if x:\n        return 1\n", encoding="utf-8")
    text = "Two lines of [`tiny`](../engine/tiny.py):\n\n```python\nif x:\n    return 1\n```\nand more."
    with_line = text.replace("tiny.py)", "tiny.py#L4)")
    assert quotes.with_lines(text, tmp_path) == quotes.with_lines(with_line, tmp_path) == with_line
    with pytest.raises(ValueError, match="tiny.py has no such lines any more"):
        quotes.with_lines(text.replace("return 1", "return 2"), tmp_path)
    other = "A program of yours:\n\n```python\nif x:\n    return 2\n```"
    assert quotes.with_lines(other, tmp_path) == other


# A number that names its output

NAMING = """\
# A lesson

It ends at {{out}}`walk.{}:.1f`.

```{{code-cell}} ipython3
:tags: [out-walk]

print(3, 0.25)
```
"""


def test_a_number_that_a_sentence_names_is_written_and_never_lost(tmp_path, capsys):
    from jupytext import TextFileContentsManager

    shutil.copyfile(ROOT / "jupytext.toml", tmp_path / "jupytext.toml")
    source = place(tmp_path, NAMING.format(2))
    assert answer(parse([]), tmp_path) == 0
    written = "# A lesson\n\nIt ends at 0.2<!-- out: walk.2:.1f -->."
    assert stored(tmp_path).cells[0].source == written
    assert check(tmp_path, capsys) == (0, "1 notebooks are in step with their texts.\n")
    # Looked at in JupyterLab and saved; then by a program that takes the notebook for the newer of the two.
    os.utime(source, (0, 0))
    manager = TextFileContentsManager(root_dir=str(tmp_path))
    manager.save(manager.get("notebooks/05_standin.ipynb"), "notebooks/05_standin.ipynb")
    assert source.read_text(encoding="utf-8") == NAMING.format(2)
    nb = stored(tmp_path)
    nb.cells[0].source = written.replace("ends", "does end")
    place(tmp_path, course_build.write_source(nb))
    assert answer(parse(["--format"]), tmp_path) == 0
    assert source.read_text(encoding="utf-8") == NAMING.format(2).replace("ends", "does end")


def test_a_number_that_is_not_the_outputs_is_out_of_step_and_one_without_an_output_is_refused(tmp_path, capsys):
    place(tmp_path, NAMING.format(2))
    assert answer(parse([]), tmp_path) == 0
    path = tmp_path / "notebooks/05_standin.ipynb"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("at 0.2<", "at 0.3<"), encoding="utf-8")
    assert check(tmp_path, capsys) == (1, "notebooks/05_standin.ipynb: cell 1: its source differs\n")
    path.write_text(text.replace("3 0.25", "3"), encoding="utf-8")
    says = "the cell out-walk shows 1 number\n"
    assert check(tmp_path, capsys) == (1, f"notebooks/05_standin.ipynb: {says}")
    place(tmp_path, NAMING.format(3))
    assert answer(parse([]), tmp_path) == 1
    assert capsys.readouterr().err == "course/lessons/05_standin/lesson.md: the cell out-walk shows 2 numbers\n"
