"""Rounds of moves: what comes first, what is added, what is dropped, when it ends."""

from __future__ import annotations

import math

from tunesmith.expert.moves import AFTERWARDS, LOCAL_MOVES, MOVES, in_words
from tunesmith.expert.planning import FIRST, ORDER, RoundResult, idle_moves, next_round, rank_moves
from tunesmith.problem.template import Remedy
from tunesmith.profiles.facts import Bound, Diagnosis, Finding, Kind
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect
from tunesmith.space.configset import Config

ALL = tuple(move.name for move in MOVES)
SHARING = ("fills", "redundant", "beside", "lanes", "tasks", "vector", "items", "split", "keep", "tile")
LOG2 = math.log(2)


def diagnosed(*findings: tuple[float, tuple[Remedy, ...]]) -> Diagnosis:
    found = tuple(
        Finding(Kind.LATENCY, gain, 1.0, ("seen",), remedies, "static", Bound.LATENCY)
        for gain, remedies in findings
    )
    return Diagnosis(Bound.LATENCY, "waits", 0.5, found)


def moves_after(*history: RoundResult, diagnoses: tuple[Diagnosis, ...] = ()) -> tuple[str, ...]:
    found = next_round(history, diagnoses, ALL)
    assert not isinstance(found, str), found
    return found


def reason_after(*history: RoundResult, available: tuple[str, ...] = ALL) -> str:
    found = next_round(history, (), available)
    assert isinstance(found, str), found
    return found


def test_every_move_has_a_place_in_the_fixed_order() -> None:
    assert {*ORDER} == {move.name for move in (*MOVES, *LOCAL_MOVES)}
    assert len(ORDER) == len(set(ORDER))


def test_the_first_round_shares_the_work_and_adds_a_few_in_the_fixed_order() -> None:
    assert set(moves_after()) == {*SHARING, "convert", "rows", "reciprocal"}
    assert len(moves_after()) == len(SHARING) + FIRST


def test_a_kernel_with_local_moves_alone_starts_with_its_block() -> None:
    local = tuple(move.name for move in LOCAL_MOVES)
    found = next_round((), (), local)
    assert isinstance(found, tuple)
    assert set(found) == {"block", "knobs", "restrict", "fast", "unroll"}


def test_the_first_round_follows_the_diagnosis() -> None:
    divides = diagnosed((0.5, (Remedy.CHEAP_DIVISION, Remedy.BAKE_SIZES)), (0.1, (Remedy.PERSISTENT_GRID,)))
    assert set(moves_after(diagnoses=(divides,))) == {*SHARING, "divide", "rows", "bake"}


def test_what_sharing_the_work_may_remedy_waits_until_that_was_tried() -> None:
    waits = diagnosed((0.5, (Remedy.WIDE_ACCESS, Remedy.ITEMS_IN_FLIGHT)), (0.4, (Remedy.UNROLL,)))
    first = set(moves_after(diagnoses=(waits,)))
    assert not set(AFTERWARDS) & first
    assert "bake" in first  # though unrolling is what sharing the work may remedy as well
    second = moves_after(RoundResult(SHARING, LOG2), diagnoses=(waits,))
    assert set(AFTERWARDS) <= set(second)


def test_what_several_workloads_suffer_from_weighs_more() -> None:
    one = diagnosed((0.5, (Remedy.PERSISTENT_GRID,)))
    other = diagnosed((0.3, (Remedy.CACHE_HINTS,)))
    assert rank_moves((one, other, other), ("persistent", "hints")) == ("hints", "persistent")
    assert rank_moves((one, other), ("persistent", "hints")) == ("persistent", "hints")


def test_a_later_round_builds_on_the_best_without_what_was_idle() -> None:
    first = RoundResult((*SHARING, "hints", "fast", "reciprocal"), LOG2, idle=("hints", "split"))
    second = moves_after(first)
    assert "hints" not in second
    assert "split" not in second
    assert set(second) > {"lanes", "tasks", "vector", "fast", "reciprocal", "divide", "persistent", "convert"}
    assert second == tuple(sorted(second, key=ALL.index))  # conditions look back, never ahead


