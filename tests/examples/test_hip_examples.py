"""The HIP examples: read, made templates of, and built for NVIDIA's GPUs through headers of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.running import EXAMPLES
from tunesmith.backends.cuda import CudaBackend
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.drafts.signature import missing_entry, signature_faults
from tunesmith.problem.template import original_variant
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem

FOLDERS = sorted(path.parent for path in (EXAMPLES / "hip").glob("*/problem.toml"))
pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def test_the_kernels_take_the_arguments_of_the_problem(folder: Path) -> None:
    problem, _ = load_problem(folder)
    assert problem.kernel.language == "hip"
    assert missing_entry(problem) is None
    assert signature_faults(problem) == []


@needs_nvrtc
@pytest.mark.few(1)
def test_originals_and_templates_build_for_nvidia(folder: Path) -> None:
    problem, _ = load_problem(folder)
    device, sizes = absent_device("H200"), problem.workloads[0].as_dict()
    moves, _ = ExpertAuthor().available(problem, device)
    assert {"lanes", "vector", "hints", "bounds"} <= set(moves)
    written = ExpertAuthor().write(Refactoring(moves), problem, device)
    assert isinstance(written, Written), written
    template = parse_template(written.text, path="template.hip", problem=problem)
    assert "amdgpu_waves_per_eu(BOUNDS)" in template.source
    assert "__builtin_nontemporal_store" in template.source
    for made in (original_variant(problem, sizes), template.render(problem, template.default, sizes)):
        unit = Unit("kernel.hip", made.source, "hip", made.flags, made.entries)
        assert CudaBackend().build(unit, device).resources.spills == 0
