"""Read one `[[argument]]` of a problem file, or one workspace of a template."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from tunesmith.problem.device import DEVICE_NAMES
from tunesmith.problem.formulas import index_names
from tunesmith.problem.problem import (
    MAX_AXES,
    TYPES,
    Accuracy,
    Argument,
    Compare,
    Contract,
    ElementType,
    PythonFunction,
    Role,
)
from tunesmith.problem.toml_table import Names, Table, finite, show
from tunesmith.space.expr import Expr
from tunesmith.space.grammar import suggestion
from tunesmith.space.real import RealExpr

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_ARRAY_ROLES: tuple[Role, ...] = ("input", "output", "inout", "workspace", "local")
_COMPARES: tuple[Compare, ...] = tuple(one for one in get_args(Compare) if one != "function")

_ALWAYS = ("name", "type", "role")
_ARRAY = ("shape", "strides", "align")
_DRAWN = ("values", "range")
_COMPARED = ("rtol", "atol", "compare", "order", "along", "keys")
_FITTING: dict[Role, tuple[str, ...]] = {
    "input": (*_ARRAY, *_DRAWN, "init", "traffic"),
    "output": (*_ARRAY, "init", *_COMPARED, "traffic"),
    "inout": (*_ARRAY, *_DRAWN, "init", *_COMPARED, "traffic"),
    "workspace": (*_ARRAY, "init"),
    "local": ("shape",),
    "scalar": ("value",),
}
_ARGUMENT_KEYS = (*_ALWAYS, *dict.fromkeys(key for keys in _FITTING.values() for key in keys), "alias")
_C_NAMES = {  # what people used to C write
    "float": "float32", "double": "float64", "half": "float16", "__half": "float16", "fp16": "float16",
    "bf16": "bfloat16", "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16", "char": "int8",
    "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "unsigned": "uint32", "unsigned int": "uint32", "long": "int64", "ulong": "uint64", "size_t": "uint64",
    "bool": "uint8",
}  # fmt: skip


def read_argument(table: Table, sizes: Names) -> Argument | None:
    """The argument, or None where a fault keeps it from being one; every fault is noted."""
    name = read_name(table)
    table.only(_ARGUMENT_KEYS)
    found = _read_type(table)
    if found is None or name is None:
        return None
    element, is_array = found
    if "alias" in table:
        return _read_alias(table, name, element, is_array)
    if element.packed > 1 and not is_array:
        return table.refuse("type", f"{element.name} comes in arrays alone, two to a byte", _star(element))
    role = _read_role(table, is_array)
    if role is None:
        return None
    _refuse_unfitting(table, (*_ALWAYS, *_FITTING[role]), f"an argument of role {role}")
    if role == "scalar":
        return Argument(name=name, type=element.name, role=role, value=_read_value(table, element, sizes))
    return _read_array(table, name, element, role, sizes)


def read_workspace(table: Table, name: str, names: Collection[str]) -> Argument | None:
    table.only(("type", "shape", "align", "init"))
    found = _read_type(table)
    if found is None:
        return None
    element, is_array = found
    if not is_array:
        rule = f"a workspace is an array, got the scalar type {element.name}"
        return table.refuse("type", rule, _star(element))
    return _read_array(table, name, element, "workspace", names)


def read_name(table: Table) -> str | None:
    if not table.needs("name", hint='name it as the kernel does: name = "out"'):
        return None
    if (name := table.text("name")) is None:
        return None
    table.label = f"argument {show(name)}"
    if not IDENTIFIER.fullmatch(name):
        return table.must("name", "be a C identifier", "name it as the kernel does")
    return name


def _read_type(table: Table) -> tuple[ElementType, bool] | None:
    if not table.needs("type", hint='write type = "float32*" for an array, type = "int32" for a scalar'):
        return None
    text = table.text("type")
    if text is None:
        return None
    base = text.strip().removesuffix("*").strip()
    element = TYPES.get(base)
    if element is None:
        plain = base.removeprefix("const ").strip()
        meant = _C_NAMES.get(plain)
        hint = f"did you mean '{meant}'?" if meant else suggestion(plain, TYPES)
        rule = f"unknown element type {show(base)}, known are {', '.join(TYPES)}, with * for arrays"
        return table.refuse("type", rule, hint)
    return element, text.strip().endswith("*")


def _read_role(table: Table, is_array: bool) -> Role | None:
    if not is_array:
        if table.data.get("role", "scalar") != "scalar":
            hint = f'write type = "{table.data["type"]}*" if it is an array, or remove role'
            return table.refuse("role", f"a scalar has no role, got {show(table.data['role'])}", hint)
        return "scalar"
    if "role" not in table:
        rule = f"an array needs a role, one of {', '.join(_ARRAY_ROLES)}"
        return table.refuse(None, rule, 'add e.g. role = "input"')
    return table.choice("role", _ARRAY_ROLES)


def _read_alias(table: Table, name: str, element: ElementType, is_array: bool) -> Argument | None:
    alias = table.text("alias")
    if not is_array:
        return table.refuse("alias", "only an array can be another array's alias", _star(element))
    _refuse_unfitting(table, (*_ALWAYS, "alias"), "an alias, which is the other array")
    roles: tuple[Role, ...] = ("input", "output", "inout")
    role = table.choice("role", roles) if "role" in table else "inout"
    if alias is None or role is None:
        return None
    return Argument(name=name, type=element.name, role=role, alias=alias)


def _read_value(table: Table, element: ElementType, sizes: Names) -> Expr | RealExpr | float | None:
    example = '"d"' if element.kind != "float" else "1e-5"
    if not table.needs("value", hint=f"say what callers pass: value = {example}"):
        return None
    if element.kind != "float":
        return table.expr("value", None if sizes is None else (*sizes, *DEVICE_NAMES))
    if not isinstance(table.data["value"], str):
        return table.number("value")
    found = table.real("value", sizes)
    if found is not None and not found.names:
        rule = f"value of a {element.name} must be a number, got {show(table.data['value'])}"
        return table.refuse("value", rule, "write it without quotes: no size is in it")
    return found


def _read_array(table: Table, name: str, element: ElementType, role: Role, names: Names) -> Argument | None:
    if not table.needs("shape", hint='one entry per axis, e.g. shape = ["tokens", "2 * d"]'):
        return None
    if names is not None and role in ("workspace", "local"):  # nobody else sees how large these are
        names = {*names, *DEVICE_NAMES}
    shape = table.exprs("shape", names, most=MAX_AXES)
    axes, steps = len(table.items("shape", "expressions")), len(table.items("strides", "expressions"))
    is_read = role in ("input", "inout")
    argument = table.read(
        Argument,
        ("strides", "values", "align", "rtol", "atol", "traffic", "order", "keys"),
        names,
        name=name,
        type=element.name,
        role=role,
        shape=shape,
        formula=_read_formula(table, names, axes) if is_read else None,
        init=None if is_read else table.number("init"),
        compare=_read_compare(table),
        range=_read_range(table, element),
        along=_read_along(table, [expr.text for expr in shape]),
    )
    if "strides" in table and steps not in (0, axes):
        table.fault("strides", f"strides must have one entry per axis, got {steps} for {axes} axes")
    if "strides" in table and element.packed > 1:
        rule = f"{element.name} arrays are dense: two elements share a byte, so strides cannot count them"
        table.fault("strides", rule, "remove them, or describe the bytes as an array of uint8")
    if argument.init is not None and not element.holds(argument.init):
        table.fault("init", f"init must be a value of {element.name}, got {argument.init:g}")
    align = argument.align
    if align is not None and (align & (align - 1) or align < element.bytes):
        table.must("align", f"be a power of two of at least {element.bytes}, the size of {element.name}")
    return argument


def _read_formula(table: Table, names: Names, axes: int) -> Expr | None:
    """What an input holds, by the index of each element."""
    if "init" not in table:
        return None
    for key in _DRAWN:
        if key in table:
            table.fault(key, f"{key} says how an array is drawn, and init what it holds", "remove either")
    indices = index_names(axes)
    if names is not None and (taken := sorted({*indices} & {*names})):
        rule = f"in init {', '.join(indices)} are an element's index, so that no size is called {taken[0]}"
        return table.refuse("init", rule, f"rename the size {taken[0]}")
    return table.expr("init", None if names is None else (*names, *indices))


def _read_compare(table: Table) -> Compare | None:
    """A word; or that a function of the user's decides, whose file `read_checker` reads."""
    value = table.data.get("compare")
    if isinstance(value, str) and ".py" in value:
        return "function"
    if isinstance(value, str) and value not in _COMPARES:
        hint = suggestion(value, _COMPARES) or 'write e.g. compare = "checks.py:same"'
        return table.must("compare", f"be one of {', '.join(_COMPARES)}, or file.py:function", hint)
    return table.choice("compare", _COMPARES)


