"""Structs that a kernel takes by value, as their fields: what each is, and where it lies in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from tunesmith.expert.drafts.bare import KnownFacts
from tunesmith.expert.drafts.headers import LaunchSite, elements_of
from tunesmith.plugins.repo.capture.records import Capture, CapturedArgument, CapturedKernel, CapturedLaunch
from tunesmith.plugins.repo.extract.items import FileItem, after_brackets, after_template, past_bracket
from tunesmith.plugins.repo.extract.slice import KernelSlice
from tunesmith.problem.problem import TYPES
from tunesmith.source.lex import Token, lex, split_at

MAX_FIELDS = 96
_POINTER = 8  # bytes
_ACCESSOR = re.compile(r"(?:\w+::)*(?:Generic)?PackedTensorAccessor(32|64)?<(.*)>")
_IDLE = frozenset({"__restrict__", "__restrict", "restrict", "volatile", "mutable", "struct", "typename"})
_DEPTH = 6
# Words that change where fields lie, or hide what they are.
_MOVING = frozenset(
    {"alignas", "_Alignas", "__align__", "__attribute__", "__declspec", "decltype", "virtual"}
)
_PLAIN_TYPES = frozenset(
    {"void", "bool", "char", "short", "int", "long", "float", "double", "half", "signed", "unsigned", "auto"}
)
_OF_FUNCTIONS = frozenset({"explicit", "constexpr", "inline", "const", "friend", "__host__", "__device__"})


@dataclass(frozen=True)
class StructField:
    """A scalar or a pointer inside a struct. `path`: from the struct to it, ".rows" or ".sizes_[1]"."""

    path: str
    type: str  # of a parameter that holds it: "const float*", "int"
    offset: int
    size: int
    enum: str = ""  # the enumeration that it is, whose number is passed

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")


class NoFields(Exception):
    """Why a struct cannot be taken apart, in words."""


@dataclass(frozen=True)
class _StructLayout:
    fields: tuple[StructField, ...]
    size: int
    alignment: int


Find = Callable[[str], FileItem | None]  # a record's or an alias's declaration


def accessor_of(type_: str) -> tuple[str, int, str] | None:
    """A tensor accessor's elements, axes and the type of its indices."""
    match = _ACCESSOR.fullmatch(type_.replace(" ", "").replace("const", "const "))
    if match is None:
        return None
    parts = split_arguments(match[2])
    if len(parts) < 2 or not parts[1].isdecimal():
        return None
    index = "int" if match[1] == "32" or (len(parts) > 3 and parts[3].startswith("int32")) else "long"
    return parts[0], int(parts[1]), index


