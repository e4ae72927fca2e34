"""One reading of a source, judged word by word: calls, attributes, assembler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tunesmith.problem.vetting.device_words import (
    INSTRUCTIONS,
    NAMESPACES,
    PTX_TYPES,
    DeviceWords,
    HandedArrays,
    Refusal,
    UserWords,
    split_word_set,
)
from tunesmith.problem.vetting.flow import AddressFlow
from tunesmith.source.lex import (
    MAX_WORDS,
    Token,
    closing_angle,
    closing_bracket,
    deep_bracket,
    find_parse_obstacle,
    lex,
)
from tunesmith.source.preprocess import PLACES, PLAIN
from tunesmith.source.reader.grammar import (
    DROPPED_GROUPS,
    GrammarText,
    Known,
    declared_name,
    grammar_text,
    known_names,
    syntax_nodes,
    syntax_tree,
    text_of,
)
from tunesmith.source.reader.parse import top_level_items
from tunesmith.source.text import first_word, join_spliced_lines
from tunesmith.source.tree import MAX_DEPTH, Language
from tunesmith.source.types import INTEGERS, PRIMITIVE, is_builtin_type

if TYPE_CHECKING:
    from tree_sitter import Node


# -- The declarations of a file, judged: device code, defined where declared, nothing that outlives a launch.


ASSEMBLER = split_word_set("asm __asm __asm__")
ATTRIBUTES = ("__attribute__", "__attribute")
_NO_VARIABLES = (";", "typedef", "static_assert", "_Static_assert", "namespace", "using")
_HEADS = split_word_set(
    "__launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ __align__ alignas decltype"
)
_NO_FUNCTIONS = _HEADS | split_word_set("__attribute__ __attribute sizeof alignof typeof __typeof__")
_KEEPS = split_word_set("__device__ __managed__")
_WORDS = re.compile(r"[^\W\d]\w*")
_DEVICE = split_word_set("__device__ __global__ constexpr")


class TokenRun:
    """The words of a reading, with safe access to those around one."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.all = tokens

    def text(self, at: int) -> str:
        return self.all[at].text if 0 <= at < len(self.all) else ""

    def is_word(self, at: int) -> bool:
        return 0 <= at < len(self.all) and self.all[at].kind == "word"

    def closing(self, at: int) -> int:
        """The index of what closes the bracket at `at`; the end where nothing does."""
        return closing_bracket(self.all, at)


def judge_item(
    tokens: Sequence[Token],
    functions: frozenset[str],
    namespaces: frozenset[str],
    user: UserWords,
    is_c: bool,
) -> None:
    """One declaration of the file; raises Refusal. `functions` are those that it defines."""
    item = TokenRun(_strip_prefixes(tokens))
    if not item.all or item.all[0].kind == "directive":
        return
    first, line = item.text(0), tokens[0].line
    for state in _persistent_variables(item):
        last = state.split()[-1]
        line = next((token.line for token in item.all if token.text == last), line)
        rule = "is a variable that outlives a launch and can be written: no template has one, even where the"
        remedy = "original does; make it const, or keep it in a function or in an argument of [workspace]"
        raise Refusal("state", line, f"`{state}` {rule} {remedy}")
    if [first, item.text(1)] == ["using", "namespace"] and item.text(2) not in namespaces | user.words:
        raise Refusal("declaration", line, f"using namespace {item.text(2)} is not known; leave it out")
    head, place = _declaration_head(item)
    if first not in _NO_VARIABLES and item.text(place) == "(" and not is_c:
        _judge_function(item, head, place, functions, user)


def _judge_function(
    item: TokenRun, head: Sequence[str], place: int, functions: frozenset[str], user: UserWords
) -> None:
    """C's are judged by the tree."""
    name, line = head[-1] if head else "", item.all[0].line
    body = next((at for at in range(item.closing(place), len(item.all)) if item.text(at) == "{"), None)
    if body is not None and item.closing(body) != len(item.all) - 1:
        words = f"{name} is followed by more in the same declaration; write a declaration of its own"
        raise Refusal("declaration", line, words)
    if {"operator", "friend"} & set(head):
        return
    if body is None and name not in functions and name not in user.words:
        words = f"{name} is declared and not defined: a template calls what it defines and built-ins"
        raise Refusal("declaration", line, words)
    # A word of the user's may be a macro of a header that says so.
    if not set(head[:-1]) & (_DEVICE | (user.words - PRIMITIVE)) and name not in user.words:
        words = f"{name} is host code; a template holds device code alone: mark it __device__"
        raise Refusal("host", line, words)


