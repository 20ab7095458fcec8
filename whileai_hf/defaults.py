"""Each threshold that a user can meet: one constant, its meaning, and its source.

Every constant is an argument of the call that uses it. The comment above it names the paper it
comes from, or says "convention": a number somebody had to choose.
"""

from __future__ import annotations

#: Coverage of every interval (Miller 2024, arXiv:2411.00640, section 2.1).
CONFIDENCE = 0.95

#: Resamples behind a bootstrap interval (Efron and Tibshirani 1993, section 14.3, ask for 1,000 or
#: more; above that, convention).
BOOTSTRAP_DRAWS = 2_000

#: Attempts for each task at which pass^k is reported (tau-bench, arXiv:2406.12045, table 2).
REPEATS = 4

#: Rollouts of one prompt in RL (Dr. GRPO, arXiv:2503.20783, section 4).
RL_REPEATS = 8

#: Pass rates between which a task carries gradient (Lambert 2025, arXiv:2504.12501, chapter
#: Reasoning; DAPO, arXiv:2503.14476, equation 11, drops only 0 and 1).
DIFFICULTY_BAND = (0.2, 0.8)

#: Difference in reward from which one reply is better than another (convention: half of the scale).
PREFERENCE_MARGIN = 0.5

#: Share of pairs with a longer (or shorter) chosen reply from which length is called a confounder
#: (convention; Singhal et al. 2023, arXiv:2310.03716, show what length alone earns).
LENGTH_BIAS = 0.75

#: Jaccard similarity of runs of words from which two replies are nearly the same (Lee et al. 2022,
#: arXiv:2107.06499, section 4.2).
NEAR_DUPLICATE = 0.8

#: Words of a run that contamination is looked for with (Llama 2, arXiv:2307.09288, appendix A.6, takes
#: 10; Tulu 3, arXiv:2411.15124, section 3.2, takes 8; GPT-3, arXiv:2005.14165, appendix C, 13).
DECONTAMINATION_NGRAM = 8

#: Share of a text under shared runs from which it is a near copy (Llama 2, arXiv:2307.09288, appendix
#: A.6: 80 % of the tokens; Tulu 3, arXiv:2411.15124, takes half).
DECONTAMINATION_OVERLAP = 0.8

#: Cosine of two embedded texts from which one is a paraphrase of the other (convention; the scale is
#: the embedder's).
DECONTAMINATION_SIMILARITY = 0.85

#: Held-out texts in which a run of words may stand before it counts as their template (convention).
TEMPLATE_TEXTS = 8

#: Words of a held-out text, too short for a run, that count as a copy inside a longer text (convention).
CONTAINED_WORDS = 5

#: Rollouts of one call to `simulate` (convention).
BUDGET = 1_000

#: Agent calls in flight at once (convention).
CONCURRENCY = 32

#: Judge calls in flight at once (convention).
JUDGE_CONCURRENCY = 16

#: Agent turns after which a rollout is cut (convention; tau-bench allows 30 steps).
MAX_TURNS = 12

#: Seconds one agent completion may take: a served model that scaled to zero needs two to three
#: minutes to answer first (convention).
TIMEOUT = 300.0

#: Seconds one judgment may take (convention).
JUDGE_TIMEOUT = 60.0

#: Characters of a rollout that a model judge is shown (convention).
JUDGE_CHARS = 8_000

#: Tokens that a model judge may answer with (convention).
JUDGE_TOKENS = 1_024

#: Share of pairs in which the longer reply is the chosen one, beyond which length alone explains the
#: choice (convention).
PAIRS_LENGTH_ONLY = 0.65

#: Share of pairs in which the order decides that is flagged (Zheng et al. 2023, arXiv:2306.05685, table 2,
#: finds up to a third; the limit is a convention).
PAIRS_MAX_FLIPS = 0.2

#: Share of rows on which a judge must agree with people: what two people reach (Zheng et al. 2023,
#: arXiv:2306.05685, section 4.2: 81 %).
JUDGE_MIN_AGREEMENT = 0.8

#: Cohen's kappa that a judge must reach: "substantial" (Landis and Koch 1977, Biometrics 33:159-174).
JUDGE_MIN_KAPPA = 0.6

#: Labelled rows that may be left out of a comparison with a judge (convention).
JUDGE_MAX_SKIPPED = 0.1

#: Share of wrong passes, or wrong fails, from which a judge is not trusted where it is shown (convention).
JUDGE_MAX_WRONG = 0.2

#: Difference in pass rate between long and short replies of one label that is a bias (convention).
JUDGE_LENGTH_GAP = 0.15

#: Share of rows on which a judge may contradict itself (convention).
JUDGE_MAX_FLIPS = 0.1

#: Rows about which `judge_trust` asks a judge again (convention).
JUDGE_RECHECKED = 40

#: Rows on which each probe of a judge is tried. Of exploits that work on 15 % of them nine in ten are caught
#: where the judge answers alike each time, and of those that work on 25 % nearly all where it wavers on 3 %
#: (convention, measured in tests/grade/test_probes.py).
PROBE_ROWS = 100

#: Failing rows below which a probe says nothing (convention).
PROBE_MIN_ROWS = 20

