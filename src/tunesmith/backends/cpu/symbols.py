"""What a kernel's object asks of the process that loads it: arithmetic and our runtime, nothing else.

Read before anything is loaded: initialisers would run as soon as a library is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence

from tunesmith.backends import elf, port
from tunesmith.backends.elf import ElfSection
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
_FIRST, _LAST, _BEFORE = 14, 15, 16  # types of sections
_CHOSEN_AT_LOAD = 10  # a symbol whose address a function of the library gives


def check_object(data: bytes, watched: bool, also: frozenset[str] = frozenset()) -> None:
    """BuildFailed where a kernel calls what it may not, or would run before it is launched. A watched build
    has one initialiser of the compiler's."""
    try:
        if not data.startswith(elf.HEAD):
            raise ValueError("not of a 64-bit little-endian system")
        sections = elf.read_sections(data)
        faults = list(_faults(sections, also))
    except (struct.error, IndexError, ValueError) as error:
        raise port.BuildFailed("the compiler gives no object that can be read") from error
    first = sum(one.size for one in sections if _runs_by_itself(one))
    if first > (8 if watched else 0):
        faults.append("a kernel may not have what runs before it is launched: a constructor or initialiser")
    if faults:
        raise port.BuildFailed("\n".join(faults))


def _runs_by_itself(section: ElfSection) -> bool:
    by_name = _INITIALISERS.fullmatch(section.name) is not None
    return by_name or section.type in (_FIRST, _LAST, _BEFORE)


def _faults(sections: Sequence[ElfSection], also: frozenset[str]) -> Iterator[str]:
    for symbol in elf.read_symbols(sections, elf.SYMTAB):
        name, is_defined = symbol.name, symbol.section != 0
        if symbol.type == _CHOSEN_AT_LOAD or (is_defined and name in ("_init", "_fini")):
            yield f"a kernel may not define {name}, which runs before it is launched"
        elif not is_defined and name and not _is_known(name) and name not in also:
            yield f"a kernel may not call {name}: it is neither arithmetic nor CUDA's own"


def _is_known(name: str) -> bool:
    return (
        any(name in known for known in (_MATH, _MEMORY, _PLACES, _LINKER))
        or _KNOWN.fullmatch(name) is not None
    )
