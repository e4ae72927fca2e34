"""Constants of a source: where each is defined, what it is made of, and whether its text can change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.lex import Token, closing_angle, lex, split_at
from tunesmith.expert.knobs.constant import (
    Resolve,
    evaluated,
    read_constant,
    size_of,
    used_names,
    with_names,
)
from tunesmith.expert.knobs.text import (
    AXES,
    INTEGERS,
    QUALIFIERS,
    KnobText,
    MacroLine,
    SourceItem,
    spelled,
    word_set,
)
from tunesmith.expert.knobs.written import WrittenNumber
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.space.grammar import Node, Num, Variable

BLOCK_NAMES = tuple(f"blockDim.{axis}" for axis in AXES)
_MOST_NODES, _MOST_CONSTANTS = 300, 400
_FLAG = re.compile(r"-D\s*(\w+)(?:=(\S+))?")
_TYPES = INTEGERS | word_set("float double half void typename class T __half float2 float4 int2 int4 uint2")


@dataclass(frozen=True)
class TextPlace:
    """Characters of the kernel's own file."""

    start: int
    end: int


@dataclass(frozen=True)
class EntryPlace:
    """A template argument of some launches' entries."""

    launches: tuple[int, ...]
    argument: int


@dataclass(frozen=True)
class MacroPlace:
    """A macro that is given before the text begins."""

    name: str
    is_given: bool  # the problem defines it, so that this comes second


@dataclass(frozen=True)
class NumberPlace:
    """A number without a name, wherever it stands."""

    places: tuple[TextPlace, ...]


Place = TextPlace | EntryPlace | MacroPlace | NumberPlace


@dataclass(frozen=True)
class KnobConstant:
    """A name with a number. `node` is over the keys of others; of a literal it is that number."""

    key: str
    name: str
    node: Node
    value: int | None  # None: it depends on the block of a launch
    item: int | None  # the item that alone sees it; None: everything does
    line: int
    place: Place | str  # or why it stays as it is
    is_switch: bool = False  # a bool, or 0 or 1 in an #if

    @property
    def is_literal(self) -> bool:
        return isinstance(self.node, Num)


@dataclass(frozen=True)
class ConstantTable:
    every: Mapping[str, KnobConstant]  # by key
    visible: Mapping[tuple[str, int | None], str]  # name and item -> key

    def resolve(self, item: int | None) -> Resolve:
        """Of what the words of an item stand for."""

        def found(word: str) -> Node | None:
            if word in BLOCK_NAMES:
                return Variable(word)
            key = self.visible.get((word, item), self.visible.get((word, None)))
            return Variable(key) if key is not None and key in self.every else None

        return found

    def meaning(self, node: Node) -> Node:
        """The same over literals alone, and the extents of blocks."""
        while derived := [
            name for name in used_names(node) if name in self.every and not self.every[name].is_literal
        ]:
            node = with_names(node, {name: self.every[name].node for name in derived})
            if size_of(node) > _MOST_NODES:  # constants of constants of constants
                return with_names(node, {name: Num(value) for name, value in self.values().items()})
        return node

    def values(self) -> dict[str, int]:
        return {key: c.value for key, c in self.every.items() if c.value is not None}


@dataclass(frozen=True)
class _Raw:
    name: str
    tokens: tuple[Token, ...]
    item: int | None
    line: int
    place: Place | str
    is_switch: bool = False


def find_constants(
    problem: Problem, text: KnobText, reached: Sequence[int], numbers: Sequence[WrittenNumber] = ()
) -> ConstantTable:
    raws = [*_given(problem), *_macros(problem, text, reached), *map(_number, numbers)]
    for place in reached:
        item = text.items[place]
        if not item.macro:
            raws += _declared(text, item, place)
            raws += _template_parameters(problem, text, item, place)
    return _resolved(_unshadowed(raws[:_MOST_CONSTANTS], text, reached))


def _number(one: WrittenNumber) -> _Raw:
    places = tuple(TextPlace(token.offset, token.offset + len(token.text)) for token in one.places)
    return _Raw(one.name, tuple(lex(str(one.value))), None, one.places[0].line, NumberPlace(places))


def _given(problem: Problem) -> Iterator[_Raw]:
    """Macros that the problem's defines or flags set."""
    flags = [m for flag in problem.kernel.flags if (m := _FLAG.fullmatch(flag))]
    for name, value in (*problem.kernel.defines, *((m[1], m[2] or "1") for m in flags)):
        yield _Raw(name, tuple(lex(value)), None, 0, MacroPlace(name, is_given=True))


