"""What roles are told of the task: the kernel, the problem with its floors, the device, how a source is
built, what is tested, the moves.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tunesmith.agents.prompting import PromptPart, fence_with_backticks, shorten_middle
from tunesmith.base.text import format_count
from tunesmith.problem import device as languages
from tunesmith.problem.cases import full_cases
from tunesmith.problem.device import LARGEST_CLUSTER, Device, Resources
from tunesmith.problem.plan import necessary_traffic
from tunesmith.problem.problem import Argument, Launch, Problem, Workload
from tunesmith.problem.template import original_variant
from tunesmith.problem.vetting.device_words import CUDA, HIP
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run.budget import (
    budget_uses,
    candidate_noun,
    evals_left,
    is_concrete,
    next_share,
    rounds_begun,
)
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Profiled
from tunesmith.run.figures import best_so_far, candidate_speedups
from tunesmith.run.ports import MoveCatalogue, MoveOffer
from tunesmith.run.prior import best_config, diagnoses_in_view, in_view
from tunesmith.run.race import sound_scores
from tunesmith.run.rounds import (
    RoundReport,
    leading_candidate,
    moves_on,
    refusals_by_candidate,
    refused_words,
    round_reports,
    score_at,
    speedup_from_log,
)
from tunesmith.run.scores import SpeedupScale
from tunesmith.run.state import Candidate, IndexedLog, State
from tunesmith.space.configset import Config
from tunesmith.space.expr import Undefined

OWN_COMPILER = "the driver's own"
LISTED = 24  # sizes that are tested anyway
BEATEN = 0.97  # of a floor: what is faster shows that it is none
MEASURED = "as measured here, right to about 10 %"
DATA_SHEET = "memory bandwidth by the data sheet, of which copies reach 80 to 90 %"


def kernel_parts(problem: Problem) -> list[PromptPart]:
    """The source, which is never cut, and the user's own headers."""
    kernel = problem.kernel
    return [
        PromptPart(f"The kernel as it is ({kernel.path})", fence_with_backticks(kernel.text)),
        *(
            PromptPart(f"Its header {name}", fence_with_backticks(text), 2, "left out: no room")
            for name, text in kernel.headers
        ),
    ]


# -- the problem --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeastTime:
    """What no kernel should take less than at a workload, and how that is known."""

    seconds: float
    why: str


def least_times(problem: Problem, state: State) -> dict[str, LeastTime]:
    """One for each workload, by the best that is known: what was measured of the device, else its data sheet;
    where a kernel that is right was faster, that kernel."""
    measured = {p.workload: p.diagnosis for p in state.profiled if p.diagnosis and p.diagnosis.floor}
    rate, found = memory_rate(state.device), {}
    for w in problem.workloads:
        moved, known = necessary_traffic(problem, w.as_dict()), measured.get(w.name)
        least = None
        if known is not None and known.floor is not None:
            least = LeastTime(known.floor, f"{known.ceiling} {MEASURED}")
        elif rate and moved:
            least = LeastTime(moved / rate, DATA_SHEET)
        fastest = _best_seconds(state, w.name)
        if least is not None and fastest is not None and fastest < BEATEN * least.seconds:
            above = (
                f"a kernel that is right takes no more; {least.why} would be "
                f"{_format_microseconds(least.seconds)}"
            )
            least = LeastTime(fastest, above)
        if least is not None:
            found[w.name] = least
    return found


def floors_first(problem: Problem, state: State) -> dict[str, LeastTime]:
    """As they were known before anything was written: by the first look at the original, or the data sheet.
    What is told so stays the same in a run."""
    looked: dict[str, Profiled] = {}
    for one in state.profiled:
        if one.config is None and one.diagnosis is not None and one.diagnosis.floor:
            looked.setdefault(one.workload, one)
    return least_times(problem, replace(state, profiled=tuple(looked.values()), outcomes=IndexedLog()))


def floors_since(problem: Problem, state: State) -> list[str]:
    """Where there is another by now, and why: that is then the one floor of the workload."""
    first = floors_first(problem, state)
    return [
        f"- {name}: its floor is now {_format_microseconds(one.seconds)}: {one.why}"
        for name, one in least_times(problem, state).items()
        if name in first and _format_microseconds(one.seconds) != _format_microseconds(first[name].seconds)
    ]


def times_least(least: LeastTime | None, seconds: float) -> str:
    """How far a time is from its floor, for the end of a line."""
    if least is None or not least.seconds:
        return ""
    share = seconds / least.seconds
    return f", {f'{share:.0f}' if share >= 100 else f'{share:.3g}'} × its floor"


