"""Slides, handouts and the bank of questions: all predictions are in them, and nothing comes from the network."""

import html
import io
import re
import zipfile
from xml.etree import ElementTree as xml

import pytest
from over_tables import over

pytest.importorskip("nbconvert")
pytest.importorskip("docutils", reason="the extra `teach` makes materials")

from nbconvert.filters.markdown_mistune import markdown2html_mistune

from course.authoring import minutes as counted
from course.base.environment import Problem
from course.base.notebooks import lesson_notebooks
from course.classroom.materials import handouts, make, quiz, slides
from course.classroom.materials.questions import asked
from course.classroom.materials.texts import with_mathml
from course.commands.cli import main
from course.figures.predict import figure as predict

LESSONS = lesson_notebooks()
ASKED = {number: list(asked(path)) for number, path in LESSONS.items()}
each_lesson = over("lesson", LESSONS)
RENDERED = ("00", "05", "14")  # half a second each: the others are rendered among the slow ones


@each_lesson
def test_every_prediction_of_a_lesson_is_found_with_its_part_and_its_code(lesson):
    assert [one.key for one in ASKED[lesson]] == [f"{lesson}.{name}" for name in predict.questions(lesson)]
    for one in ASKED[lesson]:
        assert one.part and one.code and "SOLUTION" not in one.code + one.before


def test_moodle_gets_each_prediction_with_one_right_option_and_words_for_each():
    root = xml.fromstring(quiz.moodle(LESSONS))
    categories = [one.findtext("category/text") for one in root.iterfind("question[@type='category']")]
    assert "$course$/top/Undertorch/05 The graph" in categories
    asked_for = {one.findtext("name/text").split()[0]: one for one in root.iterfind("question[@type='multichoice']")}
    assert list(asked_for) == [one.key for found in ASKED.values() for one in found]
    for number, found in ASKED.items():
        for one in found:
            answers = asked_for[one.key].findall("answer")
            assert [answer.get("fraction") for answer in answers] == [
                "100" if option.right else "0" for option in one.options
            ], number
            assert all(answer.findtext("feedback/text") for answer in answers)


def test_qti_scores_the_right_option_and_is_the_same_each_time():
    packed = quiz.qti(LESSONS)
    assert packed == quiz.qti(LESSONS)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        files = {name: xml.fromstring(archive.read(name)) for name in archive.namelist()}
    names = [file.get("href") for file in files.pop("imsmanifest.xml").iter(f"{{{quiz.PACKAGE}}}file")]
    assert names == list(files)
    within = {"q": quiz.QTI}
    for name, root in files.items():
        found = {one.key.replace(".", "_"): one for one in ASKED[name[:2]]}
        items = root.findall(".//q:item", within)
        assert [item.get("ident") for item in items] == list(found)
        for item in items:
            labels = [label.get("ident") for label in item.iterfind(".//q:response_label", within)]
            scored = [
                condition.findtext("q:conditionvar/q:varequal", namespaces=within)
                for condition in item.iterfind(".//q:respcondition", within)
                if condition.find("q:setvar", within) is not None
            ]
            options = found[item.get("ident")].options
            assert scored == [label for label, option in zip(labels, options, strict=True) if option.right]
            linked = [said.get("linkrefid") for said in item.iterfind(".//q:displayfeedback", within)]
            assert linked == [said.get("ident") for said in item.iterfind("q:itemfeedback", within)]


@each_lesson
def test_a_handout_asks_and_does_not_answer(lesson):
    page = handouts.page(lesson, LESSONS[lesson])
    for one in ASKED[lesson]:
        assert predict.marked_up(one.question) in page
        assert not [option.words for option in one.options if predict.marked_up(option.words) in page]
    assert "<h2>Recap</h2>" in page or lesson == "00"
    assert ".ipynb" not in page


@pytest.mark.parametrize(
    "lesson", [lesson if lesson in RENDERED else pytest.param(lesson, marks=pytest.mark.slow) for lesson in LESSONS]
)
def test_slides_have_every_part_and_take_nothing_from_the_network(lesson):
    page = slides.page(lesson, LESSONS[lesson])
    told = [html.unescape(re.sub("<[^>]*>", "", text)) for text in re.findall(r"<h2[^>]*>(.*?)<a class", page)]
    assert told == [part.replace("`", "") for part, _ in list(counted.parts(LESSONS[lesson]))[1:]]
    loaded = re.findall(r"<(?:script|img|iframe)\b[^>]*\bsrc=[\"']([^\"']*)|<link\b[^>]*\bhref=[\"']([^\"']*)", page)
    assert {one or other for one, other in loaded if not (one or other).startswith("data:")} == {
        "reveal.js/dist/reveal.js",
        "reveal.js/plugin/notes/notes.js",
        "reveal.js/dist/reveal.css",
        "reveal.js/dist/theme/white.css",
    }
    for one in ASKED[lesson]:
        asks = page.index(f"<strong>{markdown2html_mistune(one.question)[3:-5]}</strong>")
        assert page.index("<section>", asks) < page.index('class="highlight', asks)  # what happens is on another slide


def test_formulas_are_mathml_and_dollars_in_code_are_dollars():
    made = with_mathml("Of `$x$` and $x^2$:\n\n```\ncost = $5 and $6\n```\n\n$$J v$$")
    assert made.count("<math") == 2 and "`$x$`" in made and "cost = $5 and $6" in made and "<msup>" in made


def test_the_command_writes_what_is_asked_for(tmp_path, capsys):
    assert main(["build", "--materials", str(tmp_path), "5"]) == 0
    assert "4 files" in capsys.readouterr().out
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("05*")) == [
        "handouts/05_graph.html",
        "slides/05_graph.html",
    ]
    for part in ("dist/reveal.js", "plugin/notes/notes.js", "dist/theme/white.css", "LICENSE"):
        assert (tmp_path / "slides/reveal.js" / part).is_file()
    with pytest.raises(Problem, match="There is no lesson 77"):
        make(tmp_path, ["77"])
    with pytest.raises(SystemExit):
        main(["build", "--materials", str(tmp_path), "--check"])
