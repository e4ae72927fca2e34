"""Pointers in C that may run on the host's CPU: none is made of a number, and none becomes one.

A pointer comes from an argument, an array or `&`, by steps and by casts of one to another. Of its bits only
the lowest are asked for, where an alignment is tested; what is prefetched may be anywhere. C converts
silently as well: what is initialised, assigned, handed over and returned is judged like a cast. Types are
known as far as this takes: which layers of pointers and arrays there are, and whether a struct holds one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from tunesmith.csource.grammar import GrammarText, declared_name, syntax_nodes, text_of
from tunesmith.csource.lex import Token
from tunesmith.csource.types import is_builtin_type
from tunesmith.problem.device_words import Refusal

if TYPE_CHECKING:
    from tree_sitter import Node

Layers = str  # from the outside: * a pointer, [ an array, s a struct that holds a pointer, ? nobody knows
_DECLARATIONS = ("declaration", "parameter_declaration", "field_declaration", "type_definition")
_STRUCTS = ("struct_specifier", "union_specifier")
# Built-in functions that take pointers; the first two kinds give them back.
_PASSED_ON = re.compile(r"to_(?:global|local|private)|__builtin_(?:assume_aligned|expect)")
_TAKE = re.compile(
    r"v(?:load|store)\w*|atom(?:ic)?_\w+|async_work_group_\w+|wait_group_events|prefetch|fract|frexp|modf|remquo"
    r"|sincos|lgamma_r|get_fence|sub_group_\w+|(?:read|write)_image\w+|__builtin_(?:prefetch|nontemporal_\w+)"
)
_KERNEL = ("kernel", "__kernel")
_PREFETCHES = ("prefetch", "__builtin_prefetch")
_AROUND = ("parenthesized_expression", "unary_expression")
_NULL = re.compile(r"[()\s]*(?:0|NULL)[)\s]*")
_FARTHEST = 6  # bits by which an address is shifted for that
_WIDEST = 4095  # of a mask or divisor by which an alignment is tested, and of an array whose size is one
FROM_ARRAY = "start from an argument or an array, and index it"


def is_wide(number: str) -> bool:
    """Whether a mask of so many bits tells more of an address than how it is aligned."""
    try:
        return int(number.rstrip("uUlL"), 0) > _WIDEST
    except ValueError:
        return True


def _is_shift(node: Node) -> bool:
    if node.type != "binary_expression" or text_of(node.child_by_field_name("operator")) != ">>":
        return False
    by = text_of(node.child_by_field_name("right"))
    return by.isdigit() and int(by) <= _FARTHEST


class PointerJudge:
    def __init__(self, parts: Sequence[tuple[GrammarText, Node]], tokens: Sequence[Token]) -> None:
        self.parts = parts
        self.kernels = {_function_behind(tokens, at) for at, t in enumerate(tokens) if t.text in _KERNEL}
        roots = [root for _, root in parts]
        self.typedefs: dict[str, Layers] = {}
        self.sized: dict[str, Node] = {}  # types that the unit defines
        self.fields: dict[str, Layers] = {}
        self.returns: dict[str, Layers] = {}
        self.takes: dict[str, list[Layers]] = {}
        self.scope: dict[str, Layers] = {}  # the function's under judgement, and the file's
        self.file: dict[str, Layers] = {}
        self.null = False  # some pointer is one to nothing
        self.distances: list[Refusal] = []
        for _ in range(2):  # a type may be used before what it holds is known
            for root in roots:
                self._read_types(root)
        for root in roots:
            self._read_functions(root)

    # -- what is declared ---------------------------------------------------------------------------

    def _read_types(self, root: Node) -> None:
        for node in syntax_nodes(root):
            if node.type == "type_definition":
                base = self._base(node)
                for declarator in node.children_by_field_name("declarator"):
                    name = _named(declarator)
                    self.typedefs[name] = _layers(declarator) + base
                    self.sized[name] = node
            elif node.type in _STRUCTS and node.child_by_field_name("body") is not None:
                name = text_of(node.child_by_field_name("name"))
                self.sized[name] = node
                self.typedefs[name] = self._struct(node)
            elif node.type == "field_declaration":
                for declarator in node.children_by_field_name("declarator"):
                    _note(self.fields, _named(declarator), _layers(declarator) + self._base(node))

    def _struct(self, node: Node) -> Layers:
        inner = [n for n in syntax_nodes(node) if n.type == "field_declaration"]
        held = (
            _layers(d) + self._base(one) for one in inner for d in one.children_by_field_name("declarator")
        )
        return "s" if any(set(each) & set("*s?") for each in held) else ""

    def _read_functions(self, root: Node) -> None:
        for node in syntax_nodes(root):
            if node.type == "function_declarator" and node.parent is not None:
                outer, stars = node.parent, ""
                while outer is not None and outer.type == "pointer_declarator":
                    outer, stars = outer.parent, stars + "*"
                name = text_of(node.child_by_field_name("declarator"))
                if outer is None or outer.type not in ("function_definition", "declaration"):
                    continue
                self.returns[name] = stars + self._base(outer)
                self.takes[name] = [layers for _, layers in self._parameters(node)]
        for node in root.named_children:
            if node.type == "declaration":
                self._declare(node, self.file)

    def _parameters(self, function: Node) -> Iterator[tuple[str, Layers]]:
        listed = function.child_by_field_name("parameters")
        for one in listed.named_children if listed is not None else ():
            if one.type == "parameter_declaration":
                declarator = one.child_by_field_name("declarator")
                layers = _layers(declarator) + self._base(one)
                yield _named(declarator), layers

    def _base(self, node: Node) -> Layers:
        """Of the type that a declaration names."""
        kind = node.child_by_field_name("type")
        if kind is None:
            return ""
        if kind.type in _STRUCTS and kind.child_by_field_name("body") is not None:
            return self._struct(kind)
        name = kind.child_by_field_name("name") if kind.type in _STRUCTS else kind
        return self.typedefs.get(text_of(name), "")

    def _declare(self, node: Node, into: dict[str, Layers]) -> None:
        for declarator in node.children_by_field_name("declarator"):
            if not any(n.type == "function_declarator" for n in syntax_nodes(declarator)):
                _note(into, _named(declarator), _layers(declarator) + self._base(node))

    # -- judgement ----------------------------------------------------------------------------------

    def judge(self) -> None:
        """Raises Refusal."""
        for place, root in self.parts:
            self._unit(place, root)
        if self.null and self.distances:
            raise self.distances[0]

    def _unit(self, place: GrammarText, root: Node) -> None:
        self.scope = self.file
        for node in root.named_children:
            if node.type != "function_definition":
                self._judge(place, node, "")
                continue
            own = dict(self.file)
            given: Layers = ""
            for inner in syntax_nodes(node):
                if inner.type == "function_declarator":
                    name = text_of(inner.child_by_field_name("declarator"))
                    given = self.returns.get(name, "")
                    for called, layers in self._parameters(inner):
                        self._kernel(place, inner, layers)
                        own[called] = layers
            local: dict[str, Layers] = {}
            for inner in syntax_nodes(node):
                if inner.type == "declaration":
                    self._declare(inner, local)
            for called, layers in local.items():
                parameters = {called for called, _ in self._all_parameters(node)}
                own[called] = _either(own[called], layers) if called in parameters else layers
            self.scope = own
            self._judge(place, node, given)

    def _all_parameters(self, node: Node) -> Iterator[tuple[str, Layers]]:
        for inner in syntax_nodes(node):
            if inner.type == "function_declarator":
                yield from self._parameters(inner)

    def _kernel(self, place: GrammarText, function: Node, layers: Layers) -> None:
        name = text_of(function.child_by_field_name("declarator"))
        if name in self.kernels and set(layers[1:]) & set("*s?"):
            words = f"an argument of {name} holds pointers, which are numbers there; {FROM_ARRAY}"
            raise Refusal("pointer", place.line(function), words)

    def _judge(self, place: GrammarText, root: Node, given: Layers) -> None:
        for node in syntax_nodes(root):
            match node.type:
                case "cast_expression":
                    self._cast(place, node)
                case "init_declarator":
                    self._initialised(place, node)
                case "assignment_expression":
                    self._assigned(place, node)
                case "call_expression":
                    self._called(place, node)
                case "return_statement" if node.named_children:
                    self._moved(place, node.named_children[0], given, node)
                case "compound_literal_expression" if set(self._described(node)) & set("*s?"):
                    raise self._refusal(place, node, "fills pointers from a list")
                case "union_specifier" if self._struct(node):
                    words = "a union makes numbers of pointers; leave the pointer out of it"
                    raise Refusal("pointer", place.line(node), words)
                case "binary_expression" if text_of(node.child_by_field_name("operator")) == "-":
                    sides = [node.child_by_field_name(side) for side in ("left", "right")]
                    if all(side is not None and _is_pointer(self.type_of(side)) for side in sides):
                        what = "is the distance from a pointer to another, and one here points to nothing"
                        self.distances.append(self._refusal(place, node, what))

    def _refusal(self, place: GrammarText, node: Node, what: str) -> Refusal:
        shown = " ".join(place.written(node).split())
        return Refusal("pointer", place.line(node), f"`{shown[:60]}` {what}; {FROM_ARRAY}")

    def _cast(self, place: GrammarText, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is None or self._is_prefetched(node):
            return
        target, own = self._described(node), self.type_of(value)
        if _is_pointer(target):
            if _holds(target) or _holds(own):
                raise self._refusal(place, node, "reads or writes a pointer as something else")
            self._moved(place, value, target, node)
        elif text_of(node.child_by_field_name("type")).split()[-1:] != ["void"]:
            parts = [value] if own else list(_parts(value))
            if any(_may_be_pointer(self.type_of(part)) for part in parts) and not self._tests_alignment(node):
                raise self._refusal(
                    place, node, "makes a number of a pointer, of which only `& 15` may be asked"
                )

    def _initialised(self, place: GrammarText, node: Node) -> None:
        declarator, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        outer = node.parent
        if declarator is None or value is None or outer is None:
            return
        own = _layers(declarator) + self._base(outer)
        if value.type == "initializer_list":
            self._listed(place, value, own.lstrip("["))
        elif not own.startswith("["):
            self._moved(place, value, own, node)

    def _listed(self, place: GrammarText, node: Node, own: Layers) -> None:
        if own[:1] in ("s", "?"):
            raise self._refusal(place, node, "fills a struct that holds pointers; assign to its fields")
        for part in node.named_children:
            value = part.child_by_field_name("value") if part.type == "initializer_pair" else part
            if value is None:
                continue
            if value.type == "initializer_list":
                self._listed(place, value, own)
            else:
                self._moved(place, value, own, value)

    def _assigned(self, place: GrammarText, node: Node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        if text_of(node.child_by_field_name("operator")) == "=":
            self._moved(place, right, self.type_of(left), node)
        elif _may_be_pointer(self.type_of(right)):
            raise self._refusal(place, node, "makes a number of a pointer")

    def _called(self, place: GrammarText, node: Node) -> None:
        name = text_of(node.child_by_field_name("function"))
        listed = node.child_by_field_name("arguments")
        values = [n for n in listed.named_children if n.type != "comment"] if listed is not None else []
        if name in self.takes:
            for value, own in zip(values, self.takes[name], strict=False):
                self._moved(place, value, own, node)
        else:
            for value in values:
                own = self.type_of(value)
                takes = bool(_TAKE.fullmatch(name) or _PASSED_ON.fullmatch(name))
                if _may_be_pointer(own) and (not takes or _holds(own)):
                    raise self._refusal(place, node, "takes a pointer for something else")

    def _moved(self, place: GrammarText, value: Node, target: Layers, node: Node) -> None:
        """A value that becomes one of this type, said or not."""
        if value.type == "initializer_list":
            return
        own = self.type_of(value)
        if _is_pointer(target):
            if _NULL.fullmatch(text_of(value)) or _NULL.fullmatch(_behind_casts(value)):
                self.null = True
            elif not _is_pointer(own):
                raise self._refusal(place, node, "makes a pointer of a number")
            elif _holds(own) != _holds(target):
                raise self._refusal(place, node, "reads or writes a pointer as something else")
        elif target[:1] not in ("s", "?") and _may_be_pointer(own):
            raise self._refusal(place, node, "makes a number of a pointer")

    def _tests_alignment(self, node: Node) -> bool:
        outer = node
        while (above := outer.parent) is not None and (above.type in _AROUND or _is_shift(above)):
            outer = above
        if above is None or above.type != "binary_expression":
            return False
        operator = text_of(above.child_by_field_name("operator"))
        left, right = above.child_by_field_name("left"), above.child_by_field_name("right")
        if operator not in ("&", "%") or left is None or right is None:
            return False
        other = right if left == outer else left
        return (operator == "&" or left == outer) and self._is_narrow(other)

    def _is_prefetched(self, node: Node) -> bool:
        """Nothing is accessed by an address that goes nowhere else."""
        outer = node
        while (above := outer.parent) is not None and above.type in (
            *_AROUND,
            "cast_expression",
            "binary_expression",
        ):
            outer = above
        call = above.parent if above is not None and above.type == "argument_list" else None
        if above is None or call is None or above.named_children[0] != outer:
            return False
        name = text_of(call.child_by_field_name("function"))
        return name in _PREFETCHES and name not in self.takes

    def _is_narrow(self, node: Node) -> bool:
        """A constant of few bits: numbers and sizes of plain types, and differences of these."""
        match node.type:
            case "parenthesized_expression":
                return len(node.named_children) == 1 and self._is_narrow(node.named_children[0])
            case "number_literal":
                return not is_wide(text_of(node))
            case "sizeof_expression":
                kind = node.child_by_field_name("type")
                value = node.child_by_field_name("value")
                while value is not None and value.type == "parenthesized_expression":
                    value = value.named_children[0]
                name = text_of(kind if kind is not None else value)
                return self._is_small(" ".join(name.replace("const ", "").split()))
            case "binary_expression":
                left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
                plain = text_of(node.child_by_field_name("operator")) == "-"
                whole = plain and left is not None and right is not None and text_of(right) == "1"
                return whole and left is not None and self._is_narrow(left)
        return False

    def _is_small(self, name: str) -> bool:
        if is_builtin_type(name, "opencl") or name.endswith("*"):
            return True
        kind = self.sized.get(name.removeprefix("struct ").strip())
        if kind is None:
            return False
        inside = list(syntax_nodes(kind))
        arrays = sum(n.type == "array_declarator" for n in inside)
        names = [text_of(n) for n in inside if n.type == "type_identifier"]
        numbers = [text_of(n) for n in inside if n.type == "number_literal"]
        plain = all(each == name or is_builtin_type(each, "opencl") for each in names)
        return plain and arrays <= 1 and not any(map(is_wide, numbers))

    # -- types --------------------------------------------------------------------------------------

    def _described(self, node: Node) -> Layers:
        """Of a cast or a compound literal."""
        kind = node.child_by_field_name("type")
        if kind is None:
            return ""
        return _layers(kind.child_by_field_name("declarator")) + self._base(kind)

    def type_of(self, node: Node) -> Layers:
        match node.type:
            case "identifier":
                return self.scope.get(text_of(node), "")
            case "parenthesized_expression" | "comma_expression":
                return self.type_of(node.named_children[-1]) if node.named_children else ""
            case "cast_expression" | "compound_literal_expression":
                return self._described(node)
            case "string_literal" | "concatenated_string":
                return "*"
            case "assignment_expression":
                return self._of(node, "left")
            case "update_expression":
                return self._of(node, "argument")
            case "conditional_expression":
                sides = [node.child_by_field_name(side) for side in ("consequence", "alternative")]
                known = [side for side in sides if side is not None and not _NULL.fullmatch(text_of(side))]
                self.null |= len(known) < len(sides)
                types = [self.type_of(side) for side in known]
                return "" if not types else types[0] if len(types) == 1 else _either(types[0], types[1])
            case "pointer_expression":
                inner = self._of(node, "argument")
                return "*" + inner if text_of(node).lstrip().startswith("&") else inner[1:]
            case "subscript_expression":
                whole, index = self._of(node, "argument"), self._of(node, "index")
                return whole[1:] if _is_pointer(whole) or not _is_pointer(index) else index[1:]
            case "field_expression":
                return self.fields.get(text_of(node.child_by_field_name("field")), "")
            case "call_expression":
                name = text_of(node.child_by_field_name("function"))
                listed = node.child_by_field_name("arguments")
                if _PASSED_ON.fullmatch(name) and listed is not None and listed.named_children:
                    return self.type_of(listed.named_children[0])
                return self.returns.get(name, "")
            case "binary_expression":
                left, right = self._of(node, "left"), self._of(node, "right")
                match text_of(node.child_by_field_name("operator")):
                    case "+":
                        return left if _may_be_pointer(left) else right
                    case "-":
                        return "" if _is_pointer(right) else left
        return ""

    def _of(self, node: Node, field: str) -> Layers:
        inner = node.child_by_field_name(field)
        return self.type_of(inner) if inner is not None else ""


def _function_behind(tokens: Sequence[Token], at: int) -> str:
    names = (one.text for one, following in pairwise(tokens[at:]) if following.text == "(")
    return next(names, "")


def _layers(declarator: Node | None) -> Layers:
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


def _named(declarator: Node | None) -> str:
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


def _note(into: dict[str, Layers], name: str, layers: Layers) -> None:
    into[name] = _either(into[name], layers) if name in into else layers


def _either(one: Layers, other: Layers) -> Layers:
    """Where a name means two things; a pointer and an array are used alike."""
    if one.replace("[", "*") == other.replace("[", "*"):
        return one
    return "?" if set(one + other) & set("*[s?") else ""


def _is_pointer(layers: Layers) -> bool:
    return layers[:1] in ("*", "[")


def _may_be_pointer(layers: Layers) -> bool:
    return layers[:1] in ("*", "[", "?")


def _holds(layers: Layers) -> bool:
    """Whether pointers lie where it points to."""
    return _is_pointer(layers) and bool(set(layers[1:]) & set("*s?"))


def _parts(value: Node) -> Iterator[Node]:
    """Of a vector's literal."""
    while value.type == "parenthesized_expression" and len(value.named_children) == 1:
        value = value.named_children[0]
    if value.type == "comma_expression":
        for side in value.named_children:
            yield from _parts(side)
    else:
        yield value


def _behind_casts(value: Node) -> str:
    while value.type in ("cast_expression", "parenthesized_expression"):
        inner = value.child_by_field_name("value") if value.type == "cast_expression" else None
        if inner is None:
            inner = value.named_children[-1]
        value = inner
    return text_of(value)
