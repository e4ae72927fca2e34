"""What a function body does through a pointer: every occurrence of its name is followed up the syntax tree.

An occurrence either ends in a read or a write, makes another name for the same memory, touches no memory
(a comparison, an offset), or goes where it cannot be followed. The last is reported, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING

from tunesmith.csource.syntax import callee, declared_name, is_field, syntax_nodes, text_of
from tunesmith.expert.reading.headers import MacroText

if TYPE_CHECKING:
    from tree_sitter import Node

    Places = Mapping[str, list[Node]]

_DEEPEST = 50  # calls within calls that are still followed
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_DECLARATORS = frozenset({
    "pointer_declarator", "reference_declarator", "array_declarator", "function_declarator",
    "parameter_declaration", "optional_parameter_declaration", "abstract_pointer_declarator",
    "lambda_capture_specifier",
})  # fmt: skip
_NO_MEMORY = frozenset({
    "expression_statement", "for_statement", "if_statement", "while_statement", "do_statement",
    "condition_clause", "comma_expression", "unary_expression", "sizeof_expression",
})  # fmt: skip


@dataclass(frozen=True)
class _PointerName:
    """A name for the memory in question: a pointer to it, or (`reference`) the memory itself."""

    name: str
    reference: bool


class PointerUse:
    """Follows pointers through the bodies and the helper functions of one file."""

    def __init__(
        self, root: Node, macros: Iterable[MacroText], types: Iterable[str], *, references: bool
    ) -> None:
        self._references = references  # whether the language has them: C++ does, C does not
        self._types = frozenset(types)
        self._macro_words: dict[str, set[str]] = {}
        for macro in macros:
            inside = set(_IDENTIFIER.findall(macro.body)) - set(macro.parameters or ())
            self._macro_words.setdefault(macro.name, set()).update(inside)
        self._functions: dict[str, list[Node]] = {}
        for node in syntax_nodes(root):
            if node.type == "function_definition":
                name = declared_name(node.child_by_field_name("declarator"))
                self._functions.setdefault(text_of(name), []).append(node)
        self._bodies: dict[int, Places] = {}
        self._effects: dict[tuple[str, int, bool], PointerAccess] = {}
        self._depth = 0

    def of(self, body: Places, name: str, *, reference: bool = False) -> PointerAccess:
        hidden = self._behind_macros(body)
        access = NONE
        pending = [_PointerName(name, reference)]
        seen: set[_PointerName] = set()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            if current.name in hidden:
                access |= HIDDEN
            for node in body.get(current.name, ()):
                use = self._classify(node, current.reference)
                if isinstance(use, _PointerName):
                    pending.append(use)
                else:
                    access |= use
        return access

    def _behind_macros(self, places: Places) -> set[str]:
        """Names that the macros used in a body mention in their replacement."""
        pending = [name for name in places if name in self._macro_words]
        reached: set[str] = set()
        while pending:
            fresh = self._macro_words[pending.pop()] - reached
            reached |= fresh
            pending += [name for name in fresh if name in self._macro_words]
        return reached

    def _classify(self, node: Node, memory: bool) -> PointerAccess | _PointerName:
        """Climb from an occurrence; `memory` says whether `node` is the memory or a pointer to it."""
        if node.type == "type_identifier":  # `Tensor t(out, n);` reads as a function declaration
            return HIDDEN
        while (parent := node.parent) is not None:
            kind = parent.type
            if kind in ("parenthesized_expression", "cast_expression"):
                pass
            elif kind in ("binary_expression", "conditional_expression"):
                if memory:
                    return READ
                operator = text_of(parent.child_by_field_name("operator"))
                if operator not in ("+", "-", "") or is_field(parent, "condition", node):
                    return NONE
            elif kind == "subscript_expression":
                if not is_field(parent, "argument", node):
                    return READ if memory else HIDDEN
                memory = True
            elif kind == "subscript_argument_list":
                return READ if memory else HIDDEN
            elif kind == "field_expression":
                if not memory and text_of(parent.child_by_field_name("operator")) != "->":
                    return HIDDEN
                memory = True
            elif kind == "pointer_expression":
                dereference = text_of(parent.child_by_field_name("operator")) == "*"
                if dereference == memory:  # *p[i], or &p: a pointer to a pointer
                    return (READ | HIDDEN) if memory else HIDDEN
                memory = dereference
            elif kind == "update_expression":
                if memory:
                    return BOTH
            elif kind == "assignment_expression":
                return _assigned(parent, node, memory)
            elif kind in ("init_declarator", "declaration"):
                return _declared(parent, node, memory)
            elif kind == "argument_list":
                use = self._passed(parent, node, memory)
                if use is not None:
                    return use
                parent = parent.parent or parent
            elif kind == "call_expression":  # a method of the memory, which may change it
                return READ | HIDDEN if memory else HIDDEN
            elif kind in _DECLARATORS:
                return NONE
            elif kind == "ERROR":
                return HIDDEN
            elif memory:
                return READ
            else:
                return NONE if kind in _NO_MEMORY else HIDDEN
            node = parent
        return HIDDEN

    def _passed(self, arguments: Node, node: Node, memory: bool) -> PointerAccess | None:
        """The effect of handing `node` to a call; None when the call only casts the pointer."""
        call = arguments.parent
        if call is None or call.type != "call_expression":
            return READ | HIDDEN if memory else HIDDEN  # a constructor
        name = callee(call)
        if name is None:  # a method, or `(float4)(x, y)` in OpenCL
            if memory:
                return READ | HIDDEN if self._references else READ
            return HIDDEN
        position = arguments.named_children.index(node)
        if name in self._functions:
            return self._effect(name, position, memory)
        if memory:
            if name == "swap":
                return BOTH
            by_value = not self._references or _BY_VALUE.fullmatch(name) or name in self._types
            return READ if by_value and name not in self._macro_words else READ | HIDDEN
        if name in POINTER_CASTS:
            return None
        known = (effects for pattern, effects in _RULES if pattern.fullmatch(name))
        return next(known, {}).get(position, HIDDEN)

    def _effect(self, name: str, position: int, memory: bool) -> PointerAccess:
        key = (name, position, memory)
        if key not in self._effects:
            if self._depth >= _DEEPEST:
                return HIDDEN
            self._effects[key] = NONE  # what a recursive call adds is found by the outer one
            self._depth += 1
            access = NONE
            for function in self._functions[name]:
                access |= self._effect_of(function, position, memory)
            self._depth -= 1
            self._effects[key] = access
        return self._effects[key]

    def _effect_of(self, function: Node, position: int, memory: bool) -> PointerAccess:
        declarator = function.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        parameters = listed.named_children if listed is not None else []
        body = function.child_by_field_name("body")
        if position >= len(parameters) or body is None:
            return NONE if position >= len(parameters) else HIDDEN  # another overload is meant
        declared = parameters[position].child_by_field_name("declarator")
        name = declared_name(declared)
        if name is None:
            return READ if memory else (NONE if declared is None else HIDDEN)
        by_reference = declared is not None and declared.type == "reference_declarator"
        if memory and not by_reference:
            return READ
        if body.id not in self._bodies:
            self._bodies[body.id] = places_in(body)
        access = self.of(self._bodies[body.id], text_of(name), reference=memory)
        constant = any(text_of(child) == "const" for child in parameters[position].children)
        return READ | (access & WRITE) if constant and HIDDEN in access else access


def places_in(body: Node) -> Places:
    """Where each name occurs in a body."""
    places: dict[str, list[Node]] = {}
    for node in syntax_nodes(body):
        if node.type in ("identifier", "type_identifier"):
            places.setdefault(text_of(node), []).append(node)
    return places


def _assigned(assignment: Node, node: Node, memory: bool) -> PointerAccess | _PointerName:
    left = assignment.child_by_field_name("left")
    plain = text_of(assignment.child_by_field_name("operator")) == "="
    if left == node:
        if not memory:
            return NONE  # the pointer itself moves
        return WRITE if plain else BOTH
    if memory:
        return READ
    if left is not None and left.type == "identifier":
        return _PointerName(text_of(left), reference=False)
    return HIDDEN


def _declared(declaration: Node, node: Node, memory: bool) -> PointerAccess | _PointerName:
    if not is_field(declaration, "value", node):
        return NONE
    declarator = declaration.child_by_field_name("declarator")
    name = declared_name(declarator)
    if declarator is None or name is None:
        return READ if memory else HIDDEN
    if memory:
        if declarator.type != "reference_declarator":
            return READ
        return _PointerName(text_of(name), reference=True)
    holder = declaration if declaration.type == "declaration" else declaration.parent
    holder_type = holder.child_by_field_name("type") if holder is not None else None
    if declarator.type == "identifier" and holder_type is not None and holder_type.type == "primitive_type":
        return NONE  # a difference of pointers
    return _PointerName(text_of(name), reference=False)


class PointerAccess(Flag):
    """What is done through a pointer. HIDDEN: it also goes somewhere that could not be followed."""

    NONE = 0
    READ = auto()
    WRITE = auto()
    HIDDEN = auto()
    BOTH = READ | WRITE


NONE, READ, WRITE, HIDDEN, BOTH = (
    PointerAccess[name] for name in ("NONE", "READ", "WRITE", "HIDDEN", "BOTH")
)

# Function name, then the effect on each argument that is a pointer; other positions are not known.
_RULES: tuple[tuple[re.Pattern[str], dict[int, PointerAccess]], ...] = tuple(
    (re.compile(pattern), effects)
    for pattern, effects in (
        (r"vload\w*", {1: READ}),
        (r"vstore\w*", {2: WRITE}),
        (r"(?:__hip_|__)?atom(?:ic)?_(?:\w+_)?load\w*", {0: READ}),
        (r"(?:__hip_|__)?atom(?:ic)?_(?:\w+_)?(?:store|init)\w*", {0: WRITE}),
        (r"(?:unsafe|__hip_|__)?[aA]tom(?:ic)?[A-Z_]\w*", {0: BOTH}),
        (r"__ld(?:g|c[agsv]|lu)", {0: READ}),
        (r"__st(?:c[gs]|w[bt])", {0: WRITE}),
        (r"memcpy|memmove|__pipeline_memcpy_async|async_work_group_\w*copy", {0: WRITE, 1: READ}),
        (r"memset", {0: WRITE}),
        (r"__builtin_nontemporal_load", {0: READ}),
        (r"__builtin_nontemporal_store", {1: WRITE}),
        (r"load_matrix_sync", {1: READ}),
        (r"store_matrix_sync", {0: WRITE}),
        (r"prefetch|__builtin_prefetch|assert|printf|__builtin_assume", dict.fromkeys(range(8), NONE)),
        (r"swap", {0: BOTH, 1: BOTH}),
    )
)
# The value of these calls is the pointer they were given.
POINTER_CASTS = frozenset({"reinterpret_cast", "static_cast", "const_cast", "__builtin_assume_aligned"})
# In C++ an unknown function may take a reference; these are known to take values.
_BY_VALUE = re.compile(
    r"""__\w+ | \w+_cast | printf | assert | make_\w+ | h[a-z]+2? | is(?:nan|inf|finite) | sizeof
    | f?(?:abs|min|max|mod|ma|dim)f? | r?sqrtf? | r?cbrtf? | pow[if]?f? | copysignf? | hypotf? | sincospif?
    | (?:exp|exp2|exp10|expm1|log|log2|log10|log1p|erf|erfc|erfinv|tgamma|lgamma)f?
    | a?(?:sin|cos|tan)h?f? | atan2f? | (?:l?l?r(?:ound|int)|ceil|floor|trunc|round|nearbyint|saturate)f?
    | float | double | half | int | unsigned | u?int\d*_t | u?char | u?short | u?long | bool | size_t""",
    re.VERBOSE,
)
