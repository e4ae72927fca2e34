"""A source text as a tree: its functions, and everything around them.

What cannot be read is said in `unread`, with a line number, and does not keep the rest from being read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.fold import fold_expr, int_value
from tunesmith.source.lex import Token, closing_angle, lay_out_tokens, squeeze_tokens
from tunesmith.source.preprocess import HeaderAsked, Predefined, Toolkit, preprocess
from tunesmith.source.reader.grammar import GrammarText, grammar_text, known_names, syntax_nodes, syntax_tree
from tunesmith.source.reader.names import flatten_namespaces
from tunesmith.source.reader.statements import KERNEL_WORDS, FunctionReader, LambdaReader, parts_of
from tunesmith.source.substitution import substitute
from tunesmith.source.text import MAX_TEXT
from tunesmith.source.types import canonical_type_name, integer_literal, of_type

if TYPE_CHECKING:
    from tree_sitter import Node


# -- Structures, classes and unions from tree-sitter's nodes: fields, methods, constants, names of types.


RECORDS = frozenset({"struct_specifier", "class_specifier", "union_specifier"})
THIS = "this"
EXPLICIT = "explicit"  # the text of a constructor or conversion that is never used by itself
_NOTHING = frozenset({"access_specifier", "static_assert_declaration", "comment", "preproc_call", ";"})
_HEAD = re.compile(r"^(?:typename )?(?P<name>[\w:]+)\s*(?:<(?P<args>.*)>)?$")


@dataclass
class _Members:
    name: str
    fields: list[c.Declare] = field(default_factory=list)
    methods: list[c.Function] = field(default_factory=list)
    constants: dict[str, c.Expr] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    inner: list[c.Record] = field(default_factory=list)
    friends: list[c.Function] = field(default_factory=list)
    unread: str = ""


@dataclass(frozen=True)
class OutsideMethod:
    """`void vec<half, 8>::load(...) { ... }`: a method defined behind its class."""

    record: str
    specialises: tuple[str, ...]
    function: c.Function


class RecordReader:
    def __init__(self, place: GrammarText, reader: FunctionReader) -> None:
        self.place, self.reader = place, reader

    def records(
        self, node: Node, template: tuple[c.TemplateParameter, ...], within: str = ""
    ) -> tuple[list[c.Record], list[c.Function]]:
        """The record and those declared in it, and the operators that it is a friend of."""
        named, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if named is None or body is None:
            return [], []
        plain = named.child_by_field_name("name") or named if named.type == "template_type" else named
        name = within + self.place.short(plain)
        arguments = named.child_by_field_name("arguments") if named.type == "template_type" else None
        found = _Members(name)
        for member in body.named_children:
            try:
                self._member(member, found)
            except c.TooDeep:
                raise
            except c.Unreadable as trouble:
                found.unread = found.unread or trouble.reason
        if any(child.type == "base_class_clause" for child in node.children):
            found.unread = found.unread or "it inherits"
        record = c.Record(
            name,
            tuple(found.fields),
            tuple(found.methods),
            template,
            tuple(self.place.short(a) for a in parts_of(arguments)),
            tuple(found.constants.items()),
            tuple(found.aliases.items()),
            is_union=node.type == "union_specifier",
            align=self._read_alignment(node),
            unread=found.unread,
            line=self.place.line(node),
        )
        return [record, *found.inner], found.friends

    def _read_alignment(self, node: Node) -> c.Expr | None:
        said = [child for child in node.children if child.type == "alignas_qualifier"]
        if not said:
            return None
        parts = [part for one in said for part in parts_of(one)]
        return self.reader.expr(parts[0]) if len(parts) == 1 else c.Opaque("alignas")

    def _member(self, node: Node, found: _Members) -> None:
        match node.type:
            case "field_declaration" | "declaration":
                self._declared(node, found)
            case "function_definition":
                self._defined(node, (), found)
            case "template_declaration":
                inner = node.named_children[-1]
                if inner.type == "function_definition":
                    parameters = node.child_by_field_name("parameters")
                    self._defined(inner, self.reader.template_parameters(parameters), found)
                elif inner.type not in ("declaration", "field_declaration"):
                    raise self.place.trouble(node, "", " in a structure is not understood")
            case "alias_declaration":
                name, type_ = node.child_by_field_name("name"), node.child_by_field_name("type")
                if name is not None and type_ is not None:
                    found.aliases[self.place.short(name)] = self._type_text(type_)
            case "type_definition":
                type_, names = node.child_by_field_name("type"), node.children_by_field_name("declarator")
                if type_ is None or len(names) != 1 or names[0].type != "type_identifier":
                    raise self.place.trouble(node, "", " in a structure is not understood")
                found.aliases[self.place.short(names[0])] = self._type_text(type_)
            case "friend_declaration":
                for inner in node.named_children:
                    if inner.type == "function_definition":
                        made = self.reader.function(inner, (), set(), "", operators=True)
                        found.friends += [made] if made is not None else []
            case kind if kind in RECORDS:
                self._read_nested_record(node, found)
            case kind if kind not in _NOTHING:
                raise self.place.trouble(node, "", " in a structure is not understood")

    def _type_text(self, node: Node) -> str:
        return canonical_type_name(self.place.short(node), self.place.language)

    def _read_nested_record(self, node: Node, found: _Members) -> None:
        inner, friends = self.records(node, (), f"{found.name}::")
        if not inner:
            raise c.Unreadable("it has a part without a name", self.place.line(node))
        found.inner += inner
        found.friends += friends
        found.aliases[inner[0].name.removeprefix(f"{found.name}::")] = inner[0].name

    def _declared(self, node: Node, found: _Members) -> None:
        declarators = node.children_by_field_name("declarator")
        type_ = node.child_by_field_name("type")
        if type_ is not None and type_.type in RECORDS and type_.child_by_field_name("body") is not None:
            if declarators:
                raise c.Unreadable("it has a part without a name", self.place.line(node))
            self._read_nested_record(type_, found)
            return
        if type_ is not None and type_.type == "enum_specifier" and not declarators:
            self._read_member_enum(type_, found)
            return
        if any(n.type == "operator_cast" for n in declarators) or any(_is_function(n) for n in declarators):
            return  # it is defined behind the class, or nobody can call it
        if any(n.type == "bitfield_clause" for n in node.named_children):
            raise c.Unreadable("it has bit fields", self.place.line(node))
        specifiers = self.reader.specifiers(node)
        values = _field_defaults(node)
        for at, declarator in enumerate(declarators):
            declared = self.reader.declarator(declarator, specifiers.type)
            value = values.get(at)
            init = None if value is None else self.reader.expr(value)
            if "static" in specifiers.words:
                if init is not None:
                    is_auto = declared.type.base == "auto"
                    found.constants[declared.name] = init if is_auto else of_type(init, declared.type)
                continue
            if declared.type.reference or None in declared.dims or specifiers.type.volatile:
                raise self.place.trouble(node, "its field ", " is not understood")
            dims = tuple(self.reader.expr(dim) for dim in declared.dims)
            line = self.place.line(declarator)
            align = None if specifiers.align is None else self.reader.expr(specifiers.align)
            found.fields.append(c.Declare(declared.type, declared.name, init, dims, align=align, line=line))

    def _read_member_enum(self, node: Node, found: _Members) -> None:
        """`enum { N = 16 / sizeof(T), M };`: constants, each one more than the one before."""
        if any(child.type in ("class", "struct") for child in node.children):
            raise self.place.trouble(node, "", " in a structure is not understood")
        last: c.Expr | None = None
        for item in parts_of(node.child_by_field_name("body")):
            name, value = item.child_by_field_name("name"), item.child_by_field_name("value")
            if item.type != "enumerator" or name is None:
                raise self.place.trouble(item, "", " in a structure is not understood")
            following = c.Number("0", 0) if last is None else c.Binary("+", last, c.Number("1", 1))
            given = following if value is None else self.reader.expr(value)
            if not _is_small(given):
                raise self.place.trouble(item, "", " may be more than an int holds")
            last = c.Name(self.place.short(name))
            found.constants[last.name] = of_type(given, c.Type("int"))  # what an enumerator counts as

    def _defined(self, node: Node, template: tuple[c.TemplateParameter, ...], found: _Members) -> None:
        if any(child.type in ("default_method_clause", "delete_method_clause") for child in node.children):
            return
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and _is_destructor(declarator):
            if parts_of(node.child_by_field_name("body")):
                raise c.Unreadable("it has a destructor", self.place.line(node))
            return
        found.methods.append(self._method(node, template, found.name))

    def _method(self, node: Node, template: tuple[c.TemplateParameter, ...], record: str) -> c.Function:
        constructor = record.rpartition("::")[2]
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "operator_cast":
            type_ = self.reader.specifiers(declarator).type
            inner = declarator.child_by_field_name("declarator")
            function = self.reader.headless(node, inner, f"operator {type_.base}", type_, template)
        elif node.child_by_field_name("type") is None and declarator is not None:
            function = self.reader.headless(node, declarator, constructor, c.Type("void"), template)
            function = self._with_initialisers(function, node)
        else:
            made = self.reader.function(node, template, set(), "", operators=True)
            assert made is not None, "operators are functions here"
            function = made
        words = {(n.text or b"").decode() for n in node.children if n.type == "storage_class_specifier"}
        if any(n.type == "explicit_function_specifier" for n in node.children):
            function = replace(function, text=EXPLICIT)
        return function if "static" in words else self._with_object(function, node, record)

    def _with_object(self, function: c.Function, node: Node, record: str) -> c.Function:
        declarator = node.child_by_field_name("declarator")
        heads = [declarator, *declarator.named_children] if declarator is not None else []
        behind = (n for head in heads if head.type.endswith("function_declarator") for n in head.children)
        const = any(child.type == "type_qualifier" and child.text == b"const" for child in behind)
        this = c.Parameter(c.Type(record, const=const, reference=True), THIS)
        return replace(function, parameters=(this, *function.parameters))

    def _with_initialisers(self, function: c.Function, node: Node) -> c.Function:
        """`: a(x), b{y, z}` as `this->a = {x}`, `this->b = {y, z}` at the start, in the order of the list;
        `: vec(x)`, another constructor of its own, as a call."""
        done: list[c.Stmt] = []
        for listed in (child for child in node.children if child.type == "field_initializer_list"):
            for item in parts_of(listed):
                name = item.named_children[0] if item.named_children else None
                if name is None or name.type != "field_identifier" or len(item.named_children) != 2:
                    raise self.place.trouble(item, "its initialiser ", " is not understood")
                values = tuple(self.reader.expr(a) for a in parts_of(item.named_children[1]))
                of, line = c.Name(THIS), self.place.line(item)
                if self.place.short(name) == function.name:
                    done.append(c.Evaluate(c.Call(function.name, values, of=of), line=line))
                    continue
                target = c.Member(of, self.place.short(name), arrow=True)
                done.append(c.Evaluate(c.Assign("=", target, c.Braces(values)), line=line))
        return replace(function, body=(*done, *function.body), sets=len(done))

    def outside(self, node: Node, template: tuple[c.TemplateParameter, ...]) -> OutsideMethod | None:
        """A method that is defined behind its class; None for any other function."""
        type_, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
        inner = declarator
        while inner is not None and inner.type in ("pointer_declarator", "reference_declarator"):
            inner = inner.child_by_field_name("declarator") or inner.named_children[-1]
        named = inner.child_by_field_name("declarator") if inner is not None else None
        if inner is None or inner.type != "function_declarator" or named is None:
            return None
        if type_ is not None and self.place.short(type_).endswith("::operator"):
            record = self.place.short(type_).removesuffix("::operator")
            result = c.Type(canonical_type_name(self.place.short(named), self.place.language))
            function = self.reader.headless(node, inner, f"operator {result.base}", result, ())
            return self._outside(record, template, self._with_object(function, node, record))
        if named.type != "qualified_identifier":
            return None
        scope, name = named.child_by_field_name("scope"), named.child_by_field_name("name")
        if scope is None or name is None or name.type == "qualified_identifier":
            return None
        record, plain = self.place.short(scope), self.place.short(name).replace(" ", "")
        if type_ is None:
            function = self.reader.headless(node, inner, plain, c.Type("void"), ())
            function = self._with_initialisers(function, node)
        else:
            made = self.reader.function(node, (), set(), "", operators=True)
            if made is None:
                return None
            function = made
        return self._outside(record, template, self._with_object(replace(function, name=plain), node, record))

    def _outside(
        self, record: str, template: tuple[c.TemplateParameter, ...], function: c.Function
    ) -> OutsideMethod:
        head = _HEAD.match(record)
        args = tuple(part.strip() for part in (head["args"] or "").split(",")) if head is not None else ()
        name = head["name"] if head is not None else record
        names = {parameter.name for parameter in template}
        is_primary = bool(args) and set(args) <= names
        used = set(args) if is_primary else set(re.findall(r"\w+", record))
        left = tuple(parameter for parameter in template if parameter.name not in used)
        specialises = () if is_primary else tuple(a for a in args if a)
        return OutsideMethod(name, specialises, replace(function, template=left))


def with_outside(records: list[c.Record], methods: list[OutsideMethod]) -> tuple[c.Record, ...]:
    """The records with the methods that were defined behind them."""
    done = list(records)
    for method in methods:
        for at, record in enumerate(done):
            written = [[*map(_canonical_spelling, one.specialises)] for one in (record, method)]
            same = written[0] == written[1]
            if record.name.rpartition("::")[2] == method.record.rpartition("::")[2] and same:
                this = method.function.parameters[0]
                this = replace(this, type=replace(this.type, base=record.name))
                function = replace(method.function, parameters=(this, *method.function.parameters[1:]))
                done[at] = replace(record, methods=(*record.methods, function))
                break
    return tuple(done)


def _canonical_spelling(text: str) -> str:
    return canonical_type_name(text, "cuda").replace(" ", "")


def _is_small(value: c.Expr) -> bool:
    """Whether a number fits an int, as far as its text tells: no large literals, nothing that is shifted."""
    known = int_value(fold_expr(value))
    if known is not None:
        return -(2**31) <= known < 2**31
    for part in walk.nodes_in(value):
        is_large = isinstance(part, c.Number) and not -(2**15) < part.value < 2**15
        if is_large or (isinstance(part, c.Binary) and part.op == "<<"):
            return False
    return True


def _is_function(node: Node) -> bool:
    while node.type in ("pointer_declarator", "reference_declarator") and node.named_children:
        node = node.child_by_field_name("declarator") or node.named_children[-1]
    return node.type == "function_declarator"


def _is_destructor(node: Node) -> bool:
    named = node.child_by_field_name("declarator")
    return named is not None and named.type == "destructor_name"


def _field_defaults(node: Node) -> dict[int, Node]:
    """The value behind each declarator of a field declaration."""
    found: dict[int, Node] = {}
    at = -1
    for number, child in enumerate(node.children):
        name = node.field_name_for_child(number)
        if name == "declarator":
            at += 1
        elif name == "default_value":
            found[at] = child
    return found


# -- Plain structures that a function declares for itself, as records of the file.
#
# template <typename T, int N> void f() {        template <typename T, int N> struct pack_of_f { T at[N]; };
#     struct pack { T at[N]; };              ->  template <typename T, int N> void f() {
#     ...                                            using pack = pack_of_f<T, N>;


@dataclass(frozen=True)
class LocalRecord:
    """A record as it was read, its text, and the line that it stands in."""

    record: c.Record
    text: str
    line: int


def taken_out(
    function: c.Function, head: str, found: list[LocalRecord]
) -> tuple[c.Function, list[tuple[c.Record, str]]]:
    """The function with other names for its records, and these with their text; `head`: of its template."""
    done: list[tuple[c.Record, str]] = []
    body = function.body
    for local in found:
        at = [n for n, s in enumerate(body) if isinstance(s, c.Verbatim) and s.line == local.line]
        if len(at) != 1 or not _has_only_plain_fields(local.record, function):
            continue
        plain, stmt = local.record.name, body[at[0]]
        name = f"{plain}_of_{function.name}"
        arguments = ", ".join(parameter.name for parameter in function.template)
        of = f"{name}<{arguments}>" if arguments else name
        alias = c.Verbatim(f"using {plain} = {of};", frozenset({plain, name}), line=stmt.line)
        body = (*body[: at[0]], alias, *body[at[0] + 1 :])
        record = replace(local.record, name=name, template=function.template)
        text = re.sub(rf"\b{plain}\b", name, local.text)
        done.append((record, f"{head} {text};".strip()))
    return replace(function, body=body), done


def _has_only_plain_fields(record: c.Record, function: c.Function) -> bool:
    """Fields alone, whose extents the template's own arguments tell."""
    if record.methods or record.unread or record.aliases or record.constants or record.specialises:
        return False
    local = {*walk.declared_in(function.body), *(parameter.name for parameter in function.parameters)}
    return not any(walk.names_in(dim) & local for field in record.fields for dim in field.dims)


