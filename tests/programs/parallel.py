"""DistributedDataParallel and what goes with it, against one process with the whole batch."""

import importlib
import tempfile
from pathlib import Path

from together import check, d, nn, only_here, raised, t

importlib.import_module(f"{t.__name__}.utils.data")
importlib.import_module(f"{t.__name__}.distributed.optim")
importlib.import_module(f"{t.__name__}.utils.checkpoint")
DDP, F = nn.parallel.DistributedDataParallel, nn.functional
ROWS = 48  # a multiple of 1, 2, 4 and 8


def rank():
    return d.get_rank()


def size():
    return d.get_world_size()


def data(dtype="float32", rows=ROWS):
    g = t.Generator().manual_seed(5)
    x, y = t.rand(rows, 8, generator=g), t.randint(0, 4, (rows,), generator=g)
    return x.to(getattr(t, dtype)), y


def part(x, r=None):
    """The rows of a rank."""
    return x[(rank() if r is None else r) :: size()]


def model(seed=0, dtype="float32", norm=False):
    t.manual_seed(seed)
    layers = [nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)]
    if norm:
        layers.insert(1, nn.BatchNorm1d(16))
    return nn.Sequential(*layers).to(getattr(t, dtype))


def trained(net, batches, make=None, loss=F.cross_entropy, steps=10):
    """(the losses, the parameters) after some steps; ``batches(i)``: inputs and labels of a step."""
    optimizer = (make or (lambda p: t.optim.SGD(p, lr=0.2, momentum=0.9)))(net.parameters())
    losses = []
    for i in range(steps):
        x, y = batches(i)
        optimizer.zero_grad()
        value = loss(net(x), y)
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return losses, [p.detach() for p in net.parameters()]


def mean(x):
    """The mean over the ranks."""
    x = x.clone()
    d.all_reduce(x)
    return x / size()


def close(a, b, atol):
    gap = max(((x - y).abs().max() / y.abs().max().clamp(min=1)).item() for x, y in zip(a, b, strict=True))
    assert gap <= atol, gap


def training(dtype, atol, **options):
    x, y = data(dtype)
    whole = trained(model(dtype=dtype), lambda _: (x, y))
    # another seed on each rank: the weights of rank 0 are those of all
    losses, weights = trained(DDP(model(rank(), dtype), **options), lambda _: (part(x), part(y)))
    losses = [mean(v) for v in losses]
    close(losses, whole[0], atol)
    close(weights, whole[1], atol)
    return [losses, weights]


@check
def losses_and_weights_are_those_of_one_process_in_float64():
    return training("float64", 1e-13)


@check
def losses_and_weights_are_those_of_one_process_in_float32():
    return training("float32", 1e-6)


@check
def the_same_with_gradients_as_views_of_buckets():
    return training("float32", 1e-6, gradient_as_bucket_view=True)


@check
def the_same_in_small_buckets():
    return training("float32", 1e-6, bucket_cap_mb=0.0002)


@check
def the_same_with_a_sampler():
    """The rows that PyTorch's sampler gives, epoch by epoch, with an end that does not divide."""
    x, y = data(rows=45)
    sampler = t.utils.data.DistributedSampler(x, seed=3)
    loader = t.utils.data.DataLoader(t.utils.data.TensorDataset(x, y), batch_size=5, sampler=sampler)
    net, seen = DDP(model(rank())), []
    optimizer = t.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        seen.append(list(sampler))
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
    return [seen, [p.detach() for p in net.parameters()]]


