"""Certificates of servers."""

from tls_certificates import certificates

__all__ = ["certificates"]
