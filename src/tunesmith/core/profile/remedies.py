"""What can be done about a finding, by name. Planners and moves take these up."""

from __future__ import annotations

from enum import StrEnum


class Remedy(StrEnum):
    BLOCK_SIZE = "block_size"
    MORE_BLOCKS = "more_blocks"
    PERSISTENT_GRID = "persistent_grid"
    SPLIT_ROWS = "split_rows"
    ROWS_PER_BLOCK = "rows_per_block"
    WARP_PER_ROW = "warp_per_row"
    COALESCE = "coalesce"
    STAGE_IN_SHARED = "stage_in_shared"
    PAD_SHARED = "pad_shared"
    WIDE_ACCESS = "wide_access"
    ITEMS_IN_FLIGHT = "items_in_flight"
    UNROLL = "unroll"
    CACHE_HINTS = "cache_hints"
    ROW_IN_REGISTERS = "row_in_registers"
    SHUFFLE_REDUCTION = "shuffle_reduction"
    SHARE_SERIAL_WORK = "share_serial_work"
    REGROUP_BRANCHES = "regroup_branches"
    HOIST_INVARIANTS = "hoist_invariants"
    CHEAP_DIVISION = "cheap_division"
    BAKE_SIZES = "bake_sizes"
    FP32_LITERALS = "fp32_literals"
    FAST_INTRINSICS = "fast_intrinsics"
    RECIPROCAL = "reciprocal"
    HARDWARE_CONVERSIONS = "hardware_conversions"
    LAUNCH_BOUNDS = "launch_bounds"
    REGISTER_CAP = "register_cap"
    LESS_SHARED = "less_shared"
    COMPILER_FLAGS = "compiler_flags"
    AGGREGATE_ATOMICS = "aggregate_atomics"
    FEWER_LAUNCHES = "fewer_launches"


MEANINGS: dict[Remedy, str] = {
    Remedy.BLOCK_SIZE: "another number of threads in a block; on a GPU a multiple of the warp",
    Remedy.MORE_BLOCKS: "a grid that gives every compute unit several blocks",
    Remedy.PERSISTENT_GRID: "as many blocks as the device holds at once, each taking work in turn",
    Remedy.SPLIT_ROWS: "several blocks for one row, or for one piece of work of another kind",
    Remedy.ROWS_PER_BLOCK: "several rows for one block",
    Remedy.WARP_PER_ROW: "a warp (sub-group) for each row, with no barrier between warps",
    Remedy.COALESCE: "neighbouring threads take neighbouring elements",
    Remedy.STAGE_IN_SHARED: "tiles go through shared memory, so that reads and writes are both in order",
    Remedy.PAD_SHARED: "a row of a shared array one access longer, or its columns permuted",
    Remedy.WIDE_ACCESS: "loads and stores of up to 16 bytes a thread",
    Remedy.ITEMS_IN_FLIGHT: "several elements of a thread loaded before the first is used",
    Remedy.UNROLL: "loops unrolled",
    Remedy.CACHE_HINTS: "loads and stores that tell the caches what is used once",
    Remedy.ROW_IN_REGISTERS: "a row kept in registers between passes, instead of read again",
    Remedy.SHUFFLE_REDUCTION: "reductions by shuffles within a warp, instead of trees in shared memory",
    Remedy.SHARE_SERIAL_WORK: "all threads share what one of them does",
    Remedy.REGROUP_BRANCHES: "threads of a warp go one way: cases by warp, or arithmetic for branches",
    Remedy.HOIST_INVARIANTS: "what does not change in a loop computed before it",
    Remedy.CHEAP_DIVISION: "index division by a precomputed reciprocal, by shifts, or not at all",
    Remedy.BAKE_SIZES: "sizes as constants of the build",
    Remedy.FP32_LITERALS: "literals and functions in single precision: 0.5f, and in CUDA tanhf",
    Remedy.FAST_INTRINSICS: "__expf (in OpenCL native_exp) and their like, as far as the accuracy allows",
    Remedy.RECIPROCAL: "multiplication by a reciprocal instead of divisions by one number",
    Remedy.HARDWARE_CONVERSIONS: "conversions that are one instruction, two elements at a time",
    Remedy.LAUNCH_BOUNDS: "__launch_bounds__ (in OpenCL reqd_work_group_size) that leave a thread its "
    "registers, or room for one block more",
    Remedy.REGISTER_CAP: "another limit on registers, higher or lower",
    Remedy.LESS_SHARED: "less shared memory for a block",
    Remedy.COMPILER_FLAGS: "flags of the compiler, -use_fast_math (in OpenCL -cl-fast-relaxed-math) among "
    "them, as far as the accuracy allows",
    Remedy.AGGREGATE_ATOMICS: "atomics once for a warp or a block, on partial results",
    Remedy.FEWER_LAUNCHES: "work of several launches in one, or launches that overlap",
}
