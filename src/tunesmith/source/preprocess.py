"""The preprocessor's work on a file and the user's own headers: macros expanded, conditions decided, line
numbers kept.

Long, because one preprocessor: directives, what compilers define, and what is left of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from tunesmith.source.lex import Token, closing_bracket, find_parse_obstacle, lex
from tunesmith.source.macros import (
    MAX_NESTING,
    MAX_TOKENS,
    ConditionReader,
    Expansion,
    Macro,
    expand_macro_uses,
    read_macro,
)
from tunesmith.source.text import CPP, Directive, find_directives, first_word, identifiers_in
from tunesmith.source.tree import Unreadable

# -- What a compiler defines of its own accord: asked of the one that will be used, or else assumed.


# Which of the toolkit's headers have, not all compilers: `preprocess` decides these by itself.
OF_HEADERS = frozenset({"CUDART_VERSION", "CUDA_VERSION"})
# Every CUDA compiler has these: a source that asks which version it is must mean the same to all versions.
TELL_VERSION = ("__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "__CUDACC_VER_BUILD__")
_LISTED = re.compile(r"^#define (\w+(?:\([^)]*\))?)(?:[ \t]+(.*))?$", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?\.?\d[\w.]*")
_OWN = re.compile(
    r"__(?:CUDA|NV|HIP|OPENCL|GNUC|clang|AMD|GFX|gfx|x86_64|aarch64|linux|cplusplus|SIZEOF_|FAST_RELAXED)\w*"
    r"|_(?:MSC_VER|WIN32|WIN64)|cl_khr_\w+|CL_VERSION_\d_\d|__ENDIAN_LITTLE__|__IMAGE_SUPPORT__|NDEBUG"
)
_CONDITIONS = ("if", "ifdef", "ifndef", "elif")


@dataclass(frozen=True)
class Predefined:
    """`macros` that are numbers, or nothing at all, take part in everything; of the `others`, which headers
    define as text, only that they are defined is of use."""

    macros: tuple[tuple[str, str], ...]
    said_by: str  # whom to believe, in words
    others: tuple[str, ...] = ()

    def knows(self, name: str) -> bool:
        """Whether it is the compiler's to define, or not to."""
        return is_compilers(name) or name in self.others or any(name == macro for macro, _ in self.macros)


NOTHING = Predefined((), "")


def is_compilers(name: str) -> bool:
    return _OWN.fullmatch(name) is not None


def parse_macro_dump(text: str) -> tuple[tuple[str, str], ...]:
    """Macros with their values, of the #define directives that a compiler prints for `-dM`."""
    return tuple((name, value.strip()) for name, value in _LISTED.findall(text))


def sorted_out(macros: Iterable[tuple[str, str]], said_by: str) -> Predefined:
    """Of what a compiler says, as name (with its parameters, if it has any) and text."""
    numbers: list[tuple[str, str]] = []
    others: list[str] = []
    for name, value in macros:
        plain = name.partition("(")[0]
        if plain == name not in OF_HEADERS and (not value or _NUMBER.fullmatch(value)):
            numbers.append((name, value))
        elif plain not in OF_HEADERS:
            others.append(plain)
    return Predefined(tuple(numbers), said_by, tuple(others))


def assume_predefined(language: str, capability: int = 0, why: str = "no compiler was asked") -> Predefined:
    """Where nobody can be asked."""
    arch = capability or 90
    if language == "cuda":
        versions = (("MAJOR", 13), ("MINOR", 0), ("BUILD", 0))
        macros = [("__CUDACC__", "1"), ("__CUDACC_RTC__", "1"), ("__CUDA_ARCH__", f"{arch}0")]
        macros += [("__cplusplus", "201703L"), *((f"__CUDACC_VER_{n}__", str(v)) for n, v in versions)]
        return Predefined(tuple(macros), f"assumed, since {why}: NVRTC, C++17, sm_{arch}")
    if language == "hip":
        names = ("__HIPCC__", "__HIP__", "__HIP_DEVICE_COMPILE__", "__HIP_PLATFORM_AMD__")
        macros = [*((name, "1") for name in names), ("__cplusplus", "201703L")]
        return Predefined(tuple(macros), f"assumed, since {why}: hipcc for AMD, C++17")
    if language == "opencl":
        return opencl_predefined(120, (), f"assumed, since {why}: OpenCL C 1.2")
    return Predefined((), f"assumed, since {why}")


def opencl_predefined(
    version: int, extensions: Iterable[str], said_by: str, c_version: int = 120
) -> Predefined:
    """Of a device: 300 for OpenCL 3.0; `c_version`: of the language, 1.2 unless -cl-std says otherwise."""
    known = [n for n in (100, 110, 120, 200, 300) if n <= version]
    macros = [("__OPENCL_VERSION__", str(version)), ("__OPENCL_C_VERSION__", str(c_version))]
    macros += [(f"CL_VERSION_{n // 100}_{n // 10 % 10}", str(n)) for n in known]
    macros += [("__ENDIAN_LITTLE__", "1"), *((name, "1") for name in extensions)]
    return Predefined(tuple(macros), said_by)


