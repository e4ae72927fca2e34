"""What is delivered is called as it is delivered: its files and stored code, through its dispatch."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.core.lab.labs import Harness, fault_template, lab, scale_problem
from tests.running import EXAMPLES
from tests.samples import a_device
from tunesmith.backends.port import PortableForm
from tunesmith.base.text import digest_of
from tunesmith.lab.lab import BinaryShelf
from tunesmith.problem.dispatch import delivered_variant
from tunesmith.problem.plan import Status
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import variant_fault
from tunesmith.run.delivery import assemble_delivery
from tunesmith.run.events import Served, VerifiedBuild
from tunesmith.run.outcome import Interval
from tunesmith.run.ports import Delivery, SizedCall
from tunesmith.run.race import Pick, Winners
from tunesmith.session.problems import load_problem

GAIN = Interval(2.0, 1.9, 2.1)
FORM = PortableForm("bin", lambda data: ({"scale": "symbol"}, data[::-1]), lambda _symbols, data: data[::-1])


class Store(dict[str, bytes]):
    def put(self, data: bytes) -> str:
        self[digest_of(data)] = data
        return digest_of(data)

    def get(self, digest: str) -> bytes:  # type: ignore[override]
        return self[digest]


def made_of(own: Harness, builds: tuple[VerifiedBuild, ...] = (), kind: int = 0, **more: object) -> Delivery:
    config = replace(own.template.default, items=(("KIND", kind),))
    choice = replace(Winners(config, (Pick("small", config, GAIN),)), **more)  # type: ignore[arg-type]
    template = own.template
    return assemble_delivery(own.problem, lambda _config: template, own.lab._device, choice, builds)


def served(own: Harness, made: Delivery, *sizes: tuple[int, int], workload: str = "") -> Served:
    calls = [SizedCall((("rows", rows), ("d", d)), workload) for rows, d in sizes]
    return own.lab.serve(made, calls)


def test_sizes_of_no_workload_are_timed_against_the_original() -> None:
    with lab(scale_problem(), fault_template(time="10000 + rows * d")) as own:
        made = made_of(own)
        found = served(own, made, (64, 64), (2, 16))
        assert [call.result.status for call in found.calls] == [Status.OK] * 2
        assert {call.file for call in found.calls} == {"scale-general.fake"}
        assert found.dispatch == made.entries_digest
        timing = found.calls[0].result.timing
        assert min(timing.ratios) > 1.3  # 24096 against 14096
        assert found.calls[0].result.workload == "rows=64, d=64"


def test_where_the_original_serves_nothing_is_timed() -> None:
    with lab(scale_problem(), fault_template()) as own:
        found = served(own, made_of(own, where=("rows <= 8",)), (64, 64))
        assert found.calls[0].config is None
        assert found.calls[0].file == "original.fake"
        assert found.calls[0].result.timing is None


def test_what_is_wrong_at_another_size_is_noticed() -> None:
    with lab(scale_problem(), fault_template("2 if rows > 16 else 0")) as own:
        good, bad = served(own, made_of(own), (16, 32), (64, 64)).calls
        assert good.result.ok
        assert not bad.result.ok


def test_a_workload_keeps_its_name_in_what_is_reported() -> None:
    with lab(scale_problem(), fault_template()) as own:
        assert served(own, made_of(own), (16, 32), workload="small").calls[0].result.workload == "small"


def test_stored_code_is_loaded_and_not_built_again() -> None:
    store = Store()
    with lab(scale_problem(), fault_template()) as own:
        own.lab._shelf = BinaryShelf(FORM, store)
        trial = own.trial(KIND=0)
        verified = own.lab.verify(trial)
        (build,) = verified.builds
        assert build.binary.symbols == (("scale", "symbol"),)
        assert store[build.binary.digest][::-1]  # as workers take it
        own.lab._builders.close()  # whoever built now would fail
        found = served(own, made_of(own, verified.builds), (64, 64))
        assert found.calls[0].result.ok
        assert made_of(own, verified.builds).binaries == {"scale-general.bin": build.binary.digest}


def test_the_baseline_stores_the_original() -> None:
    with lab(scale_problem(), fault_template(), baseline=False) as own:
        own.lab._shelf = BinaryShelf(FORM, Store())
        (build,) = own.lab.baseline().builds
        assert build.binary is not None
        assert build.workloads == ("small",)


def test_a_backend_without_such_a_form_stores_nothing() -> None:
    with lab(scale_problem(), fault_template()) as own:
        (build,) = own.lab.verify(own.trial(KIND=0)).builds
        assert build.binary is None
        assert build.code_digest


def test_a_strangers_kernel_is_delivered_as_it_was_judged_and_vetted_as_it_is_delivered() -> None:
    own = load_problem(EXAMPLES / "opencl" / "rmsnorm")[0]
    text = (EXAMPLES / "opencl" / "rmsnorm" / "template.cl").read_text()
    template = replace(parse_template(text, path="t.cl", problem=own), is_foreign=True).on(a_device())
    pick = Pick(own.workloads[0].name, template.default, GAIN)
    made = assemble_delivery(own, lambda _config: template, a_device(), Winners(template.default, (pick,)))
    entry = made.dispatch.tuned[0]
    source = made.files[entry.file].decode()
    assert source == template.render(own, template.default, own.workloads[0].as_dict()).source
    assert not re.search(r"^\s*#\s*(?!line|pragma)", source, re.MULTILINE)
    sizes = own.workloads[0].as_dict()

    def fault(more: str) -> str:
        files = made.files | {entry.file: (source + more).encode()}
        called = delivered_variant(made.dispatch, entry, files, sizes)
        return variant_fault(replace(called, made_from=made.made_from[entry.digest]), 0)

    assert fault("") == ""
    assert "system is declared" in fault("int system(__constant char *);\n")
    assert "not decided" in fault("#if 1 > 0u\n#endif\n")
