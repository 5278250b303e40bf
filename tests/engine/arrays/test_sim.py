"""The simulated device's allocator and counters, ``engine.device``, and what there is without a GPU."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.arrays.devices import draws
from engine.arrays.devices.allocator import KIB, MIB, Allocator

ROOT = Path(__file__).parents[3]
NO_GPU = pytest.mark.skipif(engine.cuda.is_available(), reason="there is a GPU here")


# ---- the allocator: segments, blocks and numbers as PyTorch documents them for CUDA


@pytest.mark.parametrize("asked, allocated, reserved", [
    (1, 512, 2 * MIB), (512, 512, 2 * MIB), (513, 1024, 2 * MIB), (MIB, MIB, 2 * MIB), (MIB + 1, MIB + 512, 20 * MIB),
    (10 * MIB - 1, 10 * MIB, 10 * MIB), (9 * MIB, 9 * MIB, 20 * MIB), (15 * MIB + 1, 16 * MIB, 16 * MIB),
])  # fmt: skip
def test_sizes_are_rounded_up_and_reserved_in_segments(asked, allocated, reserved):
    a = Allocator()
    block = a.allocate(asked)
    assert (a.allocated, a.reserved) == (allocated, reserved)
    a.free(block)
    assert (a.settled().allocated, a.reserved, a.max_allocated) == (0, reserved, allocated)
    a.empty_cache()
    assert a.reserved == 0 and a.max_reserved == reserved


def test_nothing_takes_no_memory():
    a = Allocator()
    assert a.allocate(0) is None and a.reserved == 0


def test_a_freed_block_serves_the_next_request():
    a = Allocator()
    a.free(a.allocate(3 * KIB))
    a.allocate(2 * KIB)
    assert (a.allocated, a.reserved, a.counts["segments"]) == (2 * KIB, 2 * MIB, 1)


def test_neighbours_join_in_any_order():
    for order in ((0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)):
        a = Allocator()
        blocks = [a.allocate(600 * KIB) for _ in range(3)]
        for i in order:
            a.free(blocks[i])
        assert [b.size for b in a.settled().cache] == [2 * MIB]


def test_a_segment_in_use_is_not_given_back():
    a = Allocator()
    first, second = a.allocate(MIB), a.allocate(MIB)
    a.free(first)
    a.empty_cache()
    assert (a.allocated, a.reserved) == (MIB, 2 * MIB)
    a.free(second)
    a.empty_cache()
    assert a.reserved == 0


def test_the_cache_is_given_up_before_memory_is_out():
    a = Allocator(capacity=40 * MIB)
    a.free(a.allocate(30 * MIB))
    a.allocate(32 * MIB)
    assert (a.reserved, a.counts["retries"], a.counts["ooms"]) == (32 * MIB, 1, 0)


def test_fragments_that_are_each_too_small_do_not_help():
    a = Allocator(capacity=20 * MIB)
    blocks = [a.allocate(4 * MIB) for _ in range(5)]
    for b in blocks[::2]:
        a.free(b)
    with pytest.raises(engine.OutOfMemoryError):
        a.allocate(8 * MIB)
    assert a.reserved - a.allocated == 12 * MIB


def test_the_error_says_what_is_in_use_as_cudas_does():
    a = Allocator(capacity=32 * MIB)
    a.allocate(21 * MIB + 5)
    with pytest.raises(engine.OutOfMemoryError) as error:
        a.allocate(20 * MIB)
    assert str(error.value) == (
        "sim out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 32.00 MiB of which 10.00 MiB is "
        "free. Of the allocated memory 22.00 MiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
        "unallocated."
    )


def test_blocks_never_overlap_and_all_is_accounted_for():
    rng = np.random.default_rng(0)
    a, held = Allocator(capacity=256 * MIB), []
    for _ in range(600):
        if held and rng.random() < 0.5:
            a.free(held.pop(rng.integers(len(held))))
        else:
            held.append(a.allocate(int(2 ** rng.uniform(1, 24))))
        free = sum(b.size for b in a.settled().cache)
        told = [b["size"] for s in a.snapshot() for b in s["blocks"] if b["state"] == "inactive"]
        assert sorted(told) == sorted(b.size for b in a.cache)
        assert sum(b.size for b in held) == a.allocated and a.allocated + free == a.reserved
        assert not any(b.free for b in held) and all(b.free for b in a.cache)
    for b in held:
        a.free(b)
    a.empty_cache()
    assert a.reserved == a.allocated == 0


def test_a_snapshot_shows_each_segment_from_its_beginning_to_its_end():
    a = Allocator()
    first, second, _ = (a.allocate(n * MIB) for n in (6, 5, 2))
    a.free(first)
    small = a.allocate(700)

    def told():
        return [
            (s["segment_type"], s["total_size"] // MIB, s["allocated_size"], [b["state"][0] for b in s["blocks"]])
            for s in a.snapshot()
        ]

    assert told() == [("large", 20, 7 * MIB, ["i", "a", "a", "i"]), ("small", 2, KIB, ["a", "i"])]
    (piece, _) = a.snapshot()[1]["blocks"]
    assert (piece["size"], piece["requested_size"]) == (1024, 700)
    a.free(small)
    a.free(second)  # joins with the free one before it
    a.empty_cache()
    assert told() == [("large", 20, 2 * MIB, ["i", "a", "i"])]


def test_torchs_own_reader_of_snapshots_reads_the_engines():
    reader = pytest.importorskip("torch.cuda._memory_viz")
    a = Allocator()
    for n in (8, 8, 30):
        a.allocate(n * MIB)
    told = reader.segsum({"segments": a.snapshot()})
    assert "[8] 20.0MiB allocated, 4.0MiB" in told and "[aa] 30.0MiB allocated, 0.0B free" in told
    assert "total_reserved: 50.0MiB" in told and "total_allocated: 46.0MiB" in told


# ---- engine.sim


@pytest.fixture
def sim():
    engine.sim.empty_cache()
    engine.sim.reset_peak_memory_stats()
    before = engine.sim.mem_get_info()[1]
    yield engine.sim
    engine.sim.set_capacity(before)


def test_tensors_are_counted_while_they_live(sim):
    start = sim.memory_allocated()
    x = engine.zeros(1000, 1000, device="sim")
    assert sim.memory_allocated() - start == 4_000_256
    y = x[10:].t()
    x2 = x.reshape(-1).detach()
    assert sim.memory_allocated() - start == 4_000_256
    del x, x2
    assert sim.memory_allocated() - start == 4_000_256
    del y
    assert sim.memory_allocated() == start and sim.memory_reserved() >= 4_000_256
    assert sim.max_memory_allocated() - start == 4_000_256
    sim.reset_peak_memory_stats()
    assert sim.max_memory_allocated() == start


def test_a_peak_that_begins_anew_does_not_count_what_is_gone(sim):
    start = sim.memory_allocated()
    x = engine.zeros(1000, device="sim")
    del x
    sim.reset_peak_memory_stats()
    assert sim.max_memory_allocated() == start


def test_backward_frees_what_forward_saved(sim):
    x = engine.randn(256, 256, device="sim", requires_grad=True)
    start = sim.memory_allocated()
    y = x.exp().sin().exp().sum()
    assert sim.memory_allocated() - start == 2 * 262144 + 512  # two results of exp: sin saved one as its input, too
    y.backward()
    assert sim.memory_allocated() - start == 262144 + 512  # the gradient and the result


def test_memory_is_out_where_the_capacity_ends_and_the_program_goes_on(sim):
    sim.set_capacity(sim.memory_reserved() + 64 * MIB)
    with pytest.raises(engine.OutOfMemoryError, match=r"^sim out of memory. Tried to allocate 68.00 MiB. GPU 0 has a"):
        engine.zeros(17, 1 << 20, device="sim")
    assert engine.zeros(8, 1 << 20, device="sim").sum().item() == 0
    assert engine.sim.OutOfMemoryError is engine.cuda.OutOfMemoryError is engine.OutOfMemoryError
    assert issubclass(engine.OutOfMemoryError, RuntimeError) and engine.OutOfMemoryError.__module__ == "torch"


def test_the_capacity_is_not_set_below_what_is_reserved(sim):
    x = engine.zeros(1 << 20, device="sim")
    with pytest.raises(ValueError, match="bytes are reserved: delete tensors first"):
        sim.set_capacity(x.nbytes - 1)


def test_reads_from_the_host_are_counted(sim):
    x = engine.arange(4.0, device="sim")
    for read in (lambda: x[0].item(), lambda: float(x[1]), lambda: bool(x[0] > 0), lambda: x.tolist(), x.cpu,
                 lambda: repr(x), lambda: x.numpy(force=True), lambda: int(x[2]), lambda: x[0] in x):  # fmt: skip
        before = sim.transfers()
        read()
        assert sim.transfers() == before + 1
    x * 2 + x.sum()
    assert sim.transfers() == before + 1


def test_the_namespace_has_what_torch_cuda_has(sim):
    assert sim.is_available() and sim.device_count() == 1 and sim.current_device() == 0 and sim.is_initialized()
    assert sim.get_device_name() == sim.get_device_properties("sim:0").name == "Simulated device"
    free, total = sim.mem_get_info()
    assert free == total - sim.memory_reserved() and total == sim.get_device_properties(0).total_memory
    stats = sim.memory_stats()
    assert stats["allocated_bytes.all.current"] == sim.memory_allocated() and stats["num_ooms"] >= 0
    assert "Allocated memory" in sim.memory_summary()
    with sim.device(0), sim.stream(sim.Stream()):
        sim.current_stream().wait_stream(sim.default_stream())
    sim.synchronize()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        sim.get_device_name(1)
    with pytest.raises(ValueError, match="^Expected a sim device, but got: cpu"):
        sim.synchronize("cpu")


def test_events_measure_time(sim):
    start, end = sim.Event(enable_timing=True), sim.Event(enable_timing=True)
    with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time."):
        start.elapsed_time(end)
    start.record()
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    with pytest.raises(ValueError, match="must be created with argument 'enable_timing=True'"):
        start.elapsed_time(sim.Event())


def test_arrays_of_the_device_refuse_numpy():
    x = engine.ones(3, device="sim").array
    for call in (lambda: np.exp(x), lambda: np.shape(x), lambda: np.concatenate([x, x]), lambda: np.asarray(x)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(RuntimeError, match="^Expected all tensors to be on the same device, but found at least two"):
        np.ones(3) + x


@pytest.mark.parametrize("join", [engine.cat, engine.stack])
def test_tensors_of_two_devices_are_not_joined(join):
    here, there = engine.ones(3), engine.ones(3, device="sim")
    for tensors in ([here, there], [there, here]):
        with pytest.raises(RuntimeError, match="^Expected all tensors to be on the same device, but found at least"):
            join(tensors)


@pytest.mark.parametrize("masked", [
    lambda x, m: x.masked_fill(m, 0), lambda x, m: x.masked_fill_(m, 0), lambda x, m: x.masked_select(m),
    lambda x, m: x.masked_fill(m, engine.tensor(2.0)), lambda x, m: x.masked_scatter(m, x),
    lambda x, m: engine.where(m, x, x),
])  # fmt: skip
def test_a_mask_is_on_the_device_of_what_it_masks(masked):
    for where, other in (("cpu", "sim"), ("sim", "cpu")):
        with pytest.raises(RuntimeError, match="to be on the same device"):
            masked(engine.ones(3, device=where), engine.ones(3, dtype=bool, device=other))


def test_the_random_stream_is_philox():
    # known answers of Philox4x32-10 from Random123: counter and key zero; counter 0x...fe of key 0xff... by its C code
    assert [hex(w) for w in draws.philox(0, 0, 1)] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    assert [hex(w) for w in draws.philox(2**64 - 1, 2**64 - 2, 1)] == [
        "0xc3a19c70",
        "0x1cc25234",
        "0x5540df20",
        "0x99da46ae",
    ]
    assert draws.philox(7, 5, 3)[4:8].tolist() == draws.philox(7, 6, 1).tolist()


# ---- engine.device


DEVICES = [
    "device('cpu')", "device('cuda')", "device('cuda:0')", "device('cuda', 1)", "device(type='cuda', index=1)",
    "str(device('cuda:3'))", "device('cpu').index", "device('cuda') == device('cuda:0')", "device('cuda:01')",
    "device('cuda:0') == device('cuda', 0)", "hash(device('cuda:0')) == hash(device('cuda', 0))", "device('cuda:x')",
    "device('cuda:-1')", "device('cuda:')", "device('cuda:0', 1)", "device('cpu', -1)", "device('')", "device('cpu:0')",
    "device(device('cuda:1'))", "device('cpu') != 'cpu'", "ones(1).device", "ones(1, device='cpu:0').device",
    "ones(1).to('cpu:0').device", "ones(1).is_cuda", "ones(1).get_device()", "ones(1).is_pinned()",
    "get_default_device()", "Generator('cpu').device", "Generator(None).device",
]  # fmt: skip
WITHOUT_CUDA = [
    "device(0)", "ones(1).cuda()", "ones(1).to('cuda')", "ones(1).to('cuda:1')", "zeros(2, device='cuda')",
    "tensor([1.0], device='cuda')", "randperm(3, device='cuda')", "nn.Linear(2, 2).cuda()", "ones(1).cuda('cpu')",
    "nn.Linear(2, 2, device='cuda')", "cuda.is_available()", "cuda.device_count()", "cuda.current_device()",
    "cuda.get_device_name()", "cuda.get_device_properties(0)", "cuda.synchronize()", "cuda.memory_allocated()",
    "cuda.max_memory_reserved()", "cuda.mem_get_info()", "cuda.empty_cache()", "cuda.manual_seed(1)",
    "cuda.is_initialized()", "cuda.Stream()", "cuda.get_rng_state()", "cuda.current_stream()", "cuda.init()",
    "ones(1).pin_memory()", "cuda.OutOfMemoryError is OutOfMemoryError",
]  # fmt: skip


def outcome(library, program):
    names = compile(program, "<program>", "eval").co_names
    try:
        return repr(eval(program, {}, {name: getattr(library, name) for name in names if hasattr(library, name)}))
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]


@pytest.mark.parametrize("program", DEVICES + [pytest.param(p, marks=NO_GPU) for p in WITHOUT_CUDA])
def test_devices_as_pytorch(program):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this PyTorch has a GPU")
    assert outcome(engine, program) == outcome(torch, program)


@NO_GPU
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:1"])
def test_a_generator_for_a_gpu_that_is_not_there_is_refused_as_by_pytorch(device):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this PyTorch has a GPU")
    said = r"^Cannot get CUDA generator without ATen_cuda library\. "
    for library in (torch, engine):
        with pytest.raises(RuntimeError, match=said):
            library.Generator(device)


def test_an_unknown_device():
    with pytest.raises(
        RuntimeError, match="^Expected one of cpu, cuda, sim device type at start of device string: foo"
    ):
        engine.device("foo")
    with pytest.raises(TypeError):
        engine.device(None)


# ---- without a GPU, and at no cost


def test_importing_the_engine_loads_no_device():
    program = (
        "import sys, engine; engine.ones(2) + 1; print([m for m in sys.modules if 'cupy' in m or 'devices.' in m])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert out.strip() == "[]"


def test_cupy_that_cannot_be_imported_is_no_gpu(tmp_path):
    (tmp_path / "cupy.py").write_text("raise ImportError('libcuda.so.1 is missing')", encoding="utf-8")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import engine; "
        "print(engine.cuda.is_available(), engine.cuda.device_count(), engine.ones(2).sum().item())"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert out.split() == ["False", "0", "2.0"]


def test_a_program_that_ends_with_tensors_on_the_device_says_nothing():
    program = "import engine; x = [engine.rand(n + 1, 99, device='sim') for n in range(50)]; y = x[1] @ x[2].t()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == done.stderr == ""


WITH_GPU = [
    "engine/arrays/test_devices.py",
    "engine/arrays/test_device_kernels.py",
    "benchmarks/test_device_benchmarks.py",
    "lessons/test_device_lessons.py",
    "engine/compiler/test_compile_devices.py",
]


@pytest.mark.slow
@pytest.mark.parametrize(("files", "chosen"), [(WITH_GPU, "not slow"), (WITH_GPU[3:4], "slow")])
def test_what_is_written_for_cupy_runs_with_numpy_under_its_names(files, chosen):
    """The tests that need a GPU, but for first derivatives, with ``stand_in_cupy`` in place of CuPy."""
    command = [sys.executable, *"-m pytest -v --color=no -p stand_in_cupy -p no:cacheprovider -m".split()]
    command += [f"gpu and {chosen}", *(f"tests/{file}" for file in files)]
    command += ["-k", "(not row or second) and not functions_made"]  # second derivatives take in the first
    path = {"PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment() | path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    passed = {line.partition("::")[0] for line in done.stdout.splitlines() if " PASSED" in line}
    assert passed == {f"tests/{file}" for file in files}


def environment():
    import os

    return dict(os.environ)


def test_cupy_has_every_function_that_the_simulated_device_has_served():
    cupy = pytest.importorskip("cupy")
    from engine.arrays.devices import sim

    lacking = [name for name in vars(sim.xp) if not name.startswith("_") and not hasattr(cupy, name)]
    assert set(lacking) <= {"as_strided", "apart", "philox", "special"}  # devices/cuda.py has these
    assert all(not hasattr(cupy, name) for name in sim.LACKING.split())


# What is computed by NumPy itself: numbers and lists that a program gave, the geometry of windows, memory of the host.
# All else that is computed with arrays is asked of the array's own module.
ON_THE_HOST = {
    "core/tensor.py": {"asarray"}, "ops/writes.py": {"asarray"},
    "ops/creation.py": {"array", "asarray", "arange", "from_dlpack", "full", "where", "empty",
                        "nonzero", "ones", "stack", "tril", "triu"},  # the places of a triangle
    "ops/rows.py": {"asarray"}, "ops/index.py": {"asarray", "zeros", "broadcast_shapes", "indices"},
    "ops/linalg.py": {"linalg"},  # the exception for singular matrices
    "optim/algorithms.py": {"frombuffer", "empty"},  # steps that are loops are the host's
}  # fmt: skip
TYPES = {
    "bool_", "dtype", "float16", "float32", "float64", "floating", "generic", "inf", "int32", "int64", "integer",
    "longdouble", "nan", "ndarray", "number", "uint8",
}  # fmt: skip


def calls_of_numpy(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
            yield node.attr


def test_operations_call_numpy_only_for_what_is_on_the_host():
    package = ROOT / "engine"
    files = [
        package / "core" / f"{name}.py"
        for name in ("graph", "views", "record", "backward", "tensor", "versions", "linear")
    ]
    files += [p for part in ("ops", "optim", "nn") for p in (package / part).glob("*.py")]
    found = {p.relative_to(package).as_posix(): set(calls_of_numpy(p)) - TYPES for p in files}
    assert {name: calls for name, calls in found.items() if calls} == ON_THE_HOST
