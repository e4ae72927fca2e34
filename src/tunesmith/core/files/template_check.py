"""Hold a template's declaration against its code, and try its space at the problem's workloads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.core.errors import BadInput
from tunesmith.core.files.template_source import WORD, defines, used_words
from tunesmith.core.files.toml_table import Table, show, texts
from tunesmith.core.files.try_sizes import launch_places, try_places
from tunesmith.core.problem import Problem
from tunesmith.core.space import Constraint, Space
from tunesmith.core.template import PLACEHOLDER, Template
from tunesmith.csource.lex import without_comments

_LOOKS_LIKE_PARAMETER = re.compile(r"[A-Z][A-Z0-9_]*")


def check_source(root: Table, template: Template, problem: Problem) -> None:
    code = without_comments(template.source)
    included = "\n".join(text for _, text in template.headers)
    used = used_words(code) | used_words(without_comments(included)) | _used_in_declaration(root)
    params, own = root.names("params"), root.names("defines")
    for table, names in (("params", params), ("defines", own)):
        for name in names:
            if name not in used:
                hint = "use it, or remove it: every value would give the same kernel"
                root.faults.add((table, name), f"{show(name)} is unused in the code and the launch", hint)
    for argument in template.workspace:
        if not any(argument.name in launch.args for launch in template.launches):
            rule = f"workspace {show(argument.name)} is unused: no launch has it in its args"
            root.faults.add(("workspace", argument.name), rule, "list all the arguments in the launch's args")
    declared = {*params, *own}
    elsewhere = {name for name, _ in problem.kernel.defines}
    for define in defines(code):
        if define.name in declared and not define.is_guarded:
            rule = f"{define.name} is declared above and defined here, which hides the value that is tried"
            root.faults.add_at(define.line, rule, f"put #ifndef {define.name} and #endif around it")
        elif (
            define.is_default
            and define.name not in declared | elsewhere
            and _LOOKS_LIKE_PARAMETER.fullmatch(define.name)
        ):
            rule = f"{define.name} looks like a parameter and is undeclared in [params] and [defines]"
            hint = f"declare it, e.g. {define.name} = [{define.value}], or drop the #ifndef of a constant"
            root.faults.add_at(define.line, rule, hint)


def _used_in_declaration(root: Table) -> frozenset[str]:
    """As written, not as parsed: a launch with a fault still uses its parameters."""
    written = [text for key in ("launch", "defines", "workspace") for _, text in texts(root.data.get(key))]
    flags = [text for _, text in texts(root.data.get("build"))]
    words = [word for text in written for word in WORD.findall(text)]
    return frozenset(words).union(*(PLACEHOLDER.findall(flag) for flag in flags))


def try_out(root: Table, template: Template, problem: Problem) -> None:
    """The default must be legal somewhere, something must be left to search, and launches must make sense."""
    default = template.default.as_dict()
    # What asks for the device or a build cannot be judged here.
    known = {*problem.size_names, *default}
    constraints = tuple(c for c in template.space.constraints if c.expr.names <= known)
    required = [c for c in constraints if c.kind == "require"]
    legal = [w for w in problem.workloads if _holding(required, {**default, **w.as_dict()})]
    if not legal:
        for constraint in required:
            if not any(constraint.expr.holds({**default, **w.as_dict()}) for w in problem.workloads):
                rule = f"the default breaks require {show(constraint.name)}, {show(constraint.expr.text)}"
                root.faults.add(("default",), f"{rule}, at every workload", "choose other values")
        if not root.faults:
            root.faults.add(
                ("default",), "the default breaks a require at every workload", "choose other values"
            )
    places = list(launch_places(template.launches, root))
    for workload in legal:
        at = f"the default and workload {show(workload.name)}"
        places = try_places(places, {**default, **workload.as_dict()}, root, at)
    if not any(_holding(constraints, {**default, **w.as_dict()}) for w in legal):
        _check_something_left(root, replace(template.space, constraints=constraints), problem)


def _holding(constraints: Sequence[Constraint], values: Mapping[str, int]) -> bool:
    return all(constraint.expr.holds(values) for constraint in constraints)


def _check_something_left(root: Table, space: Space, problem: Problem) -> None:
    workloads = [workload.as_dict() for workload in problem.workloads]
    try:
        if len(space.configs(workloads)):
            return
        for constraint in space.constraints:
            rest = tuple(c for c in space.constraints if c is not constraint)
            if len(replace(space, constraints=rest).configs(workloads)):
                _blame(root, constraint, "leaves no configuration")
                return
        # No single one is to blame: point at the one that took the last configuration.
        for count, constraint in enumerate(space.constraints, 1):
            if not len(replace(space, constraints=space.constraints[:count]).configs(workloads)):
                _blame(root, constraint, "leaves no configuration beside the constraints before it")
                return
    except BadInput as error:  # more than can be listed
        root.faults.add(("params",), error.message, error.hint)


def _blame(root: Table, constraint: Constraint, why: str) -> None:
    rule = f"{constraint.kind} {show(constraint.name)}, {show(constraint.expr.text)}, {why}"
    root.faults.add((constraint.kind, constraint.name), rule, "loosen it, or widen the parameters it names")
