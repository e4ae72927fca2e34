"""Certificates: what they say, what is noticed when any part of a run was changed, signatures, --rerun."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tunesmith
from tests.core.api.problems import built, template
from tests.end_to_end import tiny
from tests.opencl_here import needs_opencl
from tests.running import tunesmith as command
from tests.samples import config, finalist
from tests.wording import says
from tunesmith.base.codec import decode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.text import sha256_hex
from tunesmith.deliver.certificate import Certificate, Claim
from tunesmith.plugins.studies.run import journal_facts
from tunesmith.problem.plan import OutputErrors, Status
from tunesmith.run.events import Verified
from tunesmith.run.folder import CERTIFICATE, JOURNAL
from tunesmith.run.journal import ALONE, UNCHAINED, head_of
from tunesmith.run.outcome import Timing, sittings_interval
from tunesmith.session import certify


def tuned(folder: Path, **changed: object) -> tunesmith.Run:
    named = {"out": folder / "run", "cache_dir": str(folder / "cache"), "library": False, "builders": 1}
    return tunesmith.tune(built(**changed), template=template(folder), budget=3, **named)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tunesmith.Run:
    return tuned(tmp_path_factory.mktemp("certified"))


@pytest.fixture
def run(done: tunesmith.Run, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return shutil.copytree(done.folder, tmp_path / "run")


def contents(run: Path) -> dict[Path, bytes]:
    return {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def certificate_of(run: Path) -> Certificate:
    return decode_json((run / CERTIFICATE).read_bytes(), Certificate)


def rewritten(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    known = json.loads((run / CERTIFICATE).read_text())
    change(known)
    (run / CERTIFICATE).write_text(json.dumps(known))


def with_better_samples(run: Path) -> int:
    """What an author would do who is paid by the speed-up; the number of the line that is changed."""
    lines = (run / JOURNAL).read_bytes().split(b"\n")
    place = next(place for place, line in enumerate(lines) if b'"type":"Verified"' in line)
    samples = re.search(rb'"samples":\[([^]]*)\]', lines[place])
    better = b",".join([b"2.7e-09"] * len(samples[1].split(b",")))
    lines[place] = lines[place].replace(samples[1], better)
    (run / JOURNAL).write_bytes(b"\n".join(lines))
    return place + 1


class TestContent:
    def test_all_that_a_claim_rests_on(self, done: tunesmith.Run) -> None:
        known = certificate_of(done.folder)
        (claim,) = known.claims
        (result,) = done.result.workloads
        assert (claim.workload, claim.status, claim.config) == ("only", "faster", result.config)
        assert (claim.speedup, claim.interval) == (result.speedup, result.interval)
        sittings = [Timing(claim.candidate_seconds, claim.original_seconds, draws=claim.draws)]
        sittings += [Timing(s.candidate_seconds, s.original_seconds, draws=s.draws) for s in claim.others]
        assert len(sittings) > 1
        interval = sittings_interval(sittings, claim.seed)
        assert (claim.speedup, *claim.interval) == (interval.value, interval.low, interval.high)
        assert claim.file == "tuned/tiny-general.fake"
        assert known.templates == {"given": claim.template}
        assert all((done.folder / "objects" / digest).is_file() for digest in known.inputs.values())
        (verified,) = known.verified
        (build,) = verified.builds
        assert (build.source_digest, build.code_digest) == (claim.source, claim.code)
        assert verified.statuses == {"only": "ok"}
        assert len(verified.cases) == done.result.verified_cases > 0
        assert {case.status for case in verified.cases} == {"ok"}
        assert {dict(case.sizes)["n"] for case in verified.cases} <= {8, 64}
        exact = OutputErrors("out", 0.0, 0.0, 0.0, 0.0)
        assert {case.errors for case in verified.cases} == {(exact,)}, "twice a number is exact"
        assert claim.clocks == (), "a simulated device has none"
        assert known.original_code
        assert known.original_source != claim.source
        assert (known.device.name, known.seed) == (done.result.device, 0)
        assert known.versions["tunesmith"] == tunesmith.__version__
        assert known.sanitizer == "not in force: a simulated device has nothing to watch"
        assert (verified.sanitizer, verified.findings) == (known.sanitizer, ())
        assert "sandboxed" in known.sandbox or "sandbox" in known.sandbox

    def test_every_file_that_is_delivered_is_named(self, done: tunesmith.Run) -> None:
        known, found = certificate_of(done.folder), contents(done.folder)
        assert known.journal == head_of(found[Path(JOURNAL)])
        delivered = {
            str(name) for name in found if name.parts[0] not in (JOURNAL, CERTIFICATE, "lock", "objects")
        }
        assert set(known.files) == delivered
        assert all(sha256_hex(found[Path(name)]) == digest for name, digest in known.files.items())

    def test_delivering_again_changes_nothing(self, run: Path) -> None:
        before = contents(run)
        tunesmith.resume(run)
        assert contents(run) == before

    @pytest.mark.long
    def test_without_gain_too(self, tmp_path: Path) -> None:
        same = tiny.FAKE_KERNEL.replace('"20000"', '"100"')
        done = tuned(tmp_path, source=same)
        (claim,) = certificate_of(done.folder).claims
        assert (claim.status, claim.speedup, claim.config) == ("the original stays", 1.0, None)
        assert claim.file == "tuned/original.fake"
        assert tunesmith.verify(done).holds


class TestChanged:
    def test_nothing(self, run: Path) -> None:
        before = contents(run)
        for named in (run, run / CERTIFICATE):
            found = tunesmith.verify(named)
            assert (found.holds, found.faults) == (True, ())
            assert [(w.workload, w.holds) for w in found.workloads] == [("only", True)]
        assert contents(run) == before

    def test_each_delivered_file(self, done: tunesmith.Run, run: Path) -> None:
        for name in certificate_of(run).files:
            path = run / name
            before = path.read_bytes()
            path.write_bytes(before + b" ")
            found = tunesmith.verify(run)
            assert not found.holds
            says(found.faults, name, "changed")
            is_served = name in ("tuned/tiny-general.fake", "tuned/dispatch.json")
            assert found.workloads[0].holds is not is_served
            path.unlink()
            says(tunesmith.verify(run).faults, name, "missing")
            path.symlink_to(done.folder / name)
            assert not tunesmith.verify(run).holds
            path.unlink()
            path.write_bytes(before)
        assert tunesmith.verify(run).holds

    @pytest.mark.parametrize(
        "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "zeros"]
    )
    def test_what_never_ends_is_not_read(self, run: Path, make: Callable[[Path], None]) -> None:
        (run / "report.md").unlink()
        make(run / "report.md")
        assert not tunesmith.verify(run).holds
        (run / CERTIFICATE).unlink()
        make(run / CERTIFICATE)
        with pytest.raises(BadInput, match="cannot be read"):
            tunesmith.verify(run)
        assert tunesmith.load_run(run).result.workloads, "the run is shown without it"

    def test_a_kernel_with_a_certificate_made_to_fit(self, run: Path) -> None:
        path = run / "tuned" / "tiny-general.fake"
        path.write_bytes(path.read_bytes() + b"// and more\n")
        rewritten(
            run, lambda c: c["files"].update({"tuned/tiny-general.fake": sha256_hex(path.read_bytes())})
        )
        says(tunesmith.verify(run).workloads[0].reason, "tuned/tiny-general.fake", "templates")

    @pytest.mark.parametrize("name", ["report.json", "report.md", "report.html"])
    def test_a_report_with_a_certificate_made_to_fit(self, run: Path, name: str) -> None:
        path = run / name
        path.write_bytes(path.read_bytes().replace(b"6.", b"7224."))
        rewritten(run, lambda c: c["files"].update({name: sha256_hex(path.read_bytes())}))
        found = tunesmith.verify(run)
        assert not found.holds
        says(found.faults, name, "is not what journal and templates give")

    def test_names_that_are_none_or_too_many(self, run: Path) -> None:
        rewritten(run, lambda c: c["files"].pop("report.json"))
        says(tunesmith.verify(run).faults, "report.json is delivered, and not certified")
        (run / "summary.md").write_text("7224×")
        rewritten(run, lambda c: c["files"].update({"summary.md": sha256_hex("7224×".encode())}))
        says(tunesmith.verify(run).faults, "summary.md is no file that journal and templates give")

    @pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "a\0b", ""])
    def test_names_that_lead_elsewhere(self, run: Path, name: str) -> None:
        (run.parent / "secret").write_text("x")
        rewritten(run, lambda c: c["files"].update({name: sha256_hex(b"x")}))
        found = tunesmith.verify(run)
        assert not found.holds
        assert any(name in fault for fault in found.faults)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("speedup", 7224.0),
            ("interval", [7000.0, 8000.0]),
            ("candidate_seconds", [1e-9] * 25),
            ("code", "0" * 64),
        ],
    )
    def test_a_claim(self, run: Path, field: str, value: object) -> None:
        rewritten(run, lambda c: c["claims"][0].update({field: value}))
        found = tunesmith.verify(run)
        assert not found.holds
        says(found.workloads[0].reason, field, "does not follow")

    @pytest.mark.parametrize(
        ("field", "value"), [("compiler", "x 1"), ("sandbox", "in force"), ("verified", []), ("claims", [])]
    )
    def test_what_it_says_beside_its_claims(self, run: Path, field: str, value: object) -> None:
        rewritten(run, lambda c: c.update({field: value}))
        assert not tunesmith.verify(run).holds

    def test_the_errors_of_a_case(self, run: Path) -> None:
        def smaller(known: dict[str, Any]) -> None:
            known["verified"][0]["cases"][0]["errors"][0]["original_max_error"] = 1e-3

        rewritten(run, smaller)
        found = tunesmith.verify(run)
        assert not found.holds
        says(found.faults, "verified", "not what the journal says")

    def test_what_was_read(self, run: Path) -> None:
        kept = run / "objects" / certificate_of(run).inputs["problem.toml"]
        kept.write_bytes(kept.read_bytes() + b"\n")
        found = tunesmith.verify(run)
        assert not found.holds
        says(found.faults, kept.name[:12], "changed")

    def test_a_journal_cut_short(self, run: Path) -> None:
        lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
        (run / JOURNAL).write_bytes(b"".join(lines[:-1]))
        assert not tunesmith.verify(run).holds

    def test_no_certificate(self, run: Path, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="cannot be read"):
            tunesmith.verify(tmp_path)
        for text in ("", "{}", "[]", "nonsense", "null"):
            (run / CERTIFICATE).write_text(text)
            with pytest.raises(BadInput, match="not a certificate"):
                tunesmith.verify(run)
        shutil.copy2(run.parent / "run" / "report.json", run / CERTIFICATE)
        with pytest.raises(BadInput):
            tunesmith.verify(run)

    def test_of_another_version(self, run: Path) -> None:
        rewritten(run, lambda c: c.update(version=2))
        with pytest.raises(BadInput, match="version 2"):
            tunesmith.verify(run)


class TestEditedSamples:
    @pytest.fixture
    def line(self, run: Path) -> int:
        return with_better_samples(run)

    def test_are_shown_as_not_verified(self, run: Path, line: int) -> None:
        found = tunesmith.load_run(run)
        assert (found.result.geometric_mean, found.result.workloads, found.result.tuned) == (None, (), ())
        assert (found.best, found.result.explanations, found.result.verified_cases) == (None, (), 0)
        for form in ("text", "md", "json"):
            text = found.report(form)  # type: ignore[arg-type]
            says(text, "journal was changed", f"line {line}")
            assert "right by" not in text
            assert form == "json" or "6.25" not in text, "the history of the search, which verifies nothing"
        says(found._repr_html_(), "journal was changed", f"line {line}")

    def test_count_nowhere(self, run: Path, line: int, done: tunesmith.Run) -> None:
        before = contents(run)
        uses = (lambda: tunesmith.diff(done, run), lambda: tunesmith.resume(run), lambda: journal_facts(run))
        for use in uses:
            with pytest.raises(BadInput, match=f"changed at line {line}") as caught:
                use()
            assert "restore the folder" in (caught.value.hint or "")
        found = tunesmith.verify(run, rerun=True)
        assert not found.holds
        says(found.workloads[0].reason, f"line {line}")
        assert contents(run) == before

    def test_with_the_chain_taken_away(self, run: Path) -> None:
        lines = [json.loads(line) for line in (run / JOURNAL).read_bytes().splitlines()]
        for each in lines:
            del each["before"]
        (run / JOURNAL).write_text("".join(json.dumps(each) + "\n" for each in lines))
        assert tunesmith.load_run(run).result.geometric_mean is None
        (run / CERTIFICATE).unlink()
        found = tunesmith.load_run(run).result
        assert (found.judged_by, found.unproven, found.verified_cases) == (UNCHAINED, UNCHAINED, 0)
        tunesmith.resume(run)
        assert tunesmith.load_run(run).result.unproven == UNCHAINED
        assert not tunesmith.verify(run).holds

    def test_in_the_report_alone(self, run: Path, done: tunesmith.Run) -> None:
        path = run / "report.json"
        path.write_bytes(path.read_bytes().replace(b'"speedup":6.', b'"speedup":7224.'))
        with pytest.raises(BadInput, match="not what its certificate names"):
            tunesmith.diff(done, path)
        (run / CERTIFICATE).unlink()
        assert tunesmith.diff(done, path).ratio == 1.0, "its journal is asked"

    def test_a_report_alone_says_what_it_is_worth(self, run: Path, done: tunesmith.Run) -> None:
        (run / JOURNAL).unlink()
        says(tunesmith.diff(done, run / "report.json").notes, "the second run was", ALONE)
        with pytest.raises(BadInput) as refused:
            tunesmith.verify(run / "report.json")
        says(str(refused.value.hint), "a report proves nothing")
        says(tunesmith.verify(run).faults, "journal")


class TestCommand:
    @pytest.mark.long
    def test_exit_codes(self, run: Path, tmp_path: Path) -> None:
        ended = command(tmp_path, "verify", "run", "--json")
        assert (ended.code, ended.json["holds"]) == (0, True)
        line = with_better_samples(run)
        ended = command(tmp_path, "verify", "run/certificate.json")
        assert ended.code == 7
        says(ended.out, "does not hold")
        says(ended.out.replace("\n", " "), "changed at", str(line))
        ended = command(tmp_path, "verify", "nowhere")
        assert ended.code == 2
        says(ended.err, "nowhere", "cannot be read")


class TestRerun:
    def test_from_nothing(self, run: Path) -> None:
        before = contents(run)
        found = tunesmith.verify(run, rerun=True)
        assert found.holds, found
        assert found.seed is not None
        (verdict,) = found.workloads
        assert verdict.measured == pytest.approx(verdict.claimed)
        assert contents(run) == before

    @pytest.mark.parametrize(
        ("measured", "verdict"),
        [
            (2.0, "holds"),
            (1.95, "holds"),
            (1.85, "does not hold"),
            (1.005, "does not hold"),
            (Status.WRONG, "does not hold"),
        ],
    )
    def test_what_holds(self, done: tunesmith.Run, measured: float | Status, verdict: str) -> None:
        (claim,) = certificate_of(done.folder).claims
        claim = replace(claim, speedup=2.0, interval=(1.98, 2.02))
        verified = Verified(finalist(0, config(64), {"only": measured}), 7)
        found = certify._judge_claim(claim, verified, 0)
        assert (found.verdict, found.holds) == (verdict, verdict == "holds")
        assert found.measured == (None if isinstance(measured, Status) else pytest.approx(measured))

    @pytest.mark.parametrize("claimed", [1.012, 1.5])
    def test_a_gain_that_is_gone(self, done: tunesmith.Run, claimed: float) -> None:
        claim: Claim = replace(
            certificate_of(done.folder).claims[0], speedup=claimed, interval=(claimed, claimed)
        )
        assert not certify._judge_claim(claim, Verified(finalist(0, config(64), {"only": 1.0}), 7), 0).holds

    @needs_opencl
    @pytest.mark.long
    def test_on_a_real_device(self, tmp_path: Path) -> None:
        problem = tiny.opencl(tmp_path / "problem")
        found = tunesmith.tune(problem, budget=4, template=problem / "template.cl", out=tmp_path / "run")
        before = contents(tmp_path / "run")
        checked = tunesmith.verify(found, rerun=True)
        assert checked.faults == ()
        claimed = [claim.config for claim in certificate_of(tmp_path / "run").claims]
        assert [w.measured is not None for w in checked.workloads] == [c is not None for c in claimed]
        assert contents(tmp_path / "run") == before
