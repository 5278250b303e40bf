"""Matrix products."""
import operator
from .elementwise import binary
from .structure import transpose
mm = binary("mm", operator.matmul, lambda g, _x, y: g @ transpose(y, -1, -2), lambda g, x, _y: transpose(x, -1, -2) @ g)
matmul_operator = mm
METHODS = "mm"
IN_PLACE = FUNCTIONS = ""
