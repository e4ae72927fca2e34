"""The page and the plot of a profile that is made up."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tests.lab.labs import device_of
from tests.wording import says
from tunesmith.deliver.profile_page import (
    WIDTH,
    bytes_text,
    ceilings_text,
    page_lines,
    scaled,
    work_text,
)
from tunesmith.deliver.rooflines import roofline_svg, roofs_of
from tunesmith.problem.device import Resources
from tunesmith.profiles.counters import Counters
from tunesmith.profiles.diagnose import diagnose
from tunesmith.profiles.facts import (
    BlockTime,
    Ceilings,
    Experiments,
    Instructions,
    LaunchFacts,
    LaunchPart,
    MemoryAccess,
    Mix,
    Operations,
    Point,
    Profile,
    ProfilePage,
    StaticFacts,
    View,
    WorkloadPage,
    WorkNeeded,
)
from tunesmith.profiles.roofline import Ceiling
from tunesmith.text import seconds_text

CEILINGS = Ceilings(
    copy=tuple(Point(4**k << 16, 1e-6 + (4**k << 16) / 4e12) for k in range(8)),
    read=tuple(Point(4**k << 16, 1e-6 + (4**k << 16) / 4.2e12) for k in range(8)),
    launch=2.1e-6,
    graph_launch=1.2e-6,
    fp32=60e12,
    fp16=120e12,
    cache_bytes=50 << 20,
    cache_bandwidth=8e12,
)


def view(kernel: str, workload: str, seconds: float | None, moved: int = 64 << 20) -> View:
    profile = Profile(
        kernel=kernel,
        workload=workload,
        seconds=seconds,
        limits=device_of("fake").limits,
        work=WorkNeeded(moved // 2, moved // 2, Operations(fp32=2e9)),
        launch=LaunchFacts(
            (4, 1, 1), (128, 1, 1), 128, 4, 16, waves=0.25, occupancy=50, limited_by=("threads",)
        ),
        ceilings=CEILINGS,
        experiments=Experiments(warm=1e-5, cold=2e-5, whole_grid=2e-5, half_grid=1e-5)
        if seconds
        else Experiments(),
        counters=Counters(dram=0.42, load_sectors=16.0, stalls=(("memory", 0.7),)) if seconds else None,
        no_counters="" if seconds else "nobody is permitted",
    )
    return View(profile, diagnose(profile), ("said by the lab",))


def page(**changes: object) -> ProfilePage:
    first = WorkloadPage(
        "decode", {"n": 4}, False, (view("original", "decode", 9e-4), view("BLOCK=64 VEC=8", "decode", 2e-5))
    )
    second = WorkloadPage("prefill", {"n": 99}, True, (view("original", "prefill", 3e-5, 1 << 20),))
    whole = ProfilePage("softmax", "a device", "driver 1", "nvrtc 13.0", CEILINGS, (first, second))
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_the_page_has_what_was_found_side_by_side() -> None:
    lines = page_lines(page(notes=("a note",), plot="somewhere/roofline.svg"))
    text = "\n".join(lines)
    assert lines[0] == "softmax on a device (driver 1), built with nvrtc 13.0"
    (times_line,) = [line for line in lines if line.startswith("  time ") and "20 µs" in line]
    assert "900.0 µs" in times_line
    assert "DRAM 42 %, 16.0 sectors a load, waiting for memory 70 %" in " ".join(text.split())
    assert "half the grid 10 µs of 20 µs (50 %)" in " ".join(text.split())
    assert "→ " in text
    assert "said by the lab" in text
    assert text.count("said by the lab") == 1  # what all of them say is said once
    assert text.endswith("somewhere/roofline.svg")
    assert all(len(line) <= WIDTH for line in lines)


def alone(profile: Profile) -> str:
    """The page of this one kernel, as one line."""
    shown = WorkloadPage("large", {}, False, (View(profile, diagnose(profile)),))
    return " ".join(" ".join(page_lines(page(workloads=(shown,)))).split())


def test_what_the_build_the_code_and_the_launch_tell() -> None:
    own = view("original", "large", 2e-4).profile
    accesses = (
        MemoryAccess("global", "load", 16, "strided", True, 4, 16),
        MemoryAccess("global", "load", 2, "strided", True, 1, 2),
        MemoryAccess("global", "store", 8, "strided", False, 3, 8),
        MemoryAccess("shared", "load", 4, "strided", True, 9, 4),
    )
    mix = Mix(total=200, fp64=3, division=1, local_load=5, local_store=7, tensor=2, slow_conversion=4)
    static = StaticFacts(
        Resources(registers=40, shared=0, spills=8, private=64), Instructions(mix, mix, accesses)
    )
    assert own.launch is not None
    launch = replace(own.launch, blocks=1, waves=1.25, last_wave=0.25, idle_lanes=0.375, idle_threads=0.5)
    text = alone(replace(own, static=static, launch=launch))
    for words in (
        "40 registers, 0 bytes shared, 8 bytes spilled, 64 bytes of stack",
        "200 instructions, global loads 16 B ×4, 2 B ×1, global stores 8 B ×3, 12 local accesses, 3 in fp64, "
        "1 integer division, 4 slow conversions, 2 tensor instructions",
        "1 block of 128 threads on 16 units, 1.25 waves, the last 25 % full, 38 % of the lanes without a "
        "thread, 50 % of the threads without an element",
    ):
        assert words in text


def test_what_was_counted() -> None:
    own = view("original", "large", 2e-4).profile
    counted = Counters(
        dram=0.4,
        eligible_warps=0.31,
        load_sectors=4.0,
        store_sectors=8.0,
        shared_wavefronts=200.0,
        shared_conflicts=50.0,
        stalls=(("memory", 0.6), ("barrier", 0.2), ("math", 0.12), ("branch", 0.05)),
    )
    text = alone(replace(own, counters=counted))
    says(text, "DRAM 40 %", "0.31 warps ready", "4.0 sectors a load", "8.0 sectors a store")
    says(text, "bank conflicts 25 %", "waiting", "memory 60 %", "barrier 20 %", "math 12 %")
    assert "branch" not in text, "the first three are enough"


@pytest.mark.parametrize(("confidence", "word"), [(0.9, "sure"), (0.65, "likely"), (0.35, "a guess")])
def test_how_sure_a_finding_is_stands_in_words(confidence: float, word: str) -> None:
    own = view("original", "large", 2e-4)
    one = replace(own.diagnosis.findings[0], confidence=confidence, gain=0.5)
    shown = replace(own, diagnosis=replace(own.diagnosis, findings=(one,)))
    text = "\n".join(page_lines(page(workloads=(WorkloadPage("large", {}, False, (shown,)),))))
    says(text, word, "50 %", "by the code")


def test_what_cannot_run_is_said_in_place_of_findings() -> None:
    text = alone(Profile("BLOCK=4096", "large", cannot_run="4096 threads are too many"))
    assert "BLOCK=4096: cannot run: 4096 threads are too many" in text
    assert "machine code" not in text


def test_names_cannot_act_on_a_terminal() -> None:
    bad = page(device="\x1b[31mred\x07", workloads=(replace(page().workloads[0], name="a\x1b]0;x\x07b"),))
    assert not any("\x1b" in line or "\x07" in line for line in page_lines(bad))


def test_a_page_without_measurements_says_so() -> None:
    unseen = WorkloadPage("decode", {}, False, (view("original", "decode", None),))
    text = "\n".join(page_lines(page(workloads=(unseen,), missing="it is elsewhere", ceilings=Ceilings())))
    says(text, "it is elsewhere", "builds alone")
    says(text, "no counters", "nobody is permitted", "the code")
    assert "\n  time" not in text


def test_blocks_that_were_tried_are_listed() -> None:
    own = page().workloads[1]
    tried = replace(
        own.views[0].profile, experiments=Experiments(blocks=(BlockTime(64, 1e-5), BlockTime(128, 2e-5)))
    )
    shown = replace(own, views=(replace(own.views[0], profile=tried),))
    assert any(
        "threads in a block 64: 10 µs, 128: 20 µs" in line for line in page_lines(page(workloads=(shown,)))
    )


def test_numbers_read_well() -> None:
    assert seconds_text(2.5e-6) == "2.5 µs"
    assert seconds_text(1.2345e-3) == "1234.5 µs"
    assert seconds_text(0.0123) == "12.3 ms"
    assert bytes_text(100) == "100 bytes"
    assert bytes_text(3 << 19) == "1.5 MiB"
    assert scaled(4.8e12) == "4.8 T"
    assert "launch 2.1 µs, 1.2 µs in a graph" in ceilings_text(CEILINGS)
    assert ceilings_text(Ceilings()) == "none were measured"
    assert ceilings_text(replace(CEILINGS, measured_on="2026-11-15")).endswith(" (measured 2026-11-15)")
    assert "copy" not in ceilings_text(Ceilings(copy=(Point(64, 0.0),), launch=1e-6))
    assert "2 Gflop in fp32" in work_text(WorkNeeded(1, 1, Operations(fp32=2e9)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ceilings": Ceilings()},
        {"ceilings": Ceilings(launch=1.0)},
        {"workloads": ()},
        {"device": "<&\x00"},
    ],
)
def test_the_plot_is_sound_whatever_is_missing(changes: dict[str, object]) -> None:
    root = ElementTree.fromstring(roofline_svg(page(**changes)))
    assert root.tag.endswith("svg")


def test_the_plot_has_the_curve_the_floor_and_the_points() -> None:
    text = roofline_svg(page()).decode()
    for words in (
        "copy, measured",
        "read, measured",
        "launch floor",
        "decode",
        "prefill",
        "original",
        "tuned",
    ):
        assert words in text
    assert text.count("<circle") == 3 + 2  # the points, and the legend's
    assert roofline_svg(page()) == roofline_svg(page())


def test_stated_operations_have_a_roof_of_their_own() -> None:
    """2 Gflop at 60 Tflop/s take 33 µs: of 64 MiB that are 2013 GB/s."""
    text = roofline_svg(page()).decode()
    assert roofs_of(page())[0] == ("decode", Ceiling.FP32, 64.0, pytest.approx(2013, rel=1e-3))
    assert "fp32 rate, decode" in text
    assert text.count("fp32 rate, ") == 2  # one for each workload
    silent = tuple(
        replace(
            w, views=tuple(replace(v, profile=replace(v.profile, work=WorkNeeded(1, 1))) for v in w.views)
        )
        for w in page().workloads
    )
    assert "fp32 rate" not in roofline_svg(page(workloads=silent)).decode()


def test_a_third_kernel_has_a_point_and_the_line_ends_at_the_winner() -> None:
    own = page().workloads[0]
    three = replace(own, views=(*own.views, view("BLOCK=32", "decode", 5e-5)))
    with_two = roofline_svg(page(workloads=(own,))).decode()
    with_three = roofline_svg(page(workloads=(three,))).decode()
    assert with_three.count("<circle") == with_two.count("<circle") + 1
    assert with_three.count("<line") == with_two.count("<line")


def test_of_several_launches_each_is_shown_with_its_share() -> None:
    own = view("original", "large", 2e-5)
    assert own.profile.launch is not None
    first = LaunchPart("first", own.profile.static, replace(own.profile.launch, blocks=7), 0.25)
    second = LaunchPart("second", own.profile.static, own.profile.launch, 0.75)
    both = replace(own.profile, parts=(first, second))
    shown = View(both, diagnose(both))
    lines = " ".join(
        " ".join(page_lines(page(workloads=(WorkloadPage("large", {}, False, (shown,)),)))).split()
    )
    says(lines, "other launches", "first", "25 %")
    says(lines, "2 launches", "second takes most", "first 25 %", "second 75 %")
    assert "other launches" not in " ".join(page_lines(page()))
