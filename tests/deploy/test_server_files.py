"""The files of a class's server that can be looked at without root: deploy/server/."""

import datetime
import os
import re
import runpy
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[2] / "deploy" / "server"
UNITS = sorted((SERVER / "units").glob("*.service"))
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", ["install.sh", "remove.sh", "undertorch"])
def test_a_script_is_one_for_bash_and_stops_at_its_first_mistake(name):
    if bash := shutil.which("bash"):
        assert not subprocess.run([bash, "-n", SERVER / name], capture_output=True).stderr
    text = (SERVER / name).read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n") and "\nset -euo pipefail\n" in text


def test_what_is_there_stays_short_enough_to_be_read():
    files = [path for part in ("server", "tljh") for path in (SERVER.parent / part).rglob("*") if path.is_file()]
    assert 300 < sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 600


def test_install_fills_every_placeholder_of_the_units():
    filled = set(re.findall(r"s\|(@[A-Z]+@)\|", (SERVER / "install.sh").read_text(encoding="utf-8")))
    used = {name for path in UNITS for name in re.findall(r"@[A-Z]+@", path.read_text(encoding="utf-8"))}
    assert used == filled and len(UNITS) == 3


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="needs bash and cmp")
def test_packages_are_installed_the_first_time_and_whenever_their_lock_or_python_has_changed(tmp_path):
    text = (SERVER / "install.sh").read_text(encoding="utf-8")
    block = text[text.index("lock=") : text.index("\nfi\n", text.index("lock=")) + 4]
    lock, python = tmp_path / "course" / "requirements" / "hub.txt", tmp_path / "python"
    lock.parent.mkdir(parents=True)
    # Stands for Python: what it is asked for; of `-m venv FOLDER`, it is the one in there too.
    python.write_text(
        '#!/bin/sh\necho "$@" >>"$LOG"\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
        'if [ "$2" = pip ]; then exit "$PIP"; fi\nif [ "$1" = -V ]; then echo "$VERSION"; fi\n', encoding="utf-8"
    )  # fmt: skip
    python.chmod(0o755)

    def install(pip=0, version="Python 3.11.2"):
        log = tmp_path / "log"
        log.write_text("", encoding="utf-8")
        environment = os.environ | {"folder": str(tmp_path), "python": str(python), "LOG": str(log), "PIP": str(pip),
                                    "VERSION": version}  # fmt: skip
        ended = subprocess.run(["bash", "-c", "set -euo pipefail\n" + block], env=environment, check=False)
        return ended.returncode, sum("pip install" in line for line in log.read_text(encoding="utf-8").splitlines())

    lock.write_text("a==1\n", encoding="utf-8")
    assert [install(), install()] == [(0, 1), (0, 0)]
    lock.write_text("a==2\n", encoding="utf-8")
    assert [install(pip=1), install(), install()] == [(1, 1), (0, 1), (0, 0)]  # what broke off is done again
    left = tmp_path / "venv" / "of 3.11.2"
    left.touch()
    assert install() == (0, 0) and left.exists()
    assert [install(version="Python 3.13.1"), install(version="Python 3.13.1")] == [(0, 1), (0, 0)]
    assert not left.exists()  # the lock names other packages for another Python


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_takes_the_units(tmp_path):
    for path in UNITS:
        text = re.sub(r"@[A-Z]{3,5}@", "8000", path.read_text(encoding="utf-8").replace("@FOLDER@", str(tmp_path)))
        text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text).replace("8000/", f"{tmp_path}/")
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    verify = ["systemd-analyze", "verify", *(str(tmp_path / path.name) for path in UNITS)]
    assert subprocess.run(verify, capture_output=True, text=True).stderr == ""


@pytest.fixture
def settings():
    """nbgrader's settings of the server, as its programs load them."""
    pytest.importorskip("nbgrader")
    if sys.platform == "win32":
        pytest.skip("the server is a Linux computer")
    from traitlets.config.loader import PyFileConfigLoader

    return PyFileConfigLoader("nbgrader_config.py", path=str(SERVER)).load_config()


@pytest.fixture
def exchange(settings, tmp_path, monkeypatch):
    """`hand_in(name, files)` and `collect()`, in an exchange of its own, with one assignment, due on 2027-01-31."""
    from nbgrader.api import Gradebook
    from nbgrader.apps import NbGraderAPI

    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))  # `alembic`
    inbound = tmp_path / "exchange" / "undertorch" / "inbound"
    inbound.mkdir(parents=True)
    (tmp_path / "class").mkdir()
    settings.Exchange.root, settings.CourseDirectory.root = str(tmp_path / "exchange"), str(tmp_path / "class")
    settings.CourseDirectory.db_url = f"sqlite:///{tmp_path}/class/gradebook.db"
    with Gradebook(settings.CourseDirectory.db_url) as book:
        book.update_or_create_assignment("ps")

    class Exchange:
        log = ""

        def hand_in(self, name, day="2099-01-01", **files):
            folder = inbound / f"{name}+ps+{day} 10:00:00.000000 UTC+x"
            folder.mkdir()
            (folder / "submission_secret.txt").write_text("x")
            for file, content in files.items():
                (folder / file).write_bytes(content)
            return folder

        def collect(self):
            result = NbGraderAPI(config=settings).collect("ps", update=True)
            self.log = result["log"]
            assert result["success"], result
            return {path.relative_to(tmp_path / "class" / "submitted").as_posix(): path.read_bytes()
                    for path in (tmp_path / "class").glob("submitted/*/*/*")}  # fmt: skip

    return Exchange()


