"""Read a template, a source whose declaration is a comment block in TOML at its top; write rules into it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from tunesmith.base.errors import BadInput
from tunesmith.problem import device
from tunesmith.problem.default_rules import read_shape, with_facts, with_usual
from tunesmith.problem.device import DEVICE_NAMES, RESOURCE_NAMES
from tunesmith.problem.problem import Argument, Launch, Problem, map_exprs
from tunesmith.problem.problem_file import (
    IDENTIFIER,
    check_placeholders,
    launch_places,
    read_launches,
    read_workspace,
    try_places,
)
from tunesmith.problem.problem_text import toml_string
from tunesmith.problem.template import (
    PLACEHOLDER,
    WORD,
    Combination,
    FindHeader,
    Remedy,
    Shape,
    Template,
    find_block,
    find_defines,
    no_headers,
    used_words,
    user_headers,
)
from tunesmith.problem.toml_table import Table, load_toml, names_apart, show_value, walk_texts
from tunesmith.source.text import without_comments
from tunesmith.space.configset import Config, Param
from tunesmith.space.expr import LIMIT, Expr, is_name, parse_expr
from tunesmith.space.space import Constraint, Space

T = TypeVar("T")
ALL = "all"  # of [require], [prefer], [answers] and [defines]: several to a line
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?![\w.])")


def expand_defines(value: T, defines: Sequence[tuple[str, Expr]]) -> T:
    """An expression, or what has some, with what [defines] says in place of its names."""
    texts = {name: f"({expr.text})" for name, expr in defines}

    def expand(expr: Expr) -> Expr:
        text = _NAME.sub(lambda name: texts.get(name[0], name[0]), expr.text)
        return expr if expr.names.isdisjoint(texts) else parse_expr(text)

    return map_exprs(value, expand)


def built_with(root: Table, text: str, headers: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Names that a build depends on. A define that only the launch names is no macro: it would bake the sizes
    of its expression into builds that have no use for them."""
    entries = [text for key in ("launch", "build") for _, text in walk_texts(root.data.get(key))]
    code = "\n".join([text, *(header for _, header in headers)])
    return used_words(without_comments(code)).union(*map(PLACEHOLDER.findall, entries))


def take_apart(root: Table, title: str, switches: Collection[str]) -> None:
    """Entries that share a line, `all = [{ A = "1", B = "2" }]`, as entries of the table. By the name of one
    of `switches`, a parameter, they are 0 without it."""
    table = root.data.get(title)
    if not isinstance(table, dict):
        return
    entries: list[tuple[str, object]] = []
    for key, value in table.items():
        is_switch = key in switches and not isinstance(value, str | int)
        if key != ALL and not is_switch:
            entries.append((key, value))
            continue
        lines = value if isinstance(value, list) else [value]
        if not all(isinstance(line, dict) for line in lines):
            rule = f"[{title}]: {key} must be a list of tables, got {show_value(value)}"
            root.faults.add((title, key), rule, f'write e.g. {key} = [{{ A = "d", B = "2 * d" }}]')
            continue
        for name, text in (pair for line in lines for pair in line.items()):
            on = is_switch and isinstance(text, str | int)
            entries.append((name, f"({text}) if {key} else 0" if on else text))
    if twice := [name for name, count in Counter(name for name, _ in entries).items() if count > 1]:
        root.faults.add((title, twice[0]), f"[{title}]: {twice[0]} is there twice", "say it once")
    root.data[title] = dict(entries)


MAX_BYTES = 1_000_000
_ROOT = (
    *("params", "default", "require", "prefer", "answers", "shape"),
    *("launch", "build", "defines", "workspace"),
)

_ABOUT_PARAMS = ("params", "default", "prefer", "answers", "shape")
_REQUIRE = re.compile(r"\[\s*require\s*\]\s*(#.*)?")


