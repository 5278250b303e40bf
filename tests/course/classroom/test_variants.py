"""Exercises with numbers of a class's own: made by a seed, sealed, and solved at home; solutions from a day on."""

import ast
import datetime
import json
import linecache
from types import SimpleNamespace

import numpy as np
import pytest
from over_tables import over

import engine
from course.base.environment import Problem
from course.base.notebooks import ROOT
from course.classroom import bank, variants
from course.judging import exercises, questions
from course.learner import calls as learner
from course.learner import sealed
from course.learner.calls import NotYet

SALT = "5a17"


@pytest.fixture(autouse=True)
def quick_seals(monkeypatch):
    monkeypatch.setattr(sealed, "ROUNDS", 100)


def question(key):
    """The text of an exercise, as it is published."""
    path = ROOT / "solutions" / f"{exercises.title(key[:2])}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    place = next(place for place, cell in enumerate(cells) if cell["metadata"].get("exercise") == key)
    return "".join(cells[place - 1]["source"])


def test_every_exercise_whose_answer_is_a_value_has_a_rule():
    assert variants.keys() == [key for lesson in exercises.lessons() for key in variants.rules(lesson)]


@over("key", variants.keys())
def test_a_seed_gives_a_question_and_an_answer_of_its_own(key):
    text, given = question(key), exercises.find(key).answer
    made = [variants.variant(key, text, seed) for seed in range(6)]
    assert made[0] == variants.variant(key, text, 0)
    assert all(one.answer != given and one.text != text for one in made)
    assert len({repr(one.answer) for one in made}) > 1
    assert {type(one.answer) for one in made} == {type(given)}
    assert all(one.text.partition("\n")[0] == text.partition("\n")[0] for one in made)
    assert not any(repr(one.answer) in one.text for one in made)


@over("seed", range(6))
def test_steps_of_a_compiled_program_are_those_that_the_engine_makes(seed):
    from engine.compiler import explain

    made = variants.variant("18.1", question("18.1"), seed)
    code, names = questions.code_of(made.text), {}
    linecache.cache[f"18.1 {seed}"] = (len(code), None, code.splitlines(True), f"18.1 {seed}")
    exec(compile(code, f"18.1 {seed}", "exec"), names)
    report = str(explain(names["f"])(engine.randn(300, 300), engine.randn(300, 300)))
    count = {name.strip(): int(number) for name, number in (line.split(":") for line in report.splitlines() if line)
             if number.strip().isdigit()}  # fmt: skip
    written = count["written down"]
    assert made.answer == (written, written - count["computed once"], count["forward"], 1)


@over(
    "answer, attempt, opened",
    [
        ((7.0, 2.0), [7, 2.0], True),
        ((7.0, 2.0), (2.0, 7.0), False),
        (27.0, 27, True),
        ((6, 5), (6.0, 5), False),  # a float where an integer belongs
        ((6, 5), (6, 5, 4), False),
        ({"a", "b"}, {"b", "a"}, True),
        ({"a", "b"}, ["a", "b"], False),
        (((3,), "error"), ((3,), "error"), True),
        (((3,), "error"), (3, "error"), False),
        (27.0, engine.tensor(27.0), False),
        (27.0, print, False),
        (27.0, np.float32(27.0), True),
        (27.0, 27.001, False),
        (27.0, 27.0001, True),
        (0.0, -0.0, True),
        (6, np.int64(6), True),
        (True, 1, False),
        (1.0, True, False),
        (None, None, True),
    ],
)
def test_a_seal_opens_for_what_a_check_would_take(answer, attempt, opened):
    text = sealed.seal(answer, SALT)
    assert sealed.opens(text, attempt) == opened
    assert repr(answer) not in text


@pytest.fixture
def course(tmp_path):
    return SimpleNamespace(path=tmp_path.joinpath, notes={"seed": 17})


@over("name", [exercises.title(key[:2]) for key in variants.keys()])
def test_the_solution_with_own_numbers_has_the_answer_of_the_bank_and_its_check_the_seal(course, name):
    published = (ROOT / "solutions" / f"{name}.ipynb").read_bytes()
    nb = json.loads(bank.applied(course, name, published))
    assert bank.applied(course, name, published) == (json.dumps(nb, indent=1, ensure_ascii=False) + "\n").encode()
    ((key, row),) = bank.read(bank.path(course, name)).items()
    place = next(place for place, cell in enumerate(nb["cells"]) if cell["metadata"].get("exercise") == key)
    names = {}
    exec(nb["cells"][place]["source"], names)
    match = bank.SEALED.search(nb["cells"][place + 1]["source"])
    assert names[match["name"]] == ast.literal_eval(row["answer"]) and match["key"] == key
    assert sealed.opens(row["seal"], names[match["name"]]) and row["seal"] in match["seal"]
    assert not sealed.opens(row["seal"], exercises.find(key).answer)


