"""The benchmarks: every framework that is installed computes the same loss and gradients.  No time is asserted."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from over_tables import over

from benchmarks import __main__ as command
from benchmarks import compile_times, record, report
from benchmarks.floor import BYTES, PRODUCTS, bytes_of
from benchmarks.frameworks import (
    CLOCK,
    COMPILED,
    COMPUTED,
    FLOOR,
    FRAMEWORKS,
    LAYERS,
    TRAINING,
    Framework,
    Worker,
    installed,
)
from benchmarks.operations import OPERATIONS
from benchmarks.workloads import EVERY_OPERATION, WORKLOADS

ROOT = Path(__file__).parents[2]
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


@pytest.mark.slow
@pytest.mark.parametrize("name", [f for f in FRAMEWORKS if f != "inductor"])
def test_a_framework_gives_the_loss_and_gradients_of_every_workload(name, oracle):
    if name not in installed():
        pytest.skip(f"{FRAMEWORKS[name].module} is not installed")
    with Worker(FRAMEWORKS[name]) as worker:
        for workload in BY_HAND:
            if workload in FRAMEWORKS[name].only:
                check(worker.ask("result", workload), oracle[workload], workload)


@pytest.mark.slow
def test_engine_and_pytorch_agree_on_the_programs_that_only_they_have():
    pytest.importorskip("torch")
    with Worker(FRAMEWORKS["engine"]) as engine, Worker(FRAMEWORKS["torch"]) as torch:
        for workload in set(COMPUTED) - set(BY_HAND):
            check(engine.ask("result", workload), torch.ask("result", workload), workload)


def test_engine_and_jax_agree_on_layers_and_training():
    pytest.importorskip("jax")
    with Worker(FRAMEWORKS["engine"]) as engine, Worker(FRAMEWORKS["jax"]) as jax:
        for workload in (*LAYERS, *TRAINING):
            check(jax.ask("result", workload), engine.ask("result", workload), workload)


@pytest.mark.slow  # a minute for each
@pytest.mark.parametrize("workload", ["inference", "layer_norm"])
def test_engine_and_torch_compile_agree(workload):
    if "inductor" not in installed():
        pytest.skip(f"there is none of {FRAMEWORKS['inductor'].needs}")
    with Worker(FRAMEWORKS["engine"]) as engine, Worker(FRAMEWORKS["inductor"]) as inductor:
        check(inductor.ask("result", workload), engine.ask("result", workload), workload)


def test_torch_compile_and_jax_have_all_that_the_engine_compiles():
    assert {*COMPILED} <= {*FRAMEWORKS["jax"].only} and {*COMPILED} == {*FRAMEWORKS["inductor"].only}


def test_a_framework_whose_compiler_is_missing_is_left_out_and_said():
    compiled = Framework("NumPy, compiled", "numpy", "numpy", "by_hand", program="no-such-compiler")
    assert not compiled.installed
    assert compiled.needs == "a C++ compiler (no-such-compiler), for NumPy, compiled"
    assert Framework("NumPy", "numpy", "numpy", "by_hand", program=sys.executable).installed


def test_a_cache_is_in_a_temporary_folder_unless_its_variable_is_set(monkeypatch):
    cached = FRAMEWORKS["numpy"]._replace(cache="CACHE_OF_A_TEST")
    monkeypatch.delenv("CACHE_OF_A_TEST", raising=False)
    with Worker(cached) as worker:
        folder = Path(worker.folder.name)
        assert folder.is_dir() and "CACHE_OF_A_TEST" not in os.environ
    assert not folder.exists()


@pytest.mark.parametrize(
    "name", [name if name in ("products", "bytes1") else pytest.param(name, marks=pytest.mark.slow) for name in FLOOR]
)
def test_the_floor_is_measured(name):
    with Worker(FLOOR[name]) as worker:
        for workload in ("inference", "mlp"):
            assert worker.ask("seconds", workload) > 0


def test_the_products_of_the_floor_are_those_of_the_layers_and_their_gradients():
    assert sum(p.flops for p in PRODUCTS["inference"]) == 2 * 64 * (64 * 128 + 128 * 64 + 64 * 10)
    assert sum(p.flops for p in PRODUCTS["mlp"]) == 2 * 64 * (2 * 64 * 128 + 3 * 128 * 64 + 3 * 64 * 10)


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


@over("name", BY_HAND)
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


@pytest.mark.slow
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


@over("told, clock", [("cpu", "process_time"), ("", "perf_counter")])
def test_a_process_counts_the_time_that_it_is_told_to(monkeypatch, told, clock):
    monkeypatch.setenv(CLOCK, told)
    spec = importlib.util.find_spec("benchmarks.frameworks")
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again.clock.__name__ == clock


def test_a_workload_that_does_not_exist_is_refused_by_name(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "sead"])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2 and "no workload 'sead': there are seed, scalars" in capsys.readouterr().err


def test_ratios_are_to_pytorch_at_its_better_number_of_threads():
    times = {"engine": [1.0, 2.0, 3.0], "torch": [9.0, 8.0, 7.0], "torch1": [2.0, 2.0, 2.0]}
    row = report.summary({"seed": times})["seed"]
    assert row["engine"]["ratio"] == 1.0 and row["torch"]["ratio"] == 4.0 and row["torch1"]["ratio"] == 1.0


def test_what_compiling_gains_has_a_table():
    times = {"engine": [4.0, 2.0, 3.0], "compiled": [1.0, 1.0, 1.5]}
    assert report.summary({"seed": times})["seed"]["compiled"]["over_eager"] == 0.5
    lines = report.markdown(report.summary({"seed": times, "large": {"engine": [1.0]}})).splitlines()
    assert cells(lines[-3]) == ["", "compiled over eager"]
    assert cells(lines[-1]) == ["seed", "0.50"]


def cells(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_what_is_slower_compiled_is_flagged():
    times = {"engine": [1.0], "compiled": [1.05]}
    assert "**" not in report.markdown(report.summary({"mlp": times}))
    text = report.markdown(report.summary({"mlp": times, "large": times | {"compiled": [1.06]}}))
    assert "| large | **1.06** " in text
    assert text.endswith("\n\nCompiled takes more than 1.05 of eager's time: large.\n")


def test_the_floor_is_the_longer_of_products_and_bytes_each_at_its_better_number_of_threads():
    times = {"torch": [8.0], "products": [3.0], "products1": [2.0], "bytes": [1.0], "bytes1": [4.0]}
    figures = report.summary({"mlp": times})["mlp"]["floor"]
    assert figures == {"seconds": 2.0, "binds": "products", "ratio": 0.25}
    figures = report.summary({"mlp": times | {"bytes": [3.0]}})["mlp"]["floor"]
    assert figures == {"seconds": 3.0, "binds": "bytes", "ratio": 0.375}
    head, _, line = report.markdown(report.summary({"mlp": times})).splitlines()[:3]
    assert dict(zip(cells(head), cells(line), strict=True))["floor"] == "2 s (0.25), products"


def test_the_compiled_engine_is_beside_its_targets_the_other_compilers_and_the_floor():
    times = {"engine": [4.0], "compiled": [1.0], "torch": [4.0], "jax": [0.5], "inductor": [2.0], "bytes1": [0.1]}
    text = report.markdown(report.summary({"large": times}))
    head, _, line = text.splitlines()[:3]
    assert dict(zip(cells(head), cells(line), strict=True))["target, compiled"] == "0.20, 1.00 of JAX"
    head, _, line = text.splitlines()[4:7]
    assert dict(zip(cells(head), cells(line), strict=True)) == {
        "": "large",
        "compiled over eager": "0.25",
        "over PyTorch": "**0.25**",
        "at most": "0.20",
        "over JAX": "**2.00**",
        "over torch.compile": "0.50",
        "over the floor": "10.00",
    }


@over("products, most", [(None, 0.6), (0.54, 0.6), (0.55, 0.605), (0.8, 0.88)])
def test_inference_may_take_a_tenth_more_than_its_products(products, most):
    assert report.limit(WORKLOADS["inference"], products) == pytest.approx(most)


def test_bytes_are_those_of_inputs_gradients_results_and_state():
    assert BYTES["large"] == 8_000_000
    assert BYTES["softmax"] == 4 * 4 * 8 * 4 * 64 * 64  # x and the gradient given; the result and the gradient by x
    parameters = 64 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10
    assert bytes_of("training") == 7 * 4 * parameters + 4 * 64 * 64 + 8 * 64
    assert bytes_of("inference") == 4 * (parameters + 64 * 64 + 64 * 10) + 8 * 64


def test_every_compiled_workload_has_a_floor():
    assert {*COMPILED} <= {*BYTES} and {*PRODUCTS} <= {*BYTES}


def test_the_time_of_compiling_has_a_table():
    seconds = {"block": dict.fromkeys(compile_times.HEADS, 0.4), "capture": {"capture": 0.05}}
    lines = compile_times.markdown(seconds).splitlines()
    assert cells(lines[2]) == ["block", "400 ms", "400 ms", "400 ms", "**400 ms**", "400 ms"]
    assert lines[-1].endswith("before Numba: 50 ms (at most 100 ms).")


@pytest.mark.slow
def test_a_first_call_and_a_capture_are_timed(tmp_path):
    numba, first, later = compile_times.in_a_process(compile_times.first_calls, "inference", folder=str(tmp_path))
    assert numba > 0 and first > 0 and later > 0
    assert compile_times.in_a_process(compile_times.capture, folder=str(tmp_path)) > 0


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


@over("file", ["results.json", "operations.json"])
def test_the_recorded_tables_are_those_of_the_recorded_figures(file):
    recorded = json.loads((ROOT / "benchmarks" / file).read_text(encoding="utf-8"))
    text = record.README.read_text(encoding="utf-8")
    operations = {name: times for name, times in recorded["seconds"].items() if name in EVERY_OPERATION}
    programs = {name: times for name, times in recorded["seconds"].items() if name not in EVERY_OPERATION}
    for fastest in (False, True):
        assert report.markdown(report.summary(programs, fastest)) in text
    assert report.markdown(report.summary(operations)) in text
    for fact in (recorded["date"], recorded["hardware"], recorded["python"], *recorded["versions"].values()):
        assert fact in text


def test_the_tables_are_those_that_the_command_makes_of_the_recorded_figures():
    text = record.README.read_text(encoding="utf-8")
    assert record.tables(text) == text
