"""The skeleton of reference.py: a function with the right signature that says what is missing."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from tunesmith.expert.drafting.draft_arguments import FILL, DraftArgument


def function_name(kernel: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", kernel)
    return f"{name}_" if keyword.iskeyword(name) else name


def draft_reference(kernel: str, arguments: Sequence[DraftArgument]) -> str:
    name = function_name(kernel)
    inputs = [a.name for a in arguments if a.role in ("input", "inout", FILL)]
    scalars = [a.name for a in arguments if a.role == "scalar"]
    sizes = [a.name for a in arguments if a.role == "size"]
    outputs = [a.name for a in arguments if a.role in ("output", "inout", FILL)]
    parameters = [*inputs, *scalars, *sizes]
    signature = f"*, {', '.join(parameters)}" if parameters else ""
    named = ", ".join(f"'{output}': ..." for output in outputs)
    wanted = " and ".join(outputs) or "the output"
    returned = f"the array {outputs[0]}" if len(outputs) == 1 else f"the arrays by name, {{{named}}}"
    lines = [
        f'"""The expected result of {name}, in float64."""',
        "",
        "import numpy as np  # noqa: F401",
        "",
        "",
        f"def {name}({signature}):",
        f'    """Return {returned}, shaped as in problem.toml.',
        "",
        "    Float arrays arrive as float64, integers as they are; drop the arguments you do not need.",
        '    """',
        f'    raise NotImplementedError("FILL: compute {wanted} of {name} with NumPy here, in reference.py")',
    ]
    return "\n".join(lines) + "\n"
