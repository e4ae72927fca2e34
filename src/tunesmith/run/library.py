"""What outlives a run: a winning template with the kernel it is of, what it gave, and what is known of it.

A kernel is known by its text and by its signature. Of the text, comments, line ends and how many blanks there
are do not count; nothing else is judged, since whoever changes a kernel may have changed what it computes.
The signature is what a caller sees: with another type or argument it is another kernel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tunesmith.base.codec import Malformed, encode_json
from tunesmith.base.text import digest_of, flatten_text, redact_secrets, truncate_text
from tunesmith.problem import device as languages
from tunesmith.problem.problem import Argument, Problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import exclude_combinations
from tunesmith.run.candidates import Row, Templates, rows_for
from tunesmith.run.events import STORED, Primed
from tunesmith.run.figures import Figure, run_figure
from tunesmith.run.outcome import median
from tunesmith.run.ports import Tried
from tunesmith.run.race import Winners, sound_scores, verified_choice
from tunesmith.run.report import delivered_templates
from tunesmith.run.rounds import RoundReport, round_reports, score_at
from tunesmith.run.scores import SpeedupScale
from tunesmith.run.state import UNKNOWN_AUTHOR, State
from tunesmith.source.text import without_comments
from tunesmith.space.configset import Config

FIRST = 8  # configurations of a run that are tried first elsewhere
RUNNERS_UP = 3  # of these, the best in general by short measurements
ROWS = 400  # of one run: its best half, and of the rest every so many
ENTRY_FORMAT = 2  # counts changes of what an entry means
STORED_ROWS = 200
_IDLE = re.compile(r" (?=[,;)])|(?<=\() ")  # blanks that part nothing, such as a comment leaves
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,119}")  # names files: no folder, no dot in front


@dataclass(frozen=True)
class ServedWorkload:
    """What an entry's template gave at one workload, by the verification."""

    workload: str
    sizes: tuple[tuple[str, int], ...]
    weight: float
    speedup: float
    interval: tuple[float, float]
    config: Config


@dataclass(frozen=True)
class LibraryEntry:
    name: str
    format: int
    kernel: str  # digest of its text
    signature: str
    problem: str
    language: str
    device: str
    driver: str
    compiler: str
    template: str  # the text
    path: str  # the template's own name
    headers: tuple[tuple[str, str], ...]  # its own, beside the problem's
    moves: tuple[str, ...]
    author: str  # the model that wrote it, however long ago; empty: the expert, or the user
    speedup: float  # weighted geometric mean over the problem's workloads, 1 where it does not serve
    served: tuple[ServedWorkload, ...]
    best: tuple[Config, ...]  # to be tried first elsewhere
    rows: tuple[tuple[Config, float | None], ...]  # log speed-ups
    files: tuple[tuple[str, str], ...]  # the problem's, so that it can be searched again without them
    date: str
    origin: str  # the run it comes from
    run: str = ""  # its identity (`run_id`); what it was verified by is in that run's journal
    certificate: str = ""  # SHA-256 of the run's certificate
    interval: tuple[float, float] | None = None  # of the speed-up; None: nobody knows
    doubt: str = ""  # why it is not certified

    @property
    def figure(self) -> Figure:
        return Figure(self.speedup, *(self.interval or (self.speedup, self.speedup)), self.doubt)

    @property
    def about(self) -> str:
        return f"{self.figure.words} on {self.device}, {self.date[:10]}"


def entry_summary(entry: LibraryEntry) -> dict[str, object]:
    """An entry as a list shows it."""
    known = ("name", "problem", "signature", "kernel", "device", "speedup", "date", "origin", "interval")
    summary = {"headline": entry.figure.words, "workloads": [s.workload for s in entry.served]}
    return summary | {key: getattr(entry, key) for key in known}


