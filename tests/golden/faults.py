"""What readers of files say of faults: `faults/READER.toml` has edits of a file that is right, and the words.

python -m tests.golden.faults        writes the words anew; a new edit needs `old` and `new` alone
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.golden import entry
from tests.golden.archive import read_archive
from tests.golden.pages import PAGES, command
from tests.golden.record import kept, unpack
from tests.running import EXAMPLES, FIXTURES

FOLDER = Path(__file__).with_name("faults")
RUN = "fake-written"
SCALE, RMSNORM = FIXTURES / "scale", EXAMPLES / "opencl" / "rmsnorm"
SETTINGS = 'search = "default"\nevals = 20\nseed = 1\ncache = true\nsteer = false\n'
HOSTS = '[[worker]]\nname = "first"\ncommand = ["ssh", "first", "worker"]\ndevice = "0"\nwait = 60\n'
PLAN = 'device_hours = 2\n[[problem]]\npath = "ops"\nweight = 2\n[[device]]\nname = "gpu"\ndevice = "0"\n'
PLAN += '[[author]]\nname = "expert"\n[tune]\nevals = 20\n'
WORKLOADS = "[workloads.tall]\nrows = 64\nd = 256\n[workloads.flat]\nrows = 4\nd = 512\nweight = 2.0\n"


class Reader(NamedTuple):
    base: Callable[[], str]
    words: Callable[[str, Path], str]  # what it says of a text; the folder is empty


def refused(read: Callable[[], object]) -> str:
    try:
        read()
    except entry.BadInput as error:
        return f"{error}; hint: {error.hint}"
    return "nothing is wrong"


def page(name: str) -> str:
    return read_archive(PAGES)[f"{RUN}/run/{name}"].decode()


def problem(text: str, place: Path) -> str:
    for file in ("kernel.cl", "reference.py"):
        (place / file).write_bytes((RMSNORM / file).read_bytes())
    (place / "problem.toml").write_text(text)
    return refused(lambda: entry.load_problem(place))


def template(text: str, place: Path) -> str:
    (place / "template.cl").write_text(text)
    definition, files = entry.load_problem(RMSNORM)
    return refused(lambda: entry.load_template(place / "template.cl", definition, files))


def settings(text: str, place: Path) -> str:
    (place / "tunesmith.toml").write_text(text)
    return refused(lambda: entry.resolve_config({}, {}, place))


def hosts(text: str, place: Path) -> str:
    (place / "hosts.toml").write_text(text)
    return refused(lambda: entry.read_hosts(place / "hosts.toml"))


def workloads(text: str, place: Path) -> str:
    (place / "sizes.toml").write_text(text)
    loaded = entry.load_problem(SCALE)
    return refused(lambda: entry.change_workloads(loaded, place / "sizes.toml"))


def of_run(file: str, *words: str) -> Callable[[str, Path], str]:
    """By a command on a run's folder in which this file is another one."""

    def say(text: str, place: Path) -> str:
        run = unpack(RUN, place)
        for name in ("certificate.json", "report.json", "tuned/dispatch.json"):
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_text(page(name))
        (run / file).write_text(text)
        return command(place, *words).decode().strip()

    return say


READERS = {
    "problem": Reader((RMSNORM / "problem.toml").read_text, problem),
    "template": Reader((RMSNORM / "template.cl").read_text, template),
    "settings": Reader(lambda: SETTINGS, settings),
    "hosts": Reader(lambda: HOSTS, hosts),
    "workloads": Reader(lambda: WORKLOADS, workloads),
    "plan": Reader(lambda: PLAN, lambda text, _: refused(lambda: entry.read_plan(text, "plan.toml"))),
    "certificate": Reader(
        lambda: page("certificate.json"), of_run("certificate.json", "verify", f"{RUN}/certificate.json")
    ),
    "report": Reader(lambda: page("report.json"), of_run("report.json", "diff", *[f"{RUN}/report.json"] * 2)),
    "dispatch": Reader(
        lambda: page("tuned/dispatch.json"),
        lambda text, _: refused(lambda: entry.read_dispatch(text.encode())),
    ),
    "journal": Reader(
        lambda: kept()[f"{RUN}/journal.jsonl"].decode(),
        of_run("journal.jsonl", "report", RUN),
    ),
}


def faults(reader: str) -> list[dict[str, str]]:
    return tomllib.loads((FOLDER / f"{reader}.toml").read_text("utf-8"))["fault"]


def words_of(reader: str, fault: dict[str, str]) -> str:
    base = READERS[reader].base()
    assert fault["old"] in base, f"{fault['old']!r} is not in the file that is right"
    with tempfile.TemporaryDirectory(prefix="golden-") as place:
        said = READERS[reader].words(base.replace(fault["old"], fault["new"], 1), Path(place))
    return said.replace(place, "PLACE")


def differences(reader: str) -> Iterator[str]:
    for fault in faults(reader):
        if (now := words_of(reader, fault)) != fault.get("want"):
            yield f"{fault['old']!r} -> {fault['new']!r}\nwas: {fault.get('want')}\nis:  {now}"


if __name__ == "__main__":
    for reader in READERS:
        lines = [
            f"[[fault]]\nold = {json.dumps(one['old'])}\nnew = {json.dumps(one['new'])}\n"
            f"want = {json.dumps(words_of(reader, one), ensure_ascii=False)}\n"
            for one in faults(reader)
        ]
        (FOLDER / f"{reader}.toml").write_text("\n".join(lines), "utf-8")
        print(f"{reader}: {len(lines)}", flush=True)
