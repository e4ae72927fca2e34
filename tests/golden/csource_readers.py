"""What `tunesmith.source` makes of pieces of C, as text: the readers of cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache

from tests.core.source.reading import expression_of, source_of, statements_of
from tunesmith.source import tree as c
from tunesmith.source.effects import (
    Effects,
    Program,
    effects_of,
    function_effects,
    is_pure,
    join_effects,
    of_assembly,
)
from tunesmith.source.fold import fold_expr, fold_statements, int_value
from tunesmith.source.inline import find_identifiers, in_words_of, inline_calls, with_bit_copies, with_helpers
from tunesmith.source.lex import lay_out_tokens, lex
from tunesmith.source.preprocess import Predefined, define_macro_values, fold_macro_bodies, preprocess
from tunesmith.source.printing import print_expr, print_function, print_statements, print_type, wrap_line
from tunesmith.source.reader.parse import read_expression, read_source_tree
from tunesmith.source.reader.templates import bind_kernel
from tunesmith.source.substitution import ArgumentPassing, Changes, is_plain_place, substitute
from tunesmith.source.tree import Language
from tunesmith.source.types import declared_types, integer_literal, type_of
from tunesmith.source.walk import root_variable, statements_in

Reader = Callable[..., Iterable[str]]
Told = object  # what a reader is told and does not ask for


def on_one_line(stmts: Sequence[c.Stmt], language: Language = "cuda") -> str:
    return " ".join(print_statements(stmts, 0, language).split())


# -- reading and printing


def tree(value: object) -> str:
    """`Index(p Binary(+ i 1))`: types as they are printed, what is as usual left out."""
    match value:
        case c.Name(name):
            return name
        case c.Number(text, number):
            return text if text == str(number) else f"{text}={number!r}"
        case c.Type():
            return f"<{print_type(value, '').strip()}>"
        case tuple():
            return f"[{' '.join(map(tree, value))}]"
        case frozenset():
            return f"{{{' '.join(sorted(map(str, value)))}}}"
        case _ if is_dataclass(value):
            told, in_order = [], True
            for field in fields(value):
                part = getattr(value, field.name)
                if field.compare and part != field.default:
                    told.append(tree(part) if in_order else f"{field.name}={tree(part)}")
                in_order = in_order and part != field.default
            return f"{type(value).__name__}({' '.join(told)})"
        case _:
            return str(value)


def read_trees(text: str, language: Language, before: str = "", **_: Told) -> Iterator[str]:
    yield from map(tree, statements_of(text, language, before))


def read_expression_tree(text: str, language: Language, before: str = "", **_: Told) -> Iterator[str]:
    yield tree(expression_of(text, language, before))


def read_file(text: str, language: Language, **_: Told) -> Iterator[str]:
    """All that is known of a file but the texts of its functions."""
    source = read_source_tree(text, language)
    for function in source.functions:
        template = f"template {tree(function.template)} " if function.template else ""
        kind = "kernel " if function.is_kernel else ""
        parameters = ", ".join(tree(p) for p in function.parameters)
        yield f"line {function.line}: {template}{kind}{tree(function.result)} {function.name}({parameters})"
        yield from (f"  line {stmt.line}: {tree(stmt)}" for stmt in function.body)
        if function.comments:
            yield f"  said of it: {[one.text for one in function.comments]}"
    for name in ("includes", "preamble", "shared", "records", "prototypes", "spellings", "unread", "decided"):
        for part in getattr(source, name):
            shown = part.name if isinstance(part, c.Record | c.Function) else tree(part)
            yield f"{name}: {' '.join(shown.split())}"
    yield from (f"constant {name}: {tree(value)}" for name, value in source.constants)
    yield from (f"alias {name}: {name_there}" for name, name_there in source.aliases)


def read_statements(text: str, language: Language, before: str = "", **_: Told) -> Iterator[str]:
    yield print_statements(statements_of(text, language, before), 0, language).rstrip("\n")


def read_printed(text: str, language: Language, before: str = "", **_: Told) -> Iterator[str]:
    yield print_expr(expression_of(f"({text})", language, before), language)


def read_comments(text: str, language: Language, before: str = "", **_: Told) -> Iterator[str]:
    """Whose each comment is: by the line of its statement."""
    for stmt in statements_in(statements_of(text, language, before)):
        for comment in stmt.comments:
            place = "behind" if comment.behind else "before"
            yield f"line {comment.line - 3}, {place} {type(stmt).__name__}: {comment.text}"


def read_wrapped(text: str, width: int = 60, **_: Told) -> Iterator[str]:
    yield from wrap_line(text, width)


def read_words(text: str, **_: Told) -> Iterator[str]:
    for token in lex(text):
        yield f"line {token.line}: {token.kind} {token.text!r}"


# -- the preprocessor


def read_preprocessed(
    text: str,
    language: Language,
    defines: Sequence[tuple[str, str]] = (),
    headers: dict[str, str] | None = None,
    compiler: dict[str, str] | None = None,
    **_: Told,
) -> Iterator[str]:
    state = Predefined(tuple(compiler.items()), "nvcc") if compiler is not None else None
    about = {"predefined": state} if state else {}
    pairs = tuple((name, value) for name, value in defines)
    done = preprocess(text, language, pairs, headers=(headers or {}).items(), **about)
    yield lay_out_tokens(done.tokens, 1).strip("\n")
    yield from (f"include: {name}" for name in done.includes)
    yield from (f"problem: {problem}" for problem in done.problems)
    yield from (f"decided: {line}" for line in done.decided)


def read_resolved(
    text: str, values: dict[str, int], early: Sequence[str] = (), fold: bool = False, **_: Told
) -> Iterator[str]:
    done = fold_macro_bodies(text, values) if fold else define_macro_values(text, values, early=early)
    yield from (line for line in done.splitlines() if line.strip())


# -- kernels by themselves


def read_bound(text: str, language: Language, entries: Sequence[str] = ("k",), **_: Told) -> Iterator[str]:
    for entry in entries:
        found = bind_kernel(read_source_tree(text, language), entry)
        if len(entries) > 1:
            yield f"-- {entry}"
        if isinstance(found, str):
            yield found
            continue
        if found.arguments:
            yield "with " + ", ".join(f"{name} = {value}" for name, value in found.arguments)
        yield print_function(found.function, language).strip("\n")


def read_inlined(text: str, language: Language, entries: Sequence[str] = ("k",), **_: Told) -> Iterator[str]:
    """The kernel's statements with calls put in place, and why others stay."""
    source = read_source_tree(text, language)
    yield from (f"not read: {reason}" for reason in source.unread)
    for entry in entries if not source.unread or source.functions else ():
        bound = bind_kernel(source, entry)
        if len(entries) > 1:
            yield f"-- {entry}"
        if isinstance(bound, str):
            yield bound
            continue
        done = inline_calls(bound.function, bound.source)
        yield print_statements(done.function.body, 0, language).rstrip("\n")
        yield from (f"note: {note}" for note in done.notes)


