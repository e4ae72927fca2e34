"""The CUDA cheats on the cpu device, where nothing is timed: those that were seen to be caught there by a
check of results or the watch; all of them are caught on a GPU. And what reaches for the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu_here import needs_cpu
from tests.hostile.cheats.corpus import Cheat
from tests.hostile.cheats.cuda_cheats import CHEATS, HONEST_CHEAT, problem
from tests.hostile.cheats.test_cuda import text
from tunesmith.lab.lab import LabSettings, Rehearsal
from tunesmith.plugins.cpu_device import stand_in
from tunesmith.problem.plan import Status
from tunesmith.problem.template_file import parse_template
from tunesmith.session import place

pytestmark = needs_cpu
CAUGHT = (
    *("nan", "large", "poison", "matches", "blocks", "apart", "one_row", "counter", "memo"),
    *("no_sync", "input", "too_early", "outside", "small_workspace", "before", "tail"),
    *("visits", "warm_visits", "patient_memo", "shared_left_over", "not_awaited", "crash", "hang"),
    *("nan_dropped", "clamped", "no_eps", "short_sums", "samples", "inside_tolerance"),
)
# A GPU shows these: sums in another order change bits that bfloat16 rounds away in so few elements; the two
# others need an array of 2**31 elements, or more blocks than are tried here.
FOR_A_GPU = {"atomics", "int_index", "few_blocks"}
# What reaches for the host, and the words that it is turned away with.
ESCAPES = {
    "system": (
        Cheat(
            "host",
            "calls a function of the host by a type that hides it",
            base="silu",
            edits=(("/*head*/", "typedef int F(const char *);"),),
            begin='extern F system; if (out_stride == 77) system("true");',
        ),
        "the type of a function is not allowed",
    ),
    "extern": (
        Cheat("host", "reads a variable of the host", base="silu", begin="extern int opterr; d += opterr;"),
        "extern is not allowed",
    ),
    "libc": (
        Cheat(
            "host",
            "declares a function of the host where it stands",
            base="silu",
            begin="int system(const char *words); if (out_stride == 77) system(0);",
        ),
        "may not call",
    ),
    "pasted": (
        Cheat(
            "host",
            "pastes the host's own assembly together",
            base="silu",
            edits=(("/*head*/", "#define QQ as##m"),),
            begin='long p = 0; QQ("mov %%rsp, %0" : "=r"(p)); if (p == 1) return;',
        ),
        "poison",
    ),
}


def rehearsal(cheat: Cheat, scratch: Path, is_foreign: bool = False) -> Rehearsal:
    """As a run without a GPU looks at a draft."""
    own = problem(cheat.base)
    device = stand_in.choose_device("cuda", place.find_local_devices(place.WorkerSite("cpu", scratch)), None)
    template = replace(parse_template(text(cheat), path="template.cu", problem=own), is_foreign=is_foreign)
    lab = place.make_lab(own, device, place.WorkerSite("cpu", scratch), settings=LabSettings(0, 1))
    try:
        return lab.rehearse(template, template.default)
    finally:
        lab.close()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CAUGHT)
def test_is_caught(name: str, tmp_path: Path) -> None:
    found = rehearsal(CHEATS[name], tmp_path)
    assert found.verdict.status in CHEATS[name].verdicts, found


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("base", ["silu", "rmsnorm"])
def test_the_honest_text_is_not(base: str, tmp_path: Path) -> None:
    found = rehearsal(HONEST_CHEAT[base], tmp_path)
    assert found.verdict.status is Status.OK, found


def test_the_table_says_of_each_where_it_is_caught() -> None:
    run = {name for name, cheat in CHEATS.items() if cheat.at != "vetting"}
    assert run == {*CAUGHT} | FOR_A_GPU
    assert not {*CAUGHT} & FOR_A_GPU


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.few(2)
def test_a_models_escape_is_never_loaded(name: str, tmp_path: Path) -> None:
    cheat, words = ESCAPES[name]
    found = rehearsal(cheat, tmp_path, is_foreign=True)
    assert found.verdict.status is Status.BUILD_FAILED
    assert words in found.verdict.detail
