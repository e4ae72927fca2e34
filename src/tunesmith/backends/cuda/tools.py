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
from tunesmith.backends.port import SanitizerKind
from tunesmith.backends.tool_process import run_under, text_of, version_of
from tunesmith.base.text import end_of_process, strip_controls, truncate_text
from tunesmith.profiles.facts import ALL, Counters, Stall
from tunesmith.run.events import SanitizerFinding, distinct_findings, kind_of

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
                read = {
                    name: _parse_counter_value(cell, units.get(name, "")) for name, cell in metrics.items()
                }
                known = {name: value for name, value in read.items() if value is not None}
                rows.append(Row(named["Kernel Name"], known))
    return rows


def _parse_counter_value(text: str, unit: str) -> float | None:
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
    values = rows[main].values

    def total(metrics: Sequence[str]) -> float | None:
        known = [values[metric] for metric in metrics if metric in values]
        return sum(known) if known else None

    fields: dict[str, float | None] = {n: values[m] / 100 for n, m in SHARES.items() if m in values}
    fields["l2_hits"] = _part_of_all(fields.get("l2_hits"))
    fields |= {name: values.get(metric) for name, metric in RATIOS.items()}
    fields |= {name: total(metrics) for name, metrics in SUMS.items()}
    for name, metric in BYTES.items():
        moved = [row.values[metric] for row in rows if metric in row.values]
        fields[name] = sum(moved) if len(moved) == len(rows) else None
    local, global_ = total(_LOCAL), total(_GLOBAL)
    if local is not None and global_ is not None:
        fields["local_sectors"] = local / (local + global_) if local + global_ else 0.0
    busy, whole = values.get(_BUSY), values.get(_WHOLE)
    if busy is not None and whole:
        fields["sm_active"] = min(1.0, busy / whole)
    return Counters(**fields, stalls=_stall_shares(values))


def _part_of_all(share: float | None) -> float | None:
    """Hits and what was asked for are counted in different replays, so that 170 % may be printed, and mean
    nothing."""
    return None if share is None or share > ALL else min(1.0, share)


def _stall_shares(values: Mapping[str, float]) -> tuple[tuple[Stall, float], ...]:
    shares: dict[Stall, float] = {}
    for reason, ours in STALLS.items():
        value = values.get(stall_metric(reason))
        if value is not None:
            shares[ours] = shares.get(ours, 0.0) + value
    whole = sum(shares.values())
    if not whole:
        return ()
    return tuple(sorted(((name, v / whole) for name, v in shares.items()), key=lambda pair: -pair[1]))


SECONDS = 120.0  # for one workload; most take five
MAX_OUTPUT = 16 << 20  # bytes; a launch takes a few thousand
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
_VERSION = r"Version\s+(\S+)"
_COMPLAINT = re.compile(r"^==(?:ERROR|WARNING)==\s*(.*)$", re.MULTILINE)
_METRIC = re.compile(r"\b[a-z0-9]+__[a-z0-9_]+(?:\.[a-z0-9_.]+)?\b")


def find_ncu() -> str | None:
    """On the PATH, with the toolkit, or where NVIDIA's packages put it; of several the newest."""

    def version(path: Path) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", path.parent.name))

    return toolkit.find_program("ncu", last=sorted(OPT.glob("*/ncu"), key=version, reverse=True))


def ncu_command(program: str, metrics: Sequence[str], log: Path, warm: bool) -> list[str]:
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


