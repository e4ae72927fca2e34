"""Hardware counters read by the host of the device: what it says is data, and all it does is a sentence."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.backends.cuda.test_ncu import GOOD, PROGRAM, gone, to_count
from tests.plugins.hosts import hosts_elsewhere as hosts
from tests.wording import says
from tunesmith import backends
from tunesmith.backends import messages as m
from tunesmith.backends.cuda.tools import NOT_FOUND, NOT_PERMITTED, find_ncu
from tunesmith.backends.port import NoCounting
from tunesmith.lab.device_tools import (
    BESIDE_SECONDS,
    MAX_LEFT_OUT,
    CountingThere,
    Spawn,
    counting_here,
    counting_there,
    find_impossible_counter,
    sanitize_counted,
)
from tunesmith.plugins.hosts.transport import RemoteWorkers, StartWorker
from tunesmith.profiles.facts import Counters
from tunesmith.run.protection import AUTO, REQUIRED

CUDA = backends.find_backend_kind("cuda")
POSSIBLE = Counters(
    dram=1.02,
    dram_read=1e12,
    threads_per_instruction=32.0,
    l2_hits=0.0,
    stalls=(("memory", 0.75), ("math", 0.25)),
)


# -- what a host may say ------------------------------------------------------------------------------


def test_what_may_be_is_taken_as_it_is() -> None:
    assert find_impossible_counter(POSSIBLE) == find_impossible_counter(Counters()) == ""
    counted = m.Counted(POSSIBLE, left_out=("dram__bytes_read.sum",))
    assert sanitize_counted(counted) == counted


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        (replace(POSSIBLE, dram=50.0), "dram is 50, which is 0 to 10"),
        (replace(POSSIBLE, dram=-0.1), "dram is -0.1, which is 0 to 10"),
        (replace(POSSIBLE, dram_read=1e30), "dram_read is 1e+30, which is 0 to 1e+18"),
        (replace(POSSIBLE, load_sectors=float("nan")), "load_sectors is nan, which is 0 to 10000"),
        (replace(POSSIBLE, occupancy=float("inf")), "occupancy is inf"),
        (replace(POSSIBLE, stalls=(("memory", 7.0),)), "waited 7 for memory, which is 0 to 1"),
        (replace(POSSIBLE, stalls=(("memory", 0.1),) * 2), "names a reason why warps waited twice"),
        (replace(POSSIBLE, stalls=(("memory", 0.6), ("math", 0.6))), "longer than they were there"),
        (replace(POSSIBLE, l2_hits=12.0), "l2_hits is 12, which is 0 to 10"),
        (replace(POSSIBLE, l2_hits=float("nan")), "l2_hits is nan, which is 0 to 10"),
        (replace(POSSIBLE, threads_per_instruction=64.0), "which is 0 to 33.6"),
        (replace(POSSIBLE, shared_wavefronts=10.0, shared_conflicts=20.0), "more conflicts"),
    ],
)
def test_numbers_that_no_launch_has_are_no_counters(counters: Counters, words: str) -> None:
    found = sanitize_counted(m.Counted(counters))
    assert found.counters is None
    says(found.why_not, "its host counted what cannot be", words)
    assert not found.lasting


@pytest.mark.parametrize(
    ("name", "whole"),
    [("l2_hits", 1), ("occupancy", 1), ("local_sectors", 1), ("sm_active", 1), ("load_bytes_per_sector", 32)],
)
def test_what_is_more_than_a_whole_is_left_out_and_the_rest_kept(name: str, whole: int) -> None:
    """Its parts come from different replays of a launch; the rest is what this machine would keep."""
    found = sanitize_counted(
        m.Counted(replace(POSSIBLE, **{name: 1.79 * whole}), left_out=("dram__bytes_read.sum",))
    )
    assert found == m.Counted(replace(POSSIBLE, **{name: None}), left_out=("dram__bytes_read.sum",))
    near = replace(POSSIBLE, **{name: 1.04 * whole})
    assert sanitize_counted(m.Counted(near)).counters == near


def test_its_words_are_bounded_and_on_one_line() -> None:
    hostile = "\x1b[31mred\nsecond line " + "x" * 100_000
    found = sanitize_counted(m.Counted(None, hostile, lasting=True))
    assert found.why_not.startswith("red second line xxx")
    assert len(found.why_not) <= 600
    assert found.lasting
    assert sanitize_counted(m.Counted(None)).why_not == "no reason given"
    many = sanitize_counted(m.Counted(POSSIBLE, "and yet", left_out=(hostile,) * 1000))
    assert many.why_not == ""
    assert len(many.left_out) == MAX_LEFT_OUT
    assert all(len(name) <= 200 and "\n" not in name for name in many.left_out)
    assert sanitize_counted(m.Done()).why_not == "its host counts nothing: it answered with Done"
    assert len(sanitize_counted(m.Failed("unsupported", hostile)).why_not) < 1000


def test_where_nothing_can_be_counted_no_host_is_asked() -> None:
    def spawn(purpose: str) -> None:
        raise AssertionError(f"a worker for {purpose}")

    for name, sandbox, words in [
        ("fake", AUTO, "a simulated device has no counters"),
        ("opencl", AUTO, "OpenCL has no counters"),
        ("cuda", REQUIRED, "--sandbox required: what counts speaks over the network"),
    ]:
        kind = backends.find_backend_kind(name)
        there = counting_there(kind, spawn, sandbox)  # type: ignore[arg-type]
        here = counting_here(kind, {}, Path(), sandbox)
        assert there == here, "in the same words"
        assert isinstance(there, NoCounting)
        assert there.why.startswith(words)


# -- a host -------------------------------------------------------------------------------------------


@pytest.fixture(name="spawn")
def _spawn(tmp_path: Path) -> Iterator[Spawn]:
    yield from hosts.with_tools(tmp_path / "there", "cuda")


def install(folder: Path, body: str) -> None:
    hosts.install_tool(folder / "there", "ncu", PROGRAM.format(python=sys.executable, body=body, csv=GOOD))


@pytest.mark.slow
def test_the_profiler_there_counts_and_leaves_nothing(tmp_path: Path, spawn: Spawn) -> None:
    body = """
