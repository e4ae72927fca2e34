"""`python -m tests.hostile.random_kernels --count 5000 --seed 1 --jobs 2`: a long run, then a table."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import count, islice
from pathlib import Path

from tests.hostile.random_kernels.generator import language_of
from tests.hostile.random_kernels.running import Failure, Tally, fails_again, reduced, run_seeds

BATCH = 12  # kernels in one program


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.random_kernels", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="kernels to generate")
    parser.add_argument("--seed", type=int, default=1, help="of the first kernel; the next have the next")
    parser.add_argument("--only", choices=("cuda", "opencl"), help="kernels of this language alone")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--configs", type=int, default=3, help="configurations of a template at a size")
    parser.add_argument("--minutes", type=float, default=0.0, help="end after the batch under way then")
    parser.add_argument(
        "--keep", type=Path, default=Path("random-kernels"), help="folder for kernels that fail"
    )
    parser.add_argument("--no-reduce", action="store_true", help="keep failing kernels as they are")
    own = parser.parse_args(words)
    seeds = islice((n for n in count(own.seed) if own.only in (None, language_of(n))), own.count)
    batches = list(iter(lambda: tuple(islice(seeds, BATCH)), ()))
    began, total = time.monotonic(), Tally()
    with ProcessPoolExecutor(own.jobs) as pool:
        waiting = {pool.submit(_batch, batch, own.configs, not own.no_reduce) for batch in batches}
        for done in as_completed(waiting):
            if done.cancelled():
                continue
            tally, failures = done.result()
            total.add(tally)
            for name, text in failures:
                own.keep.mkdir(parents=True, exist_ok=True)
                (own.keep / name).write_text(text)
            _progress(total, own.count, time.monotonic() - began)
            if own.minutes and time.monotonic() - began > own.minutes * 60:
                for one in waiting:
                    one.cancel()
    print(f"\n{total.table()}")
    return 1 if total.wrong or total.broken else 0


def _progress(total: Tally, count: int, seconds: float) -> None:
    text = f"{total.kernels}/{count} kernels, {total.lifted} lifted, {total.configurations} configurations, "
    print(f"{text}{total.wrong} wrong, {total.broken} broken, {seconds:.0f} s", file=sys.stderr, flush=True)


def _batch(seeds: tuple[int, ...], configs: int, shorten: bool) -> tuple[Tally, list[tuple[str, str]]]:
    folder = _folder()
    tally, failures = run_seeds(seeds, folder, configs)
    texts = []
    for failure in failures:
        texts.append((f"{failure.program.name}.{failure.program.suffix}", failure.text()))
        texts.append((f"{failure.program.name}.toml", failure.program.toml()))
        texts.append((f"{failure.program.name}.template.{failure.program.suffix}", failure.attempt.template))
        if shorten:
            texts.append(
                (f"{failure.program.name}.reduced.{failure.program.suffix}", _shorter(failure, folder))
            )
    return tally, texts


def _shorter(failure: Failure, folder: Path) -> str:
    return reduced(failure.program, lambda program: fails_again(program, failure, folder)).source


_FOLDERS: list[Path] = []


def _folder() -> Path:
    """One to a process: the emulator's header is compiled once in each."""
    if not _FOLDERS:
        _FOLDERS.append(Path(tempfile.mkdtemp(prefix="random-kernels-")))
        import atexit

        atexit.register(shutil.rmtree, _FOLDERS[0], ignore_errors=True)
    return _FOLDERS[0]


if __name__ == "__main__":
    sys.exit(main())
