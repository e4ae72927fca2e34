"""The shapes of what planner, tester and analyst reply. Unknown fields are refused, lengths are bounded."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Sentence = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
Distribution = Literal["normal", "uniform", "positive", "integers", "zeros", "ones"]


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do next. `base` names the candidate to start from; empty is the best correct one so far."""

    decision: Literal["refactor", "search", "stop"]
    why: Sentence
    what: Annotated[str, msgspec.Meta(max_length=8000)] = ""  # for the author: what to change, concretely
    base: Annotated[str, msgspec.Meta(max_length=20)] = ""
    moves: Annotated[tuple[Word, ...], msgspec.Meta(max_length=24)] = ()
    expected_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] | None = None


class ExtraCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sizes: dict[Word, Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]]
    why: Sentence
    values: Distribution = "normal"


class Cases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Further cases inside the contract; they add to what is tested anyway."""

    cases: Annotated[tuple[ExtraCase, ...], msgspec.Meta(max_length=16)]


class Analysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What bounds the kernel. `evidence` repeats numbers that were given, with their names."""

    bound: Sentence
    evidence: Annotated[tuple[Sentence, ...], msgspec.Meta(min_length=1, max_length=12)]
    advice: Annotated[tuple[Sentence, ...], msgspec.Meta(max_length=8)] = ()


EXAMPLES = {
    "planner": '{"decision": "refactor", "base": "", "moves": ["vector"], "why": "loads of 2 bytes keep '
    'memory at 21 % of its rate", "what": "Read and write eight halves at once; make the width VEC a '
    'parameter with 1, 2, 4, 8.", "expected_gain": 1.8}',
    "tester": '{"cases": [{"sizes": {"tokens": 1, "d": 24}, "values": "uniform", "why": "one row, not a '
    'multiple of 16"}]}',
    "analyst": '{"bound": "latency of global loads", "evidence": ["DRAM at 0.21 of its rate", "memory '
    'stalls 0.88"], "advice": ["more loads in flight per thread"]}',
}
