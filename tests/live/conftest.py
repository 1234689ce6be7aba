"""A small API server that misbehaves on request, for faults a real one cannot be made to produce."""

from fake_server import answers, server, until

__all__ = ["answers", "server", "until"]
