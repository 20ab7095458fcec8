"""Preference pairs: the better reply to the same prompt is chosen, and length is told from preference."""

from __future__ import annotations

import numpy as np
import pytest
from reports import public_reports

import whileai_hf as wai


def attempts(*replies, task="t", ask="q", **columns):
    """Replies with rewards to one prompt."""
    return wai.rows([ask] * len(replies), [r for r, _ in replies], reward=[x for _, x in replies],
                    task_ids=[task] * len(replies), **columns)  # fmt: skip


def call(name, n, x=1.5):
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": {"x": x}}}]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": "42"},
    ]  # fmt: skip


def conversations(*pairs):
    return wai.Rollouts.from_records(
        [{"task_id": "t", "rollout_id": f"r{i}", "reward": r, "messages": [{"role": "user", "content": "q"}, *turns]}
         for i, (turns, r) in enumerate(pairs)]
    )  # fmt: skip


def say(text):
    return [{"role": "assistant", "content": text}]


@pytest.mark.parametrize("case", public_reports("preference"))
def test_public_reports(case):
    given, expected = case["input"], case["expected"]
    if case["id"] in ("F01", "F02"):
        rows = attempts(*given["rows"])
        pairs = wai.build_preference_pairs(rows)
        assert len(pairs) == expected["pairs"]
        reason = expected.get("reason") or expected.get("flag")
        assert pairs.report.without == {reason: 1}
        assert reason in str(pairs.report)
    elif case["id"] == "F04":
        for n in range(1, given["pairs"] + 1):
            rows = [attempts(("a long reply it is", 1.0), ("short", 0.0), task=f"t{i}") for i in range(n)]  # fmt: skip
            pairs = wai.build_preference_pairs(wai.Rollouts.from_records(r for d in rows for r in d.records()))  # fmt: skip
            assert any(w.startswith(expected["warning"]) for w in pairs.report.warnings) == (n >= expected["from_pairs"])  # fmt: skip
            assert pairs.warnings == pairs.report.warnings
    elif case["id"] == "F05":
        rows = conversations((call("get", 1) + say("good"), 1.0), (call("get", 2) + say("bad"), 0.0))  # fmt: skip
        pair = wai.build_preference_pairs(rows)[0]
        assert pair["first_turn_identical"]
        assert [m["role"] for m in pair["prompt"]] == ["user", "assistant", "tool"]
        assert (pair["chosen"], pair["rejected"]) == (say("good"), say("bad"))
    elif case["id"] == "F06":
        rows = attempts(("long", 1.0), ("short", 0.0)).remove_columns("n_tokens")
        rows = rows.add_column("n_tokens", [given["chosen_tokens"], given["rejected_tokens"]])
        report = wai.build_preference_pairs(rows, max_tokens=given["max_length"]).report
        assert report.left_out == {"longer than max_tokens": expected["dropped"]}
    elif case["id"] == "F07":
        rows = attempts(("a", given["chosen"]), ("b", given["rejected"]))
        assert len(wai.build_preference_pairs(rows, min_margin=given["min_margin"])) == expected["pairs"]  # fmt: skip
    else:
        pytest.fail("a public report without a test")


def test_the_partner_is_the_one_nearest_in_length():
    rows = attempts(("x" * 100, 1.0), ("y" * 5, 0.0), ("z" * 90, 0.0), ("w" * 900, 0.0))
    assert wai.build_preference_pairs(rows)[0]["rejected"] == say("z" * 90)
    rows = attempts(("x" * 100, 1.0), ("y" * 5, 0.0), ("z" * 90, 0.4))
    assert wai.build_preference_pairs(rows, length_match=False)[0]["rejected"] == say("y" * 5)


def test_at_most_m_pairs_of_a_prompt_and_no_reply_twice_on_a_side():
    rows = attempts(*[(f"good {i}", 1.0) for i in range(3)], *[(f"bad {i}", 0.0) for i in range(5)])
    assert len(wai.build_preference_pairs(rows)) == 1
    pairs = wai.build_preference_pairs(rows, max_pairs=10)
    assert len(pairs) == 3
    assert len(set(pairs["chosen_id"][:])) == len(set(pairs["rejected_id"][:])) == 3


