"""How many tasks prove a gain, what re-runs differ by, and whether this installation's numbers hold.

Learn: size a hold-out set before the run, read the noise of re-runs, and check the intervals themselves.
Needs: the base install.
Takes: ten seconds; `--trials 300` checks with the default precision in under a minute.
Prints: sizes, power, the band of re-runs, and the simulation of the installation.
"""

import argparse

import numpy as np
from datasets import Dataset

import whileai_hf as wai

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--trials", type=int, default=60)
args = parser.parse_args()


def evaluation(rates, seed):
    """Four graded attempts at each task."""
    won = np.random.default_rng(seed).random((len(rates), 4)) < np.asarray(rates)[:, None]
    ids = np.repeat([f"task {i}" for i in range(len(rates))], 4)
    return Dataset.from_dict({"task_id": ids, "reward": won.ravel().astype(float)})


print("before anything is measured")
for effect in (0.05, 0.1, 0.2):
    print(" ", wai.holdout_size(effect))
print("  least gain that 100 tasks show:", wai.detectable_effect(100))

rates = np.random.default_rng(0).beta(2, 2, 60)
base = evaluation(rates, 1)
print("with one evaluation")
print(" ", wai.pass_at(base))
print(" ", wai.eval_power(base, effect=0.1))

runs = [evaluation(rates, seed) for seed in (2, 3, 4)]
noise = wai.eval_variance(*runs)
print("with three re-runs")
print(" ", noise)

after = evaluation(np.clip(rates + 0.15, 0, 1), 5)
print(wai.compare(base, after, run_std=noise.run_std, run_std_runs=noise.n_runs))
print(wai.self_check(trials=args.trials, progress=False))