@dataclass(frozen=True)
class LibraryTemplate:
    """A template that a run begins from, whoever plans the rest."""

    name: str
    text: str
    path: str
    moves: tuple[str, ...]
    about: str
    author: str = UNKNOWN_AUTHOR  # as the entry's; where nobody says it is vetted

    @staticmethod
    def of(entry: LibraryEntry) -> LibraryTemplate:
        return LibraryTemplate(entry.name, entry.template, entry.path, entry.moves, entry.about, entry.author)

    @property
    def mark(self) -> str:
        """Stands among the moves of a decision; no move has such a name."""
        return f"{STORED}{self.name}"

    def without(self, values: Sequence[tuple[str, int]]) -> str:
        """The text, with values forbidden that proved wrong here."""
        rules = [(value,) for value in values]
        return exclude_combinations(self.text, rules, self.path) if rules else self.text


def kernel_digest(problem: Problem) -> str:
    """Of everything that is compiled: the source, the user's own headers, and macros that are set for it."""
    kernel = problem.kernel
    code = without_comments if languages.find_language(kernel.language).is_c_family else str
    headers = [part for name, text in kernel.headers for part in (name, _normalize_whitespace(code(text)))]
    return digest_of(_normalize_whitespace(code(kernel.text)), repr(kernel.defines), *headers)


def signature_of(problem: Problem) -> str:
    arguments = ", ".join(map(_format_argument, problem.arguments))
    sizes = ", ".join(problem.size_names)
    return f"{problem.kernel.language} {problem.kernel.entry}({arguments}) over {sizes}"


def is_for_problem(entry: LibraryEntry, problem: Problem) -> bool:
    return entry.kernel == kernel_digest(problem) and entry.signature == signature_of(problem)


def rank_entries(entries: Sequence[LibraryEntry], problem: Problem, device: str = "") -> list[LibraryEntry]:
    """Those of the same device first, then by how many of the problem's sizes they know, then by what they
    gave: speed-ups at other sizes say little."""
    wanted = {w.sizes for w in problem.workloads}

    def place(entry: LibraryEntry) -> tuple[bool, int, float, str]:
        known = sum(served.sizes in wanted for served in entry.served)
        return entry.device != device, -known, -entry.speedup, entry.name

    return sorted(entries, key=place)


def with_past(entry: LibraryEntry, others: Sequence[LibraryEntry]) -> LibraryEntry:
    """Who wrote a template, and with which moves, is known where it was written; a run that only searched it
    again does not know."""
    known = [e for e in others if e.template == entry.template]
    moves = next((e.moves for e in known if e.moves), ())
    author = next((e.author for e in known if e.author), "")
    return replace(entry, moves=entry.moves or moves, author=entry.author or author)


def merge_entries(entry: LibraryEntry, old: LibraryEntry) -> LibraryEntry:
    """An entry in place of one of the same name: a short search must not cost what a long one has found. What
    gave more stands first and is told of, unless driver or compiler have changed since; of a configuration
    that both know, the newer score counts."""
    same = (entry.driver, entry.compiler) == (old.driver, old.compiler)
    better, other = (old, entry) if same and old.speedup > entry.speedup else (entry, old)
    rows = dict(old.rows) | dict(entry.rows)
    return replace(
        better,
        best=tuple(dict.fromkeys((*better.best, *other.best)))[:FIRST],
        rows=tuple(thin_rows(list(rows.items()), STORED_ROWS)),
        files=entry.files,
        author=entry.author or old.author,
    )


