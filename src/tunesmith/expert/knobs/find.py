"""Constants of a source: where each is defined, what it is made of, and whether its text can change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from tunesmith.expert.knobs.text import (
    AXES,
    INTEGERS,
    QUALIFIERS,
    SHARED,
    WARP_WORDS,
    KnobText,
    MacroLine,
    SourceItem,
    matching_paren,
    normalise_tokens,
    template_parameters,
    word_set,
)
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.source.fold import LEVELS
from tunesmith.source.lex import Token, lex, split_at
from tunesmith.source.tree import read_number
from tunesmith.source.types import byte_size
from tunesmith.space.expr import (
    Arithmetic,
    Compare,
    Conditional,
    Expr,
    FunctionCall,
    Logic,
    Node,
    Not,
    Num,
    Undefined,
    Variable,
    iterate_variable_names,
    operands_of_node,
)
from tunesmith.space.space import substitute_trees

Resolve = Callable[[str], Node | None]  # what a word stands for; None: no constant

PLAIN = LEVELS["+"]  # the level from which there is arithmetic alone
_MAX_DEEP = 40
_MAX_WORDS = 48  # of an expression: longer ones are no constants here


def read_constant(tokens: Sequence[Token], resolve: Resolve) -> Node | None:
    """The whole of the words as one expression; None where a part of them is no constant."""
    found = read_prefix(tokens, 0, resolve, 0)
    return found[0] if found is not None and found[1] == len(tokens) else None


def read_prefix(
    tokens: Sequence[Token], at: int, resolve: Resolve, least: int, depth: int = 0
) -> tuple[Node, int] | None:
    """The longest expression of at least this level that begins there, and where it ends."""
    end = min(at + _MAX_WORDS, len(tokens))
    found = _read_primary(tokens, at, resolve, depth + 1)
    while found is not None and found[1] < end:
        left, at = found
        op = tokens[at].text
        level = LEVELS.get(op, 0)
        if level == 0 or level < least:
            if op == "?" and least <= 0:
                return _read_conditional(tokens, found, resolve, depth)
            break
        right = read_prefix(tokens, at + 1, resolve, level + 1, depth + 1)
        if right is None:
            break
        made = _make_binary(op, left, right[0])
        if made is None:
            break
        found = made, right[1]
    return found


def _read_conditional(
    tokens: Sequence[Token], test: tuple[Node, int], resolve: Resolve, depth: int
) -> tuple[Node, int] | None:
    then = read_prefix(tokens, test[1] + 1, resolve, 0, depth + 1)
    if then is None or then[1] >= len(tokens) or tokens[then[1]].text != ":":
        return test
    other = read_prefix(tokens, then[1] + 1, resolve, 0, depth + 1)
    return (Conditional(test[0], then[0], other[0]), other[1]) if other is not None else test


def _read_primary(tokens: Sequence[Token], at: int, resolve: Resolve, depth: int) -> tuple[Node, int] | None:
    if at >= len(tokens) or depth > _MAX_DEEP:
        return None
    token = tokens[at]
    if token.kind == "number" or token.text in ("true", "false"):
        value = read_number(token.text)
        return (Num(value), at + 1) if isinstance(value, int) and value < 1 << 40 else None
    if token.text == "(":
        inner = read_prefix(tokens, at + 1, resolve, 0, depth + 1)
        closes = inner is not None and inner[1] < len(tokens) and tokens[inner[1]].text == ")"
        return (inner[0], inner[1] + 1) if inner is not None and closes else None
    if token.text == "!":
        found = _read_primary(tokens, at + 1, resolve, depth + 1)
        return (Not(found[0]), found[1]) if found is not None else None
    if token.text == "sizeof":
        end = next((p for p in range(at, min(at + 6, len(tokens))) if tokens[p].text == ")"), at)
        size = byte_size(" ".join(t.text for t in tokens[at + 2 : end]))
        return (Num(size), end + 1) if size is not None else None
    if token.kind != "word":
        return None
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.text in ("min", "max") and after == "(":
        return _read_function_call(token.text, tokens, at + 2, resolve, depth)
    if after == "::":  # Traits::BLOCK, where one of that name is all there is
        return _read_primary(tokens, at + 2, resolve, depth + 1)
    node = resolve(token.text)
    return (node, at + 1) if node is not None and after != "(" else None


def _read_function_call(
    name: str, tokens: Sequence[Token], at: int, resolve: Resolve, depth: int
) -> tuple[Node, int] | None:
    args: list[Node] = []
    while at < len(tokens):
        found = read_prefix(tokens, at, resolve, 0, depth + 1)
        if found is None or found[1] >= len(tokens):
            return None
        args.append(found[0])
        at = found[1] + 1
        if tokens[found[1]].text == ")":
            return (FunctionCall(cast("Any", name), tuple(args)), at) if len(args) == 2 else None
        if tokens[found[1]].text != ",":
            return None
    return None


def _make_binary(op: str, left: Node, right: Node) -> Node | None:
    match op:
        case "||" | "&&":
            return Logic("or" if op == "||" else "and", (left, right))
        case "==" | "!=" | "<" | ">" | "<=" | ">=":
            return _power_of_two(op, left, right) or Compare(left, ((op, right),))
        case "<<" | ">>":
            if isinstance(right, Num) and 0 <= right.value < 31:
                power = Num(1 << right.value)
                return fold_constant(Arithmetic("*" if op == "<<" else "//", left, power))
            return None
        case "&":  # X & (X - 1): only held against 0 does it have a meaning here
            return Arithmetic("%", left, Num(0)) if right == Arithmetic("-", left, Num(1)) else None
        case "/":
            return fold_constant(Arithmetic("//", left, right))
        case "+" | "-" | "*" | "%":
            return fold_constant(Arithmetic(op, left, right))
    return None


def _power_of_two(op: str, left: Node, right: Node) -> Node | None:
    match left:
        case Arithmetic("%", value, Num(0)) if right == Num(0) and op in ("==", "!="):
            test: Node = FunctionCall("is_pow2", (value,))
            return test if op == "==" else Not(test)
    return None


def fold_constant(node: Node) -> Node:
    """A number where it is one, so that `4 * 32` is `128`."""
    if any(True for _ in iterate_variable_names(node)):
        return node
    value = evaluate_node(node, {})
    return Num(value) if value is not None and value >= 0 else node


def evaluate_node(node: Node, values: Mapping[str, int]) -> int | None:
    try:
        return Expr("", node).evaluate(values)
    except Undefined:
        return None


def with_names(node: Node, meanings: Mapping[str, Node]) -> Node:
    """The tree with other trees in place of some of its names."""
    return substitute_trees(node, {Variable(name): meaning for name, meaning in meanings.items()})


def size_of(node: Node) -> int:
    return 1 + sum(map(size_of, operands_of_node(node)))


def used_names(node: Node) -> frozenset[str]:
    return frozenset(iterate_variable_names(node))


def product_of(nodes: Iterable[Node]) -> Node:
    found: Node | None = None
    for node in nodes:
        if node == Num(1):
            continue
        found = node if found is None else fold_constant(Arithmetic("*", found, node))
    return found or Num(1)


LEAST = 8  # below, a number has too many meanings


@dataclass(frozen=True)
class WrittenNumber:
    """All the places of a number in the functions that a kernel reaches, under one name."""

    name: str
    value: int
    places: tuple[Token, ...]


def name_numbers(
    problem: Problem, text: KnobText, reached: Sequence[int], blocks: Sequence[Sequence[Node]]
) -> tuple[KnobText, tuple[WrittenNumber, ...], tuple[str, ...]]:
    """The text with names for the block's own numbers, these, and sentences on those that stay numbers."""
    found: list[WrittenNumber] = []
    left: list[str] = []
    values = {value for block in blocks for node in block if (value := evaluate_node(node, {})) is not None}
    every = {token.text for item in text.items for token in item.tokens}
    for value in sorted(value for value in values if value >= LEAST):
        name = f"NUMBER_{value}"
        places = [
            place for place in reached if text.items[place].is_function and not text.items[place].header
        ]
        tokens = [token for place in places for token in text.items[place].tokens]
        literals = [at for at, token in enumerate(tokens) if _has_literal_value(token, value)]
        if name in every or not any(_is_the_blocks(tokens, at) for at in literals):
            continue
        if asked := [axis for axis in AXES if {f"blockDim.{axis}", f"globalIdx.{axis}"} & every]:
            left.append(f"{value} in the text stays: it asks for the block along {asked[0]} as well")
            continue
        if value in (fixed := fixed_numbers(problem)):
            left.append(f"{value} in the text stays: it is {fixed[value]} of the problem")
            continue
        if value in (32, 64) and any(WARP_WORDS.fullmatch(word) for word in every):
            left.append(f"{value} in the text stays: it may be the width of a warp")
            continue
        near = [
            n
            for n in (value - 1, value // 2, 2 * value)
            if any(_has_literal_value(token, n) for token in tokens)
        ]
        if near:
            left.append(f"{value} in the text stays: {near[0]} is there as well, and may follow from it")
            continue
        text = _name_literals(text, places, value, name)
        found.append(WrittenNumber(name, value, tuple(tokens[at] for at in literals)))
    return text, tuple(found), tuple(left)


def _has_literal_value(token: Token, value: int) -> bool:
    return token.kind == "number" and read_number(token.text) == value and "." not in token.text


def _is_the_blocks(tokens: Sequence[Token], at: int) -> bool:
    """Whether blocks are counted by it, or an array in shared memory has that many elements."""
    text = [tokens[place].text if 0 <= place < len(tokens) else "" for place in range(at - 2, at + 3)]
    if (text[1] == "*" and text[0].startswith("blockIdx.")) or (
        text[3] == "*" and text[4].startswith("blockIdx.")
    ):
        return True
    if text[1] == "[" and text[3] == "]":
        start = at
        while start > 0 and tokens[start - 1].text not in (";", "{", "}"):
            start -= 1
        return any(token.text in SHARED for token in tokens[start:at])
    return False


def _name_literals(text: KnobText, places: Sequence[int], value: int, name: str) -> KnobText:
    items = list(text.items)
    for place in places:
        words = (
            replace(t, kind="word", text=name) if _has_literal_value(t, value) else t
            for t in items[place].tokens
        )
        items[place] = replace(items[place], tokens=tuple(words))
    return replace(text, items=tuple(items))


def fixed_numbers(problem: Problem) -> dict[int, str]:
    """Numbers that the contract fixes: a size with one value, an extent of an array."""
    found: dict[int, str] = {}
    for argument in problem.arguments:
        if argument.role == "local":
            continue
        for extent in argument.shape:
            found |= dict.fromkeys(_node_numbers(extent.tree), f"an extent of {argument.name}")
    for rule in problem.contract.sizes:
        if len(rule.one_of) == 1 or rule.min == rule.max:
            found[rule.one_of[0] if rule.one_of else rule.min] = f"the size {rule.name}"
    return found


def _node_numbers(node: Node) -> Iterator[int]:
    if isinstance(node, Num):
        yield node.value
    for child in operands_of_node(node):
        yield from _node_numbers(child)


BLOCK_NAMES = tuple(f"blockDim.{axis}" for axis in AXES)
_MAX_NODES, _MAX_CONSTANTS = 300, 400
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
            if size_of(node) > _MAX_NODES:  # constants of constants of constants
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
    raws = [*_given_macros(problem), *_source_macros(problem, text, reached), *map(_raw_number, numbers)]
    for place in reached:
        item = text.items[place]
        if not item.macro:
            raws += _declared_constants(text, item, place)
            raws += _template_parameters(problem, text, item, place)
    return _resolve_constants(_mark_shadowed(raws[:_MAX_CONSTANTS], text, reached))


def _raw_number(one: WrittenNumber) -> _Raw:
    places = tuple(TextPlace(token.offset, token.offset + len(token.text)) for token in one.places)
    return _Raw(one.name, tuple(lex(str(one.value))), None, one.places[0].line, NumberPlace(places))


def _given_macros(problem: Problem) -> Iterator[_Raw]:
    """Macros that the problem's defines or flags set."""
    flags = [m for flag in problem.kernel.flags if (m := _FLAG.fullmatch(flag))]
    for name, value in (*problem.kernel.defines, *((m[1], m[2] or "1") for m in flags)):
        yield _Raw(name, tuple(lex(value)), None, 0, MacroPlace(name, is_given=True))


def _source_macros(problem: Problem, text: KnobText, reached: Sequence[int]) -> Iterator[_Raw]:
    used = {text.items[place].macro for place in reached}
    given = {raw.name for raw in _given_macros(problem)}
    for macro in text.macros:
        if macro.name not in used or (macro.guarded and macro.name in given):
            continue
        tokens = tuple(normalise_tokens(lex(macro.body)))
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


def _declared_constants(text: KnobText, item: SourceItem, place: int) -> Iterator[_Raw]:
    """`const` and `constexpr` integers, and what an enumeration without a name lists."""
    scope = place if item.is_function else None
    tokens, fresh, depth = item.tokens, True, 0
    for at, token in enumerate(tokens):
        if fresh and depth == 0:
            found = _enum_constants(tokens, at) if token.text == "enum" else _const_variables(tokens, at)
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


def _const_variables(tokens: Sequence[Token], at: int) -> Iterator[tuple[Token, tuple[Token, ...], bool]]:
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


def _enum_constants(tokens: Sequence[Token], at: int) -> Iterator[tuple[Token, tuple[Token, ...], bool]]:
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
    entries = [(number, *entry_parts(launch.entry)) for number, launch in enumerate(problem.launches)]
    mine = [(number, args) for number, name, args in entries if name in item.introduces]
    for number, part in enumerate(template_parameters(item.tokens)):
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


def _mark_shadowed(raws: Sequence[_Raw], text: KnobText, reached: Sequence[int]) -> list[_Raw]:
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


def _resolve_constants(raws: Sequence[_Raw]) -> ConstantTable:
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
        node = read_constant(raw.tokens, _resolve_outside(open_.resolve(raw.item), key))
        if node is not None:
            nodes[key] = KnobConstant(key, raw.name, node, None, raw.item, raw.line, raw.place, raw.is_switch)
    return ConstantTable(_evaluate_constants(nodes), visible)


_PENDING = KnobConstant("", "", Num(0), None, None, 0, "")


def _resolve_outside(resolve: Resolve, key: str) -> Resolve:
    """In its own definition a name means something else, which is not known."""

    def found(word: str) -> Node | None:
        node = resolve(word)
        return None if isinstance(node, Variable) and node.id == key else node

    return found


def _evaluate_constants(nodes: Mapping[str, KnobConstant]) -> dict[str, KnobConstant]:
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
            found[key] = replace(one, value=evaluate_node(one.node, values))
    return found


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
_MAX_USES = 1500  # of constants in one function
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True)
class KnobUses:
    """Of a constant, with what is derived from it."""

    kinds: frozenset[str]  # array shared loop geometry template launch unroll switch index
    against: str = ""  # a use that says it is part of what is computed, in words


