"""The cells of lesson 20 that run in its workers, on ranks that a launcher has started: what each cell prints there."""

import contextlib
import functools
import io
import json
import os
import re
from pathlib import Path

from together import OURS, check, d, main, t

from course.cluster import Link

ROOT = Path(__file__).resolve().parent.parent.parent
# Cells that need one computer's clock, an error, or what PyTorch has on GPUs alone.
ELSEWHERE = ("perf_counter", "timedelta", "SyncBatchNorm", "init_process_group")


@check
def what_the_workers_print():
    """For each cell that can run here: its first line, and what it prints."""
    cells = json.loads((ROOT / "notebooks/20_many_machines.ipynb").read_text(encoding="utf-8"))["cells"]
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
        if not OURS:
            source = re.sub(r"(?m)^from engine\b", "from torch", source)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, "cell", "exec"), names)
        if printed.getvalue():
            found.append(printed.getvalue())
    return found


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    main()
