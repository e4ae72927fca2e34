"""Tree-sitter's grammars, and a source's words as text that they read without guessing.

The grammars know neither the file's types nor its templates, so `(T)-x` is a subtraction to them and
`a < b && c > (d)` the call of a template. What is known here is written so that only one reading is left,
qualifiers they do not know go, and where each word came to stand is kept: text is never taken from here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import TYPE_CHECKING

from tunesmith.source.lex import Token, closing_angle, closing_bracket, lay_out_tokens, lex, squeeze_tokens
from tunesmith.source.tree import INDICES, Comment, Language, Unreadable
from tunesmith.source.types import PRIMITIVE, is_builtin_type

if TYPE_CHECKING:
    from tree_sitter import Node

DROPPED = frozenset({
    "__global__", "__device__", "__host__", "__forceinline__", "__noinline__", "__inline__", "__inline",
    "__grid_constant__", "__managed__", "__cdecl", "__forceinline", "__extension__",
})  # fmt: skip
DROPPED_GROUPS = frozenset({
    "__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__block_size__", "__declspec", "__attribute__",
    "__attribute",
})  # fmt: skip
# The C grammar knows no address spaces; these qualifiers it does know mean nothing else in a kernel.
OPENCL_SPACES = {"_Atomic": "global", "_Noreturn": "local", "noreturn": "constant"}
OPENCL_WORDS = {
    "__global": "_Atomic", "global": "_Atomic", "__local": "_Noreturn", "local": "_Noreturn",
    "__constant": "noreturn", "constant": "noreturn", "__private": "", "private": "", "__generic": "",
    "__kernel": "", "kernel": "", "__read_only": "", "read_only": "", "__write_only": "", "write_only": "",
    "__read_write": "", "read_write": "", "__inline": "inline", "__restrict": "restrict",
}  # fmt: skip
_SIGNS = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^", "not_eq": "!="}
_NO_FUNCTIONS = DROPPED_GROUPS | {"__align__", "alignas", "decltype"}
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast", "bit_cast"})
_BEFORE_CAST = frozenset({"and", "or", "not", "return", "sizeof", "case", "else", "do", "co_return"})
_IN_TYPES = OPENCL_WORDS.keys() | {"const", "volatile", "struct", "typename", "restrict", "__restrict__"}
_AFTER_DECLARED = frozenset({"=", ";", ",", ")", "[", "("})
_AFTER_NAME = frozenset({"=", ";", "(", "{", "[", ","})
_AFTER_TEMPLATE = frozenset({"(", "::", "{", ">", ",", ")", ";", "&", "*", ">>", "..."})


@dataclass(frozen=True)
class GrammarText:
    text: str
    tokens: tuple[Token, ...]
    starts: tuple[int, ...]  # byte offset at which each token begins here
    inserted: frozenset[int]  # offsets of `const` that only helps the grammar
    less: frozenset[int]  # offsets of `<=` that stand for `<`
    language: Language
    known: Known

    def words(self, start: int, end: int) -> tuple[Token, ...]:
        """The tokens whose place here lies in start .. end."""
        return self.tokens[bisect_left(self.starts, start) : bisect_left(self.starts, end)]

    def comments(self, start: int, end: int) -> tuple[Comment, ...]:
        """Those of the words there; only what closes the last one's line is still behind it."""
        words = self.words(start, end)
        found = [(said, said.behind and word is words[-1]) for word in words for said in word.comments]
        return tuple(replace(said, behind=behind) for said, behind in found)

    def at(self, offset: int) -> int:
        """The index of the token at or before an offset."""
        return max(bisect_right(self.starts, offset) - 1, 0)

    def line(self, node: Node) -> int:
        return self.tokens[self.at(node.start_byte)].line if self.tokens else 0

    def written(self, node: Node) -> str:
        """As it stands in the source after macros; lines after the first keep only their own indentation."""
        text = lay_out_tokens(self.words(node.start_byte, node.end_byte)).strip()
        first, _, rest = text.partition("\n")
        return f"{first}\n{dedent(rest)}" if rest else first

    def lay_out(self, before: Mapping[int, str], behind: Mapping[int, str]) -> str:
        """The whole source, with these texts before and behind some of its tokens."""
        marked = {*before, *behind}
        tokens = (
            replace(token, text=f"{before.get(at, '')}{token.text}{behind.get(at, '')}")
            if at in marked
            else token
            for at, token in enumerate(self.tokens)
        )
        return lay_out_tokens(tokens)

    def place_between(self, before: str, node: Node, behind: str) -> GrammarText:
        """The words of a node within others, to be parsed anew."""
        line = self.line(node)
        start, end = ([replace(token, line=line) for token in lex(text)] for text in (before, behind))
        words = self.words(node.start_byte, node.end_byte)
        return grammar_text([*start, *words, *end], self.language, self.known)

    def short(self, node: Node) -> str:
        return squeeze_tokens(self.words(node.start_byte, node.end_byte))

    def trouble(self, node: Node, before: str, after: str) -> Unreadable:
        return Unreadable(f"{before}`{self.short(node)}`{after}", self.line(node))

    def names(self, node: Node) -> frozenset[str]:
        found: set[str] = set()
        before = first = ""  # the word before, and the one before that
        for word in self.words(node.start_byte, node.end_byte):
            if first in INDICES and before == ".":
                found.add(f"{first}.{word.text}")
            if word.kind == "word" and before not in (".", "->"):
                found.add(word.text)
            first, before = before, word.text
        return frozenset(found)

    def is_type(self, name: str) -> bool:
        return self.known.is_type(name, self.language)


