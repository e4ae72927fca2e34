"""What roles are told: of the task (the kernel, the problem, the device, what is tested, the moves), and of
what was measured and tried before (times, the diagnosis, templates or kernels, and rounds)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod

from tunesmith.agents.prompting import PromptPart, fenced, shortened
from tunesmith.problem import languages
from tunesmith.problem.cases import full_cases
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import necessary_traffic, show_sizes
from tunesmith.problem.problem import Argument, Launch, Problem, Workload
from tunesmith.problem.template import original
from tunesmith.profiles.facts import Diagnosis
from tunesmith.run.budget import evals_left, is_concrete, noun, rounds_begun
from tunesmith.run.candidates import Templates
from tunesmith.run.ports import Catalogue, Offer
from tunesmith.run.prior import best_config, diagnoses, in_view
from tunesmith.run.racing import sound_scores
from tunesmith.run.rounds import RoundReport, best_scores, leader, ratio, round_reports, score_at
from tunesmith.run.scores import Yardstick
from tunesmith.run.state import Candidate, State
from tunesmith.space.expr import Undefined
from tunesmith.space.params import Config
from tunesmith.text import counted

LISTED = 24  # sizes that are tested anyway


def kernel_parts(problem: Problem) -> list[PromptPart]:
    """The source, which is never cut, and the user's own headers."""
    kernel = problem.kernel
    return [
        PromptPart(f"The kernel as it is ({kernel.path})", fenced(kernel.text)),
        *(
            PromptPart(f"Its header {name}", fenced(text), 2, "left out: no room")
            for name, text in kernel.headers
        ),
    ]


def problem_part(problem: Problem, device: Device) -> PromptPart:
    kernel = problem.kernel
    about = languages.named(kernel.language).about
    defined = " ".join(f"-D{name}={value}" for name, value in kernel.defines)
    built = " ".join(filter(None, [*kernel.flags, defined]))
    lines = [
        f"- language {', '.join(filter(None, [kernel.language, about]))}; entry `{kernel.entry}`"
        + (f"; built with {built}" if built else ""),
        *(_argument(a) for a in problem.arguments),
        *(_launch(one) for one in problem.launches),
        *(f"- size `{rule.name}`: {rule.describe()}" for rule in problem.contract.sizes),
        *(f"- callers promise: {c.expr.text}" for c in problem.contract.require),
        *(_workload(problem, device, w) for w in problem.workloads),
        "- cold: no cache has seen the data; warm: they may hold it",
        *_accuracy(problem),
    ]
    return PromptPart("The problem", "\n".join(lines))


def device_part(device: Device, state: State) -> PromptPart:
    """Limits under the names that a template's expressions may use, with their units."""
    own = device.limits
    lines = [
        f"{device.name} ({device.kind}, {device.platform})",
        f"- device.sms = {own.sms} {'cores' if device.is_host else 'multiprocessors'}, "
        f"device.warp = {own.warp}",
        f"- a block has at most device.max_threads = {own.max_threads} threads {own.max_block} and "
        f"device.shared = {own.shared} bytes of shared (local) memory; a grid at most {own.max_grid} blocks",
    ]
    if own.threads_per_sm:
        lines.append(
            f"- a multiprocessor holds device.threads_per_sm = {own.threads_per_sm} threads, "
            f"device.blocks_per_sm = {own.blocks_per_sm} blocks, device.registers_per_sm = "
            f"{own.registers_per_sm} registers, device.shared_per_sm = {own.shared_per_sm} bytes; "
            f"device.capability = {own.capability}"
        )
        lines.append(
            "- a kernel's static `__shared__` arrays have at most 49152 bytes; more, up to device.shared, as "
            "`extern __shared__` with `shared` in [launch]"
        )
    if own.llc:
        lines.append(f"- last-level cache: device.llc = {own.llc} bytes")
    if (rate := memory_rate(device)) is not None:
        lines.append(f"- no kernel moves more than {rate / 1e9:.4g} GB/s between it and memory")
    if device.is_host:
        lines.append(
            "- it is a CPU: one core runs a work-group, its work-items one after another in a loop that the "
            "compiler may turn into SIMD; vector types (float8, vload8) are SIMD registers; a barrier splits "
            "that loop; local memory is ordinary memory"
        )
    # The least time of each workload by what the device was measured to do at best.
    seen = {p.workload: p.diagnosis for p in state.profiled if p.diagnosis and p.diagnosis.floor}
    if floors := [f"{d.floor * 1e6:.3g} µs at {w} ({d.ceiling})" for w, d in seen.items() if d.floor]:
        lines.append(f"- measured ceilings: no kernel takes less than {', '.join(floors)}")
    if state.compiler:
        lines.append(f"- compiler: {state.compiler}")
    return PromptPart("The device", "\n".join(lines))


