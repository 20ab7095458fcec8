"""A support desk with orders, refunds and tools that fail on schedule.

verifiers scans `__all__` for one Taskset, one Harness and one Env; they are made on first use, so that the
tasks, the world and the reward work without verifiers.
"""

from typing import Any

from support_desk.core import ENVIRONMENT

__all__ = ["ENVIRONMENT", "Env", "Harness", "Taskset", "load_environment"]


def __getattr__(name: str) -> Any:
    if name in ("Env", "Harness", "Taskset"):
        return getattr(ENVIRONMENT.verifiers(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_environment(split: str = "train", **options: Any) -> Any:
    """Load the environment for verifiers below 0.4; `split` is "train" or "holdout"."""
    return ENVIRONMENT.verifiers_v0(split, **options)
