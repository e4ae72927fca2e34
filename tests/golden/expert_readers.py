"""What the expert makes of pieces of text: the readers of cases."""

from __future__ import annotations

from tests.golden.csource_readers import Reader

EXPERT: dict[str, Reader] = {}
