"""Content digests: the one way things are named by what they contain."""

from __future__ import annotations

import hashlib


def digest_of(*parts: str | bytes) -> str:
    """SHA-256 over length-prefixed parts, so that ("ab", "c") and ("a", "bc") differ."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def seed_of(*parts: object) -> int:
    """A 60-bit seed derived from the parts: randomness is a function of (run seed, event), nothing else."""
    return int(digest_of(*(repr(part) for part in parts))[:15], 16)
