"""The pages: links lead somewhere, commands parse, names of files are right, and all of it stays short."""

from __future__ import annotations

import ast
import io
import re
import shlex
import tokenize
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from tunesmith.base import plugins
from tunesmith.cli.app import app, load_command
from tunesmith.run.config import RunConfig

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tunesmith"
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = typer.main.get_command(app)
COMMANDS = {name: load_command(name) for name in plugins.plugin_names("commands")}
NO_COMMANDS = {"tunesmith journal 1"}  # the text whose digest begins a journal's chain
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```", re.DOTALL)
_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_MODULE = re.compile(r"python -m ((?:benchmarks|scripts|tests)(?:\.\w+)*)")
_OPTION = re.compile(r"(?<![\w=:/.-])--?[A-Za-z][\w-]*")
_PATH = re.compile(r"(?:\.ci|benchmarks|docs|examples|scripts|skills|src|tests)/[\w./*-]+")
_SOURCE_PATH = re.compile(r"((?:[a-z_]+/)+(?:[a-z_]+(?:\.py)?)?)(?:\.[A-Za-z_]+)?")
_MODULE_PATH = re.compile(r"[a-z_]+(?:/\w+)+(?:\.\w+)?/?")
_DOTTED = re.compile(r"[a-z_]+(?:\.\w+)+")
_FILE = re.compile(r".*\.(?:json|md|toml|pyi|cuh|h|c|cl|txt)")


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", _CODE.sub("", read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def words(page: Path) -> int:
    return len(read(page).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_CODE.sub("", read(page))):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize(
    ("name", "most"), [("README.md", 650), ("docs/expert.md", 2500), ("docs/architecture.md", 2500)]
)
def test_a_page_stays_short(name: str, most: int) -> None:
    assert words(ROOT / name) <= most


def test_all_pages_together_stay_short() -> None:
    assert sum(map(words, PAGES)) <= 50_000


def test_every_page_is_reached_from_the_readme() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        for link in _LINK.findall(_CODE.sub("", read(page))):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file() and target not in reached:
                ahead.append(target)
    assert sorted(set(PAGES) - reached) == []


# -- commands -----------------------------------------------------------------------------------------------


def written_commands(page: Path) -> Iterator[list[str]]:
    """The words of each `tunesmith …` in blocks and spans, after the program's name."""
    text = read(page)
    lines = [line for block in _BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    for line in [*lines, *_SPAN.findall(_CODE.sub("", text))]:
        found = re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )?tunesmith ([a-z].*)", line.replace("\\|", "|"))
        if found and found[0] not in NO_COMMANDS:
            try:
                yield shlex.split(found[1], comments=True)
            except ValueError:  # a quotation that the block goes on with
                yield found[1].split()


def options_of(command: TyperCommand | TyperGroup) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)}


def unknown_in(given: list[str]) -> list[str]:
    """The command where there is none of the name, else its options that there are not."""
    known = options_of(PROGRAM) | {"--help", "-h"}
    commands, is_first = COMMANDS, True
    while given and commands and not given[0].startswith(("-", "[")):
        name = given[0].rstrip(".,:;")
        if name not in commands:
            return [name] if is_first else []
        known |= options_of(commands[name])
        commands, is_first, given = getattr(commands[name], "commands", {}), False, given[1:]
    if "--" in given:  # what follows is of another program
        given = given[: given.index("--")]
    return [option for word in given for option in _OPTION.findall(word) if option not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_are_there(page: Path) -> None:
    unknown = {" ".join(given): wrong for given in written_commands(page) if (wrong := unknown_in(given))}
    assert unknown == {}


def test_what_is_not_there_is_noticed() -> None:
    assert unknown_in(["tune", "PROBLEM", "--evals", "4", "--out=RUN"]) == []
    assert unknown_in(["tune", "PROBLEM", "--eval", "4"]) == ["--eval"]
    assert unknown_in(["tine", "PROBLEM"]) == ["tine"]
    assert unknown_in(["capture", "--", "python", "--eval"]) == []


def test_each_command_has_a_row_with_options_that_it_has() -> None:
    page = read(ROOT / "docs" / "commands.md")
    rows = re.findall(r"^\| `tunesmith ([a-z]+)(.*)$", page, re.MULTILINE)
    assert {name for name, command in COMMANDS.items() if not command.hidden} == {n for n, _ in rows}
    for name, row in rows:
        known = {option for each in every_command(COMMANDS[name]) for option in options_of(each)}
        spans = [span.split(" ")[0].split("=")[0] for span in _SPAN.findall(row) if span.startswith("-")]
        assert [span for span in spans if span not in known] == [], name


def every_command(command: TyperCommand | TyperGroup) -> Iterator[TyperCommand | TyperGroup]:
    for each in getattr(command, "commands", {}).values():
        yield from every_command(each)
    if not command.hidden:
        yield command


