"""A question before a cell is run: the options are what people really think, and a click commits.

The questions of a lesson are in its `predictions.md`, out of the notebook, where they would give themselves away:

    ## a
    What does the second line show?

    - [ ] 4: That is the slope of `w * w` alone ...
    - [x] 9: Yes: what arrives is added ...

`[x]` is what the cell shows. After the next cell has run, the words of the option that was chosen are shown.
"""

import functools
import html
import re
from typing import Any, NamedTuple

from course.base.notebooks import lesson_file

# {key: the option chosen, not yet answered}. A click on a button selects the cell that asks, and Shift+Enter then runs
# that cell again: the choice stands.
noted: dict[str, int] = {}
_OPTION = re.compile(r"- \[([ x])\] (.+?): (.+?)(?=\n- \[|\Z)", re.DOTALL)


class Option(NamedTuple):
    """An answer that people give, whether it is what happens, and what to say to them."""

    text: str
    right: bool
    words: str


class Predict:
    """The question of a key such as "07.a".  ValueError where there is none."""

    def __init__(self, key: str) -> None:
        lesson, _, name = key.partition(".")
        found = questions(lesson)
        if name not in found:
            raise ValueError(f"there is no question {key!r} (there are {', '.join(f'{lesson}.{n}' for n in found)})")
        self.key = key
        self.question, self.options = found[name]

    def text(self) -> str:
        """Return the question and its options."""
        return "\n".join([f"Predict: {self.question}", *(f"- {option.text}" for option in self.options)])

    def static(self) -> dict[str, str]:
        """Return what a reader without a kernel gets: the options, each with its words folded away."""
        folded = [
            f"<details><summary>{marked_up(o.text)}</summary>{marked_up(o.words)}</details>" for o in self.options
        ]
        return {
            "text/plain": self.text(),
            "text/html": f"<p><strong>Predict.</strong> {marked_up(self.question)}</p>" + "".join(folded),
        }

    def widget(self) -> Any:
        """Return the question as a widget, which answers when the next cell has run.  ImportError without anywidget."""
        from course.figures.predict.widget import PredictWidget

        options = [marked_up(o.text) for o in self.options]
        widget = PredictWidget(question=marked_up(self.question), options=options, chosen=noted.get(self.key, -1))

        def answer(_: Any) -> None:
            noted[self.key] = widget.chosen
            if widget.chosen >= 0 and widget.looked:
                chosen = self.options[noted.pop(self.key)]
                widget.right = chosen.right
                widget.said = marked_up(chosen.words)

        widget.observe(answer, ["chosen", "looked"])
        after_next_cell(lambda: widget.set_trait("looked", True))
        return widget

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = self.widget()._repr_mimebundle_()
        except ImportError:
            data, metadata = {}, {}
        return data | self.static(), metadata


def predict(key: str) -> Predict:
    """Ask the question of a key such as "07.a", to be answered before the next cell is run."""
    return Predict(key)


@functools.cache
def questions(lesson: str) -> dict[str, tuple[str, list[Option]]]:
    """{name: (question, options)} of a lesson.  ValueError where not one option is right, or one is cut off."""
    path = lesson_file(lesson, "predictions.md")
    found = {}
    for block in path.read_text(encoding="utf-8").split("\n## ")[1:] if path.is_file() else []:
        name, _, rest = block.partition("\n")
        question, _, listed = rest.strip().partition("\n\n")
        options = [Option(t, mark == "x", " ".join(w.split())) for mark, t, w in _OPTION.findall(listed.strip())]
        if len(options) < 2 or sum(option.right for option in options) != 1:
            raise ValueError(
                f"{lesson}/{path.name}, {name}: two options or more are asked for, and one of them is right"
            )
        cuts = (o.text for o in options if o.text.count("`") % 2 or o.text.count("(") != o.text.count(")"))
        if cut := next(cuts, None):
            raise ValueError(
                f"{lesson}/{path.name}, {name}: {cut!r} ends at its first colon; an option has none of its own"
            )
        found[name.strip()] = " ".join(question.split()), options
    return found


def marked_up(text: str) -> str:
    """`code` and *stress* as HTML."""
    parts = html.escape(text, quote=False).split("`")
    parts[::2] = [re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part) for part in parts[::2]]
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    return "".join(parts)


def after_next_cell(call: Any) -> None:
    """Calls back once, when a cell that comes after this one has run."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    if (shell := get_ipython()) is None:
        return
    ended = 0

    def ran(_: Any) -> None:
        nonlocal ended
        ended += 1
        if ended == 2:  # the first to end is the cell that asks
            shell.events.unregister("post_run_cell", ran)
            call()

    shell.events.register("post_run_cell", ran)
