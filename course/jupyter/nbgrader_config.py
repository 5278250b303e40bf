"""nbgrader's settings for the course's exercises: docs/teaching.md."""

from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.preprocessors import ClearHiddenTests, Execute, GetGrades, NbGraderPreprocessor
from nbgrader.utils import is_grade

from course import grading


class Submitted(NotebookExporter):
    """Reads what was handed in, also where it is no whole notebook."""

    def from_file(self, file_stream, resources=None, **kw):
        nb = grading.read_notebook(Path(file_stream.name).read_bytes())
        return self.from_notebook_node(nb, resources=resources, **kw)


class Tidy(NbGraderPreprocessor):
    """Copied cells and doubled names: each cell of the assignment counts once."""

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as book:
            ours = book.find_notebook(about["notebook"], about["assignment"])
            points = {cell.name: cell.max_score for cell in ours.grade_cells}
            solutions = {cell.name for cell in ours.solution_cells}
            for sentence in grading.tidy(nb, list(ours.source_cells), points, solutions):
                self.log.warning(sentence)
        return nb, resources


class Grade(NbGraderPreprocessor):
    """Puts the verdicts under the cells of checks. The notebook itself is not run."""

    def preprocess(self, nb, resources):
        for place, cell in enumerate(nb.cells):
            if is_grade(cell):
                cell.outputs = grading.grade_cell(nb, place)
            elif cell.cell_type == "code":
                cell.outputs = [grading.about_hiding(names)] if (names := grading.hiding(cell.source)) else []
        return nb, resources


c = get_config()  # noqa: F821 - given by nbgrader

c.CourseDirectory.course_id = "undertorch"
# What the learner fills in: as in the course's own exercises.
c.ClearSolutions.code_stub = {"python": "..."}
c.Autograde.pre_convert_hook = grading.rename
c.Autograde.exporter_class = Submitted
c.Autograde.sanitize_preprocessors = [Tidy, *Autograde.sanitize_preprocessors.default_args[0]]
c.Autograde.autograde_preprocessors = [
    Grade if step is Execute else step for step in Autograde.autograde_preprocessors.default_args[0]
]
# nbgrader's own feedback would show the hidden tests.
c.GenerateFeedback.preprocessors = [GetGrades, ClearHiddenTests, CSSHTMLHeaderPreprocessor]
