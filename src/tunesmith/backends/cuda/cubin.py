"""A cubin read as the ELF file it is: its kernels, what each uses, and a digest of the code alone.

NVIDIA documents neither sections nor attributes; what is read here is held against ptxas' own words by the
tests, for every architecture that NVRTC builds for.
"""

from __future__ import annotations

import math
import os
import re
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from tunesmith.backends import binaries
from tunesmith.backends.binaries import ElfSection, SymbolTable
from tunesmith.backends.cuda import toolkit
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed
from tunesmith.base.codec import Malformed
from tunesmith.base.text import digest_of
from tunesmith.problem.device import Limits, Resources, registers_per_block

# Attributes in .nv.info sections.
PARAM_CBANK, EXTERNS, MAX_THREADS, REQUIRED_THREADS = 0x0A, 0x0F, 0x05, 0x10
FRAME_SIZE, PARAMETER, REGISTERS = 0x11, 0x17, 0x2F
# Their values count symbols, which differ where nothing but a name does.
_BY_SYMBOL = (PARAM_CBANK, EXTERNS)
_SIZED = 4  # the format of an attribute whose value has a length of its own

_FUNCTION, _KERNEL = 2, 0x10  # a symbol's type, and the bit in st_other that makes a function a kernel
_RELOCATIONS = {4: struct.Struct("<QQq"), 9: struct.Struct("<QQ")}  # SHT_RELA, SHT_REL
# From sm_90 on a block's shared memory begins with what the system keeps for itself.
_RESERVED_SECTION, _RESERVED = ".nv.shared.reserved.0", 1024
_RUNS = (".text.", ".nv.constant", ".nv.global", ".nv.shared.")  # sections that the running code consists of
_SOURCE_NAME = re.compile(rb"[\w./+@-]{1,200}\.(?:cuh?|py|cc|cpp|cxx|hpp|hxx|inl|h)(?=\0)")


@dataclass(frozen=True)
class CubinKernel:
    symbol: str
    registers: int
    shared: int  # static, bytes
    frame: int  # bytes of local memory, spilled registers included
    parameters: tuple[int, ...]  # bytes of each
    max_block: tuple[int, ...] | None  # of __launch_bounds__
    required_block: tuple[int, ...] | None


