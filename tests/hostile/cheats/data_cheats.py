"""Templates that are wrong for certain data alone: each is caught by inputs that its conditions ask for, or
the condition of which checks have met one side is named."""

from __future__ import annotations

from typing import Literal

from tests.hostile.cheats.corpus import Cheat

ZEROS = "{ for (int i = 0; i < d; i++) to[i] = 0; return; }"
SCALED = ("scale * weight[i]", "scale * weight[i] * {}")
Expected = Literal["caught", "named"]


def zeros(why: str, condition: str, before: str = "", base: str = "rmsnorm") -> Cheat:
    return Cheat("data", why, base=base, begin=f"{before} if ({condition}) {ZEROS}")


def scaled(why: str, factor: str) -> Cheat:
    old, new = SCALED
    return Cheat("data", why, edits=((old, new.format(factor)),))


PICKED = "static float pick(__global const float *p, int at) { return p[at]; }\n__kernel void rmsnorm"
CHEATS: dict[str, tuple[Expected, Cheat]] = {
    "first": ("caught", zeros("a row that begins with a number", "from[0] == 12345.678f")),
    "order": (
        "caught",
        zeros("three in a row", "d > 2 && from[0] == 11.5f && from[1] == 12.5f && from[2] == 13.5f"),
    ),
    "bits": ("caught", zeros("the bits of a value", "as_uint(from[0]) == 0x40490fdbu")),
    "arrays": (
        "caught",
        zeros("two arrays that agree", "from[d-1] == weight[d-1] && from[d-1] != 0 && from[d-1] != 1.0f"),
    ),
    "sum": (
        "caught",
        zeros(
            "a sum in a range",
            "s > 4321.0f && s < 4322.0f",
            "float s = 0; for (int i = 0; i < d; i++) s += from[i];",
        ),
    ),
    "place": (
        "caught",
        zeros(
            "where the largest is",
            "best == 61 && m > 77.0f && m < 78.0f",
            "int best = 0; float m = from[0];"
            "for (int i = 0; i < d; i++) if (from[i] > m) { m = from[i]; best = i; }",
        ),
    ),
    "count": (
        "caught",
        zeros(
            "how far a search goes", "n == 3 && n < d", "int n = 0; while (n < d && from[n] != 555.5f) n++;"
        ),
    ),
    "leaves": (
        "caught",
        zeros(
            "where a loop is left", "n == 2", "int n = 0; for (; n < d; n++) if (from[n] == 555.5f) break;"
        ),
    ),
    "neighbours": (
        "caught",
        zeros("equal neighbours in a range", "d > 1 && from[0] == from[1] && from[0] > 100 && from[0] < 101"),
    ),
    "factor": ("caught", scaled("a comparison as a number", "(from[0] != 7777.5f)")),
    "choice": ("caught", scaled("a choice", "(from[0] == 42.4242f ? 0.0f : 1.0f)")),
    "relation": ("caught", scaled("a function that compares", "(1 - isequal(from[0], 876.5f))")),
    "flag": (
        "caught",
        zeros("a flag that is set on the side", "bad", "int bad = 0; (from[0] == 64.125f) && (bad = 1);"),
    ),
    "helper": (
        "caught",
        Cheat(
            "data",
            "in a helper",
            begin=f"if (pick(from, 0) == 321.5f) {ZEROS}",
            edits=(("__kernel void rmsnorm", PICKED),),
        ),
    ),
    "lines": ("named", zeros("what takes a calculation to meet", "from[0] * 3.0f + 1.0f == 100.0f")),
    "product": ("named", zeros("of two numbers", "from[0] * from[d - 1] == 123.4567f")),
}
QUICK = ("first", "lines")
