"""The memory of a case: where its arrays lie, drawn from the ways in which programs lay theirs (docs/lab.md,
Layouts); guard zones and poison, so that stray writes and missing ones show; what lies in it before a run,
arguments bound to it, and outputs read from it.

Two places are drawn for each case; the last run of a kernel is at the second one. All that decides is the
case's seed, so that those who judge know what lies around every array.
"""

from __future__ import annotations

import hashlib
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tunesmith.backends import port
from tunesmith.backends.messages import TimedLook
from tunesmith.base.text import format_count, seed_of, truncate_text
from tunesmith.problem.cases import Case
from tunesmith.problem.compare import ErrorStats, rms_limit, root_mean_square
from tunesmith.problem.device import Device
from tunesmith.problem.inputs import pack_elements, shaped_view
from tunesmith.problem.plan import BufferPlan, Plan, Status
from tunesmith.problem.problem import element_type

GUARD = 1 << 16  # bytes on either side
PAGE = 4096
PHASE = 64  # both places of an array are alike within so many bytes, so that whole vectors can be compared
MOVED_BYTES = 1 << 24  # of a case, zones and all: what is larger lies where it lies for all runs
MOVED_SHARE = 1 << 4  # of a device's memory
FAR = 1 << 26  # bytes between two arrays, at most
FAR_SHARE = 1 << 8  # of a device's memory
GRAINS = (1, 1, 1, 256, 512, PAGE)  # what arrays begin at multiples of, where their own alignment is less

Arrangement = Literal["together", "apart", "far", "fenced"]
# At the first place and at the second: most cases have fences at one of them.
WEIGHTS: tuple[dict[Arrangement, int], ...] = (
    {"together": 4, "apart": 2, "far": 1, "fenced": 1},
    {"together": 1, "apart": 1, "far": 1, "fenced": 5},
)


@dataclass(frozen=True)
class GuardedLayout:
    """Part of a block of memory, [zone | payload | zone]; the payload is aligned as promised."""

    offset: int  # of the payload within its part
    nbytes: int
    total: int
    start: int = 0  # of the part within its block
    block: int = 0

    @property
    def place(self) -> int:
        return self.start + self.offset

    @property
    def zone_sizes(self) -> tuple[int, int]:
        return self.offset, self.total - self.offset - self.nbytes

    @property
    def fenced_pages(self) -> tuple[int, int]:
        """From where to where the payload's own pages reach, within the block."""
        return self.place // PAGE * PAGE, -(-(self.place + self.nbytes) // PAGE) * PAGE


@dataclass(frozen=True)
class CaseLayout:
    arrangement: Arrangement
    parts: tuple[GuardedLayout, ...]  # in the plan's order

    @property
    def blocks(self) -> tuple[int, ...]:
        """Bytes of each block of memory."""
        ends = [0] * (1 + max((p.block for p in self.parts), default=0))
        for p in self.parts:
            ends[p.block] = max(ends[p.block], p.start + p.total)
        return tuple(ends)


def is_fenced(layout: CaseLayout) -> bool:
    """Every array has pages of its own."""
    return layout.arrangement == "fenced"


