"""The part of a drafted problem that says what is right: tolerances, and a reference to be filled in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tunesmith.expert.reading.arguments import DraftArgument, possible_name
from tunesmith.expert.reading.bare import BareReading
from tunesmith.expert.reading.headers import KernelSignature
from tunesmith.expert.reading.known import KnownFacts
from tunesmith.expert.reading.launches import FILL
from tunesmith.problem.argument_tables import TOLERANCES
from tunesmith.problem.problem_text import toml_string


def accuracy_table(
    kernel: KernelSignature,
    arguments: Sequence[DraftArgument],
    reading: BareReading | None,
    known: KnownFacts,
) -> Iterator[str]:
    yield "[accuracy]"
    if known.reference is None:
        yield '# reference = "reference.py:function"' + comment(
            "without one, results are compared with the original's"
        )
    elif known.reference:
        yield f"reference = {toml_string(known.reference)}"
    else:
        yield f"reference = {toml_string(f'reference.py:{possible_name(kernel.name)}')}" + comment(
            "fill it in, or remove this line and reference.py: results are then compared with the original's"
        )
    if not known.deterministic:
        yield "deterministic = false"
    main = main_output(arguments)
    if main is None:
        for key, place in (("rtol", 0), ("atol", 1)):
            usual = ", ".join(f"{_decimal(TOLERANCES[t][place])} for {t}" for t in ("float32", "float16"))
            yield f'{key} = "{FILL}"' + comment(f"without quotes, e.g. {usual}")
    elif main in TOLERANCES:
        yield from tolerances(main)
    else:
        yield "# Integers are compared exactly: no tolerance."
    if reading is not None and reading.independent is not None:
        yield f"independent = {toml_string(reading.independent)}" + comment("none needs another's inputs")


def main_output(arguments: Sequence[DraftArgument]) -> str | None:
    """The type that sets the tolerance: the first float among the outputs; None where one is not known."""
    types = [argument.element for argument in arguments if argument.may_be_output]
    if None in types or not types:
        return None
    return next((name for name in types if name in TOLERANCES), types[0])


def tolerances(element: str | None) -> Iterator[str]:
    for key, value in zip(("rtol", "atol"), TOLERANCES.get(element or "", ()), strict=False):
        yield f"{key} = {_decimal(value)}"


def _decimal(value: float) -> str:
    return f"{value:g}".replace("e-0", "e-")


def quoted_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(toml_string(text) for text in texts)}]"


def comment(text: str) -> str:
    """A comment is one line, and TOML allows no control characters in it."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    clean = " ".join(clean.encode("utf-8", "replace").decode("utf-8").split())
    return f"  # {clean}" if clean else ""


def draft_reference(kernel: str, arguments: Sequence[DraftArgument], added: Sequence[str] = ()) -> str:
    name = possible_name(kernel)
    inputs = [a.name for a in arguments if a.role in ("input", "inout", FILL)]
    scalars = [a.name for a in arguments if a.role == "scalar"]
    sizes = [*added, *(a.name for a in arguments if a.role == "size")]
    outputs = [a.name for a in arguments if a.may_be_output]
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
