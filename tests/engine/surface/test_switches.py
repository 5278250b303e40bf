"""What programs ask and set before they begin: the accelerator, repeatable results, exact products, kinds of tensor."""

import pytest
from against_torch import cases, compare_errors
from over_tables import over

import engine

ANSWERS = cases("""
torch.backends.cudnn.enabled
torch.backends.cudnn.benchmark
torch.backends.cudnn.deterministic
torch.backends.cudnn.is_available()
torch.backends.cuda.matmul.allow_tf32
torch.backends.mps.is_available()
torch.get_float32_matmul_precision()
torch.are_deterministic_algorithms_enabled()
torch.is_floating_point(torch.ones(1))
torch.is_floating_point(torch.tensor(1))
torch.is_complex(torch.ones(1))
torch.is_signed(torch.ones(1, dtype=torch.uint8))
torch.is_inference(torch.ones(1))
torch.is_nonzero(torch.zeros(1, 1))
torch.tensor(2).is_nonzero()
""")
ERRORS = cases("""
torch.is_floating_point(3)
torch.is_nonzero(torch.ones(2))
torch.is_nonzero(3)
torch.use_deterministic_algorithms(3)
torch.set_float32_matmul_precision(3)
""")


@over("question", ANSWERS)
def test_answers_are_pytorchs(question):
    torch = pytest.importorskip("torch")
    assert eval(question, {"torch": engine}) == eval(question, {"torch": torch})


@over("call", ERRORS)
def test_errors_are_pytorchs(call):
    pytest.importorskip("torch")
    compare_errors(call, {})


def test_there_is_an_accelerator_where_there_is_a_gpu():
    there = engine.cuda.is_available()
    assert engine.accelerator.is_available() == there
    assert engine.accelerator.current_accelerator() == (engine.device("cuda") if there else None)
    assert engine.accelerator.device_count() == engine.cuda.device_count()
    if not there:
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            engine.accelerator.synchronize()


def test_what_is_set_can_be_read():
    engine.backends.cudnn.deterministic = True
    assert engine.backends.cudnn.deterministic
    engine.backends.cudnn.deterministic = False
    engine.set_float32_matmul_precision("high")
    assert engine.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="foo is not one of 'highest', 'high', or 'medium'"):
        engine.set_float32_matmul_precision("foo")
    assert engine.get_float32_matmul_precision() == "high"
    engine.set_float32_matmul_precision("highest")


def test_repeatable_results_are_those_of_the_host(monkeypatch):
    engine.use_deterministic_algorithms(True)
    assert engine.are_deterministic_algorithms_enabled()
    engine.use_deterministic_algorithms(False)
    assert not engine.are_deterministic_algorithms_enabled()
    monkeypatch.setattr(engine.backends, "has_cuda", lambda: True)
    with pytest.raises(NotImplementedError, match="compute on the CPU"):
        engine.use_deterministic_algorithms(True)
