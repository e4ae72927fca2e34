"""The shapes of what models reply in JSON. Unknown fields are refused, lengths are bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import inspect

from tunesmith.run.dialogue import LONGEST, Reply

Sentence = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
Distribution = Literal["normal", "uniform", "positive", "wide", "integers", "spikes", "zeros", "ones"]


class PlanReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do next. `base` names the candidate to start from; empty is the best correct one so far."""

    decision: Literal["refactor", "search", "stop"]
    why: Sentence
    what: Annotated[str, msgspec.Meta(max_length=8000)] = ""  # for the author: what to change, concretely
    base: Annotated[str, msgspec.Meta(max_length=20)] = ""
    moves: Annotated[tuple[Word, ...], msgspec.Meta(max_length=24)] = ()
    expected_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] | None = None


class RewriteReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to change next in a concrete kernel, in words."""

    decision: Literal["rewrite", "stop"]
    why: Sentence
    what: Annotated[str, msgspec.Meta(max_length=8000)] = ""
    expected_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] | None = None


class StopReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    decision: Literal["stop"]
    why: Annotated[str, msgspec.Meta(max_length=4000)] = "nothing worth its price is left"


class CaseReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sizes: dict[Word, Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]]
    why: Sentence
    values: Distribution = "normal"


class Cases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Further cases inside the contract; they add to what is tested anyway."""

    cases: Annotated[tuple[CaseReply, ...], msgspec.Meta(max_length=16)]


class Analysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What bounds the kernel. `evidence` repeats numbers that were given, with their names."""

    bound: Sentence
    evidence: Annotated[tuple[Sentence, ...], msgspec.Meta(min_length=1, max_length=64)]
    advice: Annotated[tuple[Sentence, ...], msgspec.Meta(max_length=64)] = ()


ANALYSIS = (
    '{"bound": "latency of global loads", "evidence": ["DRAM at 0.21 of its rate", "memory stalls 0.88"], '
    '"advice": ["more loads in flight per thread"]}'
)
REWRITE = (
    '{"decision": "rewrite", "why": "loads of 2 bytes keep memory at 21 % of its rate", "what": "Read and '
    'write eight halves at once, 128 threads per block; keep the sum in registers.", "expected_gain": 1.8}'
)
_REFACTOR = '{"decision": "refactor", "why": "loads of 2 bytes keep memory at 21 % of its rate", '
_IN_WORDS = (
    '"what": "Read and write VEC halves at once, VEC in 1, 2, 4, 8; ITEMS packs of a thread in flight, 1, 2, '
    '4; BLOCK threads, 64 to 512.", "expected_gain": 1.8}'
)


def plan_example(moves: Sequence[str], writes: bool) -> str:
    """Of a plan that could be carried out: in words where somebody writes, else by moves that apply."""
    if writes or not moves:
        return _REFACTOR + _IN_WORDS
    named = ", ".join(f'"{name}"' for name in moves[:3])
    return f'{_REFACTOR}"moves": [{named}]}}'


def cases_example(sizes: Mapping[str, int]) -> str:
    """With the problem's own names."""
    shown = ", ".join(f'"{name}": {value}' for name, value in sizes.items())
    why = "what this shows that others do not"
    return f'{{"cases": [{{"sizes": {{{shown}}}, "values": "uniform", "why": "{why}"}}]}}'


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
