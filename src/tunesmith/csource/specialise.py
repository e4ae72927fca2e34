"""A function with names given a meaning: types for type names, values for constants; then folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import fold, fold_statements, int_value
from tunesmith.csource.lex import lex, split_at, squeeze
from tunesmith.csource.parse import read_expression, read_type
from tunesmith.csource.substitution import replace_words, substitute
from tunesmith.csource.types import INTEGERS, canonical, declared_types, integer, of_type, size_of

_ALIAS_STEPS = 16
_MAX_TYPE_TEXT = 1000
_LOCAL_ALIAS = re.compile(
    r"(?:using\s+(?P<new>\w+)\s*=\s*(?P<of>[^;]+?)|typedef\s+(?P<old>[^;]+?)\s+(?P<name>\w+))\s*;?"
)
_WORD = re.compile(r"(?<![\w:])[^\W\d]\w*")
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
        return Meaning(
            {**outer_types, **types},
            {**outer_values, **values},
            self.language,
            {**self.functions, **functions},
            self.any_of,
        )

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
            after = re.sub(r"(?<![\w:])[^\W\d]\w*", self._word, text)
            if after == text or len(after) > _MAX_TYPE_TEXT:
                break
            text = after
        return canonical(text, self.language)

    def _word(self, match: re.Match[str]) -> str:
        word = match.group()
        if word in self.types:
            return _written(self.types[word])
        if word in self.functions:
            called = self.functions[word]
            template = f"<{', '.join(called.template_args)}>" if called.template_args else ""
            return called.function + template
        value = self.values.get(word)
        if isinstance(value, c.Number):
            is_plain = isinstance(value.value, int) and not is_enumerator(value)
            return str(value.value) if is_plain else value.text
        return word


def _written(type_: c.Type) -> str:
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
        folded = fold(substitute(walk.map_types_in(value, resolved.type), values))
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
        canonical(base, language), behind.count("*"), "const" in given, volatile="volatile" in given
    )


def specialise(function: c.Function, meaning: Meaning) -> c.Function:
    """Without its template; `meaning` covers the template's names and the file's."""
    own = {parameter.name for parameter in function.parameters}
    local = _local_aliases(function.body, meaning.language)
    for name, type_ in local.items():  # each may name those before it, never itself
        if meaning.types.get(name, resolved := meaning.type(type_)) != resolved:
            raise c.Unreadable(f"'{name}' is one type in the function and another outside of it")
        meaning = meaning.with_template({name: resolved}, {})
    values = {name: value for name, value in meaning.values.items() if name not in own}
    body = walk.map_types(function.body, meaning.type)
    body = walk.map_nodes(body, lambda node: _texts(node, meaning))
    body = walk.map_statements(body, on_stmt=lambda stmt: _verbatim(stmt, meaning))
    body = substitute(body, values)
    parameters = tuple(c.Parameter(meaning.type(p.type), p.name) for p in function.parameters)
    changed = replace(
        function, parameters=parameters, body=body, result=meaning.type(function.result), template=()
    )
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


def _verbatim(stmt: c.Stmt, meaning: Meaning) -> c.Stmt | tuple[c.Stmt, ...]:
    if not isinstance(stmt, c.Verbatim):
        return stmt
    if _LOCAL_ALIAS.fullmatch(stmt.text.strip()):
        return ()  # every use of it is resolved
    if not any(name in meaning.types for name in stmt.names):
        return stmt
    return replace(stmt, text=_types_in_text(stmt.text, meaning))


def _types_in_text(text: str, meaning: Meaning) -> str:
    return replace_words(text, {name: c.Name(_written(type_)) for name, type_ in meaning.types.items()})


def _texts(node: c.Expr, meaning: Meaning) -> c.Expr:
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
                    return integer(int(equal))
            if (asked := _ONE_OF.fullmatch(changed)) is not None and asked[1] in meaning.any_of:
                first, *others = (meaning.type_text(squeeze(p)) for p in split_at(",", lex(asked[2])) if p)
                return integer(int(first in others))
            return node if changed == text else c.Opaque(changed, names)
    return node


def declared_sizes(function: c.Function) -> dict[str, int]:
    """Bytes of the variables of a function for which `sizeof(x)` is known."""
    found: dict[str, int] = {}
    arrays = {
        node.name: node
        for node in walk.nodes_in(function.body)
        if isinstance(node, c.Declare) and node.is_array
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


def _known_size(node: c.Expr, sizes: Mapping[str, int]) -> c.Expr:
    if isinstance(node, c.Opaque):
        match_ = _SIZE_OF.fullmatch(node.text)
        if match_ is not None and match_[1] in sizes:
            return integer(sizes[match_[1]])
    return node


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
        return replace(type_, base=_WORD.sub(written, type_.base)) if "<" in type_.base else type_

    return type_


def _local_constant(stmt: c.Declare) -> c.Expr | None:
    if stmt.dims or stmt.storage in ("shared", "dynamic shared") or stmt.init is None or stmt.type.is_pointer:
        return None
    if not (stmt.type.const or stmt.storage == "constexpr") or stmt.type.base not in {*INTEGERS, "auto"}:
        return None
    init = fold(stmt.init)
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
    return name, tuple(squeeze(part) for part in split_at(",", lex(inside)) if part)


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
        if any(own.name == function for own in source.functions):
            functions[name] = c.Call(function, (), function_args)
            continue
        value = fold(substitute(read_expression(text, language), meaning.values))
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
