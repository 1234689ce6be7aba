"""Pods on fake nodes: admission, simulated work, status updates, deletion."""
