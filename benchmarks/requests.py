"""Renders what each role is asked, in every strategy, and counts the tokens of each part.

    python -m benchmarks.requests FOLDER... [--device NAME] [--out DIR] [--prefix]

FOLDER holds problems, at any depth (problem.toml and what it names), or folders of runs (journal.jsonl). Of a
problem each role's first request is rendered, as if the original took three times the least time (OpenCL: a
millisecond) on a device that need not be here. Of a run, those that a planner, an analyst and an author would
get after its last search, with all that it measured. Nothing is built, run or asked. With --out every request
is a file, to be read. With --prefix, of runs in which models were asked: each first request of a turn as it
would be asked now in the same place, and how much of it the request of that role before it begins with, which
is what a cache of prompts can hold.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tunesmith import backends
from tunesmith.agents.mailbox import format_letter
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status, least_seconds
from tunesmith.problem.problem import Problem
from tunesmith.run.budget import STRATEGIES as KINDS
from tunesmith.run.candidates import Templates
from tunesmith.run.events import (
    PER_TOKEN,
    SINGLE,
    Baseline,
    Decided,
    Event,
    NoReply,
    Recorded,
    Request,
    Requested,
    Role,
    Searched,
    Settings,
    Started,
    Unanswered,
    tokens_of,
)
from tunesmith.run.folder import JOURNAL, RunFolder
from tunesmith.run.outcome import Outcome, Result, Timing, Trial
from tunesmith.run.ports import MoveCatalogue
from tunesmith.run.state import State, apply_record, fold_records
from tunesmith.run.talk import Conversation, ModelDialogue
from tunesmith.session import roles as casting
from tunesmith.session.problems import load_problem, state_and_templates

STRATEGIES = ("template", "rewrite", "single")
ROUNDS, EVALS = 3, 120
TIMES_LEAST, UNKNOWN_SECONDS = 3.0, 1e-3
COMPILER = {"cuda": "nvrtc 13.0", "hip": "hipcc 6.0"}
WHAT = "Read and write VEC elements at once, VEC in 1, 2, 4, 8; BLOCK threads, 64 to 512."
INSTRUCTIONS = "instructions"
_HEADING = re.compile(r"## (.+)")
_FENCE = re.compile(r"(`{3,})")
_OWN = re.compile(r" \(.*|(?<=Diagnosis) of .*|(?<=Round) \d+|(?<=Its header) .*|\b\d+\b,? ?")


class NobodyAnswers:
    """A model that is only asked."""

    name = "mailbox"

    def reply(self, request: Request) -> NoReply:
        return NoReply(f"nobody answers {request.name}", lasts=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.requests", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument(
        "--device", default="H200", help="of CUDA problems (default: H200); HIP: MI300X, OpenCL: what is here"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--prefix", action="store_true", help="what consecutive requests of a role share")
    given = parser.parse_args(arguments)
    if given.prefix:
        print("\n".join(prefix_table(given.folders)))
        return
    found: dict[str, list[Request]] = {}
    sources = 0
    for folder in given.folders:
        for name, requests in every(folder, given.device):
            sources += 1
            for kind, request in requests:
                found.setdefault(kind, []).append(request)
                if given.out is not None:
                    given.out.mkdir(parents=True, exist_ok=True)
                    file = given.out / f"{name}-{kind.replace(' ', '-')}.md"
                    file.write_text(format_letter(request, "reply.md"), encoding="utf-8")
    print(f"{sources} problems and runs; tokens by length, means over the requests of a kind\n")
    print("\n".join(table(found)))


def every(folder: Path, device: str) -> Iterator[tuple[str, list[tuple[str, Request]]]]:
    """The name of a problem or a run, and its requests with what they are called."""
    for file in sorted(folder.rglob("problem.toml")):
        problem = load_problem(file).definition
        own = device_for(problem.kernel.language, device)
        moves = casting.catalogue_of(problem, own)
        yield file.parent.name, [one for s in STRATEGIES for one in of_problem(problem, s, own, moves)]
    for file in sorted(folder.rglob(JOURNAL)):
        yield file.parent.name, list(of_run(file.parent))


def of_problem(
    problem: Problem, strategy: str, device: Device, moves: MoveCatalogue
) -> Iterator[tuple[str, Request]]:
    """The first request of each role."""
    language = problem.kernel.language
    settings = Settings(models="mailbox", rounds=ROUNDS, evals=EVALS, strategy=KINDS[strategy].name)
    compiler = COMPILER.get(language, "")
    kernel = backends.backend_for(language, None).partition(":")[0]
    started = Started(problem.name, (), "", kernel, device, settings, (), compiler)
    events: list[Event] = [started, _made_up(problem, device)]
    yield from _asked(problem, Templates(problem, device, None, _NoTexts()), events, moves, strategy)


def of_run(folder: Path) -> Iterator[tuple[str, Request]]:
    """What would be asked after the last search of a run of the expert's."""
    own = RunFolder.open(folder)
    _, templates = state_and_templates(own)
    records = [r.event for r in own.journal().read()]
    last = max((n for n, e in enumerate(records) if isinstance(e, Searched)), default=len(records) - 1)
    started = records[0]
    assert isinstance(started, Started), "a journal begins so"
    settings = replace(started.settings, models="mailbox", rounds=99, evals=None)
    events = [replace(started, settings=settings), *records[1 : last + 1]]
    moves = casting.catalogue_of(templates.problem, started.device)
    asked = _asked(templates.problem, templates, events, moves)
    yield from ((f"run {kind}", request) for kind, request in asked)


