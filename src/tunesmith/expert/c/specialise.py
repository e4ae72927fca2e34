"""A function with names given a meaning: types for type names, values for constants; then folded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tunesmith.expert.c.fold import fold, fold_statements, int_value
from tunesmith.expert.c.infer import declared_types
from tunesmith.expert.c.nodes import (
    Call,
    Cast,
    Declare,
    Expr,
    For,
    Function,
    If,
    Name,
    Number,
    Opaque,
    Parameter,
    Scope,
    Source,
    Stmt,
    Type,
    Verbatim,
    While,
)
from tunesmith.expert.c.numbers import integer, of_type
from tunesmith.expert.c.substitution import replace_words, substitute
from tunesmith.expert.c.type_names import canonical, size_of
from tunesmith.expert.c.unreadable import MAX_DEPTH, TooDeep
from tunesmith.expert.c.walk import assigned_in, map_expr, map_statements, map_types, map_types_in, nodes_in

_ALIAS_STEPS = 16
_MAX_TYPE_TEXT = 1000
_INTEGERS = frozenset({
    "int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "size_t", "bool",
    "int32_t", "uint32_t", "int64_t", "uint64_t", "short", "unsigned short", "char", "unsigned char",
})  # fmt: skip
_LOCAL_ALIAS = re.compile(
    r"(?:using\s+(?P<new>\w+)\s*=\s*(?P<of>[^;]+?)|typedef\s+(?P<old>[^;]+?)\s+(?P<name>\w+))\s*;?"
)
_IS_SAME = re.compile(r"(?:std::)?is_same(?:_v\s*<(?P<v>.*)>|\s*<(?P<value>.*)>::value)")
_SIZE_OF = re.compile(r"sizeof\s*\(?\s*(\w+(?:\[0\])?)\s*\)?")


@dataclass(frozen=True)
class Meaning:
    types: Mapping[str, Type]
    values: Mapping[str, Expr]
    language: str = "cuda"
    functions: Mapping[str, Call] = field(default_factory=dict)  # template parameters that are functions

    def with_template(
        self,
        types: Mapping[str, Type],
        values: Mapping[str, Expr],
        functions: Mapping[str, Call] | None = None,
    ) -> Meaning:
        hidden = set(types) | set(values)
        kept_types = {name: type_ for name, type_ in self.types.items() if name not in hidden}
        kept_values = {name: value for name, value in self.values.items() if name not in hidden}
        given = {**self.functions, **(functions or {})}
        return Meaning(kept_types | dict(types), kept_values | dict(values), self.language, given)

    def type(self, type_: Type) -> Type:
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
            after = re.sub(r"(?<![\w:])[^\W\d]\w*", self._word, text)
            if after == text or len(after) > _MAX_TYPE_TEXT:
                break
            text = after
        return canonical(text, self.language)

    def _word(self, match: re.Match[str]) -> str:
        word = match.group()
        if word in self.types:
            found = self.types[word]
            return ("const " if found.const else "") + found.base + "*" * found.pointers
        if word in self.functions:
            called = self.functions[word]
            template = f"<{', '.join(called.template_args)}>" if called.template_args else ""
            return called.function + template
        value = self.values.get(word)
        if isinstance(value, Number):
            return str(value.value) if isinstance(value.value, int) else value.text
        return word


def file_meaning(source: Source) -> Meaning:
    """The file's typedefs, and its constants as far as they come to one number."""
    language = source.language
    types = {name: _plain_type(text, language) for name, text in source.aliases}
    values: dict[str, Expr] = {}
    resolved = Meaning(types, {}, language)
    for name, value in source.constants:
        folded = fold(substitute(map_types_in(value, resolved.type), values))
        if isinstance(folded, Cast) and isinstance(folded.value, Number):
            folded = of_type(folded.value, resolved.type(folded.type))
        if isinstance(folded, Number) or (isinstance(folded, Cast) and isinstance(folded.value, Number)):
            values[name] = folded
    return Meaning(types, values, language)


def _plain_type(text: str, language: str) -> Type:
    words = text.replace("*", " * ").split()
    base = " ".join(word for word in words if word not in ("const", "volatile", "*", "typename"))
    return Type(canonical(base, language), words.count("*"), "const" in words, volatile="volatile" in words)


def specialise(function: Function, meaning: Meaning) -> Function:
    """Without its template; `meaning` covers the template's names and the file's."""
    own = {parameter.name for parameter in function.parameters}
    local = _local_aliases(function.body, meaning.language)
    for name, type_ in local.items():  # each may name those before it, never itself
        meaning = meaning.with_template({name: meaning.type(type_)}, {})
    values = {name: value for name, value in meaning.values.items() if name not in own}
    body = map_types(function.body, meaning.type)
    body = map_statements(
        body,
        lambda expr: map_expr(expr, lambda node: _texts(node, meaning)),
        lambda stmt: _verbatim(stmt, meaning),
    )
    body = substitute(body, values)
    parameters = tuple(Parameter(meaning.type(p.type), p.name) for p in function.parameters)
    changed = replace(
        function, parameters=parameters, body=body, result=meaning.type(function.result), template=()
    )
    body = _fold_locals(fold_statements(_with_sizes(changed, body)), 0)
    return replace(changed, body=fold_statements(_with_sizes(changed, body)))


