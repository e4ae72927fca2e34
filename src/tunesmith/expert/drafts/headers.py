"""Where kernels begin and end and what their headers say, read from the words of a source.

Headers are read from words, not from a syntax tree: one construct a grammar does not know, anywhere in the
file, can cost a tree the whole function, while a header always has the same simple shape. Comments, strings,
directives and foreign qualifiers are blanks here: every place and line break is that of the original.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from tunesmith.source.lex import Token, lex, split_at
from tunesmith.source.reader.grammar import DROPPED, DROPPED_GROUPS, OPENCL_WORDS
from tunesmith.source.text import blank_elements, blank_text, find_directives
from tunesmith.source.tree import Language
from tunesmith.source.types import INTEGERS, PAIRS, canonical_type_name, vector_parts

_DEFINE = re.compile(r"([^\W\d]\w*)(?:\(([^)]*)\))?\s*(.*)", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w*")

_CUDA_WORDS = DROPPED | {"__shared__", "__constant__"}

Space = Literal["global", "local", "constant"]


@dataclass(frozen=True)
class KernelParameter:
    """One kernel parameter. `written` and `read` are None where the body hides what it does with it."""

    name: str
    type: str  # as written, without address space and restrict: "const float4*"
    base: str  # the type alone: "float4"
    element: str | None  # in the problem file's vocabulary; None when only the user knows
    vector: int  # elements per base type: 4 for float4
    pointer: bool
    const: bool
    space: Space | None
    restrict: bool
    written: bool | None
    read: bool | None


@dataclass(frozen=True)
class KernelSignature:
    name: str
    namespace: str  # "" or "a::b"
    template_params: tuple[str, ...]
    parameters: tuple[KernelParameter, ...]
    line: int
    launch_bounds: tuple[str, ...] | None = None
    reqd_work_group_size: tuple[str, ...] | None = None
    dynamic_shared: bool = False  # the body uses shared memory whose size the launch gives
    conditional: bool = False  # an #if inside the header: the parameters are those of its first branch
    definitions: int = 1  # more than one: the same name again, under another #if or as a specialisation

    @property
    def qualified_name(self) -> str:
        return f"{self.namespace}::{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class Instantiation:
    """`template __global__ void name<float>(…);`"""

    kernel: str  # without namespaces
    template_args: str
    line: int


@dataclass(frozen=True)
class LaunchSite:
    """One launch in host code. Geometry and arguments are C expressions, dim3 already taken apart."""

    kernel: str
    template_args: str | None
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str | None
    arguments: tuple[str, ...]
    line: int
    settled: tuple[tuple[str, str], ...]  # local variables with one value, and that value
    local: frozenset[str]  # every local name: it hides a constant of the file
    changed: frozenset[str]  # local names that take more than one value
    conditions: tuple[str, ...] = ()  # of every `if` around it, outermost first; of an else branch, !(...)
    checks: tuple[str, ...] = ()  # what the function around it asserts before
    around: tuple[tuple[str, ...], ...] = ()  # calls that are handed the code around it: name and arguments
    aliases: tuple[tuple[str, str], ...] = ()  # `using T = float;` in the function around it
    function: str = ""  # around it
    fields: tuple[tuple[str, str], ...] = ()  # `params.rows = n;` before it, as ("params.rows", "n")


@dataclass(frozen=True)
class SourceModel:
    kernels: tuple[KernelSignature, ...]
    launches: tuple[LaunchSite, ...]
    constants: tuple[tuple[str, str], ...]  # file-level constants and simple macros, as C expressions
    instantiations: tuple[Instantiation, ...] = ()


@dataclass(frozen=True)
class MacroText:
    name: str
    parameters: tuple[str, ...] | None  # None: an object-like macro
    body: str


@dataclass(frozen=True)
class Blanked:
    plain: str  # without comments, string contents, directives and `#if 0` text
    code: str  # additionally without the qualifiers a grammar would trip over
    macros: tuple[MacroText, ...]
    marks: tuple[Token, ...]  # where conditional compilation opens, turns to another branch, or closes

    def plain_macros(self) -> dict[str, str]:
        """Object-like macros with one meaning in the whole file."""
        return _single_meanings(self.macros)


def blank_source(text: str, language: Language, defines: Iterable[tuple[str, str]] = ()) -> Blanked:
    """`defines`: macros given to the compiler, instead of which the text's own are not meant."""
    plain = blank_elements(text, ("comment", "string", "directive"))
    conditions = _Conditions()
    macros = [MacroText(name, None, value) for name, value in defines]
    given = {macro.name for macro in macros}
    pieces: list[str] = []
    done = 0
    for directive in find_directives(text):
        was_off = conditions.off
        if directive.word != "define":
            conditions.read(directive.word, directive.rest, directive.start)
        elif not was_off and (define := _DEFINE.match(directive.rest)) and define[1] not in given:
            # "#define F (x)" is object-like: only a parenthesis that touches the name opens parameters.
            parameters = None if define[2] is None else tuple(p.strip() for p in define[2].split(","))
            macros.append(MacroText(define[1], parameters, define[3].strip()))
        if was_off != conditions.off:
            part = plain[done : directive.start]
            pieces.append(blank_text(part) if was_off else part)
            done = directive.start
    pieces.append(blank_text(plain[done:]) if conditions.off else plain[done:])
    plain = "".join(pieces)
    code = _without_qualifiers(plain, _single_meanings(macros), language)
    return Blanked(plain, code, tuple(macros), tuple(conditions.marks))


