"""Structures, classes and unions from tree-sitter's nodes: fields, methods, constants, names of types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tunesmith.csource import nodes as c
from tunesmith.csource.parse_functions import FunctionReader
from tunesmith.csource.parse_statements import parts_of
from tunesmith.csource.types import canonical, of_type

if TYPE_CHECKING:
    from tree_sitter import Node

    from tunesmith.csource.grammar import GrammarText

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
            align=self._alignment(node),
            unread=found.unread,
            line=self.place.line(node),
        )
        return [record, *found.inner], found.friends

    def _alignment(self, node: Node) -> c.Expr | None:
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
                self._nested(node, found)
            case kind if kind not in _NOTHING:
                raise self.place.trouble(node, "", " in a structure is not understood")

    def _type_text(self, node: Node) -> str:
        return canonical(self.place.short(node), self.place.language)

    def _nested(self, node: Node, found: _Members) -> None:
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
            self._nested(type_, found)
            return
        if any(n.type == "operator_cast" for n in declarators) or any(_is_function(n) for n in declarators):
            return  # it is defined behind the class, or nobody can call it
        if any(n.type == "bitfield_clause" for n in node.named_children):
            raise c.Unreadable("it has bit fields", self.place.line(node))
        specifiers = self.reader.specifiers(node)
        values = _defaults(node)
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

    def _defined(self, node: Node, template: tuple[c.TemplateParameter, ...], found: _Members) -> None:
        if any(child.type in ("default_method_clause", "delete_method_clause") for child in node.children):
            return
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and _is_destructor(declarator):
            if parts_of(node.child_by_field_name("body")):
                raise c.Unreadable("it has a destructor", self.place.line(node))
            return
        found.methods.append(self._method(node, template, found.name))

    # -- one method ---------------------------------------------------------------------------------

    def _method(self, node: Node, template: tuple[c.TemplateParameter, ...], record: str) -> c.Function:
        own = record.rpartition("::")[2]
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "operator_cast":
            type_ = self.reader.specifiers(declarator).type
            function = self.reader.headless(
                node, declarator.child_by_field_name("declarator"), f"operator {type_.base}", type_, template
            )
        elif node.child_by_field_name("type") is None and declarator is not None:
            function = self.reader.headless(node, declarator, own, c.Type("void"), template)
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
        heads = [declarator, *(n for n in (declarator.named_children if declarator else []))]
        const = any(
            child.type == "type_qualifier" and child.text == b"const"
            for head in heads
            if head is not None and head.type.endswith("function_declarator")
            for child in head.children
        )
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
            result = c.Type(canonical(self.place.short(named), self.place.language))
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
        used = set(args)
        own = tuple(parameter for parameter in template if parameter.name not in used)
        if not is_primary:
            words = set(re.findall(r"\w+", record))
            own = tuple(parameter for parameter in template if parameter.name not in words)
        return OutsideMethod(
            name, () if is_primary else tuple(a for a in args if a), replace(function, template=own)
        )


def with_outside(records: list[c.Record], methods: list[OutsideMethod]) -> tuple[c.Record, ...]:
    """The records with the methods that were defined behind them."""
    done = list(records)
    for method in methods:
        for at, record in enumerate(done):
            same = tuple(map(_plain, record.specialises)) == tuple(map(_plain, method.specialises))
            if record.name.rpartition("::")[2] == method.record.rpartition("::")[2] and same:
                this = method.function.parameters[0]
                this = replace(this, type=replace(this.type, base=record.name))
                function = replace(method.function, parameters=(this, *method.function.parameters[1:]))
                done[at] = replace(record, methods=(*record.methods, function))
                break
    return tuple(done)


def _plain(text: str) -> str:
    return canonical(text, "cuda").replace(" ", "")


def _is_function(node: Node) -> bool:
    while node.type in ("pointer_declarator", "reference_declarator") and node.named_children:
        node = node.child_by_field_name("declarator") or node.named_children[-1]
    return node.type == "function_declarator"


def _is_destructor(node: Node) -> bool:
    named = node.child_by_field_name("declarator")
    return named is not None and named.type == "destructor_name"


def _defaults(node: Node) -> dict[int, Node]:
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
