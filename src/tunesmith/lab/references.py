"""What cases should give: the user's reference, asked for in its own process, on all rows or a sample."""

from __future__ import annotations

import ast
import inspect
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends.messages import (
    CompareOutputs,
    Draw,
    Expected,
    ExpectedArray,
    Failed,
    OutputCompared,
    Refer,
    Reply,
)
from tunesmith.base.errors import BadInput
from tunesmith.base.text import seed_of, truncate_text
from tunesmith.lab.memory import as_array, drop_oldest, gaps_digest, memory_digest
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerTimedOut
from tunesmith.problem.cases import Case
from tunesmith.problem.compare import key_arrays
from tunesmith.problem.inputs import (
    NoElement,
    draw_array,
    draw_rows,
    formula_values,
    pack_elements,
    shaped_view,
    slot_items,
)
from tunesmith.problem.plan import BufferPlan, Plan, show_sizes
from tunesmith.problem.problem import Problem, PythonFunction, RecordedCase, element_type

Arrays = Mapping[str, NDArray[Any]]
REFERENCE_SECONDS, REFERENCE_WORKERS = 120.0, 6
SAMPLED_ABOVE = 1 << 22  # elements; larger cases of row-independent operators are checked on sampled rows
UNREFERRED_ABOVE = 1 << 30
SAMPLED_ROWS = 48
KNOWN_BYTES = 3 << 30  # of answers, for when they are asked for again: winners share cases
PREPARED = 16  # answers that wait to be asked for
CONTESTED_ROWS = 64  # so many more of a case, where a candidate and the original differ
USER_CODE_HINT = "mend the function named in problem.toml"


@dataclass(frozen=True)
class Referred:
    """The reference's answer as it travels; `rows` are those it was asked for, None: all."""

    answer: Expected
    blobs: tuple[bytes, ...]
    rows: NDArray[np.intp] | None
    sampled: frozenset[str]  # arrays the rows apply to
    keys: tuple[bytes, ...] = ()  # the memory of inputs that indices point into, where it was asked for

    @property
    def nbytes(self) -> int:
        return sum(map(len, (*self.blobs, *self.keys)))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        specs = self.answer.arrays
        return {spec.name: spec.view(b) for spec, b in zip(specs, self.blobs[: len(specs)], strict=True)}

    def key_arrays(self, plan: Plan) -> dict[str, NDArray[Any]]:
        pairs = zip(key_arrays(plan), self.keys, strict=True)
        return {name: as_array(plan.buffer(name), memory) for name, memory in pairs}


def draw_of(problem: Problem, case: Case) -> Draw:
    if (recorded := problem.recorded_case(case.distribution)) is not None:
        return Draw("normal", case.seed, recorded.inputs)
    return Draw(case.distribution, case.seed, problem.inputs, case.place)


@dataclass(frozen=True)
class _CaseToRefer:
    case: Case
    digests: bool
    keys: bool
    contested: frozenset[int]


