"""Arrays that a loop finds by their addresses: one call of machine code takes as many as there are.

Whoever hands over an address holds the array, and has looked at its dtype, its size and the order of its elements.
"""

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def array_at(typing, address, count, kind):
    """The array of so many elements of a dtype that lie, in order, at an address; ``carray`` needs Numba's runtime."""
    kind_of_array = types.Array(kind.dtype, 1, "C")

    def lower(context, builder, signature, arguments):
        place, size, _ = arguments
        item = context.get_constant(types.intp, kind.dtype.bitwidth // 8)
        array = context.make_array(kind_of_array)(context, builder)
        data = builder.inttoptr(place, context.get_value_type(types.CPointer(kind.dtype)))
        shape, strides = (cgutils.pack_array(builder, [n]) for n in (size, item))
        context.populate_array(array, data=data, shape=shape, strides=strides, itemsize=item, meminfo=None)
        return array._getvalue()

    return kind_of_array(types.intp, types.intp, kind), lower
