"""What looks at timed launches are worth: judged in our process, which runs no kernel, against the outputs
that the original gave elsewhere, and where the two differ against the reference.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends.messages import Draw, Piece, Timed, TimedLook, TimingPolicy
from tunesmith.lab import memory as guards
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.memory import RIGHT, Verdict, bytes_of_look, is_divisible
from tunesmith.lab.references import CONTESTED_ROWS, References
from tunesmith.lab.runner import Race, RaceRun, Runner
from tunesmith.lab.worker.output_sampling import WholeLook
from tunesmith.problem.cases import Case
from tunesmith.problem.compare import judge_against_original, judge_output, judged_whole, unlike_original
from tunesmith.problem.inputs import SlotPlace, after_slot, slot_items
from tunesmith.problem.plan import BufferPlan, Plan, Status
from tunesmith.problem.problem import Problem, Workload, element_type

GARBLED = Verdict(Status.CRASHED, "the worker garbled what it saw")
MAX_AT_ONCE = 1 << 26  # bytes of an output
MAX_SLOTS = 1 << 32
MAX_APART = 1 << 20
OUTPUT_BYTES = 1 << 28  # of the original's outputs, for when a slot is looked at again

Array = NDArray[Any]
Seen = tuple[Piece, memoryview]  # of what travelled


@dataclass(frozen=True)
class SeenItems:
    """Some elements of an output: which, and what they were."""

    buffer: BufferPlan  # as if these were all of it
    places: NDArray[np.int64]
    values: Array

    def of(self, whole: Array) -> Array:
        found: Array = whole.reshape(-1)[self.places]
        return found


@dataclass(frozen=True)
class Failing:
    """The original's verdict on itself."""

    verdict: Verdict


