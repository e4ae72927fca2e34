"""From diagnoses to a focus and back: costs decide, enough is left, and measurements have the last word."""

from __future__ import annotations

import math

from tunesmith.problem.template import Remedy
from tunesmith.profiles.facts import Bound, Diagnosis, Finding, Kind
from tunesmith.run.ports import Tried
from tunesmith.run.prior import (
    BEFORE_BEST,
    BEFORE_MIDDLE,
    FEWEST,
    STALLED,
    WORTH,
    Answers,
    doubt,
    focus_of,
    weighed,
    widened,
)
from tunesmith.space.expr import parse
from tunesmith.space.params import Config, Param
from tunesmith.space.space import Condition, Focus, Space

SPACE = Space((Param("VEC", (1, 2, 4, 8)), Param("BLOCK", (64, 128, 256, 512)), Param("U", tuple(range(8)))))
CONFIGS = SPACE.configs()
NOISE = 0.01


def offered(**answers: str) -> Answers:
    return Answers({Remedy(n): parse(text) for n, text in answers.items()}, SPACE.params, CONFIGS)


def finding(kind: Kind, gain: float, *remedies: Remedy, confidence: float = 0.5) -> Finding:
    return Finding(kind, gain, confidence, (f"{gain:.0%} of it",), remedies, "static", Bound.LATENCY)


def diagnosis(*findings: Finding) -> Diagnosis:
    return Diagnosis(Bound.LATENCY, "so it is", 0.5, findings)


def focus(found: dict[str, Diagnosis], template: Answers, **more: object) -> list[str]:
    weights = dict.fromkeys(found, 1.0)
    made = focus_of(found, weights, template, **more)  # type: ignore[arg-type]
    return list(made.texts) if made else []


NARROW = finding(Kind.NARROW_ACCESS, 0.8, Remedy.WIDE_ACCESS, Remedy.UNROLL)
FEW = finding(Kind.TOO_FEW_BLOCKS, 0.4, Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS)


def test_the_likeliest_remedy_that_the_template_answers() -> None:
    assert focus({"w": diagnosis(NARROW)}, offered(wide_access="VEC >= 4", unroll="U > 3")) == ["VEC >= 4"]
    assert focus({"w": diagnosis(NARROW)}, offered(unroll="U > 3")) == ["U > 3"]
    assert focus({"w": diagnosis(NARROW)}, offered(pad_shared="U > 3")) == []
    assert focus({"w": diagnosis()}, offered(unroll="U > 3")) == []


def test_several_findings_hold_at_once_and_the_count_is_what_is_left() -> None:
    found = {"w": diagnosis(FEW, NARROW)}
    made = focus_of(found, {"w": 1.0}, offered(wide_access="VEC >= 4", more_blocks="BLOCK <= 128"))
    assert made is not None
    assert made.texts == ("VEC >= 4", "BLOCK <= 128")  # the costlier one first
    assert (made.inside, made.of) == (32, 128)
    assert [c.finding for c in made.conditions] == ["narrow_access", "too_few_blocks"]
    assert made.conditions[0].evidence == "80% of it (at w)"
    assert made.conditions[0].score == NARROW.score


def test_where_two_contradict_each_other_the_costlier_wins() -> None:
    template = offered(wide_access="VEC >= 4", more_blocks="VEC <= 2", split_rows="VEC == 1")
    assert focus({"w": diagnosis(FEW, NARROW)}, template) == ["VEC >= 4"]
    cheap = finding(Kind.NARROW_ACCESS, 0.2, Remedy.WIDE_ACCESS)
    assert focus({"w": diagnosis(FEW, cheap)}, template) == ["VEC == 1"]


def test_enough_is_left_or_the_next_remedy_is_taken() -> None:
    narrow = "VEC == 8 and U == 0"
    assert sum(parse(narrow).holds(c.as_dict()) for c in CONFIGS) < FEWEST
    assert focus({"w": diagnosis(NARROW)}, offered(wide_access=narrow, unroll="U > 3")) == ["U > 3"]
    assert focus({"w": diagnosis(NARROW)}, offered(wide_access=narrow)) == []


def test_what_all_have_is_no_focus() -> None:
    assert focus({"w": diagnosis(NARROW)}, offered(wide_access="VEC >= 1", unroll="U > 3")) == []


def test_workloads_weigh_in_by_their_weight() -> None:
    two = {"light": diagnosis(NARROW), "heavy": diagnosis(FEW)}
    template = offered(wide_access="VEC >= 4", more_blocks="VEC <= 2")
    even = focus_of(two, {"light": 1.0, "heavy": 1.0}, template)
    heavy = focus_of(two, {"light": 1.0, "heavy": 4.0}, template)
    assert even is not None
    assert heavy is not None
    assert (even.texts, heavy.texts) == (("VEC >= 4",), ("VEC <= 2",))
    assert even.conditions[0].evidence.endswith("(at light)")
    both = focus_of({"a": two["light"], "b": two["light"]}, {"a": 1.0, "b": 1.0}, template)
    assert both is not None
    assert both.conditions[0].evidence.endswith("(at every workload)")
    assert [(f.kind, names) for f, names, _ in weighed(two, {"light": 1.0, "heavy": 4.0})] == [
        (Kind.TOO_FEW_BLOCKS, ("heavy",)),
        (Kind.NARROW_ACCESS, ("light",)),
    ]