def neighbours(parts):
    """The sum of pairs, then of pairs of those."""
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def halves(parts):
    """The same, with who is half of them away."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [a + b for a, b in zip(parts[:half], parts[half:], strict=True)]
    return parts[0]


@only_here
def gradients_in_float64_are_to_the_bit_the_sum_in_the_order_of_ranks():
    x, y = data("float64")
    net = DDP(model(dtype="float64"))
    F.cross_entropy(net(part(x)), part(y)).backward()
    each = []
    for r in range(size()):
        one = model(dtype="float64")
        F.cross_entropy(one(part(x, r)), part(y, r)).backward()
        each.append([p.grad * (1.0 / size()) for p in one.parameters()])
    for p, *parts in zip(net.parameters(), *each, strict=True):
        sums = [
            sum(parts[1:], parts[0]),
            neighbours(parts),
            halves(parts),
        ]  # MPI adds pairs, if there are more than two
        assert any(t.equal(p.grad, s) for s in sums)


@check
def gradients_of_several_passes_are_averaged_together():
    x, y = data("float64")
    net, alone = DDP(model(dtype="float64")), model(dtype="float64")
    mine = part(x), part(y)
    with net.no_sync():
        F.cross_entropy(net(mine[0]), mine[1]).backward()
        own = net.module[0].weight.grad.clone()
    F.cross_entropy(net(mine[0] * 2), mine[1]).backward()
    (F.cross_entropy(alone(x), y) + F.cross_entropy(alone(x * 2), y)).backward()
    close([p.grad for p in net.parameters()], [p.grad for p in alone.parameters()], 1e-15)
    return [bool(t.equal(own, mean(own)))]


@only_here
def buckets_go_off_while_backward_runs():
    net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(6)))
    parallel = DDP(net, bucket_cap_mb=0.001)
    parallel(t.ones(2, 16)).sum().backward()
    reducer = parallel.reducer
    assert [b.numbers for b in reducer.buckets][0] == [11, 10] and len(reducer.buckets) == 6
    assert all(a <= b for a, b in zip(reducer.launched, reducer.launched[1:], strict=False))
    facts = parallel._get_ddp_logging_data()
    assert facts["backward_compute_comm_overlap_time"] > 0 and facts["world_size"] == size()
    return facts["bucket_sizes"]


class Branches(nn.Module):
    """Uses ``a`` on even ranks, ``b`` on odd ones, ``never`` on none."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.never, self.out = (nn.Linear(2, 2) for _ in range(4))

    def forward(self, x, even):
        return self.out((self.a if even else self.b)(x))


@check
def parameters_that_are_not_used():
    t.manual_seed(0)
    net = DDP(Branches(), find_unused_parameters=True)
    for _ in range(2):
        net.zero_grad()
        net(t.ones(1, 2), rank() % 2 == 0).sum().backward()
    return [None if p.grad is None else p.grad for p in net.parameters()]


@only_here
def parameters_that_are_not_used_are_named():
    net = DDP(Branches())
    net(t.ones(1, 2), True).sum().backward()
    kind, words = raised(net, t.ones(1, 2), True)
    assert kind == "RuntimeError" and words.startswith("Expected to have finished reduction in the prior iteration")
    assert "did not receive grad for rank" in words and "b.weight, b.bias, never.weight, never.bias" in words


@only_here
def a_parameter_is_ready_once():
    """Two checkpoints with passes of their own (use_reentrant) use the same layer."""

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.again = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            for _ in range(2):
                x = t.utils.checkpoint.checkpoint(self.again, self.first(x), use_reentrant=True)
            return x

    return raised(DDP(Twice())(t.ones(1, 2)).sum().backward)[1].split("\n")[0]


@only_here
def models_that_differ_are_noticed_with_the_name():
    odd = rank() == size() - 1 and size() > 1
    other = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4 + odd))
    more = nn.Sequential(nn.Linear(2, 3), *[nn.Linear(3, 3)] * odd)
    kinds = nn.Linear(2, 3).to(t.float64 if odd else t.float32)
    return [raised(DDP, other), raised(DDP, more), raised(DDP, kinds)]


@check
def buffers_are_those_of_the_first_rank():
    net = DDP(model(rank(), norm=True))
    x, y = data()
    trained(net, lambda _: (part(x), part(y)), steps=3)
    net(part(x))  # which sends them, before it changes them
    return [mean(net.module[1].running_mean).shape[0], net.module[1].num_batches_tracked.item()]


@check
def gradients_are_clipped_alike():
    x, y = data("float64")
    net, alone = DDP(model(dtype="float64")), model(dtype="float64")
    F.cross_entropy(net(part(x)), part(y)).backward()
    F.cross_entropy(alone(x), y).backward()
    norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.01) for m in (net, alone)]
    assert abs(norms[0] - norms[1]) < 1e-14
    close([p.grad for p in net.parameters()], [p.grad for p in alone.parameters()], 1e-15)
    return norms[0]


