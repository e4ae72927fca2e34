"""Tables, commands and verdicts as Markdown; numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The first `left` columns are words, the others numbers."""
    rule = ["---" if i < left else "---:" for i in range(len(head))]
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *(map(_cell, row) for row in rows))] + [
        ""
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def claim(holds: bool | None, words: str) -> str:
    """One required figure: whether it was reached, and what was measured."""
    verdict = {True: "reached", False: "**fell short**", None: "not measured"}[holds]
    return f"- {verdict}: {words}"


def source(told: Mapping[str, Any]) -> list[str]:
    """Where a table comes from: the commands, then date, device and compilers."""
    machine = told["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    compilers = ", ".join(machine["compilers"])
    return [
        "```sh",
        *told["commands"],
        "```",
        "",
        f"{told['date']}, {machine['device']}, driver {machine['driver']}; {compilers}; "
        f"Python {machine['python']}, {packages}"
        + (f"; {machine['cores']} cores." if machine["cores"] else "."),
        "",
    ]


def us(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 100 else f"{value:.1f}"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}×"


def percent(share: float | None, digits: int = 0) -> str:
    return "" if share is None else f"{100 * share:.{digits}f} %"


def behind(value: float | None) -> str:
    """Per cent behind the true best; nothing is ahead of it but noise."""
    return "" if value is None else f"{max(0.0, value):.1f} %"


def config(values: Mapping[str, int] | None) -> str:
    return " ".join(f"{k}={v}" for k, v in values.items()) if values else "original"
