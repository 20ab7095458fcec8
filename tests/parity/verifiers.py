"""Public bug reports about verifiers, and how many each library answers as a careful user would want.

Run: python tests/parity/verifiers.py [--peer-python PYTHON with whileai 0.131 and math-verify] [--write]
Prints (and with --write keeps in tests/parity/verifiers.md) right answers of all reports of a kind: ours, math-verify
0.9 (`verify(parse(reference), parse(answer))`), the extraction of lm-evaluation-harness' task files (the last number of
GSM8K's flexible-extract, the first bracketed letter of its multiple-choice filter, `exact_match`), and whileai 0.131.
A dash: the library has nothing for the kind.
"""

from __future__ import annotations

import argparse
import json
import re
import string
import subprocess
import textwrap
from pathlib import Path

import whileai_hf as wai

DATA = Path(__file__).parents[1] / "data" / "public_reports.jsonl"
KINDS = (
    "math_equal",
    "numeric",
    "multiple_choice",
    "exact_match",
    "includes",
    "regex",
    "json_extract",
    "json_schema",
)

PEER = """
    import json, signal, sys, warnings
    warnings.simplefilter("ignore")
    import whileai.simulations.verify as V
    def late(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, late)
    out = {}
    for case in json.load(sys.stdin):
        given, kind = case["input"], case["kind"]
        row = {"final_text": case["text"], "privileged": {"reference": given.get("reference"), "choices": given.get("choices")}}
        signal.alarm(10)   # some of its checks never end
        try:
            made = {"math_equal": lambda: V.MathEqual(), "numeric": lambda: V.Numeric(), "multiple_choice": lambda: V.MultipleChoice(),
                    "exact_match": lambda: V.ExactMatch(), "includes": lambda: V.Includes(),
                    "regex": lambda: V.Regex(given["pattern"]),
                    "json_extract": lambda: V.JSONField(given["field"], equals=given.get("reference")) if "field" in given else V.JSONValid(),
                    "json_schema": lambda: V.JSONSchema(given["schema"])}[kind]()
            out[case["id"]] = made(row)["reward"]
        except Exception as error:
            out[case["id"]] = "error"
    print(json.dumps(out))
"""


def cases():
    """Reports with one text and one reward, as (case, text)."""
    found = []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if (
            case["kind"] not in KINDS
            or "threads" in case["input"]
            or "final_texts" in case["input"]
        ):
            continue
        given = case["input"]
        if "instance" in given:
            nan = isinstance(given["instance"], str) and "NaN" in given["instance"]
            text = "NaN" if nan else json.dumps(given["instance"])
        elif "final_text" in given:
            text = (
                "[" * 100_000 if "repeated 100000" in given["final_text"] else given["final_text"]
            )
        else:
            continue
        found.append((case, text))
    return found


def wanted(case):
    expected = case["expected"]
    return "error" if "raises" in expected and "reward" not in expected else expected["reward"]


def ours(case, text):
    given, kind = case["input"], case["kind"]
    options = given.get("options", {})
    build = {
        "math_equal": lambda: wai.MathEqual(),
        "numeric": lambda: wai.Numeric(**options),
        "multiple_choice": lambda: wai.MultipleChoice(choices=tuple(given["choices"])),
        "exact_match": lambda: wai.ExactMatch(**options),
        "includes": lambda: wai.Includes(),
        "regex": lambda: wai.Regex(pattern=given["pattern"]),
        "json_extract": lambda: (
            wai.JSONField(path=given["field"]) if "field" in given else wai.JSONValid()
        ),
        "json_schema": lambda: wai.JSONSchema(schema=given["schema"]),
    }[kind]
    try:
        judge = build()
    except wai.InputError:
        return "error"
    return judge({"final_text": text, "privileged": {"reference": given.get("reference")}})[
        "reward"
    ]


def math_verify_says(case, text):
    if case["kind"] not in ("math_equal", "numeric"):
        return None
    from math_verify import parse, verify

    gold = parse(case["input"]["reference"], parsing_timeout=5)
    return float(verify(gold, parse(text, parsing_timeout=5), timeout_seconds=5))


def lm_eval_says(case, text):
    """GSM8K's flexible-extract, a bracketed letter, and exact_match without case and punctuation."""
    kind, reference = case["kind"], str(case["input"].get("reference"))
    plain = str.maketrans("", "", string.punctuation)
    if kind in ("numeric", "math_equal"):
        numbers = [a or b for a, b in re.findall(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text)]
        strip = lambda value: re.sub(r"[,$]|\.$|(?s:.*#### )", "", value).casefold()  # noqa: E731 - GSM8K's regexes_to_ignore
        return float(bool(numbers) and strip(numbers[-1]) == strip(reference))
    if kind == "multiple_choice":
        letters = re.findall(r"\(([A-Z])\)", text)
        return float(bool(letters) and letters[0] == reference)
    if kind == "exact_match":
        return float(text.casefold().translate(plain) == reference.casefold().translate(plain))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = cases()
    answers = {"whileai_hf": {c["id"]: ours(c, t) for c, t in found}}
    answers["math-verify"] = {c["id"]: math_verify_says(c, t) for c, t in found}
    answers["lm-eval extraction"] = {c["id"]: lm_eval_says(c, t) for c, t in found}
    if args.peer_python:
        given = json.dumps([{**c, "text": t} for c, t in found])
        done = subprocess.run([args.peer_python, "-c", textwrap.dedent(PEER)], input=given, capture_output=True, text=True, check=True)  # fmt: skip
        answers["whileai 0.131"] = json.loads(done.stdout.splitlines()[-1])
    lines = [
        "| kind | reports | " + " | ".join(answers) + " |",
        "|---|---|" + "---|" * len(answers),
    ]
    totals = dict.fromkeys(answers, 0)
    for kind in KINDS:
        of_kind = [c for c, _ in found if c["kind"] == kind]
        cells = []
        for name, said in answers.items():
            if all(said[c["id"]] is None and wanted(c) is not None for c in of_kind):
                cells.append("–")
                continue
            right = sum(said[c["id"]] == wanted(c) for c in of_kind)
            totals[name] += right
            cells.append(str(right))
        lines.append(f"| {kind} | {len(of_kind)} | " + " | ".join(cells) + " |")
    lines.append(f"| all | {len(found)} | " + " | ".join(map(str, totals.values())) + " |")
    text = "\n".join(lines)
    print(text)
    if args.write:
        title = "# Verifiers on public reports\n\nMade by `python tests/parity/verifiers.py --write`.\n\n"
        Path(__file__).with_suffix(".md").write_text(f"{title}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
