"""A group of one process: every collective is a copy, complete at once.  It needs no MPI."""


class Alone:
    """The interface of ``mpi.Machine`` for a single process; arrays may be of any module."""

    rank, size = 0, 1
    devices = None  # arrays of all of them
    what, count, timeout = "", 0, None

    def all_reduce(self, x, op):
        return []

    def broadcast(self, x, root):
        return []

    def reduce(self, x, op, root):
        return []

    def all_gather(self, out, x):
        out[...] = x.reshape(out.shape)
        return []

    def gather(self, out, x, root):
        return self.all_gather(out, x)

    def scatter(self, out, x, root):
        return self.all_gather(out, x)

    def reduce_scatter(self, out, x, op):
        return self.all_gather(out, x)

    def all_to_all(self, out, out_counts, x, in_counts):
        out[...] = x.reshape(out.shape)
        return []

    def barrier(self, what="barrier"):
        return []

    def send(self, x, peer, tag):
        raise NotImplementedError("there is no other process to send to")

    receive = send

    def watch(self, work, waited, limit):
        """Do nothing: there is no rank to wait for."""

    def part(self, ranks, name):
        """The group of some of its ranks."""
        return Alone()

    def end(self):
        """Nothing is held."""
