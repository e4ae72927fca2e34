"""Launches in a CUDA file, `kernel<<<grid, block>>>(arguments)`: where they are and what they pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tunesmith.source.lex import Token, lex
from tunesmith.source.reader.templates import KernelScope, kernel_definitions, launched_scope, scopes_at
from tunesmith.source.text import find_directives

_OPENS, _CLOSES = ("(", "[", "{"), (")", "]", "}")
_SPLICE = re.compile(r"\\[ \t]*\r?\n")  # where a macro goes on in the next line
_BEFORE_A_STATEMENT = (";", "{", "}", ")", "else", "do", ":")


@dataclass(frozen=True)
class PatchedLaunch:
    start: int  # where its statement begins
    line: int
    name: str  # with its qualifiers
    template: str  # "<...>" or empty
    config: tuple[str, ...]  # grid, block, and shared memory and stream where it says them
    args: tuple[str, ...]
    inside: tuple[int, int]  # where the text between <<< and >>> is
    passed: int  # where the arguments begin, behind their bracket
    fault: str = ""  # why it must stay as it is
    means: KernelScope | None = None  # the namespaces of the kernel of this file that it launches

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """As it says them, "" first where it begins at the top."""
        return tuple("".join(self.name.split()).split("::")[:-1])


def launch_sites(text: str, kernel: str) -> list[PatchedLaunch]:
    """The launches of the kernel, which is named without qualifiers and template arguments."""
    tokens = lex(text)
    defined, scopes = kernel_definitions(tokens, kernel), scopes_at(tokens)
    return [
        replace(site, means=launched_scope(scopes[at], site.qualifiers, defined))
        for at, token in enumerate(tokens)
        if token.text == "<<<"
        for site in _parse_site(text, tokens, at, kernel)
    ]


def macro_sites(text: str, kernel: str) -> list[PatchedLaunch]:
    """The same in the bodies of macros, `#define LAUNCH(width) kernel<T, width><<<...>>>(...)`."""
    found = []
    for directive in find_directives(text):
        if directive.word != "define" or "<<<" not in directive.rest:
            continue
        raw = f" {text[directive.start + 1 : directive.end]}"  # no directive any more, every place as it was
        tokens = lex(raw)[1:]
        body = 1
        if len(tokens) > 1 and tokens[1].text == "(" and not tokens[1].space:
            body = 1 + next((at for at, token in enumerate(tokens) if token.text == ")"), len(tokens))
        tokens = tokens[body:]
        for at, token in enumerate(tokens):
            if token.text == "<<<":
                found += [
                    _shift_site(site, directive.start, directive.line - 1)
                    for site in _parse_site(raw, tokens, at, kernel)
                ]
    return found


def _shift_site(site: PatchedLaunch, by: int, lines: int) -> PatchedLaunch:
    opened, closed = site.inside
    moved = replace(site, start=site.start + by, line=site.line + lines, passed=site.passed + by)
    return replace(moved, inside=(opened + by, closed + by))


def place_behind_includes(text: str, offset: int) -> int:
    """The start of the line behind the last include before `offset` that stands outside every condition and
    bracket; without one, that of the outermost declaration around `offset`."""
    place, depth, conditions = -1, 0, 0
    for token in lex(text):
        if token.offset >= offset:
            break
        if token.kind != "directive":
            depth += (token.text == "{") - (token.text == "}")
            continue
        word = re.match(r"\s*(\w*)", token.text)
        said = word[1] if word else ""
        conditions += (said in ("if", "ifdef", "ifndef")) - (said == "endif")
        if said == "include" and depth == 0 and conditions == 0:
            end = text.find("\n", token.offset)
            place = len(text) if end < 0 else end + 1
    return place if place >= 0 else place_before(text, offset)


def _name_before(tokens: list[Token], at: int) -> int:
    """Where the last part of a name stands, before its template arguments; -1 where nothing does."""
    if at >= 0 and tokens[at].text in (">", ">>"):
        depth = 0
        while at >= 0:
            depth += {">": 1, ">>": 2, "<": -1}.get(tokens[at].text, 0)
            at -= 1
            if depth <= 0:
                break
    return at


def _parse_site(text: str, tokens: list[Token], at: int, kernel: str) -> Iterator[PatchedLaunch]:
    first = _name_before(tokens, at - 1)
    if first < 0 or tokens[first].text != kernel:
        return
    name_end = tokens[first].offset + len(kernel)
    while first > 0 and tokens[first - 1].text == "::":
        first -= 2 if first > 1 and tokens[first - 2].kind == "word" else 1
    start = tokens[first].offset
    found = _split_launch_pieces(text, tokens, at + 1, ">>>")
    if found is None:
        return
    config, after = found
    if after >= len(tokens) or tokens[after].text != "(":
        return
    given = _split_launch_pieces(text, tokens, after + 1, ")")
    if given is None:
        return
    args, _ = given
    before = tokens[first - 1] if first else None
    fault = ""
    if before is not None and before.kind != "directive" and before.text not in _BEFORE_A_STATEMENT:
        fault = "it is no statement of its own"
    elif not 2 <= len(config) <= 4:
        fault = f"its <<<...>>> has {len(config)} parts"
    yield PatchedLaunch(
        start=start,
        line=tokens[first].line,
        name=text[start:name_end],
        template=_SPLICE.sub(" ", text[name_end : tokens[at].offset]).strip(),
        config=config,
        args=args,
        inside=(tokens[at].offset + 3, text.rindex(">>>", 0, tokens[after].offset)),
        passed=tokens[after].offset + 1,
        fault=fault,
    )


def _split_launch_pieces(
    text: str, tokens: list[Token], at: int, closing: str
) -> tuple[tuple[str, ...], int] | None:
    """What stands between commas up to the closing bracket, and the token behind that."""
    pieces: list[str] = []
    start = tokens[at].offset if at < len(tokens) else 0
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        whole = token.text
        closes_launch = closing == ">>>" and text.startswith(">>>", token.offset)
        if depth == 0 and (closes_launch or whole == closing):
            last = text[start : token.offset].strip()
            pieces += [last] if last or pieces else []
            while closes_launch and at < len(tokens) and tokens[at].offset < token.offset + 3:
                at += 1
            return tuple(pieces), at if closes_launch else at + 1
        if depth == 0 and whole == ",":
            pieces.append(text[start : token.offset].strip())
            start = token.offset + 1
        depth += (whole in _OPENS) - (whole in _CLOSES)
        if depth < 0 or token.kind == "directive":
            return None
        at += 1
    return None


def place_before(text: str, offset: int) -> int:
    """The start of the line of the outermost declaration around `offset`, outside every condition."""
    place, depth, conditions, fresh = 0, 0, 0, True
    for token in lex(text):
        if token.offset >= offset and not fresh:
            break
        if token.kind == "directive":
            word = re.match(r"\s*(\w*)", token.text)
            opens = word is not None and word[1] in ("if", "ifdef", "ifndef")
            if opens and depth == 0 and conditions == 0:
                place, fresh = token.offset, False
            conditions += opens - (word is not None and word[1] == "endif")
            if depth == 0 and conditions == 0:
                fresh = True
            continue
        if fresh and depth == 0 and conditions == 0:
            place, fresh = token.offset, False
            if token.offset >= offset:
                break
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and conditions == 0 and token.text in (";", "}"):
            fresh = True
    return text.rfind("\n", 0, place) + 1
