"""A stranger's source as one text for the device at hand: macros expanded, conditions decided, once.

What is left has no macro of its own and no condition, so that whoever compiles it, here or in the user's
program, reads what was judged. Only `#include`, `#pragma` and `#line` remain, and numbers that the user's own
headers ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tunesmith.problem import device as languages
from tunesmith.problem.device import Device
from tunesmith.problem.vetting.device_words import (
    CUDA,
    HIP,
    OPENCL,
    DeviceWords,
    Refusal,
    Rule,
    UserWords,
    split_word_set,
)
from tunesmith.problem.vetting.words import kept_by
from tunesmith.source.lex import Token, lay_out_tokens, lex
from tunesmith.source.macros import Macro, read_macro
from tunesmith.source.preprocess import (
    ABSENT,
    PLAIN,
    Predefined,
    Undecidable,
    assume_predefined,
    decide_conditions,
    opencl_of,
)
from tunesmith.source.text import CPP, first_word, join_spliced_lines
from tunesmith.source.text import find_directives as each_directive
from tunesmith.source.tree import Unreadable

_DIRECTIVES = split_word_set("define undef if ifdef ifndef elif else endif pragma error warning line include")
_READS_FILES = split_word_set("__has_include __has_include_next __has_embed")
_OF_A_LINE = split_word_set("__LINE__ __COUNTER__ __INCLUDE_LEVEL__")
_WORDS = re.compile(r"[^\W\d]\w*")
_NAMED = re.compile(r'(?:<[^>\n]+>|"[^"\n]+")')
_DEFINED = re.compile(r"-D\s*(\w+)(?:=(\S+))?")
_LINE = re.compile(r'line\s+(\d{1,9})(?:\s+"[\w.+-]*")?')
_RAW_STRING = re.compile(r"(?:u8|[uUL])?R\"")
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_STANDARD = re.compile(r"-std=c\+\+(\d\d)")
_CPLUSPLUS = {"11": 201103, "14": 201402, "17": 201703, "20": 202002, "23": 202302}
_MAX = 500_000  # characters
_MAX_BLANK = 3  # lines in a row; more are a `#line`


def language_words(language: str) -> DeviceWords:
    if languages.find_language(language).is_native:
        return OPENCL
    return HIP if language == languages.HIP.name else CUDA


def target_of(
    language: str, device: Device | None, compiler: str = "", flags: Sequence[str] = ()
) -> Predefined:
    """What the compiler is taken to define, by what is known of the device; None: what is assumed."""
    said = " ".join(flags)
    if language == languages.OPENCL.name:
        return opencl_of(device.driver if device else "", said, device.extensions if device else ())
    found = dict(assume_predefined(language, device.limits.capability if device else 0).macros)
    if standard := _STANDARD.search(said):
        found["__cplusplus"] = f"{_CPLUSPLUS.get(standard[1], 201703)}L"
    if compiler == "nvcc" and found.pop("__CUDACC_RTC__", ""):
        found["__NVCC__"] = "1"
    if language == languages.HIP.name and device is not None and device.target:
        found[f"__{device.target}__"] = "1"
    return Predefined(tuple(found.items()), "the device")


@lru_cache(maxsize=1024)
def decide_source(
    source: str,
    original: str,
    language: str,
    headers: tuple[tuple[str, str], ...] = (),
    flags: tuple[str, ...] = (),
    target: Predefined | None = None,
) -> str | Refusal:
    """`headers` are the user's, as included -> text. What is decided already comes back as it is."""
    if not languages.find_language(language).is_c_family:
        return source
    known = target if target is not None else target_of(language, None, flags=flags)
    user, words = user_words(original, tuple(text for _, text in headers)), language_words(language)
    moved: list[tuple[int, int]] = []

    def may_differ(name: str) -> bool:
        is_compilers = is_reserved(name) or PLAIN.fullmatch(name) or words.constants.fullmatch(name)
        is_known = ABSENT.fullmatch(name) or (name in user.words and name not in _OF_A_LINE)
        return bool(is_compilers) and not is_known

    def may_stay(macro: Macro) -> bool:
        """For the user's headers to ask for: a number, or what the user defines so; no more"""
        is_number = macro.parameters is None and all(token.kind == "number" for token in macro.body)
        return is_number or (macro.name, " ".join(map(str, macro.body))) in user.defines

    try:
        tokens = lex(_normalize_source(source))
        moved += judge_directives(tokens, words, user)
        left = decide_conditions(tokens, known, may_differ, defined_by(flags), headers, may_stay)
        if _token_texts(left) == _token_texts(tokens):
            return source
        text = _without_gaps(lay_out_tokens(left, 1, with_comments=True))
        if _token_texts(lex(text)) != _token_texts(left):
            raise Refusal("text", 0, "it cannot be written down as it is read: leave out what pastes words")
    except Unreadable as error:
        rule: Rule = "directive" if isinstance(error, Undecidable) else "text"
        return relocate_refusal(Refusal(rule, error.line, error.reason), moved)
    except Refusal as refusal:
        return relocate_refusal(refusal, moved)
    return text