def memory_rate(device: Device) -> float | None:
    """Bytes in a second that the memory's pins can move. A CPU's bound is that of its innermost caches, which
    says nothing of how near a kernel is to what it could be."""
    return None if device.is_host else device.limits.pin_bandwidth


def _best_seconds(state: State, workload: str) -> float | None:
    baseline = () if state.baseline is None else (state.baseline.outcome,)
    timed = (o.result(workload) for o in (*state.outcomes, *baseline))
    return min((r.timing.seconds for r in timed if r is not None and r.ok and r.timing), default=None)


def problem_part(problem: Problem, state: State) -> PromptPart:
    kernel = problem.kernel
    about = languages.find_language(kernel.language).about
    arrays, scalars = (
        [a for a in problem.arguments if (a.role == "scalar") is scalar] for scalar in (False, True)
    )
    lines = [
        f"- language {', '.join(filter(None, [kernel.language, about]))}; entry `{kernel.entry}`",
        *(_argument_prompt_line(a) for a in arrays),
        *([f"- scalars: {'; '.join(map(_scalar_text, scalars))}"] if scalars else []),
        *(_launch_prompt_line(one, problem) for one in problem.launches),
        f"- sizes: {'; '.join(f'`{rule.name}` {rule.describe()}' for rule in problem.contract.sizes)}",
        *(f"- callers promise: {c.expr.text}" for c in problem.contract.require),
        *_workload_lines(problem, state),
        *_accuracy_rules(problem),
    ]
    return PromptPart("The problem", "\n".join(lines))


def _argument_prompt_line(a: Argument) -> str:
    parts = [
        f"strides [{', '.join(e.text for e in a.strides)}]" if a.strides else "",
        str(a.role),
        f"aligned to {a.align} bytes" if a.align else "aligned to its elements" if a.is_array else "",
        f"shares memory with {a.alias}" if a.alias else "",
        f"values: {a.values}" if a.values else "",
        f"values from {a.range[0]:g} to {a.range[1]:g}" if a.range else "",
        f"filled with {a.init:g} before the call" if a.init is not None else "",
        f"each element is {a.formula.text}, i its index" if a.formula is not None else "",
        f"traffic {a.traffic.text} bytes" if a.traffic is not None else "",
    ]
    shape = f"* [{', '.join(e.text for e in a.shape)}]" if a.is_array else ""
    return f"- argument `{a.name}`: {a.type}{shape}, {', '.join(filter(None, parts))}"


def _scalar_text(a: Argument) -> str:
    return f"`{a.name}` {a.type} = {getattr(a.value, 'text', a.value)}"


def _launch_prompt_line(one: Launch, problem: Problem) -> str:
    grid, block = (", ".join(e.text for e in axis) for axis in (one.grid, one.block))
    more = f", shared {one.shared.text} bytes" if one.shared else ""
    more += ", cooperative" if one.cooperative else ""
    more += f", only where {one.when.text}" if one.when is not None else ""
    passed, order = ", ".join(one.args), [a.name for a in problem.arguments]
    passed = ", ".join(one.args[:2]) + ", ..." if list(one.args) == order and len(order) > 2 else passed
    return f"- launched today: `{one.entry}`, grid ({grid}), block ({block}){more}; arguments ({passed})"


def _workload_lines(problem: Problem, state: State) -> list[str]:
    """Sizes in the order of their names, which are said once; so is what holds for all."""
    least, device = floors_first(problem, state), state.device
    caches = {w.cache for w in problem.workloads}
    weighted = len({w.weight for w in problem.workloads}) > 1
    about = "no cache has seen the data" if caches == {"cold"} else "caches may hold the data"
    about = about if len(caches) == 1 else "cold: no cache has seen the data; warm: they may hold it"
    lines = [f"- must be fast at these ({', '.join(problem.size_names)}); {about}:"]
    for w in problem.workloads:
        more = [
            f"weight {w.weight:g}" if weighted else "",
            w.cache if len(caches) > 1 else "",
            f"{necessary_traffic(problem, w.as_dict())} bytes must move",
            f"floor {_format_microseconds(least[w.name].seconds)}" if w.name in least else "",
            _current_launch_shape(problem, device, w),
        ]
        values = ", ".join(str(value) for _, value in w.sizes)
        lines.append(f"  - `{w.name}` ({values}): {', '.join(filter(None, more))}")
    whys: dict[str, list[str]] = {}
    for name, one in least.items():
        whys.setdefault(one.why, []).append(name)
    for why, names in whys.items():
        where = "" if len(names) == len(problem.workloads) else f" at {', '.join(names)}"
        lines.append(f"  - floor{where}: {why}")
    return lines


