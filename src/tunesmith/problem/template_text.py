"""A template's declaration as text: the comment block at the top of its file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tunesmith.problem.problem import Argument, Launch
from tunesmith.problem.problem_text import toml_string

WIDTH = 117  # of a line of the declaration, behind its comment sign
MOST_LINES = 40  # with more, short conditions share lines
_MOST_APART = {"answers": 3, "defines": 2}  # with more, they share lines anyway
Pairs = Sequence[tuple[str, str]]  # a name, and what stands behind its equals sign
Tables = Sequence[tuple[str, Pairs]]


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
        return f"{{ values = {list(self.values)}, default = {self.default}{kind} }}{self._remark}"

    @property
    def short(self) -> str:
        """Without its default, which the code has."""
        values = f"{{ values = {list(self.values)}, categorical = true }}"
        return (values if self.categorical else str(list(self.values))) + self._remark

    @property
    def _remark(self) -> str:
        return f"  # {self.note}" if self.note else ""


def declaration(
    params: Iterable[DeclaredParam],
    conditions: Iterable[tuple[str, Pairs]],
    defines: Pairs = (),
    flags: Sequence[str] = (),
    launch: Iterable[str] = (),
    *,
    workspace: Pairs = (),
    shape: Tables | None = None,
    baked: Tables = (),
    in_code: Collection[str] = (),
) -> list[str]:
    """As lines of a comment; `conditions` by table: each with its name. Empty tables are left out.

    `shape`: the usual rules hold, and parameters that are `in_code` have their defaults there. `baked`:
    parameters, and defines that are 0 without them.
    """
    is_short = in_code if shape is not None else ()
    given = _alike([(param.name, param.short if param.name in is_short else param.text) for param in params])
    named = {title: [(name, toml_string(text)) for name, text in pairs] for title, pairs in conditions}
    named["defines"] = [(name, toml_string(text)) for name, text in defines]
    several = [title for title, most in _MOST_APART.items() if len(named.get(title, ())) > most]

    def written(packed: Collection[str]) -> list[str]:
        lines = ["/// tunesmith", *_table("params", given)]
        for title, pairs in named.items():
            if title == "defines" and shape is not None:
                lines += _shapes(shape)
            lines += _packed(title, pairs) if title in packed else _table(title, pairs)
        lines += ["[defines]"] if not named["defines"] and any(pairs for _, pairs in baked) else []
        for switch, entries in baked:
            rows = _rows([(name, toml_string(text)) for name, text in entries])
            lines += _shared(switch, rows) if len(rows) != 1 else [f"{switch} = {rows[0]}"]
        lines += _table("workspace", workspace)
        if flags and "require" in packed:
            lines.insert(1, f"build.flags = {_list(flags)}")
        elif flags:
            lines += ["[build]", f"flags = {_list(flags)}"]
        return [*lines, *launch, "///"]

    lines = written(several)
    if len(lines) > MOST_LINES:
        lines = written((*several, "require", "prefer"))
    return [f"// {line}".rstrip() for line in lines]


def _alike(params: Pairs) -> Pairs:
    """Parameters of several kernels, `LANES_1` and `LANES_2`, that are declared alike share a line."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, text in params:
        bare, numbered, number = name.rpartition("_")
        found.setdefault((bare if numbered and number.isdecimal() else name, text), []).append(name)
    done: list[tuple[str, str]] = []
    for (_, text), names in found.items():
        together = f'"{", ".join(names)}"'
        fits = len(names) > 1 and len(f"{together} = {text}") <= WIDTH
        done += [(together, text)] if fits else [(name, text) for name in names]
    return done


def _shapes(tables: Tables) -> list[str]:
    """One table, or those of several kernels, a line for each that fits one."""
    lines = [line for name, pairs in tables for line in _table(name, pairs) or [f"[{name}]"]]
    short = [
        f"{name.removeprefix('shape.')} = {{ {', '.join(f'{key} = {text}' for key, text in pairs)} }}"
        for name, pairs in tables
    ]
    several = len(tables) > 1 and all(name.startswith("shape.") for name, _ in tables)
    return ["[shape]", *short] if several and max(map(len, short)) <= WIDTH else lines


