"""What all tests need."""

import ast
import contextlib
import gc
import importlib.util
import inspect
import os
import signal
import sys
import textwrap
from collections import Counter, defaultdict
from functools import cache

import pytest

import engine

sys.modules.setdefault("rfc3987_syntax", None)  # a grammar that takes a second and more: see course/commands/cli.py
engine.compiler.compiled.Compiled.loops = False  # tests that compile say how: see ``generator``

# Started in the background of a shell, a process ignores Ctrl-C, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

NO_GPU = "" if engine.cuda.is_available() else "no test that needs a GPU: there is no GPU, driver or CuPy here"


def pytest_report_header():
    return NO_GPU or f"GPU: {engine.cuda.get_device_name()}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what needs a GPU where there is none, as the header says; give a browser a second chance."""
    left_out = {item for item in items if NO_GPU and item.get_closest_marker("gpu")}
    if importlib.util.find_spec("torch") is None:
        left_out |= {*one_of_each(item for item in items if item not in left_out and needs_pytorch(item))}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
    if config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.flaky(reruns=1))
    if hasattr(config, "workerinput") and hasattr(config, "cache"):
        longest_first(items, config.cache.get(DURATIONS, {}).get(config.option.markexpr, {}))


BESIDE = "beside PyTorch, which is not installed"


def one_of_each(items):
    """Let one item of a test that needs PyTorch be skipped for all of its table, and give the others."""
    tables = defaultdict(list)
    for item in items:
        tables[item.path, item.nodeid.partition("[")[0]].append(item)
    for first, *others in tables.values():
        rows = sum(getattr(getattr(item, "function", None), "many", 1) for item in (first, *others))
        first.add_marker(pytest.mark.skip(reason=f"{rows} {BESIDE}"))
        yield from others


def needs_pytorch(item):
    """Whether a test or one of its fixtures skips without PyTorch whatever its arguments are."""
    fixtures = getattr(item, "_fixtureinfo", None)
    used = [found[-1].func for found in fixtures.name2fixturedefs.values()] if fixtures else []
    return any(map(skips_without_pytorch, [*used, getattr(item, "function", None)]))


@cache
def skips_without_pytorch(function):
    function = inspect.unwrap(function) if function else None
    code = getattr(function, "__code__", None)
    if code is None or "torch" not in code.co_consts or "importorskip" not in code.co_names:
        return False
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    first = definition.body[ast.get_docstring(definition) is not None]  # whatever comes before it needs no PyTorch
    call = getattr(first, "value", None)
    return call is not None and ast.unparse(call) == "pytest.importorskip('torch')"


DURATIONS = "undertorch/durations"  # in pytest's cache: seconds a file, by what `-m` chose
FLAKY = "undertorch/flaky"  # what passed in the last run, and not at once


def longest_first(items, seconds):
    """Let whole files go to the workers in the order of what they took the last time; one that is new is not the last.

    Those of a browser come first and together: what they share ends with the first file that is of another folder.
    """
    longest = max(seconds.values(), default=0)
    file = {item: item.nodeid.partition("::")[0] for item in items}
    items.sort(key=lambda item: ("/browser/" not in file[item], -seconds.get(file[item], longest), file[item]))


def remember(config, stats):
    """Keep how long each file took, if it was run as a whole, and which tests passed only when they ran again."""
    ran = [report for reports in stats.values() for report in reports if hasattr(report, "duration")]
    failed = {report.nodeid for report in ran if report.outcome == "failed"}
    config.cache.set(FLAKY, sorted({report.nodeid for report in stats.get("rerun", [])} - failed))
    option = config.option
    if option.keyword or option.lf or getattr(option, "partly", None) or any("::" in name for name in config.args):
        return
    seconds = Counter()
    for report in ran:
        seconds[report.nodeid.partition("::")[0]] += report.duration
    kept = config.cache.get(DURATIONS, {})
    kept[option.markexpr] = kept.get(option.markexpr, {}) | {file: round(taken, 1) for file, taken in seconds.items()}
    config.cache.set(DURATIONS, kept)


