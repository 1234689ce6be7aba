"""Writes to the API server: bindings, conditions and Kubernetes events."""
