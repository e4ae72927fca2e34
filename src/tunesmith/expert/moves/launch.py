"""Moves on launches: fills, overlap, block shape, kernels side by side."""

from __future__ import annotations

import re
from dataclasses import replace

from tunesmith.expert.moves.move import Context, define_move, element_loops, extend_draft, runs_of
from tunesmith.expert.moves.text_edits import LaunchText, LocalDraft, add_choice
from tunesmith.expert.read.model import ParameterChoice, TemplateDraft
from tunesmith.expert.write.given import add_distinct_conditions
from tunesmith.problem.template import Remedy
from tunesmith.source.effects import Effects, function_effects, is_function
from tunesmith.source.text import without_comments
from tunesmith.space.expr import FunctionCall, Undefined, parse_expr


@define_move(
    "fills",
    needs="a launch that sets every element of an array to one value; a later kernel that is read, and "
    "stores all of these elements without reading them, or takes each up once",
    turn="sharing",
    remedies=(Remedy.FEWER_LAUNCHES,),
    of_file=True,
)
def drop_fills(_draft: TemplateDraft, _context: Context) -> TemplateDraft | str:
    """Launches left out that only fill an array which a later launch of the call stores anew or adds to.

    Proved on the models: the next launch that is given the array stores, in every turn, at places that count
    through all that was filled without a gap, and reads none of it, or only in the statement that stores it:
    `out[i] += x` then starts from the value itself. Atomics have to find the array filled. There is no
    parameter: nobody wants the launch back.
    """
    return "the call is one launch: there is none that only fills"


LEAST_CAPABILITY = 90
SWITCH = "PDL"


@define_move(
    "overlap",
    needs="a launch behind another one that is made at the same sizes; a kernel that is read; CUDA, sm_90",
    turn="anywhere",
    remedies=(Remedy.FEWER_LAUNCHES,),
    of_file=True,
    PDL="1: overlaps the launch ahead; 2: from its start on",
)
def overlap_launches(_draft: TemplateDraft, _context: Context, _name: str) -> TemplateDraft | str:
    """Launches that overlap (programmatic dependent launch): a kernel is there when the one ahead ends.

    Every thread waits, before all else, until the launch ahead has ended and its stores can be seen, so that
    the order of all accesses stays what it was. What launches ahead of it in the call write is neither read
    by the path for what is only read nor `__restrict__`: a compiler might move such loads before the wait.
    Such a launch stands in the template twice, with and without `pdl`, and the parameter says which is made.
    """
    return "the call is one launch: there is none ahead of it to overlap with"


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


@define_move(
    "block",
    needs="shared memory, barriers, shuffles, lanes, clusters; threads numbered other than by "
    "`blockIdx.x * blockDim.x + threadIdx.x` or a loop by `blockDim.x`; a grid that is not "
    "`ceildiv(n, block)`",
    turn="sharing",
    remedies=(Remedy.BLOCK_SIZE, Remedy.MORE_BLOCKS),
    places=lambda _draft, _context: "the launch",
    stays_open=True,
    BLOCK="threads in a block",
)
def resize_block(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
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
    code = squeeze_code("\n".join([draft.site.text, *headers]))
    if (dependence := _block_dependence(code)) is not None:
        return f"{draft.site.name} may depend on the size of its block: {dependence}"
    try:
        extents = [e.evaluate({}) for e in launch.block]
    except Undefined:
        return "the block's size depends on sizes of the problem"
    if any(extent != 1 for extent in extents[1:]):
        return "the block has more than one dimension"
    grid = _rescale_grid(launch.grid[0].text, extents[0], name, code)
    if grid is None:
        return f"the grid, {launch.grid[0].text!r}, does not say how it follows from the block"
    sizes = {extents[0], *(ON_CPU if context.on_cpu else SIZES)}
    values = tuple(sorted(size for size in sizes if size <= context.device.limits.max_threads))
    changed = replace(
        draft,
        launches=(LaunchText(launch, (grid, *draft.launches[0].grid[1:]), (name,)),),
        require=add_distinct_conditions(draft.require, [("block_fits", f"{name} <= device.max_threads")]),
    )
    return add_choice(changed, "block", ParameterChoice(name, values, extents[0]))


def squeeze_code(text: str) -> str:
    """The code without comments, conversions between integers and blanks, so that forms can be compared."""
    plain = " ".join(without_comments(text).replace("\\\n", " ").split())
    return re.sub(r"(?<!\w) | (?!\w)", "", _CAST.sub("", plain))


def _block_dependence(code: str) -> str | None:
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


def _rescale_grid(text: str, threads: int, name: str, code: str) -> str | None:
    """The grid for another block: `ceildiv(n, 128)` counts threads, a count without the block counts rows.

    Where no loop goes over the whole grid, a grid that is more than that one quotient decides which elements
    there are: `min(ceildiv(n, 128), 3)`."""
    if not _WHOLE.search(code):
        return text if not re.search(rf"\b{threads}\b", text) else None
    changed, count = re.subn(rf"\bceildiv\((.*),\s*{threads}\s*\)", rf"ceildiv(\1, {name})", text)
    tree = parse_expr(text).tree
    is_alone = isinstance(tree, FunctionCall) and tree.function == "ceildiv"
    return changed if count == 1 and (is_alone or _STRIDE.search(code)) else None


@define_move(
    "beside",
    needs="loops in a row that total and keep nothing, neither of which touches an array that the other "
    "writes; a GPU",
    turn="sharing",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.MORE_BLOCKS),
    BESIDE="1: loops that do not depend on each other run side by side",
)
def fuse_loops(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Independent loops of a task side by side: one loop over all their indices, shared among the task's
    threads.

    Proved on the model: the loops start at 0, total nothing and keep nothing for each other, and neither
    touches an array that the other writes (which arrays may overlap is in the contract). One after the
    other, the second loop's loads come after the first loop's stores, a memory's latency later, and each
    leaves threads idle in its last turn; side by side all loads are under way at once, and a split task has
    more blocks.

    Loops that are alike but for their arrays and sizes (query and key) get one body, and addresses that are
    chosen; others a branch. With SPLIT every block has one turn, so there is no loop, and loads that wait for
    nothing go ahead of those that wait for another's result.
    """
    kernel = draft.kernel
    if context.on_cpu:
        return "a CPU runs a group's work-items one after the other: nothing waits"
    if len(element_loops(kernel)) < 2:
        return "a task is one loop: there is no other to run beside it"
    if not kernel.tasks:
        return "the loops are spread over the whole grid already"
    if not runs_of(kernel, context):
        return "no two loops in a row stand alone: they total something, or touch what the other writes"
    return extend_draft(draft, "beside", ParameterChoice(name, (0, 1), 0))
