"""What the package raises."""
from __future__ import annotations


class Error(Exception):
    """One line: what is wrong, where, and what to do. `kind` says which sort it is: "argument",
    "config", "format", "io", "memory", "backend", "state", "dropped", "timeout", "interrupted" or,
    of a command that octd refused, "refused"."""

    def __init__(self, text: str, kind: str = "argument") -> None:
        super().__init__(text)
        self.kind = kind


class Timeout(Error, TimeoutError):
    """Nothing came, or nothing was taken, within the time given."""

    def __init__(self, text: str) -> None:
        Error.__init__(self, text, "timeout")
