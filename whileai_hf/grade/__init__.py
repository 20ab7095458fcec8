"""Grading: one contract for every judge, and the runner that honours it."""
