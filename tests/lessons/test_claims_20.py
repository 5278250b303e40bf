"""What lesson 20 claims of many workers: on pretended ranks, on real ones, and of PyTorch."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from ranks import NO_MPI, given, in_library, launched

import engine
from course import cluster
from course.base.notebooks import ROOT
from course.judging import exercises, pretend
from engine import nn
from engine.utils.data import DistributedSampler

LESSON = (ROOT / "course/lessons/20_many_machines/lesson.md").read_text(encoding="utf-8")
NOTEBOOK = json.loads((ROOT / "notebooks/20_many_machines.ipynb").read_text(encoding="utf-8"))
RECORDED_WITH = "2.13."
CHECKS = exercises.checks("20")
loss_fn = nn.CrossEntropyLoss()


def cell_with(words):
    (found,) = [c for c in map("".join, (c["source"] for c in NOTEBOOK["cells"])) if words in c]
    return found


def names_of_the_lesson():
    """The lesson's functions `batch` and `new_model`."""
    names = {"engine": engine, "nn": nn}
    exec(cell_with("def batch").partition("\n\n\nloss_fn")[0], names)
    return names["batch"], names["new_model"]


batch, new_model = names_of_the_lesson()


def step(model, x, y, rate=0.5, link=None, divide=True):
    """The lesson's step, over a pretended rank's link."""
    model.zero_grad()
    loss_fn(model(x), y).backward()
    with engine.no_grad():
        for p in model.parameters():
            if link is not None:
                link.all_reduce(p.grad)
                p.grad /= link.size if divide else 1
            p -= rate * p.grad


def together(models, steps, **options):
    x, y = batch()

    def work(link):
        losses = []
        for _ in range(steps):
            losses.append(loss_fn(models[link.rank](x), y).item())
            step(models[link.rank], x[link.rank :: link.size], y[link.rank :: link.size], link=link, **options)
        return losses

    return pretend.run(len(models), work)[0]


def weights(model):
    return engine.cat([p.detach().flatten() for p in model.parameters()])


# Accumulation, in turn and side by side


@pytest.mark.parametrize("n, seed", [(2, 5), (4, 9)])
def test_workers_together_are_one_process_with_the_whole_batch(n, seed):
    models, alone = [new_model(seed) for _ in range(n)], new_model(seed)
    together(models, 20)
    for _ in range(20):
        step(alone, *batch())
    assert all(engine.allclose(weights(model), weights(alone), atol=1e-5) for model in models)


@pytest.mark.parametrize("way", [CHECKS.one_to_all, CHECKS.tree, CHECKS.ring])
@pytest.mark.parametrize("n", [2, 4, 8])
def test_all_three_ways_send_the_same_bytes_in_all(way, n):
    _, links = pretend.run(n, lambda link: way(engine.ones(1000), link))
    assert sum(link.bytes for link in links) == 2 * (n - 1) * 4000


# Who takes which examples


def shares(epoch=0, **options):
    samplers = [DistributedSampler(range(10), 4, rank, **options) for rank in range(4)]
    for sampler in samplers:
        sampler.set_epoch(epoch)
    return [list(sampler) for sampler in samplers]


@pytest.mark.parametrize("epoch", range(5))
def test_all_ranks_have_as_many_examples_and_none_is_left_out_unless_it_is_asked_for(epoch):
    whole, cut = shares(epoch), shares(epoch, drop_last=True)
    assert {len(share) for share in whole} == {3} and {len(share) for share in cut} == {2}
    assert sorted(Counter(sum(whole, [])).values()) == [1] * 8 + [2] * 2
    assert len(set(sum(cut, []))) == 8


def test_without_set_epoch_a_rank_sees_the_same_three_examples():
    assert len({n for _ in range(20) for n in shares()[0]}) == 3
    assert len({n for epoch in range(20) for n in shares(epoch)[0]}) == 10


# Broken on purpose


@pytest.mark.parametrize(
    "first", [0, pytest.param(10, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.slow)]
)
def test_models_that_begin_apart_stay_apart_and_learn_less(first):
    apart, same = [new_model(first + rank) for rank in range(4)], [new_model(first) for _ in range(4)]
    before = [weights(model) - weights(apart[0]) for model in apart]
    losses, losses_same = together(apart, 51), together(same, 51)
    for model, distance in zip(apart, before, strict=True):
        assert engine.allclose(weights(model) - weights(apart[0]), distance, atol=1e-5)
    assert max(each[-1] for each in losses_same) < min(each[-1] for each in losses)


@pytest.mark.parametrize("seed", range(2))
def test_a_sum_in_place_of_the_mean_goes_wrong_at_a_rate_that_is_right(seed):
    mean = together([new_model(seed) for _ in range(4)], 6, rate=1.0)[0]
    total = together([new_model(seed) for _ in range(4)], 6, rate=1.0, divide=False)[0]
    assert mean[-1] < 0.8 * mean[0] and total[-1] > 1.5 * total[0]


def test_a_rank_that_skips_a_batch_lets_the_others_wait():
    def work(link):
        for _ in range(4 if link.rank == 3 else 5):
            link.all_reduce(engine.ones(2))

    with pytest.raises(
        pretend.Deadlock, match=r"rank 0 in all_reduce, .* rank 2 in all_reduce wait; rank 3 at the end"
    ):
        pretend.run(4, work)


