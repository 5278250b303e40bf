"""`class export`: the points as Moodle and Canvas take them, and Moodle's archive of feedback."""

import io
import zipfile
from pathlib import Path

from course.base.environment import Problem
from course.base.notebooks import COMMAND
from course.classroom import tables
from course.classroom.folder import Class, put
from course.classroom.grades import penalise, results

STEPS = {
    ("moodle", True): "In Moodle: the assignment, Submissions, Upload grading worksheet.",
    ("moodle", False): "In Moodle: Grades, Import, CSV file; identify people by email address or ID number.",
    ("canvas", True): "In Canvas: Grades, Import.",
    ("canvas", False): "In Canvas: Grades, Import. A column that Canvas does not know becomes a new assignment.",
}


def export(course: Class, lesson: str, platform: str, filled: Path | None) -> list[str]:
    """Write the points for a platform, into its own file if that is given; say in sentences what was done."""
    name = course.title(lesson)
    penalise(course, name)
    found, most = results(course, name)
    if all(result.points is None for result in found):
        raise Problem(f"Nothing of {name} has been graded: `{COMMAND} class grade {name[:2]}` first.")
    unknown = list[str]()
    if platform == "moodle" and filled:
        text, unknown = tables.fill_worksheet(filled, found, most)
    elif platform == "moodle":
        text = tables.moodle_grades(found, name)
    elif filled:
        text, unknown = tables.fill_gradebook(filled, found, name, most)
    else:
        text = tables.canvas_grades(found, name, most)
    path = course.path("exports", f"{name} {platform}.csv")
    put(path, text.encode())
    graded = sum(result.points is not None for result in found)
    says = [
        f"Class: {course.folder}",
        f"{name}: the points of {graded} of {len(found)} people, out of {most:g}: {path}",
    ]
    if unknown:
        says.append(f"In the file, but not in the class, and left as they were: {', '.join(unknown)}.")
    if graded < len(found):
        says.append("Who has not been graded has an empty field, not 0.")
    says.append(STEPS[platform, filled is not None])
    if platform == "moodle" and (archive := _feedback(course, name)):
        says.append(f"Feedback: {archive}")
        says.append("In Moodle: the assignment, Submissions, Upload multiple feedback files in a zip.")
    return says


def _feedback(course: Class, name: str) -> Path | None:
    """Return the pages of feedback under Moodle's names for the submissions; None where Moodle gave none."""
    folders = course.notes["assignments"].get(name, {}).get("moodle", {})
    pages = {id: course.path("feedback", id, name, f"{name}.html") for id in folders}
    if not any(page.exists() for page in pages.values()):
        return None
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for id, page in pages.items():
            if page.exists():
                archive.write(page, f"{folders[id]}/{name}.html")
    path = course.path("exports", f"{name} feedback for moodle.zip")
    put(path, data.getvalue())
    return path
