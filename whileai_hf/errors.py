"""Every error that whileai_hf raises on purpose.

    WhileaiError
    ├── InputError (ValueError)        an argument or a value is not what is required
    │   └── SchemaError                a dataset lacks a column, or holds it in another type
    ├── MissingExtra (ImportError)     an optional library is not installed
    ├── GuardError                     data may not leave; `.report` says why
    └── AgentFailed                    no rollout can be made; `.boundary` says where it failed

A message has three clauses: what is required, what came, and the way out. A failure inside one
rollout (an agent, a tool, a judge) is not raised at all: it is recorded on its row, because a bad
rollout is data and must not stop its neighbours.
"""

from __future__ import annotations


class WhileaiError(Exception):
    """The root: `except WhileaiError` catches everything this package raises on purpose."""


class InputError(WhileaiError, ValueError):
    """An argument or a value is not what is required."""


class SchemaError(InputError):
    """A dataset lacks a column that a step needs, or holds it in a type the step cannot read."""


class MissingExtra(WhileaiError, ImportError):
    """An optional library is not installed; the message holds the install line."""


class GuardError(WhileaiError):
    """Data may not leave: it is ungraded, carries no signal, or leaks what must stay private.

    Attributes:
        report: What the guard found, an object that prints itself, or None.
    """

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report


class AgentFailed(WhileaiError):
    """No rollout can be made, because the agent or its endpoint fails every time.

    Attributes:
        boundary: Where it failed: "agent", "provider" or "tool".
    """

    def __init__(self, message: str, boundary: str = "agent") -> None:
        super().__init__(message)
        self.boundary = boundary