@dataclass(frozen=True)
class Known:
    """What the words of a file tell about its names before it is parsed."""

    types: frozenset[str]
    variables: frozenset[str]  # declared somewhere under a name that is also a built-in type's: `int half`
    templates: frozenset[str]
    namespaces: frozenset[str]

    def is_type(self, name: str, language: str) -> bool:
        return name in self.types or (name not in self.variables and is_builtin_type(name, language))


def known_names(tokens: Sequence[Token], language: str) -> Known:
    types: set[str] = set()
    templates: set[str] = set()
    namespaces: set[str] = set()
    variables: set[str] = set()
    for at, token in enumerate(tokens):
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if following in ("alignas", "__align__") and token.text in ("struct", "class", "union"):
            following = _behind_group(tokens, at + 2)
        if (
            token.text in ("typename", "class", "struct", "union", "enum", "using")
            and following.isidentifier()
        ):
            if token.text != "using" or (at + 2 < len(tokens) and tokens[at + 2].text == "="):
                types.add(following)
        elif token.text == "typedef":
            types |= _typedef_name(tokens, at)
        elif token.text == "namespace" and following.isidentifier() and language != "opencl":
            if at + 2 < len(tokens) and tokens[at + 2].text in ("{", "::"):
                namespaces.add(following)
        elif token.text == "template" and following == "<":
            templates |= _template_name(tokens, at + 1)
        elif following in _AFTER_DECLARED and at and _names_a_variable(tokens[at - 1], token, language):
            variables.add(token.text)
    found = frozenset(types - {"class"})
    return Known(found, frozenset(variables - found), frozenset(templates), frozenset(namespaces))


def _behind_group(tokens: Sequence[Token], at: int) -> str:
    """The word behind the parentheses that open at `at`."""
    depth = 0
    for end in range(at, min(at + 40, len(tokens) - 1)):
        depth += {"(": 1, ")": -1}.get(tokens[end].text, 0)
        if depth == 0:
            return tokens[end + 1].text
    return ""


def _names_a_variable(before: Token, token: Token, language: str) -> bool:
    """`int half =`, `float *half,`: a type before it, so no type itself."""
    if token.kind != "word" or token.text in PRIMITIVE or not is_builtin_type(token.text, language):
        return False
    return before.text in PRIMITIVE or is_builtin_type(before.text, language)


def _typedef_name(tokens: Sequence[Token], at: int) -> set[str]:
    depth = 0
    for end in range(at, min(at + 2000, len(tokens))):
        depth += {"{": 1, "}": -1}.get(tokens[end].text, 0)
        if tokens[end].text == ";" and depth == 0:
            name = tokens[end - 1]
            return {name.text} if name.kind == "word" else set()
    return set()


def _template_name(tokens: Sequence[Token], at: int) -> set[str]:
    """The function, struct or alias that the template whose "<" is at `at` declares."""
    end = closing_angle(tokens, at)
    if end is None:
        return set()
    for position in range(end + 1, min(end + 200, len(tokens))):
        token, following = tokens[position], tokens[min(position + 1, len(tokens) - 1)].text
        if token.text in ("struct", "class", "union", "using") and following.isidentifier():
            aligned = following in ("alignas", "__align__")
            return {_behind_group(tokens, position + 2) if aligned else following}
        is_callable = token.kind == "word" and following in ("(", "<") and token.text not in _NO_FUNCTIONS
        if is_callable and not is_builtin_type(token.text):
            return {token.text}
        if token.text in ("{", ";"):
            break
    return set()


def grammar_text(tokens: Sequence[Token], language: Language, known: Known) -> GrammarText:
    return _Writer(tokens, language, known).run()


