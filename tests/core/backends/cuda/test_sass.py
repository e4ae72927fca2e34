"""Machine code counted: short listings by hand, and the planted faults as today's compiler builds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.backends.cuda.builds import built
from tests.core.backends.cuda.static_profiles import FOLDERS, build_of, read_problem, static_profile
from tests.core.backends.cuda.test_disassembly import needs_disassembler
from tests.core.profiles.recorded import recorded
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda.cubin import disassemble_cubin, unpack
from tunesmith.backends.cuda.sass import read_sass
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import Instructions, MemoryAccess

# The start of most kernels: R0 is the number of a thread in the grid.
INDEX = """
    S2R R3, SR_TID.X
    S2UR UR4, SR_CTAID.X
    LDC R0, c[0x0][RZ]
    IMAD R0, R0, UR4, R3
"""


def listing(*parts: str) -> str:
    """As nvdisasm prints it. A line that ends in a colon is a label."""
    lines: list[str] = []
    address = 0
    for line in "\n".join(parts).splitlines():
        if line.strip().endswith(":"):
            lines.append(line.strip())
        elif line.strip():
            lines.append(f"        /*{address:04x}*/                   {line.strip()} ;")
            address += 16
    return "\n".join(lines)


def read(*parts: str) -> Instructions:
    found = read_sass(listing(*parts))
    assert found is not None
    return found


def only_access(*parts: str) -> MemoryAccess:
    (access,) = read(INDEX, *parts).accesses
    return access


def test_no_instructions_no_facts() -> None:
    assert read_sass("") is None
    assert read_sass("\t.section .text.k\n.L_x_0:\n") is None


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    read_sass(text)
    read_sass(listing(INDEX, text.replace(";", "").upper()))


def test_unknown_words_count_as_instructions() -> None:
    assert read("FROBNICATE.E.X4 R0, P3, [[R1, R2", "EXIT").all.total == 2


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("DFMA R4, R2, R4, R2", "fp64"),
        ("FFMA R7, R2, R7, 1", "fp32"),
        ("FFMA2 R6, R2.F32x2.HI_LO, R4.F32x2.HI_LO, R6", "fp32"),
        ("HFMA2.BF16_V2 R7, R2, R7, R3", "fp16"),
        ("HMMA.16816.F32 R4, R8, R10, R4", "tensor"),
        ("HGMMA.64x128x16.F32 R24, gdesc[UR4], R24", "tensor"),
        ("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], UP0", "tensor"),
        ("IMAD.WIDE R2, R0, 0x4, R2", "multiply"),
        ("MUFU.RCP R0, R0", "special"),
        ("F2F.F64.F32 R2, R2", "slow_conversion"),
        ("F2FP.BF16.F32.PACK_AB R2, R3, R4", "conversion"),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "barrier"),
        ("SHFL.BFLY PT, R3, R20, 0x10, 0x1f", "shuffle"),
        ("LDL.LU.64 R24, [R1+0x8]", "local_load"),
        ("STL [R1+0x238], R25", "local_store"),
        ("I2F.U32.RP R0, UR12", "division"),
        ("CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64)", "division"),
    ],
)
def test_classes(line: str, kind: str) -> None:
    assert getattr(read(line, "EXIT").all, kind) == 1


@pytest.mark.parametrize(
    "line", ["HFMA2.MMA R9, -RZ, RZ, 0, 0", "IMAD.MOV.U32 R2, RZ, RZ, R4", "IMAD.IADD R2, R3, 0x1, R4"]
)
def test_moves_and_sums_by_other_units_are_no_products(line: str) -> None:
    mix = read(line, "EXIT").all
    assert (mix.fp16, mix.multiply) == (0, 0)


@pytest.mark.parametrize(
    ("word", "width"),
    [
        ("LDG.E", 4),
        ("LDG.E.U8", 1),
        ("LDG.E.S8.CONSTANT", 1),
        ("LDG.E.U16", 2),
        ("LDG.E.64", 8),
        ("LDG.E.128.CONSTANT", 16),
        ("LDG.E.LTC128B", 4),
        ("LDG.E.ENL2.256", 32),
        ("LDG.E.SYS", 4),
    ],
)
def test_widths(word: str, width: int) -> None:
    assert (
        only_access("LDC.64 R4, c[0x0][0x210]", "IMAD.WIDE R4, R0, 0x4, R4", f"{word} R2, [R4.64]").width
        == width
    )


# -- how addresses vary ---------------------------------------------------------------------------------

BASE = "LDC.64 R4, c[0x0][0x210]"


@pytest.mark.parametrize(
    ("lines", "pattern", "stride"),
    [
        (["IMAD.WIDE R6, R0, 0x4, R4"], "strided", 4),
        (["LEA R6, P0, R0, R4, 0x3", "LEA.HI.X R7, R0, R5, RZ, 0x3, P0"], "strided", 8),
        (["IMAD.SHL.U32 R8, R0, 0x10, RZ", "IADD3 R6, P0, R8, R4, RZ"], "strided", 16),
        (["LDC R9, c[0x0][0x220]", "IMAD R8, R0, R9, RZ", "IMAD.WIDE R6, R8, 0x4, R4"], "far", None),
        (["IMAD R8, R0, 0x20, RZ", "IMAD.WIDE R6, R8, 0x4, R4"], "strided", 128),
        (["SHF.R.U32.HI R8, RZ, 0x5, R3", "IMAD.WIDE R6, R8, 0x4, R4"], "uniform", None),
        (["LOP3.LUT R8, R3, 0x1f, RZ, 0xc0, !PT", "IMAD.WIDE R6, R8, 0x4, R4"], "strided", 4),
        (["LOP3.LUT R8, R3, 0x7, RZ, 0xc0, !PT", "IMAD.WIDE R6, R8, 0x4, R4"], "unknown", None),
        (["SHF.R.U32.HI R8, RZ, 0x3, R3", "IMAD.WIDE R6, R8, 0x4, R4"], "unknown", None),
        (["S2R R8, SR_TID.Y", "IMAD.WIDE R6, R8, 0x4, R4"], "uniform", None),
        (["IADD3 R8, R0, -R3, RZ", "IMAD.WIDE R6, R8, 0x4, R4"], "uniform", None),
        (["IADD.64 R6, R4, R0"], "strided", 1),
        (["HFMA2.MMA R8, -RZ, RZ, 0, 4.76837158203125e-07", "IMAD.WIDE R6, R0, R8, R4"], "strided", 8),
    ],
)
def test_patterns(lines: list[str], pattern: str, stride: int | None) -> None:
    access = only_access(BASE, *lines, "STG.E desc[UR4][R6.64+0x10], R2")
    assert (access.pattern, access.stride) == (pattern, stride)


def test_an_address_that_was_loaded_is_unknown() -> None:
    found = read(
        INDEX,
        BASE,
        "IMAD.WIDE R6, R0, 0x4, R4",
        "LDG.E R8, [R6.64]",
        "IMAD.WIDE R6, R8, 0x4, R4",
        "LDG.E R9, [R6.64]",
    )
    assert [a.pattern for a in found.accesses] == ["strided", "unknown"]


def test_a_scale_within_the_brackets() -> None:
    assert only_access("IMAD R8, R3, 0x21, RZ", "LDS.U R2, [R8.X4+0x20]").stride == 132


def test_a_pointer_that_moves_on_in_a_loop_keeps_its_stride() -> None:
    found = read(
        INDEX, BASE, "IMAD.WIDE R6, R0, 0x4, R4",
        ".L_x_1:", "LDG.E R2, desc[UR4][R6.64]", "IADD3 R6, P0, R6, 0x400, RZ",
        "ISETP.NE.AND P0, PT, R6, R4, PT", "@P0 BRA `(.L_x_1)", "EXIT",
    )  # fmt: skip
    (access,) = found.accesses
    assert (access.pattern, access.stride, access.hot) == ("strided", 4, True)
    assert found.loops == 1


def test_two_ways_to_an_address_make_it_unknown() -> None:
    found = read(
        INDEX, BASE, "IMAD.WIDE R6, R0, 0x4, R4", "ISETP.NE.AND P0, PT, R4, RZ, PT", "@P0 BRA `(.L_x_1)",
        "IMAD.WIDE R6, R0, 0x80, R4",
        ".L_x_1:", "LDG.E R2, [R6.64]", "EXIT",
    )  # fmt: skip
    assert found.accesses[0].pattern == "unknown"


# -- regions --------------------------------------------------------------------------------------------


def test_what_lies_in_a_loop_is_hot() -> None:
    found = read(
        "MOV R1, RZ", ".L_x_0:", "FADD R2, R2, R3", "@P0 BRA `(.L_x_0)", "EXIT", ".L_x_1:", "BRA `(.L_x_1)"
    )
    assert (found.loops, found.hot.total, found.all.total) == (1, 2, 4)
    straight = read("MOV R1, RZ", "EXIT")
    assert straight.hot == straight.all


def test_targets_by_address_as_the_other_tool_prints_them() -> None:
    assert read("MOV R1, RZ", "FADD R2, R2, R3", "@P0 BRA 0x10", "EXIT").loops == 1


ONE = ["ISETP.NE.AND P0, PT, R3, RZ, PT"]
WALK = [
    ".L_x_0:",
    "LDG.E R8, [R4.64]",
    "IADD3 R4, P2, R4, 0x4, RZ",
    "ISETP.NE.AND P1, PT, R4, R6, PT",
    "@P1 BRA `(.L_x_0)",
]


def test_one_thread_in_a_loop_of_its_own() -> None:
    found = read(INDEX, *ONE, "@P0 BRA `(.L_x_9)", *WALK, ".L_x_9:", "BAR.SYNC 0x0", "EXIT")
    assert (found.one_thread, found.one_thread_loop, found.one_thread_global) == (4, 4, 1)


def test_all_others_that_leave_leave_one_thread_alone() -> None:
    assert read(INDEX, *ONE, "@P0 EXIT", *WALK, "EXIT").one_thread_loop == 4
    assert read(INDEX, *ONE, "@!P0 EXIT", *WALK, "EXIT").one_thread_loop == 0


def test_the_one_thread_may_be_the_one_that_jumps() -> None:
    equal = "ISETP.EQ.AND P0, PT, R3, RZ, PT"
    found = read(INDEX, equal, "@P0 BRA `(.L_x_5)", "FADD R9, R9, R9", "EXIT", ".L_x_5:", *WALK, "EXIT")
    assert found.one_thread_loop == 4


def test_a_bound_is_no_split() -> None:
    found = read(
        INDEX,
        "ISETP.GE.AND P0, PT, R0, UR5, PT",
        "@P0 BRA `(.L_x_1)",
        *["FADD R9, R9, R9"] * 20,
        ".L_x_1:",
        "EXIT",
    )
    assert (found.split_by_lane, found.split_by_data, found.one_thread) == (0, 0, 0)


@pytest.mark.parametrize(
    ("value", "by_lane", "by_data"),
    [
        ("LOP3.LUT R8, R3, 0x1, RZ, 0xc0, !PT", 6, 0),
        ("LDG.E R8, [R10.64]", 0, 6),
        ("SHF.R.U32.HI R8, RZ, 0x5, R3", 0, 0),
    ],
)
def test_threads_that_go_two_ways(value: str, by_lane: int, by_data: int) -> None:
    found = read(
        INDEX, "IMAD.WIDE R10, R0, 0x4, R4", value, "ISETP.GT.AND P0, PT, R8, RZ, PT", "@P0 BRA `(.L_x_1)",
        *["FADD R9, R9, R9"] * 5, "BRA `(.L_x_2)",
        ".L_x_1:", *["FMUL R9, R9, R9"] * 9,
        ".L_x_2:", "EXIT",
    )  # fmt: skip
    assert (found.split_by_lane, found.split_by_data) == (by_lane, by_data)


def test_bytes_in_flight_end_where_the_first_is_used() -> None:
    two = ["LDG.E.128 R8, [R4.64]", "LDG.E.128 R12, [R4.64+0x10]", "FADD R8, R8, R12"]
    assert read(*two, "EXIT").bytes_in_flight == 32
    one = ["LDG.E.128 R8, [R4.64]", "FADD R9, R8, R8", "LDG.E.128 R12, [R4.64+0x10]", "FADD R9, R12, R12"]
    assert read(*one, "EXIT").bytes_in_flight == 16


def test_a_division_whose_reciprocal_was_stored_counts_in_the_loop() -> None:
    found = read(
        "I2F.U32.RP R0, R9", "IMAD.HI.U32 R5, R5, R7, R4",
        ".L_x_0:", "IMAD.HI.U32 R6, R5, R2, RZ", "@P0 BRA `(.L_x_0)", "EXIT",
    )  # fmt: skip
    assert (found.hot.division, found.all.division) == (1, 1)


# -- as compilers build it ------------------------------------------------------------------------------

ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]


@needs_nvrtc
@needs_disassembler
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.few(1)
def test_code_alone_names_the_planted_fault(folder: Path) -> None:
    names = json.loads((folder / "expected.json").read_text("utf-8"))["names"]
    for workload in read_problem(folder).workloads:
        findings = diagnose_profile(static_profile(folder, workload.name)).findings
        assert [f.kind for f in findings[:1]] == names, workload.name


SOURCE = """
extern "C" __global__ void columns(float* out, const float* x, int n, int d) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[(size_t)i * d];
}
extern "C" __global__ void sum(float* out, const float* x, int d) {
    __shared__ float tile[32 * 32];
    tile[threadIdx.x * 32] = x[threadIdx.x];
    __syncthreads();
    float s = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < d; i++) s += tile[i];
        *out = s;
    }
}
"""


@needs_nvrtc
@needs_disassembler
@pytest.mark.parametrize("device", ARCHITECTURES)
@pytest.mark.few(1)
def test_the_same_is_read_for_every_architecture(device: str) -> None:
    symbols, cubin = unpack(built(SOURCE, "columns", "sum", device=device).data)
    kernels = disassemble_cubin(cubin).kernels
    columns, total = (read_sass(kernels[symbols[name]]) for name in ("columns", "sum"))
    patterns = {(a.direction, a.width, a.pattern, a.stride) for a in columns.accesses}
    assert patterns == {("load", 4, "far", None), ("store", 4, "strided", 4)}
    stored = [a for a in total.accesses if (a.space, a.direction) == ("shared", "store")]
    assert [a.stride for a in stored] == [128]
    assert total.one_thread_loop > 0


@needs_nvrtc
@needs_disassembler
def test_the_kernel_that_is_to_spill_does_and_is_the_one_that_was_recorded() -> None:
    folder = next(folder for folder in FOLDERS if folder.name == "spills")
    binary, code = build_of(folder, "H200")
    assert (binary.resources.spills or 0) > 0
    assert code.all.local_load > 50
    was = recorded("spills").static
    assert (was.resources.spills or 0) > 0
    assert code.all.local_load == pytest.approx(was.instructions.all.local_load, rel=0.2)
