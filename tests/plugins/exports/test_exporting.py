"""Exports of run folders: what comes out, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.plugins.exports.silu import result
from tests.plugins.studies.test_calling import a_run, folder_with
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.plugins import our_names
from tunesmith.deliver import target_named
from tunesmith.deliver.artefact import DeviceResult
from tunesmith.session.result import Run, export_runs

pytestmark = [needs_nvrtc]
FOR_CUDA = [name for name in our_names("exports") if "cuda" in target_named(name).languages]
WITHOUT_JOURNAL = [name for name in FOR_CUDA if not target_named(name).from_journal]


@pytest.fixture(scope="module")
def silu_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = result(90)
    return a_run(folder_with(dict(made.files), tmp_path_factory.mktemp("silu") / "run"), language="cuda")


@pytest.mark.parametrize("name", WITHOUT_JOURNAL)
@pytest.mark.few(2)
def test_every_target_has_every_winner(silu_run: Run, tmp_path: Path, name: str) -> None:
    found = export_runs([silu_run], name, tmp_path / "out")
    assert found.delivered == "delivered: 2 of 2 tuned kernels"
    assert sorted(found.files) == sorted(
        path.relative_to(tmp_path / "out").as_posix()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    )


def test_a_run_exports_itself(silu_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert silu_run.export("cubin").folder == "silu_and_mul-cubin"
    with pytest.raises(BadInput, match="goes into an empty folder"):
        silu_run.export("cubin")


def test_an_unknown_target_names_those_there_are(silu_run: Run, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no export 'jax'") as caught:
        export_runs([silu_run], "jax", tmp_path / "out")
    assert "torch, cpp, cubin" in (caught.value.hint or "")
    assert not (tmp_path / "out").exists()


def test_without_a_target_those_of_the_runs_language_are_named(silu_run: Run, tmp_path: Path) -> None:
    for language, left in (("opencl", "opencl, patch, kernel-tuner"), ("cuda", ", ".join(FOR_CUDA))):
        run = a_run(silu_run.folder, language=language)
        with pytest.raises(BadInput, match="an export needs a target") as caught:
            export_runs([run], "", tmp_path / "out")
        assert caught.value.hint == f"name one of these with --to: {left}"


def test_a_target_of_another_language_names_those_of_this_one(silu_run: Run, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the export opencl is for opencl, this kernel is cuda") as caught:
        export_runs([silu_run], "opencl", tmp_path / "out")
    assert "torch" in (caught.value.hint or "")


def test_a_run_that_is_not_finished(silu_run: Run, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not finished") as caught:
        export_runs([a_run(silu_run.folder, finished=False)], "cubin", tmp_path / "out")
    assert "tunesmith resume" in (caught.value.hint or "")


def test_a_run_without_winners(tmp_path: Path) -> None:
    made = result(90, binaries=False)
    bare = replace(made.dispatch, entries=made.dispatch.entries[-1:])
    files = {"original.cu": made.files["original.cu"], "dispatch.json": encode_json(bare)}
    with pytest.raises(BadInput, match="found nothing better than the original"):
        export_runs([a_run(folder_with(files, tmp_path / "run"))], "torch", tmp_path / "out")


def test_a_file_that_was_changed_is_not_exported(tmp_path: Path) -> None:
    folder = folder_with(dict(result(90, binaries=False).files), tmp_path / "run")
    (folder / "tuned" / "original.cu").write_text("// something else")
    with pytest.raises(BadInput, match=r"original\.cu was changed: it is not what the run's certificate"):
        export_runs([a_run(folder)], "torch", tmp_path / "out")


def test_two_devices_in_one(silu_run: Run, tmp_path: Path) -> None:
    other = result(80, device="another GPU")
    second = a_run(folder_with(dict(other.files), tmp_path / "other"))
    found = export_runs([silu_run, second], "torch", tmp_path / "out")
    assert found.devices == ("a GPU", "another GPU")
    assert found.delivered == "delivered: 4 of 4 tuned kernels"
    with pytest.raises(BadInput, match="two runs are for sm_90"):
        export_runs([silu_run, silu_run], "torch", tmp_path / "twice")


def _sources(made: DeviceResult, change: bytes) -> DeviceResult:
    files = {**made.files, "original.cu": made.files["original.cu"] + change}
    return replace(made, files=files)


def _dispatch(made: DeviceResult, **changes: object) -> DeviceResult:
    changed = replace(made.dispatch, **changes)  # type: ignore[arg-type]
    return replace(made, dispatch=changed, files={**made.files, "dispatch.json": encode_json(changed)})


def _launched(made: DeviceResult, **changes: object) -> DeviceResult:
    *tuned, last = made.dispatch.entries
    launch = replace(last.launches[0], **changes)  # type: ignore[arg-type]
    return _dispatch(made, entries=(*tuned, replace(last, launches=(launch,), flags=("-arch=sm_80",))))


OLDER = result(80, device="another GPU", binaries=False)
ARGUMENTS, SIZES = OLDER.dispatch.arguments, OLDER.dispatch.sizes
SMALL = OLDER.dispatch.workloads[0]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (_dispatch(OLDER, problem="gelu"), "one is silu_and_mul, the other gelu"),
        (_sources(OLDER, b"// changed"), "the original kernel is another text, original.cu"),
        (
            _launched(OLDER, entry="silu_and_mul<float>"),
            "the original kernel is silu_and_mul<__half> in one, silu_and_mul<float> in the other",
        ),
        (_dispatch(OLDER, arguments=ARGUMENTS[:-1]), "input_stride is another argument"),
        (
            _dispatch(OLDER, arguments=(replace(ARGUMENTS[0], align=2), *ARGUMENTS[1:])),
            "out is another argum",
        ),
        (_dispatch(OLDER, sizes=(SIZES[0], replace(SIZES[1], max=9))), "the contract on d is another"),
        (_dispatch(OLDER, require=("tokens > d",)), "the contract requires tokens > d in one of them"),
        (_dispatch(OLDER, workloads=(replace(SMALL, sizes={"tokens": 1, "d": 8}),)), "small has other sizes"),
    ],
)
def test_runs_of_different_kernels_are_not_joined(
    silu_run: Run, tmp_path: Path, other: DeviceResult, why: str
) -> None:
    second = a_run(folder_with(dict(other.files), tmp_path / "other"), language="cuda")
    with pytest.raises(BadInput) as caught:
        export_runs([silu_run, second], "torch", tmp_path / "out")
    assert caught.value.message.startswith("one export takes runs of one problem, ")
    assert " is not the same operator in run (a GPU) and other (another GPU): " in caught.value.message
    assert why in caught.value.message
    assert "tunesmith retune RUN" in (caught.value.hint or "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "other",
    [
        _launched(OLDER, grid=("min(tokens, 108)",)),  # as a device has multiprocessors
        _dispatch(OLDER, workloads=(SMALL, replace(SMALL, name="more", sizes={"tokens": 1, "d": 8}))),
        _dispatch(OLDER, workloads=(replace(SMALL, speedup=None),)),
    ],
)
def test_what_devices_may_differ_in_is_joined(silu_run: Run, tmp_path: Path, other: DeviceResult) -> None:
    second = a_run(folder_with(dict(other.files), tmp_path / "other"), language="cuda")
    assert export_runs([silu_run, second], "torch", tmp_path / "out").devices == ("a GPU", "another GPU")


def without_its_flags(made: DeviceResult, *files: str) -> dict[str, bytes]:
    """Entries of these sources have a flag that no CMake takes; each is there twice."""
    entries = []
    for one in made.dispatch.entries:
        odd = replace(one, flags=('-DX=";"',)) if one.file in files else one
        entries += [replace(odd, when=f"tokens == 3 and {one.when}"), odd]
    return {**made.files, "dispatch.json": encode_json(replace(made.dispatch, entries=tuple(entries)))}


@pytest.mark.parametrize(("files", "left"), [(("silu-200.cu",), 1), (("silu-200.cu", "silu-100.cu"), 0)])
def test_tuned_kernels_are_counted_and_not_their_entries(
    tmp_path: Path, files: tuple[str, ...], left: int
) -> None:
    run = a_run(folder_with(without_its_flags(result(90), *files), tmp_path / "run"))
    found = export_runs([run], "cpp", tmp_path / "out")
    assert found.delivered == f"delivered: {left} of 2 tuned kernels"
    assert len(found.left_out) == len(files)
    assert export_runs([run], "torch", tmp_path / "torch").delivered == "delivered: 2 of 2 tuned kernels"


def test_an_original_that_is_missing_is_no_winner(tmp_path: Path) -> None:
    found = export_runs(
        [a_run(folder_with(without_its_flags(result(90), "original.cu"), tmp_path / "run"))],
        "cpp",
        tmp_path / "out",
    )
    assert (found.delivered, found.left_out) == ("delivered: 2 of 2 tuned kernels", ())
    assert len(found.notes) == 2
    assert "cannot be written for CMake" in found.notes[0]


def test_what_a_run_left_out_is_said(tmp_path: Path) -> None:
    made = result(90)
    less = replace(made.dispatch, left_out=("A=1: its grid asks for what nobody knows",))
    files = {**made.files, "dispatch.json": encode_json(less)}
    found = export_runs([a_run(folder_with(files, tmp_path / "run"))], "cubin", tmp_path / "out")
    assert found.delivered == "delivered: 2 of 3 tuned kernels"
    assert found.left_out == less.left_out
