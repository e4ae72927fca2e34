"""A disassembler's listing read into instructions, blocks and loops. Unknown words are kept as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

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
    def conditional(self) -> bool:
        """Whether some threads may do otherwise. A jump can also have its condition among its operands."""
        inner = self.name in JUMPS and len(self.operands) > 1
        return (self.guard not in ("", "PT", "UPT")) or inner

    @property
    def condition(self) -> str:
        """The predicate's name; negation aside."""
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
        return (instruction.name in ENDS or jumps) and not instruction.conditional

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
