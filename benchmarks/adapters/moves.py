"""A copy that moves as many bytes as a workload has to: half of them are read, half written.

They lie where the workload's would: in the cache if they fit.  Threads have a part each, and copy it again and again,
so that their start does not count; there are as many as BLAS has.
"""

import os
from threading import Thread

import numpy as np

from ..floor import BYTES

ENOUGH = 50_000_000  # bytes in a step of several threads: some milliseconds


def prepare(name):
    size = max(BYTES[name] // 2, 1)
    threads = int(os.environ.get("OPENBLAS_NUM_THREADS") or os.cpu_count() or 1)
    given, taken = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    if threads == 1:
        return lambda: np.copyto(taken, given), lambda: {"copy": taken}
    times = max(1, ENOUGH // BYTES[name])
    times = min(times, 1000)  # a call for a few bytes takes as long as for a thousand
    parts = list(zip(np.array_split(taken, threads), np.array_split(given, threads), strict=True))

    def work(part):
        for _ in range(times):
            np.copyto(*part)

    def step():
        others = [Thread(target=work, args=(part,)) for part in parts[1:]]
        for thread in others:
            thread.start()
        work(parts[0])
        for thread in others:
            thread.join()

    return step, lambda: {"copy": taken}, times
