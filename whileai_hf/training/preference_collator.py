"""PreferenceCollator: keep what the agent did not write out of the DPO and KTO loss.

TRL trains on the whole completion, tool results and the headers of user turns included
(`DataCollatorForPreference` and `DataCollatorForUnpairedPreference` of 1.16 have no option for it). A
trainer tokenizes by itself, so the mask of each sequence is kept here under its token ids: whatever the
trainer shuffles, splits over ranks, or pairs with another prompt for the KL term of KTO, it is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from whileai_hf import columns, schema
from whileai_hf.errors import InputError, SchemaError
from whileai_hf.extras import require
from whileai_hf.training.preference_rows import tools_of
from whileai_hf.training.sequences import token_range
from whileai_hf.training.turns import TurnFinder, check_fast, own_template

Mask = NDArray[np.uint8]


class PreferenceCollator:
    """A data collator for `DPOTrainer` and `KTOTrainer` whose loss sees agent turns alone.

    Nothing is cut: leave long rows out with `to_dpo(..., max_length=…)`.

    Args:
        rows: What the trainer trains on, and evaluates on, as `to_dpo` or `to_kto` made it.
        tokenizer: The tokenizer that the trainer is given, with the chat template it has.
        pad_to_multiple_of: Length of a batch is a multiple of this.

    Raises:
        SchemaError: The rows are neither pairs nor labelled replies.
        InputError: The template does not say where an agent turn stands; the row is named.

    Example:
        `DPOTrainer(model, train_dataset=rows, data_collator=PreferenceCollator(rows, tokenizer), …)`
    """

    def __init__(
        self, *rows: Dataset, tokenizer: Any, pad_to_multiple_of: int | None = None
    ) -> None:
        check_fast(tokenizer)
        self.tokenizer, self.pad_to_multiple_of = tokenizer, pad_to_multiple_of
        finder = TurnFinder(tokenizer, own_template(tokenizer))
        self._whole: dict[bytes, Mask] = {}
        self._reply: dict[bytes, Mask] = {}
        for dataset in rows:
            for i, (prompt, reply, tools) in enumerate(_replies(dataset)):
                self._learn(finder, prompt, reply, tools, i)

    def _learn(
        self, finder: TurnFinder, prompt: list[Any], reply: list[Any], tools: Any, row: int
    ) -> None:
        """Keep the mask of one sequence, and that of its reply alone."""
        messages = finder.prepare([*prompt, *reply])
        turns = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i >= len(prompt)]
        found = finder.find(messages, tools, turns)
        if found is None:
            raise InputError(
                f"each agent turn must stand where the chat template says; of row {row} it rewrites the "
                "history. Set tokenizer.chat_template = wai.training_template(tokenizer) before the rows, "
                "the collator and the trainer are made."
            )
        encoded = self.tokenizer([found.text], add_special_tokens=False)
        ids, places = encoded["input_ids"][0], encoded.encodings[0]
        mask = np.zeros(len(ids), dtype=np.uint8)
        for start, end in found.spans.values():
            first, last = token_range(places, start, end)
            mask[first:last] = 1
        head = finder.render(messages[: len(prompt)], tools, prompt=True)
        begins = _shared(self.tokenizer(head, add_special_tokens=False)["input_ids"], ids)
        self._whole[_key(ids)] = np.packbits(mask)
        self._reply[_key(ids[begins:])] = np.packbits(mask[begins:])

    def __call__(
        self, examples: Sequence[Mapping[str, Any]], return_tensors: str | None = None
    ) -> dict[str, Any]:
        """Collate as TRL does, and leave the agent's own tokens in the completion masks."""
        if not examples:
            raise InputError("a batch needs rows; got none. Check the dataset and its filters.")
        if "chosen_ids" in examples[0]:
            return self._pairs(examples)
        return self._singles(examples)

    def _pairs(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        trl = require("trl.trainer.dpo_trainer", "train")
        out: dict[str, Any] = trl.DataCollatorForPreference(**self._options)(examples)
        wholes = [
            e["prompt_ids"] + e[side] for side in ("chosen_ids", "rejected_ids") for e in examples
        ]
        for i, ids in enumerate(wholes):
            self._narrow(out["completion_mask"][i], 0, self._mask(self._whole, ids))
        return out

    def _singles(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        trl = require("trl.trainer.kto_trainer", "train")
        out: dict[str, Any] = trl.DataCollatorForUnpairedPreference(**self._options)(examples)
        for prefix in ("", "KL_"):
            for i, example in enumerate(examples):
                if f"{prefix}completion_ids" in example:
                    mask = self._mask(self._reply, example[f"{prefix}completion_ids"])
                    row = out[f"{prefix}completion_mask"][i]
                    self._narrow(row, len(example["prompt_ids"]), mask)
        return out

    @property
    def _options(self) -> dict[str, Any]:
        pad = self.tokenizer.pad_token_id
        pad = self.tokenizer.eos_token_id if pad is None else pad
        return {"pad_token_id": pad, "pad_to_multiple_of": self.pad_to_multiple_of}

    def _mask(self, known: Mapping[bytes, Mask], ids: Sequence[int]) -> Mask:
        packed = known.get(_key(ids))
        if packed is None:
            text = self.tokenizer.decode(ids[-40:])
            raise InputError(
                "every sequence must be one of the rows that the collator was made with; got one that "
                f"ends in {text!r}. Pass it the trainer's own rows and tokenizer, both without a "
                "change of template, and the evaluation rows as well."
            )
        return np.unpackbits(packed, count=len(ids))

    def _narrow(self, row: Any, start: int, mask: Mask) -> None:
        row[start : start + len(mask)] *= row.new_tensor(mask)


def _replies(dataset: Dataset) -> Iterator[tuple[list[Any], list[Any], Any]]:
    """Walk over the sequences of pairs or labelled replies: prompt, reply, tools."""
    columns.check_dataset(dataset, "PreferenceCollator")
    sides = [n for n in ("chosen", "rejected", "completion") if n in dataset.column_names]
    if "prompt" not in dataset.column_names or not sides:
        raise SchemaError(
            "PreferenceCollator needs 'prompt' with 'chosen' and 'rejected', or with 'completion'; the "
            f"dataset has {', '.join(dataset.column_names)}. Make it with to_dpo or to_kto."
        )
    names = ["prompt", *sides, *(["tools"] if "tools" in dataset.column_names else [])]
    for batch in columns.batches(dataset.select_columns(names)):
        for values in zip(*batch.values(), strict=True):
            row = {k: schema.restore(v) for k, v in zip(batch, values, strict=True)}
            for side in sides:
                yield row["prompt"], row[side], tools_of(row)


def _key(ids: Sequence[int]) -> bytes:
    return blake2b(np.asarray(ids, dtype=np.int32).tobytes(), digest_size=16).digest()


def _shared(some: Sequence[int], other: Sequence[int]) -> int:
    """Count the leading tokens that two sequences share; there a trainer lets the reply begin."""
    pairs = enumerate(zip(some, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(some), len(other)))
