"""JupyterLab in a headless Chromium: fixtures for every test that looks at a lesson as a learner sees it.

    def test_something(open_lesson, run_all, screenshot):
        page = open_lesson("05_graph")      # a Playwright page: the notebook is open and its kernel ready
        run_all(page)                       # every cell has run, none failed but those tagged raises-exception
        page.get_by_role("slider").first.press("ArrowRight")
        expect(page.get_by_text("step 2 of 7")).to_be_visible()
        screenshot(page, "05_graph")        # into the folder named by UNDERTORCH_SCREENSHOTS, where it is set

The browser is UNDERTORCH_CHROMIUM, else a Chromium, Chrome or Edge on the PATH, else Playwright's own.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course.base.notebooks import ROOT, UNATTENDED, kernel_environment

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_S = 240  # this and the next are against a hang
PATIENCE_MS = 120_000
RUN_MS = 540_000
SIZE = {"width": 1280, "height": 1000}
TALLEST = 16_000  # Chromium's largest texture is 16,384 pixels high

DRAWING = re.compile(r"\(\.\./(docs/\w+\.svg)\)")
NOTEBOOK_IS_OPEN = "path => window.jupyterapp?.shell?.currentWidget?.context?.path === path"
KERNEL_IS_READY = """async () => {
    const { context, sessionContext } = window.jupyterapp.shell.currentWidget;
    await context.ready;
    await sessionContext.ready;
    await sessionContext.session.kernel.info;
}"""
# The promise of run-all-cells is of no use: it settles at the first error, of a tagged cell too, while others run on.
RUN_ALL = """async () => {
    const { commands } = window.jupyterapp;
    await commands.execute('notebook:clear-all-cell-outputs');
    commands.execute('notebook:run-all-cells');
}"""
RUN_HAS_ENDED = """() => {
    const models = window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model);
    const code = models.filter(model => model.type === 'code' && model.sharedModel.getSource().trim());
    const stopped = model => model.outputs.toJSON().some(output => output.output_type === 'error')
        && !(model.getMetadata('tags') ?? []).includes('raises-exception');
    return code.some(stopped) || code.every(model => model.executionCount !== null);
}"""
# Whatever the cells sent has arrived once the kernel has answered one question more.
ALL_HAS_ARRIVED = """async () => {
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    await kernel.requestExecute({ code: '', silent: true, store_history: false }).done;
}"""
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(({ model }) => ({
    type: model.type,
    source: model.sharedModel.getSource(),
    tags: model.getMetadata('tags') ?? [],
    outputs: model.type === 'code' ? model.outputs.toJSON() : [],
    ran: model.type !== 'code' || model.executionCount !== null || !model.sharedModel.getSource().trim(),
}))"""
# Scrolled to the top in a window that holds it all: only then is every cell laid out, and the last one's end known. It
# is laid out bit by bit, while nothing else is to be done. (With a limit: of a page that it takes for hidden, Chromium
# says but every ten seconds that nothing is to be done.)
NOTEBOOK_HEIGHT = """async () => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const idle = () => new Promise(resolve => requestIdleCallback(resolve, { timeout: 1000 }));
    notebook.activeCellIndex = 0;
    notebook.outerNode.scrollTop = 0;
    let height = 0;
    for (let unchanged = 0; unchanged < 20; ) {
        await idle();
        const margin = window.innerHeight - notebook.node.getBoundingClientRect().bottom;
        const now = notebook.widgets.at(-1).node.getBoundingClientRect().bottom + margin;
        unchanged = now === height ? unchanged + 1 : 0;
        height = now;
    }
    return height;
}"""


# All that was to be drawn is: the page has nothing to do, moves nothing, and its parts stay where they are.
AT_REST = """async () => {
    const idle = () => new Promise(resolve => requestIdleCallback(resolve, { timeout: 1000 }));
    const moves = (one) => one instanceof CSSTransition && one.playState === 'running'; // cursors blink for ever
    let places = '';
    for (let unchanged = 0; unchanged < 10; ) {
        await idle();
        const boxes = [...document.querySelectorAll('.jp-Notebook *')].map(part => part.getBoundingClientRect());
        const now = boxes.map(({ x, y, width, height }) => [x, y, width, height].join()).join(' ');
        unchanged = now === places && !document.getAnimations().some(moves) ? unchanged + 1 : 0;
        places = now;
    }
}"""


