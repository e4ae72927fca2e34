"""Names as people write them, from the host's C++ library, which knows how compilers spell them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

_SYMBOLS = r"\(\)|\[\]|<=>|->\*?|<<=|>>=|<<|>>|\+\+|--|&&|\|\||[-+*/%^&|!=<>]=|[-+*/%^&|~!=<>,]"
_PIECE = re.compile(rf"""operator(?:(?:{_SYMBOLS})(?: (?=<))?|[ "][^(]*)|::|\w+|.""", re.DOTALL)
_CLOSING = {"(": ")", "<": ">", "{": "}", "[": "]"}
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


def function_name(name: str) -> str:
    """`void a::(anonymous namespace)::k<float, 4>(float*)` is `a::k`: nothing of what it gives back and
    takes, of templates' arguments and of what has no name."""
    scopes, word, is_over = list[str](), "", False
    for piece in _pieces(name.strip()):
        if piece == "::":
            scopes, word, is_over = [*scopes, word], "", False
        elif is_over:
            pass
        elif piece == " ":
            scopes, word = [], ""
        elif piece == "(":
            is_over = word != ""  # its arguments; before a name it is a scope without one
        else:
            word += piece
    return "::".join(filter(None, [*scopes, word.rstrip()]))


def _pieces(name: str) -> Iterator[str]:
    """Words and signs; of parentheses with all in them the first, and of other brackets nothing."""
    at = 0
    while (found := _PIECE.match(name, at)) is not None:
        piece, start, at = found[0], at, found.end()
        if piece in _CLOSING:
            at = _past_brackets(name, start)
            # Those of a lambda, or of a number that is still to be put in, are part of a name.
            piece = name[start:at] if piece == "{" else piece.strip("<[")
        yield piece


def _past_brackets(name: str, at: int) -> int:
    due: list[str] = []
    for end in range(at, len(name)):
        sign = name[end]
        if sign in _CLOSING:
            due.append(_CLOSING[sign])
        elif sign in due and (sign != ">" or due[-1] == ">"):  # within parentheses it compares
            while due.pop() != sign:
                pass
            if not due:
                return end + 1
    return len(name)


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
