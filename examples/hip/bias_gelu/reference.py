"""The expected result of bias_gelu, in float64."""

import numpy as np


def bias_gelu(x, bias):
    v = x + bias
    return 0.5 * v * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (v + 0.044715 * v**3)))
