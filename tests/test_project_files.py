"""What a project has beside its code says what is so: versions, licences, forms, hooks."""

import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import pytest
from over_tables import over

import engine
from course.base.locks import LOCKS, lock_file
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


@over("path", FORMS)
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
    for places in [hook["files"] for hook in repository["hooks"] if "files" in hook]:
        folders = re.fullmatch(r"\^\((.+)\)/", places)[1].split("|")
        assert [name for name in folders if not (ROOT / name).is_dir()] == []


# ---- workflows, and the action

WORKFLOWS = {path.stem: path for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}
LOADED = {name: yaml.safe_load(path.read_text(encoding="utf-8")) for name, path in WORKFLOWS.items()}
JOBS = [(f"{name}: {key}", job) for name, loaded in LOADED.items() for key, job in loaded["jobs"].items()]
ACTION = yaml.safe_load(text_of("action.yml"))
RUN = [step["run"] for _, job in JOBS for step in job["steps"] if "run" in step]
USE = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
# The only jobs that may write anything, and what.
WRITE = {
    "release: attest": {"id-token", "attestations"},
    "release: publish": {"id-token"},
    "release: announce": {"contents"},
}


def test_the_three_workflows_start_when_they_should():
    asked = {name: loaded[True] for name, loaded in LOADED.items()}  # YAML reads `on` as true
    assert set(asked["test"]) == {"push", "pull_request"} and set(asked["weekly"]) == {"schedule", "workflow_dispatch"}
    assert asked["release"] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}


def test_a_job_ends_in_time():
    assert not [name for name, job in JOBS if not 0 < job["timeout-minutes"] <= 240]


def test_no_job_may_do_more_than_it_has_to():
    assert all(loaded["permissions"] == {} for loaded in LOADED.values())
    for name, job in JOBS:
        writes = {scope for scope, how in job["permissions"].items() if how != "read"}
        assert writes == WRITE.get(name, set()), name
        assert set(job["permissions"]) <= writes | {"contents"}, name
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}, name
    assert not [line for line in RUN if "${{" in line]  # what others may write is no part of a command


def test_every_action_is_pinned_to_one_commit():
    used = [line.split("uses: ")[1] for path in WORKFLOWS.values() for line in path.read_text("utf-8").splitlines()
            if "uses: " in line]  # fmt: skip
    assert used and all(USE.fullmatch(use) for use in used)
    assert len(set(used)) == len({use.partition("@")[0] for use in used})


def test_the_matrix_is_that_of_pyproject():
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    (matrix,) = [job["strategy"]["matrix"] for name, job in JOBS if name == "test: test"]
    assert matrix["python"][0] == oldest and matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    lowest = next(job for name, job in JOBS if name == "test: lowest")
    assert f"--python-version {oldest}" in str(lowest) and f"'python-version': '{oldest}'" in str(lowest)


def test_commands_files_and_versions_that_workflows_name_exist():
    text = "\n".join(RUN)
    commands = re.findall(r"(?:python -m course|undertorch) (\w+)", text)
    assert "test" in commands and set(commands) <= set(COMMANDS)
    assert all((ROOT / name).is_file() for name in re.findall(r"(?:requirements|tests)/[\w./-]+", text))
    assert set(re.findall(r"--extra (\w+)", text)) <= set(PROJECT["project"]["optional-dependencies"])
    # Where the packages of a lock are not all there, `course test` makes an environment by the lock, and tests that.
    chosen = [set(re.findall(r"--extra (\w+)", line)) for line in RUN if "--extra" in line]
    assert len(chosen) == 2 and all(extras == {*LOCKS["test"], "validate"} for extras in chosen)
    pinned = dict(re.findall(r"([\w-]+)(?:\[\w+\])?==([\w.]+)", text))
    assert {name: pinned[name] for name in pinned if name in locked()} == {"uv": locked()["uv"]}
    beside = re.search(r"torch==\S+ expecttest==\S+", text_of(".ci/run"))
    assert beside and set(re.findall(r"torch\S* expecttest\S*", text)) == {beside[0]}
    assert all(f'step "$python" -m {tool}' in text_of(".ci/run") for tool in ("ruff check", "mypy", "codespell_lib"))


def test_what_workflows_install_has_a_version_or_comes_from_a_lock():
    # But for what the job is there to try: the newest of all, and what has just been built or resolved.
    made = re.compile(r"--require-hashes -r |--prerelease allow |-r lowest\.txt|\$\(ls dist/")
    installs = [line for line in RUN if "pip install " in line and not made.search(line)]
    assert installs
    for line in installs:
        asked = [word for word in shlex.split(line.partition("pip install ")[2]) if not word.startswith("-")]
        assert asked and all(re.fullmatch(r"[\w-]+(?:\[\w+\])?==[\d.]+", word) for word in asked), line


def test_what_is_published_has_been_built_and_tried_in_this_order():
    jobs = LOADED["release"]["jobs"]
    assert [jobs[name].get("needs") for name in ("build", "try", "attest", "publish", "announce")] == [
        None, "build", "try", "attest", "publish"
    ]  # fmt: skip
    assert jobs["publish"]["environment"] == "pypi" and "secrets." not in text_of(".github/workflows/release.yml")


NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": 1, "source": "print(1 + 1)",
         "outputs": [{"output_type": "stream", "name": "stdout", "text": "2\n"}]},
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}  # fmt: skip


@pytest.mark.skipif(os.name == "nt" or not shutil.which("bash"), reason="the steps of an action are run by bash")
@pytest.mark.parametrize(
    ("printed", "code"), [("3\n", 1), pytest.param("2\n", 0, marks=pytest.mark.slow)], ids=["changed", "as stored"]
)
def test_the_action_validates_a_repository_as_github_would_run_it(tmp_path, printed, code):
    install, validate = ACTION["runs"]["steps"]
    assert {step["shell"] for step in (install, validate)} == {"bash"}
    assert validate["env"] == {name.upper(): f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
    assert re.search(r"\[(\w+)\]", install["run"])[1] in PROJECT["project"]["optional-dependencies"]

    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "undertorch").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m undertorch "$@"\n')
    (programs / "undertorch").chmod(0o755)
    inputs = {name.upper(): given["default"] for name, given in ACTION["inputs"].items()}
    repository = tmp_path / "repository/my notebooks"
    repository.mkdir(parents=True)
    NOTEBOOK["cells"][0]["outputs"][0]["text"] = printed
    (repository / "one.ipynb").write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    variables = inputs | {"JUNIT": "of all.xml", "OPTIONS": "--timeout 60", "GITHUB_STEP_SUMMARY": "summary.md",
                          "PYTHONPATH": str(ROOT), "PATH": f"{programs}:{os.environ['PATH']}"}  # fmt: skip
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", validate["run"]],
        cwd=repository.parent, env=os.environ | variables, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert ("::error file=my notebooks/one.ipynb" in done.stdout) == bool(code)
    assert (repository.parent / "summary.md").read_text("utf-8") and (repository.parent / "of all.xml").is_file()


def test_no_two_files_of_tests_have_one_name():
    """pytest imports each by its name alone, and stops before the first test where another has it."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
