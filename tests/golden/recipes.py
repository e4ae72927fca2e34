"""How each run of the net is made: in an empty folder, the run's folder is what comes of it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests import running
from tests.end_to_end import kept, killing, tiny, written
from tests.end_to_end.test_mailbox_runs import REPLIES
from tests.end_to_end.test_strategies import REWRITE, SINGLE
from tests.golden import entry, made_up
from tests.kernel_runs import change, stop
from tests.running import EXAMPLES, FIXTURES, Begun, Ended, wait_for_events

COMMAND = ("tune", "problem", "--no-cache", "--seed", 3, "--out", "run")
ALONE = (*COMMAND, "--no-prior")
GIVEN = (*ALONE, "--template", "problem/template.fake")
LARGEST = 48  # of the sizes of a problem that is tried on OpenCL


def tunesmith(place: Path, *words: object, codes: tuple[int, ...] = (0,)) -> Ended:
    ended = running.tunesmith(place, *words, timeout=900)
    assert ended.code in codes, f"{words}: {ended.err}"
    return ended


# -- on the simulated device ----------------------------------------------------------------------------


def fake(
    make: Callable[[Path], Any],
    command: tuple[object, ...],
    *then: tuple[object, ...],
    codes: tuple[int, ...] = (0,),
) -> Callable[[Path], Path]:
    """Of a problem that `make` writes; `then`: further commands."""

    def record(place: Path) -> Path:
        make(place / "problem")
        tunesmith(place, *command, codes=codes)
        for further in then:
            tunesmith(place, *further)
        return place / "run"

    return record


def faulty(search: str, *more: object) -> Callable[[Path], Path]:
    """Good configurations, wrong ones and crashes."""

    def record(place: Path) -> Path:
        *words, _ = killing.simulated(place)
        tunesmith(place, *words, search, *more)
        return place / "run"

    return record


def with_replies(
    replies: Mapping[str, str], *more: object, models: str = "recorded:replies"
) -> Callable[[Path], Path]:
    """Roles played by a recording."""

    def record(place: Path) -> Path:
        tiny.fake(place / "problem")
        (place / "replies").mkdir()
        for name, text in replies.items():
            (place / "replies" / f"{name}.reply.md").write_text(text)
        tunesmith(place, *ALONE, "--model", models, *more)
        return place / "run"

    return record


def through_the_mailbox(place: Path) -> Path:
    """Stopped between every request and its reply."""
    tiny.fake(place / "problem")
    models = ("--model", "planner=mailbox:box,author=mailbox:box")
    command: tuple[object, ...] = (*ALONE, "--no-wait", *models)
    for name, text in REPLIES.items():
        tunesmith(place, *command, codes=(4,))
        (place / "box" / f"{name}.reply.md").write_text(text)
        os.utime(place / "box" / f"{name}.reply.md", (1e9, 1e9))  # nobody writes to it any more
        command = ("resume", "run", "--no-wait")
    tunesmith(place, *command)
    return place / "run"


def waiting(place: Path) -> Path:
    """Nobody ever answers."""
    tiny.fake(place / "problem")
    tunesmith(place, *ALONE, "--no-wait", "--model", "mailbox", codes=(4,))
    return place / "run"


def instructed(*instructions: tuple[Any, str]) -> Callable[[Path], Path]:
    """By whoever watches, one after the other; where that was to stop, the run is taken up again."""

    def record(place: Path) -> Path:
        tiny.fake_many(place / "problem")
        process = Begun(place, *GIVEN, "--evals", 40)
        wait_for_events(place / "run", 12, process)
        for what, text in instructions:
            entry.FolderInbox(place / "run").put(what, text)
        ended = process.end(timeout=300)
        if ended.code == 130:
            tunesmith(place, "resume", "run")
        return place / "run"

    return record


def killed(*more: object) -> Callable[[Path], Path]:
    """And taken up again, with other options."""

    def record(place: Path) -> Path:
        tiny.fake_many(place / "problem")
        killing.kill(place, (*GIVEN, "--evals", 20), 14, 0.0)
        tunesmith(place, "resume", "run", *more)
        return place / "run"

    return record


def with_sizes(problem: Path) -> None:
    kept.problem(problem)
    problem.with_name("sizes.toml").write_text(kept.SIZES)


def from_library(place: Path) -> Path:
    written.problem(place / "problem")
    tunesmith(place, *ALONE[:-2], "first", "--no-prior")
    tunesmith(place, *COMMAND, "--from-library")
    return place / "run"


def devices(place: Path) -> Path:
    *words, _ = killing.simulated(place)
    tunesmith(place, *words, "random", "--device", "fake:0-3,5")
    return place / "run"


AWAY = ("--backend", "fake:absent")
ANALYSIS = json.dumps({"bound": "time", "evidence": ["it takes 20.00 µs"]})
TESTED = {
    "0001-tester": json.dumps({"cases": [{"sizes": {"n": 8}, "why": "short"}]}),
    **{
        f"{n:04}-analyst": json.dumps({"bound": "time", "evidence": ["it takes 20.00 µs"]}) for n in (2, 5, 8)
    },
    "0003-planner": change(),
    "0004-author": written.concrete(5000),
    "0006-planner": change(),
    "0007-author": written.concrete(4000, 2),
    "0009-planner": stop(),
}


# -- on OpenCL, and where a GPU is absent ---------------------------------------------------------------


def smaller(text: str) -> str:
    """A problem file with sizes that are over at once."""

    def less(number: re.Match[str]) -> str:
        value = int(number[0])
        while value > LARGEST:
            value = value // 2 | value % 2
        return str(value)

    def shortened(number: re.Match[str]) -> str:
        return str(min(int(number[0]), LARGEST))

    head, _, rest = re.sub(r" *# .*", "", text).partition("[contract]")
    contract, _, rest = rest.partition("[workloads]")
    sizes, more, end = rest.partition("[accuracy]")
    contract, sizes = re.sub(r"\b\d+\b", shortened, contract), re.sub(r"\b\d+\b", less, sizes)
    return f"{head}[contract]{contract}[workloads]{sizes}{more}{end}"


def opencl(source: Path, *more: object, replies: Path | None = None) -> Callable[[Path], Path]:
    def record(place: Path) -> Path:
        problem = shutil.copytree(source, place / "problem")
        (problem / "problem.toml").write_text(smaller((problem / "problem.toml").read_text()))
        models: tuple[object, ...] = ()
        if replies is not None:
            shutil.copytree(replies, place / "replies")
            models = ("--model", "recorded:replies")
        tunesmith(place, *ALONE, "--evals", 3, *models, *more)
        return place / "run"

    return record


def absent(source: Path, *more: object) -> Callable[[Path], Path]:
    """Built for the assumed GPU, and rehearsed on the host."""

    def record(place: Path) -> Path:
        problem = shutil.copytree(source, place / "problem")
        (problem / "problem.toml").write_text(smaller((problem / "problem.toml").read_text()))
        tunesmith(place, *ALONE, "--evals", 3, "--time", 20, *more, codes=(5,))
        return place / "run"

    return record


def made(source: Path, template: str = "", **more: Any) -> Callable[[Path], Path]:
    return partial(made_up.record, problem=source, template=template, **{"evals": 6, "rounds": 1, **more})


DECLINED = tiny.FAKE_KERNEL + written.scripted("refuses", "wide", why="there is no loop")
ZOO, PUBLISHED, KNOBS = (FIXTURES / name for name in ("zoo", "published", "knobs"))
COMPARED = FIXTURES / "conversations" / "compared"
OWN = ("--template", "problem/template.cl")

RECIPES: Mapping[str, Callable[[Path], Path]] = {
    "fake-given": fake(tiny.fake, GIVEN),
    "fake-random": faulty("random"),
    "fake-exhaustive": faulty("exhaustive"),
    "fake-evolution": faulty("evolution", "--evals", 12),
    "fake-default": faulty("default", "--evals", 14),
    "fake-unpruned": faulty("random", "--no-prune", "--no-steer"),
    "fake-written": fake(written.problem, ALONE),
    "fake-declined": fake(
        partial(
            written.problem, kernel=tiny.FAKE_KERNEL + written.scripted("refuses", "wide", why="no loop")
        ),
        ALONE,
    ),
    "fake-short": fake(tiny.fake_many, (*GIVEN, "--device-seconds", 1)),
    "fake-two-templates": fake(kept.of_two_templates, ALONE),
    "fake-prior-run": fake(
        written.problem, (*ALONE[:-2], "first", "--no-prior"), (*COMMAND, "--prior-run", "first")
    ),
    "fake-retuned": fake(
        with_sizes,
        (*GIVEN[:6], "first", *GIVEN[7:]),
        ("retune", "first", "--workloads", "sizes.toml", "--no-cache", "--out", "run"),
    ),
    "fake-library": from_library,
    "fake-absent": fake(tiny.fake, (*GIVEN, *AWAY), ("resume", "run"), codes=(5,)),
    "fake-absent-written": fake(written.problem, (*ALONE, *AWAY), ("resume", "run"), codes=(5,)),
    "fake-devices": devices,
    "fake-finish": instructed(("hint", "BLOCK=32 DEPTH=3 WIDTH=4"), ("hint", "BLOCK=7"), ("finish", "")),
    "fake-stop": instructed(("stop", "")),
    "fake-killed": killed(),
    "fake-protected": killed("--sandbox", "off"),
    "fake-mailbox": through_the_mailbox,
    "fake-waiting": waiting,
    "fake-rewrite": with_replies(REWRITE, "--strategy", "rewrite"),
    "fake-rewrite-linear": with_replies(TESTED, "--strategy", "rewrite", "--linear"),
    "fake-single": with_replies(SINGLE, "--strategy", "single"),
    "fake-unanswered": with_replies(dict(list(REPLIES.items())[:4])),
    "opencl-transpose": opencl(EXAMPLES / "opencl" / "transpose", *OWN),
    "opencl-softmax": opencl(EXAMPLES / "opencl" / "softmax", *OWN),
    **{
        f"opencl-transpose-{name}": opencl(
            EXAMPLES / "opencl" / "transpose",
            *("--rounds", 1, "--strategy", name),
            replies=COMPARED / "transpose" / f"{name}-1",
        )
        for name in ("rewrite", "single")
    },
    "absent-cuda-given": absent(EXAMPLES / "cuda" / "silu_and_mul", "--template", "problem/template.cu"),
    **{f"cuda-{path.name}": made(path) for path in sorted((EXAMPLES / "cuda").iterdir())},
    **{f"hip-{path.name}": made(path) for path in sorted((EXAMPLES / "hip").iterdir())},
    "cuda-given": made(EXAMPLES / "cuda" / "rmsnorm", "template.cu", evals=30),
    "cuda-ahead": made(EXAMPLES / "cuda" / "silu_and_mul", "template.cu", evals=16, ahead=8),
    "cuda-rounds": made(EXAMPLES / "cuda" / "silu_and_mul", evals=16, rounds=4, ahead=8),
    **{
        f"zoo-{name}": made(ZOO / name)
        for name in (
            *("cl_softmax", "cl_int8_quant", "conv3x3_tile", "layernorm", "moe_top2", "histogram"),
            *("hip_silu", "transpose_tiled"),
        )
    },
    "published-vec_norm": made(PUBLISHED / "vec_norm"),
    "knobs-sgemm_blocked": made(KNOBS / "sgemm_blocked"),
    "models-softmax": made(
        EXAMPLES / "opencl" / "softmax", replies=COMPARED / "softmax" / "template-1", rounds=2
    ),
    "models-plain": made(
        EXAMPLES / "opencl" / "transpose", replies=FIXTURES / "conversations" / "transpose", plain=True
    ),
}
