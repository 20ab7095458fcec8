"""Tasks, seeds, specifications, wrappers and traces: every form is read, and no trace comes back."""

from __future__ import annotations

import json

import pytest

import whileai_hf as wai
from whileai_hf.simulate.aim import Sources, aim_at, condition_of
from whileai_hf.simulate.near import NearCopies

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order."""


@wai.tool
def refund_order(order_id: str, amount: float) -> dict:
    """Refund an order."""


TOOLS = [get_order, refund_order]


def run(**options):
    given = {
        "tools": TOOLS,
        "system_prompt": "Help customers.",
        "budget": 12,
        "repeats": 1,
        "progress": False,
    }
    return wai.simulate(wai.seeded_agent(TOOLS), **{**given, **options})


def test_tasks_are_a_run_its_rows_a_path_a_folder_or_texts(tmp_path):
    data = run(output=tmp_path / "run")
    data.to_parquet(tmp_path / "rows.parquet")
    forms = [
        data,
        list(data.records()),
        tmp_path / "rows.parquet",
        str(tmp_path / "run"),
        data.select(range(12)),
    ]
    for tasks in forms:
        again = wai.simulate(wai.seeded_agent(TOOLS), tasks=tasks, repeats=2, progress=False)
        assert again["ask"][::2] == data["ask"][:]
        assert again["world"][::2] == data["world"][:]
        assert again[0]["tools"] == data[0]["tools"]
    asks = ["Where is my order?", "Please refund ORD-7."]
    texts = wai.simulate(lambda message: "hi", tools=TOOLS, tasks=asks, repeats=3, progress=False)
    assert texts["ask"][::3] == asks
    assert len(texts) == 6


@pytest.mark.parametrize("tasks", [[], [1], ["a", 1], {"x": 1}, 7, "no/such/file.jsonl", [""]])
def test_what_are_no_tasks_is_refused(tasks):
    with pytest.raises(wai.InputError):
        run(tasks=tasks)


def test_chat_logs_are_tasks_too():
    log = {
        "messages": [
            {"role": "user", "content": "Where is ORD-1?"},
            {"role": "assistant", "content": "Here."},
        ]
    }
    assert run(tasks=[log], budget=None)["ask"][:] == ["Where is ORD-1?"]


def test_all_seeds_run_first_whatever_their_number(tmp_path):
    asks = [f"Question number {i}, please?" for i in range(125)]
    (tmp_path / "asks.txt").write_text("\n".join(asks), encoding="utf-8")
    (tmp_path / "asks.jsonl").write_text(
        "\n".join(json.dumps({"ask": a}) for a in asks), encoding="utf-8"
    )
    for seeds in (asks, tmp_path / "asks.txt", str(tmp_path / "asks.jsonl")):
        data = run(seeds=seeds, budget=130)
        assert data["ask"][:125] == asks
    assert len(set(run(seeds=asks * 10, budget=None)["ask"])) >= 125
    with pytest.raises(wai.InputError, match="pay all seeds"):
        run(seeds=asks, budget=20)
    for bad in ("one text", [""], 7):
        with pytest.raises(wai.InputError):
            run(seeds=bad)


def test_a_specification_is_a_folder_or_a_file(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "spec.json").write_text(json.dumps({"tools": wai.tool_schemas(TOOLS), "policy": "policy.md",
                                                  "situations": ["My own ask, please?"]}))  # fmt: skip
    (folder / "policy.md").write_text("Help customers.\nNever refund twice.\n")
    (folder / "rubric.md").write_text("The refund is right.")
    data = wai.simulate(wai.seeded_agent(TOOLS), spec=folder, budget=20, repeats=1, progress=False)
    assert data[0]["ask"] == "My own ask, please?"
    assert data[0]["messages"][0]["content"].startswith("Help customers.")
    assert {row["rubric"] for row in data["privileged"]} == {"The refund is right."}
    assert "Never refund twice." in {row.get("rule") for row in data["situation"]}
    (tmp_path / "one.yaml").write_text(
        "system_prompt: Be kind to everyone.\ntools:\n- name: get_x\n"
    )
    assert (
        run(spec=tmp_path / "one.yaml", tools=None, system_prompt=None)[0]["tools"][0]["function"][
            "name"
        ]
        == "get_x"
    )
    (tmp_path / "bad.json").write_text("[1]")
    (tmp_path / "none.json").write_text("{}")
    for bad, what in (
        ("bad.json", "object"),
        ("none.json", "tools or a system prompt"),
        ("gone.json", "does not exist"),
    ):
        with pytest.raises(wai.InputError, match=what):
            run(spec=tmp_path / bad)


def test_a_scaffold_wraps_every_ask():
    data = run(scaffold="Message of a customer:\n{ask}", seeds=["Braces {in} it"])
    assert all(ask.startswith("Message of a customer:\n") for ask in data["ask"])
    assert data[0]["messages"][1]["content"] == "Message of a customer:\nBraces {in} it"


def graded(budget=200, seed=1):
    """Traces of an agent that fails at refunds only."""
    data = run(budget=budget, seed=seed)
    return data.grade(
        judge=lambda row: int((row["privileged"]["goal"] or {}).get("tool") != "refund_order"),
        progress=False,
    )


def test_traces_aim_the_grid_at_what_failed():
    traces = graded()
    plain, aimed = run(budget=300), run(budget=300, traces=traces)

    def share(data):
        return sum(s["tool"] == "refund_order" for s in data["situation"]) / len(data)

    assert share(aimed) > share(plain) + 0.15
    assert "tool=refund_order" in str(aimed.report)
    assert aimed.report.coverage.n_met > 0.7 * plain.report.coverage.n_met
    assert list(aimed) == list(run(budget=300, traces=traces)), (
        "an aimed run is as reproducible as any"
    )


def test_tools_and_prompt_come_from_the_traces():
    data = wai.simulate(
        wai.seeded_agent(TOOLS), traces=graded(30), budget=10, repeats=1, progress=False
    )
    assert data[0]["tools"] == wai.tool_schemas(TOOLS)
    assert data[0]["messages"][0]["content"] == "Help customers."


def test_no_trace_comes_back_even_where_the_writer_would_write_it():
    twin = run(budget=100, seed=3)  # the very rows that the next call would make
    traces = twin.grade(judge=lambda row: 0, progress=False)
    again = run(budget=100, seed=3, traces=traces)
    assert len(again) == 100
    assert not set(twin["ask"]) & set(again["ask"])
    sources = Sources(twin["ask"][:])
    assert not [ask for ask in again["ask"] if ask in sources]


@pytest.mark.parametrize(
    ("ask", "back"),
    [
        ("could you look up order ORD-77?   THANKS a lot for that", True), ("Could you look up order ORD-78? Thanks a lot for that!", False),
        ("Hello. Could you look up order ORD-77? Thanks a lot for that! And more.", True), ("Something else entirely", False),
    ],
)  # fmt: skip
def test_a_source_is_known_in_any_dress(ask, back):
    assert (ask in Sources(["Could you look up order ORD-77? Thanks a lot for that!"])) == back


def test_traces_without_a_reward_are_refused_and_traces_without_a_failure_aim_nowhere():
    with pytest.raises(wai.InputError, match="graded"):
        run(traces=run())
    fine = run().grade(judge=lambda row: 1, progress=False)
    assert aim_at(fine).lifts == {}
    assert "no value fails more" in str(aim_at(fine))
    assert len(run(traces=fine)) == 12


def test_foreign_traces_are_placed_by_their_calls():
    def log(tool, result, reward):
        call = {"id": "1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        return {"messages": [{"role": "user", "content": f"Ask about {tool} {result}"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                             {"role": "tool", "tool_call_id": "1", "content": result}, {"role": "assistant", "content": "ok"}], "reward": reward}  # fmt: skip

    logs = [log("refund_order", '{"error": "timeout"}', 0)] * 5 + [
        log("get_order", '{"status": "paid"}', 1)
    ] * 5
    aim = aim_at(wai.from_chats(logs))
    assert aim.lifts["tool", "refund_order"] > 1 > aim.lifts["tool", "get_order"]
    assert aim.lifts["tool_condition", "timeout"] > 1
    assert aim.lifts["tool_condition", "success"] < 1
    data = run(traces=logs, budget=60)
    assert len(data) == 60


@pytest.mark.parametrize(
    ("result", "condition"),
    [
        ('{"status": "paid"}', None), ('{"subject": "timeout"}', None), ('{"error": null, "rows": []}', None), ("plain text about a timeout", None),
        ('{"error": "timed out"}', "timeout"), ('{"error": {"code": 429}}', "rate_limited"), ('{"error": "no such order"}', "missing"),
        ("Error: permission denied", "permission_denied"), ("", None), (None, None), ('{"status": "failed", "message": "forbidden"}', "permission_denied"),
    ],
)  # fmt: skip
def test_only_what_is_said_of_an_error_is_one(result, condition):
    assert condition_of(result) == condition


def test_near_copies_agree_with_the_exact_similarity_and_grow_linearly():
    import random

    from whileai_hf.simulate.near import shingles

    rng = random.Random(1)
    words = [f"w{i}" for i in range(300)]
    base = [" ".join(rng.choices(words, k=30)) for _ in range(150)]
    texts = (
        base
        + [" ".join(t.split()[:-1]) for t in base]
        + [" ".join(rng.choices(words, k=30)) for _ in range(150)]
    )
    kept: list[set[str]] = []
    found, wrong = NearCopies(0.8), 0
    for text in texts:
        grams = shingles(text)
        exact = any(len(grams & k) / len(grams | k) >= 0.8 for k in kept)
        wrong += found.add(text) != exact
        if not exact:
            kept.append(grams)
    assert wrong == 0
    assert len(kept) == 300


def test_runs_repeat_one_set_of_new_situations_within_the_budget():
    data = run(budget=24, runs=2, repeats=3)
    assert data["run"][:] == ["0"] * 12 + ["1"] * 12
    assert data["task_id"][:12] == data["task_id"][12:]
