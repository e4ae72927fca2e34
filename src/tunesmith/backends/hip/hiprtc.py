"""hiprtc through its bindings: a source straight to a code object, in this process."""

from __future__ import annotations

from typing import Any

from tunesmith.backends.hip.architectures import AmdArchitecture
from tunesmith.backends.hip.library import compiled, compiler
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, Unsupported
from tunesmith.problem.template import plain_name


def version() -> str:
    """As 7.2; empty where there is none."""
    try:
        major, minor = compiled(compiler().hiprtcVersion())
    except Unsupported:
        return ""
    return f"{int(major)}.{int(minor)}"


def compile_unit(
    unit: Unit, options: tuple[str, ...], own: AmdArchitecture
) -> tuple[bytes, dict[str, str], str]:
    """The code object, each entry's symbol, and what the compiler said."""
    rtc = compiler()
    headers = [text.encode(errors="surrogatepass") for _, text in unit.headers]
    names = [spelling.encode(errors="surrogatepass") for spelling, _ in unit.headers]
    source = unit.source.encode(errors="surrogatepass")
    program = compiled(
        rtc.hiprtcCreateProgram(source, plain_name(unit.path).encode(), len(headers), headers, names)
    )
    try:
        for entry in unit.entries:
            compiled(rtc.hiprtcAddNameExpression(program, entry.encode()))
        given = [f"--offload-arch={own.name}".encode(), *(option.encode() for option in options)]
        (status,) = rtc.hiprtcCompileProgram(program, len(given), given)
        said = _bytes(program, rtc.hiprtcGetProgramLogSize, rtc.hiprtcGetProgramLog)
        log = said.rstrip(b"\0").decode(errors="replace").strip()
        if int(status) != 0:
            raise BuildFailed(log or f"hiprtc refuses {unit.path} without a word")
        symbols = {}
        for entry in unit.entries:
            name = compiled(rtc.hiprtcGetLoweredName(program, entry.encode()))
            symbols[entry] = name.decode() if isinstance(name, bytes) else str(name)
        return _bytes(program, rtc.hiprtcGetCodeSize, rtc.hiprtcGetCode), symbols, log
    finally:
        rtc.hiprtcDestroyProgram(program)


def _bytes(program: Any, size_of: Any, get: Any) -> bytes:
    size = int(compiled(size_of(program)))
    data = bytearray(size)
    if size:
        compiled(get(program, data))
    return bytes(data)