def at_rest(page):
    """Return when the page has drawn all that is asked for, and what its kernel has sent."""
    for script in (AT_REST, ALL_HAS_ARRIVED, AT_REST):
        settled(page, script)


def settled(page, script: str):
    """What a script's promise brings; `page.evaluate` alone has no time limit, and would wait for a kernel for ever."""
    late = f"setTimeout(() => fail(new Error('nothing came of it in {START_S} s')), {START_S * 1000})"
    return page.evaluate(f"() => Promise.race([({script})(), new Promise((_, fail) => {late})])")


def await_kernel(page, path: str):
    """Return when the notebook is open and its kernel has answered."""
    page.wait_for_function(NOTEBOOK_IS_OPEN, arg=path, timeout=START_S * 1000)
    settled(page, KERNEL_IS_READY)


class Lab(NamedTuple):
    """A running JupyterLab on a folder of its own."""

    root: Path
    settings: Path
    url: str
    token: str

    def request(self, path: str, method: str = "GET"):
        """An answer of the server's REST interface."""
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(f"{self.url}/{path}", method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            body = answer.read()
        return json.loads(body) if body else None


@pytest.fixture(scope="package")
def chromium():
    """A browser, until the last test of this folder: while it lives, no other event loop can run in this thread."""
    api = pytest.importorskip("playwright.sync_api")
    with contextlib.ExitStack() as stack:
        try:
            playwright = stack.enter_context(api.sync_playwright())
        except Exception as error:  # in a container without the libraries that its driver needs
            pytest.skip(f"no browser: Playwright's driver does not start ({error})")
        named = os.environ.get("UNDERTORCH_CHROMIUM")
        found = (shutil.which(program) for program in ([named] if named else PROGRAMS))
        own = playwright.chromium.executable_path
        path = next(filter(None, found), own if Path(own).is_file() and not named else None)
        if path is None:
            pytest.skip(f"no browser: {named or 'Chromium'} is not on the PATH, nor installed by Playwright")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=PATIENCE_MS)
        api.expect.set_options(timeout=PATIENCE_MS)
        browser.new_page, browser.new_context = map(patient, (browser.new_page, browser.new_context))
        yield browser
        browser.close()


def patient(made):
    """The same that gives what it makes time on a busy machine."""

    def make(**options):
        new = made(**options)
        new.set_default_timeout(PATIENCE_MS)
        return new

    return make


@pytest.fixture(scope="package")
def window(chromium):
    """A browser's window for all tests: its cache holds JupyterLab, which takes seconds to be read and compiled."""
    context = chromium.new_context(viewport=SIZE)
    yield context
    context.close()


@pytest.fixture(scope="package")
def lab(tmp_path_factory):
    """JupyterLab as a learner starts it, on an empty folder and with no settings but its own."""
    pytest.importorskip("jupyterlab")
    from course.commands.lab import LEARNERS_CONFIG

    with jupyterlab(tmp_path_factory, {"JUPYTER_CONFIG_PATH": str(LEARNERS_CONFIG)}) as running:
        yield running


@pytest.fixture
def authors_lab(tmp_path_factory):
    """JupyterLab as an author starts it, with `--teach`: it saves a lesson into its text."""
    pytest.importorskip("jupyterlab")
    pytest.importorskip("jupytext")
    with jupyterlab(tmp_path_factory, {}, teach=True) as running:
        yield running


