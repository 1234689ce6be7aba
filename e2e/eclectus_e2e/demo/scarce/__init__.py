"""Batches of pods on scarce nodes: what they wait, and what the other pods pay for it."""
