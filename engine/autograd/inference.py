"""Inference tensors: made in inference mode, never saved by a node, and not to be written outside of that mode.

While there are none, nobody looks for them: the first node that is made after the last of them stops the search.
(The last one itself does not: in a loop without notes each line makes a last one, and a class that changes is dear.)
"""

from weakref import ref

from ..arrays.dispatch import scalar_types
from ..arrays.memory import storage
from ..core import tensor, versions, views
from ..core.graph import Node, extend, mode
from ..core.observers import forget, lock, observe
from ..core.tensor import Tensor
from . import messages

marked: dict = {}  # id(owner of memory) -> the tensors on it that were made in inference mode, weakly
extend(Tensor, inference=False, is_inference=lambda self: self.inference)


def mark(tensor):
    """Let a tensor that is made in inference mode be one that no node may save."""
    if mode.inference:
        mark_inference(tensor)


def mark_inference(tensor):
    tensor.inference = True
    key = id(storage(tensor.shared()))  # a number gets memory now, which keeps its place
    new = ref(tensor, lambda gone: forget_inference(key, gone))
    with lock:  # a tensor may go at any moment, in this thread too
        marked[key] = [*marked.get(key, ()), new]
        if check_inference not in Node.looks:
            observe(Node, check_inference, everywhere=True)


def forget_inference(key, gone):
    with lock:
        if left := [r for r in marked.pop(key, ()) if r is not gone]:
            marked[key] = left


def forget_gone():
    """Stop looking where none is left, whatever an interrupt made of a callback: Python drops what is raised there."""
    for key, refs in marked.copy().items():  # in one step: a tensor may go while list() asks for memory
        if not any(r() is not None for r in refs):
            marked.pop(key, None)
    with lock:
        if not marked and check_inference in Node.looks:
            forget(Node, check_inference, everywhere=True)


def hand_on(new, source):
    """A view, or an alias, of an inference tensor is one, outside of the graph; that of a normal tensor is normal."""
    if source.inference:
        new.inference, new.node = True, None
    elif new.inference:
        new.inference = False


def check_inference(node):
    """RuntimeError if a node would save an inference tensor."""
    if not marked:
        return forget_gone()
    for s, link in zip(node.saved or (), node.saved_from):
        if link is None or s is None or type(s) in scalar_types:
            continue
        owner = storage(s)
        for t in (r() for r in marked.get(id(owner), ())):
            if t is not None and t.inference and storage(t.array) is owner:  # a view of a normal tensor is normal
                raise RuntimeError(messages.INFERENCE)


def check_write(tensor, others):
    if tensor.inference and not mode.inference:
        raise RuntimeError(messages.INFERENCE_UPDATE)


def check_requires_grad(tensor, requires_grad):
    if requires_grad and tensor.inference and not mode.inference and tensor.node is None:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")


def version(self):
    if self.inference:
        raise RuntimeError("Inference tensors do not track version counter.")
    return versions.version(self)


tensor.inherited.append(hand_on)
views.write_checks.insert(0, check_write)
Tensor.grad_checks.append(check_requires_grad)
extend(Tensor, _version=property(version))
