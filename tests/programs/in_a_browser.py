"""Makes this Python as much like one in a browser's page as can be: no processes, no threads, and what Pyodide lacks.

It is imported before anything else, by a program of its own: nothing of this can be taken back.
"""

import contextlib
import os
import subprocess
import sys
import sysconfig
import threading

LACKING = (
    "fcntl",
    "resource",
    "termios",
    "grp",
    "pwd",
    "syslog",
    "psutil",
    "_multiprocessing",
    "_posixshmem",
    "pygraphviz",
    "numba",
)


def refused(*_, **__):
    raise RuntimeError("there are no processes and no threads here")


sysconfig.get_config_vars()  # which asks once, by the name of the real platform
with contextlib.suppress(ImportError):
    import sklearn.datasets  # noqa: F401  its newest asks for multiprocessing.connection, Pyodide's older one does not
with contextlib.suppress(ImportError):
    import matplotlib.font_manager  # noqa: F401  up to 3.10 it makes its list of fonts beside a thread
subprocess.Popen.__init__ = threading.Thread.start = refused
for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "system"):
    if hasattr(os, name):
        setattr(os, name, refused)
for name in LACKING:
    sys.modules[name] = None
sys.platform = "emscripten"
