"""A newcomer's first hour, second day and first update: the course started as the README says, in a browser.

One journey for each width of the window; what is on the way is looked at in the light and the dark theme, and judged by
axe's rules: the course's own part of the page, not JupyterLab's.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import pytest

from course.base.notebooks import ROOT
from course.judging import exercises
from course.learner import copies
from engine import viz

api = pytest.importorskip("playwright.sync_api")
for needed in ("axe_playwright_python", "jupyterlab", "anywidget", "cloudpickle"):
    pytest.importorskip(needed)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(os.name == "nt", reason="the server is killed as Linux and macOS do it"),
    pytest.mark.skipif(viz.render("digraph {}", "svg") is None, reason="there is no Graphviz here"),
]

FIND = """key => window.jupyterapp.shell.currentWidget.content.widgets
    .findIndex(({ model }) => key === model.getMetadata('exercise')
        || model.type === 'code' && model.sharedModel.getSource().includes(`check("${key.slice(6)}"`))"""
WRITE = """([index, source]) =>
    window.jupyterapp.shell.currentWidget.content.widgets[index].model.sharedModel.setSource(source)"""
RUN = """async index => {
    const { content } = window.jupyterapp.shell.currentWidget;
    content.activeCellIndex = index;
    content.deselectAll();
    await window.jupyterapp.commands.execute('notebook:run-cell');
}"""
SCROLL_TO = """source => {
    const { content } = window.jupyterapp.shell.currentWidget;
    content.activeCellIndex = content.widgets.findIndex(({ model }) => model.sharedModel.getSource().includes(source));
    return content.scrollToItem(content.activeCellIndex, 'start');
}"""
FIND_SOURCE = """source => window.jupyterapp.shell.currentWidget.content.widgets
    .findIndex(({ model }) => model.sharedModel.getSource().includes(source))"""
HAVE_OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .filter(({ model }) => model.type === 'code' && (model.outputs.length || model.executionCount !== null))
    .map(({ model }) => model.sharedModel.getSource())"""
OPEN = "path => void window.jupyterapp.commands.execute('docmanager:open', { path })"
COMMAND = "command => window.jupyterapp.commands.execute(command)"
CURRENT = "path => window.jupyterapp?.shell?.currentWidget?.context?.path === path"
READY = """async () => {
    const { context, sessionContext } = window.jupyterapp.shell.currentWidget;
    await context.ready;
    await sessionContext.ready;
}"""
ALL_HAVE_RUN = """() => window.jupyterapp.shell.currentWidget.content.widgets.every(({ model }) =>
    model.type !== 'code' || model.executionCount !== null || !model.sharedModel.getSource().trim())"""

FIRST, LESSON, EXERCISES = "my_lessons/00_welcome.ipynb", "my_lessons/05_graph.ipynb", "my_exercises/05_graph.ipynb"
NOTE, ANSWER = "What I did not know: a note is an object.", "slopes = (7.0, 2.0)"


