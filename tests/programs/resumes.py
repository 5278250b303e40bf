"""Trains with a checkpoint at each step, and goes on from the last whole one; prints the losses.

The words: the folder of the checkpoint, the number of steps, and for how long a step waits.
"""

import sys
import time
from pathlib import Path

import engine
import engine.distributed as d
from engine import nn
from engine.distributed import checkpoint

folder, steps, pause = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
d.init_process_group("gloo")
rank, size = d.get_rank(), d.get_world_size()
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
    checkpoint.save(
        {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, checkpoint_id=folder
    )
    if rank == 0:
        print("step", step, flush=True)
    time.sleep(pause)
if rank == 0:
    print(*(value.hex() for value in losses))
d.destroy_process_group()
