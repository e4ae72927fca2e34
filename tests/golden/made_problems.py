"""Problems of cases: a whole one in `kernels/problems/`, and what a case says otherwise."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from tests.golden.cases import ROOT
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.source.preprocess import Predefined

TABLES = ("name", "kernel", "argument", "launch", "contract", "workloads", "accuracy")
Table = dict[str, Any]


@cache
def base_text(name: str) -> str:
    return (ROOT / "problems" / f"{name}.toml").read_text("utf-8")


def made_problem(
    text: str, base: str = "rows", compilers: Mapping[str, Mapping[str, str]] | None = None, **told: Any
) -> Problem:
    """`told`: tables of the problem, merged into the base's; arguments go by their names."""
    table = tomllib.loads(base_text(base))
    for name in TABLES:
        if name == "argument" and "signature" in told:
            table[name] = list(arguments_of(told["signature"]))
        if name in told and (name == "workloads" or (name == "contract" and "signature" in told)):
            table[name] = told[name]
        elif name in told:
            table[name] = merged(table[name], told[name])
    if told.get("language", "cuda") != "cuda":
        table["kernel"] |= {"language": told["language"]}
    headers = told.get("headers", {})
    found = parse_problem(
        "\n".join(written(table)), path="problem.toml", read=lambda name: headers.get(name, text)
    )
    if headers:
        found = replace(found, kernel=replace(found.kernel, headers=tuple(headers.items())))
    if compilers is None:
        return found
    states = tuple(Predefined(tuple(macros.items()), name) for name, macros in compilers.items())
    return replace(found, kernel=replace(found.kernel, predefined=states))


def merged(old: Any, new: Any) -> Any:
    if isinstance(old, list) and isinstance(new, dict):
        return [merged(one, new.get(one["name"], {})) for one in old]
    if not isinstance(old, dict) or "one_of" in new:
        return new
    return {**old, **{key: merged(old.get(key), value) for key, value in new.items()}}


def arguments_of(signature: str) -> Iterator[Table]:
    """`out: float16*[rows, d]; x: float16*[rows, d]; d: int32 = d`, the output first."""
    for number, part in enumerate(signature.split("; ")):
        name, _, rest = part.partition(": ")
        kind, _, shape = rest.partition("[")
        if shape:
            role = "input" if number else "output"
            sizes = [size.strip() for size in shape.rstrip("]").split(",")]
            yield {"name": name, "type": kind, "role": role, "shape": sizes, "align": 16}
        else:
            kind, _, value = rest.partition(" = ")
            yield {"name": name, "type": kind, "value": value}


def written(table: Mapping[str, Any]) -> Iterator[str]:
    """As TOML."""
    yield from (f"{key} = {in_toml(v)}" for key, v in table.items() if not isinstance(v, dict | list))
    for key, value in table.items():
        if isinstance(value, dict):
            yield f"[{key}]"
            yield from (f"{name} = {in_toml(one)}" for name, one in value.items())
        elif isinstance(value, list):
            for one in value:
                yield f"[[{key}]]"
                yield from (
                    f"{name} = {in_toml(part)}" for name, part in one.items() if part not in (None, [])
                )


def in_toml(value: object) -> str:
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {in_toml(one)}" for key, one in value.items()) + " }"
        case list():
            return f"[{', '.join(map(in_toml, value))}]"
        case _:
            return json.dumps(value)
