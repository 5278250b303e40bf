"""The workloads as users of each framework write them.

An adapter's ``prepare(name)`` returns ``step``, which is timed, and ``result``, which runs it once and gives the loss
and the gradients as {name: array}.
"""
