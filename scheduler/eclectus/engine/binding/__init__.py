"""Binds: how they are counted before they are sent, and what goes before them."""
