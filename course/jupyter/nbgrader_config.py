"""nbgrader's settings for the course's exercises: docs/teaching.md."""

from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbgrader.converters import Autograde
from nbgrader.preprocessors import ClearHiddenTests, Execute, GetGrades, NbGraderPreprocessor
from nbgrader.utils import is_grade


class FreshChecks(Execute):
    """Has each cell with tests import the course anew: what a submission did to `check` is undone."""

    FORGET = "import sys\nfor m in [m for m in sys.modules if m.partition('.')[0] == 'course']: del sys.modules[m]"

    def preprocess_cell(self, cell, resources, cell_index):
        if is_grade(cell):
            self.kc.execute(f"exec({self.FORGET!r}, {{}})", silent=True)  # before the cell, as the kernel has one queue
        return super().preprocess_cell(cell, resources, cell_index)


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
# Seconds for a cell. A check stops an endless loop by itself, after forty at most; this is for loops outside functions.
c.Execute.timeout = 60
c.Autograde.autograde_preprocessors = [
    FreshChecks if step is Execute else step for step in Autograde.autograde_preprocessors.default_args[0]
]
c.KernelManager.transport_encryption = "auto"  # else each kernel warns that this computer's others may listen
# nbgrader's own feedback would show the hidden tests.
c.GenerateFeedback.preprocessors = [GetGrades, ClearHiddenTests, ShortErrors, CSSHTMLHeaderPreprocessor]
