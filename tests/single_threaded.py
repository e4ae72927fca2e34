"""Imported before NumPy: two processes share two cores, where idle threads of linear algebra spin."""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
