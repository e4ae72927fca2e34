"""Hardware counters through Nsight Compute: a process of its own, launched under `ncu`, and its words read.

Whatever goes wrong is a sentence; the run goes on without counters. Of all metrics only the few that a
diagnosis needs are asked for.
"""

from __future__ import annotations

import csv
import math
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.backends.cuda import toolkit
from tunesmith.backends.messages import Counted, CountLaunches, EndedTool
from tunesmith.backends.tool_process import answer_of, run_under, text_of
from tunesmith.profiles.counters import ALL, Counters, Stall
from tunesmith.text import end_of_process, plain

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
    if not math.isfinite(value):
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
    fields["l2_hits"] = _part_of_all(fields.get("l2_hits"))
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


def _part_of_all(share: float | None) -> float | None:
    """Hits and what was asked for are counted in different replays, so that 170 % may be printed, and mean
    nothing."""
    return None if share is None or share > ALL else min(1.0, share)


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


SECONDS = 120.0  # for one workload; most take five
MOST_OUTPUT = 16 << 20  # bytes; a launch takes a few thousand
ATTEMPTS = 3  # with fewer metrics each, where this version does not know some
OPT = Path("/opt/nvidia/nsight-compute")
PARAMS = Path("/proc/driver/nvidia/params")
STATUS = Path("/proc/self/status")
# Either opens the counters that the driver keeps to administrators: CAP_SYS_ADMIN and CAP_PERFMON.
_CAPABILITIES = (21, 38)
LET_IN = "run as root, or have the administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0"
PERMISSION = "ERR_NVGPUCTRPERM"
NOT_PERMITTED = f"counters are not permitted to this user ({PERMISSION}): {LET_IN}"
NOT_FOUND = (
    "Nsight Compute is not here: ncu is neither on the PATH, nor in CUDA_HOME/bin, nor in "
    f"{OPT}; it comes with NVIDIA's CUDA toolkit"
)
_COMPLAINT = re.compile(r"^==(?:ERROR|WARNING)==\s*(.*)$", re.MULTILINE)
_METRIC = re.compile(r"\b[a-z0-9]+__[a-z0-9_]+(?:\.[a-z0-9_.]+)?\b")


def find_ncu() -> str | None:
    """On the PATH, with the toolkit, or where NVIDIA's packages put it; of several the newest."""

    def version(path: Path) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", path.parent.name))

    return toolkit.find_program("ncu", last=sorted(OPT.glob("*/ncu"), key=version, reverse=True))


def command_line(program: str, metrics: Sequence[str], log: Path, warm: bool) -> list[str]:
    """Clocks stay as they are: what is counted must be what is timed. A cold launch finds its caches flushed
    before every pass, which no writing of ours before the first could do."""
    return [
        program,
        *("--clock-control", "none"),
        *("--cache-control", "none" if warm else "all"),
        *("--profile-from-start", "off"),
        *("--target-processes", "all"),
        *("--csv", "--page", "raw", "--print-units", "base"),
        *("--metrics", ",".join(metrics)),
        *("--log-file", str(log)),
    ]


def complaints(ended: EndedTool) -> list[str]:
    return [plain(text).strip() for text in _COMPLAINT.findall(ended.log + "\n" + ended.stderr)]


