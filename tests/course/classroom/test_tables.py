"""The tables that platforms give and take: whose row is whose, and what is left as it was."""

import pytest
from over_tables import over

from course.base.environment import Problem
from course.classroom import tables
from course.classroom.tables import Person, Result

CLASS = [
    Result(Person("anna", "Anna", "Li", "anna@uni.example", "4711"), 1.0, "101"),
    Result(Person("bo", "Bo", "Li", "bo@uni.example"), 2.0),
    Result(Person("chen", "Chén", "Park"), None),
    Result(Person("kim1", "Kim", "Lee"), 4.0),
    Result(Person("kim2", "Kim", "Lee"), 5.0),
]


def table(folder, text):
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_of_moodles_worksheet_is_known_by_its_number_an_address_or_a_name_of_one_person(tmp_path):
    head = "Identifier;Full name;Email address;Grade;Maximum Grade"
    people = ["Participant 101;Bo Li;", "7;A;BO@uni.example", "8;chen park;", "9;Kim Lee;"]
    path = table(tmp_path, "\n".join([head, *(f"{person};9;13,00" for person in people)]))
    text, unknown = tables.fill_worksheet(path, CLASS, 13.0)
    filled = [f"{person};{points};13,00" for person, points in zip(people, (1, 2, "", 9), strict=True)]
    assert text.splitlines() == [head, *filled]
    assert unknown == ["Kim Lee"]


def test_a_row_of_canvas_gradebook_is_known_by_its_number_an_id_or_a_name_of_one_person(tmp_path):
    rows = ["    Points Possible,,,,,", '"A, B",4711,,,A,', "x,1,,BO,A,", "y,2,chen,,A,", '"Li, Anna",3,,,A,',
            '"Lee, Kim",4,,,A,', '"Student, Test",5,,,A,']  # fmt: skip
    path = table(tmp_path, "\n".join(["Student,ID,SIS User ID,SIS Login ID,Section,Other (1)", *rows]))
    text, unknown = tables.fill_gradebook(path, CLASS, "05_graph", 13.0)
    head, *filled = text.splitlines()
    assert head == "Student,ID,SIS User ID,SIS Login ID,Section,05_graph"
    assert [row.rpartition(",")[2] for row in filled] == ["13", "1", "2", "", "1", "", ""]
    assert unknown == ["Lee, Kim"]


@over(
    "fill, text, says",
    [
        (lambda path: tables.fill_worksheet(path, CLASS, 13.0), "Name,Grade\nA,1\n", "no grading worksheet of Moodle"),
        (lambda path: tables.fill_worksheet(path, CLASS, 13.0), "Identifier,Note\n1,1\n", "no grading worksheet"),
        (lambda path: tables.fill_gradebook(path, CLASS, "a", 1.0), "Student,ID\nA,1\n", "no gradebook of Canvas"),
        (lambda path: tables.fill_gradebook(path, CLASS, "a", 1.0), "Student,ID,Section,a (1),a (2)\nA,1,,,\n",
         "has 2 columns called a"),
        (tables.read, "id\na\0\n", "is no table"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_the_platform_is_refused(tmp_path, fill, text, says):
    with pytest.raises(Problem, match=says):
        fill(table(tmp_path, text))
