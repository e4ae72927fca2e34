"""One reading of a source, judged word by word: calls, attributes, assembler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tunesmith.csource.grammar import Known, known_names
from tunesmith.csource.lex import MAX_WORDS, Token, closing_angle, deep_bracket, first_word, obstacle
from tunesmith.csource.nodes import MAX_DEPTH, Language
from tunesmith.csource.parse import top_level_items
from tunesmith.csource.predefined import PLACES, PLAIN
from tunesmith.csource.types import PRIMITIVE
from tunesmith.problem.device_words import (
    INSTRUCTIONS,
    NAMESPACES,
    PTX_TYPES,
    DeviceWords,
    HandedArrays,
    Refusal,
    UserWords,
    listed,
)
from tunesmith.problem.vetting_items import ASSEMBLER, ATTRIBUTES, TokenRun, judge_item, judge_outside
from tunesmith.problem.vetting_tree import CALLED, judge_tree

_MARKS = listed("+ - * / % & | ^ ~ ! = < > ? : ; , . ( ) [ ] { } :: ++ -- << >> <= >= == != && || -> ->* ...")
_MARKS |= {f"{op}=" for op in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")}
_DIGRAPHS = {("<", ":"), ("<", "%"), ("%", ":"), ("%", ">"), (":", ">")}
# Words before a parenthesis that call nothing.
_NO_CALLS = listed(
    "if for while switch return sizeof alignof alignas decltype noexcept static_assert constexpr case "
    "else do and or not operator requires typeid defined __alignof__ __alignof _Alignof _Alignas "
    "_Static_assert __launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ __align__ "
    "__attribute__ __attribute explicit static_cast reinterpret_cast const_cast in volatile "
    "__volatile__ goto vec_step this"
)
_QUALIFIERS = listed("__global global __local local __constant constant __private private const restrict")
_NO_TYPES = listed("return else do case goto throw new delete sizeof and or not operator typename")
# Of C++ and its library: nothing that a kernel needs.
_NEVER = {
    "new": "memory from the heap", "delete": "memory from the heap", "throw": "an exception",
    "try": "an exception", "catch": "an exception", "typeid": "type information",
    "dynamic_cast": "type information", "thread_local": "a variable that outlives a launch",
    "virtual": "a table of functions", "co_await": "a coroutine", "co_yield": "a coroutine",
    "co_return": "a coroutine",
    "__declspec": "an attribute", "__managed__": "a variable that outlives a launch",
}  # fmt: skip
_STD = listed("move forward get exchange declval addressof lowest infinity quiet_NaN epsilon denorm_min")
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
        return cls(tuple([t.text if said == ">>" else _general(t) for t, said in pairs]), tokens, handed)


def _general(token: Token) -> str:
    is_plain = token.kind == "number" and token.text != "0" and "'" not in token.text
    return "1" if is_plain else token.text


def judge_unit(unit: UnitWords, words: DeviceWords, user: UserWords, language: str) -> None:
    """Raises Refusal."""
    judged = _judged(unit, words, user, language)
    if judged is not None and judged != unit.tokens:
        _judged(unit.exact, words, user, language)


@lru_cache(maxsize=64)
def _judged(unit: UnitWords, words: DeviceWords, user: UserWords, language: str) -> tuple[Token, ...] | None:
    """The very words, where other numbers might be judged otherwise."""
    if len(unit.tokens) > MAX_WORDS:
        raise Refusal("text", 0, f"it has {len(unit.tokens):,} words, at most {MAX_WORDS:,} are read")
    if deep := deep_bracket(unit.tokens, MAX_DEPTH):
        raise Refusal("text", deep.line, f"brackets are nested more than {MAX_DEPTH} deep")
    if trouble := obstacle(unit.tokens):
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
        self.namespaces = NAMESPACES | self.known.namespaces | self._aliases()

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
                skipped = self._attribute(at, token.line)
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
        own = name in self.functions or name in _NO_CALLS or self.is_users(name)
        return own or self.words.calls(name) or self.is_type(name) or name in _QUALIFIERS

    # -- what the unit declares ---------------------------------------------------------------------

    def _defined(self) -> frozenset[str]:
        """Names of functions with a body, members of classes included."""
        found = set()
        for at, token in enumerate(self.all):
            if token.kind != "word" or self.text(at + 1) != "(" or token.text in _NO_CALLS:
                continue
            before = self.text(at - 1)
            if not (self.is_word(at - 1) and before not in _NO_TYPES) and before not in (
                "*",
                "&",
                ">",
                "~",
                ")",
            ):
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
                is_type = (
                    first == at - 1 or self.text(first) in (">", "auto") or self.is_type(self.text(first))
                )
                if is_type or self.text(first) in ("const", "volatile"):
                    yield token.text

    def _aliases(self) -> frozenset[str]:
        spots = (at for at, token in enumerate(self.all) if token.text == "namespace")
        return frozenset(self.text(at + 1) for at in spots if self.text(at + 2) == "=")

    def is_type(self, name: str) -> bool:
        return name in PRIMITIVE or self.known.is_type(name, self.language)

    def is_users(self, name: str) -> bool:
        return name in self.user.words

    # -- words --------------------------------------------------------------------------------------

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
            both = token.text + following.text
            raise Refusal(
                "text", token.line, f"`{both}` is not allowed in a template: write the sign it stands for"
            )
        if token.text == "[" and self.text(at + 1) == "[":
            self._bracketed(at, token)
        if token.text == "(" and self.text(at + 1) in ("*", "&") and not self.is_word(at - 1):
            end = self.closing(at)
            between = self.all[at + 2 : end]
            plain = all(
                part.kind == "word" or part.text in ("[", "]", "*") or part.kind == "number"
                for part in between
            )
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
            raise Refusal(
                "pointer", token.line, "pointers to functions are not allowed: call functions by name"
            )

    def _bracketed(self, at: int, token: Token) -> None:
        inside = [part.text for part in self.all[at + 2 : self.closing(at + 1)] if part.kind == "word"]
        strange = [name for name in inside if name not in self.words.bracketed]
        if strange and self.text(at + 2) not in ("&", "=", "]"):  # a lambda's captures
            raise Refusal(
                "attribute", token.line, f"[[{'::'.join(inside)}]] is not allowed in a template; leave it out"
            )

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
            self._assembler(at, line)
        elif self.words.clocks.fullmatch(name) and not self.is_users(name) and not self._is_own(at, name):
            words = f"{name} tells time or place, by which a check can be told from a timing; leave it out"
            raise Refusal("clock", line, words)
        elif name in _NEVER and not self.is_c and not self.is_users(name):
            raise Refusal(
                "name", line, f"{name} is {_NEVER[name]}, which device code has no need of; leave it out"
            )
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
        is_own = (
            name in self.functions or name in self.declared or self.is_users(name) or self.words.calls(name)
        )
        if outer:
            trusted = outer in (self.namespaces - {"std"}) or self.is_type(outer) or self.is_users(outer)
            in_std = "std" in {self.text(place) for place in range(first, at)}
            if (trusted and not in_std) or is_own or name in _STD or self.is_type(name):
                return
        elif is_own or self.is_type(name):
            return
        words = f"{name}() is host code or unknown; a template holds device code alone: call what it defines"
        raise Refusal("call", line, f"{words}, and CUDA's own device functions")

    def _attribute(self, at: int, line: int) -> int:
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
                    raise Refusal(
                        "attribute", line, f"__attribute__(({text})) is not allowed; those that are: {listed}"
                    )
            depth += {"(": 1, ")": -1}.get(text, 0)
        return end

    # -- assembler ----------------------------------------------------------------------------------

    def _assembler(self, at: int, line: int) -> None:
        if self.is_c:
            raise Refusal(
                "assembler", line, f"{self.text(at)} is not allowed in OpenCL C: a template has no assembler"
            )
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
            raise Refusal(
                "assembler", line, f"asm has `{self.text(end)[:40]}` among its instructions: text alone"
            )
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
                    raise Refusal(
                        "assembler",
                        line,
                        f"asm with the directive {word[0]} is not allowed: instructions alone",
                    )
            elif word[0] not in INSTRUCTIONS:
                raise Refusal(
                    "assembler", line, f"the instruction {word[0]} is not among those that asm may have"
                )
