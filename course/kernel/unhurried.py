"""A plugin of pytest: nbval waits for a kernel as long as it takes on a busy computer, not five or ten seconds."""

import functools
from typing import Any

SECONDS = 300.0  # against a hang


def pytest_configure() -> None:
    from nbval import kernel

    kernel.RunningKernel._ensure_iopub_up = _again_and_again(kernel.RunningKernel._ensure_iopub_up)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        if hasattr(item, "output_timeout"):
            item.output_timeout = SECONDS


def _again_and_again(ask: Any) -> Any:
    """Asking a kernel whether it is there, which nbval gives up after ten seconds."""

    @functools.wraps(ask)
    def asked(*args: Any) -> Any:
        for _ in range(int(SECONDS / 10)):
            try:
                return ask(*args)
            except RuntimeError:
                continue
        return ask(*args)

    return asked
