"""The places of a Ray cluster, and why one cannot be used."""

from __future__ import annotations

import importlib.util
import json
import time
from dataclasses import asdict

import pytest

from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.plugins.hosts import ray
from tunesmith.plugins.hosts.ray import ClusterPlace, cluster_places
from tunesmith.run.config import RunConfig


def node(identity: str, cpus: float = 0, gpus: float = 0, *, alive: bool = True) -> dict[str, object]:
    return {
        "NodeID": identity,
        "Alive": alive,
        "NodeManagerHostname": "box",
        "Resources": {"CPU": cpus, "GPU": gpus},
    }


class TestPlaces:
    def test_each_gpu_is_one_and_has_its_share_of_the_cores(self) -> None:
        found = list(cluster_places([node("abcdef01", 16.0, 2.0)]))
        assert found == [
            ClusterPlace("abcdef01:0", "box-abcdef:0", "abcdef01", 1, 8),
            ClusterPlace("abcdef01:1", "box-abcdef:1", "abcdef01", 1, 8),
        ]

    def test_a_node_without_gpus_only_builds(self) -> None:
        found = {place.node: place.measures for place in cluster_places([node("a", 4), node("b", 4, 1)])}
        assert found == {"a": False, "b": True}

    def test_where_there_are_no_gpus_the_first_node_measures(self) -> None:
        found = [place.measures for place in cluster_places([node("head"), node("a", 4), node("b", 2)])]
        assert found == [True, False]

    def test_dead_nodes_and_those_without_cores_are_none(self) -> None:
        assert list(cluster_places([node("a", 4, 4, alive=False), node("head")])) == []

    def test_a_hostile_host_name_is_a_plain_one(self) -> None:
        (place,) = cluster_places([{**node("a", 1), "NodeManagerHostname": "x\n\x1b[2J/../y"}])
        assert place.name == "x___2J_.._y-a"


class TestRefusals:
    def test_both_ways_at_once(self) -> None:
        with (
            pytest.raises(BadInput, match="both"),
            ray.connect_cluster(RunConfig(ray="auto", workers="f"), print),
        ):
            pass

    def test_without_the_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
        with pytest.raises(DeviceMissing) as raised, ray.connect_cluster(RunConfig(ray="auto"), print):
            pass
        assert "tunesmith[ray]" in (raised.value.hint or "")

    @pytest.mark.parametrize(
        ("says", "fault"),
        [
            ("print('garbage', flush=True)", "nonsense"),
            ("""print('{"fault": "no cluster there"}', flush=True)""", "no cluster there"),
            ("""print('{"ready": true}', flush=True); input()""", "no GPU and no core"),
            ("sys.exit('it broke')", "it broke"),
        ],
    )
    def test_a_driver_that_fails(self, says, fault, tmp_path, monkeypatch):
        monkeypatch.setattr(ray, "DRIVER", ("-c", f"import sys; {says}"))
        cluster = ray.RayCluster("here:1", tmp_path, print)
        try:
            with pytest.raises(DeviceMissing, match=fault):
                cluster.first()
        finally:
            cluster.close()

    def test_one_whose_head_is_gone_has_no_place_that_anybody_waits_for(self, tmp_path, monkeypatch):
        place = json.dumps({"place": asdict(ClusterPlace("a:0", "box-a:0", "a", 1, 2))})
        says = f"""print('{place}'); print('{{"ready": true}}', flush=True); input()"""
        monkeypatch.setattr(ray, "DRIVER", ("-c", f"import sys; {says}"))
        notes: list[str] = []
        cluster = ray.RayCluster("here:1", tmp_path, notes.append)
        try:
            (one,) = cluster.first()
            assert one.gone == ""
            cluster._driver.kill()
            cluster._thread.join(timeout=20)
            assert "the head is gone" in one.gone
            assert notes == [one.gone]
            begun = time.monotonic()
            with pytest.raises(DeviceMissing, match="cluster at 'here:1' was lost") as missing:
                one.connect()
            assert time.monotonic() - begun < 10, "it is not waited for"
            assert "tunesmith resume" in (missing.value.hint or "")
        finally:
            cluster.close()
