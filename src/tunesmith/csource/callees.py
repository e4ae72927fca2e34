"""Which of the file's functions a call means, by name, number and types of its arguments."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import fold, int_value
from tunesmith.csource.parse import read_expression
from tunesmith.csource.specialise import (
    complete_arguments,
    file_meaning,
    is_enumerator,
    specialise,
    split_entry,
    template_meaning,
)
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import Types, type_of

_WORD = re.compile(r"[^\W\d]\w*")
_EXPLICIT = re.compile(r"template\s*<\s*>")
_ARITHMETIC = re.compile(r"[\w:()+\-*/%<>=!&|? ]*[\d(+\-*/%][\w:()+\-*/%<>=!&|? ]*")


def own_functions(call: c.Call, source: c.Source) -> list[c.Function]:
    """The file's functions a call may mean, by name and number of arguments."""
    if call.of is not None:
        return []
    return [
        function
        for function in source.functions
        if function.name == call.function
        and len(function.parameters) == len(call.args)
        and not function.is_kernel
    ]


def has_open_result(call: c.Call, source: c.Source) -> bool:
    """Whether what it gives back is told only with the template arguments of this call."""
    named = own_functions(call, source)
    return any(p.name in _WORD.findall(f.result.base) for f in named for p in f.template)


def with_defaults(function: c.Function, source: c.Source) -> c.Function:
    """Calls of the file's functions with the arguments that only their declarations name."""
    body = function.body
    taken = {p.name for p in function.parameters} | set(walk.declared_in(body))
    optional = {f.name for f in source.functions if any(p.default is not None for p in f.parameters)}

    def node(expr: c.Expr) -> c.Expr:
        if not isinstance(expr, c.Call) or expr.of is not None or expr.function not in optional:
            return expr
        named = [f for f in source.functions if f.name == expr.function and not f.is_kernel]
        given = len(expr.args)
        if any(len(f.parameters) <= given for f in named):
            return expr  # one of them takes just these, and the language weighs it against the others
        fitting = [f for f in named if all(p.default is not None for p in f.parameters[given:])]
        if len(fitting) != 1:
            return expr
        rest = [p.default for p in fitting[0].parameters[given:] if p.default is not None]
        own = {parameter.name for parameter in fitting[0].template}
        if any(walk.names_in(value) & (own | taken) for value in rest):
            return expr
        return replace(expr, args=(*expr.args, *rest))

    return replace(function, body=walk.map_nodes(body, node)) if optional else function


def resolve(call: c.Call, types: Types, source: c.Source) -> c.Function | str:
    """The function a call means with its template arguments filled in; a sentence where that is not clear."""
    given = [type_of(arg, types, source.functions, source.language) for arg in call.args]
    own = own_functions(call, source)
    primary = _primary(call, own, source)
    written = {id(f): written_for(f, primary, source) for f in own}  # what explicit specialisations are for
    special = [f for f in own if written[id(f)]]
    candidates = [f for f in own if not written[id(f)]]
    if not candidates and primary is not None:  # a template that is only declared
        try:
            texts = plain(primary, _deduced(primary, call, types, source), source)
        except c.Unreadable as trouble:
            return f"{call.function}: {trouble.reason}"
        candidates = [f for f in special if written[id(f)] == texts]
        if len(candidates) == 1:
            return _specialised(call, candidates[0], source)
    if len(candidates) != 1:
        # As the language ranks them: a function for just these types, then a template that fits them.
        exact = [f for f in (*candidates, *special) if not f.template and _matches(f, given)]
        exact = exact or _for_types(candidates, given)
        candidates = exact or _better(call, given, source) or [f for f in candidates if f.template]
    # With template arguments at the call, it means a template or what is written for one.
    fits = [f for f in candidates if not call.template_args or f.template or f.text.startswith("template")]
    if len(fits) > 1 and call.template_args:
        fits = [f for f in fits if _may_be_called(f, call)]
    if len(fits) != 1:
        return f"which {call.function} is called cannot be told from its arguments"
    function = fits[0]
    if not function.template:
        return _specialised(call, function, source)
    try:
        texts = _deduced(function, call, types, source)
        exact = [f for f in special if written[id(f)] == plain(function, texts, source)]
        if exact:
            return specialise(exact[0], file_meaning(source))
        arguments = complete_arguments(function.template, texts, source)
        return specialise(function, template_meaning(function.template, arguments, source))
    except c.Unreadable as trouble:
        return f"{call.function}: {trouble.reason}"


def _specialised(call: c.Call, function: c.Function, source: c.Source) -> c.Function | str:
    try:
        return specialise(function, file_meaning(source))
    except c.Unreadable as trouble:
        return f"{call.function}: {trouble.reason}"


def _primary(call: c.Call, own: list[c.Function], source: c.Source) -> c.Function | None:
    """The one template of that name and number of arguments, defined here or only declared."""
    defined = [f for f in own if f.template]
    if not defined:
        named = [f for f in source.prototypes if f.name == call.function]
        defined = [f for f in named if len(f.parameters) == len(call.args)]
    return defined[0] if len(defined) == 1 else None


