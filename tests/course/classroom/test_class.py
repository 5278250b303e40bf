"""`python -m course class`: a class of a few people, from its roster to its grades, with submissions as they arrive."""

import ast
import csv
import datetime
import io
import json
import os
import shutil
import stat
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from over_tables import over

pytest.importorskip("nbgrader")

from course.base.environment import Problem
from course.base.notebooks import ROOT
from course.classroom import alike, arriving, folder, late, tables
from course.commands import cli
from course.judging import exercises

pytestmark = pytest.mark.filterwarnings("ignore")

NAME = "05_graph"
ROSTER = """\
First name,Last name,ID number,Email address
Anna,Müller,amueller,anna@uni.example
Björn,O'Neil-Sand,boneil,bjorn@uni.example
Chen,Li,cli,chen@uni.example
Dora,Park,dpark,dora@uni.example
Kim,Lee,klee1,kim1@uni.example
Kim,Lee,klee2,kim2@uni.example
Zoe,Absent,zabsent,zoe@uni.example
"""
# A way of its own, and the same with other names and a remark.
OWN = """\
def count_nodes(node):
    if node is None:
        return 0
    known, row = {node}, [node]
    for here in row:
        for parent, _ in here.next_functions:
            if parent is not None and parent not in known:
                known.add(parent)
                row.append(parent)
    return len(known)
"""
COPIED = OWN.replace("known", "visited").replace("row", "todo").replace("here", "n").replace(
    "    for n in", "    # my own idea\n    for n in"
)  # fmt: skip
WRONG = "def division_backward(arriving, x, y):\n    return 1 / y, -x / y**2"
SOLVED = {key: exercises.cell(key, "solutions") for key in ("05.1", "05.2", "05.3")}  # 05.1 as it is published


PUBLISHED = ROOT / "exercises" / f"{NAME}.ipynb"
HANDED_OUT = {}  # the path of the class's own, once there is one


def notebook(answers, change=lambda nb: None, of=None):
    """A submission, as JupyterLab saves it."""
    nb = json.loads((of or HANDED_OUT.get(NAME, PUBLISHED)).read_text(encoding="utf-8"))
    for cell in nb["cells"]:
        cell["source"] = answers.get(cell["metadata"].get("exercise"), cell["source"])
    change(nb)
    return json.dumps(nb).encode()


def moodle_entry(person, file, content, *when):
    return f"{person}_assignsubmission_file_{file}", content, (2027, *when)


def check_made_easy(nb):
    for cell in nb["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "check-05-3":
            cell["source"] = "pass"


def archive(path, entries):
    """A zip file of (name, content, time of this computer's clock)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content, when in entries:
            file.writestr(zipfile.ZipInfo(name, when), content, zipfile.ZIP_DEFLATED)
    return path


def own(made):
    """The class's own answer to 05.1, from its bank."""
    return ast.literal_eval(json.loads((made / "bank" / f"{NAME}.json").read_text(encoding="utf-8"))["05.1"]["answer"])


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Story(NamedTuple):
    """A class, and what each verb has printed."""

    folder: Path
    said: dict[str, Ran]


@pytest.fixture(scope="module")
def verb(tmp_path_factory):
    """`python -m course class ...` in this process, for a class that no other test knows of."""
    import contextlib

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "RECENT", tmp_path_factory.mktemp("recent") / "class.txt")
        # nbgrader asks the program, for three seconds of computing.
        patch.setattr("nbgrader.api.get_alembic_version", lambda: "newest" if shutil.which("alembic") else None)
        before = dict(os.environ)

        def run(*argv):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = cli.main(["class", *map(str, argv)])
            return Ran(code, out.getvalue(), err.getvalue())

        yield run
        os.environ.clear()  # of what the verbs have added
        os.environ.update(before)


