"""The syntax tree of a reading, judged. C may run on the host's CPU: there every node is of a known kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from tunesmith.csource.grammar import DROPPED_GROUPS, GrammarText, Known, grammar_text
from tunesmith.csource.lex import Token
from tunesmith.csource.nodes import Language
from tunesmith.csource.parse import top_level_items
from tunesmith.csource.syntax import declared_name, syntax_nodes, syntax_tree, text_of
from tunesmith.csource.types import INTEGERS, is_builtin_type
from tunesmith.problem.device_words import DeviceWords, HandedArrays, Refusal, UserWords, listed
from tunesmith.problem.vetting_flow import AddressFlow

if TYPE_CHECKING:
    from tree_sitter import Node

_NODES = listed(
    "translation_unit declaration function_definition function_declarator pointer_declarator "
    "array_declarator init_declarator parenthesized_declarator parameter_list parameter_declaration "
    "type_qualifier type_descriptor abstract_pointer_declarator abstract_array_declarator "
    "abstract_parenthesized_declarator storage_class_specifier primitive_type sized_type_specifier "
    "type_identifier type_definition struct_specifier union_specifier enum_specifier enumerator "
    "enumerator_list field_declaration field_declaration_list field_identifier bitfield_clause "
    "identifier number_literal char_literal character escape_sequence string_literal string_content "
    "concatenated_string true false null compound_statement expression_statement if_statement "
    "else_clause for_statement while_statement do_statement switch_statement case_statement "
    "break_statement continue_statement return_statement goto_statement labeled_statement "
    "statement_identifier attributed_statement attribute_declaration attribute attribute_specifier "
    "argument_list call_expression assignment_expression binary_expression unary_expression "
    "update_expression conditional_expression cast_expression comma_expression field_expression "
    "subscript_expression pointer_expression parenthesized_expression sizeof_expression "
    "alignof_expression compound_literal_expression initializer_list initializer_pair "
    "field_designator subscript_designator subscript_range_designator alignas_qualifier comment "
    "ms_restrict_modifier"
)
CALLED = "is not defined here: a template calls what it defines and built-ins"
_KERNEL = ("kernel", "__kernel", "__global__")
_ADDRESS = listed("subscript_expression field_expression string_literal")


def judge_tree(
    tokens: Sequence[Token],
    language: Language,
    known: Known,
    functions: frozenset[str],
    words: DeviceWords,
    user: UserWords,
    handed: HandedArrays = frozenset(),
) -> bool:
    """Whether other numbers might be judged otherwise. Raises Refusal."""
    place = grammar_text(tokens, language, known)
    parts = [(place, syntax_tree(place.text, language))]
    if parts[0][1].has_error:
        items = [grammar_text(item, language, known) for item in top_level_items(tokens)]
        parts = [(item, syntax_tree(item.text, language)) for item in items]
    tree = _Tree(functions, words, user, language)
    for _, root in parts:
        tree.declare(root)
    for part, root in parts:
        tree.judge(part, root)
    kernels = frozenset(kernel_names(tokens))
    flow = AddressFlow(parts, kernels, handed, words, user, tree.is_c)
    try:
        flow.judge()
    except RecursionError as error:
        too_deep = "its statements and expressions are nested too deep to be followed; split them"
        raise Refusal("text", 0, too_deep) from error
    return flow.asks_numbers


def kernel_names(tokens: Sequence[Token]) -> Iterator[str]:
    """What stands behind the word for a kernel, before its arguments."""
    names = (at for at, token in enumerate(tokens) if token.text in _KERNEL)
    for start in names:
        for one, following in pairwise(tokens[start:]):
            if following.text == "(" and one.kind == "word" and one.text not in DROPPED_GROUPS:
                yield one.text
                break


class _Tree:
    def __init__(
        self, functions: frozenset[str], words: DeviceWords, user: UserWords, language: Language
    ) -> None:
        self.functions, self.words, self.user = functions, words, user
        self.is_c = language == "opencl"
        self.names: set[str] = set(functions)
        self.integers: set[str] = set()

    def declare(self, root: Node) -> None:
        """Every name that a declaration has, and which of them are plain integers with no address in them."""
        others: set[str] = set()
        for node in syntax_nodes(root):
            if node.type == "enumerator":
                self.names.add(text_of(node.child_by_field_name("name")))
            if node.type not in ("declaration", "parameter_declaration", "field_declaration"):
                continue
            is_integer = text_of(node.child_by_field_name("type")) in INTEGERS
            for declarator in node.children_by_field_name("declarator"):
                name = text_of(declared_name(declarator))
                self.names.add(name)
                value = declarator.child_by_field_name("value")
                inner = declarator.child_by_field_name("declarator") if value is not None else declarator
                plain = is_integer and inner is not None and inner.type == "identifier"
                if plain and (value is None or self._is_integer(value)):
                    self.integers.add(name)
                else:
                    others.add(name)
        self.integers -= others

    def judge(self, place: GrammarText, root: Node) -> None:
        for node in syntax_nodes(root):
            # In C++ the grammar puts in a token here and there that nobody misses: the tree around it stands.
            shown = (
                " ".join(place.written(node).split())[:60] if node.type == "ERROR" or node.is_missing else ""
            )
            is_read = node.type != "ERROR" or text_of(node).startswith("[[") or not (self.is_c or shown)
            if not is_read or (node.is_missing and self.is_c):
                raise Refusal(
                    "declaration", place.line(node), f"`{shown}` could not be read; write it plainly"
                )
            self._pointer(place, node)
            if self.is_c:
                self._node(place, node)

    def _node(self, place: GrammarText, node: Node) -> None:
        if not node.is_named:
            return
        line = place.line(node)
        if node.type not in _NODES:
            kind = node.type.replace("_", " ")
            raise Refusal(
                "declaration", line, f"`{text_of(node)[:60]}` ({kind}) is not known to be device code"
            )
        match node.type:
            case "function_declarator":
                self._function(node, line)
            case "parenthesized_declarator" if node.named_children[0].type != "pointer_declarator":
                words = f"`{text_of(node)[:60]}`: a name is declared without parentheses around it"
                raise Refusal("declaration", line, words)
            case "call_expression":
                called = node.child_by_field_name("function")
                if called is None or called.type != "identifier":
                    words = f"`{text_of(called)[:60]}` is called, which is no name: call functions by name"
                    raise Refusal("call", line, words)
                name = text_of(called)
                if name not in self.functions | self.user.words and not self.words.calls(name):
                    raise Refusal("call", line, f"{name} {CALLED}")
            case "identifier" if node.parent is None or node.parent.type != "attribute":  # [[unroll]] is ours
                self._name(node, line)
            case "storage_class_specifier" if text_of(node) == "extern" and "extern" not in self.user.words:
                raise Refusal("declaration", line, "extern is not allowed: a template stands alone")

    def _function(self, node: Node, line: int) -> None:
        inner, outer = node.child_by_field_name("declarator"), node.parent
        while outer is not None and outer.type == "pointer_declarator":
            outer = outer.parent
        shown = text_of(node)[:60]
        if inner is None or inner.type != "identifier" or outer is None:
            raise Refusal(
                "declaration", line, f"`{shown}` declares more than a function by its name; write it plainly"
            )
        if outer.type == "function_definition":
            return
        if outer.type != "declaration":
            raise Refusal(
                "pointer", line, f"`{shown}`: pointers to functions are not allowed; call them by name"
            )
        name = text_of(inner)
        if name not in self.functions:
            words = f"{name} is declared and not defined: a template calls what it defines and built-ins"
            raise Refusal("declaration", line, words)

    def _name(self, node: Node, line: int) -> None:
        name = text_of(node)
        if (
            name in self.names
            or name in self.user.words
            or self.words.has_reserved(name)
            or name.startswith("__")
        ):
            return
        if not is_builtin_type(name, "opencl"):
            words = f"{name} is neither declared here nor known of OpenCL C; declare it, or leave it out"
            raise Refusal("name", line, words)

    def _pointer(self, place: GrammarText, node: Node) -> None:
        """An address made of a number could be anybody's."""
        target, value = None, None
        if node.type == "cast_expression":
            target, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        elif node.type == "call_expression":
            called = node.child_by_field_name("function")
            if called is not None and text_of(called).startswith(("reinterpret_cast", "bit_cast")):
                target, value = called, node.child_by_field_name("arguments")
        stars = text_of(target).count("*")
        if value is None or not stars:
            return
        if stars > 1 and "**" not in self.user.text.replace(" ", ""):
            words = f"`{text_of(node)[:60]}`: a pointer to a pointer is not allowed; index the array instead"
            raise Refusal("pointer", place.line(node), words)
        if self._is_integer(value) and text_of(value).strip("()") not in ("0", "nullptr", "NULL"):
            words = f"`{text_of(node)[:60]}` makes a pointer of a number; start from an argument or an array"
            raise Refusal("pointer", place.line(node), words)

    def _is_integer(self, value: Node) -> bool:
        """Whether no pointer has a part in it, as far as can be told."""
        pending = [value]
        while pending:
            node = pending.pop()
            if node.type in _ADDRESS or (node.type == "pointer_expression"):
                return False
            if node.type == "call_expression":
                called = node.child_by_field_name("function")
                if not text_of(called).startswith(("as_", "get_", "__float_as_", "__double_as_")):
                    return False
            if node.type == "identifier" and text_of(node) not in self.integers:
                parent = node.parent
                is_called = parent is not None and parent.type == "call_expression"
                if not is_called or parent is None or parent.child_by_field_name("function") != node:
                    return False
            if node.type != "type_descriptor":
                pending += node.named_children
        return True
