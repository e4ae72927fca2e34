"""Fixtures of tests on real devices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tunesmith.lab import measure


@pytest.fixture(scope="module")
def timed_briefly() -> Iterator[None]:
    """How long is measured is not the subject here."""
    with pytest.MonkeyPatch.context() as patch:
        once = measure.TimingPolicy(rounds=3, min_rounds=3, chain_seconds=0.001, max_seconds=1.0)
        patch.setattr(measure, "policies_of", lambda _device: measure.Policies(once, once, once, once))
        yield
