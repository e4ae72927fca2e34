"""The local moves: qualifiers, pragmas, compiler settings, and another block size where that is safe."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

from tunesmith.csource.effects import Effects, function_effects, is_function
from tunesmith.csource.lex import without_comments
from tunesmith.expert.model.kernel import ParameterChoice
from tunesmith.expert.moves.local_draft import Edit, LaunchText, LocalDraft, add, one_at_a_time
from tunesmith.expert.moves.port import Context, FlagChoice, move, register_cap, saving_level
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import Undefined

SIZES = (32, 64, 128, 192, 256, 384, 512, 768, 1024)
ON_CPU = (1, 4, 16, 64, 256)

_TOGETHER = re.compile(
    r"\b(__shared__|__syncthreads\w*|__syncwarp|__shfl\w*|__ballot\w*|__any\w*|__all\w*|__activemask|warpSize"
    r"|__match\w*|__reduce\w*|cooperative_groups|__local|local|barrier|sub_group\w*|work_group\w*|asm)\b"
)
_BUILT_IN = re.compile(
    r"\b(?:threadIdx|blockDim|get_local_\w+|get_enqueued_\w+|hip(?:Thread|Block|Grid)\w+)\b(?:\.\w)?"
)
_BY_BLOCK = re.compile(r"\b(?:blockIdx\.x|gridDim\.x|get_group_id\(0\)|get_num_groups\(0\))")
_WHOLE = re.compile(
    r"blockIdx\.x\*(?:\(\w+\))?blockDim\.x\+threadIdx\.x|blockDim\.x\*blockIdx\.x\+threadIdx\.x"
    r"|threadIdx\.x\+(?:blockIdx\.x\*blockDim\.x|blockDim\.x\*blockIdx\.x)|get_global_id\(0\)"
)
_OF_OPENCL = re.compile(r"get_(?:global|local|group)_id|get_(?:global|local)_size|get_num_groups")
_CAST = re.compile(r"\((?:long long|size_t|int64_t|int|unsigned int|unsigned|long)\)|static_cast<[\w ]+>")
_STRIDE = re.compile(r"gridDim\.x\*blockDim\.x|blockDim\.x\*gridDim\.x|get_global_size\(0\)")
_LOOP = re.compile(r"=threadIdx\.x;[^;]*;\w+\+=blockDim\.x\)")


@move("block", (Remedy.BLOCK_SIZE, Remedy.MORE_BLOCKS), "BLOCK")
def block(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """Another block size, where the kernel provably does not depend on it.

    That is: no shared memory, barrier, shuffle or vote, no launch bounds, and the thread's number is only
    ever part of `blockIdx.x * blockDim.x + threadIdx.x`, or the start of a loop that steps by `blockDim.x`.
    """
    if len(draft.launches) > 1:
        return "there are several launches, which may rely on each other's blocks"
    launch = draft.launches[0].launch
    if launch.cooperative or launch.cluster or draft.site.has_bounds:
        return "the launch is cooperative, in clusters, or its block is fixed by launch bounds"
    # All of the file: a macro or a helper may look at the block as well.
    headers = [text for _, text in context.problem.kernel.headers]
    code = squeezed("\n".join([draft.site.text, *headers]))
    if (dependence := _dependence(code)) is not None:
        return f"{draft.site.name} may depend on the size of its block: {dependence}"
    try:
        own = [e.evaluate({}) for e in launch.block]
    except Undefined:
        return "the block's size depends on sizes of the problem"
    if any(extent != 1 for extent in own[1:]):
        return "the block has more than one dimension"
    grid = _grid(launch.grid[0].text, own[0], name, code)
    if grid is None:
        return f"the grid, {launch.grid[0].text!r}, does not say how it follows from the block"
    sizes = {own[0], *(ON_CPU if context.on_cpu else SIZES)}
    values = tuple(sorted(size for size in sizes if size <= context.device.limits.max_threads))
    changed = replace(
        draft,
        launches=(LaunchText(launch, (grid, *draft.launches[0].grid[1:]), (name,)),),
        require=(*draft.require, ("block_fits", f"{name} <= device.max_threads")),
    )
    return add(
        changed,
        "block",
        ParameterChoice(name, values, own[0], "threads in a block"),
        answers=((Remedy.BLOCK_SIZE, f"{name} != {own[0]}"),),
    )


def squeezed(text: str) -> str:
    """The code without comments, conversions between integers and blanks, so that forms can be compared."""
    plain = " ".join(without_comments(text).replace("\\\n", " ").split())
    return re.sub(r"(?<!\w) | (?!\w)", "", _CAST.sub("", plain))


def _dependence(code: str) -> str | None:
    """What in the code looks at the block; None where nothing does."""
    if found := _TOGETHER.search(code):
        return f"{found.group(1)} is used"
    for word in re.findall(r"[A-Za-z_]\w*(?=\()", code):
        known = is_function(word) and not _OF_OPENCL.fullmatch(word)
        if known and function_effects(word) & (
            Effects.THREAD | Effects.SHAPE | Effects.MASK | Effects.BARRIER
        ):
            return f"{word} is used"
    by_thread = _WHOLE.search(code) is not None
    for pattern in (_LOOP, _WHOLE, _STRIDE):
        code = pattern.sub(" ", code)
    # Threads that are counted through all blocks find others of them when blocks change.
    found = _BUILT_IN.search(code) or (_BY_BLOCK.search(code) if by_thread else None)
    return f"{found.group(0)} is used outside the forms that are known to be safe" if found else None


def _grid(text: str, own: int, name: str, code: str) -> str | None:
    """The grid for another block: `ceildiv(n, 128)` counts threads, a count without the block counts rows."""
    if _WHOLE.search(code):
        changed, count = re.subn(rf"\bceildiv\((.*),\s*{own}\s*\)", rf"ceildiv(\1, {name})", text)
        return changed if count == 1 else None
    return text if not re.search(rf"\b{own}\b", text) else None


@move("restrict", (Remedy.ITEMS_IN_FLIGHT, Remedy.HOIST_INVARIANTS), "RESTRICT")
def restrict(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """`__restrict__` on pointers whose arrays the contract keeps apart: loads need not wait for stores."""
    problem = context.problem
    shared = {name for a in problem.arguments if a.alias for name in (a.alias, a.name)}
    # The launch names the arguments in the kernel's order, whatever the kernel calls them.
    args = draft.launches[0].launch.args
    if len(draft.launches) > 1:
        return "the kernel is launched more than once, perhaps with other arrays each time"
    arrays = [word for word in args if problem.argument(word).is_array]
    if len(arrays) != len(draft.site.pointers):
        return f"not every pointer of {draft.site.name} is written as one in its header"
    pairs = zip(draft.site.pointers, arrays, strict=True)
    apart = [pointer for pointer, array in pairs if array not in shared and not pointer.restrict]
    spelled = "restrict" if context.language == "opencl" else "__restrict__"
    if not apart:
        return f"every pointer is {spelled} already, or may share memory with another (alias)"
    word = context.macro("NO_ALIAS")
    return add(
        draft,
        "restrict",
        ParameterChoice(name, (0, 1), 0, f"1: pointers are {spelled}, as the contract allows"),
        edits=tuple(Edit(pointer.at, f"{word} ") for pointer in apart),
        preamble=_switched(name, word, spelled),
        answers=((Remedy.HOIST_INVARIANTS, f"{name} == 1"),),
    )


def _switched(switch: str, word: str, meaning: str) -> tuple[str, ...]:
    """A macro that is empty unless switched on."""
    return f"#if {switch}", f"#define {word} {meaning}", "#else", f"#define {word}", "#endif"


@move("unroll", (Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT), "UNROLL")
def unroll(draft: LocalDraft, _context: Context, name: str) -> LocalDraft | str:
    """Unroll pragmas on the kernel's inner loops."""
    loops = [loop for loop in draft.site.inner_loops if not loop.marked]
    if not loops:
        return f"{draft.site.name} has no inner loop without a pragma of its own"
    pragma = f"\n#if {name}\n#pragma unroll {name}\n#endif\n"
    return add(
        draft,
        "unroll",
        ParameterChoice(name, (0, 1, 2, 4, 8), 0, "turns of an inner loop at once; 0: as it is"),
        edits=tuple(Edit(loop.at, pragma) for loop in loops),
        answers=((Remedy.UNROLL, f"{name} > 1"), (Remedy.ITEMS_IN_FLIGHT, f"{name} > 1")),
    )