def parse_template(
    text: str, *, path: str, problem: Problem, find_header: FindHeader = no_headers
) -> Template:
    """The template, or one BadInput with everything that is wrong with it."""
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        fault = f"a template has at most {MAX_BYTES:,} bytes, got {size:,}"
        raise BadInput(fault, hint="leave out what the kernel does not use", where=path)
    block = find_block(text, path)
    root = load_toml(block.toml, path=path, offset=block.line)
    root.only(_ROOT)
    names_apart(root, "params")
    for title in ("require", "prefer", "defines"):
        take_apart(root, title, root.names("params") if title == "defines" else ())
    with_facts(root)
    names = _KnownNames(problem.size_names, root.names("params"), root.names("defines"))
    params = _read_params(root, problem)
    default = _read_default(root, params, text)
    macros = _read_defines(root, names, problem)
    constraints, answers, shape = _read_rules(root, names, params, default, macros)
    arguments = [argument.name for argument in problem.arguments]
    workspace = _read_workspace(root, names.before_build, arguments)
    kernel, headers = problem.kernel, None
    if device.find_language(kernel.language).reads_headers:
        headers = root.attempt(None, lambda: user_headers(text, path, find_header, kernel.include))
    built = built_with(root, text, headers or ())
    launches = read_launches(
        root,
        names.after_build,
        entry=problem.launches[0].entry,
        default_args=arguments,
        known_args=[*arguments, *root.names("workspace")],
        insertable=(*names.macros, *names.sizes),
        choices=names.params,
    )
    template = Template(
        path=path,
        source=text,
        language=kernel.language,
        space=Space(params, constraints),
        default=default,
        launches=expand_defines(launches, macros),
        flags=_read_flags(root, names),
        defines=tuple((name, expr) for name, expr in macros if name in built),
        workspace=expand_defines(workspace, macros),
        headers=headers or (),
        answers=answers,
        shape=shape,
    )
    check_source(root, template, problem)
    if not root.faults:  # only a template that reads well can be tried out
        try_out(root, template, problem)
    root.faults.raise_any()
    return template


Answers = tuple[tuple[Remedy, Expr], ...]


def _read_rules(
    root: Table,
    names: _KnownNames,
    params: tuple[Param, ...],
    default: Config,
    macros: Sequence[tuple[str, Expr]],
) -> tuple[tuple[Constraint, ...], Answers, Shape | None]:
    """Constraints and answers, with the usual ones where the template has a shape."""
    constraints = expand_defines(_read_constraints(root, names), macros)
    answers = _read_answers(root, names.params)
    shape = read_shape(root, names.params, names.sizes)
    if shape is not None and not root.faults:
        prefer = tuple((c.name, c.expr.text) for c in constraints if c.kind == "prefer")
        shape = replace(shape, prefer=prefer, answers=tuple((str(name), e.text) for name, e in answers))
        constraints, answers = with_usual(shape, params, default, constraints, answers, names.sizes)
    return constraints, answers, shape


@dataclass(frozen=True)
class _KnownNames:
    """What may stand where. Also names with faults of their own, so that each fault is told once."""

    sizes: tuple[str, ...]
    params: tuple[str, ...]
    defines: tuple[str, ...]

    @property
    def macros(self) -> tuple[str, ...]:
        return (*self.params, *self.defines)

    @property
    def of_defines(self) -> tuple[str, ...]:
        return (*self.params, *self.sizes, *DEVICE_NAMES)

    @property
    def before_build(self) -> tuple[str, ...]:
        return (*self.of_defines, *self.defines)

    @property
    def after_build(self) -> tuple[str, ...]:
        return (*self.before_build, *RESOURCE_NAMES)


def _read_params(root: Table, problem: Problem) -> tuple[Param, ...]:
    """None at all: the file is one kernel as it stands, and says nothing of choices."""
    if not any(key in root for key in _ABOUT_PARAMS):
        return ()
    example = "e.g. BLOCK = [64, 128, 256]"
    table = root.needed_table("params", "[params]", f"declare at least one under [params], {example}")
    if table is None:
        return ()
    if not table.data:
        table.fault(None, "there are no parameters", f"declare at least one, {example}")
    params: list[Param] = []
    for name, value in table.data.items():
        named = _check_macro_name(table, name, "a parameter", problem)
        inner, key, categorical = table, name, False
        if isinstance(value, dict):
            inner = Table(value, (*table.keys, name), f"parameter {show_value(name)}", root.faults)
            inner.only(("values", "default", "categorical"))
            if not inner.needs("values", hint="list them: values = [1, 2, 4]"):
                continue
            key, categorical = "values", inner.flag("categorical")
        values = inner.integers(key, low=-LIMIT, hint="number the choices")
        if named and values:
            params.append(Param(name, values, categorical))
    return tuple(params)


