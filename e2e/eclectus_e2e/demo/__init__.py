"""The demo: one stream of pods, several schedulers, the same nodes; the outcome in numbers and a picture."""