class Course:
    """A clone of the course, its server and its page; as a learner's computer has it."""

    def __init__(self, folder, browser, width, rest, broken_rules):
        self.root, self.private, self.width = folder / "course", folder, width
        self.browser, self.rest, self.broken_rules = browser, rest, broken_rules
        self.server = self.page = None
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, files.split("\0")):
            if (ROOT / name).is_file():  # not one that is being deleted
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.root / name)
        self.git("init", "-q")
        self.commit("the course as it came")

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=True).stdout

    def start(self):
        """`python -m course lab`, and its address opened in the browser; the page that it opens at."""
        taken = ("UNDERTORCH_PROGRESS", "UNDERTORCH_VENV", "PYTHONPATH")
        taken += ("JUPYTERLAB_WORKSPACES_DIR", "JUPYTER_CONFIG_PATH")
        env = {name: value for name, value in os.environ.items() if name not in taken}
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            env[name] = str(self.private / name.lower())
        self.server = subprocess.Popen(
            [sys.executable, "-m", "course", "lab", "--no-browser", "--", "--LabApp.expose_app_in_browser=True"],
            cwd=self.root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, encoding="utf-8",
        )  # fmt: skip
        self.listener = threading.Thread(target=self.server.stderr.read)
        self.told = ""
        for line in self.server.stderr:
            self.told += line
            if found := re.search(r"(http://\S+?)(/lab\S*)\?token=(\w+)", line):
                break
        address, where, token = found.groups()
        self.listener.start()  # to what else it says
        self.page = self.browser.new_context(viewport={"width": self.width, "height": 800}).new_page()
        deadline = time.monotonic() + 120
        while True:
            try:
                self.page.goto(f"{address}{where}?token={token}")
                break
            except api.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
        return where

    def kill(self):
        """What a crash of the computer leaves."""
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            if self.listener.is_alive():
                self.listener.join()
            self.server.stderr.close()
        if self.page is not None:
            self.page.context.close()

    def update(self, folder, lesson, old, new):
        """What `git pull` does where a notebook of the course has other words."""
        path = self.root / folder / f"{lesson}.ipynb"
        text = path.read_text(encoding="utf-8")
        assert old in text
        nb = json.loads(text.replace(old, new))
        if blank := nb["metadata"].get("undertorch"):
            blank["blank"] = copies.digest(nb["cells"])  # as a build does
        path.write_text(json.dumps(nb), encoding="utf-8")
        self.commit("a newer course")

    def reset(self, *arguments):
        """`python -m course reset`, for somebody who is sure; what it says."""
        command = [sys.executable, "-m", "course", "reset", *arguments, "--yes"]
        return subprocess.run(command, cwd=self.root, capture_output=True, encoding="utf-8", check=True).stdout

    def commit(self, message):
        self.git("add", "-A")
        self.git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", message)

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def at(self, path):
        """Wait until this notebook is in front."""
        self.page.wait_for_function(CURRENT, arg=path)
        self.page.evaluate(READY)

    def follow(self, name, exact=True):
        """Click a link, when JupyterLab has made it one that opens in it: a cell that was run is drawn anew."""
        self.rest(self.page)
        link = self.page.get_by_role("link", name=name, exact=exact)
        link.and_(self.page.locator("[href*='/files/']")).first.click()

    def run_all(self):
        self.page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_function(ALL_HAVE_RUN)

    def answer(self, key, source):
        """Write into the cell of an exercise, run it and then its check; what the check says."""
        cell, checked = self.page.evaluate(FIND, key), self.page.evaluate(FIND, f"check {key}")
        self.page.evaluate(WRITE, [cell, source])
        self.page.evaluate(RUN, cell)
        self.page.evaluate(RUN, checked)
        return self.page.locator(".jp-Notebook:visible .jp-Cell").nth(checked).get_by_role("status")

    def ask(self, source):
        """Run a line in a new cell at the end of the notebook; what it shows."""
        index = self.page.evaluate("""async source => {
            const { content } = window.jupyterapp.shell.currentWidget;
            content.activeCellIndex = content.widgets.length - 1;
            await window.jupyterapp.commands.execute('notebook:insert-cell-below');
            content.activeCell.model.sharedModel.setSource(source);
            return content.activeCellIndex;
        }""", source)  # fmt: skip
        self.page.evaluate(RUN, index)
        return self.page.locator(".jp-Notebook:visible .jp-Cell").nth(index).get_by_role("status")

    def look(self, name):
        """In both themes: what axe finds in the course's part of the page; nothing."""
        found = {}
        for theme in ("Light", "Dark"):
            self.page.evaluate(
                "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", f"JupyterLab {theme}"
            )
            self.page.wait_for_function(
                "light => document.body.dataset.jpThemeLight === light", arg=str(theme == "Light").lower()
            )
            self.rest(self.page)
            folder = os.environ.get("UNDERTORCH_SCREENSHOTS")
            if folder:
                self.page.screenshot(path=f"{folder}/{name}_{self.width}_{theme.lower()}.png")
            found |= {f"{theme}, {rule}": parts for rule, parts in self.broken_rules(self.page).items()}
        assert not found, json.dumps(found, indent=1)


@pytest.fixture
def course(tmp_path, chromium, rest, broken_rules, request):
    journey = Course(tmp_path, chromium, request.param, rest, broken_rules)
    yield journey
    journey.kill()


WIDTHS = [1024, pytest.param(400, marks=pytest.mark.slow), pytest.param(1600, marks=pytest.mark.slow)]