CUDA = ("__", ("expf", "exp10f", "logf", "log2f", "log10f", "sinf", "cosf", "tanf", "powf"))
OPENCL = ("native_", ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "powr"))


@move("fast", (Remedy.FAST_INTRINSICS,), "FAST")
def fast(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
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
    if own := [word for word in used if re.search(rf"\b(?:float|double)\s+{word}\s*\(", text)]:
        return f"the source has a function of its own called {own[0]}"
    macros = [f"#define {word} {prefix}{word}" for word in used]
    return add(
        draft,
        "fast",
        ParameterChoice(name, (0, 1), 0, "1: functions of the special-function unit"),
        after_includes=(f"#if {name}", *macros, "#endif"),
        answers=((Remedy.FAST_INTRINSICS, f"{name} == 1"),),
    )


@move("bounds", (Remedy.LAUNCH_BOUNDS,), "BOUNDS")
def bounds(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """`__launch_bounds__` on a kernel that has none: it tells the compiler how large blocks are."""
    if context.language == "opencl":
        return "OpenCL C has no launch bounds"
    if draft.site.has_bounds:
        return f"{draft.site.name} has __launch_bounds__ already (line {draft.site.line})"
    block = draft.choice("BLOCK")
    threads = block.name if block is not None else str(largest_block(draft, context))
    word = context.macro("LAUNCH_BOUNDS")
    most = context.device.limits.threads_per_sm or 2048
    return add(
        draft,
        "bounds",
        ParameterChoice(name, (0, 1, 2, 4), 0, "blocks that must fit on a multiprocessor; 0: not said"),
        edits=(Edit(draft.site.marker_end, f" {word}"),),
        preamble=_switched(name, word, f"__launch_bounds__({threads}, {name})"),
        prefer=[("bounds_fit", f"{name} * {threads} <= {most}"), *one_at_a_time(draft, name, 0)],
        answers=((Remedy.LAUNCH_BOUNDS, f"{name} > 0"),),
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


@move("registers", (Remedy.REGISTER_CAP,), "REGS")
def registers(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """A cap on registers for the whole file: more threads on a multiprocessor, at the risk of spills."""
    return _with_flag(draft, "registers", register_cap(context, name))


@move("flags", (Remedy.COMPILER_FLAGS,), "LEVEL")
def flags(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """What the assembler may be asked: how hard it should try to save registers."""
    return _with_flag(draft, "flags", saving_level(context, name))


def _with_flag(draft: LocalDraft, move: str, found: FlagChoice | str) -> LocalDraft | str:
    if isinstance(found, str):
        return found
    choice, flag, answer = found
    prefer = one_at_a_time(draft, choice.name, choice.default)
    return add(draft, move, choice, flags=(flag,), prefer=prefer, answers=[answer])