@only_here
def a_scaler_leaves_out_a_step_on_all_ranks():
    net, x = DDP(nn.Linear(2, 1)), t.ones(1, 2)
    optimizer, scaler = t.optim.SGD(net.parameters(), lr=0.1), t.amp.GradScaler("cpu", init_scale=8.0)
    before = net.module.weight.detach().clone()
    for step in range(2):
        optimizer.zero_grad()
        inputs = x * (float("inf") if step == 0 and rank() == size() - 1 else 1.0)
        scaler.scale(net(inputs).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        if step == 0:
            assert t.equal(net.module.weight.detach(), before)
    assert t.allclose(net.module.weight, before - 0.1)
    return scaler.get_scale()


@only_here
def autocast_and_checkpoints_inside():
    x, y = data()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = model()

        def forward(self, x):
            x = t.utils.checkpoint.checkpoint(self.net[:3], x, use_reentrant=False)
            return self.net[3:](x)

    def steps(net, x, y):
        def loss(out, labels):
            return F.cross_entropy(out.float(), labels)

        with t.autocast("cpu", dtype=t.bfloat16):
            return trained(net, lambda _: (x, y), loss=loss, steps=4)

    one, many = steps(Net(), x, y), steps(DDP(Net()), part(x), part(y))
    close(many[1], one[1], 5e-3)
    plain = trained(DDP(Net()), lambda _: (part(x), part(y)), steps=4)
    close(plain[1], trained(model(), lambda _: (x, y), steps=4)[1], 1e-6)


@only_here
def compiled_modules_inside_and_around():
    x, y = data()
    whole = trained(model(), lambda _: (x, y))
    inside = model()
    inside.compile()
    close(trained(DDP(inside), lambda _: (part(x), part(y)))[1], whole[1], 1e-6)
    close(trained(DDP(t.compile(model())), lambda _: (part(x), part(y)))[1], whole[1], 1e-6)
    around = DDP(model())
    compiled = t.compile(around)
    optimizer = t.optim.SGD(around.parameters(), lr=0.2, momentum=0.9)
    for _ in range(10):
        optimizer.zero_grad()
        F.cross_entropy(compiled(part(x)), part(y)).backward()
        optimizer.step()
    close([p.detach() for p in around.parameters()], whole[1], 1e-6)


@check
def a_hook_carries_the_gradients():
    def half(state, bucket):
        state.append(bucket.index())
        compressed = (bucket.buffer() / size()).to(t.bfloat16)
        future = d.all_reduce(compressed, async_op=True).get_future()

        def back(future):
            bucket.buffer().copy_(future.value()[0])
            return bucket.buffer()

        return future.then(back)

    x, y = data()
    net, alone, seen = DDP(model()), model(), []
    net.register_comm_hook(seen, half)
    F.cross_entropy(net(part(x)), part(y)).backward()
    F.cross_entropy(alone(x), y).backward()
    gap = max((p.grad - q.grad).abs().max().item() for p, q in zip(net.parameters(), alone.parameters(), strict=True))
    assert 0 < gap < 0.01
    return seen


@only_here
def synchronized_batch_norm_is_that_of_the_whole_batch():
    x, y = data("float64")
    uneven = [x[r * r : (r + 1) ** 2] for r in range(size() - 1)] + [x[(size() - 1) ** 2 :]]
    labels = [y[r * r : (r + 1) ** 2] for r in range(size() - 1)] + [y[(size() - 1) ** 2 :]]
    one = model(dtype="float64", norm=True)
    many = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model(dtype="float64", norm=True)))
    assert type(many.module[1]).__name__ == "SyncBatchNorm"
    for _ in range(2):
        F.cross_entropy(one(x), y).backward()
        out = F.cross_entropy(many(uneven[rank()]), labels[rank()], reduction="sum") * size() / len(x)
        out.backward()
    close([p.grad for p in many.parameters()], [p.grad for p in one.parameters()], 1e-14)
    close([many.module[1].running_mean, many.module[1].running_var], [one[1].running_mean, one[1].running_var], 1e-14)
    images = t.rand(size(), 3, 4, 4, dtype=t.float64, generator=t.Generator().manual_seed(1))
    norms = nn.BatchNorm2d(3, affine=False).to(t.float64), nn.SyncBatchNorm(3, affine=False).to(t.float64)
    a, b = images.clone().requires_grad_(), images.clone().requires_grad_()
    (norms[0](a) ** 3).sum().backward()
    (norms[1](b[rank() : rank() + 1]) ** 3).sum().backward()
    close([b.grad[rank()]], [a.grad[rank()]], 1e-12)
    many.eval()
    one.eval()
    close([many(x)], [one(x)], 1e-14)


