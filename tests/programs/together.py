"""What programs of several ranks share: each check runs on all of them, and what it gives is left for the test.

``python together.py collectives parallel`` runs the checks of these programs in one job.
"""

import importlib
import json
import multiprocessing
import os
import sys
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

t = importlib.import_module(os.environ.get("LIBRARY", "engine"))
d = importlib.import_module(f"{t.__name__}.distributed")
nn = importlib.import_module(f"{t.__name__}.nn")
importlib.import_module(f"{t.__name__}.nn.parallel")
OURS = t.__name__ == "engine"
t.set_num_threads(1)
RESULTS = Path(os.environ["RESULTS"])
checks = {}


def check(function):
    checks[function.__name__] = function
    return function


def only_here(function):
    """A check of what PyTorch's gloo has not, or does in another way."""
    return check(function) if OURS else function


def raised(function, *args, **options):
    """The type and the words of an error."""
    try:
        function(*args, **options)
    except Exception as e:
        return [type(e).__name__, str(e)]
    return ["nothing", ""]


def plain(value):
    """Tensors as lists."""
    if isinstance(value, t.Tensor):
        return plain(value.detach().to(t.float64).tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return value


def main(**place):
    warnings.simplefilter("ignore", FutureWarning)
    d.init_process_group("gloo", timeout=timedelta(seconds=300), **place)
    rank, found = d.get_rank(), {}
    for name, function in checks.items():
        try:
            found[name] = {"gives": plain(function())}
        except Exception:
            found[name] = {"fails": traceback.format_exc()}
        (RESULTS / f"{rank}.json").write_text(json.dumps(found), encoding="utf-8")
        try:
            d.barrier()
        except Exception:
            found[name] = {"fails": "after it: " + traceback.format_exc()}
    d.destroy_process_group()


def pytorch(programs, ranks):
    """Start PyTorch's ranks: where they can be forked, it is imported once for all of them."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    processes = [context.Process(target=one_of, args=(programs, rank, ranks)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return max(abs(process.exitcode) for process in processes)


def one_of(programs, rank, ranks):
    brought(programs).main(init_method=(RESULTS / "meeting").as_uri(), rank=rank, world_size=ranks)


def brought(programs):
    """This module as the programs import it, with their checks."""
    for program in programs:
        importlib.import_module(program)
    return importlib.import_module("together")


if __name__ == "__main__":
    module = brought(sys.argv[1:])
    if OURS:
        module.main()
    else:
        t.optim.SGD([t.ones(1, requires_grad=True)], lr=0.1).step()  # imports what each rank would import
        sys.exit(pytorch(sys.argv[1:], int(os.environ["RANKS"])))
