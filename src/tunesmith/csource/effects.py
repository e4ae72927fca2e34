"""What evaluating a part of a program does besides giving a value: one answer for all who ask.

`Effects` is a set of flags. What a function, a built-in variable, a special register or an instruction does
is in the tables of `effect_words`; inline assembly is read by `assembly`; expressions, statements and the
bodies of helpers are gone through here, from the leaves up. What no table knows may do anything.

    Effects.NONE                    it only computes a value from values
    effects.may_drop                leaving it out changes nothing
    effects.may_repeat              doing it again gives the same and changes nothing more
    effects.any_thread              whichever thread does it, at whatever time, the value is the same
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.assembly import NotAssembly, is_assembly, read_assembly
from tunesmith.csource.effect_words import (
    ANYTHING,
    Effects,
    function_effects,
    instruction_effects,
    is_function,
    register_effects,
    variable_effects,
)

__all__ = [
    "ANYTHING", "Cause", "Effects", "Program", "effects_of", "function_effects", "is_function", "is_pure",
    "joined", "of_assembly", "of_text",
]  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """One thing that has effects, and what it is in words: "calls __ballot_sync"."""

    effects: Effects
    what: str


def joined(causes: Iterable[Cause]) -> Effects:
    return reduce(lambda all_, cause: all_ | cause.effects, causes, Effects.NONE)


@dataclass(frozen=True)
class Program:
    """What is known of a program: its own functions, and the variables of which an access must stay."""

    functions: Mapping[str, tuple[c.Function, ...]]
    volatile: frozenset[str] = frozenset()

    @staticmethod
    def of(source: c.Source | None, *within: c.Function) -> Program:
        if source is None:
            return _NOTHING
        own: dict[str, tuple[c.Function, ...]] = {}
        for function in source.functions:
            own[function.name] = (*own.get(function.name, ()), function)
        return Program(own, _volatile_in(source.preamble) | frozenset().union(*map(_volatile_of, within)))

    def called(self, call: c.Call) -> tuple[c.Function, ...]:
        """The file's functions a call may mean, by name and number of arguments."""
        if call.of is not None:
            return ()
        found = self.functions.get(call.function, ())
        return tuple(f for f in found if len(f.parameters) == len(call.args) and not f.is_kernel)


_NOTHING = Program({})


def effects_of(part: walk.Part, known: Program = _NOTHING) -> Effects:
    return joined(causes(part, known))


def is_pure(part: walk.Part, known: Program = _NOTHING) -> bool:
    """Whether evaluating it changes nothing, reads no memory, and may be left out or done again."""
    effects = effects_of(part, known)
    return effects.may_drop and effects.may_repeat and not effects & Effects.READS


def causes(part: walk.Part, known: Program = _NOTHING) -> Iterator[Cause]:
    """Everything in a part that has effects, in the order of the text; of the file's own functions too."""
    for node in walk.nodes_in(part):
        yield from _own(node, known)
        if isinstance(node, c.Call) and node.of is None:
            yield from _of_call(node, known)


def function_causes(function: c.Function, known: Program) -> Iterator[Cause]:
    """What a function does beyond computing a value from values, with all that it calls in turn.

    What it does to its own variables is nobody else's. Functions that call each other are each looked at
    once: the union over all that can be reached is the least answer that holds for all of them.
    """
    pending, seen = [function], {function.name}
    while pending:
        current = pending.pop()
        yield from _of_function(current, known)
        for call in walk.calls_in(current.body):
            for called in known.called(call):
                if called.name not in seen:
                    seen.add(called.name)
                    pending.append(called)


def _of_function(function: c.Function, known: Program) -> Iterator[Cause]:
    for parameter in function.parameters:
        if parameter.type.is_pointer:
            yield Cause(Effects.READS | Effects.WRITES, f"takes the pointer {parameter.name}")
        elif parameter.type.reference and not parameter.type.const:
            yield Cause(Effects.ASSIGNS, f"writes to its argument {parameter.name}")
    declared = set(walk.declared_in(function.body))
    own = declared | {parameter.name for parameter in function.parameters}
    if any(name not in declared for name in walk.stored_in(function.body)):
        yield Cause(Effects.WRITES, "writes to memory")
    for name in sorted(_written(function.body) - own):
        yield Cause(Effects.WRITES, f"writes to {name}, a variable of the file")
    within = Program(known.functions, known.volatile | _volatile_of(function))
    for node in walk.nodes_in(function.body):
        if isinstance(node, c.Call) and node.of is None:
            # What no table knows is asked about by whoever calls it: its text may stand elsewhere.
            found = () if known.called(node) else tuple(_of_library(node))
            yield from (cause for cause in found if cause.effects not in (ANYTHING, Effects.ASSIGNS))
        else:
            inside = (Effects.ASSIGNS, Effects.READS, Effects.UNKNOWN)
            yield from (cause for cause in _own(node, within) if cause.effects not in inside)


def _written(body: Iterable[c.Stmt]) -> frozenset[str]:
    """Variables that are set as a whole or in part, or whose address is taken."""
    found: set[str] = set()
    for node in walk.nodes_in(body):
        if isinstance(node, c.Verbatim) and is_assembly(node.text):
            found |= set(_set_by(node.text))
            continue
        target: c.Expr | None = None
        if isinstance(node, c.Assign):
            target = node.target
        elif isinstance(node, c.Unary) and node.op in ("++", "--", "&"):
            target = node.operand
        name, through = walk.root(target) if target is not None else (None, True)
        if name is not None and not through:
            found.add(name)
    return frozenset(found)


