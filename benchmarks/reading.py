"""Counts how many kernels of a folder the expert reads, vectorises and finds knobs in, and why not.

    python -m benchmarks.reading FOLDER [--jobs N] [--within S] [--out FILE] [--templates DIR] [--build N]
        [NAME…]

FOLDER holds folders of problems (problem.toml and what it names); with NAME only these. Each problem is read
in a process of its own, so that a crash of the reader, or one that takes more than S seconds, is counted like
any other reason. Figures go to FILE (default: none), the expert's templates to DIR. With --build N, N
configurations of each CUDA template are built, its default among them. Nothing is run.

*Read*: the expert knows tasks and steps, and has written a template of its own. *Vectors*: that template has
VEC above 1, or the kernel's accesses are 16 bytes wide already. *Knobs*: its own text has numbers to open.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.alone import run_alone
from tunesmith import backends
from tunesmith.backends.cuda.compile import build_cubin, needs_host_headers
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed
from tunesmith.base.errors import TunesmithError
from tunesmith.expert.author import ExpertAuthor, try_read_kernel
from tunesmith.expert.moves import MOVES, OWN_TEXT
from tunesmith.expert.read.accesses import bytes_at_once
from tunesmith.expert.write.page import declared_parameters
from tunesmith.problem import device as languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant, builds_of, configs_of
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Declined, Refactoring, Written
from tunesmith.session import place as machine
from tunesmith.session.problems import load_problem

ALONE = "--alone"  # by this word a worker knows that it is one
SECONDS = 120.0
_WIDEST = 16  # bytes of one access
_LINE = re.compile(r" \(line \d+\)|\blines? \d+")
_AT_ONCE = re.compile(r"accessed (\d+) bytes at once already")
_NAME = re.compile(r"'[^']*'")


@dataclass(frozen=True)
class ReadingFound:
    """What the expert makes of one kernel."""

    name: str
    read: bool = False
    vectors: str = ""  # "VEC", "wide already", or none
    knobs: tuple[str, ...] = ()
    why: str = ""  # it is not read, or not written
    why_narrow: str = ""  # it is read and has no vectors
    why_no_knobs: str = ""
    moves: tuple[str, ...] = ()
    seconds: float = 0.0
    builds: int = 0  # configurations that were built
    unbuilt: str = ""  # why one of them does not build
    failed: str = ""  # the reader itself: a crash, a hang, or a problem file that is refused

    @property
    def outcome(self) -> str:
        return "failed" if self.failed else "read" if self.read else "beyond"


def names(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/problem.toml"))


# -- in the worker


def examine(place: Path, templates: Path | None, builds: int = 0) -> ReadingFound:
    problem, _ = load_problem(place)
    device, author = _device(problem), ExpertAuthor()
    model = try_read_kernel(problem)
    own = author.write(Refactoring(OWN_TEXT), problem, device)
    opened = () if isinstance(own, Declined) else tuple(name for name, _ in declared_parameters(own.text))
    no_knobs = own.reason.partition("(knobs: ")[2] or own.reason if isinstance(own, Declined) else ""
    if isinstance(model, str):
        return ReadingFound(place.name, knobs=opened, why=model, why_no_knobs=no_knobs)
    written = author.write(Refactoring(tuple(move.name for move in MOVES)), problem, device)
    if isinstance(written, Declined) or any("beyond the expert" in note for note in written.notes):
        said = written.reason if isinstance(written, Declined) else written.notes[0]
        return ReadingFound(place.name, knobs=opened, why=said, why_no_knobs=no_knobs)
    if templates is not None:
        (templates / f"{place.name}{Path(problem.kernel.path).suffix}").write_text(written.text)
    types = {parameter.name: parameter.type for parameter in model.function.parameters}
    widths = [bytes_at_once(one.type, types[one.array]) or 0 for one in model.accesses if one.array in types]
    how, narrow = _vectors(written, max(widths, default=0))
    built, unbuilt = _built(problem, written, device, builds)
    return ReadingFound(
        place.name, True, how, opened, "", narrow, no_knobs, written.moves, builds=built, unbuilt=unbuilt
    )


def _built(problem: Problem, written: Written, device: Device, count: int) -> tuple[int, str]:
    """How many of `count` configurations build, and why the first of the others does not."""
    if not count or problem.kernel.language != "cuda":
        return 0, ""
    try:
        template = parse_template(written.text, path=problem.kernel.path, problem=problem)
        every = configs_of(problem, template, device)
        places = random.Random(1).sample(range(len(every)), min(count, len(every)))
        chosen = list(dict.fromkeys([template.default, *(every[place] for place in places)]))[:count]
    except TunesmithError as error:
        return 0, " ".join(str(error).split())
    for number, config in enumerate(chosen):
        try:
            for made in builds_of(problem, template, config, problem.workloads[:1]):
                _compile(made.variant, device)
        except (TunesmithError, BuildFailed) as error:
            return number, f"{config}: {' '.join(str(error).split())}"
    return len(chosen), ""


def _compile(v: Variant, device: Device) -> None:
    """By NVRTC, or by nvcc where NVRTC lacks something, as a run would."""
    unit = Unit(v.path, v.source, v.language, v.flags, v.entries, v.headers, "nvrtc")
    try:
        build_cubin(unit, device)
    except BuildFailed as error:
        if not needs_host_headers(str(error)):
            raise
        build_cubin(replace(unit, compiler="nvcc"), device)


def _vectors(written: Written, widest: int) -> tuple[str, str]:
    """How wide the template's accesses can be, and else why they are not; `widest`: those of the kernel."""
    if "vector" in written.moves:
        return "VEC", ""
    why = dict(written.refused).get("vector", "")
    at_once = _AT_ONCE.search(why)  # of a structure: its elements are narrower than what is accessed
    widest = max(widest, int(at_once[1]) if at_once else 0)
    return ("wide already", "") if widest >= _WIDEST else ("", why)


