"""Here compilers are the subject: each build is a build."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tunesmith.backends.cuda import compile as nvrtc
from tunesmith.backends.cuda.compile import COMPILERS


@pytest.fixture(autouse=True, scope="module")
def every_build_is_one() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(COMPILERS, "nvrtc", nvrtc.compile_by_nvrtc)
        yield
