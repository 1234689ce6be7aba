"""A fake API server that produces faults on request, which a real one cannot be made to produce."""

from fake_server import answers, server, until
from tls_certificates import certificates

__all__ = ["answers", "certificates", "server", "until"]