def _with_sizes(function: Function, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    sizes = declared_sizes(replace(function, body=body))
    return map_statements(body, lambda expr: map_expr(expr, lambda node: _known_size(node, sizes)))


def _local_aliases(body: tuple[Stmt, ...], language: str) -> dict[str, Type]:
    found: dict[str, Type] = {}
    for node in nodes_in(body):
        match_ = _LOCAL_ALIAS.fullmatch(node.text.strip()) if isinstance(node, Verbatim) else None
        if match_ is not None:
            name, text = match_["new"] or match_["name"], match_["of"] or match_["old"]
            found[name] = _plain_type(" ".join(text.split()), language)
    return found


def _verbatim(stmt: Stmt, meaning: Meaning) -> Stmt | tuple[Stmt, ...]:
    if not isinstance(stmt, Verbatim):
        return stmt
    if _LOCAL_ALIAS.fullmatch(stmt.text.strip()):
        return ()  # every use of it is resolved
    if not any(name in meaning.types for name in stmt.names):
        return stmt
    return replace(stmt, text=_types_in_text(stmt.text, meaning))


def _types_in_text(text: str, meaning: Meaning) -> str:
    names = {
        name: Name(("const " if t.const else "") + t.base + "*" * t.pointers)
        for name, t in meaning.types.items()
    }
    return replace_words(text, names)


def _texts(node: Expr, meaning: Meaning) -> Expr:
    match node:
        case Call(function=function, template_args=()) if function in meaning.functions:
            return replace(meaning.functions[function], args=node.args)
        case Call(function=function, template_args=texts):
            name = function
            if "::" in function or "<" in function:  # Op::apply, numeric_limits<T>::max
                name = meaning.type_text(function)
            return replace(
                node, function=name, template_args=tuple(meaning.type_text(text) for text in texts)
            )
        case Name(name=name) if "::" in name:
            return Name(meaning.type_text(name))
        case Opaque(text=text, names=names):
            changed = _types_in_text(text, meaning) if any(n in meaning.types for n in names) else text
            same = _IS_SAME.fullmatch(changed)
            if same is not None:
                left, comma, right = (same["v"] or same["value"]).rpartition(",")
                if comma and left.count("<") == left.count(">"):
                    equal = meaning.type_text(left.strip()) == meaning.type_text(right.strip())
                    return integer(int(equal))
            return node if changed == text else Opaque(changed, names)
        case _:
            return node


def declared_sizes(function: Function) -> dict[str, int]:
    """Bytes of the variables of a function for which `sizeof(x)` is known."""
    found: dict[str, int] = {}
    arrays = {
        node.name: node for node in nodes_in(function.body) if isinstance(node, Declare) and node.is_array
    }
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


def _known_size(node: Expr, sizes: Mapping[str, int]) -> Expr:
    if isinstance(node, Opaque):
        match_ = _SIZE_OF.fullmatch(node.text)
        if match_ is not None and match_[1] in sizes:
            return integer(sizes[match_[1]])
    return node


def _fold_locals(stmts: tuple[Stmt, ...], depth: int) -> tuple[Stmt, ...]:
    """Integer constants of a function put where they are used: array sizes and strides need their values."""
    if depth > MAX_DEPTH:
        raise TooDeep
    done: list[Stmt] = []
    values: dict[str, Expr] = {}
    changed = assigned_in(stmts)
    for stmt in stmts:
        now = fold_statements(substitute((stmt,), values)) if values else (stmt,)
        for part in now:
            if isinstance(part, Declare):
                values.pop(part.name, None)
                constant = _local_constant(part) if part.name not in changed else None
                if constant is not None:
                    values[part.name] = constant
                    continue
            done.append(_inside(part, depth + 1))
    return tuple(done)


def _inside(stmt: Stmt, depth: int) -> Stmt:
    match stmt:
        case If(then=then, otherwise=otherwise):
            return replace(stmt, then=_fold_locals(then, depth), otherwise=_fold_locals(otherwise, depth))
        case For(body=body) | While(body=body) | Scope(body=body):
            return replace(stmt, body=_fold_locals(body, depth))
        case _:
            return stmt


def _local_constant(stmt: Declare) -> Expr | None:
    if stmt.dims or stmt.storage in ("shared", "dynamic shared") or stmt.init is None or stmt.type.is_pointer:
        return None
    if not (stmt.type.const or stmt.storage == "constexpr") or stmt.type.base not in _INTEGERS | {"auto"}:
        return None
    init = fold(stmt.init)
    if isinstance(init, Cast) and isinstance(init.value, Number):
        init = init.value
    if not (isinstance(init, Number) and isinstance(init.value, int)):
        return None
    return init if stmt.type.base == "auto" else of_type(init, Type(stmt.type.base))
