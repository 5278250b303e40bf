"""The contents of ``torch.cuda``, for any type of device: ``engine.cuda`` and ``engine.sim`` are made of this."""

from contextlib import nullcontext
from types import SimpleNamespace

from .. import devices
from ..running import running, undoing
from .allocator import readable

OutOfMemoryError = devices.OutOfMemoryError


STATISTICS = {  # what ``memory_stats`` calls the numbers of the allocator
    "allocated_bytes.all.current": "allocated", "allocated_bytes.all.peak": "max_allocated",
    "reserved_bytes.all.current": "reserved", "reserved_bytes.all.peak": "max_reserved",
    "requested_bytes.all.current": "requested", "allocation.all.allocated": "allocations",
    "allocation.all.freed": "frees", "segment.all.allocated": "segments", "num_alloc_retries": "retries",
    "num_ooms": "ooms",
}  # fmt: skip


def statistic(title, name):
    """A function that tells one of the numbers of the allocator."""

    def read(self, device=None):
        return self.backend.statistics(self.index(device)).get(name, 0) if self.is_initialized() else 0

    read.__name__ = read.__qualname__ = title
    return read


class Namespace:
    """The functions of one type of device.  Those that need a device raise AssertionError where there is none."""

    def __init__(self, kind):
        self.kind = kind
        kinds = {"namespace": self}
        self.Stream, self.Event, self.device = (type(C.__name__, (C,), kinds) for C in (Stream, Event, device))

    def offers(self):
        """{name: what a program finds under it}"""
        names = [n for n in dir(self) if not n.startswith("_") and n not in ("kind", "offers", "backend", "index")]
        return {n: getattr(self, n) for n in names} | {"OutOfMemoryError": OutOfMemoryError}

    @property
    def backend(self):
        if running.recorder is not None:
            running.recorder.refuse(f"the {self.kind} device is asked or told something")
        return devices.backend_of(self.kind)

    def index(self, device):
        """The number of a device given as a number, a string, a device, or None: the current one."""
        if device is None:
            return self.backend.current()
        if not isinstance(device, int):
            device = devices.device(device)
            if device.type != self.kind:
                raise ValueError(f"Expected a {self.kind} device, but got: {device}")
            device = self.backend.current() if device.index is None else device.index
        self.backend.check(device)
        return device

    # ---- devices

    def is_available(self):
        """Tell whether there is such a device."""
        return self.kind != "cuda" or devices.has_cuda()

    def is_initialized(self):
        """Tell whether a device of this type is in use."""
        return self.kind in devices.backends

    def init(self):
        """Set the device up, which else happens at its first use."""
        _ = self.backend

    def device_count(self):
        """Return the number of devices."""
        return self.backend.count() if self.is_available() else 0

    def current_device(self):
        """The number of the one that ``device(type)`` without a number means."""
        return self.backend.current()

    def set_device(self, device):
        """Choose the current device."""
        self.backend.use(self.index(device))

    def get_device_name(self, device=None):
        """Its name."""
        return self.get_device_properties(device).name

    def get_device_capability(self, device=None):
        """(major, minor): the generation of the GPU."""
        known = self.get_device_properties(device)
        return known.major, known.minor

    def get_device_properties(self, device=None):
        """Return ``name``, ``major``, ``minor``, ``total_memory`` and ``multi_processor_count`` of a device."""
        return Properties(**self.backend.describe(self.index(device)))

    def is_bf16_supported(self, including_emulation=True):
        """Tell whether the device computes in bfloat16."""
        return self.is_available()

    def synchronize(self, device=None):
        """Wait until all work on it is done."""
        self.backend.synchronize(self.index(device))

    def current_stream(self, device=None):
        """The stream that operations go to."""
        return self.Stream(of=self.backend.current_stream())

    def default_stream(self, device=None):
        """The stream that they go to outside of ``with stream(...)``."""
        return self.Stream(of=self.backend.default_stream())

    def stream(self, stream):
        """In the block, operations go to a stream; None: no change."""
        return nullcontext() if stream is None else stream.own

    # ---- memory, in bytes

    memory_allocated = statistic("memory_allocated", "allocated")
    memory_reserved = statistic("memory_reserved", "reserved")
    max_memory_allocated = statistic("max_memory_allocated", "max_allocated")
    max_memory_reserved = statistic("max_memory_reserved", "max_reserved")

    def reset_peak_memory_stats(self, device=None):
        """Let the peaks be what is in use now."""
        self.backend.reset_peaks(self.index(device))

    def memory_stats(self, device=None):
        """Counts under PyTorch's names."""
        counted = self.backend.statistics(self.index(device)) if self.is_initialized() else {}
        return {title: counted[name] for title, name in STATISTICS.items() if name in counted}

    def memory_snapshot(self):
        """The segments that are reserved, and the blocks that each is cut into."""
        return self.backend.snapshot() if self.is_initialized() else []

    def memory_summary(self, device=None, abbreviated=False):
        """A table of what is allocated and reserved."""
        index, stats = self.index(device), self.memory_stats(device)
        rule, line = "|" + "=" * 75 + "|", "|" + "-" * 75 + "|"
        rows = [
            f"| {title:<22} | {readable(stats.get(f'{key}.all.current', 0)):>22} | "
            f"{readable(stats.get(f'{key}.all.peak', 0)):>22}  |"
            for title, key in (("Allocated memory", "allocated_bytes"), ("GPU reserved memory", "reserved_bytes"))
        ]
        title = f"PyTorch {self.kind.upper()} memory summary, device ID {index}"
        ooms, retries = stats.get("num_ooms", 0), stats.get("num_alloc_retries", 0)
        counts = f"{self.kind.upper()} OOMs: {ooms:<12} | cudaMalloc retries: {retries}"
        head = f"| {'Metric':<22} | {'Cur Usage':>22} | {'Peak Usage':>22}  |"
        return "\n".join([rule, f"|{title:^75}|", line, f"|{counts:^75}|", rule, head, line, *rows, rule]) + "\n"

    def mem_get_info(self, device=None):
        """(free, total): what the device has."""
        return self.backend.free_and_total(self.index(device))

    def empty_cache(self):
        """Give what is reserved but not in use back to the device."""
        if self.is_initialized():
            self.backend.empty_cache()

    # ---- random numbers

    def manual_seed(self, seed):
        """Seed the generator of the device; where there is no device, nothing happens."""
        if self.is_available():
            self.backend.random.default_generator.manual_seed(int(seed))

    manual_seed_all = manual_seed

    def seed(self):
        """Seed it with a number that the system chooses."""
        if self.is_available():
            self.backend.random.default_generator.seed()

    seed_all = seed

    def initial_seed(self):
        """Its seed."""
        return self.backend.random.default_generator.initial_seed()

    def get_rng_state(self, device=None):
        """The state of its generator, as a tensor of bytes in host memory."""
        return self.backend.random.default_generator.get_state()

    def set_rng_state(self, new_state, device=None):
        """Go on from a state."""
        self.backend.random.default_generator.set_state(new_state)


