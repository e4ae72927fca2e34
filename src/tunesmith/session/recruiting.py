"""Devices that come while a run goes on: each that is of the run's kind measures with the others from then
on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from tunesmith.errors import TunesmithError
from tunesmith.lab.pool import LabPool
from tunesmith.lab.process import WorkerDied
from tunesmith.run.config import RunConfig
from tunesmith.session import several
from tunesmith.session.several import PoolParts
from tunesmith.session.workplace import Post, WorkerSource

MOMENT = 0.5  # seconds between two looks whether the run is over


def recruit(pool: LabPool, parts: PoolParts, posts: Sequence[Post], config: RunConfig) -> None:
    """By a thread of its own, as long as the pool is open: to reach a machine takes seconds."""
    arrivals = posts[0].place.source.arrivals
    assert arrivals is not None
    note: Callable[[str], None] = parts.options["progress"]

    def work() -> None:
        taken: list[WorkerSource] = []
        while not pool.is_closing:
            try:
                source = arrivals.get(timeout=MOMENT)
            except queue.Empty:
                continue
            taken.append(source)
            try:
                _take_in(source, pool, parts, posts, config)
            except (TunesmithError, WorkerDied) as error:
                source.close()
                if not pool.is_closing:
                    note(f"the run does without worker {source.name!r}: {error}")
        for source in taken:
            source.close()  # threads of the pool may wait for one that is lost

    threading.Thread(target=work, name="recruit", daemon=True).start()


def _take_in(
    source: WorkerSource, pool: LabPool, parts: PoolParts, posts: Sequence[Post], config: RunConfig
) -> None:
    if not source.measures:
        return  # how many build was settled when the run began
    new = several.posts_of(config, (source,), posts[0].place)
    several.refuse_other_kinds((posts[0], *new))
    for post in new:
        lab = parts.lab(post, 1)
        if pool.join(lab):
            parts.options["progress"](f"{post.name} measures too from here on")
        else:
            lab.close_own()