def judge_outside(run: TokenRun, at: int, user: UserWords) -> None:
    """An `extern`, a `typedef` or a `using`: none names what is defined elsewhere, as functions of the host
    are where a kernel runs there."""
    line, is_extern = run.all[at].line, run.text(at) == "extern"
    if is_extern and run.text(at + 1) == '"C"':
        return
    place = at + 1
    while place < len(run.all) and run.text(place) != ";":
        text = run.text(place)
        if is_extern and text == "__shared__":
            return
        before = run.text(place - 1)
        is_declarator = before not in _NO_FUNCTIONS and (run.is_word(place - 1) or before in (">", "*", "&"))
        if text == "(" and not is_extern and is_declarator:
            name = run.text(at + 1 if run.text(at) == "using" else place - 1)
            if run.text(place + 1) not in ("*", "&") and name not in user.words - PRIMITIVE:
                words = "the type of a function is not allowed in a template: call functions by name"
                raise Refusal("declaration", line, words)
        end = closing_angle(run.all, place) if text == "<" else None
        place = (run.closing(place) if text in ("(", "[", "{") else place if end is None else end) + 1
    if is_extern:
        words = 'extern is not allowed in a template, but for extern "C" and extern __shared__'
        raise Refusal("declaration", line, words)


def _strip_prefixes(tokens: Sequence[Token]) -> Sequence[Token]:
    while tokens:
        texts = [token.text for token in tokens[:2]]
        if texts == ["template", "<"]:
            depth = 0
            for end, token in enumerate(tokens):
                depth += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0)
                if end and depth <= 0 and token.text in (">", ">>"):
                    break
            tokens = tokens[end + 1 :]
        elif texts == ["extern", '"C"']:
            tokens = tokens[2:]
        else:
            break
    return tokens


def _declaration_head(item: TokenRun) -> tuple[list[str], int]:
    """The words before the first of ( { = [ ; that belongs to the declaration itself, and where that is."""
    found: list[str] = []
    at = 0
    while at < len(item.all):
        text = item.text(at)
        if text in (*ATTRIBUTES, *_HEADS) and item.text(at + 1) == "(":
            found.append(text)
            at = item.closing(at + 1) + 1
        elif text == "[" and item.text(at + 1) == "[":
            at = item.closing(at) + 1
        elif text in ("(", "{", "=", "[", ";"):
            break
        elif text == "<":
            end = closing_angle(item.all, at)
            at = at + 1 if end is None else end + 1
        else:
            found.append(text)
            at += 1
    return found, at


_CONSTANT = split_word_set("constexpr __constant constant")
_TYPES = split_word_set("struct class union enum")


def kept_by(headers: Sequence[str]) -> set[str]:
    """Names of the user's headers by which device code reaches what outlives a launch and can be written:
    such variables, and functions and macros that have them."""
    tokens = [token for text in headers for token in lex(join_spliced_lines(text.replace("\r\n", "\n")))]
    macros = [first_word(token.text)[1] for token in tokens if token.kind == "directive"]
    bodies = {words[0]: set(words[1:]) for text in macros if (words := _WORDS.findall(text))}
    device = {name for name, body in bodies.items() if body & _KEEPS} | _KEEPS
    found: set[str] = set()
    for one in top_level_items([token for token in tokens if token.kind != "directive"]):
        item = TokenRun(_strip_prefixes(one))
        head, place = _declaration_head(item)
        if set(head) & device:
            is_function = item.text(place) == "("
            for state in _persistent_variables(item):
                found.add(head[-1] if is_function else state.split()[-1])
            bodies.setdefault(head[-1], set()).update(t.text for t in item.all[place:] if t.kind == "word")
    more = found
    while more:
        more = {name for name, body in bodies.items() if body & found} - found
        found |= more
    return found


