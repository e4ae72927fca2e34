"""Text that is not ours: what kernels, compilers, drivers and files say, made harmless before it is shown."""

from __future__ import annotations

import hashlib
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

# A terminal's own language: colours and cursor moves, window titles and links, two-character commands.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P^_X][^\x07\x1b]{0,999}(?:\x07|\x1b\\)|[ -/]*[0-~])")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# What acts without being seen: control characters, marks that turn the direction of writing, half characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def strip_controls(text: str) -> str:
    """The text as it may go to a terminal: letters, spaces, tabs and newlines."""
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


# Names of what nobody else may know, and values that give themselves away.
_SECRET_NAME = re.compile(
    r"KEY(?:S|ID)?(?![A-Z])|TOKEN|SECRET|PASS(?:W|PHRASE)|CREDENTIAL|PRIVATE|AUTH(?!OR)|COOKIE|SIGNATURE"
)
_SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:sk|pk|rk)[-_][\w-]{16,}|\b(?:gh[a-z]|hf|glpat|npm|xox[a-z])[-_][\w-]{16,}|\bgithub_pat_\w{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)|(?<=Bearer )\S{12,}"
    r"|(?:(?<=_KEY=)|(?<=TOKEN=)|(?<=SECRET=)|(?<=PASSWORD=))\S{6,}",
    re.DOTALL,
)
_SHORTEST_SECRET = 6  # characters: shorter values stand in many a harmless text


def names_secret(name: str) -> bool:
    """Whether a variable of that name holds what nobody else may know."""
    return _SECRET_NAME.search(name.upper()) is not None


def redact_secrets(text: str, known: Iterable[str] = ()) -> str:
    """Without the known secrets, and without what looks like a key. To be called before anything is cut,
    which could leave a part of one."""
    for value in sorted(set(known), key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "…")
    return _SECRET.sub("…", text)


def truncate_text(text: str, most: int) -> str:
    """At most so many characters; where any are left out, a mark says so."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def escaped_json(text: str) -> str:
    """The same JSON with what a terminal acts upon spelt out; it can only stand inside strings."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def format_count(number: int | float, what: str, several: str = "") -> str:
    """`1 block`, `0.5 blocks`; of another plural `several` has the word: `2 replies`."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {what if number == 1 else several or f'{what}s'}"


Pairs = Mapping[str, int] | Iterable[tuple[str, int]]


def named_values(values: Pairs, between: str = " ") -> str:
    """`rows=64 d=1024`; in a sentence rather with commas between."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return between.join(f"{name}={value}" for name, value in pairs)


def digest_of(*parts: str | bytes) -> str:
    """SHA-256 over length-prefixed parts, so that ("ab", "c") and ("a", "bc") differ."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def sha256_hex(data: bytes) -> str:
    """As `sha256sum` prints it."""
    return hashlib.sha256(data).hexdigest()


def seed_of(*parts: object) -> int:
    """A 60-bit seed derived from the parts: randomness is a function of (run seed, event), nothing else."""
    return int(digest_of(*(repr(part) for part in parts))[:15], 16)


# What Markdown or HTML acts upon: anywhere, but for <= and a star between spaces, which begin nothing;
# underscores but for those inside a name; at the start of a line.
_ACTING = re.compile(
    r"[`\[~$|\\]|<(?![= ])|(?<! )\*|\*(?! )"
    r"|&(?=[#A-Za-z])|(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])|^[#>+=-]"
)
_NUMBERED = re.compile(r"^(\d+)(?=[.)](?: |$))")
_LONGEST = 4000  # characters of what is told in full


def markdown_table(head: str, rows: Iterable[Sequence[object]]) -> list[str]:
    """`head` names the columns, between bars; a name that ends in a colon is that of a column of numbers."""
    names = [name.strip() for name in head.split("|")]
    rules = ("---:" if name.endswith(":") else "---" for name in names)
    lines = [f"| {' | '.join(name.rstrip(':') for name in names)} |", f"|{'|'.join(rules)}|"]
    return [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def seconds_text(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= 10 * factor:
            return f"{seconds / factor:.1f} {unit}"
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-4 else f"{seconds * 1e6:.1f} µs"


def ratio_text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}×"


def flatten_text(text: str) -> str:
    """On one line: who is not us has no second one to write."""
    return " ".join(strip_controls(text).split())


def one_line(text: str, most: int = 300) -> str:
    return truncate_text(flatten_text(text), most)


def first_line(text: str) -> str:
    """Of what is rather a log."""
    return one_line((text.strip().splitlines() or [""])[0]) or "no reason given"


def as_sentence(text: str) -> str:
    """What somebody says in words, as good as whole."""
    said = one_line(text, _LONGEST)
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def end_of_process(code: int) -> str:
    """By its exit status, which is negative where a signal ended it. Signals of real time have no name, nor
    has what a host makes up."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def escape_markdown(text: str) -> str:
    """A line that reads in Markdown as it was written, whoever wrote it: nothing in it acts."""
    line = _ACTING.sub(lambda found: "".join(f"\\{letter}" for letter in found.group()), flatten_text(text))
    return _NUMBERED.sub(r"\1\\", line)


# -- HTML that is built, never pasted: what is text stays text ----------------------------------------------

_EMPTY = frozenset(("br", "img", "input", "link", "meta"))  # elements that have no inside
_NOT_HTML = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Markup:
    """What may stand in a page as it is."""

    text: str


Inside = Markup | str


def escape_html(text: str) -> str:
    """Foreign text for a page, inside an element or between the quotes of an attribute: nothing acts."""
    return escape(_NOT_HTML.sub("\N{REPLACEMENT CHARACTER}", strip_controls(text)), quote=True)


def html_element(tag: str, *inside: Inside, **attributes: str) -> Markup:
    """`class_` is class, and left out where it is empty; `aria_label` is aria-label. Tags and the names of
    attributes are always ours."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape_html(value)}"'
        for name, value in attributes.items()
        if value or name != "class_"
    )
    if tag in _EMPTY:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{join_markup(inside).text}</{tag}>")


def join_markup(inside: Iterable[Inside]) -> Markup:
    return Markup("".join(one.text if isinstance(one, Markup) else escape_html(one) for one in inside))
