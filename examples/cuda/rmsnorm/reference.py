"""The expected result of rmsnorm, in float64: without the rounding to bfloat16 between scale and weight."""

import numpy as np


def rmsnorm(input, weight, eps):
    mean_square = np.mean(input * input, axis=1, keepdims=True)
    return input / np.sqrt(mean_square + eps) * weight