@contextlib.contextmanager
def jupyterlab(tmp_path_factory, more: dict[str, str], teach: bool = False):
    """A running JupyterLab, with more variables in its environment."""
    from course.commands.lab import server_arguments

    root = tmp_path_factory.mktemp("lab")
    private = tmp_path_factory.mktemp("jupyter")
    shutil.copy(ROOT / "jupytext.toml", root)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    own = [
        f"--ServerApp.root_dir={root}",
        "--ServerApp.ip=127.0.0.1",
        f"--IdentityProvider.token={token}",
        "--LabApp.default_url=/lab",
        f"--LabApp.workspaces_dir={private / 'workspaces'}",
        "--LabApp.expose_app_in_browser=True",
    ]
    # An option given twice is an error to Jupyter: the one given last stays.
    options = {option.partition("=")[0]: option for option in [*server_arguments(port, False, [], teach), *own]}
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    own_folders = {name: str(private / folder) for name, folder in folders.items()}
    environment = kernel_environment() | UNATTENDED | own_folders | more
    log = private / "log.txt"
    with log.open("wb") as sink:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options.values()], cwd=root, env=environment, stdout=sink, stderr=sink
        )
    running = Lab(root, private / folders["JUPYTERLAB_SETTINGS_DIR"], f"http://127.0.0.1:{port}", token)
    try:
        _await_server(running, server, log)
        yield running
    finally:
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()


def _await_server(lab: Lab, server: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            lab.request("api/status")
            return
        except (urllib.error.URLError, ConnectionError) as error:
            if server.poll() is not None or time.monotonic() > deadline:
                tail = log.read_text(encoding="utf-8", errors="replace")[-3000:]
                raise RuntimeError(f"JupyterLab did not start:\n{tail}") from error
            time.sleep(0.1)


@pytest.fixture
def open_lesson(window, lab):
    """A function: a lesson's name, or a notebook's path, to a page with a copy of it open and its kernel ready.

    `page.console_errors` gathers what the browser's console reports as errors.
    """
    from playwright import sync_api as api

    pages = []

    def open_(lesson, folder: str = "my_lessons", lab: Lab = lab):
        source = lesson if isinstance(lesson, Path) else ROOT / "notebooks" / f"{lesson}.ipynb"
        copy = lab.root / folder / source.name
        copy.parent.mkdir(exist_ok=True)
        if copy != source:
            shutil.copy(source, copy)
        for drawing in set(DRAWING.findall(source.read_text(encoding="utf-8"))):  # that the text shows
            (lab.root / drawing).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / drawing, lab.root / drawing)
        path = copy.relative_to(lab.root).as_posix()
        page = window.new_page()
        pages.append(page)
        page.console_errors = []
        page.on("console", lambda message: message.type == "error" and page.console_errors.append(message.text))
        page.on("pageerror", lambda error: page.console_errors.append(str(error)))
        page.bring_to_front()
        page.goto(f"{lab.url}/lab/workspaces/{secrets.token_hex(4)}/tree/{path}?token={lab.token}")
        try:
            await_kernel(page, path)
        except api.Error:  # on a machine that does much else; a learner reloads the page too
            page.console_errors.clear()
            page.reload()
            await_kernel(page, path)
        return page

    yield open_
    for page in pages:
        page.close()
    for session in lab.request("api/sessions"):
        lab.request(f"api/sessions/{session['id']}", "DELETE")
    shutil.rmtree(lab.settings, ignore_errors=True)  # a theme that was chosen would be the next test's


@pytest.fixture
def run_all():
    """A function: runs every cell of a page's notebook from cleared outputs, and returns the cells with their outputs.

    Fails at an error in a cell not tagged raises-exception, and at a cell so tagged that raised none.
    """

    def run(page, timeout_ms: int = RUN_MS):
        page.evaluate(RUN_ALL)
        page.wait_for_function(RUN_HAS_ENDED, timeout=timeout_ms)
        settled(page, ALL_HAS_ARRIVED)
        cells = page.evaluate(CELLS)
        for number, cell in enumerate(cells, start=1):
            errors = [output for output in cell["outputs"] if output["output_type"] == "error"]
            if not cell["ran"]:
                pytest.fail(f"cell {number}: it was not run\n{cell['source']}", pytrace=False)
            if bool(errors) != ("raises-exception" in cell["tags"]):
                what = f"{errors[0]['ename']}: {errors[0]['evalue']}" if errors else "it raised nothing"
                pytest.fail(f"cell {number}: {what}\n{cell['source']}", pytrace=False)
        return cells

    return run


