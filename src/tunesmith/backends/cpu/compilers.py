"""Compilers for the host that kernels can be built with: g++, clang++, or the clang of PyPI's `ziglang`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tunesmith.backends import port
from tunesmith.run.config import passed_on

GNU, CLANG, ZIG = "g++", "clang++", "zig"
THREADS = "-fsanitize=thread"
INSTALL = "pip install 'tunesmith[cpu]'"
SECONDS = 100.0
_VERSION = re.compile(r"\b(\d+\.\d+(?:\.\d+)?)\b")
# Whatever else is set would be a flag that no file mentions: CPATH, LIBRARY_PATH.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")


@dataclass(frozen=True)
class HostCompiler:
    name: str
    version: str
    command: tuple[str, ...]
    seconds: float = SECONDS  # for one run

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()

    @property
    def links(self) -> tuple[str, ...]:
        """What a library is linked with. zig would first build a whole C++ library: the process that loads a
        kernel has all that one needs."""
        if self.name == ZIG:
            return ("-shared", "-nostdlib", "-Wl,--build-id=none")
        return ("-shared", "-static-libgcc", "-nostartfiles", "-Wl,--build-id=none", "-lm")

    @property
    def fills(self) -> tuple[str, ...]:
        """What gives locals that nobody has set one content, the same in every launch."""
        knows = self.name == ZIG or int(self.version.partition(".")[0]) >= (12 if self.name == GNU else 8)
        return ("-ftrivial-auto-var-init=pattern",) if knows else ()

    @property
    def looks(self) -> tuple[str, ...]:
        """How a text is read for what is said of it. Without a file to make zig would build its libraries."""
        return ("-c", "-o", "looked.o") if self.name == ZIG else ("-fsyntax-only",)

    def told(self, flags: Sequence[str]) -> list[str]:
        """Flags as it takes them. zig would build the libraries behind a sanitizer, which we do not use: the
        compiler inside it is told of them."""
        if self.name != ZIG:
            return list(flags)
        inner = ("-Xclang", "-fsanitize=signed-integer-overflow,alignment,array-bounds,float-cast-overflow")
        own = [word for flag in flags for word in (("-Xclang", flag) if flag == THREADS else (flag,))]
        kept = [word for word in own if not word.startswith("-fsanitize=") or word == THREADS]
        recover = ("-Xclang", inner[1].replace("-fsanitize=", "-fsanitize-recover="))
        return [*kept, "-fno-sanitize=undefined", *inner, *recover]

    def run(self, words: Sequence[str], folder: Path) -> str:
        """What it says; BuildFailed with its words where it refuses."""
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        # zig says nothing of what it has compiled before: it is to know nothing but this folder.
        place = str(folder / "zig")
        caches = {"ZIG_GLOBAL_CACHE_DIR": place, "ZIG_LOCAL_CACHE_DIR": place}
        own = {**kept, "LC_ALL": "C", **(caches if self.name == ZIG else {})}
        try:
            done = subprocess.run(
                [*self.command, *words],
                cwd=folder,
                env=own,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise port.BuildFailed(f"{self.title} did not end within {self.seconds:.0f} s") from error
        except OSError as error:
            raise port.Unsupported(f"{self.title} does not start: {error.strerror}") from error
        if done.returncode:
            raise port.BuildFailed(
                done.stderr.decode(errors="replace").strip() or f"{self.title} gives no reason"
            )
        return done.stderr.decode(errors="replace")


@cache
def compilers() -> tuple[HostCompiler, ...]:
    """Those that are here, the preferred one first."""
    found = [HostCompiler(name, _version((path,)), (path,)) for name in (GNU, CLANG) if (path := _path(name))]
    zig = importlib.util.find_spec("ziglang")
    if zig is not None and zig.origin is not None:
        program = str(Path(zig.origin).with_name("zig"))
        found.append(HostCompiler(ZIG, _version((program,), "version"), (program, "c++")))
    return tuple(one for one in found if one.version)


def named(title: str) -> HostCompiler:
    """The one that a device was described with; Unsupported where it is not here."""
    for one in compilers():
        if one.title == title:
            return one
    here = ", ".join(one.title for one in compilers()) or "none"
    raise port.Unsupported(f"the device was described with {title}, here there is: {here}")


def _path(name: str) -> str | None:
    path = shutil.which(name)
    return os.path.realpath(path) if path else None


def _version(command: tuple[str, ...], question: str = "--version") -> str:
    """As 12.2.0; empty where it does not run."""
    try:
        done = subprocess.run(
            [*command, question], env=passed_on(), capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.decode(errors="replace").splitlines()
    # g++ (Debian 12.2.0-14) 12.2.0: the last of its first line is its own.
    found = _VERSION.findall(lines[0]) if lines else []
    return found[-1] if found and done.returncode == 0 else ""