def me():
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.slow
def test_a_submission_is_whose_its_files_are_and_not_whose_its_name_says(exchange):
    exchange.hand_in("somebody", **{"ps.ipynb": b"{}"})
    assert exchange.collect()[f"{me()}/ps/ps.ipynb"] == b"{}"
    assert f"Handed in by {me()}" in exchange.log


@pytest.mark.slow
def test_a_link_in_a_submission_is_not_followed(exchange, tmp_path):
    (tmp_path / "secret.ipynb").write_text("hidden tests")
    folder = exchange.hand_in(me(), **{"ps.ipynb": b"{}"})
    for name in ("linked.ipynb", "ps 2.ipynb"):
        (folder / name).symlink_to(tmp_path / "secret.ipynb")
    os.mkfifo(folder / "waits.ipynb")
    (folder / "inner.ipynb").mkdir()
    expected = {f"{me()}/ps/{name}" for name in ("ps.ipynb", "timestamp.txt", "submission_secret.txt")}
    assert exchange.collect().keys() == expected
    assert "linked.ipynb" in exchange.log and "waits.ipynb" in exchange.log


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives a file to another user: for root")
def test_a_file_of_somebody_elses_in_a_submission_is_left_out(exchange):
    folder = exchange.hand_in(me(), **{"ps.ipynb": b"{}", "ps 2.ipynb": b"hidden tests"})
    os.chown(folder / "ps 2.ipynb", 12345, -1)  # as a hard link would be
    assert "ps 2.ipynb" not in {Path(path).name for path in exchange.collect()} and "no file of theirs" in exchange.log


@pytest.mark.slow
def test_names_and_sizes_of_what_is_collected_have_limits(exchange):
    many = {f"{number}.ipynb": b"" for number in range(50)}
    odd = {"-rf.ipynb": b"", ".hidden.ipynb": b"", "a\nb.ipynb": b"", "x.py": b"", "$(id).ipynb": b""}
    exchange.hand_in(me(), **many, **odd, **{"ps.ipynb": b"{}", "huge.ipynb": bytes(5_000_001)})
    names = {Path(path).name for path in exchange.collect()}
    assert "ps.ipynb" in names and len(names) <= 22 and not names & odd.keys() and "huge.ipynb" not in names


@pytest.mark.slow
def test_a_time_that_was_written_by_hand_does_not_count(exchange, tmp_path):
    folder = exchange.hand_in(me(), **{"ps.ipynb": b"{}"})
    folder.rename(folder.with_name(folder.name.replace("2099", "2020")))
    assert exchange.collect()[f"{me()}/ps/timestamp.txt"].startswith(b"20")
    assert not exchange.collect()[f"{me()}/ps/timestamp.txt"].startswith((b"2020", b"2099"))


@pytest.mark.slow
def test_what_lies_there_under_any_name_keeps_nobody_else_from_being_collected(exchange, tmp_path):
    inbound = exchange.hand_in(me(), **{"ps.ipynb": b"{}"}).parent
    for name in ("+ps+", "a+ps+b", "a+ps+b+c+d+e", "a+ps+99999999999999999999+x", "a+ps+2099-13-45 10:00:00 UTC+x",
                 "a\n\x1b[2J+ps+2099-01-01+x", "a+ps+" + "y" * 240, "ü+ps+2099-01-01 10:00:00 +\udcff"):  # fmt: skip
        (inbound / name).mkdir()
        (inbound / name / "submission_secret.txt").write_text("x", encoding="utf-8")
        (inbound / name / "ps.ipynb").symlink_to(tmp_path / "class" / "gradebook.db")
    (inbound / "file+ps+2099-01-01 10:00:00 UTC+x").write_text("x", encoding="utf-8")
    (inbound / "link+ps+2099-01-01 10:00:00 UTC+x").symlink_to(tmp_path / "class")
    os.mkfifo(inbound / "fifo+ps+2099-01-01 10:00:00 UTC+x")
    newest = exchange.hand_in(me(), "2099-01-02", **{"ps.ipynb": b"newest"})
    while newest.stat().st_ctime_ns <= max(place.lstat().st_ctime_ns for place in inbound.iterdir() if place != newest):
        newest.chmod(0o755)
    assert exchange.collect()[f"{me()}/ps/ps.ipynb"] == b"newest"
    assert "\x1b" not in exchange.log


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "link", "fifo"])
def test_what_is_no_folder_is_named_and_left_out(exchange, tmp_path, kind):
    exchange.hand_in(me(), **{"ps.ipynb": b"{}"}).rename(tmp_path / "taken back")
    place = tmp_path / "exchange" / "undertorch" / "inbound" / "a\x1b+ps+2099-01-01 10:00:00 UTC+x"
    {"file": place.touch, "link": lambda: place.symlink_to(tmp_path / "taken back"), "fifo": lambda: os.mkfifo(place)}[
        kind
    ]()
    assert not exchange.collect() and "was left out" in exchange.log and "\x1b" not in exchange.log


