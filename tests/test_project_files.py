"""What a project has beside its code says what is so: versions, licences, forms, hooks."""

import datetime
import re
import tomllib

import pytest

import engine
from course.base.environment import lock_file
from course.base.notebooks import ROOT
from course.commands.cli import COMMANDS

yaml = pytest.importorskip("yaml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
VERSION = re.compile(r"(?m)^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def locked(lock="dev"):
    return dict(re.findall(r"(?m)^([\w.-]+)==([^ ;]+)", lock_file(lock).read_text(encoding="utf-8")))


def test_the_changelog_ends_with_this_version_and_the_citation_names_it():
    versions = VERSION.findall(text_of("CHANGELOG.md"))
    assert versions == sorted(versions, key=lambda found: tuple(map(int, found[0].split("."))), reverse=True)
    version, date = versions[0]
    assert (version, date) == (engine.__version__, str(CITATION["date-released"])) == (CITATION["version"], date)
    assert datetime.date.fromisoformat(date)


def test_what_code_and_texts_are_licensed_under_is_said_alike_everywhere():
    project = PROJECT["project"]
    assert project["license"] == " AND ".join(CITATION["license"]) == "BSD-3-Clause AND CC-BY-4.0"
    assert project["license-files"] == ["LICENSE", "LICENSE-docs"]
    assert text_of("LICENSE").startswith("BSD 3-Clause License")
    assert "Section 8" in text_of("LICENSE-docs") and "Attribution 4.0 International" in text_of("LICENSE-docs")
    assert all(f"]({name})" in text_of("README.md") for name in project["license-files"])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_what_it_needs(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert form["name"] and form["description"] and set(form) <= {"name", "description", "title", "body"}
    asked = [field for field in form["body"] if field["type"] in ("input", "textarea")]
    assert len(asked) == len({field["id"] for field in asked}) == len({f["attributes"]["label"] for f in asked})
    assert any(field.get("validations", {}).get("required") for field in asked)
    assert all(field["type"] in ("markdown", "input", "textarea") for field in form["body"])


def test_who_stumbled_is_asked_for_lesson_and_cell():
    form = yaml.safe_load(text_of(".github/ISSUE_TEMPLATE/stumbled.yml"))
    needed = [field["id"] for field in form["body"] if field.get("validations", {}).get("required")]
    assert form["name"] == "I stumbled here" and needed == ["lesson", "cell", "what"]


def test_commands_that_forms_and_policies_name_exist():
    texts = [*FORMS, *map(ROOT.joinpath, ("SECURITY.md", "CHANGELOG.md", ".github/pull_request_template.md"))]
    named = {name for path in texts for name in re.findall(r"python3? -m course (\w+)", path.read_text("utf-8"))}
    assert named and named <= set(COMMANDS)


def test_the_hooks_of_commits_have_the_locked_versions():
    (repository,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"  # nothing that somebody else could change
    asked = {pin for hook in repository["hooks"] for pin in hook.get("additional_dependencies", [])}
    assert asked == {f"{name}=={locked()[name]}" for name in ("ruff", "codespell")}
