"""A kernel that takes structs or tensor accessors by value, with their fields as parameters of its own.

Problem files know scalars and arrays. So the kernel becomes a device function, and a kernel of ours beside it
takes the fields, puts the structs together and calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from tunesmith.capture.records import Capture, CapturedArgument, CapturedKernel, CapturedLaunch
from tunesmith.csource.lex import Token, lex
from tunesmith.expert.reading.headers import LaunchSite
from tunesmith.expert.reading.known import KnownFacts
from tunesmith.session.extract.items import FileItem
from tunesmith.session.extract.naming import closing
from tunesmith.session.extract.records import NoFields, StructField, accessor_of, fields_of, size_of
from tunesmith.session.extract.slicing import KernelSlice

_PACKED = re.compile(r"^(.*?)\.(?:generic_)?packed_accessor(?:32|64)?\b")
_LIKE = re.compile(r"\b(?:empty|zeros|ones|full|rand|randn)_like\s*\(\s*(\w+)\s*[,)]")
OF_FIELDS = "_of_fields"  # what a kernel of ours is called behind the original's name
_OF_THE_POINTER = re.compile(r"(?:\s*(?:\bconst\b|\b__restrict(?:__)?))+\s*$")  # behind its star
_BOUNDS = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)")

# For each captured argument: nothing where it is one of the problem, else its fields' offsets and sizes.
Parts = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True)
class FlatParameter:
    """A parameter of the kernel with the names that its fields have; none: it is a plain one."""

    type: str
    name: str
    fields: tuple[tuple[StructField, str], ...] = ()
    size: int = 0  # in bytes, where it has fields

    @property
    def local(self) -> str:
        """What is passed on."""
        return f"{self.name}_whole" if self.fields else self.name


@dataclass(frozen=True)
class FlatKernel:
    slice: KernelSlice
    entry: str
    parameters: tuple[FlatParameter, ...]
    roles: Mapping[str, str]  # of arrays, as the kernel's text uses them

    @property
    def parts(self) -> Parts:
        return tuple(tuple((f.offset, f.size) for f, _ in one.fields) for one in self.parameters)

    @property
    def said(self) -> str:
        taken = [f"{one.type} {one.name}" for one in self.parameters if one.fields]
        return f"{', '.join(taken)}: passed by value, so a kernel of ours takes the fields: {self.entry}"

    def site(self, site: LaunchSite) -> LaunchSite:
        """The launch as if it passed the fields, in the host's words for them."""
        if len(site.arguments) != len(self.parameters):
            return replace(site, arguments=())
        given: list[str] = []
        for text, one in zip(site.arguments, self.parameters, strict=True):
            given += [_host_words(text, field, site) for field, _ in one.fields] if one.fields else [text]
        return replace(site, kernel=self.slice.kernel.name, template_args=None, arguments=tuple(given))

    def known(self, known: KnownFacts) -> KnownFacts:
        """With roles, and with accessors' shapes and dense strides where the host does not say others."""
        shapes, values = dict(known.shapes), dict(known.values)
        for one in self.parameters:
            if accessor_of(one.type) is None:
                continue
            names = [own for _, own in one.fields]
            sizes, strides = names[1 : 1 + len(names) // 2], names[1 + len(names) // 2 :]
            shapes[names[0]] = tuple(sizes)
            for at, name in enumerate(strides):
                inner = known.renamed(sizes[at + 1 :])
                values.setdefault(name, " * ".join(inner) or "1")
        return replace(known, shapes=shapes, values=values, roles={**self.roles, **known.roles})


def flattened(
    cut: KernelSlice, template_params: Sequence[str], arguments: Sequence[str]
) -> FlatKernel | None:
    """None where nothing is passed by value but scalars. Raises NoFields: something is that cannot be taken
    apart."""
    bound = dict(zip(template_params, arguments, strict=False))
    known = {name: item for item in cut.items if item.kind in ("record", "alias") for name in item.names}
    given = [_with_types(_without_default(part), bound) for part in _parameters(cut.kernel)]
    found = []
    for type_, name in given:
        by_value = not _OF_THE_POINTER.sub("", type_).endswith(("*", "&"))
        plain = re.sub(r"\bconst\b|__grid_constant__", "", type_).strip()
        found.append((type_, plain, name, fields_of(plain, known.get) if by_value else ()))
    if not any(fields for *_, fields in found):
        return None
    structs = sum(bool(fields) for *_, fields in found)
    taken = {name for _, _, name, fields in found if not fields}
    parameters = []
    for type_, plain, name, fields in found:
        named = []
        for field in fields:
            own = _named(plain, name, field, structs > 1, taken)
            taken.add(own)
            named.append((field, own))
        size = size_of(plain, known.get) if fields else 0
        parameters.append(FlatParameter(plain if fields else type_, name, tuple(named), size))
    kernel = cut.kernel
    plain_entry = f"{kernel.name}<{', '.join(arguments)}>" if arguments else kernel.name
    wrapper = _wrapper(kernel, plain_entry, parameters, bound)
    items = tuple(_as_function(item, kernel) for item in cut.items)
    scope = "::".join(part for part in kernel.scope if part)
    name = f"{scope}::{wrapper.name}" if scope else wrapper.name
    made = KernelSlice((*items, wrapper), cut.headers, wrapper)
    return FlatKernel(made, name, tuple(parameters), dict(_roles(kernel, parameters)))


def _parameters(kernel: FileItem) -> Iterator[list[Token]]:
    tokens = list(kernel.tokens)
    at = next(i for i, t in enumerate(tokens) if t.text == kernel.name and tokens[i + 1].text == "(")
    inside = tokens[at + 2 : closing(tokens, at + 1) - 1]
    part: list[Token] = []
    depth = 0
    for token in inside:
        depth += (token.text in "([{<") - (token.text in ")]}>") - 2 * (token.text == ">>")
        if token.text == "," and depth == 0:
            yield part
            part = []
        elif token.kind != "directive":
            part.append(token)
    if part:
        yield part


def _without_default(part: Sequence[Token]) -> list[Token]:
    return list(takewhile(lambda token: token.text != "=", part))


def _with_types(part: Sequence[Token], bound: Mapping[str, str]) -> tuple[str, str]:
    """Type and name, with template arguments in their places."""
    words = [at for at, token in enumerate(part) if token.kind == "word"]
    if len(words) < 2:
        raise NoFields(f"the parameter {' '.join(t.text for t in part)} is not read")
    name = part[words[-1]].text
    given: list[Token] = []
    for token in part[: words[-1]]:
        given += lex(bound[token.text]) if token.text in bound else [token]
    text = ""
    for token in given:
        text += (
            " " if text and (text[-1].isalnum() or text[-1] in "_*") and token.kind == "word" else ""
        ) + token.text
    return text, name


def _named(type_: str, parameter: str, field: StructField, several: bool, taken: set[str]) -> str:
    words = [word.strip("_") for word in re.findall(r"\w+", field.path)]
    if accessor_of(type_) is not None:
        words = [parameter, words[0].rstrip("s"), *words[1:]] if words != ["data"] else [parameter]
    elif several:
        words = [parameter, *words]
    name = "_".join(words)
    while name in taken:
        name = f"{parameter}_{name}"
    return name


def _wrapper(
    kernel: FileItem, called: str, parameters: Sequence[FlatParameter], bound: Mapping[str, str]
) -> FileItem:
    name = f"{kernel.name}{OF_FIELDS}"
    said = _BOUNDS.search(kernel.text[: kernel.text.index("{")])
    bounds = re.sub(r"\b\w+\b", lambda word: bound.get(word[0], word[0]), said[0]) + " " if said else ""
    listed: list[str] = []
    made: list[str] = []
    for one in parameters:
        listed += [f"{field.type} {own}" for field, own in one.fields] or [f"{one.type} {one.name}"]
        if one.fields:
            made += [f"  {one.type} {one.local};", *_asserted(one)]
            made += [f"  {one.local}{field.path} = {_given(field, own)};" for field, own in one.fields]
    text = "\n".join([
        "// The kernel above, with the fields of what it takes by value as parameters.",
        f"__global__ void {bounds}{name}(",
        "    " + ",\n    ".join(listed) + ") {",
        *made,
        f"  {called}({', '.join(one.local for one in parameters)});",
        "}",
    ])  # fmt: skip
    path, line = kernel.path, kernel.line
    return FileItem(
        path, line, kernel.order + 1_000_000, "function", (name,), kernel.scope, text, tuple(lex(text))
    )


def _asserted(one: FlatParameter) -> Iterator[str]:
    """That the compiler has the struct as long, and its fields where they were read to be: what was captured
    is taken apart by that."""
    yield f'  static_assert(sizeof({one.type}) == {one.size}, "{one.name} is as long as it was read");'
    for field, _ in one.fields:
        if place := field.path.lstrip("."):
            where = f"__builtin_offsetof({one.type}, {place}) == {field.offset}"
            wide = f"sizeof({one.local}{field.path}) == {field.size}"
            yield f'  static_assert({where} && {wide}, "{place} lies where it was read");'


def _given(field: StructField, own: str) -> str:
    return f"static_cast<{field.enum}>({own})" if field.enum else own


def _as_function(item: FileItem, kernel: FileItem) -> FileItem:
    if not item.is_kernel or item.name != kernel.name or item.scope != kernel.scope:
        return item
    head, brace, body = item.text.partition("{")
    if not brace:
        head, body = item.text, ""
    head = _BOUNDS.sub("", head).replace("__global__", "__device__ __forceinline__")
    text = re.sub(r"__cluster_dims__\s*\([^()]*\)|\bstatic\b|\b__grid_constant__\b", "", head) + brace + body
    return replace(item, text=text, tokens=tuple(lex(text)))


def _roles(kernel: FileItem, parameters: Sequence[FlatParameter]) -> Iterator[tuple[str, str]]:
    """What the kernel's text does with each array, where it indexes it by its name."""
    body = kernel.text[kernel.text.index("{") :]
    for one in parameters:
        for field, own in one.fields:
            if not field.is_pointer:
                continue
            if field.type.startswith("const ") or "const*" in field.type.replace(" ", ""):
                yield own, "input"
                continue
            accessor = field.path == ".data_"
            word = re.escape(one.name) if accessor else rf"{re.escape(one.name)}{re.escape(field.path)}"
            role = _role(body, rf"(?<![\w.]){word}")
            if role:
                yield own, role


def _role(body: str, word: str) -> str:
    stored = read = False
    for match in re.finditer(rf"{word}(?=\s*\[)", body):
        at = match.end()
        while at < len(body) and re.match(r"\s*\[", body[at:]):
            at = _behind(body, body.index("[", at))
        rest = body[at:].lstrip()
        plain = rest.startswith("=") and not rest.startswith("==")
        changed = re.match(r"(?:[-+*/|&^]|<<|>>)=|\+\+|--", rest) is not None
        stored, read = stored or plain or changed, read or not plain
    return "inout" if stored and read else "output" if stored else "input" if read else ""


def _behind(text: str, at: int) -> int:
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == "[") - (text[end] == "]")
        if depth == 0:
            return end + 1
    return len(text)


