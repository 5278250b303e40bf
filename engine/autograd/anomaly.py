"""Anomaly detection: finds the operation whose gradient fails, or is nan, and the line that recorded it."""

import traceback

from .. import graph
from ..callers import HERE, warn
from ..graph import Node, watch_nodes


class set_detect_anomaly:
    """Look for anomalies from now on; as a context manager, until the end of the block.  It makes programs slow."""

    def __init__(self, mode, check_nan=True):
        self.before = graph.anomaly
        switch(("check" if check_nan else "trace") if mode else "")

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        switch(self.before)


class detect_anomaly(set_detect_anomaly):
    """Look for anomalies in a ``with`` block."""

    def __init__(self, check_nan=True):
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
        )
        self.check_nan = check_nan

    def __enter__(self):
        super().__init__(True, self.check_nan)


def switch(anomaly):
    graph.anomaly = anomaly
    watch_nodes(remember_call, bool(anomaly))
    Node.together = anomaly == "check"  # all cotangents of a node at once, so that they can be looked at


def remember_call(node, saved):
    node.call = [f for f in traceback.extract_stack()[:-2] if not f.filename.startswith(HERE)]


def is_anomaly_enabled():
    """Whether anomalies are looked for."""
    return bool(graph.anomaly)


def is_anomaly_check_nan_enabled():
    """Whether gradients are looked at for nan, where anomalies are looked for."""
    return graph.anomaly != "trace"
