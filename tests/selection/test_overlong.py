"""The overlong penalty is DAPO's, and a gate drops what does not fit."""

from __future__ import annotations

import pytest

import whileai_hf as wai


def tokens(*counts, **columns):
    return wai.Rollouts.from_records(
        {"task_id": "t", "n_tokens": n, **{k: v[i] for k, v in columns.items()}}
        for i, n in enumerate(counts)
    )


def test_the_penalty_is_equation_13():
    rows = wai.with_overlong_penalty(
        tokens(0, 60, 80, 90, 100, 500, None), max_tokens=100, buffer=40
    )
    assert rows["overlong_penalty"][:] == [0.0, 0.0, -0.5, -0.75, -1.0, -1.0, None]


def test_a_rollout_that_the_limit_cut_pays_in_full():
    rows = tokens(10, 10, None, finish_reason=["stop", "length", "length"])
    assert wai.with_overlong_penalty(rows, max_tokens=100, buffer=40)["overlong_penalty"][:] == [0.0, -1.0, -1.0]  # fmt: skip


def test_a_gate_drops_what_does_not_fit():
    assert tokens(10, 11, None).filter(wai.Fits(max_tokens=10))["n_tokens"][:] == [10, None]


@pytest.mark.parametrize("options", [{"max_tokens": 0, "buffer": 1}, {"max_tokens": 10, "buffer": 11}, {"max_tokens": 1.5, "buffer": 1}])  # fmt: skip
def test_options_out_of_range_are_errors(options):
    with pytest.raises(wai.InputError, match="whole number"):
        wai.with_overlong_penalty(tokens(1), **options)