def name_words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for part in name.split("_") for word in _WORDS.findall(part))


def why_not(constant: KnobConstant, uses: KnobUses, problem: Problem) -> str:
    """Why a constant is no choice; empty where it is one."""
    if isinstance(constant.place, str):
        return constant.place
    assert constant.value is not None, "a literal has a value"
    if constant.value > 1 << 20:
        return f"its value is {constant.value}"
    if constant.is_switch:
        tuning = name_words(constant.name) & _TUNING
        return "" if tuning else "it switches something that may be part of what is computed"
    if uses.against:
        return uses.against
    if constant.value == 0:
        return "it is 0, and what it would switch on is not known"
    if constant.value > 1 and constant.value % 2:
        return f"an odd number, {constant.value}, is seldom one that was chosen"
    telling = name_words(constant.name) & _COMPUTED
    if telling:
        return f"by its name ({min(telling)}) it is part of what is computed"
    if constant.value in (32, 64) and name_words(constant.name) & _OF_A_WARP:
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
        for at in named[:_MAX_USES]:
            token = item.tokens[at]
            node = resolve(token.text)
            if node is None or around.is_definition(at):
                continue
            (key,) = used_names(node)
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
    basis = _constant_basis(constants)
    return {key: _constant_uses(key, basis, kinds, against.get(key, "")) for key in constants.every}


def _constant_uses(
    key: str, basis: Mapping[str, set[str]], kinds: Mapping[str, set[str]], against: str
) -> KnobUses:
    # What is derived counts as a use; only the constant's own uses speak against it.
    every = [key, *(other for other, names in basis.items() if key in names)]
    return KnobUses(frozenset(kind for name in every for kind in kinds[name]), against)


def _constant_basis(constants: ConstantTable) -> dict[str, set[str]]:
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

    def is_definition(self, at: int) -> bool:
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
                kinds |= self._bracket_uses(opened, statement, words)
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
        return kinds, objection or self._why_fixed(at)

    def _bracket_uses(self, opened: int, statement: Sequence[Token], words: set[str]) -> set[str]:
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

    def _why_fixed(self, at: int) -> str:
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
                start, end = min(start, opened), matching_paren(self._tokens, opened, _FAR) + 1
                end = end or min(opened + _FAR, len(self._tokens))
        return self._tokens[start:end]