def _single_meanings(macros: Iterable[MacroText]) -> dict[str, str]:
    found = unambiguous_names(
        (macro.name, None if macro.parameters is not None else macro.body) for macro in macros
    )
    return {name: body for name, body in found.items() if body is not None}


M = TypeVar("M")


def unambiguous_names(pairs: Iterable[tuple[str, M]]) -> dict[str, M]:
    """Names with one meaning: which of several holds depends on flags that are not known here."""
    meanings: dict[str, set[M]] = {}
    for name, meaning in pairs:
        meanings.setdefault(name, set()).add(meaning)
    return {name: found.pop() for name, found in meanings.items() if len(found) == 1}


class _Conditions:
    """Follows #if ... #endif: text under a literal 0 is off, other branches leave marks."""

    def __init__(self) -> None:
        self.marks: list[Token] = []
        self._frames: list[Literal["zero", "one", "maybe", "off"]] = []

    @property
    def off(self) -> bool:
        """What is opened inside of text that is off is off itself, and stays so: the last frame tells."""
        return bool(self._frames) and self._frames[-1] in ("zero", "off")

    def _mark(self, kind: str, offset: int) -> None:
        self.marks.append(Token("mark", kind, 0, "", offset))

    def read(self, word: str, rest: str, offset: int) -> None:
        if word in ("if", "ifdef", "ifndef"):
            if self.off:
                self._frames.append("off")
            elif word == "if" and rest in ("0", "1"):
                self._frames.append("zero" if rest == "0" else "one")
            else:
                self._frames.append("maybe")
                self._mark("#if", offset)
        elif word in ("else", "elif", "elifdef", "elifndef") and self._frames:
            frame = self._frames[-1]
            if frame == "maybe":
                self._mark("#else", offset)
            elif frame == "one":
                self._frames[-1] = "off"
            elif frame == "zero":
                self._frames[-1] = "one" if word == "else" else "maybe"
                if word != "else":
                    self._mark("#if", offset)
        elif word == "endif" and self._frames and self._frames.pop() == "maybe":
            self._mark("#endif", offset)


def _without_qualifiers(plain: str, macros: dict[str, str], language: Language) -> str:
    words = frozenset(OPENCL_WORDS) if language == "opencl" else _CUDA_WORDS
    words |= {
        name
        for name, body in macros.items()
        if body and all(word in words for word in body.split()) and _WORD.fullmatch(name)
    }
    pieces: list[str] = []
    done = 0
    for match in _WORD.finditer(plain):
        if match.start() < done:
            continue
        if match.group() in words:
            end = match.end()
        elif match.group() in DROPPED_GROUPS:
            end = _group_end(plain, match.end())
        else:
            continue
        pieces += (plain[done : match.start()], blank_text(plain[match.start() : end]))
        done = end
    pieces.append(plain[done:])
    return "".join(pieces)


def _group_end(text: str, start: int) -> int:
    """The end of the parenthesised group that begins at `start`, or `start` when there is none."""
    position = start
    while position < len(text) and text[position].isspace():
        position += 1
    depth = 0
    for end in range(position, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return end + 1 if end > position else start
    return start


_MARKERS: Mapping[Language, frozenset[str]] = {
    "opencl": frozenset({"__kernel", "kernel"}),
    "cuda": frozenset({"__global__"}),
    "hip": frozenset({"__global__"}),
}
_DYNAMIC_SHARED = re.compile(r"\bextern\b[^;{}]*\b__shared__\b|\bHIP_DYNAMIC_SHARED\b")
_NOT_A_NAME = DROPPED_GROUPS | {"noexcept", "requires", "alignas", "void"}


@dataclass(frozen=True)
class Header:
    name: str
    namespace: str
    specialised: bool
    template_params: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]  # the tokens of each
    launch_bounds: tuple[str, ...] | None
    reqd_work_group_size: tuple[str, ...] | None
    dynamic_shared: bool
    conditional: bool
    offset: int
    body: str | None  # from the code text, braces included; None for a declaration


