"""What an extraction leaves open, filled in by a model.

Its reply is data: values for the places that say FILL and for nothing else, which the reader of problems
reads. Proof and `check` decide whether they are right.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files as package_files
from pathlib import Path

from tunesmith.base.errors import BadInput, WaitingForModel
from tunesmith.base.text import format_count, one_line, truncate_text
from tunesmith.expert.drafts.launches import FILL
from tunesmith.plugins.repo.extract.draft import Extraction
from tunesmith.problem.problem_text import toml_string
from tunesmith.run.events import LanguageModel, Message, NoReply, Pending, Request
from tunesmith.session.problems import PROBLEM_FILE, load_problem

ATTEMPTS = 3
_MAX_CODE = 60_000  # characters of the kernel's file that are told
_LONGEST = 300  # characters of a value
_MARKED = re.compile(r'"([^"\n]*FILL[^"\n]*)"')
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
Value = int | float | str | list[str]
PROMPT = "extractor.md"


@dataclass(frozen=True)
class OpenPlace:
    """`path`: where it is in the file, "argument.2.value"; `line`: the line it stands in."""

    path: str
    line: str
    is_key: bool = False  # a size without a name, which no value can give


@dataclass(frozen=True)
class FilledExtraction:
    found: Extraction
    said: tuple[str, ...]


def open_places(text: str) -> list[OpenPlace]:
    """In the order of the file."""
    paths = list(_walk_open_places(tomllib.loads(text), ()))
    lines = [line for line, _ in _find_fill_marks(text)]
    if len(paths) != len(lines):
        raise BadInput("the draft cannot be matched with its open places", hint="fill it in by hand")
    return [OpenPlace(path, line.strip(), is_key) for (path, is_key), line in zip(paths, lines, strict=True)]


def _walk_open_places(value: object, keys: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    if isinstance(value, str) and FILL in value:
        yield ".".join(keys), False
    elif isinstance(value, dict):
        for key, inner in value.items():
            if FILL in key:
                yield ".".join((*keys, key)), True
            yield from _walk_open_places(inner, (*keys, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _walk_open_places(inner, (*keys, str(at)))


def _find_fill_marks(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Every text with FILL in it, outside of comments, with its line."""
    for line in text.splitlines():
        code = _strip_comment(line)
        yield from ((line, match) for match in _MARKED.finditer(code))


def _strip_comment(line: str) -> str:
    quoted = False
    for at, sign in enumerate(line):
        quoted ^= sign == '"'
        if sign == "#" and not quoted:
            return line[:at]
    return line


def insert_values(text: str, values: Mapping[str, Value], by: str) -> str:
    """With these values in their places, each line marked with who says so."""
    places = iter(open_places(text))
    done: list[str] = []
    for line in text.splitlines():
        code = _strip_comment(line)
        written = _MARKED.sub(lambda _match: _toml_value_text(values[next(places).path]), code)
        done.append(line if written == code else f"{written.rstrip()}  # by {one_line(by, 60)}")
    return "\n".join(done) + "\n"


def _toml_value_text(value: Value) -> str:
    if isinstance(value, list):
        return ", ".join(map(toml_string, value))
    return toml_string(value) if isinstance(value, str) else repr(value)


def values_of(reply: str, places: Sequence[OpenPlace]) -> dict[str, Value]:
    """Raises BadInput: it is not what was asked for."""
    fenced = _FENCE.search(reply)
    try:
        read = json.loads(fenced[1] if fenced else reply)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the reply is not one JSON object: {one_line(str(error))}") from error
    given = read.get("values") if isinstance(read, dict) else None
    if not isinstance(given, dict):
        raise BadInput('the reply has no object "values"')
    wanted = {place.path for place in places}
    missing = [path for path in wanted if path not in given]
    beyond = [path for path in given if path not in wanted]
    if missing or beyond:
        what = f"{min(missing)} has no value" if missing else f"{one_line(beyond[0])} was not asked for"
        raise BadInput(f"values are of the places that are listed: {what}")
    return {path: _check_filled_value(path, value) for path, value in given.items()}


