"""What commands share: options, progress, errors as messages and exit codes, results on stdout."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypedDict, TypeVar, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from tunesmith.base import plugins
from tunesmith.base.errors import BadInput, Interrupted, TunesmithError, bug_text
from tunesmith.base.text import escaped_json, strip_controls
from tunesmith.run.config import is_debugging

if TYPE_CHECKING:
    from tunesmith.run.ports import Listener
    from tunesmith.session.result import Run

    Ended = Run | TunesmithError

Command = TypeVar("Command", bound=Callable[..., None])
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@dataclass
class Verbosity:
    """How much goes to stderr; every command line sets it anew, before or after the command."""

    quiet: bool = False  # errors alone
    verbose: bool = False


verbosity = Verbosity()
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but the result and errors.")]
AllowFolder = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Files that a problem names may lie there too; several may be named."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show every trial and note on stderr.")]


_problem_readers: set[Callable[..., None]] = set()


def reads_problems(function: Command) -> Command:
    """Marks a command: it has the options of all that read problems."""
    _problem_readers.add(function)
    return function


def add_command(app: typer.Typer, function: Callable[..., None]) -> None:
    """A command of the app, with the options that all have, or all that read problems. Its errors are
    messages and exit codes."""

    @functools.wraps(function)
    def run(
        *, quiet: bool = False, verbose: bool = False, allow_folder: list[Path] | None = None, **named: object
    ) -> None:
        verbosity.quiet, verbosity.verbose = verbosity.quiet or quiet, verbosity.verbose or verbose
        with ExitStack() as opened:
            opened.enter_context(handle_errors(bool(named["as_json"])))
            if allow_folder:
                from tunesmith.session.problems import readable_folders

                opened.enter_context(readable_folders(allow_folder))
            function(**named)

    hints = {**get_type_hints(function, include_extras=True), "quiet": Quiet, "verbose": Verbose}
    defaults: dict[str, object] = {}
    for name, given in inspect.signature(function).parameters.items():
        if given.kind is inspect.Parameter.VAR_KEYWORD:  # a group of options, each of them None by default
            group = get_type_hints(get_args(hints.pop(name))[0], include_extras=True)
            hints |= group
            defaults |= dict.fromkeys(group)
        else:
            defaults[name] = given.default
    if function in _problem_readers:
        hints["allow_folder"] = AllowFolder
        defaults["allow_folder"] = None
    defaults["as_json"] = defaults.pop("as_json")  # after what is the command's own
    known: Any = run
    known.__annotations__ = hints
    known.__signature__ = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
            for name, default in {**defaults, "quiet": False, "verbose": False}.items()
        ]
    )
    app.command(cls=CommandWithPlugins)(run)


class CommandWithPlugins(TyperCommand):
    """Its help names the plugins of a group in place of `{group}`: they are looked for when it is shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for option in self.params:
            for group in ("backends", "exports"):
                text = getattr(option, "help", None) or ""
                if f"{{{group}}}" in text:
                    names = ", ".join(plugins.plugin_names(group))
                    option.help = text.replace(f"{{{group}}}", names)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


@contextmanager
def handle_errors(as_json: bool) -> Iterator[None]:
    """Errors as messages and exit codes; a traceback is for nobody."""
    try:
        yield
    except typer.Exit:
        raise
    except TunesmithError as error:
        mend = "mend it and run the same command again" if isinstance(error, BadInput) else None
        exit_with_error(as_json, error.exit_code, str(error), error.hint or mend)
    except Interrupted as error:
        exit_with_error(as_json, error.exit_code, str(error), error.hint)
    except KeyboardInterrupt:
        exit_with_error(as_json, Interrupted.exit_code, "interrupted", "run the same command again")
    except MemoryError:
        exit_with_error(as_json, 1, "this machine ran out of memory", "choose smaller sizes")
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        exit_with_error(as_json, 2, f"{name}{error.strerror or error}", None)
    except Exception as error:
        if is_debugging():
            raise
        hint = "set TUNESMITH_DEBUG=1 to see the traceback, and please report it"
        exit_with_error(as_json, 1, f"a bug in Tunesmith: {bug_text(error)}", hint)


def exit_with_error(as_json: bool, code: int, message: str, hint: str | None, **more: Any) -> NoReturn:
    print_error(message, hint)
    if as_json:
        fields = {
            "error": strip_controls(message),
            "hint": strip_controls(hint) if hint else None,
            "exit": code,
        }
        print_encoded({**fields, **more})
    raise typer.Exit(code)


def print_error(message: str, hint: str | None) -> None:
    print_line(f"error: {message}", stderr=True)
    if hint:
        print_line(f"hint: {hint}", stderr=True)


@contextmanager
def show_progress(as_json: bool) -> Iterator[Listener]:
    from tunesmith.deliver.pages.terminal import Progress

    quiet = as_json or verbosity.quiet
    with Progress(sys.stderr, quiet=quiet, verbose=verbosity.verbose).live() as listener:
        yield listener


