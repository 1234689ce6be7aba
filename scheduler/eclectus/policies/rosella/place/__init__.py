"""Rosella's placement: sampling, comparison of all nodes, or re-planning of one central queue."""
