"""The DataLoader's worker processes: what they give, and that none of them hangs, dies unseen or stays behind.

Every loader here has a time limit, and so has every program that runs apart: what would hang fails.
"""

import contextlib
import gc
import math
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import engine
from engine.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from engine.utils.data import worker as workers

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")  # on a machine with one processor

LIMIT = 240  # seconds: far more than anything here takes, also on a busy machine
METHODS = multiprocessing.get_all_start_methods()
if "forkserver" in METHODS:  # one process imports the engine for all workers here that come from it
    multiprocessing.get_context("forkserver").set_forkserver_preload(["engine.utils.data.worker"])
forked = pytest.mark.skipif("fork" not in METHODS, reason="what a test defines cannot be pickled")
posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no signals to send")


def in_gate(*chosen):
    """The ways to start workers, of which those that are not chosen run in the long tests alone."""
    marks = {m: [pytest.mark.slow] * (m not in chosen) for m in METHODS}
    return pytest.mark.parametrize("method", [pytest.param(m, marks=marks[m]) for m in METHODS])


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Workers that are told to end do so by themselves, however long that takes here."""
    monkeypatch.setattr(workers, "GRACE", LIMIT)


def loader(dataset, *args, **options):
    return DataLoader(dataset, *args, **{"num_workers": 2, "timeout": LIMIT, **options})


alone = partial(loader, num_workers=1)


class Squares(Dataset):
    def __init__(self, n=12):
        self.n = n

    def __getitem__(self, i):
        return i * i

    def __len__(self):
        return self.n


class Images(Dataset):
    """Samples of ``sizes[i]`` floats, all i."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __getitem__(self, i):
        return np.full(self.sizes[i], i, np.float32), {"index": i, "half": engine.full((3,), i, dtype=engine.bfloat16)}

    def __len__(self):
        return len(self.sizes)