def _host_words(text: str, field: StructField, site: LaunchSite) -> str:
    """What the host has in a field: `x.size(0)` of an accessor of x, `rows` after `params.rows = rows;`."""
    value = dict(site.settled).get(text, text)
    packed = _PACKED.match(value.replace("->", "."))
    place = re.fullmatch(r"\.(data|sizes|strides)_(?:\[(\d+)\])?", field.path)
    if packed and place:
        tensor = _alike(packed[1].strip(), dict(site.settled)) if place[2] else packed[1].strip()
        call = {"data": "data_ptr()", "sizes": f"size({place[2]})", "strides": f"stride({place[2]})"}
        return f"{tensor}.{call[place[1]]}"
    assigned = dict(site.fields)
    if text + field.path in assigned:
        return assigned[text + field.path]
    listed = re.search(r"\{(.*)\}$", value.strip(), re.DOTALL)
    pairs = re.findall(r"\.(\w+)\s*=\s*([^,{}]+)", listed[1]) if listed else []
    named: dict[str, str] = dict(pairs)
    return named.get(field.path.lstrip("."), f"{text}{field.path}").strip()


def _alike(tensor: str, settled: Mapping[str, str]) -> str:
    """The tensor that it has its shape of: `auto out = torch::empty_like(x);`."""
    for _ in range(4):
        like = _LIKE.search(settled.get(tensor, ""))
        if like is None or like[1] == tensor:
            break
        tensor = like[1]
    return tensor


