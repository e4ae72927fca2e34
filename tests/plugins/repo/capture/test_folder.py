"""Files of a capture: refused where they are not what they should be; images by what is in them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.backends.cuda.builds import built
from tests.cuda_here import needs_nvrtc
from tests.plugins.repo.capture.made_up import capture, kernel, launch, pointer
from tests.plugins.repo.capture.played import needs_compiler, program, with_played_gpu
from tunesmith.backends.cuda.cubin import unpack
from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.capture.capture import CaptureWish, kept_name, watch_program
from tunesmith.plugins.repo.capture.records import read_array, read_capture, read_image, write_capture
from tunesmith.plugins.repo.capture.trace import demangle_names, found_image, traces_in

KERNEL = 'extern "C" __global__ void work(float *x) { x[threadIdx.x] = 2 * x[threadIdx.x]; }'


def test_there_and_back(tmp_path: Path) -> None:
    made = capture(kernel("k", launch(pointer(64))))
    write_capture(tmp_path, made)
    assert read_capture(tmp_path) == made


@pytest.mark.parametrize("text", ["", "{}", "[", '{"format": 1}', "\x00", '{"format": "one"}'])
def test_a_damaged_capture_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "capture.json").write_text(text)
    with pytest.raises(BadInput, match="not a capture"):
        read_capture(tmp_path)


def test_another_format_and_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no capture\.json"):
        read_capture(tmp_path)
    write_capture(tmp_path, replace(capture(), format=99))
    with pytest.raises(BadInput, match="format 99"):
        read_capture(tmp_path)


def test_contents_are_held_against_their_digest(tmp_path: Path) -> None:
    (tmp_path / "arrays").mkdir()
    digest = hashlib.sha256(b"data").hexdigest()
    path = tmp_path / "arrays" / f"{digest}.bin"
    path.write_bytes(b"data")
    assert read_array(tmp_path, digest) == b"data"
    path.write_bytes(b"changed")
    with pytest.raises(BadInput, match="not those that were captured"):
        read_array(tmp_path, digest)
    with pytest.raises(BadInput, match="not a digest"):
        read_array(tmp_path, "../../etc/passwd")


def test_a_link_in_the_place_of_a_trace_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "1.trace").symlink_to("/etc/passwd")
    (tmp_path / "raw" / "2.trace").write_text("nonsense")
    traces, notes = traces_in(tmp_path)
    assert traces == []
    assert len(notes) == 3


def test_names_as_people_write_them() -> None:
    names = ["_Z5scalePfif", "_ZN3own5countIiEEvPT_", "plain", "_Znonsense", "", "_Z" + "9" * 40000]
    found = demangle_names(names)
    assert found["_Z5scalePfif"] == "scale(float*, int, float)"
    assert found["_ZN3own5countIiEEvPT_"] == "void own::count<int>(int*)"
    assert [found[name] for name in names[2:]] == names[2:]


def test_a_kept_kernels_name() -> None:
    assert kept_name("void own::scale<float, 4>(float*)") == "scale"
    assert kept_name("scale") == "scale"
    for bad in ("", "a b", "<x>", "rm -rf"):
        with pytest.raises(BadInput, match="not a kernel's name"):
            kept_name(bad)


def test_images_that_are_no_cubins() -> None:
    assert found_image(b"nothing of it", "d", [b"work"]) is None
    ptx = found_image(b"//\n.version 8.0\n.entry work() {}", "d", [b"work"])
    assert ptx.image.kind == "ptx"
    damaged = found_image(b"\x7fELF\x02\x01 work", "d", [b"work"])
    assert (damaged.image.kind, damaged.kernels) == ("bin", {})


@needs_nvrtc
@needs_compiler
def test_a_kernel_is_found_in_its_modules_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_played_gpu(monkeypatch)
    cubin = unpack(built(KERNEL, "work", device="H100").data)[1]
    (tmp_path / "work.cubin").write_bytes(cubin)
    text = f"""
cuda.cuInit(0)
image = open({str(tmp_path / "work.cubin")!r}, "rb").read()
other = b"an image without it"
cuda.played_module(other, ctypes.c_size_t(len(other)))
cuda.played_module(image, ctypes.c_size_t(len(image)))
launch(function("work", (0, 8)), 1, 32, P(memory(64)))
"""
    found = watch_program(program(text), CaptureWish(), tmp_path / "seen")
    (image,) = found.capture.images
    assert read_image(found.folder, image) == cubin
    (seen,) = found.capture.kernels
    assert seen.image == image.digest == hashlib.sha256(cubin).hexdigest()
    assert len(seen.code) == 64
    assert list((found.folder / "raw").glob("*.bin")) == []
