"""Sizes as the host has them: which of its names are sizes, shapes of tensors, conditions, what is passed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.expert.reading.arguments import DraftArgument, looks_like_a_size, possible_name
from tunesmith.expert.reading.headers import LaunchSite
from tunesmith.expert.reading.launches import translate
from tunesmith.problem.problem import TYPES
from tunesmith.session.extract.host import HostLaunch
from tunesmith.space.expr import is_name, parse

_ASKS = re.compile(r"\.\s*(?:size|sizes|numel|stride|strides|dim|nbytes|ndimension)\b")
_SIZE = re.compile(r"^\(*(\w+)\.(?:size\s*\(\s*(-?\d+)\s*\)|sizes\s*\(\s*\)\s*\[\s*(-?\d+)\s*\])\)*$")
_STRIDE = re.compile(r"^\(*(\w+)\.stride\s*\(\s*(-?\d+)\s*\)\)*$")
_OVER = re.compile(r"^\(*(\w+)\.numel\s*\(\s*\)\s*/\s*\(*(\w+(?:\.size\s*\(\s*-?\d+\s*\))?)\)*$")
_NUMEL = re.compile(r"^\(*(\w+)\.numel\s*\(\s*\)\)*$")
_EQUAL = re.compile(r"^\s*([^=<>!&|]+?)\s*==\s*([^=<>!&|]+?)\s*$")
_DIM = re.compile(r"^(\w+)\.(?:dim|ndimension)\s*\(\s*\)$")
_MADE = re.compile(r"\b(?:empty|zeros|ones|full)\s*\(\s*\{([^{}]*)\}")
_LIKE = re.compile(r"\b(?:empty_like|zeros_like|ones_like)\s*\(\s*(\w+)\s*[,)]")
_TENSOR = re.compile(r"\b(\w+)\s*\.\s*(?:(?:const|mutable)_)?data_ptr\b|\b(\w+)\s*\.\s*data\s*(?:<|\()")
_CASTS = re.compile(
    r"\b(?:static_cast|reinterpret_cast|const_cast)\s*<[^<>]*>\s*\(([^()]*)\)|\((?:u?int\d*(?:_t)?|float|size_t|long)\)\s*"
)
_NULL = re.compile(r"(?:\(\s*[\w\s:]+\*\s*\)\s*)?(?:nullptr|NULL|0)")
_MULTIPLE = re.compile(r"^(\w+) % (\d+) == 0$")
_COMPARES = re.compile(r"[<>=!&|]=?(?!\w*>)")
_GCD = re.compile(r"^(?:std::)?gcd\s*\(.*,\s*(\w+)\s*\)$")  # how widths of vectors are found
_LISTED = re.compile(r"\[([^\[\]]+)\]")


@dataclass(frozen=True)
class HostFacts:
    """What the host's code says of a kernel's arguments, over sizes. `passed`: its own words for each."""

    sizes: tuple[str, ...]
    values: Mapping[str, str]  # scalar argument -> expression over sizes, or a number
    shapes: Mapping[str, tuple[str, ...]]
    shapes_from: Mapping[str, str]
    nulls: frozenset[str]
    multiples: Mapping[str, int]
    requires: tuple[str, ...]
    unread: tuple[str, ...]  # conditions that are not over sizes
    passed: Mapping[str, str]
    leaves: Mapping[str, str]  # the host's words -> the size that they are
    decided: Mapping[str, str]  # variables on which its dispatch decides


def host_facts(
    launch: HostLaunch,
    arguments: Sequence[DraftArgument],
    comments: Mapping[str, str],
    chosen: Mapping[str, str] | None = None,
) -> HostFacts:
    """`comments`: what stands beside each parameter in the kernel's header; `chosen`: variables on which the
    host's dispatch decides, with what they are for this instance."""
    return _HostFactReader(launch, arguments, comments, chosen or {}).facts()


