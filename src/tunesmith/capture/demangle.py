"""Names as people write them, from the host's C++ library, which knows how compilers spell them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache

LONGEST = 16_000  # characters: nobody reads more, and demangling may take time and memory


def demangled(names: Sequence[str]) -> Mapping[str, str]:
    """Each with its plain name; with itself where it is no mangled one, or nobody here can tell."""
    return {name: _demangled(name) for name in names}


def _demangled(name: str) -> str:
    tools = _library()
    if tools is None or not name.startswith("_Z") or len(name) > LONGEST or "\0" in name:
        return name
    demangle, free = tools
    status = ctypes.c_int(-1)
    found = demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        text = ctypes.cast(found, ctypes.c_char_p).value
    finally:
        free(found)
    return text.decode(errors="backslashreplace") if status.value == 0 and text else name


@cache
def _library() -> tuple[ctypes._NamedFuncPointer, ctypes._NamedFuncPointer] | None:
    for path in ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib"):
        try:
            library = ctypes.CDLL(path)
            demangle, free = library.__cxa_demangle, ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        demangle.restype = ctypes.c_void_p
        demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        free.restype, free.argtypes = None, (ctypes.c_void_p,)
        return demangle, free
    return None
