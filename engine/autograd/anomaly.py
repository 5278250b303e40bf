"""Anomaly detection: finds the operation whose gradient fails, or is nan, and the line that recorded it."""

import traceback

from ..arrays.warn import HERE, warn
from ..core import backward as backward_pass
from ..core import graph
from ..core.graph import watch_nodes
from . import hooks


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
    others = [a for a in backward_pass.attachments if a not in (checking, telling)]
    backward_pass.attachments[:] = (
        [checking, *others, telling] if anomaly else others
    )  # the first is nearest to the node


def checking(visit, roots, wanted):
    """The visit that looks for nan."""

    def visit_and_check(node, g, parents):
        into = visit(node, g, parents)
        hooks.check_nan(node, into)
        return into

    return visit_and_check if graph.anomaly == "check" else None


def telling(visit, roots, wanted):
    """The visit that tells where a node was recorded whose gradient fails."""

    def visit_and_tell(node, g, parents):
        try:
            return visit(node, g, parents)
        except BaseException as error:
            if not hasattr(error, "told"):  # the node nearest to it has told
                error.told = True
                tell_where(node)
            raise

    return visit_and_tell


def tell_where(node):
    """Warn of the line that recorded a node whose gradient failed."""
    call = node.__dict__.get("call")
    warn(
        f"Error detected in {node.name()}. "
        + ("No forward pass information available. Enable detect anomaly during forward pass for more information."
           if call is None else "Traceback of forward call that caused the error:\n" + "".join(traceback.format_list(call))),
    )  # fmt: skip


def remember_call(node, saved):
    node.call = [f for f in traceback.extract_stack()[:-2] if not f.filename.startswith(HERE)]


def is_anomaly_enabled():
    """Whether anomalies are looked for."""
    return bool(graph.anomaly)


def is_anomaly_check_nan_enabled():
    """Whether gradients are looked at for nan, where anomalies are looked for."""
    return graph.anomaly != "trace"
