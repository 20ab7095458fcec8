"""Fixtures of the whole suite: no hub, no network, no progress bars, no cache of another run."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


def public_reports(*kinds: str) -> list:
    """The public reports of some kinds as pytest parameters, named by their id."""
    lines = (DATA / "public_reports.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    return [pytest.param(c, id=c["id"]) for c in cases if c["kind"] in kinds]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep what `datasets` caches inside the test run."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.getbasetemp() / "datasets")