def _read_along(table: Table, axes: Sequence[str]) -> int | None:
    """The axis by what `shape` says of it."""
    name = table.text("along")
    if name is None:
        return None
    if "order" not in table:
        return table.refuse("along", "along says whose order is open, and there is no order", "add order")
    if axes.count(name) != 1:
        rule = f"be one entry of shape ({', '.join(axes)})"
        return table.must("along", rule, "name a size that one axis has alone")
    return axes.index(name)


def _read_range(table: Table, element: ElementType) -> tuple[float, float] | None:
    if "range" not in table:
        return None
    items = table.data["range"]
    if not isinstance(items, list):
        return table.must("range", "be a list of two numbers in [ ]")
    ends = [end for item in items if (end := finite(item)) is not None]
    if len(ends) != 2 or len(items) != 2:
        return table.refuse("range", "range must be two finite numbers", "write range = [0.0, 1.0]")
    low, high = ends
    if low > high:
        rule = f"range must have its lower end first, got [{low:g}, {high:g}]"
        return table.refuse("range", rule, "swap them")
    if table.data.get("values") == "integers" and math.ceil(low) > math.floor(high):
        return table.refuse("range", f"there is no integer in the range [{low:g}, {high:g}]", "widen it")
    if not all(element.holds(end) for end in (low, high)):
        return table.refuse("range", f"range must lie within {element.name}, got [{low:g}, {high:g}]")
    return low, high


