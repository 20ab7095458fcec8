"""Numbers with intervals: pass rates, paired differences, noise, power and agreement."""
