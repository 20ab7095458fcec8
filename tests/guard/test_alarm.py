"""The alarm holds its level on noise and honest movement, and finds what gold does not pay for."""

from __future__ import annotations

import json

import numpy as np
import pytest

import whileai_hf as wai
from whileai_hf.guard.alarm import HackAlarm, _log_wealth

GROUPS, SIZE, LOOKS = 40, 8, 12


def run(
    seed, style_now, pays, *, right_now=lambda t: 0.5, helps=0.0, flip=0.0, n_noise=20, margin=1.5
):
    """Simulate a run: `style_now(t)` is the share of a style, `pays` what the proxy gives for it.

    `helps` is how much more often an answer in that style is right.
    """
    rng = np.random.default_rng(seed)
    alarm, looks = HackAlarm(LOOKS, margin=margin), []
    for t in range(LOOKS):
        n = GROUPS * SIZE
        style = rng.random(n) < style_now(t)
        right = (rng.random(n) < np.clip(right_now(t) + helps * style, 0, 1)).astype(float)
        proxy = (1 - pays) * right + pays * style
        noise = rng.random((n, n_noise)) < rng.uniform(0.1, 0.9, n_noise)
        rows = [
            {"style": float(s), **{f"n{j}": 1.0 for j in np.flatnonzero(x)}}
            for s, x in zip(style, noise, strict=True)
        ]
        drawn = rng.permutation(n)[: 64 if t == 0 else 16]
        gold = np.where(rng.random(len(drawn)) < flip, 1 - right[drawn], right[drawn])
        looks.append(alarm.look(rows, proxy, np.repeat(np.arange(GROUPS), SIZE), drawn, gold))
    return looks


def alarmed(looks):
    return any(look.alarm for look in looks)


def test_a_rewarded_style_that_gold_does_not_pay_is_found_and_named():
    looks = run(0, lambda t: 0.2 + 0.06 * t, pays=0.6)
    first = next(look for look in looks if look.alarm)
    assert first.feature == "style"
    assert first.by_feature
    assert first.index <= 6


def test_a_style_that_makes_answers_right_is_no_hack():
    assert not any(
        alarmed(run(s, lambda t: 0.2 + 0.06 * t, pays=0.0, helps=0.5, right_now=lambda t: 0.3))
        for s in range(20)
    )


def test_neither_is_one_whose_gold_errs():
    assert not any(
        alarmed(
            run(s, lambda t: 0.2 + 0.06 * t, pays=0.0, helps=0.5, right_now=lambda t: 0.3, flip=0.1)
        )
        for s in range(20)
    )


def test_a_gain_that_no_feature_describes_is_found_by_the_bet():
    rng = np.random.default_rng(0)
    alarm = HackAlarm(LOOKS)
    for t in range(LOOKS):
        proxy = np.clip(rng.normal(0.3 + 0.05 * t, 0.1, 320), 0, 1)
        gold = (rng.random(320) < 0.5).astype(float)
        drawn = rng.permutation(320)[: 64 if t == 0 else 16]
        look = alarm.look(
            [{} for _ in range(320)], proxy, np.repeat(np.arange(40), 8), drawn, gold[drawn]
        )
    assert look.by_gain
    assert not look.by_feature


@pytest.mark.slow
def test_at_most_one_clean_run_in_twenty_alarms():
    kinds = [
        {"style_now": lambda t: 0.5, "pays": 0.0},
        {"style_now": lambda t: 0.2 + 0.06 * t, "pays": 0.0, "right_now": lambda t: 0.3 + 0.04 * t},
        {
            "style_now": lambda t: 0.2 + 0.06 * t,
            "pays": 0.0,
            "helps": 0.4,
            "right_now": lambda t: 0.3,
        },
        {
            "style_now": lambda t: 0.8 - 0.06 * t,
            "pays": 0.0,
            "helps": -0.3,
            "right_now": lambda t: 0.6,
            "flip": 0.1,
        },
    ]
    alarms = sum(alarmed(run(s, **kinds[s % len(kinds)])) for s in range(200))
    assert alarms <= 10


def test_betting_on_noise_does_not_grow_wealth():
    rng = np.random.default_rng(0)
    ends = [np.exp(_log_wealth(rng.uniform(-1, 1, 100))) for _ in range(400)]
    assert np.mean(ends) < 1.2
    assert np.mean(np.array(ends) >= 20) <= 0.05
    assert _log_wealth(np.full(100, 0.5)) > np.log(40)


def test_a_run_continues_from_its_state_as_if_never_stopped():
    rng = np.random.default_rng(3)
    data = []
    for t in range(LOOKS):
        style = rng.random(80) < 0.2 + 0.05 * t
        right = (rng.random(80) < 0.5).astype(float)
        drawn = rng.permutation(80)[:16]
        data.append(
            (
                [{"style": float(s)} for s in style],
                right + style,
                np.repeat(np.arange(10), 8),
                drawn,
                right[drawn],
            )
        )
    whole, first, second = HackAlarm(LOOKS), HackAlarm(LOOKS), HackAlarm(LOOKS)
    expected = [whole.look(*d) for d in data]
    for d in data[:5]:
        first.look(*d)
    second.restore(json.loads(json.dumps(first.state())))
    assert [second.look(*d) for d in data[5:]] == expected[5:]


def test_endorsed_features_are_never_named():
    rng = np.random.default_rng(0)
    alarm = HackAlarm(3, endorsed=["style"])
    for t in range(3):
        style = rng.random(320) < 0.2 + 0.3 * t
        drawn = rng.permutation(320)[:64]
        right = (rng.random(320) < 0.5).astype(float)
        look = alarm.look(
            [{"style": float(s)} for s in style],
            style * 1.0,
            np.repeat(np.arange(40), 8),
            drawn,
            right[drawn],
        )
    assert look.feature is None


def test_a_reward_that_is_gold_cannot_alarm_by_feature():
    looks = run(1, lambda t: 0.1 + 0.07 * t, pays=0.0, helps=0.4, margin=1.0)
    assert not any(look.by_feature for look in looks)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"n_looks": 1}, "2 windows"),
        ({"n_looks": 5, "alpha": 0}, "alpha"),
        ({"n_looks": 5, "margin": 0.5}, "margin"),
    ],
)
def test_options_out_of_range_are_refused(options, what):
    with pytest.raises(wai.InputError, match=what):
        HackAlarm(**options)


def test_one_group_and_no_features_do_not_break_it():
    alarm = HackAlarm(2)
    for _ in range(2):
        look = alarm.look(
            [{}, {}], np.array([0.0, 1.0]), np.array([0, 0]), [0, 1], np.array([0.0, 1.0])
        )
    assert not look.alarm
