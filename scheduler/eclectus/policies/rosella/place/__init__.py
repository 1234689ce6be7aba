"""Rosella's placement: sampling, or re-planning of one central queue."""