def pytest_collection_finish(session):
    """What stands when the tests begin, their list above all, is looked at by no later `gc.collect()`.

    Tests and what they test ask for thousands of them, and each would take a fifth of a second for 20,000 tests.
    """
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc):
    """Tests that compile do so with each generator, but for those that look at what one of them writes."""
    if "generator" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("generator")
        metafunc.parametrize("generator", only.args if only else ("numpy", "loops"), indirect=True)


@pytest.fixture
def generator(request, monkeypatch):
    """How programs are written down: "numpy", "loops" that run as plain Python, or "numba", that are compiled.

    With UNDERTORCH_MACHINE=1 all loops are compiled, which takes half an hour.
    """
    import loops_in_python

    from engine.compiler import compiled, machine

    monkeypatch.setattr(compiled.Compiled, "loops", request.param != "numpy")
    if request.param == "loops":
        if machine.why_not():
            pytest.skip(machine.why_not())
        if os.environ.get("UNDERTORCH_MACHINE") != "1":
            monkeypatch.setattr(machine, "compiled", loops_in_python.compiled)
    before = {*failed_loops()}
    yield request.param
    failed = failed_loops()  # a function whose loop cannot be compiled runs eagerly, and is right
    assert not failed.keys() - before, failed


def failed_loops():
    return getattr(sys.modules.get("engine.compiler.store"), "failed", {})


@pytest.fixture(scope="module", autouse=True)
def nothing_switched():
    """A file of tests leaves the switches of the whole process as it found them: which file comes next is chance."""
    gc.collect()
    gc.freeze()  # what files before this one have left is looked at once
    before = switches()
    yield
    after = switches()
    left = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    # Files set these back to the default themselves, and would be blamed for what an earlier one has left.
    engine.surface.printing.set_printoptions(**before["print options"])
    engine.set_default_dtype(before["default dtype"])
    assert not left, f"left switched by a test of this file, (before, now): {left}"


def switches():
    return {
        "print options": engine.surface.printing.get_printoptions(),
        "default dtype": engine.get_default_dtype(),
        "default device": engine.get_default_device(),
        "grad mode": (engine.is_grad_enabled(), engine.is_inference_mode_enabled(), engine.is_autocast_enabled()),
        "anomaly": engine.is_anomaly_enabled(),
    }


def why(report):
    """(reason, how many tests this one stands for)"""
    reason = report.longrepr[2].removeprefix("Skipped: ")
    count, _, rest = reason.partition(" ")
    if rest == BESIDE:
        return BESIDE, int(count)
    return BESIDE if "No module named 'torch'" in reason else reason, 1


def pytest_configure():
    if sys.platform == "linux" and importlib.util.find_spec("jupyter_client"):
        import warm_kernels

        warm_kernels.install()
    with contextlib.suppress(ImportError):
        from hypothesis import HealthCheck, settings

        # How long an example takes, and the choosing of it, is the computer's matter.
        settings.register_profile(
            "no clock", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        )
        settings.load_profile("no clock")


def pytest_terminal_summary(terminalreporter, config):
    """Say what was left out, a line a reason, and in how many of the lessons' cells PyTorch printed the same."""
    if hasattr(config, "cache"):
        remember(config, terminalreporter.stats)
    skipped = terminalreporter.stats.get("skipped", [])
    left_out = Counter()
    for reason, count in map(why, skipped):
        left_out[reason] += count
    for reason, count in left_out.most_common():
        terminalreporter.write_line(f"{count} left out: {reason}")
    passed = [dict(report.user_properties) for report in terminalreporter.stats.get("passed", [])]
    counts = [found for properties in passed if (found := properties.get("compared with PyTorch"))]
    if counts:
        compared, exempt = (sum(numbers) for numbers in zip(*counts, strict=True))
        terminalreporter.write_line(
            f"{len(counts)} lessons under PyTorch: {compared} cells compared print the same, {exempt} are exempt."
        )
