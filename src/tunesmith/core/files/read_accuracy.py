"""Read the `[accuracy]` of a problem file, and the Python functions that it and `inputs` name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from tunesmith.core.files.toml_table import Table, show
from tunesmith.core.problem import Accuracy, Argument, Contract, PythonFunction

Read = Callable[[str], str]

_KEYS = ("reference", "rtol", "atol", "independent", "deterministic", "baseline_may_fail")

# rtol and atol of an output whose problem names none, by its element type.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float64": (1e-10, 1e-12),
    "float32": (1e-4, 1e-5),
    "float16": (4e-3, 2e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "float8_e4m3": (0.125, 0.0625),
    "float8_e5m2": (0.25, 0.125),
}
# Codes are rounded from what was computed in float32, whatever their own type is: their tolerance says how
# near to a tie the rounding may go the other way.
CODES = TOLERANCES["float32"]


def read_accuracy(
    root: Table, arguments: tuple[Argument, ...], contract: Contract, read: Read
) -> tuple[Accuracy, tuple[Argument, ...]]:
    table = root.table_or_empty("accuracy", "[accuracy]")
    table.only(_KEYS)
    rtol, atol = table.number("rtol", low=0.0), table.number("atol", low=0.0)
    outputs = [a for a in arguments if a.is_written and a.alias is None]
    usual = {a.name: _usual(a) for a in outputs}
    main = next((pair for pair in usual.values() if pair is not None), CODES)
    accuracy = Accuracy(
        rtol=main[0] if rtol is None else rtol,
        atol=main[1] if atol is None else atol,
        reference=read_function(table, "reference", read),
        independent=_read_independent(table, outputs, contract),
        deterministic=table.flag("deterministic", True),
        baseline_may_fail=table.flag("baseline_may_fail"),
    )
    # Where the problem names no tolerance, an output of another type than the first has its own type's.
    filled = tuple(
        replace(
            a,
            rtol=own[0] if a.rtol is None and rtol is None else a.rtol,
            atol=own[1] if a.atol is None and atol is None else a.atol,
        )
        if (own := usual.get(a.name)) is not None and own != main
        else a
        for a in arguments
    )
    return accuracy, filled


def _usual(output: Argument) -> tuple[float, float] | None:
    """The tolerance of an output for which nobody names one; None for what has none."""
    return CODES if output.compare == "codes" else TOLERANCES.get(output.type)


def _read_independent(table: Table, outputs: list[Argument], contract: Contract) -> str | None:
    name = table.text("independent")
    if name is None:
        return None
    sizes = [rule.name for rule in contract.sizes]
    if name not in sizes:
        table.fault(
            "independent", f"independent must name a size, got {show(name)}: sizes are {', '.join(sizes)}"
        )
        return None
    for output in outputs:
        if output.shape and output.shape[0].text != name:
            rule = f"independent must be the first axis of every output, got {show(name)}"
            fault = f"{rule} where {output.name} has {show(output.shape[0].text)}"
            table.fault("independent", fault, "remove it; large cases are then checked whole")
    return name


def read_function(table: Table, key: str, read: Read) -> PythonFunction | None:
    """A value "file.py:function", with the file's text; the function must be defined at its top level."""
    value = table.text(key)
    if value is None:
        return None
    path, _, function = value.rpartition(":")
    if not path.endswith(".py") or not function.isidentifier():
        rule = f"{key} must be file.py:function, got {show(value)}"
        table.fault(key, rule, f'write e.g. {key} = "{key}.py:softmax"')
        return None
    text = read_file(table, key, path, read)
    if text is None:
        return None
    try:
        tree = ast.parse(text, filename=path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where, why = path, str(error) or "nested too deeply"
        if isinstance(error, SyntaxError):
            where, why = f"{path}:{error.lineno or 1}", error.msg
        table.fault(key, f"{where}: not readable as Python: {why}", f"mend {path}")
        return None
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if function not in defined:
        rule = f"{path} defines no function {show(function)} at its top level"
        table.fault(key, f"{rule}, it defines {', '.join(defined) or 'none'}", "name one of its functions")
        return None
    return PythonFunction(path, function, text)


def read_file(table: Table, key: str, name: str, read: Read) -> str | None:
    return table.attempt(key, lambda: read(name))
