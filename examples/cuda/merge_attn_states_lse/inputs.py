"""Scores of two parts that belong together: one of them may be empty, never both."""

import numpy as np


def make(rng, tokens, heads):
    shape = (tokens, heads)
    # How far apart two scores lie decides everything: from about equal to one that does not count at all.
    spread = np.exp2(rng.integers(-2, 7, shape))
    s_a = rng.normal(0.0, 2.0, shape)
    s_b = s_a + spread * rng.normal(0.0, 1.0, shape)
    kind = rng.integers(0, 256, shape)
    s_a[kind == 0] = -np.inf
    s_a[kind == 1] = np.inf
    s_b[kind == 2] = -np.inf
    s_b[kind == 3] = np.inf
    return {"s_a": s_a, "s_b": s_b}