class Failing(Squares):
    """Sample 5 raises an exception."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def __getitem__(self, i):
        if i == 5:
            raise self.error
        return i


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Count(IterableDataset):
    """The numbers below n, of which each worker gives its share."""

    def __init__(self, n, shared=True):
        self.n, self.shared = n, shared

    def __iter__(self):
        info = get_worker_info()
        if info is None or not self.shared:
            return iter(range(self.n))
        return iter(range(info.id, self.n, info.num_workers))


class Sized(Count):
    def __len__(self):
        return self.n


class Drawn(Dataset):
    """Each sample: a random number from the engine, from Python and from NumPy."""

    def __getitem__(self, i):
        return engine.rand(1), random.random(), np.random.rand()

    def __len__(self):
        return 8


class Calling(Squares):
    """Calls a function for each sample."""

    def __init__(self, call, n=12):
        super().__init__(n)
        self.call = call

    def __getitem__(self, i):
        self.call(i)
        return i


def numbers(batches):
    return [b.tolist() for b in batches]


def pids(iterator):
    return [m.process.pid for m in iterator.team.members]


def fail(worker):
    raise OSError(f"no data for {worker}")


# ---- what they give


@pytest.mark.parametrize("method", METHODS)
def test_batches_come_in_order_through_shared_memory_and_workers_end_when_their_iterator_is_dropped(method):
    dataset, before = Images([LARGE] * 40), set(multiprocessing.active_children())
    engine.manual_seed(0)
    expected = [[i.item() for i in more["index"]] for _, more in DataLoader(dataset, 2, shuffle=True)]
    engine.manual_seed(0)
    iterator = iter(loader(dataset, 2, shuffle=True, multiprocessing_context=method))
    for indices in expected[:12]:
        x, more = next(iterator)
        assert more["index"].tolist() == x[:, 0].tolist() == x[:, -1].tolist() == indices
        assert more["half"].dtype is engine.bfloat16
        x += 1  # its memory is not lent
    team = iterator.team
    assert team.need >= 8 * LARGE
    assert len(set(multiprocessing.active_children()) - before) == 2
    del iterator
    gc.collect()
    assert team.stopped
    assert_gone(m.process for m in team.members)
    assert [m.process.exitcode for m in team.members] == [0, 0]
    assert not set(multiprocessing.active_children()) - before


def test_every_way_to_form_batches():
    assert list(alone(Squares(3), None)) == [0, 1, 4]
    assert numbers(loader(Squares(5), 2)) == [[0, 1], [4, 9], [16]]
    assert numbers(alone(Squares(5), 2, drop_last=True)) == [[0, 1], [4, 9]]
    assert numbers(alone(Squares(5), 2, sampler=[4, 1, 1])) == [[16, 1], [1]]
    assert numbers(loader(Squares(), batch_sampler=[[1], [2, 3], [0, 0, 0]])) == [[1], [4, 9], [0, 0, 0]]


@forked
def test_samplers_yield_to_workers_what_they_yield_to_pytorchs():
    torch = pytest.importorskip("torch")

    def epochs(t, iterable):
        t.manual_seed(5)
        D = t.utils.data
        g = t.Generator().manual_seed(1)
        options = {"num_workers": 2, "timeout": LIMIT, "generator": g, "multiprocessing_context": "fork"}
        if not iterable:
            batches = D.DataLoader(D.TensorDataset(t.arange(11)), 2, shuffle=True, **options)
            return [[b.tolist() for (b,) in batches] for _ in range(2)], t.rand(1, generator=g).item()
        stream = type(
            "Stream", (D.IterableDataset,), {"__iter__": lambda self: share(range(11), D.get_worker_info())}
        )()
        return [b.tolist() for b in D.DataLoader(stream, 2, **options)], t.rand(1, generator=g).item()

    for iterable in (False, True):
        assert epochs(engine, iterable) == epochs(torch, iterable)


def share(numbers, info):
    """Worker 0 gives twice as many as worker 1."""
    return (i for i in numbers if (i % 3 == 2) == (info.id == 1))


@forked
def test_random_numbers_in_workers_are_pytorchs():
    torch = pytest.importorskip("torch")

    class Theirs(torch.utils.data.Dataset):
        def __getitem__(self, i):
            return torch.rand(1), random.random(), np.random.rand()

        def __len__(self):
            return 8

    found = []
    for module, dataset in ((engine, Drawn()), (torch, Theirs())):
        module.manual_seed(3)
        options = {"num_workers": 2, "timeout": LIMIT, "multiprocessing_context": "fork"}
        batches = module.utils.data.DataLoader(dataset, 2, **options)
        found.append([[[t.tolist() for t in b] for b in batches] for _ in range(2)])
    assert found[0] == found[1]


def test_each_worker_has_a_seed_of_its_own_and_the_same_one_again_after_the_same_seed():
    engine.manual_seed(11)
    first = [[t.tolist() for t in b] for b in loader(Drawn(), 1)]
    engine.manual_seed(11)
    assert [[t.tolist() for t in b] for b in loader(Drawn(), 1)] == first
    assert len({str(b) for b in first}) == len(first)


def test_a_worker_knows_its_number_and_its_copy_of_the_dataset_and_computes_with_one_thread():
    engine.manual_seed(0)
    seed = int(engine.random.random(None, (), np.int64))
    engine.manual_seed(0)
    assert numbers(loader(Squares(4), collate_fn=about_me)) == [[0, 2, seed, 1], [1, 2, seed + 1, 1]] * 2
    assert numbers(loader(Squares(4), worker_init_fn=let_one_be_less)) == [[0], [0], [4], [8]]


def about_me(batch):
    info = get_worker_info()
    return engine.tensor([info.id, info.num_workers, info.seed, engine.get_num_threads()])


def let_one_be_less(number):
    """Worker 1 gives 0 and 8 in place of 1 and 9."""
    info = get_worker_info()
    assert info.id == number
    if number == 1:
        info.dataset.__class__ = Less


class Less(Squares):
    def __getitem__(self, i):
        return super().__getitem__(i) - 1


def test_a_stream_is_shared_out_by_get_worker_info():
    assert sorted(sum(numbers(loader(Count(11), 3)), [])) == list(range(11))
    assert numbers(loader(Count(11), 3)) == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9]]
    assert numbers(loader(Count(11), 3, drop_last=True)) == [[0, 2, 4], [1, 3, 5], [6, 8, 10]]
    assert list(loader(Count(3), None)) == [0, 1, 2]


def test_a_stream_that_is_not_shared_out_comes_once_from_each_worker():
    assert numbers(loader(Count(3, shared=False), 2)) == [[0, 1], [0, 1], [2], [2]]


def test_a_stream_that_says_its_length_warns_if_every_worker_gives_it_all():
    batches = loader(Sized(2, shared=False), None)
    assert len(batches) == 2
    with pytest.warns(UserWarning, match="properly configuring the IterableDataset replica"):
        assert len(list(batches)) == 4


def test_two_loaders_at_once_and_one_in_another_thread():
    sizes = [2 * LARGE] * 6
    pairs = zip(loader(Images(sizes)), loader(Squares(6)), strict=True)
    assert [(x[0, 0].item(), y.item()) for (x, _), y in pairs] == [(i, i * i) for i in range(6)]
    first = iter(loader(Images(sizes)))
    second = iter(loader(Images(sizes)))
    next(first), next(second)
    for iterator in (first, second):  # neither keeps the other's workers from ending
        iterator.team.stop()
        assert [m.process.exitcode for m in iterator.team.members] == [0, 0]
    found = []
    thread = Thread(target=lambda: found.extend(numbers(loader(Squares()))))
    thread.start()
    thread.join(LIMIT)
    assert found == [[i * i] for i in range(12)]


def test_out_of_order_all_batches_come_once():
    batches = loader(Calling(hurry), 1, in_order=False)
    assert sorted(sum(numbers(batches), [])) == list(range(12))


def hurry(i):
    time.sleep(0.2 * (i == 0))


def test_persistent_workers_stay_and_others_do_not():
    for persistent in (True, False):
        batches = loader(Squares(), 3, persistent_workers=persistent)
        first, second = iter(batches), None
        before = pids(first)
        assert next(first).tolist() == [0, 1, 4]  # an epoch that is not gone through to its end
        second = iter(batches)
        assert numbers(second) == numbers(DataLoader(Squares(), 3))
        assert (pids(second) == before) is persistent
        assert (second.team.stopped, first is second) == (not persistent, persistent)
        assert next(second, None) is None


def test_persistent_streams_begin_anew():
    batches = loader(Count(7), 2, persistent_workers=True)
    next(iter(batches))
    assert numbers(batches) == numbers(batches) == [[0, 2], [1, 3], [4, 6], [5]]


def test_so_many_batches_are_loaded_ahead():
    class Indices(list):
        def __iter__(self):
            self.taken = 0
            for i in super().__iter__():
                self.taken += 1
                yield i

    indices = Indices(range(12))
    iterator = iter(loader(Squares(), None, sampler=indices, prefetch_factor=2))
    assert indices.taken == 4
    next(iterator)
    assert indices.taken == 5


def test_len_is_that_of_one_process():
    assert len(loader(Squares(), 5)) == 3
    assert len(loader(Squares(), 5, drop_last=True)) == 2


def test_more_workers_than_processors_are_warned_of():
    with pytest.warns(
        UserWarning, match="This DataLoader will create 4096 worker processes in total. Our suggested max"
    ):
        DataLoader(Squares(), num_workers=4096)


# ---- shared memory

LARGE = workers.SHARED_MEMORY_FROM // 4  # floats


def assert_images(batches, sizes):
    for i, (x, more) in enumerate(batches):
        assert x.shape == (1, sizes[i])
        assert (x == i).all()
        assert more["index"].tolist() == [i]
        assert more["half"].dtype is engine.bfloat16
        x += 1  # its memory is not lent
    assert i + 1 == len(sizes)


def test_there_is_a_slot_for_each_batch_that_is_asked_for_and_no_more():
    iterator = iter(loader(Images([2 * LARGE] * 20)))
    seen = set()
    for _ in iterator:
        seen |= {slot.name for slot in [*iterator.team.free, *iterator.team.lent.values()]}
    assert 1 <= len(seen) <= 4
    assert not iterator.team.free
    assert not iterator.team.lent


def test_batches_that_grow_and_shrink():
    sizes = [int(n) for n in np.random.default_rng(0).choice([0, 10, LARGE, 3 * LARGE, 50 * LARGE], 30)]
    assert_images(alone(Images(sizes)), sizes)


def test_without_room_for_shared_memory_batches_go_through_the_pipe(monkeypatch):
    def full(size):
        raise OSError("No space left on device")

    monkeypatch.setattr(workers, "new_slot", full)
    sizes = [3 * LARGE] * 8
    assert_images(alone(Images(sizes)), sizes)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="only Linux shows its shared memory")
def test_more_than_there_is_room_for_is_refused_before_it_is_written_to(monkeypatch):
    made, room = [], os.statvfs("/dev/shm")
    monkeypatch.setattr(workers, "SharedMemory", lambda **options: made.append(SharedMemory(**options)) or made[-1])
    with pytest.raises(OSError, match="No space left|too large"):
        workers.new_slot((room.f_blocks + 1024) * room.f_frsize)
    assert_freed([slot.name for slot in made])


# ---- what goes wrong


@pytest.mark.parametrize("error", [ValueError("bad sample"), KeyError("bad sample"), IndexError("bad sample")])
def test_an_exception_is_raised_here_with_its_traceback(error):
    iterator = iter(alone(Failing(error), 2))
    assert [next(iterator).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(type(error)) as caught:
        next(iterator)
    message = str(caught.value)
    assert message.startswith(
        f"Caught {type(error).__name__} in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
    )
    assert "raise self.error" in message
    assert message.rstrip().endswith(f"{type(error).__name__}: {error}")
    assert numbers(iterator) == [[6, 7], [8, 9], [10, 11]]  # the others still come


def test_an_exception_that_a_message_does_not_make_is_a_runtime_error():
    for dataset, name in ((Failing(TwoArguments(1, 2)), "TwoArguments"), (Calling(fail_locally), "Local")):
        with pytest.raises(RuntimeError, match=f"Caught {name} in DataLoader worker process"):
            list(alone(dataset))


def fail_locally(i):
    raise type("Local", (Exception,), {})("of a class that no other process can find")


@pytest.mark.parametrize("options", [{"collate_fn": fail}, {"worker_init_fn": fail}])
def test_an_exception_in_a_function_of_the_loader(options):
    iterator = iter(alone(Squares(), **options))
    for _ in range(2):
        with pytest.raises(OSError, match="in DataLoader worker process"):
            next(iterator)


def test_a_batch_that_cannot_be_sent():
    with pytest.raises((AttributeError, pickle.PicklingError), match="in DataLoader worker process 0"):
        list(alone(Squares(), collate_fn=unsendable))


def unsendable(batch):
    return lambda: batch


@pytest.mark.parametrize("options", [{}, {"batch_size": None}])
def test_no_graph_is_cut_on_the_way_from_a_worker(options):
    leaf = engine.ones(2, requires_grad=True)
    sent = [engine.nn.Parameter(engine.ones(2)), {"a": [leaf]}]
    kept = [*DataLoader(sent, num_workers=1, batch_size=None)]
    assert type(kept[0]) is engine.nn.Parameter and kept[1]["a"][0].requires_grad and kept[1]["a"][0].is_leaf
    with pytest.raises(
        RuntimeError, match=r"(?s)Caught RuntimeError in DataLoader worker process 0\..*Cowardly refusing"
    ):
        next(iter(DataLoader([{"a": [leaf * 2]}], num_workers=1, **options)))
    assert next(iter(DataLoader([leaf.detach() * 2], num_workers=1))).tolist() == [[2.0, 2.0]]


def test_a_stream_that_raises():
    iterator = iter(alone(Broken(), 1))
    with pytest.raises(ZeroDivisionError, match="in DataLoader worker process 0"):
        next(iterator)


class Broken(IterableDataset):
    def __iter__(self):
        yield 1 / 0


@posix
def test_a_killed_worker_is_reported():
    iterator = iter(loader(Calling(kill), 1))
    with pytest.raises(
        RuntimeError, match=r"DataLoader worker \(pid\(s\) [\d, ]+\) exited unexpectedly: killed by signal SIGKILL"
    ):
        list(iterator)
    assert iterator.team.stopped
    with pytest.raises(RuntimeError, match="have ended"):
        next(iterator)


def kill(i):
    if i == 5:
        os.kill(os.getpid(), signal.SIGKILL)


@in_gate("fork", "forkserver")
def test_a_worker_that_exits_is_reported(method):
    with pytest.raises(RuntimeError, match=r"exited unexpectedly: exit code 3"):
        list(alone(Calling(leave), 1, multiprocessing_context=method))


def leave(i):
    if i == 2:
        os._exit(3)


@posix
def test_persistent_workers_are_started_again_after_one_was_killed():
    batches = loader(Squares(), 4, persistent_workers=True)
    iterator = iter(batches)
    os.kill(pids(iterator)[1], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(iterator)
    assert numbers(batches) == numbers(DataLoader(Squares(), 4))


def test_a_batch_that_does_not_come_in_time():
    iterator = iter(DataLoader(Calling(sleep), 1, num_workers=1, timeout=0.5))
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        for _ in range(3):
            next(iterator)
    iterator.team.join = lambda seconds: None  # it is fast asleep: terminate it at once
    iterator.team.stop()


def sleep(i):
    if i == 2:
        time.sleep(LIMIT)


@pytest.mark.skipif("spawn" not in METHODS, reason="workers can be forked alone")
def test_what_cannot_be_pickled_says_what_to_do():
    with pytest.raises((AttributeError, pickle.PicklingError, TypeError)) as caught:
        iter(loader(Squares(), collate_fn=lambda batch: batch, multiprocessing_context="spawn"))
    assert "at the top of a .py file" in caught.value.__notes__[-1]  # from 3.14 on pickle adds notes of its own


@forked
def test_functions_of_all_kinds_can_be_forked():
    batches = alone(
        Squares(3), 2, collate_fn=lambda batch: batch, multiprocessing_context=multiprocessing.get_context("fork")
    )
    assert list(batches) == [[0, 1], [4]]


# ---- none stays behind


def assert_gone(processes):
    for p in processes:
        p.join(LIMIT)
        assert p.exitcode is not None


def test_workers_end_with_the_epoch():
    batches = loader(Squares())
    for _ in range(2):
        iterator = iter(batches)
        list(iterator)
        assert [m.process.exitcode for m in iterator.team.members] == [0, 0]


def test_a_worker_that_does_not_end_is_terminated(monkeypatch):
    monkeypatch.setattr(workers, "GRACE", 0.2)
    iterator = iter(loader(Calling(sleep), 1, num_workers=1))
    next(iterator), next(iterator)
    team = iterator.team
    del iterator
    assert_gone(m.process for m in team.members)
    assert team.members[0].process.exitcode != 0


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux shows open files")
def test_no_file_stays_open():
    list(alone(Images([2 * LARGE] * 6)))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(2):
        list(alone(Images([2 * LARGE] * 6)))
        next(iter(alone(Images([2 * LARGE] * 6))))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


PROGRAM = """
import sys, time
import numpy as np
from engine.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, i):
        time.sleep(0.01)
        return np.full(100_000, i, np.float32)

    def __len__(self):
        return 10**6  # there is no end to it before the test comes to what it is about

