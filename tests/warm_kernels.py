"""Kernels that are forked from a process in which their imports are done: two seconds of computing less for each.

The tests start two hundred of them. A kernel is forked if it is one of this interpreter's; with the course's settings
of Python, the course has been imported in it too.
"""

import atexit
import contextlib
import gc
import importlib
import itertools
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
from importlib.metadata import EntryPoint

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from course.base.notebooks import ROOT, kernel_environment
from course.process.forked import AHEAD

# Of Matplotlib all but what looks for the shell that it is imported in.
KERNEL = ("ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.datapub", "comm")
WORKER = "course.process.worker"
COURSE = (WORKER, "ipywidgets", "matplotlib.figure", "course.learner.calls", "course.figures", *AHEAD)
LAUNCH = [sys.executable, "-m", "ipykernel_launcher"]
KEPT = ("PYTHON", "OMP_", "OPENBLAS_", "MKL_", "MPL")  # what these libraries ask for once, when they are imported


def settings(environment):
    return {name: value for name, value in environment.items() if name.startswith(KEPT) and name != "PYTHONPATH"}


def places(environment):
    return [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]


def hidden(environment):
    """Whether another engine or course comes first on the path."""
    before = itertools.takewhile(lambda place: pathlib.Path(place).resolve() != ROOT, places(environment))
    files = ("engine.py", "engine/__init__.py", "course.py", "course/__init__.py")
    return any(pathlib.Path(place, file).exists() for place in before for file in files)


class Nursery:
    """The process that forks kernels, after it has imported these modules."""

    def __init__(self, modules, environment):
        self.line, theirs = socket.socketpair()
        self.lock = threading.Lock()
        with theirs:
            command = [sys.executable, "-P", __file__, str(theirs.fileno()), *modules]
            options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            environment = environment | {"PYTHONPATH": str(ROOT)}  # a kernel's own comes with it
            self.process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], **options)
        self.file = self.line.makefile("rwb")
        atexit.register(self.stop)

    def stop(self):
        self.file.close()
        self.line.close()
        self.process.wait()

    def ask(self, **question):
        with self.lock:
            self.file.write(json.dumps(question).encode() + b"\n")
            self.file.flush()
            return json.loads(self.file.readline())


class Kernel:
    """A forked kernel, with as much of `subprocess.Popen` as a provisioner uses."""

    stdin = stdout = stderr = None

    def __init__(self, nursery, arguments, environment, folder):
        self.nursery, self.code = nursery, None
        self.pid = nursery.ask(arguments=arguments, environment=environment, folder=str(folder))

    def poll(self):
        if self.code is None:
            self.code = self.nursery.ask(poll=self.pid)
        return self.code

    wait = poll  # it is asked when it has ended

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)


class Provisioner(LocalProvisioner):
    async def launch_kernel(self, cmd, **named):
        environment = named.get("env") or dict(os.environ)
        nursery = nursery_for(cmd, environment)
        if nursery is None:
            return await super().launch_kernel(cmd, **named)
        self.cwd = named.get("cwd") or pathlib.Path.cwd()
        self.process = Kernel(nursery, cmd[len(LAUNCH) :], environment, self.cwd)
        self.pid = self.pgid = self.process.pid
        return self.connection_info


def install():
    """Let the kernels of this process be forked."""
    name, known = "local-provisioner", KernelProvisionerFactory.instance().provisioners
    known[name] = EntryPoint(name, f"{__name__}:Provisioner", known[name].group)


nurseries = {}
with_pytorch = False


def nursery_for(command, environment):
    if command[: len(LAUNCH)] != LAUNCH:
        return None
    modules = KERNEL
    if settings(environment) == settings(kernel_environment(ROOT)) and not hidden(environment):
        modules = (*KERNEL, *(["torch"] if with_pytorch else []), *COURSE)
    key = (modules, *sorted(settings(environment).items()))
    nursery = nurseries.get(key)
    if nursery is None or nursery.process.poll() is not None:
        nursery = nurseries[key] = Nursery(modules, environment)
    return nursery


# The process that forks


def nurse(line, modules):
    sys.path[:] = [place for place in sys.path if place]
    for name in [name for name in sys.modules if name.partition(".")[0] == "course"]:
        del sys.modules[name]  # a notebook may have its own
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
        if name == WORKER:
            sys.modules[WORKER]._ahead.ready = "each kernel has its own"  # or one would be started here
    if WORKER in sys.modules:
        sys.modules[WORKER]._ahead.ready = None
    gc.collect()
    gc.freeze()  # these pages stay shared
    file = line.makefile("rwb")
    while question := file.readline():
        question = json.loads(question)
        if "poll" in question:
            ended, status = os.waitpid(question["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        else:
            answer = os.fork()
            if answer == 0:
                try:
                    line.detach()
                    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
                    be_a_kernel(**question)
                finally:
                    os._exit(1)
            with contextlib.suppress(OSError):  # it has done so itself
                os.setpgid(answer, answer)
        file.write(json.dumps(answer).encode() + b"\n")
        file.flush()


def be_a_kernel(arguments, environment, folder):
    with contextlib.suppress(OSError):  # it leads a group of its own by now
        os.setsid()
    os.environ.clear()
    sys.path[:] = [*places(environment), *(place for place in sys.path if place not in places(environment))]
    os.environ.update(environment | {"JPY_PARENT_PID": str(os.getppid())})
    os.chdir(folder)
    sys.argv[:] = ["ipykernel_launcher", *arguments]
    random.seed()
    if numbers := sys.modules.get("numpy.random"):
        numbers.seed()
    if worker := sys.modules.get(WORKER):
        with contextlib.chdir(ROOT):  # what checks are forked from, as the first of them would start it
            worker._ahead.ready = worker.forked.Nursery.here(worker._serve)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()
    atexit._run_exitfuncs()
    os._exit(0)


if __name__ == "__main__":
    nurse(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
