"""Expressions and statements of a unit: what they tell of addresses, and what they store where."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tunesmith.problem.vetting.device_words import Refusal, Rule, split_word_set
from tunesmith.problem.vetting.flow_memory import (
    LOW,
    NOTHING,
    NULL_CONSTANT,
    PLAIN,
    WIDEST_SHARED,
    FlowArray,
    FlowMemory,
    FlowValue,
    Place,
    combine_values,
    is_null,
    join_all,
    join_values,
)
from tunesmith.problem.vetting.unit import (
    CASTS,
    Layers,
    arguments_of,
    array_pointer,
    called_name,
    content_of,
    count_dimensions,
    declarator_kinds,
    parameters_of,
    qualifiers_of,
    without_comments,
)
from tunesmith.source.reader.grammar import GrammarText, declared_name, syntax_nodes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

SAME = re.compile(
    r"as_\w+|to_(?:global|local|private)|__cvta_\w+|__builtin_(?:assume_aligned|expect|bit_cast)|move|forward"
    r"|addressof|convert_u?long\w*"
)
READ_APART = ("binary_expression", "comma_expression", "conditional_expression")
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">=", "<=>"})
_ALIGNMENT = "an alignment may be tested, as in `& 15`, up to an access's width"
_LEAVES = split_word_set(
    "number_literal string_literal char_literal concatenated_string type_descriptor primitive_type this "
    "null true false comment sizeof_expression template_argument_list sized_type_specifier "
    "alignof_expression attribute_declaration qualified_identifier template_function struct_specifier "
    "class_specifier union_specifier enum_specifier function_definition template_declaration "
    "type_definition alias_declaration break_statement using_declaration static_assert_declaration "
    "type_qualifier storage_class_specifier"
)


class FlowExpressions(FlowMemory):
    """Handlers by the kind of node: `_on_` and its name."""

    asks_numbers = False

    @cached_property
    def _handlers_by_kind(self) -> dict[str, Callable[[Node], FlowValue]]:
        names = (name for name in dir(self) if name.startswith("_on_"))
        return {name.removeprefix("_on_"): getattr(self, name) for name in names}

    def begin(self) -> None:
        super().begin()
        self.optional: set[str] = set()
        self.lambdas: dict[str, tuple[GrammarText, Node, Sequence[dict[str, str]]]] = {}

    @abstractmethod
    def _call(self, name: str, arguments: Sequence[Node]) -> FlowValue: ...

    @abstractmethod
    def _template_call(self, node: Node) -> FlowValue | None: ...

    @abstractmethod
    def _run_lambda(self, key: str, arguments: Sequence[Node]) -> FlowValue: ...

    def value(self, node: Node) -> FlowValue:
        kind = node.type
        if kind in READ_APART and not self.is_c and (called := self._template_call(node)) is not None:
            return called
        handler = self._handlers_by_kind.get(kind)
        if handler is not None:
            return handler(node)
        if kind in _LEAVES:
            return PLAIN
        found = PLAIN
        for child in node.named_children:
            value = self.value(child)
            if value is not PLAIN and not value.is_plain:
                found = join_values(found, value) if not found.is_plain else value
        return found

    def _field(self, node: Node, name: str) -> FlowValue:
        child = node.child_by_field_name(name)
        return self.value(child) if child is not None else PLAIN

    def _condition(self, node: Node | None) -> None:
        if node is not None:
            self._judge_condition(node, self.value(node))

    def _judge_condition(self, node: Node, value: FlowValue) -> None:
        if not value.arrays:
            return
        refusal = self.refuse(node, f"decides by the address of {self._names(value.arrays)}; {_ALIGNMENT}")
        if not value.is_place:
            raise refusal
        self._null_test(value, refusal)

    def _null_test(self, value: FlowValue, refusal: Refusal) -> None:
        """An argument may be missing; behind steps it is asked for only where the argument itself is, too."""
        if value.is_moved:
            self.doubted.append((value.arrays - {NOTHING}, refusal))
        else:
            self.optional |= value.arrays

    def _on_identifier(self, node: Node) -> FlowValue:
        assert node.text is not None
        name = node.text.decode("utf-8", "replace")
        key = self.lookup(name)
        if key is None:
            is_member = f".{name}" in self.held or name in self.array_members | self.pointer_members
            return self._load(f".{name}", node) if is_member else PLAIN
        if key in self.lambdas:
            self._run_lambda(key, ())
            return PLAIN
        places = self.aliases.get(key)
        if places is None:
            return self._load(key, node)
        return join_all([self._load(place, node) for place in places])

    _on_type_identifier = _on_identifier

    def _last(self, node: Node) -> FlowValue:
        value = PLAIN
        for child in node.named_children:
            value = self.value(child)
        if node.type == "cast_expression" and value.dims > 1:
            return replace(value, dims=1)
        return value

    _on_parenthesized_expression = _on_comma_expression = _on_condition_clause = _on_initializer_pair = _last

    def _on_cast_expression(self, node: Node) -> FlowValue:
        if not self.is_c:
            return self._last(node)
        source, layers = node.child_by_field_name("value"), self.layers(node)
        if source is None:
            return PLAIN
        inside = source
        while inside.type == "parenthesized_expression" and len(inside.named_children) == 1:
            inside = inside.named_children[0]
        if layers or inside.type != "comma_expression":
            return self._converted(self.value(source), layers, node, source, is_cast=True)
        found: list[FlowValue] = []  # a vector's parts
        while inside.type == "comma_expression":
            inside, last = inside.named_children[0], inside.named_children[-1]
            found.append(self.value(last))
        return self._converted(join_all([*found, self.value(inside)]), layers, node, None, is_cast=True)

    def _on_unary_expression(self, node: Node) -> FlowValue:
        operator = text_of(node.child_by_field_name("operator"))
        argument = node.child_by_field_name("argument")
        if operator in ("!", "not"):
            self._condition(argument)
            return PLAIN
        if argument is None or (value := self.value(argument)).is_plain:
            return PLAIN if argument is None else value
        return self._join_overload(operator, value if operator == "+" else value.mixed(PLAIN), argument)

    def _on_binary_expression(self, node: Node) -> FlowValue:
        chain: list[Node] = []  # a sum of many is deep on its left
        first: Node | None = node
        while first is not None and first.type == "binary_expression":
            chain.append(first)
            first = first.child_by_field_name("left")
        value, left = self.value(first) if first is not None else PLAIN, first
        for each in reversed(chain):
            value, left = self._joined_by(each, left, value), each
        return value

    def _joined_by(self, node: Node, left: Node | None, one: FlowValue) -> FlowValue:
        right, operator = node.child_by_field_name("right"), node.child_by_field_name("operator")
        if left is None or right is None or operator is None:
            return PLAIN
        sign = operator.type
        if sign in ("&&", "||"):
            self._judge_condition(left, one)
            self.control.append(None)
            self._condition(right)
            self.control.pop()
            return PLAIN
        other = self.value(right)
        if one is PLAIN and other is PLAIN:
            return PLAIN
        if sign in _COMPARISONS:
            found = self._compared(node, left, right, one, other, sign)
        else:
            found = self._combine_operands(sign, one, other, node, left, right)
        return self._join_overload(sign, found, left, right)

    def _join_overload(self, sign: str, found: FlowValue, *operands: Node) -> FlowValue:
        """Or what an operator of the unit's own gives."""
        name = f"operator{sign}"
        return join_all([found, self._call(name, operands)]) if name in self.functions else found

    def _combine_operands(
        self, sign: str, one: FlowValue, other: FlowValue, node: Node, left: Node, right: Node
    ) -> FlowValue:
        if one.is_plain and other.is_plain:
            return PLAIN
        number = None
        if sign in ("&", "%", ">>", "/"):
            self.asks_numbers = True
            number = self.number(right)
            if number is None and sign == "&":
                number = self.number(left)
        arrays = one.arrays | other.arrays
        is_shared = not self.is_c and self._lies_in(arrays, "shared")
        width = WIDEST_SHARED if is_shared else self.widest
        value = combine_values(sign, one, other, number, width)
        from_null = self.is_c and NOTHING in arrays
        if value is None and self._lies_in(arrays, "unknown") and not from_null:
            return PLAIN  # whoever calls it decides
        if value is None:
            what = f"is the distance between {self._names(arrays)}, which differs from program to program"
            rule: Rule = "pointer" if from_null else "address"
            raise self.refuse(node, f"{what}; index each array from its own start", rule)
        return value

    def _compared(
        self, node: Node, left: Node, right: Node, one: FlowValue, other: FlowValue, sign: str
    ) -> FlowValue:
        if not (one.arrays or other.arrays):
            return PLAIN
        if one.is_place and other.is_place:
            keys = one.arrays | other.arrays
            if one.one_array == other.one_array is not None or self._lies_in(keys, "unknown"):
                return PLAIN
            what = f"compares addresses of {self._names(keys)}"
            raise self.refuse(node, f"{what}; two arrays may lie anywhere: compare indices")
        held, bare = (one, right) if one.arrays else (other, left)
        by_null = sign in ("==", "!=") and NULL_CONSTANT.fullmatch(text_of(bare))
        what = f"compares the address of {self._names(one.arrays | other.arrays)} with something else"
        refusal = self.refuse(node, f"{what}; {_ALIGNMENT}")
        if not (held.is_place and by_null and (one.is_plain or other.is_plain)):
            raise refusal
        self._null_test(held, refusal)
        return PLAIN

    def _evaluate_branches(self, parts: Sequence[Node]) -> list[FlowValue]:
        """One of them happens: what the others would write is not there for it."""
        unset, written, values = self.unset, self.written, list[FlowValue]()
        still, more = set(unset), set(written)
        self.control.append(None)
        for part in parts:
            self.unset, self.written = set(unset), set(written)
            values.append(self.value(part))
            still, more = still & self.unset, more | self.written
        self.control.pop()
        self.unset, self.written = still, more
        return values

    def _on_conditional_expression(self, node: Node) -> FlowValue:
        self._condition(node.child_by_field_name("condition"))
        sides = [node.child_by_field_name(side) for side in ("consequence", "alternative")]
        either = [side for side in sides if side is not None]
        values = list(zip(either, self._evaluate_branches(either), strict=True))
        if self.is_c and any(value.arrays for _, value in values):
            for side, value in values:
                if not value.arrays and not is_null(side):
                    self._doubt(side, "makes a pointer of a number")
        return join_values(values[0][1], values[-1][1])

    def _on_pointer_expression(self, node: Node) -> FlowValue:
        argument = node.child_by_field_name("argument")
        if argument is None:
            return PLAIN
        if node.children[0].type == "*":
            pointer = self.value(argument)
            found = self._pointed(pointer, argument, node)
            return self._join_overload("*", found, argument) if pointer.arrays else found
        return self._address(argument)

    def _address(self, argument: Node) -> FlowValue:
        found = PLAIN
        for place in self._places(argument):
            if isinstance(place, str):
                name, holds = place.partition("@")[0], content_of(self._kind(place))
                self.arrays.setdefault(place, FlowArray(name, "variable", holds=holds))
                base = place.rpartition(".")[0]  # whose other members are a step away
                if base and not self.is_c:
                    self.arrays.setdefault(base, FlowArray(name, "variable"))
                place = FlowValue(frozenset({place, base} if base and not self.is_c else {place}))
            found = place if found is PLAIN else join_values(found, place)
        return found

    def _pointed(self, pointer: FlowValue, argument: Node, node: Node) -> FlowValue:
        if not pointer.arrays:
            return pointer  # a member that is an array
        if pointer.dims > 1:
            return replace(pointer, dims=pointer.dims - 1)
        return self._access(pointer, node)

    def _on_subscript_expression(self, node: Node) -> FlowValue:
        pointer, base = self._indexed(node)
        found = self._pointed(pointer, base, node)
        indices = node.child_by_field_name("index") or node.child_by_field_name("indices")
        return self._join_overload("[]", found, indices) if pointer.arrays and indices else found

    def _indexed(self, node: Node) -> tuple[FlowValue, Node]:
        base = node.child_by_field_name("argument")
        index = node.child_by_field_name("index") or node.child_by_field_name("indices")
        assert base is not None and index is not None
        pointer, by = self.value(base), self.value(index)
        if by.arrays and not pointer.arrays:
            pointer, by = by, pointer
        if by.arrays:
            what = f"has an index that is made of the address of {self._names(by.arrays)}"
            raise self.refuse(node, f"{what}; count from the start of the array")
        return (pointer.stepped(by) if pointer.arrays else pointer), base

    def _on_field_expression(self, node: Node) -> FlowValue:
        argument = node.child_by_field_name("argument")
        name = text_of(node.child_by_field_name("field"))
        if argument is None:
            return PLAIN
        if argument.type == "identifier" and self.lookup(text_of(argument)) is None:
            return PLAIN  # threadIdx.x
        layers, places = self.fields.get(name, ""), self._places(node)
        if layers.startswith("[") and any(isinstance(place, FlowValue) for place in places):
            found = join_all([place for place in places if isinstance(place, FlowValue)])
            return replace(found.stepped(PLAIN), dims=layers.count("["))
        values = [self._load(place, node) for place in places]
        found = join_all(values) if values else self.held.get(f".{name}", PLAIN)
        is_number = name in self.fields and not layers and found.arrays
        return (LOW if found.is_low else PLAIN) if is_number else found

    def _places(self, node: Node) -> tuple[Place, ...]:
        """Where an lvalue lies."""
        match node.type:
            case "identifier":
                key = self.lookup(text_of(node))
                return self.aliases.get(key, (key,)) if key is not None else (f".{text_of(node)}",)
            case "parenthesized_expression" | "comma_expression":
                return self._places(node.named_children[-1]) if node.named_children else ()
            case "cast_expression" if self.is_c:
                raise self.refuse(node, "is a cast, where nothing is kept; index its pointer", "pointer")
            case "cast_expression":
                value = node.child_by_field_name("value")
                return self._places(value) if value is not None else ()
            case "assignment_expression" | "update_expression":
                self.value(node)
                target = node.child_by_field_name("left") or node.child_by_field_name("argument")
                return self._places(target) if target is not None else ()
            case "conditional_expression":
                sides = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
                self._condition(node.child_by_field_name("condition"))
                return tuple(place for side in sides if side is not None for place in self._places(side))
            case "subscript_expression":
                pointer, base = self._indexed(node)
                return (pointer,) if pointer.arrays else self._places(base)
            case "pointer_expression" if node.children[0].type == "*":
                argument = node.child_by_field_name("argument")
                pointer = self.value(argument) if argument is not None else PLAIN
                return (pointer,) if pointer.arrays else ()
            case "field_expression":
                return self._member_places(node)
            case "call_expression":
                name = called_name(node)
                arguments = arguments_of(node)
                if arguments and (name in CASTS or SAME.fullmatch(name)):
                    return self._places(arguments[0])
                given = self.value(node)
                return (given,) if given.arrays else ()
        return ()

    def _member_places(self, node: Node) -> tuple[Place, ...]:
        argument = node.child_by_field_name("argument")
        name = text_of(node.child_by_field_name("field"))
        if argument is None or argument.type == "this":
            return (f".{name}",)
        operator = node.child_by_field_name("operator")
        if text_of(operator) == "->":
            pointer = self.value(argument)
            if pointer.arrays and self._lies_in(pointer.arrays, "variable"):
                return tuple(f"{key}.{name}" for key in sorted(pointer.arrays - {NOTHING}))
            return (pointer,) if pointer.arrays else (f".{name}",)
        places = self._places(argument)
        return tuple(f"{place}.{name}" if isinstance(place, str) else place for place in places)

    def _on_assignment_expression(self, node: Node) -> FlowValue:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = text_of(node.child_by_field_name("operator"))
        if left is None or right is None:
            return PLAIN
        value = self.value(right)
        if (declared := array_pointer(left)) is not None:
            is_reference = declared.parent is not None and text_of(declared.parent).startswith("&")
            places = self._places(right) if is_reference else (value,)
            at = [self._load(one, node) if isinstance(one, str) else one for one in places]
            self._store(self._declare(text_of(declared), declared), join_all(at), node)
            return value
        if sign != "=":
            if self.is_c and value.arrays:
                raise self.refuse(node, "makes a number of a pointer", "pointer")
            value = self._combine_operands(sign[:-1], self.value(left), value, node, left, right)
        self._assign(left, value, node, right)
        return self._join_overload(sign, value, left, right)

    def _kind(self, place: Place, left: Node | None = None) -> Layers:
        """Of what is kept there."""
        while left is not None and left.type == "parenthesized_expression":
            left = left.named_children[-1]
        if left is not None and left.type == "field_expression":
            return self.fields.get(text_of(left.child_by_field_name("field")), "")
        if isinstance(place, str):
            member = place.rpartition(".")[2]
            return self.fields.get(member, "") if "." in place else self.kinds.get(place, "")
        return max((self.arrays[key].holds for key in place.arrays if key in self.arrays), default="")

    def _assign(self, left: Node, value: FlowValue, node: Node, right: Node | None = None) -> None:
        places = self._places(left)
        for place in places:
            value = self._converted(value, self._kind(place, left), node, right) if self.is_c else value
            self._store(place, value, node)
        if not places and value.arrays:
            what = f"keeps the address of {self._names(value.arrays)} where it cannot be followed"
            raise self.refuse(node, f"{what}; keep it in a variable")

    def _on_update_expression(self, node: Node) -> FlowValue:
        argument = node.child_by_field_name("argument")
        if argument is None:
            return PLAIN
        value = self.value(argument)
        if value.arrays:
            value = value.stepped(PLAIN)
        self._assign(argument, value, node)
        return self._join_overload(text_of(node.child_by_field_name("operator")), value, argument)


