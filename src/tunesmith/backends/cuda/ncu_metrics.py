"""The few metrics of Nsight Compute that a diagnosis needs, and how its CSV becomes counters."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunesmith.profiles.facts import Counters, Stall

DURATION = "gpu__time_duration.sum"  # tells the longest of an operator's kernels; never a timing
_ELAPSED, _ACTIVE = "avg.pct_of_peak_sustained_elapsed", "avg.pct_of_peak_sustained_active"
# By field of `Counters`. Shares come in per cent.
SHARES = {
    "dram": f"dram__throughput.{_ELAPSED}",
    "l2": f"lts__throughput.{_ELAPSED}",
    "l1": f"l1tex__throughput.{_ELAPSED}",
    "issue": f"smsp__issue_active.{_ACTIVE}",
    "occupancy": f"sm__warps_active.{_ACTIVE}",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "shared_pipe": f"l1tex__data_pipe_lsu_wavefronts.{_ELAPSED}",
    "fma": f"sm__inst_executed_pipe_fma.{_ACTIVE}",
    "alu": f"sm__inst_executed_pipe_alu.{_ACTIVE}",
    "fp64": f"sm__inst_executed_pipe_fp64.{_ACTIVE}",
    "special": f"sm__inst_executed_pipe_xu.{_ACTIVE}",
    "tensor": f"sm__pipe_tensor_cycles_active.{_ACTIVE}",
}
RATIOS = {
    "eligible_warps": "smsp__warps_eligible.avg.per_cycle_active",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "load_sectors": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "store_sectors": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    "load_bytes_per_sector": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
    "store_bytes_per_sector": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
}
# Added up over all launches of an operator: what must move is told of the whole.
BYTES = {"dram_read": "dram__bytes_read.sum", "dram_written": "dram__bytes_write.sum"}
SUMS = {
    "shared_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",),
    "shared_conflicts": (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    ),
}
_LOCAL = tuple(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{op}.sum" for op in ("ld", "st"))
_GLOBAL = tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st"))
_BUSY, _WHOLE = "sm__cycles_active.avg", "sm__cycles_elapsed.avg"
# What warps wait for, in NVIDIA's words and in ours. `selected` is no waiting.
STALLS: Mapping[str, Stall] = {
    "long_scoreboard": "memory",
    "short_scoreboard": "shared",
    "barrier": "barrier",
    "lg_throttle": "queue",
    "mio_throttle": "queue",
    "tex_throttle": "queue",
    "math_pipe_throttle": "math",
    "branch_resolving": "branch",
    "wait": "dependency",
    "dispatch_stall": "other",
    "drain": "other",
    "imc_miss": "other",
    "membar": "other",
    "misc": "other",
    "no_instruction": "other",
    "not_selected": "other",
    "sleeping": "other",
}


def stall_metric(reason: str) -> str:
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


METRICS: tuple[str, ...] = (
    DURATION,
    *SHARES.values(),
    *RATIOS.values(),
    *BYTES.values(),
    *(metric for metrics in SUMS.values() for metric in metrics),
    *_LOCAL,
    *_GLOBAL,
    _BUSY,
    _WHOLE,
    *(stall_metric(reason) for reason in STALLS),
)
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SECONDS = {"n": 1e-9, "u": 1e-6, "m": 1e-3}


@dataclass(frozen=True)
class Row:
    """One launch as it was counted."""

    kernel: str
    values: Mapping[str, float]

    @property
    def weight(self) -> float:
        return self.values.get(DURATION, 0.0) or 1.0


def read_rows(text: str) -> list[Row]:
    """The launches in what ncu printed: a header, units, a row for each launch, other words between them."""
    rows: list[Row] = []
    header: list[str] = []
    units: dict[str, str] = {}
    for cells in csv.reader(line for line in text.splitlines() if line.startswith('"')):
        if "Kernel Name" in cells and "ID" in cells:
            header, units = cells, {}
        elif header and len(cells) == len(header):
            named = dict(zip(header, cells, strict=True))
            if not named["ID"].strip():
                units = named
            elif named["ID"].strip().isdecimal():
                metrics = {name: text for name, text in named.items() if "__" in name}
                read = {name: _number(cell, units.get(name, "")) for name, cell in metrics.items()}
                known = {name: value for name, value in read.items() if value is not None}
                rows.append(Row(named["Kernel Name"], known))
    return rows


def _number(text: str, unit: str) -> float | None:
    """In bytes and seconds, whatever unit ncu chose; None for what it could not count."""
    try:
        value = float(text.strip().replace(",", ""))
    except ValueError:
        return None
    unit = unit.strip()
    if unit.endswith("byte") and unit != "byte":
        return value * _PREFIXES.get(unit[0], 1.0)
    if unit.endswith("second") or unit in ("ns", "us", "ms", "s"):
        return value * (_SECONDS.get(unit[0], 1.0) if unit not in ("second", "s") else 1.0)
    return value


def counters_of(rows: Sequence[Row], main: int = 0) -> Counters:
    """Of the launch that findings are about, the one in that place. Bytes from and to device memory are those
    of all launches, as what must move is."""
    own = rows[main].values

    def total(metrics: Sequence[str]) -> float | None:
        known = [own[metric] for metric in metrics if metric in own]
        return sum(known) if known else None

    fields: dict[str, float | None] = {n: own[metric] / 100 for n, metric in SHARES.items() if metric in own}
    fields |= {name: own.get(metric) for name, metric in RATIOS.items()}
    fields |= {name: total(metrics) for name, metrics in SUMS.items()}
    for name, metric in BYTES.items():
        moved = [row.values[metric] for row in rows if metric in row.values]
        fields[name] = sum(moved) if len(moved) == len(rows) else None
    local, global_ = total(_LOCAL), total(_GLOBAL)
    if local is not None and global_ is not None:
        fields["local_sectors"] = local / (local + global_) if local + global_ else 0.0
    busy, whole = own.get(_BUSY), own.get(_WHOLE)
    if busy is not None and whole:
        fields["sm_active"] = min(1.0, busy / whole)
    return Counters(**fields, stalls=_stalls(own))


def _stalls(own: Mapping[str, float]) -> tuple[tuple[Stall, float], ...]:
    shares: dict[Stall, float] = {}
    for reason, ours in STALLS.items():
        value = own.get(stall_metric(reason))
        if value is not None:
            shares[ours] = shares.get(ours, 0.0) + value
    whole = sum(shares.values())
    if not whole:
        return ()
    return tuple(sorted(((name, v / whole) for name, v in shares.items()), key=lambda pair: -pair[1]))
