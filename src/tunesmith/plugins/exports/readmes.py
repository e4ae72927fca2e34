"""README.md of the exports `patch` and `opencl`: what is there, how it is used, and what serves."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from tunesmith import __version__
from tunesmith.backends.cuda.flags import host_flags
from tunesmith.base.text import escape_markdown, strip_controls
from tunesmith.deliver.artefact import Artefact
from tunesmith.problem.device import OPENCL

_ARCHITECTURE = ("-arch", "--gpu-architecture", "-gencode", "--generate-code")


def patch_readme(artefact: Artefact, path: str, files: Sequence[str], told: Sequence[str]) -> str:
    """`files` are the export's; `told`: how much of the result is in the patch, and what is not."""
    windows = f"{artefact.name}.crlf.patch"
    lines = [
        *_readme_head(artefact, artefact.problem),
        *(f"- {escape_markdown(line)}" for line in told),
        "",
        "Apply it where your sources begin; FOLDER is this one:",
        "",
        *_code_block([f"patch -p1 < FOLDER/{artefact.name}.patch"]),
        "",
        f"or `git apply` the same file. It changes {_code_span(path)}, which must be as it was "
        "when it was tuned.",
    ]
    if windows in files:
        lines.append(f"Where that file has the line ends of Windows, apply `{windows}` instead.")
    lines.append("")
    is_opencl = artefact.first.dispatch.language == OPENCL.name
    lines += _opencl_patch(artefact) if is_opencl else _cuda_patch(artefact, path, files)
    return "\n".join(lines) + "\n"


def _cuda_patch(artefact: Artefact, path: str, files: Sequence[str]) -> list[str]:
    lines = [
        "## What serves",
        "",
        f"Each launch of your kernel becomes a call of `{artefact.name}_tuned::launch` with the same",
        "expressions, each evaluated once; where the file launches nothing, call the function at its",
        "end. It takes the sizes from what is passed. A tuned kernel serves where device, sizes,",
        "scalars, alignment and overlaps are as verified; otherwise your own kernel is launched as",
        "before.",
        "",
        "## The machine code",
        "",
    ]
    commands = []
    for dispatch in (result.dispatch for result in artefact.results):
        folder = f"verified/{dispatch.architecture}"
        if any(PurePosixPath(file).parent == PurePosixPath(folder) for file in files):
            flags = host_flags(dispatch.original.flags)
            if not any(flag.startswith(_ARCHITECTURE) for flag in flags):
                flags = [f"-arch={dispatch.architecture}", *flags]
            given = " ".join(shlex.quote(word) for word in [path, f"FOLDER/{folder}", *flags])
            commands.append(f"python3 FOLDER/check_code.py --strict {given}")
    if not commands:
        return [*lines, "The runs stored no machine code, so a build has nothing to be compared with."]
    return [
        *lines,
        "Your compiler builds the kernels again. This compares what it makes of them with what was",
        "verified; give it the options that you build with:",
        "",
        *_code_block(commands),
        "",
        "It needs nvcc on the PATH. The status is 0 where every kernel has the code that was verified,",
        "1 where one has other code (check and time it again, or use `--to cubin`), and 2 where nothing",
        "could be compared. An object or a program that is built already can be given in place of the",
        "source, which needs cuobjdump.",
    ]


def _opencl_patch(artefact: Artefact) -> list[str]:
    flags = " ".join(artefact.first.dispatch.original.flags)
    return [
        "## What serves",
        "",
        "Your kernels stay as they are. The tuned ones stand behind them under new names that end with",
        "`_tuned_` and a number; the comment above each says where it serves, with which work-groups",
        "and arguments it is launched, and which memory it needs. Your program chooses: launch it there",
        "and your own kernel everywhere else. `--to opencl` exports C and Python that do this, and",
        "check devices, sizes and buffers.",
        "",
        f"It was verified with the build options {_code_span(flags)}."
        if flags
        else "It was verified without build options.",
        "The device's driver builds the text, so there is no machine code to compare before it has.",
    ]


def opencl_readme(artefact: Artefact, taken: Sequence[str]) -> str:
    """`taken`: the names of what the function takes between the queue and the events."""
    name = artefact.name
    lines = [
        *_readme_head(artefact, artefact.problem),
        "Speed-ups of the kernels alone, as they were verified:",
        "",
        *(
            f"- {escape_markdown(w.name)} on {escape_markdown(r.dispatch.device)}: {w.speedup:.2f}×"
            for r in artefact.results
            for w in r.dispatch.workloads
            if w.speedup is not None
        ),
        "",
        "| file | what it is |",
        "|---|---|",
        f"| `{name}.h`, `{name}.c` | the operator in C99 or C++, with the kernels as strings |",
        "| `example.c` | one call |",
        "| `CMakeLists.txt` | the library, and the example as a target of its own |",
        "| `python/` | a package for PyOpenCL, with a README of its own |",
        "",
        *_code_block(
            ["cmake -B build && cmake --build build", f"cmake --build build --target {name}_example"]
        ),
        "",
        f"or compile `{name}.c` with your program, and link with OpenCL.",
        "",
        "```c",
        f"{name}_operator *self;",
        f"cl_int error = {name}_create(context, device, &self);",
        f"error = {name}_enqueue(self, queue, {', '.join(taken)}, 0, NULL, &event);",
        f"if (error == CL_SUCCESS) puts({name}_served(self)); /* the delivered file that served */",
        f"{name}_destroy(self);",
        "```",
        "",
        f"`{name}.h` says what each argument is.",
        "",
        "## What serves a call",
        "",
        "A tuned kernel serves where it was verified: on the devices above, at sizes within the",
        "contract, with scalars as they were when it was tuned, and with arrays that are aligned and",
        "do not overlap where one of them is written. Everywhere else the original serves; on a device",
        "that no run was made on, tune there and export both runs together.",
        "",
        "Kernels are built from their sources by the device's driver when they are first needed, with",
        "the options they were verified with; where it refuses a tuned one, the original serves. A",
        "buffer that is too small for the sizes is `CL_INVALID_BUFFER_SIZE`, NULL or an image",
        "`CL_INVALID_MEM_OBJECT`: nothing runs then. An operator is for one thread at a time.",
    ]
    return "\n".join(lines) + "\n"


def _readme_head(artefact: Artefact, title: str) -> list[str]:
    devices = ", ".join(escape_markdown(result.dispatch.device) for result in artefact.results)
    return [f"# {escape_markdown(title)}", "", f"Tuned by Tunesmith {__version__} on {devices}.", ""]


def _code_block(lines: Sequence[str]) -> list[str]:
    return ["```", *(strip_controls(line).replace("\n", " ") for line in lines), "```"]


def _code_span(text: str) -> str:
    return f"`{strip_controls(text).replace('`', '').replace(chr(10), ' ')}`"
