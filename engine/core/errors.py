"""What is said where the graph does not bear something.  ``surface`` puts PyTorch's sentences in place of these."""

FREED = "Trying to backward through the graph a second time"


def modified(x, writes, since, maker, source):
    """An array was overwritten after a node saved it; ``maker``, ``source``: whose output, whose input it is."""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation"
    )


def lose_graph(view):
    """A view that was made unrecorded loses its part of the graph by a write to its base."""


def forbidden_view(view, what):
    """A view came about in a way that forbids in-place writes, to it and by others to its memory: a text."""
    return f"This view was made in a way ({view.creation_meta}) that forbids it to be written, and it {what}"