def _check_macro_name(table: Table, name: str, what: str, problem: Problem) -> bool:
    taken = {argument.name: "an argument" for argument in problem.arguments}
    taken |= dict.fromkeys(problem.size_names, "a size")
    if not is_name(name):
        rule = f"{what} is named by a C identifier that is no word of the expression language"
        table.fault(name, f"{rule}, got {show_value(name)}", "rename it")
        return False
    if name in taken:
        rule = f"{show_value(name)} is already {taken[name]} of the problem"
        rule += ", which a macro so named would replace"
        table.fault(name, rule, f"rename it, e.g. {name.upper() if name != name.upper() else name + '_'}")
        return False
    return True


def _read_constraints(root: Table, names: _KnownNames) -> tuple[Constraint, ...]:
    found: list[Constraint] = []
    kinds: tuple[Literal["require", "prefer"], ...] = ("require", "prefer")
    for kind in kinds:
        table = root.table_or_empty(kind, f"[{kind}]")
        known = names.after_build if kind == "require" else names.before_build
        read = [(name, table.expr(name, known)) for name in table.data]
        found += [Constraint(name, expr, kind) for name, expr in read if expr is not None]
    return tuple(found)


def _read_default(root: Table, params: Sequence[Param], text: str) -> Config:
    """From [default], from a parameter's entry in [params] or, where the template has a shape, the code."""
    declared, given = root.names("params"), root.names("default")
    entries = root.table_or_empty("params", "[params]").data.items()
    beside = {name: e["default"] for name, e in entries if isinstance(e, dict) and "default" in e}
    if "shape" in root:
        beside |= {n: v for n, v in _in_code(text).items() if n in declared and n not in {*beside, *given}}
    lacking = [name for name in declared if name not in beside]
    table = root.table("default", "[default]")
    if table is None and lacking:
        if "default" not in root:
            fault = f"no default for {', '.join(lacking)}" if beside else "[default] is missing"
            hint = "give the values with which the template does what the kernel does today"
            root.fault(None, fault, hint)
        return Config(())
    table = table or Table({}, ("default",), "[default]", root.faults)
    table.only(declared)
    if missing := [name for name in lacking if name not in table]:
        table.fault(None, f"no value for {', '.join(missing)}", f"add {missing[0]} = ...")
    values: dict[str, int] = {}
    for name, allowed in ((param.name, param.values) for param in params):
        if name in beside and name in table:
            table.fault(name, f"{name} has its default in [params] already", "leave one of them out")
            continue
        place = table if name in table else Table(beside, ("params",), "[params]", root.faults)
        value = place.data.get(name)
        if type(value) is int and value in allowed:
            values[name] = value
        elif value is not None:
            place.must(name, f"be one of {', '.join(map(str, allowed))}", "choose one")
    return Config.of(values)


def _in_code(text: str) -> dict[str, int]:
    """Defaults that the code has, `#ifndef NAME` and `#define NAME 4`, by the parameter's name."""
    found = [define for define in find_defines(without_comments(text)) if define.is_default]
    return {define.name: int(define.value.strip("( )").rstrip("uUlL"), 0) for define in found}


def _read_flags(root: Table, names: _KnownNames) -> tuple[str, ...]:
    table = root.table_or_empty("build", "[build]")
    table.only(("flags",))
    flags = table.texts("flags")
    for flag in flags:
        check_placeholders(table, "flags", "flag", flag, names.macros)
    return flags


def _read_defines(root: Table, names: _KnownNames, problem: Problem) -> tuple[tuple[str, Expr], ...]:
    table = root.table_or_empty("defines", "[defines]")
    found: list[tuple[str, Expr]] = []
    for name in table.data:
        if name in names.params:
            table.fault(name, f"{show_value(name)} is a parameter too", "rename one of the two")
        _check_macro_name(table, name, "a define", problem)
        expr = table.expr(name, (*names.of_defines, *(before for before, _ in found)))
        if expr is not None:
            found.append((name, expand_defines(expr, found)))
    return tuple(found)


