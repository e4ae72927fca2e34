"""The inspectors that need no device against the suite."""

from __future__ import annotations

from tests.core.lab.numpy_inspector import InspectingBackend
from tests.suites.inspector_suite import InspectorSuite
from tunesmith.backends.port import Session


class TestNumpy(InspectorSuite):
    def make_session(self) -> Session:
        backend = InspectingBackend()
        return backend.open(backend.devices()[0])