def test_each_option_is_described_somewhere() -> None:
    described = {
        option for page in PAGES for option in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", read(page))
    }
    missing = [
        f"{command.name} {param.name}"
        for command in chain.from_iterable(map(every_command, COMMANDS.values()))
        for param in command.params
        if param.param_type_name == "option" and not {*param.opts, *param.secondary_opts} & described
    ]
    assert missing == []


def test_each_setting_is_described() -> None:
    page = read(ROOT / "docs" / "commands.md")
    names = {each.name for each in fields(RunConfig)} - {"notes"}
    assert sorted(name for name in names if f"`{name}" not in page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_scripts_are_there(page: Path) -> None:
    modules = {name.replace(".", "/") for name in _MODULE.findall(read(page))}
    gone = [m for m in modules if not any((ROOT / end).is_file() for end in (f"{m}.py", f"{m}/__main__.py"))]
    assert sorted(gone) == []


# -- files --------------------------------------------------------------------------------------------------


def is_there(span: str, packages: set[str]) -> bool:
    """Whether what looks like a file of ours is one; a name with capitals stands for one of the reader's."""
    if _PATH.fullmatch(span):
        return bool(re.search("[A-Z]{2}", span)) or any(ROOT.glob(span.rstrip("/")))
    found = _SOURCE_PATH.fullmatch(span)
    if found is None or found[1].split("/")[0] not in packages:
        return True
    return any((SOURCE / f"{found[1]}{end}").exists() for end in ("", ".py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    packages = {folder.name for folder in SOURCE.iterdir() if folder.is_dir()}
    spans = _SPAN.findall(_CODE.sub("", read(page)))
    assert [span for span in spans if not is_there(span, packages)] == []


def texts_of(module: Path) -> Iterator[str]:
    """Its docstrings, and its comments: those of neighbouring lines as one."""
    source = read(module)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield " ".join((ast.get_docstring(node) or "").split())
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {
        token.start[0]: token.string.strip("# ") for token in tokens if token.type == tokenize.COMMENT
    }
    yield " ".join(text if line - 1 in comments else f"\n{text}" for line, text in comments.items())


def is_defined(start: Path, names: list[str]) -> bool:
    """Whether a folder or a module has what the names lead to: modules, and in the last one a definition."""
    while names and (start / names[0]).is_dir():
        start, names = start / names[0], names[1:]
    if names and (start / f"{names[0]}.py").is_file():
        start, names = start / f"{names[0]}.py", names[1:]
    file = start if start.is_file() else start / "__init__.py"
    name = names[0] if names else ""
    lines = rf"(?:class|def) {name}\b|^\s*{name}\b *[:=,]|import .*\b{name}\b"
    return not names or re.search(lines, read(file), re.MULTILINE) is not None


def is_known_there(span: str, module: Path) -> bool:
    """Whether what looks like a module, or a name in one, is there, seen from the module."""
    folders = [folder for folder in module.parents if folder.is_relative_to(SOURCE)]
    if _MODULE_PATH.fullmatch(span) and not _FILE.fullmatch(span):
        *path, last = span.strip("/").removesuffix(".py").split("/")
        names = [*path, *last.split(".")]
        around = [*folders, ROOT]
        return any((each / names[0]).is_dir() and is_defined(each, names) for each in around)
    if _DOTTED.fullmatch(span) and not _FILE.fullmatch(span):
        names = span.split(".")
        beside = {SOURCE / names[0], module.parent / names[0]} | imported_as(names[0], module)
        starts = [path for path in beside if path.is_dir() or path.with_suffix(".py").is_file()]
        return not starts or any(is_defined(path.parent, names) for path in starts)
    return True


def imported_as(name: str, module: Path) -> set[Path]:
    froms = re.findall(rf"^from tunesmith\.([\w.]+) import .*\b{name}\b", read(module), re.MULTILINE)
    return {SOURCE.joinpath(*package.split("."), name) for package in froms}


def test_modules_that_the_source_names_are_there() -> None:
    gone = [
        f"{module.relative_to(SOURCE)}: {span}"
        for module in sorted(SOURCE.rglob("*.py"))
        for text in texts_of(module)
        for span in _SPAN.findall(text)
        if not is_known_there(span, module)
    ]
    assert gone == []


def test_a_module_that_is_not_there_is_noticed() -> None:
    module = SOURCE / "run" / "race.py"
    for span in (
        "lab/measure",
        "run.outcome.Timing",
        "run/library.Library",
        "scores.overall_score",
        "x.size",
    ):
        assert is_known_there(span, module), span
    for span in ("lab/measured", "run.lessons", "scores.overall", "run/library.Shelf", "passes/vector"):
        assert not is_known_there(span, module), span


def test_a_file_that_is_not_there_is_noticed() -> None:
    assert is_there("run/loop.py", {"run"})
    assert not is_there("run/lop.py", {"run"})
    assert not is_there("expert/passes/", {"expert"})
    assert not is_there("tests/nothing/test_here.py", set())
    assert is_there("tests/core/problem/test_hostile_*.py", set())