def _read_workspace(root: Table, names: Collection[str], arguments: Sequence[str]) -> tuple[Argument, ...]:
    table = root.table_or_empty("workspace", "[workspace]")
    found: list[Argument] = []
    for name in table.data:
        if not IDENTIFIER.fullmatch(name):
            table.fault(name, f"a workspace is named by a C identifier, got {show_value(name)}", "rename it")
        if name in arguments:
            table.fault(name, f"{show_value(name)} is already an argument of the problem", "rename it")
        inner = table.table(name, f"workspace {show_value(name)}")
        argument = read_workspace(inner, name, names) if inner is not None else None
        if argument is not None:
            found.append(argument)
    return tuple(found)


def _read_answers(root: Table, params: Sequence[str]) -> Answers:
    """Conditions over parameters alone: what a search looks at first must be known before any size."""
    whole = root.table_or_empty("answers", "[answers]")
    known = [remedy.value for remedy in Remedy]
    whole.only((*known, ALL))
    lines = whole.data.get(ALL, [])
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        example = f'{ALL} = [{{ wide_access = "VEC >= 4", block_size = "BLOCK != 64" }}]'
        whole.must(ALL, "be a list of tables with remedies", f"write e.g. {example}")
        lines = []
    tables = [Table(line, (*whole.keys, ALL), whole.label, root.faults) for line in lines]
    for table in tables:
        table.only(known)
    found: dict[Remedy, Expr] = {}
    for table in (whole, *tables):
        for name in (name for name in table.data if table is not whole or name != ALL):
            if name in found:
                table.fault(name, f"{name} has its condition already", "say once where it is")
            elif name not in known or (expr := table.expr(name, params)) is None:
                continue
            elif expr.names:
                found[Remedy(name)] = expr
            else:
                rule = f"{name} must be a condition on parameters, got {expr.text!r}, which names none"
                table.fault(name, rule, f'write e.g. {name} = "{params[0] if params else "BLOCK"} >= 2"')
    return tuple(found.items())


def exclude_combinations(text: str, rules: Sequence[Combination], path: str) -> str:
    """The template with one more requirement for each rule: not these values at once."""
    block = find_block(text, path)
    inside = block.toml.split("\n")
    taken = [int(n) for n in re.findall(r"^\s*not_right_(\d+)\s*=", block.toml, re.MULTILINE)]
    first = max(taken, default=0) + 1
    values = [" and ".join(f"{name} == {value}" for name, value in rule) for rule in rules]
    lines = [f'not_right_{number} = "not ({both})"' for number, both in enumerate(values, first)]
    headings = [place for place, line in enumerate(inside) if _REQUIRE.fullmatch(line.strip())]
    if headings:
        at = headings[0] + 1
    else:
        at, lines = len(inside), ["[require]", *lines]
    whole = text.replace("\r\n", "\n").split("\n")
    at += block.line
    return "\n".join([*whole[:at], *(f"// {line}" for line in lines), *whole[at:]])


_LOOKS_LIKE_PARAMETER = re.compile(r"[A-Z][A-Z0-9_]*")


def check_source(root: Table, template: Template, problem: Problem) -> None:
    code = without_comments(template.source)
    included = "\n".join(text for _, text in template.headers)
    used = used_words(code) | used_words(without_comments(included)) | _used_in_declaration(root)
    params = root.names("params")
    for name in params:
        if name not in used:
            rule = f"{show_value(name)} is unused in the code and the launch"
            hint = "use it, or remove it: every value would give the same kernel"
            root.faults.add(("params", name), rule, hint)
    for argument in template.workspace:
        if not any(argument.name in launch.args for launch in template.launches):
            rule = f"workspace {show_value(argument.name)} is unused: no launch has it in its args"
            root.faults.add(("workspace", argument.name), rule, "list all the arguments in the launch's args")
    _check_waits(root, template, problem)
    declared = {*params, *root.names("defines")}
    known = declared.union(name for name, _ in problem.kernel.defines)
    for define in find_defines(code):
        name = define.name
        if name in declared and not define.is_guarded:
            rule = f"{name} is declared above and defined here, which hides the value that is tried"
            root.faults.add_at(define.line, rule, f"put #ifndef {name} and #endif around it")
        elif define.is_default and name not in known and _LOOKS_LIKE_PARAMETER.fullmatch(name):
            rule = f"{name} looks like a parameter and is undeclared in [params] and [defines]"
            hint = f"declare it, e.g. {name} = [{define.value}], or drop the #ifndef of a constant"
            root.faults.add_at(define.line, rule, hint)


