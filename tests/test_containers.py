"""The files for containers and clouds, as far as they can be held without building one."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib

import pytest

from course.base.locks import lock_file
from course.base.notebooks import ROOT
from course.commands import lab
from course.commands.cli import COMMANDS

DOCKERFILE = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
STEPS = [line.partition(" ")[::2] for line in DOCKERFILE.splitlines() if line and line[0] != "#"]
BINDER = ROOT / "binder"


def steps(name):
    return [words for step, words in STEPS if step == name]


def listed(words):
    return json.loads(words[words.index("[") :])


def ignored():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and line[0] != "#"]


def test_what_is_copied_into_the_image_is_there():
    from_here = [words.split() for words in steps("COPY") if "--from" not in words]
    sources = [name for words in from_here for name in words[:-1] if not name.startswith("--")]
    assert "requirements/course.txt" in sources and all((ROOT / name).exists() for name in sources)


def test_the_packages_are_the_locks_with_their_hashes():
    (install,) = [words for words in steps("RUN") if "pip" in words]
    assert {"--require-hashes", "--only-binary=:all:"} <= set(install.split())
    assert f"-r /tmp/{lock_file('course').name}" in install


def test_python_is_one_that_the_course_knows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
    bases = {words.split()[0] for words in steps("FROM")}
    version = re.fullmatch(r"python:(\d+)\.(\d+)-slim", *bases)
    binder = re.fullmatch(r"python-(\d+)\.(\d+)\n", (BINDER / "runtime.txt").read_text("utf-8"))
    for found in (version, binder):
        assert found and least <= tuple(map(int, found.groups())) <= (3, 14)


def test_the_container_is_run_by_somebody_who_is_not_root():
    (made,) = [words for words in steps("RUN") if words.startswith("useradd")]
    (user,) = steps("USER")
    assert made.split()[-1] == user == "learner"
    assert [step for step, _ in STEPS].index("USER") < [step for step, _ in STEPS].index("CMD")


def test_what_it_serves_is_where_it_is_looked_for_and_asks_for_its_token():
    (command,), (check,), (port,) = steps("CMD"), steps("HEALTHCHECK"), steps("EXPOSE")
    python, _, module, name, *rest = listed(command)
    assert (python, module) == ("/opt/venv/bin/python", "course") and name in COMMANDS
    options = lab.parse(rest)
    arguments = lab.server_arguments(options.port, options.browser, options.jupyter)
    assert [option for option in arguments if ".ip=" in option] == ["--ServerApp.ip=0.0.0.0"]
    assert not re.search("token|password|authenticate", command, re.I)
    assert f"--ServerApp.port={port}" in arguments and not options.browser
    assert f"http://127.0.0.1:{port}/api'" in listed(check)[-1]
    compile(listed(check)[-1], "healthcheck", "exec")


def test_what_a_learner_does_is_kept_in_the_two_volumes():
    kept = re.findall(r"-v \w+:(\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    (folder,) = steps("WORKDIR")
    assert [name.removeprefix(f"{folder}/") for name in kept] == ["my_lessons", "my_exercises"]
    (progress,) = [words.partition("=")[2] for words in steps("ENV") if words.startswith("UNDERTORCH_PROGRESS=")]
    assert progress.startswith(kept[1])
    assert {"my_lessons", "my_exercises", ".progress.json*", ".venv", ".git"} <= set(ignored())


def test_nothing_that_the_course_opens_is_left_out_of_the_image():
    assert not {"engine", "course", "notebooks", "exercises", "solutions", "requirements", "docs"} & set(ignored())


def test_the_development_container_is_the_same_one():
    settings = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert (ROOT / ".devcontainer" / settings["build"]["dockerfile"]).resolve() == (ROOT / "Dockerfile").resolve()
    assert [settings["remoteUser"]] == steps("USER") and map(str, settings["forwardPorts"])
    assert [str(port) for port in settings["forwardPorts"]] == steps("EXPOSE")
    python = settings["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert python == listed(steps("CMD")[0])[0] == shlex.split(settings["postCreateCommand"])[0]
    assert settings["containerEnv"]["PYTHONPATH"] == "${containerWorkspaceFolder}"
    compile(shlex.split(settings["postCreateCommand"])[2], "command", "exec")


def test_binder_installs_the_same_lock():
    (line,) = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert (BINDER / line.removeprefix("-r ")).resolve() == lock_file("course").resolve()


@pytest.mark.skipif(os.name == "nt" or not shutil.which("bash"), reason="Binder's files are run by bash")
def test_in_binder_notebooks_of_every_folder_find_the_engine(tmp_path):
    for name in ("start", "postBuild"):
        assert os.access(BINDER / name, os.X_OK) and (BINDER / name).read_text("utf-8").startswith("#!/bin/bash\n")
    asked = ["bash", str(BINDER / "start"), "bash", "-c", f"cd {tmp_path} && echo $PYTHONPATH"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == f"{ROOT}\n"


def test_the_addresses_that_open_it_elsewhere_are_of_the_repository_that_the_action_is_used_from():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (own,) = set(re.findall(r"uses: ([\w-]+/undertorch)@", readme))
    addresses = re.findall(
        r"https://(?:mybinder\.org/v2/gh|codespaces\.new|[\w.]*google\.com/github|github\.com)/"
        r"(\w+/[\w-]+)",
        readme,
    )
    assert len(addresses) == 4 and set(addresses) == {own}
    (opened,) = re.findall(r"urlpath=lab/tree/([\w/.]+)", readme)
    assert opened == f"my_lessons/{lab.FIRST_LESSON.partition('/')[2]}"


def test_colab_opens_a_lesson_and_installs_this_distribution():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (lesson,) = re.findall(r"colab\.\S+/blob/HEAD/([\w/.]+)", readme)
    assert (ROOT / lesson).is_file()
    (name,) = re.findall(r'%pip install -q "([\w-]+) @ git\+', readme)
    assert name == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
