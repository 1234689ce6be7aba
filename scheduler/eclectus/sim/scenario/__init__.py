"""Scenario files: reading, validation and overrides."""
