"""The pages that are served: the index, and what stands above the report of a run that is watched.

Whatever is foreign goes through `element`, which escapes it, or to the script as text that it never parses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from tunesmith.base.text import Markup, format_count, html_element, strip_controls, truncate_text
from tunesmith.deliver.pages import page
from tunesmith.plugins.studies.pages import comparison_parts
from tunesmith.plugins.watch.following import STATUSES, FoundComparison, FoundRun, RunFilter, RunSeen
from tunesmith.plugins.watch.guard import TOKEN
from tunesmith.run.events import Instructed
from tunesmith.run.folder import LONGEST_HINT
from tunesmith.run.progress import budget_text, clock_text, done_text, floor_text, left_text
from tunesmith.run.rounds import BY_SEARCH

MAX_LISTED = 500  # runs of an index
MAX_ASKED = 8  # of what was asked of a run, the last
LONGEST = 300
_FIGURES = {"status": "this run is", "phase": "what it is doing", "clock": "it has been at work"}
_ROWS = {"doing": "At the device", "progress": "Done", "best": "Best so far", "left": "Still to come"}
_LISTS = {
    "queue": "Next at the device", "floors": "The best so far, and how far the floor is",
    "budgets": "Budget", "asked": "What was asked of it",
}  # fmt: skip
_WHAT = {"stop": "Stop after this batch", "finish": "Finish now", "hint": "Try this configuration"}


@dataclass(frozen=True)
class LiveFields:
    """What changes on the page, as texts: the page has them when it is loaded, the script is sent them."""

    status: str
    phase: str
    doing: str
    progress: str
    best: str
    left: str
    clock: str
    queue: tuple[str, ...]
    floors: tuple[str, ...]
    budgets: tuple[str, ...]
    asked: tuple[str, ...]
    seconds: float
    done: int
    of: int  # 0: nobody knows
    live: bool
    events: int


def live_fields(seen: RunSeen) -> LiveFields:
    now = seen.now
    if not seen.live and not now.ended:
        now = replace(now, phase=f"stopped while {now.phase}", doing="", left=None)
        now = replace(now, queue=(), queued=0, building=0)
    queue = now.queue + ((f"and {now.queued - len(now.queue)} more",) if now.queued > len(now.queue) else ())
    queue += (f"{format_count(now.building, 'build')} on the way",) if now.building else ()
    status = "live" if seen.live and not now.ended else "finished" if now.ended else "stopped"
    if seen.live and now.stopping:
        status = "live, stopping"
    if seen.is_behind and not seen.live:  # the page, which is loaded again now, says how it ended
        status, now = "over", replace(now, phase="its last events are being read")
    # Of events that come faster than they are read.
    behind = f", {seen.since:.0f} s ago" if seen.is_behind and seen.since >= 1 else ""
    found = LiveFields(
        status=f"{status}; {seen.fault}" if seen.fault else status,
        phase=now.phase,
        doing=f"{now.doing or 'nothing'}{behind}",
        progress=done_text(now),
        best=f"{now.best:.2f}× {BY_SEARCH}: {now.best_config}" if now.best is not None else "none yet",
        left=f"{left_text(now.left)} of searching" if now.left is not None else "not known",
        clock=clock_text(now.seconds),
        queue=queue or ("nothing",),
        floors=tuple(floor_text(one) for one in now.floors) or ("nothing is timed yet",),
        budgets=tuple(budget_text(use) for use in now.budgets),
        asked=_instruction_lines(seen) or ("nothing",),
        seconds=round(now.seconds, 1),
        done=now.done,
        of=now.of or 0,
        live=seen.live and not now.ended,
        events=seen.state.events,
    )
    return LiveFields(**{name: _sanitize_field(value) for name, value in vars(found).items()})


def _sanitize_field(value: Any) -> Any:
    """A text as it may be shown: short, and without what acts unseen."""
    if isinstance(value, str):
        return truncate_text(" ".join(strip_controls(value).split()), LONGEST)
    return tuple(map(_sanitize_field, value)) if isinstance(value, tuple) else value


def _instruction_lines(seen: RunSeen) -> tuple[str, ...]:
    told = [_describe_instruction(event) for event in seen.state.instructed]
    return tuple([*told, *(f"{text}: not taken up yet" for text in seen.waiting)][-MAX_ASKED:])


def _describe_instruction(event: Instructed) -> str:
    named = f"{event.what} {event.text}".strip()
    if event.refused:
        return f"{named}: refused, {event.refused}"
    return f"{named}: {event.config} is tried" if event.config is not None else f"{named}: taken up"


def run_url(name: str, token: str, then: str = "") -> str:
    return f"/runs/{quote(name, safe='/')}{then}?{urlencode({TOKEN: token})}"


def index_url(token: str, **filters: str) -> str:
    return f"/?{urlencode({**{k: v for k, v in filters.items() if v}, TOKEN: token})}"


def live_part(name: str, fields: LiveFields, token: str, said: str = "") -> page.LivePart:
    """`said`: what has come of what was just asked."""
    reached = {"value": str(min(fields.done, fields.of)), "max": str(fields.of or 1)}
    section = html_element(
        "section",
        html_element("h2", "Now"),
        html_element("p", said, role="status", class_="said", data_field="said"),
        html_element("ul", *_status_figures(fields), class_="figures"),
        html_element("progress", fields.progress, **reached, aria_label="Done", data_field="bar"),
        html_element("dl", *(part for row in _status_rows(fields) for part in row)),
        html_element("div", *_live_lists(fields), class_="lists"),
        *(_instruction_forms(name, token) if fields.live else []),
        id="now",
        data_events=run_url(name, token, "/events"),
        data_live="yes" if fields.live else "",
        data_seconds=str(fields.seconds),
    )  # fmt: skip
    above = html_element("p", _link_to_all(token), f" / {truncate_text(name, LONGEST)}")
    return page.LivePart(above, section, watch_style(), watch_script())


def _status_figures(fields: LiveFields) -> Iterable[Markup]:
    for key, words in _FIGURES.items():
        shown = html_element("strong", getattr(fields, key), data_field=key)
        yield html_element("li", shown, html_element("span", words))


def _status_rows(fields: LiveFields) -> Iterable[tuple[Markup, Markup]]:
    for key, title in _ROWS.items():
        yield html_element("dt", title), html_element("dd", getattr(fields, key), data_field=key)


def _live_lists(fields: LiveFields) -> Iterable[Markup]:
    for key, title in _LISTS.items():
        lines: Sequence[str] = getattr(fields, key)
        listed = html_element("ul", *(html_element("li", line) for line in lines), data_list=key)
        yield html_element("div", html_element("h3", title), listed)


def _instruction_forms(name: str, token: str) -> list[Markup]:
    """They work without a script too: then the page is loaded again. The hint has a form of its own: who
    presses Enter there does not stop the run."""
    buttons = {what: html_element("button", words, name="what", value=what) for what, words in _WHAT.items()}
    hint = html_element(
        "label",
        "A hint: values of parameters, the others as in the template",
        html_element("input", name="text", maxlength=str(LONGEST_HINT), placeholder="BLOCK=128 VEC=4"),
    )
    secret = html_element("input", type="hidden", name=TOKEN, value=token)
    sent = {"method": "post", "action": f"/runs/{quote(name, safe='/')}/instructions"}
    ends = html_element("p", buttons["stop"], " ", buttons["finish"])
    asked = html_element("p", hint, buttons["hint"])
    return [
        html_element("form", secret, inside, aria_label=label, **sent)
        for inside, label in ((ends, "End this run"), (asked, "Give a hint"))
    ]


@cache
def watch_style() -> str:
    return page.page_style() + _read_resource("watch.css")


@cache
def watch_script() -> str:
    return _read_resource("watch.js")


def _read_resource(name: str) -> str:
    return resources.files("tunesmith.plugins.watch").joinpath(name).read_text("utf-8")


def index_page(
    runs: Sequence[FoundRun], comparisons: Sequence[FoundComparison], wanted: RunFilter, token: str
) -> str:
    shown = [run for run in runs if wanted.shows(run)]
    title = f"Comparison {wanted.within}" if wanted.within else "Runs"
    body = [
        *([html_element("p", _link_to_all(token))] if wanted.within else []),
        _filter_form(runs, wanted, token),
        html_element("p", f"{len(shown)} of {format_count(len(runs), 'run')}", role="status"),
        _runs_table(shown[:MAX_LISTED], token),
    ]
    if len(shown) > MAX_LISTED:
        more = f"The newest {MAX_LISTED} are listed: narrow the filter to see others."
        body.append(html_element("p", more))
    if comparisons and not wanted.within:
        body += [html_element("h2", "Comparisons"), _comparisons_table(comparisons, runs, token)]
    return whole_page(title, body)


def comparison_page(name: str, text: str, pictures: Mapping[str, bytes], token: str) -> str:
    """What its runs say together."""
    title, parts = comparison_parts(text, pictures)
    own = html_element("a", f"The runs of {truncate_text(name, LONGEST)}", href=index_url(token, within=name))
    return whole_page(title, [html_element("p", _link_to_all(token), " / ", own), *parts])


def _link_to_all(token: str) -> Markup:
    return html_element("a", "All runs", href=index_url(token))


def whole_page(title: str, body: Sequence[Markup]) -> str:
    head = page.page_head(f"{truncate_text(title, LONGEST)}: Tunesmith", watch_style(), watch_script())
    inside = html_element(
        "body",
        html_element("header", html_element("h1", truncate_text(title, LONGEST))),
        html_element("main", *body, class_="index"),
    )
    return f"<!DOCTYPE html>\n{html_element('html', head, inside, lang='en').text}\n"


def _filter_form(runs: Sequence[FoundRun], wanted: RunFilter, token: str) -> Markup:
    choices = {
        "status": (wanted.status, STATUSES),
        "problem": (wanted.problem, sorted({run.problem for run in runs if run.problem})),
        "device": (wanted.device, sorted({run.device for run in runs if run.device})),
    }
    kept = {TOKEN: token, **({"within": wanted.within} if wanted.within else {})}
    words = html_element("input", name="words", value=truncate_text(wanted.words, LONGEST))
    inside = [
        *(html_element("input", type="hidden", name=name, value=value) for name, value in kept.items()),
        html_element("label", "Words ", words),
        *(_filter_select(name, *choice) for name, choice in choices.items()),
        html_element("button", "Filter"),
    ]
    return html_element("form", *inside, method="get", action="/", role="search", class_="filters")


def _filter_select(name: str, chosen: str, known: Sequence[str]) -> Markup:
    options = [html_element("option", "all", value="")]
    for one in known:
        marked = {"selected": "selected"} if one == chosen else {}
        options.append(html_element("option", one, value=one, **marked))
    return html_element("label", f"{name.capitalize()} ", html_element("select", *options, name=name))


def _runs_table(runs: Sequence[FoundRun], token: str) -> Markup:
    heads = ("run", "status", "problem", "device", "verified speed-up", "how", "changed")
    table = _listed_table("Runs, the newest first", heads, [_run_row(run, token) for run in runs])
    return html_element("div", table, class_="scroll", role="region", aria_label="Runs", tabindex="0")


def _listed_table(caption: str, heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    head = html_element("tr", *(html_element("th", name, scope="col") for name in heads))
    inside = html_element("thead", head), html_element("tbody", *rows)
    return html_element("table", html_element("caption", caption), *inside)


def _run_row(run: FoundRun, token: str) -> Markup:
    link = html_element("a", truncate_text(run.name, LONGEST), href=run_url(run.name, token))
    texts = (run.status, run.problem, run.device, run.speedup, run.how, _format_date(run.changed))
    cells = (html_element("td", truncate_text(text, LONGEST)) for text in texts)
    return html_element("tr", html_element("th", link, scope="row"), *cells)


def _comparisons_table(
    comparisons: Sequence[FoundComparison], runs: Sequence[FoundRun], token: str
) -> Markup:
    rows = []
    for one in comparisons:
        own = [run for run in runs if run.comparison == one.name]
        done = sum(run.status == "finished" for run in own)
        live = sum(run.status == "live" for run in own)
        report = f"/comparisons/{quote(one.name)}?{urlencode({TOKEN: token})}"
        cells = (
            html_element("td", f"{done} of {len(own)} finished{f', {live} live' if live else ''}"),
            html_element("td", html_element("a", "what they say", href=report)),
            html_element("td", _format_date(one.changed)),
        )
        link = html_element("a", truncate_text(one.name, LONGEST), href=index_url(token, within=one.name))
        rows.append(html_element("tr", html_element("th", link, scope="row"), *cells))
    return _listed_table("Comparisons, the newest first", ("comparison", "runs", "together", "changed"), rows)


def _format_date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC") if seconds else ""