class Cubin:
    def __init__(self, data: bytes) -> None:
        if not data.startswith(binaries.HEAD):
            raise Malformed(f"not a cubin: {len(data)} bytes beginning with {data[:6]!r}")
        try:
            self._sections = binaries.read_sections(data)
            self._symbols = tuple(binaries.read_symbols(self._sections, binaries.SYMTAB))
            self.kernels = {k.symbol: k for k in self._read_kernels()}
        except (struct.error, IndexError, OverflowError, ValueError) as error:
            raise Malformed(f"a damaged cubin: {error}") from error

    def code_digest(self, symbols: Sequence[str]) -> str:
        """Equal for equal code, launched with these kernels in this order. Names, paths, line tables and
        notes are left out; a symbol that code refers to is known by what lies behind it."""
        entries = [self.kernel_digest(symbol) for symbol in symbols]
        others = sorted(self.kernel_digest(name) for name in self.kernels.keys() - set(symbols))
        of_kernels = {s.number for name in self.kernels for s in self._of_kernel(name)}
        rest = [s for s in self._sections if s.name.startswith(_RUNS) and s.number not in of_kernels]
        return digest_of(*entries, "others", *others, "rest", *sorted(map(self._section_digest, rest)))

    def source_names(self) -> tuple[str, ...]:
        """Files that its line tables name, in their order; none where it was built without any."""
        tables = (s.data for s in self._sections if s.name.startswith((".debug_line", ".debug_str")))
        found = (match.group().decode() for table in tables for match in _SOURCE_NAME.finditer(table))
        return tuple(dict.fromkeys(found))

    def kernel_digest(self, symbol: str) -> str:
        """Of one kernel's code and what it refers to, without the others of its module."""
        parts = [self._section_digest(s, s.name.removesuffix(symbol)) for s in self._of_kernel(symbol)]
        # The order of sections, and of attributes within one, follows names.
        attributes = sorted(repr(a) for a in self._attributes(symbol) if a[0] not in _BY_SYMBOL)
        kernel = self.kernels[symbol]
        return digest_of(*sorted(parts), repr((kernel.registers, kernel.frame, attributes)))

    def _section_digest(self, section: ElfSection, kind: str = "") -> str:
        moved = sorted(
            repr(relocation)
            for other in self._sections
            if other.type in _RELOCATIONS and other.target == section.number
            for relocation in self._iterate_relocations(other)
        )
        return digest_of(kind, self._content_digest(section), repr(moved))

    def _iterate_relocations(self, section: ElfSection) -> Iterator[tuple[int, int, int, str]]:
        form = _RELOCATIONS[section.type]
        for offset, info, *addend in form.iter_unpack(section.data):
            yield offset, info & 0xFFFFFFFF, addend[0] if addend else 0, self._meaning(info >> 32)

    def _meaning(self, symbol: int) -> str:
        target = self._symbols[symbol]
        if not 0 < target.section < len(self._sections):
            return target.name  # defined elsewhere: by the driver, or not at all
        return digest_of(self._content_digest(self._sections[target.section]), repr(target.value))

    @staticmethod
    def _content_digest(section: ElfSection) -> str:
        return digest_of(repr((section.size, section.alignment)), section.data)

    def _of_kernel(self, symbol: str) -> Iterator[ElfSection]:
        ending = f".{symbol}"
        for section in self._sections:
            prefix = section.name.removesuffix(ending)
            is_own = prefix in (".text", ".nv.shared") or prefix.startswith(".nv.constant")
            if section.name.endswith(ending) and is_own:
                yield section

    def _read_kernels(self) -> Iterator[CubinKernel]:
        registers, frames = self._by_symbol(REGISTERS), self._by_symbol(FRAME_SIZE)
        reserved = _RESERVED if any(s.name == _RESERVED_SECTION for s in self._sections) else 0
        for number, symbol in enumerate(self._symbols):
            if symbol.type != _FUNCTION or not symbol.other & _KERNEL:
                continue
            attributes: dict[int, list[bytes]] = {}
            for kind, value in self._attributes(symbol.name):
                attributes.setdefault(kind, []).append(value)
            parameters = [struct.unpack("<IHHI", value) for value in attributes.get(PARAMETER, ())]
            shared = sum(s.size for s in self._sections if s.name == f".nv.shared.{symbol.name}")
            if number not in registers:  # older compilers put it into the header of the code's section
                registers[number] = self._sections[symbol.section].target >> 24
            yield CubinKernel(
                symbol=symbol.name,
                registers=registers[number],
                shared=max(0, shared - reserved),
                frame=frames.get(number, 0),
                parameters=tuple(size >> 18 for _, _, _, size in sorted(parameters, key=lambda p: p[1])),
                max_block=_unpack_block(attributes.get(MAX_THREADS)),
                required_block=_unpack_block(attributes.get(REQUIRED_THREADS)),
            )

    def _by_symbol(self, kind: int) -> dict[int, int]:
        """An attribute of the whole file that holds one number for each of some functions."""
        pairs = (struct.unpack("<II", value) for found, value in self._attributes("") if found == kind)
        return dict(pairs)

    def _attributes(self, symbol: str) -> Iterator[tuple[int, bytes]]:
        name = f".nv.info.{symbol}".rstrip(".")
        for section in self._sections:
            if section.name == name:
                yield from _read_attributes(section.data)


def _read_attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        form, kind, short = struct.unpack_from("<BBH", data, at)
        size = short if form == _SIZED else 0
        yield kind, data[at + 4 : at + 4 + size] if form == _SIZED else data[at + 2 : at + 4]
        at += 4 + size


def _unpack_block(values: list[bytes] | None) -> tuple[int, ...] | None:
    return struct.unpack("<III", values[0]) if values else None


