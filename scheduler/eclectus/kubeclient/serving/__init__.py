"""The server of health checks, metrics and further pages."""
