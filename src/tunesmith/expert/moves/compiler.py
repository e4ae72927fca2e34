"""Moves that steer the compiler: flags, registers, bounds, unrolling, fast math, divisions, fixed sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any

from tunesmith.expert.moves.move import (
    Context,
    all_loops,
    define_move,
    extend_draft,
    fast_forms,
    index_divisions,
    inner_loops,
    named_lines,
    try_plan,
)
from tunesmith.expert.moves.text_edits import Edit, LocalDraft, SourceLoop, add_choice
from tunesmith.expert.read.model import ParameterChoice, TemplateDraft
from tunesmith.expert.write.loops import is_short
from tunesmith.expert.write.rules import Baked
from tunesmith.problem.template import Remedy
from tunesmith.source.tree import For
from tunesmith.space.expr import Undefined

EitherDraft = TemplateDraft | LocalDraft


def with_flag(draft: EitherDraft, move: str, choice: ParameterChoice, flag: str) -> EitherDraft:
    """A choice that a build flag inserts where it has braces."""
    inserting = flag.format(f"{{{choice.name}}}")
    if isinstance(draft, LocalDraft):
        return add_choice(draft, move, choice, flags=(inserting,))
    return extend_draft(replace(draft, build_flags=(*draft.build_flags, inserting)), move, choice)


def switchable_macro(switch: str, word: str, meaning: str) -> tuple[str, ...]:
    """A macro that is empty unless switched on."""
    return f"#if {switch}", f"#define {word} {meaning}", "#else", f"#define {word}", "#endif"


AS_TODAY = 5  # ptxas's own default, of 0 to 10


@define_move(
    "flags",
    needs="CUDA",
    turn="compiler",
    of_file=True,
    remedies=(Remedy.COMPILER_FLAGS,),
    LEVEL="how hard ptxas saves registers",
)
def tune_build_flags(
    draft: EitherDraft, context: Context, name: str
) -> Any:  # a draft of the same kind, or why not
    """What the assembler may be asked: how hard it should try to save registers."""
    if not context.flags.register_level:
        return f"no build flag of {context.language} takes a number that tunes"
    choice = ParameterChoice(name, (0, AS_TODAY, 10), AS_TODAY)
    return with_flag(draft, "flags", choice, context.flags.register_level)


flags_text = replace(tune_build_flags, needs="languages other than CUDA")  # where it is refused


NO_CAP = 255  # registers: all that a thread can have


@define_move(
    "registers",
    needs="CUDA; no cap in the problem's flags",
    turn="compiler",
    of_file=True,
    remedies=(Remedy.REGISTER_CAP,),
    REGS="registers of a thread, at most",
)
def cap_registers(
    draft: EitherDraft, context: Context, name: str
) -> Any:  # a draft of the same kind, or why not
    """A cap on registers: more threads on a multiprocessor, at the risk of spills."""
    if not context.flags.register_cap:
        return f"no flag caps registers in {context.language}"
    if any("maxrregcount" in flag for flag in context.problem.kernel.flags):
        return "the problem's own flags cap registers already"
    choice = ParameterChoice(name, (32, 64, 128, NO_CAP), NO_CAP)
    return with_flag(draft, "registers", choice, context.flags.register_cap)


registers_text = replace(cap_registers, needs="languages other than CUDA; a cap in the problem's flags")


@define_move(
    "bounds",
    needs="CUDA or HIP",
    turn="compiler",
    remedies=(Remedy.LAUNCH_BOUNDS,),
    BOUNDS="blocks that must fit on a multiprocessor at once; HIP: waves on a SIMD",
)
def set_launch_bounds(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """`__launch_bounds__`: the compiler learns the block's size, and how many blocks must fit."""
    if context.language == "hip":  # amdgpu_waves_per_eu
        return extend_draft(draft, "bounds", ParameterChoice(name, (1, 2, 4, 8), 1))
    if context.language != "cuda":
        return f"{context.language} has no bound on blocks to a compute unit"
    return extend_draft(draft, "bounds", ParameterChoice(name, (1, 2, 4), 1))


