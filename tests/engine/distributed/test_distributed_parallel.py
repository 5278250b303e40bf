"""What trains on several ranks, in one: the sampler's shares, and wrong arguments."""

from itertools import product

import pytest
from over_tables import over

import engine
import engine.nn
from engine.utils.data import DistributedSampler


def indices(n, replicas, epoch=0, **options):
    found = []
    for rank in range(replicas):
        sampler = DistributedSampler(range(n), replicas, rank, **options)
        sampler.set_epoch(epoch)
        found.append(list(sampler))
        assert len(sampler) == len(found[-1])
    return found


@over("sizes, drop_last", product([(10, 1), (10, 3), (9, 3), (2, 5), (1, 4), (100, 7)], [False, True]))
def test_a_sampler_gives_pytorchs_indices(sizes, drop_last):
    torch = pytest.importorskip("torch")
    n, replicas = sizes
    for shuffle in (False, True):
        for epoch in (0, 3):
            for rank, mine in enumerate(indices(n, replicas, epoch, shuffle=shuffle, seed=2, drop_last=drop_last)):
                theirs = torch.utils.data.DistributedSampler(range(n), replicas, rank, shuffle, 2, drop_last)
                theirs.set_epoch(epoch)
                assert mine == list(theirs)


def test_samplers_of_all_ranks_cover_the_data():
    found = indices(10, 3, epoch=1)
    assert {len(f) for f in found} == {4} and set(sum(found, [])) == set(range(10))
    assert sorted(sum(indices(10, 3, drop_last=True), [])) != list(range(10))
    with pytest.raises(ValueError, match=r"Invalid rank 3, rank should be in the interval \[0, 2\]"):
        DistributedSampler(range(3), 3, 3)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedSampler(range(3))


@pytest.fixture
def alone():
    engine.distributed.init_process_group("gloo", rank=0, world_size=1)
    yield
    engine.distributed.destroy_process_group()


def test_wrong_arguments_of_ddp(alone):
    ddp, net = engine.nn.parallel.DistributedDataParallel, engine.nn.Linear(2, 1)
    with pytest.raises(RuntimeError, match="is not needed when a module doesn't have any parameter that requires a"):
        ddp(engine.nn.ReLU())
    with pytest.raises(ValueError, match="device_ids and output_device arguments only work with"):
        ddp(net, device_ids=[0])
    with pytest.raises(ValueError, match="device_ids can only be None or contain a single element"):
        ddp(net, device_ids=[0, 1])
    with pytest.raises(NotImplementedError, match="device_mesh"):
        ddp(net, device_mesh=object())
    with pytest.warns(FutureWarning, match="`broadcast_buffers` is deprecated"):
        assert not ddp(net, broadcast_buffers=False).broadcast_buffers
    with pytest.raises(TypeError, match="Communication hook must be callable"):
        ddp(net).register_comm_hook(None, 3)


def test_a_module_on_the_simulated_device(alone):
    net = engine.nn.parallel.DistributedDataParallel(engine.nn.Linear(2, 1).to("sim"), device_ids=[0])
    net(engine.ones(3, 2)).sum().backward()
    assert net.module.weight.grad.tolist() == [[3, 3]] and str(net.module.weight.grad.device) == "sim:0"


def test_wrong_arguments_of_the_sharded_optimizer(alone):
    zero, w = engine.distributed.optim.ZeroRedundancyOptimizer, engine.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="`params` argument should be an iterable of Tensors, but got"):
        zero(w, engine.optim.SGD, lr=0.1)
    with pytest.raises(TypeError, match="`params` argument should be an iterable of Tensors or dicts"):
        zero(3, engine.optim.SGD, lr=0.1)
    with pytest.raises(ValueError, match="ZeroRedundancyOptimizer got an empty parameter list"):
        zero([], engine.optim.SGD, lr=0.1)
    with pytest.raises(RuntimeError, match="Optimizer state has not been consolidated on this rank"):
        zero([w], engine.optim.SGD, lr=0.1).state_dict()


def test_a_damaged_checkpoint_is_an_error(tmp_path):
    with pytest.warns(UserWarning, match="assuming the intent is to save in a single process"):
        engine.distributed.checkpoint.save({"w": engine.ones(2)}, checkpoint_id=tmp_path)
    (tmp_path / ".metadata").write_text('{"version": 1, "values": {"w": {"file": "../x"}}}')
    with pytest.raises(RuntimeError, match="is not whole"):
        engine.distributed.checkpoint.load({"w": engine.ones(2)}, checkpoint_id=tmp_path)
    (tmp_path / ".metadata").write_text("{")
    with pytest.raises(RuntimeError, match="is damaged"):
        engine.distributed.checkpoint.load({"w": engine.ones(2)}, checkpoint_id=tmp_path)
