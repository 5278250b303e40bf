"""What the documents name is there: files, headings, commands and their options, tests."""

import ast
import contextlib
import functools
import importlib.util
import io
import re
import runpy
import subprocess
import sys
import warnings
from xml.etree import ElementTree

from over_tables import over

from course.base.notebooks import ROOT
from course.commands.cli import COMMANDS, main

FILES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "course/lessons/README.md",
    "benchmarks/README.md",
)
DOCUMENTS = sorted([ROOT / name for name in FILES] + list((ROOT / "docs").glob("*.md")))
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)")
FOLDERS = "engine|course|tests|docs|benchmarks|requirements|notebooks|exercises|solutions"
PATH = re.compile(rf"(?<![\w./-])(?:\.ci|{FOLDERS})/[\w./*-]*\w")
COMMAND = re.compile(r"python -m course (\w+)((?: +[\w.-]+)*)")
BENCHMARK = re.compile(r"python -m (benchmarks[.\w]*)((?: +[\w.-]+)*)")
# Names that stand for any lesson or learner, and what is made or kept outside of the repository.
PLACEHOLDER = re.compile(r"NN|NAME")

each_document = over("path", DOCUMENTS)


def anchors(text):
    """The headings of a document as links name them."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.+)$", text)}


@each_document
def test_every_link_leads_to_a_file_and_a_heading(path):
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        file = (path.parent / target) if target else path
        if "my_exercises" in target or PLACEHOLDER.search(target):
            continue
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{target}#{anchor}"


@each_document
def test_every_file_that_is_named_exists(path):
    for name in PATH.findall(path.read_text(encoding="utf-8")):
        if not PLACEHOLDER.search(name):
            assert any(ROOT.glob(name)) or any(ROOT.glob(f"{name}.*")), name


@functools.cache
def options_of(module, *command):
    """The options that a command's help names."""
    if module == "course":
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
            main([*command, "--help"])
        return set(re.findall(r"--[\w-]+", told.getvalue()))
    told = subprocess.run([sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert told.returncode == 0, module
    return set(re.findall(r"--[\w-]+", told.stdout))


def options_in(words):
    return {word for word in words.split() if word.startswith("--")}


@each_document
def test_every_command_of_the_course_and_its_options_exist(path):
    for name, words in COMMAND.findall(path.read_text(encoding="utf-8")):
        if name != "COMMAND":
            assert name in COMMANDS
            assert not options_in(words) or options_in(words) <= options_of("course", name)


@each_document
def test_every_benchmark_and_its_options_exist(path):
    for module, words in BENCHMARK.findall(path.read_text(encoding="utf-8")):
        assert importlib.util.find_spec(module)
        assert not options_in(words) or options_in(words) <= options_of(module)


# ---- the map of the engine

UPDATE = runpy.run_path(str(ROOT / "docs/update.py"))
ENGINE = (ROOT / "docs/engine.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"(?s)\n```python\n(.*?)```\n\n```text\n(.*?)```\n", ENGINE)


def test_lines_of_links_tables_of_files_and_the_layers_are_those_of_the_engine():
    old = {path for path, text in UPDATE["contents"]().items() if path.read_text(encoding="utf-8") != text}
    assert not old, "run python docs/update.py"


def test_the_drawn_picture_shows_the_layers_of_the_contracts_and_says_so_in_words():
    root = ElementTree.fromstring((ROOT / "docs/layers.svg").read_text(encoding="utf-8"))
    shown = [e.text.strip() for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert shown == re.findall(r"&#160;(\w+)&#160;", UPDATE["picture"]()), "run python docs/update.py with Graphviz"
    assert root.find("{http://www.w3.org/2000/svg}desc").text == UPDATE["words"]()


def test_the_moving_picture_shows_every_step_of_the_figure_and_says_so_in_words():
    moving = runpy.run_path(str(ROOT / "docs/moving.py"))
    stepper, pictures = moving["frames"]()
    file = ROOT / "docs/stepper.svg"
    root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
    groups = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "frame"]
    titles = [g.findall("{http://www.w3.org/2000/svg}text")[1].text for g in groups]
    assert titles == [step.title for step in stepper.steps] and len(titles) == len(pictures) > 5
    assert root.find("{http://www.w3.org/2000/svg}title").text == moving["words"](stepper), "run python docs/moving.py"
    assert file.stat().st_size < 2_000_000
    assert all(word not in file.read_text("utf-8") for word in ("<script", "href"))


@over("code, printed", EXAMPLES)
def test_the_examples_of_the_map_print_what_stands_below_them(code, printed):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code, "<example>", "exec", dont_inherit=True), {"__name__": "__main__"})
    assert shown.getvalue() == printed


def test_every_file_has_its_place_in_the_map():
    named = {ROOT / "docs" / target for target, _ in LINK.findall(ENGINE)}
    files = {path for path in (ROOT / "engine").rglob("*.py") if path.stat().st_size}
    assert not files - {path.resolve() for path in named}


def test_the_core_is_listed_in_an_order_in_which_it_can_be_read():
    known = {"__init__"}
    for path in UPDATE["reading_order"](ROOT / "engine/core"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in (n for n in tree.body if isinstance(n, ast.ImportFrom) and n.level == 1):
            asked = {node.module} if node.module else {a.name for a in node.names}
            assert asked <= known, f"{path.name} stands on {asked - known}"
        known.add(path.stem)