_DEVICE_WORDS = KERNEL_WORDS | {"__device__", "constexpr"}


def read_source_tree(
    text: str,
    language: c.Language,
    defines: Iterable[tuple[str, str]] = (),
    headers: Sequence[tuple[str, str]] = (),
    toolkit: Toolkit = "unknown",
    predefined: Predefined | None = None,
) -> c.Source:
    """`defines`: macros given to the compiler, as name and text; `headers`: the user's own, as included ->
    text, which become part of the source; `toolkit`: whether its headers tell their version;
    `predefined`: the compiler's own macros, None: assumed ones. Never raises for what the text holds."""
    if len(text) + sum(len(header) for _, header in headers) > MAX_TEXT:
        return c.Source(language, (), unread=(f"the file is longer than {MAX_TEXT:,} characters",))
    try:
        prepared = preprocess(text, language, defines, headers, toolkit, predefined)
    except c.Unreadable as trouble:
        reason = f"line {trouble.line}: {trouble.reason}" if trouble.line else trouble.reason
        return c.Source(language, (), unread=(reason,), asks_toolkit=isinstance(trouble, HeaderAsked))
    if (fault := prepared.parse_obstacle) is not None:
        return c.Source(language, (), unread=(fault,))
    try:
        flat = flatten_namespaces(prepared.tokens, language)
    except c.Unreadable as trouble:
        return c.Source(language, (), unread=(f"line {trouble.line}: {trouble.reason}",))
    tokens = flat.tokens
    known = known_names(tokens, language)
    place = grammar_text(tokens, language, known)
    root = syntax_tree(place.text, language)
    found = _Found()
    if root.type == "ERROR" or any(child.type == "ERROR" for child in root.children):
        for item in top_level_items(tokens):
            part = grammar_text(item, language, known)
            _FileReader(part, found).read(syntax_tree(part.text, language))
    else:
        _FileReader(place, found).read(root)
    pragmas = tuple(f"#{t.text}" for t in tokens if t.kind == "directive" and "OPENCL" in t.text)
    return c.Source(
        language,
        tuple(found.functions),
        includes=prepared.includes,
        preamble=(*pragmas, *found.preamble),
        constants=tuple(pair for pair in found.constants.items() if pair[0] not in found.doubtful),
        aliases=tuple(found.aliases.items()),
        shared=tuple(found.shared),
        records=with_outside(found.records, found.methods),
        prototypes=tuple(found.prototypes),
        operators=tuple(found.operators),
        of_records=frozenset(found.of_records),
        spellings=flat.spellings,
        unread=(*prepared.problems, *found.unread),
        decided=prepared.decided,
    )


