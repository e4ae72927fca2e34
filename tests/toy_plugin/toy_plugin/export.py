"""An export: the tuned kernels in one text."""

from __future__ import annotations

from tunesmith.deliver.artefact import Artefact, Target


def write(artefact: Artefact) -> dict[str, bytes]:
    texts = [result.files[file] for result, file in artefact.tuned]
    return {"toys.txt": b"\n".join(texts)}


TARGET = Target("toy", "one text", ("toy",), write)
