"""`python -m course lab`: JupyterLab with the learner's copy of the first lesson open, on this computer alone."""

import argparse
import contextlib
import errno
import json
import os
import re
import socket
import sys
import webbrowser
from pathlib import Path

from course.base.environment import Problem, ensure, say
from course.base.files import write_atomically
from course.base.notebooks import COMMAND, ROOT, kernel_environment
from course.learner.copies import LESSONS, start_all

FIRST_LESSON = "notebooks/00_welcome.ipynb"
FIRST_PORT = 8888
PORTS_TRIED = 50
# Jupyter settings without the question about news before the first lesson, and without a teacher's and an author's
# tools: with Jupytext, a lesson that is saved is written into its text.
LEARNERS_CONFIG = ROOT / "course" / "jupyter"
TEACHERS_CONFIG = LEARNERS_CONFIG / "teachers"  # nbgrader's settings alone
# Which notebooks are open, as JupyterLab remembers it: those of the course alone. A teacher has others open.
WORKSPACES = ROOT / ".lab"
TEACHERS = WORKSPACES / "teach"
_LESSON_OPEN = re.compile(r'(?<=[":])notebooks(?=(?:/\d\d_\w+\.ipynb)?")')
_ADDRESS_MISSING = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def main(argv: list[str]) -> int:
    """Start JupyterLab and serve until it is stopped; the exit code. Raises Problem."""
    options = parse(argv)
    ensure("teach" if options.teach else "course", ["lab", *argv])
    if address := open_already():
        say(f"The course is open already: {address}")
        if options.browser:
            webbrowser.open(address)
        return 0
    if options.port is not None:
        refuse_port(options.port)
    os.environ.update(kernel_environment(ROOT))
    own = TEACHERS_CONFIG if options.teach else LEARNERS_CONFIG
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [str(own), os.environ.get("JUPYTER_CONFIG_PATH")]))
    try:
        start_all()
    except Problem as problem:  # the lessons can be read all the same
        say(str(problem))
    if (ROOT / LESSONS).is_dir():
        open_copies(WORKSPACES)
    say("Opening the course. Ctrl-C in this window stops it; what you saved stays.")

    from jupyterlab.labapp import LabApp

    LabApp.launch_instance(server_arguments(options.port, options.browser, options.jupyter, options.teach))
    return 0


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"{COMMAND} lab", description="Open the course in JupyterLab, in your browser."
    )
    parser.add_argument("--port", type=int, help=f"this port only (default: the first free one from {FIRST_PORT} on)")
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="open no window; the address is printed"
    )
    parser.add_argument(
        "--teach",
        action="store_true",
        help="for teachers and authors: the course's own lessons, with their outputs; nbgrader's tools, and Jupytext",
    )
    parser.add_argument("jupyter", nargs="*", help="after --: options for JupyterLab itself")
    return parser.parse_args(argv)


def server_arguments(port: int | None, browser: bool, more: list[str], teach: bool = False) -> list[str]:
    """JupyterLab's own options; what `more` sets takes the place of ours, since Jupyter takes no option twice."""
    workspaces = own_workspaces(teach)
    ours = [
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url={first_page(workspaces, teach)}",
        *([f"--LabApp.workspaces_dir={workspaces}"] if workspaces else []),
        f"--ServerApp.tornado_settings={ {'static_custom_path': [str(LEARNERS_CONFIG / 'custom')]} }",
        "--LabApp.custom_css=True",
        "--ServerApp.ip=localhost",
        f"--ServerApp.port={FIRST_PORT if port is None else port}",
        f"--ServerApp.port_retries={PORTS_TRIED if port is None else 0}",
        f"--ServerApp.open_browser={browser}",
        "--ServerApp.answer_yes=True",  # one Ctrl-C is enough
        "--ServerApp.kernel_spec_manager_class=course.kernel.kernels.OwnKernel",
        "--ContentsManager.pre_save_hook=course.kernel.saving.tidy",
        *([] if teach else ["--ServerApp.contents_manager_class=course.kernel.contents.OwnReadOnly"]),
        "--KernelManager.transport_encryption=auto",  # else each kernel warns that this computer's others may listen
        "--ServerApp.allow_root=True",  # a container's only user, and this computer's browser alone is served
        "--Application.log_level=ERROR",  # the address, and what goes wrong
    ]
    given = {option.partition("=")[0] for option in more}
    return [option for option in ours if option.partition("=")[0] not in given] + more


def own_workspaces(teach: bool = False) -> Path | None:
    """Return the folder in which JupyterLab remembers what is open; None where the course has none of its own."""
    chosen = os.environ.get("JUPYTERLAB_WORKSPACES_DIR")
    own = TEACHERS if teach else WORKSPACES
    return Path(chosen) if chosen else own if os.access(ROOT, os.W_OK) else None


def open_copies(workspaces: Path) -> None:
    """Open the copies of lessons that were open before there were copies of them."""
    for workspace in workspaces.glob("*.jupyterlab-workspace"):
        with contextlib.suppress(OSError, ValueError):
            layout = workspace.read_text(encoding="utf-8")
            if f"{LESSONS}/" not in layout:
                write_atomically(workspace, _LESSON_OPEN.sub(LESSONS, layout))


def first_page(workspaces: Path | None, teach: bool = False) -> str:
    """Return where the learner was when JupyterLab was closed; the first lesson for who has not been there."""
    for workspace in workspaces.glob("*.jupyterlab-workspace") if workspaces else ():
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            layout = json.loads(workspace.read_text(encoding="utf-8"))["data"]["layout-restorer:data"]
            if layout["main"]["current"]:
                return "/lab"
    return f"/lab/tree/{first_lesson(teach)}"


def first_lesson(teach: bool = False) -> str:
    """Return the learner's copy of the first lesson; the course's own for teachers, and where no copy can be made."""
    mine = f"{LESSONS}/{Path(FIRST_LESSON).name}"
    return mine if not teach and (ROOT / mine).is_file() else FIRST_LESSON


def refuse_port(wanted: int) -> None:
    """Raises Problem where the port that was asked for cannot be had."""
    if not 0 < wanted < 65536:
        raise Problem(f"{wanted} is no port: choose one from 1024 to 65535.")
    if not is_free(wanted):
        raise Problem(
            f"Port {wanted} is in use by {user_of(wanted)}.\nName another, or leave --port out to get a free one."
        )


def open_already() -> str | None:
    """Return the address, with its token, of a server that serves this folder already, if there is one."""
    from jupyter_server.serverapp import list_running_servers

    for server in list_running_servers():
        with contextlib.suppress(OSError):  # a folder that is gone
            if ROOT.samefile(server["root_dir"]) and not is_free(server["port"]):
                return f"{server['url']}lab?token={server['token']}"
    return None


def is_free(port: int) -> bool:
    """Tell whether a server can listen on this port of every address that "localhost" stands for."""
    for family, kind, protocol, _, address in socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM):
        try:
            trial = socket.socket(family, kind, protocol)
        except OSError:
            continue  # named in the system's tables, but not spoken by it (IPv6 switched off)
        with trial:
            if sys.platform == "win32":
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            else:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not in the way of one just stopped
            try:
                trial.bind(address)
            except OSError as error:
                if error.errno not in _ADDRESS_MISSING:
                    return False
    return True


def user_of(port: int) -> str:
    """Say who listens on a port, as far as the system tells."""
    try:
        import psutil
    except ImportError:  # before there is an environment
        return "another program"
    with contextlib.suppress(psutil.Error):  # macOS tells only the administrator
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    return "another program"
