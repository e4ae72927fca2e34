"""A build with the symbols of its entries, as it goes from whoever compiles it to whoever loads it.

magic 8 | SHA-256 of all that follows 32 | length of the table, little endian 4 | table, JSON | code
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.problem.codec import Malformed, decode, encode


@dataclass(frozen=True)
class SymbolTable:
    magic: bytes
    language: str  # as people call it

    def pack(self, symbols: Mapping[str, str], code: bytes) -> bytes:
        table = encode(dict(symbols))
        rest = struct.pack("<I", len(table)) + table + code
        return self.magic + hashlib.sha256(rest).digest() + rest

    def unpack(self, data: bytes) -> tuple[dict[str, str], bytes]:
        """The symbol of each entry, and the code; Malformed where a single byte is not what was packed."""
        digest_end = len(self.magic) + 32
        start = digest_end + 4
        if not data.startswith(self.magic) or len(data) < start:
            words = f"{len(data)} bytes beginning with {data[:8]!r}"
            raise Malformed(f"not a {self.language} binary of Tunesmith's: {words}")
        if hashlib.sha256(data[digest_end:]).digest() != data[len(self.magic) : digest_end]:
            words = f"{len(data)} bytes that do not have their own digest"
            raise Malformed(f"a damaged {self.language} binary: {words}")
        end = start + int.from_bytes(data[digest_end:start], "little")
        return decode(data[start:end], dict[str, str]), data[end:]
