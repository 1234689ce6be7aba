"""Kubernetes objects in, nouns out. Pure: no socket, no clock; the live shell and the simulator share it."""