def written_for(function: c.Function, primary: c.Function | None, source: c.Source) -> tuple[str, ...]:
    """The template arguments that an explicit specialisation is for: listed, told by its signature, or the
    template's defaults. (): it is none, or of what is not known."""
    if function.template or not (function.specialises or _EXPLICIT.match(function.text)):
        return ()
    if primary is None:
        return plain_arguments(function.specialises, source)
    found = list(function.specialises)
    formals = (primary.result, *(p.type for p in primary.parameters))
    actuals = (function.result, *(p.type for p in function.parameters))
    for parameter in primary.template[len(found) :]:
        pairs = zip(formals, actuals, strict=True)
        texts = {_shown(a, f) for f, a in pairs if f.base == parameter.name and f.pointers <= a.pointers}
        if len(texts) == 1:
            found.append(texts.pop())
        elif parameter.default and not texts:
            break
        else:
            return ()
    try:
        return plain(primary, tuple(found), source)
    except c.Unreadable:
        return ()


def plain(template: c.Function, texts: tuple[str, ...], source: c.Source) -> tuple[str, ...]:
    """All arguments of a template, in one way of writing them."""
    whole = complete_arguments(template.template, texts, source)
    return plain_arguments(tuple(text for _, text in whole), source)


def _shown(actual: c.Type, formal: c.Type) -> str:
    return actual.base + "*" * (actual.pointers - formal.pointers)


@lru_cache(maxsize=512)
def _number_of(text: str, language: c.Language) -> c.Expr | None:
    try:
        return read_expression(text, language)
    except c.Unreadable:
        return None


def plain_arguments(texts: tuple[str, ...], source: c.Source) -> tuple[str, ...]:
    """Template arguments, with the number in place of one that comes to a number."""
    values = file_meaning(source).values if texts else {}
    done: list[str] = []
    for text in texts:
        expr = values.get(text) or (
            _number_of(text, source.language) if _ARITHMETIC.fullmatch(text) else None
        )
        value = None if expr is None else fold(substitute(expr, values))
        known = None if value is None or is_enumerator(value) else int_value(value)
        done.append(text if known is None else str(known))
    return tuple(done)


def _matches(function: c.Function, given: list[c.Type | None]) -> bool:
    return all(_is(p.type, type_) for p, type_ in zip(function.parameters, given, strict=True))


def _for_types(candidates: list[c.Function], given: list[c.Type | None]) -> list[c.Function]:
    """Templates, `template <int width = 32> float sum(float x)`, of which just one has these very types.

    Their parameters' types hang on no template argument, so the others would need a conversion.
    """
    templates = [f for f in candidates if f.template]
    if len(templates) < 2 or len(templates) != len(candidates):
        return []
    for one in templates:
        named = {parameter.name for parameter in one.template}
        if any(set(_WORD.findall(p.type.base)) & named for p in one.parameters):
            return []
    return [f for f in templates if _matches(f, given)]


def _better(call: c.Call, given: list[c.Type | None], source: c.Source) -> list[c.Function]:
    """The one function that no other can be ranked before: for each argument it has just its type, or the
    same parameter as the others have, and every other lacks the type of some argument where it has it."""
    named = [f for f in source.functions if f.name == call.function]
    if any(f.template or f.specialises or any(p.default for p in f.parameters) for f in named):
        return []
    ours = own_functions(call, source)

    def is_before(one: c.Function, other: c.Function) -> bool:
        pairs = zip(one.parameters, other.parameters, given, strict=True)
        kinds = [(_is(a.type, type_), a.type == b.type) for a, b, type_ in pairs]
        return all(same or alike for same, alike in kinds) and any(s and not a for s, a in kinds)

    return [f for f in ours if all(f is other or is_before(f, other) for other in ours)]


def _is(formal: c.Type, given: c.Type | None) -> bool:
    return given is not None and (formal.base, formal.pointers) == (given.base, given.pointers)


def _may_be_called(function: c.Function, call: c.Call) -> bool:
    """Not a template with a parameter that is nowhere in its arguments, has no default and is not given."""
    header = function.text.partition("{")[0]
    behind = header[header.rfind(function.name) :] if function.name in header else header
    if not function.template or "..." in header:
        return True
    if len(call.template_args) > len(function.template):
        return False
    rest = function.template[len(call.template_args) :]
    return all(one.default or re.search(rf"\b{re.escape(one.name)}\b", behind) for one in rest)


def _deduced(function: c.Function, call: c.Call, types: Types, source: c.Source) -> tuple[str, ...]:
    """Template arguments: those written at the call, then those its arguments' types tell."""
    texts = list(call.template_args)
    for parameter in function.template[len(texts) :]:
        found = {
            text
            for formal, arg in zip(function.parameters, call.args, strict=True)
            if (text := _deduced_text(parameter.name, formal.type, arg, types, source))
        }
        if len(found) == 1:
            texts.append(found.pop())
        elif parameter.default and not found:
            known = complete_arguments(function.template[: len(texts) + 1], tuple(texts), source)
            texts.append(known[-1][1])
        else:
            raise c.Unreadable(f"its template parameter {parameter.name} cannot be told from the arguments")
    return tuple(texts)


def _deduced_text(name: str, formal: c.Type, arg: c.Expr, types: Types, source: c.Source) -> str:
    type_ = type_of(arg, types, source.functions, source.language)
    if type_ is None or type_.pointers < formal.pointers:
        return ""
    if "<" in formal.base and formal.pointers == type_.pointers:  # vec<T, N> of vec<float, 4>
        (head, pattern), (own, given) = split_entry(formal.base), split_entry(type_.base)
        fits = head == own and len(pattern) == len(given)
        return next((g for p, g in zip(pattern, given, strict=True) if p == name), "") if fits else ""
    if formal.base != name:
        return ""
    extra = type_.pointers - formal.pointers
    const = "const " if type_.const and not formal.const and type_.pointers else ""
    return const + type_.base + "*" * extra
