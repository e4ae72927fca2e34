"""Write rules into a template's declaration: values that were found wrong must not be chosen again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tunesmith.core.events import Combination
from tunesmith.core.files.template_source import find_block

_REQUIRE = re.compile(r"\[\s*require\s*\]\s*(#.*)?")


def guarded(text: str, rules: Sequence[Combination], path: str) -> str:
    """The template with one more requirement for each rule: not these values at once."""
    block = find_block(text, path)
    inside = block.toml.split("\n")
    taken = [int(n) for n in re.findall(r"^\s*not_right_(\d+)\s*=", block.toml, re.MULTILINE)]
    first = max(taken, default=0) + 1
    lines = [f'not_right_{number} = "{_forbidding(rule)}"' for number, rule in enumerate(rules, first)]
    headings = [place for place, line in enumerate(inside) if _REQUIRE.fullmatch(line.strip())]
    if headings:
        at = headings[0] + 1
    else:
        at, lines = len(inside), ["[require]", *lines]
    whole = text.replace("\r\n", "\n").split("\n")
    at += block.line
    return "\n".join([*whole[:at], *(f"// {line}" for line in lines), *whole[at:]])


def _forbidding(rule: Combination) -> str:
    return "not (" + " and ".join(f"{name} == {value}" for name, value in rule) + ")"