def show_result(run: Run, as_json: bool) -> None:
    """The report; where the device is missing also that, as the error it is."""
    missing = run.missing
    if not (missing and as_json):
        show_report(run, "json" if as_json else "text")
    if missing:
        exit_with_error(as_json, missing.exit_code, str(missing), missing.hint, report=run.result)


def show_several(ended: list[tuple[Path, Ended]], as_json: bool) -> None:
    """Each run as far as it got; the exit code is the most urgent of all."""
    troubles: list[tuple[Path, TunesmithError]] = []
    rows: list[dict[str, object]] = []
    for folder, found in ended:
        run, trouble = (None, found) if isinstance(found, TunesmithError) else (found, found.missing)
        if trouble is not None:
            troubles.append((folder, trouble))
        code, error = (trouble.exit_code, strip_controls(str(trouble))) if trouble else (0, None)
        report = run.result if run else None
        rows.append({"run": str(folder), "exit": code, "error": error, "report": report})
        if not as_json:
            print_line(f"== {folder}")
            if run is not None:
                show_report(run, "text")
    if as_json:
        print_encoded(rows)
    for folder, trouble in troubles:
        print_error(f"{folder}: {trouble}", trouble.hint)
    if worst := most_urgent(troubles):
        raise typer.Exit(worst)


def most_urgent(troubles: Iterable[tuple[Path, TunesmithError]]) -> int:
    """Of exit codes the smallest: a fault comes before a reply that is missing, and that before a device."""
    return min((trouble.exit_code for _, trouble in troubles), default=0)


FORMS = ("text", "md", "html", "json")


def checked_form(named: str) -> str:
    if named not in FORMS:
        raise BadInput(f"unknown format {named!r}; known are {', '.join(FORMS)}", hint="try --format text")
    return named


def show_report(run: Run, form: str, full: bool = False) -> None:
    if form == "json":
        print_json(run.report("json").encode())
    elif form in ("md", "html"):
        print_line(run.report("md" if form == "md" else "html").rstrip())
    else:
        write_text(run.report("text", sys.stdout, full))


def show_lines(lines: list[str]) -> None:
    for line in lines:
        print_line(line)


def print_result(as_json: bool, value: object, lines: list[str]) -> None:
    """The result: as JSON, or in words."""
    if as_json:
        print_encoded(value)
    else:
        show_lines(lines)


def print_note(text: str) -> None:
    """Beside the result: nobody who wants quiet is told."""
    if not verbosity.quiet:
        print_line(text, stderr=True)


def print_encoded(value: object) -> None:
    from tunesmith.base.codec import encode_json

    print_json(encode_json(value))


def print_line(text: str, stderr: bool = False) -> None:
    write_text(strip_controls(text), stderr)


def print_json(data: bytes) -> None:
    write_text(escaped_json(data.decode()).rstrip())


def print_table(head: str, rows: Iterable[Sequence[str]]) -> None:
    from tunesmith.deliver.pages.terminal import table_text

    write_text(table_text(sys.stdout, head, rows))


def write_text(text: str, stderr: bool = False) -> None:
    """The only way out. Who stops reading has seen enough; a result that cannot be written is an error."""
    try:
        typer.echo(text, err=stderr)
    except OSError as error:
        if stderr:
            return  # there is nobody left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes there
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(0) from None
        hint = "finished runs are saved; show the newest again with: tunesmith report"
        print_error(f"cannot write the result to stdout: {error.strerror}", hint)
        raise typer.Exit(2) from None


# -- options and arguments that several commands have -------------------------------------------------------
# A command takes a group of options as `**named: Unpack[Group]`; None says that one was not given.


def _complete_names(module: str, constant: str) -> Callable[[str], list[str]]:
    """Completes with the names in a constant of ours, which is loaded when a shell asks for them."""

    def complete(incomplete: str) -> list[str]:
        from importlib import import_module

        known = getattr(import_module(module), constant)
        return [name for name in known if name.startswith(incomplete)]

    return complete


