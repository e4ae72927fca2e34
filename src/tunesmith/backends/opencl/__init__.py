"""OpenCL through pyopencl: PoCL on the CPU by default, any platform and device by choice."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import struct
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.backends import port
from tunesmith.backends.host_pages import HostPages, shield_spans
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import SanitizerKind, system_package
from tunesmith.backends.tool_process import version_of
from tunesmith.base.errors import TunesmithError
from tunesmith.base.text import digest_of, strip_controls, truncate_text
from tunesmith.problem.device import OPENCL, Clock, Device, Limits, Resources
from tunesmith.problem.problem import Kernel, element_type
from tunesmith.run.events import SanitizerFinding, distinct_findings, kind_of
from tunesmith.source.preprocess import Predefined, opencl_of
from tunesmith.source.text import without_comments

# Where the extensions are not known, a source is read with all that it asks for and without any.
_OF_DEVICE = re.compile(r"cl_\w+|__IMAGE_SUPPORT__|__opencl_c_\w+")


def opencl_predefined_macros(kernel: Kernel, device: Device, names: Sequence[str]) -> tuple[Predefined, ...]:
    plain = opencl_of(device.driver, " ".join(kernel.flags), device.extensions)
    extensions = [name for name in names if _OF_DEVICE.fullmatch(name)]
    if not extensions or device.extensions:
        return (plain,)
    everything = (*plain.macros, *((name, "1") for name in extensions))
    return (
        Predefined(plain.macros, f"{plain.said_by}, no extension"),
        Predefined(everything, f"{plain.said_by}, all extensions"),
    )


# In words, the extensions any of which brings it, the words of a source that take it, and those of the log.
_OPTIONAL = (
    ("half precision", ("cl_khr_fp16",), r"\bhalf\d*\b", r"\bhalf\d*\b|cl_khr_fp16"),
    ("double precision", ("cl_khr_fp64", "cl_amd_fp64"), r"\bdouble\d*\b", r"\bdouble\d*\b|cl_khr_fp64"),
    (
        "sub-groups",
        ("cl_khr_subgroups", "cl_intel_subgroups"),
        r"\b(?:intel_|get_)?sub_group\w+",
        r"sub_group|subgroups",
    ),
)


def missing_extensions(source: str, log: str, extensions: str, device: str) -> str:
    """A sentence for each thing that the source uses, the log complains of, and the device has not."""
    text, here = without_comments(source), set(extensions.split())
    missing = [
        f"the kernel needs {what} ({names[0]}), which {device} does not have"
        for what, names, used, said in _OPTIONAL
        if not here.intersection(names) and re.search(used, text) and re.search(said, log)
    ]
    return "; ".join(missing)


_ELF = b"\x7fELF"
_LENGTH = struct.Struct("<I")
# A kernel compiled for any work-group size; for those that were launched, in any process that used the same
# cache, there are files with the sizes in their names.
_GENERIC = re.compile(rb"/([^/\0]{1,1000})/0-0-0/\1\.so")


def pocl_objects(data: bytes) -> list[bytes]:
    """Of each kernel its name and its machine code for any work-group size, in the order of the names. Beside
    these there are temporary paths, and code for sizes that happen to have been launched before.

    Where a file is not laid out like that, all from the first machine code on; empty where there is none.
    """
    found = {}
    for path in _GENERIC.finditer(data):
        begin = path.end() + _LENGTH.size
        if data[path.start() - _LENGTH.size : path.start()] != _LENGTH.pack(len(path.group())):
            continue
        if data[begin : begin + len(_ELF)] == _ELF:
            (size,) = _LENGTH.unpack_from(data, path.end())
            found[path.start()] = (path.group(1), data[begin : begin + size])
    if found:
        return [part for pair in sorted(found.values()) for part in pair]
    start = data.find(_ELF)
    return [data[start:]] if start >= 0 else []


SYSTEM = Path("/")
_CPUINFO = re.compile(r"^cpu MHz\s*:\s*([0-9]{1,6})\b", re.MULTILINE)
_LONGEST = 1 << 22  # characters of a file: thousands of processors


def processor_clocks(system: Path = SYSTEM) -> tuple[Clock, ...]:
    """Of the fastest core right now, and what cores are allowed; empty where the system does not say."""
    cores = sorted((system / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq"))
    now = [mhz for core in cores if (mhz := _read_megahertz(core / "scaling_cur_freq"))]
    most = [mhz for core in cores if (mhz := _read_megahertz(core / "scaling_max_freq"))]
    if not now:
        now = [int(mhz) for mhz in _CPUINFO.findall(_read_system_file(system / "proc/cpuinfo"))]
    return (Clock("processor", max(now), max(most) if most else None),) if now else ()


def _read_megahertz(file: Path) -> int | None:
    """Of a file that counts kHz."""
    text = _read_system_file(file).strip()
    return int(text) // 1000 if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _read_system_file(file: Path) -> str:
    try:
        with open(file, encoding="ascii", errors="replace") as opened:
            return opened.read(_LONGEST)
    except OSError:
        return ""


PROGRAM = TOOL = "oclgrind"
OPTIMISED = "oclgrind with optimised code"
MAX_PRINTED = 200  # findings
CASE_BYTES = 24 << 10  # it interprets: a million elements would take minutes
WORDS = 300
_AT_LINE = re.compile(r"^At line (\d+)")
_KERNEL = re.compile(r"^Kernel:\s*(\S+)")
_WIDE = re.compile(r"\b(?:(?:float|u?int)16|(?:double|u?long)(?:8|16))\b")
_UNABLE = re.compile(r"^(?:Unsupported|Unimplemented|Unhandled|Undefined external)\b", re.IGNORECASE)
_ENTITY = re.compile(r"^(?:(?:First|Second) entity|Entity|Work-group):\s*(.*)$")


def command_line(program: str, tool: str, log: Path) -> list[str]:
    """With room for whatever fits a CPU's device. Not optimised: of what a compiler makes of a source this
    interpreter does not know all. Writes of one value by all are no race in what comes of them; those of
    different ones are reported."""
    return [
        program,
        *("--max-wgsize", "65536"),
        *("--local-mem-size", str(16 << 20)),
        *("--constant-mem-size", str(16 << 20)),
        *(() if tool == OPTIMISED else ("--build-options", "-cl-opt-disable")),
        "--data-races",
        "--uninitialized",
        *("--max-errors", str(MAX_PRINTED)),
        *("--log", str(log)),
    ]


def read_oclgrind_findings(tool: str, text: str) -> tuple[SanitizerFinding, ...]:
    """A finding begins at the margin; all that belongs to it is indented."""
    findings: list[SanitizerFinding] = []
    head, body = "", list[str]()
    for line in (*strip_controls(text).splitlines(), "end"):
        if line.startswith(("\t", " ")) or not line.strip():
            body.append(line.strip())
            continue
        if any(_KERNEL.match(one) for one in body) and not _UNABLE.match(head):
            findings.append(_parse_oclgrind_finding(tool, head, body))
        head, body = line.strip(), []
    return distinct_findings(findings)


def unsupported_feature(text: str) -> str:
    """What it met that it cannot interpret; empty where there is nothing."""
    found = next((line for line in strip_controls(text).splitlines() if _UNABLE.match(line)), "")
    return truncate_text(found.strip(), WORDS)


def tool_to_confirm(finding: SanitizerFinding) -> str:
    """It loses track of what was written where a value is handed to a function in memory; an optimiser leaves
    few such calls."""
    return OPTIMISED if "uninitialized" in finding.kind else ""


def may_be_imagined(finding: SanitizerFinding, source: str) -> bool:
    """Vectors of 64 bytes are handed over so, and to the library's functions in optimised code too."""
    return "uninitialized" in finding.kind and _WIDE.search(source) is not None


