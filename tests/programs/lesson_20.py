"""The cells of lesson 20 that run in its workers, and its file, on ranks of a launcher: what they print."""

import contextlib
import functools
import importlib.util
import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from together import OURS, check, d, t

from course.cluster import Link

ROOT = Path(__file__).resolve().parent.parent.parent
# Cells that need one computer's clock, an error, or what PyTorch has on GPUs alone.
ELSEWHERE = ("perf_counter", "timedelta", "SyncBatchNorm", "init_process_group")


def load_digits(return_X_y):
    """scikit-learn's, without the second that importing it takes in each rank."""
    file = Path(importlib.util.find_spec("sklearn").origin).parent / "datasets" / "data" / "digits.csv.gz"
    rows = np.loadtxt(file, delimiter=",")
    return rows[:, :-1], rows[:, -1].astype(int)


def printed(source, names):
    if not OURS:
        source = re.sub(r"(?m)^import engine$", "import torch as engine", source)
        source = re.sub(r"(?m)^(import|from) engine\b", r"\1 torch", source)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "cell", "exec"), names)
    return out.getvalue()


@check
def what_the_workers_print():
    """For each cell that can run here: its first line, and what it prints."""
    cells = json.loads((ROOT / "notebooks/20_many_machines.ipynb").read_text(encoding="utf-8"))["cells"]
    sys.modules["sklearn.datasets"] = SimpleNamespace(load_digits=load_digits)
    names = {"engine": t, "nn": t.nn, "dist": d, "rank": d.get_rank(), "Link": functools.partial(Link, d)}
    found = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or any(word in source for word in ELSEWHERE):
            continue
        shared = re.match(r"def (one_to_all|tree|ring)\(", source)
        if source.startswith("def batch"):
            source = source.partition("\n\n\nloss_fn")[0]
        elif not (shared or source.startswith("%%px")):
            continue
        source = source.removeprefix("%%px\n").replace("from course.cluster import Link\n", "")
        if text := printed(source, names):
            found.append(text)
    return found


@check
def what_the_file_prints():
    """Without its first call, which has been made, and its last, which will be."""
    lesson = (ROOT / "course/lessons/20_many_machines/lesson.md").read_text(encoding="utf-8")
    (source,) = [b for b in re.findall(r"```python\n(.*?)```", lesson, re.DOTALL) if "DataLoader(examples" in b]
    return printed(re.sub(r"(?m)^dist\.(init|destroy)_process_group\(.*\)$", "", source), {})