def test_batch_norm_of_a_quarter_is_not_a_quarter_of_batch_norm():
    x, _ = batch()
    whole = nn.BatchNorm1d(64)(x)
    for rank in range(4):
        assert (nn.BatchNorm1d(64)(x[rank::4]) - whole[rank::4]).abs().max() > 1


# What a cluster costs


def test_a_fixed_batch_ends_early_and_a_batch_for_each_does_not():
    names = {}
    exec(cell_with("def ring_seconds"), names)
    talking = {n: names["ring_seconds"](n, 100e6) for n in (1, 2, 4, 8, 16, 64, 256, 1024)}
    shared = {n: 0.4 / (0.4 / n + time) for n, time in talking.items()}
    assert max(shared, key=shared.get) == 64 and shared[64] < 15
    assert all(n * 0.4 / (0.4 + time) > 0.86 * n for n, time in talking.items())
    assert [n for n, time in talking.items() if time > 0.4 / n] == [64, 256, 1024]


# The file of the lesson, and its cells, on real ranks


def blocks(kind="python"):
    return re.findall(rf"```{kind}\n(.*?)```", LESSON, re.DOTALL)


def the_file():
    (program,) = [block for block in blocks() if "DataLoader(examples" in block]
    (printed,) = [block for block in blocks("text") if block.startswith("epoch 0")]
    return program, printed


@pytest.mark.slow
@pytest.mark.parametrize("library", ["engine", "torch"])
def test_the_file_prints_the_same_when_a_launcher_starts_it(library, tmp_path):
    if library == "torch":
        pytest.importorskip("torch")
    elif NO_MPI:
        pytest.skip(NO_MPI)
    program, printed = the_file()
    assert launched(library, 4, in_library(program, library), tmp_path) == printed


@pytest.mark.slow
def test_pytorch_says_what_the_lesson_tells_of_a_rank_that_is_missing(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith(RECORDED_WITH):
        pytest.skip(f"recorded with PyTorch {RECORDED_WITH}")
    (program,) = [block for block in blocks() if "import torch.distributed" in block]
    (printed,) = [block for block in blocks("text") if block.startswith("Timed out")]
    assert launched("torch", 2, program, tmp_path) == printed


def stored():
    """For each rank what the stored cells have printed there, those that can run anywhere."""
    found = [[] for _ in range(4)]
    for cell in NOTEBOOK["cells"]:
        source = "".join(cell["source"])
        if not source.startswith("%%px") or any(w in source for w in ("perf_counter", "SyncBatchNorm", "init_process")):
            continue
        for output in cell["outputs"]:
            for rank, text in re.findall(
                r"(?s)\[stdout:(\d)\] \n(.*?)(?=\[stdout:|\Z)", "".join(output.get("text", ""))
            ):
                found[int(rank)].append(text)
    return found


@pytest.mark.parametrize("library", ["engine", pytest.param("torch", marks=pytest.mark.slow)])
def test_the_cells_of_the_workers_and_the_file_print_the_same_on_ranks_of_a_launcher(library):
    assert given("lesson_20", 4, "what_the_workers_print", library=library) == stored()
    assert given("lesson_20", 4, "what_the_file_prints", library=library) == [the_file()[1], "", "", ""]


# Where no workers can be started


def test_who_lacks_a_package_is_told_what_to_install(monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ipyparallel" else there(name))
    with pytest.raises(
        cluster.NoWorkers, match=r"ipyparallel must be installed first(?s:.*)requirements/machines\.txt"
    ):
        cluster.start()


def test_who_has_no_mpi_is_told_so(monkeypatch):
    pytest.importorskip("ipyparallel")
    pytest.importorskip("mpi4py")
    from engine.distributed import launch

    def none():
        raise launch.NoMPI("mpi4py or its MPI is missing")

    monkeypatch.setattr(launch, "found", none)
    with pytest.raises(cluster.NoWorkers, match=r"its MPI is missing(?s:.*)requirements/machines\.txt"):
        cluster.start()


@pytest.mark.slow
@pytest.mark.skipif(bool(NO_MPI), reason=NO_MPI)
def test_workers_start_again_and_end():
    pytest.importorskip("ipyparallel")

    begin = "import engine.distributed as dist; dist.init_process_group('gloo')"
    try:
        for n in (2, 3):
            view = cluster.start(n)
            view.execute(f"{begin}; me = [dist.get_rank(), dist.get_world_size()]")
            assert view["me"] == [[rank, n] for rank in range(n)]
            with pytest.raises(Exception, match="ZeroDivisionError"):
                view.execute("1 / 0")
    finally:
        cluster.stop()
    assert cluster._running is None


@pytest.mark.slow
@pytest.mark.skipif(bool(NO_MPI) or os.name == "nt", reason=NO_MPI or "signals of POSIX")
def test_nothing_stays_behind_a_kernel_that_is_killed():
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("ipyparallel")
    program = (
        "import os; from course import cluster; view = cluster.start(2); view.execute('import os; me = os.getpid()');"
        "print(*view['me'], cluster._running.controller.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300
    )
    numbers = [*map(int, done.stdout.split())]
    assert len(numbers) == 3, done.stderr
    _, left = psutil.wait_procs([psutil.Process(n) for n in numbers if psutil.pid_exists(n)], timeout=120)
    assert [p for p in left if p.status() != psutil.STATUS_ZOMBIE] == []
