"""Eclectus: a scheduler for Kubernetes that learns how fast every node really is."""

__all__ = ["__version__"]

# As in pyproject.toml, which a test holds: to ask the installed package for it costs a start 40 ms.
__version__ = "0.1.0"
