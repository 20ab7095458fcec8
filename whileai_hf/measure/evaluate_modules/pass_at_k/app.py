"""The page of the Space."""

import evaluate
from evaluate.utils import launch_gradio_widget

launch_gradio_widget(evaluate.load("pass_at_k.py"))
