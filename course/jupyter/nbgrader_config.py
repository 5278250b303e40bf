"""nbgrader's settings for the course's exercises: docs/teaching.md."""

from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbgrader.preprocessors import ClearHiddenTests, GetGrades, NbGraderPreprocessor
from nbgrader.utils import is_grade


class ShortErrors(NbGraderPreprocessor):
    """Keeps the last line of an error in a cell with tests: the lines above it would quote the hidden ones."""

    def preprocess_cell(self, cell, resources, cell_index):
        for output in cell.get("outputs", []):
            if is_grade(cell) and output.output_type == "error":
                output.traceback = output.traceback[-1:]
        return cell, resources


c = get_config()  # noqa: F821 - given by nbgrader

c.CourseDirectory.course_id = "undertorch"
# What the learner fills in: as in the course's own exercises.
c.ClearSolutions.code_stub = {"python": "..."}
# Seconds for a cell. A check stops an endless loop by itself after ten; this is for loops outside any function.
c.Execute.timeout = 60
# nbgrader's own feedback would show the hidden tests.
c.GenerateFeedback.preprocessors = [GetGrades, ClearHiddenTests, ShortErrors, CSSHTMLHeaderPreprocessor]
