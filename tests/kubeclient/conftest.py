"""A fake API server whose answers a test chooses, for faults that a real one cannot be made to produce."""

from fake_server import answers, server, until
from tls_certificates import certificates

__all__ = ["answers", "certificates", "server", "until"]