@pytest.mark.parametrize("course", WIDTHS, indirect=True)
def test_the_first_hour_the_second_day_and_an_update(course):
    # The first start: the learner's copy of lesson 00 is open, without answers, and looking at it changes nothing.
    assert course.start() == f"/lab/tree/{FIRST}"
    page = course.page
    course.at(FIRST)
    assert page.evaluate(HAVE_OUTPUTS) == []
    as_made = course.read(FIRST)
    if course.width < 600:
        page.evaluate(COMMAND, "application:toggle-left-area")  # Ctrl+B: the list of files
    page.evaluate(COMMAND, "docmanager:save")
    assert course.read(FIRST) == as_made
    course.look("welcome")

    # To a lesson, by the links at the top and the table of contents.
    course.follow("The graph")
    course.at(LESSON)
    assert page.evaluate(HAVE_OUTPUTS) == []
    course.run_all()
    figure = page.locator(".undertorch-steps").first
    slider, heading = figure.get_by_role("slider"), figure.get_by_role("heading", level=3)
    slider.press("ArrowRight")
    api.expect(heading).to_contain_text("Step 1 of 7: c = a * b")
    figure.get_by_role("button", name="Forward").click()
    api.expect(heading).to_contain_text("Step 2 of 7: d = c + a")
    figure.locator(".node", has_text="MulBackward0").click()
    api.expect(heading).to_contain_text("Step 1 of 7: c = a * b")
    numbers, control = heading.bounding_box(), slider.bounding_box()
    assert numbers["y"] - control["y"] < 500  # both are to be seen
    course.look("lesson")

    # A note of the learner's own, in the lesson.
    page.evaluate(WRITE, [page.evaluate(FIND_SOURCE, "## A look at the notes"), NOTE])

    # To its exercises: blank, failing, wrong, right; a hint, the solution, the progress.
    page.evaluate(COMMAND, "docmanager:save")
    page.evaluate(SCROLL_TO, "**Next:**")
    course.follow("Exercises")
    course.at(EXERCISES)
    api.expect(page.get_by_role("tab", name="Exercises 05_graph.ipynb", exact=True)).to_have_count(1)
    course.run_all()
    api.expect(page.get_by_text("Exercise 05.5: not attempted yet.").first).to_be_attached()
    api.expect(course.answer("05.1", "slopes = (5.0, 2.0)")).to_contain_text("Two paths lead from the root to a.")
    api.expect(course.answer("05.1", "slopes = (7.0, 2.0) / 0")).to_contain_text("stopped with an error")
    api.expect(course.answer("05.1", ANSWER)).to_contain_text("Exercise 05.1: correct.")
    api.expect(course.ask("hint(5.2)")).to_contain_text("Hint 1 of 3 for exercise 05.2")
    api.expect(course.ask('solution("05.2")')).to_contain_text("def count_nodes")
    progress = course.ask("progress()")
    api.expect(progress).to_contain_text(f"0 of {len(exercises.lessons())} lessons done")
    api.expect(progress.get_by_role("link", name="exercise 05.2")).to_be_visible()
    course.look("exercises")
    page.evaluate(COMMAND, "docmanager:save")
    remembered = course.root / ".lab"
    deadline = time.monotonic() + 120
    while not any('"current":"notebook:my_exercises' in re.sub(r"\s", "", p.read_text()) for p in remembered.glob("*")):
        assert time.monotonic() < deadline, "JupyterLab has not saved where the learner is"
        time.sleep(0.2)
    course.kill()

    # The next day: the same tabs, the answer is there, and figures sleep until they are woken.
    assert course.start() == "/lab"
    page = course.page
    course.at(EXERCISES)
    api.expect(page.get_by_text("Exercise 05.1: correct.").first).to_be_attached()
    assert ANSWER in course.read(EXERCISES)
    course.follow("lesson 05", exact=False)
    course.at(LESSON)
    asleep = page.locator("em:visible", has_text="A still picture. Run the cell (Shift+Enter)").first
    page.evaluate(SCROLL_TO, "BackwardStepper(")
    api.expect(asleep).to_be_visible()
    assert page.get_by_text("Error displaying widget").count() == 0
    course.look("next_day")
    course.run_all()
    api.expect(page.locator(".undertorch-steps").first.get_by_role("slider")).to_be_attached()
    course.follow("Contents", exact=False)
    course.at(FIRST)
    course.kill()

    # Of the course's own files none has changed, so that nothing is in the way of an update.
    assert course.git("status", "--porcelain") == ""
    theirs = {path: course.read(path) for path in (LESSON, EXERCISES)}
    course.update("notebooks", "05_graph", "What do these notes look like?", "What do the revised notes look like?")
    course.update("exercises", "05_graph", "Draw the graph.", "Draw the revised graph.")
    course.update("notebooks", "00_welcome", "A notebook is a list of", "A revised notebook is a list of")

    # What the learner has changed is as it was, the new versions are beside it, and the rest is new.
    course.start()
    page = course.page
    page.wait_for_function("window.jupyterapp?.restored")
    page.evaluate(OPEN, FIRST)
    course.at(FIRST)
    page.evaluate(SCROLL_TO, "## How a notebook works")
    api.expect(page.locator("p:visible", has_text="A revised notebook is a list of")).to_be_visible()
    assert {path: course.read(path) for path in theirs} == theirs
    for path in theirs:
        assert f"There is a new version of {path}." in course.told
        beside = path.replace(".ipynb", ".new.ipynb")
        page.evaluate(OPEN, beside)
        course.at(beside)
        page.evaluate(SCROLL_TO, "revised")
        api.expect(page.locator("p:visible", has_text="the revised")).to_be_visible()
        assert page.evaluate(HAVE_OUTPUTS) == []
        course.look(f"update_{path.partition('/')[0]}")
    course.kill()

    # The next start has nothing more to say; and a lesson can be had as it came, what was in it is kept.
    course.start()
    assert "new version" not in course.told
    told = course.reset("05", "--lesson")
    assert "revised notes" in course.read(LESSON) and NOTE not in course.read(LESSON)
    (kept,) = (course.root / "my_lessons/backups").glob("*.ipynb")
    assert kept.name in told and kept.read_text(encoding="utf-8") == theirs[LESSON]
    assert course.read(EXERCISES) == theirs[EXERCISES]
    assert course.git("status", "--porcelain") == ""
