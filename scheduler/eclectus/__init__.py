"""Eclectus: a scheduler for Kubernetes that learns how fast every node really is."""

__all__ = ["__version__"]

__version__: str


def __getattr__(name: str) -> str:
    """The version of the installed package, looked up when it is asked for: that costs a start 40 ms."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("eclectus")
