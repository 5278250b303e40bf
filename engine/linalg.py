"""Linear algebra under ``torch.linalg``'s names."""

from .ops.linalg import LinAlgError, det, inv, matmul, matrix_norm, norm, slogdet, solve, svdvals
from .ops.reduce import vector_norm

__all__ = ["LinAlgError", "det", "inv", "matmul", "matrix_norm", "norm", "slogdet", "solve", "svdvals", "vector_norm"]
