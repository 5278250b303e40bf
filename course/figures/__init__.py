"""The course's interactive figures; each also works without a kernel, as a picture and as words."""

from course.figures.curves import DescentExplorer, SecantExplorer
from course.figures.stepper import BackwardStepper

__all__ = ["BackwardStepper", "DescentExplorer", "SecantExplorer"]