def settled_text(text: str, target: Predefined) -> str:
    """A template as it leaves for other programs: it asks for its own parameters and macros. What it asks of
    a compiler are macros of its own by then, with the values that were judged."""
    lines = list(each_directive(text))
    taken = {_leading_name(line.rest) for line in lines if line.word in ("define", "undef")}
    values = {name.partition("(")[0]: (name, value) for name, value in target.macros}
    used: dict[str, str] = {}

    def renamed(word: re.Match[str]) -> str:
        name = word[0]
        if name in taken or not (name in values or ABSENT.fullmatch(name)):
            return name
        used[name] = f"TARGET_{name.strip('_')}"
        return used[name]

    done, pieces = 0, list[str]()
    kept = ((line.start, line.end) for line in lines if line.word in ("pragma", "include"))
    for start, end in (*kept, (len(text),) * 2):
        parts = [(part.lastgroup, part[0]) for part in CPP.finditer(text[done:start])]
        pieces += [_WORDS.sub(renamed, part) if kind == "code" else part for kind, part in parts]
        pieces.append(text[start:end])
        done = end
    known = [(new, name, *values[name]) for name, new in used.items() if name in values]
    defined = [f"#define {new}{head.removeprefix(name)} {value}\n" for new, name, head, value in known]
    defined += [
        f"#define {n} {v}\n" for n, v in target.macros if "__has_builtin" in used and n.startswith("TUNE")
    ]
    return "".join([*defined, *pieces])


def _token_texts(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Without the lines that only count lines."""
    return [(t.kind, t.text) for t in tokens if not (t.kind == "directive" and _LINE.fullmatch(t.text))]


def _without_gaps(text: str) -> str:
    """With a few empty lines at most where macros and conditions stood; lines count on as the author's."""
    done: list[str] = []
    number, blank = 1, 0
    for line in text.rstrip("\n").split("\n"):
        found = _LINE.fullmatch(line[1:]) if line.startswith("#line") else None
        if found is None and not line.strip():
            blank, number = blank + 1, number + 1
            continue
        if found is None:
            done += [""] * blank if blank <= _MAX_BLANK else ["", f"#line {number}"]
        done.append(line)
        number, blank = (int(found[1]) if found else number + 1), 0
    return "\n".join(done) + "\n"


def relocate_refusal(refusal: Refusal, moved: Sequence[tuple[int, int]]) -> Refusal:
    """With the line as `#line` counts it."""
    before = [place for place in moved if place[0] < refusal.line]
    if before:
        line, says = before[-1]
        refusal.line += says - line - 1
    return refusal


def is_reserved(name: str) -> bool:
    return name.startswith("_") and (name[1:2] == "_" or name[1:2].isupper())


def defined_by(flags: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, value or "1") for name, value in _DEFINED.findall(" ".join(flags))]