def entries_of(
    problem: Problem, state: State, templates: Templates, files: Mapping[str, str], date: str, origin: str
) -> list[LibraryEntry]:
    """One for each template that won anywhere; none where the original stays."""
    if state.stopped is None:
        return []
    choice = verified_choice(problem, state)
    names = delivered_templates(problem, state, choice)
    found: list[LibraryEntry] = []
    for candidate in dict.fromkeys(config.candidate for config in choice.configs()):
        served, figure = _served_workloads(problem, choice, candidate), run_figure(problem, choice, candidate)
        written = state.candidate(candidate)
        template = templates.of(written)
        if not served or figure is None or template.is_concrete:
            continue  # a concrete one has nothing to be searched again
        entry = LibraryEntry(
            name="",
            format=ENTRY_FORMAT,
            kernel=kernel_digest(problem),
            signature=signature_of(problem),
            problem=problem.name,
            language=problem.kernel.language,
            device=state.device.name,
            driver=state.device.driver,
            compiler=state.compiler,
            template=template.source,
            path=names[candidate],
            headers=template.headers,
            moves=written.moves,
            author=templates.author_of(written),
            speedup=figure.value,
            served=served,
            best=best_of(problem, state, candidate),
            rows=tuple(thin_rows(rows_of(problem, state, candidate), STORED_ROWS)),
            files=tuple(sorted(files.items())),
            date=date,
            origin=origin,
            interval=(figure.low, figure.high),
            doubt=figure.doubt,
        )
        found.append(replace(entry, name=_library_entry_name(entry)))
    return found


def _served_workloads(problem: Problem, choice: Winners, candidate: str) -> tuple[ServedWorkload, ...]:
    return tuple(
        ServedWorkload(w.name, w.sizes, w.weight, s.value, (s.low, s.high), _drop_candidate(p.config))
        for w, p in zip(problem.workloads, choice.picks, strict=True)
        for s in (p.speedup,)
        if p.config is not None and p.config.candidate == candidate
    )


def _library_entry_name(entry: LibraryEntry) -> str:
    """The same template of the same kernel at the same sizes on the same device has one name."""
    sizes = repr([(s.workload, s.sizes) for s in entry.served])
    key = digest_of(entry.kernel, entry.signature, entry.device, entry.template, sizes)
    return f"{re.sub(r'^[^A-Za-z0-9]+', '', entry.problem)[:100] or 'kernel'}-{key[:8]}"


