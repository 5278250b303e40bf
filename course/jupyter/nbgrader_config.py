"""nbgrader's settings for the course's exercises: docs/teaching.md."""

import functools
import warnings
from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import ClearHiddenTests, Execute, GetGrades, NbGraderPreprocessor
from nbgrader.utils import is_grade

from course.classroom import bank, folder, grading, handed_in, late
from course.learner import rubrics


class Submitted(NotebookExporter):
    """Reads what was handed in, also where it is no whole notebook."""

    def from_file(self, file_stream, resources=None, **kw):
        path = Path(file_stream.name)
        nb = handed_in.read_notebook(path.read_bytes())
        handed_in.tell_of_others(path, nb)
        return self.from_notebook_node(nb, resources=resources, **kw)


class Tidy(NbGraderPreprocessor):
    """Copied cells and doubled names: each cell of the assignment counts once. Checks as they were handed out get their
    hidden tests here, so that nbgrader, which restores all of them, warns of those alone that somebody has changed.
    """

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as book:
            ours = book.find_notebook(about["notebook"], about["assignment"])
            points = {cell.name: cell.max_score for cell in ours.grade_cells}
            solutions = {cell.name for cell in ours.solution_cells}
            for sentence in grading.tidy(nb, list(ours.source_cells), points, solutions):
                self.log.warning(sentence)
            whole = {cell.name: cell.source for cell in ours.source_cells if cell.locked}
        hidden = ClearHiddenTests(parent=self)
        for cell in nb.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in whole:
                handed_out = cell.copy() | {"source": whole[name]}
                handed_out, _ = hidden.preprocess_cell(NotebookNode(handed_out), resources, 0)
                if cell.source.split() == handed_out.source.split():
                    cell.source = whole[name]
                elif published := bank.published(handed_out.source):
                    key, source = published
                    if cell.source.split() == source.split():
                        cell.source = whole[name]
                        says = "%s was answered in the course's own notebook, which has other numbers than the class's"
                        self.log.warning(says, key)
        return nb, resources


class Late(LateSubmissionPlugin):
    """The cost of a delay by the class's own policy: `python -m course class release --late`."""

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        steps = self.parent  # nbgrader works in the folder of the class
        if not Path(folder.NOTES).is_file():
            return super().late_submission_penalty(student_id, score, total_seconds_late)
        most = steps.gradebook.find_notebook(steps.notebook_id, steps.assignment_id).max_score
        rule = folder.Class(Path.cwd()).late(steps.assignment_id)
        return min(score, late.penalty(rule, most, total_seconds_late))


class Grade(NbGraderPreprocessor):
    """Puts the verdicts under the cells of checks. The notebook itself is not run."""

    def preprocess(self, nb, resources):
        private = Path("bank", f"{resources['nbgrader']['assignment']}.json")  # nbgrader works in the class's folder
        for place, cell in enumerate(nb.cells):
            if is_grade(cell) and cell.cell_type == "code":  # words are marked by hand
                cell.outputs = grading.grade_cell(nb, place, functools.partial(bank.answer_of, private))
            elif cell.cell_type == "code":
                cell.outputs = [grading.about_hiding(names)] if (names := grading.hiding(cell.source)) else []
        return nb, resources


# Of nbgrader's own way with its database, at each submission; they say nothing to who teaches.
warnings.filterwarnings("ignore", module="nbgrader")

c = get_config()  # noqa: F821 - given by nbgrader

c.CourseDirectory.course_id = "undertorch"
# What the learner fills in: as in the course's own exercises.
c.ClearSolutions.code_stub = {"python": "..."}
c.ClearSolutions.text_stub = rubrics.STUB
c.Autograde.pre_convert_hook = handed_in.rename
c.Autograde.exporter_class = Submitted
c.Autograde.sanitize_preprocessors = [Tidy, *Autograde.sanitize_preprocessors.default_args[0]]
c.Autograde.autograde_preprocessors = [
    Grade if step is Execute else step for step in Autograde.autograde_preprocessors.default_args[0]
]
c.AssignLatePenalties.plugin_class = Late
# nbgrader's own feedback would show the hidden tests.
c.GenerateFeedback.preprocessors = [GetGrades, ClearHiddenTests, CSSHTMLHeaderPreprocessor]
# Nobody's words act in the pages of who marks them.
c.HTMLExporter.filters = {"markdown2html": "course.classroom.shown.words"}
