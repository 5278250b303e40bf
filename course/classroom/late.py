"""Deadlines, and what it costs to miss one. The standard library alone."""

import datetime
import math
import re
from typing import NamedTuple

from course.base.environment import Problem

SECONDS = {"day": 86400, "hour": 3600}
DAY = re.compile(r"\d{4}-\d\d-\d\d")
SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?) ?% ?(?:an? |per |/ ?)?(day|hour|once)")


class Late(NamedTuple):
    """Percent of an assignment's points, for each unit of time begun; `once` for any delay."""

    percent: float
    unit: str

    def __str__(self) -> str:
        words = {0.0: "nothing", 100.0: "all points"}
        if self.unit == "once" and self.percent in words:
            return words[self.percent]
        each = "" if self.unit == "once" else f" for each begun {self.unit}"
        return f"{self.percent:g} % of the points that can be had{each}"


def policy(text: str) -> Late:
    """Read what `--late` says: "none", "zero", "10% a day", "2% an hour", "20% once". Raises Problem."""
    named = {"none": Late(0.0, "once"), "zero": Late(100.0, "once")}
    match = SHARE.fullmatch(text.strip().lower())
    if text in named:
        return named[text]
    if not match or float(match[1]) > 100:
        raise Problem(f'--late {text!r}: say "none", "zero", or a share such as "10% a day", "2% an hour", "20% once".')
    return Late(float(match[1]), match[2])


def penalty(rule: Late, most: float, seconds: float) -> float:
    """Return the points that a delay costs, of an assignment with `most` points."""
    if seconds <= 0:
        return 0.0
    units = 1 if rule.unit == "once" else math.ceil(seconds / SECONDS[rule.unit])
    return min(most, most * rule.percent / 100 * units)


def moment(text: str, option: str, end: bool = True) -> datetime.datetime:
    """Read a day, taken at its end or its beginning, or a day and a time, by this computer's clock. Raises Problem."""
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Problem(f'{option} {text!r} is no time: write 2027-01-31 or "2027-01-31 18:00".') from None
    if end and DAY.fullmatch(text):
        when = when.replace(hour=23, minute=59, second=59)
    return when.astimezone()


def shown(when: datetime.datetime) -> str:
    """Write a time as people here read it."""
    return f"{when.astimezone():%Y-%m-%d %H:%M}"
