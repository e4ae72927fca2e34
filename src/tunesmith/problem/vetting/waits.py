"""Kernels that may start before the launch ahead of them has ended: each waits before it touches an array.

On independent arrays, as they are timed, one that never waits gives right results sooner; behind a kernel
that makes its input it reads what is not there yet. A wait counts where it stands by itself in the outermost
block of a kernel, or of a function that is called so. Before it there are shared memory, indices and
addresses at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tunesmith.problem.vetting.device_words import Refusal, split_word_set
from tunesmith.problem.vetting.words import ASSEMBLER, TokenRun
from tunesmith.source.lex import Token, closing_angle
from tunesmith.source.text import without_comments
from tunesmith.source.types import PRIMITIVE, is_builtin_type

WAIT = "cudaGridDependencySynchronize"
FIRST = f"begin its body with {WAIT}();"
_WAITS = re.compile(rf"\b{WAIT}\s*\(|griddepcontrol\s*\.\s*wait\b")
_WAITS_ALONE = re.compile(
    r"\s*(?:griddepcontrol\.\w+\s*;\s*)*griddepcontrol\.wait\s*;\s*(?:griddepcontrol\.\w+\s*;\s*)*"
)
_LEAVES = re.compile(r"\b(?:exit|ret|bra|trap)\b")
_ASSIGNS = split_word_set("= += -= *= /= %= &= |= ^= <<= >>=")
_CASTS = split_word_set("reinterpret_cast static_cast const_cast if for while switch sizeof alignof decltype")
_BEFORE_UNARY = (
    split_word_set("( , = ; { } [ + - * / % & | ^ ! ~ < > ? : && || == != <= >= << >> return") | _ASSIGNS
)
_QUALIFIERS = split_word_set(
    "const volatile __restrict__ __restrict restrict __grid_constant__ unsigned signed"
)


def waits_somewhere(*texts: str) -> bool:
    """Whether any of these sources has a wait at all."""
    return any(_WAITS.search(without_comments(text)) for text in texts)


def judge_waits(tokens: Sequence[Token], entries: Sequence[str]) -> None:
    """Raises Refusal. `entries` are launched with `pdl = true`."""
    judge = _WaitJudge([token for token in tokens if token.kind != "directive"])
    for entry in entries:
        judge.entry(re.sub(r"<.*", "", entry).split("::")[-1].strip())


class _WaitJudge(TokenRun):
    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__(tokens)
        self.bodies: dict[str, list[tuple[int, int]]] = {}  # of functions: where the name is, where the body
        for at in range(len(tokens)):
            if self.is_word(at) and self.text(at + 1) == "(":
                end = self.closing(at + 1) + 1
                while self.text(end) in ("const", "noexcept"):
                    end += 1
                if self.text(end) == "{" and self.text(at) not in ("if", "for", "while", "switch"):
                    self.bodies.setdefault(self.text(at), []).append((at, end))
        self.waiters: set[str] = set()
        more = True
        while more:
            found = {name for name, known in self.bodies.items() if all(self._is_waiter(b) for _, b in known)}
            more = found > self.waiters
            self.waiters |= found

    def _is_waiter(self, body: int) -> bool:
        return self._wait(body) is not None and not self._leaves(body)

    def entry(self, name: str) -> None:
        places = self.bodies.get(name, [])
        known = [(at, body) for at, body in places if "__global__" in map(str, self._head(at))]
        if not known:
            words = f"{name} is launched with pdl = true and not defined in the template; define it there"
            raise Refusal("wait", 0, words)
        for at, body in known:
            wait = self._wait(body)
            if wait is None:
                words = f"{name} is launched with pdl = true and does not wait for the launch ahead of it"
                raise Refusal(
                    "wait", self.all[at].line, f"{words}, always and outside of any branch; {FIRST}"
                )
            fault = self._leaves(body) or self._touched(body, wait, set(self._arrays(at)))
            if fault is not None:
                token, what = fault
                words = f"{name} is launched with pdl = true and {what} before it waits for the launch ahead"
                raise Refusal("wait", token.line, f"{words}; {FIRST}")

    def _head(self, at: int) -> Sequence[Token]:
        first = at
        while first > 0 and self.text(first - 1) not in (";", "}"):
            first -= 1
        return self.all[first:at]

    def _wait(self, body: int) -> int | None:
        """Where a body waits, whatever happens before."""
        depth, round_ = 0, 0
        seen: set[str] = set()
        for at in range(body, self.closing(body)):
            text = self.text(at)
            depth += {"{": 1, "}": -1}.get(text, 0)
            round_ += {"(": 1, ")": -1}.get(text, 0)
            stands = depth == 1 and not round_ and self.text(at - 1) in (";", "{", "}")
            if stands and self._waits(at + (text == "::")) and text not in seen:
                return at
            if self.is_word(at) and text not in ASSEMBLER:
                seen.add(text)  # what is declared here may only be called like a function that waits
        return None

    def _waits(self, at: int) -> bool:
        name = self.text(at)
        if name in ASSEMBLER:
            start = at + 1
            while self.text(start) in ("volatile", "__volatile__"):
                start += 1
            return self.text(start) == "(" and _WAITS_ALONE.fullmatch(self._written(start)) is not None
        if name not in self.waiters and (name != WAIT or name in self.bodies):
            return False
        return self.text(at + 1) == "(" and self.text(self.closing(at + 1) + 1) == ";"

    def _written(self, start: int) -> str:
        """The instructions of an asm statement."""
        end = start + 1
        while end < len(self.all) and self.all[end].kind == "string":
            end += 1
        text = "".join(token.text[1:-1] for token in self.all[start + 1 : end])
        return re.sub(r"\\[nrt]", " ", text)

    def _leaves(self, body: int) -> tuple[Token, str] | None:
        wait = self._wait(body)
        for token in self.all[body : body if wait is None else wait]:
            is_asm = token.kind == "string" and _LEAVES.search(token.text)
            if token.text in ("return", "goto") or is_asm:
                return token, "may end"
        return None

    def _arrays(self, at: int) -> Iterator[str]:
        """Parameters by which memory of others is reached."""
        end, first, depth = self.closing(at + 1), at + 2, 0
        for place in range(at + 2, end + 1):
            text = self.text(place)
            depth += {"(": 1, "[": 1, "<": 1, "]": -1, ">": -1}.get(text, 0) - (text == ")" and place < end)
            if (text == "," and not depth) or place == end:
                words = [t.text for t in self.all[first:place] if t.kind == "word"]
                marks = {t.text for t in self.all[first:place]} & {"*", "&", "[", "&&"}
                kinds = set(words[:-1]) - _QUALIFIERS
                plain = all(kind in PRIMITIVE or is_builtin_type(kind, "cuda") for kind in kinds)
                if words and (marks or not plain):
                    yield words[-1]
                first = place + 1

    def _touched(self, body: int, wait: int, arrays: set[str]) -> tuple[Token, str] | None:
        self._spread(body, wait, arrays)
        waited = self.closing(wait + 1) + 1 if self.text(wait + 1) == "(" else wait
        for at in range(body + 1, waited):
            token, text = self.all[at], self.text(at)
            if text == "[":
                root = at
                while self.text(root - 1) == "]":
                    root = self._opening(root - 1)
                is_other = self.is_word(root - 1) and self.text(root - 1) not in arrays
                if not is_other or self._holds_any(at, arrays):
                    return token, "reads or writes an array"
            elif text == "->" or (text == "*" and self._is_unary(at)):
                if _has_any_word(self._statement(at), arrays):
                    return token, "reads or writes an array"
            elif text == "(" and (name := self._called(at)):
                if name not in _CASTS and self._holds_any(at, arrays):
                    return token, f"hands an array to {name}"
            elif text == "{" and self._is_initialiser(at) and self._holds_any(at, arrays):
                return token, "puts an array into an object"
        return None

    def _holds_any(self, at: int, arrays: set[str]) -> bool:
        """Whether one of them stands within the bracket."""
        return _has_any_word(self.all[at : self.closing(at)], arrays)

    def _spread(self, body: int, wait: int, arrays: set[str]) -> None:
        """Names that come to mean the same arrays."""
        before = -1
        while before != len(arrays):
            before = len(arrays)
            for at in range(body + 1, wait):
                if self.text(at) in _ASSIGNS and _has_any_word(self._statement(at), arrays):
                    left = at - 1
                    while self.text(left) == "]":
                        left = self._opening(left) - 1
                    while self.is_word(left):
                        arrays.add(self.text(left))
                        left -= 2 if self.text(left - 1) in (".", "->") else len(self.all)

    def _statement(self, at: int) -> Sequence[Token]:
        first = last = at
        while self.text(first - 1) not in (";", "{", "}", ""):
            first -= 1
        while self.text(last) not in (";", "{", "}", ""):
            last += 1
        return self.all[first:last]

    def _opening(self, at: int) -> int:
        depth = 0
        for place in range(at, -1, -1):
            depth += {"]": 1, "[": -1}.get(self.text(place), 0)
            if not depth:
                return place
        return 0

    def _called(self, at: int) -> str:
        """What stands before a parenthesis and is called; empty: nothing is."""
        before = at - 1
        if self.text(before) in (">", ">>"):
            places = (place for place in range(before, max(before - 120, 0), -1) if self.text(place) == "<")
            opens = (place for place in places if closing_angle(self.all, place) == at - 1)
            before = next(opens, before + 1) - 1
        return self.text(before) if self.is_word(before) else ""

    def _is_unary(self, at: int) -> bool:
        before = self.text(at - 1)
        if before == ")":
            depth = 0
            for place in range(at - 1, -1, -1):
                depth += {")": 1, "(": -1}.get(self.text(place), 0)
                if not depth:
                    inside = [t for t in self.all[place + 1 : at - 1] if t.text not in _QUALIFIERS]
                    one = inside[-1].text if inside else ""
                    is_type = one == "*" or one in PRIMITIVE or is_builtin_type(one, "cuda")
                    is_cast = is_type or (len(inside) == 1 and inside[0].kind == "word" and one[:1].isupper())
                    return is_cast and self.text(place - 1) != "sizeof"
        if before == ",":
            first = self._statement(at)[0].text
            return not (first in _QUALIFIERS or first in PRIMITIVE or is_builtin_type(first, "cuda"))
        if before == ">":  # `vector<T> *p` and `a > *p`
            return self.text(at + 2) not in ("=", ";", ",", ")")
        return before in _BEFORE_UNARY

    def _is_initialiser(self, at: int) -> bool:
        return self.text(at - 1) in ("=", ">", "(", ",") or (
            self.is_word(at - 1) and self.text(at - 1) not in ("else", "do", "const")
        )


def _has_any_word(tokens: Sequence[Token], names: set[str]) -> bool:
    """Members have names of their own: threadIdx.x."""
    before = ("", *(token.text for token in tokens[:-1])) if tokens else ()
    pairs = zip(tokens, before, strict=True)
    return any(t.kind == "word" and t.text in names and said not in (".", "->") for t, said in pairs)