def _parse_oclgrind_finding(tool: str, head: str, body: list[str]) -> SanitizerFinding:
    kernel = next((found[1] for one in body if (found := _KERNEL.match(one))), "")
    places = [(number, found[1]) for number, one in enumerate(body) if (found := _AT_LINE.match(one))]
    at = [f"line {line}" for _, line in places]
    code = [body[number + 1] for number, _ in places if number + 1 < len(body)]
    who = [found[1] for one in body if (found := _ENTITY.match(one))]
    words = "; ".join(dict.fromkeys((head, *who[:2], *code)))
    where = " and ".join(dict.fromkeys(at))
    return SanitizerFinding(tool, kind_of(head), kernel, where, truncate_text(words, WORDS))


SANITIZER = SanitizerKind(
    program=PROGRAM,
    tools=(TOOL,),
    at_gate=(TOOL,),
    find=lambda: shutil.which(PROGRAM),
    missing=f"{PROGRAM} is not on the PATH",
    fix=system_package(PROGRAM),
    version=lambda program: version_of(program, r"Oclgrind (\S+)"),
    command=command_line,
    read=read_oclgrind_findings,
    unable=unsupported_feature,
    confirm=tool_to_confirm,
    imagines=may_be_imagined,
    nbytes=CASE_BYTES,
    own_device=True,
)

