"""The code of several kernels in one file: what they have alike once, and no name with two meanings.

A name that a piece of code defines keeps its place in the file only if no other kernel's code has the word at
all, or defines it by the very same pieces. Otherwise it gets the number of its kernel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.knobs.text import matching_paren
from tunesmith.expert.read.call import CallPart
from tunesmith.expert.write.given import Names, Unwritable, words_in_texts
from tunesmith.expert.write.page import Heading, KernelPage, how_shared, in_code, pieces_text, said_of_launch
from tunesmith.problem.problem import Launch, Problem
from tunesmith.problem.problem_text import toml_string
from tunesmith.problem.reduced import without_unused
from tunesmith.source.effects import is_function
from tunesmith.source.lex import Token, closing_angle, lex
from tunesmith.source.printing import wrap_line
from tunesmith.source.text import first_word, without_comments
from tunesmith.source.walk import fresh_name
from tunesmith.space.expr import parse_expr

_WORD = re.compile(r"[A-Za-z_]\w*")
# Comments and strings first: what is in them is no name. A word behind a dot is a member's.
_NAMES = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'"
    r"|(?:\.|->)\s*[A-Za-z_]\w*"
    r"|\b[A-Za-z_]\w*",
    re.DOTALL,
)
_TYPES = ("struct", "class", "union", "enum")
_ATTRIBUTES = ("__attribute__", "__align__", "alignas", "decltype", "__declspec", "__launch_bounds__")


@dataclass(frozen=True)
class KernelCode:
    """The pieces of a kernel's code, in the order of the file."""

    number: str
    pieces: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...] = ()  # names by which its pieces called something before

    def name(self, before: str) -> str:
        return dict(self.renamed).get(before, before)


def link_codes(
    codes: Sequence[KernelCode], taken: Collection[str], ahead: str = ""
) -> tuple[KernelCode, ...]:
    """The same codes with names that go together in one file, each piece once.

    `taken` are words that no new name may be; `ahead` is text that stands before all of them and stays as it
    is. Raises `Unwritable` where a name cannot be changed."""
    done = list(codes)
    used = {*taken, *words_in_texts([ahead, *(piece for code in codes for piece in code.pieces)])}
    while changes := _find_name_clashes(done, ahead):
        for at, names in enumerate(changes):
            new = {name: fresh_name(f"{name}_{done[at].number}", used) for name in names}
            pieces = tuple(rename_identifiers(piece, new) for piece in done[at].pieces)
            done[at] = replace(done[at], pieces=pieces, renamed=(*done[at].renamed, *new.items()))
    seen: set[str] = set()
    for at, code in enumerate(done):
        fresh = tuple(piece for piece in dict.fromkeys(code.pieces) if piece not in seen)
        seen.update(code.pieces)
        done[at] = replace(code, pieces=fresh)
    return tuple(done)


def _find_name_clashes(codes: Sequence[KernelCode], ahead: str) -> list[list[str]] | None:
    """By code: names that have to change; None where none has."""
    defined = [_definitions_by_name(code.pieces) for code in codes]
    words = [words_in_texts(code.pieces) for code in codes]
    before, theirs = words_in_texts([ahead]), set(defined_names(ahead)) if ahead else set()
    found: list[list[str]] = []
    for at, names in enumerate(defined):
        outside = words[at] & theirs - names.keys()
        if outside:
            raise Unwritable(f"the original's text means something else by {min(outside)}")
        others = [place for place in range(len(codes)) if place != at]

        def clashes(name: str, pieces: tuple[str, ...], others: Sequence[int] = others) -> bool:
            apart = any(name in words[other] and defined[other].get(name) != pieces for other in others)
            return name in before or apart

        found.append([name for name, pieces in names.items() if clashes(name, pieces)])
    for code, changing in zip(codes, found, strict=True):
        for name in changing:
            if is_function(name) and not _is_only_defined(name, code):
                raise Unwritable(f"{name}, which a library has as well, is not the same for all kernels")
    return found if any(found) else None


def _is_only_defined(name: str, code: KernelCode) -> bool:
    """Its code has the word once, as the name of the kernel: nothing there means the library's."""
    words = [word for piece in code.pieces for word in _WORD.findall(without_comments(piece))]
    return words.count(name) == 1 and name in defined_names(code.pieces[-1])


