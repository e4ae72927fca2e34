"""Whether a source that the user did not write may be compiled: only what is known as device code may.

A text is judged as it is compiled, every condition decided (`problem/vetting/decided`): word by word, and
in C, which
may run on the host's CPU, by its syntax tree. What the original has, its author may keep.
Whether a kernel is right is the oracle's business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from tunesmith.problem import device
from tunesmith.problem.domain import handed_arrays
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant, builds_of
from tunesmith.problem.vetting.decided import (
    decide_source,
    defined_by,
    judge_directives,
    language_words,
    relocate_refusal,
    user_words,
)
from tunesmith.problem.vetting.device_words import HandedArrays, Refusal, UserWords
from tunesmith.problem.vetting.waits import judge_waits
from tunesmith.problem.vetting.words import UnitWords, judge_unit
from tunesmith.source.lex import Token, lex
from tunesmith.source.macros import Macro, read_macro
from tunesmith.source.text import find_directives as each_directive
from tunesmith.source.text import first_word
from tunesmith.source.tree import Unreadable
from tunesmith.space.expr import Undefined

_OVERLAPPING = 90  # the first capability of devices on which launches overlap


def vet_source(
    source: str,
    original: str,
    language: str,
    headers: Sequence[str] = (),
    overlapping: Sequence[str] = (),
    handed: HandedArrays = frozenset(),
) -> Refusal | None:
    """Why a source must not be compiled; None where it may. `original` is what it was made from, `headers`
    are the texts of the user's own, `overlapping` the entries that are launched with `pdl = true`,
    `handed`: by entry and position, what gets an array, and whether no launch may write it."""
    found = vetted_text(source, original, language, tuple(headers), (), tuple(overlapping), handed=handed)
    return found if isinstance(found, Refusal) else None


@lru_cache(maxsize=256)
def vetted_text(
    source: str,
    original: str,
    language: str,
    headers: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    overlapping: tuple[str, ...] = (),
    included: tuple[tuple[str, str], ...] = (),
    handed: HandedArrays = frozenset(),
) -> str | Refusal:
    """What may be compiled: the text with its macros expanded and its conditions decided, as it was judged; a
    text that came so, as it came. `included`: the headers, as included -> text."""
    text = decide_source(source, original, language, included, flags)
    if isinstance(text, Refusal):
        return text
    words, user = language_words(language), user_words(original, headers)
    tokens, moved = lex(text), list[tuple[int, int]]()  # a line that says #line, and what it says
    try:
        moved += judge_directives(tokens, words, user)
        if not device.find_language(language).is_c_family:
            return text
        kept = tuple(t for t in tokens if t.kind != "directive" or first_word(t.text)[0] == "pragma")
        judge_unit(UnitWords.of(kept, handed), words, user, language)
        _judge_expanded(tokens, user, flags)
        if overlapping:
            judge_waits(kept, overlapping)
    except Unreadable as error:
        return relocate_refusal(Refusal("text", error.line, error.reason), moved)
    except Refusal as refusal:
        return relocate_refusal(refusal, moved)
    return text


def _judge_expanded(tokens: Sequence[Token], user: UserWords, flags: Sequence[str]) -> None:
    """No word is left of which a header or a flag of the user's makes another: the compiler would."""
    lines = [first_word(token.text) for token in tokens if token.kind == "directive"]
    stays = [
        macro for word, rest in lines if word == "define" and isinstance(macro := read_macro(rest), Macro)
    ]
    names = {(name, False) for name, _ in defined_by(flags)} | {(m.name, bool(m.parameters)) for m in stays}
    if any(word == "include" and rest in user.includes for word, rest in lines):
        names |= user.header_macros
    for at, token in enumerate(tokens if names else ()):
        calls = at + 1 < len(tokens) and tokens[at + 1].text == "("
        if token.kind == "word" and ((token.text, False) in names or (calls and (token.text, True) in names)):
            words = f"{token.text} is a macro of the original's headers that cannot be followed here"
            raise Refusal("name", token.line, f"{words}: write out what it stands for")


def foreign_fault(problem: Problem, template: Template) -> str | None:
    """Why nothing may be built of a template that a stranger wrote: by its flags, its default, and the values
    that its conditions ask for. Every configuration is vetted when it is built."""
    template = replace(template, is_foreign=True)
    capability = template.built_for.limits.capability if template.built_for is not None else 0
    asked = _asked_for(template)
    values = ((param.name, value) for param in template.space.params for value in param.values)
    changed = (template.default.replace(name, value) for name, value in values if name in asked)
    for config in dict.fromkeys((template.default, *changed)):
        try:
            variant = builds_of(problem, template, config)[0].variant
        except Undefined:
            continue  # there is no such build
        if fault := variant_fault(variant, capability):
            return fault
    return vet_flags(template.flags, template.language)


def _asked_for(template: Template) -> set[str]:
    """Names in its conditions, and in what those stand for."""
    found: set[str] = set()
    bodies = {name: expr.names for name, expr in template.defines}
    for word, rest, *_ in each_directive(template.source):
        names = re.findall(r"[A-Za-z_]\w*", rest)
        if word == "define" and names:
            bodies[names[0]] = bodies.get(names[0], frozenset()) | {*names[1:]}
        elif word in ("if", "elif", "ifdef", "ifndef"):
            found.update(names)
    more = found
    while more:
        more = {other for name in more for other in bodies.get(name, ())} - found
        found |= more
    return found


def variant_fault(variant: Variant, capability: int) -> str:
    """Why what a stranger wrote is not compiled. What is delivered is compiled as it was judged."""
    if variant.refused:
        return variant.refused
    original, *headers = variant.made_from
    overlapping = () if 0 < capability < _OVERLAPPING else variant.overlapping
    handed = handed_arrays(variant)
    about = (tuple(headers), variant.flags, overlapping, variant.headers, handed)
    found = vetted_text(variant.source, original, variant.language, *about)
    if isinstance(found, Refusal):
        return str(found)
    return "" if found == variant.source else "its conditions are not decided for a device"


def vet_flags(flags: Sequence[str], language: str) -> str | None:
    """Why a build must not be given these. CUDA's own reader takes only what shapes device code; OpenCL's
    drivers take folders and files as well."""
    rules = device.find_language(language)
    strange = [flag for flag in flags if rules.flags and not re.fullmatch(rules.flags, flag)]
    if not strange:
        return None
    allowed = f"in {rules.title} {rules.allowed_flags}"
    return f"the build flag {strange[0]!r} is not allowed in a template: {allowed}"
