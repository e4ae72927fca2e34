"""Read a problem file, or one of workloads for it. Pure: the files that it names come through a callable.

Long, because one reader of one file, a table after the other.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from tunesmith.base.errors import BadInput
from tunesmith.problem import device
from tunesmith.problem.device import DEVICE_NAMES
from tunesmith.problem.inputs import NoElement, index_names, values_at
from tunesmith.problem.problem import (
    ANY_ORDER,
    MAX_AXES,
    MAX_CASES,
    MAX_EXTENTS,
    OPERATIONS,
    TYPES,
    Accuracy,
    Argument,
    Compare,
    Contract,
    ElementType,
    Kernel,
    Launch,
    Origin,
    Problem,
    PythonFunction,
    RecordedCase,
    Role,
    SizeRule,
    Workload,
    is_inside,
    read_recorded,
)
from tunesmith.problem.template import PLACEHOLDER, FindHeader, no_headers, user_headers
from tunesmith.problem.toml_table import Keys, Names, Table, finite_number, load_toml, show_value, walk_texts
from tunesmith.space.expr import LIMIT, Expr, RealExpr, Undefined, is_name, parse_expr, suggest_name
from tunesmith.space.space import Constraint

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
        rule = f"{element.name} comes in arrays alone, two to a byte"
        return table.refuse("type", rule, _pointer_hint(element))
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
        return table.refuse("type", rule, _pointer_hint(element))
    return _read_array(table, name, element, "workspace", names)


def read_name(table: Table) -> str | None:
    table.needs("name", hint='name it as the kernel does: name = "out"')
    if (name := table.text("name")) is None:
        return None
    table.label = f"argument {show_value(name)}"
    if not IDENTIFIER.fullmatch(name):
        return table.must("name", "be a C identifier", "name it as the kernel does")
    return name


def _read_type(table: Table) -> tuple[ElementType, bool] | None:
    table.needs("type", hint='write type = "float32*" for an array, type = "int32" for a scalar')
    if (text := table.text("type")) is None:
        return None
    base = text.strip().removesuffix("*").strip()
    element = TYPES.get(base)
    if element is None:
        plain = base.removeprefix("const ").strip()
        meant = _C_NAMES.get(plain)
        hint = f"did you mean '{meant}'?" if meant else suggest_name(plain, TYPES)
        rule = f"unknown element type {show_value(base)}, known are {', '.join(TYPES)}, with * for arrays"
        return table.refuse("type", rule, hint)
    return element, text.strip().endswith("*")


def _read_role(table: Table, is_array: bool) -> Role | None:
    if not is_array:
        if table.data.get("role", "scalar") != "scalar":
            hint = f'write type = "{table.data["type"]}*" if it is an array, or remove role'
            return table.refuse("role", f"a scalar has no role, got {show_value(table.data['role'])}", hint)
        return "scalar"
    if "role" not in table:
        rule = f"an array needs a role, one of {', '.join(_ARRAY_ROLES)}"
        return table.refuse(None, rule, 'add e.g. role = "input"')
    return table.choice("role", _ARRAY_ROLES)


def _read_alias(table: Table, name: str, element: ElementType, is_array: bool) -> Argument | None:
    alias = table.text("alias")
    if not is_array:
        return table.refuse("alias", "only an array can be another array's alias", _pointer_hint(element))
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
        rule = f"value of a {element.name} must be a number, got {show_value(table.data['value'])}"
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
        hint = suggest_name(value, _COMPARES) or 'write e.g. compare = "checks.py:same"'
        return table.must("compare", f"be one of {', '.join(_COMPARES)}, or file.py:function", hint)
    return table.choice("compare", _COMPARES)


def _read_along(table: Table, axes: Sequence[str]) -> int | None:
    """The axis by what `shape` says of it."""
    if (name := table.text("along")) is None:
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
    ends = [end for item in items if (end := finite_number(item)) is not None]
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


def _pointer_hint(element: ElementType) -> str:
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

    # Where no tolerance is named, an output of another type than the first has that of its type.
    filled = list(arguments)
    for place, argument in enumerate(arguments):
        pair = usual.get(argument.name) or main
        if pair != main:
            relative = pair[0] if argument.rtol is None and rtol is None else argument.rtol
            absolute = pair[1] if argument.atol is None and atol is None else argument.atol
            filled[place] = replace(argument, rtol=relative, atol=absolute)
    return accuracy, tuple(filled)


def _read_independent(table: Table, outputs: list[Argument], contract: Contract) -> str | None:
    if (name := table.text("independent")) is None:
        return None
    sizes = [rule.name for rule in contract.sizes]
    if name not in sizes:
        rule = f"independent must name a size, got {show_value(name)}"
        return table.refuse("independent", f"{rule}: sizes are {', '.join(sizes)}", suggest_name(name, sizes))
    for output in outputs:
        if output.order and (output.along == 0 or len(output.shape) == 1):
            rule = f"the order of {output.name} is open along its first axis, so that its items are not"
            table.fault("independent", f"{rule} independent, got {show_value(name)}", "remove it")
        if output.shape and output.shape[0].text != name:
            rule = f"independent must be the first axis of every output, got {show_value(name)}"
            fault = f"{rule} where {output.name} has {show_value(output.shape[0].text)}"
            table.fault("independent", fault, "remove it; large cases are then checked whole")
    return name


def read_function(table: Table, key: str, read: Read) -> PythonFunction | None:
    """A value "file.py:function", with the file's text; the function must be defined at its top level."""
    if (value := table.text(key)) is None:
        return None
    path, _, function = value.rpartition(":")
    if not path.endswith(".py") or not function.isidentifier():
        return table.must(key, "be file.py:function", f'write e.g. {key} = "{key}.py:softmax"')
    if (text := read_file(table, key, path, read)) is None:
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
        rule = f"{path} defines no function {show_value(function)} at its top level"
        listed = ", ".join(defined) or "none"
        return table.refuse(key, f"{rule}, it defines {listed}", "name one of its functions")
    return PythonFunction(path, function, text)


