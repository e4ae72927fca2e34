"""Whether a source that the user did not write may be compiled: only what is known as device code may.

A text is read in every way that a compiler may read it, macros expanded; each reading is judged word by word,
and in C, which may run on the host's CPU, by its syntax tree. What the original has, its author may keep.
Whether a kernel is right is the oracle's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tunesmith.csource.lex import CPP, Token, first_word, joined, layout, lex
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.preprocess import Reading, readings
from tunesmith.problem import languages
from tunesmith.problem.device_words import CUDA, HIP, OPENCL, DeviceWords, Refusal, Rule, UserWords, listed
from tunesmith.problem.domain import read_only_arguments
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, builds_of, users_texts
from tunesmith.problem.vetting_items import kept_by
from tunesmith.problem.vetting_waits import is_for_older, judge_waits
from tunesmith.problem.vetting_words import UnitWords, judge_unit

_DIRECTIVES = listed("define undef if ifdef ifndef elif else endif pragma error warning line include")
_READS_FILES = listed("__has_include __has_include_next __has_embed")
_WORDS = re.compile(r"[^\W\d]\w*")
_NAMED = re.compile(r'(?:<[^>\n]+>|"[^"\n]+")')
_DEFINED = re.compile(r"-D\s*(\w+)(?:=(\S+))?")
_LINE = re.compile(r'line\s+(\d+)(?:\s+"[\w.+-]*")?')
_RAW_STRING = re.compile(r"(?:u8|[uUL])?R\"")
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_MOST = 500_000  # characters


def vet(
    source: str,
    original: str,
    language: str,
    headers: Sequence[str] = (),
    overlapping: Sequence[str] = (),
    read_only: frozenset[tuple[str, int]] = frozenset(),
) -> Refusal | None:
    """Why a source must not be compiled; None where it may. `original` is what it was made from, `headers`
    are the texts of the user's own, `overlapping` the entries that are launched with `pdl = true`,
    `read_only` arguments, by entry and position, that no launch may write."""
    found = vetted(source, original, language, tuple(headers), (), tuple(overlapping), read_only)
    return found if isinstance(found, Refusal) else None


@lru_cache(maxsize=256)
def vetted(
    source: str,
    original: str,
    language: str,
    headers: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    overlapping: tuple[str, ...] = (),
    read_only: frozenset[tuple[str, int]] = frozenset(),
) -> str | Refusal:
    """What may be compiled where a kernel runs on the host's CPU: the text with its macros expanded, line by
    line, exactly as it was judged. Of other languages the text as it was."""
    rules = languages.named(language)
    is_c = rules.is_native
    words = OPENCL if is_c else HIP if language == languages.HIP.name else CUDA
    user = _user_words(original, headers)
    moved: list[tuple[int, int]] = []  # a line that says #line, and what it says
    try:
        text = _plain(source)
        tokens = lex(text)
        moved += _directives(tokens, words, user, is_c)
        if not rules.is_c_family:
            return source
        given = [(name, value or "1") for name, value in _DEFINED.findall(" ".join(flags))]
        found = readings(tokens, words.is_foreign, given)
        for reading in found:
            if used := _READS_FILES & {word for asked, _ in reading.conditions for word in asked.split()}:
                raise Refusal("directive", 0, f"{min(used)} reads files and is not allowed in a template")
            judge_unit(UnitWords.of(reading.tokens, read_only), words, user, language)
            if overlapping and not is_for_older(reading.conditions):
                judge_waits(reading.tokens, overlapping)
    except Unreadable as error:
        return _at(Refusal("text", error.line, error.reason), moved)
    except Refusal as refusal:
        return _at(refusal, moved)
    return _expanded(found) if is_c else source


def foreign_fault(problem: Problem, template: Template) -> str | None:
    """Why nothing may be built of a template that a stranger wrote: by its default, and its flags. Every
    other configuration is vetted when it is built."""
    variant = builds_of(problem, template, template.default)[0].variant
    original, *headers = users_texts(problem)
    about = (variant.overlapping, read_only_arguments(variant))
    found = vet(variant.source, original, variant.language, headers, *about)
    return str(found) if found is not None else vet_flags(template.flags, variant.language)


def vet_flags(flags: Sequence[str], language: str) -> str | None:
    """Why a build must not be given these. CUDA's own reader takes only what shapes device code; OpenCL's
    drivers take folders and files as well."""
    rules = languages.named(language)
    strange = [flag for flag in flags if rules.flags and not re.fullmatch(rules.flags, flag)]
    if not strange:
        return None
    allowed = f"in {rules.title} {rules.allowed_flags}"
    return f"the build flag {strange[0]!r} is not allowed in a template: {allowed}"


def _at(refusal: Refusal, moved: Sequence[tuple[int, int]]) -> Refusal:
    """With the line as `#line` counts it."""
    before = [place for place in moved if place[0] < refusal.line]
    if before:
        line, says = before[-1]
        refusal.line += says - line - 1
    return refusal


@lru_cache(maxsize=16)
def _user_words(original: str, headers: tuple[str, ...]) -> UserWords:
    """What the user's own texts have, which are compiled whatever is thought of them."""
    texts = [joined(text.replace("\r\n", "\n")) for text in (original, *headers)]
    tokens = [token for text in texts for token in lex(text)]
    lines = [first_word(token.text) for token in tokens if token.kind == "directive"]
    found = (_WORDS.findall(token.text) for token in tokens if token.kind in ("word", "directive"))
    return UserWords(
        words=frozenset(word for each in found for word in each),
        macros=frozenset(_name(rest) for word, rest in lines if word == "define"),
        includes=frozenset(
            match[0] for word, rest in lines if word == "include" and (match := _NAMED.match(rest))
        ),
        pragmas=frozenset(" ".join(rest.split()) for word, rest in lines if word == "pragma"),
        text="\n".join(texts),
        states=frozenset(kept_by(headers)),
    )


