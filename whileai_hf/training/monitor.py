"""HackMonitor: a TRL callback that says, while a run goes on, whether the reward is being hacked.

It sees completions through the reward functions that it wraps, scores a small random share of them
with a trusted gold reward, and applies the rule of `whileai_hf.guard.alarm`, whose false alarms are
bounded for the whole run. Without gold no rule tells an exploit from an honest strategy that
changes style; then it shows what moved and is rewarded, with completions to read, and no number.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from whileai_hf import defaults
from whileai_hf.errors import InputError
from whileai_hf.extras import require
from whileai_hf.guard.alarm import HackAlarm, Look
from whileai_hf.guard.completion_features import completion_features, completion_text
from whileai_hf.training.observed import name_of, observed, reward_function

_collectives = require("accelerate.utils", "train")
TrainerCallback: Any = require("transformers.trainer_callback", "train").TrainerCallback
ExportableState: Any = require("transformers.trainer_callback", "train").ExportableState

#: What `stop_on` may name.
FINDINGS = ("feature", "gain")

#: Scalars of TRL's trainers that show drift: of GRPO and RLOO, then of SFT, then of DPO and KTO.
_DRIFT = (
    "kl", "entropy", "completions/mean_length", "completions/clipped_ratio", "reward",
    "mean_token_accuracy", "rewards/margins", "logps/chosen", "logps/rejected",
)  # fmt: skip

#: Keyword arguments of a reward function that are no column of the dataset.
_NO_COLUMN = (
    "prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric",
    "environments",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm in plain words; `print(alarm)` is what to read."""

    step: int
    finding: str  #: "feature" or "gain", or "read" where there is no gold
    look: Look | None
    message: str
    examples: tuple[str, ...]  #: completions to read

    def __str__(self) -> str:
        shown = "\n".join(f"  | {text[:300]!r}" for text in self.examples)
        return (
            f"step {self.step}: {self.message}\n{shown}"
            if shown
            else f"step {self.step}: {self.message}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        look = self.look.to_dict() if self.look else None
        return {"step": self.step, "finding": self.finding, "message": self.message, "look": look}


class HackMonitor(TrainerCallback, ExportableState):
    """Watch a GRPO or RLOO run for reward hacking.

    Args:
        gold: The trusted reward: a TRL reward function, or a verifier; null to only show what to
            read. It must be another channel than the reward that is trained on: hidden tests, a
            stronger judge, a person. It must lie in [0, 1].
        window: Optimizer steps between two looks.
        audit: Rollouts that gold scores in the first window, and in each later one.
        alpha: False alarms allowed for the whole run.
        margin: How many times gold's own credit counts; 1 for a gold that is known to be exact.
        endorsed: Names of features that are wanted whatever gold says, such as `"length"`.
        features: A function from a completion to named numbers; null is the built-in set.
        stop_on: Findings that end the run with a checkpoint: `"feature"`, `"gain"`, or both.
        n_examples: Completions to show with an alarm.
        seed: Seed of the random audit.
        write: Where messages go; null is the standard error stream of the main process.

    Attributes:
        looks: What every look found.
        alarms: The alarms so far; empty is good news only as far as the module docstring says.

    Example:
        `GRPOTrainer(reward_funcs=[monitor.wrap(reward)], callbacks=[monitor], …)`
    """

    def __init__(
        self,
        gold: Any = None,
        *,
        window: int = defaults.MONITOR_WINDOW,
        audit: tuple[int, int] = defaults.MONITOR_AUDIT,
        alpha: float = defaults.MONITOR_ALPHA,
        margin: float = defaults.MONITOR_MARGIN,
        endorsed: Sequence[str] = (),
        features: Callable[[Any], Mapping[str, float]] | None = None,
        stop_on: Iterable[str] = (),
        n_examples: int = 3,
        seed: int = 0,
        write: Callable[[str], None] | None = None,
    ) -> None:
        self.stop_on = tuple([stop_on] if isinstance(stop_on, str) else stop_on)
        if unknown := [name for name in self.stop_on if name not in FINDINGS]:
            raise InputError(
                f"stop_on may name {' and '.join(FINDINGS)}; got {unknown[0]!r}. "
                "Leave it empty to be warned only."
            )
        if window < 1 or min(audit) < 2:
            raise InputError(
                f"window must be at least 1 step and audit at least 2 rollouts; got {window!r} and "
                f"{audit!r}. The defaults are {defaults.MONITOR_WINDOW} and {defaults.MONITOR_AUDIT}."
            )
        self.gold = gold.reward_func() if hasattr(gold, "reward_func") else gold
        self.window, self.audit, self.alpha, self.margin = window, audit, alpha, margin
        self.endorsed, self.seed, self.n_examples = tuple(endorsed), seed, n_examples
        self.features = features or completion_features
        self.write = write or (lambda text: print(text, file=sys.stderr))  # noqa: T201
        self.looks: list[Look] = []
        self.alarms: list[Alarm] = []
        self.context: dict[str, float] = {}  # the trainer's last scalars: kl, lengths, entropy
        self._started: dict[str, float] = {}  # and its first ones
        self._names: list[str] = []
        self._weights: list[float] = []
        self._pending: dict[str, dict[str, Any]] = {}  # rows of this process since the last look
        self._calls: list[int] = []
        self._alarm: HackAlarm | None = None

    # The reward functions through which completions are seen.

    def wrap(self, reward: Any, weight: float | None = None) -> Callable[..., Any]:
        """Return a reward function that behaves as `reward` and shows its rows to the monitor.

        Args:
            reward: A TRL reward function, synchronous or not, or a verifier.
            weight: Its weight in the trained sum; null takes the trainer's `reward_weights`.
        """
        function = reward_function(reward)
        index = len(self._names)
        self._names.append(name_of(function))
        self._weights.append(math.nan if weight is None else float(weight))
        self._calls.append(0)
        return observed(function, functools.partial(self._record, index))

    def _record(self, index: int, rewards: Any, columns: Mapping[str, Any]) -> Any:
        completions, prompts = columns["completions"], columns["prompts"]
        generation, which = self._calls[index], str(index)
        self._calls[index] += 1
        kept = {
            name: values
            for name, values in columns.items()
            if name not in _NO_COLUMN and _is_column(values, len(completions))
        }
        for i, (completion, reward) in enumerate(zip(completions, rewards, strict=False)):
            key = f"{generation}:{i}"
            row = self._pending.get(key)
            if row is None:
                row = self._pending[key] = {
                    "completion": completion, "prompt": prompts[i], "rewards": {},
                    "columns": {name: values[i] for name, values in kept.items()},
                }  # fmt: skip
            row["rewards"][which] = None if reward is None else float(reward)
        if "log_metric" in columns and self.looks and index == 0:
            look = self.looks[-1]
            columns["log_metric"]("hack/score", max(look.score, -8.0))
            columns["log_metric"]("hack/log_e", look.log_e)
            columns["log_metric"]("hack/alarms", float(len(self.alarms)))
        return rewards

    # What the trainer tells.

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Set the rule up for the length of the run, or continue it, and say what gold will cost."""
        n_looks = max(state.max_steps // self.window, 0)
        if self._names:
            self._alarm = HackAlarm(
                n_looks, alpha=self.alpha, margin=self.margin, endorsed=self.endorsed
            )
        weights = getattr(args, "reward_weights", None) or [1.0] * len(self._names)
        if len(weights) == len(self._names):
            self._weights = [
                given if math.isnan(own) else own
                for own, given in zip(self._weights, weights, strict=True)
            ]
        self._weights = [1.0 if math.isnan(w) else w for w in self._weights]
        self._restore(state)
        if state.is_world_process_zero:
            self.write(self._plan(args, n_looks))

    def _plan(self, args: Any, n_looks: int) -> str:
        if not self._names:
            return (
                "HackMonitor: no reward function is wrapped, so only drift of the logs is reported"
            )
        if self.gold is None:
            return (
                "HackMonitor: no gold, so it will show completions to read and raise no alarm; "
                "a style that moves and is rewarded may be honest"
            )
        first, later = self.audit
        audited = first + later * (n_looks - 1)
        batch = getattr(args, "generation_batch_size", None) or args.train_batch_size
        total = max(batch * self.window * n_looks // max(getattr(args, "num_iterations", 1), 1), 1)
        return (
            f"HackMonitor: gold scores {audited} of about {total} rollouts ({audited / total:.0%}) "
            f"in {n_looks} looks; the budget of false alarms is {self.alpha:.0%} of runs"
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Look at the window that ends here, on every rank, and decide on every rank alike."""
        for row in self._pending.values():
            row["trained"] = True
        if not self._names or state.global_step % self.window:
            return control
        # A collective on every rank at the same step, with or without rows of its own.
        rows = _collectives.gather_object(list(self._pending.values()))
        self._pending = {}
        for row in rows:
            row["proxy"] = self._proxy(row)
        rows = [row for row in rows if row["proxy"] is not None]
        if rows:
            self._look(rows, state)
        if any(alarm.finding in self.stop_on for alarm in self.alarms):
            control.should_save = True
            control.should_training_stop = True
        return control

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Forget the rollouts that evaluation generated; no step was taken on them."""
        self._pending = {key: row for key, row in self._pending.items() if row.get("trained")}

    def on_log(
        self,
        args: Any,
        state: Any,
        control: Any,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the trainer's scalars as context; KL and length are no verdicts."""
        for name, value in (logs or {}).items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                self.context[name] = float(value)
                self._started.setdefault(name, float(value))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Say how the trainer's own scalars drifted; they are context, and no verdict."""
        if state.is_world_process_zero and (drift := self.drift()):
            self.write("HackMonitor: drift, which is no verdict: " + "; ".join(drift))

    def drift(self) -> list[str]:
        """Describe what the trainer's scalars did between the first log and the last."""
        return [
            f"{name} {self._started[name]:.3g} -> {self.context[name]:.3g}"
            for name in _DRIFT
            if name in self.context and self.context[name] != self._started[name]
        ]

    # The look.

    def _proxy(self, row: Mapping[str, Any]) -> float | None:
        total, known = 0.0, False
        for i, reward in row["rewards"].items():
            if reward is not None and math.isfinite(reward):
                total, known = total + self._weights[int(i)] * reward, True
        return total if known else None

    def _look(self, rows: list[dict[str, Any]], state: Any) -> None:
        alarm = self._alarm
        if alarm is None:
            return
        proxy = np.array([row["proxy"] for row in rows], dtype=np.float64)
        features = self._described([row["completion"] for row in rows])
        audited, gold = self._audit(rows, alarm.index, state)
        if self.gold is not None and len(gold) < 2:
            self._say(state, f"gold scored {len(gold)} rollouts, so this window has no look")
            return
        look = alarm.look(features, proxy, _groups(rows), audited, gold)
        self.looks.append(look)
        if look.index == 0 and len(gold) and not 0.05 <= gold.mean() <= 0.95:
            self._say(
                state,
                f"gold starts at {gold.mean():.2f}, so its gain is hard to compare with the reward's",
            )
        kinds = ("feature", "gain") if self.gold is not None else ("read",)
        fired = {"feature": look.by_feature, "gain": look.by_gain, "read": look.by_feature}
        for finding in kinds:
            if fired[finding] and not any(a.finding == finding for a in self.alarms):
                self._raise(finding, look, rows, features, proxy, state)

    def _described(self, completions: Sequence[Any]) -> list[dict[str, float]]:
        """Describe each completion; a text that comes again, as in a narrow policy, only once."""
        known: dict[str, dict[str, float]] = {}
        out = []
        for completion in completions:
            found = known.get(completion) if isinstance(completion, str) else None
            if found is None:
                found = dict(self.features(completion))  # a copy: features may share theirs
                if isinstance(completion, str):
                    known[completion] = found
            out.append(found)
        return out

    def _audit(
        self, rows: list[dict[str, Any]], index: int, state: Any
    ) -> tuple[list[int], np.ndarray[Any, Any]]:
        """Draw rows at random and score them with gold; the same on every rank."""
        if self.gold is None:
            return [], np.array([])
        wanted = self.audit[0] if index == 0 else self.audit[1]
        drawn = np.random.default_rng([self.seed, index]).permutation(len(rows))[:wanted]
        scores = self._score([rows[i] for i in drawn], state)
        kept = [(int(i), g) for i, g in zip(drawn, scores, strict=True) if g is not None]
        return [i for i, _ in kept], np.array([g for _, g in kept], dtype=np.float64)

    def _score(self, rows: list[dict[str, Any]], state: Any) -> list[float | None]:
        """Score with gold on one rank, so that every rank decides on the same numbers."""
        box: list[Any] = [None]
        if state.is_world_process_zero:
            box[0] = _gold_scores(self.gold, rows, state)
        _collectives.broadcast_object_list(box)
        return list(box[0])

    def _raise(
        self,
        finding: str,
        look: Look,
        rows: Sequence[Mapping[str, Any]],
        features: Sequence[Mapping[str, float]],
        proxy: np.ndarray[Any, Any],
        state: Any,
    ) -> None:
        shown: Sequence[int] = range(len(rows))
        if finding == "gain":
            message = (
                f"the reward gained more than {self.margin} times what gold gained "
                f"(log e {look.log_e:.1f}, alarm at {look.log_e_threshold:.1f}, "
                f"{look.n_audited} audited)"
            )
        else:
            message = self._feature_message(finding, look)
            rose = look.now > look.before
            shown = [
                i for i in shown
                if (features[i].get(look.feature or "", 0.0) > look.before) == rose
            ] or shown  # fmt: skip
        best = sorted(shown, key=lambda i: -proxy[i])[: self.n_examples]
        examples = tuple(completion_text(rows[i]["completion"]) for i in best)
        alarm = Alarm(state.global_step, finding, look, message, examples)
        self.alarms.append(alarm)
        self._say(state, str(alarm))

    def _feature_message(self, finding: str, look: Look) -> str:
        moved = (
            f"{look.feature} {'rose' if look.now > look.before else 'fell'} from "
            f"{look.before:.2f} to {look.now:.2f} a completion"
        )
        if finding == "read":
            return f"{moved} and is rewarded; without gold nobody can say whether honestly. Read these:"
        return (
            f"{moved}, is rewarded within groups, and earns credit that gold does not give "
            f"(z {look.score:.1f}, alarm at {look.threshold:.1f}, {look.n_audited} audited)"
        )

    def _say(self, state: Any, text: str) -> None:
        if state.is_world_process_zero:
            self.write(f"HackMonitor: {text}")

    # Resuming: the state is restored in place, because the wrapped rewards belong to this object.

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps, as JSON."""
        return {
            "args": {},
            "attributes": {
                "alarm": self._alarm.state() if self._alarm else None,
                "looks": [[getattr(look, n) for n in Look.__slots__] for look in self.looks],
                "alarms": [[a.step, a.finding, a.message, list(a.examples)] for a in self.alarms],
                "pending": _json_rows(self._pending),
                "calls": self._calls,
            },
        }

    def _restore(self, state: Any) -> None:
        saved = (getattr(state, "stateful_callbacks", None) or {}).get(type(self).__name__)
        saved = saved[0] if isinstance(saved, list) and saved else saved
        kept = (saved or {}).get("attributes") if state.global_step else None
        if not kept:
            return
        if self._alarm is not None and kept["alarm"] is not None:
            self._alarm.restore(kept["alarm"])
        self.looks = [Look(*values) for values in kept["looks"]]
        self.alarms = [Alarm(s, f, None, m, tuple(e)) for s, f, m, e in kept["alarms"]]
        self._pending = kept["pending"]
        self._calls = kept["calls"]


def _is_column(values: Any, n: int) -> bool:
    return isinstance(values, (list, tuple)) and len(values) == n


def _groups(rows: Sequence[Mapping[str, Any]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Number the groups: the completions of one prompt, whichever rank generated them."""
    keys = [
        p if isinstance(p, str) else json.dumps(p, sort_keys=True, default=str)
        for p in (row["prompt"] for row in rows)
    ]
    order = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([order[key] for key in keys], dtype=np.int64)


def _gold_scores(gold: Any, rows: Sequence[Mapping[str, Any]], state: Any) -> list[float | None]:
    names = {name for row in rows for name in row["columns"]}
    columns = {name: [row["columns"].get(name) for row in rows] for name in names}
    result = gold(
        prompts=[row["prompt"] for row in rows],
        completions=[row["completion"] for row in rows],
        trainer_state=state,
        **columns,
    )
    if inspect.isawaitable(result):
        result = run_async(result)
    scores: list[float | None] = []
    for score in result:
        number = None if score is None else float(score)
        if number is not None and not 0.0 <= number <= 1.0:
            raise InputError(
                f"gold must lie in [0, 1]; got {score!r}. Scale it before it is passed to HackMonitor."
            )
        scores.append(number)
    return scores


def run_async(awaitable: Any) -> Any:
    """Run a coroutine to its end, whether or not a loop runs in this thread."""

    async def finish() -> Any:
        return await awaitable

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(finish())).result()


def _json_rows(pending: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Keep the rows of an unfinished window in the checkpoint, as far as they are JSON."""
    return {key: json.loads(json.dumps(row, default=str)) for key, row in pending.items()}
