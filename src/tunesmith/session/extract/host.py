"""How a repository's host code launches a kernel: its launches, with launch macros written out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.lex import Token, layout, lex, obstacle
from tunesmith.csource.macros import MOST_TOKENS, Expansion, Macro
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.syntax import syntax_tree
from tunesmith.expert.reading.headers import blank_source, elements_of, unambiguous
from tunesmith.expert.reading.launches import LaunchSite, read_constants, read_launches
from tunesmith.problem.problem import TYPES
from tunesmith.session.extract.finding import SUFFIXES, FoundKernel
from tunesmith.session.extract.reading import ReadSources, read_sources
from tunesmith.session.extract.tree import Includes, SourceTree

_MOST_FILES = 12
_FUNCTION = re.compile(r"&?\s*(?:\w+\s*::\s*)*([A-Za-z_]\w*)\s*(?:<(.*)>)?")
_MOST_MACROS = 200
_NEVER = frozenset({"false", "!(true)", "0", "!(1)"})  # a macro's own argument has decided


@dataclass(frozen=True)
class HostLaunch:
    """One launch in the host's code, and what its file defines besides."""

    path: str
    site: LaunchSite
    constants: tuple[tuple[str, str], ...]
    macros: Mapping[str, Macro]
    instances: tuple[str, ...] = ()  # types for which the function around it is instantiated

    @property
    def place(self) -> str:
        return f"{self.path}:{self.site.line}"


@dataclass(frozen=True)
class HostReading:
    launches: tuple[HostLaunch, ...]
    troubles: tuple[str, ...]  # files that could not be read, in words


def host_launches(
    tree: SourceTree,
    found: FoundKernel,
    folders: Sequence[str] = (),
    defines: tuple[tuple[str, str], ...] = (),
) -> HostReading:
    """Launches of the kernel, those in its own file first."""
    launches: list[HostLaunch] = []
    troubles: list[str] = []
    includes = Includes(tree, folders)
    for path in _files_that_launch(tree, found):
        try:
            own = path == found.item.path
            sources = found.sources if own else read_sources(tree, (path,), includes, defines)
            launches += _in_file(path, sources, found.item.name)
        except Unreadable as trouble:
            troubles.append(f"{path}: {trouble.reason}")
    return HostReading(tuple(launches), tuple(troubles))


def _files_that_launch(tree: SourceTree, found: FoundKernel) -> list[str]:
    word = re.compile(rf"\b{re.escape(found.item.name)}\b")
    others = (path for path in tree.paths if path.endswith(SUFFIXES) and path != found.item.path)
    named = []
    for path in others:
        text = tree.read(path)
        if "<<<" in text and word.search(text):
            named.append(path)
    folder = found.item.path.rpartition("/")[0]
    return [
        found.item.path,
        *sorted(named, key=lambda path: (not path.startswith(folder), path))[:_MOST_FILES],
    ]


def _in_file(path: str, sources: ReadSources, kernel: str) -> Iterator[HostLaunch]:
    file = next(file for file in sources.files if file.path == path)
    launching = _launching(sources.macros)
    tokens = [token for token in file.tokens if token.kind != "directive"]
    launching |= _handed(tokens, launching, sources.macros)
    if any(token.text in launching for token in tokens):
        tokens = Expansion(launching, MOST_TOKENS).expand(tokens, frozenset(), 0)
    text = blank_source(layout(tokens, 1), "cuda").code
    if (trouble := obstacle(lex(text))) is not None:
        raise Unreadable(trouble)
    root = syntax_tree(text, "cuda")
    constants = {**_plain(sources.macros), **unambiguous(read_constants(root))}
    for site in map(_by_its_own_name, read_launches(root, text)):
        if site.kernel == kernel and not _NEVER.intersection(site.conditions):
            made = tuple(_instances(text, site.function))
            yield HostLaunch(path, site, tuple(constants.items()), sources.macros, made)