def test_what_costs_little_steers_nothing() -> None:
    template = offered(wide_access="VEC >= 4")
    for gain, texts in ((2.2 * WORTH, ["VEC >= 4"]), (1.8 * WORTH, [])):
        slight = finding(Kind.NARROW_ACCESS, gain, Remedy.WIDE_ACCESS)
        assert focus({"w": diagnosis(slight)}, template) == texts


def test_what_proved_wrong_is_not_taken_up_again() -> None:
    template = offered(wide_access="VEC >= 4", unroll="U > 3")
    assert focus({"w": diagnosis(NARROW)}, template, dropped=frozenset({"wide_access"})) == ["U > 3"]


def test_what_the_best_has_already_is_no_remedy_for_it_and_the_base_stays() -> None:
    template = offered(wide_access="VEC >= 4", unroll="U > 3", more_blocks="BLOCK <= 128")
    base = focus_of({"w": diagnosis(FEW)}, {"w": 1.0}, template)
    best = Config.of({"VEC": 8, "BLOCK": 64, "U": 0})
    assert focus({"w": diagnosis(NARROW)}, template, base=base, subject=best) == ["BLOCK <= 128", "U > 3"]


# -- doubts ---------------------------------------------------------------------------------------------

WIDE = Focus((Condition("wide_access", "VEC >= 4", "narrow_access", "narrow", 0.4),), 64, 128)
TWO = Focus(
    (*WIDE.conditions, Condition("more_blocks", "BLOCK <= 128", "too_few_blocks", "few", 0.2)), 32, 128
)


def config(number: int, vec: int, block: int = 64) -> Config:
    return Config.of({"VEC": vec, "BLOCK": block, "U": number % 8})


def tried(*scores: float | None, vec: int = 8, block: int = 64) -> list[Tried]:
    return [Tried(config(i, vec, block), score) for i, score in enumerate(scores)]


def rising(count: int, start: float = 0.0) -> list[float]:
    """Each better than the last by far more than noise."""
    return [start + 0.1 * i for i in range(count)]


def test_as_long_as_the_inside_is_better_nothing_is_doubted() -> None:
    assert doubt(WIDE, tried(*rising(20)) + tried(-1.0, -2.0, -3.0, vec=1), NOISE) is None
    assert doubt(WIDE, [], NOISE) is None


def test_a_better_one_outside_undoes_it() -> None:
    inside = tried(*rising(BEFORE_BEST))
    best = max(t.score or 0.0 for t in inside)
    assert doubt(WIDE, inside + tried(best + 1.5 * NOISE, vec=1), NOISE) is None, "within noise"
    found = doubt(WIDE, inside + tried(best + 0.1, vec=1), NOISE)
    assert found is not None
    assert found.remedies == {"wide_access"}
    assert found.reason == (
        f"{config(0, 1)}, without VEC >= 4, is {100 * math.expm1(0.1):.1f} % faster than the best with it"
    )
    assert doubt(WIDE, inside[1:] + tried(best + 0.1, vec=1), NOISE) is None, "too few inside to tell"


def test_only_the_condition_that_it_breaks_is_undone() -> None:
    inside = tried(*rising(BEFORE_BEST))
    found = doubt(TWO, inside + tried(2.0, block=512), NOISE)
    assert found is not None
    assert found.remedies == {"more_blocks"}
    left = widened(TWO, found, offered())
    assert left is not None
    assert (left.texts, left.inside) == (("VEC >= 4",), 64)
    assert widened(left, doubt(left, inside + tried(2.0, vec=1), NOISE) or found, offered()) is None


def test_an_inside_no_better_in_the_middle_undoes_it() -> None:
    low = tried(*([0.0] * (BEFORE_MIDDLE - 1)), 1.0)
    outside = tried(0.5, 0.5, 0.5, vec=1)
    found = doubt(WIDE, low + outside, NOISE)
    assert found is not None
    assert "no better than outside" in found.reason
    assert doubt(WIDE, low[1:] + outside, NOISE) is None, "too few inside"
    assert doubt(WIDE, low + outside[1:], NOISE) is None, "too few outside"


def test_a_focus_has_its_time() -> None:
    still = tried(1.0, *([0.5] * STALLED))
    found = doubt(WIDE, still, NOISE)
    assert found is not None
    assert found.reason == f"the last {STALLED} found nothing better"
    assert doubt(WIDE, still[:-1], NOISE) is None
    assert doubt(WIDE, still, NOISE, before=1 + STALLED // 2) is None, "what was before it does not count"


def test_when_all_inside_are_tried_there_is_nothing_left_of_it() -> None:
    small = Focus(WIDE.conditions, 4, 128)
    found = doubt(small, tried(*rising(3), None), NOISE)
    assert found is not None
    assert "all 4 configurations inside have been tried" in found.reason
    assert doubt(small, tried(*rising(3)), NOISE) is None
