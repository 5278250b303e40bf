"""Machine code: loops compiled by Numba and kept on disk, whatever the disk is like, and run on threads."""

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import engine
from engine.arrays import threads
from engine.compiler import disk, machine

pytestmark = pytest.mark.skipif(machine.why_not() != "", reason=machine.why_not() or "-")

ADD = """def loop(first, last, x0, x1, out0):
    for i in range(first, last):
        out0[i] = x0[i] + x1[i]
"""
SUM = """def loop(first, last, x0):
    total = float32(0)
    for i in range(first, last):
        total += x0[i]
    return (total, last - first)
"""


@pytest.fixture(scope="module")
def one_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def compiled_sum(tmp_path_factory):
    """(name, content) of an entry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTORCH_CACHE", str(tmp_path_factory.mktemp("first")))
        patch.setattr(machine, "loops", {})
        assert added()
        (path,) = entries()
        return path.name, path.read_bytes()


@pytest.fixture(autouse=True)
def shared_folder(one_folder, monkeypatch):
    """What one test has compiled the others find: only those of the store begin with nothing."""
    monkeypatch.setenv("UNDERTORCH_CACHE", str(one_folder))
    monkeypatch.setattr(machine, "loops", {})


@pytest.fixture
def own_folder(shared_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERTORCH_CACHE", str(tmp_path / "cache"))


own = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def entry(own_folder, compiled_sum):
    """The sum in a folder of its own, compiled before."""
    name, content = compiled_sum
    path = disk.folder() / name
    path.write_bytes(content)
    return path


@pytest.fixture
def four_threads():
    before = engine.get_num_threads()
    engine.set_num_threads(4)
    yield
    engine.set_num_threads(before)


def entries():
    return sorted(path for path in disk.folder().iterdir() if path.suffix != ".tmp")


def compiled_now(loop, *args):
    """Call a loop, and say whether its machine code was written for that, not found."""
    from engine.compiler import store

    begun = []
    store.progress.begin, begin = lambda: begun.append(begin()), store.progress.begin
    try:
        loop(0, len(args[0]), *args)
    finally:
        del store.progress.begin
    return bool(begun)


def added(text=ADD):
    """Whether a loop was compiled for a sum of two vectors, which has to be right."""
    machine.loops.clear()
    x, out = np.arange(5.0, dtype=np.float32), np.zeros(5, np.float32)
    new = compiled_now(machine.compiled(text), x, x + 1, out)
    assert out.tolist() == [1, 3, 5, 7, 9]
    return new


def python(program, **environment):
    """Start a program in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


PROGRAM = f"""
import sys, time
import numpy as np
import engine
from engine.compiler import machine
assert "numba" not in sys.modules
from engine.compiler import store
begun = []
store.progress.begin = lambda: begun.append(1)
x, out = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
machine.compiled({ADD!r})(0, 5, x, x + 1, out)
print(out.tolist(), len(begun), "engine.compiler.vector_math" in sys.modules)
"""


def test_each_text_is_one_loop_and_each_dtype_has_its_own_code():
    loop = machine.compiled(ADD)
    assert machine.compiled(ADD) is loop is not machine.compiled(SUM)
    for dtype in (np.float32, np.float64, np.int64):
        x, out = np.arange(5).astype(dtype), np.zeros(5, dtype)
        loop(0, 5, x, x, out)
        assert out.tolist() == [0, 2, 4, 6, 8]
    assert len(loop.signatures) == 3


def test_rows_from_first_to_last():
    x, out = np.ones(5, np.float32), np.zeros(5, np.float32)
    machine.compiled(ADD)(1, 3, x, x, out)
    assert out.tolist() == [0, 2, 2, 0, 0]


