"""Training: labels that honour every mask, formats, collators, and callbacks that watch a run."""
