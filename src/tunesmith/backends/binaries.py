"""Binaries that compilers write: ELF files, the symbols of their entries, the macros they were built with.

Readers raise struct.error, IndexError or ValueError where a file is damaged: who reads one says what it was.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tunesmith.backends import kind_for, kind_of
from tunesmith.backends.port import BuildFailed
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.problem import Problem
from tunesmith.source.preprocess import asked_names

HEAD = b"\x7fELF\x02\x01"
SYMTAB, NOBITS, DYNSYM = 2, 8, 11  # types of sections: SHT_…
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def write_headers(
    folder: Path, headers: Sequence[tuple[str, str]], compiler: str, leaves: Callable[[PurePosixPath], bool]
) -> None:
    """As they are spelled, in a folder of their own; BuildFailed for one that is outside of it."""
    folder.mkdir(parents=True)
    for spelling, text in headers:
        path = PurePosixPath(spelling)
        if path.is_absolute() or not path.name or leaves(path):
            raise BuildFailed(
                f'{compiler} gets its headers in a folder of their own, which "{spelling}" leaves: include '
                "it by a path below one of the folders in `include`"
            )
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode(errors="surrogatepass"))


def merge_resources(by_entry: tuple[tuple[str, Resources], ...]) -> Resources:
    """Of several kernels the worst stands for all."""
    every = [resources for _, resources in by_entry]

    def most(values: Iterable[int | None]) -> int | None:
        return max((value for value in values if value is not None), default=None)

    return Resources(
        registers=most(r.registers for r in every),
        shared=most(r.shared for r in every),
        spills=most(r.spills for r in every),
        private=most(r.private for r in every),
        max_threads=min((r.max_threads for r in every if r.max_threads is not None), default=None),
        by_entry=by_entry,
    )


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
        ElfSection(number, _read_c_string(contents[names], h[0]), h[1], h[3], contents[number], *h[5:9])
        for number, h in enumerate(heads)
    )


def read_symbols(sections: Sequence[ElfSection], *types: int) -> Iterator[ElfSymbol]:
    """Of the tables of these types, in their order."""
    for table in sections:
        if table.type in types:
            names = sections[table.link].data
            for name, info, other, section, value, size in _SYMBOL.iter_unpack(table.data):
                yield ElfSymbol(_read_c_string(names, name), info & 0xF, other, section, value, size)


def _read_c_string(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode(errors="replace")


# magic 8 | SHA-256 of all that follows 32 | length of the table, little endian 4 | table, JSON | code


@dataclass(frozen=True)
class SymbolTable:
    magic: bytes
    language: str  # as people call it

    def pack(self, symbols: Mapping[str, str], code: bytes) -> bytes:
        table = encode_json(dict(symbols))
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
        return decode_json(data[start:end], dict[str, str]), data[end:]


_WAVES = {"-mwavefrontsize64": 64, "-mno-wavefrontsize64": 32}


def as_compiled(problem: Problem, device: Device) -> Problem:
    """Nobody is asked where nothing in the source depends on it."""
    problem = _with_wave(problem, device)
    kernel = problem.kernel
    kind = kind_of(device, kernel.language) or kind_for(kernel.language)
    ask = kind.macros if kind is not None else None
    if ask is None or kernel.predefined:
        return problem
    names = asked_names((kernel.text, *(text for _, text in kernel.headers)))
    asked = [name for name in names if name not in dict(kernel.defines)]
    if not asked:
        return problem
    return replace(problem, kernel=replace(kernel, predefined=ask(kernel, device, asked)))


def _with_wave(problem: Problem, device: Device) -> Problem:
    """HIP's waves are as wide as the device's, or as a flag says; CUDA's are 32 everywhere."""
    kernel = problem.kernel
    texts = (kernel.text, *(text for _, text in kernel.headers))
    if kernel.language != "hip" or not any(re.search(r"\bwarpSize\b", text) for text in texts):
        return problem
    said = [_WAVES[flag] for flag in kernel.flags if flag in _WAVES]
    wave = said[-1] if said else device.limits.warp
    return replace(problem, kernel=replace(kernel, wave=wave)) if wave in _WAVES.values() else problem
