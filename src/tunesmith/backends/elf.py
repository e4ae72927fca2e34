"""ELF files of 64-bit little-endian systems, as compilers for GPUs and for the host write them.

Readers raise struct.error, IndexError or ValueError where a file is damaged: who reads one says what it was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEAD = b"\x7fELF\x02\x01"
SYMTAB, NOBITS, DYNSYM = 2, 8, 11  # types of sections: SHT_…
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class ElfSection:
    number: int
    name: str
    type: int
    address: int
    data: bytes  # empty, where it only takes room
    size: int
    link: int  # of symbols: the section of their names
    target: int  # sh_info; of relocations: the section they apply to
    alignment: int


@dataclass(frozen=True)
class ElfSymbol:
    name: str
    type: int
    other: int
    section: int  # 0: it is defined elsewhere
    value: int
    size: int


def read_sections(data: bytes) -> tuple[ElfSection, ...]:
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    if not start or not count:
        raise ValueError("it has no sections")
    heads = [_SECTION.unpack_from(data, start + number * size) for number in range(count)]
    if any(h[1] != NOBITS and h[4] + h[5] > len(data) for h in heads):
        raise ValueError("a section reaches beyond the end")
    contents = [b"" if h[1] == NOBITS else data[h[4] : h[4] + h[5]] for h in heads]
    return tuple(
        ElfSection(number, _text(contents[names], h[0]), h[1], h[3], contents[number], h[5], h[6], h[7], h[8])
        for number, h in enumerate(heads)
    )


def read_symbols(sections: Sequence[ElfSection], *types: int) -> Iterator[ElfSymbol]:
    """Of the tables of these types, in their order."""
    for table in sections:
        if table.type in types:
            names = sections[table.link].data
            for name, info, other, section, value, size in _SYMBOL.iter_unpack(table.data):
                yield ElfSymbol(_text(names, name), info & 0xF, other, section, value, size)


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode(errors="replace")
