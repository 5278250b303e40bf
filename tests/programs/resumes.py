"""Trains with a checkpoint at each step, and goes on from the last whole one; prints the losses.

The words: the folder of the checkpoint, the number of steps, for how long a step waits, and, of rank 1 when it is
started first, before which checkpoint it kills itself.  What then goes on trains a second time, undisturbed.
"""

import os
import sys
import time
from pathlib import Path

import engine
import engine.distributed as d
from engine import nn
from engine.distributed import checkpoint

folder, steps, pause = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
last = int(sys.argv[4]) if len(sys.argv) > 4 else None
d.init_process_group("gloo")
rank, first = d.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"


def trained(folder):
    engine.manual_seed(rank)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = engine.optim.Adam(net.parameters(), lr=0.05)
    data = engine.utils.data.TensorDataset(engine.arange(96.0).reshape(24, 4) / 96)
    sampler = engine.utils.data.DistributedSampler(data)
    losses = []
    if (folder / checkpoint.METADATA).exists():
        state = checkpoint._load_state_dict_from_keys(checkpoint_id=folder)
        net.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses = state["losses"]
    for step in range(len(losses), steps):
        sampler.set_epoch(step)
        x = data[list(sampler)][0]
        optimizer.zero_grad()
        loss = (net(x).squeeze(1) - x.sum(1)).pow(2).mean()
        loss.backward()
        optimizer.step()
        d.all_reduce(loss.detach(), d.ReduceOp.AVG)
        losses.append(loss.item())
        if first and rank == 1 and step == last:
            os.kill(os.getpid(), 9)
        checkpoint.save(
            {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, checkpoint_id=folder
        )
        if rank == 0:
            print("step", step, flush=True)
        time.sleep(pause)
    if rank == 0:
        print(*(value.hex() for value in losses))


trained(folder)
if last is not None:
    trained(folder / "again")
d.destroy_process_group()
