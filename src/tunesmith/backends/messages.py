"""What the lab and its workers say to each other. Arrays and binaries travel beside a message, as blobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.device import Clock, Device, Resources
from tunesmith.problem.inputs import SlotPlace
from tunesmith.problem.plan import OutputErrors, Plan, Status
from tunesmith.problem.problem import PythonFunction
from tunesmith.profiles.facts import Counters
from tunesmith.run.outcome import TimingPolicy as TimingPolicy
from tunesmith.run.protection import Protection


@dataclass(frozen=True)
class Unit:
    """What is compiled: only device code, never anything that runs on the host."""

    path: str
    source: str
    language: str
    flags: tuple[str, ...]
    entries: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()  # as included -> text
    compiler: str = ""  # one of the backend's; empty: its own choice
    vetted: str = ""  # digest of the source that was vetted: nothing else is compiled; empty: the user's own


@dataclass(frozen=True)
class Draw:
    """How a case's inputs are made; the same draw gives the same arrays in every process."""

    distribution: str
    seed: int
    inputs: PythonFunction | None = None
    place: SlotPlace | None = None  # among the data that timed launches rotate through; None: a case's own


@dataclass(frozen=True)
class TellProtection:
    """Reply: Protection."""


@dataclass(frozen=True)
class ListDevices:
    """Reply: Devices."""


@dataclass(frozen=True)
class ListCompilers:
    """Those of the backend where the worker is. Reply: Compilers."""


@dataclass(frozen=True)
class Build:
    """Reply: Built with the binary as blob 0, or Failed."""

    unit: Unit
    device: Device


@dataclass(frozen=True)
class Load:
    """Blob 0 is the binary; afterwards it is known by its code digest. Reply: Done or Failed."""

    unit: Unit
    code_digest: str
    device: Device


@dataclass(frozen=True)
class Open:
    """Have a device ready for what is loaded next. Reply: Done or Failed."""

    device: Device


@dataclass(frozen=True)
class RunCase:
    """Run twice from the same inputs into differently poisoned outputs. Reply: Ran; blobs: outputs."""

    code_digest: str
    plan: Plan
    draw: Draw
    shields: bool = False  # what may not be written cannot be, where each array has pages of its own


@dataclass(frozen=True)
class ExpectedArray:
    """An array of reference values: float64, or int64 / uint64 where integers are compared exactly."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    def view(self, data: bytes) -> NDArray[Any]:
        return np.frombuffer(data, dtype=self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class StoreCase:
    """Lay out a case on the device, run the original on it, and keep all that is needed to judge others.
    Blobs: `expected`, then `inputs`. Reply: Judged, for the original."""

    case: str
    code_digest: str
    plan: Plan
    draw: Draw
    expected: tuple[ExpectedArray, ...]
    rows: tuple[int, ...]  # the items `expected` has of the arrays in `sampled`; empty: all
    sampled: tuple[str, ...]
    deterministic: bool
    may_fail: bool
    odd: bool = False  # candidates are held to the original's behaviour as well as to `expected`
    inputs: tuple[str, ...] = ()  # those the user's function made elsewhere; empty: it is called
    functions: tuple[tuple[str, PythonFunction], ...] = ()  # that compare outputs, by their names


@dataclass(frozen=True)
class CheckCase:
    """Run a kernel on a stored case and judge it there. Reply: Judged; blobs: outputs, where wanted."""

    case: str
    code_digest: str
    plan: Plan
    compares_errors: bool
    sends: bool = False  # the outputs, for another to judge
    tells_errors: bool = False


@dataclass(frozen=True)
class JudgeOutputs:
    """Judge what a kernel gave elsewhere on a case stored here. Blobs: outputs. Reply: Judged."""

    case: str
    plan: Plan
    compares_errors: bool
    tells_errors: bool = False


@dataclass(frozen=True)
class CheckCases:
    """Several, one after the other, as long as they are right. Reply: AllJudged."""

    checks: tuple[CheckCase, ...]


@dataclass(frozen=True)
class Contender:
    code_digest: str
    plan: Plan


@dataclass(frozen=True)
class TimeRuns:
    """Time contenders in alternation at one workload. The last one's outputs are looked at where there is an
    `original`, after launches inside timed chains that nobody can foresee. Reply: Timed; blobs: pieces."""

    contenders: tuple[Contender, ...]
    draw: Draw
    policy: TimingPolicy
    warm: bool
    plain: bool = False  # launched one by one, not as a recording
    original: Contender | None = None  # None: nobody looks
    sends_all: bool = False  # of what is unlike in many places, not the first of them alone
    needs_turn: bool = True  # false: others that time on the device were waited for long enough


@dataclass(frozen=True)
class LaunchOnce:
    """Lay out a workload's data and launch it once, between the marks a profiler looks for. Reply: Done."""

    contender: Contender
    draw: Draw
    warm: bool


