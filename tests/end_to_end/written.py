"""A simulated problem whose author writes its templates: some pay, one is mended, one refused."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end import tiny

DRAFT = """\
// /// tunesmith
// [params]
{params}
// [default]
{default}
// [launch]
// grid = ["ceildiv(n, BLOCK)"]
// block = ["BLOCK"]
// ///
{macros}
// /// fake
// args = ["out", "x", "n"]
// op = "scale"
// time = "{time}"
// fault = "{fault}"
// ///
int choices[] = {{{names}}};
"""


def draft(time: str, fault: str = "0", **params: list[int]) -> str:
    macros = [f"#ifndef {n}\n#define {n} {values[0]}\n#endif" for n, values in params.items()]
    return DRAFT.format(
        params="\n".join(f"// {name} = {values}" for name, values in params.items()),
        default="\n".join(f"// {name} = {values[0]}" for name, values in params.items()),
        macros="\n".join(macros),
        time=time,
        fault=fault,
        names=", ".join(params),
    )


def scripted(kind: str, name: str, text: str = "", why: str = "") -> str:
    lines = [f"//{kind}: {name} {why}".rstrip(), *(f"//| {line}" for line in text.splitlines())]
    return "\n".join(lines) + "\n"


def concrete(time: int, fault: int = 0) -> str:
    """A kernel without parameters; the original takes 20000."""
    header = '// /// tunesmith\n// [launch]\n// grid = ["ceildiv(n, 64)"]\n// block = ["64"]\n// ///\n'
    code = tiny.FAKE_KERNEL.replace('"20000"', f'"{time}"').replace("// op", f'// fault = "{fault}"\n// op')
    return header + code


WIDE = draft("200 * (60 + BLOCK // VEC)", BLOCK=[64, 32, 128], VEC=[1, 2, 4])
# VEC=8 computes the wrong thing; KEEP with the largest block does too.
KEEP = draft(
    "200 * (60 + BLOCK // VEC) // (1 + KEEP)",
    "2 if VEC == 8 or (KEEP and BLOCK == 128) else 0",
    BLOCK=[64, 32, 128],
    VEC=[1, 2, 4, 8],
    KEEP=[0, 1],
)
TOO_SHORT = "a row is too short to be split"
SLOW = draft("19000 + BLOCK", BLOCK=[64, 32])
KERNEL = (
    tiny.FAKE_KERNEL
    + scripted("draft", "wide", WIDE)
    + scripted("refuses", "split", why=TOO_SHORT)
    + scripted("draft", "slow", SLOW)
    + scripted("draft", "keep", KEEP)
)


def problem(folder: Path, kernel: str = KERNEL) -> Path:
    tiny.fake(folder)
    (folder / "kernel.fake").write_text(kernel)
    (folder / "template.fake").unlink()
    return folder