def _format_microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs"


def _current_launch_shape(problem: Problem, device: Device, w: Workload) -> str:
    """How many blocks and threads there are today, where that is known without a build."""
    names, launches = {**w.as_dict(), **device.limits.names()}, []
    for launch in problem.launches:
        try:
            blocks, threads = (prod(e.evaluate(names) for e in axis) for axis in (launch.grid, launch.block))
        except Undefined:
            return ""
        launches.append(f"{blocks} blocks of {threads} threads")
    return f"today {', then '.join(launches)}"


def _accuracy_rules(problem: Problem) -> list[str]:
    accuracy = problem.accuracy
    rules = [f"- {problem.own_rules}"] if problem.own_rules else []
    if accuracy.reference is None:
        tolerance = f"within rtol {accuracy.rtol:g}, atol {accuracy.atol:g}"
        return [f"- results must match the original's, {tolerance}", *rules]
    lines = [
        f"- results are compared with a float64 reference: within rtol {accuracy.rtol:g}, atol "
        f"{accuracy.atol:g}; the largest error at most twice the original's plus one unit in the last "
        "place, their root mean square at most 1.25 times plus a quarter of a unit; NaN and infinity where "
        "the reference has them",
        *rules,
    ]
    if accuracy.deterministic:
        lines.append("- two runs on the same inputs must agree bit for bit: no floating-point atomics")
    return lines


# -- the device, and how a source is built for it -----------------------------------------------------------


def device_part(device: Device) -> PromptPart:
    """Limits under the names that a template's expressions may use, with their units."""
    limits = device.limits
    lines = [
        f"{device.name} ({device.kind}, {device.platform})",
        f"- device.sms = {limits.sms} {'cores' if device.is_host else 'multiprocessors'}, "
        f"device.warp = {limits.warp}",
        f"- a block: device.max_threads = {limits.max_threads} threads {limits.max_block}, "
        f"device.shared = {limits.shared} bytes of shared (local) memory; a grid: "
        f"{limits.max_grid} blocks at most",
    ]
    if limits.threads_per_sm:
        lines.append(
            f"- a multiprocessor: device.threads_per_sm = {limits.threads_per_sm}, device.blocks_per_sm = "
            f"{limits.blocks_per_sm}, device.registers_per_sm = {limits.registers_per_sm}, "
            f"device.shared_per_sm = {limits.shared_per_sm} bytes"
            + (f"; device.capability = {limits.capability}" if limits.capability else "")
        )
        if limits.capability:
            lines.append(
                "- static `__shared__` arrays have at most 49152 bytes; more, up to device.shared, as "
                "`extern __shared__` with `shared` in [launch]"
            )
    if limits.capability >= 90:
        lines.append(f"- a cluster: {LARGEST_CLUSTER} blocks at most, which run at once")
    if limits.llc:
        lines.append(f"- last-level cache: device.llc = {limits.llc} bytes")
    if device.is_host:
        lines.append(
            "- it is a CPU: one core runs a work-group, its work-items one after another in a loop that the "
            "compiler may turn into SIMD; vector types (float8, vload8) are SIMD registers; a barrier splits "
            "that loop; local memory is ordinary memory"
        )
    return PromptPart("The device", "\n".join(lines))


OPENCL_RULES = (
    "- no `##`, no assembler, no `#include`; only what the file defines, what OpenCL brings and the "
    "compiler's built-ins is called, and no other function declared",
    "- compilers made of clang, as PoCL's is, have `__builtin_prefetch(p)` (the pointer as it is, without a "
    "cast), `__builtin_nontemporal_load(p)`, `__builtin_nontemporal_store(value, p)`, "
    "`__builtin_shufflevector(a, b, ...)`, `__builtin_expect(c, 1)`, `__builtin_assume(c)`",
    "- `__attribute__((...))`: `always_inline`, `noinline`, `aligned`, `packed`, `unused`, `const`, `pure`, "
    "`overloadable`, `reqd_work_group_size`, `work_group_size_hint`, `opencl_unroll_hint`",
)


HIP_RULES = (
    "- C++17 unless flags say otherwise",
    f"- `#include`: the original's, and {', '.join(sorted(HIP.headers))}; no other",
    "- no `asm`, no `__builtin_amdgcn_...`; `__builtin_nontemporal_load(p)` and `_store(value, p)`, shuffles "
    "without a mask (`__shfl_down(x, 16, 32)`), `__launch_bounds__`, "
    "`__attribute__((amdgpu_waves_per_eu(N)))`; a launch has no cluster and no `pdl`",
)


