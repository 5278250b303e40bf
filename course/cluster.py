"""Several processes for a lesson: engines of ipyparallel that MPI has started, each with a rank of its own."""

import contextlib
import importlib
import importlib.util
import os
import sys
from typing import Any

from course.base.notebooks import COMMAND, ONE_THREAD, ROOT

PATIENCE = 300  # seconds until all of them have to be there, on a busy computer too
_running: Any = None


class NoWorkers(RuntimeError):
    """Raised where several processes cannot be had; the message says why, and what to do."""


def start(n: int = 4) -> Any:
    """Start ``n`` processes; from then on a cell that begins with ``%%px`` runs in each of them.

    Returns ipyparallel's view of all of them. Raises NoWorkers where they cannot be started.
    """
    missing = [name for name in ("ipyparallel", "mpi4py") if importlib.util.find_spec(name) is None]
    if missing:
        raise NoWorkers(f"{' and '.join(missing)} must be installed first, in the course's folder:\n    {install()}")
    import ipyparallel

    from engine.distributed import launch

    try:
        mpi = launch.found()
        command, more = launch.command(mpi, n)
    except launch.NoMPI as problem:
        raise NoWorkers(f"{problem}\n    {install()}") from None
    stop()
    cluster = ipyparallel.Cluster(n=n, engines="mpi", controller_ip="127.0.0.1", log_level=50, engine_timeout=PATIENCE)
    launcher = cluster.config.MPIEngineSetLauncher
    launcher.mpi_cmd, launcher.mpi_args = command[:1], command[3:]  # ipyparallel says -n itself
    launcher.environment = kernels_environment() | more
    try:
        cluster.start_cluster_sync()
        keep(cluster)
        client = cluster.connect_client_sync()
        client.wait_for_engines(n, timeout=PATIENCE, interactive=False)
    except Exception as problem:
        stop()
        advice = f"{COMMAND} doctor says whether two processes reach each other"
        raise NoWorkers(f"the {n} processes did not start ({type(problem).__name__}: {problem}); {advice}") from None
    view = client[:]
    view.block = True
    view.apply(short_tracebacks)
    view.apply(end_with, os.getpid(), cluster.controller.pid)
    magic(view)
    return view


def install() -> str:
    """Return the command that adds what is missing."""
    return f'"{sys.executable}" -m pip install --require-hashes -r requirements/machines.txt'


def kernels_environment() -> dict[str, str]:
    """Of each process: the engine is found, and one thread is enough where there are as many processes as cores."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {name: os.environ.get(name, value) for name, value in ONE_THREAD.items()} | {"PYTHONPATH": path}


def keep(cluster: Any) -> None:
    global _running
    _running = cluster


def stop() -> None:
    """End the processes that this kernel has started, if there are any. (They end with the kernel, too.)"""
    global _running
    cluster, _running = _running, None
    if cluster is not None:
        cluster.stop_cluster_sync()


def magic(view: Any) -> None:
    """Let ``%%px`` mean these processes, and show what they print in the order of their ranks."""
    from IPython.core.getipython import get_ipython

    if (shell := get_ipython()) is not None:
        view.activate()
        shell.run_line_magic("pxconfig", "--no-stream --progress-after=-1")


def end_with(kernel: int, controller: int) -> None:
    """In a process: it ends when the kernel does that started it, even if that is killed; so does the controller."""
    import threading
    import time

    import psutil

    begun = psutil.Process(kernel).create_time()

    def alive() -> bool:
        try:
            return psutil.Process(kernel).create_time() == begun
        except psutil.Error:
            return False

    def watch() -> None:
        while alive():
            time.sleep(1)
        with contextlib.suppress(psutil.Error):
            psutil.Process(controller).terminate()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def short_tracebacks() -> None:
    """In a process: of an error, what is in the learner's own cell; the frames of libraries are left out."""
    from IPython.core.getipython import get_ipython

    from course.kernel.shell import is_library_frame

    shell: Any = get_ipython()
    show = shell._showtraceback
    shell._showtraceback = lambda kind, error, parts: show(kind, error, [p for p in parts if not is_library_frame(p)])


class Link:
    """The traffic of a process through ``engine.distributed``: how many steps it takes, how many bytes it sends."""

    def __init__(self, dist: Any = None) -> None:
        self.dist = dist or importlib.import_module("engine.distributed")
        self.rank, self.size = self.dist.get_rank(), self.dist.get_world_size()
        self.steps = self.bytes = 0

    def send(self, x: Any, to: int) -> None:
        """Send a tensor to a rank."""
        self.dist.send(x, to)
        self.steps, self.bytes = self.steps + 1, self.bytes + x.nbytes

    def recv(self, x: Any, source: int) -> None:
        """Wait for a tensor from a rank; it is written into ``x``."""
        self.dist.recv(x, source)
        self.steps += 1

    def swap(self, out: Any, to: int, into: Any, source: int) -> None:
        """Send one tensor and receive another at the same time: one step."""
        sending = self.dist.isend(out, to)
        self.dist.recv(into, source)
        sending.wait()
        self.steps, self.bytes = self.steps + 1, self.bytes + out.nbytes