# -- captures ----------------------------------------------------------------------------------------------


def in_parts(capture: Capture, kernel: str, parts: Parts) -> Capture:
    """The same, with the fields of one kernel's structs as arguments of their own."""
    if not any(parts):
        return capture
    kernels = [kernel_in_parts(one, parts) if one.name == kernel else one for one in capture.kernels]
    kept = [
        replace(one, arguments=_divided(one.arguments, parts)) if one.kernel == kernel else one
        for one in capture.kept
    ]
    return replace(capture, kernels=tuple(kernels), kept=tuple(kept))


def kernel_in_parts(kernel: CapturedKernel, parts: Parts) -> CapturedKernel:
    def divided(launch: CapturedLaunch) -> CapturedLaunch:
        return replace(launch, arguments=_divided(launch.arguments, parts))

    return replace(kernel, launches=tuple(map(divided, kernel.launches)))


def _divided(arguments: Sequence[CapturedArgument], parts: Parts) -> tuple[CapturedArgument, ...]:
    if len(arguments) != len(parts):
        return tuple(arguments)
    found: list[CapturedArgument] = []
    for argument, fields in zip(arguments, parts, strict=True):
        if not fields:
            found.append(argument)
        for offset, size in fields:
            data = argument.data[2 * offset : 2 * (offset + size)]
            pointers = tuple(replace(p, at=0) for p in argument.pointers if p.at == offset and size == 8)
            found.append(CapturedArgument(argument.offset + offset, size, data, pointers))
    return tuple(found)
