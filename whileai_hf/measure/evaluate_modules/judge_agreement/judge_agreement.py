"""Agreement of a judge with gold labels as an `evaluate` metric: `whileai_hf.agreement`."""

import datasets
import evaluate

import whileai_hf

_DESCRIPTION = """How far a judge agrees with gold labels: percent agreement, Cohen's kappa and Krippendorff's alpha, with intervals over tasks. Where all labels are of one class, kappa and alpha are None: not measurable."""

_KWARGS_DESCRIPTION = """
Args:
    predictions: Rewards of the judge.
    references: Gold labels of the same rollouts.
    task_ids: Task of each rollout; labels of one task are not independent. By default each rollout
        is a task of its own.
    threshold: Numbers at or above it are a pass. Without it a number between two classes is left out.
    confidence: Coverage of the intervals.
Returns:
    agreement, kappa, alpha, each with _low and _high; agreement_rows: rows with two labels.
Example:
    >>> metric = evaluate.load(whileai_hf.metric_path("judge_agreement"))
    >>> metric.compute(predictions=[1, 0, 1, 1], references=[1, 0, 0, 1])["agreement"]
    0.75
"""

_CITATION = """@article{cohen1960, title={A Coefficient of Agreement for Nominal Scales}, author={Jacob Cohen}, journal={Educational and Psychological Measurement}, volume={20}, pages={37--46}, year={1960}}"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class JudgeAgreement(evaluate.Metric):
    """Agreement of a judge with gold labels."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {
                    "predictions": datasets.Value("float64"),
                    "references": datasets.Value("float64"),
                }
            ),
        )

    def _compute(self, predictions, references, task_ids=None, threshold=None, confidence=0.95):
        tasks = list(range(len(predictions))) if task_ids is None else list(task_ids)
        rows = datasets.Dataset.from_dict(
            {"task_id": tasks, "reward": predictions, "gold_reward": references}
        )
        found = whileai_hf.agreement(rows, threshold=threshold, confidence=confidence)
        out = {"agreement_rows": found.n_rows}
        for name, value in (
            ("agreement", found.percent),
            ("kappa", found.kappa),
            ("alpha", found.alpha),
        ):
            out[name] = None if value is None else value.value
            out[name + "_low"] = None if value is None else value.interval.low
            out[name + "_high"] = None if value is None else value.interval.high
        return out
