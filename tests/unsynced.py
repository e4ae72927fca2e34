"""Nobody pulls the plug in a test: what was written survives processes that are killed, on the disk or not.

Runs of tests write thousands of events, each with a wait for the disk. That the journal waits is a test's own
subject (`tests/core/run/test_store.py`), which sees when `os.fsync` is called.
"""

from __future__ import annotations

# To stand at the head of a program that a test starts in a process of its own.
IN_A_PROCESS = "import os\nos.fsync = lambda descriptor: os.fstat(descriptor) and None\n"
exec(IN_A_PROCESS)
