"""Compares the machine code of a build with the machine code that was verified.

    check_code.py [--strict] BUILT FOLDER
    check_code.py [--strict] [--nvcc NVCC] [--object BUILT] SOURCE.cu FOLDER [OPTION OF NVCC ...]

BUILT is an object, library or program that nvcc made, which needs cuobjdump, or a cubin, which needs nothing.
A source is built with nvcc -cubin and these options; with --object what was made of it already is taken,
where cuobjdump is there. FOLDER holds the cubins that were verified, or is the one of this source.

A difference is no error: another compiler may make other code of the same source. It says so, because what
was timed and checked then was not what this build has. With --strict the exit status is 1 where code differs,
and 2 where nothing could be compared.
"""

from __future__ import annotations

import collections
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

_CUDA = b"\xbe\x00"  # the machine that a cubin is for, as its header says


def kernels(cubin: bytes) -> dict[str, bytes]:
    """The code of each kernel in a cubin, which is an ELF file, by the section's name."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a cubin")
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    entry_size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + i * entry_size) for i in range(count)]
    names = cubin[sections[names_at][4] :]
    found = {}
    for section in sections:
        name = names[section[0] : names.index(b"\0", section[0])].decode()
        if name.startswith(".text."):
            found[name[6:]] = cubin[section[4] : section[4] + section[5]]
    return found


def found_program(name: str, beside: str = "") -> str | None:
    """On the PATH, or in the folder of another."""
    return shutil.which(name) or (
        shutil.which(name, path=str(pathlib.Path(beside).parent)) if beside else None
    )


def source_kernels(path: str, options: list[str], nvcc: str = "") -> collections.Counter[bytes]:
    program = nvcc or shutil.which("nvcc")
    if program is None:
        raise FileNotFoundError("nvcc is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder, "built.cubin")
        run = [program, "-x", "cu", "-cubin", *options, "-o", str(cubin), str(pathlib.Path(path).resolve())]
        made = subprocess.run(run, capture_output=True, text=True, errors="replace", timeout=600, check=False)
        if made.returncode != 0:
            raise ValueError(f"nvcc does not build {path}\n{made.stdout}{made.stderr}")
        return collections.Counter(kernels(cubin.read_bytes()).values())


def built_kernels(path: str, nvcc: str = "") -> collections.Counter[bytes]:
    data = pathlib.Path(path).read_bytes()
    if data[:4] == b"\x7fELF" and data[18:20] == _CUDA:
        return collections.Counter(kernels(data).values())
    program = found_program("cuobjdump", nvcc)
    if program is None:
        raise FileNotFoundError("cuobjdump is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        run = [program, "-xelf", "all", str(pathlib.Path(path).resolve())]
        subprocess.run(run, cwd=folder, check=True, capture_output=True, timeout=120)
        found = [kernels(file.read_bytes()) for file in pathlib.Path(folder).glob("*.cubin")]
    return collections.Counter(code for one in found for code in one.values())


def compared(built: collections.Counter[bytes], folder: str) -> tuple[list[str], list[str]]:
    """The verified kernels whose code the build has, and those whose code it does not have."""
    same: list[str] = []
    other: list[str] = []
    place = pathlib.Path(folder)
    for file in [place] if place.is_file() else sorted(place.glob("*.cubin")):
        wanted = kernels(file.read_bytes())
        (same if all(code in built for code in wanted.values()) else other).append(file.stem)
    return same, other


def main() -> int:
    given = sys.argv[1:]
    named = {"--nvcc": "", "--object": ""}
    strict = False
    while given and (given[0] == "--strict" or (given[0] in named and len(given) > 1)):
        option = given.pop(0)
        if option == "--strict":
            strict = True
        else:
            named[option] = given.pop(0)
    is_source = bool(given) and given[0].endswith((".cu", ".cuh"))
    if len(given) < 2 or (len(given) > 2 and not is_source):
        sys.exit(__doc__)
    path, folder, *options = given
    nvcc, made = named["--nvcc"], named["--object"]
    unit = pathlib.Path(path).name if is_source and pathlib.Path(folder).is_file() else ""
    try:
        if is_source and made and found_program("cuobjdump", nvcc):
            built = built_kernels(made, nvcc)
        else:
            built = source_kernels(path, options, nvcc) if is_source else built_kernels(path, nvcc)
        if not built:
            raise ValueError("the build has no machine code, or has it compressed")
        same, other = compared(built, folder)
        if not same and not other:
            raise FileNotFoundError(f"{folder} holds no cubin")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"{unit}{': ' if unit else ''}not compared with what was verified: {error}")
        return 2 if strict else 0
    if same or not unit:
        print(f"the same machine code as was verified: {unit or ', '.join(same) or 'none'}")
    if other:
        print(
            f"warning: OTHER machine code than was verified: {unit or ', '.join(other)}. Check and time "
            f"{'it' if unit else 'them'} again, or use the export with embedded machine code (--to cubin)."
        )
    return 1 if strict and other else 0


if __name__ == "__main__":
    sys.exit(main())