def test_the_base_is_never_a_loser() -> None:
    first = RoundResult((*SHARING, "fast"), LOG2)
    worse = RoundResult((*SHARING, "fast", "bake"), LOG2 - 0.1)
    third = moves_after(first, worse)
    assert "bake" not in third
    assert "fast" in third


def test_a_move_that_was_dropped_is_not_tried_again() -> None:
    first = RoundResult((*SHARING, "hints", "fast"), LOG2, idle=("hints",))
    second = moves_after(first)
    assert "hints" not in moves_after(first, RoundResult(second, LOG2 + 0.2))


def test_a_rejected_template_is_halved_until_the_culprit_is_alone() -> None:
    first = RoundResult(SHARING, LOG2)
    second = moves_after(first)
    added = [move for move in second if move not in SHARING]
    history = [first, RoundResult(second, None)]
    half = moves_after(*history)
    assert [move for move in half if move not in SHARING] == added[: len(added) // 2]
    alone = moves_after(*history, RoundResult(half, None))
    assert [move for move in alone if move not in SHARING] == added[:1]
    after = moves_after(*history, RoundResult(half, None), RoundResult(alone, None))
    assert added[0] not in after
    assert added[1] in after


def test_it_stops_near_the_floor() -> None:
    assert "within 2 % of the floor" in reason_after(RoundResult(SHARING, LOG2, distance=1.02))
    assert moves_after(RoundResult(SHARING, LOG2, distance=1.2))


def test_it_stops_when_two_rounds_bring_nothing() -> None:
    first = RoundResult(SHARING, LOG2)
    second = RoundResult((*SHARING, "hints"), LOG2 + 0.001)
    third = RoundResult((*SHARING, "hints", "fast"), LOG2 + 0.002)
    assert moves_after(first, second)
    assert "gained less than 1 %" in reason_after(first, second, third)


def test_it_stops_when_nothing_is_left_or_nothing_applies() -> None:
    assert "every move" in reason_after(RoundResult(("lanes", "tasks"), LOG2), available=("lanes", "tasks"))
    assert "no move applies" in reason_after(available=())


def test_it_ends_whatever_is_rejected() -> None:
    history: list[RoundResult] = []
    for _ in range(100):
        found = next_round(history, (), ALL)
        if isinstance(found, str):
            return
        history.append(RoundResult(found, None))
    raise AssertionError("it never stops")


def effect(name: str, value: int, other: int, slower: float) -> Explanation:
    values = (ValueEffect(value, "winner", 1.0), ValueEffect(other, "measured", slower))
    return Explanation("", {name: value}, (ParamEffect(name, value, slower, other, "measured", values),))


def test_a_move_is_idle_where_every_winner_keeps_the_default_and_nothing_says_otherwise() -> None:
    default = Config.of({"LANES": 128, "FAST_": 0, "LOAD": 0, "STORE": 0, "BAKE": 0})
    moves = ("lanes", "fast", "hints", "bake")
    assert idle_moves(moves, default, [default], []) == ("fast", "hints", "bake")  # LANES stays open
    assert idle_moves(moves, default, [default, default.replace("STORE", 1)], []) == ("fast", "bake")
    assert idle_moves(moves, default, [default], [effect("FAST_", 0, 1, 0.9)]) == ("hints", "bake")
    assert idle_moves(moves, default, [default], [effect("BAKE", 0, 1, 1.4)]) == ("fast", "hints", "bake")
    assert idle_moves(moves, default, [], []) == ()


def test_the_own_text_of_a_kernel_that_is_read_has_a_round_by_itself_at_the_end() -> None:
    available = ("lanes", "tasks", "knobs")
    assert next_round((), (), available) == ("lanes", "tasks")
    first = RoundResult(("lanes", "tasks"), LOG2)
    assert next_round((first,), (), available) == ("knobs",)
    for score in (None, LOG2 / 2, 2 * LOG2):
        assert "every move" in reason_after(first, RoundResult(("knobs",), score), available=available)


def test_moves_are_named_with_what_they_do() -> None:
    assert in_words("vector") == "vector (wide loads and stores)"
    assert in_words("bounds") == "bounds (`__launch_bounds__`)"
    assert in_words("somebody else's") == "somebody else's"
