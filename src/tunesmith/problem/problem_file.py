"""Read a problem file, or one of workloads for it. Pure: the files that it names come through a callable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.errors import BadInput
from tunesmith.problem import argument_tables, languages, size_tables
from tunesmith.problem.device import DEVICE_NAMES
from tunesmith.problem.problem import OPERATIONS, Argument, Kernel, Origin, Problem, is_inside
from tunesmith.problem.template_source import FindHeader, no_headers, user_headers
from tunesmith.problem.toml_table import Names, Table, finite, load_toml, show, texts
from tunesmith.space.expr import Expr

if TYPE_CHECKING:
    from tunesmith.problem.recorded import RecordedCase

_TABLES = ("kernel", "argument", "launch", "contract", "workloads", "accuracy")
_ROOT = ("name", "inputs", "traffic", "operations", "recorded", *_TABLES, "origin")
_KERNEL = ("source", "entry", "language", "flags", "include", "defines", "compiler")
_PLACEHOLDER = "FILL"
_ORIGIN = ("repository", "file", "lines", "launches", "digests", "capture", "kernel", "read", "include")
_LINES = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


def parse_problem(
    text: str, *, path: str, read: argument_tables.Read, find_header: FindHeader = no_headers
) -> Problem:
    """The problem, or one BadInput with everything that is wrong with it.

    `read(name)` gives the text of a file beside the problem file, and raises BadInput where there is none;
    `find_header` knows the headers that a CUDA source may include.
    """
    root = load_toml(text, path=path)
    _refuse_unfilled(root, read)
    root.only(_ROOT)
    sizes = size_tables.known_sizes(root)
    root.needs("name", hint='name the problem: name = "softmax"')
    name = root.text("name") or ""
    if name and not size_tables.LABEL.fullmatch(name):
        root.fault("name", f"name has {size_tables.LABEL_RULE}, got {show(name)}", "rename it")
    kernel = _read_kernel(root, read, find_header)
    arguments = _read_arguments(root, sizes, kernel.language, read)
    listed = [argument.name for argument in arguments]
    # Also arguments that have faults, so that a launch that names one is not at fault too.
    named = [table.data.get("name") for table in root.tables("argument", "argument")]
    launches = size_tables.read_launches(
        root,
        None if sizes is None else (*sizes, *DEVICE_NAMES),
        entry=kernel.entry,
        default_args=listed,
        known_args=[name for name in named if isinstance(name, str)],
        insertable=sizes,
    )
    contract = size_tables.read_contract(root, sizes)
    workloads = size_tables.read_workloads(root, contract, sizes)
    accuracy, arguments = argument_tables.read_accuracy(root, arguments, contract, read)
    problem = Problem(
        name=name,
        kernel=kernel,
        arguments=arguments,
        launches=launches,
        contract=contract,
        workloads=workloads,
        accuracy=accuracy,
        inputs=argument_tables.read_function(root, "inputs", read),
        traffic=root.expr("traffic", sizes),
        operations=_read_operations(root, sizes),
        origin=_read_origin(root),
    )
    if not root.faults and "recorded" in root:
        problem = replace(problem, recorded=_read_recorded(root, problem, read))
    if not root.faults:  # only a problem that reads well can be tried out
        size_tables.try_problem(problem, root)
    root.faults.raise_any()
    return problem


def _refuse_unfilled(root: Table, read: argument_tables.Read) -> None:
    """A scaffold marks what only the user knows; until that is filled in, nothing else is worth saying."""
    places = [place for place in texts(root.data) if _PLACEHOLDER in place[1]]
    places.sort(key=lambda place: root.faults.line(place[0]) or 0)
    listed = [
        f"{root.faults.where(keys)}: {'.'.join(map(str, keys))} = {show(text)}" for keys, text in places
    ]
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


def _unfilled_lines(name: str, read: argument_tables.Read) -> list[str]:
    """Where a reference that was scaffolded too still raises; one that cannot be read is told of later."""
    try:
        lines = read(name).splitlines() if name else []
    except BadInput:
        return []
    marked = [(number, line.strip()) for number, line in enumerate(lines, 1) if f'("{_PLACEHOLDER}:' in line]
    return [f"{name}:{number}: {line}" for number, line in marked]


LONGEST_SOURCE = 4_000_000  # characters: more than any kernel has, and little enough to be looked through


def _read_kernel(root: Table, read: argument_tables.Read, find_header: FindHeader) -> Kernel:
    table = root.needed_table("kernel", "[kernel]", "add [kernel] with source and entry")
    if table is None:
        return Kernel("", "", "", "")
    table.only(_KERNEL)
    table.needs("source", hint='name the file the kernel is in: source = "kernel.cu"')
    table.needs("entry", hint='name the kernel function, of several the main one: entry = "softmax"')
    source = table.text("source")
    text = argument_tables.read_file(table, "source", source, read) if source is not None else None
    if text is not None and not text.strip():
        table.fault("source", f"source {show(source)} is empty")
    if text is not None and len(text) > LONGEST_SOURCE:
        fault = f"source {show(source)} has {len(text):,} characters, at most {LONGEST_SOURCE:,} are read"
        table.fault("source", fault, "leave out what is not the kernel's")
        text = None
    language = _read_language(table, source)
    include = table.texts("include")
    key = "include" if "include" in table else "source"
    headers = None
    if languages.named(language).reads_headers:
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


def _read_recorded(root: Table, problem: Problem, read: argument_tables.Read) -> tuple[RecordedCase, ...]:
    """Where everything else is read: cases are of its arrays, at sizes that it allows."""
    from tunesmith.problem.recorded import MOST_CASES, read_recorded  # which few problems need

    found: list[RecordedCase] = []
    listed = root.texts("recorded")
    if len(listed) > MOST_CASES:
        rule = f"at most {MOST_CASES} cases are recorded, got {len(listed)}"
        root.fault("recorded", rule, "leave some out")
        return ()
    for name in listed:
        text = argument_tables.read_file(root, "recorded", name, read)
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
    choice = {one.name: one.compilers for one in languages.known() if one.compilers}
    if language and language not in choice:
        allowed = "; ".join(f"{name}, which has {' and '.join(names)}" for name, names in choice.items())
        table.fault("compiler", f"compiler is for {allowed}; the language is {language}", "remove it")
        return ""
    every = tuple(compiler for names in choice.values() for compiler in names)
    return table.choice("compiler", choice.get(language, every)) or ""


def _read_language(table: Table, source: str | None) -> str:
    if "language" in table:
        given = table.data["language"]
        is_one = isinstance(given, str) and languages.exists(given)
        return str(given) if is_one else table.choice("language", _names()) or ""
    if source is None:
        return ""
    found = languages.of_suffix(source[source.rfind(".") :])
    if found is None:
        endings = ", ".join(languages.all_suffixes())
        rule = f"the language cannot be told from {show(source)}, known are {endings}"
        table.fault("source", rule, f"add language, one of {', '.join(_names())}")
    return found.name if found is not None else ""


def _names() -> tuple[str, ...]:
    return tuple(language.name for language in languages.known())


def _read_defines(kernel: Table) -> tuple[tuple[str, str], ...]:
    table = kernel.table_or_empty("defines", "[kernel] defines")
    found: list[tuple[str, str]] = []
    for name, value in table.data.items():
        if not argument_tables.IDENTIFIER.fullmatch(name):
            table.fault(name, f"{show(name)} is no C identifier", "rename it")
        if isinstance(value, str) and "\n" not in value:
            found.append((name, value))
        elif finite(value) is not None:
            found.append((name, show(value)))
        else:
            table.must(name, "be a finite number or one line of text", "write 1 or 0 for true or false")
    return tuple(found)


def _read_arguments(
    root: Table, sizes: Names, language: str, read_file: argument_tables.Read
) -> tuple[Argument, ...]:
    if root.data.get("argument", []) == []:
        root.fault(None, "there are no arguments", "add one [[argument]] for each, in the kernel's own order")
        return ()
    tables = root.tables("argument", "argument")
    read = [(table, argument_tables.read_argument(table, sizes)) for table in tables]
    sound = [(table, argument) for table, argument in read if argument is not None]
    arguments = tuple(argument for _, argument in sound)
    seen: set[object] = set()
    for table in tables:
        name = table.data.get("name")
        if isinstance(name, str) and name in seen:
            table.fault("name", "there is an argument of this name already", "rename one of the two")
        seen.add(name if isinstance(name, str) else None)
    for table, argument in sound:
        if argument.role == "local" and not languages.named(language).local_arguments:
            rule = f"role local is for OpenCL, the language is {language}"
            table.fault("role", rule, "use shared in [launch]")
    if len(sound) == len(read):  # an argument that could not be read may be the one that is missed
        _check_aliases(sound)
        arguments = tuple(argument for _, argument in sound)
        if any(a.order or a.keys or a.compare == "function" for a in arguments):
            from tunesmith.problem.order_tables import read_orders  # which few problems need

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
        table.fault("lines", f'lines are the first and the last, "12-40", got {show(lines)}')
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
            table.fault(None, f"files count from the repository's top and lie below it, got {show(path)}")
    return origin


def with_workloads(problem: Problem, text: str, *, path: str) -> Problem:
    """The same problem, to be fast elsewhere; or one BadInput with everything that is wrong with the text."""
    root = load_toml(text, path=path)
    root.only(("workloads",))
    sizes = problem.size_names
    found = replace(problem, workloads=size_tables.read_workloads(root, problem.contract, sizes, sizes))
    if not root.faults:
        size_tables.try_problem(found, root)
    root.faults.raise_any()
    return found