def _asked(
    problem: Problem,
    templates: Templates,
    events: Sequence[Event],
    moves: MoveCatalogue,
    strategy: str = "template",
) -> Iterator[tuple[str, Request]]:
    state, plan = _folded(events), Decided("refactor", "loads of 2 bytes are narrow", what=WHAT)
    talk = _talking(problem, templates, strategy, moves)
    if talk.tester is not None:
        yield _called(strategy, _request(talk.cases(state)))
    if strategy != "single":
        for _ in range(2):  # the analyst first
            asked = talk.decided(state)
            if not isinstance(asked, Requested):
                break
            yield _called(strategy, asked.request)
            silent = NobodyAnswers().reply(asked.request).reason
            events = [*events, asked, Unanswered(asked.request.number, silent, True, 1, True)]
            state = _folded(events)
    found = talk.next_event(_folded([*events, plan]))
    if isinstance(found, Requested):
        yield _called(strategy, found.request)


def _request(found: object) -> Request:
    assert isinstance(found, Requested), f"nothing is asked: {found}"
    return found.request


def _called(strategy: str, request: Request) -> tuple[str, Request]:
    return (f"{request.role}" if strategy == request.role else f"{request.role} {strategy}"), request


def _talking(problem: Problem, templates: Templates, strategy: str, moves: MoveCatalogue) -> ModelDialogue:
    prompts = casting.prompts_for("mailbox", "", strategy)
    roles: tuple[Role, ...] = tuple(prompts)
    conversation = Conversation(dict.fromkeys(roles, NobodyAnswers()))
    expert = casting.planner_and_author(problem, templates) if strategy == "template" else None
    about = (problem, templates, conversation, prompts, lambda _kernel: moves, strategy, expert)
    return casting.RoleFactory(*about).talking()


def device_for(language: str, wanted: str) -> Device:
    """`wanted` is a GPU for CUDA; kernels in another language have the usual device of theirs."""
    spec = backends.backend_for(language, None)
    found = backends.absent_device(spec, wanted if language == "cuda" else None)
    if found is not None:
        return found
    from tunesmith.session import place as machine

    with machine.temporary_scratch() as scratch:
        return machine.pick_device(machine.list_devices(machine.WorkerSite(spec, scratch)), None)


def _made_up(problem: Problem, device: Device) -> Baseline:
    results = []
    for w in problem.workloads:
        seconds = TIMES_LEAST * least_seconds(problem, w.as_dict(), device.limits)
        seconds = UNKNOWN_SECONDS if device.is_host or not seconds else seconds
        results.append(Result(w.name, Status.OK, timing=Timing((seconds,))))
    names = tuple(w.name for w in problem.workloads)
    return Baseline(Outcome(Trial(-1, None, names, "long", "sentinel"), tuple(results)), "reference")


def _folded(events: Sequence[Event]) -> State:
    return fold_records([Recorded(number, float(number), event) for number, event in enumerate(events)])


class _NoTexts:
    def put(self, text: str) -> str:
        raise AssertionError(f"nothing is written: {text[:40]}")

    def get(self, digest: str) -> str:
        raise AssertionError(f"nothing is read: {digest}")


# -- what caches of prompts can hold ------------------------------------------------------------------------


