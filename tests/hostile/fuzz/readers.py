"""Every other reader of what somebody else has written, with inputs to begin from."""

from __future__ import annotations

import functools
import io
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
from typer.testing import CliRunner

from tests.core.lab.labs import fault_template, lab, scale_problem
from tests.core.source.corpus import EXAMPLES
from tests.hostile.fuzz.certificates import CERTIFICATES
from tests.hostile.fuzz.driver import Reader
from tests.hostile.fuzz.journals import EVENTS, JOURNALS
from tests.hostile.fuzz.mutations import text_mutation, tree_mutation
from tests.running import EXAMPLES as EXAMPLE_FOLDER
from tests.running import FIXTURES
from tests.samples import a_device
from tunesmith.agents import prompting, single
from tunesmith.backends.messages import REPLY_TYPES, REQUEST_TYPES
from tunesmith.base.codec import (
    Frame,
    Malformed,
    decode_tagged,
    encode_json,
    encode_tagged,
    frame_parts,
    read_frame,
)
from tunesmith.base.errors import BadInput
from tunesmith.cli.app import app
from tunesmith.expert.author import ExpertAuthor, reading_lines
from tunesmith.expert.author import try_read_kernel as read_kernel
from tunesmith.expert.drafts.draft import draft_problem
from tunesmith.plugins.hosts import hosts, transport
from tunesmith.problem.cases import full_cases, smoke_cases
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import configs_of, original_variant
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import vet_source, vetted_text
from tunesmith.problem.vetting.decided import decide_source
from tunesmith.run.config import RunConfig, resolve_config
from tunesmith.run.events import Reply
from tunesmith.run.folder import INBOX, FolderInbox
from tunesmith.run.library import foreign_entry
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session import place as machine
from tunesmith.session.library import matching_entries, open_library
from tunesmith.session.problems import load_problem
from tunesmith.source.lex import lex
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.tree import Unreadable
from tunesmith.space import expr, expr_arrays

DEVICE = a_device()
SAMPLES = 40  # configurations or cases looked at: enough to see whether they can be
DEVICE_NAMES = ("device.sms", "device.warp", "device.shared")


# -- problems, templates, expressions -------------------------------------------------------------------


@functools.cache
def problems() -> tuple[Path, ...]:
    every = [*EXAMPLE_FOLDER.glob("*/*/problem.toml"), *FIXTURES.glob("**/problem.toml")]
    return tuple(sorted(every))


@functools.cache
def files() -> dict[str, str]:
    """What problems name, by name: for this purpose one of each is enough."""
    found: dict[str, str] = {}
    for problem in problems():
        for path in problem.parent.iterdir():
            if path.suffix in (".cu", ".cl", ".hip", ".fake", ".py"):
                found.setdefault(path.name, path.read_text())
    return found


def read_beside(name: str) -> str:
    if name not in files():
        raise BadInput(f"there is no file {name!r}")
    return files()[name]


def read_problem(data: bytes) -> None:
    problem = parse_problem(text_of(data), path="problem.toml", read=read_beside)
    smoke_cases(problem, original_variant(problem), DEVICE, 0)
    full_cases(problem, original_variant(problem), DEVICE, 0)


