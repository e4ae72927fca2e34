"""The move `overlap`, on the launches of a call."""

from __future__ import annotations

from tunesmith.expert.model.kernel import TemplateDraft
from tunesmith.expert.passes.port import Context, move
from tunesmith.problem.template import Remedy

LEAST_CAPABILITY = 90
SWITCH = "PDL"


@move(
    "overlap",
    needs="a launch behind another one that is made at the same sizes; a kernel that is read; CUDA, sm_90",
    turn="anywhere",
    remedies=(Remedy.FEWER_LAUNCHES,),
    of_file=True,
    PDL="1: overlaps the launch ahead; 2: from its start on",
)
def overlap(_draft: TemplateDraft, _context: Context, _name: str) -> TemplateDraft | str:
    """Launches that overlap (programmatic dependent launch): a kernel is there when the one ahead ends.

    Every thread waits, before all else, until the launch ahead has ended and its stores can be seen, so that
    the order of all accesses stays what it was. What launches ahead of it in the call write is neither read
    by the path for what is only read nor `__restrict__`: a compiler might move such loads before the wait.
    Such a launch stands in the template twice, with and without `pdl`, and the parameter says which is made.
    """
    return "the call is one launch: there is none ahead of it to overlap with"