class _Writer:
    def __init__(self, tokens: Sequence[Token], language: Language, known: Known) -> None:
        self._tokens, self._language, self._known = tokens, language, known
        self._pieces: list[str] = []
        self._length = 0
        self._line = tokens[0].line if tokens else 1
        self._starts: list[int] = []
        self._inserted: set[int] = set()
        self._less: set[int] = set()
        self._cast_ends: set[int] = set()  # tokens that close a cast: what follows it is no call
        self._angle_ends: set[int | None] = set()  # tokens that close template arguments
        self._spelled = {**dict.fromkeys(DROPPED, ""), "__restrict": "__restrict__"}
        self._spelled |= OPENCL_WORDS if language == "opencl" else _SIGNS
        self._doubled: set[int] = set()  # tokens that close a group which must not be taken for a cast

    def run(self) -> GrammarText:
        at = 0
        late_alignments = self._late_alignments()
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.line > self._line:
                self._write("\n" * (token.line - self._line))
                self._line = token.line
            named = "operator" in (self._text(at - 1), self._text(at - 2))  # operator[] is one name
            self._write(" " if self._pieces and not (named and token.kind == "mark") else "")
            if at in late_alignments:
                self._write(f"alignas({late_alignments[at]}) ")
            at = self._write_token(at, token)
        text, inserted, less = "".join(self._pieces), frozenset(self._inserted), frozenset(self._less)
        words, starts = tuple(self._tokens), tuple(self._starts)
        return GrammarText(text, words, starts, inserted, less, self._language, self._known)

    def _write(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text.encode("utf-8", "replace"))

    def _place(self, text: str) -> None:
        self._starts.append(self._length)
        self._write(text)

    def _skip(self, at: int, end: int) -> int:
        for _ in range(at, end):
            self._starts.append(self._length)
        return end

    def _write_token(self, at: int, token: Token) -> int:
        text, following = token.text, self._text(at + 1)
        if token.kind == "directive":
            return self._write_pragma(at, text)
        if token.kind == "string":
            self._place(text if text[0] == "'" else f'"{" " * (len(text.encode()) - 2)}"')
        elif text in self._spelled:
            self._place(self._spelled[text])
        elif text in DROPPED_GROUPS and following == "(":
            return self._skip(at, self._group_end(at + 1))
        elif text == "__align__" and following == "(":
            self._place("alignas")
        elif text == "[" and following == "[":
            end = next((i for i in range(at, at + 40) if self._text(i) == "]"), at)
            if self._text(end + 1) == "]":
                return self._skip(at, end + 2)
            self._place(text)
        elif text == "<" and self._opens_template(at):
            self._angle_ends.add(closing_angle(self._tokens, at))
            self._place(text)
        elif text == "<":
            self._less.add(self._length)
            self._place("<=")
        elif text == "(" and self._is_cast(at):
            self._place("(")
            self._inserted.add(self._length)
            self._write("const ")
        elif text == "(" and self._is_operand(at):
            self._place("((")
        elif at in self._doubled:
            self._place("))")
        elif self._begins_template_declaration(at):
            self._inserted.add(self._length)
            self._write("const ")
            self._place(text)
        else:
            self._place(text)
        return at + 1

    def _text(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def _group_end(self, at: int) -> int:
        end = closing_bracket(self._tokens, at)
        return end + 1 if end < len(self._tokens) else at

    def _write_pragma(self, at: int, text: str) -> int:
        """`#pragma unroll N` as an attribute of the loop: as a directive it may tear an `if` apart."""
        words = text.split(None, 2)
        if words[:2] == ["pragma", "unroll"]:
            count = words[2].strip("() ") if len(words) > 2 else ""
            self._place(f"[[unroll({count})]]" if count.isalnum() else "[[unroll]]")
        elif words[:2] == ["pragma", "nounroll"]:
            self._place("[[unroll(1)]]")
        else:
            self._place("")
        return at + 1

    def _is_cast(self, at: int) -> bool:
        """`(T)` alone, where T is known to be a type that the grammar does not know."""
        end = self._cast_end(at)
        if end is None:
            return False
        self._cast_ends.add(end)
        words = [token.text for token in self._tokens[at + 1 : end]]
        is_name = all(word == "::" or word.isidentifier() for word in words)
        return is_name and words[-1] not in PRIMITIVE and words[1:2] in ([], ["::"])

    def _cast_end(self, at: int) -> int | None:
        """Where `(const uint4 *)` ends: words and stars around a type, and no function's name before it."""
        if self._is_behind_operand(at):
            return None
        named = False
        for end in range(at + 1, min(at + 12, len(self._tokens))):
            token = self._tokens[end]
            if token.text == ")":
                return end if named else None
            named = named or (token.kind == "word" and self._is_type(token.text))
            if token.kind != "word" and token.text not in ("::", "*"):
                return None
            plain = token.kind == "word" and not self._is_type(token.text) and token.text not in _IN_TYPES
            if plain and self._text(end + 1) != "::":
                return None
        return None

    def _is_behind_operand(self, at: int) -> bool:
        before = self._tokens[at - 1] if at else None
        if before is None or before.text in _BEFORE_CAST or at - 1 in self._cast_ends:
            return False
        return before.kind in ("word", "number") or before.text in (")", "]") or at - 1 in self._angle_ends

    def _is_operand(self, at: int) -> bool:
        """`(x[i]) && y`, where x is no type: the grammar may take it for the cast of an address. One word
        alone may be a header's type, but nobody casts the address of a label."""
        end = self._group_end(at) - 1
        followed = {"&&"} if end == at + 2 else {"&&", "&", "*", "-", "+"}
        if end > at and self._text(end + 1) in followed and not self._is_behind_operand(at):
            self._doubled |= {end} - self._cast_ends
        return end in self._doubled

    def _is_type(self, name: str) -> bool:
        return self._known.is_type(name, self._language)

    def _opens_template(self, at: int) -> bool:
        name = self._tokens[at - 1] if at else None
        if name is None or name.kind != "word" or self._language == "opencl":
            return False
        if name.text in ("template", "operator") or name.text in _CASTS:
            return True
        end = closing_angle(self._tokens, at)
        if end is None:
            return False
        if name.text in self._known.templates or self._text(at - 2) == "::":
            return True
        after = self._tokens[end + 1] if end + 1 < len(self._tokens) else None
        if after is None or (after.kind != "word" and after.text not in _AFTER_TEMPLATE):
            return False
        inside = self._tokens[at + 1 : end]
        if inside and self._is_type(inside[0].text):
            return True
        # a < b > (c) compares a truth value: nobody means that. f(a < b, c > (d)) somebody may.
        return all(t.kind in ("word", "number") or t.text in ("::", "*") for t in inside)

    def _begins_template_declaration(self, at: int) -> bool:
        """`cg::tile<32> t = ...;` at the start of a statement."""
        if self._language == "opencl" or self._tokens[at].kind != "word":
            return False
        if at and self._text(at - 1) not in (";", "{", "}"):
            return False
        end = at
        while self._text(end + 1) == "::" and end + 2 < len(self._tokens):
            end += 2
        if self._text(at) == "template" or self._text(end + 1) != "<" or not self._opens_template(end + 1):
            return False
        close = closing_angle(self._tokens, end + 1)
        if close is None or close + 2 >= len(self._tokens):
            return False
        return self._tokens[close + 1].kind == "word" and self._text(close + 2) in _AFTER_NAME

    def _late_alignments(self) -> dict[int, str]:
        """Statement start -> N for `__attribute__((aligned(N)))`, wherever in a declaration it stands."""
        found: dict[int, str] = {}
        start = 0
        for at, token in enumerate(self._tokens):
            if token.text in (";", "{", "}"):
                start = at + 1
            elif token.text in ("__attribute__", "__attribute"):
                inner = [t.text for t in self._tokens[at + 1 : at + 8]]
                if inner[:4] in (["(", "(", "aligned", "("], ["(", "(", "__aligned__", "("]):
                    found[start] = inner[4]
        return found


# -- Trees of tree-sitter: made, walked and asked.


def syntax_tree(text: str, language: Language) -> Node:
    # Imported here: loading the grammars would double the start-up time of every command.
    from tree_sitter import Language as Grammar
    from tree_sitter import Parser

    if language == "opencl":
        import tree_sitter_c

        grammar = Grammar(tree_sitter_c.language())
    else:
        import tree_sitter_cuda

        grammar = Grammar(tree_sitter_cuda.language())
    return Parser(grammar).parse(encode_source(text)).root_node


def encode_source(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def text_of(node: Node | None) -> str:
    if node is None or node.text is None:
        return ""
    return " ".join(node.text.decode("utf-8", "replace").split())


def syntax_nodes(node: Node) -> Iterator[Node]:
    """Every node below and with `node`, in the order of the text; no recursion, nesting has no limit."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children))


def is_field(parent: Node, name: str, child: Node) -> bool:
    return parent.child_by_field_name(name) == child


def callee_name(call: Node) -> str | None:
    """The plain name a call goes to, without namespace and template arguments; None for anything else."""
    function = call.child_by_field_name("function")
    while function is not None and function.type in ("qualified_identifier", "template_function"):
        function = function.child_by_field_name("name")
    if function is not None and function.type in ("identifier", "primitive_type"):
        return text_of(function)
    return None


def declared_name(declarator: Node | None) -> Node | None:
    """The identifier inside `*name`, `&name`, `name[3]`, `name(...)`."""
    for _ in range(32):
        if declarator is None or declarator.type == "identifier":
            return declarator
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type == "reference_declarator" and declarator.named_children:
            inner = declarator.named_children[-1]
        declarator = inner
    return None
