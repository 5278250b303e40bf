"""What the documents name is there: files, headings, commands and their options, tests."""

import re
import subprocess
import sys

import pytest

from course.cli import COMMANDS
from course.notebooks import ROOT

FILES = ("README.md", "CONTRIBUTING.md", "source/README.md", "benchmarks/README.md")
DOCUMENTS = sorted([ROOT / name for name in FILES] + list((ROOT / "docs").glob("*.md")))
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)")
FOLDERS = "engine|course|tests|docs|source|benchmarks|requirements|notebooks|exercises|solutions"
PATH = re.compile(rf"(?<![\w./-])(?:\.ci|{FOLDERS})/[\w./*-]*\w")
COMMAND = re.compile(r"python -m course (\w+)((?: +[\w.-]+)*)")
BENCHMARK = re.compile(r"python -m (benchmarks[.\w]*)((?: +[\w.-]+)*)")
# Names that stand for any lesson or learner, and what is made or kept outside of the repository.
PLACEHOLDER = re.compile(r"NN|NAME")

each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())


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
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), f"{target}#{anchor}"


@each_document
def test_every_file_that_is_named_exists(path):
    for name in PATH.findall(path.read_text(encoding="utf-8")):
        if not PLACEHOLDER.search(name):
            assert any(ROOT.glob(name)) or any(ROOT.glob(f"{name}.*")), name


def options_of(*command):
    """The options that a command's help names."""
    told = subprocess.run([sys.executable, "-m", *command, "--help"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert told.returncode == 0, command
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
        assert options_in(words) <= options_of(module)