def _definitions_by_name(pieces: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Names with the pieces that define them."""
    found: dict[str, tuple[str, ...]] = {}
    for piece in pieces:
        for name in dict.fromkeys(defined_names(piece)):
            found[name] = (*found.get(name, ()), piece)
    return found


def rename_identifiers(text: str, names: Mapping[str, str]) -> str:
    """The text with other words for these; comments speak of them too, members and strings do not."""

    def renamed(found: re.Match[str]) -> str:
        text = found[0]
        if text.startswith(("//", "/*")):
            return _WORD.sub(lambda inner: names.get(inner[0], inner[0]), text)
        return names.get(text, text)

    return _NAMES.sub(renamed, text) if names else text


def defined_names(text: str) -> Iterator[str]:
    """Macros, functions, types and variables, each as often as it is defined."""
    tokens = lex(text)
    for token in tokens:
        if token.kind == "directive":
            word, rest = first_word(token.text)
            if word == "define" and (found := _WORD.match(rest.lstrip())):
                yield found[0]
    yield from _iterate_declared_names([token for token in tokens if token.kind != "directive"])


def _iterate_declared_names(tokens: Sequence[Token]) -> Iterator[str]:
    at = 0
    while at < len(tokens):
        at = _behind_template(tokens, at)
        if at >= len(tokens):
            return
        if tokens[at].text in ("}", ";"):
            at += 1
            continue
        body = _find_next_mark(tokens, at, ("{", ";", "="))
        head = _without_attributes(tokens[at:body])
        words = [token.text for token in head]
        if body < len(tokens) and tokens[body].text == "{" and _is_outside(words):
            at = body + 1  # what is inside belongs to the file
            continue
        plain = words[0] not in ("typedef", "using") and (body == len(tokens) or tokens[body].text != "=")
        is_function = plain and "(" in words
        end = _declaration_end(tokens, body, is_function)
        yield from _declarator_names(words, tokens[at:end], is_function)
        at = end


def _is_outside(words: Sequence[str]) -> bool:
    return words[:1] == ["namespace"] or (len(words) == 2 and words[0] == "extern" and words[1][:1] == '"')


def _behind_template(tokens: Sequence[Token], at: int) -> int:
    while at + 1 < len(tokens) and tokens[at].text == "template" and tokens[at + 1].text == "<":
        closing = closing_angle(tokens, at + 1)
        if closing is None:
            raise Unwritable("the code has a template that does not end")
        at = closing + 1
    return at


def _find_next_mark(tokens: Sequence[Token], at: int, marks: Collection[str]) -> int:
    """Where one of these stands outside of brackets."""
    depth = 0
    for place in range(at, len(tokens)):
        mark = tokens[place].text
        if depth == 0 and mark in marks:
            return place
        depth += (mark in ("(", "[")) - (mark in (")", "]"))
    return len(tokens)


def _declaration_end(tokens: Sequence[Token], body: int, is_function: bool) -> int:
    """Behind the declaration whose body, value or end is here."""
    depth = 0
    for place in range(body, len(tokens)):
        mark = tokens[place].text
        depth += (mark in ("{", "(", "[")) - (mark in ("}", ")", "]"))
        if depth == 0 and (mark == ";" or (mark == "}" and is_function)):
            return place + 1
    return len(tokens)


def _without_attributes(tokens: Sequence[Token]) -> list[Token]:
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        if tokens[at].text not in _ATTRIBUTES:
            done.append(tokens[at])
            at += 1
            continue
        closing = matching_paren(tokens, at + 1, len(tokens))
        at = len(tokens) if closing < 0 else closing + 1
    return done


def _declarator_names(words: Sequence[str], whole: Sequence[Token], is_function: bool) -> Iterator[str]:
    if not words or words[0] in ("using", "static_assert"):
        named = words[1:2] if words[:1] == ["using"] and "=" in [t.text for t in whole] else []
        yield from (word for word in named if _WORD.fullmatch(word))
    elif words[0] == "typedef":
        inner = [token.text for token in whole]
        closing = len(inner) - 1 - inner[::-1].index("}") if "}" in inner else 0
        behind = [word for word in inner[closing:] if _WORD.fullmatch(word)]
        yield from behind[-1:]
        yield from _tag_name(words)
    elif is_function:
        before = _without_arguments(words[: words.index("(")])
        if "operator" not in before and "::" not in before[-2:]:
            yield from (word for word in before[-1:] if _WORD.fullmatch(word))
    elif any(word in _TYPES for word in words):
        yield from _tag_name(words)
    else:
        until = words[: words.index("[")] if "[" in words else words
        yield from [word for word in until if _WORD.fullmatch(word)][-1:]


def _without_arguments(words: Sequence[str]) -> Sequence[str]:
    """`fetch<uint4>` as `fetch`: a function for certain arguments has the name of the others."""
    if words[-1:] != [">"]:
        return words
    depth = 0
    for at in range(len(words) - 1, -1, -1):
        depth += (words[at] == ">") - (words[at] == "<")
        if depth == 0:
            return words[:at]
    return words


def _tag_name(words: Sequence[str]) -> Iterator[str]:
    """The name behind `struct`."""
    place = next((at for at, word in enumerate(words) if word in _TYPES), len(words))
    behind = [word for word in words[place + 1 :] if _WORD.fullmatch(word) and word not in _TYPES]
    yield from behind[:1]


# Memory that a file keeps for all of its kernels: a copy of it would be another memory.
_KEPT = ("__device__", "__managed__", "__shared__", "__global", "static", "extern")


@dataclass(frozen=True)
class OwnText:
    """Kernels of a call that keep their text."""

    heading: Heading  # with the lines of each launch
    places: tuple[int, ...]  # of these launches in the call
    text: str = ""  # "": there is no such kernel, and only the build is spoken of
    defaults: tuple[str, ...] = ()  # lines that stand before it


@dataclass(frozen=True)
class WrittenPart:
    part: CallPart
    page: KernelPage


def text_of_call(problem: Problem, parts: Sequence[WrittenPart], unchanged: OwnText) -> str:
    """The template's text; raises `Unwritable` where the kernels do not go into one file."""
    codes = link_codes([_kernel_code(one) for one in parts], _reserved_words(problem), unchanged.text)
    ahead = "\n".join([*unchanged.defaults, *([unchanged.text] if unchanged.text else [])])
    # Names with numbers are longer: some lines have to be broken again.
    every = [piece for code in codes for piece in code.pieces]
    pieces = ["\n".join(line for whole in piece.split("\n") for line in wrap_line(whole)) for piece in every]
    below = pieces_text(_with_includes_first(pieces, _unconditional_includes(unchanged.text)))
    start = ahead.rstrip("\n") + "\n\n" if ahead.strip() else ""
    text = without_unused(start + below, (), since=len(start))
    heading = _join_headings(problem, parts, codes, unchanged, text)
    about = [f"// {problem.name}: Written by Tunesmith from {problem.kernel.path.rsplit('/', 1)[-1]}."]
    for one, code in zip(parts, codes, strict=True):
        which = f"Kernel {one.part.number}" if one.part.number else "Kernel"
        about.append(f"// {which}, {code.name(one.page.entry)}: {how_shared(one.page.plan)}")
    if unchanged.text:
        about.append("// The other kernels have the original's own text.")
    return "\n".join([*heading.lines(), "//", *about, "", text])


def kept_memory(page: KernelPage) -> str | None:
    """What the kernel takes of the user's file that has to be one memory for all kernels of the file."""
    for piece in page.preamble:
        words = words_in_texts([piece])
        if words & set(_KEPT) and "constexpr" not in words and ("const" not in words or "*" in piece):
            return " ".join(piece.split())[:60]
    return None


def _kernel_code(one: WrittenPart) -> KernelCode:
    pieces = [part for piece in (*one.page.preamble, *one.page.code) for part in split_pieces(piece)]
    return KernelCode(one.part.number, tuple(pieces))


def split_pieces(piece: str) -> Iterator[str]:
    """What can stand by itself: pieces between blank lines that are in no bracket and under no condition."""
    kept, depth = list[str](), 0
    for line in (*piece.strip("\n").split("\n"), ""):
        if line.strip():
            kept.append(line)
            directive = line.lstrip().removeprefix("#").lstrip() if line.lstrip().startswith("#") else ""
            depth += directive.startswith("if") - directive.startswith("endif")
            code = without_comments(line) if not directive else ""
            depth += code.count("{") - code.count("}")
        elif depth == 0 and kept:
            yield "\n".join(kept)
            kept = []
        else:
            kept.append(line)
    if "".join(kept).strip():
        yield "\n".join(kept).rstrip("\n")


def _with_includes_first(pieces: Sequence[str], before: Collection[str]) -> Iterator[str]:
    """`before`: those that stand above already."""
    included = [piece for piece in pieces if piece.startswith("#include")]
    lines = [line.strip() for piece in included for line in piece.split("\n")]
    yield "\n".join(line for line in dict.fromkeys(lines) if line not in before)
    yield from (piece for piece in pieces if piece not in included)


def _unconditional_includes(text: str) -> frozenset[str]:
    """What a text includes under no condition."""
    found, depth = set[str](), 0
    for line in without_comments(text).split("\n"):
        word = line.strip().removeprefix("#").lstrip() if line.lstrip().startswith("#") else ""
        depth += word.startswith("if") - word.startswith("endif")
        if depth == 0 and word.startswith("include"):
            found.add(line.strip())
    return frozenset(found)


def _reserved_words(problem: Problem) -> frozenset[str]:
    texts = [problem.kernel.text, *(text for _, text in problem.kernel.headers)]
    names = [*problem.size_names, *(argument.name for argument in problem.arguments)]
    return words_in_texts(texts) | {*names, *(name for name, _ in problem.kernel.defines)}


def _join_headings(
    problem: Problem, parts: Sequence[WrittenPart], codes: Sequence[KernelCode], unchanged: OwnText, text: str
) -> Heading:
    headings = [_rename_heading(one.page.heading, code) for one, code in zip(parts, codes, strict=True)]
    pairs = zip(unchanged.places, unchanged.heading.launches, strict=True)
    launches = {place: [lines] for place, lines in pairs}
    for one, code, heading in zip(parts, codes, headings, strict=True):
        for place in one.part.places:
            entry = f"entry = {toml_string(code.name(one.page.entry))}"
            lines = (entry, *heading.launches[0])
            variants = _launch_variants(problem.launches[place], one.page)
            launches[place] = [(*lines, *said) for said in variants]
    choices = [choice for one in parts for choice in one.page.plan.draft.schedule.choices]
    shape = [table for heading in (unchanged.heading, *headings) for table in heading.shape or ()]
    said = [table for table in shape if table[1]]
    return Heading(
        tuple(param for heading in (*headings, unchanged.heading) for param in heading.params),
        (
            ("require", tuple(_conditions_at_launches("require", parts, headings, unchanged))),
            ("prefer", tuple(_conditions_at_launches("prefer", parts, headings, unchanged))),
            ("answers", _merge_answers((*headings, unchanged.heading))),
        ),
        tuple(pair for heading in headings for pair in heading.defines),
        unchanged.heading.flags,
        tuple(lines for place in sorted(launches) for lines in launches[place]),
        said or [("shape", [])],
        [table for heading in headings for table in heading.baked],
        in_code(choices, text) | unchanged.heading.in_code,
    )


def _launch_variants(launch: Launch, page: KernelPage) -> list[tuple[str, ...]]:
    """A launch that may overlap with the one ahead is there twice: a parameter says which is made."""
    switch = page.plan.draft.order.waits_if
    if not switch:
        return [tuple(said_of_launch(launch))]
    before = f"({launch.when.text}) and " if launch.when is not None else ""
    off, on = (replace(launch, when=parse_expr(f"{before}{switch} {how}")) for how in ("== 0", "> 0"))
    return [tuple(said_of_launch(off)), ("pdl = true", *said_of_launch(on))]


def _rename_heading(heading: Heading, code: KernelCode) -> Heading:
    """With the names that the code now has for what the declaration defines."""
    defines = tuple((code.name(name), text) for name, text in heading.defines)
    baked = [
        (switch, [(code.name(name), text) for name, text in entries]) for switch, entries in heading.baked
    ]
    return replace(heading, defines=defines, baked=baked)


def _condition_table(heading: Heading, title: str) -> tuple[tuple[str, str], ...]:
    return dict(heading.conditions).get(title, ())


def _conditions_at_launches(
    title: str, parts: Sequence[WrittenPart], headings: Sequence[Heading], unchanged: OwnText
) -> Iterator[tuple[str, str]]:
    """What is asked of a kernel is asked at the sizes at which it is launched."""
    names = Names((), ())
    for one, heading in zip(parts, headings, strict=True):
        when = one.part.problem.launches[0].when
        for name, text in _condition_table(heading, title):
            numbered = f"{name}_{one.part.number}" if one.part.number else name
            yield names.fresh(numbered), text if when is None else f"not ({when.text}) or ({text})"
    for name, text in _condition_table(unchanged.heading, title):
        yield names.fresh(name), text


def _merge_answers(headings: Iterable[Heading]) -> tuple[tuple[str, str], ...]:
    """A remedy that several kernels answer is there where one of them is."""
    found: dict[str, dict[str, None]] = {}
    for heading in headings:
        for name, text in _condition_table(heading, "answers"):
            found.setdefault(name, {})[text] = None
    single = {
        name: [f"({text})" for text in texts] if len(texts) > 1 else texts for name, texts in found.items()
    }
    return tuple((name, " or ".join(texts)) for name, texts in single.items())
