"""DistributedDataParallel, its sampler, synchronized batch norm, sharded optimizers, checkpoints of several ranks."""

import os

import numpy as np
import pytest
from ranks import checks_of, given

import engine
import engine.nn
from engine.utils.data import DistributedSampler

PROGRAM = "parallel.py"


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_a_check_holds_on_every_rank(check, ranks):
    given(PROGRAM, ranks, check)


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("UNDERTORCH_RANKS") != "8", reason="by hand, with UNDERTORCH_RANKS=8: it needs cores"
)
@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_a_check_holds_on_eight_ranks(check):
    given(PROGRAM, 8, check)


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_a_check_holds_in_one_process(check):
    given(PROGRAM, 1, check)


def flat(value):
    """The numbers in nested lists and dicts; None is -1."""
    if isinstance(value, dict):
        value = list(value.values())
    return [x for v in value for x in flat(v)] if isinstance(value, list) else [-1.0 if value is None else float(value)]


# How far results in float32 may be from PyTorch's; of these, some are of float64 or whole numbers.
EXACT = {"losses_and_weights_are_those_of_one_process_in_float64": 1e-13}


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("check", checks_of(PROGRAM, "torch"))
def test_pytorch_with_gloo_gives_the_same(check, ranks):
    mine, theirs = given(PROGRAM, ranks, check), given(PROGRAM, ranks, check, library="torch")
    if check == "sharded_optimizer_states":
        assert mine == theirs
    elif check != "a_hook_carries_the_gradients":  # whose buckets are those of a first pass, one for all
        for ours, its in zip(mine, theirs, strict=True):
            ours, its = (flat(v) if v is not None else [] for v in (ours, its))
            np.testing.assert_allclose(ours, its, rtol=0, atol=EXACT.get(check, 3e-6))


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_models_that_differ_are_named(ranks):
    for found in given(PROGRAM, ranks, "models_that_differ_are_noticed_with_the_name"):
        (kind, shape), (_, number), (_, dtype) = found
        assert kind == "RuntimeError"
        assert shape.startswith(
            f"[{ranks - 1}]: params[2] in this process with sizes [5, 3] appears not to match sizes"
        )
        assert "1.weight" in shape
        assert number.startswith("DDP expects same model across all ranks, but Rank")
        assert "1.bias, 1.weight" in number and "weight" in dtype and "torch.float64" in dtype


def test_other_things_that_are_found():
    first, second = ({check: given(PROGRAM, 2, check)[rank] for check in checks_of(PROGRAM)} for rank in range(2))
    assert first["a_parameter_is_ready_once"].startswith("Expected to mark a variable ready only once.")
    assert first["a_scaler_leaves_out_a_step_on_all_ranks"] == 4.0
    assert first["sharded_optimizer_states"][0] + second["sharded_optimizer_states"][0] == 6
    files, missing, shape, *rest = first["a_checkpoint_of_all_ranks_is_read_by_one"]
    assert files == ["", ".safetensors", ".safetensors"]  # of the newest of two checkpoints alone
    assert missing == ["RuntimeError", "Missing key in checkpoint state_dict: nothing."]
    assert shape == "CheckpointException" and rest == [True, True]
    assert first["gradients_of_several_passes_are_averaged_together"] == [False]


def indices(n, replicas, epoch=0, **options):
    found = []
    for rank in range(replicas):
        sampler = DistributedSampler(range(n), replicas, rank, **options)
        sampler.set_epoch(epoch)
        found.append(list(sampler))
        assert len(sampler) == len(found[-1])
    return found


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n, replicas", [(10, 1), (10, 3), (9, 3), (2, 5), (1, 4), (100, 7)])
def test_a_sampler_gives_pytorchs_indices(n, replicas, drop_last):
    torch = pytest.importorskip("torch")
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
