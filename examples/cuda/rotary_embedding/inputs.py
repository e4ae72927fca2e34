"""Positions, and the cosines and sines that belong to them."""

import numpy as np


def make(rng, tokens, rot_dim, max_pos):
    frequency = 10000.0 ** (-np.arange(0, rot_dim, 2) / rot_dim)
    angle = np.arange(max_pos)[:, np.newaxis] * frequency
    return {
        "positions": rng.integers(0, max_pos, tokens),
        "cos_sin_cache": np.concatenate([np.cos(angle), np.sin(angle)], axis=1),
    }
