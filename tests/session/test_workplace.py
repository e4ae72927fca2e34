from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from tunesmith.session.workplace import one_thread


def threads() -> int:
    np.linalg.inv(np.eye(2))
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def test_with_the_last_of_runs_that_overlap_the_threads_come_back() -> None:
    with threadpool_limits(2):
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        assert threads() == 1
        first.__exit__(None, None, None)
        assert threads() == 1
        second.__exit__(None, None, None)
        assert threads() == 2