def memory_rate(device: Device) -> float | None:
    """Bytes in a second that the memory's pins can move. A CPU's bound is that of its innermost caches, which
    says nothing of how near a kernel is to what it could be."""
    return None if device.is_host else device.limits.pin_bandwidth


def tested_part(problem: Problem, state: State) -> PromptPart:
    """Where a kernel is tried: as the original is, for the whole contract, and what a tester has added."""
    cases = full_cases(problem, original(problem), state.device, state.settings.seed)
    sizes = dict.fromkeys(show_sizes(dict(case.sizes)) for case in cases)
    shown = "; ".join(list(sizes)[:LISTED])
    kinds = ", ".join(dict.fromkeys(case.distribution for case in cases))
    extra = state.extended.cases if state.extended is not None else ()
    added = [f"{show_sizes(dict(case.sizes))} ({case.distribution})" for case in extra]
    lines = [f"Sizes: {shown}.", f"Values: {kinds}."] + ([f"And: {'; '.join(added)}."] if added else [])
    return PromptPart("Tested anyway", "\n".join(lines), 1, f"Values: {kinds}.")


def moves_part(moves: Catalogue) -> PromptPart:
    lines = [offer_line(offer) for offer in moves.offers]
    lines += [f"- not here: {name}, because {why}" for name, why in moves.refused]
    short = f"Available: {', '.join(moves.available) or 'none'}"
    return PromptPart("Moves that a program can apply, proved safe", "\n".join(lines), 2, short)


def ideas_parts(state: State, moves: Callable[[], Catalogue]) -> list[PromptPart]:
    """The same for whoever writes kernels in words, where the run offers moves to all."""
    if state.settings.moves != "all":
        return []
    heading = "Choices that a program knows for this kernel: nobody applies them by name, take what pays"
    return [replace(moves_part(moves()), heading=heading)]


def offer_line(offer: Offer) -> str:
    """One move with its place, what it adds to a template, and the remedies it can be."""
    parts = [
        f"{offer.about or 'see its name'}",
        f"Where: {offer.place}." if offer.place else "",
        f"Adds {'; '.join(offer.parameters)}." if offer.parameters else "",
        f"A remedy of: {', '.join(offer.remedies)}." if offer.remedies else "",
    ]
    return f"- {offer.name}: {' '.join(filter(None, parts))}"


