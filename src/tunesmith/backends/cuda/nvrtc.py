"""NVRTC through cuda.bindings: a source straight to a cubin, in this process."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from tunesmith.backends.cuda.entries import Compiled, Refused
from tunesmith.backends.cuda.flags import Flags
from tunesmith.backends.cuda.toolkit import header_folders, pre_included, standard_headers
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import Unsupported
from tunesmith.problem.template import plain_name

NAME_MAP = "__nv_name_map"  # the file in which NVRTC finds fault with the name of an entry
_FIRST_NAME = 2  # the line of the first of them


@cache
def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise Unsupported(f"cuda-bindings cannot be loaded: {error}") from error
    try:
        nvrtc.nvrtcVersion()
    except (RuntimeError, OSError) as error:  # how the bindings say that the library is not there
        words = str(error).strip().partition("\n")[0]
        raise Unsupported(f"NVRTC cannot be loaded: {words}") from error
    return nvrtc


@cache
def version() -> tuple[int, int]:
    major, minor = _checked(_nvrtc().nvrtcVersion())
    return int(major), int(minor)


@cache
def architectures() -> tuple[int, ...]:
    return tuple(int(number) for number in _checked(_nvrtc().nvrtcGetSupportedArchs()))


def compile_unit(unit: Unit, flags: Flags) -> Compiled:
    nvrtc = _nvrtc()
    given = (*unit.headers, *standard_headers(unit.source, unit.headers))
    headers = [text.encode(errors="surrogatepass") for _, text in given]
    names = [spelling.encode(errors="surrogatepass") for spelling, _ in given]
    source = unit.source.encode(errors="surrogatepass")
    program = _checked(
        nvrtc.nvrtcCreateProgram(source, plain_name(unit.path).encode(), len(headers), headers, names)
    )
    try:
        options = [*flags.nvrtc, *(f"--include-path={f}" for f in _folders())]
        options += [f"--pre-include={name}" for name in pre_included(unit.source, unit.headers)]
        return _compile(program, unit, options, flags.is_virtual)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _compile(program: Any, unit: Unit, options: list[str], is_virtual: bool) -> Compiled:
    nvrtc = _nvrtc()
    for entry in unit.entries:
        _checked(nvrtc.nvrtcAddNameExpression(program, entry.encode()))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = _bytes(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    text = _own_words(log.rstrip(b"\0").decode(errors="replace"))
    if int(status) != 0:
        words = _checked(nvrtc.nvrtcGetErrorString(status)).decode()
        raise Refused(text or words, NAME_MAP, _FIRST_NAME)
    symbols = {
        entry: _checked(nvrtc.nvrtcGetLoweredName(program, entry.encode())).decode() for entry in unit.entries
    }
    if is_virtual:
        ptx = _bytes(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).rstrip(b"\0")
        return Compiled(b"", symbols, text, ptx)
    return Compiled(_bytes(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN), symbols, text)


def _own_words(log: str) -> str:
    """Without what NVRTC, to which no header is the system's, has against CUDA's own, and their path."""
    for folder in _folders():
        place = re.escape(f"{folder}{os.sep}")
        log = re.sub(rf"^{place}.*: warning .*\n(?:[ \t].*\n|\n)*", "", log, flags=re.MULTILINE)
        log = re.sub(rf"^{place}", "", log, flags=re.MULTILINE)
    return re.sub(r"^Remark: The warnings can be suppressed.*\n\n?", "", log, flags=re.MULTILINE).strip()


@cache
def _folders() -> tuple[Path, ...]:
    return header_folders(_library(), version())


def _library() -> str | None:
    """The path of the library that is loaded, where the bindings' own finder tells it."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return str(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (ImportError, RuntimeError, OSError):
        return None


def _bytes(program: Any, size_of: Any, get: Any) -> bytes:
    size = int(_checked(size_of(program)))
    if size <= 1:
        # A lone zero. Python has one object for each single byte, and the bindings write into what they get.
        return b""
    data = b" " * size
    _checked(get(program, data))
    return data


def _checked(answer: tuple[Any, ...]) -> Any:
    """What a call returned, without its status. A bad one here is a broken machine, not a bad source."""
    if int(answer[0]) != 0:
        raise RuntimeError(f"NVRTC: {_nvrtc().nvrtcGetErrorString(answer[0])[1].decode()}")
    return answer[1] if len(answer) == 2 else answer[1:]
