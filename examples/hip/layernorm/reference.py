"""The expected result of layernorm, in float64."""

import numpy as np


def layernorm(x, weight, bias, eps):
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * weight + bias
