"""Simulating: a grid of situations, what a user asks in them, agents, and the engine that rolls them out."""
