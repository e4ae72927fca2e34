"""Where addresses go, what is written, and what is read before anything was: data flow on the tree.

Kernels are followed from their arguments through variables, members, calls and lambdas, every call with what
it is given. Values are joined where ways meet, so one pass in the order of the text does, and another where a
loop brings back more than was read. A place is an array's and some steps; what else is made of an address
decides nothing, is no index and is never stored, but for lowest bits, as far as an access is wide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.problem.vetting.device_words import DeviceWords, HandedArrays, UserWords
from tunesmith.problem.vetting.flow_assembly import AsmFlow
from tunesmith.problem.vetting.flow_expressions import READ_APART, SAME, FlowStatements
from tunesmith.problem.vetting.flow_memory import (
    LOW,
    PLAIN,
    FlowArray,
    FlowValue,
    Place,
    join_all,
    join_values,
)
from tunesmith.problem.vetting.unit import (
    CASTS,
    SIMPLE,
    arguments_of,
    asm_operands,
    called_name,
    content_of,
    declarator_kinds,
    member_name,
    parameters_of,
    qualifiers_of,
)
from tunesmith.source.reader.grammar import GrammarText, declared_name, syntax_nodes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

# Built-in functions that access memory: by their first pointer, their last, all, or that only read.
_WRITE_FIRST = re.compile(
    r"atom(?:ic)?_(?!load)\w+|atomic[A-Z]\w*|atomic_ref|__st\w+|\w*(?:memcpy|memset|memmove|copy)\w*"
    r"|store_matrix_sync|\w*red_async|st_async"
)
_WRITE_LAST = re.compile(r"vstore\w*|__builtin_nontemporal_store")
_WRITE_ALL = re.compile(r"sincos\w*|frexpf?|modff?|remquof?|fract|lgamma_r")
_ACCESS = re.compile(
    r"v?load\w*|atomic_load\w*|__ld\w+|\w*prefetch\w*|\w*wait\w*|__pipeline\w*|__mbarrier\w*|get_fence"
    r"|sub_group_\w+|__builtin_nontemporal_load|(?:read|write)_image\w+|load_matrix_sync|get|thread_rank|init"
)
# Of OpenCL C, those that take pointers.
_TAKE = re.compile(
    r"v(?:load|store)\w*|atom(?:ic)?_\w+|async_work_group_\w+|wait_group_events|prefetch|fract|frexp|modf|remquo"
    r"|sincos|lgamma_r|get_fence|sub_group_\w+|(?:read|write)_image\w+|__builtin_(?:prefetch|nontemporal_\w+)"
    r"|to_(?:global|local|private)|__builtin_(?:assume_aligned|expect)"
)
_POINTERS = {"pointer_declarator", "array_declarator", "abstract_pointer_declarator"}
_DEEPEST = 24  # calls in calls
_PASSES = 8
_LAMBDA = "lambda"
_BY_NAME = ("field_expression", "qualified_identifier", "template_function", "template_method")


_Given = tuple[FlowValue, tuple[Place, ...], str | None]  # a value, places, or the key of a lambda


class AddressFlow(FlowStatements):
    """Of a unit. `kernels` are its entries; `handed` their arguments that get an array."""

    def __init__(
        self,
        parts: Sequence[tuple[GrammarText, Node]],
        kernels: frozenset[str],
        handed: HandedArrays,
        words: DeviceWords,
        user: UserWords,
        is_c: bool,
    ) -> None:
        self.kernels, self.handed = kernels, handed
        self.called: set[int] = set()
        self.contexts: dict[object, int] = {}
        self.results: dict[object, FlowValue] = {}  # of functions that call themselves
        self.asked: set[object] = set()
        super().__init__(parts, words, user, is_c)

    def begin(self) -> None:
        super().begin()
        self.known: dict[object, tuple[FlowValue, set[str], frozenset[str]]] = {}  # and what it writes
        self.active: list[object] = []

    def judge(self) -> None:
        """Raises Refusal."""
        for name in (*sorted(self.kernels & self.functions.keys()), *self.functions):
            for part, node in self.functions[name]:
                if node.id not in self.called:
                    self._root(name, part, node)

    def _root(self, name: str, part: GrammarText, node: Node) -> None:
        for _ in range(_PASSES):
            self.begin()
            for file, root in self.parts:
                self.place = file
                for one in root.named_children:
                    if one.type == "declaration":
                        self.value(one)
            self.place = part
            self._entry(name, node)
            for called, all_of in () if self.is_c else self.functions.items():
                # What nobody names.
                if called in self.members or called[:1] in ("", "~") or called.startswith("operator"):
                    for each in all_of:
                        self._inline_call(*each, (), self.scopes[:1])
            if not self.is_stale:
                break
        else:
            raise self.refuse(node, "moves pointers in more ways than can be followed; index arrays instead")
        for arrays, refusal in self.doubted:
            if not arrays <= self.optional:
                raise refusal

    def _entry(self, name: str, node: Node) -> None:
        self.scopes.append({})
        for at, one in enumerate(parameters_of(node)):
            self._enter_parameter(name, node, at, one)
        self.returning = self.layers(node) if self.is_c else ""
        self._body(node)
        self.scopes.pop()

    def _enter_parameter(self, name: str, node: Node, at: int, one: Node) -> None:
        is_kernel = name in self.kernels
        declarator = one.child_by_field_name("declarator")
        found = text_of(declared_name(declarator))
        layers = self.layers(one) if self.is_c else ""
        key = self._declare(found, one, layers)
        if is_kernel and set(layers[1:]) & set("*s"):
            what = "holds pointers, which are numbers there; start from an argument or an array"
            raise self.refuse(one, what, "pointer")
        space = "argument" if is_kernel else "unknown"
        is_pointer = layers or (not self.is_c and declarator_kinds(declarator) & _POINTERS)
        gets = bool({(name, at, True), (name, at, False)} & self.handed)
        if layers[:1] == "s":
            self._point_to(key, f"*{key}", FlowArray(f"{found}[]", space))
        elif is_pointer or (not self.is_c and self._is_pointer(one, found, node, gets)):
            qualifiers = qualifiers_of(self.place, one)
            is_shared = is_kernel and "_Noreturn" in qualifiers
            space = "shared" if is_shared else space
            is_read = bool({"const", "noreturn"} & qualifiers) or (name, at, True) in self.handed
            place, holds = f"{key}[]" if self.is_c else key, content_of(layers[1:])
            array = FlowArray(found, space, is_kernel and is_read, is_shared, holds)
            self._point_to(key, place, array, dims=1 + layers[1:].count("["))
            if holds or text_of(declarator).count("*") > 1:
                self._point_to(f"*{place}", f"*{place}", FlowArray(f"{found}[]", space))
        elif is_kernel and gets:
            raise self.refuse(one, "takes the address of an array for a value; declare a pointer")
        else:
            for member in self.members.get(text_of(one.child_by_field_name("type")), ()):
                if member in self.pointer_members:
                    inner = f"{key}.{member}"
                    self._point_to(inner, inner, FlowArray(f"{found}.{member}", space))

    def _point_to(self, key: str, place: str, array: FlowArray, dims: int = 1) -> None:
        self.arrays[place] = array
        self._hold(key, FlowValue(frozenset({place}), dims=dims), False)

    def _is_pointer(self, parameter: Node, name: str, function: Node, gets_array: bool) -> bool:
        """By a name for the type, or where a template leaves it open by its use."""
        kind = text_of(parameter.child_by_field_name("type"))
        if kind not in self.open_types or kind in self.pointer_types:
            return kind in self.pointer_types
        return gets_array or any(
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

    def _on_lambda_expression(self, node: Node) -> FlowValue:
        key = f"{_LAMBDA}@{node.start_byte}"
        self.lambdas[key] = (self.place, node, list(self.scopes))
        self._run_lambda(key, ())
        return PLAIN

    def _run_lambda(self, key: str, arguments: Sequence[Node]) -> FlowValue:
        part, function, scopes = self.lambdas[key]
        return self._inline_call(part, function, arguments, scopes)

    def _on_call_expression(self, node: Node) -> FlowValue:
        called = node.child_by_field_name("function")
        name = called_name(node)
        arguments = arguments_of(node)
        is_cast = called is None or called.type in SIMPLE or name in CASTS or name == "__builtin_astype"
        if called is None or (is_cast and not self.is_c):
            found = join_all([self.value(one) for one in arguments])
            return replace(found, dims=1) if found.dims > 1 else found
        if called.type == "identifier" and (key := self.lookup(name)) is not None and key in self.lambdas:
            return self._run_lambda(key, arguments)
        owner = called.child_by_field_name("argument") if called.type == "field_expression" else None
        holder = self.value(owner) if owner is not None and owner.type != "this" else PLAIN
        if name in self.functions:
            if holder.arrays and not self.is_c:
                self._hold("", holder, True)
            found = self._call(name, arguments)
            if not found.is_plain or name not in self.members:
                return found
            return join_all([self.value(argument) for argument in arguments])
        if holder.arrays:
            self._touch(holder)
        if called.type not in _BY_NAME:
            is_own = called.type != "identifier" or name in self.numbers or self.lookup(name) is not None
            if is_own and "operator()" in self.functions:
                return self._call("operator()", arguments)
            if is_own and any(self.value(one).arrays for one in arguments):
                what = "hands a pointer to what cannot be followed; call a function by its name"
                raise self.refuse(node, what)
        return self._built_in(name, arguments, node, owner is not None)

    def _template_call(self, node: Node) -> FlowValue | None:
        """Of `f<(A), 1>(x)`, which the grammar takes for comparisons."""
        first = node
        while first.type in READ_APART:
            first = first.named_children[0]
        name = text_of(first)
        if first.type != "identifier" or name not in self.functions or self.lookup(name) is not None:
            return None
        parts: list[Node] = []
        pending = [node]
        while pending:
            part = pending.pop()
            if part.type in READ_APART:
                pending += reversed(part.named_children)
            else:
                parts.append(part)
        given = [one for one in parts if one.type == "parenthesized_expression" and _is_after_sign(one, ">")]
        if not given:
            return None
        if any(self.value(one).arrays for one in parts if one not in (first, given[0])):
            raise self.refuse(node, "is more than a call; write the call as a statement")
        inside, arguments = given[0].named_children[0], list["Node"]()
        while inside.type == "comma_expression":
            arguments.append(inside.named_children[-1])
            inside = inside.named_children[0]
        return self._call(name, [inside, *reversed(arguments)])

    def _call(self, name: str, arguments: Sequence[Node]) -> FlowValue:
        all_of = self.functions[name]
        fitting = [one for one in all_of if len(parameters_of(one[1])) >= len(arguments)]
        return join_all([self._inline_call(*one, arguments, self.scopes[:1]) for one in fitting or all_of])

    def _read_arguments(self, parameters: Sequence[Node], arguments: Sequence[Node]) -> list[_Given]:
        given: list[_Given] = []
        for at, one in enumerate(parameters):
            if at >= len(arguments):
                given.append((PLAIN, (), None))
                continue
            argument = arguments[at]
            if at == len(parameters) - 1 and len(arguments) > len(parameters):  # a pack
                given.append((join_all([self.value(each) for each in arguments[at:]]), (), None))
                continue
            key = self.lookup(text_of(argument)) if argument.type == "identifier" else None
            if argument.type == "lambda_expression":
                key = f"{_LAMBDA}@{argument.start_byte}"
                self.lambdas[key] = (self.place, argument, list(self.scopes))
            if key is None and argument.type == "identifier" and text_of(argument) in self.functions:
                key = f"{_LAMBDA}@{text_of(argument)}"
                self.lambdas[key] = (*self.functions[text_of(argument)][0], self.scopes[:1])
            if key in self.lambdas:
                given.append((PLAIN, (), key))
            elif _is_reference(one):
                places = self._places(argument)
                given.append((PLAIN, places, None) if places else (self.value(argument), (), None))
            else:
                value = self.value(argument)
                if self.is_c:
                    value = self._converted(value, self.layers(one), argument, argument)
                given.append((value, (), None))
        return given

    def _inline_call(
        self, part: GrammarText, node: Node, arguments: Sequence[Node], scopes: Sequence[dict[str, str]]
    ) -> FlowValue:
        parameters = parameters_of(node)
        given = self._read_arguments(parameters, arguments)
        memo = (node.id, tuple(given), len(self.control) if any(p for _, p, _ in given) else -1)
        if memo in self.known:
            found, written, filled = self.known[memo]
            self.written |= written
            self.unset -= filled
            for value, places, _ in given:
                self._touch(value)
                for place in places:
                    self._touch(place if isinstance(place, FlowValue) else FlowValue(frozenset({place})))
            return found
        if len(self.active) > _DEEPEST:
            raise self.refuse(node, f"is called more than {_DEEPEST} calls deep; write a loop")
        if memo in self.active:  # calls itself
            self.asked.add(memo)
            return self.results.get(memo, PLAIN)
        before = (self.place, self.scopes, self.returned, self.context, self.returning)
        self.place, self.scopes, self.returned = part, [*scopes, {}], []
        self.returning = self.layers(node) if self.is_c else ""
        self.context = self.contexts.setdefault(memo, len(self.contexts) + 1)
        self.active.append(memo)
        earlier_unset, earlier = frozenset(self.unset), frozenset(self.written)
        self._bind_arguments(node, parameters, given)
        self._body(node)
        found = join_all(self.returned)
        self.active.pop()
        self.place, self.scopes, self.returned, self.context, self.returning = before
        self.known[memo] = (found, self.written - earlier, earlier_unset - self.unset)
        if memo in self.asked and self.results.get(memo, PLAIN) != found:
            self.results[memo], self.is_stale = join_values(self.results.get(memo, PLAIN), found), True
        return found

    def _bind_arguments(self, node: Node, parameters: Sequence[Node], given: Sequence[_Given]) -> None:
        captures = node.child_by_field_name("captures")
        for one in syntax_nodes(captures) if captures is not None else ():
            if one.type == "lambda_capture_initializer" and len(one.named_children) > 1:
                value = self.value(one.named_children[-1])
                self._store(self._declare(text_of(one.named_children[0]), one), value, one)
        for one, (value, places, key) in zip(parameters, given, strict=True):
            declarator = one.child_by_field_name("declarator")
            name = text_of(declared_name(declarator)) or member_name(declarator)
            inner = self._declare(name, one, self.layers(one) if self.is_c else "")
            if key is not None:
                self.lambdas[inner] = self.lambdas[key]
            elif places:
                self.aliases[inner] = places
            else:
                self._store(inner, value, one)

    def _built_in(self, name: str, arguments: Sequence[Node], node: Node, is_method: bool) -> FlowValue:
        first = _WRITE_FIRST.fullmatch(name)
        for one in arguments if not self.is_c else ():
            if one.type == "identifier" and (key := self.lookup(text_of(one))) is not None:
                self.unset.discard(key)
        if name == "atomic_ref" and arguments:
            for place in self._places(arguments[0]):
                self._store(place, PLAIN, node)
        values = [self.value(one) for one in arguments]
        if all(value.is_plain for value in values):
            return PLAIN
        if self.is_c:
            for value in values:
                holds = any(key in self.arrays and self.arrays[key].holds for key in value.arrays)
                if value.arrays and (holds or not _TAKE.fullmatch(name)):
                    what = "takes a pointer for something else; start from an argument or an array"
                    raise self.refuse(node, what, "pointer")
        if SAME.fullmatch(name):
            return values[0]
        places = [value for value in values if value.arrays]
        last, whole = _WRITE_LAST.fullmatch(name), _WRITE_ALL.fullmatch(name)
        is_known = self.words.calls(name) and not is_method
        if not (first or last or whole or _ACCESS.fullmatch(name)) and is_known:
            for value in places:
                self._touch(value)
            return join_all(values).mixed(PLAIN) if places else LOW
        if name == "printf":
            raise self.refuse(node, f"tells the address of {self._names(places[0].arrays)}")
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

    def _on_gnu_asm_expression(self, node: Node) -> FlowValue:
        outputs, inputs = asm_operands(node, "output_operands"), asm_operands(node, "input_operands")
        values = [self.value(one) for one in inputs]
        kept = [self.value(one) if self._is_kept(one) else PLAIN for one in outputs]
        if any(not value.is_plain for value in (*values, *kept)):
            places = [self._places(one) for one in outputs]
            words = self.place.words(node.start_byte, node.end_byte)
            texts = [word.text for word in words]
            flow = AsmFlow(texts, kept, values, self._asm_write, self._touch, self._is_shared)
            found = flow.run(node, self.refuse)
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
        words = self.place.words(constraint.start_byte, constraint.end_byte) if constraint is not None else ()
        return any("+" in word.text for word in words)

    def _asm_write(self, pointer: FlowValue, node: Node) -> None:
        self._write(pointer, PLAIN, node)

    def _is_shared(self, value: FlowValue) -> bool:
        return self._lies_in(value.arrays, "shared")


def _is_reference(parameter: Node) -> bool:
    """One to an array is a pointer to its first element."""
    kinds = declarator_kinds(parameter.child_by_field_name("declarator"))
    return "reference_declarator" in kinds and "array_declarator" not in kinds


def _is_after_sign(node: Node, sign: str) -> bool:
    return node.prev_sibling is not None and node.prev_sibling.type == sign