# The widest a CPU core can move data through its first-level cache, generously: nothing real exceeds it.
CPU_BYTES_PER_CYCLE = 192
SCRAMBLED_BYTES = 1 << 15  # of local memory, at most: more leaves the caches to nobody else
PROBE = bytes(range(256))
HASTY, PATIENT = 20_000, 400_000  # looks for the groups on other cores; a busy machine lets them wait
MAX_GRID = (1 << 31) - 1  # OpenCL names no limit; this many groups of any size still fit its counters
# GPU drivers report less cache than there is; too much rotation costs memory, too little costs the truth.
GPU_CACHE = 64 << 20
# What drivers call a source that came as a string.
_TEMPORARY = re.compile(r"\S*tempfile_\w+\.cl|<(?:kernel|program source)>")


@cache
def _load_cl() -> Any:
    try:
        import pyopencl
    except ImportError as error:
        raise port.Unsupported(f"pyopencl cannot be loaded: {error}") from error
    return pyopencl


class OpenCLBackend:
    name = "opencl"

    def devices(self) -> tuple[Device, ...]:
        return tuple(
            _describe_opencl_device(cl_platform, device, f"{i}:{j}")
            for i, cl_platform in enumerate(_list_or_empty(_load_cl().get_platforms))
            for j, device in enumerate(_list_or_empty(cl_platform.get_devices))
        )

    def build(self, unit: Unit, device: Device) -> port.KernelBinary:
        cl, which = _load_cl(), _load_cl().program_build_info.LOG
        context, handle = _make_context(device.id)
        # pyopencl's own Program.build would leave a failing source behind in the temporary folder.
        program = cl._cl._Program(context, unit.source)
        try:
            program._build(" ".join(unit.flags).encode(), [handle])
        except cl.Error as error:
            log = _TEMPORARY.sub(lambda _: unit.path, program.get_build_info(handle, which).strip())
            needs = missing_extensions(unit.source, log, str(handle.extensions), device.name)
            raise port.BuildFailed("\n".join(filter(None, (needs, log or str(error))))) from error
        log = _TEMPORARY.sub(lambda _: unit.path, program.get_build_info(handle, which).strip())
        kernels = _make_kernels(program, unit)
        data = bytes(program.get_info(cl.program_info.BINARIES)[0])
        digest = _code_digest(data, device, unit, kernels, handle)
        return port.KernelBinary(data, digest, _opencl_resources(kernels, handle), log)

    def open(self, device: Device) -> port.Session:
        return OpenCLSession(device)


@dataclass(frozen=True)
class OpenCLExecutable:
    kernels: dict[str, Any]  # by entry


class OpenCLMemory:
    """A buffer and the sub-buffers handed to kernels; OpenCL has no pointer arithmetic on the host."""

    def __init__(self, buffer: Any, nbytes: int, pages: HostPages | None) -> None:
        self.buffer = buffer
        self.nbytes = nbytes
        self.pages = pages  # where it lies, on a device that is the host
        self._regions: dict[tuple[int, int], Any] = {}

    def region(self, offset: int, nbytes: int) -> Any:
        key = (offset, nbytes)
        if key not in self._regions:
            self._regions[key] = self.buffer.get_sub_region(offset, nbytes)
        return self._regions[key]

    def release(self) -> None:
        for region in self._regions.values():
            region.release()
        self._regions.clear()
        self.buffer.release()
        if self.pages is not None:
            self.pages.close()


