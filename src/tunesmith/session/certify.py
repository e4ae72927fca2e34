"""Certificates of runs: written when one ends, checked anywhere, and judged again on this machine."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path, PurePosixPath

from tunesmith import __version__, backends
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.base.files import read_plain
from tunesmith.base.text import sha256_hex
from tunesmith.deliver.certificate import CERTIFICATE_VERSION, Certificate, Claim, make_certificate
from tunesmith.deliver.certificate import DISPATCH as DISPATCH
from tunesmith.deliver.results import build_results
from tunesmith.lab.lab import LabSettings
from tunesmith.problem.device import Device
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Verified
from tunesmith.run.figures import RULE, Figure, Verdict, judged_again
from tunesmith.run.folder import CERTIFICATE, DAMAGED, RunFolder
from tunesmith.run.outcome import Trial, speedup_interval
from tunesmith.run.ports import Listener
from tunesmith.run.race import Winners, verified_choice
from tunesmith.run.report import RESULT_VERSION, Report
from tunesmith.run.state import State
from tunesmith.session import place as machine
from tunesmith.session import problems
from tunesmith.space.configset import Config

WORST_FIRST: tuple[Verdict, ...] = ("does not hold", "cannot tell", "holds")


@dataclass(frozen=True)
class WorkloadVerdict:
    workload: str
    holds: bool = field(init=False)
    verdict: Verdict
    reason: str
    claimed: float
    measured: float | None = None  # this time; None: it was not judged again
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "holds", self.verdict == "holds")


@dataclass(frozen=True)
class CertificateCheck:
    """What became of a certificate: `tunesmith verify`."""

    certificate: str
    holds: bool = field(init=False)
    verdict: Verdict  # of all of it: nothing in it is refuted where nobody can tell
    workloads: tuple[WorkloadVerdict, ...]
    faults: tuple[str, ...]  # of the certificate, its files or the journal; with any of them it does not hold
    notes: tuple[str, ...] = ()
    seed: int | None = None  # that it was judged again with
    rule: str = ""  # by which it was judged again
    version: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "holds", self.verdict == "holds")


# -- writing ------------------------------------------------------------------------------------------------


def write_certificate(
    folder: RunFolder, templates: Templates, state: State, files: Mapping[str, bytes]
) -> None:
    """The same run writes the same bytes, so that a signature made of them stays good."""
    digests = {name: sha256_hex(data) for name, data in files.items()}
    made = make_certificate(
        templates.problem, state, templates, files[DISPATCH], digests, folder.journal_head()
    )
    target, data = folder.path / CERTIFICATE, encode_json(made) + b"\n"
    if target.is_symlink() or not target.is_file() or target.read_bytes() != data:
        folder.write(CERTIFICATE, data)


def take_back(folder: RunFolder) -> None:
    """Of a run that goes on: what it was certified for is no longer all of it."""
    (folder.path / CERTIFICATE).unlink(missing_ok=True)


# -- checking -----------------------------------------------------------------------------------------------


def verify_certificate(
    path: Path, config: RunConfig, listener: Listener, *, rerun: bool = False
) -> CertificateCheck:
    """By the files beside it alone; with `rerun` also on a device. Nothing is written there."""

    path = path / CERTIFICATE if path.is_dir() else path
    given = read_certificate(path)
    folder = RunFolder(path.parent)
    spoilt = _changed_files(path.parent, given)
    faults, notes, claims = list(spoilt.values()), list[str](), list[WorkloadVerdict]()
    try:
        state, templates = _run_of(folder)
        bad, wrong, further = _against_journal(folder, given, state, templates)
        faults, notes = [*faults, *bad], [*notes, *further]
    except TunesmithError as error:
        faults.append(str(error))
        bad, wrong, rerun = [str(error)], {}, False
    common = bad[0] if bad else spoilt.get(DISPATCH, "")
    for claim in given.claims:
        reason = common or wrong.get(claim.workload, "") or spoilt.get(claim.file, "")
        words = reason or ("nothing is claimed" if claim.config is None else "follows from the journal")
        verdict: Verdict = "does not hold" if reason else "holds"
        claims.append(WorkloadVerdict(claim.workload, verdict, words, claim.speedup))
    faults += [reason for reason in wrong.values() if reason not in faults]
    seed = None
    if rerun and not faults:
        seed = secrets.randbits(31)
        listener.say(f"judging it again with the seed {seed}")
        claims = _remeasure_claims(folder, given, state, templates, config, listener, seed, notes)
    found = {"does not hold" if faults else "holds", *(claim.verdict for claim in claims)}
    whole = next(verdict for verdict in WORST_FIRST if verdict in found)
    told = (tuple(notes), seed, RULE if seed is not None else "")
    return CertificateCheck(str(path), whole, tuple(claims), tuple(faults), *told)


def _run_of(folder: RunFolder) -> tuple[State, Templates]:
    RunFolder.open(folder.path)
    try:
        state, templates = problems.state_and_templates(folder)
    except TunesmithError:
        raise
    except Exception as error:
        raise BadInput(f"its journal cannot be read: {error!r}", where=str(folder.path)) from error
    if state.unproven:
        raise BadInput(state.unproven, where=str(folder.path))
    if state.stopped is None or state.baseline is None:
        raise BadInput("the journal ends before the run has", where=str(folder.path))
    return state, templates


def _changed_files(root: Path, given: Certificate) -> dict[str, str]:
    """By name, what is wrong with the files that it names."""

    found = {} if DISPATCH in given.files else {DISPATCH: f"{DISPATCH} is not certified"}
    for name, digest in given.files.items():
        try:
            certified_file(root, name, digest)
        except NotCertified as error:
            found[name] = str(error)
    return found


def _against_journal(
    folder: RunFolder, given: Certificate, state: State, templates: Templates
) -> tuple[list[str], dict[str, str], list[str]]:
    """What the journal does not say: of all, of workloads by name; and notes."""
    for digest in (*given.inputs.values(), *given.templates.values()):
        folder.get(digest)
    files = build_results(templates, state, folder.get).files(templates, state)
    digests = {name: sha256_hex(data) for name, data in files.items()}
    expected = make_certificate(
        templates.problem, state, templates, files[DISPATCH], digests, folder.journal_head()
    )
    bad = [
        f"the certificate's {f.name} is not what the journal says"
        for f in fields(Certificate)
        if f.name not in ("claims", "files", "version")
        and getattr(given, f.name) != getattr(expected, f.name)
    ]
    if [c.workload for c in given.claims] != [c.workload for c in expected.claims]:
        bad.append("the certificate's workloads are not those of the journal")
    pairs = zip(given.claims, expected.claims, strict=False)
    wrong = {one.workload: why for one, other in pairs if (why := _claim_difference(one, other))}
    notes: list[str] = []
    made_by = given.versions.get("tunesmith", "")
    sources = {claim.file for claim in expected.claims}
    for name in sorted(digests.keys() | given.files.keys()):
        if digests.get(name) == given.files.get(name):
            continue
        if name not in sources and made_by != __version__:
            words = f"was written by Tunesmith {made_by}, and this is {__version__}: not compared"
            notes.append(f"{name} {words}")
        elif name not in given.files:
            bad.append(f"{name} is delivered, and not certified")
        elif name not in digests:
            bad.append(f"{name} is no file that journal and templates give")
        else:
            bad.append(f"{name} is not what journal and templates give")
    return bad, wrong, notes


def _claim_difference(given: Claim, expected: Claim) -> str:
    """Of two claims the first that is not the same, in words."""
    for f in fields(Claim):
        got, wanted = getattr(given, f.name), getattr(expected, f.name)
        if got != wanted:
            is_short = not isinstance(got, tuple | dict) or len(got) < 3
            shown = f": {got!r}, and not {wanted!r}" if is_short else ""
            return f"{f.name} does not follow from the journal{shown}"
    return ""


def read_report(path: Path) -> Report:
    """A run's report.json, for `diff`; one that the certificate beside it does not name was changed."""

    data = problems.read_text(path, "correct the name").encode()
    try:
        found = decode_json(data, Report, "report of a run")
    except Malformed as error:
        hint = "name a run's folder, or the report.json in it"
        raise BadInput(str(error), where=str(path), hint=hint) from error
    if found.version > RESULT_VERSION:
        fault = f"this report has version {found.version}, known are versions up to {RESULT_VERSION}"
        raise BadInput(fault, where=str(path), hint="use the version of Tunesmith that wrote it")
    beside = path.with_name(CERTIFICATE)
    if beside.is_file() and read_certificate(beside).files.get(path.name, sha256_hex(data)) != sha256_hex(
        data
    ):
        raise BadInput(
            "this report was changed: it is not what its certificate names", where=str(path), hint=DAMAGED
        )
    return found


