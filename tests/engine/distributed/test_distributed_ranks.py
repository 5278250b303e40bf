"""Jobs of several ranks: every collective, and what trains on many of them, on each rank and beside PyTorch's gloo."""

import os

import numpy as np
import pytest
from over_tables import over
from ranks import checks_of, given

BOTH = "collectives parallel"  # the programs of a job
# By hand also UNDERTORCH_RANKS=8, which needs cores.
TWO_AND_MORE = pytest.mark.parametrize(
    "ranks", [2, pytest.param(int(os.environ.get("UNDERTORCH_RANKS", "4")), marks=pytest.mark.slow)]
)
COLLECTIVES, PARALLEL = checks_of("collectives"), checks_of("parallel")


@TWO_AND_MORE
@over("check", [*COLLECTIVES, *PARALLEL])
def test_a_check_holds_on_every_rank(check, ranks):
    given(BOTH, ranks, check)


@over("check", PARALLEL)
def test_a_check_holds_in_one_process(check):
    given("parallel", 1, check)


@over("check", checks_of("collectives", "torch"))
def test_pytorch_says_and_gives_the_same(check):
    mine, theirs = given(BOTH, 2, check), given(BOTH, 2, check, library="torch")
    if check == "errors_before_anything_is_sent":
        for number, (ours, its) in enumerate(zip(mine[0], theirs[0], strict=True)):
            assert ours == its, f"call {number}"
    assert mine == theirs


@TWO_AND_MORE
def test_calls_that_do_not_fit_are_told_alike_on_all_ranks(ranks):
    found = given(BOTH, ranks, "other_shapes_on_other_ranks_are_told_to_all")
    told = found[0]
    assert all(f[:7] == told[:7] for f in found)
    assert all(
        kind == "DistBackendError" and "Detected mismatch between collectives" in words for kind, words in told[:7]
    )
    assert "Rank 0 is running collective: all_reduce(SUM) of 3 elements" in told[0][1]
    assert "but Rank 1 is running collective: all_reduce(SUM) of 4 elements" in told[0][1]
    assert "barrier" in told[6][1]
    assert ["DistBackendError", "all_to_all: rank 0 sends 2 elements to rank 0, which has a place for 1"] == told[7]


@TWO_AND_MORE
def test_what_is_found_about_groups_and_devices(ranks):
    n = ranks
    for rank in range(n):
        got = {check: given(BOTH, n, check)[rank] for check in COLLECTIVES}
        assert got["tensors_that_require_grad_are_overwritten"] == [n, n]
        assert got["messages_with_tags_in_another_order"] == [[1, 1], [2, 2]]
        assert got["several_collectives_under_way"] == [sum(r + k for r in range(n)) for k in range(6)] + [True] * 6
        assert got["what_a_work_gives"] == [[n, n], [2 * n]]
        assert got["groups_of_neighbours"] == [n // 2, 2, rank % (n // 2)]
        assert got["a_group_in_another_order_of_ranks"] == [n - 1 - rank, list(range(n))[::-1]]
        assert got["objects_that_would_need_a_pickle_are_refused"] == "TypeError"
        assert got["a_write_into_a_saved_tensor_is_noticed"] == "RuntimeError"
        assert got["tensors_on_a_device_go_through_host_memory"] == [[sum(range(n))] * 3] * 2
        assert got["a_large_tensor"] == [n * (n + 1) / 2] * 2
        assert got["objects"][1:3] == [[1, "two", [3.5, None]], [f"for {rank}" * rank]]
        assert len(got["who_is_not_in_a_group_is_told"]) == (rank > 0)


def flat(value):
    """The numbers in nested lists and dicts; None is -1."""
    if isinstance(value, dict):
        value = list(value.values())
    return [x for v in value for x in flat(v)] if isinstance(value, list) else [-1.0 if value is None else float(value)]


# How far results in float32 may be from PyTorch's; of these, some are of float64 or whole numbers.
EXACT = {"losses_and_weights_are_those_of_one_process_in_float64": 1e-13}


@TWO_AND_MORE
@over("check", checks_of("parallel", "torch"))
def test_pytorch_with_gloo_gives_the_same(check, ranks):
    mine, theirs = given(BOTH, ranks, check), given(BOTH, ranks, check, library="torch")
    if check == "sharded_optimizer_states":
        assert mine == theirs
    elif check != "a_hook_carries_the_gradients":  # whose buckets are those of a first pass, one for all
        for ours, its in zip(mine, theirs, strict=True):
            ours, its = (flat(v) if v is not None else [] for v in (ours, its))
            np.testing.assert_allclose(ours, its, rtol=0, atol=EXACT.get(check, 3e-6))


@TWO_AND_MORE
def test_models_that_differ_are_named(ranks):
    for found in given(BOTH, ranks, "models_that_differ_are_noticed_with_the_name"):
        (kind, shape), (_, number), (_, dtype) = found
        assert kind == "RuntimeError"
        assert shape.startswith(
            f"[{ranks - 1}]: params[2] in this process with sizes [5, 3] appears not to match sizes"
        )
        assert "1.weight" in shape
        assert number.startswith("DDP expects same model across all ranks, but Rank")
        assert "1.bias, 1.weight" in number and "weight" in dtype and "torch.float64" in dtype


def test_other_things_that_are_found():
    first, second = ({check: given(BOTH, 2, check)[rank] for check in PARALLEL} for rank in range(2))
    assert first["a_parameter_is_ready_once"].startswith("Expected to mark a variable ready only once.")
    assert first["a_scaler_leaves_out_a_step_on_all_ranks"] == 4.0
    assert first["sharded_optimizer_states"][0] + second["sharded_optimizer_states"][0] == 6
    files, missing, shape, *rest = first["a_checkpoint_of_all_ranks_is_read_by_one"]
    assert files == ["", ".safetensors", ".safetensors"]  # of the newest of two checkpoints alone
    assert missing == ["RuntimeError", "Missing key in checkpoint state_dict: nothing."]
    assert shape == "CheckpointException" and rest == [True, True]
    assert first["gradients_of_several_passes_are_averaged_together"] == [False]
