"""What each rank of ``benchmarks.machines`` does: the first word says what, the second with which library.

Rank 0 prints a line of JSON.
"""

import importlib
import json
import queue
import sys
import threading
import time

what, library, *words = sys.argv[1:]
t = importlib.import_module(library)
d = importlib.import_module(f"{library}.distributed")
nn = importlib.import_module(f"{library}.nn")
importlib.import_module(f"{library}.nn.parallel")
DDP = nn.parallel.DistributedDataParallel
SIZES = {"4 kB": 1 << 10, "1 MB": 1 << 18, "64 MB": 1 << 24}  # elements of float32


def seconds(call, rounds, before=lambda: None):
    """The median time of a call, which all ranks begin together."""
    times = []
    for i in range(rounds + 2):
        before()
        d.barrier()
        start = time.perf_counter()
        call()
        if i > 1:
            times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def all_reduce():
    """The three sizes of the issue: {size: seconds}."""
    found = {}
    for name, n in SIZES.items():
        x = t.ones(n)
        found[name] = seconds(lambda x=x: d.all_reduce(x), 200 if n < 1e5 else 30 if n < 1e6 else 7, x.zero_)
    return found


def step(parallel):
    """A step of training of 784-512-512-10 with a batch of 128 a rank: seconds."""
    t.manual_seed(0)
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    net = DDP(net) if parallel else net
    optimizer = t.optim.SGD(net.parameters(), lr=0.01)
    x, y = t.rand(128, 784), t.randint(0, 10, (128,))

    def once():
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return once


