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
group = d.new_group(timeout=timedelta(seconds=1 if mode in ("hangs", "elsewhere") and rank != bad else 300))
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if rank == bad and (mode != "recovers" or attempt == 0):
    if mode in ("raises", "recovers"):
        raise ValueError("something is wrong")
    if mode == "dies":
        os.kill(os.getpid(), 9)
    if mode == "exits":
        sys.exit(3)
    if mode == "vanishes":
        os._exit(0)
    if mode == "leaves":
        sys.exit(0)
    if mode == "hangs":
        time.sleep(600)
if mode == "elsewhere" and rank == bad:
    d.recv(x, src=0, group=group)
while mode == "elsewhere" and not group.machine.heard:  # that the other waits, however late it comes to that
    group.machine.listen()
    time.sleep(0.05)
print("waiting", flush=True)
if mode == "stays":
    time.sleep(600)
d.all_reduce(x, group=group)
print("done", attempt, flush=True)
d.destroy_process_group()
