"""Who has sent what, when, and which of two notebooks stays: without a class, whose story is in `test_class.py`."""

import datetime
import json
from types import SimpleNamespace

import pytest
from over_tables import over

from course.base.environment import Problem
from course.base.notebooks import ROOT
from course.classroom import collecting, folder, grades, late, releasing
from course.classroom.arriving import Piece, Sender, sender
from course.classroom.tables import Person

pytestmark = pytest.mark.filterwarnings("ignore")

NAME = "05_graph"
ANNA, BO, KIM = (
    Person("anna", "Anna", "Li"),
    Person("bo", "Bo", "Sand", lms_user_id="4711"),
    Person("kim", "Kim", "Lee"),
)
MORNING, EVENING = (datetime.datetime(2027, 1, 30, hour, tzinfo=datetime.UTC) for hour in (9, 21))


def notebook(answer="..."):
    nb = json.loads((ROOT / "exercises" / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    for cell in nb["cells"]:
        if cell["metadata"].get("exercise") == "05.3":
            cell["source"] = answer
    return json.dumps(nb).encode()


@pytest.fixture
def course(tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "_due", lambda course, name: MORNING)
    notes = {"people": {"Old Name_9": "anna", "x.ipynb": "kim"}, "assignments": {}}
    return SimpleNamespace(folder=tmp_path, path=tmp_path.joinpath, people=lambda: [ANNA, BO, KIM], notes=notes)


@over(
    "path, ids",
    [
        ("Anna Li_1_assignsubmission_file_/a.ipynb", {"anna"}),
        ("Team 1-B-Li Anna_1_assignsubmission_file_/a.ipynb", {"anna"}),
        ("Old Name_9_assignsubmission_file_/a.ipynb", {"anna"}),
        ("Team 1_1_assignsubmission_file_/kim.ipynb", set()),
        ("somebody_4711_2_a.ipynb", {"bo"}),
        ("sandbo_4712_2_a.ipynb", {"bo"}),
        ("week 5/x.ipynb", {"kim"}),
        ("kim/a.ipynb", {"kim"}),
        ("kim/anna.ipynb", {"anna"}),
        ("week (kim) 5.ipynb", {"kim"}),
        ("anna_and kim.ipynb", {"anna", "kim"}),
        ("animal.ipynb", set()),
    ],
)
def test_a_sender_is_known_by_what_was_told_a_number_a_name_or_an_id(course, path, ids):
    assert collecting.Names(course, {}).of(sender(path)) == ids


def test_a_name_can_be_told_of_somebody_in_the_class_alone(course):
    names = collecting.Names(course, {"Nobody_1": "bo", "Old Name_9": "bo"})
    assert names.of(sender("Nobody_1_assignsubmission_file_/a.ipynb")) == {"bo"}
    assert names.of(sender("Old Name_9_assignsubmission_file_/a.ipynb")) == {"bo"}  # the last word counts
    with pytest.raises(Problem, match="nobody in the class has the id 'dora'"):
        collecting.Names(course, {"Dora_1": "dora"})


@over(
    "path, at, all_one, when",
    [
        ("Anna Li_7_assignsubmission_file_/a.ipynb", None, False, EVENING),  # of the worksheet
        ("Anna Li_8_assignsubmission_file_/a.ipynb", None, False, MORNING),  # of the archive
        ("Anna Li_8_assignsubmission_file_/a.ipynb", None, True, None),
        ("Anna Li_8_assignsubmission_file_/a.ipynb", EVENING, True, EVENING),
        ("lianna_7_2_a.ipynb", None, False, None),
        ("lianna_7_2_a.ipynb", EVENING, False, None),
        ("lianna_LATE_7_2_a.ipynb", EVENING, False, EVENING),
        ("lianna_LATE_7_2_a.ipynb", None, False, None),
        ("anna.ipynb", EVENING, False, EVENING),
    ],
)
def test_when_it_was_handed_in_is_what_the_platform_says_before_what_the_archive_says(course, path, at, all_one, when):
    names, cells = collecting.Names(course, {}), {NAME: {"exercise-05-3"}, "06_leaves": {"exercise-06-3"}}
    piece = Piece(path, notebook(), MORNING)
    sent, says = collecting._recognised(piece, names, cells, {"7": EVENING}, at, all_one)
    assert (sent.person, sent.assignment, sent.at) == (ANNA, NAME, when)
    assert bool(says) == ("LATE" in path and at is None)


FIRST, OTHER, BLANK = notebook("first = 1"), notebook("other = 2"), notebook()


@over(
    "before, after, said, stays, told",
    [
        ((FIRST, MORNING), (OTHER, EVENING), "newer than what was there", OTHER, "late"),
        ((FIRST, EVENING), (OTHER, MORNING), "older", FIRST, "older than what is there"),
        ((BLANK, EVENING), (FIRST, MORNING), "older, with answers", FIRST, "this one counts"),
        ((FIRST, MORNING), (BLANK, EVENING), "without answers", FIRST, "without answers, which an older one has"),
        ((FIRST, None), (OTHER, MORNING), "newer than what was there", OTHER, ""),
        ((FIRST, MORNING), (OTHER, None), "newer than what was there", OTHER, ""),
        ((FIRST, MORNING), (FIRST, EVENING), "there already", FIRST, ""),
    ],
)
def test_of_two_notebooks_the_newer_one_with_answers_counts_and_the_other_is_kept(
    course, tmp_path, before, after, said, stays, told
):
    course.folder, course.path = tmp_path, tmp_path.joinpath
    notes = []
    for (data, at), what in ((before, "new"), (after, said)):
        notes.clear()
        sent = collecting.Notebook(ANNA, NAME, Piece("a.ipynb", data, at), Sender("", "a", "", False, (0, 0)), at)
        assert collecting._put(course, sent, notes) == what
    place = tmp_path / "submitted/anna" / NAME
    assert (place / f"{NAME}.ipynb").read_bytes() == stays
    older = [path.read_bytes() for path in (tmp_path / "older/anna" / NAME).glob("*.ipynb")]
    assert older == [data for data in dict.fromkeys((before[0], after[0])) if data != stays]
    at = before[1] if stays == before[0] else after[1]
    assert collecting._time_of(place / f"{NAME}.ipynb") == at
    assert told in "".join(notes) and bool(told) == bool(notes)


def test_a_worksheet_of_moodle_gives_times_and_one_in_another_language_is_refused(tmp_path):
    def times(*rows, head="Identifier,Last modified (submission)"):
        (tmp_path / "a.csv").write_text("\n".join([head, *rows]), encoding="utf-8")
        return collecting._times(tmp_path / "a.csv")

    written = '"Saturday, 30 January 2027, 9:00 PM"', '"Saturday, 30 January 2027, 21:00"', "2027-01-30 21:00"
    known = times(*(f"Participant {n},{text}" for n, text in enumerate(written)), "Participant 7,-", "nobody,x")
    assert known == {f"{n}": datetime.datetime(2027, 1, 30, 21).astimezone() for n in range(3)}
    with pytest.raises(Problem, match="'Samstag' cannot be read"):
        times("Participant 1,Samstag")
    with pytest.raises(Problem, match="no grading worksheet"):
        times("1,2", head="Teilnehmer,Geändert")


@over("pair", ["Kim", "=kim", "Kim=", "Kim=../kim"])
def test_who_is_told_by_a_name_and_an_id(pair):
    assert collecting.told(["a=b=kim"]) == {"a=b": "kim"}
    with pytest.raises(Problem, match="NAME=ID"):
        collecting.told([pair])


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    for name in ("a.ipynb", "a (2).ipynb", "a (3).ipynb"):
        assert folder.free(tmp_path / "a.ipynb") == tmp_path / name
        (tmp_path / name).touch()


# --- What nbgrader says, in the course's words


@over(
    "error, log, says",
    [
        ("", "[INFO] a\n[ERROR] first\n[ERROR] last\n[INFO] b", "grade it: last$"),
        ("Traceback\nOSError: full\n", "[INFO] a", "grade it: OSError: full$"),
        ("", "", "grade it: no reason$"),
    ],
)
def test_the_last_error_of_nbgrader_is_told(error, log, says):
    with pytest.raises(Problem, match=says):
        folder.succeeded({"success": False, "log": log, "error": error}, "grade it")
    assert folder.succeeded({"success": True, "log": log}, "grade it") == log


def test_who_stops_nbgrader_stops_all():
    with pytest.raises(KeyboardInterrupt):
        folder.succeeded({"success": False, "log": "", "error": "...\nKeyboardInterrupt\n"}, "grade it")


def test_warnings_that_a_teacher_needs_are_told_once():
    log = """\
[INFO] There are 2 cells with the name a: one of them counts.
[WARNING] Attribute 'checksum' for cell check-05-3 has changed! (should be: 1, got: 2)
[WARNING] Attribute 'cell_type' for cell check-05-3 has changed!
[WARNING] The cell check-05-4 was missing
[WARNING] There are 2 cells with the name b: one of them counts.
[WARNING] Removing existing file
[WARNING] Something else
[ERROR] Something else"""
    assert grades.warnings(log) == [
        "check-05-3 was changed; the original was graded",
        "check-05-4 was missing; the original was graded",
        "There are 2 cells with the name b: one of them counts.",
        "Something else",
    ]


@over(
    "hours, says",
    [(0, []), (0.5, ["less than an hour"]), (1, ["1.0 hours"]), (47.5, ["47.5 hours"]), (60, ["2.5 days"])],
)
def test_how_late_somebody_is_is_told_in_hours_or_days(hours, says):
    one = SimpleNamespace(student_id="anna", total_seconds_late=hours * 3600, late_submission_penalty=None)
    book = SimpleNamespace(assignment_submissions=lambda name: [one])
    assert grades._late(book, NAME) == [("anna", delay, 0.0) for delay in says]


@over(
    "text, says",
    [
        ("none", "nothing"),
        ("zero", "all points"),
        ("0% once", "nothing"),
        ("2.5% an hour", "2.5 % of the points that can be had for each begun hour"),
        ("100% a day", "100 % of the points that can be had for each begun day"),
        ("20% once", "20 % of the points that can be had"),
    ],
)
def test_what_a_delay_costs_is_said_in_words(text, says):
    assert str(late.policy(text)) == says
    with pytest.raises(Problem, match="say "):
        late.policy("101% a day")


@over(
    "text, end, when",
    [
        ("2027-01-31", True, (2027, 1, 31, 23, 59, 59)),
        ("2027-01-31", False, (2027, 1, 31)),
        ("2027-01-31 18:00", True, (2027, 1, 31, 18)),
    ],
)
def test_a_day_ends_at_its_end(text, end, when):
    assert late.moment(text, "--due", end) == datetime.datetime(*when).astimezone()


def test_solutions_are_shown_when_work_is_due_unless_a_day_was_said():
    assert releasing._solutions({}, EVENING) == EVENING and releasing._solutions({}, None) is None
    assert releasing._solutions({"solutions": MORNING.isoformat()}, EVENING) == MORNING
    rule = late.policy("zero")
    assert releasing._about(None, rule, None) == "There is no deadline."
    assert releasing._about(MORNING, rule, EVENING) == (
        f"Due on {late.shown(MORNING)}; who is late loses all points. "
        f"`solution` shows worked solutions from {late.shown(EVENING)} on."
    )