# -- judging again ------------------------------------------------------------------------------------------


def _remeasure_claims(
    folder: RunFolder,
    given: Certificate,
    state: State,
    templates: Templates,
    config: RunConfig,
    listener: Listener,
    seed: int,
    notes: list[str],
) -> list[WorkloadVerdict]:
    """From nothing: the original proven and timed anew, each winner rebuilt, tried and timed against it."""
    assert state.started is not None
    problem, choice = templates.problem, verified_choice(templates.problem, state)
    spec = problems.spec_of(folder, state.started)
    found: dict[Config, Verified] = {}
    with machine.temporary_scratch() as scratch:
        place = machine.WorkerSite(spec, scratch, config.sandbox)
        device = _certified_device(state.device, machine.find_local_devices(place), config.device)
        if device.key != state.device.key:
            was, now = (f"{d.name} ({d.driver})" for d in (state.device, device))
            notes.append(f"claimed on {was}, judged again on {now}")
        templates, builders = templates.on(device), machine.builder_count(device, config.builders)
        lab = machine.make_lab(
            problem,
            device,
            place,
            settings=LabSettings(seed, builders, state.compiler.partition(" ")[0]),
            progress=listener.note,
            extra=state.extended.cases if state.extended else (),
        )
        try:
            lab.baseline()
            for number, (winner, workloads) in enumerate(_delivered_workloads(choice, state).items()):
                template = templates.lookup(state)(winner)
                lab.admit(template)
                listener.note(f"verifying {winner.label} in a fresh process")
                found[winner] = lab.verify(
                    Trial(number, winner, workloads, "long", "finalist", template.digest)
                )
        finally:
            lab.close()
    certified = {build.code_digest for known in given.verified for build in known.builds}
    for winner, proven in found.items():
        if any(build.code_digest not in certified for build in proven.builds):
            notes.append(f"{winner.label} is built to other machine code than the one that was certified")
    return _verdicts_again(given, choice, found, seed)