def read_expression(text: str, language: c.Language = "cuda") -> c.Expr:
    """One expression by itself, such as a template argument; raises Unreadable."""
    source = read_source_tree(f"__device__ void expression() {{ return ({text}); }}", language)
    body = source.functions[0].body if len(source.functions) == 1 and not source.unread else ()
    if len(body) == 1 and isinstance(body[0], c.Return) and body[0].value is not None:
        return body[0].value
    raise c.Unreadable(f"`{text}` is not understood as an expression")


def read_type(text: str, language: c.Language = "cuda") -> c.Type:
    """One type by itself; raises Unreadable."""
    source = read_source_tree(f"__device__ void type({text} parameter) {{}}", language)
    if len(source.functions) == 1 and len(source.functions[0].parameters) == 1 and not source.unread:
        return source.functions[0].parameters[0].type
    raise c.Unreadable(f"`{text}` is not understood as a type")


@dataclass
class _Found:
    functions: list[c.Function] = field(default_factory=list)
    preamble: list[str] = field(default_factory=list)
    constants: dict[str, c.Expr] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    shared: list[c.Declare] = field(default_factory=list)
    records: list[c.Record] = field(default_factory=list)
    prototypes: list[c.Function] = field(default_factory=list)
    operators: list[c.Function] = field(default_factory=list)
    methods: list[OutsideMethod] = field(default_factory=list)
    of_records: list[str] = field(default_factory=list)  # among the preamble
    unread: list[str] = field(default_factory=list)
    doubtful: set[str] = field(default_factory=set)  # constants of one name with several values


