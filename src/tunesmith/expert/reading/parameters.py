"""One kernel parameter, read from the tokens between two commas of its header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tunesmith.csource.nodes import Language
from tunesmith.expert.reading.element_types import TYPE_WORDS, element_type
from tunesmith.expert.reading.headers import split
from tunesmith.expert.reading.source_model import Parameter, Space

_SPACES: Mapping[str, Space] = {
    "__global": "global", "global": "global", "__local": "local", "local": "local",
    "__constant": "constant", "constant": "constant",
}  # fmt: skip
_RESTRICT = frozenset({"restrict", "__restrict", "__restrict__"})
_QUALIFIERS = _RESTRICT | {
    "const", "volatile", "register", "struct", "enum", "typename", "class", "__grid_constant__",
}  # fmt: skip
# `local` and the like are ordinary names in CUDA.
_OPENCL_QUALIFIERS = _QUALIFIERS | set(_SPACES) | {
    "__private", "private", "__read_only", "read_only", "__write_only", "write_only", "__read_write",
    "read_write",
}  # fmt: skip


def read_parameter(
    tokens: Sequence[str], index: int, language: Language, aliases: Mapping[str, str]
) -> Parameter:
    """`aliases` are the file's typedefs. Accesses are filled in later, from the body."""
    declared = _without_attributes(split(tokens, "=")[0])
    stars = [at for at in _outside_brackets(declared) if declared[at] in ("*", "[")]
    qualifiers = _OPENCL_QUALIFIERS if language == "opencl" else _QUALIFIERS
    name_at = _name_position(declared, qualifiers)
    type_end = stars[0] if stars else (len(declared) if name_at is None else name_at)
    base_words = [t for at, t in enumerate(declared[:type_end]) if t not in qualifiers and at != name_at]
    spaces = [_SPACES[token] for token in declared if token in _SPACES] if language == "opencl" else []
    base = _join(base_words)
    element, vector = element_type(_resolve(base, aliases), language)
    depth = len(stars)
    odd = "&" in declared or "(" in declared or "..." in declared
    known = depth <= 1 and not odd
    const = "const" in declared[:type_end] or spaces[:1] == ["constant"]
    return Parameter(
        name=declared[name_at] if name_at is not None else f"argument{index}",
        type=("const " if "const" in declared[:type_end] else "") + base + "*" * depth,
        base=base,
        element=element if known else None,
        vector=vector,
        pointer=depth > 0,
        const=const,
        space=spaces[0] if spaces else None,
        restrict=any(token in _RESTRICT or token.lower().strip("_") == "restrict" for token in declared),
        written=False,
        read=not depth,
    )


def _without_attributes(tokens: Sequence[str]) -> list[str]:
    kept: list[str] = []
    depth, dropping = 0, False
    for token in tokens:
        if token == "__attribute__":
            dropping = True
        elif dropping:
            depth += (token == "(") - (token == ")")
            dropping = depth > 0
        else:
            kept.append(token)
    return kept


def _name_position(declared: Sequence[str], qualifiers: frozenset[str]) -> int | None:
    """The last identifier outside brackets, unless it is itself the type of an unnamed parameter."""
    outside = ((at, declared[at]) for at in _outside_brackets(declared))
    seen = [at for at, token in outside if token.isidentifier() and token not in qualifiers]
    if len(seen) < 2 and not (seen and "<" in declared[: seen[-1]]):
        return None
    last = seen[-1]
    qualified = last > 0 and declared[last - 1] == "::"  # `const at::Half`, a type without a name
    return None if qualified or declared[last] in TYPE_WORDS else last


def _outside_brackets(tokens: Sequence[str]) -> Iterator[int]:
    depth = 0
    for at, token in enumerate(tokens):
        depth -= token in (">", ")", "]")
        if depth == 0:
            yield at
        depth += token in ("<", "(", "[")


def _join(words: Sequence[str]) -> str:
    text = ""
    for word in words:
        apart = (text[-1:] + word[:1]).replace("_", "a").isalnum() and text
        text += f" {word}" if apart else word
    return text


def _resolve(base: str, aliases: Mapping[str, str]) -> str:
    for _ in range(8):
        if base not in aliases:
            break
        base = aliases[base]
    return base
