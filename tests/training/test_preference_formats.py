"""Pairs become rows that TRL reads: branched where they differ, exact, without what a judge reads."""

from __future__ import annotations

import json

import pytest
import tiny
from datasets import Dataset, DatasetDict
from reports import public_reports

import whileai_hf as wai
from whileai_hf import schema

SECRET = "SECRET-77"


def call(city, n=1):
    return {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{n}", "type": "function", "function": {"name": "get_weather", "arguments": {"city": city}}}]}  # fmt: skip


def result(text="sunny", n=1):
    return {"role": "tool", "tool_call_id": f"c{n}", "content": text, "status": "ok"}


def says(text):
    return {"role": "assistant", "content": text}


PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"}]
GOOD = [call("Paris"), result(), says("It is sunny.")]
BAD = [call("Paris", 7), result(n=7), says("No idea.")]


def pairs(*sides, **more):
    """Pairs as the selection writes them."""
    rows = [
        {"prompt": PROMPT, "chosen": c, "rejected": r, "tools": [tiny.WEATHER], "task_id": f"t{i}", "chosen_reward": 1.0, "rejected_reward": 0.0, **more}
        for i, (c, r) in enumerate(sides or [(GOOD, BAD)])
    ]  # fmt: skip
    return Dataset.from_list(rows, on_mixed_types="use_json")


def plain(row):
    return {k: schema.restore(v) for k, v in row.items()}


def test_a_pair_branches_at_the_agent_turn_where_it_differs():
    row = plain(wai.to_dpo(pairs())[0])
    assert [m["role"] for m in row["prompt"]] == ["system", "user", "assistant", "tool"]
    assert (row["chosen"], row["rejected"]) == ([says("It is sunny.")], [says("No idea.")])
    assert row["prompt"][2]["tool_calls"][0]["function"]["arguments"] == {"city": "Paris"}
    assert row["tools"] == [tiny.WEATHER]
    assert "status" not in row["prompt"][3]


def test_a_pair_that_differs_in_a_result_branches_at_the_call_before_it():
    other = [call("Paris", 3), result("rain", 3), says("It rains.")]
    row = plain(wai.to_dpo(pairs((GOOD, other)))[0])
    assert [m["role"] for m in row["prompt"]] == ["system", "user"]
    assert [m["role"] for m in row["rejected"]] == ["assistant", "tool", "assistant"]


def test_a_reply_that_goes_on_where_the_other_ends_branches_before_the_last_shared_turn():
    longer = [*GOOD, {"role": "user", "content": "And?"}, says("Nothing.")]
    row = plain(wai.to_dpo(pairs((GOOD, longer)))[0])
    assert row["chosen"] == [says("It is sunny.")]
    assert len(row["rejected"]) == 3


def test_whole_conversations_and_texts_are_pairs_too():
    whole = pairs((PROMPT + GOOD, PROMPT + BAD)).remove_columns("prompt")
    assert plain(wai.to_dpo(whole)[0]) == plain(wai.to_dpo(pairs())[0])
    row = plain(
        wai.to_dpo(Dataset.from_dict({"prompt": ["q"], "chosen": ["a"], "rejected": ["b"]}))[0]
    )
    assert row["prompt"] == [{"role": "user", "content": "q"}]
    assert (row["chosen"], row["tools"]) == ([says("a")], None)


def test_no_tools_are_null_and_nothing_privileged_leaves():
    rows = pairs(tools=[], privileged={"reference": SECRET}, world={"seed": SECRET})
    for made in (wai.to_dpo(rows), wai.to_reward(rows), wai.to_kto(rows)):
        assert made[0]["tools"] is None
        assert SECRET not in json.dumps(made[:], default=str)


@pytest.mark.parametrize(
    ("side", "why"),
    [
        ((GOOD, GOOD), "same reply, two rewards"),
        ((GOOD[:1], BAD), "a call without its result"),
        ((GOOD, [result(n=9), says("x")]), "a result without its call"),
        ((GOOD, [says("x"), {"role": "user", "content": "y"}, {**says(""), "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]}]), "a call that cannot be read"),
    ],
)  # fmt: skip
def test_a_pair_that_would_teach_nonsense_is_left_out_and_counted(side, why):
    made = wai.to_dpo(pairs(side))
    assert (len(made), made.report.refused) == (0, {why: 1})
    assert why in str(made.report)


def test_a_rejected_reply_may_end_in_a_call_that_nobody_answered():
    assert len(wai.to_dpo(pairs((GOOD, [call("Rome", 4)])))) == 1


def test_a_chosen_reply_has_to_have_earned_more():
    made = wai.to_dpo(pairs(chosen_reward=0.5, rejected_reward=0.5))
    assert made.report.refused == {"the chosen reply did not earn more": 1}


def test_the_margin_is_the_difference_of_the_rewards():
    assert wai.to_reward(pairs(chosen_reward=0.75), margin=True)[0]["margin"] == 0.75
    assert "margin" not in wai.to_reward(pairs()).column_names
    with pytest.raises(wai.SchemaError, match="chosen_reward"):
        wai.to_reward(pairs().remove_columns("chosen_reward"), margin=True)


def test_kto_takes_pairs_labelled_replies_and_graded_rollouts():
    two = wai.to_kto(pairs())
    assert two["label"] == [True, False]
    labelled = Dataset.from_dict(
        {"prompt": ["q", "q"], "completion": ["a", "b"], "label": [True, None]}
    )
    made = wai.to_kto(labelled)
    assert (made["label"], made.report.refused) == ([True], {"no label": 1})
    graded = wai.Rollouts.from_records(
        [{"task_id": "t", "messages": PROMPT + GOOD, "reward": r} for r in (1.0, 0.7, None)]
    )
    made = wai.to_kto(graded)
    assert (made["label"], made.report.refused) == ([True, False], {"no reward": 1})
    assert wai.to_kto(graded, threshold=0.5)["label"] == [True, True]
    assert [m["role"] for m in made[0]["completion"]] == ["assistant", "tool", "assistant"]


def test_a_number_that_the_columns_would_round_is_left_out_and_counted():
    precise = {
        **call("Paris"),
        "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"x": 1 / 3}}}],
    }
    rows = wai.Rollouts.from_records(
        [{"task_id": "t", "messages": [*PROMPT, precise, *GOOD[1:]], "reward": 1.0}]
    )
    assert wai.to_kto(rows).report.refused == {"a number that JSON columns would round": 1}


def test_what_the_selection_pairs_and_labels_is_what_the_formats_take():
    records = [
        {
            "task_id": f"t{i}",
            "rollout_id": f"r{i}{reward}",
            "messages": PROMPT + reply,
            "tools": [tiny.WEATHER],
            "reward": reward,
            "judge_status": "ok",
        }
        for i in range(3)
        for reply, reward in ((GOOD, 1.0), (BAD, 0.0))
    ]
    graded = wai.Rollouts.from_records(records)
    made = wai.build_preference_pairs(graded)
    for rows in (wai.to_dpo(made), wai.to_reward(made, margin=True)):
        assert (len(rows), rows.report.refused) == (3, {})
    assert plain(wai.to_dpo(made)[0])["chosen"] == [says("It is sunny.")]
    assert sorted(wai.to_kto(wai.build_unpaired(graded))["label"]) == [False] * 3 + [True] * 3


def test_a_template_that_wants_arguments_as_text_gets_text():
    template = "{% for m in messages %}{{ m.role }}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}"
    row = wai.to_dpo(pairs(), tiny.tokenizer(template))[0]
    assert json.loads(row["prompt"][2]["tool_calls"][0]["function"]["arguments"]) == {
        "city": "Paris"
    }


def test_several_processes_give_what_one_gives():
    rows = pairs(*[(GOOD, BAD)] * 6)
    assert list(wai.to_dpo(rows, num_proc=2)) == list(wai.to_dpo(rows))


def test_an_empty_dataset_is_empty_and_bad_input_is_named():
    assert len(wai.to_dpo(pairs().select([]))) == 0
    with pytest.raises(wai.SchemaError, match="'rejected'"):
        wai.to_dpo(Dataset.from_dict({"chosen": ["a"]}))
    with pytest.raises(wai.SchemaError, match="to_kto"):
        wai.to_kto(Dataset.from_dict({"a": [1]}))
    with pytest.raises(wai.InputError, match="max_length=9"):
        wai.to_dpo(pairs(), max_length=9)
    both = DatasetDict(train=pairs())
    with pytest.raises(wai.InputError, match="DatasetDict"):
        wai.to_dpo(both)


@pytest.mark.parametrize(
    "case", [p for p in public_reports("preference") if p.id in ("F02", "F06")]
)
def test_public_reports_on_preference_rows(case):
    globals()[f"_{case['id'].lower()}"](case["input"], case["expected"])


def _f02(given, expected):
    (chosen, high), (rejected, low) = given["rows"]
    rows = pairs(([says(chosen)], [says(rejected)]), chosen_reward=high, rejected_reward=low)
    made = wai.to_dpo(rows)
    assert (len(made), list(made.report.refused)) == (expected["pairs"], [expected["flag"]])


def _f06(given, expected):
    rows = pairs(
        ([says("word " * given["chosen_tokens"])], [says("word " * given["rejected_tokens"])])
    )
    for make in (wai.to_dpo, wai.to_reward, wai.to_kto):
        made = make(rows, tiny.tokenizer(), max_length=given["max_length"])
        assert (len(made), made.report.refused) == (
            0,
            {"longer than max_length": expected["dropped"]},
        )
