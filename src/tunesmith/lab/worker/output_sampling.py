"""Looking at what timed launches leave behind, in the worker, around chains that nobody can foresee.

Before such a chain the outputs and workspaces of one of its launches are filled at random, and stretches of a
finalist's inputs are swapped; after it that launch's outputs are taken. `look_judge` judges them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tunesmith.backends.messages import Piece, TimedLook, TimeRuns
from tunesmith.backends.port import Executable, Inspector, Pointer, Session, Slots
from tunesmith.lab import memory as guards
from tunesmith.lab.memory import bind_calls
from tunesmith.lab.references import References, Referred
from tunesmith.lab.values import Array, Arrays, CaseRules, ExpectedValues, wrong_values
from tunesmith.lab.worker.buffer_ring import Arena, BufferRing, apart_on, needs_restoring
from tunesmith.lab.worker.device_cases import CaseMemory, is_like, unlike_spans
from tunesmith.problem.cases import Case
from tunesmith.problem.compare import judged_whole, key_arrays, views_of
from tunesmith.problem.device import Device
from tunesmith.problem.inputs import SlotPlace, after_slot, slot_items, swap_moves
from tunesmith.problem.plan import BufferPlan, Plan
from tunesmith.problem.problem import Problem

PIECE = 4096  # bytes
PIECES = 32  # of an array, where not all of it is looked at
WHOLE_BELOW = 1 << 18  # bytes of an array that is always looked at as a whole
MAX_WHOLE_AT = 1 << 26  # for finalists; of larger ones there are
MANY_PIECES = 2048
PART = 1 << 26  # bytes of a piece, where all of a large array travels
# Mostly what lay there, as when nobody looks; sometimes a number, seldom poison, as in a check.
FILLINGS = (7, 2, 1, 1)
CHANCE = random.SystemRandom()


def choose_pieces(
    b: BufferPlan, nbytes: int, count: int, chance: random.Random, is_whole: bool = False
) -> tuple[Piece, ...]:
    """Where to look at an array: all of it up to `nbytes`, else its ends and `count` places drawn at random.
    What does not lie in memory element by element is taken whole, and what cannot be judged in parts."""
    whole = Piece(b.name, 0, b.nbytes)
    if is_whole or not guards.is_divisible(b) or b.nbytes <= nbytes or b.nbytes <= 2 * PIECE:
        return (whole,)
    last = (b.nbytes - PIECE) // b.itemsize
    starts = {0, last, *(chance.randint(0, last) for _ in range(count))}
    return tuple(Piece(b.name, start * b.itemsize, PIECE) for start in sorted(starts))


def as_blobs(data: Sequence[bytes]) -> list[bytes]:
    """One after the other, cut where a blob is full; one that is empty where there is nothing."""
    blobs: list[bytes] = []
    parts: list[memoryview] = []
    room = guards.BLOB
    for part in data:
        rest = memoryview(part)
        while len(rest) > room:
            blobs.append(b"".join([*parts, rest[:room]]))
            parts, rest, room = [], rest[room:], guards.BLOB
        parts.append(rest)
        room -= len(rest)
    return [*blobs, b"".join(parts)]


@dataclass
class _Taken:
    at: Slots
    place: SlotPlace
    pieces: list[Piece] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    partial: bool = False


@dataclass
class OutputSampler:
    """One contender's launches at one workload, looked at now and then. Where the device judges for itself,
    the original runs on the same data afterwards, beside it."""

    session: Session
    device: Device
    arenas: BufferRing
    scratch: CaseMemory
    laid_out: dict[str, Arena]
    plan: Plan
    request: TimeRuns
    original: Executable
    number: int = 0  # of the request, among those that are under way together
    chance: random.Random = CHANCE

    def __post_init__(self) -> None:
        self._taken: list[_Taken] = []

    def choose(self, length: int, slots: int) -> int:
        """Any launch of the chain, which those after it shall spare; the last where there is one place."""
        return self.chance.randrange(length) if slots > 1 else length - 1

    def prepare(self, at: Slots) -> None:
        swaps = self.chance.randrange(1, 1 << 53) if self.request.policy.whole else 0
        self._taken.append(_Taken(at, SlotPlace(at[0], apart_on(self.device), swaps)))
        self.scramble(at[1])
        for b in self._drawn("input", "inout"):
            self._swap_in(b, self._slot(b, at[0]), self._taken[-1].place)

    def scramble(self, slot: int) -> None:
        """What a launch finds where it shall write: what lay there, poison, or numbers."""
        for b in self.plan.buffers:
            if not is_rotated(b):
                continue
            memory, stride = self.laid_out[b.name].memory, self.arenas.stride(b)
            place = Pointer(memory, slot * stride, b.nbytes)
            filling = self.chance.choices(
                (b"", struct.pack("<f", self.chance.gauss()), guards.PATTERN, guards.OTHER_PATTERN), FILLINGS
            )[0]
            if filling and self.session.inspector is not None:
                self.session.inspector.fill(place, filling)
            elif filling:
                self.session.write(memory, place.offset, guards.repeat_pattern(filling, b.nbytes))
            if b.role == "output":
                self.session.write(memory, place.offset + b.nbytes, self._gap_bytes(b, slot))

    def take(self) -> None:
        """What the launch left, before anything is restored."""
        taken = self._taken[-1]
        for number, b in enumerate(self.plan.compared()):
            slot = taken.at[is_rotated(b)]
            if self.session.inspector is not None:
                stride = self.arenas.stride(b)  # at once, with what follows it: others write there too
                place = Pointer(self.laid_out[b.name].memory, slot * stride, stride)
                self.session.copy(self._seen(number, stride), place)
            else:
                self._read_pieces(taken, b, slot, MAX_WHOLE_AT if self.request.policy.whole else WHOLE_BELOW)
        if self.session.inspector is None:
            for b in self._drawn("input"):
                self._read_pieces(taken, b, taken.at[0], 2 * PIECE)
            for piece, now in (*self._changed_made(taken), *self._changed_swaps(taken)):
                taken.pieces.append(piece)
                taken.data.append(now)
            self._undo_swaps(taken)

    def settle(self) -> tuple[tuple[TimedLook, ...], list[bytes]]:
        """What has been seen, and for each look the bytes that travel beside it."""
        looks: list[TimedLook] = []
        blobs: list[bytes] = []
        for taken in self._taken:
            look, data = self._collect_evidence(taken)
            looks.append(look)
            blobs += as_blobs(data)
        self._taken.clear()
        return tuple(looks), blobs

    def drop(self) -> None:
        """What has been seen of chains that do not count; inputs are as they were before."""
        for taken in self._taken:
            if self.session.inspector is not None:  # elsewhere they are already
                self._undo_swaps(taken)
        self._taken.clear()

    def _collect_evidence(self, taken: _Taken) -> tuple[TimedLook, list[bytes]]:
        if self.session.inspector is None:
            look = TimedLook(taken.place, taken.at[1], tuple(taken.pieces), partial=taken.partial)
            return look, taken.data
        look, data = self._judge(taken, self.session.inspector)
        look, data = _with_pieces(look, data, self._changed_swaps(taken))
        self._undo_swaps(taken)
        return _with_pieces(look, data, self._changed_inputs(taken))

    def _read_pieces(self, taken: _Taken, b: BufferPlan, slot: int, whole: int) -> None:
        count = MANY_PIECES if self.request.policy.whole and b.role != "input" else PIECES
        gap = Piece(b.name, b.nbytes, self.arenas.stride(b) - b.nbytes)
        is_whole = b.name in judged_whole(self.plan)
        pieces = choose_pieces(b, whole, count, self.chance, is_whole)
        if b.role != "input" and (is_whole or not guards.is_divisible(b)) and not self._sends_whole:
            taken.partial, pieces = True, ()
        for piece in (*pieces, gap):
            place = slot * self.arenas.stride(b) + piece.start
            taken.pieces.append(piece)
            taken.data.append(self.session.read(self.laid_out[b.name].memory, place, piece.nbytes))

    def _judge(self, taken: _Taken, inspector: Inspector) -> tuple[TimedLook, list[bytes]]:
        contender = self.request.original
        assert contender is not None
        plan, drawn = contender.plan, {b.name for b in self._drawn("inout")}
        pointers = {b.name: self._slot(b, taken.at[0]) for b in plan.buffers}
        outputs = {b.name: (number, b) for number, b in enumerate(self.plan.compared())}
        for number, b in enumerate(plan.compared()):
            pointers[b.name] = output = self._original_output(number, b)
            arena = self.laid_out[b.name]
            if arena.source is not None:
                source = Pointer(arena.source, taken.at[0] * self.arenas.stride(b), b.nbytes)
                self.session.copy(output, source)
                if b.name in drawn:
                    self._swap_in(b, output, taken.place)
            else:
                inspector.fill(output, guards.PATTERN)
        self.session.run(bind_calls(plan, self.original, pointers))
        pieces: list[Piece] = []
        data: list[bytes] = []
        partial = False
        seen = {
            name: self._seen(number, self.arenas.stride(b)).part(0, b.nbytes)
            for name, (number, b) in outputs.items()
        }
        unlike = [n for n, (_, b) in outputs.items() if not is_like(inspector, b, seen[n], pointers[n])]
        if whole := judged_whole(self.plan):  # together, or not at all
            together = whole if whole.intersection(unlike) else frozenset()
            unlike = [n for n in outputs if n in together or (n in unlike and n not in whole)]
        for name in unlike:
            b = outputs[name][1]
            if name in whole:
                found, is_all = self._whole_piece(b)
            else:
                found, is_all = self._unlike_pieces(inspector, b, seen[name], pointers[name])
            partial = partial or not is_all
            pieces += found
            data += [self.scratch.read(seen[name].part(piece.start, piece.nbytes)) for piece in found]
        data += [self.scratch.read(pointers[p.name].part(p.start, p.nbytes)) for p in pieces]
        look = TimedLook(taken.place, taken.at[1], tuple(pieces), tuple(pieces), partial)
        return _with_pieces(look, data, self._hit_gaps(taken))

    def _unlike_pieces(
        self, inspector: Inspector, b: BufferPlan, seen: Pointer, original: Pointer
    ) -> tuple[list[Piece], bool]:
        """Where the host must tell, and whether that is all; of codes it counts how many differ, in all of
        them."""
        if not (guards.is_divisible(b) and b.extent == b.count and b.compare != "codes"):
            return self._whole_piece(b)
        size = b.itemsize
        spans, is_all = unlike_spans(inspector, b, seen, original)
        if not is_all and self.request.sends_all:
            part = PART // size
            spans = [(first, min(first + part, b.count)) for first in range(0, b.count, part)]
            is_all = True
        return [Piece(b.name, first * size, (end - first) * size) for first, end in spans], is_all

    def _whole_piece(self, b: BufferPlan) -> tuple[list[Piece], bool]:
        """All of it or, where the looks of one request together would send too much, nothing yet."""
        return ([Piece(b.name, 0, b.nbytes)], True) if self._sends_whole else ([], False)

    @property
    def _sends_whole(self) -> bool:
        most = self.request.policy.looks * guards.bytes_of_look(self.plan)
        return self.request.sends_all or most <= guards.MAX_SENT

    def _changed_inputs(self, taken: _Taken) -> list[tuple[Piece, bytes]]:
        """Where an input is not what was drawn, at its ends and at some places."""
        found = self._changed_made(taken)
        draw, place = self.request.draw, replace(taken.place, swaps=0)
        for b in self._drawn("input"):
            slot, count = self._slot(b, taken.at[0]), PIECES if self.request.policy.whole else 2
            for piece in choose_pieces(b, 2 * PIECE, count, self.chance):
                now = self.scratch.read(slot.part(piece.start, piece.nbytes))
                part = (piece.start // b.itemsize, piece.nbytes // b.itemsize)
                if now != slot_items(b, draw.distribution, draw.seed, place, *part).tobytes():
                    found.append((piece, now))
        return found

    def _changed_swaps(self, taken: _Taken) -> list[tuple[Piece, bytes]]:
        """Where an input is not what was swapped in: nobody would see it once that is undone."""
        found: list[tuple[Piece, bytes]] = []
        draw = self.request.draw
        for b in self._drawn("input"):
            slot = self._slot(b, taken.at[0])
            for where, _, count in swap_moves(b, taken.place.swaps):
                piece = Piece(b.name, where * b.itemsize, count * b.itemsize)
                now = self.session.read(slot.memory, slot.offset + piece.start, piece.nbytes)
                if now != slot_items(b, draw.distribution, draw.seed, taken.place, where, count).tobytes():
                    found.append((piece, now))
        return found

    def _changed_made(self, taken: _Taken) -> list[tuple[Piece, bytes]]:
        """The same where the user's function made it: all of it, which is seldom much."""
        found: list[tuple[Piece, bytes]] = []
        for b in self.plan.buffers:
            arena = self.laid_out[b.name]
            if b.role != "input" or not arena.made:
                continue
            wanted, start = arena.made[taken.at[0] % len(arena.made)], taken.at[0] * self.arenas.stride(b)
            now = self.session.read(arena.memory, start, b.nbytes)
            if now != wanted:
                differ = np.frombuffer(now, np.uint8) != np.frombuffer(wanted, np.uint8)
                first = int(differ.argmax()) // b.itemsize * b.itemsize
                found.append((Piece(b.name, first, b.itemsize), now[first : first + b.itemsize]))
        return found

    def inputs_changed(self) -> tuple[list[TimedLook], list[bytes]]:
        """After all: a look where an input's memory, all of it, is not what was drawn."""
        looks: list[TimedLook] = []
        blobs: list[bytes] = []
        for b in self._drawn("input"):
            arena, stride = self.laid_out[b.name], self.arenas.stride(b)
            first = self.arenas.first_change(b, arena, self.request.draw)
            if first is None:
                continue
            slot, within = divmod(first, stride)
            piece = Piece(b.name, within // b.itemsize * b.itemsize, b.itemsize)
            piece = piece if within < b.nbytes else Piece(b.name, b.nbytes, stride - b.nbytes)
            looks.append(TimedLook(SlotPlace(slot, apart_on(self.device)), slot, (piece,)))
            blobs.append(self.session.read(arena.memory, slot * stride + piece.start, piece.nbytes))
        return looks, blobs

    def _hit_gaps(self, taken: _Taken) -> list[tuple[Piece, bytes]]:
        """What belongs to nobody, where it is not intact."""
        found: list[tuple[Piece, bytes]] = []
        for number, b in enumerate(self.plan.compared()):
            stride = self.arenas.stride(b)
            piece = Piece(b.name, b.nbytes, stride - b.nbytes)
            now = self.scratch.read(self._seen(number, stride).part(b.nbytes, piece.nbytes))
            if now != self._gap_bytes(b, taken.at[is_rotated(b)]):
                found.append((piece, now))
        return found

    def _seen(self, number: int, nbytes: int) -> Pointer:
        return Pointer(self.scratch.arena(f"seen {self.number} {number}", nbytes), 0, nbytes)

    def _original_output(self, number: int, b: BufferPlan) -> Pointer:
        return Pointer(self.scratch.arena(f"original {number}", b.nbytes), 0, b.nbytes)

    def _slot(self, b: BufferPlan, slot: int) -> Pointer:
        return Pointer(self.laid_out[b.name].memory, slot * self.arenas.stride(b), max(b.nbytes, 1))

    def _gap_bytes(self, b: BufferPlan, slot: int) -> bytes:
        draw = self.request.draw
        return after_slot(b, draw.distribution, draw.seed, SlotPlace(slot, apart_on(self.device)))

    def _drawn(self, *roles: str) -> list[BufferPlan]:
        """Of these roles, what no function of the user's makes."""
        draw = self.request.draw
        return [b for b in self.plan.buffers if b.role in roles and not self.arenas.is_linked(b, draw)]

    def _undo_swaps(self, taken: _Taken) -> None:
        """Only of inputs: what is changed in place is restored anyway."""
        for b in self._drawn("input"):
            self._swap_in(b, self._slot(b, taken.at[0]), taken.place, back=True)

    def _swap_in(self, b: BufferPlan, to: Pointer, place: SlotPlace, back: bool = False) -> None:
        draw, size, plain = self.request.draw, b.itemsize, replace(place, swaps=0)
        for where, source, count in swap_moves(b, place.swaps, back):
            items = slot_items(b, draw.distribution, draw.seed, plain, source, count)
            self.session.write(to.memory, to.offset + where * size, items.tobytes())


def _with_pieces(
    look: TimedLook, data: list[bytes], found: Sequence[tuple[Piece, bytes]]
) -> tuple[TimedLook, list[bytes]]:
    """Those that were found beside the outputs, before the original's."""
    count = len(look.pieces)
    pieces = (*look.pieces, *(piece for piece, _ in found))
    return replace(look, pieces=pieces), [*data[:count], *(now for _, now in found), *data[count:]]


def is_rotated(b: BufferPlan) -> bool:
    """Whether it is at the slot that is written: what is restored after each chain is where it was."""
    return b.role in ("output", "workspace") and not needs_restoring(b)


RULES = CaseRules(compares_errors=False)


@dataclass(frozen=True)
class WholeLook:
    _problem: Problem
    _references: References
    _case: Case
    _plan: Plan

    def wrong(self, outputs: Arrays, original: Arrays) -> str | None:
        """Why what a launch left is, given what the original leaves from the same inputs: where the two
        differ both may be right, and only the reference can tell. A case that is too large for it is held to
        the original, as in checks, also where that may fail."""
        accuracy, whole = self._problem.accuracy, judged_whole(self._plan)
        keys = self._ask().key_arrays(self._plan) if key_arrays(self._plan) else {}
        given = {name: array for name, array in original.items() if name in whole}
        trusted = accuracy.reference is None or not accuracy.baseline_may_fail
        reason = self._by_original(outputs, given, keys) if trusted else None
        if accuracy.reference is None or (trusted and reason is None):
            return reason
        if not self._ask().answer.arrays:
            return reason if trusted else self._by_original(outputs, given, keys)
        reason, contested = self._by_reference(outputs, given, keys)
        if reason and self._references.contest(self._case, contested):
            reason, _ = self._by_reference(outputs, given, keys)
        return reason

    def _by_original(self, outputs: Arrays, given: Arrays, keys: dict[str, Array]) -> str | None:
        views = views_of(self._plan, given, keys)
        arrays = {name: view.array for name, view in views.items()}
        like = ExpectedValues(original=arrays, inputs=keys, given=dict(given))
        return wrong_values(self._plan, outputs, like, RULES, self._compare)[0]

    def _by_reference(
        self, outputs: Arrays, given: Arrays, keys: dict[str, Array]
    ) -> tuple[str | None, tuple[int, ...]]:
        """Where it answers for some rows, the others are held to the original."""
        referred, names = self._ask(), judged_whole(self._plan)
        arrays = {name: array for name, array in referred.arrays.items() if name in names}
        views = views_of(self._plan, arrays, keys, referred.rows)
        rest = views_of(self._plan, given, keys) if referred.rows is not None else {}
        expected = ExpectedValues(
            arrays={name: view.array for name, view in views.items()},
            rows=referred.rows,
            sampled=referred.sampled,
            original={name: view.array for name, view in rest.items()},
            inputs=keys,
            referred=arrays,
        )
        return wrong_values(self._plan, outputs, expected, RULES, self._compare)

    def _compare(self, output: str, got: Arrays, wanted: Arrays) -> str | None:
        return self._references.compare_candidate(self._case, self._plan, output, got, wanted)

    def _ask(self) -> Referred:
        return self._references.ask(self._case, self._plan, digests=False, keys=True)
