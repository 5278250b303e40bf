"""compile on devices: captured on ``sim``, and on ``cuda`` where there is one, as eager there, and nothing crosses.

``python -m pytest -p stand_in_cupy -m gpu`` runs on host memory what is for a GPU.
"""

import numpy as np
import pytest
from test_devices import WAITS, OnDevice, transfers
from test_rules import CASES, gradient, inputs, run

import engine
from engine.record import registry

DEVICES = [pytest.param("sim"), pytest.param("cuda", marks=pytest.mark.gpu)]
pytestmark = pytest.mark.parametrize("device", DEVICES)

# ---- the table of operations


@pytest.mark.parametrize("name, sample", CASES)
def test_a_row_is_captured_and_gives_what_eager_gives(name, sample, device):
    f, arrays, on = registry[name].function, inputs(name, sample), OnDevice(device)
    compiled = engine.compile(f)
    expected = [*run(on, f, sample, arrays)[0], *gradient(on, f, sample, arrays)[0]]
    for _ in range(2):  # the call that captures, and one that runs what was written
        before = transfers(device)
        found = [*run(on, compiled, sample, arrays)[0], *gradient(on, compiled, sample, arrays)[0]]
        assert name in WAITS or transfers(device) == before
        for a, b in zip(expected, found, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.dtype == b.dtype and a.shape == b.shape and b.device.type == device
                np.testing.assert_allclose(b.detach().cpu().numpy(), a.detach().cpu().numpy(), 1e-12, 1e-12)
    entry = compiled.entries[0]
    assert entry.deviations == 0 and (entry.broken is not None) == (name in WAITS)