class _FileReader:
    def __init__(self, place: GrammarText, found: _Found) -> None:
        self.place = place
        self.found = found
        self.reader = LambdaReader(place)

    def read(self, root: Node) -> None:
        pending = list(reversed(root.named_children))
        if root.type == "ERROR":  # the whole file: what is around its functions means nothing
            self._unread(root, "this could not be read")
            kept = ("function_definition", "template_declaration")
            pending = [node for node in pending if node.type in kept]
        while pending:
            node = pending.pop()
            match node.type:
                case "function_definition" | "template_declaration":
                    self._function_or_template(node)
                case "namespace_definition" | "linkage_specification":
                    body = node.child_by_field_name("body")
                    if body is None:
                        continue
                    pending += reversed(body.named_children) if body.type == "declaration_list" else [body]
                case "ERROR":
                    # A broken head may hide whole functions below it.
                    self._unread(node, "this could not be read")
                    pending += reversed([n for n in node.named_children if n.type == "function_definition"])
                case "comment" | "preproc_call" | "template_instantiation":
                    pass  # what is asked for by name is instantiated by that
                case _:
                    self._read_other_node(node)

    def _unread(self, node: Node, reason: str) -> None:
        error = next((n for n in syntax_nodes(node) if n.type == "ERROR" or n.is_missing), node)
        line = self.place.line(error)
        shown = " ".join(self.place.written(error).split())[:60]
        self.found.unread.append(f"line {line}: {reason}" + (f": `{shown}`" if shown else ""))

    def _read_other_node(self, node: Node) -> None:
        text = self._whole_text(node)
        if not text.strip(" ;"):
            return
        if node.type == "declaration" and not node.has_error:
            if self._file_shared(node):
                return
            self._file_constants(node)
            parts = (n for part in node.children_by_field_name("declarator") for n in syntax_nodes(part))
            if any(part.type == "function_declarator" for part in parts):
                return  # a prototype: functions are put in order by who calls whom
        elif node.type == "alias_declaration" or node.type == "type_definition":
            self._read_type_alias(node)
            named = node.child_by_field_name("type")
            if named is not None and named.type == "enum_specifier":  # typedef enum mode { FAST } mode_t;
                self._read_member_enum(named)
        elif node.type == "enum_specifier":
            self._read_member_enum(node)
        elif node.has_error:
            self._unread(node, "this could not be read")
        elif node.type in RECORDS:
            self._record(node, ())
            self._static_functions(node)
        self.found.preamble.append(text)
        inner = node.named_children[-1] if node.type == "template_declaration" else node
        if inner.type in RECORDS:
            self.found.of_records.append(text)

    def _record(self, node: Node, template: tuple[c.TemplateParameter, ...]) -> None:
        if self.place.language == "opencl":
            return
        records, friends = RecordReader(self.place, self.reader).records(node, template)
        self.found.records += records
        self.found.operators += friends

    def _without_local_records(self, function: c.Function, node: Node, start: int) -> c.Function:
        """Its plain structures among those of the file; `start`: the first token of its template."""
        body = node.child_by_field_name("body")
        inside = [part for part in body.named_children if part.type in RECORDS] if body is not None else []
        if not inside or self.place.language == "opencl" or not function.is_kernel:
            return function
        found: list[LocalRecord] = []
        for part in inside:
            records, _ = RecordReader(self.place, self.reader).records(part, ())
            if len(records) == 1:
                found.append(LocalRecord(records[0], self.place.written(part), self.place.line(part)))
        end = closing_angle(self.place.tokens, start + 1) if function.template else None
        head = "" if end is None else squeeze_tokens(self.place.tokens[start : end + 1])
        if function.template and not head.startswith("template"):
            return function
        function, done = taken_out(function, head, found)
        for record, text in done:
            self.found.records.append(record)
            self.found.preamble.append(text)
            self.found.of_records.append(text)
        return function

    def _static_functions(self, node: Node) -> None:
        """`Op::apply` of a struct: read to be put in place; its text stays in the struct."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        for member in body.named_children:
            words = [child.text for child in member.children if child.type == "storage_class_specifier"]
            if member.type != "function_definition" or b"static" not in words:
                continue
            try:
                found = self.reader.function(member, (), set(), "")
            except c.Unreadable:
                continue  # it stays a call of something that is not known
            if found is not None:
                self.found.functions.append(replace(found, name=f"{self.place.short(name)}::{found.name}"))

    def _whole_text(self, node: Node) -> str:
        """With the qualifiers the grammar was not shown, and the semicolon that it may leave out."""
        start, end = self._token_range(node)
        text = lay_out_tokens(self.place.tokens[start:end])
        following = self.place.tokens[end].text if end < len(self.place.tokens) else ""
        return text.strip() + (";" if following == ";" and not text.rstrip().endswith(";") else "")

    def _token_range(self, node: Node) -> tuple[int, int]:
        tokens, starts = self.place.tokens, self.place.starts
        start = self.place.at(node.start_byte)
        while start and starts[start - 1] == starts[start]:
            start -= 1
        while start and tokens[start - 1].text not in (";", "{", "}"):
            if tokens[start - 1].kind == "directive":
                break
            start -= 1
        while start < len(tokens) and tokens[start].kind == "directive":
            start += 1
        end = self.place.at(max(node.end_byte - 1, 0)) + 1
        return start, end

    def _file_shared(self, node: Node) -> bool:
        """Shared memory declared outside of the kernels that use it."""
        if "__shared__" not in {token.text for token in self.place.words(node.start_byte, node.end_byte)}:
            return False
        parts = self.reader.declaration(node, self.place.line(node))
        declares = [part for part in parts if isinstance(part, c.Declare) and "shared" in part.storage]
        self.found.shared += declares
        return len(declares) == len(parts)

    def _file_constants(self, node: Node) -> None:
        try:
            specifiers = self.reader.specifiers(node)
            if not (specifiers.type.const or "constexpr" in specifiers.words):
                return
            for part in self.reader.declaration(node, self.place.line(node)):
                if isinstance(part, c.Declare) and part.init is not None and not part.is_array:
                    self._add_file_constant(part.name, of_type(part.init, part.type))
        except c.Unreadable:
            return  # it stays in the preamble as text; nothing was promised about its value

    def _read_type_alias(self, node: Node) -> None:
        name, type_ = node.child_by_field_name("name"), node.child_by_field_name("type")
        if node.type == "type_definition":
            declarators = node.children_by_field_name("declarator")
            is_plain = len(declarators) == 1 and declarators[0].type == "type_identifier"
            is_struct = type_ is not None and type_.child_by_field_name("body") is not None
            name = declarators[0] if is_plain and not is_struct else None
        if name is not None and type_ is not None:
            text = canonical_type_name(self.place.short(type_), self.place.language)
            self.found.aliases[self.place.short(name)] = text

    def _read_member_enum(self, node: Node) -> None:
        """`Mode::FAST` keeps its name where it is printed; what an unscoped list has is a number besides."""
        body, named = node.child_by_field_name("body"), node.child_by_field_name("name")
        scoped = any(child.type in ("class", "struct") for child in node.children)
        following: int | None = 0
        for item in body.named_children if body is not None else []:
            name, value = item.child_by_field_name("name"), item.child_by_field_name("value")
            if name is None:
                continue
            if value is not None:
                following = int_value(fold_expr(substitute(self.reader.expr(value), self.found.constants)))
            if following is not None:
                short = self.place.short(name)
                if named is not None:
                    whole = f"{self.place.short(named)}::{short}"
                    self._add_file_constant(whole, c.Number(whole, following))
                if not scoped:
                    self._add_file_constant(short, integer_literal(following))
                following += 1

    def _add_file_constant(self, name: str, value: c.Expr) -> None:
        """Two constants of one name, in namespaces that are read as one, are told by nobody."""
        if self.found.constants.setdefault(name, value) != value:
            self.found.doubtful.add(name)

    def _read_prototype(self, node: Node, template: tuple[c.TemplateParameter, ...]) -> None:
        """What is written for some of its arguments may stand elsewhere: `template <> f<16>(...) {...}`."""
        declarators = node.children_by_field_name("declarator")
        if len(declarators) == 1 and not node.has_error:
            try:
                found = self.reader.function(node, template, set(), "")
            except c.Unreadable:
                return  # no function, or one that nothing here can be chosen by
            self.found.prototypes += [found] if found is not None else []

    def _function_or_template(self, node: Node) -> None:
        inner = node
        template: tuple[c.TemplateParameter, ...] = ()
        try:
            while inner.type == "template_declaration":
                template += self.reader.template_parameters(inner.child_by_field_name("parameters"))
                inner = inner.named_children[-1]
            if inner.type != "function_definition":
                if inner.type in RECORDS and not inner.has_error:
                    self._record(inner, template)
                elif inner.type == "declaration" and template:
                    self._read_prototype(inner, template)
                    start, end = self._token_range(node)
                    if any(token.text == "__global__" for token in self.place.tokens[start:end]):
                        return  # a kernel that stands elsewhere: nobody calls it from here
                self._read_other_node(node)
                return
            start, end = self._token_range(node)
            body = inner.child_by_field_name("body")
            head_end = self.place.at(body.start_byte) if body is not None else end
            words = {token.text for token in self.place.tokens[start:head_end]}
            if self.place.language != "opencl" and not words & _DEVICE_WORDS:
                return  # host code
            if inner.has_error:
                self._unread(inner, f"{self.reader.function_name(inner)} could not be read, it stumbles here")
                return
            outside = RecordReader(self.place, self.reader).outside(inner, template)
            if outside is not None:
                self.found.methods.append(outside)
                self.found.preamble.append(lay_out_tokens(self.place.tokens[start:end]).strip())
                self.found.of_records.append(self.found.preamble[-1])
                return
            tokens = self.place.tokens[start:end]
            text, commented = lay_out_tokens(tokens), lay_out_tokens(tokens, with_comments=True).strip()
            found = self.reader.function(inner, template, words, text)
            if found is None:
                operator = self.reader.function(inner, template, words, "", operators=True)
                self.found.operators += [operator] if operator is not None else []
                self.found.preamble.append(text.strip())
                self.found.of_records.append(self.found.preamble[-1])
            else:
                found = replace(found, commented=commented, comments=tokens[0].comments)
                found = self._without_local_records(found, inner, start)
                self.found.functions += [*self.reader.taken(), found]
        except c.Unreadable as trouble:
            where = f"line {trouble.line or self.place.line(inner)}: {self.reader.function_name(inner)}"
            self.found.unread.append(f"{where} could not be read: {trouble.reason}")
            parts = [n.type for n in syntax_nodes(node)]
            if "function_declarator" not in parts and not node.has_error:  # a constant of types
                self.found.preamble.append(self._whole_text(node))


# -- a file cut into its items, where one of them spoils the whole ------------------------------------


def top_level_items(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Functions, declarations and directives in order; namespaces and extern "C" are opened."""
    items: list[list[Token]] = [[]]
    depth, opened = 0, 0
    for token in tokens:
        if depth == 0 and token.kind == "directive":
            items += [[token], []]
        elif depth == 0 and token.text == "{" and _opens_names(items[-1]):
            opened += 1
            items[-1] = []
        elif depth == 0 and token.text == "}" and opened:
            opened -= 1
            items.append([])
        else:
            items[-1].append(token)
            depth = max(depth + {"{": 1, "}": -1}.get(token.text, 0), 0)
            if depth == 0 and (token.text == ";" or (token.text == "}" and not _is_type(items[-1]))):
                items.append([])
    return (tuple(item) for item in items if item)


def _opens_names(item: list[Token]) -> bool:
    words = [token.text for token in item]
    return words[:1] == ["namespace"] or words == ["extern", '"C"'] or words[:2] == ["inline", "namespace"]


def _is_type(item: list[Token]) -> bool:
    """`struct S { ... }` goes on to its semicolon; so does a list of values after `=`."""
    head = []
    for token in item:
        if token.text in ("{", "("):
            break
        head.append(token.text)
    return bool({"struct", "class", "union", "enum", "typedef", "="} & set(_after_template(head)))


def _after_template(words: list[str]) -> list[str]:
    """`template <class T>` says nothing about what follows it."""
    if words[:1] != ["template"]:
        return words
    depth = 0
    for at, word in enumerate(words):
        depth += {"<": 1, ">": -1, ">>": -2}.get(word, 0)
        if at and depth <= 0:
            return words[at + 1 :]
    return words
