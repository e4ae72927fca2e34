"""Reads a kernel source: its kernels, what they do with their arguments, how it launches them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import TYPE_CHECKING

from tunesmith.base.errors import BadInput
from tunesmith.expert.drafts.headers import (
    Header,
    Instantiation,
    KernelParameter,
    KernelSignature,
    MacroText,
    SourceModel,
    Space,
    blank_source,
    elements_of,
    read_headers,
    template_arguments,
    unambiguous_names,
)
from tunesmith.expert.drafts.launches import read_constants, read_launches
from tunesmith.problem.problem import Argument, Launch, Problem, element_type
from tunesmith.source.lex import find_parse_obstacle, lex, split_at
from tunesmith.source.macros import MAX_NESTING
from tunesmith.source.reader.grammar import (
    callee_name,
    declared_name,
    is_field,
    syntax_nodes,
    syntax_tree,
    text_of,
)
from tunesmith.source.text import MAX_TEXT
from tunesmith.source.tree import Language
from tunesmith.source.types import PRIMITIVE

if TYPE_CHECKING:
    from tree_sitter import Node

    Places = Mapping[str, list[Node]]


# -- What a function body does through a pointer: every occurrence of its name is followed up the syntax
# tree.
#
# An occurrence either ends in a read or a write, makes another name for the same memory, touches no memory
# (a comparison, an offset), or goes where it cannot be followed. The last is reported, never guessed.


_DEEPEST = 50  # calls within calls that are still followed
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_DECLARATORS = frozenset({
    "pointer_declarator", "reference_declarator", "array_declarator", "function_declarator",
    "parameter_declaration", "optional_parameter_declaration", "abstract_pointer_declarator",
    "lambda_capture_specifier",
})  # fmt: skip
_NO_MEMORY = frozenset({
    "expression_statement", "for_statement", "if_statement", "while_statement", "do_statement",
    "condition_clause", "comma_expression", "unary_expression", "sizeof_expression",
})  # fmt: skip


@dataclass(frozen=True)
class _PointerName:
    """A name for the memory in question: a pointer to it, or (`reference`) the memory itself."""

    name: str
    reference: bool


class PointerUse:
    """Follows pointers through the bodies and the helper functions of one file."""

    def __init__(
        self, root: Node, macros: Iterable[MacroText], types: Iterable[str], *, references: bool
    ) -> None:
        self._references = references  # whether the language has them: C++ does, C does not
        self._types = frozenset(types)
        self._macro_words: dict[str, set[str]] = {}
        for macro in macros:
            inside = set(_IDENTIFIER.findall(macro.body)) - set(macro.parameters or ())
            self._macro_words.setdefault(macro.name, set()).update(inside)
        self._functions: dict[str, list[Node]] = {}
        for node in syntax_nodes(root):
            if node.type == "function_definition":
                name = declared_name(node.child_by_field_name("declarator"))
                self._functions.setdefault(text_of(name), []).append(node)
        self._bodies: dict[int, Places] = {}
        self._effects: dict[tuple[str, int, bool], PointerAccess] = {}
        self._depth = 0

    def of(self, body: Places, name: str, *, reference: bool = False) -> PointerAccess:
        hidden = self._behind_macros(body)
        access = NONE
        pending = [_PointerName(name, reference)]
        seen: set[_PointerName] = set()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            if current.name in hidden:
                access |= HIDDEN
            for node in body.get(current.name, ()):
                use = self._classify_use(node, current.reference)
                if isinstance(use, _PointerName):
                    pending.append(use)
                else:
                    access |= use
        return access

    def _behind_macros(self, places: Places) -> set[str]:
        """Names that the macros used in a body mention in their replacement."""
        pending = [name for name in places if name in self._macro_words]
        reached: set[str] = set()
        while pending:
            fresh = self._macro_words[pending.pop()] - reached
            reached |= fresh
            pending += [name for name in fresh if name in self._macro_words]
        return reached

    def _classify_use(self, node: Node, memory: bool) -> PointerAccess | _PointerName:
        """Climb from an occurrence; `memory` says whether `node` is the memory or a pointer to it."""
        if node.type == "type_identifier":  # `Tensor t(out, n);` reads as a function declaration
            return HIDDEN
        while (parent := node.parent) is not None:
            use = self._use_in(parent, node, memory)
            if not isinstance(use, bool):
                return use
            # A call that only casts is climbed past with its arguments.
            node, memory = (parent.parent or parent if parent.type == "argument_list" else parent), use
        return HIDDEN

    def _use_in(self, parent: Node, node: Node, memory: bool) -> PointerAccess | _PointerName | bool:
        """What a node does by standing in another; or nothing yet, and whether that one is memory."""
        operator = text_of(parent.child_by_field_name("operator"))
        match parent.type:
            case "parenthesized_expression" | "cast_expression":
                return memory
            case "binary_expression" | "conditional_expression":
                if memory:
                    return READ
                is_pointer = operator in ("+", "-", "") and not is_field(parent, "condition", node)
                return False if is_pointer else NONE
            case "subscript_expression" if is_field(parent, "argument", node):
                return True
            case "subscript_expression" | "subscript_argument_list":
                return READ if memory else HIDDEN
            case "field_expression":
                return True if memory or operator == "->" else HIDDEN
            case "pointer_expression" if (operator == "*") != memory:
                return operator == "*"
            # *p[i], or &p: a pointer to a pointer; or a method of the memory, which may change it
            case "pointer_expression" | "call_expression":
                return READ | HIDDEN if memory else HIDDEN
            case "update_expression":
                return BOTH if memory else False
            case "assignment_expression":
                return _assignment_access(parent, node, memory)
            case "init_declarator" | "declaration":
                return _declaration_access(parent, node, memory)
            case "argument_list":
                use = self._passed(parent, node, memory)
                return memory if use is None else use
            case kind if kind in _DECLARATORS:
                return NONE
            case kind:
                return READ if memory and kind != "ERROR" else NONE if kind in _NO_MEMORY else HIDDEN

    def _passed(self, arguments: Node, node: Node, memory: bool) -> PointerAccess | None:
        """The effect of handing `node` to a call; None when the call only casts the pointer."""
        call = arguments.parent
        if call is None or call.type != "call_expression":
            return READ | HIDDEN if memory else HIDDEN  # a constructor
        name = callee_name(call)
        if name is None:  # a method, or `(float4)(x, y)` in OpenCL
            if memory:
                return READ | HIDDEN if self._references else READ
            return HIDDEN
        position = arguments.named_children.index(node)
        if name in self._functions:
            return self._effect(name, position, memory)
        if memory:
            if name == "swap":
                return BOTH
            by_value = not self._references or _BY_VALUE.fullmatch(name) or name in self._types
            return READ if by_value and name not in self._macro_words else READ | HIDDEN
        if name in POINTER_CASTS:
            return None
        known = (effects for pattern, effects in _RULES if pattern.fullmatch(name))
        return next(known, {}).get(position, HIDDEN)

    def _effect(self, name: str, position: int, memory: bool) -> PointerAccess:
        key = (name, position, memory)
        if key not in self._effects:
            if self._depth >= _DEEPEST:
                return HIDDEN
            self._effects[key] = NONE  # what a recursive call adds is found by the outer one
            self._depth += 1
            access = NONE
            for function in self._functions[name]:
                access |= self._effect_of(function, position, memory)
            self._depth -= 1
            self._effects[key] = access
        return self._effects[key]

    def _effect_of(self, function: Node, position: int, memory: bool) -> PointerAccess:
        declarator = function.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        parameters = listed.named_children if listed is not None else []
        body = function.child_by_field_name("body")
        if position >= len(parameters) or body is None:
            return NONE if position >= len(parameters) else HIDDEN  # another overload is meant
        declared = parameters[position].child_by_field_name("declarator")
        name = declared_name(declared)
        if name is None:
            return READ if memory else (NONE if declared is None else HIDDEN)
        by_reference = declared is not None and declared.type == "reference_declarator"
        if memory and not by_reference:
            return READ
        if body.id not in self._bodies:
            self._bodies[body.id] = places_in(body)
        access = self.of(self._bodies[body.id], text_of(name), reference=memory)
        constant = any(text_of(child) == "const" for child in parameters[position].children)
        return READ | (access & WRITE) if constant and HIDDEN in access else access


def places_in(body: Node) -> Places:
    """Where each name occurs in a body."""
    places: dict[str, list[Node]] = {}
    for node in syntax_nodes(body):
        if node.type in ("identifier", "type_identifier"):
            places.setdefault(text_of(node), []).append(node)
    return places


def _assignment_access(assignment: Node, node: Node, memory: bool) -> PointerAccess | _PointerName:
    left = assignment.child_by_field_name("left")
    plain = text_of(assignment.child_by_field_name("operator")) == "="
    if left == node:
        if not memory:
            return NONE  # the pointer itself moves
        return WRITE if plain else BOTH
    if memory:
        return READ
    if left is not None and left.type == "identifier":
        return _PointerName(text_of(left), reference=False)
    return HIDDEN


def _declaration_access(declaration: Node, node: Node, memory: bool) -> PointerAccess | _PointerName:
    if not is_field(declaration, "value", node):
        return NONE
    declarator = declaration.child_by_field_name("declarator")
    name = declared_name(declarator)
    if declarator is None or name is None:
        return READ if memory else HIDDEN
    if memory:
        if declarator.type != "reference_declarator":
            return READ
        return _PointerName(text_of(name), reference=True)
    holder = declaration if declaration.type == "declaration" else declaration.parent
    holder_type = holder.child_by_field_name("type") if holder is not None else None
    if declarator.type == "identifier" and holder_type is not None and holder_type.type == "primitive_type":
        return NONE  # a difference of pointers
    return _PointerName(text_of(name), reference=False)


class PointerAccess(Flag):
    """What is done through a pointer. HIDDEN: it also goes somewhere that could not be followed."""

    NONE = 0
    READ = auto()
    WRITE = auto()
    HIDDEN = auto()
    BOTH = READ | WRITE


NONE, READ, WRITE, HIDDEN, BOTH = (
    PointerAccess[name] for name in ("NONE", "READ", "WRITE", "HIDDEN", "BOTH")
)

# Function name, then the effect on each argument that is a pointer; other positions are not known.
_RULES: tuple[tuple[re.Pattern[str], dict[int, PointerAccess]], ...] = tuple(
    (re.compile(pattern), effects)
    for pattern, effects in (
        (r"vload\w*", {1: READ}),
        (r"vstore\w*", {2: WRITE}),
        (r"(?:__hip_|__)?atom(?:ic)?_(?:\w+_)?load\w*", {0: READ}),
        (r"(?:__hip_|__)?atom(?:ic)?_(?:\w+_)?(?:store|init)\w*", {0: WRITE}),
        (r"(?:unsafe|__hip_|__)?[aA]tom(?:ic)?[A-Z_]\w*", {0: BOTH}),
        (r"__ld(?:g|c[agsv]|lu)", {0: READ}),
        (r"__st(?:c[gs]|w[bt])", {0: WRITE}),
        (r"memcpy|memmove|__pipeline_memcpy_async|async_work_group_\w*copy", {0: WRITE, 1: READ}),
        (r"memset", {0: WRITE}),
        (r"__builtin_nontemporal_load", {0: READ}),
        (r"__builtin_nontemporal_store", {1: WRITE}),
        (r"load_matrix_sync", {1: READ}),
        (r"store_matrix_sync", {0: WRITE}),
        (r"prefetch|__builtin_prefetch|assert|printf|__builtin_assume", dict.fromkeys(range(8), NONE)),
        (r"swap", {0: BOTH, 1: BOTH}),
    )
)
# The value of these calls is the pointer they were given.
POINTER_CASTS = frozenset({"reinterpret_cast", "static_cast", "const_cast", "__builtin_assume_aligned"})
# In C++ an unknown function may take a reference; these are known to take values.
_BY_VALUE = re.compile(
    r"""__\w+ | \w+_cast | printf | assert | make_\w+ | h[a-z]+2? | is(?:nan|inf|finite) | sizeof
    | f?(?:abs|min|max|mod|ma|dim)f? | r?sqrtf? | r?cbrtf? | pow[if]?f? | copysignf? | hypotf? | sincospif?
    | (?:exp|exp2|exp10|expm1|log|log2|log10|log1p|erf|erfc|erfinv|tgamma|lgamma)f?
    | a?(?:sin|cos|tan)h?f? | atan2f? | (?:l?l?r(?:ound|int)|ceil|floor|trunc|round|nearbyint|saturate)f?
    | float | double | half | int | unsigned | u?int\d*_t | u?char | u?short | u?long | bool | size_t""",
    re.VERBOSE,
)

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
    if (trouble := find_parse_obstacle(lex(source.code))) is not None:
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
    aliases = {name: " ".join(meaning.split()) for name, meaning in unambiguous_names(found).items()}
    types = {*aliases, *_TYPE_PARAMETER.findall(source.plain)}
    use = PointerUse(root, source.macros, types, references=language != "opencl")
    kernels = [
        _kernel_signature(header, text, language, aliases, use, definitions)
        for header, definitions in _one_per_name(defined)
    ]
    constants = unambiguous_names([*read_constants(root), *source.plain_macros().items()])
    launches = () if language == "opencl" else tuple(read_launches(root, source.code))
    return SourceModel(
        tuple(kernels), launches, tuple(constants.items()), tuple(_find_instantiations(source.plain))
    )


def _find_instantiations(plain: str) -> Iterator[Instantiation]:
    for found in _INSTANTIATED.finditer(plain):
        line = plain.count("\n", 0, found.start()) + 1
        yield Instantiation(found[1], " ".join(found[2].split()), line)


def _kernel_signature(
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
    base = _join_words(base_words)
    element, vector = elements_of(_resolve_alias(base, aliases), language)
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


def _join_words(words: Sequence[str]) -> str:
    text = ""
    for word in words:
        apart = (text[-1:] + word[:1]).replace("_", "a").isalnum() and text
        text += f" {word}" if apart else word
    return text


def _resolve_alias(base: str, aliases: Mapping[str, str]) -> str:
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
            faults += _compare_arguments(problem, launch, meant[0])
    return faults


def missing_entry(problem: Problem) -> str | None:
    """Why no kernel can be called what a launch calls it, where that is certain without a compiler."""
    kernel = problem.kernel
    if kernel.language not in ("opencl", "cuda", "hip") or "#include" in kernel.text or "##" in kernel.text:
        return None
    for entry in dict.fromkeys(launch.entry for launch in problem.launches):
        name = entry.split("<")[0].split("::")[-1].strip()
        outside = [*kernel.flags, *(text for define in kernel.defines for text in define)]
        is_there = re.search(rf"\b{re.escape(name)}\b", kernel.text) is not None
        if is_there or any(name in text for text in outside) or "{" in name:
            continue
        try:
            known = [k.name for k in read_source(kernel.text, kernel.language).kernels]  # type: ignore[arg-type]
        except BadInput:
            return None
        return f"entry {entry!r} is nowhere in {kernel.path}, which defines {', '.join(known)}"
    return None


def _compare_arguments(problem: Problem, launch: Launch, kernel: KernelSignature) -> list[str]:
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
        fault = _argument_mismatch(parameter, problem.argument(name), problem.kernel.language)
        fault = fault or _wrong_width(parameter, problem.argument(name), bound, launch.entry)
        if fault:
            faults.append(f"argument {number} of {kernel.name}: {fault} in problem.toml ({where})")
    return faults


def _argument_mismatch(parameter: KernelParameter, argument: Argument, language: str) -> str | None:
    is_pointer = argument.role != "scalar"
    if language != "opencl" and _is_unknowable(parameter, argument):
        return None
    if parameter.pointer != is_pointer:
        kinds = ("a scalar", "an array")
        taken, given = kinds[parameter.pointer], kinds[is_pointer]
        return f"{parameter.name} is {taken} in the kernel, {argument.name} is {given}"
    if (parameter.space == "local") != (argument.role == "local"):
        taken = f"{parameter.space or 'global'} memory in the kernel"
        return f"{parameter.name} is {taken}, {argument.name} has role {argument.role}"
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
    bound_type = element_type(element)
    if bound_type.bytes == argument.element.bytes or bound_type.bytes == 1:
        return None
    return f"{parameter.name} is {element} by the entry {launched}, {argument.name} is {argument.type}"


def _is_unknowable(parameter: KernelParameter, argument: Argument) -> bool:
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


_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*[<"]([^<>"\n]+)[>"]')


def read_with_headers(
    text: str,
    language: Language,
    where: str,
    defines: Iterable[tuple[str, str]],
    headers: Iterable[tuple[str, str]],
) -> SourceModel:
    """Headers are looked into where the file itself has no kernel. Raises BadInput."""
    given, by_name = tuple(defines), dict(headers)
    try:
        return read_source(text, language, where=where, defines=given)
    except BadInput as error:
        if not any("__global__" in header for header in by_name.values()):
            if missing := [name for name in _QUOTED.findall(text) if name not in by_name]:
                raise BadInput(
                    f"{error.message}; {', '.join(missing[:3])}, which it includes, is not found",
                    hint=f"if the kernel is in {missing[0]}, put that beside the file, or give it by itself",
                    where=where,
                ) from error
            raise
        lines = _with_headers(text, by_name, set(), 0)
        model = read_source("\n".join(line for _, line in lines), language, where=where, defines=given)
    numbers = [number for number, _ in lines]
    kernels = tuple(replace(kernel, line=numbers[kernel.line - 1]) for kernel in model.kernels)
    launches = tuple(replace(site, line=numbers[site.line - 1]) for site in model.launches)
    found = tuple(replace(one, line=numbers[one.line - 1]) for one in model.instantiations)
    return replace(model, kernels=kernels, launches=launches, instantiations=found)


def _with_headers(
    text: str, headers: Mapping[str, str], done: set[str], depth: int, at: int = 0
) -> list[tuple[int, str]]:
    """Lines with their number in the file itself; each header once, where it is first included."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        included = _INCLUDE.match(line)
        if included is None or included[1] not in headers or depth > MAX_NESTING:
            found.append((at or number, line))
        elif included[1] not in done:
            done.add(included[1])
            found += _with_headers(headers[included[1]], headers, done, depth + 1, at or number)
        else:
            found.append((at or number, ""))
    return found