def read_headers(source: Blanked, language: Language) -> list[Header]:
    tokens = sorted([*_split_shift_tokens(source.plain), *source.marks], key=lambda token: token.offset)
    macros = {name: split_words(body) for name, body in source.plain_macros().items()}
    markers = _MARKERS[language]
    markers |= {name for name in macros if markers & set(expand_object_macros((name,), macros))}
    headers = []
    for index, namespace in _find_markers(tokens, markers):
        header = _read_header(source, tokens, index, namespace, macros)
        if header is not None:
            headers.append(header)
    return headers


def split_words(text: str) -> tuple[str, ...]:
    return tuple(token.text for token in _split_shift_tokens(text))


def _split_shift_tokens(text: str) -> Iterator[Token]:
    """`>>` as two: it closes two lists of template arguments more often than it shifts."""
    for token in lex(text):
        if token.text == ">>":
            yield replace(token, text=">")
            yield replace(token, text=">", offset=token.offset + 1)
        else:
            yield token


def expand_object_macros(
    tokens: Sequence[str], macros: Mapping[str, Sequence[str]], depth: int = 8
) -> tuple[str, ...]:
    """Replace object-like macros, to a limited depth: a macro may name itself."""
    if depth == 0 or not any(token in macros for token in tokens):
        return tuple(tokens)
    replaced = [word for token in tokens for word in macros.get(token, (token,))]
    return expand_object_macros(replaced[:10_000], macros, depth - 1)


