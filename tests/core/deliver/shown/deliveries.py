"""What is delivered of made-up winners: dispatch.json, launch.cu, and the files for Kernel Tuner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.core.deliver import cuda_kernels as cuda
from tests.core.deliver.deliveries import BAKED, PROBLEM, A, B, C, choice, delivered, requiring, with_headers
from tests.plugins.exports import tuner_results as tuner
from tests.samples import (
    DEVICE,
    HOPPER,
    TEMPLATE,
    WORKLOADS,
    a_device,
    a_problem,
    a_template,
    finalist,
    verified,
)
from tests.samples import PROBLEM as TEXT
from tunesmith.base.codec import encode_json
from tunesmith.problem.plan import Status
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.delivery import assemble_delivery
from tunesmith.run.events import Asked, Attached, Measured
from tunesmith.run.race import Winners
from tunesmith.space.expr import parse_expr

Pages = Iterator[tuple[str, bytes]]


def pages() -> Pages:
    for name, files in _deliveries():
        yield from ((f"tuned/{name}/{file}", data) for file, data in files.items())
    far = replace(choice(A, small=A, wide=B), where=("rows <= 64", "(d >= 9 or rows <= 2)"))
    for name, winners, template in (
        ("too long a condition", choice(A, small=A, wide=A), requiring(30)),
        ("known to a build alone", choice(B, small=B, wide=B), a_template(PROBLEM, _ASKING)),
        ("beyond what was tried", far, a_template(PROBLEM)),
    ):
        made = assemble_delivery(PROBLEM, lambda _config, found=template: found, a_device(), winners)
        yield f"tuned/{name}.json", encode_json(made.dispatch)
    yield from ((f"launch.cu/{name}.cu", text.encode()) for name, text in _launchers())
    for name, files in _for_tuner():
        yield from ((f"kernel-tuner/{name}/{file}", data) for file, data in files.items())


_ASKING = BAKED.replace('grid = ["', 'grid = ["max(1, resources.blocks_per_sm) * ')


def _before_launch(*lines: str) -> str:
    return TEMPLATE.replace("// [launch]", "".join(f"// {line}\n" for line in lines) + "// [launch]")


def _deliveries() -> Iterator[tuple[str, dict[str, bytes]]]:
    both = choice(B, small=B, wide=B)
    where = ("rows <= 20", "(rows) * (d) <= 4096")
    for name, winners in (
        ("one for all", both),
        ("verified so far", replace(both, where=where)),
        ("one of its own", choice(B, small=A, wide=B)),
        ("one original", choice(B, small=None, wide=B)),
        ("workloads alone", choice(None, small=A, wide=None)),
        ("no gain", choice(None, small=None, wide=None)),
        ("one for two", choice(B, small=A, wide=A)),
    ):
        yield name, delivered(winners)[0]
    part = '[workspace]\n// part = { type = "float32*", shape = ["rows", "BLOCK"], init = 0.5, align = 16 }'
    args = '// args = ["out", "x", "rows", "d", "part"]'
    launch = a_template(PROBLEM).launches[0]
    launch = replace(launch, cluster=(parse_expr("VEC"), parse_expr(1)), cooperative=True, pdl=True)
    for name, template in (
        ("a long condition", requiring(5)),
        ("baked", a_template(PROBLEM, BAKED)),
        (
            "workspace",
            a_template(PROBLEM, _before_launch(part).replace("// [launch]", f"// [launch]\n{args}")),
        ),
        ("all of a launch", replace(a_template(PROBLEM), launches=(launch,))),
    ):
        yield name, delivered(both, template=template)[0]
    fits = a_template(PROBLEM, _before_launch('fits = "BLOCK <= device.max_threads"'))
    yield "forbidden by the device", delivered(choice(A, small=A, wide=A), template=fits, max_threads=32)[0]
    defining = a_problem('defines = { KIND = 2 }\nflags = ["-fast"]')
    yield "defines", delivered(choice(None, small=None, wide=None), defining)[0]
    headed = with_headers(PROBLEM, ("math/all.h", '#include "one.h"\n'), ("one.h", "é"))
    yield "headers", delivered(choice(B, small=A, wide=B), headed)[0]
    for odd in ("general", "a.b", "a-b"):
        problem = a_problem(workloads=f'"{odd}" = {{ rows = 1, d = 64 }}\n{WORKLOADS}')
        yield f"workload {odd}", delivered(choice(B, **{odd: A, "small": C, "wide": B}), problem)[0]


def silu() -> str:
    arguments = cuda.an_array("out", "float16", "output") + cuda.an_array("x", "float16", "input")
    limits = "int = { min = 8, max = 4096, multiple_of = 8 }"
    sizes = cuda.SIZES.replace(limits, "int = { one_of = [256, 2048] }")
    entry = "act::silu<__half, {int}>"
    problem = cuda.a_problem(cuda.SILU, arguments + cuda.SCALARS, cuda.LAUNCH, entry, sizes=sizes)
    return cuda.launched(problem, cuda.SILU_TEMPLATE, cuda.block(128, 4), None)[0]


def _launchers() -> Iterator[tuple[str, str]]:
    def of(template: str = cuda.TEMPLATE, kernel: str = cuda.KERNEL, **more: Any) -> str:
        problem = cuda.a_problem(kernel, cuda.ARGUMENTS, cuda.LAUNCH)
        changed = replace(problem, kernel=replace(problem.kernel, **more))
        return cuda.launched(changed, template, cuda.block(128, 4), cuda.block(64))[0]

    yield "same names", cuda.scales()
    yield "a number for a name", cuda.scales("2-scale")
    yield "templates", silu()
    yield "two launches", cuda.two_launches(sms=16)
    yield "fixed scalars", cuda.fixed()
    arguments = cuda.an_array("out", "float32", "output") + cuda.FIXED
    alone = cuda.a_problem(cuda.FIXED_KERNEL, arguments, cuda.LAUNCH)
    yield "the original alone", cuda.launched(alone, cuda.FIXED_TEMPLATE, None, None)[0]
    yield "headers", of(cuda.WITH_OWN_HEADERS, cuda.WITH_HEADERS, headers=cuda.HEADERS)
    two = '#if {0}\n#include "{1}.h"\n#endif\n'
    circle = tuple((f"{n}.h", two.format("A", n + 1) + two.format("B", n + 1)) for n in range(40))
    yield "headers without end", of(kernel='#include "0.h"\n' + cuda.KERNEL, headers=circle)
    yield "namespace std", of(kernel="namespace std { struct Mine {}; }\n" + cuda.KERNEL)
    yield "global names", of(kernel=cuda.KERNEL.replace("] = twice(", "] = ::twice("))
    yield (
        "known to a build",
        of(cuda.TEMPLATE.replace("BLOCK * VEC)", "BLOCK * VEC * max(1, resources.blocks_per_sm))")),
    )
    yield (
        "other flags",
        of(cuda.TEMPLATE.replace("// [launch]", '// [build]\n// flags = ["-DX={VEC} X"]\n// [launch]')),
    )
    gencode = (
        "-gencode arch=compute_90,code=sm_90",
        "-default-device",
        "--device-int128",
        "-Xptxas '-O2 x'",
        "-w'",
    )
    yield "flags of nvcc", of(flags=gencode)
    yield "flags of both", of(flags=("--expt-relaxed-constexpr", "--device-as-default-execution-space"))
    problem = replace(cuda.a_problem(cuda.KERNEL, cuda.ARGUMENTS, cuda.LAUNCH), name="a\nint b; \\")
    template = parse_template(cuda.TEMPLATE, path="template.cu", problem=problem)
    device = replace(a_device(capability=90), name="GPU\r#error no \\ ")
    yield "hostile names", cuda.tuned(problem, template, device, Winners(None, ()))["launch.cu"].decode()


def cuda_for_tuner() -> tuple[Any, str, Any]:
    """A problem with options, a header and dynamic shared memory, its template, and how its search went."""
    kernel = "#include <cstdint>\n__global__ void scale(float* out, const float* x, int rows, int d) {}\n"
    text = TEXT.format(kernel='flags = ["-O3", "-use_fast_math"]', workloads=WORKLOADS)
    text = text.replace("kernel.cl", "kernel.cu")
    problem = parse_problem(text, path="problem.toml", read=lambda _name: kernel)
    source = TEMPLATE[: TEMPLATE.index("__kernel")] + kernel
    template = tuner.changed('block = ["BLOCK"]', 'block = ["BLOCK"]\n// shared = "1024 * BLOCK"', source)
    return problem, template, tuner.won(Attached(replace(DEVICE, limits=HOPPER), "nvrtc 13.4", 0))


def referenced() -> Any:
    reference = "def twice(x, rows):\n    assert x.shape[0] == rows\n    return 2 * x\n"
    return tuner.problem_with("[workloads]", '[accuracy]\nreference = "own.py:twice"\n[workloads]', reference)


def _for_tuner() -> Iterator[tuple[str, dict[str, bytes]]]:
    yield "usual", tuner.export()
    failed = verified(tuner.config(64), {"small": Status.WRONG, "wide": 1.5})
    yield "failed its verification", tuner.export(state=tuner.won(failed))
    raced = finalist(5, tuner.config(64), {"small": Status.WRONG})
    yield "wrong in a race", tuner.export(state=tuner.won(Asked((raced.trial,)), Measured(raced)))
    block = 'block = ["BLOCK // 32", "VEC", "VEC"]'
    templates: dict[str, str | Template] = {
        "block of expressions": tuner.changed('block = ["BLOCK"]', block),
        "baked": tuner.changed(
            "int k =", "int k = D +", tuner.before_launch("[defines]", 'D = "d // (VEC - 2)"')
        ),
    }
    for name, template in templates.items():
        yield name, tuner.export(template=template)
    renamed = TEMPLATE.replace("VEC", "block_size_y")
    yield "name of a side", tuner.export(template=renamed, state=tuner.won_as("block_size_y"))
    yield "defines", tuner.export(a_problem('defines = { VEC = "9", ROUND = "down" }'))
    shape = 'shape = ["rows", "d"]'
    yield "strides", tuner.export(tuner.problem_with(shape, f'{shape}\nstrides = ["d + 8", "1"]\ninit = 3'))
    yield "reference", tuner.export(referenced())
    yield "cuda", tuner.export(*cuda_for_tuner())
