"""A second reader finds the failures that were none."""

from __future__ import annotations

import pytest
from grade.labelled_rows import rows

import whileai_hf as wai

GRADED = rows([None] * 200, [0.0, 1.0] * 100)


def test_wrong_failures_are_counted_and_named():
    found = wai.audit_grades(
        GRADED, lambda row: float(int(row["rollout_id"][1:]) % 4 == 0), sample=100
    )
    assert found.false_fails.estimate.value == 0.5
    assert found.false_fails.verdict == "fail"
    assert found.false_passes.verdict == "unmeasured"
    assert len(found.rows) == 50
    assert all(i % 4 == 0 for i in found.rows)
    assert "false fails 0.50" in str(found)


def test_a_verifier_that_the_second_reader_confirms_passes():
    found = wai.audit_grades(GRADED, lambda row: row.get("reward", 0.0), passes=60, sample=60)
    assert found.ok
    assert found.false_passes.ok


def test_a_reader_that_reads_nothing_measures_nothing():
    found = wai.audit_grades(GRADED, lambda row: None)
    assert found.false_fails.verdict == "unmeasured"
    assert not found.ok
    nothing_failed = wai.audit_grades(rows([None] * 5, [1.0] * 5), lambda row: 1.0)
    assert nothing_failed.false_fails.verdict == "unmeasured"


def test_a_few_rows_are_too_few():
    found = wai.audit_grades(GRADED, lambda row: 0.0, sample=10)
    assert found.false_fails.verdict == "unmeasured"


@pytest.mark.parametrize("options", [{"sample": 0}, {"sample": -1}, {"sample": 0.5}])
def test_a_sample_of_nothing_is_an_error(options):
    with pytest.raises(wai.InputError, match="sample"):
        wai.audit_grades(GRADED, lambda row: 0.0, **options)