def find_complaints(ended: EndedTool) -> list[str]:
    return [strip_controls(text).strip() for text in _COMPLAINT.findall(ended.log + "\n" + ended.stderr)]


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
            rows, why = self._attempt_counting(program, what, binary)
        except OSError as error:
            rows, why = [], f"ncu could not be run: {error.strerror or error}"
        if not rows:
            return Counted(None, why, lasting=bool(self._hopeless))
        left_out = tuple(metric for metric in METRICS if metric not in self.metrics)
        return Counted(counters_of(rows, main_of(rows, what)), "", left_out)

    def _attempt_counting(self, program: str, what: CountLaunches, binary: bytes) -> tuple[list[Row], str]:
        end = time.monotonic() + self.seconds
        unknown: list[str] = []
        launches = len(what.launch.contender.plan.launches)
        for _ in range(ATTEMPTS):
            with tempfile.TemporaryDirectory(prefix="ncu-", dir=self.scratch) as folder:
                ended = self._run_ncu(program, what, binary, Path(folder), end)
            rows = read_rows(ended.log) if not ended.fault else []
            if ended.code == 0 and not ended.reply and len(rows) >= launches:
                return rows, ""
            missing = self._unknown(ended)
            if not missing or len(missing) == len(self.metrics):
                return [], self._explain_failure(program, ended, rows, missing)
            unknown += missing
            self.metrics = tuple(m for m in self.metrics if m not in missing)
        return [], self._of_another_version(program, unknown)

    def _run_ncu(
        self, program: str, what: CountLaunches, binary: bytes, folder: Path, end: float
    ) -> EndedTool:
        log = folder / "log"
        command = ncu_command(program, self.metrics, log, what.launch.warm)
        asked = ((what.load, (binary,)), (what.launch, ()))
        how = (self.environment, folder, log, end, self.seconds, MAX_OUTPUT)
        return run_under("ncu", command, self.worker, asked, *how)

    def _unknown(self, ended: EndedTool) -> list[str]:
        """Metrics of ours that ncu complains of, in that line or in a list below it."""
        if not any("metric" in text.lower() for text in find_complaints(ended)):
            return []
        said = [line for line in (ended.log + "\n" + ended.stderr).splitlines() if not line.startswith('"')]
        named = {name for line in said for name in _METRIC.findall(line)}
        bases = {name for name in named if "." not in name}
        return [m for m in self.metrics if m in named or m.partition(".")[0] in bases]

    def _explain_failure(
        self, program: str, ended: EndedTool, rows: Sequence[Row], unknown: Sequence[str]
    ) -> str:
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
        said = f": {find_complaints(ended)[-1][:300]}" if find_complaints(ended) else ""
        if ended.code:
            last = (strip_controls(ended.stderr).strip().splitlines() or [""])[-1][:300]
            return f"ncu ended with exit status {ended.code}{said or (f': {last}' if last else '')}"
        if rows:
            return f"ncu counted {len(rows)} of the operator's launches and stopped{said}"
        return f"ncu printed no counters{said}"

    def _of_another_version(self, program: str, unknown: Sequence[str]) -> str:
        version = f"version {version_of(program, _VERSION) or 'unknown'}"
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


PROGRAM = "compute-sanitizer"
MEMCHECK, RACECHECK, INITCHECK, SYNCCHECK = TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
MAX_PRINTED = 200  # findings
PADDING = 1 << 16  # bytes behind every array that belong to nobody
CASE_BYTES = 1 << 20
WORDS = 300
_MARK = "========="
_LINE = re.compile(rf"^{_MARK}(.*)$")
# What the first line of a finding begins with; the lines of the same finding are indented.
_RACE = re.compile(r"^(?:Error|Warning):\s*(?:Race reported|Potential)\b", re.IGNORECASE)
_HAZARD = re.compile(r"^(?:Error|Warning):\s*\(?Potential (\w+) hazard detected at (__\w+__)", re.IGNORECASE)
_SIDES = re.compile(r"\b(Read|Write|Atomic)\s+access\b", re.IGNORECASE)
_AT = re.compile(r"\bat (?P<where>.+?)(?:\s+\[\d+ hazards?\])?$")
# kernel(arguments)+0x1f0 in file.cu:12, and as older versions say it: 0x1f0 in file.cu:12:kernel(arguments)
_NEW_PLACE = re.compile(
    r"^(?:void )?(?P<kernel>[^\s(+<]+).*?\+(?P<code>0x[0-9a-f]+)(?: in (?P<file>\S+:\d+))?"
)
_OLD_PLACE = re.compile(r"^(?P<code>0x[0-9a-f]+) in (?:(?P<file>\S+?:\d+):)?(?P<kernel>[^\s(]+)")
_SUMMARY = re.compile(r"\b(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)\b")
# What they say of themselves, and what follows from a fault that they have reported.
_NO_FINDING = ("COMPUTE-SANITIZER", "Program hit ", "Target application", "Saved host", "ERROR SUMMARY",
               "RACECHECK SUMMARY", "LEAK SUMMARY", "Internal", "Process ")  # fmt: skip