def _persistent_variables(item: TokenRun) -> Iterator[str]:
    head, place = _declaration_head(item)
    following = item.text(place)
    if set(head) & _TYPES and following == "{":
        end = item.closing(place) + 1
        while item.text(end) in ATTRIBUTES:
            end = item.closing(end + 1) + 1
        if item.text(end) not in (";", "") and "typedef" not in head:
            yield " ".join([*head, item.text(end)])
    elif item.text(0) not in _NO_VARIABLES and item.all[:1] and item.all[0].kind != "directive":
        is_forward = set(head) & _TYPES and len(head) <= 2 and following == ";"
        is_function = following == "(" and "," not in head
        if head and not is_forward and not is_function and not _is_constant(head, following):
            yield " ".join(head)
    for at, token in enumerate(item.all):
        if token.text == "static" and (at or following == "("):
            inner = TokenRun(item.all[at:])
            words, end = _declaration_head(inner)
            behind = inner.closing(end) + 1 if inner.text(end) == "(" else end
            while inner.text(behind) in ("const", "noexcept"):
                behind += 1
            in_body = following == "(" and at > place  # where `static S memo(1);` is no function
            ends = ("{", "->", *ATTRIBUTES) if in_body else ("{", "->", ";", *ATTRIBUTES)
            is_function = behind > end and inner.text(behind) in ends
            if not is_function and not _is_constant(words, inner.text(end)):
                yield " ".join(words)


def _is_constant(head: Sequence[str], following: str) -> bool:
    """Whether nothing can be written there from one launch to the next."""
    if set(head) & _CONSTANT or "__shared__" in head:
        return True
    behind = head[len(head) - head[::-1].index("*") :] if "*" in head else head
    return "const" in behind or ("__constant__" in head and "*" not in head and following in ("=", "[", "{"))


# -- The syntax tree of a reading, judged. C may run on the host's CPU: there every node is of a known kind.