@dataclass
class NcuCounting:
    """`worker` is the command of a worker that reads requests from a file, without the names of the files."""

    worker: Sequence[str]
    environment: Mapping[str, str]
    scratch: Path
    seconds: float = SECONDS
    find: Callable[[], str | None] = find_ncu
    metrics: tuple[str, ...] = METRICS
    _hopeless: str = field(default="", init=False)  # what will not be otherwise for the next workload

    def count(self, what: CountLaunches, binary: bytes) -> Counted:
        program = None if self._hopeless else self.find()
        if program is None:
            self._hopeless = self._hopeless or NOT_FOUND
            return Counted(None, self._hopeless, lasting=True)
        try:
            rows, why = self._attempts(program, what, binary)
        except OSError as error:
            rows, why = [], f"ncu could not be run: {error.strerror or error}"
        if not rows:
            return Counted(None, why, lasting=bool(self._hopeless))
        left_out = tuple(metric for metric in METRICS if metric not in self.metrics)
        return Counted(counters_of(rows, main_of(rows, what)), "", left_out)

    def _attempts(self, program: str, what: CountLaunches, binary: bytes) -> tuple[list[Row], str]:
        end = time.monotonic() + self.seconds
        unknown: list[str] = []
        launches = len(what.launch.contender.plan.launches)
        for _ in range(ATTEMPTS):
            with tempfile.TemporaryDirectory(prefix="ncu-", dir=self.scratch) as folder:
                ended = self._run(program, what, binary, Path(folder), end)
            rows = read_rows(ended.log) if not ended.fault else []
            if ended.code == 0 and not ended.reply and len(rows) >= launches:
                return rows, ""
            missing = self._unknown(ended)
            if not missing or len(missing) == len(self.metrics):
                return [], self._reason(program, ended, rows, missing)
            unknown += missing
            self.metrics = tuple(m for m in self.metrics if m not in missing)
        return [], self._of_another_version(program, unknown)

    def _run(self, program: str, what: CountLaunches, binary: bytes, folder: Path, end: float) -> EndedTool:
        log = folder / "log"
        command = command_line(program, self.metrics, log, what.launch.warm)
        asked = ((what.load, (binary,)), (what.launch, ()))
        own = (self.environment, folder, log, end, self.seconds, MOST_OUTPUT)
        return run_under("ncu", command, self.worker, asked, *own)

    def _unknown(self, ended: EndedTool) -> list[str]:
        """Metrics of ours that ncu complains of, in that line or in a list below it."""
        if not any("metric" in text.lower() for text in complaints(ended)):
            return []
        said = [line for line in (ended.log + "\n" + ended.stderr).splitlines() if not line.startswith('"')]
        named = {name for line in said for name in _METRIC.findall(line)}
        bases = {name for name in named if "." not in name}
        return [m for m in self.metrics if m in named or m.partition(".")[0] in bases]

    def _reason(self, program: str, ended: EndedTool, rows: Sequence[Row], unknown: Sequence[str]) -> str:
        if PERMISSION in ended.log or PERMISSION in ended.stderr:
            self._hopeless = NOT_PERMITTED
            return NOT_PERMITTED
        if ended.fault:
            self._hopeless = ended.fault  # it would take as long again at the next workload
            return ended.fault
        if ended.code < 0:
            return f"ncu was {end_of_process(ended.code)} before it was through"
        if ended.reply:
            return f"the kernel could not be launched under ncu: {ended.reply}"
        if unknown:
            return self._of_another_version(program, unknown)
        said = f": {complaints(ended)[-1][:300]}" if complaints(ended) else ""
        if ended.code:
            last = (plain(ended.stderr).strip().splitlines() or [""])[-1][:300]
            return f"ncu ended with exit status {ended.code}{said or (f': {last}' if last else '')}"
        if rows:
            return f"ncu counted {len(rows)} of the operator's launches and stopped{said}"
        return f"ncu printed no counters{said}"

    def _of_another_version(self, program: str, unknown: Sequence[str]) -> str:
        found = re.search(r"Version\s+(\S+)", answer_of(program, "--version"))
        version = f"version {plain(found[1])}" if found else "version unknown"
        few = ", ".join(unknown[:3]) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
        self._hopeless = f"this ncu ({version}) does not know the metrics we ask for: {few}"
        return self._hopeless


def main_of(rows: Sequence[Row], what: CountLaunches) -> int:
    """The row of the launch to report: rows are in the order of launches; else the longest of them."""
    if len(rows) == len(what.launch.contender.plan.launches):
        return what.main
    return max(range(len(rows)), key=lambda place: rows[place].weight)


def may_count(params: Path = PARAMS, status: Path = STATUS) -> tuple[bool | None, str]:
    """Whether, and why; None where nobody says. Nothing is run: only counting itself is proof."""
    kept = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", text_of(params), re.MULTILINE)
    if kept is None:
        return None, "the driver does not say who may read counters: tunesmith profile finds out"
    if kept[1] == "0":
        return True, "counters are open to everyone"
    held = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", text_of(status), re.MULTILINE)
    if held is not None and any(int(held[1], 16) >> bit & 1 for bit in _CAPABILITIES):
        return True, "counters are kept to administrators, and this user is one"
    return False, "counters are kept to administrators, and this user is none"