def build_part(problem: Problem, state: State) -> PromptPart:
    """What the compiler really gets, and what a source may ask of it."""
    kernel = problem.kernel
    rules: tuple[str, ...] = OPENCL_RULES
    flags = "begin with `-cl-`"
    if kernel.language == languages.HIP.name:
        rules, flags = HIP_RULES, _HIP_FLAGS
    elif not languages.find_language(kernel.language).is_native:
        rules, flags = _cuda_rules(state), _CUDA_FLAGS
    lines = [f"{_compiler_line(problem, state)}; flags in `[build]` {flags}", *rules]
    return PromptPart("How it is built", "\n".join(lines))


def plain_build_part(problem: Problem, state: State) -> PromptPart:
    """Of a kernel that has nothing but its launch, in plain C."""
    return PromptPart(
        "How it is built", f"{_compiler_line(problem, state)}; `#include`: the original's alone"
    )


def _compiler_line(problem: Problem, state: State) -> str:
    kernel = problem.kernel
    defined = " ".join(f"-D{name}={value}" for name, value in kernel.defines)
    given = " ".join(filter(None, [*kernel.flags, defined]))
    return f"- compiler: {state.compiler or OWN_COMPILER}; the problem's flags: {given or 'none'}"


_CUDA_FLAGS = (
    "are written as for nvcc: `-maxrregcount=N`, `-use_fast_math`, `-ftz=true`, `-prec-div=false`, "
    "`-prec-sqrt=false`, `-fmad=false`, `-extra-device-vectorization`, `-Xptxas -O2` or `-Xptxas -dlcm=ca`"
)


_HIP_FLAGS = (
    "are those of HIP's clang: `-O2`, `-ffast-math`, `-ffp-contract=off`, `-fgpu-flush-denormals-to-zero`, "
    "`-munsafe-fp-atomics`, `-fno-unroll-loops`, `-mcumode`, `-mwavefrontsize64`"
)


def _cuda_rules(state: State) -> tuple[str, ...]:
    capability = state.device.limits.capability
    allowed = ", ".join(sorted(CUDA.headers))
    family = f", `-arch=sm_{capability}a` for instructions of this family alone" if capability >= 90 else ""
    return (
        f"- always `--std=c++17 --gpu-architecture=sm_{capability}` unless flags say otherwise{family}"
        if capability
        else "- C++17 unless flags say otherwise",
        f"- `#include`: the original's, and {allowed}; no other, `<cstdint>` and its like included",
        "- `asm` stands inside functions, with instructions and declared registers alone",
    )


# -- how a program reads it, what is tested, and moves ---------------------------------------------------


_NUMBERED = re.compile(r"#.*\b\d+:")
_ACCESS = re.compile(r"(?P<what>(?:read|written) as .*?\]), (?P<how>[^\[\]]+)")


def reading_part(moves: MoveCatalogue) -> PromptPart:
    lines = [_how_once(line) for line in moves.reading]
    lines += ["", fence_with_backticks(moves.text)] if moves.text else []
    return PromptPart(f"How a program reads {moves.of or 'the kernel'}", "\n".join(lines), 1)


def _how_once(line: str) -> str:
    """Of an array that is accessed in one way at several places, the way once."""
    name, _, rest = line.partition(": ")
    found = [_ACCESS.fullmatch(access) for access in rest.split("; ")]
    every = [one for one in found if one is not None]
    if len(every) < 2 or len(every) < len(found) or len({one["how"] for one in every}) > 1:
        return line
    return f"{name}: {'; '.join(one['what'] for one in every)}; each {every[0]['how']}"


def tested_part(problem: Problem, state: State) -> PromptPart:
    """Where a kernel is tried: as the original is, for the whole contract, and what a tester has added."""
    cases = full_cases(problem, original_variant(problem), state.device, state.settings.seed)
    sizes = dict.fromkeys(_format_sizes(problem, case.sizes) for case in cases)
    extra = state.extended.cases if state.extended is not None else ()
    added = [f"{_format_sizes(problem, case.sizes)} {case.distribution}" for case in extra]
    lines = [
        f"Sizes ({', '.join(problem.size_names)}): {' '.join(list(sizes)[:LISTED])}",
        f"Values: {values_tested(problem, state)}.",
    ]
    lines += [f"And: {'; '.join(added)}."] if added else []
    return PromptPart("Tested anyway", "\n".join(lines), 1, lines[1])


def lessons_part(lessons: str) -> PromptPart:
    """Left out where there are none, and one of the first to give way."""
    return PromptPart("What earlier runs here have shown: data, not yet measured on this problem", lessons, 2)


