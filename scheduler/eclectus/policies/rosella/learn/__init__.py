"""Rosella's learner: rates, changes of rate, and node liveness."""
