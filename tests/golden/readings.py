"""What the expert makes of every kernel that the tests hold: words, model and templates, or why not.

    python -m tests.golden.readings [KERNEL…]        writes them anew

`readings.jsonl` has a line for each kernel, with digests of its texts; these lie in `readings.tar.xz`, so
that what differs can be shown. No name of a type is in the text of a model: these may change.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from fnmatch import fnmatchcase
from pathlib import Path

from tests.golden import entry
from tests.golden.archive import read_archive, write_archive
from tests.golden.made_up import device_for
from tests.running import EXAMPLES, FIXTURES

TABLE, TEXTS = (Path(__file__).with_name(name) for name in ("readings.jsonl", "readings.tar.xz"))
FOLDERS = {"zoo": FIXTURES / "zoo", "published": FIXTURES / "published", "knobs": FIXTURES / "knobs"}
FOLDERS |= {language: EXAMPLES / language for language in ("cuda", "hip", "opencl")}
KERNELS = {
    f"{group}/{place.parent.name}": place.parent
    for group, folder in FOLDERS.items()
    for place in sorted(folder.glob("*/problem.toml"))
}
SHOWN = 40  # lines of a difference


def texts_of(problem: entry.Problem) -> Iterator[tuple[str, str]]:
    """By name: the words, the model, and the template of each set of moves, or why there is none."""
    device, author = device_for(problem), entry.ExpertAuthor()
    yield "words", "\n".join(entry.reading_of_call(problem, facts=True))
    for number, (_, model) in enumerate(entry.read_call(problem)):
        yield f"model {number}", model if isinstance(model, str) else "\n".join(plain(model))
    every = tuple(move.name for move in entry.MOVES)
    for name, moves in {"all moves": every, "own text": tuple(entry.OWN_TEXT)}.items():
        written = author.write(entry.Refactoring(moves), problem, device)
        yield name, in_words(written)


def in_words(written: entry.Written | entry.Declined) -> str:
    if isinstance(written, entry.Declined):
        return f"declined: {written.reason}"
    refused = (f"{name} is refused: {why}" for name, why in written.refused)
    return "\n".join([f"moves: {' '.join(written.moves)}", *refused, *written.notes, "", written.text])


def plain(value: object, depth: int = 0) -> Iterator[str]:
    """One line for each value: fields in their order, members of sets in that of their text."""
    indent = " " * depth
    match value:
        case _ if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if field.compare and field.name != "source":
                    yield f"{indent}{field.name}:"
                    yield from plain(getattr(value, field.name), depth + 1)
        case dict() | Mapping():
            for key, one in value.items():
                yield from (*plain(key, depth), *plain(one, depth + 1))
        case set() | frozenset():
            yield from (f"{indent}{text}" for text in sorted(" ".join(plain(one)) for one in value))
        case tuple() | list():
            for one in value:
                yield f"{indent}-"
                yield from plain(one, depth + 1)
        case _:
            yield f"{indent}{value}"


def frozen() -> dict[str, dict[str, str]]:
    """By kernel: names of its texts, and their digests."""
    if not TABLE.exists():
        return {}
    rows = (json.loads(line) for line in TABLE.read_text("utf-8").splitlines())
    return {row.pop("kernel"): row for row in rows}


def difference(kernel: str) -> str:
    """The first text that is another one, as a diff; empty where all are the same."""
    was, problem = frozen().get(kernel, {}), entry.load_problem(KERNELS[kernel]).definition
    now = dict(texts_of(problem))
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != (entry.sha256_hex(now[name].encode()) if name in now else None):
            old = read_archive(TEXTS).get(was.get(name, ""), b"").decode()
            lines = unified_diff(old.splitlines(), now.get(name, "").splitlines(), "was", "is", lineterm="")
            return "\n".join([f"{kernel}, {name}:", *list(lines)[:SHOWN]])
    return ""


def main(wanted: Sequence[str]) -> None:
    begun, table, texts = time.monotonic(), frozen(), dict(read_archive(TEXTS))
    table = {name: row for name, row in table.items() if name in KERNELS}
    for kernel, place in KERNELS.items():
        if not any(fnmatchcase(kernel, one) for one in wanted or ["*"]):
            continue
        found = {n: text.encode() for n, text in texts_of(entry.load_problem(place).definition)}
        table[kernel] = {name: entry.sha256_hex(text) for name, text in found.items()}
        texts |= {entry.sha256_hex(text): text for text in found.values()}
    named = {digest for row in table.values() for digest in row.values()}
    rows = (json.dumps({"kernel": name, **table[name]}) for name in sorted(table))
    TABLE.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    write_archive(TEXTS, {digest: text for digest, text in texts.items() if digest in named})
    size = (TABLE.stat().st_size + TEXTS.stat().st_size) >> 10
    print(f"{len(table)} kernels, {len(named)} texts, {size} KiB, in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
