"""pass@k as an `evaluate` metric; the estimate and its interval are those of `whileai_hf.pass_at`."""

import datasets
import evaluate

import whileai_hf

_DESCRIPTION = """The chance that at least one of k attempts at a task passes, estimated without bias for each task and averaged over tasks (Chen et al. 2021, arXiv:2107.03374, equation 1)."""

_KWARGS_DESCRIPTION = """
Args:
    predictions: Reward of each rollout, in [0, 1].
    references: Task of each rollout, as text. Rollouts of one task are its attempts.
    k: Attempts, by default the number that most tasks have.
    threshold: A reward at or above it is a pass; needed where rewards are partial credit.
    confidence: Coverage of the interval over tasks.
Returns:
    pass_at_k: the mean over tasks, None where no task has k attempts.
    pass_at_k_low, pass_at_k_high: its interval.
    pass_at_k_k, pass_at_k_tasks: attempts, and tasks that have as many.
Example:
    >>> metric = evaluate.load(whileai_hf.metric_path("pass_at_k"))
    >>> metric.compute(predictions=[1, 0, 1, 1], references=["a", "a", "b", "b"])["pass_at_k"]
    1.0
"""

_CITATION = """@misc{chen2021evaluating, title={Evaluating Large Language Models Trained on Code}, author={Mark Chen and others}, year={2021}, eprint={2107.03374}, archivePrefix={arXiv}}"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class PassAtK(evaluate.Metric):
    """pass@k."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {
                    "predictions": datasets.Value("float64"),
                    "references": datasets.Value("string"),
                }
            ),
        )

    def _compute(self, predictions, references, k=None, threshold=None, confidence=0.95):
        rows = datasets.Dataset.from_dict({"task_id": references, "reward": predictions})
        found = whileai_hf.pass_at(rows, k=k, threshold=threshold, confidence=confidence)
        value = found.pass_at_1 if found.k == 1 else found.pass_at_k
        return {
            "pass_at_k": None if value is None else value.value,
            "pass_at_k_low": None if value is None else value.interval.low,
            "pass_at_k_high": None if value is None else value.interval.high,
            "pass_at_k_k": found.k,
            "pass_at_k_tasks": 0 if value is None else value.n_tasks,
        }
