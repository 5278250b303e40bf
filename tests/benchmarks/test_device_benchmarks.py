"""The programs of ``benchmarks/devices.py`` compute the same in every framework, and say so where there is no GPU."""

import sys

import numpy as np
import pytest
from over_tables import over

import engine
from benchmarks import devices

PARAMETERS = [pytest.param("sim"), pytest.param("cuda", marks=pytest.mark.gpu)]


def steps(make, name):
    """The results of two steps."""
    step = make(name, devices.inputs(name, devices.WORKLOADS[name].small))
    return [[np.array(r.tolist()) for r in step()] for _ in range(2)]


@over("name", devices.WORKLOADS)
@pytest.mark.parametrize("device", PARAMETERS)
def test_the_engine_computes_what_is_computed_by_hand(name, device):
    found = steps(lambda *w: devices.by_name(engine, *w, device), name)
    for a, b in zip(sum(found, []), sum(steps(lambda *w: devices.by_hand(np, *w), name), []), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@over("name", devices.WORKLOADS)
def test_pytorch_computes_what_is_computed_by_hand(name):
    torch = pytest.importorskip("torch")
    found = steps(lambda *w: devices.by_name(torch, *w, "cpu"), name)
    for a, b in zip(sum(found, []), sum(steps(lambda *w: devices.by_hand(np, *w), name), []), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.skipif(engine.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["devices", "small"])
    devices.main()
    assert capsys.readouterr().out.startswith("no GPU, no driver or no CuPy here")


def test_a_step_is_timed():
    name, workload = "small", devices.WORKLOADS["small"]
    step = devices.by_name(engine, name, devices.inputs(name, workload.small), "sim")
    seconds = devices.measure(name, {"engine": (step, engine.sim.synchronize)}, 1)
    assert seconds["engine"] > 0