def values_tested(problem: Problem, state: State) -> str:
    cases = full_cases(problem, original_variant(problem), state.device, state.settings.seed)
    return ", ".join(dict.fromkeys(case.distribution for case in cases))


def _format_sizes(problem: Problem, sizes: Sequence[tuple[str, int]]) -> str:
    """In the order of the problem's names."""
    known = dict(sizes)
    return f"({', '.join(str(known[name]) for name in problem.size_names if name in known)})"


def refused_lines(moves: MoveCatalogue) -> list[str]:
    """Why moves do not apply; a reason that several have is said once."""
    reasons: dict[str, list[str]] = {}
    for name, why in moves.refused:
        reasons.setdefault(why, []).append(name)
    return [f"- not here: {', '.join(names)}: {why}" for why, names in reasons.items()]


def moves_part(moves: MoveCatalogue) -> PromptPart:
    """Places that several share, and reasons that several have, are said once."""
    shared = _alias_repeated_texts((o.place for o in moves.offers if o.place), lambda number: f"[{number}]")
    lines = [f"- {sign} is {place}" for place, sign in shared.items()]
    lines += [offer_line(offer, shared) for offer in moves.offers]
    lines += refused_lines(moves)
    short = f"Available: {', '.join(moves.available) or 'none'}"
    to = f" to {moves.of}" if moves.of else ""
    return PromptPart(f"Moves that a program can apply{to}, proved safe", "\n".join(lines), 2, short)


def ideas_parts(state: State, moves: Callable[[], MoveCatalogue]) -> list[PromptPart]:
    """The same for whoever writes kernels in words, where the run offers moves to all."""
    if state.settings.moves != "all":
        return []
    heading = "Choices that a program knows for this kernel: nobody applies them by name, take what pays"
    return [replace(moves_part(moves()), heading=heading)]


def _alias_repeated_texts(texts: Iterable[str], sign: Callable[[int], str]) -> dict[str, str]:
    """Those that are there twice or more and long enough for it, each with a sign."""
    every = list(texts)
    twice = dict.fromkeys(text for text in every if every.count(text) > 1 and len(text) > 24)
    return {text: sign(number) for number, text in enumerate(twice, 1)}


def offer_line(offer: MoveOffer, shared: Mapping[str, str] | None = None) -> str:
    """One move with its place, what it adds to a template, and the remedies it can be."""
    place = (shared or {}).get(offer.place, offer.place)
    added = offer.parameters
    # Of several parameters each needs its remark; of one the move has said what it is, but not its numbers.
    if len(added) == 1 and not _NUMBERED.search(added[0]):
        added = (added[0].partition("#")[0].strip(),)
    parts = [
        f"{offer.about or 'see its name'}",
        f"Where: {place}." if place else "",
        f"Adds {'; '.join(added)}." if added else "",
        f"A remedy of: {', '.join(offer.remedies)}." if offer.remedies else "",
    ]
    return f"- {offer.name}: {' '.join(filter(None, parts))}"


NO_COUNTERS = "no hardware counters"  # how a note begins that is of use only where nothing else is known
WHOLE = 2  # of the latest rounds; older ones give way to a line each
FINDINGS = 6  # of a diagnosis
BROKEN = 60_000  # characters of a kernel that was turned away; one that is right is shown whole
LONGEST_REASON = 6000  # of the words about the kernel that is gone on from
NOTHING = "Nothing yet: the device is not where this was written. It will be measured on it, later."


def task_parts(problem: Problem, state: State, moves: MoveCatalogue | None = None) -> list[PromptPart]:
    """What planners, authors and a conversation are told alike; an analyst without how the kernel is read.
    All of it stays the same in a run, so that caches of prompts hold it: what changes stands behind."""
    return [
        *kernel_parts(problem),
        problem_part(problem, state),
        *([reading_part(moves)] if moves else []),
        device_part(state.device),
    ]


def standing_parts(problem: Problem, state: State) -> list[PromptPart]:
    """Where things stand now: other in each round."""
    return [times_part(problem, state), diagnosis_part(problem, state)]


# -- times and the diagnosis --------------------------------------------------------------------------------


def times_part(problem: Problem, state: State) -> PromptPart:
    """What the original takes, and the best so far, with what each value of a parameter gave."""
    lines = [*_original_lines(problem, state), *floors_since(problem, state)]
    best = best_config(problem, state)
    if best is not None:
        gain = f"{candidate_speedups(problem, state)[best.candidate]:.2f}× the speed of the original"
        lines.append(f"- the best so far: {_describe_config(best)}, {gain} in the mean")
        lines += _at_workloads(problem, state, best)
        built = next((o.resources for o in reversed(state.outcomes) if o.trial.config == best), None)
        lines += _resource_line(str(best) if best.items else best.label, built)
        lines += _cluster_lines(state, best)
        lines += _by_value(problem, state, best)
        lines += _failure_lines(state, best.candidate) if best.items else []
    return PromptPart("Measured", "\n".join(lines) or NOTHING)