def _switch_option(name: str, text: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(f"--{name}/--no-{name}", help=text)
    return found


_SEARCHERS = _complete_names("tunesmith.search", "SEARCHERS")
_STRATEGIES = _complete_names("tunesmith.run.budget", "STRATEGIES")
_WHO = (
    "Who plays the roles: openai:NAME[@URL][#EFFORT], anthropic:NAME, mailbox[:DIR], recorded:DIR or expert; "
    "or planner=…,author=…; several authors: author=…+…."
)
MOVES_HELP = "The expert's, told to models: usual (to planners of templates), all (to all), none."
MOVE_SETS = _complete_names("tunesmith.run.config", "MOVES")
_STRATEGY = "template (searched), rewrite (kernels by roles) or single (one conversation)."

Backend = Annotated[
    str | None,
    typer.Option(
        help="{backends} (a recording: NAME:FILE); by default the language's own.",
        autocompletion=lambda: list(plugins.plugin_names("backends")),
    ),
]
DeviceName = Annotated[str | None, typer.Option("--device", help="Id or part of the name; several: 0-7.")]
OneTemplate = Annotated[Path | None, typer.Option("--template", help="A template of the kernel.")]
ProblemFile = Annotated[
    Path, typer.Argument(metavar="PROBLEM", help="problem.toml, or the folder it lies in.")
]
Wait = Annotated[bool | None, _switch_option("wait", "For replies to a mailbox; else stop, exit 4.")]
Effort = Annotated[
    str | None,
    typer.Option(
        help="How much hosted models are to think: low, medium or high.",
        autocompletion=_complete_names("tunesmith.agents.models", "EFFORTS"),
    ),
]
Prompts = Annotated[str | None, typer.Option(help="Folder with prompts in place of ours.")]
Record = Annotated[str | None, typer.Option(help="Folder to keep what models reply.")]
RunsOwnModel = Annotated[
    str | None, typer.Option("--model", help="The run's own, where it was not begun here.")
]
Seed = Annotated[int | None, typer.Option(help="All randomness derives from it; 0 by default.")]


SandboxMode = Annotated[
    str | None,
    typer.Option(
        "--sandbox",
        help="Of workers: auto (as far as this machine can), required or off.",
        autocompletion=_complete_names("tunesmith.run.events", "MODES"),
    ),
]


Workers = Annotated[
    str | None, typer.Option("--workers", metavar="FILE", help="TOML: the hosts whose workers are used.")
]


Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Workers of a Ray cluster: HOST:PORT, auto or local."),
]


Entry = Annotated[str | None, typer.Option(help="Which kernel, when the file has several.")]
Defines = Annotated[
    list[str] | None,
    typer.Option("--define", "-D", metavar="NAME=VALUE", help="A macro that the build gives the source."),
]


class PlaceOptions(TypedDict):
    backend: Backend
    device: DeviceName


class CheckOptions(PlaceOptions):
    template: OneTemplate
    seed: Seed
    sandbox: SandboxMode
    workers: Workers
    ray: Ray


class ResumeOptions(TypedDict):
    wait: Wait
    record: Record
    sandbox: SandboxMode
    workers: Workers
    ray: Ray
    model: RunsOwnModel


class SearchOptions(PlaceOptions):
    search: Annotated[
        str | None,
        typer.Option(help="default, exhaustive, random, evolution or tpe.", autocompletion=_SEARCHERS),
    ]
    evals: Annotated[int | None, typer.Option(help="Configurations to try at most.")]
    time: Annotated[float | None, typer.Option(help="Seconds to search at most.")]
    device_seconds: Annotated[
        float | None, typer.Option(help="Seconds that trials may have the device at most.")
    ]
    seed: Seed
    out: Annotated[Path | None, typer.Option(help="The run's folder.")]
    cache: Annotated[bool | None, _switch_option("cache", "Use timings of earlier runs.")]
    prune: Annotated[bool | None, _switch_option("prune", "Leave out what its build condemns.")]
    steer: Annotated[bool | None, _switch_option("steer", "Look first where the diagnosis points.")]
    counters: Annotated[
        bool | None, _switch_option("counters", "Diagnose with hardware counters: takes seconds.")
    ]
    prior: Annotated[bool | None, _switch_option("prior", "Begin from what earlier runs found.")]
    library: Annotated[bool | None, _switch_option("library", "Keep winning templates in your library.")]
    sandbox: SandboxMode
    workers: Workers
    ray: Ray


class TuneOptions(SearchOptions):
    """Beside those of a search: who writes what is searched."""

    model: Annotated[str | None, typer.Option("--model", help=_WHO)]
    strategy: Annotated[str | None, typer.Option(help=_STRATEGY, autocompletion=_STRATEGIES)]
    linear: Annotated[
        bool | None, _switch_option("linear", "With rewrite: go on from the last kernel, not the best.")
    ]
    effort: Effort
    wait: Wait
    prompts: Prompts
    record: Record
    plain: Annotated[
        bool | None, _switch_option("plain", "Have a model rewrite the kernel for the expert first.")
    ]
    moves: Annotated[str | None, typer.Option(help=MOVES_HELP, autocompletion=MOVE_SETS)]
    rounds: Annotated[int | None, typer.Option(help="Refactorings at most.")]
    tokens: Annotated[int | None, typer.Option(help="That models may send and receive.")]
    money: Annotated[float | None, typer.Option(help="Dollars that models may cost.")]


def with_budget(named: Mapping[str, Any]) -> dict[str, Any]:
    """Options as `api` takes them."""
    from tunesmith.run.config import Budget

    limits = ("evals", "time", "rounds", "tokens", "money", "device_seconds")
    others = {name: value for name, value in named.items() if name not in limits}
    return {**others, "budget": Budget(*(named.get(name) for name in limits))}
