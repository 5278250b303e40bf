"""How fast ranks speak with each other here, beside PyTorch's gloo, and what that comes to on many machines.

    python -m benchmarks.machines                    all parts
    python -m benchmarks.machines here               collectives and steps of two ranks on this computer
    python -m benchmarks.machines predict --latency 2e-6 --bandwidth 12.5e9
    python -m benchmarks.machines check              the prediction beside runs on a simulated network

A message of S bytes takes alpha + beta S.  An all-reduce over n ranks takes 2 (n - 1) (alpha + beta S / n) in a ring,
and 2 log2(n) (alpha + beta S) in a tree (R. Thakur et al., Optimization of Collective Communication Operations in
MPICH, 2005).
"""

import argparse
import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
LAUNCHERS = {"engine": "engine.distributed.run", "torch": "torch.distributed.run"}


def job(ranks, what, library="engine", *words):
    """What rank 0 of a job prints."""
    command = [sys.executable, "-m", LAUNCHERS[library], f"--nproc-per-node={ranks}"]
    command += [str(HERE / "machines_rank.py"), what, library, *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not lines:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(lines[-1].removeprefix("RESULT "))


# ---- the model


def fitted(times):
    """(alpha, beta) from {bytes: seconds}: least squares of the relative errors."""
    rows = [(1 / s, size / s) for size, s in times.items()]
    a, b, c = sum(x * x for x, _ in rows), sum(x * y for x, y in rows), sum(y * y for _, y in rows)
    p, q = sum(x for x, _ in rows), sum(y for _, y in rows)
    determinant = a * c - b * b
    return max((p * c - q * b) / determinant, 0.0), max((a * q - b * p) / determinant, 0.0)


def all_reduce_time(n, size, alpha, beta, way="ring"):
    """Seconds of an all-reduce of ``size`` bytes over n ranks."""
    if n == 1:
        return 0.0
    if way == "ring":
        return 2 * (n - 1) * (alpha + beta * size / n)
    return 2 * math.ceil(math.log2(n)) * (alpha + beta * size)


def step_time(n, size, alpha, beta, way="ring", forward=0.0, backward=0.0, optimizer=0.0, buckets=1, overlap=True,
              sharded=False):  # fmt: skip
    """Seconds of a step of data-parallel training with gradients of ``size`` bytes.

    Buckets are full one after the other as backward goes on, and travel one after the other.  ``sharded``: each rank
    moves an n-th of the parameters and hands it on (an all-gather more).
    """
    each = all_reduce_time(n, size / buckets, alpha, beta, way)
    end = 0.0
    for i in range(buckets):
        ready = backward * (i + 1) / buckets if overlap else backward
        end = max(end, ready) + each
    time = forward + max(end, backward)
    if not sharded or n == 1:
        return time + optimizer
    gathered = (n - 1) * (alpha + beta * size / n) if way == "ring" else all_reduce_time(n, size, alpha, beta, way) / 2
    return time + optimizer / n + gathered


# ---- what is measured here


def here(rounds):
    """Two ranks on this computer, the engine and PyTorch in turns."""
    libraries = ["engine", *["torch"] * (find_spec("torch") is not None)]
    times: dict = {}
    for _ in range(rounds):
        for library in libraries:
            found = job(2, "all_reduce", library)
            found |= {f"step, {k}": v for k, v in job(2, "steps", library).items()}
            found["step of one rank, ddp"], found["step of one rank, alone"] = job(1, "steps", library).values()
            for name, value in found.items():
                times.setdefault(name, {}).setdefault(library, []).append(value)
    print("two ranks on this computer           engine          gloo    ratio")
    for name, by in times.items():
        best = {library: sorted(values)[len(values) // 2] for library, values in by.items()}
        ratio = f"{best['engine'] / best['torch']:8.2f}" if "torch" in best else ""
        print(f"{name:30}" + "".join(f"{1e3 * best[library]:11.3f} ms" for library in libraries) + ratio)
    one = {k: sorted(times[f"step of one rank, {k}"]["engine"])[rounds // 2] for k in ("ddp", "alone")}
    print(f"DistributedDataParallel with one rank: {100 * (one['ddp'] / one['alone'] - 1):+.1f} % over none")


def predict(options):
    alpha, beta = options.latency, 1 / options.bandwidth
    if options.measure:
        found = job(2, "ping_pong")
        alpha, beta = fitted({int(k): v for k, v in found["message"].items()})
        print(f"a message between two ranks here: {1e6 * alpha:.1f} us + {1e-9 / max(beta, 1e-15):.2f} GB/s")
        for size, measured in found["collective"].items():
            said = all_reduce_time(2, int(size), alpha, beta)
            print(f"  all-reduce of {int(size):>8} bytes: {1e6 * measured:9.1f} us, predicted {1e6 * said:9.1f}")
        alpha, beta = options.latency, 1 / options.bandwidth
    size, compute = options.parameters * 4, options.compute
    print(f"\na network of {1e6 * alpha:g} us and {1e-9 / beta:g} GB/s; {options.parameters:,} parameters, "
          f"{1e3 * compute:g} ms of computing a step, {options.buckets} buckets")  # fmt: skip
    how = {"forward": compute / 3, "backward": compute * 0.63, "optimizer": compute / 3 * 0.11}
    ways = {
        "ring": {}, "ring, not overlapped": {"overlap": False, "buckets": 1}, "ring, sharded states": {"sharded": True},
        "tree": {"way": "tree"}, "tree, not overlapped": {"way": "tree", "overlap": False, "buckets": 1},
    }  # fmt: skip
    print(f"{'machines':>8}  " + "  ".join(f"{name:>24}" for name in ways))
    for power in range(1, 13):
        n, cells = 2**power, []
        for way in ways.values():
            time = step_time(n, size, alpha, beta, **{"buckets": options.buckets} | how | way)
            cells.append(f"{1e3 * time:13.2f} ms {100 * compute / time:6.1f} %")
        print(f"{n:>8}  " + "  ".join(f"{cell:>24}" for cell in cells))


def check(most, alpha=1e-2, beta=1e-7, layers=4, width=60_000, pause=0.05):
    """Runs on a network that is made slow, beside what the model says; the largest and the mean error.

    alpha and beta are fitted to single messages between two ranks, computing is measured on one; the rest is said.
    """
    errors, size, computing = [], 4 * layers * width, layers * pause * 1.5
    print(f"\nsimulated: {1e3 * alpha:g} ms, {1e-6 / beta:g} MB/s, {layers} layers of {4 * width:,} bytes and "
          f"{1e3 * pause:g} ms each")  # fmt: skip
    for n in (n for n in (1, 2, 4, 8) if n <= most):
        found = job(n, "simulated", "engine", alpha, beta, layers, width, pause)
        if n == 1:
            computing = min(value for way in found.values() for key, value in way.items() if "step" in key)
            continue
        measured = {int(k): v for k, v in found.pop("message").items()}
        if n == 2:
            alpha_here, beta_here = fitted(measured)
            print(
                f"fitted: {1e3 * alpha_here:.2f} ms, {1e-6 / beta_here:.1f} MB/s; a step alone {1e3 * computing:.1f} ms"
            )
            print("ranks  way   what                   measured    predicted   error")
        for way, times in found.items():
            for what, time in times.items():
                if what == "all_reduce":
                    said = all_reduce_time(n, size, alpha_here, beta_here, way)
                else:
                    how = {"forward": computing / 3, "backward": computing * 2 / 3}
                    buckets = layers if "overlapped" in what else 1
                    said = step_time(n, size, alpha_here, beta_here, way, **how, buckets=buckets)
                errors.append(abs(time / said - 1))
                print(f"{n:>5}  {way:5} {what:20} {1e3 * time:9.2f} ms {1e3 * said:9.2f} ms "
                      f"{100 * (time / said - 1):+6.1f} %")  # fmt: skip
    if errors:
        print(f"the mean error is {100 * sum(errors) / len(errors):.1f} %, the largest {100 * max(errors):.1f} %")
    return errors


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machines", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="here, predict, check; all by default")
    parser.add_argument("--rounds", type=int, default=3, help="how often each library has its turn (3)")
    parser.add_argument("--latency", type=float, default=5e-6, help="of the network, in seconds (5e-6)")
    parser.add_argument("--bandwidth", type=float, default=12.5e9, help="of the network, in bytes a second (12.5e9)")
    parser.add_argument("--parameters", type=int, default=100_000_000, help="of the model, in float32 (100,000,000)")
    parser.add_argument("--compute", type=float, default=0.2, help="seconds of computing a step (0.2)")
    parser.add_argument("--buckets", type=int, default=16, help="in how many messages gradients travel (16)")
    parser.add_argument("--ranks", type=int, default=8, help="at most so many for the check (8)")
    parser.add_argument("--no-measure", dest="measure", action="store_false", help="predict without a run here")
    options = parser.parse_args()
    parts = options.parts or ["here", "predict", "check"]
    if unknown := [part for part in parts if part not in ("here", "predict", "check")]:
        parser.error(f"no part {unknown[0]!r}: there are here, predict, check")
    if "here" in parts:
        here(options.rounds)
    if "predict" in parts:
        predict(options)
    if "check" in parts:
        check(options.ranks)


if __name__ == "__main__":
    main()
