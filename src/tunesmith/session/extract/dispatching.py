"""Which instance of a template a launch asks for: what dispatch makes of names, and types of arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import Token, lex
from tunesmith.csource.macros import Macro
from tunesmith.expert.reading.headers import elements_of
from tunesmith.expert.reading.launches import translate
from tunesmith.problem.problem import TYPES
from tunesmith.session.extract.host import HostLaunch
from tunesmith.space.expr import Undefined, parse

_MOST_MACROS = 200
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
        if "DISPATCH_INDEX_TYPES" in name and not types:
            found.setdefault("index_t", {}).update({"int": None, "int64_t": None})
        elif types:
            found.setdefault(_type_name(text), {}).update(dict.fromkeys(types))
        macro = launch.macros.get(name)
        own = dict(zip(macro.parameters or (), arguments, strict=False)) if macro is not None else {}
        for pattern in (_USING, _CONSTANT):
            for word, value in pattern.findall(text):
                found.setdefault(own.get(word, word), {})[value] = None
    for at, name in enumerate(launch.around.params):
        said = dict.fromkeys(one[at] for one in launch.around.instances if at < len(one) and one[at])
        if said and name not in found:
            found[name] = said
    return {name: tuple(values) for name, values in found.items()}


def preferred(name: str, values: Sequence[str], widest: int = 16) -> str:
    """What is most likely run in production: the narrow float, the widest vector, the feature switched on.

    `widest`: elements that 16 bytes hold.
    """
    for one in _PREFERRED:
        if one in values:
            return one
    if re.search("index|idx", name, re.IGNORECASE):
        values = [one for one in ("int64_t", "int") if one in values] or values
    numbers = sorted((value for value in values if value.isdecimal()), key=int)
    if numbers and re.search("vec|width", name, re.IGNORECASE):
        return max((value for value in numbers if int(value) <= widest), key=int, default=numbers[0])
    if numbers:
        return numbers[0] if re.search("rank|dim", name, re.IGNORECASE) else numbers[-1]
    return "true" if "true" in values else values[0]


def _scalar_words(text: str) -> Iterator[str]:
    for spelled in re.findall(r"\bScalarType\s*::\s*(\w+)|\bk([A-Z]\w+)\b", text):
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
_CAST_TO = re.compile(
    r"(?:(?:reinterpret|static|const)_cast\s*<\s*|\(\s*)(?:const\s+)?([\w:]+)(?:\s+const)?\s*\*\s*[>)]"
)
_NUMBER_CAST = re.compile(r"static_cast\s*<\s*([\w:]+)\s*>\s*\(")
_POINTED = re.compile(r"data_ptr\s*<\s*([^<>]+?)\s*>")


@dataclass(frozen=True)
class ChosenEntry:
    """Template arguments of a launch. `open_names`: what nobody says; `offered`: names that have several
    meanings, with all of them."""

    arguments: tuple[str, ...]
    open_names: tuple[str, ...]
    offered: tuple[tuple[str, tuple[str, ...]], ...]
    decided: tuple[tuple[str, str], ...] = ()  # the host's variable that dispatch asks for -> its value
    guessed: tuple[tuple[str, str], ...] = ()  # types of a template that nobody says, and what was taken


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
    open_types = [n for n in launch.around.params if n in launch.around.kinds and n not in options]
    guesses = {name: _guess(name, launch) for name in open_types}
    unset = [n for n in launch.around.params if n in launch.around.switches and n not in options]
    guesses |= dict.fromkeys(unset, "false")
    options |= {name: (guess,) for name, guess in guesses.items()}
    said = launch.site.template_args
    if said is None:
        texts = _deduced(launch, template_params, parameter_types)
    else:
        texts = [text.strip() for text in _split(said)]
        rest = template_params[len(texts) :]
        texts += _deduced(launch, rest, parameter_types)
    aliases = dict(launch.site.aliases)
    constants = {**dict(launch.constants), **dict(launch.site.settled)}
    resolved, left, offered = [], list[str](), dict[str, tuple[str, ...]]()
    widest, taken = 16, dict[str, str]()
    for text in texts:
        words: list[Token] = []
        for token in _spelled_out(text, aliases, constants, options):
            if token.kind == "word" and token.text in options:
                if len(options[token.text]) > 1:
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
    named = (tuple(resolved), tuple(dict.fromkeys(left)), tuple(offered.items()))
    taken_for = tuple((name, guess) for name, guess in guesses.items() if name in taken)
    return ChosenEntry(*named, decided, taken_for)


def _guess(name: str, launch: HostLaunch) -> str:
    """Sums and statistics are kept in float, indices are integers, data is in half precision."""
    if re.search(r"index|idx|offset", name, re.IGNORECASE):
        return "int"
    if re.search(r"acc|comp|float|^U$", name, re.IGNORECASE):
        return "float"
    return "c10::Half" if launch.around.framework else "__half"


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


def _deduced(launch: HostLaunch, params: Sequence[str], types: Sequence[str]) -> list[str]:
    """A kernel launched without them: what its pointers are cast to, or are by their declaration."""
    found: dict[str, str] = {}
    settled = dict(launch.site.settled)
    declared = dict(launch.around.types)
    for text, base in zip(launch.site.arguments, types, strict=False):
        value = settled.get(text, "")
        pointed = (
            _POINTED.search(text)
            or _CAST_TO.search(text)
            or _POINTED.search(value)
            or _CAST_TO.search(value)
            or _NUMBER_CAST.match(text)
            or _NUMBER_CAST.match(value)
        )
        said = pointed[1].replace("const ", "").strip() if pointed else declared.get(text)
        if base in params and said:
            found.setdefault(base, said)
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
                meaning = meaning or _measured(value, aliases, options)
            changed = changed or meaning is not None
            done += lex(meaning) if meaning is not None else [token]
        tokens = done
        if not changed:
            break
    return tokens


def _measured(value: str, aliases: Mapping[str, str], options: Mapping[str, tuple[str, ...]]) -> str | None:
    """A number by sizes of types: `sizeof(float4) / sizeof(scalar_t)`."""
    if "sizeof" not in value:
        return None
    for _ in range(4):
        words = [aliases.get(t.text) or _only(options.get(t.text, ())) or t.text for t in lex(value)]
        value = " ".join(words)
    said = translate(value.replace(" :: ", "::"), {}, {})
    try:
        return str(parse(said).evaluate({})) if said is not None and not parse(said).names else None
    except Undefined:
        return None


def _only(values: Sequence[str]) -> str:
    return preferred("", values) if values else ""


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