class OpenCLSession(port.PlainSession):
    """OpenCL 1.2 has no graphs."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._context, self._handle = _make_context(device.id)
        self._queue = _load_cl().CommandQueue(self._context)
        self._allocated = 0
        self._scrambled = 0

    def clocks(self) -> tuple[Clock, ...]:
        return processor_clocks() if self._device.is_host else ()

    def load(self, unit: Unit, binary: bytes) -> port.Executable:
        cl = _load_cl()
        try:
            program = cl._cl._Program(self._context, [self._handle], [binary])
            program._build(b"", [self._handle])
            return OpenCLExecutable({entry: cl.Kernel(program, entry) for entry in unit.entries})
        except cl.Error as error:
            raise port.LaunchFailed(f"the driver refuses the binary: {error}") from error

    def allocate(self, nbytes: int) -> port.Memory:
        cl = _load_cl()
        limits = self._device.limits
        # Checked here because a CPU driver promises memory it may not have.
        if nbytes > limits.max_allocation or self._allocated + nbytes > limits.memory:
            raise port.OutOfMemory(
                f"{nbytes} bytes wanted with {self._allocated} of {limits.memory} in use; "
                f"the largest single array may have {limits.max_allocation}"
            )
        flags, pages, host = cl.mem_flags.READ_WRITE, None, None
        if self._device.is_host:  # the pages of a program's own arrays, which can be kept from being written
            pages = HostPages(nbytes)
            host = np.ctypeslib.as_array((ctypes.c_uint8 * max(1, nbytes)).from_address(pages.address))
            flags |= cl.mem_flags.USE_HOST_PTR
        try:
            buffer = cl.Buffer(self._context, flags, nbytes, hostbuf=host)
        except cl.Error as error:
            raise port.OutOfMemory(str(error)) from error
        self._allocated += nbytes
        return OpenCLMemory(buffer, nbytes, pages)

    def shielded(self, spans: Sequence[port.Pointer]) -> AbstractContextManager[None]:
        memories = [(p.memory, p.offset, p.nbytes) for p in spans if isinstance(p.memory, OpenCLMemory)]
        return shield_spans([(m.pages, start, size) for m, start, size in memories if m.pages is not None])

    def release(self, memory: port.Memory) -> None:
        assert isinstance(memory, OpenCLMemory)
        memory.release()
        self._allocated -= memory.nbytes

    def write(self, memory: port.Memory, offset: int, data: bytes | memoryview) -> None:
        assert isinstance(memory, OpenCLMemory)
        if memory.pages is not None and self._is_direct:
            self._guarded(self._queue.finish)
            memory.pages.pages[offset : offset + memoryview(data).nbytes] = memoryview(data).cast("B")
        elif len(data):
            with_offset = {"dst_offset": offset, "is_blocking": True}
            self._guarded(lambda: _load_cl().enqueue_copy(self._queue, memory.buffer, data, **with_offset))

    def read(self, memory: port.Memory, offset: int, nbytes: int) -> bytes:
        assert isinstance(memory, OpenCLMemory)
        if memory.pages is not None and self._is_direct:
            self._guarded(self._queue.finish)
            return memory.pages.pages[offset : offset + nbytes]
        target = bytearray(nbytes)
        if nbytes:
            with_offset = {"src_offset": offset, "is_blocking": True}
            self._guarded(lambda: _load_cl().enqueue_copy(self._queue, target, memory.buffer, **with_offset))
        return bytes(target)

    @cached_property
    def _is_direct(self) -> bool:
        """Whether buffers are the pages that they were made of. To hand a few bytes to the driver's thread
        takes longer than to put them there."""
        probe = HostPages(len(PROBE))
        host = np.ctypeslib.as_array((ctypes.c_uint8 * len(PROBE)).from_address(probe.address))
        flags = _load_cl().mem_flags.READ_WRITE | _load_cl().mem_flags.USE_HOST_PTR
        buffer = _load_cl().Buffer(self._context, flags, len(PROBE), hostbuf=host)
        self._guarded(lambda: _load_cl().enqueue_copy(self._queue, buffer, PROBE, is_blocking=True))
        is_direct = probe.pages[:] == PROBE
        buffer.release()
        probe.close()
        return is_direct

    def run(self, calls: Sequence[port.LaunchCall]) -> None:
        for call in calls:
            self._guarded(partial(self._enqueue, call, None))
        self._guarded(self._queue.finish)

    def copy(self, to: port.Pointer, source: port.Pointer) -> None:
        assert isinstance(to.memory, OpenCLMemory) and isinstance(source.memory, OpenCLMemory)
        if to.nbytes:
            buffers = (to.memory.buffer, source.memory.buffer)
            places = {"src_offset": source.offset, "dst_offset": to.offset, "byte_count": to.nbytes}
            self._guarded(lambda: _load_cl().enqueue_copy(self._queue, *buffers, **places))

    def seconds_of(self, calls: Sequence[port.LaunchCall]) -> float:
        cl = _load_cl()
        # Everything is queued behind a gate, so that the host's own slowness stays out of the time.
        gate = cl.UserEvent(self._context)
        try:
            for number, call in enumerate(calls):
                self._guarded(partial(self._enqueue, call, [gate] if number == 0 else None))
            self._queue.flush()
        finally:
            start = time.perf_counter()
            gate.set_status(cl.command_execution_status.COMPLETE)
        self._guarded(self._queue.finish)
        return time.perf_counter() - start

    def scramble(self, is_local: bool, is_patient: bool = False) -> None:
        kernel, memories, words = self._scrambler
        self._scrambled += 1
        numbers = map(np.uint32, (words, self._scrambled, is_local, PATIENT if is_patient else HASTY))
        kernel.set_args(*memories, *numbers, _load_cl().LocalMemory(4 * words))
        size = (self._device.limits.sms,)
        self._guarded(lambda: _load_cl().enqueue_nd_range_kernel(self._queue, kernel, size, (1,)))
        self._guarded(self._queue.finish)

    @cached_property
    def _scrambler(self) -> tuple[Any, tuple[Any, Any], int]:
        """The kernel, memory of its own, and how many words each group fills."""
        cl, limits = _load_cl(), self._device.limits
        source = resources.files("tunesmith.backends.opencl").joinpath("scramble.cl").read_text()
        program = cl._cl._Program(self._context, source)
        program._build(b"", [self._handle])
        words = max(4, min(limits.shared, SCRAMBLED_BYTES)) // 4
        other = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, 4 * limits.sms * words)
        copied = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        arrived = cl.Buffer(self._context, copied, hostbuf=np.zeros(1, np.uint32))
        return cl.Kernel(program, "scramble"), (other, arrived), words

    def _enqueue(self, call: port.LaunchCall, wait_for: list[Any] | None) -> None:
        assert isinstance(call.executable, OpenCLExecutable)
        if call.shared:
            raise port.Unsupported("OpenCL has no launch-time shared memory: use an argument of role 'local'")
        kernel = call.executable.kernels[call.entry]
        if kernel.num_args != len(call.args):
            takes = f"{call.entry} takes {kernel.num_args} arguments"
            raise port.LaunchFailed(f"{takes}, {len(call.args)} are given")
        for index, arg in enumerate(call.args):
            kernel.set_arg(index, _kernel_argument(arg))
        for place, element in call.fills:
            assert isinstance(place.memory, OpenCLMemory)
            what = (place.memory.buffer, np.frombuffer(element, np.uint8), place.offset, place.nbytes)
            _load_cl().enqueue_fill_buffer(self._queue, *what, wait_for=wait_for)
        dims = max([1, *(axis + 1 for axis in range(3) if call.grid[axis] != 1 or call.block[axis] != 1)])
        total = tuple(g * b for g, b in zip(call.grid, call.block, strict=True))[:dims]
        _load_cl().enqueue_nd_range_kernel(self._queue, kernel, total, call.block[:dims], wait_for=wait_for)

    def _guarded(self, action: Any) -> None:
        cl = _load_cl()
        try:
            action()
        except cl.MemoryError as error:
            raise port.OutOfMemory(str(error)) from error
        except cl.Error as error:
            if error.code == cl.status_code.DEVICE_NOT_AVAILABLE:
                raise port.DeviceLost(str(error)) from error
            raise port.LaunchFailed(str(error)) from error


def _kernel_argument(arg: object) -> Any:
    if isinstance(arg, port.Pointer):
        assert isinstance(arg.memory, OpenCLMemory)
        return arg.memory.region(arg.offset, arg.nbytes)
    if isinstance(arg, port.Scalar):
        return element_type(arg.type).numpy.type(arg.value)
    return _load_cl().LocalMemory(arg.nbytes)  # type: ignore[attr-defined]


def _list_or_empty(query: Callable[[], Iterable[Any]]) -> list[Any]:
    try:
        return list(query())
    except _load_cl().Error:  # how the loader says that there is none
        return []


@cache
def _make_context(device_id: str) -> tuple[Any, Any]:
    place, _, number = device_id.partition(":")
    handle = _list_or_empty(_list_or_empty(_load_cl().get_platforms)[int(place)].get_devices)[int(number)]
    return _load_cl().Context([handle]), handle


def _describe_opencl_device(cl_platform: Any, device: Any, id: str) -> Device:
    cl = _load_cl()
    is_cpu = bool(device.type & cl.device_type.CPU)
    is_pocl = "portable computing language" in cl_platform.name.lower()
    sizes = [*device.max_work_item_sizes, 1, 1][:3]
    cycles = device.max_clock_frequency * 1e6 * device.max_compute_units
    return Device(
        backend="opencl",
        id=id,
        name=device.name.strip(),
        platform=cl_platform.name.strip(),
        driver=f"{cl_platform.version.strip()}; {device.driver_version.strip()}",
        kind="cpu" if is_cpu else "gpu",
        limits=Limits(
            max_threads=device.max_work_group_size,
            max_block=(sizes[0], sizes[1], sizes[2]),
            max_grid=(MAX_GRID, MAX_GRID, MAX_GRID),
            shared=device.local_mem_size,
            sms=device.max_compute_units,
            warp=1 if is_cpu else 32,
            llc=device.global_mem_cache_size if is_cpu else max(device.global_mem_cache_size, GPU_CACHE),
            memory=device.global_mem_size,
            max_allocation=device.max_mem_alloc_size,
            alignment=max(1, device.mem_base_addr_align // 8),
            pin_bandwidth=CPU_BYTES_PER_CYCLE * cycles if is_cpu and cycles else None,
        ),
        finishes_compiling_at_launch=is_pocl,
        extensions=tuple(sorted({*device.extensions.split()})),
    )


def _make_kernels(program: Any, unit: Unit) -> list[Any]:
    cl = _load_cl()
    try:
        return [cl.Kernel(program, entry) for entry in unit.entries]
    except cl.Error as error:
        names = program.get_info(cl.program_info.KERNEL_NAMES).replace(";", ", ")
        raise port.BuildFailed(
            f"{unit.path} has no kernel called {' or '.join(map(repr, unit.entries))}; "
            f"it defines {names or 'none'}"
        ) from error


def _opencl_resources(kernels: list[Any], handle: Any) -> Resources:
    info = _load_cl().kernel_work_group_info
    return Resources(
        shared=max(k.get_work_group_info(info.LOCAL_MEM_SIZE, handle) for k in kernels),
        private=max(k.get_work_group_info(info.PRIVATE_MEM_SIZE, handle) for k in kernels),
        max_threads=min(k.get_work_group_info(info.WORK_GROUP_SIZE, handle) for k in kernels),
    )


def _code_digest(data: bytes, device: Device, unit: Unit, kernels: list[Any], handle: Any) -> str:
    """Equal for equal code. PoCL puts a required work-group size into none of it."""
    which = _load_cl().kernel_work_group_info.COMPILE_WORK_GROUP_SIZE
    required = [list(k.get_work_group_info(which, handle)) for k in kernels]
    parts = pocl_objects(data) if device.finishes_compiling_at_launch else []
    return digest_of(*(parts or [data]), repr((unit.entries, required)))


def pocl_environment(prefix: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """What a process must be started with to see the PoCL that set-up unpacks under `prefix` where no wheel
    serves; empty where there is none, or where the user points the loader elsewhere. The loader of libraries
    reads its variable only at the start."""
    folder = prefix / "pocl"
    if not (folder / "vendors" / "pocl.icd").is_file() or inherited.get("OCL_ICD_VENDORS"):
        return {}
    libraries = filter(None, [str(folder / "lib"), inherited.get("LD_LIBRARY_PATH")])
    return {"OCL_ICD_VENDORS": str(folder / "vendors"), "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def _opencl_worker_environment(scratch: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """PoCL links kernels with libraries that only a compiler's installation has, and uses none of them: empty
    archives of these names do, found last, so that real ones win where there are any. It looks for processors
    and memory from the root of the machine, which nobody in a sandbox may list: another one does as well."""
    stubs = scratch / "lib"
    stubs.mkdir(exist_ok=True)
    for name in ("gcc", "gcc_s", "c", "m"):
        (stubs / f"lib{name}.a").write_bytes(b"!<arch>\n")
    root = scratch / "root"
    root.mkdir(exist_ok=True)
    for name in ("sys", "proc"):
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"/{name}")
    return {
        "POCL_CACHE_DIR": str(scratch / "pocl"),
        # NVIDIA's driver for OpenCL has the same cache as for CUDA.
        "CUDA_CACHE_PATH": str(scratch / "nv"),
        "CUDA_CACHE_DISABLE": "1",
        "LIBRARY_PATH": os.pathsep.join(filter(None, [inherited.get("LIBRARY_PATH"), str(stubs)])),
        "PYOPENCL_NO_CACHE": "1",
        "HWLOC_FSROOT": str(root),
        "HWLOC_THISSYSTEM": "1",
        **pocl_environment(Path(sys.prefix), inherited),
    }


def _check_opencl(devices: port.ListDevices) -> list[port.DoctorFinding]:
    has_pyopencl = port.module_finding("pyopencl", "the OpenCL backend", KIND.install)
    linker = shutil.which("ld")
    missing = linker is None and sys.platform == "linux"
    fix = port.system_package("binutils") if missing else ""
    needs = port.DoctorFinding("linker (ld)", not missing, linker or "PoCL needs it to finish kernels", fix)
    watched = SANITIZER.doctor()
    return [has_pyopencl, needs, *([_check_device(devices)] if has_pyopencl.usable else []), watched]


def _check_device(devices: port.ListDevices) -> port.DoctorFinding:
    try:
        found = devices()
    except TunesmithError as error:
        return port.DoctorFinding("OpenCL device", False, str(error), KIND.install)
    if found:
        names = "; ".join(f"{d.name} ({d.platform})" for d in found)
        unpacked = pocl_environment(Path(sys.prefix), os.environ)
        where = f"; PoCL is the one unpacked in {Path(sys.prefix, 'pocl')}" if unpacked else ""
        return port.DoctorFinding("OpenCL device", True, names + where)
    if sys.platform == "linux" and platform.machine() == "x86_64":
        fix = "pip install pocl-binary-distribution"
        return port.DoctorFinding("OpenCL device", False, "no platform found", fix)
    detail = f"no platform found, and PoCL has no wheel for {sys.platform} {platform.machine()}"
    return port.DoctorFinding(
        "OpenCL device", False, detail, port.system_package("pocl", apt="pocl-opencl-icd")
    )


KIND = port.BackendKind(
    name="opencl",
    languages=(OPENCL,),
    make=lambda _argument: OpenCLBackend(),
    extra="opencl",
    packages=("pyopencl", "pocl-binary-distribution"),
    check=_check_opencl,
    environment=_opencl_worker_environment,
    inherits=("OCL_*", "OPENCL_*", "POCL_*", "PYOPENCL_*", "CUDA_*", "NVIDIA_*"),
    devices=("/dev/dri", "/dev/kfd", "/dev/nvidia*"),
    macros=opencl_predefined_macros,
    no_counters="OpenCL has no counters that are the same on every device",
    sanitizer=SANITIZER,
    ceilings=port.CeilingKernels("ceilings.cl", "ceilings_fp16.cl", {"fp32": 64, "fp16": 64}, (1, 4, 256)),
)
