"""Builds: each unit once, several at a time, and a compiler that dies or never ends."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.lab.in_process import InProcessWorker, Log
from tests.core.lab.labs import device_of, fake_kernel, scale_problem
from tunesmith import backends
from tunesmith.backends.messages import Build, Failed
from tunesmith.base.text import digest_of
from tunesmith.lab import build
from tunesmith.lab.build import Builders, BuiltCode, unit_of
from tunesmith.lab.process import WorkerProcess
from tunesmith.lab.worker.requests import RequestHandler
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Variant, original_variant
from tunesmith.run.config import worker_environment

Make = Callable[..., Builders]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Builders] = []

    def start(spawn: Callable[[], object], count: int = 2) -> Builders:
        made.append(Builders(spawn, device_of("fake"), count))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for pool in made:
        pool.close()


def variant(**kernel: str) -> Variant:
    return original_variant(scale_problem(kernel=fake_kernel(**kernel)))


def in_process(log: Log) -> Callable[[], InProcessWorker]:
    return lambda: InProcessWorker("build", lambda: backends.make_backend("fake"), log)


def test_equal_units_share_one_build(make: Make) -> None:
    log = Log()
    pool = make(in_process(log))
    first, again, other = pool.start(variant()), pool.start(variant()), pool.start(variant(op="copy"))
    assert first is again
    results = [f.result() for f in (first, other)]
    assert all(isinstance(r, BuiltCode) for r in results)
    assert len(log.of(Build)) == 2
    pool.forget()
    assert isinstance(pool.start(variant()).result(), BuiltCode)
    assert len(log.of(Build)) == 3


def test_no_more_workers_than_threads(make: Make) -> None:
    log, lock, spawned = Log(), threading.Lock(), []

    def spawn() -> InProcessWorker:
        with lock:
            spawned.append(1)
        return in_process(log)()

    pool = make(spawn, 2)
    futures = [pool.start(variant(time=str(1000 + i))) for i in range(10)]
    assert all(isinstance(f.result(), BuiltCode) for f in futures)
    assert len(log.of(Build)) == 10
    assert 1 <= len(spawned) <= 2


def test_a_compiler_that_dies(make: Make, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; print('internal compiler error', file=sys.stderr); sys.exit(4)",
    ]
    result = make(lambda: WorkerProcess(command, worker_environment(tmp_path))).start(variant()).result()
    assert result.status is Status.BUILD_FAILED
    assert "the compiler crashed: exit status 4; internal compiler error" in result.detail


def test_a_compiler_that_never_ends(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BUILD_SECONDS", 0.5)
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    result = make(lambda: WorkerProcess(command, worker_environment(tmp_path))).start(variant()).result()
    assert result.status is Status.BUILD_FAILED
    assert "the compiler took more than" in result.detail


def test_closing_ends_a_build_in_progress(make: Make, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    workers: list[WorkerProcess] = []

    def spawn() -> WorkerProcess:
        workers.append(WorkerProcess(command, worker_environment(tmp_path)))
        return workers[-1]

    pool = make(spawn, 1)
    first, second = pool.start(variant()), pool.start(variant(op="copy"))
    while not (workers and workers[0].alive):
        time.sleep(0.01)
    pool.close()
    assert second.cancelled()
    assert first.done()
    assert not workers[0].alive


def strangers(source: str, kind: str = "cpu") -> tuple[Variant, Device]:
    """A kernel that neither the user nor this program wrote."""
    own = replace(variant(), source=source, language="opencl", made_from=("__kernel void k(int n) { }",))
    return own, replace(device_of("fake"), kind=kind)


class Receiving:
    """A worker that keeps what it is asked to build."""

    def __init__(self, asked: list[Build]) -> None:
        self.asked = asked

    def request(self, request: Build, deadline: float) -> tuple[Failed, tuple[bytes, ...]]:
        self.asked.append(request)
        return Failed("build", "enough"), ()

    def kill(self) -> None:
        pass


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_what_a_stranger_wrote_is_vetted_before_it_is_built(kind: str) -> None:
    asked: list[Build] = []
    source = '#line 1 "t.cl"\n__kernel void k(int n) { n = 3; }\n'
    own, device = strangers(source, kind)
    others = ("int getpid(void);\n", "#if 1 > 0u\n#endif\n")
    pool = Builders(lambda: Receiving(asked), device, 1)  # type: ignore[arg-type, return-value]
    pool.start(own).result()
    host, open_ = [pool.start(replace(own, source=source + other)).result() for other in others]
    refused = pool.start(replace(own, source=source + "//\n", refused="line 7: words")).result()
    pool.close()
    for verdict, words in ((host, ":2: getpid"), (open_, ": its conditions"), (refused, ":7: words")):
        assert verdict.status is Status.BUILD_FAILED
        assert f"{own.path}{words}" in verdict.detail
    (built,) = asked
    assert built.unit.source == source
    assert built.unit.vetted == digest_of(source)


def test_no_other_text_is_compiled_than_the_vetted_one() -> None:
    unit = unit_of(variant())
    bench = RequestHandler(backends.make_backend("fake"))
    device = device_of("fake")
    answer, _ = bench.handle(Build(replace(unit, vetted=digest_of("another")), device), ())
    assert answer.what == "build"
    answer, _ = bench.handle(Build(replace(unit, vetted=digest_of(unit.source)), device), ())
    assert not isinstance(answer, Failed)