@pytest.mark.slow
def test_what_needs_memory_compiles_too():
    text = (
        "def loop(first, last, x0, out0):\n    y = empty(2, float32)\n    y[:] = x0[first]\n    return (y, y[1] ** 2)\n"
    )
    copies = "def loop(first, last, x0, out0):\n    out0[:] = x0\n"
    x, out = np.float32([2, 3]), np.zeros(2, np.float32)
    array, number = machine.compiled(text)(1, 2, x, out)
    assert array.tolist() == [3, 3] and number == 9
    machine.compiled(copies)(0, 2, x, out)
    assert out.tolist() == [2, 3]


def test_what_cannot_be_compiled_says_so():
    loop = machine.compiled("def loop(first, last, x0):\n    return x0 @ 'letters'\n")
    from engine.compiler import store

    with (
        pytest.warns(UserWarning, match="A loop could not be compiled.*loops"),
        pytest.raises(store.NumbaError, match="letters"),
    ):
        loop(0, 1, np.ones(3))
    assert store.failed.pop(loop.__qualname__)


@pytest.mark.slow
def test_what_cannot_be_compiled_is_seen_with_the_filters_that_the_engine_sets():
    lines = "from engine.compiler import machine", "import numpy as np"
    call = "machine.compiled('def loop(first, last, x0):\\n    return x0 @ first.letters\\n')(0, 1, np.ones(3))"
    ran = subprocess.run([sys.executable, "-c", "\n".join((*lines, call))], capture_output=True, encoding="utf-8")
    assert "UserWarning: A loop could not be compiled" in ran.stderr


def test_no_look_at_memory_that_could_be_shared():
    names = [f"x{i}" for i in range(9)]
    total = " + ".join(f"{x}[i]" for x in names)
    text = f"def loop(first, last, {', '.join(names)}, out0):\n"
    loop = machine.compiled(text + f"    for i in range(first, last):\n        out0[i] = {total}\n")
    loop(0, 4, *np.ones((10, 4), np.float32))
    code = loop.inspect_llvm(loop.signatures[0])
    assert "vector.body" in code and "memcheck" not in code


def test_no_look_whether_an_index_is_negative():
    loop = machine.compiled(ADD.replace("range(first, last)", "range(first, min(last, x0.size))"))
    loop(0, 4, *np.ones((3, 4), np.float32))
    code = loop.inspect_llvm(loop.signatures[0])
    assert "vector.body" in code and "select" not in code


# ---- whether loops can be compiled


def test_counts_are_hidden_where_all_rounds_would_be_written_one_by_one():
    from engine.compiler import store

    text = """def loop(first, last, x0):
    for i in range(first, last):
        for j in range(3):
            for k in range(96):
                x0[i, j, k] = 0
        for j in range(15):
            x0[i, j, 0] = 1
"""
    assert [line.strip() for line in store.as_compiled(text).splitlines() if "for" in line] == [
        "for i in range(first, last):",
        "for j in range(unknown(3) * 1):",
        "for k in range(unknown(3) * 32):",
        "for j in range(15):",
    ]
    x = np.empty((2, 15, 96))
    machine.compiled(text)(0, 2, x[:, :, :])
    assert (x[:, 3:, 0] == 1).all() and (x[:, :3, 1:] == 0).all()


def test_exponentials_are_computed_several_vectors_at_a_time():
    from engine.compiler import store

    text = """def loop(first, last, x0, x1):
    for x2 in range(first, last):
        for x3 in range({}):
            x1[x2, x3] = {}(x0[x2, x3])
"""
    counts = {n: store.vectors_at_once(text.format(n, "exp")) for n in (10, 16, 40, 48, 64, 96)}
    assert counts == {10: 4, 16: 2, 40: 1, 48: 2, 64: 4, 96: 4}
    assert store.vectors_at_once(text.format(64, "sqrt")) == 1
    x = np.linspace(-4, 4, 192, dtype=np.float32).reshape(2, 96)
    for n in (10, 96):
        out = np.full_like(x, 7)
        loop = machine.compiled(text.format(n, "expit"))
        loop(0, 2, x, out)
        np.testing.assert_allclose(out[:, :n], 1 / (1 + np.exp(-x[:, :n].astype(float))), rtol=3e-7)
        assert (out[:, n:] == 7).all()
    divisions = re.findall(r"fdiv \w* ?<\d+ x float>", loop.inspect_llvm(loop.signatures[0]))
    assert len(divisions) >= 4


