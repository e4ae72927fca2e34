"""Which line of a source an address of a library comes from: DWARF's table of lines, version 2 to 4."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLine:
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class LineTable:
    """Of a library that was built with debug information; empty where it has none."""

    def __init__(self, library: bytes) -> None:
        rows = sorted(_rows(_section(library, b".debug_line")), key=lambda row: row[0])
        self._addresses = [address for address, _ in rows]
        self._lines = [line for _, line in rows]

    def line_of(self, address: int) -> SourceLine | None:
        """None: no source's."""
        place = bisect_right(self._addresses, address) - 1
        return self._lines[place] if place >= 0 else None


def _section(library: bytes, wanted: bytes) -> bytes:
    (start,) = struct.unpack_from("<Q", library, 40)
    size, count, names = struct.unpack_from("<HHH", library, 58)
    headers = [struct.unpack_from("<IIQQQQ", library, start + i * size) for i in range(count)]
    if not count:
        return b""
    text = headers[names][4]
    for name, _, _, _, offset, length in headers:
        at = text + name
        if library[at : library.index(b"\0", at)] == wanted:
            return library[offset : offset + length]
    return b""


class _ByteReader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode(errors="replace")
        self.at = end + 1
        return found

    def number(self, signed: bool = False) -> int:
        """LEB128."""
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value


def _rows(data: bytes) -> Iterator[tuple[int, SourceLine | None]]:
    """Addresses, and the line that begins at each; None where code of no known line begins."""
    reader = _ByteReader(data)
    while reader.at < len(data):
        length = reader.take("I")
        end = reader.at + length
        version = reader.take("H")
        if 2 <= version <= 4:
            yield from _program(reader, end, version)
        reader.at = end


def _program(reader: _ByteReader, end: int, version: int) -> Iterator[tuple[int, SourceLine | None]]:
    header = reader.take("I")
    start = reader.at + header
    least = reader.take("B")
    if version >= 4:
        reader.take("B")
    reader.take("B")
    base, span, first = reader.take("b"), reader.take("B"), reader.take("B")
    lengths = [reader.take("B") for _ in range(first - 1)]
    folders = [""]
    while text := reader.text():
        folders.append(text)
    files = [""]
    while text := reader.text():
        folder = folders[reader.number()]
        reader.number(), reader.number()
        files.append(f"{folder}/{text}" if folder else text)
    reader.at = start
    address, file, line = 0, 1, 1
    while reader.at < end:
        code = reader.take("B")
        if code >= first:
            address += (code - first) // span * least
            line += base + (code - first) % span
            yield address, SourceLine(files[file], line)
        elif code == 0:
            length = reader.number()
            after = reader.at + length
            extended = reader.take("B")
            if extended == 1:
                yield address, None
                address, file, line = 0, 1, 1
            elif extended == 2:
                address = reader.take("Q")
            reader.at = after
        elif code == 1:
            yield address, SourceLine(files[file], line)
        elif code == 2:
            address += reader.number() * least
        elif code == 3:
            line += reader.number(signed=True)
        elif code == 4:
            file = reader.number()
        elif code == 8:
            address += (255 - first) // span * least
        elif code == 9:
            address += reader.take("H")
        else:
            for _ in range(lengths[code - 1]):
                reader.number()
