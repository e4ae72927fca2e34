"""A function with names given a meaning: types for type names, values for constants; then folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.fold import fold_expr, fold_statements, int_value
from tunesmith.source.lex import Token
from tunesmith.source.reader.parse import read_expression, read_type
from tunesmith.source.substitution import replace_words, substitute
from tunesmith.source.types import (
    INTEGERS,
    Types,
    canonical_type_name,
    declared_types,
    integer_literal,
    of_type,
    size_of,
    split_arguments,
    type_of,
)

_ALIAS_STEPS = 16
_MAX_TYPE_TEXT = 1000
_LOCAL_ALIAS = re.compile(
    r"(?:using\s+(?P<new>\w+)\s*=\s*(?P<of>[^;]+?)|typedef\s+(?P<old>[^;]+?)\s+(?P<name>\w+))\s*;?"
)
_UNQUALIFIED_WORD = re.compile(r"(?<![\w:])[^\W\d]\w*")
_IS_SAME = re.compile(r"(?:std::)?is_same(?:_v\s*<(?P<v>.*)>|\s*<(?P<value>.*)>::value)")
# template <typename T, typename... Ts> inline constexpr bool is_any = (std::is_same_v<T, Ts> || ...);
_ANY_OF = re.compile(
    r"template\s*<\s*typename (\w+)\s*,\s*typename\s*\.\.\.\s*(\w+)\s*>\s*(?:inline\s+)?constexpr\s+bool\s+"
    r"(\w+)\s*=\s*\(\s*(?:std::)?is_same_v\s*<\s*\1\s*,\s*\2\s*>\s*\|\|\s*\.\.\.\s*\)\s*;?"
)
_ONE_OF = re.compile(r"(\w+)\s*<(.*)>")
_SIZE_OF = re.compile(r"sizeof\s*\(?\s*(\w+(?:\[0\])?)\s*\)?")


@dataclass(frozen=True)
class Meaning:
    types: Mapping[str, c.Type]
    values: Mapping[str, c.Expr]
    language: str = "cuda"
    functions: Mapping[str, c.Call] = field(default_factory=dict)  # template parameters that are functions
    any_of: frozenset[str] = frozenset()  # `is_any<T, float, int>`: whether the first is one of the others

    def with_template(
        self, types: Mapping[str, c.Type], values: Mapping[str, c.Expr], functions: Mapping[str, c.Call] = {}
    ) -> Meaning:
        """Names of the template hide those of the file."""
        outer_types = {name: type_ for name, type_ in self.types.items() if name not in values}
        outer_values = {name: value for name, value in self.values.items() if name not in types}
        hidden = {**outer_types, **types}, {**outer_values, **values}
        return Meaning(*hidden, self.language, {**self.functions, **functions}, self.any_of)

    def type(self, type_: c.Type) -> c.Type:
        for _ in range(_ALIAS_STEPS):
            found = self.types.get(type_.base.removeprefix("typename ").removeprefix("struct "))
            if found is None or found == type_:
                break
            type_ = replace(
                type_,
                base=found.base,
                pointers=type_.pointers + found.pointers,
                const=type_.const or found.const,
                volatile=type_.volatile or found.volatile,
                reference=type_.reference or found.reference,
            )
        if "<" in type_.base or "::" in type_.base:
            type_ = replace(type_, base=self.type_text(type_.base))
        return type_

    def type_text(self, text: str) -> str:
        """Type and value names replaced inside `Vec<T, N>`, template arguments and unread text."""
        for _ in range(_ALIAS_STEPS):
            after = _UNQUALIFIED_WORD.sub(self._word, text)
            if after == text or len(after) > _MAX_TYPE_TEXT:
                break
            text = after
        return canonical_type_name(text, self.language)

    def _word(self, match: re.Match[str]) -> str:
        word = match.group()
        if word in self.types:
            return _type_spelling(self.types[word])
        if word in self.functions:
            called = self.functions[word]
            template = f"<{', '.join(called.template_args)}>" if called.template_args else ""
            return called.function + template
        value = self.values.get(word)
        if isinstance(value, c.Number):
            is_plain = isinstance(value.value, int) and not is_enumerator(value)
            return str(value.value) if is_plain else value.text
        return word


def _type_spelling(type_: c.Type) -> str:
    return ("const " if type_.const else "") + type_.base + "*" * type_.pointers


def is_enumerator(value: c.Expr) -> bool:
    """`Mode::FAST`, a number that keeps its name: the language makes no such type of a plain one."""
    return isinstance(value, c.Number) and "::" in value.text


def file_meaning(source: c.Source) -> Meaning:
    """The file's typedefs, and its constants as far as they come to one number."""
    language = source.language
    types = {name: plain_type(text, language) for name, text in source.aliases}
    values: dict[str, c.Expr] = {}
    resolved = Meaning(types, {}, language)
    for name, value in source.constants:
        folded = fold_expr(substitute(walk.map_types_in(value, resolved.type), values))
        if isinstance(folded, c.Cast) and isinstance(folded.value, c.Number):
            folded = of_type(folded.value, resolved.type(folded.type))
        if isinstance(folded.value if isinstance(folded, c.Cast) else folded, c.Number):
            values[name] = folded
    any_of = frozenset(found[3] for text in source.preamble if (found := _ANY_OF.fullmatch(text)) is not None)
    return Meaning(types, values, language, any_of=any_of)


