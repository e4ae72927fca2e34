"""Compares the machine code of a build with the machine code that was verified: check_code.py BUILT FOLDER.

BUILT is an object, library or program that nvcc made; FOLDER holds the cubins that were verified. A
difference is no error: another compiler may make other code of the same source. It says so, because what was
timed and checked then was not what this build has. Needs cuobjdump, which comes with nvcc.
"""

from __future__ import annotations

import collections
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile


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


def built_kernels(path: str) -> collections.Counter[bytes]:
    program = shutil.which("cuobjdump")
    if program is None:
        raise FileNotFoundError("cuobjdump is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        run = [program, "-xelf", "all", str(pathlib.Path(path).resolve())]
        subprocess.run(run, cwd=folder, check=True, capture_output=True, timeout=120)
        found = [kernels(file.read_bytes()) for file in pathlib.Path(folder).glob("*.cubin")]
    return collections.Counter(code for one in found for code in one.values())


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        built = built_kernels(sys.argv[1])
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"not compared with what was verified: {error}")
        return
    if not built:
        print("not compared with what was verified: the build has no machine code, or has it compressed")
        return
    same: list[str] = []
    other: list[str] = []
    for file in sorted(pathlib.Path(sys.argv[2]).glob("*.cubin")):
        wanted = kernels(file.read_bytes())
        (same if all(code in built for code in wanted.values()) else other).append(file.stem)
    print(f"the same machine code as was verified: {', '.join(same) or 'none'}")
    if other:
        print(
            f"warning: OTHER machine code than was verified: {', '.join(other)}. Check and time them "
            "again, or use the export with embedded machine code (--to cubin)."
        )


if __name__ == "__main__":
    main()
