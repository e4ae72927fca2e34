"""The CUDA inspector: its arithmetic on the host wherever there is a C++ compiler, all of it on a GPU."""

from __future__ import annotations

import ctypes
from functools import cache

import pytest

from tests.core.backends.cuda.host_driver import COMPILER, compiled, session_on_host
from tests.suites.inspector_suite import InspectorSuite
from tunesmith.backends.cuda import CudaBackend
from tunesmith.backends.port import Session


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled(tmp_path_factory.mktemp("inspector"))


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")
class TestOnTheHost(InspectorSuite):
    @pytest.fixture
    def session(self, library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Session:
        return session_on_host(library, monkeypatch)

    def make_session(self) -> Session:
        raise NotImplementedError  # it takes a fixture


@cache
def session_on_a_device() -> Session:
    """One for all tests: its inspector is built once."""
    backend = CudaBackend()
    return backend.open(backend.devices()[0])


@pytest.mark.gpu
class TestOnADevice(InspectorSuite):
    def make_session(self) -> Session:
        return session_on_a_device()