class _HostFactReader:
    def __init__(
        self,
        launch: HostLaunch,
        arguments: Sequence[DraftArgument],
        comments: Mapping[str, str],
        chosen: Mapping[str, str],
    ) -> None:
        self._site, self._arguments, self._comments = launch.site, arguments, comments
        said = {name: _uncast(value) for name, value in launch.site.settled}
        self._divided = {_GCD.match(said.get(name, "")): number for name, number in chosen.items()}
        self._settled, self._chosen = {**said, **chosen}, chosen
        pairs = zip(launch.site.arguments, arguments, strict=False)
        self._passed = {argument.name: _uncast(text) for text, argument in pairs}
        self._own = self._own_names()
        self._leaves = dict(self._found_leaves())
        constants = {n: v for n, v in launch.constants if n not in launch.site.local}
        plain = {n: v for n, v in self._settled.items() if n not in self._leaves}
        self._constants = {**constants, **plain}

    def facts(self) -> HostFacts:
        dims = _Dimensions(self._site, self._settled, self._translated)
        shapes, sources = self._shapes(dims)
        values = dict(self._values(dims))
        requires, multiples, unread = self._conditions()
        return HostFacts(
            tuple(dict.fromkeys(self._leaves.values())),
            values,
            shapes,
            sources,
            frozenset(a.name for a in self._arguments if a.parameter.pointer and self._is_null(a.name)),
            multiples,
            requires,
            unread,
            self._passed,
            self._leaves,
            self._chosen,
        )

    # -- names ---------------------------------------------------------------------------------------

    def _own_names(self) -> dict[str, str]:
        """The host's name for what is passed as it is -> the kernel's."""
        found: dict[str, str] = {}
        for argument in self._arguments:
            text = self._passed.get(argument.name, "")
            if argument.is_integer and not argument.parameter.pointer and is_name(text):
                found.setdefault(text, argument.name)
        return found

    def _found_leaves(self) -> Iterator[tuple[str, str]]:
        """Names and whole expressions that are sizes by themselves."""
        for name, value in self._settled.items():
            if (
                _ASKS.search(value)
                and not _COMPARES.search(value)
                and not _STRIDE.match(value)
                and not _DIM.match(value)
                and "?" not in value
            ):
                size = self._size_name(name)
                yield name, size
                yield value, size
        integers = {
            self._passed.get(a.name) for a in self._arguments if a.is_integer and a.parameter.base != "bool"
        }
        for name in sorted(self._site.local - self._settled.keys()):
            if name in integers and is_name(name) and looks_like_a_size(self._size_name(name)):
                yield name, self._size_name(name)
        for argument in self._arguments:
            text = self._passed.get(argument.name, "")
            if argument.is_integer and _SIZE.match(text):
                yield text, argument.name

    def _size_name(self, name: str) -> str:
        return self._own.get(name, possible_name(name))

    def _translated(self, text: str) -> str | None:
        found = translate(_uncast(text), self._leaves, self._constants)
        return None if found is None or "." in found.replace("device.", "") else found

    # -- arguments -----------------------------------------------------------------------------------

    def _is_null(self, name: str) -> bool:
        return _NULL.fullmatch(self._passed.get(name, "")) is not None

    def _values(self, dims: _Dimensions) -> Iterator[tuple[str, str]]:
        for argument in self._arguments:
            text = self._passed.get(argument.name)
            if text is None or argument.parameter.pointer or argument.element is None:
                continue
            if TYPES[argument.element].kind == "float":
                number = self._number(text)
                if number is not None:
                    yield argument.name, number
            else:
                stride = _STRIDE.match(self._settled.get(text, text))
                found = dims.stride(stride[1], int(stride[2])) if stride else self._translated(text)
                if found is not None:
                    yield argument.name, found

    def _number(self, text: str) -> str | None:
        text = self._constants.get(text, text).strip().rstrip("fF")
        try:
            return repr(float(text))
        except ValueError:
            return None

    def _shapes(self, dims: _Dimensions) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        found: dict[str, tuple[str, ...]] = {}
        sources: dict[str, str] = {}
        for argument in self._arguments:
            if not argument.parameter.pointer or self._is_null(argument.name):
                continue
            tensor = self._tensor(argument.name)
            shape = dims.shape(tensor) if tensor else None
            source = f"{tensor} in line {self._site.line}"
            written = self._commented(argument.name, dims, tensor)
            if written is not None and (shape is None or len(written) > len(shape)):
                shape, source = written, "as the kernel's own comment says"
            if shape is not None:
                found[argument.name], sources[argument.name] = shape, source
        return found, sources

    def _tensor(self, name: str) -> str:
        text = self._passed.get(name, "")
        for one in (text, self._settled.get(text, "")):
            match = _TENSOR.search(one)
            if match:
                return match[1] or match[2]
        return text if is_name(text) else ""

    def _commented(self, name: str, dims: _Dimensions, tensor: str) -> tuple[str, ...] | None:
        """`// [rows, hidden]`, where all of its names are known sizes."""
        listed = _LISTED.search(self._comments.get(name, ""))
        if listed is None:
            return None
        axes: list[str] = []
        parts = [part.strip() for part in listed[1].split(",")]
        for part in parts:
            if part == "...":
                leading = dims.leading(tensor, len(parts) - 1)
                if leading is None:
                    return None
                axes.append(leading)
                continue
            said = self._translated(part)
            if (
                said is None
                and is_name(part)
                and part not in self._site.local
                and part not in self._constants
            ):
                return None
            if said is None or not set(parse(said).names) <= {*self._leaves.values(), *self._integers()}:
                return None
            axes.append(said)
        return tuple(axes)

    def _integers(self) -> set[str]:
        return {a.name for a in self._arguments if a.is_integer and not a.parameter.pointer}

    # -- conditions ----------------------------------------------------------------------------------

    def _conditions(self) -> tuple[tuple[str, ...], dict[str, int], tuple[str, ...]]:
        requires: dict[str, None] = {}
        multiples: dict[str, int] = {}
        for asked, number in self._divided.items():
            if asked is not None and (said := self._translated(asked[1])) and is_name(said):
                multiples[said] = int(number)
        unread: dict[str, None] = {}
        for text in (*self._site.checks, *self._site.conditions):
            for part in _conjuncts(self._spelled(_uncast(text))):
                said = self._translated(part)
                if said is None or not parse(said).names:
                    if said is None and not _is_idle(part) and not _is_of_shapes(part):
                        unread[part] = None
                    continue
                multiple = _MULTIPLE.match(said)
                if multiple:
                    multiples[multiple[1]] = max(int(multiple[2]), multiples.get(multiple[1], 1))
                elif not _is_tautology(said):
                    requires[said] = None
        return tuple(requires), multiples, tuple(unread)

    def _spelled(self, text: str) -> str:
        """A condition that has a name of its own, as what it stands for."""
        for _ in range(4):
            if text not in self._settled:
                break
            text = self._settled[text]
        return text


