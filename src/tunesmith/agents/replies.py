"""The shapes of what models reply in JSON. Unknown fields are refused, lengths are bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

Sentence = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
Distribution = Literal["normal", "uniform", "positive", "wide", "integers", "spikes", "zeros", "ones"]


class PlanReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do next. `base` names the candidate to start from; empty is the best correct one so far."""

    decision: Literal["refactor", "search", "stop"]
    why: Sentence
    what: Annotated[str, msgspec.Meta(max_length=8000)] = ""  # for the author: what to change, concretely
    base: Annotated[str, msgspec.Meta(max_length=20)] = ""
    moves: Annotated[tuple[Word, ...], msgspec.Meta(max_length=24)] = ()
    expected_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] | None = None


class RewriteReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to change next in a concrete kernel, in words."""

    decision: Literal["rewrite", "stop"]
    why: Sentence
    what: Annotated[str, msgspec.Meta(max_length=8000)] = ""
    expected_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] | None = None


class StopReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    decision: Literal["stop"]
    why: Annotated[str, msgspec.Meta(max_length=4000)] = "nothing worth its price is left"


class CaseReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sizes: dict[Word, Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]]
    why: Sentence
    values: Distribution = "normal"


class Cases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Further cases inside the contract; they add to what is tested anyway."""

    cases: Annotated[tuple[CaseReply, ...], msgspec.Meta(max_length=16)]


class Analysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What bounds the kernel. `evidence` repeats numbers that were given, with their names."""

    bound: Sentence
    evidence: Annotated[tuple[Sentence, ...], msgspec.Meta(min_length=1, max_length=64)]
    advice: Annotated[tuple[Sentence, ...], msgspec.Meta(max_length=64)] = ()


ANALYSIS = (
    '{"bound": "latency of global loads", "evidence": ["DRAM at 0.21 of its rate", "memory stalls 0.88"], '
    '"advice": ["more loads in flight per thread"]}'
)
REWRITE = (
    '{"decision": "rewrite", "why": "loads of 2 bytes keep memory at 21 % of its rate", "what": "Read and '
    'write eight halves at once, 128 threads per block; keep the sum in registers.", "expected_gain": 1.8}'
)
_REFACTOR = '{"decision": "refactor", "why": "loads of 2 bytes keep memory at 21 % of its rate", '
_IN_WORDS = (
    '"what": "Read and write VEC halves at once, VEC in 1, 2, 4, 8; ITEMS packs of a thread in flight, 1, 2, '
    '4; BLOCK threads, 64 to 512.", "expected_gain": 1.8}'
)


def plan_example(moves: Sequence[str], writes: bool) -> str:
    """Of a plan that could be carried out: in words where somebody writes, else by moves that apply."""
    if writes or not moves:
        return _REFACTOR + _IN_WORDS
    named = ", ".join(f'"{name}"' for name in moves[:3])
    return f'{_REFACTOR}"moves": [{named}]}}'


def cases_example(sizes: Mapping[str, int]) -> str:
    """With the problem's own names."""
    shown = ", ".join(f'"{name}": {value}' for name, value in sizes.items())
    why = "what this shows that others do not"
    return f'{{"cases": [{{"sizes": {{{shown}}}, "values": "uniform", "why": "{why}"}}]}}'
