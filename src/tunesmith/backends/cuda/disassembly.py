"""Machine code as text, from the disassembler that is here, run on a cubin under a deadline; and that
listing read into instructions, blocks and loops. Unknown words stay as they are."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from tunesmith.backends.cuda import toolkit

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
        self.instructions, self.main = _read(text)

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
        return tuple(BasicBlock(first, end, self._successors(end - 1, numbers)) for first, end in ends)

    def _successors(self, last: int, numbers: dict[int, int]) -> tuple[int, ...]:
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
        return [own.difference(*(o for o in ahead if o is not own)) for own in ahead]


def _read(text: str) -> tuple[tuple[Instruction, ...], int]:
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
    found_all = (_instruction(n, found, line, labels, addresses) for n, (found, line) in enumerate(rows))
    return tuple(found_all), len(rows) if main is None else main


def _instruction(
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
    own = (name, tuple(modifiers), _operands(words), tuple(targets), calls)
    return Instruction(number, guard, is_negated, *own)


def _operands(words: str) -> tuple[str, ...]:
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


def registers(operand: str) -> Sequence[str]:
    """Registers that an operand mentions, RZ and URZ aside."""
    return re.findall(r"\bU?R\d+\b", operand)


SECONDS = 20.0  # most kernels take one
MOST_TEXT = 64 << 20  # bytes; the longest kernels in use have a few million
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


def disassemble(cubin: bytes, tool: str | None = None, seconds: float = SECONDS) -> Disassembly:
    """`tool` is the path of nvdisasm or cuobjdump; None: the one that is here. The cubin is taken for
    hostile: the tool gets it in a folder of its own, without a shell, for so many seconds, and no more than
    so much of what it prints is read."""
    program = tool or find_disassembler()
    if program is None:
        return Disassembly({}, f"there is no disassembler here: {HINT}")
    found = Disassembly({}, "no options")
    for options in _OPTIONS.get(Path(program).name, _OPTIONS["nvdisasm"]):
        found = _run(program, options, cubin, seconds)
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


def _run(program: str, options: tuple[str, ...], cubin: bytes, seconds: float) -> Disassembly:
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
        text, expired = _output(process, seconds)
    if expired:
        return Disassembly({}, f"{name} took more than {seconds:g} s")
    if len(text) > MOST_TEXT:
        return Disassembly({}, f"{name} prints more than {MOST_TEXT} bytes")
    if process.returncode != 0:
        return Disassembly({}, f"{name} ends with exit status {process.returncode}")
    kernels = split_kernels(text.decode(errors="replace"))
    return Disassembly(kernels, "" if kernels else f"{name} finds no code")


def _output(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bool]:
    """What it prints, a byte more than it may at most, and whether its time ran out. It has ended then."""
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(seconds, stop)
    timer.start()
    with process:
        assert process.stdout is not None
        text = process.stdout.read(MOST_TEXT + 1)
        if len(text) > MOST_TEXT:
            process.kill()
        process.wait()
    timer.cancel()
    return text, expired.is_set()
