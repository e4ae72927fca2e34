"""Requests to a model: our prompts, or the user's in their place; the material under headings; the shapes of
what is replied, and what is asked again where a reply cannot be used.

Material stays within a number of tokens: parts have a rank, and when all is too long the least important
are shortened to their summaries or left out. The kernel itself is never cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import inspect

from tunesmith.problem import device
from tunesmith.run.events import (
    LONGEST,
    Exchange,
    Expects,
    Message,
    Question,
    Reply,
    Request,
    Role,
    tokens_of,
)

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
_SHARED = re.compile(r"<<(\w+)>>")
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
    blocks, _, is_open = _split_fences(reply.text)
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
    blocks, _, _ = _split_fences(reply.text)
    text = next((b for b in blocks if b.lstrip().startswith("{")), None) or _extract_braces(reply.text)
    if text is None:
        cut = ": it was cut off" if reply.is_cut else ""
        return Unusable(f"the reply has no JSON object{cut}; send one object and nothing else")
    return decode_reply(text, kind)


def decode_reply(text: str, kind: type[T]) -> T | Unusable:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"), type=kind)
    except msgspec.ValidationError as error:
        return Unusable(
            f"the JSON is not of the shape asked for: {error}{_list_allowed_words(str(error), kind)}"
        )
    except (msgspec.DecodeError, RecursionError) as error:
        return Unusable(f"the reply is no JSON: {error}")


def _list_allowed_words(error: str, kind: type) -> str:
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
    return "\n".join(instead if line is None else line for line in _split_fences(text)[1])


def _split_fences(text: str) -> tuple[list[str], list[str | None], bool]:
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


def _extract_braces(text: str) -> str | None:
    begin, end = text.find("{"), text.rfind("}")
    return text[begin : end + 1] if 0 <= begin < end else None


MATERIAL = 24_000  # tokens that a request may spend on material
QUOTED = 60_000  # characters of its own reply that a model is shown again
REPAIRS = 1  # times a tester's or an analyst's reply that cannot be read goes back
LONGEST_WHY = 1500  # characters of a compiler's or oracle's words


@dataclass(frozen=True)
class PromptPart:
    """One heading and what is under it. `summary` may stand for it where there is no room; None: nothing can.

    The higher the rank, the sooner it gives way; rank 0 never does.
    """

    heading: str
    text: str
    rank: int = 0
    summary: str | None = ""


@dataclass(frozen=True)
class NoAnswer:
    """What a role has of its model in the end: nothing."""

    what: str
    why: str
    is_silent: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def own_prompt(name: str) -> str:
    """By the name of its file: a role, or a role in another strategy. What several have in common stands in
    files of its own, `<<name>>`."""
    text = _read_agent_file(f"prompts/{name}.md")
    return _SHARED.sub(lambda found: own_prompt(found[1]).rstrip("\n"), text)


def example_file(language: str, concrete: bool, plain: bool = False) -> str:
    """A small template, or a kernel without parameters, of the kernel's own language, as a reply."""
    kind = "plain" if plain else "kernel" if concrete else "template"
    file = kind + device.find_language(language).example
    return f"```\n{_read_agent_file(f'examples/{file}')}```\n"


def _read_agent_file(name: str) -> str:
    return resources.files("tunesmith.agents").joinpath(name).read_text(encoding="utf-8")


def of_role(
    role: Role,
    prompt: str,
    parts: Sequence[PromptPart],
    expects: Expects,
    example: str = "",
    changing: Sequence[PromptPart] = (),
) -> Question:
    """The example stands in the material, since not every model is shown anything else; `changing` behind it,
    so that a role's next request begins as this one does."""
    shown = [shape_part(example)] if example else []
    return Question(role, build_messages(prompt, [*parts, *shown, *changing]), expects, example)


def shape_part(example: str) -> PromptPart:
    return PromptPart("A reply of the right shape", fence_with_backticks(example))


def settle_turn(
    who: str,
    turn: Sequence[Exchange],
    repairs: int,
    read: Callable[[Reply], T | Unusable],
    first: Callable[[], Question],
    drafts: int | None = None,
    redo: Callable[[str], Question] | None = None,
) -> T | Question | NoAnswer:
    """What a role's model has said in this turn, in the words of `read`; else what it is asked: `first`, and
    where its reply cannot be used, as many times as `repairs` says, with what is wrong (`redo`, or `again`).
    With `drafts` only what was said since so many drafts counts as a reply."""
    said = [e for e in turn if drafts in (None, e.drafts)]
    if not said:
        return first()
    last = said[-1].reply
    if last is None:
        return NoAnswer(f"the {who} did not answer", said[-1].failed, True)
    found = read(last)
    if not isinstance(found, Unusable):
        return found
    if sum(e.reply is not None for e in turn) > repairs:
        return NoAnswer(f"the {who}'s reply cannot be used", found.reason)
    return redo(found.reason) if redo else ask_again(turn[0].request, last, found.reason)


def ask_again(first: Request, reply: Reply, why: str, between: Sequence[Message] = ()) -> Question:
    """The material of the turn's first request, the last reply, and what is wrong with it; `between` is what
    was said since that stays."""
    quoted = Message("assistant", shorten_middle(reply.text, QUOTED) or "(nothing)")
    said = (*first.messages[:2], *between, quoted, Message("user", refusal_message(why, first.expects)))
    return Question(first.role, said, first.expects, first.example)


def refusal_message(why: str, expects: Expects) -> str:
    file = "Send the whole file again, corrected, in one fenced block."
    return f"That cannot be used:\n\n{why}\n\n{'Send one JSON object.' if expects == 'json' else file}"


def build_messages(prompt: str, parts: Sequence[PromptPart], budget: int = MATERIAL) -> tuple[Message, ...]:
    return (Message("system", prompt), Message("user", fit_material(parts, budget)))


def fit_material(parts: Sequence[PromptPart], budget: int = MATERIAL) -> str:
    """All parts in their order, as many of them whole as there is room for."""
    kept = [part for part in parts if part.text.strip()]
    # The least important first; of equals the earlier one, which is the older.
    for at in sorted(range(len(kept)), key=lambda i: (-kept[i].rank, i)):
        if kept[at].rank == 0 or sum(tokens_of(_format_part(part)) for part in kept) <= budget:
            break
        summary = kept[at].summary
        if summary is not None:
            kept[at] = PromptPart(kept[at].heading, summary, kept[at].rank, None)
    return "\n\n".join(_format_part(part) for part in kept if part.text.strip())


def _format_part(part: PromptPart) -> str:
    return f"## {part.heading}\n\n{part.text.strip()}"


def fence_with_backticks(text: str) -> str:
    bare = [line.lstrip() for line in text.splitlines()]
    longest = max((len(line) - len(line.lstrip("`")) for line in bare), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def shorten_middle(text: str, most: int = LONGEST_WHY) -> str:
    """Beginning and end, where the words of a compiler say most."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n… ({len(text) - most} characters left out)\n{text[-(most // 2) :]}"