@define_move(
    "bounds",
    needs="kernels that have them; OpenCL",
    turn="compiler",
    remedies=(Remedy.LAUNCH_BOUNDS,),
    BOUNDS="blocks that must fit on a multiprocessor; 0: not said",
)
def bounds_text(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """`__launch_bounds__` on a kernel that has none: it tells the compiler how large blocks are."""
    if context.language == "opencl":
        return "OpenCL C has no launch bounds"
    if draft.site.has_bounds:
        return f"{draft.site.name} has __launch_bounds__ already (line {draft.site.line})"
    block = draft.choice(context.macro("BLOCK"))
    threads = block.name if block is not None else str(largest_block(draft, context))
    word = context.macro("LAUNCH_BOUNDS")
    return add_choice(
        draft,
        "bounds",
        ParameterChoice(name, (0, 1, 2, 4), 0),
        edits=(Edit(draft.site.marker_end, f" {word}"),),
        preamble=switchable_macro(name, word, f"__launch_bounds__({threads}, {name})"),
        blocks=((context.number, threads),),
    )


def largest_block(draft: LocalDraft, context: Context) -> int:
    """Threads of a block at any size: its own number where it is one, else what the device allows."""
    most = 1
    for launch in draft.launches:
        try:
            most = max(most, prod(e.evaluate({}) for e in launch.launch.block))
        except Undefined:  # it depends on sizes
            return context.device.limits.max_threads
    return most


@define_move(
    "unroll",
    needs="an inner loop of more than 16 turns, or of a number not known",
    turn="compiler",
    remedies=(Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT),
    places=lambda draft, _: _named_loops(_loops_to_unroll(draft)),
    UNROLL="turns of an inner loop at once; 0: as the compiler likes",
)
def unroll_loops(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Unrolling of the loops inside a body, which every thread runs for itself."""
    if not inner_loops(draft.kernel):
        return "no thread runs a loop of its own inside a turn"
    if not _loops_to_unroll(draft):
        return "every inner loop has a pragma of its own, or is short and unrolled whole anyway"
    # PoCL's compiler refuses 0, which CUDA's takes for "as you like".
    values = (1, 2, 4, 8) if context.language == "opencl" else (0, 1, 2, 4, 8)
    return extend_draft(draft, "unroll", ParameterChoice(name, values, values[0]))


@define_move(
    "unroll",
    needs="loops with a pragma",
    turn="compiler",
    remedies=(Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT),
    places=lambda draft, _: _named_loops([one for one in draft.site.inner_loops if not one.marked]),
    UNROLL="turns of an inner loop at once; 0: as it is",
)
def unroll_text(draft: LocalDraft, _context: Context, name: str) -> LocalDraft | str:
    """Unroll pragmas on the kernel's inner loops."""
    loops = [loop for loop in draft.site.inner_loops if not loop.marked]
    if not loops:
        return f"{draft.site.name} has no inner loop without a pragma of its own"
    pragma = f"#if {name}\n#pragma unroll {name}\n#endif\n"
    return add_choice(
        draft,
        "unroll",
        ParameterChoice(name, (0, 1, 2, 4, 8), 0),
        edits=tuple(_insert_above(draft.site.text, loop.at, pragma) for loop in loops),
    )


def _loops_to_unroll(draft: TemplateDraft) -> list[For]:
    return [loop for loop in inner_loops(draft.kernel) if loop.unroll is None and not is_short(loop)]


def _named_loops(loops: Iterable[For | SourceLoop]) -> str:
    return f"inner loops, {named_lines(loop.line for loop in loops)}"


def _insert_above(text: str, at: int, lines: str) -> Edit:
    """Lines above the one that begins at a place, or between it and what stands before it there."""
    start = text.rfind("\n", 0, at) + 1
    return Edit(at, f"\n{lines}") if text[start:at].strip() else Edit(start, lines)


@define_move(
    "fast",
    needs="a function or quotient of floats with a fast form; no `-use_fast_math` yet",
    turn="anywhere",
    remedies=(Remedy.FAST_INTRINSICS, Remedy.FP32_LITERALS),
    places=lambda draft, context: ", ".join(fast_forms(draft.kernel, context.language).functions),
    FAST="1: fast forms",
)
def use_fast_forms(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Fast intrinsics in place of library functions and divisions: a parameter, judged by the oracle."""
    if "use_fast_math" in " ".join(context.problem.kernel.flags):
        return "-use_fast_math is among the problem's flags: the intrinsics are used already"
    found = fast_forms(draft.kernel, context.language).functions
    if not found:
        return "no function or division of floats has a fast form here"
    choice = ParameterChoice(name, (0, 1), 0, f"1: fast forms of {', '.join(found)}")
    return extend_draft(draft, "fast", choice)


CUDA = ("__", ("expf", "exp10f", "logf", "log2f", "log10f", "sinf", "cosf", "tanf", "powf"))
OPENCL = ("native_", ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "powr"))


@define_move(
    "fast",
    needs="functions called with their namespace, or defined by the source; `-use_fast_math`",
    turn="anywhere",
    of_file=True,
    remedies=(Remedy.FAST_INTRINSICS,),
    FAST="1: functions of the special-function unit",
)
def fast_text(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """Fast intrinsics in place of library functions, by macros behind the includes: judged by the oracle."""
    if "use_fast_math" in " ".join(context.problem.kernel.flags):
        return "-use_fast_math is among the problem's flags: the intrinsics are used already"
    prefix, known = OPENCL if context.language == "opencl" else CUDA
    text = draft.site.text
    used = [word for word in known if re.search(rf"(?<![\w.>]){word}\s*\(", text)]
    if not used:
        return "no function is called that has a fast form"
    if qualified := [word for word in used if re.search(rf"::\s*{word}\s*\(", text)]:
        return f"{qualified[0]} is called with its namespace, where a macro cannot replace it"
    if defined := [word for word in used if re.search(rf"\b(?:float|double)\s+{word}\s*\(", text)]:
        return f"the source has a function of its own called {defined[0]}"
    macros = [f"#define {word} {prefix}{word}" for word in used]
    return add_choice(
        draft,
        "fast",
        ParameterChoice(name, (0, 1), 0),
        after_includes=(f"#if {name}", *macros, "#endif"),
    )


def _reciprocal_places(draft: TemplateDraft, context: Context) -> str:
    count = fast_forms(draft.kernel, context.language).by_invariants
    return f"{count} of the divisors in {all_loops(draft, context)}"


@define_move(
    "reciprocal",
    needs="a division by what is the same for a loop",
    turn="anywhere",
    remedies=(Remedy.RECIPROCAL, Remedy.HOIST_INVARIANTS),
    places=_reciprocal_places,
    RECIP="divisions by one number: 1: products; 2: products set right",
)
def use_reciprocals(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Multiplication by a reciprocal in place of divisions by one number: a parameter, judged as any."""
    if not fast_forms(draft.kernel, context.language).by_invariants:
        return "no float is divided by what is the same for a whole loop"
    return extend_draft(draft, "reciprocal", ParameterChoice(name, (0, 1, 2), 0, categorical=True))


@define_move(
    "divide",
    needs="integer division of a loop's index by what only the call knows; for shifts a power of two, "
    "for products an index times divisor below 2^32 (both `require`); CUDA and HIP",
    turn="anywhere",
    remedies=(Remedy.CHEAP_DIVISION,),
    places=lambda draft, context: (
        f"{index_divisions(draft.kernel)} of the divisors in {all_loops(draft, context)}"
    ),
    DIVIDE="1: shifts, divisors are powers of two; 2: products with a reciprocal",
)
def cheapen_divisions(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Cheaper index division: the integer divisions of a loop by what does not change in it."""
    if context.language == "opencl":
        return "cheaper divisions are known for cuda and hip alone"
    if not index_divisions(draft.kernel):
        return "no index is divided by a number that only the call knows"
    return extend_draft(draft, "divide", ParameterChoice(name, (0, 1, 2), 0))


def _bake_places(draft: TemplateDraft, context: Context) -> str:
    found = try_plan(draft, context, bake=ParameterChoice(context.macro("BAKE"), (0, 1), 0))
    return "" if isinstance(found, str) else ", ".join(s.parameter.name for s in Baked.of(found).sizes)


@define_move(
    "bake",
    needs="a row's length or stride is an argument that follows from sizes",
    turn="compiler",
    remedies=(Remedy.BAKE_SIZES, Remedy.CHEAP_DIVISION, Remedy.UNROLL),
    places=_bake_places,
    BAKE="1: sizes are constants, with a build for each workload",
)
def bake_sizes(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Sizes as constants of the build: one build for each workload's sizes, the original for all others."""
    choice = ParameterChoice(name, (0, 1), 0)
    plan = try_plan(draft, context, bake=choice)
    if isinstance(plan, str):
        return plan
    if not Baked.of(plan).sizes:
        return "no length or stride of a row is an argument that follows from the problem's sizes"
    return extend_draft(draft, "bake", choice)
