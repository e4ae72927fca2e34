"""Which of the file's functions a call means, what it does beyond its value, and who needs whom."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tunesmith.expert.c.bind import complete_arguments, template_meaning
from tunesmith.expert.c.infer import Types, type_of
from tunesmith.expert.c.nodes import Call, Declare, Expr, Function, Name, Source, Type, Verbatim
from tunesmith.expert.c.specialise import file_meaning, specialise
from tunesmith.expert.c.unreadable import Unreadable
from tunesmith.expert.c.walk import calls_in, nodes_in, stored_in

_INDICES = ("threadIdx.", "blockIdx.", "blockDim.", "gridDim.")
COLLECTIVE = (
    "__shfl", "__syncthreads", "__syncwarp", "__ballot", "__any", "__all", "__match", "__activemask",
    "__reduce", "atomic", "atom_", "__threadfence", "barrier", "mem_fence", "sub_group", "work_group",
    "get_", "__ld", "__st", "vload", "vstore", "async_work_group", "__pipeline", "__nanosleep",
)  # fmt: skip


# Instructions that make values of values: no memory, no other thread, no special register.
_ARITHMETIC = frozenset({
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign", "cos",
    "cvt", "div", "dp2a", "dp4a", "ex2", "fma", "lg2", "lop3", "mad", "max", "min", "mov", "mul", "mul24",
    "mad24", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf",
    "shl", "shr", "sin", "slct", "sqrt", "sub", "szext", "tanh", "testp", "xor",
})  # fmt: skip


_ASSEMBLY = re.compile(r'\s*(?:__)?asm(?:__)?\s*(?:__)?(?:volatile)?(?:__)?\s*\(((?:\s*"(?:[^"\\]|\\.)*")+)')


def own_functions(call: Call, source: Source) -> list[Function]:
    """The file's functions a call may mean, by name and number of arguments."""
    return [
        function
        for function in source.functions
        if function.name == call.function
        and len(function.parameters) == len(call.args)
        and not function.is_kernel
    ]


def touches(function: Function, source: Source) -> str:
    """What a function does besides computing a value from values, in words; "" for a pure one."""
    pending, seen = [function], {function.name}
    while pending:
        current = pending.pop()
        reason = _touches_itself(current)
        if reason:
            return reason
        for call in calls_in(current.body):
            for called in own_functions(call, source):
                if called.name not in seen:
                    seen.add(called.name)
                    pending.append(called)
    return ""


def _touches_itself(function: Function) -> str:
    for parameter in function.parameters:
        if parameter.type.is_pointer:
            return f"takes the pointer {parameter.name}"
        if parameter.type.reference and not parameter.type.const:
            return f"writes to its argument {parameter.name}"
    local = {node.name for node in nodes_in(function.body) if isinstance(node, Declare)}
    if any(name not in local for name in stored_in(function.body)):
        return "writes to memory"
    for node in nodes_in(function.body):
        if isinstance(node, Name) and node.name.startswith(_INDICES):
            return f"asks for {node.name}"
        if isinstance(node, Call) and node.function.startswith(COLLECTIVE):
            return f"calls {node.function}"
        if isinstance(node, Declare) and "shared" in node.storage:
            return f"uses the shared memory {node.name}"
        if isinstance(node, Verbatim) and node.names & {"asm", "__asm__"} and not _only_computes(node.text):
            return "contains assembly"
    return ""


def _only_computes(assembly: str) -> bool:
    """Whether every instruction of an `asm` statement is arithmetic on its operands."""
    found = _ASSEMBLY.match(assembly)
    if found is None or "%%" in found[1]:
        return False
    text = re.sub(r"\\[nt]", ";", "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[1])))
    lines = [re.sub(r"^@!?\w+\s+", "", line.strip(" {}")) for line in text.split(";")]
    return all(line.startswith(".reg") or line.split(".")[0] in _ARITHMETIC for line in lines if line)


def resolve(call: Call, types: Types, source: Source) -> Function | str:
    """The function a call means with its template arguments filled in; a sentence where that is not clear."""
    given = [type_of(arg, types, source.functions, source.language) for arg in call.args]
    special = [f for f in own_functions(call, source) if f.specialises]
    candidates = [f for f in own_functions(call, source) if not f.specialises]
    if len(candidates) != 1:
        # As the language ranks them: a function for just these types, then a template that fits them.
        exact = [f for f in (*candidates, *special) if not f.template and _matches(f, given)]
        candidates = exact or [f for f in candidates if f.template]
    # With template arguments at the call, it means a template or what is written for one.
    fits = [f for f in candidates if not call.template_args or f.text.startswith("template")]
    if len(fits) != 1:
        return f"which {call.function} is called cannot be told from its arguments"
    function = fits[0]
    try:
        if not function.template:
            return specialise(function, file_meaning(source))
        texts = _deduced(function, call, types, source)
        exact = [f for f in special if f.specialises == texts]
        if exact:
            return specialise(exact[0], file_meaning(source))
        arguments = complete_arguments(function.template, texts, source)
        return specialise(function, template_meaning(function.template, arguments, source))
    except Unreadable as trouble:
        return f"{call.function}: {trouble.reason}"


def _matches(function: Function, given: list[Type | None]) -> bool:
    return all(
        type_ is not None and (parameter.type.base, parameter.type.pointers) == (type_.base, type_.pointers)
        for parameter, type_ in zip(function.parameters, given, strict=True)
    )


def _deduced(function: Function, call: Call, types: Types, source: Source) -> tuple[str, ...]:
    """Template arguments: those written at the call, then those its arguments' types tell."""
    texts = list(call.template_args)
    for parameter in function.template[len(texts) :]:
        found = {
            text
            for formal, arg in zip(function.parameters, call.args, strict=True)
            if formal.type.base == parameter.name and (text := _deduced_text(formal.type, arg, types, source))
        }
        if parameter.kind == "type" and len(found) == 1:
            texts.append(found.pop())
        elif parameter.default:
            break
        else:
            raise Unreadable(f"its template parameter {parameter.name} cannot be told from the arguments")
    return tuple(texts)


def _deduced_text(formal: Type, arg: Expr, types: Types, source: Source) -> str:
    type_ = type_of(arg, types, source.functions, source.language)
    if type_ is None or type_.pointers < formal.pointers:
        return ""
    extra = type_.pointers - formal.pointers
    const = "const " if type_.const and not formal.const and type_.pointers else ""
    return const + type_.base + "*" * extra


def helpers_needed(function: Function, source: Source) -> tuple[Function, ...]:
    """The file's functions that a function still calls, those they call before them."""
    done: dict[int, Function] = {}
    pending: list[tuple[Function, bool]] = [(f, False) for f in reversed(_called(function, source))]
    seen: set[int] = set()
    while pending:
        current, ready = pending.pop()
        if ready:
            done[id(current)] = current
        elif id(current) not in seen:
            seen.add(id(current))
            pending.append((current, True))
            pending += [(f, False) for f in reversed(_called(current, source)) if id(f) not in seen]
    return tuple(helper for helper in done.values() if helper.text)


def _called(function: Function, source: Source) -> list[Function]:
    names = {call.function for call in calls_in(function.body)}
    names |= _words_in_text(nodes_in(function.body))
    for call in calls_in(function.body):
        names |= {word for text in call.template_args for word in re.findall(r"\w+", text)}
    return [f for f in source.functions if f.name in names and not f.is_kernel]


def _words_in_text(nodes: Iterable[object]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        found |= getattr(node, "names", frozenset())
    return found
