"""Tools of a sanitizer on the host of the device: what they say is data, and all they do is a sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.plugins.hosts import hosts_elsewhere as hosts
from tests.samples import a_device
from tunesmith import backends
from tunesmith.backends import messages as m
from tunesmith.lab.device_tools import MAX_OUTPUT, SanitizerHost, Spawn, tools_there
from tunesmith.plugins.hosts.transport import RemoteWorkers, StartWorker
from tunesmith.run.protection import AUTO, REQUIRED

OPENCL = backends.find_backend_kind("opencl")
ASKED = m.RunBare(m.Unit("k.cl", "kernel void k() {}", "k", (), ()), "digest", a_device(), ())
TOOL = """#!{python}
import os, sys, time
if "--version" in sys.argv:
    sys.exit(print("Oclgrind 21.10"))
log = sys.argv[sys.argv.index("--log") + 1]
here = os.path.dirname(log)
def say(text):
    with open(log, "a") as file:
        file.write(text)
{body}
"""


@pytest.fixture(name="spawn")
def _spawn(tmp_path: Path) -> Iterator[Spawn]:
    yield from hosts.with_tools(tmp_path / "there", "opencl")


def install(folder: Path, body: str, name: str = "oclgrind") -> None:
    hosts.install_tool(folder / "there", name, TOOL.format(python=sys.executable, body=body))


def found(spawn: Spawn) -> SanitizerHost:
    place = tools_there(OPENCL, spawn, AUTO)
    assert not isinstance(place, str), place
    return place


@pytest.mark.slow
def test_a_tool_there_gives_its_log_and_leaves_nothing(tmp_path: Path, spawn: Spawn) -> None:
    install(tmp_path, 'assert not os.environ.get("SECRET_TOKEN"); say("what it found"); sys.exit(3)')
    place = found(spawn)
    assert place.name == "oclgrind 21.10"
    ended = place.run("oclgrind", ASKED, (), 30.0)
    assert (ended.code, ended.log, ended.replies, ended.fault) == (3, "what it found", 0, "")
    assert list((tmp_path / "there/tmp").glob("*/worker-*/sanitize-*")) == []


@pytest.mark.slow
def test_one_that_hangs_or_prints_without_end_is_ended_there(tmp_path: Path, spawn: Spawn) -> None:
    install(tmp_path, "say('so far'); time.sleep(60)")
    ended = found(spawn).run("oclgrind", ASKED, (), 2.0)
    assert (ended.log, ended.fault) == ("so far", "oclgrind took more than 2 s and was ended")
    install(tmp_path, "while True: say('x' * (1 << 20))")
    ended = found(spawn).run("oclgrind", ASKED, (), 30.0)
    assert "printed more than" in ended.fault
    assert len(ended.log) <= MAX_OUTPUT


@pytest.mark.slow
def test_where_there_is_none_or_it_may_not_be_used_a_sentence_says_so(tmp_path: Path, spawn: Spawn) -> None:
    assert tools_there(OPENCL, spawn, AUTO) == "oclgrind is not on the PATH"
    assert "a simulated device has nothing" in str(
        tools_there(backends.find_backend_kind("fake"), spawn, AUTO)
    )
    assert "speaks over the network" in str(tools_there(backends.find_backend_kind("cuda"), spawn, REQUIRED))
    kernels = spawn("interpret")
    try:
        reply, _ = kernels.request(m.RunUnder("oclgrind", ASKED, 1.0), deadline=60)
        assert reply == m.Failed("unsupported", "a worker that runs kernels starts no tools")
    finally:
        kernels.kill()
    tools = spawn("tools")
    try:
        reply, _ = tools.request(m.ListDevices(), deadline=60)
        assert reply == m.Failed("unsupported", "ListDevices: this worker runs tools and no kernels")
    finally:
        tools.kill()


NONSENSE = """
greet()
for call, frame in calls():
    os.write(1, framed(call, b"no message at all"))
"""


@pytest.mark.slow
def test_a_host_that_answers_nonsense_convicts_nobody(tmp_path: Path) -> None:
    with closing(RemoteWorkers("there", hosts.scripted(tmp_path, NONSENSE), print)) as made:
        said = tools_there(OPENCL, lambda purpose: made.worker(StartWorker("opencl", purpose, AUTO)), AUTO)
    assert str(said).startswith("its host does not say which sanitizer it has: spoke nonsense")
