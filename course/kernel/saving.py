"""Save of a notebook what the reader did in it, and nothing of the computer that it was opened on."""

import copy
from typing import Any

from course.base.notebooks import METADATA

WIDGET = "application/vnd.jupyter.widget-view+json"
ASLEEP = "<p><em>A still picture. Run the cell (Shift+Enter), and it answers to your mouse and keyboard.</em></p>\n"


def tidy(model: dict[str, Any], **_: Any) -> None:
    """Keep a notebook that is opened and saved the same, byte for byte, until somebody edits it: a `pre_save_hook`."""
    if model["type"] != "notebook":
        return
    nb = model["content"]
    if nb["metadata"].get("kernelspec", {}).get("name") == METADATA["kernelspec"]["name"]:
        nb["metadata"].update(copy.deepcopy(METADATA))
    for cell in nb["cells"]:
        for output in cell.get("outputs", []):
            put_to_sleep(output.get("data", {}))


def put_to_sleep(data: dict[str, Any]) -> bool:
    """Take a widget's view out of an output, as no later kernel knows it; the picture beside it stays, and is shown."""
    if data.pop(WIDGET, None) is None:
        return False
    data["text/html"] = ASLEEP + "".join(data.get("text/html", ""))
    return True
