"""The usual rules: what a search may leave out and where it looks first, by the names of parameters.

A template with a table [shape] says that its parameters mean what their names usually mean (`USUAL`), and
what the rules have to know of the kernel. From that follow the preferences and answers that every such
template would otherwise repeat; its own [prefer] and [answers] are added to them. Of several kernels to a
call each has a number: [shape.2] says the same of the kernel whose parameters end with it, as `LANES_2` does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tunesmith.problem.template import WORD, Remedy, Shape
from tunesmith.problem.toml_table import Table, walk_texts
from tunesmith.space.configset import Config, Param
from tunesmith.space.expr import Expr, parse_expr
from tunesmith.space.space import Constraint, bind_and_simplify

# Parameters by their names, each with its value in a template that has no such choice.
USUAL: Mapping[str, int] = {
    "BESIDE": 0, "LANES": 1, "TASKS": 1, "VEC": 1, "ITEMS": 1, "SPLIT": 0, "KEEP": 0, "CONVERT": 0,
    "RECIP": 0, "FAST": 0, "DIVIDE": 0, "LOAD": 0, "STORE": 0, "PERSIST": 0, "BLOCKED": 1, "STAGES": 0,
    "BAKE": 0, "UNROLL": 0, "BOUNDS": 0, "REGS": 255, "LEVEL": 5, "BLOCK": 1, "RESTRICT": 0, "BULK": 0,
}  # fmt: skip
# Expressions, which others may name: shape.row
FACTS = ("row", "beside", "rows", "elements", "tasks", "blocks", "block")
BYTES = ("element", "loaded", "own", "alike", "kept", "copied", "piece")
_NAMED = re.compile(r"\bshape\.((?:[0-9]+\.)?\w+)")
_PARAMETER = re.compile(r"(.*?)(?:_([0-9]+))?_*")
_SETTINGS = ("UNROLL", "BOUNDS", "REGS", "LEVEL")  # of the compiler: together they work against each other
_TOUCHES = ("CONVERT", "RECIP", "FAST", "DIVIDE", "LOAD", "STORE", "STAGES", "BAKE", *_SETTINGS[1:])

# A name, what must be there, and the condition. {row} is what the shape says, {REGS} what is usual;
# a condition that asks for something unknown is left out.
_PREFER = (
    # Smaller blocks leave threads unused; larger ones of many rows only wait for each other's end.
    ("enough_threads", "gpu LANES TASKS", "LANES * TASKS >= min(64, device.max_threads)"),
    ("short_rows", "gpu LANES TASKS", "TASKS == 1 or LANES * TASKS <= 512"),
    ("no_idle_lanes", "gpu LANES", "LANES * VEC * ITEMS < 2 * {reach}"),
    ("no_idle_items", "cpu LANES ITEMS", "ITEMS == 1 or LANES * VEC * ITEMS < 2 * {reach}"),
    # Of a thread's loads: 64 registers, a quarter of what it can have.
    ("loads_under_way", "gpu ITEMS", "VEC * ITEMS * {loaded} <= 256"),
    ("loads_under_way", "cpu ITEMS", "VEC * ITEMS * {loaded} <= 1024"),
    ("split_rows_are_long", "SPLIT TASKS", "SPLIT == 0 or TASKS == 1"),
    ("something_to_split", "SPLIT", "BESIDE == 1 or SPLIT == 0 or LANES * VEC * ITEMS < {row}"),
    # Loops apart leave blocks idle in the shorter one. As one they may also be one block's without any loop:
    # then loads that wait for nothing go ahead of those that do.
    ("split_as_one", "SPLIT BESIDE", "SPLIT == 0 or BESIDE == 1 and LANES * VEC * ITEMS < 2 * {row}"),
    ("no_loop_of_one_turn", "SPLIT BESIDE",
     "BESIDE == 0 or SPLIT == 1 or LANES * VEC * ITEMS < {row} or TASKS > 1"),
    ("registers", "KEEP", "LANES * TASKS * (BLOCKED * KEEP * VEC * {kept} // 4 + 32) <= {registers}"),
    ("no_idle_part", "KEEP", "KEEP <= 1 or LANES * VEC * (KEEP - 1) < {row}"),
    ("wide_if_kept", "KEEP VEC", "KEEP == 0 or {nearly_wide}"),
    ("kept_if_several", "KEEP TASKS", "KEEP > 0 or TASKS <= {tasks}"),
    ("one_way_at_a_time", "KEEP ITEMS", "KEEP == 0 or ITEMS == 1"),
    # On narrow vectors other things cost more.
    ("touches_if_wide", "VEC", "{untouched} or {wide}"),
    ("hints_agree", "LOAD STORE", "LOAD == 0 or STORE == LOAD // 2"),
    # Fewer than 512 threads on a multiprocessor cannot hide the latency of their loads.
    ("room_to_persist", "PERSIST", "PERSIST == 0 or 512 <= PERSIST * LANES * TASKS <= {threads}"),
    ("many_to_go_on", "PERSIST", "PERSIST == 0 or {rows} >= 2 * PERSIST * TASKS * device.sms"),
    ("many_to_go_on", "PERSIST",
     "PERSIST == 0 or {elements} >= 2 * PERSIST * LANES * VEC * ITEMS * device.sms"),
    ("tile_in_registers", "BLOCKED", "BLOCKED == 1 or VEC * ITEMS * (BLOCKED * {own} + {alike}) <= 256"),
    ("teams_for_all", "BLOCKED", "BLOCKED == 1 or {rows} >= BLOCKED * TASKS * device.sms"),
    ("chunks_ahead", "STAGES", "STAGES == 0 or 2 * LANES * VEC * ITEMS < {row}"),
    ("chunks_ahead", "STAGES",
     "STAGES == 0 or 2 * LANES * VEC * ITEMS * PERSIST * device.sms < {elements}"),
    ("room_for_rings", "STAGES", "STAGES * VEC * ITEMS * {copied} <= {shared} // 1024"),
    # Below 512 bytes a bulk copy costs more than it brings.
    ("long_runs", "BULK", "BULK == 0 or LANES * VEC * ITEMS * {piece} >= 512"),
    ("copied_or_hinted", "STAGES LOAD", "STAGES == 0 or LOAD == 0"),
    ("bake_or_divide", "BAKE DIVIDE", "BAKE == 0 or DIVIDE == 0"),
    ("bounds_fit", "BOUNDS", "BOUNDS == {BOUNDS} or BOUNDS * {block} <= {threads}"),
    ("bounds_or_persist", "BOUNDS PERSIST", "BOUNDS == {BOUNDS} or PERSIST == 0"),
    ("regs_or_persist", "REGS PERSIST", "REGS == {REGS} or PERSIST == 0"),
    ("one_setting", "", "{settings} <= 1"),
)  # fmt: skip
_ANSWERS = (
    (Remedy.ITEMS_IN_FLIGHT, "BESIDE", "BESIDE == 1"),
    (Remedy.MORE_BLOCKS, "BESIDE", "BESIDE == 1"),
    (Remedy.BLOCK_SIZE, "LANES", "LANES != {LANES}"),
    (Remedy.BLOCK_SIZE, "-LANES TASKS", "TASKS != {TASKS}"),
    (Remedy.WARP_PER_ROW, "gpu LANES", "LANES <= 32"),
    (Remedy.SHUFFLE_REDUCTION, "gpu LANES", "LANES <= 256"),
    (Remedy.ROWS_PER_BLOCK, "LANES TASKS", "TASKS > 1"),
    (Remedy.MORE_BLOCKS, "LANES TASKS", "TASKS == 1"),
    (Remedy.WIDE_ACCESS, "VEC", "VEC * {element} >= 16"),
    (Remedy.ITEMS_IN_FLIGHT, "ITEMS", "ITEMS > 1"),
    (Remedy.UNROLL, "ITEMS", "ITEMS > 1"),
    (Remedy.SPLIT_ROWS, "SPLIT", "SPLIT == 1"),
    (Remedy.MORE_BLOCKS, "SPLIT", "SPLIT == 1"),
    (Remedy.ROW_IN_REGISTERS, "KEEP", "KEEP > 0"),
    (Remedy.ITEMS_IN_FLIGHT, "KEEP", "KEEP > 1"),
    (Remedy.LESS_SHARED, "KEEP", "KEEP > 0"),
    (Remedy.HARDWARE_CONVERSIONS, "CONVERT", "CONVERT == 1"),
    (Remedy.RECIPROCAL, "RECIP", "RECIP > 0"),
    (Remedy.HOIST_INVARIANTS, "RECIP", "RECIP > 0"),
    (Remedy.FAST_INTRINSICS, "FAST", "FAST == 1"),
    (Remedy.CHEAP_DIVISION, "DIVIDE", "DIVIDE > 0"),
    (Remedy.CACHE_HINTS, "LOAD", "LOAD > 0"),
    (Remedy.CACHE_HINTS, "STORE", "STORE > 0"),
    (Remedy.PERSISTENT_GRID, "PERSIST", "PERSIST > 0"),
    (Remedy.ITEMS_IN_FLIGHT, "BLOCKED", "BLOCKED > 1"),
    (Remedy.ROWS_PER_BLOCK, "BLOCKED", "BLOCKED > 1"),
    (Remedy.HOIST_INVARIANTS, "BLOCKED", "BLOCKED > 1"),
    (Remedy.ITEMS_IN_FLIGHT, "STAGES", "STAGES > 0"),
    (Remedy.STAGE_IN_SHARED, "STAGES", "STAGES > 0"),
    (Remedy.BAKE_SIZES, "BAKE", "BAKE == 1"),
    (Remedy.CHEAP_DIVISION, "BAKE", "BAKE == 1"),
    (Remedy.UNROLL, "UNROLL", "UNROLL > 1"),
    (Remedy.ITEMS_IN_FLIGHT, "UNROLL", "UNROLL > 1"),
    (Remedy.LAUNCH_BOUNDS, "BOUNDS", "BOUNDS > {BOUNDS}"),
    (Remedy.REGISTER_CAP, "REGS", "REGS < {REGS}"),
    (Remedy.COMPILER_FLAGS, "LEVEL", "LEVEL != {LEVEL}"),
    (Remedy.BLOCK_SIZE, "BLOCK", "BLOCK != {BLOCK}"),
    (Remedy.HOIST_INVARIANTS, "RESTRICT", "RESTRICT == 1"),
)


def usual_name(parameter: str) -> tuple[str, str]:
    """What a parameter is usually called, and the number of its kernel: "" where there is only one."""
    found = _PARAMETER.fullmatch(parameter)
    return (found[1], found[2] or "") if found and found[1] else (parameter, "")


def read_shape(root: Table, params: Sequence[str], sizes: Sequence[str]) -> Shape | None:
    """The table [shape]; None where the template has none. Its faults are noted."""
    table = root.table("shape", "[shape]")
    if table is None:
        return None
    numbers = [key for key in table.data if key.isdecimal()]
    inner = [(number, table.table(number, f"[shape.{number}]")) for number in numbers]
    tables = [(number, one) for number, one in inner if one is not None]
    parts = tuple((number, _parse_shape(one, number, (), params, sizes)) for number, one in tables)
    return replace(_parse_shape(table, "", numbers, params, sizes), parts=parts)


def _parse_shape(
    table: Table, number: str, parts: Sequence[str], params: Sequence[str], sizes: Sequence[str]
) -> Shape:
    declared = {usual_name(name) for name in params}
    closed = [word for word in USUAL if (word, number) not in declared]
    table.only((*FACTS, "bytes", "kind", *closed, *parts))
    known = (*params, *sizes)
    facts = {name: expr.text for name in FACTS if (expr := table.expr(name, known)) is not None}
    counts = table.table_or_empty("bytes", f"{table.label} bytes")
    counts.only(BYTES)
    facts |= {name: str(n) for name in BYTES if (n := counts.integer(name, low=0)) is not None}
    fixed = {word: n for word in closed if (n := table.integer(word, low=0)) is not None}
    return Shape(facts, fixed, table.choice("kind", ("gpu", "cpu")) == "cpu")


def with_facts(root: Table) -> None:
    """What the shape says in place of its names, `shape.row`, in every expression of the other tables."""
    facts = _collect_facts(root.data.get("shape"), "")
    for title in ("require", "prefer", "launch", "defines", "workspace"):
        named = {name for _, text in walk_texts(root.data.get(title)) for name in _NAMED.findall(text)}
        for name in sorted(named - facts.keys()):
            number, _, fact = name.rpartition(".")
            place = f"[shape.{number}]" if number else "[shape]"
            hint = f"add {fact} = ... to {place}" if fact in FACTS else f"known are {', '.join(FACTS)}"
            root.faults.add((title,), f"shape.{name} is not said by {place}", hint)
        if title in root.data:
            root.data[title] = _substitute_facts(root.data[title], facts)


def _collect_facts(said: object, before: str) -> dict[str, object]:
    if not isinstance(said, dict):
        return {}
    facts = {f"{before}{name}": said[name] for name in FACTS if name in said}
    for number in (key for key in said if key.isdecimal() and not before):
        facts |= _collect_facts(said[number], f"{number}.")
    return facts


def _substitute_facts(value: object, facts: Mapping[str, object]) -> object:
    if isinstance(value, dict):
        return {key: _substitute_facts(inner, facts) for key, inner in value.items()}
    if isinstance(value, list):
        return [_substitute_facts(inner, facts) for inner in value]
    if isinstance(value, str):
        return _NAMED.sub(lambda m: f"({facts[m[1]]})" if m[1] in facts else m[0], value)
    return value


def with_usual(
    shape: Shape,
    params: Sequence[Param],
    default: Config,
    constraints: tuple[Constraint, ...],
    answers: tuple[tuple[Remedy, Expr], ...],
    sizes: Collection[str],
) -> tuple[tuple[Constraint, ...], tuple[tuple[Remedy, Expr], ...]]:
    """With what follows from the parameters' names; a preference of the template's own goes before."""
    require = [c.expr for c in constraints if c.kind == "require"]
    prefer, more = usual_rules(shape, params, default.as_dict(), require, sizes)
    for number, part in shape.parts:
        of_one, answered = usual_rules(part, params, default.as_dict(), require, sizes, number)
        prefer += [(f"{name}_{number}", expr) for name, expr in of_one]
        more += answered
    named = {c.name for c in constraints}
    both = dict(answers)
    for remedy, expr in more:
        both[remedy] = disjoin_exprs(both.get(remedy), expr)
    added = tuple(Constraint(name, expr, "prefer") for name, expr in prefer if name not in named)
    return (*constraints, *added), tuple(both.items())


def usual_rules(
    shape: Shape,
    params: Sequence[Param],
    default: Mapping[str, int],
    require: Sequence[Expr],
    sizes: Collection[str],
    number: str = "",
) -> tuple[list[tuple[str, Expr]], list[tuple[Remedy, Expr]]]:
    """Preferences and answers that follow, of the kernel with this number; each over its own parameters."""
    names = {usual_name(name): name for name in default}
    usual = {word: names[word, number] for word in USUAL if (word, number) in names}
    known = _placeholder_texts(shape, usual, params, default, require, sizes)
    there = {*usual, *shape.fixed, "cpu" if shape.on_cpu else "gpu"}
    there.update(f"-{word}" for word in USUAL if word not in there)
    absent = {word: shape.fixed.get(word, value) for word, value in USUAL.items() if word not in usual}

    def fill_rule(needs: str, text: str) -> Expr | None:
        if not there.issuperset(needs.split()):
            return None
        try:
            filled = text.format_map(known)
        except KeyError:
            return None
        expr = bind_and_simplify(parse_expr(WORD.sub(lambda m: usual.get(m[0], m[0]), filled)), absent)
        return expr if expr.names & default.keys() else None

    prefer = [(name, expr) for name, needs, text in _PREFER if (expr := fill_rule(needs, text)) is not None]
    answers: dict[Remedy, Expr] = {}
    for remedy, needs, text in _ANSWERS:
        if (expr := fill_rule(needs, text)) is not None:
            answers[remedy] = disjoin_exprs(answers.get(remedy), expr)
    return prefer, list(answers.items())


def disjoin_exprs(one: Expr | None, other: Expr) -> Expr:
    """What several parameters answer is there where one of them is."""
    return other if one is None or one.text == other.text else parse_expr(f"{one.text} or {other.text}")


def _placeholder_texts(
    shape: Shape,
    usual: Mapping[str, str],
    params: Sequence[Param],
    default: Mapping[str, int],
    require: Sequence[Expr],
    sizes: Collection[str],
) -> dict[str, str]:
    """What stands for the words in braces."""
    known = {name: text if text.isalnum() else f"({text})" for name, text in shape.facts.items()}
    if shape.fixed.get("BESIDE") and "beside" in known:
        known["row"] = known["beside"]
    elif "BESIDE" in usual and "beside" in known:
        known["row"] = f"({known['beside']} if BESIDE else {known['row']})"
    if reach := known.get("row", known.get("elements")):
        known["reach"] = reach
    known.setdefault("block", "LANES * TASKS")
    for word, limit, else_ in (("threads", "threads_per_sm", 2048), ("registers", "registers_per_sm", 65536)):
        known[word] = f"(device.{limit} if device.{limit} else {else_})"
    known["shared"] = f"(device.shared_per_sm if device.shared_per_sm else {228 << 10})"
    values = {word: param.values for word, name in usual.items() for param in params if param.name == name}
    known |= {word: str(_as_usual(word, values[word], default[name])) for word, name in usual.items()}
    if touched := [word for word in _TOUCHES if word in usual]:
        known["untouched"] = " and ".join(f"{word} == {known[word]}" for word in touched)
    if len(settings := [word for word in _SETTINGS if word in usual]) > 1:
        known["settings"] = " + ".join(f"({word} != {known[word]})" for word in settings)
    vector = next((param for param in params if param.name == usual.get("VEC")), None)
    if vector is not None and len(vector.values) > 1:
        known |= _width_conditions(vector, int(shape.facts.get("element", 1)), shape.on_cpu, require, sizes)
    return known


def _as_usual(word: str, values: Sequence[int], default: int) -> int:
    """What a parameter is where nobody has chosen: whatever a template's default has become since."""
    if word in ("LANES", "TASKS", "BLOCK"):
        return default
    return USUAL[word] if USUAL[word] in values else min(values)