def _refuse_unfitting(table: Table, fitting: tuple[str, ...], what: str) -> None:
    for key in table.data:
        if key in _ARGUMENT_KEYS and key not in fitting:
            homes = [role for role, keys in _FITTING.items() if key in keys]
            hint = f"it goes with {', '.join(homes) or 'a second array'}; remove it here"
            table.fault(key, f"{key} says nothing about {what}", hint)


def _star(element: ElementType) -> str:
    return f'write type = "{element.name}*" for an array'


Read = Callable[[str], str]

_ACCURACY_KEYS = ("reference", "rtol", "atol", "independent", "deterministic", "baseline_may_fail")

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
    table.only(_ACCURACY_KEYS)
    rtol, atol = table.number("rtol", low=0.0), table.number("atol", low=0.0)
    outputs = [a for a in arguments if a.is_written and a.alias is None]
    # The tolerance of an output for which nobody names one; None for what has none.
    usual = {a.name: CODES if a.compare == "codes" else TOLERANCES.get(a.type) for a in outputs}
    main = next((pair for pair in usual.values() if pair is not None), CODES)
    accuracy = table.read(
        Accuracy,
        ("deterministic", "baseline_may_fail"),
        rtol=main[0] if rtol is None else rtol,
        atol=main[1] if atol is None else atol,
        reference=read_function(table, "reference", read),
        independent=_read_independent(table, outputs, contract),
    )

    def filled(argument: Argument) -> Argument:
        """Where no tolerance is named, an output of another type than the first has that of its type."""
        pair = usual.get(argument.name) or main
        if pair == main:
            return argument
        return replace(
            argument,
            rtol=pair[0] if argument.rtol is None and rtol is None else argument.rtol,
            atol=pair[1] if argument.atol is None and atol is None else argument.atol,
        )

    return accuracy, tuple(map(filled, arguments))


def _read_independent(table: Table, outputs: list[Argument], contract: Contract) -> str | None:
    name = table.text("independent")
    if name is None:
        return None
    sizes = [rule.name for rule in contract.sizes]
    if name not in sizes:
        rule = f"independent must name a size, got {show(name)}"
        return table.refuse("independent", f"{rule}: sizes are {', '.join(sizes)}", suggestion(name, sizes))
    for output in outputs:
        if output.order and (output.along == 0 or len(output.shape) == 1):
            rule = f"the order of {output.name} is open along its first axis, so that its items are not"
            table.fault("independent", f"{rule} independent, got {show(name)}", "remove it")
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
        return table.must(key, "be file.py:function", f'write e.g. {key} = "{key}.py:softmax"')
    text = read_file(table, key, path, read)
    if text is None:
        return None
    try:
        tree = ast.parse(text, filename=path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where, why = path, str(error) or "nested too deeply"
        if isinstance(error, SyntaxError):
            where, why = f"{path}:{error.lineno or 1}", error.msg
        return table.refuse(key, f"{where}: not readable as Python: {why}", f"mend {path}")
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if function not in defined:
        rule = f"{path} defines no function {show(function)} at its top level"
        listed = ", ".join(defined) or "none"
        return table.refuse(key, f"{rule}, it defines {listed}", "name one of its functions")
    return PythonFunction(path, function, text)


def read_file(table: Table, key: str, name: str, read: Read) -> str | None:
    return table.attempt(key, lambda: read(name))