def read_names(text: str, language: Language, entries: Sequence[str] = ("k",), **_: Told) -> Iterator[str]:
    """What functions are called by now and what they do; then the kernel with calls put in place."""
    for function in read_source_tree(text, language).functions:
        if not function.is_kernel:
            yield f"{function.name}: {on_one_line(function.body, language)}"
    yield from read_inlined(text, language, entries)


def read_kernel_text(text: str, language: Language, **_: Told) -> Iterator[str]:
    yield source_of(text, language).functions[-1].text


def read_outlined(text: str, language: Language, **_: Told) -> Iterator[str]:
    done = with_helpers(source_of(text, language))
    for function in done.functions:
        yield print_function(function, language).strip("\n") if function.is_kernel else function.text


def read_bit_copies(text: str, language: Language, before: str = "", **_: Told) -> Iterator[str]:
    yield on_one_line(with_bit_copies(statements_of(text, language, before)))


# -- what is known of parts


def read_types(text: str, language: Language, body: str, before: str, **_: Told) -> Iterator[str]:
    source = source_of(f"{before}\n{body.replace('VALUE', text)}", language)
    function = source.functions[-1]
    value = next(s.value for s in statements_in(function.body) if isinstance(s, c.Return))
    found = type_of(value, declared_types(function), source.functions, language)
    yield "?" if found is None else print_type(found, "").strip()


def read_changes(text: str, language: Language, before: str, parameters: str, **_: Told) -> Iterator[str]:
    source = source_of(f"{before}\n__device__ void own({parameters}) {{ {text} }}\n", language)
    (function,) = (each for each in source.functions if each.name == "own")
    changes = Changes(source)
    found = changes.of(function.body)
    parts = [f"changes {' '.join(sorted(found.whole))}" if found.whole else ""]
    parts.append(f"through {' '.join(sorted(found.through))}" if found.through else "")
    parts.append("stores" if changes.stores(function) else "")
    addressed = sorted(changes.addressed(function.body))
    parts.append(f"has other names for {' '.join(addressed)}" if addressed else "")
    given_back = [p.name for p in function.parameters if found.parameter(p)]
    parts.append(f"of parameters {' '.join(given_back)}" if given_back else "")
    yield "; ".join(filter(None, parts)) or "nothing"


