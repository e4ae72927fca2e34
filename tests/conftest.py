"""Nothing a test does reaches the user's own folders; tests that need a GPU skip where there is none."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import shutil
import signal
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests import frameworks, single_threaded, thoroughness, unsynced  # noqa: F401 (threads, and a profile)
from tests.compiled_once import made_once
from tunesmith.backends.cuda.compile import COMPILERS
from tunesmith.backends.cuda.devices import describe_all
from tunesmith.backends.port import LaunchFailed, Unsupported
from tunesmith.session import place as workplace

# One for all processes of a run, for what takes long to make; whoever made it removes it.
_SHARED = "" if "TESTS_SHARED_FOLDER" in os.environ else tempfile.mkdtemp(prefix="tunesmith-tests-shared-")
os.environ.setdefault("TESTS_SHARED_FOLDER", _SHARED)
# Set before any test module asks a driver anything: PoCL reads its environment once.
_SCRATCH = Path(tempfile.mkdtemp(prefix="tunesmith-tests-"))
os.environ.update(
    {k: v for k, v in workplace.worker_environment("opencl", _SCRATCH).items() if k != "TMPDIR"}
)
# A shell's background jobs ignore Ctrl-C, and so would all that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Nothing is written beside the sources, and yet no process that a test starts compiles them all again.
    os.environ["PYTHONPYCACHEPREFIX"] = str(_SCRATCH / "bytecode")


@cache
def without_cuda() -> str:
    """Why CUDA cannot be used here; empty where it can."""
    try:
        return "" if describe_all() else "no CUDA device here"
    except (LaunchFailed, Unsupported) as error:
        return f"no CUDA device here: {error}"


def pytest_configure(config: pytest.Config) -> None:
    COMPILERS["nvrtc"] = made_once
    frameworks.insist(config.getoption("markexpr"), lambda: not without_cuda())


def pytest_collection(session: pytest.Session) -> None:
    """Of two processes that collect all tests one begins at the end: each finds half of them compiled."""
    gc.disable()  # until all are collected: nothing of this is garbage
    here = Path(__file__).parent
    all_of_them = session.config.args in ([str(here)], ["tests"])
    if os.environ.get("PYTEST_XDIST_WORKER") != "gw1" or not all_of_them:
        return
    files = sorted(here.rglob("test_*.py"), reverse=True)
    for file in files[: len(files) // 2]:
        # What cannot be imported is reported when it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(here.parent).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones first, so that none of them is left to one process at the end. Of tests with parameters
    that are marked `few`, all but that many, evenly spread, are long."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few"):
            groups[item.nodeid.partition("[")[0]].append(item)
    for group in groups.values():
        marker = group[0].get_closest_marker("few")
        assert marker is not None
        chosen = {int(place * len(group) / marker.args[0]) for place in range(marker.args[0])}
        for place, item in enumerate(group):
            if place not in chosen:
                item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.set_threshold(20_000, 10, 50)  # tests make values by the million and few circles
    gc.freeze()  # thousands of tests stay to the end: nobody needs to look through them for garbage


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Asked when the first such test is due, so that no driver is loaded for the others.
    if item.get_closest_marker("gpu") and without_cuda():
        pytest.skip(without_cuda())


def pytest_unconfigure() -> None:
    shutil.rmtree(_SCRATCH, ignore_errors=True)
    if _SHARED:
        shutil.rmtree(_SHARED, ignore_errors=True)


_TESTS = itertools.count()


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody waits for a quiet machine where no time is claimed.
    monkeypatch.setattr("tunesmith.lab.measure.PATIENCE", 0.0)
    for name in [n for n in os.environ if n.startswith("TUNESMITH_")]:
        monkeypatch.delenv(name)
    folder = _SCRATCH / f"test-{next(_TESTS)}"  # most tests never make it
    monkeypatch.setenv("TUNESMITH_CACHE_DIR", str(folder / "user-cache"))
    monkeypatch.setenv("TUNESMITH_LIBRARY_DIR", str(folder / "user-library"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "user-config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "user-data"))
