"""What is compared, and the process that each one runs in.

Each framework has a process of its own, so that one's allocator settings, threads and garbage do not change the times
of another; they take turns, so that whatever else the machine does falls on all of them alike.
"""

import importlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import NamedTuple
from unittest.mock import patch

from .floor import BYTES, PRODUCTS
from .workloads import WORKLOADS

CLOCK = "BENCHMARKS_CLOCK"  # the variable by which a process is told to count the processor's time
clock = process_time if os.environ.get(CLOCK) == "cpu" else perf_counter

FIRST = 3  # steps before the clock starts: what compiles does so in the first one, and may once more when it has state
WARM_UP = 0.3  # seconds of steps before the first round
BURST = 0.005  # seconds of steps that are timed together, about: short enough that some are not interrupted
BURSTS = 8  # in a round
REST = 0.1  # seconds before a round: another framework's threads go on spinning after its last product, on cores that
# this one needs (with two cores, an MLP took 160 us to 220 us instead of 101 us)

# What would hold OpenBLAS to the kernels of another processor, while PyTorch's library chooses its own.
FIXED_KERNELS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")

COMMON = ("seed", "scalars", "matrices", "large", "mlp", "import")  # the programs that every adapter has
LAYERS = ("convnet", "block", "softmax", "layer_norm", "gelu", "attention")
TRAINING = ("training", "training_large", "inference")
COMPILED = ("scalars", "matrices", "large", "mlp", *LAYERS, *TRAINING)
COMPUTED = tuple(name for name in WORKLOADS if name != "import")


class Framework(NamedTuple):
    """One framework, as it is called here, in Python and by pip."""

    label: str
    module: str
    distribution: str | None
    adapter: str
    only: tuple[str, ...] = COMMON
    environment: dict[str, str] = {}  # of its process
    program: str = ""  # that it needs beside its module
    cache: str = ""  # the variable that names its cache folder: where it is not set, a temporary folder

    @property
    def installed(self):
        return find_spec(self.module) is not None and (not self.program or shutil.which(self.program) is not None)

    @property
    def needs(self):
        """What has to be installed for it."""
        if find_spec(self.module) is None or not self.program:
            return self.module
        return f"a C++ compiler ({self.program}), for {self.label}"

    @property
    def version(self):
        return version(self.distribution) if self.distribution else "this one"


FRAMEWORKS = {
    "engine": Framework("engine", "engine", None, "engine", tuple(WORKLOADS)),
    "engine1": Framework(
        "engine, 1 thread", "engine", None, "engine_single", ("mlp", *LAYERS, *TRAINING), {"OPENBLAS_NUM_THREADS": "1"}
    ),
    "compiled": Framework("engine, compiled", "engine", None, "engine_compiled", COMPILED),
    "compiled1": Framework(
        "engine, compiled, 1 thread",
        "engine",
        None,
        "engine_compiled_single",
        ("mlp", *LAYERS, *TRAINING),
        {"OPENBLAS_NUM_THREADS": "1"},
    ),
    "torch": Framework("PyTorch", "torch", "torch", "pytorch", tuple(WORKLOADS)),
    "torch1": Framework("PyTorch, 1 thread", "torch", "torch", "pytorch_single", COMPUTED),
    "inductor": Framework(
        "torch.compile",
        "torch",
        "torch",
        "pytorch_compiled",
        COMPILED,
        program=os.environ.get("CXX") or {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++"),
        cache="TORCHINDUCTOR_CACHE_DIR",
    ),
    "autograd": Framework("HIPS autograd", "autograd", "autograd", "hips_autograd"),
    "mygrad": Framework("MyGrad", "mygrad", "mygrad", "mygrad_tensors"),
    # The parameters that its models begin with are the engine's; the allocator is left as JAX finds it.
    "jax": Framework("JAX, jit", "jax", "jax", "jax_jit", (*COMMON, *LAYERS, *TRAINING), {"ENGINE_MALLOPT": "0"}),
    "micrograd": Framework("micrograd", "micrograd", "micrograd", "micrograd_values", ("scalars", "import")),
    "numpy": Framework("NumPy by hand", "numpy", "numpy", "by_hand"),
}
ONE = {"OPENBLAS_NUM_THREADS": "1"}
FLOOR = {  # what is measured beside them: what each workload cannot do without, with a thread on each core and with one
    "products": Framework("products, all threads", "numpy", "numpy", "products", tuple(PRODUCTS)),
    "products1": Framework("products, 1 thread", "numpy", "numpy", "products", tuple(PRODUCTS), ONE),
    "bytes": Framework("bytes, all threads", "numpy", "numpy", "moves", tuple(BYTES)),
    "bytes1": Framework("bytes, 1 thread", "numpy", "numpy", "moves", tuple(BYTES), ONE),
}


def installed():
    """The frameworks that are here, {name: Framework}."""
    return {name: framework for name, framework in FRAMEWORKS.items() if framework.installed}


class Worker:
    """A process that runs one framework's steps when it is told to."""

    def __init__(self, framework):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(framework.adapter, theirs), daemon=True)
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True) if framework.cache else None
        with patch.dict(os.environ, framework.environment):
            for name in FIXED_KERNELS:
                os.environ.pop(name, None)
            if self.folder is not None:
                os.environ.setdefault(framework.cache, self.folder.name)
            self.process.start()
        theirs.close()

    def ask(self, what, name):
        """``seconds``: of a step of a workload, in one round.  ``result``: its loss and gradients."""
        self.connection.send((what, name))
        answer = self.connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.connection.close()
        self.process.join()
        if self.folder is not None:
            self.folder.cleanup()


def serve(adapter, connection):
    """In the worker: answer until the other side hangs up."""
    prepared = {}
    while True:
        try:
            what, name = connection.recv()
        except EOFError:
            return
        try:
            if name not in prepared:
                step, result, *more = importlib.import_module(f".adapters.{adapter}", __package__).prepare(name)
                steps = steps_in_a_burst(step) if what == "seconds" else 1
                prepared[name] = step, result, steps, *(more or (1,))
            step, result, steps, times = prepared[name]  # how often ``step`` does what is to be timed
            connection.send(result_arrays(result()) if what == "result" else fastest_burst(step, steps) / times)
        except Exception as error:  # the other side raises it
            connection.send(RuntimeError(f"{adapter}, {name}: {type(error).__name__}: {error}"))


def fastest_burst(step, steps):
    """The time of a step in one round: other programs interrupt most bursts of a busy machine, and not the fastest."""
    sleep(REST)
    return min(seconds(step, steps) for _ in range(BURSTS))


def seconds(step, steps):
    """The mean time of a step in one burst, with what the garbage collector does meanwhile, as a user has it."""
    start = clock()
    for _ in range(steps):
        step()
    return (clock() - start) / steps


def steps_in_a_burst(step):
    """Warm up, and see how many steps a burst takes."""
    for _ in range(FIRST):
        step()
    fastest, end = float("inf"), perf_counter() + WARM_UP
    while perf_counter() < end:
        fastest = min(fastest, seconds(step, 1))
    return max(1, round(BURST / fastest))


def result_arrays(values):
    """Arrays of NumPy, which every process knows."""
    import numpy as np

    return {name: np.array(value) for name, value in values.items()}


def import_seconds(module):
    """The time that ``import module`` takes in a fresh process, the faster of two, with its bytecode cached."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    root = Path(__file__).parent.parent
    times = []
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", code], env=environment, cwd=root, check=True, capture_output=True)
        times.append(float(run.stdout.decode().split()[-1]))
    return min(times)
