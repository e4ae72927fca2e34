"""Launches that are watched: every access of every thread, and what was found, with its line."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path
from typing import Any

from tunesmith.backends import messages, port
from tunesmith.backends.cpu.lines import LineTable, SourceLine
from tunesmith.backends.cpu.session import CpuSession, HostExecutable
from tunesmith.backends.cpu.statics import shared_arrays
from tunesmith.problem.device import Device

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
                told = _told(one, start.value or 0, table, call.entry, executable.unit.source)
                if told is not None and (text := json.dumps(told)) not in self._told:
                    self._told.add(text)
                    log.write(f"{text}\n")


def _told(one: Any, start: int, table: LineTable, entry: str, source: str) -> dict[str, str] | None:
    """What is found, where, and where the other thread was; None where it is none after all."""
    here = _place(one.here, start, table)
    if one.file and _is_users(one.file.decode(errors="replace")):
        here = SourceLine(one.file.decode(errors="replace"), one.line)
    other = _place(one.other, start, table) if one.other[0] else None
    words = one.words.decode(errors="replace")
    if "in different places" in words and here == other:
        return None
    # Where an array of a class is declared, compilers ask whether it has been made.
    if "nobody has written" in words and here is not None and _only_declares(_text_of(source, here.line)):
        return None
    return {
        "words": words,
        "kernel": entry,
        "place": str(here or ""),
        "other": str(other) if other is not None and other != here else "",
    }


def _place(trail: Any, start: int, table: LineTable) -> SourceLine | None:
    """The innermost line of the user's own: of what is in our headers, whoever called it."""
    for address in trail:
        if not address:
            continue
        line = table.line_of(address - 1 - start)
        if line is not None and _is_users(line.file):
            return line
    return None


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
