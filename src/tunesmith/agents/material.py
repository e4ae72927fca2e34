"""What every role is told of the task: the kernel, the problem, the device, what is tested, the moves."""

from __future__ import annotations

from math import prod

from tunesmith.agents.prompting import PromptPart, fenced
from tunesmith.problem import languages
from tunesmith.problem.cases import full_cases
from tunesmith.problem.device import Device
from tunesmith.problem.plan import necessary_traffic, show_sizes
from tunesmith.problem.problem import Argument, Launch, Problem, Workload
from tunesmith.problem.template import original
from tunesmith.run.ports import Catalogue, Offer
from tunesmith.run.state import State
from tunesmith.space.expr import Undefined

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
    if floors := _floors(state):
        lines.append(f"- measured ceilings: no kernel takes less than {', '.join(floors)}")
    if state.compiler:
        lines.append(f"- compiler: {state.compiler}")
    return PromptPart("The device", "\n".join(lines))


def _floors(state: State) -> list[str]:
    """The least time of each workload by what the device was measured to do at best."""
    found = {p.workload: p.diagnosis for p in state.profiled if p.diagnosis and p.diagnosis.floor}
    return [f"{d.floor * 1e6:.3g} µs at {w} ({d.ceiling})" for w, d in found.items() if d.floor]


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


def reading_part(moves: Catalogue) -> PromptPart:
    return PromptPart("How a program reads the kernel", "\n".join(moves.reading), 1)


def moves_part(moves: Catalogue) -> PromptPart:
    lines = [offer_line(offer) for offer in moves.offers]
    lines += [f"- not here: {name}, because {why}" for name, why in moves.refused]
    short = f"Available: {', '.join(moves.available) or 'none'}"
    return PromptPart("Moves that a program can apply, proved safe", "\n".join(lines), 2, short)


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
    told = [
        f"strides [{', '.join(e.text for e in a.strides)}]" if a.strides else "",
        str(a.role),
        f"= {getattr(a.value, 'text', a.value)}" if a.value is not None else "",
        f"aligned to {a.align} bytes" if a.align else "aligned to its elements" if a.is_array else "",
        f"shares memory with {a.alias}" if a.alias else "",
        f"values: {a.values}" if a.values else "",
        f"values from {a.range[0]:g} to {a.range[1]:g}" if a.range else "",
        f"filled with {a.init:g} before the call" if a.init is not None else "",
        f"traffic {a.traffic.text} bytes" if a.traffic is not None else "",
    ]
    shape = f"* [{', '.join(e.text for e in a.shape)}]" if a.is_array else ""
    return f"- argument `{a.name}`: {a.type}{shape}, {', '.join(filter(None, told))}"


def _launch(one: Launch) -> str:
    grid, block = (", ".join(e.text for e in axis) for axis in (one.grid, one.block))
    more = f", shared {one.shared.text} bytes" if one.shared else ""
    more += ", cooperative" if one.cooperative else ""
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
    names, told = {**w.as_dict(), **device.limits.names()}, []
    for launch in problem.launches:
        try:
            blocks, threads = (prod(e.evaluate(names) for e in axis) for axis in (launch.grid, launch.block))
        except Undefined:
            return ""
        told.append(f"{blocks} blocks of {threads} threads")
    return f"; today {', then '.join(told)}"


def _accuracy(problem: Problem) -> list[str]:
    accuracy = problem.accuracy
    if accuracy.reference is None:
        return [f"- results must match the original's, within rtol {accuracy.rtol:g}, atol {accuracy.atol:g}"]
    lines = [
        f"- results are compared with a float64 reference: within rtol {accuracy.rtol:g}, atol "
        f"{accuracy.atol:g}; and the largest error at most twice the original's own plus one unit in the "
        "last place, the root mean square of errors at most 1.25 times the original's plus a quarter of a "
        "unit; NaN and infinity where the reference has them"
    ]
    if accuracy.deterministic:
        lines.append("- two runs on the same inputs must agree bit for bit: no floating-point atomics")
    return lines
