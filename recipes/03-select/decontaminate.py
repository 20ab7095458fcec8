"""Keep an evaluation out of the training rows: copies in any script, questions inside longer texts.

Learn: `decontaminate`, and the same by hand as a map and a filter. Needs: nothing; a sentence embedder for
paraphrases (`embedder="sentence-transformers/all-MiniLM-L6-v2"`). Takes: seconds.
"""

import whileai_hf as wai

evaluation = [
    "How many oranges does the grocer on Mill Street sell in a week of seven days?",
    "请帮我取消昨天下的订单",
    "Tom has 3 apples and buys 5 more. How many apples does Tom have in all now?",
]
training = wai.rows(
    [
        "how many oranges does the grocer on mill street sell, in a week of seven days",  # the same words
        "I have a question. 请帮我取消昨天下的订单。谢谢!",  # inside a longer text
        "Tom has 4 apples and buys 9 more. How many apples does Tom have in all now?",  # another problem
        "Where is my parcel?",
    ],
    ["49", "好的", "13", "In Leeds."],
)

clean = wai.decontaminate(training, evaluation)
print(clean.report)
print("kept:", clean["ask"][:])

marked = wai.with_contamination(training, evaluation)  # the same by hand: a map, then a filter
print("by hand:", len(marked.filter(wai.Uncontaminated())), "rows")
print(
    "stricter:", len(marked.filter(wai.Uncontaminated(drop=("exact", "near", "template")))), "rows"
)