@lru_cache(maxsize=16)
def user_words(original: str, headers: tuple[str, ...]) -> UserWords:
    """What the user's own texts have, which are compiled whatever is thought of them."""
    texts = [join_spliced_lines(text.replace("\r\n", "\n")) for text in (original, *headers)]
    tokens = [token for text in texts for token in lex(text)]
    lines = [first_word(token.text) for token in tokens if token.kind == "directive"]
    found = (_WORDS.findall(token.text) for token in tokens if token.kind in ("word", "directive"))
    return UserWords(
        words=frozenset(word for each in found for word in each),
        macros=frozenset(_leading_name(rest) for word, rest in lines if word == "define"),
        includes=frozenset(
            match[0] for word, rest in lines if word == "include" and (match := _NAMED.match(rest))
        ),
        pragmas=frozenset(" ".join(rest.split()) for word, rest in lines if word == "pragma"),
        text="\n".join(texts),
        states=frozenset(kept_by(headers)),
        header_macros=frozenset(
            (m.name, m.parameters is not None) for t in texts[1:] for m in _defined_macros(t)
        ),
        defines=frozenset(
            (m.name, " ".join(map(str, m.body))) for m in _defined_macros(texts[0]) if not m.parameters
        ),
    )


def _defined_macros(text: str) -> Iterator[Macro]:
    read = (read_macro(rest) for word, rest, *_ in each_directive(text) if word == "define")
    return (macro for macro in read if isinstance(macro, Macro))


def _normalize_source(source: str) -> str:
    """Lines that go on are one. What compilers read in more than one way is refused: a reader that goes
    astray there would take code for a comment."""
    text = source.replace("\r\n", "\n")
    if len(text) > _MAX:
        raise Refusal("text", 0, f"it has {len(text):,} characters, at most {_MAX:,} are read")
    if (found := _CONTROL.search(text) or _TRIGRAPH.search(text)) is not None:
        shown = found[0] if found[0].isprintable() else f"a control character ({found[0]!a})"
        line = text.count("\n", 0, found.start()) + 1
        raise Refusal("text", line, f"{shown} is not allowed in a template: compilers disagree on it")
    text = join_spliced_lines(text).replace("\v", "\n")
    for element in CPP.finditer(text):
        kind, word, fault = element.lastgroup, element[0], ""
        if word in ('"', "'") or (kind == "comment" and word[1] == "*" and not word[2:].endswith("*/")):
            fault = f"{word[:2]} is opened and not closed"
        elif kind == "string" and _RAW_STRING.match(word):
            fault = "raw strings are not allowed in a template: write an ordinary one"
        if fault:
            raise Refusal("text", text.count("\n", 0, element.start()) + 1, fault)
    return text


def judge_directives(
    tokens: Sequence[Token], words: DeviceWords, user: UserWords
) -> Iterator[tuple[int, int]]:
    """Every line of the preprocessor's, taken or not, judged; those that count lines anew are given out."""
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
            if words is OPENCL and "##" in rest and "##" not in user.text:
                raise Refusal(
                    "directive", token.line, "## is not allowed in a template: names stand as they are"
                )
            if (fault := _directive_fault(word, rest, token.text, words, user)) is not None:
                raise Refusal(fault[0], token.line, fault[1])
            if says := _LINE.fullmatch(token.text):
                yield token.line, int(says[1])


def _leading_name(text: str) -> str:
    found = _WORDS.match(text)
    return found[0] if found else ""


def _directive_fault(
    word: str, rest: str, text: str, words: DeviceWords, user: UserWords
) -> tuple[Rule, str] | None:
    if word == "include":
        allowed = user.includes | words.headers
        if not _NAMED.fullmatch(rest) or rest not in allowed:
            have = ", ".join(sorted(allowed)) or "none"
            fault = f"#include {rest[:80]} is not among the original's and others that may be"
            return "include", f"{fault}, which are: {have}"
    elif word == "pragma":
        said = " ".join(rest.split())
        if not words.pragmas.fullmatch(said) and said not in user.pragmas:
            known = "unroll, OPENCL EXTENSION name : enable, OPENCL FP_CONTRACT, once and the original's own"
            return "pragma", f"#pragma {said[:60]} is not allowed; those that are: {known}"
    elif word in ("define", "undef"):
        name = _leading_name(rest)
        if name not in user.macros and (
            is_reserved(name) or name == "defined" or (word == "undef" and words.is_foreign(name))
        ):
            return "directive", f"#{word} {name}: the name is the compiler's own; choose another"
    elif word == "line" and not _LINE.fullmatch(text):
        return "directive", f"#line {rest[:40]} is not allowed: a number and a file's name alone"
    elif word not in _DIRECTIVES and (word or rest):
        return "directive", f"#{word or rest[:40]} is not allowed in a template"
    return None