#: Share of failing rows that a probe may turn, and mean reward that a policy which does nothing may earn
#: (convention).
PROBE_LIMIT = 0.1

#: Rewards of 0 that `audit_grades` reads again (convention).
AUDIT_ROWS = 40

#: Times that one call may be made before `conduct_grade` calls it a loop: a tool that recovers on its
#: third call, tried twice over (convention).
CONDUCT_SAME_CALLS = 6

#: Characters of hidden text that a reply must quote to be a leak: below that words coincide
#: (convention).
LEAK_CHARS = 20

#: Share of an environment's tasks that is held out, by situation (convention).
ENVIRONMENT_HOLDOUT = 0.2

#: Share of common words from which two asks count as one when an environment is split (convention;
#: asks that differ in an identifier alone share about as much).
ENVIRONMENT_NEAR = 0.9

#: Share of fault cells of the grid that keep their fault (convention, after PALADIN,
#: arXiv:2509.25238).
FAULT_RATE = 0.5

#: The same under `mode="rl"`, where recovery is what there is to learn (convention).
RL_FAULT_RATE = 0.8

#: Share of rollouts on which `seeded_agent` misbehaves (convention).
SEEDED_RATE = 0.35

#: False alarms that a monitored run may have, over all its looks (convention).
MONITOR_ALPHA = 0.05

#: How many times gold's own credit counts before a feature's excess does: it covers a gold that errs
#: on up to about a sixth of the audits (convention, measured in tests/parity/monitor.py).
MONITOR_MARGIN = 1.5

#: Features that one look of the monitor tests at most (convention).
MONITOR_FEATURES = 96

#: Optimizer steps between two looks of the monitor (convention).
MONITOR_WINDOW = 5

#: Rollouts that gold scores in the first window, and in each later one (convention, measured in
#: tests/parity/monitor.py).
MONITOR_AUDIT = (64, 16)

#: Pass rate of a task where none was measured (convention).
BASE_PASS_RATE = 0.6

#: Chance of showing an effect that a size is asked for (Cohen 1988, Statistical Power Analysis for
#: the Behavioral Sciences, section 2.4).
POWER = 0.8

#: Gain in mean reward that an evaluation should be able to show (convention).
EFFECT = 0.05

#: Simulated comparisons behind a size or a power: a standard error of 0.6 points at 80 % (convention).
POWER_DRAWS = 4_000

#: Difference in the share of answered rollouts beyond which two sides are not comparable
#: (convention).
ANSWERED_GAP = 0.1

#: Reward from which `to_kto` calls a rollout desirable: one that earned all of it (convention).
KTO_THRESHOLD = 1.0

#: Share of the situations of an aimed run that stay spread over the whole grid (convention).
EXPLORE = 0.3

#: Jaccard similarity of word 3-grams at which an ask is the copy of a trace (convention: one id
#: changed in a sentence of thirty words stays below it).
TRACE_COPY = 0.9

#: Jaccard similarity of word 3-grams at which an ask of a model writer is a copy (Lee et al. 2022,
#: arXiv:2107.06499, section 4.2, filter near copies of documents at 0.8).
WRITER_COPY = 0.8

#: How often a model writer is asked again for an ask that misses its cell (convention).
WRITER_TRIES = 3

#: Asks on which `dataset_report` measures similarity (convention: 500 make 125,000 pairs).
REPORT_SAMPLE = 500

#: Share of near copies above which `dataset_report` warns (convention).
COPIES_WARNED = 0.05

#: Share of tasks that a do-nothing agent may end right without a warning (convention).
IDLE_WARNED = 0.4

#: Share of asks that test judgement below which `dataset_report` warns (convention).
HARD_WARNED = 0.3

#: Tasks below which the mix of stances is not judged (convention).
HARD_SEEN = 20

#: Rows of supervised data below which a run is too small to teach a behaviour: 800 for each of three
#: phrasings (convention, after LIMA, arXiv:2305.11206, which trains on 1,000).
SFT_ROWS = 2_400

#: Tasks with a gradient that an RL run needs (convention).
RL_MIXED_ROWS = 800

#: Share of tasks on which attempts differ, before it was measured (convention).
MIXED_RATE = 0.5

#: Characters of a system prompt below which it can hardly state rules (convention).
THIN_PROMPT = 200

#: Seconds one call of a real tool may take (convention).
TOOL_TIMEOUT = 60.0

#: Further requests to an endpoint after one that failed in passing (convention).
MODEL_RETRIES = 6

#: Share of an environment's tasks that is held out, by situation (convention).
ENVIRONMENT_HOLDOUT = 0.2

#: Share of common words from which two asks count as one when an environment is split (convention;
#: asks that differ in an identifier alone share about as much).
ENVIRONMENT_NEAR = 0.9

#: Chance of an alarm of `hack_scan` on noise, over all features (convention).
SCAN_ALPHA = 0.05

#: Shuffles of `hack_scan` (convention: the least p is then 0.005).
SCAN_DRAWS = 199

#: Words, phrases and signs that `hack_scan` tests, of each kind (convention).
SCAN_WORDS = 300

#: Rows that must have a feature, and rows that must not (convention, as whileai's `min_obs`).
SCAN_LEAST = 20

#: Features whose conjunctions are tested (convention: 120 pairs).
SCAN_PAIRS = 16