@dataclass
class SampleJudge:
    _problem: Problem
    _references: References
    _clean: Runner  # of a process that runs the original and nothing else
    _seconds: Callable[[Plan], float]  # what a run of the original may take
    _known: OrderedDict[Case, dict[str, Array]] = field(default_factory=OrderedDict)

    def judge(self, workload: Workload, plan: Plan, race: Race, run: RaceRun) -> Verdict:
        """A look at which the original itself fails judges nobody, but somebody must."""
        assert race.original is not None
        found: list[Verdict | Failing] = []
        blobs = iter(run.blobs)
        for look in run.timed.looks:
            verdict = self._judge(plan, race.original, race.draw, look, *islice(blobs, guards.blobs_of(look)))
            found.append(verdict)
            if isinstance(verdict, Verdict) and not verdict.ok:
                return Verdict(verdict.status, f"when it was timed at {workload.name}: {verdict.detail}")
        if race.sends_all and any(look.partial for look in run.timed.looks):
            return GARBLED
        failing = [one for one in found if isinstance(one, Failing)]
        if failing and len(failing) == len(found):
            words = f"what was timed at {workload.name} cannot be compared, the original fails"
            return Verdict(failing[0].verdict.status, f"{words}: {failing[0].verdict.detail}")
        return RIGHT

    def _judge(
        self, plan: Plan, original: tuple[BuiltCode, Plan], draw: Draw, look: TimedLook, *blobs: bytes
    ) -> Verdict | Failing:
        pieces = (*look.pieces, *look.originals)
        if not _may_be(plan, look) or sum(piece.nbytes for piece in pieces) != sum(map(len, blobs)):
            return GARBLED
        sent = list(_out_of(blobs, pieces))
        seen, theirs = sent[: len(look.pieces)], sent[len(look.pieces) :]
        if harm := self._find_stray_write(plan, draw, look, seen):
            return Verdict(Status.WRONG, harm)
        case = Case(plan.sizes, draw.distribution, draw.seed, "full", place=look.place)
        whole = judged_whole(plan)
        for b in plan.compared():
            if b.name in whole:
                continue
            by_them = _split_for_judging(b, theirs)
            for number, part in enumerate(_split_for_judging(b, seen)):
                items = _gather_items(b, part)
                if look.originals:
                    others = _same_items(b, by_them, number, items)
                    if others is None:
                        return GARBLED
                else:
                    outputs = self._outputs(case, *original, draw)
                    if isinstance(outputs, Failing):
                        return outputs
                    others = items.of(outputs[b.name])
                if reason := self._mismatch_reason(case, original[1], b, items, others):
                    return Verdict(Status.WRONG, reason)
        outputs = _whole_arrays(plan, whole, seen)
        if not outputs:  # there are none, or a device found all of them alike
            parts = [p for p in look.pieces if p.name in whole and p.start < plan.buffer(p.name).nbytes]
            return GARBLED if parts else RIGHT
        found = _whole_arrays(plan, whole, theirs) if look.originals else self._outputs(case, *original, draw)
        if isinstance(found, Failing):
            return found
        if whole - outputs.keys() or whole - found.keys():
            return GARBLED
        reason = WholeLook(self._problem, self._references, case, plan).wrong(outputs, found)
        return Verdict(Status.WRONG, reason) if reason else RIGHT

    def _find_stray_write(self, plan: Plan, draw: Draw, look: TimedLook, seen: Sequence[Seen]) -> str:
        """Inputs that changed, and memory that belongs to nobody."""
        for piece, blob in seen:
            b = plan.buffer(piece.name)
            if piece.start >= b.nbytes:
                slot = look.wrote if b.role == "output" and b.init is None else look.place.slot
                place = SlotPlace(slot, look.place.apart)
                if blob != after_slot(b, draw.distribution, draw.seed, place):
                    return f"it writes outside {b.name}"
            elif b.role == "input":
                part = (piece.start // b.itemsize, piece.nbytes // b.itemsize)
                if blob != slot_items(b, draw.distribution, draw.seed, look.place, *part).tobytes():
                    return f"it changes the input {b.name}"
        return ""

    def _outputs(self, case: Case, code: BuiltCode, plan: Plan, draw: Draw) -> dict[str, Array] | Failing:
        """The original's, from a process of its own, and from another where it fails there."""
        if case not in self._known:
            there = replace(draw, place=case.place)
            run = self._clean.run(code, plan, there, self._seconds(plan))
            if isinstance(run, Verdict):
                self._clean.restart()
                run = self._clean.run(code, plan, there, self._seconds(plan))
            if isinstance(run, Verdict):
                return Failing(run)
            compared = zip(plan.compared(), run.outputs, strict=True)
            self._known[case] = {b.name: guards.as_array(b, blob) for b, blob in compared}
            guards.drop_oldest(self._known, lambda known: sum(a.nbytes for a in known.values()), OUTPUT_BYTES)
        self._known.move_to_end(case)
        return self._known[case]

    def _mismatch_reason(
        self, case: Case, plan: Plan, b: BufferPlan, items: SeenItems, others: Array
    ) -> str | None:
        """`others`: the same items as the original has them."""
        accuracy = self._problem.accuracy
        reason = _relocate_reason(judge_against_original(items.buffer, items.values, others), b, items.places)
        may_fail = accuracy.baseline_may_fail
        if accuracy.reference is None or (reason is None and not may_fail):
            return reason
        every = np.arange(items.places.size)
        doubtful = every if may_fail else unlike_original(items.buffer, items.values, others)
        return self._by_reference(case, plan, b, items, doubtful, reason) if doubtful.size else reason

    def _by_reference(
        self,
        case: Case,
        plan: Plan,
        b: BufferPlan,
        items: SeenItems,
        doubtful: NDArray[np.intp],
        reason: str | None,
    ) -> str | None:
        """Where a candidate and the original differ, both may be right: only the reference can tell.
        `reason`: why it is wrong by the original, which is the measure where the reference has no answer."""
        row_size = max(1, b.count // max(1, b.shape[0] if b.shape else 1))
        rows = np.unique(items.places[doubtful] // row_size)
        # Where the reference answers for all rows this has no effect.
        is_asked = self._references.contest(case, rows.tolist()) if rows.size <= CONTESTED_ROWS else False
        referred = self._references.ask(case, plan, digests=False)
        names = [spec.name for spec in referred.answer.arrays]
        if b.name not in names:  # it is too large for the reference
            return reason
        spec, blob = referred.answer.arrays[names.index(b.name)], referred.blobs[names.index(b.name)]
        expected = np.frombuffer(blob, dtype=spec.dtype).reshape(-1)
        places = items.places[doubtful]
        if referred.rows is not None and b.name in referred.sampled:
            if not is_asked:
                return reason
            number = np.searchsorted(referred.rows, places // row_size)
            places = number * row_size + places % row_size
        found = judge_output(_flatten_plan(b, doubtful.size), items.values[doubtful], expected[places], None)
        return _relocate_reason(found, b, items.places[doubtful])


def _out_of(blobs: Iterable[bytes], pieces: Iterable[Piece]) -> Iterator[Seen]:
    """The pieces, out of blobs that follow each other: gigabytes, perhaps, that are not copied but where a
    piece goes on in the next."""
    coming, rest = iter(blobs), memoryview(b"")
    for piece in pieces:
        parts = [rest[: piece.nbytes]]
        rest = rest[piece.nbytes :]
        while (missing := piece.nbytes - sum(map(len, parts))) > 0:
            rest = memoryview(next(coming))
            parts.append(rest[:missing])
            rest = rest[missing:]
        full = [part for part in parts if len(part)]
        yield piece, full[0] if len(full) == 1 else memoryview(b"".join(full))


def _may_be(plan: Plan, look: TimedLook) -> bool:
    """Whether it is of slots, and of the plan's arrays or what follows them: any worker may have sent it."""
    slots, apart = (look.place.slot, look.wrote), look.place.apart
    if not (0 <= min(slots) <= max(slots) < MAX_SLOTS and 0 < apart <= MAX_APART):
        return False
    buffers = {b.name: b for b in plan.buffers}
    pieces = (*look.pieces, *look.originals)
    return all(piece.name in buffers and _is_piece(piece, buffers[piece.name]) for piece in pieces)


def _is_piece(piece: Piece, b: BufferPlan) -> bool:
    """Of what does not lie in memory element by element only all can be judged."""
    if piece.start >= b.nbytes:
        return piece.nbytes >= 0
    if b.role != "input" and not (b.in_c_order and b.packed == 1):
        return (piece.start, piece.nbytes) == (0, b.nbytes)
    inside = 0 <= piece.start < piece.start + piece.nbytes <= b.nbytes
    return inside and piece.start % b.itemsize == piece.nbytes % b.itemsize == 0


def _relocate_reason(reason: str | None, b: BufferPlan, places: NDArray[np.intp]) -> str | None:
    """An element that is wrong, by its place in the output, and not among those that were seen."""
    head, bracket, rest = (reason or "").partition("]")
    number = head.removeprefix(f"{b.name}[")
    if not bracket or not number.isdecimal():
        return reason
    index = np.unravel_index(int(places[int(number)]), b.shape)
    return f"{b.name}[{', '.join(map(str, index))}]{rest}"


def _whole_arrays(plan: Plan, whole: frozenset[str], sent: Sequence[Seen]) -> dict[str, Array]:
    """Outputs that were sent from end to end."""
    buffers = {b.name: b for b in plan.compared() if b.name in whole}
    return {
        piece.name: guards.as_array(buffers[piece.name], blob)
        for piece, blob in sent
        if piece.name in buffers and piece.start == 0 and piece.nbytes == buffers[piece.name].nbytes
    }


def _split_for_judging(b: BufferPlan, sent: Sequence[Seen]) -> list[list[Seen]]:
    """What was seen of an output, in parts that are judged one after the other: indices of all of a large
    array take many times its memory. Codes are counted, in all of it."""
    parts: list[list[Seen]] = []
    room = 0
    for piece, blob in sent:
        if piece.name != b.name or piece.start >= b.nbytes:
            continue
        if not parts or (room < len(blob) and b.compare != "codes"):
            parts.append([])
            room = MAX_AT_ONCE
        parts[-1].append((piece, blob))
        room -= len(blob)
    return parts


def _gather_items(b: BufferPlan, found: Sequence[Seen]) -> SeenItems:
    """Element by element."""
    if not b.in_c_order or b.packed > 1:
        values = guards.as_array(b, found[0][1])
        return SeenItems(_flatten_plan(b, values.size), np.arange(values.size), values.reshape(-1))
    values = np.concatenate([np.frombuffer(blob, element_type(b.type).memory) for _, blob in found])
    return SeenItems(_flatten_plan(b, values.size), np.concatenate(list(_piece_indices(b, found))), values)


def _same_items(b: BufferPlan, parts: list[list[Seen]], number: int, items: SeenItems) -> Array | None:
    """As the original has them; None where what was sent is not of the same places."""
    found = _gather_items(b, parts[number]) if number < len(parts) else None
    return found.values if found and np.array_equal(found.places, items.places) else None


def _piece_indices(b: BufferPlan, pieces: Sequence[Seen]) -> Iterator[NDArray[np.int64]]:
    for piece, blob in pieces:
        first = piece.start // b.itemsize
        yield np.arange(first, first + len(blob) // b.itemsize)


def _flatten_plan(b: BufferPlan, count: int) -> BufferPlan:
    return replace(b, shape=(count,), strides=(1,), extent=count)


# Where its first places are not enough, all of what a timed launch left is looked at, over as many requests
# as that takes, which are one measurement; so are those over several draws of the inputs, where time may
# depend on what they hold.
DRAWS = 4  # of the inputs, where time may depend on them
LEAST_OF_DRAW = 5  # rounds
INDICES = ("int32", "int64", "uint32", "uint64")


@dataclass(frozen=True)
class TimingValidator:
    _runner: Runner
    _looks: SampleJudge
    _layout_seconds: Callable[[int], float]  # of so many bytes
    _rate: float  # bytes a second that are sent and judged at the very least

    def believed(
        self,
        workload: Workload,
        plan: Plan,
        race: Race,
        run: RaceRun | Verdict,
        deadline: float,
        is_last: bool,
    ) -> Timed | Verdict:
        """A time whose outputs are right. Where they are not, another kernel may have spoilt the data that
        all share: it is laid out anew, and only what is wrong again is guilty."""
        if isinstance(run, Verdict):
            return run
        if race.original is None:
            return run.timed
        found = self._judged(workload, plan, race, run, deadline)
        if is_last or not isinstance(found, Verdict):
            return found
        self._runner.restart()
        deadline += self._layout_seconds(plan.nbytes) - self.sending_seconds(plan, race.policy)
        race = replace(race, policy=replace(race.policy, looks=race.policy.min_rounds, give_up=None))
        deadline += self.sending_seconds(plan, race.policy)
        again = self._runner.time(race, deadline)
        return again if isinstance(again, Verdict) else self._judged(workload, plan, race, again, deadline)

    def sending_seconds(self, plan: Plan, policy: TimingPolicy) -> float:
        """What looks may take that send at once what cannot be judged in parts. Of others little is sent."""
        whole = judged_whole(plan)
        travels = [
            b for b in plan.compared() if b.name in whole or b.compare == "codes" or not is_divisible(b)
        ]
        nbytes = 2 * policy.looks * sum(b.nbytes for b in travels)
        return min(nbytes, guards.MAX_SENT) / self._rate

    def _judged(
        self, workload: Workload, plan: Plan, race: Race, run: RaceRun, deadline: float
    ) -> Timed | Verdict:
        """Where looks have sent the first places alone that are unlike the original, and these are right, as
        many looks again send all: what they saw elsewhere nobody knows. The times are those of all requests:
        a kernel that counts launches knows which is the last, and need not be right in half of that."""
        verdict = self._looks.judge(workload, plan, race, run)
        if not verdict.ok:
            return verdict
        if not any(look.partial for look in run.timed.looks):
            return run.timed
        parts: list[Timed] = []
        for looks in spread_looks(race.policy.looks, bytes_of_look(plan)):
            part = self._whole(workload, plan, race, looks, deadline)
            if isinstance(part, Verdict):
                return part
            parts.append(part)
        return merge_timed(parts)

    def _whole(
        self, workload: Workload, plan: Plan, race: Race, looks: int, deadline: float
    ) -> Timed | Verdict:
        """One request. What it has sent is gone before the next sends as much."""
        policy = replace(race.policy, looks=looks, give_up=None)
        whole = replace(race, sends_all=True, policy=policy)
        run = self._runner.time(whole, deadline + looks * bytes_of_look(plan) / self._rate)
        if isinstance(run, Verdict):
            return run
        verdict = self._looks.judge(workload, plan, whole, run)
        return run.timed if verdict.ok else verdict


def spread_looks(looks: int, nbytes: int) -> list[int]:
    """How many looks each request has, where one sends so many bytes. As even as can be: the times of a
    request in which fewer look count as much."""
    most = max(1, guards.MAX_SENT // max(1, nbytes))
    requests = -(-looks // most)
    return [looks * (n + 1) // requests - looks * n // requests for n in range(requests)]


def merge_timed(parts: Sequence[Timed]) -> Timed:
    """Requests as one measurement; clocks as they stood in the end."""
    samples = tuple(tuple(chain(*each)) for each in zip(*(part.samples for part in parts), strict=True))
    discarded, busy = sum(part.discarded for part in parts), sum(part.busy for part in parts)
    disturbance = next((part.disturbance for part in parts if part.disturbance), "")
    disturbed = sum(part.disturbed for part in parts)
    return Timed(
        samples, discarded, busy, clocks=parts[-1].clocks, disturbed=disturbed, disturbance=disturbance
    )


def times_vary(problem: Problem) -> bool:
    """Whether a kernel's time may depend on what its inputs hold: where they are made by the user's function,
    or some are as wide as indices, offsets and lengths are. Other arrays hold so many numbers drawn alike
    that one draw takes as long as another; two sittings, which have one each, would tell."""
    given = [a for a in problem.arguments if a.role in ("input", "inout") and a.shape and a.formula is None]
    return problem.inputs is not None or any(a.type in INDICES for a in given)


def split_policy(policy: TimingPolicy, draws: int) -> list[TimingPolicy]:
    """The same rounds, looks and seconds, dealt out evenly."""
    share = replace(
        policy,
        rounds=max(LEAST_OF_DRAW, -(-policy.rounds // draws)),
        min_rounds=max(min(LEAST_OF_DRAW, policy.min_rounds), -(-policy.min_rounds // draws)),
        max_seconds=policy.max_seconds / draws,
        looks=-(-policy.looks // draws),
    )
    return [share] * draws if draws > 1 else [policy]
