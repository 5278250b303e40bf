"""Calls that make tensors, with arguments as beginners get them wrong: PyTorch's answer, be it a tensor or an error."""

from collections import deque

import numpy as np
import pytest
from against_torch import cases, compare_errors
from over_tables import over

import engine

ERRORS = cases("""
torch.zeros()
torch.zeros(-1)
torch.ones(2, -3)
torch.zeros(2.0)
torch.zeros("2")
torch.zeros(True)
torch.zeros(None)
torch.zeros(2, 2.0)
torch.zeros((2, 2.0))
torch.zeros((2.0, 2))
torch.zeros((2, 3), 4)
torch.zeros(2, "a", 4)
torch.zeros(range(2))
torch.zeros({2})
torch.zeros(np.ones(2))
torch.zeros(torch.tensor(2.0))
torch.zeros(torch.tensor([2, 3]))
torch.zeros(2, size=(2,))
torch.zeros(size=2)
torch.zeros(2, dtyp=1)
torch.zeros(2, dtype="float32")
torch.zeros(2, dtype=np.float32)
torch.ones(2, requires_grad=1)
torch.ones(2, requires_grad="a")
torch.ones(2, dtype=int, requires_grad=True)
torch.ones_like(torch.ones(2), dtype="a")
torch.randn(2.0)
torch.randn(None)
torch.rand(2, "a")
torch.randint(5, 3)
torch.randint(5.0, (2,))
torch.randint(5, 2, (3,))
torch.randint(0, 5, [2, 2.0])
torch.randperm(2.5)
torch.randperm("a")
torch.full(2, 3.0)
torch.full((2,), "a")
torch.full((2,), None)
torch.full((2,), torch.ones(2))
torch.full([2, "a"], 1)
torch.full_like(torch.ones(2), "a")
torch.arange("a")
torch.arange(None)
torch.arange(torch.ones(2))
torch.eye(2.0)
torch.eye((2, 2))
torch.multinomial(torch.rand(3), 2.0)
torch.scalar_tensor("a")
torch.tensor([torch.tensor([1, 2])])
torch.tensor([torch.tensor([1.0, 2.0])])
torch.ones(2).new_zeros()
torch.ones(2).new_zeros(2, "a")
torch.ones(2).new_full(2, 3)
torch.nn.Linear(3.0, 3)
torch.nn.Linear("a", 3)
torch.nn.Conv2d(1, 2, 3.0)
torch.nn.Embedding(3.0, 2)
torch.tensor(["a"])
torch.tensor("a")
torch.tensor(b"ab")
torch.tensor([1, "a"])
torch.tensor([[1, 2], "ab"])
torch.tensor([1, None])
torch.tensor([1, None], dtype=torch.float32)
torch.tensor([1, None], dtype=torch.int64)
torch.tensor([1, {}])
torch.tensor({1, 2})
torch.tensor([[1, 2], 3])
torch.tensor([1, [2, 3]])
torch.tensor([1.5, (2,)])
torch.tensor([[1], []])
torch.tensor([torch.ones(2), torch.ones(2)])
torch.tensor([1.0, torch.ones(2)])
torch.tensor([np.ones(2), np.ones(3)])
torch.tensor([300], dtype=torch.uint8)
torch.tensor(300, dtype=torch.uint8)
torch.tensor([-256], dtype=torch.uint8)
torch.tensor([-0.5], dtype=torch.uint8)
torch.tensor([127.9], dtype=torch.int8)
torch.tensor([70000], dtype=torch.int16)
torch.tensor([1e30], dtype=torch.int64)
torch.tensor(float("nan"), dtype=torch.int32)
torch.tensor(2**64)
torch.tensor([2**63])
torch.tensor([1], dtype="float32")
torch.tensor([1.0], requires_grad=1)
torch.ones(3).type("float")
float(torch.ones(3))
int(torch.ones(3))
""")
# what randint, randn and arange say of several signatures begins with the same words
OVERLOADED = cases("""
torch.randn()
torch.randn((2, 3), 4)
torch.rand(3, generator=4)
torch.randint(5)
torch.randint(0, 5, 2)
torch.randint(0.0, 5.0, (2,))
torch.arange()
torch.arange(3, step=2)
torch.arange("a", 3)
torch.linspace("a", 1, 2)
torch.linspace(0, 1, 5.0)
torch.normal(0.0, 1.0, 2)
torch.normal(0.0, size=(2,))
torch.normal(std=torch.ones(2))
torch.normal("a", 1.0, (2,))
torch.eye(2, 3.0)
""")
TENSORS = cases("""
torch.tensor(deque([1, 2]))
torch.tensor([deque([1, 2]), (3, 4)])
torch.tensor([range(2), range(2)])
torch.tensor([torch.ones(1), torch.ones(1, 1)])
torch.tensor([[torch.tensor(1.0)], [2]])
torch.tensor([torch.tensor(1), 2.0])
torch.tensor([torch.tensor(1, dtype=torch.int8), torch.tensor(True)])
torch.tensor([2.0, torch.tensor(1, dtype=torch.float64)])
torch.tensor([np.float32(1), 2])
torch.tensor([np.float64(1), 2])
torch.tensor([np.int32(1), 1.0])
torch.tensor([np.ones(2), [1, 2]])
torch.tensor([[], [1]])
torch.tensor([[[]], [[]]])
torch.tensor([True, 2])
torch.tensor([1.0, 2**70])
torch.tensor([2**63], dtype=torch.float32)
torch.tensor([-255, 3], dtype=torch.uint8)
torch.tensor([1.9, -1.9], dtype=torch.int32)
torch.tensor([300, 0], dtype=torch.bool)
torch.tensor(np.array([300]), dtype=torch.uint8)
torch.tensor([70000], dtype=torch.float16)
torch.tensor([1], dtype=float)
torch.zeros(2, dtype=int)
torch.zeros(2, True)
torch.zeros((torch.tensor(2), 3))
torch.zeros(np.int64(2), np.int32(3))
torch.full((2,), 2.5, dtype=int)
torch.full((2,), torch.tensor(3))
torch.ones_like(torch.ones(2), dtype=bool)
torch.eye(2, dtype=bool)
torch.eye(torch.tensor(2))
torch.arange(3, dtype=float)
torch.arange(end=3)
torch.arange(torch.tensor(3.0))
torch.linspace(0, 1, torch.tensor(3), dtype=float)
torch.as_tensor([1], dtype=float)
torch.ones(2).new_zeros(2, dtype=int)
torch.ones(2).new_ones(size=(2, 1))
torch.ones(2).to(int)
torch.ones(2).to("cpu", float)
torch.ones(2).to(dtype=bool)
torch.ones(2).type("torch.LongTensor")
torch.ones(2).sum(dtype=float)
torch.ones(2).mean(dtype=float)
torch.ones(2).cumsum(0, dtype=int)
torch.softmax(torch.ones(2), 0, dtype=float)
torch.nn.Linear(2, 2, dtype=float).weight.abs() * 0
torch.nn.Linear(2, 2).to(float).weight.abs() * 0
torch.ones(2, device="cpu:1")
torch.arange(1, 3, 0.5, dtype=torch.int32)
torch.randint_like(torch.ones(3), 5, generator=torch.Generator().manual_seed(0))
torch.normal(torch.zeros(2), 0.0)
""")
# all factories take where the memory is to be
IN_MEMORY = cases("""
torch.tensor([1.0], {})
torch.zeros(2, {})
torch.full((2,), 1.0, {})
torch.arange(3, {})
torch.eye(2, {})
torch.linspace(0, 1, 2, {})
torch.logspace(0, 1, 2, {})
torch.scalar_tensor(2.0, {})
torch.tril_indices(2, 2, {})
torch.randperm(1, {})
torch.randint(1, (2,), {})
torch.rand((0,), {})
torch.normal(0.0, 0.0, (2,), {})
torch.ones_like(torch.ones(2), {})
torch.full_like(torch.ones(2), 3, {})
torch.rand_like(torch.ones(0), {})
torch.randint_like(torch.ones(2), 1, {})
torch.ones(2).new_zeros(2, {})
torch.ones(2).new_full((2,), 3, {})
""")
NAMES = {"np": np, "deque": deque}