@pytest.fixture(scope="module")
def story(verb, tmp_path_factory):
    """All five verbs once, as a teacher uses them."""
    place, said = tmp_path_factory.mktemp("teacher"), {}
    (place / "students.csv").write_text(ROSTER, encoding="utf-8")
    made = place / "class"
    said["new"] = verb("new", made, "--roster", place / "students.csv")
    said["release"] = verb("release", "5", "--due", "2027-01-31", "--late", "10% a day", "--solutions", "2027-02-07")
    HANDED_OUT[NAME] = made / "release" / NAME / f"{NAME}.ipynb"
    mine, _ = own(made)
    copied_and_easy = notebook({"05.2": OWN, "05.3": WRONG}, check_made_easy)
    no_cells = b'{"cells": [{"cell_type": 3}], "nbformat": 4}'
    moodle = archive(
        place / "submissions.zip",
        [
            moodle_entry("Anna Müller_101", "/05_graph.ipynb", notebook({"05.3": WRONG}), 1, 28, 9, 0, 0),
            moodle_entry("Anna Müller_101", "/05_graph (1).ipynb", notebook(SOLVED), 1, 30, 9, 0, 0),
            moodle_entry("Group 2-Björn O'Neil-Sand_102", "my homework.ipynb", copied_and_easy, 1, 31, 20, 0, 0),
            moodle_entry("Kim Lee_105", "/05_graph.ipynb", notebook({}), 1, 29, 9, 0, 0),
            moodle_entry("Dora Park_104", "/05_graph.ipynb", b'{"cells": [', 1, 29, 9, 0, 0),
            moodle_entry("Dora Park_104", "/own.ipynb", no_cells, 1, 29, 9, 0, 0),
            moodle_entry("Dora Park_104", "/notes.pdf", b"%PDF", 1, 29, 9, 0, 0),
            moodle_entry("No Body_199", "/05_graph.ipynb", notebook({}), 1, 29, 9, 0, 0),
        ],
    )
    canvas = archive(
        place / "canvas.zip",
        [
            ("lichen_LATE_4711_9001_05_graph-1.ipynb", notebook({"05.2": COPIED}, of=PUBLISHED), (2027, 2, 9, 9, 0, 0)),
            (
                "parkdora_4712_9002_05_graph.ipynb",
                notebook({"05.1": f"slopes = {mine}, 1000.0"}),
                (2027, 2, 9, 9, 0, 0),
            ),
        ],
    )
    said["moodle"] = verb("collect", moodle)
    said["canvas"] = verb("collect", canvas)
    said["who"] = verb("collect", moodle, "--who", "Kim Lee_105=klee2")
    said["grade"] = verb("grade", "05")
    said["to moodle"] = verb("export", "05", "--moodle")
    said["to canvas"] = verb("export", "05", "--canvas")
    return Story(made, said)


def points(story):
    rows = csv.DictReader(io.StringIO((story.folder / "exports" / f"{NAME} moodle.csv").read_text(encoding="utf-8")))
    return {row["ID number"]: row[f"Assignment: {NAME} (Real)"] for row in rows}


@pytest.mark.slow
def test_every_verb_succeeds_and_says_what_comes_next(story):
    assert {name: (ran.code, ran.err) for name, ran in story.said.items()} == dict.fromkeys(story.said, (0, ""))
    nexts = {"new": "class release", "release": "class collect", "moodle": "class grade", "grade": "class export"}
    assert all(after in story.said[name].out.splitlines()[-1] for name, after in nexts.items())
    assert "Upload multiple feedback files" in story.said["to moodle"].out


def test_what_is_handed_out_is_the_blank_notebook_and_says_when_it_is_due(story):
    with zipfile.ZipFile(story.folder / "handout" / f"{NAME}.zip") as file:
        assert file.namelist() == [f"{NAME}/{NAME}.ipynb", f"{NAME}/README.txt"]
        nb = json.loads(file.read(f"{NAME}/{NAME}.ipynb"))
        about = file.read(f"{NAME}/README.txt").decode()
    assert "Due on 2027-01-31 23:59; who is late loses 10 %" in about
    assert "worked solutions from 2027-02-07 00:00 on" in about and "Exercise 05.1: your class has numbers" in about
    blank = json.loads((ROOT / "exercises" / f"{NAME}.ipynb").read_text(encoding="utf-8"))["cells"]
    both = [("".join(mine["source"]), "".join(its["source"])) for mine, its in zip(nb["cells"], blank, strict=True)]
    question, check = (pair for pair in both if pair[0] != pair[1])  # of the one exercise whose answer is a value
    assert question[0].startswith("## 5.1 ") and check[0].startswith(check[1].rstrip().removesuffix(")"))
    assert nb["metadata"]["undertorch"]["class"]["own"] == ["05.1"]


