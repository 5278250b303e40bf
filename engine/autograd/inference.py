"""Inference tensors: what was made in inference mode, and the check that no node saves it.

While there are none, nobody looks for them.
"""

from weakref import ref

from ..arrays.dispatch import scalar_types
from ..arrays.memory import storage
from ..core.graph import watch_nodes

marked: dict = {}  # id(owner of memory) -> the tensors on it that were made in inference mode, weakly


def mark_inference(tensor):
    """Let a tensor be one that no node may save."""
    tensor.inference = True
    key = id(storage(tensor.array))
    marked.setdefault(key, []).append(ref(tensor, lambda gone: forget_inference(key, gone)))
    watch_nodes(check_inference, True)


def forget_inference(key, gone):
    marked[key].remove(gone)
    if not marked[key]:
        del marked[key]
    if not marked:
        watch_nodes(check_inference, False)


def check_inference(node, saved):
    """RuntimeError if a node would save an inference tensor."""
    for s, link in zip(saved, node.saved_from):
        if link is None or s is None or type(s) in scalar_types:
            continue
        owner = storage(s)
        for t in (r() for r in marked.get(id(owner), ())):
            if t is not None and t.inference and storage(t.array) is owner:  # a view of a normal tensor is normal
                raise RuntimeError(INFERENCE)


INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)
