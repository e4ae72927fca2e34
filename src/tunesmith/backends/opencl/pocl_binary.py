"""PoCL's binaries: the machine code in them that follows from the source alone."""

from __future__ import annotations

import re
import struct

_ELF = b"\x7fELF"
_LENGTH = struct.Struct("<I")
# A kernel compiled for any work-group size; for those that were launched, in any process that used the same
# cache, there are files with the sizes in their names.
_GENERIC = re.compile(rb"/([^/\0]{1,1000})/0-0-0/\1\.so")


def pocl_objects(data: bytes) -> list[bytes]:
    """Of each kernel its name and its machine code for any work-group size, in the order of the names. Beside
    these there are temporary paths, and code for sizes that happen to have been launched before.

    Where a file is not laid out like that, all from the first machine code on; empty where there is none.
    """
    found = {}
    for path in _GENERIC.finditer(data):
        begin = path.end() + _LENGTH.size
        if data[path.start() - _LENGTH.size : path.start()] != _LENGTH.pack(len(path.group())):
            continue
        if data[begin : begin + len(_ELF)] == _ELF:
            (size,) = _LENGTH.unpack_from(data, path.end())
            found[path.start()] = (path.group(1), data[begin : begin + size])
    if found:
        return [part for pair in sorted(found.values()) for part in pair]
    start = data.find(_ELF)
    return [data[start:]] if start >= 0 else []