def test_a_class_has_numbers_of_its_own_and_the_published_answer_is_wrong(story):
    assert own(story.folder) != exercises.find("05.1").answer
    text = (story.folder / "release" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    assert str(own(story.folder)) not in text and "sealed=" in text
    page = (story.folder / "feedback/amueller" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "Exercise 05.1: not yet." in page and "Exercise 05.3: correct." in page


def test_what_is_right_in_part_has_a_part_of_the_points(story):
    page = (story.folder / "feedback/dpark" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "0.5 of 1 points: some of the entries are right." in page


def test_the_report_says_who_handed_in_the_worked_solution(story):
    report = (story.folder / "reports" / f"{NAME}.md").read_text(encoding="utf-8")
    assert "- 05.2: Anna Müller (amueller)" in report


def test_releasing_again_keeps_the_numbers(story, verb):
    before = (
        (story.folder / "bank" / f"{NAME}.json").read_bytes(),
        (story.folder / "source" / NAME / f"{NAME}.ipynb").read_bytes(),
    )
    assert "keeps the one" not in verb("release", "05", "--solutions", "2027-02-08").out
    assert before == (
        (story.folder / "bank" / f"{NAME}.json").read_bytes(),
        (story.folder / "source" / NAME / f"{NAME}.ipynb").read_bytes(),
    )


def test_the_newest_notebook_counts_under_any_name_and_the_older_one_is_kept(story):
    submitted = story.folder / "submitted"
    assert (submitted / "amueller" / NAME / f"{NAME}.ipynb").read_bytes() == notebook(SOLVED)
    (older,) = (story.folder / "older/amueller" / NAME).iterdir()
    assert older.name == f"{NAME} 2027-01-28 09.00.00.ipynb" and older.read_bytes() == notebook({"05.3": WRONG})
    assert b"def count_nodes" in (submitted / "boneil" / NAME / f"{NAME}.ipynb").read_bytes()


def test_what_could_not_be_taken_is_named_one_by_one_and_kept(story):
    out = story.said["moodle"].out
    assert "'No Body_199' is nobody in the class" in out
    assert "'Kim Lee_105' could be klee1 or klee2" in out
    assert "Dora Park_104_assignsubmission_file_/05_graph.ipynb: empty or broken" in out
    assert "Dora Park_104_assignsubmission_file_/own.ipynb: " in out
    assert "notes.pdf: no notebook" in out
    (kept,) = (story.folder / "received").glob("*submissions.zip")  # once, though it was collected twice
    with zipfile.ZipFile(kept) as file:
        assert len(file.namelist()) == 8


def test_who_is_missing_is_listed(story):
    assert "5 of 7 are there. Missing: Zoe Absent (zabsent), Kim Lee (klee1)." in story.said["who"].out


def test_collecting_twice_changes_nothing(story):
    assert "3 there already, 1 new." in story.said["who"].out


def test_canvas_marks_count_and_the_time_of_its_archive_does_not(story):
    assert "late, as Canvas says, but not by how much" in story.said["canvas"].out
    assert "Late: Chen Li (cli) by less than an hour." in story.said["grade"].out
    assert not (story.folder / "submitted/dpark" / NAME / "timestamp.txt").exists()


def test_points_come_from_the_answers_and_late_ones_cost(story):
    assert points(story) == {
        "amueller": "3", "boneil": "2", "cli": "0.7", "dpark": "0.5", "klee1": "", "klee2": "0", "zabsent": "",
    }  # fmt: skip


def test_an_honest_submission_is_graded_without_a_warning_and_a_changed_check_is_named(story):
    out = story.said["grade"].out
    assert "checksum" not in out
    lines = [line.strip() for line in out.splitlines() if line.startswith("    ")]
    assert sorted(lines) == [
        "05.1 was answered in the course's own notebook, which has other numbers than the class's",
        "check-05-3 was changed; the original was graded",
    ]


def test_the_report_counts_what_is_wrong_and_names_equal_answers(story):
    report = (story.folder / "reports" / f"{NAME}.md").read_text(encoding="utf-8")
    assert "| 05.2 | 3 | 0 | 2 |" in report and "| 05.3 | 1 | 1 | 3 |" in report
    assert "- 1 x " in report and "Multiply each by what arrives." in report
    assert "| Björn O'Neil-Sand (boneil), Chen Li (cli) | 05.2 | none |" in report
    assert "amueller), " not in report  # the worked solution is nobody's copy


def test_canvas_gets_its_own_columns(story):
    rows = list(csv.reader((story.folder / "exports" / f"{NAME} canvas.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", NAME]
    assert rows[1] == ["    Points Possible", "", "", "", "", "13"]
    assert ["Li, Chen", "4711", "", "cli", "", "0.7"] in rows  # the number is from its archive's names


def test_feedback_goes_back_under_moodles_names(story):
    with zipfile.ZipFile(story.folder / "exports" / f"{NAME} feedback for moodle.zip") as file:
        names = file.namelist()
        page = file.read(names[0]).decode()
    assert names[0] == f"Anna Müller_101_assignsubmission_file_/{NAME}.html" and len(names) == 3
    assert "Exercise 05.3: correct." in page and "hidden=True" not in page


def test_moodles_worksheet_is_filled_in_and_what_is_not_ours_stays(story, verb, tmp_path):
    sheet = tmp_path / "Grades.csv"
    sheet.write_text(
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (grade)\n"
        "Participant 101,Anna Müller,anna@uni.example,Submitted,,13.00,-\n"
        "Participant 199,No Body,no@uni.example,Submitted,4.00,13.00,-\n",
        encoding="utf-8-sig",
    )
    ran = verb("export", "05", "--moodle", sheet)
    text = (story.folder / "exports" / f"{NAME} moodle.csv").read_text(encoding="utf-8")
    assert text.splitlines()[1:] == [
        "Participant 101,Anna Müller,anna@uni.example,Submitted,3,13.00,-",
        "Participant 199,No Body,no@uni.example,Submitted,4.00,13.00,-",
    ]
    assert "left as they were: No Body" in ran.out
    sheet.write_text(sheet.read_text(encoding="utf-8").replace("13.00", "100.00"), encoding="utf-8")
    assert "set its maximum grade to 13" in verb("export", "05", "--moodle", sheet).err
    verb("export", "05", "--moodle")


def test_canvas_gradebook_is_filled_in(story, verb, tmp_path):
    sheet = tmp_path / "gradebook.csv"
    sheet.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,Other (1),05_graph (77)\n"
        "    Points Possible,,,,,5,13\n"
        '"Li, Chen",4711,,cli@uni,A,3,\n"Student, Test",99,,,A,,\n',
        encoding="utf-8",
    )
    verb("export", "05", "--canvas", sheet)
    rows = list(csv.reader((story.folder / "exports" / f"{NAME} canvas.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0][-1] == "05_graph (77)" and [row[-1] for row in rows[1:]] == ["13", "0.7", ""]
    verb("export", "05", "--canvas")


def test_grading_again_grades_nothing_that_is_graded_and_a_new_policy_holds_at_once(story, verb):
    assert "0 graded now, 5 were graded before" in verb("grade", "05").out
    verb("release", "05", "--late", "zero")
    verb("export", "05", "--moodle")
    assert points(story)["cli"] == "0"
    verb("release", "05", "--late", "10% a day")
    verb("export", "05", "--moodle")
    assert points(story)["cli"] == "0.7"


def test_points_given_by_hand_reach_the_feedback(story, verb):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{(story.folder / 'gradebook.db').as_posix()}") as book:
        book.find_grade("check-05-4", NAME, NAME, "klee2").manual_score = 1.5
        book.find_comment("exercise-05-4", NAME, NAME, "klee2").manual_comment = "Half of the way."
        book.db.commit()
    verb("grade", "05")
    assert "Half of the way." in (story.folder / "feedback/klee2" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    verb("export", "05", "--moodle")
    assert points(story)["klee2"] == "1.5"


@over(
    "name, more",
    [
        ("zabsent/05_graph.ipynb", ()),
        ("Zoe Absent/anything.ipynb", ()),
        ("zabsent_05_graph (1).ipynb", ()),
        ("05_graph.ipynb", ("--who", "05_graph.ipynb=zabsent")),
    ],
)
def test_notebooks_in_a_folder_are_known_by_their_names_or_by_what_is_said(story, verb, tmp_path, name, more):
    path = tmp_path / "mail" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(notebook({"05.3": name}))
    ran = verb("collect", tmp_path / "mail", "--at", "2027-01-30 10:00", *more)
    assert ran.code == 0 and "Missing: Kim Lee (klee1)." in ran.out
    place = story.folder / "submitted/zabsent" / NAME
    assert (place / f"{NAME}.ipynb").read_bytes() == notebook({"05.3": name})
    expected = datetime.datetime(2027, 1, 30, 10).astimezone().astimezone(datetime.UTC)
    assert (place / "timestamp.txt").read_text(encoding="utf-8") == f"{expected:%Y-%m-%d %H:%M:%S} UTC"


def test_an_older_one_that_comes_later_does_not_replace(story, verb, tmp_path):
    old = archive(tmp_path / "old.zip", [("Anna Müller_101_assignsubmission_file_/a.ipynb", notebook({"05.3": "1"}),
                                          (2027, 1, 1, 0, 0, 0))])  # fmt: skip
    assert "1 older." in verb("collect", old).out
    assert (story.folder / "submitted/amueller" / NAME / f"{NAME}.ipynb").read_bytes() == notebook(SOLVED)


def test_a_newer_one_without_answers_does_not_replace_and_two_with_answers_are_named(story, verb, tmp_path):
    blank = notebook({}, lambda nb: nb["metadata"].update(opened="again"))
    person = "Anna Müller_101_assignsubmission_file_"
    new = archive(tmp_path / "new.zip", [(f"{person}/b.ipynb", blank, (2027, 1, 31, 0, 0, 0))])
    ran = verb("collect", new)
    assert "1 without answers." in ran.out and "without answers, which an older one has; kept in older" in ran.out
    assert (story.folder / "submitted/amueller" / NAME / f"{NAME}.ipynb").read_bytes() == notebook(SOLVED)
    assert blank in [path.read_bytes() for path in (story.folder / "older/amueller" / NAME).iterdir()]
    assert "1 there already." in verb("collect", new).out
    said = "Anna Müller (amueller): more than one notebook of 05_graph with answers; the newest counts"
    assert said in story.said["moodle"].out and said not in ran.out
    page = (story.folder / "feedback/amueller" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "More than one notebook of this lesson was handed in with answers." in page


def test_times_that_are_all_one_make_nobody_late_and_moodles_worksheet_does(story, verb, tmp_path):
    people = ("Zoe Absent_107", "Kim Lee_106")
    entries = [moodle_entry(who, "/x.ipynb", notebook({"05.3": who}), 3, 1, 12, 0, 0) for who in people]
    both = archive(tmp_path / "late.zip", entries)
    sheet = tmp_path / "Grades.csv"
    sheet.write_text(
        "Identifier,Full name,Last modified (submission)\n"
        'Participant 107,Zoe Absent,"Tuesday, 2 February 2027, 10:30 PM"\n',
        encoding="utf-8",
    )
    told = ("--who", "Kim Lee_106=klee1")
    assert "nobody counts as late" in verb("collect", both, *told).out
    assert not (story.folder / "submitted/zabsent" / NAME / "timestamp.txt").exists()
    verb("collect", both, sheet)  # the name that was told is known
    stamp = (story.folder / "submitted/zabsent" / NAME / "timestamp.txt").read_text(encoding="utf-8")
    expected = datetime.datetime(2027, 2, 2, 22, 30).astimezone().astimezone(datetime.UTC)
    assert stamp == f"{expected:%Y-%m-%d %H:%M:%S} UTC"


def test_a_roster_may_come_again(story, verb, tmp_path):
    (tmp_path / "more.csv").write_text("id;name\namueller;Anna Maier\nnewone;New One\n", encoding="utf-8")
    out = verb("new", story.folder, "--roster", tmp_path / "more.csv").out
    assert "2 people in more.csv, 1 of them new." in out and "Zoe Absent (zabsent)" in out


# --- What is refused


@over(
    "argv, says",
    [
        (["release", "99"], "Lesson '99' has no exercises. There are: 01, 02"),
        (["release", "05", "--due", "31.1.2027"], "write 2027-01-31"),
        (["release", "05", "--late", "a bit"], 'say "none", "zero", or a share'),
        (["collect", "nothing.zip"], "There is no nothing.zip."),
        (["collect", ".", "--who", "Kim"], 'write "NAME=ID"'),
        (["grade", "06"], "06_leaves has not been released"),
        (["export", "06", "--canvas"], "06_leaves has not been released"),
        (["grade", "05", "--class", "nowhere"], "is no class. Make one"),
        (["new", ROOT / "my_class"], "choose one outside of it"),
    ],
)
def test_wrong_input_is_answered_with_what_to_do(story, verb, argv, says):
    ran = verb(*argv)
    assert ran.code == 1 and says in ran.err and "Traceback" not in ran.err


def bomb(path):
    return archive(path, [("a_1_assignsubmission_file_/a.ipynb", b" " * 40_000_000, (2027, 1, 1, 0, 0, 0))])


def link(path):
    entry = zipfile.ZipInfo("Anna Müller_1_assignsubmission_file_/a.ipynb")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(entry, "/etc/passwd")
    return path


def named(name):
    return lambda path: archive(path, [(name, b"{}", (2027, 1, 1, 0, 0, 0))])


@over(
    "make, says",
    [
        (named("../../a.ipynb"), "leads out of its folder"),
        (named("/etc/a.ipynb"), "leads out of its folder"),
        (named("C:\\a.ipynb"), "leads out of its folder"),
        (named("a\\..\\..\\a.ipynb"), "leads out of its folder"),
        (link, "is a link"),
        (bomb, "grows from"),
        (lambda path: path.write_bytes(b"PK\x03\x04 broken off") and path, "is no whole zip archive"),
    ],
)
def test_a_dangerous_archive_is_refused_as_a_whole(make, says, tmp_path):
    with pytest.raises(Problem, match=says):
        arriving.pieces(make(tmp_path / "a.zip"))


def test_a_dangerous_archive_in_an_archive_costs_only_its_own_sender(tmp_path):
    inner = bomb(tmp_path / "inner.zip").read_bytes()
    good = archive(tmp_path / "good.zip", [("x.ipynb", b"{}", (2027, 1, 1, 0, 0, 0))]).read_bytes()
    when = (2027, 1, 1, 0, 0, 0)
    whole = archive(tmp_path / "a.zip", [("a_1_assignsubmission_file_/h.zip", inner, when),
                                         ("b_2_assignsubmission_file_/h.zip", good, when)])  # fmt: skip
    found, refused = arriving.pieces(whole)
    assert [piece.name for piece in found] == ["b_2_assignsubmission_file_/h.zip/x.ipynb"]
    assert [name for name, _ in refused] == ["a_1_assignsubmission_file_/h.zip"]


def test_archives_in_an_archive_have_one_limit_together(tmp_path, monkeypatch):
    monkeypatch.setattr(arriving, "MOST_BYTES", 3000)
    monkeypatch.setattr(arriving, "MOST_BYTES_IN_ALL", 7000)
    when = (2027, 1, 1, 0, 0, 0)
    inner = archive(tmp_path / "inner.zip", [(f"{n}.ipynb", b" " * 900, when) for n in range(3)]).read_bytes()
    large = archive(tmp_path / "large.zip", [(f"{n}.ipynb", b" " * 900, when) for n in range(4)]).read_bytes()
    files = [
        ("a_1_assignsubmission_file_/h.zip", large),
        *((f"b_{n}_assignsubmission_file_/h.zip", inner) for n in "234"),
    ]
    found, refused = arriving.pieces(archive(tmp_path / "a.zip", [(name, data, when) for name, data in files]))
    assert len(found) == 6 and all("/h.zip/" in piece.name for piece in found)
    assert [name[0] + name[2] for name, why in refused if "holds more than" in why] == ["a1", "b4"]


def test_an_archive_in_an_archive_in_an_archive_is_not_opened(tmp_path):
    when, data, name = (2027, 1, 1, 0, 0, 0), b"{}", "x.ipynb"
    for depth in range(20):
        data = archive(tmp_path / f"{depth}.zip", [(name, data, when)]).read_bytes()
        name = "Anna Müller_1_assignsubmission_file_/h.zip"
    found, refused = arriving.pieces(tmp_path / "19.zip")
    assert [piece.name.count(".zip") for piece in found] == [2] and not refused


def test_a_damaged_file_of_an_archive_is_named_and_the_others_are_taken(tmp_path):
    path = archive(
        tmp_path / "a.zip", [(name, os.urandom(500), (2027, 1, 1, 0, 0, 0)) for name in ("a.ipynb", "b.ipynb")]
    )
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    found, refused = arriving.pieces(path)
    assert [piece.name for piece in found] == ["b.ipynb"] and [name for name, _ in refused] == ["a.ipynb"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_in_a_folder_is_not_followed(tmp_path):
    (tmp_path / "secret.ipynb").write_text("{}", encoding="utf-8")
    (tmp_path / "given").mkdir()
    (tmp_path / "given/a.ipynb").symlink_to(tmp_path / "secret.ipynb")
    assert arriving.pieces(tmp_path / "given") == ([], [("a.ipynb", "it is a link")])


# --- Names, tables, time


@over(
    "path, platform, name, number, is_late",
    [
        ("Anna Müller_101_assignsubmission_file_/a/b.ipynb", "moodle", "Anna Müller", "101", False),
        ("Anna_B Li_101_assignsubmission_file_b_2_c.ipynb", "moodle", "Anna_B Li", "101", False),
        ("download/Teilnehmer_7_assignsubmission_onlinetext_/onlinetext.html", "moodle", "Teilnehmer", "7", False),
        ("müllerannamaria_12345_678910_05_graph-1.ipynb", "canvas", "müllerannamaria", "12345", False),
        ("doejohn_LATE_12345_678910_05_graph (2).ipynb", "canvas", "doejohn", "12345", True),
        ("LATE_anon_x7Kp2_678910_05_graph.ipynb", "canvas", "anon", "x7Kp2", True),
        ("doejohn_12345_text.html", "canvas", "doejohn", "12345", False),
        ("05_graph.ipynb", "", "05_graph.ipynb", "", False),
        ("amueller/05_graph (1).ipynb", "", "amueller/05_graph (1).ipynb", "", False),
    ],
)
def test_a_name_tells_who_sent_a_file(path, platform, name, number, is_late):
    found = arriving.sender(path)
    assert found[:4] == (platform, name, number, is_late)


def test_of_two_files_of_one_person_the_later_upload_is_known():
    names = ["li_1_11_a.ipynb", "li_1_10_a-1.ipynb", "li_1_10_a.ipynb"]
    assert max(names, key=lambda name: arriving.sender(name).order) == names[0]


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("id,first_name,last_name,email,lms_user_id\nab,A,B,a@b,7\n", [("ab", "A", "B", "a@b", "7")]),
        ("Vorname;id;Surname\nA;ab;B\n", [("ab", "", "B", "", "")]),
        ("id;name\nab;A B C\ncd;\"E, D F\"\n", [("ab", "A B", "C", "", ""), ("cd", "D F", "E", "", "")]),
        ("Student,ID,SIS User ID,SIS Login ID,Section,Final Score\n    Points Possible,,,,,\n"
         '"Li, Chen",4711,S1,cli,A,3\n"Student, Test",9,,x,A,\n', [("cli", "Chen", "Li", "", "4711")]),
        ("First name\tSurname\tUsername\tEmail address\nÄ\tB\tab\ta@b\n", [("ab", "Ä", "B", "a@b", "")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_rosters_of_nbgrader_moodle_and_canvas_are_read(text, people, encoding, tmp_path):
    (tmp_path / "r.csv").write_text(text, encoding=encoding)
    assert [tuple(person) for person in tables.roster(tmp_path / "r.csv")] == people


@over(
    "text, says",
    [
        ("first,last\nA,B\n", "no column names everybody"),
        ("id\n../a\n", "cannot be somebody's id"),
        ("id\nNUL\n", "cannot be somebody's id"),
        ("id\nab\nAB\n", "is there twice"),
        ("", "is no table"),
    ],
)
def test_a_roster_that_cannot_be_used_is_refused(text, says, tmp_path):
    (tmp_path / "r.csv").write_text(text, encoding="utf-8")
    with pytest.raises(Problem, match=says):
        tables.roster(tmp_path / "r.csv")


@over("text, hours, cost", [
    ("none", 1, 0), ("zero", 0.01, 8), ("zero", 0, 0), ("10% a day", 0.1, 0.8), ("10% a day", 24.1, 1.6),
    ("2 % per hour", 3, 0.48), ("20% once", 99, 1.6), ("50% a day", 99, 8),
])  # fmt: skip
def test_what_a_delay_costs(text, hours, cost):
    assert late.penalty(late.policy(text), 8, hours * 3600) == pytest.approx(cost)


# --- Equal answers


def test_names_comments_docstrings_and_annotations_do_not_make_an_answer_another():
    same = OWN.replace("(node)", "(x: int) -> int", 1).replace("node", "x").replace("if x", '"""Mine."""\n    if x', 1)
    assert alike.form(OWN) == alike.form(COPIED) == alike.form(same)
    assert alike.form(OWN) != alike.form(OWN.replace("return 0", "return 1"))
    assert alike.form(OWN) != alike.form(OWN.replace("len(", "sum("))  # a name that is not its own
    assert alike.form(OWN) == alike.form(f"{OWN.replace('return 0', 'return 1')}\n{OWN}")  # the last one counts
    caught = "import math as m\nasync def f(x):\n    try:\n        return m.pi * x\n" + (
        "    except ValueError as e:\n        print(e, m.tau, x, [x + 1, x - 1, x * 2], (x, x, x))\n"
    )
    again = caught.replace("m.", "maths.").replace("as m", "as maths").replace("as e", "as e2").replace("(e,", "(e2,")
    assert alike.form(caught) == alike.form(again) != alike.form(caught.replace("m.", "x."))


def test_what_is_short_is_no_sign_and_what_is_no_code_has_no_form():
    assert alike.form("slopes = (7.0, 2.0)") is None
    assert alike.form("def f(:\n" + OWN) is None


def test_the_usual_way_the_blank_cell_and_the_worked_solution_are_set_aside():
    worked = exercises.cell("05.2", "solutions")
    rare, usual = OWN, OWN.replace("return 0", "return None")
    answers = {"a": rare, "b": COPIED, "e": worked, "f": worked} | {f"u{n}": usual for n in range(5)}
    (group,) = alike.groups({"exercise-05-2": answers}, {"exercise-05-2": [worked]})
    assert group == (("a", "b"), ("exercise-05-2",), ())


def test_groups_that_share_most_come_first():
    answers = {
        "1": {"a": OWN, "b": OWN, "c": OWN + "\nx = 1", "d": OWN + "\nx = 1"},
        "2": {"a": OWN, "b": COPIED},
    }
    assert [group.people for group in alike.groups(answers, {})] == [("a", "b"), ("c", "d")]
    assert alike.groups(answers, {})[0].to_the_letter == ("1",)
