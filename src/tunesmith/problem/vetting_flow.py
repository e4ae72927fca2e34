"""Where addresses go, what is written, and what is read before anything was: data flow on the tree.

Kernels are followed from their arguments through variables, members, calls and lambdas, every call with what
it is given. Values are joined where ways meet, so one pass in the order of the text does, and another where a
loop brings back more than was read. A place is an array's and some steps; what else is made of an address
decides nothing, is no index and is never stored, but for lowest bits, as far as an access is wide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tunesmith.csource.grammar import GrammarText
from tunesmith.csource.syntax import declared_name, syntax_nodes, text_of
from tunesmith.csource.types import size_of
from tunesmith.problem.device_words import DeviceWords, Refusal, Rule, UserWords
from tunesmith.problem.vetting_asm import AsmFlow
from tunesmith.problem.vetting_values import (
    LOW,
    NOTHING,
    PLAIN,
    WIDEST_SHARED,
    Array,
    Value,
    combine,
    join,
    join_all,
)

if TYPE_CHECKING:
    from tree_sitter import Node

Place = str | Value  # a variable, or what a pointer points to

_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "bit_cast", "__builtin_bit_cast")
_SAME = re.compile(r"as_\w+|to_(?:global|local|private)|__cvta_\w+|__builtin_(?:assume_aligned|expect|bit_cast)"
                   r"|move|forward|addressof|convert_u?long\w*")  # fmt: skip
# Built-in functions that access memory: by their first pointer, their last, all, or that only read.
_WRITE_FIRST = re.compile(
    r"atom(?:ic)?_(?!load)\w+|atomic[A-Z]\w*|atomic_ref|__st\w+|\w*(?:memcpy|memset|memmove|copy)\w*|store_matrix_sync|\w*red_async|st_async"
)
_WRITE_LAST = re.compile(r"vstore\w*|__builtin_nontemporal_store")
_WRITE_ALL = re.compile(r"sincos\w*|frexpf?|modff?|remquof?|fract|lgamma_r")
_ACCESS = re.compile(r"v?load\w*|atomic_load\w*|__ld\w+|\w*prefetch\w*|\w*wait\w*|__pipeline\w*|__mbarrier\w*|get_fence"
                     r"|sub_group_\w+|__builtin_nontemporal_load|(?:read|write)_image\w+|load_matrix_sync|get|thread_rank|init")  # fmt: skip
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">=", "<=>"})
_NULL = re.compile(r"[()\s]*(?:0|NULL|nullptr)[uUlL]*[)\s]*")
_WIDE_WORD = re.compile(r"(char|short|int|float|half|long|double)(\d+)|v(?:load|store)(\d+)")
_LEAVES = frozenset(
    "number_literal string_literal char_literal concatenated_string type_descriptor primitive_type this null true "
    "false comment template_argument_list sized_type_specifier alignof_expression attribute_declaration "
    "qualified_identifier template_function struct_specifier class_specifier union_specifier enum_specifier "
    "function_definition template_declaration type_definition alias_declaration break_statement using_declaration "
    "static_assert_declaration type_qualifier storage_class_specifier".split()
)
_ALIGNMENT = "an alignment may be tested, as in `& 15`, up to an access's width"
_WRAPPERS = ("reference_declarator", "parenthesized_declarator", "variadic_declarator")
_SIMPLE = ("primitive_type", "sized_type_specifier")
_POINTERS = {"pointer_declarator", "array_declarator", "abstract_pointer_declarator"}
_DEEPEST = 24  # calls in calls
_PASSES = 8
_LAMBDA = "lambda"


class Flow:
    """Of a unit. `kernels` are its entries; `reads` the arguments, by entry and position, that the problem
    does not say are written."""

    def __init__(
        self,
        parts: Sequence[tuple[GrammarText, Node]],
        kernels: frozenset[str],
        reads: frozenset[tuple[str, int]],
        words: DeviceWords,
        user: UserWords,
        is_c: bool,
    ) -> None:
        self.parts, self.kernels, self.reads = parts, kernels, reads
        self.words, self.user, self.is_c = words, user, is_c
        self.place = parts[0][0] if parts else None
        self.functions: dict[str, list[tuple[GrammarText, Node]]] = {}
        self.records: dict[str, Node] = {}
        self.members: dict[str, list[str]] = {}  # of a type, in order
        self.pointer_members: set[str] = set()
        self.array_members: set[str] = set()
        self.numbers: dict[str, int] = {}  # constants of the file, and parameters of templates
        self.unions: set[str] = set()
        self.pointer_types: set[str] = set()
        self.open_types: set[str] = set()
        for part, root in parts:
            self._collect(part, root)
        wide = [_WIDE_WORD.fullmatch(token.text) for part, _ in parts for token in part.tokens]
        sizes = [
            (size_of(m[1], "opencl") or 8) * int(m[2]) if m[1] else 8 * int(m[3]) for m in wide if m is not None
        ]
        self.widest = min(max([16, *sizes]), 128)
        self.arrays: dict[str, Array] = {}
        self.held: dict[str, Value] = {}
        self.weak: set[str] = set()
        self.read: set[str] = set()
        self.is_stale = False
        self.handlers: dict[str, Callable[[Node], Value]] = {
            name.removeprefix("_on_"): getattr(self, name) for name in dir(self) if name.startswith("_on_")
        }
        self.called: set[int] = set()
        self.asks_numbers = False
        self.contexts: dict[object, int] = {}
        self.results: dict[object, Value] = {}  # of functions that call themselves
        self.asked: set[object] = set()

    # -- what the unit has --------------------------------------------------------------------------

    def _collect(self, part: GrammarText, root: Node) -> None:
        most = 0
        parameters: list[str] = []
        for node in syntax_nodes(root):
            match node.type:
                case "function_definition":
                    declarator = node.child_by_field_name("declarator")
                    while declarator is not None and declarator.type != "function_declarator":
                        declarator = _inner(declarator)
                    name = declarator.child_by_field_name("declarator") if declarator is not None else None
                    while name is not None and name.type in ("qualified_identifier", "template_function"):
                        name = name.child_by_field_name("name")
                    self.functions.setdefault(text_of(name), []).append((part, node))
                case "struct_specifier" | "union_specifier" | "class_specifier":
                    if (body := node.child_by_field_name("body")) is not None:
                        self._record(node, body)
                case "number_literal" if node.parent is not None and node.parent.type == "template_argument_list":
                    most = max(most, _number(text_of(node)) or 0)
                case "type_definition" | "alias_declaration":
                    base = text_of(node.child_by_field_name("type"))
                    for declarator in (*node.children_by_field_name("declarator"), node):
                        name = node.child_by_field_name("name") or declarator
                        if "*" in text_of(declarator) or "*" in base or base in self.pointer_types:
                            self.pointer_types.add(_member_name(name))
                case "type_parameter_declaration" | "optional_type_parameter_declaration":
                    self.open_types |= {text_of(one) for one in node.named_children[:1]}
                case "goto_statement" if "goto" not in self.user.words:
                    self.place = part
                    raise self._refuse(node, "goes where it cannot be followed; write a loop")
                case "enumerator":
                    value = node.child_by_field_name("value")
                    self.numbers[text_of(node.child_by_field_name("name"))] = (
                        (self._number(value) if value is not None else None) or 0
                    )
                case "template_parameter_list":
                    for one in node.named_children:
                        if one.type in ("parameter_declaration", "optional_parameter_declaration"):
                            parameters.append(text_of(declared_name(one.child_by_field_name("declarator"))))
                            if (value := one.child_by_field_name("default_value")) is not None:
                                most = max(most, _number(text_of(value)) or 0)
        self.numbers |= dict.fromkeys(parameters, most)

    def _record(self, node: Node, body: Node) -> None:
        outer = node.parent
        name = node.child_by_field_name("name")
        if name is None and outer is not None and outer.type == "type_definition":
            name = outer.child_by_field_name("declarator")
        names: list[str] = []
        for one in body.named_children:
            if one.type != "field_declaration":
                continue
            for declarator in one.children_by_field_name("declarator"):
                found = _member_name(declarator)
                kinds = {n.type for n in syntax_nodes(declarator)}
                if "pointer_declarator" in kinds:
                    self.pointer_members.add(found)
                if "array_declarator" in kinds:
                    self.array_members.add(found)
                names.append(found)
        self.records[text_of(name)] = body
        self.members[text_of(name)] = names
        if node.type == "union_specifier":
            self.unions |= set(names)

    # -- the unit -----------------------------------------------------------------------------------

    def judge(self) -> None:
        """Raises Refusal."""
        for name in (*sorted(self.kernels & self.functions.keys()), *self.functions):
            for part, node in self.functions[name]:
                if node.id not in self.called:
                    self._root(name, part, node)

    def _root(self, name: str, part: GrammarText, node: Node) -> None:
        for _ in range(_PASSES):
            self.read, self.is_stale = set(), False
            self.known: dict[object, Value] = {}
            self.scopes: list[dict[str, str]] = [{}]
            self.aliases: dict[str, tuple[Place, ...]] = {}
            self.lambdas: dict[str, tuple[GrammarText, Node, list[dict[str, str]]]] = {}
            self.constants: dict[str, int] = {}
            self.depths: dict[str, int] = {}
            self.unset: set[str] = set()
            self.written: set[str] = set()
            self.control: list[list[tuple[str, Refusal]] | None] = []  # loops; None: what need not happen
            self.optional: set[str] = set()
            self.doubted: list[tuple[frozenset[str], Refusal]] = []
            self.context = 0
            self.active: list[object] = []
            self.returned: list[Value] = []
            for each, root in self.parts:
                self.place = each
                for one in root.named_children:
                    if one.type == "declaration":
                        self._on_declaration(one)
            self.place = part
            self._entry(name, node)
            if not self.is_stale:
                break
        else:
            raise self._refuse(node, "moves pointers in more ways than can be followed; index arrays instead")
        for arrays, refusal in self.doubted:
            if not arrays <= self.optional:
                raise refusal

    def _entry(self, name: str, node: Node) -> None:
        is_kernel = name in self.kernels
        self.scopes.append({})
        for at, one in enumerate(_parameters(node)):
            declarator = one.child_by_field_name("declarator")
            found = text_of(declared_name(declarator))
            key = self._declare(found, one)
            kinds = _declarator_kinds(declarator)
            qualifiers = _qualifiers(self.place, one)
            if kinds & _POINTERS or self._is_pointer(one, found, node):
                is_shared = "_Noreturn" in qualifiers
                space = "unknown" if not is_kernel else "shared" if is_shared else "argument"
                is_read = bool({"const", "noreturn"} & qualifiers) or (name, at) in self.reads
                self.arrays[key] = Array(found, space, is_kernel and is_read, is_kernel and is_shared)
                self._hold(key, Value(frozenset({key})), False)
                if text_of(declarator).count("*") > 1:
                    inner = f"*{key}"
                    self.arrays[inner] = Array(f"{found}[]", space, False)
                    self._hold(inner, Value(frozenset({inner})), False)
            else:
                for member in self.members.get(text_of(one.child_by_field_name("type")), ()):
                    if member in self.pointer_members:
                        inner = f"{key}.{member}"
                        self.arrays[inner] = Array(f"{found}.{member}", "argument" if is_kernel else "unknown")
                        self._hold(inner, Value(frozenset({inner})), False)
        self._body(node)
        self.scopes.pop()

    def _is_pointer(self, parameter: Node, name: str, function: Node) -> bool:
        """By a name for the type, or where a template leaves it open by its use."""
        kind = text_of(parameter.child_by_field_name("type"))
        if kind not in self.open_types or kind in self.pointer_types:
            return kind in self.pointer_types
        return any(
            text_of(one.child_by_field_name("argument")) == name
            for one in syntax_nodes(function)
            if one.type in ("subscript_expression", "pointer_expression") and one.children[0].type != "&"
        )

    def _body(self, node: Node) -> None:
        self.called.add(node.id)
        for one in node.named_children:
            if one.type == "field_initializer_list":
                for each in one.named_children:
                    value = self.value(each.named_children[-1]) if len(each.named_children) > 1 else PLAIN
                    self._store(f".{text_of(each.named_children[0])}", value, each)
        if (body := node.child_by_field_name("body")) is not None:
            self.value(body)

    def _refuse(self, node: Node, what: str, rule: Rule = "address") -> Refusal:
        place = self.place
        assert place is not None
        shown = " ".join(place.written(node).split())[:60]
        return Refusal(rule, place.line(node), f"`{shown}` {what}")

    def _names(self, arrays: frozenset[str]) -> str:
        named = sorted({self.arrays[key].name for key in arrays if key in self.arrays})
        return " and ".join(named) or "a pointer"

    # -- variables ----------------------------------------------------------------------------------

    def _declare(self, name: str, node: Node) -> str:
        key = f"{name}@{node.start_byte}:{self.context}"
        self.scopes[-1][name] = key
        self.depths[key] = len(self.control)
        return key

    def _lookup(self, name: str) -> str | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _load(self, place: Place, node: Node) -> Value:
        if isinstance(place, Value):
            return self._access(place, node)
        self.read.add(place)
        if place in self.unset:
            self._unwritten(frozenset({place}), node, place.partition("@")[0])
        found = self.held.get(place)
        if found is None and "." in place.partition("@")[2]:
            base, _, member = place.rpartition(".")
            if member in self.array_members and base in self.depths:
                self.arrays.setdefault(place, Array(member, "private"))
                return Value(frozenset({place}))
            whole = self.held.get(base)
            found = whole if whole is not None and not whole.is_plain else self.held.get(f".{member}")
        return found if found is not None else PLAIN

    def _store(self, place: Place, value: Value, node: Node) -> None:
        if isinstance(place, Value):
            self._write(place, value, node)
            return
        if self.is_c and value.shift is not None:
            what = f"keeps bits of the address of {self._names(value.arrays)}"
            raise self._refuse(node, f"{what}; an alignment may be tested, as in `& 15`", "pointer")
        self.unset.discard(place)
        is_weak = len(self.control) > self.depths.get(place, -1)
        self._hold(place, value, is_weak)
        if "." in place:
            base, _, member = place.rpartition(".")
            if not value.is_plain:
                self._hold(f".{member}", value, True)
            if base and not value.is_plain:
                self._hold(base, value, True)
            if member in self.unions:
                for other in self.unions:
                    self._hold(f"{base}.{other}", value, True)

    def _hold(self, key: str, value: Value, is_weak: bool) -> None:
        if is_weak:
            self.weak.add(key)
        before = self.held.get(key)
        if before is not None and (is_weak or key in self.weak):
            value = join(before, value)
        if value != before:
            self.is_stale |= key in self.read and (is_weak or key in self.weak)
            self.held[key] = value

    # -- memory -------------------------------------------------------------------------------------

    def _check_pointer(self, pointer: Value, node: Node) -> None:
        if pointer.shift is not None and not self._lies_in(pointer.arrays, "shared"):
            what = f"reaches memory by more of the address of {self._names(pointer.arrays)} than steps from it"
            raise self._refuse(node, f"{what}; index the array")

    def _lies_in(self, arrays: frozenset[str], space: str) -> bool:
        return all(key in self.arrays and self.arrays[key].space == space for key in arrays - {NOTHING})

    def _access(self, pointer: Value, node: Node) -> Value:
        """What is read there."""
        self._check_pointer(pointer, node)
        arrays = pointer.arrays - {NOTHING}
        empty = {key for key in arrays if key in self.arrays and self.arrays[key].lacks_write}
        if empty and empty == arrays and not empty & self.written:
            self._unwritten(frozenset(empty), node, self._names(frozenset(empty)))
        values = [self.held[key] for array in arrays if (key := f"*{array}") in self.held]
        self.read |= {f"*{array}" for array in arrays}
        variables = [self.held[key] for key in arrays if self.arrays[key].space == "variable" and key in self.held]
        return join_all(values + variables) if values or variables else PLAIN

    def _unwritten(self, keys: frozenset[str], node: Node, name: str) -> None:
        what = f"reads {name} before this launch has written it, so what another left there; write it first"
        refusal = self._refuse(node, what, "unset")
        for at, loop in enumerate(self.control):
            if loop is not None and len(self.control) > at + 1:
                loop.append((min(keys), refusal))  # a later turn may
                return
        raise refusal

    def _write(self, pointer: Value, value: Value, node: Node) -> None:
        self._check_pointer(pointer, node)
        for key in sorted(pointer.arrays - {NOTHING}):
            array = self.arrays.get(key)
            if array is None:
                continue
            if array.is_read_only:
                allowed = "a template writes only what the problem file calls output, inout or workspace"
                raise self._refuse(node, f"writes {array.name}, which is an input: {allowed}", "write")
            self.written.add(key)
            self.unset.discard(key)
            if not value.is_plain:
                if array.space in ("argument", "shared"):
                    what = f"stores what is made of the address of {self._names(value.arrays)} in {array.name}"
                    raise self._refuse(node, f"{what}; store values of arrays alone")
                self._hold(key if array.space == "variable" else f"*{key}", value, True)

    def _touch(self, value: Value) -> None:
        """Somebody may have written there."""
        self.written |= value.arrays
        self.unset -= value.arrays

    # -- expressions --------------------------------------------------------------------------------

    def value(self, node: Node) -> Value:
        kind = node.type
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

    def _field(self, node: Node, name: str) -> Value:
        child = node.child_by_field_name(name)
        return self.value(child) if child is not None else PLAIN

    def _condition(self, node: Node | None) -> None:
        if node is not None:
            self._decides(node, self.value(node))

    def _decides(self, node: Node, value: Value) -> None:
        if not value.arrays:
            return
        refusal = self._refuse(node, f"decides by the address of {self._names(value.arrays)}; {_ALIGNMENT}")
        if not value.is_place:
            raise refusal
        self._null_test(value, refusal)

    def _null_test(self, value: Value, refusal: Refusal) -> None:
        """An argument may be missing; behind steps it is asked for only where the argument itself is, too."""
        if value.is_moved:
            self.doubted.append((value.arrays - {NOTHING}, refusal))
        else:
            self.optional |= value.arrays

    def _on_identifier(self, node: Node) -> Value:
        assert node.text is not None
        name = node.text.decode("utf-8", "replace")
        key = self._lookup(name)
        if key is None:
            return self._load(f".{name}", node) if f".{name}" in self.held else PLAIN
        if key in self.lambdas:
            self._run_lambda(key, (), node)
            return PLAIN
        places = self.aliases.get(key)
        if places is None:
            return self._load(key, node)
        return join_all([self._load(place, node) for place in places])

    _on_type_identifier = _on_identifier

    def _on_parenthesized_expression(self, node: Node) -> Value:
        return self.value(node.named_children[-1]) if node.named_children else PLAIN

    def _on_comma_expression(self, node: Node) -> Value:
        self._field(node, "left")
        return self._field(node, "right")

    def _on_condition_clause(self, node: Node) -> Value:
        self._field(node, "initializer")
        return self._field(node, "value")

    def _on_cast_expression(self, node: Node) -> Value:
        value = self._field(node, "value")
        return Value(value.arrays, value.shift, value.is_low, value.is_moved) if value.dims > 1 else value

    def _on_compound_literal_expression(self, node: Node) -> Value:
        return self._field(node, "value")

    def _on_initializer_pair(self, node: Node) -> Value:
        return self._field(node, "value")

    def _on_sizeof_expression(self, node: Node) -> Value:
        return PLAIN

    def _on_unary_expression(self, node: Node) -> Value:
        operator = text_of(node.child_by_field_name("operator"))
        argument = node.child_by_field_name("argument")
        if operator in ("!", "not"):
            self._condition(argument)
            return PLAIN
        value = self.value(argument) if argument is not None else PLAIN
        return value if value.is_plain or operator == "+" else value.mixed(PLAIN)

    def _on_binary_expression(self, node: Node) -> Value:
        chain: list[Node] = []  # a sum of many is deep on its left
        first: Node | None = node
        while first is not None and first.type == "binary_expression":
            chain.append(first)
            first = first.child_by_field_name("left")
        value, left = self.value(first) if first is not None else PLAIN, first
        for each in reversed(chain):
            value, left = self._joined_by(each, left, value), each
        return value

    def _joined_by(self, node: Node, left: Node | None, one: Value) -> Value:
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
        if (own := f"operator {sign}") in self.functions:
            self._call(own, (left, right))
        if sign in _COMPARISONS:
            return self._compared(node, left, right, one, other, sign)
        return self._combined(sign, one, other, node, left, right)

    def _combined(self, sign: str, one: Value, other: Value, node: Node, left: Node, right: Node) -> Value:
        if one.is_plain and other.is_plain:
            return PLAIN
        number = None
        if sign in ("&", "%", ">>", "/"):
            self.asks_numbers = True
            number = self._number(right)
            if number is None and sign == "&":
                number = self._number(left)
        arrays = one.arrays | other.arrays
        is_shared = not self.is_c and self._lies_in(arrays, "shared")
        width = WIDEST_SHARED if is_shared else self.widest
        value = combine(sign, one, other, number, width)
        if value is None and self._lies_in(arrays, "unknown"):
            return PLAIN  # whoever calls it decides
        if value is None:
            what = f"is the distance between {self._names(arrays)}, which differs from program to program"
            raise self._refuse(node, f"{what}; index each array from its own start")
        return value

    def _compared(self, node: Node, left: Node, right: Node, one: Value, other: Value, sign: str) -> Value:
        if not (one.arrays or other.arrays):
            return PLAIN
        if one.is_place and other.is_place:
            keys = one.arrays | other.arrays
            if one.one_array == other.one_array is not None or self._lies_in(keys, "unknown"):
                return PLAIN
            what = f"compares addresses of {self._names(keys)}"
            raise self._refuse(node, f"{what}; two arrays may lie anywhere: compare indices")
        held, bare = (one, right) if one.arrays else (other, left)
        by_null = sign in ("==", "!=") and _NULL.fullmatch(text_of(bare))
        what = f"compares the address of {self._names(one.arrays | other.arrays)} with something else"
        refusal = self._refuse(node, f"{what}; {_ALIGNMENT}")
        if not (held.is_place and by_null and (one.is_plain or other.is_plain)):
            raise refusal
        self._null_test(held, refusal)
        return PLAIN

    def _on_conditional_expression(self, node: Node) -> Value:
        self._condition(node.child_by_field_name("condition"))
        return self._maybe(node, "consequence", "alternative")

    def _on_pointer_expression(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        if argument is None:
            return PLAIN
        if node.children[0].type == "*":
            return self._pointed(self.value(argument), argument, node)
        return self._address(argument)

    def _address(self, argument: Node) -> Value:
        found = PLAIN
        for place in self._places(argument):
            if isinstance(place, str):
                self.unset.discard(place)
                self.arrays.setdefault(place, Array(place.partition("@")[0], "variable"))
                place = Value(frozenset({place}))
            found = place if found is PLAIN else join(found, place)
        return found

    def _pointed(self, pointer: Value, argument: Node, node: Node) -> Value:
        if not pointer.arrays:
            return pointer  # a member that is an array
        if pointer.dims > 1:
            return Value(pointer.arrays, pointer.shift, pointer.is_low, pointer.is_moved, pointer.dims - 1)
        return self._access(pointer, node)

    def _on_subscript_expression(self, node: Node) -> Value:
        pointer, base = self._indexed(node)
        return self._pointed(pointer, base, node)

    def _indexed(self, node: Node) -> tuple[Value, Node]:
        base = node.child_by_field_name("argument")
        index = node.child_by_field_name("index") or node.child_by_field_name("indices")
        assert base is not None and index is not None
        pointer, by = self.value(base), self.value(index)
        if pointer.arrays and "operator [ ]" in self.functions:
            self._call("operator [ ]", (index,))
        if by.arrays and not pointer.arrays:
            pointer, by = by, pointer
        if by.arrays:
            what = f"has an index that is made of the address of {self._names(by.arrays)}"
            raise self._refuse(node, f"{what}; count from the start of the array")
        return (pointer.stepped(by) if pointer.arrays else pointer), base

    def _on_field_expression(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        name = text_of(node.child_by_field_name("field"))
        if argument is None:
            return PLAIN
        if argument.type == "identifier" and self._lookup(text_of(argument)) is None:
            return PLAIN  # threadIdx.x
        values = [self._load(place, node) for place in self._places(node)]
        return join_all(values) if values else self.held.get(f".{name}", PLAIN)

    def _places(self, node: Node) -> tuple[Place, ...]:
        """Where an lvalue lies."""
        match node.type:
            case "identifier":
                key = self._lookup(text_of(node))
                return self.aliases.get(key, (key,)) if key is not None else (f".{text_of(node)}",)
            case "parenthesized_expression" | "comma_expression":
                return self._places(node.named_children[-1]) if node.named_children else ()
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
                name = _called_name(node)
                arguments = _arguments(node)
                if arguments and (name in _CASTS or _SAME.fullmatch(name)):
                    return self._places(arguments[0])
                value = self.value(node)
                return (value,) if value.arrays else ()
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

    def _on_assignment_expression(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = text_of(node.child_by_field_name("operator"))
        if left is None or right is None:
            return PLAIN
        value = self.value(right)
        if (declared := _array_pointer(left)) is not None:
            self._store(self._declare(text_of(declared), declared), value, node)
            return value
        if sign != "=":
            value = self._combined(sign[:-1], self.value(left), value, node, left, right)
        self._assign(left, value, node)
        return value

    def _assign(self, left: Node, value: Value, node: Node) -> None:
        places = self._places(left)
        for place in places:
            self._store(place, value, node)
        if not places and value.arrays:
            what = f"keeps the address of {self._names(value.arrays)} where it cannot be followed"
            raise self._refuse(node, f"{what}; keep it in a variable")

    def _on_update_expression(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        if argument is None:
            return PLAIN
        value = self.value(argument)
        if value.arrays:
            value = value.stepped(PLAIN)
        self._assign(argument, value, node)
        return value

    # -- statements ---------------------------------------------------------------------------------

    def _on_compound_statement(self, node: Node) -> Value:
        self.scopes.append({})
        for child in node.named_children:
            self.value(child)
        self.scopes.pop()
        return PLAIN

    def _on_if_statement(self, node: Node) -> Value:
        self.scopes.append({})
        self._condition(node.child_by_field_name("condition"))
        self._maybe(node, "consequence", "alternative")
        self.scopes.pop()
        return PLAIN

    def _maybe(self, node: Node, *fields: str) -> Value:
        """What need not happen."""
        self.control.append(None)
        found = PLAIN
        for name in fields:
            value = self._field(node, name)
            found = value if found is PLAIN else found if value is PLAIN else join(found, value)
        self.control.pop()
        return found

    def _on_switch_statement(self, node: Node) -> Value:
        self.scopes.append({})
        value = self._field(node, "condition")
        if value.arrays:
            raise self._refuse(node, f"decides by the address of {self._names(value.arrays)}")
        self._maybe(node, "body")
        self.scopes.pop()
        return PLAIN

    def _loop(self, node: Node) -> Value:
        self.scopes.append({})
        self._field(node, "initializer")
        source = self._field(node, "right")
        later: list[tuple[str, Refusal]] = []
        self.control.append(later)
        if node.type == "for_range_loop":
            self._bind(node.child_by_field_name("declarator"), node, source)
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

    def _on_return_statement(self, node: Node) -> Value:
        for child in node.named_children:
            self.returned.append(self.value(child))
        return PLAIN

    def _on_declaration(self, node: Node) -> Value:
        kind = node.child_by_field_name("type")
        qualifiers = _qualifiers(self.place, node)
        is_shared = bool(qualifiers & {"__shared__", "_Noreturn"})
        is_constant = bool(qualifiers & {"const", "constexpr", "__constant__", "noreturn"})
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            target = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            if target is None:
                continue
            if target.type == "function_declarator":
                self._vexing(target, node)
                continue
            if target.type == "structured_binding_declarator":
                held = self.value(value) if value is not None else PLAIN
                for one in target.named_children:
                    self._store(self._declare(text_of(one), one), held, one)
                continue
            name = declared_name(target)
            kinds = _declarator_kinds(target)
            if value is not None and value.type == "lambda_expression":
                key = self._declare(text_of(name), target)
                assert self.place is not None
                self.lambdas[key] = (self.place, value, list(self.scopes))
                continue
            if "reference_declarator" in kinds and value is not None:
                self._bind(target, node, self.value(value), value)
                continue
            given = self._initial(value, kind)
            key = self._declare(text_of(name), target)
            at_file = len(self.scopes) == 1
            dims = _dimensions(name)
            if dims or (is_shared and "pointer_declarator" not in kinds):
                space = "shared" if is_shared else "constant" if at_file else "private"
                plain = kind is not None and kind.type in _SIMPLE
                lacks = value is None and not at_file and (plain or (is_shared and dims > 0))
                self.arrays[key] = Array(text_of(name), space, space == "constant", lacks)
                if dims:
                    self._hold(key, Value(frozenset({key}), dims=dims), False)
                if not given.is_plain:
                    self._hold(f"*{key}", given, True)
                if not dims:
                    self.aliases[key] = (Value(frozenset({key})),)
                continue
            if value is not None:
                if is_constant and (number := self._number(value)) is not None:
                    self.constants[key] = number
                self._store(key, given, node)
                self._members(key, value, kind)
            elif kind is not None and kind.type in _SIMPLE and not kinds and not at_file:
                self.unset.add(key)
        return PLAIN

    def _vexing(self, target: Node, node: Node) -> None:
        """`pair p(x, w);`, which the grammar takes for the declaration of a function."""
        types = [one.child_by_field_name("type") for one in _parameters(target)]
        named = [one for one in types if one is not None and self._lookup(text_of(one)) is not None]
        if named:
            name = text_of(node.child_by_field_name("type"))
            self._store(self._declare(text_of(declared_name(target)), target), self._made(name, named), node)

    def _initial(self, value: Node | None, kind: Node | None) -> Value:
        if value is None:
            return PLAIN
        if value.type in ("argument_list", "initializer_list"):
            return self._made(text_of(kind), _without_comments(value))
        return self.value(value)

    def _made(self, name: str, arguments: Sequence[Node]) -> Value:
        """By a constructor, where there is one."""
        name = name.partition("<")[0].strip()
        if name in self.functions:
            self._call(name, arguments)
        return join_all([self.value(one) for one in arguments])

    def _members(self, key: str, value: Node, kind: Node | None) -> None:
        """Of a list that fills a struct."""
        if value.type == "compound_literal_expression":
            value = value.child_by_field_name("value") or value
        names = self.members.get(text_of(kind).removeprefix("struct "))
        if value.type == "identifier" and names:
            for name in names:
                for place in self._places(value):
                    if isinstance(place, str):
                        self._store(f"{key}.{name}", self._load(f"{place}.{name}", value), value)
        if value.type != "initializer_list" or not names:
            return
        for name, one in zip(names, _without_comments(value), strict=False):
            if one.type == "initializer_pair":
                name = text_of(one.child_by_field_name("designator")).lstrip(". ")
            self._store(f"{key}.{name}", self.value(one), one)

    def _bind(self, target: Node | None, node: Node, value: Value, source: Node | None = None) -> None:
        """A name for something else, or for a copy of it."""
        for name in (n for n in syntax_nodes(target) if n.type == "identifier") if target is not None else ():
            key = self._declare(text_of(name), name)
            places = self._places(source) if source is not None else ()
            if places:
                self.aliases[key] = places
            else:
                self._store(key, value, node)

    # -- calls --------------------------------------------------------------------------------------

    def _on_lambda_expression(self, node: Node) -> Value:
        assert self.place is not None
        key = f"{_LAMBDA}@{node.start_byte}"
        self.lambdas[key] = (self.place, node, list(self.scopes))
        self._run_lambda(key, (), node)
        return PLAIN

    def _run_lambda(self, key: str, arguments: Sequence[Node], node: Node) -> Value:
        part, function, scopes = self.lambdas[key]
        return self._inlined(part, function, arguments, scopes)

    def _on_call_expression(self, node: Node) -> Value:
        called = node.child_by_field_name("function")
        name = _called_name(node)
        arguments = _arguments(node)
        if called is None or (called.type in _SIMPLE) or name in _CASTS or name == "__builtin_astype":
            values = [self.value(one) for one in arguments]
            found = join_all(values)
            return Value(found.arrays, found.shift, found.is_low, found.is_moved) if found.dims > 1 else found
        if called.type == "identifier" and (key := self._lookup(name)) is not None and key in self.lambdas:
            return self._run_lambda(key, arguments, node)
        owner = called.child_by_field_name("argument") if called.type == "field_expression" else None
        holder = self.value(owner) if owner is not None and owner.type != "this" else PLAIN
        if name in self.functions:
            found = self._call(name, arguments)
            return found if not found.is_plain or name not in self.members else join_all([self.value(a) for a in arguments])
        if holder.arrays:
            self._touch(holder)
        if called.type not in ("field_expression", "qualified_identifier", "template_function", "template_method"):
            is_own = called.type != "identifier" or name in self.numbers or self._lookup(name) is not None
            if is_own and "operator ( )" in self.functions:
                return self._call("operator ( )", arguments)
            if is_own and any(self.value(one).arrays for one in arguments):
                raise self._refuse(node, "hands a pointer to what cannot be followed; call a function by its name")
        return self._built_in(name, arguments, node, owner is not None)

    def _call(self, name: str, arguments: Sequence[Node]) -> Value:
        all_of = self.functions[name]
        fitting = [one for one in all_of if len(_parameters(one[1])) >= len(arguments)]
        return join_all([self._inlined(*one, arguments, self.scopes[:1]) for one in fitting or all_of])

    def _inlined(
        self, part: GrammarText, node: Node, arguments: Sequence[Node], scopes: Sequence[dict[str, str]]
    ) -> Value:
        parameters = _parameters(node)
        given: list[tuple[Value, tuple[Place, ...], str | None]] = []
        for at, one in enumerate(parameters):
            if at >= len(arguments):
                given.append((PLAIN, (), None))
                continue
            argument = arguments[at]
            if at == len(parameters) - 1 and len(arguments) > len(parameters):  # a pack
                given.append((join_all([self.value(each) for each in arguments[at:]]), (), None))
                continue
            key = self._lookup(text_of(argument)) if argument.type == "identifier" else None
            if argument.type == "lambda_expression":
                key = f"{_LAMBDA}@{argument.start_byte}"
                assert self.place is not None
                self.lambdas[key] = (self.place, argument, list(self.scopes))
            if key is None and argument.type == "identifier" and (own := text_of(argument)) in self.functions:
                key = f"{_LAMBDA}@{own}"
                self.lambdas[key] = (*self.functions[own][0], self.scopes[:1])
            if key in self.lambdas:
                given.append((PLAIN, (), key))
            elif "reference_declarator" in _declarator_kinds(one.child_by_field_name("declarator")):
                places = self._places(argument)
                given.append((PLAIN, places, None) if places else (self.value(argument), (), None))
            else:
                given.append((self.value(argument), (), None))
        memo = (node.id, tuple(given), len(self.control) if any(p for _, p, _ in given) else -1)
        if memo in self.known:
            return self.known[memo]
        if len(self.active) > _DEEPEST:
            raise self._refuse(node, f"is called more than {_DEEPEST} calls deep; write a loop")
        if memo in self.active:  # calls itself
            self.asked.add(memo)
            return self.results.get(memo, PLAIN)
        before = (self.place, self.scopes, self.returned, self.context)
        self.place, self.scopes, self.returned = part, [*scopes, {}], []
        self.context = self.contexts.setdefault(memo, len(self.contexts) + 1)
        self.active.append(memo)
        for one in syntax_nodes(captures) if (captures := node.child_by_field_name("captures")) is not None else ():
            if one.type == "lambda_capture_initializer" and len(one.named_children) > 1:
                value = self.value(one.named_children[-1])
                self._store(self._declare(text_of(one.named_children[0]), one), value, one)
        for one, (value, places, key) in zip(parameters, given, strict=True):
            name = declared_name(one.child_by_field_name("declarator"))
            own = self._declare(text_of(name) or _member_name(one.child_by_field_name("declarator")), one)
            if key is not None:
                self.lambdas[own] = self.lambdas[key]
            elif places:
                self.aliases[own] = places
            else:
                self._store(own, value, one)
        self._body(node)
        found = join_all(self.returned)
        self.active.pop()
        self.place, self.scopes, self.returned, self.context = before
        self.known[memo] = found
        if memo in self.asked and self.results.get(memo, PLAIN) != found:
            self.results[memo], self.is_stale = join(self.results.get(memo, PLAIN), found), True
        return found

    def _built_in(self, name: str, arguments: Sequence[Node], node: Node, is_method: bool) -> Value:
        first = _WRITE_FIRST.fullmatch(name)
        for one in arguments:
            if one.type == "identifier" and (key := self._lookup(text_of(one))) is not None:
                self.unset.discard(key)
        if name == "atomic_ref" and arguments:
            for place in self._places(arguments[0]):
                self._store(place, PLAIN, node)
        values = [self.value(one) for one in arguments]
        if all(value.is_plain for value in values):
            return PLAIN
        if _SAME.fullmatch(name):
            return values[0]
        places = [value for value in values if value.arrays]
        last, whole = _WRITE_LAST.fullmatch(name), _WRITE_ALL.fullmatch(name)
        is_known = self.words.calls(name) and not is_method
        if not (first or last or whole or _ACCESS.fullmatch(name)) and is_known:
            return join_all(values).mixed(PLAIN) if places else LOW
        if name == "printf":
            raise self._refuse(node, f"tells the address of {self._names(places[0].arrays)}")
        targets = places[:1] if first else places[-1:] if last else places if whole else []
        for target in targets:
            is_copy = "cpy" in name or "cop" in name or whole
            others = [] if is_copy else [v for v in values if v is not target and not v.is_plain]
            self._write(target, others[0] if others else PLAIN, node)
        for value in places:
            if not any(value is target for target in targets):
                self._check_pointer(value, node) if "prefetch" not in name else None
                if name.startswith(("vload", "load_matrix")):
                    self._access(value, node)
            self._touch(value)
        return join_all([self._access(v, node) for v in places if "prefetch" not in name])

    # -- assembler ----------------------------------------------------------------------------------

    def _on_gnu_asm_expression(self, node: Node) -> Value:
        outputs, inputs = _asm_operands(node, "output_operands"), _asm_operands(node, "input_operands")
        values = [self.value(one) for one in inputs]
        assert self.place is not None
        kept = [self.value(one) if self._is_kept(one) else PLAIN for one in outputs]
        if any(not value.is_plain for value in (*values, *kept)):
            places = [self._places(one) for one in outputs]
            words = self.place.words(node.start_byte, node.end_byte)
            flow = AsmFlow(words, kept, values, self._asm_write, self._touch, self._is_shared)
            found = flow.run(node, self._refuse)
            for targets, value in zip(places, found, strict=True):
                for place in targets:
                    self._store(place, value, node)
            return PLAIN
        for one in outputs:
            for place in self._places(one):
                self._store(place, PLAIN, node)
        return PLAIN

    def _is_kept(self, operand: Node) -> bool:
        """Whether an output is an input, too."""
        constraint = operand.parent.child_by_field_name("constraint") if operand.parent is not None else None
        assert self.place is not None
        words = self.place.words(constraint.start_byte, constraint.end_byte) if constraint is not None else ()
        return any("+" in word.text for word in words)

    def _asm_write(self, pointer: Value, node: Node) -> None:
        self._write(pointer, PLAIN, node)

    def _is_shared(self, value: Value) -> bool:
        return self._lies_in(value.arrays, "shared")

    # -- numbers ------------------------------------------------------------------------------------

    def _number(self, node: Node) -> int | None:
        """A constant, as far as it is one."""
        match node.type:
            case "number_literal":
                return _number(text_of(node))
            case "parenthesized_expression":
                return self._number(node.named_children[0]) if len(node.named_children) == 1 else None
            case "identifier":
                key = self._lookup(text_of(node)) if hasattr(self, "scopes") else None
                return self.constants.get(key) if key is not None else self.numbers.get(text_of(node))
            case "cast_expression":
                value = node.child_by_field_name("value")
                return self._number(value) if value is not None else None
            case "call_expression" if _called_name(node) in _CASTS or _is_simple_call(node):
                arguments = _arguments(node)
                return self._number(arguments[0]) if len(arguments) == 1 else None
            case "sizeof_expression" | "alignof_expression":
                kind = node.child_by_field_name("type")
                return self._size(text_of(kind if kind is not None else node.child_by_field_name("value")))
            case "unary_expression":
                value = self._number(_argument(node))
                sign = text_of(node.child_by_field_name("operator"))
                return None if value is None else -value if sign == "-" else ~value if sign == "~" else None
            case "binary_expression":
                left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
                one = self._number(left) if left is not None else None
                other = self._number(right) if right is not None else None
                if one is None or other is None:
                    return None
                return _calculated(text_of(node.child_by_field_name("operator")), one, other)
        return None

    def _size(self, name: str) -> int:
        """In bytes; of an element whose type a template is given, two."""
        name = name.strip("()").removeprefix("const ").removeprefix("struct ").strip()
        if name.endswith("*"):
            return 8
        known = size_of(name, "opencl" if self.is_c else "cuda")
        if known is not None:
            return known
        if name not in self.records:
            return 2 if len(name) < 3 or name.endswith("_t") else 16
        total = 0
        for one in self.records[name].named_children:
            if one.type == "field_declaration":
                size = self._size(text_of(one.child_by_field_name("type")))
                for declarator in one.children_by_field_name("declarator"):
                    count = 1
                    for inner in syntax_nodes(declarator):
                        if inner.type == "array_declarator":
                            number = inner.child_by_field_name("size")
                            count *= (self._number(number) if number is not None else None) or 1
                    total += size * count
        return total


def _calculated(sign: str, one: int, other: int) -> int | None:
    if sign in ("<<", ">>"):
        return None if not 0 <= other < 64 else one << other if sign == "<<" else one >> other
    if sign in ("/", "%"):
        return None if other <= 0 else one // other if sign == "/" else one % other
    results = {"+": one + other, "-": one - other, "*": one * other, "&": one & other, "|": one | other}
    return results.get(sign)


def _number(text: str) -> int | None:
    text = text.replace("'", "").rstrip("uUlL")
    try:
        return int(text, 8 if re.fullmatch(r"0[0-7]+", text) else 0)
    except ValueError:
        return None


def _inner(declarator: Node) -> Node | None:
    inner = declarator.child_by_field_name("declarator")
    if inner is None and declarator.type in _WRAPPERS:
        return declarator.named_children[-1] if declarator.named_children else None
    return inner


def _declarator_kinds(declarator: Node | None) -> set[str]:
    found: set[str] = set()
    while declarator is not None and declarator.type not in ("identifier", "field_identifier"):
        found.add(declarator.type)
        declarator = _inner(declarator)
    return found


def _dimensions(name: Node | None) -> int:
    """Of the array that a declaration makes of a name; 0: it is none."""
    count = 0
    while name is not None and name.parent is not None and name.parent.type == "array_declarator":
        count, name = count + 1, name.parent
    return count


def _member_name(declarator: Node | None) -> str:
    while declarator is not None and not declarator.type.endswith("identifier"):
        declarator = _inner(declarator)
    return text_of(declarator)


def _parameters(function: Node) -> list[Node]:
    declarator = function if function.child_by_field_name("parameters") is not None else _inner(function)
    while declarator is not None and declarator.child_by_field_name("parameters") is None:
        declarator = _inner(declarator)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    found = listed.named_children if listed is not None else []
    return [one for one in found if one.type.endswith("parameter_declaration") and text_of(one) != "void"]


def _qualifiers(place: GrammarText | None, node: Node) -> set[str]:
    return {
        text_of(one)
        for one in node.children
        if one.type in ("type_qualifier", "storage_class_specifier")
        and (place is None or one.start_byte not in place.inserted)
    }


def _called_name(call: Node) -> str:
    """Also of a member, and of a template."""
    node = call.child_by_field_name("function")
    while node is not None and not (node.type.endswith("identifier") and node.type != "qualified_identifier"):
        node = node.child_by_field_name("field") or node.child_by_field_name("name")
    return text_of(node)


def _is_simple_call(call: Node) -> bool:
    called = call.child_by_field_name("function")
    return called is not None and called.type in _SIMPLE


def _argument(node: Node) -> Node:
    found = node.child_by_field_name("argument")
    assert found is not None
    return found


def _without_comments(node: Node) -> list[Node]:
    return [one for one in node.named_children if one.type != "comment"]


def _arguments(call: Node) -> list[Node]:
    listed = call.child_by_field_name("arguments")
    return _without_comments(listed) if listed is not None else []


def _array_pointer(left: Node) -> Node | None:
    """The name in `float (*rows)[33] = …`, which the grammar of C++ takes for an assignment to a call."""
    while left.type == "subscript_expression":
        inner = left.child_by_field_name("argument")
        if inner is None:
            return None
        left = inner
    called = left.child_by_field_name("function") if left.type == "call_expression" else None
    if called is None or called.type not in ("primitive_type", "identifier", "type_identifier"):
        return None
    arguments = _arguments(left)
    if len(arguments) != 1 or arguments[0].type != "pointer_expression":
        return None
    name = arguments[0].child_by_field_name("argument")
    return name if name is not None and name.type == "identifier" else None


def _asm_operands(node: Node, field: str) -> list[Node]:
    listed = node.child_by_field_name(field)
    operands = listed.named_children if listed is not None else []
    found = (one.child_by_field_name("value") for one in operands if one.type.endswith("operand"))
    return [one for one in found if one is not None]