class References:
    """Asked by several threads; one question is with as many processes as there are workers at most."""

    def __init__(self, problem: Problem, workers: Sequence[WorkerProcess]) -> None:
        self._problem = problem
        self._workers = workers
        self._idle: queue.SimpleQueue[WorkerProcess] = queue.SimpleQueue()
        for worker in workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(len(workers), thread_name_prefix="reference")
        self._lock = threading.Lock()
        self._coming: dict[_CaseToRefer, Future[Referred]] = {}
        self._known: OrderedDict[_CaseToRefer, Referred] = OrderedDict()
        self._contested: dict[Case, frozenset[int]] = {}

    def start(self) -> None:
        for worker in self._workers:
            worker.ensure_started()

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def contest(self, case: Case, rows: Sequence[int]) -> bool:
        """From now on the answer for the case has these rows too; False where there are none, or too many."""
        wider = self._contested.get(case, frozenset()) | set(rows)
        if not rows or len(wider) > CONTESTED_ROWS:
            return False
        self._contested[case] = wider
        return True

    def prepare(self, case: Case, plan: Plan, digests: bool) -> None:
        """Have the answer computed while others work: somebody is about to ask."""
        self._find_or_submit(self._make_question(case, digests), plan)

    def ask(self, case: Case, plan: Plan, digests: bool, keys: bool = False) -> Referred:
        """With `digests` those of all inputs; where nobody asks, large ones need not be drawn whole.
        Where rows are sampled, the contested ones are among them. With either, what indices point into."""
        question = self._make_question(case, digests, keys)
        found = self._find_or_submit(question, plan)
        if isinstance(found, Referred):
            return found
        try:
            answer = found.result()
        finally:
            with self._lock:
                self._coming.pop(question, None)
        if not digests:  # who wants them asks once
            with self._lock:
                self._known[question] = answer
                drop_oldest(self._known, lambda referred: referred.nbytes, KNOWN_BYTES)
        return answer

    def _make_question(self, case: Case, digests: bool, keys: bool = False) -> _CaseToRefer:
        return _CaseToRefer(case, digests, keys or digests, self._contested.get(case, frozenset()))

    def _find_or_submit(self, question: _CaseToRefer, plan: Plan) -> Referred | Future[Referred]:
        with self._lock:
            if question in self._known:
                self._known.move_to_end(question)
                return self._known[question]
            if question not in self._coming:
                for nobody_asked in [q for q, one in self._coming.items() if one.done()][:-PREPARED]:
                    del self._coming[nobody_asked]
                self._coming[question] = self._threads.submit(self._request_reference, question, plan)
            return self._coming[question]

    def _request_reference(self, question: _CaseToRefer, plan: Plan) -> Referred:
        case, accuracy = question.case, self._problem.accuracy
        recorded = self._problem.recorded_case(case.distribution)
        rows = None if case.is_odd or recorded else self._rows(plan, case.seed)
        if rows is not None and question.contested:
            rows = np.union1d(rows, np.asarray(sorted(question.contested), dtype=np.intp))
        arrays = [a for a in self._problem.arguments if a.is_array and a.shape and rows is not None]
        sampled = frozenset(a.name for a in arrays if a.shape[0].text == accuracy.independent)
        asked = tuple(rows.tolist()) if rows is not None else ()
        # Too large to be computed whole: there candidates are held to the original alone.
        huge = rows is None and max(b.count for b in plan.buffers) > UNREFERRED_ABOVE
        reference = None if huge else _recorded_results(recorded, plan) if recorded else accuracy.reference
        # Winners share them. In a search both processes make their own: who makes others each time is caught.
        sends = case.level == "verify" and not question.digests
        keys = key_arrays(plan) if question.keys else ()
        draw, of_rows = draw_of(self._problem, case), (asked, accuracy.independent, tuple(sorted(sampled)))
        request = Refer(reference, plan, draw, *of_rows, question.digests, sends, keys)
        reply, blobs = self._request(request, case, reference)
        assert isinstance(reply, Expected)
        end = len(blobs) - len(keys)
        return Referred(reply, blobs[:end], rows, sampled, blobs[end:])

    def compare(self, case: Case, plan: Plan, output: str, got: Arrays, expected: Arrays) -> str | None:
        """What the user's function says of an output; None: it is right."""
        function = self._problem.argument(output).checker
        assert function is not None, "nobody else asks"
        parts = [sent_array(name, array) for arrays in (got, expected) for name, array in arrays.items()]
        specs, blobs = [spec for spec, _ in parts], [blob for _, blob in parts]
        draw, both = draw_of(self._problem, case), (tuple(specs[: len(got)]), tuple(specs[len(got) :]))
        reply, _ = self._request(CompareOutputs(function, plan, draw, output, *both), case, function, blobs)
        assert isinstance(reply, OutputCompared)
        return f"{output}: {reply.reason}" if reply.reason else None

    def compare_candidate(
        self, case: Case, plan: Plan, output: str, got: Arrays, expected: Arrays
    ) -> str | None:
        """The same of what a candidate gave: if the function fails there, no verdict is not a good one."""
        try:
            return self.compare(case, plan, output, got, expected)
        except BadInput as error:
            return f"{output} cannot be compared: {error}"

    def _request(
        self,
        request: Refer | CompareOutputs,
        case: Case,
        called: PythonFunction | None,
        sent: Sequence[bytes] = (),
    ) -> tuple[Reply, tuple[bytes, ...]]:
        functions = [f.path for f in (called, self._problem.inputs) if f is not None]
        path = " or ".join(dict.fromkeys(functions)) or "drawing the inputs"
        where = show_sizes(dict(case.sizes))
        worker = self._idle.get()
        try:
            reply, blobs = worker.request(request, sent, deadline=REFERENCE_SECONDS)
        except WorkerTimedOut as error:
            raise BadInput(f"{path} took more than {REFERENCE_SECONDS:.0f} s at {where}") from error
        except WorkerDied as error:
            words = f"{path} ended its process at {where}: {error}"
            raise BadInput(words, hint=USER_CODE_HINT) from error
        finally:
            self._idle.put(worker)
        if isinstance(reply, Failed):
            raise BadInput(reply.message, hint=USER_CODE_HINT)
        return reply, blobs

    def refuse_varying(self, wanted: Mapping[str, str], given: Mapping[str, str]) -> None:
        """Linked inputs must be alike in both processes, or the reference says nothing about the kernel."""
        made_by = self._problem.inputs
        for name, digest in given.items():
            if made_by is not None and wanted.get(name) != digest:
                words = f"gives {name} other values when it is called again"
                raise BadInput(str(function_fault(made_by, words)), hint="draw every random number from rng")

    def _rows(self, plan: Plan, seed: int) -> NDArray[np.intp] | None:
        accuracy = self._problem.accuracy
        size = accuracy.independent
        if size is None or accuracy.reference is None or max(b.count for b in plan.buffers) <= SAMPLED_ABOVE:
            return None
        if any(b.compare == "function" for b in plan.compared()):
            return None  # which may want to see all of it
        if accuracy.baseline_may_fail:
            return None  # the other rows would be compared with an original that nobody vouches for
        total = dict(plan.sizes)[size]
        if total <= SAMPLED_ROWS:
            return None
        inner = np.random.default_rng(seed).choice(total, SAMPLED_ROWS, replace=False)
        return np.unique(np.concatenate([[0, total - 1], inner])).astype(np.intp)


