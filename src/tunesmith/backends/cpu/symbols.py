"""What a kernel's object asks of the process that loads it: arithmetic and our runtime, nothing else.

Read before anything is loaded: initialisers would run as soon as a library is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tunesmith.backends.port import BuildFailed
from tunesmith.problem.device_words import listed

_ONE = listed(
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 "
    "fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log "
    "log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow remainder remquo rint round "
    "roundeven scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn "
)
_MATH = frozenset(f"{name}{kind}" for name in _ONE for kind in ("", "f"))
_MEMORY = frozenset(("memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen"))
_PLACES = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim"))
_LINKER = frozenset(("_GLOBAL_OFFSET_TABLE_", "__tls_get_addr", "__dso_handle"))
# Of compilers: arithmetic that a processor lacks, atomics, what a sanitizer calls; and our runtime's own.
_KNOWN = re.compile(
    r"__tunesmith_\w+|__tsan_\w+|__ubsan_handle_\w+"
    r"|__u?(?:div|mod|divmod)[dt]i[34]|__(?:mul|ashl|ashr|lshr|neg)[dt]i[23]|__mulo[dt]i4|__mulv[dt]i3"
    r"|__(?:popcount|clz|ctz|ffs|parity|bswap)[sdt]i2|__powi[sd]f2|__(?:mul|div)[sd]c3"
    r"|__(?:extend|trunc)[a-z]f[a-z]f2|__(?:fix|fixuns)[a-z]f[sdt]i|__float(?:un)?[sdt]i[a-z]f"
    r"|__gnu_(?:h2f|f2h|d2h)_ieee"
    r"|__aarch64_(?:cas|swp|ldadd|ldset|ldclr|ldeor)\d+_\w+"
    r"|__atomic_(?:load|store|exchange|compare_exchange|(?:fetch_)?(?:add|sub|and|or|xor|nand)(?:_fetch)?)_\d+"
)
PRINTS = frozenset(("printf", "puts", "putchar"))  # CUDA's printf, and what compilers make of it
_INITIALISERS = re.compile(r"\.(?:pre)?init_array\b.*|\.fini_array\b.*|\.[cd]tors\b.*|\.init|\.fini")
_SYMBOLS, _FIRST, _LAST, _BEFORE = 2, 14, 15, 16  # kinds of sections
_CHOSEN_AT_LOAD = 10  # a symbol whose address a function of the library gives


@dataclass(frozen=True)
class _ObjectSection:
    name: str
    kind: int
    start: int
    size: int
    link: int


def check_object(data: bytes, watched: bool, also: frozenset[str] = frozenset()) -> None:
    """BuildFailed where a kernel calls what it may not, or would run before it is launched. A watched build
    has one initialiser of the compiler's."""
    try:
        sections = list(_sections(data))
        faults = list(_faults(data, sections, also))
    except (struct.error, IndexError, ValueError) as error:
        raise BuildFailed("the compiler gives no object that can be read") from error
    first = sum(one.size for one in sections if _runs_by_itself(one))
    if first > (8 if watched else 0):
        faults.append("a kernel may not have what runs before it is launched: a constructor or initialiser")
    if faults:
        raise BuildFailed("\n".join(faults))


def _runs_by_itself(section: _ObjectSection) -> bool:
    by_name = _INITIALISERS.fullmatch(section.name) is not None
    return by_name or section.kind in (_FIRST, _LAST, _BEFORE)


def _sections(data: bytes) -> Iterator[_ObjectSection]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not of a 64-bit little-endian system")
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    if not start or not count:
        raise ValueError("no sections")
    found = [struct.unpack_from("<IIQQQQI", data, start + size * n) for n in range(count)]
    table = found[names][4]
    for name, kind, _, _, place, length, link in found:
        yield _ObjectSection(_text(data, table + name), kind, place, length, link)


def _faults(data: bytes, sections: list[_ObjectSection], also: frozenset[str]) -> Iterator[str]:
    for table in sections:
        if table.kind != _SYMBOLS:
            continue
        names = sections[table.link].start
        for at in range(table.start, table.start + table.size, 24):
            name, info, _, section = struct.unpack_from("<IBBH", data, at)
            text = _text(data, names + name)
            if info & 15 == _CHOSEN_AT_LOAD or (section and text in ("_init", "_fini")):
                yield f"a kernel may not define {text}, which runs before it is launched"
            elif not section and text and not _is_known(text) and text not in also:
                yield f"a kernel may not call {text}: it is neither arithmetic nor CUDA's own"


def _is_known(name: str) -> bool:
    return (
        any(name in known for known in (_MATH, _MEMORY, _PLACES, _LINKER))
        or _KNOWN.fullmatch(name) is not None
    )


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