def _normalize_whitespace(text: str) -> str:
    lines = (_IDLE.sub("", " ".join(line.split())) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _format_argument(argument: Argument) -> str:
    shape = f"[{', '.join(e.text for e in argument.shape)}]" if argument.shape else ""
    return f"{argument.name}: {argument.role} {argument.type}{shape}"


def rows_of(problem: Problem, state: State, candidate: str) -> list[Row]:
    """Every configuration that was tried, as that of a template without a name, and its log speed-up."""
    tried = sound_scores(problem, state)
    return [(_drop_candidate(t.config), t.score) for t in tried if t.config.candidate == candidate]


def best_of(problem: Problem, state: State, candidate: str) -> tuple[Config, ...]:
    """What was delivered, the general one first; the best of each workload; the next in general."""
    tried = [t for t in sound_scores(problem, state) if t.config.candidate == candidate]
    delivered = verified_choice(problem, state).configs() if state.stopped else ()
    general = _rank_configs(tried, [t.score for t in tried])
    found = [config for config in delivered if config.candidate == candidate]
    found += general[:1]
    for place in range(len(problem.workloads)):
        found += _rank_configs(tried, [score_at(t, place) for t in tried])[:1]
    found += general[1:RUNNERS_UP]
    return tuple(dict.fromkeys(_drop_candidate(config) for config in found))[:FIRST]


def thin_rows(rows: Sequence[Row], most: int = ROWS) -> Iterator[Row]:
    if len(rows) <= most:
        yield from rows
        return
    ranked = sorted(rows, key=lambda row: (row[1] is None, -(row[1] or 0.0)))
    yield from ranked[: most // 2]
    rest = ranked[most // 2 :]
    yield from rest[:: -(-len(rest) // (most // 2))]


def _rank_configs(tried: Sequence[Tried], scores: Sequence[float | None]) -> list[Config]:
    right = [(score, t.config) for t, score in zip(tried, scores, strict=True) if score is not None]
    return [config for _, config in sorted(right, key=lambda pair: -pair[0])]


def _drop_candidate(config: Config) -> Config:
    return replace(config, candidate="")


@dataclass(frozen=True)
class WorkloadTime:
    workload: str
    status: str  # ok, or how it failed
    seconds: float | None = None  # the median
    original: float | None = None  # the original's, taken in alternation or before anything was tried


@dataclass(frozen=True)
class TimedConfig:
    """What a run found of one configuration."""

    template: str  # digest of its text
    config: Config
    score: float | None  # log speed-up over all workloads; None: it failed somewhere
    at: tuple[WorkloadTime, ...]

    @property
    def key(self) -> str:
        """Of a run there is one such."""
        return digest_of(self.template, repr(self.config.items))[:32]


@dataclass(frozen=True)
class Provenance:
    date: str
    who: str
    host: str
    origin: str  # the run's folder
    certificate: str  # SHA-256; empty: there is none


@dataclass(frozen=True)
class RunRecord:
    """A run, by what its timings are found: what it was of, where, and who says so."""

    id: str
    problem: str  # the operator
    entry: str
    kernel: str  # digest of its text
    signature: str
    language: str
    workloads: tuple[tuple[str, tuple[tuple[str, int], ...], float], ...]  # name, sizes, weight
    device: str
    device_key: str
    architecture: str
    driver: str
    backend: str
    compiler: str
    versions: tuple[tuple[str, str], ...]
    settings: str  # JSON
    strategy: str
    models: str
    finished: bool
    provenance: Provenance

    @property
    def about(self) -> str:
        return f"{self.provenance.origin} of {self.provenance.who}@{self.provenance.host}"


@dataclass(frozen=True)
class LibraryQuery:
    """What is looked for; empty: anything."""

    operator: str = ""
    kernel: str = ""  # digest of the code
    device: str = ""


def run_id(state: State) -> str:
    """The same wherever the run's folder is: no other run began with the same event, which has a number that
    was drawn for it."""
    assert state.started is not None
    return digest_of(encode_json(state.started))[:32]


def record_of(problem: Problem, state: State, provenance: Provenance) -> RunRecord:
    device, settings, started = state.device, state.settings, state.started
    assert started is not None
    return RunRecord(
        id=run_id(state),
        problem=problem.name,
        entry=problem.kernel.entry,
        kernel=kernel_digest(problem),
        signature=signature_of(problem),
        language=problem.kernel.language,
        workloads=tuple((w.name, w.sizes, w.weight) for w in problem.workloads),
        device=device.name,
        device_key=device.key,
        architecture=device.architecture,
        driver=device.driver,
        backend=started.backend,
        compiler=state.compiler,
        versions=started.versions,
        settings=redact_secrets(encode_json(settings).decode()),
        strategy=settings.strategy,
        models=redact_secrets(settings.models),
        finished=state.stopped is not None,
        provenance=provenance,
    )


def timings_of(
    problem: Problem, state: State, templates: Templates
) -> tuple[list[TimedConfig], dict[str, str]]:
    """Of every configuration that was tried the last word on each workload; and the templates' texts by
    digest. What has no parameters tells no search anything."""
    yardstick = SpeedupScale(state)
    measured: dict[Config, dict[str, WorkloadTime]] = {}
    for outcome in state.outcomes:
        if outcome.trial.config is None:
            continue
        times = measured.setdefault(outcome.trial.config, {})
        for r in outcome.results:
            before = r.timing.paired if r.timing else ()
            around = (r.workload, outcome.trial.id, outcome.device)  # on that device
            original = median(before) if before else yardstick.seconds(*around)
            seconds = r.timing.seconds if r.timing else None
            times[r.workload] = WorkloadTime(r.workload, str(r.status), seconds, original)
    digests: dict[str, str] = {}
    texts: dict[str, str] = {}
    found: list[TimedConfig] = []
    for tried in sound_scores(problem, state):
        candidate = tried.config.candidate
        if not tried.config.items:
            continue
        if candidate not in digests:
            text = templates.of(state.candidate(candidate)).source
            digests[candidate] = digest_of(text)
            texts[digests[candidate]] = text
        at = tuple(measured.get(tried.config, {}).values())
        found.append(TimedConfig(digests[candidate], _drop_candidate(tried.config), tried.score, at))
    return found, texts


def primed_from(
    run: RunRecord, timings: Sequence[TimedConfig], problem: Problem, template: Template | None, device: str
) -> Primed | None:
    """What a stored run tells the search of a template, or of those still to be written. Where it was of the
    very code on such a device, its best are tried first. None: nothing."""
    by_template: dict[str, list[Row]] = {}
    for one in timings:
        by_template.setdefault(one.template, []).append((one.config, one.score))
    fitting = [rows if template is None else rows_for(template, rows) for rows in by_template.values()]
    known = [rows for rows in fitting if any(score is not None for _, score in rows)]
    if not known:
        return None
    rows = max(known, key=lambda of_template: max(score for _, score in of_template if score is not None))
    is_same = run.kernel == kernel_digest(problem) and run.device == device
    best = sorted(((score, c) for c, score in rows if score is not None), key=lambda pair: -pair[0])
    first = tuple(_drop_candidate(config) for _, config in best[:FIRST]) if is_same else ()
    return Primed(f"{run.about}, in the library, on {run.device}", tuple(thin_rows(rows)), first)


# -- What earlier runs in the user's house have shown, for whoever plans: what won, on kernels like this
# one, and what was tried on this device and did not pay.
#
# Kernels are alike where their names share a word that says what they compute. What is told is data: names,
# numbers, and words that a planner once wrote, each on a line of its own and short.


LESSONS_FORMAT = 1
MAX = 4  # lines of each kind
KEPT = 12  # lessons of a kernel on a device: the last
FAR = 2  # a kernel of another kind
LONGEST = 220  # characters of a line's words
_WORD = re.compile(r"[a-z]+|[A-Z][a-z]+|[A-Z]+(?![a-z])")
# Words that kernels of all kinds have in their names.
_COMMON = frozenset(
    (
        *("kernel", "cuda", "opencl", "hip", "gpu", "fused", "forward", "backward", "fwd", "bwd", "vec"),
        *("vector", "half", "float", "bfloat", "int", "char", "per", "token", "group", "row", "rows"),
        *("block", "warp", "thread", "launch", "impl", "device", "global", "the", "and", "with", "for"),
        *("new", "old", "fast", "naive", "add", "mul", "states", "state", "batch", "test", "problem"),
    )
)


@dataclass(frozen=True)
class Lesson:
    """One round that was tried and did not pay."""

    what: str  # moves, or words
    why: str


@dataclass(frozen=True)
class KernelLessons:
    """Of one kernel on one device."""

    format: int
    problem: str
    kernel: str  # digest of its text
    words: tuple[str, ...]  # of its names
    device: str
    date: str
    lessons: tuple[Lesson, ...]

    @property
    def name(self) -> str:
        """Names a file."""
        return digest_of(self.kernel, self.device)[:32]


def operator_words(problem: Problem) -> tuple[str, ...]:
    """What the names of a problem and its entry say of the operator."""
    return _distinct_words(f"{problem.name} {problem.kernel.entry.partition('<')[0]}")


def _distinct_words(text: str) -> tuple[str, ...]:
    found = (word.lower() for word in _WORD.findall(text))
    return tuple(dict.fromkeys(word for word in found if len(word) > 2 and word not in _COMMON))


def lessons_of(problem: Problem, state: State, date: str) -> KernelLessons | None:
    """None where nothing failed."""
    # A plain kernel is not there to be fast.
    tried = [one for one in round_reports(problem, state) if not one.kept and one.drafts and not one.plain]
    found = [_round_lesson(one) for one in tried]
    if state.started is None or not found:
        return None
    words, lessons = operator_words(problem), tuple(found[-KEPT:])
    kernel, device = kernel_digest(problem), state.device.name
    return KernelLessons(LESSONS_FORMAT, problem.name, kernel, words, device, date, lessons)


def _round_lesson(one: RoundReport) -> Lesson:
    what = f"moves {', '.join(one.moves)}" if one.moves else one.what or one.reason
    return Lesson(_shorten_line(what), _shorten_line(one.verdict))


def merge_lessons(new: KernelLessons, old: KernelLessons) -> KernelLessons:
    """The last of both, each once."""
    every = dict.fromkeys((*old.lessons, *new.lessons))
    return replace(new, format=LESSONS_FORMAT, lessons=tuple(every)[-KEPT:])


def format_library_notes(
    problem: Problem, device: str, entries: Sequence[LibraryEntry], lessons: Iterable[KernelLessons]
) -> str:
    """A few lines, the nearest first: this kernel before others, this device before others; empty where there
    is nothing to tell."""
    named, digest = set(operator_words(problem)), kernel_digest(problem)

    def alike(kernel: str, words: Iterable[str]) -> int:
        return 0 if kernel == digest else 1 if named & set(words) else FAR

    won = [(alike(entry.kernel, _distinct_words(entry.problem)), entry) for entry in entries]
    won.sort(key=lambda pair: (pair[0], pair[1].device != device, -pair[1].speedup, pair[1].name))
    failed = [(alike(one.kernel, one.words), one) for one in lessons if one.device == device]
    failed.sort(key=lambda pair: (pair[0], pair[1].problem, pair[1].kernel))
    lines = [_win_line(near, entry) for near, entry in won if near < FAR][:MAX]
    lines += [
        f"- did not pay on this device, {_kernel_relation(near, one.problem)}: {lesson.what}: {lesson.why}"
        for near, one in failed
        if near < FAR
        for lesson in reversed(one.lessons)
    ][:MAX]
    return "\n".join(lines)


def _win_line(near: int, entry: LibraryEntry) -> str:
    by = f"moves {', '.join(entry.moves)}" if entry.moves else "written by a model" if entry.author else ""
    best = f"at its best {entry.best[0]}" if entry.best else ""
    at = f"served {', '.join(one.workload for one in entry.served)}" if entry.served else ""
    more = "; ".join(filter(None, (by, best, at)))
    won = f"- won, {_kernel_relation(near, entry.problem)}: {entry.about}"
    return f"{won}: {_shorten_line(more)}" if more else won


def _kernel_relation(near: int, problem: str) -> str:
    return "this kernel" if near == 0 else f"a kernel like it ({_shorten_line(problem)})"


def _shorten_line(text: str) -> str:
    """On one line."""
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 2]} …"


class Library(Protocol):
    """What outlives runs: templates that won, what was measured, what did not pay. None of it is believed: it
    says what to try first, and everything is checked and timed again. Writing the same twice changes nothing,
    whoever else writes."""

    where: str  # as people are told

    @property
    def is_shared(self) -> bool:
        """Whether others may have written to it."""
        ...

    def entries(self, note: Callable[[str], None], query: LibraryQuery) -> list[LibraryEntry]:
        """Templates that won, by name; of those that cannot be read it is said why."""
        ...

    def get(self, name: str) -> LibraryEntry: ...
    def __contains__(self, name: str) -> bool: ...
    def add(self, entry: LibraryEntry) -> None:
        """Together with what is known already."""
        ...

    def remove(self, name: str) -> None: ...
    def lessons(self, note: Callable[[str], None]) -> list[KernelLessons]: ...
    def learn(self, new: KernelLessons) -> None: ...
    def runs(self, note: Callable[[str], None], query: LibraryQuery) -> list[RunRecord]:
        """The newest first."""
        ...

    def timings(self, run: str) -> list[TimedConfig]: ...
    def timing_counts(self) -> Mapping[str, int]: ...
    def count(self) -> int:
        """Templates that won."""
        ...

    def record(self, run: RunRecord, timings: Sequence[TimedConfig], texts: Mapping[str, str]) -> int:
        """How many of the timings are new there."""
        ...

    def prune(self, before: str) -> int:
        """Take out the timings of runs that are older than this day; how many runs that were."""
        ...

    def close(self) -> None: ...


# -- What others wrote into a library that is shared, made harmless: short words on one line, numbers that
# can be, templates that are vetted as a model's text is. Whether it is true is found out here, by
# measuring.


LONGEST_WORD = 200  # characters of a name or a device in what others wrote
FARTHEST = 50.0  # log speed-up: nothing is faster or slower by more
MAX_PARAMETERS, LARGEST_VALUE = 64, 1 << 62
_PARAMETER = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)


def foreign_entry(entry: LibraryEntry) -> LibraryEntry:
    """As it may be used here: vetted as a model's text is, whoever it says has written it; words short and on
    one line, numbers that can be. Malformed: it is no entry of any run."""
    numbers = [
        entry.speedup,
        *(entry.interval or ()),
        *(n for s in entry.served for n in (s.speedup, *s.interval, s.weight)),
    ]
    if not all(math.isfinite(number) and number >= 0 for number in numbers) or not entry.speedup:
        raise Malformed(f"not a library entry: speed-ups of {entry.speedup}")
    configs = [*entry.best, *(s.config for s in entry.served)]
    if not NAME.fullmatch(entry.name) or not all(map(_is_sound, configs)):
        raise Malformed("not a library entry: names or values that no template has")
    return replace(
        entry,
        **_clean_words(entry, "problem language device driver date compiler origin run certificate"),
        signature=flatten_text(entry.signature),
        path=entry.path if NAME.fullmatch(entry.path) else "template",
        moves=tuple(move for move in entry.moves if NAME.fullmatch(move))[:MAX_PARAMETERS],
        author=_clean_word(entry.author) or UNKNOWN_AUTHOR,
        served=tuple(
            replace(s, **_clean_words(s, "workload"), sizes=tuple((_clean_word(n), v) for n, v in s.sizes))
            for s in entry.served[:STORED_ROWS]
        ),
        best=entry.best[:FIRST],
        rows=tuple(row for row in entry.rows if _is_sound(row[0]) and _is_score(row[1]))[:ROWS],
    )


def foreign_record(run: RunRecord) -> RunRecord:
    said = run.provenance
    said = replace(said, **_clean_words(said, "date who host origin certificate"))
    names = "id problem entry kernel language device driver compiler architecture backend device_key"
    return replace(run, provenance=said, **_clean_words(run, f"{names} strategy models"))


def foreign_timings(timings: Sequence[TimedConfig]) -> list[TimedConfig]:
    """Without those that nobody can have measured."""
    return [t for t in timings if _is_sound(t.config) and _is_score(t.score)]


def _is_sound(config: Config) -> bool:
    named = all(_PARAMETER.fullmatch(name) and abs(value) <= LARGEST_VALUE for name, value in config.items)
    return named and not config.candidate and len(config.items) <= MAX_PARAMETERS


def _is_score(score: float | None) -> bool:
    return score is None or abs(score) <= FARTHEST  # so that a NaN is none


def _clean_word(text: str) -> str:
    return truncate_text(flatten_text(text), LONGEST_WORD)


def _clean_words(record: object, names: str) -> Mapping[str, Any]:
    """What `replace` puts in place of these texts."""
    return {name: _clean_word(getattr(record, name)) for name in names.split()}


def foreign_lessons(found: KernelLessons) -> KernelLessons:
    told = tuple(Lesson(_clean_word(one.what), _clean_word(one.why)) for one in found.lessons[:STORED_ROWS])
    return replace(found, lessons=told, **_clean_words(found, "problem kernel device date"))