_OPENCL = re.compile(r"OpenCL (\d)\.(\d)")
_OPENCL_C = re.compile(r"-cl-std=CL(\d)\.(\d)")
# PoCL's compiler tells which functions of its own it has; of these a kernel may use some.
_BUILTINS = (
    "nontemporal_load nontemporal_store prefetch shufflevector convertvector expect assume assume_aligned "
    "unreachable popcount clz ctz reduce_add reduce_min reduce_max"
)
_CLANG = (
    ("__has_builtin(name)", "TUNESMITH_HAS_##name"),
    *((f"TUNESMITH_HAS___builtin_{name}", "1") for name in _BUILTINS.split()),
)


def opencl_of(driver: str, flags: str, extensions: Iterable[str] | None = None) -> Predefined:
    """Of a device by what its driver says of it; `extensions` None: nobody asked."""
    said, standard = _OPENCL.search(driver), _OPENCL_C.search(flags)
    version = int(said[1]) * 100 + int(said[2]) * 10 if said else 120
    c_version = int(standard[1]) * 100 + int(standard[2]) * 10 if standard else min(120, version)
    who = f"{'the platform' if said else 'assumed'}: OpenCL {version / 100:.1f}, C {c_version / 100:.1f}"
    found = opencl_predefined(version, extensions or (), who, c_version)
    fast = (("__FAST_RELAXED_MATH__", "1"),) if "-cl-fast-relaxed-math" in flags else ()
    return Predefined((*found.macros, *fast, *(_CLANG if "PoCL" in driver else ())), who)


# What a target that does not have them is known to lack.
ABSENT = re.compile(
    r"__CUDA\w*|__NVCC__|__HIP\w*|__AMDGCN\w*|__gfx\w+|USE_ROCM|WITH_\w+|CUDA_VERSION|CUDART_\w+|HIP_VERSION"
    r"|__OPENCL\w*|__opencl_c_\w+|__has_(?!include|embed)\w+|cl_\w+|CL_VERSION_\w+|__FAST_RELAXED_MATH__|_MSC_VER|_WIN32|_WIN64|NDEBUG"
)
# Names without a leading underscore that some compiler, or some build, defines.
PLAIN = re.compile(
    r"linux|unix|i386|mips|sparc|(?:POCL|LLVM|CLANG|SPIR|IMG|MAX_WORK|MAX_KERNEL)_\w+|INTTYPE|ALIGN[48]"
    r"|kernel_exec|assert"
)
# What has another value in another place, at another time, or by another compiler.
PLACES = re.compile(
    r"__(?:LINE|FILE|FILE_NAME|BASE_FILE|COUNTER|INCLUDE_LEVEL|DATE|TIME|TIMESTAMP)__|__CUDACC\w*|__CUDART\w*"
    r"|__CUDA_(?:ARCH|API)\w*|__CUDA_\w*VERSION\w*|__NVCC\w*|__cplusplus|__HIPCC__|__HIP_(?:PLATFORM|ARCH)\w*"
    r"|__HIP_DEVICE_COMPILE__|__(?:GNUC|clang|POCL|gfx|AMDGCN|AVX|FMA|SSE|ARM|x86_64|aarch64|CLANG)\w*"
    r"|__NV_CL_C_VERSION|_WIN32|_WIN64|_MSC_VER|(?:CUDA|CUDART|HIP)_VERSION|__OPENCL_(?:C_)?VERSION__"
    r"|CL_VERSION_\w+|cl_khr_\w+|__opencl_c_\w+|__IMAGE_SUPPORT__|__ENDIAN_LITTLE__|__FAST_RELAXED_MATH__"
)


def asked_names(texts: Iterable[str]) -> tuple[str, ...]:
    """The names in sources that a compiler may have defined: those in conditions, and those only it has."""
    found: set[str] = set()
    for text in texts:
        try:
            tokens = lex(text)
        except Unreadable:
            continue  # which is said where it is read
        for place, token in enumerate(tokens):
            if token.kind == "word" and is_compilers(token.text):
                found.add(token.text)
            elif token.kind == "directive":
                word, rest = first_word(token.text)
                following = tokens[place + 1].text.split() if place + 1 < len(tokens) else []
                is_guard = word == "ifndef" and following == ["define", rest]
                inside = set(identifiers_in(rest)) if word != "include" else set()
                asks = word in _CONDITIONS and not is_guard
                found |= {name for name in inside if asks or is_compilers(name)}
    return tuple(sorted(found - OF_HEADERS - {"defined"}))


# -- of standard headers ------------------------------------------------------------------------------------

_BITS = (8, 16, 32, 64)


def _signed_limits(name: str, bits: int) -> dict[str, str]:
    most, suffix = 2 ** (bits - 1) - 1, "LL" if bits == 64 else ""
    return {f"{name}_MAX": f"{most}{suffix}", f"{name}_MIN": f"(-{most}{suffix} - 1)"}


