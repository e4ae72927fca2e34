"""Drafts of several kernels that one call launches, put together: one problem with a launch for each.

What two launches are handed is one argument where the host has the same words for it. A buffer that an
earlier launch writes and a later one reads is a workspace, where the host makes it and does not give it back.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tunesmith.errors import BadInput
from tunesmith.problem.problem_text import toml_text

Table = dict[str, Any]
Place = tuple[str, str, str]  # table, argument's name or launch's number, key
Kept = Literal["", "made", "zeroed"]  # a buffer of the host's own: none, with any contents, filled with zeros
_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
_POINTED = re.compile(r"(\w+)\s*(?:\.|->)\s*(?:(?:const|mutable)_)?data(?:_ptr)?\b")
_CAST = re.compile(
    r"\b(?:static_cast|reinterpret_cast|const_cast)\s*<[^<>]*>\s*\(|\(\s*(?:const\s+)?[\w:]+\s*\*\s*\)"
)


@dataclass(frozen=True)
class LaunchDraft:
    """One kernel's own problem file. `passed`: the host's words for its arguments, by their names."""

    kernel: str
    entry: str
    toml: str
    passed: Mapping[str, str]
    kept: Mapping[str, Kept] = field(default_factory=dict)  # buffers of the host's own, by its words for them


def merged(drafts: Sequence[LaunchDraft], notes: Sequence[str] = ()) -> str:
    """The first draft's name stands for all of them."""
    tables = [tomllib.loads(draft.toml) for draft in drafts]
    joined = _Joined()
    launches: list[Table] = []
    for draft, table in zip(drafts, tables, strict=True):
        names = joined.take(draft, table)
        launch = {key: _renamed(value, names) for key, value in table["launch"].items()}
        args = [names[a["name"]] for a in table["argument"]]
        launches.append({"entry": draft.entry, "args": args, **launch})
    first = tables[0]
    root: Table = {
        "name": first["name"],
        "kernel": {**first["kernel"], "entry": drafts[0].entry},
        "argument": [joined.argument(name) for name in joined.order],
        "launch": launches,
        "contract": joined.contract,
        "workloads": _workloads(tables, joined),
    }
    if "accuracy" in first:
        root["accuracy"] = first["accuracy"]
    head = "\n".join(f"# {note}" for note in notes)
    said: dict[Place, str] = {}
    for number, (draft, names) in enumerate(zip(drafts, joined.renames, strict=True)):
        said = {**dict(_comments(draft.toml, number, names)), **said}
    return (head + "\n" if head else "") + "\n".join(_commented(toml_text(root), said)) + "\n"


def _comments(toml: str, number: int, names: Mapping[str, str]) -> Iterator[tuple[Place, str]]:
    """What stands beside each open place of a draft, under the names of the whole."""
    for table, name, line in _lines(toml):
        code, mark, comment = line.partition("  # ")
        key = code.partition(" = ")[0]
        if mark and "FILL" in code:
            if table in ("argument", "launch"):
                yield (table, names.get(name, name) if table == "argument" else str(number), key), comment
            else:
                yield (table, "", names.get(key, key)), comment


def _commented(toml: str, said: Mapping[Place, str]) -> Iterator[str]:
    launches = -1
    for table, name, line in _lines(toml):
        launches += line == "[[launch]]"
        key = line.partition(" = ")[0]
        place = (table, name if table == "argument" else str(launches) if table == "launch" else "", key)
        yield f"{line}  # {said[place]}" if "FILL" in line and place in said else line


def _lines(toml: str) -> Iterator[tuple[str, str, str]]:
    """Each line with the table it is in, and of arguments the name."""
    table = name = ""
    for line in toml.splitlines():
        if line.startswith("["):
            table, name = line.partition("]")[0].strip("["), ""
        if table == "argument" and line.startswith("name = "):
            name = line.split('"')[1]
        yield table, name, line


def identity(words: str) -> str:
    """The tensor or variable that the host's words for an argument speak of."""
    plain = _CAST.sub("", words).strip("()& ")
    pointed = _POINTED.search(plain)
    return pointed[1] if pointed else "".join(plain.split())


