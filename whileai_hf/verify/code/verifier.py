"""`CodeExec`: the reward of a program under hidden tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whileai_hf.verify.base import Verifier
from whileai_hf.verify.code.extraction import program
from whileai_hf.verify.code.runner import run


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeExec(Verifier):
    """Run the program in the answer against tests that it cannot see or forge.

    The reference of a row (`privileged.reference`, or `field`) is the text of its tests. The reason
    names the isolation. Null where the tests, not the program, are at fault.

    Attributes:
        entry: Function that `check(candidate)` receives.
        trusted: Helpers of the tests, whose names win over the program's.
        timeout: Seconds of wall time a program.
        memory_mb: Address space a process.
        isolation: "auto", "namespaces", "landlock"; "rlimit" is weaker and only on request.
    """

    entry: str | None = None
    trusted: str = ""
    timeout: float = 5.0
    memory_mb: int = 1024
    isolation: str = "auto"

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Grade the last fenced Python block of `answer`, or all of it, by the tests."""
        result = run(
            program(answer),
            str(reference),
            entry=self.entry,
            trusted=self.trusted,
            timeout=self.timeout,
            memory_mb=self.memory_mb,
            isolation=self.isolation,
        )
        return result.reward, f"{result.reason}; isolation: {result.guarantee}"
