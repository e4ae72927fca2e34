"""Several kernels of one call as one template: a file, a declaration, the call's launches in their order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.layout import wrapped
from tunesmith.csource.lex import without_comments
from tunesmith.expert.model.call import CallPart
from tunesmith.expert.writing.heading import Heading, said_of_launch
from tunesmith.expert.writing.joining import KernelCode, linked
from tunesmith.expert.writing.naming import Names, words_of
from tunesmith.expert.writing.write import KernelPage, how_shared, in_code, pieces_text
from tunesmith.problem.problem import Launch, Problem
from tunesmith.problem.problem_text import toml_string
from tunesmith.problem.unused import without_unused
from tunesmith.space.expr import Expr, parse

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


def text_of_call(problem: Problem, parts: Sequence[WrittenPart], own: OwnText) -> str:
    """The template's text; raises `Unwritable` where the kernels do not go into one file."""
    codes = linked([_code(one) for one in parts], _taken(problem), own.text)
    ahead = "\n".join([*own.defaults, own.text]) if own.text else "\n".join(own.defaults)
    # Names with numbers are longer: some lines have to be broken again.
    pieces = ["\n".join(_fitting(piece)) for code in codes for piece in code.pieces]
    below = pieces_text(_with_includes_first(pieces, _included(own.text)))
    start = ahead.rstrip("\n") + "\n\n" if ahead.strip() else ""
    text = without_unused(start + below, (), since=len(start))
    heading = _joined(problem, parts, codes, own, text)
    about = [f"// {problem.name}: Written by Tunesmith from {problem.kernel.path.rsplit('/', 1)[-1]}."]
    for one, code in zip(parts, codes, strict=True):
        which = f"Kernel {one.part.number}" if one.part.number else "Kernel"
        about.append(f"// {which}, {code.name(one.page.entry)}: {how_shared(one.page.plan)}")
    if own.text:
        about.append("// The other kernels have the original's own text.")
    return "\n".join([*heading.lines(), "//", *about, "", text])


def kept_memory(page: KernelPage) -> str | None:
    """What the kernel takes of the user's file that has to be one memory for all kernels of the file."""
    for piece in page.preamble:
        words = words_of([piece])
        if words & set(_KEPT) and "constexpr" not in words and ("const" not in words or "*" in piece):
            return " ".join(piece.split())[:60]
    return None


def _code(one: WrittenPart) -> KernelCode:
    pieces = [part for piece in (*one.page.preamble, *one.page.code) for part in apart(piece)]
    return KernelCode(one.part.number, tuple(pieces))


def apart(piece: str) -> Iterator[str]:
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


def _fitting(piece: str) -> Iterator[str]:
    return (line for whole in piece.split("\n") for line in wrapped(whole))


def _with_includes_first(pieces: Sequence[str], before: Collection[str]) -> Iterator[str]:
    """`before`: those that stand above already."""
    included = [piece for piece in pieces if piece.startswith("#include")]
    lines = [line.strip() for piece in included for line in piece.split("\n")]
    yield "\n".join(line for line in dict.fromkeys(lines) if line not in before)
    yield from (piece for piece in pieces if piece not in included)


def _included(text: str) -> frozenset[str]:
    """What a text includes under no condition."""
    found, depth = set[str](), 0
    for line in without_comments(text).split("\n"):
        word = line.strip().removeprefix("#").lstrip() if line.lstrip().startswith("#") else ""
        depth += word.startswith("if") - word.startswith("endif")
        if depth == 0 and word.startswith("include"):
            found.add(line.strip())
    return frozenset(found)


def _taken(problem: Problem) -> frozenset[str]:
    texts = [problem.kernel.text, *(text for _, text in problem.kernel.headers)]
    names = [*problem.size_names, *(argument.name for argument in problem.arguments)]
    return words_of(texts) | {*names, *(name for name, _ in problem.kernel.defines)}


def _joined(
    problem: Problem, parts: Sequence[WrittenPart], codes: Sequence[KernelCode], own: OwnText, text: str
) -> Heading:
    headings = [_renamed(one.page.heading, code) for one, code in zip(parts, codes, strict=True)]
    launches = {place: [lines] for place, lines in zip(own.places, own.heading.launches, strict=True)}
    for one, code, heading in zip(parts, codes, headings, strict=True):
        for place in one.part.places:
            entry = f"entry = {toml_string(code.name(one.page.entry))}"
            lines = (entry, *heading.launches[0])
            launches[place] = [(*lines, *said) for said in _ways(problem.launches[place], one.page)]
    choices = [choice for one in parts for choice in one.page.plan.draft.schedule.choices]
    shape = [table for heading in (own.heading, *headings) for table in heading.shape or ()]
    said = [table for table in shape if table[1]]
    return Heading(
        tuple(param for heading in (*headings, own.heading) for param in heading.params),
        (
            ("require", tuple(_conditions("require", parts, headings, own))),
            ("prefer", tuple(_conditions("prefer", parts, headings, own))),
            ("answers", _answers((*headings, own.heading))),
        ),
        tuple(pair for heading in headings for pair in heading.defines),
        own.heading.flags,
        tuple(lines for place in sorted(launches) for lines in launches[place]),
        said or [("shape", [])],
        [table for heading in headings for table in heading.baked],
        in_code(choices, text) | own.heading.in_code,
    )


def _ways(launch: Launch, page: KernelPage) -> list[tuple[str, ...]]:
    """A launch that may overlap with the one ahead is there twice: a parameter says which is made."""
    switch = page.plan.draft.order.waits_if
    if not switch:
        return [tuple(said_of_launch(launch))]
    before = f"({launch.when.text}) and " if launch.when is not None else ""
    off, on = (replace(launch, when=parse(f"{before}{switch} {how}")) for how in ("== 0", "> 0"))
    return [tuple(said_of_launch(off)), ("pdl = true", *said_of_launch(on))]


def _renamed(heading: Heading, code: KernelCode) -> Heading:
    """With the names that the code now has for what the declaration defines."""
    defines = tuple((code.name(name), text) for name, text in heading.defines)
    baked = [(switch, [(code.name(name), text) for name, text in own]) for switch, own in heading.baked]
    return replace(heading, defines=defines, baked=baked)


def _table(heading: Heading, title: str) -> tuple[tuple[str, str], ...]:
    return dict(heading.conditions).get(title, ())


def _conditions(
    title: str, parts: Sequence[WrittenPart], headings: Sequence[Heading], own: OwnText
) -> Iterator[tuple[str, str]]:
    """What is asked of a kernel is asked at the sizes at which it is launched."""
    names = Names((), ())
    for one, heading in zip(parts, headings, strict=True):
        when = one.part.problem.launches[0].when
        for name, text in _table(heading, title):
            number = one.part.number
            yield names.fresh(f"{name}_{number}" if number else name), _where(when, text)
    for name, text in _table(own.heading, title):
        yield names.fresh(name), text


def _where(when: Expr | None, text: str) -> str:
    return text if when is None else f"not ({when.text}) or ({text})"


def _answers(headings: Iterable[Heading]) -> tuple[tuple[str, str], ...]:
    """A remedy that several kernels answer is there where one of them is."""
    found: dict[str, dict[str, None]] = {}
    for heading in headings:
        for name, text in _table(heading, "answers"):
            found.setdefault(name, {})[text] = None
    return tuple((name, _either(texts)) for name, texts in found.items())


def _either(texts: Mapping[str, None]) -> str:
    return " or ".join(f"({text})" if len(texts) > 1 else text for text in texts)
