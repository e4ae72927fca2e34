"""Read `[launch]` or `[[launch]]`, which problem files and templates write alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tunesmith.core.expr.grammar import suggestion
from tunesmith.core.files.toml_table import Table, show
from tunesmith.core.problem import Launch
from tunesmith.core.template import PLACEHOLDER

_KEYS = ("grid", "block", "shared", "cluster", "cooperative", "pdl", "entry", "args")
_EXAMPLE = 'e.g. grid = ["ceildiv(d, 128)"] and block = ["128"]'


def read_launches(
    root: Table,
    *,
    names: Collection[str] | None,
    entry: str,
    default_args: Sequence[str],
    known_args: Sequence[str],
    insertable: Collection[str] | None,
) -> tuple[Launch, ...]:
    """`names` may occur in expressions, `insertable` in an entry's braces; None where unknown."""
    if "launch" not in root:
        root.fault(None, "[launch] is missing", f"say how the kernel is launched, {_EXAMPLE}")
        return ()
    tables = root.tables("launch", "[launch]")
    if not tables and root.data["launch"] == []:
        root.fault("launch", "launch is empty", f"say how the kernel is launched, {_EXAMPLE}")
    launches: list[Launch] = []
    for table in tables:
        table.only(_KEYS)
        table.needs("grid", "block", hint=f"say how many blocks and threads there are, {_EXAMPLE}")
        own = table.text("entry")
        if insertable is not None:
            key = "entry" if own is not None else None
            check_placeholders(table, key, "entry", own or entry, insertable)
        launches.append(
            Launch(
                entry=own or entry,
                grid=table.exprs("grid", names, most=3),
                block=table.exprs("block", names, most=3),
                args=_read_args(table, known_args) if "args" in table else tuple(default_args),
                shared=table.expr("shared", names),
                cluster=table.exprs("cluster", names, most=3),
                cooperative=table.flag("cooperative"),
                pdl=table.flag("pdl"),
            )
        )
    return tuple(launches)


def check_placeholders(table: Table, key: str | None, what: str, text: str, known: Collection[str]) -> None:
    for name in PLACEHOLDER.findall(text):
        if name not in known and not name.isdigit():  # Type{0} is C++
            listed = f"known are {', '.join(sorted(known)) or 'none'}"
            hint = suggestion(name, known)
            table.fault(key, f"{what} {show(text)} inserts {{{name}}}, which is not there: {listed}", hint)


def _read_args(table: Table, known: Sequence[str]) -> tuple[str, ...]:
    args = table.texts("args")
    for name in args:
        if name not in known:
            rule = f"args names {show(name)}, which is no argument: known are {', '.join(known) or 'none'}"
            table.fault("args", rule, suggestion(name, known))
    return args
