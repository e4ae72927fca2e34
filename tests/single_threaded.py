"""Imported before NumPy: two processes test on two cores, where idle threads of a linear-algebra library spin."""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