def _set_by(assembly: str) -> Iterator[str]:
    """Names in what an `asm` statement sets."""
    try:
        outputs = read_assembly(assembly).outputs
    except NotAssembly:
        return
    yield from _WORD.findall(re.sub(r'"[^"]*"|\[\w+\]', " ", outputs))


def _own(node: c.Expr | c.Stmt, known: Program) -> Iterator[Cause]:
    """The effects of one node by itself, without calls and without what is below it."""
    match node:
        case c.Name(name=name):
            effects = variable_effects(name)
            if name in known.volatile:
                effects |= Effects.VOLATILE
            if effects:
                is_volatile = name in known.volatile
                yield Cause(effects, f"uses {name}, which is volatile" if is_volatile else f"asks for {name}")
        case c.Assign():
            yield Cause(Effects.ASSIGNS, "assigns")
        case c.Unary(op="++" | "--" as op):
            yield Cause(Effects.ASSIGNS, f"counts by {op}")
        case c.Unary(op="*") | c.Index() | c.Member(arrow=True):
            yield Cause(Effects.READS, "reads memory")
        case c.Cast(type=type_) | c.Declare(type=type_) if type_.volatile:
            yield Cause(Effects.VOLATILE, f"uses memory as volatile {type_.base}")
        case c.Verbatim(text=text) if is_assembly(text):
            yield from of_assembly(text)
        case c.Call(of=of) if of is not None:
            yield Cause(Effects.UNKNOWN, "is not understood")
            yield from of_text(node.function, known)
        case c.Verbatim(text=text) | c.Opaque(text=text):
            yield Cause(Effects.UNKNOWN, "is not understood")
            yield from of_text(text, known)
        case c.Declare(storage="static", name=name, type=type_) if not type_.const:
            yield Cause(Effects.READS | Effects.WRITES, f"keeps {name} from call to call")
        case c.Declare(storage="shared" | "dynamic shared", name=name):
            yield Cause(Effects.READS | Effects.WRITES, f"uses the shared memory {name}")


def _of_call(call: c.Call, known: Program) -> Iterator[Cause]:
    own = known.called(call)
    for function in own:
        yield from function_causes(function, known)
    if not own:
        yield from _of_library(call)


def _of_library(call: c.Call) -> Iterator[Cause]:
    effects = Effects.NONE if _is_type(call.function) else function_effects(call.function)
    if effects:
        yield Cause(effects, f"calls {call.function}")


def _is_type(name: str) -> bool:
    return _TYPE.fullmatch(name) is not None


_TYPE = re.compile(r"(?:u?(?:int|char|short|long|longlong)|float|double|half|bool|dim)\d*(?:_t)?|size_t")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"(?<![\w.>])([A-Za-z_][\w:]*)\s*(?:<[\w\s,:*]*>)?\s*\(")


def of_text(text: str, known: Program = _NOTHING) -> Iterator[Cause]:
    """What text that was not understood does, as far as its words tell; nothing may rest on its silence."""
    if re.search(r"\bvolatile\b", text):
        yield Cause(Effects.VOLATILE, "uses volatile")
    for word in dict.fromkeys(_WORD.findall(text)):
        effects = variable_effects(word)
        if is_function(word) and word not in known.functions:
            effects |= function_effects(word)
        if word in known.volatile:
            effects |= Effects.VOLATILE
        if effects:
            yield Cause(effects, f"uses {word}")
    if is_assembly(text):
        yield from of_assembly(text)


@lru_cache(maxsize=512)
def of_assembly(text: str) -> tuple[Cause, ...]:
    """What the instructions of an `asm` statement do, one cause for each that does more than compute."""
    try:
        read = read_assembly(text)
    except NotAssembly as stop:
        return (Cause(ANYTHING, f"contains assembly that is not understood: {stop}"),)
    found: list[Cause] = []
    if read.clobbers_memory:
        found.append(Cause(Effects.FENCE, "contains assembly that orders memory"))
    for instruction in read.instructions:
        effects = instruction_effects(instruction.stem)
        if ".volatile" in instruction.opcode or ".mmio" in instruction.opcode:
            effects |= Effects.VOLATILE
        if instruction.needs_carry:
            effects = ANYTHING  # of an addition that stands elsewhere
        if effects == ANYTHING or instruction.unknown_operand:
            odd = instruction.unknown_operand or instruction.opcode
            found.append(Cause(ANYTHING, f"contains assembly whose '{odd}' is not known"))
        elif effects:
            found.append(Cause(effects, f"contains assembly: {instruction.opcode}"))
        for register in instruction.registers:
            effects = register_effects(register)
            if effects:
                found.append(Cause(effects, f"contains assembly that reads %{register}"))
    return tuple(found)


def _volatile_in(preamble: Iterable[str]) -> frozenset[str]:
    """Variables of the file that are declared volatile, by name."""
    found: set[str] = set()
    for text in preamble:
        for declared in re.split(r"[;{}]", text):
            if re.search(r"\bvolatile\b", declared):
                found |= set(_WORD.findall(declared.partition("=")[0])[-1:])
    return frozenset(found)


def _volatile_of(function: c.Function) -> frozenset[str]:
    found = {p.name for p in function.parameters if p.type.volatile}
    found |= {n.name for n in walk.nodes_in(function.body) if isinstance(n, c.Declare) and n.type.volatile}
    return frozenset(found)
