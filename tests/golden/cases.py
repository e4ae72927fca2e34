"""Files of cases: C text, what is asked of it, and below it the answer, in lines that begin with `// want:`.

    // What the file is about.
    // read: tidy                     the reader, where it is not the folder's name
    // with: before = "struct T;"     TOML: what the reader is told, of all cases or of one

    // case: a sum over the index
    // with: language = "opencl"
    int at = s; for (int i = 0; i < n; ++i, at += s) a[at] = 1;
    // want: for (int i = 0; i < n; ++i) a[at + i * s] = 1;

Of a case with a line `// each line` every line of its text is asked by itself; its answer stands behind it.
One with a line `// long` is left to `make test-long`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).with_name("kernels")
LANGUAGES = {".cu": "cuda", ".cl": "opencl", ".hip": "hip"}
CASE, WITH, READ, WANT = "// case: ", "// with:", "// read: ", "// want:"
EACH, LONG = "// each line", "// long"
HEADER = (WITH, EACH, LONG)


@dataclass(frozen=True)
class Case:
    file: Path
    reader: str
    name: str
    options: str  # TOML, those of the file first
    lines: tuple[str, ...]  # the text
    want: tuple[str, ...]
    by_line: bool = False
    is_long: bool = False

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}: {self.name}"

    @property
    def told(self) -> dict[str, object]:
        return {"language": LANGUAGES[self.file.suffix], **tomllib.loads(self.options)}

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What is asked: the whole text, or each of its lines that is no remark."""
        whole = "\n".join(self.lines)
        return tuple(filter(is_question, self.lines)) if self.by_line else (whole,)


def is_question(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("//")


def read_cases(file: Path) -> Iterator[Case]:
    head, *blocks = file.read_text("utf-8").split(f"\n{CASE}")
    reader = next((line.removeprefix(READ) for line in head.splitlines() if line.startswith(READ)), "")
    shared = options_in(head.splitlines())
    for block in blocks:
        name, *lines = block.split("\n")
        count = next((n for n, line in enumerate(lines) if not line.startswith(HEADER)), len(lines))
        options = "\n".join(filter(None, [shared, options_in(lines[:count])]))
        body, by_line, is_long = lines[count:], EACH in lines[:count], LONG in lines[:count]
        if by_line:
            pairs = [line.partition(f"  {WANT}") for line in body]
            text, want = (
                [line for line, _, _ in pairs],
                [w.strip() for line, _, w in pairs if is_question(line)],
            )
        else:
            end = next((n for n, line in enumerate(body) if line.startswith(WANT)), len(body))
            text = body[:end]
            want = [line.removeprefix(WANT)[1:] for line in body[end:] if line.startswith(WANT)]
        while text and not text[-1]:
            text.pop()
        asked = (file, reader or file.parent.name, name, options, tuple(text))
        yield Case(*asked, tuple(want), by_line, is_long)


def options_in(lines: Sequence[str]) -> str:
    return "\n".join(line.removeprefix(WITH)[1:] for line in lines if line.startswith(WITH))


def rewrite(case: Case, answer: Sequence[str]) -> None:
    """The same file with another answer below the case."""
    head, *blocks = case.file.read_text("utf-8").split(f"\n{CASE}")
    for number, block in enumerate(blocks):
        name, *lines = block.split("\n")
        if name == case.name:
            header = [line for line in lines if line.startswith(HEADER)]
            answers = iter(answer)
            if case.by_line:
                body = [
                    f"{line}  {WANT} {next(answers)}" if is_question(line) else line for line in case.lines
                ]
            else:
                body = [*case.lines, *(f"{WANT} {line}".rstrip() for line in answers)]
            blocks[number] = "\n".join([name, *header, *body, ""])
    case.file.write_text(f"\n{CASE}".join([head, *blocks]).rstrip("\n") + "\n", "utf-8")


def all_cases() -> list[Case]:
    files = sorted(path for path in ROOT.rglob("*") if path.suffix in LANGUAGES)
    return [case for file in files for case in read_cases(file)]
