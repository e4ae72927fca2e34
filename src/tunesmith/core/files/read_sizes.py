"""Read the `[contract]` and `[workloads]` of a problem file: which sizes there are, and which count."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from tunesmith.core.expr import is_name
from tunesmith.core.expr.grammar import suggestion
from tunesmith.core.files.toml_table import Table, show
from tunesmith.core.problem import Contract, SizeRule, Workload
from tunesmith.core.space import Constraint

LABEL = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]+")  # may become a folder's name
LABEL_RULE = "letters, digits and _ . -, for it names folders too"
_EXAMPLE = "e.g. d = { min = 1, max = 4096 }"
_RANGE = ("min", "max", "multiple_of")
_WORKLOAD_WORDS = ("weight", "cache")
_CACHES: tuple[str, ...] = ("cold", "warm")


def known_sizes(root: Table) -> frozenset[str] | None:
    """Every name that expressions may use for a size; None without a contract, where none can be judged.

    A size that only the workloads mention is a fault of its own, noted once there and not at every use.
    """
    contract = root.data.get("contract")
    if not isinstance(contract, dict):
        return None
    names = set(contract) - {"require"}
    workloads = root.data.get("workloads")
    for workload in workloads.values() if isinstance(workloads, dict) else ():
        names |= set(workload) - set(_WORKLOAD_WORDS) if isinstance(workload, dict) else set()
    return frozenset(names)


def read_contract(root: Table, names: Collection[str] | None) -> Contract:
    if not root.needs("contract", hint=f"add [contract] with a line per size, {_EXAMPLE}"):
        return Contract(())
    table = root.table("contract", "[contract]")
    if table is None:
        return Contract(())
    sizes = [key for key in table.data if key != "require"]
    if not sizes:
        table.fault(None, "it has no sizes", f"add a line per size, {_EXAMPLE}")
    rules = [_read_rule(table, name) for name in sizes]
    conditions = len(table.items("require", "conditions"))
    exprs = table.exprs("require", names, most=conditions) if conditions else ()
    require = tuple(Constraint(expr.text, expr, "require") for expr in exprs)
    return Contract(tuple(rule for rule in rules if rule is not None), require)


def _read_rule(contract: Table, name: str) -> SizeRule | None:
    if not is_name(name) or name in _WORKLOAD_WORDS:
        rule = f"{show(name)} cannot be a size's name: it must be a C identifier, and no word of these files"
        contract.fault(name, rule, "rename it")
    if not isinstance(contract.data[name], dict):
        got = show(contract.data[name])
        example = f"{name} = {{ min = 1, max = 4096 }}"
        contract.fault(name, f"a size's rule must be a table, got {got} for {show(name)}", f"write {example}")
        return None
    table = contract.table(name, f"size {show(name)}")
    assert table is not None, "checked above"
    table.only((*_RANGE, "one_of"))
    if "one_of" in table:
        return _read_one_of(table, name)
    if not table.needs("min", "max", hint="say from where to where, or list the sizes with one_of"):
        return None
    low, high = table.integer("min", low=0), table.integer("max", low=0)
    step = table.integer("multiple_of", low=1) if "multiple_of" in table else 1
    if low is None or high is None or step is None:
        return None
    if high < low:
        table.fault("max", f"max must be at least min = {low}, got {high}", "swap them")
        return None
    if -(-low // step) * step > high:
        table.fault("multiple_of", f"there is no multiple of {step} from {low} to {high}", "widen the range")
        return None
    return SizeRule(name, low, high, step)


def _read_one_of(table: Table, name: str) -> SizeRule | None:
    for key in _RANGE:
        if key in table:
            table.fault(key, f"{key} cannot stand beside one_of, which lists every size", "remove either")
    values = table.integers("one_of", low=0)
    return SizeRule(name, min(values), max(values), 1, values) if values else None


def read_workloads(
    root: Table, contract: Contract, names: Collection[str] | None, sizes: Sequence[str] | None = None
) -> tuple[Workload, ...]:
    """`sizes` are the contract's, where it stands in another file."""
    hint = "say where it must be fast, e.g. decode = { tokens = 16, d = 4096 } under [workloads]"
    if not root.needs("workloads", hint=hint):
        return ()
    table = root.table("workloads", "[workloads]")
    if table is None:
        return ()
    if not table.data:
        table.fault(None, "there are no workloads", hint)
    found: list[Workload] = []
    strangers: set[str] = set()
    sizes = list(_contract_names(root)) if sizes is None else sizes
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


def _contract_names(root: Table) -> Collection[str]:
    contract = root.data.get("contract")
    return [key for key in contract if key != "require"] if isinstance(contract, dict) else []


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