class _Dimensions:
    """Extents of tensors, from what the host asks of them and checks."""

    def __init__(self, site: LaunchSite, settled: Mapping[str, str], translated: object) -> None:
        assert callable(translated)
        self._settled, self._translated = settled, translated
        self._known: dict[tuple[str, int], str] = {}
        self._rows: dict[str, tuple[str, str]] = {}  # tensor -> numel / last, last
        self._ranks: dict[str, int] = {}
        equal = [m.groups() for text in site.checks if (m := _EQUAL.match(_uncast(text)))]
        for name, value in settled.items():
            self._learn(value, name)
        for left, right in (*equal, *((right, left) for left, right in equal)):
            self._learn(_uncast(left), _uncast(right))
        for left, right in (*equal, *((right, left) for left, right in equal)):
            one, other = _SIZE.match(_uncast(left)), _SIZE.match(_uncast(right))
            if one and other and (key := _place(other)) in self._known:
                self._known.setdefault(_place(one), self._known[key])

    def _learn(self, value: str, name: str) -> None:
        said = self._translated(name)
        size, over, rank = _SIZE.match(value), _OVER.match(value), _DIM.match(value)
        if rank and name.isdecimal():
            self._ranks[rank[1]] = int(name)
        if said is None:
            return
        if size:
            self._known.setdefault(_place(size), said)
        elif over and (other := self._translated(over[2])) is not None:
            size = _SIZE.match(self._settled.get(over[2], over[2]))
            is_last = size is not None and _place(size)[1] == -1
            self._rows[over[1]] = (said, other) if is_last else (other, said)
        elif whole := _NUMEL.match(value):
            self._known.setdefault((whole[1], 99), said)

    def shape(self, tensor: str) -> tuple[str, ...] | None:
        made = self._settled.get(tensor, "")
        if listed := _MADE.search(made):
            axes = [self._translated(part) for part in listed[1].split(",")]
            return tuple(axis for axis in axes if axis) if all(axes) else None
        if like := _LIKE.search(made):
            return self.shape(like[1]) if like[1] != tensor else None
        first = [at for name, at in self._known if name == tensor and 0 <= at < 99]
        rank = self._ranks.get(tensor)
        if first and sorted(first) == list(range(max(first) + 1)) and rank in (None, len(first)):
            axes = [self._known[tensor, at] for at in sorted(first)]
            if (tensor, -1) in self._known and rank is None and self._known[tensor, -1] != axes[-1]:
                axes.append(self._known[tensor, -1])
            return tuple(axis for axis in axes if axis)
        if tensor in self._rows:
            return self._rows[tensor]
        if (tensor, 99) in self._known:
            return (self._known[tensor, 99],)
        return None

    def leading(self, tensor: str, others: int) -> str | None:
        """What `...` before so many axes stands for: as many rows as any tensor of the call has."""
        rows = self._rows.get(tensor) or next(iter(self._rows.values()), None)
        if rows is not None:
            return rows[0]
        shape = self.shape(tensor)
        return " * ".join(shape[: len(shape) - others]) if shape and len(shape) > others else None

    def stride(self, tensor: str, at: int) -> str | None:
        """Of a dense array."""
        shape = self.shape(tensor)
        if shape is None or not -len(shape) <= at < len(shape):
            return None
        inner = shape[len(shape) + at + 1 :] if at < 0 else shape[at + 1 :]
        return " * ".join(axis if is_name(axis) else f"({axis})" for axis in inner) or "1"