def _original_lines(problem: Problem, state: State) -> list[str]:
    if state.baseline is None:
        found = next((s for s in state.surveyed if s.config is None), None)
        built = found.builds[0] if found is not None and found.builds else None
        lines = _resource_line("the original", built.resources if built else None)
        if built is not None and built.occupancy is not None:
            lines.append(f"- so its blocks fill {built.occupancy} % of a multiprocessor's threads at most")
        return [f"- {NOTHING}", *lines] if lines else []
    lines, least = [], least_times(problem, state)
    for name, seconds in _baseline_seconds(state).items():
        moved = necessary_traffic(problem, problem.workload(name).as_dict())
        rate = f" ({_format_rate(moved / seconds / 1e9)} GB/s of what must move)" if seconds else ""
        away = times_least(least.get(name), seconds)
        lines.append(f"- {name}: the original takes {seconds * 1e6:.2f} µs{rate}{away}")
    lines += _resource_line("the original", state.baseline.outcome.resources)
    return lines + _cluster_lines(state, None)


def _format_rate(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _at_workloads(problem: Problem, state: State, general: Config) -> list[str]:
    """The best at each workload by itself, which may be another configuration, and the one that is best in
    the mean."""
    tried, lines, timed = sound_scores(problem, state), [], _baseline_seconds(state)
    least, best = least_times(problem, state), best_so_far(state)
    longer = best.at if best is not None and best.config == general else {}
    for place, workload in enumerate(problem.workloads):
        scored = [(found, t.config) for t in tried if (found := score_at(t, place)) is not None]
        if not scored:
            continue
        if workload.name in longer:  # what it took when it was timed for long
            scored = [(math.log(longer[workload.name]) if c == general else s, c) for s, c in scored]
        score, config = max(scored, key=lambda pair: pair[0])
        before = timed.get(workload.name)

        in_mean = max((found for found, other in scored if other == general), default=None)
        takes = _format_expected_time(score, before, least.get(workload.name))
        line = (
            f"- {workload.name}: {speedup_from_log(score):.2f}× at best{takes}, with "
            f"{_describe_config(config)}"
        )
        if config != general and in_mean is not None:
            takes = _format_expected_time(in_mean, before, least.get(workload.name))
            line += f"; {speedup_from_log(in_mean):.2f}×{takes} with the best in the mean"
        lines.append(line)
    return lines


def _format_expected_time(score: float, before: float | None, least: LeastTime | None) -> str:
    if before is None:
        return ""
    seconds = before / speedup_from_log(score)
    return f", about {seconds * 1e6:.2f} µs{times_least(least, seconds)}"


def _baseline_seconds(state: State) -> dict[str, float]:
    """What the original takes at each workload."""
    found = state.baseline.outcome.results if state.baseline is not None else ()
    return {result.workload: result.timing.seconds for result in found if result.timing}


def _describe_config(config: Config) -> str:
    return f"template {config.candidate} at {config}" if config.items else config.label


def _resource_line(what: str, used: Resources | None) -> list[str]:
    if used is None:
        return []
    names = ("registers", "shared", "spills", "occupancy", "blocks_per_sm")
    shown = [f"{name} {value}" for name in names if (value := getattr(used, name)) is not None]
    return [f"- the compiler on {what}: {', '.join(shown)}"] if shown else []


def _cluster_lines(state: State, config: Config | None) -> list[str]:
    """How many run at once, where it was looked at and has any; workloads that differ are each told."""
    found: dict[str, list[str]] = {}
    for one in state.profiled:
        if one.config == config and one.diagnosis is not None and one.diagnosis.clusters:
            found.setdefault(one.diagnosis.clusters, []).append(one.workload)
    whose = "the original" if config is None else str(config) if config.items else config.label
    return [f"- {whose} at {', '.join(dict.fromkeys(names))}, {words}" for words, names in found.items()]


def _by_value(problem: Problem, state: State, best: Config) -> list[str]:
    """For each parameter of the best template: the best that was tried with each of its values."""
    tried = [t for t in sound_scores(problem, state) if t.config.candidate == best.candidate]
    lines = []
    for name, _ in best.items:
        found: dict[int, float] = {}
        for t in tried:
            if t.score is not None:
                found[t.config[name]] = max(found.get(t.config[name], t.score), t.score)
        if len(found) > 1:
            shown = ", ".join(f"{value}: {speedup_from_log(found[value]):.2f}×" for value in sorted(found))
            lines.append(f"- the best with each {name}: {shown}")
    return lines


def _failure_lines(state: State, candidate: str) -> list[str]:
    """Configurations of a template that gave no time, and the first of them in its own words."""
    outcomes = state.searched.of(("of", candidate))
    bad = [(o, r) for o in outcomes if (r := next((r for r in o.results if not r.ok), None))]
    if not bad:
        return []
    counts = ", ".join(f"{n} {status}" for status, n in Counter(str(r.status) for _, r in bad).items())
    first, why = bad[0]
    words = shorten_middle(why.detail.strip(), 300) or str(why.status)
    return [f"- of template {candidate} gave no time: {counts}; first {first.trial.config}: {words}"]


def diagnosis_part(problem: Problem, state: State) -> PromptPart:
    """Workloads of which the same is found are told together."""
    found, seen = diagnoses_in_view(problem, state), in_view(problem, state)
    is_known = seen is not None and any(p.config == seen and p.diagnosis for p in state.profiled)
    whose = _describe_config(seen) if seen is not None and is_known else "the original"
    alike: dict[tuple[str, str], dict[str, Diagnosis]] = {}
    for name, diagnosis in found.items():
        alike.setdefault((diagnosis.bound, _finding_lines(diagnosis)), {})[name] = diagnosis
    several = [
        f"{', '.join(names)}: bound by {bound}{words or _without_fault(names)}"
        for (bound, words), names in alike.items()
    ]
    text = "\n\n".join(several)
    short = "\n".join(f"- {name}: {diagnosis.summary}" for name, diagnosis in found.items())
    return PromptPart(f"Diagnosis of {whose}", text, 1, short)


def _finding_lines(found: Diagnosis) -> str:
    """Empty where no fault is found."""
    if not found.findings:
        return ""
    lines = [f", in {found.launch}" if found.launch else ""]
    for finding in found.findings[:FINDINGS]:
        evidence, remedies = "; ".join(finding.evidence), ", ".join(finding.remedies)
        stake = f"{finding.gain:.0%} of the time at stake"
        lines.append(f"- {finding.kind} ({stake}): {evidence}. Remedies: {remedies}")
    return "\n".join(lines)


def _without_fault(found: Mapping[str, Diagnosis]) -> str:
    """Of workloads with one bound, and what was looked at where there is most to be gained."""
    away = ", ".join(f"{d.distance:.2f}" for d in found.values() if d.distance is not None)
    name, worst = max(found.items(), key=lambda pair: pair[1].distance or 0.0)
    where = f"at {name} " if len(found) > 1 else ""
    told = [note for note in worst.notes if worst.bound == "unknown" or not note.startswith(NO_COUNTERS)]
    notes = f" ({where}{'; '.join(told)})" if told else ""
    summary = re.split("[;:]", worst.summary)[0]
    return (f", {away} × the floor" if away else "") + f": {summary}{notes}"


# -- what was written ---------------------------------------------------------------------------------------


def base_part(problem: Problem, state: State, templates: Templates, base: Candidate) -> PromptPart:
    heading = f"{candidate_noun(state.settings).title()} {base.id}, which this goes on from"
    text = templates.text(base)
    if base.rejected is None:
        lines = [*measured_lines(problem, state, base.id), ""] if is_concrete(state) else []
        if refused := refused_words(refusals_by_candidate(problem, state).get(base.id, ())):
            lines += [shorten_middle(refused[0].upper() + refused[1:], LONGEST_REASON), ""]
        return PromptPart(heading, "\n".join([*lines, fence_with_backticks(text)]))
    why = shorten_middle(base.rejected.reason, LONGEST_REASON)
    return PromptPart(
        heading, f"It is broken:\n\n{why}\n\n{fence_with_backticks(shorten_middle(text, BROKEN))}"
    )


def measured_lines(problem: Problem, state: State, candidate: str) -> list[str]:
    """Time and speed-up of a concrete kernel at each workload; where it does not run, why."""
    outcomes = state.searched.of(Config((), candidate))
    if not outcomes:
        return ["It has not been measured."]
    outcome = outcomes[-1]
    speedups, lines = SpeedupScale(state).speedups(outcome), []
    for workload in problem.workloads:
        found = outcome.result(workload.name)
        if found is not None and found.timing is not None:
            time = f"{found.timing.seconds * 1e6:.2f} µs"
            lines.append(f"- {workload.name}: {time}, a speed-up of {speedups[workload.name]:.2f}×")
        elif found is not None:
            lines.append(f"- {workload.name}: {found.status}. {shorten_middle(found.detail)}".rstrip(". "))
    return lines


def candidates_part(problem: Problem, state: State) -> PromptPart:
    """What each goes on from, and what it reached."""
    word, scored = candidate_noun(state.settings), candidate_speedups(problem, state)
    lines, refused = [], refusals_by_candidate(problem, state)
    for c in state.candidates:
        base = f"{word} {c.parent}" if c.parent else "the original"
        is_refused = c.id in refused
        none = "refused by the full check" if is_refused else "nothing measured"
        gain = f"{scored[c.id]:.2f}×" if c.id in scored else none
        if is_concrete(state):
            by, status = ("", f"right, {gain}" if c.id in scored else none if is_refused else "turned away")
        else:
            by, status = _author_phrase(state, c), f"{c.status}, {gain}"
        lines.append(f"- {word} {c.id or 'given'} from {base}{by}: {status}")
    lines.append(f"- {best_line(problem, state)}")
    return PromptPart(f"{word.title()}s so far", "\n".join(lines), 1, lines[-1])


def _author_phrase(state: State, candidate: Candidate) -> str:
    """Whatever the model is called: what a recording was asked is asked again when it is played."""
    if candidate.drafted is None or not candidate.drafted.author:
        return f", moves {', '.join(candidate.moves) or 'none'}"
    if state.is_plain(candidate):
        return ", the kernel written plainly by a model"
    on = moves_on(state, candidate)
    return f", moves {', '.join(candidate.moves)} on template {on.id}" if on is not None else ", by a model"


def best_line(problem: Problem, state: State) -> str:
    best = leading_candidate(problem, state)
    if best is None:
        return "the best that is right: the original"
    gain = candidate_speedups(problem, state)[best.id]
    return f"the best that is right: {candidate_noun(state.settings)} {best.id}, {gain:.2f}×"


def round_parts(problem: Problem, state: State) -> list[PromptPart]:
    """A part for each round that is over, the older the sooner it is shortened."""
    rounds, word = round_reports(problem, state), candidate_noun(state.settings)
    if state.under_way is not None and state.under_way.decision == "refactor":
        rounds = rounds[:-1]
    return [
        _round_part(one, word, 2 if place < len(rounds) - WHOLE else 1) for place, one in enumerate(rounds)
    ]


def _round_part(one: RoundReport, word: str, rank: int) -> PromptPart:
    lines = [f"Plan: {one.reason}", *([f"What to change: {one.what}"] if one.what else [])]
    lines.append(f"From: {f'{word} {one.base}' if one.base else 'the original'}")
    lines += ["Only to rewrite the kernel plainly, for a program to read"] if one.plain else []
    lines += [f"Moves: {', '.join(one.moves)}"] if one.moves else []
    for draft in one.drafts:
        status = "turned away" if draft.status == "rejected" else draft.status
        if word == "template" or draft.status == "rejected":
            lines.append(f"{word.title()} {draft.template}: {status}. {shorten_middle(draft.why)}".rstrip())
    after = f" after {format_count(one.evaluations, 'evaluation')}" if word == "template" else ""
    lines.append(f"Result{after}: {shorten_middle(one.verdict)}")
    return PromptPart(f"Round {one.number}", "\n".join(lines), rank, shorten_middle(one.verdict, 200))


def left_words(state: State) -> str:
    """Of the budgets that a plan has to fit in."""
    most, evals = state.settings.rounds, None if is_concrete(state) else evals_left(state)
    rounds = f"{format_count(rounds_begun(state), 'round')} begun"
    rounds += f", {most} at most" if most is not None else ""
    words = [rounds]
    if evals is not None:
        share = next_share(state)
        gets = "" if share is None else f", of which the next template's search gets {share}"
        words.append(f"{format_count(evals, 'evaluation')} left for searches{gets}")
    return "; ".join([*words, *still_left(state)])


_LEFT = {
    "seconds": "{left:.0f} of {limit:g} s of the run left",
    "device_seconds": "{left:.1f} of {limit:g} s on the device left",
    "tokens": "{about}{left:.0f} of {limit:g} tokens left, this request and its reply not counted",
    "dollars": "${left:.2f} of ${limit:g} left",
}


def still_left(state: State) -> list[str]:
    """Of the limits that the user has set, beside rounds and evaluations."""
    return [
        _LEFT[one.what].format(
            left=max(0.0, one.limit - (one.used or 0)),
            limit=one.limit,
            about="about " if one.by_length and one.used else "",
        )
        for one in budget_uses(state, with_models=True)
        if one.what in _LEFT and one.limit is not None
    ]