@pytest.fixture
def run_cell(open_lesson, run_all, tmp_path):
    """A function: the page of a notebook with these cells, which have run."""

    def run(*sources: str):
        nb = new_notebook(cells=[new_code_cell(source) for source in sources])
        nb.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
        path = tmp_path / "96_cell.ipynb"
        nbformat.write(nb, path)
        page = open_lesson(path)
        run_all(page)
        return page

    return run


OURS = (".jp-Notebook .jp-RenderedMarkdown", ".jp-Notebook .jp-OutputArea-output")
# What JupyterLab itself decides: how its outputs scroll, and which headings its notebook begins with.
NOT_OURS = ("scrollable-region-focusable", "heading-order", "page-has-heading-one", "region")


@pytest.fixture
def broken_rules():
    """A function: which of axe's rules for accessibility the course's part of a page breaks, and where.

    None where axe is not installed; test_journey.py is skipped there, and says so.
    """
    rules = {rule: {"enabled": False} for rule in NOT_OURS}
    run = "([include, rules]) => axe.run({ include }, { rules, resultTypes: ['violations'] })"

    def find(page):
        try:
            from axe_playwright_python.base import AXE_SCRIPT
        except ImportError:
            return {}
        settled(page, AT_REST)  # a colour that is on its way to another has too little contrast
        page.evaluate(AXE_SCRIPT)
        include = [[part] for part in OURS if page.locator(part).count()]
        broken = page.evaluate(run, [include, rules])["violations"]
        return {f"{rule['id']}: {rule['help']}": [node["html"][:200] for node in rule["nodes"]] for rule in broken}

    return find


BRIGHTNESS = "words => Math.min(...getComputedStyle(words).color.match(/[\\d.]+/g).slice(0, 3))"


@pytest.fixture
def choose_dark_theme():
    """A function: the dark theme for a page; these words, dark before, are light then."""

    def choose(page, words):
        assert words.evaluate(BRIGHTNESS) < 100
        page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
        page.wait_for_function(f"words => ({BRIGHTNESS})(words) > 150", arg=words.element_handle())
        # What is drawn on a white ground is dark as well, in every figure of the page.
        grounds = page.locator('svg > rect[width="100%"][fill="#ffffff"]').all()
        assert all("invert" in ground.evaluate("it => getComputedStyle(it.parentElement).filter") for ground in grounds)

    return choose


@pytest.fixture
def rest():
    """A function: waits until a page has drawn all that is asked for, and what its kernel has sent."""
    return at_rest


@pytest.fixture
def fits_narrow_page():
    """A function: in a narrow window, beside the list of files, no control of a figure is beyond its edge.

    Nor are the parts named by selectors.
    """

    def fits(page, figure, *parts: str):
        page.set_viewport_size({"width": 560, "height": 900})
        at_rest(page)
        box = figure.bounding_box()
        for part in parts:
            inner = figure.locator(part).bounding_box()
            assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 1
        for control in figure.locator("input, select, button").all():
            inner = control.bounding_box()
            assert inner is None or inner["x"] + inner["width"] <= box["x"] + box["width"] + 1, control.evaluate(
                "control => control.outerHTML"
            )

    return fits


@pytest.fixture
def whole_notebook():
    """A function: makes the window as high as the notebook, so that every cell is laid out."""

    def lay_out(page):
        page.set_viewport_size(SIZE | {"height": TALLEST})
        height = -1
        while (now := int(page.evaluate(NOTEBOOK_HEIGHT))) != height or now < 100:  # its cells are laid out one by one
            height = now
            settled(page, AT_REST)
        page.set_viewport_size(SIZE | {"height": min(TALLEST, height + 10)})

    return lay_out


@pytest.fixture
def screenshot(whole_notebook):
    """A function: the whole notebook, or one element, as NAME.png in the folder UNDERTORCH_SCREENSHOTS, if set."""

    def shoot(page, name: str, element=None):
        folder = os.environ.get("UNDERTORCH_SCREENSHOTS")
        if not folder:
            return None
        path = Path(folder) / f"{name}.png"
        if element is not None:
            element.screenshot(path=path)
            return path
        whole_notebook(page)
        page.screenshot(path=path)
        page.set_viewport_size(SIZE)
        return path

    return shoot