def text_of(data: bytes) -> str:
    """As files are read: what is no UTF-8 is turned away before anybody looks at it."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput("not UTF-8") from error


@functools.cache
def loaded() -> tuple[Problem, ...]:
    found = []
    for path in problems():
        try:
            found.append(load_problem(path).definition)
        except BadInput:
            continue  # some fixtures are wrong on purpose
    return tuple(found)


def numbered(data: bytes) -> tuple[Problem, str]:
    """A problem by its number in the first line, and the text after it."""
    head, _, text = data.partition(b"\n")
    number = int(head) if re.fullmatch(rb"\d{1,4}", head) else 0
    return loaded()[number % len(loaded())], text_of(text)


def template_seeds() -> list[bytes]:
    found, author = [], ExpertAuthor()
    for number, problem in enumerate(loaded()):
        offered, _ = author.available(problem, DEVICE)
        made = author.write(Refactoring(offered), problem, DEVICE)
        if isinstance(made, Written):
            found.append(b"%d\n%s" % (number, made.text.encode()))
    for path in problems():
        for template in path.parent.glob("template.*"):
            same = [n for n, p in enumerate(loaded()) if p.name == load_problem(path).definition.name]
            found.append(b"%d\n%s" % (same[0], template.read_bytes()))
    return found


def read_template(data: bytes) -> None:
    problem, text = numbered(data)
    template = parse_template(text, path="template", problem=problem)
    configs = configs_of(problem, template, DEVICE)
    len(configs)
    vet_source(text, problem.kernel.text, problem.kernel.language)


def expressions() -> list[bytes]:
    texts = [data.decode() for data in (path.read_bytes() for path in problems())]
    found = {match for text in texts for match in re.findall(r'"([^"\n]+)"', text)}
    found |= {"d % VEC == 0 and BLOCK in (32, 64)", "ceildiv(n, 4) if n > 3 else min(n, d) // 2"}
    return [one.encode() for one in sorted(found) if _parses(one)]


def _parses(text: str) -> bool:
    try:
        expr.parse_expr(text)
    except BadInput:
        return False
    return True


def read_expression(data: bytes) -> None:
    found = expr.parse_expr(text_of(data))
    for value in (0, 1, -7, 2**31, 2**62):
        values = dict.fromkeys(found.names, value)
        found.holds(values)
        columns = {name: np.array([value, 1, 3]) for name in (*found.names, "x")}
        expr_arrays.evaluate_truth(found, columns)
        found.bind(dict.fromkeys(sorted(found.names)[:1], value)).holds(values)


# -- kernels --------------------------------------------------------------------------------------------


def kernel_seeds() -> list[bytes]:
    return [f"{example.language}\n{example.text}".encode() for example in EXAMPLES]


def read_source(data: bytes) -> None:
    """Parser, vetting, and the reader of `init`."""
    head, _, rest = data.partition(b"\n")
    text = text_of(rest)
    known = head.decode("ascii", "replace")
    language = known if known in ("cuda", "hip", "opencl") else "cuda"
    for read in (
        lambda: read_source_tree(text, language),  # type: ignore[arg-type]
        lambda: vet_source(text, "", language),
        lambda: draft_problem(text, "kernel.cu", language),  # type: ignore[arg-type]
    ):
        try:
            read()
        except (BadInput, Unreadable):
            continue


def hostile_seeds() -> list[bytes]:
    from tests.core.problem import test_decided as attacks

    inside, kernel = attacks.SYSTEM_CALL, attacks.OPENCL
    found = [
        f"opencl\n{kernel.replace('{ x', '{ ' + form.format(inside) + ' x')}"
        for form in attacks.OTHERS.values()
    ]
    found += [f"opencl\n#if {condition}\n{inside}\n#endif\n{kernel}" for condition in attacks.CONDITIONS]
    inside, kernel = "n = clock64();", attacks.CUDA
    found += [
        f"cuda\n{kernel.replace('{ x', '{ ' + form.format(inside) + ' x')}"
        for form in attacks.FOR_CUDA.values()
    ]
    return [text.encode() for text in found]


def read_hostile(data: bytes) -> None:
    """A verdict whatever it is; what is accepted has nothing left to decide, and stays as it is."""
    head, _, rest = data.decode("utf-8", "surrogateescape").partition("\n")
    language = head if head in ("cuda", "hip", "opencl") else "opencl"
    header = "#ifndef H\n#define H\n#define TWICE(a) a + a\n#define J(a, b) a##b\n#endif\n"
    text = decide_source(rest, '#include "h.h"\n', language, (("h.h", header),))
    found = vetted_text(rest, '#include "h.h"\n', language, (header,))
    for one in (text, found):
        if isinstance(one, str):
            assert decide_source(one, '#include "h.h"\n', language, (("h.h", header),)) == one
            left = {line.text.split()[0] for line in lex(one) if line.kind == "directive" and line.text}
            assert left <= {"include", "pragma", "line", "define", "undef"}, left


def read_by_expert(data: bytes) -> None:
    """A kernel as the expert reads it, and the template that it writes of it."""
    problem, text = numbered(data)
    changed = replace(problem, kernel=replace(problem.kernel, text=text))
    reading_lines(changed, read_kernel(changed))
    offered, _ = ExpertAuthor().available(changed, DEVICE)
    ExpertAuthor().write(Refactoring(offered), changed, DEVICE)


def read_knobs(data: bytes) -> None:
    """The numbers of a kernel's text, whether it can be read or not."""
    problem, text = numbered(data)
    changed = replace(problem, kernel=replace(problem.kernel, text=text))
    ExpertAuthor().write(Refactoring(("knobs",)), changed, DEVICE)


def expert_seeds() -> list[bytes]:
    return [b"%d\n%s" % (number, problem.kernel.text.encode()) for number, problem in enumerate(loaded())]