class Properties(SimpleNamespace):
    """The properties of a device."""

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count})"
        )


class device(undoing):
    """In the block, another device of this type is the current one."""

    namespace: Namespace

    def __init__(self, device):
        self.wanted = device

    def __enter__(self):
        self.before = self.namespace.current_device()
        super().__enter__()
        self.namespace.set_device(self.wanted)

    def undo(self):
        self.namespace.set_device(self.before)


class Wrapper:
    """A stream or an event around the device's own."""

    namespace: Namespace

    def synchronize(self):
        """Wait until its work is done, or the event has come."""
        self.own.synchronize()

    def query(self):
        """Tell whether the stream's work is done, or the event has been reached."""
        return self.own.done


class Stream(Wrapper):
    """A queue in which a device does its work in order."""

    def __init__(self, device=None, priority=0, *, of=None):
        if not self.namespace.is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        self.own = self.namespace.backend.Stream(non_blocking=True) if of is None else of
        self.device = devices.device(self.namespace.kind, self.namespace.index(device))

    def record_event(self, event=None):
        """Record an event in it; returns the event."""
        event = self.namespace.Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        """Let its later work wait for an event."""
        self.own.wait_event(event.own)

    def wait_stream(self, stream):
        """Let its later work wait for what is in another stream now."""
        self.wait_event(stream.record_event())


class Event(Wrapper):
    """A moment in the work of a device: ``start.elapsed_time(end)`` in milliseconds."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        self.timed, self.recorded = enable_timing, False
        self.own = self.namespace.backend.Event(block=blocking, disable_timing=not enable_timing)

    def record(self, stream=None):
        """Mark this moment in a stream, by default the current one."""
        self.recorded = True
        self.own.record(None if stream is None else stream.own)

    def wait(self, stream=None):
        """Let the later work of a stream, by default the current one, wait for it."""
        (self.namespace.current_stream() if stream is None else stream).wait_event(self)

    def elapsed_time(self, end_event):
        """The milliseconds from this event to another."""
        if not self.timed or not end_event.timed:
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not self.recorded or not end_event.recorded:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return self.namespace.backend.elapsed(self.own, end_event.own)
