"""Run every cell of a notebook in a fresh kernel, with nbclient."""

import asyncio
import atexit
import copy
import logging
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from course.base.notebooks import ROOT, UNATTENDED, kernel_environment

STARTS = 3  # of one kernel, at most
SHOWN_S = 300  # how long after a cell's end its output may come, on a busy computer
STOPPED_S = 30  # how long a cell may take to end once it is interrupted


class Run(NamedTuple):
    """The notebook with its new outputs, the cells that took too long, and where and why the run ended early."""

    notebook: NotebookNode
    late: set[int]
    stopped: int | None = None
    why: str = ""


class FreshKernel(NotebookClient):
    """nbclient that starts its kernel again if it died before it was ready.

    Free ports are chosen before the kernel takes them; on a busy computer another program may be faster.
    """

    async def async_start_new_kernel(self, **options: Any) -> None:
        self.asked = options
        await super().async_start_new_kernel(**options)

    async def async_start_new_kernel_client(self) -> Any:
        for _ in range(STARTS - 1):
            assert self.km is not None
            name, specs = self.km.kernel_name, self.km.kernel_spec_manager
            try:
                return await super().async_start_new_kernel_client()
            except RuntimeError as error:
                if "died" not in str(error):
                    raise
            self.km = AsyncKernelManager(kernel_name=name, kernel_spec_manager=specs)
            await self.async_start_new_kernel(**self.asked)
        return await super().async_start_new_kernel_client()


class _Client(FreshKernel):
    """Go on after a cell that took too long, and remember which one it was."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.at, self.late = 0, set[int]()
        self.log = logging.getLogger("undertorch.validate")  # the report says what nbclient has to say
        self.log.addHandler(logging.NullHandler())
        self.log.propagate = False

    async def async_execute_cell(self, cell: NotebookNode, cell_index: int, *rest: Any, **named: Any) -> NotebookNode:
        self.at, self.iopub_timeout, self.raise_on_iopub_timeout = cell_index, SHOWN_S, False
        return await super().async_execute_cell(cell, cell_index, *rest, **named)

    async def _async_handle_timeout(self, timeout: int, cell: NotebookNode | None = None) -> dict[str, Any] | None:
        self.late.add(self.at)
        self.iopub_timeout, self.raise_on_iopub_timeout = STOPPED_S, True
        return await super()._async_handle_timeout(timeout, cell)


def run(
    notebook: NotebookNode,
    path: Path,
    timeout: int,
    kernel: str | None,
    skipped: set[int],
    short: dict[int, str] | None = None,
) -> Run:
    """Execute a copy of a notebook beside its file; the cells in `skipped` stay as they are.

    `short` has, by the place of a cell, what is executed in place of its source.
    """
    new = copy.deepcopy(notebook)
    for index, cell in enumerate(new.cells):
        if cell.cell_type == "code" and index not in skipped:
            cell.outputs = []
    others = dict.fromkeys(skipped, "") | (short or {})
    sources = {index: new.cells[index].source for index in others}
    for index, source in others.items():
        new.cells[index].source = source
    # Without --kernel no folder of kernel specs is searched: `python3` is this interpreter.
    specs = KernelSpecManager() if kernel else KernelSpecManager(kernel_dirs=[])
    manager = AsyncKernelManager(kernel_name=kernel or "python3", kernel_spec_manager=specs)
    home = ROOT if path.resolve().is_relative_to(ROOT) else path.resolve().parent
    with tempfile.TemporaryDirectory(prefix="undertorch-", ignore_cleanup_errors=True) as profile:
        client = _Client(
            new,
            km=manager,
            timeout=timeout,
            startup_timeout=300,  # on a busy computer
            interrupt_on_timeout=True,
            error_on_timeout={"ename": "Timeout", "evalue": f"longer than {timeout} s", "traceback": []},
            allow_errors=True,
            extra_arguments=[] if kernel else ["--log-level=ERROR"],
            resources={"metadata": {"path": str(path.resolve().parent)}},
            store_widget_state=True,  # without it an Output widget is a KeyError
            record_timing=False,
        )
        try:
            env = kernel_environment(home) | UNATTENDED | {"IPYTHONDIR": profile}
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as loop:  # Windows' own is not ZeroMQ's
                loop.run(client.async_execute(cleanup_kc=True, env=env))
            ended: tuple[int | None, str] = (None, "")
        except DeadKernelError:
            ended = (client.at, "the kernel died")
        except CellTimeoutError:
            ended = (client.at, f"it took longer than {timeout} s, and went on when it was interrupted")
        except Exception as error:  # whatever somebody's notebook does to nbclient, go on to the others
            ended = (client.at, f"{type(error).__name__}: {error}")
        finally:
            atexit.unregister(client._cleanup_kernel)  # which nbclient leaves behind if no kernel comes up
    for index, source in sources.items():
        new.cells[index].source = source
    return Run(new, client.late, *ended)
