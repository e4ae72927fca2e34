"""What the machine code of a built kernel consists of, or why nobody can say."""

from __future__ import annotations

from functools import lru_cache

from tunesmith.backends.cuda.container import unpack
from tunesmith.backends.cuda.disassembly import Disassembly, disassemble
from tunesmith.backends.cuda.sass import read_sass
from tunesmith.core.codec import Malformed
from tunesmith.core.profile.facts import Instructions


def instructions_of(binary: bytes, entry: str) -> tuple[Instructions | None, str]:
    try:
        symbols, cubin = unpack(binary)
    except Malformed as error:
        return None, error.message
    found = _disassembled(cubin)
    if found.fault:
        return None, found.fault
    text = found.kernels.get(symbols.get(entry, ""))
    read = read_sass(text) if text else None
    return (read, "") if read is not None else (None, f"the disassembly has no code of {entry}")


@lru_cache(maxsize=8)
def _disassembled(cubin: bytes) -> Disassembly:
    return disassemble(cubin)
