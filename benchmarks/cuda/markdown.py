"""Tables, commands and verdicts as Markdown; numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The first `left` columns are words, the others numbers."""
    rule = "|" + "".join("---|" if i < left else "---:|" for i in range(len(head)))
    first, *others = ["| " + " | ".join(cells) + " |" for cells in (head, *(map(_cell, row) for row in rows))]
    return [first, rule, *others, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def claim(holds: bool | None, words: str) -> str:
    """One required figure: whether it was reached, and what was measured."""
    verdict = {True: "reached", False: "**fell short**", None: "not measured"}[holds]
    return f"- {verdict}: {words}"


def source(told: Mapping[str, Any]) -> list[str]:
    """Where a table comes from: the commands, then date, device and software."""
    return [*commands(told), f"{told['date']}, {device(told)}; {software(told)}.", ""]


def source_without_software(told: Mapping[str, Any]) -> list[str]:
    """The same for a page that lists the software once."""
    return [*commands(told), f"{told['date']}, {device(told)}.", ""]


def commands(told: Mapping[str, Any]) -> list[str]:
    return ["```sh", *told["commands"], "```", ""]


def device(told: Mapping[str, Any]) -> str:
    return f"{told['machine']['device']}, driver {told['machine']['driver']}"


def software(told: Mapping[str, Any]) -> str:
    machine = told["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    compilers = ", ".join(machine["compilers"])
    cores = f"; {machine['cores']} cores" if machine["cores"] else ""
    return f"{compilers}; Python {machine['python']}, {packages}{cores}"


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
