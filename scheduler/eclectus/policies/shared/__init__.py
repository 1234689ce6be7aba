"""Base classes, settings and accounts that several policies use."""