def read_file(table: Table, key: str, name: str, read: Read) -> str | None:
    return table.attempt(key, lambda: read(name))


LABEL = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]+")  # may become a folder's name
LABEL_RULE = "letters, digits and _ . -, for it names folders too"
_EXAMPLE = "e.g. d = { min = 1, max = 4096 }"
_RANGE = ("min", "max", "multiple_of")
_WORKLOAD_WORDS = ("weight", "cache")
MAX_TRIED = 1 << 20  # elements of an array whose formula is tried when the file is read
_CACHES: tuple[str, ...] = ("cold", "warm")


def known_sizes(root: Table) -> frozenset[str] | None:
    """Every name that expressions may use for a size; None without a contract, where none can be judged. A
    size that only the workloads mention is a fault of its own, noted once there and not at every use."""
    if not isinstance(root.data.get("contract"), dict):
        return None
    names = {*root.names("contract")} - {"require"}
    workloads = root.data.get("workloads")
    for workload in workloads.values() if isinstance(workloads, dict) else ():
        names |= {*workload} - {*_WORKLOAD_WORDS} if isinstance(workload, dict) else set()
    return frozenset(names)


def read_contract(root: Table, names: Names) -> Contract:
    hint = f"add [contract] with a line per size, {_EXAMPLE}"
    if (table := root.needed_table("contract", "[contract]", hint)) is None:
        return Contract(())
    sizes = [key for key in table.data if key != "require"]
    if not sizes:
        table.fault(None, "it has no sizes", f"add a line per size, {_EXAMPLE}")
    rules = [_read_rule(table, name) for name in sizes]
    conditions = len(table.items("require", "conditions"))
    known = None if names is None else (*names, *DEVICE_NAMES)
    exprs = table.exprs("require", known, most=conditions) if conditions else ()
    require = tuple(Constraint(expr.text, expr, "require") for expr in exprs)
    return Contract(tuple(rule for rule in rules if rule is not None), require)