_QUALIFIERS = ("const", "volatile", "typename")


def plain_type(text: str, language: str) -> c.Type:
    """`*` inside of template arguments is a product, behind them it makes a pointer."""
    at = text.rfind(">") + 1
    inside, behind = text[:at].split(), text[at:].replace("*", " * ").split()
    words = [*inside, *(word for word in behind if word != "*")]
    base = " ".join(word for word in words if word not in _QUALIFIERS).replace("> ::", ">::")
    given = {*inside[:2], *behind}  # const stands before the name, or behind it
    return c.Type(
        canonical_type_name(base, language), behind.count("*"), "const" in given, volatile="volatile" in given
    )


def specialise_function(function: c.Function, meaning: Meaning) -> c.Function:
    """Without its template; `meaning` covers the template's names and the file's."""
    hidden = {parameter.name for parameter in function.parameters}
    local = _local_aliases(function.body, meaning.language)
    for name, type_ in local.items():  # each may name those before it, never itself
        if meaning.types.get(name, resolved := meaning.type(type_)) != resolved:
            raise c.Unreadable(f"'{name}' is one type in the function and another outside of it")
        meaning = meaning.with_template({name: resolved}, {})
    values = {name: value for name, value in meaning.values.items() if name not in hidden}
    body = walk.map_types(function.body, meaning.type)
    body = walk.map_nodes(body, lambda node: _specialise_node(node, meaning))
    body = walk.map_statements(body, on_stmt=lambda stmt: _specialise_verbatim(stmt, meaning))
    body = substitute(body, values)
    parameters = tuple(c.Parameter(meaning.type(p.type), p.name) for p in function.parameters)
    result = meaning.type(function.result)
    changed = replace(function, parameters=parameters, body=body, result=result, template=())
    body = _fold_locals(fold_statements(_with_sizes(changed, body)), 0)
    return replace(changed, body=fold_statements(_with_sizes(changed, body)))


