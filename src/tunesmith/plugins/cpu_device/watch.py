"""Launches that are watched: every access of every thread, and what was found, with its line."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith.backends import messages, port
from tunesmith.base.text import strip_controls, truncate_text
from tunesmith.plugins.cpu_device.build import INSTALL, find_compilers, shared_arrays
from tunesmith.plugins.cpu_device.session import CpuSession, HostExecutable
from tunesmith.problem.device import Device
from tunesmith.run.events import SanitizerFinding, distinct_findings, kind_of

# Which line of a source an address of a library comes from: DWARF's table of lines, version 2 to 4.


@dataclass(frozen=True)
class SourceLine:
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class LineTable:
    """Of a library that was built with debug information; empty where it has none."""

    def __init__(self, library: bytes) -> None:
        rows = sorted(_line_rows(_read_elf_section(library, b".debug_line")), key=lambda row: row[0])
        self._addresses = [address for address, _ in rows]
        self._lines = [line for _, line in rows]

    def line_of(self, address: int) -> SourceLine | None:
        """None: no source's."""
        place = bisect_right(self._addresses, address) - 1
        return self._lines[place] if place >= 0 else None


def _read_elf_section(library: bytes, wanted: bytes) -> bytes:
    (start,) = struct.unpack_from("<Q", library, 40)
    size, count, names = struct.unpack_from("<HHH", library, 58)
    headers = [struct.unpack_from("<IIQQQQ", library, start + i * size) for i in range(count)]
    if not count:
        return b""
    text = headers[names][4]
    for name, _, _, _, offset, length in headers:
        at = text + name
        if library[at : library.index(b"\0", at)] == wanted:
            return library[offset : offset + length]
    return b""


class _ByteReader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode(errors="replace")
        self.at = end + 1
        return found

    def number(self, signed: bool = False) -> int:
        """LEB128."""
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value


def _line_rows(data: bytes) -> Iterator[tuple[int, SourceLine | None]]:
    """Addresses, and the line that begins at each; None where code of no known line begins."""
    reader = _ByteReader(data)
    while reader.at < len(data):
        length = reader.take("I")
        end = reader.at + length
        version = reader.take("H")
        if 2 <= version <= 4:
            yield from _run_line_program(reader, end, version)
        reader.at = end


def _read_file_table(reader: _ByteReader) -> list[str]:
    folders = [""]
    while text := reader.text():
        folders.append(text)
    files = [""]
    while text := reader.text():
        folder = folders[reader.number()]
        reader.number(), reader.number()
        files.append(f"{folder}/{text}" if folder else text)
    return files


def _run_line_program(reader: _ByteReader, end: int, version: int) -> Iterator[tuple[int, SourceLine | None]]:
    header = reader.take("I")
    start = reader.at + header
    least = reader.take("B")
    if version >= 4:
        reader.take("B")
    reader.take("B")
    base, span, first = reader.take("b"), reader.take("B"), reader.take("B")
    lengths = [reader.take("B") for _ in range(first - 1)]
    files = _read_file_table(reader)
    reader.at = start
    address, file, line = 0, 1, 1
    while reader.at < end:
        code = reader.take("B")
        if code >= first:
            address += (code - first) // span * least
            line += base + (code - first) % span
            yield address, SourceLine(files[file], line)
        elif code == 0:
            length = reader.number()
            after = reader.at + length
            extended = reader.take("B")
            if extended == 1:
                yield address, None
                address, file, line = 0, 1, 1
            elif extended == 2:
                address = reader.take("Q")
            reader.at = after
        elif code == 1:
            yield address, SourceLine(files[file], line)
        elif code == 2:
            address += reader.number() * least
        elif code == 3:
            line += reader.number(signed=True)
        elif code == 4:
            file = reader.number()
        elif code == 8:
            address += (255 - first) // span * least
        elif code == 9:
            address += reader.take("H")
        else:
            for _ in range(lengths[code - 1]):
                reader.number()


_KEPT = 6  # as the watcher's
_ENTRIES = "the entries"


class _NativeFinding(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.c_char * 200),
        ("here", ctypes.c_void_p * _KEPT),
        ("other", ctypes.c_void_p * _KEPT),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint),
    )


class _NativeNamed(ctypes.Structure):
    _fields_ = (("start", ctypes.c_size_t), ("bytes", ctypes.c_size_t), ("name", ctypes.c_char_p))


