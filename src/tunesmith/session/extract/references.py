"""A reference from a function that the user names: called in float64, as reference files are."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

from tunesmith.errors import BadInput

REFERENCE_FILE = "reference.py"
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_EXAMPLE = "for example: --reference 'torch.nn.functional.rms_norm(input, [hidden], weight, epsilon)'"


def reference_text(
    said: str, function: str, arrays: Sequence[str], scalars: Sequence[str], sizes: Collection[str]
) -> str:
    """`said`: a call over the problem's names, or a function's name alone, which is then called with the
    arrays that the kernel reads, in their order, and its numbers. Raises BadInput."""
    call = said if "(" in said else f"{said}({', '.join((*arrays, *scalars))})"
    try:
        tree = ast.parse(call, mode="eval").body
    except SyntaxError:
        raise BadInput(f"--reference is a call in Python; got {said!r}", hint=_EXAMPLE) from None
    if not isinstance(tree, ast.Call) or not _DOTTED.fullmatch(ast.unparse(tree.func)):
        raise BadInput(f"--reference calls a function of a module; got {said!r}", hint=_EXAMPLE)
    path = ast.unparse(tree.func).rpartition(".")[0]
    module = path.split(".")[0]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {module}
    known = [*arrays, *scalars, *sorted(sizes)]
    unknown = sorted(names - set(known))
    if unknown:
        fault = f"--reference speaks of {', '.join(unknown)}; the problem has {', '.join(known)}"
        raise BadInput(fault, hint=_EXAMPLE)
    taken = [name for name in known if name in names]
    tensors = [name for name in arrays if name in names]
    is_torch = module == "torch"
    lines = [
        f'"""The expected result of {function}, in float64: {ast.unparse(tree.func)}."""',
        "",
        *(["import numpy as np"] if is_torch else []),
        f"import {module if is_torch else path}",
        "",
        "",
        f"def {function}(*, {', '.join(taken)}):",
    ]
    if is_torch:
        lines += [f"    {name} = torch.from_numpy(np.array({name}))" for name in tensors]
        lines += [f"    return ({ast.unparse(tree)}).numpy()"]
    else:
        lines += [f"    return {ast.unparse(tree)}"]
    return "\n".join(lines) + "\n"