def read_arguments(
    text: str, language: Language, types: dict[str, str], updated: str = "", aliased: str = "", **_: Told
) -> Iterator[str]:
    """`float v | return v; | a`: what goes into the body as it stands, and what by a copy."""
    head, body, args = text.split(" | ")
    source = source_of(f"__device__ float own({head}) {{ {body} }}\n", language)
    known = {name: type_in(type_) for name, type_ in types.items()}
    call = read_expression(f"own({args})")
    assert isinstance(call, c.Call)
    handed = ArgumentPassing(
        source.functions[0], call.args, Changes(source), known,
        lambda expr: type_of(expr, known, source.functions), updated, frozenset(aliased.split()),
    )  # fmt: skip
    for parameter, arg in zip(handed.function.parameters, handed.args, strict=True):
        way = "as it stands" if handed.goes_in_directly(parameter, arg) else "a copy"
        moves = ", moves" if is_plain_place(arg) and handed.moves(parameter, arg) else ""
        yield f"{parameter.name}: {way}{moves}"


def type_in(text: str) -> c.Type:
    return c.Type(text.rstrip(" *"), text.count("*"))


def read_folded(text: str, language: Language, values: dict[str, int], **_: Told) -> Iterator[str]:
    known: dict[str, c.Expr] = {name: integer_literal(value) for name, value in values.items()}
    yield print_expr(fold_expr(substitute(expression_of(text, language), known)))


def read_folded_statements(text: str, language: Language, values: dict[str, int], **_: Told) -> Iterator[str]:
    known: dict[str, c.Expr] = {name: integer_literal(value) for name, value in values.items()}
    stmts = substitute(statements_of(text, language), known)
    yield print_statements(fold_statements(stmts)).rstrip("\n")


def read_integer(text: str, language: Language, values: dict[str, int], **_: Told) -> Iterator[str]:
    yield str(int_value(expression_of(text, language), values))


def read_root(text: str, language: Language, **_: Told) -> Iterator[str]:
    name, through = root_variable(expression_of(text, language))
    yield f"{name}, through memory" if through else str(name)


def read_spoken(text: str, source: str, **_: Told) -> Iterator[str]:
    yield in_words_of(find_identifiers(source), text)


# -- effects


def names_of(effects: Effects) -> str:
    return " ".join(e.name for e in Effects if e.name and e in effects and e.value.bit_count() == 1) or "none"


def read_effects_of_functions(text: str, **_: Told) -> Iterator[str]:
    """Functions that all have the same effects."""
    yield "; ".join(dict.fromkeys(names_of(function_effects(name)) for name in text.split()))


def read_effects_of_registers(text: str, **_: Told) -> Iterator[str]:
    found = [join_effects(of_assembly(f'asm("mov.u32 %0, %%{name};" : "=r"(a));')) for name in text.split()]
    found += [
        join_effects(of_assembly(f'asm volatile("{{ .reg .u32 t; mov.u32 t, %{name}; }}");'))
        for name in text.split()
    ]
    yield "; ".join(dict.fromkeys(map(names_of, found)))


def read_effects_of_assembly(text: str, **_: Told) -> Iterator[str]:
    yield names_of(join_effects(of_assembly(text)))


@cache
def program_of(file: str, language: Language) -> Program:
    return Program.of(read_source_tree(file, language))


def read_effects(text: str, language: Language, file: str, **_: Told) -> Iterator[str]:
    expr = read_expression(text)
    yield names_of(effects_of(expr, program_of(file, language))) + ("" if is_pure(expr) else ", not pure")


CSOURCE: dict[str, Reader] = {
    "arguments": read_arguments,
    "bind": read_bound,
    "bit_copies": read_bit_copies,
    "changes": read_changes,
    "comments": read_comments,
    "effects": read_effects,
    "effects of assembly": read_effects_of_assembly,
    "effects of functions": read_effects_of_functions,
    "effects of registers": read_effects_of_registers,
    "expression": read_expression_tree,
    "file": read_file,
    "fold": read_folded,
    "fold statements": read_folded_statements,
    "inline": read_inlined,
    "integer": read_integer,
    "kernel text": read_kernel_text,
    "names": read_names,
    "outlined": read_outlined,
    "preprocess": read_preprocessed,
    "printed": read_printed,
    "resolve": read_resolved,
    "root": read_root,
    "spoken": read_spoken,
    "statements": read_statements,
    "trees": read_trees,
    "types": read_types,
    "words": read_words,
    "wrap": read_wrapped,
}
