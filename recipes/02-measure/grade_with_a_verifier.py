"""Grade rollouts by a program: the reference stays out of every prompt and every reason."""

import whileai_hf as wai

rollouts = wai.from_chats(
    [
        {
            "messages": [
                {"role": "user", "content": "What is the capital of Italy?"},
                {"role": "assistant", "content": answer},
            ],
            "privileged": {"reference": "Rome"},
        }
        for answer in ("Rome", "It is Rome.", "Milan")
    ]
)
judge = wai.Weighted((wai.ExactMatch(), 1), (wai.Includes(), 1))
graded = wai.grade(rollouts, judge, progress=False)
for row in graded:
    print(row["reward"], row["reason"])