def _verdicts_again(
    given: Certificate, choice: Winners, found: Mapping[Config, Verified], seed: int
) -> list[WorkloadVerdict]:
    """Of each claim; where the general configuration is wrong none holds."""
    verdicts = []
    for claim, pick in zip(given.claims, choice.picks, strict=True):
        verdict = WorkloadVerdict(claim.workload, "holds", "nothing is claimed", claim.speedup)
        verdicts.append(verdict if pick.config is None else _judge_claim(claim, found[pick.config], seed))
    general = found.get(choice.general) if choice.general is not None else None
    if general is not None and (bad := [r for r in general.outcome.results if not r.ok]):
        reason = f"the general configuration is {bad[0].status}: {bad[0].detail}"
        verdicts = [
            v if v.verdict == "does not hold" else replace(v, verdict="does not hold", reason=reason)
            for v in verdicts
        ]
    return verdicts


def _delivered_workloads(choice: Winners, state: State) -> dict[Config, tuple[str, ...]]:
    """Every configuration that is delivered, with the workloads it was verified at."""
    return {
        config: tuple(
            dict.fromkeys(
                r.workload
                for v in state.verified
                if v.outcome.trial.config == config
                for r in v.outcome.results
            )
        )
        for config in choice.configs()
    }


def _certified_device(wanted: Device, here: machine.LocalDevices, named: str | None) -> Device:
    """The certificate's own, whatever its driver is by now; or the one that the user names."""
    if backends.find_backend_kind(wanted.backend).from_file:
        return wanted
    if named is not None and here.devices:
        return machine.pick_device(here.devices, named)
    same = [d for d in here.devices if d.name == wanted.name and not d.absent]
    if not same:
        there = ", ".join(d.name for d in here.devices) or here.trouble
        hint = "judge it again where that device is, or name one that is here with --device"
        raise DeviceMissing(f"it was certified on {wanted.name}; here there is: {there}", hint=hint)
    return next((d for d in same if d.key == wanted.key), same[0])


def _judge_claim(claim: Claim, proven: Verified, seed: int) -> WorkloadVerdict:
    result = proven.outcome.result(claim.workload)
    if result is None or result.timing is None or not result.timing.ratios:
        status, detail = (result.status, result.detail) if result is not None else ("not run", "")
        return WorkloadVerdict(claim.workload, "does not hold", f"{status}: {detail}", claim.speedup)
    claimed = Figure(claim.speedup, *claim.interval, claim.doubt)
    again = Figure.of(speedup_interval(result.timing, seed), result.timing.disturbance)
    verdict, why = judged_again(claimed, again)
    spans = f"measured {again.value:.2f}× ({again.span}), claimed {claimed.words} ({claimed.span})"
    reason = f"{f'{why}: ' if why else ''}right on {proven.cases} fresh cases, {spans}"
    return WorkloadVerdict(
        claim.workload, verdict, reason, claim.speedup, again.value, (again.low, again.high)
    )


class NotCertified(Exception):
    """What is wrong with a file."""


def read_certificate(path: Path) -> Certificate:
    hint = "name a run's folder, or the certificate.json in it; a run that has ended has one"
    if path.name == "report.json":
        hint = f"a report proves nothing, with the folder of its run it can be verified: {hint}"
    try:
        found = decode_json(read_plain(path), Certificate, "certificate")
    except OSError as error:
        fault = f"the run's certificate cannot be read: {error.strerror}"
        raise BadInput(fault, where=str(path), hint=hint) from error
    except Malformed as error:
        raise BadInput(str(error), where=str(path), hint=hint) from error
    if found.version != CERTIFICATE_VERSION:
        fault = f"this certificate has version {found.version}, known is version {CERTIFICATE_VERSION}"
        raise BadInput(fault, where=str(path), hint="use the version of Tunesmith that wrote it")
    return found


def certified_file(root: Path, name: str, digest: str) -> bytes:
    """To the byte what the certificate names; raises NotCertified."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise NotCertified(f"{name} is not a file of the run")
    path = root.joinpath(*parts)
    try:
        is_link = any(p.is_symlink() for p in (path, *path.parents[: len(parts) - 1]))
        data = b"" if is_link else read_plain(path)
    except (OSError, ValueError) as error:
        raise NotCertified(f"{name} is missing") from error
    if is_link or sha256_hex(data) != digest:
        raise NotCertified(f"{name} was changed")
    return data