def batches(**options):
    global iterator
    iterator = iter(DataLoader(Images(), 4, **options))
    for batch in iterator:
        print(*(slot.name for slot in [*iterator.team.free, *iterator.team.lent.values()]))
        yield batch[:, 0].tolist()

def main():
    {body}

if __name__ == "__main__":
    main()
"""


@contextlib.contextmanager
def program(tmp_path, body):
    """A program that runs apart, in a session of its own.  Its output ends when all that it started has ended.

    For each batch it writes the names of its shared memory: from the third or fourth on there is some.
    """
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), "    ").strip()), "utf-8")
    root = str(Path(engine.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def assert_freed(names):
    assert names
    for name in set(names):
        with pytest.raises(FileNotFoundError):
            SharedMemory(name)


def workers_of(method):
    """As words in a program: one worker where each imports the engine for itself."""
    return f"multiprocessing_context={method!r}, num_workers={2 if method == 'fork' else 1}"


@in_gate("fork", "forkserver")
def test_workers_end_with_the_interpreter(tmp_path, method):
    body = f"""
        for batch in batches(persistent_workers=True, {workers_of(method)}):
            if batch[0] == 20:
                break
    """
    with program(tmp_path, body) as process:
        out, err = process.communicate(timeout=LIMIT)
    assert (err, process.returncode) == ("", 0)
    assert_freed(out.split())


@posix
@in_gate("fork", "spawn")
def test_ctrl_c_ends_all_with_one_traceback(tmp_path, method):
    with program(tmp_path, f"for batch in batches({workers_of(method)}): pass") as process:
        lines = [process.stdout.readline() for _ in range(5)]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate(timeout=LIMIT)
    assert err.count("Traceback (most recent call last)") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT
    assert_freed((*lines[-1].split(), *out.split()))


@posix
def test_after_ctrl_c_the_program_can_go_on(tmp_path):
    body = """
        loader = DataLoader(Images(), 4, num_workers=2, persistent_workers=True)
        try:
            for batch in loader:
                print("batch")
        except KeyboardInterrupt:
            print("stopped", next(iter(loader))[:, 0].tolist())
    """
    with program(tmp_path, body) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["batch\n"] * 2  # one of each worker: both have begun
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (out.splitlines()[-1], err, process.returncode) == ("stopped [0.0, 1.0, 2.0, 3.0]", "", 0)


@posix
@in_gate("fork", "forkserver")
def test_workers_end_when_the_main_process_is_killed(tmp_path, method):
    with program(tmp_path, f"for batch in batches({workers_of(method)}): pass") as process:
        lines = [process.stdout.readline() for _ in range(5)]
        process.kill()
        out, _ = process.communicate(timeout=LIMIT)
    assert_freed((*lines[-1].split(), *out.split()))


@pytest.mark.skipif("spawn" not in METHODS, reason="workers can be forked alone")
def test_a_dataset_that_a_worker_cannot_find_says_what_to_do(monkeypatch):
    """A class that is in no file, as those of a notebook's cells."""
    mine = type("Mine", (Squares,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Mine", mine, raising=False)
    method = "forkserver" if "forkserver" in METHODS else "spawn"
    with pytest.raises(AttributeError, match="Caught AttributeError in DataLoader worker process 0") as caught:
        next(iter(loader(mine(), num_workers=1, multiprocessing_context=method)))
    assert "at the top of a .py file" in str(caught.value)


@pytest.mark.slow
@pytest.mark.skipif("spawn" not in METHODS, reason="workers can be forked alone")
def test_a_program_without_a_main_guard_ends_with_an_error(tmp_path):
    file = tmp_path / "unguarded.py"
    file.write_text(
        "from engine.utils.data import DataLoader\n"
        "print(list(DataLoader(range(3), num_workers=1, multiprocessing_context='spawn')))\n", "utf-8"
    )  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(engine.__file__).parent.parent)}
    out = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=LIMIT, env=environment, check=False
    )
    assert "freeze_support()" in out.stderr
    assert "exited unexpectedly: exit code 1" in out.stderr


class Labelled(engine.utils.data.Dataset):
    """Examples whose answers are NumPy's whole numbers."""

    answers = np.array([0, 1, 2, 1])

    def __len__(self):
        return len(self.answers)

    def __getitem__(self, i):
        return engine.ones(3), engine.from_numpy(self.answers[i : i + 1])


def test_whole_numbers_from_a_worker_can_be_answers_of_a_loss():
    """A dtype that was pickled is equal to the engine's own, and another object."""
    for x, y in DataLoader(Labelled(), batch_size=2, num_workers=1):
        assert y.array.dtype is engine.int64.np
        assert engine.nn.functional.cross_entropy(x, y[:, 0]).item() == pytest.approx(math.log(3))