def _unsigned_limit(bits: int) -> str:
    return f"{2**bits - 1}{'ULL' if bits == 64 else 'U' if bits == 32 else ''}"


STDINT: Mapping[str, str] = {
    **{name: value for bits in _BITS for name, value in _signed_limits(f"INT{bits}", bits).items()},
    **{f"UINT{bits}_MAX": _unsigned_limit(bits) for bits in _BITS},
    "SIZE_MAX": _unsigned_limit(64),
    # With a parameter: a number of that type, or a wider one.
    **{f"INT{bits}_C(value)": "value" for bits in (8, 16, 32)},
    "INT64_C(value)": "value##LL",
    **{f"UINT{bits}_C(value)": "value" for bits in (8, 16)},
    "UINT32_C(value)": "value##U",
    "UINT64_C(value)": "value##ULL",
}
LIMITS: Mapping[str, str] = {
    "CHAR_BIT": "8",
    **_signed_limits("SCHAR", 8), **_signed_limits("CHAR", 8), **_signed_limits("SHRT", 16),
    **_signed_limits("INT", 32),
    **_signed_limits("LLONG", 64),
    "UCHAR_MAX": _unsigned_limit(8), "USHRT_MAX": _unsigned_limit(16), "UINT_MAX": _unsigned_limit(32),
    "ULLONG_MAX": _unsigned_limit(64),
}  # fmt: skip
FLOATS: Mapping[str, str] = {
    "FLT_RADIX": "2", "FLT_MANT_DIG": "24", "FLT_DIG": "6", "FLT_MIN_EXP": "(-125)", "FLT_MAX_EXP": "128",
    "FLT_MAX": "3.402823466e+38F", "FLT_MIN": "1.175494351e-38F", "FLT_EPSILON": "1.192092896e-07F",
    "FLT_TRUE_MIN": "1.401298464e-45F",
    "DBL_MANT_DIG": "53", "DBL_DIG": "15", "DBL_MIN_EXP": "(-1021)", "DBL_MAX_EXP": "1024",
    "DBL_MAX": "1.7976931348623157e+308", "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
}  # fmt: skip
MATH: Mapping[str, str] = {
    "M_E": "2.7182818284590452354", "M_LOG2E": "1.4426950408889634074", "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942", "M_LN10": "2.30258509299404568402", "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923", "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154", "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390", "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
}  # fmt: skip
# By the header that has them, under both of its names.
BY_HEADER: Mapping[str, Mapping[str, str]] = {
    "stdint.h": STDINT, "cstdint": STDINT, "limits.h": LIMITS, "climits": LIMITS,
    "float.h": FLOATS, "cfloat": FLOATS, "math.h": MATH, "cmath": MATH,
}  # fmt: skip

# Any of these may compile what is read here: a condition must mean the same to all of them.
_VERSIONS = ((12, 0), (12, 4), (12, 8), (12, 9), (13, 0), (13, 1), (13, 4), (14, 0))


Toolkit = Literal["unknown", "absent", "there"]


class HeaderAsked(Unreadable):
    """A condition that only the toolkit's headers can answer."""


@dataclass(frozen=True)
class Preprocessed:
    """`#pragma` directives are still among the tokens, nothing else of the preprocessor is."""

    tokens: tuple[Token, ...]
    includes: tuple[str, ...]
    problems: tuple[str, ...]  # what could not be followed, in words with line numbers
    decided: tuple[str, ...] = ()  # conditions on what the compiler defines, and how each came out, in words

    @property
    def parse_obstacle(self) -> str | None:
        """Why a grammar should not be shown it."""
        return find_parse_obstacle(self.tokens)


def preprocess(
    text: str,
    language: str,
    defines: Iterable[tuple[str, str]] = (),
    headers: Iterable[tuple[str, str]] = (),
    toolkit: Toolkit = "unknown",
    predefined: Predefined | None = None,
) -> Preprocessed:
    """Unknown identifiers in an #if count as 0, as the language says. `headers`: the user's own, as included
    -> text; they are put in place, on the line that includes them. `toolkit`: whether its headers are there
    to tell their version; where nobody knows, a condition on it is refused. `predefined`: what the compiler
    defines; None: what is assumed of the language."""
    target = predefined if predefined is not None else assume_predefined(language)
    work = Preprocessor(language != "opencl", dict(headers), toolkit, target)  # OpenCL includes nothing of it
    for name, value in defines:
        work.define(f"{name} {value}", 0)
    for token in lex(text):
        work.take(token)
    work.flush()
    if work.open_conditions:
        work.problems.append(f"line {work.open_conditions[-1].line}: this #if has no #endif")
    found = (tuple(work.done), tuple(dict.fromkeys(work.includes)), tuple(work.problems))
    return Preprocessed(*found, tuple(dict.fromkeys(work.decided)))


def expand_where_readable(text: str, language: str) -> Sequence[Token]:
    """With macros expanded; as it stands where that cannot be read."""
    try:
        return preprocess(text, language).tokens if "#" in text else lex(text)
    except Unreadable:
        return lex(text)


