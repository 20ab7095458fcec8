"""Guards: what must not reach training, and what a training run must not be paid for."""
