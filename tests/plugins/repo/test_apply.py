"""`tunesmith apply` as a user calls it, of a run that was recorded on an H200: into a repository and back."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import pytest

from tests.plugins.repo.apply.repositories import git
from tests.running import FIXTURES, Ended, tunesmith
from tunesmith.plugins.repo.extract.draft import text_digest
from tunesmith.run.folder import RunFolder

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
]  # nvcc shows that what is shortened is the same code

RUN = "compared/runs/silu_and_mul_vector/template-1"
HOST = """
void silu(__half *out, const __half *input, int tokens, int d, cudaStream_t stream)
{
    const int block = d / 8 < 1024 ? d / 8 : 1024;
    silu_and_mul<<<tokens, block, 0, stream>>>(out, input, tokens, d);
}
"""
BENCH = """\
import pathlib
tuned = "silu_and_mul_vector_tuned::launch(" in pathlib.Path("csrc/silu.cu").read_text()
print(f"step: {1.5 if tuned else 3.0} ms")
"""
CHECKS = """\
import pathlib
text = pathlib.Path("csrc/silu.cu").read_text()
assert "<<<" in text or pathlib.Path("csrc/silu_and_mul_vector_tuned.cuh").exists()
"""
CALL = "silu_and_mul<<<tokens, block, 0, stream>>>(out, input, tokens, d);"


class Recorded:
    """The run, as if its problem had been taken from the repository beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.repo, self.run = folder, folder / "repo", folder / "run"
        with tarfile.open(FIXTURES / "comparisons" / "h200.tar.xz") as archive:
            for one in archive:
                if one.name.startswith(f"{RUN}/"):
                    archive.extract(one, folder, filter="data")
        (folder / RUN).rename(self.run)
        first, rest = (self.run / "journal.jsonl").read_text().split("\n", 1)
        started = json.loads(first)
        files = dict(started["event"]["files"])
        (self.repo / "csrc").mkdir(parents=True)
        (self.repo / "csrc" / "silu.cu").write_text(self.object(files["kernel.cu"]) + HOST)
        (self.repo / "bench.py").write_text(BENCH)
        (self.repo / "checks.py").write_text(CHECKS)
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
            git(self.repo, "-c", "user.name=x", "-c", "user.email=x@y", *words)
        problem = self.object(files["problem.toml"]) + self.origin()
        files["problem.toml"] = RunFolder(self.run).put(problem.encode())
        started["event"]["files"] = list(files.items())
        (self.run / "journal.jsonl").write_text(f"{json.dumps(started)}\n{rest}")
        ended = tunesmith(folder, "resume", self.run)
        assert ended.code == 0, ended.err

    def object(self, digest: str) -> str:
        return (self.run / "objects" / digest).read_text()

    def origin(self) -> str:
        text = (self.repo / "csrc" / "silu.cu").read_text()
        line = text[: text.index(CALL)].count("\n") + 1
        lines = [
            "\n[origin]",
            'file = "csrc/silu.cu"',
            f'launches = ["csrc/silu.cu:{line}"]',
            f"repository = {json.dumps(str(self.repo))}",
            'kernel = "silu_and_mul"',
            "[origin.digests]",
            f'"csrc/silu.cu" = "{text_digest(text)}"',
        ]
        return "\n".join(lines) + "\n"

    def apply(self, *words: object) -> Ended:
        named = () if "--" in words else ("--repo", self.repo)
        return tunesmith(self.folder, "apply", self.run, *named, *words)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Each test leaves it as it was."""
    return Recorded(tmp_path_factory.mktemp("recorded"))


def test_a_recorded_run_goes_into_its_repository_and_back(recorded: Recorded) -> None:
    python, repo = sys.executable, recorded.repo
    commands = ("--test", f"{python} checks.py", "--bench", f"{python} bench.py", "--build", "true")
    done = recorded.apply(*commands, "--metric", "step: (.*) ms", "--json")
    assert done.code == 0, done.err
    made = json.loads(done.out)
    assert f"-    {CALL}" in made["diff"]
    assert (made["ending"], made["delivered"], made["winners"]) == ("applied", 5, 5)
    assert made["bench"]["before"] == [3.0] * 3
    assert made["bench"]["after"] == [1.5] * 3
    text = (repo / "csrc" / "silu.cu").read_text()
    assert "::silu_and_mul_vector_tuned::launch(" in text
    assert CALL not in text
    again = recorded.apply()
    assert (again.code, "applied already" in again.err) == (2, True)
    undone = recorded.apply("--undo")
    assert undone.code == 0, undone.err
    assert "undone" in undone.out
    assert not git(repo, "status", "--porcelain", "csrc")


def test_what_cannot_be_swapped_is_a_sentence(recorded: Recorded) -> None:
    for words, fault in (
        (("--swap",), "there is no program to run"),
        (("--", "true"), "a program, true, is given without --swap"),
        (("--kernel", "k"), "--kernel is given without --swap"),
        (("--swap", "--build", "make", "--", "true"), "--build is for patches"),
        # It was recorded without machine code.
        (("--swap", "--", "true"), "the run has no machine code of it"),
    ):
        ended = recorded.apply(*words)
        assert (ended.code, fault in ended.err) == (2, True), ended.err
