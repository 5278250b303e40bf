"""What lesson 17 claims of memory: on the simulated device, for more than it shows; what PyTorch says, from PyTorch."""

import gc
import re
import weakref
from pathlib import Path

import pytest
from drawn import some_of

import engine
from course.base.notebooks import ROOT
from course.judging import exercises
from engine import nn, sim
from engine.arrays.devices import allocator
from engine.utils.checkpoint import checkpoint

MIB = 2**20
LEFT, four = exercises.checks("17").LEFT, exercises.checks("17").four
ROOM = 144
LESSON = (ROOT / "course/lessons/17_device_memory/lesson.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def device():
    """The simulated device, with the lesson's room beside what other tests hold."""
    gc.collect()
    sim.empty_cache()
    before = sim.mem_get_info()[1]
    sim.set_capacity(sim.memory_reserved() + ROOM * MIB)
    yield
    gc.collect()
    sim.empty_cache()
    sim.set_capacity(before)


def network(seed=0):
    engine.manual_seed(seed)
    layers = [nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(16)]
    return nn.Sequential(*layers, nn.Linear(256, 10))


def batch(n, device="sim", seed=1):
    engine.manual_seed(seed)
    return engine.randn(n, 256).to(device), engine.randint(0, 10, (n,)).to(device)


def loss_of(net, x, answers):
    return nn.functional.cross_entropy(net(x), answers)


def whole(net, x, answers):
    loss_of(net, x, answers).backward()


def in_parts(net, x, answers, size=1024):
    for some, right in zip(x.split(size), answers.split(size), strict=True):
        (loss_of(net, some, right) * (len(some) / len(x))).backward()


def with_checkpoints(net, x, answers, layers=4):
    for at in range(0, 16, layers):
        x = checkpoint(net[at : at + layers], x, use_reentrant=False)
    loss_of(net[16], x, answers).backward()


def in_16_bits(net, x, answers):
    with engine.autocast(x.device.type, dtype=engine.bfloat16):
        loss = loss_of(net, x, answers)
    loss.backward()


class Training:
    """The lesson's network after one step of Adam."""

    def __init__(self):
        self.net = network().to("sim")
        self.optimizer = engine.optim.Adam(self.net.parameters())
        self.step(1024)

    def step(self, n, way=whole, **options):
        x, answers = batch(n)
        try:
            way(self.net, x, answers, **options)
            self.optimizer.step()
        finally:
            self.optimizer.zero_grad()

    def fits(self, *args, **options):
        try:
            self.step(*args, **options)
        except engine.OutOfMemoryError:
            return False
        return True


def grown(before):
    return (sim.memory_allocated() - before) / MIB


# The whole fails, and three ways fit


def test_the_whole_of_8192_does_not_fit_and_each_of_the_three_ways_does():
    training = Training()
    fitting = {way.__name__: training.fits(8192, way) for way in (whole, in_parts, with_checkpoints, in_16_bits)}
    assert fitting == {"whole": False, "in_parts": True, "with_checkpoints": True, "in_16_bits": True}


@pytest.mark.slow
@pytest.mark.parametrize("first", [in_parts, with_checkpoints, in_16_bits])
def test_that_does_not_depend_on_what_was_in_the_cache_before(first):
    training = Training()
    sim.empty_cache()
    assert training.fits(8192, first) and not training.fits(8192) and training.fits(8192, first)
    sim.empty_cache()
    assert not training.fits(8192) and training.fits(4096)


@pytest.mark.slow
def test_of_groups_of_layers_four_alone_fit():
    training = Training()
    assert [layers for layers in (1, 2, 4, 8, 16) if training.fits(8192, with_checkpoints, layers=layers)] == [4]


@pytest.mark.parametrize("seed", some_of(3, quick=1))
def test_parts_and_checkpoints_give_the_gradient_of_the_whole_and_16_bits_nearly(seed):
    gradients = []
    for way in (whole, in_parts, with_checkpoints, in_16_bits):
        net = network(seed)
        way(net, *batch(512, "cpu", seed), **({"size": 128} if way is in_parts else {}))
        gradients.append(net[0][0].weight.grad)
    off = [((g - gradients[0]).norm() / gradients[0].norm()).item() for g in gradients]
    assert off[1] < 1e-5 and off[2] < 1e-5 and 1e-4 < off[3] < 0.03


def test_in_parts_the_peak_grows_by_the_batch_alone():
    training, peaks = Training(), []
    for n in (4096, 8192):
        sim.reset_peak_memory_stats()
        training.step(n, in_parts)
        peaks.append(sim.max_memory_allocated())
    assert (peaks[1] - peaks[0]) / MIB == pytest.approx(4, abs=0.1)  # 4096 examples of 256 numbers


def test_16_bits_save_less_than_half():
    training, peaks = Training(), []
    for way in (whole, in_16_bits):
        gc.collect()
        before = sim.memory_allocated()
        sim.reset_peak_memory_stats()
        training.step(4096, way)
        peaks.append(sim.max_memory_allocated() - before)
    assert 0.5 < peaks[1] / peaks[0] < 0.75


# Counted beforehand


@pytest.mark.parametrize("n", [256, 1024, 2048])
def test_what_a_step_takes_is_what_was_counted(n):
    counted = four()(n)
    start = sim.memory_allocated()
    net = network().to("sim")
    assert grown(start) == pytest.approx(counted[0], rel=0.01)
    optimizer = engine.optim.Adam(net.parameters())
    x, answers = batch(n)
    begin = sim.memory_allocated()
    loss = loss_of(net, x, answers)
    assert grown(begin) == pytest.approx(counted[3], rel=0.01)
    loss.backward()
    assert grown(begin) == pytest.approx(counted[1], rel=0.01)
    optimizer.step()
    assert grown(begin) == pytest.approx(counted[1] + counted[2], rel=0.01)
    optimizer.zero_grad()
    assert grown(begin) == pytest.approx(counted[2], rel=0.01)


# What keeps a tensor


def test_the_six_programs_of_the_first_exercise_leave_what_is_said():
    text = (ROOT / "course/lessons/17_device_memory/exercises.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"(?ms)^```python\n(# 1 .*?)^```", text)
    left = []
    for block in shown.split("\n\n"):
        head, *lines = block.splitlines()
        starts = [found.start() for found in re.finditer("#", head)]
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            before = sim.memory_allocated()
            names = {
                "engine": engine,
                "new": lambda **options: engine.zeros(1024, 1024, device="sim", **options),
            }
            exec("\n".join(line[start:end].rstrip() for line in lines), names)
            left.append(round(grown(before)))
            del names
    assert tuple(left) == LEFT


def test_in_the_middle_of_a_line_three_tensors_are_there():
    x = engine.zeros(1024, 1024, device="sim")
    before = sim.memory_allocated() - x.nbytes
    sim.reset_peak_memory_stats()
    y = (x * 2 + 1).tanh()
    assert (sim.max_memory_allocated() - before) / MIB == 12 and y.nbytes == 4 * MIB


def test_one_name_for_all_losses_holds_two_graphs_at_the_peak_and_a_backward_in_the_loop_one():
    net, (x, answers) = network().to("sim"), batch(1024)
    peaks = []
    for backward in (False, True):
        before = sim.memory_allocated()
        sim.reset_peak_memory_stats()
        for _ in range(4):
            loss = loss_of(net, x, answers)
            if backward:
                engine.autograd.grad(loss, [*net.parameters()])
        peaks.append((sim.max_memory_allocated() - before) / MIB)
        del loss
    assert peaks[0] == pytest.approx(32, abs=2) and peaks[1] < 26


def test_a_sum_of_losses_holds_all_graphs_and_numbers_hold_none():
    net, (x, answers) = network().to("sim"), batch(256)
    before, total = sim.memory_allocated(), 0.0
    for _ in range(3):
        total += loss_of(net, x, answers)
    assert grown(before) == pytest.approx(12, abs=0.5)
    del total
    numbers = [loss_of(net, x, answers).item() for _ in range(3)]
    assert grown(before) == 0 and len(numbers) == 3


def test_an_error_holds_the_variables_of_the_function_for_as_long_as_it_is_held():
    def fails():
        made = engine.zeros(1024, 1024, device="sim")
        return made.reshape(3)

    before = sim.memory_allocated()
    try:
        fails()
    except RuntimeError as error:
        del error  # the name alone: in the block Python itself holds it
        assert grown(before) == 4
        sim.empty_cache()
        assert grown(before) == 4
    assert grown(before) == 0


def test_a_circle_is_found_by_collecting_alone():
    class Trainer:
        def __init__(self):
            self.on_end = self.finish

        def finish(self):
            pass

    gc.disable()
    try:
        trainer = Trainer()
        alive = weakref.ref(trainer)
        del trainer
        assert alive() is not None
        gc.collect()
        assert alive() is None
    finally:
        gc.enable()


# Retry


def test_a_retry_in_the_except_block_fails_and_one_outside_succeeds():
    training = Training()
    assert not training.fits(8192) and training.fits(4096)

    def inside():
        try:
            training.step(8192)
        except engine.OutOfMemoryError:
            training.step(4096)

    with pytest.raises(engine.OutOfMemoryError):
        inside()
    gc.collect()
    assert training.fits(4096)


# What PyTorch says


def test_sizes_of_segments_are_those_in_pytorchs_headers():
    torch = pytest.importorskip("torch")
    header = Path(torch.__file__).parent / "include/c10/core/AllocatorConfig.h"
    if not header.is_file():
        pytest.skip("this build of PyTorch has no headers")
    found = dict(re.findall(r"constexpr size_t (\w+) = (\d+);", header.read_text(encoding="utf-8")))
    sizes = {"kMinBlockSize": allocator.ROUND, "kSmallSize": allocator.SMALL, "kSmallBuffer": 2 * MIB}
    sizes |= {"kMinLargeAlloc": allocator.LARGE, "kRoundLarge": 2 * MIB}
    assert {name: int(found[name]) for name in sizes} == sizes


def test_the_sentences_of_pytorchs_message_are_in_it():
    torch = pytest.importorskip("torch")
    library = Path(torch.__file__).parent / "lib/libc10_cuda.so"
    if not library.is_file():
        pytest.skip("this build of PyTorch knows no CUDA")
    inside = library.read_bytes()
    quoted = (
        "Including non-PyTorch memory, this process",
        "If reserved but unallocated memory is large try setting",
        "_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",  # PYTORCH_, and PYTORCH_CUDA_ before that
    )
    told = " ".join(LESSON.replace("\n> ", " ").split())
    for sentence in quoted:
        assert sentence.encode() in inside and sentence in told


def test_the_functions_named_for_pytorch_are_there():
    torch = pytest.importorskip("torch")
    for name in sorted(set(re.findall(r"torch\.cuda\.([\w.]+)\(", LESSON))):
        place = torch.cuda
        for part in name.split("."):
            place = getattr(place, part)
        assert callable(place)