class WatchingSession(CpuSession):
    """Writes each finding into the log as a line of JSON, and goes on as long as that does no harm."""

    def __init__(self, device: Device, log: Path) -> None:
        super().__init__(device)
        self._log = log
        self._tables: dict[int, LineTable] = {}
        self._told: set[str] = set()
        self._named: list[Any] = []  # libraries read them at every launch

    def load(self, unit: messages.Unit, binary: bytes) -> port.Executable:
        """Tells it where its arrays in shared memory begin and end."""
        executable = super().load(unit, binary)
        assert isinstance(executable, HostExecutable)
        found = shared_arrays(binary)
        told = [_NativeNamed(one.start, one.nbytes, one.title.encode()) for one in found]
        arrays = (_NativeNamed * max(1, len(told)))(*told)
        self._named.append(arrays)
        executable.library["__tunesmith_name"](arrays, len(told))
        return executable

    def after_launch(self, executable: HostExecutable, call: port.LaunchCall) -> None:
        found, start = ctypes.POINTER(_NativeFinding)(), ctypes.c_void_p()
        count = executable.library["__tunesmith_findings"](ctypes.byref(found), ctypes.byref(start))
        table = self._tables.setdefault(id(executable), LineTable(executable.data))
        with self._log.open("a", encoding="utf-8") as log:
            for one in found[:count]:
                told = _describe_finding(one, start.value or 0, table, call.entry, executable.unit.source)
                if told is not None and (text := json.dumps(told)) not in self._told:
                    self._told.add(text)
                    log.write(f"{text}\n")


def _describe_finding(
    one: Any, start: int, table: LineTable, entry: str, source: str
) -> dict[str, str] | None:
    """What is found, where, and where the other thread was; None where it is none after all."""
    here = _innermost_user_line(one.here, start, table)
    if one.file and _is_users(one.file.decode(errors="replace")):
        here = SourceLine(one.file.decode(errors="replace"), one.line)
    other = _innermost_user_line(one.other, start, table) if one.other[0] else None
    words = one.words.decode(errors="replace")
    if "in different places" in words and here == other:
        return None
    # Where an array of a class is declared, compilers ask whether it has been made.
    if "nobody has written" in words and here is not None and _only_declares(_text_of(source, here.line)):
        return None
    there = str(other) if other is not None and other != here else ""
    return {"words": words, "kernel": entry, "place": str(here or ""), "other": there}


def _innermost_user_line(trail: Any, start: int, table: LineTable) -> SourceLine | None:
    """The innermost line of the user's own: of what is in our headers, whoever called it."""
    lines = (table.line_of(address - 1 - start) for address in trail if address)
    return next((line for line in lines if line is not None and _is_users(line.file)), None)


def _text_of(source: str, line: int) -> str:
    """As `#line` counts."""
    own = re.split(r"^#line 1\b[^\n]*\n", source, flags=re.MULTILINE)[-1].splitlines()
    return own[line - 1] if 0 < line <= len(own) else ""


def _only_declares(line: str) -> bool:
    """Whether a line declares shared memory and does nothing else."""
    _, is_there, rest = line.partition("__shared__")
    return bool(is_there) and not re.sub(r"//.*|/\*.*?\*/", "", rest).partition(";")[2].strip()


def _is_users(file: str) -> bool:
    return file != _ENTRIES and "tunesmith_" not in file and not file.startswith("headers/")


# What watches kernels on the cpu device: our own, built into the kernel by the compiler that is here.
TOOL = "watch"
VARIABLE = "TUNESMITH_WATCH"  # the file that findings go into
WORDS = 300  # characters of what is told of a finding


def read_watch_log(tool: str, text: str) -> tuple[SanitizerFinding, ...]:
    """The log has a line for each; one that was cut off in the middle is left out."""
    found: list[SanitizerFinding] = []
    for line in strip_controls(text).splitlines():
        try:
            told = json.loads(line)
            words, kernel, place, other = (str(told[name]) for name in ("words", "kernel", "place", "other"))
        except (ValueError, KeyError, TypeError):
            continue
        kind, _, more = words.partition(": ")
        there = f"; the other is at {other}" if other else ""
        said = truncate_text(f"{more}{there}", WORDS)
        found.append(SanitizerFinding(tool, kind_of(kind), kernel, place, said))
    return distinct_findings(found)


SANITIZER = port.SanitizerKind(
    program="cpu",
    tools=(TOOL,),
    at_gate=(TOOL,),
    find=lambda: shutil.which("env") if sys.platform == "linux" and find_compilers() else None,
    missing="there is no C++ compiler for the cpu device",
    fix=INSTALL,
    version=lambda _program: find_compilers()[0].title if find_compilers() else "",
    command=lambda program, _tool, log: [program, f"{VARIABLE}={log}"],
    read=read_watch_log,
    nbytes=1 << 15,
    own_device=True,
)