_NODES = split_word_set(
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
_ADDRESS = split_word_set("subscript_expression field_expression string_literal")


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
            is_fault = node.type == "ERROR" or node.is_missing
            shown = " ".join(place.written(node).split())[:60] if is_fault else ""
            is_read = node.type != "ERROR" or text_of(node).startswith("[[") or not (self.is_c or shown)
            if not is_read or (node.is_missing and self.is_c):
                words = f"`{shown}` could not be read; write it plainly"
                raise Refusal("declaration", place.line(node), words)
            self._pointer(place, node)
            if self.is_c:
                self._node(place, node)

    def _node(self, place: GrammarText, node: Node) -> None:
        if not node.is_named:
            return
        line = place.line(node)
        if node.type not in _NODES:
            kind = node.type.replace("_", " ")
            words = f"`{text_of(node)[:60]}` ({kind}) is not known to be device code"
            raise Refusal("declaration", line, words)
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
            words = f"`{shown}` declares more than a function by its name; write it plainly"
            raise Refusal("declaration", line, words)
        if outer.type == "function_definition":
            return
        if outer.type != "declaration":
            words = f"`{shown}`: pointers to functions are not allowed; call them by name"
            raise Refusal("pointer", line, words)
        name = text_of(inner)
        if name not in self.functions:
            words = f"{name} is declared and not defined: a template calls what it defines and built-ins"
            raise Refusal("declaration", line, words)

    def _name(self, node: Node, line: int) -> None:
        name = text_of(node)
        if name in self.names or name in self.user.words or name.startswith("__"):
            return
        if not self.words.has_reserved(name) and not is_builtin_type(name, "opencl"):
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


_MARKS = split_word_set(
    "+ - * / % & | ^ ~ ! = < > ? : ; , . ( ) [ ] { } :: ++ -- << >> <= >= == != && || -> ->* ..."
)
_MARKS |= {f"{op}=" for op in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")}
_DIGRAPHS = {("<", ":"), ("<", "%"), ("%", ":"), ("%", ">"), (":", ">")}
# Words before a parenthesis that call nothing.
_NO_CALLS = split_word_set(
    "if for while switch return sizeof alignof alignas decltype noexcept static_assert constexpr case "
    "else do and or not operator requires typeid defined __alignof__ __alignof _Alignof _Alignas "
    "_Static_assert __launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ __align__ "
    "__attribute__ __attribute explicit static_cast reinterpret_cast const_cast in volatile "
    "__volatile__ goto vec_step this"
)
_QUALIFIERS = split_word_set(
    "__global global __local local __constant constant __private private const restrict"
)
_NO_TYPES = split_word_set("return else do case goto throw new delete sizeof and or not operator typename")
# Of C++ and its library: nothing that a kernel needs.
_NEVER = {
    "new": "memory from the heap", "delete": "memory from the heap", "throw": "an exception",
    "try": "an exception", "catch": "an exception", "typeid": "type information",
    "dynamic_cast": "type information", "thread_local": "a variable that outlives a launch",
    "virtual": "a table of functions", "co_await": "a coroutine", "co_yield": "a coroutine",
    "co_return": "a coroutine",
    "__declspec": "an attribute", "__managed__": "a variable that outlives a launch",
}  # fmt: skip
_STD = split_word_set(
    "move forward get exchange declval addressof lowest infinity quiet_NaN epsilon denorm_min"
)
_PTX_REGISTER = re.compile(r"%%?([a-z]\w*)")


@dataclass(frozen=True)
class UnitWords:
    """The words of a reading. Configurations that differ in numbers alone are judged once."""

    texts: tuple[str, ...]
    tokens: tuple[Token, ...] = field(compare=False)
    handed: HandedArrays = frozenset()

    @property
    def exact(self) -> UnitWords:
        """With its numbers."""
        return replace(self, texts=tuple([token.text for token in self.tokens]))

    @classmethod
    def of(cls, tokens: tuple[Token, ...], handed: HandedArrays = frozenset()) -> UnitWords:
        before = ["", *(token.text for token in tokens[:-1])]
        pairs = zip(tokens, before, strict=False)  # there may be none
        texts = tuple([t.text if said == ">>" else _generalize_token(t) for t, said in pairs])
        return cls(texts, tokens, handed)


def _generalize_token(token: Token) -> str:
    is_plain = token.kind == "number" and token.text != "0" and "'" not in token.text
    return "1" if is_plain else token.text


def judge_unit(unit: UnitWords, words: DeviceWords, user: UserWords, language: str) -> None:
    """Raises Refusal."""
    judged = _judge_unit_words(unit, words, user, language)
    if judged is not None and judged != unit.tokens:
        _judge_unit_words(unit.exact, words, user, language)


@lru_cache(maxsize=64)
def _judge_unit_words(
    unit: UnitWords, words: DeviceWords, user: UserWords, language: str
) -> tuple[Token, ...] | None:
    """The very words, where other numbers might be judged otherwise."""
    if len(unit.tokens) > MAX_WORDS:
        raise Refusal("text", 0, f"it has {len(unit.tokens):,} words, at most {MAX_WORDS:,} are read")
    if deep := deep_bracket(unit.tokens, MAX_DEPTH):
        raise Refusal("text", deep.line, f"brackets are nested more than {MAX_DEPTH} deep")
    if trouble := find_parse_obstacle(unit.tokens):
        raise Refusal("text", 0, trouble)
    asks_numbers = _WordJudge(unit.tokens, words, user, language).judge(unit.handed)
    return unit.tokens if asks_numbers else None


class _WordJudge(TokenRun):
    def __init__(self, tokens: Sequence[Token], words: DeviceWords, user: UserWords, language: str) -> None:
        super().__init__(tokens)
        self.words, self.user = words, user
        self.language: Language = "opencl" if language == "opencl" else "cuda"
        self.is_c = language == "opencl"
        self.known: Known = known_names(tokens, self.language)
        self.functions = self._defined()
        self.declared = frozenset() if self.is_c else frozenset(self._declared())
        self.namespaces = NAMESPACES | self.known.namespaces | self._namespace_aliases()

    def judge(self, handed: HandedArrays) -> bool:
        items = tuple(top_level_items(self.all))
        for item in items:
            if item[0].text in ASSEMBLER:
                words = "asm outside of a function is not allowed in a template"
                raise Refusal("assembler", item[0].line, words)
        bare: list[Token] = []  # attributes are judged here alone
        skipped = -1
        for at, token in enumerate(self.all):
            if at <= skipped:
                continue
            if token.text not in ATTRIBUTES:
                bare.append(token)
            if token.kind == "directive":
                self._directive(token)
            elif token.text in ATTRIBUTES:
                skipped = self._judge_attribute(at, token.line)
            elif token.kind == "word":
                self._word(at, token)
            elif token.kind == "mark":
                self._mark(at, token)
            elif token.kind == "number" and self.is_c and "'" in token.text:
                raise Refusal("text", token.line, f"{token.text} is no number of C")
        for item in items:
            judge_item(item, self.functions, self.namespaces, self.user, self.is_c)
        asks_numbers = judge_tree(
            bare, self.language, self.known, self.functions, self.words, self.user, handed
        )
        for at, token in enumerate(bare if self.is_c else ()):
            # What the tree may have taken for something else.
            following = bare[at + 1].text if at + 1 < len(bare) else ""
            if token.kind == "word" and following == "(" and not self._may_be_called(token.text):
                raise Refusal("call", token.line, f"{token.text} {CALLED}")
        return asks_numbers

    def _may_be_called(self, name: str) -> bool:
        is_known = name in self.functions or name in _NO_CALLS or self.is_users(name)
        return is_known or self.words.calls(name) or self.is_type(name) or name in _QUALIFIERS

    def _defined(self) -> frozenset[str]:
        """Names of functions with a body, members of classes included."""
        found = set()
        for at, token in enumerate(self.all):
            if token.kind != "word" or self.text(at + 1) != "(" or token.text in _NO_CALLS:
                continue
            is_typed = self.is_word(at - 1) and self.text(at - 1) not in _NO_TYPES
            if not is_typed and self.text(at - 1) not in ("*", "&", ">", "~", ")"):
                continue
            end = self.closing(at + 1) + 1
            while self.text(end) in ("const", "noexcept", "override"):
                end += 1
            if self.text(end) in ATTRIBUTES and self.text(end + 1) == "(":
                end = self.closing(end + 1) + 1
            if self.text(end) == "{":
                found.add(token.text)
        return frozenset(found)

    def _declared(self) -> Iterator[str]:
        """Variables and parameters, which may be objects that are called."""
        for at, token in enumerate(self.all):
            if token.kind != "word" or self.text(at + 1) not in ("=", ";", ",", ")", "(", "{", "[", ":"):
                continue
            first = at - 1
            while self.text(first) in ("*", "&", "&&"):
                first -= 1
            if self.text(first) == ">" or (self.is_word(first) and self.text(first) not in _NO_TYPES):
                known = self.text(first) in (">", "auto", "const", "volatile") or self.is_type(
                    self.text(first)
                )
                if known or first == at - 1:
                    yield token.text

    def _namespace_aliases(self) -> frozenset[str]:
        spots = (at for at, token in enumerate(self.all) if token.text == "namespace")
        return frozenset(self.text(at + 1) for at in spots if self.text(at + 2) == "=")

    def is_type(self, name: str) -> bool:
        return name in PRIMITIVE or self.known.is_type(name, self.language)

    def is_users(self, name: str) -> bool:
        return name in self.user.words

    def _directive(self, token: Token) -> None:
        word, rest = first_word(token.text)
        said = " ".join(rest.split())
        if word == "pragma" and not self.words.pragmas.fullmatch(said) and said not in self.user.pragmas:
            raise Refusal("pragma", token.line, f"#pragma {said[:60]} is not allowed in a template")

    def _mark(self, at: int, token: Token) -> None:
        if token.text == "<<<":
            raise Refusal("host", token.line, "'<<<' launches a kernel, which is host code; leave it out")
        if token.text not in _MARKS or (token.text == "..." and self.is_c):
            raise Refusal("text", token.line, f"`{token.text}` is not allowed in a template")
        following = self.all[at + 1] if at + 1 < len(self.all) else None
        if following is not None and not following.space and (token.text, following.text) in _DIGRAPHS:
            words = (
                f"`{token.text}{following.text}` is not allowed in a template: write the sign it stands for"
            )
            raise Refusal("text", token.line, words)
        if token.text == "[" and self.text(at + 1) == "[":
            self._judge_bracketed(at, token)
        if token.text == "(" and self.text(at + 1) in ("*", "&") and not self.is_word(at - 1):
            end = self.closing(at)
            between = self.all[at + 2 : end]
            plain = all(part.kind in ("word", "number") or part.text in ("[", "]", "*") for part in between)
            if plain and self.text(end + 1) == "(" and len(between) < 6:
                self._pointer_to_function(token)
        elif (
            token.text == "("
            and self.text(at + 1) == "*"
            and self.is_type(self.text(at - 1))
            and self.text(self.closing(at) + 1) == "("
        ):
            self._pointer_to_function(token)

    def _pointer_to_function(self, token: Token) -> None:
        if self.is_c or not re.search(r"\(\s*[*&][\w\s]*\)\s*\(", self.user.text):
            words = "pointers to functions are not allowed: call functions by name"
            raise Refusal("pointer", token.line, words)

    def _judge_bracketed(self, at: int, token: Token) -> None:
        inside = [part.text for part in self.all[at + 2 : self.closing(at + 1)] if part.kind == "word"]
        strange = [name for name in inside if name not in self.words.bracketed]
        if strange and self.text(at + 2) not in ("&", "=", "]"):  # a lambda's captures
            words = f"[[{'::'.join(inside)}]] is not allowed in a template; leave it out"
            raise Refusal("attribute", token.line, words)

    def _word(self, at: int, token: Token) -> None:
        name, line = token.text, token.line
        if not name.isascii():
            raise Refusal("text", line, f"the name {name!a} is not ASCII; rename it")
        if name in self.user.states and self.text(at - 1) not in (".", "->"):
            words = (
                f"{name} of the headers is a variable that outlives a launch and can be written, or uses one"
            )
            raise Refusal("state", line, f"{words}; keep such things in an argument of [workspace]")
        if PLACES.fullmatch(name) or (PLAIN.fullmatch(name) and not self.is_users(name)):
            words = f"{name} is another text in another place, or in another compiler; write a value"
            raise Refusal("name", line, words)
        if name in ASSEMBLER:
            self._judge_assembler(at, line)
        elif self.words.clocks.fullmatch(name) and not self.is_users(name) and not self._is_own(at, name):
            words = f"{name} tells time or place, by which a check can be told from a timing; leave it out"
            raise Refusal("clock", line, words)
        elif name in _NEVER and not self.is_c and not self.is_users(name):
            words = f"{name} is {_NEVER[name]}, which device code has no need of; leave it out"
            raise Refusal("name", line, words)
        elif name == "main" and self.text(at + 1) == "(":
            raise Refusal("host", line, "main is host code; a template holds device code alone")
        elif self.text(at - 1) in (".", "->"):
            return
        elif name.startswith("__") or (name[:1] == "_" and name[1:2].isupper()):
            if not (self.words.has_reserved(name) or self.is_users(name) or name in self.functions):
                words = (
                    f"{name} is a name of the compiler's own that is not known to be harmless; leave it out"
                )
                raise Refusal("name", line, f"{words}, or rename what you define")
        elif name == "goto" and self.text(at + 1) == "*":
            raise Refusal("pointer", line, "goto takes a label, not an address")
        elif name in ("extern", "typedef", "using") and not self.is_c:
            judge_outside(self, at, self.user)
        if name not in _NO_CALLS and name not in ASSEMBLER and not self.is_c:
            self._call(at, name, line)

    def _is_own(self, at: int, name: str) -> bool:
        return self.text(at - 1) in (".", "->") or name in self.functions or name in self.declared

    def _call(self, at: int, name: str, line: int) -> None:
        after = at + 1
        if self.text(after) == "<":
            end = closing_angle(self.all, after)
            after = after if end is None else end + 1
        if self.text(after) != "(" or self.text(at - 1) in (".", "->"):
            return
        first, outer = at, ""
        while self.text(first - 1) == "::":
            first -= 2
            if self.text(first) == ">":  # numeric_limits<float>::max()
                while first > 0 and self.text(first) != "<":
                    first -= 1
                first -= 1
            outer = self.text(first)
        is_declared = name in self.functions or name in self.declared
        is_own = is_declared or self.is_users(name) or self.words.calls(name)
        if outer:
            trusted = outer in (self.namespaces - {"std"}) or self.is_type(outer) or self.is_users(outer)
            in_std = "std" in {self.text(place) for place in range(first, at)}
            if (trusted and not in_std) or is_own or name in _STD or self.is_type(name):
                return
        elif is_own or self.is_type(name):
            return
        words = f"{name}() is host code or unknown; a template holds device code alone: call what it defines"
        raise Refusal("call", line, f"{words}, and CUDA's own device functions")

    def _judge_attribute(self, at: int, line: int) -> int:
        """Where it ends."""
        if self.text(at + 1) != "(" or self.text(at + 2) != "(":
            raise Refusal("attribute", line, "__attribute__ is not followed by ((words))")
        depth, end = 0, self.closing(at + 1)
        for place in range(at + 2, end):
            text = self.text(place)
            if self.all[place].kind == "string":
                raise Refusal("attribute", line, f"__attribute__ with the text {text[:40]} is not allowed")
            if depth == 1 and self.text(place - 1) in ("(", ",") and text != ")":
                name = text.removeprefix("__").removesuffix("__")
                if name not in self.words.attributes:
                    listed = ", ".join(sorted(self.words.attributes))
                    words = f"__attribute__(({text})) is not allowed; those that are: {listed}"
                    raise Refusal("attribute", line, words)
            depth += {"(": 1, ")": -1}.get(text, 0)
        return end

    def _judge_assembler(self, at: int, line: int) -> None:
        if self.is_c:
            words = f"{self.text(at)} is not allowed in OpenCL C: a template has no assembler"
            raise Refusal("assembler", line, words)
        start = at + 1
        while self.text(start) in ("volatile", "__volatile__"):
            start += 1
        if self.text(start) != "(" or not self._is_string(start + 1):
            words = "asm is not followed by its instructions: write them where it stands, in parentheses"
            raise Refusal("assembler", line, words)
        end = start + 1
        while self._is_string(end):
            end += 1
        if self.text(end) not in (":", "::", ")"):
            words = f"asm has `{self.text(end)[:40]}` among its instructions: text alone"
            raise Refusal("assembler", line, words)
        written = "".join(part.text[1:-1] for part in self.all[start + 1 : end])
        written = written.replace("\\n", "\n").replace("\\t", " ").replace("\\r", "\n")
        self._instructions(re.sub(r"//[^\n]*|/\*.*?\*/", " ", written, flags=re.DOTALL), line)
        self._operands(self.all[end : self.closing(start)], line)
        if "\\" in written:
            raise Refusal("assembler", line, "asm with \\ in its text is not allowed, but for \\n and \\t")

    def _is_string(self, at: int) -> bool:
        return 0 <= at < len(self.all) and self.all[at].kind == "string" and self.text(at)[0] == '"'

    def _operands(self, tokens: Sequence[Token], line: int) -> None:
        """The constraint "C" puts text into instructions that nobody here has read."""
        for token in tokens:
            if token.kind == "string" and ("C" in token.text or "\\" in token.text):
                words = f"asm with the constraint {token.text[:40]} is not allowed: write instructions out"
                raise Refusal("assembler", line, words)

    def _instructions(self, written: str, line: int) -> None:
        for found in _PTX_REGISTER.finditer(written):
            if self.words.clocks.fullmatch(found[1]) and f"%{found[1]}" not in self.user.text:
                words = f"asm reads %{found[1]}, by which a check can be told from a timing; leave it out"
                raise Refusal("clock", line, words)
        for statement in re.split(r"[;\n]|(?<![\w\]%,\s])\s*[{}]|^\s*[{}]", written, flags=re.MULTILINE):
            rest = re.sub(r"^[\s{}]*(?:[$%\w]+\s*:(?!:)\s*)*(?:@!?\s*%?\w+\s+)?[\s{]*", "", statement)
            word = re.match(r"\.?\w+", rest)
            if word is None:
                if rest.strip(" \t{}"):
                    raise Refusal("assembler", line, f"asm with `{rest.strip()[:40]}` is not understood")
            elif word[0].startswith("."):
                if word[0][1:] not in PTX_TYPES:
                    words = f"asm with the directive {word[0]} is not allowed: instructions alone"
                    raise Refusal("assembler", line, words)
            elif word[0] not in INSTRUCTIONS:
                words = f"the instruction {word[0]} is not among those that asm may have"
                raise Refusal("assembler", line, words)