def _macros(problem: Problem, text: KnobText, reached: Sequence[int]) -> Iterator[_Raw]:
    used = {text.items[place].macro for place in reached}
    given = {raw.name for raw in _given(problem)}
    for macro in text.macros:
        if macro.name not in used or (macro.guarded and macro.name in given):
            continue
        tokens = tuple(spelled(lex(macro.body)))
        switch = macro.body in ("0", "1") and macro.name in text.asked
        yield _Raw(macro.name, tokens, None, macro.directive.line, _macro_place(problem, macro), switch)


def _macro_place(problem: Problem, macro: MacroLine) -> Place | str:
    if macro.conditional:
        return "it is defined under an #if"
    if macro.header:
        if macro.guarded:
            return MacroPlace(macro.name, is_given=False)
        return f"it is defined in {macro.header}, whose text is not changed"
    start, end = macro.directive.start, macro.directive.end
    whole = problem.kernel.text[start:end]
    found = re.match(rf"#[ \t]*define[ \t]+{macro.name}[ \t]+([^/\\\n]*[^\s/\\])", whole)
    if found is None or " ".join(found[1].split()) != " ".join(macro.body.split()):
        return "its definition goes over lines or has remarks in it"
    return TextPlace(start + found.start(1), start + found.end(1))


def _declared(text: KnobText, item: SourceItem, place: int) -> Iterator[_Raw]:
    """`const` and `constexpr` integers, and what an enumeration without a name lists."""
    scope = place if item.is_function else None
    tokens, fresh, depth = item.tokens, True, 0
    for at, token in enumerate(tokens):
        if fresh and depth == 0:
            found = _enumerated(tokens, at) if token.text == "enum" else _variables(tokens, at)
            for name, words, is_switch in found:
                yield _Raw(name.text, words, scope, name.line, _text_place(text, item, words), is_switch)
        depth += (token.text == "(") - (token.text == ")")
        fresh = token.text in (";", "{", "}", ":")


def _text_place(text: KnobText, item: SourceItem, words: Sequence[Token]) -> Place | str:
    if item.header:
        return f"it is defined in {item.header}, whose text is not changed"
    if text.is_conditional(words[0].offset):
        return "it is defined under an #if"
    return TextPlace(words[0].offset, words[-1].offset + len(words[-1].text))


def _variables(tokens: Sequence[Token], at: int) -> Iterator[tuple[Token, tuple[Token, ...], bool]]:
    leading: set[str] = set()
    while at < len(tokens) and tokens[at].text in QUALIFIERS | INTEGERS:
        leading.add(tokens[at].text)
        at += 1
    if not leading & {"const", "constexpr"} or not leading & INTEGERS:
        return
    while at + 2 < len(tokens) and tokens[at].kind == "word" and tokens[at + 1].text in ("=", "{"):
        end = _end_of_value(tokens, at + 2)
        words = tuple(tokens[at + 2 : end])
        if words:
            yield tokens[at], words, "bool" in leading
        if tokens[at + 1].text == "{":
            end += 1
        if end >= len(tokens) or tokens[end].text != ",":
            return
        at = end + 1


