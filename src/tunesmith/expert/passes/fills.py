"""The move `fills`, on the launches of a call."""

from __future__ import annotations

from tunesmith.expert.model.kernel import TemplateDraft
from tunesmith.expert.passes.port import Context, move
from tunesmith.problem.template import Remedy


@move(
    "fills",
    needs="a launch that sets every element of an array to one value; a later kernel that is read, and "
    "stores all of these elements without reading them, or takes each up once",
    turn="sharing",
    remedies=(Remedy.FEWER_LAUNCHES,),
    of_file=True,
)
def fills(_draft: TemplateDraft, _context: Context) -> TemplateDraft | str:
    """Launches left out that only fill an array which a later launch of the call stores anew or adds to.

    Proved on the models: the next launch that is given the array stores, in every turn, at places that count
    through all that was filled without a gap, and reads none of it, or only in the statement that stores it:
    `out[i] += x` then starts from the value itself. Atomics have to find the array filled. There is no
    parameter: nobody wants the launch back.
    """
    return "the call is one launch: there is none that only fills"
