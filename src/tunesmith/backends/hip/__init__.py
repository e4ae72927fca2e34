"""HIP: sources to code objects through hiprtc or clang, kernels through AMD's runtime, loaded on use."""

from __future__ import annotations

from tunesmith.backends import port
from tunesmith.backends.hip import code_object, compile, devices
from tunesmith.backends.hip.session import HipSession
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import DoctorFinding
from tunesmith.base.errors import TunesmithError
from tunesmith.problem.device import HIP, Device

ROCM = "ROCm, from https://rocm.docs.amd.com, and pip install 'tunesmith[hip]'"


class HipBackend:
    name = "hip"

    def devices(self) -> tuple[Device, ...]:
        return devices.describe_all()

    def build(self, unit: Unit, device: Device) -> port.KernelBinary:
        return compile.build_code_object(unit, device)

    def open(self, device: Device) -> port.Session:
        return HipSession(device)


def _check_hip(list_devices: port.ListDevices) -> list[DoctorFinding]:
    """Building needs hiprtc, or clang with its libraries; checking and timing need the runtime and a GPU."""
    return [_check_amd_gpu(list_devices), _check_hiprtc(), _check_clang()]


def _check_amd_gpu(list_devices: port.ListDevices) -> DoctorFinding:
    if not port.has_module("hip"):
        detail = (
            "hip-python is not installed: HIP kernels can be built by clang, and cannot run on AMD's GPUs"
        )
        return DoctorFinding("AMD GPU", False, detail, ROCM)
    try:
        found = list_devices()
    except TunesmithError as error:
        return DoctorFinding("AMD GPU", False, str(error), ROCM)
    names = "; ".join(f"{d.name} ({d.target}, waves of {d.limits.warp})" for d in found)
    names += _list_unsupported_gpus() if found else ""
    return DoctorFinding("AMD GPU", bool(found), names or "the runtime sees none", "" if found else ROCM)


def _list_unsupported_gpus() -> str:
    """Of GPUs that are left out. A worker has just heard from the driver, so that it may be asked here."""
    try:
        found = devices.left_out()
    except (port.Unsupported, port.LaunchFailed, port.DeviceLost, port.OutOfMemory) as error:
        return f"; whether others are here is not known: {error}"
    return f"; left out, since Tunesmith does not know it: {', '.join(found)}" if found else ""


def _check_hiprtc() -> DoctorFinding:
    version = compile.hiprtc_version()
    if version:
        return DoctorFinding("hiprtc", True, version)
    return DoctorFinding("hiprtc", False, "not here: HIP kernels are built by clang alone", ROCM)


def _check_clang() -> DoctorFinding:
    what, found = "clang for AMD", compile.tools()
    if isinstance(found, str):
        detail, _, fix = found.partition(": ")
        return DoctorFinding(what, False, f"{detail}: without a GPU HIP kernels cannot be built", fix)
    where = f"{found.program}, libraries in {found.bitcode}, headers in {found.headers}"
    return DoctorFinding(what, True, f"{found.version}, {where}")


KIND = port.BackendKind(
    name="hip",
    languages=(HIP,),
    make=lambda _argument: HipBackend(),
    extra="hip",
    packages=("hip-python",),
    check=_check_hip,
    inherits=("HIP_*", "ROCM_*", "ROCR_*", "HSA_*", "AMD_*"),
    devices=("/dev/kfd", "/dev/dri/*"),
    readable=compile.rocm_folders,
    absent_device=devices.absent_device,
    is_architecture=devices.is_architecture,
    toolchain=compile.TOOLCHAIN,
    macros=compile.hip_predefined_macros,
    portable=port.PortableForm("hsaco", code_object.unpack, code_object.pack),
    no_profiles="Tunesmith does not know what AMD's GPUs can do at best",
)
