"""The expected result of per_token_group_quant_fp8, in float64: quotients before rounding, and scales."""

import numpy as np


def per_token_group_quant(input, tokens, d, group_size, eps, fp8_min, fp8_max):
    groups = input.reshape(tokens, d // group_size, group_size)
    scale = np.maximum(eps, np.abs(groups).max(axis=2)) / fp8_max
    quotient = groups / scale[..., np.newaxis]
    return np.clip(quotient, fp8_min, fp8_max).reshape(tokens, d), scale
