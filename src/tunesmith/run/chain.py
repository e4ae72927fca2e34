"""The chain of a journal: each line carries the digest of the one before, so that none can be changed alone.

A chain holds no secret: who changes a line can write all that follow it anew. Then its head is another, and
the certificate, which names the head, no longer belongs to it; a signature of that is the user's alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from tunesmith.problem.codec import Malformed, decode
from tunesmith.text import sha256

UNCHAINED = "recorded before journals were chained: nothing here is proven"
ALONE = "a report without its journal beside it: nothing here is proven"


def is_broken(unproven: str) -> bool:
    """Whether that is why nothing of a run counts: its journal was changed. An old one was never chained, and
    a report alone has none."""
    return unproven not in ("", UNCHAINED, ALONE)


FIRST = sha256(b"tunesmith journal 1")  # what the first line carries


@dataclass(frozen=True)
class ChainHead:
    """Where a chain ends: the digest of its last line, and which line that is."""

    lines: int = 0
    head: str = FIRST


def head_of(journal: bytes) -> ChainHead:
    """Of its whole lines."""
    lines = journal.split(b"\n")[:-1]
    return ChainHead(len(lines), sha256(lines[-1])) if lines else ChainHead()


@dataclass(frozen=True)
class ChainFault:
    """From which place on a chain carries nothing, and why; places count from 0."""

    place: int
    reason: str


def fault_of(lines: Sequence[bytes], carried: Sequence[str]) -> ChainFault | None:
    """`carried` are the digests that the lines say stand before them; empty where one says nothing."""
    if not lines:
        return None
    if not carried[0]:
        return ChainFault(0, UNCHAINED)
    if carried[0] != FIRST:
        return ChainFault(0, "the journal was changed at line 1: it does not carry what a first line carries")
    for place, ((line, _), (_, before)) in enumerate(pairwise(zip(lines, carried, strict=True))):
        if before != sha256(line):
            number = place + 1
            why = f"line {number + 1} does not carry its digest"
            return ChainFault(place, f"the journal was changed at line {number}: {why}")
    return None


class _Certified(msgspec.Struct):
    journal: ChainHead


def head_in(certificate: bytes) -> ChainHead | None:
    """The head that a certificate names; None where it is none."""
    try:
        return decode(certificate, _Certified).journal
    except Malformed:
        return None


def against(named: ChainHead, lines: Sequence[bytes], ended: bool) -> ChainFault | None:
    """Of a chain that is whole: why it is not the one that a certificate was made of. One that is shorter and
    has not `ended` claims nothing yet."""
    if len(lines) < named.lines:
        missing = f"its certificate names {named.lines} lines, and it ends at line {len(lines)}"
        return ChainFault(0, f"the journal was changed at line {len(lines)}: {missing}") if ended else None
    if named.lines > 0 and sha256(lines[named.lines - 1]) == named.head:
        return None
    why = "its chain ends otherwise than the certificate says, there or before"
    return ChainFault(0, f"the journal was changed at line {named.lines}: {why}")