def _end_of_value(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    while at < len(tokens):
        text = tokens[at].text
        if depth == 0 and text in (",", ";", "}"):
            break
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        at += 1
    return at


def _enumerated(tokens: Sequence[Token], at: int) -> Iterator[tuple[Token, tuple[Token, ...], bool]]:
    start = at + 1
    while start < len(tokens) and tokens[start].text in INTEGERS | {":"}:
        start += 1
    end = next((p for p in range(start, len(tokens)) if tokens[p].text == "}"), len(tokens))
    if start >= len(tokens) or tokens[start].text != "{":
        return
    entries = split_at(",", tokens[start + 1 : end])
    # Where one number follows from the one before, they are codes.
    if all(len(entry) > 2 and entry[1].text == "=" for entry in entries if entry):
        for entry in entries:
            if entry:
                yield entry[0], tuple(entry[2:]), False


# -- template parameters -----------------------------------------------------------------------------


def entry_parts(entry: str) -> tuple[str, list[str]]:
    """A kernel's plain name and its template arguments."""
    name, _, rest = entry.partition("<")
    inside = rest.rpartition(">")[0]
    args: list[str] = []
    depth, word = 0, ""
    for character in inside:
        depth += (character in "<({") - (character in ">)}")
        if character == "," and depth == 0:
            args.append(word.strip())
            word = ""
        else:
            word += character
    return name.split("::")[-1].strip(), [*args, word.strip()] if inside.strip() else []


def _template_parameters(problem: Problem, text: KnobText, item: SourceItem, place: int) -> Iterator[_Raw]:
    tokens = item.tokens
    end = closing_angle(tokens, 1) if len(tokens) > 1 and tokens[0].text == "template" else None
    if end is None:
        return
    entries = [(number, *entry_parts(launch.entry)) for number, launch in enumerate(problem.launches)]
    mine = [(number, args) for number, name, args in entries if name in item.introduces]
    for number, part in enumerate(split_at(",", tokens[2:end])):
        head, *default = split_at("=", part)
        if len(head) < 2 or not {t.text for t in head[:-1]} <= INTEGERS | {"const"}:
            continue
        name, switch = head[-1], any(t.text == "bool" for t in head)
        given = {args[number] for _, args in mine if number < len(args)}
        if given:
            if len(given) > 1 or PLACEHOLDER.search(min(given)):
                continue
            launches = tuple(at for at, args in mine if number < len(args))
            words = tuple(lex(min(given)))
            yield _Raw(name.text, words, place, name.line, EntryPlace(launches, number), switch)
        elif default and default[0]:
            words = tuple(default[0])
            yield _Raw(name.text, words, place, name.line, _text_place(text, item, words), switch)


# -- names that mean one thing -----------------------------------------------------------------------


def _unshadowed(raws: Sequence[_Raw], text: KnobText, reached: Sequence[int]) -> list[_Raw]:
    """What a name means must be one thing wherever it is seen; else its text stays as it is."""
    found: list[_Raw] = []
    for raw in raws:
        others = [r for r in raws if r.name == raw.name and r is not raw]
        seen = [r for r in others if raw.item is None or r.item is None or r.item == raw.item]
        if seen:
            lines = ", ".join(str(line) for line in sorted({r.line for r in (raw, *seen) if r.line}))
            raw = replace(raw, place=f"it is defined more than once (lines {lines})")
        elif raw.item is None and (line := _declared_elsewhere(raw, text, reached)):
            raw = replace(raw, place=f"a variable or parameter is called so too (line {line})")
        found.append(raw)
    return found


def _declared_elsewhere(raw: _Raw, text: KnobText, reached: Sequence[int]) -> int:
    for place in reached:
        tokens = text.items[place].tokens
        for at in range(1, len(tokens) - 1):
            before, token, after = tokens[at - 1], tokens[at], tokens[at + 1]
            if token.text != raw.name or before.text not in _TYPES or token.line == raw.line:
                continue
            if after.text in ("=", ",", ";", ")", "[", ">"):
                return token.line
    return 0


def _resolved(raws: Sequence[_Raw]) -> ConstantTable:
    keys: dict[int, str] = {}
    visible: dict[tuple[str, int | None], str] = {}
    for number, raw in enumerate(raws):
        same = [k for k in keys.values() if k.partition("@")[0] == raw.name]
        keys[number] = raw.name if not same else f"{raw.name}@{len(same) + 1}"
        visible.setdefault((raw.name, raw.item), keys[number])
    open_ = ConstantTable(dict.fromkeys(keys.values(), _PENDING), visible)
    nodes: dict[str, KnobConstant] = {}
    for number, raw in enumerate(raws):
        key = keys[number]
        node = read_constant(raw.tokens, _outside(open_.resolve(raw.item), key))
        if node is not None:
            nodes[key] = KnobConstant(key, raw.name, node, None, raw.item, raw.line, raw.place, raw.is_switch)
    return ConstantTable(_evaluated(nodes), visible)


_PENDING = KnobConstant("", "", Num(0), None, None, 0, "")


def _outside(resolve: Resolve, key: str) -> Resolve:
    """In its own definition a name means something else, which is not known."""

    def found(word: str) -> Node | None:
        node = resolve(word)
        return None if isinstance(node, Variable) and node.id == key else node

    return found


def _evaluated(nodes: Mapping[str, KnobConstant]) -> dict[str, KnobConstant]:
    """Those that come to a number, or to one once blocks are known."""
    found: dict[str, KnobConstant] = {}
    waiting = dict(nodes)
    while waiting:
        ready = [
            key
            for key, one in waiting.items()
            if all(name in found or name in BLOCK_NAMES for name in used_names(one.node))
        ]
        if not ready:
            return found
        for key in ready:
            one = waiting.pop(key)
            values = {name: value for name, c in found.items() if (value := c.value) is not None}
            found[key] = replace(one, value=evaluated(one.node, values))
    return found
