"""A class's server as deploy/server/install.sh makes it, with its people, who come by HTTP alone."""

import contextlib
import csv
import html
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy" / "server"
# A folder with `venv` and `node_modules` of an earlier run: else they are installed anew, which takes minutes.
PARTS = os.environ.get("UNDERTORCH_SERVER_PARTS")
UNITS = ("proxy", "hub", "teacher")
GROUPS = ("undertorch", "undertorch-teachers")


def why_not():
    """Why a class's server cannot be made here; empty where it can."""
    if sys.platform != "linux" or os.geteuid():
        return "makes system accounts: for root on Linux"
    missing = [
        name for name in ("npm", "newusers", "newuidmap", "unshare", "setpriv", "runuser") if not shutil.which(name)
    ]
    if missing:
        return f"needs {', '.join(missing)}"
    known = Path("/etc/group").read_text(encoding="utf-8")
    return "this computer has a class already" if re.search("(?m)^undertorch:", known) else ""


class Server:
    """A class's server in a folder of its own, without systemd: this runs the units' commands."""

    def __init__(self, learners, teachers):
        self.folder = Path(tempfile.mkdtemp(prefix="undertorch-class-", dir="/opt"))
        self.folder.chmod(0o755)
        if PARTS:
            for part in ("venv", "node_modules"):
                (self.folder / part).symlink_to(Path(PARTS, part))
        self.port = free_ports(4)
        self.address = f"http://127.0.0.1:{self.port}"
        self.running = {}
        environment = {"PATH": os.environ["PATH"], "UNDERTORCH_PORT": str(self.port)}
        try:
            command(["bash", DEPLOY / "install.sh", self.folder], env=environment)
            self.passwords = self.enrol(teachers, "--teachers") | self.enrol(learners)
        except BaseException:
            self.stop()
            raise

    def enrol(self, people, *options):
        """Accounts for people; their first passwords, as they are on the slips."""
        roster = self.folder / "state" / "roster.csv"
        with roster.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("id", "first_name", "last_name"), *people])
        self.said = self.accounts(roster, *options)
        slips = Path(re.search(r"passwords: (\S+)", self.said)[1]).read_text(encoding="utf-8")
        return dict(re.findall(r"User: <b>(.+?)</b>.*?Password: <b>(.+?)</b>", html.unescape(slips)))

    def accounts(self, *arguments):
        return command([self.folder / "bin" / "accounts", *arguments])

    def start(self, *names):
        for name in names or UNITS:
            unit = Unit(self.folder / "units" / f"undertorch-{name}.service")
            log = (self.folder / "state" / f"{name}.log").open("ab")
            who = {"user": unit.user, "group": unit.group, "extra_groups": []} if unit.user else {}
            self.running[name] = subprocess.Popen(
                unit.command,
                cwd=unit.folder,
                env=unit.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **who,
            )
            wait_for(self.port + {"proxy": 0, "hub": 2, "teacher": 3}[name], self.running[name], log.name)

    def kill(self, name):
        """As by `kill -9`: of the unit's main process alone."""
        process = self.running.pop(name)
        process.kill()
        process.wait()
        for place in self.processes():  # systemd ends what else the unit has started
            with contextlib.suppress(OSError):
                if name == "hub" and b"jupyterhub_idle_culler" in (place / "cmdline").read_bytes():
                    os.kill(int(place.name), signal.SIGKILL)

    def kill_all_of(self, id):
        """As by `kill -9`: somebody's server, and the kernels in it."""
        for place in self.processes():
            with contextlib.suppress(OSError):
                if place.owner() == id:
                    os.kill(int(place.name), signal.SIGKILL)

    def processes(self):
        """Those that have to do with this server, as places in /proc."""
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.folder).encode() in (place / "cmdline").read_bytes():
                    yield place

    def stop(self):
        for process in self.running.values():
            process.kill()
            process.wait()
        for place in self.processes():  # and what they have started
            with contextlib.suppress(OSError):
                os.kill(int(place.name), signal.SIGKILL)
        command(["bash", DEPLOY / "remove.sh", self.folder, "--with-homes"])

    def log(self, name):
        return (self.folder / "state" / f"{name}.log").read_text(encoding="utf-8", errors="replace")


