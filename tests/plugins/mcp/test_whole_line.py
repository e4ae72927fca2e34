"""Whole lines with the SDK's client: a kernel brought and taken home verified; the client as author."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import pytest

from tests.end_to_end import tiny, written
from tests.opencl_here import needs_opencl
from tests.plugins.mcp.agents import Agent, mcp, serve, talk
from tests.running import environment, journal
from tests.talkers import file, plan
from tests.wording import says

# What the owner of the kernel knows: in place of each FILL of the draft. Groups of one work-item are a waste.
PROBLEM = tiny.PROBLEM.format(source="scale.cl").replace('name = "tiny"', 'name = "scale"')
for _old, _new in {
    '["ceildiv(n, 64)"]': '["n"]',
    '["64"]': '["1"]',
    "one_of = [8, 64]": "min = 1, max = 1000000",
    '{ n = 64, cache = "warm" }': "{ n = 300000 }",
}.items():
    assert _old in PROBLEM
    PROBLEM = PROBLEM.replace(_old, _new)
STDIO = [sys.executable, "-m", "tunesmith", "mcp"]


async def finished(agent: Agent, handle: str) -> dict[str, object]:
    """Waits, a few seconds at a time, as agents do."""
    for _ in range(60):
        job = await agent.call("wait", handle=handle, seconds=5)
        if job["state"] != "running":
            return job
    raise AssertionError("it does not end")


@pytest.mark.slow
def test_a_client_plays_author_for_the_tuner(tmp_path: Path) -> None:
    """It drives the run and is its model: requests are read and answered through the same server."""
    problem = written.problem(tmp_path / "tiny", tiny.FAKE_KERNEL)
    _add_traps(tmp_path)
    replies = {"planner": [plan()], "author": [file(written.draft("100 * BLOCK", BLOCK=[64, 32]))]}

    async def script(agent: Agent) -> None:
        wish = {"problem": str(problem), "model": "planner=mailbox,author=mailbox", "rounds": 1}
        job = await agent.call("tune", **wish, out="run", wait_seconds=60)
        asked = []
        while job["state"] == "waiting":
            request = await agent.call("next_request", run="run")
            asked.append(request["request"])
            assert await agent.read(f"tunesmith://runs/{_quoted(tmp_path / 'run')}/requests/{asked[-1]}")
            assert tiny.FAKE_KERNEL.strip() in request["text"], "the model is told the kernel"
            if len(asked) == 1:
                says(await agent.refused("reply", run="run", request="0009-author", text="x"), "0009-author")
                says(await agent.refused("reply", run="run", request=asked[0], text=" "), "1 to 262144")
                status = await agent.call("status", run="run")
                assert (status["state"], status["run"]["requests"]) == ("waiting", asked)
            text = replies[request["role"]].pop(0)
            job = await agent.call("reply", run="run", request=asked[-1], text=text, wait_seconds=60)
        assert asked == ["0001-planner", "0002-author"]
        assert job["state"] == "finished", job
        assert job["run"]["geometric_mean"] > 1.1
        assert (await agent.call("next_request", run="run"))["request"] == ""
        assert any("checking the original" in line for line in agent.progress), "it was told how far it is"

    serve(tmp_path, [tmp_path], script)
    said = [line["event"]["reply"]["text"] for line in journal(tmp_path / "run") if line["type"] == "Replied"]
    assert said[0] == plan()


def _add_traps(folder: Path) -> None:
    """Settings and modules that happen to lie where the client works: nobody reads them."""
    (folder / "tunesmith.toml").write_text("nonsense = 1\n")
    (folder / "numpy.py").write_text("raise SystemExit('run by mistake')\n")


def _quoted(path: Path) -> str:
    return str(path).replace("/", "%2F")


@pytest.mark.long
def test_a_run_is_followed_ended_and_resumed(tmp_path: Path) -> None:
    """By a handle; after the server has ended too, by its folder."""
    tiny.fake(tmp_path / "tiny")
    run = tmp_path / "tunesmith-runs" / "tiny-1"
    wish = {"problem": "tiny", "template": "tiny/template.fake"}

    async def begin(agent: Agent) -> None:
        job = await agent.call("tune", **wish)
        assert (job["state"], job["handle"]) == ("running", "tune-1")
        says(await agent.refused("check", problem="tiny"), "tune-1 is at work")
        while not any("checking the original" in line for line in agent.progress):
            await agent.call("wait", handle="tune-1", seconds=0.2)
        job = await agent.call("cancel", handle="tune-1")
        assert job["state"] == "cancelled", job
        assert job["run"]["state"] == "stopped"
        says(job["hint"], "resume")

    async def cancelled_call(agent: Agent) -> None:
        """Who cancels the call ends the run."""
        with anyio.move_on_after(3):
            await agent.call("resume", run=str(run), wait_seconds=60)
        job = await agent.call("wait", handle="resume-1", seconds=30)
        assert job["state"] in ("cancelled", "finished")

    async def go_on(agent: Agent) -> None:
        job = await agent.call("resume", run=str(run), wait_seconds=60)
        assert job["state"] == "finished", job
        report = await agent.read(job["run"]["resources"]["report.json"])
        assert json.loads(report)["geometric_mean"] == job["run"]["geometric_mean"]
        again = await agent.call("status", run=str(run))
        assert (again["handle"], again["run"]) == ("", job["run"])

    serve(tmp_path, [tmp_path], begin)
    serve(tmp_path, [tmp_path], cancelled_call, mode="legacy")
    serve(tmp_path, [tmp_path], go_on)


@pytest.mark.long
def test_strategies_are_compared_cancelled_and_gone_on_with(tmp_path: Path) -> None:
    written.problem(tmp_path / "tiny", tiny.FAKE_KERNEL + written.scripted("draft", "keep", written.SLOW))
    folder = tmp_path / "tunesmith-runs" / "compare-1"

    async def script(agent: Agent) -> None:
        job = await agent.call("compare", problems=["tiny"], repeats=2, evals=6, rounds=1)
        assert (job["state"], job["handle"]) == ("running", "compare-1")
        while not agent.progress:
            await agent.call("wait", handle="compare-1", seconds=0.2)
        job = await agent.call("cancel", handle="compare-1")
        assert job["state"] == "cancelled", job
        says(job["hint"], f"resume={folder}")
        done = await agent.called("compare", resume=str(folder), wait_seconds=120)
        found = done.structured_content
        assert found["state"] == "finished", found
        (arm,) = found["compared"]["arms"]
        assert (arm["strategy"], arm["runs"], arm["planned"]) == ("expert", 2, 2)
        assert len(found["compared"]["runs"]) == 2
        says(done.content[0].text, "expert at tiny: 2 of 2 runs count")
        first, second = found["compared"]["runs"]
        says(await agent.refused("compare", resume=first, wait_seconds=60), "there is no comparison")
        (one,) = (await agent.call("diff", runs=[first, second]))["differences"]
        assert one["ratio"] > 0

    serve(tmp_path, [tmp_path], script)


@pytest.mark.long
def test_a_run_ends_cleanly_when_the_client_is_gone(tmp_path: Path) -> None:
    """The server is a process of its own here, as clients start it: with it ends what it began."""
    tiny.fake(tmp_path / "tiny")
    (tmp_path / "tunesmith.toml").write_text("nonsense = 1\n")
    run = tmp_path / "run"
    params = mcp.StdioServerParameters(
        command=STDIO[0], args=STDIO[1:], env=environment(tmp_path), cwd=tmp_path
    )

    async def leave(agent: Agent) -> None:
        await agent.call("tune", problem="tiny", template="tiny/template.fake", out="run")
        while not (run / "journal.jsonl").exists():
            await agent.call("wait", handle="tune-1", seconds=0.2)

    async def come_back(agent: Agent) -> None:
        for _ in range(200):
            found = await agent.call("status", run="run")
            if found["state"] != "running":
                break
            await anyio.sleep(0.1)
        assert found["state"] in ("stopped", "finished"), found
        if found["state"] == "stopped":
            assert (await agent.call("resume", run="run", wait_seconds=60))["state"] == "finished"

    talk(params, [tmp_path], leave)
    talk(params, [tmp_path], come_back)


@needs_opencl
@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_client_brings_a_kernel_and_leaves_with_a_verified_one(tmp_path: Path) -> None:
    """Through the server's own process, on a real device."""
    (tmp_path / "scale.cl").write_text(tiny.KERNEL)
    params = mcp.StdioServerParameters(
        command=STDIO[0], args=STDIO[1:], env=environment(tmp_path), cwd=tmp_path
    )

    async def script(agent: Agent) -> None:
        found = await agent.call("inspect", path="scale.cl")
        assert [kernel["entry"] for kernel in found["kernels"]] == ["scale"]
        drafted = await agent.call("draft", kernel="scale.cl", folder="problem")
        assert drafted["fills"] > 0
        folder = Path(drafted["folder"])
        (folder / "problem.toml").write_text(PROBLEM)
        (folder / "reference.py").write_text(tiny.REFERENCE)
        checked = (await agent.call("check", problem="problem"))["checked"]
        assert checked["right"]
        assert checked["judged_by_reference"]
        assert "vector" in (await agent.call("explain", problem="problem"))["moves"]
        job = await agent.call("tune", problem="problem", evals=12, rounds=1, seed=1)
        job = await finished(agent, job["handle"])
        run = job["run"]
        assert run["state"] == "finished", job
        assert any("evaluations, best" in line for line in agent.progress)
        (workload,) = run["workloads"]
        assert 1 < workload["low"] <= workload["speedup"] <= workload["high"]
        says(run["next"], "export")
        says(await agent.read(run["resources"]["report.md"]), "scale")
        kernels = [name for name in run["kernels"] if name.endswith(".cl") and "original" not in name]
        says(await agent.read(run["resources"][kernels[0]]), "__kernel")
        exported = await agent.call("export", run=run["run"], to="opencl", out="exported")
        assert exported["kernels"] >= 1
        assert all((tmp_path / "exported" / name).is_file() for name in exported["files"])

    talk(params, [tmp_path], script)
