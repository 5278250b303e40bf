"""The benchmarks: every framework that is installed computes the same loss and gradients.  No time is asserted."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import report
from benchmarks.frameworks import COMPUTED, FRAMEWORKS, Worker, installed
from benchmarks.operations import OPERATIONS
from benchmarks.workloads import EVERY_OPERATION, WORKLOADS

ROOT = Path(__file__).parent.parent
BY_HAND = [name for name in COMPUTED if name in FRAMEWORKS["numpy"].only]
RELATIVE = {"float32": 2e-5, "float64": 1e-12}


def float64_by_hand(name):
    """Loss and gradients by the hand-written derivatives, in float64."""
    from benchmarks.adapters import by_hand

    inputs = {k: v.astype(np.float64)[()] for k, v in WORKLOADS[name].inputs().items()}
    return dict(zip(("loss", *WORKLOADS[name].leaves), getattr(by_hand, name)(**inputs), strict=True))


@pytest.fixture(scope="module")
def oracle():
    return {name: float64_by_hand(name) for name in BY_HAND}


@pytest.mark.parametrize("name", list(FRAMEWORKS))
def test_a_framework_gives_the_loss_and_gradients_of_every_workload(name, oracle):
    if name not in installed():
        pytest.skip(f"{FRAMEWORKS[name].module} is not installed")
    with Worker(FRAMEWORKS[name]) as worker:
        for workload in BY_HAND:
            if workload in FRAMEWORKS[name].only:
                check(worker.ask("result", workload), oracle[workload], workload)


def test_engine_and_pytorch_agree_on_the_programs_that_only_they_have():
    pytest.importorskip("torch")
    with Worker(FRAMEWORKS["engine"]) as engine, Worker(FRAMEWORKS["torch"]) as torch:
        for workload in set(COMPUTED) - set(BY_HAND):
            check(engine.ask("result", workload), torch.ask("result", workload), workload)


def test_there_are_forty_operations_at_both_sizes():
    assert len(OPERATIONS) == 40 and len(EVERY_OPERATION) == 80


def check(result, expected, workload):
    assert result.keys() == expected.keys()
    precision = next(v.dtype.name for v in WORKLOADS[workload].inputs().values() if v.dtype.kind == "f")
    for key, value in expected.items():
        assert result[key].shape == np.shape(value), (workload, key)
        scale = np.abs(value).max()
        np.testing.assert_allclose(
            result[key], value, rtol=0, atol=RELATIVE[precision] * scale, err_msg=f"{workload}: {key}"
        )


@pytest.mark.parametrize("name", BY_HAND)
def test_hand_written_gradients_are_the_slopes_of_the_hand_written_loss(name):
    """The oracle's own oracle: central differences along one random direction in all leaves."""
    from benchmarks.adapters import by_hand

    workload, rng, h = WORKLOADS[name], np.random.default_rng(1), 1e-6
    inputs = {k: v.astype(np.float64)[()] for k, v in workload.inputs().items()}
    direction = {k: rng.standard_normal(np.shape(inputs[k])) for k in workload.leaves}
    loss = lambda t: getattr(by_hand, name)(**inputs | {k: inputs[k] + t * d for k, d in direction.items()})[0]  # noqa: E731
    grads = float64_by_hand(name)
    slope = sum((grads[k] * d).sum() for k, d in direction.items())
    assert slope == pytest.approx((loss(h) - loss(-h)) / (2 * h), rel=1e-5)


def test_the_command_prints_a_table_and_writes_every_figure(tmp_path):
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "seed", "import", "--rounds", "2", "--json", str(file)]
    run = subprocess.run([*command, "--frameworks", "engine", "numpy"], cwd=ROOT, capture_output=True, check=True)
    results = json.loads(file.read_text(encoding="utf-8"))
    assert run.stdout.decode().splitlines() == report.markdown(report.summary(results["seconds"])).splitlines()
    assert results["versions"]["numpy"] == np.__version__
    for name in ("seed", "import"):
        for framework in ("engine", "numpy"):
            assert len(results["seconds"][name][framework]) == 2
            assert min(results["seconds"][name][framework]) > 0


def test_a_workload_that_does_not_exist_is_refused_by_name():
    run = subprocess.run([sys.executable, "-m", "benchmarks", "sead"], cwd=ROOT, capture_output=True)
    assert run.returncode == 2 and b"no workload 'sead': there are seed, scalars" in run.stderr


def test_ratios_are_to_pytorch_at_its_better_number_of_threads():
    times = {"engine": [1.0, 2.0, 3.0], "torch": [9.0, 8.0, 7.0], "torch1": [2.0, 2.0, 2.0]}
    row = report.summary({"seed": times})["seed"]
    assert row["engine"]["ratio"] == 1.0 and row["torch"]["ratio"] == 4.0 and row["torch1"]["ratio"] == 1.0


def test_what_compiling_gains_has_a_table():
    times = {"engine": [4.0, 2.0, 3.0], "compiled": [1.0, 1.0, 1.5]}
    assert report.summary({"seed": times})["seed"]["compiled"]["over_eager"] == 0.5
    lines = report.markdown(report.summary({"seed": times, "large": {"engine": [1.0]}})).splitlines()
    assert [cell.strip() for cell in lines[-3].split("|")] == ["", "", "compiled over eager", ""]
    assert lines[-1].split() == ["|", "seed", "|", "0.50", "|"]


def test_every_workload_that_is_to_gain_by_compiling_is_measured_compiled():
    wanted = {"large", "training", "training_large", "attention", "block", "scalars", "softmax", "layer_norm", "gelu"}
    assert wanted <= {*FRAMEWORKS["compiled"].only}


def test_the_fastest_rounds_are_compared_on_request():
    times = {"engine": [4.0, 2.0, 3.0], "torch": [9.0, 8.0, 7.0], "torch1": [8.0, 4.0, 9.0]}
    row = report.summary({"seed": times}, fastest=True)["seed"]
    assert row["engine"] == {"seconds": 2.0, "ratio": 0.5} and row["torch"]["ratio"] == 1.75


def test_operations_are_listed_worst_first():
    rows = {
        f"{name}_{n}": {"engine": [ratio], "torch": [1.0]}
        for name, ratios in (("add", (0.5, 0.6)), ("exp", (0.9, 0.1)), ("tanh", (0.2, 0.3)))
        for n, ratio in zip((3, 64), ratios, strict=True)
    }
    lines = report.markdown(report.summary(rows)).splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["exp", "add", "tanh"]


def test_without_pytorch_there_are_times_and_no_ratios():
    table = report.summary({"seed": {"engine": [1e-5, 3e-5, 2e-5]}})
    assert "| 20 us  | 0.50   |" in report.markdown(table)


@pytest.mark.parametrize("file", ["results.json", "operations.json"])
def test_the_recorded_tables_are_those_of_the_recorded_figures(file):
    recorded = json.loads((ROOT / "benchmarks" / file).read_text(encoding="utf-8"))
    text = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    operations = {name: times for name, times in recorded["seconds"].items() if name in EVERY_OPERATION}
    programs = {name: times for name, times in recorded["seconds"].items() if name not in EVERY_OPERATION}
    for fastest in (False, True):
        assert report.markdown(report.summary(programs, fastest)) in text
    assert report.markdown(report.summary(operations)) in text
    for fact in (recorded["date"], recorded["hardware"], recorded["python"], *recorded["versions"].values()):
        assert fact in text
