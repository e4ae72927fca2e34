"""What a unit declares, as far as data flow asks: functions, records, names for types, and constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tunesmith.problem.vetting.device_words import DeviceWords, Refusal, Rule, UserWords, split_word_set
from tunesmith.source.fold import evaluate_binary, evaluate_unary
from tunesmith.source.reader.grammar import GrammarText, declared_name, syntax_nodes, text_of
from tunesmith.source.types import size_of

if TYPE_CHECKING:
    from tree_sitter import Node

Layers = str  # of a type, from the outside: * a pointer, [ an array, s a struct that holds a pointer
CASTS = ("static_cast", "reinterpret_cast", "const_cast", "bit_cast", "__builtin_bit_cast")
SIMPLE = ("primitive_type", "sized_type_specifier")
_RECORDS = ("struct_specifier", "union_specifier", "class_specifier")
_WIDE_WORD = re.compile(r"(char|short|int|float|half|long|double)(\d+)|v(?:load|store)(\d+)")
_WRAPPERS = ("reference_declarator", "parenthesized_declarator", "variadic_declarator")
_NOTHING_INSIDE = split_word_set(
    "identifier string_literal char_literal primitive_type type_qualifier number"
)
_WIDEST = 128  # bytes of an access


class FlowUnit:
    def __init__(
        self, parts: Sequence[tuple[GrammarText, Node]], words: DeviceWords, user: UserWords, is_c: bool
    ) -> None:
        self.parts, self.words, self.user, self.is_c = parts, words, user, is_c
        self.place = parts[0][0]
        self.functions: dict[str, list[tuple[GrammarText, Node]]] = {}
        self.records: dict[str, Node] = {}
        self.members: dict[str, list[str]] = {}  # of a type, in order
        self.wide: set[tuple[str, str]] = set()  # members that may take several values of a list
        self.pointer_members: set[str] = set()
        self.array_members: set[str] = set()
        self.union_members: set[str] = set()
        self.pointer_types: set[str] = set()
        self.array_types: set[str] = set()
        self.member_types: dict[tuple[str, str], str] = {}  # with [ behind an array's
        self.other_names: dict[str, str] = {}  # of types
        self.open_types: set[str] = set()  # that a template is given
        self.typedefs: dict[str, Layers] = {}  # of C, as are the next
        self.fields: dict[str, Layers] = {}
        self.numbers: dict[str, int] = {}  # constants of the file, and parameters of templates
        self.constants: dict[str, int] = {}
        self.scopes: list[dict[str, str]] = [{}]
        for _ in range(2 if is_c else 0):  # a type may be used before what it holds is known
            self.fields = {}
            for self.place, root in parts:
                self._collect_types(root)
        for self.place, root in parts:
            self._collect_declarations(root)
        wide = map(_WIDE_WORD.fullmatch, {token.text for part, _ in parts for token in part.tokens})
        sizes = [(size_of(m[1], "opencl") or 8) * int(m[2]) if m[1] else 8 * int(m[3]) for m in wide if m]
        self.widest = min(max([16, *sizes]), _WIDEST)

    def _collect_types(self, root: Node) -> None:
        for node in syntax_nodes(root):
            if node.type == "type_definition":
                for declarator in node.children_by_field_name("declarator"):
                    self.typedefs[name_in(declarator)] = self.layers(node, declarator)
            elif node.type in _RECORDS and node.child_by_field_name("body") is not None:
                self.typedefs[text_of(node.child_by_field_name("name"))] = held = self._held_by(node)
                if held and node.type == "union_specifier":
                    what = "makes numbers of pointers; leave the pointer out of the union"
                    raise self.refuse(node, what, "pointer")
            elif node.type == "field_declaration":
                for declarator in node.children_by_field_name("declarator"):
                    name, layers = name_in(declarator), self.layers(node, declarator)
                    if (before := self.fields.setdefault(name, layers)) != layers:
                        if set(before + layers) & set("*s"):
                            what = "is a pointer in one struct and none in another; rename one"
                            raise self.refuse(declarator, what, "pointer")
                        self.fields[name] = ""

    def _held_by(self, record: Node) -> Layers:
        fields = (one for one in syntax_nodes(record) if one.type == "field_declaration")
        held = (self.layers(f, d) for f in fields for d in f.children_by_field_name("declarator"))
        return "s" if any(set(layers) & set("*s") for layers in held) else ""

    def layers(self, node: Node | None, declarator: Node | None = None) -> Layers:
        """Of what is declared, or of the type that a cast, a parameter or a function names."""
        if node is None:
            return ""
        kind = node.child_by_field_name("type")
        if kind is not None and kind.type == "type_descriptor":
            return self.layers(kind)
        base = ""
        if kind is not None and kind.type in _RECORDS:
            body, name = kind.child_by_field_name("body"), text_of(kind.child_by_field_name("name"))
            base = self._held_by(kind) if body is not None else self.typedefs.get(name, "")
        elif kind is not None:
            base = self.typedefs.get(text_of(kind), "")
        return layers_of(declarator or node.child_by_field_name("declarator")) + base

    def _collect_declarations(self, root: Node) -> None:
        most, parameters, pending = 0, list[str](), [root]
        while pending:
            node = pending.pop()
            if node.type in _NOTHING_INSIDE:
                continue
            pending += reversed(node.named_children)
            match node.type:
                case "function_definition":
                    name = _function_name(node)
                    if name in ("operator->", "operator->*", "operator,"):
                        raise self.refuse(node, "cannot be followed; call a function by its name")
                    self.functions.setdefault(name, []).append((self.place, node))
                case kind if kind in _RECORDS and (body := node.child_by_field_name("body")) is not None:
                    self._record(node, body)
                case "number_literal" if node.parent and node.parent.type == "template_argument_list":
                    most = max(most, self.number(node) or 0)
                case "type_definition" | "alias_declaration":
                    self._collect_type_names(node)
                case "type_parameter_declaration" | "optional_type_parameter_declaration":
                    self.open_types |= {text_of(one) for one in node.named_children[:1]}
                case "goto_statement" if "goto" not in self.user.words:
                    raise self.refuse(node, "goes where it cannot be followed; write a loop")
                case "enumerator":
                    value = node.child_by_field_name("value")
                    self.numbers[text_of(node.child_by_field_name("name"))] = self.number(value) or 0
                case "template_parameter_list":
                    for one in node.named_children:
                        if one.type in ("parameter_declaration", "optional_parameter_declaration"):
                            parameters.append(text_of(declared_name(one.child_by_field_name("declarator"))))
                            most = max(most, self.number(one.child_by_field_name("default_value")) or 0)
        self.numbers |= dict.fromkeys(parameters, most)

    def _collect_type_names(self, node: Node) -> None:
        named = node.child_by_field_name("type")
        base = text_of(named)
        if named is not None and named.type in _RECORDS:
            named = named.child_by_field_name("name")
        for declarator in node.children_by_field_name("declarator") or [node]:
            name = name_in(node.child_by_field_name("name") or declarator)
            if "*" in text_of(declarator) or "*" in base or base in self.pointer_types:
                self.pointer_types.add(name)
            if "[" in text_of(declarator) or base in self.array_types:
                self.array_types.add(name)
            self.other_names |= {name: text_of(named) or name} if name else {}

    def _record(self, node: Node, body: Node) -> None:
        outer, name = node.parent, node.child_by_field_name("name")
        if name is None and outer is not None and outer.type == "type_definition":
            name = outer.child_by_field_name("declarator")
        names = self.members.setdefault(text_of(name), [])
        self.records[text_of(name)] = body
        if any(one.type == "base_class_clause" for one in node.named_children):
            self.wide.add((text_of(name), ""))
        for one in body.named_children:
            kind = text_of(one.child_by_field_name("type"))
            for declarator in one.children_by_field_name("declarator") if "field" in one.type else ():
                layers, member = layers_of(declarator), name_in(declarator)
                self.pointer_members |= {member} if "*" in layers else set()
                is_array = "[" in layers or kind in self.array_types
                self.array_members |= {member} if is_array else set()
                self.member_types[text_of(name), member] = kind + "[" * is_array
                self.union_members |= {member} if node.type == "union_specifier" else set()
                is_one = layers == "" and kind[-1:] not in "1234" and size_of(kind) is not None
                self.wide |= {(text_of(name), member)} if not is_one and layers[:1] != "*" else set()
                names.append(member)

    def record_of(self, kind: str) -> str:
        """The bare name of a type, whatever it is called here."""
        for _ in range(len(self.other_names) + 1):
            bare = re.sub(r"\b(?:const|volatile|struct|typename)\b", "", kind).partition("<")[0].strip()
            kind = self.other_names.get(bare, bare)
            if kind == bare:
                break
        return kind

    def is_array_member(self, kind: str, member: str) -> bool:
        """Of a type as a declaration names it; one that is not known may be any."""
        record = self.record_of(kind)
        if (known := self.member_types.get((record, member))) is not None:
            return "[" in known
        return member in self.array_members and size_of(record) is None

    def is_bare(self, kind: Node | None) -> bool:
        """Whether a variable of this type is left as it is found."""
        if kind is None or kind.type in SIMPLE:
            return kind is not None
        record = self.record_of(text_of(kind))
        if record not in self.records:
            return size_of(record) is not None
        inside = self.records[record].named_children
        return self.is_c or all(
            one.type == "field_declaration"
            and one.child_by_field_name("default_value") is None
            and self.is_bare(one.child_by_field_name("type"))
            and (record, "") not in self.wide
            for one in inside
        )

    def refuse(self, node: Node, what: str, rule: Rule = "address") -> Refusal:
        shown = " ".join(self.place.written(node).split())[:60]
        return Refusal(rule, self.place.line(node), f"`{shown}` {what}")

    def lookup(self, name: str) -> str | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def number(self, node: Node | None) -> int | None:
        """A constant, as far as it is one."""
        if node is None:
            return None
        inside = [one for one in node.named_children if one.type != "type_descriptor"]
        match node.type:
            case "number_literal":
                text = text_of(node).replace("'", "").rstrip("uUlL")
                try:
                    return int(text, 8 if re.fullmatch(r"0[0-7]+", text) else 0)
                except ValueError:
                    return None
            case "identifier":
                key = self.lookup(text_of(node))
                return self.constants.get(key) if key is not None else self.numbers.get(text_of(node))
            case "parenthesized_expression" | "cast_expression" | "argument_list" if len(inside) == 1:
                return self.number(inside[0])
            case "call_expression" if called_name(node) in (*CASTS, "") or _is_conversion(node):
                return self.number(node.child_by_field_name("arguments"))
            case "sizeof_expression" | "alignof_expression":
                return self._size(text_of(node.named_children[0]) if node.named_children else "")
            case "unary_expression":
                value = self.number(node.child_by_field_name("argument"))
                return None if value is None else evaluate_unary(node.children[0].type, value)
            case "binary_expression":
                one, other = self.number(inside[0]), self.number(inside[1])
                if one is not None and other is not None:
                    return evaluate_binary(node.children[1].type, one, other)
        return None

    def _size(self, name: str) -> int:
        """In bytes; of an element whose type a template is given, two."""
        name = name.strip("() ").removeprefix("const ").removeprefix("struct ").strip()
        known = 8 if name.endswith("*") else size_of(name, "opencl" if self.is_c else "cuda")
        if known is not None or name not in self.records:
            return known or (2 if name in self.open_types else 16)
        total = 0
        for one in self.records[name].named_children:
            for declarator in one.children_by_field_name("declarator"):
                size = self._size(text_of(one.child_by_field_name("type")))
                for inner in syntax_nodes(declarator):
                    if inner.type == "array_declarator":
                        size *= self.number(inner.child_by_field_name("size")) or 1
                total += size
        return total


def layers_of(declarator: Node | None) -> Layers:
    """What stands nearest to the name is outermost."""
    found = ""
    while declarator is not None:
        kind = declarator.type
        found += "*" if "pointer_declarator" in kind else "[" if "array_declarator" in kind else ""
        inner = declarator.child_by_field_name("declarator")
        if inner is None and "parenthesized" in kind and declarator.named_children:
            inner = declarator.named_children[-1]
        declarator = inner
    return found[::-1]


def name_in(declarator: Node | None) -> str:
    """Also of a type or a field."""
    while declarator is not None and declarator.type not in ("type_identifier", "field_identifier"):
        if declarator.type == "identifier":
            break
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.named_children and declarator.type == "parenthesized_declarator":
            inner = declarator.named_children[-1]
        if inner is None:
            return text_of(declared_name(declarator))
        declarator = inner
    return text_of(declarator)


def content_of(layers: Layers) -> Layers:
    """Whether pointers, structs that hold some or neither lie in an array."""
    return layers.lstrip("[")[:1]


def _function_name(function: Node) -> str:
    declarator: Node | None = function
    while declarator is not None and declarator.type != "function_declarator":
        declarator = _inner_declarator(declarator)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    while name is not None and name.type in ("qualified_identifier", "template_function"):
        name = name.child_by_field_name("name")
    found = text_of(name)
    return found.replace(" ", "") if found.startswith("operator") else found


def _inner_declarator(declarator: Node) -> Node | None:
    inner = declarator.child_by_field_name("declarator")
    if inner is None and declarator.type in _WRAPPERS:
        return declarator.named_children[-1] if declarator.named_children else None
    return inner


def declarator_kinds(declarator: Node | None) -> set[str]:
    found: set[str] = set()
    while declarator is not None and declarator.type not in ("identifier", "field_identifier"):
        found.add(declarator.type)
        declarator = _inner_declarator(declarator)
    return found


def count_dimensions(name: Node | None) -> int:
    """Of the array that a declaration makes of a name; 0: it is none."""
    count = 0
    while name is not None and name.parent is not None and name.parent.type == "array_declarator":
        count, name = count + 1, name.parent
    return count


def parameters_of(function: Node) -> list[Node]:
    declarator: Node | None = function
    while declarator is not None and declarator.child_by_field_name("parameters") is None:
        declarator = _inner_declarator(declarator)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    found = listed.named_children if listed is not None else []
    return [one for one in found if one.type.endswith("parameter_declaration") and text_of(one) != "void"]


def qualifiers_of(place: GrammarText | None, node: Node) -> set[str]:
    inserted = place.inserted if place is not None else frozenset[int]()
    words = (one for one in node.children if one.type in ("type_qualifier", "storage_class_specifier"))
    return {text_of(one) for one in words if one.start_byte not in inserted}


def called_name(call: Node) -> str:
    """Also of a member, and of a template."""
    node = call.child_by_field_name("function")
    while node is not None and not (node.type.endswith("identifier") and node.type != "qualified_identifier"):
        inner = node.child_by_field_name("field") or node.child_by_field_name("name")
        node = node.named_children[0] if inner is None and node.type == "dependent_name" else inner
    return text_of(node)


def _is_conversion(call: Node) -> bool:
    called = call.child_by_field_name("function")
    return called is not None and called.type in SIMPLE


def without_comments(node: Node) -> list[Node]:
    return [one for one in node.named_children if one.type != "comment"]


def arguments_of(call: Node) -> list[Node]:
    listed = call.child_by_field_name("arguments")
    return without_comments(listed) if listed is not None else []


def array_pointer(left: Node) -> Node | None:
    """The name in `float (*rows)[33] = …`, which the grammar of C++ takes for an assignment to a call."""
    while left.type == "subscript_expression":
        inner = left.child_by_field_name("argument")
        if inner is None:
            return None
        left = inner
    called = left.child_by_field_name("function") if left.type == "call_expression" else None
    if called is None or called.type not in ("primitive_type", "identifier", "type_identifier"):
        return None
    arguments = arguments_of(left)
    if len(arguments) != 1 or arguments[0].type != "pointer_expression":
        return None
    name = arguments[0].child_by_field_name("argument")
    return name if name is not None and name.type == "identifier" else None


def asm_operands(node: Node, field: str) -> list[Node]:
    listed = node.child_by_field_name(field)
    operands = listed.named_children if listed is not None else []
    found = (one.child_by_field_name("value") for one in operands if one.type.endswith("operand"))
    return [one for one in found if one is not None]


def member_name(declarator: Node | None) -> str:
    while declarator is not None and not declarator.type.endswith("identifier"):
        declarator = _inner_declarator(declarator)
    return text_of(declarator)
