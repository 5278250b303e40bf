"""Which checks there are."""

from course.authoring.validation.sources import SOURCES, Check
from course.authoring.validation.texts import numbers_shown

OUTPUTS = "outputs"  # the run, and what it shows
NUMBERS = "numbers"
CHECKS = (*SOURCES, Check(NUMBERS, "numbers in prose that stand in no output (--texts)", numbers_shown))
NAMES = (OUTPUTS, *(check.name for check in CHECKS))