def _check_waits(root: Table, template: Template, problem: Problem) -> None:
    early = next((launch for launch in template.launches if launch.pdl), None)
    if early is None:
        return
    from tunesmith.problem.vetting.waits import FIRST, waits_somewhere

    headers = [text for _, text in (*template.headers, *problem.kernel.headers)]
    if not waits_somewhere(template.source, *headers):
        rule = f"with pdl = true {show_value(early.entry)} may start before the launch ahead of it has ended"
        fault = f"{rule}, and the code never waits for that"
        root.faults.add(("launch",), fault, f"{FIRST} or leave pdl out")


def _used_in_declaration(root: Table) -> frozenset[str]:
    """As written, not as parsed: a launch with a fault still uses its parameters."""
    kinds = (("build", PLACEHOLDER), *((key, WORD) for key in ("launch", "defines", "workspace")))
    texts = [(text, words) for key, words in kinds for _, text in walk_texts(root.data.get(key))]
    return frozenset(word for text, words in texts for word in words.findall(text))


def try_out(root: Table, template: Template, problem: Problem) -> None:
    """The default must be legal somewhere, something must be left to search, and launches must make sense."""
    default = template.default.as_dict()
    # What asks for the device or a build cannot be judged here.
    known = {*problem.size_names, *default}
    constraints = tuple(c for c in template.space.constraints if c.expr.names <= known)
    required = [c for c in constraints if c.kind == "require"]
    legal = [w for w in problem.workloads if _is_satisfied(required, {**default, **w.as_dict()})]
    if not legal:
        broken = [
            f"{show_value(c.name)}, {show_value(c.expr.text)},"
            for c in required
            if not any(c.expr.holds({**default, **w.as_dict()}) for w in problem.workloads)
        ]
        for what in [f"require {one}" for one in broken] or ["a require"]:
            rule = f"the default breaks {what} at every workload"
            root.faults.add(("default",), rule, "choose other values")
    places = list(launch_places(template.launches, root))
    for workload in legal:
        at = f"the default and workload {show_value(workload.name)}"
        places = try_places(places, {**default, **workload.as_dict()}, root, at)
    if not any(_is_satisfied(constraints, {**default, **w.as_dict()}) for w in legal):
        _check_something_left(root, replace(template.space, constraints=constraints), problem)


def _is_satisfied(constraints: Sequence[Constraint], values: Mapping[str, int]) -> bool:
    return all(constraint.expr.holds(values) for constraint in constraints)


def _check_something_left(root: Table, space: Space, problem: Problem) -> None:
    workloads = [workload.as_dict() for workload in problem.workloads]
    try:
        if len(space.configs(workloads)):
            return None
        for constraint in space.constraints:
            rest = tuple(c for c in space.constraints if c is not constraint)
            if len(replace(space, constraints=rest).configs(workloads)):
                return _blame_constraint(root, constraint, "leaves no configuration")
        # No single one is to blame: point at the one that took the last configuration.
        for count, constraint in enumerate(space.constraints, 1):
            if not len(replace(space, constraints=space.constraints[:count]).configs(workloads)):
                why = "leaves no configuration beside the constraints before it"
                return _blame_constraint(root, constraint, why)
    except BadInput as error:  # more than can be listed
        root.faults.add(("params",), error.message, error.hint)


def _blame_constraint(root: Table, constraint: Constraint, why: str) -> None:
    rule = f"{constraint.kind} {show_value(constraint.name)}, {show_value(constraint.expr.text)}, {why}"
    root.faults.add((constraint.kind, constraint.name), rule, "loosen it, or widen the parameters it names")


WIDTH = 117  # of a line of the declaration, behind its comment sign
MAX_LINES = 40  # with more, short conditions share lines
_MAX_APART = {"answers": 3, "defines": 2}  # with more, they share lines anyway
Pairs = Sequence[tuple[str, str]]  # a name, and what stands behind its equals sign
Tables = Sequence[tuple[str, Pairs]]


@dataclass(frozen=True)
class DeclaredParam:
    """A parameter as a declaration has it; `note`: what it is, in words."""

    name: str
    values: tuple[int, ...]
    default: int
    categorical: bool = False
    note: str = ""

    @property
    def text(self) -> str:
        kind = ", categorical = true" if self.categorical else ""
        return f"{{ values = {list(self.values)}, default = {self.default}{kind} }}{self._remark_suffix}"

    @property
    def short(self) -> str:
        """Without its default, which the code has."""
        values = f"{{ values = {list(self.values)}, categorical = true }}"
        return (values if self.categorical else str(list(self.values))) + self._remark_suffix

    @property
    def _remark_suffix(self) -> str:
        return f"  # {self.note}" if self.note else ""


