"""The table of checks."""

from course.authoring.validation.exercises import EXERCISES
from course.authoring.validation.sources import SOURCES, Check
from course.authoring.validation.texts import as_shown, numbers_shown

OUTPUTS = "outputs"  # the run, and what it shows
OUT = "out"
NUMBERS = "numbers"
CHECKS = (
    *SOURCES,
    Check(OUT, "numbers that name their output, and are not what it shows", as_shown),
    Check(NUMBERS, "numbers in prose that stand in no output (--texts)", numbers_shown),
)
NAMES = (OUTPUTS, *(check.name for check in CHECKS), EXERCISES)
