"""Macros: what a #define says, and words with all of them expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.source.fold import COMPARISONS, LEVELS, evaluate_binary, evaluate_unary
from tunesmith.source.lex import Token, lex
from tunesmith.source.tree import Unreadable, read_number

MAX_TOKENS = 150_000  # of all expansions together: a few lines of nested macros can ask for billions
MAX_NESTING = 60


@dataclass(frozen=True)
class Macro:
    """`parameters` None: an object-like macro."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    variadic: bool = False


def read_macro(rest: str, line: int = 1) -> Macro | str:
    """What stands behind `#define`, or what is wrong with it."""
    tokens = lex(rest, line)
    if not tokens or tokens[0].kind != "word":
        return "a #define without a name"
    name, parameters, variadic, start = tokens[0].text, None, False, 1
    if len(tokens) > 1 and tokens[1].text == "(" and not tokens[1].space:
        end = next((at for at, token in enumerate(tokens) if token.text == ")"), None)
        if end is None:
            return f"the parameters of the macro {name} have no end"
        listed = [token.text for token in tokens[2:end] if token.text != ","]
        variadic = listed[-1:] == ["..."]
        parameters = tuple(listed[:-1] if variadic else listed)
        start = end + 1
    return Macro(name, parameters, tuple(tokens[start:]), variadic)


def expand_macro_uses(tokens: Sequence[Token], macros: Mapping[str, Macro]) -> list[Token]:
    """Raises Unreadable where a macro's call is not one."""
    return Expansion(macros, MAX_TOKENS).expand(list(tokens), frozenset(), 0)


class Expansion:
    def __init__(self, macros: Mapping[str, Macro], budget: int) -> None:
        self._macros = macros
        self._budget = budget

    def expand(self, tokens: list[Token], hidden: frozenset[str], depth: int) -> list[Token]:
        done: list[Token] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            macro = self._macros.get(token.text) if token.kind == "word" else None
            if macro is None or macro.name in hidden:
                done.append(token)
                continue
            if depth > MAX_NESTING:
                raise Unreadable(f"the macro {macro.name} is nested too deep", token.line)
            arguments: list[list[Token]] = []
            if macro.parameters is not None:
                if at >= len(tokens) or tokens[at].text != "(":
                    done.append(token)
                    continue
                arguments, at = _read_macro_arguments(tokens, at, macro)
            body = self._body(macro, arguments, token, hidden, depth)
            self._budget -= len(body) + 1
            if self._budget < 0:
                raise Unreadable("the macros of the file expand to more text than any kernel has", token.line)
            inner = self.expand(body, hidden | {macro.name}, depth + 1)
            if (
                inner
                and at < len(tokens)
                and tokens[at].text == "("
                and self._is_function_macro_name(inner[-1], macro, hidden)
            ):
                tokens, at = [inner.pop(), *tokens[at:]], 0  # what follows are its arguments
            done.extend(inner)
        return done

    def _is_function_macro_name(self, token: Token, macro: Macro, hidden: frozenset[str]) -> bool:
        """Whether a macro's text ends with the name of another that takes arguments."""
        last = self._macros.get(token.text) if token.kind == "word" else None
        return last is not None and last.parameters is not None and last.name not in hidden | {macro.name}

    def _body(
        self, macro: Macro, arguments: list[list[Token]], use: Token, hidden: frozenset[str], depth: int
    ) -> list[Token]:
        names = macro.parameters or ()
        given = dict(zip(names, arguments, strict=False))
        if macro.variadic:
            others = ([Token("mark", ",", use.line), *argument] for argument in arguments[len(names) :])
            given["__VA_ARGS__"] = [token for other in others for token in other][1:]
        done: list[Token] = []
        start = 0  # of what the operand before gave, which may be nothing
        body = macro.body
        for at, token in enumerate(body):
            before = body[at - 1].text if at else ""
            joins = before == "##"
            pasted = joins or (at + 1 < len(body) and body[at + 1].text == "##")
            if token.text == "##" or (token.text == "#" and macro.parameters is not None):
                continue
            if before == "#" and macro.parameters is not None and token.text in given:
                text = "".join(part.space + part.text for part in given[token.text]).strip()
                escaped = text.replace("\\", "\\\\").replace('"', '\\"')
                new = [Token("string", f'"{escaped}"', use.line, " ")]
            elif token.text in given and token.kind == "word":
                argument = given[token.text]
                new = argument if pasted else self.expand(argument, hidden, depth + 1)
                self._budget -= len(new)
            else:
                new = [token]
            if joins and len(done) > start and new:
                joined = lex(done[-1].text + new[0].text, use.line)
                if len(joined) != 1 or joined[0].kind == "directive":
                    raise Unreadable(f"## in the macro {macro.name} does not make one word", use.line)
                done[-1:] = joined
                new = new[1:]
            start = start if joins else len(done)
            for number, part in enumerate(new):
                spaced = part.space if number else token.space
                done.append(replace(part, line=use.line, space=" " if spaced else "", comments=()))
        if done:
            done[0] = replace(done[0], space=use.space, comments=use.comments)
        return done


