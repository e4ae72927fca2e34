"""What is taken from a reply: one fenced file, or one JSON object of a known shape, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import inspect

from tunesmith.core.dialogue import LONGEST, Reply

T = TypeVar("T")

_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_NO_SUCH_WORD = re.compile(r"Invalid enum value .* - at `\$(?P<path>\S*)`\Z", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[")  # into a field, or, without a name, into a list
SPENT = "the reply ran into its limit before it had begun: think less, and answer"
MARK = "/// tunesmith"  # what a template's header begins with
NO_HEADER = (
    f"the file has no header: it begins with `// {MARK}`, then `// [launch]` with `// grid = [...]` and "
    "`// block = [...]`, and closes with `// ///`"
)


@dataclass(frozen=True)
class Unusable:
    """Why a reply cannot be used, in words its author can act on."""

    reason: str


def read_file(reply: Reply) -> str | Unusable:
    """The one fenced block that is a template; where there is a single block, that one."""
    if (fault := _no_text(reply)) is not None:
        return fault
    blocks, _, is_open = _split(reply.text)
    marked = [block for block in blocks if MARK in block]
    if len(marked) == 1:
        return marked[0]
    if len(marked) > 1:
        return Unusable(f"the reply has {len(marked)} templates in fences; send one whole file, once")
    if is_open or reply.is_cut:
        return Unusable("the reply ends inside a fenced block: it was cut off; send a shorter file, whole")
    if len(blocks) == 1:
        return blocks[0]
    if not blocks:
        return Unusable("the reply has no fenced block; send the whole file between two lines of ```")
    return Unusable(
        f"none of the {len(blocks)} fenced blocks has the header `// {MARK}`; send one whole file"
    )


def read_kernel(reply: Reply) -> str | Unusable:
    """The one fenced file, where it must have a header; whether it is right is for others to say."""
    text = read_file(reply)
    return Unusable(NO_HEADER) if isinstance(text, str) and MARK not in text else text


def read_json(reply: Reply, kind: type[T]) -> T | Unusable:
    """One object of that kind, alone, in a fence, or with words around it."""
    if (fault := _no_text(reply)) is not None:
        return fault
    blocks, _, _ = _split(reply.text)
    text = next((b for b in blocks if b.lstrip().startswith("{")), None) or _braced(reply.text)
    if text is None:
        cut = ": it was cut off" if reply.is_cut else ""
        return Unusable(f"the reply has no JSON object{cut}; send one object and nothing else")
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"), type=kind)
    except msgspec.ValidationError as error:
        return Unusable(f"the JSON is not of the shape asked for: {error}{_known(str(error), kind)}")
    except (msgspec.DecodeError, RecursionError) as error:
        return Unusable(f"the reply is no JSON: {error}")


def _known(error: str, kind: type) -> str:
    """The words of which one must stand where another does; empty where it is about something else."""
    found = _NO_SUCH_WORD.match(error)
    if found is None:
        return ""
    shape = inspect.type_info(kind)
    for name in _STEP.findall(found["path"]):
        if isinstance(shape, inspect.StructType):
            shape = next(field.type for field in shape.fields if field.encode_name == name)
        elif isinstance(shape, inspect.VarTupleType):
            shape = shape.item_type
    known = shape.values if isinstance(shape, inspect.LiteralType) else ()
    return f"; known are {', '.join(map(str, known))}" if known else ""


def _no_text(reply: Reply) -> Unusable | None:
    if len(reply.text) > LONGEST:
        return Unusable(f"the reply is longer than {LONGEST} characters; no file or plan needs that")
    return Unusable(SPENT) if reply.is_cut and not reply.text.strip() else None


def without_files(text: str, instead: str) -> str:
    """What is said around fenced blocks, each of them replaced."""
    return "\n".join(instead if line is None else line for line in _split(text)[1])


def _split(text: str) -> tuple[list[str], list[str | None], bool]:
    """The fenced blocks; the lines around them, with None for each block; whether the last one is open."""
    blocks: list[str] = []
    around: list[str | None] = []
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not fence:
            around.append(None if found else line)
            fence, lines = (found["fence"], []) if found else ("", lines)
        elif found and found["fence"].startswith(fence) and not found["info"].strip():
            blocks.append("\n".join(lines) + "\n")
            fence = ""
        else:
            lines.append(line)
    return blocks, around, bool(fence)


def _braced(text: str) -> str | None:
    begin, end = text.find("{"), text.rfind("}")
    return text[begin : end + 1] if 0 <= begin < end else None