def _plain(source: str) -> str:
    """Lines that go on are one. What compilers read in more than one way is refused: a reader that goes
    astray there would take code for a comment."""
    text = source.replace("\r\n", "\n")
    if len(text) > _MOST:
        raise Refusal("text", 0, f"it has {len(text):,} characters, at most {_MOST:,} are read")
    if (found := _CONTROL.search(text) or _TRIGRAPH.search(text)) is not None:
        shown = found[0] if found[0].isprintable() else f"a control character ({found[0]!a})"
        line = text.count("\n", 0, found.start()) + 1
        raise Refusal("text", line, f"{shown} is not allowed in a template: compilers disagree on it")
    text = joined(text).replace("\v", "\n")
    for element in CPP.finditer(text):
        kind, word, fault = element.lastgroup, element[0], ""
        if word in ('"', "'") or (kind == "comment" and word[1] == "*" and not word[2:].endswith("*/")):
            fault = f"{word[:2]} is opened and not closed"
        elif kind == "string" and _RAW_STRING.match(word):
            fault = "raw strings are not allowed in a template: write an ordinary one"
        if fault:
            raise Refusal("text", text.count("\n", 0, element.start()) + 1, fault)
    return text


def _directives(
    tokens: Sequence[Token], words: DeviceWords, user: UserWords, is_c: bool
) -> Iterator[tuple[int, int]]:
    """Every line of the preprocessor's, taken or not; those that count lines anew are given out."""
    for token in tokens:
        if token.kind not in ("directive", "word"):
            continue
        for name in _WORDS.findall(token.text) if token.kind == "directive" else (token.text,):
            if name in _READS_FILES:
                raise Refusal("directive", token.line, f"{name} reads files and is not allowed in a template")
            if name in ("_Pragma", "__pragma") and name not in user.words:
                raise Refusal("pragma", token.line, f"{name} is not allowed in a template: write #pragma")
        if token.kind == "directive":
            word, rest = first_word(token.text)
            if is_c and "##" in rest and "##" not in user.text:
                raise Refusal(
                    "directive", token.line, "## is not allowed in a template: names stand as they are"
                )
            if (fault := _directive_fault(word, rest, token.text, words, user)) is not None:
                raise Refusal(fault[0], token.line, fault[1])
            if says := _LINE.fullmatch(token.text):
                yield token.line, int(says[1])


def _name(text: str) -> str:
    found = _WORDS.match(text)
    return found[0] if found else ""


def _directive_fault(
    word: str, rest: str, text: str, words: DeviceWords, user: UserWords
) -> tuple[Rule, str] | None:
    if word == "include":
        allowed = user.includes | words.headers
        if not _NAMED.fullmatch(rest) or rest not in allowed:
            have = ", ".join(sorted(allowed)) or "none"
            return (
                "include",
                f"#include {rest[:80]} is not among the original's and others that may be, which are: {have}",
            )
    elif word == "pragma":
        said = " ".join(rest.split())
        if not words.pragmas.fullmatch(said) and said not in user.pragmas:
            known = "unroll, OPENCL EXTENSION name : enable, OPENCL FP_CONTRACT, once and the original's own"
            return "pragma", f"#pragma {said[:60]} is not allowed; those that are: {known}"
    elif word in ("define", "undef"):
        name = _name(rest)
        reserved = name.startswith("_") and (name[1:2] == "_" or name[1:2].isupper())
        if name not in user.macros and (
            reserved or name == "defined" or (word == "undef" and words.is_foreign(name))
        ):
            return "directive", f"#{word} {name}: the name is the compiler's own; choose another"
    elif word == "line" and not _LINE.fullmatch(text):
        return "directive", f"#line {rest[:40]} is not allowed: a number and a file's name alone"
    elif word not in _DIRECTIVES and (word or rest):
        return "directive", f"#{word or rest[:40]} is not allowed in a template"
    return None


def _expanded(found: Sequence[Reading], asked: int = 0) -> str:
    """All readings as one text; what only the compiler knows it decides."""
    if len(found) == 1:
        return f"{'#line 1' if asked else ''}\n{layout(found[0].tokens, 1)}\n"[not asked :]
    question = found[0].conditions[asked][0]
    sides = [[one for one in found if one.conditions[asked][1] is holds] for holds in (True, False)]
    yes, no = (_expanded(side, asked + 1) for side in sides)
    return f"#if {question}\n{yes}#else\n{no}#endif\n"
