"""DistributedSampler: each rank gets its part of the indices, the same number everywhere, in PyTorch's order."""

import math

from ...arrays import random
from ...collectives.groups import get_rank, get_world_size
from .dataset import T_co
from .sampler import Sampler


class DistributedSampler(Sampler[T_co]):
    """The indices of a dataset for one of several processes: every ``num_replicas``-th of them."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        whole, rest = divmod(len(dataset), num_replicas)
        self.num_samples = whole + (rest > 0 and not drop_last)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = random.Generator().manual_seed(self.seed + self.epoch)
            indices = random.randperm(generator, n).tolist()
        else:
            indices = list(range(n))
        missing = self.total_size - n
        if missing > 0:  # so many of the first ones come again
            indices += (indices * math.ceil(missing / n))[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Call it before each epoch: the order is drawn from ``seed + epoch``, the same on all ranks."""
        self.epoch = epoch
