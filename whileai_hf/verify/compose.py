"""Verifiers made of others, and of a function of yours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any as Anything

from whileai_hf.errors import InputError
from whileai_hf.verify.base import Verifier


class _Composed:
    """Judges by several parts; a part without a reward leaves the whole without one."""

    version = "1"

    def __init__(self, *parts: Callable[[Mapping[str, Anything]], Mapping[str, Anything]]) -> None:
        if not parts or not all(map(callable, parts)):
            raise InputError(
                f"{type(self).__name__} needs one or more verifiers; got {parts!r}. "
                f"Write {type(self).__name__}(ExactMatch(), Includes())."
            )
        self.parts = parts

    @property
    def name(self) -> str:
        """The name, with the names of the parts."""
        names = ", ".join(str(getattr(p, "name", type(p).__name__)) for p in self.parts)
        return f"{type(self).__name__}@{self.version}({names})"

    def _combine(self, rewards: list[float]) -> float:
        raise NotImplementedError

    def __call__(self, row: Mapping[str, Anything]) -> dict[str, Anything]:
        """Judge one row."""
        verdicts = [part(row) for part in self.parts]
        reason = "; ".join(str(v.get("reason") or "") for v in verdicts)
        rewards = [v.get("reward") for v in verdicts]
        known = [r for r in rewards if r is not None]
        if len(known) < len(rewards):
            return {"reward": None, "reason": reason}
        return {"reward": self._combine(known), "reason": reason}

    def reward_func(self) -> Callable[..., list[float | None]]:
        """Return this verifier as a reward function of TRL's trainers; every part must be one."""
        functions = [part.reward_func() for part in self.parts]  # type: ignore[attr-defined]

        def reward(*args: Anything, **kwargs: Anything) -> list[float | None]:
            rows = zip(*(function(*args, **kwargs) for function in functions), strict=True)
            return [None if None in row else self._combine(list(row)) for row in rows]

        reward.__name__ = type(self).__name__
        return reward


class All(_Composed):
    """As good as the worst part."""

    def _combine(self, rewards: list[float]) -> float:
        return min(rewards)


class Any(_Composed):
    """As good as the best part."""

    def _combine(self, rewards: list[float]) -> float:
        return max(rewards)


class Weighted(_Composed):
    """The weighted mean of the parts: `Weighted((ExactMatch(), 3), (Includes(), 1))`."""

    def __init__(self, *pairs: tuple[Callable[..., Anything], float]) -> None:
        if not all(isinstance(p, tuple) and len(p) == 2 and p[1] > 0 for p in pairs):
            raise InputError(
                f"Weighted needs pairs of a verifier and a positive weight; got {pairs!r}. "
                "Write Weighted((ExactMatch(), 3), (Includes(), 1))."
            )
        super().__init__(*(part for part, _ in pairs))
        self.weights = [float(weight) for _, weight in pairs]

    def _combine(self, rewards: list[float]) -> float:
        total = sum(w * r for w, r in zip(self.weights, rewards, strict=True))
        return min(total / sum(self.weights), 1.0)


def verifier(function: Callable[[str, Anything], float]) -> Verifier:
    """Make a verifier of a function of the answer and the reference that returns a reward."""

    class Made(Verifier):
        __slots__ = ()

        def check(self, answer: str, reference: Anything) -> tuple[float | None, str]:
            """Ask the function."""
            return float(function(answer, reference)), f"{function.__name__} decided"

    functools.update_wrapper(Made, function, updated=())
    return Made()
