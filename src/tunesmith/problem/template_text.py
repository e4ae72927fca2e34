"""A template's declaration as text: the comment block at the top of its file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunesmith.problem.problem import Argument, Launch
from tunesmith.problem.problem_text import toml_string

WIDTH = 108  # of a line of the declaration
Pairs = Sequence[tuple[str, str]]  # a name, and what stands behind its equals sign


@dataclass(frozen=True)
class DeclaredParam:
    """A parameter as a declaration has it; `note`: what it is, in words."""

    name: str
    values: tuple[int, ...]
    default: int
    categorical: bool = False
    note: str = ""

    @property
    def text(self) -> str:
        kind = ", categorical = true" if self.categorical else ""
        entry = f"{{ values = {list(self.values)}, default = {self.default}{kind} }}"
        return entry + (f"  # {self.note}" if self.note else "")


def declaration(
    params: Iterable[DeclaredParam],
    conditions: Iterable[tuple[str, Pairs]],
    defines: Pairs = (),
    flags: Sequence[str] = (),
    launch: Iterable[str] = (),
    *,
    workspace: Pairs = (),
) -> list[str]:
    """As lines of a comment; `conditions` by table: each with its name. Empty tables are left out."""
    lines = ["/// tunesmith", *_table("params", [(param.name, param.text) for param in params])]
    for title, pairs in (*conditions, ("defines", defines)):
        quoted = [(name, toml_string(text)) for name, text in pairs]
        lines += _answers(quoted) if title == "answers" else _table(title, quoted)
    lines += _table("workspace", workspace)
    lines += ["[build]", f"flags = {_list(flags)}"] if flags else []
    return [f"// {line}".rstrip() for line in (*lines, *launch, "///")]


def _table(title: str, pairs: Pairs) -> list[str]:
    width = max((len(name) for name, _ in pairs), default=0)
    return [f"[{title}]", *(f"{name:<{width}} = {text}" for name, text in pairs)] if pairs else []


def _answers(pairs: Pairs) -> list[str]:
    """Several to a line: they are many, and short."""
    entries = [f"{name} = {text}" for name, text in pairs]
    if len(entries) < 4:
        return _table("answers", pairs)
    rows: list[list[str]] = [[]]
    for entry in entries:
        if rows[-1] and len(", ".join([*rows[-1], entry])) > WIDTH - len("all = [{  }]"):
            rows.append([])
        rows[-1].append(entry)
    tables = [f"{{ {', '.join(row)} }}" for row in rows]
    return ["[answers]", *f"all = [{(',' + chr(10) + ' ' * 7).join(tables)}]".splitlines()]


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(toml_string, texts))}]"


def listed(name: str, texts: Sequence[str]) -> list[str]:
    """A list of expressions, on lines of their own where one is too short."""
    one = f"{name} = {_list(texts)}"
    return [one] if len(one) <= WIDTH else [f"{name} = [", *(f"  {toml_string(t)}," for t in texts), "]"]


def launch_lines(launches: Sequence[Launch], entry: str, args: Sequence[str]) -> list[str]:
    """`entry` and `args` are the problem's: a single launch names them only where its own are others."""
    lines: list[str] = []
    several = len(launches) > 1
    for launch in launches:
        lines.append("[[launch]]" if several else "[launch]")
        if several or launch.entry != entry:
            lines.append(f"entry = {toml_string(launch.entry)}")
        if several or tuple(launch.args) != tuple(args):
            lines.append(f"args = {_list(launch.args)}")
        lines += listed("grid", [e.text for e in launch.grid])
        lines += listed("block", [e.text for e in launch.block])
        lines += listed("cluster", [e.text for e in launch.cluster]) if launch.cluster else []
        lines += [f"shared = {toml_string(launch.shared.text)}"] if launch.shared is not None else []
        lines += [f"{word} = true" for word in ("cooperative", "pdl") if getattr(launch, word)]
        lines += [f"when = {toml_string(launch.when.text)}"] if launch.when is not None else []
    return lines


def workspace_text(argument: Argument) -> str:
    shape = _list(e.text for e in argument.shape)
    more = f", align = {argument.align}" if argument.align is not None else ""
    more += f", init = {argument.init}" if argument.init is not None else ""
    return f'{{ type = "{argument.element.name}*", shape = {shape}{more} }}'


_REMARK = re.compile(r"\s*(\w+)\s*=.*?[\]}\"\w]\s+#\s*(.+?)\s*")


def remarks(toml: str) -> dict[str, str]:
    """What stands behind an entry on its line, by the entry's name."""
    found = [_REMARK.fullmatch(line) for line in toml.splitlines()]
    return {one[1]: one[2] for one in found if one}