def test_two_wordings_of_a_task_and_two_tasks_are_not_compared():
    rows = wai.rows(["q", "Q?", "p"], ["a", "b", "c"], reward=[1, 0, 0], task_ids=["t", "t", "u"])
    pairs = wai.build_preference_pairs(rows)
    assert len(pairs) == 0
    assert pairs.report.without == {"no contrast": 3}


def test_arguments_survive_exactly_and_tools_come_along():
    tool = {"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {}}}}  # fmt: skip
    rows = conversations(
        (call("get", 1, 1.1234567890123) + say("a"), 1.0), (call("put", 1) + say("b"), 0.0)
    )
    rows = wai.Rollouts.from_records({**r, "tools": [tool]} for r in rows.records())
    pair = wai.build_preference_pairs(rows)[0]
    assert pair["chosen"] == rows[0]["messages"][1:]
    assert pair["tools"] == rows[0]["tools"]
    assert not pair["first_turn_identical"]


def test_first_turn_pairs_differ_in_one_agent_turn():
    rows = conversations((call("get", 1) + say("a"), 1.0), (call("put", 2) + say("b"), 0.0))
    pair = wai.build_preference_pairs(rows, first_turn=True)[0]
    assert [m["role"] for m in pair["chosen"]] == ["assistant", "tool"]
    assert [m["role"] for m in pair["rejected"]] == ["assistant", "tool"]
    assert len(wai.to_dpo(wai.build_preference_pairs(rows, first_turn=True))) == 1


def test_the_length_baseline_is_that_of_a_count_by_hand():
    rng = np.random.default_rng(1)
    records = []
    for i in range(40):
        records += list(attempts((f"a{'x' * rng.integers(50)}", 1.0), (f"b{'x' * rng.integers(50)}", 0.0), task=f"t{i}").records())  # fmt: skip
    pairs = wai.build_preference_pairs(wai.Rollouts.from_records(records))
    size = [(len(p["chosen"][0]["content"]), len(p["rejected"][0]["content"])) for p in pairs]
    share = np.mean([0.5 if a == b else a > b for a, b in size])
    assert pairs.report.chosen_longer == pytest.approx(share)
    assert pairs.report.length_baseline == pytest.approx(max(share, 1 - share))
    assert pairs.report.chosen_longer in pairs.report.interval
    assert "40 pairs of 40 tasks" in str(pairs.report)


def test_kto_rows_are_labelled_and_balanced():
    rows = attempts(("a", 1.0), ("b", 0.0), ("c", 0.5), ("d", None), ("e", 0.2))
    made = wai.build_unpaired(rows, undesirable=0.3)
    assert made["label"][:] == [True, False, False]
    assert made.report.left_out == {"unjudged, or no reply": 1, "between the two thresholds": 1}
    assert made.report.weights == (2.0, 1.0)
    assert "desirable_weight=2" in str(made.report)
    assert len(wai.to_kto(made)) == 3
    assert wai.build_unpaired(attempts(("a", 1.0))).report.weights is None
    assert len(wai.build_unpaired(attempts(("a", 1.0), ("a", 0.0)))) == 0


def test_the_input_stays_and_nothing_is_no_crash():
    rows = attempts(("a", 1.0), ("b", 0.0))
    before = list(rows)
    wai.build_preference_pairs(rows)
    assert list(rows) == before
    none = wai.build_preference_pairs(wai.Rollouts.from_records([]))
    assert len(none) == 0
    assert "not measured" in str(none.report)
    assert none.features == wai.build_preference_pairs(rows).features


@pytest.mark.parametrize(
    ("options", "what"),
    [({"min_margin": 0}, "min_margin"), ({"min_margin": float("nan")}, "min_margin"), ({"max_pairs": 0}, "max_pairs")],
)  # fmt: skip
def test_options_that_name_nothing_are_errors(options, what):
    with pytest.raises(wai.InputError, match=what):
        wai.build_preference_pairs(attempts(("a", 1.0)), **options)
    with pytest.raises(wai.InputError, match="undesirable"):
        wai.build_unpaired(attempts(("a", 1.0)), undesirable=1.0)
