"""Rosella's learner: service rates, changes of speed, load, and liveness of nodes."""