@dataclass(frozen=True)
class CountLaunches:
    """Have a profiler count what the hardware does in that launch. Blob 0 is the binary. Reply: Counted."""

    load: Load
    launch: LaunchOnce
    main: int = 0  # which of the plan's launches is told of


@dataclass(frozen=True)
class BareRun:
    """A case in memory that holds its inputs and what a caller promises, and nothing else of ours."""

    plan: Plan
    draw: Draw


@dataclass(frozen=True)
class RunBare:
    """Run a kernel once on each, for a tool that watches. Blob 0 is the binary; none: the tool has a device
    of its own, for which the source is built. Reply: Done."""

    unit: Unit
    code_digest: str
    device: Device
    runs: tuple[BareRun, ...]


@dataclass(frozen=True)
class FindTools:
    """Which sanitizer the backend has here. Reply: ToolsFound."""


@dataclass(frozen=True)
class RunUnder:
    """Have a worker do it under a tool of the sanitizer, with the same blobs. Reply: EndedTool."""

    tool: str
    what: RunBare
    seconds: float


@dataclass(frozen=True)
class TimeAll:
    """Several, one after the other. Reply: AllTimed."""

    runs: tuple[TimeRuns, ...]
    needs_turn: bool = True


@dataclass(frozen=True)
class Refer:
    """Draw the inputs and compute the reference in float64. Reply: Expected; blobs: float64 outputs, then the
    inputs that the user's function makes, where they are wanted."""

    reference: PythonFunction | None
    plan: Plan
    draw: Draw
    rows: tuple[int, ...]  # the items of `independent` to compute; empty: all of them
    independent: str | None
    independent_arrays: tuple[str, ...]  # arrays whose first axis is that size
    digests: bool = True  # of every input; else only of those that the user's function makes
    sends_inputs: bool = False
    keys: tuple[str, ...] = ()  # inputs whose memory is sent after all that, whoever makes them


@dataclass(frozen=True)
class CompareOutputs:
    """Ask the user's function about an output. Blobs: `got`, then `expected`; floats as float64, integers of
    their own type. Reply: OutputCompared."""

    function: PythonFunction
    plan: Plan
    draw: Draw
    output: str
    got: tuple[ExpectedArray, ...]
    expected: tuple[ExpectedArray, ...]


@dataclass(frozen=True)
class CountClusters:
    """How many clusters of each launch the device holds at once. Reply: ClustersHeld."""

    code_digest: str
    plan: Plan


OfDevice = RunCase | StoreCase | CheckCase | CheckCases | JudgeOutputs | TimeRuns | TimeAll | CountClusters
OfUser = Refer | CompareOutputs  # what calls functions of the user's; the one above needs loaded code
OfHost = TellProtection | ListDevices | ListCompilers  # what is asked before there is anything to build
OfTools = FindTools | RunUnder | CountLaunches  # of a process that runs no kernel itself
Request = OfHost | Build | Open | Load | LaunchOnce | RunBare | OfUser | OfDevice | OfTools
REQUEST_TYPES: dict[str, type[Request]] = {t.__name__: t for t in get_args(Request)}


@dataclass(frozen=True)
class Devices:
    devices: tuple[Device, ...]
    cards: tuple[str, ...] = ()  # of each, what no other has, on any machine; empty where nobody knows


@dataclass(frozen=True)
class Compilers:
    """Name and version of each, the preferred one first."""

    found: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Built:
    code_digest: str
    resources: Resources
    log: str


@dataclass(frozen=True)
class Done:
    pass


@dataclass(frozen=True)
class BufferReport:
    """What one buffer looked like after the runs; digests are judged outside the worker."""

    name: str
    guard_digest: str
    given: str = ""  # digest of an input before the runs
    left: str = ""  # and after them
    repeats: bool = True  # an output: the second run gave what the first did
    stateless: bool = True  # and so did one that found what an earlier one had left
    damage: str = ""  # where a guard was hit, in words: a hint, not a verdict


