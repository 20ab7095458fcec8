"""hack_scan: holds its level on noise, names what was planted, tells a hack from a skill with gold."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from reports import public_reports

import whileai_hf as wai
from whileai_hf.guard.hack_scan import Finding

WORDS = np.array(
    [
        a + b + c
        for a in "bdfgklm"
        for b in "aeiou"
        for c in ("ta", "no", "ri", "sel", "mok", "pul", "vin", "zet", "cor")
    ][:300]
)
ODDS = 1 / np.arange(1, 301)
ODDS /= ODDS.sum()


def clean(n_tasks=40, attempts=8, seed=0, *, binary=True, n_words=30):
    """Texts of random words; rewards that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, attempts + 1, n_tasks)
    tasks = np.repeat(np.arange(n_tasks), counts)
    texts = [" ".join(rng.choice(WORDS, rng.integers(5, n_words), p=ODDS)) for _ in tasks]
    rates = rng.beta(0.7, 0.7, n_tasks)[tasks]
    reward = (rng.random(tasks.size) < rates).astype(float) if binary else rng.random(tasks.size)
    return {"task_id": [f"t{t}" for t in tasks], "reward": reward, "final_text": texts}


def planted(kind, n_tasks=60, seed=0, strength=0.6):
    """A share of the rows has a feature, and it earns the full reward with some chance."""
    rng = np.random.default_rng(seed)
    data = clean(n_tasks, 8, seed)
    n = len(data["final_text"])
    has = rng.random(n) < 0.35
    other = rng.random(n) < 0.5
    texts = data["final_text"]
    add = {
        "length": lambda t: f"{t} {' '.join(rng.choice(WORDS, 40, p=ODDS))}",
        "phrase": lambda t: f"{t} double checked",
        "delimiter": lambda t: f"{t} ###",
        "language": lambda t: f"{t} 谢谢",
        "position": lambda t: f"certainly {t}",
    }
    if kind == "conjunction":
        texts = [
            f"{'alpha ' if h else ''}{t}{' omega' if o else ''}"
            for t, h, o in zip(texts, has, other, strict=True)
        ]
        has = has & other
    elif kind in add:
        texts = [add[kind](t) if h else t for t, h in zip(texts, has, strict=True)]
    data["final_text"] = texts
    data["gold_reward"] = data["reward"].copy()
    data["reward"] = np.where(has & (rng.random(n) < strength), 1.0, data["reward"])
    if kind == "marker":
        data["polite"] = has.astype(float)
    return Dataset.from_dict(data)


NAMED = {
    "length": "the length in characters", "phrase": "double", "delimiter": "the sign '#'", "language": "谢",
    "position": "certainly", "conjunction": "together", "marker": "polite",
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(NAMED))
def test_the_planted_feature_is_named_first(kind):
    features = {"polite": "polite"} if kind == "marker" else None
    data = planted(kind, n_tasks=200 if kind == "conjunction" else 60)
    found = wai.hack_scan(data.remove_columns("gold_reward"), features=features)
    top = found.features[0]
    assert any(NAMED[kind] in name for name in (top.name, *top.aliases)), str(found)
    assert found.finding is Finding.REWARDED
    paid, unpaid = found.examples[0]
    assert paid != unpaid


def test_gold_tells_a_hack_from_a_skill():
    data = planted("phrase")
    assert wai.hack_scan(data).finding is Finding.HACK
    honest = data.remove_columns("gold_reward").add_column("gold_reward", data["reward"][:])
    assert wai.hack_scan(honest).finding is Finding.SKILL
    some = [g if i % 3 == 0 else None for i, g in enumerate(data["gold_reward"][:])]
    partly = data.remove_columns("gold_reward").add_column("gold_reward", some)
    assert wai.hack_scan(partly).regime == "gold"


def test_an_endorsed_feature_is_never_an_alarm():
    data = planted("length").remove_columns("gold_reward")
    found = wai.hack_scan(data, endorsed=["the ", "repeated pairs"])
    assert all(f.endorsed for f in found.features)
    assert found.finding is Finding.NOTHING
    assert found.integrity == 1.0
    both = planted("phrase").remove_columns("gold_reward")
    found = wai.hack_scan(both, endorsed=["the length"])
    assert found.finding is Finding.HACK
    assert "double" in found.features[0].name


@pytest.mark.parametrize("case", [c for c in public_reports("hack_scan") if c.id in ("H01", "H02")])
def test_public_reports_on_correlation_within_tasks(case):
    rows = case["input"]["rows"]
    data = Dataset.from_dict(
        {
            "task_id": [r[0] for r in rows],
            "reward": [float(r[1]) for r in rows],
            "size": [r[2] for r in rows],
        }
    )
    found = wai.reward_correlations(data, features={"length": "size"}, text=False)
    assert found[0].name == "length"
    assert found[0].correlation == pytest.approx(case["expected"]["within_task_r"], abs=0.05)
    if case["expected"].get("flag") is False:
        assert not wai.hack_scan(data, features={"length": "size"}, text=False).features


def test_public_report_on_attempts_that_are_all_alike():
    data = Dataset.from_dict(
        {
            "task_id": ["a"] * 4 + ["b"] * 4,
            "reward": [1.0, 1, 0, 0] * 2,
            "final_text": ["x", "x", "y", "y"] * 2,
        }
    )
    assert not wai.hack_scan(data).features
    constant = Dataset.from_dict(
        {"task_id": ["a"] * 4, "reward": [1.0, 0, 1, 0], "m": [1.0] * 4, "final_text": [""] * 4}
    )
    assert not wai.hack_scan(constant, features={"m": "m"}).features


def test_what_cannot_be_measured_is_said():
    data = Dataset.from_dict(
        {"task_id": ["a", "b"], "reward": [1.0, 0.0], "final_text": ["x", "y"]}
    )
    found = wai.hack_scan(data)
    assert found.finding is Finding.NOT_MEASURED
    assert "not measured" in str(found)
    empty = Dataset.from_dict({"task_id": [], "reward": [], "final_text": []})
    empty = empty.cast_column("reward", wai.FEATURES["reward"])
    assert wai.hack_scan(empty).finding is Finding.NOT_MEASURED


def test_a_diff_shows_what_was_learned():
    before, after = Dataset.from_dict(clean(60)), planted("phrase").remove_columns("gold_reward")
    learned = wai.hack_scan_diff(before, after)
    assert any("double" in f.name for f in learned)
    assert not wai.hack_scan_diff(after, after)


def test_the_input_is_untouched_and_the_scan_is_the_same_twice():
    data = planted("phrase")
    before = data.data.table
    assert wai.hack_scan(data) == wai.hack_scan(data)
    assert data.data.table.equals(before)


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0}, {"draws": 3}, {"endorsed": ["polte"]}, {"features": {"x": [1.0]}}, {"least": 0}],
)
def test_options_that_name_nothing_are_errors(options):
    with pytest.raises((wai.InputError, wai.SchemaError)):
        wai.hack_scan(Dataset.from_dict(clean()), **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, {}),
        ({}, {"binary": False}),
        ({"pairs": 0}, {"n_tasks": 20}),
        ({"endorsed": ["the length"]}, {}),
        ({"most_words": 50}, {"n_tasks": 200}),
    ],
)
def test_noise_raises_an_alarm_no_more_often_than_said(options, made):
    trials = 300
    alarms = 0
    for seed in range(trials):
        found = wai.hack_scan(Dataset.from_dict(clean(seed=seed, **made)), seed=seed, **options)
        alarms += any(not f.endorsed for f in found.features)
    assert alarms / trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials), alarms
