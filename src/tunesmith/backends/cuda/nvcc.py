"""nvcc as a program: for sources that need the host's headers, which NVRTC does not have.

The source goes to PTX with a table of its entries behind it. That instantiates templates, and the PTX tells
each entry's symbol. The table is then taken out, because a kernel whose address is taken is compiled in
another way, and what is left goes to a cubin: the two steps that nvcc itself takes. No host code is compiled.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path, PurePosixPath

from tunesmith.backends.cuda.entries import Compiled, Refused, no_such_kernel
from tunesmith.backends.cuda.flags import Flags
from tunesmith.backends.cuda.toolkit import find_nvcc
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, Unsupported
from tunesmith.backends.tool_process import answer_of
from tunesmith.problem.template import plain_name

TABLE = "__tunesmith_entries"
_TABLE = re.compile(rf"^\s*(?:\.visible )?\.global [^;]*\b{TABLE}\[\d+\] = \{{([^}}]*)\}};", re.MULTILINE)
# Headers lie so deep that a spelling may climb a few folders and still be in a place of our own.
_OWN, _DEEP = "headers", "1/2/3/4/5/6"
_HEADERS = f"{_OWN}/{_DEEP}"
# Whatever else is set would be a flag that no file mentions: NVCC_APPEND_FLAGS, CPATH.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "NVCC_CCBIN")


@cache
def version() -> str | None:
    """As 13.0.88; None where there is no nvcc that runs."""
    text = _ask("--version")
    found = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    return found[1] if found else None


@cache
def architectures() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\bsm_(\d+)\b", _ask("--list-gpu-code")))


def compile_unit(unit: Unit, flags: Flags) -> Compiled:
    program = find_nvcc()
    if program is None:
        raise Unsupported("nvcc is not here: install NVIDIA's CUDA toolkit and put nvcc on the PATH")
    with tempfile.TemporaryDirectory(prefix="tunesmith-nvcc-") as name:
        folder = Path(name)
        _write_headers(folder / _HEADERS, unit)
        source = f"{plain_name(unit.path).removesuffix('.cu')}.cu"
        (folder / source).write_bytes((unit.source + _table_of(unit)).encode(errors="surrogatepass"))
        options = [*flags.nvcc, "-Wno-deprecated-gpu-targets"]
        first = _run(program, [*options, f"-I{_HEADERS}", "-ptx", "-o", "with-table.ptx", source], folder)
        ptx = (folder / "with-table.ptx").read_text(encoding="utf-8", errors="surrogateescape")
        table = _TABLE.search(ptx)
        if table is None:
            raise RuntimeError(f"nvcc {version()} leaves no table of entries in its PTX")
        symbols = dict(zip(unit.entries, (symbol.strip() for symbol in table[1].split(",")), strict=True))
        for entry, symbol in symbols.items():
            if not re.search(rf"\.entry\s+{re.escape(symbol)}\s*\(", ptx):
                raise BuildFailed(no_such_kernel(unit, entry, "that is a function, not a __global__ one"))
        without = ptx[: table.start()] + ptx[table.end() :]
        if flags.is_virtual:
            return Compiled(b"", symbols, first, without.encode(errors="surrogateescape"))
        (folder / "unit.ptx").write_text(without, encoding="utf-8", errors="surrogateescape")
        second = _run(program, [*options, "-cubin", "-o", "unit.cubin", "unit.ptx"], folder)
        log = "\n".join(filter(None, (first, second)))
        return Compiled((folder / "unit.cubin").read_bytes(), symbols, log)


def macros(flags: Flags, folder: Path) -> str:
    """All that are defined before a source's first line, as #define directives."""
    program = find_nvcc()
    if program is None:
        raise Unsupported("nvcc is not here")
    (folder / "macros.cu").write_text("")
    options = [*flags.nvcc, "-Wno-deprecated-gpu-targets", "-E", "-Xcompiler", "-dM"]
    return _run(program, [*options, "macros.cu"], folder)


def _table_of(unit: Unit) -> str:
    """One entry a line, so that the line of a fault names the entry."""
    lines = "".join(f"(const void*)({entry}),\n" for entry in unit.entries)
    return f'\n#line 1 "{TABLE}"\nextern "C" __device__ const void* {TABLE}[] = {{\n{lines}}};\n'


def _write_headers(folder: Path, unit: Unit) -> None:
    folder.mkdir(parents=True)
    for spelling, text in unit.headers:
        path = PurePosixPath(spelling)
        if path.is_absolute() or not path.name or _leaves(path):
            raise BuildFailed(
                f'nvcc gets its headers in a folder of their own, which "{spelling}" leaves: include it by a '
                "path below one of the folders in `include`"
            )
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode(errors="surrogatepass"))


def _leaves(path: PurePosixPath) -> bool:
    """Whether it climbs out on its way, wherever it ends."""
    depth = len(PurePosixPath(_DEEP).parts)
    for part in path.parts[:-1]:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return path.name == ".."


def _run(program: str, arguments: list[str], folder: Path) -> str:
    """What it prints. It stays in our process group, which is killed as a whole when a deadline passes."""
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**_environment(), "HOME": str(folder), "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    log = re.sub(rf'(^|[\s"]){_HEADERS}/', r"\1", done.stdout.decode(errors="replace")).strip()
    if done.returncode != 0:
        raise Refused(log or f"nvcc ends with exit status {done.returncode}", TABLE, 2)
    return log


def _ask(question: str) -> str:
    program = find_nvcc()
    return answer_of(program, question, _environment()) if program is not None else ""


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8"}