_PROPERTIES = re.compile(
    r"Function properties for (\S+)\s+(?:ptxas\s+\.\s+)?"
    r"\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
# A remark with a number is not chatter: (C7508) Potential Performance Loss.
_CHATTER = re.compile(
    r"^ptxas info\s+: (?!\(C\d+\)).*\n?|^ptxas\s+\..*\n?|^ +\d+ bytes stack frame,.*\n?", re.MULTILINE
)


def resources_of(cubin: Cubin, symbols: Mapping[str, str], log: str, limits: Limits) -> Resources:
    """Spills of a kernel that the log does not mention are not known: a compiler that takes the code from its
    cache says nothing."""
    spilled = parse_spills(log)
    # A function that is not inlined is some kernel's, nobody says whose.
    shared_out = sum(count for name, count in spilled.items() if name not in cubin.kernels)
    spills = {symbol: count + shared_out for symbol, count in spilled.items()}
    by_entry = tuple(
        (entry, _of_kernel(cubin.kernels[symbol], spills.get(symbol), limits))
        for entry, symbol in symbols.items()
    )
    return binaries.merge_resources(by_entry)


def parse_spills(log: str) -> dict[str, int]:
    """Bytes stored and loaded again for want of registers, by symbol."""
    return {name: int(stores) + int(loads) for name, stores, loads in _PROPERTIES.findall(log)}


def without_chatter(log: str) -> str:
    """What is left when ptxas' account of every function is taken out: warnings and errors."""
    return _CHATTER.sub("", log).strip()


def _of_kernel(kernel: CubinKernel, spilled: int | None, limits: Limits) -> Resources:
    bounds = [math.prod(block) for block in (kernel.max_block, kernel.required_block) if block]
    threads = limits.max_threads
    if room := limits.registers_per_block:
        while threads > limits.warp and registers_per_block(limits, kernel.registers, threads) > room:
            threads -= limits.warp
    most = min([threads, *bounds])
    return Resources(kernel.registers, kernel.shared, spilled, kernel.frame, max_threads=most)


# An entry is written as in C++, `silu_and_mul<__half>`; the driver knows it by its mangled symbol alone.
# As C++ names a function: a::b<float, 4>, static_cast<void (*)(int*)>(f). Nothing that could end a line,
# a list or a literal, because it is put into a source.
_ALLOWED = re.compile(r"[\w:<>,*&() .+-]+", re.ASCII)
_DEFINED = re.compile(
    r"__global__(?:\s+(?:static|inline|void|__\w+__(?:\s*\((?:[^()]|\([^()]*\))*\))?))*\s+(\w+)\s*\("
)


@dataclass(frozen=True)
class Compiled:
    cubin: bytes
    symbols: dict[str, str]  # entry -> the kernel's symbol
    log: str
    ptx: bytes = b""  # instead of the cubin, where the architecture is a virtual one


class Refused(Exception):
    """A compiler's refusal. `names` is the file in which it finds fault with the entries: the number of one
    is its line, counted from `first`."""

    def __init__(self, log: str, names: str, first: int) -> None:
        super().__init__(log)
        self.log = log
        self.names = names
        self.first = first


def check_entries(unit: Unit) -> None:
    for entry in unit.entries:
        if not _ALLOWED.fullmatch(entry):
            raise BuildFailed(f"an entry is the name of a kernel as in C++, got {entry!r}")


def entry_fault(unit: Unit, refused: Refused) -> str | None:
    """What is wrong with an entry's name, where nothing else is."""
    found = re.findall(r"^(\S+)\((\d+)\): (?:catastrophic )?error: (.*)$", refused.log, re.MULTILINE)
    if not found or any(file != refused.names for file, _, _ in found):
        return None
    _, line, words = found[0]
    number = int(line) - refused.first
    entry = unit.entries[number] if 0 <= number < len(unit.entries) else ", ".join(unit.entries)
    if (quoted := re.search(r'name expression was: "([^"]*)"', refused.log)) is not None:
        # NVRTC spaces it out: " a :: k < 4 >". That tells more than a line whose number it does not promise.
        entry = {e.replace(" ", ""): e for e in unit.entries}.get(quoted[1].replace(" ", ""), entry)
    return no_such_kernel(unit, entry, words)


def no_such_kernel(unit: Unit, entry: str, words: str) -> str:
    names = dict.fromkeys(_DEFINED.findall(unit.source))
    defined = f"it defines {', '.join(names)}" if names else "it defines none that a look at its text finds"
    return f"{unit.path} has no kernel called {entry!r} ({words}); {defined}"


MAGIC = b"TSCUBIN1"
_PACKED = SymbolTable(MAGIC, "CUDA")
pack, unpack = _PACKED.pack, _PACKED.unpack

_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,8})\*/\s+(?:@(!?)(U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
_LABEL = re.compile(r"^\s*([.$\w]+):\s*$")
_COMMENT = re.compile(r"\(\*.*?\*\)")
_TARGET = re.compile(r"`\(([^)]+)\)|(?<![\w\[])(0x[0-9a-f]+)\s*$")
_TARGETS = re.compile(r"BRANCH_TARGETS\s+([^\"]*)")
_SUBROUTINE = "__internal_"  # in names of the compiler's own functions: $__internal_0_$__cuda_sm20_div_s64
JUMPS = frozenset(("BRA", "JMP"))
INDIRECT = frozenset(("BRX", "BRXU", "JMX", "JMXU"))
ENDS = frozenset(("EXIT", "RET", "KILL", "BPT"))


@dataclass(frozen=True)
class Instruction:
    number: int  # in the listing
    guard: str  # the predicate it depends on; empty: none
    negated: bool
    name: str  # LDG
    modifiers: tuple[str, ...]  # E, 128, CONSTANT
    operands: tuple[str, ...]
    targets: tuple[int, ...] = ()  # numbers of the instructions it may jump to
    calls: str = ""  # the function it calls

    @property
    def condition(self) -> str:
        """The predicate by which some threads may do otherwise, negation aside; empty: none. A jump can also
        have it among its operands."""
        if self.guard not in ("", "PT", "UPT"):
            return self.guard
        return self.operands[0].lstrip("!") if self.name in JUMPS and len(self.operands) > 1 else ""


@dataclass(frozen=True)
class BasicBlock:
    """Instructions that run one after the other, `first` up to and without `end`."""

    first: int
    end: int
    successors: tuple[int, ...]  # numbers of blocks


class Listing:
    """The code of one kernel; what lies behind `main` belongs to functions that the compiler added."""

    def __init__(self, text: str) -> None:
        self.instructions, self.main = _parse_listing(text)

    @cached_property
    def loops(self) -> tuple[tuple[int, int], ...]:
        """First and last instruction of each; a jump to itself is how code ends, and is none."""
        found: dict[int, int] = {}
        for each in self.instructions[: self.main]:
            if each.name in JUMPS:
                for target in each.targets:
                    if target < each.number:
                        found[target] = max(found.get(target, 0), each.number)
        return tuple(sorted(found.items()))

    @cached_property
    def looped(self) -> frozenset[int]:
        return frozenset(n for first, last in self.loops for n in range(first, last + 1))

    @cached_property
    def blocks(self) -> tuple[BasicBlock, ...]:
        leaders = {0, len(self.instructions)}
        for each in self.instructions:
            if each.targets or each.name in ENDS or each.name in INDIRECT:
                leaders |= {each.number + 1, *each.targets}
        order = sorted(n for n in leaders if n <= len(self.instructions))
        numbers = {first: at for at, first in enumerate(order[:-1])}
        ends = pairwise(order)
        return tuple(BasicBlock(first, end, self._successor_blocks(end - 1, numbers)) for first, end in ends)

    def _successor_blocks(self, last: int, numbers: dict[int, int]) -> tuple[int, ...]:
        instruction = self.instructions[last]
        following = [] if self._leaves(instruction) else [last + 1]
        return tuple(numbers[n] for n in dict.fromkeys((*following, *instruction.targets)) if n in numbers)

    @staticmethod
    def _leaves(instruction: Instruction) -> bool:
        # An indirect jump whose targets are not told is taken to go on.
        jumps = instruction.name in JUMPS or (instruction.name in INDIRECT and bool(instruction.targets))
        return (instruction.name in ENDS or jumps) and not instruction.condition

    def ahead_of(self, block: int) -> frozenset[int]:
        """Blocks that can follow without a jump back, itself among them."""
        seen, left = set(), [block]
        while left:
            at = left.pop()
            if at not in seen:
                seen.add(at)
                left += [n for n in self.blocks[at].successors if n > at]
        return frozenset(seen)

    def size(self, blocks: Iterable[int]) -> int:
        return sum(self.blocks[b].end - self.blocks[b].first for b in blocks)

    def ways(self, block: int) -> list[frozenset[int]]:
        """Behind a block that ends in a branch: for each way, the blocks that belong to no other."""
        ahead = [self.ahead_of(n) for n in self.blocks[block].successors if n > block]
        return [way.difference(*(o for o in ahead if o is not way)) for way in ahead]


def _parse_listing(text: str) -> tuple[tuple[Instruction, ...], int]:
    labels: dict[str, int] = {}
    addresses: dict[int, int] = {}
    rows: list[tuple[re.Match[str], str]] = []
    main: int | None = None
    for line in text.splitlines():
        if (label := _LABEL.match(line)) is not None:
            labels[label[1]] = len(rows)
            if _SUBROUTINE in label[1] and main is None:
                main = len(rows)
        elif (found := _INSTRUCTION.search(line)) is not None and found[4] != "NOP":
            addresses[int(found[1], 16)] = len(rows)
            rows.append((found, line))
    found_all = (
        _parse_instruction(n, found, line, labels, addresses) for n, (found, line) in enumerate(rows)
    )
    return tuple(found_all), len(rows) if main is None else main


def _parse_instruction(
    number: int, found: re.Match[str], line: str, labels: dict[str, int], addresses: dict[int, int]
) -> Instruction:
    name, *modifiers = found[4].split(".")
    words = _COMMENT.sub("", found[5])
    targets: list[int] = []
    calls = ""
    if name in JUMPS or name == "CALL":
        named = _TARGET.search(words)
        if named is not None:
            calls = (named[1] or "") if name == "CALL" else ""
            place = labels.get(named[1]) if named[1] else addresses.get(int(named[2], 16))
            targets = [place] if place is not None else []
    elif name in INDIRECT:
        listed = _TARGETS.search(line)
        targets = [labels[n.strip()] for n in listed[1].split(",") if n.strip() in labels] if listed else []
    guard, is_negated = found[3] or "", bool(found[2])
    parts = (name, tuple(modifiers), _split_operands(words), tuple(targets), calls)
    return Instruction(number, guard, is_negated, *parts)


def _split_operands(words: str) -> tuple[str, ...]:
    """Split at commas, except within brackets."""
    parts: list[str] = [""]
    depth = 0
    for letter in words:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.strip() for part in parts if part.strip())


def register_names(operand: str) -> Sequence[str]:
    """Registers that an operand mentions, RZ and URZ aside."""
    return re.findall(r"\bU?R\d+\b", operand)


SECONDS = 20.0  # most kernels take one
MAX_TEXT = 64 << 20  # bytes; the longest kernels in use have a few million
HINT = "install one with pip install 'tunesmith[cuda]'"
# The second time without the analysis that names the targets of indirect jumps: it can fail.
_OPTIONS = {"nvdisasm": (("-c",), ("-c", "-ndf")), "cuobjdump": (("-sass",),)}
# Where a kernel's code begins, in the words of each tool; up to the next such line it is that kernel's.
_STARTS = re.compile(r"^\s*(?:\.section\s+\.text\.([^,\s\"]+)|Function : (\S+))", re.MULTILINE)
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Disassembly:
    """The text of each kernel's code by its symbol; or none, and why."""

    kernels: dict[str, str]
    fault: str = ""


def disassemble_cubin(cubin: bytes, tool: str | None = None, seconds: float = SECONDS) -> Disassembly:
    """`tool` is the path of nvdisasm or cuobjdump; None: the one that is here. The cubin is taken for
    hostile: the tool gets it in a folder of its own, without a shell, for so many seconds, and no more than
    so much of what it prints is read."""
    program = tool or find_disassembler()
    if program is None:
        return Disassembly({}, f"there is no disassembler here: {HINT}")
    found = Disassembly({}, "no options")
    for options in _OPTIONS.get(Path(program).name, _OPTIONS["nvdisasm"]):
        found = _run_disassembler(program, options, cubin, seconds)
        if found.kernels:
            break
    return found


def split_kernels(text: str) -> dict[str, str]:
    """The part of each kernel, or of each function that has a section of its own."""
    found = list(_STARTS.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {m[1] or m[2]: text[m.end() : end] for m, end in zip(found, ends, strict=True)}


def find_disassembler() -> str | None:
    """NVIDIA's wheel first, since it is as new as the compiler beside it; then PATH and the toolkits."""
    wheels = [folder / "nvdisasm" for folder in toolkit.in_wheels("bin")]
    return toolkit.find_program("nvdisasm", first=wheels) or toolkit.find_program("cuobjdump")


def _run_disassembler(program: str, options: tuple[str, ...], cubin: bytes, seconds: float) -> Disassembly:
    name = Path(program).name
    with tempfile.TemporaryDirectory(prefix="tunesmith-disassembly-") as folder:
        (Path(folder) / "code.cubin").write_bytes(cubin)
        try:
            process = subprocess.Popen(
                [program, *options, "code.cubin"],
                cwd=folder,
                env={k: os.environ[k] for k in _ENVIRONMENT if k in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            return Disassembly({}, f"{name} does not start: {error.strerror}")
        text, expired = _read_limited_output(process, seconds)
    if expired:
        return Disassembly({}, f"{name} took more than {seconds:g} s")
    if len(text) > MAX_TEXT:
        return Disassembly({}, f"{name} prints more than {MAX_TEXT} bytes")
    if process.returncode != 0:
        return Disassembly({}, f"{name} ends with exit status {process.returncode}")
    kernels = split_kernels(text.decode(errors="replace"))
    return Disassembly(kernels, "" if kernels else f"{name} finds no code")


def _read_limited_output(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bool]:
    """What it prints, a byte more than it may at most, and whether its time ran out. It has ended then."""
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(seconds, stop)
    timer.start()
    with process:
        assert process.stdout is not None
        text = process.stdout.read(MAX_TEXT + 1)
        if len(text) > MAX_TEXT:
            process.kill()
        process.wait()
    timer.cancel()
    return text, expired.is_set()
