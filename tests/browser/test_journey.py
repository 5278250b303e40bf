"""A newcomer's first hour and second day: the course started as the README says, in a browser, with mouse and keyboard.

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

from course import lab
from course.notebooks import ROOT
from engine import viz

api = pytest.importorskip("playwright.sync_api")
for needed in ("axe_playwright_python", "jupyterlab", "anywidget", "cloudpickle"):
    pytest.importorskip(needed)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(os.name == "nt", reason="the server is killed as Linux and macOS do it"),
    pytest.mark.skipif(viz.render("digraph {}", "svg") is None, reason="there is no Graphviz here"),
]

PATIENCE_MS = 120_000
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
COMMAND = "command => window.jupyterapp.commands.execute(command)"
CURRENT = "path => window.jupyterapp?.shell?.currentWidget?.context?.path === path"
READY = """async () => {
    const { context, sessionContext } = window.jupyterapp.shell.currentWidget;
    await context.ready;
    await sessionContext.ready;
}"""
ALL_HAVE_RUN = """() => window.jupyterapp.shell.currentWidget.content.widgets.every(({ model }) =>
    model.type !== 'code' || model.executionCount !== null || !model.sharedModel.getSource().trim())"""


class Course:
    """A clone of the course, its server and its page; as a learner's computer has it."""

    def __init__(self, folder, browser, width, broken_rules):
        self.root, self.private, self.width = folder / "course", folder, width
        self.browser, self.server, self.page, self.broken_rules = browser, None, None, broken_rules
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, files.split("\0")):
            if (ROOT / name).is_file():  # not one that is being deleted
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.root / name)
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "the course as it came")

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=True).stdout

    def start(self):
        """`python -m course lab`, and its address opened in the browser; the page that it opens at."""
        taken = ("UNDERTORCH_PROGRESS", "PYTHONPATH", "JUPYTERLAB_WORKSPACES_DIR", "JUPYTER_CONFIG_PATH")
        env = {name: value for name, value in os.environ.items() if name not in taken}
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            env[name] = str(self.private / name.lower())
        self.server = subprocess.Popen(
            [sys.executable, "-m", "course", "lab", "--no-browser", "--", "--LabApp.expose_app_in_browser=True"],
            cwd=self.root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, encoding="utf-8",
        )  # fmt: skip
        self.listener = threading.Thread(target=self.server.stderr.read)
        told = (re.search(r"(http://\S+?)(/lab\S*)\?token=(\w+)", line) for line in self.server.stderr)
        address, where, token = next(filter(None, told)).groups()
        self.listener.start()  # to what else it says
        self.page = self.browser.new_context(viewport={"width": self.width, "height": 800}).new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        api.expect.set_options(timeout=PATIENCE_MS)
        deadline = time.monotonic() + 60
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

    def at(self, path):
        """Wait until this notebook is in front."""
        self.page.wait_for_function(CURRENT, arg=path)
        self.page.evaluate(READY)

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
            self.page.wait_for_timeout(500)
            folder = os.environ.get("UNDERTORCH_SCREENSHOTS")
            if folder:
                self.page.screenshot(path=f"{folder}/{name}_{self.width}_{theme.lower()}.png")
            found |= {f"{theme}, {rule}": parts for rule, parts in self.broken_rules(self.page).items()}
        assert not found, json.dumps(found, indent=1)


@pytest.fixture
def course(tmp_path, chromium, broken_rules, request):
    journey = Course(tmp_path, chromium, request.param, broken_rules)
    yield journey
    journey.kill()
    api.expect.set_options(timeout=5000)


WIDTHS = [1024, pytest.param(400, marks=pytest.mark.slow), pytest.param(1600, marks=pytest.mark.slow)]


