"""Judges that are no program of yours: people's labels, a reward model; and grading by name."""

from __future__ import annotations

import pytest
import torch
from datasets import Dataset
from reports import public_reports
from tiny import tokenizer
from transformers import Qwen3Config, Qwen3ForSequenceClassification

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def rows(n=4):
    return wai.rows([f"q{i}" for i in range(n)], [f"a{i} " * (i + 1) for i in range(n)])


def test_labels_are_looked_up_by_rollout():
    data = rows(3)
    ids = data["rollout_id"][:]
    graded = wai.grade(
        data, wai.Labels({ids[0]: 1, ids[1]: {"reward": 0, "reason": "rude"}}), progress=False
    )
    assert graded["reward"][:] == [1.0, 0.0, None]
    assert graded["judge_status"][:] == ["ok", "ok", "missing_reward"]
    assert graded["reason"][:] == [None, "rude", "nobody labelled it"]


def test_labels_may_be_a_dataset_with_any_columns():
    table = Dataset.from_dict({"id": ["q0", "q1"], "good": [True, False]})
    data = Dataset.from_dict({"id": ["q0", "q1"], "final_text": ["a", "b"]})
    judge = wai.Labels(table, key="id", value="good", name="anna")
    graded = wai.grade(data, judge, progress=False)
    assert graded["reward"][:] == [1.0, 0.0]
    assert graded["judge"][:] == ["anna", "anna"]


def test_labels_that_cannot_be_meant_are_errors():
    with pytest.raises(wai.InputError, match="'r1' has 'good'"):
        wai.Labels({"r1": "good"})
    twice = Dataset.from_dict({"rollout_id": ["a", "a"], "gold_reward": [1.0, 0.0]})
    with pytest.raises(wai.InputError, match="'a' has several"):
        wai.Labels(twice)


@pytest.fixture(scope="module")
def classifier():
    torch.manual_seed(0)
    words = tokenizer()
    config = Qwen3Config(
        vocab_size=len(words), hidden_size=32, intermediate_size=32, num_hidden_layers=2, head_dim=8,
        num_attention_heads=4, num_key_value_heads=2, num_labels=1, pad_token_id=words.pad_token_id,
    )  # fmt: skip
    model = Qwen3ForSequenceClassification(config)
    torch.nn.init.normal_(model.score.weight)
    return model, words


def direct(model, words, text):
    encoded = words(text, return_tensors="pt", add_special_tokens=False)
    with torch.no_grad():
        return float(model(**encoded).logits[0, 0])


def test_a_reward_model_gives_what_a_forward_pass_gives_batched_or_not(classifier):
    model, words = classifier
    data = rows(6)
    judge = wai.RewardModel(model, words, batch_size=4)
    graded = wai.grade(data, judge, concurrency=6, progress=False)
    for row, reward in zip(data, graded["reward"][:], strict=True):
        text = words.apply_chat_template(row["messages"], tokenize=False)
        assert reward == pytest.approx(
            torch.sigmoid(torch.tensor(direct(model, words, text))).item(), abs=1e-5
        )


def test_a_reward_model_is_a_reward_function_of_trl(classifier):
    model, words = classifier
    judge = wai.RewardModel(model, words, activation="none")
    prompt, completion = [{"role": "user", "content": "q"}], [{"role": "assistant", "content": "a"}]
    (score,) = judge.reward_func()(prompts=[prompt], completions=[completion])
    text = words.apply_chat_template(prompt + completion, tokenize=False)
    assert score == pytest.approx(direct(model, words, text), abs=1e-5)


def test_a_reward_model_loads_from_a_folder(classifier, tmp_path):
    model, words = classifier
    model.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    graded = wai.grade(rows(2), wai.RewardModel(str(tmp_path)), progress=False)
    assert all(0 < reward < 1 for reward in graded["reward"][:])


def test_a_reward_model_without_tokenizer_or_with_a_typo_is_an_error(classifier):
    with pytest.raises(wai.InputError, match="needs its tokenizer"):
        wai.RewardModel(classifier[0])
    with pytest.raises(wai.InputError, match="activation"):
        wai.RewardModel(*classifier, activation="polte")


def test_evaluate_names_the_policy_and_failed_traces_are_what_it_lost():
    done = wai.evaluate(
        rows(4), lambda row: int(row["final_text"][1]) % 2, model="tuned-v1", progress=False
    )
    assert done["agent"][:] == ["tuned-v1"] * 4
    assert done.failed_traces()["reward"][:] == [0.0, 0.0]
    named = wai.run_judge(rows(2), lambda row: 1, judge_name="mine@2", progress=False)
    assert named["judge"][:] == ["mine@2"] * 2
    with pytest.raises(wai.InputError, match="name the policy"):
        wai.evaluate(rows(1), lambda row: 1, model=" ")


@pytest.mark.parametrize(
    "case", [c for c in public_reports("judge", "stats") if c.id in ("G08", "P11")]
)
def test_public_reports_about_the_contract(case):
    given, expected = case["input"], case["expected"]
    if "rewards" in given:
        rewards = [float(r) for r in given["rewards"]]
        graded = wai.grade(rows(4), lambda row: rewards[int(row["ask"][1:])], progress=False)
        statuses = graded["judge_status"][:]
        assert statuses.count("ok") == expected["judged"]
        assert statuses.count("invalid_result") == expected["invalid"]
        assert graded.report.mean_reward == expected["mean_reward"]
        return

    def judge(row):
        if int(row["ask"][1:]) < 3:
            raise TimeoutError("no answer")
        return 1

    graded = wai.grade(rows(10), judge, progress=False)
    assert len(graded.unjudged()) == expected["unjudged"]
    assert {k: v for k, v in graded.report.statuses.items() if k != "ok"} == expected["by_status"]
