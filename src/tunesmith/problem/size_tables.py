"""Read the `[contract]` and `[workloads]` of a problem file: which sizes there are, and which count."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from tunesmith.problem.device import DEVICE_NAMES
from tunesmith.problem.formulas import NoElement, values_at
from tunesmith.problem.problem import MAX_EXTENTS, Argument, Contract, Launch, Problem, SizeRule, Workload
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.problem.toml_table import Keys, Names, Table, show
from tunesmith.space.expr import LIMIT, Expr, Undefined, is_name, parse
from tunesmith.space.grammar import suggestion
from tunesmith.space.real import RealExpr
from tunesmith.space.space import Constraint

LABEL = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]+")  # may become a folder's name
LABEL_RULE = "letters, digits and _ . -, for it names folders too"
_EXAMPLE = "e.g. d = { min = 1, max = 4096 }"
_RANGE = ("min", "max", "multiple_of")
_WORKLOAD_WORDS = ("weight", "cache")
MOST_TRIED = 1 << 20  # elements of an array whose formula is tried when the file is read
_CACHES: tuple[str, ...] = ("cold", "warm")


def known_sizes(root: Table) -> frozenset[str] | None:
    """Every name that expressions may use for a size; None without a contract, where none can be judged.

    A size that only the workloads mention is a fault of its own, noted once there and not at every use.
    """
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
        rule = f"{show(name)} cannot be a size's name: it must be a C identifier, and no word of these files"
        contract.fault(name, rule, "rename it")
    if not isinstance(contract.data[name], dict):
        rule = f"a size's rule must be a table, got {show(contract.data[name])} for {show(name)}"
        return contract.refuse(name, rule, f"write {name} = {{ min = 1, max = 4096 }}")
    table = contract.table(name, f"size {show(name)}")
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
        inner = table.table(name, f"workload {show(name)}")
        if inner is None:
            continue
        if not LABEL.fullmatch(name):
            table.fault(name, f"a workload's name has {LABEL_RULE}, got {show(name)}", "rename it")
        if names is not None:
            _note_strangers(inner, sizes, strangers)
        workload = _read_workload(inner, name, sizes)
        if workload is not None:
            _check_contract(inner, workload, contract)
            found.append(workload)
    return tuple(found)


def _note_strangers(table: Table, sizes: Sequence[str], noted: set[str]) -> None:
    for key in table.data:
        if key in sizes or key in _WORKLOAD_WORDS or key in noted:
            continue
        noted.add(key)
        known = f"sizes are {', '.join(sizes) or 'none'}, and weight and cache go here too"
        close = suggestion(key, (*sizes, *_WORKLOAD_WORDS))
        hint = close or f"add {key} = {{ min = ..., max = ... }} to [contract]"
        table.fault(key, f"{show(key)} has no rule in [contract]: {known}", hint)


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
            broken = f"{given} breaks the contract's {show(condition.expr.text)}"
            table.fault(None, broken, "change the workload")


Place = tuple[Keys, str, Expr, int, int]  # where, what it is, the expression, its least and largest value


def try_problem(problem: Problem, root: Table) -> None:
    places = [place for i, a in enumerate(problem.arguments) for place in argument_places(a, ("argument", i))]
    places += launch_places(problem.launches, root)
    if problem.traffic is not None:
        places.append((("traffic",), "traffic", problem.traffic, 0, LIMIT))
    for kind, expr in problem.operations:
        places.append((("operations", kind), f"operations: {kind}", expr, 0, LIMIT))
    for workload in problem.workloads:
        places = try_places(places, workload.as_dict(), root, f"workload '{workload.name}'")
    for number, argument in enumerate(problem.arguments):
        for workload in problem.workloads:
            if argument.formula is not None and root.faults:
                break
            if (fault := _without_value(argument, workload.as_dict())) is not None:
                key, reason = fault
                message = f"argument '{argument.name}': {reason} at workload '{workload.name}'"
                root.faults.add(("argument", number, key), message, "mend the expression or the sizes")
                break


def _without_value(argument: Argument, sizes: Mapping[str, int]) -> tuple[str, str] | None:
    """Which key has no value at these sizes, and why; arrays are tried as far as that takes no time."""
    try:
        if argument.formula is not None:
            shape = [min(max(0, e.evaluate(sizes)), MOST_TRIED) for e in argument.shape]
            if math.prod(shape) <= MOST_TRIED:
                values_at(argument.formula, sizes, shape, argument.element, argument.name)
        if isinstance(argument.value, RealExpr):
            argument.value.evaluate(sizes)
    except (NoElement, Undefined) as error:
        if argument.formula is not None:
            return "init", f"init {error}"
        return "value", f"value {show(str(argument.value))} has no value ({error})"
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
    return parse(f"({expr.text}) if ({launch.when.text}) else 1") if launch.when is not None else expr


def try_places(places: Sequence[Place], values: Mapping[str, int], root: Table, at: str) -> list[Place]:
    """Note what makes no sense with these values; the places that do, to be tried with others.

    What also depends on the device or on a build is left alone.
    """
    sound: list[Place] = []
    for place in places:
        keys, what, expr, low, high = place
        if expr.names <= values.keys():
            reason = _nonsense(expr, values, low, high)
            if reason is not None:
                message = f"{what} {show(expr.text)} {reason} at {at}"
                wider = ", or take a type that holds it" if keys[-1] == "value" else ""
                root.faults.add(keys, message, f"mend the expression or the sizes{wider}")
                continue
        sound.append(place)
    return sound


def _nonsense(expr: Expr, values: Mapping[str, int], low: int, high: int) -> str | None:
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
    if "launch" not in root:
        root.fault(None, "[launch] is missing", f"say how the kernel is launched, {_LAUNCH_EXAMPLE}")
    if root.data.get("launch") == []:
        root.fault("launch", "launch is empty", f"say how the kernel is launched, {_LAUNCH_EXAMPLE}")
    launches: list[Launch] = []
    for table in root.tables("launch", "[launch]"):
        table.only(_KEYS)
        table.needs("grid", "block", hint=f"say how many blocks and threads there are, {_LAUNCH_EXAMPLE}")
        called = table.text("entry")
        if insertable is not None:
            kernel = root.table("kernel", "[kernel]") if root.names("kernel") else None
            whose = table if called is not None else kernel or table
            key = "entry" if "entry" in whose else None
            check_placeholders(whose, key, "entry", called or entry, insertable)
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
                when=table.expr("when", None if names is None else _before_build(names)),
            )
        )
    return tuple(launches)


def _read_pdl(table: Table, choices: Collection[str]) -> bool | Expr:
    """True or false; in a template also a condition on its parameters."""
    if not choices or not isinstance(table.data.get("pdl"), str):
        return table.flag("pdl")
    return table.expr("pdl", choices) or False


def _before_build(names: Collection[str]) -> list[str]:
    return [name for name in names if not name.startswith("resources.")]


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