def test_a_sum_of_a_short_row_is_vectorised():
    loop = machine.compiled("""def loop(first, last, x0, out0):
    for i in range(first, last):
        s = float32(0.0)
        for j in range(64):
            s += x0[i, j]
        out0[i] = s
""")
    loop(0, 8, np.ones((8, 64), np.float32), np.empty(8, np.float32))
    assert "@llvm.vector.reduce.fadd" in next(iter(loop.inspect_llvm().values()))


def test_switched_off(monkeypatch):
    monkeypatch.setenv("UNDERTORCH_LOOPS", "0")
    assert "UNDERTORCH_LOOPS=0" in machine.why_not()


class Distribution:
    version = "0.62.0"
    requires = ["llvmlite<0.46,>=0.45.0dev0", "numpy<2.1,>=1.22"]


def reason(monkeypatch, found):
    monkeypatch.setattr(metadata, "distribution", found)
    machine.missing.cache_clear()
    try:
        return machine.missing()
    finally:
        machine.missing.cache_clear()


def test_not_installed(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    assert "undertorch[compile]" in reason(monkeypatch, absent)


def test_numpy_is_too_new(monkeypatch):
    said = reason(monkeypatch, lambda name: Distribution)
    assert f"NumPy {np.__version__} is newer than Numba 0.62.0 supports" in said and "numpy<2.1" in said


def test_numba_cannot_be_imported(monkeypatch):
    monkeypatch.setattr(machine, "broken", "")
    monkeypatch.setitem(sys.modules, "engine.compiler.store", None)
    monkeypatch.delattr("engine.compiler.store", raising=False)
    with pytest.raises(ImportError):
        machine.compiled(ADD)
    assert machine.why_not().startswith("Numba cannot be imported")


# ---- the store


@own
def test_found_on_disk():
    assert added() and len(entries()) == 1
    assert not added()
    assert not added(), "what was found is still there"


@own
@pytest.mark.slow
def test_found_by_another_process():
    assert output(python(PROGRAM)) == "[1.0, 3.0, 5.0, 7.0, 9.0] 1 True"
    assert output(python(PROGRAM)) == "[1.0, 3.0, 5.0, 7.0, 9.0] 0 False"


@own
def test_a_loop_found_on_disk_is_of_its_types():
    x = np.arange(4.0)
    loop = machine.compiled(ADD)
    for dtype in (np.float32, np.int16, np.bool_):
        loop(0, 4, x.astype(np.float32), x.astype(dtype), np.empty(4, np.float32))
    kept = x.astype(np.float32)
    kept.flags.writeable = False
    loop(0, 4, kept, x, np.empty(4, np.float32))
    assert len(entries()) == 4 and len(loop.signatures) == 4
    assert not loop.signatures[3][2].mutable


@own
@pytest.mark.slow
def test_two_processes_at_once():
    both = [python(PROGRAM) for _ in range(2)]
    assert all(output(process).startswith("[1.0, 3.0, 5.0, 7.0, 9.0]") for process in both)
    assert len(entries()) == 1 and not added()


def test_another_text_or_switch_is_another_entry(entry, monkeypatch):
    from engine.compiler import store

    assert added(ADD.replace("x0[i] + x1[i]", "x1[i] + x0[i]")), "its code is not the same"
    monkeypatch.setenv("NUMBA_OPT", "2")
    store.surroundings.cache_clear()
    assert added()
    store.surroundings.cache_clear()
    assert len(entries()) == 3


def test_a_damaged_entry_and_one_of_another_world_are_compiled_anew(entry):
    content = entry.read_bytes()
    for damaged in (b"", b"short", content[: len(content) // 2], b"x" * 5000):
        entry.write_bytes(damaged)
        assert added() and not added(), damaged[:9]
    for other in (b"no pickle", b"\x80\x04N."):
        disk.write(entry.name, other)
        assert added() and not added(), other


@own
def test_folder_is_ours_alone():
    folder = disk.folder()
    assert folder.is_dir()
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")
def test_folder_that_others_can_write_to(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERTORCH_CACHE", str(tmp_path))
    (tmp_path / "loops").mkdir()
    (tmp_path / "loops").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="they can write to it"):
        assert added()
    assert added() and not list((tmp_path / "loops").iterdir()), "one warning is enough"


def test_folder_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("UNDERTORCH_CACHE", str(tmp_path / "file"))
    assert disk.folder() is None
    assert added() and added()


def test_read_only_folder(entry, monkeypatch):
    def denied(*args, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(disk.tempfile, "NamedTemporaryFile", denied)
    monkeypatch.setattr(os, "utime", denied)
    assert not added(), "what is there is read"
    assert added(ADD.replace("x0[i] + x1[i]", "x1[i] + x0[i]"))
    assert len(entries()) == 1


@own
def test_full_disk(monkeypatch):
    def replace(self, other):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", replace)
    assert added() and added() and not list(disk.folder().iterdir())


@own
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_killed_writer_leaves_nothing_that_is_read():
    child = os.fork()
    if child == 0:
        Path.replace = lambda *_: time.sleep(600)
        try:
            added()
        finally:
            os._exit(1)
    deadline = time.monotonic() + 240
    while not list(disk.folder().glob("*.tmp")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = disk.folder().iterdir()
    assert left.suffix == ".tmp"
    assert added() and not added()
    os.utime(left, (0, 0))
    disk.trim(disk.folder())
    assert not left.exists() and len(entries()) == 1


@own
def test_the_oldest_go_first():
    for i in range(8):
        disk.write(f"entry{i}", bytes(1000))
        os.utime(disk.folder() / f"entry{i}", (i + 1, i + 1))
    assert disk.read("entry0") == bytes(1000)  # and is the newest by that
    disk.trim(disk.folder(), limit=7000)
    assert {path.name for path in entries()} == {"entry0", "entry4", "entry5", "entry6", "entry7"}
    disk.trim(disk.folder(), limit=7000)
    assert len(entries()) == 5


@own
def test_two_threads_compile_the_same_loop():
    results, start = [], threading.Barrier(4)

    def call():
        x, out = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
        start.wait()
        machine.compiled(ADD)(0, 5, x, x, out)
        results.append(out.tolist())

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [[0, 2, 4, 6, 8]] * 4 and len(machine.compiled(ADD).signatures) == 1


# ---- on threads


def test_rows_on_threads(four_threads):
    x = np.random.default_rng(0).random(1_000_003).astype(np.float32)
    out = np.empty_like(x)
    assert machine.in_rows(machine.compiled(ADD), x.size, x, x, out) is None
    np.testing.assert_array_equal(out, x + x)


def test_sums_do_not_depend_on_threads(four_threads):
    x = np.random.default_rng(0).random(1_000_003).astype(np.float32)
    results = []
    for n in (1, 2, 3, 4):
        engine.set_num_threads(n)
        results.append(machine.in_rows(machine.compiled(SUM), x.size, x))
    assert len(set(results)) == 1 and results[0][1] == x.size
    np.testing.assert_allclose(results[0][0], x.sum(dtype=np.float64), rtol=1e-5)


def test_arrays_are_added_up(four_threads):
    text = """def loop(first, last, x0):
    sums = zeros(x0.shape[1], float64)
    for r in range(first, last):
        for c in range(x0.shape[1]):
            sums[c] += x0[r, c]
    return (sums, last - first)
"""
    x = np.random.default_rng(0).random((30_001, 7))
    sums, rows = machine.in_rows(machine.compiled(text), len(x), x)
    assert rows == len(x)
    np.testing.assert_allclose(sums, x.sum(0))


def test_few_rows_are_one_part(monkeypatch):
    monkeypatch.setattr(threads, "on_threads", None)
    assert machine.in_rows(machine.compiled(SUM), 3, np.ones(3, np.float32)) == (3.0, 3)
    assert machine.in_rows(machine.compiled(SUM), 0, np.ones(0, np.float32)) == (0.0, 0)


def test_errors_come_from_each_part(four_threads):
    text = ADD.replace("        out0", "        if x0[i] > 5: raise IndexError('index out of range')\n        out0")
    for wrong in (0, 1_000_002):
        x = np.zeros(1_000_003, np.float32)
        x[wrong] = 9
        with pytest.raises(IndexError, match="index out of range"):
            machine.in_rows(machine.compiled(text), x.size, x, x, x.copy())


def test_several_callers_at_once(four_threads):
    loop = machine.compiled(SUM)
    x = [np.full(500_000, i, np.float32) for i in range(5)]
    wrong = []

    def call(i):
        wrong.extend(i for _ in range(30) if machine.in_rows(loop, 500_000, x[i]) != (500_000.0 * i, 500_000))

    callers = [threading.Thread(target=call, args=(i,)) for i in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


@pytest.mark.parametrize("early", [True, False])
def test_an_interrupt_waits_for_the_other_thread(early):
    main, ended, begun = threading.current_thread(), [], threading.Barrier(2)

    def work():
        begun.wait(timeout=240)
        if threading.current_thread() is not main:
            time.sleep(0.1)  # the other one waits by now
            if early and hasattr(signal, "pthread_kill"):
                signal.pthread_kill(main.ident, signal.SIGINT)  # wakes it
            else:
                signal.raise_signal(signal.SIGINT)  # is seen when the wait is over
            time.sleep(0.3)
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        threads.on_threads(work, 2)
    assert ended == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_fork(four_threads):
    x = np.ones(500_000, np.float32)
    loop = machine.compiled(SUM)
    assert machine.in_rows(loop, x.size, x) == (500_000.0, 500_000)
    child = os.fork()
    if child == 0:
        signal.alarm(240)
        right = machine.in_rows(loop, x.size, x) == (500_000.0, 500_000) and len(threads.helpers) > 0
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert machine.in_rows(loop, x.size, x) == (500_000.0, 500_000)


# ---- what is said meanwhile


class Stream(list):
    terminal = False
    isatty = lambda self: self.terminal  # noqa: E731
    write = list.append

    def flush(self):
        pass


@pytest.mark.parametrize("terminal", [False, True])
def test_progress(monkeypatch, terminal):
    from engine.compiler import progress

    monkeypatch.delenv("UNDERTORCH_COMPILE_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "LONG", 0.01)
    monkeypatch.setattr(progress, "AGAIN", 0.01)
    monkeypatch.setattr(sys, "stderr", stream := Stream())
    stream.terminal = terminal
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    told = progress.Progress()
    loops = [Distribution(), Distribution()]
    for loop in loops:
        told.wanted(loop)
    for number, loop in enumerate(loops, start=1):
        told.begin()
        end = time.monotonic() + 120
        while f"loop {number}" not in told.shown and time.monotonic() < end:
            time.sleep(0.01)
        told.end(loop)
    if terminal:
        assert stream[0] == "\rcompile: writing machine code, loop 1 of about 2 ... 0 s"
        assert any("loop 2 of about 2" in line for line in stream) and stream[-1].strip() == ""
    else:
        assert stream == ["compile: writing machine code, loop 1 of about 2 ... 0 s\n"]


def test_nothing_is_said_of_what_is_fast(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := Stream())
    from engine.compiler import progress

    monkeypatch.setattr(progress, "LONG", 600)
    told = progress.Progress()
    told.begin()
    told.end(Distribution())
    assert stream == []
