"""A request as a file that a person or a program can answer without knowing anything else."""

from __future__ import annotations

from tunesmith.core.dialogue import Request

WANTED = {
    "json": "one JSON object and nothing else. A fence of three backticks around it is fine.",
    "file": "one whole file between two fences of three backticks. Words before and after it are read by "
    "nobody; code outside of the fences is lost.",
    "turn": "a few sentences, then one whole file between two fences of three backticks; or, to stop, one "
    'JSON object instead of the file: {"decision": "stop", "why": "..."}.',
}


def letter(request: Request, reply_name: str) -> str:
    """Markdown. Fences are long, so that whatever a message holds stays inside."""
    parts = [
        f"# Request {request.number}: {request.role}",
        f"Write the answer to the file `{reply_name}` beside this one (under another name first, then rename "
        "it: a file that is there is read). It needs nothing but what is said here.",
        f"**Expected**: {WANTED[request.expects]} At most about {request.most_tokens} tokens.",
    ]
    if request.example and not any(request.example.strip() in m.text for m in request.messages):
        parts += ["## An answer that would be understood", _fenced(request.example)]
    parts += [f"## {m.speaker}\n\n{_fenced(m.text)}" for m in request.messages]
    return "\n\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    longest = max((len(run) for run in _runs(text)), default=0)
    fence = "~" * max(5, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _runs(text: str) -> list[str]:
    return [line[: len(line) - len(line.lstrip("~"))] for line in map(str.strip, text.splitlines())]