@over("expression", ERRORS)
def test_error_as_pytorch(expression):
    pytest.importorskip("torch")
    compare_errors(expression, NAMES)


@over("expression", OVERLOADED)
def test_arguments_that_fit_no_signature(expression):
    torch = pytest.importorskip("torch")
    for library in (engine, torch):
        with pytest.raises(TypeError):
            eval(expression, {"torch": library})


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
@over("expression", TENSORS)
def test_tensor_as_pytorch(expression):
    torch = pytest.importorskip("torch")
    mine, theirs = (eval(expression, {"torch": library, **NAMES}) for library in (engine, torch))
    assert repr(mine) == repr(theirs)


@over("expression", IN_MEMORY)
def test_a_factory_pins_memory_where_pytorch_does(expression):
    torch = pytest.importorskip("torch")
    mine, theirs = (eval(expression.format("pin_memory=False"), {"torch": library}) for library in (engine, torch))
    assert repr(mine) == repr(theirs)
    for library in (engine, torch):
        if not library.cuda.is_available():
            with pytest.raises(RuntimeError):
                eval(expression.format("pin_memory=True"), {"torch": library})


def test_a_tensor_of_a_tensor_is_better_copied():
    with pytest.warns(UserWarning, match=r"rather than tensor\.new_tensor\(sourceTensor\)"):
        assert engine.ones(1).new_tensor(engine.ones(2)).tolist() == [1.0, 1.0]


def test_randint_takes_its_limit_by_name():
    engine.manual_seed(0)
    drawn = engine.randint(5, (8,))
    engine.manual_seed(0)
    assert engine.randint(high=5, size=(8,)).equal(drawn)


def test_a_list_of_numpy_arrays_is_told_to_be_slow():
    with pytest.warns(UserWarning, match="Creating a tensor from a list of numpy.ndarrays is extremely slow") as seen:
        engine.tensor([np.ones(2), np.zeros(2)])
    assert seen[0].filename == __file__


@pytest.mark.parametrize("kind, dtype", [(float, engine.float64), (int, engine.int64), (bool, engine.bool)])
def test_the_types_of_python_are_dtypes(kind, dtype):
    assert engine.zeros(2, dtype=kind).dtype is engine.ones(2).to(kind).dtype is dtype


def test_numbers_beyond_a_dtype_are_refused_and_do_not_wrap_around():
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
        engine.tensor([1, 300], dtype=engine.uint8)
