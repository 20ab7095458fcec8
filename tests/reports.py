"""The public reports: inputs from bug reports with the answer a careful user would want."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


def public_reports(*kinds: str) -> list:
    """The public reports of some kinds as pytest parameters, named by their id."""
    lines = (DATA / "public_reports.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    return [pytest.param(c, id=c["id"]) for c in cases if c["kind"] in kinds]