def size_of(type_: str, find: Find) -> int:
    """In bytes, of a type that is passed by value and whose fields are known."""
    accessor = accessor_of(type_)
    if accessor is None:
        return _type_layout(type_, find, _DEPTH).size
    last = list(_accessor_fields(*accessor))[-1]
    return -(-(last.offset + last.size) // _POINTER) * _POINTER


def fields_of(type_: str, find: Find) -> tuple[StructField, ...]:
    """Of a type that is passed by value; none where it is a plain one. Raises NoFields."""
    if elements_of(type_, "cuda")[0] is not None:
        return ()
    accessor = accessor_of(type_)
    if accessor is not None:
        return tuple(_accessor_fields(*accessor))
    found = _type_layout(type_, find, _DEPTH).fields
    if len(found) > MAX_FIELDS:
        raise NoFields(f"{type_} has {len(found)} fields, at most {MAX_FIELDS} are taken apart")
    return found


def _accessor_fields(element: str, axes: int, index: str) -> Iterator[StructField]:
    width = 4 if index == "int" else 8
    yield StructField(".data_", f"{element}*", 0, _POINTER)
    for which, name in enumerate(("sizes_", "strides_")):
        for axis in range(axes):
            offset = _POINTER + width * (which * axes + axis)
            yield StructField(f".{name}[{axis}]", index, offset, width)


def _type_layout(type_: str, find: Find, depth: int) -> _StructLayout:
    if type_.rstrip().endswith("*"):
        return _StructLayout((StructField("", type_, 0, _POINTER),), _POINTER, _POINTER)
    plain = re.sub(r"\bconst\b", "", type_).strip()
    element, vector = elements_of(plain, "cuda")
    if element is not None and vector == 1:
        size = TYPES[element].bytes
        return _StructLayout((StructField("", plain, 0, size),), size, size)
    name, arguments = plain.partition("<")[0].strip(), plain.partition("<")[2].rpartition(">")[0]
    item = find(name.split("::")[-1])
    if item is None or depth == 0:
        raise NoFields(f"{plain} is not known")
    if item.kind == "record" and item.tokens[0].text == "enum":
        return _enum_layout(item, plain)
    if item.kind == "alias":
        return _type_layout(_aliased_type(item), find, depth - 1)
    return _record_layout(item, split_arguments(arguments), find, depth - 1)


def _enum_layout(item: FileItem, name: str) -> _StructLayout:
    texts = [token.text for token in item.tokens]
    head = texts[: texts.index("{")] if "{" in texts else texts
    type_ = " ".join(head[head.index(":") + 1 :]) if ":" in head else "int"
    element = elements_of(type_, "cuda")[0]
    if element is None:
        raise NoFields(f"{name} is an enumeration of {type_}")
    size = TYPES[element].bytes
    return _StructLayout((StructField("", type_, 0, size, name),), size, size)


def _aliased_type(item: FileItem) -> str:
    texts = [token.text for token in item.tokens]
    if texts[0] == "using" and "=" in texts:
        return _join_tokens(item.tokens[texts.index("=") + 1 :])
    if texts[0] == "typedef" and "{" not in texts:
        return _join_tokens([t for t in item.tokens[1:] if t.text != ";"][:-1])
    raise NoFields(f"{item.name} is defined in a way that is not read")


def _record_layout(item: FileItem, arguments: Sequence[str], find: Find, depth: int) -> _StructLayout:
    tokens = list(item.tokens)
    texts = [token.text for token in tokens]
    start = after_template(tokens, 0)
    if "{" not in texts or texts[start] not in ("struct", "class", "typedef"):
        raise NoFields(f"{item.name} is no struct whose fields can be read")
    opening = texts.index("{", start)
    head = texts[start:opening]
    end = after_brackets(tokens, opening)
    if moving := [text for text in (*head, *texts[end:]) if text in _MOVING]:
        raise NoFields(f"{item.name} is declared with {moving[0]}: where its fields lie is not known")
    meanings = dict(zip(_template_parameters(texts[:start]), arguments, strict=False))
    fields: list[StructField] = []
    at, widest = 0, 1
    if ":" in head:
        inherited = [t for t in head[head.index(":") + 1 :] if t not in ("public", "private", "protected")]
        if "," in inherited:
            raise NoFields(f"{item.name} has several bases")
        base = _type_layout("".join(inherited), find, depth)
        fields, at, widest = list(base.fields), base.size if base.fields else 0, base.alignment
        if fields and max(field.offset + field.size for field in fields) < at:
            raise NoFields(f"{item.name} has a base that ends with padding, which fields may lie in")
    has_base = ":" in head
    for type_, name, counts in _struct_members(tokens[opening + 1 : end - 1], meanings, item.name):
        one = _type_layout(type_, find, depth)
        if has_base and not one.fields:
            raise NoFields(f"{item.name} has a base and a field without contents")
        widest = max(widest, one.alignment)
        at = -(-at // one.alignment) * one.alignment
        for index in _index_suffixes(counts):
            for inner in one.fields:
                path = f".{name}{index}{inner.path}"
                fields.append(replace(inner, path=path, offset=at + inner.offset))
            at += one.size
            if len(fields) > MAX_FIELDS:
                raise NoFields(f"{item.name} has more than {MAX_FIELDS} fields")
    return _StructLayout(tuple(fields), max(-(-at // widest) * widest, 1), widest)


def _template_parameters(head: Sequence[str]) -> list[str]:
    """Of `template <typename T, int N>`."""
    inside = " ".join(head).partition("<")[2].rpartition(">")[0]
    return [part.split("=")[0].split()[-1] for part in inside.split(",") if part.strip()]


def _struct_members(
    tokens: Sequence[Token], meanings: dict[str, str], struct: str
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Type, name and array extents; `meanings` grows by the struct's aliases and constants. `struct`: the
    name, which constructors have."""
    for statement in _member_statements(tokens, struct):
        texts = [token.text for token in statement]
        if texts[0] == "using" and "=" in texts:
            meanings[texts[1]] = _join_tokens(_substitute_tokens(statement[texts.index("=") + 1 :], meanings))
            continue
        if texts[0] == "typedef":
            meanings[texts[-1]] = _join_tokens(_substitute_tokens(statement[1:-1], meanings))
            continue
        if "static" in texts:
            if "=" in texts and texts.index("=") > 1:
                meanings[texts[texts.index("=") - 1]] = _join_tokens(statement[texts.index("=") + 1 :])
            continue
        if moving := [text for text in texts if text in _MOVING]:
            raise NoFields(f"'{_join_tokens(statement)}' has {moving[0]}: where it lies is not known")
        if texts[0] in ("struct", "class", "enum", "union", "friend", "template") and "{" in texts:
            raise NoFields("a struct is defined inside of it")
        yield from _parse_declarators(
            _substitute_tokens([t for t in statement if t.text not in _IDLE], meanings)
        )


def _member_statements(tokens: Sequence[Token], struct: str) -> Iterator[list[Token]]:
    """Those that declare fields or names: functions and access words are left out. Raises NoFields: a
    statement with brackets may be a function or not."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        text = tokens[at].text
        if text in ("public", "private", "protected") and at + 1 < len(tokens) and tokens[at + 1].text == ":":
            at, found = at + 2, []
            continue
        if text == ";":
            if found:
                yield found
            found = []
        elif text == "(" and not _has_value(found):
            if not _is_function(tokens, at, found, struct):
                raise NoFields(f"'{_join_tokens([*found, tokens[at]])}...' may be a field or a function")
            at = _after_function(tokens, at)
            found = []
            continue
        elif text in ("{", "("):
            end = after_brackets(tokens, at)
            found += tokens[at:end]
            at = end
            continue
        elif tokens[at].kind != "directive":
            found.append(tokens[at])
        elif re.search(r"\bpack\b", text):
            raise NoFields("its fields are packed by a pragma")
        at += 1


def _has_value(found: Sequence[Token]) -> bool:
    texts = [token.text for token in found]
    return "operator" not in texts and any(text in ("=", "using", "typedef") for text in texts)


def _is_function(tokens: Sequence[Token], at: int, found: Sequence[Token], struct: str) -> bool:
    """Whether the bracket at `at`, behind what was found of a statement, clearly begins parameters."""
    texts = [token.text for token in found]
    if not texts or any(text in _MOVING for text in texts):
        return False
    if "operator" in texts or texts == ["static_assert"]:
        return True
    end = after_brackets(tokens, at)
    inside, behind = tokens[at + 1].text, tokens[end].text if end < len(tokens) else ";"
    if found[-1].kind != "word" or texts[-1] in _PLAIN_TYPES or inside in ("*", "&", "(") or behind == "(":
        return False
    words = [text for text in texts if text not in _OF_FUNCTIONS]
    return len(words) > 1 or words == [struct]


def _after_function(tokens: Sequence[Token], at: int) -> int:
    """Behind a method's body, or behind the semicolon of its declaration."""
    at = after_brackets(tokens, at)
    while at < len(tokens):
        if tokens[at].text == ";":
            return at + 1
        if tokens[at].text == "{":
            end = after_brackets(tokens, at)
            # Braces may initialise a member, `: a{1}`, before the body.
            if end >= len(tokens) or tokens[end].text not in (",", "{"):
                return end
            at = end
        else:
            at = after_brackets(tokens, at) if tokens[at].text == "(" else at + 1
    return at


def _substitute_tokens(tokens: Sequence[Token], meanings: Mapping[str, str]) -> list[Token]:
    for _ in range(4):
        done: list[Token] = []
        for token in tokens:
            done += lex(meanings[token.text]) if token.text in meanings else [token]
        if len(done) == len(tokens) and all(a is b for a, b in zip(done, tokens, strict=True)):
            break
        tokens = done
    return list(tokens)


def _parse_declarators(tokens: Sequence[Token]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    parts = split_at(",", tokens)
    first = _without_value(parts[0])
    names = [at for at, token in enumerate(first) if token.kind == "word"]
    extents = next((at for at, token in enumerate(first) if token.text == "["), len(first))
    named = [at for at in names if at < extents]
    if len(named) < 2:
        raise NoFields(f"'{_join_tokens(tokens)}' is not read")
    place = named[-1]
    stars = [token for token in first[:place] if token.text in ("*", "&")]
    type_ = _join_tokens([token for token in first[:place] if token.text not in ("*", "&")])
    if any(token.text == "&" for token in stars):
        raise NoFields("one of its fields is a reference")
    yield type_ + "*" * len(stars), first[place].text, _array_extents(first[place + 1 :])
    for part in parts[1:]:
        later = _without_value(part)
        words = [at for at, token in enumerate(later) if token.kind == "word"]
        if not words:
            raise NoFields(f"'{_join_tokens(tokens)}' is not read")
        depth = sum(token.text == "*" for token in later[: words[0]])
        yield type_ + "*" * depth, later[words[0]].text, _array_extents(later[words[0] + 1 :])


def _without_value(tokens: Sequence[Token]) -> list[Token]:
    end = next((at for at, token in enumerate(tokens) if token.text in ("=", "{")), len(tokens))
    return list(tokens[:end])


def _array_extents(tokens: Sequence[Token]) -> tuple[int, ...]:
    text = "".join(token.text for token in tokens)
    counts = re.findall(r"\[([^\]]*)\]", text)
    if not all(count.isdecimal() for count in counts) or re.sub(r"\[[^\]]*\]", "", text):
        raise NoFields(f"the extents {text} are not numbers")
    return tuple(map(int, counts))


def _index_suffixes(counts: Sequence[int]) -> list[str]:
    found = [""]
    for count in counts:
        found = [f"{before}[{at}]" for before in found for at in range(count)]
    return found


def split_arguments(text: str) -> list[str]:
    return [_join_tokens(part) for part in split_at(",", lex(text)) if part]


def _join_tokens(tokens: Sequence[Token], behind: str = "_") -> str:
    """With blanks between words alone, and words behind those signs."""
    text = ""
    for token in tokens:
        is_apart = text and (text[-1].isalnum() or text[-1] in behind) and token.kind == "word"
        text += (" " if is_apart else "") + token.text
    return text


# A kernel that takes structs or tensor accessors by value, with their fields as parameters of its own.
# Problem files know scalars and arrays. So the kernel becomes a device function, and a kernel of ours beside
# it takes the fields, puts the structs together and calls it.
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
    def report_line(self) -> str:
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

    def with_roles(self, known: KnownFacts) -> KnownFacts:
        """With roles, and with accessors' shapes and dense strides where the host does not say others."""
        shapes, values = dict(known.shapes), dict(known.values)
        for one in self.parameters:
            if accessor_of(one.type) is None:
                continue
            names = [name for _, name in one.fields]
            sizes, strides = names[1 : 1 + len(names) // 2], names[1 + len(names) // 2 :]
            shapes[names[0]] = tuple(sizes)
            for at, name in enumerate(strides):
                inner = known.renamed(sizes[at + 1 :])
                values.setdefault(name, " * ".join(inner) or "1")
        return replace(known, shapes=shapes, values=values, roles={**self.roles, **known.roles})


def flatten_kernel(
    cut: KernelSlice, template_params: Sequence[str], arguments: Sequence[str]
) -> FlatKernel | None:
    """None where nothing is passed by value but scalars. Raises NoFields: something is that cannot be taken
    apart."""
    bound = dict(zip(template_params, arguments, strict=False))
    known = {name: item for item in cut.items if item.kind in ("record", "alias") for name in item.names}
    given = [_with_types(_without_default(part), bound) for part in _kernel_parameters(cut.kernel)]
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
            parameter = _field_parameter_name(plain, name, field, structs > 1, taken)
            taken.add(parameter)
            named.append((field, parameter))
        size = size_of(plain, known.get) if fields else 0
        parameters.append(FlatParameter(plain if fields else type_, name, tuple(named), size))
    kernel = cut.kernel
    plain_entry = f"{kernel.name}<{', '.join(arguments)}>" if arguments else kernel.name
    wrapper = _make_wrapper(kernel, plain_entry, parameters, bound)
    items = tuple(_as_function(item, kernel) for item in cut.items)
    made = KernelSlice((*items, wrapper), cut.headers, wrapper)
    roles = dict(_pointer_roles(kernel, parameters))
    return FlatKernel(made, wrapper.qualified_name, tuple(parameters), roles)


def _kernel_parameters(kernel: FileItem) -> Iterator[list[Token]]:
    tokens = kernel.tokens
    at = next(i for i, t in enumerate(tokens) if t.text == kernel.name and tokens[i + 1].text == "(")
    inside = tokens[at + 2 : after_brackets(tokens, at + 1) - 1]
    yield from filter(None, split_at(",", (token for token in inside if token.kind != "directive")))


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
    return _join_tokens(given, "_*"), name


def _field_parameter_name(
    type_: str, parameter: str, field: StructField, several: bool, taken: set[str]
) -> str:
    words = [word.strip("_") for word in re.findall(r"\w+", field.path)]
    if accessor_of(type_) is not None:
        words = [parameter, words[0].rstrip("s"), *words[1:]] if words != ["data"] else [parameter]
    elif several:
        words = [parameter, *words]
    name = "_".join(words)
    while name in taken:
        name = f"{parameter}_{name}"
    return name


def _make_wrapper(
    kernel: FileItem, called: str, parameters: Sequence[FlatParameter], bound: Mapping[str, str]
) -> FileItem:
    name = f"{kernel.name}{OF_FIELDS}"
    said = _BOUNDS.search(kernel.text[: kernel.text.index("{")])
    bounds = re.sub(r"\b\w+\b", lambda word: bound.get(word[0], word[0]), said[0]) + " " if said else ""
    listed: list[str] = []
    made: list[str] = []
    for one in parameters:
        listed += [f"{field.type} {name}" for field, name in one.fields] or [f"{one.type} {one.name}"]
        if one.fields:
            made += [f"  {one.type} {one.local};", *_layout_asserts(one)]
            for field, parameter in one.fields:
                value = f"static_cast<{field.enum}>({parameter})" if field.enum else parameter
                made.append(f"  {one.local}{field.path} = {value};")
    text = "\n".join([
        "// The kernel above, with the fields of what it takes by value as parameters.",
        f"__global__ void {bounds}{name}(",
        "    " + ",\n    ".join(listed) + ") {",
        *made,
        f"  {called}({', '.join(one.local for one in parameters)});",
        "}",
    ])  # fmt: skip
    return replace(
        kernel, order=kernel.order + 1_000_000, names=(name,), text=text, tokens=tuple(lex(text)), guards=()
    )


def _layout_asserts(one: FlatParameter) -> Iterator[str]:
    """That the compiler has the struct as long, and its fields where they were read to be: what was captured
    is taken apart by that."""
    yield f'  static_assert(sizeof({one.type}) == {one.size}, "{one.name} is as long as it was read");'
    for field, _ in one.fields:
        if place := field.path.lstrip("."):
            where = f"__builtin_offsetof({one.type}, {place}) == {field.offset}"
            wide = f"sizeof({one.local}{field.path}) == {field.size}"
            yield f'  static_assert({where} && {wide}, "{place} lies where it was read");'


def _as_function(item: FileItem, kernel: FileItem) -> FileItem:
    if not item.is_kernel or item.name != kernel.name or item.scope != kernel.scope:
        return item
    head, brace, body = item.text.partition("{")
    if not brace:
        head, body = item.text, ""
    head = _BOUNDS.sub("", head).replace("__global__", "__device__ __forceinline__")
    text = re.sub(r"__cluster_dims__\s*\([^()]*\)|\bstatic\b|\b__grid_constant__\b", "", head) + brace + body
    return replace(item, text=text, tokens=tuple(lex(text)))


def _pointer_roles(kernel: FileItem, parameters: Sequence[FlatParameter]) -> Iterator[tuple[str, str]]:
    """What the kernel's text does with each array, where it indexes it by its name."""
    body = kernel.text[kernel.text.index("{") :]
    for one in parameters:
        for field, name in one.fields:
            if not field.is_pointer:
                continue
            if field.type.startswith("const ") or "const*" in field.type.replace(" ", ""):
                yield name, "input"
                continue
            accessor = field.path == ".data_"
            word = re.escape(one.name) if accessor else rf"{re.escape(one.name)}{re.escape(field.path)}"
            role = _infer_array_role(body, rf"(?<![\w.]){word}")
            if role:
                yield name, role


def _infer_array_role(body: str, word: str) -> str:
    stored = read = False
    for match in re.finditer(rf"{word}(?=\s*\[)", body):
        at = match.end()
        while at < len(body) and re.match(r"\s*\[", body[at:]):
            at = past_bracket(body, body.index("[", at), "[]") or len(body)
        rest = body[at:].lstrip()
        plain = rest.startswith("=") and not rest.startswith("==")
        changed = re.match(r"(?:[-+*/|&^]|<<|>>)=|\+\+|--", rest) is not None
        stored, read = stored or plain or changed, read or not plain
    return "inout" if stored and read else "output" if stored else "input" if read else ""


def _host_words(text: str, field: StructField, site: LaunchSite) -> str:
    """What the host has in a field: `x.size(0)` of an accessor of x, `rows` after `params.rows = rows;`."""
    value = dict(site.settled).get(text, text)
    packed = _PACKED.match(value.replace("->", "."))
    place = re.fullmatch(r"\.(data|sizes|strides)_(?:\[(\d+)\])?", field.path)
    if packed and place:
        tensor = _shape_source(packed[1].strip(), dict(site.settled)) if place[2] else packed[1].strip()
        call = {"data": "data_ptr()", "sizes": f"size({place[2]})", "strides": f"stride({place[2]})"}
        return f"{tensor}.{call[place[1]]}"
    assigned = dict(site.fields)
    if text + field.path in assigned:
        return assigned[text + field.path]
    listed = re.search(r"\{(.*)\}$", value.strip(), re.DOTALL)
    pairs = re.findall(r"\.(\w+)\s*=\s*([^,{}]+)", listed[1]) if listed else []
    named: dict[str, str] = dict(pairs)
    return named.get(field.path.lstrip("."), f"{text}{field.path}").strip()


def _shape_source(tensor: str, settled: Mapping[str, str]) -> str:
    """The tensor that it has its shape of: `auto out = torch::empty_like(x);`."""
    for _ in range(4):
        like = _LIKE.search(settled.get(tensor, ""))
        if like is None or like[1] == tensor:
            break
        tensor = like[1]
    return tensor


def in_parts(capture: Capture, kernel: str, parts: Parts) -> Capture:
    """The same, with the fields of one kernel's structs as arguments of their own."""
    if not any(parts):
        return capture
    kernels = [kernel_in_parts(one, parts) if one.name == kernel else one for one in capture.kernels]
    kept = [
        replace(one, arguments=_split_captured_structs(one.arguments, parts)) if one.kernel == kernel else one
        for one in capture.kept
    ]
    return replace(capture, kernels=tuple(kernels), kept=tuple(kept))


def kernel_in_parts(kernel: CapturedKernel, parts: Parts) -> CapturedKernel:
    def divided(launch: CapturedLaunch) -> CapturedLaunch:
        return replace(launch, arguments=_split_captured_structs(launch.arguments, parts))

    return replace(kernel, launches=tuple(map(divided, kernel.launches)))


def _split_captured_structs(
    arguments: Sequence[CapturedArgument], parts: Parts
) -> tuple[CapturedArgument, ...]:
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
