"""Communication between processes: their groups, and collectives, which all ranks of a group call together.

From the bottom up::

    messages    what is said of wrong calls, in PyTorch's words
    reduce_op   the operations that combine what the ranks have
    work        a collective that has begun: waiting for it, for so long and no longer
    alone       a group of one process, which needs no MPI
    mpi         a group of processes that MPI has started, by mpi4py
    nccl        a group of GPUs, by CuPy
    groups      the groups of this process: how they begin and end, and who is in them
    calls       the collectives as programs call them
"""