# -- what models and workers say ------------------------------------------------------------------------


def replies() -> list[bytes]:
    return [path.read_bytes() for path in sorted(FIXTURES.glob("conversations/**/*.reply.md"))]


def read_reply(data: bytes) -> None:
    """Nothing a model says raises anything: what cannot be used is answered with the reason."""
    reply = Reply(data.decode("utf-8", "replace"))
    prompting.read_file(reply)
    prompting.read_kernel(reply)
    single.read_turn(reply)
    single.words_around(reply.text)
    shapes = (prompting.PlanReply, prompting.RewriteReply, prompting.StopReply, prompting.Cases)
    for kind in (*shapes, prompting.Analysis):
        prompting.read_json(reply, kind)
    prompting.shorten_middle(reply.text)
    prompting.fence_with_backticks(reply.text)


def frame_seeds() -> list[bytes]:
    """All that a lab and its workers say to each other about one kernel."""
    with lab(scale_problem(), fault_template()) as harness:
        for kind in range(3):  # of the faults that end no process
            harness.outcome(KIND=kind)
        said = [part for one in harness.log.served for part in (one.request, one.reply)]
    unique = {encode_tagged(message) for message in said}
    return [b"".join(frame_parts(one, (b"blob", b""), 3.0)) for one in sorted(unique)]


def read_frames(data: bytes) -> None:
    source = io.BytesIO(data)
    while (frame := read_frame(source.read)) is not None:
        decode_tagged(frame.json, {**REQUEST_TYPES, **REPLY_TYPES})


