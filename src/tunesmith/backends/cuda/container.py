"""What a CUDA build hands to whoever loads it: the cubin, and the symbol behind each entry's name.

    magic 8 | SHA-256 of all that follows 32 | length of the table, little endian 4 | table, JSON | cubin

An entry is written as in C++, `silu_and_mul<__half>`; the driver knows it by its mangled symbol alone.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping

from tunesmith.core.codec import Malformed, decode, encode

MAGIC = b"TSCUBIN1"
_DIGEST_END = len(MAGIC) + 32
_TABLE_START = _DIGEST_END + 4


def pack(symbols: Mapping[str, str], cubin: bytes) -> bytes:
    table = encode(dict(symbols))
    rest = struct.pack("<I", len(table)) + table + cubin
    return MAGIC + hashlib.sha256(rest).digest() + rest


def unpack(data: bytes) -> tuple[dict[str, str], bytes]:
    """The symbol of each entry, and the cubin; Malformed where a single byte is not what was packed."""
    if not data.startswith(MAGIC) or len(data) < _TABLE_START:
        raise Malformed(f"not a CUDA binary of Tunesmith's: {len(data)} bytes beginning with {data[:8]!r}")
    if hashlib.sha256(data[_DIGEST_END:]).digest() != data[len(MAGIC) : _DIGEST_END]:
        raise Malformed(f"a damaged CUDA binary: {len(data)} bytes that do not have their own digest")
    end = _TABLE_START + int.from_bytes(data[_DIGEST_END:_TABLE_START], "little")
    return decode(data[_TABLE_START:end], dict[str, str]), data[end:]