def test_who_teaches_may_put_a_question_of_their_own_into_the_bank(course):
    published = (ROOT / "solutions/05_graph.ipynb").read_bytes()
    bank.applied(course, "05_graph", published)
    path = bank.path(course, "05_graph")
    kept = bank.read(path)
    kept["05.1"] |= {"text": "## 5.1 Mine", "answer": "(1.5, 2.5)"}
    path.write_text(json.dumps(kept), encoding="utf-8")
    text = bank.applied(course, "05_graph", published).decode()
    assert "## 5.1 Mine" in text and "1.5,\\n" in text
    assert sealed.opens(bank.read(path)["05.1"]["seal"], (1.5, 2.5))


@over(
    "text", ["{", "[]", '{"05.1": 3}', '{"05.1": {"text": "", "answer": "f(", "seal": ""}}', '{"05.1": {"text": ""}}']
)
def test_a_bank_that_is_damaged_or_lacks_an_answer_is_named(tmp_path, text):
    path = tmp_path / "05_graph.json"
    assert bank.read(path) == {}
    with pytest.raises(Problem, match="has no answer to 05.1"):
        bank.answer_of(path, "05.1")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Problem, match="cannot be read"):
        bank.read(path)


def handed_out(folder, days, own=()):
    """A class's notebook in a learner's folder, with solutions from so many days from now on."""
    when = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    (folder / "my_exercises").mkdir()
    (folder / "exercises").mkdir()
    (folder / "exercises/05_graph.ipynb").write_text("{}", encoding="utf-8")
    nb = {"cells": [], "metadata": {"undertorch": {"class": {"own": list(own), "solutions": when.isoformat()}}}}
    (folder / "my_exercises/05_graph.ipynb").write_text(json.dumps(nb), encoding="utf-8")


@pytest.fixture
def a_class(tmp_path, monkeypatch):
    def begin(days, own=()):
        handed_out(tmp_path, days, own)
        found = sealed.ClassNotes
        monkeypatch.setattr(learner, "ClassNotes", lambda lesson: found(lesson, tmp_path))
        monkeypatch.setattr("course.learner.record.update", lambda key, change: {"hints": 1})

    return begin


def test_a_class_sees_solutions_from_its_day_on(a_class, capsys):
    a_class(2)
    learner.solution("05.3")
    learner.solution("05.w1")
    says = capsys.readouterr().out
    assert says.count("Not yet: ") == 2 and "def division_backward" not in says and "earns points" not in says
    learner.solution("06.3")  # the class has handed out lesson 05 alone
    assert "A worked solution of exercise 06.3" in capsys.readouterr().out


def test_after_that_day_they_are_shown(a_class, capsys):
    a_class(-2, own=["05.1"])
    learner.solution("05.3")
    assert "def division_backward" in capsys.readouterr().out
    learner.solution("05.1")
    assert "your class has others" in capsys.readouterr().out


def test_hints_say_that_the_numbers_are_others(a_class, capsys):
    a_class(2, own=["05.1"])
    learner.hint("05.1")
    assert "Your class has others" in capsys.readouterr().out


@over(
    "notes, own",
    [
        ({"own": ["05.1"], "solutions": ""}, ["05.1"]),
        ({"own": ["05.1"]}, ["05.1"]),
        ({"own": ["05.1"], "solutions": "some day"}, []),
        (["05.1"], []),
        (None, []),
    ],
)
def test_a_notebook_without_a_day_shows_its_solutions(tmp_path, notes, own):
    handed_out(tmp_path, 2)
    path = tmp_path / "my_exercises/05_graph.ipynb"
    path.write_text(json.dumps({"metadata": {"undertorch": {"class": notes}}}), encoding="utf-8")
    found = sealed.ClassNotes("05", tmp_path)
    assert (found.own, found.wait()) == (own, None)


def test_what_was_fetched_on_a_server_has_its_day_too(tmp_path, monkeypatch):
    handed_out(tmp_path, 2, ["05.1"])
    notebook = tmp_path / "my_exercises/05_graph.ipynb"
    home = tmp_path / "home"
    (home / "05_graph").mkdir(parents=True)
    notebook.replace(home / "05_graph/05_graph.ipynb")
    monkeypatch.setenv("UNDERTORCH_PROGRESS", str(home / ".progress.json"))
    found = sealed.ClassNotes("05", tmp_path)
    assert found.own == ["05.1"] and found.wait() is not None


def test_a_sealed_answer_is_checked_at_home(a_class, capsys):
    a_class(2)
    seal = sealed.seal((12.0, -7.0), SALT)
    learner.check("05.1", (12, -7.0), sealed=seal)
    assert "Exercise 05.1: correct." in capsys.readouterr().out
    with pytest.raises(NotYet):
        learner.check("05.1", (7.0, 2.0), sealed=seal)  # the published one
    assert "numbers of its own" in capsys.readouterr().out