def frame_mutation(rng: Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    frame = _frame(data)
    if frame is None or rng.random() < 0.3:
        return text_mutation(rng, data, pool)
    try:
        tree = json.loads(frame.json)
    except ValueError:
        return text_mutation(rng, data, pool)
    changed = json.dumps(tree_mutation(rng, tree, [tree])).encode()
    return b"".join(frame_parts(changed, frame.blobs, frame.deadline))


def _frame(data: bytes) -> Frame | None:
    try:
        return read_frame(io.BytesIO(data).read)
    except Malformed:
        return None


# -- files of ours that others may have changed ---------------------------------------------------------


def json_mutation(rng: Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    try:
        tree = json.loads(data)
    except ValueError:
        return rng.choice(pool)
    return json.dumps(tree_mutation(rng, tree, [tree])).encode()


def reports() -> list[bytes]:
    from tests.hostile.fuzz.journals import folder, recorded
    from tunesmith import api
    from tunesmith.deliver.pages.page import report_json

    found = []
    with tempfile.TemporaryDirectory(prefix="tunesmith-fuzz-") as place:
        for journal in recorded(Path(place)):
            (folder() / "run" / "journal.jsonl").write_bytes(journal)
            found.append(report_json(api.load_run(folder() / "run").result))
    return found


def asked(*arguments: object, **variables: str) -> None:
    """A command in this process, with the exception where it is none of ours."""
    ended = CliRunner().invoke(app, list(map(str, arguments)), env={"TUNESMITH_DEBUG": "1", **variables})
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    assert ended.exit_code in (0, 2, 6), ended.stderr


def read_report(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="tunesmith-fuzz-") as place:
        file = Path(place) / "report.json"
        file.write_bytes(data)
        for more in ((), ("--json",), ("--fail-below", "0.9")):
            asked("diff", file, file, *more)


def entry_seeds() -> list[bytes]:
    from tests.hostile.fuzz.journals import folder, recorded
    from tunesmith.run.folder import RunFolder
    from tunesmith.run.library import entries_of
    from tunesmith.session.problems import problem_texts, state_and_templates, texts_of

    found = []
    with tempfile.TemporaryDirectory(prefix="tunesmith-fuzz-") as place:
        for journal in recorded(Path(place)):
            (folder() / "run" / "journal.jsonl").write_bytes(journal)
            own = RunFolder.open(folder() / "run")
            state, templates = state_and_templates(own)
            assert state.started is not None
            texts = problem_texts(texts_of(own, state.started))
            entries = entries_of(templates.problem, state, templates, texts, "2026-01-01", "here")
            found += [encode_json(entry) for entry in entries]
    return found


def read_entry(data: bytes) -> None:
    name = re.search(rb'"name": ?"([\w.-]{1,80})"', data)
    called = name[1].decode() if name else "entry"
    with tempfile.TemporaryDirectory(prefix="tunesmith-fuzz-") as place:
        own = {"TUNESMITH_LIBRARY_DIR": place}
        with open_library(RunConfig(library_dir=place)) as library:
            sql = "INSERT INTO entries VALUES (?, '', '', '', ?)"
            library._write(lambda connection: connection.execute(sql, (called, data)))
            asked("library", **own)
            asked("library", "show", called, **own)
            entry = library.get(called)
            for problem in loaded()[:5]:
                matching_entries(library, problem, lambda _text: None)
        foreign_entry(entry)


def remote_seeds() -> list[bytes]:
    """What goes over a connection to another host, either way."""
    messages: list[tuple[int, object, list[bytes]]] = [
        (0, transport.Greeting("host", "0.1.0", "gpu1", "0" * 64, cores=8), []),
        (1, transport.KeepFile(), [bytes(range(256))]),
        (3, transport.StartWorker("cuda", "device", "auto", "0" * 64), []),
        (3, transport.EndedWorker("died", "last words"), []),
        (3, transport.StopWorker(), []),
    ]
    parts = [
        b"".join(transport.call_parts(number, number, frame_parts(encode_tagged(value), blobs)))
        for number, value, blobs in messages
    ]
    return [b"".join(parts), *parts]


def read_remote(data: bytes) -> None:
    """As both ends do: a frame is read whole, or refused."""
    source = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
    while (found := transport.read_call(source)) is not None:
        kinds = {**transport.HOST_MESSAGES, **transport.HOST_REPLIES}
        message = decode_tagged(found[2].json, kinds)
        if isinstance(message, transport.Greeting):
            transport.greeting_mismatch(transport.Greeting("lab", "0.1.0"), message)


def hosts_seeds() -> list[bytes]:
    one = '[[worker]]\nname = "a"\ncommand = "ssh a tunesmith worker"\ndevice = "0-7"\nwait = 9\n'
    return [one.encode(), (one + one.replace('"a"', '"b"')).encode()]


def read_hosts(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="tunesmith-fuzz-") as place:
        (Path(place) / "hosts.toml").write_bytes(data)
        for entry in hosts.read_hosts(Path(place) / "hosts.toml"):
            machine.device_ids(entry.device)


def config_seeds() -> list[bytes]:
    return [b'evals = 10\ntime = 1.5\nseed = 3\ncache = false\nmodel = "mailbox"\nruns = "runs"\nmoney = 1\n']


def read_config(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="tunesmith-fuzz-") as place:
        (Path(place) / "tunesmith.toml").write_bytes(data)
        resolve_config({}, dict(os.environ), Path(place))


def instruction_seeds() -> list[bytes]:
    return [b'{"what":"stop"}', b'{"what":"hint","text":"BLOCK=64 VEC=4"}', b'{"what":"finish","text":""}']


def read_instruction(data: bytes) -> None:
    """What lies in a run's inbox; whatever is no instruction is taken away."""
    with tempfile.TemporaryDirectory() as place:
        inbox = FolderInbox(Path(place))
        kept = Path(place) / INBOX / f"{inbox.put('stop')}.json"
        kept.write_bytes(data)
        assert len(inbox.waiting()) == kept.exists()


READERS = (
    Reader("problem", lambda: [p.read_bytes() for p in problems()], read_problem, text_mutation, (BadInput,)),
    Reader("template", template_seeds, read_template, text_mutation, (BadInput,)),
    Reader("expression", expressions, read_expression, text_mutation, (BadInput,)),
    Reader("kernel", kernel_seeds, read_source, text_mutation, (BadInput,)),
    Reader("vetting", hostile_seeds, read_hostile, text_mutation, ()),
    Reader("expert", expert_seeds, read_by_expert, text_mutation, (BadInput,)),
    Reader("knobs", expert_seeds, read_knobs, text_mutation, (BadInput,)),
    Reader("reply", replies, read_reply, text_mutation, ()),
    Reader("frame", frame_seeds, read_frames, frame_mutation, (Malformed,)),
    Reader("remote", remote_seeds, read_remote, text_mutation, (Malformed,)),
    Reader("hosts", hosts_seeds, read_hosts, text_mutation, (BadInput,)),
    Reader("report", reports, read_report, json_mutation, (BadInput,)),
    Reader("entry", entry_seeds, read_entry, json_mutation, (BadInput, Malformed)),
    Reader("config", config_seeds, read_config, text_mutation, (BadInput,)),
    Reader("instruction", instruction_seeds, read_instruction, json_mutation, ()),
    EVENTS,
    JOURNALS,
    CERTIFICATES,
)