def _with_sizes(function: c.Function, body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
    sizes = declared_sizes(replace(function, body=body))
    return walk.map_nodes(body, lambda node: _known_size(node, sizes))


def _local_aliases(body: tuple[c.Stmt, ...], language: str) -> dict[str, c.Type]:
    found: dict[str, c.Type] = {}
    for node in walk.nodes_in(body):
        if not isinstance(node, c.Verbatim):
            continue
        if (match_ := _LOCAL_ALIAS.fullmatch(node.text.strip())) is not None:
            name, text = match_["new"] or match_["name"], match_["of"] or match_["old"]
            type_ = plain_type(" ".join(text.split()), language)
            if found.setdefault(name, type_) != type_:
                raise c.Unreadable(f"'{name}' is one type here and another in another block", node.line)
    return found


def _specialise_verbatim(stmt: c.Stmt, meaning: Meaning) -> c.Stmt | tuple[c.Stmt, ...]:
    if not isinstance(stmt, c.Verbatim):
        return stmt
    if _LOCAL_ALIAS.fullmatch(stmt.text.strip()):
        return ()  # every use of it is resolved
    if not any(name in meaning.types for name in stmt.names):
        return stmt
    return replace(stmt, text=_types_in_text(stmt.text, meaning))


def _types_in_text(text: str, meaning: Meaning) -> str:
    return replace_words(text, {name: c.Name(_type_spelling(type_)) for name, type_ in meaning.types.items()})


def _specialise_node(node: c.Expr, meaning: Meaning) -> c.Expr:
    match node:
        case c.Call(function=function, template_args=(), of=None) if function in meaning.functions:
            return replace(meaning.functions[function], args=node.args)
        case c.Call(function=function, template_args=texts):
            is_type = "::" in function or "<" in function  # Op::apply, numeric_limits<T>::max
            changed_args = tuple(meaning.type_text(text) for text in texts)
            named = meaning.type_text(function) if is_type else function
            return c.Call(named, node.args, changed_args, node.of)
        case c.Name(name=name) if "::" in name:
            return c.Name(meaning.type_text(name))
        case c.Opaque(text=text, names=names):
            changed = _types_in_text(text, meaning) if any(n in meaning.types for n in names) else text
            same = _IS_SAME.fullmatch(changed)
            if same is not None:
                left, comma, right = (same["v"] or same["value"]).rpartition(",")
                if comma and left.count("<") == left.count(">"):
                    equal = meaning.type_text(left.strip()) == meaning.type_text(right.strip())
                    return integer_literal(int(equal))
            if (asked := _ONE_OF.fullmatch(changed)) is not None and asked[1] in meaning.any_of:
                first, *others = map(meaning.type_text, split_arguments(asked[2]))
                return integer_literal(int(first in others))
            return node if changed == text else c.Opaque(changed, names)
    return node


def declared_sizes(function: c.Function) -> dict[str, int]:
    """Bytes of the variables of a function for which `sizeof(x)` is known."""
    found: dict[str, int] = {}
    declares = (node for node in walk.nodes_in(function.body) if isinstance(node, c.Declare))
    arrays = {declare.name: declare for declare in declares if declare.is_array}
    for name, type_ in declared_types(function).items():
        declare = arrays.get(name)
        pointers = type_.pointers if declare is None else declare.type.pointers
        size = 8 if pointers else size_of(type_.base)
        if size is None:
            continue
        if declare is None:
            found[name] = size
            continue
        dims = [int_value(dim) for dim in declare.dims]
        if len(dims) == 1 and dims[0] is not None:
            found[name], found[f"{name}[0]"] = size * dims[0], size
    return found


def _known_size(node: c.Expr, sizes: Mapping[str, int]) -> c.Expr:
    found = _SIZE_OF.fullmatch(node.text) if isinstance(node, c.Opaque) else None
    return node if found is None or found[1] not in sizes else integer_literal(sizes[found[1]])


def _fold_locals(stmts: tuple[c.Stmt, ...], depth: int) -> tuple[c.Stmt, ...]:
    """Integer constants of a function put where they are used: array sizes and strides need their values."""
    if depth > c.MAX_DEPTH:
        raise c.TooDeep
    done: list[c.Stmt] = []
    values: dict[str, c.Expr] = {}
    changed = walk.assigned_in(stmts)
    for stmt in stmts:
        now = fold_statements(substitute((stmt,), values)) if values else (stmt,)
        now = walk.map_types(now, _in_types(values)) if values else now
        for part in now:
            if isinstance(part, c.Declare):
                values.pop(part.name, None)
                constant = _local_constant(part) if part.name not in changed else None
                if constant is not None:
                    values[part.name] = constant
                    continue
            done.append(walk.map_blocks(part, lambda body: _fold_locals(body, depth + 1)))
    return tuple(done)


def _in_types(values: Mapping[str, c.Expr]) -> Callable[[c.Type], c.Type]:
    """Local constants in template arguments of types: `vec<float, WIDTH>`."""
    known = {name: value for name, value in values.items() if isinstance(value, c.Number)}

    def written(match: re.Match[str]) -> str:
        value = known.get(match.group())
        return match.group() if value is None else str(value.value)

    def type_(type_: c.Type) -> c.Type:
        return replace(type_, base=_UNQUALIFIED_WORD.sub(written, type_.base)) if "<" in type_.base else type_

    return type_


def _local_constant(stmt: c.Declare) -> c.Expr | None:
    if stmt.dims or stmt.storage in ("shared", "dynamic shared") or stmt.init is None or stmt.type.is_pointer:
        return None
    if not (stmt.type.const or stmt.storage == "constexpr") or stmt.type.base not in {*INTEGERS, "auto"}:
        return None
    init = fold_expr(stmt.init)
    if isinstance(init, c.Cast) and isinstance(init.value, c.Number):
        init = init.value
    if not (isinstance(init, c.Number) and isinstance(init.value, int)):
        return None
    return init if stmt.type.base == "auto" else of_type(init, c.Type(stmt.type.base))


def split_entry(entry: str) -> tuple[str, tuple[str, ...]]:
    """`ns::name<float, 128>` as ("name", ("float", "128"))."""
    head, bracket, rest = entry.strip().partition("<")
    name = head.strip().rpartition("::")[2]
    if not bracket:
        return name, ()
    inside = rest.strip().removesuffix(">")
    return name, tuple(split_arguments(inside))


def complete_arguments(
    template: tuple[c.TemplateParameter, ...], texts: tuple[str, ...], source: c.Source
) -> tuple[tuple[str, str], ...]:
    """Each parameter with its argument; a default may name the parameters before it."""
    found: list[tuple[str, str]] = []
    for at, parameter in enumerate(template):
        text = texts[at] if at < len(texts) else parameter.default
        if not text:
            raise c.Unreadable(f"the template parameter {parameter.name} has no argument")
        if at >= len(texts):
            for name, value in found:
                text = re.sub(rf"\b{re.escape(name)}\b", value.replace("\\", "\\\\"), text)
        if parameter.kind == "type":
            text = file_meaning(source).type_text(text)
        found.append((parameter.name, text))
    return tuple(found)


def template_meaning(
    template: tuple[c.TemplateParameter, ...], arguments: tuple[tuple[str, str], ...], source: c.Source
) -> Meaning:
    language, meaning = source.language, file_meaning(source)
    types: dict[str, c.Type] = {}
    values: dict[str, c.Expr] = {}
    functions: dict[str, c.Call] = {}
    for parameter, (name, text) in zip(template, arguments, strict=True):
        if parameter.kind == "type":
            types[name] = meaning.type(read_type(text, language))
            continue
        function, function_args = split_entry(text)
        if any(each.name == function for each in source.functions):
            functions[name] = c.Call(function, (), function_args)
            continue
        value = fold_expr(substitute(read_expression(text, language), meaning.values))
        number = int_value(value)
        if number is None:
            raise c.Unreadable(f"the template argument {text} for {name} is no integer that is known here")
        if is_enumerator(value):
            values[name] = value
            continue
        declared = meaning.type(parameter.type or c.Type("int"))
        declared = types.get(declared.base, declared)
        if (named := meaning.values.get(f"{declared.base}::{text}")) is not None:  # FAST of `enum Mode`
            values[name] = named
            continue
        values[name] = of_type(c.Number(str(number), number), declared)
    return meaning.with_template(types, values, functions)


# -- Which of the file's functions a call means, by name, number and types of its arguments.


_WORD = re.compile(r"[^\W\d]\w*")
_EXPLICIT = re.compile(r"template\s*<\s*>")
_ARITHMETIC = re.compile(r"[\w:()+\-*/%<>=!&|? ]*[\d(+\-*/%][\w:()+\-*/%<>=!&|? ]*")


def own_functions(call: c.Call, source: c.Source) -> list[c.Function]:
    """The file's functions a call may mean, by name and number of arguments."""
    if call.of is not None:
        return []
    named = (f for f in source.functions if f.name == call.function and not f.is_kernel)
    return [function for function in named if len(function.parameters) == len(call.args)]


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
        generic = {parameter.name for parameter in fitting[0].template}
        if any(walk.names_in(value) & (generic | taken) for value in rest):
            return expr
        return replace(expr, args=(*expr.args, *rest))

    return replace(function, body=walk.map_nodes(body, node)) if optional else function


def resolve_call(call: c.Call, types: Types, source: c.Source) -> c.Function | str:
    """The function a call means with its template arguments filled in; a sentence where that is not clear."""
    given = [type_of(arg, types, source.functions, source.language) for arg in call.args]
    named = own_functions(call, source)
    primary = _primary_template(call, named, source)
    written = {id(f): written_for(f, primary, source) for f in named}  # what explicit specialisations are for
    special = [f for f in named if written[id(f)]]
    candidates = [f for f in named if not written[id(f)]]
    if not candidates and primary is not None:  # a template that is only declared
        try:
            texts = canonical_arguments(primary, _deduce_arguments(primary, call, types, source), source)
        except c.Unreadable as trouble:
            return f"{call.function}: {trouble.reason}"
        candidates = [f for f in special if written[id(f)] == texts]
        if len(candidates) == 1:
            return _try_specialise(call, candidates[0], source)
    if len(candidates) != 1:
        # As the language ranks them: a function for just these types, then a template that fits them.
        exact = [f for f in (*candidates, *special) if not f.template and _is_exact_match(f, given)]
        exact = exact or _for_types(candidates, given)
        exact = exact or _find_best_overload(call, given, source)
        candidates = exact or [f for f in candidates if f.template]
    # With template arguments at the call, it means a template or what is written for one.
    fits = [f for f in candidates if not call.template_args or f.template or f.text.startswith("template")]
    if len(fits) > 1 and call.template_args:
        fits = [f for f in fits if _may_be_called(f, call)]
    if len(fits) != 1:
        return f"which {call.function} is called cannot be told from its arguments"
    function = fits[0]
    if not function.template:
        return _try_specialise(call, function, source)
    try:
        texts = _deduce_arguments(function, call, types, source)
        exact = [f for f in special if written[id(f)] == canonical_arguments(function, texts, source)]
        if exact:
            return specialise_function(exact[0], file_meaning(source))
        arguments = complete_arguments(function.template, texts, source)
        return specialise_function(function, template_meaning(function.template, arguments, source))
    except c.Unreadable as trouble:
        return f"{call.function}: {trouble.reason}"


def _try_specialise(call: c.Call, function: c.Function, source: c.Source) -> c.Function | str:
    try:
        return specialise_function(function, file_meaning(source))
    except c.Unreadable as trouble:
        return f"{call.function}: {trouble.reason}"


def _primary_template(call: c.Call, known: list[c.Function], source: c.Source) -> c.Function | None:
    """The one template of that name and number of arguments, defined here or only declared."""
    defined = [f for f in known if f.template]
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
        telling = ((f, a) for f, a in pairs if f.base == parameter.name and f.pointers <= a.pointers)
        texts = {a.base + "*" * (a.pointers - f.pointers) for f, a in telling}
        if len(texts) == 1:
            found.append(texts.pop())
        elif parameter.default and not texts:
            break
        else:
            return ()
    try:
        return canonical_arguments(primary, tuple(found), source)
    except c.Unreadable:
        return ()


def canonical_arguments(template: c.Function, texts: tuple[str, ...], source: c.Source) -> tuple[str, ...]:
    """All arguments of a template, in one way of writing them."""
    whole = complete_arguments(template.template, texts, source)
    return plain_arguments(tuple(text for _, text in whole), source)


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
        expr = values.get(text)
        if expr is None and _ARITHMETIC.fullmatch(text):
            expr = _number_of(text, source.language)
        value = None if expr is None else fold_expr(substitute(expr, values))
        known = None if value is None or is_enumerator(value) else int_value(value)
        done.append(text if known is None else str(known))
    return tuple(done)


def _is_exact_match(function: c.Function, given: list[c.Type | None]) -> bool:
    return all(_is_exact_type(p.type, type_) for p, type_ in zip(function.parameters, given, strict=True))


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
    return [f for f in templates if _is_exact_match(f, given)]


def _find_best_overload(call: c.Call, given: list[c.Type | None], source: c.Source) -> list[c.Function]:
    """The one function that no other can be ranked before: for each argument it has just its type, or the
    same parameter as the others have, and every other lacks the type of some argument where it has it."""
    named = [f for f in source.functions if f.name == call.function]
    if any(f.template or f.specialises or any(p.default for p in f.parameters) for f in named):
        return []
    ours = own_functions(call, source)

    def is_before(one: c.Function, other: c.Function) -> bool:
        pairs = zip(one.parameters, other.parameters, given, strict=True)
        kinds = [(_is_exact_type(a.type, type_), a.type == b.type) for a, b, type_ in pairs]
        return all(same or alike for same, alike in kinds) and any(s and not a for s, a in kinds)

    return [f for f in ours if all(f is other or is_before(f, other) for other in ours)]


def _is_exact_type(formal: c.Type, given: c.Type | None) -> bool:
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


def _deduce_arguments(function: c.Function, call: c.Call, types: Types, source: c.Source) -> tuple[str, ...]:
    """Template arguments: those written at the call, then those its arguments' types tell."""
    texts = list(call.template_args)
    for parameter in function.template[len(texts) :]:
        pairs = zip(function.parameters, call.args, strict=True)
        told = (_deduced_text(parameter.name, formal.type, arg, types, source) for formal, arg in pairs)
        found = {text for text in told if text}
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
        (head, pattern), (name_given, given) = split_entry(formal.base), split_entry(type_.base)
        fits = head == name_given and len(pattern) == len(given)
        return next((g for p, g in zip(pattern, given, strict=True) if p == name), "") if fits else ""
    if formal.base != name:
        return ""
    extra = type_.pointers - formal.pointers
    const = "const " if type_.const and not formal.const and type_.pointers else ""
    return const + type_.base + "*" * extra


# -- The kernel that an entry names: `ns::name<float, 128>` with its template arguments put in place.


_QUALIFIED = re.compile(r"(?:(?<![\w:])::)?[^\W\d]\w*(?:::[^\W\d]\w*)*")
_SIZE = re.compile(r"\{\s*(\w+)\s*\}")


@dataclass(frozen=True)
class BoundKernel:
    function: c.Function  # no template any more, constants folded, types of the file resolved
    source: c.Source
    arguments: tuple[tuple[str, str], ...]  # template parameter -> what the entry binds it to


def bind_kernel(source: c.Source, entry: str) -> BoundKernel | str:
    """The kernel of `name`, `ns::name<float, 128>`; a sentence where the entry cannot be followed."""
    name, texts = split_entry(_without_namespaces(entry, source))
    kernels = [function for function in source.functions if function.is_kernel and function.name == name]
    if not kernels:
        return _explain_missing_kernel(source, name)
    templates = [kernel for kernel in kernels if kernel.template]
    templates = templates or [f for f in source.prototypes if f.name == name]
    needed = [sum(1 for parameter in kernel.template if not parameter.default) for kernel in kernels]
    fitting = [k for k, least in zip(kernels, needed, strict=True) if least <= len(texts) <= len(k.template)]
    if len(templates) == 1 and texts and any(not kernel.template for kernel in kernels):
        fitting = _explicit_specialisations(kernels, templates[0], texts, source) or fitting
    if len(fitting) != 1:
        wanted = " or ".join(str(len(kernel.template)) for kernel in kernels)
        if len(kernels) > 1:
            return f"{len(kernels)} kernels are called {name}, and the entry {entry} does not say which one"
        takes = f"takes {wanted} template arguments"
        return f"the kernel {name} {takes}, and the entry {entry} gives {len(texts)}"
    kernel = fitting[0]
    pairs = list(zip(kernel.template, texts, strict=False))  # none of what is written for these arguments
    for parameter, text in pairs:
        if "{" in text and (not _SIZE.fullmatch(text) or parameter.type is None):
            return f"the entry {entry} computes with a size; a size alone, or a fixed argument, is needed"
    # A size that only the call knows stays the template's own name, as one more parameter of the kernel.
    added = tuple(c.Parameter(p.type, p.name) for p, text in pairs if "{" in text and p.type is not None)
    named = {parameter.name for parameter in added}
    template = tuple(parameter for parameter in kernel.template if parameter.name not in named)
    try:
        arguments = complete_arguments(template, tuple(t for _, t in pairs if "{" not in t), source)
        meaning = template_meaning(template, arguments, source)
        function = specialise_function(kernel, meaning)
    except c.Unreadable as trouble:
        return f"{name} could not be bound to its template arguments: {trouble.reason}"
    used = walk.names_in(function.body)
    shared = tuple(declare for declare in source.shared if declare.name in used)
    parameters = (*function.parameters, *added)
    function = replace(function, parameters=parameters, body=(*shared, *function.body))
    return BoundKernel(function, source, arguments)


def _explicit_specialisations(
    kernels: list[c.Function], primary: c.Function, texts: tuple[str, ...], source: c.Source
) -> list[c.Function]:
    """What is written for just these arguments, `template <> k<float>`; all where that cannot be told."""
    try:
        wanted = canonical_arguments(primary, texts, source)
    except c.Unreadable:
        return kernels
    known = [(kernel, written_for(kernel, primary, source)) for kernel in kernels if not kernel.template]
    if any(not arguments for _, arguments in known):
        return kernels
    return [kernel for kernel, arguments in known if arguments == wanted]


def sizes_of_entry(entry: str) -> tuple[str, ...]:
    """Names in braces that are whole template arguments, `kernel<float, {d}>`, in their order."""
    return tuple(found[1] for text in split_entry(entry)[1] if (found := _SIZE.fullmatch(text)))


def _without_namespaces(entry: str, source: c.Source) -> str:
    """An entry in the words of the file, which is read without its own namespaces."""
    spellings = dict(source.spellings)
    spaces = {name.rpartition("::")[0] for name in spellings}

    def plain(match: re.Match[str]) -> str:
        words = match[0].removeprefix("::").split("::")
        for length in range(len(words), 1, -1):
            if (found := spellings.get("::".join(words[:length]))) is not None:
                return "::".join((found, *words[length:]))
        known = "::".join(words[:-1]) in spaces
        return words[-1] if known else "::".join(words)

    return _QUALIFIED.sub(plain, entry)


def _explain_missing_kernel(source: c.Source, name: str) -> str:
    for reason in source.unread:
        if re.search(rf"\b{re.escape(name)}\b", reason):
            return reason
    if not source.functions and source.unread:
        return source.unread[0]
    others = ", ".join(function.name for function in source.functions if function.is_kernel)
    return f"the source has no kernel {name}" + (f"; it has {others}" if others else "")


# -- Kernels of one name in several namespaces: where a file defines them, and which one a launch means.


KernelScope = tuple[str, ...]  # namespaces that have a name, outermost first


def scopes_at(tokens: Sequence[Token]) -> list[KernelScope]:
    """For each token the namespaces around it."""
    found: list[KernelScope] = []
    open_braces: list[KernelScope] = []  # what each adds
    waiting: KernelScope = ()
    for at, token in enumerate(tokens):
        found.append(tuple(name for names in open_braces for name in names))
        if token.kind == "directive":
            continue
        if token.text == "namespace" and (at == 0 or tokens[at - 1].text != "using"):
            waiting = _names_behind(tokens, at)
        elif token.text == "{":
            open_braces.append(waiting)
            waiting = ()
        elif token.text == "}" and open_braces:
            open_braces.pop()
    return found


def _names_behind(tokens: Sequence[Token], at: int) -> KernelScope:
    names: list[str] = []
    for token in tokens[at + 1 :]:
        if token.text == "{":
            return tuple(names)
        if token.text in (";", "="):
            break
        if token.kind == "word" and token.text != "inline":
            names.append(token.text)
    return ()


def kernel_definitions(tokens: Sequence[Token], name: str) -> frozenset[KernelScope]:
    """The namespaces in which `__global__ ... name(...) { ... }` stands; declarations do not count."""
    scopes = scopes_at(tokens)
    marked = (at for at, token in enumerate(tokens) if token.text == "__global__")
    return frozenset(scopes[at] for at in marked if _is_definition_of(tokens, at + 1, name))


def _is_definition_of(tokens: Sequence[Token], at: int, name: str) -> bool:
    is_named, depth = False, 0
    for number in range(at, len(tokens)):
        text = tokens[number].text
        if depth == 0 and text in (";", "{"):
            return is_named and text == "{"
        if depth == 0 and text == name and number + 1 < len(tokens) and tokens[number + 1].text == "(":
            is_named = True
        depth += (text == "(") - (text == ")")
    return False


def launched_scope(
    around: KernelScope, written: Sequence[str], definitions: Set[KernelScope]
) -> KernelScope | None:
    """Of the kernel that a launch means by `written` qualifiers ("" first: from the top); None: it is not
    among those that are defined here."""
    if written and not written[0]:
        scope = tuple(written[1:])
        return scope if scope in definitions else None
    for count in range(len(around), -1, -1):
        if (scope := (*around[:count], *written)) in definitions:
            return scope
    return None
