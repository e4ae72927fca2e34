"""Pages, exports and figures of results that are made up: each group of them is kept whole.

python -m tests.golden.shown [GROUP]...       writes `shown-GROUP.tar.xz` anew; all where no group is named
"""

from __future__ import annotations

import sys

from tests.benchmarks import shown as benchmarks
from tests.core.agents import shown as prompts
from tests.core.deliver.shown import comparisons, deliveries, exports, reports
from tests.golden.archive import archive_of, first_difference, read_archive, write_archive

GROUPS = {
    "reports": reports.pages,
    "comparisons": comparisons.pages,
    "deliveries": deliveries.pages,
    "exports": exports.pages,
    "prompts": prompts.pages,
    "benchmarks": benchmarks.pages,
}


def texts_of(group: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, text in GROUPS[group]():
        assert name not in found, name
        found[name] = text
    return found


if __name__ == "__main__":
    for group in sys.argv[1:] or GROUPS:
        archive, texts = archive_of(group), texts_of(group)
        print(first_difference(read_archive(archive), texts) or f"{group}: as it was")
        write_archive(archive, texts)
        print(f"{group}: {len(texts)} texts, {archive.stat().st_size >> 10} KiB")
