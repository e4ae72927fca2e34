"""The expected result of rotary_embedding, in float64."""

import numpy as np


def rotary_embedding(positions, query, key, cos_sin_cache, rot_dim):
    half = rot_dim // 2
    row = cos_sin_cache[positions][:, np.newaxis, :]
    cos, sin = row[..., :half], row[..., half:]

    def rotated(heads):
        x, y, rest = heads[..., :half], heads[..., half:rot_dim], heads[..., rot_dim:]
        return np.concatenate([x * cos - y * sin, y * cos + x * sin, rest], axis=2)

    return rotated(query), rotated(key)