def _by_its_own_name(site: LaunchSite) -> LaunchSite:
    """`auto kernel = &scale<float>; kernel<<<...>>>(...)` launches scale<float>."""
    meant = _FUNCTION.fullmatch(dict(site.settled).get(site.kernel, ""))
    return site if meant is None else replace(site, kernel=meant[1], template_args=meant[2])


def _handed(
    tokens: Sequence[Token], launching: Mapping[str, Macro], macros: Mapping[str, Macro]
) -> dict[str, Macro]:
    """Macros that are handed another one that launches, `DISPATCH(type, LAUNCH)`, and those they call."""
    found: dict[str, Macro] = {}
    for at, token in enumerate(tokens):
        macro = macros.get(token.text) if token.kind == "word" else None
        if macro is None or not macro.parameters or token.text in launching:
            continue
        depth = 0
        for inner in tokens[at + 1 : at + 200]:
            depth += (inner.text == "(") - (inner.text == ")")
            if depth <= 0:
                break
            if inner.text in launching and token.text not in found:
                found.update(_called(token.text, macros))
                break
    return found


def _called(name: str, macros: Mapping[str, Macro]) -> dict[str, Macro]:
    found: dict[str, Macro] = {}
    waiting = [name]
    while waiting and len(found) < _MOST_MACROS:
        word = waiting.pop()
        if word in macros and word not in found:
            found[word] = macros[word]
            waiting += [token.text for token in macros[word].body if token.kind == "word"]
    return found


def _instances(text: str, function: str) -> Iterator[str]:
    """Types for which a template that launches is instantiated: `template void invoke(half* out, ...);`."""
    if not function:
        return
    pattern = rf"\btemplate\s+void\s+{re.escape(function)}\s*(?:<\s*([\w:]+)|\(\s*(?:const\s+)?([\w:]+)\s*\*)"
    for spelled in re.findall(pattern, text):
        yield next(filter(None, spelled))


def _launching(macros: Mapping[str, Macro]) -> dict[str, Macro]:
    """Macros that launch something, by themselves or by another one."""
    found = {name for name, macro in macros.items() if any(t.text == "<<<" for t in macro.body)}
    grown = True
    while grown:
        more = {
            name
            for name, macro in macros.items()
            if name not in found and any(token.text in found for token in macro.body)
        }
        found |= more
        grown = bool(more)
    return {name: macros[name] for name in found}


def _plain(macros: Mapping[str, Macro]) -> dict[str, str]:
    return {
        name: "".join(token.space + token.text for token in macro.body).strip()
        for name, macro in macros.items()
        if macro.parameters is None and 0 < len(macro.body) <= 12
    }


# -- what dispatch offers ------------------------------------------------------------------------------

_SCALARS = {
    "Float": "float", "Double": "double", "Half": "c10::Half", "BFloat16": "c10::BFloat16",
    "Byte": "uint8_t", "Char": "int8_t", "Short": "int16_t", "Int": "int", "Long": "int64_t", "Bool": "bool",
    "UInt16": "uint16_t", "UInt32": "uint32_t", "UInt64": "uint64_t",
    "Float8_e4m3fn": "c10::Float8_e4m3fn", "Float8_e5m2": "c10::Float8_e5m2",
}  # fmt: skip
_BUILT_IN = (
    ("FLOATING", ("float", "double")),
    ("INTEGRAL", ("uint8_t", "int8_t", "int16_t", "int", "int64_t")),
    ("ALL_TYPES", ("float", "double", "uint8_t", "int8_t", "int16_t", "int", "int64_t")),
)
_PREFERRED = ("c10::BFloat16", "c10::Half", "__half", "half", "__nv_bfloat16", "float")
_USING = re.compile(r"\busing\s+(\w+)\s*=\s*([\w:]+)\s*;")
_CONSTANT = re.compile(r"\bconstexpr\s+(?:static\s+)?[\w:]+\s+(\w+)\s*=\s*(\d+|true|false)\s*;")