def _device(problem: Problem) -> Device:
    assumed = languages.find_language(problem.kernel.language).assumed
    if assumed is not None:
        return assumed
    spec = backends.backend_for(problem.kernel.language, None)
    with machine.temporary_scratch() as scratch:
        return machine.choose_device(machine.find_local_devices(machine.WorkerSite(spec, scratch)), None)


# -- in the one that counts


def examined(place: Path, within: float, templates: Path | None, builds: int) -> ReadingFound:
    """The same in a process of its own; never an exception."""
    words = [ALONE, str(place), *(["--templates", str(templates)] if templates is not None else [])]
    ended = run_alone("benchmarks.reading", [*words, "--build", str(builds)], within, "read")
    if ended.figures is None:
        return ReadingFound(place.name, failed=ended.failed, seconds=ended.seconds)
    own = {name: tuple(ended.figures[name]) for name in ("knobs", "moves")}
    return ReadingFound(**(ended.figures | own | {"seconds": ended.seconds}))


def kind(reason: str) -> str:
    """The reason without what is this kernel's own: names and lines."""
    return " ".join(_NAME.sub("…", _LINE.sub("", reason)).split())[:110]


def table(found: Sequence[ReadingFound]) -> list[str]:
    width = max((len(one.name) for one in found), default=4)
    lines = [f"{'kernel':{width}}  {'':7}  {'vectors':12}  {'knobs':>5}  {'s':>5}  why not"]
    for one in found:
        why = one.failed or one.why or one.why_narrow
        knobs = len(one.knobs) or "-"
        lines.append(
            f"{one.name:{width}}  {one.outcome:7}  {one.vectors or '-':12}  {knobs:>5}  {one.seconds:5.1f}"
            f"  {why}"
        )
    for title, reasons in (
        ("failed", [one.failed for one in found]),
        ("beyond", [one.why for one in found]),
        ("no vectors", [one.why_narrow for one in found]),
        ("no knobs", [one.why_no_knobs for one in found]),
        ("does not build", [one.unbuilt for one in found]),
    ):
        counted = Counter(kind(reason) for reason in reasons if reason)
        lines += [f"\n{title}, by reason:"] if counted else []
        lines += [f"{count:4}  {reason}" for reason, count in counted.most_common()]
    return [*lines, "", summary(found)]


def summary(found: Sequence[ReadingFound]) -> str:
    counts = (
        ("read", sum(one.read for one in found)),
        ("with vectors", sum(bool(one.vectors) for one in found)),
        ("with knobs", sum(bool(one.knobs) for one in found)),
        ("failed", sum(bool(one.failed) for one in found)),
    )
    told = (f"{count} {title} ({100 * count / max(len(found), 1):.0f} %)" for title, count in counts)
    built = sum(one.builds for one in found)
    stuck = sum(bool(one.unbuilt) for one in found)
    more = (
        f"; {built} configurations built, {stuck} templates have one that does not" if built + stuck else ""
    )
    return f"{len(found)} kernels: {', '.join(told)}{more}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.reading")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--within", type=float, default=SECONDS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--templates", type=Path)
    parser.add_argument("--build", type=int, default=0)
    parser.add_argument(ALONE, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.alone:
        try:
            print(json.dumps(asdict(examine(args.folder, args.templates, args.build))))
        except TunesmithError as error:
            sys.exit(" ".join(str(error).split()))
        return 0
    if args.templates is not None:
        args.templates.mkdir(parents=True, exist_ok=True)
    places = [args.folder / name for name in args.names or names(args.folder)]
    with ThreadPoolExecutor(args.jobs) as pool:
        found = list(pool.map(lambda place: examined(place, args.within, args.templates, args.build), places))
    print("\n".join(table(found)))
    if args.out is not None:
        figures = {"kernels": [{**asdict(one), "outcome": one.outcome} for one in found]}
        args.out.write_text(json.dumps({"summary": summary(found), **figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