@dataclass(frozen=True)
class Ran:
    buffers: tuple[BufferReport, ...]
    seconds: float
    waited: float = 0.0  # seconds, for the device's lock


@dataclass(frozen=True)
class Judged:
    """A verdict that fell beside the device: only where kernels cannot reach the worker's own memory."""

    status: Status
    detail: str = ""
    seconds: float = 0.0  # of one run
    busy: float = 0.0
    input_digests: tuple[tuple[str, str], ...] = ()  # of inputs made by the user's function
    damage: bool = False  # memory outside the arrays was written to: nobody knows what else was
    contested: tuple[int, ...] = ()  # wrong as compared with the original, in these rows: ask the reference
    errors: tuple[OutputErrors, ...] = ()  # where they were asked for and there is a reference
    waited: float = 0.0


@dataclass(frozen=True)
class AllJudged:
    """Up to the first that is not right."""

    verdicts: tuple[Judged, ...]
    waited: float = 0.0


@dataclass(frozen=True)
class Piece:
    """Bytes of an array's slot, from `start` on; beyond the array's end lies what belongs to nobody."""

    name: str
    start: int
    nbytes: int


@dataclass(frozen=True)
class TimedLook:
    """What a launch inside a timed chain left behind, at a slot; the pieces travel beside it, in order. A
    device that judges for itself sends them only where it cannot tell, and then the original's outputs."""

    place: SlotPlace  # that it read
    wrote: int  # the slot of what it wrote
    pieces: tuple[Piece, ...] = ()
    originals: tuple[Piece, ...] = ()
    partial: bool = False  # there is more that it cannot tell: pieces that are right clear nobody


@dataclass(frozen=True)
class Timed:
    """samples[i][r]: seconds per launch of contender i in round r."""

    samples: tuple[tuple[float, ...], ...]
    discarded: int = 0  # rounds thrown away because the clock throttled
    busy: float = 0.0  # seconds the device spent in the launches timed
    looks: tuple[TimedLook, ...] = ()
    clocks: tuple[Clock, ...] = ()  # as they stood after the last round of several contenders
    disturbed: int = 0  # rounds taken again because others used the device meanwhile
    disturbance: str = ""  # what was seen where quiet ones were not to be had, in a sentence; empty: quiet
    left_over: str = ""  # why the last contender's are no program's times: what it finds in local memory
    waited: float = 0.0


@dataclass(frozen=True)
class AllTimed:
    timed: tuple[Timed, ...]
    waited: float = 0.0


WAITING = (Ran, Judged, AllJudged, Timed, AllTimed)  # to what a worker may have waited for the device


@dataclass(frozen=True)
class Expected:
    input_digests: tuple[tuple[str, str], ...]
    gap_digests: tuple[tuple[str, str], ...]  # of in-place arrays: the memory between strided elements
    arrays: tuple[ExpectedArray, ...]
    inputs: tuple[str, ...] = ()  # that were sent


@dataclass(frozen=True)
class ClustersHeld:
    most: tuple[int | None, ...]  # of each launch; None: it has no clusters, or nobody says


@dataclass(frozen=True)
class OutputCompared:
    reason: str = ""  # why it is wrong; empty: it is right


@dataclass(frozen=True)
class ToolsFound:
    name: str = ""  # of the program, with its version
    missing: str = ""  # why there is none


@dataclass(frozen=True)
class EndedTool:
    """How a run under a tool ended."""

    code: int
    log: str
    stderr: str
    reply: str = ""  # why the worker could not do what it was asked; empty: it did, or nobody knows
    replies: int = 0  # that the worker gave
    fault: str = ""  # why it was ended, or did not begin


@dataclass(frozen=True)
class Counted:
    counters: Counters | None  # what the hardware counted
    why_not: str = ""
    left_out: tuple[str, ...] = ()  # what the tool that is there cannot count, by its own names
    lasting: bool = False  # why it did not will hold for whatever is counted next


@dataclass(frozen=True)
class Failed:
    """The request could not be carried out, through no fault of the worker."""

    what: str  # build | memory | launch | lost | user | unsupported | forgotten | busy | internal
    message: str


OfWork = Built | Done | Ran | Judged | AllJudged | Timed | AllTimed | Expected | OutputCompared | ClustersHeld
Reply = Protection | Devices | Compilers | OfWork | ToolsFound | EndedTool | Counted | Failed
REPLY_TYPES: dict[str, type[Reply]] = {t.__name__: t for t in get_args(Reply)}
