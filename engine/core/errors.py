"""Error messages for invalid graph operations, and lists in which ``surface`` enters PyTorch's longer ones."""

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)

DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, please "
    "use out-of-place `.detach()` instead"
)

NO_NODE = "element {} of tensors does not require grad and does not have a grad_fn"

modified_details: list = []  # called with what ``modified`` gets: each adds to its message
forbidden_messages: list = []  # called with what ``forbidden_view`` gets: the last one gives the message
graph_lost: list = []  # called with a view that was made unrecorded and has lost its part of the graph by a write


def modified(x, *what):
    """Return the error for an array that was overwritten after a node saved it.

    ``what``: its ``Writes``, the time since which they count, the node that made it, the node of the input that it is.
    """
    plain = "one of the variables needed for gradient computation has been modified by an inplace operation"
    return RuntimeError("".join([plain, *(details(x, *what) for details in modified_details)]))


def forbidden_view(view, what):
    """Return the message for a view that was created in a way that forbids in-place writes to its memory."""
    if forbidden_messages:
        return forbidden_messages[-1](view, what)
    return f"This view was made in a way ({view.creation_meta}) that forbids it to be written, and it {what}"