class _Joined:
    """Arguments and sizes of all launches, each once."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.contract: Table = {}
        self.renames: list[dict[str, str]] = []
        self._tables: dict[str, Table] = {}
        self._uses: dict[str, list[str]] = {}
        self._kept: dict[str, Kept] = {}
        self._numbers: dict[tuple[str, str], int] = {}  # of workloads and sizes
        self._by_words: dict[tuple[str, str], str] = {}

    def take(self, draft: LaunchDraft, table: Table) -> dict[str, str]:
        """The draft's names for arguments and sizes -> those of the whole."""
        names: dict[str, str] = {}
        for argument in table["argument"]:
            own, words = argument["name"], identity(draft.passed.get(argument["name"], ""))
            key = (words or own, argument["type"])
            known = self._by_words.get(key)
            name = known or self._free(own, draft.kernel, table)
            names[own] = name
            if known is None:
                self._by_words[key] = name
                self.order.append(name)
        own_sizes = [size for size in table["contract"] if size != "require" and size not in names]
        names |= {size: self._size_name(size, draft.kernel, table) for size in own_sizes}
        for argument in table["argument"]:
            name = names[argument["name"]]
            self._uses.setdefault(name, []).append(argument.get("role", ""))
            words = identity(draft.passed.get(argument["name"], ""))
            self._kept[name] = self._kept.get(name) or draft.kept.get(words, "")
            new = {key: _renamed(value, names) for key, value in argument.items()} | {"name": name}
            self._tables[name] = _fuller(self._tables.get(name), new)
        self._promise(table["contract"], names)
        for workload, values in table["workloads"].items():
            for size, value in values.items():
                if isinstance(value, int) and size in names:
                    self._numbers.setdefault((workload, names[size]), value)
        self.renames.append(names)
        return names

    def _free(self, name: str, kernel: str, table: Table) -> str:
        taken = name in self._tables or name in self.order or self._is_other(name, table)
        return f"{kernel}_{name}" if taken else name

    def _size_name(self, size: str, kernel: str, table: Table) -> str:
        """Of a size that is no argument: the host has no words for it, so numbers tell."""
        array = size in self.order and size not in self.contract
        return f"{kernel}_{size}" if array or self._is_other(size, table) else size

    def _is_other(self, size: str, table: Table) -> bool:
        """Whether a size of that name has another number in one of the workloads."""
        return any(
            self._numbers.get((workload, size), number) != number
            for workload, values in table["workloads"].items()
            if isinstance(number := values.get(size), int)
        )

    def _promise(self, contract: Table, names: Mapping[str, str]) -> None:
        for size, rule in contract.items():
            if size == "require":
                said = self.contract.setdefault("require", [])
                said += [text for text in _renamed(rule, names) if text not in said]
            elif isinstance(rule, dict):
                name = names[size]
                known = self.contract.get(name)
                self.contract[name] = rule if known is None else _narrower(name, known, rule)

    def argument(self, name: str) -> Table:
        table, uses = dict(self._tables[name]), self._uses[name]
        if "role" not in table:
            return table
        role = _role(uses)
        if role == "output" and len(uses) > 1 and self._kept[name]:
            role = "workspace"
            table = {key: value for key, value in table.items() if key not in ("rtol", "atol", "compare")}
        if role == "inout" and self._kept[name] == "zeroed":
            role = "workspace"
            table["init"] = 0
        return {**table, "role": role}


def _role(uses: Sequence[str]) -> str:
    """Of a buffer by what its launches do with it, in their order."""
    if "FILL" in uses:
        return "FILL"
    if uses[0] == "output":
        return "output"
    return "inout" if any(use in ("output", "inout") for use in uses) else uses[0]


def _fuller(known: Table | None, other: Table) -> Table:
    """What one draft leaves open another may say."""
    if known is None:
        return other
    found = dict(known)
    for key, value in other.items():
        if key not in found or "FILL" in str(found[key]):
            found[key] = value
    return found


def _narrower(size: str, one: Table, other: Table) -> Table:
    """What both promise. Raises BadInput: nothing keeps both promises."""
    found = {**other, **one}
    for key, choose in (("min", max), ("max", min), ("multiple_of", math.lcm)):
        values = [rule[key] for rule in (one, other) if isinstance(rule.get(key), int)]
        if values:
            found[key] = choose(*values) if len(values) > 1 else values[0]
    listed = [rule["one_of"] for rule in (one, other) if isinstance(rule.get("one_of"), list)]
    if listed:
        kept = [value for value in listed[0] if value in listed[-1] and _allowed(value, found)]
        if not kept:
            raise _nothing_left(size, one, other)
        return {"one_of": kept}
    least, most, step = found.get("min"), found.get("max"), found.get("multiple_of", 1)
    if not (isinstance(least, int) and isinstance(most, int) and isinstance(step, int)):
        return found
    if -(-least // step) * step > most:
        raise _nothing_left(size, one, other)
    return found


def _allowed(value: object, rule: Table) -> bool:
    """By the ends and the step of a rule, where it has these."""
    if not isinstance(value, int):
        return True
    least, most, step = (rule.get(key) for key in ("min", "max", "multiple_of"))
    return (
        (not isinstance(least, int) or value >= least)
        and (not isinstance(most, int) or value <= most)
        and (not isinstance(step, int) or value % step == 0)
    )


def _nothing_left(size: str, one: Table, other: Table) -> BadInput:
    fault = f"the call's launches promise of {size} what no number keeps: {one} and {other}"
    return BadInput(fault, hint="leave --call out, and extract the kernels one by one")


def _workloads(tables: Sequence[Table], joined: _Joined) -> Table:
    """Those of the first, with sizes that only others have from workloads of the same name."""
    sizes = [name for name in joined.contract if name != "require"]
    found: Table = {}
    for workload, values in tables[0]["workloads"].items():
        known: Table = {}
        for table, names in zip(tables, joined.renames, strict=True):
            for size, value in table["workloads"].get(workload, {}).items():
                name = names.get(size, size)
                if name not in known or known[name] == "FILL":
                    known[name] = value
        told = {size: known.get(size, "FILL") for size in sizes}
        beside = {key: value for key, value in values.items() if key in ("weight", "cache")}
        found[workload] = {**told, **beside}
    return found


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Expressions, which are texts, with other names in them."""
    if isinstance(value, str):
        return _WORD.sub(lambda match: names.get(match[0], match[0]), value)
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return value


def fills_of(toml: str) -> int:
    return sum("FILL" in text for text in _texts(tomllib.loads(toml)))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