def choices(launch: HostLaunch) -> dict[str, tuple[str, ...]]:
    """What the dispatch around a launch may make of names: `scalar_t` -> float, c10::Half, ..."""
    found: dict[str, dict[str, None]] = {}
    for name, *arguments in launch.site.around:
        text = _reached(name, launch.macros)
        types = [_SCALARS[word] for word in _scalar_words(f"{text} {' '.join(arguments)}")]
        if "DISPATCH" in name and not types:
            types = [one for part, listed in _BUILT_IN if part in name for one in listed]
        if "DISPATCH" in name and "HALF" in name:
            types.append("c10::Half")
        if types:
            found.setdefault(_type_name(text), {}).update(dict.fromkeys(types))
        for pattern in (_USING, _CONSTANT):
            for word, value in pattern.findall(text):
                found.setdefault(word, {})[value] = None
    if launch.instances and "T" not in found:
        found["T"] = dict.fromkeys(launch.instances)
    return {name: tuple(values) for name, values in found.items()}


def preferred(name: str, values: Sequence[str], widest: int = 16) -> str:
    """What is most likely run in production: the narrow float, the widest vector, the feature switched on.

    `widest`: elements that 16 bytes hold.
    """
    for one in _PREFERRED:
        if one in values:
            return one
    numbers = sorted((value for value in values if value.isdecimal()), key=int)
    if numbers and re.search("vec|width", name, re.IGNORECASE):
        return max((value for value in numbers if int(value) <= widest), key=int, default=numbers[0])
    if numbers:
        return numbers[0] if re.search("rank|dim", name, re.IGNORECASE) else numbers[-1]
    return "true" if "true" in values else values[0]


def _scalar_words(text: str) -> Iterator[str]:
    for spelled in re.findall(r"\bScalarType\s*::\s*(\w+)|\b(?:at|torch|c10)\s*::\s*k(\w+)", text):
        word = next(filter(None, spelled))
        if word in _SCALARS:
            yield word


def _type_name(text: str) -> str:
    hinted = re.search(r"_USING_HINT\s*\([^,()]*,\s*(\w+)", text)
    return hinted[1] if hinted else "scalar_t"


def _reached(name: str, macros: Mapping[str, Macro]) -> str:
    """The bodies of a macro and of those that it calls."""
    waiting, done, text = [name], set[str](), ""
    while waiting and len(done) < _MOST_MACROS:
        word = waiting.pop(0)
        if word in done or word not in macros:
            continue
        done.add(word)
        body = macros[word].body
        text += " ".join(map(str, body)) + " "
        waiting += [token.text for token in body if token.kind == "word"]
    return text


# -- template arguments -----------------------------------------------------------------------------------

_NUMBER = re.compile(r"\d+")
_POINTED = re.compile(r"data_ptr\s*<\s*([^<>]+?)\s*>")


@dataclass(frozen=True)
class ChosenEntry:
    """Template arguments of a launch. `open_names`: what nobody says; `offered`: names that have several
    meanings, with all of them."""

    arguments: tuple[str, ...]
    open_names: tuple[str, ...]
    offered: tuple[tuple[str, tuple[str, ...]], ...]
    decided: tuple[tuple[str, str], ...] = ()  # the host's variable that dispatch asks for -> its value


@dataclass(frozen=True)
class ChosenLaunch:
    """The launch that is meant, of so many others, and its instance."""

    launch: HostLaunch | None
    chosen: ChosenEntry
    others: int