@dataclass
class _ConditionalPart:
    line: int
    on: bool
    taken: bool  # some branch was on already, or the whole of it is inside text that is off


class Preprocessor:
    def __init__(
        self,
        knows_headers: bool,
        headers: Mapping[str, str] | None = None,
        toolkit: Toolkit = "unknown",
        predefined: Predefined = NOTHING,
    ) -> None:
        self._knows_headers, self._toolkit = knows_headers, toolkit
        self._headers = headers or {}
        self._inside: list[str] = []  # headers that are being read, the innermost last
        self._once: set[str] = set()
        self.done: list[Token] = []
        self.includes: list[str] = []
        self.problems: list[str] = []
        self.open_conditions: list[_ConditionalPart] = []
        self._macros: dict[str, Macro] = {}
        self._waiting: list[Token] = []  # not yet expanded: a macro's arguments may go over lines
        self.decided: list[str] = []
        self._predefined = predefined
        for name, value in predefined.macros:
            self.define(f"{name} {value}", 0)
        self._others = set(predefined.others)  # macros of the compiler's whose text is not known
        self._given = dict(self._macros)  # as the compiler defines them
        self._own_versions = {  # macros that tell the compiler's version
            name: macro for name, macro in self._macros.items() if name in TELL_VERSION
        }

    def take(self, token: Token) -> None:
        if token.kind != "directive":
            if not self.open_conditions or self.open_conditions[-1].on:
                self._waiting.append(token)
            return
        word, rest = first_word(token.text)
        if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
            self.flush()
            self._condition(word, rest, token.line)
        elif not self.open_conditions or self.open_conditions[-1].on:
            self.flush()
            self._directive(word, rest, token)

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if any(token.kind == "word" and token.text in self._macros for token in waiting):
            waiting = Expansion(self._macros, MAX_TOKENS - len(self.done)).expand(waiting, frozenset(), 0)
        self.done.extend(_convert_pragma_operators(waiting))

    def _directive(self, word: str, rest: str, token: Token) -> None:
        if word == "define":
            self.define(rest, token.line)
        elif word == "undef":
            self._macros.pop(rest, None)
            self._others.discard(rest)
        elif word == "include":
            if (header := rest.strip('<>" \t')) in self._headers:
                self._include_header(header, token.line)
                return
            self.includes.append(rest)
            for name, value in BY_HEADER.get(rest.strip('<>" \t'), {}).items():
                if self._knows_headers and name.partition("(")[0] not in self._macros:
                    self.define(f"{name} {value}", token.line)
        elif word == "pragma":
            if rest != "once":
                self.done.append(token)
            elif self._inside:
                self._once.add(self._inside[-1])
        elif word == "error":
            self.problems.append(f"line {token.line}: the file says #error {rest}")

    def _include_header(self, name: str, line: int) -> None:
        if name in self._once:
            return
        if len(self._inside) > MAX_NESTING:
            raise Unreadable(f'"{name}" is included by what it includes', line)
        self._inside.append(name)
        outside = [*map(id, self.open_conditions)]
        for token in lex(self._headers[name]):
            self.take(replace(token, line=line))
        self.flush()
        self._inside.pop()
        if [*map(id, self.open_conditions)] != outside:
            raise Unreadable(f'an #if in "{name}" does not end there', line)

    def define(self, rest: str, line: int) -> None:
        macro = read_macro(rest, line)
        if isinstance(macro, str):
            self.problems.append(f"line {line}: {macro}")
        else:
            self._macros[macro.name] = macro

    def _condition(self, word: str, rest: str, line: int) -> None:
        if word in ("if", "ifdef", "ifndef"):
            outer = not self.open_conditions or self.open_conditions[-1].on  # inside what is off all is off
            on = outer and self._holds(word, rest, line)
            self.open_conditions.append(_ConditionalPart(line, on, on or not outer))
            return
        if not self.open_conditions:
            self.problems.append(f"line {line}: this #{word} has no #if")
            return
        condition = self.open_conditions[-1]
        if word == "endif":
            self.open_conditions.pop()
        elif condition.taken:
            condition.on = False
        else:
            condition.on = condition.taken = word == "else" or self._holds("if", rest, line)

    def _holds(self, word: str, rest: str, line: int) -> bool:
        holds = self._decision(word, rest, line)
        if said := self._on_compiler(rest):
            where = f"line {line}, in {self._inside[-1]}" if self._inside else f"line {line}"
            came = "holds" if holds else "does not hold"
            self.decided.append(f"{where}: #{word} {' '.join(rest.split())[:80]} {came}: {', '.join(said)}")
        return holds

    def _on_compiler(self, rest: str) -> list[str]:
        """What a condition asks of the compiler, by itself or by macros in it, with the answers."""
        return [
            f"{name} is {' '.join(map(str, self._given[name].body)) or 'defined'}"
            if name in self._given
            else f"{name} is {'defined' if name in self._others else 'not defined'}"
            for name in self._asked_for(lex(rest))
            if self._predefined.knows(name) and self._macros.get(name) is self._given.get(name)
        ]

    def _asked_for(self, tokens: Iterable[Token]) -> dict[str, None]:
        """The names in a condition, and in the macros in it."""
        pending, known = [t.text for t in tokens if t.kind == "word"], dict[str, None]()
        while pending:
            name = pending.pop(0)
            macro = self._macros.get(name)
            if name in known:
                continue
            known[name] = None
            if macro is not None and self._given.get(name) is not macro:
                pending += [t.text for t in macro.body if t.kind == "word"]
        return known

    def _decision(self, word: str, rest: str, line: int) -> bool:
        if self._own_versions and self._toolkit == "unknown":
            for token in lex(rest, line):
                if token.text in OF_HEADERS and token.text not in self._macros:
                    raise HeaderAsked(f"#{word} {rest[:60]} depends on what a header defines", line)
        there = OF_HEADERS if self._own_versions and self._toolkit == "there" else frozenset[str]()
        there |= self._others
        if word != "if":
            return (first_word(rest)[0] in {*self._macros, *there}) == (word == "ifdef")
        tokens = decided_defined(lex(rest, line), {*self._macros, *there})
        for token in tokens:
            if token.kind == "word" and token.text in self._others and token.text not in self._macros:
                raise Unreadable(f"#if {rest[:60]} asks for {token.text}, which a header defines", line)
        tells = any(name in TELL_VERSION or name in OF_HEADERS for name in self._asked_for(tokens))
        try:
            ways = self._macros_by_version() if tells else (self._macros,)
            found = {self._value(tokens, macros) for macros in ways}
        except Unreadable as trouble:
            return self._report_undecided(rest, line, trouble.reason)
        if len(found) > 1:
            raise Unreadable(f"#if {rest[:60]} depends on which version of the compiler it is", line)
        return found.pop()

    def _report_undecided(self, rest: str, line: int, reason: str) -> bool:
        self.problems.append(f"line {line}: #if {rest[:60]} was taken as false: {reason}")
        return False

    def _value(self, tokens: list[Token], macros: Mapping[str, Macro]) -> bool:
        return ConditionReader(Expansion(macros, MAX_TOKENS).expand(tokens, frozenset(), 0)).value() != 0

    def _macros_by_version(self) -> Iterator[Mapping[str, Macro]]:
        """The macros as each version of the compiler has them, unless the text defines these itself."""
        if not self._own_versions or any(self._macros.get(n) is not m for n, m in self._own_versions.items()):
            yield self._macros
            return
        for major, minor in dict.fromkeys((*_VERSIONS, *self._asked_version())):
            numbers = dict(zip(TELL_VERSION, (major, minor, 0), strict=True))
            found = {name: read_macro(f"{name} {numbers[name]}") for name in self._own_versions}
            if self._toolkit == "there":
                version = {name: read_macro(f"{name} {major * 1000 + minor * 10}") for name in OF_HEADERS}
                found = {**version, **found}
            known = {name: m for name, m in found.items() if isinstance(m, Macro)}
            yield {
                **{name: m for name, m in known.items() if name in OF_HEADERS},
                **self._macros,
                **{name: m for name, m in known.items() if name not in OF_HEADERS},
            }

    def _asked_version(self) -> Iterator[tuple[int, int]]:
        found = [self._own_versions.get(name) for name in TELL_VERSION[:2]]
        texts = ["".join(map(str, macro.body)) if macro else "0" for macro in found]
        if all(text.isdigit() for text in texts):
            yield int(texts[0]), int(texts[1])