@pytest.mark.slow
def test_what_is_altered_after_it_was_handed_in_came_when_it_was_altered(exchange):
    folder = exchange.hand_in(me(), **{"ps.ipynb": b"{}"})
    file = folder / "ps.ipynb"
    while file.stat().st_ctime_ns // 1000 <= folder.stat().st_ctime_ns // 1000:
        file.write_bytes(b"better")  # the folder is as it was
    came = datetime.datetime.fromtimestamp(file.stat().st_ctime, datetime.UTC)
    assert exchange.collect()[f"{me()}/ps/timestamp.txt"].decode() == f"{came:%Y-%m-%d %H:%M:%S.%f} UTC"


@pytest.mark.slow
def test_a_submission_that_broke_off_does_not_replace_a_whole_one(exchange):
    exchange.hand_in(me(), **{"ps.ipynb": b"whole"})
    half = exchange.hand_in(f"{me()}", "2099-01-02", **{"ps.ipynb": b"ha"})
    (half / "submission_secret.txt").unlink()
    assert exchange.collect()[f"{me()}/ps/ps.ipynb"] == b"whole"


def test_the_values_for_kubernetes_are_read_and_teachers_alone_write_into_the_shared_folder():
    yaml = pytest.importorskip("yaml")
    folder = SERVER.parent / "kubernetes"
    values = yaml.safe_load((folder / "values.yaml").read_text(encoding="utf-8"))
    assert values.keys() <= {"hub", "proxy", "singleuser", "cull", "scheduling", "prePuller"}
    assert values["singleuser"]["extraEnv"]["OMP_NUM_THREADS"] == "1"
    (mount,) = values["singleuser"]["storage"]["extraVolumeMounts"]
    (volume,) = values["singleuser"]["storage"]["extraVolumes"]
    claim = yaml.safe_load((folder / "shared.yaml").read_text(encoding="utf-8"))
    assert mount["readOnly"] and volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    c = types.SimpleNamespace(Authenticator=types.SimpleNamespace(), Spawner=types.SimpleNamespace())
    exec(values["hub"]["extraConfig"]["teachers"], {"c": c})
    roles = "https://purl.imsglobal.org/spec/lti/claim/roles"
    kinds = {"http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor": False,
             "http://purl.imsglobal.org/vocab/lis/v2/membership#Learner": True}  # fmt: skip
    for role, read_only in kinds.items():
        told = c.Authenticator.post_auth_hook(None, None, {"name": "x", "auth_state": {roles: [role]}})
        groups = [types.SimpleNamespace(name=name) for name in told["groups"]]
        spawner = types.SimpleNamespace(
            user=types.SimpleNamespace(groups=groups), volume_mounts=[{"name": "home"}, mount]
        )
        c.Spawner.pre_spawn_hook(spawner)
        assert spawner.volume_mounts[1]["readOnly"] == read_only and mount["readOnly"]


def test_the_plugin_of_tljh_takes_the_settings_and_leaves_tljh_its_addresses(tmp_path, monkeypatch):
    traitlets = pytest.importorskip("traitlets.config")
    for part in ("etc", "state"):
        (tmp_path / part).mkdir()
    (tmp_path / "state" / "teacher.env").write_text("JUPYTERHUB_API_TOKEN=abc\n", encoding="utf-8")
    shutil.copy(SERVER / "jupyterhub_config.py", tmp_path / "etc")
    monkeypatch.setenv("UNDERTORCH_FOLDER", str(tmp_path))
    monkeypatch.delenv("UNDERTORCH_PORT", raising=False)
    hooks = types.ModuleType("tljh.hooks")
    hooks.hookimpl = lambda function: function
    monkeypatch.setitem(sys.modules, "tljh", types.ModuleType("tljh"))
    monkeypatch.setitem(sys.modules, "tljh.hooks", hooks)
    plugin = runpy.run_path(str(SERVER.parent / "tljh" / "tljh_undertorch.py"))
    c = traitlets.Config()
    c.JupyterHub.hub_port, c.JupyterHub.bind_url = 15001, "http://127.0.0.1:15003"
    plugin["tljh_custom_jupyterhub_config"](c)
    assert (c.JupyterHub.hub_port, c.JupyterHub.bind_url) == (15001, "http://127.0.0.1:15003")
    assert "hub_bind_url" not in c.JupyterHub and "api_url" not in c.ConfigurableHTTPProxy
    assert c.JupyterHub.authenticator_class == "pam" and c.JupyterHub.services[0]["api_token"] == "abc"
