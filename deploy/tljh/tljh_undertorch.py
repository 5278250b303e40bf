"""The class of deploy/server/ under The Littlest JupyterHub, which brings the hub, the proxy and https.

With the course's folder in /opt/undertorch-course (or where UNDERTORCH_COURSE says), as root, TLJH's own installer:
    python3 bootstrap.py --admin teacher --plugin /opt/undertorch-course/deploy/tljh
It changes what install.sh names, but for the proxy's and the hub's units, and what TLJH itself does (/opt/tljh).
To undo it: deploy/server/remove.sh, then `/opt/tljh/hub/bin/pip uninstall tljh-undertorch`, `tljh-config reload hub`.
"""

import os
import runpy
import subprocess
from pathlib import Path

from tljh.hooks import hookimpl

COURSE = Path(os.environ.get("UNDERTORCH_COURSE", "/opt/undertorch-course"))
FOLDER = Path(os.environ.get("UNDERTORCH_FOLDER", "/opt/undertorch"))
HUB_PORT, PORT = "15001", "8000"  # TLJH's own; the first of the class's four, the last is the teachers'


@hookimpl
def tljh_extra_apt_packages():
    return ["python3-venv", "npm", "uidmap"]


@hookimpl
def tljh_post_install():
    told = {"UNDERTORCH_UNITS": "teacher", "UNDERTORCH_HUB_PORT": HUB_PORT, "UNDERTORCH_PORT": PORT}
    subprocess.run([COURSE / "deploy/server/install.sh", FOLDER], env=os.environ | told, check=True)


@hookimpl
def tljh_custom_jupyterhub_config(c):
    """The settings of deploy/server/, but for what TLJH has of its own: addresses and the proxy."""
    settings = FOLDER / "etc/jupyterhub_config.py"
    if not settings.exists():  # TLJH asks before the installation has come so far
        return
    own, proxy = dict(c.JupyterHub), dict(c.ConfigurableHTTPProxy)
    os.environ.setdefault("UNDERTORCH_PORT", PORT)
    runpy.run_path(str(settings), init_globals={"get_config": lambda: c})
    for name in ("bind_url", "hub_bind_url", "db_url", "cookie_secret_file", "subdomain_host"):
        c.JupyterHub.pop(name)
        c.JupyterHub.update({name: own[name]} if name in own else {})
    c.ConfigurableHTTPProxy.clear()
    c.ConfigurableHTTPProxy.update(proxy)