def references_of(problem: Problem, spawn: Callable[[str], WorkerProcess], most: int) -> References:
    return References(problem, [spawn("reference") for _ in range(min(REFERENCE_WORKERS, most))])


Array = NDArray[Any]


class UserCodeFailed(Exception):
    """The user's function raised, asked for something unknown or returned the wrong thing."""


def load_function(function: PythonFunction) -> Callable[..., Any]:
    namespace: dict[str, object] = {"__name__": "tunesmith_user_code", "__file__": function.path}
    try:
        exec(compile(function.text, function.path, "exec"), namespace)
    except Exception as error:
        raise UserCodeFailed(describe_user_error(error, function)) from error
    found = namespace.get(function.function)
    if not callable(found):
        raise UserCodeFailed(f"{function.path} has no function {function.function!r}")
    return found


def call_user_function(function: PythonFunction, offered: Mapping[str, object]) -> Any:
    """Call it with those of the offered names that its signature mentions."""
    target = load_function(function)
    parameters = inspect.signature(target).parameters.values()
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    wanted = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    missing = [p.name for p in wanted if p.name not in offered and p.default is p.empty]
    if missing:
        raise function_fault(function, f"asks for {', '.join(missing)}; it may ask for {', '.join(offered)}")
    chosen = dict(offered) if takes_all else {p.name: offered[p.name] for p in wanted if p.name in offered}
    try:
        with np.errstate(all="ignore"):
            return target(**chosen)
    except Exception as error:
        raise UserCodeFailed(describe_user_error(error, function)) from error


