"""Reads a kernel source: its kernels, what they do with their arguments, how it launches them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.csource.lex import MAX_TEXT, lex, obstacle, split_at
from tunesmith.csource.nodes import Language
from tunesmith.csource.syntax import syntax_tree
from tunesmith.csource.types import PRIMITIVE
from tunesmith.errors import BadInput
from tunesmith.expert.reading.headers import (
    Header,
    Instantiation,
    KernelParameter,
    KernelSignature,
    SourceModel,
    Space,
    blank_source,
    elements_of,
    read_headers,
    template_arguments,
    unambiguous,
)
from tunesmith.expert.reading.launches import read_constants, read_launches
from tunesmith.expert.reading.pointer_use import HIDDEN, READ, WRITE, PointerUse, places_in
from tunesmith.problem.problem import Argument, Launch, Problem, element_type

if TYPE_CHECKING:
    from tree_sitter import Node

    from tunesmith.expert.reading.pointer_use import Places

MAX_NESTED = 1000  # levels of syntax: nobody writes as many
TYPE_WORDS = PRIMITIVE | {"half"}


_TYPEDEF = re.compile(r"\btypedef\s+([\w:][\w:\s]*?)\s+([^\W\d]\w*)\s*;")
_USING = re.compile(r"\busing\s+([^\W\d]\w*)\s*=\s*([\w:][\w:\s]*?)\s*;")
_INSTANTIATED = re.compile(
    r"(?<!extern )\btemplate\s+(?:__\w+__(?:\s*\([^()]*\))?\s+)*void\s+(?:__\w+__(?:\s*\([^()]*\))?\s+)*"
    r"(?:\w+\s*::\s*)*(\w+)\s*<([^;(){}]*)>\s*\("
)
_TYPE_PARAMETER = re.compile(r"\b(?:typename|class)\s+([^\W\d]\w*)")


def _is_deeper(root: Node, most: int) -> bool:
    """Whether anything lies more than so many levels down: to climb from there takes time by the square."""
    cursor, depth = root.walk(), 0
    while depth <= most:
        if cursor.goto_first_child():
            depth += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
            depth -= 1
    return True


def read_source(
    text: str, language: Language, *, where: str | None = None, defines: Iterable[tuple[str, str]] = ()
) -> SourceModel:
    """Read `text`; `where` names the file in errors, `defines` are macros given to the compiler. Raises
    BadInput when it defines no kernel."""
    if len(text) > MAX_TEXT:
        raise BadInput(f"the file is longer than {MAX_TEXT:,} characters", where=where, hint="split it up")
    source = blank_source(text, language, defines)
    if (trouble := obstacle(lex(source.code))) is not None:
        fault, _, advice = trouble.rpartition("; ")
        raise BadInput(fault, where=where, hint=advice)
    headers = read_headers(source, language)
    defined = [header for header in headers if header.body is not None]
    if not defined:
        raise _no_kernel(headers, language, where)
    root = syntax_tree(source.code, language)
    if _is_deeper(root, MAX_NESTED):
        fault = f"its code is nested more than {MAX_NESTED} levels deep"
        raise BadInput(fault, where=where, hint="split the expression or the block up")
    found = [(name, meaning) for meaning, name in _TYPEDEF.findall(source.plain)]
    found += _USING.findall(source.plain)
    aliases = {name: " ".join(meaning.split()) for name, meaning in unambiguous(found).items()}
    types = {*aliases, *_TYPE_PARAMETER.findall(source.plain)}
    use = PointerUse(root, source.macros, types, references=language != "opencl")
    kernels = [
        _signature(header, text, language, aliases, use, definitions)
        for header, definitions in _one_per_name(defined)
    ]
    constants = unambiguous([*read_constants(root), *source.plain_macros().items()])
    launches = () if language == "opencl" else tuple(read_launches(root, source.code))
    return SourceModel(
        tuple(kernels), launches, tuple(constants.items()), tuple(_instantiations(source.plain))
    )


def _instantiations(plain: str) -> Iterator[Instantiation]:
    for found in _INSTANTIATED.finditer(plain):
        line = plain.count("\n", 0, found.start()) + 1
        yield Instantiation(found[1], " ".join(found[2].split()), line)


def _signature(
    header: Header,
    text: str,
    language: Language,
    aliases: Mapping[str, str],
    use: PointerUse,
    definitions: int,
) -> KernelSignature:
    # A template parameter hides a typedef of the same name.
    aliases = {name: meaning for name, meaning in aliases.items() if name not in header.template_params}
    # Parsed on its own, so that nothing else in the file can spoil it.
    body = places_in(syntax_tree(f"void kernel_body() {header.body}", language))
    parameters = (
        read_parameter(tokens, index, language, aliases) for index, tokens in enumerate(header.parameters)
    )
    return KernelSignature(
        name=header.name,
        namespace=header.namespace,
        template_params=header.template_params,
        parameters=tuple(_with_access(parameter, body, use) for parameter in parameters),
        line=text.count("\n", 0, header.offset) + 1,
        launch_bounds=header.launch_bounds,
        reqd_work_group_size=header.reqd_work_group_size,
        dynamic_shared=header.dynamic_shared,
        conditional=header.conditional,
        definitions=definitions,
    )


def _with_access(parameter: KernelParameter, body: Places, use: PointerUse) -> KernelParameter:
    if not parameter.pointer:
        return parameter
    access = use.of(body, parameter.name)
    read, written = READ in access, WRITE in access
    if HIDDEN not in access:
        return replace(parameter, written=written, read=read)
    if parameter.const and not written:  # wherever a const pointer goes, it can only be read there
        return replace(parameter, written=False, read=True)
    return replace(parameter, written=written or None, read=read or None)


def _one_per_name(headers: Iterable[Header]) -> list[tuple[Header, int]]:
    groups: dict[tuple[str, str], list[Header]] = {}
    for header in headers:
        groups.setdefault((header.namespace, header.name), []).append(header)
    # The general template before its specialisations, and the long body before the stub that another #if
    # leaves for old hardware.
    return [
        (max(group, key=lambda header: (not header.specialised, len(header.body or ""))), len(group))
        for group in groups.values()
    ]


def _no_kernel(headers: Iterable[Header], language: Language, where: str | None) -> BadInput:
    marker = "__kernel" if language == "opencl" else "__global__"
    declared = sorted({header.name for header in headers})
    found = f"it only declares {', '.join(declared)}" if declared else "it has none"
    return BadInput(
        f"a kernel source must define a function marked {marker}; {found}",
        hint="give the file with the kernel's body; kernels that a macro writes are not seen: "
        "write them out, or give the preprocessed source",
        where=where,
    )


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
) -> KernelParameter:
    """`aliases` are the file's typedefs. Accesses are filled in later, from the body."""
    declared = _without_attributes(split_at("=", tokens)[0])
    stars = [at for at in _outside_brackets(declared) if declared[at] in ("*", "[")]
    qualifiers = _OPENCL_QUALIFIERS if language == "opencl" else _QUALIFIERS
    name_at = _name_position(declared, qualifiers)
    type_end = stars[0] if stars else (len(declared) if name_at is None else name_at)
    base_words = [t for at, t in enumerate(declared[:type_end]) if t not in qualifiers and at != name_at]
    spaces = [_SPACES[token] for token in declared if token in _SPACES] if language == "opencl" else []
    base = _join(base_words)
    element, vector = elements_of(_resolve(base, aliases), language)
    depth = len(stars)
    known = depth <= 1 and not {"&", "&&", "(", "..."}.intersection(declared)
    const = "const" in declared[:type_end] or spaces[:1] == ["constant"]
    return KernelParameter(
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


def signature_faults(problem: Problem) -> list[str]:
    """Every disagreement, in words. A kernel the reader cannot find is left to the compiler."""
    language = problem.kernel.language
    if language not in ("opencl", "cuda", "hip"):
        return []
    try:
        model = read_source(problem.kernel.text, language)  # type: ignore[arg-type]
    except BadInput:
        return []
    faults: list[str] = []
    for launch in problem.launches:
        entry = launch.entry.split("<")[0].strip().removeprefix("::")
        meant = [k for k in model.kernels if k.qualified_name == entry]
        meant = meant or [k for k in model.kernels if k.name == entry.split("::")[-1]]
        # What the preprocessor decides is not known here.
        if len(meant) == 1 and meant[0].definitions == 1 and not meant[0].conditional:
            faults += _compare(problem, launch, meant[0])
    return faults


def missing_entry(problem: Problem) -> str | None:
    """Why no kernel can be called what a launch calls it, where that is certain without a compiler."""
    kernel = problem.kernel
    if kernel.language not in ("opencl", "cuda", "hip") or "#include" in kernel.text or "##" in kernel.text:
        return None
    for entry in dict.fromkeys(launch.entry for launch in problem.launches):
        name = entry.split("<")[0].split("::")[-1].strip()
        outside = [*kernel.flags, *(text for define in kernel.defines for text in define)]
        if (
            re.search(rf"\b{re.escape(name)}\b", kernel.text)
            or any(name in text for text in outside)
            or "{" in name
        ):
            continue
        try:
            known = [k.name for k in read_source(kernel.text, kernel.language).kernels]  # type: ignore[arg-type]
        except BadInput:
            return None
        return f"entry {entry!r} is nowhere in {kernel.path}, which defines {', '.join(known)}"
    return None


def _compare(problem: Problem, launch: Launch, kernel: KernelSignature) -> list[str]:
    taken = [p.name for p in kernel.parameters]
    given = list(launch.args)
    where = f"{problem.kernel.path}:{kernel.line}"
    both = f"the kernel takes ({', '.join(taken)}), the problem gives ({', '.join(given)})"
    if len(taken) != len(given):
        return [f"{kernel.name} takes {len(taken)} arguments, {len(given)} are given: {both} ({where})"]
    if taken != given and set(taken) == set(given):
        return [f"the arguments of {kernel.name} are in another order: {both} ({where})"]
    faults = []
    bound = dict(zip(kernel.template_params, template_arguments(launch.entry), strict=False))
    for number, (parameter, name) in enumerate(zip(kernel.parameters, given, strict=True), start=1):
        fault = _mismatch(parameter, problem.argument(name), problem.kernel.language)
        fault = fault or _wrong_width(parameter, problem.argument(name), bound, launch.entry)
        if fault:
            faults.append(f"argument {number} of {kernel.name}: {fault} in problem.toml ({where})")
    return faults


def _mismatch(parameter: KernelParameter, argument: Argument, language: str) -> str | None:
    is_pointer = argument.role != "scalar"
    if language != "opencl" and _unknowable(parameter, argument):
        return None
    if parameter.pointer != is_pointer:
        kinds = ("a scalar", "an array")
        own, given = kinds[parameter.pointer], kinds[is_pointer]
        return f"{parameter.name} is {own} in the kernel, {argument.name} is {given}"
    if (parameter.space == "local") != (argument.role == "local"):
        own = f"{parameter.space or 'global'} memory in the kernel"
        return f"{parameter.name} is {own}, {argument.name} has role {argument.role}"
    if parameter.element is None:
        return None
    if parameter.vector > 1 and not is_pointer:
        return f"{parameter.name} is {parameter.type} in the kernel, a scalar argument is a single number"
    own_type, given_type = element_type(parameter.element), argument.element
    # Small floats are often passed as plain integers of their size; anything else must agree in kind.
    same_kind = own_type.bytes <= 2 or (own_type.kind == "float") == (given_type.kind == "float")
    if own_type.bytes != given_type.bytes or not same_kind:
        return f"{parameter.name} is {parameter.element} in the kernel, {argument.name} is {argument.type}"
    return None


def _wrong_width(
    parameter: KernelParameter, argument: Argument, bound: Mapping[str, str], launched: str
) -> str | None:
    """An array of a template's type, which the entry names, has elements of that many bytes."""
    if parameter.element is not None or not parameter.pointer or parameter.type.count("*") != 1:
        return None
    element, vector = elements_of(bound.get(parameter.base, ""), "cuda")
    if element is None or vector > 1 or argument.role == "scalar" or argument.element.packed > 1:
        return None
    own = element_type(element)
    if own.bytes == argument.element.bytes or own.bytes == 1:
        return None
    return f"{parameter.name} is {element} by the entry {launched}, {argument.name} is {argument.type}"


def _unknowable(parameter: KernelParameter, argument: Argument) -> bool:
    """What C++ leaves open: a type may be a pointer, and a pointer may be null or carry anything."""
    if not parameter.pointer:
        return parameter.element is None
    if argument.role == "scalar":
        return argument.type in ("int64", "uint64") and argument.value is not None
    if parameter.element is None:
        return True
    carrier = element_type(parameter.element)
    wide = parameter.vector > 1 or (carrier.kind != "float" and argument.element.packed > 1)
    return wide or (carrier.kind != "float" and carrier.bytes == 1)