def _check_filled_value(path: str, value: object) -> Value:
    in_list = path.rpartition(".")[2].isdecimal()
    items = value if isinstance(value, list) else [value]
    for item in items:
        is_text = (
            isinstance(item, str) and 0 < len(item) <= _LONGEST and item.isprintable() and FILL not in item
        )
        is_number = isinstance(item, int | float) and not isinstance(item, bool) and abs(item) < 1e300
        if not is_text and (not is_number or isinstance(value, list)):
            raise BadInput(f"{path} is a number or a short text, got {one_line(repr(item))}")
    if isinstance(value, list) and (not in_list or not 0 < len(value) <= 8):
        raise BadInput(f"{path} takes one value")
    return value  # type: ignore[return-value]


def fill_open_places(
    found: Extraction, model: LanguageModel, note: Callable[[str], None] = lambda _words: None
) -> FilledExtraction:
    """By a model, three times at most. Raises WaitingForModel where it has not answered."""
    files = dict(found.files)
    text = files[PROBLEM_FILE]
    places = open_places(text)
    if any(place.is_key for place in places):
        return FilledExtraction(found, ("a size without a name is for you to name, so no model was asked",))
    told = package_files("tunesmith.plugins.repo.extract").joinpath(PROMPT).read_text(encoding="utf-8")
    messages = [Message("system", told), Message("user", _fill_prompt(files, places))]
    refused = ""
    for number in range(1, ATTEMPTS + 1):
        note(f"asking {model.name} for {format_count(len(places), 'place')}")
        reply = model.reply(Request(number, "extractor", tuple(messages), "json", _example_reply(places)))
        if isinstance(reply, Pending):
            hint = "answer it, and run the same command again"
            raise WaitingForModel(f"the model's reply is not there yet: {reply.where}", hint=hint)
        if isinstance(reply, NoReply):
            return FilledExtraction(found, (f"{model.name} did not fill in the rest: {reply.reason}",))
        try:
            values = values_of(reply.text, places)
            done = {**files, PROBLEM_FILE: insert_values(text, values, model.name)}
            _check_problem_loads(done)
        except BadInput as fault:
            refused = fault.message
            messages += [
                Message("assistant", truncate_text(reply.text, 20_000)),
                Message("user", f"That cannot be used: {refused}\nAnswer with the whole JSON object again."),
            ]
            continue
        words = f"{format_count(len(places), 'place')} filled in by {model.name}; proof or `check` decide"
        kept = tuple((name, done[name]) for name, _ in found.files)
        return FilledExtraction(replace(found, files=kept, fills=0), (words,))
    said = f"{model.name} did not fill in the rest: {one_line(refused)}"
    return FilledExtraction(found, (said,))


def _check_problem_loads(files: Mapping[str, str]) -> None:
    """By the reader of problems."""
    with tempfile.TemporaryDirectory(prefix="tunesmith-extract-") as scratch:
        for name, text in files.items():
            Path(scratch, name).write_text(text, encoding="utf-8")
        try:
            load_problem(Path(scratch))
        except BadInput as refused:
            raise BadInput(refused.message.replace(f"{scratch}/", "")) from refused


def _fill_prompt(files: Mapping[str, str], places: Sequence[OpenPlace]) -> str:
    listed = "\n".join(f"- {place.path}: {place.line}" for place in places)
    kernel = next((text for name, text in files.items() if name.endswith(".cu")), "")
    return "\n\n".join([
        "Places without a value:\n" + listed,
        "The draft, problem.toml:\n```toml\n" + files[PROBLEM_FILE] + "```",
        "The kernel's file:\n```cuda\n" + truncate_text(kernel, _MAX_CODE) + "\n```",
    ])  # fmt: skip


def _example_reply(places: Sequence[OpenPlace]) -> str:
    return json.dumps({"values": {place.path: "..." for place in places}, "why": "..."})
