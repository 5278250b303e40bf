"""Ranks of which one goes wrong, in the way that the first word says; the second is a folder for their numbers."""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import engine
import engine.distributed as d

mode, folder = sys.argv[1], Path(sys.argv[2])
d.init_process_group("gloo", timeout=timedelta(seconds=300))
rank, bad = d.get_rank(), d.get_world_size() - 1
(folder / f"{os.getpid()}").write_text(str(rank))
x = engine.ones(3)
d.all_reduce(x)
first, second = (
    d.new_group(timeout=timedelta(seconds=1 if mode == "hangs" and rank != bad else 300)) for _ in range(2)
)
if rank == bad:
    if mode == "raises":
        raise ValueError("something is wrong")
    if mode == "vanishes":
        os._exit(0)
    if mode in ("exits", "leaves"):
        sys.exit(3 if mode == "exits" else 0)
if mode == "hangs":  # on its way to the first call of all, then elsewhere
    told = folder / "told"
    if rank == bad:
        while not told.exists():
            time.sleep(0.05)
        d.recv(x, src=0, group=second)
    try:
        d.all_reduce(x, group=first)
    except d.DistBackendError as e:
        print(e, file=sys.stderr)
        told.touch()
    while not second.machine.heard:  # that the other waits, however late it comes to that
        second.machine.listen()
        time.sleep(0.05)
print("waiting", flush=True)
if mode == "stays":
    time.sleep(600)
d.all_reduce(x, group=second)
print("done", flush=True)
d.destroy_process_group()
