"""The expected result of merge_attn_states_lse, in float64."""

import numpy as np


def merge_attn_states(v_a, s_a, v_b, s_b):
    s_a = np.where(np.isinf(s_a), -np.inf, s_a)
    s_b = np.where(np.isinf(s_b), -np.inf, s_b)
    m = np.maximum(s_a, s_b)
    exp_a, exp_b = np.exp(s_a - m), np.exp(s_b - m)
    total = exp_a + exp_b
    weight_a, weight_b = (exp_a / total)[..., np.newaxis], (exp_b / total)[..., np.newaxis]
    return weight_a * v_a + weight_b * v_b, np.log(total) + m