def layouts_of(buffers: Sequence[BufferPlan], device: Device, seed: int) -> tuple[CaseLayout, ...]:
    """The two places of a case; one where its arrays are large."""
    limits = device.limits
    arrays = tuple((b.name, b.nbytes, max(b.align, limits.alignment)) for b in buffers)
    far = min(FAR, limits.memory // FAR_SHARE)
    most = min(MOVED_BYTES, limits.memory // MOVED_SHARE)
    return _drawn_layouts(arrays, seed, far, most, limits.max_allocation)


@lru_cache(256)
def _drawn_layouts(
    arrays: tuple[tuple[str, int, int], ...], seed: int, far: int, most: int, largest: int
) -> tuple[CaseLayout, ...]:
    is_small = sum(nbytes + 2 * GUARD for _, nbytes, _ in arrays) <= most
    grain = random.Random(seed).choice(GRAINS)
    fine = {n: 0 if grain > 1 else _odd_place(seed_of(seed, "place", n), align) for n, _, align in arrays}
    placed = [
        _ArrayToPlace(name, max(1, nbytes), nbytes, align, max(align, grain), fine[name])
        for name, nbytes, align in arrays
    ]
    return tuple(
        _draw_layout(placed, seed_of(seed, "layout", turn), far, largest, is_small, weights)
        for turn, weights in enumerate(WEIGHTS if is_small else WEIGHTS[:1])
    )


def _odd_place(seed: int, align: int) -> int:
    """Where an array begins within PHASE bytes; half of them are aligned no better than promised."""
    return 0 if seed % 2 or align >= PHASE else (seed // 2 % (PHASE // align) | 1) * align


@dataclass(frozen=True)
class _ArrayToPlace:
    name: str
    size: int  # at least a byte: no driver binds nothing
    nbytes: int
    align: int
    unit: int  # what it begins at a multiple of
    fine: int  # and so many bytes further on

    def after(self, cursor: int) -> int:
        unit = max(self.unit, PHASE)
        return -(-(cursor - self.fine) // unit) * unit + self.fine


def _draw_layout(
    arrays: list[_ArrayToPlace],
    seed: int,
    far: int,
    largest: int,
    is_small: bool,
    weights: dict[Arrangement, int],
) -> CaseLayout:
    chance = random.Random(seed)
    arrangement = chance.choices(list(weights), list(weights.values()))[0]
    order = chance.sample(range(len(arrays)), len(arrays))
    parts, cursor = dict[int, GuardedLayout](), 0
    for number, array in ((number, arrays[number]) for number in order):
        if arrangement == "fenced":
            pages = max(PAGE, array.align)
            zone = max(GUARD, pages)
            start, room = -(-cursor // pages) * pages, -(-array.size // pages) * pages
            spare = (room - array.size) // array.align * array.align
            ends = is_small and chance.random() < 0.5
            offset = zone + (spare if ends else min(spare, array.fine))
            parts[number] = GuardedLayout(offset, array.nbytes, 2 * zone + room, start)
            cursor = start + 2 * zone + room
            continue
        if arrangement == "together" and parts:
            cursor += chance.choice((0, 0, 64, 512, chance.randrange(PAGE)))
        else:
            cursor += GUARD + chance.randrange(far if arrangement == "far" else PAGE)
        place = array.after(cursor)
        parts[number] = GuardedLayout(GUARD, array.nbytes, 2 * GUARD + array.size, place - GUARD)
        cursor = place + array.size + (0 if arrangement == "together" else GUARD)
    if arrangement == "together":
        parts = dict(zip(order, _share_guard_zones([parts[n] for n in order]), strict=True))
    layout = CaseLayout(arrangement, tuple(parts[n] for n in range(len(arrays))))
    if max(layout.blocks) <= largest:
        return layout
    single = (GuardedLayout(p.offset, p.nbytes, p.total, 0, n) for n, p in enumerate(layout.parts))
    if arrangement == "together":
        return _draw_layout(arrays, seed + 1, far, largest, is_small, weights)
    return CaseLayout(arrangement, tuple(single))


def _share_guard_zones(parts: list[GuardedLayout]) -> list[GuardedLayout]:
    """Neighbours share what lies between them: it is the zone behind the first of the two."""
    starts = [parts[0].start, *(b.place for _, b in pairwise(parts))]
    ends = [*starts[1:], parts[-1].start + parts[-1].total]
    return [
        GuardedLayout(p.place - start, p.nbytes, end - start, start)
        for p, start, end in zip(parts, starts, ends, strict=True)
    ]


MAX_SENT = 1 << 31  # bytes that the looks of one request send, but for one look
BLOB = 1 << 30  # bytes of a look that travel in one piece; what is larger takes several
# What outputs hold before the first and the second run. Every half, bfloat16, float and double made of these
# bytes is a quiet NaN, so that stray reads show as well.
PATTERN = bytes((0xE7, 0xFF, 0xF5, 0xFF))
OTHER_PATTERN = bytes((0xD3, 0x7F, 0xF9, 0x7F))
Array = NDArray[Any]
K = TypeVar("K")
V = TypeVar("V")
POISON_PERIOD = 8  # bytes; the pattern repeats, and no element is wider


def repeat_pattern(pattern: bytes, nbytes: int) -> bytes:
    return (pattern * (nbytes // len(pattern) + 1))[:nbytes]


def zone_pattern(number: int) -> bytes:
    """What surrounds the buffer with that number. NaNs again, but of its own: a kernel that reads past one
    array and writes past another carries the first one's NaNs into zones where they do not belong."""
    return bytes((0xC1 + number % 62, 0x7F, 0xFB, 0xFF))


def memory_digest(*parts: bytes) -> str:
    """Of what lies in memory; quicker than the digests that outlive a run."""
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def zones_digest(places: Sequence[CaseLayout], number: int) -> str:
    """Of the buffer with that number, wherever it was."""
    return memory_digest(*(_zones_digest(c.parts[number].zone_sizes, number) for c in places))


@lru_cache(256)
def _zones_digest(sizes: tuple[int, int], number: int) -> bytes:
    return memory_digest(*(repeat_pattern(zone_pattern(number), size) for size in sizes)).encode()


def intact_zones(layout: GuardedLayout, number: int) -> tuple[bytes, bytes]:
    """The two zones of the buffer with that number when nothing has touched them."""
    before, after = layout.zone_sizes
    return repeat_pattern(zone_pattern(number), before), repeat_pattern(zone_pattern(number), after)


def gaps_digest(buffer: BufferPlan, memory: bytes) -> str:
    """The memory between strided elements alone: no operator has any business there."""
    words = np.frombuffer(memory, dtype=f"u{buffer.itemsize}").copy()
    as_strided(words, buffer.shape, tuple(s * buffer.itemsize for s in buffer.strides))[...] = 0
    return memory_digest(words.tobytes())


def describe_damage(now: tuple[bytes, bytes], clean: tuple[bytes, bytes], itemsize: int) -> str:
    """Where the zones before and after an array were hit, relative to it, in words.

    By whole items of the array: of a number that was written some bytes may be those that lay there, as of
    another zone's NaN, which differs in one byte alone."""
    hits = []
    for is_before, zone, intact in ((True, now[0], clean[0]), (False, now[1], clean[1])):
        if zone != intact:
            differs = np.frombuffer(zone, np.uint8) != np.frombuffer(intact, np.uint8)
            items = np.unique(np.flatnonzero(differs[::-1] if is_before else differs) // itemsize)
            name = "before its start" if is_before else "past its end"
            distance = int(items[0]) * itemsize + is_before
            hits.append(f"{format_count(items.size * itemsize, 'byte')} {name}, the nearest {distance} away")
    return "; ".join(hits)


def blobs_of(look: TimedLook) -> int:
    """In how many it travels; one also where there is nothing."""
    nbytes = sum(piece.nbytes for piece in (*look.pieces, *look.originals))
    return max(1, -(-nbytes // BLOB))


def is_divisible(b: BufferPlan) -> bool:
    """Whether parts of its memory are parts of it."""
    return b.in_c_order and b.packed == 1


def bytes_of_look(plan: Plan) -> int:
    """That sends all: the original's outputs beside its own."""
    return 2 * sum(b.nbytes for b in plan.compared())


def as_array(buffer: BufferPlan, data: bytes | memoryview) -> Array:
    return shaped_view(np.frombuffer(data, dtype=element_type(buffer.type).memory), buffer)


def count_poisoned(buffer: BufferPlan, data: bytes) -> int:
    """Elements that still hold exactly what an output is poisoned with before the first run."""
    if buffer.role != "output" or buffer.init is not None:
        return 0
    word = np.dtype(f"u{buffer.itemsize}")
    cycle = np.frombuffer(repeat_pattern(PATTERN, POISON_PERIOD), dtype=word)
    memory = np.frombuffer(data, dtype=word)
    if buffer.packed > 1:  # by whole bytes: half of one is poison by chance too often
        return buffer.packed * int(np.count_nonzero(memory == np.resize(cycle, memory.shape)))
    view = shaped_view(memory, buffer)
    return int(np.count_nonzero(view == np.resize(cycle, buffer.shape)))


def gaps_damaged(buffer: BufferPlan, data: bytes, before: str | None) -> bool:
    """Whether the memory between strided elements changed; an output's was poisoned."""
    if buffer.extent == buffer.count:
        return False
    poisoned = repeat_pattern(PATTERN, len(data))
    return gaps_digest(buffer, data) != (before or gaps_digest(buffer, poisoned))


def bind_calls(
    plan: Plan, executable: port.Executable, pointers: dict[str, port.Pointer]
) -> list[port.LaunchCall]:
    bound: dict[str, port.Pointer | port.Scalar | port.LocalBytes] = {**pointers}
    bound.update({s.name: port.Scalar(s.type, s.value) for s in plan.scalars})
    bound.update({x.name: port.LocalBytes(x.nbytes) for x in plan.locals})
    bound.update({name: pointers[target] for name, target in plan.aliases})
    fills = tuple(
        (pointers[b.name], initial_word(b)) for b in plan.buffers if b.is_filled_by_launch and b.nbytes
    )
    return [
        port.LaunchCall(
            executable, x.entry, x.grid, x.block, x.shared, tuple(bound[name] for name in x.args), x.cluster,
            x.cooperative, x.pdl, () if number else fills,
        )
        for number, x in enumerate(plan.launches)
    ]  # fmt: skip


def initial_word(item: BufferPlan) -> bytes:
    """One item of what callers fill an array with."""
    element = element_type(item.type)
    return pack_elements(np.full(element.packed, item.init).astype(element.numpy), element).tobytes()


def initial_payload(item: BufferPlan, pattern: bytes) -> bytes:
    """What an array that is no input holds before a run: poison, or what the caller promises to put there.
    Gaps between strided rows keep one pattern in both runs, so that only real elements may differ."""
    element = element_type(item.type)
    if item.init is None and item.extent == item.count:
        return repeat_pattern(pattern, item.nbytes)
    word = np.dtype(f"u{element.bytes}")
    memory = np.frombuffer(repeat_pattern(PATTERN, item.nbytes), dtype=word).copy()
    shape, strides = (item.shape, item.strides) if element.packed == 1 else ((item.words,), (1,))
    view = as_strided(memory, shape, tuple(s * element.bytes for s in strides))
    if item.init is not None:
        view[...] = np.frombuffer(initial_word(item), dtype=word)
    else:
        view[...] = np.resize(np.frombuffer(repeat_pattern(pattern, 8), dtype=word), item.shape)
    return memory.tobytes()


def drop_oldest(known: OrderedDict[K, V], nbytes: Callable[[V], int], most: int) -> None:
    """Until the rest takes no more than so many bytes; the newest stays."""
    total = sum(map(nbytes, known.values()))
    while len(known) > 1 and total > most:
        total -= nbytes(known.popitem(last=False)[1])


@dataclass(frozen=True)
class Verdict:
    status: Status
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    @property
    def first_line(self) -> str:
        """Of a compiler's or a kernel's words as much as stands in a sentence."""
        return truncate_text((self.detail.strip().splitlines() or ["no reason given"])[0], 300)


RIGHT = Verdict(Status.OK)
NEIGHBOURS = port.NumberRule(0.0, 0.0, 1.0)  # at most one step apart
DOUBT = 1e-9  # of a sum, relatively: what the order of its terms may change, and more


@dataclass(frozen=True)
class Examined:
    """A kernel's part in one case: its launch there, and how long that may take."""

    case: Case
    plan: Plan
    deadline: float


@dataclass(frozen=True)
class RunEvidence:
    """What two runs of a kernel left in memory, wherever that is looked at."""

    damage: Callable[[BufferPlan, int], str]  # where the guard zones of the buffer of that number were hit
    input_changed: Callable[[BufferPlan], bool]
    gaps_hit: Callable[[BufferPlan], bool]  # between the rows of a strided array
    runs_differ: Callable[[BufferPlan], bool]
    unwritten: Callable[[BufferPlan], int]  # elements that hold what they were poisoned with
    stale_differs: Callable[[BufferPlan], bool]  # from a run that found what an earlier one had left


def check_integrity(plan: Plan, deterministic: bool, seen: RunEvidence) -> tuple[Verdict, bool]:
    """Everything but the values, and whether memory outside the arrays was hit."""
    for number, b in enumerate(plan.buffers):
        if damage := seen.damage(b, number):
            return Verdict(Status.WRONG, f"it writes outside {b.name}: {damage}"), True
    for b in plan.buffers:
        if b.role == "input" and seen.input_changed(b):
            return Verdict(Status.WRONG, f"it changes the input {b.name}"), False
    for b in plan.compared():
        if seen.gaps_hit(b):
            return Verdict(Status.WRONG, f"it writes between the rows of {b.name}"), False
        if not seen.runs_differ(b):
            if deterministic and seen.stale_differs(b):
                return Verdict(Status.WRONG, f"{b.name} depends on what an earlier launch left behind"), False
            continue
        # A byte may equal its poison by chance: where runs may differ, its value is judged and no more.
        count = 0 if b.itemsize == 1 and not deterministic else seen.unwritten(b)
        if count:
            # Poison plus something is still that poison: what adds to an output looks as if it never wrote.
            never = f"{count} of {b.count} elements of {b.name} are never written"
            words = f"{never}, or computed from what was there before: is it inout?"
            return Verdict(Status.WRONG, words), False
        if deterministic:
            return Verdict(Status.UNSTABLE, f"two runs on the same inputs give different {b.name}"), False
    return RIGHT, False


def reference_rule(b: BufferPlan, original: ErrorStats | None) -> port.NumberRule | None:
    """The host's rule for one element as numbers; None where only the host can tell."""
    if b.compare == "codes":
        return port.NumberRule(b.rtol, b.atol, 0.5, add_ulps=True)
    if b.compare == "close":
        return port.NumberRule(b.rtol, b.atol, 0.5, None if original is None else 2 * original.max_error)
    return port.NumberRule(0.0, 0.0, 0.0) if element_type(b.type).kind != "float" else None


def original_rule(b: BufferPlan) -> port.NumberRule:
    """The same for floats that are close to the original's."""
    return port.NumberRule(b.rtol, b.atol, 2.0)


def rms_holds(found: port.Comparison, original: ErrorStats | None) -> bool:
    """Whether the error on the whole is surely no worse than the host allows."""
    if original is None:
        return True
    limit = rms_limit(original, found.squared_ulp, found.count)
    # The host adds up in another order: where that may decide, it shall.
    return root_mean_square(found.squared_error, found.count) <= (1 - DOUBT) * limit


def is_comparable(b: BufferPlan, expected_type: str) -> bool:
    """Dense numbers of a kind the device knows, and integers only where integers are expected."""
    exact = b.compare == "exact"
    return b.in_c_order and element_type(b.type).packed == 1 and exact == (expected_type != "float64")