def steps():
    """With and without DistributedDataParallel, step by step in turns: the medians."""
    ways = {"ddp": step(True), "alone": step(False)}
    times = {name: [] for name in ways}
    for i in range(60):
        for name, way in ways.items():
            d.barrier()
            start = time.perf_counter()
            way()
            if i > 9:
                times[name].append(time.perf_counter() - start)
    return {name: sorted(found)[len(found) // 2] for name, found in times.items()}


def ping_pong():
    """{elements: seconds of one message} between ranks 0 and 1, and of a collective."""
    found = {"message": {}, "collective": {}}
    for n in (1, 1 << 8, 1 << 12, 1 << 15, 1 << 18, 1 << 20):
        x, rounds = t.ones(n), 60 if n < 1e5 else 15

        def there_and_back(x=x):
            if d.get_rank() == 0:
                d.send(x, 1)
                d.recv(x, 1)
            elif d.get_rank() == 1:
                d.recv(x, 0)
                d.send(x, 0)

        found["message"][4 * n] = seconds(there_and_back, rounds) / 2
        found["collective"][4 * n] = seconds(lambda x=x: d.all_reduce(x), rounds, x.zero_)
    return found


# ---- a network that is slower than this computer: each message comes late, as its size and the network have it


class Network:
    """Messages between ranks that take alpha seconds and beta seconds a byte; a rank sends one after the other."""

    def __init__(self, alpha, beta, group=None):
        self.alpha, self.beta, self.group, self.free = alpha, beta, group, 0.0

    def send(self, x, peer):
        """Returns at once; the time of arrival travels along."""
        begins = max(time.monotonic(), self.free)
        self.free = begins + 4 * x.numel() * self.beta
        stamp = t.tensor([self.free + self.alpha], dtype=t.float64)
        return [d.isend(stamp, peer, self.group), d.isend(x.contiguous(), peer, self.group)]

    def receive(self, x, peer):
        stamp = t.zeros(1, dtype=t.float64)
        d.recv(stamp, peer, self.group)
        d.recv(x, peer, self.group)
        time.sleep(max(stamp.item() - time.monotonic(), 0))

    def ring(self, x):
        """Parts go around: n - 1 steps add them up, n - 1 hand the sums on."""
        rank, n = d.get_rank(), d.get_world_size()
        parts = list(x.chunk(n))
        right, left, came = (rank + 1) % n, (rank - 1) % n, t.empty_like(parts[0])
        for step in range(2 * (n - 1)):
            mine, theirs = parts[(rank - step) % n], parts[(rank - step - 1) % n]
            sent = self.send(mine.clone(), right)
            self.receive(came[: theirs.numel()], left)
            theirs.copy_(came[: theirs.numel()] if step >= n - 1 else theirs + came[: theirs.numel()])
            for work in sent:
                work.wait()

    def tree(self, x):
        """Halves send to halves until one has the sum, and back."""
        rank, n, came, step = d.get_rank(), d.get_world_size(), t.empty_like(x), 1
        sent, levels = [], []
        while step < n:
            levels.append(step)
            if rank % (2 * step) == 0 and rank + step < n:
                self.receive(came, rank + step)
                x += came
            elif rank % (2 * step) == step:
                sent += self.send(x.clone(), rank - step)
            step *= 2
        for step in reversed(levels):
            if rank % (2 * step) == 0 and rank + step < n:
                sent += self.send(x.clone(), rank + step)
            elif rank % (2 * step) == step:
                self.receive(x, rank - step)
        for work in sent:
            work.wait()


class Later:
    """What a thread does beside the program, one after the other; each gives a Future."""

    def __init__(self):
        self.jobs = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            job, done = self.jobs.get()
            job()
            done.set()

    def put(self, job, tensor):
        from engine.collectives.work import Future

        done = threading.Event()
        self.jobs.put((job, done))
        future = Future()
        future.kept = tensor
        future.work = type("Waits", (), {"wait": lambda _: done.wait(), "result": lambda _: tensor})()
        return future


def simulated():
    """{way: {what: seconds}} on a slow network: collectives, and steps of a model whose layers wait, not compute."""
    alpha, beta, layers, width, pause = (float(w) for w in words)
    layers, width = int(layers), int(width)
    network, found = Network(alpha, beta, d.new_group()), {}

    class Waits(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(w)
            time.sleep(pause / 2)
            return x + w.sum() * 0

        @staticmethod
        def backward(ctx, g):
            time.sleep(pause)
            return g, t.ones_like(ctx.saved_tensors[0])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList([nn.Parameter(t.zeros(width)) for _ in range(layers)])

        def forward(self, x):
            for w in self.weights:
                x = Waits.apply(x, w)
            return x

    if d.get_world_size() > 1:
        found["message"] = {4 * n: messages(network, n) for n in (1, width // 4, width, layers * width)}
    for name, way in (("ring", network.ring), ("tree", network.tree)):
        x = t.zeros(layers * width)
        found[name] = {"all_reduce": seconds(lambda way=way, x=x: together(way, x), 7, x.zero_)}
        for overlap in (True, False):
            net, later = DDP(Net(), bucket_cap_mb=4 * width / (1 << 20) if overlap else 1000), Later()

            def hook(state, bucket, way=way, later=later):
                x = bucket.buffer()
                return later.put(lambda: way(x), [x])

            if d.get_world_size() > 1:
                net.register_comm_hook(None, hook)

            def once(net=net):
                net.zero_grad()
                net(t.ones(1)).sum().backward()

            name_of_step = "step, overlapped" if overlap else "step, one bucket"
            found[name][name_of_step] = seconds(lambda once=once: together(once), 7)
    return found


def together(call, *arguments):
    """A call, and the wait until the last rank has done it."""
    call(*arguments)
    d.barrier()


def messages(network, n):
    """Seconds of one message of n elements on a network, by a way there and back."""
    x = t.zeros(n)

    def there_and_back():
        if d.get_rank() == 0:
            sent = network.send(x, 1)
            network.receive(x, 1)
        elif d.get_rank() == 1:
            network.receive(x, 0)
            sent = network.send(x, 0)
        if d.get_rank() < 2:
            for work in sent:
                work.wait()

    return seconds(there_and_back, 7) / 2


t.set_num_threads(1)
d.init_process_group("gloo")
result = {"all_reduce": all_reduce, "steps": steps, "ping_pong": ping_pong, "simulated": simulated}[what]()
if d.get_rank() == 0:
    print("RESULT", json.dumps(result), flush=True)
d.barrier()
d.destroy_process_group()
