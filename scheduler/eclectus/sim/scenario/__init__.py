"""Scenario files: read, checked and overridden."""
