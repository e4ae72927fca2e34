"""What a constant is used for: a choice of how the work is done, or part of what is computed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import Token
from tunesmith.expert.knobs.find import ConstantTable, KnobConstant
from tunesmith.expert.knobs.text import INTEGERS, SHARED, KnobText, word_set
from tunesmith.expert.knobs.written import fixed_numbers
from tunesmith.problem.problem import Problem
from tunesmith.space.expr import Expr
from tunesmith.space.grammar import Node

PLACES = ("threadIdx", "blockIdx", "blockDim", "gridDim", "globalIdx", "globalDim")
_LAUNCH = frozenset(
    {"__launch_bounds__", "reqd_work_group_size", "work_group_size_hint", "amdgpu_flat_work_group_size"}
)
_BITS = frozenset({"&", "|", "^", "~", "&=", "|=", "^=", "<<", ">>"})
_LANES = re.compile(r"__shfl\w*|__ballot\w*|__reduce\w*|__match\w*|__activemask|sub_group\w*")
# Words of names that say what is computed, not how.
_COMPUTED = word_set(
    "kernel stride dilation radius taps order degree iters iterations channels classes heads head bins "
    "buckets neighbours neighbors epsilon eps version magic mask seed prime vocab experts inf dims ndim nan "
    "halo filter levels bits log2 lg channel cn scn dcn lcn radiusx radiusy conv"
)
_OF_A_WARP = word_set("warp warpsize lane lanes wave wavefront simd")
_TUNING = word_set(
    "use unroll vector vectorize vec prefetch double buffer pad padding stage stages cache cached ldg "
    "shuffle async fast swizzle pipeline persistent pack packed coalesce shared smem reuse preload split"
)
_FAR = 300  # words that a statement is looked at
_MOST_USES = 1500  # of constants in one function
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True)
class KnobUses:
    """Of a constant, with what is derived from it."""

    kinds: frozenset[str]  # array shared loop geometry template launch unroll switch index
    against: str = ""  # a use that says it is part of what is computed, in words


def words_of(name: str) -> frozenset[str]:
    return frozenset(word.lower() for part in name.split("_") for word in _WORDS.findall(part))


def why_not(constant: KnobConstant, uses: KnobUses, problem: Problem) -> str:
    """Why a constant is no choice; empty where it is one."""
    if isinstance(constant.place, str):
        return constant.place
    assert constant.value is not None, "a literal has a value"
    if constant.value > 1 << 20:
        return f"its value is {constant.value}"
    if constant.is_switch:
        tuning = words_of(constant.name) & _TUNING
        return "" if tuning else "it switches something that may be part of what is computed"
    if uses.against:
        return uses.against
    if constant.value == 0:
        return "it is 0, and what it would switch on is not known"
    if constant.value > 1 and constant.value % 2:
        return f"an odd number, {constant.value}, is seldom one that was chosen"
    telling = words_of(constant.name) & _COMPUTED
    if telling:
        return f"by its name ({min(telling)}) it is part of what is computed"
    if constant.value in (32, 64) and words_of(constant.name) & _OF_A_WARP:
        return "it is the width of a warp"
    if not uses.kinds & {"array", "shared", "loop", "geometry", "template", "launch", "unroll"}:
        return "it is neither the extent of an array or a loop, nor in the launch or a thread's place"
    fixed = fixed_numbers(problem)
    if constant.value in fixed and constant.value > 1 and not uses.kinds & {"launch", "geometry"}:
        return f"it is {fixed[constant.value]} of the problem"
    return ""


def find_uses(constants: ConstantTable, text: KnobText, reached: Sequence[int]) -> Mapping[str, KnobUses]:
    """By key. What is derived from a constant counts for it."""
    kinds: dict[str, set[str]] = {key: set() for key in constants.every}
    against: dict[str, str] = {}
    names = {one.name for one in constants.every.values()}
    for place in reached:
        item = text.items[place]
        if not any(token.text in names for token in item.tokens):
            continue
        resolve, around = constants.resolve(place), _Around(item.tokens)
        named = [at for at, token in enumerate(item.tokens) if token.text in names]
        for at in named[:_MOST_USES]:
            token = item.tokens[at]
            node = resolve(token.text)
            if node is None or around.defines(at):
                continue
            (key,) = (name for name in _keys(node))
            kind, objection = around.use(at)
            kinds[key] |= kind
            if objection and key not in against:
                against[key] = f"{objection} (line {token.line})"
    for pragma in text.pragmas:
        if "unroll" in pragma.rest:
            for word in re.findall(r"\w+", pragma.rest):
                for key, one in constants.every.items():
                    if one.name == word:
                        kinds[key].add("unroll")
    basis = _basis(constants)
    return {key: _of(key, basis, kinds, against.get(key, "")) for key in constants.every}


def _keys(node: Node) -> Iterable[str]:
    return Expr("", node).names


def _of(key: str, basis: Mapping[str, set[str]], kinds: Mapping[str, set[str]], against: str) -> KnobUses:
    # What is derived counts as a use; only the constant's own uses speak against it.
    every = [key, *(other for other, names in basis.items() if key in names)]
    return KnobUses(frozenset(kind for name in every for kind in kinds[name]), against)


def _basis(constants: ConstantTable) -> dict[str, set[str]]:
    """What each constant is derived from; those that it names come before it."""
    found: dict[str, set[str]] = {}
    for key, one in constants.every.items():
        names = Expr("", one.node).names
        found[key] = set(names).union(*(found.get(name, set()) for name in names))
    return found


class _Around:
    """The words around a place: its statement, the brackets it stands in."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._open: list[tuple[int, ...]] = []  # brackets that are open at each word
        stack: list[int] = []
        for at, token in enumerate(tokens):
            self._open.append(tuple(stack[-8:]))
            if token.text in ("(", "[", "{"):
                stack.append(at)
            elif token.text in (")", "]", "}") and stack:
                stack.pop()

    def _text(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def defines(self, at: int) -> bool:
        return self._text(at - 1) in INTEGERS and self._text(at + 1) in ("=", "{", ",", ">", ";")

    def use(self, at: int) -> tuple[set[str], str]:
        kinds: set[str] = set()
        statement = self._statement(at)
        words = {token.text for token in statement}
        if words & {"static_assert", "_Static_assert"}:  # what is asserted becomes a condition
            return set(), ""
        if any(word.partition(".")[0] in PLACES and "." in word for word in words):
            kinds.add("geometry")
        objection = ""
        for opened in self._open[at]:
            mark, before = self._text(opened), self._text(opened - 1)
            if mark == "[":
                kinds |= self._brackets(opened, statement, words)
            elif mark == "(":
                if before in ("for", "while"):
                    kinds.add("loop")
                elif before in _LAUNCH:
                    kinds.add("launch")
                elif before in ("if", "constexpr"):
                    kinds.add("switch")
                elif opened == self._open[at][-1] and _LANES.fullmatch(before):
                    objection = f"it is an argument of {before}"
        if self._in_angles(at):
            kinds.add("template")
        return kinds, objection or self._objection(at)

    def _brackets(self, opened: int, statement: Sequence[Token], words: set[str]) -> set[str]:
        """`float tile[TILE]` declares; `tile[TILE]` does not."""
        first = opened - 1
        while self._text(first) == "]":
            depth = 0
            while first >= 0:
                depth += (self._text(first) == "]") - (self._text(first) == "[")
                first -= 1
                if depth == 0:
                    break
        declares = self._tokens[first].kind == "word" and (
            self._tokens[first - 1].kind == "word" or self._text(first - 1) in (">", "*", ",")
        )
        declares = declares and self._text(first - 1) not in ("return", "else", "case")
        if self._text(first - 1) == ",":
            declares = len(statement) > 1 and statement[0].kind == statement[1].kind == "word"
        if not declares:
            return {"index"}
        return {"array", "shared"} if words & SHARED else {"array"}

    def _in_angles(self, at: int) -> bool:
        """Among template arguments: `Scan<BLOCK, 4>`."""
        before, after = at - 1, at + 1
        while at - before < _FAR and (self._text(before) == "," or self._is_plain(before)):
            before -= 1
        while after - at < _FAR and (self._text(after) == "," or self._is_plain(after)):
            after += 1
        return self._text(before) == "<" and self._text(after) in (">", ">>") and before > 0

    def _is_plain(self, at: int) -> bool:
        return 0 <= at < len(self._tokens) and self._tokens[at].kind in ("word", "number")

    def _objection(self, at: int) -> str:
        before, after = self._text(at - 1), self._text(at + 1)
        if before == "case":
            return "it is a case of a switch"
        if before in _BITS or (after in _BITS and after not in ("<<", ">>")):
            return "it takes part in arithmetic of bits"
        for number in (self._text(at - 2) if before in ("+", "-", "*", "/") else "",
                       self._text(at + 2) if after in ("+", "-", "*", "/") else ""):  # fmt: skip
            if re.match(r"\d*\.\d|\d+\.", number):
                return "it is computed with as a float"
        if before == ")" and self._text(at - 2) in ("float", "double", "half") and self._text(at - 3) == "(":
            return "it is computed with as a float"
        return ""

    def _statement(self, at: int) -> Sequence[Token]:
        """From the last `;` or brace to the next; the head of a loop belongs to it as a whole."""
        start = end = at
        while start > max(at - _FAR, 0) and self._text(start - 1) not in (";", "{", "}"):
            start -= 1
        while end < min(at + _FAR, len(self._tokens)) and self._text(end) not in (";", "{", "}"):
            end += 1
        for opened in self._open[at]:
            if self._text(opened) == "(" and self._text(opened - 1) == "for":
                start = min(start, opened)
                depth, end = 0, opened
                while end < min(opened + _FAR, len(self._tokens)):
                    depth += (self._text(end) == "(") - (self._text(end) == ")")
                    end += 1
                    if depth == 0:
                        break
        return self._tokens[start:end]
