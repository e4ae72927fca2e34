"""The expected results of fused_add_rmsnorm, in float64.

The kernel normalises the sum as it is, not as it is rounded to float16 for the residual; so does this.
"""

import numpy as np


def fused_add_rmsnorm(input, residual, weight, eps):
    total = input + residual
    mean_square = np.mean(total * total, axis=1, keepdims=True)
    return {"input": total / np.sqrt(mean_square + eps) * weight, "residual": total}
