"""The words in which a lesson's `checks.py` is written."""

from course.judging.exercises import Did, Exercise
from course.judging.mistakes import changed, mistakes, properties
from course.judging.sources import calls, calls_itself, loops
from course.judging.trials import Alive, Counted, knob, line, standing_in, using

__all__ = ["Alive", "Counted", "Did", "Exercise", "calls", "calls_itself", "changed", "knob", "line", "loops"]
__all__ += ["mistakes", "properties", "standing_in", "using"]