def chosen_entry(
    launch: HostLaunch, template_params: Sequence[str], parameter_types: Sequence[str], known: frozenset[str]
) -> ChosenEntry:
    """The instance that a launch asks for; `parameter_types`: what kernel parameters point to, in order;
    `known`: names that device code may use as they are."""
    options = choices(launch)
    said = launch.site.template_args
    if said is None:
        texts = _deduced(launch.site, template_params, parameter_types)
    else:
        texts = [text.strip() for text in _split(said)]
    aliases = dict(launch.site.aliases)
    constants = {**dict(launch.constants), **dict(launch.site.settled)}
    resolved, left, offered = [], list[str](), dict[str, tuple[str, ...]]()
    widest, taken = 16, dict[str, str]()
    for text in texts:
        words: list[Token] = []
        for token in _spelled_out(text, aliases, constants, options):
            if token.kind == "word" and token.text in options:
                offered[token.text] = options[token.text]
                chosen = preferred(token.text, options[token.text], widest)
                element = elements_of(chosen, "cuda")[0]
                widest = 16 // TYPES[element].bytes if element in TYPES else widest
                taken[token.text] = chosen
                words += lex(chosen)
            else:
                words.append(token)
        left += _unknown(words, known)
        resolved.append(_joined(words))
    decided = tuple(_decided(launch, taken))
    return ChosenEntry(tuple(resolved), tuple(dict.fromkeys(left)), tuple(offered.items()), decided)


def _decided(launch: HostLaunch, taken: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """`DISPATCH(width, [&] { ... constexpr int W = 8; ... })` with W for 8: width is 8."""
    for name, *arguments in launch.site.around:
        made = dict(_CONSTANT.findall(_reached(name, launch.macros)))
        for word, value in taken.items():
            if word in made and value.isdecimal() and arguments and arguments[0].isidentifier():
                yield arguments[0], value


def _split(text: str) -> list[str]:
    parts, depth, last = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            parts.append(text[last:at])
            last = at + 1
    return [*parts, text[last:]]


def _deduced(site: LaunchSite, params: Sequence[str], types: Sequence[str]) -> list[str]:
    """A kernel launched without them: what its pointers are cast to."""
    found: dict[str, str] = {}
    settled = dict(site.settled)
    for text, base in zip(site.arguments, types, strict=False):
        pointed = _POINTED.search(text) or _POINTED.search(settled.get(text, ""))
        if base in params and pointed:
            found.setdefault(base, pointed[1].replace("const ", "").strip())
    texts = []
    for name in params:
        if name not in found:
            break
        texts.append(found[name])
    return texts


def _spelled_out(
    text: str,
    aliases: Mapping[str, str],
    constants: Mapping[str, str],
    options: Mapping[str, tuple[str, ...]],
) -> list[Token]:
    tokens = lex(text)
    for _ in range(8):
        done: list[Token] = []
        changed = False
        for token in tokens:
            meaning = aliases.get(token.text) if token.kind == "word" else None
            if meaning is None and token.text not in options:
                value = constants.get(token.text, "")
                meaning = value if _NUMBER.fullmatch(value) or value in ("true", "false") else None
            changed = changed or meaning is not None
            done += lex(meaning) if meaning is not None else [token]
        tokens = done
        if not changed:
            break
    return tokens


def _unknown(tokens: Sequence[Token], known: frozenset[str]) -> Iterator[str]:
    plain = {
        "true",
        "false",
        "float",
        "double",
        "int",
        "unsigned",
        "char",
        "short",
        "long",
        "bool",
        "const",
        "void",
        "typename",
    }
    for at, token in enumerate(tokens):
        if token.kind != "word" or token.text in plain or token.text in known:
            continue
        qualified = at and tokens[at - 1].text == "::"
        opens = at + 1 < len(tokens) and tokens[at + 1].text == "::"
        if not (
            qualified or opens or re.fullmatch(r"u?int\d+_t|__?nv_\w+|__half2?|half2?|size_t", token.text)
        ):
            yield token.text


def _joined(tokens: Sequence[Token]) -> str:
    text = ""
    for token in tokens:
        if token.text == ",":
            text += ", "
        elif (
            text
            and (text[-1].isalnum() or text[-1] == "_")
            and (token.text[0].isalnum() or token.text[0] == "_")
        ):
            text += f" {token.text}"
        else:
            text += token.text
    return text
