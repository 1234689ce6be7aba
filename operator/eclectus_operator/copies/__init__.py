"""Copies of pods that nothing controls."""
