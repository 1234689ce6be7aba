"""Eclectus: a scheduler for Kubernetes that learns how fast every node really is."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("eclectus")
