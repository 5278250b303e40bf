"""Datasets, samplers, collation and the DataLoader in one process: the orders, numbers and errors are PyTorch's."""

import re
from collections import OrderedDict, UserList, namedtuple
from itertools import product
from types import MappingProxyType

import numpy as np
import pytest
from over_tables import over

import engine
from engine.utils import data
from engine.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)
from engine.utils.data.collate import pinned

Point = namedtuple("Point", ["x", "y"])


class Squares(Dataset):
    def __init__(self, n=10):
        self.n = n

    def __getitem__(self, i):
        return i * i

    def __len__(self):
        return self.n


class Count(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


class SizedCount(Count):
    def __len__(self):
        return self.n


def plain(x):
    """Tensors as (dtype, nested lists), inside of any container, so that results of both libraries can be compared."""
    if hasattr(x, "tolist") and hasattr(x, "requires_grad"):
        return str(x.dtype), x.tolist()
    if isinstance(x, dict):
        return type(x).__name__, {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [plain(v) for v in x]
    return x


def tensors(module, n=10):
    return module.arange(n * 2.0).reshape(n, 2), module.arange(n)


def error_of(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


# ---- the same program under both libraries; D: utils.data, t: the library

PROGRAMS = """
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=3))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=3, drop_last=True))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=3, shuffle=True))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=5, shuffle=True, drop_last=True))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=64))
list(D.DataLoader(D.TensorDataset(rows(t)[0]), batch_size=4, shuffle=True))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=None))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=None, sampler=D.SequentialSampler(range(3))))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=4, sampler=[3, -1, 0, 2, 2]))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_sampler=[[1, 2], [9], [0, 1, 2, 3]]))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_sampler=[[t.tensor(1), t.tensor(2)]]))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_sampler=[range(0, 6, 2), range(-3, 0), (0, 2), t.tensor([1, 0])]))
list(D.DataLoader(D.Subset(D.TensorDataset(*rows(t)), [5, 3, 3, 0]), batch_sampler=[(0, 2), t.tensor([1, 0])]))
list(D.DataLoader(type("D", (), {"__getitem__": lambda _, i: type(i).__name__})(), batch_sampler=[t.tensor([0, 1])]))
list(D.DataLoader(type("D", (), {"__getitems__": lambda _, i: [type(i).__name__]})(), batch_sampler=[(0,)]))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_sampler=D.BatchSampler(D.RandomSampler(range(10)), 3, False)))
list(D.DataLoader(D.TensorDataset(*rows(t)), batch_size=2, collate_fn=len))
list(D.DataLoader(D.Subset(D.TensorDataset(*rows(t)), [5, 3, 3, 0]), batch_size=3))
list(D.DataLoader(D.Subset(D.Subset(D.TensorDataset(*rows(t)), range(2, 9)), t.tensor([1, 0, 6])), batch_size=2))
list(D.DataLoader(D.Subset(range(10), [5, 3, 1]), batch_size=2))
list(D.DataLoader(D.ConcatDataset([D.TensorDataset(*rows(t)), D.TensorDataset(*rows(t))]), 8, shuffle=True))
list(D.DataLoader(list(range(7)), batch_size=3))
list(D.DataLoader([1.5, 2.5, 3.5], batch_size=2))
list(D.DataLoader(["a", "b", "c"], batch_size=2))
list(D.DataLoader([{"x": t.ones(2), "y": 1}, {"x": t.zeros(2), "y": 2}], batch_size=2))
list(D.DataLoader({"a": 1, "b": 2}, sampler=["b", "a"]))
list(D.DataLoader(stream(D, 7), batch_size=3, drop_last=True))
list(D.DataLoader(stream(D, 3), batch_size=None))
list(D.DataLoader(stream(D, 0), batch_size=2))
[len(D.DataLoader(range(10), 3, drop_last=d)) for d in (False, True)]
[len(D.DataLoader(range(10), batch_size=None)), len(D.DataLoader(range(10), batch_sampler=[[1]] * 4))]
list(D.RandomSampler(range(10)))
list(D.RandomSampler(range(10), num_samples=4))
list(D.RandomSampler(range(4), num_samples=11))
list(D.RandomSampler(range(10), replacement=True))
list(D.RandomSampler(range(10), replacement=True, num_samples=70))
list(D.SubsetRandomSampler(list("abcdef")))
list(D.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], 5, replacement=True))
list(D.WeightedRandomSampler([0.9, 0.4, 0.05, 0.2, 0.3, 0.1], 5, replacement=False))
list(D.BatchSampler(D.SequentialSampler(range(10)), 3, False))
list(D.BatchSampler(D.RandomSampler(range(10), num_samples=25), 4, True))
list(D.BatchSampler(D.RandomSampler(range(10), True, 70), 48, False))
list(D.BatchSampler(iter("abcde"), 2, True))
[s.indices for s in D.random_split(range(10), [3, 7])]
[s.indices for s in D.random_split(range(10), [0.5, 0.3, 0.2])]
[s.indices for s in D.random_split(range(11), [0.5, 0.3, 0.2])]
[list(s) for s in D.random_split(range(30), [10, 20], generator=t.Generator().manual_seed(42))]
D.default_collate([0, 1, 2])
D.default_collate([True, False])
D.default_collate([0.5, 1])
D.default_collate([[0, 1], [2, 3]])
D.default_collate([("a", 1), ("b", 2)])
D.default_collate([b"a", b"b"])
D.default_collate([Point(0, 1.5), Point(2, 2.5)])
D.default_collate([{"a": [1, 2], "b": "x"}, {"a": [3, 4], "b": "y"}])
D.default_collate([OrderedDict(a=1), OrderedDict(a=2)])
D.default_collate([t.ones(2, 3), t.zeros(2, 3)])
D.default_collate([np.ones(2, np.int16), np.zeros(2, np.int16)])
D.default_collate([np.float32(1), np.float32(2)])
D.default_collate([np.float64(1), np.float64(2)])
D.default_collate([np.int8(1), np.int8(2)])
D.default_collate([np.bool_(True), np.bool_(False)])
D.default_convert([np.ones(2, np.float32), {"a": np.int16(3)}, ("x", 1), Point(np.arange(2), None), np.array(["s"])])
D.default_convert(3)
len(D.ConcatDataset([range(3), range(4)]))
[D.ConcatDataset([range(3), range(4)])[i] for i in (0, 2, 3, 6, -1, -7)]
D.TensorDataset(*rows(t))[1:3]
D.Subset(D.TensorDataset(*rows(t)), [5, 6])[[0, 1]]
""".strip().splitlines()


def run(module, program, seed=0):
    """(the value, the next random number): so that it shows too if a program draws more or less than it should."""

    def stream(D, n):
        return type("Stream", (D.IterableDataset,), {"__iter__": lambda self: iter(range(n))})()

    names = {"D": module.utils.data, "t": module, "rows": tensors, "stream": stream, "np": np, "Point": Point}
    module.manual_seed(seed)
    return plain(eval(program, {"OrderedDict": OrderedDict, **names})), module.rand(1).item()


@over("program", PROGRAMS)
def test_a_program_gives_what_it_gives_in_pytorch(program):
    torch = pytest.importorskip("torch")
    assert run(engine, program) == run(torch, program)


ERRORS = """
D.DataLoader(range(3), num_workers=-1)
D.DataLoader(range(3), timeout=-1)
D.DataLoader(range(3), prefetch_factor=2)
D.DataLoader(range(3), num_workers=1, prefetch_factor=-1)
D.DataLoader(range(3), persistent_workers=True)
next(iter(D.DataLoader(range(3), timeout=1)))
D.DataLoader(range(3), sampler=[1], shuffle=True)
D.DataLoader(range(3), batch_sampler=[[1]], batch_size=2)
D.DataLoader(range(3), batch_sampler=[[1]], drop_last=True)
D.DataLoader(range(3), batch_size=None, drop_last=True)
D.DataLoader(range(3), batch_size=0)
D.DataLoader(range(3), batch_size=2.0)
D.DataLoader(range(3), drop_last=1)
D.DataLoader([], shuffle=True)
D.DataLoader(range(3), multiprocessing_context="fork")
D.DataLoader(range(3), num_workers=1, multiprocessing_context="thread")
D.DataLoader(range(3), num_workers=1, multiprocessing_context=3)
setattr(D.DataLoader(range(3)), "batch_size", 2)
setattr(D.DataLoader(range(3)), "dataset", 2)
D.RandomSampler(range(3), replacement=1)
D.RandomSampler(range(3), num_samples=0)
D.RandomSampler(range(3), num_samples=1.5)
D.WeightedRandomSampler([1.0], 0)
D.WeightedRandomSampler([1.0], True)
D.WeightedRandomSampler([1.0], 1, replacement=2)
D.WeightedRandomSampler([[1.0]], 1)
D.BatchSampler(range(3), True, False)
D.TensorDataset(t.ones(2), t.ones(3))
D.ConcatDataset([])
D.ConcatDataset([stream(D, 2)])
D.ConcatDataset([range(3)])[-4]
len(D.DataLoader(stream(D, 2)))
D.DataLoader(stream(D, 2), shuffle=True)
D.DataLoader(stream(D, 2), sampler=[1])
D.DataLoader(stream(D, 2), batch_sampler=[[1]])
D.Dataset()[0]
type("Mine", (D.Subset,), {"__getitem__": lambda self, i: i})(range(3), [0])
D.random_split(range(10), [3, 3])
D.random_split(range(10), [0.5, 0.4])
D.random_split(range(10), [1.5, -0.5])
D.default_collate([t.ones(2), t.ones(3)])
D.default_collate([[1], [1, 2]])
D.default_collate([None, None])
D.default_collate([{1}, {2}])
D.default_collate([np.array(["a"])])
list(D.DataLoader(D.TensorDataset(t.ones(3)), batch_sampler=[[0, 5]]))
""".strip().splitlines()


@over("program", ERRORS)
def test_an_error_is_pytorchs(program):
    torch = pytest.importorskip("torch")
    mine, theirs = (error_of(lambda m=m: run(m, program)) for m in (engine, torch))
    assert type(mine) is type(theirs)
    first = [re.sub(r"<.*?>", "<...>", re.split(r"\.\s|\n", str(e))[0]).rstrip(".") for e in (mine, theirs)]
    assert first[0] == first[1]


# ---- numbers recorded from PyTorch 2.13, for where it is not installed


def test_a_shuffled_loader_gives_pytorchs_order():
    engine.manual_seed(0)
    loader = DataLoader(TensorDataset(engine.arange(8)), batch_size=3, shuffle=True)
    assert [[b.tolist() for (b,) in loader] for _ in range(2)] == [
        [[2, 0, 5], [3, 1, 4], [7, 6]],
        [[0, 3, 7], [1, 6, 2], [5, 4]],
    ]


def test_random_split_gives_pytorchs_subsets():
    first, second = random_split(range(8), [0.75, 0.25], generator=engine.Generator().manual_seed(42))
    assert (list(first), list(second)) == ([6, 3, 0, 7, 2, 1], [4, 5])


def test_fractions_that_leave_something_over_give_it_to_the_first():
    assert [len(s) for s in random_split(range(11), [0.5, 0.25, 0.25])] == [6, 3, 2]


def test_an_empty_part_of_a_split_is_warned_of():
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(3), [0.9, 0.1])


# ---- batches of rows are slices, and nothing else than what collation makes


def slow(loader):
    """The loader's batches as collation makes them, sample by sample."""
    return DataLoader(loader.dataset, batch_sampler=list(loader.batch_sampler), collate_fn=lambda b: default_collate(b))


DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool"]


@over("dtype, shape", product(DTYPES, [(7,), (7, 3), (7, 2, 1, 2), (7, 0)]))
def test_rows_are_what_collation_gives(dtype, shape):
    x = engine.arange(int(np.prod(shape))).reshape(shape).to(getattr(engine, dtype))
    loader = DataLoader(TensorDataset(x, x.transpose(0, -1).contiguous().transpose(0, -1)), batch_size=3)
    for mine, collated in zip(loader, slow(loader), strict=True):
        assert plain(mine) == plain(collated)
        assert [t.is_contiguous() for t in mine] == [True, True]


def test_a_batch_has_memory_of_its_own():
    x = engine.zeros(4, 2)
    for shuffle in (False, True):
        for (batch,) in DataLoader(TensorDataset(x), batch_size=2, shuffle=shuffle):
            batch.add_(1)
    assert x.tolist() == [[0, 0]] * 4


def test_rows_that_require_grad_stay_in_the_graph():
    x = engine.ones(4, requires_grad=True)
    ((batch,),) = DataLoader(TensorDataset(x * 2), batch_size=4)
    batch.sum().backward()
    assert x.grad.tolist() == [2, 2, 2, 2]


def test_a_subclass_that_gives_other_samples_is_asked_for_them():
    class Doubled(TensorDataset):
        def __getitem__(self, i):
            return tuple(2 * t for t in super().__getitem__(i))

    class Negative(Subset):
        def __getitem__(self, i):
            return -super().__getitem__(i)[0]

        def __getitems__(self, indices):
            return [self[i] for i in indices]

    (batch,) = DataLoader(Doubled(engine.arange(3)), batch_size=3)
    assert batch[0].tolist() == [0, 2, 4]
    (batch,) = DataLoader(Negative(Doubled(engine.arange(3)), [1, 2]), batch_size=3)
    assert batch.tolist() == [-2, -4]


def test_a_subclass_of_a_sampler_that_gives_another_order_is_followed():
    class Backwards(SequentialSampler):
        def __iter__(self):
            return reversed(range(len(self.data_source)))

    class Pairs(BatchSampler):
        def __iter__(self):
            return iter([[0, 1], [2, 1]])

    x = TensorDataset(engine.arange(3))
    assert [b.tolist() for (b,) in DataLoader(x, batch_size=2, sampler=Backwards(x))] == [[2, 1], [0]]
    pairs = Pairs(SequentialSampler(x), 2, False)
    assert [b.tolist() for (b,) in DataLoader(x, batch_sampler=pairs)] == [[0, 1], [2, 1]]


def test_a_sampler_of_another_dataset_cannot_go_beyond_the_last_row():
    x = TensorDataset(engine.arange(3))
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        list(DataLoader(x, batch_size=2, sampler=SequentialSampler(range(5))))


def test_getitems_and_collate_fn_get_lists_of_ints():
    class Seen(Squares):
        def __getitems__(self, indices):
            assert type(indices) is list
            assert {type(i) for i in indices} == {int}
            return [self[i] for i in indices]

    for shuffle in (False, True):
        for batch in DataLoader(Seen(5), batch_size=2, shuffle=shuffle, collate_fn=list):
            assert {type(i) for i in batch} == {int}


# ---- samplers


def test_batches_are_lists_of_ints():
    for sampler in (SequentialSampler(range(5)), RandomSampler(range(5)), WeightedRandomSampler([1.0] * 5, 5)):
        batches = list(BatchSampler(sampler, 2, False))
        assert [len(b) for b in batches] == [2, 2, 1]
        assert {type(i) for b in batches for i in b} == {int}
        assert {type(b) for b in batches} == {list}
        assert {type(i) for i in sampler} == {int}


def test_a_given_generator_goes_on_from_epoch_to_epoch_as_in_pytorch():
    torch = pytest.importorskip("torch")

    def epochs(t):
        g = t.Generator().manual_seed(7)
        loader = t.utils.data.DataLoader(t.utils.data.TensorDataset(t.arange(10)), 4, shuffle=True, generator=g)
        return [[b.tolist() for (b,) in loader] for _ in range(3)], t.rand(2, generator=g).tolist()

    assert epochs(engine) == epochs(torch)


def test_numbers_drawn_in_the_loop_are_pytorchs():
    torch = pytest.importorskip("torch")

    def drawn(t, **options):
        g = t.Generator().manual_seed(3)
        sampler = t.utils.data.RandomSampler(range(10), generator=g, **options)
        loader = t.utils.data.DataLoader(t.utils.data.TensorDataset(t.arange(10)), 5, sampler=sampler, generator=g)
        return [(b.tolist(), t.rand(1, generator=g).item()) for (b,) in loader]

    for options in ({}, {"replacement": True, "num_samples": 80}, {"num_samples": 23}):
        assert drawn(engine, **options) == drawn(torch, **options)


def test_base_classes_say_what_a_subclass_lacks():
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler())
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(type("Empty", (IterableDataset,), {})())


# ---- collation


def test_containers_keep_their_type_where_it_can_be_filled():
    batch = default_collate([UserList([1, 2]), UserList([3, 4])])
    assert type(batch) is UserList
    assert [t.tolist() for t in batch] == [[1, 3], [2, 4]]
    assert type(default_collate([MappingProxyType({"a": 1})])) is MappingProxyType
    assert type(default_convert(UserList([np.ones(1)]))) is UserList
    assert [t.tolist() for t in default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]


def test_collate_takes_rules_of_ones_own():
    from engine.utils.data.collate import collate

    rules = {str: lambda batch, *, collate_fn_map: "-".join(batch)}
    assert collate([("a", "b"), ("c", "d")], collate_fn_map=rules) == ["a-c", "b-d"]


# ---- the loader


def test_len_is_right_in_every_mode():
    assert len(DataLoader(SizedCount(10), batch_size=3)) == 4
    assert len(DataLoader(SizedCount(10), batch_size=3, drop_last=True)) == 3
    assert len(DataLoader(SizedCount(10), batch_size=None)) == 10
    loader = DataLoader(Squares(10), batch_size=3, sampler=SubsetRandomSampler([1, 2, 3, 4]))
    assert len(loader) == len(iter(loader)) == len(list(loader)) == 2
    assert len(Squares(3) + Squares(4)) == 7
    assert len(ConcatDataset([Squares(3)])) == 3


def test_a_stream_that_gives_more_than_it_said_is_warned_of():
    loader = DataLoader(type("Liar", (Count,), {"__len__": lambda self: 2})(3), batch_size=None)
    assert [i for i in loader] == [0, 1, 2]  # noqa: C416  (list() would ask for the length)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2.* but 3 samples have been fetched"):
        assert list(loader) == [0, 1, 2]


def test_the_end_of_a_stream_is_final():
    class Again(IterableDataset):
        """Its own iterator, which goes on after its end and begins anew when it is asked for."""

        def __iter__(self):
            self.left = 5
            return self

        def __next__(self):
            self.left = (self.left or 5) - 1
            if not self.left:
                raise StopIteration
            return self.left

    for batch_size, batches in ((2, [[4, 3], [2, 1]]), (3, [[4, 3, 2], [1]])):
        iterator = iter(DataLoader(Again(), batch_size=batch_size))
        assert [b.tolist() for b in iterator] == batches
        assert next(iterator, None) is None


def test_pin_memory_without_an_accelerator_warns_and_changes_nothing():
    loader = DataLoader(range(2), pin_memory=True)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        assert [b.tolist() for b in loader] == [[0], [1]]


def test_pinning_keeps_the_type_of_a_container_and_its_device_is_no_option():
    assert pinned((1, ["a", Point(0, (2,))])) == (1, ["a", Point(0, (2,))])
    with (
        pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"),
        pytest.warns(UserWarning, match="pin_memory_device is deprecated.*ignore pin_memory_device='cuda'"),
    ):
        iter(DataLoader(range(2), pin_memory=True, pin_memory_device="cuda"))


def test_workers_must_be_asked_for_batches():
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0 for MultiProcessing"):
        iter(DataLoader(range(2), num_workers=1, prefetch_factor=0))


def test_an_iterator_cannot_be_pickled():
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        iter(DataLoader(range(2))).__getstate__()


def test_generic_types_can_be_written():
    class Typed(Dataset[int]):
        pass

    assert issubclass(Typed, Dataset)
    assert DataLoader[int]
    assert Sampler[int]


def test_there_is_no_worker_in_the_main_process():
    assert get_worker_info() is None


NAMES = """Dataset IterableDataset TensorDataset Subset ConcatDataset DataLoader Sampler SequentialSampler RandomSampler
SubsetRandomSampler WeightedRandomSampler BatchSampler""".split()  # fmt: skip


@over("name", NAMES)
def test_a_subclass_finds_no_public_names_but_pytorchs(name):
    torch = pytest.importorskip("torch")
    mine, theirs = (set(dir(getattr(library.utils.data, name))) for library in (engine, torch))
    assert not {n for n in mine - theirs if n[0] != "_"}


def test_public_names_are_pytorchs():
    torch = pytest.importorskip("torch")
    assert set(data.__all__) <= set(torch.utils.data.__all__)
