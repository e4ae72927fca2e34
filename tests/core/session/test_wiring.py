"""Backends, and labs as they are wired."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.samples import DEVICE, a_problem
from tunesmith import backends
from tunesmith.base.errors import BadInput
from tunesmith.lab.lab import LabSettings
from tunesmith.profiles.facts import Ceilings
from tunesmith.run.folder import CeilingsCache
from tunesmith.session import place

PROBLEM = a_problem()


class TestBackends:
    def test_what_runs_a_language(self) -> None:
        assert backends.backend_for("cuda", None) == "cuda"
        assert backends.backend_for("fake", "fake:absent") == "fake:absent"
        assert backends.backend_for("hip", None) == "hip"
        assert backends.backend_for("hip", "cuda") == "cuda", "through a header of ours"
        with pytest.raises(BadInput, match="runs cuda, hip kernels, this one is opencl"):
            backends.backend_for("opencl", "cuda")
        assert not backends.runs_untimed("cuda")
        with pytest.raises(BadInput, match="runs cuda, hip, opencl, fake kernels, this one is metal"):
            backends.backend_for("metal", None)

    def test_a_simulated_device_that_is_elsewhere(self, tmp_path: Path) -> None:
        assert place.list_devices(place.WorkerSite("fake:absent", tmp_path)) == ()
        absent = backends.absent_device("fake:absent", None)
        assert absent is not None
        assert absent.absent
        assert replace(absent, absent=False) in backends.make_backend("fake").devices()
        for spec in ("fake", "opencl"):
            assert backends.absent_device(spec, None) is None
            assert backends.list_compilers(spec) is None

    def test_cuda_builds_for_devices_that_are_not_here(self) -> None:
        absent = backends.absent_device("cuda", "sm_80")
        assert absent is not None
        assert (absent.absent, absent.limits.capability) == (True, 80)
        assert isinstance(backends.list_compilers("cuda"), tuple)
        assert backends.make_backend("cuda").name == "cuda"


class TestProfilesOfASearch:
    """Which labs have something to steer by."""

    def made(self, spec: str, tmp_path: Path, is_host: bool, kept: CeilingsCache | None) -> str:
        device = replace(DEVICE, kind="cpu" if is_host else "gpu")
        assert device.is_host is is_host
        own = place.make_lab(
            PROBLEM, device, place.WorkerSite(spec, tmp_path), settings=LabSettings(0, 1), ceilings=kept
        )
        try:
            return own.lacks.get("profile", "")
        finally:
            own.close()

    def test_simulated_devices_have_none(self, tmp_path: Path) -> None:
        assert "simulated" in self.made("fake", tmp_path, False, None)

    def test_a_processor_has_where_its_ceilings_are_known(self, tmp_path: Path) -> None:
        cache = CeilingsCache(tmp_path / "cache")
        assert "tunesmith profile measures them" in self.made("opencl", tmp_path, True, None)
        assert "are not known" in self.made("opencl", tmp_path, True, cache)
        cache.put(replace(DEVICE, kind="cpu"), Ceilings(launch=1e-6))
        assert self.made("opencl", tmp_path, True, cache) == ""

    def test_a_gpu_has(self, tmp_path: Path) -> None:
        assert self.made("opencl", tmp_path, False, None) == ""
