"""Headers of the user's own: which a source reaches, and what is refused."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

import pytest

from tunesmith.base.errors import BadInput
from tunesmith.problem import template as read_headers
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import FindHeader, HeaderFile, find_includes, user_headers
from tunesmith.problem.template_file import parse_template


def on_disk(files: Mapping[str, str]) -> FindHeader:
    """Looks where a compiler looks, in a dictionary."""

    def find(spelling: str, includer: str | None, folders: Sequence[str]) -> HeaderFile | None:
        beside = [] if includer is None else [posixpath.dirname(includer)]
        for folder in (*beside, *folders):
            path = posixpath.normpath(posixpath.join(folder, spelling))
            if path in files:
                return HeaderFile(path, files[path])
        return None

    return find


def by_spelling(headers: Mapping[str, str]) -> FindHeader:
    def find(spelling: str, _includer: str | None, _folders: Sequence[str]) -> HeaderFile | None:
        return HeaderFile(spelling, headers[spelling]) if spelling in headers else None

    return find


def reached(source: str, files: Mapping[str, str], *folders: str, path: str = "src/k.cu") -> dict[str, str]:
    return dict(user_headers(source, path, on_disk(files), folders))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('#include "a.h"', [("a.h", True)]),
        ("#include <a/b.h>", [("a/b.h", False)]),
        ('  #  include\t"a.h" // why', [("a.h", True)]),
        ('#include"a.h"\r\n#include<b.h>\r\n', [("a.h", True), ("b.h", False)]),
        ('/* why */ #include "a.h"', [("a.h", True)]),
        ('#inc\\\nlude "a.h"', [("a.h", True)]),
        ('// #include "a.h"', []),
        ('// a comment that goes on \\\n#include "a.h"', []),
        ('/*\n#include "a.h"\n*/', []),
        ('/* it is never closed\n#include "a.h"', []),
        ('const char* s = R"x(\n#include "a.h"\n)" )x";\n#include "b.h"', [("b.h", True)]),
        ('const char* s = "\\\n#include <a.h>\\\n";', []),
        ('const char* s = "/*";\n#include <a.h>\nconst char* t = "*/";', [("a.h", False)]),
        ("int i = 1'000; // it's\n#include <a.h>\nint j = 2'000;", [("a.h", False)]),
        ("char c = '\"';\n#include <a.h>\nchar d = '\"';", [("a.h", False)]),
        ("#include HEADER\n#include_next <a.h>\n#define X <b.h>\n#includes <c.h>", []),
        ('#include ""\n#include <>\n#include "a.h\n', []),
        ('#include "a//b.h"', [("a//b.h", True)]),
    ],
)
def test_what_a_text_includes(text: str, found: list[tuple[str, bool]]) -> None:
    assert list(find_includes(text)) == found


def test_the_sources_own_folder_comes_first_and_for_quotes_alone() -> None:
    files = {"src/a.h": "own", "inc/a.h": "shared", "inc/b.h": "shared too"}
    assert reached('#include "a.h"', files, "inc") == {"a.h": "own"}
    assert reached("#include <a.h>", files, "inc") == {"a.h": "shared"}
    assert reached('#include "b.h"', files, "inc") == {"b.h": "shared too"}
    assert reached('#include "a.h"\n#include <cuda_fp16.h>', files, path="elsewhere/k.cu") == {}


def test_headers_of_headers_are_found_beside_them() -> None:
    files = {
        "inc/op/add.h": '#include "detail.h"\n#include <op/types.h>\n#include "../root.h"',
        "inc/op/detail.h": '#include "add.h"\n#include <cstdint>',
        "inc/op/types.h": "",
        "inc/root.h": "",
    }
    found = reached("#include <op/add.h>", files, "inc")
    assert list(found) == ["op/add.h", "detail.h", "op/types.h", "../root.h", "add.h"]
    assert found["add.h"] == "#include <op/add.h>\n"


def test_a_file_has_its_text_under_its_first_spelling_alone() -> None:
    files = {"src/c.h": "#pragma once\nint c;", "src/d/y.h": '#include "../c.h"\n#include "../d/../c.h"'}
    found = reached('#include "c.h"\n#include "d/y.h"', files)
    assert found["c.h"] == "#pragma once\nint c;"
    assert found["../c.h"] == found["../d/../c.h"] == "#include <c.h>\n"
    headers = user_headers('#include "c.h"\n#include "d/y.h"', "src/k.cu", by_spelling(found), ())
    assert headers == tuple(found.items()), "what a run keeps reads back as the same"


def test_a_header_that_includes_itself_ends() -> None:
    files = {"src/a.h": '#include "a.h"\n#include "../src/a.h"'}
    assert list(reached('#include "a.h"', files)) == ["a.h", "../src/a.h"]


def test_one_spelling_for_two_files_is_refused_with_both() -> None:
    files = {"src/a.h": '#include "x/b.h"', "src/c.h": "1", "src/x/b.h": '#include "c.h"', "src/x/c.h": "2"}
    with pytest.raises(BadInput) as refused:
        reached('#include "a.h"\n#include "c.h"', files)
    assert '"c.h" means two different files: src/c.h and src/x/c.h' in refused.value.message
    assert refused.value.hint
    assert reached('#include "a.h"\n#include "c.h"', {**files, "src/x/c.h": "1"})["c.h"] == "1"


def test_what_such_twins_include_is_looked_for_beside_each() -> None:
    beside = {"src/x/b.h": '#include "c.h"', "src/x/own.h": "beside the second"}
    files = {**dict.fromkeys(("src/c.h", "src/x/c.h"), '#include "own.h"'), **beside}
    assert reached('#include "c.h"\n#include "x/b.h"', files)["own.h"] == "beside the second"


def test_too_many_and_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"src/{i}.h": f'#include "{i + 1}.h"' for i in range(4)}
    monkeypatch.setattr(read_headers, "MAX_FILES", 4)
    assert len(reached('#include "0.h"', many)) == 4
    monkeypatch.setattr(read_headers, "MAX_FILES", 3)
    with pytest.raises(BadInput, match=r"at most 3 files and 4 MiB, got 4 files .* up to \"3\.h\""):
        reached('#include "0.h"', many)
    with pytest.raises(BadInput, match="got 1 files and 4,194,306 bytes") as refused:
        reached('#include "a.h"', {"src/a.h": "é" * ((2 << 20) + 1)})
    assert "take folders of libraries out of include" in (refused.value.hint or "")


PROBLEM = """\
name = "p"
argument = [{ name = "out", type = "float32*", role = "output", shape = ["n"] }]
launch = { grid = ["n"], block = ["64"] }
contract = { n = { min = 1, max = 64 } }
workloads = { only = { n = 64 } }
[kernel]
source = "src/k.cu"
entry = "k"
"""
KERNEL = '#include "a.h"\n#include <b.h>\n__global__ void k(float* out) {}\n'
TEMPLATE = """\
// /// tunesmith
// [params]
// BLOCK = [32, 64]
// [default]
// BLOCK = 64
// [launch]
// grid = ["n"]
// block = ["64"]
// ///
#include "own.h"
#include <b.h>
__global__ void k(float* out) {}
"""
FILES = {"src/a.h": "int a;", "inc/b.h": "int b;", "tpl/own.h": "int own[BLOCK];"}


def parse(more: str, files: Mapping[str, str] = FILES) -> Problem:
    """With further words of [kernel]."""
    return parse_problem(
        PROBLEM + more, path="problem.toml", read=lambda name: KERNEL, find_header=on_disk(files)
    )


class TestFiles:
    def test_a_problem_and_its_template_have_their_own(self) -> None:
        problem = parse('include = ["inc"]\ncompiler = "nvcc"')
        assert problem.kernel.headers == (("a.h", "int a;"), ("b.h", "int b;"))
        assert problem.kernel.compiler == "nvcc"
        # A parameter that only a header uses is used.
        template = parse_template(TEMPLATE, path="tpl/t.cu", problem=problem, find_header=on_disk(FILES))
        assert template.headers == (("own.h", "int own[BLOCK];"), ("b.h", "int b;"))

    def test_headers_that_are_refused_have_a_line(self) -> None:
        files = {"src/a.h": '#include "x/a.h"', "inc/b.h": "", "src/x/a.h": '#include "a.h"'}
        for more, line in (('include = ["inc"]', 9), ("", 7)):
            with pytest.raises(BadInput, match="means two different files") as refused:
                parse(more, files)
            assert refused.value.where == f"problem.toml:{line}"

    def test_other_languages_look_for_none(self) -> None:
        assert parse('language = "opencl"').kernel.headers == ()

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ('compiler = "clang"', "[kernel]: compiler must be one of nvrtc, nvcc, got 'clang'"),
            ("compiler = 12", "[kernel]: compiler must be one of nvrtc, nvcc, got 12"),
            ('language = "opencl"\ncompiler = "nvcc"', "compiler is for cuda, which has nvrtc and nvcc"),
        ],
    )
    def test_compilers_that_there_are_not(self, more: str, message: str) -> None:
        with pytest.raises(BadInput) as refused:
            parse(more)
        assert message in refused.value.message
        assert (refused.value.where or "").startswith("problem.toml:")