def _width_conditions(
    vector: Param, element: int, on_cpu: bool, require: Sequence[Expr], sizes: Collection[str]
) -> dict[str, str]:
    """Where one access at least is as wide as can be, or half of that, or no wider vector is legal."""
    most = max(vector.values)
    full = min((v for v in vector.values if v * element >= (64 if on_cpu else 16)), default=most)
    rules = [e.text for e in require if vector.name in e.names and e.names <= {vector.name, *sizes}]
    wider = [re.sub(rf"\b{vector.name}\b", f"(2 * {vector.name})", text) for text in rules]
    narrow = f" or not ({' and '.join(f'({text})' for text in wider)})" if wider else ""
    nearly = min(full, most // 2)
    return {"wide": f"VEC >= {full}{narrow}", "nearly_wide": f"VEC >= {nearly}{narrow}"}


def settled_shape(shape: Shape, fixed: Mapping[str, int], number: str = "") -> Shape:
    """The shape where some parameters have one value now."""
    values = {usual_name(name): value for name, value in fixed.items()}
    facts = {name: bind_and_simplify(parse_expr(text), fixed).text for name, text in shape.facts.items()}
    closed = {word: values[word, number] for word in USUAL if (word, number) in values}
    parts = tuple((name, settled_shape(part, fixed, name)) for name, part in shape.parts)
    return replace(shape, facts=facts, fixed={**shape.fixed, **closed}, parts=parts)


def shape_tables(shape: Shape) -> list[tuple[str, list[tuple[str, str]]]]:
    """The tables, each with its title and its lines: a name, and what stands behind it."""
    parts = [(f"shape.{number}", shape_entries(part)) for number, part in shape.parts]
    entries = shape_entries(shape)
    return [("shape", entries), *parts] if entries or not parts else parts


def shape_entries(shape: Shape) -> list[tuple[str, str]]:
    """The lines of one table."""
    entries = [(name, f'"{shape.facts[name]}"') for name in FACTS if name in shape.facts]
    entries += [("kind", '"cpu"')] if shape.on_cpu else []
    entries += [(word, str(value)) for word, value in shape.fixed.items() if value != USUAL[word]]
    counts = [f"{name} = {shape.facts[name]}" for name in BYTES if name in shape.facts]
    return entries + ([("bytes", f"{{ {', '.join(counts)} }}")] if counts else [])