@pytest.mark.parametrize("course", WIDTHS, indirect=True)
def test_the_first_hour_and_the_second_day(course):
    # The first start: lesson 00 is open, and looking at it changes nothing.
    assert course.start() == f"/lab/tree/{lab.FIRST_LESSON}"
    page = course.page
    course.at(lab.FIRST_LESSON)
    if course.width < 600:
        page.evaluate(COMMAND, "application:toggle-left-area")  # Ctrl+B: the list of files
    page.evaluate(COMMAND, "docmanager:save")
    assert course.git("status", "--porcelain") == ""
    course.look("welcome")

    # To a lesson, by the links at the top and the table of contents.
    page.get_by_role("link", name="The graph", exact=True).click()
    course.at("notebooks/05_graph.ipynb")
    course.run_all()
    figure = page.locator(".undertorch-steps").first
    slider, heading = figure.get_by_role("slider"), figure.get_by_role("heading", level=4)
    slider.press("ArrowRight")
    api.expect(heading).to_contain_text("Step 1 of 4")
    figure.get_by_role("button", name="Forward").click()
    api.expect(heading).to_contain_text("Step 2 of 4")
    figure.locator(".node", has_text="AddBackward0").click()
    api.expect(heading).to_contain_text("Step 1 of 4")
    numbers, control = heading.bounding_box(), slider.bounding_box()
    assert numbers["y"] - control["y"] < 500  # both are to be seen
    course.look("lesson")
    page.evaluate(COMMAND, "docmanager:save")

    # To its exercises: blank, failing, wrong, right; a hint, the solution, the progress.
    page.get_by_role("link", name="Exercises", exact=True).first.click()
    course.at("my_exercises/05_graph.ipynb")
    api.expect(page.get_by_role("tab", name="Exercises 05_graph.ipynb", exact=True)).to_have_count(1)
    course.run_all()
    api.expect(page.get_by_text("Exercise 05.5: not attempted yet.").first).to_be_attached()
    api.expect(course.answer("05.1", "slopes = (5.0, 2.0)")).to_contain_text("Two ways lead from the root to a.")
    api.expect(course.answer("05.1", "slopes = (7.0, 2.0) / 0")).to_contain_text("has ended with an error")
    api.expect(course.answer("05.1", "slopes = (7.0, 2.0)")).to_contain_text("Exercise 05.1: correct.")
    api.expect(course.ask("hint(5.2)")).to_contain_text("Hint 1 of 3 for exercise 05.2")
    api.expect(course.ask('solution("05.2")')).to_contain_text("def count_nodes")
    progress = course.ask("progress()")
    api.expect(progress).to_contain_text("0 of 17 lessons done")
    api.expect(progress.get_by_role("link", name="exercise 05.2")).to_be_visible()
    course.look("exercises")
    page.evaluate(COMMAND, "docmanager:save")
    remembered = course.root / ".lab"
    deadline = time.monotonic() + 60
    while not any('"current":"notebook:my_exercises' in re.sub(r"\s", "", p.read_text()) for p in remembered.glob("*")):
        assert time.monotonic() < deadline, "JupyterLab has not saved where the learner is"
        time.sleep(0.2)
    course.kill()

    # The next day: the same tabs, the answer is there, and figures sleep until they are woken.
    assert course.start() == "/lab"
    page = course.page
    course.at("my_exercises/05_graph.ipynb")
    api.expect(page.get_by_text("Exercise 05.1: correct.").first).to_be_attached()
    assert "slopes = (7.0, 2.0)" in (course.root / "my_exercises/05_graph.ipynb").read_text(encoding="utf-8")
    page.get_by_role("link", name="lesson 05").first.click()
    course.at("notebooks/05_graph.ipynb")
    asleep = page.locator("em:visible", has_text="A still picture. Run the cell (Shift+Enter)").first
    page.evaluate(SCROLL_TO, "BackwardStepper(d)")
    api.expect(asleep).to_be_visible()
    assert page.get_by_text("Error displaying widget").count() == 0
    course.look("next_day")
    course.run_all()
    api.expect(page.locator(".undertorch-steps").first.get_by_role("slider")).to_be_attached()
    page.get_by_role("link", name="Contents").first.click()
    course.at(lab.FIRST_LESSON)

    # Of the course's own files none has changed but the lesson that was run.
    page.evaluate(COMMAND, "docmanager:save")
    assert course.git("status", "--porcelain").split() == ["M", "notebooks/05_graph.ipynb"]
