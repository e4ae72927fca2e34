"""Texts and expressions as plain C: compiled, run, and compared with what they were made of."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from tests.core.deliver.test_c_code import C_NAMES, WRITTEN, a_number, a_tree
from tests.core.space.expressions import outcome
from tests.plugins.exports.programs import ran
from tests.plugins.exports.test_opencl import CC, STRICT, needs_cc
from tunesmith.deliver.expr_text import c_function, string_literals
from tunesmith.plugins.exports import opencl
from tunesmith.space.expr import Expr, parse_expr, unparse


@needs_cc
def test_texts_pass_through_literals_unharmed(tmp_path: Path) -> None:
    draw = random.Random(4)
    texts = [
        '??/ ??= "\\" // \\\n\t\r\x01\x7f7',
        "é€𝄞\ud800 12\n",
        "x" * 9000 + "é" * 3000 + "\n\n",
        "7\n7",
        "",
    ]
    texts += ["".join(draw.choice('ab"\\?/=\n\r01é€\x02') for _ in range(200)) for _ in range(20)]
    rows = "".join(
        "    "
        f"{{ static const char *const t[] = {{{', '.join([*string_literals(text), 'NULL'])}}}; put(t); }}\n"
        for text in texts
    )
    assert max(len(each) for text in texts for each in string_literals(text)) <= 4095
    program = (
        "#include <stdio.h>\nstatic void put(const char *const *t) {\n"
        f"    for (; *t; ++t) fputs(*t, stdout);\n    putchar(3);\n}}\n"
        f"int main(void) {{\n{rows}    return 0;\n}}\n"
    )
    (tmp_path / "texts.c").write_text(program)
    ran([CC, "-std=c99", "-trigraphs", *STRICT, "texts.c", "-o", "texts"], tmp_path)
    got = subprocess.run([tmp_path / "texts"], capture_output=True, timeout=20, check=True).stdout
    assert got.split(b"\x03")[:-1] == [text.encode(errors="surrogatepass") for text in texts]


@needs_cc
def test_every_value_is_the_one_that_evaluation_gives(tmp_path: Path) -> None:
    draw = random.Random(21)
    trees = [a_tree(draw, draw.randint(1, 4)) for _ in range(150)]
    exprs = [*(parse_expr(text) for text in WRITTEN), *(Expr(unparse(tree), tree) for tree in trees)]
    table = [{name: a_number(draw) for name in C_NAMES} for _ in range(14)]
    names = {name: f"size[{number}]" for number, name in enumerate(C_NAMES)}
    functions = "".join(c_function(f"f{number}", expr, names) for number, expr in enumerate(exprs))
    fixed = Path(opencl.__file__).parent / "opencl_host.c"
    arithmetic = fixed.read_text().partition("/* ---- Arithmetic")[2]

    def listed(row: dict[str, int]) -> str:
        return ", ".join(f"{row[name]}LL" for name in C_NAMES)

    rows = "".join(
        f"    {{ const long long size[] = {{{listed(row)}}}; show(f{number}, size); }}\n"
        for number in range(len(exprs))
        for row in table
    )
    program = f"""#include <stdio.h>
/* {arithmetic}
{functions}
static void show(long long (*f)(const long long *, int *), const long long *size) {{
    int undefined = 0;
    const long long value = f(size, &undefined);
    if (undefined) puts("None");
    else printf("%lld\\n", value);
}}
int main(void) {{
    ts_all_of_them();
{rows}    return 0;
}}
"""
    (tmp_path / "values.c").write_text(program)
    # The sanitizer ends the program at the first overflow, division by zero or other undefined behaviour.
    checks = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    ran([CC, "-std=c99", "-w", *checks, "values.c", "-o", "values"], tmp_path)
    got = ran([tmp_path / "values"]).stdout.split()
    wanted = [str(outcome(expr, row)) for expr in exprs for row in table]
    assert got == wanted
