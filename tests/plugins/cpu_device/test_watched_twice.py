"""Two that watch one kernel, a GPU's own tools and the host's processor: what either finds counts."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.lab.labs import fault_template, lab, read_problem, scale_problem
from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.test_sanitizing import (
    CUDA_BODIES,
    LAUNCH,
    PROBLEM,
    RUNS,
    TEMPLATE,
    _cuda,
    judged,
    tools,
)
from tests.wording import says
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.plugins.cpu_device.stand_in import watch_for
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Variant, builds_of
from tunesmith.problem.template_file import parse_template
from tunesmith.run.events import Sanitized, SanitizerFinding, Verified, combine_device_and_host
from tunesmith.run.protection import AUTO

HOST_FAULT = SanitizerFinding("watch", "a race in shared memory", "scale", "kernel.cu:3")
HOST_CLEAN = Sanitized("cpu g++ 12", ("watch",), cases=((("n", 1),),))
HOST_FINDS = replace(HOST_CLEAN, findings=(HOST_FAULT,))
HOST_ABSENT = Sanitized(absent=(("", "the cpu device does not know textures"),))


class TestBesideTheHost:
    """A GPU's own tool and the host's watch, both made up."""

    def verified(self, folder: Path, body: str, host: Sanitized) -> tuple[Verified, list[int]]:
        asked: list[int] = []

        def beside(variant: Variant, seed: int) -> Sanitized:
            assert "kind" in variant.source, "the candidate's own text"
            asked.append(seed)
            return host

        with lab(scale_problem(), TEMPLATE, sanitizers=tools(folder, body), beside=beside) as own:
            return own.lab.verify(own.trial("long", "finalist")), asked

    def test_both_watch_a_winner(self, tmp_path: Path) -> None:
        found, asked = self.verified(tmp_path, RUNS, HOST_CLEAN)
        assert found.outcome.status is Status.OK
        assert asked == [1], "with the verification's own seed"
        assert found.sanitized.tools == ("first", "second", "watch")
        assert found.sanitized.sentence.startswith("watcher 1.0 and cpu g++ 12 (first, second, watch)")

    @pytest.mark.parametrize(
        ("body", "host", "words"),
        [
            (RUNS, HOST_FINDS, "watcher 1.0 does not find what cpu g++ 12 finds, which counts"),
            ("if is_candidate: say(RACE)", HOST_CLEAN, "cpu g++ 12 does not find what watcher 1.0 finds"),
            ("if is_candidate: say(RACE)", HOST_FINDS, ""),
        ],
    )
    def test_what_either_finds_counts(self, tmp_path: Path, body: str, host: Sanitized, words: str) -> None:
        found, _ = self.verified(tmp_path, body, host)
        (result,) = found.outcome.results
        assert result.status is Status.WRONG
        assert words in result.detail
        assert ("does not find" in result.detail) == bool(words)

    def test_a_host_that_cannot_is_said_and_convicts_nobody(self, tmp_path: Path) -> None:
        found, _ = self.verified(tmp_path, RUNS, HOST_ABSENT)
        assert found.outcome.status is Status.OK
        says(found.sanitized.sentence, "watcher 1.0 (first, second)", "the cpu device's watch was not")

    def test_where_the_device_has_none_the_host_watches_alone(self) -> None:
        template = fault_template("0 * KIND")
        with lab(scale_problem(), template, sanitizers="not here", beside=lambda _v, _s: HOST_FINDS) as own:
            found = own.lab.verify(own.trial("long", "finalist"))
        assert found.outcome.status is Status.WRONG
        says(found.sanitized.sentence, "cpu g++ 12 (watch)", "the device's sanitizer was not: not here")
        assert not found.sanitized.disagreement, "nobody disagrees"


SOME = Sanitized("tool 1", ("memcheck",), cases=((("n", 1),),))
GPU_FAULT = SanitizerFinding("memcheck", "an invalid read")


@pytest.mark.parametrize(
    ("device", "host", "convicts", "differs"),
    [
        (SOME, HOST_CLEAN, False, ""),
        (replace(SOME, findings=(GPU_FAULT,)), HOST_FINDS, True, ""),
        (
            replace(SOME, findings=(GPU_FAULT,)),
            HOST_CLEAN,
            True,
            "cpu g++ 12 does not find what tool 1 finds",
        ),
        (SOME, HOST_FINDS, True, "tool 1 does not find what cpu g++ 12 finds"),
        # What the original has too, or a tool is known to imagine, is no finding to disagree about.
        (replace(SOME, findings=(replace(GPU_FAULT, shared=True),)), HOST_CLEAN, False, ""),
        (replace(SOME, findings=(replace(GPU_FAULT, doubted=True),)), HOST_CLEAN, False, ""),
        (replace(SOME, findings=(GPU_FAULT,)), HOST_ABSENT, True, ""),
        (Sanitized(absent=(("", "none here"),)), HOST_FINDS, True, ""),
        (Sanitized(absent=(("", "none here"),)), HOST_ABSENT, False, ""),
    ],
)
def test_two_that_watched_one_kernel(
    device: Sanitized, host: Sanitized, convicts: bool, differs: str
) -> None:
    found = combine_device_and_host(device, host)
    assert bool(found.own) == convicts
    assert found.disagreement.startswith(differs)
    assert bool(found.disagreement) == bool(differs)
    assert bool(found.tools) == bool(device.tools or host.tools)
    assert "" not in dict(found.absent), "one of them alone does not put the other out of force"


@needs_cpu
@pytest.mark.long
def test_the_host_watches_what_a_gpu_would_run(tmp_path: Path) -> None:
    text = PROBLEM.format(language="cuda", suffix="cu")
    problem = read_problem(text, {"kernel.cu": _cuda(CUDA_BODIES["honest"])})
    host = watch_for(problem, replace(absent_device("H200"), absent=False), tmp_path, AUTO)
    assert host is not None
    with closing(host):
        for what, kind in (("honest", ""), ("a race", "race in shared memory")):
            source = LAUNCH + _cuda(f"v = STEP ? v : v; {CUDA_BODIES[what]}")
            template = parse_template(source, path="template.cu", problem=problem)
            (item,) = builds_of(problem, template, template.default)
            found = host(item.variant, 1)
            assert found.tools == ("watch",)
            kinds = [one.kind for one in found.own]
            assert any(kind in one for one in kinds) if kind else kinds == [], found


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["honest", "a race", "out of bounds"])
def test_both_agree_on_a_gpu(tmp_path: Path, what: str) -> None:
    found = judged(tmp_path, "cuda", CUDA_BODIES["honest"], CUDA_BODIES[what], _cuda, twice=True)
    assert "watch" in found.sanitized.tools, found.sanitized
    assert not found.sanitized.disagreement
    (result,) = found.outcome.results
    assert result.status is (Status.OK if what == "honest" else Status.WRONG), result.detail