def _read_rule(contract: Table, name: str) -> SizeRule | None:
    if not is_name(name) or name in _WORKLOAD_WORDS:
        rule = "cannot be a size's name: it must be a C identifier, and no word of these files"
        contract.fault(name, f"{show_value(name)} {rule}", "rename it")
    if not isinstance(contract.data[name], dict):
        rule = f"a size's rule must be a table, got {show_value(contract.data[name])} for {show_value(name)}"
        return contract.refuse(name, rule, f"write {name} = {{ min = 1, max = 4096 }}")
    table = contract.table(name, f"size {show_value(name)}")
    assert table is not None, "checked above"
    table.only((*_RANGE, "one_of"))
    if "one_of" in table:
        for key in _RANGE:
            if key in table:
                table.fault(key, f"{key} cannot stand beside one_of, which lists every size", "remove either")
        values = table.integers("one_of", low=0)
        return SizeRule(name, min(values), max(values), 1, values) if values else None
    if not table.needs("min", "max", hint="say from where to where, or list the sizes with one_of"):
        return None
    low, high = table.integer("min", low=0), table.integer("max", low=0)
    step = table.integer("multiple_of", low=1) if "multiple_of" in table else 1
    if low is None or high is None or step is None:
        return None
    if high < low:
        return table.refuse("max", f"max must be at least min = {low}, got {high}", "swap them")
    if -(-low // step) * step > high:
        rule = f"there is no multiple of {step} from {low} to {high}"
        return table.refuse("multiple_of", rule, "widen the range")
    return SizeRule(name, low, high, step)


def read_workloads(
    root: Table, contract: Contract, names: Names, sizes: Sequence[str] | None = None
) -> tuple[Workload, ...]:
    """`sizes` are the contract's, where it stands in another file."""
    hint = "say where it must be fast, e.g. decode = { tokens = 16, d = 4096 } under [workloads]"
    if (table := root.needed_table("workloads", "[workloads]", hint)) is None:
        return ()
    if not table.data:
        table.fault(None, "there are no workloads", hint)
    found: list[Workload] = []
    strangers: set[str] = set()
    sizes = [key for key in root.names("contract") if key != "require"] if sizes is None else sizes
    for name in table.data:
        if (inner := table.table(name, f"workload {show_value(name)}")) is None:
            continue
        if not LABEL.fullmatch(name):
            table.fault(name, f"a workload's name has {LABEL_RULE}, got {show_value(name)}", "rename it")
        if names is not None:
            _note_strangers(inner, sizes, strangers)
        if (workload := _read_workload(inner, name, sizes)) is not None:
            _check_contract(inner, workload, contract)
            found.append(workload)
    return tuple(found)


def _note_strangers(table: Table, sizes: Sequence[str], noted: set[str]) -> None:
    for key in table.data:
        if key in sizes or key in _WORKLOAD_WORDS or key in noted:
            continue
        noted.add(key)
        known = f"sizes are {', '.join(sizes) or 'none'}, and weight and cache go here too"
        close = suggest_name(key, (*sizes, *_WORKLOAD_WORDS))
        hint = close or f"add {key} = {{ min = ..., max = ... }} to [contract]"
        table.fault(key, f"{show_value(key)} has no rule in [contract]: {known}", hint)


def _read_workload(table: Table, name: str, sizes: Sequence[str]) -> Workload | None:
    weight = table.number("weight") if "weight" in table else 1.0
    if weight is not None and weight <= 0:
        table.fault("weight", f"weight must be above 0, got {weight:g}", "remove the workload instead")
    cache = table.choice("cache", _CACHES)
    missing = [size for size in sizes if size not in table]
    if missing:
        table.fault(None, f"no value for {', '.join(missing)}", f"add {missing[0]} = ...")
    values = {size: table.integer(size, low=0) for size in sizes if size in table}
    if missing or weight is None or any(value is None for value in values.values()):
        return None
    pairs = tuple((size, value) for size, value in values.items() if value is not None)
    return Workload(name, pairs, weight, "warm" if cache == "warm" else "cold")


def _check_contract(table: Table, workload: Workload, contract: Contract) -> None:
    sizes = workload.as_dict()
    for rule in contract.sizes:
        if rule.name in sizes and not rule.allows(sizes[rule.name]):
            got = f"{rule.name} = {sizes[rule.name]} is outside the contract, which allows {rule.describe()}"
            table.fault(rule.name, got, "change the workload, or the contract if callers do send such sizes")
    for condition in contract.require:
        if condition.expr.names <= sizes.keys() and not condition.expr.holds(sizes):
            given = ", ".join(f"{n} = {sizes[n]}" for n in sorted(condition.expr.names))
            broken = f"{given} breaks the contract's {show_value(condition.expr.text)}"
            table.fault(None, broken, "change the workload")


Place = tuple[Keys, str, Expr, int, int]  # where, what it is, the expression, its least and largest value


def try_problem(problem: Problem, root: Table) -> None:
    places = [place for i, a in enumerate(problem.arguments) for place in argument_places(a, ("argument", i))]
    places += launch_places(problem.launches, root)
    if problem.traffic is not None:
        places.append((("traffic",), "traffic", problem.traffic, 0, LIMIT))
    places += [(("operations", kind), f"operations: {kind}", e, 0, LIMIT) for kind, e in problem.operations]
    for workload in problem.workloads:
        places = try_places(places, workload.as_dict(), root, f"workload '{workload.name}'")
    for number, argument in enumerate(problem.arguments):
        for workload in problem.workloads:
            if argument.formula is not None and root.faults:
                break
            if (fault := _without_value(argument, workload.as_dict())) is not None:
                message = f"argument '{argument.name}': {fault[1]} at workload '{workload.name}'"
                root.faults.add(("argument", number, fault[0]), message, "mend the expression or the sizes")
                break


def _without_value(argument: Argument, sizes: Mapping[str, int]) -> tuple[str, str] | None:
    """Which key has no value at these sizes, and why; arrays are tried as far as that takes no time."""
    try:
        if argument.formula is not None:
            shape = [min(max(0, e.evaluate(sizes)), MAX_TRIED) for e in argument.shape]
            if math.prod(shape) <= MAX_TRIED:
                values_at(argument.formula, sizes, shape, argument.element, argument.name)
        if isinstance(argument.value, RealExpr):
            argument.value.evaluate(sizes)
    except (NoElement, Undefined) as error:
        if argument.formula is not None:
            return "init", f"init {error}"
        return "value", f"value {show_value(str(argument.value))} has no value ({error})"
    return None


def argument_places(argument: Argument, keys: Keys) -> Iterator[Place]:
    what = f"argument '{argument.name}':"
    for key, exprs in (("shape", argument.shape), ("strides", argument.strides)):
        for axis, expr in enumerate(exprs):
            yield (*keys, key, axis), f"{what} {key}", expr, 0, LIMIT
    if argument.traffic is not None:
        yield (*keys, "traffic"), f"{what} traffic", argument.traffic, 0, LIMIT
    if isinstance(argument.value, Expr):
        low, high = argument.element.bounds
        yield (*keys, "value"), f"{what} {argument.element.name} value", argument.value, low, high


def launch_places(launches: Sequence[Launch], root: Table) -> Iterator[Place]:
    several = isinstance(root.data.get("launch"), list)
    for i, launch in enumerate(launches):
        keys: Keys = ("launch", i) if several else ("launch",)
        label = f"[launch] {i + 1}:" if several else "[launch]:"
        for key, exprs in (("grid", launch.grid), ("block", launch.block), ("cluster", launch.cluster)):
            for axis, expr in enumerate(exprs):
                yield (*keys, key, axis), f"{label} {key}", _where_launched(expr, launch), 1, LIMIT
        if launch.shared is not None:
            yield (*keys, "shared"), f"{label} shared", _where_launched(launch.shared, launch), 0, LIMIT


def _where_launched(expr: Expr, launch: Launch) -> Expr:
    return parse_expr(f"({expr.text}) if ({launch.when.text}) else 1") if launch.when is not None else expr


def try_places(places: Sequence[Place], values: Mapping[str, int], root: Table, at: str) -> list[Place]:
    """Note what makes no sense with these values; the places that do, to be tried with others. What also
    depends on the device or on a build is left alone."""
    sound: list[Place] = []
    for place in places:
        keys, what, expr, low, high = place
        if expr.names <= values.keys() and (reason := _value_fault(expr, values, low, high)) is not None:
            wider = ", or take a type that holds it" if keys[-1] == "value" else ""
            hint = f"mend the expression or the sizes{wider}"
            root.faults.add(keys, f"{what} {show_value(expr.text)} {reason} at {at}", hint)
        else:
            sound.append(place)
    return sound


def _value_fault(expr: Expr, values: Mapping[str, int], low: int, high: int) -> str | None:
    try:
        value = expr.evaluate(values)
    except Undefined as error:
        return f"has no value ({error})"
    if low <= value <= high:
        return None
    bound = f"at least {low}" if value < low else f"at most {high}"
    return f"is {value}, allowed is {bound},"


_KEYS = ("grid", "block", "shared", "cluster", "cooperative", "pdl", "when", "entry", "args")
_LAUNCH_EXAMPLE = 'e.g. grid = ["ceildiv(d, 128)"] and block = ["128"]'


def read_launches(
    root: Table,
    names: Names,
    *,
    entry: str,
    default_args: Sequence[str],
    known_args: Sequence[str],
    insertable: Names,
    choices: Collection[str] = (),
) -> tuple[Launch, ...]:
    """`names` may occur in expressions, `insertable` in an entry's braces; None where unknown. `choices` are
    the parameters on which it may depend whether launches overlap."""
    hint = f"say how the kernel is launched, {_LAUNCH_EXAMPLE}"
    if "launch" not in root:
        root.fault(None, "[launch] is missing", hint)
    if root.data.get("launch") == []:
        root.fault("launch", "launch is empty", hint)
    before_build = None if names is None else [name for name in names if not name.startswith("resources.")]
    launches: list[Launch] = []
    for table in root.tables("launch", "[launch]"):
        table.only(_KEYS)
        table.needs("grid", "block", hint=f"say how many blocks and threads there are, {_LAUNCH_EXAMPLE}")
        called = table.text("entry")
        if insertable is not None:
            _check_entry(root, table, called, entry, insertable)
        launches.append(
            table.read(
                Launch,
                ("shared", "cluster", "cooperative"),
                names,
                entry=called or entry,
                grid=table.exprs("grid", names, most=MAX_EXTENTS),
                block=table.exprs("block", names, most=MAX_EXTENTS),
                args=_read_args(table, known_args) if "args" in table else tuple(default_args),
                pdl=_read_pdl(table, choices),
                when=table.expr("when", before_build),
            )
        )
    return tuple(launches)


def _check_entry(
    root: Table, launch: Table, called: str | None, default: str, insertable: Collection[str]
) -> None:
    kernel = root.table("kernel", "[kernel]") if root.names("kernel") else None
    whose = launch if called is not None else kernel or launch
    check_placeholders(whose, "entry" if "entry" in whose else None, "entry", called or default, insertable)


def _read_pdl(table: Table, choices: Collection[str]) -> bool | Expr:
    """True or false; in a template also a condition on its parameters."""
    if not choices or not isinstance(table.data.get("pdl"), str):
        return table.flag("pdl")
    return table.expr("pdl", choices) or False


def check_placeholders(table: Table, key: str | None, what: str, text: str, known: Collection[str]) -> None:
    for name in PLACEHOLDER.findall(text):
        if name not in known and not name.isdigit():  # Type{0} is C++
            rule = f"{what} {show_value(text)} inserts {{{name}}}, which is not there"
            listed = ", ".join(sorted(known)) or "none"
            table.fault(key, f"{rule}: known are {listed}", suggest_name(name, known))


def _read_args(table: Table, known: Sequence[str]) -> tuple[str, ...]:
    args = table.texts("args")
    for name in args:
        if name not in known:
            rule = f"args names {show_value(name)}, which is no argument"
            listed = ", ".join(known) or "none"
            table.fault("args", f"{rule}: known are {listed}", suggest_name(name, known))
    return args


_TABLES = ("kernel", "argument", "launch", "contract", "workloads", "accuracy")
_ROOT = ("name", "inputs", "traffic", "operations", "recorded", *_TABLES, "origin")
_KERNEL = ("source", "entry", "language", "flags", "include", "defines", "compiler")
_PLACEHOLDER = "FILL"
_ORIGIN = ("repository", "file", "lines", "launches", "digests", "capture", "kernel", "read", "include")
_LINES = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


def parse_problem(text: str, *, path: str, read: Read, find_header: FindHeader = no_headers) -> Problem:
    """The problem, or one BadInput with everything that is wrong with it. `read(name)` gives the text of a
    file beside the problem file, and raises BadInput where there is none; `find_header` knows the headers
    that a CUDA source may include."""
    root = load_toml(text, path=path)
    _refuse_unfilled(root, read)
    root.only(_ROOT)
    sizes, name = known_sizes(root), _read_problem_name(root)
    kernel = _read_kernel(root, read, find_header)
    arguments = _read_arguments(root, sizes, kernel.language, read)
    # Also arguments that have faults, so that a launch that names one is not at fault too.
    named = [table.data.get("name") for table in root.tables("argument", "argument")]
    launches = read_launches(
        root,
        None if sizes is None else (*sizes, *DEVICE_NAMES),
        entry=kernel.entry,
        default_args=[argument.name for argument in arguments],
        known_args=[name for name in named if isinstance(name, str)],
        insertable=sizes,
    )
    contract = read_contract(root, sizes)
    accuracy, arguments = read_accuracy(root, arguments, contract, read)
    problem = Problem(
        name=name,
        kernel=kernel,
        arguments=arguments,
        launches=launches,
        contract=contract,
        workloads=read_workloads(root, contract, sizes),
        accuracy=accuracy,
        inputs=read_function(root, "inputs", read),
        traffic=root.expr("traffic", sizes),
        operations=_read_operations(root, sizes),
        origin=_read_origin(root),
    )
    if not root.faults and "recorded" in root:
        problem = replace(problem, recorded=_read_recorded(root, problem, read))
    if not root.faults:  # only a problem that reads well can be tried out
        try_problem(problem, root)
    root.faults.raise_any()
    return problem


def _read_problem_name(root: Table) -> str:
    root.needs("name", hint='name the problem: name = "softmax"')
    name = root.text("name") or ""
    if name and not LABEL.fullmatch(name):
        root.fault("name", f"name has {LABEL_RULE}, got {show_value(name)}", "rename it")
    return name


def _refuse_unfilled(root: Table, read: Read) -> None:
    """A scaffold marks what only the user knows; until that is filled in, nothing else is worth saying."""
    places = [place for place in walk_texts(root.data) if _PLACEHOLDER in place[1]]
    places.sort(key=lambda place: root.faults.line(place[0]) or 0)
    entries = [(keys, f"{'.'.join(map(str, keys))} = {show_value(text)}") for keys, text in places]
    listed = [f"{root.faults.where(keys)}: {entry}" for keys, entry in entries]
    if isinstance(accuracy := root.data.get("accuracy"), dict):
        listed += _unfilled_lines(str(accuracy.get("reference", "")).rpartition(":")[0], read)
    if not listed:
        return
    hint = "write what belongs there, and run the same command again"
    if len(listed) == 1:
        where, _, what = listed[0].partition(": ")
        raise BadInput(f"1 place still says {_PLACEHOLDER}: {what}", hint=hint, where=where)
    message = "\n".join([f"{len(listed)} places still say {_PLACEHOLDER}", *listed])
    raise BadInput(message, hint=hint, where=root.faults.path)


def _unfilled_lines(name: str, read: Read) -> list[str]:
    """Where a reference that was scaffolded too still raises; one that cannot be read is told of later."""
    try:
        lines = read(name).splitlines() if name else []
    except BadInput:
        return []
    marked = [(number, line.strip()) for number, line in enumerate(lines, 1) if f'("{_PLACEHOLDER}:' in line]
    return [f"{name}:{number}: {line}" for number, line in marked]


LONGEST_SOURCE = 4_000_000  # characters: more than any kernel has, and little enough to be looked through


def _read_kernel(root: Table, read: Read, find_header: FindHeader) -> Kernel:
    table = root.needed_table("kernel", "[kernel]", "add [kernel] with source and entry")
    if table is None:
        return Kernel("", "", "", "")
    table.only(_KERNEL)
    table.needs("source", hint='name the file the kernel is in: source = "kernel.cu"')
    table.needs("entry", hint='name the kernel function, of several the main one: entry = "softmax"')
    source = table.text("source")
    text = read_file(table, "source", source, read) if source is not None else None
    if text is not None and not text.strip():
        table.fault("source", f"source {show_value(source)} is empty")
    if text is not None and len(text) > LONGEST_SOURCE:
        fault = f"source {show_value(source)} has {len(text):,} characters"
        rule = f"at most {LONGEST_SOURCE:,} are read"
        table.fault("source", f"{fault}, {rule}", "leave out what is not the kernel's")
        text = None
    language = _read_language(table, source)
    include = table.texts("include")
    key = "include" if "include" in table else "source"
    headers = None
    if device.find_language(language).reads_headers:
        headers = table.attempt(key, lambda: user_headers(text or "", source or "", find_header, include))
    return Kernel(
        path=source or "",
        text=text or "",
        entry=table.text("entry") or "",
        language=language,
        flags=table.texts("flags"),
        include=include,
        defines=_read_defines(table),
        headers=headers or (),
        compiler=_read_compiler(table, language),
    )


def _read_operations(root: Table, sizes: Names) -> tuple[tuple[str, Expr], ...]:
    table = root.table_or_empty("operations", "operations")
    table.only(OPERATIONS)
    if root.data.get("operations") == {}:
        table.fault(None, "operations is empty", 'say what is computed: operations = { fp32 = "2 * n" }')
    read = [(kind, table.expr(kind, sizes)) for kind in OPERATIONS]
    return tuple((kind, expr) for kind, expr in read if expr is not None)


def _read_recorded(root: Table, problem: Problem, read: Read) -> tuple[RecordedCase, ...]:
    """Where everything else is read: cases are of its arrays, at sizes that it allows."""
    found: list[RecordedCase] = []
    listed = root.texts("recorded")
    if len(listed) > MAX_CASES:
        rule = f"at most {MAX_CASES} cases are recorded, got {len(listed)}"
        root.fault("recorded", rule, "leave some out")
        return ()
    for name in listed:
        text = read_file(root, "recorded", name, read)
        case = read_recorded(name, text, problem.arguments, problem.contract) if text is not None else None
        if isinstance(case, str):
            root.fault("recorded", f"{name}: {case}", "extract it again, or leave it out")
        elif case is not None and case.name in [one.name for one in found]:
            root.fault("recorded", f"{name}: there is a case of this name already", "rename one of the two")
        elif case is not None:
            found.append(case)
    return tuple(found)


def _read_compiler(table: Table, language: str) -> str:
    if "compiler" not in table:
        return ""
    choice = {one.name: one.compilers for one in device.known_languages() if one.compilers}
    if language and language not in choice:
        allowed = "; ".join(f"{name}, which has {' and '.join(names)}" for name, names in choice.items())
        table.fault("compiler", f"compiler is for {allowed}; the language is {language}", "remove it")
        return ""
    every = tuple(compiler for names in choice.values() for compiler in names)
    return table.choice("compiler", choice.get(language, every)) or ""


def _read_language(table: Table, source: str | None) -> str:
    if "language" in table:
        given = table.data["language"]
        is_one = isinstance(given, str) and device.has_language(given)
        return str(given) if is_one else table.choice("language", _language_names()) or ""
    if source is None:
        return ""
    found = device.of_suffix(source[source.rfind(".") :])
    if found is None:
        endings = ", ".join(device.all_suffixes())
        rule = f"the language cannot be told from {show_value(source)}, known are {endings}"
        table.fault("source", rule, f"add language, one of {', '.join(_language_names())}")
    return found.name if found is not None else ""


def _language_names() -> tuple[str, ...]:
    return tuple(language.name for language in device.known_languages())


def _read_defines(kernel: Table) -> tuple[tuple[str, str], ...]:
    table = kernel.table_or_empty("defines", "[kernel] defines")
    found: list[tuple[str, str]] = []
    for name, value in table.data.items():
        if not IDENTIFIER.fullmatch(name):
            table.fault(name, f"{show_value(name)} is no C identifier", "rename it")
        if isinstance(value, str) and "\n" not in value:
            found.append((name, value))
        elif finite_number(value) is not None:
            found.append((name, show_value(value)))
        else:
            table.must(name, "be a finite number or one line of text", "write 1 or 0 for true or false")
    return tuple(found)


def _read_arguments(root: Table, sizes: Names, language: str, read_file: Read) -> tuple[Argument, ...]:
    if root.data.get("argument", []) == []:
        root.fault(None, "there are no arguments", "add one [[argument]] for each, in the kernel's own order")
        return ()
    tables = root.tables("argument", "argument")
    read = [(table, read_argument(table, sizes)) for table in tables]
    sound = [(table, argument) for table, argument in read if argument is not None]
    arguments = tuple(argument for _, argument in sound)
    seen: set[str] = set()
    for table in tables:
        name = table.data.get("name")
        if isinstance(name, str):
            if name in seen:
                table.fault("name", "there is an argument of this name already", "rename one of the two")
            seen.add(name)
    for table, argument in sound:
        if argument.role == "local" and not device.find_language(language).local_arguments:
            rule = f"role local is for OpenCL, the language is {language}"
            table.fault("role", rule, "use shared in [launch]")
    if len(sound) == len(read):  # an argument that could not be read may be the one that is missed
        _check_aliases(sound)
        arguments = tuple(argument for _, argument in sound)
        if any(a.order or a.keys or a.compare == "function" for a in arguments):
            arguments = read_orders(sound, sizes or (), read_file)
        if tables and not any(argument.is_written for argument in arguments):
            rule = "no argument is written: none has role output or inout"
            root.faults.add(tables[0].keys, rule, "give the result's argument one of the two")
    return arguments


def _check_aliases(read: Sequence[tuple[Table, Argument]]) -> None:
    targets = [a.name for _, a in read if a.role == "inout" and a.alias is None]
    for table, argument in read:
        if argument.alias is not None and argument.alias not in targets:
            rule = f"name an array argument of role inout ({', '.join(targets) or 'none is'})"
            table.must("alias", rule, 'list that argument too, with role = "inout" and its shape')


def _read_origin(root: Table) -> Origin | None:
    """What `extract` writes, and `apply` goes by."""
    table = root.table("origin", "[origin]")
    if table is None:
        return None
    table.only(_ORIGIN)
    table.needs("file", hint="`tunesmith extract` writes [origin]: leave it as it is, or leave it out")
    lines = table.text("lines") or "1-1"
    ends = _LINES.fullmatch(lines)
    if ends is None:
        table.fault("lines", f'lines are the first and the last, "12-40", got {show_value(lines)}')
    listed = table.table_or_empty("digests", "[origin.digests]")
    digests = tuple((path, listed.text(path) or "") for path in listed.data)
    read = table.table_or_empty("read", "[origin.read]")
    read.only(("launch", "unread", "alone"))
    origin = table.read(
        Origin,
        ("repository", "capture", "kernel", "include"),
        file=table.text("file") or "",
        launches=table.texts("launches"),
        lines=(int(ends[1]), int(ends[2])) if ends else (1, 1),
        digests=digests,
        read=read.text("launch") or "",
        unread=read.texts("unread"),
        alone=read.flag("alone"),
    )
    for path in (origin.file, *(place.rpartition(":")[0] for place in origin.launches), *dict(digests)):
        if path and not is_inside(path):
            rule = "files count from the repository's top and lie below it"
            table.fault(None, f"{rule}, got {show_value(path)}")
    return origin


def with_workloads(problem: Problem, text: str, *, path: str) -> Problem:
    """The same problem, to be fast elsewhere; or one BadInput with everything that is wrong with the text."""
    root = load_toml(text, path=path)
    root.only(("workloads",))
    sizes = problem.size_names
    found = replace(problem, workloads=read_workloads(root, problem.contract, sizes, sizes))
    if not root.faults:
        try_problem(found, root)
    root.faults.raise_any()
    return found


GIVEN = ("got", "expected", "rtol", "atol")  # what a function of the user's is called with, besides arguments


def read_orders(
    listed: Sequence[tuple[Table, Argument]], sizes: Collection[str], read: Read
) -> tuple[Argument, ...]:
    """The arguments, with the axis of those that go with another, and functions that compare."""
    by_name = {argument.name: argument for _, argument in listed}
    found: list[Argument] = []
    for table, argument in listed:
        read_one = _with_order(table, argument, by_name) if argument.order else argument
        if argument.keys:
            _check_keys(table, argument, by_name)
        if argument.compare == "function":
            _check_given(table, (*sizes, *by_name))
            read_one = replace(read_one, checker=read_function(table, "compare", read))
        found.append(read_one)
    return tuple(found)


def _with_order(table: Table, argument: Argument, by_name: dict[str, Argument]) -> Argument:
    if not argument.shape:
        table.fault("order", "order needs an axis, and the shape has none", "remove it")
        return argument
    if argument.compare == "function":
        table.fault("order", "order says nothing where a function compares", "let the function allow for it")
    if argument.order == ANY_ORDER:
        return argument
    outputs = [one for one in by_name.values() if one.is_written and not one.alias]
    others = [one.name for one in outputs if one is not argument and one.order in ("", ANY_ORDER)]
    leader = by_name.get(argument.order)
    if leader is None or argument.order not in others:
        rule = f'be "{ANY_ORDER}" or another output with an order of its own'
        hint = suggest_name(argument.order, (ANY_ORDER, *others)) or "name one of these"
        table.must("order", f"{rule} ({', '.join(others) or 'there is none'})", hint)
        return argument
    if leader.compare == "function":
        table.fault("order", f"{leader.name} is compared by a function, which says all", "remove order")
    if "along" in table:
        table.fault("along", f"along is said at {leader.name}, which it goes with", "put it there")
    along = leader.along if leader.along is not None else len(leader.shape) - 1
    axes, needed = ([e.text for e in a.shape[: along + 1]] for a in (argument, leader))
    if axes != needed:
        rule = f"what goes with {leader.name} must have its axes up to the one that is ordered"
        table.fault("order", f"{rule}, {', '.join(needed)}; got {', '.join(axes)}", "give it that shape")
    return replace(argument, along=along)


def _check_keys(table: Table, argument: Argument, by_name: dict[str, Argument]) -> None:
    inputs = [name for name, one in by_name.items() if one.role == "input" and not one.alias]
    if argument.keys not in inputs:
        hint = suggest_name(argument.keys, inputs) or "name the array that the indices point into"
        table.must("keys", f"name an array of role input ({', '.join(inputs) or 'there is none'})", hint)
    if argument.element.kind == "float" or argument.element.packed > 1:
        rule = f"keys goes with indices, which are whole numbers; got {argument.type}"
        table.fault("keys", rule, "remove it")
    if argument.compare not in (None, "exact"):
        rule = f"indices are compared by their keys, which are equal or not; got {argument.compare}"
        table.fault("compare", rule, "remove it, or keys")
    if not argument.shape or argument.along not in (None, len(argument.shape) - 1):
        table.fault("keys", "indices with keys lie along the last axis", "remove along")


def _check_given(table: Table, names: Collection[str]) -> None:
    for name in sorted({*GIVEN} & {*names}):
        rule = f"a function that compares is given {', '.join(GIVEN)}, so that no argument or size is called"
        table.fault("compare", f"{rule} {show_value(name)}", f"rename {name}")
