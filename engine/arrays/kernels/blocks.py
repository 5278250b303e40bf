"""Formulas on large arrays in blocks, on several threads; on a GPU in one kernel."""

from ..dispatch import elementwise, kernels
from ..running import writers
from ..threads import in_blocks, is_large


def blockwise(compute, arrays, numbers=()):
    """``compute(*arrays, *numbers)``, element by element; large arrays in blocks."""
    if not is_large(arrays[0]):
        return compute(*arrays, *numbers) if not kernels else elementwise(compute, *arrays, *numbers)
    return in_blocks(lambda *blocks, into: compute(*blocks, *numbers), *arrays)


def in_rows(axis, compute, *arrays):
    """``compute(*arrays, axis, into)``, in blocks: along the axis it computes in each row by itself."""
    if type(arrays[0]) in writers:
        return writers[type(arrays[0])]("in_rows", in_rows, axis, compute, *arrays)
    if not is_large(arrays[0]):
        return compute(*arrays, axis, None)
    back = axis - arrays[0].ndim
    return in_blocks(lambda *blocks, into=None: compute(*blocks, back, into), *arrays, row=-back)