def asked_again(folder: Path) -> Iterator[Request]:
    """The first request of each turn of a run, as it would be asked now in the same place."""
    own = RunFolder.open(folder)
    recorded, templates = state_and_templates(own)
    problem, strategy = templates.problem, recorded.settings.strategy
    roles = {e.request.role for e in recorded.dialogue}
    moves = casting.catalogue_of(problem, recorded.device)
    prompts = casting.prompts_for("mailbox", "", strategy)
    conversation = Conversation({role: NobodyAnswers() for role in prompts if role in roles})
    expert = casting.planner_and_author(problem, templates) if strategy == "template" else None
    about = (problem, templates, conversation, prompts, lambda _kernel: moves, strategy, expert)
    talk = casting.RoleFactory(*about).talking()
    state = State()
    for record in own.journal().read():
        if isinstance(record.event, Requested):
            role = record.event.request.role
            # One conversation goes on from what it was asked then: it is its own prefix.
            if role != SINGLE and not state.this_turn(role):
                found = _asked_now(talk, state, role)
                if found is not None and found.role == role:
                    yield found
        state = apply_record(state, record)


def _asked_now(talk: ModelDialogue, state: State, role: Role) -> Request | None:
    if role == "tester":
        found: object = talk.cases(state)
    else:
        found = talk.next_event(state) if state.under_way is not None else talk.decided(state)
    return found.request if isinstance(found, Requested) else None


def prefix_table(folders: Sequence[Path]) -> list[str]:
    """By strategy and role: pairs of requests, and in the mean what the second begins with of the first."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    for folder in folders:
        for file in sorted(folder.rglob(JOURNAL)):
            last: dict[tuple[str, int], str] = {}
            state, _ = state_and_templates(RunFolder.open(file.parent))
            for request in asked_again(file.parent) if state.dialogue else ():
                text = "\n\n".join(message.text for message in request.messages)
                place = (request.role, request.branch)
                if place in last:
                    kind = f"{request.role}, `{state.settings.strategy}`"
                    pairs.setdefault(kind, []).append((_shared(last[place], text), len(text)))
                last[place] = text
    lines = [
        "| request | pairs | characters shared | of | tokens shared | share |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind, own in sorted(pairs.items()):
        shared, whole = (sum(one[at] for one in own) / len(own) for at in (0, 1))
        tokens = f"{shared / PER_TOKEN:.0f}"
        lines.append(
            f"| {kind} | {len(own)} | {shared:.0f} | {whole:.0f} | {tokens} | {shared / whole:.0%} |"
        )
    return lines


def _shared(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


# -- counting -----------------------------------------------------------------------------------------------


def parts_of(request: Request) -> dict[str, int]:
    """Tokens by heading; of what stands before the first one as the instructions'."""
    found: dict[str, int] = {}
    for message in request.messages:
        heading, fence = INSTRUCTIONS, ""
        lines: list[str] = []
        for line in [*message.text.splitlines(), "## "]:
            fenced = _FENCE.match(line)
            if fenced and not fence:
                fence = fenced[1]
            elif fenced and line.strip() == fence:
                fence = ""
            begins = None if fence else _HEADING.fullmatch(line)
            if begins or line == "## ":
                if any(text.strip() for text in lines):
                    found[heading] = found.get(heading, 0) + tokens_of("\n".join(lines))
                heading, lines = (_OWN.sub("", begins[1]).strip() if begins else ""), []
            lines.append(line)
    return found


def table(found: Mapping[str, Sequence[Request]]) -> list[str]:
    """Parts down, kinds of requests across, the sum last."""
    means: dict[str, dict[str, float]] = {}
    for kind, requests in found.items():
        own: dict[str, float] = {}
        for request in requests:
            for part, tokens in parts_of(request).items():
                own[part] = own.get(part, 0.0) + tokens / len(requests)
        means[kind] = own
    rows = list(dict.fromkeys(part for own in means.values() for part in own))
    lines = [f"| part | {' | '.join(means)} |", f"|---|{'---:|' * len(means)}"]
    for row in rows:
        shown = (f"{own[row]:.0f}" if row in own else "" for own in means.values())
        lines.append(f"| {row} | {' | '.join(shown)} |")
    sums = (f"**{sum(own.values()):.0f}**" for own in means.values())
    return [*lines, f"| **all** | {' | '.join(sums)} |"]


if __name__ == "__main__":
    main()