def _find_markers(tokens: Sequence[Token], markers: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Every kernel marker and the namespace it stands in."""
    scopes: list[str] = []
    saved: list[list[str]] = []
    for index, token in enumerate(tokens):
        if token.text in markers:
            yield index, "::".join(scope for scope in scopes if scope)
        elif token.text == "{":
            scopes.append(_namespace_before(tokens, index))
        elif token.text == "}" and scopes:
            scopes.pop()
        elif token.text == "#if":
            saved.append(list(scopes))
        elif token.text == "#else" and saved:  # both branches open the same braces
            scopes = list(saved[-1])
        elif token.text == "#endif" and saved:
            saved.pop()


def _namespace_before(tokens: Sequence[Token], brace: int) -> str:
    start = brace
    while start > 0 and (tokens[start - 1].text == "::" or tokens[start - 1].text.isidentifier()):
        start -= 1
        if tokens[start].text == "namespace":
            return "".join(token.text for token in tokens[start + 1 : brace])
    return ""


def _first_branch_tokens(tokens: Sequence[Token], start: int) -> Iterator[Token]:
    """The tokens from `start` on, as one choice of conditional branches: always the first of each."""
    depth, skipping = 0, 0
    for token in tokens[start:]:
        if token.text == "#if":
            depth += 1
        elif token.text == "#endif":
            depth = max(depth - 1, 0)
            if skipping and depth < skipping:
                skipping = 0
        elif token.text == "#else":
            # Depth 0 means that the #if stands before `start`: this is the branch that was not taken.
            if depth == 0:
                depth = 1
            skipping = skipping or depth
        elif not skipping:
            yield token


def _read_header(
    source: Blanked, tokens: Sequence[Token], marker: int, namespace: str, macros: Mapping[str, Sequence[str]]
) -> Header | None:
    first = marker
    while first > 0 and tokens[first - 1].text not in (";", "{", "}"):
        first -= 1
    prefix = [token.text for token in tokens[first:marker]]
    template_params = _template_params(prefix)
    header: list[str] = []
    end: Token | None = None
    depth = 0
    onwards = _first_branch_tokens(tokens, marker + 1)
    for token in onwards:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text in ("{", ";"):
            end = token
            break
        header.append(token.text)
    groups = list(_call_groups(header))
    named = [(name, at, group) for name, at, group in groups if name and name not in _NOT_A_NAME]
    if end is None or not named:
        return None
    name, at, group = named[-1]
    known = {macro: body for macro, body in macros.items() if macro not in template_params}
    parameters = (tuple(part) for part in split_at(",", expand_object_macros(group, known)) if part)
    span = slice(end.offset, _body_end(source, onwards) if end.text == "{" else end.offset)
    bounds = [inside for word, _, inside in groups if word == "__launch_bounds__"]
    return Header(
        name=name,
        namespace=namespace,
        specialised=header[at - 1] == ">" or _is_special(prefix),
        template_params=template_params,
        parameters=tuple(part for part in parameters if part != ("void",)),
        launch_bounds=tuple(" ".join(part) for part in split_at(",", bounds[0])) if bounds else None,
        reqd_work_group_size=_work_group_size(header + prefix),
        offset=tokens[marker].offset,
        conditional=any(tokens[marker].offset < mark.offset < end.offset for mark in source.marks),
        dynamic_shared=_DYNAMIC_SHARED.search(source.plain[span]) is not None,
        body=source.code[span] if end.text == "{" else None,
    )


def template_arguments(entry: str | None) -> tuple[str, ...]:
    if entry is None or "<" not in entry:
        return ()
    inside = split_words(entry[entry.index("<") + 1 : entry.rfind(">")] if ">" in entry else "")
    parts = (" ".join(part).replace(" :: ", "::") for part in split_at(",", inside) if part)
    return tuple(part.replace("{ ", "{").replace(" }", "}") for part in parts)


def _is_special(prefix: Sequence[str]) -> bool:
    """`template <> __global__ void k(half* x)`: arguments that follow from the parameters."""
    return any(tuple(prefix[at : at + 3]) == ("template", "<", ">") for at in range(len(prefix)))


def _template_params(prefix: Sequence[str]) -> tuple[str, ...]:
    if "template" not in prefix:
        return ()
    depth = 0
    inside: list[str] = []
    for token in prefix[prefix.index("template") + 1 :]:
        depth -= token == ">"
        if depth == 0 and token == ">":
            break
        if depth > 0:
            inside.append(token)
        depth += token == "<"
    names = (
        [t for t in split_at("=", part)[0] if t.isidentifier() and t not in ("typename", "class")]
        for part in split_at(",", inside)
    )
    return tuple(found[-1] for found in names if found)


def _call_groups(header: Sequence[str]) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Each outer `name(...)`: the name, where its parenthesis opens, what stands inside."""
    depth, start = 0, 0
    for index, token in enumerate(header):
        if token == "(":
            if depth == 0:
                start = index
            depth += 1
        elif token == ")":
            depth -= 1
            if depth == 0:
                yield _name_before(header, start), start, tuple(header[start + 1 : index])


def _name_before(header: Sequence[str], parenthesis: int) -> str:
    index = parenthesis - 1
    if index >= 0 and header[index] == ">":  # a specialisation: name<float>(...)
        depth = 0
        while index >= 0:
            depth += (header[index] == ">") - (header[index] == "<")
            index -= 1
            if depth == 0:
                break
    return header[index] if index >= 0 and header[index].isidentifier() else ""


def _work_group_size(header: Sequence[str]) -> tuple[str, ...] | None:
    for word in ("reqd_work_group_size", "__reqd_work_group_size__"):
        if word in header:
            for name, _, inside in _call_groups(header[header.index(word) :]):
                if name == word:
                    return tuple(" ".join(part) for part in split_at(",", inside))
    return None


def _body_end(source: Blanked, after: Iterator[Token]) -> int:
    depth = 1
    for token in after:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0:
            return token.offset + 1
    return len(source.code)  # unbalanced: better too much than nothing


# Floats of both languages, and what CUDA, HIP and their libraries call theirs; integers have a size.
_FLOATS = {"float": "float32", "double": "float64", "half": "float16"}
_CUDA_FLOATS = {
    "__half": "float16", "_Float16": "float16", "half_t": "float16", "Half": "float16",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16", "hip_bfloat16": "bfloat16",
    "__hip_bfloat16": "bfloat16", "bfloat16_t": "bfloat16", "BFloat16": "bfloat16", "__bf16": "bfloat16",
    "__nv_fp8_e4m3": "float8_e4m3", "__nv_fp8_e5m2": "float8_e5m2",
    "__hip_fp8_e4m3": "float8_e4m3", "__hip_fp8_e5m2": "float8_e5m2",
    "Float8_e4m3fn": "float8_e4m3", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip


def elements_of(base: str, language: Language) -> tuple[str | None, int]:
    """The element type of `base`, or None when it has none of ours, and how many elements `base` holds."""
    name = base.split("::")[-1].strip()  # a namespace in front says nothing of ours
    plain = _plain_type(name, language)
    if plain is not None:
        return plain, 1
    if language != "opencl" and canonical_type_name(name, language) in PAIRS:
        return _plain_type(PAIRS[canonical_type_name(name, language)], language), 2
    parts = vector_parts(name, "opencl")  # CUDA has fewer of the same names
    element = None if parts is None else _plain_type(parts[0].replace("longlong", "long"), language)
    return (None, 1) if parts is None or element is None else (element, parts[1])


def _plain_type(name: str, language: Language) -> str | None:
    name = canonical_type_name(name, "opencl")
    if name in INTEGERS:
        size, signed = INTEGERS[name]
        return f"{'' if signed else 'u'}int{8 * size}"
    return _FLOATS.get(name) or (None if language == "opencl" else _CUDA_FLOATS.get(name))