@check
def sharded_optimizer_states():
    x, y = data("float64")
    make = lambda p: d.optim.ZeroRedundancyOptimizer(p, t.optim.Adam, lr=0.01)  # noqa: E731
    one, many = model(dtype="float64"), DDP(model(dtype="float64"))
    adam, zero = t.optim.Adam(one.parameters(), lr=0.01), make(many.parameters())
    for _ in range(5):
        for net, optimizer, batch in ((one, adam, (x, y)), (many, zero, (part(x), part(y)))):
            optimizer.zero_grad()
            F.cross_entropy(net(batch[0]), batch[1]).backward()
            optimizer.step()
    close(many.parameters(), one.parameters(), 1e-13)
    owned = len(zero.optim.state)
    zero.consolidate_state_dict(to=0)
    if rank() == 0:
        close([s["exp_avg"] for s in zero.state_dict()["state"].values()],
              [s["exp_avg"] for s in adam.state_dict()["state"].values()], 1e-14)  # fmt: skip
    shared = [zero.state_dict() if rank() == 0 else None]
    d.broadcast_object_list(shared)
    again = make(many.parameters())
    again.load_state_dict(shared[0])
    for optimizer in (again, adam):
        optimizer.param_groups[0]["lr"] = 0.05
    for net, optimizer, batch in ((one, adam, (x, y)), (many, again, (part(x), part(y)))):
        optimizer.zero_grad()
        F.cross_entropy(net(batch[0]), batch[1]).backward()
        optimizer.step()
    close(many.parameters(), one.parameters(), 1e-13)
    return [owned, raised(make(many.parameters()).state_dict)[0]]


@only_here
def a_checkpoint_of_all_ranks_is_read_by_one():
    from engine.distributed import checkpoint

    shared = [tempfile.mkdtemp() if rank() == 0 else None]
    d.broadcast_object_list(shared)
    folder, net = Path(shared[0]) / "c", model(seed=3)
    for epoch in range(2):
        own = {f"rank {rank()}": t.full((2,), float(rank()))}
        state = {"model": net.state_dict(), "epoch": epoch, "own": own, "list": [1, {"x": t.ones(1)}], "empty": {}}
        checkpoint.save(state, checkpoint_id=folder)
    files = sorted(p.suffix for p in folder.iterdir())
    new = {"model": model(seed=4).state_dict(), "epoch": None, "own": {"rank 0": t.zeros(2)}}
    checkpoint.load(new, checkpoint_id=folder)
    close(new["model"].values(), net.state_dict().values(), 0)
    assert new["epoch"] == 1 and new["own"]["rank 0"].tolist() == [0, 0]
    everything = checkpoint._load_state_dict_from_keys(checkpoint_id=folder)
    assert sorted(everything["own"]) == [f"rank {r}" for r in range(size())] and everything["list"][0] == 1
    missing = raised(checkpoint.load, {"nothing": 1}, checkpoint_id=folder)
    shape = raised(checkpoint.load, {"model": {"0.weight": t.ones(1)}}, checkpoint_id=folder)
    d.barrier()
    if rank() == 0:
        next(folder.glob("*.safetensors")).unlink()
    d.barrier()
    broken = raised(checkpoint.load, new, checkpoint_id=folder)[1]
    return [files, missing, shape[0], "is not whole" in broken,
            raised(checkpoint.load, new, checkpoint_id=folder / "no")[1].endswith("it has no .metadata")]  # fmt: skip