# -- Statements and declarations of a unit, in the order of the text.


class FlowStatements(FlowExpressions):
    def begin(self) -> None:
        super().begin()
        self.returned: list[FlowValue] = []
        self.returning: Layers = ""
        self.cases: list[tuple[set[str], set[str], set[str], set[str]]] = []

    def _on_compound_literal_expression(self, node: Node) -> FlowValue:
        layers, value = self.layers(node), node.child_by_field_name("value")
        if not self.is_c or value is None:
            return self._last(node)
        if set(layers) & set("*s"):
            raise self.refuse(node, "fills pointers from a list; assign them one by one", "pointer")
        self._listed(value, layers)
        key = self._declare("", node, layers)
        self.arrays[key] = FlowArray("a list", "private")
        return FlowValue(frozenset({key}), dims=layers.count("[")) if layers else PLAIN

    def _on_string_literal(self, node: Node) -> FlowValue:
        if not self.is_c:
            return PLAIN
        self.arrays["text"] = FlowArray("a text", "constant", True)
        return FlowValue(frozenset({"text"}))

    _on_concatenated_string = _on_string_literal

    def _listed(self, node: Node, layers: Layers) -> FlowValue:
        """What a list fills an array, a vector or a struct with."""
        layers = layers.lstrip("[")
        if layers.startswith("s"):
            raise self.refuse(node, "fills a struct that holds pointers; assign to its fields", "pointer")
        found: list[FlowValue] = []
        for part in node.named_children:
            value = part.child_by_field_name("value") if part.type == "initializer_pair" else part
            if value is None or value.type == "comment":
                continue
            is_list = value.type == "initializer_list"
            is_text = not layers and value.type.endswith("string_literal")
            given = self._listed(value, layers) if is_list else PLAIN if is_text else self.value(value)
            found.append(given if is_list else self._converted(given, layers, value, value))
        return join_all(found)

    def _on_compound_statement(self, node: Node) -> FlowValue:
        self.scopes.append({})
        for child in node.named_children:
            self.value(child)
        self.scopes.pop()
        return PLAIN

    def _on_if_statement(self, node: Node) -> FlowValue:
        self.scopes.append({})
        self._condition(node.child_by_field_name("condition"))
        sides = [node.child_by_field_name(side) for side in ("consequence", "alternative")]
        self._evaluate_branches([side for side in sides if side is not None])
        self.scopes.pop()
        return PLAIN

    def _on_switch_statement(self, node: Node) -> FlowValue:
        self.scopes.append({})
        value = self._field(node, "condition")
        if value.arrays:
            raise self.refuse(node, f"decides by the address of {self._names(value.arrays)}")
        unset, written = set(self.unset), set(self.written)
        self.cases.append((unset, written, unset, written))
        if (body := node.child_by_field_name("body")) is not None:
            self._evaluate_branches([body])
        *_, unset, written = self.cases.pop()
        self.unset, self.written = self.unset & unset, self.written | written
        self.scopes.pop()
        return PLAIN

    def _on_case_statement(self, node: Node) -> FlowValue:
        """Begins with what was there before all of them, and what the one before leaves where it goes on."""
        before = node.prev_named_sibling
        start, more, unset, written = self.cases[-1]
        unset, written = unset & self.unset, written | self.written
        self.cases[-1] = (start, more, unset, written)
        ends = before.named_children[-1].type if before is not None and before.named_children else ""
        if ends in ("break_statement", "return_statement", "continue_statement"):
            self.unset, self.written = set(start), set(more)
        label = node.child_by_field_name("value")
        for child in node.named_children:
            if child != label:
                self.value(child)
        return PLAIN

    def _loop(self, node: Node) -> FlowValue:
        self.scopes.append({})
        self._field(node, "initializer")
        source = self._field(node, "right")
        later: list[tuple[str, Refusal]] = []
        self.control.append(later)
        if node.type == "for_range_loop":
            inside = self._access(source, node) if source.arrays else PLAIN
            is_local = self._lies_in(source.arrays, "private") or self._lies_in(source.arrays, "shared")
            declarator = node.child_by_field_name("declarator")
            element = inside if is_local else join_all([source, inside])
            self._bind_names(declarator, node, element, place=source if source.arrays else None)
        if node.type != "do_statement":
            self._condition(node.child_by_field_name("condition"))
        self._field(node, "body")
        if node.type == "do_statement":
            self._condition(node.child_by_field_name("condition"))
        self._field(node, "update")
        self.control.pop()
        self.scopes.pop()
        for key, refusal in later:
            if key in self.unset or (key in self.arrays and key not in self.written):
                raise refusal
        return PLAIN

    _on_for_statement = _on_while_statement = _on_do_statement = _on_for_range_loop = _loop

    def _on_return_statement(self, node: Node) -> FlowValue:
        for child in node.named_children:
            value = self.value(child)
            if self.returning or value.is_place:  # whoever calls it decides on bits
                value = self._converted(value, self.returning, node, child)
            self.returned.append(value)
        return PLAIN

    def _on_declaration(self, node: Node) -> FlowValue:
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            is_set = declarator.type == "init_declarator"
            target = declarator.child_by_field_name("declarator") if is_set else declarator
            if target is None:
                continue
            if target.type == "function_declarator":
                self._declare_vexing_parse(target, node)
            elif target.type == "structured_binding_declarator":
                held = self.value(value) if value is not None else PLAIN
                for one in target.named_children:
                    self._store(self._declare(text_of(one), one), held, one)
            elif value is not None and value.type == "lambda_expression":
                key = self._declare(text_of(declared_name(target)), target)
                self.lambdas[key] = (self.place, value, list(self.scopes))
            elif value is not None and "reference_declarator" in declarator_kinds(target):
                self._bind_names(target, node, self.value(value), value)
            else:
                self._declare_variable(node, declarator, target, value)
        return PLAIN

    def _declare_variable(self, node: Node, declarator: Node, target: Node, value: Node | None) -> None:
        kind, kinds = node.child_by_field_name("type"), declarator_kinds(target)
        qualifiers, name = qualifiers_of(self.place, node), declared_name(target)
        layers = self.layers(node, target) if self.is_c else ""
        key = self._declare(text_of(name), target, layers)
        at_file = len(self.scopes) == 1
        if value is not None and self.is_bare(kind) and not kinds:
            self.unset.add(key)  # until it has its value
        given = self._initial_value(value, kind, layers, declarator)
        dims = len(layers) - len(layers.lstrip("[")) if self.is_c else count_dimensions(name)
        dims += not self.is_c and text_of(kind) in self.array_types
        is_shared = bool(qualifiers & {"__shared__", "_Noreturn"})
        if dims or (is_shared and "pointer_declarator" not in kinds):
            space = "shared" if is_shared else "constant" if at_file else "private"
            lacks = value is None and not at_file and (self.is_bare(kind) or (is_shared and dims > 0))
            self.arrays[key] = FlowArray(text_of(name), space, space == "constant", lacks, content_of(layers))
            if dims:
                self._hold(key, FlowValue(frozenset({key}), dims=dims), False)
            if not given.is_plain:
                self._hold(f"*{key}", given, True)
            if not dims:
                self.aliases[key] = (FlowValue(frozenset({key})),)
        elif value is not None:
            is_constant = qualifiers & {"const", "constexpr", "__constant__", "noreturn"}
            if is_constant and (number := self.number(value)) is not None:
                self.constants[key] = number
            self._store(key, given, node)
            if not self.is_c and given.arrays and self.record_of(text_of(kind)) in self.members:
                self._hold("", given, True)
            self._members(key, value, kind)
        elif self.is_bare(kind) and not kinds and not at_file:
            self.unset.add(key)

    def _declare_vexing_parse(self, target: Node, node: Node) -> None:
        """`pair p(x, w);`, which the grammar takes for the declaration of a function."""
        types = [one.child_by_field_name("type") for one in parameters_of(target)]
        named = [one for one in types if one is not None and self.lookup(text_of(one)) is not None]
        if named:
            name = text_of(node.child_by_field_name("type"))
            self._store(self._declare(text_of(declared_name(target)), target), self._made(name, named), node)

    def _initial_value(self, value: Node | None, kind: Node | None, layers: Layers, node: Node) -> FlowValue:
        if value is None:
            return PLAIN
        if self.is_c and value.type == "initializer_list":
            return self._listed(value, layers)
        if self.is_c:
            is_text = layers.startswith("[")
            return PLAIN if is_text else self._converted(self.value(value), layers, node, value)
        if value.type in ("argument_list", "initializer_list"):
            return self._made(text_of(kind), without_comments(value))
        return self.value(value)

    def _made(self, name: str, arguments: Sequence[Node]) -> FlowValue:
        """By a constructor, where there is one."""
        name = name.partition("<")[0].strip()
        if name in self.functions:
            self._call(name, arguments)
        return join_all([self.value(one) for one in arguments])

    def _members(self, key: str, value: Node, kind: Node | None) -> None:
        """Of a list that fills a struct."""
        if value.type == "compound_literal_expression":
            value = value.child_by_field_name("value") or value
        names = self.members.get(record := self.record_of(text_of(kind)))
        if value.type == "identifier" and names:
            for name in names:
                for place in self._places(value):
                    if isinstance(place, str):
                        self._store(f"{key}.{name}", self._load(f"{place}.{name}", value), value)
        if value.type != "initializer_list" or not names:
            return
        if record in self.functions or (record, "") in self.wide:
            return  # what it holds may be any member's
        for name, one in zip(names, without_comments(value), strict=False):
            if one.type == "initializer_pair":
                name = text_of(one.child_by_field_name("designator")).lstrip(". ")
            elif (record, name) in self.wide and one.type != "initializer_list":
                break  # braces may be left out
            if not self.is_array_member(record, name):
                self._store(f"{key}.{name}", self.value(one), one)

    def _bind_names(
        self,
        target: Node | None,
        node: Node,
        value: FlowValue,
        source: Node | None = None,
        place: FlowValue | None = None,
    ) -> None:
        """A name for something else, or for a copy of it."""
        for name in (n for n in syntax_nodes(target) if n.type == "identifier") if target is not None else ():
            key = self._declare(text_of(name), name)
            places = self._places(source) if source is not None else ()
            if place is not None and "reference_declarator" in declarator_kinds(target):
                places = (place,)
            if places and "array_declarator" in declarator_kinds(target):
                at = [self._load(one, node) if isinstance(one, str) else one for one in places]
                self._store(key, join_all(at), node)
            elif places:
                self.aliases[key] = places
            else:
                self._store(key, value, node)