class Unit:
    """What systemd would run by a unit's file."""

    def __init__(self, path):
        self.environment, self.user, self.folder = {}, None, "/"
        section = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            if line.startswith("["):
                section = line
            elif section == "[Service]" and key == "EnvironmentFile":
                self.environment |= dict(line.split("=", 1) for line in Path(value).read_text(encoding="utf-8").split())
            elif section == "[Service]" and key == "Environment":
                self.environment |= dict(part.split("=", 1) for part in value.split(" "))
            elif section == "[Service]" and key == "ExecStart":
                self.command = value.split()
            elif section == "[Service]" and key == "User":
                self.user = value
            elif section == "[Service]" and key == "DynamicUser":
                self.user = "nobody"
            elif section == "[Service]" and key == "WorkingDirectory":
                self.folder = value
        self.environment.setdefault("PATH", os.environ["PATH"] if self.user != "undertorch-grader" else "/usr/bin:/bin")
        self.group = None
        if self.user:
            about = pwd.getpwnam(self.user)
            self.group, self.environment["HOME"] = about.pw_gid, about.pw_dir


class Person:
    """Somebody at a browser: a session with cookies, who logs in and has a server."""

    def __init__(self, server, id, password=None, requests=None):
        import requests

        self.server, self.id = server, id
        self.password = password or server.passwords[id]
        self.session = requests.Session()
        self.home = f"/user/{id}/"

    def get(self, path, **more):
        return self.session.get(self.server.address + path, timeout=120, **more)

    def xsrf(self, path):
        """The token for a place, as its own pages would send it: the cookie of the longest path."""
        found = [cookie for cookie in self.session.cookies if cookie.name == "_xsrf" and path.startswith(cookie.path)]
        return max(found, key=lambda cookie: len(cookie.path)).value

    def ask(self, method, path, **more):
        """A request as the lab's own pages send it."""
        headers = {"X-XSRFToken": self.xsrf(path)} | more.pop("headers", {})
        return self.session.request(method, self.server.address + path, headers=headers, timeout=300, **more)

    def login(self):
        self.get("/hub/login")
        form = {"username": self.id, "password": self.password, "_xsrf": self.xsrf("/hub/login")}
        return self.session.post(self.server.address + "/hub/login", data=form, timeout=120)

    def open(self, home=None, seconds=240):
        """Log in, and wait until the server answers."""
        self.home = home or self.home
        assert self.login().status_code in (200, 429)  # 429: too many at once, and the page asks again
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            page = self.get(self.home + "lab" if home else "/hub/spawn" if not self.there() else self.home + "lab")
            if page.ok and page.url.startswith(self.server.address + self.home + "lab"):
                return self
            time.sleep(1)
        raise AssertionError(f"{page.status_code} {page.url}\n{page.text[-2000:]}\n{self.server.log('hub')[-4000:]}")

    def there(self):
        return self.get(self.home + "api/status").ok

    # nbgrader's list of assignments

    def assignment(self, action, name):
        query = f"?course_id=undertorch&assignment_id={name}"
        return self.ask("POST", f"{self.home}assignments/{action}{query}").json()

    def assignments(self):
        answer = self.get(f"{self.home}assignments?course_id=undertorch").json()
        assert answer["success"], answer
        return answer["value"]

    # Files and kernels

    def file(self, path):
        return self.get(f"{self.home}api/contents/{path}").json()["content"]

    def write(self, path, notebook):
        model = {"type": "notebook", "format": "json", "content": notebook}
        assert self.ask("PUT", f"{self.home}api/contents/{path}", json=model).ok

    def work(self, path, answers):
        """Fill in a notebook, and save it."""
        notebook = self.file(path)
        for cell in notebook["cells"]:
            cell["source"] = answers.get(cell["metadata"].get("exercise"), cell["source"])
        self.write(path, notebook)
        return notebook

    def run(self, path, sources):
        """Run cells in a kernel of a notebook's; what they say, as text."""
        with self.kernel(path) as run:
            return "\n".join(filter(None, map(run, sources)))

    @contextlib.contextmanager
    def kernel(self, path):
        """A kernel of a notebook's, as `run(source)`, which gives what the cell says."""
        from websocket import WebSocketTimeoutException

        kernel = self.ask(
            "POST",
            f"{self.home}api/sessions",
            json={"path": path, "type": "notebook", "name": path, "kernel": {"name": "python3"}},
        ).json()["kernel"]["id"]
        with self.socket(f"{self.home}api/kernels/{kernel}/channels") as line:

            def run(source):
                said = []
                header = {
                    "msg_id": uuid.uuid4().hex,
                    "msg_type": "execute_request",
                    "username": "",
                    "session": uuid.uuid4().hex,
                    "version": "5.3",
                }
                content = {
                    "code": source,
                    "silent": False,
                    "store_history": True,
                    "user_expressions": {},
                    "allow_stdin": False,
                }
                line.send(
                    json.dumps(
                        {
                            "header": header,
                            "parent_header": {},
                            "metadata": {},
                            "content": content,
                            "channel": "shell",
                            "buffers": [],
                        }
                    )
                )
                while True:
                    message = json.loads(line.recv())
                    if message["parent_header"].get("msg_id") != header["msg_id"]:
                        continue
                    content = message["content"]
                    said.append(
                        content.get("text") or content.get("evalue") or content.get("data", {}).get("text/plain", "")
                        if message["msg_type"] != "execute_input"
                        else ""
                    )
                    if message["msg_type"] == "status" and content["execution_state"] == "idle":
                        return "\n".join(filter(None, said))

            line.settimeout(30)
            for _ in range(10):  # who finds a port taken is started again, and what was sent to it is lost
                with contextlib.suppress(WebSocketTimeoutException):
                    run("None")
                    break
            line.settimeout(300)
            yield run
        self.ask("DELETE", f"{self.home}api/kernels/{kernel}")

    def terminal(self, typed, seconds=300):
        """Type a command in a terminal; what it prints."""
        name = self.ask("POST", f"{self.home}api/terminals").json()["name"]
        seen, until = "", time.monotonic() + seconds
        with self.socket(f"{self.home}terminals/websocket/{name}") as line:
            line.send(json.dumps(["stdin", f"{typed}; echo END''ED $?\n"]))
            while not (ended := re.search(r"ENDED (\d+)", seen)):
                assert time.monotonic() < until, seen
                kind, *rest = json.loads(line.recv())
                seen += rest[0] if kind == "stdout" else ""
        self.ask("DELETE", f"{self.home}api/terminals/{name}")
        text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|\r", "", seen)
        assert ended[1] == "0", text
        return text

    def socket(self, path, origin=None):
        import websocket

        cookies = "; ".join(
            f"{c.name}={c.value}"
            for c in self.session.cookies
            if path.startswith(c.path) and (c.name != "_xsrf" or c.value == self.xsrf(path))
        )
        query = f"?_xsrf={self.xsrf(path)}"
        line = websocket.create_connection(
            "ws" + self.server.address[4:] + path + query, cookie=cookies, timeout=300, origin=origin
        )
        return contextlib.closing(line)


def command(arguments, **more):
    """What a command prints; AssertionError with its words where it fails."""
    done = subprocess.run([str(part) for part in arguments], capture_output=True, text=True, encoding="utf-8", **more)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def as_user(id, program, *arguments):
    """A program run as a system user: what it printed, and what it complained of."""
    done = subprocess.run(
        ["runuser", "-u", id, "--", program, *arguments], cwd="/", capture_output=True, text=True, encoding="utf-8"
    )
    return done.stdout, done.stderr


def free_ports(count):
    """The first of so many ports, one after the other, that nobody has."""
    for first in range(18300, 30000, 10):
        with contextlib.suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free ports")


def wait_for(port, process, log):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert process.poll() is None, Path(log).read_text(encoding="utf-8")[-4000:]
        time.sleep(0.2)
    raise AssertionError(Path(log).read_text(encoding="utf-8")[-4000:])
