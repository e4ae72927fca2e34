"""A template reduced to what won: choices on which all winners agree are settled, and what lost is gone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tunesmith.base.errors import BadInput
from tunesmith.problem import device
from tunesmith.problem.default_rules import settled_shape, shape_tables
from tunesmith.problem.problem import Argument, Launch, Problem, Workload
from tunesmith.problem.template import (
    WORD,
    DeclarationBlock,
    FindHeader,
    HeaderFile,
    Template,
    bind_launch,
    fill_placeholders,
    find_block,
    made_launches,
    used_words,
)
from tunesmith.problem.template_file import (
    DeclaredParam,
    format_declaration,
    launch_lines,
    parse_template,
    read_remarks,
    workspace_text,
)
from tunesmith.source.lex import Token, closing_angle, closing_bracket, lex
from tunesmith.source.preprocess import define_macro_values, fold_macro_bodies, preprocess
from tunesmith.source.text import first_word, identifiers_in
from tunesmith.source.tree import Unreadable
from tunesmith.space.configset import Config
from tunesmith.space.expr import Expr, Undefined, parse_expr
from tunesmith.space.space import Constraint, bind_and_simplify

# -- What of a text nothing uses: macros, helper functions and their types, which are taken out.


_TYPES = ("struct", "class", "union")
_KERNELS = ("__global__", "__kernel", "kernel")
_ATTRIBUTES = (
    "__launch_bounds__", "__attribute__", "__align__", "alignas", "decltype", "__declspec", "noexcept",
)  # fmt: skip
_ASIDE = ("virtual", "operator", "friend", "using", "static_assert", "asm", "extern", "namespace", "~")
_CONDITIONS = ("if", "ifdef", "ifndef")


@dataclass
class _NamedPart:
    """A piece of the text that can go as a whole if its name is used nowhere; no name: it stays."""

    name: str
    start: int
    end: int
    words: set[str] = field(default_factory=set)
    kernel: str = ""  # the name of a kernel, which others run


def without_unused(text: str, used: Collection[str], since: int = 0) -> str:
    """`used`: names that others ask for. What stands before `since` is left alone."""
    tokens = lex(text)
    if any("##" in token.text for token in tokens):
        return text  # names are made of pieces, and any may be meant
    parts = list(_PartReader(text, tokens).parts())
    reached = set(used)
    waiting = [part for part in parts if not part.name or part.start < since]
    left = [part for part in parts if part.name and part.start >= since]
    while waiting:
        for part in waiting:
            reached |= part.words
        waiting = [part for part in left if part.name in reached]
        left = [part for part in left if part.name not in reached]
    return _tidy_lines(_cut_ranges(text, [(part.start, part.end) for part in left], since), since)


def without_kernels(text: str, names: Collection[str]) -> str:
    """Without these kernels, unless something else in the text names them, and what they alone used."""
    tokens = lex(text)
    if any("##" in token.text for token in tokens):
        return text
    parts = list(_PartReader(text, tokens, into_namespaces=True).parts())
    gone = [part for part in parts if part.kernel in names and part.kernel]
    named = {word for part in parts if part not in gone for word in part.words}
    gone = [part for part in gone if part.kernel not in named]
    if not gone:
        return text
    others = [part for part in parts if part not in gone]
    left = _reachable_parts(others, others)
    gone += [part for part in others if part not in left and part in _reachable_parts(gone, others)]
    return _tidy_lines(_cut_ranges(text, [(part.start, part.end) for part in gone], 0), 0)


def _reachable_parts(start: Sequence[_NamedPart], parts: Sequence[_NamedPart]) -> list[_NamedPart]:
    """Of `parts` those that stay anyway, or that `start` uses, and what these use."""
    waiting = [part for part in start if not part.name]
    found, words = list(waiting), set[str]()
    while waiting:
        for part in waiting:
            words |= part.words
        waiting = [part for part in parts if part.name in words and part not in found]
        found += waiting
    return found


class _PartReader:
    def __init__(self, text: str, tokens: list[Token], *, into_namespaces: bool = False) -> None:
        self._text, self._tokens, self._into_namespaces = text, tokens, into_namespaces
        self._macros: list[_NamedPart] = []
        told = [t for t in tokens if t.kind == "directive"]
        self._guards = {
            one.offset  # `#ifndef X` right above `#define X` asks for nobody else
            for one, below in pairwise(told)
            if first_word(one.text)[0] == "ifndef" and first_word(below.text)[0] == "define"
            and WORD.findall(one.text)[1:2] == WORD.findall(below.text)[1:2]
        }  # fmt: skip

    def parts(self) -> Iterator[_NamedPart]:
        found = self._level(0, len(self._tokens), "")
        if found is None:  # brackets and conditions do not go together: only macros can be told apart
            self._macros.clear()
            everything = _NamedPart("", 0, 0)
            self._add(everything, 0, len(self._tokens))
            found = [everything]
        yield from found
        yield from self._macros

    def _level(self, at: int, end: int, inside: str) -> list[_NamedPart] | None:
        """The declarations of a file, or of the type that is named."""
        found: list[_NamedPart] = []
        rest = _NamedPart("", 0, 0)  # directives between declarations
        while at < end:
            if self._tokens[at].kind == "directive":
                self._directive(rest, self._tokens[at])
                at += 1
                continue
            stop = self._end(at, end)
            if not self._is_balanced(at, stop):
                return None
            inner = self._read_declaration(at, stop, inside)
            if inner is None:
                return None
            found += inner
            at = stop
        return [rest, *found]

    def _end(self, at: int, end: int) -> int:
        """Behind the declaration that begins here."""
        words = [t for t in self._tokens[at : at + 2] if t.kind != "directive"]
        block = words[0].text == "namespace" or (
            words[0].text == "extern" and len(words) > 1 and words[1].kind == "string"
            and self._tokens[min(at + 2, end - 1)].text == "{"
        )  # fmt: skip
        depth, brackets, is_call = 0, 0, False
        for place in range(at, end):
            token = self._tokens[place]
            if token.kind == "directive":
                continue
            mark = token.text
            brackets += (mark in "([") - (mark in ")]") if len(mark) == 1 else 0
            if mark == "{":
                depth += 1
            elif mark == "}":
                depth -= 1
                if depth <= 0 and (block or is_call):
                    follows = self._tokens[place + 1].text if place + 1 < end else ""
                    return place + (2 if follows == ";" else 1)
            elif depth == 0 and brackets == 0:
                opens_part = mark == ":" and self._tokens[place - 1].text in ("public", "private")
                if mark == ";" or opens_part:
                    return place + 1
                is_call = mark == ")" or (is_call and mark not in ("=", ","))
        return end

    def _is_balanced(self, at: int, end: int) -> bool:
        depth = 0
        for token in self._tokens[at:end]:
            word = first_word(token.text)[0] if token.kind == "directive" else ""
            depth += (word in _CONDITIONS) - (word == "endif")
            if depth < 0 or (depth == 0 and word in ("else", "elif")):
                return False
        return depth == 0

    def _read_declaration(self, at: int, end: int, inside: str) -> list[_NamedPart] | None:
        first, last = self._tokens[at], self._tokens[end - 1]
        part = _NamedPart("", first.offset, last.offset + len(last.text))
        head = at
        while head < end and self._tokens[head].text == "template":
            closing = closing_angle(self._tokens, head + 1)
            if closing is None or closing >= end:
                break
            head = closing + 1
        body = next((p for p in range(head, end) if self._tokens[p].text in ("{", ";", "=")), end)
        words = [t.text for t in self._tokens[head:body] if t.kind == "word"]
        if self._into_namespaces and words[:1] == ["namespace"] and body < end - 1 and last.text == "}":
            return self._level(body + 1, end - 1, inside)
        name, is_function = self._name(head, body)
        type_at = next((p for p in range(head, body) if self._tokens[p].text in _TYPES), None)
        closes = self._tokens[min(body, end - 1)].text in ("{", ";")
        if any(word in _KERNELS for word in words):
            part.kernel = name if is_function else ""
        elif any(token.text in _ASIDE for token in self._tokens[head:body]):
            pass  # it stays
        elif words[:1] == ["typedef"] and not (inside or any(t.text in "({[" for t in self._tokens[at:end])):
            part.name = words[-1]  # `typedef float8 vec;`
        elif type_at is not None and not is_function and closes:
            if not inside and last.text == ";":
                return self._type(part, at, type_at, body, end)
        elif is_function and name != inside and last.text in ("}", ";"):
            part.name = name
        self._add(part, at, end)
        return [part]

    def _type(self, part: _NamedPart, at: int, type_at: int, body: int, end: int) -> list[_NamedPart] | None:
        name, _ = self._name(type_at + 1, body)
        is_typedef = self._tokens[at].text == "typedef"
        closing = next((p for p in range(end - 1, body, -1) if self._tokens[p].text == "}"), body)
        if closing < end - 2 or is_typedef:  # a variable of that type, or another name for it
            self._add(part, at, end)
            return [part]
        part.name = name
        self._add(part, at, body)
        inner = self._level(body + 1, closing, name) if closing > body else []
        if inner is None:
            return None
        part.words.update(*(member.words for member in inner if not member.name))
        return [part, *(member for member in inner if member.name)]

    def _name(self, at: int, end: int) -> tuple[str, bool]:
        """The word that is declared, and whether as a function."""
        name = ""
        while at < end:
            token = self._tokens[at]
            if token.kind == "word" and token.text in _ATTRIBUTES:
                is_group = at + 1 < end and self._tokens[at + 1].text == "("
                at = closing_bracket(self._tokens, at + 1) + 1 if is_group else at + 1
                continue
            if token.text == "(":
                return name, bool(name)
            if token.text == "<" and name:
                closing = closing_angle(self._tokens, at)
                at = closing if closing is not None and closing < end else at
            elif token.kind == "word":
                name = token.text
            elif token.text == ":":
                break
            at += 1
        return name, False

    def _add(self, part: _NamedPart, at: int, end: int) -> None:
        for token in self._tokens[at:end]:
            if token.kind == "directive":
                self._directive(part, token)
            elif token.kind == "word":
                part.words.add(token.text)

    def _directive(self, part: _NamedPart, token: Token) -> None:
        word, rest = first_word(token.text)
        words = identifiers_in(rest)
        if word not in ("define", "undef") or not words:
            part.words.update(words if token.offset not in self._guards else ())
            return
        end = _line_end(self._text, token.offset)
        # What compilers and headers ask for is used, though nobody can see it.
        hidden = words[0].startswith("_") or (word == "define" and not rest[len(words[0]) :].strip())
        before = "#include" in self._text[end:] and "#include" not in self._text[: token.offset]
        name = "" if hidden or (before and word == "define") else words[0]
        self._macros.append(_NamedPart(name, token.offset, end, set(words[1:] if word == "define" else ())))


def _line_end(text: str, start: int) -> int:
    """Of a directive, with the lines that go on."""
    end = text.find("\n", start)
    while end > 0 and text[start:end].rstrip(" \t\r").endswith("\\"):
        end = text.find("\n", end + 1)
    return len(text) if end < 0 else end


def _cut_ranges(text: str, gone: Sequence[tuple[int, int]], since: int) -> str:
    """Whole lines go, and the comment right above them where nothing that stays stands right below."""
    lines = text.split("\n")
    drop: set[int] = set()
    for start, end in gone:
        first, last = text.count("\n", 0, start), text.count("\n", 0, end)
        behind = text[end : (text + "\n").index("\n", end)].strip()
        alone = not text[text.rfind("\n", 0, start) + 1 : start].strip()
        if alone and (not behind or behind.startswith("//")):  # else something else is on its lines
            drop.update(range(first, last + 1))
    top = text.count("\n", 0, since)
    for number in sorted(drop, reverse=True):
        below, above = number + 1, number - 1
        while below in drop:
            below += 1
        under = lines[below].strip() if below < len(lines) else ""
        closes = not under or under.startswith(("}", "#e"))
        if above in drop or not closes:
            continue
        comment = []
        while above > top and lines[above].strip().startswith("//"):
            comment.append(above)
            above -= 1
        if above > 0 or not lines[0].strip().startswith("//"):  # else it speaks of the whole file
            drop.update(comment)
    return "\n".join(line for number, line in enumerate(lines) if number not in drop)


def _tidy_lines(text: str, since: int) -> str:
    """Without conditions around nothing, and with single blank lines."""
    head, lines = text[:since], list[str]()
    for line in text[since:].split("\n"):
        word = line.strip().removeprefix("#").lstrip() if line.strip().startswith("#") else ""
        if word.startswith(("endif", "else", "elif")):
            while lines and not lines[-1].strip():
                lines.pop()
            above = lines[-1].strip() if lines else ""
            if word.startswith("endif") and above.startswith("#else"):
                lines.pop()
                above = lines[-1].strip() if lines else ""
            if word.startswith("endif") and above.startswith("#if"):
                lines.pop()
                continue
        if not line.strip() and lines and (not lines[-1].strip() or lines[-1].rstrip().endswith("{")):
            continue
        lines.append(line)
    return head + "\n".join(lines)


def reduce_template(
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
        text = _reduced_text(template, problem, winners[0], fixed)
        idle = [name for name in names if name not in fixed and name not in _names_in_use(text, template)]
        if not idle:
            break
        # Nothing that is left depends on it: what did has lost.
        fixed = {name: first[name] for name in names if name in fixed or name in idle}
    found = parse_template(text, path=template.path, problem=problem, find_header=_header_finder(template))
    return replace(found, is_foreign=template.is_foreign).of_candidate(winners[0].candidate)


def as_reduced(config: Config, template: Template) -> Config:
    """A winner among the configurations of the reduced template."""
    values = config.as_dict()
    return replace(config, items=tuple((p.name, values[p.name]) for p in template.space.params))


def _reduced_text(template: Template, problem: Problem, winner: Config, fixed: Mapping[str, int]) -> str:
    source = template.source.replace("\r\n", "\n")
    known = _settled_macros(template, fixed)
    block = find_block(source, template.path)
    before, after = _split_at_block(source, block)
    head = _reduced_declaration(template, problem, winner, fixed, known, block)
    headers = (*problem.kernel.headers, *template.headers)
    others = {word for _, text in headers for word in _lexed_words(text)}
    body = before + "\n" * bool(before) + after
    code = define_macro_values(body, known, early=others)
    _check_same_tokens(template, problem, body, code, known)
    if device.find_language(problem.kernel.language).is_c_family:
        code = without_unused(fold_macro_bodies(code, known), {*others, *WORD.findall("\n".join(head))})
    for name in known.keys() & dict(problem.kernel.defines):  # production's value is the original's
        code = code.replace(f"#define {name} ", f"#undef {name}\n#define {name} ", 1)
    code = _with_defaults(code.strip("\n"), {n: winner[n] for n, _ in winner.items if n not in fixed})
    return "\n".join([*head, *([] if code.startswith("//") else [""]), code]) + "\n"


_DEFINED = re.compile(r"#define ([A-Za-z_]\w*) (-?\d+)")


def shorten_source(
    source: str, language: str, names: Iterable[str], headers: Iterable[str] = ()
) -> str | None:
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
        before, after = _split_at_block(body, find_block(body, "template"))
        body = before + "\n" * bool(before) + after
        others = {word for text in headers for word in _lexed_words(text)}
        code = define_macro_values(body, known, early=others)
        macros = [(name, str(value)) for name, value in known.items()]
        meant = (preprocess(body, language, macros).tokens, preprocess(code, language, []).tokens)
        if [token.text for token in meant[0]] != [token.text for token in meant[1]]:
            return None
        code = without_unused(fold_macro_bodies(code, known), {*others, *names})
    except (BadInput, Unreadable):
        return None
    return "\n".join([*head, code.strip("\n")]) + "\n"


def _settled_macros(template: Template, fixed: Mapping[str, int]) -> dict[str, int]:
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


def _split_at_block(source: str, block: DeclarationBlock) -> tuple[str, str]:
    lines = source.split("\n")
    end = block.line + block.toml.count("\n") + 1 + bool(block.toml)
    before, after = lines[: block.line - 1], lines[end if block.toml else block.line + 1 :]
    return "\n".join(before).strip("\n"), "\n".join(after)


def _reduced_declaration(
    template: Template,
    problem: Problem,
    winner: Config,
    fixed: Mapping[str, int],
    known: Mapping[str, int],
    block: DeclarationBlock,
) -> list[str]:
    notes = read_remarks(block.toml)
    left = (param for param in template.space.params if param.name not in fixed)
    params = [
        DeclaredParam(p.name, p.values, winner[p.name], p.categorical, notes.get(p.name, "")) for p in left
    ]
    shape = settled_shape(template.shape, fixed) if template.shape is not None and params else None
    constraints = template.space.constraints
    remedies = [(str(remedy), expr) for remedy, expr in template.answers]
    if template.shape is not None:  # what else is preferred and answered follows from the names
        said = [Constraint(name, parse_expr(text), "prefer") for name, text in template.shape.prefer]
        constraints = (*(c for c in constraints if c.kind == "require"), *said)
        remedies = [(name, parse_expr(text)) for name, text in template.shape.answers]
    rules = [(c.kind, c.name, bind_and_simplify(c.expr, fixed)) for c in constraints]
    # Without a parameter a preference chooses between nothing; a requirement still says where it is right.
    first = {param.name: winner[param.name] for param in params}
    kept = [r for r in rules if r[2].text != "1" and (r[0] == "require" or _can_steer_choice(r[2], first))]
    answers = ((name, bind_and_simplify(expr, fixed)) for name, expr in remedies)
    insert = {name: str(value) for name, value in known.items()}
    return format_declaration(
        params,
        [
            *((kind, [(n, e.text) for k, n, e in kept if k == kind]) for kind in ("require", "prefer")),
            ("answers", [(name, expr.text) for name, expr in answers if expr.names]),
        ],
        [(name, bind_and_simplify(expr, fixed).text) for name, expr in template.defines if name not in known],
        [fill_placeholders(flag, insert) for flag in template.flags],
        launch_lines(
            made_launches(_settle_launch(launch, fixed, insert) for launch in template.launches),
            problem.launches[0].entry,
            [argument.name for argument in problem.arguments],
        ),
        workspace=[(a.name, workspace_text(_settle_argument(a, fixed))) for a in template.workspace],
        shape=None if shape is None else shape_tables(shape),
    )


def _can_steer_choice(preference: Expr, winner: Mapping[str, int]) -> bool:
    """Whether it chooses among what is left. One that the winner itself does not keep would leave nothing."""
    is_broken = preference.names <= winner.keys() and not preference.holds(winner)
    return bool(preference.names & winner.keys()) and not is_broken


def _settle_launch(launch: Launch, fixed: Mapping[str, int], insert: Mapping[str, str]) -> Launch:
    bound = bind_launch(launch, fixed, insert)
    grid, block, cluster = (
        tuple(bind_and_simplify(e, {}) for e in each) for each in (bound.grid, bound.block, bound.cluster)
    )
    shared = bind_and_simplify(bound.shared, {}) if bound.shared is not None else None
    return replace(bound, grid=grid, block=block, cluster=cluster, shared=shared)


def _settle_argument(argument: Argument, fixed: Mapping[str, int]) -> Argument:
    return replace(argument, shape=tuple(bind_and_simplify(e, fixed) for e in argument.shape))


def _with_defaults(code: str, values: Mapping[str, int]) -> str:
    """Built by hand it is the first winner: `#define NAME value` under `#ifndef NAME` says so."""
    for name, value in values.items():
        default = rf"(#[ \t]*ifndef[ \t]+{name}[^\n]*\n[ \t]*#[ \t]*define[ \t]+{name}[ \t]+)-?\d+\b"
        code = re.sub(default, rf"\g<1>{value}", code)
    return code


def _check_same_tokens(
    template: Template, problem: Problem, body: str, code: str, known: Mapping[str, int]
) -> None:
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


def _names_in_use(text: str, template: Template) -> frozenset[str]:
    """Names that the code, the launch or the flags depend on; to be required or preferred is no use."""
    block = find_block(text, template.path)
    before, code = _split_at_block(text, block)
    tables = ("", "[launch]", "[[launch]]", "[build]", "[defines]", "[workspace]")
    title, words = "", set[str]()
    for line in block.toml.splitlines():
        title = line.strip() if line.startswith("[") else title
        words.update(WORD.findall(line) if title in tables else ())
    included = [word for _, header in template.headers for word in _lexed_words(header)]
    return frozenset(words).union(used_words(code), used_words(before), included)


def _lexed_words(text: str) -> set[str]:
    tokens = (token.text for token in lex(text) if token.kind in ("word", "directive"))
    return {word for token in tokens for word in WORD.findall(token)}


def _header_finder(template: Template) -> FindHeader:
    texts = dict(template.headers)

    def find(spelling: str, _includer: str | None, _folders: Sequence[str]) -> HeaderFile | None:
        return HeaderFile(spelling, texts[spelling]) if spelling in texts else None

    return find