def _convert_pragma_operators(tokens: list[Token]) -> list[Token]:
    """`_Pragma("unroll")`, as macros write it, as the directive it stands for."""
    if not any(token.text == "_Pragma" for token in tokens):
        return tokens
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        group = [token.text for token in tokens[at : at + 4]]
        if group[0] == "_Pragma" and len(group) == 4 and group[1] == "(" and group[3] == ")":
            done.append(replace(tokens[at], kind="directive", text=f"pragma {group[2].strip(chr(34))}"))
            at += 4
        else:
            done.append(tokens[at])
            at += 1
    return done


def decided_defined(
    tokens: Sequence[Token], macros: Collection[str], asks: Callable[[str], bool] = lambda _name: False
) -> list[Token]:
    """`defined X` and `defined(X)` as 1 or 0, before anything is expanded; left where `asks` says so."""
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "defined":
            start, group = at, [t.text for t in tokens[at + 1 : at + 4]]
            if len(group) == 3 and group[0] == "(" and group[2] == ")":
                name, at = group[1], at + 4
            else:
                name, at = (group[0] if group else ""), at + 2
            if asks(name):
                done += tokens[start:at]
                continue
            done.append(replace(token, kind="number", text="1" if name in macros else "0"))
        else:
            done.append(token)
            at += 1
    return done


# -- A text of which some macros have known values: the conditions that these decide are gone from it.
#
# What stays is left to the letter, comments included. A name that nobody defines here is no 0: a compiler may
# define it, or a header.