def _place(match: re.Match[str]) -> tuple[str, int]:
    return match[1], int(match[2] or match[3])


def _uncast(text: str) -> str:
    for _ in range(4):
        plain = _CASTS.sub(lambda m: m[1] if m[1] is not None else "", text)
        if plain == text:
            break
        text = plain
    return text.strip().replace("->", ".")


def _conjuncts(text: str) -> list[str]:
    parts, depth, last = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 and text[at : at + 2] == "&&":
            parts.append(text[last:at].strip())
            last = at + 2
    return [_bared(part) for part in (*parts, text[last:].strip()) if part]


def _bared(text: str) -> str:
    """Without parentheses around the whole."""
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for at, sign in enumerate(text):
            depth += (sign == "(") - (sign == ")")
            if depth == 0 and at < len(text) - 1:
                return text
        text = text[1:-1].strip()
    return text


def _is_idle(text: str) -> bool:
    """What a problem file need not say: devices, types and layouts that arrays have by being described."""
    return bool(
        re.search(r"is_cuda|is_contiguous|scalar_type|dtype|device|defined\(\)|has_value|is_privateuse", text)
    )


def _is_of_shapes(text: str) -> bool:
    """Extents of two tensors that are the same: their shapes say so."""
    sides = _EQUAL.match(text)
    asked = (_SIZE, _NUMEL, _DIM, _STRIDE)
    return sides is not None and all(
        side.isdecimal() or any(pattern.match(_uncast(side)) for pattern in asked) for side in sides.groups()
    )


def _is_tautology(text: str) -> bool:
    left, mark, right = text.partition(" == ")
    return bool(mark) and left == right
