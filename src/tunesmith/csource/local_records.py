"""Plain structures that a function declares for itself, as records of the file.

template <typename T, int N> void f() {           template <typename T, int N> struct pack_of_f { T at[N]; };
    struct pack { T at[N]; };                ->   template <typename T, int N> void f() {
    ...                                               using pack = pack_of_f<T, N>;
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk


@dataclass(frozen=True)
class LocalRecord:
    """A record as it was read, its text, and the line that it stands in."""

    record: c.Record
    text: str
    line: int


def taken_out(
    function: c.Function, head: str, found: list[LocalRecord]
) -> tuple[c.Function, list[tuple[c.Record, str]]]:
    """The function with other names for its records, and these with their text; `head`: of its template."""
    done: list[tuple[c.Record, str]] = []
    body = function.body
    for local in found:
        at = [n for n, s in enumerate(body) if isinstance(s, c.Verbatim) and s.line == local.line]
        if len(at) != 1 or not _is_plain(local.record, function):
            continue
        own, stmt = local.record.name, body[at[0]]
        name = f"{own}_of_{function.name}"
        arguments = ", ".join(parameter.name for parameter in function.template)
        of = f"{name}<{arguments}>" if arguments else name
        alias = c.Verbatim(f"using {own} = {of};", frozenset({own, name}), line=stmt.line)
        body = (*body[: at[0]], alias, *body[at[0] + 1 :])
        record = replace(local.record, name=name, template=function.template)
        text = re.sub(rf"\b{own}\b", name, local.text)
        done.append((record, f"{head} {text};".strip()))
    return replace(function, body=body), done


def _is_plain(record: c.Record, function: c.Function) -> bool:
    """Fields alone, whose extents the template's own arguments tell."""
    if record.methods or record.unread or record.aliases or record.constants or record.specialises:
        return False
    local = {*walk.declared_in(function.body), *(parameter.name for parameter in function.parameters)}
    return not any(walk.names_in(dim) & local for field in record.fields for dim in field.dims)