def _argument(a: Argument) -> str:
    parts = [
        f"strides [{', '.join(e.text for e in a.strides)}]" if a.strides else "",
        str(a.role),
        f"= {getattr(a.value, 'text', a.value)}" if a.value is not None else "",
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


def _launch(one: Launch) -> str:
    grid, block = (", ".join(e.text for e in axis) for axis in (one.grid, one.block))
    more = f", shared {one.shared.text} bytes" if one.shared else ""
    more += ", cooperative" if one.cooperative else ""
    more += f", only where {one.when.text}" if one.when is not None else ""
    shape = f"grid ({grid}) blocks, block ({block}) threads{more}"
    return f"- launched today: `{one.entry}` with {shape}; args {', '.join(one.args)}"


def _workload(problem: Problem, device: Device, w: Workload) -> str:
    moved, pin = necessary_traffic(problem, w.as_dict()), memory_rate(device)
    least = f", which takes {moved / pin * 1e6:.3g} µs at the very least" if pin and moved else ""
    sizes = ", ".join(f"{name} = {value}" for name, value in w.sizes)
    return (
        f"- must be fast at `{w.name}`: {sizes} (weight {w.weight:g}, {w.cache} cache); "
        f"{moved} bytes must move{least}{_today(problem, device, w)}"
    )


def _today(problem: Problem, device: Device, w: Workload) -> str:
    """How many blocks and threads there are today, where that is known without a build."""
    names, launches = {**w.as_dict(), **device.limits.names()}, []
    for launch in problem.launches:
        try:
            blocks, threads = (prod(e.evaluate(names) for e in axis) for axis in (launch.grid, launch.block))
        except Undefined:
            return ""
        launches.append(f"{blocks} blocks of {threads} threads")
    return f"; today {', then '.join(launches)}"


def _accuracy(problem: Problem) -> list[str]:
    accuracy = problem.accuracy
    rules = [f"- {problem.own_rules}"] if problem.own_rules else []
    if accuracy.reference is None:
        tolerance = f"within rtol {accuracy.rtol:g}, atol {accuracy.atol:g}"
        return [f"- results must match the original's, {tolerance}", *rules]
    lines = [
        f"- results are compared with a float64 reference: within rtol {accuracy.rtol:g}, atol "
        f"{accuracy.atol:g}; and the largest error at most twice the original's own plus one unit in the "
        "last place, the root mean square of errors at most 1.25 times the original's plus a quarter of a "
        "unit; NaN and infinity where the reference has them",
        *rules,
    ]
    if accuracy.deterministic:
        lines.append("- two runs on the same inputs must agree bit for bit: no floating-point atomics")
    return lines


WHOLE = 2  # of the latest rounds; older ones give way to a line each
FINDINGS = 6  # of a diagnosis
BROKEN = 60_000  # characters of a kernel that was turned away; one that is right is shown whole
LONGEST_REASON = 6000  # of the words about the kernel that is gone on from
NOTHING = "Nothing yet: the device is not where this was written. It will be measured on it, later."


def task_parts(problem: Problem, state: State, moves: Catalogue | None = None) -> list[PromptPart]:
    """What planners, authors and a conversation are told alike; an analyst without how the kernel is read."""
    return [
        *kernel_parts(problem),
        problem_part(problem, state.device),
        *([PromptPart("How a program reads the kernel", "\n".join(moves.reading), 1)] if moves else []),
        device_part(state.device, state),
        times_part(problem, state),
        diagnosis_part(problem, state),
    ]


# -- times and the diagnosis --------------------------------------------------------------------------------


def times_part(problem: Problem, state: State) -> PromptPart:
    """What the original takes, and the best so far, with what each value of a parameter gave."""
    lines = _original(problem, state)
    best = best_config(problem, state)
    if best is not None:
        scored = best_scores(sound_scores(problem, state))
        gain = f"{ratio(scored[best.candidate]):.2f}× the speed of the original"
        lines.append(f"- the best so far: {_where(best)}, {gain} in the mean")
        lines += _at_workloads(problem, state)
        built = next((o.resources for o in reversed(state.outcomes) if o.trial.config == best), None)
        lines += _resources(str(best) if best.items else best.label, built)
        lines += _by_value(problem, state, best)
        lines += _failed(state, best.candidate) if best.items else []
    return PromptPart("Measured", "\n".join(lines) or NOTHING)


def _original(problem: Problem, state: State) -> list[str]:
    if state.baseline is None:
        found = next((s for s in state.surveyed if s.config is None), None)
        built = found.builds[0] if found is not None and found.builds else None
        lines = _resources("the original", built.resources if built else None)
        if built is not None and built.occupancy is not None:
            lines.append(f"- so its blocks fill {built.occupancy} % of a multiprocessor's threads at most")
        return [f"- {NOTHING}", *lines] if lines else []
    lines = []
    for name, seconds in _seconds(state).items():
        moved = necessary_traffic(problem, problem.workload(name).as_dict())
        rate = f", so what must move moves at {moved / seconds / 1e9:.3g} GB/s" if seconds else ""
        away = _away(state, moved, seconds)
        lines.append(f"- {name}: the original takes {seconds * 1e6:.2f} µs{rate}{away}")
    return lines + _resources("the original", state.baseline.outcome.resources)


def _away(state: State, moved: int, seconds: float) -> str:
    pin = memory_rate(state.device)
    if not pin or not moved:
        return ""
    share = seconds * pin / moved
    return f", {f'{share:.0f}' if share >= 100 else f'{share:.3g}'} times the least time"


def _at_workloads(problem: Problem, state: State) -> list[str]:
    """The best at each workload by itself, which may be another configuration."""
    tried, lines, timed = sound_scores(problem, state), [], _seconds(state)
    for place, workload in enumerate(problem.workloads):
        scored = [(found, t.config) for t in tried if (found := score_at(t, place)) is not None]
        if scored:
            score, config = max(scored, key=lambda pair: pair[0])
            takes = ""
            if (before := timed.get(workload.name)) is not None:
                seconds = before / ratio(score)
                moved = necessary_traffic(problem, workload.as_dict())
                takes = f", about {seconds * 1e6:.2f} µs{_away(state, moved, seconds)}"
            lines.append(f"- {workload.name}: {ratio(score):.2f}× at best{takes}, with {_where(config)}")
    return lines


def _seconds(state: State) -> dict[str, float]:
    """What the original takes at each workload."""
    found = state.baseline.outcome.results if state.baseline is not None else ()
    return {result.workload: result.timing.seconds for result in found if result.timing}


def _where(config: Config) -> str:
    return f"template {config.candidate} at {config}" if config.items else config.label


def _resources(what: str, used: Resources | None) -> list[str]:
    if used is None:
        return []
    names = ("registers", "shared", "spills", "occupancy", "blocks_per_sm")
    shown = [f"{name} {value}" for name in names if (value := getattr(used, name)) is not None]
    return [f"- the compiler on {what}: {', '.join(shown)}"] if shown else []


def _by_value(problem: Problem, state: State, best: Config) -> list[str]:
    """For each parameter of the best template: the best that was tried with each of its values."""
    own = [t for t in sound_scores(problem, state) if t.config.candidate == best.candidate]
    lines = []
    for name, _ in best.items:
        found: dict[int, float] = {}
        for t in own:
            if t.score is not None:
                found[t.config[name]] = max(found.get(t.config[name], t.score), t.score)
        if len(found) > 1:
            shown = ", ".join(f"{value}: {ratio(found[value]):.2f}×" for value in sorted(found))
            lines.append(f"- the best with each {name}: {shown}")
    return lines


def _failed(state: State, candidate: str) -> list[str]:
    """Configurations of a template that gave no time, and the first of them in its own words."""
    own = state.searched.of(("of", candidate))
    bad = [(o, r) for o in own if (r := next((r for r in o.results if not r.ok), None))]
    if not bad:
        return []
    counts = ", ".join(f"{n} {status}" for status, n in Counter(str(r.status) for _, r in bad).items())
    first, why = bad[0]
    words = shortened(why.detail.strip(), 300) or str(why.status)
    return [f"- of template {candidate} gave no time: {counts}; first {first.trial.config}: {words}"]


def diagnosis_part(problem: Problem, state: State) -> PromptPart:
    found, seen = diagnoses(problem, state), in_view(problem, state)
    is_known = seen is not None and any(p.config == seen and p.diagnosis for p in state.profiled)
    whose = _where(seen) if seen is not None and is_known else "the original"
    text = "\n\n".join(_diagnosis(name, diagnosis) for name, diagnosis in found.items())
    short = "\n".join(f"- {name}: {diagnosis.summary}" for name, diagnosis in found.items())
    return PromptPart(f"Diagnosis of {whose}", text, 1, short)


def _diagnosis(workload: str, found: Diagnosis) -> str:
    away = f"; {found.distance:.2f} times its floor ({found.ceiling})" if found.distance is not None else ""
    lines = [f"{workload}: bound by {found.bound}{away}. {found.summary}"]
    for finding in found.findings[:FINDINGS]:
        evidence, remedies = "; ".join(finding.evidence), ", ".join(finding.remedies)
        stake = f"{finding.gain:.0%} of the time at stake"
        lines.append(f"- {finding.kind} ({stake}): {evidence}. Remedies: {remedies}")
    return "\n".join(lines)


# -- what was written ---------------------------------------------------------------------------------------


def base_part(problem: Problem, state: State, templates: Templates, base: Candidate) -> PromptPart:
    heading = f"{noun(state.settings).title()} {base.id}, which this goes on from"
    text = templates.text(base)
    if base.rejected is None:
        lines = [*measured_lines(problem, state, base.id), ""] if is_concrete(state) else []
        return PromptPart(heading, "\n".join([*lines, fenced(text)]))
    why = shortened(base.rejected.reason, LONGEST_REASON)
    return PromptPart(heading, f"It is broken:\n\n{why}\n\n{fenced(shortened(text, BROKEN))}")


def measured_lines(problem: Problem, state: State, candidate: str) -> list[str]:
    """Time and speed-up of a concrete kernel at each workload; where it does not run, why."""
    own = state.searched.of(Config((), candidate))
    if not own:
        return ["It has not been measured."]
    outcome = own[-1]
    speedups, lines = Yardstick(state).speedups(outcome), []
    for workload in problem.workloads:
        found = outcome.result(workload.name)
        if found is not None and found.timing is not None:
            time = f"{found.timing.seconds * 1e6:.2f} µs"
            lines.append(f"- {workload.name}: {time}, a speed-up of {speedups[workload.name]:.2f}×")
        elif found is not None:
            lines.append(f"- {workload.name}: {found.status}. {shortened(found.detail)}".rstrip(". "))
    return lines


def candidates_part(problem: Problem, state: State) -> PromptPart:
    """What each goes on from, and what it reached."""
    word, scored = noun(state.settings), best_scores(sound_scores(problem, state))
    lines = []
    for c in state.candidates:
        base = f"{word} {c.parent}" if c.parent else "the original"
        gain = f"{ratio(scored[c.id]):.2f}×" if c.id in scored else "nothing measured"
        if is_concrete(state):
            by, status = "", f"right, {gain}" if c.id in scored else "turned away"
        else:
            # Whatever the model is called: what a recording was asked is asked again when it is played.
            is_model = c.drafted is not None and bool(c.drafted.author)
            by = ", by a model" if is_model else f", moves {', '.join(c.moves) or 'none'}"
            status = f"{c.status}, {gain}"
        lines.append(f"- {word} {c.id or 'given'} from {base}{by}: {status}")
    lines.append(f"- {best_line(problem, state)}")
    return PromptPart(f"{word.title()}s so far", "\n".join(lines), 1, lines[-1])


def best_line(problem: Problem, state: State) -> str:
    best = leader(problem, state)
    if best is None:
        return "the best that is right: the original"
    score = best_scores(sound_scores(problem, state))[best.id]
    return f"the best that is right: {noun(state.settings)} {best.id}, {ratio(score):.2f}×"


def round_parts(problem: Problem, state: State) -> list[PromptPart]:
    """A part for each round that is over, the older the sooner it is shortened."""
    rounds, word = round_reports(problem, state), noun(state.settings)
    if state.under_way is not None and state.under_way.decision == "refactor":
        rounds = rounds[:-1]
    return [_round(one, word, 2 if place < len(rounds) - WHOLE else 1) for place, one in enumerate(rounds)]


def _round(one: RoundReport, word: str, rank: int) -> PromptPart:
    lines = [] if one.branches else _round_lines(one, word)
    for place, branch in enumerate(one.branches, 1):
        lines += [f"Draft {place} of {len(one.branches)}, side by side:", *_round_lines(branch, word)]
    return PromptPart(f"Round {one.number}", "\n".join(lines), rank, shortened(one.verdict, 200))


def _round_lines(one: RoundReport, word: str) -> list[str]:
    lines = [f"Plan: {one.reason}", *([f"What to change: {one.what}"] if one.what else [])]
    lines.append(f"From: {f'{word} {one.base}' if one.base else 'the original'}")
    lines += [f"Moves: {', '.join(one.moves)}"] if one.moves else []
    for draft in one.drafts:
        status = "turned away" if draft.status == "rejected" else draft.status
        if word == "template" or draft.status == "rejected":
            lines.append(f"{word.title()} {draft.template}: {status}. {shortened(draft.why)}".rstrip())
    after = f" after {counted(one.evaluations, 'evaluation')}" if word == "template" else ""
    return [*lines, f"Result{after}: {shortened(one.verdict)}"]


def left_words(state: State) -> str:
    """Of the budgets that a plan has to fit in."""
    most, evals = state.settings.rounds, None if is_concrete(state) else evals_left(state)
    rounds = f"{counted(rounds_begun(state), 'round')} begun"
    rounds += f", {most} at most" if most is not None else ""
    return rounds if evals is None else f"{rounds}; {counted(evals, 'evaluation')} left for searches"