def format_declaration(
    params: Iterable[DeclaredParam],
    conditions: Iterable[tuple[str, Pairs]],
    defines: Pairs = (),
    flags: Sequence[str] = (),
    launch: Iterable[str] = (),
    *,
    workspace: Pairs = (),
    shape: Tables | None = None,
    baked: Tables = (),
    in_code: Collection[str] = (),
) -> list[str]:
    """As lines of a comment; `conditions` by table: each with its name. Empty tables are left out. With a
    `shape`, parameters that are `in_code` have their defaults there. `baked`: defines by their switches."""
    is_short = in_code if shape is not None else ()
    given = _merge_alike([(p.name, p.short if p.name in is_short else p.text) for p in params])
    named = {title: [(name, toml_string(text)) for name, text in pairs] for title, pairs in conditions}
    named["defines"] = [(name, toml_string(text)) for name, text in defines]
    several = [title for title, most in _MAX_APART.items() if len(named.get(title, ())) > most]

    def written(packed: Collection[str]) -> list[str]:
        lines = ["/// tunesmith", *_toml_table_lines("params", given)]
        for title, pairs in named.items():
            if title == "defines" and shape is not None:
                lines += _shape_lines(shape)
            lines += _pack_table(title, pairs) if title in packed else _toml_table_lines(title, pairs)
        lines += ["[defines]"] if not named["defines"] and any(pairs for _, pairs in baked) else []
        lines += [line for switch, entries in baked for line in _switched_lines(switch, entries)]
        lines += _toml_table_lines("workspace", workspace)
        if flags and "require" in packed:
            lines.insert(1, f"build.flags = {_toml_list(flags)}")
        elif flags:
            lines += ["[build]", f"flags = {_toml_list(flags)}"]
        return [*lines, *launch, "///"]

    lines = written(several)
    if len(lines) > MAX_LINES:
        lines = written((*several, "require", "prefer"))
    return [f"// {line}".rstrip() for line in lines]


def _switched_lines(switch: str, entries: Pairs) -> list[str]:
    rows = _inline_rows([(name, toml_string(text)) for name, text in entries])
    return _table_list_lines(switch, rows) if len(rows) != 1 else [f"{switch} = {rows[0]}"]


