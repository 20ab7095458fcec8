"""Seeing completions: a reward function that behaves as another one and shows what it scored."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from whileai_hf.errors import InputError


def reward_function(reward: Any) -> Callable[..., Any]:
    """Take a TRL reward function, or a verifier as one.

    Raises:
        InputError: It is neither.
    """
    function = reward.reward_func() if hasattr(reward, "reward_func") else reward
    if not callable(function):
        raise InputError(
            f"wrap takes a reward function or a verifier; got {type(reward).__name__}. "
            "Pass a function of (completions, **columns)."
        )
    return function  # type: ignore[no-any-return]


def name_of(function: Callable[..., Any]) -> str:
    """Return the name under which TRL logs a reward function."""
    return str(getattr(function, "__name__", type(function).__name__))


def observed(
    function: Callable[..., Any], see: Callable[[Any, Mapping[str, Any]], Any]
) -> Callable[..., Any]:
    """Return a reward function, asynchronous where the other one is, whose results go through `see`.

    Args:
        function: The reward function.
        see: Called with its rewards and the columns that it was given; returns the rewards.
    """
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapped(**columns: Any) -> Any:
            return see(await function(**columns), columns)
    else:

        @functools.wraps(function)
        def wrapped(**columns: Any) -> Any:
            return see(function(**columns), columns)

    wrapped.__name__ = name_of(function)
    return wrapped
