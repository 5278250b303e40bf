"""Anomaly detection: finds the operation whose gradient fails, or is nan, and the line that recorded it."""

import sys
import traceback
from types import SimpleNamespace

from ..arrays.warn import ENGINE_FOLDER, warn
from ..core import backward as backward_pass
from ..core.graph import AccumulateGrad, Mode, Node, OutputCotangents, extend, mode
from ..core.observers import forget, observe, observers
from ..core.record import array_of
from ..surface.graph_errors import HINTS
from . import hooks, messages

extend(Mode, visited=None)  # the node that a pass visits: it induces those that are made meanwhile
state = SimpleNamespace(anomaly="")  # whether anomaly detection is on: "", "trace", or "check", which looks for nan too


class set_detect_anomaly:
    """Look for anomalies from now on; as a context manager, until the end of the block.  It makes programs slow."""

    def __init__(self, mode, check_nan=True):
        if not isinstance(mode, bool):
            kind = type(mode).__name__
            raise TypeError(f"set_anomaly_enabled(): argument 'enabled' (position 1) must be bool, not {kind}")
        self.before = state.anomaly
        switch(("check" if check_nan else "trace") if mode else "")

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        switch(self.before)


class detect_anomaly(set_detect_anomaly):
    """Look for anomalies in a ``with`` block."""

    def __init__(self, check_nan=True):
        warn(messages.ANOMALY_IS_SLOW)
        self.check_nan = check_nan

    def __enter__(self):
        super().__init__(True, self.check_nan)


def switch(anomaly):
    if bool(anomaly) != (remember_call in observers.get(Node, ())):
        (observe if anomaly else forget)(Node, remember_call, everywhere=True)
    state.anomaly, HINTS[1:] = anomaly, [messages.ANOMALY_HINT] if anomaly else []
    hooks.failures[:] = [tell] if anomaly else []
    others = [a for a in backward_pass.attachments if a not in (checking, telling)]
    # the first is nearest to the node
    backward_pass.attachments[:] = [checking, *others, telling] if anomaly else others


def checking(visit, roots, wanted):
    """The visit that looks for nan."""

    def visit_and_check(node, g, parents):
        cotangents = visit(node, g, parents)
        for i, x in enumerate(map(array_of, cotangents)):
            if x is not None and type(x) is not OutputCotangents and (x != x).any():
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
        return cotangents

    return visit_and_check if state.anomaly == "check" else None


def telling(visit, roots, wanted):
    """The visit that tells where a node was recorded whose gradient fails."""
    for node in roots:
        remember_leaf(node)

    def visit_and_tell(node, g, parents):
        before, mode.visited = mode.visited, node
        try:
            return visit(node, g, parents)
        except BaseException as error:
            tell(node, error)
            raise
        finally:
            mode.visited = before

    return visit_and_tell


def tell(node, error):
    """Say where a node was recorded, unless one nearer to the error has."""
    if not hasattr(error, "told"):
        error.told = True
        tell_where(node)


def tell_where(node):
    """Warn of the line that recorded a node whose gradient failed, and of those whose backward passes led to that."""
    detected, recorded_at = messages.DETECTED, messages.RECORDED_AT
    while node is not None:
        call = vars(node).get("call")
        if call is None:
            say(messages.DETECTED.format(node.name()) + messages.NOT_RECORDED)
        else:
            say(detected.format(node.name()) + recorded_at + "".join(traceback.format_list(call)))
        node = vars(node).get("induced_by")
        detected, recorded_at = messages.INDUCED, messages.INDUCED_AT


def say(words):
    """Warn; where warnings are errors it must not stand in place of the one that it tells of, and is printed."""
    try:
        warn(words)
    except Warning as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


def remember_call(node):
    if type(node) is AccumulateGrad:  # of a leaf PyTorch remembers its first use
        return
    node.induced_by = mode.visited
    node.call = [f for f in traceback.extract_stack() if not f.filename.startswith(ENGINE_FOLDER)]
    for parent in node.parents:
        remember_leaf(parent, node.call)


def remember_leaf(node, call=None):
    if type(node) is AccumulateGrad and "call" not in vars(node):
        node.induced_by = mode.visited
        node.call = call or [f for f in traceback.extract_stack() if not f.filename.startswith(ENGINE_FOLDER)]


def is_anomaly_enabled():
    """Tell whether anomaly detection is on."""
    return bool(state.anomaly)


def is_anomaly_check_nan_enabled():
    """Tell whether anomaly detection looks for nan in gradients."""
    return state.anomaly != "trace"