def _merge_alike(params: Pairs) -> Pairs:
    """Parameters of several kernels, `LANES_1` and `LANES_2`, that are declared alike share a line."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, text in params:
        bare, numbered, number = name.rpartition("_")
        found.setdefault((bare if numbered and number.isdecimal() else name, text), []).append(name)
    done: list[tuple[str, str]] = []
    for (_, text), names in found.items():
        together = f'"{", ".join(names)}"'
        fits = len(names) > 1 and len(f"{together} = {text}") <= WIDTH
        done += [(together, text)] if fits else [(name, text) for name in names]
    return done


def _shape_lines(tables: Tables) -> list[str]:
    """One table, or those of several kernels, a line for each that fits one."""
    if len(tables) > 1 and all(name.startswith("shape.") for name, _ in tables):
        entries = [(name, ", ".join(f"{key} = {text}" for key, text in pairs)) for name, pairs in tables]
        short = [f"{name.removeprefix('shape.')} = {{ {listed} }}" for name, listed in entries]
        if max(map(len, short)) <= WIDTH:
            return ["[shape]", *short]
    return [line for name, pairs in tables for line in _toml_table_lines(name, pairs) or [f"[{name}]"]]


def _toml_table_lines(title: str, pairs: Pairs) -> list[str]:
    width = max((len(name) for name, _ in pairs if not name.startswith('"')), default=0)
    lines = [line for name, text in pairs for line in _wrap_entry(f"{name:<{width}} = ", text)]
    return [f"[{title}]", *lines] if pairs else []


def _wrap_entry(start: str, text: str) -> list[str]:
    """A text too long for a line is several of them, in three quotes."""
    if len(start + text) <= WIDTH or not text.startswith('"'):
        return [start + text]
    lines = [f'{start}""']
    for part in re.split(r" (?=(?:and|or|else|\+) )", text):
        if len(f"{lines[-1]} {part}") > WIDTH - 3 and len(lines[-1]) > len(start) + 2:
            lines.append(" " * len(start) + part)
        else:
            lines[-1] += part if lines[-1] == f'{start}""' else f" {part}"
    return [*lines[:-1], f'{lines[-1]}""']


def _pack_table(title: str, pairs: Pairs) -> list[str]:
    """Several to a line: they are many, and short. Long ones keep lines of their own."""
    alone = [(name, text) for name, text in pairs if len(f"{name} = {text}") > WIDTH - len("all = [{  }]")]
    rows = _inline_rows([pair for pair in pairs if pair not in alone])
    lines = _toml_table_lines(title, alone) or ([f"[{title}]"] if rows else [])
    return [*lines, *_table_list_lines("all", rows)]


def _inline_rows(pairs: Pairs) -> list[str]:
    """Tables that fit a line each, with as many entries as there is room for."""
    rows: list[str] = []
    for entry in (f"{name} = {text}" for name, text in pairs):
        room = WIDTH - len(f"BAKE = [{{ , {entry} }}]")
        fitting = next((place for place, row in enumerate(rows) if len(row) <= room), None)
        if fitting is None:
            rows.append(entry)
        else:
            rows[fitting] += f", {entry}"
    return [f"{{ {row} }}" for row in rows]


def _table_list_lines(name: str, rows: Sequence[str]) -> list[str]:
    """A list of tables, one to a line."""
    start = f"{name} = ["
    return (start + f",\n{' ' * len(start)}".join(rows) + "]").splitlines() if rows else []


def _toml_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(toml_string, texts))}]"


def expression_list_lines(name: str, texts: Sequence[str]) -> list[str]:
    """A list of expressions, on lines of their own where one is too short."""
    one = f"{name} = {_toml_list(texts)}"
    if len(one) <= WIDTH:
        return [one]
    lines: list[str] = []
    for place, text in enumerate(texts, 1):
        start = f"{name} = [" if place == 1 else " " * len(f"{name} = [")
        *more, last = _wrap_entry(start, toml_string(text))
        lines += [*more, f"{last}," if place < len(texts) else f"{last}]"]
    return lines


def shared_line(text: str) -> list[str]:
    return _wrap_entry("shared = ", toml_string(text))


def launch_lines(launches: Sequence[Launch], entry: str, args: Sequence[str]) -> list[str]:
    """`entry` and `args` are the problem's: a single launch names them only where its own are others."""
    lines: list[str] = []
    several = len(launches) > 1
    for launch in launches:
        lines.append("[[launch]]" if several else "[launch]")
        if several or launch.entry != entry:
            lines.append(f"entry = {toml_string(launch.entry)}")
        if several or tuple(launch.args) != tuple(args):
            lines.append(f"args = {_toml_list(launch.args)}")
        axes = (("grid", launch.grid), ("block", launch.block), ("cluster", launch.cluster))
        for name, exprs in axes:
            lines += expression_list_lines(name, [e.text for e in exprs]) if exprs else []
        lines += shared_line(launch.shared.text) if launch.shared is not None else []
        lines += ["cooperative = true"] if launch.cooperative else []
        if launch.pdl:
            lines.append(f"pdl = {'true' if launch.pdl is True else toml_string(str(launch.pdl))}")
        lines += [f"when = {toml_string(launch.when.text)}"] if launch.when is not None else []
    return lines


def workspace_text(argument: Argument) -> str:
    shape = _toml_list(e.text for e in argument.shape)
    more = f", align = {argument.align}" if argument.align is not None else ""
    more += f", init = {argument.init}" if argument.init is not None else ""
    return f'{{ type = "{argument.element.name}*", shape = {shape}{more} }}'


_REMARK = re.compile(r"\s*(\w+|\"[\w, ]+\")\s*=.*?[\]}\"\w]\s+#\s*(.+?)\s*")


def read_remarks(toml: str) -> dict[str, str]:
    """What stands behind an entry on its line, by the entry's name."""
    found = [_REMARK.fullmatch(line) for line in toml.splitlines()]
    return {name: one[2] for one in found if one for name in re.findall(r"\w+", one[1])}
