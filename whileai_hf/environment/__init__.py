"""Environments: tasks, world and reward as one package for verifiers, TRL and this library."""