_INT = 1 << 31


def define_macro_values(text: str, values: Mapping[str, int], early: Collection[str] = ()) -> str:
    """With `#define NAME value` where the text gave a known name its default; before all code where it gives
    none there, or uses the name before that, and for the names that must be known `early`."""
    work = _Resolver(text, values, early)
    found = list(find_directives(text))
    at = 0
    for number, directive in enumerate(found):
        start = text.rfind("\n", 0, directive.start) + 1
        end = text.find("\n", directive.end)
        end = len(text) if end < 0 else end + 1
        work.code(text[at:start])
        work.take(directive, text[start:end], found[number + 1] if number + 1 < len(found) else None)
        at = end
    work.code(text[at:])
    return work.text()


@dataclass
class _BranchInText:
    live: bool  # what stands here now may be compiled
    taken: bool  # some branch surely is: the later ones are gone
    written: bool = False  # its #if stays in the text


@dataclass
class _Resolver:
    source: str
    values: Mapping[str, int]
    early: Collection[str] = ()
    pieces: list[str] = field(default_factory=list)
    conditions: list[_BranchInText] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.macros = _macros_of(self.values)
        self.seen = set(self.early)  # words of the code so far
        self.defined: set[str] = set()  # known names that the text defines by now
        self.remark = ""  # of a condition that holds, for the line below it

    def code(self, text: str) -> None:
        if not self._live or not text:
            return
        self.seen.update(identifiers_in(text))
        if self.remark:
            indent = re.match(r"\s*\n|[ \t]*", text)
            self.pieces.append(f"{indent.group().strip(chr(10)) if indent else ''}{self.remark}\n")
            self.remark = ""
        self.pieces.append(text)

    @property
    def _live(self) -> bool:
        return all(condition.live for condition in self.conditions)

    @property
    def _is_unconditional(self) -> bool:
        """Whether what stands here is compiled in every configuration."""
        return not any(condition.written for condition in self.conditions)

    def take(self, directive: Directive, raw: str, following: Directive | None) -> None:
        word, rest = directive.word, directive.rest
        if word in ("if", "ifdef", "ifndef"):
            self._open(word, rest, raw, following)
        elif word in ("elif", "else", "endif") and self.conditions:
            self._go_on(word, rest, raw)
        elif self._live:
            self.remark = ""
            if word in ("define", "undef"):
                self._define(word, rest)
            self.seen.update(identifiers_in(rest))
            self.pieces.append(raw)

    def _define(self, word: str, rest: str) -> None:
        macro = read_macro(rest) if word == "define" else None
        name = first_word(rest)[0]
        if isinstance(macro, Macro) and self._is_unconditional and name not in self.macros:
            self.macros[name] = macro
        elif name not in self.values:
            self.macros.pop(name, None)  # one of several, and which is not known
            self.seen.add(name)

    def _open(self, word: str, rest: str, raw: str, following: Directive | None) -> None:
        if not self._live:
            self.conditions.append(_BranchInText(live=False, taken=True))
            return
        name = first_word(rest)[0]
        if word == "ifndef" and name in self.values:
            self._settle(name, following)
        holds, left = self._decide_condition(word, rest)
        if holds is None:
            self.remark = ""
            self.pieces.append(raw if left == rest else _replace_condition(raw, rest, left))
        elif holds:
            self.remark = _trailing_comment(raw).strip()
        self.conditions.append(_BranchInText(holds is not False, holds is True, holds is None))

    def _settle(self, name: str, following: Directive | None) -> None:
        """A known name's default gives way to its value, unless the name was used before it."""
        if following is None or following.word != "define" or first_word(following.rest)[0] != name:
            return
        if name in self.seen or name in self.defined or not self._is_unconditional:
            return
        comment = _trailing_comment(self.source[following.start : following.end])
        self.pieces.append(f"#define {name} {format_macro_value(self.values[name])}{comment}\n")
        self.defined.add(name)

    def _go_on(self, word: str, rest: str, raw: str) -> None:
        condition = self.conditions.pop()
        outer = self._live
        if word == "endif":
            if condition.written:
                self.pieces.append(raw)
            self.remark = ""
            return
        holds, left = (True, "") if word == "else" else (None, rest)
        if not outer or condition.taken:
            holds = False
        elif word == "elif":
            holds, left = self._decide_condition("if", rest)
        if holds is None:
            said = raw if left == rest else _replace_condition(raw, rest, left)
            self.pieces.append(said if condition.written else said.replace("elif", "if", 1))
            condition.written = True
        elif holds and condition.written:
            self.pieces.append(raw if word == "else" else f"#else{_trailing_comment(raw)}\n")
        self.remark = _trailing_comment(raw).strip() if holds and not condition.written else ""
        condition.live = holds is not False
        condition.taken = condition.taken or holds is True
        self.conditions.append(condition)

    def _decide_condition(self, word: str, rest: str) -> tuple[bool | None, str]:
        if word == "if":
            return _simplify_condition(rest, lex(rest), self._value)
        known = first_word(rest)[0] in self.macros or None
        return (known if word == "ifdef" else False if known else None), rest

    def _value(self, tokens: Sequence[Token]) -> bool | None:
        asked = decided_defined(tokens, self.macros, lambda name: name not in self.macros)
        if any(token.text == "defined" for token in asked):
            return None
        value = value_of(asked, self.macros) if asked else 0
        return None if value is None else bool(value)

    def text(self) -> str:
        """The known names that have not found their place stand before all else."""
        whole = "".join(self.pieces)
        late = [name for name in self.values if name not in self.defined]
        return "".join(f"#define {name} {format_macro_value(self.values[name])}\n" for name in late) + whole


