"""What every inspector must do. Inherit `InspectorSuite` and provide `make_session`.

What it calls right is never looked at again, so above all: the host must call it right as well.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.suites.arbitrary_outputs import ROUNDS, Trials, buffer, edges, ends, numbers, outputs
from tunesmith.backends.port import Comparison, Difference, Inspector, NumberRule, Pointer, Session
from tunesmith.lab.memory import original_rule, reference_rule, rms_holds
from tunesmith.problem import inputs
from tunesmith.problem.compare import judge_against_original, judge_output
from tunesmith.problem.inputs import draw_array, draw_block
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import TYPES, Compare, ElementType, element_type

Array = NDArray[Any]

PATTERN = bytes((0xE7, 0xFF, 0xF5, 0x01))
LARGE = (1 << 20) + 13
PLACES = (0, 1, 3, 8, 15, 16, 17, 20)  # before, at and after what vectors are aligned to
LENGTHS = (0, 1, 2, 3, 15, 16, 17, 31, 33, 100)
NUMBERS = [name for name, element in TYPES.items() if element.packed == 1]
FLOATS = [name for name in NUMBERS if TYPES[name].kind == "float"]
INTEGERS = [name for name in NUMBERS if TYPES[name].kind != "float"]


class InspectorSuite(ABC):
    @abstractmethod
    def make_session(self) -> Session: ...

    @pytest.fixture
    def session(self) -> Session:
        return self.make_session()

    @pytest.fixture
    def inspector(self, session: Session) -> Inspector:
        assert session.inspector is not None
        return session.inspector

    # -- fill ---------------------------------------------------------------------------------------

    @pytest.mark.parametrize("offset", range(21))
    def test_fills_exactly_what_it_is_pointed_to(
        self, session: Session, inspector: Inspector, offset: int
    ) -> None:
        memory = session.allocate(LARGE + 64)
        for length in (*range(101), LARGE):
            session.write(memory, 0, bytes(offset + length + 32))
            inspector.fill(Pointer(memory, offset, length), PATTERN)
            written = session.read(memory, 0, offset + length + 32)
            assert written == bytes(offset) + _repeated(PATTERN, length) + bytes(32), length

    # -- copy late ----------------------------------------------------------------------------------

    def test_copies_late_what_it_is_pointed_to(self, session: Session, inspector: Inspector) -> None:
        source, memory = session.allocate(LARGE), session.allocate(LARGE + 64)
        data = np.random.default_rng(1).bytes(LARGE)
        session.write(source, 0, data)
        for offset, length in ((0, 0), (1, 1), (16, 4096), (3, LARGE)):
            session.write(memory, 0, bytes(LARGE + 64))
            inspector.copy_late(Pointer(memory, offset, length), Pointer(source, 0, length))
            written = session.read(memory, 0, offset + length + 32)
            assert written == bytes(offset) + data[:length] + bytes(32), length

    # -- disturb ------------------------------------------------------------------------------------

    @pytest.mark.parametrize(("nbytes", "stride"), [(1, 64), (15, 64), (16, 16), (250, 256), (4096, 4352)])
    @pytest.mark.few(2)
    def test_changes_a_little_of_every_slot_and_nothing_else(
        self, session: Session, inspector: Inspector, nbytes: int, stride: int
    ) -> None:
        slots, offset = 300, 48
        memory = session.allocate(offset + slots * stride + 64)
        clean = bytes(range(256)) * ((offset + slots * stride + 64) // 256 + 1)
        clean = clean[: offset + slots * stride + 64]
        session.write(memory, 0, clean)
        seen = []
        for seed in (1, 2, (1 << 62) - 1):
            inspector.disturb(Pointer(memory, offset, nbytes), stride, slots, 4, seed)
            now = session.read(memory, 0, len(clean))
            changed = [a != b for a, b in zip(now, clean, strict=True)]
            assert not any(changed[:offset])
            assert not any(changed[offset + slots * stride :])
            for slot in range(slots):
                start = offset + slot * stride
                assert not any(changed[start + nbytes : start + stride])
                assert sum(changed[start : start + nbytes]) <= 3 * 4 * 16
            per_slot = [any(changed[offset + s * stride :][:nbytes]) for s in range(slots)]
            assert sum(per_slot) >= slots - 10, "chance may undo itself, seldom"
            seen.append(now)
        assert len(set(seen)) == 3

    # -- spread -------------------------------------------------------------------------------------

    @pytest.mark.parametrize("type", ["float32", "float16", "float64", "bfloat16", "int8", "uint16", "int64"])
    @pytest.mark.parametrize("distribution", ["normal", "ones"])
    def test_spreads_a_block_as_the_host_would(
        self,
        session: Session,
        inspector: Inspector,
        type: str,
        distribution: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        _need(type)
        monkeypatch.setattr(inputs, "BLOCK", 64)
        for count in (0, 1, 7, 63, 64, 65, 127, 128, 129, 1000):
            for place in (0, 1, 5):
                self._spreads(session, inspector, buffer(type, count), distribution, place)

    @pytest.mark.parametrize("type", ["float16", "float32", "uint8"])
    def test_spreads_blocks_of_their_real_size(
        self, session: Session, inspector: Inspector, type: str
    ) -> None:
        self._spreads(session, inspector, buffer(type, 3 * inputs.BLOCK + 5), "wide", 3)

    def _spreads(
        self, session: Session, inspector: Inspector, b: BufferPlan, distribution: str, place: int
    ) -> None:
        block = draw_block(b, distribution, 7)
        data = block.values.tobytes()
        source, offset = session.allocate(len(data) + 64), place * b.itemsize
        to = session.allocate(offset + b.nbytes + 16)
        session.write(source, 0, data)
        session.write(to, 0, bytes(offset + b.nbytes + 16))
        target = Pointer(to, offset, b.nbytes)
        inspector.spread(target, Pointer(source, 0, len(data)), b.itemsize, block.roll, block.negate)
        wanted = bytes(offset) + draw_array(b, distribution, 7).tobytes() + bytes(16)
        assert session.read(to, 0, len(wanted)) == wanted
        for memory in (source, to):
            session.release(memory)

    # -- all at once --------------------------------------------------------------------------------

    def test_one_byte_among_several_arrays_tells(self, session: Session, inspector: Inspector) -> None:
        a, b = session.allocate(300), session.allocate(300)
        pairs = [(Pointer(a, 3, 100), Pointer(b, 3, 100)), (Pointer(b, 120, 64), PATTERN)]
        pairs += [(Pointer(a, 200, 0), Pointer(b, 210, 0)), (Pointer(a, 200, 50), Pointer(b, 200, 50))]
        clean = bytearray(range(250)) + bytearray(50)
        clean[120:184] = _repeated(PATTERN, 64)
        session.write(a, 0, bytes(clean))
        session.write(b, 0, bytes(clean))
        assert inspector.are_like(pairs)
        assert inspector.are_like([])
        for place in (3, 102, 120, 183, 249):
            session.write(b, 0, bytes(clean[:place]) + bytes([clean[place] ^ 1]) + bytes(clean[place + 1 :]))
            assert not inspector.are_like(pairs), place
        for place in (2, 103, 119, 184, 250):
            session.write(b, 0, bytes(clean[:place]) + bytes([clean[place] ^ 1]) + bytes(clean[place + 1 :]))
            assert inspector.are_like(pairs), place

    # -- differing, unlike --------------------------------------------------------------------------

    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("other", PLACES)
    @pytest.mark.few(12)
    def test_finds_every_byte_that_differs(
        self, session: Session, inspector: Inspector, place: int, other: int
    ) -> None:
        rng = np.random.default_rng(place * 100 + other)
        for length in (*LENGTHS, 5000):
            values = rng.integers(0, 256, length, dtype=np.uint8)
            a, b = _placed(session, place, values.tobytes()), _placed(session, other, values.tobytes())
            assert inspector.differing(a, b) == Difference(0)
            for changed in _changes(rng, length):
                now = values.copy()
                now[changed] ^= 1 << int(rng.integers(8))
                session.write(a.memory, a.offset, now.tobytes())
                assert inspector.differing(a, b) == Difference(len(changed), changed[0], changed[-1])

    @pytest.mark.parametrize("place", PLACES)
    def test_finds_every_byte_unlike_a_pattern(
        self, session: Session, inspector: Inspector, place: int
    ) -> None:
        rng = np.random.default_rng(place)
        for length in (*LENGTHS, 5000):
            values = np.frombuffer(_repeated(PATTERN, length), dtype=np.uint8)
            a = _placed(session, place, values.tobytes())
            assert inspector.unlike(a, PATTERN) == Difference(0)
            for changed in _changes(rng, length):
                now = values.copy()
                now[changed] ^= 1 << int(rng.integers(8))
                session.write(a.memory, a.offset, now.tobytes())
                assert inspector.unlike(a, PATTERN) == Difference(len(changed), changed[0], changed[-1])

    def test_what_lies_beside_does_not_count(self, session: Session, inspector: Inspector) -> None:
        for place in PLACES:
            a, b = (_placed(session, place, bytes(100), beside=fill) for fill in (b"\x55", b"\xaa"))
            assert inspector.differing(a, b) == Difference(0)
            assert inspector.unlike(a, bytes(4)) == Difference(0)

    def test_differences_in_a_large_array(self, session: Session, inspector: Inspector) -> None:
        a, b = _placed(session, 0, bytes(LARGE)), _placed(session, 0, bytes(LARGE))
        assert inspector.differing(a, b) == Difference(0)
        session.write(a.memory, a.offset, b"\1" * LARGE)
        assert inspector.differing(a, b) == Difference(LARGE, 0, LARGE - 1)

    # -- compare ------------------------------------------------------------------------------------

    @pytest.mark.parametrize("codes", [False, True])
    @pytest.mark.parametrize("type", NUMBERS)
    @pytest.mark.parametrize("count", [1, 1000, 70_001])
    @pytest.mark.few(12)
    def test_adds_up_errors_over_finite_numbers(
        self, session: Session, inspector: Inspector, type: str, codes: bool, count: int
    ) -> None:
        _need(type)
        rng = np.random.default_rng(count)
        expected = numbers(rng, element_type(type), count)
        got = outputs(rng, element_type(type), expected)
        rule = NumberRule(0.01, 0.01, 0.5, None if codes else 0.5, add_ulps=codes)
        found = _compare(session, inspector, got, type, expected, rule)
        wanted = _by_hand(got, expected, element_type(type), rule)
        assert (found.wrong, found.count) == (wanted.wrong, wanted.count)
        assert found.max_error == wanted.max_error
        assert found.squared_error == pytest.approx(wanted.squared_error, rel=1e-12)
        assert found.squared_ulp == pytest.approx(wanted.squared_ulp, rel=1e-12)

    @pytest.mark.parametrize("type", FLOATS)
    @pytest.mark.parametrize("compare", ["close", "codes"])
    @pytest.mark.parametrize("plain", [False, True])
    @pytest.mark.few(8)
    def test_floats_it_calls_right_are_right(
        self, session: Session, inspector: Inspector, type: str, compare: Compare, plain: bool
    ) -> None:
        """And where all numbers are finite and inside the type, those it does not are wrong."""
        _need(type)
        self._agree(session, inspector, Trials(type, compare, plain))

    @pytest.mark.parametrize("type", INTEGERS)
    @pytest.mark.parametrize("compare", ["close", "codes"])
    @pytest.mark.parametrize("plain", [False, True])
    @pytest.mark.few(8)
    def test_integers_it_calls_right_are_right(
        self, session: Session, inspector: Inspector, type: str, compare: Compare, plain: bool
    ) -> None:
        self._agree(session, inspector, Trials(type, compare, plain))

    def _agree(self, session: Session, inspector: Inspector, trials: Trials) -> None:
        rights = wrongs = 0
        for b, got, expected, original in trials:
            rule = reference_rule(b, original)
            assert rule is not None
            found = _compare(session, inspector, got, b.type, expected, rule)
            right = not found.wrong and rms_holds(found, original)
            reason = judge_output(b, got, expected, original)
            assert not right or reason is None, (b, got, expected, original, found, reason)
            # Where the order of a sum decides, it leaves the verdict to the host.
            nearly = replace(found, squared_error=(1 - 1e-6) * found.squared_error)
            missed = reason is None and (found.wrong or not rms_holds(nearly, original))
            assert not (trials.plain and missed), (b, got, expected, original, found)
            rights, wrongs = rights + right, wrongs + (not right)
        assert min(rights, wrongs) > ROUNDS // 20, "too one-sided to show anything"

    @pytest.mark.parametrize("type", NUMBERS)
    @pytest.mark.parametrize("compare", ["close", "codes"])
    @pytest.mark.few(8)
    def test_so_they_are_where_the_type_ends(
        self, session: Session, inspector: Inspector, type: str, compare: Compare
    ) -> None:
        """However generous the tolerance: a number must not pass for an infinity, nor for NaN."""
        _need(type)
        b = buffer(type, 1, rtol=1.0, compare=compare)
        rule = reference_rule(b, None)
        assert rule is not None
        for edge in edges(element_type(type)):
            for got in ends(element_type(type)):
                expected = np.array([edge])
                found = _compare(session, inspector, got, type, expected, rule)
                reason = judge_output(b, got, expected, None)
                assert found.wrong or reason is None, (got, edge, reason)

    @pytest.mark.parametrize("type", FLOATS)
    def test_what_it_calls_close_to_the_original_is_close(
        self, session: Session, inspector: Inspector, type: str
    ) -> None:
        _need(type)
        rights = wrongs = 0
        for b, got, expected, _ in Trials(type, "close", False):
            with np.errstate(all="ignore"):
                other = expected.astype(got.dtype)
            found = _compare(session, inspector, got, type, other, original_rule(b))
            reason = judge_against_original(b, got, other)
            assert found.wrong or reason is None, (b, got, other, found, reason)
            rights, wrongs = rights + (not found.wrong), wrongs + bool(found.wrong)
        assert min(rights, wrongs) > ROUNDS // 20

    @pytest.mark.parametrize("wanted", ["int64", "uint64"])
    @pytest.mark.parametrize("type", INTEGERS)
    def test_exact_integers(self, session: Session, inspector: Inspector, type: str, wanted: str) -> None:
        """Also beyond 2**53, and across signs: -1 and 2**64 - 1 have the same bits."""
        rng = np.random.default_rng(3)
        low, high = element_type(type).bounds
        near = [low, high, 0, 1, low + 1, high - 1, -1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, high + 1]
        least, most = element_type(wanted).bounds
        expected = np.array([v for v in near if least <= v <= most], dtype=wanted)
        b = buffer(type, 1)
        rule = reference_rule(b, None)
        assert rule == NumberRule(0.0, 0.0, 0.0)
        equal = 0
        for number in expected.astype(wanted):
            for value in {low, high, 0, int(rng.integers(100)), int(number.astype(type)), -1 & high}:
                got = np.array([value], dtype=type)
                found = _compare(session, inspector, got, type, np.array([number]), rule)
                assert found.wrong == (value != int(number))
                assert (judge_output(b, got, np.array([number]), None) is None) == (value == int(number))
                equal += value == int(number)
        assert equal >= 4

    def test_nothing_is_right(self, session: Session, inspector: Inspector) -> None:
        nothing = _compare(
            session, inspector, np.empty(0, np.float32), "float32", np.empty(0), NumberRule(0, 0, 0)
        )
        assert nothing == Comparison(0, 0.0, 0.0, 0.0, 0)


def _by_hand(got: Array, expected: Array, element: ElementType, rule: NumberRule) -> Comparison:
    """The rule as it is written, one element after the other."""
    wrong, largest, errors, ulps = 0, 0.0, [], []
    with np.errstate(all="ignore"):
        rounded = expected.astype(element.numpy) if element.kind == "float" else expected
        rows = zip(*(a.astype(np.float64).tolist() for a in (got, expected, rounded)), strict=True)
    low, high = (-element.largest, element.largest) if element.kind == "float" else element.bounds
    for g, e, nearest in rows:
        if rule.add_ulps and not math.isnan(e):
            e = nearest = min(max(e, float(low)), float(high))
        if not math.isfinite(nearest):
            wrong += not (g == nearest or (math.isnan(g) and math.isnan(nearest)))
            continue
        exponent = max(math.frexp(e)[1] - 1, element.min_exponent) if e else element.min_exponent
        ulp = math.ldexp(1.0, exponent - element.mantissa) if element.kind == "float" else 1.0
        error, near = abs(g - e), rule.atol + rule.rtol * abs(e)
        right = error <= (rule.ulps * ulp + near if rule.add_ulps else max(near, rule.ulps * ulp))
        right = right and (rule.cap is None or error <= rule.cap + ulp)
        right = right and not (rule.add_ulps and element.kind != "float" and abs(g - round(e)) > 1)
        wrong += not right
        if math.isfinite(error):
            largest = max(largest, error)
            errors.append(error * error)
            ulps.append(ulp * ulp)
    return Comparison(wrong, largest, math.fsum(errors), math.fsum(ulps), len(errors))


def _compare(
    session: Session, inspector: Inspector, got: Array, type: str, expected: Array, rule: NumberRule
) -> Comparison:
    itemsize = element_type(type).bytes
    a, b = _placed(session, 3 * itemsize, got.tobytes()), _placed(session, 0, expected.tobytes())
    expected_type = type if expected.dtype == element_type(type).numpy else str(expected.dtype)
    found = inspector.compare(a, type, b, expected_type, rule)
    for pointer in (a, b):
        session.release(pointer.memory)
    return found


def _placed(session: Session, offset: int, data: bytes, beside: bytes = b"\xcc") -> Pointer:
    memory = session.allocate(offset + len(data) + 32)
    session.write(memory, 0, beside * offset + data + beside * 32)
    return Pointer(memory, offset, len(data))


def _changes(rng: np.random.Generator, length: int) -> list[list[int]]:
    """Places to change: either end, both, one in the middle, a few."""
    if not length:
        return []
    few = sorted({int(i) for i in rng.integers(0, length, 5)})
    return [[0], [length - 1], sorted({0, length - 1}), [length // 2], few, list(range(length))]


def _repeated(pattern: bytes, nbytes: int) -> bytes:
    return (pattern * (nbytes // len(pattern) + 1))[:nbytes]


def _need(type: str) -> None:
    if element_type(type).extension:
        pytest.importorskip("ml_dtypes")