def _read_macro_arguments(tokens: list[Token], at: int, macro: Macro) -> tuple[list[list[Token]], int]:
    """The arguments of the call whose "(" is at `at`, and where what follows it begins."""
    line = tokens[at].line
    found: list[list[Token]] = [[]]
    depth = 0
    for end in range(at, len(tokens)):
        token = tokens[end]
        # Only parentheses protect a comma from the preprocessor.
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            if found == [[]] and not macro.parameters:
                found = []
            wanted = len(macro.parameters or ())
            if len(found) < wanted or (len(found) > wanted and not macro.variadic):
                raise Unreadable(
                    f"the macro {macro.name} takes {wanted} arguments and got {len(found)}", line
                )
            return found, end + 1
        if token.text == "," and depth == 1:
            found.append([])
        elif end > at:
            found[-1].append(token)
    raise Unreadable(f"the call of the macro {macro.name} has no end", line)


# -- The arithmetic of `#if`: what a condition is worth, in the 64 bits of intmax_t and uintmax_t.


_MAX_DEPTH = 100
_BITS = 64


@dataclass(frozen=True)
class _Intmax:
    value: int
    unsigned: bool = False

    @classmethod
    def wrapped(cls, value: int, unsigned: bool) -> _Intmax:
        """As compilers do where a number has no room."""
        value &= (1 << _BITS) - 1
        return cls(value if unsigned or value >> (_BITS - 1) == 0 else value - (1 << _BITS), unsigned)


class ConditionReader:
    """The value of a condition, its macros expanded; names that are left count as 0."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def value(self) -> int:
        found = self._ternary(0, True)
        if self._at < len(self._tokens):
            raise Unreadable(f"`{self._peek_text()}` was not expected there")
        return found.value

    def _peek_text(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise Unreadable("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _ternary(self, depth: int, counts: bool) -> _Intmax:
        """`counts`: what is not evaluated may divide by zero."""
        if depth > _MAX_DEPTH:
            raise Unreadable("it is nested too deep")
        test = self._binary(1, depth, counts)
        if self._peek_text() != "?":
            return test
        self._next()
        yes = self._ternary(depth + 1, counts and test.value != 0)
        if self._next().text != ":":
            raise Unreadable("a `?` has no `:`")
        no = self._ternary(depth + 1, counts and test.value == 0)
        return _Intmax.wrapped((yes if test.value else no).value, yes.unsigned or no.unsigned)

    def _binary(self, least: int, depth: int, counts: bool) -> _Intmax:
        left = self._unary(depth + 1, counts)
        while LEVELS.get(self._peek_text(), 0) >= least:
            op = self._next().text
            is_settled = (op == "&&" and not left.value) or (op == "||" and left.value != 0)
            right = self._binary(LEVELS[op] + 1, depth + 1, counts and not is_settled)
            left = _apply_operator(op, left, right, counts)
        return left

    def _unary(self, depth: int, counts: bool) -> _Intmax:
        if depth > _MAX_DEPTH:
            raise Unreadable("it is nested too deep")
        token = self._next()
        if token.text in ("!", "-", "+", "~"):
            inner = self._unary(depth + 1, counts)
            return _Intmax.wrapped(
                evaluate_unary(token.text, inner.value), inner.unsigned and token.text != "!"
            )
        if token.text == "(":
            value = self._ternary(depth + 1, counts)
            if self._next().text != ")":
                raise Unreadable("a `(` has no `)`")
            return value
        if token.kind == "number":
            return _read_intmax_literal(token.text)
        if token.kind == "word":
            if self._peek_text() == "(":  # __has_include(<x>) and its like: a call of what is no macro
                raise Unreadable(f"{token.text}(...) has no meaning here")
            return _Intmax(int(token.text == "true"))
        raise Unreadable(f"`{token.text}` is no integer")


def _read_intmax_literal(text: str) -> _Intmax:
    number = read_number(text)
    if not isinstance(number, int):
        raise Unreadable(f"`{text}` is no integer")
    is_decimal = text[:1] != "0"
    unsigned = "u" in text.lower() or (number >> (_BITS - 1) != 0 and not is_decimal)
    if number >> (_BITS if unsigned else _BITS - 1):
        raise Unreadable(f"`{text}` has no room in {_BITS} bits")
    return _Intmax(number, unsigned)


def _apply_operator(op: str, left: _Intmax, right: _Intmax, counts: bool) -> _Intmax:
    shifts = op in ("<<", ">>")
    unsigned = left.unsigned or (right.unsigned and not shifts)
    a = _Intmax.wrapped(left.value, unsigned).value
    b = right.value if shifts else _Intmax.wrapped(right.value, unsigned).value
    value = evaluate_binary(op, a, b)
    has_no_room = op == "/" and value == 1 << (_BITS - 1) and not unsigned  # the least number by -1
    if counts and (value is None or has_no_room):
        raise Unreadable(
            f"it shifts by {b}" if shifts else f"it divides {a} by {b}" if b else "it divides by zero"
        )
    return _Intmax.wrapped(value or 0, unsigned and op not in COMPARISONS)