_ADDRESSES = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)


def find_compute_sanitizer() -> str | None:
    """Beside the programs of the toolkit, or in a folder of its own there."""
    inside = (root / "compute-sanitizer" / PROGRAM for root in toolkit.cuda_folders())
    return toolkit.find_program(PROGRAM, last=inside)


def sanitizer_command(program: str, tool: str, log: Path) -> list[str]:
    """Errors of calls to the driver are none of a kernel's; what follows a fault would only repeat it."""
    only = {MEMCHECK: ("--report-api-errors", "no", "--padding", str(PADDING))}
    return [
        program,
        *("--tool", tool),
        *("--log-file", str(log)),
        *("--print-limit", str(MAX_PRINTED)),
        *("--show-backtrace", "no"),
        *("--target-processes", "all"),
        *only.get(tool, ()),
    ]


def read_cuda_findings(tool: str, text: str) -> tuple[SanitizerFinding, ...]:
    """The faults in what it wrote. Where it counts some and none can be read, that is a finding too."""
    lines = [found[1] for line in strip_controls(text).splitlines() if (found := _LINE.match(line))]
    findings: list[SanitizerFinding] = []
    place = 0
    while place < len(lines):
        head = lines[place].strip()
        end = place + 1
        while end < len(lines) and lines[end].startswith("     "):
            end += 1
        if head and not head.startswith(_NO_FINDING):
            findings += _parse_cuda_finding(tool, head, lines[place + 1 : end])
        place = end
    counted = [int(number) for number in _SUMMARY.findall("\n".join(lines))]
    if not findings and any(counted):
        words = truncate_text("; ".join(line.strip() for line in lines if line.strip()), WORDS)
        findings.append(SanitizerFinding(tool, "faults in words that we cannot read", words=words))
    return distinct_findings(findings)


def _parse_cuda_finding(tool: str, head: str, body: list[str]) -> list[SanitizerFinding]:
    """One, or none."""
    is_race, is_hazard = _RACE.match(head), _HAZARD.match(head)
    located = [one for one in (head if is_race and not is_hazard else "", *body) if " at " in f" {one}"]
    if not is_race and not located:
        return []  # every fault in a kernel says where it is
    kernel, place = _parse_fault_place(located[0]) if located else ("", "")
    words = "; ".join(line.strip() for line in (head, *body) if line.strip())
    words = truncate_text(_ADDRESSES.sub("…", words), WORDS)
    return [SanitizerFinding(tool, _cuda_fault_kind(head, body), kernel, place, words)]


def _cuda_fault_kind(head: str, body: list[str]) -> str:
    if hazard := _HAZARD.match(head):
        return f"a {hazard[1].upper()} hazard in {hazard[2]} memory"
    if _RACE.match(head):
        sides = sorted({side.lower() for line in (head, *body) for side in _SIDES.findall(line)})
        return f"a race ({' and '.join(sides) or 'unknown'})"
    return kind_of(head)


def _parse_fault_place(line: str) -> tuple[str, str]:
    """The kernel, and where in it."""
    at = _AT.search(line.strip())
    if at is None:
        return "", ""
    where = at["where"].strip()
    for form in (_OLD_PLACE, _NEW_PLACE):
        if found := form.match(where):
            return found["kernel"], found["file"] or found["code"]
    return "", truncate_text(_ADDRESSES.sub("…", where), 100)


SANITIZER = SanitizerKind(
    program=PROGRAM,
    tools=TOOLS,
    at_gate=(MEMCHECK, RACECHECK),
    find=find_compute_sanitizer,
    missing=f"{PROGRAM} is neither on the PATH nor with a CUDA toolkit",
    fix="NVIDIA's CUDA toolkit, from https://developer.nvidia.com/cuda-downloads",
    version=lambda program: version_of(program, _VERSION),
    command=sanitizer_command,
    read=read_cuda_findings,
    nbytes=CASE_BYTES,
    sockets=True,
)
