"""Expressions and statements of a unit: what they tell of addresses, and what they store where."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.csource.grammar import GrammarText
from tunesmith.csource.syntax import text_of
from tunesmith.problem.device_words import DeviceWords, Refusal, Rule, UserWords, listed
from tunesmith.problem.vetting_memory import NULL_CONSTANT, FlowMemory, Place, is_null
from tunesmith.problem.vetting_unit import (
    CASTS,
    Layers,
    arguments_of,
    array_pointer,
    called_name,
    content_of,
)
from tunesmith.problem.vetting_values import (
    LOW,
    NOTHING,
    PLAIN,
    WIDEST_SHARED,
    FlowArray,
    FlowValue,
    combine,
    join,
    join_all,
)

if TYPE_CHECKING:
    from tree_sitter import Node

SAME = re.compile(
    r"as_\w+|to_(?:global|local|private)|__cvta_\w+|__builtin_(?:assume_aligned|expect|bit_cast)|move|forward"
    r"|addressof|convert_u?long\w*"
)
READ_APART = ("binary_expression", "comma_expression", "conditional_expression")
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">=", "<=>"})
_ALIGNMENT = "an alignment may be tested, as in `& 15`, up to an access's width"
_LEAVES = listed(
    "number_literal string_literal char_literal concatenated_string type_descriptor primitive_type this "
    "null true false comment sizeof_expression template_argument_list sized_type_specifier "
    "alignof_expression attribute_declaration qualified_identifier template_function struct_specifier "
    "class_specifier union_specifier enum_specifier function_definition template_declaration "
    "type_definition alias_declaration break_statement using_declaration static_assert_declaration "
    "type_qualifier storage_class_specifier"
)


class FlowExpressions(FlowMemory):
    """Handlers by the kind of node: `_on_` and its name."""

    def __init__(
        self, parts: Sequence[tuple[GrammarText, Node]], words: DeviceWords, user: UserWords, is_c: bool
    ) -> None:
        super().__init__(parts, words, user, is_c)
        self.asks_numbers = False
        self.handlers: dict[str, Callable[[Node], FlowValue]] = {
            name.removeprefix("_on_"): getattr(self, name) for name in dir(self) if name.startswith("_on_")
        }

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
        handler = self.handlers.get(kind)
        if handler is not None:
            return handler(node)
        if kind in _LEAVES:
            return PLAIN
        found = PLAIN
        for child in node.named_children:
            value = self.value(child)
            if value is not PLAIN and not value.is_plain:
                found = join(found, value) if not found.is_plain else value
        return found

    def _field(self, node: Node, name: str) -> FlowValue:
        child = node.child_by_field_name(name)
        return self.value(child) if child is not None else PLAIN

    def _condition(self, node: Node | None) -> None:
        if node is not None:
            self._decides(node, self.value(node))

    def _decides(self, node: Node, value: FlowValue) -> None:
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
        return self._overloaded(operator, value if operator == "+" else value.mixed(PLAIN), argument)

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
            self._decides(left, one)
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
            found = self._combined(sign, one, other, node, left, right)
        return self._overloaded(sign, found, left, right)

    def _overloaded(self, sign: str, found: FlowValue, *operands: Node) -> FlowValue:
        """Or what an operator of the unit's own gives."""
        own = f"operator{sign}"
        return join_all([found, self._call(own, operands)]) if own in self.functions else found

    def _combined(
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
        value = combine(sign, one, other, number, width)
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

    def _either(self, parts: Sequence[Node]) -> list[FlowValue]:
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
        values = list(zip(either, self._either(either), strict=True))
        if self.is_c and any(value.arrays for _, value in values):
            for side, value in values:
                if not value.arrays and not is_null(side):
                    self._doubt(side, "makes a pointer of a number")
        return join(values[0][1], values[-1][1])

    def _on_pointer_expression(self, node: Node) -> FlowValue:
        argument = node.child_by_field_name("argument")
        if argument is None:
            return PLAIN
        if node.children[0].type == "*":
            pointer = self.value(argument)
            found = self._pointed(pointer, argument, node)
            return self._overloaded("*", found, argument) if pointer.arrays else found
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
            found = place if found is PLAIN else join(found, place)
        return found

    def _pointed(self, pointer: FlowValue, argument: Node, node: Node) -> FlowValue:
        if not pointer.arrays:
            return pointer  # a member that is an array
        if pointer.dims > 1:
            return FlowValue(
                pointer.arrays, pointer.shift, pointer.is_low, pointer.is_moved, pointer.dims - 1
            )
        return self._access(pointer, node)

    def _on_subscript_expression(self, node: Node) -> FlowValue:
        pointer, base = self._indexed(node)
        found = self._pointed(pointer, base, node)
        indices = node.child_by_field_name("index") or node.child_by_field_name("indices")
        return self._overloaded("[]", found, indices) if pointer.arrays and indices else found

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
        return tuple(
            f"{place}.{name}" if isinstance(place, str) else place for place in self._places(argument)
        )

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
            value = self._combined(sign[:-1], self.value(left), value, node, left, right)
        self._assign(left, value, node, right)
        return self._overloaded(sign, value, left, right)

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
        return self._overloaded(text_of(node.child_by_field_name("operator")), value, argument)
