"""What the package raises."""
from __future__ import annotations

import os
import re


class Error(Exception):
    """One line: what is wrong, where, and what to do. `kind` says which sort it is: "argument",
    "config", "format", "io", "memory", "backend", "state", "dropped", "timeout", "interrupted" or,
    of a command that octd refused, "refused"."""

    def __init__(self, text: str, kind: str = "argument") -> None:
        super().__init__(re.sub(r"\s*[\r\n]\s*", " ", text))
        self.kind = kind


class Timeout(Error, TimeoutError):
    """Nothing came, or nothing was taken, within the time given."""

    def __init__(self, text: str) -> None:
        Error.__init__(self, text, "timeout")


def check_process(pid: int, what: str) -> None:
    """Raises Error in a process forked from `pid`, which made the object: threads, locks and
    connections are the parent's."""
    if os.getpid() != pid:
        raise Error(f"this {what} belongs to process {pid}: a forked process makes its own",
                    "state")