def as_number_array(value: object, function: PythonFunction, what: str) -> NDArray[Any]:
    """The value as an array, where it is one of real numbers."""
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise function_fault(function, f"{what}: {error}") from error
    if array.dtype.kind in "OSUMmc" and (array.shape or value is None):
        raise function_fault(function, f"{what}, but {'None' if value is None else f'of {array.dtype}'}")
    return array


def function_fault(function: PythonFunction, words: str) -> UserCodeFailed:
    """The failure of a function that ran and did something else than it should."""
    lines = [n.lineno for n in ast.parse(function.text).body if getattr(n, "name", "") == function.function]
    return UserCodeFailed(f"{function.path}:{lines[-1] if lines else 1}: {function.function} {words}")


def describe_user_error(error: BaseException, function: PythonFunction) -> str:
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == function.path:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno
    where = f"{function.path}:{line}: " if line else ""
    sandboxed = " (user code runs in a sandbox, without files and network: see --sandbox)"
    return f"{where}{type(error).__name__}: {error}{sandboxed if isinstance(error, PermissionError) else ''}"


def draw_inputs(plan: Plan, draw: Draw, linked: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """The memory of every array the kernel reads, stride gaps included, as flat arrays by name; `linked`
    are those that the user's function has made already."""
    linked = linked_inputs(plan, draw) if linked is None else linked
    return {
        b.name: linked[b.name] if b.name in linked else draw_memory(b, draw)
        for b in plan.buffers
        if b.role in ("input", "inout")
    }


def draw_memory(b: BufferPlan, draw: Draw) -> Array:
    """An array's memory, that no function of the user's makes."""
    if draw.place is None:
        return draw_array(b, draw.distribution, draw.seed)
    return slot_items(b, draw.distribution, draw.seed, draw.place)


def compute_expected(request: Refer) -> tuple[Expected, tuple[bytes, ...]]:
    plan, draw = request.plan, request.draw
    # What nobody asks the digest of is drawn when it is needed, and no more of it than that.
    linked = linked_inputs(plan, draw)
    inputs = draw_inputs(plan, draw, linked) if request.digests else linked
    digests, gaps = _input_digests(plan, inputs)
    sent = tuple(linked) if request.sends_inputs else ()
    memory = [linked[name].tobytes() for name in sent]
    for name in request.keys:
        known = inputs.get(name)
        memory.append((draw_memory(plan.buffer(name), draw) if known is None else known).tobytes())
    if request.reference is None:
        return Expected(digests, gaps, (), sent), tuple(memory)
    offered = offered_numbers(plan)
    if request.rows and request.independent:
        offered[request.independent] = len(request.rows)
    for buffer in plan.buffers:
        if buffer.role in ("input", "inout"):
            offered[buffer.name] = as_offered(
                buffer, _reference_view(buffer, inputs.get(buffer.name), request)
            )
    answer = _by_name(call_user_function(request.reference, offered), plan, request.reference)
    arrays, blobs = [], []
    for buffer in plan.compared():
        shape = buffer.shape
        if request.rows and buffer.name in request.independent_arrays:
            shape = (len(request.rows), *shape[1:])
        what = f"returned no array of numbers for {buffer.name}"
        array = as_number_array(answer[buffer.name], request.reference, what)
        if array.shape != shape:
            words = f"returned shape {array.shape} for {buffer.name}, expected {shape}"
            raise function_fault(request.reference, words)
        exact = buffer.compare in ("exact", "function") and array.dtype.kind in "iub"
        kind = ("uint64" if array.dtype.kind == "u" else "int64") if exact else "float64"
        arrays.append(ExpectedArray(buffer.name, kind, shape))
        blobs.append(array.astype(kind).tobytes())
    return Expected(digests, gaps, tuple(arrays), sent), (*blobs, *memory)


def offered_numbers(plan: Plan) -> dict[str, object]:
    """Sizes, and scalars rounded to their types, which the user's functions may ask for by name."""
    scalars = {s.name: element_type(s.type).numpy.type(s.value).item() for s in plan.scalars}
    return {**scalars, **dict(plan.sizes)}


def as_offered(buffer: BufferPlan, seen: Array) -> Array:
    return seen.astype(np.float64) if element_type(buffer.type).kind == "float" else seen.copy()


def sent_array(name: str, array: Array) -> tuple[ExpectedArray, bytes]:
    """Of floats float64, integers as they are."""
    kept = array if array.dtype.kind in "iu" else array.astype(np.float64)
    return ExpectedArray(name, kept.dtype.str, kept.shape), kept.tobytes()


def _reference_view(buffer: BufferPlan, memory: Array | None, request: Refer) -> Array:
    """What the reference sees of an array: all of it, or the rows asked for; drawn where it is not yet."""
    rows = request.rows if buffer.name in request.independent_arrays else ()
    draw = request.draw
    if memory is None and rows and draw.place is None:
        return draw_rows(buffer, draw.distribution, draw.seed, rows)
    view = shaped_view(draw_memory(buffer, draw) if memory is None else memory, buffer)
    return view[np.asarray(rows, dtype=np.intp)] if rows else view


def _input_digests(
    plan: Plan, inputs: Mapping[str, Array]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Of the inputs, and of what lies between the elements of strided arrays that are changed in place."""
    whole = tuple((name, memory_digest(array.tobytes())) for name, array in inputs.items())
    strided = [b for b in plan.buffers if b.role == "inout" and b.extent != b.count and b.name in inputs]
    return whole, tuple((b.name, gaps_digest(b, inputs[b.name].tobytes())) for b in strided)


def linked_inputs(plan: Plan, draw: Draw) -> dict[str, Array]:
    """The memory of the arrays that the user's own function or an expression makes."""
    try:
        by_index = {b.name: laid_out(b, formula_values(b)) for b in plan.buffers if b.formula}
    except NoElement as error:
        raise UserCodeFailed(f"init: {error}") from error
    return by_index | (_made_by_function(plan, draw) if draw.inputs is not None else {})


def _made_by_function(plan: Plan, draw: Draw) -> dict[str, Array]:
    assert draw.inputs is not None
    seed = draw.seed if draw.place is None else seed_of(draw.seed, draw.place.version)
    made = call_user_function(draw.inputs, {"rng": np.random.default_rng(seed), **dict(plan.sizes)})
    if not isinstance(made, dict):
        raise function_fault(draw.inputs, f"returned {type(made).__name__}, not a dict of arrays")
    known = {b.name: b for b in plan.buffers if b.role in ("input", "inout")}
    for name in made:
        if name not in known:
            raise function_fault(
                draw.inputs, f"gave {name}, which is no input: inputs are {', '.join(known)}"
            )
        if known[name].formula:
            raise function_fault(
                draw.inputs, f"gave {name}, which has an init in the problem file: remove either"
            )
    return {
        name: _place_linked_values(buffer, made[name], draw.inputs)
        for name, buffer in known.items()
        if name in made
    }


def _place_linked_values(buffer: BufferPlan, values: object, made_by: PythonFunction) -> Array:
    """Linked values in the buffer's memory layout."""
    array = as_number_array(values, made_by, f"gave no array of numbers for {buffer.name}")
    if array.shape != buffer.shape:
        raise function_fault(made_by, f"gave {buffer.name} shape {array.shape}, expected {buffer.shape}")
    element = element_type(buffer.type)
    if element.packed > 1:
        low, high = element.bounds
        if array.size and not (low <= array.min() and array.max() <= high):
            raise function_fault(
                made_by, f"gave {buffer.name} values outside {element.name}, {low} to {high}"
            )
    return laid_out(buffer, array)


def laid_out(buffer: BufferPlan, array: Array) -> Array:
    """Values as they lie in the buffer's memory."""
    element = element_type(buffer.type)
    if element.packed > 1:
        return pack_elements(array.astype(element.numpy), element)
    # As plain words: NumPy makes no strided view of a type that is not its own.
    memory = np.zeros(buffer.extent, dtype=f"u{element.bytes}")
    strides = tuple(s * memory.itemsize for s in buffer.strides)
    view = np.lib.stride_tricks.as_strided(memory, buffer.shape, strides)
    view[...] = array.astype(element.numpy).view(memory.dtype)
    return memory.view(element.numpy)


def _by_name(answer: object, plan: Plan, function: PythonFunction) -> Mapping[str, object]:
    names = [b.name for b in plan.compared()]
    if isinstance(answer, dict):
        missing = [name for name in names if name not in answer]
        if missing:
            raise function_fault(
                function, f"returned no {', '.join(missing)}, only {', '.join(map(str, answer))}"
            )
        return answer
    parts = answer if isinstance(answer, tuple) else (answer,)
    if len(parts) != len(names):
        raise function_fault(
            function, f"returned {len(parts)} arrays, expected {len(names)}: {', '.join(names)}"
        )
    return dict(zip(names, parts, strict=True))


def _recorded_results(recorded: RecordedCase, plan: Plan) -> PythonFunction | None:
    """None where what was recorded cannot be held against a result: of codes it does not tell how near they
    were to the next one. Candidates are then held to the original on these inputs."""
    return None if any(b.compare == "codes" for b in plan.compared()) else recorded.results


LONGEST_REASON = 500  # characters


def answer_comparison(request: CompareOutputs, blobs: Sequence[bytes]) -> OutputCompared:
    got = _unpack_arrays(request.got, blobs[: len(request.got)])
    expected = _unpack_arrays(request.expected, blobs[len(request.got) :])
    reason = run_compare_function(request.function, request.plan, request.draw, request.output, got, expected)
    return OutputCompared(reason or "")


def run_compare_function(
    function: PythonFunction,
    plan: Plan,
    draw: Draw,
    output: str,
    got: Mapping[str, Array],
    expected: Mapping[str, Array],
) -> str | None:
    """Why the output is wrong; None: it is right."""
    buffer = plan.buffer(output)
    offered = offered_numbers(plan)
    for name, memory in draw_inputs(plan, draw).items():
        offered[name] = as_offered(plan.buffer(name), shaped_view(memory, plan.buffer(name)))
    for other in plan.compared():
        mine, theirs = (as_offered(other, a[other.name]) for a in (got, expected))
        offered |= {f"got_{other.name}": mine, f"expected_{other.name}": theirs}
    offered |= {"got": offered[f"got_{output}"], "expected": offered[f"expected_{output}"]}
    offered |= {"rtol": buffer.rtol, "atol": buffer.atol}
    found = call_user_function(function, offered)
    if found is None or isinstance(found, bool | np.bool_):
        return None if found is None or found else f"{function.path}: {function.function} says it is wrong"
    if isinstance(found, str):
        return f"{function.path}: {truncate_text(found.strip(), LONGEST_REASON)}" if found.strip() else None
    words = "True or None where the output is right, False or a text that says why where it is wrong"
    raise function_fault(function, f"returned {type(found).__name__}: it must return {words}")


def _unpack_arrays(specs: Sequence[ExpectedArray], blobs: Sequence[bytes]) -> dict[str, Array]:
    pairs = zip(specs, blobs, strict=True)
    return {spec.name: spec.view(blob) for spec, blob in pairs}
