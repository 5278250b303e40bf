"""The lessons in an editor, as VS Code runs them: a plain kernel, by its protocol, without the course's lab."""

import os

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("anywidget")

import nbformat

from course.base.notebooks import ROOT
from course.figures.predict.figure import questions
from course.kernel.saving import WIDGET

# What VS Code shows of an output, the first that there is.
SHOWN = WIDGET, "text/html", "image/svg+xml", "text/latex", "text/markdown", "image/png", "image/jpeg", "text/plain"
LIMIT_S = 300  # against a hang
RIGHT = nbformat.read(ROOT / "solutions/05_graph.ipynb", as_version=4)
ANSWER = next(cell.source for cell in RIGHT.cells if cell.metadata.get("exercise") == "05.2")
CHECK = 'import engine\nfrom course import check\n\ncheck("05.2", count_nodes)'


class Editor:
    """Sends cells to a kernel as an editor does, and keeps what comes."""

    def __init__(self, client):
        self.client = client

    def answers(self, request):
        """What the kernel publishes for a request, until it is idle again."""
        while True:
            message = self.client.get_iopub_msg(timeout=LIMIT_S)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return
            yield message["msg_type"], message["content"]

    def run(self, cell):
        """A cell's outputs by their types, and the comms that it opened, by their ids."""
        outputs, comms = [], {}
        for kind, content in self.answers(self.client.execute(cell)):
            if kind in ("display_data", "execute_result"):
                outputs.append(content["data"])
            elif kind == "comm_open":
                comms[content["comm_id"]] = content["data"]["state"]
            elif kind == "error":
                outputs.append({"text/plain": "\n".join(content["traceback"])})
        return outputs, comms

    def move(self, comm, **state):
        """Change a widget's state as its front end does; what the kernel changes then, of that widget and others."""
        content = {"comm_id": comm, "data": {"method": "update", "state": state, "buffer_paths": []}}
        message = self.client.session.msg("comm_msg", content)
        self.client.shell_channel.send(message)
        changed = {}
        for kind, content in self.answers(message["header"]["msg_id"]):
            if kind == "comm_msg" and content["data"]["method"] == "update":
                changed |= content["data"]["state"]
        return changed


@pytest.fixture(scope="module")
def editor(tmp_path_factory):
    """A kernel of this interpreter in the folder of a notebook; the environment's own file lets it find the course."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import KernelManager

    folder = tmp_path_factory.mktemp("my_lessons")
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    own = {"PYTHONPATH": str(ROOT), "UNDERTORCH_PROGRESS": str(folder / "progress"), "IPYTHONDIR": str(folder)}
    manager.start_kernel(cwd=str(folder), env=os.environ | own)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=LIMIT_S)
    yield Editor(client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def plain(outputs):
    return "\n".join(output["text/plain"] for output in outputs)


def first(output):
    """What an editor shows of an output, and its type."""
    kind = next(kind for kind in SHOWN if kind in output)
    return kind, output[kind]


def test_an_answer_is_checked_and_hinted_at(editor):
    editor.run("def count_nodes(node):\n    return 1")
    (wrong, raised), _ = editor.run(CHECK)
    assert first(wrong)[0] == "text/html" and plain([wrong]).startswith("Exercise 05.2: not yet.")
    assert len(plain([raised]).splitlines()) == 1  # a run of all cells stops here, and no traceback hides the words
    (hinted,), _ = editor.run('from course import hint\nhint("05.2")')
    assert first(hinted)[0] == "text/html" and "Hint 1 of" in first(hinted)[1]
    editor.run(ANSWER)
    (right,), _ = editor.run(CHECK)
    assert "correct" in first(right)[1] and plain([right]).startswith("Exercise 05.2: correct.")


def test_a_choice_is_answered_when_the_next_cell_has_run(editor):
    (asked,), comms = editor.run('from course import predict\npredict("05.a")')
    assert first(asked)[0] == WIDGET
    assert "Predict" in asked["text/html"] and plain([asked]).startswith("Predict:")
    question = asked[WIDGET]["model_id"]
    assert comms[question]["_esm"] and comms[question]["said"] == ""
    right = [option.right for option in questions("05")["a"][1]].index(True)
    editor.move(question, chosen=right)
    said = {}
    for kind, content in editor.answers(editor.client.execute("1 + 1")):
        if kind == "comm_msg" and content["comm_id"] == question:
            said |= content["data"]["state"]
    assert said["said"] and said["right"] is True


def test_a_figure_opens_and_follows_its_slider(editor):
    (shown,), comms = editor.run("from course.figures import AccumulationTimeline\nAccumulationTimeline()")
    assert first(shown)[0] == WIDGET and "<img" in shown["text/html"]
    figure = comms[shown[WIDGET]["model_id"]]
    assert figure["_anywidget_id"] and shown["text/plain"].startswith(figure["words"])
    at = [figure["at"][0] + 1, *figure["at"][1:]]
    changed = editor.move(shown[WIDGET]["model_id"], at=at)
    assert changed["words"] and changed["words"] != figure["words"]


def test_a_graph_is_a_picture_with_its_words(editor):
    (drawn,), _ = editor.run(
        "import engine\nfrom engine.viz import graph\n\nx = engine.tensor(2.0, requires_grad=True)\ngraph(x * x)"
    )
    assert first(drawn)[0] in SHOWN[:3] and "MulBackward0" in drawn["text/plain"]


def test_an_error_has_its_message(editor):
    (failed,), _ = editor.run("import engine\n\nengine.ones(2) + engine.ones(3)")
    assert "The size of tensor a (2) must match the size of tensor b (3)" in failed["text/plain"]
