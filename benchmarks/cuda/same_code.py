"""Whether two versions of Tunesmith print the same kernels: machine code of configurations built by both.

    python -m benchmarks.cuda.same_code --other SRC [--count N] [--seed S] [--jobs N] PROBLEM…

SRC is the `src` folder of the other version. The expert of each writes its template; N configurations of the
other's, the default among them, are built from both, with what this version has beside them at its defaults.
No GPU is needed: NVRTC builds for the architecture of `tunesmith template`.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cuda.asking import environment_with
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, builds_of, configs_of
from tunesmith.problem.template_file import parse_template
from tunesmith.session.problems import load_problem
from tunesmith.space.configset import Config

DEVICE = absent_device(None)


@dataclass(frozen=True)
class Compared:
    same: int
    other: tuple[Config, ...]  # those whose code differs
    missing: int  # configurations that this version does not have


def template_by(src: Path | None, problem: Path, folder: Path) -> str:
    """What `tunesmith template` writes, of the version in `src` or of this one."""
    out = folder / f"{'this' if src is None else 'other'}-{problem.name}.cu"
    words = [sys.executable, "-m", "tunesmith", "-q", "template", str(problem), "--backend", "cuda"]
    words += ["--out", str(out)]
    subprocess.run(words, check=True, env=environment_with(src), capture_output=True)
    return out.read_text()


def codes(problem: Problem, template: Template, config: Config) -> list[str]:
    """Digests of the machine code, one for each build of the configuration."""
    found = []
    for made in builds_of(problem, template, config, problem.workloads[:2]):
        v = made.variant
        binary = build_cubin(Unit(v.path, v.source, v.language, v.flags, v.entries, compiler="nvrtc"), DEVICE)
        found.append(binary.code_digest)
    return found


def compared(folder: Path, other_src: Path, count: int, seed: int, jobs: int) -> Compared:
    problem, _ = load_problem(folder)
    with tempfile.TemporaryDirectory() as made:
        texts = [template_by(src, folder, Path(made)) for src in (other_src, None)]
    other, this = (parse_template(text, path="template.cu", problem=problem) for text in texts)
    every, known = configs_of(problem, other, DEVICE), configs_of(problem, this, DEVICE)
    places = random.Random(seed).sample(range(len(every)), min(count, len(every)))
    chosen = dict.fromkeys([other.default, *(every[place] for place in places)])
    pairs = [(one, moved) for one in chosen if (moved := _as_this(one, this)) is not None and moved in known]

    def is_same(pair: tuple[Config, Config]) -> bool:
        return codes(problem, other, pair[0]) == codes(problem, this, pair[1])

    with ThreadPoolExecutor(jobs) as pool:
        same = list(pool.map(is_same, pairs))
    differ = tuple(one for (one, _), equal in zip(pairs, same, strict=True) if not equal)
    return Compared(sum(same), differ, len(chosen) - len(pairs))


def _as_this(config: Config, template: Template) -> Config | None:
    values, given = template.default.as_dict(), config.as_dict()
    if not given.keys() <= values.keys():
        return None
    return Config.of({**values, **given})


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("problems", nargs="+", type=Path, metavar="PROBLEM")
    options.add_argument("--other", type=Path, required=True, help="the src folder of the other version")
    options.add_argument("--count", type=int, default=12, help="configurations of each, at most")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=2, help="builds at a time")
    given = options.parse_args()
    for problem in given.problems:
        try:
            found = compared(problem, given.other, given.count, given.seed, given.jobs)
        except subprocess.CalledProcessError as error:
            print(f"{problem.name}: no template: {error.stderr.decode()[-200:].strip()}", flush=True)
            continue
        text = f"{problem.name}: {found.same} the same, {len(found.other)} others, {found.missing} not there"
        print("; ".join([text, *map(str, found.other[:3])]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
