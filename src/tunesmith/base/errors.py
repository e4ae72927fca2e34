"""What Tunesmith raises, as one small tree.

    TunesmithError          exit 1   our fault, or a broken machine
    ├── BadInput            exit 2   a file, flag or folder the user can mend
    ├── KernelWrong         exit 3   the kernel is wrong before we touch it
    ├── WaitingForModel     exit 4   a model's reply has not arrived yet
    └── DeviceMissing       exit 5   the device a run needs, or the sandbox it requires, is not here
    KeyboardInterrupt
    └── Interrupted         exit 130 the user or the system asked us to end

Exit 6 is no error: `tunesmith diff --fail-below` found what it was asked to look for. Nor are 7
and 8 of `tunesmith verify`: what a certificate claims does not hold, or nobody can tell; nor 3 of `tunesmith
apply`: rolled back, or failed.
A candidate kernel that fails is a `Result`, never an exception.
"""

from __future__ import annotations


class _WithHint(BaseException):
    """`message` says the rule and the value got; `hint` says the next step; `where` names the file and, when
    known, the line ("problem.toml:12")."""

    def __init__(self, message: str, *, hint: str | None = None, where: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class TunesmithError(_WithHint, Exception):
    """Base of everything shown to the user as a message instead of a traceback."""

    exit_code = 1


class BadInput(TunesmithError):
    exit_code = 2


class KernelWrong(TunesmithError):
    exit_code = 3


class WaitingForModel(TunesmithError):
    """`awaits`: the file that the reply is to be written to, where it is a file."""

    exit_code = 4

    def __init__(
        self, message: str, *, hint: str | None = None, where: str | None = None, awaits: str = ""
    ) -> None:
        super().__init__(message, hint=hint, where=where)
        self.awaits = awaits


class DeviceMissing(TunesmithError):
    exit_code = 5


class Interrupted(_WithHint, KeyboardInterrupt):
    """Ctrl-C, once everything is cleaned up. `where`: the folder of the run, which can be resumed."""

    exit_code = 130


def bug_text(error: BaseException) -> str:
    """An exception nobody foresaw, in one line: what, and where in our code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"
