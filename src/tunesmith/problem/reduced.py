"""A template reduced to what won: choices on which all winners agree are settled, and what lost is gone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tunesmith.csource.lex import lex
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.preprocess import preprocess
from tunesmith.csource.resolve import folded, resolved
from tunesmith.errors import BadInput
from tunesmith.problem import languages
from tunesmith.problem.problem import Argument, Launch, Problem, Workload
from tunesmith.problem.template import Template, bind_launch, inserted, made_launches
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.template_source import (
    WORD,
    DeclarationBlock,
    FindHeader,
    HeaderFile,
    find_block,
    used_words,
)
from tunesmith.problem.template_text import (
    DeclaredParam,
    declaration,
    launch_lines,
    remarks,
    workspace_text,
)
from tunesmith.problem.unused import without_unused
from tunesmith.problem.usual import settled_shape, shape_tables
from tunesmith.space.expr import Expr, Undefined, parse
from tunesmith.space.params import Config
from tunesmith.space.settled import settled
from tunesmith.space.space import Constraint


def reduced(
    template: Template, problem: Problem, winners: Sequence[Config], still_open: Collection[str] = ()
) -> Template:
    """With the parameters that differ between the winners, and those to be left open, and no others. Its
    default is the first winner; what stays open keeps its domain, so that it can be searched elsewhere."""
    names = [param.name for param in template.space.params]
    if unknown := [name for name in still_open if name not in names]:
        fault = f"the template has no parameter {unknown[0]!r}; it has {', '.join(names) or 'none'}"
        raise BadInput(fault, where=template.path, hint="name some of these, separated by commas")
    values = {name: {config[name] for config in winners} for name in names}
    first = winners[0].as_dict()
    fixed = {name: first[name] for name in names if len(values[name]) == 1 and name not in still_open}
    while True:
        text = _text(template, problem, winners[0], fixed)
        idle = [name for name in names if name not in fixed and name not in _uses(text, template)]
        if not idle:
            break
        # Nothing that is left depends on it: what did has lost.
        fixed = {name: first[name] for name in names if name in fixed or name in idle}
    found = parse_template(text, path=template.path, problem=problem, find_header=_headers(template))
    return replace(found, is_foreign=template.is_foreign).of_candidate(winners[0].candidate)


def as_reduced(config: Config, template: Template) -> Config:
    """A winner among the configurations of the reduced template."""
    values = config.as_dict()
    return replace(config, items=tuple((p.name, values[p.name]) for p in template.space.params))


def _text(template: Template, problem: Problem, winner: Config, fixed: Mapping[str, int]) -> str:
    source = template.source.replace("\r\n", "\n")
    known = _known(template, fixed)
    block = find_block(source, template.path)
    before, after = _around(source, block)
    head = _declaration(template, problem, winner, fixed, known, block)
    others = {word for _, text in _all_headers(template, problem) for word in _words(text)}
    given = {name for name, _ in problem.kernel.defines}
    body = before + "\n" * bool(before) + after
    code = resolved(body, known, early=others)
    _check(template, problem, body, code, known)
    if languages.named(problem.kernel.language).is_c_family:
        code = without_unused(folded(code, known), {*others, *WORD.findall("\n".join(head))})
    for name in given & known.keys():  # production sets it as well: its value is that of the original
        code = code.replace(f"#define {name} ", f"#undef {name}\n#define {name} ", 1)
    code = _with_defaults(code.strip("\n"), {n: winner[n] for n, _ in winner.items if n not in fixed})
    return "\n".join([*head, *([] if code.startswith("//") else [""]), code]) + "\n"


_DEFINED = re.compile(r"#define ([A-Za-z_]\w*) (-?\d+)")


def shortened(source: str, language: str, names: Iterable[str], headers: Iterable[str] = ()) -> str | None:
    """A delivered source without its macros for parameters, what lost by them, and what nobody uses; None
    where it cannot be sure to mean the same. `names`: words that others use it by; `headers`: their texts."""
    lines = source.replace("\r\n", "\n").split("\n")
    start = next((at for at, line in enumerate(lines) if line.startswith("#line ")), None)
    if start is None:
        return None
    found = {line: _DEFINED.fullmatch(line) for line in lines[:start]}
    known = {match[1]: int(match[2]) for match in found.values() if match}
    head = [line for line in lines[:start] if not found[line]]
    body = "\n".join(lines[start + 1 :])
    try:
        before, after = _around(body, find_block(body, "template"))
        body = before + "\n" * bool(before) + after
        others = {word for text in headers for word in _words(text)}
        code = resolved(body, known, early=others)
        macros = [(name, str(value)) for name, value in known.items()]
        meant = (preprocess(body, language, macros).tokens, preprocess(code, language, []).tokens)
        if [token.text for token in meant[0]] != [token.text for token in meant[1]]:
            return None
        code = without_unused(folded(code, known), {*others, *names})
    except (BadInput, Unreadable):
        return None
    return "\n".join([*head, code.strip("\n")]) + "\n"


def _known(template: Template, fixed: Mapping[str, int]) -> dict[str, int]:
    """The macros that have one value now: parameters, and defines that follow from them."""
    known = dict(fixed)
    for name, expr in template.defines:
        bound = expr.bind(fixed)
        if not bound.names:
            try:
                known[name] = bound.evaluate({})
            except Undefined:
                continue
    return known


def _around(source: str, block: DeclarationBlock) -> tuple[str, str]:
    lines = source.split("\n")
    end = block.line + block.toml.count("\n") + 1 + bool(block.toml)
    before, after = lines[: block.line - 1], lines[end if block.toml else block.line + 1 :]
    return "\n".join(before).strip("\n"), "\n".join(after)


def _declaration(
    template: Template,
    problem: Problem,
    winner: Config,
    fixed: Mapping[str, int],
    known: Mapping[str, int],
    block: DeclarationBlock,
) -> list[str]:
    notes = remarks(block.toml)
    params = [
        DeclaredParam(p.name, p.values, winner[p.name], p.categorical, notes.get(p.name, ""))
        for p in template.space.params
        if p.name not in fixed
    ]
    left = {param.name for param in params}
    shape = settled_shape(template.shape, fixed) if template.shape is not None and params else None
    own_rules = template.space.constraints
    own_answers = [(str(remedy), expr) for remedy, expr in template.answers]
    if template.shape is not None:  # what else is preferred and answered follows from the names
        said = [Constraint(name, parse(text), "prefer") for name, text in template.shape.prefer]
        own_rules = (*(c for c in own_rules if c.kind == "require"), *said)
        own_answers = [(name, parse(text)) for name, text in template.shape.answers]
    rules = [(c.kind, c.name, settled(c.expr, fixed)) for c in own_rules]
    # Without a parameter a preference chooses between nothing; a requirement still says where it is right.
    own = {name: winner[name] for name in left}
    kept = [r for r in rules if r[2].text != "1" and (r[0] == "require" or _steers(r[2], own))]
    answers = [(name, settled(expr, fixed)) for name, expr in own_answers]
    insert = {name: str(value) for name, value in known.items()}
    return declaration(
        params,
        [
            *((kind, [(n, e.text) for k, n, e in kept if k == kind]) for kind in ("require", "prefer")),
            ("answers", [(name, expr.text) for name, expr in answers if expr.names]),
        ],
        [(name, settled(expr, fixed).text) for name, expr in template.defines if name not in known],
        [inserted(flag, insert) for flag in template.flags],
        launch_lines(
            made_launches(_launch(launch, fixed, insert) for launch in template.launches),
            problem.launches[0].entry,
            [argument.name for argument in problem.arguments],
        ),
        workspace=[(a.name, workspace_text(_bound(a, fixed))) for a in template.workspace],
        shape=None if shape is None else shape_tables(shape),
    )


def _steers(preference: Expr, winner: Mapping[str, int]) -> bool:
    """Whether it chooses among what is left. One that the winner itself does not keep would leave nothing."""
    is_broken = preference.names <= winner.keys() and not preference.holds(winner)
    return bool(preference.names & winner.keys()) and not is_broken


def _launch(launch: Launch, fixed: Mapping[str, int], insert: Mapping[str, str]) -> Launch:
    bound = bind_launch(launch, fixed, insert)
    grid, block, cluster = (
        tuple(settled(e, {}) for e in each) for each in (bound.grid, bound.block, bound.cluster)
    )
    shared = settled(bound.shared, {}) if bound.shared is not None else None
    return replace(bound, grid=grid, block=block, cluster=cluster, shared=shared)


def _bound(argument: Argument, fixed: Mapping[str, int]) -> Argument:
    return replace(argument, shape=tuple(settled(e, fixed) for e in argument.shape))


def _with_defaults(code: str, values: Mapping[str, int]) -> str:
    """Built by hand it is the first winner: `#define NAME value` under `#ifndef NAME` says so."""
    for name, value in values.items():
        default = rf"(#[ \t]*ifndef[ \t]+{name}[^\n]*\n[ \t]*#[ \t]*define[ \t]+{name}[ \t]+)-?\d+\b"
        code = re.sub(default, rf"\g<1>{value}", code)
    return code


def _check(template: Template, problem: Problem, body: str, code: str, known: Mapping[str, int]) -> None:
    """What a compiler makes of the text must not change, whatever the open choices are."""
    language = problem.kernel.language
    default = template.default.as_dict()
    other = {param.name: param.values[-1] for param in template.space.params}
    for values in (default, other):
        macros = {name: value for name, value in values.items() if name not in known}
        for name, expr in template.defines:
            if name not in known:
                macros[name] = _some_value(expr, {**values, **known}, problem.workloads)
        texts = ([*macros.items(), *known.items()], list(macros.items()))
        before, after = (
            preprocess(text, language, [(name, str(value)) for name, value in pairs])
            for text, pairs in zip((body, code), texts, strict=True)
        )
        if [t.text for t in before.tokens] != [t.text for t in after.tokens]:
            fault = "the template cannot be reduced: its text would not mean the same"
            raise BadInput(fault, where=template.path, hint="keep it as it was searched: leave out --winner")


def _some_value(expr: Expr, values: Mapping[str, int], workloads: Iterable[Workload]) -> int:
    for workload in workloads:
        try:
            return expr.evaluate({**workload.as_dict(), **values})
        except Undefined:
            continue
    return 1


def _uses(text: str, template: Template) -> frozenset[str]:
    """Names that the code, the launch or the flags depend on; to be required or preferred is no use."""
    block = find_block(text, template.path)
    before, code = _around(text, block)
    tables = ("", "[launch]", "[[launch]]", "[build]", "[defines]", "[workspace]")
    title, words = "", set[str]()
    for line in block.toml.splitlines():
        title = line.strip() if line.startswith("[") else title
        words.update(WORD.findall(line) if title in tables else ())
    included = [word for _, header in template.headers for word in _words(header)]
    return frozenset(words).union(used_words(code), used_words(before), included)


def _words(text: str) -> set[str]:
    return {
        word
        for token in lex(text)
        if token.kind in ("word", "directive")
        for word in WORD.findall(token.text)
    }


def _all_headers(template: Template, problem: Problem) -> tuple[tuple[str, str], ...]:
    return (*problem.kernel.headers, *template.headers)


def _headers(template: Template) -> FindHeader:
    texts = dict(template.headers)

    def find(spelling: str, _includer: str | None, _folders: Sequence[str]) -> HeaderFile | None:
        return HeaderFile(spelling, texts[spelling]) if spelling in texts else None

    return find