def _table(title: str, pairs: Pairs) -> list[str]:
    width = max((len(name) for name, _ in pairs if not name.startswith('"')), default=0)
    lines = [line for name, text in pairs for line in _wrapped(f"{name:<{width}} = ", text)]
    return [f"[{title}]", *lines] if pairs else []


def _wrapped(start: str, text: str) -> list[str]:
    """A text too long for a line is several of them, in three quotes."""
    if len(start + text) <= WIDTH or not text.startswith('"'):
        return [start + text]
    lines = [f'{start}""']
    for part in re.split(r" (?=(?:and|or|else|\+) )", text):
        if len(f"{lines[-1]} {part}") > WIDTH - 3 and len(lines[-1]) > len(start) + 2:
            lines.append(" " * len(start) + part)
        else:
            lines[-1] += part if lines[-1] == f'{start}""' else f" {part}"
    return [*lines[:-1], f'{lines[-1]}""']


def _packed(title: str, pairs: Pairs) -> list[str]:
    """Several to a line: they are many, and short. Long ones keep lines of their own."""
    alone = [(name, text) for name, text in pairs if len(f"{name} = {text}") > WIDTH - len("all = [{  }]")]
    rows = _rows([pair for pair in pairs if pair not in alone])
    lines = _table(title, alone) or ([f"[{title}]"] if rows else [])
    return [*lines, *_shared("all", rows)]


def _rows(pairs: Pairs) -> list[str]:
    """Tables that fit a line each, with as many entries as there is room for."""
    rows: list[list[str]] = []
    for name, text in pairs:
        entry = f"{name} = {text}"
        room = WIDTH - len("BAKE = [{  }]")
        row = next((row for row in rows if len(", ".join([*row, entry])) <= room), None)
        if row is None:
            rows.append([entry])
        else:
            row.append(entry)
    return [f"{{ {', '.join(row)} }}" for row in rows]


def _shared(name: str, rows: Sequence[str]) -> list[str]:
    """A list of tables, one to a line."""
    start = f"{name} = ["
    return (start + f",\n{' ' * len(start)}".join(rows) + "]").splitlines() if rows else []


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(toml_string, texts))}]"


def listed(name: str, texts: Sequence[str]) -> list[str]:
    """A list of expressions, on lines of their own where one is too short."""
    one = f"{name} = {_list(texts)}"
    if len(one) <= WIDTH:
        return [one]
    lines: list[str] = []
    for place, text in enumerate(texts, 1):
        start = f"{name} = [" if place == 1 else " " * len(f"{name} = [")
        *more, last = _wrapped(start, toml_string(text))
        lines += [*more, f"{last}," if place < len(texts) else f"{last}]"]
    return lines


def shared_line(text: str) -> list[str]:
    return _wrapped("shared = ", toml_string(text))


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
        lines += shared_line(launch.shared.text) if launch.shared is not None else []
        lines += ["cooperative = true"] if launch.cooperative else []
        if launch.pdl:
            lines.append(f"pdl = {'true' if launch.pdl is True else toml_string(str(launch.pdl))}")
        lines += [f"when = {toml_string(launch.when.text)}"] if launch.when is not None else []
    return lines


def workspace_text(argument: Argument) -> str:
    shape = _list(e.text for e in argument.shape)
    more = f", align = {argument.align}" if argument.align is not None else ""
    more += f", init = {argument.init}" if argument.init is not None else ""
    return f'{{ type = "{argument.element.name}*", shape = {shape}{more} }}'


_REMARK = re.compile(r"\s*(\w+|\"[\w, ]+\")\s*=.*?[\]}\"\w]\s+#\s*(.+?)\s*")


def remarks(toml: str) -> dict[str, str]:
    """What stands behind an entry on its line, by the entry's name."""
    found = [_REMARK.fullmatch(line) for line in toml.splitlines()]
    return {name: one[2] for one in found if one for name in re.findall(r"\w+", one[1])}