assert not os.environ.get("SECRET_TOKEN")
assert command[-4:-2] == ["cuda", "profile"], command
assert b"CountLaunches" not in open(command[-2], "rb").read()
if "dram__bytes_write.sum" in metrics:
    say("==ERROR== Unknown metric dram__bytes_write.sum\\n")
    sys.exit(1)
say(CSV)
"""
    install(tmp_path, body)
    found = counting_there(CUDA, spawn, AUTO).count(*to_count())
    assert found.counters is not None, found
    assert found.counters.dram == pytest.approx(0.455)
    assert found.left_out == ("dram__bytes_write.sum",)
    assert list((tmp_path / "there/tmp").glob("*/worker-*/ncu-*")) == []


@pytest.mark.slow
def test_without_permission_it_is_asked_once_and_says_what_it_says_here(tmp_path: Path, spawn: Spawn) -> None:
    asked = tmp_path / "there/asked"
    install(tmp_path, f"open({str(asked)!r}, 'a').write('x'); say('==ERROR== ERR_NVGPUCTRPERM'); sys.exit(1)")
    own = counting_there(CUDA, spawn, AUTO)
    found = [own.count(*to_count()) for _ in range(3)]
    assert [one.why_not for one in found] == [NOT_PERMITTED] * 3
    assert asked.read_text() == "x"


@pytest.mark.slow
def test_what_is_no_reason_for_good_is_tried_again(tmp_path: Path, spawn: Spawn) -> None:
    install(tmp_path, "say('==ERROR== Driver resource was unavailable.\\n'); sys.exit(9)")
    own = counting_there(CUDA, spawn, AUTO)
    assert own.count(*to_count()).why_not == "ncu ended with exit status 9: Driver resource was unavailable."
    install(tmp_path, "say(CSV)")
    assert own.count(*to_count()).counters is not None


@pytest.mark.slow
@pytest.mark.skipif(find_ncu() is not None, reason="there is an ncu here")
def test_without_a_profiler_it_says_what_it_says_here(spawn: Spawn) -> None:
    assert counting_there(CUDA, spawn, AUTO).count(*to_count()).why_not == NOT_FOUND


@pytest.mark.slow
def test_one_that_hangs_is_given_up_and_gone(tmp_path: Path, spawn: Spawn) -> None:
    own = tmp_path / "there/pids"
    body = f"""
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(own)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""
    install(tmp_path, body)
    counting = CountingThere(spawn, seconds=3 - BESIDE_SECONDS)
    found = counting.count(*to_count())
    assert found == m.Counted(None, "its host counts nothing: the deadline passed", lasting=True)
    begun = time.monotonic()
    assert counting.count(*to_count()) == found
    assert time.monotonic() - begun < 1, "it is not waited for again"
    assert all(gone(int(pid)) for pid in own.read_text().split())


@pytest.mark.slow
def test_a_worker_that_runs_kernels_starts_no_profiler(spawn: Spawn) -> None:
    what, binary = to_count()
    kernels = spawn("device")
    try:
        reply, _ = kernels.request(what, (binary,), deadline=60)
        assert reply == m.Failed("unsupported", "a worker that runs kernels starts no tools")
    finally:
        kernels.kill()


SAYING = """
greet()
for call, frame in calls():
    os.write(1, framed(call, %r))
"""
COUNTED = '{"type":"Counted","value":{"counters":%s}}'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("no message at all", "spoke nonsense"),
        ("{", "spoke nonsense"),
        (COUNTED % '{"dram": 1e999}', "spoke nonsense"),
        (COUNTED % '{"dram": NaN}', "spoke nonsense"),
        (COUNTED % '{"dram": "half"}', "spoke nonsense"),
        (COUNTED % '{"stalls": [["lunch", 0.5]]}', "spoke nonsense"),
        (COUNTED % '{"dram": 7000}', "its host counted what cannot be: dram is 7000"),
        ('{"type":"Failed","value":{"what":"internal","message":"a bug"}}', "a bug"),
        ('{"type":"Done","value":{}}', "spoke nonsense: Done in reply to CountLaunches"),
    ],
)
def test_a_host_that_answers_nonsense_counts_nothing(tmp_path: Path, answer: str, words: str) -> None:
    with closing(RemoteWorkers("there", hosts.scripted(tmp_path, SAYING % answer.encode()), print)) as made:
        counting = CountingThere(lambda purpose: made.worker(StartWorker("cuda", purpose, AUTO)))
        found = counting.count(*to_count())
    assert found.counters is None
    assert words in found.why_not


@pytest.mark.slow
def test_a_host_that_is_lost_counts_nothing(tmp_path: Path) -> None:
    command = hosts.scripted(tmp_path, "sys.exit('no route')")
    with closing(RemoteWorkers("there", command, print, wait=0.5)) as made:
        counting = CountingThere(lambda purpose: made.worker(StartWorker("cuda", purpose, AUTO)))
        found = counting.count(*to_count())
    assert found.counters is None
    says(found.why_not, "its host counts nothing", "no route")
