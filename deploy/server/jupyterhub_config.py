"""JupyterHub for a class on one Linux computer: system accounts, a server for each as that user, with limits."""

import grp
import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]  # where install.sh put everything
PORT = int(os.environ["UNDERTORCH_PORT"])  # of the proxy; the next three are its API, the hub, the teachers' server
PROCESSES, MEMORY_GB, CORES = 256, 1.5, 1.0  # the most that a learner has
HOURS, IDLE_HOURS = 12, 1  # that a server lives, and that it lives unused

c = get_config()  # noqa: F821 - given by JupyterHub

# The proxy is a unit of its own: what is open stays open while the hub starts again.
c.JupyterHub.bind_url = f"http://127.0.0.1:{PORT}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{PORT + 2}"
c.JupyterHub.subdomain_host = os.environ.get("UNDERTORCH_HOST", "")  # with it, each learner has an address of their own
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{PORT + 1}"
c.JupyterHub.last_activity_interval = 10  # as often a proxy that started anew is told its routes
c.JupyterHub.cleanup_servers = c.JupyterHub.cleanup_proxy = False
c.JupyterHub.db_url = f"sqlite:///{FOLDER}/state/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(FOLDER / "state" / "cookie_secret")
c.JupyterHub.concurrent_spawn_limit = 10  # a class comes at once: the others wait, and are let in one by one
c.JupyterHub.template_paths = [f"{FOLDER}/etc/pages"]  # by the page that says so
c.JupyterHub.tornado_settings = {"cookie_options": {"samesite": "Lax"}}  # `Secure` comes with https

# Who is in one of the two groups logs in with the system's password.
LEARNERS, TEACHERS = "undertorch", "undertorch-teachers"
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.open_sessions = False
c.PAMAuthenticator.allowed_groups = {LEARNERS, TEACHERS}
c.Authenticator.manage_groups = True


def with_groups(_authenticator, _handler, person):
    """Whether somebody teaches is asked at each login."""
    person["groups"] = [name for name in (LEARNERS, TEACHERS) if person["name"] in grp.getgrnam(name).gr_mem]
    return person


c.Authenticator.post_auth_hook = with_groups

# A learner's server.
c.Spawner.environment = {
    "PATH": f"{FOLDER}/bin:{FOLDER}/venv/bin:/usr/local/bin:/usr/bin:/bin",
    "PYTHONPATH": str(FOLDER / "course"),
    "JUPYTER_CONFIG_PATH": f"{FOLDER}/etc/learner:{FOLDER}/etc",
    **{f"{of}_NUM_THREADS": "1" for of in ("OMP", "OPENBLAS", "MKL", "NUMBA")},  # a class shares the cores
}
c.Spawner.env_keep = ["LANG", "LC_ALL", "TZ"]
c.Spawner.default_url = "/lab/tree/my_lessons/00_welcome.ipynb"
c.Spawner.disable_user_config = True  # no settings out of a home that somebody may have been talked into
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.Spawner.cmd = c.SystemdSpawner.cmd = [f"{FOLDER}/venv/bin/jupyterhub-singleuser"]
if Path("/run/systemd/system").is_dir():  # limits for all of a learner's processes together, and a /tmp of their own
    c.JupyterHub.spawner_class = "systemd"
    c.SystemdSpawner.mem_limit = f"{MEMORY_GB}G"
    c.SystemdSpawner.cpu_limit = CORES
    c.SystemdSpawner.isolate_tmp = True  # and no more: what forbids new privileges forbids `passwd`, too
    c.SystemdSpawner.unit_extra_properties = {
        "TasksMax": str(PROCESSES),
        "RuntimeMaxSec": f"{HOURS}h",
        "LimitFSIZE": str(2**28),
        "ProtectProc": "invisible",
    }
else:  # for each process by itself, and the number of them together
    limits = {"nproc": PROCESSES, "data": int(MEMORY_GB * 2**30), "fsize": 2**28, "cpu": HOURS * 3600, "core": 0}
    c.Spawner.cmd = ["prlimit", *(f"--{name}={most}" for name, most in limits.items()), *c.Spawner.cmd]

# The teachers' server (units/undertorch-teacher.service), and what closes those that nobody uses.
TOKEN = (FOLDER / "state" / "teacher.env").read_text(encoding="utf-8").strip().partition("=")[2]
CULLER = [f"{FOLDER}/venv/bin/python", "-m", "jupyterhub_idle_culler", f"--timeout={IDLE_HOURS * 3600}"]
c.JupyterHub.services = [
    {"name": "class", "url": f"http://127.0.0.1:{PORT + 3}", "api_token": TOKEN, "oauth_no_confirm": True},
    {"name": "idle", "command": [*CULLER, f"--max-age={HOURS * 3600}"]},
]
SEEN_AND_CLOSED = ["list:users", "read:users:activity", "read:servers", "delete:servers"]
c.JupyterHub.load_roles = [
    {"name": "teacher", "groups": [TEACHERS], "scopes": ["access:services!service=class"]},
    {"name": "idle", "services": ["idle"], "scopes": SEEN_AND_CLOSED},
]