def format_macro_value(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


def _macros_of(values: Mapping[str, int]) -> dict[str, Macro]:
    read = (read_macro(f"{name} {format_macro_value(value)}") for name, value in values.items())
    return {macro.name: macro for macro in read if isinstance(macro, Macro)}


def value_of(tokens: Sequence[Token], macros: Mapping[str, Macro]) -> int | None:
    """None: it depends on names that no macro here has."""
    try:
        left = expand_macro_uses(tokens, macros)
        return None if any(t.kind == "word" for t in left) else ConditionReader(left).value()
    except Unreadable:
        return None


def _simplify_condition(
    text: str, tokens: Sequence[Token], value: Callable[[Sequence[Token]], bool | None]
) -> tuple[bool | None, str]:
    """Whether it holds, and what of it is left to ask; parts joined by && and || one by one."""
    for mark, settles in (("||", True), ("&&", False)):
        parts = _split_at_mark(tokens, mark)
        if len(parts) == 1:
            continue
        left: list[str] = []
        for part in parts:
            holds, said = _simplify_condition(text, part, value)
            if holds is settles:
                return settles, ""
            left += [said] if holds is None else []
        if left == [_source_slice(text, part) for part in parts]:
            return None, _source_slice(text, tokens)
        return (None, f" {mark} ".join(left)) if left else (not settles, "")
    if tokens and tokens[0].text == "(" and closing_bracket(tokens, 0) == len(tokens) - 1:
        holds, said = _simplify_condition(text, tokens[1:-1], value)
        single = holds is None and not any(t.text in ("||", "&&", "?", ",") for t in lex(said))
        return holds, said if single else f"({said})"
    return value(tokens), _source_slice(text, tokens)


def _split_at_mark(tokens: Sequence[Token], mark: str) -> list[list[Token]]:
    """At a mark outside brackets; a choice `a ? b : c` is of one piece."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == "?":
            return [list(tokens)]
        if depth == 0 and token.text == mark:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _source_slice(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].offset : tokens[-1].offset + len(tokens[-1].text)] if tokens else ""


def _replace_condition(raw: str, rest: str, left: str) -> str:
    """A directive that asks less, with the comment behind it."""
    word = re.match(r"\s*#\s*\w+", raw)
    return raw.replace(rest, left) if raw.count(rest) == 1 else f"{word.group() if word else '#if'} {left}\n"


def _trailing_comment(raw: str) -> str:
    """The comment behind a directive on its line, with two blanks before it."""
    found = [match.group() for match in CPP.finditer(raw) if match.lastgroup == "comment"]
    return f"  {found[-1].strip()}" if found and "\n" not in found[-1] else ""


# -- macros that are numbers by now ---------------------------------------------------------------------

_COMPARING = ("==", "!=", "<", ">", "<=", ">=", "&&", "||", "!")


def fold_macro_bodies(text: str, values: Mapping[str, int]) -> str:
    """With numbers for the macros whose bodies are arithmetic over known values."""
    macros = _macros_of(values)
    pieces: list[str] = []
    at = depth = 0
    for directive in find_directives(text):
        depth += (directive.word in ("if", "ifdef", "ifndef")) - (directive.word == "endif")
        macro = read_macro(directive.rest) if directive.word == "define" and depth == 0 else None
        if not isinstance(macro, Macro) or macro.parameters is not None or macro.name in macros:
            continue
        macros[macro.name] = macro
        value = value_of(macro.body, macros) if len(macro.body) > 1 and _is_int(macro.body) else None
        if value is not None and 0 <= value < _INT:
            comment = _trailing_comment(text[directive.start : directive.end])
            pieces += [text[at : directive.start], f"#define {macro.name} {value}{comment}"]
            at = directive.end
    return "".join([*pieces, text[at:]])


def _is_int(body: Sequence[Token]) -> bool:
    """Whether a macro's arithmetic is that of plain ints: a comparison is a bool in C++, 1u is unsigned."""
    plain = (t.text.isdigit() if t.kind == "number" else t.kind in ("word", "mark") for t in body)
    if not all(plain):
        return False
    while body and body[0].text == "(" and closing_bracket(body, 0) == len(body) - 1:
        body = body[1:-1]
    depth, question = 0, None
    for at, token in enumerate(body):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == "?":
            question = at
            break
    if question is None:
        return not any(token.text in _COMPARING for token in body)
    nested = depth = 0
    for at in range(question + 1, len(body)):
        mark = body[at].text
        depth += (mark == "(") - (mark == ")")
        nested += (mark == "?") - (mark == ":") if depth == 0 else 0
        if nested < 0:
            return _is_int(body[question + 1 : at]) and _is_int(body[at + 1 :])
    return False


# -- How the compiler at hand reads a text.


class Undecidable(Unreadable):
    """A condition that a compiler may decide otherwise."""


def decide_conditions(
    tokens: Iterable[Token],
    target: Predefined,
    may_differ: Callable[[str], bool],
    defines: Iterable[tuple[str, str]] = (),
    headers: Iterable[tuple[str, str]] = (),
    may_stay: Callable[[Macro], bool] = lambda _macro: False,
) -> tuple[Token, ...]:
    """What is left where the compiler defines what `target` says: no macro and no condition. `#include`,
    `#line` and `#pragma` stay. Of `headers`, the user's own as included -> text, the macros are taken; what
    they ask for stays defined where `may_stay` says so. `may_differ`: whether compilers may define a name
    that `target` does not have; no condition may ask for one. Raises Unreadable."""
    work = _Deciding(target, may_differ, dict(headers), may_stay)
    for name, value in defines:
        work.define(f"{name} {value}", 0)
    for token in tokens:
        work.take(token)
    return work.whole()


class _Deciding(Preprocessor):
    def __init__(
        self,
        target: Predefined,
        may_differ: Callable[[str], bool],
        headers: Mapping[str, str],
        may_stay: Callable[[Macro], bool],
    ) -> None:
        super().__init__(True, headers, "there", target)
        self._may_differ, self._may_stay = may_differ, may_stay
        self._header_words = frozenset[str]().union(*map(_words_of, headers.values()))

    def whole(self) -> tuple[Token, ...]:
        """All that was taken."""
        self.flush()
        if self.open_conditions:
            raise Unreadable("this #if has no #endif", self.open_conditions[-1].line)
        if self.problems:
            line, _, words = self.problems[0].removeprefix("line ").partition(": ")
            raise Unreadable(words, int(line))
        return tuple(self.done)

    def take(self, token: Token) -> None:
        if not self._inside or token.kind == "directive":
            super().take(token)

    def _directive(self, word: str, rest: str, token: Token) -> None:
        if not self._inside and (word == "include" or self._is_for_headers(word, rest)):
            self.done.append(token)
        if word == "error" and not self._inside:
            raise Unreadable(f"the file says #error {rest}", token.line)
        if word == "line":
            self.done.append(token)
        elif word == "pragma" and rest.startswith("unroll"):
            count = Expansion(self._macros, MAX_TOKENS).expand(lex(rest[6:], token.line), frozenset(), 0)
            self.done.append(replace(token, text=" ".join(["pragma unroll", *map(str, count)])))
        elif word != "error":
            super()._directive(word, rest, token)

    def _is_for_headers(self, word: str, rest: str) -> bool:
        if word == "undef":
            return rest in self._header_words and rest in self._macros and self._may_stay(self._macros[rest])
        macro = read_macro(rest) if word == "define" else ""
        return isinstance(macro, Macro) and macro.name in self._header_words and self._may_stay(macro)

    def _include_header(self, name: str, line: int) -> None:
        """Its macros alone. It is the user's own: what cannot be followed there defines none."""
        if name in self._once or len(self._inside) > MAX_NESTING:
            return
        before = len(self.done), len(self.problems), len(self.open_conditions)
        self._inside.append(name)
        with suppress(Unreadable):
            for token in _directives_of(self._headers[name]):
                self.take(replace(token, line=line))
        self._inside.pop()
        for said, count in zip((self.done, self.problems, self.open_conditions), before, strict=True):
            del said[count:]  # type: ignore[attr-defined]

    def _holds(self, word: str, rest: str, line: int) -> bool:
        if not self._inside:
            tokens = lex(rest, line)
            if word == "if":
                tokens = decided_defined(tokens, self._macros, self._is_open)
                tokens = Expansion(self._macros, MAX_TOKENS).expand(tokens, frozenset(), 0)
            if strange := next((t.text for t in tokens if t.kind == "word" and self._is_open(t.text)), None):
                words = f"#{word} {rest[:60]} asks for {strange}, which compilers define as they like"
                raise Undecidable(f"{words}: ask for the template's own parameters and macros", line)
        return self._decision(word, rest, line)

    def _is_open(self, name: str) -> bool:
        return name not in self._macros and self._may_differ(name)

    def _report_undecided(self, rest: str, line: int, reason: str) -> bool:
        if self._inside:
            return super()._report_undecided(rest, line, reason)
        raise Undecidable(f"#if {rest[:60]} cannot be decided: {reason}", line)


@lru_cache(maxsize=512)
def _directives_of(header: str) -> tuple[Token, ...]:
    return tuple(token for token in lex(header) if token.kind == "directive")


@lru_cache(maxsize=512)
def _words_of(header: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d]\w*", header))
